"""Orders of the schedules: written out by hand, those that PyTorch makes, and what all have in common."""

from __future__ import annotations

from collections import Counter

import pytest

from bubblescope.model.actions import Action, Kind
from bubblescope.schedules.detect import detect
from bubblescope.schedules.family import Shape, loop
from bubblescope.schedules.registry import FAMILIES, find
from tests.schedules.helpers import every_variant, order, shapes

FIVE = [find(name) for name in ("1f1b", "gpipe", "naive", "interleaved-1f1b", "looped-bfs")]

BY_HAND = [
    ("1f1b", Shape(1, 2), ["0F0 B0 F1 B1"]),
    (
        "1f1b",
        Shape(3, 4),
        [
            "0F0 F1 F2 B0 F3 B1 B2 B3",
            "1F0 F1 B0 F2 B1 F3 B2 B3",
            "2F0 B0 F1 B1 F2 B2 F3 B3",
        ],
    ),
    ("1f1b", Shape(4, 2), ["0F0 F1 B0 B1", "1F0 F1 B0 B1", "2F0 F1 B0 B1", "3F0 B0 F1 B1"]),
    ("gpipe", Shape(2, 3), ["0F0 F1 F2 B0 B1 B2", "1F0 F1 F2 B0 B1 B2"]),
    ("naive", Shape(2, 3), ["0F0 B0 F1 B1 F2 B2", "1F0 B0 F1 B1 F2 B2"]),
    (
        "interleaved-1f1b",  # the figure of arXiv 2104.04473 with two ranks and two chunks
        Shape(2, 4, 2),
        [
            "0F0 F1 2F0 F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 B3 0B2 B3",
            "1F0 F1 3F0 B0 F1 B1 1F2 B0 F3 B1 3F2 B2 F3 B3 1B2 B3",
        ],
    ),
    (
        "interleaved-1f1b",  # one group of three, as no group of two fits
        Shape(2, 3, 2),
        [
            "0F0 F1 F2 2F0 F1 F2 B0 B1 B2 0B0 B1 B2",
            "1F0 F1 F2 3F0 B0 F1 B1 F2 B2 1B0 B1 B2",
        ],
    ),
    (
        "looped-bfs",
        Shape(2, 2, 2),
        ["0F0 F1 2F0 F1 2B1 B0 0B1 B0", "1F0 F1 3F0 F1 3B1 B0 1B1 B0"],
    ),
]


@pytest.mark.parametrize(("name", "shape", "ranks"), BY_HAND)
def test_orders_by_hand(name, shape, ranks):
    """The usual order of every rank is the one written out by hand."""
    found = find(name).orders(shape)
    assert found == {rank: order(text) for rank, text in enumerate(ranks)}


@pytest.mark.parametrize(
    ("name", "shape", "last"),
    [
        ("gpipe", Shape(2, 3), "1F0 F1 F2 B2 B1 B0"),
        ("looped-bfs", Shape(2, 2, 2), "1F0 F1 3F0 F1 3B0 B1 1B0 B1"),
        ("interleaved-1f1b", Shape(2, 4, 2), "1F0 F1 F2 F3 3F0 B0 F1 B1 F2 B2 F3 B3 1B0 B1 B2 B3"),
        ("interleaved-1f1b", Shape(3, 2, 2), "2F0 F1 5F0 B0 F1 B1 2B0 B1"),
    ],
    ids=["gpipe drains in reverse", "looped-bfs drains in order", "one group of all", "torch with few micro-batches"],
)
def test_unusual_variants_by_hand(name, shape, last):
    """Textbook orders beside the usual one are known too."""
    assert order(last) in [order_of(shape.p - 1) for order_of in find(name).variants(shape)][1:]


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved-1f1b", "looped-bfs"])
def test_orders_equal_those_of_torch(torch_orders, name):
    """PyTorch's order of every shape is ours, action for action, and is recognised from the order alone."""
    entries = [(shape, orders) for schedule, shape, orders in torch_orders if schedule == name]
    assert len(entries) >= 18
    for shape, orders in entries:
        assert find(name).orders(shape) == orders, shape
        verdict = detect(orders, shape)
        assert verdict.best is not None, (shape, verdict.reason)
        assert verdict.best.confidence == 1, shape
        assert name in (verdict.best.family.name, *verdict.also), shape
        assert verdict.best.family.name == name or verdict.best.family.orders(shape) == orders, shape


@pytest.mark.parametrize("name", ["interleaved-zb", "zbv", "dualpipev"])
def test_orders_of_other_schedules_of_torch(torch_orders, name):
    """Orders that split the backward are never called one of the five schedules that do not."""
    entries = [(shape, orders) for schedule, shape, orders in torch_orders if schedule == name]
    assert entries
    for shape, orders in entries:
        verdict = detect(orders, shape, FIVE)
        assert verdict.best is None, (shape, verdict.best)


def test_every_order_runs_everything_once():
    """Each rank of each variant runs a forward and then a backward of each of its stages and micro-batches, once."""
    for shape in shapes():
        for family, orders in every_variant(shape):
            place = family.placement(shape)
            for rank, actions in orders.items():
                stages = [stage for stage in range(shape.stages) if place[stage] == rank]
                expected = {Action(s, k, i): 1 for s in stages for k in (Kind.F, Kind.B) for i in range(shape.m)}
                assert Counter(actions) == expected, (family.name, shape, rank)
                at = {action: k for k, action in enumerate(actions)}
                assert all(at[Action(a.stage, Kind.F, a.microbatch)] < k for a, k in at.items() if a.kind == Kind.B)


def test_the_same_variant_is_not_listed_twice():
    """Variants of interleaved differ, or detection would weigh one twice."""
    for shape in shapes(vs=[2]):
        variants = [order_of(shape.p - 1) for order_of in find("interleaved-1f1b").variants(shape)]
        assert len(variants) >= 1
        if shape.p > 1 and shape.m > 1:
            assert len(set(variants)) == len(variants), shape


def test_placement_goes_round():
    """Stage s lies on rank s mod p in every schedule."""
    assert loop(Shape(3, 5, 2)) == (0, 1, 2, 0, 1, 2)
    for shape in shapes(ps=[1, 4], ms=[4]):
        assert all(f.placement(shape) == tuple(s % shape.p for s in range(shape.stages)) for f in FAMILIES)


@pytest.mark.parametrize(("p", "m", "v"), [(0, 1, 1), (1, 0, 1), (1, 1, 0), (2, -1, 1)])
def test_shapes_below_one(p, m, v):
    """A pipeline without ranks, micro-batches or chunks is no shape, and the numbers are said."""
    with pytest.raises(ValueError, match=f"p, m and v must be at least 1, found p={p} m={m} v={v}"):
        Shape(p, m, v)


@pytest.mark.parametrize(
    ("name", "shape", "problem"),
    [
        ("1f1b", Shape(4, 8, 2), "1f1b has one chunk a rank; with more it is interleaved-1f1b"),
        ("gpipe", Shape(4, 8, 2), "gpipe has one chunk a rank; with more it is looped-bfs"),
        ("naive", Shape(4, 8, 2), "naive model parallelism has one chunk a rank"),
        ("interleaved-1f1b", Shape(4, 8), "interleaved-1f1b needs at least 2 chunks a rank; with one it is 1f1b"),
        ("looped-bfs", Shape(4, 8), "looped-bfs needs at least 2 chunks a rank; with one it is gpipe"),
    ],
)
def test_impossible_shapes(name, shape, problem):
    """A shape that a schedule cannot have is explained, with the schedule that it would be."""
    assert find(name).problem(shape) == problem
    assert find(name).problem(Shape(4, 8, 3 - shape.v)) is None
