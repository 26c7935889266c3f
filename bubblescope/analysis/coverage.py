"""How much of what was recorded carries the numbers: shares of kernels, compute and messages, a rank and in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bubblescope.align.pairs import UNKNOWN
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.study import Study
from bubblescope.model.report import Coverage, RankCoverage

__all__ = ["coverage", "explained"]


@dataclass(frozen=True, slots=True)
class _Parts:
    """Of how many kernels, nanoseconds of compute and messages how many count."""

    kernels: int
    launched: int
    compute: int
    explained: int
    messages: int
    paired: int


def coverage(found: Study) -> Coverage:
    """What the numbers of a study rest on (docs/definitions.md).

    Kernels are those of the whole recording. Compute is that inside the pipeline of used steps, messages those of
    used steps; without a pipeline there is neither, and both shares are None.
    """
    parts = {rank: _parts(found, view) for rank, view in found.views.items()}
    total = _sum(list(parts.values()))
    return Coverage(
        **_shares(total),
        ranks=tuple(
            RankCoverage(rank=rank, left_out=_left_out(found, found.views[rank]), **_shares(each))
            for rank, each in parts.items()
        ),
    )


def _shares(parts: _Parts) -> dict[str, Any]:
    """What is told alike of a rank and of the job."""
    return {
        "kernels": parts.kernels,
        "launched": _share(parts.launched, parts.kernels),
        "inside_ns": parts.compute,
        "explained": _share(parts.explained, parts.compute),
        "messages": parts.messages,
        "paired": _share(parts.paired, parts.messages),
    }


def _left_out(found: Study, view: RankView) -> Literal["no-pipeline", "no-actions"] | None:
    """Why a recorded rank has no part in the numbers of the pipeline; None where it has, or where there is none."""
    if not found.piped:
        return None
    if view.pipeline is None:
        return "no-pipeline"
    return None if len(view.timeline.actions) else "no-actions"


def _parts(found: Study, view: RankView) -> _Parts:
    timeline = view.timeline
    owned, total = explained(view, found.used) if found.piped else (0, 0)
    rows = np.flatnonzero(np.isin(timeline.steps.number, found.used))
    here = np.isin(timeline.messages.step, rows) & (view.pipeline is not None)
    return _Parts(
        kernels=timeline.kernels,
        launched=timeline.launched,
        compute=total,
        explained=owned,
        messages=int(np.sum(here)),
        paired=int(np.sum(here & (view.pairing.other != UNKNOWN))),
    )


def explained(view: RankView, used: Sequence[int]) -> tuple[int, int]:
    """Nanoseconds of compute of actions, and of all compute from the first to the last action of each used step."""
    owned = total = 0
    for number, step in view.steps.items():
        if number in used and len(step.actions):
            lo, hi = int(step.actions.start.min()), int(step.actions.end.max())
            owned += step.compute.total
            total += view.lanes.compute.clip(lo, hi).total
    return owned, total


def _sum(parts: Sequence[_Parts]) -> _Parts:
    return _Parts(*(sum(getattr(each, name) for each in parts) for name in _Parts.__slots__))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
