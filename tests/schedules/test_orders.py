"""Orders of the schedules: written out by hand, those that PyTorch makes, and what all have in common."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise, product

import pytest

from bubblescope.model.actions import WHOLE, Action, Kind
from bubblescope.model.placement import loop, mirrored, vee
from bubblescope.schedules.detect import detect
from bubblescope.schedules.family import EVEN, Shape
from bubblescope.schedules.registry import FAMILIES, find
from tests.schedules.helpers import blocks, every_variant, order, possible, shapes, whole

VEE = ["zb-v", "dualpipe-v", "v-half", "v-min", "hanayo"]
"""Schedules whose stages run down the ranks and up again."""

MIRRORED = ["dualpipe", "chimera"]
"""Schedules with two copies of the model, one each way."""

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
    (
        "eager-1f1b",
        Shape(3, 6),
        [
            "0F0 F1 F2 F3 F4 B0 F5 B1 B2 B3 B4 B5",
            "1F0 F1 F2 B0 F3 B1 F4 B2 F5 B3 B4 B5",
            "2F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5",
        ],
    ),
    ("gpipe", Shape(2, 3), ["0F0 F1 F2 B0 B1 B2", "1F0 F1 F2 B0 B1 B2"]),
    ("naive", Shape(2, 3), ["0F0 B0 F1 B1 F2 B2", "1F0 B0 F1 B1 F2 B2"]),
    ("forward-only", Shape(2, 3), ["0F0 F1 F2", "1F0 F1 F2"]),
    ("forward-only", Shape(2, 4, 2), ["0F0 F1 2F0 F1 0F2 F3 2F2 F3", "1F0 F1 3F0 F1 1F2 F3 3F2 F3"]),
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
        "interleaved-1f1b",  # a group as large as the user says
        Shape(2, 4, 2, group=4),
        [
            "0F0 F1 F2 F3 2F0 F1 F2 B0 F3 B1 B2 B3 0B0 B1 B2 B3",
            "1F0 F1 F2 F3 3F0 B0 F1 B1 F2 B2 F3 B3 1B0 B1 B2 B3",
        ],
    ),
    (
        "looped-bfs",
        Shape(2, 2, 2),
        ["0F0 F1 2F0 F1 2B1 B0 0B1 B0", "1F0 F1 3F0 F1 3B1 B0 1B1 B0"],
    ),
    ("zb-h1", Shape(2, 3), ["0F0 F1 I0 W0 F2 I1 W1 I2 W2", "1F0 I0 F1 I1 W0 F2 I2 W1 W2"]),
    (
        "zb-h1",
        Shape(3, 4),
        [
            "0F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3",
            "1F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3",
            "2F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3",
        ],
    ),
    (
        "zb-h2",
        Shape(3, 5),
        [
            "0F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4",
            "1F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4",
            "2F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4",
        ],
    ),
    (
        "interleaved-zb",
        Shape(2, 2, 2),
        [
            "0F0 F1 2F0 F1 I0 W0 I1 W1 0I0 W0 I1 W1",
            "1F0 F1 3F0 I0 F1 I1 W0 1I0 3W1 1I1 W0 W1",
        ],
    ),
    (
        "zb-v",
        Shape(2, 3, 2),
        [
            "0F0 F1 F2 3F0 I0 W0 F1 I1 W1 0I0 W0 3F2 I2 W2 0I1 W1 I2 W2",
            "1F0 2F0 1F1 2F1 I0 W0 1F2 I0 W0 2F2 I1 W1 1I1 2I2 1I2 W1 2W2 1W2",
        ],
    ),
    ("dualpipe", Shape(2, 4), ["0F0 1F2 0F1 1B2 F3 0B0 1B3 0I1 W1", "0F2 1F0 0F3 1B0 F1 0B2 1B1 0I3 W3"]),
    (
        "dualpipe-v",
        Shape(2, 4, 2),
        [
            "0F0 F1 F2 3F0 I0 W0 F1 0F3 3B1 F2 0B0 3B2 F3 0B1 3B3 0I2 W2 I3 W3",
            "1F0 2F0 1F1 2F1 1F2 2B0 F2 1B0 F3 2B1 F3 1B1 2B2 1B2 2I3 1I3 2W3 1W3",
        ],
    ),
    (
        "chimera",  # rank 0, stage 0 down: F in slots 0 and 2, B in 7 and 9; stage 3 up: F in 3 and 5, B in 4 and 6
        Shape(4, 4),
        [
            "0F0 F1 3F2 B2 F3 B3 0B0 B1",
            "1F0 2F2 1F1 2F3 B2 1B0 2B3 1B1",
            "1F2 2F0 1F3 2F1 B0 1B2 2B1 1B3",
            "0F2 F3 3F0 B0 F1 B1 0B2 B3",
        ],
    ),
    ("pipedream", Shape(2, 3), ["0F0 F1 B0 F2 B1 B2", "1F0 B0 F1 B1 F2 B2"]),
    ("pipedream-2bw", Shape(2, 3), ["0F0 F1 B0 F2 B1 B2", "1F0 B0 F1 B1 F2 B2"]),
    (
        "seq1f1b",
        Shape(2, 2, slices=2),
        [
            "0F0.0 F0.1 F1.0 B0.1 F1.1 B0.0 B1.1 B1.0",
            "1F0.0 F0.1 B0.1 F1.0 B0.0 F1.1 B1.1 B1.0",
        ],
    ),
]


@pytest.mark.parametrize(("name", "shape", "ranks"), BY_HAND)
def test_orders_by_hand(name, shape, ranks):
    """The usual order of every rank is the one written out by hand."""
    found = find(name).orders(shape)
    assert found == {rank: order(text) for rank, text in enumerate(ranks)}


UNUSUAL = {
    "gpipe drains in reverse": ("gpipe", Shape(2, 3), "1F0 F1 F2 B2 B1 B0", "backwards in reverse"),
    "looped-bfs drains in order": (
        "looped-bfs",
        Shape(2, 2, 2),
        "1F0 F1 3F0 F1 3B0 B1 1B0 B1",
        "backwards in the order of the forwards",
    ),
    "one group of all": (
        "interleaved-1f1b",
        Shape(2, 4, 2),
        "1F0 F1 F2 F3 3F0 B0 F1 B1 F2 B2 F3 B3 1B0 B1 B2 B3",
        "groups of 4",
    ),
    "torch with few micro-batches": (
        "interleaved-1f1b",
        Shape(3, 2, 2),
        "2F0 F1 5F0 B0 F1 B1 2B0 B1",
        "groups of 2",
    ),
    "one more warm-up forward": (
        "interleaved-1f1b",
        Shape(2, 4, 2),
        "1F0 F1 3F0 F1 B0 1F2 3B1 1F3 B0 3F2 1B1 3F3 B2 B3 1B2 B3",
        "one more warm-up forward, as for overlapped experts",
    ),
    "zero bubble, one group of all": (
        "interleaved-zb",
        Shape(2, 4, 2),
        "1F0 F1 F2 F3 3F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 1I0 3W3 1I1 W0 I2 W1 I3 W2 W3",
        "groups of 4",
    ),
    "forwards in one group": ("forward-only", Shape(2, 4, 2), "1F0 F1 F2 F3 3F0 F1 F2 F3", "groups of 4"),
}


@pytest.mark.parametrize(("name", "shape", "last", "note"), UNUSUAL.values(), ids=UNUSUAL)
def test_unusual_variants_by_hand(name, shape, last, note):
    """Textbook orders beside the usual one are known too, and each says what it is."""
    usual, *others = find(name).variants(shape, EVEN)
    assert usual.note == ""
    assert [variant.note for variant in others if variant.order(shape.p - 1) == order(last)] == [note]


@pytest.mark.parametrize("name", ["interleaved-1f1b", "interleaved-zb", "forward-only"])
def test_a_stated_group(name):
    """Where the user says how large the groups are, the order of that size is the usual one."""
    known = {
        variant.note: whole(Shape(2, 6, 2), variant.order) for variant in find(name).variants(Shape(2, 6, 2), EVEN)
    }
    for group, note in ((2, ""), (3, "groups of 3"), (6, "groups of 6")):
        assert find(name).orders(Shape(2, 6, 2, group=group)) == known[note]


def test_who_cuts_and_who_groups():
    """One schedule cuts micro-batches, three take them in groups, and all others say that they do not."""
    assert [family.name for family in FAMILIES if family.cuts] == ["seq1f1b"]
    assert {family.name for family in FAMILIES if family.grouped} == {
        "interleaved-1f1b",
        "interleaved-zb",
        "forward-only",
    }
    for family in FAMILIES:
        sliced, grouped = (
            family.problem(Shape(2, 4, family.chunks, **extra)) for extra in ({"slices": 2}, {"group": 2})
        )
        assert (sliced is None) == family.cuts
        assert family.grouped or grouped == f"{family.name} takes no groups, found group=2"


def test_only_usual_orders_are_without_a_note():
    """The first variant of a schedule has no note, and every other one has."""
    for shape in shapes(ms=[2, 4, 6, 9]):
        for family in possible(shape):
            notes = [variant.note for variant in family.variants(shape, EVEN)]
            assert notes[0] == ""
            assert all(notes[1:])


AHEAD = {
    "1f1b": lambda p, r: p - r,
    "eager-1f1b": lambda p, r: 2 * (p - r) - 1,
    "zb-h1": lambda p, r: p - r,
    "zb-h2": lambda p, r: 2 * (p - r) - 1,
    "zb-v": lambda p, _: 2 * p,
    "interleaved-1f1b": lambda p, r: 2 * (p - 1 - r) + p + 1,
    "interleaved-zb": lambda p, r: 2 * p - r,
}
"""Forwards before the first backward of rank r of p, where m is large; two chunks a rank in the last three."""


@pytest.mark.parametrize("name", AHEAD)
@pytest.mark.parametrize("p", [1, 2, 4, 7])
def test_forwards_before_the_first_backward(name, p):
    """As published, four ranks of zb-h1 run 4, 3, 2, 1 forwards before their first I, of zb-h2 7, 5, 3, 1."""
    family = find(name)
    for rank, actions in family.orders(Shape(p, 3 * p, family.chunks)).items():
        first = next(k for k, action in enumerate(actions) if action.kind != Kind.F)
        assert first == AHEAD[name](p, rank), (p, rank)


@pytest.mark.parametrize(("name", "lag"), [("zb-h1", 1), ("zb-h2", 2)])
def test_how_long_weight_gradients_wait(name, lag):
    """Rank r of a hand-made schedule runs r input gradients (zb-h2: 2r) before the one that its first W follows."""
    for rank, actions in find(name).orders(Shape(5, 12)).items():
        first = next(k for k, action in enumerate(actions) if action.kind == Kind.W)
        assert sum(action.kind == Kind.I for action in actions[:first]) == lag * rank + 1
        assert actions[first - 1].kind == Kind.I


def test_pipedream_runs_the_order_of_1f1b():
    """Schedules without a flush differ from 1f1b in what follows a step, not in the step."""
    for shape in shapes(vs=[1]):
        usual = find("1f1b").orders(shape)
        names = ["pipedream", "pipedream-2bw"] if shape.m >= shape.p else ["pipedream"]
        assert all(find(name).problem(shape) is None and find(name).orders(shape) == usual for name in names)


TORCH = {
    "1f1b": 18,
    "gpipe": 18,
    "interleaved-1f1b": 54,
    "looped-bfs": 54,
    "interleaved-zb": 54,
    "zb-v": 18,
    "dualpipe-v": 14,
}
"""Schedules that PyTorch has, and in how many shapes each was recorded."""


def test_all_recordings_are_compared(torch_orders):
    """The tests below leave none of the 230 recordings out."""
    assert Counter(recorded.name for recorded in torch_orders) == TORCH


@pytest.mark.parametrize("name", TORCH)
def test_orders_equal_those_of_torch(torch_orders, name):
    """PyTorch's order of every shape is ours, action for action, and the same actions run as one block."""
    family = find(name)
    for _, shape, orders, firsts in (recorded for recorded in torch_orders if recorded.name == name):
        assert family.orders(shape) == orders, shape
        assert {rank: family.together(shape, rank) for rank in orders} == firsts, shape
        assert any(firsts.values()) == (name == "dualpipe-v")


@pytest.mark.parametrize("name", TORCH)
def test_orders_of_torch_are_recognised(torch_orders, name):
    """Each of them is known by the order alone, under its name or one whose order is the same there."""
    for _, shape, orders, _ in (recorded for recorded in torch_orders if recorded.name == name):
        verdict = detect(orders, shape)
        assert verdict.best is not None, (shape, verdict.reason)
        assert verdict.best.confidence == 1, shape
        assert name in (verdict.best.family.name, *verdict.also), shape
        assert verdict.best.family.name == name or verdict.best.family.orders(shape) == orders, shape


def _parts(family, actions):
    """Actions with each full backward taken as I and W, where a schedule has both."""
    for action in actions:
        if action.kind == Kind.B and Kind.I in family.kinds:
            yield from (action._replace(kind=kind) for kind in (Kind.I, Kind.W))
        else:
            yield action


def _cells(family, shape, rank):
    """Stage and micro-batch of all that a rank has to do; where both ways are run, each takes half of the latter."""
    stages, half = family.placement(shape)[rank], shape.m // 2
    if family.name in MIRRORED:
        return [(stages[i >= half], i) for i in range(shape.m)]
    return product(stages, range(shape.m))


def _check_rank(family, shape, rank, actions):
    """Each kind of each stage, micro-batch and slice runs once; after its forward, and a W after its I."""
    parts = list(_parts(family, actions))
    kinds = family.kinds - {Kind.B} if Kind.I in family.kinds else family.kinds
    cut = range(shape.slices) if family.cuts else [WHOLE]
    expected = [Action(s, kind, i, k) for (s, i), kind, k in product(_cells(family, shape, rank), kinds, cut)]
    assert Counter(parts) == dict.fromkeys(expected, 1)
    at = {action: k for k, action in enumerate(parts)}
    for action, k in at.items():
        assert action.kind == Kind.F or at[action._replace(kind=Kind.F)] < k
        assert action.kind != Kind.W or at[action._replace(kind=Kind.I)] < k
        assert not (action.kind == Kind.B and action.slice > 0) or k < at[action._replace(slice=action.slice - 1)]


def test_every_order_runs_everything_once():
    """Each rank of each variant runs all of its stages and micro-batches once: forward, then backward, I before W."""
    seen = set()
    cut = [Shape(p, m, 1, slices) for p, m, slices in product(range(1, 5), range(1, 6), (2, 3))]
    for shape in (*shapes(vs=[1, 2, 3, 4]), *cut):
        for family, variant, orders in every_variant(shape):
            for rank, actions in orders.items():
                try:
                    _check_rank(family, shape, rank, actions)
                except AssertionError as problem:
                    raise AssertionError(family.name, variant.note, shape, rank) from problem
            seen.add(family.name)
    assert seen == {family.name for family in FAMILIES}


def test_the_same_variant_is_not_listed_twice():
    """With a micro-batch for each rank variants of a schedule differ, or detection would weigh one twice."""
    for shape in shapes(ps=range(2, 6), ms=[5, 6, 8, 9], vs=[1, 2]):
        for family in possible(shape):
            variants = [tuple(whole(shape, v.order).values()) for v in family.variants(shape, EVEN)]
            assert len(set(variants)) == len(variants), (family.name, shape)


def test_placements_by_hand():
    """Stages go round the ranks, run down and up again, or lie both ways."""
    assert loop(3, 2) == ((0, 3), (1, 4), (2, 5))
    assert vee(3, 2) == ((0, 5), (1, 4), (2, 3))
    assert vee(2, 4) == ((0, 3, 4, 7), (1, 2, 5, 6))
    assert mirrored(4, 1) == ((0, 3), (1, 2), (2, 1), (3, 0))


def test_placement_of_each_schedule():
    """Folded schedules lie like a V, those with two copies of the model both ways, all others go round."""
    for family in FAMILIES:
        layout = vee if family.name in VEE else mirrored if family.name in MIRRORED else loop
        assert family.placement(Shape(4, 8, family.chunks)) == layout(4, family.chunks), family.name


def test_blocks_of_dualpipe_by_hand():
    """Where two streams meet a forward and the other stream's backward are one block, but for the first of them."""
    assert [find("dualpipe").together(Shape(2, 4), rank) for rank in (0, 1)] == [set(order("1F3")), set(order("1F1"))]
    folded = [find("dualpipe-v").together(Shape(2, 4, 2), rank) for rank in (0, 1)]
    assert folded == [set(order("0F3 3F2 F3")), set(order("2F2 1F3 2F3"))]


def test_what_runs_together():
    """A block is a forward and then a full backward of the rank's other stage; only dualpipe and its fold have any."""
    seen = set()
    for shape in shapes(ps=[1, 2, 3, 4, 6], ms=[4, 8, 12, 13]):
        for family in possible(shape):
            orders, firsts = family.orders(shape), blocks(family, shape)
            behind = {a: b for actions in orders.values() for a, b in pairwise(actions)}
            for first in firsts:
                assert (first.kind, behind[first].kind) == (Kind.F, Kind.B)
                assert first.stage != behind[first].stage
            if firsts:
                seen.add(family.name)
    assert seen == {"dualpipe", "dualpipe-v"}


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"p": 0}, "p, m and v must be at least 1, found p=0 m=1 v=1"),
        ({"m": 0}, "p, m and v must be at least 1, found p=1 m=0 v=1"),
        ({"v": 0}, "p, m and v must be at least 1, found p=1 m=1 v=0"),
        ({"m": -1}, "p, m and v must be at least 1, found p=1 m=-1 v=1"),
        ({"slices": 0}, "slices and group must be at least 1, found 0 and None"),
        ({"group": 0}, "slices and group must be at least 1, found 1 and 0"),
    ],
)
def test_shapes_below_one(size, message):
    """A pipeline without ranks, micro-batches, chunks, slices or a group is no shape, and the numbers are said."""
    with pytest.raises(ValueError, match=message):
        Shape(**{"p": 1, "m": 1, **size})


IMPOSSIBLE = [
    ("1f1b", Shape(4, 8, slices=2), "1f1b takes micro-batches whole, found slices=2", Shape(4, 8)),
    ("gpipe", Shape(4, 8, group=4), "gpipe takes no groups, found group=4", Shape(4, 8)),
    ("1f1b", Shape(4, 8, 2), "1f1b has one chunk a rank; with more it is interleaved-1f1b", Shape(4, 8)),
    ("gpipe", Shape(4, 8, 2), "gpipe has one chunk a rank; with more it is looped-bfs", Shape(4, 8)),
    ("naive", Shape(4, 8, 2), "naive model parallelism has one chunk a rank", Shape(4, 8)),
    ("eager-1f1b", Shape(4, 8, 2), "eager-1f1b has one chunk a rank", Shape(4, 8)),
    (
        "interleaved-1f1b",
        Shape(4, 8),
        "interleaved-1f1b needs at least 2 chunks a rank; with one it is 1f1b",
        Shape(4, 8, 2),
    ),
    (
        "interleaved-1f1b",
        Shape(4, 10, 2, group=8),
        "interleaved-1f1b needs p <= g <= m, and m mod g 0 or at least p; found p=4 m=10 g=8",
        Shape(4, 10, 2, group=6),
    ),
    ("looped-bfs", Shape(4, 8), "looped-bfs needs at least 2 chunks a rank; with one it is gpipe", Shape(4, 8, 2)),
    ("zb-h1", Shape(4, 8, 2), "zb-h1 has one chunk a rank", Shape(4, 8)),
    ("zb-h2", Shape(4, 8, 2), "zb-h2 has one chunk a rank", Shape(4, 8)),
    (
        "interleaved-zb",
        Shape(4, 8),
        "interleaved-zb needs at least 2 chunks a rank; with one it is zb-h1",
        Shape(4, 8, 2),
    ),
    ("zb-v", Shape(4, 8, 3), "zb-v has two chunks a rank", Shape(4, 8, 2)),
    ("dualpipe", Shape(4, 8, 2), "dualpipe has one chunk a rank each way", Shape(4, 8)),
    ("dualpipe", Shape(3, 8), "dualpipe needs p even, m even and m >= 2p, found p=3 m=8", Shape(2, 8)),
    ("dualpipe", Shape(4, 9), "dualpipe needs p even, m even and m >= 2p, found p=4 m=9", Shape(4, 10)),
    ("dualpipe", Shape(4, 6), "dualpipe needs p even, m even and m >= 2p, found p=4 m=6", Shape(4, 8)),
    ("dualpipe-v", Shape(4, 8), "dualpipe-v has two chunks a rank", Shape(4, 8, 2)),
    ("dualpipe-v", Shape(3, 5, 2), "dualpipe-v needs m >= 2p, found p=3 m=5", Shape(3, 6, 2)),
    ("chimera", Shape(4, 8, 2), "chimera has one chunk a rank each way", Shape(4, 8)),
    ("chimera", Shape(3, 8), "chimera needs p and m even, found p=3 m=8", Shape(2, 8)),
    ("chimera", Shape(4, 7), "chimera needs p and m even, found p=4 m=7", Shape(4, 2)),
    ("pipedream", Shape(4, 8, 2), "pipedream has one chunk a rank", Shape(4, 2)),
    ("pipedream-2bw", Shape(4, 8, 2), "pipedream-2bw has one chunk a rank", Shape(4, 8)),
    ("pipedream-2bw", Shape(4, 3), "pipedream-2bw needs m >= p, found p=4 m=3", Shape(4, 4)),
    ("seq1f1b", Shape(4, 8, 2, 2), "seq1f1b has one chunk a rank", Shape(4, 8, slices=2)),
    (
        "seq1f1b",
        Shape(4, 8),
        "seq1f1b needs at least 2 slices a micro-batch; with one it is 1f1b",
        Shape(4, 8, slices=2),
    ),
]


@pytest.mark.parametrize(("name", "shape", "problem", "possible"), IMPOSSIBLE)
def test_impossible_shapes(name, shape, problem, possible):
    """A shape that a schedule cannot have is explained, with the schedule that it would be where there is one."""
    assert find(name).problem(shape) == problem
    assert find(name).problem(possible) is None
