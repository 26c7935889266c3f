"""Sends and receives that a rank took for each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.align.exchanged import exchanged
from bubblescope.align.pairs import matches
from bubblescope.align.resolve import resolve
from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.mapping import read_ranks
from bubblescope.model.options import Options
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import CommArgs
from bubblescope.reduction import analyze as analyzed
from bubblescope.reduction import join
from tests.building import job, timeline

MS = 1_000_000
FEW = {"steps": 3, "p2p_ns": 200_000, "labels": "pp", "p2p_args": "none", "named_calls": False, "payloads": "none"}
"""Labels, and nothing that tells a send from a receive."""


def guessing(rank, actions, messages, op="send_recv"):
    """A rank whose calls do not tell a send from a receive; moments are in milliseconds."""
    moved = [[(text, int(a * MS), int(b * MS)) for text, a, b in rows] for rows in (actions, messages)]
    return replace(timeline(rank, actions=moved[0], messages=moved[1]), calls=(CommArgs(op=op),))


def few(op="send_recv", **last):
    """Two micro-batches on three ranks; behind the first backward the inner one took send and receive for each other.

    `last` may put the send of the last rank's second backward elsewhere.
    """
    first = guessing(
        0,
        [("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 70, 90), ("0B1", 101, 121)],
        [("send ?", 10, 10.2), ("send ?", 20, 20.2), ("recv ?", 20, 70), ("recv ?", 90, 101)],
    )
    inner = guessing(
        1,
        [("1F0", 10.2, 20), ("1F1", 20.2, 30), ("1B0", 50, 69.8), ("1B1", 80, 100)],
        [
            ("recv ?", 0, 10.2), ("recv ?", 10.2, 20.2), ("send ?", 20, 20.2), ("send ?", 30, 30.2), ("recv ?", 30, 50),
            ("send ?", 69.8, 80), ("recv ?", 69.8, 70), ("send ?", 100, 101),
        ],
        op,
    )  # fmt: skip
    third = guessing(
        2,
        [("2F0", 20.2, 30), ("2B0", 30, 49.8), ("2F1", 50, 60), ("2B1", 60, 79.8)],
        [("recv ?", 0, 20.2), ("recv ?", 20.2, 30.2), ("send ?", 49.8, 50), ("send ?", last.get("at", 79.8), 80)],
    )
    return first, inner, third


def exchanged_in(*ranks):
    """Rows of messages that should have another direction, by rank."""
    built = job(*ranks)
    built = replace(built, matches=matches(built))
    return {
        rank: [row for row, way in enumerate(found.direction) if way != built.timelines[rank].messages.direction[row]]
        for rank, found in exchanged(built).items()
    }


def test_two_that_contradict_the_others_change_places():
    """What ended before it was sent was the output, and what went on until then the input."""
    assert exchanged_in(*few()) == {1: [5, 6]}


def test_what_a_call_tells_stays():
    """A contradiction of directions that were recorded is one of clocks."""
    assert exchanged_in(*few(op="send")) == {}


def test_what_is_in_order_neither_way_stays():
    """Sent when both had ended, it would be late the other way round too."""
    assert exchanged_in(*few(at=80.1)) == {}


def test_messages_in_order_stay():
    """Without a contradiction nothing changes, whatever else would fit."""
    assert exchanged_in(*few(at=69.9)) == {}


def test_a_job_is_on_one_clock_when_they_are_exchanged():
    """The guess was wrong, and no clock: nothing is left that contradicts."""
    found = resolve({t.rank: t for t in few()}, Options())
    assert found.clock.violations == 0
    assert found.timelines[1].messages.direction[5:7].tolist() == [Messages.RECV, Messages.SEND]
    assert resolve({t.rank: t for t in few(op="send")}, Options()).clock.violations == 1


SHAPES = {
    "fewer than ranks": Job(**FEW, p=3, m=2),
    "one": Job(**FEW, p=4, m=1, schedule="gpipe"),
    "early": Job(**FEW, p=3, m=3, recv_ahead=2, recv_streams=3, recorder="nsys"),
    "all early": Job(**FEW, p=4, m=2, recv_ahead=99, recv_streams=2, d=2),
    "split": Job(**FEW, p=3, m=2, schedule="zb-h1", recv_ahead=1, recorder="nsys"),
    "chunks": Job(**FEW, p=2, m=2, v=2, schedule="interleaved-1f1b"),
    "evaluated inside": Job(**FEW, p=3, m=4, eval_steps=(1,), eval_at="behind"),
    "evaluated before": Job(**FEW, p=3, m=2, eval_steps=(0,), eval_at="before", recorder="nsys", recv_ahead=1),
}


@pytest.mark.parametrize("made", SHAPES.values(), ids=SHAPES)
def test_perfect_clocks_are_not_doubted(tmp_path, made):
    """Whatever the order of posting, and however often an action comes: no message is late on one clock."""
    write(made, tmp_path)
    report = analyze([tmp_path]).report
    assert report.clock.violations == 0
    assert "clock-uncertain" not in {finding.code for finding in report.quality.findings}
    assert report.bubble.measured == pytest.approx(truth(made).bubble, abs=0.006)


@pytest.mark.parametrize("by", [-15 * MS, 15 * MS], ids=["back", "forth"])
@pytest.mark.parametrize("name", ["fewer than ranks", "early", "split"])
def test_a_clock_that_was_set_is_found(tmp_path, name, by):
    """A jump amid the recording is no wrong guess, though guesses may be."""
    ranks = sorted((t for f in write(SHAPES[name], tmp_path) for t in read_ranks(f, Options())), key=lambda t: t.rank)
    middle = ranks[1].steps.start[2]
    ranks[1] = ranks[1].moved(lambda moments: moments + by * (moments >= middle))
    report = analyzed(join(ranks, Options()), Options()).report
    assert report.clock.violations
    assert report.quality.verdict == "degraded"
