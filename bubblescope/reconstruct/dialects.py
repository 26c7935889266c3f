"""How frameworks name their pipeline work: one row a text, nothing but data and how to read it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from bubblescope.model.actions import Kind
from bubblescope.model.options import LabelRule
from bubblescope.model.timeline import Messages

__all__ = ["DIALECTS", "MESSAGE_DIALECTS", "RECOMPUTED", "Dialect", "Ids", "Pieces", "Word", "of_rule", "read"]

RECOMPUTED = len(Kind)
"""Stands for a kind where a range runs a forward again, for the backward that follows."""


class Ids(NamedTuple):
    """What a label says of one action or message; -1 where it does not say."""

    kind: int
    stage: int = -1
    chunk: int = -1
    microbatch: int = -1
    slice: int = -1
    direction: int = -1


class Word(NamedTuple):
    """One text of a dialect.

    The groups `kind`, `stage`, `chunk`, `microbatch`, `slice` and `direction` of the pattern say what
    it names. A text that names two has a second set, `kind_2` and so on; one that names any number is
    cut at `joint` first. `names` are the kinds (and directions) that the text fixes without a group.
    """

    pattern: str
    names: tuple[tuple[int | None, int], ...] = ((None, -1),)
    joint: str = ""


class Pieces(NamedTuple):
    """Ranges that are pieces of an action: all of one kind inside the ranges of one pass are one action.

    A pass is one range that matches `around`, or a run of them while the number `forward` rises and
    `backward` falls. What matches `before` belongs to the pass that follows it, if it is in none.
    """

    around: str
    before: str = r"(?!)"


@dataclass(frozen=True, slots=True)
class Dialect:
    """The texts of one framework.

    Attributes:
        name: the framework.
        words: its texts; the first that matches counts.
        both: texts so plain that they count only where a forward and a backward are named.
        split: B is the input gradient wherever W is named.
        sign: a text that must be there too for the others to mean this.
        pieces: what the texts are pieces of.
        shared: whether runs without a pipeline write these texts, too.
    """

    name: str
    words: tuple[Word, ...]
    both: bool = False
    split: bool = False
    sign: str = ""
    pieces: Pieces | None = None
    shared: bool = False


_F, _B, _W = ((int(kind), -1) for kind in (Kind.F, Kind.B, Kind.W))
_STAGE, _CHUNK, _MICROBATCH = r"(?P<stage>\d{1,4})", r"(?P<chunk>\d{1,4})", r"(?P<microbatch>\d{1,6})"
_SLICE = r"(?P<slice>\d{1,6})"
_TORCH = rf"{_STAGE}(?P<kind>[FBIW]){_MICROBATCH}(?:\.{_SLICE})?"
_PHASE = rf" chunk {_MICROBATCH} \(phase{_CHUNK}\)"
_NODE = r"(?:attn|mlp|moe_dispatch|moe_combine|pre_process|post_process|mtp_post_process)"


def _second(pattern: str) -> str:
    return re.sub(r"\(\?P<(\w+)>", r"(?P<\1_2>", pattern)


def _mstx(name: str) -> str:
    """A message of Ascend's mstx: the name, or Python's text of a dict that holds it."""
    return rf"{name}|\{{'name': '{name}'(?:, 'current_microbatch': \d+)?\}}"


DIALECTS: tuple[Dialect, ...] = (
    # torch/distributed/pipelining/schedules.py: _PipelineScheduleRuntime (2.9 and later).
    Dialect(
        "torch stages",
        (Word(rf"PP:{_TORCH}"), Word(rf"PP:\({_TORCH};{_second(_TORCH)}\)OVERLAP_F_B", ((None, -1),) * 2)),
    ),
    # sail-sg/zero-bubble-pipeline-parallelism, megatron/core/pipeline_parallel/zerobubble; older tags name less.
    Dialect(
        "zero bubble",
        (Word(rf"(?P<kind>[FBWR]){_MICROBATCH}(?:\.{_CHUNK}(?:\.{_SLICE})?)?"),),
        both=True,
        split=True,
    ),
    # torch/distributed/pipelining/schedules.py, _Action.__repr__ of 2.4, for those who name ranges by it.
    Dialect("torch 2.4 actions", (Word(rf"(?P<kind>[FBW]){_MICROBATCH}_s{_STAGE}"),), both=True, split=True),
    # mlc-ai/pith-train, pithtrain/dualpipe/dualpipev.py: a chunk is a micro-batch, a phase a stage of the rank.
    # The weight gradients come first in, first out, and do not say whose they are.
    Dialect(
        "pithtrain",
        (
            Word(rf"(?:rank \d+ )?(?P<kind>forward|backward){_PHASE}"),
            Word(rf"(?:rank \d+ )?forward{_PHASE} backward{_second(_PHASE)}", (_F, _B)),
            Word(r"(?:rank \d+ )?weight chunk", (_W,)),
        ),
    ),
    # pytorch/PiPPy, pippy/PipelineSchedule.py, ScheduleInterleaved1F1B: the number is that of a tick.
    Dialect(
        "pippy interleaved",
        (
            Word(r"Forward \d{1,6}", (_F,)),
            Word(r"1F1B \d{1,6}", (_F, _B)),
            Word(r"Cooldown (?:\(backward\) )?\d{1,6}", (_B,)),
        ),
        sign=r"1F1B \d{1,6}",
    ),
    # ScheduleGPipe of torch and PiPPy, Schedule1F1B of PiPPy.
    Dialect("torch gpipe", (Word(rf"(?P<kind>Forward|Backward) {_MICROBATCH}"),)),
    # pytorch/PiPPy, pippy/PipelineSchedule.py, ScheduleLoopedBFS.
    Dialect("pippy stages", (Word(rf"Stage {_STAGE} (?P<kind>Forward|Backward)"),)),
    # fairscale/nn/pipe/pipeline.py and torch.distributed.pipeline.sync.Pipe; fairscale/experimental/nn/
    # distributed_pipeline, where the rank is that of the job and not of the pipeline.
    Dialect(
        "fairscale",
        (Word(rf"chunk{_MICROBATCH}-part{_STAGE}", (_F,)), Word(rf"chunk{_MICROBATCH}-rank\d{{1,6}}", (_F,))),
    ),
    # deepspeedai/DeepSpeed, deepspeed/utils/nvtx.py; runtime/pipe/engine.py calls the decorated backward on the
    # last stage only.
    Dialect(
        "deepspeed",
        (Word(r"DeepSpeedEngine\.forward", (_F,)), Word(r"DeepSpeedEngine\.backward", (_B,))),
        shared=True,
    ),
    # Ascend/msprof-analyze, docs of pp_chart: ranges that users are asked to add. The micro-batch that some of them
    # carry restarts with each model chunk, which they do not name, so that it is not read.
    Dialect(
        "mstx",
        (
            Word(_mstx(r"forward_step(?:_with_model_graph|_no_model_graph)?"), (_F,)),
            Word(_mstx(r"backward_step(?:_with_model_graph)?"), (_B,)),
            Word(_mstx(r"forward_backward_overlaping"), (_F, _B)),
            Word(_mstx(r"WeightGradStore[._]pop"), (_W,)),
        ),
        both=True,
        shared=True,
    ),
    # NVIDIA/Megatron-LM, megatron/core/models/common/model_chunk_schedule_plan.py: a layer of one micro-batch with one
    # of another; megatron/core/pipeline_parallel/utils.py (ScheduleNode) names the parts of both inside it.
    Dialect(
        "megatron layers",
        (Word(rf"{_NODE} forward", (_F,)), Word(rf"{_NODE} (?:backward|wgrad)", (_B,))),
        pieces=Pieces(
            r"layer_(?P<forward>\d{1,6})f(?:-layer_(?P<backward>\d{1,6})b)?|layer_(?P<backward_alone>\d{1,6})b",
            r"pre_process forward|(?:mtp_)?post_process (?:backward|wgrad)",
        ),
        shared=True,
    ),
    # deepseek-ai/profile-data, train.json: parts of one forward and of one backward, hand made.
    Dialect(
        "dualpipe",
        (Word(r"(?:attn|mlp|dispatch|combine)\(F\)", (_F,)), Word(r"(?:attn|mlp|dispatch|combine)\([BW]\)", (_B,))),
        pieces=Pieces("1F1B"),
    ),
)

_SEND, _RECV = Messages.SEND, Messages.RECV
_TRANSFERS = {
    f"{verb}_{way}": (int(kind), direction)
    for verb, direction in (("send", _SEND), ("recv", _RECV))
    for way, kind in (("forward", Kind.F), ("backward", Kind.B))
}
# NVIDIA/Megatron-LM, megatron/core/pipeline_parallel/p2p_communication.py: the decorated functions.
_MEGATRON = {
    **{name: (name,) for name in _TRANSFERS},
    "send_forward_recv_backward": ("send_forward", "recv_backward"),
    "send_backward_recv_forward": ("send_backward", "recv_forward"),
    "send_forward_recv_forward": ("send_forward", "recv_forward"),
    "send_backward_recv_backward": ("send_backward", "recv_backward"),
    "send_forward_backward_recv_forward_backward": ("send_forward", "send_backward", "recv_forward", "recv_backward"),
}

MESSAGE_DIALECTS: tuple[Dialect, ...] = (
    Dialect(
        "torch stages", (Word(rf"PP:{_STAGE}(?P<direction>SEND|RECV)_(?P<kind>[FB]){_MICROBATCH}(?:\.{_SLICE})?"),)
    ),
    Dialect(
        "zero bubble",
        (
            Word(
                rf"(?P<direction>SEND|RECV)_(?P<kind>FORWARD|BACKWARD)\.{_MICROBATCH}\.{_CHUNK}(?:\.{_SLICE})?",
                joint=r"_(?=(?:SEND|RECV)_)",
            ),
        ),
    ),
    Dialect(
        "megatron",
        tuple(
            Word(rf"(?:\w+\.)*p2p_communication\.{name}", tuple(_TRANSFERS[part] for part in parts))
            for name, parts in _MEGATRON.items()
        ),
    ),
)

_KINDS = {
    **{kind.name: int(kind) for kind in Kind},
    "R": RECOMPUTED,
    **{
        spell(word): int(kind)
        for word, kind in (("forward", Kind.F), ("backward", Kind.B))
        for spell in (str.lower, str.upper, str.title)
    },
}
_DIRECTIONS = {"SEND": _SEND, "RECV": _RECV}


def read(text: str, words: Iterable[Word]) -> tuple[Ids, ...]:
    """What a whole text names, by the first word that matches it; () if none does."""
    for word in words:
        parts = re.split(word.joint, text) if word.joint else [text]
        matches = [re.fullmatch(word.pattern, part, re.ASCII) for part in parts]
        if all(matches):
            return tuple(
                _ids(match.groupdict(), f"_{i}" if i > 1 else "", *name)
                for match in matches
                if match is not None
                for i, name in enumerate(word.names, 1)
            )
    return ()


def of_rule(text: str, rules: Iterable[LabelRule]) -> tuple[Ids, ...]:
    """The same by rules of the user: they match anywhere, and without names the first group is the micro-batch."""
    for rule in rules:
        match = re.search(rule.pattern, text)
        if match is not None:
            groups = match.groupdict() or ({"microbatch": match[1]} if match.re.groups else {})
            return (_ids({**groups, "kind": None}, "", int(Kind[rule.kind]), -1),)
    return ()


def _ids(groups: dict[str, str | None], suffix: str, kind: int | None, direction: int) -> Ids:
    told = {name: groups.get(name + suffix) for name in ("kind", *Ids._fields[1:])}
    stage, chunk, microbatch, part = (_number(told[name]) for name in ("stage", "chunk", "microbatch", "slice"))
    kind = _KINDS[told["kind"] or ""] if kind is None else kind
    return Ids(kind, stage, chunk, microbatch, part, _DIRECTIONS.get(told["direction"] or "", direction))


def _number(text: str | None) -> int:
    """A group of a label as a number that a stage or a micro-batch can have, or -1."""
    return int(text) if text is not None and len(text) <= 6 and text.isascii() and text.isdecimal() else -1
