"""Record a real run of Megatron-core's pipeline schedules whose timing is known beforehand.

Runs ``megatron.core.pipeline_parallel`` on the CPU, one process a rank, with the gloo backend over the loopback
interface: its own schedules, transfers and process groups, around stages that sleep for a given time.  Megatron-core
asks CUDA for a few things on the way, and the CPU answers them (``answer_for_cuda``).  No GPU is needed.

The folder given by ``--out`` receives ``rank<N>_trace.json.gz``, a PyTorch Profiler trace, for each rank, and
``recorded.json``, which says how they were made.

Needs PyTorch and megatron-core 0.16; tools/README.md says how to install them.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import sys
from collections.abc import Callable
from typing import Any

from recording.command import Recorder, add_shared_options, require_package, shared_options
from recording.libraries import Module, torch
from recording.plan import Plan, PlanError, check_numbers, scale_of
from recording.rank import joined, profile_steps
from recording.stage import ROWS, WIDTH, SleepingStage

SEQUENCE = 8  # tokens of a sample


# --------------------------------------------------------------------------------------------------------------------
# Megatron-core without a GPU


def on_cpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that makes a tensor on "cuda" make it on the CPU."""

    @functools.wraps(function)
    def made(*arguments: Any, **named: Any) -> Any:
        if named.get("device") == "cuda":
            named["device"] = "cpu"
        return function(*arguments, **named)

    return made


def answer_for_cuda() -> None:
    """Let the CPU answer what the schedules ask CUDA for.

    That is the device to make receive buffers on, and a counter of tokens. The wait for the device after each batch of
    transfers is left out by the configuration (``batch_p2p_sync``): gloo's are done when their ``wait`` returns.
    """
    torch.cuda.current_device = lambda: "cpu"
    torch.zeros = on_cpu(torch.zeros)


class Chunk(Module):
    """A slice of a model as Megatron-core's schedules want it, around a stage that sleeps.

    It is a residual branch, as a transformer's layers are. With tensor parallel peers its output, and in the backward
    its input's gradient, are summed over them, as around every pair of a column- and a row-parallel layer.
    """

    def __init__(self, config: Any, stage: SleepingStage, chunk: int | None, *, first: bool) -> None:
        super().__init__()
        self.config = config
        self.stage = stage
        self.vp_stage = chunk
        self.model_type = None
        self.first = first
        self.received: Any = None

    def set_input_tensor(self, received: Any) -> None:
        """Take what the schedule received from the stage before: a tensor, or a list of one."""
        self.received = received[0] if isinstance(received, list) else received

    def forward(self, tokens: Any) -> Any:
        """Run the slice on one micro-batch; only the first stage looks at the tokens."""
        from megatron.core.tensor_parallel import mappings  # noqa: PLC0415

        hidden = tokens if self.first else self.received
        branch = self.stage(mappings.copy_to_tensor_model_parallel_region(hidden))
        return hidden + mappings.reduce_from_tensor_model_parallel_region(branch)


def build_config(plan: Plan) -> Any:
    """Say to Megatron-core what it would read from its own command line."""
    from megatron.core.transformer import TransformerConfig  # noqa: PLC0415

    return TransformerConfig(
        num_layers=plan.stages,
        hidden_size=WIDTH,
        num_attention_heads=plan.tensor,  # there are none, but they have to divide over the peers
        tensor_model_parallel_size=plan.tensor,
        pipeline_model_parallel_size=plan.pipeline,
        virtual_pipeline_model_parallel_size=virtual_size(plan),
        pipeline_dtype=torch.float32,
        use_cpu_initialization=True,
        batch_p2p_sync=False,
        deallocate_pipeline_outputs=True,
    )


def virtual_size(plan: Plan) -> int | None:
    """Give the number of chunks as Megatron-core wants to hear it: None where it is 1."""
    return plan.chunks if plan.chunks > 1 else None


def build_step(plan: Plan, rank: int) -> Callable[[], None]:
    """Build this rank's chunks and an optimizer, and give what runs one step of them."""
    from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: PLC0415

    config = build_config(plan)
    interleaved = plan.chunks > 1
    chunks = [
        Chunk(config, SleepingStage(*plan.work_ms(stage)), at if interleaved else None, first=stage == 0)
        for at, stage in enumerate(plan.stages_of(rank))
    ]
    batches = [itertools.repeat(torch.randn(SEQUENCE, ROWS, WIDTH)) for _ in chunks]
    optimizer = torch.optim.SGD([weight for chunk in chunks for weight in chunk.parameters()], lr=1e-3)
    run_schedule = get_forward_backward_func()

    def loss_of(output: Any) -> tuple[Any, dict[str, Any]]:
        loss = output.square().mean()
        return loss, {"loss": loss.detach()}

    def forward(batch: Any, chunk: Chunk) -> tuple[Any, Any]:
        return chunk(next(batch)), loss_of

    def step() -> None:
        optimizer.zero_grad()
        run_schedule(
            forward_step_func=forward,
            data_iterator=batches if interleaved else batches[0],
            model=chunks if interleaved else chunks[0],
            num_microbatches=plan.microbatches,
            seq_length=SEQUENCE,
            micro_batch_size=ROWS,
            forward_only=False,
        )
        optimizer.step()

    return step


def run_rank(rank: int, plan: Plan, port: int, folder: str) -> None:
    """Run one rank and write its raw trace into a folder; the entry point of a process."""
    with joined(plan, rank, port) as store:
        answer_for_cuda()
        from megatron.core import parallel_state  # noqa: PLC0415

        parallel_state.initialize_model_parallel(
            tensor_model_parallel_size=plan.tensor,
            pipeline_model_parallel_size=plan.pipeline,
            virtual_pipeline_model_parallel_size=virtual_size(plan),
        )
        profile_steps(plan, rank, store, folder, build_step(plan, rank))


# --------------------------------------------------------------------------------------------------------------------
# Command line


def make_plan(options: argparse.Namespace) -> Plan:
    """Turn parsed options into a plan that can run, or raise PlanError."""
    if options.pipeline < 2:
        raise PlanError(f"a pipeline needs at least 2 ranks: -p is {options.pipeline}")
    check_numbers(options, "tensor", "microbatches", "chunks", "steps")
    if options.chunks > 1 and options.microbatches % options.pipeline:
        multiple = options.pipeline * -(-options.microbatches // options.pipeline)
        raise PlanError(
            f"Megatron-core interleaves micro-batches in groups of as many as there are pipeline ranks: "
            f"-m {options.microbatches} is no multiple of {options.pipeline}, -m {multiple} would do",
        )
    return Plan(
        schedule="interleaved-1f1b" if options.chunks > 1 else "1f1b",
        ranks=options.pipeline * options.tensor,
        tensor=options.tensor,
        microbatches=options.microbatches,
        chunks=options.chunks,
        forward_ms=options.forward_ms,
        backward_ms=options.backward_ms,
        scale=scale_of(options, options.pipeline * options.chunks),
        steps=options.steps,
    )


def options_of(plan: Plan) -> list[str]:
    """Give the options that record a plan again, all but ``--out``."""
    shape = {"-p": plan.pipeline, "-t": plan.tensor, "-m": plan.microbatches, "-v": plan.chunks}
    return [*(word for option, value in shape.items() for word in (option, str(value))), *shared_options(plan)]


def check_megatron(_plan: Plan) -> None:
    """Refuse to start without Megatron-core."""
    require_package("megatron-core", "install it with 'pip install --no-deps megatron-core==0.16.1'")


def build_parser() -> argparse.ArgumentParser:
    """Build the command line."""
    parser = argparse.ArgumentParser(
        description="Record a real run of Megatron-core's pipeline schedules on the CPU, with stages that sleep for a "
        "known time. Writes one PyTorch Profiler trace a rank, and recorded.json.",
        epilog="example: %(prog)s -p 4 -m 8 -v 2 --forward-ms 40 --backward-ms 80 --out traces/interleaved",
    )
    add = parser.add_argument
    add("-p", "--pipeline", type=int, default=4, metavar="N", help="pipeline parallel ranks (default: 4)")
    add("-t", "--tensor", type=int, default=1, metavar="N", help="tensor parallel peers of each (default: 1)")
    add("-m", "--microbatches", type=int, default=8, metavar="N", help="micro-batches in a step (default: 8)")
    add(
        "-v",
        "--chunks",
        type=int,
        default=1,
        metavar="N",
        help="stages that a rank holds: 1 is 1F1B, more are interleaved 1F1B (default: 1)",
    )
    add_shared_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(Recorder(build_parser(), make_plan, options_of, check_megatron, run_rank, "megatron-core").main())
