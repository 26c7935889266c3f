"""What bounds the clocks of two ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.links import links
from bubblescope.engine import analyze
from bubblescope.model.job import Match
from tests.building import timeline


def between(mine: list[int], theirs: list[int], *, on_gpu=True) -> list[bool]:
    """Which messages are `together` of two that ranks 0 and 1 exchange, a way each, by the kernels that hold them.

    Any further kernels hold messages of which the other half was not found.
    """
    ranks = {}
    for rank, kernels in ((0, mine), (1, theirs)):
        ways = ["send", "recv"] if rank == 0 else ["recv", "send"]
        more = ["send"] * (len(kernels) - 2)
        rows = [(f"{way} {1 - rank} 0F{i}", 10 * i, 10 * i + 9) for i, way in enumerate(ways + more)]
        built = timeline(rank, messages=rows)
        ranks[rank] = replace(built, on_gpu=on_gpu, messages=built.messages.replace(kernel=np.array(kernels)))
    matches = {rank: _matched(1 - rank, len(ranks[rank].messages)) for rank in ranks}
    found = links(ranks, matches)
    return found.together[np.argsort(found.first)].tolist()


def _matched(partner: int, count: int) -> Match:
    """The first two messages of each rank are the halves of each other's."""
    known = np.arange(count) < 2
    return Match(np.full(count, -1), np.where(known, partner, -1), np.where(known, np.arange(count), -1))


@pytest.mark.parametrize(
    ("mine", "theirs", "together"),
    [
        ([0, 1], [0, 1], [True, True]),
        ([0, 0], [0, 0], [True, True]),
        ([0, 0], [0, 1], [False, False]),
        ([0, 0, 0], [0, 0], [False, False]),
        ([0, 1, 1], [0, 1], [True, False]),
    ],
    ids=["apart", "fused on both sides", "fused on one side", "a third message", "a third in one of two"],
)
def test_kernels_that_hold_the_same_messages_end_together(mine, theirs, together):
    """Both ends of a message end together if neither kernel holds a message that the other does not."""
    assert between(mine, theirs) == together


def test_nothing_ends_together_on_a_cpu():
    """Halves of gloo end when somebody asks."""
    assert between([0, 1], [0, 1], on_gpu=False) == [False, False]


def made(*, back: bool = True, **more):
    """The links of two stages by the actions of one micro-batch: its forwards, and its backwards where those count."""
    first = timeline(0, actions=[("0F0", 0, 10), ("0B0", 60, 80)], **more)
    second = timeline(1, actions=[("1F0", 25, 35), ("1B0", 35, 55)], **more)
    needed = np.array([-1, 1 if back else -1])
    makers = {0: (needed, needed), 1: (np.array([0, -1]), np.array([0, -1]))}
    return links({0: first, 1: second}, {}, makers)


def test_actions_bound_clocks():
    """None begins before the one that makes its input ended."""
    found = made()
    order = np.argsort(found.first)
    assert found.first[order].tolist() == [0, 1]
    assert found.second[order].tolist() == [1, 0]
    assert found.start_first[order].tolist() == found.end_first[order].tolist() == [10, 55]
    assert found.start_second[order].tolist() == found.end_second[order].tolist() == [25, 60]
    assert not found.both.any()
    assert not found.together.any()


def test_actions_that_bound_clocks_one_way_are_not_believed():
    """Nothing could contradict them: a guess that is wrong would move a clock by any amount."""
    assert len(made(back=False)) == 0


@pytest.mark.parametrize("name", ["cuda_graph_1f1b_annotated", "cuda_graph_1f1b_plain"])
def test_actions_told_wrongly_leave_clocks_as_recorded(shared, name):
    """A step in one piece is taken for one backward, which the next stage cannot have waited for."""
    report = analyze(shared / "field" / name).report
    assert report.clock.method == "recorded"
    assert set(report.clock.offsets_ns.values()) == {0}
    assert report.bubble.measured == pytest.approx(0.2869, abs=0.001)
    assert "clock-uncertain" not in {f.code for f in report.quality.findings}


def test_actions_of_one_clock_bound_nothing():
    """It is right whatever they seem to say."""
    assert len(made(host="node")) == 0


def after(begun: int) -> int:
    """How many actions of the second rank, begun at this moment of 1 ms steps, are believed beside messages both ways.

    By these its clock is ahead by 0 to 3 ms, and it needs the action that ended at 10 ms.
    """
    ms = 1_000_000
    first = timeline(
        0, actions=[("0F0", 0, 10 * ms)], messages=[("send 1", 10 * ms, 11 * ms), ("recv 1", 40 * ms, 43 * ms)]
    )
    second = timeline(
        1,
        actions=[("1F0", begun * ms, 60 * ms)],
        messages=[("recv 0", 9 * ms, 13 * ms), ("send 0", 43 * ms, 44 * ms)],
    )
    pairs = {0: Match([-1, -1], [1, 1], [0, 1]), 1: Match([-1, -1], [0, 0], [0, 1])}
    makers = {0: (np.array([-1]), np.array([-1])), 1: (np.array([0]), np.array([0]))}
    return len(links({0: first, 1: second}, pairs, makers)) - 2


@pytest.mark.parametrize(("begun", "believed"), [(13, 1), (10, 1), (9, 0)])
def test_actions_that_contradict_messages_are_not_believed(begun, believed):
    """The second clock may be behind by 3 ms at most: what began 1 ms before its input was there still, not earlier."""
    assert after(begun) == believed
