"""Jobs for the tests of the analysis: what `tests.building` makes, plus holes, strays and collectives.

`one_f_one_b()` is the job that most tests start from. F takes 10 and B 20, m is 2:

         0    10   20   30   40   50   60   70   80   90
    0    |0F0 |0F1 |         |0B0      |    |0B1      |
    1         |1F0 |1B0      |1F1 |1B1      |

Each rank works 60 of 90, so the bubble is 1/3, as (p-1)/(m+p-1) says.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from bubblescope.analysis.assemble import assemble
from bubblescope.analysis.study import study
from bubblescope.model.job import Job
from bubblescope.model.options import Options
from bubblescope.model.report import Report
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Collectives, RankTimeline, Work
from bubblescope.model.trace import CommArgs
from tests.building import job, timeline

__all__ = [
    "RANK_0",
    "RANK_1",
    "Call",
    "again",
    "call",
    "hidden",
    "job",
    "one_f_one_b",
    "rank",
    "report",
    "shifted",
    "steps",
    "without",
]

RANK_0 = (("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 40, 60), ("0B1", 70, 90))
RANK_1 = (("1F0", 10, 20), ("1B0", 20, 40), ("1F1", 40, 50), ("1B1", 50, 70))


class Call(NamedTuple):
    """A collective; `asked` is the action that asked for it, `step` the row of its step."""

    args: CommArgs
    start: int
    end: int
    asked: str
    step: int
    bytes: int


def call(description, start, end, asked="", *, ranks=(), op="all_reduce", group="", step=0, size=-1) -> Call:
    """A collective of a group that is described as `tp`, `dp` or the like."""
    return Call(CommArgs(op=op, group=group, description=description, ranks=ranks), start, end, asked, step, size)


def rank(
    number: int,
    actions: Sequence[tuple] = (),
    *,
    work: Sequence[tuple[str, int, int]] = (),
    stray: Sequence[tuple[int, int]] = (),
    calls: Sequence[Call] = (),
    optimizer: Sequence[tuple[int, int]] = (),
    copies: Sequence[tuple[int, int]] = (),
    **others,
) -> RankTimeline:
    """A rank.

    Args:
        number: its rank.
        actions: ("0F0", start, end), with the row of the step as a fourth where it is not 0.
        work: ("0F0", start, end) where an action's work has holes; else each action works from start to end.
        stray: (start, end) of work of no action.
        calls: collectives.
        optimizer: (start, end) of the optimizer's work.
        copies: (start, end) of copies between host and device.
        others: messages and steps, as `tests.building.timeline` takes them; all ranks are of one host.
    """
    built = timeline(number, actions=actions, **{"host": "node", **others})
    names = [row[0] for row in actions]
    rows = [(s, e, names.index(name)) for name, s, e in work]
    rows += [] if work else zip(built.work.start, built.work.end, built.work.action, strict=True)
    rows += [(s, e, -1) for s, e in stray]
    shared = [
        (c.start, c.end, names.index(c.asked) if c.asked else -1, c.step, i, c.bytes)
        for i, c in enumerate(calls, start=1)
    ]
    built = dataclasses.replace(
        built,
        work=_block(Work, rows),
        collectives=_block(Collectives, shared),
        calls=(*built.calls[:1], *(c.args for c in calls)),
        optimizer=_spans(optimizer),
        copies=_spans(copies),
    )
    built.self_check()
    return built


def _spans(rows: Sequence[tuple[int, int]]) -> Spans:
    return Spans.of(*(zip(*rows, strict=True) if rows else ((), ())))


def _block(cls, rows: Sequence[tuple[int, ...]]):
    return cls(*zip(*rows, strict=True)) if rows else cls.empty()


def again(rows: Sequence[tuple], times: int, every: int = 100) -> list[tuple]:
    """The rows of one step, repeated in `times` steps."""
    return [(name, s + k * every, e + k * every, k) for k in range(times) for name, s, e in rows]


def steps(times: int, every: int = 100) -> list[tuple[int, int, int]]:
    """(number, start, end) of steps that follow each other."""
    return [(k, k * every, (k + 1) * every) for k in range(times)]


def shifted(rows: Sequence[tuple], by: int) -> list[tuple]:
    """The rows on a clock that is `by` ahead."""
    return [(name, s + by, e + by, *rest) for name, s, e, *rest in rows]


def without(rows: Sequence[tuple], *names: str) -> list[tuple]:
    """The rows less those of some actions."""
    return [row for row in rows if row[0] not in names]


def one_f_one_b(*, times: int = 1, every: int = 100, skew: int = 0) -> Job:
    """The job of the docstring above; the clock of rank 1 is `skew` ahead."""
    lines = {0: RANK_0, 1: RANK_1}
    return job(
        *(rank(r, shifted(again(rows, times, every), r * skew), steps=steps(times, every)) for r, rows in lines.items())
    )


def hidden(whole: Job, *ranks: int) -> Job:
    """The job without the traces of some ranks."""
    return dataclasses.replace(whole, timelines={r: t for r, t in whole.timelines.items() if r not in ranks})


def report(of: Job, **options) -> Report:
    """The report of a job."""
    asked = Options(**options)
    return assemble(study(of, asked), asked)
