"""The job: timelines on one clock, every action with its stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.resolve import resolve
from bubblescope.model.job import ClockFit
from bubblescope.model.options import Options
from bubblescope.model.spans import Spans
from bubblescope.model.timeline import LayerWork
from tests.building import actions_of, group, messages_of, steps_of, timeline, work_of

PP = group("1", "PIPELINE_MODEL_PARALLEL_GROUP", 0, 1)


def resolved(*timelines, **options):
    """The job of some ranks, each through its own self-check."""
    built = resolve({t.rank: t for t in timelines}, Options(**options))
    for t in built.timelines.values():
        t.self_check()
    return built


def test_a_stage_nobody_told_is_the_position():
    """Without labels a rank's stage is where it stands in its pipeline; the second replica's too."""
    ranks = [
        timeline(r, actions=[("?F0", 0, 10), ("?B0", 20, 30)], groups=[group(str(r % 2), "mesh_pp", r % 2, r % 2 + 2)])
        for r in range(4)
    ]
    built = resolved(*ranks)
    assert built.plan.pipelines == (((0,), (2,)), ((1,), (3,)))
    assert [actions_of(built.timelines[r])[0][0] for r in range(4)] == ["0F0", "0F0", "1F0", "1F0"]
    assert built.placement == {0: (0,), 1: (1,)}


def test_a_stage_that_a_label_tells_stays():
    """Labels beat the position: a rank may hold several stages, and in any order."""
    first = timeline(0, actions=[("0F0", 0, 10), ("3F0", 20, 30)])
    last = timeline(1, actions=[("1F0", 10, 15), ("2F0", 15, 20)])
    built = resolved(first, last)
    assert [name for name, *_ in actions_of(built.timelines[0])] == ["0F0", "3F0"]
    assert built.placement == {0: (0, 3), 1: (1, 2)}
    assert (built.virtual, built.last_stage) == (2, 3)


def test_without_a_pipeline_there_is_one_stage():
    """Ranks of no pipeline run stage 0, and no position holds anything."""
    built = resolved(timeline(0, actions=[("?F0", 0, 10)]), timeline(1, actions=[("?F0", 0, 10)]))
    assert [actions_of(t) for t in built.timelines.values()] == [[("0F0", 0, 10)]] * 2
    assert built.placement == {}
    assert (built.virtual, built.last_stage) == (1, 0)


@pytest.mark.parametrize("purpose", ["TENSOR_MODEL_PARALLEL_GROUP", "mesh_tp", "CONTEXT_PARALLEL_GROUP", "mesh_ep"])
def test_an_action_lasts_until_its_own_collectives_end(purpose):
    """A tensor-, context- or expert-parallel collective is part of the action that asked for it, not its work."""
    rank = timeline(
        0,
        actions=[("?F0", 10, 20), ("?B0", 40, 50)],
        collectives=[(purpose, 5, 9, "?F0"), (purpose, 18, 26, "?F0"), (purpose, 44, 48, "?B0")],
    )
    built = resolved(rank).timelines[0]
    assert actions_of(built) == [("0F0", 5, 26), ("0B0", 40, 50)]
    assert work_of(built) == [("0F0", 10, 20), ("0B0", 40, 50)]


@pytest.mark.parametrize(
    "purpose", ["DATA_PARALLEL_GROUP", "mesh_dp", "default_pg", "undefined", "PIPELINE_MODEL_PARALLEL_GROUP"]
)
def test_other_collectives_do_not_draw_an_action_out(purpose):
    """A data-parallel collective, or one that nobody explains, is not part of an action."""
    rank = timeline(0, actions=[("?B0", 10, 20)], collectives=[(purpose, 15, 90, "?B0")])
    assert actions_of(resolved(rank).timelines[0]) == [("0B0", 10, 20)]


def test_a_collective_that_nobody_asked_for_draws_nothing_out():
    """Only the action that asked lasts until the end; collectives outside all actions are left alone."""
    rank = timeline(0, actions=[("?F0", 10, 20)], collectives=[("mesh_tp", 15, 90)])
    assert actions_of(resolved(rank).timelines[0]) == [("0F0", 10, 20)]


def test_actions_stay_in_order():
    """A collective that ran before the action ahead of its own puts the two in another order."""
    rank = timeline(
        0, actions=[("?F0", 50, 60), ("?B0", 70, 80)], collectives=[("mesh_tp", 40, 75, "?B0"), ("mesh_dp", 1, 2)]
    )
    rank = replace(rank, layers=LayerWork([0, 1], [0, 0], [10, 5]))
    built = resolved(rank).timelines[0]
    assert actions_of(built) == [("0B0", 40, 80), ("0F0", 50, 60)]
    assert built.layers.action.tolist() == [1, 0]
    assert work_of(built) == [("0F0", 50, 60), ("0B0", 70, 80)]
    assert built.collectives.action.tolist() == [0, -1]


def test_offsets_shift_everything(monkeypatch):
    """What a clock is off by is added to every time of its rank, and to no other rank."""
    offsets = {0: 0, 1: 1000}
    monkeypatch.setattr("bubblescope.align.resolve.fit", lambda *_: ClockFit(method="test", offsets=offsets, error=5))
    same = {
        "actions": [("?F0", 10, 20)], "messages": [("send 1", 20, 25)], "collectives": [("mesh_tp", 15, 30, "?F0")],
        "steps": [(7, 0, 50)], "groups": [PP],
    }  # fmt: skip
    ranks = [replace(timeline(r, **same), optimizer=Spans.of([40], [45])) for r in offsets]
    built = resolved(*ranks)
    for rank, by in offsets.items():
        t = built.timelines[rank]
        assert [row[1:] for row in actions_of(t)] == [(10 + by, 30 + by)]
        assert [row[1:] for row in work_of(t)] == [(10 + by, 20 + by)]
        assert [row[1:] for row in messages_of(t)] == [(20 + by, 25 + by)]
        assert steps_of(t) == [(7, by, 50 + by)]
        assert (t.collectives.start.tolist(), t.collectives.end.tolist()) == ([15 + by], [30 + by])
        assert (t.optimizer.start.tolist(), t.optimizer.end.tolist()) == ([40 + by], [45 + by])
    assert built.clock.error == 5


def test_ranks_come_in_order():
    """Timelines are ordered by rank, however they were given."""
    built = resolve({3: timeline(3), 0: timeline(0), 2: timeline(2)}, Options())
    assert list(built.timelines) == [0, 2, 3]


def test_positions_nobody_recorded_follow_the_loop():
    """Missing positions hold as many stages as the seen ones, one round of the loop after the other."""
    groups = [group("1", "mesh_pp", 0, 1, 2, 3)]
    one = resolved(timeline(1, actions=[("?F0", 0, 10)], groups=groups))
    assert one.placement == {0: (0,), 1: (1,), 2: (2,), 3: (3,)}
    two = resolved(timeline(1, actions=[("1F0", 0, 10), ("5F0", 10, 20)], groups=groups))
    assert two.placement == {0: (0, 4), 1: (1, 5), 2: (2, 6), 3: (3, 7)}


def test_chunks_that_the_user_states():
    """--virtual says how many stages a position holds of which nothing was recorded."""
    groups = [group("1", "mesh_pp", 0, 1)]
    built = resolved(timeline(0, groups=groups), virtual=3)
    assert built.placement == {0: (0, 2, 4), 1: (1, 3, 5)}


def test_the_layouts_findings_come_along():
    """What the layout has to say is said by the job."""
    built = resolved(timeline(0, groups=[PP]), timeline(1, groups=[PP]), pp=1, dp=2)
    assert "metadata-conflict" in [finding.code for finding in built.findings]


def test_resolving_changes_no_given_timeline():
    """The rank's own timeline stays as it was."""
    rank = timeline(0, actions=[("?F0", 10, 20)], collectives=[("mesh_tp", 15, 90, "?F0")])
    resolved(rank)
    assert actions_of(rank) == [("?F0", 10, 20)]
    assert np.all(rank.actions.stage == -1)
