"""The same runs under the labels of other frameworks: what is found does not depend on who named it."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze

WAYS = {"F": "FORWARD", "B": "BACKWARD"}


def rewritten(folder: Path, change: Callable[[str], str]) -> None:
    """Write the traces of a folder anew."""
    for path in sorted(folder.glob("*rank*")):
        raw = path.read_bytes()
        packed = raw[:2] == b"\x1f\x8b"
        text = change((gzip.decompress(raw) if packed else raw).decode())
        path.write_bytes(gzip.compress(text.encode(), 1) if packed else text.encode())


def as_zero_bubble(text: str, p: int) -> str:
    """A trace under the labels of the zero-bubble fork: chunks are counted on the rank, the input gradient is B."""

    def action(match: re.Match[str]) -> str:
        return f"{match[2].replace('I', 'B')}{match[3]}.{int(match[1]) // p}.0, op_id = 7"

    def message(match: re.Match[str]) -> str:
        return f"{match[2]}_{WAYS[match[3]]}.{match[4]}.{int(match[1]) // p}.0"

    text = re.sub(r'(?<=")PP:(\d+)([FBIW])(\d+)(?=")', action, text)
    text = re.sub(r'(?<=")PP:(\d+)(SEND|RECV)_([FB])(\d+)(?=")', message, text)
    assert "PP:" not in text
    return text


@pytest.mark.parametrize("backend", ["cuda", "cpu"])
@pytest.mark.parametrize(("schedule", "v"), [("interleaved-1f1b", 2), ("zb-v", 2), ("zb-h1", 1), ("1f1b", 1)])
def test_zero_bubble_labels(tmp_path, schedule, v, backend):
    """Chunks instead of stages, looped or folded, give the schedule and the bubble of the run."""
    job = Job(schedule=schedule, p=4, m=8, v=v, steps=2, comm_labels=True, backend=backend, p2p_ns=100_000)
    write(job, tmp_path)
    before = analyze([str(tmp_path)]).report
    rewritten(tmp_path, lambda text: as_zero_bubble(text, 4))
    after = analyze([str(tmp_path)]).report
    assert after.schedule.name == before.schedule.name == schedule
    assert after.schedule.confidence == 1
    assert after.bubble.measured == pytest.approx(truth(job).bubble, abs=1e-4)
    assert after.bubble.measured == before.bubble.measured


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_kinds_alone(tmp_path, schedule):
    """DeepSpeed's labels name the kind only; micro-batches follow from the order and from autograd's numbers."""
    job = Job(schedule=schedule, p=4, m=8, steps=2, labels="torch", p2p_ns=100_000)
    write(job, tmp_path)
    name = re.compile(r'"(Forward|Backward) \d+"')
    rewritten(tmp_path, lambda text: name.sub(lambda m: f'"DeepSpeedEngine.{m[1].lower()}"', text))
    found = analyze([str(tmp_path)]).report
    assert (found.schedule.name, found.schedule.confidence, found.schedule.reconstruction) == (schedule, 1, "labels")
    assert found.bubble.measured == pytest.approx(truth(job).bubble, abs=1e-4)
