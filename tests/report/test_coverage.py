"""What the numbers rest on and which of them stand, in a line each; nothing where all is well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.model.quality import Coverage, NumberVerdict, Quality, RankCoverage
from bubblescope.report.coverage import covered, trust


def of_rank(rank, left_out=None, **shares):
    """What the numbers rest on of a rank."""
    shown = {"launched": 1.0, "explained": 1.0, "paired": 1.0, **shares}
    return RankCoverage(rank=rank, left_out=left_out, kernels=10, inside_ns=10, messages=10, **shown)


def quality(*ranks, numbers=(), **shares):
    """What a report says of itself."""
    shown = {"launched": 1.0, "explained": 1.0, "paired": 1.0, **shares}
    rests = Coverage(kernels=20, inside_ns=20, messages=20, ranks=ranks, **shown)
    return Quality(verdict="ok", findings=(), coverage=rests, numbers=numbers)


def number(name, verdict="ok", *reasons):
    """The verdict on a number."""
    return NumberVerdict(number=name, verdict=verdict, reasons=reasons)


def test_what_is_whole_is_not_mentioned():
    """Nor is a share that would be shown as 100.0%, or that is of nothing."""
    assert covered(quality(of_rank(0))) == ""
    assert covered(quality(of_rank(0), launched=0.9996, explained=None)) == ""
    assert covered(replace(quality(), coverage=None)) == ""


def test_a_share_names_the_rank_that_has_least():
    """Unless it has what the job has."""
    ranks = of_rank(0, launched=None), of_rank(1, launched=0.5), of_rank(2, launched=0.9)
    assert covered(quality(*ranks, launched=0.7)) == "70.0% of the kernels have a launch (rank 1: 50.0%)"
    assert covered(quality(of_rank(3, paired=0.7), paired=0.7)) == "70.0% of the sends and receives are paired"


def test_ranks_without_a_part_are_named_by_why():
    """Several of one kind together."""
    ranks = of_rank(0), of_rank(1, "no-actions"), of_rank(2, "no-actions"), of_rank(5, "no-pipeline")
    assert covered(quality(*ranks)) == "ranks 1-2 without actions; rank 5 in no pipeline"


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((), ""),
        ((number("bubble"),), ""),
        ((number("bubble", "degraded", "a", "b"),), "bubble degraded (a, b)"),
        (
            (number("bubble", "degraded", "a"), number("causes", "degraded", "a"), number("ranks", "unusable", "a")),
            "bubble and causes degraded (a); ranks unusable (a)",
        ),
    ],
)
def test_numbers_that_do_not_stand_are_named(numbers, text):
    """Those of one verdict and one reason together."""
    assert trust(quality(numbers=numbers)) == text
