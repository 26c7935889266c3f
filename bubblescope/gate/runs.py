"""Two runs, whatever holds them, compared."""

from __future__ import annotations

from bubblescope.engine import Progress
from bubblescope.gate.compare import compare as compare_numbers
from bubblescope.gate.take import Run, Source, check_use, taken
from bubblescope.model.comparison import Comparison
from bubblescope.model.options import Options

__all__ = ["compare"]


def compare(a: Source, b: Source, options: Options = Options(), progress: Progress | None = None) -> Comparison:  # noqa: B008 - frozen
    """What changed from one run to another.

    Args:
        a: the run before: traces as for `analyze`, a report or a baseline, as files or as what `analyze` returned.
        b: the run after, likewise.
        options: what the user states or asks of traces; reports and baselines are taken as they are.
        progress: told how many bytes of a run's traces are read, of one run after the other.

    Raises:
        InputError: a run is missing, unreadable or unusable.
        UndecidedError: the two have no number in common that can be compared.
        UsageError: an option asks for something that cannot be, or a whole run is named among other files.
    """
    before, after = taken(a, options, progress), taken(b, options, progress)
    check_use(options, before, after)
    names = (_name(before, "the run before"), _name(after, "the run after"))
    return compare_numbers(before.numbers, after.numbers, names)


def _name(run: Run, unnamed: str) -> str:
    """What its files are called; of many the first, and how many more there are."""
    if len(run.names) > 1:
        return f"{run.names[0]} and {len(run.names) - 1} more"
    return run.names[0] if run.names else unnamed
