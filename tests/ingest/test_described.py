"""A range in which a rank says who it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubblescope.ingest.described import described
from bubblescope.model.trace import Coordinate, Identity

PATH = Path("trace.json")
TEXT = "rank=3; pp=0/2 dp=0/1 cp=0/1 ep=3/4; mbs=1 seq=2048"
PLACE = tuple(Coordinate(*axis) for axis in (("pp", 0, 2), ("dp", 0, 1), ("cp", 0, 1), ("ep", 3, 4)))


@pytest.mark.parametrize("suffix", ["", ", op_id = 3"])
def test_rank_and_place(suffix):
    """The range tells the rank and where it stands on each axis."""
    found, odd = described(Identity(), ["aten::mm", TEXT + suffix], PATH)
    assert (found.rank, found.rank_source, found.coordinates, odd) == (3, "label", PLACE, ())


def test_a_place_without_a_rank():
    """Older ranges name the axes alone."""
    found, odd = described(Identity(rank=5, rank_source="filename"), ["pp=1/2 dp=0/1 cp=0/1 ep=3/4 mbs=1"], PATH)
    assert (found.rank, found.rank_source, found.coordinates[0], odd) == (5, "filename", Coordinate("pp", 1, 2), ())


def test_the_range_wins_over_the_file_name():
    """A program knows its rank better than whoever named the file."""
    found, odd = described(Identity(rank=7, rank_source="filename"), [TEXT], PATH)
    assert (found.rank, found.rank_source, odd) == (3, "label", ())


def test_the_metadata_win_over_the_range():
    """A contradiction is a finding; the metadata are believed, and the place is taken all the same."""
    found, odd = described(Identity(rank=7, rank_source="metadata"), [TEXT], PATH)
    assert (found.rank, found.rank_source, found.coordinates) == (7, "metadata", PLACE)
    assert [f.code for f in odd] == ["metadata-conflict"]


@pytest.mark.parametrize(
    "names",
    [
        [TEXT, TEXT.replace("rank=3", "rank=4")],
        ["rank=3; pp=2/2"],
        ["rank=3"],
        ["pp=0"],
        ["xpp=0/2"],
        ["rank=3; pp=0/2x"],
        ["pp=0/0"],
        [],
    ],
    ids=["two ranks", "beyond the degree", "no axis", "no degree", "prefix", "suffix", "no ranks", "nothing"],
)
def test_other_ranges_say_nothing(names):
    """What contradicts itself or is written otherwise changes nothing."""
    assert described(Identity(), names, PATH) == (Identity(), ())


def test_the_environment_wins_over_the_range():
    """It was set for this very process."""
    found, odd = described(Identity(rank=7, rank_source="environment"), [TEXT], PATH)
    assert (found.rank, [f.code for f in odd]) == (7, ["metadata-conflict"])


def test_steps_that_name_the_rank():
    """Zero-bubble's steps count it first; those of several ranks in one file say nothing."""
    found, odd = described(Identity(), ["iter_3_0", "iter_3_1, op_id = 4", "F0.0.0"], PATH)
    assert (found.rank, found.rank_source, odd) == (3, "label", ())
    assert described(Identity(), ["iter_3_0", "iter_4_0"], PATH) == (Identity(), ())
    found, _ = described(Identity(), [TEXT, "iter_5_0"], PATH)
    assert found.rank == 3
