"""Where no pipeline was identified: what points to one all the same.

That there is none is shown by what was recorded: all communication is named and none of it passes between stages, or
the job says that it has one stage. Anything less leaves it open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bubblescope.model import writing as words
from bubblescope.model.groups import PEER_COPY
from bubblescope.model.job import Job
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["signs"]

Timelines = Mapping[int, RankTimeline]

COMPUTING = 0.05
"""Share of the work of a process's busiest GPU beyond which another computes as well."""
_FIRST_STAGE = (0,)


def signs(job: Job) -> tuple[str, ...]:
    """What points to a pipeline, in words, where none was identified; empty where there is one, or surely none."""
    if job.plan.pipelines or _ruled_out(job):
        return ()
    ranks = job.timelines
    found = (_unnamed(ranks), _undirected(ranks), _handed_over(ranks), _unconnected(ranks), _labelled(job))
    return tuple(sign for sign in found if sign)


def _ruled_out(job: Job) -> bool:
    """Whether the job has one stage by what the user or its process groups say, or is a single rank."""
    alone = len(job.timelines) == 1 and all(t.identity.world_size == 1 for t in job.timelines.values())
    return alone or job.plan.source in {"stated", "process groups"}


def _unnamed(timelines: Timelines) -> str:
    """Kernels that nothing names, as those of RCCL, which all have one name."""
    counts = {rank: len(timeline.unnamed_calls()) for rank, timeline in timelines.items()}
    return _counted(counts, "communication kernels have a name that fits all operations, and no call tells which")


def _undirected(timelines: Timelines) -> str:
    """Kernels that may be a pipeline's messages, or an all-to-all."""
    counts = {rank: int(np.sum(t.messages.direction == Messages.EITHER)) for rank, t in timelines.items()}
    return _counted(counts, "send/receive kernels stand alone, and may pass between stages")


def _handed_over(timelines: Timelines) -> str:
    """Copies between the GPUs of one process, which has nothing else to hand over than outputs of stages."""
    counts = {rank: _peer_copies(timeline) for rank, timeline in timelines.items()} if len(timelines) > 1 else {}
    return _counted(counts, "copies from one GPU of a process to another may pass between stages")


def _peer_copies(timeline: RankTimeline) -> int:
    """How many copies to another GPU of its process a rank made."""
    is_copy = np.array([call.op == PEER_COPY and call.purpose == "pp" for call in timeline.calls], bool)
    return int(np.sum(is_copy[timeline.collectives.call])) if len(is_copy) else 0


def _unconnected(timelines: Timelines) -> str:
    """GPUs that one process drives, two of which compute or more, and that no communication connects.

    What they share goes through copies, or through the host, as outputs of stages do; replicas reduce gradients.
    """
    driven: dict[tuple[str | None, str], list[int]] = {}
    for rank, timeline in timelines.items():
        who = timeline.identity
        if who.process is not None and who.device is not None:
            driven.setdefault((who.host, who.process), []).append(rank)
    ranks = [rank for mine in driven.values() if _is_apart([timelines[rank] for rank in mine]) for rank in mine]
    if not ranks:
        return ""
    return f"{words.ranks_named(ranks)} are GPUs of one process that no communication connects, and may be stages"


def _is_apart(gpus: Sequence[RankTimeline]) -> bool:
    """Whether two GPUs of a process compute, or more, and none of them communicates."""
    lengths = [Spans.of(gpu.work.start, gpu.work.end).total for gpu in gpus]
    computing = sum(length > COMPUTING * max(lengths) for length in lengths)
    return computing > 1 and not any(len(gpu.collectives) or len(gpu.messages) for gpu in gpus)


def _counted(counts: Mapping[int, int], what: str) -> str:
    ranks = [rank for rank, count in counts.items() if count]
    return f"{sum(counts.values())} {what} ({words.ranks_named(ranks)})" if ranks else ""


def _labelled(job: Job) -> str:
    """Labels that only pipelines have; where every rank was recorded and each names the first stage alone, none."""
    named = {rank: _stages(timeline) for rank, timeline in job.timelines.items() if _stages(timeline)}
    whole = 1 < len(job.timelines) == job.plan.world_size
    if not named or (whole and set(named.values()) == {_FIRST_STAGE}):
        return ""
    return f"labels on {words.ranks_named(tuple(named))} are those of a pipeline's forwards and backwards"


def _stages(timeline: RankTimeline) -> tuple[int, ...]:
    """The stages that tell of a pipeline: those that only its labels name, and all behind the first."""
    later = np.unique(timeline.actions.stage[timeline.actions.stage > 0]).tolist()
    return (*timeline.pipelined, *later)
