"""Findings about how a run is laid out, explained."""

from __future__ import annotations

from bubblescope.report.entries import Entry, Example

__all__ = ["OF_DESIGN"]

_SHOWN = "What would help; findings in JSON"
_SECTION = "which-findings-there-are"
_SC21 = "Megatron-LM, arXiv 2104.04473, section 2.2"

OF_DESIGN = (
    Entry(
        name="more-microbatches",
        summary="more micro-batches a step fill the pipeline better",
        text="A pipeline fills and drains once a step, however many micro-batches run in between.",
        hidden=("findings.more-microbatches",),
        formula="m >= (p-1)(1-share) / (v share); m = 4p leaves (p-1) / (4pv + p - 1)",
        gain="bubblescope whatif m=2m, for the same data",
        pitfalls=(
            "The global batch grows. m = 4p is often called negligible, and leaves 18 % at p = 8. GLM-130B ran p = 8 "
            "with m = 176. Theory has stages alike and transfers free; the gain is that of the replay."
        ),
        example=Example(
            setting="p = 8, v = 1: how many for 5 %, what m = 4p leaves, what m = 176 leaves",
            rows=(
                ("m for 5 %", "7 * 0.95 / 0.05", "133"),
                ("m = 32", "7 / (4 * 8 + 7)", "17.9%"),
                ("m = 176", "7 / (176 + 7)", "3.8%"),
            ),
        ),
        where=_SHOWN,
        see=("structural", "smaller-microbatches", "microbatches", "findings.gain"),
        section=_SECTION,
        source=f"GPipe, arXiv 1811.06965; {_SC21}; GLM-130B, arXiv 2210.02414, B.4",
    ),
    Entry(
        name="smaller-microbatches",
        summary="the same batch in twice as many micro-batches of half the size",
        text="The pipeline fills and drains with less at a time, and the batch stays what it is.",
        hidden=("findings.smaller-microbatches",),
        formula="idle (p-1)(F+B)/v, F and B halved",
        gain="bubblescope whatif microbatch=0.5: half the work and transfer, the host's gaps as they are",
        pitfalls="Small kernels use the GPU less well, which no replay knows. One sample cannot be cut.",
        example=Example(
            setting="1f1b, p = 4: m = 8 of 30 ms, and 16 of 15 ms, for one batch",
            rows=(("m = 8", "(8 + 3) * 30", "330 ms"), ("m = 16", "(16 + 3) * 15", "285 ms")),
        ),
        where=_SHOWN,
        see=("more-microbatches", "structural", "findings.gain"),
        section=_SECTION,
        source=f"GPipe, arXiv 1811.06965; {_SC21}",
    ),
    Entry(
        name="virtual-stages",
        summary="each rank holds more and smaller stages",
        text="The pipeline fills and drains with pieces of a rank's layers, and stages go round the ranks.",
        hidden=("findings.virtual-stages",),
        formula="idle (p-1)(F+B)/v",
        gain="bubblescope whatif schedule=interleaved-1f1b,v=2v: stages cut evenly",
        pitfalls=(
            "The gain has in it that smaller stages spread a heavy one; the finding says how much is left without. "
            "Layers divide by p v or are laid out by hand; v times the messages; more activations; Megatron-LM wants m "
            "in groups of p or more. One public report at p = 2 saw 2.3 % where a bubble of 20 % should become 11 %."
        ),
        example=Example(
            setting="p = 4, m = 8",
            rows=(("v = 1", "3 / (8 + 3)", "27.3%"), ("v = 2", "3 / (2 * 8 + 3)", "15.8%")),
        ),
        where=_SHOWN,
        see=("interleaved-1f1b", "looped-bfs", "structural", "findings.gain"),
        section=_SECTION,
        source=_SC21,
    ),
    Entry(
        name="zero-bubble",
        summary="backwards split into input and weight gradients, the latter in the gaps",
        text="Neighbours wait for input gradients only. Weight gradients wait for nobody and fill the gaps.",
        hidden=("findings.zero-bubble",),
        formula="idle zb-h1 (p-1)(F+I-W); zb-v (p-1) max(I/2, I-W)",
        gain="the best of bubblescope whatif schedule=zb-h1 (interleaved-zb for several chunks) and schedule=zb-v",
        pitfalls=(
            "Only the span of zb-h2 and zb-v is free of idle time, and where F = I = W: with a barrier between steps "
            "(global gradient norm, loss scale) the window keeps (p-1)F or (p-1)I/2. The gain has the barrier in it; "
            "an optimizer with post-validation does without, and its authors lost 7 to 10 % of their throughput with "
            "it. A backward that the run does not split counts as half I, half W. zb-v takes two chunks a rank, which "
            "also spread a heavy stage: the finding says how much is left without that."
        ),
        example=Example(
            setting="p = 4, m = 8, F = I = W = 10 ms: idle time",
            rows=(
                ("1f1b", "3 * 30", "90 ms"),
                ("zb-h1", "3 * (10 + 10 - 10)", "30 ms"),
                ("zb-v", "3 * 10 / 2", "15 ms"),
            ),
        ),
        where=_SHOWN,
        see=("zb-h1", "zb-v", "interleaved-zb", "span", "findings.gain"),
        section=_SECTION,
        source="Zero Bubble, arXiv 2401.10241, sections 2 and 6, Table 2, Table 10",
    ),
    Entry(
        name="tensor-parallel",
        summary="a shorter pipeline with more tensor-parallel ranks a stage",
        text="The same GPUs hold half as many stages, each of them on twice as many ranks.",
        hidden=("findings.tensor-parallel",),
        formula="(n/t - 1) / (m + n/t - 1) with n = p t GPUs a pipeline",
        gain="bubblescope whatif tp=2t: work divides evenly, collectives by what the run shows of them",
        pitfalls=(
            "Within a node only, of 8 GPUs mostly. Where the run has t = 1 its collectives are taken to cost nothing. "
            "Fewer stages also spread a heavy one: the finding says how much is left without that."
        ),
        example=Example(
            setting="n = 16 GPUs, m = 16",
            rows=(("t = 2", "(8 - 1) / (16 + 8 - 1)", "30.4%"), ("t = 4", "(4 - 1) / (16 + 4 - 1)", "15.8%")),
        ),
        where=_SHOWN,
        see=("exposed-tp", "structural", "findings.gain"),
        section=_SECTION,
        source="GLM-130B, arXiv 2210.02414, appendix B.4 (Eq. 6); arXiv 2104.04473, section 3",
    ),
    Entry(
        name="findings.recompute",
        summary="backwards are so long that they seem to run their forwards again",
        text="The finding `recompute`: a backward takes twice its forward, three times with full recomputation.",
        formula="the median stage's backward over its forward, from 2.8 to 3.6",
        gain="bubblescope whatif recompute=off: every backward without a forward",
        pitfalls="Memory must hold what is not recomputed. That backwards recompute is concluded from their length.",
        remedy="Recompute attention alone; nothing on late stages, of which 1f1b keeps p - r micro-batches.",
        example=Example(
            setting="F 10 ms and B 30 ms",
            rows=(("gain", "1 - (10 + 20) / (10 + 30)", "25%"),),
        ),
        where=_SHOWN,
        see=("forward", "backward", "findings.gain"),
        section=_SECTION,
        source="Korthikanti et al., arXiv 2205.05198; AdaPipe, ASPLOS 2024",
    ),
    Entry(
        name="exposed-dp",
        summary="gradients are reduced while nothing else runs",
        text="Data-parallel communication outside the pipeline takes 5 % of the step or more.",
        hidden=("findings.exposed-dp",),
        formula="exposed data-parallel communication over the step, on the ranks of the slowest pipeline",
        gain="bubblescope whatif without=dp: all of it hidden",
        pitfalls="It then shares links and GPUs with the pipeline, and the last bucket stays exposed.",
        remedy="overlap_grad_reduce and overlap_param_gather, in buckets of a chunk each.",
        example=Example(
            setting="40 ms of exposed gradients in a step of 400 ms",
            rows=(("gain", "40 / 400", "10%"),),
        ),
        where=_SHOWN,
        see=("outside", "ranks.dp", "not-the-bubble", "findings.gain"),
        section=_SECTION,
        source="NVIDIA Megatron-Bridge, guide on communication overlap; arXiv 2211.05953",
    ),
    Entry(
        name="exposed-tp",
        summary="collectives inside stages run while nothing else does",
        text="Tensor-, context- or expert-parallel communication that no compute hides takes 5 % of the step or more.",
        hidden=("findings.exposed-tp",),
        formula="exposed in-stage communication over the step, on the ranks of the slowest pipeline",
        gain="unknown: no what-if replays it; the title has what share of a step it takes",
        pitfalls="It counts as useful time in the bubble: a run without it has a smaller step, not a smaller bubble.",
        remedy="tp_comm_overlap, sequence parallelism, fewer ranks a stage; overlap of the experts' all-to-all.",
        example=Example(
            setting="66 ms of it in a step of 400 ms",
            rows=(("share", "66 / 400", "16.5%"),),
        ),
        where=_SHOWN,
        see=("in_stage_comm", "tensor-parallel", "not-the-bubble", "findings.gain"),
        section=_SECTION,
        source="Korthikanti et al., arXiv 2205.05198; MegaScale, arXiv 2402.15627",
    ),
)
