"""What other services take: OpenMetrics text, Bencher Metric Format, github-action-benchmark."""

from __future__ import annotations

import json
import re
import shlex

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from bubblescope.model.metrics import METRICS
from bubblescope.report import histories, openmetrics
from bubblescope.report.wording import visible
from tests.gate import values
from tests.gate.values import HOSTILE, MS, baseline, fingerprint, metric

RUN = baseline()


def families(run) -> dict[str, object]:
    """The metrics of the text, by name, as Prometheus reads them."""
    return {each.name: each for each in text_string_to_metric_families(openmetrics.render(run).decode())}


def test_openmetrics_says_what_was_measured():
    """In base units, with the part as a label, and each family with its type and help."""
    found = families(RUN)
    (step,) = found["bubblescope_step_time_seconds"].samples
    assert (step.value, step.labels) == (pytest.approx(0.803212346), {})
    stages = {each.labels["stage"]: each.value for each in found["bubblescope_stage_bubble_ratio"].samples}
    assert stages == {"0": 0.4512, "1": 0.4421, "2": 0.4459, "3": 0.2912}
    (run,) = found["bubblescope_run"].samples
    assert (run.labels["schedule"], run.labels["microbatches"], run.value) == ("1f1b", "8", 1)
    assert all(each.documentation.endswith(".") for each in found.values())
    assert {each.type for each in found.values()} == {"gauge", "info"}
    assert {each.unit for each in found.values()} == {"ratio", "seconds", ""}


def test_every_number_is_in_every_history():
    """No metric of the table is forgotten, whatever its unit and its parts."""
    numbers = [metric(name, 1.5) for name, kind in METRICS.items() if kind.whole]
    numbers += [metric(name, 1.5, by=by, of="1") for name, kind in METRICS.items() for by in kind.parts]
    run = baseline(metrics=tuple(numbers))
    samples = [each for family in families(run).values() for each in family.samples]
    assert len(samples) == len(numbers) + 1
    assert sum(map(len, json.loads(histories.bencher(run)).values())) == len(numbers)
    lower = [each for each in numbers if METRICS[each.metric].better == "lower"]
    assert len(json.loads(histories.benchmark(run))) == len(lower)


@given(st.text(st.characters()), st.text(st.characters()))
@example(HOSTILE, HOSTILE)
@example("\\", '"')
def test_any_name_is_a_label(group, device):
    """It is read back as one label with its visible text, by Prometheus and by the way GitLab splits lines."""
    run = baseline(fingerprint=fingerprint(devices=(device,)), metrics=(metric("exposed", 0.25, by="group", of=group),))
    (sample,) = families(run)["bubblescope_group_exposed_ratio"].samples
    assert sample.value == 0.25
    assert sample.labels == {"group": visible(group).replace("#", r"\x23")}
    for line in openmetrics.render(run).decode().split("\n"):
        if line and not line.startswith("#"):
            assert len(shlex.split(re.sub("#.*", "", line))) >= 2
    text = openmetrics.render(run).decode()
    last = next(line for line in text.split("\n") if line.startswith("bubblescope_group"))
    assert shlex.split(re.sub("#.*", "", last))[-1] == "0.25"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("bubble", 0.1 + 0.2, "0.3"),
        ("bubble", 0.0, "0"),
        ("bubble", 1e-9, "0"),
        ("bubble", -1e-9, "0"),
        ("step_time", 1.0, "0.000000001"),
        ("step_time", 100e9, "100"),
        ("tokens_per_s", 1234567.0, "1.23457e+06"),
        ("imbalance", 10.0, "10"),
    ],
)
def test_digits_of_openmetrics(name, value, text):
    """GitLab compares them as text: no digit stands there that means nothing."""
    lines = openmetrics.render(baseline(metrics=(metric(name, value),))).decode().splitlines()
    assert lines[-2].split(" ")[-1] == text
    assert lines[-1] == "# EOF"


BENCHER = {
    "type": "object",
    "additionalProperties": {
        "type": "object",
        "propertyNames": {"pattern": "^[a-z0-9]+(-[a-z0-9]+)*$", "maxLength": 64},
        "additionalProperties": {
            "type": "object",
            "required": ["value"],
            "properties": {name: {"type": "number"} for name in ("value", "lower_value", "upper_value")},
            "additionalProperties": False,
        },
    },
    "propertyNames": {"minLength": 1, "maxLength": 1024},
}
BENCHMARK = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "unit", "value"],
        "properties": {
            "name": {"type": "string"},
            "unit": {"type": "string"},
            "value": {"type": "number"},
            "range": {"type": "string"},
            "extra": {"type": "string"},
        },
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("sample", values.SAMPLES)
def test_histories_have_the_form_of_their_services(sample):
    """As their documentation says: bencher.dev/docs/reference/bencher-metric-format and the action's README."""
    run = values.SAMPLES[sample]().run
    jsonschema.validate(json.loads(histories.bencher(run)), BENCHER)
    jsonschema.validate(json.loads(histories.benchmark(run)), BENCHMARK)


def test_bencher_has_bounds_where_steps_tell_them():
    """One standard deviation around the value; nothing where there is one step."""
    run = baseline(metrics=(metric("step_time", 700.4 * MS, 2 * MS), metric("bubble", 0.3, None, by="stage", of="3")))
    assert json.loads(histories.bencher(run)) == {
        "pipeline": {"step-time": {"value": 700.4 * MS, "lower_value": 698.4 * MS, "upper_value": 702.4 * MS}},
        "stage 3": {"bubble": {"value": 0.3}},
    }


def test_long_names_are_cut_for_bencher():
    """It takes 1024 letters."""
    run = baseline(metrics=(metric("exposed", 0.25, by="group", of="x" * 2000),))
    (name,) = json.loads(histories.bencher(run))
    assert len(name) == 1024


def test_benchmark_has_only_what_should_be_small():
    """More micro-batches a second are no regression."""
    found = {each["name"]: each for each in json.loads(histories.benchmark(RUN))}
    assert "microbatches_per_s" not in found
    assert found["step_time"] == {
        "name": "step_time",
        "unit": "ms",
        "value": 803.2123,
        "range": "± 1.9",
        "extra": "1f1b, p 4, m 8, v 1; 5 steps",
    }
    assert found["bubble, stage 3"]["unit"] == "%"
