"""What `bubblescope explain` says of what-ifs: no word and no number is left out, and docs/whatif.md says the same."""

from __future__ import annotations

import ast
import io
import re

import orjson
import pytest
from rich.console import Console

from bubblescope.errors import UsageError
from bubblescope.model.changes import KEYS
from bubblescope.report import forecasts, pages
from bubblescope.report.change_pages import CHANGES
from bubblescope.report.entries import normal, page, spellings
from bubblescope.report.explained import TOPICS, explain
from bubblescope.report.json import schema
from bubblescope.report.whatif_pages import FORECASTS, WHATIF
from tests import whatifs
from tests.report.test_explained import UNITS, computed, leaves, plain, stated
from tests.report.test_explained import places as of_report
from tests.test_docs import PAGES, anchors, section

DOCUMENT = PAGES["docs/whatif.md"]
UNEXPLAINED = (
    r".*run\.(pp|tp|virtual|microbatches)|.*run\.schedule|forecasts\[\]\.(change|title|problem)|tool\..*|schema"
)
"""What was asked for, and the shape of a run, which is the user's own choice."""

OF_REPORT = r"trusted|quality\..*"
"""What the report holds as well, whose pages explain it."""


def each(entries):
    """Run a test for every entry, under its name."""
    return pytest.mark.parametrize("entry", entries, ids=lambda entry: entry.name)


def places() -> set[str]:
    """What a what-if holds; of the three kinds of runs those of forecasts."""
    made = orjson.loads(schema("whatif"))
    found = {path for path, node in leaves(made, made["$defs"]) if node.get("type") != "null"}
    return {re.sub(r"^(measured|replayed)\.", "forecasts[].run.", path) for path in found}


def test_every_key_has_a_page_or_a_reason():
    """A new one needs an `Entry` with its key, or a word in UNEXPLAINED; none is made up."""
    keys = [key for entry in WHATIF for key in entry.keys]
    left = {path for path in places() if not re.fullmatch(f"{UNEXPLAINED}|{OF_REPORT}", path)}
    assert {path.removesuffix("[]") for path in left} == set(keys)
    assert len(keys) == len(set(keys))


def test_keys_of_the_report_are_explained_there():
    """Under the same name."""
    assert explain("trusted") == explain("bubble.trusted")
    assert {path for path in places() if re.fullmatch(OF_REPORT, path)} - {"trusted"} <= set(of_report(numeric=False))


@pytest.mark.parametrize("run", ["measured", "replayed", "forecasts[].run"])
@pytest.mark.parametrize("key", ["step_ns", "bubble", "memory.activations", "memory.weights"])
def test_keys_are_explained_of_every_run(run, key):
    """They mean the same in all three."""
    assert explain(f"{run}.{key}") == explain(f"forecasts[].run.{key}")


@pytest.mark.parametrize("key", dict.fromkeys(KEYS.values()))
def test_every_word_of_the_grammar_has_a_page(key):
    """Under its short name with =, as it is written after --try."""
    word = next(short for short, name in KEYS.items() if name == key)
    (entry,) = (entry for entry in CHANGES if entry.section == word)
    assert entry.name.split("=")[0] == word
    assert explain(f"{word}=") == page(entry)


@pytest.mark.parametrize("word", sorted(KEYS))
def test_a_bare_word_is_known(word):
    """It has its page, or one of its other meanings."""
    assert explain(word)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        ("m=16", "m=N"),
        ("Microbatches = 16", "m=N"),
        ("schedule=zb-v", "schedule=NAME"),
        ("layers", "layers=best"),
        ("layers=8+8+9+7", "layers=best"),
        ("recompute=on", "recompute=on|off"),
        ("microbatch=1/2", "microbatch=K"),
        ("p2p=free", "p2p=K"),
        ("without=p2p+host", "without=TROUBLE"),
    ],
)
def test_a_change_leads_to_the_page_of_its_word(asked, name):
    """Whatever its value is."""
    assert explain(asked).headline.startswith(f"{name}: ")


def test_several_changes_lead_to_a_list():
    """Of the words that they are made of, unless one of them is none."""
    listed = explain("schedule=zb-v, m=16,overlap")
    assert listed.headline == "schedule=zb-v, m=16,overlap changes several things:"
    assert [row[0] for shown in listed.tables for row in shown.rows] == ["schedule=NAME", "m=N", "overlap"]
    with pytest.raises(UsageError):
        explain("schedule=zb-v,luck=9")


@each(CHANGES)
def test_changes_have_all_parts(entry):
    """What changes, what stays, what is assumed, an example, and what to beware of."""
    assert all((entry.changed, entry.kept, entry.assumed, entry.example, entry.pitfalls))


@each(CHANGES)
def test_changes_are_documented_in_the_same_words(entry):
    """The section of docs/whatif.md says what the page says."""
    text = plain(section(DOCUMENT, f"### `{entry.section}`"))
    for part in (entry.name, entry.formula, entry.changed, entry.kept, entry.assumed):
        assert part in text


@each(FORECASTS)
def test_formulas_stand_in_the_document(entry):
    """Word for word, each part by itself."""
    text = plain(DOCUMENT.read_text("utf-8"))
    assert not [part for part in entry.formula.split("; ") if part not in text]


@each(WHATIF)
def test_links_lead_somewhere(entry):
    """The section of the document exists, and what else to see has a page of its own, by just that name."""
    assert entry.document == "docs/whatif.md"
    assert entry.section in anchors(DOCUMENT)
    names = {name for topic in TOPICS for name in topic.names()}
    assert entry.see
    assert not set(entry.see) - (names - {entry.name})


@each(WHATIF)
def test_examples_are_true(entry):
    """Every calculation gives the value beside it, to its last digit."""
    for what, calculation, value in entry.example.rows:
        number, slack, unit = stated(value)
        result = computed(ast.parse(calculation, mode="eval").body) * UNITS.get(unit, 1.0)
        assert result == pytest.approx(number, abs=slack * 1.0001), what


@each(WHATIF)
def test_every_spelling_leads_to_the_page(entry):
    """A word that ends several keys leads to their list; what is also said is nobody else's name."""
    assert explain(entry.name) == page(entry)
    names = {normal(name) for topic in TOPICS for name in topic.names()} - {normal(entry.name)}
    assert not {normal(word) for word in (*entry.also, *entry.hidden)} & names
    for word in spellings(entry) - names:
        told = explain(word)
        assert told == page(entry) or any(entry.name == row[0] for table in told.tables for row in table.rows)


@each(WHATIF)
def test_pages_fit_a_terminal(entry):
    """80 columns are enough: no line is longer, and no row of an example is broken."""
    out = io.StringIO()
    pages.draw(page(entry), Console(file=out, width=80, color_system=None, force_terminal=False))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    for row in entry.example.rows:
        assert any(all(cell in line for cell in row) for line in lines), row


def test_words_of_the_tables_are_explained():
    """Every column of the page can be asked for as it stands there."""
    shown = forecasts.page(whatifs.usual()).tables[0]
    for word in {*shown.headers} - {"change", "ms"}:
        assert explain(word)
