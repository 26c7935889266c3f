"""Orders that PyTorch itself made, where the folder of recordings lies beside the repository."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from bubblescope.model.actions import Action, Order
from bubblescope.schedules.family import Shape
from tests.schedules.helpers import Recorded

RECORDED = Path(__file__).resolve().parents[3] / "shared" / "traces" / "orders" / "torch_2.13_orders.json.gz"

NAMES = {"zbv": "zb-v", "dualpipev": "dualpipe-v"}
"""Where torch's name of a schedule is not ours."""

CELL = re.compile(r"(\d+[FBIW]\d+)|\((\d+F\d+);(\d+B\d+)\)OVERLAP_F_B|\d+REDUCE_GRAD|")


def _read(cells) -> tuple[Order, frozenset[Action]]:
    """Actions, and the first ones of blocks; reductions and idle cells left aside."""
    actions, firsts = [], []
    for cell in cells:
        alone, ahead, back = CELL.fullmatch(cell or "").groups()
        actions += [Action.parse(text) for text in (alone, ahead, back) if text]
        firsts += [Action.parse(ahead)] if ahead else []
    return tuple(actions), frozenset(firsts)


@pytest.fixture(scope="session")
def torch_orders():
    """All of torch's own schedules that were recorded."""
    if not RECORDED.is_file():
        pytest.skip("the orders that PyTorch made are not beside this checkout")
    recorded = []
    for entry in json.loads(gzip.decompress(RECORDED.read_bytes())):
        ranks = {int(rank): _read(cells) for rank, cells in entry["order"].items()}
        recorded.append(
            Recorded(
                NAMES.get(entry["schedule"], entry["schedule"]),
                Shape(entry["p"], entry["m"], entry["v"]),
                {rank: order for rank, (order, _) in ranks.items()},
                {rank: blocks for rank, (_, blocks) in ranks.items()},
            )
        )
    return recorded
