"""The messages that a transfer is: the tensor, and before it the shape, where the receiver cannot know that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from bubblescope.emit.job import Job
from bubblescope.emit.run import Transfer

__all__ = ["TENSOR", "Content", "messages"]

SHAPE_NS = 8_000  # how long a shape moves


class Content(NamedTuple):
    """What a message carries: elements of so many bytes, under torch's name of their type."""

    elements: int
    width: int
    dtype: str

    @property
    def bytes(self) -> int:
        """Its size."""
        return self.elements * self.width


TENSOR = Content(4_194_304, 2, "BFloat16")
SHAPE = Content(3, 8, "Long")  # as Megatron sends it: megatron/core/pipeline_parallel/p2p_communication.py


def messages(job: Job, transfer: Transfer, *, sends: bool) -> Iterator[tuple[Transfer, Content]]:
    """The messages of a transfer on one side of it. The sender of a shape does not wait: NCCL buffers what is small."""
    if job.announced:
        begin = transfer.sent if sends else transfer.begin
        yield replace(transfer, end=min(begin + SHAPE_NS, transfer.end)), SHAPE
    yield transfer, TENSOR
