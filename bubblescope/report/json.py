"""What commands write as JSON, and the JSON Schemas that say what it holds."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from bubblescope.model.baseline import Baseline
from bubblescope.model.comparison import Comparison
from bubblescope.model.gate import Gate
from bubblescope.model.info import Info
from bubblescope.model.report import Report
from bubblescope.model.whatif import WhatIf
from bubblescope.report.wording import visible

__all__ = ["SCHEMAS", "Described", "harmless", "render", "schema", "written"]

_ODD = re.compile(r"[^\n\x20-\x7e]")
_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


@dataclass(frozen=True, slots=True)
class Described:
    """A kind of output that has a schema: its type, its version, what it is, and the file of the package."""

    kind: type
    version: str
    description: str
    file: str


SCHEMAS = {
    "report": Described(
        Report,
        "bubblescope.report/1",
        "What `bubblescope analyze --json` writes. Times are nanoseconds, shares are fractions of 1.",
        "schema.json",
    ),
    "whatif": Described(
        WhatIf,
        "bubblescope.whatif/1",
        "What `bubblescope whatif --json` writes. Times are nanoseconds, shares are fractions of 1.",
        "whatif.schema.json",
    ),
    "info": Described(
        Info,
        "bubblescope.info/1",
        "What `bubblescope info --json` writes. Times are nanoseconds.",
        "info.schema.json",
    ),
    "gate": Described(
        Gate,
        "bubblescope.gate/1",
        "What `bubblescope gate --json` writes. Times are nanoseconds, shares are fractions of 1.",
        "gate.schema.json",
    ),
    "baseline": Described(
        Baseline,
        "bubblescope.baseline/1",
        "What `bubblescope baseline save` writes. Times are nanoseconds, shares are fractions of 1.",
        "baseline.schema.json",
    ),
    "comparison": Described(
        Comparison,
        "bubblescope.comparison/1",
        "What `bubblescope compare --json` writes. Times are nanoseconds, shares are fractions of 1.",
        "comparison.schema.json",
    ),
}
"""What has a schema, by the name that `bubblescope schema` takes."""


def render(value: Report | WhatIf | Info | Gate | Baseline | Comparison) -> bytes:
    """The value with the keys in the order of the types; raises ValueError on NaN or infinity."""
    self_check(value)
    try:
        data = orjson.dumps(value, option=_LAYOUT)
    except orjson.JSONEncodeError:
        # A file name need not be UTF-8; Python then holds its bytes as lone surrogates.
        data = orjson.dumps(_utf8(dataclasses.asdict(value)), option=_LAYOUT)
    return harmless(data)


def written(data: Mapping[str, Any]) -> bytes:
    """An object that has no type of its own, with its keys in their order and no character that acts."""
    return harmless(orjson.dumps(_utf8(data), option=_LAYOUT))


def harmless(data: bytes) -> bytes:
    """The same JSON with escapes for what commands a terminal or a CI system: JSON asks for them only below a blank."""
    data = data.replace(b"##[", b"##\\u005b")
    if data.isascii() and b"\x7f" not in data:
        return data
    return _ODD.sub(lambda found: _escaped(found[0]), data.decode()).encode()


def _escaped(char: str) -> str:
    """A character as it is where it shows, else as JSON escapes it: UTF-16, unit by unit."""
    return char if visible(char) == char else json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f"


def self_check(value: object, path: str = "report") -> None:
    """Find a number that JSON cannot hold; orjson would write it as null and hide the mistake."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} is {value}, where a report holds a number or None")
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            self_check(getattr(value, field.name), f"{path}.{field.name}")
    elif isinstance(value, dict):
        for key, item in value.items():
            self_check(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            self_check(item, f"{path}[{index}]")


def _utf8(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if isinstance(value, dict):
        return {_utf8(key): _utf8(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_utf8(item) for item in value]
    return value


def schema(name: str = "report") -> bytes:
    """The JSON Schema of `render`'s output, made from the types of what is called so in `SCHEMAS`."""
    import msgspec  # noqa: PLC0415  only this function needs it

    described = SCHEMAS[name]
    made = msgspec.json.schema(described.kind)
    definitions = {name: _as_written(body) for name, body in made["$defs"].items()}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": described.version,
        "description": described.description,
    }
    return orjson.dumps(head | {"$ref": made["$ref"], "$defs": definitions}, option=_LAYOUT)


def _as_written(definition: dict[str, Any]) -> dict[str, Any]:
    """The definition of an object whose every key is always written, defaults included."""
    properties = {name: _constant(body) for name, body in definition["properties"].items()}
    return definition | {"properties": properties, "required": list(properties)}


def _constant(body: dict[str, Any]) -> dict[str, Any]:
    """A choice of one is a constant, and a key that is always there needs no default."""
    body = {key: value for key, value in body.items() if key != "default"}
    if len(body.get("enum", ())) == 1:
        return {"const": body["enum"][0]}
    return body
