"""What a reader of the numbers must know, and the verdict on the data."""

from __future__ import annotations

import dataclasses

import pytest

from bubblescope.model.options import StepRange
from bubblescope.model.trace import Finding
from tests.analysis.jobs import RANK_0, RANK_1, again, hidden, job, one_f_one_b, rank, report, steps


def quality(of, **options):
    """The verdict, and the findings by code."""
    found = report(of, **options).quality
    assert len({f.code for f in found.findings}) == len(found.findings)
    return found.verdict, {f.code: f for f in found.findings}


def findings(of, **options):
    """The verdict, and the severity of every code."""
    verdict, found = quality(of, **options)
    return verdict, {code: f.severity for code, f in found.items()}


def test_a_whole_job_has_nothing_to_say():
    """No finding, and ok."""
    assert quality(one_f_one_b(times=3)) == ("ok", {})


def test_an_unseen_stage_degrades():
    """And its ranks and stages are named."""
    verdict, found = quality(hidden(one_f_one_b(), 1))
    assert verdict == "degraded"
    assert found["missing-ranks"].severity == "warning"
    assert "rank 1 of 2 has no trace; unseen stages: 1" in found["missing-ranks"].message


def test_missing_peers_of_a_seen_pipeline_are_for_information():
    """A replica was not recorded."""
    whole = job(*(rank(r, RANK_0 if r < 2 else RANK_1) for r in range(4)), pipelines=[[[0], [2]], [[1], [3]]])
    assert findings(hidden(whole, 1, 3)) == ("ok", {"missing-ranks": "info"})


def test_two_halves_of_two_replicas_degrade():
    """Each stage was recorded somewhere, but no pipeline as a whole."""
    whole = job(*(rank(r, RANK_0 if r < 2 else RANK_1) for r in range(4)), pipelines=[[[0], [2]], [[1], [3]]])
    verdict, found = quality(hidden(whole, 0, 3))
    assert (verdict, found["missing-ranks"].severity) == ("degraded", "warning")
    assert report(hidden(whole, 0, 3)).bubble.measured is None


def test_many_missing_ranks_are_counted_not_listed():
    """In runs."""
    whole = job(
        rank(0, RANK_0), rank(1, RANK_1), pipelines=[[[0], [1]], *([[2 * d], [2 * d + 1]] for d in range(1, 9))]
    )
    message = quality(whole)[1]["missing-ranks"].message
    assert message == "ranks 2-17 of 18 have no trace"


def test_incomplete_steps_are_a_warning():
    """They are named, and left out."""
    of = job(rank(0, again(RANK_0, 3)[:-1], steps=steps(3)), rank(1, again(RANK_1, 3), steps=steps(3)))
    verdict, found = quality(of)
    assert (verdict, found["incomplete-steps"].severity) == ("ok", "warning")
    assert found["incomplete-steps"].message == "left out, for actions are missing in them: 1 of 3 steps (2)"


def test_incomplete_steps_do_not_matter_without_a_pipeline():
    """No action is expected in any of them."""
    one = rank(0, stray=[(0, 10)], steps=steps(2))
    other = rank(1, stray=[(0, 10)], steps=steps(1))
    assert findings(alone(one, other)) == ("ok", {})


def alone(*ranks):
    """A job without a pipeline."""
    of = job(*ranks)
    return dataclasses.replace(of, plan=dataclasses.replace(of.plan, pp=1, pipelines=()), placement={})


def test_a_rank_without_actions_is_unlabelled():
    """The rank is named, and the numbers are degraded."""
    verdict, found = quality(job(rank(0, RANK_0), rank(1, stray=[(0, 60)])))
    assert verdict == "degraded"
    assert "rank 1:" in found["unlabelled"].message
    assert "record_function" in found["unlabelled"].message


def test_actions_told_by_kernels_alone_degrade():
    """The finding says which ranks, how much of the compute is explained, and what to add to the script."""
    zero, one = rank(0, RANK_0, stray=[(60, 75)]), dataclasses.replace(rank(1, RANK_1), reconstruction="kernels")
    verdict, found = quality(job(zero, one))
    assert verdict == "degraded"
    assert "of rank 1 were told from kernels and messages alone" in found["told-by-kernels"].message
    assert "explains 100% of the compute" in found["told-by-kernels"].message
    assert "record_function" in found["told-by-kernels"].message


@pytest.mark.parametrize(("stray", "verdict"), [(6, "ok"), (7, "degraded")])
def test_under_nine_tenths_of_explained_compute_degrade(stray, verdict):
    """60 of 66 explained are enough (91 %), 60 of 67 are not (89.6 %); rank 1 has no stray work at all."""
    zero = rank(0, RANK_0, stray=[(25, 25 + stray)])
    of = job(zero, pipelines=[[[0]]])
    found = findings(of)
    assert found[0] == verdict
    assert found[1].get("unexplained-work") == (None if verdict == "ok" else "warning")


def test_compute_outside_the_actions_needs_no_explanation():
    """A long kernel after the pipeline."""
    assert findings(job(rank(0, RANK_0, stray=[(95, 400)]), rank(1, RANK_1))) == ("ok", {})


def test_steps_that_are_not_used_need_no_explanation():
    """The first of three steps is full of unknown work."""
    zero = rank(0, again(RANK_0, 3), stray=[(20, 40)], steps=steps(3))
    assert findings(job(zero, rank(1, again(RANK_1, 3), steps=steps(3)))) == ("ok", {})
    assert findings(job(zero, rank(1, again(RANK_1, 3), steps=steps(3))), steps=StepRange(0, 0))[0] == "degraded"


HALF = ("recv 0 1F0", 0, 10)


def test_halves_without_a_partner_are_counted():
    """A receive that nobody sent, with all traces there."""
    _, found = quality(job(rank(0, RANK_0), rank(1, RANK_1, messages=[HALF])))
    assert found["unpaired-p2p"].severity == "info"
    assert found["unpaired-p2p"].message == "1 send or receive could not be paired with the other side"


def test_halves_of_missing_ranks_are_not_missed():
    """The other half cannot be there."""
    assert "unpaired-p2p" not in quality(job(rank(1, RANK_1, messages=[HALF])))[1]


def test_paired_halves_are_not_mentioned():
    """Both are there."""
    of = job(rank(0, RANK_0, messages=[("send 1 0F0", 5, 10)]), rank(1, RANK_1, messages=[HALF]))
    assert findings(of) == ("ok", {})


@pytest.mark.parametrize(("ranks", "codes"), [(2, {"clock-uncertain": "warning"}), (1, {})])
def test_files_without_absolute_times_cannot_be_compared(ranks, codes):
    """One file has nothing to be compared with."""
    of = job(*(rank(r, (RANK_0, RANK_1)[r]) for r in range(ranks)), pipelines=[[[r] for r in range(ranks)]])
    assert findings(dataclasses.replace(of, clock=dataclasses.replace(of.clock, method="none"))) == ("ok", codes)


def test_kernels_that_may_be_messages_are_mentioned_without_a_pipeline():
    """This may be a pipeline after all."""
    one = rank(0, stray=[(0, 5)], messages=[("either ?", 5, 9)])
    assert findings(alone(one)) == ("degraded", {"unlabelled": "warning"})


def test_findings_of_files_and_of_the_job_come_along():
    """First those of the files, in the order of their ranks."""
    of = one_f_one_b()
    own = dataclasses.replace(of.timelines[1], findings=(Finding("unpaired-events", "warning", "2 halves", "b.json"),))
    of = dataclasses.replace(
        of, timelines={**of.timelines, 1: own}, findings=(Finding("skipped", "info", "no trace", "notes.txt"),)
    )
    assert findings(of) == ("ok", {"unpaired-events": "warning", "skipped": "info"})


@pytest.mark.parametrize("code", ["lost-kernels", "layout-assumed", "repaired", "truncated"])
@pytest.mark.parametrize(("severity", "verdict"), [("warning", "degraded"), ("info", "ok")])
def test_some_findings_degrade_unless_they_are_for_information(code, severity, verdict):
    """Whoever found them."""
    of = dataclasses.replace(one_f_one_b(), findings=(Finding(code, severity, "..."),))
    assert findings(of)[0] == verdict


def test_a_stated_count_of_micro_batches_that_no_step_has_is_said_and_not_used():
    """No number of the report rests on it."""
    found, plain = report(one_f_one_b(times=2), microbatches=3), report(one_f_one_b(times=2), microbatches=2)
    assert [(f.code, f.severity) for f in found.quality.findings] == [("metadata-conflict", "warning")]
    assert found.quality.findings[0].message == (
        "--microbatches 3 contradicts the traces, whose steps have 2 micro-batches; those of 2 are measured"
    )
    assert plain.quality.findings == ()
    assert (found.schedule, found.throughput, found.bubble) == (plain.schedule, plain.throughput, plain.bubble)


def test_a_lost_action_makes_only_its_step_incomplete():
    """The others are used as ever."""
    one = rank(1, [row for row in again(RANK_1, 4) if row[:2] != ("1B1", 350)], steps=steps(4))
    found = report(job(rank(0, again(RANK_0, 4), steps=steps(4)), one))
    assert [s.step for s in found.steps if s.used] == [1, 2]
    assert found.bubble.measured == pytest.approx(1 / 3)
