"""Contradictions in the numbers themselves: each is a reason not to trust them, whatever caused it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bubblescope.align.exchanged import guessed
from bubblescope.align.pairs import UNKNOWN
from bubblescope.analysis.apart import impossible, overtaken
from bubblescope.analysis.ranks import RankView
from bubblescope.analysis.study import Study
from bubblescope.model.columns import Bools, Ints, Times
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import Finding

__all__ = ["density", "doubts"]

CLOCK_ERROR = 0.01
"""Share of the window beyond which clocks that are known no better make the numbers degraded."""
UNNAMED = 0.005
"""Share of the window beyond which communication inside actions that nobody explains does.

The bubble may be off by as much; half a point is what durations and orders leave open anyway (SLACK).
"""
ALONE = 0.5
"""Share of the messages beyond which those without a partner do: as they go by order, one lost leaves many alone."""
BETWEEN_RUNS = 30_000_000_000
"""ns between recordings that cannot be of one run, though the clocks of hosts may be off by seconds."""
BETWEEN_RUNS_OF_A_HOST = 1_000_000_000
"""ns between recordings of one host that cannot."""
EARLY = 0.02
"""Share of the messages from one rank to another beyond which those that arrive before they are sent are no slips."""
SLIPS = 2
"""As many of them, one after the other, may be slips of a profiler or of the pairing, and not of a clock."""
SLACK = 0.005
"""Share of the window by which a replay may exceed the run: durations are rounded, orders are means."""


def doubts(found: Study) -> tuple[Finding, ...]:
    """Everything about a study that cannot be, or that hides work; none of it should be there."""
    if not found.piped:
        return ()
    noticed = (
        _apart(found) or _other_runs(found),
        _early(found) or _blurred(found),
        _alone(found),
        _unnamed(found),
        _impossible(found),
    )
    return tuple(finding for finding in noticed if finding is not None)


def _apart(found: Study) -> Finding | None:
    """Steps of one number that some ranks had left before others began, or that share their time with the next."""
    of = len(found.steps)
    if apart := impossible(found.steps):
        message = (
            f"step {apart[0].step} of some ranks was over before it began on others ({len(apart)} of {of} such): "
            "their clocks disagree, their steps are numbered apart, or the files are of different runs"
        )
    elif shared := overtaken(found.steps):
        message = (
            f"step {shared[0].step} shares its time with another ({len(shared)} of {of} such), which leaves it "
            "no window of its own: forwards alone without a pause between, marks of parts of steps, or clocks off"
        )
    else:
        return None
    return Finding("clock-uncertain", "warning", message)


def _other_runs(found: Study) -> Finding | None:
    """Ranks that were recorded when the recordings of all others were over, as those of a job that began anew.

    What ties the clocks of hosts tells how far these are off. Elsewhere, as runs of one job communicate alike, moments
    count as they were recorded.
    """
    timelines = [t for t in found.job.timelines.values() if len(t.steps)]
    hosts = {t.identity.host for t in timelines}
    if not timelines or any(t.restarts or not t.absolute for t in timelines):
        return None
    known = None not in hosts
    moved = np.array([0 if known and len(hosts) > 1 else found.job.clock.offsets.get(t.rank, 0) for t in timelines])
    starts = np.array([t.steps.start.min() for t in timelines]) - moved
    ends = np.array([t.steps.end.max() for t in timelines]) - moved
    order = np.argsort(starts, kind="stable")
    gaps = starts[order][1:] - np.maximum.accumulate(ends[order])[:-1]
    if gaps.max(initial=0) < (BETWEEN_RUNS_OF_A_HOST if known and len(hosts) == 1 else BETWEEN_RUNS):
        return None
    at = int(gaps.argmax())
    message = (
        f"{len(order) - at - 1} of {len(order)} ranks were recorded {gaps[at] / 1e9:.3g} s after the recordings of the "
        "others had ended: these are recordings of different runs, as of a job that was started again, or clocks "
        "disagree; give those of one run"
    )
    return Finding("clock-uncertain", "warning", message)


def _early(found: Study) -> Finding | None:
    """Messages of used steps that arrive before they are sent, by more than a clock may be wrong.

    A clock that is stepped is wrong for a while, and for the messages of a rank or two: what counts is how many are
    between the first and the last of those from one rank to another. Of ranks that share a clock no clock is accused.
    """
    each = [_lateness(found, rank) for rank in found.views]
    late, shared, sender, begun = (np.concatenate(parts) for parts in zip(*each, strict=True))
    receiver = np.repeat(list(found.views), [len(mine) for mine, *_ in each])
    windows = [step.window.length for step in found.steps]
    if not len(late) or not windows:
        return None
    bad = late > CLOCK_ERROR * float(np.mean(windows))
    order = np.lexsort((begun, sender, receiver))
    pairs = np.flatnonzero(np.diff(sender[order]) | np.diff(receiver[order])) + 1
    if max(map(density, np.split(bad[order], pairs))) <= EARLY:
        return None
    what = f"{int(bad.sum())} of {len(late)} messages arrive before they are sent, by up to {late.max() / 1e6:.3g} ms"
    guesses = any(np.any(guessed(view.timeline)) for view in found.views.values())
    also = ", or sends were taken for receives, which no call tells apart" if guesses else ""
    if np.any(bad & ~shared):
        why = f": the clocks of the ranks disagree{also}, so that waiting and transfer cannot be told apart"
        return Finding("clock-uncertain", "warning", what + why)
    why = f" by the one clock of their host: they are paired wrongly{also}, or what was posted shows late"
    return Finding("unpaired-p2p", "warning", what + why)


def _blurred(found: Study) -> Finding | None:
    """Clocks known less well than the numbers need: the window itself, or waiting against transfer."""
    if any(step.doubt is None for step in found.steps):
        message = (
            "nothing that was recorded ties the clocks of the hosts together, and no rank has both ends of the "
            "pipeline's window on its own: the bubble is as right as the hosts' time service"
        )
        return Finding("clock-uncertain", "warning", message)
    windows = [step.window.length for step in found.whole]
    tied = [found.job.clock.apart(rank for at in pipeline for rank in at) for pipeline in found.job.plan.pipelines]
    error = max(*tied, *(step.doubt or 0 for step in found.whole)) if windows else 0
    if not windows or error <= CLOCK_ERROR * float(np.mean(windows)):
        return None
    message = f"the clocks of the hosts are only known to {error / 1e6:.3g} ms, against a window of "
    return Finding("clock-uncertain", "warning", f"{message}{float(np.mean(windows)) / 1e6:.4g} ms")


def density(bad: Bools) -> float:
    """Share of the messages from the first bad one to the last that are bad; of all, if they are too few for that."""
    rows = np.flatnonzero(bad)
    return len(rows) / (int(np.ptp(rows)) + 1 if len(rows) > SLIPS else len(bad))


def _lateness(found: Study, rank: int) -> tuple[Times, Bools, Ints, Times]:
    """By how much paired receives of a rank, of used steps, ended before they were sent; negative where all is well.

    And whether the sender shares the rank's clock, the sender, and when the receive was posted.
    """
    view, timelines = found.views[rank], found.job.timelines
    messages, other, clock = view.timeline.messages, view.pairing.other, view.timeline.identity.clock
    paired = (messages.direction == Messages.RECV) & (other != UNKNOWN) & _within(view, found.used)
    senders = view.pairing.partner[paired]
    shared = [clock is not None and timelines[sender].identity.clock == clock for sender in senders.tolist()]
    return other[paired] - messages.end[paired], np.array(shared, bool), senders, messages.start[paired]


def _alone(found: Study) -> Finding | None:
    """Most messages without a partner in complete steps, and no schedule fits: they are not what they are taken for.

    Either alone is ordinary: one kernel may hold a send and a receive and tell of one of them, and
    not every schedule is known.
    """
    job, known = found.job, found.schedule is not None and found.schedule.family is not None
    told = [t.reconstruction for t in job.timelines.values() if len(t.actions)]
    if len(job.timelines) < job.plan.world_size or job.untold_chunks or known or not told:
        return None
    partnered = np.concatenate([_partnered(view, found.used) for view in found.views.values()])
    if not len(partnered) or np.mean(~partnered) <= ALONE:
        return None
    message = (
        f"{np.mean(~partnered):.0%} of the messages cannot be paired and no schedule fits, with every rank recorded: "
        "ranks are laid out wrongly, actions wrongly told apart, or these are no messages between stages (a ring of "
        f"context-parallel ranks); state --pp and --tp{'' if set(told) == {'labels'} else ', or label the actions'}"
    )
    return Finding("contradiction", "warning", message)


def _partnered(view: RankView, used: Sequence[int]) -> Bools:
    """For each message of the used steps, whether its other half was found."""
    found: Bools = view.pairing.other[_within(view, used)] != UNKNOWN
    return found


def _within(view: RankView, used: Sequence[int]) -> Bools:
    """Which messages are of some steps."""
    rows = np.flatnonzero(np.isin(view.timeline.steps.number, used))
    return np.isin(view.timeline.messages.step, rows)


def _unnamed(found: Study) -> Finding | None:
    """Communication of actions that may be the stage's own: without its group's purpose it counts as bubble."""
    unnamed = {rank: _unnamed_time(view) for rank, view in found.views.items()}
    exposed = sum(
        unnamed[rank].common(Spans.of(mine.actions.start.min(keepdims=True), mine.actions.end.max(keepdims=True))).total
        for step in found.steps
        for rank, mine in step.steps.items()
    )
    total = sum(step.window.length * len(step.steps) for step in found.steps)
    if not total or exposed / total <= UNNAMED:
        return None
    message = (
        f"{exposed / total:.1%} of the pipeline's time is communication of forwards and backwards, of groups whose "
        "purpose the traces do not tell: if it is tensor, context or expert parallelism, the bubble is that much "
        "smaller. Give the groups a description (group_desc of torch.distributed.new_group)"
    )
    return Finding("unnamed-communication", "warning", message)


def _unnamed_time(view: RankView) -> Spans:
    """When no work ran beside collectives that may be the stage's own, or fused messages inside actions."""
    timeline = view.timeline
    nameless = timeline.unclear_collectives()
    fused = timeline.messages.take(timeline.messages.direction == Messages.EITHER)
    inside = Spans.of(fused.start, fused.end).common(Spans.of(timeline.actions.start, timeline.actions.end))
    return Spans.join((Spans.of(nameless.start, nameless.end), inside)).minus(view.lanes.busy)


def _impossible(found: Study) -> Finding | None:
    """A bubble that is no share, or a run faster than its own replay with free communication."""
    whole = [step.bubble for step in found.whole]
    if not whole:
        return None
    measured, replayed = float(np.mean(whole)), found.theory.replay
    if min(whole) < 0 or max(whole) > 1:
        message = f"a bubble of {min(whole):.1%} cannot be: ranks work outside their pipeline's window"
    elif replayed is not None and replayed > measured + SLACK:
        message = (
            f"the run ({measured:.1%} bubble) was faster than its own replay with free communication ({replayed:.1%})"
        )
    else:
        return None
    return Finding("contradiction", "warning", f"{message}; actions, steps or ranks are wrongly told apart")
