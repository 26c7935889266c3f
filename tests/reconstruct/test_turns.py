"""Forwards that follow each other without a message."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.model.trace import Ops
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.turns import MOST, turns


def turned(*stretches: str, calls=(), again=()):
    """Moments at which a second forward begins; each letter is an operator of 10, the k-th stretch begins at 1000 k.

    `calls` are backward calls: (stretch, first, last) are the operators that each goes through, those of `again` go
    through them for the second time. By default one call goes through each stretch.
    """
    names = sorted(set("".join(stretches)))
    places = [(k, i) for k, text in enumerate(stretches) for i in range(len(text))][::-1]  # rows come in any order
    row_of = {place: row for row, place in enumerate(places)}
    start = np.array([1000 * k + 10 * i for k, i in places], np.int64)
    name = [names.index(stretches[k][i]) for k, i in places]
    nothing = np.full(len(name), -1)
    forward = Ops(start, start + 9, name, nothing + 1, nothing, nothing, nothing)
    calls = calls or [(k, 0, len(text)) for k, text in enumerate(stretches)]
    numbered = [*enumerate(calls), *((NONE, call) for call in again)]
    links = [(row_of[k, i], number) for number, (k, first, last) in numbered for i in reversed(range(first, last))]
    partner, call = np.array(links, np.int64).reshape(-1, 2).T
    cuts = 1000 * np.arange(len(stretches) + 1, dtype=np.int64) - 5
    return turns(forward, cuts, partner, call).tolist()


ALONE = [(0, 0, 2), (1, 0, 2)]
FIRST, SECOND = (2, 0, 2), (2, 2, 4)


def test_a_stretch_of_two_forwards_is_parted():
    """Both forwards stand alone elsewhere, and a backward goes through each by itself."""
    assert turned("ab", "cd", "abcd", calls=[*ALONE, SECOND, FIRST]) == [2019]


@pytest.mark.parametrize("half", [FIRST, SECOND], ids=["first", "second"])
def test_one_half_is_enough(half):
    """The backward of the other half may not have been recorded."""
    assert turned("ab", "cd", "abcd", calls=[*ALONE, half], again=[FIRST, SECOND]) == [2019]


def test_every_such_stretch_is_parted_where_one_is():
    """What shows in one place holds for all stretches of the same operators, and for no other."""
    texts = ("ab", "cd", "abcd", "abcd", "cdab")
    assert turned(*texts, calls=[*ALONE, SECOND, FIRST, (3, 0, 4), (4, 0, 4)]) == [2019, 3019]


def test_two_forwards_of_one_stage_are_parted_too():
    """The second of two equal forwards begins in the middle."""
    assert turned("ab", "abab", calls=[(0, 0, 2), (1, 2, 4), (1, 0, 2)]) == [1019]


@pytest.mark.parametrize("texts", [("ab", "abab"), ("ab", "cd", "abcd")], ids=str)
def test_a_stage_with_twice_the_layers_is_one_forward(texts):
    """Its backward goes through all of it."""
    assert turned(*texts) == []


def test_weight_gradients_tell_nothing():
    """A call that goes through a forward again may take any part of it: that is no backward of a half."""
    assert turned("ab", "cd", "abcd", calls=[*ALONE, (2, 0, 4)], again=[SECOND]) == []


def test_halves_that_do_not_stand_alone_are_no_forwards():
    """A stretch of which a call takes a part has parts, but none that is known for a forward."""
    assert turned("ab", "abcd", calls=[(0, 0, 2), (1, 2, 4), (1, 0, 2)]) == []
    assert turned("cd", "abcd", calls=[(0, 0, 2), (1, 2, 4), (1, 0, 2)]) == []


def test_operators_without_a_backward_are_left_out():
    """What no backward leads to (the loading of data) is no part of a forward."""
    assert turned("ab", "cd", "xabxcdx", calls=[*ALONE, (2, 4, 6), (2, 1, 3)]) == [2039]


@pytest.mark.parametrize(("count", "found"), [(MOST, [2019]), (MOST + 1, [])], ids=["most", "too many"])
def test_too_many_texts_are_no_pattern(count, found):
    """Where hardly any stretch is like another, none is compared with all."""
    texts = ["ab", "cd", "abcd", *(chr(0x4E00 + k) for k in range(count - 3))]
    assert turned(*texts, calls=[*ALONE, SECOND, FIRST, *((k, 0, 1) for k in range(3, count))]) == found


def test_nothing_to_part():
    """There is no operator, or each stretch is another forward."""
    assert turned() == []
    assert turned("ab", "cd") == []


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.data())
def test_forwards_in_any_order_are_parted(order, data):
    """Of forwards that stand alone somewhere any two in a row are parted, and a lone one never is."""
    forwards = ("ab", "cde", "fg")
    two = data.draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
    texts, calls, moments = list(forwards), [(k, 0, len(text)) for k, text in enumerate(forwards)], []
    for k, (which, double) in enumerate(zip(order, two, strict=True), start=len(forwards)):
        first, second = forwards[which], forwards[(which + 1) % len(forwards)] if double else ""
        texts.append(first + second)
        calls += [(k, len(first), len(first + second)), (k, 0, len(first))]
        moments += [1000 * k + 10 * len(first) - 1] if double else []
    assert turned(*texts, calls=calls) == moments
