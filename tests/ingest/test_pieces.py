"""A file read in pieces tells what it tells when it is read in one go, or is read in one go."""

from __future__ import annotations

import dataclasses
import gzip
import json
import pickle
from concurrent.futures import Future

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope import mapping
from bubblescope.emit import Job, write
from bubblescope.engine import analyze
from bubblescope.ingest import pieces
from bubblescope.ingest.chrome import read_all
from bubblescope.ingest.pieces import Split, cut
from bubblescope.model.columns import Columns
from bubblescope.model.options import Options
from bubblescope.model.trace import Doubts

NCCL = {"Collective name": "send", "Process Group Name": "pp", "Process Group Ranks": "[0, 1]", "Dst Rank": 1}
SHAPES = (
    {"ph": "X", "cat": "kernel", "dur": 3, "args": {"stream": 7, "device": 0, "correlation": 5}},
    {"ph": "X", "cat": "kernel", "dur": 3, "args": {"stream": "7", "device": 0, **NCCL}},
    {"ph": "X", "cat": "gpu_memcpy", "dur": 2, "args": {"stream": 8, "device": 0}},
    {"ph": "X", "cat": "cuda_runtime", "dur": 1, "args": {"correlation": 5}},
    {"ph": "X", "cat": "cpu_op", "dur": 4.5, "args": {"Sequence number": 9, "Fwd thread id": 2}},
    {"ph": "X", "cat": "user_annotation", "dur": 9},
    {"ph": "X", "cat": "python_function", "dur": 9},
    {"ph": "X", "cat": "of somebody", "dur": -9},
    {"ph": "B", "cat": "user_annotation"},
    {"ph": "E", "cat": "user_annotation"},
    {"ph": "s", "cat": "ac2g", "id": 1},
    {"ph": "M", "args": {"name": "thread 1"}},
)
NAMES = ("aten::mm", "thread_name", 'a }, {"ph": "X"}', "nn.Module: Layer_1", "")
EVENTS = st.lists(
    st.builds(
        lambda shape, name, tid, ts: shape | {"name": name, "pid": 1, "tid": tid, "ts": ts},
        st.sampled_from(SHAPES),
        st.sampled_from(NAMES),
        st.sampled_from([1, 2, "2"]),
        st.sampled_from([1, 2.25, 3.125, 1e6]),
    ),
    min_size=1,
    max_size=30,
)


@pytest.fixture(autouse=True)
def _worth_it(monkeypatch):
    """The smallest file is large enough."""
    monkeypatch.setattr(pieces, "WORTH_A_PIECE", 1)


class Here:
    """A pool of no process, through whose border what comes back goes all the same."""

    def submit(self, read, *args):
        """What will be told when it is asked for."""
        future = Future()
        future.set_result(pickle.loads(pickle.dumps(read(*args))))  # noqa: S301 - our own
        return future


class Seen(Split):
    """A split that remembers whether every piece was sound."""

    __slots__ = ("sound",)

    def each(self, read, progress):
        """As the split does."""
        found = Split.each(self, read, progress)
        object.__setattr__(self, "sound", found is not None)
        return found


def in_pieces(path, count, progress=None):
    """The traces of a file read in at most so many pieces, and whether it was."""
    split = Seen(cut(path, count), Here())
    traces = read_all(path, split=split if len(split.pieces) > 1 else None, progress=progress)
    return traces, len(split.pieces) > 1 and split.sound


def alike(one, other):
    """Two traces are equal, column by column."""
    for field in dataclasses.fields(one):
        ours, theirs = getattr(one, field.name), getattr(other, field.name)
        if isinstance(ours, Columns):
            for column in dataclasses.fields(ours):
                assert np.array_equal(getattr(ours, column.name), getattr(theirs, column.name)), column.name
        elif isinstance(ours, Doubts):
            assert repr(ours) == repr(theirs)
        else:
            assert ours == theirs


def document(events, **more):
    """A trace that holds at least one thing that can be used."""
    kernel = SHAPES[0] | {"name": "gemm", "pid": 1, "tid": 7, "ts": 100}
    return {"schemaVersion": 1, "traceEvents": [*events, kernel], "traceName": "x"} | more


@given(events=EVENTS, count=st.integers(2, 6), indent=st.sampled_from([None, 2]), bare=st.booleans())
def test_pieces_make_the_same_trace(tmp_path_factory, events, count, indent, bare):
    """Whatever the events, however many the pieces: the columns, tables and findings are those of one reading."""
    path = tmp_path_factory.mktemp("pieces") / "rank0.json"
    content = document(events)
    path.write_text(json.dumps(content["traceEvents"] if bare else content, indent=indent))
    (whole,) = read_all(path)
    (parts,), _ = in_pieces(path, count)
    alike(parts, whole)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_a_sound_trace_is_read_in_pieces(tmp_path, count):
    """As many as asked for; were it not, the property would compare one reading with itself."""
    for path in write(Job(p=2, m=3, steps=2, compress=False), tmp_path):
        (whole,) = read_all(path)
        (parts,), sound = in_pieces(path, count)
        assert sound
        assert len(cut(path, count)) == count
        alike(parts, whole)


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("where", ["everywhere", "first", "last"])
def test_words_that_are_no_json_are_mended_in_pieces(tmp_path, count, where):
    """They move no border of events; how many there are, and where the first is, is as in one reading."""
    (path,) = write(Job(p=2, m=3, steps=2, compress=False, missing=(1,)), tmp_path)
    text = path.read_text()
    named = '"blocks per SM":1.0'
    assert text.count(named) > 20
    parts = text.split(named)
    chosen = {"everywhere": range(len(parts)), "first": [1], "last": [len(parts) - 1]}[where]
    written = [('"blocks per SM":NaN' if k in chosen else named) + part for k, part in enumerate(parts[1:], start=1)]
    path.write_text(parts[0] + "".join(written))
    (whole,) = read_all(path)
    (parts,), sound = in_pieces(path, count)
    assert sound
    assert "words that are no JSON" in whole.findings[0].message
    alike(parts, whole)


FILLING = [SHAPES[4] | {"name": "aten::mm", "pid": 1, "tid": 1, "ts": number} for number in range(99)]
WHOLE = json.dumps(document(FILLING))
ODD = {
    "words and a loss": WHOLE.replace('"ts": 5}', '"ts": NaN}', 1).replace('"ts": 90', '"ts": @ @', 1),
    "cut off": WHOLE[:-300],
    "damaged at the end": WHOLE.replace('"ts": 90', '"ts": @', 1),
    "damaged at the beginning": WHOLE.replace('"ts": 3}', '"ts": @}', 1),
    "two documents": WHOLE + WHOLE,
    "events elsewhere": json.dumps(document(FILLING[:1], more=FILLING)),
    "events elsewhere before": json.dumps({"more": FILLING} | document(FILLING[:1])),
    "times that need their text": WHOLE.replace('"ts": 3}', '"ts": 1759300074000000.125}', 1),
    "a border in an argument": json.dumps(document([FILLING[0] | {"args": {"of": [{"ph": "X"}] * 999}}])),
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_what_is_not_plainly_sound_is_read_in_one_go(tmp_path, text):
    """The answer is that of one reading, repairs, findings and all."""
    path = tmp_path / "rank0.json"
    path.write_text(text)
    whole = read_all(path)
    parts, sound = in_pieces(path, 2)
    assert not sound
    for one, other in zip(parts, whole, strict=True):
        alike(one, other)


@pytest.mark.parametrize(
    "content", [gzip.compress(WHOLE.encode(), mtime=0), b"name,start,end\n" * 9, b"", b"\xef\xbb\xbf  "]
)
def test_what_is_no_text_of_events_is_not_cut(tmp_path, content):
    """Gzip has no place to begin in."""
    path = tmp_path / "file"
    path.write_bytes(content)
    assert cut(path, 2) == []


def test_small_files_are_not_cut(tmp_path, monkeypatch):
    """A process more costs more than it saves."""
    monkeypatch.undo()
    path = tmp_path / "rank0.json"
    path.write_text(WHOLE)
    assert cut(path, 2) == []


def test_progress_ends_at_the_size(tmp_path):
    """And never goes back."""
    path = tmp_path / "rank0.json"
    path.write_text(WHOLE)
    told = []
    _, sound = in_pieces(path, 3, told.append)
    assert sound
    assert told == sorted(told)
    assert told[-1] == path.stat().st_size


def test_processes_share_one_file(tmp_path, monkeypatch):
    """Through a pool the report is the same."""
    path = write(Job(p=2, m=3, steps=3, compress=False), tmp_path)[0]
    counts = []
    monkeypatch.setattr(mapping, "Split", lambda pieces, pool: counts.append(len(pieces)) or Split(pieces, pool))
    assert analyze(path, Options(jobs=3)).report == analyze(path, Options(jobs=1)).report
    assert counts == [3]
