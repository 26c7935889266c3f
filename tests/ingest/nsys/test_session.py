"""What an export tells of the recording, and what of it never leaves the file."""

from __future__ import annotations

import pytest

from bubblescope.ingest.nsys.session import NODES, RANKS, Session, session
from tests.ingest.nsys.exports import (
    CAPTURE,
    DEVICES,
    DIAGNOSTICS,
    ENVIRONMENT,
    GPUS,
    MPI,
    OLD_OPTIONS,
    OPTIONS,
    SESSION,
    began,
    captured,
    kernel,
    process,
    thread,
    told,
    variable,
)


@pytest.fixture
def recorded(opened):
    """Write rows, and read the session."""
    return lambda *rows, **how: session(opened(*rows, **how).database)


def test_nothing(recorded):
    """A file of kernels tells nothing else."""
    assert recorded(kernel("gemm", 1, 2)) == Session()


class TestBegin:
    """When times begin to count."""

    def test_since_the_epoch(self, recorded):
        """In nanoseconds."""
        assert recorded(began(1_779_782_330_176_752_435)).begin == 1_779_782_330_176_752_435

    @pytest.mark.parametrize("moment", [None, 0, -5, 2**62, "soon"])
    def test_moments_that_cannot_be(self, recorded, moment):
        """Are not told."""
        assert recorded(began(moment)).begin is None

    def test_the_column_is_not_there(self, recorded):
        """As in exports that tell the time in words alone."""
        assert recorded((SESSION, {"utcTime": "2026-06-12 12:39:01"})).begin is None


class TestEnvironment:
    """Allowed variables, and none else."""

    @pytest.mark.parametrize("name", [*(name for pair in RANKS for name in pair), *NODES])
    @pytest.mark.parametrize("write", [
        lambda name: variable(name, "3"), lambda name: variable(name, '"3"'), lambda name: variable(name, " 3 "),
        lambda name: captured(f'{name}="3"'), lambda name: captured(f"{name}=3"),
        lambda name: (CAPTURE, {"name": "ENVIRONMENT_VARIABLE", "value": f'{name}="3"'}),
    ])  # fmt: skip
    def test_numbers(self, recorded, name, write):
        """In a row of their own, or as the recorder was given them."""
        assert recorded(write(name)).environment == {name: 3}

    @pytest.mark.parametrize("value", ["", "-1", "x", "1.5", "1000000", "3;4", None, '"'])
    def test_values_that_are_no_number(self, recorded, value):
        """Tell nothing."""
        assert recorded(variable("RANK", value), captured(f'WORLD_SIZE="{value}"')).environment == {}

    def test_a_variable_that_is_told_twice(self, recorded):
        """Is one if both are the same, and none if they differ."""
        assert recorded(variable("RANK", "3"), captured('RANK="3"')).environment == {"RANK": 3}
        assert recorded(variable("RANK", "3"), captured('RANK="4"'), name="b.sqlite").environment == {}

    @pytest.mark.parametrize(
        "row",
        [
            variable("HF_TOKEN", "5"), variable("MY_RANK", "5"), variable("rank", "5"), captured('HF_TOKEN="5"'),
            captured('XRANK="5"'), captured('TOKEN="RANK=5"'), captured("RANK"),
            (CAPTURE, {"name": "PROCESS_0:COMMAND", "value": "RANK=5"}),
            (CAPTURE, {"name": "PROCESS_0:ARGUMENT_1", "value": "RANK=5"}),
            (CAPTURE, {"name": None, "value": "RANK=5"}),
        ],
        ids=lambda row: str(row[1]["value"]),
    )  # fmt: skip
    def test_what_is_not_asked_for(self, recorded, row):
        """Other variables, commands and arguments are nothing to us."""
        assert recorded(row, variable("WORLD_SIZE", "8")).environment == {"WORLD_SIZE": 8}

    @pytest.mark.parametrize("lost", ["name", "value"])
    def test_a_column_that_is_not_there(self, recorded, lost):
        """Leaves nothing to be told."""
        rows = [
            variable("RANK", "3"),
            captured("RANK=3"),
            (OPTIONS, {"name": "EXPORT_PARAM_INCLUDE_JSON", "value": "true"}),
        ]
        assert recorded(*rows, without={t: {lost} for t in (ENVIRONMENT, CAPTURE, OPTIONS)}) == Session()

    def test_rows_that_are_no_utf8(self, recorded):
        """Do no harm to those that are."""
        rows = [variable(b"\xff", b"\xfe"), captured(b"\xff=\xfe"), captured('RANK="3"')]
        assert recorded(*rows).environment == {"RANK": 3}


@pytest.mark.parametrize(
    ("rows", "host"),
    [
        ([variable("Hostname", "node7")], "node7"),
        ([variable("Hostname", None)], None),
        ([variable("Hostname", "")], None),
        ([variable("OTHER", "node7")], None),
    ],
)
def test_host(recorded, rows, host):
    """The name of the machine, where there is one."""
    assert recorded(*rows).host == host


def test_gpus(recorded):
    """Their names by number, and which of them a process counts as which."""
    found = recorded(
        (GPUS, {"id": 0, "name": "NVIDIA H100"}),
        (GPUS, {"id": 1, "name": None}),
        (DEVICES, {"gpuId": 1, "cudaId": 0, "pid": 10}),
        (DEVICES, {"gpuId": None, "cudaId": 1, "pid": 10}),
    )
    assert found.gpus == {0: "NVIDIA H100"}
    assert found.gpu_of == {(10, 0): 1}


def test_ranks_that_mpi_told(recorded):
    """Of processes; a number that is no rank is none."""
    rows = [(pid, rank) for pid, rank in ((10, 3), (20, -1), (30, None), (40, 1_000_000), (50, 0))]
    found = recorded(*((MPI, {"globalTid": thread(pid, 99), "rank": rank}) for pid, rank in rows))
    assert found.mpi == {process(10): 3, process(50): 0}


def test_a_process_that_mpi_told_several_ranks(recorded):
    """Is none of them; told twice, one is one."""
    rows = [(10, 3), (10, 4), (20, 5), (20, 5), (30, 6), (30, None)]
    found = recorded(*((MPI, {"globalTid": thread(pid, 99), "rank": rank}) for pid, rank in rows))
    assert found.mpi == {process(20): 5}


@pytest.mark.parametrize("table", [OPTIONS, OLD_OPTIONS])
def test_options_of_the_export(recorded, table):
    """Only those that concern payloads, in the table of today or of 2021."""
    rows = [("EXPORT_PARAM_INCLUDE_JSON", "true"), ("EXPORT_PARAM_INCLUDE_BLOBS", "false"), ("EXPORT_USER", "me")]
    found = recorded(*((table, {"name": name, "value": value}) for name, value in rows))
    assert found.options == dict(rows[:2])


class TestLost:
    """Warnings of lost events."""

    @pytest.mark.parametrize(
        ("text", "kinds"),
        [
            ("Not all NVTX events might have been collected.", ("NVTX",)),
            ("Not all CUDA events might have been collected.", ("CUDA",)),
            ("Number of CUPTI events produced: 31, buffers: 49 of 50. Some CUPTI events might be missing.", ("CUPTI",)),
            ("Some CUDA and NVTX events were dropped", ("CUDA", "NVTX")),
            ("12 events were lost", ()),
            ("buffer overflow", ()),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("severity", [2, 3, None])
    def test_warnings(self, recorded, text, kinds, severity):
        """By their words; a warning without a grade is one."""
        assert recorded(told(text, severity)).lost == (kinds, 1)

    @pytest.mark.parametrize(
        ("text", "severity"),
        [
            ("Not all CUDA events might have been collected.", 1),
            ("Profiling has started.", 2),
            ("Installed CUDA driver version (13.3) is not supported by this build of Nsight Systems.", 2),
            ("No NVTX events collected. Does the process use NVTX?", 2),
            (None, 3),
            ("", 3),
        ],
    )
    def test_what_is_none(self, recorded, text, severity):
        """Information, and warnings of something else."""
        assert recorded(told(text, severity)).lost == ((), 0)

    def test_several(self, recorded):
        """Are counted, and their kinds put together."""
        found = recorded(told("CUDA events lost"), told("NVTX events lost"), told("CUDA events lost"))
        assert found.lost == (("CUDA", "NVTX"), 3)

    def test_no_grades(self, recorded):
        """A table without the column holds warnings."""
        assert recorded(told("events lost", 1), without={DIAGNOSTICS: {"severity"}}).lost == ((), 1)
