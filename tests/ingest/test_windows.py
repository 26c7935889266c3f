"""Where windows are cut changes nothing, whatever the text of the events."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.errors import InputError
from bubblescope.ingest.chrome import read
from bubblescope.model.trace import RankTrace

HOSTILE = st.sampled_from(["},{", "}, {", '}],"x":[{', '"', "\\", '\\"},{', "]", "[{", "}]}", "\u00e4\U0001f600", "\n"])
TEXT = st.lists(HOSTILE | st.text(max_size=3), max_size=4).map("".join)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
CATEGORIES = st.sampled_from(
    ["cpu_op", "kernel", "gpu_memcpy", "user_annotation", "python_function", "cuda_runtime", "odd"]
)
EVENT = st.fixed_dictionaries(
    {"ph": st.sampled_from("XXXXXBEMis"), "cat": CATEGORIES, "name": TEXT, "ts": st.integers(0, 10**6)},
    optional={
        "dur": st.integers(0, 1000),
        "pid": st.integers(0, 3) | TEXT,
        "tid": st.integers(0, 3) | TEXT,
        "junk": JUNK,
        "args": st.dictionaries(TEXT | st.sampled_from(["stream", "x"]), st.integers(0, 3)).map(lambda args: args)
        | st.fixed_dictionaries({"list": st.lists(st.fixed_dictionaries({"a": JUNK}), max_size=5)}),
    },
)
MEMBERS = st.dictionaries(TEXT.filter(lambda key: key != "traceEvents"), JUNK, max_size=3)


def document(before: dict, events: list, after: dict, indent: int | None) -> str:
    """A document whose members stand in the given order."""
    after = {key: value for key, value in after.items() if key not in before}
    return json.dumps({**before, "schemaVersion": 1, "traceEvents": events, **after}, indent=indent, ensure_ascii=False)


def contents(trace: RankTrace) -> tuple:
    """All of a trace as plain values."""
    blocks = (trace.ops, trace.annotations, trace.launches, trace.kernels)
    columns = [(name, vars(block)[name].tolist()) for block in blocks for name in vars(block)]
    return trace.source, trace.identity, trace.names, trace.threads, trace.comms, trace.findings, columns


@settings(max_examples=150, deadline=None)
@given(st.tuples(MEMBERS, MEMBERS), st.lists(EVENT, max_size=25), st.sampled_from([None, 0, 2]), st.integers(64, 600))
def test_any_window_reads_the_same(tmp_path_factory, around, events, indent, window):
    """Windows from 64 bytes up give what one window over everything gives, and the counts of the standard library."""
    path = tmp_path_factory.getbasetemp() / "window.json"
    events = [{"ph": "X", "cat": "cpu_op", "name": "one", "ts": 0}, *events]
    events = [event | ({"pid": 0} if event["cat"] in {"kernel", "gpu_memcpy"} else {}) for event in events]  # one GPU
    path.write_text(document(around[0], events, around[1], indent), encoding="utf-8")
    small, large = read(path, window=window), read(path)
    small.self_check()
    assert contents(small) == contents(large)
    whole = [event for event in events if event["ph"] == "X"]
    assert small.source.events == len(events)
    for block, cats in ((small.ops, {"cpu_op"}), (small.kernels, {"kernel", "gpu_memcpy"})):
        starts = [event["ts"] * 1000 for event in whole if event["cat"] in cats]
        in_halves = sum(event["ph"] == "B" and event["cat"] in cats for event in events)
        assert set(starts) <= set(block.start.tolist())
        assert len(starts) <= len(block) <= len(starts) + in_halves


@settings(deadline=None)
@given(st.data())
def test_gzip_cut_or_damaged(tmp_path_factory, data):
    """A gzip stream cut or damaged anywhere reads up to there and says so, or is an InputError, or reads the same."""
    events = [{"ph": "X", "cat": "cpu_op", "name": f"op {number}", "ts": number} for number in range(300)]
    packed = bytearray(gzip.compress(json.dumps(events).encode(), mtime=0))
    at = data.draw(st.integers(2, len(packed) - 1))
    if data.draw(st.booleans()):
        del packed[at:]
    else:
        packed[at] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "damage.json.gz"
    path.write_bytes(packed)
    try:
        trace = read(path)
    except InputError as error:
        assert str(path) in error.message  # noqa: PT017 - not raising is fine too
    else:
        assert trace.source.events == len(events) or trace.findings


def test_gzip_of_several_members(save):
    """A gzip file may hold several members, and padding behind them."""
    text = json.dumps([{"ph": "X", "cat": "cpu_op", "name": "op", "ts": number} for number in range(300)]).encode()
    packed = b"".join(gzip.compress(text[at : at + 1000]) for at in range(0, len(text), 1000))
    assert len(read(save(packed + bytes(100), "several"), window=64).ops) == 300


def test_events_larger_than_a_window(save):
    """A window grows to hold one event, and what the event holds of `},{` does not matter."""
    huge = {
        "ph": "X",
        "cat": "cpu_op",
        "name": "huge",
        "ts": 1,
        "args": {"list": [{"a": number} for number in range(5000)]},
    }
    assert len(read(save([huge, huge, huge]), window=64).ops) == 3


def test_blank_and_pretty_and_compact(save):
    """White space between the parts of a document is free."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "op", "ts": number} for number in range(50)]
    for text in (
        json.dumps(events, indent=4),
        json.dumps(events, separators=(",", ":")),
        json.dumps(events).replace(", ", " \r\n\t, \n"),
    ):
        assert len(read(save(text), window=64).ops) == 50


def test_a_second_list_of_events(save):
    """Should a document hold the member twice, nothing is lost."""
    one = '"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1}]'
    assert len(read(save(f'{{"schemaVersion": 1, {one}, {one}}}')).ops) == 2


def test_columns_are_arrays_of_their_own(save):
    """Nothing of a file's text stays alive behind the columns."""
    trace = read(save([{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1}]))
    assert all(isinstance(column, np.ndarray) for column in vars(trace.ops).values())


def test_cut_gzip_says_so(save):
    """A gzip stream that is cut off is named as such, with both positions; what came out of it is read."""
    events = [{"ph": "X", "cat": "cpu_op", "name": f"op {number}", "ts": number} for number in range(3000)]
    packed = gzip.compress(json.dumps(events).encode())
    trace = read(save(packed[: len(packed) // 2], "cut.json.gz"), window=1000)
    (finding,) = trace.findings
    assert finding.code == "truncated"
    assert f"the gzip stream is cut off at byte {len(packed) // 2}, which is byte " in finding.message
    assert 500 < len(trace.ops) < 2500


@pytest.mark.parametrize("depth", [100, 5000, 100_000])
@pytest.mark.parametrize("place", ["args", "distributedInfo", "other"])
def test_deep_nesting(save, place, depth):
    """Values nested to any depth are stepped over, and where they would have to be decoded the event is left out."""
    deep = "[" * depth + "]" * depth
    event = f'{{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1, "args": {{"x": {deep if place == "args" else 1}}}}}'
    sound = '{"ph": "X", "cat": "cpu_op", "name": "sound", "ts": 2}'
    path = save(f'{{"{place}": {1 if place == "args" else deep}, "traceEvents": [{event}, {sound}]}}')
    trace = read(path)
    if "repaired" not in {finding.code for finding in trace.findings}:
        assert len(trace.ops) == 2
    else:  # how deep is too deep differs between versions of Python
        assert (place, len(trace.ops)) == ("args", 1)
        assert depth > 100


def test_lists_of_objects_in_arguments(save):
    """Windows that end within a list of objects are cut at the event before it."""
    rows = [{"ph": 1, "a": "},{"} for _ in range(50)]
    events = [{"ph": "X", "cat": "cpu_op", "name": "op", "ts": number, "args": {"rows": rows}} for number in range(40)]
    path = save(events)
    for window in (3000, 5000, 8000):
        assert read(path, window=window).ops.start.tolist() == [number * 1000 for number in range(40)]
