"""The words about rules and what they found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.model.gate import Worst
from bubblescope.report import gate_words as told
from bubblescope.report import gates
from tests.gate import values
from tests.gate.values import MS, check, gate

RISE = check("bubble:+2pp", limit=0.02, found=0.408, baseline=0.292, change=0.116, noise=0.004)


@pytest.mark.parametrize(
    ("rule", "expected", "found"),
    [
        (RISE, "rises by at most 2.0 points", "29.2% to 40.8%, up 11.6 points; noise 0.4 points"),
        (replace(RISE, limit=0.01), "rises by at most 1.0 point", "29.2% to 40.8%, up 11.6 points; noise 0.4 points"),
        (
            replace(RISE, limit=0.0025),
            "rises by at most 0.25 points",
            "29.2% to 40.8%, up 11.6 points; noise 0.4 points",
        ),
        (replace(RISE, limit=0.0), "does not rise", "29.2% to 40.8%, up 11.6 points; noise 0.4 points"),
        (replace(RISE, limit=-0.01), "falls by at least 1.0 point", "29.2% to 40.8%, up 11.6 points; noise 0.4 points"),
        (
            replace(RISE, relative=True, limit=0.05, change=0.397, noise=0.01),
            "rises by at most 5.0% of it",
            "29.2% to 40.8%, up 39.7% of it; noise 1.0% of it",
        ),
        (
            check("step_time:+5%", limit=0.05, found=720 * MS, baseline=700 * MS, change=0.0286, noise=0.002),
            "rises by at most 5.0%",
            "700.0 ms to 720.0 ms, up 2.9%; noise 0.2%",
        ),
        (
            check("step_time:+20ms", limit=20 * MS, found=700 * MS, baseline=720 * MS, change=-20 * MS, relative=False),
            "rises by at most 20.00 ms",
            "720.0 ms to 700.0 ms, down 20.00 ms",
        ),
        (
            check("mfu:-5%", side="below", limit=-0.05, found=0.40, baseline=0.40, change=0.0),
            "falls by at most 5.0% of it",
            "40.0% to 40.0%, unchanged",
        ),
        (check("samples_per_s:-0%", side="below", limit=0.0, found=41.0), "does not fall", "41.0/s"),
        (check("samples_per_s < 40", side="below", limit=40.0, found=38_200.0), "at least 40.0/s", "38.2k/s"),
        (check("bubble > 18%", limit=0.18, found=0.123), "at most 18.0%", "12.3%"),
        (check("imbalance > 1.15", limit=1.15, found=1.2), "at most 1.15", "1.20"),
        (check("imbalance > 1.125", limit=1.125, found=1.2), "at most 1.125", "1.20"),
        (check("bubble > 18%", limit=0.18, found=None), "at most 18.0%", "not measured"),
    ],
)
def test_words_about_a_rule(rule, expected, found):
    """What is asked for, and what was found, in the unit of the metric."""
    assert told.expected(rule) == expected
    assert told.found(rule) == found


def test_what_decides_can_be_seen():
    """A value that is just beyond its limit is written with the digits that show it."""
    assert told.found(check("bubble > 18%", limit=0.18, found=0.18004, outcome="fail")) == "18.004%"
    near = replace(RISE, change=0.02003, baseline=0.292, found=0.31203)
    assert told.change(near) == "+2.003 points"
    assert told.limit(near) == "+2.000 points"


def test_values_that_differ_look_different():
    """A ratio that rose by 0.3% does not look the same before and after."""
    assert told.values(values.IMBALANCE) == ("1.001", "1.004")


def test_a_part_is_named_where_the_rule_does_not():
    """`bubble@stage=3` names it, a rule about the worst or about each stage does not."""
    assert told.name(check("bubble@stage=3 > 25%", by="stage", of="3")) == "bubble@stage=3 > 25%"
    assert told.name(check("bubble@stage=* > 25%", by="stage", of="3")) == "bubble@stage=* > 25% (stage 3)"


@pytest.mark.parametrize(
    ("sample", "verdict", "counts"),
    [
        ("passed", "PASS: all 3 rules hold", "3 passed"),
        ("failed", "FAIL: 1 of 3 rules failed, 1 warns", "1 failed, 1 warned, 1 passed"),
        ("softened", "PASS: 2 of 3 rules hold, 1 warns", "1 warned, 2 passed"),
        (
            "inconclusive",
            "INCONCLUSIVE: 3 of 3 rules could not be decided, as the runs differ in schedule and micro-batches",
            "3 inconclusive",
        ),
        ("too-few-steps", "INCONCLUSIVE: 2 of 3 rules could not be decided", "2 inconclusive, 1 passed"),
        (
            "missing-baseline",
            "INCONCLUSIVE: the baseline is missing, and 2 of 3 rules could not be decided",
            "2 inconclusive, 1 passed",
        ),
        ("limits-only", "FAIL: 2 of 5 rules failed", "2 failed, 3 passed"),
        ("off", "PASS: 1 of 3 rules holds", "1 passed, 1 skipped, 1 off"),
        ("empty", "INCONCLUSIVE: there is no rule", "none"),
    ],
)
def test_verdict_and_counts(sample, verdict, counts):
    """One sentence, and every rule counted once."""
    found = values.SAMPLES[sample]()
    assert told.verdict(found) == verdict
    assert told.counts(found) == counts


def test_verdict_of_one_rule():
    """A single rule is no list."""
    assert told.verdict(gate(RISE)) == "PASS: the rule holds"
    assert told.verdict(gate(replace(RISE, outcome="skipped"))) == "PASS: nothing was compared, as is allowed"
    assert told.verdict(gate(replace(RISE, outcome="skipped"), verdict="inconclusive")).endswith("no rule was applied")


def test_what_was_compared():
    """With what, or why with nothing."""
    run = "5 steps of 4 ranks (1f1b, p 4, m 8, v 1)"
    other = gate(RISE, reference=values.fingerprint(world_size=8, recorded=8, steps=2))
    assert told.compared(values.passed()) == f"{run} with bubblescope.baseline.json (5 steps)"
    assert told.compared(other) == f"{run} with bubblescope.baseline.json (2 steps of 8 ranks)"
    assert told.compared(values.limits_only()) == f"{run} with limits alone"
    assert told.compared(values.missing_baseline()) == f"{run} with nothing: bubblescope.baseline.json is not there"
    assert told.compared(values.inconclusive()).startswith("nothing: this run is 1f1b, p 4, m 8, v 1, ")
    unknown = gate(RISE, run=values.baseline(fingerprint=values.fingerprint(microbatches=None)))
    assert "m ?" in told.compared(unknown)


def test_the_worst_part():
    """Where to look, with its ranks and how it was before."""
    assert told.worst((values.WORST,)) == "stage 0 (rank 0): bubble 45.1%, 29.1% in the baseline"
    slow = Worst(metric="work", by="rank", of="7", ranks=(7,), value=733 * MS, baseline=None)
    assert told.worst((slow,)) == "rank 7: work a step 733.0 ms"


def test_many_failures_are_counted():
    """Five are told, the others stand in the table."""
    failed = [replace(RISE, rule=f"bubble:+{n}pp", outcome="fail") for n in range(8)]
    facts = gates.page(gate(*failed, verdict="fail")).facts
    assert [text for name, text in facts if name == "Failed"][5:] == ["3 more, see the table"]


def test_what_was_softened_is_told():
    """A rule that only warns because the machines differ says so, with its reason, once for all of them."""
    (remark,) = gates.page(values.softened()).remarks
    assert remark.startswith("step_time:+5%: softened from error to warn; ")
    (remark,) = gates.page(values.inconclusive()).remarks
    assert remark.startswith("bubble:+2pp, imbalance:+5%, step_time:+5%: ")
