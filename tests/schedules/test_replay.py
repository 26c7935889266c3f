"""Replay: what waits for what, what may delay it, and what happens where nothing can go on."""

from __future__ import annotations

import pickle
import sys
from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.model.actions import Action, Kind
from bubblescope.schedules.family import EVEN, Shape
from bubblescope.schedules.registry import FAMILIES, find
from bubblescope.schedules.replay import NO_DELAYS, Deadlock, Delays, by_edge, replay, source_of
from tests.schedules.helpers import blocks, every_variant, order, run, shapes, sizes

LENGTHS = {"F": 1.0, "B": 2.0, "I": 1.0, "W": 1.0}


def timed(orders, last_stage, *, together="", delays=NO_DELAYS, **lengths) -> dict[str, tuple[float, float]]:
    """When each action runs, by its text; `lengths` of a kind or of one action where they are not the usual ones."""
    orders = {rank: order(text) for rank, text in orders.items()}
    given = LENGTHS | lengths
    durations = {a: given.get(str(a), given[a.kind.name]) for actions in orders.values() for a in actions}
    times = replay(orders, durations, last_stage=last_stage, together=order(together), delays=delays)
    assert set(times.start) == set(times.end) == set(durations)
    return {str(a): (times.start[a], times.end[a]) for a in times.start}


def by_action(times) -> dict[Action, float]:
    """Times by action, from times by its text."""
    return {Action.parse(text): time for text, time in times.items()}


def test_two_ranks_by_hand():
    """Forwards go down, backwards come back, each rank does one thing at a time."""
    found = timed({0: "0F0 F1 B0 B1", 1: "1F0 B0 F1 B1"}, 1)
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
    found = timed({0: "0F0 2B0 0B0", 1: "1F0 B0", 2: "2F0"}, 2, delays=Delays(10.0), B=1.0)
    assert found["1F0"] == (11, 12)
    assert found["2F0"] == (22, 23)
    assert found["2B0"] == (33, 34)
    assert found["1B0"] == (44, 45)
    assert found["0B0"] == (55, 56)
    same = timed({0: "0F0 1F0 1B0 0B0"}, 1, delays=Delays(10.0), B=1.0)
    assert same["0B0"] == (3, 4)


def test_transfers_by_edge():
    """Each pair of ranks may take its own time, one way or the other; a pair that is not told takes none."""
    orders = {0: "0F0 B0", 1: "1F0 B0", 2: "2F0 B0"}
    edges = {(0, 1): 1.0, (1, 2): 2.0, (2, 1): 3.0, (1, 0): 4.0, (2, 0): 50.0}
    read = {rank: order(text) for rank, text in orders.items()}
    transfers = by_edge(read, edges, 2)
    assert {str(action): time for action, time in transfers.items()} == {"1F0": 1, "2F0": 2, "1B0": 3, "0B0": 4}
    found = timed(orders, 2, delays=Delays(transfers))
    assert found == {"0F0": (0, 1), "1F0": (2, 3), "2F0": (5, 6), "2B0": (6, 8), "1B0": (11, 13), "0B0": (17, 19)}
    del edges[1, 2], edges[1, 0]
    assert timed(orders, 2, delays=Delays(by_edge(read, edges, 2)))["0B0"] == (11, 13)


def test_no_edge_inside_a_rank():
    """What a rank hands to itself is no transfer, and what nobody was seen to send is none either."""
    folded = {0: order("0F0 3F0 B0 0B0"), 1: order("1F0 2F0 B0 1B0")}
    assert set(by_edge(folded, {(0, 1): 1.0, (1, 0): 1.0}, 3)) == set(order("1F0 3F0 2B0 0B0"))
    assert by_edge({1: order("1F0 B0")}, {(0, 1): 1.0}, 2) == {}


def test_receives_that_are_posted_late():
    """A transfer begins when both sides are there: a receive is posted as long after the rank's last action as told."""
    orders = {0: "0F0 F1", 1: "1F0 F1"}
    slow = {"1F0": 3.0, "1F1": 3.0}
    ahead = timed(orders, 2, delays=Delays(2.0), **slow)
    assert (ahead["1F0"], ahead["1F1"]) == ((3, 6), (6, 9))  # 0F1 came while 1F0 ran
    at_once = timed(orders, 2, delays=Delays(2.0, posted={}), **slow)
    assert (at_once["1F0"], at_once["1F1"]) == ((3, 6), (8, 11))
    late = timed(orders, 2, delays=Delays(2.0, posted=by_action({"1F0": 4, "1F1": 1, "0F0": 9})), **slow)
    assert late == {"0F0": (0, 1), "0F1": (1, 2), "1F0": (6, 9), "1F1": (12, 15)}


def test_a_host_that_is_late():
    """An action starts as long after its rank and its input are there as the host takes."""
    late = Delays(host=by_action({"0F0": 2, "1F0": 4, "0B0": 0.5}))
    found = timed({0: "0F0 B0", 1: "1F0 B0"}, 1, delays=late)
    assert found == {"0F0": (2, 3), "1F0": (7, 8), "1B0": (8, 10), "0B0": (10.5, 12.5)}
    assert timed({0: "0F0 F1 F2"}, 1, delays=Delays(host=by_action({"0F1": 5})))["0F2"] == (7, 8)


def test_sends_that_hold_their_rank():
    """A blocking send keeps its rank until the receiver has it, which must have ended what it did before."""
    orders = {0: "0F0 F1 B0 B1", 1: "1F0 B0 F1 B1"}
    assert timed(orders, 1, delays=Delays(1.0, blocking=True)) == {
        "0F0": (0, 1),
        "1F0": (2, 3),
        "0F1": (2, 3),  # 0F0 has arrived
        "1B0": (3, 5),
        "0B0": (6, 8),  # 0F1 and 1B0 have arrived
        "1F1": (6, 7),
        "1B1": (7, 9),
        "0B1": (10, 12),
    }
    assert timed(orders, 1, delays=Delays(1.0))["0B1"] == (9, 11)


def test_a_blocking_send_waits_for_a_late_receive():
    """Where the receive is posted late, the sender stands still as long."""
    late = Delays(1.0, posted=by_action({"1F0": 5}), blocking=True)
    found = timed({0: "0F0 F1", 1: "1F0 F1"}, 2, delays=late)
    assert found == {"0F0": (0, 1), "0F1": (6, 7), "1F0": (6, 7), "1F1": (8, 9)}
    free = timed({0: "0F0 F1", 1: "1F0 F1"}, 2, delays=Delays(1.0, posted=by_action({"1F0": 5})))
    assert free["0F1"] == (1, 2)


def test_split_backward():
    """An input gradient releases the stage before; a weight gradient waits for its own input gradient only."""
    found = timed({0: "0F0 I0 W0", 1: "1F0 I0 W0"}, 1, I=2.0, W=3.0)
    assert found["1I0"] == (2, 4)
    assert found["0I0"] == (4, 6)
    assert found["1W0"] == (4, 7)
    assert found["0W0"] == (6, 9)


def test_a_block_hands_on_at_its_end():
    """What runs together starts together, lasts as long as both, and hands on both outputs at its end."""
    orders = {0: "0F0 F1 B0", 1: "1F0 B0 F1"}
    apart = timed(orders, 1)
    assert (apart["1B0"], apart["1F1"], apart["0B0"]) == ((2, 4), (4, 5), (4, 6))
    assert timed(orders, 1, together="1B0") == {
        "0F0": (0, 1),
        "0F1": (1, 2),
        "1F0": (1, 2),
        "1B0": (2, 5),
        "1F1": (2, 5),
        "0B0": (5, 7),
    }


def test_a_block_waits_for_both_inputs():
    """The first of two actions that run together starts no sooner than the input of the second is there."""
    orders = {0: "0F0 F1 B0", 1: "1F0 B0 F1"}
    apart = timed(orders, 1, **{"0F1": 9.0})
    assert (apart["1B0"], apart["1F1"], apart["0B0"]) == ((2, 4), (10, 11), (10, 12))
    found = timed(orders, 1, together="1B0", **{"0F1": 9.0})
    assert (found["1B0"], found["1F1"], found["0B0"]) == ((10, 13), (10, 13), (13, 15))
    moved = timed(orders, 1, together="1B0", delays=Delays(4.0))
    assert (moved["1F0"], moved["1B0"], moved["0B0"]) == ((5, 6), (6, 9), (13, 15))


def test_a_late_host_holds_the_whole_block():
    """A block starts when its first action does."""
    late = Delays(host=by_action({"1B0": 1}))
    found = timed({0: "0F0 F1 B0", 1: "1F0 B0 F1"}, 1, together="1B0", delays=late)
    assert (found["1B0"], found["1F1"], found["0B0"]) == ((3, 6), (3, 6), (6, 8))


@pytest.mark.parametrize(("late", "start"), [({"2F1": 20}, 28), ({"0B0": 20}, 26)], ids=["first", "second"])
def test_both_outputs_of_a_block_hold_their_rank(late, start):
    """After a block a rank goes on when the receivers of both outputs have them."""
    orders = {0: "0F0 F1 F2 B0", 1: "1F0 F1 B0 F2", 2: "2F0 B0 F1 F2"}
    found = timed(orders, 2, together="1F1", delays=Delays(1.0, posted=by_action(late), blocking=True))
    assert found["1F1"] == found["1B0"] == (8, 11)
    assert found["1F2"] == (start, start + 1)
    in_time = timed(orders, 2, together="1F1", delays=Delays(1.0, posted={}, blocking=True))
    assert in_time["1F2"] == (12, 13)


def test_a_block_that_was_cut_in_half():
    """The first action of a block that ends an order runs alone."""
    assert timed({0: "0F0 F1"}, 1, together="0F1") == {"0F0": (0, 1), "0F1": (1, 2)}


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
        ("1F3.1", "0F3 0F3.0 0F3.1", "0F3.1"),
        ("1F3.1", "0F3 0F3.0", None),
        ("1F3", "0F3.0", None),
        ("1B3.1", "2B3.0 2B3.1", "2B3.1"),
        ("2B3.1", "2F3.0 2F3.1", "2F3.1"),
    ],
)
def test_what_an_action_needs(action, known, source):
    """The input of an action, three stages in the pipeline, among the actions that are known."""
    found = source_of(Action.parse(action), 2, dict.fromkeys(order(known)))
    assert (str(found) if found else None) == source


def test_unseen_ranks_constrain_nothing():
    """What would wait for a rank that nobody recorded starts as soon as its own rank is free."""
    found = timed({0: "0F0 F1 B0 B1", 2: "2F0 B0 F1 B1"}, 2)
    assert found["2F0"] == (0, 1)
    assert found["0B0"] == (2, 4)
    whole = timed({0: "0F0 F1 B0 B1", 1: "1F0 F1 B0 B1", 2: "2F0 B0 F1 B1"}, 2)
    assert whole["2F0"] == (2, 3)


@pytest.mark.parametrize("delays", [NO_DELAYS, Delays(1.0, posted={}, blocking=True)], ids=["free", "all delays"])
def test_nothing_to_replay(delays):
    """No rank, or ranks without actions, last no time."""
    assert replay({}, {}, last_stage=0, delays=delays).makespan == 0
    assert replay({0: (), 1: ()}, {}, last_stage=1, delays=delays).makespan == 0


def waiting_of(orders, last_stage: int, **rest) -> set[tuple[str, str]]:
    """Which action waits for which, in an order that cannot run."""
    with pytest.raises(Deadlock) as caught:
        timed(orders, last_stage, **rest)
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


def test_a_block_that_waits_for_what_needs_it():
    """A block whose second action needs what its first releases never runs; the action that lacks input is named."""
    orders = {0: "0F0 B0 F1", 1: "1F0 B0 F1"}
    assert waiting_of(orders, 1, together="1B0") == {("0B0", "1B0"), ("1F1", "0F1")}
    assert timed(orders, 1)["1F1"] == (7, 8)


def test_a_block_that_waits_for_itself():
    """A forward and its own backward cannot be one block."""
    assert waiting_of({0: "0F0 B0"}, 0, together="0F0") == {("0B0", "0F0")}


def test_sends_that_wait_for_each_other():
    """Two ranks that each hold a send until the other one has ended its own never go on."""
    orders = {0: "0F0 F1 F2 F3 2F0", 1: "1F0 F1 F2 F3"}
    assert waiting_of(orders, 3, delays=Delays(1.0, blocking=True)) == {("0F3", "1F1"), ("1F1", "0F3")}
    assert timed(orders, 3, delays=Delays(1.0))["2F0"] == (4, 5)


def test_a_deadlock_survives_pickle():
    """A deadlock says the same after a process border."""
    error = Deadlock(((Action.parse("0B0"), Action.parse("1B0")),))
    back = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(back), back.waiting) == (str(error), error.waiting) == ("0B0 waits for 1B0", error.waiting)


def test_no_textbook_order_deadlocks():
    """Every variant of every schedule can run, for every shape of a grid."""
    seen = set()
    for shape in shapes(ps=range(1, 9), ms=[1, 2, 3, 5, 8, 11], vs=[1, 2, 3, 4]):
        for family, _, orders in every_variant(shape):
            lengths = {a: 1.0 for actions in orders.values() for a in actions}
            times = replay(orders, lengths, last_stage=shape.stages - 1, together=blocks(family, shape))
            assert times.makespan >= max(len(actions) for actions in orders.values())
            seen.add(family.name)
    assert seen >= {family.name for family in FAMILIES} - {"seq1f1b"}


@pytest.mark.parametrize("slices", [2, 3, 5])
def test_no_sliced_order_deadlocks(slices):
    """The same for a schedule that cuts micro-batches."""
    family = find("seq1f1b")
    for shape in (Shape(p, m, 1, slices) for p in range(1, 9) for m in (1, 2, 3, 8)):
        orders = family.orders(shape)
        lengths = {a: 1.0 for actions in orders.values() for a in actions}
        assert replay(orders, lengths, last_stage=shape.p - 1).makespan == 2 * (shape.m * slices + shape.p - 1)


@pytest.mark.parametrize("name", ["interleaved-1f1b", "interleaved-zb", "forward-only"])
def test_no_stated_group_deadlocks(name):
    """The same for groups of every size that a schedule allows."""
    family, ran = find(name), 0
    for p, m, v, group in product(range(1, 6), range(1, 12), (2, 3), range(1, 13)):
        shape = Shape(p, m, v, group=group)
        if family.problem(shape) is None:
            ran += run(family, shape, EVEN).makespan > 0
    assert ran > 200


@st.composite
def pipelines(draw):
    """A schedule's orders, its blocks, durations and delays, all at random."""
    family = draw(st.sampled_from(FAMILIES))
    shape = draw(st.sampled_from([shape for p in range(1, 6) for shape in sizes(family, p)]))
    variant = draw(st.sampled_from(list(family.variants(shape, EVEN))))
    ranks = draw(st.sets(st.sampled_from(range(shape.p)), min_size=1))
    orders = {rank: variant.order(rank) for rank in sorted(ranks)}
    random = draw(st.randoms(use_true_random=False))

    def times(most):
        return {a: random.uniform(0.0, most) for actions in orders.values() for a in actions if random.random() < 0.8}

    edges = {(one, other): random.uniform(0.0, 3.0) for one in ranks for other in ranks}
    delays = Delays(
        transfer=draw(st.sampled_from([0.0, 1.5, by_edge(orders, edges, shape.stages - 1)])),
        posted=draw(st.sampled_from([None, {}, times(2.0)])),
        blocking=draw(st.booleans()),
        host=draw(st.sampled_from([{}, times(1.0)])),
    )
    lengths = {a: random.uniform(0.0, 5.0) for actions in orders.values() for a in actions}
    return orders, lengths, shape.stages - 1, blocks(family, shape), delays


class Rules:
    """The rules of a replay, as they would be checked with a ruler on a drawing of it."""

    def __init__(self, orders, last_stage, together, delays, times):
        self.delays, self.times = delays, times
        self.rank_of = {a: rank for rank, actions in orders.items() for a in actions}
        self.blocks = {rank: self._cut(actions, together) for rank, actions in orders.items()}
        self.source = {a: source_of(a, last_stage, self.rank_of) for a in self.rank_of}
        self.readers = [(source, a) for a, source in self.source.items() if source and self._travels(source, a)]
        self.free = {}  # when the rank of an action has ended what it did before the block of that action
        for cut in self.blocks.values():
            for before, block in zip((None, *cut), cut, strict=False):
                self.free |= dict.fromkeys(block, times.end[before[-1]] if before else 0.0)

    @staticmethod
    def _cut(actions, together):
        cut, rest = [], list(actions)
        while rest:
            size = 2 if rest[0] in together else 1
            cut.append(rest[:size])
            rest = rest[size:]
        return cut

    def _travels(self, source, action):
        return self.rank_of[source] != self.rank_of[action]

    def arrival(self, action):
        """When the input of an action is there."""
        source = self.source[action]
        if source is None or not self._travels(source, action):
            return self.times.end[source] if source else 0.0
        posted = self.delays.posted
        begin = self.times.end[source]
        if posted is not None or self.delays.blocking:
            begin = max(begin, self.free[action] + (posted or {}).get(action, 0.0))
        transfer = self.delays.transfer
        return begin + (transfer.get(action, 0.0) if isinstance(transfer, dict) else transfer)

    def start(self, before, block):
        """When a block starts."""
        held = [self.arrival(reader) for source, reader in self.readers if self.delays.blocking and source in before]
        ready = max([self.free[block[0]], *(self.arrival(action) for action in block), *held])
        return ready + self.delays.host.get(block[0], 0.0)


@settings(deadline=None, max_examples=200)
@given(pipelines())
def test_no_action_starts_early_or_late(pipeline):
    """Each action starts at the later of its rank being free and its input being there, whatever delays them."""
    orders, lengths, last_stage, together, delays = pipeline
    try:
        times = replay(orders, lengths, last_stage=last_stage, together=together, delays=delays)
    except Deadlock:
        assert delays.blocking
        return
    rules = Rules(orders, last_stage, together, delays, times)
    for cut in rules.blocks.values():
        for before, block in zip(((), *cut), cut, strict=False):
            start = rules.start(before, block)
            for action in block:
                assert times.start[action] == pytest.approx(start, abs=1e-9)
                assert times.end[action] == pytest.approx(start + sum(lengths[a] for a in block), abs=1e-9)


class Counted(dict):
    """Durations that count how often each is read."""

    def __init__(self, *args):
        super().__init__(*args)
        self.reads = Counter()

    def __getitem__(self, key):
        self.reads[key] += 1
        return super().__getitem__(key)


def calls_of(work) -> int:
    """How many functions are called while something runs: its work, on any machine."""
    calls = 0

    def count(*_):
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


DELAYED = Delays(transfer=1.0, posted={}, blocking=True, host={Action.parse("0F0"): 1.0})


@pytest.mark.parametrize("delays", [NO_DELAYS, DELAYED], ids=["free", "all delays"])
def test_the_work_grows_with_the_actions_only(delays):
    """An action takes the same work in a large pipeline as in a small one, however many micro-batches and ranks."""
    per_action = []
    for shape in (Shape(8, 50), Shape(8, 1000), Shape(64, 200)):
        orders = find("1f1b").orders(shape)
        lengths = Counted({a: 1.0 if a.kind == Kind.F else 2.0 for actions in orders.values() for a in actions})
        calls = calls_of(lambda o=orders, d=lengths, p=shape.p: replay(o, d, last_stage=p - 1, delays=delays))
        assert lengths.reads == Counter(dict.fromkeys(lengths, 1))
        per_action.append(calls / len(lengths))
    assert max(per_action) < 1.2 * min(per_action)


def test_a_large_pipeline():
    """64 ranks with four chunks and 512 micro-batches, a quarter of a million actions, run as their formula says."""
    shape = Shape(64, 512, 4)
    orders = find("interleaved-1f1b").orders(shape)
    lengths = {a: 1.0 if a.kind == Kind.F else 2.0 for actions in orders.values() for a in actions}
    assert len(lengths) == 2 * 64 * 4 * 512
    assert replay(orders, lengths, last_stage=255).makespan == 3 * (4 * 512 + 63)
