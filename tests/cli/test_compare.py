"""`bubblescope compare`: what it takes for a run, what it writes, and what it refuses."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest

from bubblescope.cli import run as run_command
from bubblescope.cli.compare import write
from bubblescope.cli.output import Output
from bubblescope.gate.compare import compare as compare_runs
from bubblescope.report import comparison_csv, comparisons, pages
from bubblescope.report import json as rendered
from tests.comparisons import CAUSES, causing, marked, metric, run

TRACES = Path(__file__).parents[2] / "sample_traces"
EVEN, HEAVY = TRACES / "1f1b_p4m8", TRACES / "1f1b_p4m8_slow_last"


@pytest.fixture
def compare(capfd, monkeypatch):
    """Run the command; returns its exit code, stdout and stderr."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: object) -> SimpleNamespace:
        capfd.readouterr()
        code = run_command(["compare", *map(str, arguments)])
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call


@pytest.fixture
def files(tmp_path) -> SimpleNamespace:
    """A baseline, one whose host is slower, and one that has nothing in common with them."""
    made = {"old": run(), "new": causing(host=CAUSES["host"] + 0.02)}
    made["alone"] = replace(run(), metrics=(metric("mfu", 0.4, 0.001),))
    paths = {name: tmp_path / f"{name}.json" for name in made}
    for name, path in paths.items():
        path.write_bytes(orjson.dumps(made[name]))
    names = (str(paths["old"]), str(paths["new"]))
    return SimpleNamespace(**paths, folder=tmp_path, found=compare_runs(made["old"], made["new"], names))


@pytest.mark.parametrize(
    ("arguments", "render"),
    [
        ([], lambda found: pages.plain(comparisons.page(found))),
        (["--all"], lambda found: pages.plain(comparisons.page(found, "all"))),
        (["--json"], rendered.render),
        (["--json", "--all"], rendered.render),
        (["--format", "csv"], comparison_csv.render),
        (["--format", "markdown"], lambda found: pages.markdown(comparisons.page(found))),
    ],
)
def test_stdout_holds_the_comparison_and_nothing_else(compare, files, arguments, render):
    """Each format is what its renderer makes of the two files; JSON and CSV have all of it in any case."""
    seen = compare(files.old, files.new, *arguments)
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.encode() == render(files.found)


def test_file_gets_the_format_of_its_suffix(compare, files, tmp_path):
    """Whole, with a note on stderr; an existing one is refused before any work."""
    path = tmp_path / "change.md"
    seen = compare(files.old, files.new, "-o", path)
    assert (seen.code, seen.out, seen.err) == (0, "", f"Wrote {path}\n")
    assert path.read_bytes() == pages.markdown(comparisons.page(files.found))
    again = compare(tmp_path / "none", tmp_path / "none", "-o", path)
    assert (again.code, again.out) == (2, "")
    assert "exists already" in again.err


@pytest.mark.parametrize("kind", ["folder", "glob", "report", "file of a rank"])
def test_traces_are_runs(compare, tmp_path, kind):
    """A folder, a glob and a report of it say the same; what is a trace by itself is read as one."""
    named: dict[str, object] = {
        "folder": HEAVY,
        "glob": HEAVY / "*.json.gz",
        "report": tmp_path / "heavy.json",
        "file of a rank": next(iter(sorted(HEAVY.glob("*.json.gz")))),
    }
    if kind == "report":
        assert run_command(["analyze", str(HEAVY), "-o", str(named["report"]), "-q"]) == 0
    seen = compare(EVEN, named[kind], "--no-progress")
    assert seen.code == 0
    if kind != "file of a rank":
        assert seen.out.startswith("The bubble rose by 11.6 points, from 29.2% to 40.8%, mostly by uneven stages")


def test_options_of_the_job_reach_both_runs(compare):
    """They are those of analyze: with one step in each nothing tells noise."""
    seen = compare(EVEN, HEAVY, "--steps", "3", "--json", "--attribution", "shapley")
    found = json.loads(seen.out)
    for side in ("before", "after"):
        assert found[side]["fingerprint"]["steps"] == 1
        assert found[side]["fingerprint"]["attribution"] == "shapley"
    assert {change["certain"] for change in found["changes"]} == {None}


def test_the_same_run_twice_is_fine(compare):
    """Nothing changed, and the page says so."""
    seen = compare(EVEN, EVEN)
    assert (seen.code, seen.err) == (0, "")
    assert "Nothing changed beyond noise" in seen.out


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        ([], 2, "A B"),
        (["old.json"], 2, "compare takes two runs, found 1"),
        (["old.json", "new.json", "old.json"], 2, "hint: name the folder of each, or its files by a glob in quotes"),
        (["-", "-"], 2, "only one of the two runs can come from stdin"),
        (["old.json", "new.json", "--json", "--format", "csv"], 2, "two formats"),
        (["old.json", "new.json", "--pp", "0"], 2, "--pp must be at least 1"),
        (["old.json", "none.json"], 3, "none"),
        (["none.json", "old.json"], 3, "none"),
        (["old.json", "text.json"], 3, "text"),
        (["old.json", "damaged.json"], 3, "is damaged"),
        (["old.json", "alone.json"], 4, "no number in common"),
    ],
)
def test_what_is_refused(compare, files, arguments, code, part):
    """2 for wrong usage, 3 for what cannot be read, 4 where nothing can be compared; stdout stays empty."""
    (files.folder / "text.json").write_text("no trace")
    (files.folder / "damaged.json").write_text('{"schema":"bubblescope.baseline/1"')
    seen = compare(*(files.folder / name if name.endswith(".json") else name for name in arguments))
    assert (seen.code, seen.out) == (code, "")
    assert part in seen.err
    assert "bug" not in seen.err


def test_a_difference_of_baselines_shows_all_that_moved(tmp_path):
    """What is within noise, too, as a reviewer of a changed baseline should see it; what stayed is left out."""
    small = causing(host=CAUSES["host"] + 0.001)
    found = compare_runs(run(), replace(small, reason="a slower host"), ("old.json", "new.json"))
    path = tmp_path / "difference.txt"
    write(found, Output(target=os.fspath(path), quiet=True), "changed")
    text = path.read_text("utf-8")
    assert "accepted: a slower host" in text
    assert "  host     0.8%   0.9%    +0.1    0.2  gaps of the host\n" in text
    assert "imbalance" not in text.split("Stages")[0]


def test_another_schedule_is_compared_all_the_same(compare, tmp_path):
    """It is said first; that is what whoever tries one wants to know."""
    for name, made in (("a", run()), ("b", marked(causing(structural=0.15), schedule="zb-h1"))):
        (tmp_path / name).write_bytes(orjson.dumps(made))
    seen = compare(tmp_path / "a", tmp_path / "b")
    assert seen.code == 0
    assert seen.out.startswith("With zb-h1 instead of 1f1b the bubble fell by 12.3 points")


@pytest.mark.parametrize(
    "odd",
    [
        {"value": 1e308},
        {"value": -1e308},
        {"spread": 1e200},
        {"spread": -0.1},
        {"error": -1.0},
        {"steps": 1},
        {"steps": 0, "spread": None},
        {"steps": -5},
        {"steps": 10**101},
    ],
)
def test_numbers_that_cannot_be_are_refused(compare, tmp_path, odd):
    """A file says so and is named; nothing is reckoned with them."""
    path = tmp_path / "odd.json"
    text = rendered.render(compare_runs(run(), run(), ("a", "b")))
    made = json.loads(text)["before"]
    made["metrics"][0] |= odd
    path.write_text(json.dumps(made))
    seen = compare(path, path)
    assert (seen.code, seen.out) == (3, "")
    assert f"{path} is damaged: " in seen.err
