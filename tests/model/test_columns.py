"""Blocks of columns: what they accept, what they refuse, how rows are taken and put together."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.model.columns import Bools, Columns, Ints, Times, column, pairs


@dataclass(frozen=True, eq=False)
class Rows(Columns):
    """A block of three widths."""

    time: Times = column(np.int64)
    kind: Ints = column(np.int8)
    seen: Bools = column(np.bool_)


def cells(rows: Rows) -> list[tuple[int, int, bool]]:
    """The rows of a block as tuples."""
    return list(zip(rows.time.tolist(), rows.kind.tolist(), rows.seen.tolist(), strict=True))


ROWS = Rows([30, 10, 20], [3, 1, 2], [True, False, True])


@pytest.mark.parametrize(
    "time",
    [[1, 2], (1, 2), np.array([1, 2], np.int32), np.array([1.0, 2.0]), np.array([1, 9, 2, 9])[::2], range(1, 3)],
    ids=["list", "tuple", "narrower", "floats", "strided", "range"],
)
def test_any_array_becomes_the_declared_type(time):
    """Whatever numpy can read is stored in the declared width, in one piece of memory."""
    rows = Rows(time, (1, 2), (0, 1))
    assert cells(rows) == [(1, 1, False), (2, 2, True)]
    assert [c.dtype for c in (rows.time, rows.kind, rows.seen)] == [np.int64, np.int8, np.bool_]
    assert rows.time.flags.c_contiguous


def test_what_does_not_fit_is_refused():
    """A number too wide for its column raises rather than wraps."""
    with pytest.raises(OverflowError):
        Rows([1], [300], [True])


def test_unequal_lengths_are_refused():
    """Columns of different length raise an error that names the block and every length."""
    with pytest.raises(ValueError, match=r"columns of Rows differ in length: \{'time': 2, 'kind': 1, 'seen': 0\}"):
        Rows([1, 2], [1], [])


def test_blocks_are_frozen():
    """A column cannot be exchanged in place."""
    with pytest.raises(FrozenInstanceError):
        ROWS.time = np.array([1])  # type: ignore[misc]


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (np.array([False, True, True]), [10, 20]),
        (np.array([2, 0, 0]), [20, 30, 30]),
        (np.argsort(ROWS.time), [10, 20, 30]),
        (slice(1, None), [10, 20]),
        (np.zeros(3, bool), []),
        ([], []),
    ],
    ids=["mask", "repeats", "sorted", "slice", "none", "no index"],
)
def test_take(index, expected):
    """Taking rows keeps every column in step, in the order of the index."""
    if isinstance(index, list):
        index = np.array(index, np.int64)
    taken = ROWS.take(index)
    assert cells(taken) == [row for time in expected for row in cells(ROWS) if row[0] == time]
    assert len(taken) == len(expected)


def test_replace():
    """Replacing a column makes a new block, leaves the old one, and checks lengths again."""
    assert cells(ROWS.replace(kind=[7, 8, 9])) == [(30, 7, True), (10, 8, False), (20, 9, True)]
    assert ROWS.kind.tolist() == [3, 1, 2]
    with pytest.raises(ValueError, match="differ in length"):
        ROWS.replace(kind=[7])


def test_empty():
    """A block of no rows still has its types."""
    rows = Rows.empty()
    assert len(rows) == 0
    assert [c.dtype for c in (rows.time, rows.kind, rows.seen)] == [np.int64, np.int8, np.bool_]


@settings(deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-128, 127), st.booleans()))))
def test_concat(blocks):
    """The rows of all blocks come one after the other, unchanged, whether many, empty, or none."""
    parts = [Rows([r[0] for r in b], [r[1] for r in b], [r[2] for r in b]) for b in blocks]
    joined = Rows.concat(iter(parts))
    assert cells(joined) == [row for block in blocks for row in block]
    assert [c.dtype for c in (joined.time, joined.kind, joined.seen)] == [np.int64, np.int8, np.bool_]


def test_blocks_cross_a_process_border():
    """A block comes back from pickle with the same rows and types."""
    back = pickle.loads(pickle.dumps(ROWS))  # noqa: S301 - our own bytes
    assert cells(back) == cells(ROWS)
    assert back.kind.dtype == np.int8


NUMBERS = st.integers(-3, 3)


@given(rows=st.lists(st.tuples(NUMBERS, NUMBERS)))
def test_different_pairs(rows):
    """Each pair comes once, in order, with how many rows have it, and every row knows its pair."""
    found = pairs(*np.array(rows, np.int64).reshape(-1, 2).T)
    kinds = list(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert kinds == sorted(set(rows))
    assert found.count.tolist() == [rows.count(kind) for kind in kinds]
    assert [kinds[i] for i in found.index] == rows
