"""Actions from the frames of Python functions."""

from __future__ import annotations

import pytest

from bubblescope.model.options import Options
from bubblescope.reconstruct.passes import reconstruct
from tests.building import actions_of, backward, call, forward, messages_of, note, op, run, trace

STAGE = "torch/distributed/pipelining/stage.py(857): "
INNER = "torch/distributed/pipelining/_backward.py(346): stage_backward"
MEGATRON = "megatron/core/pipeline_parallel/schedules.py(311): "
DEEPSPEED = "deepspeed/runtime/pipe/engine.py(699): "
SENDRECV = "ncclDevKernel_SendRecv(x)"


def told(*rows):
    """The timeline of a trace, through its own self-check."""
    result = reconstruct(trace(*rows), Options(), 0)
    result.self_check()
    return result


def acting(*names):
    """Frames of these names, 10 each, with a kernel each."""
    return [[call(n, 10 * i, 10 * i + 9), run("gemm", 10 * i + 1, 10 * i, 10 * i + 8)] for i, n in enumerate(names)]


@pytest.mark.parametrize(
    ("forward_frame", "backward_frame"),
    [
        (STAGE + "forward_one_chunk", STAGE + "backward_one_chunk"),
        (MEGATRON + "forward_step", MEGATRON + "backward_step"),
        (DEEPSPEED + "_exec_forward_pass", DEEPSPEED + "_exec_backward_pass"),
    ],
    ids=["torch", "megatron", "deepspeed"],
)
def test_forwards_and_backwards_of_a_framework(forward_frame, backward_frame):
    """Frames tell the kind, and micro-batches are counted."""
    result = told(acting(forward_frame, forward_frame, backward_frame, backward_frame))
    assert actions_of(result) == [("?F0", 0, 8), ("?F1", 10, 18), ("?B0", 20, 28), ("?B1", 30, 38)]
    assert result.reconstruction == "frames"


def test_a_split_backward_of_torch():
    """Where weight gradients run apart, a backward is whole only if it holds the call that runs all of it."""
    names = ["forward_one_chunk"] * 2 + ["backward_one_chunk", "backward_weight_one_chunk", "backward_one_chunk"]
    rows = acting(*(STAGE + name for name in names))
    assert [name for name, *_ in actions_of(told(rows, call(INNER, 41, 48)))] == ["?F0", "?F1", "?I0", "?W0", "?B0"]


def test_a_backward_without_weight_gradients_apart_is_whole():
    """A schedule that never splits has full backwards, whatever frames stand inside them."""
    rows = acting(STAGE + "forward_one_chunk", STAGE + "backward_one_chunk")
    assert [name for name, *_ in actions_of(told(rows))] == ["?F0", "?B0"]


def test_a_range_of_the_same_text_is_no_frame():
    """A user range may be called like a frame; it is a range all the same."""
    assert actions_of(told(note(STAGE + "forward_one_chunk", 0, 10), run("gemm", 1, 0, 8))) == []


def test_labels_and_autograd_come_first():
    """Frames are asked only where neither labels nor autograd's numbers tell."""
    frames = [call(STAGE + "forward_one_chunk", 0, 50), call(STAGE + "backward_one_chunk", 100, 150)]
    numbers = [forward(0, 1, 2), backward(100, 2, 1)]
    assert told(frames, numbers).reconstruction == "autograd"
    labels = [note("Forward 0", 0, 50), note("Backward 0", 100, 150)]
    assert told(frames, labels, numbers).reconstruction == "labels"


def test_frames_complete_labels_of_forwards():
    """Where labels name forwards only and no operator has a number, frames tell the backwards."""
    rows = [note("DeepSpeedEngine.forward", 0, 9), op("aten::mm", 1, 8), op("aten::mm", 11, 18)]
    result = told(rows, call(DEEPSPEED + "_exec_backward_pass", 10, 19))
    assert [name for name, *_ in actions_of(result)] == ["?F0", "?B0"]
    assert result.reconstruction == "labels"


def test_frames_tell_the_direction_of_a_message():
    """DeepSpeed sends and receives in functions of their own; fused calls say no direction by themselves."""
    rows = [
        call(DEEPSPEED + "_exec_recv_activations", 0, 9), run(SENDRECV, 1, 0, 8),
        call(DEEPSPEED + "_exec_send_grads", 10, 19), run(SENDRECV, 11, 10, 18),
    ]  # fmt: skip
    assert messages_of(told(rows)) == [("recv ? ?F?", 0, 8), ("send ? ?B?", 10, 18)]


def test_frames_of_other_processes_are_left_out():
    """A data loader may run a stage's code too; only the rank's own process counts."""
    rows = acting(STAGE + "forward_one_chunk", STAGE + "backward_one_chunk")
    other = call(STAGE + "forward_one_chunk", 30, 39, thread="2:loader")
    assert len(actions_of(told(rows, other, run("gemm", 31, 30, 38)))) == 2
