"""What is kept of an event, and what a trace says of itself."""

from __future__ import annotations

import gc
import json
import random

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.chrome import read

BASE = 1_759_300_074_000_000_000


def event(cat: str, name: str = "x", ts: float = 1.0, dur: float = 2.0, **more) -> dict:
    """An event that is whole, on thread 11 of process 10."""
    return {"ph": "X", "cat": cat, "name": name, "pid": 10, "tid": 11, "ts": ts, "dur": dur} | more


def kineto(*events: dict, **more) -> dict:
    """A document of Kineto."""
    return {"schemaVersion": 1, "traceEvents": list(events)} | more


def names(trace, block) -> list[str]:
    """The names of the rows of a block."""
    return [trace.names[number] for number in block.name]


def codes(trace) -> dict[str, str]:
    """Messages of the findings by code."""
    return {finding.code: finding.message for finding in trace.findings}


def test_columns(save):
    """Every column of every block is what the event says."""
    trace = read(
        save(
            kineto(
                event("cpu_op", "aten::mm", 1.5, 2.25, args={"Sequence number": 7, "Fwd thread id": 3}),
                event("user_annotation", "step", 0, 9),
                event("cuda_runtime", "cudaLaunchKernel", 2, 1, args={"correlation": 5}),
                event("kernel", "gemm", 3, 4, pid=0, tid=7, args={"device": 0, "stream": 7, "correlation": 5}),
                event("gpu_memcpy", "copy", 8, 1, pid=0, tid=20),
                event("gpu_memset", "fill", 9, 1, pid=0, tid=7),
            )
        )
    )
    trace.self_check()
    assert (trace.ops.start.tolist(), trace.ops.end.tolist()) == ([1500], [3750])
    assert (trace.ops.sequence.tolist(), trace.ops.forward_thread.tolist(), trace.ops.comm.tolist()) == ([7], [3], [-1])
    assert names(trace, trace.annotations) == ["step"]
    assert trace.launches.correlation.tolist() == [5]
    assert names(trace, trace.kernels) == ["gemm", "copy", "fill"]
    assert trace.kernels.kind.tolist() == [0, 1, 2]
    assert trace.kernels.lane.tolist() == [0, 1, 0]
    assert trace.kernels.correlation.tolist() == [5, -1, -1]
    assert [(thread.pid, thread.tid) for thread in trace.threads] == [("10", "11")]
    assert (trace.source.format, trace.source.events, trace.absolute) == ("kineto", 6, False)


def test_absent_numbers_are_minus_one(save):
    """An operator without arguments has no sequence, no forward thread and no communication."""
    ops = read(save(kineto(event("cpu_op")))).ops
    assert (ops.sequence[0], ops.forward_thread[0], ops.comm[0]) == (-1, -1, -1)


@pytest.mark.parametrize(
    ("cat", "block"),
    [
        ("Operator", "ops"),
        ("CPU_OP", "ops"),
        ("User", "annotations"),
        ("Runtime", "launches"),
        ("hpu_op", "launches"),
        ("xpu_driver", "launches"),
        ("privateuse1_runtime", "launches"),
        ("Kernel", "kernels"),
        ("Memcpy", "kernels"),
        ("Memset", "kernels"),
        ("mtia_ccp_events", "kernels"),
    ],
)
def test_names_of_categories(save, cat, block):
    """Categories of old releases and of other vendors are known by any case."""
    trace = read(save(kineto(event("user_annotation", "step"), event(cat, "a launch"))))
    assert "a launch" in names(trace, getattr(trace, block))


@pytest.mark.parametrize(
    "cat", ["python_function", "gpu_user_annotation", "gpu_user_Annotation", "overhead", "Trace", "ac2g"]
)
def test_dropped_categories(save, cat):
    """Frames, copies of annotations on the GPU, the profiler's own time and flows are counted, not kept."""
    trace = read(save(kineto(event("cpu_op"), event(cat, "noise"))))
    assert (trace.names, trace.source.events) == (("x",), 2)


def test_frames_of_known_functions(save):
    """Of the frames those that tell pipeline work are kept, apart from ranges of the same text."""
    known = "torch/distributed/pipelining/stage.py(857): forward_one_chunk"
    frames = [
        event("python_function", name) for name in (known, "train.py(3): forward_one_chunk", "nn.Module: Linear_0")
    ]
    halves = [event("python_function", known, ph=half) for half in "BE"]
    trace = read(save(kineto(*frames, *halves, event("user_annotation", known), event("cpu_op"))))
    trace.self_check()
    assert names(trace, trace.frames) == [known]
    assert names(trace, trace.annotations) == [known]
    assert codes(trace) == {}


def test_frames_of_layers(save):
    """Modules that are layers are kept, those inside them are not."""
    modules = [event("python_function", f"nn.Module: {name}") for name in ("TransformerLayer_3", "LayerNorm_3")]
    trace = read(save(kineto(*modules, event("cpu_op"))))
    assert names(trace, trace.frames) == ["nn.Module: TransformerLayer_3"]


def test_calls_that_start_nothing_are_no_launches(save):
    """A call of the runtime is kept if a kernel carries its number, or if its name says that it launches."""
    calls = [
        event("cuda_runtime", "cudaStreamSynchronize", args={"correlation": 1}),
        event("cuda_runtime", "cuGraph", args={"correlation": 2}),
        event("cuda_runtime", "cudaLaunchKernel", args={"correlation": 3}),
    ]
    trace = read(save(kineto(*calls, event("kernel", "k", args={"correlation": 2}))))
    assert names(trace, trace.launches) == ["cuGraph", "cudaLaunchKernel"]


def test_plain_chrome_events_are_annotations(save):
    """In a trace without any mark of Kineto, events of any category are annotations on their thread."""
    trace = read(
        save([event("forward-compute", "F0"), event("", "B0", tid="lane 2"), {"ph": "X", "name": "C", "ts": 1}])
    )
    assert trace.source.format == "chrome"
    assert names(trace, trace.annotations) == ["F0", "B0", "C"]
    assert [thread.tid for thread in trace.threads] == ["", "lane 2", "11"]


def test_unknown_categories_of_kineto_are_dropped(save):
    """A category that Kineto invents later is no annotation."""
    assert len(read(save(kineto(event("cpu_op"), event("new_thing")))).annotations) == 0


@pytest.mark.parametrize("odd", [{"ph": "?"}, {"ph": "s", "ts": []}, {"ph": "X", "cat": "kernel", "dur": "4"}, {}])
def test_phases_that_tell_nothing(save, odd):
    """An event of an unknown phase, of none or of one that is passed over counts, and those around it are kept."""
    around = event("cpu_op"), {"ph": "i", "s": "t"}, {"ph": "B", "cat": "cpu_op", "ts": 7, "name": "y"}
    trace = read(save(kineto(*around, odd, {"ph": "E", "ts": 9, "cat": "cpu_op", "name": "y"})))
    assert (names(trace, trace.ops), trace.source.events) == (["x", "y"], 5)


def test_halves(save):
    """Beginnings and ends pair by thread, whatever their order, and arguments may stand on either."""
    halves = [
        {"ph": "E", "name": "inner", "pid": 1, "tid": 1, "ts": 3, "args": {"mb": 1}},
        {"ph": "B", "name": "outer", "pid": "1", "tid": "1", "ts": 1},
        {"ph": "B", "name": "inner", "pid": 1, "tid": 1, "ts": 2},
        {"ph": "E", "pid": 1, "tid": 1, "ts": "4.5"},
        {"ph": "E", "name": "never begun", "pid": 1, "tid": 1, "ts": 5},
        {"ph": "B", "name": "never ended", "pid": 2, "tid": 1, "ts": 5},
    ]
    trace = read(save(halves))
    found = dict(zip(names(trace, trace.annotations), trace.annotations.end - trace.annotations.start, strict=True))
    assert found == {"inner": 1000, "outer": 3500}
    assert codes(trace)["unpaired-events"].startswith("2 ")


def test_halves_of_operators_merge_arguments(save):
    """What only the end of an operator tells is not lost."""
    halves = [
        event("cpu_op", "op", 1, ph="B"),
        event("cpu_op", "op", 3, ph="E", args={"Sequence number": 4, "Collective name": "send", "Dst Rank": 2}),
        event("kernel", "k", 3, ph="B", args={"stream": 7, "correlation": 9}),
        event("kernel", "k", 5, ph="E"),
    ]
    trace = read(save(kineto(*halves)))
    assert (trace.ops.sequence.tolist(), trace.comms[trace.ops.comm[0]].dst) == ([4], 2)
    assert (trace.kernels.correlation.tolist(), trace.kernels.kind.tolist(), trace.kernels.end.tolist()) == (
        [9],
        [0],
        [5000],
    )


def test_communication(save):
    """Arguments of a call of the communication library, whether quoted once or twice."""
    args = {
        "Collective name": '"send"',
        "Process Group Name": "3",
        "Process Group Description": "mesh_pp",
        "Process Group Ranks": "[0, 4]",
        "Group size": 2,
        "Dst Rank": 4,
        "In msg nelems": 5,
        "Out msg nelems": 9,
        "dtype": "BFloat16",
        "Seq": 11,
        "Comms Id": 2**80,
    }
    trace = read(save(kineto(event("cpu_op", args=args), event("cpu_op", args=args), event("kernel", args=args))))
    (call,) = trace.comms
    assert trace.ops.comm.tolist() == trace.kernels.comm.tolist() * 2 == [0, 0]
    assert (call.op, call.group, call.description, call.ranks) == ("send", "3", "mesh_pp", (0, 4))
    assert (call.group_size, call.src, call.dst, call.elements, call.dtype, call.seq) == (2, -1, 4, 9, "BFloat16", 11)


@pytest.mark.parametrize("ranks", ["[0, 1, ...]", "", "[]", "[a]"])
def test_ranks_cut_short(save, ranks):
    """A list of ranks that is cut short tells none."""
    args = {"Collective name": "x", "Process Group Ranks": ranks}
    assert read(save(kineto(event("cpu_op", args=args)))).comms[0].ranks == ()


def test_rank_arguments_alone_make_no_communication(save):
    """Only a name of a collective, a group or a peer makes a call one of communication."""
    args = [{"dtype": "Float", "Seq": 1}, {"Src Rank": 0}, {"Process Group Name": ""}]
    trace = read(save(kineto(*(event("cpu_op", args=arg) for arg in args))))
    assert (trace.ops.comm >= 0).tolist() == [False, True, True]


def test_thread_names(save):
    """All names of a thread are kept, oldest first, and only of threads that did something."""
    named = [
        {"ph": "M", "name": "thread_name", "pid": pid, "tid": 11, "args": {"name": name}}
        for pid, name in ((10, "thread 11 (python)"), (0, "stream 11 "), (10, "pt_autograd_0"), (10, "pt_autograd_0"))
    ]
    (thread,) = read(save(kineto(*named, event("cpu_op")))).threads
    assert thread.names == ("thread 11 (python)", "pt_autograd_0")


def test_odd_types_cost_no_other_event(save):
    """A field of another type than it should be is read as far as it goes; what is no event is counted."""
    odd = [
        event("cpu_op", "a", pid=1.0, tid=None, args=[1, 2]),
        event("cpu_op", "b", ts="1.5", dur="2"),
        event("cpu_op", "c", args={"Sequence number": "12", "Fwd thread id": 2**40, "correlation": {}}),
        event("kernel", "d", args={"correlation": 2**70, "stream": 7.0, "Process Group Ranks": [0, "x"], "dtype": 3}),
        event("cpu_op", "e", ts=None),
        event("cpu_op", 5),
        None,
        7,
        [],
        {},
    ]
    trace = read(save(kineto(event("cpu_op", "first"), *odd, event("cpu_op", "last"))))
    assert names(trace, trace.ops) == ["first", "a", "b", "c", "5", "last"]
    assert trace.ops.sequence.tolist() == [-1, -1, -1, 12, -1, -1]
    assert trace.ops.start[2] == 1500
    assert trace.kernels.correlation.tolist() == [-1]
    assert "mended events with values of another type than they should have (5)" in codes(trace)["repaired"]
    assert "left out 3 pieces, in bytes: 4 at byte" in codes(trace)["repaired"]
    assert trace.doubts.unplaced == 1
    assert trace.source.events == 12


def test_bad_utf8_in_names(save):
    """Bytes that are no UTF-8 are replaced, not fatal."""
    text = json.dumps(kineto(event("cpu_op", "cafe"), event("cpu_op", "tea"))).encode().replace(b"cafe", b"caf\xff")
    assert names(read(save(text)), read(save(text)).ops) == ["caf\ufffd", "tea"]


@pytest.mark.parametrize("digits", [20, 400])
def test_integers_beyond_64_bits(save, digits):
    """An integer of any length costs nothing where it is not used, and only its value where it is."""
    big = int("9" * digits)
    args = {"Comms Id": big, "External id": big, "correlation": big, "stream": 7}
    text = json.dumps(kineto(event("kernel", "k", args=args), event("kernel", "l", ts=big), event("cpu_op", pid=big)))
    trace = read(save(text))
    assert (names(trace, trace.kernels), trace.kernels.correlation.tolist()) == (["k"], [-1])
    assert len(trace.ops) == 1
    assert trace.doubts.unplaced == 1


def test_implausible_times(save):
    """A negative length is taken as none, a time beyond all calendars is left out, and both are counted."""
    times = [
        event("cpu_op", "a", 5, -3),
        event("cpu_op", "b", 1e300),
        event("cpu_op", "c", 1, 1e17),
        event("cpu_op", "d"),
    ]
    trace = read(save(kineto(*times, baseTimeNanoseconds=BASE)))
    assert names(trace, trace.ops) == ["a", "d"]
    assert trace.ops.end[0] == trace.ops.start[0] == BASE + 5000
    assert (trace.doubts.shortened, trace.doubts.unplaced) == (1, 2)


def test_base_may_not_push_times_over_the_edge(save):
    """A base and a time whose sum does not fit are left out, not wrapped around."""
    trace = read(
        save(kineto(event("cpu_op", ts=2**52, dur=2**52), event("cpu_op", "y"), baseTimeNanoseconds=2**62 - 1))
    )
    assert names(trace, trace.ops) == ["y"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("filler", [1, 1000])
def test_members_before_and_after_the_events(save, after, filler):
    """Metadata count wherever they stand; other members may hold anything of any size."""
    members = {
        "otherData": {"traceEvents": [{"ph": "X"}] * filler, 'quote " \\ { [': ["},{", '\\"'] * filler, "n": -1.5e3},
        "distributedInfo": {"rank": 3, "world_size": 8, "backend": "nccl", "pg_count": 99, "pg_config": [
            {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]},
            {"pg_name": "1", "pg_desc": "mesh_pp", "ranks": "[1, 5]"},
            {"pg_name": "2", "ranks": "[1, 5, ...]"},
            None,
        ]},
        "deviceProperties": [{"id": 0, "name": "H100"}, {"id": 1}, {}, 3],
        "host_name": "node7",
        "displayTimeUnit": "ns",
        "baseTimeNanoseconds": BASE,
        "x": None, "y": True, "z": [],
    }  # fmt: skip
    events = {"traceEvents": [event("cpu_op")]}
    path = save(events | members if after else members | events)
    for window in (64, 1000, 1 << 20):
        trace = read(path, window=window)
        told = trace.identity
        assert (told.rank, told.rank_source, told.world_size, told.backend, told.host) == (
            3,
            "metadata",
            8,
            "nccl",
            "node7",
        )
        assert [(device.id, device.name) for device in told.devices] == [(0, "H100"), (1, "")]
        assert [(group.description, group.ranks) for group in told.groups] == [
            ("default_pg", (0, 1)),
            ("mesh_pp", (1, 5)),
            ("", ()),
        ]
        assert (trace.absolute, trace.ops.start.tolist()) == (True, [BASE + 1000])


@pytest.mark.parametrize("name", ["trace.json", "rank2.json"])
def test_metadata_without_rank(save, name):
    """Distributed information without a rank leaves it to the file name."""
    trace = read(save(kineto(event("cpu_op"), distributedInfo={"backend": "nccl"}), name))
    assert trace.identity.rank == (2 if "2" in name else None)


@pytest.mark.parametrize("rank", ["3", 3])
def test_file_name_against_metadata(save, rank):
    """A file name that contradicts the metadata is reported, and the metadata are believed."""
    path = save(kineto(event("cpu_op"), distributedInfo={"rank": rank}), "rank4.json")
    trace = read(path)
    assert (trace.identity.rank, trace.identity.rank_source) == (3, "metadata")
    (finding,) = trace.findings
    assert (finding.code, finding.severity, finding.input) == ("metadata-conflict", "warning", str(path))


@pytest.mark.parametrize("text", ["\n\n  {}", "\ufeff{}", "\ufeff \n{}"])
def test_leading_white_space_and_byte_order_mark(save, text):
    """White space and a byte order mark before the document are no part of it."""
    assert len(read(save(text.replace("{}", json.dumps(kineto(event("cpu_op")))))).ops) == 1


def test_a_document_cut_before_its_events(save):
    """A document that ends before its events names the file, the byte, what was expected and what to do."""
    path = save(json.dumps(kineto(event("cpu_op")))[:10])
    with pytest.raises(InputError, match=r"broken JSON at byte 10: expected .*, found the end of the file") as caught:
        read(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("document", [kineto(), kineto(event("python_function")), [], kineto({"ph": "M", "name": "x"})])
def test_nothing_to_use(save, document):
    """A trace without kernels, operators and annotations is an error that says so."""
    with pytest.raises(InputError, match=r"expected kernels, operators or annotations, found none among \d+ events"):
        read(save(document))


def test_events_in_any_order(save, rows):
    """The order of events in the file changes neither what is read nor the numbers of names, threads and lanes."""
    events = [
        event(cat, f"{cat} {number % 7}", number, 3, tid=number % 5, args={"stream": number % 3})
        for number in range(60)
        for cat in ("cpu_op", "kernel", "user_annotation")
    ]
    first = read(save(kineto(*events)))
    random.Random(1).shuffle(events)  # noqa: S311 - no secret
    second = read(save(kineto(*events)))
    assert rows(first) == rows(second)
    assert (first.names, first.threads) == (second.names, second.threads)


def test_progress_ends_at_the_size_of_the_file(save):
    """Progress never falls and ends at the bytes of the file."""
    path, seen = save(kineto(*[event("cpu_op")] * 200)), []
    read(path, progress=seen.append, window=1000)
    assert seen == sorted(seen)
    assert (seen[-1], len(seen) > 10) == (path.stat().st_size, True)


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collector_is_left_as_found(save, enabled):
    """Reading switches the collector off for its time, and back only if it was on."""
    (gc.enable if enabled else gc.disable)()
    try:
        read(save(kineto(event("cpu_op"))))
        with pytest.raises(InputError):
            read(save("{"))
        assert gc.isenabled() is enabled
    finally:
        gc.enable()
