"""What every schedule has: orders, a placement, closed forms, memory, and shapes it cannot have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bubblescope.model.actions import Action, Kind, Order
from bubblescope.model.placement import Placement

__all__ = [
    "EVEN",
    "SPLIT",
    "Costs",
    "Family",
    "Form",
    "Memory",
    "OrderOf",
    "Shape",
    "Variant",
    "durations",
]

OrderOf = Callable[[int], Order]
"""The order of a pipeline rank: one textbook order of a whole pipeline, made rank by rank as asked."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The size of a pipeline: p ranks, m micro-batches a step, v stages a rank for each micro-batch.

    `slices` is the number of pieces that a micro-batch is cut into along its sequence. `group` is
    how many micro-batches an interleaved schedule takes through a chunk at a time; None is usual.
    Where a pipeline runs both ways (chimera, dualpipe) a rank holds 2 v stages, v for each way.
    """

    p: int
    m: int
    v: int = 1
    slices: int = 1
    group: int | None = None

    def __post_init__(self) -> None:
        if min(self.p, self.m, self.v) < 1:
            raise ValueError(f"p, m and v must be at least 1, found p={self.p} m={self.m} v={self.v}")
        if self.slices < 1 or (self.group is not None and self.group < 1):
            raise ValueError(f"slices and group must be at least 1, found {self.slices} and {self.group}")

    @property
    def stages(self) -> int:
        """Stages of the whole pipeline, p v."""
        return self.p * self.v


@dataclass(frozen=True, slots=True)
class Costs:
    """Times of one micro-batch on one rank, all of its chunks together, in any unit.

    `forward`, `input` and `weight` are F, I and W; a full backward takes `backward`, I + W.
    `transfer` is the time from rank to rank.
    """

    forward: float = 1.0
    input: float = 1.0
    weight: float = 1.0
    transfer: float = 0.0

    def __post_init__(self) -> None:
        if not all(time >= 0 for time in (self.forward, self.input, self.weight, self.transfer)):
            raise ValueError("times must be at least 0")

    @property
    def backward(self) -> float:
        """Time of a full backward, B = I + W."""
        return self.input + self.weight

    @property
    def total(self) -> float:
        """Time of everything, F + B."""
        return self.forward + self.backward

    def of(self, kind: Kind) -> float:
        """Time of an action of that kind, were there one chunk and one slice."""
        return (self.forward, self.backward, self.input, self.weight)[kind]


SPLIT = frozenset({Kind.F, Kind.I, Kind.W})
"""Kinds of a schedule that splits every backward."""

EVEN = Costs()
"""F = I = W = 1, the times that hand-made zero-bubble schedules are drawn for."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A textbook order of a schedule; `note` tells it from the usual one, which has none."""

    order: OrderOf
    note: str = ""


@dataclass(frozen=True, slots=True)
class Form:
    """A closed form: how it is written, and its value for a shape and costs, None where it does not hold."""

    text: str
    value: Callable[[Shape, Costs], float | None]


@dataclass(frozen=True, slots=True)
class Memory:
    """What a rank keeps: micro-batches whose activations are held at once, and copies of the weights.

    A value is None where no closed form holds; `Simulation` counts the activations of any order.
    """

    text: str
    activations: Callable[[Shape, int], float | None]
    weights_text: str = "1"
    weights: Callable[[Shape, int], float] = lambda shape, rank: 1.0  # noqa: ARG005 - most keep one copy


def _nothing(shape: Shape, rank: int) -> frozenset[Action]:  # noqa: ARG001 - the signature is the families'
    return frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A schedule as data.

    Attributes:
        name: as reports write it.
        summary: what it is, in half a sentence.
        rule: the order of rank r in words.
        source: paper and section, or repository and path.
        variants: every textbook order of a shape, the usual one first. The costs matter only to
            schedules that search for their order.
        idle: closed form of the time that a rank stands idle in the window, the mean over the
            ranks, stages balanced and communication free; None where no exact one is known.
        span: the same with each rank's clock running from its own first action to its own last one
            (D3), where that differs: idle time of the rank that is under way longest.
        layout: how stages are laid over ranks, from p and v.
        limits: why a shape is impossible, or None.
        memory: peak activations and weights.
        aliases: names that the same order goes by elsewhere.
        chunks: v where a user states none.
        together: the actions of a rank that run as one block with the one that follows them.
        asynchronous: whether a step begins before the one before it has drained. Then the window
            of a step is what one more step takes.
        kinds: of its actions.
        cuts: whether its micro-batches are cut into slices.
        grouped: whether it takes micro-batches through its chunks in groups.
    """

    name: str
    summary: str
    rule: str
    source: str
    variants: Callable[[Shape, Costs], Iterator[Variant]]
    layout: Callable[[int, int], Placement]
    limits: Callable[[Shape], str | None]
    memory: Memory
    idle: Form | None = None
    span: Form | None = None
    aliases: tuple[str, ...] = ()
    chunks: int = 1
    together: Callable[[Shape, int], frozenset[Action]] = field(default=_nothing)
    asynchronous: bool = False
    kinds: frozenset[Kind] = frozenset({Kind.F, Kind.B})
    cuts: bool = False
    grouped: bool = False

    def problem(self, shape: Shape) -> str | None:
        """Why a shape is impossible, or None."""
        if shape.slices > 1 and not self.cuts:
            return f"{self.name} takes micro-batches whole, found slices={shape.slices}"
        if shape.group is not None and not self.grouped:
            return f"{self.name} takes no groups, found group={shape.group}"
        return self.limits(shape)

    def orders(self, shape: Shape, costs: Costs = EVEN) -> dict[int, Order]:
        """The usual order of every rank of a pipeline of `shape`."""
        variant = next(self.variants(shape, costs))
        return {rank: variant.order(rank) for rank in range(shape.p)}

    def placement(self, shape: Shape) -> Placement:
        """The stages of each rank, first chunk first."""
        return self.layout(shape.p, shape.v)

    def work(self, shape: Shape, costs: Costs) -> float:
        """Useful time of a rank in a step."""
        return shape.m * (costs.forward if self.kinds == {Kind.F} else costs.total)

    def bubble(self, shape: Shape, costs: Costs = EVEN) -> float | None:
        """Closed form of the bubble as a share of the window (D1), or None where no exact one holds."""
        idle = None if self.idle is None else self.idle.value(shape, costs)
        return None if idle is None or not self.work(shape, costs) else idle / (idle + self.work(shape, costs))


def durations(orders: Iterable[Order], shape: Shape, costs: Costs) -> Mapping[Action, float]:
    """The time of every action where all stages are alike."""
    share = 1 / (shape.v * shape.slices)
    of = [costs.of(kind) * share for kind in Kind]
    return {action: of[action.kind] for order in orders for action in order}
