"""What files are as one long CSV table, `section,id,metric,value`, as the report's.

Sections are `file` (the id is its path), `rank`, `step`, `lane` and `group` (a rank, or rank and number or name) and
`job`; metrics are keys of the JSON.
"""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.model.info import Info, RankInfo
from bubblescope.report.csv import HEADER, Row, fields, table

__all__ = ["render"]


def render(found: Info) -> bytes:
    """The table, with a header line and line feeds."""
    return table(HEADER, _rows(found))


def _rows(found: Info) -> Iterator[Row]:
    for file in found.files:
        yield from fields("file", file.path, file, skip="path")
        for place, rank in enumerate(file.ranks):
            yield from _rank(f"{file.path}#{place}" if rank.rank is None else str(rank.rank), rank)
    yield from fields("job", "", found.job)


def _rank(key: str, rank: RankInfo) -> Iterator[Row]:
    yield from fields("rank", key, rank, skip="rank")
    yield from fields("rank", key, rank.counts)
    yield from fields("rank", key, rank.actions)
    for step in rank.steps:
        yield from fields("step", f"{key}/{step.step}", step, skip="step")
    for lane in rank.lanes:
        yield from fields("lane", f"{key}/{lane.lane}", lane, skip="lane")
    for group in rank.groups:
        yield from fields("group", f"{key}/{group.name}", group, skip="name")
    for need in rank.needs:
        yield from fields("need", f"{key}/{need.code}", need, skip="code")
