"""What to know before believing numbers: whether the data carry them, and what is wrong with the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bubblescope.model.report import Quality
from bubblescope.model.trace import Finding

__all__ = ["lines", "remarks", "state", "warnings"]

_MOST = 5


def state(quality: Quality, *, trusted: bool) -> str:
    """`unusable` or `degraded` where the data do not carry the numbers, else empty.

    Args:
        quality: verdict and findings of a report.
        trusted: whether its bubble stands; single findings may leave it untouched.
    """
    if quality.verdict == "unusable" or (quality.verdict == "degraded" and not trusted):
        return quality.verdict
    return ""


def warnings(quality: Quality) -> tuple[str, ...]:
    """What is wrong with the data, one line a kind of trouble, the worst first."""
    return lines(quality.findings)


def lines(findings: Sequence[Finding]) -> tuple[str, ...]:
    """The same of any findings; those for information are left out."""
    return _told([finding for finding in findings if finding.severity != "info"])


def remarks(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Those for information, which speak against nothing."""
    return _told([finding for finding in findings if finding.severity == "info"])


def _told(findings: Sequence[Finding]) -> tuple[str, ...]:
    counts = Counter(finding.code for finding in findings)
    firsts = {finding.code: finding for finding in reversed(findings)}
    ordered = sorted(counts, key=lambda code: (firsts[code].severity != "error", list(counts).index(code)))
    told = [_warning(firsts[code], counts[code]) for code in ordered[:_MOST]]
    hidden = len(ordered) - len(told)
    return (*told, *([f"… and {hidden} more kinds, see --json"] if hidden else []))


def _warning(finding: Finding, count: int) -> str:
    where = "" if finding.input is None else f"{finding.input}: "
    more = "" if count == 1 else f" (and {count - 1} more like it)"
    return f"{finding.code}: {where}{finding.message}{more}"
