"""What fields of a job to emit take: words to choose from, and the times of a stage."""

from __future__ import annotations

from typing import Literal, NamedTuple

from bubblescope.model.actions import Kind

__all__ = [
    "Backend",
    "Calls",
    "CommNames",
    "Descriptions",
    "Era",
    "EvalAt",
    "GroupsTold",
    "Host",
    "InStage",
    "KernelNames",
    "Labels",
    "Launches",
    "Marks",
    "Metadata",
    "OneFile",
    "P2PArgs",
    "Payloads",
    "Recorder",
    "ReduceOp",
    "StageWork",
    "ZeroGrad",
]

Labels = Literal["pp", "torch", "none"]
P2PArgs = Literal["kernel", "op", "none"]
Backend = Literal["cuda", "cpu"]
Era = Literal["relative", "epoch-int", "epoch-fraction"]
Metadata = Literal["before", "after", "none"]
Descriptions = Literal["megatron", "mesh", "undefined"]
Host = Literal["all", "launches", "none"]
InStage = Literal["all-reduce", "all-to-all"]
Launches = Literal["joined", "unnumbered", "trimmed"]
KernelNames = Literal["torch", "split", "blind"]
Recorder = Literal["kineto", "nsys"]
OneFile = Literal["no", "behind", "shifted", "sorted"]
Calls = Literal["all", "params", "ops", "ranges", "none"]
CommNames = Literal["nccl", "generic"]
Payloads = Literal["json", "blobs", "none"]
ReduceOp = Literal["all-reduce", "reduce-scatter"]
GroupsTold = Literal["named", "sized", "none"]
EvalAt = Literal["between", "before", "behind"]
ZeroGrad = Literal["none", "fill", "foreach", "cast"]
Marks = Literal["step", "micro-batch", "none"]


class StageWork(NamedTuple):
    """Times of one stage for one micro-batch, in nanoseconds; `weight_ns` is the part of the backward that is W."""

    forward_ns: int
    backward_ns: int
    weight_ns: int

    def of(self, kind: Kind) -> int:
        """Time of an action of that kind on a whole micro-batch."""
        return (self.forward_ns, self.backward_ns, self.backward_ns - self.weight_ns, self.weight_ns)[kind]
