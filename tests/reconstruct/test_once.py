"""What recurs once a step and is no action, on literal kernels."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.reconstruct.once import once_a_step


def left(text, long=""):
    """The text without what is no action's: a letter a kernel of 10 ns, or 40 if `long`, `|` a message, `#` a step."""
    letters = [letter for letter in text if letter not in "|#"]
    names = sorted(set(letters))
    segment, step, talking = [], [], []
    borders = steps = 0
    for letter in text:
        borders += letter in "|#"
        steps += letter == "#"
        if letter == "|":
            talking.append(steps)
        elif letter != "#":
            segment.append(borders)
            step.append(steps)
    took = np.array([40 if letter in long else 10 for letter in letters])
    code = np.array([names.index(letter) for letter in letters])
    dropped = once_a_step(code, np.array(segment), np.array(step), took, np.array(talking))
    return "".join(letter for letter, out in zip(letters, dropped.tolist(), strict=True) if not out)


@pytest.mark.parametrize("step", ["|fgfgbh|fgfgbh|fgfgbh|", "fgfg|fgfg|bhbh|fgfg|bhbh|bhbh", "fgfg|fgfg|bhbh|bhbh"])
@pytest.mark.parametrize("edges", ["z|{}", "z{}", "zy|{}", "z|y{}", "{}|n", "{}n", "z|{}|nn", "z#{}"])
def test_edges_of_a_step_are_no_actions(step, edges):
    """Before the first forward or behind the last backward, apart from them or not."""
    text = edges.format(step) + "#"
    assert left(text * 2) == "".join(letter for letter in step if letter != "|") * 2


@pytest.mark.parametrize(
    "text", ["fgfg|bhbh#", "|fgfgbhbh|#", "efgfg|bhbhe#", "ff|ff|ii|ii|ww|ww#", "ff|ff|ff|bb|bb|bb#"]
)
def test_actions_are_left(text):
    """Also of a single micro-batch, where each action recurs once a step, and where all weight gradients come last."""
    assert left(text * 3) == text.replace("|", "").replace("#", "") * 3


def test_a_cast_that_forwards_run_too_is_told_by_standing_apart():
    """Its name says nothing, its segment is like none amid a step."""
    step = "cfgfgcfgfg|cfgfgcfgfg|bhbhbhbhbh|bhbhbhbhbh"
    assert left(f"c|{step}#" * 2) == step.replace("|", "") * 2


def test_a_fill_amid_an_evaluation_and_a_step_is_known_by_name():
    """Where neither a mark nor an optimizer lies between the two."""
    assert left("z|fgbh|fgbh|fgbh|#|fg|fg|z|fgbh|fgbh|fgbh|#", long="fgbh") == "fgbh" * 3 + "fgfg" + "fgbh" * 3


def test_what_takes_long_is_an_action():
    """A head that takes as long as a forward is one, whatever its name."""
    assert left("zz|fgfg|bhbh|fgfg|bhbh#" * 2, long="z") == "zzfgfgbhbhfgfgbhbh" * 2
