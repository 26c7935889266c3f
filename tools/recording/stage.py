"""A slice of a model whose work is to sleep, so that the time it takes is known."""

from __future__ import annotations

import time
from typing import Any

from recording.libraries import Function, Module, torch

__all__ = ["ROWS", "WIDTH", "SleepingLayer", "SleepingStage", "SleepingWeight", "oversleeps"]

WIDTH = 64  # features of an activation: small, so that nothing but the sleeping takes time
ROWS = 4  # samples in a micro-batch

oversleeps: list[float] = []  # of this process: how much longer than wanted each sleep took, in seconds


def rest(seconds: float) -> None:
    """Sleep for a time and note how much longer it became.

    Waiting the last moment out on the clock instead would not be more exact: the ranks run in step, and with fewer
    cores than ranks one would wait for its core behind another that spins.
    """
    start = time.perf_counter()
    time.sleep(seconds)
    oversleeps.append(time.perf_counter() - start - seconds)


class SleepingLayer(Function):
    """The identity on an activation; its forward sleeps, and its backward sleeps as the input gradient."""

    @staticmethod
    def forward(ctx: Any, activation: Any, forward_s: float, input_grad_s: float) -> Any:
        """Sleep for the forward."""
        ctx.input_grad_s = input_grad_s
        rest(forward_s)
        return activation.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Sleep for the input gradient."""
        rest(ctx.input_grad_s)
        return grads[0], None, None


class SleepingWeight(Function):
    """The identity on a parameter; its backward sleeps as the weight gradient.

    Why not one function that does both: a zero-bubble schedule asks autograd for the input gradient (I) and later for
    the weight gradient (W), and both times ``ctx.needs_input_grad`` of a function between them is true for all inputs,
    so I and W would each run the whole backward.  As separate nodes, I passes this one by and W runs nothing else.
    """

    @staticmethod
    def forward(ctx: Any, weight: Any, weight_grad_s: float) -> Any:
        """Take no time: only the backward is of interest."""
        ctx.weight_grad_s = weight_grad_s
        return weight.clone()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Sleep for the weight gradient."""
        rest(ctx.weight_grad_s)
        return grads[0], None


class SleepingStage(Module):
    """A slice of a model that takes a known time.

    The linear layer comes first so that stage 0, whose input needs no gradient, still has an input gradient to compute.
    """

    def __init__(self, forward_ms: float, input_grad_ms: float, weight_grad_ms: float) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)
        self.bias = torch.nn.Parameter(torch.zeros(WIDTH))
        self.seconds = (forward_ms / 1e3, input_grad_ms / 1e3, weight_grad_ms / 1e3)

    def forward(self, activation: Any) -> Any:
        """Run the slice on one micro-batch."""
        forward_s, input_grad_s, weight_grad_s = self.seconds
        bias = SleepingWeight.apply(self.bias, weight_grad_s)
        return SleepingLayer.apply(self.linear(activation), forward_s, input_grad_s) + bias
