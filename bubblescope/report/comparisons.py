"""The page of a comparison: the answer in a sentence, the two runs, how noise was judged, and what changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from bubblescope.model.baseline import Baseline, Fingerprint
from bubblescope.model.comparison import Change, Comparison
from bubblescope.model.metrics import METRICS
from bubblescope.report import wording as words
from bubblescope.report.change_words import moved, noise, shows
from bubblescope.report.compared import doubt, few, sentence, speed
from bubblescope.report.facts import Fact
from bubblescope.report.metric_words import value
from bubblescope.report.pages import Page
from bubblescope.report.table import Table

__all__ = ["Shown", "page"]

Shown = Literal["certain", "changed", "all"]
"""What has a row: what changed beyond noise (all that changed where nothing tells it), all that changed, or all."""


def page(found: Comparison, shown: Shown = "certain") -> Page:
    """The page of a comparison; its tables have what changed beyond noise first."""
    drawn = [_selected(table, found, shown) for table in _TABLES]
    tables = [table for table in drawn if table is not None and table.rows]
    answer = " ".join(filter(None, (sentence(found), speed(found))))
    doubts = doubt(found)
    return Page(
        headline=doubts or sentence(found),
        intro=answer if doubts else speed(found),
        facts=_facts(found),
        remarks=_remarks(found),
        tables=tuple(tables),
        notes=_notes([table for table in drawn if table is not None and not table.rows], any_told=bool(tables)),
    )


def _facts(found: Comparison) -> tuple[Fact, ...]:
    apart = [f"{each.what} {each.baseline} before, {each.found} after" for each in found.differences]
    return (
        ("Before", _run(found.names[0], found.before)),
        ("After", _run(found.names[1], found.after)),
        *((("Differ", "; ".join(apart)),) if apart else ()),
        ("Noise", _noise(found)),
    )


def _run(name: str, run: Baseline) -> str:
    mark = run.fingerprint
    reason = "" if run.reason is None else f"; accepted: {run.reason}"
    return f"{name}: {_shape(mark)}; mean of {words.counted(mark.steps, 'step')}{reason}"


def _shape(mark: Fingerprint) -> str:
    """`1f1b, p = 4, t = 1, d = 1, m = 8, v = 1`; without a pipeline only how many ranks there are."""
    if mark.schedule == "none":
        return f"no pipeline, {mark.ranks}"
    degrees = (("p", mark.pp), ("t", mark.tp), ("d", mark.dp), ("m", mark.microbatches), ("v", mark.virtual))
    return ", ".join([mark.schedule, *(f"{name} = {count}" for name, count in degrees if count is not None)])


def _noise(found: Comparison) -> str:
    short = few(found)
    if short:
        return f"unknown: {short}, and it takes two of each run to tell; all that changed is shown"
    steps = " and ".join(str(run.fingerprint.steps) for run in (found.before, found.after))
    level = words.percent(found.level, 0)
    return (
        f"Welch's t-test over the steps ({steps}), beyond the clocks' error; {level} risk that any change of a table "
        "is false"
    )


def _remarks(found: Comparison) -> tuple[str, ...]:
    before, after = found.before.fingerprint, found.after.fingerprint
    told = []
    apart = [each.what for each in found.differences if each.effect == "wall-clock"]
    if apart:
        told.append(f"times and rates depend on the machines, and these differ ({', '.join(apart)})")
    if None not in {before.microbatches, after.microbatches} and before.microbatches != after.microbatches:
        told.append("a step has other micro-batches in each run: compare micro-batches a second, not times of steps")
    if not _same_attribution(found):
        told.append(
            f"causes are not compared: they were told with --attribution {before.attribution} before and with "
            f"{after.attribution} after"
        )
    if not _same_stages(found):
        told.append(f"stages are not compared: {_stages(before)} before, {_stages(after)} after")
    return tuple(told)


def _same_stages(found: Comparison) -> bool:
    before, after = found.before.fingerprint, found.after.fingerprint
    return (before.pp, before.virtual) == (after.pp, after.virtual)


def _same_attribution(found: Comparison) -> bool:
    return found.before.fingerprint.attribution == found.after.fingerprint.attribution


def _stages(mark: Fingerprint) -> str:
    return f"{mark.pp} x {mark.virtual}"


@dataclass(frozen=True, slots=True)
class _Kind:
    """A table: the changes that belong to it, its columns before the values, and what it says last of a row."""

    title: str
    denominator: str
    takes: Callable[[Change], bool]
    names: tuple[tuple[str, Callable[[Change], str]], ...]
    bare: bool = False
    meaning: Callable[[Change], str] | None = None


def _of(change: Change) -> str:
    return change.of or words.ABSENT


def _metric(change: Change) -> str:
    return change.metric


_TABLES = (
    _Kind(
        title="Whole job",
        denominator="means over the steps; shares change by points, times and rates by % of what they were",
        takes=lambda each: each.by is None,
        names=(("metric", _metric),),
        meaning=lambda each: METRICS[each.metric].title,
    ),
    _Kind(
        title="Causes",
        denominator="% of the pipeline window, change in points; all add up to the bubble, before and after",
        takes=lambda each: each.by == "cause" and each.metric == "bubble",
        names=(("cause", _of),),
        bare=True,
        meaning=lambda each: words.cause_words(_of(each)),
    ),
    _Kind(
        title="Stages",
        denominator="work a step; bubble, % of the pipeline window; imbalance, work over the mean of the stages",
        takes=lambda each: each.by == "stage",
        names=(("stage", _of), ("metric", _metric)),
    ),
    _Kind(
        title="Communication",
        denominator="% of the step in which nothing hides it, change in points; groups may overlap",
        takes=lambda each: each.by == "group",
        names=(("group", _of),),
        bare=True,
    ),
)


def _selected(kind: _Kind, found: Comparison, shown: Shown) -> Table | None:
    """The table; without rows where nothing of it is shown, None where there is nothing of the kind."""
    if kind.title == "Stages" and not _same_stages(found):
        return None
    if kind.title == "Causes" and not _same_attribution(found) and shown != "all":
        return None
    changes = [each for each in found.changes if kind.takes(each)]
    rows = [each for each in changes if _shown(each, shown)]
    rows.sort(key=lambda each: each.certain is False)
    left = [each for each in changes if each not in rows]
    if not changes:
        return None
    return replace(_table(kind, rows), more=_more(left) if left else None)


def _shown(change: Change, shown: Shown) -> bool:
    if shown == "all":
        return True
    if change.change is None:
        return (change.before is None) != (change.after is None)
    if shown == "certain" and change.certain is not None:
        return change.certain
    return shows(change)


def _table(kind: _Kind, rows: Sequence[Change]) -> Table:
    columns = [
        *((name, "l", text) for name, text in kind.names),
        ("before", "r", lambda each: value(each.before, each.unit)),
        ("after", "r", lambda each: value(each.after, each.unit)),
        ("change", "r", lambda each: moved(each, bare=kind.bare)),
        ("noise", "r", lambda each: noise(each, bare=kind.bare)),
    ]
    if kind.meaning is not None:
        columns.append(("meaning", "l", kind.meaning))
    return Table(
        title=kind.title,
        denominator=kind.denominator,
        align="".join(side for _, side, _ in columns),
        headers=tuple(name for name, _, _ in columns),
        rows=tuple(tuple(text(each) for _, _, text in columns) for each in rows),
        strong=frozenset({0} if kind.title == "Causes" and rows and rows[0].certain else ()),
        spare=("meaning",),
    )


def _more(left: Sequence[Change]) -> str:
    return f"… and {len(left)} more {_state(left)}, see --all"


def _state(left: Sequence[Change]) -> str:
    return "within noise" if any(each.certain is False for each in left) else "unchanged"


def _notes(empty: Sequence[Table], *, any_told: bool) -> tuple[str, ...]:
    if not empty:
        return ()
    if not any_told:
        return ("Nothing changed beyond noise; --all shows every number.",)
    titles = words.enumerate_words([table.title.lower() for table in empty])
    return (f"Nothing of this kind changed beyond noise, see --all: {titles}.",)
