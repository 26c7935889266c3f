"""Instrumented timelines of jobs whose truth is known, in every format that is read."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from bubblescope.emit import Job, truth

Row = dict[str, Any]
WORDS = {"F": "forward", "B": "backward", "I": "backward-input", "W": "backward-weight"}


def rows_of(job: Job) -> list[Row]:
    """A row for every action of a job, times in nanoseconds; of tensor-parallel ranks the first."""
    found = []
    for step in truth(job).steps:
        for pipeline in step.pipelines:
            for rank in pipeline.ranks:
                for done in rank.actions if rank.tp == 0 else ():
                    stage, kind, microbatch, part = done.action
                    ids = {"stage": stage, "kind": kind.name, "microbatch": microbatch, "slice": part}
                    where = {"rank": rank.rank, "pp": rank.pp, "replica": pipeline.replica, "step": step.number}
                    found.append({**where, **ids, "start_ns": done.start, "end_ns": done.end})
    return found


def as_csv(path: Path, rows: Sequence[Row], delimiter: str = ",") -> Path:
    """The rows as text; missing ids stay empty."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows({key: "" if value == -1 else value for key, value in row.items()} for row in rows)
    return path


def as_parquet(path: Path, rows: Sequence[Row]) -> Path:
    """The rows as Parquet."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


def as_chrome(path: Path, rows: Iterable[Row]) -> Path:
    """The rows as a Chrome list, the way MegaScan writes them: in halves, of which the end has the arguments."""
    events: list[Row] = []
    for row in rows:
        lane = {"name": WORDS[row["kind"]], "pid": row["rank"], "tid": 0}
        args = {"iteration": row["step"], "microbatch": row["microbatch"], "stage": row["stage"], "rank": row["rank"]}
        args |= {"slice": row["slice"]} if row["slice"] >= 0 else {}
        events.append({**lane, "ph": "B", "ts": row["start_ns"] / 1000})
        events.append({**lane, "ph": "E", "ts": row["end_ns"] / 1000, "args": args})
    path.write_text(json.dumps(events))
    return path


def as_dumps(folder: Path, rows: Iterable[Row]) -> Path:
    """The rows as Primus dumps them: a file a rank, times of each step from the rank's own start of it, no ids."""
    ranks: dict[int, dict[str, Row]] = {}
    origin: dict[tuple[int, int], int] = {}
    for row in sorted(rows, key=lambda row: row["start_ns"]):
        zero = origin.setdefault((row["rank"], row["step"]), row["start_ns"] - 40_000)
        step = ranks.setdefault(row["rank"], {}).setdefault(
            str(row["step"]), {"fwd_start": [], "fwd_end": [], "bwd_start": [], "bwd_end": []}
        )
        word = "fwd" if row["kind"] == "F" else "bwd"
        step[f"{word}_start"].append((row["start_ns"] - zero) / 1e6)
        step[f"{word}_end"].append((row["end_ns"] - zero) / 1e6)
        step["total"] = (row["end_ns"] - zero) / 1e6
    for rank, steps in ranks.items():
        (folder / f"pp_rank_{rank}.json").write_text(json.dumps(steps))
    return folder
