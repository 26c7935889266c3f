"""One clock for all ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.clocks import Links, fit
from bubblescope.align.consensus import TOLERANCE
from bubblescope.model.job import ClockFit
from bubblescope.model.timeline import RankTimeline
from tests.align.ticking import EPOCH, MS, SECOND, US, World
from tests.building import timeline


def link(first: int, second: int, *times: int, both=False, together=False) -> Links:
    """One link: start and end of the first interval, start and end of the second."""
    return Links([first], [second], *([t] for t in times), [both], [together])


def on(host: str | None, rank: int, **known) -> RankTimeline:
    """The timeline of a rank of a host."""
    return timeline(rank, host=host, **known)


def recorded(world: World) -> dict[int, RankTimeline]:
    """Timelines of a step over the whole recording."""
    spans = {rank: world.shown(rank, [0, world.seconds * SECOND]).tolist() for rank in range(len(world.skew))}
    return {rank: timeline(rank, steps=[(0, *span)]) for rank, span in spans.items()}


def fitted(world: World, links: Links | None = None) -> ClockFit:
    """What is found of a world's clocks."""
    return fit(recorded(world), world.links() if links is None else links)


def chain(world: World, count: int = 60, *, both=True, back=True) -> World:
    """Messages between neighbours, with `back` in both directions."""
    for rank in range(len(world.skew) - 1):
        world.messages(rank, rank + 1, count, both=both)
        if back:
            world.messages(rank + 1, rank, count, both=both)
    return world


def ring(world: World, count: int = 60, *, both=False) -> World:
    """Messages that only go round."""
    for rank in range(len(world.skew)):
        world.messages(rank, (rank + 1) % len(world.skew), count, both=both)
    return world


def everyone(world: World, count: int = 60) -> World:
    """Collectives of all ranks."""
    return world.collectives(range(len(world.skew)), count)


def mixed(world: World) -> World:
    """Messages both ways, and some collectives."""
    return everyone(chain(world), 6)


TRAFFIC = {
    "both ways": chain,
    "both ways, no waiting": lambda world: chain(world, both=False),
    "one way, senders wait": lambda world: chain(world, back=False),
    "ring": lambda world: ring(world, both=True),
    "ring, one way": ring,
    "collectives": everyone,
    "mixed": mixed,
}
each_traffic = pytest.mark.parametrize("traffic", TRAFFIC.values(), ids=TRAFFIC)


def drawn(seed: int, latency: int | None = None) -> World:
    """2 to 16 clocks, up to 5 ms and 20 ppm off, over 1 to 30 s; messages take 10 us to 1 ms."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 17))
    return World(
        skew=rng.integers(-5 * MS, 5 * MS, count).tolist(),
        drift=rng.uniform(-20, 20, count).tolist(),
        seconds=float(rng.uniform(1, 30)),
        latency=latency or int(10 ** rng.uniform(4, 6)),
        spin=int(rng.uniform(1, 30) * MS),
        seed=seed,
    )


def shifted(links: Links, rank: int, by: int) -> Links:
    """The links as they are with the clock of one rank set forward."""
    moves = {
        f"{moment}_{side}": getattr(links, f"{moment}_{side}") + by * (getattr(links, side) == rank)
        for side in ("first", "second")
        for moment in ("start", "end")
    }
    return links.replace(**moves)


# Without links


def test_absolute_times_share_a_clock():
    """Times that count from the epoch are taken as they are; nothing bounds their error."""
    found = fit({0: timeline(0), 3: timeline(3)}, Links.empty())
    assert (found.method, found.offsets, found.error) == ("recorded", {0: 0, 3: 0}, None)


def test_one_relative_clock_spoils_it():
    """Where one file does not say when it began, ranks cannot be compared, and the fit says so."""
    found = fit({0: timeline(0), 1: timeline(1, absolute=False)}, Links.empty())
    assert (found.method, found.offsets) == ("none", {0: 0, 1: 0})


def test_relative_clocks_begin_together():
    """Clocks that count from anywhere begin to record at the same moment, and those from the epoch keep together."""
    found = fit(
        {
            0: timeline(0, steps=[(0, 100, 900)], absolute=False),
            1: timeline(1, steps=[(0, 5, 900)], absolute=False),
            2: timeline(2, steps=[(0, 7000, 9000)]),
            3: timeline(3, steps=[(0, 7010, 9000)]),
        },
        Links.empty(),
    )
    assert found.offsets == {0: 0, 1: 95, 2: -6900, 3: -6900}


@pytest.mark.parametrize("ranks", [[0], [0, 1, 5]])
def test_one_host_has_one_clock(ranks):
    """Ranks of one host, or a single rank, need no alignment, whatever links say, and are exact."""
    links = link(0, 1, 1000 * US, 1001 * US, 0, 1)
    found = fit({rank: on("a", rank) for rank in ranks}, links)
    assert (found.method, set(found.offsets.values()), found.error) == ("recorded", {0}, 0)


def test_relative_files_of_a_host_have_clocks_of_their_own():
    """Where a file counts from its own beginning, the name of the host says nothing."""
    links = link(0, 1, 0, 40 * US, 20 * US, 50 * US, both=True)
    found = fit({rank: on("a", rank, absolute=False) for rank in range(2)}, links)
    assert (found.method, found.offsets) == ("p2p", {0: 0, 1: -15 * US})


def test_no_ranks():
    """No timelines, no offsets."""
    assert fit({}, Links.empty()).offsets == {}


def test_ranks_that_were_not_recorded_say_nothing():
    """Links of ranks without a timeline are left aside."""
    found = fit({0: timeline(0), 2: timeline(2)}, link(0, 1, 50 * US, 60 * US, 0, 10 * US))
    assert (found.method, found.offsets, found.violations) == ("recorded", {0: 0, 2: 0}, 0)


# Literal links


def test_the_middle_of_two_bounds():
    """A message each way, 10 and 30 us by the clocks: 10 us are added to the second's, give or take 20."""
    links = Links.concat([link(0, 1, 0, 1, 0, 10 * US), link(1, 0, 100 * US, 101 * US, 0, 130 * US)])
    found = fit({0: timeline(0), 1: timeline(1)}, links)
    assert (found.method, found.offsets) == ("p2p", {0: 0, 1: 10 * US})
    assert found.between(0, 0) == 0
    assert found.between(0, 1) == pytest.approx(20 * US, rel=0.01)


def test_a_send_that_waits_bounds_both_sides():
    """The send ends no earlier than the receive began: one message is enough."""
    links = link(0, 1, 0, 40 * US, 20 * US, 50 * US, both=True)
    found = fit({0: timeline(0), 1: timeline(1)}, links)
    assert found.offsets[1] == -15 * US
    assert found.error == pytest.approx(35 * US, rel=0.01)


def test_one_side_only_moves_a_clock_no_farther_than_it_must():
    """A message that arrives 7 us before it was sent sets the receiver forward by 7; how far it may be off is open."""
    found = fit({0: timeline(0), 1: timeline(1)}, link(0, 1, 7 * US, 8 * US, -3, 0))
    assert (found.method, found.offsets, found.error, found.between(0, 1)) == ("p2p", {0: 0, 1: 7 * US}, None, None)


def test_one_side_only_leaves_a_possible_clock_alone():
    """Where nothing contradicts the recorded times, and nothing bounds them, they stay."""
    found = fit({0: timeline(0), 1: timeline(1)}, link(0, 1, 0, 1, 0, 3 * MS))
    assert (found.offsets, found.error) == ({0: 0, 1: 0}, None)


def test_all_ranks_of_a_host_move_together():
    """A link of one rank places all that share its clock."""
    links = link(1, 2, 0, 40 * US, 20 * US, 50 * US, both=True)
    found = fit({0: on("a", 0), 1: on("a", 1), 2: on("b", 2), 3: on("b", 3)}, links)
    assert found.offsets == {0: 0, 1: 0, 2: -15 * US, 3: -15 * US}
    assert found.between(0, 2) == found.between(0, 3) == found.error


def test_hosts_without_links_keep_their_clocks():
    """A host that nothing connects stays as recorded, at an unknown error that does not count."""
    links = link(0, 1, 0, 40 * US, 20 * US, 50 * US, both=True)
    found = fit({rank: timeline(rank) for rank in range(3)}, links)
    assert (found.offsets[2], found.between(0, 2)) == (0, None)
    assert found.error == found.between(0, 1)


def test_links_that_contradict_are_counted():
    """What two clocks cannot satisfy at once is left, and counted where it is more than files are exact to."""
    near = [link(0, 1, at, at + 40 * US, at + 20 * US, at + 50 * US, both=True) for at in range(0, 20 * MS, MS)]
    odd = link(0, 1, MS, 2 * MS, 0, 100 * US)
    found = fit({0: timeline(0), 1: timeline(1)}, Links.concat([*near, odd]))
    assert found.violations == 1
    assert found.offsets[1] == pytest.approx(-15 * US, abs=2 * US)


@pytest.mark.parametrize(("late", "count"), [(TOLERANCE, 0), (TOLERANCE + 1, 1)])
def test_files_are_not_exact(late, count):
    """On one host a receive may end before its send by as much as the times of a GPU are known to."""
    found = fit({0: on("a", 0), 1: on("a", 1)}, link(0, 1, late, late + 1, -1, 0))
    assert found.violations == count


def test_a_clock_stays_where_the_tight_way_puts_it():
    """One receive waited and took 30 us after its send; nobody waited for what comes back, 20 ms late."""
    there = [link(0, 1, at, at + 30 * US, at - MS, at + 30 * US) for at in range(0, 100 * MS, 10 * MS)]
    back = [link(1, 0, at, at + 20 * MS, at + 20 * MS, at + 20 * MS + 30 * US) for at in range(0, 100 * MS, 10 * MS)]
    found = fit({0: timeline(0), 1: timeline(1)}, shifted(Links.concat([*there, *back]), 1, 3 * MS))
    assert found.offsets[1] == pytest.approx(-3 * MS, abs=10 * US)
    assert found.between(0, 1) >= 20 * MS


@pytest.mark.parametrize(("shown", "kept"), [(0, 0), (3 * MS, 0), (-14 * MS, 4 * MS)])
def test_recorded_clocks_count_where_no_way_is_tight(shown, kept):
    """10 ms each way and nobody waited: the recorded clock if it is possible, else the nearest that is."""
    ways = [link(a, b, 0, 10 * MS, 10 * MS - 9 * US, 10 * MS) for a, b in ((0, 1), (1, 0))]
    found = fit({0: timeline(0), 1: timeline(1)}, shifted(Links.concat(ways), 1, shown))
    assert found.offsets[1] == pytest.approx(kept, abs=200 * US)
    assert found.between(0, 1) >= 10 * MS


def test_drift_is_found():
    """A clock that runs 20 ppm fast is slowed down by as much."""
    found = fitted(chain(World(skew=[0, MS], drift=[0, 20.0], seconds=30)))
    assert found.drift_ppm[0] == 0
    assert found.drift_ppm[1] == pytest.approx(-20, abs=0.2)


@pytest.mark.parametrize(("seconds", "count"), [(0.3, 60), (10, 4)])
def test_no_drift_from_little(seconds, count):
    """Under a second, or from under 10 bounds, no drift is told; what drift there may be widens the error."""
    world = chain(World(skew=[0, MS], drift=[0, 5.0], latency=300 * US, seconds=seconds), count)
    found = fitted(world)
    assert found.drift_ppm[1] == 0
    assert world.off(found)[1] <= found.between(0, 1)


def test_no_drift_from_the_phases_of_a_step():
    """Forwards that come at once early, backwards that come at once late: waits that grow and shrink are no drift."""
    at = np.arange(0, 3 * SECOND, 50 * MS)
    ahead, back = MS + at // 250, MS + at[::-1] // 250
    world = World(skew=[0, MS], seconds=3)
    world.add(0, 1, (at, at + US, at, at + ahead), both=False, together=False)
    world.add(1, 0, (at, at + US, at, at + back), both=False, together=False)
    found = fitted(world)
    assert abs(found.drift_ppm[1]) < 2
    assert world.off(found)[1] < 100 * US


def test_the_issue():
    """Clocks that are 2.1 ms ahead, 1.4 behind and 0.7 ahead are set right, with their sign."""
    world = chain(World(skew=[0, 2_100_000, -1_400_000, 700_000], latency=10 * US))
    found = fitted(world)
    for rank, right in enumerate([0, -2_100_000, 1_400_000, -700_000]):
        assert found.offsets[rank] == pytest.approx(right, abs=10 * US)


# Properties


@each_traffic
@pytest.mark.parametrize("seed", range(8))
def test_the_truth_lies_within_the_error(traffic, seed):
    """At every moment of the recording, and no link is contradicted."""
    world = traffic(drawn(seed))
    found = fitted(world)
    bars = np.array([found.between(0, rank) for rank in range(len(world.skew))])
    assert np.all(world.off(found) <= bars + 2)  # what is written down is rounded
    assert found.violations == 0
    assert found.error == bars.max()


@each_traffic
@pytest.mark.parametrize("seed", [1, 2])
def test_close_to_the_truth(traffic, seed):
    """Where messages take 30 us, clocks come within a few times that, as far as the chain is long."""
    world = traffic(drawn(seed, latency=30 * US))
    assert np.sqrt(np.mean(world.off(fitted(world)) ** 2)) < 15 * US


@each_traffic
def test_a_few_wrong_pairs_do_not_matter(traffic):
    """With 2 % of the intervals 1 ms off, 95 % of the clocks lie within the error, and hardly any farther away."""
    inside, off = [], []
    for seed in range(8):
        world = traffic(drawn(seed, latency=30 * US))
        found = fitted(world, world.links(wrong=0.02))
        bars = np.array([found.between(0, rank) for rank in range(len(world.skew))])
        off += world.off(found)[1:].tolist()
        inside += (world.off(found) <= bars + 2)[1:].tolist()
    assert np.mean(inside) >= 0.95
    assert np.median(off) < 20 * US


def test_wrong_pairs_are_counted():
    """Of 2 % wrong ones at least those that are plainly too early are left as violations, and few others."""
    world = chain(World(skew=[0, MS, -MS, 0], latency=30 * US), 400)
    found = fitted(world, world.links(wrong=0.02))
    assert 0.005 < found.violations / len(world.links()) < 0.02


def test_the_length_of_a_way_is_no_bias():
    """Round a ring of 8, one hop is as long as any: no clock is put off because the other way is 7 hops."""
    world = ring(World(skew=[0] * 8, latency=MS), 400)
    assert world.off(fitted(world)).max() < 100 * US


def test_one_way_traffic_bounds_nothing():
    """Messages that only go down the chain and wait for nobody leave the other side open."""
    found = fitted(chain(World(skew=[0, MS, -MS]), both=False, back=False))
    assert (found.method, found.error, found.violations) == ("p2p", None, 0)


@each_traffic
@pytest.mark.parametrize("rank", [1, 3])
def test_a_constant_moves_one_offset(traffic, rank):
    """A clock set forward has its own offset set back by exactly as much, and changes no other."""
    world = traffic(World(skew=[0, 2 * MS, -MS, 3 * MS], drift=[0, 7, -5, 12]))
    links, by = world.links(), 3 * SECOND + 17
    found = fitted(world, links)
    ranks = recorded(world)
    ranks[rank] = replace(ranks[rank], steps=ranks[rank].steps.moved(lambda times: times + by))
    moved = fit(ranks, shifted(links, rank, by))
    assert moved.offsets == found.offsets | {rank: found.offsets[rank] - by}
    assert (moved.drift_ppm, moved.origin) == (found.drift_ppm, found.origin)
    assert np.array_equal(moved.errors, found.errors)


@each_traffic
def test_names_do_not_matter(traffic):
    """With ranks renamed the same clocks get the same corrections, up to whose clock is the job's."""
    world = traffic(World(skew=[0, 2 * MS, -MS, 3 * MS], drift=[0, 7, -5, 12]))
    links, new = world.links(), np.array([2, 0, 3, 1])
    found = fitted(world, links)
    ranks = {int(new[r]): replace(t, rank=int(new[r])) for r, t in recorded(world).items()}
    renamed = fit(ranks, links.replace(first=new[links.first], second=new[links.second]))
    moments = np.array([0.0, world.seconds * SECOND])
    for rank in range(4):
        between = [
            corrected(rank) - corrected(1)
            for corrected in (
                lambda r: found.corrected(r, world.shown(r, moments)),
                lambda r: renamed.corrected(int(new[r]), world.shown(r, moments)),
            )
        ]
        assert np.allclose(*between, atol=2 * US)


@each_traffic
def test_order_does_not_matter(traffic):
    """Links in another order give the same fit."""
    world = traffic(World(skew=[0, 2 * MS, -MS, 3 * MS], drift=[0, 7, -5, 12]))
    links = world.links()
    mixed_up = links.take(np.random.default_rng(0).permutation(len(links)))
    assert fitted(world, mixed_up) == fitted(world, links)


def test_collectives_or_messages():
    """The method says what placed the clocks."""
    skew = [0, MS, -MS]
    assert fitted(everyone(World(skew=skew))).method == "collectives"
    assert fitted(chain(World(skew=skew))).method == "p2p"


def test_messages_whose_kernels_end_together():
    """Kernels of a message that end together on both ranks place its clocks, and the method is that of messages."""
    world = World(skew=[0, MS], latency=500 * US)
    for source, target in ((0, 1), (1, 0)):
        sent = world.moments(60)
        over = sent + world.travel(60) + world.rng.uniform(0, 20 * MS, 60)
        world.add(source, target, (sent, over, sent, over + world.rng.normal(0, US, 60)), both=False, together=True)
    found = fitted(world)
    assert found.method == "p2p"
    assert world.off(found)[1] < 5 * US


@pytest.mark.parametrize(("count", "error"), [(1, 4 * MS), (2, 30 * US), (4, 30 * US)])
def test_few_ends_place_a_clock_and_those_that_agree_bound_it(count, error):
    """Collectives of 4 ms that end together: one places the clock, with all their length as error, two bound it."""
    at = [100 * MS * i for i in range(count)]
    calls = [link(0, 1, t, t + 4 * MS, t, t + 4 * MS + i * US, both=True, together=True) for i, t in enumerate(at)]
    found = fit({0: timeline(0), 1: timeline(1)}, shifted(Links.concat(calls), 1, 2 * MS))
    assert found.offsets[1] == pytest.approx(-2 * MS, abs=5 * US)
    assert found.between(0, 1) == pytest.approx(error, rel=0.3)


def test_few_ends_that_disagree_bound_nothing():
    """Two collectives whose ends are 1 ms apart: the error is that of cause and effect."""
    calls = [
        link(0, 1, t, t + 4 * MS, t, t + 4 * MS + by, both=True, together=True) for t, by in ((0, 0), (SECOND, MS))
    ]
    found = fit({0: timeline(0), 1: timeline(1)}, Links.concat(calls))
    assert found.between(0, 1) > 3 * MS


def test_ends_bound_what_messages_leave_open():
    """Messages of one way only have an error where the ends of their kernels agree."""
    sends = [link(0, 1, t, t + 50 * US, t - MS, t + 50 * US, together=True) for t in range(0, 60 * MS, 10 * MS)]
    found = fit({0: timeline(0), 1: timeline(1)}, Links.concat(sends))
    assert found.offsets[1] == pytest.approx(0, abs=5 * US)
    assert found.error == pytest.approx(20 * US, rel=0.5)


def test_groups_that_are_not_tied_have_no_common_error():
    """Two pairs of hosts with nothing between them: each is known by itself, all together are not."""
    pairs = [link(a, b, 0, 40 * US, 20 * US, 50 * US, both=True) for a, b in ((0, 1), (2, 3))]
    found = fit({rank: timeline(rank) for rank in range(4)}, Links.concat(pairs))
    assert found.error is None
    assert found.between(2, 3) == pytest.approx(35 * US, rel=0.01)
    assert found.tied == {0: 0, 1: 0, 2: 2, 3: 2}


def test_times_since_the_epoch_are_exact():
    """What is added is whole nanoseconds, even where the clock shows 19 digits."""
    times = np.array([EPOCH, EPOCH + 1, EPOCH + 10**9])
    still = ClockFit(method="p2p", offsets={0: 3})
    assert (still.corrected(0, times) - times).tolist() == [3, 3, 3]
    runs = ClockFit(method="p2p", offsets={0: 3}, drift_ppm={0: 10.0}, origin=EPOCH + 3)
    assert (runs.corrected(0, times) - times).tolist() == [3, 3, 3 + 10_000]


def test_many_hosts():
    """64 hosts and 200,000 links: near the truth, in time."""
    rng = np.random.default_rng(0)
    world = World(skew=rng.integers(-5 * MS, 5 * MS, 64).tolist(), drift=rng.uniform(-20, 20, 64).tolist(), seconds=30)
    found = fitted(chain(world, 1600), world.links(wrong=0.02))
    assert world.off(found).max() < 20 * US
