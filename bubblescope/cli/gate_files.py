"""The files that a gate leaves for those who wait for it: test reports, metrics, histories, and GitHub's own places."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import click

from bubblescope.cli import console
from bubblescope.cli.options import GroupedOption
from bubblescope.cli.output import Output, write_file
from bubblescope.errors import UsageError

if TYPE_CHECKING:
    from bubblescope.model.gate import Gate

__all__ = ["SUMMARY_LIMIT", "GateFiles", "gate_files"]

SUMMARY_LIMIT = 1 << 20
"""Bytes of a step's summary, beyond which GitHub drops all of it (docs.github.com, workflow commands)."""

_HELP = {
    "report": "The whole result as JSON, beside the page that is printed.",
    "junit": "JUnit XML, one test case a rule: for GitLab, Jenkins and others.",
    "markdown": "The verdict and all rules as Markdown, for a comment.",
    "openmetrics": "The numbers as OpenMetrics, for GitLab's metrics reports.",
    "bencher": "The numbers in Bencher's format, for a history.",
    "benchmark": "The numbers for github-action-benchmark, for a history.",
}

_RENDERERS: Mapping[str, tuple[str, str, bool]] = {
    "report": ("json", "render", False),
    "junit": ("junit", "render", False),
    "markdown": ("gates", "markdown", False),
    "openmetrics": ("openmetrics", "render", True),
    "bencher": ("histories", "bencher", True),
    "benchmark": ("histories", "benchmark", True),
}
"""Module of `bubblescope.report`, function, and whether it takes the run alone."""


@dataclass(frozen=True, slots=True)
class GateFiles:
    """Where each kind of file goes, by its name in `_RENDERERS`, and whether to write where GitHub looks."""

    targets: Mapping[str, str]
    github: bool

    def check(self, output: Output, inputs: Sequence[str] = ()) -> None:
        """Refuse what cannot be written before the work is done.

        Args:
            output: where the page goes, and whether to overwrite.
            inputs: files that are read, which no output may replace.
        """
        targets = [*self.targets.values(), *([] if output.target is None else [output.target])]
        files = [target for target in targets if not _is_device(target)]  # these take whatever comes
        places = [_place(target) for target in files]
        twice = next((target for target, place in zip(files, places, strict=True) if places.count(place) > 1), None)
        if twice is not None:
            raise UsageError(f"{twice} is to hold two things at once", hint="give each a file of its own")
        read = next((target for target in targets if any(_is_of(target, name) for name in inputs)), None)
        if read is not None:
            raise UsageError(f"{read} is read by this gate, and cannot be written by it")
        for target in self.targets.values():
            if target == "-":
                raise UsageError("only -o can be stdout; the others take the name of a file")
            Output("json", target, force=output.force).check()

    def write(self, gate: Gate, output: Output) -> None:
        """Write all of them."""
        for name, target in self.targets.items():
            write_file(target, _render(name, gate))
            if not output.quiet:
                console.note(f"Wrote {target}")
        if self.github:
            _tell_github(gate)

    def tell_trouble(self, message: str) -> None:
        """Tell GitHub what kept the gate from a verdict."""
        if self.github:
            from bubblescope.report import github  # noqa: PLC0415  rich is not for --help

            console.instruct(github.trouble(message))


def _place(target: str) -> str:
    """The file that is meant, whatever it is called."""
    try:
        return str(Path(target).resolve())
    except (OSError, ValueError, RuntimeError):
        return target


def _is_device(target: str) -> bool:
    path = Path(target)
    return path.exists() and not path.is_file() and not path.is_dir()


def _is_of(target: str, name: str) -> bool:
    """Whether a file is what an input names, or may be one of the traces in the folder or the glob that it names."""
    if _place(target) == _place(name):
        return True
    if not Path(target).is_file() or not target.endswith((".json", ".gz", ".sqlite", ".csv", ".parquet")):
        return False
    inside = Path(name).is_dir() and Path(target).resolve().is_relative_to(Path(name).resolve())
    return inside or fnmatch(_place(target), str(Path(name).absolute()))


def _render(name: str, gate: Gate) -> bytes:
    module, function, of_run = _RENDERERS[name]
    render = cast("Callable[[Any], bytes]", getattr(import_module(f"bubblescope.report.{module}"), function))
    return render(gate.run if of_run else gate)


def _tell_github(gate: Gate) -> None:
    """One annotation a rule on stderr, where the runner reads them as well, and the summary of the step."""
    from bubblescope.report import github  # noqa: PLC0415  rich is not for --help

    for line in github.annotations(gate):
        console.instruct(line)
    target = os.environ.get("GITHUB_STEP_SUMMARY")
    if target:
        _append(target, gate, github.summary)


def _append(target: str, gate: Gate, summary: Callable[[Gate, int], bytes]) -> None:
    """Add to the summary of the step, as far as there is room; a verdict must not be lost for want of a summary."""
    try:
        size = Path(target).stat().st_size if Path(target).exists() else 0
        lead = b"\n" if size else b""  # what stands there may lack the end of its line
        with Path(target).open("ab") as file:
            file.write(lead + summary(gate, SUMMARY_LIMIT - size - len(lead)))
    except (OSError, ValueError) as error:
        console.note(f"bubblescope: the summary of the step could not be written: {error}")


def gate_files(function: Callable[..., Any]) -> Callable[..., Any]:
    """The files, handed over as `files`."""

    @wraps(function)
    def call(**given: Any) -> Any:
        targets = {name: target for name in _RENDERERS if (target := given.pop(name)) is not None}
        return function(files=GateFiles(targets, _on_github(given.pop("github"))), **given)

    option = partial(click.option, cls=GroupedOption, heading="Files for CI")
    github = "Write GitHub's summary and annotations; default: where GITHUB_ACTIONS is set."
    wrapped = option("--github", type=click.Choice(["auto", "always", "never"]), default="auto", help=github)(call)
    for name in reversed(tuple(_RENDERERS)):
        wrapped = option(f"--{name}", metavar="FILE", help=_HELP[name])(wrapped)
    return wrapped


def _on_github(when: Literal["auto", "always", "never"]) -> bool:
    return when == "always" or (when == "auto" and os.environ.get("GITHUB_ACTIONS") == "true")
