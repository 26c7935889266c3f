"""Every format of every sample, byte for byte.

After a wanted change write them anew with `BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/report`, and
read the difference before committing it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bubblescope.report import registry

GOLDEN = Path(__file__).parent / "golden"
SUFFIX = {"table": "txt", "json": "json", "markdown": "md", "csv": "csv"}


@pytest.mark.parametrize("form", sorted(SUFFIX))
def test_output_is_the_golden_one(report, name, form):
    """A renderer writes exactly what was last looked at and found good."""
    path = GOLDEN / f"{name}.{SUFFIX[form]}"
    made = registry.render(form, report)
    if os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS"):
        path.write_bytes(made)
    assert made == path.read_bytes()


def test_every_format_has_goldens():
    """A new format cannot be added without being looked at."""
    assert set(SUFFIX) == set(registry.FORMATS)
