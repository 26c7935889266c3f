"""How fast the run goes, and how full its GPUs only look: two facts of the summary."""

from __future__ import annotations

from bubblescope.model.report import Report
from bubblescope.model.throughput import Throughput
from bubblescope.report import wording as words

__all__ = ["occupied", "speed"]


def speed(report: Report) -> str:
    """`2.41 micro-batches/s (19.3 samples/s, 39.5k tokens/s); MFU 41.2%, HFU 54.9%`, as far as it is known."""
    rates = report.throughput
    if rates is None:
        return ""
    more = ", ".join(
        f"{words.short(value)} {noun}"
        for value, noun in ((rates.samples_per_s, "samples/s"), (rates.tokens_per_s, "tokens/s"))
        if value is not None
    )
    done = f"{_counted(rates)} ({more})" if more else _counted(rates)
    return "; ".join(filter(None, (done, _flops(rates))))


def _counted(rates: Throughput) -> str:
    if rates.microbatches_per_s is None:
        return f"{words.short(1e9 / rates.step_ns)} steps/s"
    return f"{words.short(rates.microbatches_per_s)} micro-batches/s"


def _flops(rates: Throughput) -> str:
    """Model FLOPs as shares of the peak; where that is unknown, as they are."""
    if rates.mfu is None:
        flops = rates.model_flops_per_s_per_gpu
        return "" if flops is None else f"{words.short(flops / 1e12)} TFLOP/s a GPU, of an unknown peak"
    shares = ((rates.mfu, "MFU"), (rates.hfu, "HFU"))
    return ", ".join(f"{name} {words.percent(share)}" for share, name in shares if share is not None)


def occupied(report: Report) -> tuple[str, str]:
    """What a monitor would show of the GPUs beside what was useful; of runs without GPUs the latter alone."""
    rates = report.throughput
    if rates is None or rates.useful is None:
        return "GPUs", _busy(rates) if rates is not None else ""
    if rates.busy is None:
        return "Useful", f"{words.percent(rates.useful)} of the step, mean over the ranks"
    return "GPUs", f"{_busy(rates)}; useful {words.percent(rates.useful)}"


def _busy(rates: Throughput) -> str:
    return "" if rates.busy is None else f"busy {words.percent(rates.busy)} of the step as nvidia-smi counts it"
