"""The report as words: what the terminal and a pull request show, before anyone lays it out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bubblescope.model.report import Report
from bubblescope.report import wording as words
from bubblescope.report.facts import Fact, facts, findings, warnings
from bubblescope.report.table import Table
from bubblescope.report.tables import tables
from bubblescope.report.verdict import verdict

__all__ = ["Summary", "summarise"]


@dataclass(frozen=True, slots=True)
class Summary:
    """Every string of the summary, in the order in which it is read."""

    verdict: str
    facts: tuple[Fact, ...]
    tables: tuple[Table, ...]
    findings: tuple[str, ...]
    warnings: tuple[str, ...]

    def map(self, change: Callable[[str], str]) -> Summary:
        """The same summary with every string changed, as an output's alphabet needs it."""
        return Summary(
            verdict=change(self.verdict),
            facts=tuple((change(name), change(text)) for name, text in self.facts),
            tables=tuple(table.map(change) for table in self.tables),
            findings=tuple(map(change, self.findings)),
            warnings=tuple(map(change, self.warnings)),
        )


def summarise(report: Report) -> Summary:
    """The summary of a report; control characters in names are already made visible."""
    return Summary(
        verdict=verdict(report),
        facts=facts(report),
        tables=tables(report),
        findings=findings(report),
        warnings=warnings(report),
    ).map(words.visible)
