"""The one sentence that a reader remembers: measured bubble, what theory owes, what the rest is."""

from __future__ import annotations

from bubblescope.model.report import Rank, Report
from bubblescope.report import wording as words

__all__ = ["verdict"]

_UNDECIDED = "No pipeline could be identified, but the recording may hold one (see the warnings)"

# Below half of the last digit shown a difference is none.
_NOTHING = 0.0005

_RESIDUAL = words.cause_words("residual")


def verdict(report: Report) -> str:
    """The answer in plain words, whatever it is: a bubble, an interval, no pipeline, or unknown."""
    if report.schedule.name == "none":
        return _no_pipeline(report)
    if report.bubble.measured is not None:
        return _measured(report, report.bubble.measured)
    if report.bubble.lower is not None and report.bubble.upper is not None:
        return _interval(report, report.bubble.lower, report.bubble.upper)
    return f"The bubble is unknown: {_why_unknown(report)}."


def _measured(report: Report, measured: float) -> str:
    formula = report.bubble.formula
    opening = f"{words.percent(measured)} of the pipeline's time is bubble"
    if formula is None:
        return f"{opening}; how much of it theory owes is unknown, for {_no_theory(report)}."
    gap = measured - formula
    if abs(gap) < _NOTHING:
        return f"{opening}, just what {words.owes(report)}."
    if gap < 0:
        return (
            f"{opening}, {words.points(-gap)} less than the {words.percent(formula)} that {words.owes(report)}"
            f"{_outweighs(report)}."
        )
    return (
        f"{opening}: {words.percent(formula)} is what {words.owes(report)}, "
        f"the other {words.points(gap)} {_biggest(report, gap)}."
    )


def _no_theory(report: Report) -> str:
    if report.schedule.name == "unknown":
        nearest = report.schedule.runner_up
        if nearest is None:
            return "nothing tells the schedule"
        likeness = words.percent(nearest.confidence, 0)
        return f"no known schedule has the order found (the nearest, {nearest.name}, a likeness of {likeness})"
    return f"{report.schedule.name} has no formula for {words.schedule_shape(report)}"


def _biggest(report: Report, gap: float) -> str:
    """`are mostly X (1.1 points)`, or less boldly where no part makes up half."""
    parts = [part for part in _parts(report) if part[1] >= _NOTHING]
    if not parts:
        return "have no cause that could be told"
    name, share = max(parts, key=lambda part: part[1])
    if share >= gap - _NOTHING:
        amount = "" if share < gap + _NOTHING else f" ({words.points(share)}, partly made up for elsewhere)"
        return f"are {_ungrounded(name)}{amount}"
    if share >= gap / 2:
        return f"are mostly {_ungrounded(name)} ({words.points(share)})"
    if name == _RESIDUAL:
        return f"have many causes, and {words.points(share)} of them are unexplained"
    return f"have many causes, the biggest being {name} ({words.points(share)})"


def _ungrounded(name: str) -> str:
    """A part of the gap behind `are` or `mostly`."""
    return "unexplained" if name == _RESIDUAL else name


def _outweighs(report: Report) -> str:
    parts = [part for part in _parts(report) if part[1] <= -_NOTHING]
    if not parts:
        return ""
    name, share = min(parts, key=lambda part: part[1])
    how = _ungrounded(name) if name == _RESIDUAL else f"by {name}"
    return f", mostly {how} ({words.points(share)})"


def _parts(report: Report) -> list[tuple[str, float]]:
    """The parts of the gap: the causes, or where they are unknown what the replay tells apart."""
    bubble = report.bubble
    if bubble.causes:
        return [(_cause(report, cause.cause), cause.points) for cause in bubble.causes if cause.cause != "structural"]
    return _replay_parts(report)


def _replay_parts(report: Report) -> list[tuple[str, float]]:
    bubble = report.bubble
    if bubble.replay is None or bubble.measured is None or bubble.formula is None:
        return []
    return [
        (_uneven(report), bubble.replay - bubble.formula),
        ("transfers and host delays", bubble.measured - bubble.replay),
    ]


def _uneven(report: Report) -> str:
    """What is uneven: the slowest stage, if it stands out."""
    imbalance = report.imbalance
    if imbalance.stage_ratio is None or imbalance.stage_ratio < 1.05:
        return "uneven actions (stages or micro-batches that take different times)"
    ratio = words.ratio(imbalance.stage_ratio)
    return f"uneven actions (stage {imbalance.slowest_stage} works {ratio} times the mean stage)"


def _cause(report: Report, cause: str) -> str:
    """The cause in words, with the stage or ranks to blame where they are known."""
    text, imbalance = words.cause_words(cause), report.imbalance
    if cause == "imbalance" and imbalance.slowest_stage is not None and imbalance.stage_ratio is not None:
        return f"{text}, stage {imbalance.slowest_stage} working {words.ratio(imbalance.stage_ratio)} times the mean"
    if cause == "host" and not words.messages_seen(report):
        return "gaps of the host or transfers, as no message was recorded"
    if cause == "straggler" and imbalance.stragglers:
        return f"slow {words.ranks_named([rank for straggler in imbalance.stragglers for rank in straggler.ranks])}"
    return text


def _interval(report: Report, lower: float, upper: float) -> str:
    formula = report.bubble.formula
    theory = "" if formula is None else f" Theory: {words.percent(formula)} is what {words.owes(report)}."
    unseen = ""
    if report.layout.missing_ranks:
        unseen = ", if unseen stages work 0.9 times the lightest to 1.1 times the heaviest seen one"
    between = f"lies between {words.percent(lower)} and {words.percent(upper)}"
    if upper >= 1:  # open: no recorded rank tells how long the step is
        between = f"is {words.percent(lower)} or more"
    return f"The bubble {between} of the pipeline's time{unseen}: {_why_unknown(report)}.{theory}"


def _why_unknown(report: Report) -> str:
    missing = report.layout.missing_ranks
    if missing:
        verb = "trace of {} is" if len(missing) == 1 else "traces of {} are"
        return f"the {verb.format(words.ranks_named(missing))} missing"
    if not any(step.used for step in report.steps):
        return _no_step(report)
    if not report.stages:
        return "stages exchange messages, but the traces do not tell forwards from backwards (see the warnings)"
    return "the traces do not tell it"


def _no_step(report: Report) -> str:
    """Why no step was measured."""
    asked = [step for step in report.steps if step.left_out != "not-asked"]
    evaluations = [step.step for step in asked if step.left_out == "evaluation"]
    if evaluations:
        what = "is an evaluation" if len(evaluations) == 1 else "are evaluations"
        rest = "" if len(evaluations) == len(asked) else ", and no other step is complete"
        why = f"without backwards there is no training bubble to measure{rest}"
        return f"{words.steps_named(evaluations)} {what}, and {why}"
    if len(asked) == len(report.steps):
        return "no complete step was found"
    return f"{words.steps_named([step.step for step in asked])} {'is' if len(asked) == 1 else 'are'} incomplete"


def _no_pipeline(report: Report) -> str:
    ranks = report.ranks
    window = sum(rank.window_ns for rank in ranks)
    if not window:
        return f"{_UNDECIDED if report.undecided else 'No pipeline here'}, and no rank whose time could be told."
    parts = [f"{words.percent(ns / window)} {name}" for name, ns in _spent(ranks) if ns / window >= _NOTHING]
    step = words.duration(window / len(ranks))
    over = "" if len(ranks) == 1 else f", mean over {len(ranks)} ranks,"
    spent = f"step of {step}{over} is {words.enumerate_words(parts)}"
    return f"{_UNDECIDED}. A {spent}." if report.undecided else f"No pipeline here: a {spent}."


def _spent(ranks: tuple[Rank, ...]) -> list[tuple[str, int]]:
    return [
        ("compute", sum(rank.compute_ns for rank in ranks)),
        ("exposed in-stage communication", sum(rank.in_stage_comm_ns for rank in ranks)),
        ("exposed data-parallel communication", sum(rank.dp_ns for rank in ranks)),
        ("waiting for the host", sum(rank.host_ns for rank in ranks)),
        (
            "exposed communication of groups that the trace does not name",
            sum(rank.other_ns + rank.pp_ns for rank in ranks),
        ),
    ]
