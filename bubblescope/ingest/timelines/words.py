"""What slices and columns are called: rules as data, the same for every format of timelines.

Names are compared in small letters, with `-` for blanks, underscores and dashes. A new dialect is mostly a row here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache

from bubblescope.ingest.tables import MOST_RANKS
from bubblescope.model.actions import Kind
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import CommArgs

__all__ = [
    "CALLS",
    "LIMITS",
    "NOTHING",
    "Meaning",
    "Role",
    "alias_rank",
    "field_of",
    "meaning",
    "places",
    "tells_actions",
]


class Role(IntEnum):
    """What a slice is; `NONE` is none of our business."""

    NONE = -1
    ACTION = 0
    MESSAGE = 1
    COLLECTIVE = 2
    OPTIMIZER = 3
    STEP = 4


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a name says; -1 where it does not. `call` indexes `CALLS`."""

    role: Role = Role.NONE
    kind: int = -1
    direction: int = -1
    call: int = -1
    stage: int = -1
    microbatch: int = -1
    slice: int = -1


_F, _B = r"f|fw|fwd|forward", r"b|bw|bwd|backward"
_PART = r"(-(compute|computation|comp|step|pass))?"

_KINDS = (
    (rf"({_F}){_PART}", Kind.F),
    (rf"(full-)?({_B}){_PART}", Kind.B),
    (rf"i|dgrad|({_B})-(input|dgrad|d|x)(-grads?)?|input-grads?|grad-input", Kind.I),
    (rf"w|wgrad|({_B})-(weights?|wgrad)(-grads?)?|weight-grads?|grad-weight", Kind.W),
)
"""Words for kinds of actions."""

_TO, _FROM = r"(send|isend)", r"(recv|irecv|receive)"
_MESSAGES = (
    (rf"({_F}|activations?)-{_TO}|{_TO}-({_F}|activations?)", Messages.SEND, Kind.F),
    (rf"({_F}|activations?)-{_FROM}|{_FROM}-({_F}|activations?)", Messages.RECV, Kind.F),
    (rf"({_B}|grads?|gradients?)-{_TO}|{_TO}-({_B}|grads?|gradients?)", Messages.SEND, Kind.B),
    (rf"({_B}|grads?|gradients?)-{_FROM}|{_FROM}-({_B}|grads?|gradients?)", Messages.RECV, Kind.B),
    (rf"(p2p-|pp-)?{_TO}", Messages.SEND, -1),
    (rf"(p2p-|pp-)?{_FROM}", Messages.RECV, -1),
)
"""Words for halves of messages."""

_GRADS = r"(grads?|gradients?|main-grads?)"
_COLLECTIVES = (
    # ByteDance-Seed/StragglerAnalysis; Megatron-LM's timers
    (r"layernorm-grads?-all-?reduce", CommArgs(op="all_reduce", description="tp")),
    (r"embedding-grads?-all-?reduce", CommArgs(op="all_reduce", description="pp")),
    (rf"(dp-)?({_GRADS}-)?reduce-?scatter", CommArgs(op="reduce_scatter", description="dp")),
    (
        rf"(dp-|all-)?{_GRADS}-(all-?reduce|sync)|(dp-)?all-?reduce-{_GRADS}",
        CommArgs(op="all_reduce", description="dp"),
    ),
    (r"(dp-)?(params?|parameters?)-(all-?gather|sync)", CommArgs(op="all_gather", description="dp")),
    *(
        (rf"{purpose}-{words}", CommArgs(op=op, description=purpose))
        for purpose in ("dp", "tp", "cp", "ep")
        for words, op in (
            (r"all-?reduce", "all_reduce"),
            (r"all-?gather", "all_gather"),
            (r"reduce-?scatter", "reduce_scatter"),
            (r"all-?to-?all", "all_to_all"),
        )
    ),
)
"""Words for collectives, and what they are for."""

CALLS = tuple(call for _, call in _COLLECTIVES)
"""The collectives that have a name."""

_OTHERS = (
    (r"optimizer(-.*|\.step)?|opt(-step)?", Role.OPTIMIZER),
    (r"(iteration|step)-(begin|start|end)", Role.STEP),  # OpenSQZ/MegatronApp
)

_ID = r"(?:-?(?:mb|microbatch|micro-batch|batch)?-?(?P<microbatch>\d{1,9}))?"
_SHAPES = (
    r"(?:pp:)?(?P<stage>\d{1,6})(?P<word>[fbiw])(?P<microbatch>\d{1,9})(?:\.(?P<slice>\d{1,6}))?",  # 2F4.1
    r"(?P<word>[a-z][a-z-]*?)-?(?P<stage>\d{1,6})[,-](?P<microbatch>\d{1,9})",  # F_2,4: pytorch/PiPPy
    rf"(?P<word>(?:p2p-)?[a-z][a-z.-]*?){_ID}",
)
"""How words and numbers make a name."""

_FIELDS = {
    "rank": "rank globalrank worldrank",
    "pp": "pp pprank pipelinerank pipelineparallelrank position",
    "dp": "dp dprank dataparallelrank replica",
    "tp": "tp tprank tensorparallelrank",
    "stage": "stage stageid stageindex stageidx ppstage pipelinestage globalstage",
    "chunk": "chunk chunkid modelchunk modelchunkid mc virtualstage virtualrank vpprank vpstage",
    "step": "step stepid stepnumber iteration iter trainstep globalstep",
    "microbatch": "microbatch microbatchid microbatchindex mb mbid mbidx mbindex",
    "slice": "slice sliceid sequenceslice seqslice",
    "peer": "peer peerrank",
    "kind": "kind op optype type action name event phase",
    "start": "start startts begin starttime begintime timestart ts time",
    "end": "end endts endtime stop stoptime finish timeend",
    "duration": "duration dur elapsed length durationtime",
}
_FIELD = {alias: field for field, aliases in _FIELDS.items() for alias in aliases.split()}
_ALIASES = [alias for aliases in _FIELDS.values() for alias in aliases.split()]

LIMITS = {
    **dict.fromkeys(("rank", "dp", "tp", "peer"), MOST_RANKS - 1),
    **dict.fromkeys(("pp", "stage"), 9999),
    **dict.fromkeys(("microbatch", "slice"), 2**31 - 1),
    "chunk": 255,
    "step": 2**62,
}
"""The largest number of each field; beyond it is damage. What labels can say of stages has the same limits."""

NOTHING = frozenset({"", "nan", "none", "null", "na", "n/a", "-1", "-1.0", "<na>"})
"""What stands for an id that is not told, in small letters."""

_PLACE = re.compile(r"(?i)(?<![a-z])(?:(pp|dp|tp|global)[ _-]*)?(?:rank|(stage))[ _:\[-]*(\d{1,6})")


def field_of(name: str) -> str | None:
    """The field that a column or an argument of this name holds: `Micro_Batch` is `microbatch`."""
    return _FIELD.get(_bare(name))


def alias_rank(name: str) -> int:
    """Which of several names of a field is meant, the smallest first."""
    bare = _bare(name)
    return _ALIASES.index(bare) if bare in _ALIASES else len(_ALIASES)


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.lower())


def places(name: str) -> dict[str, int]:
    """Where a process or thread of this name stands: `PP rank 1, TP rank 0` is pp 1, tp 0."""
    return {
        "stage" if stage else {"": "rank", "global": "rank"}.get(axis.lower(), axis.lower()): int(number)
        for axis, stage, number in _PLACE.findall(name)
    }


@lru_cache(maxsize=1 << 16)
def meaning(name: str) -> Meaning:
    """What the name of a slice says."""
    text = re.sub(r"[\s_-]+", "-", name.strip().lower())
    for shape in _SHAPES:
        match = re.fullmatch(shape, text, re.ASCII)
        said = _word(match["word"].rstrip("-")) if match else None
        if match and said and (len(match["word"]) > 1 or not name.strip()[:1].islower()):
            ids = {key: int(text) for key, text in match.groupdict().items() if key != "word" and text}
            return Meaning(said.role, said.kind, said.direction, said.call, **ids)
    return Meaning()


@cache
def _word(word: str) -> Meaning | None:
    for pattern, acted in _KINDS:
        if re.fullmatch(pattern, word):
            return Meaning(Role.ACTION, kind=int(acted))
    for pattern, direction, kind in _MESSAGES:
        if re.fullmatch(pattern, word):
            return Meaning(Role.MESSAGE, kind=int(kind), direction=direction)
    for number, (pattern, _) in enumerate(_COLLECTIVES):
        if re.fullmatch(pattern, word):
            return Meaning(Role.COLLECTIVE, call=number)
    role = next((role for pattern, role in _OTHERS if re.fullmatch(pattern, word)), None)
    return None if role is None else Meaning(role)


def tells_actions(names: Iterable[str]) -> bool:
    """Whether one of the names is that of a forward."""
    return any((said := meaning(name)).role == Role.ACTION and said.kind == Kind.F for name in names)
