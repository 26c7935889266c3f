"""What a file is: the map step of `bubblescope info`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bubblescope.errors import InputError
from bubblescope.ingest import registry
from bubblescope.ingest.pieces import Split
from bubblescope.ingest.sniff import Format
from bubblescope.ingest.stream import Stream
from bubblescope.inventory.of_rank import describe
from bubblescope.mapping import readable, timeline_of
from bubblescope.model.info import FileInfo, RankInfo
from bubblescope.model.options import Options
from bubblescope.model.timeline import RankTimeline

__all__ = ["Inspected", "inspect", "unreadable"]


@dataclass(frozen=True, slots=True)
class Inspected:
    """What was read of a file: its ranks, the timelines of those that tell any, and why no more was."""

    format: str | None
    ranks: tuple[RankInfo, ...]
    timelines: tuple[RankTimeline, ...]
    problem: str | None = None
    hint: str | None = None

    def told(self, path: Path, found: Format) -> FileInfo:
        """The file, as far as it was read."""
        return _file(path, found, self)


def inspect(
    path: Path, options: Options, progress: Callable[[int], None] | None = None, split: Split | None = None
) -> Inspected:
    """Read a file and say what it holds; an error of the input is told, and what was read before it stands."""
    ranks: list[RankInfo] = []
    timelines: list[RankTimeline] = []
    form: str | None = None
    try:
        with readable(path):
            for trace in registry.read(path, progress, split):
                form = trace.source.format
                timeline, problem = None, None
                try:
                    timeline = timeline_of(trace, options)
                    timelines.append(timeline)
                except InputError as error:
                    problem = error.message
                ranks.append(describe(trace, timeline, problem))
    except InputError as error:
        return Inspected(form, tuple(ranks), tuple(timelines), error.message, error.hint)
    return Inspected(form, tuple(ranks), tuple(timelines))


def unreadable(path: Path, found: Format, *, alone: bool) -> FileInfo:
    """A file that is no trace; unless it is `alone`, beside traces, nothing need be done with one of another kind."""
    hint = found.hint if alone or not found.unrelated else None
    return _file(path, found, Inspected(None, (), (), f"no trace: it looks like {found.looks_like}", hint))


def _file(path: Path, found: Format, read: Inspected) -> FileInfo:
    size, gzip = _size(path)
    return FileInfo(
        path=str(path),
        looks_like=found.looks_like,
        trace=found.readable,
        format=read.format,  # type: ignore[arg-type]
        bytes=size,
        gzip=gzip,
        ranks=read.ranks,
        problem=read.problem,
        hint=read.hint,
    )


def _size(path: Path) -> tuple[int, bool]:
    """Bytes of a file, and whether it is gzip; 0 where it cannot be opened."""
    try:
        with Stream(path) as stream:
            return stream.bytes, stream.gzipped
    except InputError:
        return 0, False
