"""Which process of a file is the rank: others (a data loader, leftovers of another run) are set aside."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bubblescope.model.trace import Finding, RankTrace

__all__ = ["main_process"]


def main_process(trace: RankTrace) -> RankTrace:
    """The trace with the host events of its busiest process only; GPU work has no host process and stays."""
    pids = sorted({thread.pid for thread in trace.threads})
    if len(pids) < 2:
        return trace
    number = np.array([pids.index(thread.pid) for thread in trace.threads])
    owner = [number[block.thread] for block in (trace.ops, trace.annotations, trace.launches, trace.frames)]
    counts = np.bincount(np.concatenate(owner), minlength=len(pids))
    main = int(np.argmax(counts))
    others = int(counts.sum() - counts[main])
    if not others:
        return trace
    note = Finding(
        "other-processes", "info", f"{others} host events of other processes than {pids[main]} are left out",
        trace.source.path,
    )  # fmt: skip
    return replace(
        trace,
        ops=trace.ops.take(owner[0] == main),
        annotations=trace.annotations.take(owner[1] == main),
        launches=trace.launches.take(owner[2] == main),
        frames=trace.frames.take(owner[3] == main),
        findings=(*trace.findings, note),
    )
