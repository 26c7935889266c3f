"""Orders that PyTorch itself made, where the folder of recordings lies beside the repository."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from bubblescope.model.actions import Action
from bubblescope.schedules.family import Shape

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "traces" / "orders" / "torch_2.13_orders.json.gz"

ACTION = re.compile(r"\d+[FBIW]\d+")


@pytest.fixture(scope="session")
def torch_orders():
    """(schedule, shape, order by rank) of torch's own schedules; its reductions and idle cells left out."""
    if not RECORDED.is_file():
        pytest.skip("the orders that PyTorch made are not beside this checkout")
    return [
        (
            entry["schedule"],
            Shape(entry["p"], entry["m"], entry["v"]),
            {
                int(rank): tuple(Action.parse(text) for cell in cells for text in ACTION.findall(cell or ""))
                for rank, cells in entry["order"].items()
            },
        )
        for entry in json.loads(gzip.decompress(RECORDED.read_bytes()))
    ]
