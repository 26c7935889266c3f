"""Options that several commands share, each set as one decorator that hands over one value."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from bubblescope.cli.output import Output
from bubblescope.errors import UsageError
from bubblescope.model.options import Attribution, LabelRule, Options, StepRange
from bubblescope.report.registry import FORMATS

__all__ = [
    "GroupedCommand",
    "GroupedOption",
    "config_option",
    "file_options",
    "job_options",
    "output_options",
    "parse_layers",
    "parse_ranks",
    "run_options",
    "target_options",
    "trace_arguments",
]

Function = TypeVar("Function", bound=Callable[..., Any])

# More ranks than any job has; a slip of the finger must not fill the memory.
_MOST_RANKS = 1_000_000


class GroupedOption(click.Option):
    """An option that stands under a heading of its own in the help."""

    def __init__(self, *args: Any, heading: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heading = heading


class GroupedCommand(click.Command):
    """A command whose help lists the options under their headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section a heading, in the order in which the options are declared."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "heading", "Other"), []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)


def _option(*names: str, heading: str, **kwargs: Any) -> Callable[[Function], Function]:
    return click.option(*names, cls=GroupedOption, heading=heading, **kwargs)


def _apply(function: Callable[..., Any], options: Sequence[Callable[[Any], Any]]) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function


def trace_arguments(function: Function) -> Function:
    """TRACE..., handed over as `traces`."""
    return click.argument("traces", metavar="TRACE...", nargs=-1, required=True)(function)


def parse_ranks(text: str) -> tuple[int, ...]:
    """0,2-5 -> (0, 2, 3, 4, 5); raises UsageError on anything else."""
    ranks: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part, re.ASCII)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last - first > _MOST_RANKS:
            raise UsageError(f"--ranks expects ranks and ranges like 0,2-5, found {text!r}")
        ranks.update(range(first, last + 1))
    return tuple(sorted(ranks))


def parse_layers(text: str) -> tuple[int, ...]:
    """8,8,8,7 or 8+8+8+7 -> (8, 8, 8, 7); raises UsageError on anything else."""
    parts = [re.fullmatch(r"\s*(\d{1,9})\s*", part, re.ASCII) for part in re.split(r"[,+]", text)]
    if not all(parts):
        raise UsageError(f"--layers expects how many layers each stage has, like 8,8,8,7, found {text!r}")
    return tuple(int(part[1]) for part in parts if part is not None)


def _selection() -> list[Callable[[Any], Any]]:
    heading = "Which part of the run"
    return [
        _option("--steps", heading=heading, metavar="A:B", help="Steps A to B, both included; 3, 2: and :5 work too."),
        _option("--ranks", heading=heading, metavar="LIST", help="Only these ranks, for example 0,2-5."),
    ]


def _statements() -> list[Callable[[Any], Any]]:
    heading = "What the traces cannot tell by themselves"
    return [
        _option("--pp", heading=heading, type=int, metavar="N", help="Pipeline-parallel degree."),
        _option("--tp", heading=heading, type=int, metavar="N", help="Tensor-parallel degree."),
        _option("--dp", heading=heading, type=int, metavar="N", help="Data-parallel degree."),
        _option("--virtual", heading=heading, type=int, metavar="N", help="Model chunks a rank holds."),
        _option("--microbatches", heading=heading, type=int, metavar="N", help="Micro-batches a step."),
        _option(
            "--layers",
            heading=heading,
            metavar="LIST",
            help="How many layers each stage has, where the trace does not show them, for example 8,8,8,7.",
        ),
        _option("--schedule", heading=heading, metavar="NAME", help="The schedule, for example interleaved-1f1b."),
        _option(
            "--label",
            heading=heading,
            metavar="KIND=REGEX",
            multiple=True,
            help="Ranges whose name matches are actions of KIND: F forward, B backward, I input gradient, "
            "W weight gradient. The groups (?P<stage>..) and (?P<microbatch>..) are read. Repeatable.",
        ),
    ]


def _throughput() -> list[Callable[[Any], Any]]:
    heading = "For throughput and MFU"
    return [
        _option("--batch-size", heading=heading, type=int, metavar="N", help="Samples a step, over all replicas."),
        _option("--sequence-length", heading=heading, type=int, metavar="N", help="Tokens a sample."),
        _option(
            "--flops-per-token",
            heading=heading,
            type=float,
            metavar="X",
            help="FLOPs of forward and backward for one token, without recomputation: about 6 a parameter.",
        ),
        _option(
            "--peak-flops",
            heading=heading,
            type=float,
            metavar="X",
            help="FLOPs a second of one GPU; default: its dense bf16 peak, where the trace names a GPU that is known.",
        ),
        _option(
            "--recompute",
            heading=heading,
            type=float,
            metavar="X",
            help="Share of the forward that runs again in the backward, 0 to 1; for HFU.",
        ),
    ]


_STATED = ("pp", "tp", "dp", "virtual", "microbatches", "schedule", "jobs", "strict")
_EXPLAINED = ("attribution", "batch_size", "sequence_length", "flops_per_token", "peak_flops", "recompute")


def job_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What to analyze, what the traces cannot tell and how the bubble is explained, handed over as `options`."""
    attribution = _option(
        "--attribution",
        heading="How the bubble is explained",
        type=click.Choice(get_args(Attribution)),
        default="ladder",
        help="Causes one after the other, or the mean over every order of them with what each costs alone.",
    )
    return _stating(function, *_throughput(), attribution)


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same where no bubble is explained and no throughput told."""
    return _stating(function)


def _stating(function: Callable[..., Any], *more: Callable[[Any], Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(**given: Any) -> Any:
        steps, ranks, labels = given.pop("steps"), given.pop("ranks"), given.pop("label")
        layers = given.pop("layers")
        options = Options(
            steps=StepRange() if steps is None else StepRange.parse(steps),
            ranks=None if ranks is None else parse_ranks(ranks),
            layers=None if layers is None else parse_layers(layers),
            labels=tuple(map(LabelRule.parse, labels)),
            **{name: given.pop(name) for name in (*_STATED, *_EXPLAINED) if name in given},
        )
        options.check_use()
        return function(options=options, **given)

    strict = _option("--strict", heading="Running", is_flag=True, help="Refuse damaged traces instead of mending them.")
    return _apply(call, [*_selection(), *_statements(), *more, _jobs(), strict])


def _jobs() -> Callable[[Any], Any]:
    return _option(
        "--jobs",
        "-j",
        heading="Running",
        type=int,
        metavar="N",
        help="Files read at the same time; default one a core.",
    )


def file_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """How files are read where nothing is asked of the job, handed over as `options`."""

    @functools.wraps(function)
    def call(**given: Any) -> Any:
        return function(options=Options(jobs=given.pop("jobs")), **given)

    return _apply(call, [_jobs()])


def config_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """The file that the settings come from, handed over as `config`; None to search for it."""
    return _option(
        "--config",
        heading="Settings",
        metavar="FILE",
        callback=_config,
        help="Read settings from FILE; by default the nearest bubblescope.toml or pyproject.toml.",
    )(function)


def _config(_context: click.Context, _option: click.Parameter, value: str | None) -> Path | None:
    if value == "":
        raise UsageError("--config takes the name of a file, found an empty one")
    return None if value is None else Path(value)


def output_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Where the result goes and how it looks, handed over as `output`; `progress` tells whether to show it."""
    heading = "Output"
    formats = [
        _option("--json", "as_json", heading=heading, is_flag=True, help="The same as --format json."),
        _option(
            "--format",
            heading=heading,
            type=click.Choice(list(FORMATS)),
            help="Default: what the suffix of -o asks for, else table.",
        ),
    ]
    return _targeted(function, formats)


def target_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same where the result is always JSON."""
    return _targeted(function, [])


def _targeted(function: Callable[..., Any], formats: Sequence[Callable[[Any], Any]]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(**given: Any) -> Any:
        target, quiet = given.pop("output"), given.pop("quiet")
        form = _format(given.pop("format"), as_json=given.pop("as_json")) if formats else "json"
        output = Output(
            format=form,
            target=None if target in {None, "-"} else target,
            force=given.pop("force"),
            quiet=quiet,
        )
        output.check()
        return function(output=output, progress=not (given.pop("no_progress") or quiet), **given)

    heading = "Output"
    return _apply(
        call,
        [
            *formats,
            _option("--output", "-o", heading=heading, metavar="FILE", help="Write to FILE; - is stdout."),
            _option("--force", "-f", heading=heading, is_flag=True, help="Overwrite files that exist."),
            _option("--no-progress", heading="Running", is_flag=True, help="Do not tell how far reading is."),
            _option("--quiet", "-q", heading="Running", is_flag=True, help="Tell nothing but the result and errors."),
        ],
    )


def _format(name: str | None, *, as_json: bool) -> str | None:
    if as_json and name not in {None, "json"}:
        raise UsageError(f"--json and --format {name} ask for two formats at once")
    return "json" if as_json else name
