"""What `bubblescope.analyze` returns: the report, and its tables as DataFrames."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblescope.model.job import Job
from bubblescope.model.report import Report

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Analysis"]


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """A job and all that was found of it; every output renders `report`."""

    job: Job
    report: Report

    @property
    def steps(self) -> pd.DataFrame:
        """One row a step."""
        return _frame(self.report.steps)

    @property
    def stages(self) -> pd.DataFrame:
        """One row a stage; times in nanoseconds."""
        return _frame(self.report.stages)

    @property
    def ranks(self) -> pd.DataFrame:
        """One row a rank: where its time went, in nanoseconds."""
        return _frame(self.report.ranks)

    @property
    def communication(self) -> pd.DataFrame:
        """One row a group and operation, means a rank and step."""
        return _frame(self.report.communication)


def _frame(rows: tuple[object, ...]) -> pd.DataFrame:
    import pandas as pd  # noqa: PLC0415  a third of a second that only callers of tables should pay

    return pd.json_normalize([dataclasses.asdict(row) for row in rows])  # type: ignore[call-overload]
