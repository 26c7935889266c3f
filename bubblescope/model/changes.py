"""What is to be different in a what-if: `schedule=zb-h1,m=16` is one change of two parts, made together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from fractions import Fraction
from math import isfinite
from typing import Any, Literal, get_args

from bubblescope.errors import UsageError

__all__ = ["KEYS", "Changes", "Recompute", "Trouble", "factor"]

Trouble = Literal["imbalance", "straggler", "jitter", "data", "pauses", "p2p", "host", "dp"]
"""What a run can be imagined without: the causes of docs/definitions.md, data length and pauses, exposed gradients."""

Recompute = Literal["on", "off"]

_MOST = 65_536
_SHOWN = 20  # digits of a number that is too large
_LEAST_FACTOR, _MOST_FACTOR = 1e-3, 1e3
_MOST_PARTS = 1000  # below the line of a fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """One what-if; what is None, False or empty stays as it was measured. Raises UsageError where it cannot be.

    Attributes:
        schedule: name or alias of a schedule.
        microbatches: micro-batches a step, of the same size: more of them are more data a step.
        virtual: stages that a rank holds.
        tp: tensor-parallel degree for the same number of GPUs: the pipeline becomes shorter or longer.
        microbatch: size of a micro-batch over the measured one, for the same data a step, so that m changes with it.
        layers: layers of each stage, or `best` for the best contiguous partition.
        p2p: factor on the time of every transfer; 0 is free, but messages still wait for each other.
        overlap: receives are posted ahead and no send holds its rank.
        without: troubles that are gone.
        even: every action as long as the mean of its kind over all steps, transfers the median, no host gap.
        recompute: whether backwards run their forwards again; `off` is for a run that does.
    """

    schedule: str | None = None
    microbatches: int | None = None
    virtual: int | None = None
    tp: int | None = None
    microbatch: float | None = None
    layers: tuple[int, ...] | Literal["best"] | None = None
    p2p: float | None = None
    overlap: bool = False
    without: frozenset[Trouble] = frozenset()
    even: bool = False
    recompute: Recompute | None = None

    def __post_init__(self) -> None:
        for name in ("microbatches", "virtual", "tp"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= _MOST:
                raise UsageError(_bounds(_KEY_OF[name], value))
        if self.microbatch is not None and not _LEAST_FACTOR <= self.microbatch <= _MOST_FACTOR:
            raise UsageError(
                f"microbatch must be from {_LEAST_FACTOR:g} to {_MOST_FACTOR:g} times the measured size, "
                f"found {self.microbatch:g}"
            )
        if self.p2p is not None and not 0 <= self.p2p <= _MOST_FACTOR:
            raise UsageError(f"p2p must be from 0 to {_MOST_FACTOR:g} times the measured time, found {self.p2p:g}")
        if isinstance(self.layers, tuple) and not (self.layers and all(1 <= n <= _MOST for n in self.layers)):
            raise UsageError("layers takes `best`, or how many layers each stage has, at least 1")

    @classmethod
    def parse(cls, text: str) -> Changes:
        """Read `schedule=zb-h1,m=16`; raises UsageError with near names on anything else."""
        given: dict[str, Any] = {}
        for part in filter(None, (part.strip() for part in text.split(","))):
            key, _, value = (side.strip() for side in part.partition("="))
            name = KEYS.get(key.lower())
            if name is None:
                raise _unknown(key)
            if name in given:
                raise UsageError(f"{key} stands twice in {text!r}")
            given[name] = _READERS[name](key, value)
        if not given:
            raise UsageError("a what-if changes something, found nothing", hint="for example schedule=zb-h1,m=16")
        return cls(**given)

    def __str__(self) -> str:
        return ",".join(text for field in fields(self) if (text := _written(field.name, getattr(self, field.name))))


KEYS = {
    "schedule": "schedule",
    "m": "microbatches",
    "microbatches": "microbatches",
    "v": "virtual",
    "virtual": "virtual",
    "tp": "tp",
    "microbatch": "microbatch",
    "layers": "layers",
    "p2p": "p2p",
    "overlap": "overlap",
    "without": "without",
    "even": "even",
    "recompute": "recompute",
}
"""What each word before `=` sets; the first of several is the one that is written."""

_KEY_OF = {name: key for key, name in reversed(KEYS.items())}


def _unknown(key: str) -> UsageError:
    near = get_close_matches(key.lower(), KEYS, n=2)
    return UsageError(
        f"nothing can be changed that is called {key!r}",
        hint=f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(KEYS)}",
    )


def _count(key: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise UsageError(f"{key} takes a number, found {value!r}")
    digits = value.lstrip("0")
    if len(digits) > len(str(_MOST)):
        raise UsageError(_bounds(key, digits if len(digits) <= _SHOWN else f"one of {len(digits)} digits"))
    return int(digits or "0")


def _bounds(key: str, found: object) -> str:
    return f"{key} must be from 1 to {_MOST}, found {found}"


def _factor(key: str, value: str) -> float:
    """`0.5`, `1/2`, `free`."""
    if value == "free":
        return 0.0
    above, _, below = value.partition("/")
    try:
        result = float(above) / (float(below) if below else 1.0)
    except (ValueError, ZeroDivisionError):
        result = float("nan")
    if not isfinite(result):
        raise UsageError(f"{key} takes a factor like 0.5 or 1/2, found {value!r}")
    return result


def _name(key: str, value: str) -> str:
    if not value:
        raise UsageError(f"{key} takes a name, found nothing")
    return value


def _flag(key: str, value: str) -> bool:
    if value:
        raise UsageError(f"{key} stands by itself, found {key}={value}")
    return True


def _layers(key: str, value: str) -> tuple[int, ...] | Literal["best"]:
    return "best" if value == "best" else tuple(_count(key, part.strip()) for part in value.split("+"))


def _without(key: str, value: str) -> frozenset[Trouble]:
    known = get_args(Trouble)
    for part in value.split("+"):
        if part not in known:
            raise UsageError(f"{key} takes one of {', '.join(known)}, or several with + between, found {part!r}")
    return frozenset(value.split("+"))  # type: ignore[arg-type]


def _choice(key: str, value: str) -> str:
    if value not in get_args(Recompute):
        raise UsageError(f"{key} takes on or off, found {value!r}")
    return value


_READERS: dict[str, Callable[[str, str], Any]] = {
    "schedule": _name,
    "microbatches": _count,
    "virtual": _count,
    "tp": _count,
    "microbatch": _factor,
    "layers": _layers,
    "p2p": _factor,
    "overlap": _flag,
    "without": _without,
    "even": _flag,
    "recompute": _choice,
}


def _written(name: str, value: Any) -> str:
    """A part as it is read; empty where nothing changes."""
    if value is None or value is False or value == frozenset():
        return ""
    key = _KEY_OF[name]
    if value is True:
        return key
    if isinstance(value, tuple):
        return f"{key}={'+'.join(map(str, value))}"
    if isinstance(value, frozenset):
        return f"{key}={'+'.join(sorted(value))}"
    return f"{key}={factor(value) if isinstance(value, float) else value}"


def factor(value: float) -> str:
    """A factor as short as it is read as the same: 0.5, 1/3, and where no fraction will do all its digits."""
    if float(short := f"{value:g}") == value:
        return short
    near = Fraction(value).limit_denominator(_MOST_PARTS)
    return str(near) if near.numerator / near.denominator == value else repr(value)
