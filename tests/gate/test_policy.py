"""Which rules a gate holds, from presets and from what is stated."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bubblescope.errors import UsageError
from bubblescope.gate.policy import Policy, policy
from bubblescope.gate.presets import PRESETS
from bubblescope.gate.rules import parse

PAGE = (Path(__file__).parents[2] / "docs" / "gate.md").read_text("utf-8")


def told(made: Policy) -> list[tuple[str, str, str]]:
    """Text, level and origin of the rules."""
    return [(each.rule.text, each.level, each.origin) for each in made.rules]


def test_default_rules_need_a_baseline():
    """With one and no rule of their own they are those of the design; with neither there is nothing to do."""
    assert told(policy((), preset=None, compared=True)) == [
        ("bubble:+2pp", "error", "preset default"),
        ("imbalance:+5%", "warn", "preset default"),
        ("step_time:+5%", "warn", "preset default"),
    ]
    with pytest.raises(UsageError, match="the gate has no rule"):
        policy((), preset=None, compared=False)


def test_stated_rules_take_the_place_of_the_default():
    """Unless a preset is named, which then stands beside them."""
    stated = [("bubble > 30%", "error", "--fail-on")]
    assert told(policy(stated, preset=None, compared=True)) == [("bubble > 30%", "error", "--fail-on")]
    assert [text for text, _, _ in told(policy(stated, preset="default", compared=True))] == [
        *PRESETS["default"],
        "bubble > 30%",
    ]


def test_a_stated_rule_replaces_the_one_of_the_preset_about_the_same():
    """The same number, the same kind, the same direction: narrower, wider, or at another level."""
    stated = [("bubble:+3pp", "error", "a"), ("step_time:+9%", "error", "b"), ("bubble:-3pp", "warn", "c")]
    made = told(policy(stated, preset="default", compared=True))
    assert made == [("imbalance:+5%", "warn", "preset default"), *stated]


def test_a_number_may_warn_early_and_fail_late():
    """Two rules of one's own about one number both stand."""
    stated = [("bubble:+1pp", "warn", "w"), ("bubble:+3pp", "error", "e")]
    assert told(policy(stated, preset=None, compared=True)) == stated


@pytest.mark.parametrize("off", ["step_time", "step-time", "step_time:+5%", " step_time : +5 % "])
def test_off(off):
    """By its number or as a whole; it is still listed."""
    made = told(policy((), preset="default", off=[off], compared=True))
    assert ("step_time:+5%", "off", "preset default") in made
    assert [level for _, level, _ in made].count("off") == 1


def test_a_stated_rule_cannot_be_off():
    """One layer must not silence what another asks for: that would be a green gate that looked at nothing."""
    for off in ("bubble", "bubble:+3pp"):
        with pytest.raises(UsageError, match=r"asked for .here. and turned off at once"):
            policy([("bubble:+3pp", "error", "here")], preset="default", off=[off], compared=True)


def test_what_is_wrong_with_a_rule_says_who_asked():
    """The file, the variable or the option."""
    with pytest.raises(UsageError, match=r"pyproject\.toml: no number is called 'bubbel'"):
        policy([("bubbel > 3%", "error", "pyproject.toml")], preset=None, compared=False)


def test_all_rules_off_is_no_gate():
    """Nothing would be decided."""
    with pytest.raises(UsageError, match="the gate has no rule"):
        policy((), preset="smoke", off=["bubble"], compared=True)


@pytest.mark.parametrize(
    ("preset", "off", "hint"),
    [("strickt", (), "did you mean strict?"), ("x", (), "known are default"), ("none", ["bubbel"], "bubble")],
)
def test_what_does_not_exist(preset, off, hint):
    """A misspelt preset or number is an error with what may be meant."""
    with pytest.raises(UsageError) as error:
        policy([("bubble > 30%", "error", "a")], preset=preset, off=off, compared=True)
    assert hint in (error.value.hint or "")


def test_presets_are_rules_and_documented():
    """Every rule of a preset reads, in the very way that rules are written, and docs/gate.md has them all."""
    rows = dict(
        re.findall(r"^\| `(\w+)` \| (.*\|.*) \|$", PAGE.split("### Presets")[1].split("\n## ")[0], re.MULTILINE)
    )
    assert set(rows) == set(PRESETS)
    for name, rules in PRESETS.items():
        assert [parse(text).text for text in rules] == list(rules)
        fails, warns = rows[name].split("|")
        assert re.findall(r"`([^`]+)`", fails) == [text for text, level in rules.items() if level == "error"]
        assert re.findall(r"`([^`]+)`", warns) == [text for text, level in rules.items() if level == "warn"]


def test_off_is_about_some_preset():
    """A slip is an error; a rule of another preset than the one that holds is none."""
    for off in ("mfu", "bubble:+3pp"):
        with pytest.raises(UsageError, match=f"no preset has a rule {re.escape(off)}"):
            policy((), preset="default", off=[off], compared=True)
    assert len(policy((), preset="smoke", off=["step_time"], compared=True).rules) == 1
