"""Tables in Parquet, by pyarrow: `pip install 'bubblescope[parquet]'`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from bubblescope.errors import InputError
from bubblescope.ingest.stream import Progress
from bubblescope.ingest.timelines.columns import Column, Layout, layout
from bubblescope.ingest.timelines.rows import parted
from bubblescope.ingest.timelines.table import CELL, CHUNK, Chunk, Collector, from_floats, ids, kept, times
from bubblescope.ingest.times import INVALID
from bubblescope.model.columns import Bools, Times
from bubblescope.model.slices import RankSlices
from bubblescope.model.trace import Source

__all__ = ["INSTALL", "header", "installed", "read"]

INSTALL = "pip install 'bubblescope[parquet]'"
_DAMAGED = "Copy or write the file again."
_LARGEST = 2**52 * 1000  # ns; as in bubblescope.ingest.times
_UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def installed() -> bool:
    """Whether Parquet can be read."""
    return find_spec("pyarrow") is not None


def header(path: Path) -> Layout | None:
    """The layout of a file; None where its schema cannot be read."""
    import pyarrow as pa  # noqa: PLC0415 - an extra, and 100 ms
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        return _layout(pq.read_schema(path))
    except (pa.ArrowException, OSError):
        return None


def _layout(schema: Any) -> Layout:
    return layout(
        schema.names, {field.name: _UNITS[field.type.unit] for field in schema if hasattr(field.type, "unit")}
    )


def read(path: Path, *, progress: Progress | None = None) -> Iterator[RankSlices]:
    """The ranks of a table; raises InputError where it is damaged, lacks a column or holds nothing that can be used."""
    import pyarrow as pa  # noqa: PLC0415 - an extra, and 100 ms
    import pyarrow.parquet as pq  # noqa: PLC0415

    size = path.stat().st_size
    try:
        with pq.ParquetFile(path) as file:
            found = _layout(file.schema_arrow)
            collected = Collector(path, found)
            names = [column.name for column in found.columns.values()]
            total = max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(batch_size=CHUNK, columns=names):
                place = {name: k for k, name in reversed(list(enumerate(batch.schema.names)))}  # of two the first
                collected.add(_chunk({field: batch.column(place[c.name]) for field, c in found.columns.items()}, found))
                if progress is not None:
                    progress(size * collected.rows // total)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: a damaged Parquet file: {error}", hint=_DAMAGED) from error
    rows, findings = collected.finish()
    return parted(rows, Source(str(path), "table", size, collected.rows), findings=findings)


def _chunk(columns: Mapping[str, Any], found: Layout) -> Chunk:
    values = {field: _values(column, found.columns[field]) for field, column in columns.items()}
    return {**values, CELL: lambda field, row: columns[field][row].as_py()}


def _values(column: Any, about: Column) -> Any:
    """A column as `Collector.add` takes it."""
    import pyarrow.types as kinds  # noqa: PLC0415

    if about.field == "kind" or kinds.is_nested(column.type):
        return _read(list(map(_text, column.to_pylist())), about)
    if hasattr(column.type, "unit"):
        column = column.cast("int64")
    whole = kinds.is_integer(column.type) and not kinds.is_uint64(column.type)
    if whole:
        missing, values = column.is_null(), column.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
        if about.scale:
            return _whole(values, about.scale, missing.to_numpy(zero_copy_only=False))
        return kept(values, about.field)
    if about.scale and kinds.is_floating(column.type):
        return from_floats(column.to_numpy(zero_copy_only=False).astype(np.float64), about.scale)
    return _read(column.to_pylist(), about)


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)


def _read(values: list[Any], about: Column) -> Any:
    if about.field == "kind":
        return values
    return times(values, about.scale) if about.scale else ids(values, about.field)


def _whole(values: Times, scale: int, missing: Bools) -> Times:
    """Nanoseconds of integers."""
    bad = missing | (values > _LARGEST // scale) | (values < -(_LARGEST // scale))
    return np.where(bad, INVALID, np.where(bad, 0, values) * scale)
