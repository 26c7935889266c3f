"""Which ranks a Chrome trace holds, and what is whose: literal documents."""

from __future__ import annotations

from itertools import count

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest import parts
from bubblescope.ingest.chrome import read_all


def event(cat, name, pid, tid, ts, dur=1, **args):  # noqa: PLR0917 - as they stand in a trace
    """An event that tells a start and a length."""
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def launch(number, ts, *, pid=70, tid=1, api="cudaLaunchKernel"):
    """A launch."""
    return event("cuda_runtime", api, pid, tid, ts, correlation=number)


def kernel(name, number, ts, *, pid=0, device=None, cat="kernel"):
    """A kernel of a stream 7; without a device the process of its event stands for it."""
    told = {} if device is None else {"device": device}
    return event(cat, name, pid, 7, ts, 5, correlation=number, stream=7, **told)


def note(name, ts, dur, *, pid=70, tid=1):
    """A range."""
    return event("user_annotation", name, pid, tid, ts, dur)


def op(name, ts, dur=1, *, pid=70, tid=1):
    """An operator."""
    return event("cpu_op", name, pid, tid, ts, dur)


def runs(name, first, ts, *, pid=70, gpu=0, device=None, many=3, late=0):
    """Launches and their kernels, one after the other."""
    return [
        row
        for i in range(many)
        for row in (
            launch(first + i, ts + 10 * i, pid=pid),
            kernel(name, first + i, ts + 10 * i + 2 + late, pid=gpu, device=device),
        )
    ]


@pytest.fixture
def ranks(save):
    """The traces of a document of these events."""
    numbers = count()

    def read(*events, **members):
        flat = [row for part in events for row in (part if isinstance(part, list) else [part])]
        return read_all(save({"schemaVersion": 1, "traceEvents": flat, **members}, f"trace{next(numbers)}.json"))

    return read


def ran(traces):
    """The kernels of each rank and the processes on its host."""
    return [
        ({trace.names[n] for n in trace.kernels.name.tolist()}, {thread.pid for thread in trace.threads})
        for trace in traces
    ]


def ranges(traces):
    """The ranges and operators of each rank."""
    return [
        [trace.names[n] for block in (trace.annotations, trace.ops) for n in block.name.tolist()] for trace in traces
    ]


class TestProcesses:
    """Whose kernels are whose."""

    def test_numbers_of_their_own(self, ranks):
        """Tell it, whatever the ids."""
        found = ranks(runs("a", 1, 0, pid=71, gpu=0), runs("b", 11, 0, pid=70, gpu=1))
        assert ran(found) == [({"a"}, {"71"}), ({"b"}, {"70"})]

    def test_one_gpu_of_two_processes(self, ranks):
        """Is two ranks, as each sees a device 0."""
        found = ranks(runs("a", 1, 0, pid=70, gpu=0), runs("b", 11, 0, pid=71, gpu=0))
        assert ran(found) == [({"a"}, {"70"}), ({"b"}, {"71"})]

    def test_gpus_that_two_nodes_number_alike(self, ranks):
        """Come in the order of their processes, and those of one process in theirs; launches tell whose they are."""
        rows = [runs("abcd"[n], 10 * n, 0, pid=70 + n, gpu=n % 2, device=n % 2) for n in (2, 0, 3, 1)]
        assert ran(ranks(*rows)) == [({name}, {str(70 + n)}) for n, name in enumerate("abcd")]
        rows = [runs("abcd"[n], 10 * n, 0, pid=70 + n // 2, gpu=n % 2, device=n % 2) for n in (2, 0, 3, 1)]
        assert [names for names, _ in ran(ranks(*rows))] == [{"a"}, {"b"}, {"c"}, {"d"}]

    @pytest.mark.parametrize("mark", ["r{}_{}", "[{}] {}", "{}/{}", "{1}@n{0}", "{1}.{0}"])
    def test_ids_that_share_a_mark(self, ranks, mark):
        """Are one rank's: numbers that collide, in order of time, do not matter."""
        rows = [
            row for n in (0, 1, 2) for row in runs("abc"[n], 1, n, pid=mark.format(n, 7000 - n), gpu=mark.format(n, 0))
        ]
        found = ran(ranks(*sorted(rows, key=lambda row: row["ts"])))
        assert sorted(found, key=str) == sorted([({"abc"[n]}, {mark.format(n, 7000 - n)}) for n in (0, 1, 2)], key=str)

    def test_two_gpus_that_call_themselves_0(self, ranks):
        """Are two, as their processes differ."""
        found = ranks(runs("a", 1, 0, gpu=0, device=0), runs("b", 1, 0, pid=100070, gpu=100000, device=0))
        assert ran(found) == [({"a"}, {"70"}), ({"b"}, {"100070"})]

    def test_kernels_before_their_launches(self, ranks):
        """Tell that a launch of the same number is not theirs."""
        late = 5_000_000
        found = ranks(runs("a", 1, 0, pid=71, gpu=0), runs("b", 1, late, pid=70, gpu=1))
        assert ran(found)[0] == ({"a"}, {"71"})

    def test_lost_launches(self, ranks):
        """Of the recording's begin: that another process has launches of these numbers makes it no rank here."""
        mine = [row for row in runs("a", 1, 0, gpu=0, many=60) if row["cat"] == "kernel" or row["ts"] > 40]
        others = runs("b", 1, 0, pid=71, gpu=1, many=4) + runs("b", 101, 100, pid=71, gpu=1, many=60)
        assert ran(ranks(mine, others)) == [({"a"}, {"70"}), ({"b"}, {"71"})]

    def test_nothing_launched_one(self, ranks):
        """Is a rank of kernels alone beside the others."""
        found = ranks(runs("a", 1, 0), [kernel("b", 50 + i, 10 * i, pid=1) for i in range(3)], op("mine", 0))
        assert ran(found) == [({"a"}, {"70"}), ({"b"}, set())]

    def test_kernels_alone(self, ranks):
        """Are a rank for each GPU."""
        assert ran(ranks(kernel("a", -1, 0), kernel("b", -1, 0, pid=1))) == [({"a"}, set()), ({"b"}, set())]

    def test_without_launches_ids_may_tell(self, ranks):
        """Where the ids of a rank were moved by one offset; else nothing does."""
        shifted = [kernel("a", -1, 0), op("x", 0), kernel("b", -1, 0, pid=100000), op("y", 0, pid=100070)]
        assert ran(ranks(shifted)) == [({"a"}, {"70"}), ({"b"}, {"100070"})]
        with pytest.raises(InputError, match="no launches"):
            ranks(kernel("a", -1, 0), op("x", 0), kernel("b", -1, 0, pid=1), op("y", 0, pid=71))

    def test_a_data_loader(self, ranks):
        """Is set aside: it launches nothing."""
        (found,) = ranks(runs("a", 1, 0), [op(f"load {i}", i, pid=99) for i in range(2)])
        assert {thread.pid for thread in found.threads} == {"70", "99"}  # which of them counts is told later
        one, other = ranks(runs("a", 1, 0), runs("b", 11, 0, pid=71, gpu=1), op("load", 0, pid=99))
        assert "99" not in {thread.pid for trace in (one, other) for thread in trace.threads}
        (told,) = one.findings
        assert (told.code, told.message[:9]) == ("other-processes", "1 events ")

    def test_strays(self, ranks):
        """A device with a hundredth of the busiest one's kernels is none of the rank's."""
        (found,) = ranks(runs("a", 1, 0, many=300), runs("stray", 1000, 0, gpu=1, many=2))
        assert ran([found])[0][0] == {"a"}
        assert {finding.code for finding in found.findings} == {"other-processes"}
        assert [names for names, _ in ran(ranks(runs("a", 1, 0, many=300), runs("light", 1000, 0, gpu=1)))] == [
            {"a"},
            {"light"},
        ]

    def test_more_than_anybodys(self, ranks, monkeypatch):
        """A file of a thousand GPUs is damaged."""
        monkeypatch.setattr(parts, "MOST", 2)
        with pytest.raises(InputError, match="more than"):
            ranks([kernel("a", -1, 0, pid=pid) for pid in range(3)])
        monkeypatch.undo()
        with pytest.raises(InputError, match="a process with 65"):
            ranks([row for n in range(65) for row in (launch(n, n), kernel("a", n, n, pid=n))])
        with pytest.raises(InputError, match="the launches of 1025 processes"):
            ranks([row for n in range(1025) for row in (launch(n, n, pid=70 + n), kernel("a", n, n))])

    def test_copies_make_no_rank(self, ranks):
        """But those of a rank's device are its own, whatever process their events name."""
        (found,) = ranks(
            runs("a", 1, 0, device=0), launch(9, 50), kernel("copy", 9, 52, pid=5, device=0, cat="gpu_memcpy")
        )
        assert ran([found])[0][0] == {"a", "copy"}


class TestWithoutGpu:
    """Processes that mark steps and communicate are ranks."""

    def test_two_that_mark_steps(self, ranks):
        """And a loader that does not is none."""
        one = [note("ProfilerStep#0", 0, 9), op("aten::mm", 1)]
        other = [note("ProfilerStep#0", 0, 9, pid=71), op("aten::add", 1, pid=71)]
        found = ranks(one, other, [op("load", i, pid=99) for i in range(2)])
        assert ranges(found) == [["ProfilerStep#0", "aten::mm"], ["ProfilerStep#0", "aten::add"]]
        assert [trace.identity.process for trace in found] == ["70", "71"]

    def test_two_that_communicate(self, ranks):
        """Where nobody marks steps."""
        found = ranks([op("c10d::send", 0), op("aten::mm", 1), op("c10d::recv_", 0, pid=71), op("load", 0, pid=99)])
        assert ranges(found) == [["c10d::send", "aten::mm"], ["c10d::recv_"]]

    def test_two_that_do_neither(self, ranks):
        """Are one rank with a loader, as ever."""
        assert len(ranks(op("aten::mm", 0), op("load", 0, pid=99))) == 1


class TestDevices:
    """One process with several GPUs: what is whose on its host."""

    def test_ranges_go_by_what_they_launched(self, ranks):
        """One that launched for several is of each; copies do not count beside kernels."""
        found = ranks(
            note("both", 0, 100),
            [note("first", 1, 20), launch(1, 2), op("op of first", 2), kernel("a", 1, 5)],
            [
                note("second", 30, 20),
                launch(2, 31),
                launch(3, 35, api="cudaMemcpyPeerAsync"),
                kernel("b", 2, 36, pid=1),
            ],
            kernel("Memcpy PtoP (Device -> Device)", 3, 40, cat="gpu_memcpy"),
        )
        assert ranges(found) == [["both", "first", "op of first"], ["both", "second"]]

    def test_a_range_around_what_other_threads_launched(self, ranks):
        """As a backward: it is of the GPU that its own thread drives elsewhere."""
        forwards = [note("F0", 0, 10), launch(1, 1), note("F1", 0, 10, tid=2), launch(2, 2, tid=2)]
        backwards = [note("B0", 20, 10), launch(3, 21, tid=11), note("B1", 20, 10, tid=2), launch(4, 22, tid=12)]
        kernels = [
            kernel(name, n, 30 + n, pid=pid) for name, n, pid in (("a", 1, 0), ("b", 2, 1), ("a", 3, 0), ("b", 4, 1))
        ]
        assert ranges(ranks(forwards, backwards, kernels)) == [["F0", "B0"], ["F1", "B1"]]

    def test_one_thread_for_all(self, ranks):
        """Around a backward there it is of the GPUs that threads without ranges drove meanwhile."""
        forwards = [note("F0", 0, 4), launch(1, 1), note("F1", 5, 4), launch(2, 6)]
        backwards = [note("B1", 20, 5), launch(4, 22, tid=12), note("B0", 30, 5), launch(3, 31, tid=11)]
        kernels = [
            kernel(name, n, 40 + n, pid=pid) for name, n, pid in (("a", 1, 0), ("b", 2, 1), ("a", 3, 0), ("b", 4, 1))
        ]
        assert ranges(ranks(forwards, backwards, kernels)) == [["F0", "B0"], ["F1", "B1"]]

    def test_marks_of_the_process(self, ranks):
        """Are of all GPUs, whichever thread launched for them."""
        rows = [note("ProfilerStep#3", 0, 50), *runs("a", 1, 0), launch(9, 5, tid=2), kernel("b", 9, 8, pid=1)]
        assert ranges(ranks(rows)) == [["ProfilerStep#3"]] * 2

    def test_operators_without_a_launch(self, ranks):
        """Are of the GPU that their thread launches for next."""
        rows = [
            op("view", 0),
            launch(1, 1),
            kernel("a", 1, 5),
            op("reshape", 10),
            launch(2, 11),
            kernel("b", 2, 15, pid=1),
        ]
        assert ranges(ranks(rows)) == [["view"], ["reshape"]]

    def test_what_launches_nothing_anywhere(self, ranks):
        """Is of all: nothing tells otherwise."""
        rows = [note("quiet", 0, 1, tid=9), launch(1, 2), kernel("a", 1, 5), launch(2, 3), kernel("b", 2, 5, pid=1)]
        assert ranges(ranks(rows)) == [["quiet"], ["quiet"]]

    def test_who_they_are(self, ranks):
        """One host and one clock; of the ranks that metadata tell none is theirs."""
        rows = [launch(1, 2), kernel("a", 1, 5), launch(2, 3), kernel("b", 2, 5, pid=1)]
        found = ranks(rows, host_name="node7", baseTimeNanoseconds=10**18, distributedInfo={"rank": 1, "world_size": 1})
        assert {(t.identity.host, t.identity.clock, t.identity.rank, t.identity.world_size) for t in found} == {
            ("node7", "node7", None, None)
        }
        found = ranks(rows)  # no base: times count from anywhere, but all from the same moment
        assert {(t.identity.clock, t.absolute) for t in found} == {(found[0].source.path, False)}
        assert [(t.identity.process, t.identity.device) for t in found] == [("70", "0"), ("70", "1")]


def test_ranks_that_names_claim_twice(ranks):
    """Are told by none."""
    names = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": "rank 5"}} for pid in (70, 71)]
    found = ranks(names, runs("a", 1, 0), runs("b", 11, 0, pid=71, gpu=1))
    assert [trace.identity.rank for trace in found] == [None, None]
    (first, second) = ranks(names[:1], runs("a", 1, 0), runs("b", 11, 0, pid=71, gpu=1))
    assert (first.identity.rank, second.identity.rank) == (5, None)


def test_a_clock_of_the_gpu_that_is_off(ranks):
    """Makes no other process the launcher, whose launches are earlier, where ids tell."""
    late = -20_000
    first = runs("a", 1, 0, many=20, late=late)
    other = runs("b", 1, 5, pid=100070, gpu=100000, many=20, late=late)
    mixed = sorted(first + other, key=lambda row: row["ts"])
    assert ran(ranks(mixed)) == [({"a"}, {"70"}), ({"b"}, {"100070"})]


class TestOneStepAtATime:
    """What overlapping marks of one step tell."""

    @pytest.mark.parametrize(
        ("other", "several"),
        [
            ({"ts": 5, "tid": 2}, True),
            ({"ts": 25}, True),
            ({"ts": 0}, False),  # word for word
            ({"ts": 0.6}, False),  # as a tool rounded it
            ({"ts": 10, "dur": 50}, False),  # inside of the first
            ({"ts": 200}, False),  # later
        ],
    )
    def test_marks(self, ranks, other, several):
        """Of two threads, or that cross, are of two processes; copies and what nests are not."""
        rows = [note("ProfilerStep#3", 0, 100), note("ProfilerStep#3", **({"dur": 100} | other)), runs("a", 1, 0)]
        if several:
            with pytest.raises(InputError, match="a process is in one step several times at once"):
                ranks(*rows)
        else:
            assert len(ranks(*rows)) >= 1

    def test_one_mark_that_is_damaged(self, ranks):
        """Tells nothing, where the other steps come one at a time."""
        steps = [note(f"ProfilerStep#{n}", 100 * n, 90) for n in range(4)]
        assert len(ranks(steps, note("ProfilerStep#1", 120, 300), runs("a", 1, 0))) == 1


@pytest.mark.parametrize(
    "stray", [kernel("a", -1, 300, pid=5, device=5), kernel("a", 99, 300, device=2**40)], ids=["unasked", "no device"]
)
def test_strays_are_no_ranks(ranks, stray):
    """A kernel that nobody asked for, or on a device that cannot be, is of no other GPU's rank."""
    assert len(ranks(runs("a", 0, 0, device=0, many=20), stray)) == 1
