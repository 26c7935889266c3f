"""What happens to the text of a JSON file: bytes in, bytes out, each by a random generator of its own.

The list follows what was seen in the wild: jobs killed while writing, writers that know no JSON, copies in text mode.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

__all__ = ["BYTES", "TEXTS"]

Edit = Callable[[bytes, Random], bytes]

_NUMBER = re.compile(rb"(?<=:)[ ]?-?\d+(?:\.\d+)?(?=[,}\s])")
_STRING = re.compile(rb'"[^"\\\n]{2,60}"')
_BORDER = re.compile(rb"[}\]],?")
_BARE = (
    b"inf",
    b"-inf",
    b"Infinity",
    b"-Infinity",
    b"nan",
    b"NaN",
    b"N/A",
    b"None",
    b"undefined",
    b"1e999",
    b"+1",
    b"01",
)
_HUGE = (str(2**63).encode(), str(2**64 + 1).encode(), str(-(2**70)).encode(), b"9" * 400, b"1e308", b"-0", b"1E+400")
_ESCAPES = (rb"\x", rb"C:\temp\new", rb"\u12", rb"\ud800", rb"\udc00\ud800", rb"\8", b"\\", rb"\u0000")
_INSIDE = (
    b"\x00",
    b"\x01",
    b"\t",
    b"\n",
    b"\r\n",
    b"\x1b[2J",
    b"\xff\xfe",
    b"\xc3",
    b"\xed\xa0\x80",
    b'"',
    b'","',
    b'"}',
    b"\x85",
)
_MOST = 30  # edits of one kind in one file


def _spot(data: bytes, rng: Random) -> int:
    return rng.randrange(len(data) + 1)


def _slice(data: bytes, rng: Random, most: int = 4096) -> tuple[int, int]:
    start = _spot(data, rng)
    return start, min(len(data), start + rng.randint(1, rng.choice((4, 64, most))))


def cut(data: bytes, rng: Random) -> bytes:
    """The end is missing."""
    return data[: _spot(data, rng)]


def beheaded(data: bytes, rng: Random) -> bytes:
    """The beginning is missing."""
    return data[_spot(data, rng) :]


def flip_bits(data: bytes, rng: Random) -> bytes:
    """Some bits are the other way round."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, _MOST) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def drop_bytes(data: bytes, rng: Random) -> bytes:
    """A part is missing."""
    start, stop = _slice(data, rng)
    return data[:start] + data[stop:]


def repeat_bytes(data: bytes, rng: Random) -> bytes:
    """A part stands there twice."""
    start, stop = _slice(data, rng)
    return data[:stop] + data[start:]


def zero_bytes(data: bytes, rng: Random) -> bytes:
    """A part is zeros, as after a crash of the machine."""
    start, stop = _slice(data, rng)
    return data[:start] + bytes(stop - start) + data[stop:]


def swap_parts(data: bytes, rng: Random) -> bytes:
    """Two parts have changed places."""
    a, b, c = sorted(_spot(data, rng) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def twice(data: bytes, rng: Random) -> bytes:
    """Two files in one."""
    return data + rng.choice((b"", b"\n", b",")) + data


BYTES: Mapping[str, Edit] = {
    edit.__name__: edit for edit in (cut, beheaded, flip_bits, drop_bytes, repeat_bytes, zero_bytes, swap_parts, twice)
}
"""What happens to any file."""


def _at_some(pattern: re.Pattern[bytes], change: Callable[[bytes, Random], bytes]) -> Edit:
    """An edit of some of the places that a pattern finds, from a random one on."""

    def edit(data: bytes, rng: Random) -> bytes:
        places = []
        for found in pattern.finditer(data, _spot(data, rng)):
            places.append(found)
            if len(places) == 10 * _MOST:
                break
        chosen = sorted(rng.sample(places, min(len(places), rng.randint(1, _MOST))), key=lambda found: found.start())
        parts, at = [], 0
        for found in chosen:
            parts += [data[at : found.start()], change(found[0], rng)]
            at = found.end()
        return b"".join([*parts, data[at:]])

    return edit


def _inside(text: bytes, rng: Random, pieces: tuple[bytes, ...]) -> bytes:
    at = rng.randrange(1, len(text))
    return text[:at] + rng.choice(pieces) + text[at:]


def bom(data: bytes, rng: Random) -> bytes:
    """Marks and blanks that editors and loggers put in front."""
    return (
        rng.choice((b"\xef\xbb\xbf", b"\n\n", b"\xef\xbb\xbf \n", b"\xff\xfe", b"\x00", b"WARNING: profiler\n")) + data
    )


def wide(data: bytes, rng: Random) -> bytes:
    """Written in UTF-16."""
    return data.decode("utf-8", "replace").encode(rng.choice(("utf-16", "utf-16-le", "utf-16-be")))


def unfinished(data: bytes, rng: Random) -> bytes:
    """Only the last brackets are missing, or there are too many."""
    return data.rstrip(b" \n]}") + rng.choice((b"", b"}", b"},", b"}]", b"}]}}", b"}],", b"]]"))


def nested(data: bytes, rng: Random) -> bytes:
    """A value of many levels stands somewhere."""
    depth = rng.choice((10, 600, 5000))
    value = b"[" * depth + b"]" * rng.choice((depth, depth - 1, 0))
    return _at_some(_NUMBER, lambda _found, _rng: value)(data, rng)


TEXTS: Mapping[str, Edit] = {
    "trailing_commas": _at_some(_BORDER, lambda found, _: b"," + found),
    "lost_commas": _at_some(re.compile(rb"[}\]],"), lambda found, _: found[:1]),
    "bare_words": _at_some(_NUMBER, lambda _, rng: rng.choice(_BARE)),
    "huge_numbers": _at_some(_NUMBER, lambda _, rng: rng.choice(_HUGE)),
    "quoted_numbers": _at_some(_NUMBER, lambda found, _: b'"' + found.strip() + b'"'),
    "nulls": _at_some(_NUMBER, lambda _, rng: rng.choice((b"null", b"true", b"[]", b"{}", b'""', b"-1", b"0"))),
    "bad_escapes": _at_some(_STRING, lambda found, rng: _inside(found, rng, _ESCAPES)),
    "odd_bytes": _at_some(_STRING, lambda found, rng: _inside(found, rng, _INSIDE)),
    "duplicate_keys": _at_some(re.compile(rb'"(?:ts|dur|name|ph|args|cat)":'), lambda found, _: found + b"7," + found),
    "lost_quotes": _at_some(_STRING, lambda found, rng: found[1:] if rng.random() < 0.5 else found[:-1]),
    **{edit.__name__: edit for edit in (bom, wide, unfinished, nested)},
}
"""What happens to JSON."""
