"""Reports and baselines as files: what is read, what is refused, and how a run is taken from either."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from bubblescope import Options, StepRange, UsageError, analyze, baseline, compare, evaluate
from bubblescope.errors import InputError
from bubblescope.gate.condense import condense
from bubblescope.gate.files import read, reference
from bubblescope.gate.take import taken
from bubblescope.model.baseline import Baseline
from bubblescope.model.report import Report
from bubblescope.report import baselines
from bubblescope.report import json as rendered

SAMPLE = Path(__file__).parents[2] / "sample_traces" / "1f1b_p4m8"


@pytest.fixture(scope="module")
def report() -> Report:
    """That of a sample."""
    return analyze(SAMPLE).report


@pytest.fixture
def files(tmp_path, report):
    """A report and a baseline of the sample."""
    (tmp_path / "report.json").write_bytes(rendered.render(report))
    (tmp_path / "base.json").write_bytes(baselines.render(condense(report)))
    return tmp_path


def test_reports_and_baselines_are_told_by_content(files, report):
    """Whatever they are called; traces are neither."""
    (files / "base.json").rename(files / "rank0.json.gz")
    assert isinstance(read(str(files / "rank0.json.gz")), Baseline)
    assert read(str(files / "report.json")) == report
    assert read(str(SAMPLE)) is None
    assert read(str(next(SAMPLE.glob("*.json.gz")))) is None
    assert read(str(files / "nope")) is None
    assert read("a\0b") is None


def test_a_report_is_a_baseline(files, report):
    """What a baseline of it would hold."""
    assert reference(str(files / "report.json")) == condense(report)
    assert reference(str(files / "nope.json")) is None


def test_a_baseline_can_come_through_a_pipe(files):
    """As a shell gives it for `<(git show main:base.json)`."""
    code = (
        "import sys; from bubblescope.gate.files import reference; print(reference(sys.argv[1]).fingerprint.schedule)"
    )
    line = f'"$0" -c "{code}" <(cat "$1")'
    done = subprocess.run(
        ["bash", "-c", line, os.sys.executable, str(files / "base.json")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1f1b\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected a baseline, found something else"),
        ("{}", "expected a baseline, found something else"),
        ("not JSON", "expected a baseline, found something else"),
        ('{"schema": "bubblescope.gate/1"}', "expected a report or a baseline, found a gate"),
        ('{"schema": "bubblescope.baseline/2"}', "a baseline of version 2"),
        ('{"schema": "bubblescope.baseline/1"}', " is damaged: Object missing required field"),
        ('{"schema": "bubblescope.baseline/1", ', "is damaged"),
        ('{"schema": "bubblescope.baseline/1", "tool": 3}', " is damaged: Expected `object`, got `int`"),
    ],
)
def test_what_is_no_baseline(tmp_path, text, message):
    """Each says what was expected and what was found, and in which file."""
    (tmp_path / "b.json").write_text(text, "utf-8")
    with pytest.raises(InputError) as error:
        reference(str(tmp_path / "b.json"))
    assert message in error.value.message
    assert "b.json" in error.value.message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spread", -1),
        ("spread", 1e300),
        ("value", 1e300),
        ("steps", 0),
        ("steps", 1),
        ("steps", 2.5),
        ("error", -1),
        ("of", "3"),
        ("metric", None),
    ],
)
def test_numbers_that_cannot_be(files, key, value):
    """They are refused at the door, so that no gate reckons with them."""
    made = json.loads((files / "base.json").read_text("utf-8"))
    made["metrics"][0][key] = value
    (files / "base.json").write_text(json.dumps(made), "utf-8")
    with pytest.raises(InputError, match="is damaged"):
        reference(str(files / "base.json"))


def test_a_directory_is_no_baseline(tmp_path):
    """It cannot be read as a file."""
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        reference(str(tmp_path))


def test_a_run_is_taken_from_whatever_holds_it(files, report):
    """Traces, their report, a file of it, a value: the same numbers, and the ranks of each stage."""
    of_traces = taken(str(SAMPLE))
    assert of_traces.numbers == taken(report).numbers == taken(str(files / "report.json")).numbers
    assert of_traces.holders == {str(stage): (stage,) for stage in range(4)}
    assert of_traces.names == (str(SAMPLE),)
    of_baseline = taken(str(files / "base.json"))
    assert of_baseline.holders == {}
    assert of_baseline.numbers.fingerprint == of_traces.numbers.fingerprint
    assert taken(of_baseline.numbers).numbers == of_baseline.numbers


def test_a_report_stands_alone(files):
    """It is a whole run, and no rank among others."""
    with pytest.raises(UsageError, match="is a whole run by itself"):
        taken([str(files / "report.json"), str(SAMPLE)])


def test_options_go_to_the_traces():
    """Steps that are asked for are those that count."""
    assert taken(str(SAMPLE), Options()).numbers.fingerprint.steps == 2
    assert taken(str(SAMPLE), Options(steps=StepRange.parse("3"))).numbers.fingerprint.steps == 1


def test_tools_that_rewrite_json_do_no_harm(files):
    """Sorted keys, other indents and a byte order mark are the same baseline."""
    place = files / "base.json"
    expected = reference(str(place))
    made = json.loads(place.read_text("utf-8"))
    for text in (json.dumps(made, sort_keys=True), json.dumps(made, indent=4), "\ufeff" + json.dumps(made)):
        place.write_text(text, "utf-8")
        assert reference(str(place)) == read(str(place)) == expected


def test_numbers_of_a_later_version_are_left_aside(files):
    """A metric that this program does not know; other keys that it does not know, too."""
    place = files / "base.json"
    expected = reference(str(place))
    made = json.loads(place.read_text("utf-8"))
    made["metrics"].append({**made["metrics"][0], "metric": "foo"})
    made["new"] = 3
    place.write_text(json.dumps(made), "utf-8")
    assert reference(str(place)) == expected


def test_a_number_stands_once(files):
    """Of two nobody could say which counts."""
    place = files / "base.json"
    made = json.loads(place.read_text("utf-8"))
    made["metrics"].insert(0, {**made["metrics"][0], "value": 0.9})
    place.write_text(json.dumps(made), "utf-8")
    with pytest.raises(InputError, match="bubble stands in it more than once"):
        reference(str(place))


def test_both_sides_of_a_merge_are_no_baseline(files):
    """What git leaves of a conflict is called by its name."""
    place = files / "base.json"
    lines = place.read_text("utf-8").splitlines()
    place.write_text("\n".join([*lines[:3], "<<<<<<< HEAD", *lines[3:]]), "utf-8")
    with pytest.raises(InputError, match="both sides of a merge"):
        reference(str(place))


def test_options_say_nothing_about_a_report(files):
    """They would be ignored, and the verdict would be about something else than was asked for."""
    options = Options(steps=StepRange.parse("3"))
    for call in (evaluate, baseline):
        asked = {"fail_on": "bubble > 90%"} if call is evaluate else {}
        with pytest.raises(UsageError, match="is taken as it is: --steps 3 says nothing about it"):
            call(str(files / "report.json"), options=options, **asked)
    with pytest.raises(UsageError, match="says nothing about it"):
        compare(str(files / "report.json"), str(files / "base.json"), options)
    assert compare(str(files / "report.json"), str(SAMPLE), options).after.fingerprint.steps == 1


@pytest.mark.parametrize(("name", "value"), [("bubble", 1.2), ("bubble", -1.2), ("step_time", -5)])
def test_values_that_cannot_be(files, name, value):
    """No share is over 100 %, no time below nothing."""
    place = files / "base.json"
    made = json.loads(place.read_text("utf-8"))
    next(each for each in made["metrics"] if each["metric"] == name)["value"] = value
    place.write_text(json.dumps(made), "utf-8")
    with pytest.raises(InputError, match=f"{name} cannot be {value}"):
        reference(str(place))
