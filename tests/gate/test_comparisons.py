"""Comparisons as page, JSON and CSV.

After a wanted change write the goldens anew with `BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/gate/test_comparisons.py`,
and read the difference before committing it.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json as standard
import os
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest

from bubblescope.gate.compare import compare
from bubblescope.model.baseline import Baseline
from bubblescope.model.comparison import Change, Comparison
from bubblescope.model.metrics import METRICS
from bubblescope.report import comparison_csv, comparisons, json, pages
from bubblescope.report.change_words import moved, shows
from bubblescope.report.compared import doubt, sentence, speed
from tests.comparisons import CAUSES, SAMPLES, causing, lacking, marked, metric, run, sample, shifted

GOLDEN = Path(__file__).parent / "golden"
NAMES = ("before/", "after/")
WHOLE = ("schedule", "hostile")
"""Samples with goldens of every output; the others have the page alone."""
RENDERERS = {
    "txt": lambda found: pages.plain(comparisons.page(found)),
    "all.txt": lambda found: pages.plain(comparisons.page(found, "all")),
    "md": lambda found: pages.markdown(comparisons.page(found)),
    "json": json.render,
    "csv": comparison_csv.render,
}


@pytest.fixture(params=sorted(SAMPLES))
def name(request) -> str:
    """The name of each sample in turn."""
    return request.param


@pytest.fixture
def found(name) -> Comparison:
    """Each sample in turn."""
    return sample(name)


def settled(found: Comparison) -> Comparison:
    """The comparison without what differs from version to version, or in the last digits from machine to machine."""
    changes = tuple(
        replace(each, change=_short(each.change), noise=_short(each.noise), chance=_short(each.chance))
        for each in found.changes
    )
    return replace(found, changes=changes, tool=replace(found.tool, version="0.0.0"))


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        *((name, "txt") for name in SAMPLES if name not in WHOLE),
        *((name, suffix) for name in WHOLE for suffix in RENDERERS),
    ],
)
def test_output_is_the_golden_one(name, suffix):
    """A renderer writes exactly what was last looked at and found good."""
    path = GOLDEN / f"comparison-{name}.{suffix}"
    made = RENDERERS[suffix](settled(sample(name)))
    if os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS"):
        path.write_bytes(made)
    assert made == path.read_bytes()


def test_json_matches_its_schema(found):
    """What is written is what the schema promises, with every key in the order of the types."""
    written = standard.loads(json.render(found))
    jsonschema.validate(written, standard.loads(json.schema("comparison")))
    assert list(written) == [field.name for field in dataclasses.fields(Comparison)]
    assert written["schema"] == "bubblescope.comparison/1"


def test_json_survives_the_way_there_and_back():
    """Reading the JSON gives the comparison that was written."""
    found = sample("schedule")
    assert msgspec.json.decode(json.render(found), type=Comparison) == found


def test_csv_has_every_change_as_json_does(found):
    """A row a change, columns called as its keys, values written alike."""
    rows = list(csv.DictReader(io.StringIO(comparison_csv.render(found).decode())))
    assert list(comparison_csv.HEADER) == [field.name for field in dataclasses.fields(Change)]
    written = standard.loads(json.render(found))["changes"]
    assert len(rows) == len(written)
    for row, change in zip(rows, written, strict=True):
        for key in ("before", "after", "change", "noise", "chance"):
            assert row[key] == ("" if change[key] is None else repr(change[key]))
        assert row["certain"] == {None: "", True: "true", False: "false"}[change["certain"]]


@pytest.mark.parametrize("shown", ["certain", "changed", "all"])
def test_rows_and_what_is_left_out_are_all_there_is(found, shown):
    """No number is lost: each has a row, or is counted below its table or in a table that is left out."""
    page = comparisons.page(found, shown)
    for title, by in (("Whole job", None), ("Causes", "cause"), ("Stages", "stage"), ("Communication", "group")):
        for table in (each for each in page.tables if each.title == title):
            hidden = int(re.findall(r"and (\d+) more", table.more)[0]) if table.more else 0
            assert len(table.rows) + hidden == sum(each.by == by for each in found.changes)
            assert not (hidden and shown == "all")


def test_what_changed_beyond_noise_stands_first():
    """A larger change that may be noise comes below."""
    host = replace(run().metric("bubble", "cause", "host"), value=0.1, spread=0.2)
    noisy = replace(causing(p2p=0.02), metrics=(*causing(p2p=0.02).metrics, host))
    (table,) = (each for each in comparisons.page(compare(run(), noisy, NAMES), "all").tables if each.title == "Causes")
    assert [row[0] for row in table.rows][:2] == ["p2p", "host"]


def test_changed_leaves_out_what_shows_no_change():
    """A reviewer of a baseline sees what moved, whether it is noise or not."""
    found = compare(run(), causing(host=CAUSES["host"] + 0.001), NAMES)
    rows = {table.title: [row[0] for row in table.rows] for table in comparisons.page(found, "changed").tables}
    assert rows["Causes"] == ["host"]
    assert rows["Whole job"] == ["bubble", "gap", "exposed"]
    assert not any(change.certain for change in found.changes)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (run(), causing(host=0.028), "The bubble rose by 2.0 points, from 29.2% to 31.2%, mostly by gaps of the host"),
        (causing(host=0.028), run(), "The bubble fell by 2.0 points, from 31.2% to 29.2%, mostly by gaps of the host"),
        (run(), run(), "The bubble did not change beyond noise (29.2% before, 29.2% after; noise 0.3 points)."),
        (marked(run(), steps=1), run(), "The bubble did not change (29.2% before, 29.2% after); what of it is noise"),
        (run(), marked(causing(host=0.5), schedule="zb-h1"), "With zb-h1 instead of 1f1b the bubble rose by 49.2"),
        (run(), marked(run(), schedule="eager-1f1b", also=("1f1b",)), "The bubble did not change"),
        (run(), marked(run(), pp=8), "With a pipeline-parallel degree of 8 instead of 4 the bubble did not change"),
        (lacking(run(), "bubble"), run(), "The bubble is unknown before and 29.2% after."),
        (lacking(run(), "bubble"), lacking(run(), "bubble"), "The bubble is unknown in both runs."),
    ],
)
def test_sentence(before, after, said):
    """The answer, whatever it is."""
    assert sentence(compare(before, after, NAMES)).startswith(said)


def blurred(base: Baseline, *causes: str) -> Baseline:
    """The run with causes that vary too much for any change."""
    noisy = (replace(each, spread=0.1) if each.by == "cause" and each.of in causes else each for each in base.metrics)
    return replace(base, metrics=tuple(noisy))


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (blurred(causing(host=0.028), "host"), "; no single cause changed beyond noise."),
        (blurred(causing(host=0.038, p2p=-0.003), "host"), "; no single cause of it changed beyond noise."),
        (
            causing(host=0.038, p2p=-0.003),
            ", mostly by gaps of the host (+3.0 points), against transfers between stages",
        ),
        (causing(host=0.038, p2p=0.003), ", mostly by gaps of the host (+3.0 points)."),
    ],
)
def test_only_sure_causes_are_named(after, said):
    """Those that moved with the bubble and beyond noise; one that moved against it by half as much is told, too."""
    assert sentence(compare(run(), after, NAMES)).split("%", 2)[2].startswith(said)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({}, {}, ""),
        ({"bubble": ("unlabelled",)}, {"bubble": ("unlabelled",)}, ""),
        ({"bubble": ("unlabelled",)}, {}, "bubble of before/ (unlabelled)."),
        ({"ranks": ("lost-events",)}, {}, ""),
        (
            {"bubble": ("unlabelled", "lost-events"), "causes": ("clocks",)},
            {"bubble": ("unlabelled",), "causes": ("clocks",)},
            "bubble of before/ (lost-events); causes of before/ (clocks); causes of after/ (clocks).",
        ),
    ],
)
def test_doubts(before, after, said):
    """They come first, unless they make both runs wrong alike, or are about what the answer does not rest on."""
    found = compare(replace(run(), doubts=before), replace(run(), doubts=after), NAMES)
    assert doubt(found) == (f"Do not rely on this comparison: doubts about {said}" if said else "")
    assert comparisons.page(found).headline == (doubt(found) or sentence(found))


def test_what_two_steps_cannot_tell_is_shown():
    """A step half as long with noise as large is an open question, and the values are there to be seen."""
    times = [replace(run(), metrics=(replace(metric("step_time", ms * 1e6, 9e7), steps=2),)) for ms in (700, 340)]
    said = (
        "The step time may have changed or not: 700.0 ms before, 340.0 ms after, and noise of 127.6% (more steps tell)."
    )
    assert speed(compare(*times, NAMES)) == said
    runs = [replace(run(), metrics=(replace(metric("bubble", share, 0.05), steps=2),)) for share in (0.3, 0.4)]
    said = "The bubble may have changed or not: 30.0% before, 40.0% after, and noise of 49.6 points (more steps tell)."
    assert sentence(compare(*runs, NAMES)) == said


def test_speed():
    """What a step takes, with the sign of its change; nothing where it is unknown."""
    slow = replace(run(), metrics=shifted(run(), 0.1).metrics)
    assert speed(compare(run(), slow, NAMES)) == "A step takes 759.0 ms instead of 690.0 ms (+10.0%)."
    assert speed(compare(slow, run(), NAMES)) == "A step takes 690.0 ms instead of 759.0 ms (-9.1%)."
    assert speed(compare(lacking(run(), "step_time"), run(), NAMES)) == ""


@pytest.mark.parametrize("unit", sorted({kind.unit for kind in METRICS.values()}))
def test_changes_are_written_with_their_sign(unit):
    """Plus where it grew, minus where it shrank, neither where the digits show nothing."""
    one = Change(
        metric="m",
        by=None,
        of=None,
        unit=unit,
        before=2.0,
        after=None,
        change=0.5,
        noise=None,
        chance=None,
        certain=None,
    )
    assert moved(one).startswith("+")
    assert moved(replace(one, change=-0.5)).startswith("-")
    still = replace(one, change=-1e-9, after=2.0)
    assert moved(still)[0] == "0"
    assert (shows(one), shows(still)) == (True, False)
    assert moved(replace(one, change=None)) == "–"  # noqa: RUF001
