"""A rank in one step, and which steps count."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.analysis.steps import choose, microbatches, rank_steps
from bubblescope.errors import UsageError
from bubblescope.model.options import StepRange
from bubblescope.model.timeline import Steps
from tests.analysis.jobs import RANK_0, RANK_1, again, call, job, rank, report, steps, without

ANY = StepRange()


def used(*timelines, wanted=ANY, m=2):
    """(complete, used) numbers of the steps of some ranks."""
    judged = choose({t.rank: rank_steps(t) for t in timelines}, wanted, m)
    return [u.number for u in judged if u.complete], [u.number for u in judged if u.used]


def both(times, lacking=()):
    """Both ranks of the usual job, `lacking` naming (rank, step, action) that are not there."""
    for number, rows in enumerate((RANK_0, RANK_1)):
        gone = {(name, step) for r, step, name in lacking if r == number}
        yield rank(number, [row for row in again(rows, times) if (row[0], row[3]) not in gone], steps=steps(times))


@pytest.mark.parametrize(("times", "expected"), [(1, [0]), (2, [0, 1]), (3, [1, 2]), (5, [1, 2, 3, 4])])
def test_the_first_step_is_left_out_where_two_others_remain(times, expected):
    """All are complete; of one or two all are used."""
    assert used(*both(times)) == (list(range(times)), expected)


def test_the_first_complete_step_is_left_out():
    """Step 0 lacks an action, so step 1 is the first of those that count."""
    assert used(*both(4, [(0, 0, "0B1")])) == ([1, 2, 3], [2, 3])


def test_a_cut_step_of_one_rank_is_incomplete_on_the_job():
    """3 of 8 forwards under a full-length annotation do not make a step."""
    forwards = [(f"0F{i}", 10 * i, 10 * i + 10) for i in range(8)]
    cut = rank(1, again(forwards, 2) + again(forwards, 3)[16:19], steps=steps(3))
    whole = rank(0, again(forwards, 3), steps=steps(3))
    assert (rank_steps(cut)[2].start, rank_steps(cut)[2].end) == (200, 300)
    assert used(whole, cut, m=8) == ([0, 1], [0, 1])
    assert used(whole, m=8) == ([0, 1, 2], [1, 2])


def test_a_step_that_lacks_backwards_is_incomplete():
    """All forwards are there; the commonest count of such steps is the measure."""
    assert used(*both(3, [(1, 2, "1B0"), (1, 2, "1B1")])) == ([0, 1], [0, 1])


def test_the_only_step_lacks_backwards_that_are_not_there():
    """A rank that recorded one step has no other to be measured by; its forwards say how many there should be."""
    assert used(*both(1, [(1, 0, "1B1")])) == ([], [])
    assert used(*both(1, [(1, 0, "1B0"), (1, 0, "1B1")])) == ([], [])


def test_a_run_of_forwards_alone_lacks_no_backwards():
    """One step of them is complete."""
    assert used(*both(1, [(r, 0, f"{r}B{i}") for r in (0, 1) for i in (0, 1)])) == ([0], [0])


def test_counts_that_tie_take_the_larger():
    """Of two steps with all forwards the one with more actions is the whole one."""
    assert used(*both(2, [(0, 1, "0B1")])) == ([0], [0])


def test_a_rank_that_lacks_a_step_makes_it_incomplete():
    """Rank 1 was recorded for two of three steps."""
    first, _ = both(3)
    _, second = both(2)
    assert used(first, second) == ([0, 1], [0, 1])


def test_a_rank_without_any_step_makes_all_incomplete():
    """Nothing of it is known, so nothing of the job is complete."""
    assert used(next(both(2)), dataclasses.replace(rank(1), steps=Steps.empty())) == ([], [])


def test_a_rank_without_any_forward_makes_all_incomplete():
    """What a whole step of it looks like is unknown."""
    assert used(next(both(2)), rank(1, again([("1B0", 0, 10)], 2), steps=steps(2))) == ([], [])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [(StepRange(0, 0), [0]), (StepRange(2), [2, 3]), (StepRange(None, 2), [0, 1, 2])],
)
def test_chosen_steps_are_used_as_chosen(wanted, expected):
    """With --steps the first is not left out."""
    assert used(*both(4), wanted=wanted)[1] == expected


def test_steps_that_are_not_there_are_refused():
    """--steps that selects nothing is an error that names the steps there are."""
    with pytest.raises(UsageError, match="0 to 3"):
        used(*both(4), wanted=StepRange(7, 9))


def test_an_incomplete_step_is_not_used_though_chosen():
    """Means never take a step that lacks actions."""
    assert used(*both(4, [(0, 2, "0F0")]), wanted=StepRange(1, 3)) == ([0, 1, 3], [1, 3])


def test_all_steps_are_listed_in_the_report():
    """The left-out ones have their window too, the incomplete ones do not."""
    rows = report(job(*both(4, [(0, 3, "0F1")]))).steps
    assert [(s.step, s.complete, s.used, s.window_ns) for s in rows] == [
        (0, True, False, 90),
        (1, True, True, 90),
        (2, True, True, 90),
        (3, False, False, None),
    ]


def test_without_micro_batches_a_step_counts_that_every_rank_has():
    """No pipeline, no counts of actions."""
    a, b = rank(0, stray=[(0, 250)], steps=steps(3)), rank(1, stray=[(0, 150)], steps=steps(2))
    assert used(a, b, m=None) == ([0, 1], [0, 1])


def counted(*ranks, named=False):
    """Micro-batches a step of some ranks."""
    return microbatches((step for of in ranks for step in rank_steps(of).values()), named=named)


def test_micro_batches_are_the_commonest_count_of_forwards():
    """Two steps of 2 outvote a cut one of 1."""
    assert counted(next(both(3, [(0, 2, "0F1")]))) == 2


def test_micro_batches_that_tie_take_the_larger():
    """A whole step and a cut one: the whole one knows."""
    assert counted(next(both(2, [(0, 1, "0F1")]))) == 2


def test_micro_batches_are_numbers_not_actions():
    """Two chunks of three micro-batches are m = 3, and so are two slices of each."""
    chunks = [
        (f"{stage}F{i}", 30 * k + 10 * i, 30 * k + 10 * i + 10) for k, stage in enumerate((0, 2)) for i in range(3)
    ]
    slices = [(f"0F{i}.{k}", 20 * i + 10 * k, 20 * i + 10 * k + 10) for i in range(3) for k in range(2)]
    assert counted(rank(0, chunks)) == counted(rank(0, slices)) == 3


def test_named_micro_batches_that_ranks_lost_are_told_by_the_others():
    """Each of two ranks lost another forward of three: names tell all three, counts only two."""
    first, second = (rank(r, [(f"{r}F{i}", 10 * i, 10 * i + 10) for i in range(3) if i != r]) for r in range(2))
    assert counted(first, second, named=True) == 3
    assert counted(first, second) == 2


def test_two_ways_share_the_micro_batches():
    """A rank of a pipeline that runs both ways takes half of them in each of its stages."""
    rows = [("0F0", 0, 10), ("3F2", 10, 20), ("0F1", 20, 30), ("3F3", 30, 40)]
    assert counted(rank(0, rows)) == 4


def test_micro_batches_of_nothing_are_unknown():
    """No forward, no count."""
    assert counted(rank(0, [("0B0", 0, 10)])) is None
    assert counted() is None


def durations(*args, **others):
    """Durations of the actions of a rank's only step."""
    return rank_steps(rank(*args, **others))[0].durations.tolist()


def test_a_duration_is_the_union_of_an_actions_work():
    """The hole of 3 does not count, the collective that fills 2 of it does."""
    made = {"work": [("0F0", 0, 4), ("0F0", 7, 10)], "calls": [call("tp", 3, 6, "0F0")]}
    assert durations(0, [("0F0", 0, 10)], **made) == [9]


def test_actions_share_an_instant_equally():
    """F runs 0-10 and B 6-20: the 4 that both run count 2 for each."""
    assert durations(0, [("0F0", 0, 10), ("0B0", 6, 20)]) == [8, 12]


def test_three_actions_share_an_instant_equally():
    """6 of each are shared by three."""
    assert durations(0, [("0F0", 0, 6), ("0F1", 0, 6), ("0B0", 0, 12)]) == [2, 2, 8]


def test_an_action_without_work_takes_no_time():
    """Its kernels are of no length."""
    assert durations(0, [("0F0", 3, 3)]) == [0]


@given(st.lists(st.tuples(st.integers(0, 200), st.lists(st.integers(0, 30), min_size=1, max_size=5)), max_size=8))
@settings(deadline=None)
def test_a_ranks_durations_add_up_to_its_useful_time(made):
    """To the rounding of each action to whole nanoseconds, however they overlap."""
    actions = [(f"0F{i}", start, start + sum(pieces)) for i, (start, pieces) in enumerate(sorted(made))]
    work = []
    for (name, at, _), (_, pieces) in zip(actions, sorted(made), strict=True):
        edges = np.cumsum([at, *pieces]).tolist()
        work += [(name, lo, hi) for lo, hi in zip(edges[::2], edges[1::2], strict=False)]
    step = rank_steps(rank(0, actions, work=work, steps=[(0, 0, 500)]))[0]
    assert abs(int(step.durations.sum()) - step.useful.total) <= len(actions) / 2


def test_a_step_knows_its_own_rows():
    """Actions, work and order of the second step only."""
    step = rank_steps(rank(0, again(without(RANK_0, "0B1"), 2), steps=steps(2)))[1]
    assert list(map(str, step.order)) == ["0F0", "0F1", "0B0"]
    assert (step.compute.start.tolist(), step.useful.total) == ([100, 140], 40)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ANY, [("first", ()), (None, ()), ("incomplete", (1,)), (None, ()), (None, ())]),
        (StepRange(2, 3), [("not-asked", ()), ("not-asked", ()), ("incomplete", (1,)), (None, ()), ("not-asked", ())]),
        (StepRange(3, 4), [("not-asked", ()), ("not-asked", ()), ("not-asked", (1,)), (None, ()), (None, ())]),
    ],
)
def test_a_step_that_is_left_out_says_why(wanted, expected):
    """And which ranks lack actions of it; that nobody asked for it is the first reason."""
    judged = choose({t.rank: rank_steps(t) for t in both(5, [(1, 2, "1B0")])}, wanted, 2)
    assert [(use.left_out, use.lacking) for use in judged] == expected
    assert all((use.left_out is None) == use.used for use in judged)
