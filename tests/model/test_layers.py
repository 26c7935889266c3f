"""Times of a model's layers, and of the stages that they make."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.errors import UsageError
from bubblescope.model.layers import Layers


@st.composite
def runs(draw):
    """Layers, forward and backward time of the stages of a pipeline."""
    stages = draw(st.integers(1, 6))
    times = st.lists(st.integers(0, 10**9), min_size=stages, max_size=stages)
    return draw(st.lists(st.integers(1, 9), min_size=stages, max_size=stages)), draw(times), draw(times)


def test_stages_of_layers():
    """A stage takes what its layers take, the first and the last one also what stays there."""
    layers = Layers((1, 2, 3, 4), (10, 20, 30, 40), 5, 50, 7, 70)
    assert layers.stages((1, 3)) == ((6, 16), (60, 160))


def test_pieces():
    """What stays at the ends counts to the first and the last layer."""
    assert Layers((1, 2, 3), (10, 20, 30), 5, 50, 7, 70).pieces == (66, 22, 110)


@pytest.mark.parametrize("counts", [(), (3,), (2, 3), (0, 4), (5, -1)])
def test_counts_must_fit(counts):
    """Counts that are no partition of the layers are refused."""
    with pytest.raises(UsageError, match="4 layers"):
        Layers((1, 2, 3, 4), (1, 2, 3, 4)).stages(counts)


def test_the_head_stays():
    """What the first and the last stage take beyond a usual layer's time for each of theirs stays with them."""
    layers = Layers.stated((8, 8, 8, 8), (84, 80, 80, 110), (160, 160, 160, 200))
    assert layers == Layers((10,) * 32, (20,) * 32, 4, 0, 30, 40)


def test_uneven_counts():
    """Layers cost the same on a stage that has fewer of them, and so the head shows."""
    layers = Layers.stated((3, 4, 4, 2), (30, 40, 40, 30), (60, 80, 80, 60))
    assert layers == Layers((10,) * 13, (20,) * 13, back_forward=10, back_backward=20)


def test_the_lower_median_is_usual():
    """The usual layer is the lower median over the stages between: a slow one of two does not make it."""
    layers = Layers.stated((1, 1, 1, 1), (10, 10, 30, 12), (0, 0, 0, 0))
    assert (layers.forward, layers.back_forward) == ((10, 10, 30, 10), 2)


def test_two_stages():
    """Of two stages the faster one has the usual layer."""
    assert Layers.stated((4, 4), (40, 60), (80, 80)) == Layers((10,) * 8, (20,) * 8, back_forward=20)


def test_nothing_stays_at_a_fast_end():
    """A first stage that takes less than its layers would has shorter layers, and nothing that stays."""
    layers = Layers.stated((2, 2, 2), (10, 20, 20), (20, 40, 40))
    assert (layers.forward, layers.front_forward) == ((5, 5, 10, 10, 10, 10), 0)


def test_a_single_stage():
    """Of one stage nothing tells what is no layer."""
    assert Layers.stated((4,), (10,), (20,)) == Layers((2, 3, 2, 3), (5, 5, 5, 5))


@given(runs())
def test_measured_stages_come_out_again(run):
    """Whatever is taken for a layer, the measured partition has the measured times."""
    counts, forward, backward = run
    assert Layers.stated(counts, forward, backward).stages(counts) == (tuple(forward), tuple(backward))


@given(runs())
def test_nothing_is_negative(run):
    """No layer and no end takes less than no time."""
    layers = Layers.stated(*run)
    ends = layers.front_forward, layers.front_backward, layers.back_forward, layers.back_backward
    assert min(*layers.forward, *layers.backward, *ends) >= 0


def test_fitted_layers():
    """Layers keep their proportions, and what stays at the ends too, when the stages' times are others."""
    layers = Layers((10, 30, 20), (1, 1, 1), front_forward=20, back_forward=20)
    assert layers.fitted((2, 1), (30, 80), (4, 0)) == Layers((5, 15, 40), (2, 2, 0), 10, 0, 40, 0)


@given(runs(), st.data())
def test_fitted_stages_come_out(run, data):
    """Whatever layers took, fitted to the stages of a run they make these."""
    counts, *times = run
    lengths = st.lists(st.integers(0, 99), min_size=sum(counts), max_size=sum(counts)).map(tuple)
    layers = Layers(data.draw(lengths), data.draw(lengths), 5, 0, 0, 7)
    assert layers.fitted(counts, *times).stages(counts) == tuple(map(tuple, times))


def test_fitted_counts_must_fit():
    """Times of another number of stages are refused."""
    with pytest.raises(UsageError, match="2 stages, and the run has 3"):
        Layers((1, 2), (1, 2)).fitted((1, 1), (1, 1, 1), (1, 1, 1))


@pytest.mark.parametrize("counts", [(8, 8), (8, 8, 0), (8, 8, 8, 8)])
def test_stated_counts_must_fit(counts):
    """Layers are stated of every stage, at least one each."""
    with pytest.raises(UsageError):
        Layers.stated(counts, (1, 1, 1), (1, 1, 1))


def test_layers_have_both_times():
    """A layer without a backward is a mistake of the caller's."""
    with pytest.raises(ValueError, match="forward and a backward"):
        Layers((1, 2), (1,))
