"""The interval that holds the bubble where stages were not recorded."""

from __future__ import annotations

from statistics import fmean

import pytest

from bubblescope.analysis.missing import interval
from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from tests.analysis.jobs import RANK_0, RANK_1, hidden, job, one_f_one_b, rank, report

SMALL = {"forward_ns": 100_000, "backward_ns": 200_000, "optimizer_ns": 30_000, "kernels": 1, "m": 6}


def test_the_bounds_are_as_defined():
    """Rank 1 works 60 in a span of 60 and a step of 100; the other is between 54 and 60."""
    bubble = report(hidden(one_f_one_b(), 0)).bubble
    assert bubble.measured is None
    assert bubble.lower == 0
    assert bubble.upper == pytest.approx(1 - (60 + 54) / 2 / 100)
    assert bubble.lower < 1 / 3 < bubble.upper


def test_a_rank_that_sees_both_ends_of_the_window_bounds_it():
    """Rank 0 works 60 in the window of 90, of a step of 100; the other is between 54 and 66."""
    bubble = report(hidden(one_f_one_b(), 1)).bubble
    assert bubble.lower == pytest.approx(1 - (60 + 66) / 2 / 90)
    assert bubble.upper == pytest.approx(1 - (60 + 54) / 2 / 90)
    assert bubble.lower < 1 / 3 < bubble.upper


def test_an_unseen_stage_cannot_work_longer_than_the_span():
    """Rank 0 works all of the 40 recorded: 1.1 times that would be more than the time there was."""
    ranks = [rank(r, [(f"{r}F0", 0, w), (f"{r}B0", 40 - w, 40)], steps=[(0, 0, 80)]) for r, w in enumerate((20, 5))]
    bubble = report(job(*ranks, pipelines=[[[0], [1], [2]]])).bubble
    assert bubble.lower == pytest.approx(1 - (40 + 10 + 40) / 3 / 40)
    assert bubble.upper == pytest.approx(1 - (40 + 10 + 9) / 3 / 40)


def test_a_lower_bound_is_never_below_nothing():
    """Both the seen and the unseen stage may have worked all the time."""
    one = rank(0, [("0F0", 0, 20), ("0B0", 20, 40)], steps=[(0, 0, 80)])
    bubble = report(job(one, pipelines=[[[0], [1]]])).bubble
    assert (bubble.lower, bubble.upper) == (0, pytest.approx(1 - (40 + 36) / 2 / 40))


def test_a_step_with_an_unseen_stage_has_no_bubble_of_its_own():
    """It is complete as far as it was recorded, and used for the interval."""
    (step,) = report(hidden(one_f_one_b(), 1)).steps
    assert (step.complete, step.used, step.bubble, step.window_ns) == (True, True, None, None)


def test_a_step_that_ends_early_cannot_shorten_the_window():
    """The span of the seen ranks is the least that the window can be."""
    one = rank(0, RANK_0, steps=[(0, 0, 50)])
    assert report(job(one, pipelines=[[[0], [1]]])).bubble.upper == pytest.approx(1 - (60 + 54) / 2 / 90)


def test_tensor_parallel_ranks_are_one_stage():
    """Of the seen stage's ranks the mean counts, once."""
    pair = job(rank(0, RANK_0), rank(1, RANK_0), rank(2, RANK_1), pipelines=[[[0, 1], [2]]])
    single = report(hidden(one_f_one_b(), 1)).bubble
    assert report(hidden(pair, 2)).bubble.lower == pytest.approx(single.lower)


def test_nothing_used_has_no_interval():
    """No used step, no bound."""
    assert interval(hidden(one_f_one_b(), 1), []) == (None, None)


@pytest.mark.parametrize(
    ("made", "unseen"),
    [
        ({"missing": (2,)}, (2,)),
        ({"missing": (0,)}, (0,)),
        ({"missing": (0, 3)}, (0, 3)),
        ({"missing": (1, 2, 3)}, (1, 2, 3)),
        ({"missing": (1,), "scale": (1.0, 1.05, 0.97, 1.02), "p2p_ns": 4_000, "host_gap_ns": 2_000}, (1,)),
        ({"missing": (2,), "schedule": "gpipe", "jitter": 0.02}, (2,)),
        ({"missing": (1,), "metadata": "none"}, (1,)),
        ({"missing": (1,), "schedule": "interleaved-1f1b", "v": 2, "p": 2}, (1, 3)),
        ({"missing": (0, 3), "p": 2, "d": 2}, (0, 1)),
    ],
    ids=lambda x: ",".join(f"{k}={v}" for k, v in x.items()) if isinstance(x, dict) else "",
)
def test_the_interval_holds_the_truth(tmp_path, made, unseen):
    """Of a job whose hidden ranks are known, and the assumption stands beside the numbers."""
    whole = Job(**(SMALL | made))
    write(whole, tmp_path)
    found = analyze([str(tmp_path)]).report
    assert found.bubble.measured is None
    assert found.bubble.lower <= truth(whole).bubble <= found.bubble.upper
    assert found.bubble.upper - found.bubble.lower < 0.75
    assert found.layout.missing_ranks == whole.missing
    assert found.layout.world_size == whole.world
    assert found.bubble.causes == ()
    assert found.quality.verdict == "degraded"
    (finding,) = (f for f in found.quality.findings if f.code == "missing-ranks")
    assert finding.severity == "warning"
    assert "assumed to work between 0.9 times the lightest and 1.1 times the heaviest seen one" in finding.message
    assert ("open where no recorded rank tells" in finding.message) == (found.bubble.upper == 1)
    assert "nothing states the number of ranks" not in finding.message
    assert f"unseen stages: {', '.join(map(str, unseen))}" in finding.message


@pytest.mark.parametrize(
    "made",
    [{"t": 2, "p": 2, "missing": (1, 2)}, {"d": 2, "p": 2, "missing": (3,)}, {"d": 2, "p": 2, "missing": (1, 3)}],
)
def test_missing_peers_and_replicas_make_no_interval(tmp_path, made):
    """A whole pipeline was seen: the rest is listed, for information."""
    whole = Job(**(SMALL | made))
    write(whole, tmp_path)
    found = analyze([str(tmp_path)]).report
    assert found.bubble.measured == found.bubble.lower == found.bubble.upper
    assert found.bubble.measured == pytest.approx(truth(whole).bubble, abs=0.02)
    assert found.layout.missing_ranks == whole.missing
    assert [f.severity for f in found.quality.findings if f.code == "missing-ranks"] == ["info"]
    assert found.quality.verdict == "ok"


@pytest.mark.parametrize(
    ("made", "untold"),
    [
        ({"missing": (2,)}, ()),
        ({"missing": (0,)}, (1, 2, 3)),
        ({"p": 2, "d": 2, "missing": (0,)}, (2,)),
        ({"p": 2, "d": 2, "missing": (2,)}, ()),
        ({"schedule": "zb-h1", "missing": (3,)}, (0, 1, 2)),
        ({"schedule": "chimera", "host_gaps_ns": (0, 0, 0, 60_000)}, ()),
        ({"schedule": "chimera", "host_gaps_ns": (0, 0, 0, 60_000), "missing": (3,)}, (0, 1, 2)),
    ],
)
def test_the_bubble_of_a_rank_is_right_or_untold(tmp_path, made, untold):
    """It is told of a window: that of a pipeline seen whole, or of one whose first rank was seen and saw it all."""
    whole = Job(**(SMALL | made))
    write(whole, tmp_path)
    found = analyze([str(tmp_path)]).report
    known = [
        (rank.rank, rank.pp, 1 - rank.useful / pipe.window)
        for step in truth(whole).used
        for pipe in step.pipelines
        for rank in pipe.ranks
    ]
    bubbles = {rank: fmean(bubble for its, _, bubble in known if its == rank) for rank, _, _ in known}
    assert {row.rank: row.bubble for row in found.ranks} == {
        row.rank: None if row.rank in untold else pytest.approx(bubbles[row.rank], abs=0.005) for row in found.ranks
    }
    told = {at: [bubble for _, pp, bubble in known if pp == at] for at in range(whole.p)}
    for stage in found.stages:
        lost = set(stage.ranks) <= {*untold, *whole.missing}
        assert stage.bubble == (None if lost else pytest.approx(fmean(told[stage.stage]), abs=0.005))
        assert (stage.warmup_ns is None) == lost
    reasons = {number.number: number.reasons for number in found.quality.numbers}
    assert ("unseen-window" in reasons["ranks"]) == bool(untold)
    assert ("unseen-window" in reasons["stages"]) == any(stage.bubble is None for stage in found.stages)


def test_a_chain_with_a_hole(tmp_path):
    """Only peers tell who belongs together, and they name ranks 3 and 4 of 7, which nobody recorded."""
    whole = Job(**(SMALL | {"p": 7, "labels": "none", "pg_desc": "undefined", "missing": (3, 4)}))
    write(whole, tmp_path)
    found = analyze([str(tmp_path)]).report
    assert [p.ranks for p in found.pipelines] == [tuple(range(7))]
    assert (found.bubble.measured, found.quality.verdict) == (None, "degraded")
    assert found.layout.missing_ranks == (3, 4)
