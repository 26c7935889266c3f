"""Long data and pauses of forwards, told from all else that varies."""

from __future__ import annotations

import pytest

from bubblescope.analysis.pauses import host_pauses
from bubblescope.analysis.variation import split
from bubblescope.model.actions import Action, Kind
from tests.analysis.uneven import drawn, studied

JOBS = 300


@pytest.fixture(scope="module")
def quiet():
    """What is found in jobs in which nothing but jitter was planted."""
    return [split(studied(**drawn(seed)).whole) for seed in range(JOBS)]


def test_jitter_is_no_data_length(quiet):
    """One false alarm in a thousand jobs is allowed; three in 300 would come by chance in 4 of 1000 tries."""
    assert sum(one.shared.found for one in quiet) <= 2


def test_jitter_is_no_pause(quiet):
    """Likewise."""
    assert sum(bool(one.pauses) for one in quiet) <= 2


def test_nothing_found_leaves_the_expectation():
    """No noise is invented: with neither effect, both rungs are what the profile says."""
    found = studied(jitter=0.03)
    variation = split(found.whole)
    for step in found.whole:
        assert variation.data(step) == variation.paused(step) == variation.expected(step)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("p", "m", "steps"), [(2, 4, 1), (4, 8, 3), (4, 2, 2)])
def test_a_long_microbatch_is_found(seed, p, m, steps):
    """Micro-batch 1 of the last step takes 1.5 times as long on every stage: found with its factor, and no other."""
    last = steps - 1
    factor = lambda step, _, a: 1.5 if (step, a.microbatch) == (last, 1) else 1.0  # noqa: E731
    found = split(studied(p=p, m=m, steps=steps, seed=seed, factor=factor).whole)
    assert found.shared.found
    assert not found.pauses
    if m > 2:  # of two micro-batches the median lies between them
        assert [(one.step, one.microbatch) for one in found.shared.slow] == [(last, 1)]
        assert found.shared.slow[0].factor == pytest.approx(1.5, rel=0.05)


def test_the_factor_is_all_that_data_adds():
    """Without jitter the rung with data is the run, to a millionth."""
    found = studied(jitter=0, factor=lambda step, _, a: 1 + 0.1 * ((a.microbatch + step) % 3))
    variation = split(found.whole)
    for step in found.whole:
        assert variation.data(step) == pytest.approx(step.durations, rel=1e-5)


def test_the_same_microbatch_each_step_is_persistent():
    """Index 2 is long in every step, or another one in each."""
    same = split(studied(factor=lambda _s, _r, a: 1.3 if a.microbatch == 2 else 1).whole)
    other = split(studied(factor=lambda s, _r, a: 1.3 if a.microbatch == s else 1).whole)
    assert (same.shared.persistent, other.shared.persistent) == (True, False)


def test_long_forwards_of_a_microbatch_are_no_data():
    """Backwards as ever: there is nothing that both share."""
    found = split(studied(factor=lambda s, _r, a: 1.3 if (a.kind, a.microbatch) == (Kind.F, s) else 1).whole)
    assert not found.shared.found


PAUSED = {(1, Action(2, Kind.F, 5)), (2, Action(0, Kind.F, 3)), (3, Action(1, Kind.F, 1))}


@pytest.mark.parametrize("seed", range(5))
def test_pauses_of_forwards_are_found(seed):
    """Three forwards take twice as long: these, no others, and what they took beyond their like."""
    found = studied(seed=seed, factor=lambda s, _r, a: 2 if (s, a) in PAUSED else 1)
    variation = split(found.whole)
    told = {(step, action): ns for (_, step), mine in variation.pauses.items() for action, ns in mine.items()}
    assert set(told) == PAUSED
    assert sum(told.values()) == pytest.approx(3e6, rel=0.1)
    assert not variation.shared.found


def test_pauses_add_no_work():
    """What a paused forward takes more, the others are expected to take less."""
    found = studied(factor=lambda s, _r, a: 2 if (s, a) in PAUSED else 1)
    variation = split(found.whole)
    for step in found.whole:
        total = sum(step.durations.values())
        assert sum(variation.data(step).values()) == pytest.approx(total)
        assert sum(variation.paused(step).values()) == pytest.approx(total, rel=1e-6)
        assert all(variation.paused(step)[action] > 1.7e6 for number, action in PAUSED if number == step.step)


def test_pauses_of_backwards_are_none():
    """A backward in the same number of places doubles too: nothing tells forwards apart."""
    long = PAUSED | {(s, a._replace(kind=Kind.B, microbatch=7 - a.microbatch)) for s, a in PAUSED}
    assert not split(studied(factor=lambda s, _r, a: 2 if (s, a) in long else 1).whole).pauses


@pytest.mark.parametrize("tp", [1, 2])
def test_pauses_of_the_host_are_found(tp):
    """The host came 0.8 ms late to a forward, where 20 us are usual; ranks that share a place share the pause."""
    late = lambda step, _, a: 800_000 if (step, a) in PAUSED else 20_000  # noqa: E731
    found = studied(jitter=0, late=late, tp=tp)
    told = {(step, action): ns for (_, step), mine in host_pauses(found).items() for action, ns in mine.items()}
    assert told.keys() == PAUSED
    assert told == pytest.approx(dict.fromkeys(PAUSED, 780_000), abs=2)
    assert not split(found.whole).pauses


def test_usual_gaps_of_the_host_are_no_pauses():
    """However long they are."""
    assert not host_pauses(studied(jitter=0.02, late=lambda *_: 300_000))
