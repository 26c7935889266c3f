"""What bounds two clocks: messages and collectives of which both sides were recorded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.links import links
from bubblescope.model.job import Match
from tests.analysis.jobs import call, rank


def rows(found):
    """(first, second, its start and end, those of the second, both, together) of each link."""
    names = ("first", "second", "start_first", "end_first", "start_second", "end_second", "both", "together")
    return list(zip(*(getattr(found, name).tolist() for name in names), strict=True))


def matched(*pairs):
    """Rank and row of the other half of each message; None where it was not found."""
    partner, row = zip(*((-1, -1) if pair is None else pair for pair in pairs), strict=True) if pairs else ((), ())
    return Match([-1] * len(pairs), partner, row)


def sharing(timeline, *kernels):
    """The timeline with messages that share kernels."""
    return replace(timeline, messages=timeline.messages.replace(kernel=kernels))


SENDER = rank(0, messages=[("send 1", 10, 14), ("recv 1", 30, 44)])
RECEIVER = rank(1, messages=[("recv 0", 1005, 1014), ("send 0", 1040, 1044)])
BOTH = {0: matched((1, 0), (1, 1)), 1: matched((0, 0), (0, 1))}


def test_every_received_message_is_a_link():
    """From its send to its receive, times as each clock shows them; a send that is matched is no link of its own."""
    assert rows(links({0: SENDER, 1: RECEIVER}, BOTH)) == [
        (1, 0, 1040, 1044, 30, 44, False, True),
        (0, 1, 10, 14, 1005, 1014, False, True),
    ]


def test_without_a_partner_there_is_no_link():
    """A receive whose send was not found bounds nothing."""
    assert rows(links({0: SENDER, 1: RECEIVER}, {0: matched(None, None), 1: matched(None, None)})) == []
    assert rows(links({0: SENDER}, {})) == []


@pytest.mark.parametrize(
    ("kernels", "together"),
    [(((0, 1), (0, 1)), [True, True]), (((0, 0), (0, 1)), [False, False]), (((0, 1), (3, 3)), [False, False])],
    ids=["alone", "the sender's is shared", "the receiver's is shared"],
)
def test_ends_fall_together_where_a_half_has_its_kernel_to_itself(kernels, together):
    """A kernel that holds another half, too, ends when the last of them is over: of either rank."""
    built = {r: sharing(t, *mine) for (r, t), mine in zip(((0, SENDER), (1, RECEIVER)), kernels, strict=True)}
    assert [row[-1] for row in rows(links(built, BOTH))] == together


def test_only_the_halves_that_share_a_kernel_are_not_alone():
    """A third message beside a shared kernel keeps its own."""
    sender = rank(0, messages=[("send 1", 10, 14), ("send 1", 10, 14), ("send 1", 20, 24)])
    receiver = rank(1, messages=[("recv 0", 10, 14), ("recv 0", 10, 14), ("recv 0", 20, 24)])
    found = links(
        {0: sharing(sender, 0, 0, 1), 1: receiver}, {0: matched(None, None, None), 1: matched((0, 0), (0, 1), (0, 2))}
    )
    assert [row[-1] for row in rows(found)] == [False, False, True]


@pytest.mark.parametrize("host", [0, 1])
def test_without_a_gpu_the_ends_of_messages_fall_apart(host):
    """A host ends its half when it is asked for it."""
    built = {0: SENDER, 1: RECEIVER}
    built[host] = replace(built[host], on_gpu=False)
    assert [row[-1] for row in rows(links(built, BOTH))] == [False, False]


def members(count, **more):
    """Ranks that each took part in one collective of all, the r-th from 10 r to 100 + r."""
    made = [call("dp", 10 * r, 100 + r, ranks=tuple(range(count)), **more) for r in range(count)]
    return {r: rank(r, calls=[one]) for r, one in enumerate(made)}


@pytest.mark.parametrize(
    ("count", "pairs"), [(1, []), (2, [(0, 1)]), (3, [(0, 1), (1, 2), (2, 0)]), (4, [(0, 1), (1, 2), (2, 3), (3, 0)])]
)
def test_the_members_of_a_collective_make_a_ring(count, pairs):
    """A link between neighbours and from the last to the first: as many as members, two of whom need but one."""
    found = rows(links(members(count), {}))
    assert found == [(a, b, 10 * a, 100 + a, 10 * b, 100 + b, True, True) for a, b in pairs]


def test_a_collective_on_the_host_ends_on_each_when_it_does():
    """Its ends need not fall together."""
    built = {r: replace(t, on_gpu=False) for r, t in members(2).items()}
    assert [row[-2:] for row in rows(links(built, {}))] == [(True, False)]


def test_a_collective_that_lacks_a_member_is_no_link():
    """The one that was not recorded may have joined last."""
    built = members(3)
    del built[1]
    assert rows(links(built, {})) == []


def test_messages_and_collectives_come_together():
    """All that ties two clocks, in one block."""
    built = members(2)
    built = {r: replace(built[r], messages=t.messages) for r, t in ((0, SENDER), (1, RECEIVER))}
    found = links(built, BOTH)
    assert (found.both.tolist(), found.first.dtype) == ([False, False, True], np.dtype(np.int32))
