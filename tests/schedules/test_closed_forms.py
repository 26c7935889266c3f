"""Closed forms against replays of the orders, and replays against numbers that papers publish."""

from __future__ import annotations

from math import ceil, inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.model.actions import Action, Kind
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import FAMILIES, find
from bubblescope.schedules.replay import replay
from tests.schedules.helpers import by_stage, every_variant, possible, run, shapes

length = st.floats(0.05, 20)
ranks = st.integers(1, 8)


def measured(shape, orders, f, b) -> float:
    """The bubble of a replay, as a share of the window."""
    return 1 - shape.m * (f + b) / run(shape, orders, f, b).makespan


@pytest.mark.parametrize(("f", "b"), [(1.0, 2.3), (1.7, 0.4)])
def test_closed_forms_on_a_grid(f, b):
    """Where a schedule has a closed form, a replay of each of its orders with equal stages has that bubble."""
    checked = set()
    for shape in shapes(ps=range(1, 9), ms=[*range(1, 10), 12, 16], vs=range(1, 5)):
        for family, orders in every_variant(shape):
            form = family.bubble(shape)
            if form is not None:
                assert measured(shape, orders, f, b) == pytest.approx(form, abs=1e-9), (family.name, shape)
                checked.add(family.name)
    assert checked == {family.name for family in FAMILIES}


@settings(deadline=None, max_examples=150)
@given(ranks, st.integers(1, 24), st.integers(1, 4), length, length)
def test_closed_forms_anywhere(p, m, v, f, b):
    """The same for any durations of a forward and a backward."""
    shape = Shape(p, m, v)
    for family in possible(shape):
        form = family.bubble(shape)
        if form is not None:
            assert measured(shape, family.orders(shape), f, b) == pytest.approx(form, abs=1e-9), family.name


def test_closed_forms_by_hand():
    """Bubbles that follow from the formulas as the papers print them."""
    assert find("gpipe").bubble(Shape(4, 8)) == 3 / 11
    assert find("1f1b").bubble(Shape(8, 176)) == 7 / 183  # GLM-130B, arXiv 2210.02414, appendix B.4: 3.8 %
    assert find("naive").bubble(Shape(4, 8)) == 3 / 4
    assert find("interleaved-1f1b").bubble(Shape(4, 8, 2)) == 3 / 19
    assert find("interleaved-1f1b").bubble(Shape(4, 2, 2)) == pytest.approx(2.5 / 4.5)
    assert find("looped-bfs").bubble(Shape(4, 8, 2)) == 3 / 19


def test_where_a_closed_form_is_known():
    """A closed form is given for every shape of which the papers give an exact one."""
    for shape in shapes(ps=range(1, 7), vs=[1, 2, 3]):
        for family in possible(shape):
            exact = {
                "interleaved-1f1b": shape.m % shape.p == 0 or shape.m < shape.p,
                "looped-bfs": shape.m >= shape.p,
            }.get(family.name, True)
            assert not exact or family.bubble(shape) is not None, (family.name, shape)


def test_where_no_closed_form_holds():
    """With fewer micro-batches than ranks the fraction of looped BFS is not its bubble, so none is given."""
    shape = Shape(4, 2, 2)
    looped = find("looped-bfs")
    assert looped.bubble(shape) is None
    assert measured(shape, looped.orders(shape), 1, 2) > 3 / 7 + 0.01


@st.composite
def uneven(draw):
    """A pipeline whose stages differ: its shape, and forward and backward by stage."""
    p = draw(ranks)
    times = st.lists(length, min_size=p, max_size=p)
    return Shape(p, draw(st.integers(1, 12))), draw(times), draw(times)


@settings(deadline=None)
@given(uneven(), st.floats(0, 5))
def test_gpipe_with_uneven_stages(pipeline, c):
    """GPipe lasts all stages once and the slowest m-1 times more, each way; transfers add 2(p-1) where equal."""
    shape, f, b = pipeline
    expected = sum(f) + (shape.m - 1) * max(f) + sum(b) + (shape.m - 1) * max(b)
    for order_of in find("gpipe").variants(shape):
        orders = {rank: order_of(rank) for rank in range(shape.p)}
        found = replay(orders, by_stage(orders, f, b), last_stage=shape.p - 1).makespan
        assert found == pytest.approx(expected, rel=1e-9)
        equal = run(shape, orders, f[0], b[0], c).makespan
        assert equal == pytest.approx((shape.m + shape.p - 1) * (f[0] + b[0]) + 2 * (shape.p - 1) * c, rel=1e-9)


@settings(deadline=None)
@given(uneven())
def test_1f1b_with_uneven_stages(pipeline):
    """1F1B lasts no longer than GPipe, and no less than any stage with all that must come before and behind it."""
    shape, f, b = pipeline
    p, m, whole = shape.p, shape.m, [x + y for x, y in zip(f, b, strict=True)]
    found = replay(find("1f1b").orders(shape), by_stage(find("1f1b").orders(shape), f, b), last_stage=p - 1).makespan
    assert found <= (sum(whole) + (m - 1) * (max(f) + max(b))) * (1 + 1e-9)
    for j in range(p):
        behind, between = sum(whole[j + 1 :]), min(p - 1 - j, m - 1)
        waits = max(0.0, behind - between * f[j]) + max(0.0, behind - between * b[j]) if m >= p else 0.0
        assert found >= (sum(whole[:j]) + m * whole[j] + waits) * (1 - 1e-9)


@pytest.mark.parametrize(("slow", "window"), [(0, 154.5), (3, 159.0), (7, 165.0), (None, 117.0)])
def test_where_the_slow_stage_stands(slow, window):
    """A stage 1.5 times slower costs more the later it stands (8 ranks, 32 micro-batches, f=1, b=2)."""
    shape = Shape(8, 32)
    orders = find("1f1b").orders(shape)
    scale = [1.5 if stage == slow else 1.0 for stage in range(8)]
    assert replay(orders, by_stage(orders, scale, [2 * x for x in scale]), last_stage=7).makespan == window


@settings(deadline=None, max_examples=150)
@given(st.integers(1, 12), st.integers(1, 40), length, length, st.floats(0, 30))
def test_1f1b_with_transfers(p, m, f, b, c):
    """1F1B never hides a transfer: it pays 2(m+p-2-ceil((m-1)/p)) of them, however long."""
    shape = Shape(p, m)
    paid = 2 * (m + p - 2 - ceil((m - 1) / p))
    found = run(shape, find("1f1b").orders(shape), f, b, c).makespan
    assert found == pytest.approx((m + p - 1) * (f + b) + paid * c, rel=1e-9)


@settings(deadline=None)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(2, 4), st.tuples(length, st.floats(1, 3), st.floats(0, 1)))
def test_interleaved_with_transfers(p, rounds, v, times):
    """Interleaved 1F1B pays 2(pv-1) transfers whatever m, as long as one is no longer than a chunk's forward."""
    f, ratio, part = times
    shape, b, c = Shape(p, rounds * p, v), ratio * f, part * f / v
    found = run(shape, find("interleaved-1f1b").orders(shape), f, b, c).makespan
    assert found == pytest.approx((shape.m + (p - 1) / v) * (f + b) + 2 * (p * v - 1) * c, rel=1e-9)


@settings(deadline=None)
@given(st.integers(1, 6), st.integers(1, 8), st.integers(2, 4), st.tuples(length, length, st.floats(0, 1)))
def test_looped_bfs_with_transfers(p, more, v, times):
    """Looped BFS pays 2(p-1) transfers where more micro-batches than ranks hide the rest."""
    f, b, part = times
    shape = Shape(p, p + more, v)
    c = part * min(f, b) / v * more / p
    found = run(shape, find("looped-bfs").orders(shape), f, b, c).makespan
    assert found == pytest.approx((shape.m + (p - 1) / v) * (f + b) + 2 * (p - 1) * c, rel=1e-9)


@settings(deadline=None)
@given(ranks, st.integers(1, 12), length, length, st.floats(0, 10))
def test_naive_with_transfers(p, m, f, b, c):
    """Naive model parallelism pays every transfer of every micro-batch."""
    shape = Shape(p, m)
    found = run(shape, find("naive").orders(shape), f, b, c).makespan
    assert found == pytest.approx(m * (p * (f + b) + 2 * (p - 1) * c), rel=1e-9)


def test_phases_of_1f1b():
    """Rank r waits r f + (p-1-r) b before its first backward ends the warm-up, and as long mirrored at the end."""
    shape, f, b = Shape(4, 8), 1.0, 2.5
    orders = find("1f1b").orders(shape)
    times = run(shape, orders, f, b)
    for rank, actions in orders.items():
        first = times.start[Action(rank, Kind.B, 0)]
        last = times.end[Action(rank, Kind.F, shape.m - 1)]
        before = sum(f if a.kind == Kind.F else b for a in actions if times.end[a] <= first)
        after = sum(f if a.kind == Kind.F else b for a in actions if times.start[a] >= last)
        assert first - before == pytest.approx(rank * f + (3 - rank) * b)
        assert times.makespan - last - after == pytest.approx((3 - rank) * f + rank * b)


# p, m, F, B, W and transfer in milliseconds, bubble over the longest span of a rank.
PUBLISHED = [
    (8, 24, 18.522, 18.086, 9.337, 0.601, 0.2431),
    (8, 32, 18.513, 18.086, 9.331, 0.626, 0.1985),
    (8, 64, 18.546, 18.097, 9.321, 0.762, 0.1240),
    (8, 24, 29.718, 29.444, 19.927, 0.527, 0.2347),
    (8, 32, 29.802, 29.428, 19.530, 0.577, 0.1898),
    (8, 64, 29.935, 29.621, 19.388, 0.535, 0.1091),
    (16, 48, 11.347, 11.248, 8.132, 0.377, 0.2552),
    (16, 64, 11.307, 11.254, 8.101, 0.379, 0.2082),
    (16, 128, 11.325, 11.308, 8.109, 0.378, 0.1251),
    (32, 96, 10.419, 10.207, 7.715, 0.408, 0.2646),
    (32, 128, 10.408, 10.204, 7.703, 0.408, 0.2168),
    (32, 256, 10.402, 10.248, 7.698, 0.460, 0.1352),
]


@pytest.mark.parametrize("row", PUBLISHED)
def test_published_bubble_rates(row):
    """Replays of 1F1B give the rates of Zero Bubble (arXiv 2401.10241), table 5, from the inputs of table 9."""
    p, m, forward, inputs, weights, transfer, rate = row
    shape = Shape(p, m)
    orders = find("1f1b").orders(shape)
    times = run(shape, orders, forward, inputs + weights, transfer)
    cost = -inf
    for actions in orders.values():
        cost = max(cost, times.end[actions[-1]] - times.start[actions[0]])
    assert round(1 - m * (forward + inputs + weights) / cost, 4) == rate
