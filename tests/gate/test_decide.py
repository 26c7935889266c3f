"""When a rule fails, passes, or cannot be decided."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bubblescope.gate.decide import against_baseline, against_limit
from bubblescope.gate.rules import parse
from tests.gate.runs import metric


@pytest.mark.parametrize(
    ("rule", "value", "outcome"),
    [
        ("bubble > 18%", 0.181, "fail"),
        ("bubble > 18%", 0.18, "pass"),
        ("bubble >= 18%", 0.18, "fail"),
        ("bubble > 30%", 0.1 + 0.2, "pass"),
        ("bubble >= 30%", 0.1 + 0.2, "fail"),
        ("bubble < 18%", 0.179, "fail"),
        ("bubble <= 18%", 0.18, "fail"),
        ("bubble < 18%", 0.18, "pass"),
    ],
)
def test_limits(rule, value, outcome):
    """The run's own mean against the limit, whatever its noise; floating point makes no difference."""
    assert against_limit(parse(rule), metric("bubble", value, 0.5, 2)).outcome == outcome
    assert against_limit(parse(rule), metric("bubble", value, None, 1)).outcome == outcome


@pytest.mark.parametrize(
    ("rule", "found", "baseline", "outcome"),
    [
        # five steps with a spread of 0.2 points: noise of a change is 2.9 * 0.2 * sqrt(2 / 5) = 0.37 points
        ("bubble:+2pp", 0.33, 0.29, "fail"),
        ("bubble:+2pp", 0.3101, 0.29, "fail"),
        ("bubble:+2pp", 0.31, 0.29, "pass"),
        ("bubble:+2pp", 0.29, 0.29, "pass"),
        ("bubble:+2pp", 0.20, 0.29, "pass"),
        ("bubble:-2pp", 0.20, 0.29, "fail"),
        ("bubble:-2pp", 0.40, 0.29, "pass"),
        ("bubble:+0.2pp", 0.293, 0.29, "inconclusive"),  # over the limit, but not over the noise
        ("bubble:+0.2pp", 0.295, 0.29, "fail"),
        ("bubble:+0.5pp", 0.292, 0.29, "pass"),  # what is left to the limit is more than noise
        ("bubble:+0.5pp", 0.294, 0.29, "inconclusive"),
        ("bubble:+10%", 0.33, 0.29, "fail"),
        ("bubble:+10%", 0.30, 0.29, "pass"),
        ("bubble:-10%", 0.25, 0.29, "fail"),
        ("bubble:+0pp", 0.29, 0.29, "inconclusive"),
    ],
)
def test_changes(rule, found, baseline, outcome):
    """Over the limit and over the noise fails; below the limit passes where the steps could have shown it."""
    assert against_baseline(parse(rule), metric("bubble", found), metric("bubble", baseline)).outcome == outcome


def test_noise_hides_a_change():
    """Steps that differ by a point can neither show two points nor rule them out, and the reason says what would."""
    wide = {"spread": 0.01, "steps": 2}
    for value, text, steps in (
        (0.29, "could hide in", 3),
        (0.305, "could hide in", 13),
        (0.33, "could be the noise", 3),
    ):
        found = against_baseline(parse("bubble:+2pp"), metric("bubble", value, **wide), metric("bubble", 0.29, **wide))
        assert found.outcome == "inconclusive"
        assert text in found.reason
        assert f"if they go on like this, about {steps} steps of each tell" in found.reason
    assert found.noise == pytest.approx(0.0697, abs=1e-4)
    sure = against_baseline(parse("bubble:+2pp"), metric("bubble", 0.45, **wide), metric("bubble", 0.29, **wide))
    assert sure.outcome == "fail"


@given(st.floats(0.25, 0.33), st.floats(0.001, 0.02), st.floats(0.001, 0.02), st.integers(1, 8))
def test_steps_that_would_tell_do_tell(value, one, two, tests):
    """With as many steps as the reason asks for, and all else the same, the rule is decided; with fewer it is not."""
    pair = metric("bubble", value, one, 2), metric("bubble", 0.29, two, 2)
    rule = parse("bubble:+2pp")
    found = re.search(r"about (\d+) steps", against_baseline(rule, *pair, tests).reason)
    assume(found is not None)
    for steps, told in ((int(found[1]), True), (int(found[1]) - 1, False)):
        again = against_baseline(rule, *(replace(each, steps=max(steps, 2)) for each in pair), tests)
        assert (again.outcome != "inconclusive") == told


@pytest.mark.parametrize(
    ("rule", "value", "rare"),
    [
        ("bubble:+2pp", 0.311, True),
        ("bubble:+2pp", 0.269, False),
        ("bubble:-2pp", 0.269, True),
        ("bubble:-2pp", 0.311, False),
    ],
)
def test_the_chance_is_that_of_the_side_that_the_rule_names(rule, value, rare):
    """A change to the other side is no evidence at all."""
    found = against_baseline(parse(rule), metric("bubble", value, 0.01), metric("bubble", 0.29, 0.01))
    assert found.chance == pytest.approx(0.00527 if rare else 1 - 0.00527, abs=1e-5)


def test_hopeless_noise_is_called_so():
    """Where no usual number of steps would do, none is promised."""
    pair = metric("bubble", 0.3, 0.3, 3), metric("bubble", 0.29, 0.3, 3)
    assert "vary too much for this limit" in against_baseline(parse("bubble:+2pp"), *pair).reason


@pytest.mark.parametrize(("steps", "text"), [((1, 5), "1 in the run"), ((5, 1), "1 in the baseline")])
def test_too_few_steps(steps, text):
    """One step has no spread, and without one nothing is decided, however large the change; it is told all the same."""
    pair = [metric("bubble", value, 0.001 if n > 1 else None, n) for value, n in zip((0.9, 0.1), steps, strict=True)]
    found = against_baseline(parse("bubble:+2pp"), *pair)
    assert (found.outcome, found.change, found.noise) == ("inconclusive", pytest.approx(0.8), None)
    assert text in found.reason


def test_parts_of_nothing():
    """A part of a baseline that is 0 or below is no limit."""
    found = against_baseline(parse("gap:+5%"), metric("gap", 0.01), metric("gap", -0.001))
    assert found.outcome == "inconclusive"
    assert "use points" in found.reason


def test_several_tests_are_stricter():
    """A rule of many parts needs changes that are rarer by as much."""
    pair = metric("bubble", 0.2936, 0.002, 5), metric("bubble", 0.29, 0.002, 5)
    rule = parse("bubble:+0.3pp")
    one, many = (against_baseline(rule, *pair, tests=n) for n in (1, 64))
    assert many.noise > one.noise


sides = st.builds(metric, st.just("bubble"), st.floats(0.01, 0.9), st.floats(0, 0.1), st.integers(2, 20))


@given(sides, sides, st.floats(0.1, 10))
def test_outcomes_are_of_one_mind(found, baseline, points):
    """No failure without a change over limit and noise, no pass of a change over the limit, and mirrored runs agree."""
    pair = found, baseline
    up = against_baseline(parse(f"bubble:+{points:.3f}pp"), *pair)
    limit = float(f"{points:.3f}") / 100
    if up.outcome == "fail":
        assert up.change > limit
        assert up.change > up.noise
    if up.outcome == "pass":
        assert up.change <= limit + 1e-9
    down = against_baseline(parse(f"bubble:-{points:.3f}pp"), *reversed(pair))
    assert down.outcome == up.outcome


def test_clocks_are_not_blamed_on_steps():
    """What they leave open is the same in every step, and it is said."""
    pair = metric("bubble", 0.30, 0.001, error=0.02), metric("bubble", 0.29, 0.001, error=0.02)
    assert "what the clocks of the hosts leave open" in against_baseline(parse("bubble:+2pp"), *pair).reason
