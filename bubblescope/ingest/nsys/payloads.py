"""What NCCL tells of a call in its range: communicator, peer, bytes.

NCCL attaches them to its ranges (NVIDIA/nccl, src/include/nvtx_payload_schemas.h). An export holds them only if
it was asked to: as JSON, or as the bytes that NCCL wrote, behind a header that names their layout.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from bubblescope.ingest.nsys.database import ABSENT, Database
from bubblescope.ingest.nsys.schema import PAYLOAD_ENTRIES
from bubblescope.ingest.nsys.strings import decoded
from bubblescope.ingest.tables import MOST_RANKS, whole

__all__ = ["Payload", "Payloads"]

_HEADER = struct.Struct("<IIIIQQ")  # domain, unused, layout, unused, bytes of the payload, bytes in all
_INTEGERS = {
    5: "<i", 6: "<I", 9: "<q", 10: "<Q", 7: "<q", 8: "<Q",
    11: "<b", 12: "<B", 13: "<h", 14: "<H", 15: "<i", 16: "<I", 17: "<q", 18: "<Q", 22: "<Q",
}  # fmt: skip
"""Types of NVTX's payload entries that are integers (NVIDIA/NVTX, nvToolsExtPayload.h), on 64-bit Linux."""

_COMMUNICATOR, _SIZE, _PEER = "NCCL communicator ID", "Message size [bytes]", "Peer rank"
_RANKS, _RANK = "No. of ranks", "Rank"
_LARGEST = 2**63


class Payload(NamedTuple):
    """What a range of NCCL says; -1 and the empty text where it does not say.

    `peer` and `rank` count within the communicator. `ranks` is the number of its members.
    """

    communicator: str = ""
    size: int = -1
    peer: int = -1
    ranks: int = -1
    rank: int = -1


_NOTHING = Payload()
_Layout = tuple[tuple[str, int, str], ...]  # name of the field, where it lies, how it is written


class Payloads:
    """Reads payloads; each different one once."""

    def __init__(self, database: Database) -> None:
        self._layouts = _layouts(database)
        self._known: dict[bytes, Payload] = {}

    def of_json(self, text: bytes) -> Payload:
        """The payload that a JSON object holds; nothing if it is none."""
        return self._remembered(text, _from_json)

    def of_blob(self, blob: bytes) -> Payload:
        """The payload that NCCL's bytes hold; nothing if they are no payload of a known layout."""
        return self._remembered(blob, self._from_blob)

    def _remembered(self, raw: bytes, read: Any) -> Payload:
        payload = self._known.get(raw)
        if payload is None:
            payload = self._known[raw] = read(raw)
        return payload

    def _from_blob(self, blob: bytes) -> Payload:
        raw = _unhexed(blob)
        if len(raw) < _HEADER.size:
            return _NOTHING
        domain, _, layout, _, size, _ = _HEADER.unpack_from(raw)
        body = raw[_HEADER.size : _HEADER.size + size]
        fields = self._layouts.get((domain, layout), ())
        return _payload(
            {
                name: struct.unpack_from(way, body, at)[0]
                for name, at, way in fields
                if 0 <= at <= len(body) - struct.calcsize(way)
            }
        )


def _layouts(database: Database) -> dict[tuple[int, int], _Layout]:
    """The fields of each layout, by domain and number; of several processes that register one it is the same."""
    found: dict[tuple[int, int], dict[str, tuple[str, int, str]]] = {}
    for rows in database.rows(PAYLOAD_ENTRIES):
        columns = (rows.numbers[name].tolist() for name in ("domainId", "schemaId", "type", "offset"))
        for domain, layout, kind, offset, name in zip(*columns, rows.texts["name"], strict=True):
            if name is not None and kind in _INTEGERS:
                text = decoded(name)
                field = (text, 0 if offset == ABSENT else offset, _INTEGERS[kind])
                found.setdefault((domain, layout), {})[text] = field
    return {key: tuple(fields.values()) for key, fields in found.items()}


def _unhexed(blob: bytes) -> bytes:
    """Some tools write bytes as text."""
    try:
        return bytes.fromhex(blob.decode("ascii"))
    except ValueError:
        return blob


def _from_json(text: bytes) -> Payload:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return _NOTHING
    return _payload(value) if isinstance(value, dict) else _NOTHING


def _payload(fields: Mapping[str, Any]) -> Payload:
    communicator = _integer(fields.get(_COMMUNICATOR), 2**64)
    return Payload(
        communicator="" if communicator < 0 else f"{communicator:x}",
        size=_integer(fields.get(_SIZE), _LARGEST),
        peer=_integer(fields.get(_PEER), MOST_RANKS),
        ranks=_integer(fields.get(_RANKS), MOST_RANKS),
        rank=_integer(fields.get(_RANK), MOST_RANKS),
    )


def _integer(value: Any, limit: int) -> int:
    """A natural number below the limit, also as text with marks between its thousands; else -1."""
    number = whole(value.replace(",", "") if isinstance(value, str) else value, limit)
    return -1 if number is None else number
