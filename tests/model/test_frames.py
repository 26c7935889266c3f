"""Python functions whose frames tell pipeline work."""

from __future__ import annotations

import pytest

from bubblescope.model.actions import Kind
from bubblescope.model.frames import FRAMES, find


@pytest.mark.parametrize("frame", FRAMES, ids=lambda f: f"{f.file}:{f.function}")
@pytest.mark.parametrize("before", ["", "/opt/python/lib/site-packages/", "C:\\env\\"])
def test_a_known_function_in_any_place(frame, before):
    """Lines and what stands before the package do not matter."""
    assert find(f"{before}{frame.file}(1234): {frame.function}") is frame


@pytest.mark.parametrize(
    "name",
    [
        "forward_one_chunk",
        "torch/distributed/pipelining/stage.py: forward_one_chunk",
        "torch/distributed/pipelining/stage.py(1): forward_one_chunks",
        "mytorch/distributed/pipelining/stage.py(1): forward_one_chunk",
        "pretrain_gpt.py(80): forward_step",
        "torch/nn/modules/module.py(1553): forward",
        "<built-in method forward_step of module>",
        "nn.Module: PipelineStage_0",
        "",
    ],
)
def test_other_functions_are_unknown(name):
    """A function of another file, or a file without a line, is no frame that is known."""
    assert find(name) is None


def test_what_a_function_does():
    """The weight gradient of torch stands apart from its backward."""
    kinds = [
        find(f"torch/distributed/pipelining/stage.py(9): {f}").kind
        for f in ("backward_one_chunk", "backward_weight_one_chunk")
    ]
    assert kinds == [Kind.B, Kind.W]
