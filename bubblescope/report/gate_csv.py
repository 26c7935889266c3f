"""A gate as a CSV table, one row a rule: what was asked for, what was found, and what came of it."""

from __future__ import annotations

import dataclasses

from bubblescope.model.gate import Check, Gate
from bubblescope.report.csv import table

__all__ = ["render"]


def render(gate: Gate) -> bytes:
    """The table, with a header line and line feeds; columns are the keys of the JSON."""
    names = [field.name for field in dataclasses.fields(Check)]
    return table(names, ([getattr(check, name) for name in names] for check in gate.checks))
