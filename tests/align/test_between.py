"""Messages between the trainings of two steps are left out where one of them can be no training's."""

from __future__ import annotations

import pytest

from bubblescope.align.between import without_those_between
from bubblescope.model.job import Plan
from tests.building import messages_of, timeline

PLAN = Plan(world_size=2, pp=2, source="stated", pipelines=(((0,), (1,)),), tp=1, dp=1, cp=1, ep=1)
STEPS = [(0, 0, 100), (1, 100, 200)]
FIRST = [("send 1", 20, 25, 0), ("recv 1", 31, 50, 0), ("send 1", 120, 125, 1), ("recv 1", 131, 150, 1)]
LAST = [("recv 0", 5, 25, 0), ("send 0", 45, 50, 0), ("recv 0", 96, 125, 1), ("send 0", 145, 150, 1)]
EVALUATED = [("send 1", 72, 80, 0), ("send 1", 81, 90, 0)], [("recv 0", 71, 80, 1), ("recv 0", 81, 90, 1)]


def gone(first=(), last=()):
    """What is of no step of two ranks that train twice and have other messages beside."""
    lines = {}
    for rank, acts, sent in ((0, (10, 60), [*FIRST, *first]), (1, (25, 35), [*LAST, *last])):
        actions = [
            (f"{rank}{kind}0", 100 * k + at, 100 * k + at + 10, k)
            for k in (0, 1)
            for kind, at in zip("FB", acts, strict=True)
        ]
        lines[rank] = timeline(rank, actions=actions, steps=STEPS, messages=sorted(sent, key=lambda each: each[1]))
    left = without_those_between(lines, PLAN)
    rows = {rank: [i for i, step in enumerate(t.messages.step.tolist()) if step < 0] for rank, t in left.items()}
    return [[messages_of(left[rank])[i][:2] for i in mine] for rank, mine in rows.items()], left is lines


def test_those_of_an_evaluation_go():
    """The sends behind the first rank's training; the last rank keeps its own gradient and its next input."""
    assert gone(*EVALUATED) == ([[("send 1", 72), ("send 1", 81)], [("recv 0", 71), ("recv 0", 81)]], False)


@pytest.mark.parametrize("last", [[], [("recv 0", 92, 130, 1)]], ids=["plain", "posted ahead"])
def test_those_of_trainings_stay(last):
    """Receives alone are no evaluation's: they may be posted ahead."""
    assert gone(last=last) == ([[], []], True)
