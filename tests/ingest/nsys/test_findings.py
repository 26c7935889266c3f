"""What is said of a file beside its numbers: once, in numbers, and never in the file's own words."""

from __future__ import annotations

import json

import pytest

from bubblescope.ingest.nsys import read
from tests.ingest.nsys.exports import (
    OLD_OPTIONS,
    OPTIONS,
    copied,
    graph,
    kernel,
    launch,
    pushed,
    told,
)

ROW = kernel("a", 10, 20, correlation=1)
CALL = launch("cudaLaunchKernel", 1, 2, correlation=1)
SEND = pushed("ncclSend", 1, 2)


def said(trace, code):
    """The severity and message of the one finding of that code."""
    (found,) = [finding for finding in trace.findings if finding.code == code]
    assert found.input == trace.source.path
    return found.severity, found.message


def test_nothing_to_say(trace):
    """Of a sound file."""
    assert trace(ROW, CALL, pushed("mine", 1, 2)).findings == ()


def test_no_launch(trace):
    """Kernels and copies whose launches are not in the file; they remain."""
    found = trace(ROW, CALL, kernel("b", 30, 40, correlation=2), kernel("c", 30, 40), copied(1, 5, 6, correlation=3))
    assert said(found, "no-launch") == (
        "info",
        (
            "3 of 4 kernels and copies have no launch in the file: they were launched before the recording began, or "
            "their launches were lost"
        ),
    )
    assert len(found.kernels) == 4


def test_no_launches_at_all(trace):
    """Were not recorded; that is told where it matters, not by a count of all."""
    assert trace(ROW, kernel("b", 30, 40, correlation=2)).findings == ()


def test_a_launch_of_another_process(traces):
    """Of the same correlation is none of this one."""
    found = traces(
        ROW,
        CALL,
        kernel("b", 10, 20, pid=20, device=1, correlation=2),
        launch("cudaLaunchKernel", 3, 4, pid=20, correlation=1),
        launch("cudaLaunchKernel", 5, 6, pid=10, correlation=2),
    )
    assert [[f.code for f in each.findings] for each in found] == [[], ["no-launch"]]


def test_implausible_times(trace):
    """Rows left out."""
    assert trace(ROW, CALL, kernel("b", 0, 0), kernel("c", 5, 1)).doubts.unplaced == 2


def test_hidden_kernels(trace):
    """Graphs that were recorded as one block, and how to record them otherwise."""
    found = trace(ROW, CALL, graph(30, 40, correlation=2), launch("cudaGraphLaunch", 3, 4, correlation=2))
    severity, message = said(found, "hidden-kernels")
    assert (severity, message.split()[0]) == ("warning", "1")
    assert "--cuda-graph-trace=node" in message


def test_unpaired_events(trace):
    """Ranges that were open."""
    severity, message = said(trace(ROW, CALL, pushed("a", 1, None), pushed("b", 1, None)), "unpaired-events")
    assert (severity, message.split()[0]) == ("info", "2")


class TestPayloads:
    """Messages of NCCL that do not tell their peer, and what helps."""

    @pytest.mark.parametrize("rows", [[], [(OPTIONS, {"name": "EXPORT_PARAM_INCLUDE_JSON", "value": "false"})]])
    def test_the_export_left_them_out(self, trace, rows):
        """As it does by default."""
        severity, message = said(trace(ROW, CALL, SEND, SEND, *rows), "nccl-payloads")
        assert (severity, message.split()[0]) == ("info", "2")
        assert "--include-json=true" in message

    @pytest.mark.parametrize("table", [OPTIONS, OLD_OPTIONS])
    @pytest.mark.parametrize("option", ["EXPORT_PARAM_INCLUDE_JSON", "EXPORT_PARAM_INCLUDE_BLOBS"])
    def test_the_export_was_asked_for_them(self, trace, table, option):
        """Then NCCL is too old."""
        _, message = said(trace(ROW, CALL, SEND, (table, {"name": option, "value": "true"})), "nccl-payloads")
        assert "--include-json" not in message
        assert "2.16" in message

    def test_told(self, trace):
        """Nothing is missing."""
        send = pushed("ncclSend", 1, 2, jsonText=json.dumps({"Peer rank": 1}))
        assert trace(ROW, CALL, send).findings == ()


def test_lost_events(trace):
    """How many warnings, and of which kinds; their words name paths, and stay in the file."""
    found = trace(
        ROW, CALL, told("Not all NVTX events of /home/me might have been collected."), told("CUDA events lost")
    )
    severity, message = said(found, "lost-events")
    assert severity == "warning"
    assert (
        message == "Nsight Systems warns that events of CUDA and NVTX may be missing from the recording (warnings: 2)"
    )
    _, message = said(trace(ROW, CALL, *[told("events lost")] * 3, name="b.sqlite"), "lost-events")
    assert message == "Nsight Systems warns that events may be missing from the recording (warnings: 3)"


def test_unmerged_log(save):
    """A log beside the file."""
    path = save(ROW, CALL)
    path.with_name("report.sqlite-wal").write_bytes(b"x")
    (found,) = read(path)
    severity, message = said(found, "unmerged-log")
    assert severity == "warning"
    assert "nsys export" in message


def test_what_concerns_the_file_is_said_once(traces):
    """With the first of its ranks."""
    found = traces(ROW, kernel("b", 10, 20, pid=20, device=1), told("events lost"), pushed("a", 1, None))
    assert [sorted(f.code for f in each.findings) for each in found] == [["lost-events", "unpaired-events"], []]
