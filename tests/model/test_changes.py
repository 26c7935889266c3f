"""The words of a what-if."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.errors import UsageError
from bubblescope.model.changes import Changes

TROUBLES = ("imbalance", "straggler", "jitter", "data", "pauses", "p2p", "host", "dp")
SOME = st.none() | st.integers(1, 500)

CHANGES = st.builds(
    Changes,
    schedule=st.none() | st.sampled_from(["zb-h1", "1f1b"]),
    microbatches=SOME,
    virtual=SOME,
    tp=SOME,
    microbatch=st.none() | st.sampled_from([0.25, 0.5, 1 / 3, 2.0, 3.0]) | st.floats(1e-3, 1e3),
    layers=st.none() | st.just("best") | st.lists(st.integers(1, 90), min_size=1, max_size=9).map(tuple),
    p2p=st.none() | st.sampled_from([0.0, 0.1, 0.5, 4.0]) | st.floats(0, 1e3),
    overlap=st.booleans(),
    without=st.frozensets(st.sampled_from(TROUBLES)),
    even=st.booleans(),
    recompute=st.sampled_from([None, "on", "off"]),
)


@given(CHANGES.filter(lambda changes: changes != Changes()))
def test_what_is_written_is_read_as_the_same(changes):
    """Whatever is changed."""
    assert Changes.parse(str(changes)) == changes


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("schedule=zb-h1, m=16", Changes(schedule="zb-h1", microbatches=16)),
        ("microbatches=16,virtual=2", Changes(microbatches=16, virtual=2)),
        ("p2p=free", Changes(p2p=0.0)),
        ("p2p=1/4,overlap", Changes(p2p=0.25, overlap=True)),
        ("layers=9+8+8+7", Changes(layers=(9, 8, 8, 7))),
        ("layers=best", Changes(layers="best")),
        ("without=straggler+pauses", Changes(without=frozenset({"straggler", "pauses"}))),
        ("microbatch=0.5", Changes(microbatch=0.5)),
        ("even", Changes(even=True)),
        ("recompute=off", Changes(recompute="off")),
    ],
)
def test_words(text, changes):
    """Each word of the grammar."""
    assert Changes.parse(text) == changes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "found nothing"),
        (" , ", "found nothing"),
        ("shedule=1f1b", "nothing can be changed that is called 'shedule'"),
        ("m=1,m=2", "m stands twice"),
        ("m=1,microbatches=2", "microbatches stands twice"),
        ("m=", "m takes a number"),
        ("m=0", "m must be from 1"),
        ("m=-1", "m takes a number"),
        ("m=1000000", "m must be from 1 to 65536, found 1000000"),
        ("microbatches=1000000", "microbatches must be from 1 to 65536, found 1000000"),
        ("layers=8+1000000", "layers must be from 1 to 65536, found 1000000"),
        (f"m={'9' * 5000}", "m must be from 1 to 65536, found one of 5000 digits"),
        ("m=99999", "m must be from 1 to 65536"),
        ("m=²", "m takes a number"),
        ("schedule=", "schedule takes a name"),
        ("microbatch=0", "microbatch must be from"),
        ("microbatch=nan", "microbatch takes a factor"),
        ("p2p=1/0", "p2p takes a factor"),
        ("p2p=inf", "p2p takes a factor"),
        ("p2p=-1", "p2p must be from 0"),
        ("layers=", "layers takes a number"),
        ("layers=8+0", "layers takes `best`"),
        ("without=luck", "without takes one of imbalance"),
        ("without=", "without takes one of imbalance"),
        ("even=1", "even stands by itself"),
        ("recompute=maybe", "recompute takes on or off"),
    ],
)
def test_what_is_no_change_is_refused(text, said):
    """With what was expected and what was found."""
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        Changes.parse(text)


@pytest.mark.parametrize(
    ("typed", "written"),
    [("1/3", "1/3"), ("2/3", "2/3"), ("4/3", "4/3"), ("1/2", "0.5"), ("2", "2"), ("0.1234567", "0.1234567")],
)
def test_factors_are_written_short(typed, written):
    """As the fraction that was typed where digits would not be the same."""
    assert str(Changes.parse(f"microbatch={typed}")) == f"microbatch={written}"


def test_leading_zeros_count_for_nothing():
    """However many."""
    assert Changes.parse(f"m={'0' * 5000}16") == Changes(microbatches=16)


def test_a_near_name_is_pointed_out():
    """As everywhere."""
    with pytest.raises(UsageError) as caught:
        Changes.parse("shedule=1f1b")
    assert caught.value.hint == "did you mean schedule?"
