"""The findings about the data explained: what each means, what it does to the numbers, and what to do."""

from __future__ import annotations

from bubblescope.report.entries import Entry
from bubblescope.report.file_findings import OF_FILES
from bubblescope.report.finding_code import Code
from bubblescope.report.job_findings import OF_JOBS

__all__ = ["CODES", "FINDINGS"]

CODES = (*OF_FILES, *OF_JOBS)


def _entry(code: Code) -> Entry:
    shown = {"info": "", "warning": "the warnings; "}.get(code.severity, "the warnings, if it is one; ")
    return Entry(
        name=code.name,
        summary=code.summary,
        text=f"{code.meaning[0].upper()}{code.meaning[1:]}.",
        hidden=(f"quality.findings.{code.name}", f"findings.{code.name}"),
        severity=code.severity,
        effect=code.effect,
        remedy=code.remedy,
        where=f"{shown}quality.findings in JSON",
        see=code.see,
        section="codes-of-findings",
    )


FINDINGS = tuple(map(_entry, CODES))
