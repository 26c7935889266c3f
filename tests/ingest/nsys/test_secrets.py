"""Exports hold environments and command lines: nothing of them leaves the file but the numbers of ranks and nodes."""

from __future__ import annotations

import pickle

import pytest

from bubblescope.cli import run
from bubblescope.engine import read_ranks
from bubblescope.model.options import Options
from bubblescope.report.registry import FORMATS
from tests.ingest.nsys.exports import (
    CAPTURE,
    KERNELS,
    OPTIONS,
    began,
    captured,
    export,
    kernel,
    launch,
    pushed,
    told,
    variable,
)

SECRET = "hf_oVeRhEaRd0123456789"  # noqa: S105 - nobody's
TRAINING = [
    [
        kernel("gemm", 100 * i + 20, 100 * i + 60, correlation=i),
        launch("cudaLaunchKernel", 100 * i + 10, 100 * i + 12, correlation=i),
        pushed(f"PP:0{'FB'[i % 2]}{i // 2}", 100 * i + 5, 100 * i + 15),
    ]
    for i in range(8)
]
WARNING = f"Not all CUDA events of /data/{SECRET} might have been collected."
PLANTED = [
    variable("HF_TOKEN", SECRET),
    variable("DeviceEnvironment", f"RANK=1;HF_TOKEN={SECRET}"),
    variable("RANK", SECRET),
    variable("WORLD_SIZE", f"8 {SECRET}"),
    variable(f"TOKEN_{SECRET}", "1"),
    captured(f'AWS_SECRET_ACCESS_KEY="{SECRET}"'),
    captured(f'SLURM_PROCID="{SECRET}"'),
    captured(f'MASTER_ADDR="RANK={SECRET}"'),
    (CAPTURE, {"name": "PROCESS_0:COMMAND", "value": f"python train.py --token {SECRET}"}),
    (CAPTURE, {"name": "PROCESS_0:ARGUMENT_1", "value": SECRET}),
    (CAPTURE, {"name": f"ENVIRONMENT_VARIABLE {SECRET}", "value": f"NODE_RANK={SECRET}"}),
    (OPTIONS, {"name": "EXPORT_PARAM_INCLUDE_JSON", "value": SECRET}),
    (OPTIONS, {"name": "EXPORT_COMMAND", "value": SECRET}),
    ("PROCESSES", {"globalPid": 10 << 24, "pid": 10, "name": SECRET}),
    ("ANALYSIS_FILE", {"id": 1, "filename": f"/home/{SECRET}/report.nsys-rep"}),
    ("StringIds", {"id": 1, "value": SECRET}),
    told(WARNING),
    told(SECRET),
    told(f"Profiling of {SECRET} has started.", 1),
    began(1_779_782_330_176_752_435),
]


@pytest.fixture
def report(tmp_path):
    """An export of one rank, with a secret wherever an export may hold one."""
    rows = [row for step in TRAINING for row in step]
    path = export(tmp_path / "report.sqlite", *rows, *PLANTED)
    assert path.read_bytes().count(SECRET.encode()) >= len(PLANTED) - 1
    return path


def show(capfd, *arguments):
    """All that a command line writes, and its exit status."""
    capfd.readouterr()
    code = run(arguments)
    out, err = capfd.readouterr()
    return code, out + err


@pytest.mark.parametrize("kind", FORMATS)
def test_no_report_shows_it(report, capfd, kind):
    """In no format, neither on stdout nor on stderr; warnings of the file show that it was read."""
    code, written = show(capfd, "analyze", str(report), "--format", kind)
    assert code == 0
    assert "CUDA" in written or kind == "csv"
    assert SECRET.lower() not in written.lower()


def test_no_error_shows_it(tmp_path, capfd):
    """Nor where there is nothing to analyze, or the file is damaged."""
    path = export(tmp_path / "report.sqlite", *PLANTED)
    code, written = show(capfd, "analyze", str(path))
    assert code == 3
    assert KERNELS in written
    assert SECRET not in written
    content = export(tmp_path / "whole.sqlite", *TRAINING[0], *PLANTED, *[told(SECRET)] * 500).read_bytes()
    path.write_bytes(content[: len(content) // 2])
    code, written = show(capfd, "analyze", str(path))
    assert code == 3
    assert "damaged" in written
    assert SECRET not in written


def test_no_timeline_holds_it(report):
    """What a worker sends to the process that writes the report."""
    (timeline,) = read_ranks(report, Options())
    assert len(timeline.actions) == 8
    assert "lost-events" in {finding.code for finding in timeline.findings}
    assert SECRET.encode() not in pickle.dumps(timeline)


def test_a_name_would_show(tmp_path):
    """The check sees what is there: names of ranges are what a trace is for."""
    rows = [row for step in TRAINING for row in step]
    path = export(tmp_path / "report.sqlite", *rows, variable("Hostname", SECRET))
    (timeline,) = read_ranks(path, Options())
    assert SECRET.encode() in pickle.dumps(timeline)
