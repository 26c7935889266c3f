"""A run against the rules of a gate: every rule is evaluated, and a gate that compared nothing says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bubblescope._version import __version__
from bubblescope.gate.condense import kept
from bubblescope.gate.decide import Decision, against_baseline, against_limit
from bubblescope.gate.fingerprints import differences
from bubblescope.gate.policy import Asked, Policy
from bubblescope.gate.rules import ANY, Rule
from bubblescope.gate.take import Run
from bubblescope.gate.worst import worst
from bubblescope.model import writing as words
from bubblescope.model.baseline import Baseline
from bubblescope.model.gate import Check, Difference, Gate, Verdict
from bubblescope.model.metrics import Metric
from bubblescope.model.quality import SYSTEMATIC
from bubblescope.model.report import Tool

__all__ = ["UNNAMED", "Reference", "judge"]


UNNAMED = "the baseline"
"""What a baseline is called that is no file."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What a run is compared with: the name of a baseline, and what is in it, None where it is not there."""

    name: str
    numbers: Baseline | None


@dataclass(frozen=True, slots=True)
class _Case:
    """A run, what it is compared with, and how."""

    run: Run
    reference: Reference | None
    policy: Policy
    differences: tuple[Difference, ...]

    @property
    def baseline(self) -> Baseline | None:
        """The numbers of the baseline, if there is one."""
        return None if self.reference is None else self.reference.numbers

    @property
    def incomparable(self) -> str:
        """Why nothing can be said against a baseline; empty where it can."""
        if self.reference is None:
            return "no baseline is named to compare with"
        if self.baseline is None:
            return f"the baseline {self.reference.name} does not exist"
        refused = [each for each in self.differences if each.effect == "refused"]
        if not refused or self.policy.allow_mismatch:
            return ""
        told = words.enumerate_words([f"{each.what} {each.baseline} and {each.found}" for each in refused])
        return f"it is another run: {told}; --allow-mismatch compares them all the same"

    @property
    def other_machine(self) -> bool:
        """Whether times of the two say nothing of the change between them."""
        return any(each.effect == "wall-clock" for each in self.differences)


def judge(run: Run, reference: Reference | None, policy: Policy) -> Gate:
    """Evaluate every rule, and give the verdict."""
    baseline = None if reference is None else reference.numbers
    found = () if baseline is None else differences(run.numbers.fingerprint, baseline.fingerprint)
    case = _Case(run, reference, policy, found)
    checks = tuple(check for asked in policy.rules for check in _checks(case, asked))
    return Gate(
        tool=Tool(name="bubblescope", version=__version__),
        verdict=_verdict(checks),
        checks=checks,
        inputs=run.names,
        baseline=None if reference is None else reference.name,
        baseline_missing=reference is not None and baseline is None,
        differences=found,
        warnings=tuple(dict.fromkeys(_warnings(case, checks))),
        worst=worst(checks, run, None if case.incomparable else baseline),
        run=kept(run.numbers),
        reference=None if baseline is None else baseline.fingerprint,
    )


def _verdict(checks: Sequence[Check]) -> Verdict:
    errors = [check.outcome for check in checks if check.level == "error"]
    if "fail" in errors:
        return "fail"
    decided = any(check.outcome in {"pass", "fail"} for check in checks)
    excused = any(check.outcome == "skipped" and check.level != "off" for check in checks)
    return "inconclusive" if "inconclusive" in errors or not (decided or excused) else "pass"


def _checks(case: _Case, asked: Asked) -> Iterator[Check]:
    """A rule, applied; one for each part where it asks for any."""
    rule = asked.rule
    parts = _parts(case, rule) if rule.of == ANY else [rule.of]
    for of in parts:
        yield _check(case, replace(asked, rule=replace(rule, of=of)), len(parts))


def _parts(case: _Case, rule: Rule) -> list[str | None]:
    """The parts that any of them may be: of the run, of the baseline alone, and those that left no trace."""
    assert rule.by is not None
    found = [part.of for part in case.run.numbers.parts(rule.metric, rule.by)]
    past = case.baseline.parts(rule.metric, rule.by) if case.baseline is not None and rule.against == "baseline" else ()
    gone = [part.of for part in past if part.of not in found]
    unseen = rule.by == "stage" and "missing-ranks" in case.run.numbers.doubts.get("bubble", ())
    return [*found, *(gone or ([ANY] if unseen or not found else []))]


def _check(case: _Case, asked: Asked, tests: int) -> Check:
    rule = asked.rule
    compared = rule.against == "baseline"
    softened = compared and asked.level == "error" and rule.kind.wall_clock and case.other_machine
    found = case.run.numbers.metric(*rule.subject)
    baseline = case.baseline.metric(*rule.subject) if compared and case.baseline is not None else None
    check = Check(
        rule=rule.text,
        level="warn" if softened else asked.level,
        softened=softened,
        origin=asked.origin,
        outcome="inconclusive",
        metric=rule.metric,
        by=rule.by,
        of=rule.of,
        unit=rule.kind.unit,
        relative=rule.relative,
        against=rule.against,
        side=rule.side,
        limit=-rule.limit if compared and rule.side == "below" else rule.limit,
        found=None if found is None else found.value,
        baseline=None if baseline is None else baseline.value,
    )
    if asked.level == "off":
        return replace(check, outcome="skipped")
    decision = _decision(case, asked, found, baseline, tests)
    return replace(
        check,
        outcome=decision.outcome,
        change=decision.change,
        noise=decision.noise,
        chance=decision.chance,
        reason=decision.reason,
    )


def _decision(case: _Case, asked: Asked, found: Metric | None, baseline: Metric | None, tests: int) -> Decision:
    rule = asked.rule
    if found is None:
        return Decision("inconclusive", reason=_absent(case.run.numbers, asked, "run"))
    if rule.against == "baseline" and case.incomparable:
        excused = case.reference is not None and case.policy.on_missing_baseline != "fail"
        return Decision("skipped" if excused else "inconclusive", reason=case.incomparable)
    doubt = _doubt(case, case.run.numbers, asked, "run")
    if rule.against == "limit":
        return doubt or against_limit(rule, found)
    assert case.baseline is not None
    if baseline is None:
        return Decision("inconclusive", reason=_absent(case.baseline, asked, "baseline"))
    doubt = doubt or _doubt(case, case.baseline, asked, "baseline") or _otherwise_divided(case, asked)
    return doubt or against_baseline(rule, found, baseline, tests)


def _absent(numbers: Baseline, asked: Asked, name: str) -> str:
    """Why a run does not have a number."""
    rule, reasons = asked.rule, _reasons(numbers, asked)
    part = "" if rule.by is None else f" of any {rule.by}" if rule.of == ANY else f" of {rule.by} {rule.of}"
    what = f"{rule.kind.title}{part}"
    if "communication" in rule.kind.numbers:
        return f"the {name} has no communication{part}"
    if numbers.fingerprint.schedule == "none" and not reasons and "throughput" not in rule.kind.numbers:
        return f"the {name} has no pipeline, and so no {what}"
    if rule.kind.needs:
        return f"the {what} of the {name} is unknown: it takes {words.enumerate_words(rule.kind.needs)}"
    if numbers.fingerprint.missing:
        missing = words.counted(numbers.fingerprint.missing, "rank")
        return f"the {what} of the {name} is unknown: {missing} of it left no trace"
    return f"the {what} of the {name} is unknown{f': {words.enumerate_words(reasons)}' if reasons else ''}"


def _reasons(numbers: Baseline, asked: Asked) -> list[str]:
    """What speaks against a number of a run."""
    rests = asked.rule.kind.rests_on(asked.rule.by)
    return list(dict.fromkeys(reason for number in rests for reason in numbers.doubts.get(number, ())))


def _doubt(case: _Case, numbers: Baseline, asked: Asked, name: str) -> Decision | None:
    """The same as a decision, unless it is in every run of the job, or allowed."""
    reasons = [each for each in _reasons(numbers, asked) if each not in SYSTEMATIC]
    if not reasons or case.policy.allow_degraded:
        return None
    why = words.enumerate_words(reasons)
    reason = f"this number of the {name} is degraded ({why}); --allow-degraded takes it as it is"
    return Decision("inconclusive", reason=reason)


def _otherwise_divided(case: _Case, asked: Asked) -> Decision | None:
    """Causes are divided in two ways, which cannot be compared."""
    assert case.baseline is not None
    ways = (case.baseline.fingerprint.attribution, case.run.numbers.fingerprint.attribution)
    if asked.rule.by != "cause" or ways[0] == ways[1]:
        return None
    return Decision(
        "inconclusive", reason=f"causes are divided by {ways[0]} in the baseline and by {ways[1]} in the run"
    )


def _warnings(case: _Case, checks: Sequence[Check]) -> Iterator[str]:
    """What to know beside the outcomes."""
    skipped = any(check.outcome == "skipped" and check.level != "off" for check in checks)
    if skipped and case.policy.on_missing_baseline == "warn":
        yield f"nothing was compared: {case.incomparable}"
    if case.policy.allow_mismatch and any(each.effect == "refused" for each in case.differences):
        yield "the run and its baseline are of different shapes, and are compared all the same"
    if any(check.softened for check in checks):
        yield "times of different machines only warn"
    yield from _unused(case, checks)
    run = case.run.numbers.fingerprint
    if run.missing != 0:
        yield f"{run.recorded} of {run.ranks} were recorded: what the others did is unknown"
    if case.baseline is not None and run.schedule == case.baseline.fingerprint.schedule == "unknown":
        yield "the schedule of neither run is known: they may be different ones"
    yield from _told_otherwise(case)


def _unused(case: _Case, checks: Sequence[Check]) -> Iterator[str]:
    """A baseline that is named and takes no part: a slip in its name would never show."""
    compared = any(check.against == "baseline" and check.level != "off" for check in checks)
    if case.reference is not None and case.baseline is None:
        yield f"the baseline {case.reference.name} does not exist"
    elif case.reference is not None and not compared:
        yield f"no rule compares with {case.reference.name}; --preset default does"


def _told_otherwise(case: _Case) -> Iterator[str]:
    for name, numbers in (("run", case.run.numbers), ("baseline", case.baseline)):
        doubts = (
            () if numbers is None else tuple(dict.fromkeys(r for reasons in numbers.doubts.values() for r in reasons))
        )
        if doubts:
            yield f"numbers of the {name} are degraded: {words.enumerate_words(doubts)}"
