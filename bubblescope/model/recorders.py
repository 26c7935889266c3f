"""What to add to a recording, in the words of the profiler that made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bubblescope.model.trace import Source

__all__ = ["Addition", "Recorder", "recorder"]

Addition = Literal["kernels", "host", "labels", "steps", "more-steps", "rank", "groups", "ending", "graphs", "payloads"]
"""What a line adds: kernels, the host's side, actions, marks of steps, more of them, ranks, what groups are for, the
kernels of the last launches, those inside CUDA graphs, and what NCCL says of its calls."""


@dataclass(frozen=True, slots=True)
class Recorder:
    """How a recording is made to say more.

    Attributes:
        name_work: a sentence on what tells forwards and backwards beyond doubt.
        name_stages: how actions are made to name their stage.
        operators: how the operators of the host are recorded, which tell forwards from backwards.
        both_sides: how both launches and kernels are recorded.
        mark_steps: how to say where steps begin.
        lines: lines to copy into the script or the command, by what they add.
    """

    name_work: str
    name_stages: str
    operators: str
    both_sides: str
    mark_steps: str
    lines: Mapping[Addition, str] = field(default_factory=dict)


_TORCH_LINES: Mapping[Addition, str] = {
    "kernels": "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    "host": "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
    "labels": 'with torch.profiler.record_function(f"PP:{stage}F{microbatch}"):',
    "steps": "profiler.step()",
    "more-steps": "schedule=torch.profiler.schedule(wait=5, warmup=2, active=4)",
    "rank": 'profiler.export_chrome_trace(f"rank{torch.distributed.get_rank()}.json.gz")',
    "groups": 'torch.distributed.new_group(ranks, group_desc="tp")',
    "ending": "torch.cuda.synchronize()",
}
_NSYS_LINES: Mapping[Addition, str] = {
    "kernels": "nsys profile --trace=cuda,nvtx",
    "host": "nsys profile --trace=cuda,nvtx",
    "labels": 'with torch.cuda.nvtx.range(f"PP:{stage}F{microbatch}"):',
    "steps": 'with torch.cuda.nvtx.range(f"ProfilerStep#{step}"):',
    "more-steps": "nsys profile --capture-range=cudaProfilerApi --capture-range-end=stop",
    "rank": "nsys profile -o report_rank%q{RANK}",
    "ending": "torch.cuda.synchronize()",
    "graphs": "nsys profile --cuda-graph-trace=node",
    "payloads": "nsys export --type sqlite --include-json=true",
}


def _profiler(wrap: str, operators: str, both_sides: str, lines: Mapping[Addition, str], steps: str = "") -> Recorder:
    """A profiler in which `wrap` is the context manager that names a range; `steps` marks steps without one, if any."""
    return Recorder(
        name_work=f"Wrap the work of the training script in {wrap}('PP:<stage>F<micro-batch>') and "
        f"'PP:<stage>B<micro-batch>', or {operators}",
        name_stages=f"name the work with {wrap}('PP:<stage>F<i>')",
        operators=operators,
        both_sides=both_sides,
        mark_steps=f"{steps}wrap each step in {wrap}('ProfilerStep#<n>')",
        lines=lines,
    )


_TORCH = _profiler(
    wrap="torch.profiler.record_function",
    operators="let torch.profiler.profile record ProfilerActivity.CPU beside CUDA",
    both_sides="record ProfilerActivity.CPU and .CUDA",
    lines=_TORCH_LINES,
    steps="call profiler.step() after each, or ",
)
_NSYS = _profiler(
    wrap="torch.cuda.nvtx.range",
    operators="run it under torch.autograd.profiler.emit_nvtx(); record with nsys profile --trace=cuda,nvtx",
    both_sides="record with nsys profile --trace=cuda,nvtx, and let the recording end before the program does",
    lines=_NSYS_LINES,
)
_TIMELINE = Recorder(
    name_work="Write a slice for each forward and backward, with its stage and its micro-batch",
    name_stages="write the stage of each action (column or argument stage, or chunk)",
    operators="write slices of backwards, too",
    both_sides="write slices of the work itself",
    mark_steps="write the number of the step with each action (column or argument step)",
)


def recorder(source: Source) -> Recorder:
    """The profiler that a trace comes from."""
    return {"nsys": _NSYS, "timeline": _TIMELINE, "table": _TIMELINE}.get(source.format, _TORCH)
