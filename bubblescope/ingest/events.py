"""One event of a trace, and three ways to decode a window of them: fast, exact, lenient.

The fast way is typed, takes times as numbers, and of phases that tell nothing of work decodes nothing at all. Where a
time is text, or would lose digits as a double, the exact way takes decimals. Where any field has another type than it
should, the lenient way takes what is usable of each event by itself, and tells what it mended and left out.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, ClassVar, Union

import msgspec
from msgspec import Meta, Raw, Struct, field

from bubblescope.ingest.mending import mend

__all__ = ["Arguments", "Event", "ExactEvent", "Phased", "Window", "decode_exact", "decode_fast"]

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]


class Arguments(Struct, gc=False):
    """Those arguments of an event that are used; all others are stepped over."""

    stream: int | str | None = None
    device: int | str | None = None
    correlation: Int64 = -1
    sequence: Int64 = field(name="Sequence number", default=-1)
    forward_thread: Int32 = field(name="Fwd thread id", default=-1)
    collective: str | None = field(name="Collective name", default=None)
    group: str | None = field(name="Process Group Name", default=None)
    description: str = field(name="Process Group Description", default="")
    ranks: str | list[int] = field(name="Process Group Ranks", default="")
    group_size: Int64 = field(name="Group size", default=-1)
    src: Int64 | None = field(name="Src Rank", default=None)
    dst: Int64 | None = field(name="Dst Rank", default=None)
    elements_in: Int64 = field(name="In msg nelems", default=-1)
    elements_out: Int64 = field(name="Out msg nelems", default=-1)
    dtype: str = ""
    seq: Int64 = field(name="Seq", default=-1)
    name: Any = None
    labels: Any = None


class Event(Struct, gc=False):
    """An event without its phase; `ts` and `dur` in microseconds."""

    cat: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: int | float = float("nan")
    dur: int | float = 0
    args: Arguments | None = None


class Phased(Event, gc=False):
    """An event of any phase."""

    ph: str = ""


class Whole(Event, gc=False, tag_field="ph", tag="X"):
    """An event that tells its start and its length."""

    ph: ClassVar[str] = "X"


class Begin(Event, gc=False, tag_field="ph", tag="B"):
    """The begin of one."""

    ph: ClassVar[str] = "B"


class End(Event, gc=False, tag_field="ph", tag="E"):
    """The end of one."""

    ph: ClassVar[str] = "E"


class Named(Event, gc=False, tag_field="ph", tag="M"):
    """Metadata: what a process or thread is called."""

    ph: ClassVar[str] = "M"


class ExactEvent(Phased, gc=False):
    """An event whose times keep all of their digits."""

    ts: Decimal = Decimal("NaN")  # type: ignore[assignment]
    dur: Decimal = Decimal(0)  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Window:
    """Events decoded together: those that are `whole`, and begins, ends and metadata in the order of the file.

    `count` is that of all, with those of phases that tell nothing; `exact` tells how times are held. `mended` counts
    what was mended, by kind, and `first` is where the first of that stands in the text, or the event that holds it;
    `dropped` are the begin and length of what is no event, in the text.
    """

    whole: list[Any]
    rest: list[Any]
    count: int
    exact: bool = False
    mended: Mapping[str, int] = dataclasses.field(default_factory=dict)
    first: int = 0
    dropped: Sequence[tuple[int, int]] = ()


TEXTS = "times that are written as texts"
TYPES = "events with values of another type than they should have"

_RESTING = {Begin, End, Named}
_PASSED = [  # all others that the format has: instants, flows, counters, samples, objects, marks
    msgspec.defstruct(f"Passed{number}", (), gc=False, tag_field="ph", tag=phase)
    for number, phase in enumerate("iIstfCbneSTpFPNODVvRc()")
]
_FAST = msgspec.json.Decoder(list[Union[Whole, *_RESTING, *_PASSED]])  # type: ignore[valid-type]
_PLAIN = msgspec.json.Decoder(list[Phased])
_EXACT = msgspec.json.Decoder(list[ExactEvent])
_EACH = msgspec.json.Decoder(list[Raw])
_ONE = msgspec.json.Decoder(ExactEvent)
_ANY = msgspec.json.Decoder(Any, float_hook=Decimal)
_TEXT_TIMES = (re.compile(rb'"ts"\s*:\s*"'), re.compile(rb'"dur"\s*:\s*"'))


def decode_fast(text: memoryview) -> Window:
    """The events of a list; raises `msgspec.DecodeError` only if `text` is no JSON list."""
    try:
        events = _FAST.decode(text)
    except msgspec.ValidationError:
        return _decode_plain(text)
    except msgspec.DecodeError:  # no JSON, which the lenient way finds out too; or a text that is no UTF-8
        return _decode_each(text)
    phases = set(map(type, events))  # to look for them in every window would take longer
    rest = [event for event in events if type(event) in _RESTING] if phases & _RESTING else []
    return Window([event for event in events if type(event) is Whole], rest, len(events))


def _decode_plain(text: memoryview) -> Window:
    """The same where an event has no phase, or one that nobody knows."""
    try:
        events = _PLAIN.decode(text)
    except msgspec.ValidationError:
        return decode_exact(text)
    return _window(events)


def _window(events: Sequence[Phased], **more: Any) -> Window:
    """A window of events that hold their phase."""
    whole = [event for event in events if event.ph == "X"]
    return Window(whole, [event for event in events if event.ph in ("B", "E", "M")], len(events), **more)


def decode_exact(text: memoryview) -> Window:
    """The same, with times as decimals."""
    try:
        events = _EXACT.decode(text)
    except msgspec.DecodeError:
        return _decode_each(text)
    texts = [found.start() for pattern in _TEXT_TIMES for found in pattern.finditer(text)]
    return _window(events, exact=True, mended={TEXTS: len(texts)} if texts else {}, first=min(texts, default=0))


def _decode_each(text: memoryview) -> Window:
    """What is usable of each event; raises `msgspec.DecodeError` only if `text` is no JSON list."""
    events, mended, dropped = [], Counter[str](), []
    first: int | None = None
    each = [bytes(raw) for raw in _EACH.decode(text)]  # none of them holds on to the text
    whole, at = bytes(text), 0
    for raw in each:
        at = whole.index(raw, at)
        event = _decode_one(raw, mended)
        first = at if first is None and mended else first
        if event is None:
            dropped.append((at, len(raw)))
        else:
            events.append(event)
        at += len(raw)
    return _window(events, exact=True, mended=mended, first=first or 0, dropped=dropped)


def _decode_one(raw: bytes, mended: Counter[str]) -> ExactEvent | None:
    with suppress(msgspec.DecodeError):
        return _ONE.decode(raw)
    loose, kinds = _loosely(raw)
    if not isinstance(loose, dict):
        return None
    mended.update(kinds)
    return _coerce_event(loose)


def _loosely(raw: bytes) -> tuple[Any, Mapping[str, int]]:
    """Any value that the text may be read as, mended where it must be, and what was mended; None if it cannot be."""
    with suppress(msgspec.DecodeError):
        return _ANY.decode(raw), {TYPES: 1}
    found = mend(raw)
    with suppress(msgspec.DecodeError):
        return (None, {}) if found is None else (_ANY.decode(found.text), found.kinds)
    return None, {}


def _coerce_event(loose: dict[str, Any]) -> ExactEvent:
    args = loose.get("args")
    return ExactEvent(
        ph=_text(loose.get("ph")) or "",
        cat=_text(loose.get("cat")) or "",
        name=_text(loose.get("name")) or "",
        pid=_label(loose.get("pid"), ""),
        tid=_label(loose.get("tid"), ""),
        ts=_decimal(loose.get("ts"), Decimal("NaN")),
        dur=_decimal(loose.get("dur"), Decimal(0)),
        args=_coerce_arguments(args) if isinstance(args, dict) else None,
    )


def _coerce_arguments(loose: dict[str, Any]) -> Arguments:
    return Arguments(**{name: coerce(loose[key], default) for key, name, coerce, default in _FIELDS if key in loose})


def _text(value: Any, default: Any = None) -> Any:
    if isinstance(value, str):
        return value
    return default if value is None or isinstance(value, dict | list) else str(value)


def _label(value: Any, default: Any = None) -> Any:
    """An id, which may be a number or a name."""
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < 30 and value == int(value):
        return int(value)
    return value if isinstance(value, int) else _text(value, default)


def _decimal(value: Any, default: Decimal) -> Decimal:
    try:
        return default if value is None or isinstance(value, bool) else Decimal(value)
    except (InvalidOperation, TypeError, ValueError):
        return Decimal("NaN")


def _integer(bits: int) -> Any:
    def coerce(value: Any, default: Any) -> Any:
        number = _decimal(value, Decimal("NaN"))
        if not number.is_finite() or abs(number) >= 2 ** (bits - 1) or number != number.to_integral_value():
            return default
        return int(number)

    return coerce


def _ranks(value: Any, default: Any) -> Any:
    if isinstance(value, list):
        return value if all(type(rank) is int for rank in value) else default
    return _text(value, default)


_COERCIONS: dict[str, Any] = {
    **dict.fromkeys(("stream", "device"), _label),
    **dict.fromkeys(("correlation", "sequence", "group_size", "src", "dst"), _integer(64)),
    **dict.fromkeys(("elements_in", "elements_out", "seq"), _integer(64)),
    **dict.fromkeys(("collective", "group", "description", "dtype"), _text),
    "forward_thread": _integer(32),
    "ranks": _ranks,
    **dict.fromkeys(("name", "labels"), lambda value, _: value),
}
_FIELDS = [
    (info.encode_name, info.name, _COERCIONS[info.name], info.default) for info in msgspec.structs.fields(Arguments)
]
