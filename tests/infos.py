"""What files are, written out by hand, one for each kind of answer."""

from __future__ import annotations

from dataclasses import replace

from bubblescope.model.info import (
    ActionsInfo,
    Counts,
    FileInfo,
    GroupInfo,
    Info,
    JobInfo,
    LaneInfo,
    Need,
    RankInfo,
    StepInfo,
    ThreadInfo,
)
from bubblescope.model.report import Tool
from bubblescope.model.trace import Finding
from tests.whatifs import HOSTILE

__all__ = ["SAMPLES", "file", "hostile", "info", "job", "nothing", "rank", "usual"]

MS = 1_000_000
LABELS = Need(
    code="labels",
    lacks="neither labels nor operators: forwards and backwards are a guess",
    add='with torch.profiler.record_function(f"PP:{stage}F{microbatch}"):',
)


def rank(number: int | None = 0, **changes: object) -> RankInfo:
    """A rank of a run on GPUs that labels tell."""
    return replace(
        RankInfo(
            rank=number,
            rank_source=None if number is None else "metadata",
            world_size=4,
            host="node0",
            backend="nccl",
            devices=("NVIDIA H100 80GB HBM3",),
            events=1_840,
            counts=Counts(
                operators=352, launches=366, kernels=360, copies=6, ranges=20, frames=0, collectives=66, messages=16
            ),
            absolute=True,
            start_ns=1_700_000_000 * 10**9,
            span_ns=416 * MS,
            marked=True,
            steps=tuple(
                StepInfo(
                    step=n, kind="training", actions=8, complete=True, start_ns=n * 200 * MS, end_ns=(n + 1) * 200 * MS
                )
                for n in range(2)
            ),
            actions=ActionsInfo(told_by="labels", dialect="torch stages", counts={"F": 8, "B": 8}),
            lanes=(
                LaneInfo(lane=0, compute=278, messages=0, collectives=0, copies=6, busy_ns=250 * MS),
                LaneInfo(lane=1, compute=0, messages=16, collectives=66, copies=0, busy_ns=90 * MS),
            ),
            threads=(ThreadInfo(pid="1", tid="7", names=("python",), operators=352, ranges=20, launches=366),),
            groups=(GroupInfo(name="3", description="mesh_pp", purpose="pp", ranks=(0, 1), calls=16),),
            needs=(),
            findings=(),
            problem=None,
        ),
        **changes,
    )


def file(name: str, *ranks: RankInfo, **changes: object) -> FileInfo:
    """A trace in the folder `traces`."""
    return replace(
        FileInfo(
            path=f"traces/{name}",
            looks_like="a PyTorch Profiler trace",
            trace=True,
            format="kineto",
            bytes=22_900,
            gzip=True,
            ranks=ranks,
            problem=None,
            hint=None,
        ),
        **changes,
    )


def foreign(name: str, looks_like: str, hint: str) -> FileInfo:
    """A file that is no trace."""
    problem = f"no trace: it looks like {looks_like}"
    return file(name, looks_like=looks_like, trace=False, format=None, gzip=False, problem=problem, hint=hint)


def job(**changes: object) -> JobInfo:
    """Two ranks of two."""
    return replace(
        JobInfo(
            world_size=2,
            ranks=(0, 1),
            missing_ranks=(),
            common_steps=(0, 1),
            complete_steps=(0, 1),
            answer="bubble",
            verdict="ok",
            problem=None,
            command="bubblescope analyze traces",
            needs=(),
            findings=(),
        ),
        **changes,
    )


def info(*files: FileInfo, of: JobInfo) -> Info:
    """Files, and what they are as one job."""
    return Info(tool=Tool(name="bubblescope", version="0.1.0"), files=files, job=of)


def usual() -> Info:
    """Two whole ranks, and a file beside them."""
    return info(
        foreign("config.json", "JSON, but with no traceEvents", "Give traces."),
        file("rank0.json.gz", rank(0)),
        file("rank1.json.gz", rank(1)),
        of=job(),
    )


def poor() -> Info:
    """A file without a rank and without labels, whose second step is cut; an export that nothing is in."""
    steps = rank().steps
    bare = rank(
        None,
        world_size=None,
        devices=(),
        marked=False,
        steps=(steps[0], replace(steps[1], actions=3, complete=False)),
        actions=ActionsInfo(told_by="kernels", dialect=None, counts={"F": 7, "B": 4}),
        groups=(),
        needs=(LABELS,),
        findings=(Finding("lost-kernels", "warning", "12 of 300 launches have no kernel", "traces/a.json"),),
    )
    empty = file(
        "b.sqlite",
        looks_like="an export of Nsight Systems",
        format=None,
        gzip=False,
        problem="traces/b.sqlite: expected kernels, found none",
        hint="Record with nsys profile --trace=cuda,nvtx.",
    )
    missing = Need(code="ranks", lacks="no trace of rank 1", add="the files of rank 1")
    alone = job(
        ranks=(0,), missing_ranks=(1,), complete_steps=(0,), answer="interval", verdict="degraded",
        problem="no trace of rank 1", needs=(missing,),
    )  # fmt: skip
    return info(file("a.json", bare), empty, of=alone)


def nothing() -> Info:
    """No trace among the files."""
    none = job(
        world_size=None, ranks=(), common_steps=(), complete_steps=(), answer="nothing", verdict="unusable",
        problem="no file holds work of a rank", command=None,
    )  # fmt: skip
    return info(
        foreign("empty.json", "an empty file", "Record or copy it again."),
        foreign("notes.txt", "text", "Give traces."),
        foreign("more.txt", "text", "Give traces."),
        of=none,
    )


def hostile() -> Info:
    """Every text that could come from a file tries to break out."""
    bad = rank(
        None,
        host=HOSTILE,
        backend=HOSTILE,
        devices=(HOSTILE,),
        actions=ActionsInfo(told_by=None, dialect=None, counts={}),
        threads=(ThreadInfo(pid=HOSTILE, tid=HOSTILE, names=(HOSTILE,), operators=1, ranges=0, launches=0),),
        groups=(GroupInfo(name="=HYPERLINK(1)", description=HOSTILE, purpose=None, ranks=(), calls=1),),
        findings=(Finding("repaired", "warning", HOSTILE, HOSTILE),),
        problem=HOSTILE,
    )
    return info(
        file(HOSTILE, bad, path=HOSTILE),
        foreign("=1+1", HOSTILE, HOSTILE),
        of=job(problem=HOSTILE, answer="nothing", command=f"bubblescope analyze '{HOSTILE}'"),
    )


SAMPLES = {"usual": usual, "poor": poor, "nothing": nothing, "hostile": hostile}
