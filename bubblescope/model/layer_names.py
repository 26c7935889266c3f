"""Names that tell the layer of a model: ranges that people or frameworks open around each, and modules of PyTorch."""

from __future__ import annotations

import re
from typing import NamedTuple

__all__ = ["MODULE", "WORDS", "LayerName", "read_layer"]


class LayerName(NamedTuple):
    """A layer: what it is called, and its number there; of a range that holds parts of two layers one for each way.

    A number is -1 where the range tells none for forwards, or for backwards.
    """

    family: str
    forward: int
    backward: int


MODULE = "nn.Module: "
"""How the profiler begins the frames of modules, with `with_stack` (torch/csrc/autograd/profiler_python.cpp)."""

_LAYER, _FORWARD, _BACKWARD = (rf"(?P<{name}>\d{{1,5}})" for name in ("layer", "forward", "backward"))

WORDS: tuple[str, ...] = (
    # The profiler numbers the modules of each class. What a layer is made of ends otherwise: LayerNorm, MLP, Attention.
    rf"(?P<family>{MODULE}\w*(?:Layer|Block))_{_LAYER}",
    # NVIDIA/Megatron-LM, megatron/core/models/common/model_chunk_schedule_plan.py: two layers overlapped, or one.
    rf"(?P<family>layer)_{_FORWARD}f(?:-layer_{_BACKWARD}b)?",
    rf"(?P<family>layer)_{_BACKWARD}b",
    # mlc-ai/pith-train: the parts of a layer.
    rf"(?P<family>layer){_LAYER}\.stage\d+_[fbw]",
    # Paths of modules, with what is inside a layer or without: model.layers.3, transformer.h.3.attn, blocks.3.
    rf"(?P<family>(?:\w+\.)*(?:layers?|blocks?|h))\.{_LAYER}(?:\.[\w.]+)?",
    # Words: layer 3, layer_3, block 3, decoder_layer_3, TransformerLayer_3.
    rf"(?P<family>(?:(?:transformer|encoder|decoder)[_ ])?(?:layer|block))[_ ]?{_LAYER}",
    rf"(?P<family>(?:[A-Z]\w*)?(?:Layer|Block))[_ ]?{_LAYER}",
)
"""The texts, of which the first that matches a whole name counts. `layer` is a number for either way."""

_WORDS = tuple(re.compile(word, re.ASCII) for word in WORDS)


def read_layer(name: str) -> LayerName | None:
    """The layer that a name tells, or None."""
    match = next(filter(None, (word.fullmatch(name) for word in _WORDS)), None)
    if match is None:
        return None
    told = match.groupdict()
    forward, backward = (told.get(way) or told.get("layer") or -1 for way in ("forward", "backward"))
    return LayerName(told["family"] or "", int(forward), int(backward))
