"""The sample traces are complete, agree with their description, and tell nothing about where they were recorded."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORDERS = ("record_pipeline.py", "record_megatron.py", "record_deepspeed.py")
SAMPLES = sorted(path.parent for path in (ROOT / "sample_traces").glob("*/recorded.json"))


def load(path):
    """Read a compressed trace."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def strings_in(value):
    """Yield every string of a JSON value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)


def record(recorder, *options):
    """Run a recorder without torch, as most machines will: -E, -s and -S keep out what is installed."""
    command = [sys.executable, "-E", "-s", "-S", str(ROOT / "tools" / recorder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_promised_samples_are_there():
    """Every folder that the documentation names exists."""
    assert {path.name for path in SAMPLES} >= {
        "gpipe_p4m8",
        "1f1b_p4m8",
        "1f1b_p4m8_slow_last",
        "interleaved_1f1b_p4m8v2",
        "looped_bfs_p2m6v2",
        "zb_v_p2m6",
        "megatron_1f1b_p4m8",
        "megatron_1f1b_p2t2m4",
        "megatron_interleaved_1f1b_p4m8v2",
        "deepspeed_p4m8",
        "deepspeed_p2d2m6",
    }


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: path.name)
def test_a_sample_is_complete_and_neutral(folder):
    """One trace a rank, with all its steps, and no path or host name."""
    recorded = json.loads((folder / "recorded.json").read_text(encoding="utf-8"))
    assert (folder / "README.md").is_file()
    assert len(list(folder.glob("rank*_trace.json.gz"))) == recorded["ranks"]
    for rank in range(recorded["ranks"]):
        trace = load(folder / f"rank{rank}_trace.json.gz")
        assert trace["distributedInfo"]["rank"] == rank
        assert trace["distributedInfo"]["world_size"] == recorded["ranks"]
        assert trace["host_name"] == "host0"
        assert trace["traceName"] == f"rank{rank}_trace.json"
        assert not [text for text in strings_in(trace) if re.match(r"(/|[A-Za-z]:\\)\w", text)]
        names = [event["name"] for event in trace["traceEvents"]]
        assert sum(name.startswith("ProfilerStep#") for name in names) == recorded["steps"]
        forwards = recorded["steps"] * recorded["microbatches"] * recorded["chunks"]
        assert names.count("SleepingLayer") == names.count("SleepingLayerBackward") == forwards


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: path.name)
def test_the_sleeps_of_a_sample_kept_their_time(folder):
    """The truth in the README holds: no sleep was over 5 % late."""
    recorded = json.loads((folder / "recorded.json").read_text(encoding="utf-8"))
    wanted = {rank: set() for rank in range(recorded["ranks"])}
    for stage in recorded["stages"]:
        wanted[stage["rank"]].add(stage["forward_ms"])
    for rank, times in wanted.items():
        events = load(folder / f"rank{rank}_trace.json.gz")["traceEvents"]
        slept = [event["dur"] / 1e3 for event in events if event["name"] == "SleepingLayer"]
        assert min(times) <= min(slept)
        assert max(slept) <= 1.05 * max(times)


@pytest.mark.parametrize(
    ("recorder", "options", "message"),
    [
        ("record_pipeline.py", "--schedule 1f1b -m 3", "needs at least 4 micro-batches: -m is 3"),
        ("record_pipeline.py", "--schedule zb-v -v 3", "-v must be 2, not 3"),
        ("record_pipeline.py", "--schedule interleaved-1f1b -m 9", "-m 12 would do"),
        ("record_pipeline.py", "--schedule gpipe --scale 1,2", "one number for each of the 4 stages, not 2"),
        ("record_pipeline.py", "--schedule gpipe", "pip install torch"),
        ("record_megatron.py", "-p 1", "a pipeline needs at least 2 ranks: -p is 1"),
        ("record_megatron.py", "-m 9 -v 2", "-m 12 would do"),
        ("record_megatron.py", "-t 0", "--tensor must be at least 1, not 0"),
        ("record_megatron.py", "-v 2 --scale 1,2", "one number for each of the 8 stages, not 2"),
        ("record_megatron.py", "", "pip install torch"),
        ("record_deepspeed.py", "-p 1", "a pipeline needs at least 2 ranks: -p is 1"),
        ("record_deepspeed.py", "--forward-ms 0", "must be above 0"),
        ("record_deepspeed.py", "", "pip install torch"),
    ],
)
def test_a_recorder_says_what_is_wrong(recorder, options, message, tmp_path):
    """A run that cannot be is refused before anything is written, with what would do."""
    run = record(recorder, *options.split(), "--out", str(tmp_path))
    assert run.returncode == 2
    assert message in run.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("recorder", RECORDERS)
def test_a_recorder_has_a_help_text(recorder):
    """The options are explained even without torch."""
    run = record(recorder, "--help")
    assert run.returncode == 0
    assert "--forward-ms" in run.stdout
