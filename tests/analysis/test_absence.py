"""What points to a pipeline where none was identified."""

from __future__ import annotations

import dataclasses

import pytest

from bubblescope.analysis.absence import signs
from tests.analysis.jobs import RANK_0, call, job, rank, report

PP, DUALPIPE = (0,), (-1,)
"""Stages that labels of pipelines name: the first, and none."""


def without_pipeline(*ranks, source="no pipeline messages", world=None):
    """A job in which no pipeline was identified."""
    of = job(*ranks)
    plan = dataclasses.replace(of.plan, pp=1, pipelines=(), source=source, world_size=world or len(ranks))
    return dataclasses.replace(of, plan=plan, placement={})


def labelled(number, stages, *, world=None):
    """A rank with labels that only pipelines have."""
    return dataclasses.replace(rank(number, RANK_0, world=world), pipelined=stages)


def calling(number, op="unknown", description="", **others):
    """A rank with one call of an operation."""
    return rank(number, stray=[(0, 10)], calls=[call(description, 10, 20, op=op)], **others)


def test_nothing_points_to_a_pipeline_where_all_is_named():
    """Collectives, and labels that others write as well."""
    assert signs(without_pipeline(calling(0, "all_reduce"), rank(1, RANK_0))) == ()


def test_a_pipeline_needs_no_sign():
    """It was identified."""
    assert signs(job(calling(0), labelled(1, DUALPIPE))) == ()


def test_kernels_that_nothing_names_may_be_messages():
    """They are counted, with their ranks."""
    (sign,) = signs(without_pipeline(calling(0), calling(1, "all_reduce"), calling(2)))
    assert sign == (
        "2 communication kernels have a name that fits all operations, and no call tells which (ranks 0, 2)"
    )


@pytest.mark.parametrize("description", ["tp", "dp", "ep"])
def test_kernels_of_groups_that_serve_something_else_are_no_messages(description):
    """What they do there is no matter."""
    assert signs(without_pipeline(calling(0, description=description))) == ()


def test_sends_and_receives_of_unknown_direction_may_pass_between_stages():
    """Or be an all-to-all."""
    (sign,) = signs(without_pipeline(rank(0, stray=[(0, 10)], messages=[("either ?", 10, 20)])))
    assert sign == "1 send/receive kernels stand alone, and may pass between stages (rank 0)"


def gpu(number, *, work=40, calls=(), process="7", device=True):
    """A rank that is a GPU of a process."""
    of = rank(number, stray=[(0, work)], calls=calls)
    return dataclasses.replace(
        of, identity=dataclasses.replace(of.identity, process=process, device=str(number) if device else None)
    )


REDUCED = [call("", 10, 20, op="all_reduce")]


@pytest.mark.parametrize(
    ("gpus", "pointing"),
    [
        ([gpu(0), gpu(1)], True),
        ([gpu(0), gpu(1), gpu(2, work=1)], True),
        ([gpu(0), gpu(1, work=1)], False),
        ([gpu(0, calls=REDUCED), gpu(1, calls=REDUCED)], False),
        ([gpu(0, calls=REDUCED), gpu(1)], False),
        ([gpu(0), gpu(1, process="8")], False),
        ([gpu(0, device=False), gpu(1, device=False)], False),
        ([gpu(0)], False),
    ],
    ids=["two", "one idle", "one computes", "reduce", "one reduces", "two processes", "recorded twice", "alone"],
)
def test_gpus_of_one_process_that_nothing_connects_may_be_stages(gpus, pointing):
    """They hand outputs over by copies of their own, or through the host."""
    found = signs(without_pipeline(*gpus))
    assert len(found) == pointing
    assert all("GPUs of one process that no communication connects" in sign for sign in found)


@pytest.mark.parametrize(
    ("stages", "world", "pointing"),
    [
        ([DUALPIPE], 1, True),
        ([PP], 1, True),
        ([PP], 8, True),
        ([PP, PP], 2, False),
        ([PP, PP], 8, True),
        ([PP, DUALPIPE], 2, True),
        ([DUALPIPE, DUALPIPE], 2, True),
        ([(), ()], 2, False),
    ],
)
def test_labels_of_pipelines_point_to_one(stages, world, pointing):
    """Unless each rank names the first stage alone, and all of them are there."""
    of = without_pipeline(*(labelled(n, named) for n, named in enumerate(stages)), world=world)
    assert bool(signs(of)) == pointing


def test_a_stage_behind_the_first_points_to_a_pipeline():
    """Whoever wrote the label."""
    assert signs(without_pipeline(rank(0, RANK_0), rank(1, [("1F0", 10, 20), ("1B0", 20, 40)])))


@pytest.mark.parametrize("source", ["stated", "process groups"])
def test_who_says_that_there_is_one_stage_is_believed(source):
    """The user, or the groups."""
    assert signs(without_pipeline(calling(0), labelled(1, DUALPIPE), source=source)) == ()


def test_a_single_rank_is_no_pipeline():
    """If its file says that it is the only one."""
    assert signs(without_pipeline(labelled(0, DUALPIPE, world=1))) == ()
    assert signs(without_pipeline(labelled(0, DUALPIPE)))


def test_the_report_doubts_what_points_to_a_pipeline():
    """The warning has the signs, the numbers of a pipeline are unusable, and nothing else of the verdict is calm."""
    found = report(without_pipeline(labelled(0, DUALPIPE)))
    assert found.undecided
    assert (found.schedule.name, found.schedule.confidence, found.layout.pp) == ("none", 0.0, None)
    assert found.schedule.evidence == ("labels on rank 0 are those of a pipeline's forwards and backwards",)
    (warning,) = found.quality.findings
    assert (warning.code, warning.severity) == ("unlabelled", "warning")
    assert found.schedule.evidence[0] in warning.message
    verdicts = {number.number: number.verdict for number in found.quality.numbers}
    assert (verdicts["bubble"], verdicts["ranks"]) == ("unusable", "degraded")


def test_the_report_is_calm_where_nothing_does():
    """There are no numbers of a pipeline to ask for."""
    found = report(without_pipeline(calling(0, "all_reduce")))
    assert not found.undecided
    assert (found.schedule.confidence, found.layout.pp, found.quality.verdict) == (1.0, 1, "ok")
    assert "bubble" not in {number.number for number in found.quality.numbers}
