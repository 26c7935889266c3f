"""The course of a recording that every recorder takes: options, ranks, files, and a word on how exact it became."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shlex
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from recording.files import earlier_traces, publish_trace, trace_name, write_description
from recording.libraries import dist, mp, torch
from recording.plan import Plan, PlanError
from recording.rank import TIMEOUT, UNRECORDED_STEPS, sleeps_key

__all__ = ["Recorder", "add_shared_options", "require_package", "shared_options"]

LATE = 0.05  # a sleep that is late by more of the shortest one spoils the arithmetic


@dataclasses.dataclass(frozen=True)
class Recorder:
    """A recorder: what it adds to the shared course.

    Args:
        parser: its command line, with the shared options among the others.
        plan: makes a plan of parsed options, or raises PlanError.
        options: the options that record a plan again, all but ``--out``.
        check: raises PlanError where the software for a plan is missing.
        run_rank: runs one rank of a plan: its number, the plan, the port of the store, the folder for the raw trace.
            A function at the top of a module, since other processes call it.
        package: what drives the pipeline, as pip names it; None for torch alone.
    """

    parser: argparse.ArgumentParser
    plan: Callable[[argparse.Namespace], Plan]
    options: Callable[[Plan], list[str]]
    check: Callable[[Plan], None]
    run_rank: Callable[[int, Plan, int, str], None]
    package: str | None = None

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Run the command line; return the exit code."""
        options = self.parser.parse_args(arguments)
        try:
            plan = self.plan(options)
            require_torch()
            self.check(plan)
            check_folder(options.out, force=options.force)
            description = self.record(plan, options.out)
        except PlanError as error:
            self.parser.error(str(error))
        except OSError as error:
            self.parser.error(f"cannot write to {options.out}: {error}")
        except (mp.ProcessExitedException, mp.ProcessRaisedException) as error:
            print(f"{self.parser.prog}: rank {error.error_index} failed\n{error}", file=sys.stderr)
            return 1
        print(summarize(description, options.out))
        return 0

    def record(self, plan: Plan, out: Path) -> dict[str, Any]:
        """Run a plan, write its traces and its description, and return the description."""
        out.mkdir(parents=True, exist_ok=True)
        store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=TIMEOUT)
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(self.run_rank, args=(plan, store.port, folder), nprocs=plan.ranks)
            for old in earlier_traces(out):
                old.unlink()
            for rank in range(plan.ranks):
                publish_trace(Path(folder, trace_name(rank, compressed=False)), out / trace_name(rank, compressed=True))
        description = self.describe(plan, [json.loads(store.get(sleeps_key(rank))) for rank in range(plan.ranks)])
        write_description(description, out)
        return description

    def describe(self, plan: Plan, oversleep_ms: Sequence[Sequence[float]]) -> dict[str, Any]:
        """Say how a run was recorded, for ``recorded.json``."""
        names = ("forward_ms", "input_grad_ms", "weight_grad_ms")
        held = sorted((stage, rank) for rank in range(plan.ranks) for stage in plan.stages_of(rank))
        return {
            "recorder": self.parser.prog,
            "options": shlex.join(self.options(plan)),
            **dataclasses.asdict(plan),
            "unrecorded_steps": UNRECORDED_STEPS,
            "stages": [
                {"stage": stage, "rank": rank, **dict(zip(names, plan.work_ms(stage), strict=True))}
                for stage, rank in held
            ],
            "oversleep_ms": [
                {"rank": rank, "median": round(statistics.median(each), 3), "max": round(max(each), 3)}
                for rank, each in enumerate(oversleep_ms)
            ],
            **({self.package: version(self.package)} if self.package else {}),
            "torch": torch.__version__,
            "backend": "gloo",
        }


def numbers(text: str) -> tuple[float, ...]:
    """Read numbers separated by commas."""
    return tuple(float(part) for part in text.split(","))


def add_shared_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that every recorder has: times, steps and the folder."""
    add = parser.add_argument
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


def shared_options(plan: Plan) -> list[str]:
    """Give the shared options that record a plan again, all but ``--out``."""
    times = ["--forward-ms", f"{plan.forward_ms:g}", "--backward-ms", f"{plan.backward_ms:g}"]
    return [*times, "--scale", ",".join(f"{part:g}" for part in plan.scale), "--steps", str(plan.steps)]


def require_torch() -> None:
    """Refuse to start without PyTorch."""
    if torch is None:
        raise PlanError("PyTorch is missing: install it with 'pip install torch numpy' (its CPU build will do)")


def require_package(package: str, hint: str) -> None:
    """Refuse to start where a package is missing, with what would install it."""
    try:
        version(package)
    except PackageNotFoundError:
        raise PlanError(f"{package} is missing: {hint}") from None


def check_folder(out: Path, *, force: bool) -> None:
    """Refuse to start without a folder to write to."""
    if out.exists() and not out.is_dir():
        raise PlanError(f"--out {out} is a file, not a folder")
    if not force and earlier_traces(out):
        raise PlanError(f"{out} already holds traces: choose another folder, or give --force to replace them")


def summarize(description: dict[str, Any], out: Path) -> str:
    """Say what was recorded and whether the sleeps kept their time."""
    worst = max(rank["max"] for rank in description["oversleep_ms"])
    what = "{schedule}, {ranks} ranks, m={microbatches}, v={chunks}, {steps} steps"
    lines = [f"{out}: {what.format(**description)}", f"the sleep that was most late was {worst:.2f} ms late"]
    shortest = min(value for stage in description["stages"] for key, value in stage.items() if key.endswith("_ms"))
    if worst > LATE * shortest:
        lines.append(f"over {LATE:.0%} of the shortest: record again when the machine is less busy")
    return "\n".join(lines)
