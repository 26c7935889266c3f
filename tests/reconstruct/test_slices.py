"""From slices of an instrumented file to a timeline: steps, micro-batches, messages."""

from __future__ import annotations

import re

import numpy as np
import pytest

from bubblescope.model.actions import Kind
from bubblescope.model.slices import ActionSlices, CallSlices, MessageSlices, RankSlices, Slices
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import CommArgs, Identity, Source
from bubblescope.reconstruct.slices import reconstruct_slices


def acts(*rows):
    """Actions of rows (name, start, end) or (name, start, end, step); a name is `F`, `F3` or `1F3`."""
    found = []
    for name, start, end, *step in rows:
        stage, kind, microbatch = re.fullmatch(r"(\d*)([FBIW])(\d*)", name).groups()
        ids = int(stage or -1), -1, int(microbatch or -1), -1
        found.append((start, end, step[0] if step else -1, Kind[kind], *ids))
    return ActionSlices(*np.array(found).T)


def sent(*rows):
    """Messages of rows (direction, kind, start, end, step), without ids."""
    return MessageSlices(*np.array([(s, e, step, k, -1, -1, -1, -1, d, -1) for d, k, s, e, step in rows]).T)


def timeline(actions, **more):
    """The timeline of a rank, checked."""
    slices = RankSlices(
        source=Source("a.csv", "table", 1, 1), identity=Identity(), absolute=False, actions=actions, **more
    )
    slices.self_check()
    found = reconstruct_slices(slices, 0)
    found.self_check()
    return found


def told(found):
    """Step, stage, kind and micro-batch of every action."""
    a = found.actions
    return [
        (int(found.steps.number[step]), f"{stage}{Kind(kind).name}{i}".removeprefix("-1"))
        for step, stage, kind, i in zip(a.step, a.stage, a.kind, a.microbatch, strict=True)
    ]


def codes(found):
    """Codes of its findings."""
    return [finding.code for finding in found.findings]


def test_an_action_is_its_own_work():
    """What an action did is all of the slice, in order of time whatever the file's order is."""
    found = timeline(acts(("0B0", 20, 40, 7), ("0F0", 0, 10, 7)))
    assert told(found) == [(7, "0F0"), (7, "0B0")]
    assert (found.work.start.tolist(), found.work.end.tolist()) == ([0, 20], [10, 40])
    assert found.work.action.tolist() == [0, 1]
    assert (found.reconstruction, codes(found)) == ("table", [])


def test_told_steps_last_as_long_as_all_that_is_theirs():
    """A step begins with the first slice of any sort that names it, and ends with the last one."""
    found = timeline(
        acts(("0F0", 10, 20, 3), ("0F0", 50, 60, 4)),
        optimizer=Slices([30], [35], [3]),
        extents=Slices([5, 70], [5, 70], [3, 4]),
    )
    assert [column.tolist() for column in (found.steps.number, found.steps.start, found.steps.end)] == [
        [3, 4],
        [5, 50],
        [35, 70],
    ]
    assert found.optimizer.start.tolist() == [30]


def test_steps_are_cut_where_an_action_comes_again():
    """Without step numbers, names tell where the next one begins."""
    found = timeline(acts(*((name, k, k + 1) for k, name in enumerate(("0F0", "0F1", "0B0", "0B1") * 2))))
    assert [step for step, _ in told(found)] == [0] * 4 + [1] * 4
    assert codes(found) == []


def test_steps_are_cut_behind_the_optimizer():
    """Without names, each step ends with the optimizer's."""
    rows = [("F", k, k + 1) for k in (0, 1, 10, 11)] + [("B", k, k + 1) for k in (2, 3, 12, 13)]
    found = timeline(acts(*rows), optimizer=Slices([4, 14], [5, 15], [-1, -1]))
    assert told(found) == [(0, "F0"), (0, "F1"), (0, "B0"), (0, "B1"), (1, "F0"), (1, "F1"), (1, "B0"), (1, "B1")]
    assert codes(found) == ["counted-microbatches"]


def test_one_step_where_nothing_tells():
    """The recording is one step, and a warning says so."""
    found = timeline(acts(("F", 0, 1), ("F", 1, 2), ("B", 2, 3), ("B", 3, 4)))
    assert [step for step, _ in told(found)] == [0] * 4
    assert codes(found) == ["steps-assumed", "counted-microbatches"]


def test_actions_that_come_twice_are_told():
    """Rows written twice, or steps that begin anew: said once, however often; chunks that nobody tells are no doubt."""
    twice = timeline(acts(*(("0F0", k, k + 1, 3) for k in (0, 5, 9)), ("0B0", 2, 3, 3), ("0F0", 20, 21, 4)))
    assert codes(twice) == ["repeated-actions"]
    assert "in step 3," in twice.findings[0].message
    assert codes(timeline(acts(*((name, k, k + 1, 3) for k, name in enumerate(("0F0", "0F1", "1F0", "0B0")))))) == []
    assert codes(timeline(acts(("F0", 0, 1, 3), ("F0", 2, 3, 3)))) == []


def test_rows_without_a_step_among_others_are_told():
    """They may stand at a border of steps, where nothing tells of which they are."""
    assert codes(timeline(acts(("0F0", 0, 1, 3), ("0F1", 2, 3), ("0F0", 4, 5, 4)))) == ["steps-assumed"]


def test_micro_batches_are_counted_by_step_stage_and_kind():
    """As they come; what the file numbers stays."""
    found = timeline(acts(("0F", 0, 1, 0), ("2F", 1, 2, 0), ("0F", 2, 3, 0), ("0B", 3, 4, 0), ("0F", 9, 10, 1)))
    assert told(found) == [(0, "0F0"), (0, "2F0"), (0, "0F1"), (0, "0B0"), (1, "0F0")]


def test_rows_without_a_step_go_with_those_beside_them():
    """A receive with the action after it, everything else with the action before it."""
    found = timeline(
        acts(("0F0", 0, 10, 5), ("0B0", 10, 20, 5), ("0F0", 100, 110, 6), ("0B0", 110, 120, -1)),
        messages=sent((Messages.SEND, -1, 10, 11, -1), (Messages.RECV, -1, 90, 100, -1)),
        collectives=CallSlices([30], [40], [-1], [0]),
        calls=(CommArgs(op="allreduce", description="dp"),),
    )
    assert [step for step, _ in told(found)] == [5, 5, 6, 6]
    assert found.steps.number[found.messages.step].tolist() == [5, 6]
    assert found.steps.number[found.collectives.step].tolist() == [5]
    assert found.steps.end[0] == 40


def test_messages_of_a_kind_belong_to_its_actions_in_turn():
    """The k-th receive of forwards is awaited by the k-th forward, where there are as many."""
    found = timeline(
        acts(("1F0", 10, 20, 0), ("1F1", 30, 40, 0), ("1B0", 50, 60, 0), ("1B1", 70, 80, 0)),
        messages=sent(
            (Messages.RECV, Kind.F, 0, 10, 0),
            (Messages.RECV, Kind.F, 20, 30, 0),
            (Messages.SEND, Kind.B, 60, 61, 0),
            (Messages.SEND, Kind.B, 80, 81, 0),
            (Messages.SEND, Kind.F, 40, 41, 0),
        ),
    )
    m = found.messages
    kinds = [(Kind(kind).name, stage, i) for kind, stage, i in zip(m.kind, m.stage, m.microbatch, strict=True)]
    assert kinds == [("F", 1, 0), ("F", 1, 1), ("F", -1, -1), ("B", 1, 0), ("B", 1, 1)]
    assert m.after.tolist() == [-1, 0, 1, 2, 3]
    assert [found.calls[call].op for call in m.call] == ["recv", "recv", "send", "send", "send"]


def test_steps_that_begin_anew_are_laid_one_after_the_other():
    """No instant is of two steps, and each step begins at its own zero."""
    found = timeline(
        acts(("F", 2, 5, 1), ("B", 5, 9, 1), ("F", 0, 4, 2), ("B", 4, 7, 2)),
        restarts=True,
        optimizer=Slices([9, 7], [12, 9], [1, 2]),
    )
    assert found.restarts
    assert found.steps.start.tolist() == [0, 13]
    assert found.steps.end.tolist() == [12, 22]
    assert found.actions.start.tolist() == [2, 5, 13, 17]
    assert found.optimizer.start.tolist() == [9, 20]
    assert told(found) == [(1, "F0"), (1, "B0"), (2, "F0"), (2, "B0")]


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_rows_does_not_matter(seed):
    """A file may list its rows as it likes."""
    rows = [
        (f"{s}{kind}{i}", 100 * step + 10 * k, 100 * step + 10 * k + 5, step)
        for step in range(3)
        for k, (s, kind, i) in enumerate([(0, "F", 0), (0, "F", 1), (0, "B", 0), (0, "B", 1)])
    ]
    mixed = [rows[k] for k in np.random.default_rng(seed).permutation(len(rows))]
    for drop in (0, 1):
        one, other = (timeline(acts(*(row[: 4 - drop] for row in each))) for each in (rows, mixed))
        assert told(one) == told(other)
        assert one.work.start.tolist() == other.work.start.tolist()


def test_nothing_is_no_timeline():
    """A rank of messages alone has no action and no step."""
    found = timeline(ActionSlices.empty(), messages=sent((Messages.SEND, -1, 0, 1, -1)))
    assert (len(found.steps), len(found.actions), found.reconstruction) == (0, 0, None)
