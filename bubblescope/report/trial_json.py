"""A schedule on paper as JSON, `bubblescope.simulation/1` and `bubblescope.ranking/1`, and its numbers as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from bubblescope.model.actions import Action, Order, blocks
from bubblescope.report.csv import HEADER, Row, table
from bubblescope.schedules.detect import Difference, Match
from bubblescope.schedules.ranking import Ranking
from bubblescope.schedules.recognize import Found
from bubblescope.schedules.trial import Trial

__all__ = ["found_data", "ranking_data", "render", "render_csv", "trial_data"]

Data = dict[str, Any]


def render(data: Mapping[str, Any]) -> bytes:
    """The object as text, with its keys in their order."""
    return orjson.dumps(data, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def render_csv(data: Mapping[str, Any]) -> bytes:
    """Its numbers as a long table, the columns of which are those of the report."""
    return table(HEADER, _rows(data))


def trial_data(trial: Trial) -> Data:
    """A schedule that was named."""
    simulation = trial.simulation
    return {
        "schema": "bubblescope.simulation/1",
        **_numbers(trial),
        "orders": [_order(order, trial.together) for order in simulation.orders.values()],
        "starts": [_moments(order, simulation.run.start, trial.together) for order in simulation.orders.values()],
        "stages": [list(held) for held in trial.placement],
        "useful": list(simulation.useful.values()),
        "times": _times(trial),
        "detected": None,
    }


def found_data(found: Found) -> Data:
    """A schedule from a file; `detected` says what it was taken for."""
    verdict = found.verdict
    best = verdict.best
    detected = {
        "confidence": None if best is None else best.confidence,
        "variant": None if best is None else best.variant.note or None,
        "also": list(verdict.also),
        "runner_up": _match(verdict.runner_up),
        "reason": verdict.reason,
        "departures": None if found.departures is None else [_departure(*each) for each in found.departures],
    }
    return trial_data(found.trial) | {"detected": detected}


def ranking_data(ranking: Ranking) -> Data:
    """All schedules, the smallest bubble first."""
    return {
        "schema": "bubblescope.ranking/1",
        "p": ranking.trials[0].shape.p,
        "m": ranking.trials[0].shape.m,
        "schedules": [_numbers(trial) for trial in ranking.trials],
        "impossible": [{"schedule": each.name, "reason": each.reason} for each in ranking.impossible],
    }


def _numbers(trial: Trial) -> Data:
    """What two schedules are compared by."""
    simulation, shape = trial.simulation, trial.shape
    return {
        "schedule": "unknown" if trial.family is None else trial.family.name,
        "p": shape.p,
        "m": shape.m,
        "v": shape.v,
        "slices": shape.slices,
        "group": shape.group,
        "asynchronous": trial.asynchronous,
        "bubble": {
            "formula": trial.closed.bubble,
            "simulated": simulation.bubble,
            "ratio_to_ideal": simulation.ratio_to_ideal,
            "span": simulation.span,
            "span_formula": trial.closed.span,
        },
        "idle": {"text": trial.closed.text, "formula": trial.closed.idle, "simulated": simulation.idle},
        "makespan": simulation.run.makespan,
        "window": simulation.window,
        "peak_activations": list(simulation.held.values()),
        "memory": _memory(trial),
    }


def _times(trial: Trial) -> Data:
    times = trial.times
    return {
        "forward": list(times.forward),
        "input": list(times.input),
        "weight": list(times.weight),
        "comm": list(times.comm),
        "blocking": trial.blocking,
    }


def _memory(trial: Trial) -> Data:
    """What the formulas say of each rank."""
    memory, ranks = None if trial.family is None else trial.family.memory, range(trial.shape.p)
    return {
        "activations_text": None if memory is None else memory.text,
        "activations": [None if memory is None else memory.activations(trial.shape, rank) for rank in ranks],
        "weights_text": None if memory is None else memory.weights_text,
        "weights": [trial.weights(rank) for rank in ranks],
    }


def _order(order: Order, together: frozenset[Action]) -> list[str]:
    """Actions as text, two that overlap as one."""
    return [f"({';'.join(map(str, block))})" if len(block) > 1 else str(block[0]) for block in blocks(order, together)]


def _moments(order: Order, at: Mapping[Action, float], together: frozenset[Action]) -> list[float]:
    return [at[block[0]] for block in blocks(order, together)]


def _match(match: Match | None) -> Data | None:
    return None if match is None else {"schedule": match.family.name, "confidence": match.confidence}


def _departure(rank: int, each: Difference) -> Data:
    return {"rank": rank, "position": each.position, "expected": each.expected, "found": each.found}


def _rows(data: Mapping[str, Any]) -> Iterator[Row]:
    """The numbers of a simulation, or of each of a ranking; formulas and lists stand in the JSON."""
    for each in data.get("schedules", (data,)):
        key = each["schedule"] if "schedules" in data else ""
        yield from _fields("schedule", key, each)
        yield from _fields("bubble", key, each["bubble"])
        yield from _fields("idle", key, each["idle"])
        for rank, held in enumerate(each["peak_activations"]):
            yield "rank", f"{key}/{rank}" if key else str(rank), "peak_activations", held


def _fields(section: str, key: str, values: Mapping[str, Any]) -> Iterator[Row]:
    for name, value in values.items():
        if value is None or isinstance(value, int | float):
            yield section, key, name, value
