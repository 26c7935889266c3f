"""The words that all outputs of a gate share: the verdict, what a rule allows, and what was found."""

from __future__ import annotations

from collections.abc import Sequence

from bubblescope.model.baseline import Fingerprint
from bubblescope.model.gate import Check, Gate, Outcome, Worst
from bubblescope.model.metrics import METRICS, Part, Unit
from bubblescope.report import wording as words
from bubblescope.report.metric_words import title, value

__all__ = [
    "EFFECTS",
    "change",
    "compared",
    "counts",
    "expected",
    "explained",
    "found",
    "limit",
    "measured",
    "name",
    "noise",
    "outcome",
    "part",
    "shape",
    "values",
    "verdict",
    "worst",
]

EFFECTS = {
    "refused": "no comparison",
    "wall-clock": "times only warn",
    "note": "none",
}
"""What a difference of the fingerprints means."""

_MOST_DIGITS = 4
_NONE = "PASS: nothing was compared, as is allowed"


def part(by: Part | None, of: str | None) -> str:
    """`stage 3`; nothing for the whole job."""
    return "" if by is None else f"{by} {of}"


def name(check: Check) -> str:
    """The rule, and the part it was applied to where the rule does not name it."""
    told = check.by is None or f"{check.by}={check.of}" in check.rule
    return check.rule if told else f"{check.rule} ({part(check.by, check.of)})"


def values(check: Check) -> tuple[str, str]:
    """The values of the baseline and of the run, with as many digits as it takes to see what they are not."""
    digits = _telling(check)
    if check.baseline is None:
        return words.ABSENT, value(check.found, check.unit, digits)
    pairs = (_pair(check, more) for more in range(digits, _MOST_DIGITS - 1))
    return next((pair for pair in pairs if pair[0] != pair[1]), _pair(check, digits))


def _pair(check: Check, digits: int) -> tuple[str, str]:
    return value(check.baseline, check.unit, digits), value(check.found, check.unit, digits)


def change(check: Check) -> str:
    """`+11.6 points`, with a sign and as many digits as it takes to tell it from the limit."""
    return words.ABSENT if check.change is None else _signed(check, check.change, _telling(check))


def noise(check: Check) -> str:
    """What a change must exceed to be more than noise."""
    if check.noise is None:
        return words.ABSENT
    share = check.unit == "share" and not check.relative
    return f"over {_amount(check, 1.0)}" if share and check.noise > 1 else _amount(check, check.noise)


def limit(check: Check) -> str:
    """`+2.0 points`, `max 18.0%`, `min 9.00/s`: the limit in few words."""
    bound = "" if check.against == "baseline" else "max " if check.side == "above" else "min "
    return f"{bound}{_limit(check)}"


def _limit(check: Check) -> str:
    """A limit as it was asked for: with as many digits as it has, and as many as tell it from what was found."""
    digits = max(_digits(check), _telling(check))
    if check.against == "limit":
        return value(check.limit, check.unit, digits)
    return _signed(check, check.limit, digits)


def outcome(check: Check) -> str:
    """`failed`, or `warned` where that is all that it does."""
    if check.outcome == "fail":
        return "failed" if check.level == "error" else "warned"
    return "passed" if check.outcome == "pass" else check.outcome


def expected(check: Check) -> str:
    """`rises by at most 2.0 points`, `at most 18.0%`: what the rule asks for, as half a sentence."""
    below = check.side == "below"
    if check.against == "limit":
        return f"at {'least' if below else 'most'} {_limit(check)}"
    if not check.limit:
        return "does not fall" if below else "does not rise"
    falls = check.limit < 0
    return f"{'falls' if falls else 'rises'} by at {'most' if falls == below else 'least'} {_limit(check)[1:]}"


def found(check: Check) -> str:
    """`29.2% to 40.8%, up 11.6 points; noise 0.4 points`, or that it was not measured."""
    text = measured(check)
    return text if check.noise is None else f"{text}; noise {noise(check)}"


def measured(check: Check) -> str:
    """What was found without its noise."""
    if check.found is None:
        return "not measured"
    then, now = values(check)
    text = now if check.baseline is None else f"{then} to {now}"
    return text if check.change is None else f"{text}, {_moved(check, check.change)}"


def _moved(check: Check, by: float) -> str:
    amount = _amount(check, abs(by), _telling(check))
    return "unchanged" if not by else f"{'up' if by > 0 else 'down'} {amount}"


def _amount(check: Check, by: float, digits: int = 1) -> str:
    """A change without its sign: points of a share, a fraction of the baseline in percent, or in the unit."""
    if check.relative:
        return words.percent(by, digits) + (" of it" if check.unit == "share" else "")
    if check.unit == "share":
        number = words.plain(100 * by, digits)
        return f"{number} point{'' if number == '1.0' else 's'}"
    return value(by, check.unit, digits)


def _signed(check: Check, by: float, digits: int) -> str:
    text, nothing = _amount(check, abs(by), digits), _amount(check, 0.0, digits)
    return text if text == nothing else f"{'-' if by < 0 else '+'}{text}"


def _digits(check: Check) -> int:
    scale = _scale(check)
    wanted = check.limit * scale
    return next((n for n in range(1, _MOST_DIGITS) if abs(round(wanted, n) - wanted) < 1e-9), _MOST_DIGITS)


def _telling(check: Check) -> int:
    """How many digits tell what was measured from the limit, if they differ at all."""
    seen = check.found if check.against == "limit" else check.change
    if seen is None or check.outcome == "skipped":
        return 1
    scale = _scale(check)
    one, other = seen * scale, check.limit * scale
    return next((n for n in range(1, _MOST_DIGITS) if round(one, n) != round(other, n)), 1)


def _scale(check: Check) -> float:
    """By how much a limit is multiplied to be written; a ratio is written with one digit more."""
    return 100.0 if check.relative or check.unit == "share" else 10.0 if check.unit == "ratio" else 1.0


def verdict(gate: Gate) -> str:
    """The verdict in one sentence."""
    if gate.verdict == "fail":
        failed = gate.at("error", "fail")
        return f"FAIL: {len(failed)} of {_total(gate)} failed{_warned(gate)}"
    if gate.verdict == "inconclusive":
        return f"INCONCLUSIVE: {_undecided(gate)}"
    held = _count(gate, "pass")
    if not held:
        warned = len(gate.at("warn", "fail"))
        return f"PASS: {words.counted(warned, 'rule')} only {_warn(warned)}" if warned else _NONE
    every = "the rule holds" if len(gate.checks) == held == 1 else f"all {held} {_noun(gate)}s hold"
    return f"PASS: {every if held == len(gate.checks) else _some(held, gate)}{_warned(gate)}"


def _noun(gate: Gate) -> str:
    """A rule of every part is as many checks as there are parts."""
    return "rule" if len({check.rule for check in gate.checks}) == len(gate.checks) else "check"


def _total(gate: Gate) -> str:
    return words.counted(len(gate.checks), _noun(gate))


def _some(held: int, gate: Gate) -> str:
    return f"{held} of {_total(gate)} {'holds' if held == 1 else 'hold'}"


def _count(gate: Gate, outcome: Outcome) -> int:
    return sum(check.outcome == outcome for check in gate.checks)


def _warned(gate: Gate) -> str:
    count = len(gate.at("warn", "fail"))
    return f", {count} {_warn(count)}" if count else ""


def _warn(count: int) -> str:
    return "warns" if count == 1 else "warn"


def _undecided(gate: Gate) -> str:
    open_ = _count(gate, "inconclusive")
    count = f"{open_} of {_total(gate)} could not be decided"
    if not gate.checks:
        return "there is no rule"
    if gate.baseline_missing:
        return f"the baseline is missing, and {count}"
    if refused := [each.what for each in gate.differences if each.effect == "refused"]:
        return f"{count}, as the runs differ in {words.enumerate_words(refused)}"
    return count if open_ else "no rule was applied"


def counts(gate: Gate) -> str:
    """`1 failed, 1 warned, 1 passed`: every rule counts once, what matters most first."""
    warned = len(gate.at("warn", "fail"))
    found = (
        (_count(gate, "fail") - warned, "failed"),
        (warned, "warned"),
        (_count(gate, "inconclusive"), "inconclusive"),
        (_count(gate, "pass"), "passed"),
        (sum(check.outcome == "skipped" and check.level != "off" for check in gate.checks), "skipped"),
        (sum(check.outcome == "skipped" and check.level == "off" for check in gate.checks), "off"),
    )
    return ", ".join(f"{count} {word}" for count, word in found if count) or "none"


def shape(run: Fingerprint) -> str:
    """`1f1b, p 4, m 8, v 1`: the schedule, pipeline ranks, micro-batches and stages a rank."""
    pp, count = ("?" if size is None else size for size in (run.pp, run.microbatches))
    return f"{run.schedule}, p {pp}, m {count}, v {run.virtual}"


def compared(gate: Gate) -> str:
    """What was compared with what, or why nothing was."""
    run, then = gate.run.fingerprint, gate.reference
    this = f"{words.counted(run.steps, 'step')} of {_ranks(run)} ({shape(run)})"
    if gate.baseline is None:
        limits = any(check.against == "limit" for check in gate.checks)
        return f"{this} with {'limits alone' if limits else 'nothing: no baseline is named'}"
    if gate.baseline_missing or then is None:
        return f"{this} with nothing: {gate.baseline} is not there"
    if any(each.effect == "refused" for each in gate.differences) and not any(each.change for each in gate.checks):
        apart = words.enumerate_words([each.what for each in gate.differences if each.effect == "refused"])
        return f"nothing: this run is {shape(run)}, {gate.baseline} is {shape(then)}; they differ in {apart}"
    ranks = "" if then.world_size == run.world_size else f" of {then.ranks}"
    return f"{this} with {gate.baseline} ({words.counted(then.steps, 'step')}{ranks})"


def _ranks(run: Fingerprint) -> str:
    """`4 ranks`, `3 of 4 ranks` where not all were recorded."""
    return run.ranks if run.missing == 0 else f"{run.recorded} of {run.ranks}"


def worst(found: Sequence[Worst]) -> str:
    """`stage 3 (rank 3): bubble 49.1%, 29.1% in the baseline; host: 8.0 points, 1.9 in the baseline`; may be empty."""
    return "; ".join(map(_worst, found))


def _worst(found: Worst) -> str:
    if found.by == "cause":
        then = "" if found.baseline is None else f", {words.bare_points(found.baseline)} in the baseline"
        return f"{words.cause_words(found.of)}: {words.points(found.value)}{then}"
    kind = METRICS.get(found.metric)
    unit: Unit = "ratio" if kind is None else kind.unit
    ranks = f" ({words.ranks_named(found.ranks)})" if found.ranks and found.by != "rank" else ""
    what = title(found.metric) if kind is None or not kind.of_part else kind.of_part
    text = f"{part(found.by, found.of)}{ranks}: {what} {value(found.value, unit)}"
    return text if found.baseline is None else f"{text}, {value(found.baseline, unit)} in the baseline"


def explained(gate: Gate, check: Check) -> tuple[tuple[str, str], ...]:
    """All that there is to say about a rule that did not pass, each with its name."""
    lines = (
        ("rule", name(check)),
        ("asked for by", check.origin),
        ("expected", f"{title(check.metric)} {expected(check)}"),
        ("found", found(check)),
        ("chance of so much by noise", "" if check.chance is None else words.chance(check.chance)),
        ("why", check.reason),
        ("level", "softened from error to warn: times of different machines" if check.softened else ""),
        ("worst", worst(gate.worst)),
        ("look closer", gate.look),
        *(("accept", text) for text in gate.accept),
    )
    return tuple((label, text) for label, text in lines if text)
