"""Sends and receives that are part of an action."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.model.actions import Kind
from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.calls import Talk
from bubblescope.reconstruct.host import Ranges
from bubblescope.reconstruct.labels import Labels
from bubblescope.reconstruct.ranges import NONE
from bubblescope.reconstruct.rings import amid, found_without, nameless, rings
from bubblescope.reconstruct.units import Units

RING, PIPELINE = 7, 3  # streams
BEFORE, BETWEEN, BEHIND, OUTSIDE = 10, 30, 60, 90


def acts(text, stage=1, chunks=None):
    """Actions of these kinds: the k-th is named from 100 k + 5 to 100 k + 80 and has kernels at 20 and 50 of it."""
    start = 100 * np.arange(len(text))
    unknown = [NONE] * len(text)
    kinds = [Kind[kind] for kind in text]
    return Ranges(start + 5, start + 80, kinds, [stage] * len(text), *[unknown] * 4, chunks or unknown)


def talk(rows):
    """Messages, each (host moment, stream[, what the call says])."""
    rows = sorted(rows, key=lambda row: row[0])
    calls = [CommArgs(op="send_recv") if len(row) == 2 else row[2] for row in rows]
    table = list(dict.fromkeys(calls))
    host = np.array([row[0] for row in rows], np.int64)
    zeros = np.zeros(len(rows))
    units = Units(host, host, host, zeros, zeros, zeros, [row[1] for row in rows])
    return Talk(units, tuple(table), np.array([table.index(c) for c in calls], np.int64), np.arange(len(rows)))


def work(count):
    """Two kernels an action."""
    host = np.sort(np.concatenate((100 * np.arange(count) + 20, 100 * np.arange(count) + 50)))
    zeros = np.zeros(len(host))
    return Units(host, host, host, zeros, zeros, zeros)


def held(rows, ranges):
    """The host moments of the messages that are part of an action, and of those that may be."""
    sent = talk(rows)
    return tuple(sent.units.host[found].tolist() for found in rings(sent, ranges, work(len(ranges))))


def at(moment, actions, stream=RING, *said):
    """A message at a moment of each of these actions."""
    return [(100 * k + moment, stream, *said) for k in actions]


def outside(count):
    """A pipeline's message behind each action."""
    return at(OUTSIDE, range(count), PIPELINE)


ALL = range(10)
TRAINS = "FB" * 5


def moments(rows):
    """Host moments in order."""
    return sorted(row[0] for row in rows)


def test_what_is_posted_between_the_kernels_of_all_forwards_is_theirs():
    """A ring or an all-to-all is part of its action; what is posted between actions is the pipeline's."""
    ring = at(BETWEEN, ALL)
    assert held([*ring, *outside(10)], acts(TRAINS)) == (moments(ring), [])


def test_the_last_kernel_of_an_action_is_its_own():
    """An action may end with an all-to-all: it is of the group that is known from between the other kernels."""
    ring = [*at(BETWEEN, ALL), *at(BEHIND, ALL)]
    assert held([*ring, *outside(10)], acts(TRAINS)) == (moments(ring), [])


@pytest.mark.parametrize("moment", [BEFORE, BEHIND])
def test_an_exchange_at_the_same_end_of_forwards_and_backwards_is_theirs(moment):
    """A pipeline's message goes with the forward on one side and with the backward on the other."""
    ring = at(moment, ALL)
    assert held([*ring, *outside(10)], acts(TRAINS)) == (moments(ring), [])


def test_messages_inside_labels_are_the_pipelines():
    """A label may hold its messages: a first stage sends behind forwards and receives before backwards."""
    rows = [*at(BEHIND, range(0, 10, 2), PIPELINE), *at(BEFORE, range(1, 10, 2), PIPELINE)]
    assert held(rows, acts(TRAINS)) == ([], [])


def test_messages_of_an_inner_stage_inside_labels_are_the_pipelines():
    """On one stream, before and behind the kernels of all actions: without others, these are what the pipeline has."""
    assert held([*at(BEFORE, ALL, PIPELINE), *at(BEHIND, ALL, PIPELINE)], acts(TRAINS)) == ([], [])


def test_an_all_to_all_beside_messages_inside_labels():
    """An inner stage whose labels hold its messages, and whose actions end with an all-to-all before the send."""
    ring = at(BEHIND, ALL)
    pipeline = [*at(BEFORE, ALL, PIPELINE), *at(BEHIND + 5, ALL, PIPELINE)]
    assert held([*ring, *pipeline], acts(TRAINS)) == (moments(ring), [])


def test_an_exchange_on_both_sides_of_a_lone_kernel():
    """Where the pipeline's messages are posted between labels, what is posted inside them is not the pipeline's."""
    ring = [*at(BEFORE, ALL), *at(BEHIND, ALL)]
    assert held([*ring, *outside(10)], acts(TRAINS)) == (moments(ring), [])


def test_without_others_only_what_lies_between_kernels_is_sure():
    """On one stream with the messages of the pipeline, before and behind the kernels may lie either."""
    ring = at(BETWEEN, ALL)
    rows = [*ring, *at(BEFORE, ALL), *at(BEHIND, ALL)]
    assert held(rows, acts(TRAINS)) == (moments(ring), [])


def test_a_first_stage_sends_nothing_behind_its_backwards():
    """Labels that name stage 0 alone leave no pipeline: what follows all forwards and all backwards is their own."""
    ring = at(BEHIND, ALL)
    assert held(ring, acts(TRAINS, stage=0)) == (moments(ring), [])
    assert held(ring, acts(TRAINS, stage=1)) == ([], [])


def test_a_lone_exchange_of_forwards_without_backwards_may_be_either():
    """Without backwards nothing tells an all-to-all behind each forward from its send."""
    open_ = at(BEHIND, ALL)
    assert held([*open_, *outside(10)], acts("F" * 10)) == ([], moments(open_))


def test_few_forwards_say_nothing():
    """What eight of ten forwards hold may be anything."""
    assert held([*at(BETWEEN, range(8)), *outside(10)], acts("F" * 10)) == ([], [])
    assert held([*at(BETWEEN, range(9)), *outside(10)], acts("F" * 10))[0]


def test_only_some_chunks_hold_experts():
    """Of a rank with two chunks only those of one need to hold any."""
    chunks = [0, 0, 1, 1, 0, 0, 1, 1]
    ring = at(BETWEEN, [2, 3, 6, 7])
    assert held([*ring, *outside(8)], acts("FB" * 4, chunks=chunks)) == (moments(ring), [])


def test_groups_are_told_apart_by_name():
    """On one stream, what names a group that is never between kernels is no part of the actions."""
    ring = at(BETWEEN, ALL, RING, CommArgs(op="send", group="4"))
    other = at(BEHIND, range(0, 10, 2), RING, CommArgs(op="send", group="5"))
    assert held([*ring, *other, *outside(10)], acts(TRAINS)) == (moments(ring), [])


def without_labels(rows, *, said=()):
    """The host moments of messages of no name that are the stage's own, where autograd told the actions."""
    sent = talk(rows)
    columns = np.array(said, np.int64).reshape(-1, 2).T
    labels = Labels(*columns, *[np.full(len(said), NONE)] * 7)
    return sent.units.host[nameless(sent, acts(TRAINS), labels)].tolist()


TO = CommArgs(op="send", dst=1)


@pytest.mark.parametrize("named", ["peers", "ranges"])
def test_what_others_name_tells_what_has_no_name(named):
    """Behind all actions, on a stream of their own, beside messages that tell their peer or stand in a range."""
    ring = at(BEHIND, ALL)
    pipeline = at(OUTSIDE, ALL, PIPELINE, TO) if named == "peers" else outside(10)
    said = [(host - 1, host + 1) for host in moments(pipeline)] if named == "ranges" else ()
    assert without_labels([*ring, *pipeline], said=said) == moments(ring)


@pytest.mark.parametrize(
    "rows",
    [
        [*at(BEHIND, ALL), *outside(10)],
        [*at(BEHIND, range(0, 10, 2)), *at(OUTSIDE, ALL, PIPELINE, TO)],
        [*at(BEHIND, ALL, PIPELINE), *at(OUTSIDE, ALL, PIPELINE, TO)],
        [*at(BEHIND, ALL), *at(OUTSIDE, range(4), PIPELINE, TO)],
    ],
    ids=["nothing named", "forwards alone", "one stream", "few named"],
)
def test_what_may_be_a_fused_message_stays_one(rows):
    """A kernel that holds a send and a receive has no name either."""
    assert without_labels(rows) == []


def lasting(rows, lengths):
    """The messages, each as long as those of its stream are."""
    sent = talk(rows)
    units = sent.units
    took = np.array([lengths.get(lane, 0) for lane in units.lane.tolist()])
    return replace(sent, units=units.replace(end=units.start + took))


def computing(count):
    """Two kernels an action, which run from 20 to 45 and from 50 to 70 of it."""
    units = work(count)
    return units.replace(end=units.start + np.tile((25, 20), count))


def found_between(rows, *, under=RING, count=10, kinds=TRAINS):
    """The host moments of what the actions prove to hold, where they are found only without it."""
    sent = lasting(rows, {RING: 10 if under == RING else 100, PIPELINE: 10 if under == PIPELINE else 100})
    actions, tried = acts(kinds), []

    def find(some):
        tried.append(some.units.host.tolist())
        return actions if not np.any(some.units.lane == RING) else Ranges.empty()

    ranges = found_without(find, sent, computing(count))
    held = sent.units.host[amid(sent, ranges, computing(count))].tolist()
    assert tried[-1] == [host for host in sent.units.host.tolist() if host not in held]
    return held


def test_actions_are_found_without_what_proves_to_be_part_of_them():
    """Unnamed messages that recur between the kernels of all actions, while these run, are no borders of actions."""
    ring = at(BETWEEN, ALL)
    assert found_between([*ring, *outside(10)]) == moments(ring)


def test_a_ring_may_end_the_actions_of_one_kind():
    """What stands between the kernels of backwards follows those of forwards, where these end with an attention."""
    ring = [*at(BEHIND, range(0, 10, 2)), *at(BETWEEN, range(1, 10, 2))]
    assert found_between([*ring, *outside(10)]) == moments(ring)


NO_RINGS = {
    "few": at(BETWEEN, range(8)),
    "forwards alone": at(BETWEEN, range(0, 10, 2)),
    "at the ends": at(BEHIND, ALL),
    "not as many": [(host + k, RING) for j, (host, _) in enumerate(at(BETWEEN, ALL)) for k in range(1 + j % 5)],
}


@pytest.mark.parametrize("rows", NO_RINGS.values(), ids=NO_RINGS.keys())
def test_what_does_not_recur_inside_actions_is_no_ring(rows):
    """It is in all forwards and backwards, as many in each, and not only at their ends."""
    assert found_between([*rows, *outside(10)]) == []


def test_what_waits_between_kernels_is_no_ring():
    """A receive that was posted early is posted between kernels, too, but outlasts them."""
    assert found_between([*at(BETWEEN, ALL), *outside(10)], under=None) == []


@pytest.mark.parametrize("each", [0, 3])
def test_the_pipeline_has_messages_but_not_many(each):
    """Where nothing is left, or more than two an action, what was taken for an action is none."""
    others = [row for k in range(each) for row in at(OUTSIDE + k, ALL, PIPELINE)]
    assert found_between([*at(BETWEEN, ALL), *others]) == []
