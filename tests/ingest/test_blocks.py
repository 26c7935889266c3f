"""Blocks of a trace: one time base, tables in order, launches alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.ingest.blocks import launches_work, natural, on_time_base, real_launches, renumber
from bubblescope.model.trace import Annotations, Kernels, Launches, Ops

EPOCH = 1_779_782_330_176_752_435
LAST = 2**63 - 1


def notes(*spans):
    """Annotations, all of one name on one thread."""
    return Annotations([start for start, _ in spans], [end for _, end in spans], [0] * len(spans), [0] * len(spans))


def named(*names):
    """Annotations of those numbers of names, on threads of the same."""
    return Annotations(range(len(names)), range(len(names)), names, names)


def spans(block):
    """When the rows of a block are."""
    return list(zip(block.start.tolist(), block.end.tolist(), strict=True))


class TestLaunches:
    """Which calls put work on a GPU."""

    @pytest.mark.parametrize(
        "name",
        [
            "cudaLaunchKernel",
            "cuLaunchKernelEx",
            "cudaMemcpyAsync",
            "cudaMemsetAsync",
            "cudaGraphLaunch",
            "hipExtEnqueue",
        ],
    )
    def test_names_of_launches(self, name):
        """In any case of letters."""
        assert launches_work(name)
        assert launches_work(name.upper())

    @pytest.mark.parametrize("name", ["", "cudaMalloc", "cudaStreamSynchronize", "cudaEventRecord", "cudaFree"])
    def test_names_of_others(self, name):
        """Wait, allocate, record."""
        assert not launches_work(name)

    def test_by_what_they_started_or_by_name(self):
        """A call without such a name launches if something has its correlation; -1 is no correlation."""
        kernels = Kernels([1, 2], [2, 3], [0, 0], [0, 0], [7, -1], [0, 0], [-1, -1])
        names = ["cudaLaunchKernel", "cudaMalloc"]
        calls = Launches([1, 2, 3, 4], [1, 2, 3, 4], [0, 1, 1, 1], [0] * 4, [5, 7, 8, -1])
        assert real_launches(calls, kernels, names).start.tolist() == [1, 2]

    def test_no_calls(self):
        """Remain none, also where no name is known."""
        assert len(real_launches(Launches.empty(), Kernels.empty(), [])) == 0


class TestTimes:
    """One time base."""

    def test_a_base_is_added(self):
        """To all blocks; times then count from the epoch."""
        blocks, absolute, lost = on_time_base([notes((-5, 1)), notes((3, 4))], EPOCH)
        assert [spans(block) for block in blocks] == [[(EPOCH - 5, EPOCH + 1)], [(EPOCH + 3, EPOCH + 4)]]
        assert (absolute, lost) == (True, 0)

    def test_no_base(self):
        """Changes nothing, and the origin is unknown."""
        blocks, absolute, lost = on_time_base([notes((3, 4))], None)
        assert (spans(blocks[0]), absolute, lost) == ([(3, 4)], False, 0)

    @pytest.mark.parametrize(("late", "early", "absolute"), [(2, 1, True), (1, 1, False), (1, 2, False), (0, 0, False)])
    def test_times_that_show_a_wall_clock(self, late, early, absolute):
        """Count from the epoch if more than half of all do."""
        blocks = [notes(*[(EPOCH, EPOCH)] * late), notes(*[(5, 5)] * early)]
        assert on_time_base(blocks, None)[1] is absolute

    def test_events_beyond_all_time(self):
        """Are left out and counted; the last that fits stays."""
        blocks, _, lost = on_time_base(
            [notes((0, LAST - EPOCH), (0, LAST - EPOCH + 1), (0, LAST)), notes((1, 2))], EPOCH
        )
        assert [spans(block) for block in blocks] == [[(EPOCH, LAST)], [(EPOCH + 1, EPOCH + 2)]]
        assert lost == 2

    @given(st.lists(st.tuples(st.integers(-(2**62), LAST), st.integers(0, 2**40))), st.integers(0, 2**62) | st.none())
    def test_nothing_overflows(self, rows, base):
        """A row is moved by the base, or left out: by exact numbers."""
        rows = [(start, min(start + length, LAST)) for start, length in rows]
        shift = base or 0
        blocks, _, lost = on_time_base([notes(*rows)], base)
        expected = [(start + shift, end + shift) for start, end in rows if end + shift <= LAST]
        assert (spans(blocks[0]), lost) == (expected, len(rows) - len(expected))


class TestTables:
    """Tables keep what blocks refer to."""

    def test_what_is_used_is_kept_in_order(self):
        """Of all blocks together; the numbers follow."""
        blocks, table = renumber([named(3, 1, 3), named(0)], "name", ["d", "b", "unused", "a"], str)
        assert table == ["a", "b", "d"]
        assert [block.name.tolist() for block in blocks] == [[0, 1, 0], [2]]
        assert blocks[0].thread.tolist() == [3, 1, 3]

    def test_nothing_stays_nothing(self):
        """-1 points to no row of the table."""
        ops = Ops([1, 2], [1, 2], [0, 0], [0, 0], [-1, -1], [-1, -1], [-1, 0])
        (block,), table = renumber([ops], "comm", ["used", "unused"], str)
        assert (block.comm.tolist(), table) == ([-1, 0], ["used"])

    def test_blocks_without_the_column(self):
        """Are handed through."""
        (block,), table = renumber([notes((1, 2))], "lane", ["a"], str)
        assert (spans(block), table) == ([(1, 2)], [])

    def test_no_table(self):
        """No rows refer to nothing."""
        (block,), table = renumber([Annotations.empty()], "name", [], str)
        assert (len(block), table) == (0, [])

    @given(st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=4), st.permutations("abcdefghij"))
    def test_every_row_keeps_its_text(self, numbers, table):
        """Whatever the order of the table was, and the table comes out sorted."""
        blocks = [named(*rows) for rows in numbers]
        after, kept = renumber(blocks, "name", table, str)
        assert [[kept[n] for n in block.name] for block in after] == [[table[n] for n in rows] for rows in numbers]
        assert kept == sorted({table[n] for rows in numbers for n in rows})


def test_natural_order():
    """Numbers go by their value, before them what is none; no text of digits is too long."""
    pairs = [("10", "9"), ("9", "10"), ("9", "9"), ("x", "1"), ("9" * 40, "1")]
    assert sorted(pairs, key=natural) == [("9" * 40, "1"), ("x", "1"), ("9", "9"), ("9", "10"), ("10", "9")]
