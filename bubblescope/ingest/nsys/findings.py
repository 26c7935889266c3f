"""What a reader of the numbers must know about an export."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from bubblescope.ingest.command import export_again
from bubblescope.ingest.nsys.nvtx import Ranges
from bubblescope.ingest.nsys.session import Session
from bubblescope.ingest.nsys.work import Work
from bubblescope.model.trace import Finding, Kernels, Launches, Severity

__all__ = ["of_file", "of_rank"]

_WORDS: Mapping[str, tuple[Severity, str]] = {
    "no-launch": (
        "info",
        (
            "{count} of {all} kernels and copies have no launch in the file: they were launched before the recording "
            "began, or their launches were lost"
        ),
    ),
    "hidden-kernels": (
        "warning",
        (
            "{count} launches of CUDA graphs were recorded as one block each, which hides their kernels and messages "
            "and counts as compute; record with nsys profile --cuda-graph-trace=node"
        ),
    ),
    "other-processes": (
        "info",
        "{count} kernels and copies of other processes or devices are left out: they are too few for a rank",
    ),
    "unpaired-events": ("info", "{count} ranges were still open when the recording ended, and were left out"),
    "nccl-payloads": ("info", "{count} sends and receives of NCCL do not name their peer; {remedy}"),
    "lost-events": (
        "warning",
        "Nsight Systems warns that events {kinds}may be missing from the recording (warnings: {count})",
    ),
    "unmerged-log": (
        "warning",
        (
            "what wrote the file did not finish, for SQLite's log or journal lies beside it, which is not read: rows "
            "may be missing or half written; export again: {again}"
        ),
    ),
}


def of_rank(path: Path, kernels: Kernels, launches: Launches) -> list[Finding]:
    """About the rows of one rank."""
    stray = int((~np.isin(kernels.correlation, launches.correlation)).sum()) if len(launches) else 0
    counts = {"no-launch": stray}
    return list(_told(path, counts, all=len(kernels)))


def of_file(path: Path, work: Work, ranges: Ranges, session: Session, others: int) -> list[Finding]:
    """About the whole file; `others` is how much work belongs to none of its ranks."""
    kinds, warnings = session.lost
    counts = {
        "hidden-kernels": work.graphs,
        "other-processes": others,
        "unpaired-events": ranges.open,
        "nccl-payloads": ranges.untold,
        "lost-events": warnings,
        "unmerged-log": int(session.unmerged),
    }
    return list(_told(path, counts, remedy=_remedy(path, session), kinds=_of(kinds), again=export_again(path)))


def _told(path: Path, counts: Mapping[str, int], **words: object) -> Iterable[Finding]:
    for code, count in counts.items():
        if count:
            severity, text = _WORDS[code]
            yield Finding(code, severity, text.format(count=count, **words), str(path))


def _of(kinds: Sequence[str]) -> str:
    return f"of {' and '.join(kinds)} " if kinds else ""


def _remedy(path: Path, session: Session) -> str:
    """NCCL tells peers since 2.16; an export leaves them out unless it is asked for them."""
    told = "true" in session.options.values()
    return "NCCL 2.16 or newer tells it" if told else f"export again: {export_again(path)}"
