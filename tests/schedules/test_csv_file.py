"""Schedules that torch wrote to CSV: what is read of them, and what is refused, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubblescope.errors import InputError
from bubblescope.model.actions import WHOLE, Action, Kind
from bubblescope.schedules import csv_file
from bubblescope.schedules.csv_file import read
from bubblescope.schedules.family import Shape
from bubblescope.schedules.recognize import run_file
from bubblescope.schedules.registry import FAMILIES
from bubblescope.schedules.times import Times

# PyTorch, test/distributed/pipelining/artifacts/zb1p_2rank_2stagep_compute.csv: the older form.
ZB1P = """\
0F0,0F1,2F0,,2F1,2B0,2W0,0F2,2B1,2W1,0F3,0B0,0W0,2F2,0B1,0W1,2F3,2B2,2W2,0F4,2B3,2W3,0F5,0B2,0W2,2F4,0B3,0W3,2F5,\
2B4,2W4,0F6,2B5,2W5,0F7,0B4,0W4,2F6,0B5,0W5,2F7,2B6,2W6,2B7,2W7,0B6,0W6,0B7,0W7
,1F0,1F1,3F0,3B0,3F1,3B1,3W0,1F2,1B0,3W1,1F3,1B1,1W0,3F2,3B2,1W1,3F3,3B3,3W2,1F4,1B2,3W3,1F5,1B3,1W2,3F4,3B4,1W3,3F5,\
3B5,3W4,1F6,1B4,3W5,1F7,1B5,1W4,3F6,3B6,1W5,3F7,3B7,3W6,1B6,3W7,1B7,1W6,1W7
"""


def written(folder: Path, text: str | bytes) -> Path:
    """The path of a file that holds the text."""
    path = folder / "schedule.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def dump(family, shape: Shape) -> str:
    """The usual order of a schedule as torch writes it."""
    lines = []
    for rank, order in family.orders(shape).items():
        joined, cells, waiting = family.together(shape, rank), [], None
        for action in order:
            if action in joined:
                waiting = action
            elif waiting is not None:
                cells.append(f"({waiting};{action})OVERLAP_F_B")
                waiting = None
            else:
                cells.append(str(action))
        lines.append(",".join(cells))
    return "\n".join(lines) + "\n"


def test_orders_are_read_as_they_stand(tmp_path):
    """A line is a rank; p comes from the lines, m and v from the actions."""
    found = read(written(tmp_path, "0F0,2F0,2B0,0B0\n1F0,3F0,3B0,1B0\n"))
    assert found.shape == Shape(2, 1, 2)
    assert [str(action) for action in found.orders[1]] == ["1F0", "3F0", "3B0", "1B0"]
    assert found.together == frozenset()


def test_blocks_are_two_actions_that_run_together(tmp_path):
    """The first of an overlapped pair is joined to the second."""
    text = "0F0,0F1,(0F2;0B0)OVERLAP_F_B,0B1,0B2\n"
    found = read(written(tmp_path, text))
    assert [str(action) for action in found.orders[0]] == ["0F0", "0F1", "0F2", "0B0", "0B1", "0B2"]
    assert found.together == {Action(0, Kind.F, 2)}


def test_communication_and_waiting_are_left_aside(tmp_path):
    """Sends, receives, sharding and empty cells are no actions."""
    text = "0UNSHARD,0F0,0SEND_F0,,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n1RECV_F0,1F0,1B0,1SEND_B0,,\n"
    found = read(written(tmp_path, text))
    assert [len(order) for order in found.orders.values()] == [2, 2]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("0F0,0B0", "FB"),
        ("0F0,0I0,0W0", "FIW"),
        ("0F0,0B0,0W0", "FIW"),
        ("0F0,0BW0", "FB"),
        ("0F0,0F1,0BW0,0B1,0W1", "FFBIW"),
        ("0F0,0F1,0I0,0B1,0W0", "FFIBW"),
        ("0F0", "F"),
        ("0F0,0W0", "FW"),
    ],
)
def test_older_form(tmp_path, text, kinds):
    """B is the input gradient where BW stands, or a W and no I; BW is the full backward."""
    found = read(written(tmp_path, text))
    assert "".join(action.kind.name for action in found.orders[0]) == kinds


@pytest.mark.parametrize(
    "change", [str, lambda t: t.replace("\n", "\r\n"), lambda t: "\ufeff" + t, lambda t: t + "\n\n"]
)
def test_ends_of_lines_and_marks(tmp_path, change):
    """How lines end, a byte order mark and empty lines at the end change nothing."""
    assert read(written(tmp_path, change("0F0,0B0\n1F0,1B0\n"))).shape == Shape(2, 1)


def test_a_recorded_file_is_named(tmp_path):
    """A file of PyTorch's own tests, in the older form, is the interleaved zero-bubble order."""
    found = run_file(read(written(tmp_path, ZB1P)), Times())
    assert found.trial.family is not None
    assert found.trial.family.name == "interleaved-zb"
    assert found.departures == ()
    assert found.trial.simulation.window == 24.5
    assert found.trial.closed.bubble == pytest.approx(found.trial.simulation.bubble)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_what_a_schedule_is_comes_back(tmp_path, family):
    """Every schedule's order, written as torch would, is read back with its blocks, runs, and has its own name."""
    shape = Shape(4, 8, family.chunks)
    if family.problem(shape) is not None or family.orders(shape)[0][0].slice != WHOLE:
        pytest.skip("torch writes no slices")
    found = read(written(tmp_path, dump(family, shape)))
    assert found.orders == family.orders(shape)
    assert found.shape == shape
    assert found.together == frozenset().union(*(family.together(shape, rank) for rank in range(4)))
    verdict = run_file(found, Times(forward=(1.0,), backward=(2.0,))).verdict
    assert verdict.best is not None
    assert family.name in {verdict.best.family.name, *verdict.also}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: no action"),
        ("\n\n", "line 1: no action"),
        ("0F0,0B0\n\n1F0,1B0\n", "line 2: no action"),
        ("0F0,0B0\n,,\n", "line 2: no action"),
        ("0F0,hello\n", "line 1, cell 2: expected an action like 0F0, found 'hello'"),
        ("0F0\n1F0,1X0", "line 2, cell 2: expected an action like 0F0, found '1X0'"),
        ("0F\n", "line 1, cell 1: expected an action like 0F0, found '0F'"),
        ("-1F0\n", "found '-1F0'"),
        ("0F0.1\n", "found '0F0.1'"),
        ("٣F0\n", "expected an action"),  # a digit of another script is none here
        ("(0F0;0B0)OVERLAP_B_F\n", "expected an action"),
        ("(0F0;(0B0;0B1)OVERLAP_F_B)OVERLAP_F_B\n", "expected an action"),
        ("()OVERLAP_F_B\n", "expected an action"),
        ("0F0," + 100 * "x", "found '" + 37 * "x" + "...'"),
        ("0F1000000\n", "line 1, cell 1: stages and micro-batches count up to 1000000, found 0F1000000"),
        ("0F9999999999\n", "expected an action"),
        ("0F0,0F0\n", "line 1, cell 2: 0F0 stands in line 1, cell 1 already"),
        ("0F0,0B0\n0F0,0B0\n", "line 2, cell 1: 0F0 stands in line 1, cell 1 already"),
        ("0F0,0B0\n1F0,1B0,2F0,2B0\n", "has 3 stages on 2 lines"),
        ("0F0,0F2\n", "has stages 0 to 0 and micro-batches 0 to 2, but no 0F1"),
        ("0F999999,999999F0\n", "has stages 0 to 999999 and micro-batches 0 to 999999, but no 0F0"),
        ("0F0,0F1,0B0\n", "line 1, cell 2: the backward of 0F1 is B, or I and W; found none"),
        ("0F0,0B0,0I0,0W0\n", "the backward of 0F0 is B, or I and W; found B and I and W"),
        ("0F0,0B0\n1F0,1I0\n", "the backward of 1F0 is B, or I and W; found I"),
        ("0F0,0B0\n1F0,1W0\n", "the backward of 0F0 is B, or I and W; found I"),
        (b"0F0,\xff\xfe\n", "is no schedule: it is not text, at byte 4"),
        (b"\x1f\x8b\x08\x00", "is no schedule: it is not text, at byte 1"),
        (b"0F0\x00,0B0\n", "expected an action"),
        ('{"traceEvents": []}', "line 1, cell 1: expected an action like 0F0"),
    ],
)
def test_unusable_files(tmp_path, text, problem):
    """Whatever is no whole schedule is refused, with the place and what was found there."""
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(path) in caught.value.message
    assert problem in caught.value.message


def test_missing_files(tmp_path):
    """What is not there, or is a folder, or has a name that no file can have, cannot be read."""
    for path in (tmp_path / "none.csv", tmp_path, "a\0b.csv"):
        with pytest.raises(InputError, match="cannot read"):
            read(path)


def test_large_files(tmp_path, monkeypatch):
    """Files and numbers of actions without end are refused before they fill the memory."""
    path = written(tmp_path, "0F0,0F1,0F2\n")
    monkeypatch.setattr(csv_file, "MOST_ACTIONS", 2)
    with pytest.raises(InputError, match="more than 2 actions"):
        read(path)
    monkeypatch.setattr(csv_file, "MOST_BYTES", 5)
    with pytest.raises(InputError, match="too large for a schedule"):
        read(path)


def test_a_line_stops_being_read_where_it_is_too_long(tmp_path, monkeypatch):
    """A single line of endless actions is refused too."""
    monkeypatch.setattr(csv_file, "MOST_ACTIONS", 10)
    with pytest.raises(InputError, match="more than 10 actions"):
        read(written(tmp_path, ",".join(f"0F{i}" for i in range(1000))))
