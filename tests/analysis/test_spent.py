"""The rows of ranks, their means, and the longest gaps."""

from __future__ import annotations

import dataclasses

import pytest

from bubblescope.analysis.lanes import lanes_of
from bubblescope.model.spans import Spans
from tests.analysis.jobs import RANK_0, RANK_1, again, call, job, one_f_one_b, rank, report, steps


def alone(*ranks):
    """A job without a pipeline."""
    of = job(*ranks)
    return dataclasses.replace(of, plan=dataclasses.replace(of.plan, pp=1, pipelines=()), placement={})


def parts(row):
    """The parts of a row that are not 0."""
    names = ("compute", "in_stage_comm", "dp", "pp", "host", "other")
    return {name: getattr(row, f"{name}_ns") for name in names if getattr(row, f"{name}_ns")}


def test_a_row_of_the_usual_job():
    """Rank 0: 60 of work, 20 from 20 to 40 and 10 from 60 to 70 until its input was made, 10 of the step after."""
    row = report(one_f_one_b()).ranks[0]
    assert (row.rank, row.stages, row.pipeline, row.window_ns) == (0, (0,), 0, 90)
    assert parts(row) == {"compute": 60, "pp": 30}
    assert row.bubble == pytest.approx(1 / 3)
    assert dataclasses.astuple(row.outside) == (0, 0, 10, 0)


def test_a_row_is_the_mean_over_used_steps_and_still_adds_up():
    """Windows of 90 and 91 have means that round; the parts are rounded, and the window is their sum."""
    late = [*RANK_0[:3], ("0B1", 70, 91)]
    zero = again(RANK_0, 1) + [(n, s + 100, e + 100, 1) for n, s, e in late]
    of = job(rank(0, zero, steps=steps(2)), rank(1, again(RANK_1, 2), steps=steps(2)))
    for row in report(of).ranks:
        assert row.window_ns == sum(parts(row).values())
        assert row.window_ns in {90, 91}


def test_a_ranks_bubble_is_that_of_its_parts():
    """In-stage collectives are useful, holes are not."""
    one = rank(1, RANK_1, work=[(n, s + 2, e) for n, s, e in RANK_1], calls=[call("tp", 10, 11, "1F0")])
    row = report(job(rank(0, RANK_0), one)).ranks[1]
    assert (row.compute_ns, row.in_stage_comm_ns) == (52, 1)
    assert row.bubble == pytest.approx(1 - 53 / 90)


def test_without_a_pipeline_the_window_is_the_step():
    """All compute counts, the optimizer's too; pp is 0, and the rest is communication or the host."""
    one = rank(
        0,
        stray=[(0, 30)],
        optimizer=[(50, 60)],
        calls=[call("dp", 25, 40), call("tp", 40, 44), call("", 44, 47)],
        messages=[("send ? 0F0", 47, 49)],
        copies=[(20, 28), (60, 66)],
        steps=[(0, 0, 70)],
    )
    row = report(alone(one)).ranks[0]
    assert parts(row) == {"compute": 40, "dp": 10, "in_stage_comm": 4, "other": 3 + 2 + 6, "host": 1 + 4}
    assert (row.window_ns, row.pp_transfer_ns, row.pp_wait_ns, row.bubble) == (70, 0, 0, None)
    assert (row.pipeline, row.stages) == (None, ())
    assert dataclasses.astuple(row.outside) == (0, 0, 0, 0)


def test_in_a_pipeline_without_actions_messages_are_pp():
    """Nothing tells what of them is waiting, so only the sum is known."""
    one = rank(0, stray=[(0, 10)], messages=[("send 1", 10, 16)], steps=[(0, 0, 20)])
    row = report(job(one, rank(1, stray=[(0, 10)]))).ranks[0]
    assert parts(row) == {"compute": 10, "pp": 6, "host": 4}
    assert (row.window_ns, row.pp_transfer_ns, row.pp_wait_ns, row.bubble) == (20, None, None, None)


def test_outside_holds_what_follows_the_pipeline():
    """The optimizer, exposed gradients, and the host until the step ends."""
    zero = rank(0, RANK_0, calls=[call("dp", 88, 94)], optimizer=[(94, 97)], steps=[(0, 0, 100)])
    row = report(job(zero, rank(1, RANK_1))).ranks[0]
    assert dataclasses.asdict(row.outside) == {"dp_ns": 4, "optimizer_ns": 3, "host_ns": 3, "other_ns": 0}


def test_the_longest_gaps_come_longest_first():
    """Of all ranks and steps five are named, by the action that ends them and the phase they begin in."""
    found = report(one_f_one_b(times=3)).worst_bubbles
    assert [(b.rank, b.stage, b.step, b.start_ns, b.duration_ns, b.before, b.phase) for b in found] == [
        (0, 0, 1, 120, 20, "0B0", "warmup"),
        (0, 0, 2, 220, 20, "0B0", "warmup"),
        (0, 0, 1, 160, 10, "0B1", "cooldown"),
        (0, 0, 2, 260, 10, "0B1", "cooldown"),
    ]


def test_gaps_are_counted_from_the_first_moment_of_the_job():
    """As steps are."""
    of = job(*(rank(r, [(n, s + 1000, e + 1000) for n, s, e in rows], steps=[(0, 1000, 1100)]) for r, rows in pair()))
    found = report(of)
    assert (found.worst_bubbles[0].start_ns, found.steps[0].start_ns, found.steps[0].end_ns) == (20, 0, 100)


def pair():
    """The rows of both ranks of the usual job."""
    return enumerate((RANK_0, RANK_1))


def test_a_job_without_gaps_has_no_worst_one():
    """Gaps of no length are none."""
    assert report(job(rank(0, [("0F0", 0, 10), ("0B0", 10, 20)]), pipelines=[[[0]]])).worst_bubbles == ()


def test_lanes_sort_what_ran_by_its_purpose():
    """Each collective has one purpose; compute knows actions from strays."""
    one = rank(
        0,
        [("0F0", 0, 10)],
        stray=[(12, 14)],
        optimizer=[(20, 25)],
        messages=[("send 1", 30, 31)],
        calls=[call(text, 40 + 10 * i, 45 + 10 * i) for i, text in enumerate(("tp", "cp", "ep", "dp", "pp", "odd"))],
    )

    def spans(found: Spans):
        return list(zip(found.start.tolist(), found.end.tolist(), strict=True))

    lanes = lanes_of(one)
    in_stage, unknown = [(40, 45), (50, 55), (60, 65)], [(80, 85), (90, 95)]
    assert spans(lanes.compute) == [(0, 10), (12, 14)]
    assert spans(lanes.stray) == [(12, 14)]
    assert spans(lanes.optimizer) == [(20, 25)]
    assert spans(lanes.in_stage) == in_stage
    assert spans(lanes.dp) == [(70, 75)]
    assert spans(lanes.unexplained) == unknown
    assert spans(lanes.messages) == [(30, 31)]
    assert spans(lanes.busy) == [(0, 10), (12, 14), (20, 25)]
    assert spans(lanes.elsewhere) == [(12, 14), (20, 25), *in_stage, *unknown]
