"""The what-ifs that are tried where a user names none."""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.forecast.target import Target
from bubblescope.model.changes import Changes, Trouble

__all__ = ["standard"]

_TROUBLES: tuple[Trouble, ...] = ("imbalance", "straggler", "data", "pauses", "jitter", "p2p", "host", "dp")
_MOST_TP = 8
"""GPUs that usually share a node: beyond it tensor parallelism is slow (Megatron-LM, arXiv 2104.04473, section 3.2)."""


def standard(now: Target) -> tuple[Changes, ...]:
    """The usual questions about a run: its troubles one by one, then its schedule and its shape."""
    return (*(Changes(without=frozenset({name})) for name in _TROUBLES), *_designs(now))


def _designs(now: Target) -> Iterator[Changes]:
    shape = now.shape
    yield Changes(overlap=True)
    yield Changes(microbatches=2 * shape.m)
    yield Changes(microbatch=0.5)
    yield Changes(virtual=2 * shape.v)
    names = ("1f1b", "zb-h1", "zb-v") if shape.v == 1 else ("1f1b", "interleaved-1f1b", "zb-h1", "zb-v")
    yield from (Changes(schedule=name) for name in names if now.family is None or name != now.family.name)
    if now.tp is not None and now.shape.p > 1 and 2 * now.tp <= _MOST_TP:
        yield Changes(tp=2 * now.tp)
