"""`--emit`: the traces that a run of a simulated schedule would leave, with faults on request."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bubblescope.cli import console
from bubblescope.cli.options import GroupedOption
from bubblescope.errors import UsageError

if TYPE_CHECKING:
    from bubblescope.emit import Job, Recorder
    from bubblescope.schedules.trial import Trial

__all__ = ["Emission", "emit_options", "numbers"]

FORMATS = ("kineto", "nsys")
NS = 1_000_000  # in a millisecond

_MOST_ACTIONS = 100_000  # a minute and 100 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """Where traces go, and how the run they are of differs from the schedule on paper."""

    recorder: Recorder
    folder: Path
    imbalance: tuple[float, ...]
    jitter: float
    straggler: tuple[tuple[int, float], ...]
    skew_ms: float
    labels: bool
    steps: int
    dp: int
    tp: int
    seed: int

    def write(self, trial: Trial, name: str, *, overwrite: bool, quiet: bool) -> None:
        """Write the traces and their truth; raises UsageError where the job cannot be or something is in the way."""
        from bubblescope.emit import write  # noqa: PLC0415  only a run needs it

        paths = write(self._job(trial, name), self.folder, overwrite=overwrite, with_truth=True)
        if not quiet:
            traces = len(paths) - 1
            console.note(f"Wrote {traces} traces and {paths[-1].name} to {self.folder}")

    def _job(self, trial: Trial, name: str) -> Job:
        from bubblescope.emit import Job, StageWork  # noqa: PLC0415

        self._check(trial)
        times = trial.times
        work = zip(times.forward, times.backward, times.weight, strict=True)
        return Job(
            schedule=name,
            orders=tuple(trial.simulation.orders.values()),
            together=trial.together,
            stage_times=tuple(StageWork(*(round(time * NS) for time in each)) for each in work),
            edges_ns=tuple(round(time * NS) for time in times.comm) if trial.shape.p > 1 else (),
            d=self.dp,
            t=self.tp,
            scale=self._scale(trial.shape.stages),
            straggler=self.straggler,
            jitter=self.jitter,
            ranks_a_host=self.dp * self.tp if self.skew_ms else 8,
            skew_ns=self._skew(trial.shape.p),
            labels="pp" if self.labels else "none",
            steps=self.steps,
            seed=self.seed,
            recorder=self.recorder,
            payloads="json",  # as an export should be made
        )

    def _check(self, trial: Trial) -> None:
        if trial.blocking:
            raise UsageError("--blocking and --emit do not go together: in emitted runs no send holds its rank")
        actions = sum(map(len, trial.simulation.orders.values())) * self.steps * self.dp * self.tp
        if actions > _MOST_ACTIONS:
            raise UsageError(
                f"too large: {actions:,} actions to write, of at most {_MOST_ACTIONS:,}",
                hint="fewer micro-batches, --steps, --dp or --tp",
            )

    def _scale(self, stages: int) -> tuple[float, ...]:
        """A factor for each stage; one alone is the last one's."""
        return (*(1.0,) * (stages - 1), *self.imbalance) if len(self.imbalance) == 1 else self.imbalance

    def _skew(self, p: int) -> tuple[int, ...]:
        """The clock of every rank: those of a pipeline rank are one host, which is off by up to the skew."""
        if not self.skew_ms:
            return ()
        dice = random.Random(self.seed)  # noqa: S311 - a repeatable skew, no secret
        hosts = [0, *(round(dice.uniform(-self.skew_ms, self.skew_ms) * NS) for _ in range(p - 1))]
        return tuple(skew for skew in hosts for _ in range(self.dp * self.tp))


def emit_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Traces to write, handed over as `emission`; None where none are asked for."""

    @wraps(function)
    def call(**given: Any) -> Any:
        asked = given.pop("emit")
        names = ("imbalance", "jitter", "straggler", "skew_ms", "no_labels", "steps", "dp", "tp", "seed")
        faults = {name: given.pop(name) for name in names}
        if asked is None:
            _refuse_alone(faults)
            return function(emission=None, **given)
        recorder, folder = asked
        return function(emission=_emission(recorder, folder, faults), **given)

    for option in reversed(_options()):
        call = option(call)
    return call


def _options() -> list[Callable[[Any], Any]]:
    option = partial(click.option, cls=GroupedOption, heading="Traces of such a run (times are milliseconds then)")
    format_and_folder = (click.Choice(FORMATS), str)
    return [
        option("--emit", type=format_and_folder, metavar="kineto|nsys DIR", help="Write traces into a folder."),
        option("--imbalance", metavar="F", help="How much longer the last stage works; or a list, one a stage."),
        option("--jitter", type=float, metavar="SIGMA", help="Relative spread of every action's time."),
        option("--straggler", multiple=True, metavar="RANK:F", help="A rank that takes F times as long. Repeatable."),
        option("--skew-ms", type=float, metavar="X", help="By how much the hosts' clocks are off at most."),
        option("--no-labels", is_flag=True, help="Write no ranges that name the actions."),
        option("--steps", type=int, metavar="N", help="Optimizer steps; default 3."),
        option("--dp", type=int, metavar="N", help="Data-parallel degree; default 1."),
        option("--tp", type=int, metavar="N", help="Tensor-parallel degree; default 1."),
        option("--seed", type=int, metavar="N", help="Of jitter and skew; default 0."),
    ]


def _refuse_alone(faults: dict[str, Any]) -> None:
    for name, value in faults.items():
        if value not in (None, False, ()):
            raise UsageError(f"--{name.replace('_', '-')} needs --emit", hint="it changes only what is written")


def _emission(recorder: Recorder, folder: str, faults: dict[str, Any]) -> Emission:
    if not folder:
        raise UsageError("--emit takes the name of a folder, found an empty one")
    imbalance = faults["imbalance"]
    return Emission(
        recorder=recorder,
        folder=Path(folder),
        imbalance=() if imbalance is None else numbers("imbalance", imbalance),
        jitter=_within("jitter", faults["jitter"], 0.0, 1.0),
        straggler=tuple(map(_straggler, faults["straggler"])),
        skew_ms=_within("skew-ms", faults["skew_ms"], 0.0, 1e9),
        labels=not faults["no_labels"],
        steps=_count("steps", faults["steps"], 3),
        dp=_count("dp", faults["dp"], 1),
        tp=_count("tp", faults["tp"], 1),
        seed=faults["seed"] or 0,
    )


def numbers(name: str, text: str) -> tuple[float, ...]:
    """1,1,2 -> (1.0, 1.0, 2.0); raises UsageError on anything else."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise UsageError(f"--{name} expects a number or a list like 1,1,2, found {text!r}") from error


def _within(name: str, value: float | None, least: float, most: float) -> float:
    if value is not None and not least <= value <= most:
        raise UsageError(f"--{name} must be from {least:g} to {most:g}, found {value:g}")
    return value or 0.0


def _count(name: str, value: int | None, default: int) -> int:
    if value is not None and not 1 <= value <= 1_000_000:
        raise UsageError(f"--{name} must be from 1 to 1,000,000, found {value}")
    return value or default


def _straggler(text: str) -> tuple[int, float]:
    match = re.fullmatch(r"(\d{1,9}):(\d+(?:\.\d*)?|\.\d+)", text, re.ASCII)
    if match is None:
        raise UsageError(f"--straggler expects a rank and a factor like 3:1.5, found {text!r}")
    return int(match[1]), float(match[2])
