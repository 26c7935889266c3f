"""What may stand in a JSON trace that is sound JSON: edits of a decoded document, in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

__all__ = ["DOCUMENTS", "ODD", "events_of"]

Edit = Callable[[Any, Random], None]

ODD = (
    *(None, True, "", "x", "7", "-1", "1e3", "nan", [], {}, [1, "2", None], {"a": {"b": []}}),
    *(0, -1, 1, 0.5, -0.0, 1e300, -1e300, 2**31, -(2**31), 2**53, 2**63 - 1, -(2**63), 2**64, 10**30),
    *(
        "\x1b[2J\x1b]0;x\x07",
        "<script>alert(1)</script>",
        "| a | b |\n# h",
        "%0A::error::x",
        "\u202edesrever",
        "\ud83d\ude00",
    ),
    *("=1+1", "../../etc/passwd", "nccl:send 0->1", "PP:0F0", "PP:999999F999999", "ProfilerStep#-1", "ProfilerStep#99"),
)
"""Values of every type that JSON has, and texts that mean something to somebody."""

_KEYS = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp")
_TIMES = ("ts", "dur")
_METADATA = (
    *("distributedInfo", "deviceProperties", "baseTimeNanoseconds", "traceName", "schemaVersion", "host_name"),
    *("displayTimeUnit", "trace_id"),
)
_DISTRIBUTED = ("rank", "world_size", "backend", "pg_config", "pg_count", "nccl_version")
_MOST = 40


def events_of(document: Any) -> list[Any]:
    """The events of a document, as the list that it holds; an empty list where there are none."""
    events = document.get("traceEvents", []) if isinstance(document, dict) else document
    return events if isinstance(events, list) else []


def _some(document: Any, rng: Random) -> list[dict[str, Any]]:
    """Some of the events: a few anywhere, or all of one kind."""
    events = [event for event in events_of(document) if isinstance(event, dict)]
    if not events:
        return []
    if rng.random() < 0.3:
        model = rng.choice(events)
        return [event for event in events if event.get("cat") == model.get("cat")]
    return rng.sample(events, min(len(events), rng.randint(1, _MOST)))


def odd_values(document: Any, rng: Random) -> None:
    """A field of some events holds what it never should."""
    key = rng.choice(_KEYS)
    for event in _some(document, rng):
        event[key] = rng.choice(ODD)


def odd_arguments(document: Any, rng: Random) -> None:
    """An argument of some events does."""
    for event in _some(document, rng):
        args = event.get("args")
        if isinstance(args, dict) and args:
            args[rng.choice(list(args))] = rng.choice(ODD)


def texts_of_numbers(document: Any, rng: Random) -> None:
    """All numbers of some events are texts."""
    for event in _some(document, rng):
        for holder in (event, event.get("args")):
            if isinstance(holder, dict):
                holder.update({k: str(v) for k, v in holder.items() if isinstance(v, int | float)})


def lost_keys(document: Any, rng: Random) -> None:
    """Some events lack a field."""
    key = rng.choice(_KEYS)
    for event in _some(document, rng):
        event.pop(key, None)


def lost_events(document: Any, rng: Random) -> None:
    """Some events are missing, or all of one kind."""
    lost = {id(event) for event in _some(document, rng)}
    events = events_of(document)
    events[:] = [event for event in events if id(event) not in lost]


def repeated_events(document: Any, rng: Random) -> None:
    """Some events stand there again."""
    events_of(document).extend(dict(event) for event in _some(document, rng))


def shuffled_events(document: Any, rng: Random) -> None:
    """No order that any writer has."""
    rng.shuffle(events_of(document))


def swapped_values(document: Any, rng: Random) -> None:
    """Some events have changed their fields."""
    chosen, key = _some(document, rng), rng.choice(_KEYS)
    values = [event.get(key) for event in chosen]
    rng.shuffle(values)
    for event, value in zip(chosen, values, strict=True):
        event[key] = value


def moved_times(document: Any, rng: Random) -> None:
    """Some events ran at another time, or for another time."""
    key, by = rng.choice(_TIMES), rng.choice((-1e18, -1e9, -1e3, -1, 0.001, 1, 1e3, 1e9, 1e15))
    factor = rng.choice((0, 1, 1, -1, 1e6))
    for event in _some(document, rng):
        if isinstance(event.get(key), int | float):
            event[key] = event[key] * factor + by


def halves(document: Any, rng: Random) -> None:
    """Events whose phase is another."""
    phase = rng.choice("BEiIMsfCbeNODX")
    for event in _some(document, rng):
        event["ph"] = phase


def one_place(document: Any, rng: Random) -> None:
    """Everything in one thread, or each event in its own."""
    single = rng.random() < 0.5
    for number, event in enumerate(_some(document, rng)):
        event["pid"], event["tid"] = (0, 0) if single else (f"p{number}", number)


def odd_metadata(document: Any, rng: Random) -> None:
    """What is told of the recording cannot be."""
    if isinstance(document, dict):
        document[rng.choice(_METADATA)] = rng.choice(ODD)


def odd_job(document: Any, rng: Random) -> None:
    """What is told of the job cannot be."""
    if not isinstance(document, dict):
        return
    told = document.get("distributedInfo")
    if not isinstance(told, dict):
        told = document["distributedInfo"] = {}
    groups = told.get("pg_config")
    if isinstance(groups, list) and groups and isinstance(groups[0], dict) and rng.random() < 0.5:
        groups[0][rng.choice(("pg_name", "pg_desc", "ranks", "pg_size", "backend_config"))] = rng.choice(ODD)
    else:
        told[rng.choice(_DISTRIBUTED)] = rng.choice(ODD)


def lost_events_list(document: Any, rng: Random) -> None:
    """The list of events is no list."""
    if isinstance(document, dict) and "traceEvents" in document:
        document["traceEvents"] = rng.choice(ODD)


DOCUMENTS: Mapping[str, Edit] = {
    edit.__name__: edit
    for edit in (
        odd_values,
        odd_arguments,
        texts_of_numbers,
        lost_keys,
        lost_events,
        repeated_events,
        shuffled_events,
        swapped_values,
        moved_times,
        halves,
        one_place,
        odd_metadata,
        odd_job,
        lost_events_list,
    )
}
"""What happens to the values of a document."""
