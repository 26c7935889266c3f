"""Timelines of which ranks are missing: the interval holds the truth, and no size is taken from a number."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.emit import Job, truth
from bubblescope.engine import analyze
from tests.timelines import as_chrome, as_csv, as_dumps, rows_of

NAMED_BY_RANK = ("rank", "step", "kind", "microbatch", "start_ns", "end_ns")
FORMS = ("dumps", "dumps with settings", "table", "table of ranks", "list")
SCHEDULES = ("1f1b", "gpipe", "interleaved-1f1b", "zb-h1", "zb-v")
EPS = 1e-9


def written(folder, job, kept, form):
    """The rows of some positions of a job, in a form."""
    rows = [row for row in rows_of(job) if row["pp"] in kept]
    if form.startswith("dumps"):
        as_dumps(folder, rows)
        if form != "dumps":
            settings_of(folder, job)
    elif form == "list":
        as_chrome(folder / "list.json", rows)
    elif form == "table":
        as_csv(folder / "table.csv", rows)
    else:
        as_csv(folder / "table.csv", [{key: row[key] for key in NAMED_BY_RANK} for row in rows])
    return folder


def settings_of(folder, job):
    """What Primus writes beside its dumps."""
    sizes = {"world_size": job.world, "pp_size": job.p, "vp_size": job.v, "num_mbs": job.m, "train_iters": job.steps}
    (folder / "config.json").write_text(json.dumps(sizes))


@st.composite
def parts(draw):
    """A job, the positions that were recorded, and the form in which they were."""
    form = draw(st.sampled_from(FORMS))
    names = [name for name in SCHEDULES if not (form.startswith("dumps") and name.startswith("zb"))]
    schedule, p = draw(st.sampled_from(names)), draw(st.sampled_from((2, 3, 4)))
    v = 2 if schedule in {"interleaved-1f1b", "zb-v"} else 1
    job = Job(
        schedule=schedule,
        p=p,
        v=v,
        m=p * draw(st.sampled_from((1, 2)))
        if v == 2
        else draw(st.sampled_from((4, 7) if schedule == "gpipe" else (2, 4, 7))),
        forward_ns=1_000_000,
        backward_ns=draw(st.sampled_from((1_000_000, 2_000_000, 2_500_000))),
        scale=tuple(draw(st.sampled_from((1, 1.03, 0.98))) for _ in range(p)),
        jitter=draw(st.sampled_from((0, 0.02))),
        p2p_ns=draw(st.sampled_from((0, 50_000))),
        steps=3,
    )
    kept = draw(st.sets(st.sampled_from(range(p)), min_size=1, max_size=p))
    return job, kept, form


@settings(max_examples=25)
@given(parts())
def test_whatever_is_missing_the_truth_is_inside(part):
    """And where nothing is missing, the bubble is measured."""
    job, kept, form = part
    true = truth(job).bubble
    with TemporaryDirectory() as folder:
        report = analyze([written(Path(folder), job, kept, form)]).report
    assert report.schedule.name != "none"
    if len(kept) == job.p:
        assert report.bubble.measured == pytest.approx(true, abs=0.006)
        assert report.layout.pp == job.p
    else:
        assert report.bubble.measured is None
        assert report.bubble.lower - EPS <= true <= report.bubble.upper + EPS
        assert report.quality.verdict != "ok"
        if job.v == 1:  # two chunks of one rank alone lie apart on a ring of three as on a fold of two
            assert report.layout.pp in {None, job.p}


@st.composite
def odd_ends(draw):
    """A job whose last rank is lighter or heavier than the others, some of its positions, and a form without sizes.

    Two chunks with a micro-batch a rank, before a light stage, are to the nanosecond what gpipe does on fewer ranks.
    """
    schedule, p = draw(st.sampled_from(("1f1b", "gpipe", "interleaved-1f1b"))), draw(st.sampled_from((2, 3, 4)))
    v = 2 if schedule == "interleaved-1f1b" else 1
    job = Job(
        schedule=schedule,
        p=p,
        v=v,
        m=p * draw(st.sampled_from((2, 3))) if v == 2 else draw(st.sampled_from((1, 2, 3, 4, 8))),
        forward_ns=1_000_000,
        backward_ns=draw(st.sampled_from((1_000_000, 2_000_000))),
        scale=(*[1.0] * (p - 1), draw(st.sampled_from((0.1, 0.2, 0.3, 0.45, 1, 2)))),
        steps=3,
    )
    kept = draw(st.sets(st.sampled_from(range(p)), min_size=1, max_size=p - 1))
    return job, kept, draw(st.sampled_from(("dumps", "table", "table of ranks")))


@settings(max_examples=25)
@given(odd_ends())
def test_a_light_or_heavy_last_stage_may_be_missing(part):
    """Nobody takes the one before a light stage for the last, and the interval leaves open what the last works."""
    job, kept, form = part
    with TemporaryDirectory() as folder:
        report = analyze([written(Path(folder), job, kept, form)]).report
    assert report.quality.verdict != "ok"
    if report.bubble.lower is not None:
        assert report.bubble.lower - EPS <= truth(job).bubble <= report.bubble.upper + EPS


@pytest.mark.parametrize(("p", "m", "n"), [(4, 12, 2), (4, 12, 3), (3, 6, 2), (4, 4, 3)])
def test_orders_that_are_those_of_more_ranks_tell_no_number(tmp_path, p, m, n):
    """Two chunks on four ranks look like three or five on fewer."""
    job = Job(schedule="interleaved-1f1b", p=p, v=2, m=m, forward_ns=1_000_000, backward_ns=2_000_000, steps=2)
    report = analyze([written(tmp_path, job, set(range(n)), "dumps")]).report
    assert (report.layout.pp, report.bubble.measured, report.schedule.name) == (None, None, "unknown")
    whole = tmp_path / "whole"
    whole.mkdir()
    assert analyze([written(whole, job, set(range(p)), "dumps")]).report.layout.pp == p


PLAIN = Job(p=4, m=8, forward_ns=1_000_000, backward_ns=2_000_000, steps=3)


@pytest.mark.parametrize("kept", [{1}, {0}, {0, 1}, {0, 1, 2}, {1, 2}])
def test_numbers_in_names_of_files_are_no_size(tmp_path, kept):
    """Of ranks that are not the last nobody knows how many follow."""
    report = analyze([written(tmp_path, PLAIN, kept, "dumps")]).report
    assert (report.layout.pp, report.layout.world_size, report.schedule.name) == (None, None, "unknown")
    assert report.bubble.measured is None
    assert report.bubble.lower <= truth(PLAIN).bubble <= report.bubble.upper
    assert (report.bubble.upper == 1.0) == (kept not in ({0, 1}, {0, 1, 2}))  # a first rank sees the whole window
    assert report.layout.missing_ranks == tuple(rank for rank in range(max(kept)) if rank not in kept)
    assert (report.throughput is None) == (report.bubble.upper == 1.0)  # a step may be longer than a rank's own
    (warning,) = (finding for finding in report.quality.findings if finding.code == "layout-assumed")
    assert "nothing tells how many ranks the pipeline has" in warning.message


@pytest.mark.parametrize("kept", [{3}, {1, 3}, {0, 3}])
def test_the_last_rank_tells_how_many_there_are(tmp_path, kept):
    """It shows that none follows it."""
    report = analyze([written(tmp_path, PLAIN, kept, "dumps")]).report
    assert (report.layout.pp, report.layout.world_size, report.schedule.name) == (4, 4, "1f1b")
    assert report.bubble.lower <= truth(PLAIN).bubble <= report.bubble.upper


@pytest.mark.parametrize("kept", [{0}, {1}, {2, 3}])
def test_settings_tell_how_many_there_are(tmp_path, kept):
    """The schedule is compared for that many, and a first rank bounds the window."""
    report = analyze([written(tmp_path, PLAIN, kept, "dumps with settings")]).report
    assert (report.layout.pp, report.layout.virtual, report.schedule.name) == (4, 1, "1f1b")
    assert (report.bubble.upper == 1.0) == (0 not in kept)
    assert report.bubble.lower <= truth(PLAIN).bubble <= report.bubble.upper


def test_chunks_that_the_settings_deny_are_not_looked_for(tmp_path):
    """The order of rank 1 of four is that of an interleaved schedule on two, too."""
    report = analyze([written(tmp_path, PLAIN, {1}, "dumps with settings")]).report
    assert "untold-chunks" not in {finding.code for finding in report.quality.findings}
    assert report.schedule.microbatches == 8


@pytest.mark.parametrize(("form", "times"), [("table", 1), ("table", 3), ("list", 1)])
def test_what_follows_the_last_action_tells_how_long_a_step_is(tmp_path, form, times):
    """The next step does; a single one may be of any length."""
    job = Job(p=4, m=8, forward_ns=1_000_000, backward_ns=2_000_000, steps=times)
    report = analyze([written(tmp_path, job, {1, 2, 3}, form)]).report
    assert (report.bubble.upper == 1.0) == (times == 1)
    assert report.bubble.lower <= truth(job).bubble <= report.bubble.upper


def test_one_rank_that_runs_each_micro_batch_to_its_end_is_no_pipeline(tmp_path):
    """Gradients are accumulated there."""
    job = Job(p=1, m=4, forward_ns=1_000_000, backward_ns=2_000_000, steps=2)
    report = analyze([written(tmp_path, job, {0}, "table of ranks")]).report
    assert (report.schedule.name, report.quality.verdict) == ("none", "ok")
