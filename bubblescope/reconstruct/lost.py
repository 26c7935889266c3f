"""Kernels and launches without each other: events that the profiler lost."""

from __future__ import annotations

import numpy as np

from bubblescope.model.columns import Bools, Times, distinct
from bubblescope.model.recorders import recorder
from bubblescope.model.trace import Finding, Launches, RankTrace
from bubblescope.reconstruct.units import matching

__all__ = ["cut_off", "lost", "unfinished"]

FORGIVEN = 0.005
"""Share of the launches or kernels that may be alone."""

_LAUNCH = r"(cu|cuda|hip)\w*Launch\w*Kernel"


def lost(trace: RankTrace) -> tuple[Finding, ...]:
    """A warning where launches without a kernel, or kernels without a launch, are more than a few.

    A job that communicates by NCCL runs on GPUs, so that without any kernel all are lost. What lies before the
    first pair or after the last one was cut off by the recording's ends, unless there is none. Without any launch
    the host was not recorded, and nothing is lost.
    """
    if not trace.on_gpu and _by_nccl(trace):
        message = (
            "no kernel was recorded of a job that communicates by NCCL: what counts as work is only what the host "
            f"did to start it; {'the text ends before them' if _is_cut(trace) else 'record ProfilerActivity.CUDA, too'}"
        )
        return (Finding("lost-kernels", "warning", message, trace.source.path),)
    launches = _launches(trace)
    kernels = trace.kernels.take((trace.kernels.correlation >= 0) & (trace.kernels.kind == trace.kernels.KERNEL))
    if not len(launches):
        return ()
    empty = _alone(~np.isin(launches.correlation, kernels.correlation), launches.start)
    stray = _alone(~np.isin(kernels.correlation, trace.launches.correlation), kernels.start)
    if max(empty / len(launches), stray / max(len(kernels), 1)) <= FORGIVEN:
        return ()
    message = (
        f"{empty} of {len(launches)} launches have no kernel and {stray} of {len(kernels)} kernels no launch: "
        "the profiler lost events, and what they were counts as idle time; "
        f"{recorder(trace.source).both_sides}"
    )
    return (Finding("lost-kernels", "warning", message, trace.source.path),)


def unfinished(trace: RankTrace, *, several: bool) -> Times:
    """Host moments of work that the recording, or a file that is cut off, may not hold to its end, sorted.

    Where there are not `several` steps, the only one of a whole file has nothing to be measured by, and counts.
    """
    written = _last_written(trace)
    if not len(written):
        return cut_off(trace) if several else written
    if trace.on_gpu:
        behind = [_lone(trace).start]  # wherever they are: kernels may be written stream by stream
    else:  # GPUs may come last in a file
        behind = [trace.launches.start, *([trace.ops.start] if _by_nccl(trace) else [])]
    return distinct(np.concatenate((written, *behind)))


def _last_written(trace: RankTrace) -> Times:
    """Host moments at which a file that is cut off tells of work last, sorted; none of a file that is whole.

    What runs there may have gone on behind the cut: events are written in the order of their beginnings, host and GPU
    mixed, or the calls that launch kernels behind all others.
    """
    if not _is_cut(trace):
        return np.empty(0, np.int64)
    of_host = [block.start.max() for block in (trace.ops, trace.annotations, trace.frames) if len(block)]
    launched = [trace.launches.start.max()] if len(trace.launches) else []
    last = [max(of_host + launched)] if of_host or launched else []
    return distinct(np.array(last + launched, np.int64))


def _is_cut(trace: RankTrace) -> bool:
    """Whether the file's text ended before its events did."""
    return any(finding.code == "truncated" for finding in trace.findings)


def cut_off(trace: RankTrace) -> Times:
    """Host moments of the launches behind the last one that has a kernel, sorted: the recording ended before theirs.

    A recording that stops without waiting for the GPU loses what the host had launched ahead.
    """
    launches = _launches(trace)
    launches = launches.take(np.argsort(launches.start, kind="stable"))
    paired = np.flatnonzero(np.isin(launches.correlation, trace.kernels.correlation))
    moments: Times = launches.start[paired[-1] + 1 :] if len(paired) else launches.start[:0]
    return moments


def _lone(trace: RankTrace) -> Launches:
    """The launches that have no kernel."""
    launches = _launches(trace)
    return launches.take(~np.isin(launches.correlation, trace.kernels.correlation))


def _by_nccl(trace: RankTrace) -> bool:
    """Whether the job communicates by NCCL; the metadata that say so may be behind a cut, names of calls are not."""
    return (trace.identity.backend or "").lower() == "nccl" or any(name.startswith("nccl:") for name in trace.names)


def _launches(trace: RankTrace) -> Launches:
    """The launches of kernels that can be told from each other."""
    launches = trace.launches.take(matching(trace.names, _LAUNCH)[trace.launches.name])
    return launches.take(launches.correlation >= 0)


def _alone(alone: Bools, start: Times) -> int:
    """How many are alone between the first and the last that are not."""
    order = np.argsort(start, kind="stable")
    paired = np.flatnonzero(~alone[order])
    return int(alone[order][paired[0] : paired[-1]].sum()) if len(paired) else len(alone)
