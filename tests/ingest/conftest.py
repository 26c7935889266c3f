"""Helpers: write a small trace, and read one with the standard library to compare with."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from bubblescope.model.trace import RankTrace

OPS = {"cpu_op", "operator"}
ANNOTATIONS = {"user_annotation", "user"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime"}
WORK = {"kernel": 0, "gpu_memcpy": 1, "memcpy": 1, "gpu_memset": 2, "memset": 2}
KNOWN = OPS | ANNOTATIONS | CALLS | set(WORK)
MARKS = ("schemaVersion", "deviceProperties", "distributedInfo", "traceName", "baseTimeNanoseconds")


@pytest.fixture
def save(tmp_path):
    """Write a document, or text or bytes, to a file of the given name."""

    def write(content, name: str = "trace.json") -> Path:
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def rows_by_json(path: Path) -> Counter:
    """What is kept of a trace whose ranges are whole, as (block, name, start, end), by the standard library."""
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    document = json.loads(text.decode("utf-8-sig", "replace"), parse_float=Decimal)
    told = document if isinstance(document, dict) else {"traceEvents": document}
    whole = [event for event in told["traceEvents"] if event.get("ph") == "X"] + nested(told["traceEvents"])
    correlated = {correlation(event) for event in whole if category(event) in WORK} - {-1}
    kineto = any(mark in told for mark in MARKS) or any(category(event) in KNOWN for event in whole)
    rows: Counter = Counter()
    for event in whole:
        start = nanos(event.get("ts")) + told.get("baseTimeNanoseconds", 0)
        end = start + max(0, nanos(event.get("dur", 0)))
        block = block_of(event, kineto=kineto)
        if block == "launches" and correlation(event) not in correlated and not launches(event["name"]):
            continue
        if block is not None and nanos(event["ts"]) < 2**52 * 1000:
            rows[block, event["name"], start, end] += 1
    return rows


def rows_of(trace: RankTrace) -> Counter:
    """The same of a trace that was read."""
    rows: Counter = Counter()
    for name in ("ops", "annotations", "launches", "kernels"):
        block = getattr(trace, name)
        for number, start, end in zip(block.name.tolist(), block.start.tolist(), block.end.tolist(), strict=True):
            rows[name, trace.names[number], start, end] += 1
    return rows


def nested(events: list[dict]) -> list[dict]:
    """Ranges given in halves that nest strictly, as whole events."""
    stacks: dict = {}
    found = []
    for event in sorted((event for event in events if event.get("ph") in ("B", "E")), key=lambda event: event["ts"]):
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "B":
            stack.append(event)
        else:
            begin = stack.pop()
            found.append(begin | {"dur": event["ts"] - begin["ts"]})
    return found


def block_of(event: dict, *, kineto: bool) -> str | None:
    """The block that keeps an event."""
    cat = category(event)
    if cat in WORK:
        return "kernels"
    for cats, block in ((OPS, "ops"), (ANNOTATIONS, "annotations"), (CALLS, "launches")):
        if cat in cats:
            return block
    return None if kineto else "annotations"


def category(event: dict) -> str:
    """The category in small letters."""
    return event.get("cat", "").lower()


def correlation(event: dict) -> int:
    """The correlation, -1 without."""
    return event.get("args", {}).get("correlation", -1)


def launches(name: str) -> bool:
    """Whether a call launches, by its name."""
    return any(word in name.lower() for word in ("launch", "memcpy", "memset", "enqueue"))


def nanos(micros: Decimal | float | str) -> int:
    """Microseconds as written, in nanoseconds."""
    return int((Decimal(str(micros)) * 1000).to_integral_value())


@pytest.fixture
def by_json():
    """Read a file with the standard library."""
    return rows_by_json


@pytest.fixture
def rows():
    """The rows of a trace that was read."""
    return rows_of
