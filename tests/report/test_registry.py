"""Formats by name and by suffix."""

from __future__ import annotations

import pytest

from bubblescope.errors import UsageError
from bubblescope.report.registry import guess


@pytest.mark.parametrize(
    ("target", "name"),
    [
        (None, "table"),
        ("out", "table"),
        ("a.json", "json"),
        ("A.JSON", "json"),
        ("x/a.md", "markdown"),
        ("a.csv", "csv"),
        ("a.txt", "table"),
    ],
)
def test_suffix_asks_for_a_format(target, name):
    """The name of the output file says what it should hold."""
    assert guess(target) == name


def test_unknown_suffix_is_not_guessed():
    """Nobody who asks for a page gets a table."""
    with pytest.raises(UsageError, match=r"out\.html"):
        guess("out.html")
