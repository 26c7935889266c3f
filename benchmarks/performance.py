"""How fast a job is analyzed and in how much memory, against decoders of the same files and against HTA.

    python benchmarks/performance.py [--runs 5] [--hta PYTHON] [--only ranks file growth damage] [--folder FOLDER]

Prints the tables of docs/performance.md, in about ten minutes, and takes 4 GB of disk. Each measurement is a fresh
process from its start to its end, and its peak that of the largest of its processes. Those that are compared take
turns, so that what else the machine does meets all of them; ratios are medians of the ratios of one turn. Seconds
differ from machine to machine, ratios hardly.

`ranks`: 4 traces of 60 MB by the whole command, against a bare decoder (`msgspec`, typed, two processes) and HTA's
temporal breakdown. `file`: one trace of 400 MB, also gzipped, against `orjson.loads` of its bytes, which are read
before its clock starts, with the garbage collector off. `growth`: from 10 MB to 2 GB, processor time of one process an
event, beyond that of a trace of hardly any, and peaks of as many as are used. `damage`: a trace of 60 MB with something
wrong in every event, against the same with a number there, likewise.

HTA comes in an environment of its own: python -m venv hta && hta/bin/pip install traceinsight==0.6.1, then
--hta hta/bin/python.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import bubblescope

OURS = "from bubblescope.cli import main; main()"
BARE = """
import gc, sys
from concurrent.futures import ProcessPoolExecutor
import msgspec

class Arguments(msgspec.Struct, gc=False):
    stream: int | str | None = None
    device: int | str | None = None
    correlation: int = -1

class Event(msgspec.Struct, gc=False):
    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = ""
    tid: int | str = ""
    ts: float = 0
    dur: float = 0
    args: Arguments | None = None

class Trace(msgspec.Struct, gc=False):
    traceEvents: list[Event] = []

def load(path):
    gc.disable()
    with open(path, "rb") as file:
        return len(msgspec.json.decode(file.read(), type=Trace).traceEvents)

if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print(sum(pool.map(load, sys.argv[1:])))
"""
ORJSON = """
import gc, sys, time
import orjson

with open(sys.argv[1], "rb") as file:
    text = file.read()
gc.disable()
begin = time.perf_counter()
orjson.loads(text)
print(time.perf_counter() - begin)
"""
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis

traces = TraceAnalysis(trace_files=dict(enumerate(sys.argv[1:])))
print(traces.get_temporal_breakdown(visualize=False))
"""
HTA_RUNS = 2  # it takes ten times as long as all others together
GROWTH = {10: 45, 60: 15, 400: 7, 2000: 3}
"""Megabytes, and how many turns: the fewer events, the more of the time is that of the start, which varies."""

DAMAGE = {
    "`NaN`": (b"NaN", 1.5),
    "`-inf`": (b"-inf", 1.5),
    "an integer beyond 64 bits": (b"1180591620717411303424", 1.5),
    "a text that is no UTF-8": (b'"caf\xe9"', 1.5),
    "no value": (b"", None),
    "a backslash that escapes nothing": (b'"C:\\Users"', None),
}
"""What stands in the place of a number in every event, and how much longer than it that may take."""
DAMAGED_RUNS = 9


class Ran(NamedTuple):
    """Seconds from start to end, processor seconds and peak megabytes of the largest process; what was printed."""

    seconds: float
    processor: float
    peak: float
    printed: str


class FailedError(Exception):
    """A program failed, and said this last."""


def run(*command: str) -> Ran:
    """Run a program to its end; raises FailedError."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if process.returncode:
            raise FailedError(err.read().strip().splitlines()[-1])
        return Ran(seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, out.read())


def analyze(*arguments: str) -> Ran:
    """The whole command."""
    return run(sys.executable, "-c", OURS, "analyze", "-q", "--json", *arguments)


def written(folder: Path, megabytes: int, *more: str) -> dict[str, int]:
    """Write traces by a process of its own: Linux counts a process's peak into those of the ones that it starts."""
    folder.mkdir(parents=True)
    made = run(
        sys.executable, str(Path(__file__).with_name("traces.py")), str(folder), f"--megabytes={megabytes}", *more
    )
    return json.loads(made.printed)


def row(*cells: object) -> None:
    """Print a row of a table."""
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def heading(*cells: str) -> None:
    """Print the first two rows."""
    print()
    row(*cells)
    row(*("---" for _ in cells))


def spread(values: Sequence[float]) -> str:
    """Median, and the least and the most."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def peak(runs: Sequence[Ran]) -> str:
    """The largest peak."""
    return f"{max(ran.peak for ran in runs):.0f}"


def ratio(ours: Sequence[float], theirs: Sequence[float], most: float) -> str:
    """Median of the ratios turn by turn, beside what is allowed."""
    return (
        f"**{statistics.median(our / their for our, their in zip(ours, theirs, strict=False)):.2f}** (at most {most})"
    )


def seconds_of(runs: Sequence[Ran]) -> list[float]:
    """From start to end."""
    return [ran.seconds for ran in runs]


def ranks(folder: Path, runs: int, hta: str | None) -> None:
    """Four ranks of 60 MB."""
    print("\n### Four ranks of 60 MB")
    heading("traces", "program", "seconds", "peak MB", "ours / theirs")
    for kind, flags in (("compact", ()), ("as Kineto prints", ("--printed",))):
        written(folder / kind, 60, *flags)
        paths = sorted(map(str, (folder / kind).iterdir()))
        turns = [(analyze(*paths), run(sys.executable, "-c", BARE, *paths)) for _ in range(runs)]
        ours, bare = zip(*turns, strict=True)
        row(kind, "bubblescope", spread(seconds_of(ours)), peak(ours), "")
        row("", "msgspec, typed", spread(seconds_of(bare)), peak(bare), ratio(seconds_of(ours), seconds_of(bare), 2.5))
        if hta is not None:
            against_hta(hta, paths, ours)
        shutil.rmtree(folder / kind)
    if hta is None:
        print("\nHTA was left out: `--hta PYTHON` names an interpreter that has it (see `--help`).")


def against_hta(hta: str, paths: Sequence[str], ours: Sequence[Ran]) -> None:
    """A row of what HTA takes for the same; not in turns with ours, so that medians are compared."""
    try:
        theirs = [run(hta, "-c", HTA, *paths) for _ in range(HTA_RUNS)]
    except FailedError as error:
        row("", "HTA", "fails", "", f"`{error}`")
        return
    memory = ratio([max(ran.peak for ran in ours)], [max(ran.peak for ran in theirs)], 0.5)
    medians = [[statistics.median(seconds_of(runs))] for runs in (ours, theirs)]
    told = f"{ratio(*medians, 0.1)}; peak {memory}"
    row("", "HTA", spread(seconds_of(theirs)), peak(theirs), told)


def file(folder: Path, runs: int, _hta: str | None) -> None:
    """One file of 400 MB."""
    print("\n### One file of 400 MB")
    heading("trace", "program", "seconds", "peak MB", "ours / theirs")
    for kind, flags in (("compact", ()), ("as Kineto prints", ("--printed",))):
        written(folder / kind, 400, "--ranks=1", *flags)
        (path,) = (folder / kind).iterdir()
        packed = path.with_suffix(".json.gz")
        with path.open("rb") as plain, gzip.open(packed, "wb", compresslevel=1) as target:
            shutil.copyfileobj(plain, target, 1 << 20)
        turns = [
            (analyze(str(path)), analyze(str(packed)), run(sys.executable, "-c", ORJSON, str(path)))
            for _ in range(runs)
        ]
        ours, from_gzip, loads = zip(*turns, strict=True)
        theirs = [float(ran.printed) for ran in loads]
        row(kind, "bubblescope", spread(seconds_of(ours)), peak(ours), ratio(seconds_of(ours), theirs, 0.75))
        told = ratio(seconds_of(from_gzip), theirs, 0.95)
        row("", "bubblescope, from gzip", spread(seconds_of(from_gzip)), peak(from_gzip), told)
        row("", "orjson.loads alone", spread(theirs), peak(loads), "")
        shutil.rmtree(folder / kind)


def growth(folder: Path, _runs: int, _hta: str | None) -> None:
    """From 10 MB to 2 GB."""
    print("\n### Growth")
    heading("MB", "events", "kept", "seconds", "processor µs an event", "ratio", "peak MB", "allowed")
    few = written(folder / "least", 0, "--ranks=1", "--printed")["events"]
    least = None
    for megabytes, runs in GROWTH.items():
        made = written(folder / str(megabytes), megabytes, "--ranks=1", "--printed")
        (path,) = (folder / str(megabytes)).iterdir()
        ran = [analyze(str(path)) for _ in range(runs)]
        turns = [(processor(path), processor(folder / "least")) for _ in range(runs)]
        whole, start = map(statistics.median, zip(*turns, strict=True))
        each = (whole - start) / (made["events"] - few)
        least = least or each
        allowed = 100 + 80 * made["kept"] / 2**20
        row(
            f"{path.stat().st_size / 1e6:.0f}",
            f"{made['events']:,}",
            f"{made['kept']:,}",
            spread(seconds_of(ran)),
            f"{1e6 * each:.2f}",
            f"**{each / least:.2f}** (at most 1.2)",
            peak(ran),
            f"{allowed:.0f}",
        )
        shutil.rmtree(path.parent)


def damage(folder: Path, _runs: int, _hta: str | None) -> None:
    """One file of 60 MB with something wrong in every event."""
    print("\n### Damage")
    heading("in every event", "processor µs an event", "as much as sound")
    few = written(folder / "least", 0, "--ranks=1", "--printed")["events"]
    events = written(folder / "sound", 60, "--ranks=1", "--printed")["events"] - few
    (sound,) = (folder / "sound").iterdir()
    before, *parts = sound.read_bytes().split(b'"args": {\n')
    bad = folder / "damaged" / sound.name
    bad.parent.mkdir()

    def write(path: Path, value: bytes) -> Path:
        with path.open("wb") as file:
            file.write(before)
            file.writelines(b'"args": {\n      "x": ' + value + b"," + part for part in parts)
        return path

    write(sound, b"1.0")
    start = statistics.median(processor(folder / "least") for _ in range(DAMAGED_RUNS))
    for name, (value, most) in DAMAGE.items():
        write(bad, value)
        runs = DAMAGED_RUNS if most else 1
        turns = [(processor(sound) - start, processor(bad) - start) for _ in range(runs)]
        whole, damaged = zip(*turns, strict=True)
        told = ratio(damaged, whole, most) if most else f"{statistics.median(damaged) / statistics.median(whole):.0f}"
        row(name, f"{1e6 * statistics.median(damaged) / events:.2f}", told)
    shutil.rmtree(folder)


def processor(path: Path) -> float:
    """Processor seconds of an analysis by one process."""
    return analyze(str(path), "--jobs=1").processor


PARTS = {"ranks": ranks, "file": file, "growth": growth, "damage": damage}


def machine() -> Iterator[str]:
    """What was measured with."""
    model = next((line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if "model name" in line), "")
    yield f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {model or platform.processor()}"
    names = ("msgspec", "orjson", "numpy", "isal")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    yield f"Python {platform.python_version()}, bubblescope {bubblescope.__version__}, {versions}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines() if Path(path).exists() else []


@contextmanager
def place(folder: Path | None) -> Iterator[Path]:
    """A folder for the traces, which goes afterwards."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        yield Path(made)


def main() -> None:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="turns of each comparison")
    parser.add_argument("--hta", metavar="PYTHON", help="an interpreter that has traceinsight 0.6.1")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--folder", type=Path, help="where the traces are written for as long as it takes")
    options = parser.parse_args()
    compileall.compile_dir(Path(bubblescope.__file__).parent, quiet=1)  # as an installation does
    print(*machine(), sep="\n\n")
    with place(options.folder) as folder:
        for part in options.only:
            PARTS[part](folder / part, options.runs, options.hta)


if __name__ == "__main__":
    main()
