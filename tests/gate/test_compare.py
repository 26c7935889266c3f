"""What changed from one run to another, and whether that is more than noise: by hand, by properties, on real runs."""

from __future__ import annotations

from dataclasses import replace
from math import atan, pi, sqrt
from pathlib import Path
from random import Random

import pytest

import bubblescope
from bubblescope.analysis.causes import CAUSES as TOLD
from bubblescope.emit import Job
from bubblescope.errors import UndecidedError
from bubblescope.gate.compare import compare
from bubblescope.gate.condense import condense
from bubblescope.model.baseline import Baseline
from bubblescope.model.comparison import Change, Comparison
from tests.comparisons import CAUSES, SAMPLES, causing, lacking, marked, metric, run, sample, shifted
from tests.planted import analyzed

TRACES = Path(__file__).parents[2] / "sample_traces"
NAMES = ("before", "after")
MS = 1_000_000


def of(found: Comparison, name: str, by: str | None = None, part: str | None = None) -> Change:
    """The change of a number."""
    return next(each for each in found.changes if (each.metric, each.by, each.of) == (name, by, part))


def only(value: float, spread: float | None, steps: int, error: float = 0.0) -> Baseline:
    """A run that is known by its bubble alone."""
    one = replace(metric("bubble", value, spread), steps=steps, error=error)
    return replace(marked(run(), steps=steps), metrics=(one,))


def random_run(dice: Random) -> Baseline:
    """A run with numbers of no meaning, some of them missing."""
    kept = [each for each in run().metrics if dice.random() < 0.9 or each.metric == "step_time"]
    made = (
        replace(
            each,
            value=each.value * (1 + dice.choice((0.0, 1e-4, 0.01, 0.5)) * dice.gauss(0, 1)),
            spread=None if each.spread is None else each.spread * dice.choice((0.0, 1.0, 10.0)),
            error=dice.choice((0.0, 0.001)) * abs(each.value),
        )
        for each in kept
    )
    return replace(run(), metrics=tuple(made))


def test_chance_is_that_of_welch_by_hand():
    """Two steps each with equal spreads: two degrees of freedom, whose tail has a closed form."""
    change = of(compare(only(0.30, 0.002, 2), only(0.31, 0.002, 2), NAMES), "bubble")
    t = 0.01 / sqrt(0.002**2 / 2 + 0.002**2 / 2)
    assert t == pytest.approx(5.0)
    assert change.chance == pytest.approx(1 - t / sqrt(2 + t * t))
    assert change.certain is False
    assert change.noise == pytest.approx(0.002 * 9.9248, rel=1e-4)


def test_chance_with_one_noisy_run_by_hand():
    """Where one run does not vary, the other's single degree of freedom is all there is: Cauchy's distribution."""
    change = of(compare(only(0.30, 0.0, 2), only(0.32, 0.002, 2), NAMES), "bubble")
    assert change.chance == pytest.approx(1 - 2 / pi * atan(0.02 / (0.002 / sqrt(2))))
    assert change.certain is False


def test_many_numbers_need_stronger_evidence():
    """Each cause alone would stand at 1%; among seven only one that stands at a seventh of it does."""
    alone = of(compare(only(0.30, 0.002, 5), only(0.305, 0.002, 5), NAMES), "bubble")
    assert alone.certain
    sizes = [causing(host=CAUSES["host"] + by) for by in (0.0019, 0.0030)]
    small, large = (of(compare(run(), each, NAMES), "bubble", "cause", "host") for each in sizes)
    assert small.chance == pytest.approx(7 * 0.0057, rel=0.1)
    assert (small.certain, large.certain) == (False, True)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_change_is_certain_just_where_it_exceeds_its_noise(name):
    """What the page calls noise is what decides, after the correction, too."""
    changes = [each for each in sample(name).changes if each.noise is not None]
    assert [each.certain for each in changes] == [abs(each.change) >= each.noise for each in changes]


@pytest.mark.parametrize("seed", range(30))
def test_swapping_the_runs_negates_the_changes(seed):
    """Before and after change places; how sure a change is stays, and its order among its kind."""
    dice = Random(seed)  # noqa: S311 - repeatable
    one, two = random_run(dice), random_run(dice)
    there, back = compare(one, two, NAMES), compare(two, one, NAMES[::-1])
    again = {(each.metric, each.by, each.of): each for each in back.changes}
    assert len(again) == len(there.changes)
    for change in there.changes:
        other = again[change.metric, change.by, change.of]
        assert (other.before, other.after) == (change.after, change.before)
        assert other.change == (None if change.change is None else -change.change)
        assert other.chance == change.chance
        if change.unit in {"share", "ratio"}:  # those of % start from another value
            assert (other.noise, other.certain) == (change.noise, change.certain)


@pytest.mark.parametrize("seed", range(30))
def test_certain_is_what_exceeds_noise_on_any_numbers(seed):
    """Holm's steps and the noise that is told agree, whatever the numbers are."""
    dice = Random(seed)  # noqa: S311 - repeatable
    for each in compare(random_run(dice), random_run(dice), NAMES).changes:
        if each.noise is not None:
            assert each.certain == (abs(each.change) >= each.noise), each


@pytest.mark.parametrize("name", ["uneven", "better", "hidden", "many", "against", "schedule"])
def test_changes_of_the_causes_add_up_to_that_of_the_bubble(name):
    """So do the causes before and after, to the bubble of the run."""
    found = sample(name)
    causes = [each for each in found.changes if (each.metric, each.by) == ("bubble", "cause")]
    whole = of(found, "bubble")
    for key in ("before", "after", "change"):
        assert sum(getattr(each, key) for each in causes) == pytest.approx(getattr(whole, key), abs=1e-12)


def test_every_number_of_either_run_has_a_change():
    """One that only one of them has shows its one value, and no change."""
    old, new = lacking(run(), "imbalance"), lacking(run(), "step_time")
    found = compare(old, new, NAMES)
    keys = {(each.metric, each.by, each.of) for each in found.changes}
    assert keys == {(each.metric, each.by, each.of) for each in (*old.metrics, *new.metrics)}
    assert len(found.changes) == len(keys)
    lost, gained = of(found, "step_time"), of(found, "imbalance")
    assert (lost.after, lost.change, lost.certain) == (None, None, None)
    assert (gained.before, gained.change, gained.certain) == (None, None, None)


def test_identical_runs_show_nothing():
    """No number changed, and all are sure of it."""
    for each in compare(run(), run(), NAMES).changes:
        assert (each.change, each.chance, each.certain) == (0.0, 1.0, False)


def test_what_cannot_be_seen_is_never_certain():
    """Computed values vary by 1e-17; a structural part that moves by 1e-9 has not changed."""
    found = compare(run(), causing(structural=CAUSES["structural"] + 1e-9), NAMES)
    assert of(found, "bubble", "cause", "structural").certain is False
    found = compare(run(), causing(structural=CAUSES["structural"] + 0.001), NAMES)
    assert of(found, "bubble", "cause", "structural").certain is True
    times = compare(only_time(1000 * MS), only_time(round(1000.4 * MS)), NAMES)
    assert of(times, "step_time").certain is False
    times = compare(only_time(1000 * MS), only_time(round(1000.6 * MS)), NAMES)
    assert of(times, "step_time").certain is True


def only_time(value: int) -> Baseline:
    """A run that is known by its step time alone, which does not vary."""
    return replace(run(), metrics=(metric("step_time", value, 0.0),))


def test_error_of_the_clocks_is_noise():
    """A change within what the clocks may be wrong about is none, however many steps agree."""
    assert of(compare(only(0.30, 1e-5, 9), only(0.31, 1e-5, 9), NAMES), "bubble").certain
    unsure = of(compare(only(0.30, 1e-5, 9, 0.006), only(0.31, 1e-5, 9, 0.005), NAMES), "bubble")
    assert (unsure.certain, unsure.chance) == (False, 1.0)
    assert unsure.noise > 0.011


@pytest.mark.parametrize("short", ["before", "after"])
def test_one_step_tells_no_noise(short):
    """The change is told all the same, and nothing is called certain."""
    one = marked(run(), steps=1)
    runs = (one, causing(host=0.1)) if short == "before" else (causing(host=0.1), one)
    for each in compare(*runs, NAMES).changes:
        assert each.change is not None
        assert (each.noise, each.chance, each.certain) == (None, None, None)


def test_causes_of_another_attribution_are_not_compared():
    """Their values are told, the change is not."""
    found = compare(run(), marked(run(), attribution="shapley"), NAMES)
    host = of(found, "bubble", "cause", "host")
    assert (host.before, host.after, host.change) == (CAUSES["host"], CAUSES["host"], None)
    assert of(found, "bubble").change == 0.0


@pytest.mark.parametrize("changed", [{"pp": 8}, {"virtual": 2}])
def test_stages_of_another_shape_are_not_compared(changed):
    """Stage 0 of four is not stage 0 of eight; the whole job and its causes are."""
    found = compare(run(), marked(run(), **changed), NAMES)
    assert {each.change for each in found.changes if each.by == "stage"} == {None}
    assert None not in {each.change for each in found.changes if each.by != "stage"}
    assert [each.effect for each in found.differences] == ["refused"]


def test_ranks_and_pipelines_are_left_out():
    """They are not the same ones in the next run, and baselines do not have them."""
    rank, line = metric("bubble", 0.3, 0.001, ("rank", "0")), metric("window", 1e9, 1e6, ("pipeline", "0"))
    more = replace(run(), metrics=(*run().metrics, rank, line))
    assert compare(more, run(), NAMES) == compare(run(), run(), NAMES)


def test_runs_without_a_common_number_are_undecided():
    """There is nothing to say of them."""
    bubble, step = lacking(run(), "step_time"), replace(run(), metrics=(metric("step_time", 1e9, 0.0),))
    with pytest.raises(UndecidedError, match="no number in common"):
        compare(bubble, step, NAMES)
    with pytest.raises(UndecidedError):
        compare(replace(run(), metrics=()), replace(run(), metrics=()), NAMES)


def test_changes_are_ranked():
    """The whole job comes first; of causes, stages and groups the largest change does."""
    found = sample("uneven")
    kinds = [each.by for each in found.changes]
    assert kinds == sorted(kinds, key=[None, "cause", "stage", "group"].index)
    for name, by in {(each.metric, each.by) for each in found.changes if each.by}:
        sizes = [abs(each.change) for each in found.changes if (each.metric, each.by) == (name, by)]
        assert sizes == sorted(sizes, reverse=True)


def test_a_value_of_zero_is_no_obstacle():
    """Neither before nor after, with spread or without."""
    for one, two in ((0.0, 0.1), (0.1, 0.0), (0.0, 0.0)):
        for spread in (0.0, 0.001, None):
            assert of(compare(only(one, spread, 5), only(two, spread, 5), NAMES), "bubble").change == two - one


def test_a_heavy_last_stage_is_found_in_recorded_runs():
    """Two recordings that differ in the weight of the last stage alone: the cause is uneven stages."""
    found = bubblescope.compare(TRACES / "1f1b_p4m8", [TRACES / "1f1b_p4m8_slow_last"])
    assert found.names == (str(TRACES / "1f1b_p4m8"), str(TRACES / "1f1b_p4m8_slow_last"))
    assert of(found, "bubble").certain
    causes = [each for each in found.changes if each.by == "cause"]
    assert (causes[0].of, causes[0].certain) == ("imbalance", True)
    assert causes[0].change > 10 * max(abs(each.change) for each in causes[1:])
    work = [each for each in found.changes if (each.metric, each.by, each.certain) == ("work", "stage", True)]
    assert [(each.of, round(each.change / each.before, 2)) for each in work] == [("3", 0.49)]
    assert sum(each.change for each in causes) == pytest.approx(of(found, "bubble").change, abs=1e-9)


BARE = Job(m=8, steps=6, forward_ns=5 * MS, backward_ns=10 * MS, jitter=0.02, kernels=2, p2p_ns=MS // 5)


@pytest.mark.parametrize(
    ("cause", "changed"),
    [
        ("host", {"host_gap_ns": MS}),
        ("p2p", {"p2p_ns": 2 * MS}),
        ("imbalance", {"scale": (1.0, 1.3, 1.0, 1.0)}),
        ("jitter", {"jitter": 0.2}),
    ],
)
def test_a_planted_change_is_named(cause, changed):
    """A run that differs in one trouble alone, and in the dice: that cause changed most, and surely."""
    found = bubblescope.compare(analyzed(BARE), analyzed(replace(BARE, seed=2, **changed)))
    first = next(each for each in found.changes if each.by == "cause")
    assert (first.of, first.certain, first.change > 0) == (cause, True, True)
    assert of(found, "bubble").certain


def test_causes_that_are_fitted_to_the_run_are_as_uncertain_as_jitter():
    """All steps show the same for them, however far the fit is off; the next run's would be another."""
    numbers = condense(analyzed(replace(BARE, jitter=0.05, scale=(1.0, 1.0, 1.05, 1.0))))
    uneven, jitter = (numbers.metric("bubble", "cause", name) for name in ("imbalance", "jitter"))
    assert uneven.value > 0.001
    assert uneven.spread >= jitter.spread > 0


@pytest.mark.slow
def test_runs_that_differ_in_the_dice_alone_rarely_differ():
    """Of 20 pairs of runs of one job, at 1% for each of six kinds of numbers; every cause has its share in it."""
    alarms = 0
    for seed in range(1, 40, 2):
        one, two = (condense(analyzed(replace(BARE, jitter=0.05, seed=seed + k))) for k in (0, 1))
        found = compare(one, two, NAMES)
        alarms += len({(each.by, each.metric if each.by == "stage" else "") for each in found.changes if each.certain})
    assert alarms <= 5  # 1.2 expected; more than 5 in two of a thousand


def test_values_of_python_are_runs(tmp_path):
    """An analysis, its report, its JSON and a baseline of it are all the same run, and have changed nothing."""
    analysis = bubblescope.analyze([TRACES / "1f1b_p4m8"])
    from bubblescope.report import json as rendered  # noqa: PLC0415

    path = tmp_path / "report.json"
    path.write_bytes(rendered.render(analysis.report))
    for other in (analysis.report, condense(analysis.report), path, str(TRACES / "1f1b_p4m8")):
        found = bubblescope.compare(analysis, other)
        assert {each.change for each in found.changes} == {0.0}
    assert bubblescope.compare(analysis, analysis).names == ("the run before", "the run after")


def test_all_causes_of_a_run_are_in_the_sample():
    """The samples written by hand have what a report has."""
    assert set(CAUSES) == set(TOLD)
    assert shifted(run(), 0.0) == run()
