"""All rules of advice: a new one is a function `(context) -> Iterator[Proposal]`, and a row here."""

from __future__ import annotations

from typing import Literal, NamedTuple

from bubblescope.advice import structural, uneven, waits, whole
from bubblescope.advice.context import Rule

__all__ = ["RULES", "Kind", "Row"]

Kind = Literal["instead", "trouble", "design"]
"""What a proposal is about: something other than the bubble, what is wrong with the run, or how it is laid out."""


class Row(NamedTuple):
    """A rule, the code of its proposals, and what they are about."""

    code: str
    kind: Kind
    rule: Rule


RULES = (
    Row("not-the-bubble", "instead", whole.not_the_bubble),
    Row("stage-imbalance", "trouble", uneven.stage_imbalance),
    Row("straggler", "trouble", uneven.straggler),
    Row("data-length", "trouble", uneven.data_length),
    Row("garbage-collection", "trouble", uneven.garbage_collection),
    Row("uneven-actions", "trouble", uneven.uneven_actions),
    Row("slow-link", "trouble", waits.slow_link),
    Row("p2p", "trouble", waits.p2p),
    Row("host-bound", "trouble", waits.host_bound),
    Row("more-microbatches", "design", structural.more_microbatches),
    Row("smaller-microbatches", "design", structural.smaller_microbatches),
    Row("virtual-stages", "design", structural.virtual_stages),
    Row("zero-bubble", "design", structural.zero_bubble),
    Row("tensor-parallel", "design", structural.tensor_parallel),
    Row("recompute", "design", waits.recompute),
    Row("exposed-dp", "design", waits.exposed_dp),
    Row("exposed-tp", "design", waits.exposed_tp),
)
"""Of proposals that gain as much, the first here comes first."""
