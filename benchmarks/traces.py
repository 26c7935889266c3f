"""Traces of any size for the benchmarks: one step of an emitted job, repeated with its times and ids moved on.

    python benchmarks/traces.py FOLDER [--megabytes 60] [--ranks 4] [--printed]

A 1f1b job of four stages. By itself a trace is compact JSON and holds what the analysis asks for; with `--printed` it
also holds what real ones do beside that (frames of Python functions, shapes, how kernels were launched), and breaks
lines as Kineto does. Prints how many events were written, and how many of these an analysis keeps.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from bubblescope.emit import Job, truth, write

P = 4


class Size(NamedTuple):
    """Micro-batches a step, kernels an action, steps."""

    m: int
    kernels: int
    steps: int

    @property
    def total(self) -> int:
        """Kernels of all ranks."""
        return P * 2 * self.m * self.kernels * self.steps


class Written(NamedTuple):
    """Events of a trace, and those of them that an analysis keeps."""

    events: int
    kept: int


COUNTED = ("External id", "Ev Idx", "correlation", "Sequence number", "Python id")
"""Arguments that count on from step to step."""

KEPT = {"cpu_op", "user_annotation", "cuda_runtime", "kernel", "gpu_memcpy", "gpu_memset"}
CALLED = ("torch/nn/modules/module.py(1553): _call_impl", "torch/nn/functional.py(2540): layer_norm")
SHAPED = {
    "Concrete Inputs": ["", "", "1"],
    "Input type": ["float", "float", "Scalar"],
    "Input Dims": [[4, 4096, 1024], [1024, 4096], []],
}
LAUNCHED = {
    "queued": 0,
    "context": 1,
    "registers per thread": 32,
    "shared memory": 0,
    "blocks per SM": 12.4,
    "warps per SM": 49.6,
    "grid": [16384, 1, 1],
    "block": [128, 1, 1],
    "est. achieved occupancy %": 100,
}

Print = Callable[[dict[str, Any]], bytes]


def write_traces(folder: Path, size: Size, told: dict[str, Any]) -> None:
    """Write the traces of a job of that size."""
    paths, period = emitted(folder, size, told)
    for path in paths:
        repeat(path, period, lambda _: size.steps)


def write_job(folder: Path, megabytes: int, *, ranks: int = P, printed: bool = False) -> Written:
    """Write traces of about that size, of the first ranks; how many events are in all."""
    m, kernels = (16, 500) if megabytes > 150 else (8, 200 if megabytes > 30 else 40 if megabytes else 2)
    paths, period = emitted(folder, Size(m, kernels, 1), {"labels": "pp"})
    for path in paths[ranks:]:
        path.unlink()
    steps = lambda length: max(2, round(megabytes * 10**6 / length))  # noqa: E731
    all_written = [repeat(path, period, steps, printed=printed) for path in paths[:ranks]]
    return Written(*map(sum, zip(*all_written, strict=True)))


def emitted(folder: Path, size: Size, told: dict[str, Any]) -> tuple[list[Path], int]:
    """The traces of one step of such a job, and how long it is."""
    job = Job(p=P, m=size.m, kernels=size.kernels, steps=1, jitter=0.02, p2p_ns=200_000, compress=False, **told)
    step = truth(job).steps[0]
    return write(job, folder), step.end - step.start


def repeat(path: Path, period: int, steps: Callable[[int], int], *, printed: bool = False) -> Written:
    """Repeat the one step of a trace every `period` nanoseconds, as often as `steps` says for its length in bytes."""
    content = orjson.loads(path.read_bytes())
    events = content.pop("traceEvents")
    once = [event for event in events if event["ph"] in "Mi"]
    again = [event for event in events if event["ph"] not in "Mi"]
    if printed:
        again = [more for event in again for more in _with_what_real_ones_hold(event)]
    parts, values, moves = template(again, period, _print if printed else orjson.dumps)
    count = steps(len(parts % tuple(values.tolist())))
    with path.open("wb") as file:
        file.write(orjson.dumps(content)[:-1] + b',"traceEvents":[' + b",".join(map(orjson.dumps, once)))
        for number in range(count):
            file.write(parts % tuple((values + number * moves).tolist()))
        file.write(b"]}")
    kept = sum(event.get("cat") in KEPT for event in again)
    return Written(len(once) + count * len(again), count * kept)


def template(events: list[dict[str, Any]], period: int, dump: Print) -> tuple[bytes, np.ndarray, np.ndarray]:
    """The text of a step's events with places for numbers, those of the first step, and by how much they move on."""
    values: list[tuple[float, str]] = []

    def place(number: float, kind: str) -> str:
        values.append((number, kind))
        return f"@{kind}@"

    lines = [dump(_opened(event, place)) for event in events]
    text = b"".join(b"," + line for line in lines).replace(b"%", b"%%")
    text = text.replace(b'"@time@"', b"%.3f").replace(b"@step@", b"%d")
    text = re.sub(rb'"@[^@"]*@"', b"%d", text)
    most: dict[str, float] = {}
    for number, kind in values:
        most[kind] = max(most.get(kind, 0), number + 1)
    moves = most | {"time": period / 1000, "step": 1}
    return text, np.array([number for number, _ in values]), np.array([moves[kind] for _, kind in values])


def _opened(event: dict[str, Any], place: Any) -> dict[str, Any]:
    """The event with places instead of what differs from step to step, in the order in which they are written."""
    opened = dict(event)
    for key, value in event.items():
        if key == "name" and value.startswith("ProfilerStep#"):
            opened[key] = "ProfilerStep#" + place(int(value.removeprefix("ProfilerStep#")), "step")
        elif key == "id":
            opened[key] = place(value, event["cat"])
        elif key == "ts":
            opened[key] = place(value, "time")
        elif key == "args":
            opened[key] = {k: place(v, k) if k in COUNTED else v for k, v in value.items()}
    return opened


def _with_what_real_ones_hold(event: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The event with the arguments that a recording with shapes has, and the function that called an operator."""
    more = {"cpu_op": SHAPED, "kernel": LAUNCHED}.get(event["cat"])
    yield event if more is None else event | {"args": more | event["args"]}
    if event["cat"] == "cpu_op":
        number = event["args"]["External id"]
        called = {"Python parent id": 17, "Python id": number, "Ev Idx": number}
        frame = {"ph": "X", "cat": "python_function", "name": CALLED[number % 2]}
        yield frame | {key: event[key] for key in ("pid", "tid", "ts", "dur")} | {"args": called}


def _print(event: dict[str, Any]) -> bytes:
    """The event as Kineto breaks its lines."""
    parts = (
        [key for key in event if key not in ("ts", "dur", "args")],
        [key for key in ("ts", "dur") if key in event],
    )
    lines = [", ".join(f"{json.dumps(key)}: {json.dumps(event[key])}" for key in part) for part in parts]
    if "args" in event:
        told = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in event["args"].items())
        lines.append(f'"args": {{\n      {told}\n    }}')
    return ("\n  {\n    " + ",\n    ".join(filter(None, lines)) + "\n  }").encode()


def main() -> None:
    """Write traces and tell their events."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=60, help="of each trace")
    parser.add_argument("--ranks", type=int, default=P, choices=range(1, P + 1))
    parser.add_argument("--printed", action="store_true", help="as real traces are")
    options = parser.parse_args()
    print(
        json.dumps(write_job(options.folder, options.megabytes, ranks=options.ranks, printed=options.printed)._asdict())
    )


if __name__ == "__main__":
    main()
