"""Where files go: whole or not there, nothing replaced unasked, the same bytes for the same job."""

from __future__ import annotations

import gzip
import json
import re
import stat
from dataclasses import replace

import pytest

from bubblescope.emit import TRUTH_FILE, Job, truth, write
from bubblescope.errors import UsageError
from tests.emit.jobs import JOBS

SMALL = Job(p=2, m=2)
HOSTS = Job(p=2, m=4, d=2, jitter=0.1, recorder="nsys", one_file_a_host=True, ranks_a_host=2, payloads="blobs")


def test_neutral_names_tell_no_rank(tmp_path):
    """Neither the file's name nor its traceName."""
    job = Job(p=2, m=2, neutral_names=True)
    paths = write(job, tmp_path)
    assert all(re.fullmatch(r"trace_[0-9a-f]{12}\.json\.gz", p.name) for p in paths)
    assert len(set(paths)) == 2


@pytest.mark.parametrize(
    "job", [Job(p=2, m=4, t=2, jitter=0.1, seed=1), JOBS["dualpipe"], JOBS["cpu dualpipe-v"], HOSTS]
)
def test_same_job_same_bytes(tmp_path, job):
    """And another seed, other times."""
    other = Job(**{field: getattr(job, field) for field in job.__dataclass_fields__} | {"seed": 9})
    one, two, three = (
        [p.read_bytes() for p in write(each, tmp_path / str(i), with_truth=True)]
        for i, each in enumerate((job, job, other))
    )
    assert one == two
    assert all(a != b for a, b in zip(one, three, strict=True))


def test_exports_are_a_rank_or_a_host_each(tmp_path):
    """And missing ranks are in none."""
    job = replace(HOSTS, ranks_a_host=3, missing=(3,))
    assert [path.name for path in write(job, tmp_path)] == ["node0_report.sqlite"]
    single = replace(job, one_file_a_host=False)
    assert [path.name for path in write(single, tmp_path)] == [f"rank{rank}_report.sqlite" for rank in range(3)]
    neutral = write(replace(HOSTS, neutral_names=True), tmp_path)
    assert all(re.fullmatch(r"report_[0-9a-f]{12}\.sqlite", path.name) for path in neutral)
    assert len(set(neutral)) == 2


def test_a_job_may_be_recorded_by_both(tmp_path):
    """Each rank's file is the one it would be if all were recorded alike."""
    jobs = [Job(p=3, m=2, recorder=recorder) for recorder in ("kineto", "nsys", ("kineto", "nsys", "kineto"))]
    traces, exports, mixed = ([p.read_bytes() for p in write(job, tmp_path / str(i))] for i, job in enumerate(jobs))
    assert mixed == [traces[0], exports[1], traces[2]]


def test_kineto_knows_nothing_of_exports(tmp_path):
    """What only exports have changes no trace."""
    plain, told = (
        [path.read_bytes() for path in write(job, tmp_path / str(i))]
        for i, job in enumerate((SMALL, replace(SMALL, payloads="json", one_file_a_host=True)))
    )
    assert plain == told
    assert not any(b"ncclSend" in gzip.decompress(data) for data in plain)


def test_the_folder_is_made(tmp_path):
    """With those above it, and it holds what was written and no more."""
    folder = tmp_path / "some" / "where"
    paths = write(SMALL, folder, with_truth=True)
    assert [path.name for path in paths] == ["rank0_trace.json.gz", "rank1_trace.json.gz", TRUTH_FILE]
    assert sorted(folder.iterdir()) == paths
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600 for path in paths)


@pytest.mark.parametrize("taken", ["rank1_trace.json.gz", TRUTH_FILE])
def test_nothing_is_replaced_unasked(tmp_path, taken):
    """One file in the way is enough, and then none is written."""
    (tmp_path / taken).write_text("mine")
    with pytest.raises(UsageError, match=rf"{taken} exists already"):
        write(SMALL, tmp_path, with_truth=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    assert len(write(SMALL, tmp_path, overwrite=True, with_truth=True)) == 3
    assert (tmp_path / taken).read_bytes() != b"mine"


def test_several_files_in_the_way_are_counted(tmp_path):
    """The first is named."""
    write(SMALL, tmp_path)
    with pytest.raises(UsageError, match=r"rank0_trace\.json\.gz and 1 more files exist already"):
        write(SMALL, tmp_path)


def test_a_link_is_replaced_not_followed(tmp_path):
    """Nothing outside the folder is touched."""
    outside, folder = tmp_path / "precious", tmp_path / "traces"
    outside.write_text("mine")
    folder.mkdir()
    (folder / "rank0_trace.json.gz").symlink_to(outside)
    with pytest.raises(UsageError, match="exists already"):
        write(SMALL, folder)
    write(SMALL, folder, overwrite=True)
    assert outside.read_text() == "mine"
    assert not (folder / "rank0_trace.json.gz").is_symlink()


def test_a_file_is_no_folder(tmp_path):
    """A name that is taken is told."""
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(UsageError, match=r"cannot write .*taken"):
        write(SMALL, tmp_path / "taken")


def test_a_job_that_cannot_run_leaves_nothing(tmp_path):
    """Not even the folder."""
    with pytest.raises(UsageError, match="too short"):
        write(Job(forward_ns=10), tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_no_half_file_is_left(tmp_path, monkeypatch):
    """Where writing fails nothing stays under the final name, nor under another."""
    monkeypatch.setattr(
        "pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(UsageError, match="No space left on device"):
        write(SMALL, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_truth_beside_the_traces(tmp_path):
    """Shape, orders, the bubble, and every rank's time, which adds up to the window."""
    job = JOBS["tp and dp"]
    known = json.loads(write(job, tmp_path, with_truth=True)[-1].read_bytes())
    assert (known["schedule"], known["p"], known["m"], known["dp"], known["tp"]) == ("1f1b", 2, 4, 2, 2)
    assert known["bubble"] == truth(job).bubble
    assert known["orders"][1] == "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3"
    for pipeline in (pipeline for step in known["steps"] for pipeline in step["pipelines"]):
        for rank in pipeline["ranks"]:
            assert sum(ns for part, ns in rank.items() if part != "rank") == pipeline["window_ns"]
