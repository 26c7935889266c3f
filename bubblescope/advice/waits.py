"""Waiting for transfers, for hosts, and for collectives; work that is done twice."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bubblescope.advice.context import Basis, Context, Gain, gained, proposal, sentences
from bubblescope.advice.uneven import NOTED, paused
from bubblescope.advice.whole import IN_STAGE, MUCH, REDUCTION, spent
from bubblescope.model import writing as words
from bubblescope.model.changes import Changes, Trouble
from bubblescope.model.groups import PEER_COPY
from bubblescope.model.report import Proposal

__all__ = ["exposed_dp", "exposed_tp", "host_bound", "p2p", "recompute", "slow_link"]

_RECOMPUTED = 2.8, 3.6
"""A backward over its forward between which it seems to hold the forward as well.

In FLOPs that is 2 without and 3 with it, and measured backwards of attention take up to half a forward more.
"""

_MOST = 3
_EARLY = "eager-1f1b"
_NOTHING = 0.0005
"""A gain below this share of a step shows as none."""

_LAUNCH_ON_GPU = (
    "Use CUDA graphs or torch.compile, fewer and larger kernels, larger micro-batches, more loader workers, no "
    "call that waits for the GPU (.item, print)."
)
_LAUNCH = "Use torch.compile, fewer and larger kernels or operators, larger micro-batches, more loader workers."


def p2p(context: Context) -> Iterator[Proposal]:
    """Transfers between stages: posted ahead where that saves half of what free ones would, else as if they were free.

    Free transfers are what no link has; the title says what the gain is of.
    """
    free = context.without("p2p") if context.points("p2p") >= NOTED else None
    if free is None:
        return
    ahead = context.ask(Changes(overlap=True))
    if ahead is not None and gained(ahead).share >= free.share / 2:
        title, gain = "Post the transfers between stages ahead, beside compute", gained(ahead)
        others = {"free transfers": free, **_early(context)}
        remedy = f"Post receives early and let no send hold its rank{_megatron(context)}."
    else:
        title, gain = "Make transfers between stages faster or hide them; the gain is that of free ones", free
        others = {} if ahead is None else {"transfers that are posted ahead": gained(ahead)}
        others |= _early(context)
        remedy = "Beyond that it takes faster links, smaller messages, or neighbouring stages on one node."
    yield proposal(
        "p2p",
        title,
        sentences(
            f"Ranks wait while bytes move, which costs {context.costs('p2p')}{_saved(context, others)}.",
            remedy,
        ),
        gain,
        Basis(
            formula="1f1b with sends that hold their rank waits 2(m+p)-5 transfers a step, posted ahead 2(p-1)",
            limits="No link is free. Forwards run ahead keep more activations; others use the links too.",
            source="MegaScale, arXiv 2402.15627; Megatron-LM, arXiv 2104.04473, sections 2.2 and 4.1",
        ),
    )


def _saved(context: Context, others: dict[str, Gain]) -> str:
    """`; free transfers would save 3.1% of a step, more forwards ahead (eager-1f1b) 1.2%`."""
    if not others or not context.sure:
        return ""
    (name, gain), *rest = others.items()
    shares = [f"{other} {words.percent(max(0.0, each.share))}" for other, each in rest]
    return ", ".join([f"; {name} would save {context.saves(gain)}", *shares])


def _early(context: Context) -> dict[str, Gain]:
    """The schedule that hides transfers of 1f1b behind more forwards, and what it saves."""
    usual = context.run is not None and context.run.schedule == "1f1b"
    told = context.ask(Changes(schedule=_EARLY)) if usual else None
    return {} if told is None or gained(told).share < _NOTHING else {f"more forwards ahead ({_EARLY})": gained(told)}


def _megatron(context: Context) -> str:
    """What Megatron-LM calls it, which has it for interleaved stages only."""
    interleaved = context.run is not None and context.run.schedule == "interleaved-1f1b"
    return " (overlap_p2p_comm in Megatron-LM)" if interleaved else ""


def slow_link(context: Context) -> Iterator[Proposal]:
    """Links that are slow against their peers."""
    slow = [link for link in context.report.links if link.slow]
    gain = context.without("p2p") if slow else None
    if not slow or gain is None:
        return
    named = [
        f"{link.source} to {link.target}" + ("" if link.ratio is None else f" ({words.ratio(link.ratio)} times)")
        for link in slow[:_MOST]
    ]
    more = f" and {len(slow) - _MOST} more" if len(slow) > _MOST else ""
    saved = context.saves(gain)
    yield proposal(
        "slow-link",
        f"Look at the link from rank {slow[0].source} to rank {slow[0].target}: it is slower than its peers",
        sentences(
            f"Messages take longer than elsewhere from rank {', '.join(named)}{more}"
            + (f"; if no transfer took any time, {saved} would go." if saved else "."),
            "See whether these ranks are on one node, which network card they use and what else does; lay stages so "
            "that neighbours share a node.",
        ),
        gain,
        Basis(
            formula="the replay with free transfers on all links",
            limits="The gain is that of all links together; a link that crosses nodes stays slower than others.",
            source="MegaScale, arXiv 2402.15627; Megatron-LM, arXiv 2104.04473, section 4.1",
        ),
    )


def _copies(context: Context) -> bool:
    """Whether stages hand over by copies, whose time nothing tells from that of hosts."""
    return any((each.group, each.op) == ("pp", PEER_COPY) for each in context.report.communication)


def host_bound(context: Context) -> Iterator[Proposal]:
    """Hosts that launch late, beside single pauses."""
    beside: frozenset[Trouble] = frozenset(["pauses"] if paused(context) else [])
    gain = context.without("host", beside) if context.points("host") >= NOTED else None
    if gain is None or _copies(context):
        return
    ranks = context.report.ranks
    idle = max(ranks, key=lambda rank: rank.host_ns / max(rank.window_ns, 1))
    unseen = "" if any((c.group, c.op) == ("pp", "send_recv") for c in context.report.communication) else (
        " No message was recorded, so transfers are in it too."
    )  # fmt: skip
    yield proposal(
        "host-bound",
        f"Launch work earlier: {'GPUs' if context.on_gpu else 'ranks'} wait for their hosts",
        sentences(
            f"Inputs are there and nothing is launched: that costs {context.costs('host')}, and most on rank "
            f"{idle.rank}, {words.percent(idle.host_ns / max(idle.window_ns, 1))} of its window.{unseen}",
            _LAUNCH_ON_GPU if context.on_gpu else _LAUNCH,
        ),
        gain,
        Basis(
            formula="T6 - T5 of the causes, without single pauses",
            limits="A profiler slows hosts down itself: compare the length of a step with one that is not recorded.",
            source="Holistic Trace Analysis, idle time breakdown; ByteDance, arXiv 2505.05713, section 5.4",
        ),
    )


def recompute(context: Context) -> Iterator[Proposal]:
    """Backwards that are so long that they seem to run their forwards again."""
    rows = [(s.forward_ns, s.backward_ns, s.weight_ns or 0) for s in context.report.stages]
    ratios = [(b + w) / f for f, b, w in rows if f and b is not None]
    least, most = _RECOMPUTED
    if not ratios or not least <= median(ratios) <= most:
        return
    told = context.ask(Changes(recompute="off"))
    if told is None:
        return
    yield proposal(
        "recompute",
        "Recompute less, where memory allows",
        sentences(
            f"Backwards take {words.ratio(median(ratios))} times their forwards, where 2 is usual: they seem to run "
            "these again.",
            "Recompute single operations (attention) instead of layers, and none on late stages: of 1f1b rank r "
            "keeps p - r micro-batches only.",
        ),
        gained(told),
        Basis(
            formula="B - F in place of B where B is 2.8 to 3.6 F",
            limits="Memory: activations that are kept need it. That backwards recompute is only concluded.",
            source="Korthikanti et al., arXiv 2205.05198; AdaPipe, ASPLOS 2024",
        ),
    )


def exposed_dp(context: Context) -> Iterator[Proposal]:
    """Gradients that are reduced while nothing else runs, from `MUCH` of a step on."""
    ranks = context.report.ranks
    parts = spent(context.report)
    if parts is None or not ranks:
        return
    dp = parts.of(REDUCTION)
    told = context.ask(Changes(without=frozenset({"dp"})))
    if dp < MUCH * parts.step or (told is None and context.report.schedule.name != "none"):
        return
    yield proposal(
        "exposed-dp",
        "Hide the reduction of gradients behind backwards",
        sentences(
            f"Data-parallel communication takes {words.duration(dp)} of a step in which nothing else runs, "
            f"{words.percent(dp / parts.step)}.",
            "Overlap it with backwards (overlap_grad_reduce) and forwards (overlap_param_gather), in buckets a chunk "
            "each: then only the last chunk's stays exposed.",
        ),
        None if told is None else gained(told),
        Basis(
            formula="the replay without exposed data-parallel communication",
            limits="It then shares links and GPUs with the pipeline. The last bucket always stays.",
            source="NVIDIA Megatron-Bridge, guide on communication overlap; Breadth-First, arXiv 2211.05953",
        ),
    )


def exposed_tp(context: Context) -> Iterator[Proposal]:
    """Collectives of the stage itself while nothing else runs, from `MUCH` of a step on; no what-if prices it."""
    parts = spent(context.report)
    if parts is None:
        return
    exposed = parts.of(IN_STAGE)
    if exposed < MUCH * parts.step:
        return
    useful = exposed + parts.compute
    yield proposal(
        "exposed-tp",
        f"Hide the collectives inside stages behind compute: they take {words.percent(exposed / parts.step)} of a step",
        sentences(
            f"Tensor-, context- or expert-parallel communication runs for {words.duration(exposed)} of a step in which "
            f"nothing else does, {words.percent(exposed / useful)} of what counts as useful.",
            "Overlap it with matrix products (tp_comm_overlap), use sequence parallelism, fewer tensor-parallel ranks, "
            "or for experts overlap their all-to-all with another micro-batch.",
        ),
        None,
        Basis(
            formula="exposed in-stage communication over the step, from the partition of ranks",
            limits="No what-if replays it, so no gain is claimed: what can be hidden depends on the layers.",
            source="Korthikanti et al., arXiv 2205.05198; MegaScale, arXiv 2402.15627",
        ),
    )
