"""Record a real run of DeepSpeed's pipeline engine whose timing is known beforehand.

Runs ``deepspeed.pipe`` on the CPU, one process a rank, with the gloo backend over the loopback interface: its own
engine, transfers and process groups, around stages that sleep for a given time.  No GPU is needed.

The folder given by ``--out`` receives ``rank<N>_trace.json.gz``, a PyTorch Profiler trace, for each rank, and
``recorded.json``, which says how they were made.

Needs PyTorch and DeepSpeed 0.19; tools/README.md says how to install them.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from typing import Any

from recording.command import Recorder, add_shared_options, require_package, shared_options
from recording.libraries import torch
from recording.plan import Plan, PlanError, check_numbers, scale_of
from recording.rank import joined, profile_steps
from recording.stage import ROWS, WIDTH, SleepingStage


def build_engine(plan: Plan, rank: int) -> Any:
    """Build DeepSpeed's engine over a model of one sleeping stage a position."""
    os.environ.update(DS_ACCELERATOR="cpu", LOCAL_RANK=str(rank))  # read when DeepSpeed is imported and initialized
    import deepspeed  # noqa: PLC0415
    from deepspeed.pipe import LayerSpec, PipelineModule  # noqa: PLC0415

    deepspeed.init_distributed(dist_backend="gloo", auto_mpi_discovery=False, verbose=False)
    model = PipelineModule(
        layers=[LayerSpec(SleepingStage, *plan.work_ms(stage)) for stage in range(plan.stages)],
        num_stages=plan.pipeline,
        loss_fn=torch.nn.MSELoss(),
        partition_method="uniform",
    )
    config = {
        "train_micro_batch_size_per_gpu": ROWS,
        "gradient_accumulation_steps": plan.microbatches,
        "optimizer": {"type": "SGD", "params": {"lr": 1e-3}},
        "steps_per_print": sys.maxsize,
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=list(model.parameters()), config=config)
    return engine


def run_rank(rank: int, plan: Plan, port: int, folder: str) -> None:
    """Run one rank and write its raw trace into a folder; the entry point of a process."""
    with joined(plan, rank, port) as store:
        engine = build_engine(plan, rank)
        batches = itertools.repeat((torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)))
        profile_steps(plan, rank, store, folder, lambda: engine.train_batch(batches))


# --------------------------------------------------------------------------------------------------------------------
# Command line


def make_plan(options: argparse.Namespace) -> Plan:
    """Turn parsed options into a plan that can run, or raise PlanError."""
    if options.pipeline < 2:
        raise PlanError(f"a pipeline needs at least 2 ranks: -p is {options.pipeline}")
    check_numbers(options, "data", "microbatches", "steps")
    return Plan(
        schedule="1f1b",
        ranks=options.pipeline * options.data,
        data=options.data,
        microbatches=options.microbatches,
        chunks=1,
        forward_ms=options.forward_ms,
        backward_ms=options.backward_ms,
        scale=scale_of(options, options.pipeline),
        steps=options.steps,
    )


def options_of(plan: Plan) -> list[str]:
    """Give the options that record a plan again, all but ``--out``."""
    shape = {"-p": plan.pipeline, "-d": plan.data, "-m": plan.microbatches}
    return [*(word for option, value in shape.items() for word in (option, str(value))), *shared_options(plan)]


def check_deepspeed(_plan: Plan) -> None:
    """Refuse to start without DeepSpeed."""
    require_package("deepspeed", "install it with 'DS_BUILD_OPS=0 pip install deepspeed==0.19.8'")


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(
        description="Record a real run of DeepSpeed's pipeline engine on the CPU, with stages that sleep for a known "
        "time. Writes one PyTorch Profiler trace a rank, and recorded.json.",
        epilog="example: %(prog)s -p 2 -d 2 -m 4 --out traces/deepspeed",
    )
    add = parser.add_argument
    add("-p", "--pipeline", type=int, default=4, metavar="N", help="pipeline parallel ranks (default: 4)")
    add("-d", "--data", type=int, default=1, metavar="N", help="data parallel replicas of the pipeline (default: 1)")
    add("-m", "--microbatches", type=int, default=8, metavar="N", help="micro-batches in a step (default: 8)")
    add_shared_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(Recorder(build_parser(), make_plan, options_of, check_deepspeed, run_rank, "deepspeed").main())
