"""The generator against closed forms, against itself, and against the orders that torch makes."""

import gzip
import json
import re
from collections import defaultdict
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from tests.generator import Job, orders, truth, write

CLOSED_FORMS = [
    ("gpipe", 4, 8, 1),
    ("gpipe-reversed-drain", 3, 5, 1),
    ("1f1b", 4, 8, 1),
    ("1f1b", 8, 3, 1),
    ("eager-1f1b", 4, 12, 1),
    ("interleaved-1f1b", 4, 8, 2),
    ("interleaved-1f1b", 2, 6, 4),
    ("looped-bfs", 4, 8, 2),
    ("looped-bfs", 3, 6, 2),
]
ROUGH = {"jitter": 0.05, "p2p_ns": 200_000, "host_gap_ns": 70_000, "seed": 3}
JOBS = {
    "1f1b": Job(**ROUGH),
    "1f1b fused": Job(**ROUGH, fused=True, labels="none", p2p_args="op"),
    "1f1b ahead": Job(**ROUGH, recv_ahead=1, comm_labels=True),
    "gpipe torch labels": Job(**ROUGH, schedule="gpipe", p=3, m=6, labels="torch", metadata="after"),
    "gpipe epoch": Job(**ROUGH, schedule="gpipe", p=2, m=4, era="epoch-fraction", p2p_args="none"),
    "interleaved": Job(**ROUGH, schedule="interleaved-1f1b", v=2, scale=(1.0, 1.0, 1.3, 1.0)),
    "looped-bfs two ranks": Job(**ROUGH, schedule="looped-bfs", p=2, m=4, v=2, kernel_gap_ns=3_000),
    "zb-h1": Job(**ROUGH, schedule="zb-h1"),
    "zb-v": Job(**ROUGH, schedule="zb-v", v=2),
    "tp and dp": Job(**ROUGH, p=2, m=4, d=2, t=2, kernel_gap_ns=1_000, dp_early=True, slow=(("*.1.1F*", 1.5),)),
    "cpu": Job(**ROUGH, p=3, m=4, backend="cpu"),
    "cpu gpipe": Job(**ROUGH, schedule="gpipe", p=2, m=4, t=2, d=2, backend="cpu", labels="torch"),
    "one kernel, no transfer time": Job(p=2, m=2, kernels=1, forward_ns=100_000, backward_ns=150_000),
}
ALL = pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())


@pytest.mark.parametrize(("schedule", "p", "m", "v"), CLOSED_FORMS)
def test_bubble_is_the_closed_form(schedule, p, m, v):
    """Balanced stages and free messages leave what the papers say."""
    job = Job(schedule=schedule, p=p, m=m, v=v, forward_ns=12_000_000, backward_ns=24_000_000)
    assert truth(job).bubble == pytest.approx((p - 1) / (v * m + p - 1), abs=1e-9)


@pytest.mark.parametrize("m", [1, 3])
def test_naive_leaves_all_ranks_but_one_idle(m):
    """One rank works at a time."""
    assert truth(Job(schedule="naive", p=4, m=m)).bubble == pytest.approx(3 / 4, abs=1e-9)


@pytest.mark.parametrize(("schedule", "v", "m"), [("zb-h1", 1, 8), ("interleaved-zb", 2, 8)])
def test_zero_bubble_idles_for_forward_and_input_gradient_less_weight_gradient(schedule, v, m):
    """(p - 1)(F + I - W) / v, in the window."""
    job = Job(schedule=schedule, v=v, m=m, weight_fraction=0.4)
    idle = 3 * (10_000_000 + 12_000_000 - 8_000_000) / v
    assert truth(job).bubble == pytest.approx(idle / (m * 30_000_000 + idle), abs=1e-9)


def test_zb_v_idles_for_half_an_input_gradient_a_rank():
    """(p - 1) I / 2 in the window, for I >= F >= W."""
    idle = 3 * 10_000_000 / 2
    assert truth(Job(schedule="zb-v", v=2)).bubble == pytest.approx(idle / (240_000_000 + idle), abs=1e-9)


def test_latency_of_gpipe_is_paid_on_the_way_in_and_out():
    """2(p - 1) transfers where receives are posted early enough, whatever m is."""
    job = Job(schedule="gpipe", recv_ahead=1, p2p_ns=100_000)
    assert truth(job).steps[0].pipelines[0].window == 11 * 30_000_000 + 6 * 100_000


def test_host_gaps_are_host():
    """A rank that never waits for an input loses exactly its gaps."""
    rank = truth(Job(p=1, host_gap_ns=50_000)).steps[0].pipelines[0].ranks[0]
    assert (rank.host, rank.wait, rank.transfer) == (15 * 50_000, 0, 0)


HAND_MADE = Job(p=2, m=1, steps=1, p2p_ns=1_000_000, host_gap_ns=500_000)


def test_idle_time_is_split_where_the_input_arrives():
    """Two ranks and one micro-batch, worked out by hand."""
    pipeline = truth(HAND_MADE).steps[0].pipelines[0]
    assert pipeline.window == 63_500_000
    first, last = pipeline.ranks
    assert (first.wait, first.transfer, first.host) == (32_000_000, 1_000_000, 500_000)
    assert (last.wait, last.transfer, last.host) == (10_000_000 + 21_500_000, 1_000_000, 1_000_000)
    assert (last.actions[0].wait, last.actions[0].transfer, last.tail) == (10_000_000, 1_000_000, 21_500_000)


def test_a_message_that_moves_during_work_costs_only_its_rest():
    """Receives posted ahead: the second transfer begins while the first micro-batch is worked on."""
    job = Job(schedule="gpipe", p=2, m=2, recv_ahead=1, p2p_ns=15_000_000)
    second = truth(job).steps[0].pipelines[0].ranks[1].actions[1]
    assert (second.name, second.wait, second.transfer) == ("1F1", 0, 5_000_000)


def test_receives_spin_until_their_message_is_there(tmp_path):
    """The kernel of a receive runs from its posting to the arrival, the send's from the action's end."""
    first, last = (rows(read(path), "kernel") for path in write(HAND_MADE, tmp_path))
    spans = [[(r["start"], r["end"]) for r in found if "SendRecv" in r["name"]] for found in (first, last)]
    origin = min(r["start"] for r in first)
    moments = [sorted(tuple((ns - origin) / 1e6 for ns in span) for span in lane) for lane in spans]
    assert moments == [[(10.0, 11.0), (10.0, 43.0)], [(-0.5, 11.0), (42.0, 43.0)]]


@ALL
def test_parts_add_up_to_the_window(job):
    """To the nanosecond, for every rank."""
    for step in truth(job).steps:
        for pipeline in step.pipelines:
            for rank in pipeline.ranks:
                parts = rank.useful + rank.wait + rank.transfer + rank.host + rank.dp
                assert parts == pipeline.window
                assert min(rank.wait, rank.transfer, rank.host, rank.dp) >= 0
                assert all(a.end <= b.start for a, b in pairwise(rank.actions))


@ALL
def test_an_action_waits_for_its_input(job):
    """No forward before the stage below, no backward before the stage above."""
    for pipeline in (p for step in truth(job).steps for p in step.pipelines):
        spans = {a.name: a for rank in pipeline.ranks for a in rank.actions}
        for name, action in spans.items():
            below = spans.get(f"{action.stage - 1}F{action.micro}") if action.kind == "F" else None
            above = spans.get(f"{action.stage + 1}{action.kind}{action.micro}") if action.kind in "BI" else None
            assert all(other is None or other.end <= action.start for other in (below, above)), name


def test_an_order_that_cannot_run_is_refused():
    """Interleaved schedules need whole groups of micro-batches."""
    with pytest.raises(ValueError, match="whole groups"):
        orders(Job(schedule="interleaved-1f1b", p=4, m=9, v=2))


def read(path):
    """A file's content, its numbers exact."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data, parse_float=Decimal)


def rows(content, *cats):
    """Complete events of some categories, with whole nanoseconds."""
    found = []
    for event in content["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in cats:
            start, took = event["ts"] * 1000, event["dur"] * 1000
            assert start == int(start)
            assert took == int(took)
            found.append({**event, "start": int(start), "end": int(start + took)})
    return found


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
    """Every rank's number and truth over the steps."""
    lanes = defaultdict(list)
    for step in truth(job).steps:
        for pipeline in step.pipelines:
            for rank in pipeline.ranks:
                lanes[rank.rank].append(rank)
    return lanes


def work(content, job):
    """The rows that are an action's work: kernels, or outermost operators on CPU."""
    if job.backend == "cuda":
        found = rows(content, "kernel")
        keep = re.compile(r"^(?!.*(SendRecv|multi_tensor))")
    else:
        found = [r for r in rows(content, "cpu_op") if "aten::_foreach" not in r["name"]]
        keep = re.compile(r"^(autograd::engine|aten::|c10d::allreduce)")
    return [r for r in found if keep.match(r["name"]) and not is_gradient(r, job)]


def is_gradient(row, job):
    """Whether a row is an all-reduce of gradients: far longer than those inside actions, on CPU told by that alone."""
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
        assert union(found) == sum(lane.useful for lane in lanes[rank])
        origin = min(r["start"] for r in found) - lanes[rank][0].actions[0].start
        assert max(r["end"] for r in found) - origin == lanes[rank][-1].actions[-1].end


CUDA = {name: job for name, job in JOBS.items() if job.backend == "cuda"}


@pytest.mark.parametrize("job", CUDA.values(), ids=CUDA.keys())
def test_launches_precede_their_kernels(job, contents):
    """Each kernel has one launch, before it; streams run one kernel at a time; each arrow has two ends."""
    for content in contents(job):
        launched = {r["args"]["correlation"]: r for r in rows(content, "cuda_runtime")}
        kernels = rows(content, "kernel")
        assert len(launched) == len(kernels)
        streams = defaultdict(list)
        for kernel in kernels:
            assert launched[kernel["args"]["correlation"]]["end"] <= kernel["start"], kernel
            streams[kernel["tid"]].append((kernel["start"], kernel["end"]))
        assert all(a[1] <= b[0] for lane in streams.values() for a, b in pairwise(sorted(lane)))
        for cat in ("ac2g", "fwdbwd"):
            ends = [[e["id"] for e in content["traceEvents"] if (e["ph"], e.get("cat")) == (ph, cat)] for ph in "sf"]
            assert sorted(ends[0]) == sorted(ends[1])
            assert ends[0]


@pytest.mark.parametrize("job", CUDA.values(), ids=CUDA.keys())
def test_host_threads_nest(job, contents):
    """On a host thread a row lies within the one around it."""
    for content in contents(job):
        lanes = defaultdict(list)
        for row in rows(content, "cpu_op", "user_annotation", "cuda_runtime"):
            lanes[row["tid"]].append(row)
        assert len(lanes) == 2
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


def test_messages_name_their_peers(tmp_path):
    """On kernels or on operators only, with ranks of the whole job."""
    for place, cat in (("kernel", "kernel"), ("op", "cpu_op"), ("none", "none")):
        job = Job(p=2, m=2, d=2, p2p_args=place, steps=1)
        content = read(write(job, tmp_path / place)[1])
        for where in ("kernel", "cpu_op"):
            peers = {r["args"]["Dst Rank"] for r in rows(content, where) if "Dst Rank" in r["args"]}
            assert peers == ({3} if where == cat or place == "kernel" else set()), (place, where)


def test_a_job_takes_lists():
    """What was given as a list is kept as a tuple."""
    assert Job(scale=[1.0, 2.0, 1.0, 1.0], missing=[2]) == Job(scale=(1.0, 2.0, 1.0, 1.0), missing=(2,))


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


def test_neutral_names_tell_no_rank(tmp_path):
    """Neither the file's name nor its traceName."""
    job = Job(p=2, m=2, neutral_names=True)
    paths = write(job, tmp_path)
    assert all(re.fullmatch(r"trace_[0-9a-f]{12}\.json\.gz", p.name) for p in paths)
    assert len(set(paths)) == 2


def test_same_seed_same_bytes(tmp_path):
    """And another seed, other times."""
    jobs = [Job(p=2, m=4, t=2, jitter=0.1, seed=seed) for seed in (1, 1, 2)]
    one, two, three = ([p.read_bytes() for p in write(job, tmp_path / str(i))] for i, job in enumerate(jobs))
    assert one == two
    assert one != three


TORCH_ORDERS = Path(__file__).parents[2] / "shared/traces/orders/torch_2.13_orders.json.gz"


@pytest.mark.skipif(not TORCH_ORDERS.exists(), reason="the file of orders made by torch is not beside the checkout")
def test_orders_are_those_of_torch():
    """Every shape that torch was asked for."""
    ours = {"zbv": "zb-v", "dualpipev": None}
    for entry in json.loads(gzip.decompress(TORCH_ORDERS.read_bytes())):
        name = ours.get(entry["schedule"], entry["schedule"])
        if name is None:
            continue
        job = Job(schedule=name, p=entry["p"], m=entry["m"], v=entry["v"])
        lanes = [[cell for cell in entry["order"][str(r)] if cell and "REDUCE" not in cell] for r in range(job.p)]
        assert [[str(action) for action in lane] for lane in orders(job)] == lanes, (name, job.p, job.m, job.v)
