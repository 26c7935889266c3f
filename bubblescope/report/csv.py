"""The report as one long CSV table: `section,id,metric,value`.

A section is a part of the JSON report (`bubble`, `cause`, `stage`, `rank`, ...), the id says which of
them, the metric is the JSON key, and the value is written as in JSON: nanoseconds, fractions of 1,
nothing where it is unknown. A long table keeps its four columns when a later version measures more.
"""

from __future__ import annotations

import csv
import dataclasses
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bubblescope.model.report import Bubble, Imbalance, Quality, Rank, Report
from bubblescope.report.wording import visible

__all__ = ["HEADER", "Row", "Value", "fields", "render", "table"]

HEADER = ("section", "id", "metric", "value")

Value = str | int | float | bool | None
"""What a cell holds."""

Row = tuple[str, str, str, Value]
"""Section, id, metric and value."""


def render(report: Report) -> bytes:
    """The table, with a header line and line feeds."""
    return table(HEADER, _rows(report))


def table(header: Sequence[str], rows: Iterable[Iterable[Value]]) -> bytes:
    """Rows of values below their header, with line feeds."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(_written, row) for row in rows)
    return out.getvalue().encode()


def _rows(report: Report) -> Iterator[Row]:
    yield from _quality(report.quality)
    yield from fields("schedule", "", report.schedule)
    yield from fields("layout", "", report.layout)
    yield from _bubble(report.bubble)
    if report.throughput is not None:
        yield from fields("throughput", "", report.throughput)
    for line in report.pipelines:
        yield from fields("pipeline", str(line.pipeline), line, skip="pipeline")
    for stage in report.stages:
        yield from fields("stage", str(stage.stage), stage, skip="stage")
    for rank in report.ranks:
        yield from _rank(rank)
    for call in report.communication:
        yield from fields("communication", f"{call.group}/{call.op}", call)
    for link in report.links:
        yield from fields("link", f"{link.source}>{link.target}/{link.direction or ''}", link)
    yield from _imbalance(report.imbalance)
    for step in report.steps:
        yield from fields("step", str(step.step), step, skip="step")
        yield from _points("step", str(step.step), step.points or {})
    for finding in report.findings:
        yield from fields("finding", finding.code, finding, skip="code")
    for metric in report.metrics:
        yield from (row for row in fields("metric", metric.name, metric, skip="metric") if row[2] not in {"by", "of"})


def _quality(quality: Quality) -> Iterator[Row]:
    """The verdicts, what the numbers rest on, of the job, which has no id, and of each rank; and what was found.

    Several findings of one code are numbered from the second on.
    """
    yield "quality", "", "verdict", quality.verdict
    for number in quality.numbers:
        yield from fields("number", number.number, number, skip="number")
    if quality.coverage is not None:
        yield from fields("coverage", "", quality.coverage)
        for rank in quality.coverage.ranks:
            yield from fields("coverage", str(rank.rank), rank, skip="rank")
    said: Counter[str] = Counter()
    for finding in quality.findings:
        said[finding.code] += 1
        again = f"#{said[finding.code]}" if said[finding.code] > 1 else ""
        yield from fields("quality", finding.code + again, finding, skip="code")


def _bubble(bubble: Bubble) -> Iterator[Row]:
    yield from fields("bubble", "", bubble)
    for cause in bubble.causes:
        yield from fields("cause", cause.cause, cause, skip="cause")
        for part in cause.parts:
            yield from fields("cause", f"{cause.cause}.{part.part}", part, skip="part")
    for size in bubble.by_microbatches:
        yield from fields("size", str(size.microbatches), size, skip="microbatches")
    for row in bubble.by_position:
        yield "stages", "+".join(map(str, row.stages)), "bubble", row.bubble
        yield from _points("stages", "+".join(map(str, row.stages)), row.points)
    for phase in bubble.by_phase:
        yield "phase", phase.phase, "bubble", phase.bubble
        yield from _points("phase", phase.phase, phase.points)


def _imbalance(imbalance: Imbalance) -> Iterator[Row]:
    yield from fields("imbalance", "", imbalance)
    for load in imbalance.stages:
        yield from fields("load", str(load.stage), load, skip="stage")
    for straggler in imbalance.stragglers:
        yield from fields("straggler", str(straggler.rank), straggler, skip="rank")
    for name, part in (("data_length", imbalance.data_length), ("pauses", imbalance.pauses)):
        if part is not None:
            yield from fields(name, "", part)


def _points(section: str, key: str, points: Mapping[str, float]) -> Iterator[Row]:
    return ((section, key, f"{cause}_points", value) for cause, value in points.items())


def _rank(rank: Rank) -> Iterator[Row]:
    key = str(rank.rank)
    yield from fields("rank", key, rank, skip="rank")
    for _, _, metric, value in fields("rank", key, rank.outside):
        yield "rank", key, f"outside_{metric}", value


def fields(section: str, key: str, value: object, skip: str = "") -> Iterator[Row]:
    """The plain values of a part of the report; lists and parts of parts have rows of their own."""
    assert dataclasses.is_dataclass(value)
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if field.name != skip and (item is None or isinstance(item, str | int | float)):
            yield section, key, field.name, item


def _written(value: Value) -> str:
    """A value as it stands in a cell: as in JSON, nothing where it is unknown, and a text harmless."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else repr(value)


def _text(value: str) -> str:
    """A text that no spreadsheet takes for a formula."""
    return f"'{visible(value)}" if value.startswith(("=", "+", "-", "@", "\t", "\r")) else visible(value)
