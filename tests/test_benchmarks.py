"""What the benchmarks measure with is what a profiler would leave of such a job."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.exports import COLUMNS, write_export
from benchmarks.traces import write_job
from bubblescope import analyze
from bubblescope.emit import truth
from bubblescope.ingest.chrome import read
from bubblescope.ingest.sqlite import connect

RECORDED = Path(__file__).parents[2] / "shared" / "traces" / "real" / "nsys" / "mfu_2gpu_before.sqlite"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A small export, and the job that it is of."""
    path = tmp_path_factory.mktemp("exports") / "job.sqlite"
    return path, write_export(path, 5_000)


def asked(path, query) -> list:
    """What a database answers."""
    with closing(connect(path)) as database:
        return database.execute(query).fetchall()


def test_sizes(written):
    """Two calls belong to a kernel, and about one range of NVTX to two."""
    kernels, calls, ranges = (
        asked(written[0], f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608 - names from the next lines
        for table in ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
    )
    assert 4_500 < kernels < 5_500
    assert calls == 2 * kernels
    assert 0.5 * kernels < ranges < kernels  # labels and messages count for much where there are few kernels


def test_every_kernel_has_its_launch(written):
    """The call that has its number in its process ends before the kernel starts, and no other call has the number."""
    query = """
        SELECT count(*), sum(call.end < kernel.start), count(DISTINCT kernel.globalPid || ' ' || kernel.correlationId)
        FROM CUPTI_ACTIVITY_KIND_KERNEL AS kernel JOIN CUPTI_ACTIVITY_KIND_RUNTIME AS call
        ON call.correlationId = kernel.correlationId AND (call.globalTid & ~16777215) = kernel.globalPid
    """
    ((kernels,),) = asked(written[0], "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    assert asked(written[0], query) == [(kernels, kernels, kernels)]


def test_hardly_two_texts_are_alike(written):
    """An op_id stands once in a process, as emit_nvtx counts them."""
    query = """
        SELECT count(*), count(DISTINCT (globalTid & ~16777215) || substr(text, instr(text, 'op_id')))
        FROM NVTX_EVENTS WHERE text IS NOT NULL
    """
    ((texts, different),) = asked(written[0], query)
    assert texts == different > 2_000


def test_ranges_of_a_thread_nest(written):
    """Pushes and pops of a thread come in pairs: no range ends between the ends of another."""
    rows = asked(
        written[0], "SELECT globalTid, start, end FROM NVTX_EVENTS WHERE eventType = 59 ORDER BY 1, start, end DESC"
    )
    stacks: dict[int, list[int]] = {}
    for thread, start, end in rows:
        stack = stacks.setdefault(thread, [])
        while stack and stack[-1] <= start:
            stack.pop()
        assert not stack or end <= stack[-1]
        stack.append(end)


def test_the_analysis_finds_the_job(written):
    """The export holds the schedule that it was made by, and its bubble."""
    path, job = written
    report = analyze(path).report
    assert (report.schedule.name, report.layout.pp, report.schedule.microbatches) == ("1f1b", job.p, job.m)
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=0.01)


@pytest.mark.skipif(not RECORDED.exists(), reason="no recorded exports in ../shared/traces beside the repository")
@pytest.mark.parametrize("table", COLUMNS)
def test_columns_are_those_of_nsys(written, table):
    """Tables have the columns and types of an export that Nsight Systems wrote."""
    query = f"SELECT name, type, [notnull], pk FROM pragma_table_info('{table}')"  # noqa: S608 - our own names
    assert asked(written[0], query) == asked(RECORDED, query)


@pytest.mark.parametrize("printed", [False, True])
def test_traces_of_a_size(tmp_path, printed):
    """About as large as asked for, of a job that the analysis knows again; its events are counted."""
    made = write_job(tmp_path, 3, printed=printed)
    paths = sorted(tmp_path.iterdir())
    assert all(2e6 < path.stat().st_size < 4e6 for path in paths)
    traces = [read(path) for path in paths]
    blocks = [len(block) for t in traces for block in (t.ops, t.annotations, t.launches, t.kernels)]
    assert made == (sum(trace.source.events for trace in traces), sum(blocks))
    assert not [finding for trace in traces for finding in trace.findings]
    report = analyze([tmp_path]).report
    assert (report.schedule.name, report.layout.pp, report.schedule.microbatches) == ("1f1b", 4, 8)
