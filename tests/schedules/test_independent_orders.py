"""Orders of the registry against a second writing of the same rules, and that against the orders that torch makes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bubblescope.schedules.family import EVEN, Shape
from bubblescope.schedules.registry import find
from tests.schedules.independent_orders import RULES, Size, group, orders

LOOPED = ("interleaved-1f1b", "interleaved-zb")
TORCH = Path(__file__).parents[3] / "shared/traces/orders/torch_2.13_orders.json.gz"
IN_TORCH = {"zbv": "zb-v", "dualpipev": None}


def sizes(name):
    """The grid, as far as a schedule goes; interleaved ones need whole groups."""
    grid = [Size(p, m, v) for p in range(1, 7) for m in range(1, 13) for v in (1, 2, 3)]
    return [
        size
        for size in grid
        if (name not in LOOPED or size.m % group(size) == 0)
        and find(name.removesuffix("-reversed-drain")).problem(shape_of(name, size)) is None
    ]


def shape_of(name, size):
    """The shape whose usual order is the one that torch makes."""
    return Shape(*size, group=group(size) if name in LOOPED else None)


@pytest.mark.parametrize("name", RULES)
def test_both_write_the_same(name):
    """Every rank of every shape of the grid."""
    assert len(sizes(name)) > 10
    for size in sizes(name):
        family = find(name.removesuffix("-reversed-drain"))
        _, *others = family.variants(shape_of(name, size), EVEN)
        of_rank = others[0].order if name.endswith("-reversed-drain") else family.orders(shape_of(name, size)).get
        found = [[str(action) for action in of_rank(rank)] for rank in range(size.p)]
        assert found == orders(name, size), (name, size)


@pytest.mark.parametrize("name", LOOPED)
def test_usual_groups_are_whole(name):
    """Where p divides m, both take groups of p without being told."""
    for size in (Size(p, k * p, v) for p in (2, 3, 4) for k in (1, 2, 3) for v in (2, 3)):
        found = find(name).orders(Shape(*size))
        assert [[str(action) for action in found[rank]] for rank in range(size.p)] == orders(name, size)


@pytest.mark.skipif(not TORCH.exists(), reason="the file of orders made by torch is not beside the checkout")
def test_they_are_those_of_torch():
    """Every shape that torch was asked for."""
    for entry in json.loads(gzip.decompress(TORCH.read_bytes())):
        name = IN_TORCH.get(entry["schedule"], entry["schedule"])
        if name is None:
            continue
        size = Size(entry["p"], entry["m"], entry["v"])
        lanes = [[cell for cell in entry["order"][str(r)] if cell and "REDUCE" not in cell] for r in range(size.p)]
        assert orders(name, size) == lanes, (name, size)
