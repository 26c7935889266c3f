"""The documentation says what the program does, and shows what it prints.

After a wanted change of the output write the pages anew with
`BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/test_docs.py`, and read the difference before committing it.
The options of the command line are looked after in tests/cli/test_docs.py.
"""

from __future__ import annotations

import ast
import csv
import dataclasses
import inspect
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import bubblescope
from bubblescope import engine, errors
from bubblescope.analysis.causes import CAUSES
from bubblescope.analysis.quality import DEGRADING
from bubblescope.analysis.trust import AFFECTED, WORDS
from bubblescope.cli import run
from bubblescope.cli.group import COMMANDS
from bubblescope.model import info as info_types
from bubblescope.model import report as report_types
from bubblescope.model.baseline import Baseline, Fingerprint
from bubblescope.model.comparison import Change, Comparison
from bubblescope.model.gate import Check, Difference, Gate, Worst
from bubblescope.model.recorders import Addition
from bubblescope.model.trace import Finding
from bubblescope.report.registry import FORMATS
from bubblescope.schedules.registry import FAMILIES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bubblescope"
PAGES = {
    page.relative_to(ROOT).as_posix(): page
    for page in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("[a-z]*/README.md"),
        *ROOT.glob("sample_traces/*/README.md"),
    )
}
UPDATE = os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS")

README = PAGES["README.md"]
WHATIF = PAGES["docs/whatif.md"]
INFO = PAGES["docs/info.md"]
DEFINITIONS = PAGES["docs/definitions.md"]
REPORT = PAGES["docs/report.md"]

SHOWN = re.compile(
    r"(<!-- (?:output|excerpt) of: bubblescope (?P<line>[^\n]+) -->\n```\w+\n)(?P<text>.*?)(```\n)", re.DOTALL
)


def section(page: Path, title: str) -> str:
    """The text under a heading, up to the next heading of its level."""
    level = re.escape(title.split(" ", 1)[0])
    found = re.search(rf"^{re.escape(title)}\n(.*?)(?=^{level} |\Z)", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found, f"{page.name} has no section {title!r}"
    return found[1]


def first_cells(text: str) -> set[str]:
    """What stands in code in the first column of the tables of a text."""
    rows = re.findall(r"^\| ([^|]*)\|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


@pytest.fixture
def printed(capsys, monkeypatch):
    """What a command line writes to stdout, run where the repository lies."""
    monkeypatch.chdir(ROOT)
    for variable in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)

    def call(line: str) -> str:
        assert run(line.split()) == 0
        return capsys.readouterr().out

    return call


def excerpt(line: str, text: str) -> str:
    """The part of a long output that a page shows."""
    if line.endswith("--json"):
        report = json.loads(text)
        return (
            json.dumps({"schema": report["schema"], "bubble": report["bubble"], "ranks": report["ranks"][:1]}, indent=2)
            + "\n"
        )
    if line.endswith("--format csv"):
        lines = text.splitlines(keepends=True)
        return "".join(lines[:1] + [row for row in lines if row.startswith("rank,3,")])
    return text


@pytest.mark.parametrize("page", [README, REPORT, WHATIF, INFO], ids=lambda page: page.name)
def test_shown_output_is_what_is_printed(page, printed):
    """A pasted output equals what the program prints today, but for spaces at the end of a line."""

    def today(match: re.Match[str]) -> str:
        return match[1] + excerpt(match["line"], printed(match["line"])) + match[4]

    text = page.read_text("utf-8")
    assert SHOWN.search(text)
    fresh = SHOWN.sub(today, text)
    if UPDATE:
        page.write_text(fresh, "utf-8")
    assert fresh == page.read_text("utf-8")


def test_table_of_samples_is_true():
    """Schedule, formula and measured bubble of every sample, as the README lists them."""
    rows = re.findall(
        r"^\| `(\w+)` \| ([\w-]+).*? \| ([\d.]+ %|none) \| ([\d.]+) % \| ([\d.]+) % \|$",
        README.read_text("utf-8"),
        re.MULTILINE,
    )
    assert {row[0] for row in rows} == {path.parent.name for path in ROOT.glob("sample_traces/*/recorded.json")}
    for name, schedule, formula, counted, measured in rows:
        found = engine.analyze([str(ROOT / "sample_traces" / name)]).report
        assert found.schedule.name == schedule
        assert found.bubble.measured is not None
        if formula == "none":
            assert found.bubble.formula_source != "closed-form"
        else:
            assert found.bubble.formula == pytest.approx(float(formula.removesuffix(" %")) / 100, abs=5e-5)
        assert found.bubble.measured == pytest.approx(float(measured) / 100, abs=1e-4)
        assert found.bubble.measured == pytest.approx(float(counted) / 100, abs=5e-4)
        assert re.search(rf"`{name}` .* \| {formula} ", section(PAGES["sample_traces/README.md"], "# Sample traces"))


def test_numbers_of_the_text_are_true():
    """What the README says of the sample's sends and receives."""
    said = re.search(r"spends\s(\d+) ms a step in\s.*? and (\d+) ms\sof\sthat", README.read_text("utf-8"), re.DOTALL)
    assert said
    (call,) = engine.analyze([str(ROOT / "sample_traces" / "1f1b_p4m8")]).report.communication
    assert call.wait_ns is not None
    assert (round(call.total_ns / 1e6), round(call.wait_ns / 1e6)) == (int(said[1]), int(said[2]))


def test_python_of_the_readme_runs():
    """The example runs in a fresh interpreter, twice, and its comments are true."""
    example = re.findall(r"```python\n(import bubblescope\n.*?)```", README.read_text("utf-8"), re.DOTALL)[0]
    measured, schedule, first = re.findall(r"a\.report\.\S+  # (\S+)", example)
    code = (
        f"{example}\n{example}\n"
        "print(a.report.bubble.measured, a.report.schedule.name, a.report.findings[0].code, list(a.ranks['rank']))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert float(done.stdout.split()[0]) == pytest.approx(float(measured), abs=5e-4)
    assert done.stdout.endswith(f" {json.loads(schedule)} {json.loads(first)} [0, 1, 2, 3]\n")


def test_what_if_of_the_readme_runs():
    """The second example runs, and its comments are true."""
    example = re.findall(r"```python\n(changes = .*?)```", README.read_text("utf-8"), re.DOTALL)[0]
    error, gain = map(float, re.findall(r"w\.\S+  # (\S+)", example))
    names: dict[str, object] = {"bubblescope": bubblescope}
    exec(example.replace("sample_traces", str(ROOT / "sample_traces")), names)  # noqa: S102  our own text
    found = names["w"]
    assert (found.error, found.forecasts[0].gain) == pytest.approx((error, gain), abs=5e-4)


def test_comparison_example_is_true():
    """The lines of the README about comparisons run, and say what they say."""
    example = re.findall(r"```python\n(c = .*?)```", README.read_text("utf-8"), re.DOTALL)[0]
    names: dict[str, object] = {"bubblescope": bubblescope}
    *lines, last = example.replace("sample_traces", str(ROOT / "sample_traces")).splitlines()
    exec("\n".join(lines), names)  # noqa: S102  our own text
    change = names["bubble"]
    assert (change.metric, change.change, change.certain) == ("bubble", pytest.approx(0.116, abs=5e-4), True)
    assert eval(last, names) == last.split('"')[-2] == "imbalance"  # noqa: S307  likewise


def test_a_name_of_the_package_stays_what_it_is():
    """Whichever name is asked for first, `analyze` is the function and not the folder."""
    for name in bubblescope.__all__:
        code = f"import bubblescope; bubblescope.{name}; assert bubblescope.analyze.__module__ == 'bubblescope.engine'"
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_recording_example_is_python():
    """The examples that need PyTorch at least parse."""
    for example in re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL):
        ast.parse(example)


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_are_in_the_readme(command):
    """Every command has a row."""
    assert any(cell.startswith(f"bubblescope {command}") for cell in first_cells(section(README, "## Command line")))


def test_no_command_is_made_up():
    """Every `bubblescope word` in code anywhere is a command that exists."""
    for page in PAGES.values():
        named = set(re.findall(r"(?:^    |`|bin/)bubblescope ([a-z]+)", page.read_text("utf-8"), re.MULTILINE))
        assert named <= {*COMMANDS}, page


def test_exit_codes_are_in_the_readme():
    """Every exit code has a row, and no other."""
    rows = {int(code) for code in re.findall(r"^\| (\d+) \|", README.read_text("utf-8"), re.MULTILINE)}
    assert rows == {0, 1, 130, *(getattr(errors, name).exit_code for name in errors.__all__)}


def finding_codes() -> set[str]:
    """Codes of all findings that the package makes: constants in the call, or in the table beside it."""
    codes = set()
    for file in PACKAGE.rglob("*.py"):
        source = file.read_text("utf-8")
        for node in ast.walk(ast.parse(source)):
            if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == Finding.__name__):
                continue
            code = node.args[0]
            if isinstance(code, ast.Constant):
                codes.add(code.value)
            else:
                codes |= set(re.findall(r"\(\s*\"([a-z][a-z0-9-]+)\",\s+[a-z]", source))
                codes |= set(re.findall(r"^    \"([a-z][a-z0-9-]+)\": \($", source, re.MULTILINE))
                codes |= set(re.findall(r"^    \"([a-z][a-z0-9-]+)\": \(\"", source, re.MULTILINE))
    return codes


def test_findings_are_defined():
    """Every code that the program can write is explained, and none that it cannot."""
    codes = finding_codes()
    assert {"skipped", "repaired", "implausible-times", "unpaired-events"} <= codes
    assert first_cells(section(DEFINITIONS, "### Codes of findings")) == codes


def test_what_degrades_the_verdict_is_told():
    """Every code that does stands where the verdict is explained."""
    verdict = section(DEFINITIONS, "## Quality").split("### ")[0]
    assert {code for code in DEGRADING if f"`{code}`" not in verdict} == set()


def test_schedules_are_defined():
    """Every schedule is named where names are explained; docs/schedules.md has the rest, made from the registry."""
    naming = section(DEFINITIONS, "## Theory").split("### Naming the schedule")[1]
    assert all(f"`{family.name}`" in naming for family in FAMILIES)


SECTIONS = {
    "Report": "## Top level",
    "Input": "## `inputs[]`",
    "Quality": "## `quality`",
    "Finding": "## `quality`",
    "Coverage": "## `quality`",
    "RankCoverage": "## `quality`",
    "NumberVerdict": "## `quality`",
    "Clock": "## `clock`",
    "Layout": "## `layout`",
    "StageRanks": "## `layout`",
    "Schedule": "## `schedule`",
    "Guess": "## `schedule`",
    "Departure": "## `schedule`",
    "Step": "## `steps[]`",
    "Bubble": "## `bubble`",
    "Cause": "## `bubble`",
    "CausePart": "## `bubble`",
    "PositionCauses": "## `bubble`",
    "PhaseCauses": "## `bubble`",
    "SizeBubble": "## `bubble`",
    "Metric": "## `metrics[]`",
    "Throughput": "## `throughput`",
    "Pipeline": "## `pipelines[]`",
    "Stage": "## `stages[]`",
    "Rank": "## `ranks[]`",
    "Outside": "## `ranks[]`",
    "Communication": "## `communication[]`",
    "Link": "## `links[]`",
    "Imbalance": "## `imbalance`",
    "Straggler": "## `imbalance`",
    "StageLoad": "## `imbalance`",
    "SlowMicrobatch": "## `imbalance`",
    "DataLength": "## `imbalance`",
    "Pause": "## `imbalance`",
    "Pauses": "## `imbalance`",
    "WorstBubble": "## `worst_bubbles[]`",
    "Proposal": "## `findings[]`",
    "Tool": "## Top level",
}


@pytest.mark.parametrize("name", [*report_types.__all__, "Finding"])
def test_fields_of_the_report_are_documented(name):
    """Every key of every part stands in the section of that part."""
    kind = Finding if name == "Finding" else getattr(report_types, name)
    text = section(REPORT, SECTIONS[name])
    missing = [field.name for field in dataclasses.fields(kind) if not re.search(rf"`{field.name}(\[\])?`", text)]
    assert not missing


INFO_SECTIONS = {
    "Info": "### Top level",
    "FileInfo": "### `files[]`",
    "RankInfo": "### `files[].ranks[]`",
    "Counts": "### `files[].ranks[]`",
    "StepInfo": "### `files[].ranks[]`",
    "ActionsInfo": "### `files[].ranks[]`",
    "LaneInfo": "### `files[].ranks[]`",
    "ThreadInfo": "### `files[].ranks[]`",
    "GroupInfo": "### `files[].ranks[]`",
    "Need": "### `needs[]`",
    "JobInfo": "### `job`",
}


@pytest.mark.parametrize("name", info_types.__all__)
def test_fields_of_info_are_documented(name):
    """Every key of every part stands in the section of that part."""
    text = section(INFO, INFO_SECTIONS[name])
    fields = dataclasses.fields(getattr(info_types, name))
    assert not [field.name for field in fields if not re.search(rf"`{field.name}(\[\])?`", text)]


def test_no_field_of_info_is_made_up():
    """What the first columns name exists somewhere in what `info` tells, or is a line to add."""
    real = {field.name for name in info_types.__all__ for field in dataclasses.fields(getattr(info_types, name))}
    known = {*real, *get_args(Addition), "ranks"}
    assert {cell.removesuffix("[]") for cell in first_cells(INFO.read_text("utf-8"))} <= known
    assert set(get_args(Addition)) <= first_cells(section(INFO, "### `needs[]`"))


@pytest.mark.parametrize("kind", [Comparison, Change])
def test_fields_of_a_comparison_are_documented(kind):
    """Every key has its row."""
    text = section(PAGES["docs/gate.md"], "### The JSON of a comparison")
    names = {cell.removeprefix("changes[].") for cell in first_cells(text)}
    assert {field.name for field in dataclasses.fields(kind)} <= names


@pytest.mark.parametrize(
    ("title", "kinds"),
    [
        ("### The JSON of a gate", (Gate, Check, Difference, Worst)),
        ("### The file of a baseline", (Baseline, Fingerprint, report_types.Metric)),
    ],
)
def test_fields_of_gates_and_baselines_are_documented(title, kinds):
    """Every key stands in the table, and none is made up."""
    text = section(PAGES["docs/gate.md"], title).split("\n## ")[0]
    named = set(re.findall(r"`([a-z_]+)`", re.sub(r"`(\w+)\[\]\.", "`", text)))
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert fields <= named
    assert {cell.removeprefix("checks[].") for cell in first_cells(text)} <= fields


def test_python_of_the_gate_page_runs():
    """The example of docs/gate.md, as it stands there."""
    (example,) = re.findall(r"```python\n(.*?)```", section(PAGES["docs/gate.md"], "## In Python"), re.DOTALL)
    exec(example.replace("sample_traces", str(ROOT / "sample_traces")), {})  # noqa: S102  our own text


def test_verdicts_on_numbers_are_defined():
    """Each finding that speaks against a number, and each reason that is no finding, has its row; none is made up."""
    text = section(DEFINITIONS, "### Which numbers stand")
    rows = dict(re.findall(r"^\| `([a-z0-9-]+)` \| (.*) \|$", text, re.MULTILINE))
    against = {code: set(re.findall(r"`(\w+)`", cell)) for code, cell in rows.items() if code in AFFECTED}
    assert against == {code: set(numbers) for code, numbers in AFFECTED.items()}
    assert {code: cell for code, cell in rows.items() if code not in AFFECTED} == WORDS


def test_no_field_of_the_report_is_made_up():
    """What the first columns name exists somewhere in the report."""
    kinds = [Finding, *(getattr(report_types, name) for name in report_types.__all__)]
    real = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert {cell.removesuffix("[]") for cell in first_cells(REPORT.read_text("utf-8"))} <= real


def test_csv_metrics_are_keys_of_the_report(printed):
    """As docs/report.md promises."""
    kinds = [getattr(report_types, name) for name in report_types.__all__]
    real = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    real |= {field.name for field in dataclasses.fields(Finding)} | {f"{cause}_points" for cause in CAUSES}
    table = csv.DictReader(io.StringIO(printed("analyze sample_traces/1f1b_p4m8 --format csv")))
    assert {row["metric"].removeprefix("outside_") for row in table} <= real


def test_public_names_have_docstrings():
    """Whatever `bubblescope` offers explains itself."""
    for name in set(bubblescope.__all__) - {"__version__"}:
        assert inspect.getdoc(getattr(bubblescope, name)), name


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    """Every relative link is a file of the repository, and its anchor a heading."""
    page = PAGES[name]
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), target
        assert not anchor or anchor in anchors(file), target


@pytest.mark.parametrize("name", PAGES)
def test_named_files_exist(name):
    """Files of the repository that a page names in code are there; names with <...> are patterns."""
    text = PAGES[name].read_text("utf-8")
    named = re.findall(r"`((?:bubblescope|tests|tools|docs|benchmarks|sample_traces)/[\w./-]+)`", text)
    assert not [path for path in named if not (ROOT / path).exists()]


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/definitions.md",
        "docs/design.md",
        "docs/report.md",
        "docs/cli.md",
        "docs/whatif.md",
        "docs/info.md",
        "docs/gate.md",
    ],
)
def test_lines_are_short(name):
    """Prose is wrapped at 120 columns; tables and blocks need not be."""
    prose = re.sub(r"```.*?```", "", PAGES[name].read_text("utf-8"), flags=re.DOTALL).splitlines()
    assert not [line for line in prose if len(line) > 120 and not line.startswith("|")]


def test_formats_are_in_the_documentation():
    """Every output format is named where the command line and the report are explained."""
    text = PAGES["docs/cli.md"].read_text("utf-8") + README.read_text("utf-8")
    assert all(f"**{name}**" in text for name in FORMATS)
