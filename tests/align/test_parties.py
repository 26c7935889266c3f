"""Whom collectives join that do not say so."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.align.clocks import Links, fit
from bubblescope.align.parties import parties
from bubblescope.emit import Job, write
from bubblescope.engine import load
from bubblescope.model.job import CallKind, ClockFit, Plan
from tests.analysis.jobs import call, rank, steps

US, MS = 1_000, 1_000_000
GRID = (((0,), (2,)), ((1,), (3,)))
"""Two pipelines of two stages: stage 0 is on ranks 0 and 1, stage 1 on 2 and 3."""
STAGES, PIPELINES, ALL = ((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 1, 2, 3),)
KIND = CallKind("", "all_reduce")


def plan(pipelines=GRID, *, tp=1):
    """A layout, of which `tp` is None where nobody tells which ranks are replicas."""
    return Plan(world_size=4, pp=2, tp=tp, dp=2, cp=1, ep=1, source="test", pipelines=pipelines)


def joined(calls, *, off=0.0, layout=None, **more):
    """Whom the calls of four ranks join; each is (start, end) in ms, and clocks may be off by so many ms, any two.

    `off` may be a table of (clock, clock).
    """
    built = {
        r: rank(r, calls=[call("", s * MS, e * MS, **more) for s, e in rows], steps=steps(1, 1000 * MS), host=f"n{r}")
        for r, rows in enumerate(calls)
    }
    errors = np.full((4, 4), 1.0) * off * MS
    np.fill_diagonal(errors, 0)
    clock = ClockFit(method="p2p", offsets=dict.fromkeys(built, 0), clocks={r: r for r in built}, errors=errors)
    return dict(parties(built, layout or plan(), clock))


EARLY, LATE = [(50, 54), (55, 59)], [(70, 74), (75, 79)]


def test_calls_that_never_overlap_are_not_one():
    """Each stage reduces its gradients at a time of its own: all ranks, and those of a pipeline, are contradicted."""
    assert joined([LATE, LATE, EARLY, EARLY]) == {KIND: STAGES}


def test_what_may_be_one_or_another_joins_nobody():
    """By clocks that may be off by 20 ms the calls of both stages may be the same ones, of all or of each pipeline."""
    for off, found in ((20, {}), (15, {KIND: STAGES})):
        near = np.array([[0, 1, off, off], [1, 0, off, off], [off, off, 0, 1], [off, off, 1, 0]])
        assert joined([LATE, LATE, EARLY, EARLY], off=near) == found


def test_all_ranks_may_join_and_any_part_of_them():
    """Calls at one time on all ranks, of clocks that are known: they may be of stages, of pipelines or of all."""
    assert joined([LATE] * 4) == {}


@pytest.mark.parametrize("part", [STAGES, PIPELINES], ids=["stages", "pipelines"])
def test_of_clocks_that_nothing_ties_a_way_that_ties_them_is_taken(part):
    """Where only pipelines (stages) are tied by other things, what joins the others, in every way that does, counts."""
    off = np.full((4, 4), np.inf)
    for group in part:
        off[np.ix_(group, group)] = 0.1
    assert joined([LATE] * 4, off=off) == {KIND: PIPELINES if part is STAGES else STAGES}


def test_members_make_as_many_calls():
    """Three buckets on stage 0 and two on stage 1: only ranks of a stage may be together."""
    assert joined([[*LATE, (80, 84)]] * 2 + [LATE] * 2, off=np.inf) == {KIND: STAGES}


def test_ends_on_gpus_are_together():
    """Kernels that overlap, but end 3 ms apart: nothing but a clock that may be off by that makes them one call."""
    calls = [[(50, 60)], [(50, 60)], [(50, 63)], [(50, 63)]]
    assert joined(calls) == {KIND: STAGES}
    assert joined(calls, off=3.1) == {}


def test_where_the_layout_is_not_told_others_may_join():
    """All ranks join where nothing else ties the clocks; by known ones any two may."""
    unknown = plan(tp=None)
    assert joined([LATE] * 4, layout=unknown) == {}
    assert joined([LATE] * 4, layout=unknown, off=np.inf) == {KIND: ALL}
    assert joined([LATE, LATE, LATE, [*LATE, (90, 94)]], layout=unknown, off=np.inf) == {}


def test_of_one_way_only_nothing_is_open():
    """In a single pipeline all ranks are the pipeline's."""
    one = plan((((0,), (1,), (2,), (3,)),))
    assert joined([LATE] * 4, layout=one) == {KIND: ALL}
    assert joined([LATE, EARLY, EARLY, EARLY], layout=one) == {}


def test_sizes_are_told_apart():
    """Large calls are a stage's, of small ones nobody knows: these make no stage doubtful."""
    built = {
        r: rank(
            r,
            calls=[call("", at * MS, (at + 4) * MS, size=1 << 20), call("", 90 * MS, 92 * MS, size=4)],
            steps=steps(1, 1000 * MS),
            host="node",
        )
        for r, at in enumerate((70, 70, 30, 30))
    }
    assert parties(built, plan(), fit(built, Links.empty())) == {CallKind("", "all_reduce", 1 << 20): STAGES}


NO_NAMES = {"labels": "pp", "d": 2, "groups_told": "none", "pg_desc": "undefined", "compress": False, "jitter": 0.02}
SHAPES = {
    "dualpipe-v": {"schedule": "dualpipe-v", "p": 2, "m": 6, "v": 2, "recorder": "nsys"},
    "zb-v": {"schedule": "zb-v", "p": 2, "m": 4, "v": 2, "recorder": "nsys"},
    "1f1b": {"p": 3, "m": 6},
    "1f1b of nsys": {"p": 2, "m": 4, "recorder": "nsys", "payloads": "json"},
    "interleaved": {"schedule": "interleaved-1f1b", "p": 2, "m": 4, "v": 2, "t": 2},
    "gpipe, three replicas": {"schedule": "gpipe", "p": 2, "m": 4, "d": 3},
}


@pytest.mark.parametrize("skewed", [False, True], ids=["one clock", "skewed"])
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_gradients_of_unnamed_groups_move_no_clock(shape, skewed, tmp_path):
    """Buckets of each stage under its last backward: within pipelines clocks are as far off as is said, at most."""
    world = shape["p"] * shape.get("d", 2) * shape.get("t", 1)
    skew = tuple(1_700_000 * ((7 * r) % 5 - 2) * skewed for r in range(world))
    made = Job(**(NO_NAMES | shape), dp_buckets=4, dp_ns=16 * MS, ranks_a_host=1, skew_ns=skew)
    write(made, tmp_path)
    found = load([str(tmp_path)])
    assert found.plan.pipelines
    for pipeline in found.plan.pipelines:
        first, *others = (ranks[0] for ranks in pipeline)
        for other in others:
            off = found.clock.offsets[other] + skew[other] - found.clock.offsets[first] - skew[first]
            assert abs(off) <= found.clock.between(first, other) < 5 * MS
