"""What an instrumented file says of one rank checks itself."""

from __future__ import annotations

import pytest

from bubblescope.model.slices import ActionSlices, CallSlices, RankSlices
from bubblescope.model.trace import CommArgs, Identity, Source

SOURCE = Source("a.csv", "table", 1, 1)


def actions(start=0, end=1, step=0, kind=0):
    """One action."""
    return ActionSlices([start], [end], [step], [kind], [0], [-1], [0], [-1])


def slices(**more):
    """Slices of a rank."""
    return RankSlices(source=SOURCE, identity=Identity(), absolute=False, **more)


def test_sound_slices_pass():
    """Nothing is wrong with an action and the collective that it asked for."""
    calls = CallSlices([0], [1], [0], [0])
    slices(actions=actions(), collectives=calls, calls=(CommArgs(op="allreduce"),)).self_check()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"actions": actions(end=-1)}, "before its start"),
        ({"actions": actions(kind=-1)}, "of no kind"),
        ({"actions": actions(step=-1), "restarts": True}, "a step that is not told"),
        ({"collectives": CallSlices([0], [1], [0], [0])}, "outside the calls"),
    ],
)
def test_unsound_slices_do_not(more, words):
    """Each broken invariant is told."""
    with pytest.raises(ValueError, match=words):
        slices(**more).self_check()
