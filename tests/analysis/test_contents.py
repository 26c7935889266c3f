"""What steps hold, which of them count, and what is said of the others."""

from __future__ import annotations

import pytest

from bubblescope.align.resolve import resolve
from bubblescope.analysis.contents import contents
from bubblescope.analysis.steps import Content, rank_steps
from bubblescope.model.options import Options, StepRange
from bubblescope.report.facts import facts
from bubblescope.report.tables import tables
from bubblescope.report.verdict import verdict
from tests.analysis.jobs import RANK_0, RANK_1, job, rank, report, without

FORWARDS = [tuple(row for row in rows if "F" in row[0]) for rows in (RANK_0, RANK_1)]
ONE = (
    (("0F0", 0, 10), ("0B0", 40, 60)),
    (("1F0", 10, 20), ("1B0", 20, 40)),
)
"""A step of one micro-batch: half of its 60 is bubble, where that of two has a third of 90."""
UNMEASURED = "without backwards there is no training bubble to measure"


def lines(*kinds):
    """Two ranks that run a step of each kind: `2` or `1` micro-batches, an `E`valuation, `C`ut off, or nothing."""
    rows = {
        "2": (RANK_0, RANK_1),
        "1": ONE,
        "E": FORWARDS,
        "C": (without(RANK_0, "0B1"), without(RANK_1, "1F1", "1B1")),
        "-": ((), ()),
    }
    every = [(k, 100 * k, 100 * k + 100) for k in range(len(kinds))]
    for r in (0, 1):
        found = [(name, s + 100 * k, e + 100 * k, k) for k, kind in enumerate(kinds) for name, s, e in rows[kind][r]]
        yield rank(r, found, steps=every)


def held(*ranks):
    """What each step of some ranks holds."""
    return contents({t.rank: rank_steps(t) for t in ranks})


def test_steps_are_told_by_what_all_ranks_did():
    """Trainings of two sizes, an evaluation, and nothing of a step that was cut off."""
    training, one, evaluation = Content("training", 2), Content("training", 1), Content("evaluation", 2)
    assert held(*lines(*"21E2C")) == {0: training, 1: one, 2: evaluation, 3: training}


def test_forwards_alone_are_no_evaluation_where_nothing_trains():
    """They are what the job does."""
    assert held(*lines(*"EE")) == {0: Content("inference", 2), 1: Content("inference", 2)}


def test_a_lone_stage_may_have_been_cut_off():
    """A step at the end that no other is like says nothing, one between others does."""
    (first, _), (other, _) = lines(*"212E"), lines(*"22EE")
    assert held(first) == {0: Content("training", 2), 1: Content("training", 1), 2: Content("training", 2)}
    assert held(other)[3] == Content("evaluation", 2)


def test_a_step_between_others_without_any_action_is_an_evaluation():
    """Autograd numbers no forward without gradients; at an end the recording may have stopped."""
    training = Content("training", 2)
    assert held(*lines(*"2-2")) == {0: training, 1: Content("evaluation", 0), 2: training}
    assert held(*lines(*"22-")) == {0: training, 1: training}
    assert held(*lines(*"22--")) == {0: training, 1: training}
    assert [*held(*lines(*"2-2-"))] == [0, 1, 2, 3]


def test_beside_a_step_that_is_not_whole_one_without_any_action_may_be_another_piece_of_it():
    """As where marks of micro-batches hold actions that were told in some of them; the ends may be cut off."""
    training = Content("training", 2)
    assert held(*lines(*"2C-2")) == {0: training, 3: training}
    assert held(*lines(*"2-C2")) == {0: training, 3: training}
    assert held(*lines(*"22-C")) == {0: training, 1: training, 2: Content("evaluation", 0)}


def shown(*kinds, **options):
    """The report of a run of such steps."""
    return report(job(*lines(*kinds)), **options)


def said(found, code):
    """What a report says under a code."""
    return [finding.message for finding in found.quality.findings if finding.code == code]


def test_an_evaluation_does_not_count():
    """Nor does it make the verdict worse, or lack anything."""
    found = shown(*"2E22")
    assert [(s.kind, s.complete, s.used, s.left_out) for s in found.steps] == [
        ("training", True, False, "first"),
        ("evaluation", True, False, "evaluation"),
        ("training", True, True, None),
        ("training", True, True, None),
    ]
    assert found.bubble.measured == pytest.approx(1 / 3)
    assert said(found, "odd-steps") == ["step 1 is an evaluation (forwards only) and is not measured"]
    assert not said(found, "incomplete-steps")


@pytest.mark.parametrize(
    ("kinds", "sentence"),
    [
        ("2EE2", "steps 1-2 are evaluations (forwards only) and are not measured"),
        ("2-2", "no action could be read in step 1; as other steps train, it is taken for an evaluation"),
        ("2-2-2", "no action could be read in steps 1, 3; as other steps train, they are taken for evaluations"),
        ("112", "steps differ in size: 1 micro-batch in steps 0-1, 2 in step 2; the report measures those of 2"),
    ],
)
def test_what_steps_hold_is_said(kinds, sentence):
    """In one and in several."""
    assert said(shown(*kinds), "odd-steps") == [sentence]


def test_an_evaluation_that_was_asked_for_has_no_bubble():
    """Nothing is wrong with the data, and the ranks' time is that of the step."""
    found = shown(*"2E22", steps=StepRange(1, 1))
    assert verdict(found) == (f"The bubble is unknown: step 1 is an evaluation, and {UNMEASURED}.")
    assert (found.bubble.measured, found.quality.verdict, found.ranks[0].window_ns) == (None, "ok", 100)
    assert {n.number: n.reasons for n in found.quality.numbers}["bubble"] == ("no-training",)


@pytest.mark.parametrize(
    ("kinds", "wanted", "reason"),
    [
        ("2C2E", StepRange(1, 1), "step 1 is incomplete"),
        (
            "2CE2",
            StepRange(1, 2),
            f"step 2 is an evaluation, and {UNMEASURED}, and no other step is complete",
        ),
        ("C", StepRange(), "no complete step was found"),
    ],
)
def test_why_no_step_was_measured(kinds, wanted, reason):
    """Of the steps asked for."""
    assert verdict(shown(*kinds, steps=wanted)) == f"The bubble is unknown: {reason}."


@pytest.mark.parametrize(
    ("kinds", "size", "options"),
    [
        ("11222", 2, {}),
        ("22111", 1, {}),
        ("22211", 2, {}),
        ("1122", 2, {}),
        ("22111", 2, {"microbatches": 2}),
        ("22111", 2, {"steps": StepRange(0, 1)}),
    ],
)
def test_the_commonest_size_is_measured(kinds, size, options):
    """Of two as common the larger; stated sizes and steps choose."""
    found = shown(*kinds, **options)
    assert (found.schedule.microbatches, found.bubble.measured) == (size, pytest.approx({1: 1 / 2, 2: 1 / 3}[size]))
    assert found.bubble.formula == pytest.approx(found.bubble.measured)
    assert not said(found, "incomplete-steps")
    assert not said(found, "metadata-conflict")


def test_each_size_has_its_bubble_and_theory():
    """The first step of all is left out, as ever; a size of which there is one step has none."""
    found = shown(*"11222E")
    assert [(s.microbatches, s.steps, s.measured, s.formula) for s in found.bubble.by_microbatches] == [
        (1, (1,), pytest.approx(1 / 2), pytest.approx(1 / 2)),
        (2, (2, 3, 4), pytest.approx(1 / 3), pytest.approx(1 / 3)),
    ]
    evaluation = "step 5 is an evaluation (forwards only) and is not measured"
    sizes = "steps differ in size: 1 micro-batch in steps 0-1, 2 in steps 2-4; the report measures those of 2"
    assert said(found, "odd-steps") == [f"{evaluation}; {sizes}"]
    assert [size.microbatches for size in shown(*"1222").bubble.by_microbatches] == [2]
    assert shown(*"222").bubble.by_microbatches == ()


def mixed(*kinds):
    """The report of steps of two micro-batches, where those marked `M` have an evaluation behind them."""
    built = []
    for r, (training, forwards) in enumerate(zip((RANK_0, RANK_1), FORWARDS, strict=True)):
        behind = [(name, s + 100, e + 100) for name, s, e in forwards]
        rows = [(kind, k, row) for k, kind in enumerate(kinds) for row in (*training, *(behind if kind == "M" else ()))]
        found = [(name, s + 200 * k, e + 200 * k, k) for _, k, (name, s, e) in rows]
        built.append(rank(r, found, steps=[(k, 200 * k, 200 * k + 200) for k in range(len(kinds))]))
    return report(resolved(*built))


def resolved(*timelines):
    """The job of some ranks, as it is made of files."""
    return resolve({t.rank: t for t in timelines}, Options())


def test_a_training_with_an_evaluation_is_left_out_where_others_are():
    """What it holds is said."""
    found = mixed(*"22M2")
    assert [(s.kind, s.extra_forwards, s.left_out) for s in found.steps][1:3] == [
        ("training", 0, None),
        ("mixed", 2, "evaluation"),
    ]
    assert found.bubble.measured == pytest.approx(1 / 3)
    assert said(found, "odd-steps") == [
        "step 2 has 2 more forwards than backwards, probably an evaluation; it is left out"
    ]


def test_the_training_alone_is_measured_where_each_step_has_an_evaluation():
    """It is used as any other, and said."""
    found = mixed(*"MMM")
    assert [s.used for s in found.steps] == [False, True, True]
    assert found.bubble.measured == pytest.approx(1 / 3)
    (sentence,) = said(found, "odd-steps")
    assert sentence == (
        "steps 0-2 have 2 more forwards than backwards, probably an evaluation; the bubble is that of the training "
        "alone, while step time and speed include the rest"
    )


@pytest.mark.parametrize(
    ("kinds", "options", "line"),
    [
        ("222", {}, "2 of 3 used: 1-2, 100 ns each, pipeline 90 ns (0 is the first, often a warm-up)"),
        ("2", {}, "1 of 1 used: 0, 100 ns, pipeline 90 ns"),
        ("2E", {}, "1 of 2 used: 0, 100 ns, pipeline 90 ns (1 is an evaluation)"),
        (
            "12E2",
            {},
            "2 of 4 used: 1, 3, 100 ns each, pipeline 90 ns (2 is an evaluation; other size: 1 micro-batch in step 0)",
        ),
        ("2EE2", {"steps": StepRange(1, 2)}, "none of 4 used (1-2 are evaluations)"),
        ("2E22", {"steps": StepRange(2, 2)}, "1 of 4 used: 2, 100 ns, pipeline 90 ns"),
    ],
)
def test_the_page_says_of_each_step_why_it_is_not_used(kinds, options, line):
    """But of those that nobody asked for; the note says what else they hold."""
    found = shown(*kinds, **options)
    (steps,) = (text for name, text in facts(found) if name == "Steps")
    assert steps.partition("; spread")[0] == line
    assert [text for name, text in facts(found) if name == "Note"] == [
        f"odd-steps: {m}" for m in said(found, "odd-steps")
    ]


def test_the_table_of_sizes_has_them_all():
    """One with a single step has no bubble; what the others leave out is said."""
    (table,) = (each for each in tables(shown(*"11222E")) if each.title == "Step sizes")
    assert table.rows == (("1", "1", "50.0%", "50.0%"), ("2", "2-4", "33.3%", "33.3%"))
    assert table.more == "without step 0, the first"
