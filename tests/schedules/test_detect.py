"""Detection: the right name from damaged orders, several names for one order, and none where it is not clear."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bubblescope.model.actions import Order
from bubblescope.schedules.detect import Difference, detect, differences
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from tests.schedules.helpers import Orders, every_variant, order, possible, shapes

LARGE = [
    ("1f1b", Shape(4, 8)),
    ("gpipe", Shape(4, 8)),
    ("naive", Shape(4, 8)),
    ("interleaved-1f1b", Shape(4, 8, 2)),
    ("interleaved-1f1b", Shape(4, 10, 2)),
    ("looped-bfs", Shape(4, 8, 2)),
]
"""Shapes in which the schedules differ widely."""


def coinciding(orders: Orders, shape: Shape) -> list[str]:
    """Names of the schedules that have a variant with just these orders, in the order of the registry."""
    return [
        family.name
        for family in possible(shape)
        if any(all(order_of(rank) == found for rank, found in orders.items()) for order_of in family.variants(shape))
    ]


@st.composite
def pipelines(draw):
    """A shape and the orders of one variant of one schedule, on some of its ranks."""
    shape = Shape(draw(st.integers(1, 6)), draw(st.integers(1, 12)), draw(st.integers(1, 3)))
    _, orders = draw(st.sampled_from(list(every_variant(shape))))
    present = draw(st.sets(st.sampled_from(range(shape.p)), min_size=1))
    return shape, {rank: orders[rank] for rank in sorted(present)}


def test_every_variant_is_recognised():
    """Each textbook order of a whole pipeline is found with confidence 1 and no departure, under all its names."""
    for shape in shapes(vs=[1, 2]):
        for family, orders in every_variant(shape):
            verdict = detect(orders, shape)
            assert verdict.best is not None, (family.name, shape, verdict.reason)
            assert verdict.best.confidence == 1
            assert verdict.best.expected == orders
            assert [verdict.best.family.name, *verdict.also] == coinciding(orders, shape)


@settings(deadline=None)
@given(pipelines())
def test_absent_ranks(pipeline):
    """With some ranks only, the answer is every schedule whose order is the same on those, first name first."""
    shape, orders = pipeline
    verdict = detect(orders, shape)
    assert verdict.best is not None
    assert verdict.best.confidence == 1
    assert [verdict.best.family.name, *verdict.also] == coinciding(orders, shape)


@pytest.mark.parametrize(
    ("shape", "ranks", "name", "also"),
    [
        (Shape(4, 1), [0, 1, 2, 3], "1f1b", ("gpipe", "naive")),
        (Shape(1, 4), [0], "1f1b", ("naive",)),
        (Shape(4, 8), [3], "1f1b", ("naive",)),
        (Shape(4, 8), [2, 3], "1f1b", ()),
        (Shape(4, 2), [0, 1, 2], "1f1b", ("gpipe",)),
        (Shape(4, 2), [0, 1, 2, 3], "1f1b", ()),
        (Shape(4, 1, 2), [0, 1, 2, 3], "interleaved-1f1b", ("looped-bfs",)),
    ],
    ids=["one micro-batch", "one rank", "the last rank", "two last", "all but the last", "few", "chunks"],
)
def test_coinciding_orders_by_hand(shape, ranks, name, also):
    """Where orders coincide the first of the registry names them and the others stand in `also`."""
    orders = {rank: find(name).orders(shape)[rank] for rank in ranks}
    verdict = detect(orders, shape)
    assert (verdict.best.family.name, verdict.also, verdict.reason) == (name, also, f"the order of {name}")


def test_a_name_for_what_only_a_later_schedule_does():
    """Forwards that drain in reverse are gpipe's alone, though 1f1b comes first."""
    verdict = detect({0: order("0F0 F1 B1 B0"), 1: order("1F0 F1 B1 B0")}, Shape(2, 2))
    assert (verdict.best.family.name, verdict.best.confidence, verdict.also) == ("gpipe", 1, ())


def test_few_micro_batches_as_torch_groups_them():
    """With fewer micro-batches than ranks torch's groups are as large as m; the last ranks tell it, not the first."""
    shape = Shape(4, 3, 2)
    orders = {
        0: order("0F0 F1 F2 4F0 F1 F2 B0 B1 B2 0B0 B1 B2"),
        1: order("1F0 F1 F2 5F0 F1 F2 B0 B1 B2 1B0 B1 B2"),
        2: order("2F0 F1 F2 6F0 F1 F2 B0 B1 B2 2B0 B1 B2"),
        3: order("3F0 F1 F2 7F0 B0 F1 B1 F2 B2 3B0 B1 B2"),
    }
    verdict = detect(orders, shape)
    assert verdict.best is not None
    assert (verdict.best.family.name, verdict.best.confidence) == ("interleaved-1f1b", 1)


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_the_runner_up(name, shape):
    """The next best is another order, fits less well, and its likeness is a share."""
    verdict = detect(find(name).orders(shape), shape)
    assert verdict.runner_up.family.name not in {name, *verdict.also}
    assert 0 < verdict.runner_up.confidence < 1


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_swapped_neighbours(name, shape):
    """Two neighbours that changed places on each rank keep the name; each costs one addition and one absence."""
    orders = find(name).orders(shape)
    found, at = {}, {}
    for rank, actions in orders.items():
        k = at[rank] = len(actions) // 2 + rank
        found[rank] = (*actions[:k], actions[k + 1], actions[k], *actions[k + 2 :])
    verdict = detect(found, shape)
    assert verdict.best.family.name == name
    assert verdict.best.expected == orders
    assert verdict.best.confidence == pytest.approx(1 - 1 / len(orders[0]))
    for rank, actions in orders.items():
        k, late = at[rank], str(actions[at[rank] + 1])
        assert differences(found[rank], actions) == [Difference(k, None, late), Difference(k + 2, late, None)]


@pytest.mark.parametrize(("name", "shape"), LARGE)
@pytest.mark.parametrize("place", [0, 5, -1])
def test_a_missing_action(name, shape, place):
    """An action that is not there keeps the name and is the one departure."""
    orders = find(name).orders(shape)
    actions = orders[1]
    lost = actions[place]
    found = orders | {1: tuple(action for action in actions if action != lost)}
    verdict = detect(found, shape)
    assert verdict.best.family.name == name
    assert verdict.best.expected == orders
    assert differences(found[1], orders[1]) == [Difference(place % len(actions), str(lost), None)]


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_a_cut_step(name, shape):
    """A step cut near its end keeps its name, and what is missing is listed to the end."""
    orders = find(name).orders(shape)
    keep = len(orders[0]) * 4 // 5
    found = {rank: actions[:keep] for rank, actions in orders.items()}
    verdict = detect(found, shape)
    assert verdict.best.family.name == name
    assert verdict.best.expected == orders
    for rank, actions in orders.items():
        expected = [Difference(k, str(actions[k]), None) for k in range(keep, len(actions))]
        assert differences(found[rank], actions) == expected


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_a_step_cut_half_way(name, shape):
    """Six tenths of a step are too few to name it; the nearest is the right one and is told as such."""
    orders = find(name).orders(shape)
    keep, whole = len(orders[0]) * 6 // 10, len(orders[0])
    verdict = detect({rank: actions[:keep] for rank, actions in orders.items()}, shape)
    assert verdict.best is None
    assert verdict.runner_up.family.name == name
    assert verdict.runner_up.confidence == pytest.approx(2 * keep / (keep + whole))
    assert verdict.reason == f"nothing fits: the nearest, {name}, has a likeness of {2 * keep / (keep + whole):.2f}"


@settings(deadline=None, max_examples=200)
@given(pipelines(), st.randoms(use_true_random=True))
def test_losses_never_make_a_wrong_name(pipeline, random):
    """With a tenth of all actions lost at random the answer is a schedule that can have the true order, or none."""
    shape, orders = pipeline
    found = {rank: tuple(a for a in actions if random.random() >= 0.1) for rank, actions in orders.items()}
    assume(all(found.values()))
    verdict = detect(found, shape)
    if verdict.best is not None:
        assert verdict.best.family.name in coinciding(orders, shape)
        assert verdict.runner_up is None or verdict.runner_up.confidence < verdict.best.confidence


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_losses_rarely_cost_the_name(name, shape, seed):
    """In pipelines of some size a tenth of the actions lost at random leaves the right name."""
    random = Random(seed)  # noqa: S311 - the same losses every time
    found = {r: tuple(a for a in actions if random.random() >= 0.1) for r, actions in find(name).orders(shape).items()}
    assert detect(found, shape).best.family.name == name


def test_ties_are_unknown():
    """An order as near to one schedule as to another is neither."""
    verdict = detect({1: order("1F0 B0 B1")}, Shape(2, 2))
    assert verdict.best is None
    assert verdict.reason == "1f1b and gpipe fit equally well"
    assert verdict.also == ()
    assert (verdict.runner_up.family.name, verdict.runner_up.confidence) == ("gpipe", pytest.approx(6 / 7))


def test_variants_of_two_schedules_that_tie_are_unknown():
    """Gpipe in reverse with one backward lost is as near to gpipe in order, which is 1f1b here: neither is named."""
    verdict = detect({0: order("0F0 F1 B1")}, Shape(2, 2))
    assert verdict.best is None
    assert verdict.reason == "1f1b and gpipe fit equally well"


def test_variants_of_one_schedule_that_tie_are_its_name():
    """Where only the variant is unclear the schedule is named, after its usual order."""
    found = {rank: order(f"{rank}F0 F1 B0") for rank in range(3)}
    verdict = detect(found, Shape(3, 2))
    assert (verdict.best.family.name, verdict.also) == ("gpipe", ())
    assert verdict.best.expected == find("gpipe").orders(Shape(3, 2))
    assert verdict.best.confidence == pytest.approx(6 / 7)


def test_a_poor_best_is_unknown():
    """An order that no schedule has is unknown; the nearest is told with its likeness, as runner-up."""
    backwards = {rank: actions[::-1] for rank, actions in find("gpipe").orders(Shape(2, 6)).items()}
    verdict = detect(backwards, Shape(2, 6))
    assert verdict.best is None
    nearest = verdict.runner_up
    assert nearest.confidence < 0.85
    assert verdict.reason == (
        f"nothing fits: the nearest, {nearest.family.name}, has a likeness of {nearest.confidence:.2f}"
    )


def test_eager_1f1b_is_not_1f1b():
    """Twice the warm-up is another schedule and is not named after the nearest."""
    shape = Shape(4, 8)
    found = {}
    for rank, actions in find("1f1b").orders(Shape(7, 8)).items():
        if rank % 2 == 0:  # rank 2r of seven warms up 2(3-r) forwards, as rank r of four does when it is eager
            found[rank // 2] = tuple(action._replace(stage=rank // 2) for action in actions)
    families = [find(name) for name in ("1f1b", "gpipe", "naive")]
    verdict = detect(found, shape, families)
    assert verdict.best is None
    assert verdict.runner_up.family.name == "1f1b"


def test_a_stated_schedule_is_the_only_one_compared():
    """Where the user names the schedule, no other competes, and an order that is not its own is not confirmed."""
    shape = Shape(4, 8)
    orders = find("naive").orders(shape)
    assert detect(orders, shape, [find("naive")]).runner_up is None
    verdict = detect(orders, shape, [find("gpipe")])
    assert verdict.best is None
    assert verdict.runner_up.family.name == "gpipe"


def test_a_shape_that_no_schedule_has():
    """Where every schedule is impossible the shape is the reason."""
    verdict = detect({0: order("0F0 B0")}, Shape(4, 8), [find("looped-bfs")])
    assert (verdict.best, verdict.also, verdict.runner_up) == (None, (), None)
    assert verdict.reason == "no known schedule has p=4 m=8 v=1"


def scramble(actions: Order, random: Random) -> Order:
    """The order after a few swaps and losses."""
    changed = list(actions)
    for _ in range(random.randint(0, 4)):
        i, j = random.randrange(len(changed)), random.randrange(len(changed))
        changed[i], changed[j] = changed[j], changed[i]
    return tuple(action for action in changed if random.random() > 0.1)


@settings(deadline=None)
@given(pipelines(), st.randoms(use_true_random=True))
def test_departures_explain_everything(pipeline, random):
    """Without what was added and what is missing both orders are the same; equal orders have no departure."""
    _, orders = pipeline
    expected = next(iter(orders.values()))
    found = scramble(expected, random)
    departures = differences(found, expected)
    added = {d.found for d in departures} - {None}
    missing = {d.expected for d in departures} - {None}
    assert [str(a) for a in found if str(a) not in added] == [str(a) for a in expected if str(a) not in missing]
    assert differences(expected, expected) == []
    assert all(d.found is None or str(found[d.position]) == d.found for d in departures)
    assert all(d.expected != d.found for d in departures)


@pytest.mark.parametrize("held", [12, None], ids=["much too short", "whole"])
def test_variants_that_cannot_matter_are_not_built(held):
    """Of a schedule's thousands, one tells that an order is much too short, and none is asked after one that fits."""
    shape, asked = Shape(2, 600, 2), []
    interleaved = find("interleaved-1f1b")

    def variants(given):
        for order_of in interleaved.variants(given):
            asked.append(order_of)
            yield order_of

    found = {0: next(iter(interleaved.variants(shape)))(0)[:held]}
    verdict = detect(found, shape, [replace(interleaved, variants=variants)])
    assert len(asked) == 1
    assert (verdict.best is None) == (held is not None)
