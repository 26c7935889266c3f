"""Sets of rules that a gate may start from."""

from __future__ import annotations

from collections.abc import Mapping

from bubblescope.model.gate import Level

__all__ = ["PRESETS"]

PRESETS: Mapping[str, Mapping[str, Level]] = {
    "default": {"bubble:+2pp": "error", "imbalance:+5%": "warn", "step_time:+5%": "warn"},
    "strict": {
        "bubble:+1pp": "error",
        "imbalance:+5%": "error",
        "step_time:+5%": "error",
        "bubble@cause=any:+1pp": "warn",
        "bubble:-2pp": "warn",
    },
    "smoke": {"bubble:+5pp": "error"},
    "none": {},
}
"""Rules with their levels: the usual ones; more and narrower ones, an old baseline included; only a large loss."""
