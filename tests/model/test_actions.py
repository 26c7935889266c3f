"""Actions as the field writes them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.model.actions import WHOLE, Action, Kind

numbers = st.integers(0, 10**6)


@settings(deadline=None)
@given(numbers, st.sampled_from(Kind), numbers, st.just(WHOLE) | numbers)
def test_text_and_back(stage, kind, microbatch, part):
    """What is written can be read, and is the same action."""
    action = Action(stage, kind, microbatch, part)
    assert Action.parse(str(action)) == action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("2F4", (2, Kind.F, 4)),
        ("0B0", (0, Kind.B, 0)),
        ("11I12", (11, Kind.I, 12)),
        ("3W7", (3, Kind.W, 7)),
        ("3B7.0", (3, Kind.B, 7, 0)),
    ],
)
def test_letters(text, action):
    """The four letters mean forward, full backward, input gradient and weight gradient."""
    assert Action.parse(text) == Action(*action)
    assert str(Action(*action)) == text


@pytest.mark.parametrize(
    "text", ["", "F", "2F", "F4", "2f4", "2X4", "-1F0", "2F4 ", "2F4.", "2F.1", "2F4.1.1", "0REDUCE_GRAD", "2F4B1"]
)
def test_other_text(text):
    """Anything else is refused, and said."""
    with pytest.raises(ValueError, match="expected an action like 2F4, found") as caught:
        Action.parse(text)
    assert repr(text) in str(caught.value)
