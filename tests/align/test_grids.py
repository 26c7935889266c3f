"""Which ranks form a pipeline where nothing names one: all that they show decides."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.evidence import by_evidence
from bubblescope.align.grids import by_counting, grids
from bubblescope.align.layout import plan
from bubblescope.align.unnamed import chunks, shortages
from bubblescope.model.actions import Kind
from bubblescope.model.options import Options
from bubblescope.model.timeline import Messages
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from tests.align.nameless import ran
from tests.building import timeline


def nobody_named(name, shape, lanes, *, skew=None, jitter=3_000, steps=2):
    """The ranks of replicas of a pipeline, as `lanes` number them; no message names a peer, each has its own times.

    The actions of a replica are moved together, so that its messages end together and those of others do not.
    """
    dice, ranks = np.random.default_rng(0), {}
    line, _ = ran(find(name), shape, steps=steps)
    for lane in lanes:
        moved = np.cumsum(dice.integers(30_000, 30_000 + jitter, 20_000))
        for at, (rank,) in enumerate(lane):
            one, late = line[at], 0 if skew is None else skew[rank]

            def later(block, late=late, moved=moved):
                return block.replace(start=moved[block.start] + late, end=moved[block.end] + late)

            ranks[rank] = replace(
                one,
                rank=rank,
                actions=later(one.actions),
                messages=later(one.messages).replace(peer=np.full(len(one.messages), -1)),
            )
    return dict(sorted(ranks.items()))


def lines(lanes):
    """The pipelines without the tuples of their positions, sorted."""
    return sorted([rank for (rank,) in lane] for lane in lanes)


def test_the_ways_to_number_ranks():
    """Stages lie far apart, side by side, or as far apart as ranks share a stage."""
    assert [lines(lanes) for lanes in grids(8, 2)] == [
        [[0, 4], [1, 5], [2, 6], [3, 7]],
        [[0, 1], [2, 3], [4, 5], [6, 7]],
        [[0, 2], [1, 3], [4, 6], [5, 7]],
    ]


NAMES = ("1f1b", "gpipe", "interleaved-1f1b", "interleaved-zb", "looped-bfs", "zb-h1", "zb-v", "dualpipe-v", "v-half")
SHAPES = [(name, Shape(p, m, find(name).chunks if "-v" in name or name == "v-half" else v))
          for name in NAMES for p in (2, 3) for m in (p, 2 * p) for v in (1, 2)
          if (v == 2) == (name in {"interleaved-1f1b", "interleaved-zb", "looped-bfs"})]  # fmt: skip
SHAPES = [(name, shape) for name, shape in SHAPES if find(name).problem(shape) is None]


@pytest.mark.parametrize("stride", ["apart", "beside", "between"])
@pytest.mark.parametrize(("name", "shape"), SHAPES, ids=lambda x: str(x).removeprefix("Shape"))
def test_each_grid_is_found(name, shape, stride):
    """However the ranks of four replicas are numbered, whatever the schedule, and though their clocks are far apart."""
    layouts = dict(zip(("apart", "beside", "between"), grids(4 * shape.p, shape.p), strict=False))
    skew = np.random.default_rng(shape.p).integers(0, 40_000_000, 4 * shape.p)
    found = by_counting(nobody_named(name, shape, layouts[stride], skew=skew), 4 * shape.p)
    assert found is not None
    assert lines(found.lanes) == lines(layouts[stride])
    assert not found.level


@pytest.mark.parametrize("order", [(2, 0, 3, 1), (3, 2, 1, 0), (0, 2, 1, 3)])
@pytest.mark.parametrize("name", ["1f1b", "zb-h1", "interleaved-1f1b", "zb-v", "gpipe"])
def test_positions_that_the_numbers_of_ranks_do_not_tell(name, order):
    """The first forwards, and how many ranks run ahead, tell the stages where numbers of ranks mean nothing."""
    shape = Shape(4, 8, 2 if name in {"interleaved-1f1b", "zb-v"} else 1)
    found = by_counting(nobody_named(name, shape, [tuple((rank,) for rank in order)]), 4)
    assert found is not None
    assert lines(found.lanes) == [list(order)]


def test_two_ranks_whose_forwards_may_be_merged():
    """Where stages turn back on a rank, two forwards in a row look like one; the messages show that it is an end."""
    ranks = nobody_named("hanayo", Shape(3, 6, 2), next(grids(6, 3)))
    for rank in (4, 5):
        a = ranks[rank].actions
        keep = np.flatnonzero(np.append(True, (np.diff(a.kind) != 0) | (np.diff(a.step) != 0)))
        messages = ranks[rank].messages
        unknown = messages.replace(after=np.full(len(messages), -1))
        ranks[rank] = replace(ranks[rank], actions=a.take(keep), messages=unknown)
    assert len(ranks[4].actions) < len(ranks[0].actions)
    found = by_counting(ranks, 6)
    assert found is not None
    assert lines(found.lanes) == [[0, 2, 4], [1, 3, 5]]


def muted(ranks):
    """The ranks without what their messages tell: which came first, which way, and when they ended."""
    dice = np.random.default_rng(1)

    def mute(messages):
        ends = np.sort(dice.integers(0, 10**12, len(messages)))
        either = np.full(len(messages), Messages.EITHER)
        return messages.replace(start=ends - 1, end=ends, direction=either, after=np.full(len(messages), -1))

    return {rank: replace(one, messages=mute(one.messages)) for rank, one in ranks.items()}


@pytest.mark.parametrize("stride", [0, 1], ids=["apart", "beside"])
def test_the_ranks_of_a_position_do_the_same(stride):
    """Where all ranks are ends, their clocks are far apart and their messages are mute, the order of actions tells."""
    lanes = list(grids(4, 2))[stride]
    (a, c), (b, d) = [[rank for (rank,) in lane] for lane in lanes]
    late = {a: 0, b: 60_000_000, c: 20_000_000, d: 80_000_000}
    found = by_counting(muted(nobody_named("1f1b", Shape(2, 4), lanes, skew=late)), 4)
    assert found is not None
    assert lines(found.lanes) == lines(lanes)
    assert not found.level


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (1, 3, 0, 2)])
def test_fewer_forwards_are_ahead_from_stage_to_stage(order):
    """Where messages are mute and the inner ranks seem to begin at once, how many they run ahead tells their order."""
    name, shape, lanes = "1f1b", Shape(4, 8), [tuple((rank,) for rank in order)]
    begun = {rank: one.actions.start[0] for rank, one in nobody_named(name, shape, lanes, steps=1).items()}
    late = {rank: 20_000_000 * (0, 1, 1, 2)[at] - begun[rank] for at, rank in enumerate(order)}
    found = by_counting(muted(nobody_named(name, shape, lanes, skew=late, steps=1)), 4)
    assert found is not None
    assert lines(found.lanes) == [list(order)]


def test_messages_of_evaluations_do_not_disturb_the_counts():
    """Neither of one inside a step, of which nothing tells the forwards, nor of one between, which has no backwards."""
    lanes = next(grids(6, 3))
    ranks = nobody_named("1f1b", Shape(3, 6), lanes, steps=5)
    for rank, one in ranks.items():
        a, m = one.actions, one.messages
        again = np.sort(np.concatenate((np.arange(len(m)), np.flatnonzero(m.step == 1))))
        between = (a.step == 3) & (a.kind != Kind.F)
        half = (m.step == 3) & (np.cumsum(m.step == 3) % 2 == 0)
        some = m.replace(after=np.full(len(m), -1))
        ranks[rank] = replace(one, actions=a.take(~between), messages=some.take(again[~half[again]]))
    found = by_counting(ranks, 6)
    assert found is not None
    assert lines(found.lanes) == lines(lanes)


def stepping(*kinds, messages):
    """A rank whose steps hold actions of such kinds and so many messages."""
    rows = [
        (f"?{kind}?", 100 * n + 5 * k, 100 * n + 5 * k + 5, n)
        for n, step in enumerate(kinds)
        for k, kind in enumerate(step)
    ]
    posted = [("either ?", 100 * n + k, 100 * n + k + 1, n) for n, many in enumerate(messages) for k in range(many)]
    steps = [(n, 100 * n, 100 * n + 100) for n in range(len(kinds))]
    return timeline(0, steps=steps, actions=rows, messages=posted)


@pytest.mark.parametrize(
    ("kinds", "inner"),
    [
        (("FFBB", "FFF", "FFBB"), (8, 6, 8)),
        (("FFFFBB", "FFBB", "FFBB"), (12, 8, 8)),
        (("FFIIWW", "FFF", "FIFIWW"), (8, 6, 8)),
        (("FFBB", "", "FFBB"), (8, 6, 8)),  # an evaluation that nothing tells
        (("FFBB", "FFBB", "FFBB"), (8, 14, 8)),  # the same beside a training
    ],
)
def test_evaluations_hide_no_end(kinds, inner):
    """Their forwards have half the messages of a training's; an end of two chunks sends or receives three of four."""
    for lacks in (0, 0.5, 1):
        ranks = {0: stepping(*kinds, messages=[round(many * (1 - lacks / 2)) for many in inner])}
        assert shortages(ranks) == {0: pytest.approx(lacks, abs=0.05)}
        assert chunks(ranks) == (round(1 / lacks) if lacks else None)


def symmetric(rank):
    """A rank of which neither order nor message tells whether it is the first or the last of two."""
    return timeline(
        rank, actions=[("?F0", 0, 10), ("?B0", 20, 30)], messages=[("either ?", 10, 15), ("either ?", 15, 20)]
    )


def test_grids_that_fit_as_well_leave_it_open():
    """Four ranks that all did the same at the same times may be two pipelines in two ways, and a warning says so."""
    ranks = {r: replace(symmetric(r), messages=_sent(symmetric(r).messages)) for r in range(4)}
    found = by_evidence(ranks, 4)
    assert lines(found.lanes) == [[0, 2], [1, 3]]
    assert lines(found.level) == [[0, 1], [2, 3]]
    (finding,) = plan(ranks, Options()).findings
    assert (finding.code, finding.severity) == ("layout-assumed", "warning")
    assert "ranks 0, 2" in finding.message
    assert "ranks 0, 1" in finding.message


def _sent(messages):
    return messages.replace(direction=np.array([Messages.SEND, Messages.RECV]))


def test_partners_hold_one_position():
    """A known group for anything but pipelines is in no pipeline, even where its ranks did the same."""
    ranks = {r: replace(symmetric(r), messages=_sent(symmetric(r).messages)) for r in range(4)}
    groups = {0: (0, 2), 2: (0, 2), 1: (1, 3), 3: (1, 3)}
    told = {
        r: replace(t, calls=(*t.calls, replace(t.calls[0], op="all_reduce", description="mesh_tp", ranks=groups[r])))
        for r, t in ranks.items()
    }
    found = by_counting(told, 4)
    assert found is not None
    assert lines(found.lanes) == [[0, 1], [2, 3]]
    assert not found.level


@pytest.mark.parametrize("stride", [0, 1], ids=["apart", "beside"])
def test_messages_that_end_together_tell_neighbours(stride):
    """Where all ranks are ends and do the same, as of pipelines that run both ways, the ends of messages tell."""
    lanes = list(grids(4, 2))[stride]
    found = by_counting(nobody_named("dualpipe", Shape(2, 4), lanes, jitter=30_000), 4)
    assert found is not None
    assert lines(tuple(tuple(sorted(lane)) for lane in found.lanes)) == lines(lanes)
    assert not found.level
