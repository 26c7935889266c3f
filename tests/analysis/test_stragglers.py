"""Ranks that are slow against the replicas of their stage, stages against each other, and what it costs."""

from __future__ import annotations

import pytest

from bubblescope.analysis.loads import loads
from bubblescope.analysis.slowdowns import slowdowns
from bubblescope.analysis.stragglers import stragglers
from bubblescope.model.actions import Kind
from bubblescope.model.options import StepRange
from tests.analysis.jobs import again, job, one_f_one_b, rank, report, steps
from tests.analysis.uneven import drawn, played, studied


def imbalance(**job_of):
    """What the report says of such a job."""
    return report(played(**job_of)).imbalance


def slow_place(factor, *, replica=1, stage=2, kinds=(Kind.F, Kind.B), steps=range(100)):
    """One stage of one replica takes longer."""
    return lambda step, r, a: factor if (r, a.stage) == (replica, stage) and a.kind in kinds and step in steps else 1.0


@pytest.mark.slow
def test_equal_replicas_are_rarely_told_apart():
    """In 1 of 100 jobs someone may be named by chance; of 300 jobs 9 would come in 4 of 1000 tries."""
    jobs = (studied(replicas=2 + seed % 3, **drawn(seed)).steps for seed in range(300))
    assert sum(bool(stragglers(steps, loads(steps))) for steps in jobs) < 9


@pytest.mark.slow
def test_equal_stages_are_rarely_told_apart():
    """Likewise; a stage's chance is given even where it is none of note."""
    found = [imbalance(**drawn(seed)).stages for seed in range(300)]
    assert sum(any(load.chance < 0.01 for load in mine) for mine in found) < 9


@pytest.mark.parametrize("replicas", [2, 3, 4])
@pytest.mark.parametrize("steps", [1, 2, 8])
@pytest.mark.parametrize("factor", [1.05, 1.5])
def test_a_slow_rank_is_found(replicas, steps, factor):
    """Stage 2 of replica 1, in all it does, with about its factor; nobody else."""
    found = imbalance(replicas=replicas, steps=steps, jitter=0.01, factor=slow_place(factor)).stragglers
    assert [one.rank for one in found] == [2 * replicas + 1]
    assert (found[0].slowdown, found[0].forward, found[0].backward) == pytest.approx((factor,) * 3, rel=0.02)
    used = steps - 1 if steps > 2 else steps
    assert (found[0].persistent, len(found[0].steps)) == (True if used > 1 else None, used)
    assert "forwards" in found[0].evidence


def test_a_rank_slow_in_some_steps_is_intermittent():
    """Half as long again in steps 2, 3, 5 and 6 of eight."""
    found = imbalance(replicas=3, steps=8, jitter=0.01, factor=slow_place(1.5, steps=(2, 3, 5, 6))).stragglers
    assert [(one.rank, one.persistent, one.steps) for one in found] == [(7, False, (2, 3, 5, 6))]
    assert "slow in 4 of 7 steps" in found[0].evidence


def test_slow_forwards_alone_are_told():
    """1.3 times the forwards, a third of the work."""
    found = imbalance(replicas=3, steps=8, jitter=0.01, factor=slow_place(1.3, kinds=(Kind.F,))).stragglers
    assert (found[0].forward, found[0].backward) == pytest.approx((1.3, 1.0), rel=0.02)
    assert found[0].slowdown == pytest.approx(1.1, rel=0.02)


def test_less_than_a_percent_does_not_matter():
    """However sure: without jitter 0.5 % are no chance."""
    assert not imbalance(replicas=3, jitter=0, factor=slow_place(1.005)).stragglers
    assert imbalance(replicas=3, jitter=0, factor=slow_place(1.015)).stragglers


def test_ranks_that_share_a_place_are_named_together():
    """Two tensor-parallel ranks a place: both are slow, and either may be to blame."""
    found = imbalance(replicas=2, tp=2, steps=8, factor=slow_place(1.5)).stragglers
    assert [(one.rank, one.ranks) for one in found] == [(10, (10, 11))]
    assert "ranks 10, 11 share the place" in found[0].evidence
    assert "with two replicas" in found[0].evidence


def test_with_one_replica_a_heavy_stage_is_no_straggler():
    """The stage stands out, nobody is named, and a note says why."""
    found = imbalance(steps=8, factor=slow_place(1.5, replica=0))
    assert not found.stragglers
    assert found.notes == ("one replica: a slow rank and a heavy stage look alike",)
    assert [load.stage for load in found.stages if load.chance < 0.01] == [2] == [found.slowest_stage]
    assert found.stages[2].ratio == pytest.approx(found.stage_ratio) == pytest.approx(1.5 / 1.125, rel=0.02)


def test_pauses_and_long_microbatches_are_listed():
    """Both planted, both in the report, on the ranks and in the steps where they are."""
    found = imbalance(
        steps=5, late=lambda s, _r, a: 900_000 if str(a) == "1F3" and s == 2 else 0, jitter=0.001,
        factor=lambda s, _r, a: 1.4 if (s, a.microbatch) == (3, 6) else 1,
    )  # fmt: skip
    assert [(p.rank, p.step, p.action, p.host) for p in found.pauses.longest] == [(1, 2, "1F3", True)]
    assert found.pauses.longest[0].ns == pytest.approx(900_000, rel=0.01)
    assert (found.data_length.found, found.data_length.count) == (True, 1)
    assert (found.data_length.slowest[0].step, found.data_length.slowest[0].microbatch) == (3, 6)


def test_what_a_heavy_last_stage_costs():
    """Of p = m = 2, stage 1 twice as long: 150 where equal stages take 135; with stage 1 at the mean it takes 120."""
    heavy = job(
        rank(0, [("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 70, 90), ("0B1", 130, 150)]),
        rank(1, [("1F0", 10, 30), ("1B0", 30, 70), ("1F1", 70, 90), ("1B1", 90, 130)]),
    )
    found = report(heavy).imbalance
    assert found.slowdown == pytest.approx(150 / 135)
    assert found.slowest_stage_share == found.slowest_rank_share == pytest.approx((150 - 120) / (150 - 135))


def test_nothing_lost_is_nothing_to_share_out():
    """Equal stages: S is 1, and there is no excess to divide."""
    found = report(one_f_one_b()).imbalance
    assert (found.slowdown, found.slowest_stage_share, found.slowest_rank_share) == (1, None, None)


def test_the_slowest_replica_counts():
    """One of two replicas slow everywhere: it makes the step, and mending one of its places mends a part."""
    of = studied(replicas=2, steps=1, jitter=0, factor=lambda _s, r, _a: 2.0 if r else 1.0)
    found = slowdowns(of.whole, {0: 0}, 3, 0)
    assert found.slowdown == pytest.approx(2 / 1.5)
    assert 0 < found.rank_share < 1


def test_the_rest_of_a_step_counts_with_its_median():
    """An optimizer of 10, 10 and 40 beside replays of 135 and 150: T is 170, T_ideal 145."""
    heavy = [("1F0", 10, 30), ("1B0", 30, 70), ("1F1", 70, 90), ("1B1", 90, 130)]
    light = [("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 70, 90), ("0B1", 130, 150)]
    of = job(
        rank(
            0,
            again(light, 3, 200),
            steps=steps(3, 200),
            optimizer=[(150, 160), (350, 360), (550, 590)],
        ),
        rank(1, again(heavy, 3, 200), steps=steps(3, 200)),
    )
    found = report(of, steps=StepRange(0, 2)).imbalance
    assert found.slowdown == pytest.approx((150 + 20) / (135 + 10))
    assert found.slowest_stage_share == pytest.approx((150 - 120) / (170 - 145))


def test_no_step_no_number():
    """Nothing was seen whole."""
    assert slowdowns([], {}, 3, 0) == (None, None, None)


def test_one_slow_rank_makes_no_heavy_stage():
    """A replica of stage 0 takes 1.6 times as long, and stage 3 of all takes 1.2: stage 3 is the heavy one."""

    def factor(_step, replica, action):
        return (1.6 if (action.stage, replica) == (0, 1) else 1.0) * (1.2 if action.stage == 3 else 1.0)

    of = played(replicas=2, jitter=0, factor=factor)
    found = report(of).imbalance
    assert found.slowest_stage == 3
    assert found.stage_ratio == pytest.approx(1.2 / 1.05, rel=1e-4)
    assert [straggler.rank for straggler in found.stragglers] == [1]
