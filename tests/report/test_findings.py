"""How proposals are shown: the first ones in full, the others by name, gains as bounds."""

from __future__ import annotations

from dataclasses import replace

from bubblescope.model.report import Proposal
from bubblescope.report.csv import render
from bubblescope.report.facts import findings
from tests.report.conftest import one_f_one_b


def a_proposal(code, gain=None, title="Do it"):
    """A proposal that saves a share of a step of a second."""
    return Proposal(
        code=code,
        title=title,
        detail="So and so.",
        gain_ns=None if gain is None else round(gain * 1e9),
        gain=gain,
        formula="a - b",
        limits="much",
        source="someone",
        change=None,
    )


def shown(*proposals):
    """What a summary says of them."""
    return findings(replace(one_f_one_b(), findings=proposals))


def test_a_run_without_advice_says_nothing():
    """Not even how to read it."""
    assert shown() == ()


def test_a_proposal_begins_with_its_code_and_gain():
    """The code is what can be explained; a full stop stands once."""
    first, reading = shown(a_proposal("host-bound", 0.081, "Launch earlier."))
    assert first == "host-bound: Launch earlier (saves at most 81.00 ms, 8.1% of a step). So and so."
    assert "Gains are upper bounds" in reading
    assert "do not add" in reading


def test_where_no_gain_is_claimed_none_is_explained():
    """Neither beside the proposal nor below."""
    assert shown(a_proposal("not-the-bubble")) == ("not-the-bubble: Do it. So and so.",)


def test_the_fourth_is_only_named():
    """With its gain, if it has one."""
    five = [a_proposal(code, 0.05) for code in ("a", "b", "c", "d")]
    assert shown(*five, a_proposal("e"))[3] == "also: d (5.0%), e"


def test_proposals_in_csv():
    """A row for each of their keys, under the code."""
    rows = render(replace(one_f_one_b(), findings=(a_proposal("host-bound", 0.05),))).decode().splitlines()
    assert [row for row in rows if row.startswith("finding,")] == [
        "finding,host-bound,title,Do it",
        "finding,host-bound,detail,So and so.",
        "finding,host-bound,gain_ns,50000000",
        "finding,host-bound,gain,0.05",
        "finding,host-bound,formula,a - b",
        "finding,host-bound,limits,much",
        "finding,host-bound,source,someone",
        "finding,host-bound,change,",
    ]
