"""Times that cannot be define nothing; times that are only odd stay."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from bubblescope.ingest.plausible import HOUR, plausible
from bubblescope.model.trace import Kernels
from tests.building import kernel, launch, note, op, trace

MS = 1_000_000
SECOND = 1000 * MS
DAY = 24 * HOUR


def run(name, number, host, start, end):
    """A kernel and its launch."""
    return [launch(number, host), kernel(name, start, end, number)]


def stream(count=300, first=1, at=0):
    """Kernels of 1 ms, one after the other, each launched 2 ms before it began, with an operator around its launch."""
    for k in range(count):
        asked = at + k * MS
        yield op("aten::mm", asked, asked + 1000)
        yield run("gemm", first + k, asked, asked + 2 * MS, asked + 3 * MS)


def judged(*rows):
    """The trace that is left of rows, and its doubts."""
    found = plausible(trace(*rows), 0)
    found.self_check()
    return found, found.doubts


def counts(doubts):
    """Misplaced, shortened or cut, doubled, ahead."""
    return doubts.misplaced, doubts.shortened + doubts.overran, doubts.doubled, doubts.ahead


def test_a_sound_trace_is_left_alone():
    """Nothing is dropped, cut or counted."""
    before = trace(*stream())
    after, doubts = judged(*stream())
    assert counts(doubts) == (0, 0, 0, 0)
    for name in ("ops", "kernels", "launches", "annotations"):
        for field in dataclasses.fields(getattr(before, name)):
            assert np.array_equal(getattr(getattr(before, name), field.name), getattr(getattr(after, name), field.name))


@pytest.mark.parametrize("start", [-5 * DAY, -2 * HOUR, 2 * HOUR, 5 * DAY, -(2**62), 2**62])
@pytest.mark.parametrize("row", [op, note])
def test_a_lone_event_an_hour_away(start, row):
    """Is left out, whatever it is."""
    found, doubts = judged(*stream(), row("stray", start, start + 10))
    assert counts(doubts) == (1, 0, 0, 0)
    assert "stray" not in [found.names[n] for n in (*found.ops.name, *found.annotations.name)]


def test_a_stray_kernel_goes_with_its_launch():
    """So that the profiler is not said to have lost one; its launch tells when it should have run."""
    found, doubts = judged(*stream(), run("gemm", 999, 50 * MS + 500, 5 * HOUR, 5 * HOUR + 10))
    assert counts(doubts) == (1, 0, 0, 0)
    assert 999 not in found.launches.correlation
    assert 50 * MS + 500 in doubts.moments


def test_many_events_at_one_instant():
    """Hundreds of kernels at time 0, which profilers write where they learnt none, are no session."""
    zeros = [kernel("lost", 0, 0, 5000 + k) for k in range(200)]
    found, doubts = judged(*stream(at=DAY), zeros)
    assert counts(doubts) == (200, 0, 0, 0)
    assert len(found.kernels) == 300


def test_cycles_of_the_profiler_hours_apart():
    """Are all legal, the last one cut short, too."""
    cycles = [*stream(300, 1), *stream(300, 1000, 3 * HOUR), *stream(120, 2000, 90 * HOUR)]
    assert counts(judged(*cycles)[1]) == (0, 0, 0, 0)


def test_a_gpu_whose_clock_knows_nothing_of_the_host():
    """Kernels that all lie hours away are kept: it is their clock, and between themselves they are right."""
    host = [op("aten::mm", k * MS, k * MS + 10) for k in range(9000)]
    found, doubts = judged(host, [kernel("gemm", DAY + k * MS, DAY + k * MS + 10) for k in range(30)])
    assert (counts(doubts), len(found.kernels)) == ((0, 0, 0, 0), 30)


def test_a_kernel_of_eight_days():
    """Keeps its place and loses its length, or what of it lies behind the next kernel of its stream."""
    found, doubts = judged(*stream(), run("long", 999, 50 * MS, 52 * MS, 8 * DAY))
    assert counts(doubts) == (0, 1, 0, 0)
    at = found.kernels.correlation == 999
    assert (found.kernels.start[at], found.kernels.end[at]) == (52 * MS, 53 * MS)
    assert doubts.moments.tolist() == [50 * MS]
    found, doubts = judged(*stream(), run("last", 999, 299 * MS, 302 * MS, 8 * DAY))
    assert (counts(doubts), int((found.kernels.end - found.kernels.start)[-1])) == ((0, 1, 0, 0), 0)


def test_an_operator_of_eight_days():
    """Loses its length; beside a GPU it is no work, so that nothing is missing."""
    found, doubts = judged(*stream(), op("aten::add", 50 * MS, 8 * DAY))
    assert (counts(doubts), doubts.moments.tolist(), int(found.ops.end.max())) == ((0, 1, 0, 0), [], 299 * MS + 1000)


def test_a_range_of_three_days():
    """Ends with all else: when it really did is not known."""
    found, doubts = judged(*stream(), note("ProfilerStep#1", 0, 3 * DAY))
    assert (counts(doubts), found.annotations.end.tolist()) == ((0, 1, 0, 0), [302 * MS])


def test_a_length_below_zero():
    """Is none, for operators as for kernels; only work that counts is missed."""
    before = trace(*stream())
    ends = before.kernels.end.copy(), before.ops.end.copy()
    ends[0][50], ends[1][60] = 5, -(2**62)
    spoilt = replace(before, kernels=before.kernels.replace(end=ends[0]), ops=before.ops.replace(end=ends[1]))
    found = plausible(spoilt, 0)
    found.self_check()
    assert (counts(found.doubts), found.doubts.moments.tolist()) == ((0, 2, 0, 0), [50 * MS])
    assert (found.kernels.end[50], found.ops.end[60]) == (before.kernels.start[50], before.ops.start[60])


def test_an_empty_trace():
    """Holds nothing to judge."""
    assert counts(judged()[1]) == (0, 0, 0, 0)


def test_a_long_idle_recording():
    """Kernels that spin for minutes behind everything else, as in a barrier, are what they say."""
    waits = run("ncclDevKernel_AllReduce", 999, 299 * MS, 302 * MS, 302 * MS + HOUR // 2)
    assert counts(judged(*stream(), waits)[1]) == (0, 0, 0, 0)


def test_an_overflow_of_four_seconds():
    """A kernel that runs a second past those that its own stream ran behind it ends where they begin."""
    rows = [*stream(100), run("long", 500, 100 * MS, 102 * MS, 102 * MS + 4 * SECOND), *stream(100, 600, 101 * MS)]
    found, doubts = judged(*rows)
    assert counts(doubts) == (0, 1, 0, 0)
    assert int((found.kernels.end - found.kernels.start).max()) == MS


@pytest.mark.parametrize("by", [-5 * MS, 5 * SECOND])
def test_a_kernel_out_of_turn(by):
    """Before its launch, or after those that its stream ran behind it: left out."""
    at = 102 * MS + by
    rows = [*stream(100), run("odd", 500, 100 * MS, at, at + MS), *stream(100, 600, 101 * MS)]
    found, doubts = judged(*rows)
    assert counts(doubts) == (1, 0, 0, 0)
    assert 500 not in found.kernels.correlation
    assert {100 * MS, at} <= set(doubts.moments.tolist())


def test_kernels_that_are_all_before_their_launches():
    """Are kept: the clock of the GPU is off, and between themselves they are right."""
    rows = [[launch(k, k * MS + 5 * MS), kernel("gemm", k * MS, k * MS + MS, k)] for k in range(300)]
    found, doubts = judged(*rows)
    assert (counts(doubts), len(found.kernels), doubts.moments.tolist()) == ((0, 0, 0, 300), 300, [])


def test_a_clock_of_the_gpu_that_jumps_back():
    """Is noticed where kernels begin to precede their launches."""
    rows = [run("gemm", k, k * MS, start := k * MS + 2 * MS - (k >= 150) * SECOND, start + MS) for k in range(300)]
    _, doubts = judged(*rows)
    assert doubts.ahead == 150
    assert doubts.moments.tolist() == [150 * MS]


def test_programmatic_dependents():
    """Kernels that begin before their predecessors on the stream end are legal, and so are those without a length."""
    rows = [run("gemm", k, k * MS, k * MS + 2 * MS, k * MS + 3 * MS + 5000) for k in range(300)]
    rows += [run("Memcpy DtoD", 900, 400 * MS, 401 * MS, 401 * MS)]
    found, doubts = judged(*rows)
    assert (counts(doubts), len(found.kernels)) == ((0, 0, 0, 0), 301)


def test_kernels_of_a_graph_have_no_order():
    """Its branches run as they like, on one stream of the file, for as long as they like."""
    graph = [launch(999, 150 * MS), *(kernel("branch", 500 * MS - k * MS, 3 * SECOND, 999) for k in range(20))]
    assert counts(judged(*stream(), graph)[1]) == (0, 0, 0, 0)


def test_a_file_written_twice():
    """Each event counts once, and the copies are counted."""
    once = trace(*stream(), note("ProfilerStep#1", 0, 300 * MS))
    found, doubts = judged(
        *stream(), note("ProfilerStep#1", 0, 300 * MS), *stream(), note("ProfilerStep#1", 0, 300 * MS)
    )
    assert counts(doubts) == (0, 0, 901, 0)
    for name in ("ops", "kernels", "launches", "annotations"):
        assert np.array_equal(getattr(found, name).start, getattr(once, name).start)


@pytest.mark.parametrize("row", [launch(100, 99 * MS), kernel("gemm", 101 * MS, 102 * MS, 100), note("PP:0F0", 5, 50)])
def test_one_event_twice(row):
    """Is a copy, where it cannot be two."""
    found, doubts = judged(*stream(), note("PP:0F0", 5, 50), row)
    assert counts(doubts) == (0, 0, 1, 0)
    assert (len(found.launches), len(found.kernels), len(found.annotations)) == (300, 300, 1)


def test_events_that_only_look_alike():
    """Operators that call themselves within a microsecond, fills without a length, kernels without a number."""
    twins = [op("aten::zeros", 7000, 8000)] * 2 + [note("empty", 9, 9)] * 2 + [kernel("fill", 7, 8, -1)] * 2
    found, doubts = judged(*stream(), twins)
    assert (doubts.doubled, len(found.ops)) == (0, 302)


def test_only_kernels():
    """A recording without launches has no order to break, but a kernel of seconds amid others is too long."""
    rows = [kernel("gemm", k * MS, k * MS + MS) for k in range(300) if k != 100]
    found, doubts = judged(*rows, kernel("long", 100 * MS, 5 * SECOND))
    assert (counts(doubts), len(found.kernels)) == ((0, 1, 0, 0), 300)
    assert int((found.kernels.end - found.kernels.start).max()) == MS
    assert isinstance(found.kernels, Kernels)
