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
import gc
import gzip
import json
import os
import re
import shlex
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
    from torch.distributed import pipelining
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in {"torch", "numpy"}:
        raise
    torch = None  # type: ignore[assignment]

Function: Any = torch.autograd.Function if torch else object
Module: Any = torch.nn.Module if torch else object

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

UNRECORDED_STEPS = 2  # the first step also exchanges shapes between the stages, the second warms the profiler up
WIDTH = 64  # features of an activation: small, so that nothing but the sleeping takes time
ROWS = 4  # samples in a micro-batch
LATE = 0.05  # a sleep that is late by more of the shortest one spoils the arithmetic
TIMEOUT = timedelta(seconds=120)
NEUTRAL_HOST = "host0"

oversleeps: list[float] = []  # of this process: how much longer than wanted each sleep took, in seconds


class PlanError(ValueError):
    """The wanted run is impossible; the message says why and what would do."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """One run to record. Times are of a rank and micro-batch, before they are divided over the rank's chunks."""

    schedule: str
    ranks: int
    microbatches: int
    chunks: int
    forward_ms: float
    backward_ms: float
    weight_share: float
    scale: tuple[float, ...]
    steps: int

    @property
    def stages(self) -> int:
        """How many stages the pipeline has over all ranks."""
        return self.ranks * self.chunks

    def stages_of(self, rank: int) -> list[int]:
        """Give the stages that a rank holds, in torch's order: looped, or for the V shape there and back."""
        if self.schedule in V_SHAPED:
            return [rank, self.stages - 1 - rank]
        return list(range(rank, self.stages, self.ranks))

    def work_ms(self, stage: int) -> tuple[float, float, float]:
        """Give the milliseconds one micro-batch takes on a stage: forward, input gradient, weight gradient."""
        factor = self.scale[stage] / self.chunks
        weight = self.backward_ms * self.weight_share
        return self.forward_ms * factor, (self.backward_ms - weight) * factor, weight * factor


# --------------------------------------------------------------------------------------------------------------------
# The work of a stage


def rest(seconds: float) -> None:
    """Sleep for a time and note how much longer it became.

    Waiting the last moment out on the clock instead would not be more exact: the ranks run in step, and with fewer
    cores than ranks one would wait for its core behind another that spins.
    """
    start = time.perf_counter()
    time.sleep(seconds)
    oversleeps.append(time.perf_counter() - start - seconds)


class SleepingLayer(Function):
    """The identity on an activation; its forward sleeps, and its backward sleeps as the input gradient."""

    @staticmethod
    def forward(ctx: Any, activation: Any, forward_s: float, input_grad_s: float) -> Any:
        """Sleep for the forward."""
        ctx.input_grad_s = input_grad_s
        rest(forward_s)
        return activation.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Sleep for the input gradient."""
        rest(ctx.input_grad_s)
        return grads[0], None, None


class SleepingWeight(Function):
    """The identity on a parameter; its backward sleeps as the weight gradient.

    Why not one function that does both: a zero-bubble schedule asks autograd for the input gradient (I) and later for
    the weight gradient (W), and both times ``ctx.needs_input_grad`` of a function between them is true for all inputs,
    so I and W would each run the whole backward.  As separate nodes, I passes this one by and W runs nothing else.
    """

    @staticmethod
    def forward(ctx: Any, weight: Any, weight_grad_s: float) -> Any:
        """Take no time: only the backward is of interest."""
        ctx.weight_grad_s = weight_grad_s
        return weight.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Sleep for the weight gradient."""
        rest(ctx.weight_grad_s)
        return grads[0], None


class SleepingStage(Module):
    """A slice of a model that takes a known time.

    The linear layer comes first so that stage 0, whose input needs no gradient, still has an input gradient to compute.
    """

    def __init__(self, forward_ms: float, input_grad_ms: float, weight_grad_ms: float) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.bias = torch.nn.Parameter(torch.zeros(WIDTH))
        self.seconds = (forward_ms / 1e3, input_grad_ms / 1e3, weight_grad_ms / 1e3)

    def forward(self, activation: Any) -> Any:
        """Run the slice on one micro-batch."""
        forward_s, input_grad_s, weight_grad_s = self.seconds
        bias = SleepingWeight.apply(self.bias, weight_grad_s)
        return SleepingLayer.apply(self.linear(activation), forward_s, input_grad_s) + bias


# --------------------------------------------------------------------------------------------------------------------
# One rank


def loopback_interface() -> str | None:
    """Find the name of the loopback interface, which differs between systems."""
    names = {name for _, name in socket.if_nameindex()}
    return next((name for name in ("lo", "lo0") if name in names), None)


def join_group(plan: Plan, rank: int, port: int) -> Any:
    """Make this process a rank of the run, talking over loopback only; return the store that all share."""
    interface = loopback_interface()
    if interface:
        os.environ["GLOO_SOCKET_IFNAME"] = interface
    for name in [name for name in os.environ if name.startswith("PT_PROFILER_JOB")]:
        del os.environ[name]  # torch would write them into the trace
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=TIMEOUT)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=plan.ranks, timeout=TIMEOUT)
    return store


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
    """Run every step of one rank and write its raw trace into a folder; the entry point of a process."""
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    store = join_group(plan, rank, port)
    schedule, optimizer = build_schedule(plan, rank)
    held = plan.stages_of(rank)
    rows = plan.microbatches * ROWS
    inputs = [torch.randn(rows, WIDTH)] if 0 in held else []
    targets = {"target": torch.randn(rows, WIDTH)} if plan.stages - 1 in held else {}

    def export(profiler: Any) -> None:
        profiler.export_chrome_trace(str(Path(folder, trace_name(rank, compressed=False))))

    gc.collect()
    gc.disable()  # a collection in the middle of a stage would be work that the plan does not know
    dist.barrier()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=UNRECORDED_STEPS - 1, warmup=1, active=plan.steps, repeat=1),
        on_trace_ready=export,
    ) as profiler:
        for step in range(UNRECORDED_STEPS + plan.steps):
            if step == UNRECORDED_STEPS:
                oversleeps.clear()
            optimizer.zero_grad()
            schedule.step(*inputs, **targets)
            optimizer.step()
            profiler.step()
    store.set(f"oversleeps of {rank}", json.dumps([1e3 * seconds for seconds in oversleeps]))
    dist.barrier()
    dist.destroy_process_group()


# --------------------------------------------------------------------------------------------------------------------
# Files


def trace_name(rank: int, *, compressed: bool) -> str:
    """Name the trace of a rank."""
    return f"rank{rank}_trace.json" + (".gz" if compressed else "")


def neutral(text: str, name: str) -> str:
    """Take the machine's name and the folder out of a trace, and leave every other byte as torch wrote it."""
    value = r'"(?:[^"\\]|\\.)*"'
    text = re.sub(rf'("host_name":\s*){value}', rf'\g<1>"{NEUTRAL_HOST}"', text)
    return re.sub(rf'("traceName":\s*){value}', rf'\g<1>"{name}"', text)


def strings_in(value: Any) -> Iterator[str]:
    """Yield every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)


def private_strings(text: str) -> list[str]:
    """List the strings of a trace that tell about this machine: its name or its folders, the user's among them."""
    names = {socket.gethostname(), socket.getfqdn()} - {"localhost"}
    folders = {str(path) for path in (Path.home(), Path.cwd(), Path(sys.prefix), Path(tempfile.gettempdir()))} - {"/"}
    return sorted(
        {
            string
            for string in strings_in(json.loads(text))
            if string in names or any(folder in string for folder in folders)
        }
    )


def publish_trace(raw: Path, target: Path) -> None:
    """Write a raw trace, neutral and compressed, to its place; refuse when it still tells about the machine."""
    text = neutral(raw.read_text(encoding="utf-8"), target.name.removesuffix(".gz"))
    if found := private_strings(text):
        raise PlanError(f"{target.name} would tell about this machine and was not written: {', '.join(found)}")
    with target.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=0) as packed:
        packed.write(text.encode())


def describe(plan: Plan, oversleep_ms: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Say how a run was recorded, for ``recorded.json``."""
    owner = {stage: rank for rank in range(plan.ranks) for stage in plan.stages_of(rank)}
    stages = [
        dict(zip(("forward_ms", "input_grad_ms", "weight_grad_ms"), plan.work_ms(stage), strict=True))
        for stage in range(plan.stages)
    ]
    return {
        "options": shlex.join(options_of(plan)),
        **dataclasses.asdict(plan),
        "unrecorded_steps": UNRECORDED_STEPS,
        "stages": [{"stage": stage, "rank": owner[stage], **times} for stage, times in enumerate(stages)],
        "oversleep_ms": [
            {"rank": rank, "median": round(statistics.median(each), 3), "max": round(max(each), 3)}
            for rank, each in enumerate(oversleep_ms)
        ],
        "torch": torch.__version__,
        "backend": "gloo",
    }


def options_of(plan: Plan) -> list[str]:
    """Give the options that record a plan again, all but ``--out``."""
    options = ["--schedule", plan.schedule, "-p", str(plan.ranks), "-m", str(plan.microbatches), "-v", str(plan.chunks)]
    options += ["--forward-ms", f"{plan.forward_ms:g}", "--backward-ms", f"{plan.backward_ms:g}"]
    options += ["--weight-share", f"{plan.weight_share:g}", "--scale", ",".join(f"{part:g}" for part in plan.scale)]
    return [*options, "--steps", str(plan.steps)]


def record(plan: Plan, out: Path) -> dict[str, Any]:
    """Run a plan, write its traces and its description, and return the description."""
    out.mkdir(parents=True, exist_ok=True)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=TIMEOUT)
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(run_rank, args=(plan, store.port, folder), nprocs=plan.ranks)
        for old in earlier_traces(out):
            old.unlink()
        for rank in range(plan.ranks):
            publish_trace(Path(folder, trace_name(rank, compressed=False)), out / trace_name(rank, compressed=True))
    oversleep_ms = [json.loads(store.get(f"oversleeps of {rank}")) for rank in range(plan.ranks)]
    description = describe(plan, oversleep_ms)
    (out / "recorded.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")
    return description


def earlier_traces(out: Path) -> list[Path]:
    """List the traces that an earlier recording left in a folder."""
    return sorted(out.glob("rank*_trace.json.gz"))


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


def make_plan(options: argparse.Namespace) -> Plan:
    """Turn parsed options into a plan that can run, or raise PlanError."""
    schedule = options.schedule
    chunks = options.chunks or (1 if schedule in ONE_STAGE else 2)
    if options.ranks < 2:
        raise PlanError(f"a pipeline needs at least 2 ranks: -p is {options.ranks}")
    for name in ("microbatches", "chunks", "steps"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise PlanError(f"the number of {name} must be at least 1, not {value}")
    if min(options.forward_ms, options.backward_ms) <= 0:
        raise PlanError("--forward-ms and --backward-ms must be above 0")
    if not 0 < options.weight_share < 1:
        raise PlanError(f"--weight-share lies between 0 and 1: {options.weight_share:g} does not")
    check_schedule(schedule, options.ranks, options.microbatches, chunks)
    stages = options.ranks * chunks
    scale = options.scale or (1.0,) * stages
    if len(scale) != stages:
        raise PlanError(f"--scale needs one number for each of the {stages} stages, not {len(scale)}")
    if min(scale) <= 0:
        raise PlanError("every number of --scale must be above 0")
    return Plan(
        schedule,
        options.ranks,
        options.microbatches,
        chunks,
        options.forward_ms,
        options.backward_ms,
        options.weight_share,
        scale,
        options.steps,
    )


def numbers(text: str) -> tuple[float, ...]:
    """Read numbers separated by commas."""
    return tuple(float(part) for part in text.split(","))


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
        "--forward-ms",
        type=float,
        default=20.0,
        metavar="MS",
        help="forward of one micro-batch on one rank, divided over its stages (default: 20)",
    )
    add(
        "--backward-ms",
        type=float,
        default=40.0,
        metavar="MS",
        help="the same for the whole backward, input and weight gradients together (default: 40)",
    )
    add(
        "--weight-share",
        type=float,
        default=0.5,
        metavar="X",
        help="part of the backward that the weight gradients take; shows where the schedule splits it (default: 0.5)",
    )
    add(
        "--scale",
        type=numbers,
        metavar="X,X,...",
        help="a factor for each stage, in the order of the model; 1.5 makes it take half as long again (default: 1s)",
    )
    add(
        "--steps",
        type=int,
        default=3,
        metavar="N",
        help=f"recorded steps, after {UNRECORDED_STEPS} others (default: 3)",
    )
    add("--out", required=True, type=Path, metavar="FOLDER", help="where the files go; made when missing")
    add("--force", action="store_true", help="replace the traces that the folder already holds")
    return parser


def check_surroundings(plan: Plan, out: Path, *, force: bool) -> None:
    """Refuse to start without the right PyTorch or a folder to write to."""
    if torch is None:
        raise PlanError("PyTorch is missing: install it with 'pip install torch numpy' (its CPU build will do)")
    name = TORCH_CLASSES[plan.schedule]
    if not hasattr(pipelining, name):
        raise PlanError(f"PyTorch {torch.__version__} has no {name}: install torch 2.10 or newer")
    if out.exists() and not out.is_dir():
        raise PlanError(f"--out {out} is a file, not a folder")
    if not force and earlier_traces(out):
        raise PlanError(f"{out} already holds traces: choose another folder, or give --force to replace them")


def summarize(description: dict[str, Any], out: Path) -> str:
    """Say what was recorded and whether the sleeps kept their time."""
    worst = max(rank["max"] for rank in description["oversleep_ms"])
    what = "{schedule}, p={ranks}, m={microbatches}, v={chunks}, {steps} steps"
    lines = [f"{out}: {what.format(**description)}", f"the sleep that was most late was {worst:.2f} ms late"]
    shortest = min(value for stage in description["stages"] for key, value in stage.items() if key.endswith("_ms"))
    if worst > LATE * shortest:
        lines.append(f"over {LATE:.0%} of the shortest: record again when the machine is less busy")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    try:
        plan = make_plan(options)
        check_surroundings(plan, options.out, force=options.force)
        description = record(plan, options.out)
    except PlanError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"cannot write to {options.out}: {error}")
    except mp.ProcessException as error:
        print(f"{parser.prog}: rank {error.error_index} failed\n{error}", file=sys.stderr)
        return 1
    print(summarize(description, options.out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
