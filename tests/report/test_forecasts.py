"""What-ifs as page, JSON and CSV.

After a wanted change write the goldens anew with `BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/report/test_forecasts.py`,
and read the difference before committing it.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import json as standard
import os
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest
from rich.console import Console

from bubblescope.forecast.forecaster import LIMIT
from bubblescope.model.whatif import Forecast, Memory, Run, WhatIf
from bubblescope.report import forecast_csv, forecasts, json, pages
from bubblescope.report.table import Table
from tests import whatifs
from tests.whatifs import CHIMERA, EVEN, IMPOSSIBLE, INTERLEAVED, MORE, SMALLER, ZERO_BUBBLE, whatif

GOLDEN = Path(__file__).parent / "golden"
RENDERERS = {
    "txt": lambda found: pages.plain(forecasts.page(found)),
    "md": lambda found: pages.markdown(forecasts.page(found)),
    "json": json.render,
    "csv": forecast_csv.render,
}


@pytest.fixture(params=sorted(whatifs.SAMPLES))
def sample(request) -> str:
    """The name of each sample in turn."""
    return request.param


@pytest.fixture
def found(sample) -> WhatIf:
    """Each sample in turn."""
    return whatifs.SAMPLES[sample]()


@pytest.mark.parametrize("suffix", sorted(RENDERERS))
def test_output_is_the_golden_one(found, sample, suffix):
    """A renderer writes exactly what was last looked at and found good."""
    path = GOLDEN / f"whatif-{sample}.{suffix}"
    made = RENDERERS[suffix](found)
    if os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS"):
        path.write_bytes(made)
    assert made == path.read_bytes()


def table(found: WhatIf, title: str) -> Table:
    """A table of the page."""
    (table,) = (table for table in forecasts.page(found).tables if table.title == title)
    return table


def column(found: WhatIf, header: str) -> dict[str, str]:
    """A column of the forecasts, by change."""
    shown = table(found, "Forecasts")
    at = shown.headers.index(header)
    return {row[0]: row[at] for row in shown.rows}


def headers(found: WhatIf) -> tuple[str, ...]:
    """The columns of the forecasts."""
    return table(found, "Forecasts").headers


def gaining(gain: float, forecast: Forecast = ZERO_BUBBLE) -> Forecast:
    """The forecast with another gain."""
    return replace(forecast, gain=gain, gain_ns=round(gain * whatifs.REPLAYED.step_ns))


@pytest.mark.parametrize(
    ("shown", "sentence"),
    [
        (
            [INTERLEAVED],
            "Up to 12.2% of a step (92.10 ms of 752.4 ms) would be saved with interleaved-1f1b, 2 stages a",
        ),
        ([ZERO_BUBBLE, INTERLEAVED, EVEN], "Up to 12.2% of a step (92.10 ms of 752.4 ms) would be saved with inter"),
        ([MORE], "Up to 17.3% of the time for the same data (130.5 ms of 752.4 ms) would be saved with m = 16."),
        ([SMALLER], "Up to 7.0% of a step (52.40 ms of 752.4 ms) would be saved with micro-batches 0.5 times as lar"),
        ([CHIMERA], "5.0% of a step (37.60 ms of 752.4 ms) would be lost with chimera."),
        ([CHIMERA, CHIMERA], "None of the 2 forecasts saves time."),
        ([gaining(0.0004)], "No time would be saved with zb-h1."),
        ([gaining(-0.0004)], "No time would be saved with zb-h1."),
        ([gaining(0.0006)], "Up to 0.1% of a step (451.4 µs of 752.4 ms) would be saved with zb-h1."),
        ([replace(ZERO_BUBBLE, gain_ns=None)], "Up to 10.8% of a step would be saved with zb-h1."),
        (
            [replace(ZERO_BUBBLE, title="")],
            "Up to 10.8% of a step (81.20 ms of 752.4 ms) would be saved with schedule=z",
        ),
        ([IMPOSSIBLE], "The change is impossible in this run."),
        ([IMPOSSIBLE, IMPOSSIBLE], "None of the changes is possible in this run."),
    ],
)
def test_headline_is_the_best_forecast(shown, sentence):
    """One sentence, with what it saves at most, or that nothing helps."""
    assert forecasts.page(whatif(*shown)).headline.startswith(sentence)


def test_the_page_trusts_what_the_engine_trusts():
    """Layers point one way, so that the limit stands in both."""
    assert forecasts.WORST_ERROR == LIMIT


@pytest.mark.parametrize(("step_ns", "trusted"), [(753, True), (716, True), (790, True), (715, False), (791, False)])
def test_a_replay_that_misses_by_over_5_percent_is_told_first(step_ns, trusted):
    """Whichever way it misses; the best forecast comes second."""
    found = whatif(INTERLEAVED, replayed=replace(whatifs.REPLAYED, step_ns=step_ns * whatifs.MS))
    told = forecasts.page(found)
    assert told.headline.startswith("Up to 12.2%" if trusted else "Do not rely on these forecasts: the replay")
    assert told.intro.startswith("" if trusted else "Up to 12.2%")
    assert ("forecasts start from it" in dict(told.facts)["Replay"]) is trusted
    assert ("more than 5%" in dict(told.facts)["Replay"]) is not trusted


@pytest.mark.parametrize(
    ("verdict", "trusted", "said"),
    [
        ("ok", True, "Up to 12.2%"),
        ("degraded", True, "Up to 12.2%"),
        ("degraded", False, "Do not rely on these forecasts: the data are degraded."),
        ("unusable", True, "Do not rely on these forecasts: the data are unusable."),
        ("ok", False, "Do not rely on these forecasts: the causes of the bubble leave more than 5% of the pipeline"),
    ],
)
def test_data_that_carry_no_forecast_are_told_first(verdict, trusted, said):
    """As analyze tells it of its own numbers; single findings may leave them untouched."""
    quality = replace(whatifs.UNSURE, verdict=verdict)
    assert forecasts.page(replace(whatifs.alone(), quality=quality, trusted=trusted)).headline.startswith(said)


def test_all_that_speaks_against_forecasts_is_said():
    """In one sentence."""
    found = replace(whatifs.far_off(), quality=whatifs.UNSURE, trusted=False)
    assert forecasts.page(found).headline == (
        "Do not rely on these forecasts: the data are degraded and the replay of the unmodified run is 8.4% off."
    )


def test_warnings_stand_before_the_forecasts():
    """Those of analyze, whether the data are degraded by them or not; what is no warning is not said."""
    found = replace(whatifs.alone(), quality=replace(whatifs.UNSURE, verdict="ok"))
    assert forecasts.page(found).warnings == (f"clock-uncertain: {whatifs.CLOCKS}",)
    for suffix in ("txt", "md"):
        text = RENDERERS[suffix](found).decode()
        assert text.index("Warnings") < text.index(whatifs.CLOCKS) < text.index("Forecasts")
    assert "Warnings" not in RENDERERS["txt"](whatifs.alone()).decode()


def test_the_best_comes_first_and_stands_out():
    """Those of equal gain stay in the order asked for, behind the run as it was measured."""
    other = replace(ZERO_BUBBLE, change="schedule=zb-1p")
    shown = table(whatif(CHIMERA, ZERO_BUBBLE, other, INTERLEAVED), "Forecasts")
    changes = [row[0] for row in shown.rows]
    assert changes == [
        "as measured",
        "as replayed",
        "schedule=interleaved-1f1b, v=2",
        "schedule=zb-h1",
        "schedule=zb-1p",
        "schedule=chimera",
    ]
    assert shown.strong == {2}
    assert table(whatif(CHIMERA), "Forecasts").strong == frozenset()


def test_more_data_are_told_by_the_time_for_the_same():
    """A step of 1243.8 ms with twice the micro-batches is one of 621.9 ms for the data of a measured one."""
    found, before = whatif(MORE, ZERO_BUBBLE), {"as measured": "753.1", "as replayed": "752.4"}
    assert column(found, "step") == {**before, "m=16": "1243.8", "schedule=zb-h1": "671.2"}
    assert column(found, "same data") == {**before, "m=16": "621.9", "schedule=zb-h1": "671.2"}
    assert "for the same data" in table(found, "Forecasts").denominator


@pytest.mark.parametrize("forecast", [SMALLER, ZERO_BUBBLE])
def test_the_same_data_need_no_column(forecast):
    """Twice as many micro-batches of half the size are the same data."""
    assert "same data" not in headers(whatif(forecast))
    assert "for the same data" not in table(whatif(forecast), "Forecasts").denominator


def test_more_and_smaller_micro_batches_are_as_much_data_as_both_make():
    """Four times as many of half the size are twice the data."""
    both = replace(MORE, change="m=32,microbatch=0.5", run=replace(MORE.run, microbatches=32))
    assert column(whatif(both), "same data")["m=32, microbatch=0.5"] == "621.9"


def test_memory_is_shown_where_it_is_known():
    """Weights where they change, activations where any is known, and a dash where one is not."""
    assert "weights" not in headers(whatif(INTERLEAVED))
    assert list(column(whatif(INTERLEAVED), "activations").values()) == ["4", "4", "5.5"]
    assert column(whatif(CHIMERA, ZERO_BUBBLE), "weights")["schedule=chimera"] == "2"
    untold = replace(CHIMERA, run=replace(CHIMERA.run, memory=Memory(activations=4.0, weights=None)))
    assert column(whatif(untold, CHIMERA), "weights")["schedule=chimera"] == "2"
    assert "weights" not in headers(whatif(untold))
    assert {"activations", "weights"}.isdisjoint(headers(without_memory(INTERLEAVED)))


def without_memory(forecast: Forecast) -> WhatIf:
    """A what-if whose memory nobody knows."""
    found = whatif(replace(forecast, run=replace(forecast.run, memory=None)))
    return replace(found, measured=replace(found.measured, memory=None), replayed=replace(found.replayed, memory=None))


def test_an_assumption_is_written_once():
    """What all assume is said of all, the rest by numbers that the forecasts name."""
    found = whatifs.usual()
    rows = table(found, "Assumptions").rows
    texts = [text for _, text in rows]
    assert sorted(texts) == sorted({text for each in found.forecasts for text in each.assumptions})
    numbered = {text: number for number, text in rows}
    assert numbered[whatifs.OPTIMIZER] == "all"
    assert column(found, "assumes")["schedule=zb-h1"] == "1, 3"
    assert (numbered[whatifs.DURATIONS], numbered[whatifs.SPLIT]) == ("1", "3")


def test_assumptions_of_one_forecast_are_its_own():
    """All of them are numbered; where all forecasts share all of them no column is needed."""
    assert column(whatifs.alone(), "assumes")["schedule=interleaved-1f1b, v=2"] == "1-3"
    assert "assumes" not in headers(whatif(ZERO_BUBBLE, ZERO_BUBBLE))
    assert [number for number, _ in table(whatif(ZERO_BUBBLE, ZERO_BUBBLE), "Assumptions").rows] == ["all"] * 3


def test_the_best_split_is_told():
    """The change says only that it was searched for; one that was asked for says itself what it is."""
    best = replace(EVEN, change="schedule=zb-v,layers=best", layers=(9, 9, 8, 6))
    asked = replace(best, change="layers=9+9+8+6")
    assert table(whatif(ZERO_BUBBLE, best, asked), "Best splits").rows == (("schedule=zb-v, layers=best", "9+9+8+6"),)
    assert [shown.title for shown in forecasts.page(whatif(asked)).tables] == ["Forecasts", "Assumptions"]


def without(trouble: str, gain: float, *assumptions: str) -> Forecast:
    """The run without a trouble."""
    return replace(gaining(gain, EVEN), change=f"without={trouble}", assumptions=assumptions)


TROUBLES = (without("imbalance", 0.0, "uneven"), without("data", -0.0004), without("host", 0.01), without("dp", -0.001))


def test_usual_troubles_without_a_gain_share_a_line():
    """Up to half of the last digit, either way; what they assume is not told."""
    found = whatif(*TROUBLES, gaining(0.0, EVEN))
    page = forecasts.page(found, usual=True)
    assert [row[0] for row in page.tables[0].rows[2:]] == ["without=host", "even", "without=dp"]
    assert page.tables[0].more == "nothing to gain (under 0.05%): imbalance, data"
    assert "uneven" not in [text for _, text in page.tables[-1].rows]


def test_what_was_asked_for_has_its_row():
    """Whatever comes of it; so have two troubles together."""
    both = without("data+host", 0.0)
    assert len(table(whatif(*TROUBLES), "Forecasts").rows) == 2 + len(TROUBLES)
    assert len(forecasts.page(whatif(ZERO_BUBBLE, both), usual=True).tables[0].rows) == 4


def test_a_run_without_troubles_is_shown():
    """Where nothing else can be asked, its rows are those before the forecasts."""
    page = forecasts.page(whatif(*TROUBLES[:2]), usual=True)
    assert page.headline == "None of the 2 forecasts saves time."
    assert [row[0] for row in page.tables[0].rows] == ["as measured", "as replayed"]


def test_the_impossible_says_why():
    """It has a table of its own, is no forecast, and its assumptions are nobody's."""
    found = whatif(ZERO_BUBBLE, IMPOSSIBLE)
    assert table(found, "Impossible").rows == (("schedule=chimera, m=7", "chimera needs p and m even"),)
    assert len(table(found, "Forecasts").rows) == 3
    assert [each.title for each in forecasts.page(whatif(IMPOSSIBLE)).tables] == ["Impossible"]


def test_what_nobody_knows_is_not_told():
    """Neither a tensor-parallel degree nor how many steps were replayed."""
    found = replace(whatif(EVEN), measured=replace(whatifs.MEASURED, tp=None), steps=0)
    told = dict(forecasts.page(found).facts)
    assert told["Measured"].startswith("1f1b, p = 4, m = 8, v = 1; step 753.1 ms, pipeline window 690.1 ms, bubble 29")
    assert "mean of" not in told["Measured"]


@pytest.mark.parametrize("width", [20, 60, 100])
def test_pages_are_no_wider_than_the_terminal(found, width):
    """Whatever is told, and however long the names of changes are."""
    long = replace(ZERO_BUBBLE, change="layers=" + "+".join(["8"] * 64))
    out = io.StringIO()
    told = forecasts.page(replace(found, forecasts=(*found.forecasts, long)))
    pages.draw(told, Console(file=out, width=width, color_system=None, force_terminal=False))
    assert max(map(len, out.getvalue().splitlines())) <= width


def drawn(found: WhatIf, width: int) -> str:
    """The page in a terminal of that width."""
    out = io.StringIO()
    pages.draw(forecasts.page(found), Console(file=out, width=width, color_system=None, force_terminal=False))
    return out.getvalue()


def test_changes_break_between_their_parts():
    """Where a page is too narrow for a change no name of a schedule is torn."""
    assert re.search(r"^  schedule=interleaved-1f1b, +\S.*\n  v=2 *$", drawn(whatifs.usual(), 96), re.MULTILINE)


@pytest.mark.parametrize("width", [72, 80, 100])
def test_words_to_type_are_not_broken(width):
    """Columns that can be spared give way, and are named."""
    out = io.StringIO()
    pages.draw(forecasts.page(whatifs.usual()), Console(file=out, width=width, color_system=None, force_terminal=False))
    text = out.getvalue()
    for word in ("schedule=interleaved-1f1b,", "schedule=zb-h1", "schedule=chimera"):
        assert re.search(rf"^  {word} ", text, re.MULTILINE)
    assert ("left out, as the page is narrow: ms" in text) is (width < 100)


def test_hostile_names_harm_nothing():
    """They command no terminal, call nobody, make no column, and start no formula."""
    found = whatifs.hostile()
    assert "\x1b" not in RENDERERS["txt"](found).decode()
    text = RENDERERS["md"](found).decode()
    assert not re.search(r"@\w|(?<!&)#\w|\w://|<script", text)
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1
    rows = csv.reader(io.StringIO(RENDERERS["csv"](found).decode()), strict=True)
    assert all(not cell.startswith(("=", "+", "@")) for row in rows for cell in row)


def test_json_matches_its_schema(found):
    """What is written is what the schema promises, with every key in the order of the types."""
    written = standard.loads(json.render(found))
    jsonschema.validate(written, standard.loads(json.schema("whatif")))
    assert list(written) == [field.name for field in dataclasses.fields(WhatIf)]
    assert written["schema"] == "bubblescope.whatif/1"


def test_json_survives_the_way_there_and_back():
    """Reading it gives the what-if that was written."""
    assert msgspec.json.decode(json.render(whatifs.usual()), type=WhatIf) == whatifs.usual()


def test_json_refuses_what_is_no_number():
    """A NaN is a mistake of ours, never null."""
    with pytest.raises(ValueError, match=r"forecasts\[0\]\.gain is nan"):
        json.render(whatif(replace(ZERO_BUBBLE, gain=float("nan"))))


def test_csv_has_a_row_for_each_run():
    """The measured one, its replay, and every forecast with its numbers as in JSON; the unknown is empty."""
    found = whatifs.usual()
    rows = list(csv.DictReader(io.StringIO(forecast_csv.render(found).decode()), strict=True))
    assert [row["row"] for row in rows] == ["measured", "replayed", *["forecast"] * len(found.forecasts)]
    assert [row["change"] for row in rows[2:]] == [each.change for each in found.forecasts]
    for row, run in zip(rows, (found.measured, found.replayed, *(each.run for each in found.forecasts)), strict=True):
        assert row["step_ns"] == ("" if run is None else str(run.step_ns))
        assert row["bubble"] == ("" if run is None else repr(run.bubble))
        assert row["weights"] == ("" if run is None else repr(run.memory.weights))
    assert rows[-1]["problem"] == "chimera needs p and m even"
    assert [row["gain"] for row in rows[2:]] == ["" if f.gain is None else repr(f.gain) for f in found.forecasts]


def test_csv_has_a_column_for_each_key():
    """What is no list is there, under its name."""
    kinds = (Run, Memory, Forecast)
    keys = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert set(forecast_csv.HEADER) == {"row", *keys} - {"run", "memory", "assumptions"}
