"""Objects of damaged JSON: what is mended, to what, and what is not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.ingest.mending import LONGEST, mend

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value", "kinds"),
    [
        ('{"a": inf, "b": -inf, "c": NaN, "d": N/A}', dict.fromkeys("abcd"), 4),
        ('{"a": "C:\\\\Users\\\\x", "b": 1}', {"a": "C:\\Users\\x", "b": 1}, 0),
        ('{"a": "C:\\Users\\x", "b": 1}', {"a": "C:\\Users\\x", "b": 1}, 2),
        ('{"a": "C:\\", "b": 1}', {"a": "C:\\", "b": 1}, 1),
        ('{"a": "C:\\Users\\", "b": "x", "c": "y"}', {"a": "C:\\Users\\", "b": "x", "c": "y"}, 2),
        ('{"a": ["C:\\", "D:\\x"], "b": NaN}', {"a": ["C:\\", "D:\\x"], "b": None}, 3),
        ('{"a": ["say \\"hi\\", so"], "b": NaN}', {"a": ['say "hi", so'], "b": None}, 1),
        ('{"a": "say "hi" to", "b": 1}', {"a": 'say "hi" to', "b": 1}, 2),
        ('{"a": ["x"y"]}', {"a": ['x"y']}, 1),
        ('{"a": "x\ny\x00"}', {"a": "x\ny\x00"}, 2),
        ('{"a": "\\ud800", "b": "\\ud83d\\ude00"}', {"a": "\ufffd", "b": "\U0001f600"}, 1),
        ('{"a": 1,, "b": [1, 2,],}', {"a": 1, "b": [1, 2]}, 3),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, 1),
        ('{"a": , "b": 1}', {"a": None, "b": 1}, 1),
        ('{"a": 01, "b": +1}', {"a": None, "b": None}, 2),
    ],
)
def test_what_is_mended(text, value, kinds):
    """Each kind of damage gives the value that was meant, and is counted."""
    mended = mend(text.encode())
    assert json.loads(mended.text) == value
    assert mended.kinds.total() == kinds


def test_bytes_that_are_no_utf8():
    """They are replaced; the object counts once."""
    mended = mend(b'{"caf\xe9": "\xff\xfe"}')
    assert json.loads(mended.text) == {"caf\ufffd": "\ufffd\ufffd"}
    assert mended.kinds.total() == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1',
        '{"a": 1}}',
        '{"a": [1}',
        '{"a": {"b": 1]}',
        '{"a": "x',
        '{"a"}',
        "{a: 1}",
        "[1}",
        "{,:",
        '{"a": 1} {"b": 2}',
    ],
)
def test_what_is_not_mended(text):
    """Brackets and keys are never invented."""
    assert mend(text.encode()) is None


def test_what_is_too_long():
    """Nobody looks at megabytes byte by byte."""
    assert mend(b'{"a": "' + b"x" * LONGEST + b'"}') is None


@settings(deadline=None)
@given(st.dictionaries(st.text(), VALUES, max_size=4), st.sampled_from([None, 1]), st.booleans())
def test_sound_objects_stay_what_they_are(value, indent, ascii_only):
    """Mending what is sound changes no value and counts nothing."""
    mended = mend(json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass"))
    if "\\ud" not in json.dumps(value):
        assert (json.loads(mended.text), mended.kinds.total()) == (value, 0)


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text('{}[]",:\\ naN1', max_size=40).map(str.encode))
def test_whatever_comes_out_is_json(raw):
    """Of any bytes comes JSON or nothing."""
    mended = mend(b"{" + raw)
    if mended is not None:
        json.loads(mended.text)
