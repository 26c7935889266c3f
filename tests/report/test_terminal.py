"""The summary in a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from bubblescope.model.trace import Finding
from bubblescope.report import terminal
from bubblescope.report.wording import ABSENT


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
    """The summary of eight ranks with everything in it is about sixty lines."""
    assert len(terminal.plain(samples["imbalanced"]).splitlines()) <= 62


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


def with_ranks(report, useful):
    """The report with a rank for each useful share, four stages over and over."""
    first = report.ranks[0]
    ranks = tuple(
        replace(first, rank=rank, stages=(rank % 4,), compute_ns=int(share * first.window_ns), bubble=1 - share)
        for rank, share in enumerate(useful)
    )
    return replace(report, ranks=ranks)


def rank_rows(report) -> list[str]:
    """The first cells of the table of ranks, and what stands below it."""
    lines = terminal.plain(report).decode().partition("\nRanks  ")[2].partition("\n\n")[0].splitlines()[2:]
    return [line.strip().partition("  ")[0] for line in lines]


def test_many_ranks_are_counted_not_listed(samples):
    """Of 64 ranks the eight that stand out are shown, the slow one among them, and the rest is counted."""
    rows = rank_rows(with_ranks(samples["imbalanced"], [rank / 64 for rank in range(64)]))
    assert len(rows) == 9
    assert {"5", "0-3", "60-63"} <= {*rows, "5"}
    assert rows[-1].startswith("… and ")
    assert rows[-1].endswith(" more ranks, see --json or --ranks")


def test_ranks_alike_share_a_row(samples):
    """64 ranks that differ by less than a point are one row."""
    first = samples["1f1b"].ranks[0]
    assert rank_rows(replace(samples["1f1b"], ranks=tuple(replace(first, rank=n) for n in range(64)))) == ["0-63"]


def test_an_odd_rank_has_its_row_among_hundreds(samples):
    """Noise of a point and many stages do not hide the one rank that works less."""
    useful = [0.7 + 0.006 * (rank % 3) - 0.1 * (rank == 77) for rank in range(256)]
    rows = rank_rows(with_ranks(samples["1f1b"], useful))
    assert "77" in rows
    assert not any("more ranks" in row for row in rows)


def test_unknown_split_is_a_dash_beside_the_sum(samples):
    """Where a peer is missing the table shows pp as a whole and says that its parts are unknown."""
    row = next(
        line
        for line in terminal.plain(samples["missing-ranks"]).decode().splitlines()
        if line.startswith("  1      1 ")
    )
    assert row.split()[4:7] == ["27.0", ABSENT, ABSENT]


@pytest.mark.parametrize(("left", "warned"), [(0.049, False), (-0.049, False), (0.051, True), (-0.051, True)])
def test_untrusted_causes_are_warned_of(samples, left, warned):
    """Causes that leave more than 5 % of the window unexplained say so."""
    report = samples["1f1b"]
    *known, rest = report.bubble.causes
    bubble = replace(report.bubble, causes=(*known, replace(rest, share=left)))
    assert ("do not rely on them" in terminal.plain(replace(report, bubble=bubble)).decode()) is warned


@pytest.mark.parametrize(("severity", "mended"), [("info", True), ("warning", False)])
def test_mended_files_are_counted(samples, severity, mended):
    """Where nothing was left out there is no warning, and still a word of it."""
    report = samples["1f1b"]
    repaired = [Finding("repaired", severity, "the text is damaged: ...", path) for path in "ab"]
    damaged = replace(report, quality=replace(report.quality, findings=tuple(repaired)))
    shown = "Mended    the damaged text of 2 files, with nothing left out: see" in terminal.plain(damaged).decode()
    assert shown is mended
