"""Coverage-guided fuzzing of what reads traces: only errors that a user can act on may come out, in time.

    python fuzz/readers.py chrome  [-max_total_time=3600] [options of libFuzzer] [folder of a corpus]

Targets are `chrome` (JSON and gzip: traces, lists of slices), `nsys` (SQLite exports), `table` (CSV of slices), and
`analyze` (any of them, through the whole analysis and every output). What libFuzzer changes blindly the mutations of
the corpus test change with sense. A finding is left as a file `crash-*`, `timeout-*` or `oom-*`, and as a traceback;
given as an argument in place of a corpus it is run again.

It needs atheris (`pip install atheris`), which nothing else here does.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

with atheris.instrument_imports(include=["bubblescope"]):
    from bubblescope.engine import analyze, read_ranks
    from bubblescope.errors import BubblescopeError
    from bubblescope.ingest import chrome, registry
    from bubblescope.model.options import Options
    from bubblescope.report.registry import FORMATS, render

from fuzz.seeds import seeds
from tests.damage.mutate import mutated

SECONDS, MEGABYTES, LONGEST = 30, 2048, 200_000
MEMORY = Path("/dev/shm")  # noqa: S108 - where files cost no disk, if there is such a place
SENSIBLE = 0.5
"""Share of the mutations that know what they change."""


def read(path: Path) -> None:
    """Read every rank, and look whether its columns fit together."""
    for trace in registry.read(path):
        if hasattr(trace, "self_check"):
            trace.self_check()


def read_json(path: Path) -> None:
    """The same for what is surely meant to be JSON, whatever it looks like; in windows so small that there are many."""
    chrome.read(path, window=1 << 15).self_check()
    read(path)


def run(path: Path) -> None:
    """The whole analysis, and every output."""
    read_ranks(path, Options())
    report = analyze(path, Options(jobs=1)).report
    for name in FORMATS:
        render(name, report)


TARGETS: dict[str, tuple[Callable[[Path], None], str]] = {
    "chrome": (read_json, "rank0.json"),
    "nsys": (read, "rank0.sqlite"),
    "table": (read, "rank0.csv"),
    "analyze": (run, "rank0.json"),
}


def target(how: Callable[[Path], None], path: Path) -> Callable[[bytes], None]:
    """What libFuzzer calls with one input after the other."""

    def one(data: bytes) -> None:
        path.write_bytes(data)
        with contextlib.suppress(BubblescopeError):
            how(path)

    return one


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """One input from another: with sense, or as libFuzzer does it."""
    if seed % 1000 < 1000 * SENSIBLE:
        found = mutated(data, seed).data
        if len(found) <= most:
            return found
    return atheris.Mutate(data, most)


def main() -> None:
    """Fuzz until told to stop."""
    name, arguments = sys.argv[1], sys.argv[2:]
    how, file = TARGETS[name]
    folder = Path(tempfile.mkdtemp(prefix="bubblescope-fuzz-", dir=MEMORY if MEMORY.is_dir() else None))
    limits = [f"-timeout={SECONDS}", f"-rss_limit_mb={MEGABYTES}", f"-max_len={LONGEST}"]
    try:
        corpus = [str(seeds(folder / "seeds", name))] if not any(Path(a).is_file() for a in arguments) else []
        atheris.Setup([sys.argv[0], *limits, *arguments, *corpus], target(how, folder / file), custom_mutator=mutate)
        atheris.Fuzz()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
