"""What an action of a stage may be expected to take."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.analysis.profiles import Profiles
from bubblescope.model.actions import Action, Kind


def durations(seed):
    """Three stages, eight micro-batches, 1 % jitter; stage 0 works out no gradient of its input."""
    dice = np.random.default_rng(seed)
    return {
        Action(stage, kind, m): 0.0 if (stage, kind) == (0, Kind.I) else dice.normal(100, 1) * (1 + stage)
        for stage in range(3)
        for kind in (Kind.F, Kind.I, Kind.W)
        for m in range(8)
    }


def test_a_single_replica_is_what_is_common():
    """With nothing to compare it to, a replica departs in nothing."""
    found = Profiles.fitted([(0, durations(1)), (0, durations(2))])
    assert found.own[0] == found.common


def test_what_always_takes_no_time_is_expected_to_take_none():
    """Shrinking what chance may have done leaves no nanosecond to an action that never takes one."""
    for pipelines in ([0], [0, 1], [0, 1, 2]):
        found = Profiles.fitted([(pipeline, durations(pipeline)) for pipeline in pipelines])
        assert found.common[0, 0, Kind.I] == 0
        assert all(own[0, 0, Kind.I] == 0 for own in found.own.values())


def test_ranks_that_hold_one_stage_are_told_apart():
    """Where a pipeline runs both ways, two positions hold each stage, and one of them may be slow."""
    lengths = {Action(0, Kind.F, m): 100.0 * (2 if m < 4 else 1) for m in range(8)}
    found = Profiles.fitted([(0, lengths)], {action: int(action.microbatch >= 4) for action in lengths})
    assert found.expected(0, lengths) == pytest.approx(lengths)
