"""The tables of the summary, each with its denominator; rows that say nothing new are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bubblescope.model.report import Report, SizeBubble, Stage, Step, WorstBubble
from bubblescope.report import wording as words
from bubblescope.report.alike import RankGroup, group_ranks
from bubblescope.report.cause_tables import PHASES, causes, where
from bubblescope.report.table import Table

__all__ = ["tables"]

T = TypeVar("T")

_MOST_ROWS = 8
_MOST_CALLS = 5
_MOST_GAPS = 3


def tables(report: Report) -> tuple[Table, ...]:
    """The tables that have something to say."""
    first = (causes(report), _sizes(report), _stages(report), where(report))
    made = (*first, _ranks(report), _communication(report), _worst(report))
    return tuple(table for table in made if table is not None)


def _sizes(report: Report) -> Table | None:
    """The bubble of each size of steps, where there are several; a size with a single step has none."""
    if len(report.bubble.by_microbatches) < 2:
        return None
    known = {size.microbatches: size for size in report.bubble.by_microbatches}
    whole = [step for step in report.steps if step.complete and step.left_out != "not-asked"]
    trained = [step for step in whole if step.kind in {"training", "mixed"} and step.microbatches is not None]
    rows = []
    for m in sorted({*known, *(step.microbatches for step in trained if step.microbatches is not None)}):
        mine = known[m].steps if m in known else [step.step for step in trained if step.microbatches == m]
        shares = (known[m].measured, known[m].formula) if m in known else (None, None)
        rows.append((str(m), words.rank_list(mine, most=3), *map(words.percent, shares)))
    usual = report.schedule.microbatches
    return Table(
        title="Step sizes",
        denominator=f"bubble by number of micro-batches; the rest of this page is about steps of {usual}",
        align="rlrr",
        headers=("micro-batches", "steps", "bubble", "formula"),
        rows=tuple(rows),
        strong=frozenset(i for i, row in enumerate(rows) if row[0] == str(usual)),
        more=_without([step for step in trained if step.microbatches in known], known.values()) or None,
    )


def _without(trained: Sequence[Step], sizes: Iterable[SizeBubble]) -> str:
    """The steps that have no part in the bubble of their size: the first of all, or with an evaluation inside."""
    measured = {number for size in sizes for number in size.steps}
    out = [step for step in trained if step.step not in measured]
    first, mixed = ([step.step for step in out if (step.kind == "mixed") == held] for held in (False, True))
    parts = [f"{words.steps_named(first)}, the first"] if first else []
    parts += [f"{words.steps_named(mixed)}, with an evaluation inside"] if mixed else []
    return f"without {words.enumerate_words(parts)}" if parts else ""


def _stages(report: Report) -> Table | None:
    if not report.stages:
        return None
    stages = _farthest(report.stages, lambda stage: stage.work_ns)
    split = any(stage.weight_ns is not None for stage in stages)
    chunked = report.layout.virtual > 1
    columns = [("stage", [str(stage.stage) for stage in stages])]
    columns += [("chunk", [str(stage.chunk) for stage in stages])] if chunked else []
    columns += [
        ("ranks", [words.rank_list(stage.ranks, most=3) for stage in stages]),
        *_stage_times(stages, split=split),
    ]
    slowest = report.imbalance.slowest_stage if (report.imbalance.stage_ratio or 0) > 1.05 else None
    return Table(
        title="Stages",
        denominator="ms; work and idle phases a step, the rest a micro-batch; bubble % of the pipeline window",
        align=("rrl" if chunked else "rl") + "r" * (len(columns) - 2 - chunked),
        headers=tuple(name for name, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
        strong=frozenset(index for index, stage in enumerate(stages) if stage.stage == slowest),
        more=_more(len(report.stages) - len(stages), "stages", "--json"),
    )


def _stage_times(stages: Sequence[Stage], *, split: bool) -> list[tuple[str, list[str]]]:
    """Micro-batch times share their digits, and so do step times."""
    brief = _together([[s.forward_ns, s.backward_ns, s.weight_ns] for s in stages])
    long = _together([[s.work_ns, s.warmup_ns, s.steady_ns, s.cooldown_ns] for s in stages])
    columns = [("forward", brief[0]), ("input grad" if split else "backward", brief[1])]
    columns += [("weight grad", brief[2])] if split else []
    columns += [("work", long[0]), ("bubble", [words.percent(stage.bubble) for stage in stages])]
    return [*columns, ("warm-up", long[1]), ("steady", long[2]), ("cool-down", long[3])]


def _together(rows: Sequence[Sequence[float | None]]) -> list[list[str]]:
    """The columns of a block of times, all written with the same digits."""
    width = len(rows[0])
    flat = words.milliseconds([value for row in rows for value in row])
    return [flat[column::width] for column in range(width)]


def _ranks(report: Report) -> Table | None:
    if not report.ranks:
        return None
    groups, within = group_ranks(report.ranks, _MOST_ROWS)
    slow = {rank for straggler in report.imbalance.stragglers for rank in straggler.ranks}
    shown = _farthest(groups, lambda group: group.share("useful"), keep=lambda group: bool(slow & set(group.ranks)))
    piped = report.schedule.name != "none"
    span = "pipeline window" if report.bubble.measured is not None else "seen ranks' span"
    windows = span if report.stages else "step"
    columns = [("ranks", [words.rank_list(group.ranks, most=3) for group in shown])]
    columns += [("stage", [words.rank_list(group.stages, most=2) for group in shown])] if piped else []
    columns += [("window ms", words.milliseconds([group.window_ns for group in shown])), *_parts(shown, piped=piped)]
    shared = "tp/cp/ep and dp where exposed; " if {"tp/cp/ep", "dp"} & {name for name, _ in columns} else ""
    return Table(
        title="Ranks",
        denominator=f"% of the {windows}; {shared}ranks within {words.points(within)} share a row",
        align=("ll" if piped else "l") + "r" * (len(columns) - 1 - piped),
        headers=tuple(name for name, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
        strong=frozenset(index for index, group in enumerate(shown) if slow >= set(group.ranks)),
        more=_more(len(report.ranks) - sum(len(group.ranks) for group in shown), "ranks", "--json or --ranks"),
        detail=True,
    )


_RARE = frozenset({"tp/cp/ep", "dp", "other"})


def _parts(groups: Sequence[RankGroup], *, piped: bool) -> list[tuple[str, list[str]]]:
    names = ["compute", "tp/cp/ep", "dp"]
    if piped:
        unsplit = any(group.share("pp transfer") is None for group in groups)
        names += ["pp"] if unsplit else []
        names += ["pp transfer", "pp wait"]
    names += ["host", "other", *(["bubble"] if piped else [])]
    # Parts that are nothing anywhere only take room, and a narrow terminal has little.
    names = [name for name in names if name not in _RARE or any((group.share(name) or 0) >= 0.0005 for group in groups)]
    # Without a pipeline all compute counts as compute, so that only communication is left over.
    headers = {} if piped else {"other": "other comm"}
    return [(headers.get(name, name), [words.bare_points(group.share(name)) for group in groups]) for name in names]


def _communication(report: Report) -> Table | None:
    if not report.communication:
        return None
    lines = sorted(report.communication, key=lambda line: (-line.exposed_ns, -line.total_ns))[:_MOST_CALLS]
    times = _together([[line.total_ns, line.exposed_ns, line.wait_ns, line.transfer_ns] for line in lines])
    columns = [
        ("group", [line.group for line in lines]),
        ("call", [line.op for line in lines]),
        ("calls", [words.amount(line.calls) for line in lines]),
        *zip(("total", "exposed", "wait", "transfer"), times, strict=True),
        ("bytes", [words.size(line.bytes) for line in lines]),
    ]
    if any(line.bus_bandwidth is not None for line in lines):
        columns.append(("bus bw", [words.bandwidth(line.bus_bandwidth) for line in lines]))
    return Table(
        title="Communication",
        denominator="ms, mean a rank and step; exposed = no compute meanwhile; total = wait + transfer",
        align="ll" + "r" * (len(columns) - 2),
        headers=tuple(name for name, _ in columns),
        rows=tuple(zip(*(cells for _, cells in columns), strict=True)),
        more=_more(len(report.communication) - len(lines), "kinds of call", "--json"),
        detail=True,
    )


def _worst(report: Report) -> Table | None:
    gaps = report.worst_bubbles[:_MOST_GAPS]
    if not gaps:
        return None
    times = [words.milliseconds([gap.duration_ns for gap in gaps]), words.milliseconds([gap.start_ns for gap in gaps])]
    return Table(
        title="Longest idle gaps",
        denominator="ms; start is since the job's first moment; 2F4: stage 2, forward, micro-batch 4",
        align="rrrrrll",
        headers=("idle", "start", "rank", "stage", "step", "phase", "ended by"),
        rows=tuple(_gap(gap, *cells) for gap, cells in zip(gaps, zip(*times, strict=True), strict=True)),
        detail=True,
    )


def _gap(gap: WorstBubble, idle: str, start: str) -> tuple[str, ...]:
    stage = words.ABSENT if gap.stage is None else str(gap.stage)
    return idle, start, str(gap.rank), stage, str(gap.step), PHASES[gap.phase], words.action(gap.before)


def _farthest(
    items: Sequence[T], value: Callable[[T], float | None], keep: Callable[[T], bool] = lambda _: False
) -> list[T]:
    """At most eight items in their order: those to keep, then those farthest from the mean."""
    values = [value(item) or 0.0 for item in items]
    mean = sum(values) / max(len(values), 1)
    ranking = sorted(range(len(items)), key=lambda index: (not keep(items[index]), -abs(values[index] - mean)))
    return [items[index] for index in sorted(ranking[:_MOST_ROWS])]


def _more(hidden: int, noun: str, where: str) -> str | None:
    return f"… and {hidden} more {noun}, see {where}" if hidden > 0 else None
