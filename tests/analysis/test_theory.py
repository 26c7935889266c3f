"""What the schedule owes, and what its replay costs."""

from __future__ import annotations

import pytest

from bubblescope.analysis.study import study
from bubblescope.emit import Job, truth, write
from bubblescope.engine import load
from bubblescope.errors import UsageError
from bubblescope.model.actions import Kind, Order
from bubblescope.model.options import Options
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.replay import replay
from tests.analysis.jobs import again, hidden, job, one_f_one_b, rank, report, steps, without


def played(name, p, m, v=1, *, forward=10, backward=20, times=1):
    """A job that runs a schedule with no delay at all; times are those of one chunk."""
    orders = find(name).orders(Shape(p, m, v))
    lengths = {a: forward if a.kind == Kind.F else backward for order in orders.values() for a in order}
    run = replay(orders, lengths, last_stage=p * v - 1)
    every = round(run.makespan)
    return job(
        *(
            rank(
                r,
                again([(str(a), round(run.start[a]), round(run.end[a])) for a in order], times, every),
                steps=steps(times, every),
            )
            for r, order in orders.items()
        ),
        placement={r: tuple(sorted({a.stage for a in order})) for r, order in orders.items()},
    )


def lined(*texts, length=10):
    """A job whose ranks run the actions of a text each, one after the other, whatever they need."""
    return job(
        *(
            rank(r, [(name, length * i, length * i + length) for i, name in enumerate(text.split())])
            for r, text in enumerate(texts)
        )
    )


@pytest.mark.parametrize(
    ("name", "p", "m", "v", "formula"),
    [
        ("1f1b", 4, 8, 1, 3 / 11),
        ("gpipe", 3, 4, 1, 2 / 6),
        ("naive", 4, 3, 1, 3 / 4),
        ("interleaved-1f1b", 4, 8, 2, 3 / 19),
        ("looped-bfs", 2, 6, 2, 1 / 13),
    ],
)
def test_a_run_without_delay_is_its_closed_form(name, p, m, v, formula):
    """Measured, formula and replay are one number, and the gap is 0."""
    found = report(played(name, p, m, v))
    assert (found.schedule.name, found.schedule.confidence, found.schedule.microbatches) == (name, 1, m)
    assert (found.bubble.measured, found.bubble.formula, found.bubble.replay) == pytest.approx((formula,) * 3)
    assert found.bubble.formula_source == "closed-form"
    assert found.bubble.gap == pytest.approx(0, abs=1e-12)
    assert found.schedule.departures == ()


@pytest.mark.parametrize(("p", "m"), [(2, 3), (4, 6)])
def test_a_shape_without_closed_form_is_simulated(tmp_path, p, m):
    """Interleaved with m not divisible by p: as a run of equal stages and free messages, generated, really is."""
    made = Job(schedule="interleaved-1f1b", p=p, m=m, v=2, kernels=1, forward_ns=100_000, backward_ns=200_000)
    write(made, tmp_path)
    bubble = study(load([str(tmp_path)]), Options()).theory
    assert bubble.source == "simulated"
    assert bubble.formula == pytest.approx(truth(made).bubble, abs=1e-6)
    assert bubble.replay == pytest.approx(truth(made).bubble, abs=1e-6)


def test_simulation_takes_the_mean_of_each_kind():
    """Where stages differ the formula does not, while the replay does."""
    even = report(played("interleaved-1f1b", 2, 3, 2)).bubble
    rows = {0: {}, 1: {}}
    orders: dict[int, Order] = find("interleaved-1f1b").orders(Shape(2, 3, 2))
    # Forwards of rank 0 take 5 and of rank 1 15: their mean is the 10 of the even job.
    lengths = {a: (5 + 10 * r if a.kind == Kind.F else 20) for r, order in orders.items() for a in order}
    run = replay(orders, lengths, last_stage=3)
    for r, order in orders.items():
        rows[r] = [(str(a), round(run.start[a]), round(run.end[a])) for a in order]
    uneven = report(job(*(rank(r, rows[r]) for r in rows), placement={0: (0, 2), 1: (1, 3)})).bubble
    assert uneven.formula_source == even.formula_source == "simulated"
    assert uneven.formula == pytest.approx(even.formula)
    assert uneven.replay == pytest.approx(uneven.measured)
    assert uneven.replay > uneven.formula


# 1f1b with p = m = 2 and a stage 1 of twice the work, F 20 and B 40:
#
#          0    10   20   30        50        70        90                  130       150
#     0    |0F0 |0F1 |                        |0B0      |                   |0B1      |
#     1         |1F0      |1B0                |1F1      |1B1                |


def uneven(delay=0):
    """The job drawn above, with each action of stage 1 `delay` late."""
    d = delay
    late = [("1F0", 10, 30), ("1B0", 30, 70), ("1F1", 70, 90), ("1B1", 90, 130)]
    one = [(name, s + d * k, e + d * k) for k, (name, s, e) in enumerate(late, start=1)]
    zero = [("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 70 + 2 * d, 90 + 2 * d), ("0B1", 130 + 4 * d, 150 + 4 * d)]
    return job(rank(0, zero), rank(1, one))


@pytest.mark.parametrize("delay", [0, 7, 100])
def test_the_replay_is_the_makespan_of_the_work_alone(delay):
    """150 for a mean of 90 useful, however late the run itself was; the formula knows of neither."""
    bubble = report(uneven(delay)).bubble
    assert bubble.replay == pytest.approx(1 - 90 / 150)
    assert bubble.measured == pytest.approx(1 - 90 / (150 + 4 * delay))
    assert bubble.formula == pytest.approx(1 / 3)
    assert bubble.gap == pytest.approx(bubble.measured - 1 / 3)


def test_an_order_that_deadlocks_has_no_replay():
    """0B0 before 0F0 can never run; the report says so and keeps the rest."""
    found = report(lined("0B0 0F0 0F1 0B1", "1F0 1B0 1F1 1B1"))
    assert found.bubble.replay is None
    assert found.bubble.measured is not None
    assert any("deadlocks" in fact and "0B0 waits for 1B0" in fact for fact in found.schedule.evidence)


def test_a_schedule_keeps_its_formula_in_a_deadlock():
    """One swap among many actions is still 1f1b, whose closed form holds."""
    text = "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0F4 0B3 0F5 0B4 0B5", "1F0 1B0 1F1 1B1 1F2 1B2 1F3 1B3 1F4 1B4 1B5 1F5"
    found = report(lined(*text))
    assert (found.schedule.name, found.bubble.formula, found.bubble.replay) == ("1f1b", pytest.approx(1 / 7), None)
    assert places(found.schedule) == [(1, 10, None, "1B5"), (1, 12, "1B5", None)]


def places(schedule):
    """Departures as tuples."""
    return [(d.rank, d.position, d.expected, d.found) for d in schedule.departures]


def test_a_stated_schedule_is_compared_alone():
    """1f1b under the name gpipe: likeness 7/8, and the swapped pair are departures of rank 1."""
    found = report(one_f_one_b(), schedule="gpipe").schedule
    assert (found.name, found.confidence, found.runner_up) == ("gpipe", pytest.approx(7 / 8), None)
    assert places(found) == [(1, 1, None, "1B0"), (1, 3, "1B0", None)]


def test_a_stated_schedule_may_go_by_another_name():
    """DAPPLE is the 1f1b order."""
    assert report(one_f_one_b(), schedule="dapple").schedule.name == "1f1b"


def test_a_stated_schedule_that_cannot_be_is_unknown():
    """Interleaved needs more chunks than there are; the numbers that need no schedule stand."""
    found = report(one_f_one_b(), schedule="interleaved-1f1b")
    assert (found.schedule.name, found.bubble.formula, found.bubble.formula_source) == ("unknown", None, None)
    assert (found.bubble.measured, found.bubble.replay) == pytest.approx((1 / 3, 1 / 3))


def test_a_schedule_nobody_knows_is_an_error_with_a_hint():
    """The name is checked by the registry."""
    with pytest.raises(UsageError, match="no schedule is called") as caught:
        report(one_f_one_b(), schedule="1f1g")
    assert "1f1b" in caught.value.hint


def test_an_order_like_none_is_unknown_and_still_replayed():
    """Forwards and backwards both run backwards: no formula, no gap, but a replay."""
    zero = [("0F1", 0, 10), ("0F0", 10, 20), ("0B1", 40, 60), ("0B0", 70, 90)]
    one = [("1F1", 10, 20), ("1F0", 20, 30), ("1B1", 30, 50), ("1B0", 50, 70)]
    found = report(job(rank(0, zero), rank(1, one)))
    assert (found.schedule.name, found.schedule.confidence) == ("unknown", 0)
    assert (found.bubble.formula, found.bubble.formula_source, found.bubble.gap) == (None, None, None)
    # 0F1 0-10, 1F1 10-20, 1F0 20-30, 1B1 30-50, 1B0 50-70, 0B0 70-90
    assert found.bubble.replay == pytest.approx(1 - 60 / 90)


def test_the_usual_order_of_a_position_is_named():
    """One of three steps has a swap: the two others decide, and the evidence counts them."""
    zero = again([("0F0", 0, 10), ("0F1", 10, 20), ("0B0", 40, 60), ("0B1", 70, 90)], 3)
    usual = again([("1F0", 10, 20), ("1B0", 20, 40), ("1F1", 40, 50), ("1B1", 50, 70)], 3)
    swapped = [("1F0", 210, 220, 2), ("1F1", 220, 230, 2), ("1B0", 230, 250, 2), ("1B1", 250, 270, 2)]
    of = job(rank(0, zero, steps=steps(3)), rank(1, [*usual[:8], *swapped], steps=steps(3)))
    found = study(of, Options(steps=report_all()))
    assert found.schedule.family.name == "1f1b"
    assert (found.schedule.agreeing, found.schedule.seen) == (5, 6)
    assert found.schedule.departures == ()


def report_all():
    """All steps, the first included."""
    return Options().steps.parse("0:")


def test_unseen_pipelines_are_not_replayed():
    """The closed form needs only the shape; the replay needs every stage."""
    bubble = report(hidden(one_f_one_b(), 0)).bubble
    assert (bubble.formula, bubble.replay, bubble.measured) == (pytest.approx(1 / 3), None, None)


def test_only_pipelines_that_were_seen_whole_are_replayed():
    """Of the second replica only a stage 0 of twice the work is there: the mean is the first one's."""
    double = [("0F0", 0, 20), ("0F1", 20, 40), ("0B0", 40, 80), ("0B1", 80, 120)]
    usual = one_f_one_b().timelines
    of = job(usual[0], usual[1], rank(2, double), pipelines=[[[0], [1]], [[2], [3]]])
    assert report(of).bubble.replay == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "moments",
    [(0, 10, 10, 40, 20, 50), (5, 5, 5, 5, 5, 5), (5, 5, 0, 50, 5, 5)],
    ids=["all apart", "all at once", "stage 0 at once"],
)
def test_work_that_takes_no_time_has_no_bubble(moments):
    """Kernels of no length: there is no share to take, and nothing is divided by 0."""
    at = iter(moments)
    rows = [[(f"{r}{kind}0", t, t) for kind, t in (("F", next(at)), ("B", next(at)))] for r in range(3)]
    found = report(job(*(rank(r, rows[r]) for r in range(3))))
    assert (found.bubble.measured, found.bubble.replay, found.bubble.lower) == (None, None, None)
    assert [row.compute_ns for row in found.ranks] == [0, 0, 0]


def test_work_too_short_to_share_has_a_replay_of_nothing():
    """One nanosecond that three actions share rounds to none for each."""
    rows = [[(f"{r}F{i}", 5, 6) for i in range(3)] for r in range(2)]
    assert report(job(*(rank(r, rows[r]) for r in range(2)))).bubble.replay == 0


def test_a_lost_action_is_a_departure():
    """One of 16 backwards is gone from rank 1: 1f1b still, with the place named."""
    of = played("1f1b", 2, 8)
    zero, one = (list(zip(*rows_of(of, r), strict=True)) for r in range(2))
    found = report(job(rank(0, zero), rank(1, without(one, "1B3")))).schedule
    assert found.name == "1f1b"
    assert [place[2:] for place in places(found)] == [("1B3", None)]


def rows_of(of, number):
    """Names, starts and ends of the actions of a rank."""
    (step,) = study(of, Options()).steps
    mine = step.steps[number]
    return [str(a) for a in mine.order], mine.actions.start.tolist(), mine.actions.end.tolist()
