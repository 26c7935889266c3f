"""What stages cost, their idle phases, and how unevenly work is spread."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.analysis.partition import Window
from bubblescope.analysis.stages import phase_of, phases
from bubblescope.analysis.steps import rank_steps
from tests.analysis.jobs import RANK_0, RANK_1, again, call, hidden, job, one_f_one_b, rank, report, steps

GPIPE_0 = (("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 60, 80), ("0B1", 80, 100))
GPIPE_1 = (("1F0", 10, 20), ("1F1", 20, 30), ("1B0", 40, 60), ("1B1", 60, 80))


def idle(rows, start, end):
    """Idle time of a rank in warm-up, steady state and cool-down of a window."""
    return phases(rank_steps(rank(0, rows))[0], Window(start, end))


def test_idle_time_is_told_apart_by_phase():
    """Rank 0 waits 20 before its first backward, and 10 after its last forward, of which nothing is steady."""
    assert idle(RANK_0, 0, 90) == (20, 0, 10)
    assert idle(RANK_1, 0, 90) == (10, 0, 20)


def test_a_gap_between_first_backward_and_last_forward_is_steady():
    """1F1 comes 8 after 1B0."""
    assert idle([("1F0", 10, 20), ("1B0", 20, 40), ("1F1", 48, 58), ("1B1", 58, 78)], 0, 90) == (10, 8, 12)


@pytest.mark.parametrize(("rows", "expected"), [(GPIPE_0, (40, 0, 0)), (GPIPE_1, (20, 0, 20))])
def test_gpipe_has_no_steady_state(rows, expected):
    """Its border is the first backward."""
    assert idle(rows, 0, 100) == expected


def test_the_input_gradient_is_a_backward_and_the_weight_gradient_is_not():
    """Warm-up ends with I; W may come before it and counts as nothing."""
    assert idle([("0F0", 0, 10), ("0W0", 12, 20), ("0I0", 25, 30)], 0, 40) == (7, 0, 10)


@pytest.mark.parametrize(("kind", "expected"), [("F", (30, 0, 0)), ("B", (10, 0, 20)), ("W", (30, 0, 0))])
def test_a_rank_of_one_kind_has_its_phases_too(kind, expected):
    """Without a backward all is warm-up; without a forward nothing is steady."""
    assert idle([(f"0{kind}0", 10, 20)], 0, 40) == expected


@pytest.mark.parametrize(("moment", "phase"), [(0, "warmup"), (24, "warmup"), (25, "steady"), (55, "cooldown")])
def test_a_moment_lies_in_one_phase(moment, phase):
    """Steady from the first backward's start to the last forward's end."""
    step = rank_steps(rank(1, [("1F0", 10, 20), ("1B0", 25, 40), ("1F1", 45, 55), ("1B1", 55, 75)]))[0]
    assert phase_of(step, Window(0, 90), moment) == phase


rows = st.lists(st.tuples(st.sampled_from("FBIW"), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=8)


@given(rows, st.integers(0, 40), st.integers(0, 40))
@settings(deadline=None)
def test_phases_add_up_to_the_idle_time(made, before, after):
    """To the nanosecond, whatever ran in whatever order."""
    at, actions = 0, []
    for i, (kind, gap, length) in enumerate(made):
        actions.append((f"0{kind}{i}", at + gap, at + gap + length))
        at += gap + length
    step = rank_steps(rank(0, actions))[0]
    window = Window(int(step.actions.start[0]) - before, at + after)
    found = phases(step, window)
    assert sum(found) == window.length - step.useful.total
    assert min(found) >= 0


def test_the_report_of_a_stage():
    """Means a micro-batch; work a step; bubble and phases of its rank."""
    zero, one = report(one_f_one_b()).stages
    assert (one.stage, one.chunk, one.ranks) == (1, 0, (1,))
    assert (one.forward_ns, one.backward_ns, one.weight_ns, one.work_ns) == (10, 20, None, 60)
    assert (one.warmup_ns, one.steady_ns, one.cooldown_ns) == (10, 0, 20)
    assert (zero.warmup_ns, zero.steady_ns, zero.cooldown_ns) == (20, 0, 10)
    assert (zero.bubble, one.bubble) == pytest.approx((1 / 3, 1 / 3))


def test_a_stage_holds_the_means_over_micro_batches_ranks_and_steps():
    """Forwards of 10, 10, 10 and 18 are 12 on average; the work of 60 and 68 a step is 64."""
    longer = [("1F0", 10, 20), ("1B0", 20, 40), ("1F1", 41, 59), ("1B1", 59, 79)]
    one = again(RANK_1, 1) + [(name, s + 100, e + 100, 1) for name, s, e in longer]
    found = report(job(rank(0, again(RANK_0, 2), steps=steps(2)), rank(1, one, steps=steps(2)))).stages[1]
    assert (found.forward_ns, found.backward_ns, found.work_ns) == (12, 20, 64)


def test_a_split_backward_has_two_costs():
    """`backward_ns` is that of I, `weight_ns` that of W."""
    rows = {
        0: [("0F0", 0, 10), ("0I0", 35, 47), ("0W0", 47, 55)],
        1: [("1F0", 10, 20), ("1I0", 20, 35), ("1W0", 35, 44)],
    }
    zero, one = report(job(*(rank(r, rows[r]) for r in rows))).stages
    assert (zero.forward_ns, zero.backward_ns, zero.weight_ns) == (10, 12, 8)
    assert (one.forward_ns, one.backward_ns, one.weight_ns) == (10, 15, 9)


def test_halves_and_full_backwards_of_one_stage_do_not_add_up():
    """A stage that splits one backward and not the other costs its halves; the full one counts in its work alone."""
    rows = [("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 20, 41), ("0I1", 41, 51), ("0W1", 51, 61)]
    other = [("1F0", 10, 20), ("1F1", 20, 30), ("1B0", 30, 50), ("1B1", 50, 70)]
    split, whole = report(job(rank(0, rows), rank(1, other))).stages
    assert (split.forward_ns, split.backward_ns, split.weight_ns, split.work_ns) == (10, 10, 10, 61)
    assert (whole.backward_ns, whole.weight_ns) == (20, None)


def test_costs_are_useful_time_not_the_length_of_an_action():
    """A hole costs nothing, the stage's own collective does."""
    zero = rank(0, [("0F0", 0, 10), ("0B0", 30, 40)], work=[("0F0", 0, 4), ("0F0", 8, 10), ("0B0", 30, 40)])
    one = rank(1, [("1F0", 10, 20), ("1B0", 20, 30)], calls=[call("tp", 16, 22, "1F0")])
    found = report(job(zero, one)).stages
    assert [s.forward_ns for s in found] == [6, 11]  # of the 6 of the collective, 20 to 22 is shared with 1B0


def test_chunks_of_a_rank_share_its_bubble_and_have_their_own_costs():
    """Rank 0 holds stages 0 and 1 of 5 and 15."""
    rows = [("0F0", 0, 5), ("1F0", 5, 20), ("1B0", 20, 35), ("0B0", 35, 40)]
    other = [("2F0", 20, 30), ("3F0", 30, 40), ("3B0", 40, 50), ("2B0", 50, 60)]
    found = report(job(rank(0, rows), rank(1, other), placement={0: (0, 1), 1: (2, 3)})).stages
    assert [(s.stage, s.chunk, s.ranks, s.work_ns) for s in found] == [
        (0, 0, (0,), 10),
        (1, 1, (0,), 30),
        (2, 0, (1,), 20),
        (3, 1, (1,), 20),
    ]
    assert found[0].bubble == found[1].bubble
    assert found[2].bubble == found[3].bubble


def test_a_stage_names_all_its_ranks():
    """Replicas and ranks that nobody recorded are named; means are of the recorded ones."""
    whole = job(*(rank(r, RANK_0 if r < 2 else RANK_1) for r in range(4)), pipelines=[[[0], [2]], [[1], [3]]])
    assert [s.ranks for s in report(whole).stages] == [(0, 1), (2, 3)]
    assert [s.ranks for s in report(hidden(whole, 3)).stages] == [(0, 1), (2, 3)]


def stretched(stage, factor):
    """A rank of that stage with one micro-batch whose forward is `factor` times 10 long, from 0 on."""
    return rank(stage, [(f"{stage}F0", 0, round(10 * factor)), (f"{stage}B0", 100, 110)])


def test_the_slowest_stage_against_the_mean_stage():
    """Work of 20, 50 and 20: the mean is 30, and stage 1 needs 5/3 of it."""
    found = report(job(stretched(0, 1), stretched(1, 4), stretched(2, 1))).imbalance
    assert (found.slowest_stage, found.stage_ratio) == (1, pytest.approx(5 / 3))


def test_equal_stages_have_a_ratio_of_1():
    """Nobody is slower; one replica has no ratio of replicas."""
    found = report(one_f_one_b()).imbalance
    assert (found.stage_ratio, found.replica_ratio, found.stragglers) == (1, None, ())


@pytest.mark.parametrize(
    ("works", "ratio"), [((20, 30), 30 / 20), ((20, 22, 44), 44 / 22), ((20, 30, 40, 50), 50 / 30)]
)
def test_the_slowest_replica_against_the_lower_median(works, ratio):
    """Of an even number of replicas the lower middle one is the measure."""
    count = len(works)
    zero = [rank(r, [("0F0", 0, work - 10), ("0B0", 100, 110)]) for r, work in enumerate(works)]
    one = [rank(count + r, [("1F0", 60, 70), ("1B0", 70, 80)]) for r in range(count)]
    found = report(job(*zero, *one, pipelines=[[[r], [count + r]] for r in range(count)]))
    assert found.imbalance.replica_ratio == pytest.approx(ratio)


def test_nothing_found_is_no_imbalance():
    """No stage, no ratio."""
    found = report(job(rank(0, stray=[(0, 10)]), pipelines=[[[0]]])).imbalance
    assert (found.stage_ratio, found.slowest_stage, found.replica_ratio) == (None, None, None)
