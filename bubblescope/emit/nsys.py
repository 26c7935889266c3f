"""The content of a file as Nsight Systems exports it: what one session saw of one rank, or of all ranks of a host."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bubblescope.emit.about import about
from bubblescope.emit.job import Job
from bubblescope.emit.nvtx import call_row, domain_row, entry_rows, pushed, range_row, schema_rows
from bubblescope.emit.play import play
from bubblescope.emit.simulate import START_NS
from bubblescope.emit.tables import Row, Strings, database, global_id
from bubblescope.emit.tape import Args, Tape

__all__ = ["export"]

LEAD_NS, LATER_NS = 3_000_000_000, 11_000_000  # from a session's start to the first step; and how much more a rank
API = {
    "cudaLaunchKernel": "cudaLaunchKernel_v7000",
    "cudaLaunchKernelExC": "cudaLaunchKernelExC_v11060",
    "cudaMemcpyAsync": "cudaMemcpyAsync_v3020",
    "cudaMemcpyPeerAsync": "cudaMemcpyPeerAsync_v4000",
}
COPY_KIND = {"HtoD": 1, "DtoH": 2, "PtoP": 10}
LAUNCHED = {
    "contextId": 1,
    "greenContextId": 0,
    "launchType": 1,
    "cacheConfig": 1,
    "registersPerThread": 96,
    "gridX": 132,
    "gridY": 1,
    "gridZ": 1,
    "blockX": 256,
    "blockY": 1,
    "blockZ": 1,
    "staticSharedMemory": 0,
    "dynamicSharedMemory": 49152,
    "localMemoryPerThread": 0,
    "localMemoryTotal": 0,
    "sharedMemoryExecuted": 102400,
    "sharedMemoryLimitConfig": 0,
    "tensorSizeMinusOneElements": "[]",
}


def export(job: Job, ranks: Sequence[int]) -> bytes:
    """The whole file of some ranks of one host.

    Its times count from the start of the session, and its events stand in no order, as since version 2025.6.
    """
    tapes = [play(job, rank) for rank in ranks]
    origin = tapes[0].clock(START_NS) - LEAD_NS - LATER_NS * ranks[0]
    strings, session = Strings(), _Session(job, tapes, origin)
    tables = about(job, tapes, origin, strings)
    tables["CUPTI_ACTIVITY_KIND_KERNEL"] = session.kernels(strings)
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] = session.copies()
    if job.host != "none":
        tables["CUPTI_ACTIVITY_KIND_RUNTIME"] = session.launches(strings)
    if job.host == "all":
        tables["NVTX_EVENTS"] = session.ranges(strings)
        if job.p2p_args != "none":
            callers = [tape for tape in tapes if tape.calls]
            tables["NVTX_PAYLOAD_SCHEMAS"] = (row for _ in callers for row in schema_rows(job))
            tables["NVTX_PAYLOAD_SCHEMA_ENTRIES"] = (row for _ in callers for row in entry_rows(job))
    return database(tables, strings)


class _Seen(NamedTuple):
    """An event, whose it is, and when it was in the session."""

    tape: Tape
    start: int
    end: int
    event: Args

    @property
    def thread(self) -> int:
        """Who did it, where that is a thread of the host."""
        return global_id(self.tape.pid, self.event["tid"])

    @property
    def on_gpu(self) -> dict[str, Any]:
        """When and where it ran, and the number of its launch, where that was on a GPU."""
        args = self.event["args"]
        where = {"deviceId": args["device"], "streamId": args["stream"], "globalPid": global_id(self.tape.pid)}
        return {"start": self.start, "end": self.end} | where | {"correlationId": args["correlation"]}


class _Session:
    """The rows of what happened, in nanoseconds since `origin`, each table shuffled."""

    def __init__(self, job: Job, tapes: list[Tape], origin: int) -> None:
        self.job, self.tapes, self.origin = job, tapes, origin

    def kernels(self, strings: Strings) -> Iterator[Row]:
        """One row a kernel."""
        for seen in self._shuffled("kernel"):
            args, name = seen.event["args"], seen.event["name"]
            names = {
                "demangledName": strings.ident(name),
                "shortName": strings.ident(short_name(name)),
                "mangledName": strings.ident(mangled_name(name)),
            }
            yield seen.on_gpu | {"gridId": args["correlation"]} | names | LAUNCHED

    def copies(self) -> Iterator[Row]:
        """One row a copy."""
        for seen in self._shuffled("gpu_memcpy"):
            kind = COPY_KIND[seen.event["name"].split()[1]]
            yield seen.on_gpu | {"contextId": 1, "bytes": seen.end - seen.start, "copyKind": kind}

    def launches(self, strings: Strings) -> Iterator[Row]:
        """One row a launch; its correlation id is unique in its process alone."""
        for seen in self._shuffled("cuda_runtime"):
            row = {"start": seen.start, "end": seen.end, "eventClass": 0, "globalTid": seen.thread, "returnValue": 0}
            row["correlationId"] = seen.event["args"]["correlation"]
            yield row | {"nameId": strings.ident(API[seen.event["name"]])}

    def ranges(self, strings: Strings) -> Iterator[Row]:
        """The ranges of torch and of NCCL."""
        rows = [
            range_row(text, seen.start, seen.end, seen.thread)
            for seen in self._shuffled("cpu_op", "user_annotation")
            if (text := pushed(self.job, seen.event)) is not None
        ]
        for tape in self.tapes:
            if tape.calls:
                rows.append(domain_row(tape.calls[0].start - self.origin - 1_000, global_id(tape.pid, tape.main)))
            rows += [
                call_row(self.job, call, self.origin, global_id(tape.pid, call.tid), strings) for call in tape.calls
            ]
        self._dice("ranges").shuffle(rows)
        return iter(rows)

    def _shuffled(self, *cats: str) -> list[_Seen]:
        """The events of some categories."""
        found = [
            _Seen(tape, start - self.origin, -end - self.origin, event)
            for tape in self.tapes
            for start, end, event in (*tape.host, *tape.gpu)
            if event["ph"] == "X" and event["cat"] in cats
        ]
        self._dice(*cats).shuffle(found)
        return found

    def _dice(self, *names: str) -> random.Random:
        """Repeatable chance, of its own for every table of every file."""
        return random.Random(f"{self.job.seed}.{self.tapes[0].rank}.{names}")  # noqa: S311 - no secret


def short_name(name: str) -> str:
    """A kernel's name without its return type, namespaces, template and arguments."""
    bare = name.replace("(anonymous namespace)::", "")
    while (shorter := re.sub(r"<[^<>]*>", "", bare)) != bare:
        bare = shorter
    return re.split(r"::|\s", bare.split("(")[0])[-1]


def mangled_name(name: str) -> str:
    """A name as a linker could know it, which is its own for a function of C; a number tells templates apart."""
    short = short_name(name)
    return short if short == name else f"_Z{len(short)}{short}ILj{zlib.crc32(name.encode())}EEvv"
