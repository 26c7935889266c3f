"""Pipelines that run both ways: a rank holds a stage of each copy of the model."""

from __future__ import annotations

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze

RANKS = {0: (0, 3), 1: (1, 2), 2: (1, 2), 3: (0, 3)}


def reported(folder, **more):
    """A job of four ranks, and its report."""
    job = Job(**{"schedule": "dualpipe", "p": 4, "m": 8, "p2p_ns": 100_000, "jitter": 0.05} | more)
    write(job, folder)
    return job, analyze([str(folder)]).report


@pytest.mark.parametrize("schedule", ["dualpipe", "chimera"])
@pytest.mark.parametrize("described", ["megatron", "undefined"], ids=["groups", "labels alone"])
def test_layout_and_bubble(tmp_path, schedule, described):
    """Each stage lies on two ranks; the bubble is the truth, and no message is taken for another's."""
    job, report = reported(tmp_path, schedule=schedule, pg_desc=described)
    layout = report.layout
    assert (layout.pp, layout.dp, layout.virtual, report.schedule.name) == (4, 1, 2, schedule)
    assert {row.stage: row.ranks for row in layout.stages} == RANKS
    assert {row.stage: row.ranks for row in report.stages} == RANKS
    assert report.bubble.measured == pytest.approx(truth(job).bubble, abs=1e-6)
    assert [finding for finding in report.quality.findings if finding.severity != "info"] == []


def test_two_replicas_by_labels_alone(tmp_path):
    """With two replicas and nothing described, the lower micro-batches tell which end a rank is nearer to."""
    _, report = reported(tmp_path, d=2, pg_desc="undefined", p2p_args="none")
    assert [pipeline.ranks for pipeline in report.pipelines] == [(0, 2, 4, 6), (1, 3, 5, 7)]


def test_an_absent_rank(tmp_path):
    """The stages of a rank that nobody recorded are those that its mirror holds."""
    job, report = reported(tmp_path, missing=(1,))
    assert {row.stage: row.ranks for row in report.layout.stages} == RANKS
    assert report.schedule.name == "dualpipe"
    assert report.bubble.lower <= truth(job).bubble <= report.bubble.upper


def test_a_folded_pipeline_with_two_replicas_is_none(tmp_path):
    """Ranks of a V hold the same pairs of stages twice with two replicas, but every micro-batch runs in both."""
    _, report = reported(tmp_path, schedule="zb-v", p=2, m=8, v=2, d=2, pg_desc="undefined", p2p_args="none")
    assert (report.layout.pp, report.layout.dp, report.schedule.name) == (2, 2, "zb-v")
