"""Which parts of a job to look at first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bubblescope.gate.take import Run
from bubblescope.model.baseline import Baseline
from bubblescope.model.gate import Check, Worst
from bubblescope.model.metrics import Metric, Part

__all__ = ["worst"]

_STAGES: dict[str, str] = {"imbalance": "imbalance", "work": "work"}
"""The number of a stage that tells of a number of the whole job; of all others its bubble does."""


_SEEN = 0.0005
"""A cause that changed by less changed no digit that is shown."""


def worst(checks: Sequence[Check], run: Run, baseline: Baseline | None) -> tuple[Worst, ...]:
    """The worst stage by the first rule that failed, else by the first rule; and what the bubble is made of.

    The worst part is the one that moved most where a baseline tells moves, else the one whose number is worst. A stage
    idles because of another one: so where the bubble failed, the cause that is worst is told with it, and if that is
    imbalance the heaviest stage. Empty where the run has no such parts.
    """
    check = _leading(checks)
    return () if check is None else tuple(_worst(check, run, baseline))


def _worst(check: Check, run: Run, baseline: Baseline | None) -> Iterator[Worst]:
    metric, by = (check.metric, check.by) if check.by is not None else (_STAGES.get(check.metric, "bubble"), "stage")
    if check.metric == "exposed":
        metric, by = "exposed", "group"
    # A limit asks what is, and not what moved; what must not fall is worst where it fell most.
    fell = check.side == "below" and metric == check.metric
    order = _Order(baseline if check.against == "baseline" else None, -1 if fell else 1)
    first = _part(metric, by, run, baseline, order)
    if first is None:
        return
    yield first
    if metric != "bubble" or by == "cause" or check.outcome != "fail":
        return
    cause = _part("bubble", "cause", run, baseline, order)
    if cause is not None and abs(cause.value - (cause.baseline or 0.0)) >= _SEEN:
        yield cause
        heaviest = _part("imbalance", "stage", run, None, _Order(None, 1)) if cause.of == "imbalance" else None
        if heaviest is not None:
            yield heaviest


def _leading(checks: Sequence[Check]) -> Check | None:
    """The first check that failed, those that matter most first; without any the first one."""
    failed = [c for level in ("error", "warn") for c in checks if (c.level, c.outcome) == (level, "fail")]
    return next(iter([*failed, *checks]), None)


class _Order(NamedTuple):
    """By what parts are ranked: how far they moved from a baseline, if there is one, and to which side."""

    past: Baseline | None
    sign: int


def _part(metric: str, by: Part, run: Run, baseline: Baseline | None, order: _Order) -> Worst | None:
    parts = run.numbers.parts(metric, by)
    if by == "cause":
        parts = tuple(part for part in parts if part.of != "structural")  # what theory owes is nobody's fault
    if not parts:
        return None
    before = {part.of: None if order.past is None else order.past.metric(metric, by, part.of) for part in parts}
    found = max(parts, key=lambda part: order.sign * _moved(part, before))
    then = None if baseline is None else baseline.metric(metric, by, found.of)
    of = found.of or ""
    return Worst(
        metric=metric,
        by=by,
        of=of,
        ranks=run.holders.get(of, ()) if by == "stage" else (),
        value=found.value,
        baseline=None if then is None else then.value,
    )


def _moved(part: Metric, before: dict[str | None, Metric | None]) -> float:
    """By how much a part changed; where some part has no past, how large it is."""
    past = before[part.of]
    return part.value if past is None or None in before.values() else part.value - past.value
