"""The files of a recording, with nothing in them about the machine that made them."""

from __future__ import annotations

import gzip
import json
import re
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recording.plan import PlanError

__all__ = ["earlier_traces", "publish_trace", "trace_name", "write_description"]

NEUTRAL_HOST = "host0"


def trace_name(rank: int, *, compressed: bool) -> str:
    """Name the trace of a rank."""
    return f"rank{rank}_trace.json" + (".gz" if compressed else "")


def earlier_traces(out: Path) -> list[Path]:
    """List the traces that an earlier recording left in a folder."""
    return sorted(out.glob("rank*_trace.json.gz"))


def neutral(text: str, name: str) -> str:
    """Take the machine's name and the folder out of a trace, and leave every other byte as torch wrote it."""
    value = r'"(?:[^"\\]|\\.)*"'
    text = re.sub(rf'("host_name":\s*){value}', rf'\g<1>"{NEUTRAL_HOST}"', text)
    return re.sub(rf'("traceName":\s*){value}', rf'\g<1>"{name}"', text)


def strings_in(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)


def private_strings(text: str) -> list[str]:
    """List the strings of a trace that tell about this machine: its name or its folders, the user's among them."""
    names = {socket.gethostname(), socket.getfqdn()} - {"localhost"}
    folders = {str(path) for path in (Path.home(), Path.cwd(), Path(sys.prefix), Path(tempfile.gettempdir()))} - {"/"}
    return sorted(
        {
            string
            for string in strings_in(json.loads(text))
            if string in names or any(folder in string for folder in folders)
        }
    )


def publish_trace(raw: Path, target: Path) -> None:
    """Write a raw trace, neutral and compressed, to its place; refuse when it still tells about the machine."""
    text = neutral(raw.read_text(encoding="utf-8"), target.name.removesuffix(".gz"))
    if found := private_strings(text):
        raise PlanError(f"{target.name} would tell about this machine and was not written: {', '.join(found)}")
    with target.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=0) as packed:
        packed.write(text.encode())


def write_description(description: dict[str, Any], out: Path) -> None:
    """Write ``recorded.json``: how the traces beside it were made."""
    (out / "recorded.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
