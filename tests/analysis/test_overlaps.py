"""Actions of one rank that run at the same time are told; noise, and pairs that belong together, are not."""

from __future__ import annotations

import pytest

from bubblescope.engine import analyze
from bubblescope.model.trace import Finding
from tests.timelines import as_csv

MS = 1_000_000


@pytest.fixture
def said(tmp_path):
    """What is said of overlaps in a table of rows (rank, kind, micro-batch, start, end), times in milliseconds."""

    def run(*rows, **more) -> list[Finding]:
        table = [
            {"rank": r, "stage": r, "step": 0, "kind": k, "mb": i, "start_ns": int(s * MS), "end_ns": int(e * MS)}
            for r, k, i, s, e in rows
        ]
        table = [row | {name: values[at] for name, values in more.items()} for at, row in enumerate(table)]
        found = analyze(as_csv(tmp_path / "log.csv", table)).report.quality.findings
        return [finding for finding in found if finding.code == "overlapping-slices"]

    return run


ORDINARY = ((0, "F", 0, 0, 10), (0, "B", 0, 40, 60), (1, "F", 0, 10, 20), (1, "B", 0, 20, 40))


def test_actions_one_after_the_other_are_no_finding(said):
    """Whether or not one begins the instant that another ends."""
    assert said(*ORDINARY) == []


def test_overlaps_are_counted_and_the_first_is_named(said):
    """With its rank, its step, both actions and by how much; one inside another that ended long ago is none."""
    (found,) = said(*ORDINARY, (1, "F", 1, 15, 18), (1, "B", 1, 38, 48), (1, "F", 2, 50, 51))
    assert found.severity == "warning"
    assert found.message.startswith(
        "2 of 7 actions begin before another of their rank has ended, on rank 1; "
        "the first is 1F1 of step 0 on rank 1, which overlaps 1F0 by 3 ms: "
    )


def test_a_long_action_is_seen_behind_a_short_one(said):
    """Not only with the one before it."""
    (found,) = said((0, "F", 0, 0, 100), (0, "F", 1, 10, 20), (0, "B", 0, 50, 120))
    assert found.message.startswith("2 of 3 actions")
    assert "0F1 of step 0 on rank 0, which overlaps 0F0 by 10 ms" in found.message


@pytest.mark.parametrize("end", [10.001, 10.0001])
def test_noise_is_no_overlap(said, end):
    """Times are rounded to microseconds, and those of long steps to what a short float holds."""
    assert said((0, "F", 0, 0, end), (0, "F", 1, 10, 20), (0, "B", 0, 40, 60)) == []
    far = 2000 + end - 10
    assert said((0, "F", 0, 0, 10), (0, "F", 1, 1990, far + 0.003), (0, "B", 0, 2000, 2000.1)) == []


def test_pairs_that_run_together_are_no_overlap(said):
    """A forward and a backward of the same moments are one block; two forwards are not."""
    assert said(*ORDINARY, (0, "F", 1, 40, 60)) == []
    assert len(said(*ORDINARY, (0, "F", 1, 0, 10))) == 1


def test_replicas_under_one_number_are_told(said):
    """Ranks that count anew in each replica are said to be taken as one."""
    found = said(*ORDINARY, *ORDINARY, replica=[0] * 4 + [1] * 4)
    assert len(found) == 2
    assert "on 2 of 2 ranks; rank 0 stands at dp 0 and 1" in found[0].message
