"""The verdict over all rules, in every combination that decides it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.errors import UsageError
from bubblescope.gate.judge import Reference, judge
from bubblescope.gate.policy import policy
from bubblescope.model.gate import Gate
from tests.gate.runs import metric, numbers, run, usual

NOWHERE = Reference("nope.json", None)


def held(found, baseline=None, *rules, preset=None, **changed) -> Gate:
    """A run against rules, each of level error unless it begins with `warn`, and a baseline."""
    stated = [(text.removeprefix("warn "), "warn" if text.startswith("warn ") else "error", "here") for text in rules]
    reference = baseline if isinstance(baseline, Reference | None) else Reference("base.json", baseline)
    asked = replace(policy(stated, preset=preset, compared=reference is not None), **changed)
    return judge(run(found), reference, asked)


def outcomes(gate: Gate) -> list[tuple[str, str]]:
    """Rule and outcome."""
    return [(check.rule, check.outcome) for check in gate.checks]


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        (["bubble > 35%"], "pass"),
        (["bubble > 25%"], "fail"),
        (["warn bubble > 25%"], "pass"),
        (["bubble > 35%", "bubble > 25%"], "fail"),
        (["bubble > 25%", "mfu < 0.3"], "fail"),  # one fails, one is unknown
        (["bubble > 35%", "mfu < 0.3"], "inconclusive"),
        (["bubble > 35%", "warn mfu < 0.3"], "pass"),
        (["warn mfu < 0.3"], "inconclusive"),  # nothing at all was decided
        (["warn mfu < 0.3", "warn bubble > 25%"], "pass"),
        (["bubble@stage=3 > 29.5%"], "fail"),
        (["bubble@stage=2 > 29.5%"], "pass"),
        (["bubble@stage=9 > 1%"], "inconclusive"),
        (["bubble@stage=any > 29.5%"], "fail"),
        (["exposed@group=any > 1%"], "inconclusive"),
    ],
)
def test_verdict_of_limits(rules, verdict):
    """A failure wins over what is open, what is open over what passes, and warnings decide nothing."""
    gate = held(usual(0.29), None, *rules)
    assert gate.verdict == verdict
    assert gate.passed == (verdict == "pass")
    assert len(gate.checks) >= len(rules)


@pytest.mark.parametrize("missing", [NOWHERE, "another"])
@pytest.mark.parametrize(
    ("on_missing", "rules", "verdict"),
    [
        ("fail", ["bubble:+2pp"], "inconclusive"),
        ("warn", ["bubble:+2pp"], "pass"),
        ("pass", ["bubble:+2pp"], "pass"),
        ("fail", ["bubble:+2pp", "bubble > 25%"], "fail"),
        ("warn", ["bubble:+2pp", "bubble > 25%"], "fail"),
        ("pass", ["bubble:+2pp", "mfu < 0.3"], "inconclusive"),
        ("fail", ["warn bubble:+2pp"], "inconclusive"),
        ("fail", ["warn bubble:+2pp", "bubble > 35%"], "pass"),
    ],
)
def test_without_a_comparable_baseline(missing, on_missing, rules, verdict):
    """A baseline that is not there, and one of another shape: undecided, unless it is said otherwise."""
    baseline = usual(0.29, microbatches=16) if missing == "another" else missing
    gate = held(usual(0.29), baseline, *rules, on_missing_baseline=on_missing)
    assert gate.verdict == verdict
    assert gate.checks[0].outcome == ("inconclusive" if on_missing == "fail" else "skipped")
    assert any("nothing was compared" in text for text in gate.warnings) == (on_missing == "warn")
    assert gate.baseline_missing == (missing is NOWHERE)


@pytest.mark.parametrize(
    "changed",
    [{"schedule": "gpipe"}, {"pp": 8}, {"tp": 2}, {"virtual": 2}, {"microbatches": 16}, {"cp": 2}, {"ep": 4}],
)
def test_other_shapes_are_refused_unless_allowed(changed):
    """The difference is named in the reason, and with --allow-mismatch the numbers are compared."""
    refused = held(usual(0.40), usual(0.29, **changed), "bubble:+2pp")
    assert refused.verdict == "inconclusive"
    (difference,) = refused.differences
    assert difference.effect == "refused"
    assert difference.what in refused.checks[0].reason
    assert refused.checks[0].change is None
    allowed = held(usual(0.40), usual(0.29, **changed), "bubble:+2pp", allow_mismatch=True)
    assert allowed.verdict == "fail"
    assert "different shapes" in allowed.warnings[0]


@pytest.mark.parametrize("changed", [{"tp": None}, {"microbatches": None}, {"schedule": "dapple", "also": ("1f1b",)}])
def test_what_is_unknown_or_alike_is_no_difference(changed):
    """A degree that nothing told, and a schedule whose order is the same."""
    gate = held(usual(0.29), usual(0.29, **changed), "bubble:+2pp")
    assert (gate.verdict, gate.differences) == ("pass", ())


@pytest.mark.parametrize("changed", [{"devices": ("A100",)}, {"dp": 2}, {"world_size": 8}])
def test_other_machines_gate_ratios_and_warn_of_times(changed):
    """The bubble still fails; a time that would have failed only warns, and that it was softened is told."""
    worse = replace(usual(0.40), metrics=(metric("bubble", 0.40), metric("step_time", 900e6, 1e6)))
    gate = held(worse, usual(0.29, **changed), "bubble:+2pp", "step_time:+5%")
    assert gate.verdict == "fail"
    bubble, time = gate.checks
    assert (bubble.level, bubble.softened) == ("error", False)
    assert (time.level, time.outcome, time.softened) == ("warn", "fail", True)
    assert held(worse, usual(0.29, **changed), "step_time:+5%").verdict == "pass"
    assert held(worse, usual(0.29), "step_time:+5%").verdict == "fail"


def test_a_note_is_no_obstacle():
    """Other traces of the same kind of run are compared, and the difference is told."""
    gate = held(usual(0.29), usual(0.29, formats=("nsys",), reconstruction="autograd"), "bubble:+2pp")
    assert gate.verdict == "pass"
    assert [each.effect for each in gate.differences] == ["note", "note"]


@pytest.mark.parametrize("where", ["run", "baseline"])
@pytest.mark.parametrize(
    ("reasons", "allow", "verdict"),
    [
        (("truncated",), False, "inconclusive"),
        (("truncated",), True, "fail"),
        (("told-by-kernels", "unlabelled"), False, "fail"),
        (("told-by-kernels", "lost-kernels"), False, "inconclusive"),
    ],
)
def test_degraded_numbers(where, reasons, allow, verdict):
    """What speaks against one recording leaves the verdict open; what is so in every run of the job does not."""
    found, baseline = usual(0.40), usual(0.29)
    doubted = {"doubts": {"bubble": reasons}}
    pair = (replace(found, **doubted), baseline) if where == "run" else (found, replace(baseline, **doubted))
    gate = held(*pair, "bubble:+2pp", allow_degraded=allow)
    assert gate.verdict == verdict
    assert any(where in text and reasons[0] in text for text in gate.warnings)
    assert (f"this number of the {where} is degraded" in gate.checks[0].reason) == (verdict == "inconclusive")


def test_doubts_about_other_numbers_do_not_matter():
    """A rule rests on its own number alone."""
    assert (
        held(replace(usual(0.29), doubts={"communication": ("unpaired-p2p",)}), None, "bubble > 35%").verdict == "pass"
    )


def test_degraded_numbers_have_no_limit_either():
    """A number that may be wrong neither passes nor fails."""
    gate = held(replace(usual(0.40), doubts={"bubble": ("truncated",)}), None, "bubble > 35%")
    assert gate.verdict == "inconclusive"


def test_missing_ranks_cannot_be_decided():
    """With a stage unseen there is no bubble, and the reason is that of the report."""
    unseen = numbers(metric("step_time", 700e6, 1e6), doubts={"bubble": ("missing-ranks",)}, recorded=3)
    gate = held(unseen, usual(), "bubble:+2pp")
    assert gate.verdict == "inconclusive"
    assert gate.checks[0].reason == "the bubble of the run is unknown: 1 rank of it left no trace"


def test_no_pipeline_has_no_bubble():
    """And says so; its step time can be gated."""
    alone = numbers(metric("step_time", 700e6, 1e6), schedule="none", pp=1)
    assert held(alone, None, "bubble > 10%").checks[0].reason == "the run has no pipeline, and so no bubble"
    assert held(alone, alone, "step_time:+5%").verdict == "pass"


def test_causes_divided_in_two_ways_are_not_compared():
    """A ladder's points and Shapley's are different numbers."""
    gate = held(usual(0.29), usual(0.29, attribution="shapley"), "bubble@cause=host:+1pp", "bubble:+2pp")
    assert outcomes(gate) == [("bubble@cause=host:+1pp", "inconclusive"), ("bubble:+2pp", "pass")]
    assert "shapley" in gate.checks[0].reason


def test_a_rule_of_any_part_is_a_check_of_each():
    """Each part is compared with itself; one that the baseline lacks is open."""
    base = usual(0.29)
    less = replace(base, metrics=tuple(each for each in base.metrics if each.of != "2"))
    worse = replace(base, metrics=tuple(replace(e, value=0.5) if e.of == "1" else e for e in base.metrics))
    gate = held(worse, less, "bubble@stage=any:+2pp")
    assert [(check.of, check.outcome) for check in gate.checks] == [
        ("0", "pass"),
        ("1", "fail"),
        ("2", "inconclusive"),
        ("3", "pass"),
    ]
    assert gate.verdict == "fail"


def test_rules_that_are_off_are_listed_and_decide_nothing():
    """They count neither as decided nor as open."""
    asked = policy((), preset="default", off=["bubble"], compared=True)
    gate = judge(run(usual(0.60)), Reference("b", usual(0.29)), asked)
    assert gate.checks[0].outcome == "skipped"
    assert gate.verdict == "pass"


def test_the_worst_stage_cause_and_culprit():
    """The stage whose bubble rose most, the cause that rose most, and with imbalance the heaviest stage."""
    base = usual(0.29)
    heavier = [
        *(metric(f"bubble@stage={k}", value) for k, value in enumerate((0.47, 0.46, 0.45, 0.29))),
        metric("bubble@cause=imbalance", 0.12),
        metric("bubble@cause=host", 0.02),
        *(metric(f"imbalance@stage={k}", value) for k, value in enumerate((0.9, 0.9, 0.9, 1.3))),
    ]
    cause = metric("bubble@cause=imbalance", 0.0)
    gate = held(numbers(metric("bubble", 0.41), *heavier), replace(base, metrics=(*base.metrics, cause)), "bubble:+2pp")
    assert [(each.metric, each.by, each.of, each.ranks) for each in gate.worst] == [
        ("bubble", "stage", "0", (0,)),
        ("bubble", "cause", "imbalance", ()),
        ("imbalance", "stage", "3", (3,)),
    ]
    assert gate.worst[0].baseline == pytest.approx(0.29)


def test_the_worst_of_a_limit_is_what_is_largest():
    """A limit asks what is, whatever the baseline was; and what fell too far is worst where it fell most."""
    base = usual(0.29)
    other = replace(base, metrics=tuple(replace(e, value=e.value - 1e-6) if e.of == "0" else e for e in base.metrics))
    assert held(base, other, "bubble > 20%").worst[0].of == "3"
    fell = replace(base, metrics=tuple(replace(e, value=0.1) if e.of == "2" else e for e in base.metrics))
    fell = replace(fell, metrics=tuple(replace(e, value=0.2) if e.name == "bubble" else e for e in fell.metrics))
    gate = held(fell, base, "bubble:-2pp")
    assert (gate.verdict, gate.worst[0].of) == ("fail", "2")


def test_a_gate_is_as_true_as_it_passed():
    """`assert evaluate(...)` must be able to fail, with a message that says why."""
    assert held(usual(0.29), None, "bubble > 35%")
    failed = held(usual(0.40), usual(0.29), "bubble:+2pp", "step_time > 1s")
    assert not failed
    assert str(failed) == "fail; bubble:+2pp fail: found 40.00%, 29.00% in the baseline"


@pytest.mark.parametrize("name", ["allow_mismatch", "allow_degraded"])
def test_switches_are_true_or_false(name):
    """A text is neither, and `"false"` would be true."""
    with pytest.raises(UsageError, match=f"{name} must be True or False"):
        held(usual(0.29), None, "bubble > 35%", **{name: "false"})


def test_no_communication_is_no_lack_of_a_pipeline():
    """The reason is the one that is true."""
    gate = held(numbers(metric("step_time", 1e9, 1e6), schedule="none", pp=1), None, "exposed@group=tp > 1%")
    assert gate.checks[0].reason == "the run has no communication of group tp"


def test_single_ranks_are_gated_and_not_kept():
    """A limit of one rank is decided; what is written of the run has no ranks."""
    found = numbers(metric("bubble", 0.29), metric("bubble@rank=7", 0.6))
    gate = held(found, None, "bubble@rank=7 > 50%")
    assert gate.verdict == "fail"
    assert [each.name for each in gate.run.metrics] == ["bubble"]


@pytest.mark.parametrize(
    ("recorded", "others", "verdict"), [(4, 4, "pass"), (3, 4, "inconclusive"), (4, 3, "inconclusive"), (2, 2, "pass")]
)
def test_runs_are_compared_only_if_as_many_ranks_were_recorded(recorded, others, verdict):
    """What nobody recorded may be what is slow; a run recorded in part says so, whatever it is held against."""
    gate = held(usual(0.29, recorded=recorded), usual(0.29, recorded=others), "bubble:+2pp")
    assert gate.verdict == verdict
    assert any("ranks were recorded" in text for text in gate.warnings) == (recorded < 4)
    assert (
        held(usual(0.40, recorded=recorded), usual(0.29, recorded=others), "bubble:+2pp", allow_mismatch=True).verdict
        == "fail"
    )


def test_other_degrees_of_data_parallelism_are_no_other_completeness():
    """Two runs recorded as a whole compare, and so do those of which one pipeline was recorded."""
    for counts in ({"world_size": 8, "recorded": 8}, {"world_size": 8, "recorded": 4}):
        gate = held(usual(0.29, dp=2, **counts), usual(0.29, recorded=4), "bubble:+2pp")
        assert gate.verdict == "pass"


def test_any_stage_means_also_those_that_left_no_trace():
    """A stage that the baseline has and the run has not, or that nobody recorded, is not passed over."""
    less = usual(0.29)
    less = replace(less, metrics=tuple(each for each in less.metrics if each.of != "3"))
    gate = held(less, usual(0.29), "bubble@stage=any:+2pp")
    assert [(check.of, check.outcome) for check in gate.checks][-1] == ("3", "inconclusive")
    unseen = replace(less, doubts={"bubble": ("missing-ranks",)})
    gate = held(unseen, None, "work@stage=any > 1s", "imbalance@stage=any > 2")
    assert gate.verdict == "inconclusive"


@pytest.mark.parametrize(
    ("number", "rules"),
    [
        ("causes", ["bubble@cause=host > 99%"]),
        ("stages", ["bubble@stage=2 > 99%", "imbalance@stage=2 > 9"]),
        ("ranks", ["bubble@rank=0 > 99%"]),
        ("formula", ["gap > 99%"]),
        ("imbalance", ["imbalance > 9", "imbalance@stage=2 > 9"]),
    ],
)
def test_a_rule_rests_on_all_that_its_number_is_made_of(number, rules):
    """Doubts about causes, stages, ranks or the formula leave what is told by them open."""
    base = usual(0.29)
    more = metric("gap", 0.02), metric("bubble@rank=0", 0.3), metric("imbalance@stage=2", 1.0)
    found = replace(base, metrics=(*base.metrics, *more), doubts={number: ("contradiction",)})
    for rule in rules:
        assert held(found, None, rule).verdict == "inconclusive"
        assert held(replace(found, doubts={}), None, rule).verdict == "pass"


def test_an_unknown_gpu_is_no_other_gpu():
    """A name that is absent must not turn an error into a warning."""
    worse = numbers(metric("step_time", 900e6, 1e6), devices=())
    gate = held(worse, usual(0.29), "step_time:+5%")
    assert (gate.verdict, gate.differences) == ("fail", ())


@pytest.mark.parametrize("on_missing", ["fail", "warn", "pass"])
def test_a_baseline_that_nobody_names_is_not_merely_missing(on_missing):
    """The setting is about a file that is not there yet: an empty variable must not make a gate green for good."""
    assert held(usual(0.29), None, "bubble:+2pp", on_missing_baseline=on_missing).verdict == "inconclusive"


def test_a_baseline_that_takes_no_part_is_told():
    """A slip in its name, or rules that do not look at it, would never show."""
    assert held(usual(0.29), NOWHERE, "bubble > 90%").warnings == ("the baseline nope.json does not exist",)
    (warning,) = held(usual(0.29), usual(0.29), "bubble > 90%").warnings
    assert warning == "no rule compares with base.json; --preset default does"


def test_schedules_that_nobody_knows_may_differ():
    """Two unknown ones are compared, and it is said."""
    gate = held(usual(0.29, schedule="unknown"), usual(0.29, schedule="unknown"), "bubble:+2pp")
    assert any("may be different ones" in text for text in gate.warnings)
