"""Forecasts against runs in which the change was made, and against the simulation that the authors of a trace made."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

import pytest

from bubblescope import engine
from bubblescope.emit import Job, write
from bubblescope.errors import UndecidedError, UsageError
from bubblescope.model.changes import Changes
from bubblescope.model.options import Options
from tests.pairs import NEAR, SAME, Pair, missed, pairs
from tests.pipes import Pipe, gpipe, one_f_one_b

ALL = list(pairs())


def whatif(traces, *changes, **options):
    """What is forecast from traces."""
    return engine.whatif(traces, [Changes.parse(change) for change in changes], Options(jobs=1), **options)


def test_there_are_forty_pairs():
    """Of every kind of change."""
    assert len(ALL) >= 40
    words = {part.partition("=")[0] for pair in ALL for part in pair.change.split(",")}
    assert words >= {"schedule", "m", "v", "without", "p2p", "microbatch", "tp"}


@pytest.mark.parametrize("pair", ALL[::5], ids=str)
def test_a_run_is_forecast(pair):
    """Its steps within 2 %, and those of the unmodified run within 1 %."""
    assert missed(pair) == []


@pytest.mark.slow
@pytest.mark.parametrize("pair", [pair for k, pair in enumerate(ALL) if k % 5], ids=str)
def test_every_run_is_forecast(pair):
    """The others."""
    assert missed(pair) == []


def test_what_is_missed_is_said():
    """A change that the generator did not make."""
    job = Job(compress=False, kernels=2, steps=3)
    assert missed(Pair(job, "m=16", job)) != []


EVEN = {"F": 1000.0, "B": 2000.0}


def played(lanes, *, factor=None, wire=0.0, idle=0.0, replicas=1):
    """A run that no emitter made."""
    pipe = Pipe(
        lanes,
        lambda _step, rank, kind, i: EVEN[kind] * (factor(rank, i) if factor else 1.0),
        wire=lambda *_: wire,
        idle=lambda *_: idle,
        replicas=replicas,
    )
    return pipe.play(4)


def window_us(run):
    """From a pipeline's first kernel to its last, the mean over pipelines and all steps but the first."""
    lengths = []
    for step in run.steps[1:]:
        for k in range(run.replicas):
            spans = [span for lane in step.done[k :: run.replicas] for did in lane for span in did.kernels]
            lengths.append(max(end for _, end in spans) - min(start for start, _ in spans))
    return fmean(lengths)


OTHERS = {
    "schedule=gpipe": (played(one_f_one_b(4, 8), wire=150.0), played(gpipe(4, 8), wire=150.0)),
    "schedule=1f1b": (played(gpipe(3, 6), wire=150.0), played(one_f_one_b(3, 6), wire=150.0)),
    "m=12": (played(one_f_one_b(4, 8), idle=50.0), played(one_f_one_b(4, 12), idle=50.0)),
    "without=imbalance": (
        played(one_f_one_b(4, 8), factor=lambda rank, _: 1.6 if rank == 3 else 1.0),
        played(one_f_one_b(4, 8), factor=lambda *_: 1.15),
    ),
    "without=straggler": (
        played(one_f_one_b(3, 6), factor=lambda rank, _: 1.7 if rank == 4 else 1.0, replicas=3),
        played(one_f_one_b(3, 6), replicas=3),
    ),
    "p2p=free": (played(one_f_one_b(4, 8), wire=300.0), played(one_f_one_b(4, 8))),
    "without=host": (played(one_f_one_b(4, 8), idle=120.0), played(one_f_one_b(4, 8))),
    "without=data": (
        played(one_f_one_b(4, 8), factor=lambda _, i: 1.8 if i == 2 else 1.0),
        played(one_f_one_b(4, 8), factor=lambda *_: 1.1),
    ),
}


@pytest.mark.parametrize("change", OTHERS)
def test_a_run_that_no_emitter_made_is_forecast(change):
    """The generator is an event loop of its own, which knows of windows only."""
    was, is_ = OTHERS[change]
    with TemporaryDirectory() as folder:
        was.write(Path(folder))
        told = whatif([folder], change)
    assert told.replayed.window_ns / 1e3 == pytest.approx(window_us(was), rel=SAME)
    assert told.forecasts[0].run.window_ns / 1e3 == pytest.approx(window_us(is_), rel=NEAR)


def test_the_simulation_of_the_authors(shared):
    """ByteDance simulated its trace ST without stragglers: the same bubble within 0.4 points, windows within 2 %."""
    folder = shared / "real" / "bytedance_st"
    trace, ideal = folder / "timeline-ST.json.gz", folder / "ideal-timeline-ST.json.gz"
    told = whatif([trace], "even").forecasts[0].run
    theirs = engine.analyze([ideal], Options(jobs=1)).report.bubble
    assert theirs.measured == pytest.approx(0.431, abs=0.0005)
    assert told.bubble == pytest.approx(theirs.measured, abs=0.004)
    assert told.window_ns == pytest.approx(theirs.window_ns, rel=0.02)


def test_what_cannot_be_replayed_is_said(tmp_path):
    """A stage without a trace."""
    write(Job(compress=False, missing=(1,)), tmp_path)
    with pytest.raises(UndecidedError, match="no complete step with every stage"):
        whatif([tmp_path], "m=16")


def test_without_a_pipeline_there_is_nothing_to_replay(tmp_path):
    """One rank alone."""
    write(Job(compress=False, p=1, m=4), tmp_path)
    with pytest.raises(UndecidedError, match="no pipeline"):
        whatif([tmp_path], "m=16")


def test_layers_move_to_where_they_make_stages_equal(tmp_path):
    """Eight layers a stage of 3.75 ms, and half as much again on the last one: 9 + 9 + 9 + 5 makes each 33.75 ms."""
    write(Job(compress=False, kernels=8, scale=(1, 1, 1, 1.5), steps=3), tmp_path)
    stated = Options(jobs=1, layers=(8, 8, 8, 8))
    told = engine.whatif([tmp_path], [Changes.parse(text) for text in ("layers=best", "layers=9+9+9+5")], stated)
    assert [one.title for one in told.forecasts] == ["layers 9 + 9 + 9 + 5"] * 2
    assert told.forecasts[0].run.window_ns == pytest.approx(11 * 33.75e6, rel=1e-3)
    assert told.forecasts[1].run == told.forecasts[0].run


@pytest.mark.parametrize(
    ("change", "layers", "problem"),
    [
        ("layers=best", None, "the traces show no layers"),
        ("layers=best,without=imbalance", (8, 8, 8, 8), "without=imbalance makes all stages equal"),
        ("layers=9+9+9", (8, 8, 8, 8), "there are 4 stages"),
        ("layers=9+9+9+9", (8, 8, 8, 8), "the model has 32 layers"),
        ("v=2", (1, 1, 1, 1), "4 layers cannot be spread over 8 stages"),
        ("schedule=pipedream", None, "steps of pipedream overlap"),
        ("schedule=interleaved-1f1b,v=1", None, "interleaved-1f1b needs at least 2 chunks"),
        ("microbatch=3", None, "8 micro-batches cannot be cut into ones 3 times as large"),
        ("tp=3", None, "4 GPUs a pipeline cannot be shared by 3 a stage"),
    ],
)
def test_what_cannot_be_is_said(tmp_path, change, layers, problem):
    """As a forecast without a run, so that the others are told all the same."""
    write(Job(compress=False, steps=2), tmp_path)
    told = engine.whatif([tmp_path], [Changes.parse(change)], Options(jobs=1, layers=layers, tp=1)).forecasts[0]
    assert told.run is None
    assert told.problem.startswith(problem)


@pytest.mark.parametrize("skew_ns", [(), (20_000_000, 0)])
def test_data_are_trusted_as_by_analyze(skew_ns, tmp_path):
    """What it says of them goes with the forecasts, whether clocks agree or are 20 ms apart."""
    write(Job(compress=False, kernels=2, p=2, m=4, steps=2, p2p_ns=200_000, skew_ns=skew_ns), tmp_path)
    report, found = engine.analyze(tmp_path).report, whatif(tmp_path, "m=8", anyway=True)
    assert (found.quality, found.trusted) == (report.quality, report.bubble.trusted)
    assert found.trusted is not bool(skew_ns)


@pytest.mark.parametrize(
    ("shape", "bubble", "change", "then"),
    [
        ((2, 1), 0.5, "m=4", 0.2),  # 0.1 s of compute and 0.1 s of waiting; four times the compute
        ((8, 32), 0.179, "m=176", 0.038),  # m = 4p leaves 18 %; GLM-130B's 176 leave 3.8 %
        ((8, 32), 0.179, "m=133", 0.05),
    ],
)
def test_textbook_numbers(tmp_path, shape, bubble, change, then):
    """(p - 1) / (m + p - 1), measured and forecast."""
    p, m = shape
    write(Job(compress=False, kernels=1, p=p, m=m, steps=1, forward_ns=33_000_000, backward_ns=67_000_000), tmp_path)
    told = whatif([tmp_path], change)
    assert told.measured.bubble == pytest.approx(bubble, abs=0.0005)
    assert told.forecasts[0].run.bubble == pytest.approx(then, abs=0.0005)


def test_no_gradients_to_hide_are_said_so(tmp_path):
    """Without a replica there is nothing to reduce."""
    write(Job(compress=False, steps=2), tmp_path)
    told = whatif([tmp_path], "without=dp").forecasts[0]
    assert told.gain == 0
    assert "the traces tell of no reduction of gradients outside the pipeline" in told.assumptions


def test_a_misspelt_schedule_costs_no_read():
    """It is found before the traces are, which are not even there."""
    with pytest.raises(UsageError) as caught:
        whatif(["nowhere"], "schedule=zbh3")
    assert caught.value.hint.startswith("did you mean zbh2")
