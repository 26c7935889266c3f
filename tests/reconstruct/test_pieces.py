"""Actions that are named in pieces."""

from __future__ import annotations

import numpy as np

from bubblescope.model.options import Options
from bubblescope.reconstruct.passes import reconstruct
from bubblescope.reconstruct.pieces import passes
from tests.building import actions_of, note, run, trace, work_of

LAYERS = r"layer_(?P<forward>\d+)f(?:-layer_(?P<backward>\d+)b)?|layer_(?P<backward_alone>\d+)b"


def told(*rows):
    """The timeline of a trace, through its own self-check."""
    result = reconstruct(trace(*rows), Options(), 0)
    result.self_check()
    return result


def begins(*names):
    """Which of these ranges begin a pass."""
    found = passes(trace([note(name, 10 * i, 10 * i + 9) for i, name in enumerate(names)]), LAYERS)
    return [names[start // 10] for start in found.start.tolist()]


def test_a_pass_goes_on_while_layers_do():
    """Forward layers count up and backward layers down, alone or overlapped."""
    assert begins("layer_0f", "layer_1f", "layer_0f", "layer_1f") == ["layer_0f", "layer_0f"]
    assert begins("layer_1b", "layer_0b", "layer_1b", "layer_0b") == ["layer_1b", "layer_1b"]
    assert begins("layer_0f-layer_2b", "layer_1f-layer_1b", "layer_0b") == ["layer_0f-layer_2b"]
    assert begins("layer_0f-layer_0b", "layer_1f", "layer_2f") == ["layer_0f-layer_0b"]


def test_a_pass_does_not_go_on_into_the_other_way():
    """A backward after a forward is another pass, and so is a forward after a backward."""
    assert begins("layer_0f", "layer_1b", "layer_2f") == ["layer_0f", "layer_1b", "layer_2f"]


def test_pieces_between_passes():
    """What precedes a pass belongs to it if it says so, else to the pass before."""
    found = passes(trace(note("1F1B", 10, 20), note("1F1B", 30, 40)), "1F1B")
    row = found.of(np.array([5, 5, 15, 25, 25, 45, 45]), np.array([False, True, False, False, True, False, True]))
    assert row.tolist() == [-1, 0, 0, 0, 1, 1, -1]


def test_all_pieces_of_a_kind_are_one_action():
    """Parts of a forward and of a backward take turns; each kind is one action of the pass."""
    names = ["combine(B)", "attn(F)", "mlp(B)", "dispatch(F)", "mlp(W)"]
    rows = [
        [note(n, 10 * i, 10 * i + 9), run("gemm", 10 * i + 1, 100 + 10 * i, 108 + 10 * i)] for i, n in enumerate(names)
    ]
    result = told(rows, note("1F1B", 0, 60), run("gemm", 55, 160, 170))
    assert actions_of(result) == [("?B0", 100, 148), ("?F0", 110, 138)]
    assert result.actions.block[0] == result.actions.block[1] >= 0
    assert work_of(result) == [
        ("-", 160, 170), ("?B0", 100, 108), ("?B0", 120, 128), ("?B0", 140, 148), ("?F0", 110, 118), ("?F0", 130, 138),
    ]  # fmt: skip


def test_layers_of_megatron():
    """A forward is all layers of its pass, with what comes before the first and after the last."""
    rows = [
        note("pre_process forward", 0, 5), run("a", 1, 0, 5),
        note("layer_0f", 10, 20), note("attn forward", 11, 15), run("b", 12, 10, 15),
        note("layer_1f", 20, 30), note("mlp forward", 21, 25), run("c", 22, 20, 25),
        note("post_process forward", 31, 35), run("d", 32, 30, 35),
        note("post_process backward", 40, 45), run("e", 41, 40, 45),
        note("layer_1b", 50, 60), note("mlp wgrad", 51, 55), run("f", 52, 50, 55),
        note("layer_0b", 60, 70), note("attn backward", 61, 65), run("g", 62, 60, 65),
    ]  # fmt: skip
    assert actions_of(told(rows)) == [("?F0", 0, 35), ("?B0", 40, 65)]


def test_pieces_without_a_pass_are_no_labels():
    """A model may call its own ranges like that."""
    assert actions_of(told(note("attn forward", 0, 10), run("a", 1, 0, 5))) == []


def test_passes_are_counted():
    """Each pass is the next micro-batch."""
    rows = [
        [note("1F1B", at, at + 19), note("attn(F)", at, at + 5), run("a", at + 1, at, at + 4),
         note("mlp(F)", at + 6, at + 9), run("a", at + 7, at + 6, at + 9)]
        for at in (0, 20)
    ]  # fmt: skip
    assert actions_of(told(rows)) == [("?F0", 0, 9), ("?F1", 20, 29)]
