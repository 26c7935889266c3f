"""How fast a trace is read, against loading the same bytes with orjson, and how much memory it takes.

    python benchmarks/intake.py [--megabytes 400] [--runs 5] [--gzip]

Each measurement is a fresh process; orjson runs with the garbage collector off, which makes it three
times faster than it is by itself. Ratios carry from machine to machine, seconds do not.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85028896768}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "pg_count": 1, "pg_config": []},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1759300074000000000,
  "traceEvents": [
"""
TAIL = """
  ],
  "traceName": "rank0.pt.trace.json"
}
"""
OPERATOR = """  {{
    "ph": "X", "cat": "cpu_op", "name": "{name}", "pid": 4711, "tid": {tid},
    "ts": {ts:.3f}, "dur": {dur:.3f},
    "args": {{
      "External id": {id},"Record function id": 0, "Sequence number": {id}, "Fwd thread id": 0,
      "Concrete Inputs": ["", "", "1"], "Input type": ["float", "float", "Scalar"],
      "Input Dims": [[4, 4096, 1024], [1024, 4096], []], "Ev Idx": {id}
    }}
  }},
"""
CALL = """  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": {tid},
    "ts": {ts:.3f}, "dur": {dur:.3f},
    "args": {{
      "External id": {id}, "cbid": 211, "correlation": {id}
    }}
  }},
"""
KERNEL = """  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": 7,
    "ts": {ts:.3f}, "dur": {dur:.3f},
    "args": {{
      "External id": {id},
      "queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": {id},
      "registers per thread": 32, "shared memory": 0, "blocks per SM": 12.4,
      "warps per SM": 49.6, "grid": [16384, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 100
    }}
  }},
"""
FLOW = """  {{
    "ph": "{half}", "id": {id}, "pid": {pid}, "tid": {tid}, "ts": {ts:.3f},
    "cat": "ac2g", "name": "ac2g"
  }},
"""
FRAME = """  {{
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/module.py(1553): _call_impl",
    "pid": 4711, "tid": {tid},
    "ts": {ts:.3f}, "dur": {dur:.3f},
    "args": {{
      "Python parent id": {id}, "Python id": {id}, "Ev Idx": {id}
    }}
  }},
"""
KERNELS = [
    f"void at::native::vectorized_elementwise_kernel<{n}, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
    "(int, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul>)"
    for n in range(40)
]
NAMES = ["aten::linear", "aten::addmm", "aten::mul_", "aten::layer_norm", "AddmmBackward0", "aten::copy_"]


def write_trace(path: Path, size: int, *, seed: int = 1) -> int:
    """Write a trace of about `size` bytes as a GPU run records it; the number of its events."""
    draw, ts, number, written = random.Random(seed), 5.0e12, 1, 0  # noqa: S311 - no secret
    with path.open("w") as file:
        file.write(HEAD)
        while written < size:
            ts += draw.random() * 20
            fields = {"id": number, "tid": 4711 if number % 3 else 4712, "pid": 4711, "ts": ts}
            fields |= {"dur": draw.random() * 90, "name": draw.choice(NAMES), "kernel": draw.choice(KERNELS)}
            parts = (FRAME, OPERATOR, OPERATOR, CALL, FLOW, KERNEL, FLOW)
            written += file.write("".join(part.format(half="sf"[part is KERNEL], **fields) for part in parts))
            number += 1
        file.write('  {"ph": "i", "name": "Record Window End", "pid": "", "tid": "", "ts": 1}' + TAIL)
    return (number - 1) * 7 + 1


OURS = """
from pathlib import Path
from bubblescope.ingest.chrome import read
begin = time.perf_counter()
trace = read(Path(sys.argv[1]))
kept = sum(map(len, (trace.ops, trace.annotations, trace.launches, trace.kernels)))
"""
THEIRS = """
import gc, gzip, orjson
text = open(sys.argv[1], "rb").read()
text = gzip.decompress(text) if text[:2] == b"\\x1f\\x8b" else text
gc.disable()
begin = time.perf_counter()
kept = len(orjson.loads(text)["traceEvents"])
"""
FRAME_OF_RUN = """
import json, resource, sys, time
import numpy, msgspec
idle = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{body}
seconds = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([seconds, peak / 1024, (peak - idle) / 1024, kept]))
"""


def measure(body: str, path: Path) -> list[float]:
    """Seconds, peak megabytes, those above the libraries' own, and events kept, of one fresh process."""
    program = FRAME_OF_RUN.format(body=body)
    ran = subprocess.run([sys.executable, "-c", program, str(path)], check=True, capture_output=True, text=True)
    return [float(value) for value in json.loads(ran.stdout)]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--gzip", action="store_true", help="read the file gzipped; orjson gets it inflated for free")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rank0.json"
        events = write_trace(path, options.megabytes * 10**6)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {events} events", end="")
        if options.gzip:
            packed = path.with_suffix(".json.gz")
            # Piece by piece: Linux counts this process's own peak into those of the processes that it starts.
            with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=1) as target:
                shutil.copyfileobj(plain, target, 1 << 20)
            path = packed
            print(f", {path.stat().st_size / 1e6:.0f} MB gzipped", end="")
        runs = [(measure(OURS, path), measure(THEIRS, path)) for _ in range(options.runs)]
    ours, theirs = (
        [statistics.median(column) for column in zip(*side, strict=True)] for side in zip(*runs, strict=True)
    )
    ratio = statistics.median(our[0] / their[0] for our, their in runs)
    kept = ours[3]
    print(f", {kept:.0f} kept\n\n{'':22}{'seconds':>9}{'peak MB':>9}{'MB/s':>7}")
    size = options.megabytes
    print(f"{'bubblescope':22}{ours[0]:9.2f}{ours[1]:9.0f}{size / ours[0]:7.0f}")
    print(f"{'orjson.loads, no gc':22}{theirs[0]:9.2f}{theirs[1]:9.0f}{size / theirs[0]:7.0f}")
    print(f"\nratio {ratio:.2f}; above the libraries {ours[2]:.0f} MB, allowed {100 + 80 * kept / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
