"""What jitter and lateness of the host are made of: long data, pauses of forwards, and the rest.

The ladder has rungs between its rungs there: with the straggler's profile, then with micro-batches as long as their
data, then with pauses, then with every action as long as it was; and with the transfers, then with pauses of the
host, then with all of its gaps.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from bubblescope.analysis.means import by_step
from bubblescope.analysis.pauses import host_pauses
from bubblescope.analysis.rerun import TROUBLES, Rerun, mean_idle
from bubblescope.analysis.study import Study
from bubblescope.analysis.variation import Variation

__all__ = ["Parts", "parts_of"]

Lengths = npt.NDArray[np.float64]

Parts = Mapping[str, Mapping[str, tuple[Lengths, Lengths]]]
"""Of a cause and its part: nanoseconds, and share of the window, one each a step."""

JITTER, HOST = ("data", "pauses", "rest"), ("pauses", "rest")


def parts_of(found: Study, reruns: Sequence[Rerun], variation: Variation) -> Parts:
    """The parts of the causes that have some; they add up to these. Raises Deadlock as the replays do."""
    late = host_pauses(found)
    steps = list(zip(reruns, found.whole, strict=True))
    jitter = [
        (
            rerun.times(TROUBLES[:2]),
            rerun.of_lengths(variation.data(step)),
            rerun.of_lengths(variation.paused(step)),
            rerun.times(TROUBLES[:3]),
        )
        for rerun, step in steps
    ]
    host = [
        (rerun.times(TROUBLES[:4]), rerun.of_lateness(late.get((step.pipeline, step.step), {})), rerun.times(TROUBLES))
        for rerun, step in steps
    ]
    return {"jitter": _parts(found, jitter, JITTER), "host": _parts(found, host, HOST)}


def _parts(
    found: Study, rungs: Sequence[tuple[Lengths, ...]], names: Sequence[str]
) -> dict[str, tuple[Lengths, Lengths]]:
    spent = [np.diff(mean_idle(np.array(rung))) for rung in rungs]
    lengths = by_step(found.whole, spent)
    shares = by_step(found.whole, [parts / step.window.length for parts, step in zip(spent, found.whole, strict=True)])
    return {name: (lengths[:, k], shares[:, k]) for k, name in enumerate(names)}
