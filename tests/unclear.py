"""Jobs whose files leave it unclear who belongs together, when something was asked for, or what a step is.

    job = unclear(Random(7).choice, "labels")
    classed(job).outcome

As a program: `python -m tests.unclear 200` draws so many, prints the table of their outcomes and what is wrong.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from random import Random
from typing import Any, NamedTuple

from bubblescope.emit import Job, truth
from bubblescope.errors import InputError, UsageError
from bubblescope.model.report import Report
from tests.ordinary import analyzed, brief, kernels_only, ordinary, same_order, tolerance
from tests.recordings import some_of

__all__ = ["TOLD", "UNCLEAR", "Classed", "Outcome", "classed", "drawn", "lines", "table", "unclear"]

Choose = Callable[[Sequence[Any]], Any]
Fields = Mapping[str, Any]

TOLD: Mapping[str, Fields] = {
    "labels": {"labels": "pp"},
    "numbers": {"labels": "none", "autograd": True},
    "kernels": {"labels": "none", "autograd": False},
}
"""What tells the actions."""

EARLY = ("kernel", "op", "none")


def _ramp(choose: Choose) -> Fields:
    p = choose((2, 3, 4))
    return {"p": p, "ramp": tuple(p * k for k in choose(((1, 1, 2, 2, 2), (2, 3, 3, 3), (2, 1, 1), (2, 2, 4, 4))))}


UNCLEAR: Mapping[str, Callable[[Choose], Fields]] = {
    "unnamed gradients": lambda choose: {
        "d": 2,
        "dp_buckets": choose((1, 2, 4)),
        "dp_ns": choose((2_000_000, 8_000_000)),
        "dp_op": choose(("all-reduce", "reduce-scatter")),
        "groups_told": choose(("sized", "none")),
        "named_calls": choose((True, False)),
    },
    "unnamed grid": lambda choose: {
        "d": choose((2, 3)),
        "groups_told": "none",
        "p2p_args": "none",
        "named_calls": False,
        "dp_buckets": choose((0, 2)),
    },
    "early receives": lambda choose: {
        "recv_ahead": choose((1, 2, 99)),
        "recv_streams": choose((1, 2, 9)),
        "p2p_args": choose(EARLY),
        "named_calls": choose((True, False)),
        "fused": False,
    },
    "few micro-batches": lambda choose: {
        "schedule": choose(("1f1b", "gpipe", "eager-1f1b", "zb-h1")),
        "p": choose((3, 4)),
        "m": 2,
        "recv_ahead": choose((0, 1, 99)),
        "p2p_args": choose(EARLY),
        "fused": False,
    },
    "evaluation between steps": lambda choose: {
        "steps": 4,
        "eval_steps": choose(((0,), (1,), (2,), (0, 2))),
        "eval_m": choose((1, 2, 3, 8)),
    },
    "evaluation inside a step": lambda choose: {
        "steps": 4,
        "eval_steps": choose(((0,), (1,), (2,))),
        "eval_at": choose(("before", "behind")),
        "eval_m": choose((1, 2, 3, 8)),
    },
    "evaluation in every step": lambda choose: {
        "steps": 3,
        "eval_steps": (0, 1, 2),
        "eval_at": choose(("before", "behind")),
        "eval_m": choose((1, 2, 3, 8)),
    },
    "batch ramp": _ramp,
    "fills": lambda choose: {
        "zero_grad": choose(("fill", "foreach", "cast")),
        "zero_grad_ns": choose((300_000, 2_000_000, 8_000_000)),
    },
    "marks of micro-batches": lambda _choose: {"marks": "micro-batch"},
    "no marks": lambda _choose: {"marks": "none"},
    "rings of a context": lambda choose: {
        "c": choose((2, 2, 3)),
        "pg_desc": choose(("megatron", "mesh", "undefined")),
        "groups_told": choose(("named", "named", "sized")),
        "dp_buckets": choose((0, 2)),
    },
}
"""What may be unclear, and the fields that make it so."""


def unclear(choose: Choose, told: str, *kinds: str) -> Job:
    """A job with all ranks recorded, told in that way, with some kinds of unclarity or one or two of any."""
    while True:
        names = kinds or some_of(choose, UNCLEAR)
        fields = {"missing": (), "steps": choose((2, 3))}
        for name in sorted(names):
            fields |= UNCLEAR[name](choose)
        if choose((True, True, False)):
            fields |= {"skew_ns": (), "drift_ppm": ()}
        if choose((True, False)):
            fields |= {"recorder": "nsys", "payloads": choose(("json", "none"))}
        try:
            return ordinary(choose, **fields, **TOLD[told])
        except UsageError:
            continue


class Outcome(StrEnum):
    """What a report made of a job."""

    RIGHT = "right"
    NEEDLESS = "right, doubted"
    OPEN = "open"
    DOUBTED = "wrong, doubted"
    CALM = "wrong, calm"
    REFUSED = "refused"


WRONG = frozenset({Outcome.CALM, Outcome.DOUBTED})


class Classed(NamedTuple):
    """A job, by what its actions are told, the outcome, and what is wrong or open or doubted."""

    job: Job
    told: str
    outcome: Outcome
    why: tuple[str, ...] = ()


def classed(job: Job) -> Classed:
    """What the report of a job's traces is: wrong if anything in it is, else open if a number is missing."""
    told = "kernels" if kernels_only(job) else "labels" if job.labels != "none" else "numbers"
    try:
        report = analyzed(job).report
    except InputError as error:
        return Classed(job, told, Outcome.REFUSED, (error.message,))
    calm = report.quality.verdict == "ok"
    found = [*_sizes(job, report), *_schedule(job, report), *_bubble(job, report)]
    wrong = tuple(text for is_wrong, text in found if is_wrong)
    missing = tuple(text for is_wrong, text in found if not is_wrong)
    if wrong:
        return Classed(job, told, Outcome.CALM if calm else Outcome.DOUBTED, wrong + missing)
    if missing:
        return Classed(job, told, Outcome.OPEN, missing)
    reasons = () if calm else tuple(finding.code for finding in report.quality.findings)
    return Classed(job, told, Outcome.RIGHT if calm else Outcome.NEEDLESS, reasons)


Found = tuple[bool, str]
"""Whether something is wrong, or missing only, and what."""


def _sizes(job: Job, report: Report) -> Iterable[Found]:
    layout, schedule = report.layout, report.schedule
    known = {"p": (layout.pp, job.p), "m": (schedule.microbatches, *_commonest(job))}
    if schedule.name not in {"unknown", "none"}:  # else a rank is said to hold one chunk
        known["v"] = layout.virtual, job.v
    if job.c == 1 or _described(job):
        known |= {"tp": (layout.tp, job.t), "dp": (layout.dp, job.d), "cp": (layout.cp, job.c)}
    elif None not in {layout.tp, layout.dp}:  # a context may be taken for either
        known["ranks of a stage"] = layout.tp * layout.dp * (layout.cp or 1), job.t * job.d * job.c
    for name, (found, *sizes) in known.items():
        if found not in {None, *sizes}:
            yield True, f"{name}: {found} instead of {sizes[0]}"


def _described(job: Job) -> bool:
    """Whether the files say what groups are for."""
    return set(job.recorders) == {"kineto"} and job.groups_told == "named" and job.pg_desc != "undefined"


def _commonest(job: Job) -> list[int]:
    """The sizes that are the commonest, whether the first step counts or not."""
    sizes = [[step.m for step in steps] for steps in (truth(job).usable, truth(job).steps)]
    return [size for each in sizes for size in each if each.count(size) == max(map(each.count, each))]


def _schedule(job: Job, report: Report) -> Iterable[Found]:
    schedule = report.schedule
    if schedule.name in {"unknown", "none"}:
        yield schedule.name == "none" and not report.undecided, f"schedule: {schedule.name}"
    elif job.schedule not in {schedule.name, *schedule.also} and not same_order(job, schedule.name):
        yield True, f"schedule: {schedule.name} instead of {job.schedule}"


def _bubble(job: Job, report: Report) -> Iterable[Found]:
    bubble = report.bubble
    known = truth(job).bubble_by_size.get(report.schedule.microbatches or job.m, truth(job).bubble)
    if bubble.measured is not None:
        off = bubble.measured - known
        if abs(off) > tolerance(job):
            yield True, f"bubble: {100 * off:+.2f} points"
    elif bubble.lower is not None and bubble.upper is not None and not bubble.lower <= known <= bubble.upper:
        yield True, f"bubble: {100 * known:.1f} is not in {100 * bubble.lower:.1f} to {100 * bubble.upper:.1f}"
    else:
        yield False, "bubble: not measured"


def drawn(seeds: Iterable[int]) -> list[tuple[int, Job]]:
    """The jobs of some seeds, told in turns by labels, by numbers of autograd's and by kernels alone."""
    told = tuple(TOLD)
    return [(seed, unclear(Random(f"unclear.{seed}").choice, told[seed % 3])) for seed in seeds]  # noqa: S311


def table(results: Iterable[Classed]) -> str:
    """How many of each outcome there are, by what tells the actions."""
    counts = Counter((each.told, each.outcome) for each in results)
    lines = [f"{'':8}" + "".join(f"{outcome:>16}" for outcome in Outcome) + f"{'all':>8}"]
    for told in TOLD:
        row = [counts[told, outcome] for outcome in Outcome]
        lines.append(f"{told:8}" + "".join(f"{count:16}" for count in row) + f"{sum(row):8}")
    return "\n".join(lines)


def lines(first: int, last: int) -> Iterator[str]:
    """What is wrong of the jobs of some seeds, or doubted in spite of labels, as it is found, and then the table."""
    results = []
    for seed, job in drawn(range(first, last)):
        results.append(one := classed(job))
        if one.outcome in WRONG or (one.told, one.outcome) == ("labels", Outcome.NEEDLESS):
            yield f"{seed} {one.told}: {one.outcome}: {'; '.join(one.why)}\n    {brief(job)}\n"
    yield table(results) + "\n"


if __name__ == "__main__":
    for line in lines(*((0, int(sys.argv[1])) if len(sys.argv) == 2 else map(int, sys.argv[1:3]))):
        sys.stdout.write(line)
        sys.stdout.flush()
