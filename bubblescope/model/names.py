"""What somebody called a range, without what a tool adds to it; and which names of a table fit a pattern."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bubblescope.model.columns import Bools
from bubblescope.model.trace import RankTrace

__all__ = ["matching", "parted", "plain", "plainly"]

# torch.autograd.profiler.emit_nvtx: torch/csrc/profiler/util.cpp, getNvtxStr, in this order.
_SUFFIX = re.compile(r", (?:seq = (\d{1,18})(?!\d)|seq = \d|op_id = \d|sizes = \[|input_op_ids = \[)")


def parted(name: str) -> tuple[str, int]:
    """The name without what `emit_nvtx` appends, and autograd's number in that, or -1.

    `Forward 3, seq = 7, op_id = 9` is `Forward 3` and 7.
    """
    suffix = _SUFFIX.search(name)
    return (name, -1) if suffix is None else (name[: suffix.start()], int(suffix[1] or -1))


def plain(name: str) -> str:
    """The name without what `emit_nvtx` appends: `Forward 3, seq = 7, op_id = 9` is `Forward 3`."""
    return parted(name)[0]


def plainly(trace: RankTrace) -> RankTrace:
    """The trace with plain names, whatever recorded it; several places of the table may then hold one name."""
    names = tuple(map(plain, trace.names))
    return trace if names == trace.names else replace(trace, names=names)


def matching(names: Sequence[str], pattern: str) -> Bools:
    """For each name of a table, whether the pattern matches at its beginning."""
    match = re.compile(pattern).match
    return np.fromiter((match(name) is not None for name in names), bool, len(names))
