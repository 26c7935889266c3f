"""What is found alike on several ranks of a file, said once with the ranks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bubblescope.model.info import FileInfo, RankInfo
from bubblescope.model.trace import Finding
from bubblescope.report import wording as words

__all__ = ["of_file"]

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")

_Kind = tuple[str, str, str | None, str]
"""Code, severity, file, and the message without its numbers."""


def of_file(file: FileInfo) -> Iterator[Finding]:
    """The findings of a file's ranks in their order; those that differ in numbers at most are one, that of the first.

    The message of such a one says on which ranks it was found.
    """
    alike: dict[_Kind, list[tuple[RankInfo, Finding]]] = {}
    for rank in file.ranks:
        for finding in rank.findings:
            message = _NUMBER.sub("#", finding.message)
            alike.setdefault((finding.code, finding.severity, finding.input, message), []).append((rank, finding))
    for same in alike.values():
        first, messages = same[0][1], {finding.message for _, finding in same}
        numbers = "; the numbers are those of the first" if len(messages) > 1 else ""
        where = f" (on {_where([rank for rank, _ in same], len(file.ranks))}{numbers})" if len(same) > 1 else ""
        yield replace(first, message=f"{first.message}{where}")


def _where(ranks: Sequence[RankInfo], of: int) -> str:
    """`ranks 0-1`; how many of the file's, where not all have a number."""
    numbers = sorted({rank.rank for rank in ranks if rank.rank is not None})
    held = len({id(rank) for rank in ranks})
    return words.ranks_named(numbers) if len(numbers) == held else f"{held} of {words.counted(of, 'rank')}"
