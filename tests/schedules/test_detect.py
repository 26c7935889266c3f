"""Detection: the right name from damaged orders, several names for one order, and none where it is not clear."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bubblescope.model.actions import Kind, Order
from bubblescope.model.placement import loop, vee
from bubblescope.schedules.detect import Difference, detect, differences
from bubblescope.schedules.family import EVEN, Costs, Shape
from bubblescope.schedules.registry import FAMILIES, find
from tests.schedules.helpers import Orders, every_variant, order, possible, shapes, sizes, usual_shape, whole

LARGE = [
    *((family.name, usual_shape(family)) for family in FAMILIES),
    ("1f1b", Shape(4, 8)),
    ("gpipe", Shape(4, 8)),
    ("naive", Shape(4, 8)),
    ("interleaved-1f1b", Shape(4, 8, 2)),
    ("interleaved-1f1b", Shape(4, 10, 2)),
    ("looped-bfs", Shape(4, 8, 2)),
    ("zb-v", Shape(8, 16, 2)),
    ("hanayo", Shape(4, 8, 4)),
]
"""Shapes in which the schedules differ widely."""

SURE = 0.8
"""A wrong name with more confidence than this would be believed."""


def seen(expected: Order, found: Order) -> Order:
    """An order as it can be seen: stage 0 has no input gradient to find unless one was found."""
    if any(a.stage == 0 and a.kind == Kind.I for a in found):
        return expected
    return tuple(a for a in expected if a.stage or a.kind != Kind.I)


def coinciding(orders: Orders, shape: Shape, found: Orders | None = None) -> dict[str, str]:
    """Schedules that have a variant with just these orders, first name first, and the note of that variant."""
    found, result = found or orders, {}
    truth = {rank: seen(actions, found[rank]) for rank, actions in orders.items()}
    for family in possible(shape):
        for variant in family.variants(shape, EVEN):
            if all(seen(variant.order(rank), found[rank]) == actions for rank, actions in truth.items()):
                result[family.name] = variant.note
                break
    return result


def lossy(orders: Orders, random: Random) -> Orders:
    """The orders with a tenth of their actions lost."""
    return {rank: tuple(a for a in actions if random.random() >= 0.1) for rank, actions in orders.items()}


def looks_like_an_evaluation(orders: Orders, found: Orders) -> bool:
    """Whether all backwards are lost, so that nothing tells the rest from forwards that lost nothing."""
    had, has = ({a.kind for actions in each.values() for a in actions} for each in (orders, found))
    return has == {Kind.F} != had


def reason(names: dict[str, str]) -> str:
    """What is said of an order that goes by these names."""
    name, note = next(iter(names.items()))
    return f"the order of {name}, {note}" if note else f"the order of {name}"


@st.composite
def pipelines(draw):
    """A shape and the orders of one variant of one schedule, on some of its ranks."""
    shape = Shape(draw(st.integers(1, 6)), draw(st.integers(1, 12)), draw(st.integers(1, 4)))
    family = draw(st.sampled_from(possible(shape) or [find("forward-only")]))
    variant = draw(st.sampled_from(list(family.variants(shape, EVEN))))
    present = draw(st.sets(st.sampled_from(range(shape.p)), min_size=1))
    return shape, {rank: variant.order(rank) for rank in sorted(present)}


def test_every_variant_is_recognised():
    """Each textbook order of a whole pipeline is found with confidence 1 and no departure, under all its names."""
    for shape in shapes(ms=[1, 2, 3, 4, 6, 7, 8], vs=[1, 2]):
        for family, variant, orders in every_variant(shape):
            verdict, names = detect(orders, shape), coinciding(orders, shape)
            assert verdict.best is not None, (family.name, variant.note, shape, verdict.reason)
            assert verdict.best.confidence == 1
            assert verdict.best.expected == orders
            assert [verdict.best.family.name, *verdict.also] == list(names)
            assert family.name in names


@settings(deadline=None)
@given(pipelines())
def test_absent_ranks(pipeline):
    """With some ranks only, the answer is every schedule whose order is the same on those, first name first."""
    shape, orders = pipeline
    verdict, names = detect(orders, shape), coinciding(orders, shape)
    assert verdict.best is not None
    assert verdict.best.confidence == 1
    assert [verdict.best.family.name, *verdict.also] == list(names)
    assert verdict.reason == reason(names)


def sweep(family, random: Random):
    """Shapes of 2 to 8 ranks with some variants' orders on all ranks, and on all but one."""
    for p in range(2, 9):
        for shape in sizes(family, p):
            variants = list(family.variants(shape, EVEN))
            for variant in {id(v): v for v in (variants[0], random.choice(variants))}.values():
                orders = whole(shape, variant.order)
                absent = random.randrange(p)
                yield shape, orders
                yield shape, {rank: actions for rank, actions in orders.items() if rank != absent}


def seeded(family, salt: int = 0) -> Random:
    """The same luck every time."""
    return Random(f"{family.name} {salt}")  # noqa: S311 - no secret


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_exact_orders_have_their_name(family):
    """Every schedule is named on 2 to 8 ranks with few and many micro-batches, all ranks there or one absent."""
    for shape, orders in sweep(family, seeded(family)):
        verdict, names = detect(orders, shape), coinciding(orders, shape)
        assert family.name in names
        assert verdict.best is not None, (shape, list(orders), verdict.reason)
        assert verdict.best.confidence == 1
        assert [verdict.best.family.name, *verdict.also] == list(names), (shape, list(orders))
        assert verdict.reason == reason(names)


def check_losses(family, salt: int) -> None:
    """Lose a tenth of everything, over and over: hardly ever unknown, never wrong."""
    random, tried, unknown = seeded(family, salt), 0, 0
    for shape, orders in sweep(family, random):
        found = lossy(orders, random)
        if looks_like_an_evaluation(orders, found):
            continue
        verdict = detect(found, shape)
        if verdict.best is None:
            unknown += 1
        elif verdict.best.confidence > SURE and verdict.best.family is not family:
            assert verdict.best.family.name in coinciding(orders, shape, found), (shape, found)
        tried += 1
    assert unknown <= tried / 10


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_losses_leave_the_name(family):
    """A tenth of the actions lost at random hardly ever costs the name and never makes a wrong one."""
    check_losses(family, 1)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_losses_leave_the_name_once_more(family):
    """The same with other luck."""
    check_losses(family, 2)


@pytest.mark.parametrize(
    ("shape", "ranks", "name", "also"),
    [
        (
            Shape(4, 1),
            [0, 1, 2, 3],
            "1f1b",
            ("gpipe", "naive", "eager-1f1b", "pipedream"),
        ),
        (Shape(1, 4), [0], "1f1b", ("naive", "eager-1f1b", "pipedream", "pipedream-2bw")),
        (Shape(4, 8), [3], "1f1b", ("naive", "eager-1f1b", "pipedream", "pipedream-2bw")),
        (Shape(4, 8), [2, 3], "1f1b", ("pipedream", "pipedream-2bw")),
        (Shape(4, 2), [0, 1, 2], "1f1b", ("gpipe", "eager-1f1b", "pipedream")),
        (Shape(4, 2), [0, 1, 2, 3], "1f1b", ("eager-1f1b", "pipedream")),
        (Shape(4, 1, 2), [0, 1, 2, 3], "interleaved-1f1b", ("looped-bfs",)),
        (Shape(4, 8), [0], "zb-h1", ("zb-1p",)),
        (Shape(2, 1), [0, 1], "zb-h1", ("zb-h2", "zb-1p", "zb-2p")),
    ],
    ids=[
        "one micro-batch",
        "one rank",
        "the last rank",
        "two last",
        "all but the last",
        "few",
        "chunks",
        "zero bubble",
        "one zero-bubble micro-batch",
    ],
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
    assert verdict.reason == "the order of gpipe, backwards in reverse"


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
    assert verdict.reason == "the order of interleaved-1f1b, groups of 3"


@pytest.mark.parametrize(("one", "other"), [("1f1b", "eager-1f1b"), ("zb-h1", "zb-h2"), ("1f1b", "gpipe")])
@pytest.mark.parametrize("p", range(2, 9))
def test_what_differs_in_its_warm_up(one, other, p):
    """Schedules that differ in how they fill the pipeline are told apart."""
    shape = Shape(p, 3 * p)
    for name, wrong in ((one, other), (other, one)):
        verdict = detect(find(name).orders(shape), shape)
        assert verdict.best.family.name == name
        assert wrong not in verdict.also
        alone = detect(find(name).orders(shape), shape, [find(wrong)])
        assert alone.best is None or alone.best.confidence < 1


@pytest.mark.parametrize("p", range(2, 7))
def test_one_more_warm_up_forward(p):
    """A single forward more on each rank, as with overlapped experts, is seen and said."""
    shape = Shape(p, 2 * p, 2)
    family = find("interleaved-1f1b")
    more = {v.note: v for v in family.variants(shape, EVEN)}["one more warm-up forward, as for overlapped experts"]
    verdict = detect(whole(shape, more.order), shape)
    assert verdict.best.variant.note == more.note
    assert verdict.reason == f"the order of interleaved-1f1b, {more.note}"
    assert detect(family.orders(shape), shape).reason == "the order of interleaved-1f1b"


@pytest.mark.parametrize("family", [f for f in FAMILIES if f.chunks == 2], ids=lambda family: family.name)
def test_what_differs_in_its_placement(family):
    """The same work with the second chunks on other ranks, a loop for a V or the reverse, has another name or none."""
    for p in (2, 4, 6):
        shape = Shape(p, 3 * p, 2)
        was, now = (family.placement(shape), (vee if family.placement(shape) == loop(p, 2) else loop)(p, 2))
        moved = {
            rank: tuple(a._replace(stage=now[rank][was[rank].index(a.stage)]) for a in actions)
            for rank, actions in family.orders(shape).items()
        }
        verdict = detect(moved, shape)
        assert verdict.best is None or verdict.best.family is not family


FOLDED = [family for family in FAMILIES if family.layout is vee]


@pytest.mark.parametrize("family", FOLDED, ids=lambda family: family.name)
@pytest.mark.parametrize("p", [3, 4, 6])
def test_what_lies_like_a_v(family, p):
    """Schedules with the same placement are told apart by what their ranks do, each from all others."""
    shape = Shape(p, 2 * p, 2)
    verdict = detect(family.orders(shape), shape)
    assert (verdict.best.family.name, verdict.also) == (family.name, ())


MEASURED = Costs(18.522, 18.086, 9.337, 0.601)
"""Times of a real model: Zero Bubble, arXiv 2401.10241, table 9."""


@pytest.mark.parametrize("name", ["zb-h1", "zb-h2", "zb-1p", "zb-2p"])
@pytest.mark.parametrize("p", [3, 4, 8])
def test_what_differs_in_where_weight_gradients_run(name, p):
    """Zero-bubble schedules on one placement are told apart by their W, given the times that orders are made for."""
    shape = Shape(p, 3 * p)
    verdict = detect(find(name).orders(shape, MEASURED), shape, costs=MEASURED)
    assert (verdict.best.family.name, verdict.best.confidence, verdict.best.variant.note) == (name, 1, "")


@pytest.mark.parametrize("name", [family.name for family in FAMILIES if Kind.I in family.kinds])
def test_the_first_stage_needs_no_input_gradient(name):
    """Stage 0 has no input to derive by: a trace that shows no I of it is as good as one that shows all."""
    shape = usual_shape(find(name))
    found = {
        rank: tuple(a for a in actions if a.stage or a.kind != Kind.I)
        for rank, actions in find(name).orders(shape).items()
    }
    verdict = detect(found, shape)
    assert name in (verdict.best.family.name, *verdict.also)
    assert (verdict.best.confidence, verdict.best.expected) == (1, found)


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_forwards_alone_are_forwards_alone(name, shape):
    """Whatever schedule the forwards of an evaluation borrow, no schedule with backwards is named after them."""
    found = {rank: tuple(a for a in o if a.kind == Kind.F) for rank, o in find(name).orders(shape).items()}
    verdict = detect(found, shape)
    assert verdict.best is None or verdict.best.family.name == "forward-only"
    assert detect(find(name).orders(shape), shape).best.family.name != "forward-only" or name == "forward-only"


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_the_runner_up(name, shape):
    """The next best is another order, fits less well, and its likeness is a share."""
    verdict = detect(find(name).orders(shape), shape)
    assert name in (verdict.best.family.name, *verdict.also)
    if verdict.runner_up is not None:
        assert verdict.runner_up.family.name not in {name, verdict.best.family.name, *verdict.also}
        assert 0 <= verdict.runner_up.confidence < 1


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_swapped_neighbours(name, shape):
    """Two neighbours that changed places on each rank keep the name; each costs one addition and one absence."""
    orders = find(name).orders(shape)
    found, at = {}, {}
    for rank, actions in orders.items():
        k = at[rank] = len(actions) // 2 + rank
        found[rank] = (*actions[:k], actions[k + 1], actions[k], *actions[k + 2 :])
    verdict = detect(found, shape)
    assert name in (verdict.best.family.name, *verdict.also)
    assert verdict.best.expected == orders
    assert verdict.best.confidence == pytest.approx(1 - sum(1 / len(o) for o in orders.values()) / shape.p)
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
    assert name in (verdict.best.family.name, *verdict.also)
    assert verdict.best.expected == orders
    assert differences(found[1], orders[1]) == [Difference(place % len(actions), str(lost), None)]


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_a_cut_step(name, shape):
    """A step cut near its end keeps its name, and what is missing is listed to the end."""
    orders = find(name).orders(shape)
    found = {rank: actions[: len(actions) * 4 // 5] for rank, actions in orders.items()}
    verdict = detect(found, shape)
    assert name in (verdict.best.family.name, *verdict.also)
    assert verdict.best.expected == {rank: seen(actions, found[rank]) for rank, actions in orders.items()}
    for rank, actions in orders.items():
        expected = [Difference(k, str(actions[k]), None) for k in range(len(found[rank]), len(actions))]
        assert differences(found[rank], actions) == expected


@pytest.mark.parametrize(("name", "shape"), LARGE)
def test_a_step_cut_half_way(name, shape):
    """Six tenths of a step are too few to name it; the nearest is the right one and is told as such."""
    orders = find(name).orders(shape)
    found = {rank: actions[: len(actions) * 6 // 10] for rank, actions in orders.items()}
    pairs = [(len(found[rank]), len(seen(actions, found[rank]))) for rank, actions in orders.items()]
    likeness = sum(2 * keep / (keep + whole) for keep, whole in pairs) / len(pairs)
    verdict = detect(found, shape)
    assert verdict.best is None
    nearest = verdict.runner_up.family.name
    assert nearest in coinciding(orders, shape)
    assert verdict.runner_up.confidence == pytest.approx(likeness)
    assert verdict.reason == f"nothing fits: the nearest, {nearest}, has a likeness of {likeness:.2f}"


@settings(deadline=None, max_examples=200)
@given(pipelines(), st.randoms(use_true_random=True))
def test_losses_never_make_a_wrong_name(pipeline, random):
    """With a tenth of all actions lost at random the answer is a schedule that can have the true order, or none."""
    shape, orders = pipeline
    found = lossy(orders, random)
    assume(all(found.values()))
    assume(not looks_like_an_evaluation(orders, found))
    verdict = detect(found, shape)
    if verdict.best is not None:
        assert verdict.best.family.name in coinciding(orders, shape, found)
        assert verdict.runner_up is None or verdict.runner_up.confidence < verdict.best.confidence


def test_a_torn_rank_does_not_hide_a_variant():
    """What one rank lost does not keep the others from telling which variant it is, or another schedule is named."""
    shape = Shape(3, 3, 2)
    _, in_order = find("looped-bfs").variants(shape, EVEN)
    orders = whole(shape, in_order.order)
    found = orders | {0: orders[0][:8]}
    assert "interleaved-1f1b" not in coinciding(orders, shape)
    verdict = detect(found, shape)
    assert (verdict.best.family.name, verdict.best.expected) == ("looped-bfs", orders)
    assert verdict.best.confidence == pytest.approx((2 * 8 / 20 + 1 + 1) / 3)


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
    assert verdict.reason == "the order of gpipe"


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


def test_an_order_that_nobody_knows():
    """An order that only lies near a schedule is not named after it: twice the warm-up, where only 1f1b is known."""
    shape = Shape(4, 8)
    families = [find(name) for name in ("1f1b", "gpipe", "naive")]
    verdict = detect(find("eager-1f1b").orders(shape), shape, families)
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


@pytest.mark.parametrize(
    ("found", "name", "kinds"),
    [("0F0 B0", "looped-bfs", "F, B"), ("0F0 I0 W0", "1f1b", "F, I, W"), ("0F0", "gpipe", "F")],
    ids=["chunks", "split backward", "no backward"],
)
def test_a_shape_that_no_schedule_has(found, name, kinds):
    """Where every schedule is impossible, for its shape or for the kinds of actions, these are the reason."""
    verdict = detect({0: order(found)}, Shape(4, 8), [find(name)])
    assert (verdict.best, verdict.also, verdict.runner_up) == (None, (), None)
    assert verdict.reason == f"no known schedule has p=4 m=8 v=1 and actions of {kinds}"


@pytest.mark.parametrize("name", ["1f1b", "interleaved-1f1b", "zb-h1", "zb-v"])
def test_one_action_of_an_odd_kind(name):
    """A backward that was read as a part of one, or a part as a whole, does not cost the name."""
    shape = Shape(4, 8, find(name).chunks)
    orders = find(name).orders(shape)
    odd = {Kind.B: Kind.I, Kind.I: Kind.B}
    at = max(k for k, action in enumerate(orders[1]) if action.kind in odd)
    wrong = orders[1][at]._replace(kind=odd[orders[1][at].kind])
    verdict = detect(orders | {1: (*orders[1][:at], wrong, *orders[1][at + 1 :])}, shape)
    assert verdict.best is not None
    assert (verdict.best.family.name, verdict.best.expected) == (name, orders)


def test_nothing_to_compare():
    """Without any action no schedule is likely."""
    verdict = detect({0: ()}, Shape(2, 4))
    assert (verdict.best, verdict.reason) == (None, "there is no action to compare")


def test_orders_of_slices():
    """Slices are told by the order, and no schedule of whole micro-batches is compared with a sliced one."""
    shape = Shape(4, 8, slices=3)
    verdict = detect(find("seq1f1b").orders(shape), shape)
    assert (verdict.best.family.name, verdict.also) == ("seq1f1b", ())
    assert verdict.runner_up is None


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

    def variants(*given):
        for variant in interleaved.variants(*given):
            asked.append(variant)
            yield variant

    found = {0: interleaved.orders(shape)[0][:held]}
    verdict = detect(found, shape, [replace(interleaved, variants=variants)])
    assert len(asked) == 1
    assert (verdict.best is None) == (held is not None)


def split_up(orders: Orders, *, apart: bool = False) -> Orders:
    """The orders with every backward as an I and a W, one behind the other, or `apart` by the action that follows."""
    found = {}
    for rank, actions in orders.items():
        parts, put_off = [], []
        for a in actions:
            parts += [a._replace(kind=Kind.I)] if a.kind == Kind.B else [a]
            parts += put_off if apart else []
            put_off = [a._replace(kind=Kind.W)] if a.kind == Kind.B else []
            parts += [] if apart else put_off
        found[rank] = (*parts, *(put_off if apart else ()))
    return found


@pytest.mark.parametrize("name", ["gpipe", "interleaved-1f1b", "looped-bfs"])
def test_backwards_of_two_calls_are_taken_for_one(name):
    """Where each I is followed by its own W and no split schedule fits, the order is that of whole backwards."""
    shape = Shape(4, 8, find(name).chunks)
    orders = find(name).orders(shape)
    verdict = detect(split_up(orders), shape)
    assert verdict.best is not None
    assert (verdict.best.family.name, verdict.best.confidence, verdict.best.expected) == (name, 1, orders)


def test_backwards_in_one_are_only_a_second_guess():
    """Two calls that something else stands between are two, and an order that is not right even so has no name."""
    shape = Shape(4, 8)
    orders = find("gpipe").orders(shape)
    apart = detect(split_up(orders, apart=True), shape)
    assert apart.best is None or apart.best.family.name != "gpipe"
    less = {rank: actions[:-2] if rank == 1 else actions for rank, actions in split_up(orders).items()}
    assert detect(less, shape).best is None


@pytest.mark.parametrize("name", ["zb-h1", "zb-v"])
def test_a_split_order_keeps_its_name(name):
    """What fits as it is is not joined, though some weight gradients follow their input gradients directly."""
    shape = Shape(4, 8, find(name).chunks)
    orders = find(name).orders(shape)
    assert any(b == a._replace(kind=Kind.W) for o in orders.values() for a, b in pairwise(o) if a.kind == Kind.I)
    assert detect(orders, shape).best.expected == orders


def test_a_split_order_may_show_whole_backwards():
    """An I that its own W follows directly may show as one backward, of one micro-batch and not of the next."""
    shape = Shape(4, 8)
    orders = find("zb-h1").orders(shape)
    whole_ones = {}
    for rank, actions in orders.items():
        pairs = [(a, b) for a, b in pairwise(actions) if a.kind == Kind.I and b == a._replace(kind=Kind.W)][::2]
        joined = {weight: weight._replace(kind=Kind.B) for _, weight in pairs}
        whole_ones[rank] = tuple(joined.get(a, a) for a in actions if a not in {first for first, _ in pairs})
    assert whole_ones != orders
    verdict = detect(whole_ones, shape)
    assert (verdict.best.family.name, verdict.best.confidence, verdict.best.expected) == ("zb-h1", 1, whole_ones)


def test_all_of_the_first_stages_backward_is_its_weight_gradient():
    """Stage 0 has no I, so that its W may show as a whole backward, some of them or all."""
    shape = Shape(4, 8)
    orders = find("zb-h1").orders(shape)
    for those in ({0, 3, 7}, set(range(8))):
        first = tuple(
            a._replace(kind=Kind.B) if a.kind == Kind.W and a.microbatch in those else a
            for a in orders[0] if a.kind != Kind.I
        )  # fmt: skip
        verdict = detect(orders | {0: first}, shape)
        assert (verdict.best.family.name, verdict.best.confidence) == ("zb-h1", 1)
        assert verdict.best.expected == orders | {0: first}
