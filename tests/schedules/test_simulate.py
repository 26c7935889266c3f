"""Simulation: what a replayed schedule says of its bubble, its window and what its ranks hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.model.actions import Kind
from bubblescope.schedules.family import EVEN, Costs, Shape, durations
from bubblescope.schedules.registry import FAMILIES, find
from bubblescope.schedules.replay import Delays
from bubblescope.schedules.simulate import held, simulate
from tests.schedules.helpers import by_stage, order, run, sizes, usual_shape


def test_all_counts_of_one_bubble():
    """Two ranks, two micro-batches, F=1 and B=2: 9 units of which each rank works 6, in every way to count that."""
    found = simulate(find("1f1b"), Shape(2, 2), EVEN)
    assert found.window == found.run.makespan == 9
    assert found.useful == {0: 6, 1: 6}
    assert found.idle == 3
    assert found.bubble == pytest.approx(3 / 9)
    assert found.ratio_to_ideal == pytest.approx(3 / 6)
    assert found.span == pytest.approx(3 / 9)  # rank 0 is under way all the time


def test_the_span_starts_with_the_rank():
    """Where no rank is under way for the whole window, the bubble of the longest span is the smaller one."""
    found = simulate(find("forward-only"), Shape(2, 3), Costs(forward=2))
    assert (found.window, found.idle, found.span) == (8, 2, 0)
    assert found.bubble == pytest.approx(2 / 8)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_counts_agree(family):
    """The usual order is what is run; the counts follow from each other, and each rank does all its work."""
    shape, costs = usual_shape(family), Costs(1.5, 2.0, 1.0)
    found = simulate(family, shape, costs)
    assert found.orders == family.orders(shape, costs)
    assert found.run == run(family, shape, costs)
    assert list(found.useful.values()) == pytest.approx([family.work(shape, costs)] * shape.p)
    assert found.idle == pytest.approx(found.window - family.work(shape, costs))
    assert found.bubble == pytest.approx(found.idle / found.window)
    assert found.ratio_to_ideal == pytest.approx(found.bubble / (1 - found.bubble))
    assert -1e-9 <= found.span <= found.bubble + 1e-9


def test_times_are_shared_among_chunks_and_slices():
    """A micro-batch takes its time once, however many chunks and slices a rank has."""
    costs = Costs(6, 12, 18)
    assert durations([order("0F0 B0 I0 W0")], Shape(1, 1), costs) == dict(
        zip(order("0F0 B0 I0 W0"), (6, 30, 12, 18), strict=True)
    )
    assert durations([order("0F0 1B0")], Shape(1, 1, 2), costs) == dict(zip(order("0F0 1B0"), (3, 15), strict=True))
    assert durations([order("0F0.1 B0.1")], Shape(1, 1, slices=3), costs) == dict(
        zip(order("0F0.1 B0.1"), (2, 10), strict=True)
    )


def test_stages_that_differ():
    """Given times of each action count instead of the costs: stage 1 of two takes twice as long."""
    one, shape = find("1f1b"), Shape(2, 2)
    found = simulate(one, shape, EVEN, lengths=by_stage(one.orders(shape), [1, 2], [2, 4]))
    assert found.useful == {0: 6, 1: 12}
    assert found.window == 1 + 12 + 2
    assert found.idle == 15 - 9


def test_transfers_are_those_of_the_costs_or_the_delays():
    """The costs' transfer counts where no delays are given, and only there."""
    shape, costs = Shape(2, 2), Costs(transfer=10)
    assert simulate(find("1f1b"), shape, costs).window == 9 + 2 * 10
    assert simulate(find("1f1b"), shape, costs, delays=Delays()).window == 9
    assert simulate(find("1f1b"), shape, costs, delays=Delays(transfer=1)).window == 9 + 2 * 1
    assert simulate(find("1f1b"), shape, costs, delays=Delays(transfer=1, blocking=True)).window == 9 + 3 * 1


def test_blocks_hand_on_at_their_end():
    """Were the forward of a block handed on before its backward has run, the last micro-batches would come too soon."""
    found = simulate(find("dualpipe"), Shape(2, 4), EVEN)
    start = {str(action): at for action, at in found.run.start.items()}
    end = {str(action): at for action, at in found.run.end.items()}
    assert (start["1F3"], start["0B0"]) == (5, 5)
    assert (end["1F3"], end["0B0"], start["1B3"]) == (8, 8, 8)
    assert (found.window, found.idle) == (12, 0)


@pytest.mark.parametrize("name", ["pipedream", "pipedream-2bw"])
@pytest.mark.parametrize(("p", "m"), [(2, 2), (4, 8), (5, 7), (8, 32)])
def test_steps_without_a_flush(name, p, m):
    """Where steps overlap, one more takes m(F+B): the bubble is 0 by any count, though the first step must fill."""
    costs = Costs(1, 1, 0.5)
    found = simulate(find(name), Shape(p, m), costs)
    assert found.window == pytest.approx(m * 2.5)
    assert (found.idle, found.bubble, found.span) == pytest.approx((0, 0, 0))
    assert found.run.makespan == pytest.approx((m + p - 1) * 2.5)


def test_the_slowest_stage_without_a_flush():
    """Where steps overlap the slowest stage works all the time, and the others wait for it."""
    pipedream, shape = find("pipedream"), Shape(4, 8)
    lengths = by_stage(pipedream.orders(shape), [1, 2, 1.5, 1], [2, 4, 3, 2])
    found = simulate(pipedream, shape, EVEN, lengths=lengths)
    assert found.window == 8 * 6
    assert found.useful == {0: 24, 1: 48, 2: 36, 3: 24}
    assert found.idle == 48 - (24 + 48 + 36 + 24) / 4


def test_other_schedules_flush():
    """The window of all other schedules is their makespan."""
    for family in FAMILIES:
        found = simulate(family, usual_shape(family), EVEN)
        assert (found.window == found.run.makespan) == (family.name not in ("pipedream", "pipedream-2bw"))
        assert family.asynchronous == family.name.startswith("pipedream")


@pytest.mark.parametrize(
    ("text", "shape", "peak"),
    [
        ("0F0 B0 F1 B1", Shape(1, 2), 1),
        ("0F0 F1 B0 B1", Shape(1, 2), 2),
        ("0F0 F1 F2 B0 B1 B2", Shape(2, 3), 3),
        ("0F0 I0 F1 W0 I1 W1", Shape(1, 2), 2),  # I frees nothing
        ("0F0 I0 W0 F1 I1 W1", Shape(1, 2), 1),
        ("0F0 F1 B1 F2 B0 B2", Shape(1, 3), 2),
        ("0F0 1F0 B0 0B0", Shape(1, 1, 2), 1),  # two chunks, one of a micro-batch each
        ("0F0 F1 F2 2B0 0B0 B1 B2", Shape(2, 3, 2), 1.5),
        ("0F0.0 F0.1 B0.1 B0.0", Shape(1, 1, slices=2), 1),
        ("0F0.0 F0.1 F0.2 B0.2 B0.1 B0.0", Shape(1, 1, slices=4), 0.75),
        ("0F0 F1 F2", Shape(1, 3), 0),  # nobody waits for activations
        ("0F0 F1 W0 W1", Shape(1, 2), 2),  # an I that was not seen
        ("", Shape(1, 1), 0),
    ],
)
def test_what_a_rank_holds(text, shape, peak):
    """A forward keeps its activations until the last part of its backward has run."""
    assert held(order(text), shape) == peak


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(FAMILIES), st.integers(2, 6), st.floats(0.1, 10), st.floats(0.1, 10), st.floats(0.1, 10))
def test_the_unit_of_time_does_not_matter(family, p, f, i, w):
    """Ten times longer times make windows ten times longer, and the same bubble."""
    for shape in sizes(family, p)[:1]:
        one, ten = (simulate(family, shape, Costs(k * f, k * i, k * w)) for k in (1, 10))
        assert ten.window == pytest.approx(10 * one.window)
        assert ten.bubble == pytest.approx(one.bubble, abs=1e-9)


def test_no_time_at_all():
    """A schedule whose actions take no time has no bubble, and no closed form of one."""
    nothing = Costs(0, 0, 0)
    found = simulate(find("1f1b"), Shape(2, 2), nothing)
    assert (found.window, found.idle, found.bubble, found.ratio_to_ideal, found.span) == (0, 0, 0, 0, 0)
    assert find("1f1b").bubble(Shape(2, 2), nothing) is None


@pytest.mark.parametrize("name", ["forward", "input", "weight", "transfer"])
@pytest.mark.parametrize("time", [-1, -1e-12, float("nan")])
def test_times_below_zero(name, time):
    """A time below zero, or none at all, is no cost."""
    with pytest.raises(ValueError, match="times must be at least 0"):
        Costs(**{name: time})


def test_costs_add_up():
    """A full backward is its two parts, everything is that and the forward, and each kind has its own."""
    costs = Costs(1, 2, 4, 8)
    assert (costs.backward, costs.total) == (6, 7)
    assert [costs.of(kind) for kind in Kind] == [1, 6, 2, 4]
