"""Which rules a gate holds, and what it does where it cannot compare: presets, and what the settings say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, get_args

from bubblescope.errors import UsageError
from bubblescope.gate.presets import PRESETS
from bubblescope.gate.rules import Rule, Subject, parse, parse_subject
from bubblescope.model.gate import Level
from bubblescope.model.settings import OnMissing, Settings

__all__ = ["Asked", "Policy", "of_settings", "policy", "rules", "rules_of"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A rule, what it is for the verdict, and who asked for it."""

    rule: Rule
    level: Level
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """All that decides what a gate does with a run."""

    rules: tuple[Asked, ...]
    on_missing_baseline: OnMissing = "fail"
    allow_mismatch: bool = False
    allow_degraded: bool = False

    def __post_init__(self) -> None:
        for name in ("allow_mismatch", "allow_degraded"):
            if not isinstance(getattr(self, name), bool):
                raise UsageError(f"{name} must be True or False, found {getattr(self, name)!r}")
        if self.on_missing_baseline not in get_args(OnMissing):
            known = ", ".join(get_args(OnMissing))
            raise UsageError(f"on-missing-baseline must be one of {known}, found {self.on_missing_baseline!r}")


def policy(
    stated: Sequence[tuple[str, Level, str]], *, preset: str | None, off: Sequence[str] = (), compared: bool
) -> Policy:
    """The policy of some rules, strict about what it cannot compare; raises as `rules` does, and without any rule."""
    asked = rules(stated, preset=preset, off=off, compared=compared)
    if not any(each.level != "off" for each in asked):
        raise UsageError(
            "the gate has no rule",
            hint="--fail-on takes one, as 'bubble > 30%'; --baseline FILE brings the usual ones",
        )
    return Policy(rules=asked)


def rules(
    stated: Sequence[tuple[str, Level, str]], *, preset: str | None, off: Sequence[str] = (), compared: bool
) -> tuple[Asked, ...]:
    """The rules of a gate.

    Args:
        stated: rules with their level, and who asked for it.
        preset: a name of `PRESETS`; its rules stand beside the stated ones, which win where both are about one number.
            Without one it is `default`, if no rule is stated and there is a baseline.
        off: rules of the preset, or numbers as `step_time` or `bubble@stage=3`, that are not asked for.
        compared: whether a baseline is named.

    Raises:
        UsageError: a rule that cannot be read, a preset that does not exist, or a rule that is stated and off at once.
    """
    own = [Asked(_parsed(text, origin), level, origin) for text, level, origin in stated]
    name = preset if preset is not None else "default" if compared and not own else "none"
    return (*_muted(_of_preset(name, own), off, own), *own)


def _parsed(text: str, origin: str) -> Rule:
    """A rule, where what is wrong with it says who asked for it."""
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{origin}: {error.message}", hint=error.hint) from error


def of_settings(settings: Settings) -> Policy:
    """The policy that settings ask for; raises as `policy` does."""
    return replace(
        policy(_stated(settings), **_named(settings)),
        on_missing_baseline=settings.on_missing_baseline.value,
        allow_mismatch=settings.allow_mismatch.value,
        allow_degraded=settings.allow_degraded.value,
    )


def rules_of(settings: Settings) -> tuple[Asked, ...]:
    """The rules that settings ask for, which may be none; raises as `rules` does."""
    return rules(_stated(settings), **_named(settings))


def _stated(settings: Settings) -> list[tuple[str, Level, str]]:
    stated: list[tuple[str, Level, str]] = []
    stated += [(text, "error", settings.fail_on.origin) for text in settings.fail_on.value or ()]
    stated += [(text, "warn", settings.warn_on.origin) for text in settings.warn_on.value or ()]
    return stated


def _named(settings: Settings) -> dict[str, Any]:
    return {
        "preset": settings.preset.value,
        "off": settings.off.value or (),
        "compared": settings.baseline.value is not None,
    }


def _of_preset(name: str, own: Iterable[Asked]) -> list[Asked]:
    if name not in PRESETS:
        near = get_close_matches(name, PRESETS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(PRESETS)}"
        raise UsageError(f"no preset is called {name!r}", hint=hint)
    stated = {_moved(each.rule) for each in own}
    preset = [Asked(parse(text), level, f"preset {name}") for text, level in PRESETS[name].items()]
    return [each for each in preset if _moved(each.rule) not in stated]


def _moved(rule: Rule) -> tuple[Subject, str, str]:
    """What two rules have in common of which one replaces the other."""
    return rule.subject, rule.against, rule.side


def _muted(preset: Sequence[Asked], off: Sequence[str], own: Sequence[Asked]) -> Iterator[Asked]:
    """The rules of a preset, those that are off marked so; what is stated can only be left out where it is stated."""
    meant = {_parsed(text, "off").text if _is_rule(text) else str(parse_subject(text)) for text in off}
    stated = next((each for each in own if meant & _names(each.rule)), None)
    if stated is not None:
        raise UsageError(
            f"{stated.rule.text} is asked for ({stated.origin}) and turned off at once",
            hint="off is for rules of a preset; a rule that is stated is left out where it is stated",
        )
    known = {name for rules in PRESETS.values() for text in rules for name in _names(parse(text))}
    if meant - known:
        unknown = min(meant - known)
        raise UsageError(f"off: no preset has a rule {unknown}", hint="off is for rules of a preset, as step_time")
    for each in preset:
        yield Asked(each.rule, "off", each.origin) if meant & _names(each.rule) else each


def _names(rule: Rule) -> set[str]:
    """What turns a rule off."""
    return {rule.text, str(rule.subject)}


def _is_rule(text: str) -> bool:
    return any(mark in text for mark in "<>:")
