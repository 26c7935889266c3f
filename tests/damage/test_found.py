"""What the mutations and the fuzzer found: each once more, as small as it can be."""

from __future__ import annotations

import json
import time

import pytest

from tests.damage.runs import analyzed

SOUND = [
    {"ph": "X", "name": "forward", "ts": 0, "dur": 10, "pid": 0, "tid": 0, "args": {"mb": 0, "stage": 0}},
    {"ph": "X", "name": "backward", "ts": 12, "dur": 20, "pid": 0, "tid": 0, "args": {"mb": 0, "stage": 0}},
]
KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 10}


@pytest.mark.parametrize(
    "event",
    [
        b'{"ph":7,"name":"optimizer","ts":90,"dur":5,"pid":0,"tid":0,"arg\xff":1}',
        b'{"ph":"X","name":7,"ts":90,"\xff":"\xff"}',
        b'{"ph":7,"ts":90,"a":"' + rb"\ud800" + b'"}',
        b'{"ph":7,"ts":90,"a":' + b"[" * 2000 + b"]" * 2000 + b"}",
    ],
    ids=["key", "key and text", "half a surrogate pair", "deep"],
)
@pytest.mark.parametrize("base", [SOUND, [KERNEL, KERNEL | {"ts": 200}]], ids=["slices", "kernels"])
def test_an_event_of_wrong_types_and_no_utf8(tmp_path, base, event):
    """A value of the wrong type has an event read again in full, which must not fail at what was stepped over."""
    events = [json.dumps(one).encode() for one in base]
    path = tmp_path / "rank0.json"
    path.write_bytes(b"[" + b",".join([events[0], event, *events[1:]]) + b"]")
    outcome = analyzed([path], "--json")
    assert outcome.fault is None
    assert outcome.code == 0


@pytest.mark.parametrize("char", [".", "_", " ", "(", "a.", ". "])
def test_a_header_that_is_one_name(tmp_path, char):
    """What might be a table has its columns' units sought, which took longer with the square of a name's length."""
    path = tmp_path / "rank0.csv"
    path.write_text("rank," + char * (60_000 // len(char)) + "x,kind\n0,1,forward\n")
    began = time.process_time()
    assert analyzed([path]).code == 3
    assert time.process_time() - began < 5


@pytest.mark.parametrize("key", [b"s\xc7\xc7", b"\xff", rb"\ud800"])
def test_a_timeline_whose_events_are_no_utf8(tmp_path, key):
    """Its arguments are mended as those of a trace are; there was nothing left to put together."""
    path = tmp_path / "rank0.json"
    path.write_bytes(json.dumps(SOUND).encode().replace(b'"mb"', b'"' + key + b'": 0, "mb"'))
    outcome = analyzed([path], "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["steps"]


@pytest.mark.parametrize(
    "piece",
    [
        b'{"ph":"X","name":"n","ts":1,',
        b'{"name":"n","ph":"X","ts":1,',
        b'{"ph":"X","args":{"a":1,',
        b'{"ph":"X","name":"n,',
        b'[{"ph":"X",',
        b'{"ph":',
        b'{"ph" :' + b" " * 60,
        b"{}",
    ],
)
def test_events_that_never_end(tmp_path, piece):
    """The brackets of each were counted through all those that begin behind it."""
    path = tmp_path / "rank0.json"
    path.write_bytes(b'{"traceEvents":[' + piece * (300_000 // len(piece)))
    assert analyzed([path], "--json").code == 3


EVENT = b'{"ph":"X","name":"n","ts":1,"dur":1,"pid":0,"tid":0},'


@pytest.mark.parametrize(
    "piece",
    [
        EVENT + b'}{"ph":"X",',
        b":{" + EVENT + b'[[{"id":"x],"otherData":',
        b'{"a":/*"{"ph":"X",],"otherData":}}}}:{',
        b'"name":"n","dur":1{"ph":"X",{"ph":"X",],"otherData":',
    ],
)
def test_damage_between_sound_events(tmp_path, piece):
    """Behind each piece the whole rest of the file was looked at again."""
    path = tmp_path / "rank0.json"
    path.write_bytes(b'{"traceEvents":[' + piece * (200_000 // len(piece)))
    assert analyzed([path], "--json").code == 3
