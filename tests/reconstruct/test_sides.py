"""Sends told from receives by a rank's place in the pipeline."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.model.actions import Kind
from bubblescope.model.timeline import RankTimeline
from bubblescope.reconstruct.sides import with_sides
from bubblescope.schedules.family import EVEN, Shape
from bubblescope.schedules.registry import find
from tests.building import timeline

FIRST, INNER, LAST = "F . F . . B . B", ". F . . B . . F . . B .", ". F B . . F B ."


def sided(*lines: str) -> RankTimeline:
    """A rank of which each line is a step: `. F . B` is a message, a forward, a message, a backward, 10 each.

    `<` is a message that begins while the action before it runs. `s` and `r` are messages whose direction is known.
    """
    word_of = {".": "either ?", "<": "either ?", "s": "send 1", "r": "recv 1"}
    actions, messages, steps = [], [], []
    for k, line in enumerate(lines):
        words = line.split()
        for at, word in zip(range(1000 * k, 1000 * k + 10 * len(words), 10), words, strict=True):
            if word in word_of:
                messages.append((word_of[word], at - 5 * (word == "<"), at + 8, k))
            else:
                actions.append((f"?{word}{len(actions)}", at, at + 10, k))
        steps.append((k, 1000 * k, 1000 * k + 1000))
    return timeline(0, actions=actions, messages=messages, steps=steps)


def told(built: RankTimeline) -> str:
    """`s`, `r` or `?` for each message, in order; a kernel that holds both comes twice."""
    return "".join("sr?"[way] for way in with_sides(built.messages, built.actions).direction)


@pytest.mark.parametrize(
    ("line", "sides"),
    [
        (FIRST, "ssrr"),
        (INNER, "rsrsrsrs"),
        (LAST, "rsrs"),
        ("F . F .", "ss"),
        (". F . . F .", "rsrs"),
        (". F . F", "rr"),
    ],
    ids=["first", "inner", "last", "first forward", "inner forward", "last forward"],
)
def test_each_place_has_its_pattern(line, sides):
    """The first stage sends forwards and receives gradients, the last one the reverse, an inner one does all four."""
    assert told(sided(line)) == sides


@pytest.mark.parametrize(
    ("line", "sides"),
    [
        (". F . . F . B . . B", "??????"),
        (". . F F B . B .", "rrss"),
        (". . F . F . . B . . B .", "rrssrsrs"),
        (". F . . . F . B . B .", "rsrrssrs"),
    ],
    ids=["one left over", "last", "inner", "inner, gradients ahead"],
)
def test_receives_posted_early(line, sides):
    """A receive may stand before any action ahead of the one that awaits it, and none may be left over."""
    assert told(sided(line)) == sides


def test_what_began_while_the_action_ran_is_no_send_of_its_output():
    """Of two messages between two actions the one that began early is a receive, whichever was posted first."""
    assert told(sided(". F < . B .")) == "rrss"
    assert told(sided(". F . . B .")) == "rsrs"


def inner(*messages):
    """A step of an inner stage with two micro-batches, and these messages between its last two actions."""
    ordinary = [("either ?", 0, 10), ("either ?", 20, 21), ("either ?", 10, 20), ("either ?", 30, 31)]
    gradients = [("either ?", 31, 50), *messages, ("either ?", 100, 101)]
    return timeline(
        1,
        actions=[("?F0", 10, 20), ("?F1", 20, 30), ("?B0", 50, 70), ("?B1", 80, 100)],
        messages=[*ordinary, *gradients],
    )


@pytest.mark.parametrize(
    ("messages", "sides"),
    [
        ([("either ?", 70, 80), ("either ?", 70, 72)], "rs"),
        ([("either ?", 70, 72), ("either ?", 70, 80)], "sr"),
        ([("either ?", 70, 79), ("either ?", 71, 72)], "rs"),
        ([("either ?", 70, 95), ("either ?", 71, 72)], "sr"),
        ([("either ?", 70, 73), ("either ?", 71, 72)], "sr"),
    ],
    ids=["receive first", "send first", "receive, and soon the action", "too late for a receive", "nothing tells"],
)
def test_the_next_action_begins_behind_its_receive(messages, sides):
    """Of two messages behind an action the one that ends as the idle rank goes on is the input, not the output."""
    assert told(inner(*messages)) == f"rsrsr{sides}s"


def streamed(streams):
    """A rank that posts the send of its first backward only behind its next forward; directions by stream."""
    rows = [
        (0, 10, 1), (0, 20, 1), (20, 21, 4), (20, 50, 2), (30, 31, 4), (30, 31, 1),
        (70, 80, 2), (70, 71, 3), (80, 81, 4), (80, 110, 2), (100, 101, 3), (130, 131, 3),
    ]  # fmt: skip
    after = (-1, -1, 0, 0, 1, 1, 2, 3, 3, 3, 4, 5)
    built = timeline(
        1,
        actions=[("?F0", 10, 20), ("?F1", 20, 30), ("?B0", 50, 70), ("?F2", 70, 80), ("?B1", 80, 100),
                 ("?B2", 110, 130)],
        messages=[("either ?", start, end) for start, end, _ in rows],
    )  # fmt: skip
    lane = np.array([stream if streams else 0 for *_, stream in rows])
    return "".join("sr?"[way] for way in with_sides(built.messages.replace(after=after), built.actions, lane).direction)


def test_streams_tell_what_the_order_of_posting_does_not():
    """The host posted a send one action later than usual; streams that go one way each show it."""
    assert streamed(streams=True) == "rrsrsrrssrss"
    assert streamed(streams=False) != streamed(streams=True)


def test_a_kernel_may_hold_a_send_and_a_receive():
    """A lone message between two actions, of which one sends and the other receives, is both."""
    built = sided(". F . B . F . B .")
    assert told(built) == "rsrsrsrs"
    found = with_sides(built.messages, built.actions)
    assert found.kernel.tolist() == [0, 1, 1, 2, 2, 3, 3, 4]
    assert told(sided("F . F . B . B")) == "ssrr"


def test_a_lone_message_is_a_send_where_a_receive_is_already_there():
    """With a receive in hand nothing is awaited, so that the kernel holds the send alone."""
    assert told(sided(". . F . B . F . B .")) == "rrssrsrs"


@pytest.mark.parametrize(
    "line",
    [
        "F < < B < < F < < B < <",
        "F < < . F < < . . B < < . B < <",
        ". F < < B < < . . F < < B < < .",
        ". F < . . B < . . F < . . B < .",
        "F . F . F",
        "B . F . B",
    ],
    ids=["no pipeline", "first", "last", "inner", "a send too few", "backwards first"],
)
def test_what_fits_no_place_stays_open(line):
    """All-to-alls of experts inside actions, too, are kernels that send and receive, and no part of a pipeline."""
    assert set(told(sided(line))) == {"?"}


def test_an_odd_step_stays_open():
    """A step that lost a message does not keep the others from being told."""
    assert told(sided(LAST, ". F B . . F B", LAST)) == "rsrs???rsrs"


@pytest.mark.parametrize("lines", [(LAST, FIRST), (LAST, "F B ."), (LAST, FIRST, "F .  . B B")], ids=str)
def test_half_the_steps_are_not_enough(lines):
    """Most steps must fit one place."""
    assert set(told(sided(*lines))) == {"?"}


def test_steps_that_fit_every_place_tell_nothing():
    """Steps of weight gradients without a message are no evidence for any place, and no hindrance."""
    assert told(sided("W", "W", "F . . B .")) == "???"
    assert told(sided("W", "W", LAST)) == "rsrs"


def test_weight_gradients_neither_send_nor_receive():
    """They stand anywhere between the messages."""
    assert told(sided(". F . . I . W . F . W . I .")) == "rsrsrsrs"


def test_directions_that_are_known_stay():
    """Where some kernel says what it is, the kernels are left to say it."""
    assert told(sided("s F r B . F . B .")) == "sr???"


def test_without_messages_or_actions_nothing_happens():
    """There is nothing to tell, or nothing to tell it by."""
    assert told(sided("F B F B")) == ""
    assert told(sided(". . .")) == "???"


def test_messages_outside_all_steps_stay_open():
    """What belongs to no step fits no place."""
    built = sided(LAST, LAST)
    step = built.messages.step.copy()
    step[0] = -1
    found = with_sides(built.messages.replace(step=step), built.actions)
    assert found.direction.tolist() == [2] * 8  # half of the steps are left
    built = sided(LAST, LAST, LAST)
    step = built.messages.step.copy()
    step[:4] = -1
    assert with_sides(built.messages.replace(step=step), built.actions).direction.tolist() == [2] * 4 + [1, 0] * 4


def test_actions_outside_all_steps_are_no_evidence():
    """What a recording holds before its first step neither fits nor hinders."""
    built = sided("F B", LAST)
    actions = built.actions.replace(step=built.actions.step - 1)
    messages = built.messages.replace(step=built.messages.step - 1)
    assert with_sides(messages, actions).direction.tolist() == [1, 0] * 2


@st.composite
def runs(draw):
    """A rank's messages and actions in a schedule with one stage a rank, and the true directions, row by row."""
    p, fused, early = draw(st.integers(2, 5)), draw(st.booleans()), draw(st.integers(0, 2))
    at, name = draw(st.integers(0, p - 1)), draw(st.sampled_from(["1f1b", "gpipe", "zb-h1", "zb-h2", "forward-only"]))
    order = next(iter(find(name).variants(Shape(p, draw(st.integers(p, 8))), EVEN))).order(at)
    posted = [[] for _ in range(len(order) + 1)]  # receives in each gap
    for g, action in enumerate(order):
        if action.kind != Kind.W and 0 <= at - (1 if action.kind == Kind.F else -1) < p:
            posted[g if fused else max(0, g - early)].append("r")
    words, truth = [], []
    for g, receives in enumerate(posted):
        before = order[g - 1] if g else None
        sends = before is not None and before.kind != Kind.W and 0 <= at + (1 if before.kind == Kind.F else -1) < p
        both = sends and receives and fused
        truth += ["s"] * bool(sends) + receives
        words += ["."] * (sends + len(receives) - bool(both))
        words += [order[g].kind.name] if g < len(order) else []
    return " ".join(words), "".join(truth)


@given(runs())
def test_every_place_of_a_pipeline_is_told(run):
    """Whatever the schedule, fused kernels or not, receives early or not: each message is what it is."""
    line, truth = run
    assert told(sided(line, line)) == truth * 2


@given(st.lists(st.sampled_from(".<FBIW"), max_size=14))
def test_no_message_is_lost(words):
    """Of any sequence each message is still there, in order, twice only where it is a send and a receive."""
    built = sided(" ".join(words))
    found = with_sides(built.messages, built.actions)
    rows = [(kernel, way) for kernel, way in zip(found.kernel.tolist(), found.direction.tolist(), strict=True)]
    assert len(set(rows)) == len(rows)
    assert list(dict.fromkeys(kernel for kernel, _ in rows)) == built.messages.kernel.tolist()
