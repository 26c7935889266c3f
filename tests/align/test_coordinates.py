"""Groups from where each rank says that it stands."""

from __future__ import annotations

from dataclasses import replace

from bubblescope.align.coordinates import by_coordinates
from bubblescope.align.layout import plan
from bubblescope.model.options import Options
from bubblescope.model.trace import Coordinate, Identity
from tests.building import group, timeline


def placed(**axes):
    """An identity from `pp=(0, 2)` and the like."""
    return Identity(coordinates=tuple(Coordinate(name, *axis) for name, axis in axes.items()))


GRID = {
    pp * 4 + dp * 2 + tp: placed(pp=(pp, 2), dp=(dp, 2), tp=(tp, 2))
    for pp in range(2)
    for dp in range(2)
    for tp in range(2)
}


def test_a_group_differs_on_one_axis():
    """Ranks that agree on all other axes are a group, in the order of their positions."""
    found = by_coordinates(GRID)
    assert found[5] == {"pp": (1, 5), "dp": (5, 7), "tp": (4, 5)}
    backwards = {7 - rank: identity for rank, identity in GRID.items()}
    assert by_coordinates(backwards)[2]["pp"] == (6, 2)


def test_a_group_that_is_not_whole_is_none():
    """With a rank missing, or two in one place, nobody knows who stands where."""
    assert "pp" not in by_coordinates({r: i for r, i in GRID.items() if r != 1})[5]
    assert "pp" not in by_coordinates({0: placed(pp=(0, 2)), 1: placed(pp=(0, 2))})[0]
    assert by_coordinates({0: Identity()}) == {0: {}}


def at(rank, **described):
    """A timeline of the grid."""
    built = timeline(rank, actions=[("?F0", 0, 10), ("?B0", 20, 30)], **described)
    return replace(built, identity=replace(built.identity, coordinates=GRID[rank].coordinates))


def test_the_layout_follows():
    """Places lay out the job where no group is described."""
    found = plan({rank: at(rank) for rank in GRID}, Options())
    assert found.pipelines == (((0, 1), (4, 5)), ((2, 3), (6, 7)))
    assert (found.pp, found.tp, found.dp) == (2, 2, 2)


def test_a_described_group_wins():
    """What the metadata describe stands above a range."""
    ranks = {r: at(r, groups=[group("1", "mesh_pp", r % 4 + 4, r % 4)]) for r in GRID}
    assert plan(ranks, Options()).pipelines == (((4, 5), (0, 1)), ((6, 7), (2, 3)))


def test_a_degree_that_is_not_told_is_that_of_the_recorded():
    """Positions that count from 0 without a gap are all there are."""
    found = by_coordinates({rank: placed(pp=(rank, 0)) for rank in range(3)})
    assert found[1] == {"pp": (0, 1, 2)}
    assert by_coordinates({rank: placed(pp=(rank, 0)) for rank in (0, 2)})[0] == {}
