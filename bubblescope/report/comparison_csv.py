"""A comparison as a CSV table, a row for each number of either run.

Columns are keys of the JSON, values are written as there: nanoseconds, fractions of 1, nothing where unknown.
"""

from __future__ import annotations

from bubblescope.model.comparison import Comparison
from bubblescope.report.csv import table

__all__ = ["HEADER", "render"]

HEADER = ("metric", "by", "of", "unit", "before", "after", "change", "noise", "chance", "certain")


def render(found: Comparison) -> bytes:
    """The table, with a header line and line feeds."""
    return table(HEADER, ([getattr(each, name) for name in HEADER] for each in found.changes))
