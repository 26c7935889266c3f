"""Writes an export of Nsight Systems of any size: a 1F1B job of four processes, profiled under emit_nvtx.

    python benchmarks/exports.py FILE [--kernels 2000000]

Tables and columns are those of nsys 2026.2. To two million kernels belong four million calls of the CUDA API, half of
them launches, and one million NVTX ranges. Stages and micro-batches stand in labels (`PP:1F3`), messages are kernels
of NCCL, and every operator's range carries an op_id of its own, as emit_nvtx numbers them, so that hardly two texts
are alike. When what ran is simulated; `write_export` returns the job.
"""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bubblescope.emit import Job
from bubblescope.emit.run import Step, Transfer
from bubblescope.emit.simulate import simulate
from bubblescope.model.actions import Action, Kind

P = 4
M = 16
SLOT_NS = 20_000  # of a kernel and the gap behind it
GAP_NS = 800
LEAD_NS = 1_000_000  # the host launches so far ahead of the GPU
DOOR_NS = 100_000  # of the host's time for a block, before its first launch and after its last
BEGIN_NS = 60_000_000_000  # of the session's clock, when the first step starts
PUSH_POP, DOMAIN_CREATE = 59, 75
COMPUTE_STREAM, STREAMS = 7, {(False, False): 15, (False, True): 16, (True, False): 17, (True, True): 18}

COLUMNS = {
    "StringIds": "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL",
    "PROCESSES": "globalPid INTEGER, pid INTEGER, name TEXT",
    "ThreadNames": "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
    "TARGET_INFO_SYSTEM_ENV": "globalVid INTEGER, devStateName TEXT NOT NULL, name TEXT NOT NULL, "
    "nameEnum INTEGER NOT NULL, value TEXT NOT NULL",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER",
    "ANALYSIS_DETAILS": "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, "
    "stopTime INTEGER NOT NULL",
    "META_DATA_CAPTURE": "name TEXT NOT NULL, value TEXT",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "
    "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "
    "globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, "
    "launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, "
    "gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, "
    "blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, "
    "localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, "
    "sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, "
    "qmdBulkReleaseDone INTEGER, qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER, "
    "clusterY INTEGER, clusterZ INTEGER, clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER, "
    "maxActiveClusters INTEGER, sharedMemoryRequestedPercentage INTEGER, tensorSizeMinusOneElements TEXT NOT NULL",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, "
    "globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, "
    "callchainId INTEGER",
    "NVTX_EVENTS": "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, "
    "category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, "
    "domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, "
    "int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT",
}
"""The tables that are written, with their columns as nsys declares them."""

KERNEL_ROW = (
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?1, ?2, ?3, 1, 0, ?4, ?5, ?6, ?7, ?8, ?9, 1, 1, 128, 1024, 8, 1, "
    "256, 1, 1, 0, 82240, 0, 250871808, ?5, 135168, NULL, 0, NULL, NULL, NULL, NULL, 2, 1, 1, 1, 8, 30, NULL, '[]')"
)
RUNTIME_ROW = "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, NULL)"
NVTX_ROW = (
    "INSERT INTO NVTX_EVENTS VALUES (?1, ?2, ?3, NULL, NULL, NULL, ?4, ?5, NULL, ?6, ?7, "
    "NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
)

COMPUTE = (
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel",
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<c10::BFloat16>>(int, Functor)",
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4>>(params)",
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase &)>",
)
OPTIMIZER = "void at::native::<unnamed>::multi_tensor_apply_kernel<FusedOptimizerTensorListMetadata<(int)3>>(Adam)"
MESSAGE = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<(unsigned long)4096>)"
LAUNCHES = ("cuLaunchKernelEx", "cudaLaunchKernel_v7000", "cudaLaunchKernel_v7000", "cudaLaunchKernel_v7000")
"""How each of the compute kernels is launched."""
OTHERS = (
    "cudaEventRecord_v3020",
    "cudaStreamWaitEvent_v3020",
    "cudaEventRecordWithFlags_v11010",
    "cudaEventQuery_v3020",
    "cudaStreamIsCapturing_v10000",
    "cudaEventCreateWithFlags_v3020",
    "cudaEventDestroy_v3020",
    "cudaStreamGetCaptureInfo_v2_v11030",
)
CALLS = ("ncclGroupStart", "ncclSend", "ncclRecv", "ncclGroupEnd")
FORWARD = ("aten::linear", "aten::addmm")
"""Operators, one in the other, that launch four kernels."""
BACKWARD = ("autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0", "aten::mm", "aten::mm")
"""The node of the autograd engine that launches eight kernels, and what runs in it."""


class Columns(NamedTuple):
    """Rows of the three large tables, as columns: the parameters of the statements above."""

    kernels: np.ndarray
    calls: np.ndarray
    ranges: list[list[int | str | None]]


class Process:
    """One rank of the job: a device, a launching thread and one of the autograd engine, and its counters."""

    def __init__(self, rank: int, ids: dict[str, int]) -> None:
        self.rank, self.ids = rank, ids
        self.pid = 144 + rank
        self.global_pid = (1 << 48) | (self.pid << 24)
        self.main = self.global_pid | self.pid
        self.engine = self.global_pid | (self.pid + 217)
        self.correlation = 2_610_000 + 77_000 * rank
        self.op = 990_000 + 31 * rank
        self.sequence = 45_000
        self.numbers: dict[Action, int] = {}
        self.busy: dict[int, int] = {}

    def step(self, step: Step, kernels: int) -> Iterator[Columns]:
        """What one step leaves, a block of actions after the other."""
        run = step.training.runs[0]
        for ran in run.lanes[self.rank]:
            for transfer in ran.awaited:
                yield self._message(transfer, sends=False)
            for part in ran.parts:
                yield self._action(part.action, part.start, part.end, kernels)
                if part.action in run.outgoing:
                    yield self._message(run.outgoing[part.action], sends=True)
        if step.training.optimizer is not None:
            yield self._optimizer(*step.training.optimizer)

    def _action(self, action: Action, start: int, end: int, kernels: int) -> Columns:
        """The kernels of an action, their launches, and the ranges of its operators within its label."""
        forward = action.kind == Kind.F
        count, group = (kernels, 4) if forward else (2 * kernels, 8)
        tid = self.main if forward else self.engine
        opened, closed = start + BEGIN_NS - LEAD_NS, end + BEGIN_NS - LEAD_NS
        kernels, calls = self._launched(start, end, tid, np.arange(count) % len(COMPUTE))
        if forward:
            self.numbers[action] = self.sequence
            self.sequence += count // group
            sequence = self.numbers[action] + np.arange(count // group)
        else:
            first = self.numbers.pop(action._replace(kind=Kind.F))
            sequence = first + np.arange(count // group)[::-1]
        label = f"PP:{action}, op_id = {self._ops(1)}"
        ranges = self._operators(
            FORWARD if forward else BACKWARD,
            calls[0, :: 2 * group],
            calls[1, 2 * group - 1 :: 2 * group],
            sequence,
            tid,
        )
        row = (opened + DOOR_NS // 2, closed - DOOR_NS // 2, PUSH_POP, label, self.main, None, 0)
        for column, value in zip(ranges, row, strict=True):
            column.append(value)
        return Columns(kernels, calls, ranges)

    def _launched(self, start: int, end: int, tid: int, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute kernels, and two calls for each: one that launches it, and before it one that does not."""
        count = len(kind)
        edges = BEGIN_NS + np.linspace(start, end, count + 1).astype(np.int64)
        opened, closed = BEGIN_NS + start - LEAD_NS + DOOR_NS, BEGIN_NS + end - LEAD_NS - DOOR_NS
        at = np.linspace(opened, closed, count, endpoint=False).astype(np.int64)
        each = (closed - opened) // count // 5
        correlation = self.correlation + np.arange(2 * count)
        self.correlation += 2 * count
        calls = np.zeros((6, 2 * count), np.int64)
        calls[0, ::2], calls[0, 1::2] = at, at + 2 * each
        calls[1] = calls[0] + each
        calls[3], calls[4] = tid, correlation
        calls[5, ::2] = np.array([self.ids[name] for name in OTHERS])[correlation[::2] // 2 % len(OTHERS)]
        calls[5, 1::2] = np.array([self.ids[name] for name in (*LAUNCHES, LAUNCHES[-1])])[kind]
        kernels = np.empty((9, count), np.int64)
        kernels[0], kernels[1], kernels[2], kernels[3] = edges[:-1], edges[1:] - GAP_NS, self.rank, COMPUTE_STREAM
        kernels[4], kernels[5] = correlation[1::2], self.global_pid
        kernels[6:] = np.array([self.ids[name] for name in (*COMPUTE, OPTIMIZER)])[kind]
        return kernels, calls

    def _operators(
        self, names: tuple[str, ...], opened: np.ndarray, closed: np.ndarray, sequence: np.ndarray, tid: int
    ) -> list[list[int | str | None]]:
        """The ranges of operators, nested, each a nanosecond inside the one around it; mm has no number of its own."""
        groups, deep = len(opened), len(names)
        begin = opened[:, None] - 10 + np.arange(deep)
        finish = closed[:, None] + 10 - np.arange(deep)
        if deep == len(BACKWARD):  # the last two stand beside each other
            middle = (opened + closed) // 2
            finish[:, 2], begin[:, 3] = middle, middle + 1
        op = self._ops(groups * deep)
        texts: list[int | str | None] = []
        for number in sequence.tolist():
            for name in names:
                seq = "" if name in {"aten::mm", BACKWARD[0]} else f", seq = {number}"
                texts.append(f"{name}{seq}, op_id = {op}")
                op += 1
        total = groups * deep
        same = [[PUSH_POP] * total, texts, [tid] * total, [None] * total, [0] * total]
        return [begin.ravel().tolist(), finish.ravel().tolist(), *same]

    def _message(self, transfer: Transfer, *, sends: bool) -> Columns:
        """A send or a receive: a kernel on a stream of its own, launched inside ncclGroupEnd."""
        posted, peer = (transfer.sent, transfer.target) if sends else (transfer.received, transfer.source)
        text = f"nccl:send {self.rank}->{peer}" if sends else f"nccl:recv {self.rank}<-{peer}"
        at = BEGIN_NS + posted - LEAD_NS - (DOOR_NS // 2 if sends else 0)  # a send before the receive that follows
        correlation, name = self.correlation, self.ids[MESSAGE]
        self.correlation += 2
        stream = STREAMS[transfer.producer.kind == Kind.F, sends]
        begin = max(posted, self.busy.get(stream, 0))
        self.busy[stream] = end = max(transfer.end, begin + 1)
        span = (BEGIN_NS + begin, BEGIN_NS + end)
        kernel = [*span, self.rank, stream, correlation + 1, self.global_pid, name, name, name]
        calls = [
            [at + 2_000, at + 3_000, 0, self.main, correlation, self.ids["cudaStreamWaitEvent_v3020"]],
            [at + 20_000, at + 24_000, 1, self.main, correlation + 1, self.ids["cuLaunchKernelEx"]],
        ]
        call = "ncclSend" if sends else "ncclRecv"
        nccl = (("ncclGroupStart", 4_000, 5_000), (call, 6_000, 10_000), ("ncclGroupEnd", 12_000, 26_000))
        ranges = [
            [at + 1_000, at + 30_000, PUSH_POP, f"{text}, op_id = {self._ops(1)}", self.main, None, 0],
            *([at + a, at + b, PUSH_POP, None, self.main, self.ids[called], 1] for called, a, b in nccl),
        ]
        return Columns(np.array([kernel]).T, np.array(calls).T, _turned(ranges))

    def _optimizer(self, start: int, end: int) -> Columns:
        """The optimizer's kernels, of which there are few."""
        kernels, calls = self._launched(start, end, self.main, np.full(8, len(COMPUTE)))
        text = f"Optimizer.step#AdamW.step, op_id = {self._ops(1)}"
        row = [int(calls[0, 0]) - 10, int(calls[1, -1]) + 10, PUSH_POP, text, self.main, None, 0]
        return Columns(kernels, calls, _turned([row]))

    def _ops(self, count: int) -> int:
        """The first of so many new op_ids."""
        self.op += count
        return self.op - count


def _turned(rows: list[list[int | str | None]]) -> list[list[int | str | None]]:
    """Rows as columns."""
    return [list(column) for column in zip(*rows, strict=True)]


def job_of(kernels: int) -> tuple[Job, int]:
    """The job that runs about so many kernels, and how many of them a forward has."""
    steps = int(np.clip(kernels // 100_000, 3, 16))
    layers = max(1, round(kernels / (P * steps * M * 3 * 8)))
    forward = max(2_000_000, 8 * layers * SLOT_NS)
    job = Job(
        p=P, m=M, steps=steps, forward_ns=forward, backward_ns=2 * forward, p2p_ns=150_000, jitter=0.02, kernels=1
    )
    return job, 8 * layers


def write_export(path: Path, kernels: int) -> Job:
    """Write an export of about so many kernels; the job that it is of, whose `truth` is known."""
    job, each = job_of(kernels)
    strings = sorted({*COMPUTE, OPTIMIZER, MESSAGE, *LAUNCHES, *OTHERS, *CALLS, "NCCL", "python3", "pt_autograd_0"})
    ids = {text: 1_364_000 + number for number, text in enumerate(strings)}
    processes = [Process(rank, ids) for rank in range(P)]
    steps = simulate(job)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = OFF")
        database.execute("PRAGMA synchronous = OFF")
        for table, columns in COLUMNS.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
        database.execute("BEGIN")
        _describe(database, ids, processes, BEGIN_NS + steps[-1].end)
        for step in steps:
            for process in processes:
                for columns in process.step(step, each):
                    database.executemany(KERNEL_ROW, columns.kernels.T.tolist())
                    database.executemany(RUNTIME_ROW, columns.calls.T.tolist())
                    database.executemany(NVTX_ROW, zip(*columns.ranges, strict=True))
        database.execute("COMMIT")
    return job


def _describe(database: sqlite3.Connection, ids: dict[str, int], processes: Iterable[Process], end: int) -> None:
    """The small tables."""
    database.executemany("INSERT INTO StringIds VALUES (?, ?)", [(number, text) for text, number in ids.items()])
    for process in processes:
        main, engine = (ids["python3"], 20, process.main), (ids["pt_autograd_0"], 20, process.engine)
        database.execute("INSERT INTO PROCESSES VALUES (?, ?, 'python3')", (process.global_pid, process.pid))
        database.executemany("INSERT INTO ThreadNames VALUES (?, ?, ?)", [main, engine])
        row = (0, None, DOMAIN_CREATE, None, process.main, ids["NCCL"], 1)
        database.execute(NVTX_ROW, row)
    database.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (281474976710656, 'CliInfo', 'Hostname', 0, 'node0')")
    database.execute(
        "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES "
        "(1779782330176752435, '2026-05-26T07:58:50', '2026-05-26T07:58:50', 28254349605)"
    )
    database.execute("INSERT INTO ANALYSIS_DETAILS VALUES (281474976710656, ?1, 0, ?1)", (end,))
    database.execute("INSERT INTO META_DATA_CAPTURE VALUES ('CUDA_GRAPH_TRACE_OPTIONS:MODE', 'Graph')")
    exported = {
        "EXPORT_PRODUCT_NAME": "NVIDIA Nsight Systems",
        "EXPORT_PRODUCT_VERSION": "2026.2.1.210",
        "EXPORT_SCHEMA_VERSION": "3.25.0",
        "EXPORT_PARAM_INCLUDE_JSON": "false",
        "EXPORT_PARAM_INCLUDE_BLOBS": "false",
        "EXPORT_PARAM_TIME_NORMALIZE": "false",
        "EXPORT_PARAM_TIME_SHIFT": "0",
    }
    database.executemany("INSERT INTO META_DATA_EXPORT VALUES (?, ?)", exported.items())


def main() -> None:
    """Write a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--kernels", type=int, default=2_000_000)
    options = parser.parse_args()
    write_export(options.file, options.kernels)


if __name__ == "__main__":
    main()
