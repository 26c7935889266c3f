"""Synthetic Kineto traces of pipeline-parallel jobs whose truth is known.

The package imports nothing from the analyzer: it is the independent check of its numbers.

    job = Job(schedule="1f1b", p=4, m=8, p2p_ns=200_000)
    paths = write(job, folder)
    truth(job).bubble
"""

from tests.generator.job import Job
from tests.generator.kineto import write
from tests.generator.orders import orders
from tests.generator.truth import ActionTruth, PipelineTruth, RankTruth, StepTruth, Truth, truth

__all__ = [
    "ActionTruth",
    "Job",
    "PipelineTruth",
    "RankTruth",
    "StepTruth",
    "Truth",
    "orders",
    "truth",
    "write",
]
