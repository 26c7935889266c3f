"""How a long run tells that it is alive."""

from __future__ import annotations

import sys

import pytest

from bubblescope.cli.console import Progress


class Clock:
    """Time that passes when a test says so."""

    now = 100.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock that stands."""
    return Clock()


def terminals(monkeypatch, *, out: bool, err: bool) -> None:
    """Say which streams are terminals."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: out)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: err)


def test_logs_get_a_line_every_ten_seconds(clock, capsys, monkeypatch):
    """A log shows whole lines, few of them, and none of a short run."""
    terminals(monkeypatch, out=False, err=False)
    with Progress(clock=clock) as tell:
        for second in range(26):
            clock.now = 100.0 + second
            tell(second * 10_000_000, 250_000_000)
    out, err = capsys.readouterr()
    assert err == "bubblescope: read 100 of 250 MB (40%)\nbubblescope: read 200 of 250 MB (80%)\n"
    assert out == ""


@pytest.mark.parametrize(
    ("streams", "seconds", "wanted", "drawn"),
    [
        ((True, True), 2, True, True),
        ((True, True), 0.5, True, False),
        ((False, True), 60, True, False),
        ((True, True), 60, False, False),
        ((False, False), 60, False, False),
    ],
)
def test_a_bar_is_drawn_for_a_person_who_waits(clock, capsys, monkeypatch, *, streams, seconds, wanted, drawn):
    """A bar appears after a second, only where both streams are terminals, and never unwanted."""
    monkeypatch.setenv("TERM", "xterm")
    terminals(monkeypatch, out=streams[0], err=streams[1])
    with Progress(wanted=wanted, clock=clock) as tell:
        tell(0, 100)
        clock.now += seconds
        tell(50, 100)
    seen = capsys.readouterr()
    assert ("reading" in seen.err) is drawn
    assert seen.out == ""
