"""Record a real pipeline-parallel run whose timing is known beforehand.

Runs ``torch.distributed.pipelining`` on the CPU, one process a rank, with the gloo backend over the loopback interface.
The work of a stage is to sleep, for a time given on the command line, so the bubble that a trace should show follows
from arithmetic.  No GPU is needed, and two cores carry eight ranks, because sleeping takes no core.

The folder given by ``--out`` receives ``rank<N>_trace.json.gz``, a PyTorch Profiler trace, for each rank, and
``recorded.json``, which says how they were made.

Needs PyTorch 2.10 or newer; the CPU build will do.  bubblescope itself does not need this file, nor PyTorch.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from typing import Any

from recording.command import Recorder, add_shared_options, shared_options
from recording.libraries import torch
from recording.plan import Plan, PlanError, check_numbers, scale_of
from recording.rank import joined, profile_steps
from recording.stage import ROWS, WIDTH, SleepingStage

if torch:
    from torch.distributed import pipelining

TORCH_CLASSES = {
    "gpipe": "ScheduleGPipe",
    "1f1b": "Schedule1F1B",
    "interleaved-1f1b": "ScheduleInterleaved1F1B",
    "looped-bfs": "ScheduleLoopedBFS",
    "interleaved-zb": "ScheduleInterleavedZeroBubble",
    "zb-v": "ScheduleZBVZeroBubble",
    "dualpipe-v": "ScheduleDualPipeV",
}
ONE_STAGE = ("gpipe", "1f1b")
V_SHAPED = ("zb-v", "dualpipe-v")


@dataclasses.dataclass(frozen=True, kw_only=True)
class TorchPlan(Plan):
    """A run of torch's pipelining: one rank for each position, so neither tensor nor data parallel peers."""

    def stages_of(self, rank: int) -> list[int]:
        """Give the stages that a rank holds, in torch's order: looped, or for the V shape there and back."""
        if self.schedule in V_SHAPED:
            return [rank, self.stages - 1 - rank]
        return super().stages_of(rank)


def build_schedule(plan: Plan, rank: int) -> tuple[Any, Any]:
    """Build torch's schedule over this rank's stages, and an optimizer of their parameters."""
    stages = [
        pipelining.PipelineStage(SleepingStage(*plan.work_ms(stage)), stage, plan.stages, torch.device("cpu"))
        for stage in plan.stages_of(rank)
    ]
    schedule_class = getattr(pipelining, TORCH_CLASSES[plan.schedule])
    what = stages[0] if plan.schedule in ONE_STAGE else stages
    schedule = schedule_class(what, n_microbatches=plan.microbatches, loss_fn=torch.nn.MSELoss())
    optimizer = torch.optim.SGD([weight for stage in stages for weight in stage.submod.parameters()], lr=1e-3)
    return schedule, optimizer


def run_rank(rank: int, plan: Plan, port: int, folder: str) -> None:
    """Run one rank and write its raw trace into a folder; the entry point of a process."""
    with joined(plan, rank, port) as store:
        schedule, optimizer = build_schedule(plan, rank)
        held = plan.stages_of(rank)
        rows = plan.microbatches * ROWS
        inputs = [torch.randn(rows, WIDTH)] if 0 in held else []
        targets = {"target": torch.randn(rows, WIDTH)} if plan.stages - 1 in held else {}

        def step() -> None:
            optimizer.zero_grad()
            schedule.step(*inputs, **targets)
            optimizer.step()

        profile_steps(plan, rank, store, folder, step)


# --------------------------------------------------------------------------------------------------------------------
# Command line


def check_schedule(schedule: str, ranks: int, microbatches: int, chunks: int) -> None:
    """Refuse what torch's schedule cannot run, and say what it can."""
    if schedule in ONE_STAGE and chunks != 1:
        raise PlanError(f"{schedule} holds one stage a rank: -v must be 1, not {chunks}")
    if schedule in V_SHAPED and chunks != 2:
        raise PlanError(f"{schedule} holds two stages a rank: -v must be 2, not {chunks}")
    at_least = {"1f1b": ranks, "dualpipe-v": 2 * ranks}.get(schedule, 1)
    if microbatches < at_least:
        raise PlanError(
            f"{schedule} with {ranks} ranks needs at least {at_least} micro-batches: -m is {microbatches}",
        )
    rounds = max(1, microbatches // ranks)
    if schedule in {"interleaved-1f1b", "interleaved-zb"} and microbatches % rounds:
        multiple = ranks * -(-microbatches // ranks)
        raise PlanError(
            f"{schedule} runs {microbatches} micro-batches on {ranks} ranks in {rounds} rounds, which does not divide: "
            f"-m {multiple} would do",
        )


def make_plan(options: argparse.Namespace) -> TorchPlan:
    """Turn parsed options into a plan that can run, or raise PlanError."""
    schedule = options.schedule
    chunks = options.chunks or (1 if schedule in ONE_STAGE else 2)
    if options.ranks < 2:
        raise PlanError(f"a pipeline needs at least 2 ranks: -p is {options.ranks}")
    check_numbers(options, "microbatches", "chunks", "steps")
    if not 0 < options.weight_share < 1:
        raise PlanError(f"--weight-share lies between 0 and 1: {options.weight_share:g} does not")
    check_schedule(schedule, options.ranks, options.microbatches, chunks)
    return TorchPlan(
        schedule=schedule,
        ranks=options.ranks,
        microbatches=options.microbatches,
        chunks=chunks,
        forward_ms=options.forward_ms,
        backward_ms=options.backward_ms,
        weight_share=options.weight_share,
        scale=scale_of(options, options.ranks * chunks),
        steps=options.steps,
    )


def options_of(plan: Plan) -> list[str]:
    """Give the options that record a plan again, all but ``--out``."""
    options = ["--schedule", plan.schedule, "-p", str(plan.ranks), "-m", str(plan.microbatches), "-v", str(plan.chunks)]
    return [*options, "--weight-share", f"{plan.weight_share:g}", *shared_options(plan)]


def check_torch(plan: Plan) -> None:
    """Refuse to start with a PyTorch that does not have the schedule."""
    name = TORCH_CLASSES[plan.schedule]
    if not hasattr(pipelining, name):
        raise PlanError(f"PyTorch {torch.__version__} has no {name}: install torch 2.10 or newer")


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(
        description="Record a real pipeline-parallel run of torch.distributed.pipelining on the CPU, with stages that "
        "sleep for a known time. Writes one PyTorch Profiler trace a rank, and recorded.json.",
        epilog="example: %(prog)s --schedule 1f1b -p 4 -m 8 --scale 1,1,1,1.5 --out traces/slow_last",
    )
    add = parser.add_argument
    add("--schedule", required=True, choices=TORCH_CLASSES, help="order of the work; bubblescope's name for it")
    add("-p", "--ranks", type=int, default=4, metavar="N", help="ranks, one process each (default: 4)")
    add("-m", "--microbatches", type=int, default=8, metavar="N", help="micro-batches in a step (default: 8)")
    add(
        "-v",
        "--chunks",
        type=int,
        metavar="N",
        help="stages that a rank holds (default: 1 for gpipe and 1f1b, otherwise 2)",
    )
    add(
        "--weight-share",
        type=float,
        default=0.5,
        metavar="X",
        help="part of the backward that the weight gradients take; shows where the schedule splits it (default: 0.5)",
    )
    add_shared_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(Recorder(build_parser(), make_plan, options_of, check_torch, run_rank).main())
