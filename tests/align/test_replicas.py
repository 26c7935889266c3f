"""Groups of replicas that nobody describes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.align.replicas import replicated
from bubblescope.model.job import Plan
from bubblescope.model.trace import CommArgs
from tests.building import timeline

PIPELINES = (((0, 1), (4, 5)), ((2, 3), (6, 7)))  # two of two positions of two tensor-parallel ranks each


def purposes(*groups, tp=2, pipelines=PIPELINES, **call):
    """What a rank's calls in some groups are for."""
    plan = Plan(world_size=8, pp=2, tp=tp, dp=2, cp=1, ep=1, source="message peers", pipelines=pipelines)
    calls = tuple(CommArgs(op="all_reduce", ranks=ranks, **call) for ranks in groups)
    found = replicated({0: replace(timeline(0), calls=calls)}, plan)
    return [made.purpose for made in found[0].calls]


def test_one_rank_of_each_pipeline_at_one_position():
    """Is a group of replicas."""
    assert purposes((0, 2), (5, 7)) == ["dp", "dp"]


@pytest.mark.parametrize(
    "ranks",
    [(0, 1), (0, 4), (0, 6), (0, 1, 2, 3), tuple(range(8)), (0, 9), (0,), ()],
    ids=["partners", "a pipeline", "two positions", "a whole stage", "all", "a rank of no pipeline", "one", "unknown"],
)
def test_other_groups(ranks):
    """Stay what they are."""
    assert purposes(ranks) == [""]


def test_where_replicas_are_not_told():
    """From tensor-parallel partners, or where there is one pipeline, nothing is said."""
    assert purposes((0, 2), tp=None) == [""]
    assert purposes((0, 4), pipelines=(((0,), (4,)),)) == [""]


def test_a_group_that_is_described():
    """Keeps its description."""
    assert purposes((0, 2), description="EXPERT_MODEL_PARALLEL_GROUP") == [""]
    assert purposes((0, 2), purpose="tp") == ["tp"]
