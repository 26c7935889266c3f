"""Recordings in which nothing joins what the host did to what ran: exports without launches, or without their numbers.

The host runs ahead of the GPU, so that the time of a label says nothing of kernels then. What labels still say is
which actions there were, and in which order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.recorders import recorder
from bubblescope.model.trace import Annotations, Finding, Launches, Ops, RankTrace
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.units import NO_HOST, Units

__all__ = ["gpu_alone", "in_order", "unjoined", "without_filler"]

CUT = 0.1
"""Share of the actions that a recording may have cut off."""


def without_filler(trace: RankTrace) -> RankTrace:
    """The trace without the number 0 where several launches have it: a filler, and none that joins anything."""
    launches, kernels = trace.launches, trace.kernels
    if np.sum(launches.correlation == 0) < 2:
        return trace
    return replace(
        trace,
        launches=launches.replace(correlation=np.where(launches.correlation == 0, -1, launches.correlation)),
        kernels=kernels.replace(correlation=np.where(kernels.correlation == 0, -1, kernels.correlation)),
    )


def gpu_alone(trace: RankTrace, *units: Units) -> RankTrace:
    """The trace without its host's side, where no unit on the GPU has a launch."""
    if not trace.on_gpu or any(np.any(each.host != NO_HOST) for each in units):
        return trace
    nothing = Annotations.empty()
    return replace(trace, ops=Ops.empty(), annotations=nothing, launches=Launches.empty(), frames=nothing)


def in_order(ranges: Ranges, named: Ranges) -> Ranges:
    """Actions told by kernels, with the names of labels if these name as many, of the same kinds in the same order.

    Of a recording that begins or ends amid a step they stay without names. Where there are far more or fewer of a kind
    than labels name, the kernels told them wrongly: none is left.
    """
    apart = max(abs(int(np.sum(ranges.kind == kind)) - int(np.sum(named.kind == kind))) for kind in Kind)
    if len(named) and apart > max(1, CUT * len(named)):
        return Ranges.empty()
    if not np.array_equal(ranges.kind, named.kind):
        return ranges
    ids = ("stage", "microbatch", "slice", "block", "chunk")
    return ranges.replace(**{name: getattr(named, name) for name in ids})


def unjoined(trace: RankTrace, named: Ranges) -> Finding:
    """A warning about labels that nothing joins to kernels."""
    forwards = int(np.sum(named.kind == Kind.F))
    message = (
        f"labels name {forwards} forwards and {len(named) - forwards} backwards, but no launch tells which kernels are "
        "theirs, so that only their order and their stages are used; keep the launches of kernels and their "
        f"correlation ids in the export: {recorder(trace.source).both_sides}"
    )
    return Finding("unjoined-labels", "warning", message, trace.source.path)
