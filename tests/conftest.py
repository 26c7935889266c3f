"""Settings that hold for all tests."""

from __future__ import annotations

import gzip
import os
import signal
from pathlib import Path

import orjson
import pytest
from hypothesis import settings

SAMPLES = Path(__file__).parent.parent / "sample_traces"

# A merge must not fail by the luck of a draw: on CI the examples are always the same ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# A shell starts what runs in its background with interrupts ignored, and every process started from there inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def shared():
    """The folder of recorded traces beside the repository; skips where there is none."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("no recorded traces in ../shared/traces beside the repository")
    return folder


@pytest.fixture
def unlabelled(tmp_path):
    """A function that copies a sample without torch's labels ``PP:...`` and gives the folder of the copy."""

    def strip(name: str) -> Path:
        target = tmp_path / name
        target.mkdir(exist_ok=True)
        for path in (SAMPLES / name).glob("rank*_trace.json.gz"):
            trace = orjson.loads(gzip.decompress(path.read_bytes()))
            trace["traceEvents"] = [e for e in trace["traceEvents"] if not e["name"].startswith("PP:")]
            (target / path.name).write_bytes(gzip.compress(orjson.dumps(trace), compresslevel=1))
        return target

    return strip
