"""A gate as a JUnit report: one test case a rule, for what shows such reports beside a build.

The same gate gives the same bytes: there is no host and no time of day, and the tests take no time.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from bubblescope.model.gate import Check, Gate
from bubblescope.report import gate_words as told
from bubblescope.report.wording import visible

__all__ = ["render"]

_CLASS = "bubblescope.gate"
_SUITE = "bubblescope gate"
# What XML 1.0 cannot hold in any spelling (its production 2, Char); `visible` leaves only non-characters of these.
_FORBIDDEN = re.compile("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def render(gate: Gate) -> bytes:
    """A suite with what was compared as properties, and the rules as its cases."""
    found = [_Case(told.name(check), *_result(gate, check)) for check in gate.checks]
    if gate.verdict == "inconclusive" and not any(case.kind == "error" for case in found):
        found.append(_Case("verdict", "error", told.verdict(gate), ""))  # no rule is red, and yet nothing is fine
    sums = {"tests": len(found), "failures": _count(found, "failure"), "errors": _count(found, "error")}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        _open("testsuites", name=_SUITE, **sums, time=0),
        "  " + _open("testsuite", name=_SUITE, **sums, skipped=_count(found, "skipped"), time=0),
        "    <properties>",
        *("      " + _open("property", "/", name=name, value=text) for name, text in _properties(gate)),
        "    </properties>",
        *(f"    {line}" for case in found for line in case.lines()),
        "  </testsuite>",
        "</testsuites>",
    ]
    return ("\n".join(lines) + "\n").encode()


class _Case:
    """A test case: how it ended (nothing if it passed), that in a sentence, and in full."""

    def __init__(self, name: str, kind: str, message: str, text: str) -> None:
        self.name, self.kind, self.message, self.text = name, kind, message, text

    def lines(self) -> Iterator[str]:
        if not self.kind:
            yield _open("testcase", "/", classname=_CLASS, name=self.name, time=0)
            return
        yield _open("testcase", classname=_CLASS, name=self.name, time=0)
        kind = {"failure": "rule failed", "error": "inconclusive"}.get(self.kind)
        about = (
            _open(self.kind, message=self.message)
            if kind is None
            else _open(self.kind, message=self.message, type=kind)
        )
        yield f"  {about}{_content(self.text)}</{self.kind}>"
        yield "</testcase>"


def _count(cases: list[_Case], kind: str) -> int:
    return sum(case.kind == kind for case in cases)


def _result(gate: Gate, check: Check) -> tuple[str, str, str]:
    """Element, message and text of a rule that did not simply pass."""
    if check.outcome == "pass":
        return "", "", ""
    if check.outcome == "skipped":
        return "skipped", _why_skipped(check), ""
    failed = check.outcome == "fail"
    message = f"{told.measured(check)}; expected: {told.expected(check)}"
    if not failed:
        message = f"inconclusive: {check.reason or message}"
    kind = "failure" if failed else "error"
    text = "\n".join(f"{name}: {visible(value)}" for name, value in told.explained(gate, check))
    if check.level == "error":
        return kind, message, text
    return "skipped", f"warning: {message}", text


def _why_skipped(check: Check) -> str:
    return ": ".join(filter(None, ("off" if check.level == "off" else "skipped", check.reason)))


def _properties(gate: Gate) -> Iterator[tuple[str, str]]:
    run = gate.run.fingerprint
    yield "verdict", told.verdict(gate)
    yield "compared", told.compared(gate)
    degrees = ("pp", "tp", "dp", "cp", "ep", "virtual", "microbatches", "world_size", "reconstruction", "steps")
    yield "schedule", run.schedule
    for name in degrees:
        if (value := getattr(run, name)) is not None:
            yield name, str(value)
    yield "devices", ", ".join(run.devices)
    yield "bubblescope", gate.tool.version


def _open(tag: str, end: str = "", /, **attributes: str | int) -> str:
    pairs = "".join(f' {name}="{_attribute(str(value))}"' for name, value in attributes.items())
    return f"<{tag}{pairs}{end}>"


def _attribute(text: str) -> str:
    return html.escape(_allowed(visible(text)))


def _content(text: str) -> str:
    return html.escape(_allowed(text), quote=False)


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
