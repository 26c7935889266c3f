"""Rows of several processes."""

from __future__ import annotations

import numpy as np

from bubblescope.ingest.nsys.owned import Owned
from bubblescope.model.trace import Launches
from tests.ingest.nsys.exports import process, thread

ROWS = Owned(
    np.array([process(1), process(2), process(1)]),
    Launches([10, 20, 30], [11, 21, 31], [0, 1, 2], [0, 0, 0], [7, 8, 9]),
    np.array([thread(1, 5), thread(2), thread(1)]),
)


def test_the_rows_of_a_process():
    """Keep their order, and their threads."""
    ours = ROWS.of(process(1))
    assert ours.rows.start.tolist() == [10, 30]
    assert ours.process.tolist() == [process(1)] * 2
    assert ours.thread.tolist() == [thread(1, 5), thread(1)]
    assert len(ROWS.of(process(3)).rows) == 0


def test_rows_without_threads():
    """What ran on a GPU has none."""
    bare = Owned(ROWS.process, ROWS.rows).of(process(2))
    assert (bare.rows.start.tolist(), bare.thread.tolist()) == ([20], [])


def test_threads_are_numbered_by_their_places():
    """Among those of the rank, sorted."""
    threads = np.array([thread(1, 1), thread(1, 5), thread(2, 2)])
    assert ROWS.threaded(threads).thread.tolist() == [1, 2, 0]
