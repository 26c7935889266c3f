"""Replay: what waits for what, and what happens where nothing can go on."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.model.actions import Action, Kind
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import find
from bubblescope.schedules.replay import Deadlock, replay, source_of
from tests.schedules.helpers import every_variant, order, shapes


def timed(orders, last_stage: int, *, transfer: float = 0.0, **lengths) -> dict[str, tuple[float, float]]:
    """When each action runs, by its text; lengths by kind, 1 where none is given."""
    orders = {rank: order(text) for rank, text in orders.items()}
    durations = {a: lengths.get(a.kind.name, 1.0) for actions in orders.values() for a in actions}
    times = replay(orders, durations, last_stage=last_stage, transfer=transfer)
    assert set(times.start) == set(times.end) == set(durations)
    return {str(a): (times.start[a], times.end[a]) for a in times.start}


def test_two_ranks_by_hand():
    """Forwards go down, backwards come back, each rank does one thing at a time."""
    found = timed({0: "0F0 F1 B0 B1", 1: "1F0 B0 F1 B1"}, 1, F=1.0, B=2.0)
    assert found == {
        "0F0": (0, 1),
        "0F1": (1, 2),
        "1F0": (1, 2),
        "1B0": (2, 4),
        "1F1": (4, 5),
        "1B1": (5, 7),
        "0B0": (4, 6),
        "0B1": (7, 9),
    }


def test_transfers_cost_between_ranks_only():
    """Output on another rank arrives later by the transfer, output of the same rank at once."""
    found = timed({0: "0F0 2B0 0B0", 1: "1F0 B0", 2: "2F0"}, 2, transfer=10.0)
    assert found["1F0"] == (11, 12)
    assert found["2F0"] == (22, 23)
    assert found["2B0"] == (33, 34)
    assert found["1B0"] == (44, 45)
    assert found["0B0"] == (55, 56)
    same = timed({0: "0F0 1F0 1B0 0B0"}, 1, transfer=10.0)
    assert same["0B0"] == (3, 4)


def test_split_backward():
    """An input gradient releases the stage before; a weight gradient waits for its own input gradient only."""
    found = timed({0: "0F0 I0 W0", 1: "1F0 I0 W0"}, 1, I=2.0, W=3.0)
    assert found["1I0"] == (2, 4)
    assert found["0I0"] == (4, 6)
    assert found["1W0"] == (4, 7)
    assert found["0W0"] == (6, 9)


@pytest.mark.parametrize(
    ("action", "known", "source"),
    [
        ("0F3", "0F3 1F3", None),
        ("2F3", "1F3 1F2 2F3", "1F3"),
        ("2F3", "1F2", None),
        ("1B3", "1F3 2B3", "2B3"),
        ("1B3", "1F3 2I3", "2I3"),
        ("1I3", "2B3 2W3", "2B3"),
        ("1I3", "2W3", "2W3"),
        ("2B3", "2F3 3B3", "2F3"),
        ("2I3", "2F3", "2F3"),
        ("2B3", "2B2", None),
        ("1W3", "1I3 2B3", "1I3"),
        ("1W3", "2W3", "2W3"),
    ],
)
def test_what_an_action_needs(action, known, source):
    """The input of an action, three stages in the pipeline, among the actions that are known."""
    found = source_of(Action.parse(action), 2, dict.fromkeys(order(known)))
    assert (str(found) if found else None) == source


def test_unseen_ranks_constrain_nothing():
    """What would wait for a rank that nobody recorded starts as soon as its own rank is free."""
    found = timed({0: "0F0 F1 B0 B1", 2: "2F0 B0 F1 B1"}, 2, F=1.0, B=2.0)
    assert found["2F0"] == (0, 1)
    assert found["0B0"] == (2, 4)
    whole = timed({0: "0F0 F1 B0 B1", 1: "1F0 F1 B0 B1", 2: "2F0 B0 F1 B1"}, 2, F=1.0, B=2.0)
    assert whole["2F0"] == (2, 3)


def test_nothing_to_replay():
    """No rank, or ranks without actions, last no time."""
    assert replay({}, {}, last_stage=0).makespan == 0
    assert replay({0: (), 1: ()}, {}, last_stage=1).makespan == 0


def waiting_of(orders, last_stage: int) -> set[tuple[str, str]]:
    """Which action waits for which, in an order that cannot run."""
    orders = {rank: order(text) for rank, text in orders.items()}
    durations = {a: 1.0 for actions in orders.values() for a in actions}
    with pytest.raises(Deadlock) as caught:
        replay(orders, durations, last_stage=last_stage)
    pairs = {(str(action), str(source)) for action, source in caught.value.waiting}
    assert set(str(caught.value).split("; ")) == {f"{action} waits for {source}" for action, source in pairs}
    return pairs


def test_two_ranks_wait_for_each_other():
    """Each side of a deadlock is named with what it waits for; who could run has run."""
    assert waiting_of({0: "0F0 B0 F1 B1", 1: "1F0 F1 B0 B1"}, 1) == {("0B0", "1B0"), ("1F1", "0F1")}


def test_a_rank_waits_for_itself():
    """A backward before its own forward on the last stage never runs."""
    assert waiting_of({0: "0B0 F0"}, 0) == {("0B0", "0F0")}


def test_ranks_behind_a_deadlock_are_named_too():
    """Every rank that stands still is in the answer, also one that only waits for the two that block each other."""
    found = waiting_of({0: "0F0 B0 F1 B1", 1: "1F0 F1 B0 B1", 2: "2F1 F0 B0 B1"}, 2)
    assert found == {("0B0", "1B0"), ("1F1", "0F1"), ("2F1", "1F1")}


def test_a_deadlock_survives_pickle():
    """A deadlock says the same after a process border."""
    error = Deadlock(((Action.parse("0B0"), Action.parse("1B0")),))
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(back), back.waiting) == (str(error), error.waiting) == ("0B0 waits for 1B0", error.waiting)


def test_no_textbook_order_deadlocks():
    """Every variant of every schedule can run, for every shape of a grid."""
    for shape in shapes(ps=range(1, 9), ms=[*range(1, 12), 17]):
        for _, orders in every_variant(shape):
            durations = {a: 1.0 for actions in orders.values() for a in actions}
            assert replay(orders, durations, last_stage=shape.stages - 1).makespan >= 2 * shape.m * shape.v


@settings(deadline=None)
@given(st.data())
def test_no_action_starts_early_or_late(data):
    """Each action starts at the later of its rank being free and its input being there, whatever the durations."""
    shape = Shape(data.draw(st.integers(1, 5)), data.draw(st.integers(1, 8)), data.draw(st.integers(1, 3)))
    _, orders = data.draw(st.sampled_from(list(every_variant(shape))))
    random = data.draw(st.randoms(use_true_random=False))
    durations = {a: random.uniform(0.0, 5.0) for actions in orders.values() for a in actions}
    transfer = random.uniform(0.0, 3.0)
    times = replay(orders, durations, last_stage=shape.stages - 1, transfer=transfer)
    rank_of = {a: rank for rank, actions in orders.items() for a in actions}
    for rank, actions in orders.items():
        for before, action in zip((None, *actions), actions, strict=False):
            source = source_of(action, shape.stages - 1, rank_of)
            free = times.end[before] if before else 0.0
            arrival = times.end[source] + (transfer if rank_of[source] != rank else 0.0) if source else 0.0
            assert times.start[action] == max(free, arrival)
            assert times.end[action] == times.start[action] + durations[action]


class Counted(dict):
    """Durations that count how often each is read."""

    def __init__(self, *args):
        super().__init__(*args)
        self.reads = Counter()

    def __getitem__(self, key):
        self.reads[key] += 1
        return super().__getitem__(key)


class Turned(tuple):
    """An order that counts how often an action is looked at by its position."""

    __slots__ = ()
    looks = 0

    def __getitem__(self, key):
        Turned.looks += 1
        return super().__getitem__(key)


@pytest.mark.parametrize("shape", [Shape(8, 50), Shape(8, 1000), Shape(64, 200)])
def test_the_work_grows_with_the_actions_only(shape, monkeypatch):
    """Each action runs once and is looked at once more at most, however many micro-batches and ranks there are."""
    monkeypatch.setattr(Turned, "looks", 0)
    orders = {rank: Turned(actions) for rank, actions in find("1f1b").orders(shape).items()}
    count = 2 * shape.m * shape.p
    durations = Counted({a: 1.0 if a.kind == Kind.F else 2.0 for actions in orders.values() for a in actions})
    assert replay(orders, durations, last_stage=shape.p - 1).makespan == 3 * (shape.m + shape.p - 1)
    assert durations.reads == Counter(dict.fromkeys(durations, 1))
    assert count <= Turned.looks <= 2 * count
