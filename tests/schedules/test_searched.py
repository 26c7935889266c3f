"""Schedules whose order is searched for or built by rules of motion: zb-1p, zb-2p, v-half, v-min and hanayo."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import accumulate, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.model.actions import Action, Kind
from bubblescope.schedules.family import EVEN, Costs, Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.simulate import held, simulate
from bubblescope.schedules.zb_search import KEPT, search

TABLE = Path(__file__).resolve().parents[3] / "shared" / "traces" / "orders" / "zero_bubble_table5.csv"

FAMILIES = [("zb-1p", 1), ("zb-2p", 1), ("v-half", 2), ("v-min", 2), ("hanayo", 2), ("hanayo", 4)]

COSTS = [EVEN, Costs(1, 1.1, 0.6), Costs(0.7, 1.3, 1.2, 0.2), Costs(2, 1, 0.5, 3), Costs(1, 0, 1), Costs(0, 0, 0, 0)]


def cost(row: dict[str, str]) -> Costs:
    """The profiled times of a row."""
    return Costs(*(float(row[name]) for name in ("TF_ms", "TB_ms", "TW_ms", "Tcomm_ms")))


def rows(*, large: bool) -> list[dict[str, str]]:
    """The rows of the table for 8 ranks, or for more."""
    if not TABLE.is_file():
        pytest.skip("table 5 of Zero Bubble is not beside this checkout")
    with TABLE.open(newline="") as file:
        return [row for row in csv.DictReader(file) if (int(row["p"]) > 8) == large]


def check_table(rows: list[dict[str, str]]) -> None:
    """All columns; chunks of one layer for interleaving, of which the paper counts p transfers less than a replay."""
    chunks = {"1.5B": 3, "6.2B": 4, "14.6B": 3, "28.3B": 2}
    assert len(rows) == 6
    for row in rows:
        p, m = int(row["p"]), int(row["m"])
        for column in ("1F1B", "ZB-H1", "ZB-H2", "ZB-1p", "ZB-2p"):
            rate = simulate(find(column), Shape(p, m), cost(row)).span
            assert round(rate, 4) == float(row[column]), (row["model"], m, column)
        rate = simulate(find("interleaved-1f1b"), Shape(p, m, chunks[row["model"]]), cost(row)).span
        assert rate == pytest.approx(float(row["1F1B-I"]), abs=0.004)


def test_table_5_of_zero_bubble():
    """Bubble rates of arXiv 2401.10241, table 5, from the times of table 9, to the last digit: 8 ranks."""
    check_table(rows(large=False))


@pytest.mark.slow
def test_table_5_of_zero_bubble_with_many_ranks():
    """The same with 16 and 32 ranks."""
    check_table(rows(large=True))


@pytest.mark.parametrize(
    ("shape", "times", "one", "two"),
    [
        (Shape(8, 24), Costs(18.522, 18.086, 9.337, 0.601), 0.1585, 0.0433),
        (Shape(8, 32), Costs(29.802, 29.428, 19.530, 0.577), 0.1045, 0.0022),
    ],
)
def test_published_rates(shape, times, one, two):
    """Two rows of that table, which need no file."""
    assert round(simulate(find("zb-1p"), shape, times).span, 4) == one
    assert round(simulate(find("zb-2p"), shape, times).span, 4) == two


def test_even_times_lead_to_the_schedule_made_by_hand():
    """With F = I = W and enough micro-batches zb-1p is zb-h1."""
    for p, rounds in product((1, 2, 4, 8), (2, 3, 8)):
        shape = Shape(p, rounds * p)
        assert find("zb-1p").orders(shape) == find("zb-h1").orders(shape)


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 6),
    st.integers(1, 20),
    st.tuples(*[st.floats(0.1, 5)] * 3, st.floats(0, 2)),
    st.integers(1, 12),
    st.floats(0, 1),
)
def test_memory_of_searched_orders(p, m, times, limit, kept):
    """No rank ever holds more than the limit: an F adds 1, an I leaves the kept share of it, a W nothing."""
    change = {Kind.F: 1, Kind.I: kept - 1, Kind.W: -kept}
    for order in search(Shape(p, m), Costs(*times), limit, kept)[0]:
        assert max(accumulate(change[action.kind] for action in order)) <= limit + 1e-6


def test_limits_of_searched_orders():
    """zb-1p stays within p micro-batches and zb-2p within 2p, and both use what they may."""
    change = {Kind.F: 1, Kind.I: KEPT - 1, Kind.W: -KEPT}
    shape, times = Shape(8, 64), Costs(18.546, 18.097, 9.321, 0.762)
    for name, limit in (("zb-1p", 8), ("zb-2p", 16)):
        peaks = [
            max(accumulate(change[action.kind] for action in order))
            for order in find(name).orders(shape, times).values()
        ]
        assert limit - 1 < max(peaks) <= limit


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 5),
    st.integers(1, 10),
    st.tuples(*[st.sampled_from([0.5, 1, 2, 3, 1.37])] * 3, st.sampled_from([0, 0.1, 0.37])),
    st.sampled_from([1e-9, 0.1, 1 / 3, 1e6]),
)
def test_the_unit_of_time_does_not_matter(p, m, times, unit):
    """The same times in another unit lead to the same order, whatever is lost in sums of them."""
    for name, v in (("zb-1p", 1), ("zb-2p", 1), ("hanayo", 4)):
        shape, scaled = Shape(p, m, v), Costs(*(unit * time for time in times))
        assert find(name).orders(shape, Costs(*times)) == find(name).orders(shape, scaled)


def test_orders_are_made_when_asked_for():
    """Listing the variants costs nothing, so that detection can try each schedule."""
    for name, v in FAMILIES:
        assert 1 <= len(list(find(name).variants(Shape(1000, 1_000_000, v), EVEN))) <= 2


@pytest.mark.parametrize("costs", COSTS, ids=str)
@pytest.mark.parametrize(("name", "v"), FAMILIES)
def test_orders_are_complete_and_end(name, v, costs):
    """Every rank runs all of its parts once, each after what it needs, and no two ranks wait for each other."""
    family = find(name)
    for p, m in product((1, 2, 3, 4, 5, 6, 7), (1, 2, 3, 5, 7, 8, 13)):
        shape = Shape(p, m, v)
        assert family.problem(shape) is None
        orders = simulate(family, shape, costs).orders
        for stages, order in zip(family.placement(shape), orders.values(), strict=True):
            assert Counter(order) == dict.fromkeys(
                (Action(stage, kind, i) for stage in stages for kind in family.kinds for i in range(m)), 1
            )
            at = {action: k for k, action in enumerate(order)}
            assert all(at[a._replace(kind=Kind.F)] < k for a, k in at.items() if a.kind in (Kind.B, Kind.I))
            assert all(at[a._replace(kind=Kind.I)] < k for a, k in at.items() if a.kind == Kind.W)


@pytest.mark.parametrize("name", ["zb-1p", "zb-2p", "v-half", "v-min"])
@pytest.mark.slow
def test_large_orders_end(name):
    """The same for pipelines as deep as they are built."""
    for p, m in ((16, 7), (24, 60), (33, 34), (64, 65)):
        shape = Shape(p, m, find(name).chunks)
        assert simulate(find(name), shape, Costs(1, 1.2, 0.7, 0.1)).bubble < 1


@pytest.mark.parametrize(
    ("name", "p", "slots", "peak"),
    [
        ("v-half", 3, 5, 2),
        ("v-half", 4, 5, 3),
        ("v-half", 5, 11, 3),
        ("v-half", 6, 11, 4),
        ("v-half", 8, 17, 5),
        ("v-half", 16, 41, 9),
        ("v-min", 3, 5, 2),
        ("v-min", 4, 11, 2),
        ("v-min", 5, 15, 3),
        ("v-min", 6, 17, 3),
        ("v-min", 8, 27, 4),
        ("v-min", 16, 59, 6),
    ],
)
def test_controlled_memory(name, p, slots, peak):
    """Idle slots of a chunk with F = I = W, and micro-batches held, as counted in runs of the authors' own code."""
    simulation = simulate(find(name), Shape(p, 4 * p, 2), Costs(2, 2, 2))
    assert simulation.idle == pytest.approx(slots)
    assert max(simulation.held.values()) == peak


def test_idle_of_controlled_memory():
    """V-Half is idle for 3p-7 slots (p even) or 3p-4, V-Min for 4p-5 or, where 3 divides p, 4p-7."""
    for p in range(3, 14):
        half, least = (simulate(find(name), Shape(p, 3 * p, 2), Costs(2, 2, 2)).idle for name in ("v-half", "v-min"))
        assert half == pytest.approx(3 * p - 4 - 3 * (p % 2 == 0))
        assert least == pytest.approx(4 * p - 5 - 2 * (p % 3 == 0))


@pytest.mark.parametrize("name", ["v-half", "v-min"])
def test_memory_of_controlled_memory(name):
    """The closed form of what each rank holds is what its order holds."""
    for p, m in product(range(1, 12), (1, 3, 6, 12, 13, 20)):
        shape = Shape(p, m, 2)
        forms = [find(name).memory.activations(shape, rank) for rank in range(p)]
        counted = [held(order, shape) for order in find(name).orders(shape).values()]
        assert forms == (counted if m > p else [None] * p)


@pytest.mark.parametrize(
    ("p", "v", "bubble"), [(8, 2, 36.8), (8, 4, 23.8), (8, 8, 13.5), (16, 2, 38.5), (16, 4, 25.6), (16, 8, 14.7)]
)
def test_hanayo(p, v, bubble):
    """Bubble of greedy waves with m = p and B = 2F, in percent, as an independent simulation has them."""
    assert round(100 * simulate(find("hanayo"), Shape(p, p, v), EVEN).bubble, 1) == bubble


@pytest.mark.parametrize(
    ("name", "shape", "ranks"),
    [
        ("hanayo", Shape(2, 2, 2), ["0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1", "1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1"]),
        (
            "zb-2p",
            Shape(2, 3),
            ["0F0 0F1 0F2 0I0 0W0 0I1 0W1 0I2 0W2", "1F0 1I0 1F1 1I1 1F2 1I2 1W0 1W1 1W2"],
        ),
        ("v-half", Shape(1, 2, 2), ["0F0 1F0 1I0 1W0 0I0 0W0 0F1 1F1 1I1 0I1 1W1 0W1"]),
    ],
)
def test_small_orders_by_hand(name, shape, ranks):
    """Orders that follow from the rules on paper."""
    assert [" ".join(map(str, order)) for order in find(name).orders(shape).values()] == ranks


@pytest.mark.parametrize(
    ("name", "shape", "problem"),
    [
        ("zb-1p", Shape(4, 8, 2), "zb-1p has one chunk a rank"),
        ("zb-2p", Shape(4, 8, 2), "zb-2p has one chunk a rank"),
        ("v-half", Shape(4, 8), "v-half has two chunks a rank"),
        ("v-min", Shape(4, 8, 4), "v-min has two chunks a rank"),
        ("hanayo", Shape(4, 8, 3), "hanayo has two chunks a rank for each wave"),
    ],
)
def test_shapes_that_cannot_be(name, shape, problem):
    """Other numbers of chunks are refused with the reason."""
    assert find(name).problem(shape) == problem
