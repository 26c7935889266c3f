"""bubblescope: how much GPU time a pipeline-parallel run loses to bubbles, against theory, and why.

`bubblescope.analyze(["traces/"])` returns an Analysis: `report.bubble.measured` is the share of the
pipeline window that is bubble, `ranks` a DataFrame of where each rank's time went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bubblescope._version import __version__
from bubblescope.errors import BubblescopeError, InputError, UndecidedError, UsageError

if TYPE_CHECKING:
    from bubblescope.engine import analyze, load, whatif
    from bubblescope.gate.evaluate import baseline, evaluate
    from bubblescope.gate.runs import compare
    from bubblescope.inventory.take import info
    from bubblescope.model.analysis import Analysis
    from bubblescope.model.baseline import Baseline
    from bubblescope.model.changes import Changes
    from bubblescope.model.comparison import Comparison
    from bubblescope.model.gate import Gate
    from bubblescope.model.info import Info
    from bubblescope.model.options import LabelRule, Options, StepRange
    from bubblescope.model.report import Report
    from bubblescope.model.whatif import WhatIf

__all__ = [
    "Analysis",
    "Baseline",
    "BubblescopeError",
    "Changes",
    "Comparison",
    "Gate",
    "Info",
    "InputError",
    "LabelRule",
    "Options",
    "Report",
    "StepRange",
    "UndecidedError",
    "UsageError",
    "WhatIf",
    "__version__",
    "analyze",
    "baseline",
    "compare",
    "evaluate",
    "info",
    "load",
    "whatif",
]

# Where the names come from that bring numpy along: imported when first asked for, as a command
# line that only prints its help should not wait for them.
_LAZY = {
    "Analysis": "bubblescope.model.analysis",
    "Baseline": "bubblescope.model.baseline",
    "Changes": "bubblescope.model.changes",
    "Comparison": "bubblescope.model.comparison",
    "Gate": "bubblescope.model.gate",
    "Info": "bubblescope.model.info",
    "LabelRule": "bubblescope.model.options",
    "Options": "bubblescope.model.options",
    "Report": "bubblescope.model.report",
    "StepRange": "bubblescope.model.options",
    "WhatIf": "bubblescope.model.whatif",
    "analyze": "bubblescope.engine",
    "baseline": "bubblescope.gate.evaluate",
    "compare": "bubblescope.gate.runs",
    "evaluate": "bubblescope.gate.evaluate",
    "info": "bubblescope.inventory.take",
    "load": "bubblescope.engine",
    "whatif": "bubblescope.engine",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'bubblescope' has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return __all__
