"""One pipeline in one step, replayed with any of its troubles and without the others.

The order of the actions is kept throughout. Without any trouble every action is as long as the mean of
its kind in the step and transfers take no time. What each trouble adds:

    imbalance   times the profile of the stage
    straggler   times what the profile of the stage in this replica has on top of that
    jitter      times what the action itself has on top of that
    p2p         its input moves as long as it did, from when both sides have posted
    host        the host's gaps, inside actions and before them
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from bubblescope.analysis.means import means
from bubblescope.analysis.pipeline import PipelineStep
from bubblescope.analysis.profiles import Profiles
from bubblescope.analysis.study import Study
from bubblescope.analysis.waits import waits
from bubblescope.model.actions import Action, Kind
from bubblescope.schedules.replay import NO_DELAYS, Course, Deadlock, Delays

__all__ = ["TROUBLES", "Rerun", "mean_idle"]

TROUBLES = ("imbalance", "straggler", "jitter", "p2p", "host")
_FACTORS = TROUBLES[:3]

Lengths = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Rerun:
    """A step that can be replayed; all arrays are nanoseconds, or factors, in the order of the course's actions.

    `mean` is the mean of an action's kind, `factors` what each trouble makes of it, `inside` the gaps within.
    """

    course: Course
    mean: Lengths
    factors: Mapping[str, Lengths]
    wire: Delays
    host: Mapping[Action, float]
    inside: Lengths

    @classmethod
    def of(cls, found: Study, step: PipelineStep, profiles: Profiles) -> Rerun:
        """Take a step apart. Raises Deadlock where its order cannot run."""
        course = Course(dict(sorted(step.replayed.items())), last_stage=found.job.last_stage, together=step.together)
        mean = means(step.durations.items(), lambda action: action.kind)
        common, mine = profiles.common, profiles.own[step.pipeline]

        def each(value: Callable[[Action], float]) -> Lengths:
            return np.array([value(action) for action in course.actions])

        base = each(lambda action: mean[action.kind])
        shared = each(lambda action: common[profiles.place(action)])
        own = each(lambda action: mine[profiles.place(action)])
        took = each(lambda action: step.durations[action])
        seen = waits(found.views, step)
        factors = {"imbalance": shared, "straggler": _ratio(own, shared), "jitter": _ratio(took, base * own)}
        inside = each(lambda action: seen.inside.get(action, 0.0))
        return cls(course, base, factors, _possible(course, took, seen.wire), seen.host, inside)

    def durations(self, troubles: Collection[str]) -> Lengths:
        """How much of its time each action works."""
        result = self.mean.copy()
        for name in _FACTORS:
            if name in troubles:
                result *= self.factors[name]
        return result

    def times(self, troubles: Collection[str]) -> Lengths:
        """Nanoseconds of each position in warm-up, steady state and cool-down: how long, how much useful; (2, p, 3)."""
        delays, late = self.wire if "p2p" in troubles else NO_DELAYS, "host" in troubles
        useful = self.durations(troubles)
        inside, delays = (self.inside, replace(delays, host=self.host)) if late else (np.zeros_like(useful), delays)
        return self._run(useful, inside, delays)

    def of_lengths(self, lengths: Mapping[Action, float]) -> Lengths:
        """The same of actions that take so long, with no other trouble."""
        useful = np.array([lengths[action] for action in self.course.actions])
        return self._run(useful, np.zeros_like(useful), NO_DELAYS)

    def of_lateness(self, late: Mapping[Action, float]) -> Lengths:
        """The same with all troubles but the host's, and before actions the host so late."""
        useful = self.durations(_FACTORS)
        return self._run(useful, np.zeros_like(useful), replace(self.wire, host=late))

    def _run(self, useful: Lengths, inside: Lengths, delays: Delays) -> Lengths:
        start, end = self.course.run((useful + inside).tolist(), delays)
        return _by_phase(self.course, np.array(start), np.array(end), useful)


def _ratio(of: Lengths, to: Lengths) -> Lengths:
    """What multiplies `to` to give `of`; 1 where there is nothing to multiply."""
    return np.divide(of, to, out=np.ones_like(of), where=to > 0)


def _possible(course: Course, durations: Lengths, wire: Delays) -> Delays:
    """The delays, without sends that block where the order could not run with them. Raises Deadlock if it never can.

    Where every gap has another reason too, sends are thought to block that could not.
    """
    try:
        course.run(durations.tolist(), wire)
    except Deadlock:
        if not wire.blocking:
            raise
        wire = replace(wire, blocking=False)
        course.run(durations.tolist(), wire)
    return wire


def _by_phase(course: Course, start: Lengths, end: Lengths, useful: Lengths) -> Lengths:
    """The phases of each position in a replay, as `analysis.stages.phase_times` cuts them."""
    kind = np.array([action.kind for action in course.actions])
    position = np.array(course.rank)
    length, count = end.max(initial=0.0), len(course.spans)
    warm, cool = np.full(count, length), np.zeros(count)
    backward, forward = (kind == Kind.B) | (kind == Kind.I), kind == Kind.F
    np.minimum.at(warm, position[backward], start[backward])
    np.maximum.at(cool, position[forward], end[forward])
    cool = np.maximum(cool, warm)
    phase = (start >= warm[position]).astype(int) + (start >= cool[position])
    work = np.bincount(3 * position + phase, useful, minlength=3 * count).reshape(count, 3)
    return np.stack([np.stack([warm, cool - warm, length - cool], axis=1), work])


def mean_idle(times: Lengths) -> Lengths:
    """Length less useful time over all phases, the mean of the positions: (..., 2, p, 3) to (...)."""
    result: Lengths = (times[..., 0, :, :] - times[..., 1, :, :]).sum(axis=-1).mean(axis=-1)
    return result
