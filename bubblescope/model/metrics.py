"""What can be gated and compared: the numbers of a report that have one value a step, and how much the steps differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bubblescope.model.quality import Number

__all__ = ["METRICS", "Metric", "MetricKind", "Part", "Unit"]

Unit = Literal["share", "ratio", "ns", "per_s"]
Part = Literal["stage", "cause", "group", "rank", "pipeline"]


LARGEST = 1e100
"""More than any number of a run can be, whatever is stated of it; its square is still a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number and how it varies: of the whole job, or of one part of it (`by` stage, `of` "3").

    Attributes:
        metric: a name of `METRICS`.
        value: the number of the report; nanoseconds, a fraction of 1, a ratio or a rate, as its kind says.
        spread: standard deviation over the steps, None with fewer than two.
        steps: how many steps it is the mean of.
        error: by how much the clocks may be wrong about it, in its own unit; 0 where no two clocks are compared.
    """

    metric: str
    by: Part | None = None
    of: str | None = None
    value: float
    spread: float | None
    steps: int
    error: float = 0.0

    def __post_init__(self) -> None:
        if (self.by is None) != (self.of is None):
            raise ValueError(f"{self.metric} is of the whole job or of one part of it")
        if not 1 <= self.steps <= LARGEST or (self.steps == 1 and self.spread is not None):
            raise ValueError(f"{self.name} cannot have a spread of {self.spread} in {self.steps} steps")
        if not (abs(self.value) <= LARGEST and 0 <= (self.spread or 0.0) <= LARGEST and 0 <= self.error <= LARGEST):
            raise ValueError(
                f"{self.name} cannot be {self.value} with a spread of {self.spread} and an error of {self.error}"
            )

    @property
    def name(self) -> str:
        """As rules write it: `bubble`, `bubble@stage=3`."""
        return self.metric if self.by is None else f"{self.metric}@{self.by}={self.of}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKind:
    """What a metric is.

    Attributes:
        title: its name in a sentence.
        of_part: that of a part's, where it is another one.
        unit: of its value.
        parts: by what it is told beside the whole job; empty where only the whole has it.
        whole: whether the whole job has it.
        numbers: the numbers of the report on whose verdicts it rests.
        wall_clock: whether it depends on the machine, so that it is comparable on equal ones alone.
        better: which way is good; None where neither is.
        needs: options without which nothing tells it.
    """

    title: str
    of_part: str = ""
    unit: Unit
    parts: tuple[Part, ...] = ()
    whole: bool = True
    numbers: tuple[Number, ...]
    wall_clock: bool = False
    better: Literal["lower", "higher"] | None = "lower"
    needs: tuple[str, ...] = ()

    def rests_on(self, by: Part | None) -> tuple[Number, ...]:
        """The numbers whose verdicts count: those of the metric, and of the parts that it is told by."""
        return (*self.numbers, *_OF_PARTS.get(by, ()))


_OF_PARTS: Mapping[Part | None, tuple[Number, ...]] = {"cause": ("causes",), "stage": ("stages",), "rank": ("ranks",)}

METRICS: Mapping[str, MetricKind] = {
    "bubble": MetricKind(
        title="bubble", unit="share", parts=("cause", "stage", "rank", "pipeline"), numbers=("bubble",)
    ),
    "gap": MetricKind(title="bubble beyond the formula", unit="share", numbers=("bubble", "formula")),
    "imbalance": MetricKind(
        title="work of the slowest stage over the mean",
        of_part="work over the mean stage's",
        unit="ratio",
        parts=("stage",),
        numbers=("imbalance",),
    ),
    "exposed": MetricKind(
        title="exposed communication, share of the step", unit="share", parts=("group",), numbers=("communication",)
    ),
    "window": MetricKind(title="pipeline window", unit="ns", parts=("pipeline",), numbers=("bubble",), wall_clock=True),
    "work": MetricKind(
        title="work a step", unit="ns", parts=("stage",), whole=False, numbers=("stages",), wall_clock=True
    ),
    "step_time": MetricKind(title="step time", unit="ns", numbers=("throughput",), wall_clock=True),
    "microbatches_per_s": MetricKind(
        title="micro-batches a second", unit="per_s", numbers=("throughput",), wall_clock=True, better="higher"
    ),
    "samples_per_s": MetricKind(
        title="samples a second",
        unit="per_s",
        numbers=("throughput",),
        wall_clock=True,
        better="higher",
        needs=("--batch-size",),
    ),
    "tokens_per_s": MetricKind(
        title="tokens a second",
        unit="per_s",
        numbers=("throughput",),
        wall_clock=True,
        better="higher",
        needs=("--batch-size", "--sequence-length"),
    ),
    "mfu": MetricKind(
        title="MFU",
        unit="share",
        numbers=("throughput",),
        wall_clock=True,
        better="higher",
        needs=("--batch-size", "--sequence-length", "--flops-per-token", "a known GPU or --peak-flops"),
    ),
}
"""All of them, in the order in which they are told."""
