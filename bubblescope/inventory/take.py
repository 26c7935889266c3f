"""`bubblescope info`: every file for itself, and all of them as one job."""

from __future__ import annotations

from pathlib import Path

from bubblescope._version import __version__
from bubblescope.engine import Traces
from bubblescope.ingest import sources
from bubblescope.inventory.of_file import inspect, unreadable
from bubblescope.inventory.of_job import together
from bubblescope.mapping import Progress, each_file
from bubblescope.model.info import Info
from bubblescope.model.options import Options
from bubblescope.model.report import Tool

__all__ = ["info"]


def info(traces: Traces, options: Options = Options(), progress: Progress | None = None) -> Info:  # noqa: B008 - frozen
    """Say what files are, what they hold, what is wrong with them and what they lack.

    A file that is no trace, or that cannot be read, has its place among the others and says why.

    Args:
        traces: files, directories or globs; those of all ranks of one job, or any.
        options: what the user states; `jobs` is how many files are read at a time.
        progress: told how many bytes are read.

    Raises:
        InputError: a path does not exist or a directory cannot be listed.
    """
    named = [str(trace) for trace in ([traces] if isinstance(traces, str | Path) else traces)]
    found = sources.listed(named)
    paths = [path for path, form in found.files if form.readable]
    read = each_file(inspect, paths, options, progress) if paths else {}
    files = [
        read[path].told(path, form) if path in read else unreadable(path, form, alone=not paths)
        for path, form in found.files
    ]
    timelines = [timeline for path, _ in found.files if path in read for timeline in read[path].timelines]
    return Info(
        tool=Tool(name="bubblescope", version=__version__),
        files=tuple(files),
        job=together(timelines, found.findings, named, options),
    )
