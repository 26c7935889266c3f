"""Finding a schedule by what people call it, and what each says of itself."""

from __future__ import annotations

import re

import pytest

from bubblescope.errors import UsageError
from bubblescope.schedules.registry import FAMILIES, find

NAMES = [
    "1f1b",
    "gpipe",
    "naive",
    "forward-only",
    "eager-1f1b",
    "interleaved-1f1b",
    "looped-bfs",
    "zb-h1",
    "zb-h2",
    "zb-1p",
    "zb-2p",
    "interleaved-zb",
    "zb-v",
    "dualpipe",
    "dualpipe-v",
    "chimera",
    "pipedream",
    "pipedream-2bw",
    "v-half",
    "v-min",
    "hanayo",
    "seq1f1b",
]
"""An order that several schedules share goes by the first name: the three oldest, then as definitions list them."""


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
        ("inference", "forward-only"),
        ("evaluation", "forward-only"),
        ("Overlap_Friendly_1F1B", "eager-1f1b"),
        ("ZBH1", "zb-h1"),
        ("zb_h2", "zb-h2"),
        ("interleaved_zero_bubble", "interleaved-zb"),
        ("ZBV", "zb-v"),
        ("V-ZB", "zb-v"),
        ("ZB1P", "zb-1p"),
        ("zb2p", "zb-2p"),
        ("DualPipe", "dualpipe"),
        ("DualPipeV", "dualpipe-v"),
        ("cut-in-half", "dualpipe-v"),
        ("Chimera", "chimera"),
        ("pipedream-async", "pipedream"),
        ("2BW", "pipedream-2bw"),
        ("Seq1F1B", "seq1f1b"),
    ],
)
def test_names_and_aliases(name, expected):
    """A schedule answers to its name and aliases in any case, with hyphens or underscores."""
    assert find(name).name == expected


def test_the_order_of_the_registry():
    """All schedules are there, in the order in which they lend their name."""
    assert [family.name for family in FAMILIES] == NAMES


def test_no_two_schedules_share_a_name():
    """Names and aliases are unique and written the way `find` compares them."""
    names = [name for family in FAMILIES for name in (family.name, *family.aliases)]
    assert len(set(names)) == len(names)
    assert all(name == name.strip().lower().replace("_", "-") for name in names)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_alias_leads_to_its_schedule(family):
    """A schedule is found by each of its names, as written, in capitals and with underscores."""
    for name in (family.name, *family.aliases):
        assert find(name) is find(name.upper()) is find(name.replace("-", "_")) is family


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_every_schedule_is_documented(family):
    """Each says in a line what it does, by which rule, what it costs, and where that is written."""
    forms = [form.text for form in (family.idle, family.span) if form is not None]
    texts = [family.summary, family.rule, family.source, family.memory.text, family.memory.weights_text, *forms]
    for text in texts:
        assert text.strip() == text
        assert text
        assert "\n" not in text
    assert re.search(r"arXiv \d{4}\.\d{4,5}|[\w-]+/[\w./-]+\.py", family.source)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("gpip", "did you mean gpipe?"),
        ("interleave-1f1b", "did you mean interleaved-1f1b"),
        ("1f1bb", "1f1b"),
        ("zb-h3", "zb-h"),
        ("dualpipe-w", "did you mean dualpipe-v"),
        ("kimera", "did you mean chimera?"),
    ],
)
def test_near_names(name, hint):
    """A name that is nearly one is answered with the near ones."""
    with pytest.raises(UsageError, match=f"no schedule is called '{name}'") as caught:
        find(name)
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["qqqqq", ""])
def test_unknown_names(name):
    """A name that is near nothing is answered with all."""
    with pytest.raises(UsageError, match=f"no schedule is called '{name}'") as caught:
        find(name)
    assert caught.value.hint == "known schedules: " + ", ".join(NAMES)
