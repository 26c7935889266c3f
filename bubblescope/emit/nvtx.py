"""NVTX as an export holds it: the ranges that torch and its users push, and those that NCCL pushes with payloads."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from bubblescope.emit.job import Job
from bubblescope.emit.tables import Row, Strings
from bubblescope.emit.tape import Args, Call

__all__ = ["call_row", "domain_row", "entry_rows", "pushed", "range_row", "schema_rows"]

TORCH_DOMAIN, NCCL_DOMAIN = 0, 1
PUSH_POP, DOMAIN_CREATE = 59, 75  # event types
FIRST_SCHEMA = 1 << 24  # that a library may number itself
STRUCT = 1  # a type of schemas
INT, U64, SIZE = 5, 18, 22  # types of fields
REDUCTION = FIRST_SCHEMA + 16  # the type of a reduction is an enumeration that NCCL defines
CODES = {INT: "<i", U64: "<Q", SIZE: "<Q", REDUCTION: "<i"}


class Field(NamedTuple):
    """One value of a payload: its name, type, and the bytes before it."""

    name: str
    type: int
    offset: int


class Schema(NamedTuple):
    """The payload of a function of NCCL, since 2.25."""

    number: int
    fields: tuple[Field, ...]
    size: int = 24

    @property
    def ident(self) -> int:
        """How exports number it."""
        return FIRST_SCHEMA + self.number


_COMMUNICATOR = Field("NCCL communicator ID", U64, 0)
_SIZE = Field("Message size [bytes]", SIZE, 8)
_MESSAGE = (_COMMUNICATOR, _SIZE, Field("Peer rank", INT, 16))
_MEMBER = (Field("No. of ranks", INT, 8), Field("Rank", INT, 12), Field("CUDA device", INT, 16))
SCHEMAS = {
    "ncclCommInitRank": Schema(0, (_COMMUNICATOR, *_MEMBER)),
    "ncclAllReduce": Schema(5, (_COMMUNICATOR, _SIZE, Field("Reduction operation", REDUCTION, 16))),
    "ncclReduceScatter": Schema(7, (_COMMUNICATOR, _SIZE, Field("Reduction operation", REDUCTION, 16))),
    "ncclSend": Schema(9, _MESSAGE),
    "ncclRecv": Schema(10, _MESSAGE),
}
"""By function; the others have no payload."""


def pushed(job: Job, event: Args) -> str | None:
    """The text of torch's range, or of the user's, behind an event; None where none was pushed.

    With autograd the job runs under `torch.autograd.profiler.emit_nvtx`, which pushes every operator and adds its
    numbers; without it only labels are pushed.
    """
    name, args = event["name"], event["args"]
    if job.autograd:
        number = f", seq = {args['Sequence number']}" if "Sequence number" in args else ""
        return f"{name}{number}, op_id = {args['External id']}"
    return None if event["cat"] != "user_annotation" or name.startswith("nccl:") else name


def range_row(text: str, start: int, end: int, thread: int) -> Row:
    """A range of the domain that all share."""
    told = {"text": text, "domainId": TORCH_DOMAIN, "globalTid": thread}
    return {"start": start, "end": end, "eventType": PUSH_POP} | told


def domain_row(start: int, thread: int) -> Row:
    """The moment from which NCCL has a domain of its own."""
    return {"start": start, "eventType": DOMAIN_CREATE, "text": "NCCL", "domainId": NCCL_DOMAIN, "globalTid": thread}


def call_row(job: Job, call: Call, origin: int, thread: int, strings: Strings) -> Row:
    """A range of NCCL, whose name is a registered text; its payload is as the job says."""
    row: dict[str, Any] = {"start": call.start - origin, "end": call.end - origin, "eventType": PUSH_POP}
    row |= {"textId": strings.ident(call.name), "domainId": NCCL_DOMAIN, "globalTid": thread}
    schema = SCHEMAS.get(call.name)
    if schema is None or job.p2p_args == "none":
        return row
    told = _known(job, schema)
    values = call.values[-len(told.fields) :]
    if job.payloads == "json":
        names = (field.name for field in told.fields)
        row["jsonText"] = orjson.dumps(dict(zip(names, values, strict=True))).decode()
    elif job.payloads == "blobs":
        row["binaryData"] = _packed(told, values)
    return row


def _known(job: Job, schema: Schema) -> Schema:
    """The schema as the job's NCCL has it: before 2.25 none begins with the communicator."""
    if job.groups_told == "named":
        return schema
    fields = tuple(field._replace(offset=field.offset - 8) for field in schema.fields[1:])
    return schema._replace(fields=fields, size=schema.size - 8)


def _packed(schema: Schema, values: tuple[int, ...]) -> bytes:
    """A payload in bytes, behind a head of 32 that says what it is and how long."""
    payload = bytearray(schema.size)
    for field, value in zip(schema.fields, values, strict=True):
        struct.pack_into(CODES[field.type], payload, field.offset, value)
    return struct.pack("<QQQQ", NCCL_DOMAIN, schema.ident, schema.size, 32 + schema.size) + payload


def schema_rows(job: Job) -> Iterable[Row]:
    """The schemas that one process registers."""
    for schema in (_known(job, schema) for schema in SCHEMAS.values()):
        sizes = {"numEntries": len(schema.fields), "payloadSize": schema.size}
        yield {"domainId": NCCL_DOMAIN, "schemaId": schema.ident, "type": STRUCT} | sizes


def entry_rows(job: Job) -> Iterable[Row]:
    """Their fields; an offset of 0 is not written."""
    for schema in (_known(job, schema) for schema in SCHEMAS.values()):
        for index, field in enumerate(schema.fields):
            told = {"type": field.type, "name": field.name, "offset": field.offset or None}
            yield {"domainId": NCCL_DOMAIN, "schemaId": schema.ident, "idx": index} | told
