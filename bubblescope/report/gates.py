"""A gate in words: for a terminal, where the verdict stands last, and for a page, where it stands first."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console
from rich.text import Text

from bubblescope.model.gate import Gate
from bubblescope.report import canvas, pages
from bubblescope.report import gate_words as told
from bubblescope.report import wording as words
from bubblescope.report.facts import Fact
from bubblescope.report.pages import Page
from bubblescope.report.table import Table

__all__ = ["draw", "markdown", "page", "plain"]

_STYLES = {"pass": "bold green", "fail": "bold red", "inconclusive": "bold yellow"}
_MOST_FAILED = 5
_MOST_NAMED = 4


def page(gate: Gate) -> Page:
    """The gate as a page for a file or a pull request: the verdict is its headline."""
    return Page(
        headline=f"bubblescope gate: {told.verdict(gate)}",
        facts=_facts(gate),
        warnings=gate.warnings,
        remarks=_remarks(gate),
        tables=_tables(gate),
        commands=_commands(gate),
    )


def markdown(gate: Gate) -> bytes:
    """The page as Markdown."""
    return pages.markdown(page(gate))


def draw(gate: Gate, console: Console) -> None:
    """Print the gate: what each rule found, then what that comes to. Names are never read as markup."""
    spell = canvas.alphabet(console)

    def safe(text: str) -> str:
        return spell(words.visible(text))

    tables = _tables(gate)
    for place, table in enumerate(tables):
        if place:
            console.print()
        canvas.print_table(table.map(safe), console)
    canvas.print_list("Remarks", tuple(map(safe, _remarks(gate))), "cyan", console)
    canvas.print_list("Warnings", tuple(map(safe, gate.warnings)), "yellow", console)
    if tables or gate.warnings:
        console.print()
    _print_end(gate, safe, console)


def plain(gate: Gate) -> bytes:
    """What a terminal shows, without colour and 100 columns wide, for a file."""
    return canvas.plain(lambda console: draw(gate, console))


def _print_end(gate: Gate, safe: Callable[[str], str], console: Console) -> None:
    """The verdict and what belongs to it, in two columns; a command stays in one line to be copied."""
    facts = [("Verdict", told.verdict(gate)), *_facts(gate)]
    commands = _commands(gate)
    width = max(len(name) for name, _ in (*facts, *commands)) + 2
    for name, text in facts:
        style = _STYLES[gate.verdict] if name == "Verdict" else ""
        lines = Text(safe(text), style=style).wrap(console, max(console.width - width, 20))
        for place, line in enumerate(lines):
            line.rstrip()
            console.print(Text.assemble((f"{'' if place else name:<{width}}", "cyan"), line))
    for name, text in commands:
        console.print(Text.assemble((f"{name:<{width}}", "cyan"), safe(text)), soft_wrap=True)


def _commands(gate: Gate) -> tuple[Fact, ...]:
    """What to run next, and how to accept what was found."""
    named = (("Next", gate.look), *(("Accept", text) for text in gate.accept))
    return tuple((name, text) for name, text in named if text)


def _facts(gate: Gate) -> tuple[Fact, ...]:
    found = (
        *_failed(gate),
        ("Rules", told.counts(gate)),
        ("Compared", told.compared(gate)),
        ("Worst", told.worst(gate.worst)),
    )
    return tuple((name, text) for name, text in found if text)


def _failed(gate: Gate) -> Iterable[Fact]:
    """Each rule that failed the gate, who asked for it, what it found and what it expects."""
    failed = gate.at("error", "fail")
    for check in failed[:_MOST_FAILED]:
        text = f"{told.name(check)} ({check.origin}): {told.measured(check)}"
        yield "Failed", f"{text}; expected: {told.expected(check)}"
    if (more := len(failed) - _MOST_FAILED) > 0:
        yield "Failed", f"{more} more, see the table"


def _tables(gate: Gate) -> tuple[Table, ...]:
    tables = (_rules(gate), _differences(gate))
    return tuple(table for table in tables if table.rows)


def _rules(gate: Gate) -> Table:
    """Every rule with its outcome, in the order in which they were asked for; empty columns are left out."""
    values = [told.values(check) for check in gate.checks]
    columns: list[tuple[str, str, list[str]]] = [
        ("rule", "l", [told.name(check) for check in gate.checks]),
        ("level", "l", [check.level for check in gate.checks]),
        ("outcome", "l", [told.outcome(check) for check in gate.checks]),
        ("limit", "r", [told.limit(check) for check in gate.checks]),
        ("baseline", "r", [then for then, _ in values]),
        ("found", "r", [now for _, now in values]),
        ("change", "r", [told.change(check) for check in gate.checks]),
        ("noise", "r", [told.noise(check) for check in gate.checks]),
    ]
    kept = [each for each in columns if set(each[2]) != {words.ABSENT}]
    return Table(
        title="Rules",
        denominator=_meaning(gate),
        align="".join(side for _, side, _ in kept),
        headers=tuple(header for header, _, _ in kept),
        rows=tuple(zip(*(cells for _, _, cells in kept), strict=True)),
        strong=frozenset(k for k, check in enumerate(gate.checks) if check.outcome in {"fail", "inconclusive"}),
        spare=("limit", "level", "baseline"),
    )


def _meaning(gate: Gate) -> str:
    judged = any(check.noise is not None for check in gate.checks)
    return "a change counts where it exceeds its noise" if judged else "what is found against what is allowed"


def _remarks(gate: Gate) -> tuple[str, ...]:
    """What there is to know about some rules, each reason once."""
    reasons: dict[str, list[str]] = {}
    for check in gate.checks:
        softened = "softened from error to warn" if check.softened else ""
        if reason := "; ".join(filter(None, (softened, check.reason))):
            reasons.setdefault(reason, []).append(told.name(check))
    return tuple(f"{_named(names)}: {reason}" for reason, names in reasons.items())


def _named(rules: list[str]) -> str:
    return (
        ", ".join(rules)
        if len(rules) <= _MOST_NAMED
        else f"{', '.join(rules[: _MOST_NAMED - 1])} and {len(rules) - _MOST_NAMED + 1} more"
    )


def _differences(gate: Gate) -> Table:
    return Table(
        title="Differences",
        denominator="of the run from its baseline",
        align="llll",
        headers=("what", "baseline", "this run", "effect"),
        rows=tuple((each.what, each.baseline, each.found, told.EFFECTS[each.effect]) for each in gate.differences),
        strong=frozenset(k for k, each in enumerate(gate.differences) if each.effect == "refused"),
    )
