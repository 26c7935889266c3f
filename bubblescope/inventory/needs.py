"""What a recording lacks, what cannot be told without it, and the line that adds it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bubblescope.model.info import Need, RankInfo
from bubblescope.model.recorders import Addition, recorder
from bubblescope.model.timeline import RankTimeline
from bubblescope.model.trace import Source

__all__ = ["needs"]

FEW_STEPS = 2
"""Complete steps below which no spread is known; of three and more the first is left out."""


class _Seen(NamedTuple):
    info: RankInfo
    timeline: RankTimeline | None

    def found(self, *codes: str) -> bool:
        """Whether the file has a finding of one of these codes."""
        return any(finding.code in codes for finding in self.info.findings)


class _Rule(NamedTuple):
    """What is lacking where `lacking` says so; `adds` is the line of the recorder."""

    adds: Addition
    lacks: str
    lacking: Callable[[_Seen], bool]


def _no_kernels(seen: _Seen) -> bool:
    """A run on GPUs of which no kernel was recorded; a run on CPUs has none."""
    on_gpus = bool(seen.info.counts.launches or seen.info.devices or (seen.info.backend or "").lower() == "nccl")
    return on_gpus and not seen.info.counts.kernels


def _no_host(seen: _Seen) -> bool:
    counts = seen.info.counts
    return bool(counts.kernels) and not counts.launches and not (counts.operators or seen.found("unjoined-labels"))


def _no_launches(seen: _Seen) -> bool:
    return seen.found("unjoined-labels")


def _untold(seen: _Seen) -> bool:
    """Forwards and backwards of a pipeline that neither labels nor operators tell."""
    talks = bool(seen.info.counts.messages) and not seen.found("unjoined-labels")
    return talks and seen.info.actions.told_by in {None, "kernels", "p2p"}


def _no_rank(seen: _Seen) -> bool:
    """A process without a rank; the GPUs of one process have none of their own."""
    several = seen.timeline is not None and seen.timeline.identity.device is not None
    return seen.info.rank is None and not several


def _no_marks(seen: _Seen) -> bool:
    return seen.timeline is not None and not seen.info.marked and len(seen.info.steps) < FEW_STEPS


def _few_steps(seen: _Seen) -> bool:
    """Fewer whole steps than a spread takes; a file that is cut off may have held more."""
    whole = [step for step in seen.info.steps if step.complete is not False]
    return bool(seen.info.steps) and len(whole) < FEW_STEPS and not seen.found("truncated")


def _nameless(seen: _Seen) -> bool:
    """Collectives of groups whose purpose nothing tells, on a rank that may be part of a pipeline."""
    if seen.timeline is None or not seen.info.counts.messages:
        return False
    return bool(len(seen.timeline.unclear_collectives()))


def _cut_off(seen: _Seen) -> bool:
    """Kernels that were launched and that the profiler did not wait for; what a cut file lacks it may have recorded."""
    if not seen.info.counts.kernels or seen.found("truncated"):
        return False
    last = seen.info.steps[-1:]
    return seen.found("lost-kernels") or (bool(last) and last[0].complete is False)


def _unpeered(seen: _Seen) -> bool:
    """Messages that do not say who they are exchanged with."""
    if seen.timeline is None or not len(seen.timeline.messages):
        return False
    return bool(np.all(seen.timeline.messages.peer < 0))


_RULES = (
    _Rule("kernels", "no kernel: when the GPU worked is not told", _no_kernels),
    _Rule("host", "nothing of the host: what kernels were launched for is not told", _no_host),
    _Rule("host", "labels, and no launch that joins kernels to them: when actions ran is a guess", _no_launches),
    _Rule("rank", "no rank: ranks are numbered in the order of files, and of processes and GPUs in a file", _no_rank),
    _Rule("labels", "neither labels nor operators: forwards and backwards are a guess", _untold),
    _Rule("steps", "no marks of steps: where one begins is not told", _no_marks),
    _Rule("more-steps", "fewer than two complete steps: no spread, and warm-up is in the numbers", _few_steps),
    _Rule("groups", "groups without a description: what collectives are for is a guess", _nameless),
    _Rule("payloads", "no peers of messages: who talks to whom is told by counting", _unpeered),
    _Rule("graphs", "CUDA graphs as one block: their kernels are hidden", lambda seen: seen.found("hidden-kernels")),
    _Rule("ending", "the recording ends in the middle of a step: launched kernels are lost", _cut_off),
)
"""What may be lacking, the most important first."""


def needs(info: RankInfo, source: Source, timeline: RankTimeline | None) -> tuple[Need, ...]:
    """What to add to the recording of a rank, each with the line that adds it; what its recorder cannot is left out."""
    lines, seen = recorder(source).lines, _Seen(info, timeline)
    return tuple(
        Need(code=rule.adds, lacks=rule.lacks, add=lines[rule.adds])
        for rule in _RULES
        if rule.adds in lines and rule.lacking(seen)
    )
