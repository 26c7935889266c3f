"""Traces of the PyTorch Profiler (Kineto), and other traces in Chrome's JSON format.

The file is read once, in windows; only the columns of what is kept grow with its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bubblescope.errors import InputError
from bubblescope.ingest.assemble import assemble
from bubblescope.ingest.collect import Collector
from bubblescope.ingest.events import Window, decode_exact, decode_fast
from bubblescope.ingest.mending import WORDS
from bubblescope.ingest.metadata import Members
from bubblescope.ingest.pause import collector_paused
from bubblescope.ingest.pieces import Part, Piece, Split
from bubblescope.ingest.repairs import Repairs
from bubblescope.ingest.stream import WINDOW, Buffer, Place, Progress, Stream
from bubblescope.ingest.times import InexactError
from bubblescope.ingest.walk import Document, Events, Member, walk
from bubblescope.ingest.windows import windows
from bubblescope.model.trace import RankTrace

__all__ = ["read", "read_all"]


def read(path: str | Path, *, progress: Progress | None = None, window: int = WINDOW) -> RankTrace:
    """The events of the rank of a file that holds one; as `read_all`."""
    first, *more = read_all(path, progress=progress, window=window)
    if more:
        raise InputError(f"{path}: expected the trace of one rank, found those of {1 + len(more)}")
    return first


def read_all(
    path: str | Path, *, progress: Progress | None = None, window: int = WINDOW, split: Split | None = None
) -> list[RankTrace]:
    """The events of each rank of a file: of one, unless traces were merged or written behind each other.

    Args:
        path: A trace, as JSON or gzip of it, told by content.
        progress: Called with the bytes of the file consumed so far.
        window: Bytes of text held at a time.
        split: How several processes read the file.

    Raises:
        InputError: The file cannot be read, or holds nothing that can be used. What is damaged is mended or left out,
            and the findings of the first trace tell.
    """
    path = Path(path)
    parts = split and split.each(_read_piece, progress)
    if split and parts:
        with collector_paused():
            return _assembled(path, parts, _repaired(split.pieces, parts))
    with Stream(path, progress) as stream, collector_paused():
        ranks = _ranks(Buffer(stream, window))
        damage = stream.repairs.findings(path)
        return [
            trace
            for number, rank in enumerate(ranks)
            for trace in assemble(path, stream.bytes, rank.collector, rank.joined(path), () if number else damage)
        ]


Collected = tuple[Collector, Members, Repairs]


def _read_piece(piece: Piece, progress: Progress | None) -> Collected | None:
    """What is collected of a piece, what its document tells, and what was mended.

    None unless it is of one document, and sound but for words that are no JSON: these move no border of events.
    """
    seen: list[type] = []
    told = Members()
    rank = _Rank(told)
    try:
        with Part(piece, progress) as stream, collector_paused():
            buffer = Buffer(stream)
            for part in walk(buffer, Members.WANTED):
                seen.append(type(part))
                if isinstance(part, Member):
                    told.take(part.key, part.text)
                elif isinstance(part, Events):
                    rank.take(buffer, told)
    except InputError:
        return None
    one = seen.count(Document) == seen.count(Events) == 1
    cut_in_events = not piece.tail or seen[-1] is Events  # and not in a list of something else
    sound = stream.repairs.only(WORDS) and not rank.exact
    return (rank.collector, told, stream.repairs) if one and cut_in_events and sound else None


def _repaired(pieces: Sequence[Piece], parts: Sequence[Collected]) -> Repairs:
    """What was mended in all pieces, with places of the file."""
    repairs = Repairs()
    for piece, (*_, found) in zip(pieces, parts, strict=True):
        repairs.absorb(found, piece.begin - len(piece.head))
    return repairs


def _assembled(path: Path, parts: Sequence[Collected], repairs: Repairs) -> list[RankTrace]:
    """The traces of a file, all pieces together."""
    (collector, told, _), *others = parts
    for other, more, _ in others:
        collector.absorb(other)
        more.add(told)  # where both tell, the later one counts
        told = more
    return assemble(path, path.stat().st_size, collector, told, repairs.findings(path))


class _Rank:
    """What was collected of one rank."""

    def __init__(self, told: Members) -> None:
        self.collector = Collector()
        self.told = told
        self.exact = False
        self._more: list[Members] = []

    def joined(self, path: Path) -> Members:
        """What all documents tell; raises InputError where they tell of several ranks, but only behind their events."""
        for told in self._more:
            if told.differs(self.told):
                raise InputError(
                    f"{path}: expected the trace of one rank, found those of several behind each other",
                    hint="Split the file where a document ends and another begins.",
                )
            self.told.add(told)
        return self.told

    def take(self, buffer: Buffer, told: Members) -> None:
        """Collect the list at the next byte, of a document that tells this; once times need their text, from that."""
        self._more.append(told)

        def decode(text: memoryview, place: Place) -> bool:
            window = decode_exact(text) if self.exact else decode_fast(text)
            try:
                self.collector.add(window)
            except InexactError:
                window = decode_exact(text)
                self.collector.add(window)
            self.exact = window.exact
            _note(buffer.repairs, window, place)
            return True

        for _ in windows(buffer, decode):
            pass


def _note(repairs: Repairs, window: Window, place: Place) -> None:
    """Note what decoding mended and left out of a window."""
    repairs.mend(place(window.first), window.mended)
    for at, length in window.dropped:
        repairs.drop(place(at), length, "no event")


def _ranks(buffer: Buffer) -> list[_Rank]:
    """What each rank left in the file; a document that tells of no other rank than the one before goes on with it."""
    ranks: list[_Rank] = []
    told = Members()
    for part in walk(buffer, Members.WANTED):
        if isinstance(part, Document):
            told = Members()
        elif isinstance(part, Member):
            told.take(part.key, part.text)
        else:
            if not ranks or told.differs(ranks[-1].told):
                ranks.append(_Rank(told))
            ranks[-1].take(buffer, told)
    if not ranks:
        hint = "Give a trace of the PyTorch Profiler."
        raise InputError(f"{buffer.path}: JSON, but with no traceEvents", hint=hint)
    return ranks
