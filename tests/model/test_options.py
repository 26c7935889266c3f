"""What users type about a job: ranges of steps, labels of their own, degrees."""

from __future__ import annotations

import re

import pytest

from bubblescope.errors import UsageError
from bubblescope.model.options import LabelRule, Options, StepRange


@pytest.mark.parametrize(
    ("text", "first", "last", "inside", "outside"),
    [
        ("3", 3, 3, [3], [2, 4]),
        ("2:5", 2, 5, [2, 5], [1, 6]),
        ("2:", 2, None, [2, 10**9], [1]),
        (":5", None, 5, [0, -1, 5], [6]),
        ("4:4", 4, 4, [4], [3, 5]),
        (" 0 ", 0, 0, [0], [-1, 1]),
        ("007:12", 7, 12, [7], [13]),
    ],
)
def test_steps(text, first, last, inside, outside):
    """A step or a range is read with both ends included; a missing end is open."""
    steps = StepRange.parse(text)
    assert (steps.first, steps.last) == (first, last)
    assert all(step in steps for step in inside)
    assert not any(step in steps for step in outside)


def test_no_range_is_every_step():
    """The default holds every step."""
    assert all(step in StepRange() for step in (-5, 0, 10**12))


@pytest.mark.parametrize("text", ["", " ", ":", "a", "-1", "1-3", "1:2:3", "1.5", "2..5", "1,2"])
def test_steps_that_are_none(text):
    """Anything else is refused with what was expected and what was found."""
    with pytest.raises(UsageError, match=re.escape(f"--steps expects a step or a range like 2:5, found {text!r}")):
        StepRange.parse(text)


def test_steps_backwards():
    """A range that ends before it begins is refused as such."""
    with pytest.raises(UsageError, match="--steps '5:2' ends before it begins"):
        StepRange.parse("5:2")


@pytest.mark.parametrize(
    ("text", "kind", "pattern"),
    [
        ("F=fwd", "F", "fwd"),
        ("b=bwd_(\\d+)", "B", "bwd_(\\d+)"),
        (" w =a=b", "W", "a=b"),
        ("I=(?P<stage>\\d+)/(?P<microbatch>\\d+)", "I", "(?P<stage>\\d+)/(?P<microbatch>\\d+)"),
    ],
)
def test_labels(text, kind, pattern):
    """A kind in any case, then a pattern that is kept as typed, further equals signs included."""
    assert LabelRule.parse(text) == LabelRule(kind, pattern)


@pytest.mark.parametrize("text", ["", "F", "fwd", "X=fwd", "=fwd", "FB=fwd", "forward=x"])
def test_labels_without_a_kind(text):
    """A label without one of the four kinds is refused with an example that works."""
    message = re.escape(f"--label expects KIND=REGEX with KIND one of F, B, I, W, found {text!r}")
    with pytest.raises(UsageError, match=message) as caught:
        LabelRule.parse(text)
    example = re.search("'(.*)'", caught.value.hint)[1]
    assert re.fullmatch(LabelRule.parse(example).pattern, "fwd_s3_mb12").groupdict() == {
        "stage": "3",
        "microbatch": "12",
    }


def test_labels_that_do_not_compile():
    """A pattern that is no regular expression is refused with Python's reason."""
    with pytest.raises(UsageError, match=re.escape("--label 'F=(': the pattern does not compile: missing )")):
        LabelRule.parse("F=(")


@pytest.mark.parametrize("name", ["pp", "tp", "dp", "virtual", "microbatches", "jobs"])
@pytest.mark.parametrize("value", [0, -1])
def test_degrees_below_one(name, value):
    """Every count must be at least 1, and the message names the option as it is typed."""
    with pytest.raises(UsageError, match=f"^--{name} must be at least 1, found {value}$"):
        Options(**{name: value})
    assert getattr(Options(**{name: 1}), name) == 1


def test_default_options_ask_for_nothing():
    """Without options the traces speak for themselves."""
    options = Options()
    assert (options.pp, options.schedule, options.ranks, options.labels) == (None, None, None, ())
    assert 0 in options.steps


@pytest.mark.parametrize("name", ["pp", "tp", "dp", "virtual", "microbatches"])
def test_degrees_have_an_upper_bound(name):
    """A slip of the finger must not cost hours or the memory of the machine."""
    assert getattr(Options(**{name: 65_536}), name) == 65_536
    with pytest.raises(UsageError, match=f"--{name} must be at most 65536, found 65537"):
        Options(**{name: 65_537})


@pytest.mark.parametrize("layers", [(), (8, 0), (8, -1), (8, 65_537)])
def test_layers_that_no_stage_has(layers):
    """Each stage has at least one layer, and fewer than a slip of the finger gives it."""
    with pytest.raises(UsageError, match="--layers says how many layers each stage has, each from 1 to 65536"):
        Options(layers=layers)


def test_degrees_have_an_upper_bound_together():
    """Each of them may be, and their product still be no job."""
    assert Options(pp=100, tp=100, dp=100).tp == 100
    with pytest.raises(UsageError, match=r"must be at most 1000000 ranks, found 281474976710656"):
        Options(pp=65_536, tp=65_536, dp=65_536)


@pytest.mark.parametrize("text", ["9" * 19, "9" * 5000, "1:" + "9" * 5000, "²", "٣"])
def test_steps_that_no_trace_can_have(text):
    """Numbers beyond 64 bits, and digits that are none of ASCII."""
    with pytest.raises(UsageError, match="--steps expects"):
        StepRange.parse(text)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("batch_size", 1, 0),
        ("sequence_length", 4096, -1),
        ("flops_per_token", 4.2e11, 0.0),
        ("flops_per_token", 1.0, 1e30),
        ("flops_per_token", 1.0, float("nan")),
        ("peak_flops", 989e12, 989.0),
        ("peak_flops", 1e12, float("inf")),
        ("recompute", 0, -0.1),
        ("recompute", 1.0, 1.01),
    ],
)
def test_what_no_run_can_be_of(name, good, bad):
    """Sizes of nothing, teraflops taken for FLOPs, numbers that are none; the hint has an example of a good one."""
    assert getattr(Options(**{name: good}), name) == good
    with pytest.raises(UsageError, match=f"^--{name.replace('_', '-')} must be from .* to .*, found") as caught:
        Options(**{name: bad})
    assert caught.value.hint.startswith("for example ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"sequence_length": 1024}, "--sequence-length tells nothing without --batch-size"),
        ({"flops_per_token": 6e9}, "--flops-per-token tells nothing without --batch-size and --sequence-length"),
        (
            {"batch_size": 8, "sequence_length": 1024, "recompute": 1},
            "--recompute tells nothing without --flops-per-token",
        ),
    ],
)
def test_numbers_that_tell_nothing_are_pointed_out(given, said):
    """Which number is missing."""
    with pytest.raises(UsageError, match=f"^{said}$"):
        Options(**given).check_use()


def test_numbers_that_tell_something_are_welcome():
    """A batch alone gives samples a second; a peak may stand in a file for all runs."""
    Options().check_use()
    Options(batch_size=8, peak_flops=1e15).check_use()
    Options(batch_size=8, sequence_length=1024, flops_per_token=6e9, recompute=1).check_use()
