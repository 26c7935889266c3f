"""What to do after a gate: to look closer, and to accept what it found."""

from __future__ import annotations

import shlex
from dataclasses import replace

from bubblescope.gate.judge import UNNAMED
from bubblescope.model.baseline import Baseline
from bubblescope.model.gate import Check, Gate
from bubblescope.model.options import Options

__all__ = ["advised"]

_FILE = "bubble.json"
"""What a baseline may be called where none was named."""


def advised(gate: Gate, options: Options) -> Gate:
    """The gate with both; without commands where its inputs have no names to put into one."""
    words = options.words()
    save = (_save(gate, words),) if gate.inputs and _is_refused(gate) and _is_fit(gate.run) else ()
    limits = tuple(map(_relax, filter(_refuses, gate.checks)))
    return replace(gate, look=_look(gate, words) if gate.inputs else "", accept=(*save, *dict.fromkeys(limits)))


def _look(gate: Gate, words: tuple[str, ...]) -> str:
    """Compare, if there is something to compare with."""
    if gate.reference is None or gate.baseline in {None, UNNAMED} or len(gate.inputs) > 1:
        return _joined("analyze", gate.inputs, words)
    return _joined("compare", (gate.baseline or "", *gate.inputs), words)


def _save(gate: Gate, words: tuple[str, ...]) -> str:
    """Make this run the baseline."""
    named = gate.baseline if gate.baseline not in {None, UNNAMED} else None
    again = () if gate.reference is None else ("-f", "--reason", "why this is fine")
    return _joined("baseline save", gate.inputs, (*words, "-o", _safe(named or _FILE), *again))


def _joined(command: str, names: tuple[str, ...], words: tuple[str, ...]) -> str:
    return f"bubblescope {command} {shlex.join((*map(_safe, names), *words))}"


def _safe(name: str) -> str:
    """A name that no command takes for an option; `-` is stdin."""
    return f"./{name}" if name.startswith("-") and name != "-" else name


def _is_refused(gate: Gate) -> bool:
    """Whether another baseline would do: where a rule failed against this one, or none is there to compare with."""
    against = [check for check in gate.checks if check.against == "baseline" and check.level != "off"]
    failed = any(check.level == "error" and check.outcome == "fail" for check in against)
    alone = gate.reference is None or any(each.effect == "refused" for each in gate.differences)
    return failed or (alone and any(check.outcome in {"inconclusive", "skipped"} for check in against))


def _is_fit(run: Baseline) -> bool:
    """Whether gates could decide against this run."""
    bubble = run.metric("bubble")
    return run.fingerprint.steps > 1 and (bubble is not None or run.fingerprint.schedule == "none")


def _refuses(check: Check) -> bool:
    return check.against == "limit" and check.level == "error" and check.outcome == "fail"


def _relax(check: Check) -> str:
    return f"change the rule '{check.rule}' ({check.origin})"
