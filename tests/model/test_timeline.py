"""A rank's timeline and a rank's trace: defaults, clocks, and the checks of their invariants."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Actions, Collectives, LayerWork, Messages, RankTimeline, Steps, Timed, Work
from bubblescope.model.trace import (
    Annotations,
    CommArgs,
    Identity,
    Kernels,
    Launches,
    Ops,
    RankTrace,
    Source,
    Thread,
)

SOURCE = Source("rank0.json", "kineto", 100, 12)
ACTIONS = Actions([0, 20], [10, 30], [0, 0], [0, 1], [1, 1], [0, 0], [-1, -1], [-1, -1])


def timeline(**parts) -> RankTimeline:
    """A timeline of rank 0."""
    return RankTimeline(rank=0, source=SOURCE, identity=Identity(rank=0), absolute=True, on_gpu=True, **parts)


def trace(**parts) -> RankTrace:
    """A trace of one thread, two names and one communication call."""
    tables = {"names": ("a", "b"), "threads": (Thread("1", "1"),), "comms": (CommArgs(op="send"),)}
    return RankTrace(source=SOURCE, identity=Identity(), absolute=True, **(tables | parts))


@pytest.mark.parametrize("kind", [Steps, Actions, Work, Messages, Collectives])
def test_shifted_blocks_lie_on_another_clock(kind):
    """Shifting moves start and end, nothing else, to the nanosecond even far from zero."""
    rows: Timed = kind(*([k, k + 1] for k in range(len(kind.__dataclass_fields__))))
    moved = rows.moved(lambda times: times + 2**62)
    assert moved.start.tolist() == [2**62, 2**62 + 1]
    assert moved.end.tolist() == [2**62 + 1, 2**62 + 2]
    for name in [name for name in kind.__dataclass_fields__ if name not in {"start", "end"}]:
        assert getattr(moved, name).tolist() == getattr(rows, name).tolist()


def test_an_empty_timeline_is_sound():
    """A rank of which nothing is known has empty blocks and passes its check."""
    nothing = timeline()
    nothing.self_check()
    assert len(nothing.actions) == len(nothing.messages) == len(nothing.optimizer) == 0
    assert nothing.reconstruction is None


def test_a_sound_timeline_passes():
    """Work inside its action, and work of no action anywhere, is sound."""
    timeline(actions=ACTIONS, work=Work([0, 5, 25, 500], [5, 10, 30, 600], [0, 0, 1, -1])).self_check()


@pytest.mark.parametrize(("start", "end"), [(-1, 5), (5, 11), (20, 30)])
def test_work_outside_its_action(start, end):
    """Work that begins before its action or ends after it does not pass."""
    with pytest.raises(ValueError, match="work lies outside the action that owns it"):
        timeline(actions=ACTIONS, work=Work([start], [end], [0])).self_check()


def test_actions_out_of_order():
    """Actions not in order of their start do not pass."""
    with pytest.raises(ValueError, match="actions are not in order of their start"):
        timeline(actions=ACTIONS.take(np.array([1, 0]))).self_check()


def test_a_timeline_crosses_a_process_border():
    """What a worker sends back arrives whole."""
    sent = timeline(
        actions=ACTIONS,
        layers=LayerWork([0, 1], [2, 3], [7, 8]),
        optimizer=Spans.of([3], [9]),
        calls=(CommArgs(op="send", dst=1),),
    )
    back = pickle.loads(pickle.dumps(sent))  # noqa: S301 - our own bytes
    assert back.actions.start.tolist() == [0, 20]
    assert back.optimizer.total == 6
    assert (back.layers.layer.tolist(), back.layers.length.tolist()) == ([2, 3], [7, 8])
    assert (back.source, back.identity, back.calls) == (sent.source, sent.identity, sent.calls)


def test_kernels_mean_a_gpu():
    """A trace with work on a GPU says so; one of operators alone does not."""
    assert not trace(ops=Ops([0], [1], [0], [0], [-1], [0], [-1])).on_gpu
    assert trace(kernels=Kernels([0], [1], [0], [0], [5], [Kernels.KERNEL], [-1])).on_gpu


def test_a_sound_trace_passes():
    """Indices inside their tables, and no communication (-1), are sound, and so are events of no length."""
    trace(
        ops=Ops([0, 4], [1, 4], [0, 1], [0, 0], [-1, 3], [0, 0], [-1, 0]),
        annotations=Annotations([0], [9], [1], [0]),
        launches=Launches([0], [1], [1], [0], [7]),
        kernels=Kernels([2], [3], [0], [0], [7], [Kernels.KERNEL], [0]),
    ).self_check()
    trace().self_check()


@pytest.mark.parametrize(
    ("part", "problem"),
    [
        ({"ops": Ops([5], [4], [0], [0], [-1], [0], [-1])}, "Ops: an end lies before its start"),
        ({"ops": Ops([0], [1], [2], [0], [-1], [0], [-1])}, "Ops.name points outside its table"),
        ({"ops": Ops([0], [1], [0], [1], [-1], [0], [-1])}, "Ops.thread points outside its table"),
        ({"ops": Ops([0], [1], [0], [0], [-1], [0], [1])}, "Ops.comm points outside its table"),
        ({"ops": Ops([0], [1], [0], [0], [-1], [0], [-2])}, "Ops.comm points outside its table"),
        ({"annotations": Annotations([0], [1], [-1], [0])}, "Annotations.name points outside its table"),
        ({"launches": Launches([0], [1], [0], [-1], [7])}, "Launches.thread points outside its table"),
        ({"kernels": Kernels([0], [1], [9], [0], [7], [0], [-1])}, "Kernels.name points outside its table"),
    ],
)
def test_a_trace_that_points_nowhere(part, problem):
    """An index outside its table, or time that runs backwards, does not pass, and the message names the column."""
    with pytest.raises(ValueError, match=problem):
        trace(**part).self_check()
