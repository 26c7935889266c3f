"""Steps that cannot have run as their ranks show them, or that have no window of their own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.align.layout import ASSUMED
from tests.analysis.jobs import again, job, one_f_one_b, rank, report, steps
from tests.building import timeline


def forwards(*starts, every=None):
    """A rank a start, which runs two forwards of 10 from then on, in each of three steps that far apart."""
    ranks = []
    for r, start in enumerate(starts):
        rows = [(f"{r}F{i}", start + 10 * i, start + 10 * i + 10) for i in (0, 1)]
        ranks.append(rank(r, again(rows, 3, every), steps=steps(3, every)))
    return job(*ranks, pipelines=[[[r] for r in range(len(starts))]])


def said(found):
    """What is said of clocks."""
    return [f.message for f in found.quality.findings if f.code == "clock-uncertain"]


def test_forwards_alone_may_be_over_before_later_ranks_begin():
    """With fewer micro-batches than ranks the first is done before the last begins."""
    found = report(forwards(0, 10, 20, 30, every=100))
    assert said(found) == []
    assert found.bubble.measured == pytest.approx(1 - 20 / 50)


def test_no_later_rank_is_done_before_an_earlier_one_begins():
    """Forwards need those of the stage before."""
    found = report(forwards(40, 0, every=100))
    assert len(said(found)) == 1
    assert "was over before it began" in said(found)[0]
    assert found.bubble.measured is None
    assert all(step.bubble is None for step in found.steps if step.used)


@pytest.mark.parametrize(("every", "shared"), [(55, False), (50, False), (30, True), (20, True)])
def test_steps_that_share_their_time_are_not_measured(every, shared):
    """The last rank still runs a step of 50 when the first begins the next one; micro-batches are then not told."""
    found = report(forwards(0, 10, 20, 30, every=every))
    assert (found.bubble.measured is None, found.schedule.microbatches is None) == (shared, shared)
    assert len(said(found)) == shared
    assert all("shares its time" in message for message in said(found))
    assert (found.bubble.lower is None) == shared


def test_a_training_holds_all_ranks_at_once():
    """A clock that is off by a step makes its window nobody's."""
    found = report(one_f_one_b(times=3, skew=500))
    assert "was over before it began" in said(found)[0]
    assert (found.bubble.measured, found.bubble.lower) == (None, None)


def test_no_interval_where_the_number_of_stages_is_assumed_and_a_rank_is_not_told():
    """It talks, so that it may be of another pipeline, and nothing tells how deep any is."""
    whole = one_f_one_b()
    silent = timeline(1, messages=[("recv 0 0F0", 10, 20)])
    told = replace(whole, timelines={0: whole.timelines[0], 1: silent})
    assert report(told).bubble.lower is not None
    assert report(replace(told, plan=replace(told.plan, source=ASSUMED))).bubble.lower is None
