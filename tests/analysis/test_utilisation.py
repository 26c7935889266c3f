"""How busy a rank looks and how busy it is: unions within its steps."""

from __future__ import annotations

import dataclasses

import pytest

from bubblescope.model.job import Job
from tests.analysis.jobs import RANK_0, RANK_1, again, call, hidden, job, one_f_one_b, rank, report, steps, without


def shares(of: Job, **options) -> dict:
    """(busy, useful) of each rank."""
    return {row.rank: (row.busy, row.useful) for row in report(of, **options).ranks}


def on_host(of: Job) -> Job:
    """The job, with operators for its work."""
    lines = {r: dataclasses.replace(t, on_gpu=False) for r, t in of.timelines.items()}
    return dataclasses.replace(of, timelines=lines)


def spinning() -> Job:
    """`one_f_one_b` whose receives spin from the end of the action before on; the second rank's sends wait, too."""
    first = [("recv 1 0B0", 20, 40), ("recv 1 0B1", 60, 70)]
    other = [("recv 0 1F0", 0, 10), ("recv 0 1F1", 12, 20), ("send 0 1B1", 70, 75)]
    marks = steps(1)
    return job(rank(0, RANK_0, messages=first, steps=marks), rank(1, RANK_1, messages=other, steps=marks))


def test_a_receive_that_spins_is_busy_and_not_useful():
    """Rank 0 works 60 of 100 and receives for 30; rank 1's second receive lies behind its first action."""
    found = shares(spinning())
    assert found[0] == (pytest.approx(0.9), pytest.approx(0.6))
    assert found[1] == (pytest.approx(0.75), pytest.approx(0.6))


def test_the_job_is_the_mean_of_its_ranks():
    """Of both numbers."""
    found = report(spinning()).throughput
    assert (found.busy, found.useful) == (pytest.approx((0.9 + 0.75) / 2), pytest.approx(0.6))


def test_a_host_tells_nothing_of_a_gpu():
    """Without kernels only what was useful is known."""
    assert shares(on_host(spinning())) == {0: (None, pytest.approx(0.6)), 1: (None, pytest.approx(0.6))}
    assert report(on_host(spinning())).throughput.busy is None


def test_useful_is_what_the_bubble_takes_for_useful():
    """60 of the window of 90, which the bubble is of, are 60 of the step of 100."""
    found = report(one_f_one_b())
    assert found.bubble.measured == pytest.approx(1 - 60 / 90)
    assert found.throughput.useful == pytest.approx(60 / 100)


def test_optimizer_strays_and_collectives_are_busy():
    """Each once, however they overlap: 60 of actions, 90 to 99 by the rest; the stage's own collective is useful."""
    rest = {"optimizer": [(90, 94)], "stray": [(92, 95)], "copies": [(80, 91), (97, 99)]}
    calls = [call("dp", 93, 97), call("", 96, 98), call("tp", 30, 35, "0F1")]
    timeline = rank(
        0,
        [*RANK_0[:1], ("0F1", 10, 35), *RANK_0[2:]],
        work=[("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 40, 60), ("0B1", 70, 90)],
        calls=calls,
        steps=steps(1),
        **rest,
    )
    found = shares(job(timeline, rank(1, RANK_1, steps=steps(1))))
    assert found[0] == (pytest.approx(0.74), pytest.approx(0.65))


def test_kernels_beyond_the_last_mark_make_the_step_longer():
    """Nothing follows it: it lasts as long as its pipeline, 120, of which the rank works 90."""
    rows = [*RANK_0[:3], ("0B1", 70, 120)]
    found = shares(job(rank(0, rows, steps=steps(1)), rank(1, RANK_1, steps=steps(1))))
    assert found[0] == (pytest.approx(0.75), pytest.approx(0.75))


def test_what_lies_between_two_steps_counts_as_neither():
    """Steps of 90 that begin every 200, but for the last, whose next one was not recorded."""
    marks = [(k, 200 * k, 200 * k + 90) for k in range(3)]
    lines = (rank(r, again(rows, 3, 200), steps=marks) for r, rows in enumerate((RANK_0, RANK_1)))
    assert shares(job(*lines))[0] == (pytest.approx(120 / 290), pytest.approx(120 / 290))


def test_a_rank_without_actions_is_busy_and_nobody_knows_how_useful():
    """Rank 1 of the pipeline has kernels that nothing names."""
    silent = rank(1, stray=[(10, 90)], steps=steps(1))
    found = shares(job(rank(0, RANK_0, steps=steps(1)), silent))
    assert found[1] == (pytest.approx(0.8), None)


def test_without_a_pipeline_all_compute_is_useful():
    """The optimizer included, and the collectives of the stage; others are busy only."""
    alone = rank(
        0, stray=[(0, 40)], optimizer=[(40, 50)], calls=[call("tp", 45, 60), call("dp", 60, 90)], steps=steps(1)
    )
    made = job(alone)
    made = dataclasses.replace(made, plan=dataclasses.replace(made.plan, pipelines=()))
    assert shares(made)[0] == (pytest.approx(0.9), pytest.approx(0.6))


def test_ranks_without_a_used_step_have_no_shares():
    """The second rank lacks a forward in each."""
    lines = (RANK_0, without(RANK_1, "1F1"))
    torn = job(*(rank(r, again(rows, 2), steps=steps(2)) for r, rows in enumerate(lines)))
    assert set(shares(torn).values()) == {(None, None)}


def test_ranks_that_were_recorded_stand_for_the_others():
    """The mean is of those that are known."""
    assert report(hidden(spinning(), 1)).throughput.busy == pytest.approx(0.9)
