"""What was detected and how surely, and what to know before believing the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.model.report import Bubble, Link, Proposal, Report
from bubblescope.report import coverage, doubts, speed, uneven
from bubblescope.report import wording as words

__all__ = ["Fact", "facts", "findings", "warnings"]

Fact = tuple[str, str]

RECONSTRUCTION = {
    "labels": "labels in the traces",
    "autograd": "autograd's links from forward to backward",
    "frames": "the framework's stack frames",
    "p2p": "the order of sends and receives",
    "kernels": "kernels alone",
    "table": "a table of actions",
}
CLOCKS = {
    "none": "not aligned; each rank's own clock is used",
    "recorded": "as recorded",
    "collectives": "aligned by collectives",
    "p2p": "aligned by sends and receives",
}
SOURCES = {
    "stated": "as stated",
    "no pipeline messages": "no sends or receives between ranks",
    "rank order, assumed": "assumed: ranks in their order",
}
_NOTED = {
    "odd-steps": "",  # as its message says
    "narrow-marks": "the profiler marked parts of steps; actions and optimizer tell where steps begin, and number them",
}
_MOST_FINDINGS = 3
_MOST_LINKS = 2
_ORDER = "First what is wrong in this run (1% of a step or more), then its design; the largest gain first."
_READING = "Gains are upper bounds of one change each and do not add. More: bubblescope explain findings.NAME"
_UNEXPLAINED = 0.05  # the residual beyond which docs/definitions.md calls the causes untrusted


def facts(report: Report) -> tuple[Fact, ...]:
    """Label and text of each fact that the report holds."""
    found = [
        ("Schedule", _schedule(report)),
        ("Layout", _layout(report)),
        ("Steps", _steps(report)),
        *(("Note", note) for note in _notes(report)),
        ("Speed", speed.speed(report)),
        speed.occupied(report),
        ("Theory", _theory(report)),
        ("Balance", _balance(report)),
        ("Slow", uneven.slow_ranks(report)),
        ("Data", uneven.microbatches(report)),
        ("Pauses", uneven.pauses(report)),
        ("Replicas", _replicas(report)),
        ("Links", _slow_links(report)),
        ("Clocks", _clocks(report)),
        ("Mended", _mended(report)),
        ("Covered", coverage.covered(report.quality)),
        ("Trust", coverage.trust(report.quality)),
    ]
    return tuple((name, text) for name, text in found if text)


def _schedule(report: Report) -> str:
    schedule = report.schedule
    if schedule.name == "none":
        return "none identified, which does not show that there is none" if report.undecided else "none found"
    next_best = schedule.runner_up
    if schedule.name == "unknown":
        parts = ["unknown"]
        if next_best is not None:
            parts.append(
                f"the nearest known one is {next_best.name}, likeness {words.percent(next_best.confidence, 0)}"
            )
    else:
        parts = [f"{schedule.name}{_also(schedule.also)}, confidence {words.percent(schedule.confidence, 0)}"]
        parts[0] += f" (next: {next_best.name}, {words.percent(next_best.confidence, 0)})" if next_best else ""
    if schedule.reconstruction is not None:
        parts.append(f"read from {RECONSTRUCTION.get(schedule.reconstruction, schedule.reconstruction)}")
    if schedule.departures:
        parts.append(_departures(report))
    return "; ".join(parts)


def _also(names: tuple[str, ...]) -> str:
    return f" (same order here: {', '.join(names)})" if names else ""


def _departures(report: Report) -> str:
    departures = report.schedule.departures
    first = departures[0]
    return (
        f"{words.counted(len(departures), 'departure')} from its order, first on rank {first.rank} at position "
        f"{first.position}: {words.action(first.found)} instead of {words.action(first.expected)}"
    )


def _layout(report: Report) -> str:
    layout = report.layout
    degrees = [
        f"{'?' if degree is None else degree} {name}"
        for name, degree in (("pipeline", layout.pp), ("tensor", layout.tp), ("data", layout.dp))
    ]
    rare = (("context", layout.cp), ("expert", layout.ep))
    degrees += [f"{degree} {name}" for name, degree in rare if degree not in {None, 1}]
    ranks = "an unknown number of ranks" if layout.world_size is None else words.counted(layout.world_size, "rank")
    text = f"{ranks} = {' x '.join(degrees)} parallel"
    if words.both_ways(report):
        text += ", 2 stages a rank, one for each way through the pipeline"
    elif layout.virtual > 1:
        text += f", {layout.virtual} virtual stages a rank"
    if report.schedule.microbatches is not None:
        text += f", {words.counted(report.schedule.microbatches, 'micro-batch')}"
    source = "the timelines" if report.schedule.reconstruction == "table" else layout.source
    text += f" ({'nothing tells more' if report.undecided else SOURCES.get(layout.source, 'from ' + source)})"
    if layout.missing_ranks:
        text += f"; no trace of {words.ranks_named(layout.missing_ranks)}"
    return text


def _steps(report: Report) -> str:
    used = [step.step for step in report.steps if step.used]
    listed = len(report.steps)
    which = f"{len(used)} of {listed} used: {words.rank_list(used)}" if used else f"none of {listed} used"
    text = ", ".join(filter(None, (which, _lengths(report) if used else "")))
    odd = [*_odd(report), *_other_sizes(report)]
    text += f" ({'; '.join(odd)})" if odd else ""
    if report.bubble.spread is not None:
        text += f"; spread {words.points(report.bubble.spread)}"
    return text


def _odd(report: Report) -> Iterator[str]:
    """What is to be said of steps that means do not take, though they were asked for."""
    asked = [step for step in report.steps if step.left_out != "not-asked"]
    told = (
        ("is the first, often a warm-up", "", [step for step in asked if step.left_out == "first"]),
        ("is incomplete", "are incomplete", [step for step in asked if not step.complete]),
        ("is an evaluation", "are evaluations", [step for step in asked if step.kind == "evaluation"]),
        ("also holds an evaluation", "also hold an evaluation", [step for step in asked if step.kind == "mixed"]),
    )
    for one, several, steps in told:
        numbers = [step.step for step in steps]
        if numbers:
            yield f"{words.rank_list(numbers)} {one if len(numbers) == 1 else several}"


def _other_sizes(report: Report) -> Iterator[str]:
    """The steps of other numbers of micro-batches than those measured."""
    of: dict[int, list[int]] = {}
    for step in report.steps:
        if step.left_out == "other-size" and step.microbatches is not None:
            of.setdefault(step.microbatches, []).append(step.step)
    if of:
        yield f"other size{'' if len(of) == 1 else 's'}: {words.sizes(of)}"


def _notes(report: Report) -> tuple[str, ...]:
    """What was found of the steps that speaks against nothing, in few words."""
    noted = {finding.code: finding.message for finding in report.quality.findings if finding.code in _NOTED}
    return tuple(f"{code}: {_NOTED[code] or message}" for code, message in noted.items())


def _lengths(report: Report) -> str:
    """How long a step lasts, and how much of that the pipeline takes."""
    rates, window = report.throughput, report.bubble.window_ns
    each = " each" if sum(step.used for step in report.steps) > 1 else ""
    known = [f"{words.duration(rates.step_ns)}{each}"] if rates is not None else []
    return ", ".join(known if window is None else [*known, f"pipeline {words.duration(window)}"])


def _theory(report: Report) -> str:
    bubble = report.bubble
    parts = []
    if bubble.formula is not None:
        how = "closed form" if bubble.formula_source == "closed-form" else "simulated"
        parts.append(f"formula {words.percent(bubble.formula)} ({how}, equal stages)")
    if bubble.replay is not None:
        parts.append(f"replay {words.percent(bubble.replay)} (measured times)")
    return "; ".join([*parts, "transfers free"]) if parts else ""


def _balance(report: Report) -> str:
    ratio = report.imbalance.replica_ratio
    parts = [uneven.heaviest(report)]
    if ratio is not None and words.ratio(ratio) != "1.00":
        parts.append(f"replicas differ by up to {words.ratio(ratio)} times")
    return "; ".join(filter(None, parts))


def _replicas(report: Report) -> str:
    known = [(line.bubble, line.pipeline) for line in report.pipelines if line.bubble is not None]
    if len(known) < 2:
        return ""
    (least, best), (most, worst) = min(known), max(known)
    return (
        f"{len(report.pipelines)} pipelines, bubble {words.percent(least)} (pipeline {best}) "
        f"to {words.percent(most)} (pipeline {worst})"
    )


def _slow_links(report: Report) -> str:
    """The links that are surely slower than their peers, the worst first."""
    slow = [_link(link) for link in report.links if link.slow]
    named = [*slow[:_MOST_LINKS], *([f"… and {len(slow) - _MOST_LINKS} more"] if len(slow) > _MOST_LINKS else [])]
    return f"slower than {'its' if len(slow) == 1 else 'their'} peers: {', '.join(named)}" if named else ""


def _link(link: Link) -> str:
    way = "" if link.direction is None else f" {link.direction}"
    return f"rank {link.source} to {link.target}{way}" + (f" ({words.ratio(link.ratio)} times)" if link.ratio else "")


def _clocks(report: Report) -> str:
    clock = report.clock
    if len(report.ranks) < 2:
        return ""
    text = CLOCKS.get(clock.method, clock.method)
    if clock.error_ns is None and clock.method != "none":
        text += ", and nothing tells how far they are off"
    elif clock.error_ns:  # ranks that share a clock are off by nothing
        text += f", to within {words.duration(clock.error_ns)}"
    if clock.violations:
        pairs = "1 pair" if clock.violations == 1 else f"{clock.violations} pairs"
        text += f"; {pairs} of messages, actions or collectives contradict{'s' * (clock.violations == 1)} that"
    return text + _interval(report.bubble)


def _interval(bubble: Bubble) -> str:
    """What the clocks leave open of a bubble that was measured; nothing where no digit changes."""
    lower, upper = words.percent(bubble.lower), words.percent(bubble.upper)
    return "" if bubble.measured is None or lower == upper else f"; so the bubble is between {lower} and {upper}"


def _mended(report: Report) -> str:
    """How many files were damaged and lost nothing by it; of others a warning says what they lost."""
    files = sum(finding.code == "repaired" and finding.severity == "info" for finding in report.quality.findings)
    return (
        f"the damaged text of {words.counted(files, 'file')}, with nothing left out: see bubblescope info"
        if files
        else ""
    )


def findings(report: Report) -> tuple[str, ...]:
    """The proposals in the order of the report, the first ones in full, and how to read them."""
    proposals = report.findings
    shown = _in_full(proposals)
    rest = [each for each in proposals if each not in shown]
    claimed = any(proposal.gain is not None for proposal in proposals)
    return (
        *([_ORDER] if claimed else []),
        *(_proposal(each, report) for each in shown),
        *([f"also: {', '.join(_also_found(each, report) for each in rest)}"] if rest else []),
        *([_READING] if claimed else []),
    )


def _in_full(proposals: tuple[Proposal, ...]) -> tuple[Proposal, ...]:
    """The first ones, and the one with the largest gain of all where small faults come before it."""
    first = proposals[:_MOST_FINDINGS]
    dearest = max(proposals, key=_gain_of, default=None)
    return first if dearest is None or dearest in first or not _gain_of(dearest) else (*first, dearest)


def _gain_of(proposal: Proposal) -> float:
    return proposal.gain or 0.0


def _proposal(proposal: Proposal, report: Report) -> str:
    """`code: title (saves at most 28.0 ms, 8.1% of a step). Detail. Try: ...` of a proposal."""
    tried = proposal.change is not None and report.bubble.trusted
    text = f"{proposal.code}: {proposal.title.rstrip('.')}{_gain(proposal)}. {proposal.detail.rstrip('.')}."
    return f"{text} Try: whatif --try {proposal.change}" if tried else text  # no full stop: it is there to be copied


def _gain(proposal: Proposal) -> str:
    if proposal.gain is None or proposal.gain_ns is None:
        return ""
    return f" (saves at most {words.duration(proposal.gain_ns)}, {words.percent(proposal.gain)} of a step)"


def _also_found(proposal: Proposal, report: Report) -> str:
    """`code (8.1%)`; where no gain is known, what was found."""
    if proposal.gain is not None:
        free = proposal.code == "tensor-parallel" and report.layout.tp == 1
        return f"{proposal.code} ({words.percent(proposal.gain)}{' if its collectives are free' if free else ''})"
    return f"{proposal.code} ({proposal.title}; gain unknown)" if report.bubble.trusted else proposal.code


def warnings(report: Report) -> tuple[str, ...]:
    """Whether the numbers can be believed, and what is wrong with the data."""
    return (*_untrusted(report), *doubts.warnings(report.quality))


def _untrusted(report: Report) -> list[str]:
    state = doubts.state(report.quality, trusted=report.bubble.trusted)
    if state == "unusable":
        return ["The data are unusable."]
    if state:
        return ["The data are degraded: do not rely on these numbers."]
    if report.bubble.causes and abs(report.bubble.causes[-1].share) > _UNEXPLAINED:
        return ["The causes leave more than 5% of the window unexplained: do not rely on them."]
    return []
