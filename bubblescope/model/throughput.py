"""How much a run gets done, and how busy its GPUs look while it does: a part of the report."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Throughput"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Rates over the whole job, from the mean step time; each is None where something that it needs is not known.

    Attributes:
        step_ns: mean step time over the used steps.
        microbatches_per_s: of all pipelines together.
        samples_per_s: of the whole job; needs the batch size.
        tokens_per_s: needs the sequence length, too.
        tokens_per_s_per_gpu: over all ranks of the job, recorded or not.
        model_flops_per_s_per_gpu: FLOPs of forward and backward, nothing counted that runs again.
        peak_flops: of one GPU, FLOPs a second.
        mfu: the model's FLOPs as a share of the peak (PaLM, arXiv 2204.02311, appendix B).
        hfu: the same with what runs again in the backward.
        busy: share of the step in which any kernel ran, one that waits for a peer included; mean over the ranks.
        useful: share of the step in which a rank did useful work; mean over the ranks.
    """

    step_ns: int
    microbatches_per_s: float | None = None
    samples_per_s: float | None = None
    tokens_per_s: float | None = None
    tokens_per_s_per_gpu: float | None = None
    model_flops_per_s_per_gpu: float | None = None
    peak_flops: float | None = None
    mfu: float | None = None
    hfu: float | None = None
    busy: float | None = None
    useful: float | None = None
