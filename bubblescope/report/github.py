"""A gate on GitHub: the summary of the job, and annotations on it.

GitHub drops a summary of over 1 MiB as a whole, and shows ten annotations of each kind a step.
"""

from collections.abc import Sequence

from bubblescope.model.gate import Check, Gate
from bubblescope.report import gate_words as told
from bubblescope.report import gates, pages
from bubblescope.report.metric_words import title
from bubblescope.report.wording import visible

__all__ = ["MOST_ANNOTATIONS", "annotations", "cut", "summary"]

MOST_ANNOTATIONS = 10
"""Of each kind."""

_NOTICE = "_Cut here, as the summary was too long._\n"


def summary(gate: Gate, room: int) -> bytes:
    """The gate as Markdown in at most so many bytes."""
    return cut(pages.markdown(gates.page(gate)), room)


def cut(page: bytes, room: int) -> bytes:
    """Markdown in at most so many bytes: what is too long ends after a whole line, and says so.

    What is open there is closed: a block of code, a fold. A table keeps its first two lines together.
    """
    if len(page) <= room:
        return page
    lines = page.decode().splitlines(keepends=True)
    size, best, tail = 0, 0, _NOTICE
    fences, folds = False, 0
    for place, line in enumerate(lines):
        size += len(line.encode())
        fences ^= line.startswith("```")
        folds += line.count("<details>") - line.count("</details>")
        end = ("```\n" if fences else "") + "\n" + "</details>\n\n" * folds + _NOTICE
        if size + len(end.encode()) > room:
            break
        if not _begins_table(lines, place):
            best, tail = place + 1, end
    kept = "".join(lines[:best]) + tail
    return kept.encode() if len(kept.encode()) <= room else b""


def _begins_table(lines: Sequence[str], place: int) -> bool:
    """Whether a line is the header of a table, whose next line makes it one."""
    here, before, after = (lines[k] if 0 <= k < len(lines) else "" for k in (place, place - 1, place + 1))
    return here.startswith("|") and not before.startswith("|") and after.startswith("|")


def annotations(gate: Gate) -> tuple[str, ...]:
    """Workflow commands, each a line: what fails the step as errors, what warns as warnings.

    The first one also says what is worst and what to do.
    """
    told_first = [*gate.at("error", "fail"), *gate.at("error", "inconclusive")]
    if gate.verdict != "inconclusive":  # what is open fails nothing then
        told_first = list(gate.at("error", "fail"))
    errors = [_command("error", gate, check, first=place == 0) for place, check in enumerate(told_first)]
    warnings = [_command("warning", gate, check) for check in gate.at("warn", "fail")]
    if gate.verdict == "inconclusive" and not errors:
        errors.append(f"::error title={_property('bubblescope gate')}::{_data(told.verdict(gate))}")
    return (*_few("error", errors), *_few("warning", warnings))


def trouble(message: str) -> str:
    """What kept a gate from a verdict, as the one annotation that there is then."""
    return f"::error title={_property('bubblescope gate')}::{_data(message)}"


def _few(kind: str, commands: list[str]) -> list[str]:
    if len(commands) <= MOST_ANNOTATIONS:
        return commands
    kept = commands[: MOST_ANNOTATIONS - 1]
    return [
        *kept,
        f"::{kind} title={_property('bubblescope gate')}::{len(commands) - len(kept)} more rules, see the log",
    ]


def _command(kind: str, gate: Gate, check: Check, *, first: bool = False) -> str:
    outcome = "failed" if check.outcome == "fail" else "could not be decided"
    parts = [f"{told.found(check)}; expected: {title(check.metric)} {told.expected(check)}"]
    parts += [f"Why: {check.reason}"] if check.reason else []
    if first:
        parts += [f"Worst: {told.worst(gate.worst)}"] if gate.worst else []
        parts += [f"Look closer: {gate.look}"] if gate.look else []
        parts += [f"Accept: {text}" for text in gate.accept]
    return f"::{kind} title={_property(f'{told.name(check)} {outcome}')}::{_data('. '.join(parts))}"


def _data(text: str) -> str:
    """A message that stays one, whatever is in it (actions/toolkit, packages/core/src/command.ts, escapeData)."""
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
