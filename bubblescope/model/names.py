"""What somebody called a range, without what a tool adds to it."""

from __future__ import annotations

import re
from dataclasses import replace

from bubblescope.model.trace import RankTrace

__all__ = ["plain", "plainly"]

# torch.autograd.profiler.emit_nvtx: torch/csrc/profiler/util.cpp, getNvtxStr, in this order.
_SUFFIX = re.compile(r", (?:seq = \d+|op_id = \d+|sizes = \[|input_op_ids = \[)")


def plain(name: str) -> str:
    """The name without what `emit_nvtx` appends: `Forward 3, seq = 7, op_id = 9` is `Forward 3`."""
    suffix = _SUFFIX.search(name)
    return name if suffix is None else name[: suffix.start()]


def plainly(trace: RankTrace) -> RankTrace:
    """The trace with plain names, whatever recorded it; several places of the table may then hold one name."""
    names = tuple(map(plain, trace.names))
    return trace if names == trace.names else replace(trace, names=names)
