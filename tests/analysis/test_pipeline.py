"""One pipeline in one step: window, orders, durations, bubble."""

from __future__ import annotations

import math

import pytest

from bubblescope.analysis.pipeline import pipeline_steps
from bubblescope.analysis.ranks import views
from bubblescope.model.actions import Action
from tests.analysis.jobs import RANK_0, RANK_1, again, hidden, job, one_f_one_b, rank, report, shifted, steps, without
from tests.building import loose


def only(of, step=0):
    """The one pipeline of a job in a step."""
    found = pipeline_steps(of, views(of), step)
    assert len(found) == 1
    return found[0]


def ends(found):
    """Start and end of its window."""
    return found.window.start, found.window.end


def test_the_window_goes_from_the_first_start_to_the_last_end():
    """Both are on rank 0, which holds stage 0."""
    assert ends(only(one_f_one_b())) == (0, 90)


@pytest.mark.parametrize("skew", [-35, 35, 5000])
def test_other_clocks_do_not_touch_the_window(skew):
    """The rank of stage 0 has both ends on its own clock, so the bubble stays 1/3."""
    found = only(one_f_one_b(skew=skew))
    assert ends(found) == (0, 90)
    assert found.bubble == pytest.approx(1 / 3)


def test_the_clock_of_stage_0_moves_the_window_as_a_whole():
    """Its length stays when rank 0 is the one that is off."""
    of = job(rank(0, shifted(RANK_0, 40)), rank(1, RANK_1))
    assert ends(only(of)) == (40, 130)


SPLIT_0 = (("0F0", 0, 10), ("0I0", 30, 40), ("0W0", 40, 50))
SPLIT_1 = (("1F0", 10, 20), ("1I0", 20, 30), ("1W0", 45, 60))


def test_a_weight_gradient_may_end_last_on_any_rank():
    """With W all ranks make the window."""
    assert ends(only(job(rank(0, SPLIT_0), rank(1, SPLIT_1)))) == (0, 60)


def test_without_backwards_all_ranks_make_the_window():
    """The last stage ends a forward-only run."""
    assert ends(only(job(rank(0, [("0F0", 0, 10)]), rank(1, [("1F0", 12, 25)])))) == (0, 25)


def test_without_stage_0_the_others_make_the_window():
    """What was recorded goes from 10 to 70."""
    assert ends(only(hidden(one_f_one_b(), 0))) == (10, 70)


def test_of_two_ranks_of_stage_0_the_longest_makes_the_window():
    """Tensor-parallel ranks start and end a little apart."""
    of = job(rank(0, RANK_0), rank(1, [*RANK_0[:3], ("0B1", 70, 94)]), pipelines=[[[0, 1]]])
    assert ends(only(of)) == (0, 94)


def test_the_bubble_is_the_share_that_is_not_useful():
    """D1: each rank works 60 of 90."""
    found = only(one_f_one_b())
    assert found.useful == {0: 60, 1: 60}
    assert found.bubble == pytest.approx(1 - 60 / 90)


def test_the_span_bubble_is_relative_to_the_longest_rank():
    """D3: without stage 0, of which the window is 60 long, rank 1 has no bubble within its span; with it, 90 counts."""
    assert only(hidden(one_f_one_b(), 0)).span_bubble == pytest.approx(0)
    assert only(one_f_one_b()).span_bubble == pytest.approx(1 / 3)
    forward = job(rank(0, [("0F0", 0, 10)]), rank(1, [("1F0", 10, 30)]))  # window 30, spans 10 and 20, useful 15
    assert only(forward).bubble == pytest.approx(1 / 2)
    assert only(forward).span_bubble == pytest.approx(1 / 4)


def test_the_report_holds_all_three_definitions():
    """D1, D2 = D1 / (1 - D1), D3, and the window."""
    bubble = report(one_f_one_b(times=3)).bubble
    assert (bubble.measured, bubble.ratio_to_ideal, bubble.span) == pytest.approx((1 / 3, 1 / 2, 1 / 3))
    assert (bubble.window_ns, bubble.spread, bubble.trusted) == (90, 0, True)
    assert bubble.lower == bubble.upper == bubble.measured


def test_spread_is_the_deviation_over_the_used_steps():
    """Bubbles of 1/3 and 2/5 lie 1/15 apart: their deviation is that over the root of 2; one step has none."""
    late = [*RANK_0[:3], ("0B1", 80, 100)]
    rows = [*again(RANK_0, 1, 200), *[(n, s + 200, e + 200, 1) for n, s, e in late]]
    of = job(rank(0, rows, steps=steps(2, 200)), rank(1, again(RANK_1, 2, 200), steps=steps(2, 200)))
    assert report(of).bubble.measured == pytest.approx((1 / 3 + 2 / 5) / 2)
    assert report(of).bubble.spread == pytest.approx(1 / 15 / 2**0.5)
    assert report(one_f_one_b()).bubble.spread is None


def test_a_pipeline_is_seen_when_each_position_has_a_rank():
    """A missing tensor-parallel peer changes nothing; a missing stage does."""
    ranks = [rank(r, RANK_0 if r < 2 else RANK_1) for r in range(4)]
    whole = job(*ranks, pipelines=[[[0, 1], [2, 3]]])
    assert only(whole).seen
    assert only(hidden(whole, 1, 2)).seen
    assert not only(hidden(whole, 2, 3)).seen


def test_each_replica_has_its_own_window_and_the_report_their_mean():
    """Replica 1 needs 120 for the same work: bubbles 1/3 and 1/2, windows 90 and 120."""
    slow = ([*RANK_0[:3], ("0B1", 100, 120)], [*RANK_1[:3], ("1B1", 80, 100)])
    of = job(
        rank(0, RANK_0), rank(1, slow[0]), rank(2, RANK_1), rank(3, slow[1]), pipelines=[[[0], [2]], [[1], [3]]]
    )  # fmt: skip
    found = report(of)
    assert [(p.ranks, p.window_ns) for p in found.pipelines] == [((0, 2), 90), ((1, 3), 120)]
    assert [p.bubble for p in found.pipelines] == pytest.approx([1 / 3, 1 / 2])
    assert (found.bubble.measured, found.bubble.window_ns) == (pytest.approx(5 / 12), 105)


def test_a_replica_that_is_not_whole_is_left_out_of_the_mean():
    """Replica 1 lacks its stage 1: the other is measured, nothing is an interval."""
    of = job(rank(0, RANK_0), rank(1, RANK_0), rank(2, RANK_1), pipelines=[[[0], [2]], [[1], [3]]])
    found = report(of)
    assert found.bubble.measured == found.bubble.lower == pytest.approx(1 / 3)
    assert [p.bubble for p in found.pipelines] == [pytest.approx(1 / 3), None]
    assert found.quality.verdict == "ok"


def test_tensor_parallel_ranks_share_an_action():
    """Its duration is their mean, and the first of them tells the order."""
    other = [("0F0", 0, 14), RANK_0[1], ("0B1", 40, 60), ("0B0", 70, 90)]
    found = only(job(rank(0, RANK_0), rank(1, other), rank(2, RANK_1), pipelines=[[[0, 1], [2]]]))
    assert found.durations[Action.parse("0F0")] == pytest.approx((10 + 14 - (14 - 10) / 2) / 2)
    assert {at: [str(a) for a in order] for at, order in found.orders.items()} == {
        0: ["0F0", "0F1", "0B0", "0B1"],
        1: ["1F0", "1B0", "1F1", "1B1"],
    }


def test_a_rank_without_actions_in_the_step_is_not_in_it():
    """Rank 1 ran nothing in step 0, so the pipeline is not seen whole in it."""
    of = job(rank(0, again(RANK_0, 2), steps=steps(2)), rank(1, again(RANK_1, 2)[4:], steps=steps(2)))
    assert (set(only(of, 0).steps), only(of, 0).seen) == ({0}, False)
    assert (set(only(of, 1).steps), only(of, 1).seen) == ({0, 1}, True)


def test_a_step_of_nothing_has_no_pipeline():
    """No rank ran an action in it."""
    of = job(rank(0, steps=steps(1)), rank(1, steps=steps(1)))
    assert pipeline_steps(of, views(of), 0) == []


def clocked(of, off):
    """The job with a clock for each of two ranks, which may be off against each other by so much."""
    return loose(of, (0, 1, off))


SPLIT = job(rank(0, SPLIT_0), rank(1, SPLIT_1))
"""A window of 60 from rank 0 to rank 1, of which rank 0 works 30 in 50 and rank 1 all 35 in 50."""


def test_a_window_on_one_clock_is_beyond_doubt():
    """Where a rank has both ends its own clock measures the window, however little is known of the others."""
    found = only(clocked(one_f_one_b(), math.inf))
    assert (found.doubt, found.window_bounds) == (0, (90, 90))
    assert found.bounds == pytest.approx((1 / 3, 1 / 3))
    late = job(rank(0, SPLIT_0), rank(1, [("1F0", 10, 20)]))
    assert only(clocked(late, 16)).doubt == 0  # with a W, but rank 0 has both ends of it


@pytest.mark.parametrize(("off", "doubt"), [(0, 0), (7, 7), (math.inf, None)])
def test_a_window_is_as_doubtful_as_the_clocks_of_its_ends(off, doubt):
    """What these two may be off against each other counts; nobody knows how much if nothing bounds it."""
    assert only(clocked(SPLIT, off)).doubt == doubt


def test_other_clocks_make_no_window_doubtful():
    """Rank 2 runs in the middle of the window: its clock, however loosely tied, has no part in it."""
    of = job(rank(0, SPLIT_0), rank(1, SPLIT_1), rank(2, [("2F0", 20, 30)]))
    assert only(loose(of, (0, 1, 7), (0, 2, 500), (1, 2, math.inf))).doubt == 7


@pytest.mark.parametrize(
    ("off", "bounds"),
    [
        (7, (53, 67)),
        (34, (50, 94)),
        (math.inf, (50, 60)),
    ],
    ids=["both ways", "no shorter than a rank's own span", "unknown"],
)
def test_the_window_that_clocks_leave_open(off, bounds):
    """It is shorter or longer by the doubt, but holds each rank; without a bound it may be as long as the step."""
    found = only(clocked(SPLIT, off))
    assert found.window_bounds == bounds
    useful = (30 + 35) / 2
    assert found.bounds == pytest.approx((1 - useful / bounds[0], 1 - useful / bounds[1]))
    assert found.bounds[0] <= found.bubble <= found.bounds[1]


def test_the_step_bounds_a_window_that_nothing_else_does():
    """With clocks that nothing ties together, or a stage unseen, the window may be as long as the step is."""
    of = job(rank(0, SPLIT_0, steps=[(0, 0, 200)]), rank(1, SPLIT_1, steps=[(0, 0, 150)]))
    assert only(clocked(of, math.inf)).window_bounds == (50, 200)
    assert only(clocked(of, 7)).window_bounds == (53, 67)
    assert only(clocked(hidden(of, 0), 4)).window_bounds == (50, 150)


def test_the_report_holds_the_interval():
    """Lower and upper are the bounds of the bubble, about what was measured."""
    bubble = report(clocked(SPLIT, 7)).bubble
    useful = (30 + 35) / 2
    assert (bubble.lower, bubble.measured, bubble.upper) == pytest.approx(
        (1 - useful / 53, 1 - useful / 60, 1 - useful / 67)
    )


def replayed(*ranks):
    """The orders that are replayed, in short."""
    found = only(job(*ranks))
    assert set(found.durations) == {action for order in found.replayed.values() for action in order}
    return {at: " ".join(map(str, order)) for at, order in found.replayed.items()}, found.durations


def test_empty_input_gradients_of_stage_0_are_replayed():
    """Each stands before its weight gradient and takes no time, where other stages split their backwards."""
    orders, lengths = replayed(rank(0, without(SPLIT_0, "0I0")), rank(1, SPLIT_1))
    assert orders == {0: "0F0 0I0 0W0", 1: "1F0 1I0 1W0"}
    assert lengths[Action.parse("0I0")] == 0
    assert lengths[Action.parse("0W0")] == 10


def test_input_gradients_that_were_seen_stay():
    """Where stage 0 has its own, or only in some micro-batches, none is there twice."""
    assert replayed(rank(0, SPLIT_0), rank(1, SPLIT_1))[0] == {0: "0F0 0I0 0W0", 1: "1F0 1I0 1W0"}
    rows = [("0F0", 0, 10), ("0F1", 10, 20), ("0I1", 30, 40), ("0W0", 40, 50), ("0W1", 50, 60)]
    assert replayed(rank(0, rows), rank(1, SPLIT_1))[0][0] == "0F0 0F1 0I1 0I0 0W0 0W1"


def test_no_other_stage_lacks_an_input_gradient():
    """A weight gradient alone on a later stage lost its I, and where nobody splits nothing is added."""
    lost = [("1F0", 10, 20), ("1W0", 45, 60)]
    assert replayed(rank(0, SPLIT_0), rank(1, lost))[0][1] == "1F0 1W0"
    assert replayed(rank(0, without(SPLIT_0, "0I0")), rank(1, lost))[0][0] == "0F0 0W0"
