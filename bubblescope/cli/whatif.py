"""`bubblescope whatif`: what a run would gain from a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import click

from bubblescope.cli import pages
from bubblescope.cli.console import Progress
from bubblescope.cli.options import GroupedCommand, GroupedOption, output_options, run_options, trace_arguments
from bubblescope.cli.output import Output
from bubblescope.model.changes import Changes
from bubblescope.model.options import Options

__all__ = ["Question", "command"]


@dataclass(frozen=True, slots=True)
class Question:
    """What to change, each change by itself, and whether to forecast where the replay misses the run."""

    changes: tuple[Changes, ...]
    anyway: bool


def _question_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What is asked, handed over as `question`."""

    @wraps(function)
    def call(**given: Any) -> Any:
        question = Question(tuple(map(Changes.parse, given.pop("tried"))), given.pop("anyway"))
        return function(question=question, **given)

    option = partial(click.option, cls=GroupedOption, heading="What to change")
    tried = "One forecast: what is joined by commas is changed together. Repeatable. Default: the usual questions."
    anyway = option("--anyway", is_flag=True, help="Forecast also where the replay misses the run by more than 5%.")
    return option("--try", "tried", metavar="CHANGES", multiple=True, help=tried)(anyway(call))


@click.command("whatif", cls=GroupedCommand)
@trace_arguments
@_question_options
@run_options
@output_options
def command(*, traces: tuple[str, ...], question: Question, options: Options, output: Output, progress: bool) -> None:
    """Forecast what a training run would gain from a change.

    The measured run is replayed: first as it was, which shows how far the replay can be trusted,
    then with something changed. A TRACE is a file, a directory, a glob, or - for stdin; give those
    of all ranks.

    \b
    Examples:
      bubblescope whatif traces/
      bubblescope whatif traces/ --try schedule=zb-h1 --try m=16
      bubblescope whatif traces/ --try "schedule=interleaved-1f1b,v=2" --json -o whatif.json

    \b
    CHANGES are any of these, with commas between:
      schedule=NAME      another schedule
      m=N                micro-batches a step, as large as they were: other data a step
      v=N                stages that a rank holds
      tp=N               tensor-parallel degree, on the same GPUs
      microbatch=K       micro-batches K times as large (2, 1/2), for the same data a step
      layers=best        layers moved, to the best split; or to yours: layers=8+8+8+7
      p2p=K              transfers take K times as long (0.5, 1/2, free)
      overlap            receives are posted ahead, and no send holds its rank
      without=TROUBLE    one of imbalance, straggler, jitter, data, pauses, p2p, host, dp;
                         several with + between
      even               every action as long as the mean of its kind
      recompute=on|off   backwards run their forwards again, or no longer
    """  # noqa: D301  \b is click's mark for lines that must stay as they are
    from bubblescope.engine import whatif  # noqa: PLC0415  numpy and pandas are not for --help

    with Progress(wanted=progress) as tell:
        found = whatif(traces, question.changes, options, tell, anyway=question.anyway)
    from bubblescope.report import forecast_csv, forecasts, json  # noqa: PLC0415  nor are rich and orjson

    usual = not question.changes
    result = pages.Result(
        page=lambda: forecasts.page(found, usual=usual),
        json=lambda: json.render(found),
        csv=lambda: forecast_csv.render(found),
    )
    pages.write(output, result)
