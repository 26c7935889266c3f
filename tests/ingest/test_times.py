"""Microseconds in a file become exact nanoseconds, in each of the three ways in which releases wrote them."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bubblescope.ingest.chrome import read
from bubblescope.ingest.times import INVALID, InexactError, from_decimals, from_numbers

BASE = 1_759_300_074_000_000_000


def document(written: str, dur: str, head: str = "") -> str:
    """A trace of one operator whose times are written as given."""
    event = f'{{"ph": "X", "cat": "cpu_op", "name": "x", "pid": 1, "tid": 1, "ts": {written}, "dur": {dur}}}'
    return f'{{"schemaVersion": 1, {head} "traceEvents": [{event}]}}'


def micros(nanos: int) -> str:
    """Nanoseconds as the profilers write them: microseconds with three decimals."""
    return f"{nanos // 1000}.{nanos % 1000:03d}"


@settings(deadline=None)
@given(st.integers(0, 2**43 * 1000 - 1))
@example(4_398_046_511_104_001)  # where the double nearest to the text, times 1000, rounds to the wrong side
@example(4_400_000_000_000_501)
@example(4_503_599_627_369_999)
def test_fractions_below_2_to_the_43(nanos):
    """Every nanosecond that a base of Kineto leaves over survives the way through a double."""
    assert from_numbers([float(micros(nanos))]).tolist() == [nanos]
    assert from_numbers([float("-" + micros(nanos))]).tolist() == [-nanos]


@settings(deadline=None)
@given(st.lists(st.integers(-(2**52), 2**52), max_size=5))
def test_whole_microseconds(values):
    """Integers need no decimals, whatever their size."""
    assert from_numbers(values).tolist() == [value * 1000 for value in values]


@settings(deadline=None)
@given(st.integers(2**43 * 1000, 2**52 * 1000))
def test_fractions_since_the_epoch_are_read_from_their_text(nanos):
    """A float that cannot hold its nanoseconds is refused, even if it looks whole; the text is exact."""
    with pytest.raises(InexactError):
        from_numbers([1, 2.5, float(micros(nanos))])
    assert from_decimals([Decimal(micros(nanos))]).tolist() == [nanos]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e16, -1e300, 2**53, -(2**60)])
def test_times_beyond_the_calendar(value):
    """What is no time is marked, never wrapped around."""
    assert from_numbers([value, 1]).tolist() == [INVALID, 1000]
    assert from_decimals([Decimal(value), Decimal(1)]).tolist() == [INVALID, 1000]


@pytest.mark.parametrize("value", ["1e999999", "-1e999999", "1e-999999", "sNaN", "0e999999"])
def test_absurd_exponents_cost_nothing(value):
    """No number in a file can make the program compute its digits."""
    assert from_decimals([Decimal(value)]).tolist() in ([INVALID], [0])


def test_integers_of_hundreds_of_digits():
    """An integer that no double can hold goes the exact way."""
    with pytest.raises(InexactError):
        from_numbers([10**400])


@settings(deadline=None)
@given(st.integers(0, 7_889_238 * 10**9), st.integers(0, 10**12))
def test_era_of_the_base(tmp_path_factory, nanos, length):
    """Times relative to a base, fractional: base plus time, to the nanosecond."""
    path = tmp_path_factory.getbasetemp() / "base.json"
    path.write_text(document(micros(nanos), micros(length), f'"baseTimeNanoseconds": {BASE},'))
    trace = read(path)
    assert trace.absolute
    assert (trace.ops.start.tolist(), trace.ops.end.tolist()) == ([BASE + nanos], [BASE + nanos + length])


@settings(deadline=None)
@given(st.integers(1_000_000_000_000_001, 2**51), st.integers(0, 10**9))
def test_era_of_whole_microseconds(tmp_path_factory, when, length):
    """Integer microseconds since the epoch, without a base."""
    path = tmp_path_factory.getbasetemp() / "whole.json"
    path.write_text(document(str(when), str(length)))
    trace = read(path)
    assert trace.absolute
    assert (trace.ops.start.tolist(), trace.ops.end.tolist()) == ([when * 1000], [(when + length) * 1000])


@settings(deadline=None)
@given(st.integers(10**18 + 1, 2**61), st.integers(0, 10**12), st.sampled_from(["{}", '"{}"']))
def test_era_of_fractions_since_the_epoch(tmp_path_factory, nanos, length, quoted):
    """Fractional microseconds since the epoch, as number or as text, without a base."""
    path = tmp_path_factory.getbasetemp() / "fraction.json"
    path.write_text(document(quoted.format(micros(nanos)), micros(length)))
    trace = read(path)
    assert trace.absolute
    assert (trace.ops.start.tolist(), trace.ops.end.tolist()) == ([nanos], [nanos + length])


def test_unknown_origin(tmp_path):
    """Small times without a base count from nowhere, and say so."""
    path = tmp_path / "unknown.json"
    path.write_text(document("12.5", "1"))
    assert (read(path).absolute, read(path).ops.start.tolist()) == (False, [12500])


@pytest.mark.parametrize("base", ['"x"', "-5", "1.5", "null", str(2**63), "[]"])
def test_a_base_that_is_none(tmp_path, base):
    """A base that is no time is no base."""
    path = tmp_path / "base.json"
    path.write_text(document("12.5", "1", f'"baseTimeNanoseconds": {base},'))
    assert not read(path).absolute


def test_a_base_in_text(tmp_path):
    """A base may be written as text."""
    path = tmp_path / "base.json"
    path.write_text(document("12.5", "1", f'"baseTimeNanoseconds": "{BASE}",'))
    assert read(path).ops.start.tolist() == [BASE + 12500]


def test_one_text_among_numbers(tmp_path):
    """One window may hold numbers and texts, and the windows after it too."""
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": str(n),
            "ts": f"17041615114203{n:02d}.491" if n == 30 else 1704161511420300 + n,
        }
        for n in range(60)
    ]
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps(events))
    starts = [1704161511420300000 + n * 1000 + (491 if n == 30 else 0) for n in range(60)]
    assert read(path, window=400).ops.start.tolist() == read(path).ops.start.tolist() == starts
