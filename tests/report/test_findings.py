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
    order, first, reading = shown(a_proposal("host-bound", 0.081, "Launch earlier."))
    assert order.startswith("First what is wrong in this run")
    assert first == "host-bound: Launch earlier (saves at most 81.00 ms, 8.1% of a step). So and so."
    assert "Gains are upper bounds" in reading
    assert len(order) <= len(reading) <= 98  # a line each
    assert "do not add" in reading


def test_where_no_gain_is_claimed_none_is_explained():
    """Neither beside the proposal nor below."""
    assert shown(a_proposal("not-the-bubble")) == ("not-the-bubble: Do it. So and so.",)


def test_the_fourth_is_only_named():
    """With its gain; what has none, with what was found."""
    four = [a_proposal(code, 0.05) for code in ("a", "b", "c", "d")]
    assert shown(*four, a_proposal("e", title="It takes 10%"))[4] == "also: d (5.0%), e (It takes 10%; gain unknown)"


def test_the_largest_gain_is_always_shown():
    """Small faults that come first do not hide it."""
    faults = [a_proposal(code, gain) for code, gain in (("a", 0.02), ("b", 0.015), ("c", 0.012), ("d", 0.011))]
    told = shown(*faults, a_proposal("e", 0.2), a_proposal("f", 0.1))
    assert [line.split(":")[0] for line in told[1:6]] == ["a", "b", "c", "e", "also"]
    assert told[5] == "also: d (1.1%), f (10.0%)"


def test_free_collectives_are_told_beside_the_number():
    """Where the run has no tensor-parallel ranks to go by."""
    four = [a_proposal(code, 0.05) for code in ("a", "b", "c", "tensor-parallel")]
    base = one_f_one_b()
    for tp, text in ((1, "tensor-parallel (5.0% if its collectives are free)"), (2, "tensor-parallel (5.0%)")):
        report = replace(base, layout=replace(base.layout, tp=tp), findings=tuple(four))
        assert findings(report)[4] == f"also: {text}"


def test_the_last_words_are_what_to_try():
    """As the command takes it, where the numbers stand."""
    told = replace(a_proposal("p2p", 0.05), change="without=p2p")
    sure, unsure = (
        replace(one_f_one_b(), findings=(told,), bubble=replace(one_f_one_b().bubble, trusted=trusted))
        for trusted in (True, False)
    )
    assert findings(sure)[1].endswith(" So and so. Try: whatif --try without=p2p")
    assert "Try" not in findings(unsure)[1]


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
