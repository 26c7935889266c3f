"""Words that are no JSON become null in whole windows: what is read is what null would give, and each word counts."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.ingest import damage
from bubblescope.ingest.chrome import read
from tests.ingest.test_windows import TEXT, contents

WORDS = ["NaN", "nan", "inf", "-inf", "Infinity", "-Infinity", "N/A", "None", "True", "undefined", "01", "+1", "1."]
MARK = 424242424242
HOSTILE = st.sampled_from([": NaN,", "inf", "NaN", '": NaN, "', "\\", '\\"', "-inf]", '{"x": nan}', "[N/A]", ","])
NAME = st.lists(HOSTILE | TEXT, max_size=3).map("".join)
EVENT = st.fixed_dictionaries(
    {"ph": st.just("X"), "cat": st.sampled_from(["cpu_op", "kernel"]), "name": NAME, "ts": st.integers(0, 10**6)},
    optional={"args": st.dictionaries(NAME, st.just(MARK) | NAME | st.lists(st.just(MARK) | NAME, max_size=3))},
)


def spelt(events, words, indent=None):
    """The text with words, in turn, in place of the mark; and with null."""
    sound = json.dumps({"schemaVersion": 1, "traceEvents": events}, indent=indent)
    first, *parts = sound.split(str(MARK))
    bad = first + "".join(words[k % len(words)] + part for k, part in enumerate(parts))
    return bad, sound.replace(str(MARK), "null"), len(parts)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(EVENT, min_size=1, max_size=20),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3, unique=True),
    st.sampled_from([None, 1]),
    st.integers(64, 2000),
)
def test_words_are_as_null(tmp_path_factory, events, words, indent, window):
    """Whatever stands in strings, and however the text is cut."""
    events = [{"ph": "X", "cat": "cpu_op", "name": "one", "ts": 0, "args": {"loss": MARK}}, *events]
    bad, sound, count = spelt(events, words, indent)
    path = tmp_path_factory.getbasetemp() / "words.json"
    path.write_text(sound)
    wanted = contents(read(path, window=window))
    path.write_text(bad)
    found = read(path, window=window)
    (told,) = found.findings
    assert told.severity == "info"
    assert told.message.startswith(f"the text is damaged: mended words that are no JSON, as NaN ({count}), from byte ")
    assert bad[: int(told.message.split()[-2])].count("{") <= 4  # in the first event
    assert contents(found)[1:5] == wanted[1:5]
    assert contents(found)[6] == wanted[6]


def many(number, **more):
    """Operators, each with a word."""
    return [
        {"ph": "X", "cat": "cpu_op", "name": f"op {k}", "ts": k, "args": {"loss": MARK} | more} for k in range(number)
    ]


@pytest.fixture
def one_by_one(monkeypatch):
    """How often events were looked at one by one."""
    calls = []
    step = damage.step
    monkeypatch.setattr(damage, "step", lambda *args: calls.append(args) or step(*args))
    return calls


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("more", [{}, {"path": 'C:\\temp \\"x\\" \\\\'}])
def test_no_event_is_looked_at_by_itself(save, one_by_one, word, more):
    """Words in every event take whole windows, whatever is escaped beside them."""
    bad, _, count = spelt(many(3000, **more), [word])
    trace = read(save(bad))
    assert len(trace.ops) == count == 3000
    assert not one_by_one


def test_several_words(save, one_by_one):
    """Are found one after the other; of more than any program writes the rest is mended event by event."""
    bad, *_ = spelt(many(3000), WORDS)
    assert len(read(save(bad)).ops) == 3000
    assert not one_by_one
    bad, *_ = spelt(many(300), [f"nan({k})" for k in range(50)])
    trace = read(save(bad))
    assert len(trace.ops) == 300
    assert "words that are no JSON, as NaN (300)" in trace.findings[0].message
    assert one_by_one


def test_other_damage_beside_words(save, one_by_one):
    """Is mended by itself, and its window's words are not lost over it."""
    bad, *_ = spelt(many(3000), ["NaN"])
    bad = bad.replace('"op 1500"', '"op "1500""')
    trace = read(save(bad))
    assert [trace.names[name] for name in trace.ops.name[[1499, 1500, 1501]]] == ["op 1499", 'op "1500"', "op 1501"]
    assert "words that are no JSON, as NaN (3000), quotes inside of strings (" in trace.findings[0].message
    assert len(one_by_one) == 1


def test_the_place_of_a_loss_behind_words(save):
    """Counts the text as it is in the file, before and behind the word that is nearest."""
    bad, *_ = spelt(many(40), ["-Infinity", "inf"])
    at = bad.index('{"ph": "X", "cat": "cpu_op", "name": "op 30"')
    message = read(save(bad[:at] + "42, " + bad[at:])).findings[0].message
    assert "words that are no JSON, as NaN (40)" in message
    assert message.endswith(f"left out 1 piece, in bytes: 2 at byte {at} (no event)")


@pytest.mark.parametrize("value", ["NaN NaN", "a:b", "nul l", "0 1"])
def test_what_is_no_single_word(save, value):
    """Is left to those who mend single events, and costs no other."""
    bad, *_ = spelt(many(50), ["inf"])
    bad = bad.replace('"ts": 25,', f'"ts": 25, "x": {value},')
    assert len(read(save(bad)).ops) in (49, 50)
