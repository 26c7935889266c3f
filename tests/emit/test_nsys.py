"""Exports of Nsight Systems: their schema, their rows, and that they tell what a Kineto trace of the same job tells."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing

import pytest

from bubblescope.emit import Job, write
from bubblescope.emit.nsys import mangled_name, short_name
from tests.emit.exports import KERNELS, LAUNCHES, RANGES, columns, exports, span
from tests.emit.jobs import JOBS, read, rows

CUDA = {name: job for name, job in JOBS.items() if job.backend == "cuda"}
ALL = pytest.mark.parametrize("job", CUDA.values(), ids=CUDA.keys())
SMALL = Job(p=2, m=2, d=2, steps=1, recorder="nsys")
HOST = {"one_file_a_host": True, "ranks_a_host": 2}
TINY = Job(p=1, m=1, steps=1, kernels=1, autograd=False, skew_ns=(7,), recorder="nsys")
TARGET = 0xFFFFFF


def of(path):
    """The columns of every table of a file."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: columns(connection, name) for name in names}


class TestSchema:
    """Tables have the columns of real exports."""

    def test_columns_are_those_of_real_exports(self, shared, tmp_path):
        """In name, type, order and whether they may be NULL; what is left out may always be."""
        real = of(shared / "real" / "nsys" / "no_kernel_table.sqlite")
        real |= of(shared / "real" / "nsys" / "mfu_2gpu_before.sqlite")
        for name, mine in exports(tmp_path, SMALL)[0].columns.items():
            assert [column for column in real[name] if column in mine] == mine, name
            assert not [column for column in real[name] if column not in mine and column[2]], name

    def test_columns_have_the_types_of_other_generators(self, shared, tmp_path):
        """Where both have them."""
        mine = exports(tmp_path, SMALL)[0].columns
        found = sorted(shared.glob("synthetic/nsys_*/*.sqlite"))
        assert found
        for path in found:
            for name, theirs in of(path).items():
                known = {column[0]: column[1] for column in mine.get(name, ())}
                assert not [column for column in theirs if known.get(column[0], column[1]) != column[1]], name

    @pytest.mark.parametrize("host", ["all", "launches", "none"])
    def test_no_table_is_empty(self, tmp_path, host):
        """What the host did is there as far as it is recorded."""
        (export,) = exports(tmp_path, TINY, host=host)
        assert all(export.tables.values())
        assert (LAUNCHES in export.tables, RANGES in export.tables) == (host != "none", host == "all")
        assert "NVTX_PAYLOAD_SCHEMAS" not in export.tables


class TestTiny:
    """One rank, one micro-batch, one kernel an action."""

    def test_kernels(self, tmp_path):
        """A forward, a backward, two of the optimizer, in nanoseconds of a session that began three seconds before."""
        (export,) = exports(tmp_path, TINY)
        found = sorted((*span(row), row["streamId"], row["deviceId"]) for row in export[KERNELS])
        first = 3_000_000_000 + 250_000
        assert found == [
            (first, first + 10_000_000, 7, 0),
            (first + 10_000_000, first + 30_000_000, 7, 0),
            (first + 30_020_000, first + 31_520_000, 7, 0),
            (first + 31_520_000, first + 33_020_000, 7, 0),
        ]

    def test_the_session_began_by_the_clock_of_the_host(self, tmp_path):
        """With the skew of the rank."""
        moments = [
            exports(tmp_path / str(skew), TINY, skew_ns=(skew,))[0]["TARGET_INFO_SESSION_START_TIME"][0]["utcEpochNs"]
            for skew in (0, 7)
        ]
        assert moments[1] - moments[0] == 7

    def test_labels(self, tmp_path):
        """Without autograd they stand alone, as they were written; a job of one rank makes no communicator."""
        (export,) = exports(tmp_path, TINY)
        found = sorted(export[RANGES], key=lambda row: row["start"])
        names = [
            "ProfilerStep#0",
            "Optimizer.zero_grad#AdamW.zero_grad",
            "PP:0F0",
            "PP:0B0",
            "Optimizer.step#AdamW.step",
        ]
        assert [row["text"] for row in found] == names
        assert {(row["eventType"], row["domainId"], row["textId"]) for row in found} == {(59, 0, None)}
        assert {row["globalTid"] for row in found} == {1 << 48 | 7000 << 24 | 7000}

    def test_launches(self, tmp_path):
        """By the main thread, and by autograd's for a backward, under the names that CUPTI gives functions."""
        (export,) = exports(tmp_path, TINY)
        found = sorted(export.named(LAUNCHES), key=lambda row: row["start"])
        assert [row["globalTid"] & TARGET for row in found] == [7000, 7005, 7000, 7000]
        assert {row["name"] for row in found} == {"cudaLaunchKernel_v7000"}

    def test_names_of_kernels(self):
        """Short ones have neither namespace nor template nor arguments; mangled ones are C++'s, or C's own."""
        name = (
            "void at::native::(anonymous namespace)::sweep<at::F<3>, (at::M)1>(at::native::(anonymous namespace)::T<3>)"
        )
        assert short_name(name) == "sweep"
        assert re.fullmatch(r"_Z5sweepILj\d+EEvv", mangled_name(name))
        assert (short_name("sm90_gemm"), mangled_name("sm90_gemm")) == ("sm90_gemm", "sm90_gemm")
        assert mangled_name("void f<1>(int)") != mangled_name("void f<2>(int)")


@ALL
def test_kernels_are_those_of_kineto(job, tmp_path):
    """Name, device, stream, correlation and time, counted from the epoch."""
    traces = [read(path) for path in write(job, tmp_path / "kineto")]
    for trace, export in zip(traces, exports(tmp_path / "nsys", job), strict=True):
        base = trace.get("baseTimeNanoseconds", 0)
        epoch = export["TARGET_INFO_SESSION_START_TIME"][0]["utcEpochNs"]
        known = Counter(
            (e["name"], e["args"]["device"], e["tid"], e["args"]["correlation"], e["start"] + base, e["end"] + base)
            for e in rows(trace, "kernel")
        )
        where = ("name", "deviceId", "streamId", "correlationId")
        found = Counter(
            (*(row[key] for key in where), row["start"] + epoch, row["end"] + epoch) for row in export.named(KERNELS)
        )
        if job.era == "epoch-int":  # Kineto wrote no nanoseconds then
            known, found = (Counter(key[:4] for key in each) for each in (known, found))
        assert found == known


@pytest.mark.parametrize("name", ["1f1b", "tp and dp", "dualpipe-v fused", "forward-only"])
def test_ranges_are_the_host_rows_of_kineto(name, tmp_path):
    """Under emit_nvtx every operator and label is pushed, with its number in autograd and one of its own."""
    job = CUDA[name]
    traces = [read(path) for path in write(job, tmp_path / "kineto")]
    for trace, export in zip(traces, exports(tmp_path / "nsys", job), strict=True):
        known = Counter()
        for event in rows(trace, "cpu_op", "user_annotation"):
            number = event["args"].get("Sequence number")
            known[event["name"] + ("" if number is None else f", seq = {number}"), event["tid"]] += 1
        found = [row for row in export[RANGES] if row["domainId"] == 0]
        texts = [re.fullmatch(r"(.*), op_id = (\d+)", row["text"]).groups() for row in found]
        assert Counter(zip((text for text, _ in texts), (r["globalTid"] & TARGET for r in found), strict=True)) == known
        assert len({ident for _, ident in texts}) == len(texts)


def test_without_autograd_only_labels_are_pushed(tmp_path):
    """Neither operators nor torch's own ranges of NCCL, but those of messages, and NCCL's."""
    export = exports(tmp_path, SMALL, autograd=False, comm_labels=True, p=2)[0]
    texts = [row["text"] for row in export[RANGES] if row["domainId"] == 0]
    assert {re.sub(r"\d+", "", text) for text in texts} == {
        "ProfilerStep#", "Optimizer.zero_grad#AdamW.zero_grad", "Optimizer.step#AdamW.step",
        "PP:F", "PP:B", "PP:SEND_F", "PP:RECV_B",
    }  # fmt: skip
    assert {"ncclSend", "ncclRecv"} < {call["name"] for call in export.calls()}


class TestJoins:
    """What belongs together is found by the ids."""

    @pytest.mark.parametrize("name", ["tp and dp", "dualpipe-v fused", "looped-bfs two ranks"])
    @pytest.mark.parametrize("layout", [{}, HOST], ids=["a rank", "a host"])
    def test_a_kernel_has_one_launch(self, tmp_path, name, layout):
        """Of its correlation and process, before it."""
        for export in exports(tmp_path, CUDA[name], **layout):
            launched = {(row["correlationId"], row["globalTid"] & ~TARGET): row for row in export[LAUNCHES]}
            assert len(launched) == len(export[LAUNCHES]) == len(export[KERNELS])
            for row in export[KERNELS]:
                assert launched[row["correlationId"], row["globalPid"]]["end"] <= row["start"]

    def test_processes_of_one_file_share_correlations(self, tmp_path):
        """The ids alone tell nothing where a file holds several ranks; devices are counted on their host."""
        first, second = exports(tmp_path, SMALL, **HOST)
        for export in (first, second):
            pids = [row["globalPid"] for row in export["PROCESSES"]]
            assert len(pids) == 2
            one, other = ({r["correlationId"] for r in export[KERNELS] if r["globalPid"] == pid} for pid in pids)
            assert one & other
            assert {row["deviceId"] for row in export[KERNELS]} == {0, 1}
        assert {row["pid"] for row in first["PROCESSES"]}.isdisjoint(row["pid"] for row in second["PROCESSES"])

    @ALL
    def test_threads_nest(self, job, tmp_path):
        """On a thread a range or launch lies within the one around it, NCCL's ranges too."""
        for export in exports(tmp_path, job):
            lanes = defaultdict(list)
            for row in export[RANGES] + export[LAUNCHES]:
                if row["end"] is not None:
                    lanes[row["globalTid"]].append(span(row))
            assert lanes.keys() <= {row["globalTid"] for row in export["ThreadNames"]}
            for lane in lanes.values():
                stack = []
                for start, end in sorted(lane, key=lambda each: (each[0], -each[1])):
                    while stack and stack[-1] <= start:
                        stack.pop()
                    assert not stack or end <= stack[-1]
                    stack.append(end)

    def test_rows_stand_in_no_order(self, tmp_path):
        """Neither of time nor of ids."""
        export = exports(tmp_path, SMALL)[0]
        for name in (KERNELS, LAUNCHES, RANGES):
            starts = [row["start"] for row in export[name]]
            assert starts != sorted(starts)


class TestNccl:
    """What NCCL tells of its own calls."""

    @ALL
    def test_kernels_are_launched_in_calls(self, job, tmp_path):
        """A message of its own in ncclSend or ncclRecv, a batch where its group ends, a reduction in ncclAllReduce."""
        allowed = {"SendRecv": {"ncclSend", "ncclRecv", "ncclGroupEnd"}}
        allowed |= {name: {f"nccl{name}"} for name in ("AllReduce", "ReduceScatter")}
        for export in exports(tmp_path, job):
            names = {row["correlationId"]: row["name"] for row in export.named(KERNELS)}
            launches = [r for r in export[LAUNCHES] if names.get(r["correlationId"], "").startswith("nccl")]
            calls = [call for call in export.calls() if call["name"] not in {"ncclGroupStart", "ncclCommInitRank"}]
            used = []
            for launch in launches:
                around = [
                    call
                    for call in calls
                    if call["globalTid"] == launch["globalTid"]
                    and call["start"] <= launch["start"]
                    and launch["end"] <= call["end"]
                ]
                assert len(around) == 1
                kind = re.match(r"ncclDevKernel_(SendRecv|AllReduce|ReduceScatter)", names[launch["correlationId"]])[1]
                assert around[0]["name"] in allowed[kind]
                used.append(span(around[0]))
            assert len(set(used)) == len(launches)
            messages = sum(call["name"] in {"ncclSend", "ncclRecv"} for call in calls)
            groups = sum(call["name"] == "ncclGroupEnd" for call in calls)
            held = 2 * job.t if job.in_stage == "all-to-all" else 2  # messages of a group, which launches one kernel
            assert len(calls) - groups == len(launches) + groups * (held - 1)
            assert bool(messages) == (job.p > 1)

    def test_a_group_holds_its_messages(self, tmp_path):
        """Start, the send, the receive, and the end that launches them."""
        export = exports(tmp_path, Job(p=2, m=2, steps=1, fused=True))[1]
        names = [call["name"] for call in export.calls()]
        start = names.index("ncclGroupStart")
        assert names[start : start + 4] == ["ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd"]

    @pytest.mark.parametrize("name", ["1f1b", "tp and dp", "dualpipe"])
    def test_peers_are_those_of_kineto(self, name, tmp_path):
        """Ranks of the communicator, which the calls that made it tell from those of the job."""
        job = CUDA[name]
        files = exports(tmp_path / "nsys", job, payloads="json")
        joined = defaultdict(dict)
        for rank, export in enumerate(files):
            for call in export.calls():
                if call["name"] == "ncclCommInitRank":
                    joined[call["payload"]["NCCL communicator ID"]][call["payload"]["Rank"]] = rank
                    assert call["payload"]["CUDA device"] == export[KERNELS][0]["deviceId"]
        for path, export in zip(write(job, tmp_path / "kineto"), files, strict=True):
            told = sorted(rows(read(path), "cpu_op"), key=lambda event: event["start"])
            for key, function in (("Dst Rank", "ncclSend"), ("Src Rank", "ncclRecv")):
                payloads = [call["payload"] for call in export.calls() if call["name"] == function]
                peers = [joined[each["NCCL communicator ID"]][each["Peer rank"]] for each in payloads]
                assert peers == [event["args"][key] for event in told if key in event["args"]]
                assert {each["Message size [bytes]"] for each in payloads} == {8_388_608}

    def test_communicators_are_complete(self, tmp_path):
        """All members name one number, and each its own rank."""
        members = defaultdict(set)
        for export in exports(tmp_path, CUDA["tp and dp"], payloads="json"):
            for call in export.calls():
                if call["name"] == "ncclCommInitRank":
                    sizes = (call["payload"]["NCCL communicator ID"], call["payload"]["No. of ranks"])
                    assert call["payload"]["Rank"] not in members[sizes]
                    members[sizes].add(call["payload"]["Rank"])
        assert sorted((size, len(ranks)) for (_, size), ranks in members.items()) == [(2, 2)] * 12 + [(8, 8)]
        assert any(ident >= 1 << 63 for ident, _ in members)

    def test_bytes_and_json_say_the_same(self, tmp_path):
        """Decoded by the schemas that stand in the file."""
        written, packed = (exports(tmp_path / kind, CUDA["tp and dp"], payloads=kind)[3] for kind in ("json", "blobs"))
        assert [call["payload"] for call in written.calls()] == [call["payload"] for call in packed.calls()]
        assert {call["name"] for call in written.calls() if call["payload"] is not None} == {
            "ncclCommInitRank", "ncclAllReduce", "ncclSend", "ncclRecv",
        }  # fmt: skip
        assert {type(row["binaryData"]) for row in packed[RANGES]} == {bytes, type(None)}
        assert all(row["jsonText"] is None for row in packed[RANGES])

    @pytest.mark.parametrize("payloads", ["json", "blobs", "none"])
    def test_what_was_exported_is_told(self, tmp_path, payloads):
        """The parameters of the export, and schemas also where it left the values out."""
        export = exports(tmp_path, SMALL, payloads=payloads)[0]
        told = {row["name"]: row["value"] for row in export["META_DATA_EXPORT"]}
        asked = (told["EXPORT_PARAM_INCLUDE_JSON"], told["EXPORT_PARAM_INCLUDE_BLOBS"])
        assert asked == (str(payloads == "json").lower(), str(payloads == "blobs").lower())
        assert told["EXPORT_SCHEMA_VERSION"] == "3.25.0"
        known = [call["payload"] is not None for call in export.calls() if call["name"] == "ncclSend"]
        assert set(known) == {payloads != "none"}
        assert len(export["NVTX_PAYLOAD_SCHEMAS"]) == 5

    def test_an_old_nccl_tells_nothing(self, tmp_path):
        """Neither payloads nor their schemas."""
        export = exports(tmp_path, SMALL, payloads="json", p2p_args="none")[0]
        assert {call["payload"] for call in export.calls()} == {None}
        assert "NVTX_PAYLOAD_SCHEMAS" not in export.tables

    def test_each_process_opens_the_domain(self, tmp_path):
        """Before its first call."""
        export = exports(tmp_path, SMALL, **HOST)[0]
        opened = [row for row in export[RANGES] if row["eventType"] == 75]
        assert {(row["text"], row["domainId"], row["end"]) for row in opened} == {("NCCL", 1, None)}
        assert {row["globalTid"] & ~TARGET for row in opened} == {row["globalPid"] for row in export["PROCESSES"]}
        assert max(row["start"] for row in opened) < min(call["start"] for call in export.calls())


class TestSession:
    """What a file tells of the job around it."""

    @staticmethod
    def environment(export):
        """The variables that were captured."""
        name = "PROCESS_0:ENVIRONMENT_VARIABLE"
        return [row["value"].split("=") for row in export["META_DATA_CAPTURE"] if row["name"] == name]

    def test_the_environment_of_a_rank(self, tmp_path):
        """Its rank, the size of the job, and what is nobody's business."""
        export = exports(tmp_path, SMALL)[3]
        rank, size, secret = self.environment(export)
        assert (rank, size, secret[0]) == (["RANK", '"3"'], ["WORLD_SIZE", '"4"'], "DEMO_TOKEN")

    def test_the_environment_of_a_launcher_tells_no_rank(self, tmp_path):
        """But the host has a name."""
        export = exports(tmp_path, SMALL, **HOST)[1]
        assert [name for name, _ in self.environment(export)] == ["DEMO_TOKEN"]
        (host,) = export["TARGET_INFO_SYSTEM_ENV"]
        assert (host["name"], host["value"]) == ("Hostname", "node1")

    def test_without_metadata_times_have_no_origin(self, tmp_path):
        """Neither environment nor host nor start of the session are there; the events are the same."""
        known, bare = (exports(tmp_path / each, SMALL, metadata=each)[0] for each in ("before", "none"))
        gone = {"TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_SYSTEM_ENV"}
        assert known.tables.keys() - bare.tables.keys() == gone
        assert self.environment(bare) == []
        assert all(bare[name] == known[name] for name in (KERNELS, LAUNCHES, RANGES))

    def test_sessions_begin_at_different_moments(self, tmp_path):
        """So that times of two files are of one clock only by the start of their sessions."""
        moments = [export["TARGET_INFO_SESSION_START_TIME"][0]["utcEpochNs"] for export in exports(tmp_path, SMALL)]
        assert len(set(moments)) == 4
