"""Schedules explained: the page of each, and the table of all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from bubblescope.model.actions import Kind
from bubblescope.report.facts import Fact
from bubblescope.report.markdown import escape
from bubblescope.report.pages import Page
from bubblescope.report.table import Table
from bubblescope.report.trials import NO_FORM, lanes, legend, number, shape_text
from bubblescope.report.wording import percent
from bubblescope.schedules.family import Family, Shape
from bubblescope.schedules.registry import FAMILIES, find
from bubblescope.schedules.times import Times
from bubblescope.schedules.trial import Trial, run

__all__ = ["aliases", "markdown_table", "names", "page"]

SYMBOLS = (
    "p ranks, m micro-batches, v chunks a rank, s slices of a micro-batch, g micro-batches of a group, rank r counted "
    "from 0. F, B, I and W are the times of a micro-batch on a rank, all chunks together: forward, full backward, and "
    "the parts of that: input gradient and weight gradient."
)


def names() -> dict[str, str]:
    """Every schedule, and what it is."""
    return {family.name: family.summary for family in FAMILIES}


def aliases() -> dict[str, str]:
    """Other names, and the one that is used here."""
    return {alias: family.name for family in FAMILIES for alias in family.aliases}


def page(name: str) -> Page:
    """All there is to know of a schedule."""
    family = find(name)
    example = _example(family)
    return Page(
        headline=f"{family.name}: {family.summary}.",
        facts=tuple(_facts(family, example)),
        tables=(_formulas(family, example),),
        caption=f"{'Example, the first step by itself' if family.asynchronous else 'Example'}: {shape_text(example)}",
        lanes=lanes(example),
        legend=legend(example),
        notes=(SYMBOLS,),
    )


def markdown_table() -> str:
    """Every schedule with its formulas, memory and source, as docs/schedules.md shows them."""
    rows = [
        (
            _code(f.name),
            _code(*f.aliases),
            _code(_idle(f)),
            _code(f.memory.text),
            _code(f.memory.weights_text),
            escape(f.source),
        )
        for f in FAMILIES
    ]
    heading = ("schedule", "other names", "idle time of a rank", "activations", "weights", "source")
    lines = [heading, ("---",) * len(heading), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _code(*texts: str) -> str:
    """Texts in Markdown's code, in a cell of a table."""
    return ", ".join(f"`{text.replace('|', chr(92) + '|')}`" for text in texts)


def _idle(family: Family) -> str:
    return NO_FORM if family.idle is None else family.idle.text


def _facts(family: Family, example: Trial) -> Iterator[Fact]:
    if family.aliases:
        yield "Also called", ", ".join(family.aliases)
    yield "Order", f"on rank r: {family.rule}"
    stages = "  ".join(", ".join(map(str, held)) for held in example.placement)
    yield "Stages", f"of rank 0 to {example.shape.p - 1}: {stages}"
    yield "Shapes", "; ".join([f"v = {family.chunks} where none is stated", *_limits(family)])
    yield "Activations", f"micro-batches that rank r holds at once: {family.memory.text}"
    yield "Weights", f"copies that rank r keeps: {family.memory.weights_text}"
    if family.asynchronous:
        yield "Window", "what one more step costs, as a step begins before the one before it has drained"
    yield "Source", family.source


def _formulas(family: Family, example: Trial) -> Table:
    closed, simulated = example.closed, example.simulation
    work = "m F" if family.kinds == {Kind.F} else "m (F+B)"
    span = "as D1" if family.idle else NO_FORM
    if family.span is not None:
        span = f"idle / (idle + {work}), idle = {family.span.text}"
    rows = (
        ("D4", "idle time a rank", _idle(family), number(closed.idle), number(simulated.idle)),
        ("D1", "share of the window", f"idle / (idle + {work})", percent(closed.bubble), percent(simulated.bubble)),
        ("D2", "ratio to ideal", f"idle / ({work})", percent(closed.ratio_to_ideal), percent(simulated.ratio_to_ideal)),
        ("D3", "share of the span", span, percent(closed.span), percent(simulated.span)),
    )
    return Table(
        title="Bubble",
        denominator="stages equal, transfers free; the example has F 1, B 2 = I 1 + W 1",
        align="lllrr",
        headers=("", "", "formula", "example", "simulated"),
        rows=rows,
    )


def _example(family: Family) -> Trial:
    """The schedule with 4 ranks and 8 micro-batches, or what is possible near that."""
    shapes = (
        Shape(p, m, family.chunks, slices)
        for p, m, slices in product((4, 2, 3, 6, 8), (8, 12, 16, 4), (1, 2))
        if family.problem(Shape(p, m, family.chunks, slices)) is None
    )
    return run(family, next(shapes), Times())


def _limits(family: Family) -> list[str]:
    """Why shapes are impossible, by trying many, without what was found in each."""
    tried = (
        Shape(p, m, v, slices, group)
        for p, m, v in product((4, 3), (8, 6, 5, 2), (1, 2, 3))
        for slices in ((1, 2) if family.cuts else (1,))
        for group in ((None, 1) if family.grouped else (None,))
    )
    problems = filter(None, map(family.problem, tried))
    return list(dict.fromkeys(problem.split(", found")[0].split("; found")[0] for problem in problems))
