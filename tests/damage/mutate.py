"""A file damaged by a seed: `mutated(data, seed)` is the same for the same file and seed, whatever the file is."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from contextlib import suppress
from random import Random
from typing import NamedTuple

import orjson

from tests.damage.databases import ROWS, edited
from tests.damage.events import DOCUMENTS
from tests.damage.texts import BYTES, TEXTS

__all__ = ["Mutation", "mutated", "plain"]

_GZIP = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\x00"
_MOST = 1 << 24  # bytes that one piece of a compressed file may become
_ARCHIVES = ("gz_bytes", "gz_tail", "gz_members", "gz_twice")
Way = Callable[[bytes, Random], bytes]


class Mutation(NamedTuple):
    """What was done, in words, and what became of the file."""

    name: str
    data: bytes


def plain(data: bytes) -> bytes:
    """The file itself, inflated where it is gzip, as far as it goes."""
    if not data.startswith(_GZIP):
        return data
    inflater, text = zlib.decompressobj(31), b""
    with suppress(zlib.error):
        for at in range(0, len(data), 256):
            text += inflater.decompress(data[at : at + 256], _MOST)
    return text


def mutated(data: bytes, seed: int) -> Mutation:
    """The file with one to three damages.

    Text that was compressed is not compressed again, which costs more than reading it, but for the seeds whose damage
    is one of the archive.
    """
    rng = Random(seed)  # noqa: S311 - a seed is the point
    if data.startswith(_GZIP) and rng.random() < 0.1:
        how = rng.choice(_ARCHIVES)
        return Mutation(how, _archive(how, data, rng))
    data, names = plain(data), []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name, way = rng.choice(_ways(data))
        data = way(data, rng)
        names.append(name)
    return Mutation("+".join(names), data)


def _ways(data: bytes) -> list[tuple[str, Way]]:
    """What can happen to a file; that which goes deep stands in the list more often."""
    anyhow = list(BYTES.items())
    if data.startswith(_SQLITE):
        return anyhow + 4 * [
            (name, lambda data, rng, edit=edit: edited(data, edit, rng)) for name, edit in ROWS.items()
        ]
    if data[:1024].lstrip()[:1] in (b"{", b"["):
        deep = [(name, lambda data, rng, edit=edit: _document(data, edit, rng)) for name, edit in DOCUMENTS.items()]
        return anyhow + list(TEXTS.items()) + 2 * deep
    return anyhow


def _document(data: bytes, edit: Callable[[object, Random], None], rng: Random) -> bytes:
    """The text after an edit of its values; as it was where it is no JSON any more."""
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError:
        return data
    edit(document, rng)
    try:
        return orjson.dumps(document)
    except TypeError:  # integers beyond 64 bits
        return json.dumps(document).encode()


def _archive(how: str, data: bytes, rng: Random) -> bytes:
    """A gzip file whose bytes are damaged, or which holds more than one file."""
    if how == "gz_bytes":
        return rng.choice(list(BYTES.values()))(data, rng)
    if how == "gz_tail":
        return data[:-8] + rng.choice((b"", bytes(8), rng.randbytes(8), data[-8:] + b"\x00" * 512, data[-8:] + b"{}"))
    if how == "gz_members":
        return data + gzip.compress(rng.choice((b"", b"\n", b"{}", b"]}")), 1)
    return gzip.compress(data, 1)
