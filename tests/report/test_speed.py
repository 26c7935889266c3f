"""How fast a run goes and how full its GPUs look, in the words of the summary."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.report import speed
from bubblescope.report.facts import facts


def but(report, **known):
    """The report with other rates."""
    return replace(report, throughput=replace(report.throughput, **known))


def test_all_that_is_known_is_one_line(samples):
    """8 micro-batches, 64 samples and 65536 tokens in 58.7 ms."""
    counts = {"microbatches_per_s": 136.3, "samples_per_s": 1090.4, "tokens_per_s": 1_116_500.0}
    known = but(samples["1f1b"], **counts, mfu=0.4124, hfu=0.5498)
    assert speed.speed(known) == "136 micro-batches/s (1.09k samples/s, 1.12M tokens/s); MFU 41.2%, HFU 55.0%"


def test_what_is_unknown_is_left_out(samples):
    """Neither dashes nor empty brackets."""
    less = but(samples["1f1b"], microbatches_per_s=136.3, samples_per_s=1090.4, tokens_per_s=None, hfu=None)
    assert speed.speed(less) == "136 micro-batches/s (1.09k samples/s); MFU 41.2%"
    least = but(less, samples_per_s=None, mfu=None, model_flops_per_s_per_gpu=None)
    assert speed.speed(least) == "136 micro-batches/s"


def test_without_micro_batches_steps_are_counted(samples):
    """A step of 412 ms; FLOPs stand for themselves where no peak is known."""
    assert speed.speed(samples["no-pipeline"]) == "2.43 steps/s; 130 TFLOP/s a GPU, of an unknown peak"


def test_a_full_looking_gpu_stands_beside_what_was_useful(samples):
    """In one line, under a name that people look for."""
    assert ("GPUs", "busy 99.6% of the step as nvidia-smi counts it; useful 63.9%") in facts(samples["1f1b"])


def test_without_gpus_what_was_useful_stands_alone(samples):
    """Nothing is said of a monitor of GPUs."""
    assert ("Useful", "64.0% of the step, mean over the ranks") in facts(samples["missing-ranks"])


def test_a_gpu_of_which_nothing_useful_is_known_is_busy(samples):
    """The actions of no rank could be told."""
    assert ("GPUs", "busy 99.6% of the step as nvidia-smi counts it") in facts(but(samples["1f1b"], useful=None))


@pytest.mark.parametrize("name", ["1f1b", "no-pipeline"])
def test_without_a_used_step_nothing_is_said(samples, name):
    """Neither line is there."""
    named = {fact for fact, _ in facts(replace(samples[name], throughput=None))}
    assert not named & {"Speed", "GPUs", "Useful"}
