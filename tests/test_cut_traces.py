"""A rank whose file is cut off anywhere: its complete steps have the bubble that they have in the whole file."""

from __future__ import annotations

import gzip
import json

import pytest

from bubblescope.emit import Job, write
from bubblescope.engine import analyze

PLACES = 12
RUNS = (
    Job(schedule="1f1b", p=2, m=4, steps=3, kernels=3),
    Job(schedule="1f1b", p=2, m=4, steps=1, kernels=3),
    Job(schedule="gpipe", p=2, m=3, steps=2, kernels=3),
    Job(schedule="zb-h1", p=2, m=4, steps=2, kernels=3),
    Job(schedule="1f1b", p=2, m=4, steps=3, kernels=3, backend="cpu", labels="none"),
)


def bubbles(folder):
    """The bubble of each complete step that has one, by number."""
    steps = analyze([str(folder)]).report.steps
    return {step.step: step.bubble for step in steps if step.complete and step.bubble is not None}


@pytest.mark.parametrize("job", RUNS, ids=lambda job: f"{job.backend} {job.schedule} {job.steps}")
def test_complete_steps_are_those_of_the_whole_file(tmp_path, job):
    """None that lost anything passes for complete, and those long before the cut stay so."""
    write(job, tmp_path)
    whole, path = bubbles(tmp_path), tmp_path / "rank1_trace.json.gz"
    text = gzip.decompress(path.read_bytes())
    seen = []
    for number in range(PLACES):
        path.write_bytes(gzip.compress(text[: len(text) * (3 * PLACES + 7 * number) // (10 * PLACES)]))
        found = bubbles(tmp_path)
        assert found == {step: whole[step] for step in found}
        seen.append(len(found))
    assert seen == sorted(seen)
    assert job.steps == 1 or seen[-1] == job.steps - 1


ON_GPU = {"kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"}
LAST = {
    "kernels": lambda event: event.get("cat") in ON_GPU,
    "streams": lambda event: -int(event["tid"]) if event.get("cat") in ON_GPU else -(10**9),
    "launches": lambda event: event.get("cat") in ON_GPU | {"cuda_runtime", "ac2g"},
}
"""What a profiler may write behind the operators: in order of time, stream by stream, or with the launches."""


@pytest.mark.parametrize("cut", [(1,), (0, 1)], ids=["one", "both"])
@pytest.mark.parametrize("order", LAST)
def test_steps_whose_kernels_are_behind_the_cut(tmp_path, order, cut):
    """No step is complete whose operators stand before the cut and whose kernels do not, whichever these are."""
    paths = write(Job(schedule="1f1b", p=2, m=4, steps=3, kernels=3, p2p_ns=200_000, compress=False), tmp_path)
    for path in paths:
        document = json.loads(path.read_text())
        document["traceEvents"].sort(key=LAST[order])
        path.write_text(json.dumps(document))
    whole, texts = bubbles(tmp_path), [path.read_text() for path in paths]
    seen = set()
    for number in range(PLACES):
        for rank in cut:
            paths[rank].write_text(texts[rank][: len(texts[rank]) * (3 * PLACES + 7 * number) // (10 * PLACES)])
        found = bubbles(tmp_path)
        assert found == {step: whole[step] for step in found}
        seen.add(len(found))
    assert order == "streams" or seen >= {0, 1, 2}


def test_what_is_cut_off_early_needs_no_labels(tmp_path):
    """A rank of which little is left counts as not recorded, and nobody is told to record more than was."""
    path = write(Job(schedule="1f1b", p=2, m=4, steps=3, kernels=3), tmp_path)[1]
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text[: len(text) // 10]))
    found = analyze([str(tmp_path)]).report
    assert found.bubble.measured is None
    messages = {finding.code: finding.message for finding in found.quality.findings}
    assert messages["unlabelled"].endswith("told on rank 1: what is left of what was cut off does not tell them")
    assert "ProfilerActivity" not in messages["lost-kernels"]
