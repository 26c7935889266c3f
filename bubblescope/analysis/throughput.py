"""How much the job gets done a second: micro-batches, samples, tokens and FLOPs, and what contradicts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean

from bubblescope.analysis.peaks import peak_flops
from bubblescope.analysis.study import Study
from bubblescope.analysis.utilisation import Shares
from bubblescope.model.options import Options
from bubblescope.model.throughput import Throughput
from bubblescope.model.trace import Finding

__all__ = ["conflicts", "throughput"]

FORWARD = 1 / 3
"""The forward's part of a model's FLOPs: a backward takes twice as many (PaLM, arXiv 2204.02311, appendix B)."""


def throughput(
    found: Study, options: Options, times: Mapping[int, int], shares: Mapping[int, Shares]
) -> Throughput | None:
    """The rates of the used steps, whose `times` these are; None without one that took any time.

    MFU is model FLOPs a step / (step time x GPUs x peak); HFU is MFU x (model FLOPs + those that run again) / model
    FLOPs (PaLM, arXiv 2204.02311, appendix B). With recomputation of the whole forward that is 4/3 of MFU (GLM-130B,
    arXiv 2210.02414: 43.3 % and 32.5 %).
    """
    if not any(times.values()):
        return None
    step = fmean(times.values())
    batch, count = _microbatches(found), found.job.plan.world_size
    samples = _over(options.batch_size, step)
    tokens = _product(samples, options.sequence_length)
    each = _product(tokens, 1 / count if found.job.plan.sized else None)
    flops = _product(each, options.flops_per_token)
    peak = options.peak_flops or _peak(found)
    mfu = _product(flops, None if peak is None else 1 / peak)
    again = None if options.recompute is None else 1 + FORWARD * options.recompute
    return Throughput(
        step_ns=round(step),
        microbatches_per_s=_over(batch, step),
        samples_per_s=samples,
        tokens_per_s=tokens,
        tokens_per_s_per_gpu=each,
        model_flops_per_s_per_gpu=flops,
        peak_flops=peak,
        mfu=mfu,
        hfu=_product(mfu, again),
        busy=_mean(share.busy for share in shares.values()),
        useful=_mean(share.useful for share in shares.values()),
    )


def conflicts(found: Study, options: Options, rates: Throughput | None) -> tuple[Finding, ...]:
    """What was stated and cannot be: fewer samples than micro-batches, more FLOPs than a GPU can do."""
    messages = (*_too_few(found, options), *(_too_many(rates) if rates is not None else ()))
    return tuple(Finding("metadata-conflict", "warning", message) for message in messages)


def _too_few(found: Study, options: Options) -> Iterator[str]:
    batch = _microbatches(found)
    if batch is not None and options.batch_size is not None and options.batch_size < batch:
        yield (
            f"--batch-size {options.batch_size} contradicts the {batch} micro-batches of a step over all pipelines, "
            "of a sample each at least: it counts the samples of the whole job"
        )


def _too_many(rates: Throughput) -> Iterator[str]:
    name, share = ("HFU", rates.hfu) if rates.hfu is not None else ("MFU", rates.mfu)
    if share is not None and share > 1:
        yield (
            f"an {name} of {share:.0%} cannot be: one of --batch-size, --sequence-length and --flops-per-token is too "
            "large, or the peak too small (it is that of bf16, unless --peak-flops states another)"
        )


def _microbatches(found: Study) -> int | None:
    """Micro-batches of a step over all pipelines; None where nothing tells how many either are.

    Pipelines that may be replicas or tensor-parallel partners may work on as many micro-batches each, or on the same.
    """
    plan = found.job.plan
    in_pipelines = sum(len(ranks) for pipeline in plan.pipelines for ranks in pipeline)
    known = len(plan.pipelines) == 1 and in_pipelines == plan.world_size
    pipelines = plan.dp or (1 if known else None)
    return None if found.microbatches is None or pipelines is None or not plan.sized else found.microbatches * pipelines


def _peak(found: Study) -> float | None:
    """The peak of the recorded GPUs, where all are known and alike."""
    devices = {t.identity.devices[0].name if t.identity.devices else "" for t in found.job.timelines.values()}
    peaks = {peak_flops(device) for device in devices}
    return peaks.pop() if len(peaks) == 1 else None


def _over(count: float | None, ns: float) -> float | None:
    return None if count is None else count / (ns * 1e-9)


def _product(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one * other


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
