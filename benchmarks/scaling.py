"""Whether the cost of an analysis grows with its input only: time per event from 100 thousand to 3 million kernels.

    python benchmarks/scaling.py [--sizes 100000 1000000] [--told labels autograd kernels] [--runs 3] [--profile]

Four ranks of a 1f1b job; with the size grow micro-batches a step, kernels an action and steps. One step is emitted,
and repeated with its times and ids moved on. Each measurement is a fresh process that reads without helpers; what is
compared is its processor time an event, as a ratio to the smallest size's. The target is that no ratio is above 1.3.
Three million kernels need 6 GB of disk for each of the three kinds of trace, one after the other.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from traces import Size, write_traces

TARGET = 1.3


SIZES = {
    100_000: Size(8, 200, 8),
    300_000: Size(16, 290, 8),
    1_000_000: Size(16, 500, 16),
    3_000_000: Size(32, 750, 16),
}
TOLD: dict[str, dict[str, Any]] = {
    "labels": {"labels": "pp"},
    "autograd": {"labels": "none"},
    "kernels": {"labels": "none", "autograd": False},
}
RUN = """
import json, sys, time
from bubblescope.engine import analyze
from bubblescope.model.options import Options
begin = time.process_time()
report = analyze([sys.argv[1]], Options(jobs=1)).report
seconds = time.process_time() - begin
told = report.schedule
print(json.dumps([seconds, sum(file.events for file in report.inputs), told.name, told.microbatches]))
"""
PROFILE = """
import cProfile, pstats, sys
from bubblescope.engine import analyze
from bubblescope.model.options import Options
profile = cProfile.Profile()
profile.runcall(analyze, [sys.argv[1]], Options(jobs=1))
pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(15)
"""


class Measured(NamedTuple):
    """Processor seconds, events read, and what was found."""

    seconds: float
    events: int
    schedule: str
    microbatches: int | None


def measure(folder: Path) -> Measured:
    """Analyze a folder in a fresh process."""
    ran = subprocess.run([sys.executable, "-c", RUN, str(folder)], check=True, capture_output=True, text=True)
    return Measured(*json.loads(ran.stdout))


def profile(folder: Path) -> None:
    """Print where the time goes."""
    subprocess.run([sys.executable, "-c", PROFILE, str(folder)], check=True)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--told", nargs="+", choices=TOLD, default=list(TOLD))
    parser.add_argument("--runs", type=int, default=3, help="of which the quickest counts")
    parser.add_argument("--profile", action="store_true", help="show where the time of the largest size goes")
    options = parser.parse_args()
    print(f"{'told by':10}{'kernels':>10}{'events':>12}{'seconds':>9}{'µs/event':>10}{'ratio':>7}  found")
    for told in options.told:
        least = None
        for number in sorted(options.sizes):
            with tempfile.TemporaryDirectory() as folder:
                size = SIZES[number]
                write_traces(Path(folder), size, TOLD[told])
                found = min(measure(Path(folder)) for _ in range(options.runs))
                each = found.seconds / found.events
                least = least or each
                row = f"{told:10}{size.total:10}{found.events:12}{found.seconds:9.2f}{1e6 * each:10.3f}"
                note = "" if each <= TARGET * least else "  above the target"
                print(
                    f"{row}{each / least:7.2f}  {found.schedule}, m={found.microbatches} of {size.m}{note}", flush=True
                )
                if options.profile and number == max(options.sizes):
                    profile(Path(folder))


if __name__ == "__main__":
    main()
