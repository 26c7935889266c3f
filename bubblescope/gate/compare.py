"""Two runs side by side: every number of either, by how much it changed, and whether that is more than noise.

A change is more than noise where Welch's t-test says so (`bubblescope.gate.significance`), two-sided, corrected for how
many numbers of its kind are tested (Holm), and where it is large enough to be seen in what is printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bubblescope._version import __version__
from bubblescope.errors import UndecidedError
from bubblescope.gate.fingerprints import differences
from bubblescope.gate.significance import FALSE_ALARM, Difference, difference
from bubblescope.model.baseline import Baseline, Fingerprint
from bubblescope.model.chance import holm
from bubblescope.model.comparison import Change, Comparison
from bubblescope.model.metrics import METRICS, Metric, Part
from bubblescope.model.report import Tool

__all__ = ["compare"]

_PARTS: tuple[Part | None, ...] = (None, "cause", "stage", "group")
"""Kinds of parts in the order in which they are told; a rank or a pipeline is not the same one in the next run."""

_LEAST_SHARE = 0.0005
"""Half of the last digit of points and of percentages: what is less cannot be seen."""
_LEAST_RATIO = 0.005
"""The same of ratios."""

_Key = tuple[str, Part | None, str | None]


@dataclass(frozen=True, slots=True)
class _Row:
    """A number of either run; `comparable` unless it means something else in the other."""

    key: _Key
    before: Metric | None
    after: Metric | None
    comparable: bool

    @property
    def kind(self) -> tuple[Part | None, str]:
        """What is tested together: the whole job, the causes, the groups, and each metric of the stages."""
        metric, by, _ = self.key
        return by, "" if by is None else metric

    @property
    def difference(self) -> Difference | None:
        """After over before, None where they cannot be compared."""
        if self.before is None or self.after is None or not self.comparable:
            return None
        return difference(self.after, self.before)

    @property
    def least(self) -> float:
        """The smallest change that shows."""
        unit = METRICS[self.key[0]].unit
        if unit in {"share", "ratio"}:
            return _LEAST_SHARE if unit == "share" else _LEAST_RATIO
        return _LEAST_SHARE * abs(self.before.value) if self.before is not None else 0.0


def compare(before: Baseline, after: Baseline, names: tuple[str, str]) -> Comparison:
    """What changed from one run to the next; `names` is what they are called.

    Raises:
        UndecidedError: the two have no number in common that can be compared.
    """
    before, after = _kept(before), _kept(after)
    rows = _rows(before, after)
    changes = [change for kind in _kinds(rows) for change in _judged(kind)]
    if all(change.change is None for change in changes):
        raise UndecidedError(
            "the two runs have no number in common that can be compared",
            hint="bubblescope analyze says what each of them has",
        )
    return Comparison(
        tool=Tool(name="bubblescope", version=__version__),
        before=before,
        after=after,
        names=names,
        level=FALSE_ALARM,
        differences=differences(after.fingerprint, before.fingerprint),
        changes=tuple(sorted(changes, key=_rank)),
    )


def _kept(run: Baseline) -> Baseline:
    return replace(run, metrics=tuple(each for each in run.metrics if each.by in _PARTS and each.metric in METRICS))


def _rank(change: Change) -> tuple[int, int, float]:
    """The whole job first, its numbers as the table of metrics has them; of parts, the largest change first."""
    order = list(METRICS).index(change.metric)
    return _PARTS.index(change.by), order, -abs(change.change or 0.0)


def _rows(before: Baseline, after: Baseline) -> list[_Row]:
    olds, news = _by_key(before.metrics), _by_key(after.metrics)
    return [
        _Row(key, olds.get(key), news.get(key), _comparable(key[1], before.fingerprint, after.fingerprint))
        for key in dict.fromkeys((*olds, *news))
    ]


def _by_key(metrics: Iterable[Metric]) -> dict[_Key, Metric]:
    return {(each.metric, each.by, each.of): each for each in metrics}


def _comparable(by: Part | None, before: Fingerprint, after: Fingerprint) -> bool:
    """Whether parts of that kind are the same ones in both runs."""
    if by == "cause":
        return before.attribution == after.attribution
    if by == "stage":
        return (before.pp, before.virtual) == (after.pp, after.virtual)
    return True


def _kinds(rows: Sequence[_Row]) -> Iterator[list[_Row]]:
    for kind in dict.fromkeys(row.kind for row in rows):
        yield [row for row in rows if row.kind == kind]


def _judged(rows: Sequence[_Row]) -> Iterator[Change]:
    """The changes of what is tested together."""
    tested = [
        (row, found, chance) for row in rows if (found := row.difference) and (chance := _chance(found)) is not None
    ]
    corrected = holm([chance for _, _, chance in tested])
    limits = _limits([chance for _, _, chance in tested])
    told = {
        row.key: (found, chance, limit)
        for (row, found, _), chance, limit in zip(tested, corrected, limits, strict=True)
    }
    for row in rows:
        if row.key in told:
            yield _told(row, *told[row.key])
        else:
            yield _plain(row, None if (found := row.difference) is None else found.value)


def _chance(found: Difference) -> float | None:
    """How likely a change so large in either direction is where there is none; None where nothing tells it."""
    one_way = found.chance(1 if found.value > 0 else -1)
    return None if one_way is None else min(1.0, 2 * one_way)


def _limits(chances: Sequence[float]) -> list[float]:
    """How rare each must be by itself to stand in Holm's correction: he goes from the rarest on until one does not."""
    order = sorted(range(len(chances)), key=lambda k: chances[k])
    limits = [0.0] * len(chances)
    still = 0
    for k in order:
        limits[k] = FALSE_ALARM / (len(chances) - still)
        if chances[k] <= limits[k]:
            still += 1
    return limits


def _told(row: _Row, found: Difference, chance: float, limit: float) -> Change:
    noise = found.noise(limit / 2)
    noise = None if noise is None or not math.isfinite(noise) else max(noise, row.least)
    certain = chance <= FALSE_ALARM and abs(found.value) >= row.least
    return replace(_plain(row, found.value), noise=noise, chance=chance, certain=certain)


def _plain(row: _Row, change: float | None) -> Change:
    metric, by, of = row.key
    return Change(
        metric=metric,
        by=by,
        of=of,
        unit=METRICS[metric].unit,
        before=None if row.before is None else row.before.value,
        after=None if row.after is None else row.after.value,
        change=change,
        noise=None,
        chance=None,
        certain=None,
    )
