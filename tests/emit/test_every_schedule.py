"""Every schedule of the registry can be emitted, and what is read back is its truth."""

from __future__ import annotations

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.model.actions import Action
from bubblescope.schedules.family import Costs, Shape
from bubblescope.schedules.registry import FAMILIES, find

SIZES = [(2, 4), (4, 8), (3, 6), (4, 6), (1, 2)]
EXACT = 1e-6


def jobs():
    """Jobs of every schedule in a few shapes, with times that differ and transfers."""
    for family in FAMILIES:
        for p, m in SIZES:
            for v, slices in ((family.chunks, 1), (family.chunks, 2), (2 * family.chunks, 1)):
                shape = Shape(p, m, v, slices)
                if family.problem(shape) is None and (slices == 1 or family.name == "seq1f1b"):
                    times = {"jitter": 0.03, "p2p_ns": 150_000, "host_gap_ns": 20_000, "weight_fraction": 0.4}
                    yield family, Job(schedule=family.name, p=p, m=m, v=v, slices=slices, **times)


def name_of(value):
    """A job's name in the list of tests."""
    return f"p{value.p}m{value.m}v{value.v}s{value.slices}" if isinstance(value, Job) else value.name


EVERY = list(jobs())
EACH = pytest.mark.parametrize(("family", "job"), EVERY, ids=name_of)


def test_none_is_left_out():
    """Each schedule has a shape here."""
    assert {family.name for family, _ in EVERY} == {family.name for family in FAMILIES}


@EACH
def test_the_truth_is_consistent(family, job):
    """Orders are the schedule's, every action has run, and the parts of each rank add up to the window."""
    known = truth(job)
    costs = Costs(job.forward_ns, job.backward_ns * 0.6, job.backward_ns * 0.4, job.p2p_ns)
    orders = family.orders(job.shape, costs)
    assert known.orders == tuple(tuple(map(str, orders[rank])) for rank in range(job.p))
    for pipeline in (pipeline for step in known.steps for pipeline in step.pipelines):
        for rank in pipeline.ranks:
            assert tuple(action.name for action in rank.actions) == known.orders[rank.pp]
            assert rank.useful + rank.wait + rank.transfer + rank.host + rank.dp == pipeline.window
            assert min(rank.wait, rank.transfer, rank.host) >= 0
            assert sum(action.useful for action in rank.actions) == rank.useful


@pytest.mark.parametrize("name", ["dualpipe-v", "chimera", "zb-v"])
def test_explicit_orders_leave_the_same_traces(tmp_path, name):
    """A schedule that somebody wrote down is emitted as one that is known by name."""
    sizes = {"p": 4, "m": 8, "v": find(name).chunks}
    orders = find(name).orders(Shape(**sizes))
    together = {action for rank in orders for action in find(name).together(Shape(**sizes), rank)}
    by_name = Job(schedule=name, **sizes, p2p_ns=100_000)
    by_hand = Job(schedule="mine", orders=tuple(orders.values()), together=together, p2p_ns=100_000)
    known, found = (write(job, tmp_path / job.schedule) for job in (by_name, by_hand))
    assert [path.read_bytes() for path in known] == [path.read_bytes() for path in found]


def test_a_weight_gradient_may_stand_for_the_backward_of_the_first_stage(tmp_path):
    """Nobody needs the input gradient of stage 0, and some files leave it out."""
    orders = [[Action.parse(text) for text in lane.split()] for lane in ("0F0 0F1 0W0 0W1", "1F0 1I0 1W0 1F1 1I1 1W1")]
    job = Job(schedule="mine", orders=orders, p2p_ns=100_000, comm_labels=True)
    write(job, tmp_path)
    assert analyze([str(tmp_path)]).report.bubble.measured == pytest.approx(truth(job).bubble, abs=EXACT)


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_bubble_comes_back(tmp_path, family, backend):
    """From labels, with messages labelled or not."""
    job = next(job for each, job in EVERY if each is family and job.p > 1)
    job = Job(**{field: getattr(job, field) for field in job.__dataclass_fields__} | {"backend": backend, "steps": 3})
    write(job, tmp_path, with_truth=True)
    report = analyze([str(tmp_path)]).report
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=EXACT)
    assert [finding.code for finding in report.quality.findings if finding.severity != "info"] == []
