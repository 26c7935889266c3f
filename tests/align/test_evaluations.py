"""Evaluations inside training steps are set aside, and nothing else is."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from bubblescope.align.evaluations import set_aside, set_aside_untold
from bubblescope.model.timeline import Collectives
from tests.building import actions_of, job, messages_of, timeline

TRAINING = ("F0", "F1", "B0", "B1")


def line(rank, names, how="labels", **others):
    """A rank of stage `rank` that runs these actions, each 10 long, one after the other."""
    rows = [(f"{rank}{name}", 10 * i, 10 * i + 10) for i, name in enumerate(names)]
    return dataclasses.replace(timeline(rank, actions=rows, **others), reconstruction=how)


def left(*names, how="labels"):
    """What is left of two ranks that run so, and how many forwards were set aside."""
    made = set_aside({rank: line(rank, names, how) for rank in range(2)})
    return [[name[1:] for name, *_ in actions_of(made[rank])] for rank in range(2)], made[0].steps.extra.tolist()


@pytest.mark.parametrize(
    ("names", "extra"),
    [
        ((*TRAINING, "F0", "F1", "F2"), 3),
        (("F0", "F1", "F2", *TRAINING), 3),
        ((*TRAINING, "F2"), 1),
        (("F0.0", "F0.1", "F0.0", "F0.1", "B0.1", "B0.0"), 1),
    ],
)
def test_forwards_before_or_behind_a_training_are_an_evaluation(names, extra):
    """Named anew or counted on, of whole micro-batches or slices; what is left is the training."""
    trained = [name for name in names if "." in name][-4:] or list(TRAINING)
    assert left(*names) == ([trained] * 2, [extra])


def test_what_is_left_counts_from_0():
    """Numbers that an evaluation took first are given back."""
    assert left("F0", "F1", "F2", "F3", "B2", "B3") == ([["F0", "F1", "B0", "B1"]] * 2, [2])


def test_actions_that_nothing_links_leave_the_first_forwards():
    """Where backwards are only counted, those of the training come last."""
    names = ("F0", "F1", "F2", "B0", "F3", "B1", "F4", "B2")
    assert left(*names, how="kernels") == ([["F0", "B0", "F1", "B1", "F2", "B2"]] * 2, [2])


@pytest.mark.parametrize(
    "names",
    [
        TRAINING,
        ("F0", "F1"),
        ("F0", "F1", "F2", "B0"),  # cut off: F1 and F2 await their backwards
        ("F0", "B0", "B1"),
        ("F0", "B0", "F1", "B0"),
        ("F0", "F9", "F1", "B0", "B1"),
    ],
)
def test_all_else_stays(names):
    """Plain steps, evaluations alone, cut ones, and what does not fit."""
    assert left(*names) == ([[*names]] * 2, [0])


def test_ranks_that_differ_are_cut_off():
    """The last stage has a forward more, the first one has not."""
    made = set_aside({0: line(0, TRAINING), 1: line(1, (*TRAINING, "F2"))})
    assert [len(t.actions) for t in made.values()] == [4, 5]


def test_messages_and_work_of_an_evaluation_are_of_no_step():
    """The receive of its first forward and the send of its last; those of the training stay."""
    messages = [("recv 0 1F0", 0, 5), ("send 0 1B1", 40, 45), ("recv 0 1F0", 38, 44), ("recv 0 1F1", 46, 50)]
    first = line(1, (*TRAINING, "F0", "F1"), messages=messages)
    made = set_aside({0: line(0, (*TRAINING, "F0", "F1")), 1: first})[1]
    assert made.messages.step.tolist() == [0, 0, -1, -1]
    assert made.work.action.tolist() == [0, 1, 2, 3, -1, -1]
    made.self_check()


def test_what_points_at_actions_follows():
    """An evaluation comes first: rows of the training move down, its collectives belong to no action."""
    first = line(0, ("F0", *TRAINING))
    shared = Collectives([0, 20], [10, 30], [0, 2], [0, 0], [0, 0], [-1, -1])
    first = dataclasses.replace(first, collectives=shared)
    made = set_aside({0: first})[0]
    assert made.collectives.action.tolist() == [-1, 1]
    assert made.work.action.tolist() == [-1, 0, 1, 2, 3]


FIRST = [("send 1", 20, 25), ("send 1", 30, 35), ("recv 1", 31, 50), ("recv 1", 60, 70)]
LAST = [("recv 0", 5, 25), ("recv 0", 30, 45), ("send 0", 45, 50), ("send 0", 65, 70)]
BEFORE = [("send 1", 2, 6), ("send 1", 3, 7)], [("recv 0", 1, 6), ("recv 0", 2, 7)]
BEHIND = [("send 1", 72, 80), ("send 1", 81, 90)], [("recv 0", 71, 80), ("recv 0", 81, 90)]
NOTHING = [], []


def trained(before=NOTHING, behind=NOTHING):
    """Two stages that train two micro-batches, and have other messages before and behind: what is of no step."""
    zero = [("0F0", 10, 20), ("0F1", 20, 30), ("0B0", 50, 60), ("0B1", 70, 80)]
    one = [("1F0", 25, 35), ("1B0", 35, 45), ("1F1", 45, 55), ("1B1", 55, 65)]
    lines = [(0, zero, [*before[0], *FIRST, *behind[0]]), (1, one, [*before[1], *LAST, *behind[1]])]
    made = set_aside_untold(job(*(timeline(rank, actions=acts, messages=sent) for rank, acts, sent in lines)))
    gone = [[text for text, *_ in np.array(messages_of(t))[t.messages.step < 0]] for t in made.timelines.values()]
    return gone, {t.steps.extra[0] for t in made.timelines.values()}


@pytest.mark.parametrize("where", [{"before": BEFORE}, {"behind": BEHIND}])
def test_messages_of_an_evaluation_that_nobody_told(where):
    """So many more on both ends: the step holds as many forwards beside its training, and these are of no step."""
    assert trained(**where) == ([["send 1"] * 2, ["recv 0"] * 2], {2})


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"before": (BEFORE[0], [])},
        {"before": (BEFORE[0], BEFORE[1][:1])},
        {"behind": ([("recv 1", 82, 90)], [("send 0", 72, 90)])},
        {"before": ([("send 1", 26, 28)], [("recv 0", 36, 38)])},
    ],
    ids=["none", "of one rank", "of different number", "of backwards", "amid the training"],
)
def test_other_messages_stay(where):
    """What is no evaluation's is not set aside: then the step pairs nothing, as before."""
    assert trained(**where) == ([[], []], {0})
