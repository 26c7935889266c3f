"""The report as JSON, `bubblescope.report/1`, and the JSON Schema that says what it holds."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import orjson

from bubblescope.model.report import Report

__all__ = ["render", "schema"]

_LAYOUT = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE


def render(report: Report) -> bytes:
    """The report with the keys in the order of the types; raises ValueError on NaN or infinity."""
    self_check(report)
    try:
        return orjson.dumps(report, option=_LAYOUT)
    except orjson.JSONEncodeError:
        # A file name need not be UTF-8; Python then holds its bytes as lone surrogates.
        return orjson.dumps(_utf8(dataclasses.asdict(report)), option=_LAYOUT)


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


def schema() -> bytes:
    """The JSON Schema of `render`'s output, made from the types of the report."""
    import msgspec  # noqa: PLC0415  only this function needs it

    made = msgspec.json.schema(Report)
    definitions = {name: _as_written(body) for name, body in made["$defs"].items()}
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "bubblescope.report/1",
        "description": "What `bubblescope analyze --json` writes. Times are nanoseconds, shares are fractions of 1.",
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
