"""On a stream a kernel has ended when the next one begins: what says otherwise is cut, unless the stream is several."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from bubblescope.ingest.serial import overruns
from bubblescope.model.trace import Kernels

MS, US = 1_000_000, 1_000


class Ran(NamedTuple):
    """A kernel."""

    name: str
    start: int
    end: int
    stream: int = 7


def judged(*rows, launch=-1):
    """What overruns among kernels: (start, end) of each as they are then, and the verdict."""
    names = tuple(sorted({row.name for row in rows}))
    start, end, lane = (np.array([getattr(row, key) for row in rows], np.int64) for key in ("start", "end", "stream"))
    name = np.array([names.index(row.name) for row in rows], np.int64)
    number, comm = np.full(len(rows), launch), np.full(len(rows), -1)
    found = overruns(Kernels(start, end, name, lane, number, np.zeros(len(rows)), comm), names)
    end[found.rows] = found.end
    return list(zip(start.tolist(), end.tolist(), strict=True)), found


def stream(count=40, *, name="gemm", lane=7, at=0, length=MS, gap=0):
    """Kernels of one stream, one after the other."""
    for k in range(count):
        begin = at + k * (length + gap)
        yield Ran(name, begin, begin + length, lane)


def test_a_sound_stream():
    """Is left alone, kernels that touch included."""
    after, found = judged(*stream())
    assert after == [(k * MS, k * MS + MS) for k in range(40)]
    assert (len(found.rows), found.longest, found.overlapping) == (0, 0, 0)


@pytest.mark.parametrize("end", [42 * MS, 40 * MS + MS // 2 + 60 * US, 90 * MS, 5_000 * MS, 2**62])
def test_a_kernel_that_overruns(end):
    """Ends where the next one begins, however long it says it lasts, and whatever lies under it."""
    after, found = judged(*stream(40), Ran("long", 40 * MS, end), *stream(40, at=40 * MS + MS // 2))
    assert after[40] == (40 * MS, 40 * MS + MS // 2)
    assert (len(found.rows), found.longest) == (1, end - 40 * MS - MS // 2)


def test_before_a_gap():
    """It ends where the longest other kernel of its name would have: nothing else bounds what is before idle time."""
    rows = [*stream(20), Ran("gemm", 20 * MS, 66 * MS), *stream(20, at=60 * MS), Ran("gemm", 90 * MS, 93 * MS)]
    after, _ = judged(*rows)
    assert after[20] == (20 * MS, 23 * MS)
    after, _ = judged(*stream(20), Ran("alone", 20 * MS, 66 * MS), *stream(20, at=60 * MS))
    assert after[20] == (20 * MS, 60 * MS)


def test_several_that_overrun():
    """Are each cut at their own successor, and no longer one speaks for the length of another."""
    rows = [*stream(100)]
    for k in (10, 11, 50):
        rows[k] = Ran("gemm", k * MS, k * MS + 30 * MS)
    after, found = judged(*rows)
    assert after == [(k * MS, k * MS + MS) for k in range(100)]
    assert (len(found.rows), found.longest) == (3, 29 * MS)


def test_programmatic_dependents():
    """Begin before the last blocks of the kernel before them have ended, by microseconds: no fault."""
    rows = [Ran("gemm", k * MS, k * MS + MS + 40 * US) for k in range(100)]
    _, found = judged(*rows)
    assert (len(found.rows), found.overlapping) == (0, 0)


def test_other_streams_bound_nothing():
    """A kernel may run beside those of another stream."""
    _, found = judged(*stream(40), Ran("beside", 5 * MS, 30 * MS, 8))
    assert (len(found.rows), found.overlapping) == (0, 0)


def test_what_has_no_length_bounds_nothing():
    """Profilers write kernels without a length where they collected none."""
    _, found = judged(*stream(40, length=2 * MS), Ran("thin", 5 * MS, 5 * MS))
    assert (len(found.rows), found.overlapping) == (0, 0)


def test_a_stream_that_is_several():
    """Is told by how many overlap: what a file of AMD's calls a stream may be a queue of the hardware."""
    both = [*stream(40), *stream(40, at=MS // 3, name="weights")]
    after, found = judged(*both, *stream(40, lane=8), Ran("long", 40 * MS, 90 * MS, 8), *stream(9, lane=8, at=50 * MS))
    assert after[:80] == [row[1:3] for row in both]
    assert (len(found.rows), found.overlapping, len(found.doubtful)) == (1, 79, 79)


def test_branches_of_a_graph():
    """Share a launch, and may share a stream of the file: nothing about their lengths is doubtful."""
    both = [*stream(40), *stream(40, at=MS // 3, name="weights")]
    _, found = judged(*both, launch=5)
    assert (len(found.rows), found.overlapping, len(found.doubtful)) == (0, 79, 0)


def test_work_and_communication_on_one_stream():
    """Bound each other not: a queue of the hardware may run both."""
    reduces = list(stream(10, name="rcclGenericKernel", length=2 * MS, gap=7 * MS, at=MS // 2))
    rows = [*stream(100), *reduces]
    after, found = judged(*rows)
    assert (after, found.overlapping) == ([row[1:3] for row in rows], 0)
    rows[50] = Ran("gemm", 50 * MS, 80 * MS)
    assert judged(*rows)[0][50] == (50 * MS, 51 * MS)


@pytest.mark.parametrize(("faults", "cut"), [(1, 1), (2, 0), (9, 0)])
def test_communication(faults, cut):
    """Is cut likewise; where more than one of a few overlap, sends and receives run side by side: no work is wrong."""
    rows = [*stream(32, name="ncclDevKernel_SendRecv", gap=MS)]
    for k in range(faults):
        rows[3 * k] = Ran("ncclDevKernel_SendRecv", 6 * k * MS, 6 * k * MS + 3 * MS)
    _, found = judged(*rows, *stream(40, lane=9))
    assert (len(found.rows), found.overlapping, len(found.doubtful)) == (cut, faults - cut, 0)


def test_kernels_that_begin_together():
    """Are bounded by what begins later; the file's order tells nothing."""
    rows = [*stream(40), Ran("twin", 20 * MS, 70 * MS)]
    for order in (rows, rows[::-1]):
        _, found = judged(*order)
        assert [order[row].name for row in found.rows] == ["twin"]
        assert found.end.tolist() == [21 * MS]


def test_no_kernels():
    """Nothing overruns."""
    assert len(judged()[1].rows) == 0
    assert np.array_equal(judged(Ran("gemm", 0, MS))[1].rows, [])
