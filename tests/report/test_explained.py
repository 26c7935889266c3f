"""What `bubblescope explain` says: nothing of the report is left out, nothing is made up, and every example is true."""

from __future__ import annotations

import ast
import io
import operator
import re
from collections.abc import Iterator

import orjson
import pytest
from rich.console import Console

from bubblescope.advice.rules import RULES
from bubblescope.analysis.cause_parts import HOST, JITTER
from bubblescope.analysis.causes import CAUSES as CAUSES_FOUND
from bubblescope.analysis.quality import DEGRADING
from bubblescope.errors import UsageError
from bubblescope.report import pages
from bubblescope.report.advice_pages import ADVICE
from bubblescope.report.bubble_pages import BUBBLE
from bubblescope.report.cause_detail_pages import DETAILS
from bubblescope.report.cause_pages import CAUSES, LADDER
from bubblescope.report.entries import Entry, normal, page, spellings
from bubblescope.report.explained import TOPICS, explain
from bubblescope.report.finding_pages import CODES, FINDINGS
from bubblescope.report.found_pages import FOUND
from bubblescope.report.gate_pages import GATE
from bubblescope.report.json import schema
from bubblescope.report.speed_pages import SPEED
from bubblescope.report.stage_pages import STAGES
from bubblescope.report.tables import tables
from bubblescope.report.time_pages import TIME
from bubblescope.report.traffic_pages import TRAFFIC
from bubblescope.report.trust_pages import TRUST
from bubblescope.report.uneven_pages import UNEVEN
from tests.test_docs import DEFINITIONS, anchors, finding_codes, section

METRICS = (*BUBBLE, *CAUSES, *DETAILS, *TIME, *SPEED, *STAGES, *UNEVEN, *TRAFFIC, *FOUND, *TRUST, *GATE)
ENTRIES = (*METRICS, *ADVICE, *FINDINGS)

UNEXPLAINED = {
    r".*\b(rank|stage|step|chunk|pipeline|source|target)": "says which one is meant",
    r".*\b(ranks|stages|missing_ranks)\[\]": "say which ones are meant",
    r"inputs\[\]\.(bytes|events)": "the size of a file",
    r"layout\.(world_size|pp|tp|dp|cp|ep|virtual)": "a degree of the layout, which is the user's own choice",
    r"steps\[\]\.(start|end)_ns": "when a step was",
}
"""Numbers without a page, and why: patterns of their place in the report."""

HEADERS = {
    "stages or phase",
    "rank",
    "ranks",
    "stage",
    "chunk",
    "step",
    "phase",
    "group",
    "call",
    "cause",
    "meaning",
    "start",
    "ended by",
}
"""Columns that say which one is meant, or are words themselves."""


def each(entries):
    """Run a test for every entry, under its name."""
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


def leaves(node: dict, definitions: dict, path: str = "") -> Iterator[tuple[str, dict]]:
    """The place and the type of everything in a report that is no object and no list."""
    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]]
    if "anyOf" in node:
        for choice in node["anyOf"]:
            yield from leaves(choice, definitions, path)
    elif "properties" in node:
        for key, value in node["properties"].items():
            yield from leaves(value, definitions, f"{path}.{key}" if path else key)
    elif isinstance(node.get("additionalProperties"), dict):
        yield from leaves(node["additionalProperties"], definitions, path)
    elif "items" in node:
        yield from leaves(node["items"], definitions, f"{path}[]")
    else:
        yield path, node


def places(*, numeric: bool) -> set[str]:
    """Places in the report, those of numbers only or all."""
    made = orjson.loads(schema())
    found = leaves(made, made["$defs"])
    return {path for path, node in found if not numeric or {"integer", "number"} & set(_types(node))}


def _types(node: dict) -> list[str]:
    kind = node.get("type", [])
    return [kind] if isinstance(kind, str) else kind


def test_numbers_of_the_schema_are_seen():
    """The walk finds numbers that may be null, in lists, in objects within these, and by rank."""
    assert {
        "bubble.gap",
        "ranks[].outside.dp_ns",
        "clock.offsets_ns",
        "schedule.runner_up.confidence",
        "layout.stages[].ranks[]",
    } <= places(numeric=True)
    assert not {"quality.verdict", "bubble.trusted", "steps[].used"} & places(numeric=True)


def test_every_number_has_a_page_or_a_reason():
    """A new number of the report needs an `Entry` with its key, or a line in UNEXPLAINED."""
    explained = {key for entry in (*METRICS, *ADVICE) for key in entry.keys}
    missing = [
        path
        for path in sorted(places(numeric=True) - explained)
        if not any(re.fullmatch(pattern, path) for pattern in UNEXPLAINED)
    ]
    assert not missing, f"no page of bubblescope explain has the keys {missing}: see report/*_pages.py"


def test_reasons_are_needed():
    """Every pattern of UNEXPLAINED leaves something out that has no page."""
    explained = {key for entry in (*METRICS, *ADVICE) for key in entry.keys}
    rest = places(numeric=True) - explained
    assert not [pattern for pattern in UNEXPLAINED if not any(re.fullmatch(pattern, path) for path in rest)]


def test_no_key_is_made_up():
    """Every key of a page is in the report, and stands on one page only."""
    keys = [key for entry in ENTRIES for key in entry.keys]
    assert not set(keys) - places(numeric=False)
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", CAUSES_FOUND)
def test_every_cause_has_a_page(name):
    """Under its path in the report, and by itself unless the word has other meanings."""
    told = explain(f"bubble.causes.{name}")
    assert told.headline.startswith((f"{name}: ", f"causes.{name}: "))
    assert explain(f"causes.{name}") == told
    assert explain(name) == told or "several meanings" in explain(name).headline


@pytest.mark.parametrize("name", [*(f"jitter.{part}" for part in JITTER), *(f"host.{part}" for part in HOST)])
def test_every_part_of_a_cause_has_a_page(name):
    """Under the name of its cause, and listed where the part alone is asked for."""
    assert explain(name).headline.startswith(f"{name}: ")
    alone = explain(name.split(".")[1])
    assert alone == explain(name) or name in [row[0] for table in alone.tables for row in table.rows]


def test_every_finding_has_a_page():
    """A new code needs a `Code` in report/file_findings.py or report/job_findings.py; none is made up."""
    told = {code.name for code in CODES}
    assert not finding_codes() - told
    assert not told - finding_codes()


def test_findings_are_told_as_they_are_defined():
    """Severity and meaning are those of docs/definitions.md, word for word."""
    text = section(DEFINITIONS, "### Codes of findings")
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \| (.*) \|$", text, re.MULTILINE)
    defined = {name: (severity, meaning.replace("`", "")) for name, severity, meaning in rows}
    assert {code.name: (code.severity, code.meaning) for code in CODES} == defined


@pytest.mark.parametrize("row", RULES, ids=lambda row: row.code)
def test_every_proposal_has_a_page(row):
    """Under its code, or with `findings.` before it where a cause or a number has that name."""
    told = explain(f"findings.{row.code}")
    assert told.headline.startswith((f"{row.code}: ", f"findings.{row.code}: "))
    assert explain(row.code)
    labels = [label for label, _ in told.facts]
    assert {"Formula", "Gain", "Source"} <= set(labels)
    assert {"Beware", "Tell apart"} & set(labels)
    assert told.tables


def test_no_proposal_is_made_up():
    """Every page is of a rule, or of what all have."""
    assert {entry.name.removeprefix("findings.") for entry in ADVICE} == {row.code for row in RULES} | {"gain"}


def test_proposals_are_defined():
    """Every code has a row in docs/definitions.md, and none is made up."""
    rows = re.findall(r"^\| `([^`]+)` \|", section(DEFINITIONS, "### Which findings there are"), re.MULTILINE)
    assert rows == [row.code for row in RULES]


def test_degrading_findings_say_so():
    """Where a finding degrades the verdict its page says it."""
    silent = [code.name for code in CODES if code.name in DEGRADING and "degraded" not in code.effect]
    assert not silent


def test_replays_are_those_of_the_definitions():
    """The pages of the causes tell the replays as the table of docs/definitions.md does."""
    rows = re.findall(r"^\| (T\d) \| (.*?) \| (.*?) ?\|$", section(DEFINITIONS, "### Why: the causes"), re.MULTILINE)
    assert [(rung, text) for rung, text, _ in rows] == list(LADDER[:-1])
    causes = {f"T{k}": name for k, name in enumerate(CAUSES_FOUND[:-1], 1)}
    assert {rung: name.strip("`") for rung, _, name in rows if name} == causes
    for rung, name in causes.items():
        (entry,) = (e for e in CAUSES if e.name in {name, f"causes.{name}"})
        assert entry.formula.startswith(f"{rung} - T{int(rung[1]) - 1}, ")


def plain(text: str) -> str:
    """A text of Markdown in plain letters, in one line."""
    return " ".join(re.sub(r"[`*]", "", text).split())


@each([entry for entry in METRICS if entry.formula and not re.match(r"(T\d|window) - T\d", entry.formula)])
def test_formulas_stand_in_the_definitions(entry):
    """Word for word, each part by itself."""
    text = plain(DEFINITIONS.read_text("utf-8"))
    missing = [part for part in entry.formula.split("; ") if part not in text and entry.formula not in text]
    assert not missing, f"docs/definitions.md does not say {missing}"


@each(ENTRIES)
def test_links_lead_somewhere(entry):
    """The section of the definitions exists, and what else to see has a page of its own, by just that name."""
    assert entry.section in anchors(DEFINITIONS)
    assert entry.see
    names = {name for topic in TOPICS for name in topic.names()}
    assert not set(entry.see) - (names - {entry.name})


@each(METRICS)
def test_metrics_have_all_parts(entry):
    """Unit, example, where to see it or how to read it; a cause also what makes it and what to do."""
    assert entry.unit
    assert entry.example
    assert entry.pitfalls or entry.neighbours
    if entry.makers:
        assert entry.neighbours
        assert entry.remedy
        assert entry.where


OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
UNITS = {"%": 100.0, "points": 100.0}


def computed(node: ast.expr) -> float:
    """The value of plain arithmetic."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](computed(node.left), computed(node.right))
    assert isinstance(node, ast.Call), ast.dump(node)
    return {"max": max, "min": min}[node.func.id](*map(computed, node.args))


def stated(value: str) -> tuple[float, float, str]:
    """A value as its number, half of its last digit, and its unit."""
    match = re.fullmatch(r"(-?\d+(?:\.(\d+))?)\s*(.*)", value)
    assert match, value
    return float(match[1]), 0.5 * 10 ** -len(match[2] or ""), match[3]


@each([entry for entry in ENTRIES if entry.example])
def test_examples_are_true(entry):
    """Every calculation gives the value beside it, to its last digit."""
    for what, calculation, value in entry.example.rows:
        number, slack, unit = stated(value)
        result = computed(ast.parse(calculation, mode="eval").body) * UNITS.get(unit, 1.0)
        assert result == pytest.approx(number, abs=slack * 1.0001), what


def test_false_examples_are_found():
    """The arithmetic of the test above is none that lets everything pass."""
    assert computed(ast.parse("1 - 252 / 391", mode="eval").body) == pytest.approx(0.3555, abs=1e-4)
    assert computed(ast.parse("max(2, 3) ** 2", mode="eval").body) == 9
    assert stated("35.5%") == (35.5, 0.05, "%")
    assert stated("391 ms") == (391.0, 0.5, "ms")


def test_names_are_unlike():
    """No two things share a name; what one is also called is no name of another, whatever its keys end in."""
    names = [normal(name) for topic in TOPICS for name in topic.names()]
    assert len(names) == len(set(names))
    for entry in ENTRIES:
        assert not {normal(word) for word in (*entry.also, *entry.hidden)} & (set(names) - {normal(entry.name)})


@each(ENTRIES)
def test_every_spelling_leads_to_the_page(entry):
    """The name, the aliases and the keys of the report; a word that ends several keys leads to their list."""
    assert explain(entry.name) == page(entry)
    for key in entry.keys:
        assert explain(key) == page(entry)
    names = {normal(name) for topic in TOPICS for name in topic.names()}
    for word in spellings(entry) - names:
        told = explain(word)
        assert told == page(entry) or any(entry.name == row[0] for table in told.tables for row in table.rows)


def test_words_of_the_tables_are_explained(report):
    """Every column of the summary and every cause in it can be asked for as it stands there."""
    shown = tables(report)
    words = {header for table in shown for header in table.headers}
    words |= {
        name for table in shown if table.headers[0] == "cause" for row in table.rows for name in row[0].split(", ")
    }
    for word in words - HEADERS:
        assert explain(word)


@each(ENTRIES)
def test_pages_fit_a_terminal(entry):
    """80 columns are enough: no line is longer, and no row of an example is broken."""
    out = io.StringIO()
    pages.draw(page(entry), Console(file=out, width=80, color_system=None, force_terminal=False))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    for row in entry.example.rows if entry.example else ():
        assert any(all(cell in line for cell in row) for line in lines), row


def test_names_are_told_apart_by_what_stands_before():
    """`host` is a part of a rank's time, a part of the rest of its step, and a cause."""
    told = explain("host")
    assert [row[0] for table in told.tables for row in table.rows] == ["causes.host", "ranks.host", "outside"]
    for word, name in (("causes.host", "causes.host"), ("ranks[].host_ns", "ranks.host"), ("outside.host", "outside")):
        assert explain(word).headline.startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("word", "titles"),
    [
        ("findings", ["What would help", "Findings about the data"]),
        ("findings[]", ["What would help", "Findings about the data"]),
        ("quality.findings", ["Findings about the data"]),
        ("causes", ["Causes of the bubble"]),
        ("schedules", ["Schedules"]),
    ],
)
def test_kinds_of_things_are_listed(word, titles):
    """All names of them."""
    listed = explain(word)
    assert listed.headline == f"{word}:"
    assert [shown.title for shown in listed.tables] == titles
    assert {shown.title: {row[0] for row in shown.rows} for shown in listed.tables} == {
        topic.title: set(topic.names()) for topic in TOPICS if topic.title in titles
    }


def test_a_word_for_a_kind_is_no_name():
    """It would hide the list."""
    words = {word for topic in TOPICS for word in topic.called}
    spelled = {normal(word) for topic in TOPICS for word, _ in topic.aliases()}
    assert not words & (spelled | {normal(name) for topic in TOPICS for name in topic.names()})


def test_garbage_collection_is_known_by_its_short_name():
    """As everybody calls it."""
    assert explain("gc").headline.startswith("garbage-collection: ")


@pytest.mark.parametrize("word", ["D2", "d2", "Ratio To Ideal", "ratio-to-ideal", "bubble.ratio_to_ideal"])
def test_names_are_forgiving(word):
    """Case, spaces, underscores and the path do not matter."""
    assert explain(word).headline.startswith("ratio_to_ideal: ")


def test_near_names_are_of_different_things():
    """A slip is answered with what may have been meant, each thing once."""
    with pytest.raises(UsageError) as slip:
        explain("ratio-to-ideel")
    assert slip.value.hint == "did you mean ratio_to_ideal?"


def test_an_entry_without_parts_has_no_empty_lines():
    """What is not said has no label."""
    bare = Entry(name="x", summary="s", text="t", section="the-bubble")
    assert (
        pages.plain(page(bare)).decode() == "x: s.\n\nt\n\nSource  bubblescope itself; docs/definitions.md#the-bubble\n"
    )
