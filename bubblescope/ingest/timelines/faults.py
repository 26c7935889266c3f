"""Why a value of a table is no time and no id, in words, and what to write instead."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from bubblescope.ingest.timelines.columns import Column
from bubblescope.ingest.timelines.words import LIMITS, NOTHING

__all__ = ["Fault", "of_id", "of_time", "shown"]

_LONGEST = 40
_DECIMAL_COMMA = re.compile(r"[+-]?\d[\d .]*,\d+")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}([ ',_]\d{3})+(\.\d*)?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d.*|\d{1,2}[./]\d{1,2}[./]\d{2,4}.*|\d{1,2}:\d\d.*")
_WITH_UNIT = re.compile(r"[+-]?\d[\d.]*\s*[a-zA-Zµμ]{1,12}")

_REMEDIES = (
    (_MOMENT, "write numbers, for example microseconds since the start, in {field}_us"),
    (_DECIMAL_COMMA, "write a decimal point"),
    (_THOUSANDS, "write numbers without anything between their digits"),
    (_WITH_UNIT, "write the number alone, and its unit at the end of the column's name"),
)
"""What else a number may look like; the first that fits counts."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a row cannot be used; `remedy` is empty where the reason says enough."""

    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason


def shown(value: Any) -> str:
    """A value as it may be printed: quoted, without control characters, cut where it is long."""
    text = str(value)
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}..."


def of_time(column: Column, value: Any) -> Fault:
    """Why this value of a column is no time."""
    text = "" if value is None else str(value).strip()
    if text.lower() in NOTHING:
        return Fault(f"{column.name} is empty" if not text else f"{column.name} is {shown(value)}, which is no time")
    if not _is_number(text):
        return Fault(f"{column.name} is {shown(value)}, which is no number", _remedy(column, text))
    return Fault(f"{column.name} is {shown(value)}, which is beyond any time")


def of_id(column: Column, value: Any) -> Fault:
    """Why this value of a column is no id."""
    text = str(value).strip()
    if _is_number(text) and Decimal(text) > LIMITS[column.field]:
        return Fault(f"{column.name} is {shown(value)}, which is more than {LIMITS[column.field]}")
    return Fault(f"{column.name} is {shown(value)}, which is no whole number from 0")


def _is_number(text: str) -> bool:
    try:
        return not Decimal(text).is_nan()
    except ArithmeticError:
        return False


def _remedy(column: Column, text: str) -> str:
    return next((words.format(field=column.field) for like, words in _REMEDIES if like.fullmatch(text)), "")
