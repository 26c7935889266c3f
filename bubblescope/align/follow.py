"""Which chunk a forward belongs to, where no label tells: micro-batches are followed from stage to stage.

A rank with several chunks runs their forwards in turn, and nothing in the trace of one rank says which
is whose. Messages do: the k-th forward output that rank a sends to rank b is the input of the k-th
forward on b that takes its input from a. So every micro-batch leaves a chain of forwards behind, from
the one without an input to the one without an output, and the place in the chain is the stage.

Where a forward takes its input from follows from its own backward, which sends the gradient back there;
where a backward takes its own from follows from its forward. So sends alone tell all. A send belongs to
an action that ran before it was posted and has not sent yet. If two have not, and only one send follows,
the layout decides: with stages that go round the ranks, the first rank's forwards always send and so do
the last one's backwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from bubblescope.model.actions import Kind
from bubblescope.model.columns import Ints
from bubblescope.model.timeline import Messages, RankTimeline

__all__ = ["Told", "follow"]

NONE = -1
FITS = 0.95
"""Share of the messages between backwards that must agree with what the forwards told."""

Node = tuple[int, int]
"""An action: its position in the pipeline and its row in that rank's `Actions`."""
Line = Sequence[RankTimeline]
"""The ranks of a pipeline by position, one a position."""
Rule = Callable[[int, int], frozenset[int]]
"""For a position of so many, the kinds of which every action sends."""

_FORWARD = (Kind.F,)
_BACKWARD = (Kind.B, Kind.I)


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """The actions of a position in a step: their kinds as they ran, and stage and micro-batch of each.

    `number` is that of the step; None where it may be any.
    """

    number: int | None
    kind: Ints
    stage: Ints
    microbatch: Ints


_FORWARD = (Kind.F,)
_BACKWARD = (Kind.B, Kind.I)


@dataclass(frozen=True, slots=True)
class Identities:
    """Stage and micro-batch of the actions of each position's rank, by row; -1 where nothing told."""

    stage: Sequence[Ints]
    microbatch: Sequence[Ints]


def follow(line: Line, place: Mapping[int, int]) -> list[list[Told]] | None:
    """Stages and micro-batches of the actions of a pipeline whose forwards are numbered but not told apart.

    Args:
        line: timelines by position, every one recorded; a backward has the number of its forward.
        place: the position of every rank that a message may name.

    Returns:
        What each position did in every step that is whole, by position; None where the messages contradict
        each other, whichever way the stages are laid out.
    """
    numbers = sorted(set.intersection(*(set(t.steps.number.tolist()) for t in line)))
    for rule in (_round, _nobody):
        told = [step for n in numbers if (step := _follow_step(_Step.of(line, place, n, rule)))]
        if told:
            return [list(of_position) for of_position in zip(*told, strict=True)]
    return None


def _round(position: int, positions: int) -> frozenset[int]:
    """Stages that go round the ranks: only the first stage's backward and the last one's forward do not send."""
    always = set[int]()
    if position < positions - 1:
        always |= set(_FORWARD)
    if position > 0:
        always |= set(_BACKWARD)
    return frozenset(always)


def _nobody(position: int, positions: int) -> frozenset[int]:  # noqa: ARG001 - a rule that says nothing
    """Nothing is known of the layout: of several that have not sent, the latest did."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class _Step:
    """One step of a pipeline, by position: who sends to whom, and which forward and backward belong together.

    `sound` is false where a send belongs to no action.
    """

    number: int
    line: Line
    rows: Sequence[Ints]
    target: Sequence[Mapping[int, int]]  # row of an action -> position that it sends to
    partner: Sequence[Mapping[int, int]]  # row -> row of the backward (forward) of its number
    forward: Sequence[Mapping[int, int]]  # row -> row of the forward of its number
    sound: bool

    @classmethod
    def of(cls, line: Line, place: Mapping[int, int], number: int, rule: Rule) -> _Step:
        """Work out who sends to whom, under a rule."""
        here = [int(np.searchsorted(t.steps.number, number)) for t in line]
        rows = [np.flatnonzero(t.actions.step == k) for t, k in zip(line, here, strict=True)]
        senders = [
            _senders(t, k, r, rule(at, len(line))) for at, (t, k, r) in enumerate(zip(line, here, rows, strict=True))
        ]
        return cls(
            number=number,
            line=line,
            rows=rows,
            target=[_targets(line[at], at, len(line), place, sends or []) for at, sends in enumerate(senders)],
            partner=[_partners(t, r) for t, r in zip(line, rows, strict=True)],
            forward=[_forwards(t, r) for t, r in zip(line, rows, strict=True)],
            sound=None not in senders,
        )

    def source(self, at: int, row: int) -> int:
        """The position that an action takes its input from: where its partner sends to; NONE where that is local."""
        return self.target[at].get(self.partner[at].get(row, NONE), NONE)

    def of_kind(self, at: int, kinds: Sequence[Kind]) -> list[int]:
        """Rows of a position's actions of some kinds, in order."""
        kind = self.line[at].actions.kind
        return [row for row in self.rows[at].tolist() if kind[row] in kinds]

    def time(self, node: Node) -> int:
        """When an action began."""
        at, row = node
        return int(self.line[at].actions.start[row])


def _partners(timeline: RankTimeline, rows: Ints) -> dict[int, int]:
    """For each forward the backward that sends its gradient, and the other way round."""
    a = timeline.actions
    back = {n: r for n, k, r in zip(a.microbatch[rows], a.kind[rows], rows.tolist(), strict=True) if k in _BACKWARD}
    pairs = [
        (r, back[n])
        for n, k, r in zip(a.microbatch[rows], a.kind[rows], rows.tolist(), strict=True)
        if k == Kind.F and n in back
    ]
    return dict(pairs) | {b: f for f, b in pairs}


def _forwards(timeline: RankTimeline, rows: Ints) -> dict[int, int]:
    """For each action the forward of its number, if that is there."""
    a = timeline.actions
    numbered = list(zip(rows.tolist(), a.kind[rows].tolist(), a.microbatch[rows].tolist(), strict=True))
    forward = {n: row for row, kind, n in numbered if kind == Kind.F}
    return {row: forward[n] for row, _, n in numbered if n in forward}


_Batch = tuple[Sequence[int], Sequence[int]]
"""Actions, and as many sends that were posted together behind them."""


def _senders(timeline: RankTimeline, step: int, rows: Ints, always: frozenset[int]) -> list[_Batch] | None:
    """Which actions of a step send, batch by batch; None where a send belongs to none."""
    kind, m = timeline.actions.kind, timeline.messages
    sends = np.flatnonzero((m.step == step) & (m.direction == Messages.SEND))
    result: list[_Batch] = []
    waiting: list[int] = []
    acted = iter(rows.tolist())
    for after, group in groupby(sends.tolist(), key=lambda row: int(m.after[row])):
        for row in acted:
            if kind[row] != Kind.W:
                waiting.append(row)
            if row == after:
                break
        posted = list(group)
        must = [row for row in waiting if kind[row] in always]
        senders = must if len(must) == len(posted) else waiting[-len(posted) :]
        if len(senders) < len(posted):
            return None
        result.append((senders, posted))
        waiting.clear()
    return result


def _targets(
    timeline: RankTimeline, at: int, positions: int, place: Mapping[int, int], batches: Sequence[_Batch]
) -> dict[int, int]:
    """The position that each sender's message goes to: as named, or else to the next stage's, or the one before.

    A batch lists its sends by peer and not by action: those that go where they usually go, do.
    """
    result: dict[int, int] = {}
    for senders, posted in batches:
        peers = [place.get(int(peer), NONE) for peer in timeline.messages.peer[list(posted)]]
        usual = [(at + (1 if timeline.actions.kind[row] == Kind.F else -1)) % positions for row in senders]
        known = NONE not in peers and sorted(usual) != sorted(peers)
        result |= zip(senders, peers if known else usual, strict=True)
    return result


def _follow_step(step: _Step) -> list[Told] | None:
    """What every position did in a step; None where it is not whole or contradicts itself."""
    after = _successors(step, _FORWARD) if step.sound else None
    if after is None:
        return None
    chains = _joined(step, _chains(step, after))
    lengths = {len(chain) for chain in chains}
    if len(lengths) != 1 or min(lengths) < len(step.line):
        return None
    of_forward = {node: (stage, i) for i, chain in enumerate(chains) for stage, node in enumerate(chain)}
    nodes = [(at, row) for at, rows in enumerate(step.rows) for row in rows.tolist()]
    identity = {(at, row): of_forward.get((at, step.forward[at].get(row, NONE))) for at, row in nodes}
    known = {node: found for node, found in identity.items() if found is not None}
    if len(known) < len(nodes) or not _agree(step, known):
        return None
    return [_told(step, at, [known[at, row] for row in rows.tolist()]) for at, rows in enumerate(step.rows)]


def _told(step: _Step, at: int, identities: Sequence[tuple[int, int]]) -> Told:
    stage, microbatch = np.array(identities, np.int64).reshape(-1, 2).T
    return Told(step.number, step.line[at].actions.kind[step.rows[at]], stage, microbatch)


def _successors(step: _Step, kinds: Sequence[Kind]) -> dict[Node, Node] | None:
    """The action that each action of some kinds hands its output to; None where the numbers of both do not match."""
    result: dict[Node, Node] = {}
    takers: defaultdict[tuple[int, int], list[Node]] = defaultdict(list)
    givers: defaultdict[tuple[int, int], list[Node]] = defaultdict(list)
    for at in range(len(step.line)):
        for row in step.of_kind(at, kinds):
            source, target = step.source(at, row), step.target[at].get(row, NONE)
            if source != NONE:
                takers[source, at].append((at, row))
            if target != NONE:
                givers[at, target].append((at, row))
    if {edge: len(nodes) for edge, nodes in givers.items()} != {edge: len(nodes) for edge, nodes in takers.items()}:
        return None
    for edge, nodes in givers.items():
        result |= zip(nodes, takers[edge], strict=True)
    return result


def _chains(step: _Step, after: Mapping[Node, Node]) -> list[list[Node]]:
    """Forwards that follow each other through messages, each chain from one without an input."""
    begun = set(after.values())
    chains = []
    for at in range(len(step.line)):
        for row in step.of_kind(at, _FORWARD):
            if (at, row) in begun:
                continue
            chain: list[Node] = [(at, row)]
            while chain[-1] in after:
                chain.append(after[chain[-1]])
            chains.append(chain)
    return chains


def _joined(step: _Step, chains: Sequence[list[Node]]) -> list[list[Node]]:
    """Join chains where a stage and the next one lie on the same rank, so that no message passes between them.

    On such a rank the k-th chain that ends there goes on as the k-th that begins there, if each begins
    after the other's end. On the rank that holds the first and the last stage it is the other way round.
    """
    ends: defaultdict[int, list[list[Node]]] = defaultdict(list)
    starts: defaultdict[int, list[list[Node]]] = defaultdict(list)
    for chain in sorted(chains, key=lambda chain: step.time(chain[-1])):
        ends[chain[-1][0]].append(chain)
    for chain in sorted(chains, key=lambda chain: step.time(chain[0])):
        starts[chain[0][0]].append(chain)
    onward: dict[int, list[Node]] = {}
    for at, ended in ends.items():
        begun = starts.get(at, [])
        late = all(step.time(a[-1]) < step.time(b[0]) for a, b in zip(ended, begun, strict=False))
        if len(ended) == len(begun) and late:
            onward |= {id(a): b for a, b in zip(ended, begun, strict=True)}
    follows = {id(chain) for chain in onward.values()}
    result = []
    for chain in chains:
        if id(chain) not in follows:
            whole, last = list(chain), chain
            while id(last) in onward:
                last = onward[id(last)]
                whole += last
            result.append(whole)
    return sorted(result, key=lambda chain: (chain[0][0], step.time(chain[0])))


def _agree(step: _Step, identity: Mapping[Node, tuple[int, int]]) -> bool:
    """Whether the messages between backwards pass between neighbouring stages of one micro-batch."""
    after = _successors(step, _BACKWARD)
    if after is None:
        return False
    agreed = [
        identity[node][0] - 1 == identity[to][0] and identity[node][1] == identity[to][1] for node, to in after.items()
    ]
    return not agreed or float(np.mean(agreed)) >= FITS
