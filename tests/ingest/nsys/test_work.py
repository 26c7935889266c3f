"""Kernels, copies, fills and graphs, and the calls that launched them."""

from __future__ import annotations

import pytest

from bubblescope.ingest.nsys.work import COPY, FILL, GRAPH, launches, work
from bubblescope.model.trace import Kernels
from tests.ingest.nsys.exports import KERNELS, LAUNCHES, copied, filled, graph, kernel, launch, process, thread


@pytest.fixture
def ran(opened):
    """Write rows, and read what ran on GPUs: the work, and its rows as tuples."""

    def write(*rows, **how):
        file = opened(*rows, **how)
        found = work(file.database, file.strings, file.names)
        names, block = list(file.names), found.kernels.rows
        columns = (block.start, block.end, block.correlation, block.kind)
        rows = zip((names[i] for i in block.name), *(column.tolist() for column in columns), strict=True)
        return found, list(rows)

    return write


@pytest.fixture
def called(opened):
    """Write rows, and read the calls that launch: their owners, and their rows as tuples."""

    def write(*rows, **how):
        file = opened(*rows, **how)
        found = launches(file.database, file.strings, file.names)
        names, block = list(file.names), found.rows
        columns = (block.start, block.end, block.correlation)
        return found, list(zip((names[i] for i in block.name), *(c.tolist() for c in columns), strict=True))

    return write


class TestWork:
    """What ran on GPUs."""

    def test_all_kinds_in_the_order_of_their_start(self, ran):
        """Kernels by their full name; copies and fills by the words of the PyTorch Profiler."""
        _, rows = ran(
            graph(50, 60, correlation=4),
            filled(30, 31, correlation=3),
            kernel("void gemm<float>(int)", 10, 20, correlation=1),
            copied(1, 5, 8, correlation=2),
        )
        assert rows == [
            ("Memcpy HtoD (Host -> Device)", 5, 8, 2, Kernels.MEMCPY),
            ("void gemm<float>(int)", 10, 20, 1, Kernels.KERNEL),
            (FILL, 30, 31, 3, Kernels.MEMSET),
            (GRAPH, 50, 60, 4, Kernels.KERNEL),
        ]

    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            (1, "Memcpy HtoD (Host -> Device)"),
            (2, "Memcpy DtoH (Device -> Host)"),
            (8, "Memcpy DtoD (Device -> Device)"),
            (9, "Memcpy HtoH (Host -> Host)"),
            (10, "Memcpy PtoP (Device -> Device)"),
            (11, "Memcpy HtoD (Unified -> Device)"),
            (12, "Memcpy DtoH (Device -> Unified)"),
            (5, COPY),
            (None, COPY),
        ],
    )
    def test_kinds_of_copies(self, ran, kind, name):
        """A kind that says nothing of where from and where to is a copy all the same."""
        _, rows = ran(copied(kind, 1, 2))
        assert [(row[0], row[-1]) for row in rows] == [(name, Kernels.MEMCPY)]

    def test_a_copy_of_another_kind_keeps_its_own_name(self, ran):
        """Each of several has that of its own kind."""
        _, rows = ran(copied(8, 1, 2), copied(1, 3, 4), copied(8, 5, 6))
        assert [row[0][:11] for row in rows] == ["Memcpy DtoD", "Memcpy HtoD", "Memcpy DtoD"]

    def test_a_kernel_without_a_full_name(self, ran):
        """Has its short one; one without either has none."""
        _, rows = ran(kernel("a", 1, 2, demangledName=None), kernel("b", 3, 4, demangledName=None, shortName=None))
        assert [row[0] for row in rows] == ["short a", ""]

    def test_a_column_of_names_that_is_not_there(self, ran):
        """As in exports that were cut down to the short names."""
        _, rows = ran(kernel("a", 1, 2), without={KERNELS: {"demangledName"}})
        assert [row[0] for row in rows] == ["short a"]

    @pytest.mark.parametrize(("start", "end"), [(None, 5), (5, None), (0, 0), (9, 8), (None, None)], ids=str)
    def test_times_that_cannot_be(self, ran, start, end):
        """NULL, an end before the start, zeros, which CUPTI writes where it learned no time: left out, counted."""
        found, rows = ran(kernel("a", start, end), kernel("b", 1, 2))
        assert [row[0] for row in rows] == ["b"]
        assert found.implausible == 1

    @pytest.mark.parametrize(("start", "end"), [(0, 1), (-9, -3), (-1, 0), (7, 7)], ids=str)
    def test_odd_times_that_can_be(self, ran, start, end):
        """Before the session began, at its first moment, or too short to be measured."""
        found, rows = ran(kernel("a", start, end))
        assert [row[1:3] for row in rows] == [(start, end)]
        assert found.implausible == 0

    def test_lanes_are_pairs_of_device_and_stream(self, ran):
        """One stream of two devices is two lanes."""
        found, _ = ran(
            kernel("a", 1, 2, device=1, stream=7),
            kernel("b", 3, 4, device=0, stream=7),
            kernel("c", 5, 6, device=1, stream=13),
            kernel("d", 7, 8, device=1, stream=7),
        )
        lanes = [found.lanes[number] for number in found.kernels.rows.lane]
        assert lanes == [("1", "7"), ("0", "7"), ("1", "13"), ("1", "7")]
        assert len(found.lanes) == 3
        assert found.device.tolist() == [1, 0, 1, 1]

    def test_owners(self, ran):
        """Each row has its process."""
        found, _ = ran(kernel("a", 1, 2, pid=20), kernel("b", 3, 4, pid=10))
        assert found.kernels.process.tolist() == [process(20), process(10)]

    def test_no_correlation(self, ran):
        """Is -1, whether it is NULL or the column is not there."""
        _, rows = ran(kernel("a", 1, 2, correlation=None))
        assert rows[0][3] == -1
        _, rows = ran(kernel("a", 1, 2, correlation=3), without={KERNELS: {"correlationId"}}, name="b.sqlite")
        assert rows[0][3] == -1

    def test_graphs_are_counted(self, ran):
        """For their kernels are not shown."""
        assert ran(graph(1, 2), graph(3, 4), kernel("a", 5, 6))[0].graphs == 2

    def test_nothing(self, ran):
        """A file without any of the tables has no work and no lanes."""
        found, rows = ran(launch("cudaLaunchKernel", 1, 2))
        assert (rows, found.lanes, found.implausible) == ([], (), 0)


class TestLaunches:
    """The calls that put work on a GPU."""

    def test_those_that_launch_by_their_name(self, called):
        """In the order of their start, without the version that CUPTI appends; others would only take memory."""
        _, rows = called(
            launch("cuLaunchKernelEx", 7, 8, correlation=5),
            launch("cudaDeviceSynchronize_v3020", 1, 9, correlation=1),
            launch("cudaLaunchKernelExC_v11060", 5, 6, correlation=4),
            launch("cudaMemcpyAsync_v3020", 3, 4, correlation=3),
            launch("cudaMemsetAsync_v3020", 4, 5, correlation=7),
            launch("cudaGraphLaunch_v10000", 9, 10, correlation=6),
            launch("cudaEventRecord_v3020", 2, 3, correlation=2),
        )
        assert rows == [
            ("cudaMemcpyAsync", 3, 4, 3),
            ("cudaMemsetAsync", 4, 5, 7),
            ("cudaLaunchKernelExC", 5, 6, 4),
            ("cuLaunchKernelEx", 7, 8, 5),
            ("cudaGraphLaunch", 9, 10, 6),
        ]

    def test_a_call_without_a_name_may_be_one(self, called):
        """What it started will tell."""
        _, rows = called(launch("cudaFree", 1, 2), launch(None, 3, 4, correlation=3))
        assert rows == [("", 3, 4, 3)]

    def test_names_are_missing_altogether(self, called):
        """As in an export that was cut down."""
        _, rows = called(launch("cudaLaunchKernel", 1, 2, correlation=3), without={LAUNCHES: {"nameId"}})
        assert rows == [("", 1, 2, 3)]

    def test_a_call_that_never_returned(self, called):
        """Ends where it began; one without a beginning is none, and one that ends before it is judged with all else."""
        _, rows = called(
            launch("cudaLaunchKernel", 1, None, correlation=1),
            launch("cudaLaunchKernel", 5, 3, correlation=2),
            launch("cudaLaunchKernel", None, 3, correlation=3),
        )
        assert [row[1:] for row in rows] == [(1, 1, 1), (5, 3, 2)]

    def test_owners(self, called):
        """Each has its process and its thread."""
        found, _ = called(launch("cudaLaunchKernel", 1, 2, pid=10, tid=12), launch("cudaLaunchKernel", 3, 4, pid=20))
        assert found.process.tolist() == [process(10), process(20)]
        assert found.thread.tolist() == [thread(10, 12), thread(20)]

    def test_many(self, called):
        """More than are read at once; a name that comes late is known as well."""
        calls = [
            launch("cudaLaunchKernel" if i < 11_000 else "cudaMemcpyAsync", i, i, correlation=i) for i in range(12_000)
        ]
        _, rows = called(*calls)
        assert [row[1] for row in rows] == list(range(12_000))
        assert [row[0] for row in rows[10_999:11_001]] == ["cudaLaunchKernel", "cudaMemcpyAsync"]

    def test_nothing(self, called):
        """A file without the table has no calls."""
        assert called(kernel("a", 1, 2))[1] == []
