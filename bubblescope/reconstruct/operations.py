"""The operations of communication, whatever torch, NCCL and gloo call them, and who names them."""

from __future__ import annotations

import re

from bubblescope.model.groups import PEER_COPY
from bubblescope.model.kernel_names import PEER_COPIES

__all__ = ["HOST_CALL", "SENDS_AND_RECEIVES", "named_by_call", "named_by_kernel", "normal_op"]

SENDS_AND_RECEIVES = frozenset({"send", "recv", "send_recv"})

# Spellings of one operation over torch, NCCL and gloo; what is not listed keeps its own name.
_OPS: tuple[tuple[str, str], ...] = (
    (r"recv_?(any_?source_?)?", "recv"),
    (r"i?send", "send"),
    (r"send_?recv", "send_recv"),
    (r"_?all_?reduce(_coalesced)?_?", "all_reduce"),
    (r"_?all_?gather(_base|v|_into_tensor)?(_coalesced)?_?", "all_gather"),
    (r"_?reduce_?scatter(_base|v|_tensor)?(_coalesced)?_?", "reduce_scatter"),
    (r"_?all_?to_?all(_base|v|_single)?_?", "all_to_all"),
    (r"_?broadcast(_oop)?_?", "broadcast"),
    (r"_?reduce(_oop)?_?", "reduce"),
)

# Ranges of torch, and those that NCCL itself names by its functions (NVIDIA/nccl, src/collectives.cc).
HOST_CALL = (
    r"nccl:(\w+)|c10d::(\w+)|_c10d_functional::(\w+)|gloo:(\w+)"
    r"|nccl(AllReduce|AllGather|ReduceScatter|Broadcast|Reduce|AlltoAll|Gather|Scatter|Send|Recv)$"
)
_KERNEL = r"(?i)(?:void )?(?:nccl|rccl)(?:Symk?)?(?:Dev)?(?:Kernel)?_?([a-z]+?)(?:Ring|Tree|CollNet|Kernel|_|\(|<|$)"

# What does one thing under a name of its own: vLLM's all-reduce, DeepEP's dispatch and combine, copies between GPUs.
_OWN_NAMES = (
    (PEER_COPIES, PEER_COPY),
    (r"(?i)(?:void )?(?:\w+::)*cross_device_reduce", "all_reduce"),
    (r"(?i)(?:void )?.*(?:deep_ep|\bep::(?:inter|intra)node)", "all_to_all"),
)

_NO_OPERATION = frozenset({"", "generic", "coalesced", "kernel"})
"""Words in the place of an operation that name none."""


def normal_op(name: str) -> str:
    """One name for all spellings of an operation: `allreduce_` and `_all_reduce` are `all_reduce`."""
    lower = name.lower()
    return next((op for pattern, op in _OPS if re.fullmatch(pattern, lower)), lower)


def named_by_call(name: str) -> str:
    """The operation that a host call names; empty where it names none, as `nccl:coalesced`."""
    return _word(re.match(HOST_CALL, name))


def named_by_kernel(name: str) -> str:
    """The operation that a kernel's name tells; empty where it tells none, as of RCCL, which calls them all Generic."""
    own = next((op for pattern, op in _OWN_NAMES if re.match(pattern, name)), "")
    return own or _word(re.match(_KERNEL, name))


def _word(match: re.Match[str] | None) -> str:
    word = next((group for group in match.groups() if group), "") if match else ""
    return "" if word.lower() in _NO_OPERATION else normal_op(word)
