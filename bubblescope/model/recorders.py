"""What to add to a recording, in the words of the profiler that made it."""

from __future__ import annotations

from dataclasses import dataclass

from bubblescope.model.trace import Source

__all__ = ["Recorder", "recorder"]


@dataclass(frozen=True, slots=True)
class Recorder:
    """How a profiler is told to record more.

    Attributes:
        wrap: the context manager of Python that names a range.
        operators: how the operators of the host are recorded, which tell forwards from backwards.
        both_sides: how both launches and kernels are recorded.
        steps: how steps are marked without a range of one's own, if there is a way.
    """

    wrap: str
    operators: str
    both_sides: str
    steps: str = ""

    @property
    def name_work(self) -> str:
        """A sentence on what tells forwards and backwards beyond doubt."""
        return (
            f"Wrap the work of the training script in {self.wrap}('PP:<stage>F<micro-batch>') and "
            f"'PP:<stage>B<micro-batch>', or {self.operators}"
        )

    @property
    def mark_steps(self) -> str:
        """How to say where steps begin."""
        return f"{self.steps}wrap each step in {self.wrap}('ProfilerStep#<n>')"


_TORCH = Recorder(
    wrap="torch.profiler.record_function",
    operators="let torch.profiler.profile record ProfilerActivity.CPU beside CUDA",
    both_sides="record ProfilerActivity.CPU and .CUDA",
    steps="call profiler.step() after each, or ",
)
_NSYS = Recorder(
    wrap="torch.cuda.nvtx.range",
    operators="run it under torch.autograd.profiler.emit_nvtx(); record with nsys profile --trace=cuda,nvtx",
    both_sides="record with nsys profile --trace=cuda,nvtx, and let the recording end before the program does",
)


def recorder(source: Source) -> Recorder:
    """The profiler that a trace comes from."""
    return _NSYS if source.format == "nsys" else _TORCH
