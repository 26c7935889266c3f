"""Emit a run with ranges around its layers, read its traces: the layers come back, and the best partition of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, combinations, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bubblescope.analysis.layers import layers_of
from bubblescope.analysis.study import study
from bubblescope.emit import Job, write
from bubblescope.emit.pieces import cut
from bubblescope.emit.simulate import simulate
from bubblescope.engine import load
from bubblescope.forecast.partition import best
from bubblescope.model.actions import Kind
from bubblescope.model.options import Options
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.replay import replay

MICROSECONDS = 3_000

JOBS = {
    "1f1b": Job(p=3, m=4, stage_layers=(2, 3, 1)),
    "jitter": Job(p=3, m=4, stage_layers=(4, 3, 5), jitter=0.05, p2p_ns=200_000),
    "interleaved": Job(schedule="interleaved-1f1b", p=2, m=4, v=2, stage_layers=(2, 3, 1, 2)),
    "zero bubble": Job(schedule="zb-h1", p=3, m=6, stage_layers=(2, 3, 2)),
    "both ways": Job(schedule="dualpipe", p=4, m=8, stage_layers=(2, 3, 2, 1)),
    "no labels": Job(p=3, m=4, stage_layers=(2, 3, 1), labels="none"),
    "on a CPU": Job(p=3, m=4, stage_layers=(2, 3, 1), backend="cpu"),
    "nsys": Job(p=3, m=4, stage_layers=(2, 3, 1), recorder="nsys"),
    "replicas": Job(p=2, m=4, d=2, stage_layers=(2, 3)),
}


def read(job):
    """The layers of a job's traces, and how many each stage has."""
    with TemporaryDirectory() as folder:
        write(job, Path(folder))
        return layers_of(study(load([Path(folder)]), Options()))


def truth(job, *, forward):
    """Mean nanoseconds of every layer of a micro-batch, in its forwards or in its backwards."""
    total: dict[int, int] = dict.fromkeys(range(sum(job.layers)), 0)
    for run in (run for step in simulate(job) for run in step.training.runs):
        for rank, lane in enumerate(run.lanes):
            for done in (part for ran in lane for part in ran.parts):
                first, count = job.first_layer(done.action.stage), job.layers[done.action.stage]
                for piece in cut(job, done, rank) if (done.action.kind == Kind.F) == forward else ():
                    total[first + (piece.part if forward else count - 1 - piece.part)] += piece.end - piece.begin
    return [length / job.m / job.steps / job.d for length in total.values()]


@pytest.mark.parametrize("name", JOBS)
def test_layer_times(name):
    """Every layer's forward and backward comes back to a few microseconds, and so does how many a stage has."""
    job = replace(JOBS[name], layer_labels=True)
    layers, counts = read(job)
    assert counts == job.layers
    assert layers.forward == pytest.approx(truth(job, forward=True), abs=MICROSECONDS)
    assert layers.backward == pytest.approx(truth(job, forward=False), abs=MICROSECONDS)


def test_what_runs_again():
    """Where forwards run again in backwards, and nothing tells whose they are, a backward is divided as its forward."""
    job = Job(p=2, m=4, stage_layers=(2, 3), recompute=True, layer_labels=True)
    layers, _ = read(job)
    assert layers.backward == pytest.approx([2 * length for length in layers.forward], abs=MICROSECONDS)


def test_tensor_parallel_layers():
    """The all-reduces of a layer are part of it, forwards and backwards."""
    layers, counts = read(Job(p=2, m=4, t=2, stage_layers=(2, 4), layer_labels=True))
    assert counts == (2, 4)
    assert sum(layers.pieces) == pytest.approx(2 * 30_000_000, abs=MICROSECONDS)
    assert (layers.front_forward, layers.front_backward, layers.back_forward, layers.back_backward) == (0, 0, 0, 0)


def test_without_ranges():
    """A run that shows no layers has none."""
    assert read(Job(p=2, m=4)) is None


@pytest.mark.parametrize("heavy", range(4))
def test_the_best_partition_of_an_uneven_run(heavy):
    """Layers of a run with one heavy stage, spread as well as trying all partitions spreads the true ones."""
    scale = tuple(1.6 if stage == heavy else 1.0 for stage in range(4))
    job = Job(p=4, m=8, stage_layers=(3, 3, 3, 3), scale=scale, layer_labels=True)
    layers, _ = read(job)
    orders = find("1f1b").orders(Shape(4, 8))
    real = truth(job, forward=True), truth(job, forward=False)

    def makespan(forward, backward):
        lengths = {a: (forward if a.kind == Kind.F else backward)[a.stage] for order in orders.values() for a in order}
        return replay(orders, lengths, last_stage=3).makespan

    def true_makespan(counts):
        edges = list(pairwise((0, *accumulate(counts))))
        return makespan(*([sum(way[low:high]) for low, high in edges] for way in real))

    every = [tuple(b - a for a, b in pairwise((0, *cuts, 12))) for cuts in combinations(range(1, 12), 3)]
    found = true_makespan(best(layers, 4, makespan, present=(3, 3, 3, 3)))
    assert found == pytest.approx(min(map(true_makespan, every)), abs=10 * MICROSECONDS)
    assert found < true_makespan((3, 3, 3, 3))
