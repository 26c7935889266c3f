"""What `bubblescope explain` says about gates."""

from __future__ import annotations

import re

import pytest

from bubblescope.gate.presets import PRESETS
from bubblescope.report.explained import TOPICS, explain
from bubblescope.report.gate_pages import WORDS
from bubblescope.report.pages import plain
from tests.test_docs import PAGES, anchors


@pytest.mark.parametrize("entry", WORDS, ids=lambda entry: entry.name)
def test_words_of_the_gate_lead_to_its_page(entry):
    """The section exists, and what else to see has a page."""
    assert entry.section in anchors(PAGES[entry.document])
    assert set(entry.see) <= {name for topic in TOPICS for name in topic.names()} - {entry.name}


def test_what_the_pages_say_of_presets_is_true():
    """Names, and the rules of the usual one."""
    text = " ".join(plain(explain("preset")).decode().split())
    assert all(name in text for name in PRESETS)
    assert set(re.findall(r"\w+:[+-]\d+(?:pp|%)", text)) == set(PRESETS["default"])


@pytest.mark.parametrize(
    "asked", ["gate", "rule", "rules", "baseline", "noise", "fingerprint", "strict", "inconclusive"]
)
def test_words_that_people_ask_for_have_a_page(asked):
    """As they are spelt on the page of a gate."""
    assert explain(asked).headline
