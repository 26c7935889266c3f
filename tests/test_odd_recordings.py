"""Recordings that are out of the ordinary: what was run comes back, or is said to be unknown, never calmly wrong."""

from __future__ import annotations

from random import Random

import pytest

from bubblescope.emit import Job
from bubblescope.errors import InputError
from tests.ordinary import analyzed, brief
from tests.recordings import ODDITIES, calm_faults, odd


def faults(job: Job) -> list[str]:
    """What is wrong in the report of a job and called right; a file that is refused says nothing wrong."""
    try:
        return calm_faults(job, analyzed(job).report)
    except InputError as error:
        return [] if "nothing tells which events are whose" in error.message else [error.message]


@pytest.mark.parametrize("oddity", ODDITIES)
@pytest.mark.parametrize("seed", range(3))
def test_each_oddity(oddity, seed):
    """No report of a few jobs with one oddity is calmly wrong."""
    job = odd(Random(f"{oddity}.{seed}").choice, oddity)  # noqa: S311 - repeatable
    assert faults(job) == [], brief(job)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_sweep(part):
    """Of fifty jobs with one or two oddities each, no report is calmly wrong."""
    jobs = [odd(Random(f"odd.{seed}").choice) for seed in range(50 * part, 50 * (part + 1))]  # noqa: S311 - repeatable
    wrong = {brief(job): found for job in jobs if (found := faults(job))}
    assert wrong == {}
