"""What to run after a gate: to look closer, and to accept what it found."""

from __future__ import annotations

import shlex
from dataclasses import replace

from bubblescope.model.gate import Check, Gate
from bubblescope.model.options import Options

__all__ = ["advised"]


def advised(gate: Gate, options: Options) -> Gate:
    """The gate with both; empty where its inputs have no names to put into a command."""
    if not gate.inputs:
        return gate
    words = options.words()
    return replace(gate, look=_look(gate, words), accept=_accept(gate, words))


def _look(gate: Gate, words: tuple[str, ...]) -> str:
    """Compare, if there is something to compare with."""
    if gate.reference is None or gate.baseline is None or len(gate.inputs) > 1:
        return shlex.join(["bubblescope", "analyze", *gate.inputs, *words])
    return shlex.join(["bubblescope", "compare", gate.baseline, *gate.inputs, *words])


def _accept(gate: Gate, words: tuple[str, ...]) -> str:
    """Make this run the baseline; what a limit refuses, another limit has to accept."""
    if any(_refuses(check) and check.against == "baseline" for check in gate.checks) and gate.baseline is not None:
        force = [] if gate.baseline_missing else ["-f"]
        return shlex.join(["bubblescope", "baseline", "save", *gate.inputs, *words, "-o", gate.baseline, *force])
    limits = [check for check in gate.checks if check.outcome == "fail"]
    return f"change the rule '{limits[0].rule}' ({limits[0].origin})" if limits else ""


def _refuses(check: Check) -> bool:
    return check.level != "off" and check.outcome in {"fail", "inconclusive"}
