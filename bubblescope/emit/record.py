"""The truth of a job as a small JSON file beside its traces."""

from __future__ import annotations

from typing import Any

import orjson

from bubblescope.emit.truth import PipelineTruth, RankTruth, StepTruth, Truth

__all__ = ["record"]


def record(known: Truth) -> bytes:
    """The job, its bubble, and where the time of every rank went; nanoseconds of the true clock."""
    job = known.job
    document = {
        "schedule": job.schedule,
        "p": job.p,
        "m": job.m,
        "v": job.v,
        "slices": job.slices,
        "dp": job.d,
        "tp": job.t,
        "cp": job.c,
        "seed": job.seed,
        "bubble": known.bubble,
        "used_steps": [step.number for step in known.used],
        "orders": [" ".join(order) for order in known.orders],
        "steps": [_step(step) for step in known.steps],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _step(step: StepTruth) -> dict[str, Any]:
    sizes = {"step": step.number, "m": step.m, "evaluated": step.evaluated}
    return sizes | {"bubble": step.bubble, "pipelines": [_pipeline(p) for p in step.pipelines]}


def _pipeline(pipeline: PipelineTruth) -> dict[str, Any]:
    return {
        "replica": pipeline.replica,
        "bubble": pipeline.bubble,
        "window_ns": pipeline.window,
        "ranks": [_rank(rank) for rank in pipeline.ranks],
    }


def _rank(rank: RankTruth) -> dict[str, int]:
    return {
        "rank": rank.rank,
        "compute_ns": rank.useful - rank.in_stage,
        "in_stage_comm_ns": rank.in_stage,
        "dp_ns": rank.dp,
        "pp_transfer_ns": rank.transfer,
        "pp_wait_ns": rank.wait,
        "host_ns": rank.host,
    }
