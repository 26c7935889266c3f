"""How replay and detection grow with the size of a pipeline: time an action, against the smallest shape.

    python benchmarks/schedules.py [--runs 3]

Both should stay flat: a ratio well above 1 at the bottom of the table means that a step became quadratic.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

from bubblescope.schedules.detect import detect
from bubblescope.schedules.family import EVEN, Shape, durations
from bubblescope.schedules.registry import find
from bubblescope.schedules.replay import replay

SIZES = [
    ("interleaved-1f1b", Shape(8, 64, 4)),
    ("interleaved-1f1b", Shape(16, 128, 4)),
    ("interleaved-1f1b", Shape(64, 512, 4)),
    ("zb-h1", Shape(8, 64)),
    ("zb-h1", Shape(16, 256)),
    ("zb-h1", Shape(32, 512)),
    ("zb-v", Shape(8, 64, 2)),
    ("zb-v", Shape(32, 256, 2)),
]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each, of which the median counts")
    runs = parser.parse_args().runs
    print(f"{'schedule':18}{'p':>4}{'m':>5}{'v':>3}{'actions':>9}{'replay':>9}{'ratio':>7}{'detect':>9}{'ratio':>7}")
    first: dict[str, tuple[float, float]] = {}
    for name, shape in SIZES:
        orders = find(name).orders(shape)
        lengths = durations(orders.values(), shape, EVEN)
        replayed = timed(lambda o=orders, d=lengths, s=shape: replay(o, d, last_stage=s.stages - 1), runs)
        detected = timed(lambda o=orders, s=shape: detect(o, s), runs)
        each = replayed / len(lengths), detected / len(lengths)
        base = first.setdefault(name, each)
        print(
            f"{name:18}{shape.p:4}{shape.m:5}{shape.v:3}{len(lengths):9}{replayed:8.2f}s{each[0] / base[0]:7.2f}"
            f"{detected:8.2f}s{each[1] / base[1]:7.2f}"
        )


def timed(run: Callable[[], object], runs: int) -> float:
    """Median seconds of a call."""
    seconds = []
    for _ in range(runs):
        begun = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - begun)
    return statistics.median(seconds)


if __name__ == "__main__":
    main()
