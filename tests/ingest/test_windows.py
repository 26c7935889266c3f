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
@given(st.lists(EVENT, min_size=1, max_size=20), st.integers(0, 400), st.integers(64, 300))
def test_any_cut_is_an_input_error(tmp_path_factory, events, cut, window):
    """A document cut anywhere reads as no document, with any window, and never as another error."""
    text = document({}, events, {"end": 1}, None).encode()
    path = tmp_path_factory.getbasetemp() / "cut.json"
    path.write_bytes(text[: min(cut, len(text) - 1)])
    with pytest.raises(InputError):
        read(path, window=window)


@settings(deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=12), st.data(), st.integers(64, 300))
def test_any_damage_is_an_input_error_or_none(tmp_path_factory, events, data, window):
    """A byte changed anywhere either still reads or is an InputError."""
    text = bytearray(document({}, events, {"end": 1}, None).encode())
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damage.json"
    path.write_bytes(text)
    try:
        read(path, window=window).self_check()
    except InputError as error:
        assert str(path) in error.message  # noqa: PT017 - not raising is fine too


@settings(deadline=None)
@given(st.data())
def test_gzip_cut_or_damaged(tmp_path_factory, data):
    """A gzip stream cut or damaged anywhere is an InputError, or reads the same."""
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
        assert read(path).source.events == len(events)
    except InputError as error:
        assert str(path) in error.message  # noqa: PT017 - not raising is fine too


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
    """A gzip stream that is cut off is named as such, with both positions, not as broken JSON."""
    events = [{"ph": "X", "cat": "cpu_op", "name": f"op {number}", "ts": number} for number in range(3000)]
    packed = gzip.compress(json.dumps(events).encode())
    path = save(packed[: len(packed) // 2], "cut.json.gz")
    with pytest.raises(
        InputError, match=rf"the gzip stream is cut off: .* byte {len(packed) // 2} \(byte \d+ of"
    ) as caught:
        read(path, window=1000)
    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("bad", ['say "hi" to', "a\nb", "C:\\Users", '"'])
def test_a_broken_event_ends_the_reading(save, bad):
    """Damage is found where it is, not after the rest of the file was read into memory to look for a border."""
    events = [{"ph": "X", "cat": "cpu_op", "name": f"op {number}", "ts": number} for number in range(3000)]
    seen: list[int] = []
    with pytest.raises(InputError, match="broken JSON at byte"):
        read(save(json.dumps(events).replace("op 20", bad)), window=1000, progress=seen.append)
    assert seen[-1] < 5000


@pytest.mark.parametrize("depth", [100, 5000, 100_000])
@pytest.mark.parametrize("place", ["args", "distributedInfo", "other"])
def test_deep_nesting(save, place, depth):
    """Values nested to any depth are stepped over, or are an InputError where they would have to be decoded."""
    deep = "[" * depth + "]" * depth
    event = f'{{"ph": "X", "cat": "cpu_op", "name": "op", "ts": 1, "args": {{"x": {deep if place == "args" else 1}}}}}'
    path = save(f'{{"{place}": {1 if place == "args" else deep}, "traceEvents": [{event}]}}')
    try:
        assert len(read(path).ops) == 1
    except InputError as error:  # how deep is too deep differs between versions of Python
        assert place == "args"
        assert depth > 100
        assert "nesting" in error.message  # noqa: PT017 - whether it is raised at all is not the claim


def test_lists_of_objects_in_arguments(save):
    """Windows that end within a list of objects are cut at the event before it."""
    rows = [{"ph": 1, "a": "},{"} for _ in range(50)]
    events = [{"ph": "X", "cat": "cpu_op", "name": "op", "ts": number, "args": {"rows": rows}} for number in range(40)]
    path = save(events)
    for window in (3000, 5000, 8000):
        assert read(path, window=window).ops.start.tolist() == [number * 1000 for number in range(40)]
