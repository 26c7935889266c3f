"""The numbers in the examples of `bubblescope explain` come out of bubblescope itself."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from bubblescope import engine
from bubblescope.cli import run
from bubblescope.model.options import Options
from bubblescope.model.report import Cause, Report
from bubblescope.report.bubble_pages import BUBBLE
from bubblescope.report.cause_detail_pages import DETAILS
from bubblescope.report.cause_pages import CAUSES
from bubblescope.report.entries import RUN, Entry
from bubblescope.report.found_pages import FOUND
from bubblescope.report.stage_pages import STAGES
from bubblescope.report.time_pages import TIME
from bubblescope.report.traffic_pages import TRAFFIC
from bubblescope.report.uneven_pages import UNEVEN
from bubblescope.schedules.family import Costs, Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.simulate import simulate
from bubblescope.schedules.times import Times
from bubblescope.schedules.trial import run as trial

ENTRIES = {entry.name: entry for entry in (*BUBBLE, *CAUSES, *DETAILS, *TIME, *STAGES, *UNEVEN, *TRAFFIC, *FOUND)}
MS = 1e6

STATED = "simulate --schedule 1f1b -p 4 -m 8 --forward 10 --backward 20 --comm 1 --imbalance 1,1,1,1.2 --no-picture"
"""The run that RUN tells in words."""


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Report]:
    """The reports of that run, written as traces and read back, by how the causes are told."""
    folder = tmp_path_factory.mktemp("run") / "traces"
    assert run([*STATED.split(), "--emit", "kineto", str(folder)]) == 0
    return {way: engine.analyze([str(folder)], Options(attribution=way)).report for way in ("ladder", "shapley")}


def cause(name: str) -> Callable[[Report], Cause]:
    """A cause of the report."""
    return lambda report: next(cause for cause in report.bubble.causes if cause.cause == name)


MEASURED: dict[str, tuple[int, Callable[[Report], float]]] = {
    "bubble": (-1, lambda r: r.bubble.measured),
    "formula": (-1, lambda r: r.bubble.formula),
    "replay": (-1, lambda r: r.bubble.replay),
    "gap": (-1, lambda r: r.bubble.gap),
    "ratio_to_ideal": (1, lambda r: r.bubble.ratio_to_ideal),
    "window": (-1, lambda r: r.bubble.window_ns / MS),
    "structural": (-1, lambda r: cause("structural")(r).points),
    "imbalance": (-1, lambda r: cause("imbalance")(r).points),
    "p2p": (-1, lambda r: cause("p2p")(r).points),
    "points": (-1, lambda r: sum(c.points for c in r.bubble.causes)),
    "share": (1, lambda r: cause("imbalance")(r).share),
    "causes.ns": (-1, lambda r: cause("imbalance")(r).ns / MS),
    "compute": (0, lambda r: r.ranks[3].compute_ns / MS),
    "pp": (-1, lambda r: r.ranks[0].pp_ns / MS),
    "pp_wait": (0, lambda r: r.ranks[0].pp_wait_ns / MS),
    "pp_transfer": (0, lambda r: r.ranks[0].pp_transfer_ns / MS),
    "ranks.bubble": (0, lambda r: r.ranks[0].bubble),
    "warmup": (-1, lambda r: r.stages[0].warmup_ns / MS),
    "steady": (-1, lambda r: r.stages[0].steady_ns / MS),
    "cooldown": (-1, lambda r: r.stages[0].cooldown_ns / MS),
    "worst_bubbles": (-1, lambda r: r.worst_bubbles[0].duration_ns / MS),
    "forward": (-1, lambda r: r.stages[3].forward_ns / MS),
    "backward": (-1, lambda r: r.stages[3].backward_ns / MS),
    "work": (-1, lambda r: r.stages[3].work_ns / MS),
    "stage_ratio": (-1, lambda r: r.imbalance.stage_ratio),
    "slowest_stage": (-1, lambda r: (r.stages[r.imbalance.slowest_stage].work_ns - r.stages[0].work_ns) / MS),
    "calls": (-1, lambda r: r.communication[0].calls),
    "total": (-1, lambda r: r.communication[0].total_ns / MS),
    "communication.wait": (-1, lambda r: r.communication[0].wait_ns / MS),
    "communication.transfer": (0, lambda r: r.communication[0].transfer_ns / MS),
    "imbalance.stages": (-1, lambda r: r.imbalance.stages[3].ratio),
    "imbalance.slowdown": (-1, lambda r: r.imbalance.slowdown),
    "slowest_stage_share": (-1, lambda r: r.imbalance.slowest_stage_share),
    "algorithm_bandwidth": (-1, lambda r: r.communication[0].algorithm_bandwidth / 1e9),
    "links": (-1, lambda r: r.links[0].bandwidth / 1e9),
    "by_position": (1, lambda r: r.bubble.by_position[3].points["imbalance"]),
    "by_phase": (1, lambda r: r.bubble.by_phase[1].bubble),
    "alone": (-1, lambda r: cause("p2p")(r).alone),
    "removed": (0, lambda r: cause("imbalance")(r).removed),
    "attribution": (-1, lambda r: cause("imbalance")(r).ns / MS),
}
"""For each page with this run the row of its example that is a number of the report, and that number."""


SHAPLEY = {"alone", "removed", "attribution"}
"""Pages about what only `--attribution shapley` tells."""


def test_every_example_of_the_run_is_looked_after():
    """A page that tells of this run has its row in the table above."""
    assert {name for name, entry in ENTRIES.items() if entry.example and entry.example.setting == RUN} == set(MEASURED)


@pytest.mark.parametrize("name", MEASURED)
def test_examples_are_what_the_report_says(name, reports):
    """The value on the page is the one of the report, to its last digit."""
    row, number = MEASURED[name]
    assert number(reports["shapley" if name in SHAPLEY else "ladder"]) == pytest.approx(
        *_stated(ENTRIES[name].example.rows[row][2])
    )


def _stated(value: str) -> tuple[float, None, float]:
    """A value as a fraction or a plain number, no relative and its absolute tolerance."""
    match = re.fullmatch(r"(-?\d+(?:\.(\d+))?)\s*(.*)", value)
    scale = 100 if match[3] in {"%", "points"} else 1
    return float(match[1]) / scale, None, 0.50001 * 10 ** -len(match[2] or "") / scale


def values(entry: Entry) -> list[str]:
    """The last cells of the rows of an example."""
    return [value for _, _, value in entry.example.rows]


def test_the_zero_bubble_example_is_simulated():
    """zb-h2 with p = 8, m = 24 and F = I = W has no idle time in D3, and 8.9 % in D1."""
    found = simulate(find("zb-h2"), Shape(8, 24), Costs(1, 1, 1))
    assert [found.window - found.idle, found.window] == [72, 79]
    assert values(ENTRIES["span"]) == ["72", "79", f"{100 * found.bubble:.1f}%", f"{100 * found.span:.1f}%"]


def test_the_straggler_example_is_simulated():
    """A replica whose last rank takes 1.2 times as long lasts 378 ms; all at its mean, 346.5; the other, 330."""

    def length(*stages: float) -> float:
        times = Times(forward=tuple(10 * s for s in stages), backward=tuple(20 * s for s in stages))
        return trial(find("1f1b"), Shape(4, 8), times).simulation.window

    mean = (1 + 1 + 1 + 1.2) / 4
    assert length(1, 1, 1, 1.2) == pytest.approx(378)
    assert length(mean, mean, mean, mean) == pytest.approx(346.5)
    assert length(1, 1, 1, 1) == pytest.approx(330)
    assert [row[1] for row in ENTRIES["straggler"].example.rows] == ["378 - 346.5", "330 - 330"]
