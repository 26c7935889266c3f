"""The JSON report and its schema."""

from __future__ import annotations

import dataclasses
import json as standard
from pathlib import Path

import jsonschema
import msgspec
import pytest

import bubblescope.report.json as rendered
from bubblescope.model.report import Report


def test_report_matches_the_schema(report):
    """What is written is what the schema promises."""
    jsonschema.validate(standard.loads(rendered.render(report)), standard.loads(rendered.schema()))


def test_report_survives_the_way_there_and_back(samples):
    """Reading the JSON gives the report that was written."""
    report = samples["imbalanced"]
    assert msgspec.json.decode(rendered.render(report), type=Report) == report


def test_keys_stand_in_the_order_of_the_types(report):
    """A reader of the file finds the schema first and every key where the types have it."""
    written = standard.loads(rendered.render(report))
    assert list(written) == [field.name for field in dataclasses.fields(Report)]
    assert written["schema"] == "bubblescope.report/1"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_lacks_are_refused(samples, number):
    """NaN is a mistake of ours and is named, never written as null."""
    report = samples["1f1b"]
    broken = dataclasses.replace(report, stages=(dataclasses.replace(report.stages[0], bubble=number),))
    with pytest.raises(ValueError, match=r"report\.stages\[0\]\.bubble is (nan|inf)"):
        rendered.render(broken)


def test_file_names_need_not_be_utf8(samples):
    """A name that Python holds as surrogates is written with the sign for unreadable."""
    written = standard.loads(rendered.render(samples["hostile"]))
    assert written["inputs"][0]["path"].endswith("\N{REPLACEMENT CHARACTER}")


@pytest.mark.parametrize("name", rendered.SCHEMAS)
def test_shipped_schema_is_the_generated_one(name):
    """The files in `bubblescope/report` are what `bubblescope schema NAME` prints; write them anew from there."""
    shipped = Path(rendered.__file__).with_name(rendered.SCHEMAS[name].file)
    assert shipped.read_bytes() == rendered.schema(name)


@pytest.mark.parametrize(("name", "described"), rendered.SCHEMAS.items())
def test_schema_asks_for_the_version_and_for_every_key(name, described):
    """Another version, or one with a key less, is not valid."""
    schema = standard.loads(rendered.schema(name))
    assert schema["$defs"][described.kind.__name__]["properties"]["schema"] == {"const": described.version}
    assert all(body["required"] == list(body["properties"]) for body in schema["$defs"].values())
    assert schema["title"] == described.version
    assert "$id" not in schema
