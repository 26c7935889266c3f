"""The committed recordings: what the tool finds in them, against numbers derived from the events by hand."""

from __future__ import annotations

import gzip
import json
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
# microseconds that may or may not be counted to a forward, at most 0.05 points. In zb-v torch adds
# up its weight gradients by operators without a link: there all under its labels are counted. No
# closed form holds for zb-v, as the first stage computes no input gradients: None.
TRUTH = {
    "gpipe_p4m8": ("gpipe", 4, 8, 1, 3 / 11, 0.29308),
    "1f1b_p4m8": ("1f1b", 4, 8, 1, 3 / 11, 0.29166),
    "1f1b_p4m8_slow_last": ("1f1b", 4, 8, 1, 3 / 11, 0.40766),
    "interleaved_1f1b_p4m8v2": ("interleaved-1f1b", 4, 8, 2, 3 / 19, 0.17787),
    "looped_bfs_p2m6v2": ("looped-bfs", 2, 6, 2, 1 / 13, 0.09934),
    "zb_v_p2m6": ("zb-v", 2, 6, 2, None, 0.05512),
    "megatron_1f1b_p4m8": ("1f1b", 4, 8, 1, 3 / 11, 0.29195),
    "megatron_1f1b_p2t2m4": ("1f1b", 2, 4, 1, 1 / 5, 0.21830),
    "megatron_interleaved_1f1b_p4m8v2": ("interleaved-1f1b", 4, 8, 2, 3 / 19, 0.18202),
    "deepspeed_p4m8": ("1f1b", 4, 8, 1, 3 / 11, 0.29584),
    "deepspeed_p2d2m6": ("1f1b", 2, 6, 1, 1 / 7, 0.17229),
}

# The bubble of the sleeping times alone, with free transfers: 1 - mean of a rank's work / window, by hand. Where
# stages are equal it is the closed form. The heavy last stage makes the window 3 x 20 + 8 x 90 + 3 x 40 = 900 ms for
# (3 x 480 + 720) / 4 = 540 ms of work. In zb-v rank 1 waits 20 ms for its first activation, and afterwards no more.
IDEAL = {name: truth[4] for name, truth in TRUTH.items()} | {
    "1f1b_p4m8_slow_last": 1 - 540 / 900,
    "zb_v_p2m6": 1 - 720 / 740,
}

LABELLED = ("interleaved_1f1b_p4m8v2", "looped_bfs_p2m6v2", "zb_v_p2m6")


def recorded(name: str):
    """What the recorder wrote about a sample."""
    return json.loads((SAMPLES / name / "recorded.json").read_bytes())


@pytest.fixture(params=TRUTH, name="sample", scope="module")
def _sample(request):
    """(truth, report) of each sample."""
    return TRUTH[request.param], analyze([str(SAMPLES / request.param)]).report


def test_no_link_is_slow(sample):
    """All ranks of a recording ran on one host."""
    assert sample[1].links
    assert not [link for link in sample[1].links if link.slow]


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
    if formula is None:
        assert report.bubble.formula_source == "simulated"
    else:
        assert report.bubble.formula == pytest.approx(formula, abs=1e-12)
        assert report.bubble.formula_source == "closed-form"


@pytest.mark.parametrize("name", TRUTH)
def test_the_recorded_times_are_found_again(name):
    """Stages take their sleeping times and a tenth more at most; replayed, they leave the bubble of arithmetic."""
    report, run = analyze([str(SAMPLES / name)]).report, recorded(name)
    assert report.bubble.replay == pytest.approx(IDEAL[name], abs=0.003)
    slept = {stage["stage"]: stage for stage in run["stages"]}
    assert {stage.stage for stage in report.stages} == set(slept)
    for stage in report.stages:
        times = slept[stage.stage]
        backward = times["input_grad_ms"] + times["weight_grad_ms"]
        assert times["forward_ms"] <= stage.forward_ns / 1e6 <= 1.1 * times["forward_ms"]
        found = (stage.backward_ns or 0) + (stage.weight_ns or 0)
        assert backward <= found / 1e6 <= 1.1 * backward
        assert stage.work_ns / 1e6 >= run["microbatches"] * (times["forward_ms"] + backward)


@pytest.mark.parametrize("name", TRUTH)
def test_every_rank_is_where_it_ran(name):
    """Degrees, the ranks of each stage and the replicas of the pipeline are those of the recorder."""
    report, run = analyze([str(SAMPLES / name)]).report, recorded(name)
    tensor, data = run.get("tensor", 1), run.get("data", 1)
    assert (report.layout.tp, report.layout.dp) == (tensor, data)
    assert report.layout.world_size == run["ranks"]
    held = {(stage["stage"], stage["rank"]) for stage in run["stages"]}
    assert {(stage.stage, rank) for stage in report.layout.stages for rank in stage.ranks} == held
    replicas = [{rank for rank in range(run["ranks"]) if rank // tensor % data == number} for number in range(data)]
    assert [set(pipeline.ranks) for pipeline in report.pipelines] == replicas


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
        mean = sum(idle[rank] for rank in stage.ranks) / len(stage.ranks)
        assert phases == pytest.approx(mean, abs=5)  # each mean is rounded to the nanosecond


@pytest.mark.parametrize("name", LABELLED)
def test_an_unlabelled_sample_differs_by_its_labels_alone(name, unlabelled):
    """The copy has every event but the labels, each as it was."""
    for path in (SAMPLES / name).glob("rank*"):
        before, after = (
            orjson.loads(gzip.decompress(file.read_bytes())).pop("traceEvents")
            for file in (path, unlabelled(name) / path.name)
        )
        assert [event for event in before if not event["name"].startswith("PP:")] == after
        assert len(after) < len(before)


def test_the_formula_of_zb_v_is_what_equal_stages_owe():
    """With every input gradient at the mean of 15 ms and every weight gradient at 25 ms the window is 740 ms, too."""
    report = analyze([str(SAMPLES / "zb_v_p2m6")]).report
    assert report.bubble.formula == pytest.approx(1 - 720 / 740, abs=0.003)


@pytest.mark.parametrize("name", LABELLED)
def test_a_sample_without_its_labels_is_reconstructed(name, unlabelled):
    """Schedule, micro-batches, the place of every stage and the bubble are found without labels as with them."""
    schedule, _, microbatches, chunks, _, counted = TRUTH[name]
    report = analyze([str(unlabelled(name))]).report
    assert report.schedule.reconstruction != "labels"
    assert (report.schedule.name, report.schedule.microbatches) == (schedule, microbatches)
    assert report.layout.virtual == chunks
    held = {(stage["stage"], stage["rank"]) for stage in recorded(name)["stages"]}
    assert {(stage.stage, rank) for stage in report.layout.stages for rank in stage.ranks} == held
    assert report.bubble.measured == pytest.approx(counted, abs=0.001)


def test_the_slow_stage_is_named():
    """A last stage 1.5 times as heavy is the slowest, 12/9 times the mean."""
    report = analyze([str(SAMPLES / "1f1b_p4m8_slow_last")]).report
    assert report.imbalance.slowest_stage == 3
    assert report.imbalance.stage_ratio == pytest.approx(12 / 9, abs=0.005)
