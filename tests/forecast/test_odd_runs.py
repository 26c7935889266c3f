"""Runs that are odd: orders that cannot be, ranks whose places are mistaken, orders that go by no name."""

from __future__ import annotations

import pytest

from bubblescope import engine
from bubblescope.emit import Job, write
from bubblescope.errors import UndecidedError
from bubblescope.model.changes import Changes
from bubblescope.model.options import Options

HEADER = "rank,stage,step,kind,microbatch,start_ms,duration_ms"
# A backward that ran before its forward, for which the other rank waited.
BACKWARDS = ("0,0,0,B,0,0,20", "0,0,0,F,0,30,10", "1,1,0,F,0,40,10", "1,1,0,B,0,50,20")
# Three stages on two ranks.
ODD = ("0,0,0,F,0,0,10", "1,1,0,F,0,10,10", "0,2,0,F,0,20,10", "0,2,0,B,0,30,20", "1,1,0,B,0,50,20", "0,0,0,B,0,70,20")
OPTIONS = Options(jobs=1)


def timeline(folder, rows):
    """A file of actions."""
    path = folder / "run.csv"
    path.write_text("\n".join((HEADER, *rows)))
    return str(path)


def test_an_order_that_cannot_run_leaves_a_report(tmp_path):
    """Advice that needs a replay is not given."""
    report = engine.analyze(timeline(tmp_path, BACKWARDS), OPTIONS).report
    assert [found.code for found in report.findings if found.gain is not None] == []


def test_of_an_order_that_cannot_run_nothing_is_forecast(tmp_path):
    """And the answer says what waits for what."""
    more = ("0,0,0,F,1,40,10", "0,0,0,B,1,90,20", "1,1,0,F,1,70,10", "1,1,0,B,1,80,10")
    with pytest.raises(UndecidedError, match="1F0 waits for 0F0"):
        engine.whatif(timeline(tmp_path, (*BACKWARDS, *more)), (), OPTIONS)


def test_ranks_that_run_one_after_the_other_are_no_training(tmp_path):
    """A gradient never came back: no step is left that could be replayed."""
    with pytest.raises(UndecidedError, match="no step in which all ranks run together"):
        engine.whatif(timeline(tmp_path, BACKWARDS), (), OPTIONS)


def test_stages_need_not_be_as_many_on_each_rank(tmp_path):
    """Of an order without a name all work goes into a schedule that has one: 30 ms forward, 60 ms back."""
    found = engine.whatif(timeline(tmp_path, ODD), [Changes(schedule="1f1b"), Changes(layers=(1, 1, 1))], OPTIONS)
    assert found.replayed.schedule == "unknown"
    assert found.forecasts[0].run.window_ns == 90_000_000


def test_an_order_without_a_name_can_stay_as_it_is(tmp_path):
    """As many micro-batches as there are is no change."""
    found = engine.whatif(timeline(tmp_path, ODD), [Changes(microbatches=1, microbatch=1.0)], OPTIONS)
    assert found.forecasts[0].gain == 0


TINY = {"kernels": 1, "compress": False, "metadata": "none", "neutral_names": True}
PAUSES = {"p2p_ns": 20_000_000, "pause_ns": 30_000_000, "pause_chance": 0.2, "seed": 8}
LAYERS = (2, 1, 3, 1, 3, 2, 1, 1)
MISTAKEN = (
    (Job(**TINY, **PAUSES, schedule="forward-only", p=2, m=1, t=2, steps=5, missing=(1,)), (1, 0, 2)),
    (Job(**TINY, schedule="v-half", p=4, m=6, v=2, t=2, steps=2, stage_layers=LAYERS), (1, 4, 6, 2, 7, 5, 3, 0)),
)


@pytest.mark.parametrize(("job", "order"), MISTAKEN)
def test_ranks_whose_places_are_mistaken_crash_nothing(tmp_path, job, order):
    """Tensor-parallel ranks that nobody tells apart from replicas, in files that nobody told the ranks of."""
    paths = write(job, tmp_path)
    traces = [str(paths[at]) for at in order]
    engine.analyze(traces, OPTIONS)
    changes = [Changes(schedule="1f1b"), Changes(layers="best")]
    assert len(engine.whatif(traces, changes, OPTIONS, anyway=True).forecasts) == 2


def test_clocks_that_nobody_could_align_make_no_work_shorter(tmp_path):
    """The first action of a rank begins when its own clock says so: twice the micro-batches take twice as long."""
    job = Job(
        schedule="chimera", p=2, m=6, d=3, steps=3, missing=(0,), skew_ns=(0, 5_000_000), kernels=1, dp_early=True
    )
    write(job, tmp_path)
    found = engine.whatif(tmp_path, [Changes(microbatches=12)], OPTIONS)
    assert found.forecasts[0].run.window_ns == pytest.approx(2 * found.replayed.window_ns, rel=1e-6)


def test_a_pipeline_can_become_longer_with_as_many_stages(tmp_path):
    """Two chunks on two ranks of two become four ranks of one, and no slow rank is looked for where none was."""
    write(Job(schedule="interleaved-1f1b", p=2, m=4, v=2, t=2, steps=2, kernels=1), tmp_path)
    found = engine.whatif(tmp_path, [Changes(tp=1, schedule="1f1b", virtual=1)], OPTIONS)
    assert found.forecasts[0].run.pp == 4


@pytest.mark.parametrize(("measured", "asked"), [("1f1b", "forward-only"), ("forward-only", "1f1b")])
def test_forwards_alone_are_not_held_against_training(tmp_path, measured, asked):
    """Neither is a change of the other."""
    write(Job(schedule=measured, p=2, m=4, steps=2, kernels=1), tmp_path)
    told = engine.whatif(tmp_path, [Changes(schedule=asked)], OPTIONS).forecasts[0]
    assert told.run is None
    assert "backwards" in told.problem


def test_waiting_for_a_slow_replica_is_no_reduction_of_gradients(tmp_path):
    """30 ms of it can be hidden, and not the 60 ms for which the quick replica waits."""
    job = Job(p=2, m=4, d=2, steps=3, straggler=((0, 1.5),), optimizer_ns=40_000_000, dp_ns=30_000_000, kernels=1)
    write(job, tmp_path)
    found = engine.whatif(tmp_path, [Changes(without=frozenset({"dp"}))], OPTIONS)
    assert found.forecasts[0].gain_ns == pytest.approx(30_000_000, rel=0.02)
