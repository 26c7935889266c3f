"""Small traces of every kind for a fuzzer to begin with."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from bubblescope.emit import Job, write

__all__ = ["seeds"]

_TINY = {"p": 2, "steps": 2, "kernels": 1, "forward_ns": 50_000, "backward_ns": 100_000, "p2p_ns": 5_000}
_SLICES = [("forward", 0, 10), ("backward", 12, 20), ("F_1,0", 40, 10), ("B_1,0", 52, 20), ("optimizer", 90, 5)]


def seeds(folder: Path, kind: str) -> Path:
    """A folder of seeds for a target: `chrome`, `nsys`, `table`, or `analyze` for all of them."""
    folder.mkdir(parents=True)
    made = {"chrome": _chrome, "nsys": _nsys, "table": _table}
    for name in made if kind == "analyze" else (kind,):
        for number, data in enumerate(made[name](folder.parent / f"made-{name}")):
            (folder / f"{name}{number}").write_bytes(data)
    return folder


def _written(job: Job, folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in write(job, folder)]


def _chrome(folder: Path) -> list[bytes]:
    jobs = (
        Job(m=1, compress=False, **_TINY),
        Job(m=2, compress=True, labels="none", **_TINY),
        Job(m=1, compress=False, backend="cpu", era="epoch-fraction", **_TINY),
        Job(schedule="zbh1", m=2, compress=False, metadata="none", **_TINY),
    )
    slices = [
        {"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": 0, "tid": 0, "args": {"mb": 0, "step": 1, "stage": 0}}
        for name, ts, dur in _SLICES
    ]
    parts = [{**event, "ph": "B"} for event in slices] + [{**e, "ph": "E", "ts": e["ts"] + e["dur"]} for e in slices]
    documents = (
        slices,
        {"traceEvents": parts},
        {"schemaVersion": 1, "distributedInfo": {"rank": 1}, "traceEvents": []},
    )
    made = [data for number, job in enumerate(jobs) for data in _written(job, folder / str(number))]
    texts = [json.dumps(document).encode() for document in documents]
    return [*made, *texts, gzip.compress(texts[0])]


def _nsys(folder: Path) -> list[bytes]:
    jobs = (
        Job(m=1, recorder="nsys", **_TINY),
        Job(m=2, recorder="nsys", labels="none", payloads="blobs", **_TINY),
    )
    return [data for number, job in enumerate(jobs) for data in _written(job, folder / str(number))]


def _table(_folder: Path) -> list[bytes]:
    rows = [f"{rank},{name},{start},{start + length},1,{rank},0" for rank in (0, 1) for name, start, length in _SLICES]
    text = "\n".join(["rank,kind,start_us,end_us,step,stage,microbatch", *rows])
    return [text.encode(), text.replace(",", ";").encode(), text.replace("start_us", "start_ms").encode()]
