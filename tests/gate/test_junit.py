"""The JUnit report of a gate, held against a schema and read as its readers do."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.report import junit
from tests.gate import values
from tests.gate.values import HOSTILE, check, gate

SCHEMA = xmlschema.XMLSchema(Path(__file__).parent / "junit.xsd")


def read(found) -> ET.Element:
    """The only suite of a report that is valid."""
    made = junit.render(found)
    SCHEMA.validate(io.BytesIO(made))
    (suite,) = ET.fromstring(made)  # noqa: S314  our own
    return suite


def ends(found) -> list[str]:
    """How each case ended, in their order."""
    return [case[0].tag if len(case) else "passed" for case in read(found).findall("testcase")]


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("passed", ["passed", "passed", "passed"]),
        ("failed", ["failure", "passed", "skipped"]),
        ("softened", ["passed", "passed", "skipped"]),
        ("inconclusive", ["error", "skipped", "skipped"]),
        ("too-few-steps", ["error", "skipped", "passed"]),
        ("missing-baseline", ["error", "passed", "skipped"]),
        ("limits-only", ["failure", "failure", "passed", "passed", "passed"]),
        ("off", ["passed", "skipped", "skipped"]),
        ("empty", ["error"]),
        ("hostile", ["failure", "error", "skipped", "skipped"]),
    ],
)
def test_how_each_rule_ends(sample, expected):
    """Only a rule of level error can be red; what warns or is off is skipped and says why."""
    assert ends(values.SAMPLES[sample]()) == expected


@pytest.mark.parametrize("sample", values.SAMPLES)
def test_counts_are_those_of_the_cases(sample):
    """The sums in the head are what a reader would count, and the verdict is red if and only if a case is."""
    found = values.SAMPLES[sample]()
    suite, seen = read(found), ends(found)
    assert {name: int(suite.get(name)) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": len(seen),
        "failures": seen.count("failure"),
        "errors": seen.count("error"),
        "skipped": seen.count("skipped"),
    }
    assert (found.verdict == "pass") == (not {"failure", "error"} & set(seen))
    assert (found.verdict == "fail") == ("failure" in seen)


def test_nothing_decided_is_not_green():
    """Where all that could not be decided only warns, the verdict is a case of its own."""
    rule = check("bubble:+2pp", level="warn", outcome="inconclusive", reason="the baseline is missing")
    assert ends(gate(rule, verdict="inconclusive")) == ["skipped", "error"]


def test_a_failure_says_all():
    """What was expected and found, where it is worst, how to look closer and how to accept it."""
    found = values.failed()
    failure = read(found).find("testcase/failure")
    assert failure.get("message") == "29.2% to 40.8%, up 11.6 points; expected: rises by at most 2.0 points"
    for part in ("preset default", "stage 0 (rank 0)", found.look, *found.accept, "noise 0.4 points", "p below 1e-9"):
        assert part in failure.text
    warned = read(found).find("testcase/skipped")
    assert warned.get("message").startswith("warning: 691.4 ms to 803.2 ms")


def test_properties_tell_what_was_compared():
    """The fingerprint of the run, without what nothing told."""
    told = {each.get("name"): each.get("value") for each in read(values.failed()).find("properties")}
    assert (told["schedule"], told["pp"], told["microbatches"]) == ("1f1b", "4", "8")
    assert "cp" not in told


def test_the_same_gate_gives_the_same_bytes():
    """No host, no time of day and no chance is in it."""
    assert junit.render(values.failed()) == junit.render(values.failed())
    assert b"timestamp" not in junit.render(values.failed())
    assert b"hostname" not in junit.render(values.failed())


@given(st.text(st.characters(), min_size=1), st.sampled_from(["pass", "fail", "inconclusive", "skipped"]))
def test_any_name_gives_a_valid_report(name, outcome):
    """Also with letters that XML cannot hold, halves of letters and ends of sections."""
    rule = check("bubble:+2pp", outcome=outcome, origin=name, reason=name, by="group", of=name)
    rules = (rule, replace(rule, level="warn"), replace(rule, rule=f"x{name}"))
    suite = read(gate(*rules, look=name, accept=(name,), baseline=name))
    assert len(suite.findall("testcase")) == 3


@pytest.mark.parametrize("letter", ["\x00", "\x0b", "\ufffe", "\uffff", "\udcff", "]]>", "<!--", "&#0;"])
def test_letters_that_xml_lacks_are_shown(letter):
    """As escapes that a reader can recognise."""
    found = gate(check("bubble:+2pp", outcome="fail", origin=f"a{letter}b"), verdict="fail")
    text = read(found).find("testcase/failure").text
    shown = {"\ufffe": "\\ufffe", "\uffff": "\\uffff", "\udcff": "\\udcff", "\x00": "\\x00", "\x0b": "\\x0b"}
    assert f"asked for by: a{shown.get(letter, letter)}b" in text


def test_schema_refuses_what_readers_refuse():
    """The schema is no rubber stamp: another order, another element or a missing count is invalid."""
    made = junit.render(values.failed()).decode()
    for old, new in (
        (' tests="3"', ""),
        ("failure", "fault"),
        ('skipped="1"', 'skipped="-1"'),
        (' time="0"/>', ' time="0" hostname="node0"/>'),
        ('classname="bubblescope.gate" ', ""),
    ):
        assert old in made
        assert not SCHEMA.is_valid(io.BytesIO(made.replace(old, new).encode()))


def test_hostile_names_stay_text():
    """The elements of a report are ours alone."""
    tags = {each.tag for each in read(values.hostile()).iter()}
    assert tags == {"testsuite", "properties", "property", "testcase", "failure", "error", "skipped"}
    assert "<script>" in HOSTILE
