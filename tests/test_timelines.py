"""Instrumented timelines, from the file to the report: of jobs whose truth is known, and of real runs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblescope.emit import Job, truth
from bubblescope.engine import analyze
from bubblescope.model.options import Options
from bubblescope.model.report import Report
from tests.timelines import as_chrome, as_csv, as_dumps, as_parquet, rows_of

EXACT = 1e-9
SHAPES = (
    {"schedule": "1f1b", "p": 4, "m": 8},
    {"schedule": "1f1b", "p": 2, "m": 4, "d": 2},
    {"schedule": "gpipe", "p": 3, "m": 4},
    {"schedule": "interleaved-1f1b", "p": 4, "m": 8, "v": 2},
    {"schedule": "looped-bfs", "p": 2, "m": 4, "v": 3},
    {"schedule": "zb-h1", "p": 4, "m": 8},
    {"schedule": "zb-v", "p": 3, "m": 6, "v": 2},
    {"schedule": "dualpipe-v", "p": 2, "m": 6, "v": 2},
    {"schedule": "seq1f1b", "p": 3, "m": 4, "slices": 2},
)
PLAIN = ("rank", "step", "stage", "kind", "microbatch", "slice", "start_ns", "end_ns")


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Jobs of all sorts of schedules, with uneven actions and one to three steps."""
    shape = draw(st.sampled_from(SHAPES))
    return Job(
        **shape,
        steps=draw(st.integers(1, 3)),
        jitter=draw(st.sampled_from((0, 0.05))),
        p2p_ns=draw(st.sampled_from((0, 200_000))),
        host_gap_ns=draw(st.sampled_from((0, 300_000))),
        seed=draw(st.integers(0, 2**16)),
    )


def only(rows, *names):
    """The rows with some of their columns."""
    return [{name: row[name] for name in names} for row in rows]


def read(write, rows, name) -> Report:
    """The report of rows in one file of some format."""
    with TemporaryDirectory() as folder:
        return analyze(write(Path(folder) / name, rows)).report


def told_right(job: Job, report: Report) -> None:
    """Shape, order and bubble are those of the truth, and nothing is warned of."""
    assert job.schedule in (report.schedule.name, *report.schedule.also)
    assert (report.layout.pp, report.layout.dp, report.layout.virtual) == (job.p, job.d, job.v)
    assert report.schedule.microbatches == job.m
    assert report.schedule.reconstruction == "table"
    assert not report.schedule.departures
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=EXACT)
    assert [f for f in report.quality.findings if f.severity != "info"] == []


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs(), st.randoms(use_true_random=False))
def test_a_table_gives_the_truth(job, luck):
    """Schedule, layout and bubble come back exactly, whatever order the rows stand in."""
    rows = only(rows_of(job), *PLAIN)
    luck.shuffle(rows)
    report = read(as_csv, rows, "log.csv")
    told_right(job, report)
    assert {each.format for each in report.inputs} == {"table"}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs())
def test_every_format_gives_the_same(job):
    """Text, Parquet and a Chrome list differ in nothing but their names."""
    rows = only(rows_of(job), *PLAIN)
    table = read(as_csv, rows, "log")
    for write in (as_parquet, as_chrome):
        other = read(write, rows, "log")
        told_right(job, other)
        assert (other.bubble, other.stages, other.ranks) == (table.bubble, table.stages, table.ranks)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape["schedule"])
def test_steps_need_no_numbers(shape):
    """Where actions are named, their names tell where a step begins."""
    job = Job(**shape, steps=3, jitter=0.05)
    told_right(job, read(as_csv, only(rows_of(job), *(name for name in PLAIN if name != "step")), "log"))


@pytest.mark.parametrize("shape", SHAPES[:3], ids=lambda shape: shape["schedule"])
def test_micro_batches_need_no_numbers(shape):
    """Where a stage runs its micro-batches in order, counting tells them; a word says so."""
    job = Job(**shape, steps=3, jitter=0.05)
    report = read(as_csv, only(rows_of(job), "rank", "stage", "step", "kind", "start_ns", "end_ns"), "log")
    told_right(job, report)
    assert "counted-microbatches" in {f.code for f in report.quality.findings}


def test_each_step_may_begin_at_zero():
    """Times that count from the step's own start give the same."""
    job = Job(schedule="1f1b", p=4, m=8, d=2, steps=3, jitter=0.05)
    begun = {step.number: step.start for step in truth(job).steps}
    rows = [
        row | {name: row[name] - begun[row["step"]] for name in ("start_ns", "end_ns")}
        for row in only(rows_of(job), *PLAIN)
    ]
    told_right(job, read(as_csv, rows, "log"))


def test_replicas_and_stages_stand_for_ranks():
    """Without a column of ranks, replica and stage tell them."""
    job = Job(schedule="1f1b", p=4, m=8, d=2, jitter=0.05)
    names = ("replica", "stage", "step", "kind", "microbatch", "start_ns", "end_ns")
    report = read(as_csv, only(rows_of(job), *names), "log")
    told_right(job, report)
    assert [pipeline.ranks for pipeline in report.pipelines] == [(0, 2, 4, 6), (1, 3, 5, 7)]


def test_a_file_a_rank():
    """Each with a clock of its own: causes and effects put them together, to within the error that is stated."""
    job = Job(schedule="1f1b", p=4, m=8, steps=3, jitter=0.05)
    late = {rank: 3_000_000 * rank for rank in range(4)}
    rows = [
        row | {name: row[name] + late[row["rank"]] for name in ("start_ns", "end_ns")}
        for row in only(rows_of(job), *PLAIN)
    ]
    with TemporaryDirectory() as folder:
        for rank in range(4):
            as_csv(Path(folder) / f"{rank}.csv", [row for row in rows if row["rank"] == rank], delimiter=";")
        report = analyze(folder).report
    told_right(job, report)
    assert report.clock.method == "p2p"
    assert report.clock.violations == 0
    for rank, offset in report.clock.offsets_ns.items():
        assert abs(offset + late[int(rank)]) <= report.clock.error_ns


def test_replicas_without_a_common_clock():
    """Each pipeline is tied together by its own causes and effects, and explained; only replicas cannot be compared."""
    job = Job(schedule="1f1b", p=4, m=8, d=2, steps=3, jitter=0.05, scale=(1, 1, 1, 1.4))
    rows = only(rows_of(job), "replica", *PLAIN)
    with TemporaryDirectory() as folder:
        for rank in range(8):
            as_csv(Path(folder) / f"{rank}.csv", [row for row in rows if row["rank"] == rank])
        apart = analyze(folder).report
    one = read(as_csv, rows, "log")
    assert apart.bubble.measured == pytest.approx(one.bubble.measured, abs=EXACT)
    assert [c.points for c in apart.bubble.causes] == pytest.approx([c.points for c in one.bubble.causes], abs=1e-3)
    assert apart.bubble.trusted
    (finding,) = [f for f in apart.quality.findings if f.severity != "info"]
    assert "ranks of different pipelines cannot be compared" in finding.message


def test_replicas_in_any_order_of_ranks():
    """Columns tell who is whose replica, not the numbers of the ranks; in one file, and in a file a rank."""
    job = Job(schedule="1f1b", p=4, m=8, d=2, steps=3, jitter=0.05)
    rows = [row | {"rank": (3 * row["rank"] + 5) % 8} for row in only(rows_of(job), "replica", *PLAIN)]
    together = read(as_csv, rows, "log")
    told_right(job, together)
    with TemporaryDirectory() as folder:
        for rank in range(8):
            as_csv(Path(folder) / f"{rank}.csv", [row for row in rows if row["rank"] == rank])
        apart = analyze(folder).report
    assert together.pipelines == apart.pipelines


@pytest.mark.parametrize(
    "shape",
    [
        {"schedule": "1f1b", "p": 4, "m": 8},
        {"schedule": "gpipe", "p": 4, "m": 8},
        {"schedule": "interleaved-1f1b", "p": 8, "m": 16, "v": 2},
    ],
    ids=lambda shape: f"{shape['schedule']} {shape.get('v', 1)}",
)
def test_dumps_without_any_ids(shape, tmp_path):
    """The order of forwards and backwards tells the chunks; each rank begins each step at its own zero."""
    job = Job(**shape, steps=4, jitter=0.05, p2p_ns=200_000)
    report = analyze(as_dumps(tmp_path, rows_of(job))).report
    told_right(job, report)
    assert {each.format for each in report.inputs} == {"timeline"}
    assert set(report.clock.drift_ppm.values()) == {0.0}


def test_dumps_that_may_be_the_first_of_more(tmp_path):
    """Four ranks of three chunks order their actions like the first of five of two: the size has to be stated."""
    job = Job(schedule="interleaved-1f1b", p=4, m=8, v=3, steps=4, jitter=0.05, p2p_ns=200_000)
    dumps = as_dumps(tmp_path, rows_of(job))
    told_right(job, analyze(dumps, Options(pp=4)).report)
    alone = analyze(dumps).report
    assert (alone.schedule.name, alone.quality.verdict, alone.bubble.measured) == ("unknown", "degraded", None)


def test_contradictions_of_clocks_are_counted(tmp_path):
    """A step in which a rank's clock is 1 ms off contradicts the others, and that is said, not hidden.

    Of the last stage's forwards all but the second begin as soon as their input is there.
    """
    rows = rows_of(Job(schedule="1f1b", p=2, m=8, steps=4))
    wrong = [
        row | {name: row[name] - 1_000_000 for name in ("start_ns", "end_ns")}
        if (row["rank"], row["step"]) == (1, 2)
        else row
        for row in only(rows, *PLAIN)
    ]
    for rank in range(2):
        as_csv(tmp_path / f"{rank}.csv", [row for row in wrong if row["rank"] == rank])
    assert analyze(tmp_path).report.clock.violations == 7


def test_the_table_of_the_documentation(tmp_path):
    """What docs/timelines.md shows can be copied and run, and is what is said of it."""
    page = (Path(__file__).parent.parent / "docs" / "timelines.md").read_text("utf-8")
    (tmp_path / "log.csv").write_text(page.split("```text\n")[1].split("```")[0])
    report = analyze(tmp_path / "log.csv").report
    assert (report.schedule.name, report.layout.pp, report.schedule.microbatches) == ("1f1b", 2, 2)
    assert report.bubble.measured == pytest.approx(1 / 3)
    assert report.quality.findings == ()


def test_real_tables_and_lists_agree(shared):
    """StragglerAnalysis wrote one run twice: the table and the Chrome list give the same analysis."""
    pytest.importorskip("pyarrow")
    table, told = (
        analyze(shared / "real/bytedance_st" / name, Options(attribution="shapley")).report
        for name in ("trace-ST.parquet", "timeline-ST.json.gz")
    )
    # The list has its receives from when bytes moved, the table from when they were posted.
    for one, other in zip(table.bubble.causes, told.bubble.causes, strict=True):
        assert one.points == pytest.approx(other.points, abs=1e-4)
    assert (table.inputs[0].format, told.inputs[0].format) == ("table", "timeline")
    assert table.schedule == told.schedule
    assert [p.ranks for p in table.pipelines] == [p.ranks for p in told.pipelines] == [(0, 2, 4, 6), (1, 3, 5, 7)]
    assert table.bubble.measured == pytest.approx(told.bubble.measured, abs=1e-7)
    assert table.bubble.replay == pytest.approx(told.bubble.replay, abs=1e-7)
    for one, other in zip(table.ranks, told.ranks, strict=True):
        assert one.compute_ns == pytest.approx(other.compute_ns, abs=100)
        assert one.pp_transfer_ns == pytest.approx(other.pp_transfer_ns, abs=2000)


def test_an_ideal_timeline(shared):
    """What StragglerAnalysis made up without stragglers is the textbook's bubble, but for the messages."""
    report = analyze(shared / "real/bytedance_st/ideal-timeline-ST.json.gz").report
    assert report.schedule.name == "1f1b"
    assert report.bubble.formula == pytest.approx(3 / 7)
    assert report.bubble.replay == pytest.approx(3 / 7, abs=1e-6)
    assert 3 / 7 < report.bubble.measured < 3 / 7 + 0.003


def test_real_dumps_violate_causality_and_say_so(shared):
    """The clocks of Primus' ranks begin anew with each step, and not quite together."""
    report = analyze(shared / "real/primus_pp8").report
    assert (report.schedule.name, report.layout.pp, report.schedule.microbatches) == ("1f1b", 8, 16)
    assert report.clock.violations > 0
    assert report.bubble.measured == pytest.approx(0.355, abs=0.001)


@pytest.mark.parametrize("split", ["replica", "pp", "rank"])
@pytest.mark.parametrize("place", ["pp", "stage"])
def test_files_that_tell_places_only(tmp_path, split, place):
    """A file a replica, a stage or a rank, none of which names a rank: they are numbered over the whole job."""
    job = Job(p=4, m=4, d=3, steps=3, jitter=0.05, ranks_a_host=99)
    rows = rows_of(job)
    names = [place, "replica", "stage", "step", "kind", "microbatch", "start_ns", "end_ns"]
    for number in {row[split] for row in rows}:
        as_csv(
            tmp_path / f"{9 - number}.csv", only([row for row in rows if row[split] == number], *dict.fromkeys(names))
        )
    report = analyze(tmp_path).report
    assert [line.ranks for line in report.pipelines] == [(0, 3, 6, 9), (1, 4, 7, 10), (2, 5, 8, 11)]
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=EXACT)
