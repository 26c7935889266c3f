"""Python functions whose frames tell pipeline work: which they are, and what each does.

The profiler records frames under `with_stack`, as `file(line): function`. Lines move with every
release, and what stands before the package in the path differs from machine to machine.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bubblescope.model.actions import Kind

__all__ = ["FRAMES", "Frame", "find"]


class Frame(NamedTuple):
    """A function of a file: `kind` of its action or message; `direction` of the message (as in `Messages`), or -1.

    With `marks` it is no action itself: the backward that holds it is a whole one.
    """

    file: str
    function: str
    kind: Kind
    direction: int = -1
    marks: bool = False


_TORCH = "torch/distributed/pipelining"
_MEGATRON = "megatron/core/pipeline_parallel/schedules.py"
_DEEPSPEED = "deepspeed/runtime/pipe/engine.py"
_SEND, _RECV = 0, 1

FRAMES: tuple[Frame, ...] = (
    Frame(f"{_TORCH}/stage.py", "forward_one_chunk", Kind.F),
    Frame(f"{_TORCH}/stage.py", "backward_one_chunk", Kind.B),
    Frame(f"{_TORCH}/stage.py", "backward_weight_one_chunk", Kind.W),
    Frame(f"{_TORCH}/_backward.py", "stage_backward", Kind.B, marks=True),
    Frame(_MEGATRON, "forward_step", Kind.F),
    Frame(_MEGATRON, "backward_step", Kind.B),
    Frame(_DEEPSPEED, "_exec_forward_pass", Kind.F),
    Frame(_DEEPSPEED, "_exec_backward_pass", Kind.B),
    Frame(_DEEPSPEED, "_exec_send_activations", Kind.F, _SEND),
    Frame(_DEEPSPEED, "_exec_recv_activations", Kind.F, _RECV),
    Frame(_DEEPSPEED, "_exec_send_grads", Kind.B, _SEND),
    Frame(_DEEPSPEED, "_exec_recv_grads", Kind.B, _RECV),
)

_BY_FUNCTION = {frame.function: frame for frame in FRAMES}
_PLACE = re.compile(r"(.+)\(\d+\)")


def find(name: str) -> Frame | None:
    """The known function that a frame runs, or None.

    A frame is called as in `torch/distributed/pipelining/stage.py(857): forward_one_chunk`.
    """
    place, _, function = name.rpartition(": ")
    frame = _BY_FUNCTION.get(function)
    if frame is None:
        return None
    match = _PLACE.fullmatch(place.replace("\\", "/"))
    return frame if match is not None and f"/{match[1]}".endswith(f"/{frame.file}") else None
