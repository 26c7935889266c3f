"""Links between clocks of known truth, as a job would leave them.

What happens is drawn on the true clock first; then every rank writes it down by its own clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from bubblescope.align.clocks import Links

__all__ = ["EPOCH", "MS", "SECOND", "US", "World"]

US, MS, SECOND = 1_000, 1_000_000, 1_000_000_000
EPOCH = 1_700_000_000 * SECOND


@dataclass(eq=False)
class World:
    """A rank a clock: `skew` ns at the beginning and `drift` ppm from then on, over `seconds`.

    A message or collective takes `latency` ns after both sides are there, plus a little that is drawn. Each side is up
    to `spin` ns early.
    """

    skew: Sequence[int]
    drift: Sequence[float] = ()
    seconds: float = 10.0
    latency: int = 30 * US
    spin: int = 20 * MS
    seed: int = 0
    rows: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)
        self.drift = self.drift or [0.0] * len(self.skew)

    def shown(self, rank: int, times: np.ndarray) -> np.ndarray:
        """What the clock of a rank shows at true moments that count from the beginning."""
        moments = np.asarray(times, dtype=np.float64)
        late = np.rint(moments * (1 + self.drift[rank] * 1e-6)).astype(np.int64)
        return EPOCH + self.skew[rank] + late

    def moments(self, count: int) -> np.ndarray:
        """True moments all over the recording."""
        return np.sort(self.rng.uniform(0, self.seconds * SECOND, count))

    def travel(self, count: int) -> np.ndarray:
        """How long messages take: mostly hardly more than the latency."""
        return self.latency + self.rng.exponential(0.3 * self.latency, count)

    def messages(self, source: int, target: int, count: int, *, both: bool = True) -> World:
        """Messages of which either side may be early; where not `both`, the sender does not wait."""
        moment = self.moments(count)
        sent, asked = (moment + self.rng.uniform(0, self.spin, count) for _ in range(2))
        if both:
            received = np.maximum(sent, asked) + self.travel(count)
            gone = received + self.rng.uniform(0, 5 * US, count)
        else:
            gone = sent + self.rng.uniform(0, 5 * US, count)
            received = np.maximum(sent + self.travel(count), asked + 2 * US)
        return self.add(source, target, (sent, gone, asked, received), both=both, together=False)

    def collectives(self, ranks: Sequence[int], count: int, *, jitter: float = 5 * US) -> World:
        """Collectives of several ranks, with a link for every pair; their ends differ by the jitter (one sigma)."""
        moment = self.moments(count)
        arrived = {rank: moment + self.rng.uniform(0, self.spin, count) for rank in ranks}
        over = np.max(list(arrived.values()), axis=0) + self.travel(count) + 4 * jitter
        ends = {rank: over + np.clip(self.rng.normal(0, jitter, count), -4 * jitter, 4 * jitter) for rank in ranks}
        for i, one in enumerate(ranks):
            for other in ranks[i + 1 :]:
                moments = (arrived[one], ends[one], arrived[other], ends[other])
                self.add(one, other, moments, both=True, together=True)
        return self

    def add(self, first: int, second: int, moments: Iterable[np.ndarray], *, both: bool, together: bool) -> World:
        """Links between intervals at true moments: start and end of the first, start and end of the second."""
        times = [self.shown(rank, m) for rank, m in zip((first, first, second, second), moments, strict=True)]
        count = len(times[0])
        said = (np.full(count, first), np.full(count, second), *times, np.full(count, both), np.full(count, together))
        self.rows.append(said)
        return self

    def links(self, *, wrong: float = 0.0, by: int = MS) -> Links:
        """All links; a share of them has an interval of the second rank that is off, either way."""
        links = Links(*(np.concatenate(columns) for columns in zip(*self.rows, strict=True)))
        off = (self.rng.random(len(links)) < wrong) * self.rng.choice([-by, by], len(links))
        return links.replace(start_second=links.start_second + off, end_second=links.end_second + off)

    def off(self, fit) -> np.ndarray:
        """How far the clock of each rank is off at the worst moment, once corrected, against that of rank 0."""
        ends = np.array([0.0, self.seconds * SECOND])
        right = self.shown(0, ends)
        return np.array([np.abs(fit.corrected(r, self.shown(r, ends)) - right).max() for r in range(len(self.skew))])
