"""Finding a schedule by what people call it."""

from __future__ import annotations

import re

import pytest

from bubblescope.errors import UsageError
from bubblescope.schedules.registry import FAMILIES, find


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("1f1b", "1f1b"),
        ("dapple", "1f1b"),
        ("PipeDream-Flush", "1f1b"),
        ("deepspeed", "1f1b"),
        ("non_interleaved", "1f1b"),
        (" GPipe ", "gpipe"),
        ("f_then_b", "gpipe"),
        ("fill-drain", "gpipe"),
        ("model_parallel", "naive"),
        ("VPP", "interleaved-1f1b"),
        ("virtual_pipeline", "interleaved-1f1b"),
        ("1F1B-interleaved", "interleaved-1f1b"),
        ("Interleaved_1F1B", "interleaved-1f1b"),
        ("bfs", "looped-bfs"),
        ("breadth-first", "looped-bfs"),
    ],
)
def test_names_and_aliases(name, expected):
    """A schedule answers to its name and aliases in any case, with hyphens or underscores."""
    assert find(name).name == expected


def test_no_two_schedules_share_a_name():
    """Names and aliases are unique and written the way `find` compares them."""
    names = [name for family in FAMILIES for name in (family.name, *family.aliases)]
    assert len(set(names)) == len(names)
    assert all(find(name).name and name == name.strip().lower().replace("_", "-") for name in names)


def test_the_order_of_the_registry():
    """An order that several schedules share goes by the first name: 1f1b, gpipe, naive, then the others."""
    assert [family.name for family in FAMILIES][:3] == ["1f1b", "gpipe", "naive"]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_schedule_is_documented(family):
    """Each says in a line what it does, and where that is written."""
    assert family.summary
    assert re.search(r"arXiv \d{4}\.\d{4,5}", family.source)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("gpip", "did you mean gpipe?"), ("interleave-1f1b", "did you mean interleaved-1f1b"), ("1f1bb", "1f1b")],
)
def test_near_names(name, hint):
    """A name that is nearly one is answered with the near ones."""
    with pytest.raises(UsageError, match=f"no schedule is called '{name}'") as caught:
        find(name)
    assert hint in caught.value.hint


def test_unknown_names():
    """A name that is near nothing is answered with all."""
    with pytest.raises(UsageError, match="no schedule is called 'qqqqq'") as caught:
        find("qqqqq")
    assert caught.value.hint == "known schedules: " + ", ".join(family.name for family in FAMILIES)
