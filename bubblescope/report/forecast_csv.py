"""What-ifs as a CSV table: the run as measured, its replay, and a row a forecast.

Columns are keys of the JSON, values are written as there: nanoseconds, fractions of 1, nothing where unknown; layers
as they are typed, 9+9+8+6.
"""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.model.whatif import Run, WhatIf
from bubblescope.report.csv import Value, table

__all__ = ["HEADER", "render"]

_RUN = ("schedule", "pp", "tp", "virtual", "microbatches", "step_ns", "window_ns", "bubble", "span")
_MEMORY = ("activations", "weights")

HEADER = ("row", "change", "title", *_RUN, *_MEMORY, "gain", "gain_ns", "problem", "layers")


def render(found: WhatIf) -> bytes:
    """The table, with a header line and line feeds."""
    return table(HEADER, _rows(found))


def _rows(found: WhatIf) -> Iterator[tuple[Value, ...]]:
    yield ("measured", None, None, *_run(found.measured), None, None, None, None)
    yield ("replayed", None, None, *_run(found.replayed), None, None, None, None)
    for each in found.forecasts:
        layers = None if each.layers is None else "+".join(map(str, each.layers))
        yield ("forecast", each.change, each.title, *_run(each.run), each.gain, each.gain_ns, each.problem, layers)


def _run(run: Run | None) -> tuple[Value, ...]:
    memory = None if run is None else run.memory
    return (*(getattr(run, name, None) for name in _RUN), *(getattr(memory, name, None) for name in _MEMORY))
