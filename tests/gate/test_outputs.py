"""Every output of every gate, byte for byte, and what no name may do in any of them.

After a wanted change write the goldens anew with `BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/gate`, and read the
difference before committing it.
"""

from __future__ import annotations

import csv
import io
import json as standard
import os
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest
from rich.console import Console

from bubblescope.model.gate import Gate
from bubblescope.report import (
    baselines,
    gate_csv,
    gates,
    github,
    histories,
    json,
    junit,
    openmetrics,
    pages,
)
from tests.gate import values
from tests.markdowns import outside_code

GOLDEN = Path(__file__).parent / "golden"
ROOM = 2**20
GATES = {
    "md": lambda gate: pages.markdown(gates.page(gate)),
    "txt": gates.plain,
    "json": json.render,
    "csv": gate_csv.render,
    "junit.xml": junit.render,
    "summary.md": lambda gate: github.summary(gate, ROOM),
    "annotations.txt": lambda gate: "".join(f"{line}\n" for line in github.annotations(gate)).encode(),
}
RUNS = {
    "baseline.json": baselines.render,
    "baseline.md": lambda run: pages.markdown(baselines.page(run)),
    "baseline.txt": lambda run: pages.plain(baselines.page(run)),
    "baseline.csv": baselines.table,
    "metrics.txt": openmetrics.render,
    "bencher.json": histories.bencher,
    "benchmark.json": histories.benchmark,
}
EVERY = GATES | {suffix: lambda gate, render=render: render(gate.run) for suffix, render in RUNS.items()}


@pytest.fixture(params=sorted(values.SAMPLES))
def sample(request) -> str:
    """The name of each gate in turn."""
    return request.param


def golden(name: str, made: bytes) -> bytes:
    """What was last looked at and found good; written anew where that is wanted."""
    path = GOLDEN / name
    if os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS"):
        path.write_bytes(made)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", sorted(GATES))
def test_output_of_a_gate_is_the_golden_one(sample, suffix):
    """A renderer writes exactly what was last looked at and found good."""
    made = GATES[suffix](values.SAMPLES[sample]())
    assert made == golden(f"{sample}.{suffix}", made)


@pytest.mark.parametrize("suffix", sorted(RUNS))
@pytest.mark.parametrize("name", ["failed", "hostile"])
def test_output_of_a_run_is_the_golden_one(name, suffix):
    """So do those of what was measured."""
    made = RUNS[suffix](values.SAMPLES[name]().run)
    assert made == golden(f"{name}.{suffix}", made)


@pytest.mark.parametrize("width", [80, 100])
def test_narrow_terminals_get_their_goldens(width):
    """What a failed gate looks like in the two usual widths, in colour and in letters of ASCII."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="")
    gates.draw(values.failed(), Console(file=out, width=width, force_terminal=True, color_system="standard"))
    out.seek(0)
    made = out.read().encode()
    assert made == golden(f"failed.{width}.ansi", made)


def test_there_are_no_other_goldens():
    """A golden that nothing compares would mislead."""
    known = {f"{name}.{suffix}" for name in values.SAMPLES for suffix in GATES}
    known |= {f"{name}.{suffix}" for name in ("failed", "hostile") for suffix in RUNS}
    mine = {path.name for path in GOLDEN.iterdir() if not path.name.startswith("comparison-")}
    assert mine == known | {"failed.80.ansi", "failed.100.ansi"}


def test_verdict_is_last_in_a_terminal_and_first_on_a_page(sample):
    """A log is read from its end, a pull request from its top."""
    gate = values.SAMPLES[sample]()
    word = {"pass": "PASS", "fail": "FAIL", "inconclusive": "INCONCLUSIVE"}[gate.verdict]
    assert pages.markdown(gates.page(gate)).decode().startswith(f"### bubblescope gate: {word}: ")
    blocks = gates.plain(gate).decode().split("\n\n")
    assert re.match(rf"Verdict +{word}: ", blocks[-1])


def test_every_rule_is_shown(sample):
    """Those that passed, too; the table has a row for each."""
    gate = values.SAMPLES[sample]()
    rules = [table for table in gates.page(gate).tables if table.title == "Rules"]
    assert sum(len(table.rows) for table in rules) == len(gate.checks)


def test_commands_stay_in_one_line():
    """They are there to be copied."""
    gate = values.failed()
    lines = gates.plain(gate).decode().splitlines()
    assert [line for line in lines if line.endswith(gate.look)]
    assert [line for line in lines if line.endswith(gate.accept)]


def test_no_line_is_wider_than_the_page(sample):
    """But for commands."""
    gate = values.SAMPLES[sample]()
    lines = gates.plain(gate).decode().splitlines()
    assert not [line for line in lines if len(line) > 100 and not line.startswith(("Next ", "Accept "))]


@pytest.mark.parametrize("suffix", sorted(EVERY))
def test_names_command_nothing(suffix):
    """No terminal, no CI system, no page and no reader of the format does what a name says."""
    made = EVERY[suffix](values.hostile())
    text = made.decode()
    assert not set(text) & set("\x00\x1b\u202e\u200f\r")
    assert "##[error]" not in text
    lines = text.splitlines()
    commands = [line for line in lines if line.lstrip().startswith("::")]
    assert len(commands) == (2 if suffix == "annotations.txt" else 0)
    if suffix.endswith("md"):
        text = outside_code(text)
    if suffix.endswith(("md", "xml")):
        assert "<script>" not in text
        assert "]]>" not in text.replace("\\]\\]&gt;", "")
    if suffix.endswith("md"):
        assert not re.search(r"(?<!\\)`", text)
        assert "@octocat" not in text
        assert "\n::" not in text


def test_csv_has_no_formula_and_a_row_for_each_rule():
    """Its columns are the keys of the JSON."""
    gate = values.hostile()
    rows = list(csv.DictReader(io.StringIO(gate_csv.render(gate).decode())))
    assert len(rows) == len(gate.checks)
    assert list(rows[0]) == list(standard.loads(json.render(gate))["checks"][0])
    assert not [cell for row in rows for cell in row.values() if cell.startswith(("=", "+", "@"))]


def test_json_matches_the_schema(sample):
    """What is written is what the schema promises."""
    written = standard.loads(json.render(values.SAMPLES[sample]()))
    jsonschema.validate(written, standard.loads(json.schema("gate")))


def test_json_survives_the_way_there_and_back(sample):
    """Reading it gives what was written, but for names that are no text."""
    gate = values.SAMPLES[sample]()
    if sample != "hostile":
        assert msgspec.json.decode(json.render(gate), type=Gate) == gate


def test_warnings_reach_every_reader():
    """What is doubtful is said on the page and in the terminal."""
    gate = values.inconclusive()
    for made in (gates.plain(gate), pages.markdown(gates.page(gate))):
        assert "clocks are known to 1.2 ms only" in made.decode()
