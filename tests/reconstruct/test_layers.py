"""Which layer the work of an action is of."""

from __future__ import annotations

import pytest

from bubblescope.model.options import Options
from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.passes import reconstruct
from tests.building import actions_of, backward, call, forward, note, op, run, trace


def layers(*rows, **identity):
    """(action, layer, nanoseconds) of all work of layers in a trace."""
    timeline = reconstruct(trace(*rows, **identity), Options(), 0)
    names = [name for name, *_ in actions_of(timeline)]
    work = timeline.layers
    rows = zip(work.action.tolist(), work.layer.tolist(), work.length.tolist(), strict=True)
    return [(names[action], layer, length) for action, layer, length in rows]


def two_layers(*names, frame=note, at=0):
    """A forward of 40 with two ranges in it, and a kernel before, in each of them, and behind."""
    return [
        note("PP:0F0", at, at + 40),
        frame(names[0], at + 10, at + 20),
        frame(names[1], at + 20, at + 30),
        run("embed", at + 5, at + 100, at + 107),
        run("gemm", at + 12, at + 110, at + 130),
        run("gemm", at + 22, at + 130, at + 160),
        run("head", at + 35, at + 160, at + 163),
    ]


@pytest.mark.parametrize(
    "names",
    [
        ("layers.0", "layers.1"),
        ("layer 7", "layer 8"),
        ("model.layers.3.mlp", "model.layers.4"),
        ("layer_0f", "layer_1f"),
    ],
)
def test_ranges_of_layers(names):
    """What was asked for in a layer's range is of that layer, in the order of their numbers; the rest of none."""
    assert layers(two_layers(*names)) == [("0F0", 0, 20), ("0F0", 1, 30)]


def test_modules():
    """Modules that are layers tell as well, recorded as frames."""
    rows = two_layers("nn.Module: TransformerLayer_0", "nn.Module: TransformerLayer_1", frame=call)
    assert layers(rows) == [("0F0", 0, 20), ("0F0", 1, 30)]


def test_no_layers():
    """Without such ranges there is nothing of layers."""
    assert layers(two_layers("attention", "mlp")) == []


def test_another_thread():
    """A range of one thread says nothing of what another one asked for."""
    rows = [note("PP:0F0", 0, 40), note("layers.0", 0, 40, "other"), note("layers.1", 0, 20)]
    rows += [run("gemm", 5, 100, 110), run("gemm", 30, 110, 120)]
    assert layers(rows) == [("0F0", 1, 10)]


def test_overlapping_kernels():
    """Kernels of a layer that run at the same time count once."""
    rows = [note("PP:0F0", 0, 40), note("layers.0", 0, 40), run("gemm", 5, 100, 110), run("copy", 6, 105, 120)]
    assert layers(rows) == [("0F0", 0, 20)]


def test_the_innermost_range_counts():
    """A block of layers of the same name is only what its layers leave."""
    rows = [note("PP:0F0", 0, 40), note("block 0", 0, 40), note("block 1", 10, 20)]
    assert layers(rows, run("gemm", 5, 100, 110), run("gemm", 15, 110, 113)) == [("0F0", 0, 10), ("0F0", 1, 3)]


def test_parts_of_layers():
    """What is numbered inside layers, as experts are, is part of them."""
    rows = two_layers("nn.Module: DecoderLayer_0", "nn.Module: DecoderLayer_1", frame=call)
    rows += [call("nn.Module: MoEBlock_0", 11, 15), call("nn.Module: MoEBlock_1", 21, 25)]
    assert layers(rows) == [("0F0", 0, 20), ("0F0", 1, 30)]


def test_what_holds_the_layers():
    """A stack that holds all layers is none of them."""
    rows = two_layers("nn.Module: TransformerLayer_0", "nn.Module: TransformerLayer_1", frame=call)
    assert layers(rows, call("nn.Module: TransformerBlock_0", 2, 38)) == [("0F0", 0, 20), ("0F0", 1, 30)]


def test_encoder_and_decoder():
    """Layers of two names in one stage are counted on, in the order in which they first run."""
    assert layers(two_layers("encoder.layers.0", "decoder.layers.0")) == [("0F0", 0, 20), ("0F0", 1, 30)]


def test_backward_by_autograd():
    """A backward operator is of the layer of the forward operator that has its number, as is what follows it."""
    rows = two_layers("layers.0", "layers.1")
    rows += [forward(11, 1), forward(21, 2), note("PP:0B0", 50, 130)]
    rows += [backward(60, 2, 1, -1, thread="autograd")]
    rows += [run("gemm", 62 + 10 * i, 200 + 10 * i, 206 + i + 10 * i, thread="autograd") for i in range(3)]
    assert layers(rows)[2:] == [("0B0", 0, 7 + 8), ("0B0", 1, 6)]


def test_backward_of_no_layer():
    """A backward operator whose forward lies in no layer's range is of none, nor is what follows it."""
    rows = [*two_layers("layers.0", "layers.1"), forward(11, 1), forward(31, 2), note("PP:0B0", 50, 130)]
    rows += [backward(60, 2, -1, 1, thread="autograd")]
    rows += [run("gemm", 62 + 10 * i, 200 + 10 * i, 206 + 10 * i, thread="autograd") for i in range(3)]
    assert layers(rows)[2:] == [("0B0", 0, 6)]


def test_backward_that_nothing_tells():
    """Without autograd's numbers nothing tells the layers of a backward."""
    rows = [*two_layers("layers.0", "layers.1"), note("PP:0B0", 50, 130), run("gemm", 60, 200, 210)]
    assert [name for name, *_ in layers(rows)] == ["0F0", "0F0"]


def test_overlapped_layers():
    """A range of Megatron that holds one layer's forward and another's backward tells each for its own way."""
    rows = [note("layer_0f-layer_1b", 0, 20), note("layer_1f-layer_0b", 20, 40)]
    rows += [note("attn forward", 1, 5), note("attn backward", 6, 15), note("attn forward", 21, 25)]
    rows += [note("attn backward", 26, 35)]
    rows += [
        run("gemm", host, 100 + 4 * host, 100 + 4 * host + length)
        for host, length in ((2, 3), (8, 5), (22, 7), (30, 9))
    ]
    assert sorted(layers(rows)) == [("?B0", 0, 9), ("?B0", 1, 5), ("?F0", 0, 3), ("?F0", 1, 7)]


def test_collectives_of_a_layer():
    """What a tensor-parallel layer reduces is part of its time."""
    tp = CommArgs(op="all_reduce", description="TENSOR_MODEL_PARALLEL_GROUP", ranks=(0, 1), group="tp")
    rows = [*two_layers("layers.0", "layers.1"), run("ncclDevKernel_AllReduce", 15, 130, 142, comm=tp)]
    assert layers(rows)[0] == ("0F0", 0, 32)


def test_on_a_cpu():
    """Operators in the range of a layer are its work where there is no GPU."""
    rows = [note("PP:0F0", 0, 100), note("layers.0", 0, 40), note("layers.1", 40, 90)]
    assert layers(rows, op("aten::mm", 10, 30), op("aten::mm", 40, 85)) == [("0F0", 0, 20), ("0F0", 1, 45)]


def test_too_many_names():
    """More kinds of layers than a model has are none."""
    rows = [note("PP:0F0", 0, 400), [note(f"net{i}.layers.0", 10 * i, 10 * i + 9) for i in range(20)]]
    assert layers(rows, [run("gemm", 10 * i + 1, 1000 + 10 * i, 1005 + 10 * i) for i in range(20)]) == []
