"""What two runs compare to in a sentence or two: what the bubble did, which cause it was, and what a step takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bubblescope.model.comparison import Change, Comparison
from bubblescope.model.gate import Difference
from bubblescope.model.quality import SYSTEMATIC
from bubblescope.report import wording as words
from bubblescope.report.change_words import moved, noise, shows
from bubblescope.report.metric_words import value

__all__ = ["doubt", "few", "sentence", "speed"]

Doubts = Mapping[str, tuple[str, ...]]

_MATTERS = {"bubble": 0.02, "step_time": 0.05}
"""Changes that would matter, points of the bubble and parts of the step time: within noise they are open questions."""
_MOSTLY = 0.5
"""Share of the bubble's change from which on it is mostly that of one cause."""


def sentence(found: Comparison) -> str:
    """The answer: what the bubble did."""
    change = _whole(found, "bubble")
    if change is None:
        return _without(found)
    if change.change is None or change.before is None or change.after is None:
        return f"The bubble is {_known(change.before)} before and {_known(change.after)} after."
    causes = [each for each in found.changes if each.by == "cause" and each.change is not None]
    both = f"{words.percent(change.before)} before, {words.percent(change.after)} after"
    lead = _lead(found)
    if change.certain is False and abs(change.change) >= _MATTERS["bubble"]:
        return f"{_open(lead, both, change)}{_hidden(causes)}."
    if change.certain is False:
        return f"{lead} did not change beyond noise ({both}; noise {noise(change)}){_hidden(causes)}."
    if not shows(change):
        return f"{lead} did not change ({both}){_unknown(found)}."
    rose = "rose" if change.change > 0 else "fell"
    span = f"from {words.percent(change.before)} to {words.percent(change.after)}"
    tail = _why(change.change, causes) + ("" if change.certain else _unknown(found))
    return f"{lead} {rose} by {words.points(abs(change.change))}, {span}{tail}."


def speed(found: Comparison) -> str:
    """What a step takes; empty where one of the runs does not tell."""
    change = _whole(found, "step_time")
    if change is None or change.change is None:
        return ""
    if change.certain is False:
        both = f"{value(change.before, 'ns')} before, {value(change.after, 'ns')} after"
        if abs(change.change) >= _MATTERS["step_time"] * (change.before or 0.0):
            return f"{_open('The step time', both, change)}."
        return f"The step time did not change beyond noise ({both}; noise {noise(change)})."
    if not shows(change):
        return f"The step time did not change ({value(change.after, 'ns')})."
    return f"A step takes {value(change.after, 'ns')} instead of {value(change.before, 'ns')} ({moved(change)})."


def doubt(found: Comparison) -> str:
    """Why not to rely on the comparison; empty where nothing speaks against the bubbles and their causes."""
    doubts = found.before.doubts, found.after.doubts
    runs = zip(found.names, doubts, reversed(doubts), strict=True)
    told = [f"{_list(of)} of {name} ({_list(whys)})" for name, own, other in runs for of, whys in _doubted(own, other)]
    return f"Do not rely on this comparison: doubts about {'; '.join(told)}." if told else ""


def few(found: Comparison) -> str:
    """Which of the runs have too few steps for noise to be known; empty where none has."""
    runs = zip(found.names, (found.before, found.after), strict=True)
    short = {name: run.fingerprint.steps for name, run in runs if run.fingerprint.steps < 2}
    return words.enumerate_words([f"{name} has {words.counted(steps, 'step')}" for name, steps in short.items()])


def _open(lead: str, both: str, change: Change) -> str:
    return f"{lead} may have changed or not: {both}, and noise of {noise(change)} (more steps tell)"


def _whole(found: Comparison, metric: str) -> Change | None:
    return next((each for each in found.changes if each.metric == metric and each.by is None), None)


def _known(share: float | None) -> str:
    return "unknown" if share is None else words.percent(share)


def _without(found: Comparison) -> str:
    piped = any(run.fingerprint.schedule != "none" for run in (found.before, found.after))
    return "The bubble is unknown in both runs." if piped else "Neither run has a pipeline, so there is no bubble."


def _lead(found: Comparison) -> str:
    """`The bubble`, or first what else is different, if that is the run and not where it ran."""
    apart = [_instead(each) for each in found.differences if each.effect == "refused"]
    return f"With {words.enumerate_words(apart)} the bubble" if apart else "The bubble"


def _instead(difference: Difference) -> str:
    what = difference.what
    if what == "schedule":
        return f"{difference.found} instead of {difference.baseline}"
    if what.endswith("degree"):
        return f"a {what} of {difference.found} instead of {difference.baseline}"
    return f"{difference.found} {what} instead of {difference.baseline}"


def _why(change: float, causes: Sequence[Change]) -> str:
    """`, mostly by uneven stages (+12.5 points)`, and what went the other way if that is as much as half of it."""
    told = [each for each in causes if each.certain is not False and shows(each)]
    alike = [each for each in told if _along(each, change) > 0]
    if not causes:
        return ""
    if not alike:
        return f"; no single cause{' of it' if told else ''} changed beyond noise"
    first = max(alike, key=lambda each: _along(each, change))
    how = "mostly by" if _along(first, change) >= _MOSTLY * abs(change) else "by many causes, the biggest being"
    against = min(told, key=lambda each: _along(each, change))
    other = f", against {_cause(against)}" if _along(against, change) <= -_MOSTLY * abs(change) else ""
    return f", {how} {_cause(first)}{other}"


def _along(cause: Change, change: float) -> float:
    """By how much a cause moved in the direction of the bubble."""
    return (cause.change or 0.0) * (1 if change > 0 else -1)


def _hidden(causes: Sequence[Change]) -> str:
    """Causes that changed while their sum did not."""
    told = [each for each in causes if each.certain]
    return f", but its causes did: {words.enumerate_words([_cause(each) for each in told])}" if told else ""


def _cause(change: Change) -> str:
    return f"{words.cause_words(change.of or '')} ({moved(change)})"


def _unknown(found: Comparison) -> str:
    short = few(found)
    return f"; what of it is noise is unknown, as {short}" if short else "; what of it is noise is unknown"


def _doubted(own: Doubts, other: Doubts) -> list[tuple[list[str], tuple[str, ...]]]:
    """Numbers with the same reasons, of those that the sentence is about.

    What makes both runs wrong alike leaves what differs between them as it is.
    """
    told = {
        name: tuple(why for why in own[name] if why not in SYSTEMATIC or why not in other.get(name, ()))
        for name in ("bubble", "causes")
        if name in own
    }
    return [([name for name in told if told[name] == why], why) for why in dict.fromkeys(told.values()) if why]


def _list(names: Sequence[str]) -> str:
    return words.enumerate_words(list(names))
