"""Stages and micro-batches of actions that nobody labelled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.align.unlabelled import identified
from bubblescope.model.job import Plan
from bubblescope.model.options import Options
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from tests.align.nameless import ran
from tests.building import actions_of, timeline

UNTOLD = Options()


def planned(*pipelines):
    """A plan of these pipelines, each a tuple of ranks a position."""
    world = 1 + max((rank for line in pipelines for ranks in line for rank in ranks), default=0)
    pp = len(pipelines[0]) if pipelines else 1
    return Plan(world_size=world, pp=pp, tp=None, dp=None, cp=None, ep=None, source="test", pipelines=pipelines)


def names(timeline):
    """The names of a rank's actions, in order."""
    return [name for name, *_ in actions_of(timeline)]


def texts(order):
    """The same of an order."""
    return [str(action) for action in order]


def moved(line, by):
    """The timelines of a replica whose ranks and peers are so many higher."""
    return {
        rank + by: replace(t, rank=rank + by, messages=t.messages.replace(peer=t.messages.peer + by))
        for rank, t in line.items()
    }


ONE = planned(((0,), (1,), (2,)))


def test_a_whole_pipeline_is_followed():
    """Every action of every step gets its stage and micro-batch, and there is no number of chunks left to tell."""
    line, orders = ran(find("interleaved-1f1b"), Shape(3, 6, 2), steps=2)
    found, count = identified(line, ONE, UNTOLD)
    assert count is None
    assert {at: names(t) for at, t in found.items()} == {at: texts(order) * 2 for at, order in orders.items()}


def test_labelled_ranks_stay():
    """Where a single label tells a stage the labels are left to tell all."""
    line, _ = ran(find("interleaved-1f1b"), Shape(3, 6, 2))
    stage = np.full(len(line[2].actions), -1)
    stage[0] = 2
    for ids in ({"stage": stage}, {"chunk": stage}):
        given_ = line | {2: replace(line[2], actions=line[2].actions.replace(**ids))}
        assert identified(given_, ONE, UNTOLD) == (given_, None)


def test_without_pipelines_nothing_is_told():
    """There is no position to have a stage."""
    line, _ = ran(find("interleaved-1f1b"), Shape(3, 6, 2))
    assert identified(line, planned(), UNTOLD) == (line, None)
    assert identified(line, planned(), Options(virtual=2)) == (line, None)


@pytest.mark.parametrize("present", [(0, 4, 2), (3, 1, 5), (0, 1, 5)], ids=str)
def test_replicas_speak_for_each_other(present):
    """Positions that were recorded in one replica or another are compared with the orders of schedules together."""
    line, orders = ran(find("zb-v"), Shape(3, 6, 2))
    both = line | moved(line, 3)
    plan = planned(((0,), (1,), (2,)), ((3,), (4,), (5,)))
    found, count = identified({r: both[r] for r in present}, plan, UNTOLD)
    assert count is None
    assert {r: names(t) for r, t in found.items()} == {r: texts(orders[r % 3]) for r in present}


def test_a_whole_replica_speaks_for_one_that_is_not():
    """What following told of one pipeline names the actions of the recorded ranks of another."""
    line, orders = ran(find("interleaved-1f1b"), Shape(3, 6, 2))
    both = line | moved(line, 3)
    del both[1]
    found, count = identified(both, planned(((0,), (1,), (2,)), ((3,), (4,), (5,))), UNTOLD)
    assert count is None
    assert {r: names(t) for r, t in found.items()} == {r: texts(orders[r % 3]) for r in (0, 2, 3, 4, 5)}


def test_tensor_parallel_ranks_speak_for_each_other():
    """One recorded rank of each stage is enough, and names the actions of the others."""
    line, orders = ran(find("interleaved-1f1b"), Shape(2, 4, 2))
    twins = {0: line[0], 1: replace(line[0], rank=1), 3: replace(line[1], rank=3)}
    found, count = identified(twins, planned(((0, 1), (2, 3))), UNTOLD)
    assert count is None
    assert {r: names(t) for r, t in found.items()} == {0: texts(orders[0]), 1: texts(orders[0]), 3: texts(orders[1])}


def cut(timeline, lost):
    """The timeline without its last actions, and without what it posted from there on."""
    kept = len(timeline.actions) - lost
    keep = timeline.messages.start < timeline.actions.start[kept]
    return replace(
        timeline, actions=timeline.actions.take(slice(kept)), work=timeline.work.take(timeline.work.action < kept),
        messages=timeline.messages.take(keep),
    )  # fmt: skip


def begun(timeline, lost):
    """The timeline without its first actions, and without what it posted until then."""
    messages = timeline.messages.take(timeline.messages.after >= lost)
    return replace(
        timeline, actions=timeline.actions.take(slice(lost, None)), work=timeline.work.take(slice(0)),
        messages=messages.replace(after=messages.after - lost),
    )  # fmt: skip


@pytest.mark.parametrize("positions", [(0, 1, 2), (1,)], ids=["followed", "by its order"])
def test_a_step_that_was_cut_short_goes_by_a_whole_one(positions):
    """The actions of a last step without its end get the names that the same places have in a whole step."""
    line, orders = ran(find("interleaved-1f1b"), Shape(3, 6, 2), steps=2)
    found, count = identified({at: cut(line[at], 7) for at in positions}, ONE, UNTOLD)
    assert count is None
    assert {at: names(t) for at, t in found.items()} == {at: texts((orders[at] * 2)[:-7]) for at in positions}


def test_a_step_of_other_kinds_stays_unnamed():
    """What does not begin like a whole step has no names to go by."""
    line, orders = ran(find("interleaved-1f1b"), Shape(3, 6, 2), steps=2)
    late = {at: begun(t, 5) for at, t in line.items()}
    found, _ = identified(late, ONE, UNTOLD)
    whole = [texts(order) for order in orders.values()]
    assert [names(t)[-len(o) :] for t, o in zip(found.values(), whole, strict=True)] == whole
    assert all(name.startswith("?") for t in found.values() for name in names(t)[:3])


def test_a_rank_outside_all_pipelines_stays_unnamed():
    """Where a rank stands nobody knows."""
    line, orders = ran(find("interleaved-1f1b"), Shape(3, 6, 2))
    found, _ = identified(line | {7: replace(line[0], rank=7)}, ONE, UNTOLD)
    assert names(found[0]) == texts(orders[0])
    assert found[7].actions.stage.tolist() == [-1] * len(line[0].actions)


@pytest.mark.parametrize(
    ("options", "expected"), [(UNTOLD, 2), (Options(virtual=3), 3), (Options(virtual=1), None)], ids=str
)
def test_chunks_that_nothing_tells_apart_are_counted(options, expected):
    """Of forwards alone the order of the chunks does not show: how many there are is said, the user's word first."""
    line, _ = ran(find("forward-only"), Shape(3, 6, 2))
    known = {at: line[at] for at in (0, 2)}
    assert identified(known, ONE, options) == (known, expected)


def test_chunks_are_counted_by_what_orders_fit():
    """An inner rank has as many messages whatever it holds: the fewest chunks that an order has are named."""
    line, _ = ran(find("forward-only"), Shape(3, 6, 2))
    assert identified({1: line[1]}, ONE, UNTOLD) == ({1: line[1]}, 2)


def test_chunks_are_counted_by_the_messages_of_the_ends():
    """Where no order fits, an end that is half a message a forward short holds two chunks."""
    sends = [(f"send {r}", at, at + 1) for at in range(10, 70, 10) for r in (1, 1)]
    odd = timeline(0, actions=[("?F0", 0, 10), ("?B0", 10, 20)], messages=sends[:3])
    assert identified({0: odd}, planned(((0,), (1,))), UNTOLD) == ({0: odd}, 2)
    assert identified({1: odd}, planned(((0,), (1,), (2,))), UNTOLD) == ({1: odd}, None)  # no end
    single = timeline(0, actions=[("?F0", 0, 10), ("?B0", 10, 20)], messages=sends[:2])
    assert identified({0: single}, planned(((0,), (1,))), UNTOLD) == ({0: single}, None)


@st.composite
def recorded(draw):
    """Two replicas of a schedule with a few of their ranks recorded, each with the order that it ran."""
    name = draw(st.sampled_from(("1f1b", "gpipe", "zb-h1", "interleaved-1f1b", "looped-bfs", "interleaved-zb", "zb-v")))
    p, v = draw(st.integers(2, 4)), find(name).chunks if draw(st.booleans()) else 2
    shape = Shape(p, p * draw(st.integers(1, 2)), v if find(name).chunks > 1 else 1)
    line, orders = ran(find(name), shape, steps=draw(st.integers(1, 2)))
    ranks = draw(st.sets(st.integers(0, 2 * p - 1), min_size=1))
    both = line | moved(line, p)
    lost = draw(st.integers(0, 3))
    kept = {r: cut(both[r], lost) if lost and len(both[r].steps) > 1 else both[r] for r in sorted(ranks)}
    return kept, [tuple((r,) for r in range(first, first + p)) for first in (0, p)], {r: orders[r % p] for r in ranks}


@settings(max_examples=80)
@given(recorded())
def test_what_is_told_is_true(run):
    """Whatever was recorded: the names are those of the orders that ran, or there is none."""
    line, pipelines, orders = run
    found, _ = identified(line, planned(*pipelines), UNTOLD)
    for rank, mine in found.items():
        told, truth = names(mine), texts(orders[rank]) * len(mine.steps)
        assert told == truth[: len(told)] or set(mine.actions.stage.tolist()) == {-1}
