"""Names that tell layers, and names that look as if they did."""

from __future__ import annotations

import pytest

from bubblescope.model.layer_names import read_layer

NAMED = {
    "nn.Module: TransformerLayer_3": ("nn.Module: TransformerLayer", 3, 3),
    "nn.Module: LlamaDecoderLayer_12": ("nn.Module: LlamaDecoderLayer", 12, 12),
    "nn.Module: GPT2Block_0": ("nn.Module: GPT2Block", 0, 0),
    "layer_3f-layer_4b": ("layer", 3, 4),
    "layer_3f": ("layer", 3, -1),
    "layer_4b": ("layer", -1, 4),
    "layer07.stage1_f": ("layer", 7, 7),
    "layers.3": ("layers", 3, 3),
    "model.layers.3": ("model.layers", 3, 3),
    "model.layers.3.mlp.gate_proj": ("model.layers", 3, 3),
    "transformer.h.3.attn": ("transformer.h", 3, 3),
    "h.11": ("h", 11, 11),
    "encoder.block.2": ("encoder.block", 2, 2),
    "layer 3": ("layer", 3, 3),
    "layer_3": ("layer", 3, 3),
    "Layer3": ("Layer", 3, 3),
    "block 3": ("block", 3, 3),
    "decoder_layer_3": ("decoder_layer", 3, 3),
    "transformer block 3": ("transformer block", 3, 3),
    "TransformerLayer_3": ("TransformerLayer", 3, 3),
}


@pytest.mark.parametrize("name", NAMED)
def test_layers(name):
    """Each text tells what the layers are called, and the number for either way."""
    assert read_layer(name) == NAMED[name]


@pytest.mark.parametrize(
    "name",
    [
        "layer",
        "layers",
        "layer norm 3",
        "layer_norm_3",
        "LayerNorm_3",
        "nn.Module: LayerNorm_3",
        "nn.Module: Linear_2",
        "nn.Module: LlamaMLP_3",
        "nn.Module: TransformerLayer",
        "attn_layer_3",
        "stages.3",
        "PP:0F3",
        "F3",
        "Forward 3",
        "chunk0-part1",
        "layer_3f-",
        "layers.x",
        "layers.³",
        "layer 123456",
        "nccl:all_reduce",
        "autograd::engine::evaluate_function: Layer_3",
        "",
    ],
)
def test_no_layers(name):
    """Parts of layers, stages, labels of actions and names without a number are no layers."""
    assert read_layer(name) is None
