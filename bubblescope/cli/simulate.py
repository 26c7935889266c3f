"""`bubblescope simulate`: a schedule on paper, formula beside simulation, and its picture."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bubblescope.cli import pages
from bubblescope.cli.emitting import Emission, emit_options, numbers
from bubblescope.cli.options import GroupedCommand, GroupedOption, output_options
from bubblescope.cli.output import Output
from bubblescope.errors import InputError, UsageError

if TYPE_CHECKING:
    from bubblescope.report.pages import Page
    from bubblescope.schedules.csv_file import Written
    from bubblescope.schedules.family import Family, Shape
    from bubblescope.schedules.recognize import Found
    from bubblescope.schedules.times import Times
    from bubblescope.schedules.trial import Trial

__all__ = ["command"]

_MOST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to simulate, as far as it was said."""

    schedule: str | None
    every: bool
    pp: int | None
    microbatches: int | None
    virtual: int | None
    slices: int | None
    group: int | None
    times: Times
    blocking: bool

    def shape(self, family: Family) -> Shape:
        """The shape of a schedule; raises UsageError where its size is missing."""
        from bubblescope.schedules.family import Shape  # noqa: PLC0415  likewise for all of schedules
        from bubblescope.schedules.ranking import SLICES  # noqa: PLC0415

        p, m = self.sizes()
        slices = self.slices or (SLICES if family.cuts else 1)
        return Shape(p, m, self.virtual or family.chunks, slices, self.group)

    def sizes(self) -> tuple[int, int]:
        """Ranks and micro-batches."""
        if self.pp is None or self.microbatches is None:
            missing = "--pp" if self.pp is None else "--microbatches"
            raise UsageError(
                f"{missing} is missing", hint="for example: bubblescope simulate --schedule 1f1b -p 4 -m 8"
            )
        return self.pp, self.microbatches

    def check_against(self, shape: Shape, path: Path) -> None:
        """Refuse a size that contradicts the file."""
        for option, said, found in (
            ("--pp", self.pp, shape.p),
            ("--microbatches", self.microbatches, shape.m),
            ("--virtual", self.virtual, shape.v),
            ("--slices", self.slices, 1),
            ("--group", self.group, None),
        ):
            if said is not None and said != found:
                has = "has none" if found is None else f"has {found}"
                raise UsageError(f"{option} {said} contradicts {path}, which {has}", hint="a file says its own size")


def _option(*names: str, heading: str, **kwargs: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=GroupedOption, heading=heading, **kwargs)


def _shape_options() -> list[Callable[[Any], Any]]:
    option = partial(_option, heading="Which schedule")
    return [
        option("--schedule", metavar="NAME|FILE.csv", help="A schedule, or a file in which torch wrote one down."),
        option("--all", "every", is_flag=True, help="Rank all schedules that are possible."),
        option("--pp", "-p", type=int, metavar="N", help="Pipeline ranks."),
        option("--microbatches", "-m", type=int, metavar="N", help="Micro-batches a step."),
        option("--virtual", "-v", type=int, metavar="N", help="Model chunks a rank holds; default the schedule's."),
        option("--slices", type=int, metavar="N", help="Pieces that a micro-batch is cut into, for seq1f1b."),
        option("--group", type=int, metavar="N", help="Micro-batches an interleaved schedule takes at a time."),
    ]


def _time_options() -> list[Callable[[Any], Any]]:
    option = partial(
        _option, heading="Times of a micro-batch, in any unit: one, or a list by rank or stage", metavar="T"
    )
    return [
        option("--forward", default="1", help="Forward; default 1."),
        option("--backward", default="2", help="Full backward; with --weight, the input gradient alone. Default 2."),
        option("--weight", help="Weight gradient; without it half of the full backward is."),
        option("--comm", default="0", help="A transfer; one, or a list for each pair of neighbours; default 0."),
        option("--blocking", is_flag=True, metavar=None, help="A send holds its rank until the receiver has it."),
    ]


def _wanted_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to simulate, handed over as `wanted`."""

    @wraps(function)
    def call(**given: Any) -> Any:
        from bubblescope.schedules.times import Times  # noqa: PLC0415

        weight = given.pop("weight")
        times = Times(
            **{name: numbers(name, given.pop(name)) for name in ("forward", "backward", "comm")},
            weight=None if weight is None else numbers("weight", weight),
        )
        for name in ("pp", "microbatches", "virtual", "slices", "group"):
            if given[name] is not None and not 1 <= given[name] <= _MOST:
                raise UsageError(f"--{name} must be from 1 to {_MOST:,}, found {given[name]}")
        names = ("schedule", "every", "pp", "microbatches", "virtual", "slices", "group", "blocking")
        return function(wanted=Wanted(times=times, **{name: given.pop(name) for name in names}), **given)

    for option in reversed([*_shape_options(), *_time_options()]):
        call = option(call)
    return call


@click.command("simulate", cls=GroupedCommand)
@_wanted_options
@emit_options
@_option("--no-picture", heading="Output", is_flag=True, help="Leave the picture of the pipeline out.")
@output_options
def command(
    *,
    wanted: Wanted,
    emission: Emission | None,
    no_picture: bool,
    output: Output,
    progress: bool,  # noqa: ARG001  there are no files to read
) -> None:
    """Simulate a schedule and set it beside its formula.

    \b
    Examples:
      bubblescope simulate --schedule 1f1b -p 4 -m 8
      bubblescope simulate --schedule zb-h1 -p 4 -m 8 --forward 1 --backward 2.2 --comm 0.1
      bubblescope simulate --all -p 8 -m 32
      bubblescope simulate --schedule my_schedule.csv --no-picture
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    if wanted.every == (wanted.schedule is not None):
        said = "found both" if wanted.every else "found neither"
        raise UsageError(
            f"one of --schedule and --all is needed, {said}", hint="bubblescope explain lists the schedules"
        )
    if wanted.every:
        if emission is not None:
            raise UsageError("--all writes no traces", hint="--emit goes with one --schedule")
        _rank(wanted, output)
        return
    assert wanted.schedule is not None
    found = _find(wanted.schedule)
    result = _file(wanted, found) if isinstance(found, Path) else _named(wanted, found)
    if emission is not None:
        emission.write(result.trial, result.name, overwrite=output.force, quiet=output.quiet)
    _write(output, lambda: result.page(not no_picture), result.data)


@dataclass(frozen=True, slots=True)
class _Result:
    """What was simulated, and how it is shown: the page with or without its picture, and the data."""

    trial: Trial
    name: str
    page: Callable[[bool], Page]
    data: Callable[[], dict[str, Any]]


def _find(text: str) -> Family | Path:
    """The schedule of a name, or the path of a file."""
    from bubblescope.schedules.registry import find  # noqa: PLC0415

    path = Path(text)
    if path.suffix.lower() == ".csv" or os.sep in text:
        return path
    try:
        return find(text)
    except UsageError:
        if path.is_file():
            return path
        raise


def _named(wanted: Wanted, family: Family) -> _Result:
    from bubblescope.report import trial_json, trials  # noqa: PLC0415
    from bubblescope.schedules.replay import Deadlock  # noqa: PLC0415
    from bubblescope.schedules.trial import run, standstill  # noqa: PLC0415

    try:
        trial = run(family, wanted.shape(family), wanted.times, blocking=wanted.blocking)
    except Deadlock as deadlock:
        hint = "with sends that do not hold their rank it may run" if wanted.blocking else None
        raise UsageError(f"{family.name} comes to a stand: {standstill(deadlock)}", hint=hint) from deadlock
    data = partial(trial_json.trial_data, trial)
    return _Result(trial, family.name, lambda picture: trials.trial_page(trial, picture=picture), data)


def _file(wanted: Wanted, path: Path) -> _Result:
    from bubblescope.report import trial_json, trials  # noqa: PLC0415
    from bubblescope.schedules.csv_file import read  # noqa: PLC0415

    written = read(path)
    wanted.check_against(written.shape, path)
    found = _run_file(wanted, written, path)
    data = partial(trial_json.found_data, found)
    return _Result(found.trial, path.stem, lambda picture: trials.found_page(found, str(path), picture=picture), data)


def _run_file(wanted: Wanted, written: Written, path: Path) -> Found:
    from bubblescope.schedules.recognize import run_file  # noqa: PLC0415
    from bubblescope.schedules.replay import Deadlock  # noqa: PLC0415
    from bubblescope.schedules.trial import standstill  # noqa: PLC0415

    try:
        return run_file(written, wanted.times, blocking=wanted.blocking)
    except Deadlock as deadlock:
        raise InputError(f"the schedule of {path} comes to a stand: {standstill(deadlock)}") from deadlock


def _rank(wanted: Wanted, output: Output) -> None:
    from bubblescope.report import trial_json, trials  # noqa: PLC0415
    from bubblescope.schedules.ranking import Wish, rank_all  # noqa: PLC0415

    wish = Wish(*wanted.sizes(), wanted.virtual, wanted.slices, wanted.group)
    ranking = rank_all(wish, wanted.times, blocking=wanted.blocking)
    _write(output, lambda: trials.ranking_page(ranking), lambda: trial_json.ranking_data(ranking))


def _write(output: Output, page: Callable[[], Page], data: Callable[[], dict[str, Any]]) -> None:
    from bubblescope.report import trial_json  # noqa: PLC0415

    result = pages.Result(page=page, json=lambda: trial_json.render(data()), csv=lambda: trial_json.render_csv(data()))
    pages.write(output, result)
