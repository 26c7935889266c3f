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
    alone = [use for use in uses if use.content and use.content.kind == "evaluation"]
    for what, told in (("forwards only", True), ("no action that was told", False)):
        found = [use.number for use in alone if use.content and bool(use.content.microbatches) == told]
        if len(found) == 1:
            yield f"{_named(found)} holds {what}: an evaluation, which is not counted"
        elif found:
            yield f"{_named(found)} hold {what}: evaluations, which are not counted"


def _mixed(uses: Sequence[StepUse]) -> Iterator[str]:
    found = [(use, use.content.extra) for use in uses if use.content and use.content.extra]
    if found:
        numbers, extra = [use.number for use, _ in found], sorted({count for _, count in found})
        one, used = len(found) == 1, any(use.used for use, _ in found)
        more = f"{' or '.join(map(str, extra))} forward{'' if extra == [1] else 's'} more than backwards"
        fate = "and only the training is measured" if used else f"which {'is' if one else 'are'} left out"
        yield f"{_named(numbers)} hold{'s' * one} {more} (an evaluation?), {fate}"


def _sizes(uses: Sequence[StepUse]) -> Iterator[str]:
    of: dict[int, list[int]] = {}
    for use in uses:
        if use.complete and use.content and use.content.kind != "evaluation":
            of.setdefault(use.content.microbatches, []).append(use.number)
    if len(of) > 1:
        sizes = [f"of {size} ({words.rank_list(numbers)})" for size, numbers in sorted(of.items())[:MOST]]
        usual = {use.content.microbatches for use in uses if use.used and use.content}
        counts = "".join(f", of which those of {size} are counted" for size in usual)
        yield f"steps {words.enumerate_words(sizes)} micro-batches{counts}"


def _named(numbers: Sequence[int]) -> str:
    return f"step{'' if len(numbers) == 1 else 's'} {words.rank_list(numbers)}"
