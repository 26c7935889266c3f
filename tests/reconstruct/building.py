"""Host ranges for tests, from literal rows."""

from __future__ import annotations

from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.ranges import NONE


def ranges_of(*rows):
    """Ranges from (kind, start, end[, microbatch[, stage[, link]]])."""
    full = [(*row, *(NONE, NONE, NONE)[len(row) - 3 :]) for row in rows]
    kind, start, end, microbatch, stage, link = zip(*full, strict=True) if rows else ((),) * 6
    alone = [NONE] * len(rows)
    return Ranges(start, end, kind, stage, microbatch, alone, alone, link)
