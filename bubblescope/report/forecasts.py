"""What-ifs in words: the best forecast in a sentence, what it starts from, all forecasts, and what they assume."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from bubblescope.model.changes import Changes
from bubblescope.model.whatif import Forecast, Run, WhatIf
from bubblescope.report import doubts
from bubblescope.report import wording as words
from bubblescope.report.facts import Fact
from bubblescope.report.pages import Page
from bubblescope.report.table import Table

__all__ = ["WORST_ERROR", "page"]

WORST_ERROR = 0.05
"""Of the replay, beyond which no forecast is trusted; the same as the engine's limit."""

_NOTHING = 0.0005  # half of the last digit shown
_SAME_DATA = 0.005


def page(found: WhatIf, *, usual: bool = False) -> Page:
    """The page of what-ifs, the forecast that saves the most first.

    Args:
        found: the forecasts.
        usual: whether they are the usual questions: troubles that cost nothing then share a line.
    """
    shown = _Shown(found, usual)
    sentence = _sentence(shown)
    doubt = _doubt(found)
    return Page(
        headline=doubt or sentence,
        intro=sentence if doubt else "",
        facts=_facts(found),
        warnings=doubts.warnings(found.quality),
        tables=tuple(filter(lambda table: table.rows, _tables(shown))),
    )


def _tables(shown: _Shown) -> tuple[Table, ...]:
    return _forecasts(shown), _splits(shown), _impossible(shown), _assumptions(shown)


@dataclass(frozen=True)
class _Shown:
    """Forecasts in the order of the page, and what their assumptions are called there."""

    found: WhatIf
    usual: bool

    @cached_property
    def possible(self) -> tuple[tuple[Forecast, Run], ...]:
        """The best first; those of equal gain in the order asked for."""
        runs = [(each, each.run) for each in self.found.forecasts if each.run is not None]
        return tuple(sorted(runs, key=lambda pair: -(pair[0].gain or 0.0)))

    @cached_property
    def listed(self) -> tuple[tuple[Forecast, Run], ...]:
        """Those that have a row of their own."""
        return tuple((each, run) for each, run in self.possible if not self._idle(each))

    @cached_property
    def idle(self) -> tuple[str, ...]:
        """The troubles without a row, in the order asked for."""
        return tuple(_trouble(each) or "" for each in self.found.forecasts if self._idle(each))

    def _idle(self, forecast: Forecast) -> bool:
        """Whether nobody asked for it by name, and there is nothing to gain from it."""
        if not self.usual or forecast.gain is None:
            return False
        return abs(forecast.gain) < _NOTHING and _trouble(forecast) is not None

    @cached_property
    def impossible(self) -> tuple[Forecast, ...]:
        return tuple(each for each in self.found.forecasts if each.run is None)

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """What all forecasts assume; nothing where there is one alone, whose assumptions are its own."""
        first, *rest = [each.assumptions for each, _ in self.listed] or [()]
        return tuple(text for text in dict.fromkeys(first) if rest and all(text in other for other in rest))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """What some forecasts assume, each with the number that stands for it."""
        stated = (text for each, _ in self.listed for text in each.assumptions if text not in self.shared)
        return {text: number for number, text in enumerate(dict.fromkeys(stated), 1)}

    @cached_property
    def data(self) -> tuple[float, ...]:
        """Data of each forecast's step over those of a measured one."""
        return tuple(_data(each, run, self.found.measured) for each, run in self.listed)

    @cached_property
    def other_data(self) -> bool:
        """Whether some forecast's step holds more data, or less, than a measured one."""
        return any(_differs(data) for data in self.data)


def _trouble(forecast: Forecast) -> str | None:
    """The one trouble that is gone, where nothing else is changed."""
    troubles = Changes.parse(forecast.change).without
    return next(iter(troubles)) if forecast.change in {f"without={name}" for name in troubles} else None


def _data(forecast: Forecast, run: Run, measured: Run) -> float:
    """By how many and how large micro-batches; a size that was changed for the same data cancels out."""
    size = Changes.parse(forecast.change).microbatch
    return run.microbatches * (1.0 if size is None else size) / measured.microbatches


def _differs(data: float) -> bool:
    return abs(data - 1) > _SAME_DATA


def _doubt(found: WhatIf) -> str:
    """Why not to rely on the forecasts; empty where nothing speaks against it."""
    reasons = []
    state = doubts.state(found.quality, trusted=found.trusted)
    if state:
        reasons.append(f"the data are {state}")
    elif not found.trusted:
        reasons.append("the causes of the bubble leave more than 5% of the pipeline window unexplained")
    if found.error > WORST_ERROR:
        reasons.append(f"the replay of the unmodified run is {words.percent(found.error)} off")
    return f"Do not rely on these forecasts: {words.enumerate_words(reasons)}." if reasons else ""


def _sentence(shown: _Shown) -> str:
    if not shown.possible:
        asked = len(shown.found.forecasts)
        return "None of the changes is possible in this run." if asked > 1 else "The change is impossible in this run."
    best, gain = shown.possible[0][0], shown.possible[0][0].gain or 0.0
    amount, like = _amount(shown, best), f"with {best.title or best.change}"
    if gain > _NOTHING:
        return f"Up to {amount} would be saved {like}."
    if len(shown.possible) > 1:
        return f"None of the {len(shown.possible)} forecasts saves time."
    return f"No time would be saved {like}." if gain >= -_NOTHING else f"{amount} would be lost {like}."


def _amount(shown: _Shown, best: Forecast) -> str:
    """`9.1% of a step (61.23 ms of 690.0 ms)`."""
    same = best.run is None or not _differs(_data(best, best.run, shown.found.measured))
    of = "a step" if same else "the time for the same data"
    share = f"{words.percent(abs(best.gain or 0.0))} of {of}"
    if best.gain_ns is None:
        return share
    return f"{share} ({words.duration(abs(best.gain_ns))} of {words.duration(shown.found.replayed.step_ns)})"


def _facts(found: WhatIf) -> tuple[Fact, ...]:
    measured, replayed = found.measured, found.replayed
    over = "" if found.steps < 1 else f", mean of {words.counted(found.steps, 'step')}"
    off = f"{words.percent(found.error)} off"
    use = f"{off}: forecasts start from it"
    if found.error > WORST_ERROR:
        use = f"{off}, more than {words.percent(WORST_ERROR, 0)}: forecasts may be off by as much"
    return (
        ("Measured", f"{_shape(measured)}; {_times(measured)}{over}"),
        ("Replay", f"the unmodified run comes out at {_lengths(replayed)}; {use}"),
    )


def _shape(run: Run) -> str:
    """`1f1b, p = 4, m = 8, v = 1`."""
    degrees = (("p", run.pp), ("t", run.tp), ("m", run.microbatches), ("v", run.virtual))
    return ", ".join([run.schedule, *(f"{name} = {count}" for name, count in degrees if count is not None)])


def _times(run: Run) -> str:
    return f"step {_lengths(run)}, bubble {words.percent(run.bubble)}"


def _lengths(run: Run) -> str:
    return f"{words.duration(run.step_ns)}, pipeline window {words.duration(run.window_ns)}"


Column = tuple[str, str, list[str]]
"""Header, side, and a cell for the measured run, its replay and each forecast; one without cells is left out."""

_SPARE = ("ms", "bubble", "activations", "weights")
"""Columns that a narrow page does without, those first that follow from others."""

_BEFORE = ("as measured", "as replayed")
"""The rows before the forecasts."""


def _forecasts(shown: _Shown) -> Table:
    columns = [column for column in _columns(shown) if column[2]]
    headers, sides, cells = zip(*columns, strict=True)
    rows = tuple(zip(*cells, strict=True))
    best = bool(shown.listed) and (shown.listed[0][0].gain or 0.0) > _NOTHING
    return Table(
        title="Forecasts",
        denominator=_denominator(shown),
        align="".join(sides),
        headers=headers,
        rows=rows if shown.possible else (),
        strong=frozenset({len(_BEFORE)} if best else ()),
        more=_nothing(shown),
        spare=_SPARE,
    )


def _nothing(shown: _Shown) -> str | None:
    """The usual troubles that cost this run nothing."""
    return f"nothing to gain (under 0.05%): {', '.join(shown.idle)}" if shown.idle else None


def _splits(shown: _Shown) -> Table:
    searched = [each for each, _ in shown.listed if each.layers and Changes.parse(each.change).layers == "best"]
    return Table(
        title="Best splits",
        denominator="layers of each stage",
        align="ll",
        headers=("change", "layers"),
        rows=tuple(
            (each.change.replace(",", ", "), "+".join(map(str, each.layers))) for each in searched if each.layers
        ),
    )


def _denominator(shown: _Shown) -> str:
    same = ", for the same data" if shown.other_data else ""
    parts = [f"step in ms; saves: at most{same}, % and ms of the replay", "gains do not add up"]
    if any(run.memory for run in _runs(shown)):
        parts.append("activations: on the fullest rank, in measured micro-batches")
    if _weights(shown):
        parts.append("weights: there, in those of a measured rank")
    return "; ".join(parts)


def _runs(shown: _Shown) -> list[Run]:
    return [shown.found.measured, shown.found.replayed, *(run for _, run in shown.listed)]


def _columns(shown: _Shown) -> list[Column]:
    each, runs = [forecast for forecast, _ in shown.listed], _runs(shown)
    lengths = [run.step_ns for run in runs]
    times = words.milliseconds([*lengths, *(forecast.gain_ns for forecast in each)])
    steps, saved = times[: len(runs)], times[len(runs) :]
    same = words.milliseconds([run.step_ns / data for run, data in zip(runs, (1.0, 1.0, *shown.data), strict=True)])
    held = any(run.memory for run in runs)
    return [
        ("change", "l", [*_BEFORE, *(forecast.change.replace(",", ", ") for forecast in each)]),
        ("step", "r", steps),
        ("same data", "r", same if shown.other_data else []),
        ("saves", "r", ["", "", *(words.percent(forecast.gain) for forecast in each)]),
        ("ms", "r", ["", "", *saved]),
        ("bubble", "r", [words.percent(run.bubble) for run in runs]),
        ("activations", "r", [_activations(run) for run in runs] if held else []),
        ("weights", "r", _weights(shown)),
        ("assumes", "l", ["", "", *(_assumes(shown, forecast) for forecast in each)] if shown.numbers else []),
    ]


def _activations(run: Run) -> str:
    return words.ABSENT if run.memory is None else f"{run.memory.activations:.3g}"


def _weights(shown: _Shown) -> list[str]:
    """Empty where no forecast holds other weights."""
    held = [None if run.memory is None else run.memory.weights for run in _runs(shown)]
    if all(copies is None or abs(copies - 1) < _SAME_DATA for copies in held):
        return []
    return [words.ABSENT if copies is None else f"{copies:.3g}" for copies in held]


def _assumes(shown: _Shown, forecast: Forecast) -> str:
    numbers = [shown.numbers[text] for text in forecast.assumptions if text in shown.numbers]
    return words.rank_list(numbers, most=len(numbers)) if numbers else ""


def _impossible(shown: _Shown) -> Table:
    return Table(
        title="Impossible",
        denominator="in this run",
        align="ll",
        headers=("change", "why"),
        rows=tuple((each.change.replace(",", ", "), each.problem or "unknown") for each in shown.impossible),
    )


def _assumptions(shown: _Shown) -> Table:
    rows = [("all", text) for text in shown.shared] + [(str(number), text) for text, number in shown.numbers.items()]
    return Table(
        title="Assumptions",
        denominator="behind each forecast; what is not modelled costs time, so a gain is an upper bound",
        align="rl",
        headers=("", "it is assumed that"),
        rows=tuple(rows),
    )
