"""The summary in a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from bubblescope.report import terminal


class Ascii(io.StringIO):
    """A stream that says it cannot write more than ASCII."""

    encoding = "ascii"


def printed(report, stream=None, **settings) -> str:
    """What the renderer prints on a console of 100 columns."""
    stream = stream or io.StringIO()
    terminal.render(report, Console(file=stream, width=100, **settings))
    return stream.getvalue()


def test_no_line_is_wider_than_100_columns(report):
    """The summary fits a window of ordinary width."""
    assert max(map(len, terminal.plain(report).decode().splitlines())) <= 100


def test_eight_ranks_fit_a_screen(samples):
    """The summary of eight ranks with everything in it is about fifty lines."""
    assert len(terminal.plain(samples["imbalanced"]).splitlines()) <= 52


def test_names_never_command_the_terminal(samples):
    """No escape character of a trace reaches the terminal, and markup in names stays text."""
    text = printed(samples["hostile"])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]" in text
    assert "[/bold]" in text
    assert r"\x1b[31m" in text


def test_colour_changes_no_letter(report, monkeypatch):
    """With its colours removed the coloured summary is the plain one."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = printed(report, force_terminal=True, color_system="standard")
    assert "\x1b[" in coloured
    stripped = "".join(part.partition("m")[2] if index else part for index, part in enumerate(coloured.split("\x1b[")))
    assert [line.rstrip() for line in stripped.splitlines()] == terminal.plain(report).decode().splitlines()


def test_no_color_is_honoured(report, monkeypatch):
    """NO_COLOR removes every colour, whatever the terminal can do."""
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in printed(report, force_terminal=True, color_system="standard")


def test_ascii_terminals_get_ascii(report):
    """Where the encoding has no dash, a hyphen stands for it."""
    assert printed(report, Ascii()).isascii()


def many_ranks(report, count: int):
    """The report with `count` ranks that all differ."""
    first = report.ranks[0]
    ranks = tuple(
        replace(
            first,
            rank=rank,
            stages=(rank,),
            compute_ns=first.compute_ns - rank * 10_000,
            pp_ns=first.pp_ns + rank * 10_000,
        )
        for rank in range(count)
    )
    return replace(report, ranks=ranks)


def test_many_ranks_are_counted_not_listed(samples):
    """Of 64 ranks the eight that stand out are shown, the slow one among them, and the rest is counted."""
    text = terminal.plain(many_ranks(samples["imbalanced"], 64)).decode()
    assert "… and 56 more ranks, see --json or --ranks" in text
    rows = [line.split() for line in text.partition("\nRanks")[2].partition("\n\n")[0].splitlines()[2:-1]]
    assert {"0", "5", "63"} <= {row[0] for row in rows}


def test_ranks_alike_share_a_row(samples):
    """64 ranks that differ by less than a point are one row."""
    first = samples["1f1b"].ranks[0]
    report = replace(samples["1f1b"], ranks=tuple(replace(first, rank=rank) for rank in range(64)))
    assert "\n  0-63 " in terminal.plain(report).decode()


def test_unknown_split_is_a_dash_beside_the_sum(samples):
    """Where a peer is missing the table shows pp as a whole and says that its parts are unknown."""
    row = next(
        line
        for line in terminal.plain(samples["missing-ranks"]).decode().splitlines()
        if line.startswith("  1      1 ")
    )
    assert row.split()[5:9] == ["0.0", "27.0", "–", "–"]  # noqa: RUF001


@pytest.mark.parametrize("trusted", [True, False])
def test_untrusted_causes_are_warned_of(samples, trusted):
    """Causes that leave much unexplained say so."""
    report = samples["1f1b"]
    text = terminal.plain(replace(report, bubble=replace(report.bubble, trusted=trusted))).decode()
    assert ("do not rely on them" in text) is not trusted
