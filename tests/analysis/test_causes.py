"""Why the bubble is what it is: one trouble at a time, planted by hand."""

from __future__ import annotations

import dataclasses

import pytest

from bubblescope.analysis.causes import CAUSES
from bubblescope.model.options import StepRange
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.replay import Delays, replay
from tests.analysis.jobs import RANK_0, RANK_1, hidden, job, one_f_one_b, rank, report, steps

# 1f1b with p = m = 2, F 10 and B 20: a window of 90 of which each rank works 60. `played` runs it with changes.


def played(*, lengths=(), delays=None, replicas=1, slow=()):
    """A job as a replay of 1f1b makes it; `lengths` and, in the last replica, `slow` change those of single actions."""
    timelines, orders = [], find("1f1b").orders(Shape(2, 2))
    for replica in range(replicas):
        times = {a: 10.0 if a.kind == 0 else 20.0 for order in orders.values() for a in order}
        changed = dict(lengths) | (dict(slow) if replica == replicas - 1 else {})
        times = {a: changed.get(str(a), length) for a, length in times.items()}
        run = replay(orders, times, last_stage=1, delays=delays or Delays())
        for position, order in orders.items():
            rows = [(str(a), round(run.start[a]), round(run.end[a])) for a in order]
            timelines.append(rank(position * replicas + replica, rows))
    lines = [[[r], [replicas + r]] for r in range(replicas)]
    return job(*timelines, pipelines=lines)


def parts(of, **options):
    """Nanoseconds of each cause, after checks that hold for every report."""
    bubble = report(of, **options).bubble
    assert tuple(cause.cause for cause in bubble.causes) == CAUSES
    assert sum(cause.share for cause in bubble.causes) == pytest.approx(bubble.measured, abs=1e-12)
    assert sum(cause.points for cause in bubble.causes) == pytest.approx(bubble.measured, abs=1e-12)
    assert bubble.causes[0].points == bubble.formula
    assert sum(cause.points for cause in bubble.causes[1:]) == pytest.approx(bubble.gap, abs=1e-12)
    return {cause.cause: cause.ns for cause in bubble.causes if cause.ns}


def test_a_run_as_in_the_book_owes_its_structure_only():
    """30 of 90 are the fill and drain of two ranks, and nothing is left over."""
    assert parts(one_f_one_b()) == {"structural": 30}
    shares = {cause.cause: cause.share for cause in report(one_f_one_b()).bubble.causes}
    assert shares == pytest.approx(dict.fromkeys(CAUSES, 0.0) | {"structural": 1 / 3})


def test_a_heavy_stage_is_imbalance():
    """Stage 1 works twice as long as stage 0, so that 150 are needed where equal stages of the mean need 135."""
    heavy = {f"1{kind}{i}": 2 * length for kind, length in (("F", 10), ("B", 20)) for i in range(2)}
    assert parts(played(lengths=heavy)) == {"structural": 45, "imbalance": 15}


def test_one_long_action_and_one_short_are_jitter():
    """0F0 takes 15 and 0F1 5: the stage is no heavier for it, but all that waits for the first comes 5 later."""
    assert parts(played(lengths={"0F0": 15, "0F1": 5})) == {"structural": 30, "jitter": 5}


def test_a_slow_replica_is_a_straggler():
    """Of three replicas one has a stage 1 of twice the work: no heavy stage, as the other two show."""
    slow = {f"1{kind}{i}": 2 * length for kind, length in (("F", 10), ("B", 20)) for i in range(2)}
    found = parts(played(replicas=3, slow=slow.items()))
    assert "imbalance" not in found
    assert found == {"structural": (30 + 30 + 45) // 3, "straggler": 15 // 3}


def test_transfers_are_p2p():
    """Each of two messages on the way takes 5: the step is longer by what 1f1b cannot hide."""
    sent = [("send 1 0F0", 10, 15), ("send 1 0F1", 20, 25), ("recv 1 0B0", 20, 50), ("recv 1 0B1", 60, 85)]
    received = [("recv 0 1F0", 5, 15), ("recv 0 1F1", 10, 25), ("send 0 1B0", 45, 50), ("send 0 1B1", 80, 85)]
    first = [("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 50, 70), ("0B1", 85, 105)]
    second = [("1F0", 15, 25), ("1B0", 25, 45), ("1F1", 45, 55), ("1B1", 55, 75)]
    late = [("send 0 1B1", 75, 80) if text == "send 0 1B1" else (text, s, e) for text, s, e in received]
    first[-1] = ("0B1", 80, 100)
    sent[-1] = ("recv 1 0B1", 70, 80)
    assert parts(job(rank(0, first, messages=sent), rank(1, second, messages=late))) == {"structural": 30, "p2p": 10}


def test_a_late_host_is_host():
    """1F1 begins 7 after its input and the action before: the end moves by 7."""
    rows = [("1F0", 10, 20), ("1B0", 20, 40), ("1F1", 47, 57), ("1B1", 57, 77)]
    first = [("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 40, 60), ("0B1", 77, 97)]
    messages = [("send 1 0F0", 10, 10), ("send 1 0F1", 20, 20), ("recv 1 0B0", 20, 40), ("recv 1 0B1", 60, 77)]
    other = [("recv 0 1F0", 0, 10), ("recv 0 1F1", 20, 20), ("send 0 1B0", 40, 40), ("send 0 1B1", 77, 77)]
    assert parts(job(rank(0, first, messages=messages), rank(1, rows, messages=other))) == {"structural": 30, "host": 7}


def test_a_hole_inside_an_action_is_host():
    """Nothing runs for 6 of the 20 of each backward of stage 1: the work is the rest, the hole the host's."""
    work = [("1F0", 10, 20), ("1B0", 20, 27), ("1B0", 33, 40), ("1F1", 40, 50), ("1B1", 50, 57), ("1B1", 63, 70)]
    holed = rank(1, [("1F0", 10, 20), ("1B0", 20, 40), ("1F1", 40, 50), ("1B1", 50, 70)], work=work)
    assert parts(job(one_f_one_b().timelines[0], holed))["host"] == 12


def test_what_no_replay_explains_is_left_over():
    """The last action begins 50 late for no reason that any action or message shows: residual, and not trusted."""
    first = [("0F0", 50, 60), ("0F1", 60, 70), ("0B0", 90, 110), ("0B1", 120, 140)]
    second = [("1F0", 0, 10), ("1B0", 70, 90), ("1F1", 90, 100), ("1B1", 100, 120)]
    bubble = report(job(rank(0, first), rank(1, second))).bubble
    assert abs(bubble.causes[-1].share) > 0.05
    assert not bubble.trusted


def test_a_block_of_two_is_replayed_as_one():
    """0F1 overlaps 0B0 under one label: it waits for the gradient too, and its output leaves at the end of both."""
    first = [("0F0", 0, 10), ("(0F1;0B0)", 40, 50, 70), ("0B1", 100, 120)]
    second = [("1F0", 10, 20), ("1B0", 20, 40), ("1F1", 70, 80), ("1B1", 80, 100)]
    bubble = report(job(rank(0, first), rank(1, second))).bubble
    assert (bubble.measured, bubble.replay) == (0.5, 0.5)
    assert bubble.causes[0].share == 0.5


def test_steps_count_alike():
    """Means are taken over the used steps, as the measured bubble is."""
    of = one_f_one_b(times=3)
    assert parts(of) == parts(one_f_one_b())


def test_no_causes_without_all_stages():
    """Where a stage is unseen nothing is explained."""
    assert report(hidden(one_f_one_b(), 1)).bubble.causes == ()


def test_no_causes_of_an_order_that_cannot_be():
    """An order that deadlocks cannot be replayed."""
    first, second = "0B0 0F0 0F1 0B1", "1F0 1B0 1F1 1B1"
    rows = [[(name, 10 * k, 10 * k + 10) for k, name in enumerate(text.split())] for text in (first, second)]
    assert report(job(*(rank(r, row) for r, row in enumerate(rows)))).bubble.causes == ()


def heavy_and_late():
    """Stage 1 works twice as long as stage 0, 0F0 takes 5 more and 0F1 5 less, and messages take 4 to move."""
    heavy = {f"1{kind}{i}": 2 * length for kind, length in (("F", 10), ("B", 20)) for i in range(2)}
    return played(lengths=heavy | {"0F0": 15, "0F1": 5}, replicas=2, slow={"0B1": 32}.items())


def test_every_order_of_the_causes_adds_up_too():
    """Shapley's division adds up to the measured bubble, and the structural part is the same in both."""
    by_turns, at_once = (report(heavy_and_late(), attribution=how) for how in ("ladder", "shapley"))
    at_once.self_check()
    assert at_once.bubble.causes[0].share == by_turns.bubble.causes[0].share
    assert at_once.bubble.causes[-1].share == pytest.approx(by_turns.bubble.causes[-1].share, abs=1e-12)


def test_a_cause_by_itself_costs_the_same_in_every_order():
    """With one trouble only, what it costs first, last, alone and on average is one number."""
    heavy = {f"1{kind}{i}": 2 * length for kind, length in (("F", 10), ("B", 20)) for i in range(2)}
    found = {cause.cause: cause for cause in report(played(lengths=heavy), attribution="shapley").bubble.causes}
    imbalance = found["imbalance"]
    assert (imbalance.alone, imbalance.removed) == pytest.approx((imbalance.points, imbalance.points))
    assert imbalance.points == pytest.approx(15 / 150 * (1 - 1 / 3))


def test_two_causes_share_what_only_both_make():
    """0F1 is 5 late only with 0F0 long, which hides a slow link: each is charged half of what they have in common."""
    found = report(heavy_and_late(), attribution="shapley").bubble.causes
    told = {cause.cause: cause for cause in found if cause.alone is not None}
    assert set(told) == set(CAUSES[1:-1])
    for cause in told.values():
        assert min(cause.alone, cause.removed) - 0.01 <= cause.points <= max(cause.alone, cause.removed) + 0.01


def test_brackets_are_not_given_unasked():
    """The ladder alone says nothing of a cause by itself."""
    assert {(cause.alone, cause.removed) for cause in report(one_f_one_b()).bubble.causes} == {(None, None)}


def test_a_heavy_stage_costs_those_who_wait_for_it():
    """Of 150, stage 0 waits 90 and stage 1 only 30: both owe a third to the schedule, the rest is who works more."""
    heavy = {f"1{kind}{i}": 2 * length for kind, length in (("F", 10), ("B", 20)) for i in range(2)}
    light, slow = report(played(lengths=heavy)).bubble.by_position
    assert (light.stages, slow.stages) == ((0,), (1,))
    assert light.bubble == pytest.approx(90 / 150)
    assert slow.bubble == pytest.approx(30 / 150)
    assert (light.points["structural"], slow.points["structural"]) == pytest.approx((1 / 3, 1 / 3))
    assert light.points["imbalance"] == pytest.approx(90 / 150 - 1 / 3)
    assert slow.points["imbalance"] == pytest.approx(30 / 150 - 1 / 3)


def test_phases_of_a_run_as_in_the_book():
    """Rank 0 waits 20 for its first backward and 10 for its second, rank 1 for its first forward and after its last."""
    rows = {row.phase: row for row in report(one_f_one_b()).bubble.by_phase}
    assert {phase: row.points["structural"] for phase, row in rows.items()} == pytest.approx(
        {"warmup": (20 + 10) / 180, "steady": 0.0, "cooldown": (10 + 20) / 180}
    )


def test_a_step_has_causes_of_its_own():
    """In the last of three steps 0F0 takes 15 and 0F1 5, so that all comes 5 later: only there is jitter."""
    late = {0: [("0F0", 0, 15), ("0F1", 15, 20)], 1: []}
    timelines = []
    for number, rows in ((0, RANK_0), (1, RANK_1)):
        own = [(name, s + k * 200, e + k * 200, k) for k in range(2) for name, s, e in rows]
        own += [(name, s + 400, e + 400, 2) for name, s, e in late[number]]
        own += [(name, s + 405, e + 405, 2) for name, s, e in rows[len(late[number]) :]]
        timelines.append(rank(number, own, steps=steps(3, 200)))
    found = report(job(*timelines), steps=StepRange(0, 2))
    found.self_check()
    by_step = [step.points["jitter"] for step in found.steps]
    assert by_step[0] == pytest.approx(by_step[1])
    assert by_step[2] > by_step[0] + 0.01
    error = next(cause.error for cause in found.bubble.causes if cause.cause == "jitter")
    assert error == pytest.approx((by_step[2] - by_step[0]) / 3, rel=1e-6)


def test_a_report_whose_parts_do_not_add_up_is_found_out():
    """`self_check` names the sum that fails."""
    whole = report(one_f_one_b())
    whole.self_check()
    first, *rest = whole.bubble.causes
    broken = dataclasses.replace(first, share=first.share + 0.01)
    bubble = dataclasses.replace(whole.bubble, causes=(broken, *rest))
    with pytest.raises(ValueError, match="shares of the causes"):
        dataclasses.replace(whole, bubble=bubble).self_check()
    ranks = (dataclasses.replace(whole.ranks[0], host_ns=whole.ranks[0].host_ns + 1), *whole.ranks[1:])
    with pytest.raises(ValueError, match="window of rank 0"):
        dataclasses.replace(whole, ranks=ranks).self_check()


def test_receives_that_start_with_their_sends_tell_nothing_of_their_posting():
    """Of a recorder that writes when bytes moved, a wait for a heavy stage is no late receive, asked in any order."""
    heavy = {f"1{kind}{i}": 2 * length for kind, length in (("F", 10), ("B", 20)) for i in range(2)}
    of = played(lengths=heavy)
    first, second = of.timelines[0], of.timelines[1]
    sends = [("send 1 0F0", 10, 10), ("send 1 0F1", 20, 20), ("recv 1 0B0", 70, 70), ("recv 1 0B1", 130, 130)]
    receives = [("recv 0 1F0", 10, 10), ("recv 0 1F1", 20, 20), ("send 0 1B0", 70, 70), ("send 0 1B1", 130, 130)]
    clipped = job(rank(0, rows(first), messages=sends), rank(1, rows(second), messages=receives))
    found = {cause.cause: cause for cause in report(clipped, attribution="shapley").bubble.causes}
    assert found["imbalance"].ns == 15
    assert found["p2p"].ns == 0


def rows(timeline):
    """A rank's actions as `rank` takes them."""
    a = timeline.actions
    names = [f"{s}{'FBIW'[k]}{i}" for s, k, i in zip(a.stage, a.kind, a.microbatch, strict=True)]
    return list(zip(names, a.start.tolist(), a.end.tolist(), strict=True))
