"""The committed recordings: what the tool finds in them, against numbers derived from the events by hand."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import orjson
import pytest

from bubblescope.engine import analyze
from bubblescope.report.json import render, schema

SAMPLES = Path(__file__).parent.parent / "sample_traces"

# Folder: schedule, p, m, v, closed form, and the bubble counted from the events without this
# program: 1 - mean over ranks of (union of operators linked to a backward) / (first start to last
# end), mean of the last two of three steps. The two counts differ by operators of a few
# microseconds that may or may not be counted to a forward, at most 0.05 points.
TRUTH = {
    "gpipe_p4m8": ("gpipe", 4, 8, 1, 3 / 11, 0.29308),
    "1f1b_p4m8": ("1f1b", 4, 8, 1, 3 / 11, 0.29166),
    "1f1b_p4m8_slow_last": ("1f1b", 4, 8, 1, 3 / 11, 0.40766),
    "interleaved_1f1b_p4m8v2": ("interleaved-1f1b", 4, 8, 2, 3 / 19, 0.17787),
    "looped_bfs_p2m6v2": ("looped-bfs", 2, 6, 2, 1 / 13, 0.09934),
}


@pytest.fixture(params=TRUTH, name="sample", scope="module")
def _sample(request):
    """(truth, report) of each sample."""
    return TRUTH[request.param], analyze([str(SAMPLES / request.param)]).report


def test_schedule_and_shape_are_recognised(sample):
    """Every sample's schedule, p, m and v are found with certainty."""
    (name, p, m, v, _, _), report = sample
    assert (report.schedule.name, report.layout.pp, report.schedule.microbatches) == (name, p, m)
    assert report.layout.virtual == v
    assert report.schedule.confidence == 1
    assert report.quality.verdict == "ok"


def test_bubble_is_the_one_counted_by_hand(sample):
    """The measured bubble is that of a count by hand, the formula the closed form."""
    (*_, formula, counted), report = sample
    assert report.bubble.measured == pytest.approx(counted, abs=0.0005)
    assert report.bubble.formula == pytest.approx(formula, abs=1e-12)
    assert report.bubble.formula_source == "closed-form"


def test_steps_are_three_and_the_first_is_left_out(sample):
    """Means take the last two steps."""
    assert [(s.complete, s.used) for s in sample[1].steps] == [(True, False), (True, True), (True, True)]


def test_report_is_valid(sample):
    """The JSON of every sample validates against the published schema."""
    jsonschema.validate(orjson.loads(render(sample[1])), orjson.loads(schema()))


def test_parts_of_every_rank_add_up(sample):
    """Partition and phases add up: to the window, and to its idle part."""
    report = sample[1]
    for rank in report.ranks:
        parts = rank.compute_ns + rank.in_stage_comm_ns + rank.dp_ns + rank.pp_ns + rank.host_ns + rank.other_ns
        assert parts == rank.window_ns
    idle = {rank.rank: rank.window_ns - rank.compute_ns - rank.in_stage_comm_ns for rank in report.ranks}
    for stage in report.stages:
        phases = stage.warmup_ns + stage.steady_ns + stage.cooldown_ns
        assert phases == pytest.approx(idle[stage.ranks[0]], abs=5)  # each mean is rounded to the nanosecond


def test_the_slow_stage_is_named():
    """A last stage 1.5 times as heavy is the slowest, 12/9 times the mean."""
    report = analyze([str(SAMPLES / "1f1b_p4m8_slow_last")]).report
    assert report.imbalance.slowest_stage == 3
    assert report.imbalance.stage_ratio == pytest.approx(12 / 9, abs=0.005)
    assert report.bubble.replay == pytest.approx(0.40, abs=0.003)  # 1 - 540/900 with free transfers
