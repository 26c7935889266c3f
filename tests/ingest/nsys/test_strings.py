"""Texts by their ids, however the table of strings is laid out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.ingest.nsys.database import ABSENT
from bubblescope.ingest.nsys.strings import decoded

KEYED = pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "unkeyed"])


def stored(opened, texts, **how):
    """The strings of a file with those texts by their ids."""
    return opened(*(("StringIds", {"id": id_, "value": text}) for id_, text in texts.items()), **how).strings


@KEYED
@pytest.mark.parametrize("step", [1, 2, 50], ids=["dense", "every other", "sparse"])
def test_those_that_are_asked_for(opened, keyed, step):
    """And no others, also where more are asked for than one query takes."""
    ids = range(0, 1200 * step, step)
    strings = stored(opened, {id_: f"text {id_}" for i in ids for id_ in {i, i + 1}}, keyed=keyed)
    assert strings.of(np.array(ids)) == {i: b"text %d" % i for i in ids}


@KEYED
def test_ids_that_are_not_there(opened, keyed):
    """Answer nothing, nor does one whose text is NULL."""
    strings = stored(opened, {1: "a", 2: None, 1000: "b"}, keyed=keyed)
    assert strings.of(np.array([-7, 1, 2, 500, 2**62])) == {1: b"a"}


def test_no_ids(opened):
    """Nothing is asked for nothing."""
    assert stored(opened, {1: "a"}).of(np.empty(0, np.int64)) == {}


def test_no_table(opened):
    """A file without strings has none."""
    assert opened(("OTHER", {"x": 1})).strings.of(np.array([1, 2])) == {}


@KEYED
def test_each_text_is_asked_for_once(opened, keyed):
    """Its number then stands for every id that has it; what has no text is the empty one."""
    asked = []

    def number(text):
        asked.append(text)
        return len(asked) * 10

    strings = stored(opened, {5: "a", 7: "b"}, keyed=keyed)
    numbers = strings.numbered(np.array([7, 5, 7, 99, ABSENT, 5]), number).tolist()
    assert sorted(asked) == [b"", b"", b"a", b"b"]
    by_id = dict(zip([7, 5, 7, 99, ABSENT, 5], numbers, strict=True))
    assert numbers == [by_id[id_] for id_ in [7, 5, 7, 99, ABSENT, 5]]
    assert {id_: asked[n // 10 - 1] for id_, n in by_id.items()} == {7: b"b", 5: b"a", 99: b"", ABSENT: b""}


def test_no_ids_have_no_numbers(opened):
    """An empty column stays one."""
    assert stored(opened, {1: "a"}).numbered(np.empty(0, np.int64), len).tolist() == []


@given(st.binary())
def test_any_bytes_are_a_text(raw):
    """What is UTF-8 is that; anything else shows that something was there."""
    text = decoded(raw)
    assert ("\N{REPLACEMENT CHARACTER}" in text) or text.encode() == raw
