"""What a what-if is called, and what it takes for granted."""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.forecast.target import Target
from bubblescope.model.actions import Kind
from bubblescope.model.changes import Changes, factor

__all__ = ["assumptions", "title"]

_WITHOUT = {
    "imbalance": "stages equally heavy",
    "straggler": "no slow rank",
    "jitter": "actions that do not vary",
    "data": "micro-batches of equal length",
    "pauses": "no pauses of forwards",
    "p2p": "transfers that cost nothing",
    "host": "no gaps of the host",
    "dp": "gradients reduced beside the work",
}


def title(changes: Changes, now: Target, to: Target) -> str:
    """Half a sentence: what the run is like then."""
    return ", ".join(_parts(changes, now, to))


def _parts(changes: Changes, now: Target, to: Target) -> Iterator[str]:
    yield from _structure(changes, now, to)
    if to.layers is not None:
        yield f"layers {' + '.join(map(str, to.layers))}"
    if changes.p2p is not None:
        yield "free transfers" if changes.p2p == 0 else f"transfers {factor(changes.p2p)} times as long"
    if changes.overlap:
        yield "transfers beside the work"
    if changes.even:
        yield "every action as long as the mean of its kind"
    if changes.recompute is not None:
        yield f"recomputation {changes.recompute}"
    yield from (text for name, text in _WITHOUT.items() if name in changes.without)


def _structure(changes: Changes, now: Target, to: Target) -> Iterator[str]:
    shape = to.shape
    if changes.schedule is not None or to.family is not now.family:
        yield to.family.name if to.family is not None else "another schedule"
    if shape.v != now.shape.v:
        yield f"{shape.v} {'stage' if shape.v == 1 else 'stages'} a rank"
    if changes.tp is not None:
        free = " with free collectives" if now.tp == 1 and changes.tp > 1 else ""
        yield f"tp {changes.tp}{free}, so pp {shape.p}"
    if changes.microbatch is not None:
        yield f"micro-batches {factor(changes.microbatch)} times as large"
    if shape.m != now.shape.m:
        yield f"m = {shape.m}"


def assumptions(changes: Changes, now: Target, to: Target, *, splits: bool, replicas: int) -> tuple[str, ...]:
    """Everything that is taken for granted; `splits` is whether the measured run splits its backwards."""
    return (
        *_of_structure(now, to, splits=splits),
        *_of_layers(changes, now, to),
        *_of_work(changes),
        *_of_troubles(changes, replicas),
    )


def _of_structure(now: Target, to: Target, *, splits: bool) -> Iterator[str]:
    if to.orders is not None:
        yield "ranks follow the order that the schedule has in its source"
    if to.family is not now.family:
        yield "sends of another schedule do not hold their rank"
    if to.family is not None and Kind.I in to.family.kinds and not splits:
        yield "half of a backward is its weight gradient, as the run does not split it"
    if to.data != now.data:
        like = ", in micro-batches like the measured ones" if to.data > now.data else ""
        yield f"a step has {to.data / now.data:g} times the data{like}"
    if to.size != 1:
        yield "work and transfers grow with the size of a micro-batch, gaps of the host do not"
    if to.tp != now.tp:
        yield from _of_tensors(now.tp or 1, to.tp or 1)


def _of_tensors(before: int, after: int) -> Iterator[str]:
    yield "work divides evenly over tensor-parallel ranks"
    if before == 1:
        yield "tensor parallelism communicates for nothing, as the run shows none to go by"
    elif after > 1:
        yield "its collectives move (t-1)/t of their data, as rings do, at the measured speed"


def _of_layers(changes: Changes, now: Target, to: Target) -> Iterator[str]:
    if to.layers is not None:
        yield "layers move with their work; embedding, head and loss stay at the ends"
        if changes.layers is None:
            yield "layers are spread as evenly as their number allows"
    elif to.stages != now.stages:
        yield "the work of a stage is spread evenly over its layers"


def _of_work(changes: Changes) -> Iterator[str]:
    if changes.recompute == "off":
        yield "every backward runs a whole forward again now, and memory suffices without it"
    elif changes.recompute == "on":
        yield "every backward runs a whole forward again, at the speed of the first"


def _of_troubles(changes: Changes, replicas: int) -> Iterator[str]:
    if "imbalance" in changes.without:
        yield "work can be divided among stages to any fraction, whatever the layers"
    if "straggler" in changes.without and replicas == 1:
        yield "with one replica a slow rank looks like a heavy stage, which stays"
    if changes.p2p is not None:
        yield "messages still wait until both sides are there"
    if changes.overlap:
        yield "receives are posted ahead, and no send holds its rank"
    if "dp" in changes.without:
        yield "all of the exposed reduction of gradients outside the pipeline is hidden"
