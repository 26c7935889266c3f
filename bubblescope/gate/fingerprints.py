"""Whether two runs can be compared, and in what they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from bubblescope.model.baseline import Fingerprint
from bubblescope.model.gate import Difference

__all__ = ["differences"]

Effect = Literal["refused", "wall-clock", "note"]

_FIELDS: tuple[tuple[str, Effect, Callable[[Fingerprint], object]], ...] = (
    ("pipeline-parallel degree", "refused", lambda run: run.pp),
    ("virtual stages a rank", "refused", lambda run: run.virtual),
    ("micro-batches", "refused", lambda run: run.microbatches),
    ("tensor-parallel degree", "refused", lambda run: run.tp),
    ("context-parallel degree", "refused", lambda run: run.cp),
    ("expert-parallel degree", "refused", lambda run: run.ep),
    ("data-parallel degree", "wall-clock", lambda run: run.dp),
    ("ranks", "wall-clock", lambda run: run.world_size),
    ("GPU", "wall-clock", lambda run: ", ".join(run.devices) or None),
    ("how actions are told", "note", lambda run: run.reconstruction),
    ("format of the traces", "note", lambda run: ", ".join(run.formats)),
)
"""What is compared beside the schedule, and what a difference in it means."""


def differences(found: Fingerprint, baseline: Fingerprint) -> tuple[Difference, ...]:
    """Where the fingerprints differ, what forbids a comparison first; what one of them does not know is none."""
    refused = []
    if not _alike(found, baseline):
        refused.append(_difference("schedule", "refused", found.schedule, baseline.schedule))
    if not _as_complete(found, baseline):
        refused.append(_difference("ranks recorded", "refused", _recorded(found), _recorded(baseline)))
    others = (
        _difference(what, effect, now, then)
        for what, effect, value in _FIELDS
        if (now := value(found)) != (then := value(baseline)) and now is not None and then is not None
    )
    return (*refused, *others)


def _as_complete(found: Fingerprint, baseline: Fingerprint) -> bool:
    """Whether all ranks of both were recorded, or as many of each: what nobody recorded may be what is slow."""
    return all(run.missing == 0 for run in (found, baseline)) or found.recorded == baseline.recorded


def _recorded(run: Fingerprint) -> str:
    return "all" if run.missing == 0 else f"{run.recorded} of {run.world_size or 'an unknown number'}"


def _alike(found: Fingerprint, baseline: Fingerprint) -> bool:
    """Whether the schedules have one name, or orders that are the same in one of the runs."""
    return bool({found.schedule, *found.also} & {baseline.schedule, *baseline.also})


def _difference(what: str, effect: Effect, found: object, baseline: object) -> Difference:
    return Difference(what=what, baseline=str(baseline), found=str(found), effect=effect)
