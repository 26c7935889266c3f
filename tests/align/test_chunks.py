"""Stages of chunks that labels count on their own rank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.resolve import resolve
from bubblescope.model.options import Options
from bubblescope.model.placement import loop, vee
from bubblescope.model.timeline import Messages
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from tests.align.nameless import ran
from tests.building import group, timeline


def chunked(rank, names, p, messages=()):
    """A timeline whose actions `c0F1` name the chunk instead of the stage, 10 each."""
    rows = [("?" + name[2:], 10 * i, 10 * i + 9) for i, name in enumerate(names)]
    built = timeline(rank, actions=rows, messages=messages, groups=[group("1", "mesh_pp", *range(p))])
    chunk = np.array([int(name[1]) for name in names])
    return replace(built, actions=built.actions.replace(chunk=chunk))


def stages(built, rank):
    """The stages of a rank's actions."""
    return built.timelines[rank].actions.stage.tolist()


LOOP = ["c0F0", "c0F1", "c1F0", "c1F1", "c1B0", "c1B1", "c0B0", "c0B1"]
DOWN = ["c0F0", "c0F1", "c0F2", "c1F0", "c1B0", "c0B0"]
TURN = ["c0F0", "c1F0", "c1B0", "c0F1", "c1F1", "c0B0"]


def test_stages_that_loop():
    """Where every rank runs as many forwards before its second chunk, chunk c of position r is stage c p + r."""
    built = resolve({r: chunked(r, LOOP, 2) for r in range(2)}, Options())
    assert stages(built, 0) == [0, 0, 2, 2, 2, 2, 0, 0]
    assert stages(built, 1) == [1, 1, 3, 3, 3, 3, 1, 1]
    assert built.placement == {0: (0, 2), 1: (1, 3)}
    assert built.untold_chunks is None


def test_stages_that_fold_back():
    """Where the last rank goes on at once, chunk 1 runs from it back to the first."""
    built = resolve({0: chunked(0, DOWN, 2), 1: chunked(1, TURN, 2)}, Options())
    assert stages(built, 0) == [0, 0, 0, 3, 3, 0]
    assert stages(built, 1) == [1, 2, 2, 1, 2, 1]


@pytest.mark.parametrize("p", [2, 3, 4])
@pytest.mark.parametrize(("name", "way"), [("interleaved-1f1b", loop), ("zb-v", vee), ("looped-bfs", loop)])
def test_the_way_of_a_schedule(name, way, p):
    """The orders of known schedules tell their own placement, whichever the depth."""
    orders = find(name).orders(Shape(p=p, m=2 * p, v=2))
    held = way(p, 2)
    ranks = {
        r: chunked(r, [f"c{held[r].index(a.stage)}{a.kind.name}{a.microbatch}" for a in order], p)
        for r, order in orders.items()
    }
    built = resolve(ranks, Options())
    assert {r: tuple(sorted(set(stages(built, r)))) for r in ranks} == dict(enumerate(held))


def test_a_message_of_a_chunk():
    """A named send of chunk 1 is that of its stage, so that it finds its action."""
    ranks = {r: chunked(r, LOOP, 2, messages=[("send 0 ?F0", 30, 31)]) for r in range(2)}
    told = {r: replace(t, messages=t.messages.replace(chunk=[1])) for r, t in ranks.items()}
    built = resolve(told, Options())
    assert [built.timelines[r].messages.stage.tolist() for r in range(2)] == [[2], [3]]


def lone(name, shape, at, *, talks):
    """One rank of a schedule, whose labels name chunks; its messages name their peers, or none were recorded."""
    family = find(name)
    built = ran(family, shape, steps=2)[0][at]
    order, held = family.orders(shape)[at], family.placement(shape)[at]
    told = np.array([(held.index(a.stage), a.microbatch) for a in order] * 2).T
    return replace(
        built,
        identity=replace(built.identity, world_size=shape.p, groups=(group("1", "mesh_pp", *range(shape.p)),)),
        actions=built.actions.replace(chunk=told[0], microbatch=told[1]),
        messages=built.messages if talks else Messages.empty(),
    )


WAYS = {"interleaved-1f1b": loop, "interleaved-zb": loop, "looped-bfs": loop}
WAYS |= dict.fromkeys(("zb-v", "v-half", "v-min", "hanayo", "dualpipe-v"), vee)
SHAPES = [Shape(p, m, 2) for p in (2, 3, 4) for m in sorted({2, p, 2 * p})]
LONE = [(name, s, at) for name in WAYS for s in SHAPES if find(name).problem(s) is None for at in range(s.p)]


@pytest.mark.parametrize(("name", "shape", "at"), LONE, ids=lambda x: str(x).removeprefix("Shape"))
def test_one_rank_with_messages_tells_the_way(name, shape, at):
    """Where chunks fold back others talk with others, so that one rank is never taken for one of the other way."""
    built = resolve({at: lone(name, shape, at, talks=True)}, Options())
    assert built.untold_chunks is None
    assert set(stages(built, at)) == set(WAYS[name](shape.p, 2)[at])


@pytest.mark.parametrize(("name", "shape", "at"), LONE, ids=lambda x: str(x).removeprefix("Shape"))
def test_one_rank_without_messages_tells_no_wrong_way(name, shape, at):
    """Its order is that of schedules of one way alone, or the way stays open."""
    built = resolve({at: lone(name, shape, at, talks=False)}, Options())
    told = set(stages(built, at)) == set(WAYS[name](shape.p, 2)[at])
    assert told or built.untold_chunks == 2


def test_one_rank_of_an_order_of_no_schedule():
    """Without messages nothing tells whether its chunks go round the ranks, which a warning says."""
    built = resolve({0: chunked(0, ["c0F0", "c1F0", "c0F1", "c0B0", "c1F1", "c1B1", "c1B0", "c0B1"], 2)}, Options())
    assert built.untold_chunks == 2
    (finding,) = built.findings
    assert finding.code == "untold-chunks"
    assert "go round the ranks or fold back" in finding.message
