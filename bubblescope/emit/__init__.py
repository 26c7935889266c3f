"""Traces that a pipeline-parallel job would leave, for any schedule, with the truth about them.

They are those of the PyTorch Profiler, or of Nsight Systems (`recorder="nsys"`).

    job = Job(schedule="1f1b", p=4, m=8, p2p_ns=200_000)
    paths = write(job, folder)
    truth(job).bubble

Nothing here shares code with what reads traces, so that the one can check the other.
"""

from __future__ import annotations

from bubblescope.emit.files import TRUTH_FILE, write
from bubblescope.emit.job import Job, Recorder, StageWork
from bubblescope.emit.truth import ActionTruth, PipelineTruth, RankTruth, StepTruth, Truth, truth

__all__ = [
    "TRUTH_FILE",
    "ActionTruth",
    "Job",
    "PipelineTruth",
    "RankTruth",
    "Recorder",
    "StageWork",
    "StepTruth",
    "Truth",
    "truth",
    "write",
]
