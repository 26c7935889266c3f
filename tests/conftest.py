"""Settings that hold for all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# A merge must not fail by the luck of a draw: on CI the examples are always the same ones.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("default", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "default")
