"""Lists and tables that nobody meant to be read: an analysis or an error that a user can act on, never a traceback."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblescope.engine import analyze
from bubblescope.errors import InputError

NAMES = (
    *("forward", "backward", "F_0,1", "F_1,0", "B_1,0", "2F4", "1B0", "W3", "I0", "optimizer", "gc", "forward-send"),
    *("recv", "iteration begin", "params-all-gather", "tp-all-reduce", "thread_name", "process_name", "", 3, None),
)
KEYS = (
    *("step", "stage", "mb", "rank", "pp_rank", "dp_rank", "tp_rank", "model_chunk", "slice", "peer"),
    *("iteration", "microbatch", "name", "other"),
)
VALUES = st.one_of(
    st.integers(0, 3),
    st.sampled_from((-1, None, "1", "x", "", 1.5, 255, 9999, 999_999, 2**31, 2**63, 2**70, 1e300, True, [1], {"a": 1})),
    st.sampled_from(("PP rank 1, TP rank 0", "DP rank [1]", "rank 99999999", "stage 3")),
)
TIMES = st.one_of(st.integers(0, 500), st.floats(0, 500), VALUES)
EVENTS = st.fixed_dictionaries(
    {
        "ph": st.sampled_from("XXXXBEiM"),
        "name": st.sampled_from(NAMES),
        "pid": st.sampled_from((0, 1, "0", "a")),
        "tid": st.sampled_from((0, 1, "x")),
        "ts": TIMES,
        "dur": TIMES,
        "args": st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4),
    }
)


def survives(content: str) -> None:
    """An analysis or an error of the input."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_text(content)
        with contextlib.suppress(InputError):
            analyze(path)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(EVENTS, VALUES), min_size=1, max_size=30))
def test_any_list(events):
    """Whatever stands where, it is read or refused."""
    survives(json.dumps(events))


CELLS = st.one_of(
    st.integers(0, 3).map(str), st.sampled_from(("", "F", "B", "send", "nan", "-1", "1e9", "1e400", "9" * 30))
)
COLUMNS = (
    "rank",
    "stage",
    "chunk",
    "kind",
    "microbatch",
    "step",
    "pp_rank",
    "dp_rank",
    "start_us",
    "end_ms",
    "duration_s",
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.permutations(COLUMNS), st.integers(3, 11), st.lists(st.lists(CELLS, max_size=12), max_size=20))
def test_any_table(columns, width, rows):
    """Whatever columns there are, and however ragged the rows."""
    survives("\n".join(",".join(row) for row in [list(columns[:width]), *rows]))


@pytest.mark.parametrize(
    "events",
    [
        [{"ph": "X", "name": "forward", "ts": 0, "dur": -1}],
        [{"ph": "X", "name": "forward", "ts": 0, "dur": 1, "args": {"stage": 3}}, {"ph": "X", "name": "forward-send"}],
        [{"ph": "B", "name": "forward", "ts": 0}],
    ],
)
def test_lists_without_a_usable_forward(events):
    """What is left is nothing to read, or one forward."""
    survives(json.dumps(events))


def test_a_message_that_names_a_micro_batch_and_no_kind(tmp_path):
    """Of which of its actions it is nobody says."""
    rows = [("forward", 0, 5), ("send", 5, 1), ("recv", 8, 1), ("backward", 10, 5)]
    events = [
        {"ph": "X", "name": name, "pid": 0, "tid": 0, "ts": ts, "dur": dur, "args": {"mb": 0, "stage": 0, "step": 0}}
        for name, ts, dur in rows
    ]
    (tmp_path / "list.json").write_text(json.dumps(events))
    assert analyze(tmp_path).report.schedule.reconstruction == "table"
