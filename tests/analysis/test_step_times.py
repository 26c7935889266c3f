"""How long a step takes: from one to the next, where steps follow each other."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest

from bubblescope.analysis.step_times import step_times, unlike
from bubblescope.analysis.study import study
from bubblescope.model.job import Job
from bubblescope.model.options import Options, StepRange
from tests.analysis.jobs import RANK_0, RANK_1, again, job, one_f_one_b, rank, report


def times(of, **options):
    """The times of the used steps of a job."""
    return step_times(study(of, Options(**options)))


def late(*starts: int) -> Job:
    """One rank's job whose steps last 90 each and begin at the moments given."""
    rows = [row for k, at in enumerate(starts) for row in (("0F0", at, at + 30, k), ("0B0", at + 30, at + 90, k))]
    return job(rank(0, rows, steps=[(k, at, at + 90) for k, at in enumerate(starts)]))


def test_a_step_that_is_followed_lasts_until_the_next_one_begins():
    """What lies between two steps counts; the last step lasts as long as it was recorded."""
    assert times(late(0, 100, 350)) == {1: 250, 2: 90}


def test_ranks_that_begin_late_make_no_step_longer():
    """Every rank's steps are 100 apart, though the second rank begins and ends each 10 later."""
    pipeline = [rank(0, again(RANK_0, 3), steps=[(k, 100 * k, 100 * k + 100) for k in range(3)])]
    pipeline += [rank(1, again(RANK_1, 3), steps=[(k, 100 * k + 10, 100 * k + 110) for k in range(3)])]
    assert times(job(*pipeline)) == {1: 100, 2: 100}


def behind_an_evaluation(late: int = 0) -> Job:
    """Two ranks that train, evaluate and train twice, as `one_f_one_b()` does; each works 2 more at a training's end.

    The second rank ends an evaluation 10 after the first one, which trains by then, and a training 20 before it. The
    first rank is known to begin step 2 only `late` after its first action.
    """
    at = {0: 0, 2: 112, 3: 204}
    evaluated = ((("0F0", 92, 102, 1), ("0F1", 102, 112, 1)), (("1F0", 102, 112, 1), ("1F1", 112, 122, 1)))
    begun = ((0, 92, 112 + late, 204, 296), (0, 72, 122, 184, 276))
    lines = []
    for number, (mine, forwards) in enumerate(zip((RANK_0, RANK_1), evaluated, strict=True)):
        rows = [(name, start + by, end + by, k) for k, by in at.items() for name, start, end in mine]
        marks = [(k, start, end) for k, (start, end) in enumerate(pairwise(begun[number]))]
        lines.append(rank(number, sorted((*rows, *forwards), key=lambda row: row[1]), steps=marks))
    return job(*lines)


def test_ranks_that_begin_late_behind_an_evaluation_make_a_step_no_shorter():
    """From its begin to its next the second rank takes 62, the first one the 92 that a training takes."""
    assert times(behind_an_evaluation()) == {2: 92, 3: 92}


def test_a_step_behind_an_evaluation_is_no_shorter_than_its_pipeline():
    """Where the longest rank tells 87, the pipeline of 90 tells more."""
    assert times(behind_an_evaluation(late=5))[2] == 90


def test_ranks_that_begin_late_behind_an_evaluation_are_cut_into_the_same_steps():
    """Though a step behind one lasts half as long again on one rank, and more, each time."""
    at = {0: 0, 2: 112, 4: 224}
    evaluated = ((("0F0", 92, 102), ("0F1", 102, 112)), (("1F0", 102, 112), ("1F1", 112, 122)))
    begun = ((0, 92, 112, 204, 224, 316), (0, 72, 122, 182, 234, 294))
    lines = []
    for number, (mine, forwards) in enumerate(zip((RANK_0, RANK_1), evaluated, strict=True)):
        rows = [(name, start + by, end + by, k) for k, by in at.items() for name, start, end in mine]
        rows += [
            (name, start + by, end + by, k) for k, by in ((1, 0), (3, 112), (5, 224)) for name, start, end in forwards
        ]
        marks = [(k, start, end) for k, (start, end) in enumerate(pairwise((*begun[number], 340)))]
        lines.append(rank(number, sorted(rows, key=lambda row: row[1]), steps=marks))
    found = study(job(*lines), Options())
    assert step_times(found) == {2: 92, 4: 92}
    assert unlike(found) == ()


def test_shares_of_a_step_behind_an_evaluation_are_of_its_time():
    """Each rank is useful for 60 of 92: the second one from the begin of the first one on."""
    rows = report(behind_an_evaluation()).ranks
    assert [row.useful for row in rows] == [pytest.approx(60 / 92)] * 2


def skewed(of: Job, method: str = "recorded") -> Job:
    """The job with the clock of its second rank 7000 ahead, which nobody has noticed."""
    lines = {r: t.moved(lambda times, by=7_000 * r: times + by) for r, t in of.timelines.items()}
    return dataclasses.replace(of, timelines=lines, clock=dataclasses.replace(of.clock, method=method))


def test_clocks_that_disagree_change_no_step_that_is_followed():
    """Each rank is asked by its own clock."""
    assert times(skewed(one_f_one_b(times=3)))[1] == times(one_f_one_b(times=3))[1] == 100


def test_steps_that_do_not_follow_each_other_say_nothing_of_what_lies_between_them():
    """Step 5 is not the one behind step 1."""
    rows = [*again((("0F0", 0, 30), ("0B0", 30, 90)), 1), ("0F0", 900, 930, 1), ("0B0", 930, 990, 1)]
    assert times(job(rank(0, rows, steps=[(1, 0, 90), (5, 900, 990)]))) == {1: 90, 5: 90}


def test_steps_that_begin_their_clocks_anew_last_as_long_as_they_were_recorded():
    """Where the file counts from each step's start, the time between two steps is made up."""
    of = late(0, 100, 350)
    anew = {r: dataclasses.replace(t, restarts=True) for r, t in of.timelines.items()}
    assert times(dataclasses.replace(of, timelines=anew)) == {1: 90, 2: 90}


@pytest.mark.parametrize("method", ["recorded", "none"])
def test_a_step_by_itself_lasts_as_on_its_longest_rank(method):
    """A single step of two ranks, 7000 apart by their clocks, lasts 100 and no 7100."""
    assert times(skewed(one_f_one_b(), method)) == {0: 100}


def test_steps_picked_out_of_a_longer_run_last_by_themselves():
    """Of six only two follow each other, 500 apart: that is no reason to count one of them otherwise."""
    numbers = (1, 2, 10, 20, 30, 40)
    rows = [
        row for k in range(6) for row in (("0F0", 500 * k, 500 * k + 30, k), ("0B0", 500 * k + 30, 500 * k + 90, k))
    ]
    marked = [(number, 500 * k, 500 * k + 90) for k, number in enumerate(numbers)]
    assert times(job(rank(0, rows, steps=marked))) == dict.fromkeys(numbers[1:], 90)


def test_a_step_that_is_not_used_has_no_time():
    """Only the steps that means take are timed, but one that is not taken may follow."""
    assert times(late(0, 100, 350), steps=StepRange(1, 1)) == {1: 250}


@pytest.mark.parametrize(("apart", "doubted"), [(100, False), (140, False), (160, True), (210, True)])
def test_steps_that_last_half_as_long_again_on_one_rank_are_not_the_same(apart, doubted):
    """Ranks of a job wait for each other once a step; so some were told of other steps, and the speed is in doubt."""
    rows = [rank(0, again(RANK_0, 4), steps=[(k, 100 * k, 100 * k + 100) for k in range(4)])]
    later = [(name, at + (apart - 100) * k, end + (apart - 100) * k, k) for name, at, end, k in again(RANK_1, 4)]
    rows += [rank(1, later, steps=[(k, apart * k, apart * k + apart) for k in range(4)])]
    of = job(*rows)
    assert [finding.code for finding in unlike(study(of, Options()))] == ["steps-assumed"] * doubted
    speed = next(number for number in report(of).quality.numbers if number.number == "throughput")
    assert speed.verdict == ("degraded" if doubted else "ok")


def test_of_one_step_nothing_is_said():
    """A rank may have begun late."""
    rows = [rank(0, again(RANK_0, 2), steps=[(0, 0, 100), (1, 100, 200)])]
    rows += [rank(1, again(RANK_1, 2), steps=[(0, 0, 40), (1, 40, 200)])]
    assert unlike(study(job(*rows), Options())) == ()
