"""Of which messages the traces tell when their bytes moved."""

from __future__ import annotations

import dataclasses

from bubblescope.analysis.moving import told
from bubblescope.analysis.ranks import views
from tests.analysis.jobs import job, rank

SENDER = [("0F0", 0, 10), ("0F1", 10, 20)]
RECEIVER = [("1F0", 30, 50), ("1F1", 60, 70)]
SENDS = [("send 1 0F0", 10, 90), ("send 1 0F1", 20, 90)]


def of(receives, *, on_gpu=False, sends=SENDS, optimizer=()):
    """What is told of the sends of rank 0 and the receives of rank 1."""
    first = rank(0, SENDER, messages=sends)
    second = rank(1, RECEIVER, messages=receives, optimizer=optimizer)
    found = told(views(job(*(dataclasses.replace(t, on_gpu=on_gpu) for t in (first, second)))))
    return found[0].tolist(), found[1].tolist()


def test_without_kernels_a_receive_tells_if_its_rank_was_free():
    """The second was sent at 20, while the rank was at work until 50: when it arrived nobody tells."""
    assert of([("recv 0 1F0", 0, 30), ("recv 0 1F1", 0, 55)]) == ([True, False], [True, False])


def test_a_receive_that_is_posted_by_a_free_rank_tells():
    """Posted at 50, when the action before was over."""
    assert of([("recv 0 1F0", 0, 30), ("recv 0 1F1", 50, 55)]) == ([True, True], [True, True])


def test_the_optimizer_keeps_a_rank_busy():
    """It runs until 25, and the first message was sent at 10."""
    receives = [("recv 0 1F0", 5, 30), ("recv 0 1F1", 50, 55)]
    assert of(receives, optimizer=[(0, 25)]) == ([False, True], [False, True])


def test_kernels_always_tell():
    """A kernel ends when the bytes are there, whatever the rank does meanwhile."""
    assert of([("recv 0 1F0", 0, 30), ("recv 0 1F1", 0, 55)], on_gpu=True) == ([True, True], [True, True])


def test_halves_without_partner_tell_nothing():
    """The second send was not recorded."""
    receives = [("recv 0 1F0", 0, 30), ("recv 0 1F1", 50, 55)]
    assert of(receives, on_gpu=True, sends=SENDS[:1]) == ([True], [True, False])
    assert of(receives, sends=SENDS[:1]) == ([True], [True, False])
