"""Every schedule, emitted as traces with jitter and analyzed: its name, its size and its bubble come back."""

from __future__ import annotations

from itertools import chain, product
from random import Random

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.schedules.family import EVEN, Family, Shape
from bubblescope.schedules.registry import FAMILIES, find

NAMES = [family.name for family in FAMILIES]


def shapes(family: Family, p: int) -> list[Shape]:
    """Up to three shapes with different m that the schedule can have."""
    slices = 2 if family.cuts else 1
    tried = [Shape(p, m, family.chunks, slices) for m in (p, 2 * p, 2 * p + 2, 3 * p, 4 * p)]
    possible = [shape for shape in tried if family.problem(shape) is None]
    return possible if len(possible) <= 3 else [*possible[:2], possible[-1]]


def same_order(family: Family, other: str, shape: Shape, present: list[int]) -> bool:
    """Whether the other schedule has the family's order on the ranks present."""
    mine = family.orders(shape)
    variants = find(other).variants(shape, EVEN) if find(other).problem(shape) is None else ()
    return any(all(variant.order(rank) == mine[rank] for rank in present) for variant in variants)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_schedules_come_back(tmp_path, name):
    """Name (or one of the same order), m and bubble are found, p from 2 to 8, one rank absent in half of the runs."""
    family, random = find(name), Random(name)  # noqa: S311 - the same runs every time
    for shape in chain.from_iterable(shapes(family, p) for p in range(2, 9)):
        p = shape.p
        absent = (random.randrange(p),) if random.random() < 0.5 else ()
        job = Job(
            schedule=name, p=p, m=shape.m, v=shape.v, slices=shape.slices, missing=absent, seed=random.randrange(10**6),
            jitter=0.05, steps=3, p2p_ns=100_000, kernels=2,
        )  # fmt: skip
        folder = tmp_path / f"{p}_{shape.m}"
        write(job, folder)
        report = analyze([str(folder)]).report
        found, bubble, known = report.schedule, report.bubble, truth(job).bubble
        present = [rank for rank in range(p) if rank not in absent]
        assert name in (found.name, *found.also) or same_order(family, found.name, shape, present), (
            shape,
            absent,
            found,
        )
        assert found.microbatches == shape.m
        if absent:
            assert bubble.lower - 1e-9 <= known <= bubble.upper + 1e-9, (shape, absent)
        else:
            assert bubble.measured == pytest.approx(known, abs=1e-6), shape
            assert abs(bubble.causes[-1].share) < 0.01, (shape, bubble.causes)


CAUSES = [
    ("imbalance", {"scale": (1, 1, 1, 1.3)}),
    ("p2p", {"p2p_ns": 2_000_000}),
    ("host", {"host_gap_ns": 1_000_000}),
    ("straggler", {"d": 3, "straggler": ((7, 1.4),)}),
    ("straggler", {"d": 2, "straggler": ((5, 2.0),)}),
]


@pytest.mark.parametrize(
    ("schedule", "cause", "plant"),
    [(schedule, *each) for schedule, each in product(("1f1b", "gpipe", "zb-h1"), CAUSES)],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_planted_trouble_is_the_cause(tmp_path, schedule, cause, plant):
    """What is planted in a run is named, at the size by which it moves the bubble, and nothing else is blamed."""
    common = {"schedule": schedule, "p": 4, "m": 8, "steps": 3, "d": plant.get("d", 1)}
    planted, clean = Job(**common | plant), Job(**common)
    write(planted, tmp_path)
    bubble = analyze([str(tmp_path)]).report.bubble
    size = truth(planted).bubble - truth(clean).bubble
    points = {row.cause: row.points for row in bubble.causes}
    assert size > 0.02
    assert points.pop(cause) == pytest.approx(size, rel=0.15, abs=0.005)
    assert points.pop("structural") == bubble.formula
    assert all(abs(rest) < 0.01 for rest in points.values()), points


def test_searched_orders_depend_on_transfers(tmp_path):
    """An order that was searched for with slow transfers is found again, as the traces tell how slow they are."""
    job = Job(schedule="zb-2p", p=7, m=14, steps=2, kernels=1, p2p_ns=2_000_000, recv_ahead=2, jitter=0.02)
    write(job, tmp_path)
    found = analyze([str(tmp_path)]).report.schedule
    assert (found.name, found.confidence) == ("zb-2p", pytest.approx(1, abs=0.05))


@pytest.mark.parametrize("odd", ["PP:1F0.999999", "PP:9999F0", "PP:1F999999"])
def test_a_number_in_an_odd_label_makes_no_large_pipeline(tmp_path, odd):
    """A slice, stage or micro-batch far beyond the others is counted as one, not as so many."""
    write(Job(schedule="1f1b", p=3, m=6, steps=2, compress=False), tmp_path)
    for path in tmp_path.iterdir():
        path.write_text(path.read_text("utf-8").replace('"PP:1F0"', f'"{odd}"'), "utf-8")
    schedule = analyze([str(tmp_path)]).report.schedule
    assert any("compared for p=3" in fact and " v=1" in fact for fact in schedule.evidence)
    assert schedule.microbatches in {6, 7}
