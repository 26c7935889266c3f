"""Chunks that nobody named: micro-batches are followed from stage to stage."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.align.follow import follow
from bubblescope.model.actions import Kind
from bubblescope.schedules.family import EVEN, Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.replay import replay
from tests.building import timeline

LENGTH = {Kind.F: 10, Kind.B: 20, Kind.I: 10, Kind.W: 10}


def unnamed(orders, stages, *, peers, batched=False):
    """The timelines that ranks leave which run these orders, stages unknown and forwards numbered as they come.

    With `batched` a rank sends the outputs of a forward and the backward behind it together, gradient first.
    """
    home = {a.stage: rank for rank, order in enumerate(orders) for a in order}
    run = replay(dict(enumerate(orders)), {a: LENGTH[a.kind] for o in orders for a in o}, last_stage=stages - 1)
    made = []
    for rank, order in enumerate(orders):
        number = {(a.stage, a.microbatch): i for i, a in enumerate(a for a in order if a.kind == Kind.F)}
        acts = [(f"?{a.kind.name}{number[a.stage, a.microbatch]}", run.start[a], run.end[a]) for a in order]
        sends, pending = [], []
        for a, after in zip(order, (*order[1:], None), strict=True):
            target = a.stage + (1 if a.kind == Kind.F else -1)
            if a.kind != Kind.W and 0 <= target < stages and home[target] != rank:
                pending.append((a, home[target]))
            if batched and a.kind == Kind.F and after is not None and after.kind != Kind.F:
                continue
            sends += [(f"send {to if peers else '?'}", run.end[a], run.end[a] + 1) for _, to in reversed(pending)]
            pending = []
        made.append(timeline(rank, actions=acts, messages=sends))
    return made


def followed(line):
    """What following tells, with rank r at position r."""
    return follow(line, {t.rank: t.rank for t in line})


def told(orders, found):
    """Whether the identities of the one step are those of the orders; a backward goes by its forward."""
    return all(
        [(a.kind, a.stage, a.microbatch) for a in order]
        == list(zip(step.kind.tolist(), step.stage.tolist(), step.microbatch.tolist(), strict=True))
        for order, (step,) in zip(orders, found, strict=True)
    )


def orders_of(name, p, m, v):
    """The usual order of a schedule, and its number of stages."""
    family, shape = find(name), Shape(p, m, v)
    variant = next(iter(family.variants(shape, EVEN)))
    return [variant.order(rank) for rank in range(p)], p * v


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(("1f1b", "gpipe", "interleaved-1f1b", "looped-bfs", "interleaved-zb", "zb-h1")),
    st.tuples(st.integers(2, 5), st.integers(1, 3), st.integers(2, 3)), st.booleans(), st.booleans(),
)  # fmt: skip
def test_stages_that_go_round_the_ranks(name, size, peers, batched):
    """Every forward and backward of a looping schedule finds its stage and micro-batch, named peers or not."""
    p, rounds, v = size
    orders, stages = orders_of(name, p, p * rounds, v if find(name).chunks > 1 else 1)
    found = followed(unnamed(orders, stages, peers=peers, batched=batched))
    assert found is not None
    assert told(orders, found)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(("zb-v", "v-half", "v-min")), st.integers(2, 5), st.integers(1, 2))
def test_stages_that_turn_back(name, p, rounds):
    """Where two stages that follow each other share a rank, the chain goes on without a message."""
    orders, stages = orders_of(name, p, 2 * p * rounds, 2)
    found = followed(unnamed(orders, stages, peers=True))
    assert found is not None
    assert told(orders, found)


def test_two_ranks_need_no_peers_to_turn_back():
    """With two ranks there is only one other to send to."""
    orders, stages = orders_of("zb-v", 2, 4, 2)
    found = followed(unnamed(orders, stages, peers=False))
    assert found is not None
    assert told(orders, found)


@pytest.mark.parametrize(
    "sends",
    [[], [("send 1", 11, 12)], [("send 1", 1, 2), ("send 1", 11, 12)]],
    ids=["no message", "one lost", "one before any action"],
)
def test_messages_that_contradict_each_other_tell_nothing(sends):
    """Rather no stage than a wrong one."""
    line = [
        timeline(0, actions=[("?F0", 1, 10), ("?F1", 10, 20), ("?B0", 40, 60), ("?B1", 60, 80)], messages=sends),
        timeline(1, actions=[("?F0", 10, 20), ("?B0", 20, 40), ("?F1", 40, 50), ("?B1", 50, 60)],
                 messages=[("send 0", 41, 42), ("send 0", 61, 62)]),
    ]  # fmt: skip
    assert followed(line) is None
