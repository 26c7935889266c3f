"""The best contiguous partition, against every partition there is."""

from __future__ import annotations

from itertools import accumulate, combinations, pairwise
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.errors import UsageError
from bubblescope.forecast.partition import TRIALS, best, even, tightest
from bubblescope.model.actions import Kind
from bubblescope.model.layers import Layers
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.replay import replay


def every(layers, stages):
    """All partitions of so many layers."""
    return [
        tuple(high - low for low, high in pairwise((0, *cuts, layers)))
        for cuts in combinations(range(1, layers), stages - 1)
    ]


def slowest(layers, counts):
    """Time of the slowest stage."""
    return max(map(sum, zip(*layers.stages(counts), strict=True)))


def one_f_one_b(m):
    """The makespan of 1F1B with so many micro-batches."""

    def makespan(forward, backward):
        orders = find("1f1b").orders(Shape(len(forward), m))
        lengths = {a: (forward if a.kind == Kind.F else backward)[a.stage] for order in orders.values() for a in order}
        return replay(orders, lengths, last_stage=len(forward) - 1).makespan

    return makespan


def uniform(count, head=0, embedding=0, forward=10, backward=20):
    """Layers all alike, with a head and an embedding of so many layers' time."""
    return Layers(
        (forward,) * count,
        (backward,) * count,
        round(embedding * forward),
        round(embedding * backward),
        round(head * forward),
        round(head * backward),
    )


times = st.integers(0, 50)
models = st.integers(1, 9).flatmap(
    lambda count: st.builds(
        Layers,
        st.lists(times, min_size=count, max_size=count).map(tuple),
        st.lists(times, min_size=count, max_size=count).map(tuple),
        times,
        times,
        times,
        times,
    )
)


@st.composite
def tasks(draw):
    """A model and how many stages it is to have."""
    layers = draw(models)
    return layers, draw(st.integers(1, len(layers)))


@given(tasks())
def test_no_partition_has_a_faster_slowest_stage(task):
    """The least maximum is that of trying all."""
    layers, stages = task
    assert slowest(layers, tightest(layers, stages)) == min(slowest(layers, c) for c in every(len(layers), stages))


@given(tasks(), st.data())
def test_the_nearest_of_the_tightest(task, data):
    """Of several as tight the one nearest to the present partition is taken, then the first in order."""
    layers, stages = task
    present = data.draw(st.sampled_from(every(len(layers), stages)))
    ends = list(accumulate(present))
    least = slowest(layers, tightest(layers, stages))
    assert (
        tightest(layers, stages, present=present)
        == min(
            (sum(abs(a - b) for a, b in zip(accumulate(counts), ends, strict=True)), counts)
            for counts in every(len(layers), stages)
            if slowest(layers, counts) == least
        )[-1]
    )


@given(tasks(), st.integers(1, 9))
def test_work_is_conserved(task, m):
    """However the layers are cut, the stages together take as long."""
    layers, stages = task
    counts = best(layers, stages, one_f_one_b(m), trials=5)
    assert sum(map(sum, layers.stages(counts))) == sum(layers.pieces)


@given(tasks(), st.integers(1, 9), st.integers(0, 20))
def test_never_worse_than_the_tightest_or_the_present(task, m, trials):
    """However few are simulated, none is taken that is worse than the tightest or the present one."""
    layers, stages = task
    present, makespan = even(len(layers), stages), one_f_one_b(m)
    found = makespan(*layers.stages(best(layers, stages, makespan, trials=trials)))
    assert found <= makespan(*layers.stages(tightest(layers, stages)))
    assert found <= makespan(*layers.stages(present))


@given(tasks(), st.integers(1, 9))
def test_the_shortest_step_of_a_small_model(task, m):
    """Where all partitions can be simulated, the best one of all is found."""
    layers, stages = task
    makespan = one_f_one_b(m)
    found = makespan(*layers.stages(best(layers, stages, makespan)))
    assert found == min(makespan(*layers.stages(counts)) for counts in every(len(layers), stages))


@pytest.mark.parametrize(("count", "stages"), [(16, 4), (17, 4), (13, 5)])
@pytest.mark.parametrize("head", [0, 0.3, 1.5, 2.9])
@pytest.mark.parametrize("m", [4, 16])
def test_the_shortest_step_of_a_larger_model(count, stages, head, m):
    """Where all partitions are too many to simulate, layers alike and a head still find the best one."""
    layers, makespan = uniform(count, head, embedding=head / 3), one_f_one_b(m)
    found = makespan(*layers.stages(best(layers, stages, makespan)))
    assert found == min(makespan(*layers.stages(counts)) for counts in every(count, stages))


def test_a_slow_first_stage_is_better_than_a_slow_last_one():
    """With one layer too many to be even, 1F1B wants it first."""
    assert best(uniform(33), 4, one_f_one_b(16), present=(8, 8, 8, 9)) == (9, 8, 8, 8)


def test_a_heavy_head():
    """A head of two layers takes two layers off the last stage."""
    assert best(uniform(30, head=2), 4, one_f_one_b(16)) == (8, 8, 8, 6)


def test_ties_stay_as_they_are():
    """Nothing moves where nothing is won."""
    assert best(uniform(10), 4, lambda *_: 1.0, present=(1, 2, 3, 4)) == (1, 2, 3, 4)


def test_the_budget_holds():
    """The makespan is worked out no more often than asked, beyond the present partition and the tightest."""
    calls = []
    best(uniform(60, head=3), 10, lambda *stages: calls.append(stages) or sum(map(max, stages)), trials=20)
    assert len(calls) <= 20


def test_large_models_take_no_time():
    """200 layers over 64 stages: the search itself takes less than ten seconds."""
    layers = Layers(tuple(10_000 + 7 * k % 300 for k in range(200)), (20_000,) * 200, back_forward=60_000)
    begun = perf_counter()
    counts = best(layers, 64, lambda forward, backward: max(map(sum, zip(forward, backward, strict=True))))
    assert perf_counter() - begun < 10
    assert slowest(layers, counts) == slowest(layers, tightest(layers, 64))


@pytest.mark.parametrize(("layers", "stages"), [(3, 4), (3, 0)])
def test_too_few_layers(layers, stages):
    """Stages without a layer are refused."""
    with pytest.raises(UsageError, match="3 layers"):
        best(uniform(layers), stages, one_f_one_b(4))


def test_even():
    """The first stages have one more where it does not come out even."""
    assert even(10, 4) == (3, 3, 2, 2)


def test_the_budget_of_a_small_search():
    """The default is enough to try everything that a small model allows."""
    assert len(every(9, 4)) <= TRIALS
