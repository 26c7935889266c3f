"""What the layers of the model take, by what the ranks show of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.analysis.layers import layers_of
from bubblescope.analysis.study import study
from bubblescope.model.layers import Layers
from bubblescope.model.options import Options
from bubblescope.model.timeline import LayerWork
from tests.building import job, timeline


def shown(rank, *actions, layers=()):
    """A rank with ("0F0", start, end) and rows (action, layer, nanoseconds)."""
    names = [name for name, *_ in actions]
    work = [(names.index(action), layer, length) for action, layer, length in layers]
    built = timeline(rank, actions=actions)
    return replace(built, layers=LayerWork(*zip(*work, strict=True)) if work else LayerWork.empty())


def found(*ranks, **options):
    """The layers of a job of these ranks."""
    return layers_of(study(job(*ranks, **options), Options()))


FIRST = [("0F0", 0, 100), ("0B0", 500, 700)]
LAST = [("1F0", 100, 200), ("1B0", 200, 400)]


def test_layers_and_what_is_beside_them():
    """Both stages show layers of either way; what is beside them stays at the ends."""
    first = shown(0, *FIRST, layers=[("0F0", 0, 40), ("0F0", 1, 50), ("0B0", 0, 90), ("0B0", 1, 110)])
    last = shown(1, *LAST, layers=[("1F0", 0, 60), ("1B0", 0, 150)])
    assert found(first, last) == (Layers((40, 50, 60), (90, 110, 150), 10, 0, 40, 50), (2, 1))


def test_backwards_that_show_no_layers():
    """A backward is divided as the stage's forward is."""
    first = shown(0, *FIRST, layers=[("0F0", 0, 40), ("0F0", 1, 50)])
    last = shown(1, *LAST, layers=[("1F0", 0, 60)])
    assert found(first, last) == (Layers((40, 50, 60), (80, 100, 120), 10, 20, 40, 80), (2, 1))


def test_backwards_that_show_little():
    """Ranges that hold half of a backward or less, as what is computed again, tell nothing of it."""
    first = shown(0, *FIRST, layers=[("0F0", 0, 50), ("0F0", 1, 50), ("0B0", 0, 30), ("0B0", 1, 70)])
    last = shown(1, *LAST, layers=[("1F0", 0, 100), ("1B0", 0, 100)])
    assert found(first, last)[0].backward == (100, 100, 200)


def test_stages_between():
    """What a stage between does beside its layers is theirs, in proportion."""
    ranks = [
        shown(0, ("0F0", 0, 100), layers=[("0F0", 0, 100)]),
        shown(1, ("1F0", 100, 200), layers=[("1F0", 4, 20), ("1F0", 5, 60)]),
        shown(2, ("2F0", 200, 300), layers=[("2F0", 0, 100)]),
    ]
    assert found(*ranks) == (Layers((100, 25, 75, 100), (0, 0, 0, 0)), (1, 2, 1))


def test_means_of_micro_batches():
    """A layer takes the mean over the micro-batches; what only a few of them ran is no layer."""
    actions = [("0F0", 0, 100), ("0F1", 100, 220), ("0F2", 220, 320)]
    layers = [("0F0", 0, 100), ("0F1", 0, 110), ("0F2", 0, 90), ("0F2", 7, 10)]
    last = shown(
        1, ("1F0", 100, 200), ("1F1", 220, 320), ("1F2", 320, 420), layers=[(f"1F{i}", 0, 100) for i in range(3)]
    )
    assert found(shown(0, *actions, layers=layers), last) == (Layers((100, 100), (0, 0), front_forward=7), (1, 1))


def test_the_lower_median_of_replicas():
    """A slow replica does not make a layer slow."""
    ranks = []
    for replica, length in enumerate((100, 300, 120)):
        ranks.append(shown(2 * replica, ("0F0", 0, length), layers=[("0F0", 0, length)]))
        ranks.append(shown(2 * replica + 1, ("1F0", length, length + 50), layers=[("1F0", 0, 50)]))
    lines = [[[2 * replica], [2 * replica + 1]] for replica in range(3)]
    assert found(*ranks, pipelines=lines)[0].forward == (120, 50)


def test_a_stage_that_shows_none():
    """If a stage shows no layers, nothing is said of any."""
    assert found(shown(0, *FIRST, layers=[("0F0", 0, 40)]), shown(1, *LAST)) is None


def test_no_layers_at_all():
    """Where no rank shows layers there are none."""
    assert found(shown(0, *FIRST), shown(1, *LAST)) is None


def test_a_stage_that_was_not_recorded():
    """Of a stage that nobody recorded no layers are known."""
    assert found(shown(0, *FIRST, layers=[("0F0", 0, 40)]), pipelines=[[[0], [1]]]) is None


def test_replicas_that_disagree():
    """Replicas that show different numbers of layers tell nothing."""
    lines = [[[0], [1]], [[2], [3]]]
    ranks = [shown(r, ("0F0", 0, 100) if r % 2 == 0 else ("1F0", 100, 200)) for r in range(4)]
    layers = [(0, [0]), (0, [0]), (0, [0, 1]), (0, [0])]
    shows = [
        replace(t, layers=LayerWork([a] * len(n), n, [50] * len(n))) for t, (a, n) in zip(ranks, layers, strict=True)
    ]
    assert found(*shows, pipelines=lines) is None


@pytest.mark.parametrize("overlap", [0, 60])
def test_overlapped_actions(overlap):
    """Where two actions share an instant, the layers of each take their part of its share."""
    first = shown(0, ("0F0", 0, 100), ("0F1", 100 - overlap, 200 - overlap), layers=[("0F0", 0, 100), ("0F1", 0, 100)])
    last = shown(1, ("1F0", 100, 200), ("1F1", 200, 300), layers=[("1F0", 0, 100), ("1F1", 0, 100)])
    assert found(first, last)[0].forward == (100 - overlap // 2, 100)
