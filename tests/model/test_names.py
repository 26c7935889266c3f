"""Names without what a tool adds to them."""

from __future__ import annotations

import pytest

from bubblescope.model.names import parted, plain, plainly
from tests.building import note, trace

SUFFIXES = [
    "",
    ", seq = 12",
    ", op_id = 9",
    ", seq = 12, op_id = 9",
    ", op_id = 9, sizes = [[4, 4], []]",
    ", seq = 0, op_id = 9, sizes = [[], [2]], input_op_ids = [(7,0), (0,-1)]",
]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", ["PP:0F1", "ProfilerStep#3", "nccl:send 0->1", "Optimizer.step#SGD.step", "a, b"])
def test_what_emit_nvtx_adds_is_taken_off(name, suffix):
    """Numbers, sizes and inputs in torch's order go, the rest of the name stays."""
    assert plain(name + suffix) == name


@pytest.mark.parametrize("name", ["f, seq = x", "f,seq = 1", "f, sizes = 3", "seq = 1", "f, opid = 1"])
def test_a_text_that_looks_alike_stays(name):
    """Only what emit_nvtx writes is taken off."""
    assert plain(name) == name


@pytest.mark.parametrize(
    ("text", "name", "number"),
    [
        ("aten::mm, seq = 12, op_id = 9", "aten::mm", 12),
        ("aten::mm, seq = 0", "aten::mm", 0),
        ("aten::mm, op_id = 9", "aten::mm", -1),
        ("aten::mm, op_id = 9, sizes = [[4]]", "aten::mm", -1),
        ("aten::mm, input_op_ids = [(7,0)]", "aten::mm", -1),
        ("aten::mm", "aten::mm", -1),
        ("Forward 3, seq = 7, op_id = 9", "Forward 3", 7),
        (f"aten::mm, seq = {'9' * 18}", "aten::mm", 10**18 - 1),
        (f"aten::mm, seq = {'9' * 19}", "aten::mm", -1),
        ("aten::mm, seq = x", "aten::mm, seq = x", -1),
        ("", "", -1),
    ],
)
def test_the_number_of_autograd_is_told(text, name, number):
    """Where there is one that a column of int64 holds; the name is the same without."""
    assert parted(text) == (name, number)


def test_a_trace_keeps_its_rows():
    """Two names that become one remain two rows; a trace of plain names is the same value."""
    found = plainly(trace(note("Forward 1, op_id = 1", 0, 1), note("Forward 1, op_id = 2", 2, 3)))
    assert [found.names[i] for i in found.annotations.name] == ["Forward 1", "Forward 1"]
    assert plainly(found) is found
