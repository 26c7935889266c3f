"""The rules of a gate, as they are written: `bubble@stage=3 > 25%` for a limit, `bubble:+2pp` against a baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, NamedTuple, cast, get_args

from bubblescope.errors import UsageError
from bubblescope.model.metrics import METRICS, MetricKind, Part, Unit
from bubblescope.model.traffic import Group

__all__ = ["ANY", "Rule", "Subject", "parse", "parse_subject"]

ANY = "any"
"""Every part, each by itself."""

Side = Literal["above", "below"]
Against = Literal["limit", "baseline"]


class Subject(NamedTuple):
    """What a rule is about: a metric, and the part of the job that it is of."""

    metric: str
    by: Part | None
    of: str | None

    def __str__(self) -> str:
        """As rules write it."""
        return self.metric if self.by is None else f"{self.metric}@{self.by}={self.of}"


_SUBJECT = re.compile(r"(?P<metric>[\w-]+)(?:@(?P<by>\w+)=(?P<of>[\w.-]+))?")
_NUMBER = r"(?P<number>\d{1,15}(?:\.\d{1,15})?)\s*(?P<unit>%|[a-zµμ]*)"
_LIMIT = re.compile(rf"\s*(?P<subject>[^<>=:\s]+(?:=[^<>=:\s]+)?)\s*(?P<op>[<>]=?)\s*(?P<sign>-?)\s*{_NUMBER}\s*")
_CHANGE = re.compile(rf"\s*(?P<subject>[^:\s]+)\s*:\s*(?P<sign>[+-])\s*{_NUMBER}\s*")

_TIMES = {"ns": 1.0, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9}
_NAMED: Mapping[str, tuple[str, ...]] = {
    "cause": ("structural", "imbalance", "straggler", "jitter", "p2p", "host", "residual"),
    "group": get_args(Group),
}
"""Parts that have names, and not numbers."""
_EXAMPLES = "for example 'bubble > 18%', 'bubble@stage=3 > 25%' or, against a baseline, 'bubble:+2pp', 'step_time:+5%'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When to fail: where a number is, or moves, farther than `limit` to one side.

    Attributes:
        text: as it is written, always in one way.
        metric, by, of: the number; `of` may be `any`.
        against: a limit, or what the baseline has.
        side: on which side of the limit it fails.
        limit: in the metric's unit; a fraction of the baseline's value where `relative`. Changes have no sign here.
        inclusive: whether it fails at the limit itself.
    """

    text: str
    metric: str
    by: Part | None
    of: str | None
    against: Against
    side: Side
    limit: float
    relative: bool = False
    inclusive: bool = False

    @property
    def kind(self) -> MetricKind:
        """What the metric is."""
        return METRICS[self.metric]

    @property
    def subject(self) -> Subject:
        """What the rule is about."""
        return Subject(self.metric, self.by, self.of)


def parse(text: str) -> Rule:
    """Read a rule; raises UsageError with what is wrong, and with what may be meant."""
    text = text.replace("\u200b", "")  # a page may have put it there, so that nobody is called by a rule
    change, limit = _CHANGE.fullmatch(text), _LIMIT.fullmatch(text)
    found = change or limit
    if found is None:
        raise UsageError(f"{text!r} is no rule", hint=_meant(text))
    subject = parse_subject(found["subject"])
    kind = METRICS[subject.metric]
    if subject.by is None and not kind.whole:
        raise UsageError(
            f"{text!r}: {subject.metric} is told of parts alone",
            hint=f"for example {subject.metric}@{kind.parts[0]}={ANY}",
        )
    if change is not None:
        return _change(text, change, subject)
    assert limit is not None
    return _limit(text, limit, subject)


def _meant(text: str) -> str:
    """What was probably meant by what is no rule."""
    for wrong, right in ((r":\s*(?=\d)", ":+"), ("=>", ">="), ("=<", "<="), (r"(?<![<>=])={1,2}(?=\s*[\d.-])", ">")):
        near = re.sub(wrong, right, text, count=1)
        if near != text and (_CHANGE.fullmatch(near) or _LIMIT.fullmatch(near)):
            return f"did you mean {near.strip()}?"
    return _EXAMPLES


def _change(text: str, found: re.Match[str], subject: Subject) -> Rule:
    metric, by, of = subject
    if by in {"rank", "pipeline"}:
        raise UsageError(
            f"{text!r}: a baseline keeps no single ranks or pipelines, for none is the same in the next run",
            hint=f"gate it against a limit, as {subject} > 25%, or by stage",
        )
    unit, number = found["unit"], float(found["number"])
    if unit == "%":
        size, relative = number / 100, True
    else:
        size, relative = _plain_change(text, number, unit, METRICS[metric].unit), False
    written = f"{subject}:{found['sign']}{_number(found['number'])}{unit}"
    side: Side = "above" if found["sign"] == "+" else "below"
    return Rule(text=written, metric=metric, by=by, of=of, against="baseline", side=side, limit=size, relative=relative)


def _plain_change(text: str, number: float, unit: str, of: Unit) -> float:
    """A change in the metric's own unit."""
    if of == "share":
        if unit != "pp":
            raise UsageError(
                f"{text!r}: a change of a share is in points, found {unit or 'no unit'!r}", hint=_points(text)
            )
        return number / 100
    if of == "ns":
        return _time(text, number, unit)
    if unit:
        raise UsageError(f"{text!r}: a change of this number is in % or without a unit, found {unit!r}", hint=_EXAMPLES)
    return number


def _points(text: str) -> str:
    """The same change in points."""
    found = _CHANGE.fullmatch(text)
    assert found is not None
    number = float(found["number"])
    return f"did you mean {found['subject']}:{found['sign']}{100 * number if number < 1 else number:g}pp?"


def _limit(text: str, found: re.Match[str], subject: Subject) -> Rule:
    metric, by, of = subject
    unit, number = found["unit"], float(found["number"])
    value = _absolute(text, number, unit, METRICS[metric].unit) * (-1 if found["sign"] else 1)
    op = found["op"]
    return Rule(
        text=f"{subject} {op} {found['sign']}{_number(found['number'])}{unit}",
        metric=metric,
        by=by,
        of=of,
        against="limit",
        side="above" if op[0] == ">" else "below",
        limit=value,
        inclusive=len(op) == 2,
    )


def _absolute(text: str, number: float, unit: str, of: Unit) -> float:
    """A limit in the metric's own unit."""
    if of == "ns":
        return _time(text, number, unit)
    if of == "share" and unit in {"", "%"}:
        return _share(text, number, unit)
    if unit:
        what = "a share" if of == "share" else "a number"
        raise UsageError(f"{text!r}: the limit is {what}, found the unit {unit!r}", hint=_EXAMPLES)
    return number


def _share(text: str, number: float, unit: str) -> float:
    share = number / 100 if unit else number
    if share > 1 or (number == 1 and not unit):
        near = f"did you mean {number:g}%?" if not unit and number <= 100 else _EXAMPLES
        raise UsageError(f"{text!r}: a share is below 1, which is 100%, found {number:g}{unit}", hint=near)
    return share


def _time(text: str, number: float, unit: str) -> float:
    if unit not in _TIMES:
        raise UsageError(
            f"{text!r}: a time needs a unit, one of ns, us, ms, s, found {unit or 'none'!r}", hint=_EXAMPLES
        )
    return number * _TIMES[unit]


def _number(text: str) -> str:
    """A number without zeros that say nothing."""
    return f"{float(text):.15g}"


def parse_subject(text: str) -> Subject:
    """Read `bubble` or `bubble@stage=3`; raises UsageError where there is no such number."""
    found = _SUBJECT.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} names no number", hint=_near(re.split(r"\W", text)[0], tuple(METRICS)) or _EXAMPLES)
    metric = _metric(found["metric"])
    if found["by"] is None:
        return Subject(metric, None, None)
    kind, by, of = METRICS[metric], found["by"], found["of"]
    if by not in kind.parts:
        parts = " or ".join(f"@{part}=" for part in kind.parts)
        known = f"{metric} is told by {parts}" if parts else f"{metric} is told of the whole job alone"
        raise UsageError(f"{text!r}: {known}, found @{by}=", hint=_near(by, kind.parts))
    return Subject(metric, cast("Part", by), of if of == ANY else _which(text, by, of))


def _which(text: str, by: str, of: str) -> str:
    """The number or the name of a part, written in one way."""
    names = _NAMED.get(by)
    if names is None:
        if not (of.isascii() and of.isdigit() and len(of) < 10):
            raise UsageError(f"{text!r}: a {by} is a number, or {ANY} for each of them, found {of!r}")
        return str(int(of))
    if of not in names:
        raise UsageError(
            f"{text!r}: no {by} is called {of!r}", hint=_near(of, names) or f"known are {', '.join(names)}"
        )
    return of


def _metric(name: str) -> str:
    metric = name.lower().replace("-", "_")
    if metric in METRICS:
        return metric
    if metric in _NAMED["cause"]:
        raise UsageError(f"no number is called {name!r}", hint=f"{metric} is a cause: bubble@cause={metric}")
    raise UsageError(
        f"no number is called {name!r}", hint=_near(metric, tuple(METRICS)) or f"known are {', '.join(METRICS)}"
    )


def _near(name: str, known: tuple[str, ...] | Mapping[str, object]) -> str | None:
    near = get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else None
