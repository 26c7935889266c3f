"""Which ranks a file holds, their order, and who each of them is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.ingest.nsys.ranks import Owner, identities
from bubblescope.ingest.nsys.session import NODES, RANKS, Session
from bubblescope.model.trace import Device, Membership
from tests.ingest.nsys.exports import (
    DEVICES,
    GPUS,
    MPI,
    captured,
    codes,
    copied,
    filled,
    graph,
    kernel,
    launch,
    process,
    pushed,
    thread,
    variable,
)

TWO = [kernel("a", 1, 2, pid=10, device=0), kernel("b", 3, 4, pid=20, device=1)]


def many(name, count, **more):
    """As many kernels, one after the other."""
    return [kernel(name, 2 * i + 1, 2 * i + 2, **more) for i in range(count)]


def seen(traces):
    """What each rank ran, in the order of the ranks."""
    return [sorted({trace.names[number] for number in trace.kernels.name}) for trace in traces]


def ranked(traces):
    """The rank of each, and who told it."""
    return [(trace.identity.rank, trace.identity.rank_source) for trace in traces]


class TestOwners:
    """A rank is a process on a device."""

    def test_two_processes(self, traces):
        """Of one file are two ranks, on one clock and host."""
        found = traces(*TWO, variable("Hostname", "node7"))
        assert seen(found) == [["a"], ["b"]]
        assert {(trace.identity.clock, trace.identity.host) for trace in found} == {(found[0].source.path, "node7")}

    def test_they_come_in_the_order_of_their_devices(self, traces):
        """Not of their process numbers, which tell nothing; those decide where each has a device 0 of its own."""
        found = traces(
            kernel("a", 1, 2, pid=20, device=0),
            kernel("b", 1, 2, pid=10, device=1),
            kernel("c", 1, 2, pid=30, device=0),
        )
        assert seen(found) == [["a"], ["c"], ["b"]]

    def test_one_process_with_two_devices(self, traces):
        """Is two ranks, of which it tells none; its calls are told apart by what they started."""
        found = traces(
            kernel("a", 10, 20, device=0, correlation=1),
            kernel("b", 10, 20, device=1, correlation=2),
            launch("cudaLaunchKernel", 1, 2, correlation=1),
            launch("cudaLaunchKernel", 3, 4, correlation=2),
            (MPI, {"globalTid": thread(10), "rank": 3}),
        )
        assert seen(found) == [["a"], ["b"]]
        assert ranked(found) == [(None, None)] * 2
        assert [trace.kernels.correlation.tolist() for trace in found] == [[1], [2]]

    def test_what_runs_hardly_anything_is_no_rank(self, traces):
        """Processes and devices with less than a hundredth of the busiest one's kernels are left out, and counted."""
        (found,) = traces(
            *many("a", 300),
            *many("stray", 2, pid=20),
            *many("peer", 2, device=1),
            copied(8, 1, 2, device=2),
            filled(1, 2, pid=30),
        )
        assert seen([found]) == [["a"]]
        (finding,) = [f for f in found.findings if f.code == "other-processes"]
        assert finding.message.startswith("6 kernels and copies of other processes or devices")

    def test_a_light_rank_is_one(self, traces):
        """A hundredth is enough; copies do not count for it."""
        found = traces(*many("a", 300), *many("b", 3, pid=20, device=1), *(copied(1, 1, 2) for _ in range(300)))
        assert seen(found) == [["Memcpy HtoD (Host -> Device)", "a"], ["b"]]
        assert not {"other-processes"} & codes(found[0])

    def test_a_graph_is_work(self, traces):
        """A process of which only graphs are seen is a rank."""
        assert seen(traces(graph(1, 2), kernel("b", 3, 4, pid=20, device=1))) == [["CUDA graph"], ["b"]]

    @given(st.permutations(range(5)))
    def test_order_of_rows(self, order):
        """The ranks come in one order, whatever the order of the owners' rows."""
        told = Session(gpu_of={(pid, 0): pid % 7 for pid in range(100, 105)}, environment={"GROUP_RANK": 2})
        owners = [Owner(process(100 + number), 0) for number in order]
        found = {
            owner.process: identity.rank
            for owner, identity in zip(owners, identities(owners, told, {}, "x"), strict=True)
        }
        assert sorted(found.values()) == list(range(10, 15))
        assert found == {
            process(pid): 10 + sorted(n % 7 for n in range(100, 105)).index(pid % 7) for pid in range(100, 105)
        }


class TestAlone:
    """The environment of a recorder that started one rank is that of the rank."""

    @pytest.mark.parametrize(("rank", "world"), RANKS)
    @pytest.mark.parametrize("write", [variable, lambda name, value: captured(f'{name}="{value}"')])
    def test_launchers(self, trace, rank, world, write):
        """Of any launcher."""
        found = trace(kernel("a", 1, 2), write(rank, 3), write(world, 8)).identity
        assert (found.rank, found.rank_source, found.world_size) == (3, "environment", 8)

    def test_no_number_of_ranks(self, trace):
        """The rank alone is something."""
        found = trace(kernel("a", 1, 2), variable("RANK", "3")).identity
        assert (found.rank, found.world_size) == (3, None)

    def test_a_number_of_ranks_without_a_rank(self, trace):
        """Of whichever launcher, tells nothing: it may have started something else."""
        found = trace(kernel("a", 1, 2), variable("SLURM_NTASKS", "8")).identity
        assert (found.rank, found.world_size) == (None, None)

    def test_a_rank_beyond_their_number(self, trace):
        """Contradicts itself, and tells nothing."""
        found = trace(kernel("a", 1, 2), variable("RANK", "8"), variable("WORLD_SIZE", "8")).identity
        assert (found.rank, found.world_size) == (None, None)

    def test_the_innermost_launcher_counts(self, trace):
        """Torchrun under Slurm: its pair stands alone, and is not mixed with the other's."""
        rows = [variable("SLURM_PROCID", "1"), variable("SLURM_NTASKS", "2"), variable("RANK", "5")]
        found = trace(kernel("a", 1, 2), *rows).identity
        assert (found.rank, found.world_size) == (5, None)

    def test_mpi_stands_above_the_environment(self, trace):
        """It was told by the process itself."""
        rows = [variable("RANK", "5"), (MPI, {"globalTid": thread(10, 11), "rank": 3})]
        assert ranked([trace(kernel("a", 1, 2), *rows)]) == [(3, "metadata")]

    def test_the_name_of_the_file(self, trace):
        """Where nothing else tells."""
        assert ranked([trace(kernel("a", 1, 2), name="report_rank4.sqlite")]) == [(4, "filename")]
        found = trace(kernel("a", 1, 2), variable("RANK", "5"), name="report.4.sqlite")
        assert ranked([found]) == [(5, "environment")]
        assert "metadata-conflict" not in codes(found)

    def test_a_name_that_contradicts(self, trace):
        """Is told, and not believed."""
        found = trace(kernel("a", 1, 2), variable("RANK", "5"), name="report_rank4.sqlite")
        assert ranked([found]) == [(5, "environment")]
        assert "metadata-conflict" in codes(found)

    def test_a_range_that_tells_the_rank(self, trace):
        """Is believed where the file tells nothing better, whatever it is called."""
        rows = [kernel("a", 1, 2), pushed("rank=3; pp=1/2 dp=1/2", 1, 2)]
        assert ranked([trace(*rows, name="report_rank4.sqlite")]) == [(3, "label")]

    @pytest.mark.parametrize(
        ("row", "source"),
        [(variable("RANK", "5"), "environment"), ((MPI, {"globalTid": thread(10), "rank": 5}), "metadata")],
    )
    def test_a_range_that_contradicts(self, trace, row, source):
        """Is told, and not believed."""
        found = trace(kernel("a", 1, 2), pushed("rank=3; pp=1/2 dp=1/2", 1, 2), row)
        assert ranked([found]) == [(5, source)]
        assert "metadata-conflict" in codes(found)

    def test_the_number_of_a_node_is_no_rank(self, trace):
        """Of a single process it tells nothing."""
        assert ranked([trace(kernel("a", 1, 2), variable("NODE_RANK", "5"))]) == [(None, None)]


class TestTogether:
    """The environment of a recorder that started several ranks is that of none of them."""

    @pytest.mark.parametrize("rank", [pair[0] for pair in RANKS])
    def test_a_rank_is_nobodys(self, traces, rank):
        """Though the recorder had one."""
        assert ranked(traces(*TWO, variable(rank, "0"))) == [(None, None)] * 2

    @pytest.mark.parametrize("name", NODES)
    def test_numbers_of_nodes(self, traces, name):
        """Ranks are counted on from the first of the node."""
        assert ranked(traces(*TWO, variable(name, "3"))) == [(6, "environment"), (7, "environment")]

    def test_places_on_a_node_go_by_gpu(self, traces):
        """Where each process sees one device only, which it counts as 0."""
        rows = [kernel("a", 1, 2, pid=10), kernel("b", 3, 4, pid=20), variable("GROUP_RANK", "1")]
        gpus = [(DEVICES, {"gpuId": gpu, "cudaId": 0, "pid": pid}) for gpu, pid in ((1, 10), (0, 20))]
        found = traces(*rows, *gpus)
        assert dict(zip([name for (name,) in seen(found)], ranked(found), strict=True)) == {
            "a": (3, "environment"),
            "b": (2, "environment"),
        }

    def test_mpi(self, traces):
        """Tells each; one that it does not tell is placed by its node."""
        found = traces(*TWO, variable("SLURM_NODEID", "2"), (MPI, {"globalTid": thread(20, 21), "rank": 9}))
        assert ranked(found) == [(4, "environment"), (9, "metadata")]

    def test_the_name_of_the_file(self, traces):
        """Is that of none of its ranks."""
        assert ranked(traces(*TWO, name="report_rank4.sqlite")) == [(None, None)] * 2

    def test_ranges_tell_each(self, traces):
        """Which say it on a thread of their process."""
        labels = [pushed(f"rank={rank}; pp={rank}/2", 1, 2, pid=pid) for pid, rank in ((10, 1), (20, 0))]
        assert ranked(traces(*TWO, *labels)) == [(1, "label"), (0, "label")]


class TestDevices:
    """Which GPU a rank ran on."""

    def test_by_its_number(self, traces):
        """The process' own, or the one that it stands for."""
        names = [(GPUS, {"id": gpu, "name": name}) for gpu, name in ((0, "A100"), (1, "H100"))]
        found = traces(*TWO, *names, (DEVICES, {"gpuId": 0, "cudaId": 1, "pid": 20}))
        assert [trace.identity.devices for trace in found] == [(Device(0, "A100"),), (Device(1, "A100"),)]

    @pytest.mark.parametrize(("names", "devices"), [
        (["H100", "H100"], (Device(5, "H100"),)), (["A100", "H100"], ()), ([], ()), ([None], ()),
    ])  # fmt: skip
    def test_a_number_that_is_not_described(self, trace, names, devices):
        """Is of the model that all are; where they differ, of none."""
        rows = [(GPUS, {"id": number, "name": name}) for number, name in enumerate(names)]
        assert trace(kernel("a", 1, 2, device=5), *rows).identity.devices == devices


def test_memberships():
    """Of its process, in order."""
    members = {process(10): frozenset({Membership("b", 0, 2), Membership("a", 1, 2)})}
    one, other = identities([Owner(process(10), 0), Owner(process(20), 1)], Session(), members, "x")
    assert one.memberships == (Membership("a", 1, 2), Membership("b", 0, 2))
    assert other.memberships == ()
