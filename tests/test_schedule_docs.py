"""docs/schedules.md says what the registry says, and the pages about schedules show what is printed.

After a wanted change write them anew with `BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/test_schedule_docs.py`,
and read the difference before committing it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from bubblescope.cli import run
from bubblescope.report.schedule_pages import markdown_table
from bubblescope.schedules.family import Costs, Shape
from bubblescope.schedules.registry import FAMILIES, find
from bubblescope.schedules.simulate import simulate

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "schedules.md"
UPDATE = os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS")

TABLE = re.compile(r"(<!-- table made from the registry -->\n\n)(.*?)(\n<!-- end of the table -->)", re.DOTALL)
SHOWN = re.compile(r"(<!-- output of: bubblescope (?P<line>[^\n]+) -->\n```\w+\n)(?P<text>.*?)(```\n)", re.DOTALL)


def renewed(page: Path, pattern: re.Pattern[str], made) -> None:
    """Assert that a page is as `made` makes its parts, writing it first where that is asked for."""
    text = page.read_text("utf-8")
    assert pattern.search(text)
    fresh = pattern.sub(made, text)
    if UPDATE:
        page.write_text(fresh, "utf-8")
    assert fresh == page.read_text("utf-8")


def test_table_is_made_from_the_registry():
    """The table has every schedule of the registry with its formula, memory and source, and no other."""
    renewed(PAGE, TABLE, lambda match: match[1] + markdown_table() + match[3])


@pytest.mark.parametrize("name", ["cli.md"])
def test_shown_output_is_what_is_printed(name, capsys, monkeypatch):
    """An output that a page shows equals what the program prints today, but for spaces at the end of a line."""
    monkeypatch.chdir(ROOT)
    for variable in ("COLUMNS", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(variable, raising=False)

    def today(match: re.Match[str]) -> str:
        assert run(match["line"].split()) == 0
        return match[1] + capsys.readouterr().out + match[4]

    renewed(ROOT / "docs" / name, SHOWN, today)


def test_numbers_of_the_definitions_are_true():
    """What the page says of 1f1b with four ranks and eight micro-batches, in all four ways to count."""
    text = PAGE.read_text("utf-8")
    said = [float(share) / 100 for share in re.findall(r"^\| D[123] \|.*\| ([\d.]+) % \|$", text, re.MULTILINE)]
    ran = simulate(find("1f1b"), Shape(4, 8), Costs())
    assert said == pytest.approx([ran.bubble, ran.ratio_to_ideal, ran.span], abs=5e-4)
    assert "| 3 (F+B) |" in text
    assert ran.idle == 3 * Costs().total


def test_zero_bubble_is_a_matter_of_counting():
    """With F = I = W zb-h2 has no idle time in D3, and as much as zb-h1 in D1, as the page says."""
    h1, h2 = (simulate(find(name), Shape(8, 24), Costs(1, 1, 1)) for name in ("zb-h1", "zb-h2"))
    assert h2.span == 0
    assert h2.bubble == h1.bubble > 0


def test_letters_are_those_of_the_formulas():
    """Every single letter of a formula is explained."""
    letters = set(re.findall(r"\b[A-Za-z]\b", section("## Letters")))
    used = set()
    for family in FAMILIES:
        text = f"{family.idle.text if family.idle else ''} {family.memory.text} {family.memory.weights_text}"
        used |= set(re.findall(r"(?<![a-zA-Z])[a-zA-Z](?![a-zA-Z])", text)) - set(re.findall(r"(\w) = ", text))
    assert used <= letters


def section(title: str) -> str:
    """The text under a heading."""
    return PAGE.read_text("utf-8").split(f"{title}\n")[1].split("\n## ")[0]


def test_lines_are_short():
    """Prose is wrapped at 120 columns; tables need not be."""
    assert not [line for line in PAGE.read_text("utf-8").splitlines() if len(line) > 120 and not line.startswith("|")]
