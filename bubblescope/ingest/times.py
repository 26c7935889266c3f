"""Microseconds as a trace writes them, to int64 nanoseconds, without losing one.

A double holds microseconds with three decimals exactly below 2**43 of them, which is every time
counted from `baseTimeNanoseconds`; and whole microseconds exactly up to 2**53. Only fractional
times since the epoch need their decimal text.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from itertools import compress

import numpy as np

from bubblescope.model.columns import Times

__all__ = ["INVALID", "InexactError", "from_decimals", "from_numbers"]

INVALID = np.iinfo(np.int64).min
"""Stands for a time that is missing, not a number, or beyond what the profilers can mean."""

_FRACTIONS = 2.0**43  # above it, a double of microseconds cannot hold three decimals
_LARGEST = 2.0**52  # microseconds; the year 2112, and the sum of two still fits as nanoseconds


class InexactError(Exception):
    """These times must be read from their text."""


def from_numbers(micros: Sequence[float]) -> Times:
    """Nanoseconds of numbers as decoded; raises InexactError where that would not be exact."""
    try:
        values = np.fromiter(micros, np.float64, len(micros))
    except OverflowError as error:  # an integer of hundreds of digits
        raise InexactError from error
    sizes = np.abs(values)
    large = sizes >= _FRACTIONS
    if large.any() and float in set(map(type, compress(micros, large & (sizes <= _LARGEST)))):
        raise InexactError
    valid = sizes <= _LARGEST  # False for NaN
    values[~valid] = 0.0
    whole = np.floor(values)
    # The fraction apart: `values * 1000` rounds twice, which is off by one between 2**42 and 2**52 / 1000.
    nanos = whole.astype(np.int64) * 1000 + np.rint((values - whole) * 1000.0).astype(np.int64)
    nanos[~valid] = INVALID
    return nanos


def from_decimals(micros: Sequence[Decimal]) -> Times:
    """Nanoseconds of decimal numbers, to the nearest."""
    return np.array([_nanos(value) for value in micros], dtype=np.int64)


def _nanos(value: Decimal) -> int:
    if not value.is_finite() or value.adjusted() > 15 or abs(value) > _LARGEST:
        return INVALID
    if value.adjusted() < -4:  # also keeps absurd exponents away from the arithmetic below
        return 0
    return int(value.scaleb(3).to_integral_value(ROUND_HALF_EVEN))
