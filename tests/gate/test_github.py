"""Summaries and annotations of GitHub, read as its runner reads them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.report import gates, github, pages
from tests.gate import values
from tests.gate.values import FAILED, check, gate


def parsed(line: str) -> tuple[str, str, str]:
    """Command, title and message, as the runner takes a line apart (ActionCommand.TryParseV2)."""
    assert len(line.splitlines()) == 1
    found = re.fullmatch(r"::(\w+) title=([^,]*?)::(.*)", line)
    assert found, line
    command, title, message = found.groups()
    codes = {"%3A": ":", "%2C": ",", "%0D": "\r", "%0A": "\n", "%25": "%"}
    title = re.sub("%(3A|2C|0D|0A|25)", lambda code: codes[code[0]], title)
    return command, title, re.sub("%(0D|0A|25)", lambda code: codes[code[0]], message)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        ("passed", []),
        ("failed", [("error", "bubble:+2pp failed"), ("warning", "step_time:+5% failed")]),
        ("softened", [("warning", "step_time:+5% failed")]),
        ("inconclusive", [("error", "bubble:+2pp could not be decided")]),
        ("too-few-steps", [("error", "bubble:+2pp could not be decided")]),
        ("missing-baseline", [("error", "bubble:+2pp could not be decided")]),
        ("limits-only", [("error", "bubble > 18% failed"), ("error", "bubble@stage=3 > 25% failed")]),
        ("off", []),
        ("empty", [("error", "bubblescope gate")]),
    ],
)
def test_what_is_annotated(sample, expected):
    """What fails the step is an error, and so is what leaves the verdict open; what only warns is a warning."""
    assert [parsed(line)[:2] for line in github.annotations(values.SAMPLES[sample]())] == expected


def test_an_annotation_says_all():
    """Expected and found, where it is worst, what to run, how to accept."""
    found = values.failed()
    _, _, message = parsed(github.annotations(found)[0])
    for part in ("29.2% to 40.8%", "rises by at most 2.0 points", "stage 0 (rank 0)", found.look, *found.accept):
        assert part in message


@pytest.mark.parametrize("count", [10, 11, 25])
def test_no_more_than_github_shows(count):
    """Of each kind ten; the last of them counts those that it stands for."""
    failed = [replace(FAILED, rule=f"bubble@stage={n}:+2pp") for n in range(count)]
    warned = [replace(each, level="warn") for each in failed]
    lines = github.annotations(gate(*failed, *warned, verdict="fail"))
    for kind in ("error", "warning"):
        found = [line for line in lines if line.startswith(f"::{kind} ")]
        assert len(found) == 10
        more = f"{count - 9} more rules" in found[-1]
        assert more == (count > 10)


@given(st.text(st.characters()))
def test_no_name_starts_a_command(name):
    """Each annotation is one line and one command, and its title ends where we end it."""
    bad = replace(FAILED, rule=f"a{name}", reason=name)
    found = gate(bad, replace(bad, level="warn"), verdict="fail", look=f"bubblescope compare {name}", accept=(name,))
    lines = github.annotations(found)
    assert [parsed(line)[0] for line in lines] == ["error", "warning"]
    assert not [line for line in lines if "##[" in line]


def test_a_message_is_read_as_it_was_written():
    """Colons, commas and signs of percent, doubled escapes and what would end a title come back as they were."""
    name = "a::b: c, d 50% %0A %3A %25"
    bad = replace(FAILED, rule=name, reason=name)
    (line,) = github.annotations(gate(bad, verdict="fail"))
    _, title, message = parsed(line)
    assert title == f"{name} failed"
    assert f"Why: {name}. " in message


SMALL = b"""### FAIL: one\n
- Rules: \xc2\xb5 1 failed\n
<details><summary>More</summary>\n
```text
abc
def
```\n
| a | b |
| :--- | ---: |
| 1 | 2 |
| 3 | 4 |\n
</details>\n
last
""".replace(b"\\n", b"\n")


def closed(text: str) -> bool:
    """Whether every block of text and every fold that begins also ends."""
    return text.count("```") % 2 == 0 and text.count("<details>") == text.count("</details>")


def test_every_cut_closes_what_it_opened():
    """Wherever the room ends: in a fold, in a block of text, in a letter, in a table."""
    for room in range(len(SMALL) + 1):
        made = github.cut(SMALL, room)
        assert len(made) <= room
        assert closed(made.decode())
    assert {b"abc\n```\n" in github.cut(SMALL, room) for room in range(len(SMALL))} == {True, False}
    assert github.cut(SMALL, len(SMALL)) == SMALL


def large() -> bytes:
    """A page with long tables, letters of several bytes, a fold and a block of text."""
    rules = [replace(FAILED, rule=f"bubble@stage={n}:+2pp", reason=f"µs – {n}") for n in range(40)]  # noqa: RUF001
    page = pages.markdown(gates.page(gate(*rules, verdict="fail"))).decode()
    fold = f"<details><summary>More</summary>\n\n{page}\n\n```text\nabc\ndef\n```\n\n</details>\n"
    return (page + "\n" + fold + "\nlast\n").encode()


LARGE = large()


@given(st.integers(0, len(LARGE) + 10))
def test_a_summary_is_cut_at_a_line(room):
    """Never within a row, a letter, a fold or a block of text; and it says that it was cut."""
    made = github.cut(LARGE, room)
    assert len(made) <= room
    if room >= len(LARGE):
        assert made == LARGE
        return
    text = made.decode()
    if not text:
        assert room < 60
        return
    assert text.endswith("_Cut here, as the summary was too long._\n")
    assert text.count("<details>") == text.count("</details>")
    assert len(re.findall("^```", text, re.MULTILINE)) % 2 == 0
    known = {*LARGE.decode().splitlines(), "_Cut here, as the summary was too long._"}
    lines = text.splitlines()
    assert set(lines) <= known
    for place, line in enumerate(lines):
        if line.startswith("|") and not lines[place - 1].startswith("|"):
            assert lines[place + 1].startswith("| :---"), "a header without the line that makes it one"


def test_a_cut_keeps_as_much_as_it_can():
    """Not much more than a line is lost, and the verdict stays first."""
    gate_ = values.hostile()
    whole = github.summary(gate_, 2**20)
    assert whole == pages.markdown(gates.page(gate_))
    longest = max(map(len, LARGE.splitlines()))
    for room in range(500, len(LARGE), 997):
        made = github.cut(LARGE, room)
        assert len(made) > room - 2 * longest - 100
        assert made.startswith(b"### bubblescope gate: FAIL: ")


def test_a_table_in_names_is_no_table():
    """A rule called like a row stays one cell of its row."""
    found = gate(check("bubble > 18%", by="group", of="a|b|c", outcome="fail", found=0.2), verdict="fail")
    rows = [line for line in github.summary(found, 2**20).decode().splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}
