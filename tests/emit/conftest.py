"""What tests of emitted files compare them with."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def shared():
    """The folder of recorded traces beside the repository; skips where there is none."""
    folder = Path(__file__).resolve().parents[3] / "shared" / "traces"
    if not folder.is_dir():
        pytest.skip("no recorded traces in ../shared/traces beside the repository")
    return folder
