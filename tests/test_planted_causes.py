"""One cause planted in an otherwise quiet run: the report names it, tells its size, and blames nothing else."""

from __future__ import annotations

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest

from bubblescope.emit import Job
from bubblescope.engine import analyze
from bubblescope.model.options import Options
from tests.pipes import Pipe, gpipe, one_f_one_b
from tests.planted import STEPS, analyzed, missed, planted, plants

SIZES = (0.02, 0.05, 0.1, 0.2)
SPARE = {"compress": False, "kernels": 2, "steps": STEPS, "ranks_a_host": 64}

FEW = [
    (Job(**SPARE, p=4, m=8), "all stages", 0.05),
    (Job(**SPARE, p=3, m=6, d=3, labels="none"), "slow inner", 0.05),
    (Job(**SPARE, p=4, m=8, recorder="nsys"), "jitter", 0.05),
    (Job(**SPARE, schedule="interleaved-1f1b", p=2, m=4, v=2), "long micro-batches of some steps", 0.1),
    (Job(**SPARE, schedule="zb-h1", p=3, m=6), "slow link", 0.1),
    (Job(**SPARE, schedule="gpipe", p=3, m=6), "late hosts of a rank", 0.02),
    (Job(**SPARE, schedule="eager-1f1b", p=2, m=6, labels="none"), "pauses", 0.1),
]

SHAPES = [
    ("1f1b", 2, 4, 1),
    ("1f1b", 4, 8, 1),
    ("1f1b", 8, 4, 1),
    ("gpipe", 3, 6, 1),
    ("eager-1f1b", 3, 5, 1),
    ("interleaved-1f1b", 3, 6, 2),
    ("looped-bfs", 2, 4, 2),
    ("zb-h1", 4, 6, 1),
    ("zb-h2", 2, 6, 1),
    ("zb-v", 3, 6, 2),
]
RECORDED = [("pp", "kineto"), ("none", "kineto"), ("pp", "nsys")]


def plant_of(job, name):
    """The plant of a job that goes by a name."""
    return next(plant for plant in plants(job) if plant.name == name)


@pytest.mark.parametrize(("job", "name", "size"), FEW, ids=[f"{name} in {job.schedule}" for job, name, _ in FEW])
def test_a_planted_cause_is_found(job, name, size):
    """With its size, and no other beside it."""
    plant = plant_of(job, name)
    run = planted(plant, size)
    assert run.size == pytest.approx(size, abs=0.005)
    assert missed(plant.cause, run.size, analyzed(run.job)) == []


def test_a_quiet_run_has_no_cause_but_its_structure():
    """Else what is planted would not be the only one."""
    causes = {row.cause: row.points for row in analyzed(Job(**SPARE)).bubble.causes}
    assert causes == pytest.approx(dict.fromkeys(causes, 0.0) | {"structural": 3 / 11}, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(SHAPES)), ids=["-".join(map(str, shape)) for shape in SHAPES])
def test_every_cause_is_found_in_every_schedule(number):
    """Every plant in one size each, and one way to record it each, so that all of them meet over the schedules."""
    schedule, p, m, v = SHAPES[number]
    dice, wrong = Random(number), {}  # noqa: S311 - repeatable
    for d in (1, 3) if p * v < 5 else (1,):
        bare = Job(**SPARE, schedule=schedule, p=p, m=m, v=v, d=d)
        for plant in plants(bare):
            labels, recorder = dice.choice(RECORDED)
            size, seed = dice.choice(SIZES), dice.randrange(1000)
            job = Job(**SPARE, schedule=schedule, p=p, m=m, v=v, d=d, labels=labels, recorder=recorder, seed=seed)
            run = planted(plant_of(job, plant.name), size)
            if run is not None:
                said = missed(plant.cause, run.size, analyzed(run.job))
                wrong |= {f"{plant.name} {labels} {recorder} {seed}": said} if said else {}
    assert wrong == {}


def told(played):
    """The report of a run of its own."""
    with TemporaryDirectory() as folder:
        played.write(Path(folder))
        return analyze([folder], Options(jobs=1)).report


def even(_step, _rank, kind, _microbatch):
    """A backward takes twice as long as a forward."""
    return 1000.0 if kind == "F" else 2000.0


def by_chance(sigma, seed):
    """Every action by itself."""
    dice = Random(seed)  # noqa: S311 - repeatable
    return lambda *action: even(*action) * dice.lognormvariate(0, sigma)


def pauses(seed):
    """Before one forward in twenty."""
    dice = Random(seed)  # noqa: S311 - repeatable
    return lambda _step, _rank, kind, _i: 3000.0 if kind == "F" and dice.random() < 0.05 else 0.0


LANES = {"1f1b": one_f_one_b(4, 8), "gpipe": gpipe(3, 6)}
PLANTS = {
    "imbalance": ("imbalance", lambda lanes: Pipe(lanes, lambda s, r, k, i: even(s, r, k, i) * (1 + 0.1 * (r == 1)))),
    "straggler": (
        "straggler",
        lambda lanes: Pipe(lanes, lambda s, r, k, i: even(s, r, k, i) * (1 + (r == 4)), replicas=3),
    ),
    "jitter": ("jitter", lambda lanes: Pipe(lanes, by_chance(0.2, seed=3))),
    "long micro-batch": (
        "jitter",
        lambda lanes: Pipe(lanes, lambda s, r, k, i: even(s, r, k, i) * (1 + (i == s % 5))),
    ),
    "transfers": ("p2p", lambda lanes: Pipe(lanes, even, wire=lambda *_: 150.0)),
    "slow link": ("p2p", lambda lanes: Pipe(lanes, even, wire=lambda _s, r, k, _i: 400.0 * (r == 0 and k == "F"))),
    "late hosts": ("host", lambda lanes: Pipe(lanes, even, idle=lambda *_: 120.0)),
    "pauses": ("host", lambda lanes: Pipe(lanes, even, idle=pauses(seed=5))),
}


@pytest.mark.parametrize("schedule", LANES)
@pytest.mark.parametrize("name", PLANTS)
def test_a_run_that_no_emitter_made_is_told_as_well(schedule, name):
    """An event loop of its own and a writer of its own: the same causes come out of them."""
    cause, make = PLANTS[name]
    played = make(LANES[schedule]).play(STEPS)
    quiet = {"1f1b": 3 / 11, "gpipe": 2 / 8}[schedule]
    report = told(played)
    assert schedule in {report.schedule.name, *report.schedule.also}
    assert report.bubble.measured == pytest.approx(played.bubble, abs=1e-6)
    assert played.bubble - quiet > 0.01
    assert missed(cause, played.bubble - quiet, report) == []


def test_a_plant_that_no_strength_makes_so_large_is_none():
    """A rank of one replica in three cannot cost the mean of them 60 points."""
    job = Job(**SPARE, p=2, m=4, d=3)
    assert planted(plant_of(job, "slow first"), 0.6) is None


def test_what_is_missed_is_said():
    """A plant of a size that the run does not have, and a cause that is not the planted one."""
    report = analyzed(Job(**SPARE, p=2, m=4, p2p_ns=3_000_000))
    points = next(row.points for row in report.bubble.causes if row.cause == "p2p")
    assert points > 0.05
    assert missed("p2p", points, report) == []
    assert missed("p2p", 2 * points, report) == [f"p2p: {100 * points:.2f} points instead of {200 * points:.2f}"]
    assert missed("host", 0.0, report) == [f"p2p: {100 * points:.2f} points beside host"]
