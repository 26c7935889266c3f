"""The traces of all ranks as one document, as scripts merge them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from bubblescope.emit.job import Job

__all__ = ["merged"]

OFFSET = 100_000
"""By how much the ids of processes are shifted from one rank to the next."""


def merged(job: Job, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The events of all documents in one list, with what the last one tells beside its own."""
    shift = OFFSET if job.one_file in {"shifted", "sorted"} and not job.one_process else 0
    events = [
        event | {"pid": event["pid"] + shift * place} if isinstance(event["pid"], int) else event
        for place, document in enumerate(documents)
        for event in document["traceEvents"]
    ]
    if job.one_file == "sorted":
        events.sort(key=_moment)
    beside = documents[0] if job.one_process else documents[-1]
    return dict(beside) | {"traceEvents": events}


def _moment(event: Mapping[str, Any]) -> float:
    """When an event began, in microseconds."""
    return float(orjson.dumps(event["ts"]))
