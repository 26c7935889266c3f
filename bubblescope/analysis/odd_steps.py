"""A word on steps that are not all of one kind: evaluations, trainings with an evaluation inside, and other sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bubblescope.analysis.steps import StepUse
from bubblescope.model import writing as words
from bubblescope.model.trace import Finding

__all__ = ["odd_steps"]

MOST = 8
"""How many sizes are listed."""


def odd_steps(uses: Sequence[StepUse]) -> Finding | None:
    """What the steps of a run hold, where that is not all the same."""
    parts = [*_evaluations(uses), *_mixed(uses), *_sizes(uses)]
    return Finding("odd-steps", "info", "; ".join(parts)) if parts else None


def _evaluations(uses: Sequence[StepUse]) -> Iterator[str]:
    contents = [(use.number, use.content) for use in uses if use.content and use.content.kind == "evaluation"]
    told, untold = ([n for n, content in contents if bool(content.microbatches) == held] for held in (True, False))
    if told:
        what = (
            "is an evaluation (forwards only) and is" if len(told) == 1 else "are evaluations (forwards only) and are"
        )
        yield f"{words.steps_named(told)} {what} not measured"
    if untold:
        what = "it is taken for an evaluation" if len(untold) == 1 else "they are taken for evaluations"
        yield f"no action could be read in {words.steps_named(untold)}; as other steps train, {what}"


def _mixed(uses: Sequence[StepUse]) -> Iterator[str]:
    found = [(use, use.content.extra) for use in uses if use.content and use.content.extra]
    if found:
        numbers, extra = [use.number for use, _ in found], sorted({count for _, count in found})
        one, used = len(found) == 1, any(use.used for use, _ in found)
        more = f"{' or '.join(map(str, extra))} more forward{'' if extra == [1] else 's'} than backwards"
        measured = "the bubble is that of the training alone, while step time and speed include the rest"
        fate = measured if used else f"{'it is' if one else 'they are'} left out"
        yield f"{words.steps_named(numbers)} {'has' if one else 'have'} {more}, probably an evaluation; {fate}"


def _sizes(uses: Sequence[StepUse]) -> Iterator[str]:
    of: dict[int, list[int]] = {}
    for use in uses:
        if use.complete and use.content and use.content.kind != "evaluation":
            of.setdefault(use.content.microbatches, []).append(use.number)
    if len(of) > 1:
        usual = {use.content.microbatches for use in uses if use.used and use.content}
        measured = "".join(f"; the report measures those of {size}" for size in usual)
        yield f"steps differ in size: {words.sizes(of, MOST)}{measured}"
