"""The CSV table."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

from bubblescope.model.report import SizeBubble
from bubblescope.report import csv as rendered


def rows(report) -> list[dict[str, str]]:
    """The table as a program reads it."""
    return list(csv.DictReader(io.StringIO(rendered.render(report).decode()), strict=True))


def test_every_row_has_four_cells(report):
    """No name breaks a row."""
    assert all(list(row) == list(rendered.HEADER) and None not in row.values() for row in rows(report))


def test_section_id_and_metric_make_a_key(samples):
    """A value is found by its three names."""
    keys = [(row["section"], row["id"], row["metric"]) for row in rows(samples["imbalanced"])]
    assert len(keys) == len(set(keys))


def test_values_are_those_of_the_report(samples):
    """Numbers keep all their digits, and the unknown is empty."""
    report = samples["missing-ranks"]
    table = {(row["section"], row["id"], row["metric"]): row["value"] for row in rows(report)}
    assert float(table["bubble", "", "upper"]) == report.bubble.upper
    assert table["bubble", "", "measured"] == ""
    assert int(table["rank", "1", "pp_ns"]) == report.ranks[1].pp_ns
    assert table["rank", "1", "pp_wait_ns"] == ""
    assert int(table["rank", "0", "outside_dp_ns"]) == report.ranks[0].outside.dp_ns
    assert table["step", "0", "complete"] == "false"


def test_sizes_and_findings_have_rows(samples):
    """Of several findings of one code the second is numbered."""
    report = samples["missing-ranks"]
    size = SizeBubble(microbatches=4, steps=(1,), measured=0.2, formula=None, formula_source=None, replay=0.1)
    sized = replace(report, bubble=replace(report.bubble, by_microbatches=(size,)))
    table = {(row["section"], row["id"], row["metric"]): row["value"] for row in rows(sized)}
    assert (table["size", "4", "measured"], table["size", "4", "formula"]) == ("0.2", "")
    assert table["quality", "missing-ranks", "severity"] == "warning"
    assert table["quality", "truncated#2", "input"] == "rank0_trace.json.gz"


def test_no_name_becomes_a_formula(samples):
    """A spreadsheet that opens the file runs nothing."""
    assert all(not cell.startswith(("=", "+", "@")) for row in rows(samples["hostile"]) for cell in row.values())
