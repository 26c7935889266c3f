"""A schedule on paper in words: formula beside simulation, memory, and the lanes of its picture."""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.model.actions import WHOLE, Action, Kind
from bubblescope.report import wording as words
from bubblescope.report.facts import Fact
from bubblescope.report.gantt import Bar, Lane
from bubblescope.report.pages import Page
from bubblescope.report.table import Table
from bubblescope.schedules.detect import Difference
from bubblescope.schedules.family import Family
from bubblescope.schedules.ranking import Ranking
from bubblescope.schedules.recognize import Found
from bubblescope.schedules.trial import Trial

__all__ = ["LETTERS", "found_page", "lanes", "legend", "number", "ranking_page", "shape_text", "trial_page"]

LETTERS = {Kind.F: "forward", Kind.B: "backward", Kind.I: "input gradient", Kind.W: "weight gradient"}
NO_FORM = "no exact closed form"
OVERLAP = "steps overlap: the window is what one more step costs"

_SAME = 0.0005  # half of the last digit shown
_MOST_DEPARTURES = 3
_MOST_TIMES = 16


def number(value: float | None) -> str:
    """A time, or a count that may be a fraction, in six digits."""
    if value is None:
        return words.ABSENT
    return f"{value:.0f}" if abs(value) >= 1e5 else f"{value:.6g}"


def trial_page(trial: Trial, *, picture: bool = True) -> Page:
    """The page of a schedule that was named."""
    assert trial.family is not None
    facts: tuple[Fact, ...] = (("Schedule", f"{trial.family.name}: {trial.family.summary}"),)
    return _page(trial, facts, picture=picture)


def found_page(found: Found, path: str, *, picture: bool = True) -> Page:
    """The page of a schedule from a file."""
    facts: tuple[Fact, ...] = (("File", path), ("Schedule", _verdict(found)))
    if found.departures is None:
        facts += (("Departures", "the orders differ, and are too long to say where"),)
    elif found.departures:
        facts += (("Departures", _departures(found.departures)),)
    return _page(found.trial, facts, picture=picture)


def _page(trial: Trial, facts: tuple[Fact, ...], *, picture: bool) -> Page:
    return Page(
        headline=_headline(trial),
        facts=(*facts, *_facts(trial)),
        tables=(_bubble(trial), _memory(trial)),
        caption="The first step, by itself" if trial.asynchronous else "Picture",
        lanes=lanes(trial) if picture else (),
        legend=legend(trial),
    )


def _headline(trial: Trial) -> str:
    simulated, closed = trial.simulation.bubble, trial.closed.bubble
    opening = f"{words.percent(simulated)} of the window is bubble"
    if trial.family is None:
        return f"{opening}; the order is that of no known schedule."
    formula = f"the formula of {trial.family.name}"
    if closed is None:
        return f"{opening}; {NO_FORM} holds here."
    if abs(simulated - closed) < _SAME:
        return f"{opening}, just what {formula} says."
    return f"{opening}; {formula} says {words.percent(closed)}, for equal stages and free transfers."


def _facts(trial: Trial) -> Iterator[Fact]:
    yield "Shape", shape_text(trial)
    yield "Times", _times(trial)
    yield "Formula", _formula(trial)
    window = number(trial.simulation.window)
    yield "Window", f"{window}; {OVERLAP}" if trial.asynchronous else window


def shape_text(trial: Trial) -> str:
    """`p = 4 ranks, m = 8 micro-batches, v = 1 stage a rank`."""
    shape = trial.shape
    parts = [f"p = {words.counted(shape.p, 'rank')}", f"m = {words.counted(shape.m, 'micro-batch')}"]
    held = max(map(len, trial.placement))
    both = f" each way ({held} on a rank)" if held > shape.v else " a rank"
    parts.append(f"v = {words.counted(shape.v, 'chunk')}{both}")
    parts += [f"{shape.slices} slices a micro-batch"] if shape.slices > 1 else []
    parts += [f"groups of {shape.group}"] if shape.group is not None else []
    return ", ".join(parts)


def _times(trial: Trial) -> str:
    times, costs = trial.times, trial.times.costs
    forwards = all(action.kind == Kind.F for order in trial.simulation.orders.values() for action in order)
    if times.even:
        text = f"F {number(costs.forward)}"
        if not forwards:
            text += f", B {number(costs.backward)} = I {number(costs.input)} + W {number(costs.weight)}"
        text += ", of a micro-batch on a rank"
    else:
        text = f"by stage: F {_list(times.forward)}"
        if not forwards:
            text += f"; I {_list(times.input)}; W {_list(times.weight)}"
    sends = ", and sends hold their rank" if trial.blocking else ""
    return f"{text}; transfers {_list(times.comm)}{sends}"


def _list(values: tuple[float, ...]) -> str:
    if len(set(values)) == 1:
        return number(values[0])
    shown = ", ".join(map(number, values[:_MOST_TIMES]))
    return f"({shown}{', …' if len(values) > _MOST_TIMES else ''})"


def _formula(trial: Trial) -> str:
    closed = trial.closed
    if closed.text is None:
        return NO_FORM
    if closed.idle is None:
        return f"{NO_FORM} for this shape and these times; elsewhere idle time {closed.text}"
    return f"idle time {closed.text}; stages equal, transfers free"


def _verdict(found: Found) -> str:
    verdict = found.verdict
    if verdict.best is None:
        return f"unknown: {verdict.reason}"
    also = f" (same order here: {', '.join(verdict.also)})" if verdict.also else ""
    note = f", {verdict.best.variant.note}" if verdict.best.variant.note else ""
    return f"{verdict.best.family.name}{also}, confidence {words.percent(verdict.best.confidence, 0)}{note}"


def _departures(departures: tuple[tuple[int, Difference], ...]) -> str:
    shown = [
        f"rank {rank} at position {each.position}: {words.action(each.found)} instead of {words.action(each.expected)}"
        for rank, each in departures[:_MOST_DEPARTURES]
    ]
    more = len(departures) - len(shown)
    return "; ".join([f"{len(departures)} from its order", *shown, *([f"… and {more} more"] if more else [])])


def _bubble(trial: Trial) -> Table:
    closed, simulated = trial.closed, trial.simulation
    rows = (
        ("D1", "bubble, share of the window", words.percent(closed.bubble), words.percent(simulated.bubble)),
        (
            "D2",
            "ratio to ideal, idle over useful time",
            words.percent(closed.ratio_to_ideal),
            words.percent(simulated.ratio_to_ideal),
        ),
        ("D3", "span, share of the longest rank's own", words.percent(closed.span), words.percent(simulated.span)),
        ("D4", "idle time a rank", number(closed.idle), number(simulated.idle)),
    )
    return Table(
        title="Bubble",
        denominator="one idle time, counted in four ways",
        align="llrr",
        headers=("", "", "formula", "simulated"),
        rows=rows,
    )


def _memory(trial: Trial) -> Table:
    rank = trial.fullest
    memory = None if trial.family is None else trial.family.memory
    text, copies = (words.ABSENT, words.ABSENT) if memory is None else (memory.text, memory.weights_text)
    rows = (
        ("activations", text, number(trial.activations), number(trial.simulation.held[rank])),
        ("weights", copies, number(trial.weights(rank)), words.ABSENT),
    )
    return Table(
        title="Memory",
        denominator=f"of rank {rank}, which holds the most; micro-batches whose activations are kept, counted as whole "
        "until the last part of their backward; copies of the weights",
        align="llrr",
        headers=("", "formula", "value", "counted"),
        rows=rows,
    )


def ranking_page(ranking: Ranking) -> Page:
    """All schedules, the smallest bubble first, and those that are impossible."""
    shape = ranking.trials[0].shape
    who = f"{words.counted(shape.p, 'rank')} and {words.counted(shape.m, 'micro-batch')}"
    return Page(
        headline=f"{len(ranking.trials)} schedules are possible with {who}{_best(ranking)}.",
        facts=(("Times", _times(ranking.trials[0])),),
        tables=(_ranked(ranking), *([_impossible(ranking)] if ranking.impossible else [])),
    )


def _best(ranking: Ranking) -> str:
    """The smallest bubble, without schedules that never drain or never train."""
    drained = [trial for trial in ranking.trials if trial.family is not None and not _remark(trial.family)]
    if not drained:
        return ""
    least = drained[0].simulation.bubble
    names = [t.family.name for t in drained if t.family is not None and t.simulation.bubble - least < _SAME]
    have = "has" if len(names) == 1 else "have"
    return f"; of those that drain {words.enumerate_words(names)} {have} the smallest bubble, {words.percent(least)}"


def _ranked(ranking: Ranking) -> Table:
    sliced = any(trial.shape.slices > 1 for trial in ranking.trials)
    rows = []
    for trial in ranking.trials:
        family, shape = trial.family, trial.shape
        assert family is not None
        cells = [family.name, str(shape.v), *([str(shape.slices)] if sliced else [])]
        cells += [words.percent(trial.simulation.bubble), words.percent(trial.closed.bubble)]
        held = trial.simulation.held[trial.fullest]
        rows.append((*cells, number(held), number(trial.weights(trial.fullest)), _remark(family)))
    headers = ("schedule", "v", *(["slices"] if sliced else []), "bubble", "formula", "activations", "weights", "")
    return Table(
        title="Schedules",
        denominator="bubble simulated, % of the window; activations of the rank that holds the most, counted as whole "
        "until the last part of their backward",
        align="l" + "r" * (len(headers) - 2) + "l",
        headers=headers,
        rows=tuple(rows),
    )


def _remark(family: Family) -> str:
    if family.asynchronous:
        return "steps overlap"
    return "forwards only" if family.kinds == {Kind.F} else ""


def _impossible(ranking: Ranking) -> Table:
    return Table(
        title="Impossible",
        denominator="with these ranks and micro-batches",
        align="ll",
        headers=("schedule", "why"),
        rows=tuple((each.name, each.reason) for each in ranking.impossible),
    )


def lanes(trial: Trial) -> tuple[Lane, ...]:
    """A lane a rank; small letters for every second stage of a rank."""
    return tuple(
        Lane(f"rank {rank}", tuple(_bars(trial, rank, trial.placement[rank]))) for rank in trial.simulation.orders
    )


def _bars(trial: Trial, rank: int, held: tuple[int, ...]) -> Iterator[Bar]:
    run, order = trial.simulation.run, trial.simulation.orders[rank]
    length = trial.times.lengths({rank: order})
    small = {stage: k % 2 == 1 for k, stage in enumerate(held)}
    at = 0.0
    for action in order:
        start = max(at, run.start[action])  # behind what runs in the same block
        joined = action in trial.together
        at = start + length[action] if joined else run.end[action]
        yield Bar(_text(action, small=small[action.stage]), start, at)


def _text(action: Action, *, small: bool) -> str:
    letter = action.kind.name.lower() if small else action.kind.name
    return f"{letter}{action.microbatch}" + ("" if action.slice == WHOLE else f".{action.slice}")


def legend(trial: Trial) -> str:
    """What the letters of the picture mean."""
    kinds = sorted({action.kind for order in trial.simulation.orders.values() for action in order})
    text = f"{', '.join(f'{kind.name} {LETTERS[kind]}' for kind in kinds)}, of a micro-batch; dots are idle"
    return f"{text}; small letters are a rank's every second stage" if max(map(len, trial.placement)) > 1 else text
