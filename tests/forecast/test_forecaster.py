"""What holds of every forecast, whatever the run."""

from __future__ import annotations

from functools import cache

import pytest

from bubblescope.analysis.study import study
from bubblescope.emit import Job
from bubblescope.forecast.forecaster import Forecaster
from bubblescope.forecast.standard import standard
from bubblescope.model.changes import Changes
from bubblescope.model.options import Options
from tests.analysis.simulated import simulated

JOBS = {
    "1f1b": Job(p=4, m=8, steps=3, jitter=0.05, p2p_ns=400_000, host_gap_ns=200_000, scale=(1, 1.2, 1, 1.4)),
    "replicas": Job(p=3, m=6, steps=3, d=3, jitter=0.03, straggler=((4, 1.3),), p2p_ns=300_000),
    "fused": Job(p=3, m=6, steps=3, fused=True, p2p_ns=600_000),
    "gpipe": Job(schedule="gpipe", p=3, m=6, steps=3, jitter=0.05, recv_ahead=1, p2p_ns=500_000),
    "interleaved": Job(schedule="interleaved-1f1b", p=2, m=4, v=2, steps=3, jitter=0.05, p2p_ns=200_000),
    "zero bubble": Job(schedule="zb-h1", p=4, m=8, steps=3, jitter=0.05, host_gap_ns=100_000),
    "vee": Job(schedule="zb-v", p=3, m=6, v=2, steps=3, jitter=0.05),
    "both ways": Job(schedule="chimera", p=4, m=8, steps=3, jitter=0.05, p2p_ns=200_000),
    "slices": Job(schedule="seq1f1b", p=3, m=4, slices=2, steps=3, jitter=0.05),
}


@cache
def forecaster(name, most=None):
    """A run that can be replayed; of so many actions at most."""
    options = Options(tp=1)
    return Forecaster.of(study(simulated(JOBS[name]), options), options, most_actions=most)


def run(name, change, most=None):
    """The changed run, which must be possible."""
    told = forecaster(name, most).forecast(Changes.parse(change))
    assert told.problem is None
    return told.run


@pytest.mark.parametrize("name", JOBS)
def test_the_unmodified_run_comes_out(name):
    """Within a thousandth, window and step."""
    found = forecaster(name)
    assert found.error < 1e-3
    assert found.replayed.window_ns == pytest.approx(found.measured.window_ns, rel=1e-3)
    assert found.replayed.bubble == pytest.approx(found.measured.bubble, abs=1e-3)


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("change", ["m={m}", "v={v}", "schedule={schedule}", "tp=1", "p2p=1", "microbatch=1"])
def test_a_change_to_what_is_changes_nothing(name, change):
    """The forecast is the replay."""
    job = JOBS[name]
    assert run(name, change.format(m=job.m, v=job.v, schedule=job.schedule)) == forecaster(name).replayed


@pytest.mark.parametrize("name", [name for name, job in JOBS.items() if job.d == 1])
def test_work_is_conserved(name):
    """However a step is cut into stages and micro-batches, it is the same work, and twice as much of twice the data."""

    def work(found):
        return (1 - found.bubble) * found.window_ns * found.pp

    whole = work(forecaster(name, 1).replayed)
    assert work(run(name, f"m={2 * JOBS[name].m}", 1)) == pytest.approx(2 * whole, rel=1e-6)
    for change in ("microbatch=0.5", "schedule=gpipe,v=1", "schedule=zb-h1,v=1"):
        assert work(run(name, change, 1)) == pytest.approx(whole, rel=1e-6), change


@pytest.mark.parametrize("name", JOBS)
def test_less_trouble_is_not_slower(name):
    """Transfers in the same order."""
    lengths = [run(name, f"p2p={factor}").step_ns for factor in (0, 0.5, 1, 2)]
    assert lengths == sorted(lengths)
    assert run(name, "without=p2p").step_ns <= lengths[0] + 1
    assert run(name, "without=host").step_ns <= lengths[2] + 1


@pytest.mark.parametrize("name", JOBS)
def test_the_usual_questions_are_answered(name):
    """Each has an answer, and no step is shorter than the work of a rank."""
    found = forecaster(name)
    for changes in standard(found.now):
        told = found.forecast(changes)
        assert (told.run is None) == (told.problem is not None)
        if told.run is not None:
            assert 0 <= told.run.bubble < 1
            assert told.gain < 1
            assert told.run.memory.activations > 0


def test_gains_are_for_the_same_data():
    """Twice the micro-batches take less than twice the time; the gain counts the time of one."""
    found = forecaster("1f1b")
    told = found.forecast(Changes(microbatches=16))
    assert told.gain == pytest.approx(1 - told.run.step_ns / 2 / found.replayed.step_ns)


def test_some_steps_stand_for_all():
    """Evenly spread, one at least."""
    options = Options()
    found = study(simulated(Job(p=2, m=4, steps=9)), options)
    counts = [Forecaster.of(found, options, most_actions=most).steps for most in (1, 40, 64, 10**6)]
    assert counts == [1, 2, 4, 8]
