"""A baseline as a file to be committed, and as a page."""

from __future__ import annotations

import csv
import io
import json as standard
from dataclasses import replace

import jsonschema
import msgspec
import pytest

from bubblescope.model.baseline import Baseline
from bubblescope.model.metrics import METRICS
from bubblescope.report import baselines, json
from tests.gate.values import HOSTILE, baseline, fingerprint, metric

RUN = baseline(reason="the last stage got a loss of its own", doubts={"bubble": ("clocks are known to 1 ms",)})


def test_it_reads_back_up_to_rounding():
    """Shares to six decimals, times to nanoseconds; all else as it was."""
    back = msgspec.json.decode(baselines.render(RUN), type=Baseline)
    assert replace(back, metrics=()) == replace(RUN, metrics=())
    for read, written in zip(back.metrics, RUN.metrics, strict=True):
        tolerance = 0.5 if METRICS[written.metric].unit == "ns" else 5e-6
        assert read.value == pytest.approx(written.value, abs=tolerance)
        assert read.spread == pytest.approx(written.spread, abs=tolerance)
        assert replace(read, value=0, spread=0, error=0) == replace(written, value=0, spread=0, error=0)


def test_writing_what_was_read_changes_nothing():
    """A file that is read and written again has no difference to commit."""
    made = baselines.render(RUN)
    assert baselines.render(msgspec.json.decode(made, type=Baseline)) == made


def test_a_number_is_a_line():
    """One changed number is one changed line, and no other."""
    changed = replace(RUN, metrics=(replace(RUN.metrics[0], value=0.5), *RUN.metrics[1:]))
    before, after = (baselines.render(run).decode().splitlines() for run in (RUN, changed))
    assert len(before) == len(after)
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_digits():
    """Whole nanoseconds, six decimals, six digits: what a review reads is not noise."""
    run = baseline(
        metrics=(
            metric("step_time", 1234567.8, 12.6),
            metric("bubble", 1 / 3, 1e-9),
            metric("tokens_per_s", 123456.789),
        )
    )
    rows = standard.loads(baselines.render(run))["metrics"]
    assert [(row["value"], row["spread"]) for row in rows] == [(1234568, 13), (0.333333, 0.0), (123457.0, 0.0)]
    assert b'"value": 1234568, ' in baselines.render(run)


def test_it_is_small_and_valid():
    """A few kB, with the keys of the schema in the order of the types."""
    made = baselines.render(RUN)
    assert len(made) < 5000
    jsonschema.validate(standard.loads(made), standard.loads(json.schema("baseline")))
    assert list(standard.loads(made)) == list(standard.loads(json.render(RUN)))


def test_odd_values_are_written():
    """Nothing measured, unknown spreads, and names that are no text."""
    run = baseline(
        metrics=(metric("exposed", 0.5, None, by="group", of=HOSTILE),),
        fingerprint=fingerprint(devices=(), microbatches=None, reconstruction=None),
    )
    back = msgspec.json.decode(baselines.render(run), type=Baseline)
    assert back.metrics[0].spread is None
    assert back.metrics[0].of == HOSTILE.replace("\udcff", "\N{REPLACEMENT CHARACTER}")
    empty = baseline(metrics=())
    assert msgspec.json.decode(baselines.render(empty), type=Baseline) == empty


def test_a_number_that_json_lacks_is_refused():
    """NaN is a mistake of ours."""
    with pytest.raises(ValueError, match="nan"):
        baselines.render(baseline(metrics=(metric("bubble", float("nan")),)))


def test_page_tells_what_it_is():
    """The shape and its bubble first; then the reason, the doubts, and every number."""
    page = baselines.page(RUN)
    assert page.headline == "1f1b, p 4, m 8, v 1: bubble 40.8%"
    assert ("Reason", "the last stage got a loss of its own") in page.facts
    assert page.warnings == ("bubble: clocks are known to 1 ms",)
    cells = sum(cell not in {"", "–"} for table in page.tables[1:] for row in table.rows for cell in row[1:])  # noqa: RUF001
    assert len(page.tables[0].rows) + cells == len(RUN.metrics)
    assert [table.title for table in page.tables] == ["Numbers", "By cause", "By stage", "By group"]


def test_page_of_a_run_with_little():
    """Without a bubble there is no share, without steps no spread."""
    run = baseline(
        metrics=(metric("step_time", 1e9, None, steps=1),),
        fingerprint=fingerprint(virtual=2, also=("gpipe",), microbatches=None, devices=()),
    )
    page = baselines.page(run)
    assert page.headline == "1f1b, p 4, m ?, v 2"
    assert dict(page.facts)["Schedule"] == "1f1b, the same as gpipe"
    assert dict(page.facts)["Layout"] == "4 ranks: 4 pipeline x 1 tensor x 1 data parallel, 2 stages a rank"
    assert page.tables[0].rows == (("step_time", "1.00 s", "–", "1", "step time"),)  # noqa: RUF001


@pytest.mark.parametrize(
    ("degrees", "shown"),
    [
        ({"cp": 2, "ep": 1}, "4 pipeline x 1 tensor x 1 data x 2 context parallel, 8 micro-batches"),
        ({"tp": None, "dp": None}, "4 pipeline parallel, 8 micro-batches"),
    ],
)
def test_layout(degrees, shown):
    """A degree that nothing told is left out, and those that are rare unless they are used."""
    page = baselines.page(baseline(fingerprint=fingerprint(**degrees)))
    assert dict(page.facts)["Layout"] == f"4 ranks: {shown}"


def test_csv_has_a_row_for_each_number():
    """Its columns are the keys of the JSON."""
    rows = list(csv.DictReader(io.StringIO(baselines.table(RUN).decode())))
    assert len(rows) == len(RUN.metrics)
    assert list(rows[0]) == list(standard.loads(baselines.render(RUN))["metrics"][0])
