"""The rows of the files: kernels, launches, operators, arrows, labels and messages."""

from __future__ import annotations

import re
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.emit.cuda_comms import DP_STREAM
from bubblescope.emit.simulate import simulate
from tests.emit.jobs import JOBS, read, rows

ALL = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The files of a job of ``JOBS``, each written and read once."""
    kept = {}

    def of(job):
        if job not in kept:
            kept[job] = [read(path) for path in write(job, tmp_path_factory.mktemp("traces"))]
        return kept[job]

    return of


def stages(job):
    """Every rank's number, and its useful time and last end in the passes of all steps."""
    lanes = defaultdict(list)
    for step in truth(job).steps:
        for rank in (rank for pipeline in step.pipelines for rank in pipeline.ranks):
            lanes[rank.rank].append((rank.actions[0].start, rank.actions[-1].end, rank.useful))
    for beside in (part for step in simulate(job) if step.training for part in step.passes if part.evaluates):
        for rank in range(job.world):  # of a step that trains, too, the truth leaves the evaluation out
            lane = beside.runs[job.place(rank).dp].lanes[job.place(rank).pp]
            useful = sum(part.useful for ran in lane for part in ran.parts)
            lanes[rank].append((lane[0].start, lane[-1].end, useful))
    return {rank: sorted(lane) for rank, lane in lanes.items()}


def work(content, job):
    """The rows that are an action's work: kernels, or outermost operators on CPU."""
    if job.backend == "cuda":
        found = rows(content, "kernel")
        keep = re.compile(r"^(?!.*(SendRecv|multi_tensor|Scatter|FillFunctor|bfloat16_copy))")
        found = [
            r | ({"name": "all-to-all"} if r["args"].get("Collective name") == "all_to_allv" else {}) for r in found
        ]
    else:
        found = [r for r in rows(content, "cpu_op") if not re.match("aten::(_foreach|zero_|fill_)", r["name"])]
        keep = re.compile(r"^(autograd::engine|aten::|c10d::allreduce)")
    return [r for r in found if keep.match(r["name"]) and not is_gradient(r, job)]


def is_gradient(row, job):
    """Whether a row is a reduction of gradients: on a stream of its own; on CPU told by its length alone."""
    if job.backend == "cuda":
        return row["tid"] == DP_STREAM
    return "allreduce" in row["name"].lower() and row["end"] - row["start"] >= job.dp_ns


def union(found):
    """Length of a union of intervals."""
    total = reached = 0
    for row in sorted(found, key=lambda r: r["start"]):
        total += max(0, row["end"] - max(reached, row["start"]))
        reached = max(reached, row["end"])
    return total


@ALL
def test_written_work_is_the_useful_time(job, contents):
    """The union of a file's work, and where it begins and ends, are the truth's."""
    lanes = stages(job)
    for rank, content in enumerate(contents(job)):
        found = work(content, job)
        assert union(found) == sum(useful for *_, useful in lanes[rank])
        origin = min(r["start"] for r in found) - lanes[rank][0][0]
        assert max(r["end"] for r in found) - origin == lanes[rank][-1][1]


CUDA = {name: job for name, job in JOBS.items() if job.backend == "cuda"}


@pytest.mark.parametrize("job", CUDA.values(), ids=CUDA.keys())
def test_launches_precede_their_kernels(job, contents):
    """Each kernel or copy has one launch, before it; streams run one at a time; each arrow has two ends."""
    for content in contents(job):
        launched = {r["args"]["correlation"]: r for r in rows(content, "cuda_runtime")}
        kernels = rows(content, "kernel", "gpu_memcpy")
        assert len(launched) == len(kernels)
        streams = defaultdict(list)
        for kernel in kernels:
            assert launched[kernel["args"]["correlation"]]["end"] <= kernel["start"], kernel
            streams[kernel["tid"]].append((kernel["start"], kernel["end"]))
        assert all(a[1] <= b[0] for lane in streams.values() for a, b in pairwise(sorted(lane)))
        for cat in ("ac2g", "fwdbwd"):
            ends = [[e["id"] for e in content["traceEvents"] if (e["ph"], e.get("cat")) == (ph, cat)] for ph in "sf"]
            assert sorted(ends[0]) == sorted(ends[1])
            assert bool(ends[0]) == (cat == "ac2g" or job.trains)


@pytest.mark.parametrize("job", CUDA.values(), ids=CUDA.keys())
def test_host_threads_nest(job, contents):
    """On a host thread a row lies within the one around it."""
    for content in contents(job):
        lanes = defaultdict(list)
        for row in rows(content, "cpu_op", "user_annotation", "cuda_runtime"):
            lanes[row["tid"]].append(row)
        assert len(lanes) == 1 + job.trains
        for lane in lanes.values():
            stack = []
            for row in sorted(lane, key=lambda r: (r["start"], -r["end"])):
                while stack and stack[-1]["end"] <= row["start"]:
                    stack.pop()
                assert not stack or row["end"] <= stack[-1]["end"], (stack[-1], row)
                stack.append(row)


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_backward_operators_carry_the_numbers_of_their_forward(backend, tmp_path):
    """In decreasing order, on a GPU on another thread; what makes no node carries the number of the next one."""
    job = Job(p=2, m=4, kernels=3, steps=1, backend=backend)
    found = sorted(rows(read(write(job, tmp_path)[1]), "cpu_op"), key=lambda r: r["start"])
    numbered = [r for r in found if "Sequence number" in r["args"]]
    nodes = [r["args"]["Sequence number"] for r in numbered if r["name"].startswith("autograd::engine")]
    assert nodes == [3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10]
    decoys = [r["args"]["Sequence number"] for r in numbered if re.search("_fused_adamw_|_foreach", r["name"])]
    assert decoys == [13, 13]
    backward = [r for r in numbered if r["name"].startswith("autograd::engine")]
    assert {r["args"]["Fwd thread id"] for r in backward} == {1}
    assert (backward[0]["tid"] == backward[0]["pid"]) == (backend == "cpu")


def test_labels_spell_the_orders(tmp_path):
    """PP ranges, sorted by time, are the rank's order."""
    job = Job(schedule="interleaved-1f1b", p=2, m=4, v=2, steps=1)
    for rank, path in enumerate(write(job, tmp_path)):
        ranges = sorted(rows(read(path), "user_annotation"), key=lambda r: r["start"])
        names = [r["name"][3:] for r in ranges if r["name"].startswith("PP:")]
        assert names == list(truth(job).orders[rank])


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
def test_layers_are_counted_over_the_model(backend, tmp_path):
    """Each forward opens a range around every layer of its stage; backwards open none."""
    job = Job(p=2, m=3, steps=1, stage_layers=(2, 3), layer_labels=True, backend=backend)
    for path, layers in zip(write(job, tmp_path), ([0, 1], [2, 3, 4]), strict=True):
        ranges = sorted(rows(read(path), "user_annotation"), key=lambda r: r["start"])
        names = [r["name"] for r in ranges if r["name"].startswith("layers.")]
        assert names == [f"layers.{layer}" for layer in layers] * 3


def test_messages_name_their_peers(tmp_path):
    """On kernels or on operators only, with ranks of the whole job."""
    for place, cat in (("kernel", "kernel"), ("op", "cpu_op"), ("none", "none")):
        job = Job(p=2, m=2, d=2, p2p_args=place, steps=1)
        content = read(write(job, tmp_path / place)[1])
        for where in ("kernel", "cpu_op"):
            peers = {r["args"]["Dst Rank"] for r in rows(content, where) if "Dst Rank" in r["args"]}
            assert peers == ({3} if where == cat or place == "kernel" else set()), (place, where)


def test_clocks_are_skewed_and_drift(tmp_path):
    """A rank's clock shows its offset at the start and its drift later."""
    plain, bent = Job(p=2, m=2), Job(p=2, m=2, skew_ns=(0, 1_234_567), drift_ppm=(0.0, 100.0))
    first, second = (write(job, tmp_path / str(i))[1] for i, job in enumerate((plain, bent)))
    pairs = zip(rows(read(first), "kernel"), rows(read(second), "kernel"), strict=True)
    offsets = [b["start"] - a["start"] for a, b in pairs]
    assert offsets[0] == pytest.approx(1_234_567 + 100e-6 * 5_000_000, abs=2_000)
    assert max(offsets) - min(offsets) == pytest.approx(100e-6 * truth(plain).steps[-1].end, rel=0.1)


@pytest.mark.parametrize("era", ["relative", "epoch-int", "epoch-fraction"])
@pytest.mark.parametrize("metadata", ["before", "after", "none"])
def test_eras_and_metadata(era, metadata, tmp_path):
    """The base stands in relative files only; keys stand where the job says."""
    job = Job(p=2, m=2, era=era, metadata=metadata, compress=False, missing=(0,))
    (path,) = write(job, tmp_path)
    assert path.name == "rank1_trace.json"
    content = read(path)
    assert ("baseTimeNanoseconds" in content) == (era == "relative")
    assert ("distributedInfo" in content) == (metadata != "none")
    keys = list(content)
    if metadata == "after":
        assert keys.index("traceEvents") < keys.index("distributedInfo")
    stamps = [e["ts"] for e in content["traceEvents"]]
    assert all(isinstance(ts, int if era == "epoch-int" else Decimal) for ts in stamps)
    assert (stamps[-1] > 1e15) == (era != "relative")


def test_receives_spin_until_their_message_is_there(tmp_path):
    """The kernel of a receive runs from its posting to the arrival, the send's from the action's end."""
    job = Job(p=2, m=1, steps=1, p2p_ns=1_000_000, host_gap_ns=500_000)
    first, last = (rows(read(path), "kernel") for path in write(job, tmp_path))
    spans = [[(r["start"], r["end"]) for r in found if "SendRecv" in r["name"]] for found in (first, last)]
    origin = min(r["start"] for r in first)
    moments = [sorted(tuple((ns - origin) / 1e6 for ns in span) for span in lane) for lane in spans]
    assert moments == [[(10.0, 11.0), (10.0, 43.0)], [(-0.5, 11.0), (42.0, 43.0)]]
