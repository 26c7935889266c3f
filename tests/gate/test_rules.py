"""Rules as people write them, and what is said of those that are none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.errors import UsageError
from bubblescope.gate.rules import Rule, parse, parse_subject
from bubblescope.model.metrics import METRICS


@pytest.mark.parametrize(
    ("text", "written", "subject", "side", "limit"),
    [
        ("bubble > 18%", "bubble > 18%", ("bubble", None, None), "above", 0.18),
        ("bubble>0.18", "bubble > 0.18", ("bubble", None, None), "above", 0.18),
        ("bubble@stage=3 > 25%", "bubble@stage=3 > 25%", ("bubble", "stage", "3"), "above", 0.25),
        ("bubble@stage=03>25.50 %", "bubble@stage=3 > 25.5%", ("bubble", "stage", "3"), "above", 0.255),
        ("bubble@rank=12 > 25%", "bubble@rank=12 > 25%", ("bubble", "rank", "12"), "above", 0.25),
        ("bubble@stage=any > 25%", "bubble@stage=any > 25%", ("bubble", "stage", "any"), "above", 0.25),
        ("imbalance > 1.15", "imbalance > 1.15", ("imbalance", None, None), "above", 1.15),
        ("imbalance >= 1.15", "imbalance >= 1.15", ("imbalance", None, None), "above", 1.15),
        ("step-time > 700ms", "step_time > 700ms", ("step_time", None, None), "above", 700e6),
        ("Step_Time > 0.7 s", "step_time > 0.7s", ("step_time", None, None), "above", 700e6),
        ("mfu < 0.4", "mfu < 0.4", ("mfu", None, None), "below", 0.4),
        ("gap < -1%", "gap < -1%", ("gap", None, None), "below", -0.01),
        ("exposed@group=tp >= 5%", "exposed@group=tp >= 5%", ("exposed", "group", "tp"), "above", 0.05),
    ],
)
def test_limits(text, written, subject, side, limit):
    """A limit in the metric's own unit, and its text always in one way."""
    rule = parse(text)
    assert (rule.text, rule.subject, rule.side, rule.against) == (written, subject, side, "limit")
    assert rule.limit == pytest.approx(limit, rel=1e-12)
    assert rule.inclusive == ("=" in text.partition("@")[2].partition("=")[2] or ">=" in text)
    assert parse(rule.text) == rule


@pytest.mark.parametrize(
    ("text", "written", "side", "limit", "relative"),
    [
        ("bubble:+2pp", "bubble:+2pp", "above", 0.02, False),
        ("bubble: + 2.50 pp", "bubble:+2.5pp", "above", 0.025, False),
        ("bubble:-2pp", "bubble:-2pp", "below", 0.02, False),
        ("bubble:+150%", "bubble:+150%", "above", 1.5, True),
        ("imbalance:+5%", "imbalance:+5%", "above", 0.05, True),
        ("imbalance:+0.05", "imbalance:+0.05", "above", 0.05, False),
        ("step_time:+20ms", "step_time:+20ms", "above", 20e6, False),
        ("microbatches_per_s:-5%", "microbatches_per_s:-5%", "below", 0.05, True),
        ("bubble@cause=p2p:+1pp", "bubble@cause=p2p:+1pp", "above", 0.01, False),
    ],
)
def test_changes(text, written, side, limit, relative):
    """A change to one side, in points, in the metric's unit or as a part of the baseline's value."""
    rule = parse(text)
    assert (rule.text, rule.side, rule.against, rule.relative) == (written, side, "baseline", relative)
    assert rule.limit == pytest.approx(limit, rel=1e-12)
    assert parse(rule.text) == rule


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "'' is no rule", "for example"),
        ("bubble", "is no rule", "for example"),
        ("bubble > ", "is no rule", "for example"),
        ("bubble = 3%", "is no rule", "did you mean bubble > 3%?"),
        ("bubble > 3% or so", "is no rule", "for example"),
        ("bubble > nan", "is no rule", "for example"),
        ("bubble > 1e5%", "is no rule", "for example"),
        ("bubbel > 3%", "no number is called 'bubbel'", "did you mean bubble?"),
        ("xyz > 3%", "no number is called 'xyz'", "known are bubble, gap"),
        ("p2p:+1pp", "no number is called 'p2p'", "bubble@cause=p2p"),
        ("bubble > 18", "a share is below 1, which is 100%, found 18", "did you mean 18%?"),
        ("bubble > 1", "a share is below 1, which is 100%, found 1", "did you mean 1%?"),
        ("bubble > 180%", "a share is below 1, which is 100%, found 180%", "for example"),
        ("bubble > 1800", "found 1800", "for example"),
        ("bubble:2pp", "is no rule", "did you mean bubble:+2pp?"),
        ("bubble == 18%", "is no rule", "did you mean bubble > 18%?"),
        ("bubble => 18%", "is no rule", "did you mean bubble >= 18%?"),
        ("mfu:-0.05", "a change of a share is in points", "did you mean mfu:-5pp?"),
        ("bubble.measured > 20%", "names no number", "did you mean bubble?"),
        ("bubble > 18pp", "found the unit 'pp'", "for example"),
        ("bubble:+2", "a change of a share is in points", "bubble:+2pp"),
        ("bubble@stag=3 > 3%", "@stage=", "did you mean stage?"),
        ("bubble@stage=x > 3%", "a stage is a number, or any", None),
        ("bubble@cause=hots > 3%", "no cause is called 'hots'", "did you mean host?"),
        ("exposed@group=zz > 3%", "no group is called 'zz'", "known are pp"),
        ("gap@stage=3 > 3%", "gap is told of the whole job alone", None),
        ("bubble@ > 3%", "names no number", "did you mean bubble?"),
        ("work > 3ms", "work is told of parts alone", "work@stage=any"),
        ("step_time > 700", "a time needs a unit", "for example"),
        ("step_time > 700min", "a time needs a unit", "for example"),
        ("imbalance:+5pp", "in % or without a unit", "for example"),
        ("imbalance > 120%", "found the unit '%'", "for example"),
        ("bubble@rank=3:+2pp", "keeps no single ranks", "bubble@rank=3 > 25%"),
        ("bubble@pipeline=any:+2pp", "keeps no single ranks", "by stage"),
    ],
)
def test_what_is_no_rule(text, message, hint):
    """Each mistake is named, with what may be meant."""
    with pytest.raises(UsageError) as error:
        parse(text)
    assert message in error.value.message
    assert (hint is None) == (error.value.hint is None)
    assert hint is None or hint in (error.value.hint or "")


def test_an_invisible_space_does_no_harm():
    """Markdown puts one behind an @, and rules are copied from there."""
    assert parse("bubble@\u200bstage=3 > 25%") == parse("bubble@stage=3 > 25%")


@given(st.text(max_size=60))
def test_any_text_is_a_rule_or_a_usage_error(text):
    """Nothing else comes of it, and what is a rule reads back from its own text."""
    try:
        rule = parse(text)
    except UsageError:
        return
    assert parse(rule.text) == rule


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_can_be_asked_for(name):
    """Of the whole job or of each part, with an example in its own unit."""
    kind = METRICS[name]
    unit = {"share": "%", "ratio": "", "ns": "ms", "per_s": ""}[kind.unit]
    subjects = [name] if kind.whole else []
    subjects += [f"{name}@{part}=any" for part in kind.parts]
    for subject in subjects:
        assert isinstance(parse(f"{subject} > 1{unit}"), Rule)
        assert parse_subject(subject) == parse(f"{subject} > 1{unit}").subject
