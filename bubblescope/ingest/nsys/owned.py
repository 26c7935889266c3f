"""Rows of a file that holds several processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

import numpy as np

from bubblescope.model.columns import Bools, Columns, Times

__all__ = ["Owned"]

C = TypeVar("C", bound=Columns)


@dataclass(frozen=True, slots=True, eq=False)
class Owned(Generic[C]):
    """Rows, with the process of each (`globalPid`), and its thread (`globalTid`) where it has one."""

    process: Times
    rows: C
    thread: Times = field(default_factory=lambda: np.empty(0, np.int64))

    def take(self, keep: Bools) -> Self:
        """Some of the rows."""
        thread = self.thread[keep] if len(self.thread) else self.thread
        return type(self)(self.process[keep], self.rows.take(keep), thread)

    def of(self, process: int) -> Self:
        """The rows of one process."""
        return self.take(self.process == process)

    def threaded(self, threads: Times) -> C:
        """The rows, their threads numbered by their places among `threads`, sorted."""
        rows: C = self.rows.replace(thread=np.searchsorted(threads, self.thread))
        return rows
