"""The marks that the profiler leaves around steps, or around micro-batches where it is told so, and their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from bubblescope.emit.job import Job
from bubblescope.emit.run import Pass, Ran, Span, Step
from bubblescope.emit.tape import COMPUTE_STREAM, Tape

__all__ = ["Marks"]


class Marks:
    """Writes a rank's marks. A process has one profiler, in its first thread."""

    def __init__(self, job: Job, tape: Tape) -> None:
        self.job, self.tape = job, tape
        self.silent = job.marks == "none" or (job.one_process and tape.rank > 0)
        self.count = 0
        self.opened = 0

    def step(self, step: Step, lanes: Sequence[Sequence[Ran]]) -> None:
        """Begin a step, of which a rank runs these blocks in each pass; mark it as a whole where that is asked."""
        self.opened = step.start
        if self.job.count_anew and step.number % (self.job.steps // self.job.cycles) == 0:
            self.count = 0
        if self.job.marks == "step":
            self._mark(step.end, (lanes[0][0].start, lanes[-1][-1].end))

    def block(self, part: Pass, lane: Sequence[Ran], k: int, now: int) -> None:
        """The k-th block of a pass is through on the host; a micro-batch is when its share of the blocks is."""
        if self.job.marks == "micro-batch":
            before, through = k * part.m // len(lane), (k + 1) * part.m // len(lane)
            if through > before:
                first = -(-before * len(lane) // part.m)
                self._mark(now if k + 1 < len(lane) else part.end, (lane[first].start, lane[k].end))

    def _mark(self, end: int, shown: Span) -> None:
        """A mark from where the last one ended, and the GPU's copy of it."""
        if not self.silent:
            name = f"ProfilerStep#{self.job.first_step + self.count}"
            owner = self.tape.mark(name, self.opened, end)
            if self.job.backend == "cuda":
                self.tape.project(name, shown, owner, COMPUTE_STREAM)
        self.count += 1
        self.opened = end
