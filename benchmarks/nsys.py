"""How long the analysis of an export of Nsight Systems takes, against fetching its columns by sqlite3; and its memory.

    python benchmarks/nsys.py [--kernels 2000000] [--runs 3] [--file EXPORT]

The export is made by `exports.py`. Each measurement is a fresh process, from its start to its end, and the two take
turns. The other side fetches the columns that an analysis needs and makes numpy arrays of them, in the quickest of the
plain ways that were tried (`fetchmany` of 200 to 100,000 rows; `np.array` of the rows, `np.fromiter` of their chained
values, arrays of the columns; memory-mapped or not, garbage collector on or off). Its peak counts the file that it
maps. The targets are a ratio of 2.5 and 1.5 GB.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

TARGET_RATIO = 2.5
TARGET_MB = 1500

OURS = "from bubblescope.cli import main; main()"
THEIRS = """
import gc, sqlite3, sys
from itertools import chain
from pathlib import Path
import numpy as np

database = sqlite3.connect(f"{Path(sys.argv[1]).resolve().as_uri()}?mode=ro&immutable=1", uri=True)
database.execute("PRAGMA mmap_size = 1099511627776")
gc.disable()

def numbers(columns, table):
    parts, found, wide = [], database.execute(f"SELECT {columns} FROM {table}"), columns.count(",") + 1
    while rows := found.fetchmany(1000):
        parts.append(np.fromiter(chain.from_iterable(rows), np.int64, len(rows) * wide).reshape(-1, wide))
    return np.concatenate(parts).T

def numbers_and_text(columns, table):
    parts, texts, found = [], [], database.execute(f"SELECT {columns} FROM {table}")
    while rows := found.fetchmany(1000):
        *values, text = zip(*rows)
        parts.append([np.array(value, np.int64) for value in values])
        texts += text
    return [np.concatenate(column) for column in zip(*parts)], texts

kernels = numbers(
    "start, end, deviceId, streamId, correlationId, globalPid, demangledName", "CUPTI_ACTIVITY_KIND_KERNEL"
)
calls = numbers("start, end, globalTid, correlationId, nameId", "CUPTI_ACTIVITY_KIND_RUNTIME")
ranges = numbers_and_text(
    "start, ifnull(end, -1), eventType, globalTid, domainId, ifnull(textId, -1), text", "NVTX_EVENTS"
)
strings = numbers_and_text("id, value", "StringIds")
"""


class Measured(NamedTuple):
    """Seconds of the clock and of the processor, and the peak of the memory in megabytes."""

    wall: float
    cpu: float
    peak: float


def measure(program: str, *arguments: str) -> Measured:
    """What one fresh process takes."""
    with tempfile.TemporaryFile() as said:
        begin = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise SystemExit(said.read().decode(errors="replace"))
    return Measured(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def median(runs: list[Measured]) -> Measured:
    """The median of each column."""
    return Measured(*map(statistics.median, zip(*runs, strict=True)))


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--file", type=Path, help="measure with this export; it is made, and kept, if it is not there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.file or Path(folder) / "job.sqlite"
        if not path.exists():
            # In a process of its own: Linux counts this one's peak into those of the processes that it starts.
            made = [sys.executable, str(Path(__file__).with_name("exports.py")), str(path)]
            subprocess.run([*made, "--kernels", str(options.kernels)], check=True)
        print(f"{path.stat().st_size / 1e6:.0f} MB, {options.kernels} kernels asked for\n", flush=True)
        turns = [
            (measure(THEIRS, str(path)), measure(OURS, "analyze", str(path), "--json")) for _ in range(options.runs)
        ]
    theirs, ours = (median(list(side)) for side in zip(*turns, strict=True))
    print(f"{'':26}{'seconds':>9}{'cpu':>9}{'peak MB':>9}")
    for name, row in (("sqlite3 into numpy", theirs), ("bubblescope analyze", ours)):
        print(f"{name:26}{row.wall:9.2f}{row.cpu:9.2f}{row.peak:9.0f}")
    ratio = statistics.median(our.wall / their.wall for their, our in turns)
    cpu = statistics.median(our.cpu / their.cpu for their, our in turns)
    print(f"\nratio {ratio:.2f} ({cpu:.2f} of the processor), allowed {TARGET_RATIO}; {ours.peak:.0f} MB, ", end="")
    print(f"allowed {TARGET_MB}")


if __name__ == "__main__":
    main()
