"""Troubles that hide each other: each gone alone saves nothing, as the other holds the ranks up just as long."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from bubblescope.advice.context import Basis, Context, gained, proposal, sentences
from bubblescope.model.changes import Changes, Trouble
from bubblescope.model.report import Proposal
from bubblescope.model.whatif import Forecast

__all__ = ["DEAR", "hidden"]

DEAR = 0.02
"""Points / 100 of a cause from which it is asked what hides it."""
_BOTH = 0.01
"""Share of a step that both gone together must save beyond what the other saves alone."""

_CODES: dict[Trouble, tuple[str, str]] = {
    "imbalance": ("stage-imbalance", "uneven stages"),
    "straggler": ("straggler", "slow ranks"),
    "jitter": ("uneven-actions", "uneven actions"),
    "p2p": ("p2p", "transfers between stages"),
    "host": ("host-bound", "late hosts"),
}
"""The causes that can be replayed away: the finding of each, and what it is called."""


def hidden(context: Context, told: Collection[str]) -> Iterator[Proposal]:
    """Proposals for dear causes without a finding of their own among those told; they claim no gain by themselves."""
    asked: set[Changes] = set()
    for trouble, (code, _) in _CODES.items():
        other = _dearest(context, trouble)
        if code in told or context.points(trouble) < DEAR or other is None or not context.sure:
            continue
        changes = Changes(without=frozenset({trouble, other}))
        both, rest = context.ask(changes), context.without(other)
        if both is None or rest is None or changes in asked or gained(both).share - rest.share < _BOTH:
            continue
        asked.add(changes)
        yield _proposal(context, trouble, other, both)


def _dearest(context: Context, trouble: Trouble) -> Trouble | None:
    """The dearest other cause, if it is dear too."""
    rest = max((name for name in _CODES if name != trouble), key=context.points)
    return rest if context.points(rest) >= DEAR else None


def _proposal(context: Context, trouble: Trouble, other: Trouble, both: Forecast) -> Proposal:
    (code, name), (_, beside) = _CODES[trouble], _CODES[other]
    stage = context.report.imbalance.slowest_stage
    heavy = "" if trouble != "imbalance" or stage is None else f", of which stage {stage} is the heaviest"
    made = proposal(
        code,
        f"Mend {name}{heavy}, together with {beside}: one hides the other",
        sentences(
            f"{name.capitalize()} cost {context.costs(trouble)}, yet mending them alone saves next to nothing: ranks "
            f"then wait for {beside} instead.",
            f"Both mended save {context.saves(gained(both))}, {beside} alone {context.saves(context.without(other))}.",
        ),
        None,
        Basis(
            formula="the replay without both causes, less the replay without the other one",
            limits="No gain is claimed for one of them: what is saved is saved by both together.",
            source="bubblescope itself",
        ),
    )
    return replace(made, change=both.change)
