"""Actions that somebody named."""

from __future__ import annotations

import pytest

from bubblescope.model.actions import Kind
from bubblescope.model.options import LabelRule, Options
from bubblescope.model.timeline import Messages
from bubblescope.reconstruct.labels import action_labels, message_labels, pipeline_stages
from bubblescope.reconstruct.passes import reconstruct
from tests.building import actions_of, note, op, run, steps_of, trace, work_of


def labels_of(*names, rules=()):
    """(kind, stage, micro-batch) of each name that is a label, in their order."""
    found = action_labels(trace([note(name, i, i + 1) for i, name in enumerate(names)]), rules)
    rows = zip(found.kind.tolist(), found.stage.tolist(), found.microbatch.tolist(), strict=True)
    return [(Kind(k).name, s, i) for k, s, i in rows]


def test_torch_stages():
    """Torch's runtime names stage, kind and micro-batch."""
    assert labels_of("PP:0F0", "PP:12B3", "PP:1I2", "PP:1W2") == [
        ("F", 0, 0), ("B", 12, 3), ("I", 1, 2), ("W", 1, 2),
    ]  # fmt: skip


def test_torch_gpipe():
    """Torch's GPipe names kind and micro-batch, and no stage."""
    assert labels_of("Forward 0", "Backward 11") == [("F", -1, 0), ("B", -1, 11)]


@pytest.mark.parametrize(
    "name",
    [
        "PP:0UNSHARD", "PP:0RESHARD", "PP:0REDUCE_GRAD", "PP:0F", "PP:F0", "PP:0F0 ", "xPP:0F0", "pp:0F0", "PP:0X0",
        "PP:0F0b", "PP:-1F0", "PP:0SEND_F0", "PP:1RECV_B2", "Forward", "Forward x", "forward 1", "Forward 1 of 2",
        "My Forward 1", "Backward  1", "",
    ],
)  # fmt: skip
def test_a_name_that_nearly_matches_is_no_label(name):
    """A label is the whole name, and messages are no actions."""
    assert labels_of(name) == []


def test_dialects_do_not_mix():
    """The first dialect that matches anything is the only one read: a model may name its own `Forward 1`."""
    assert labels_of("Forward 1", "PP:0F0") == [("F", 0, 0)]


def test_labels_come_in_time_order():
    """Rows out of order are put in time order."""
    found = action_labels(trace(note("PP:0F1", 20, 30), note("PP:0F0", 0, 10)))
    assert found.microbatch.tolist() == [0, 1]
    assert found.start.tolist() == [0, 20]


@pytest.mark.parametrize(
    ("rule", "name", "found"),
    [
        (r"F=fwd_s(?P<stage>\d+)_mb(?P<microbatch>\d+)", "my fwd_s3_mb12!", ("F", 3, 12)),
        (r"B=bwd (\d+)", "bwd 7", ("B", -1, 7)),
        (r"I=dgrad", "dgrad", ("I", -1, -1)),
        (r"w=wgrad(?P<stage>\d+)", "wgrad2", ("W", 2, -1)),
        (r"F=fwd(?: (?P<microbatch>\d+))?", "fwd", ("F", -1, -1)),
        (r"F=fwd(?: (\d+))?", "fwd", ("F", -1, -1)),
        (r"F=fwd (?P<microbatch>\w+)", "fwd last", ("F", -1, -1)),
        (r"F=chunk (\d+) mb (?P<microbatch>\d+)", "chunk 1 mb 2", ("F", -1, 2)),
    ],
    ids=["named", "positional", "none", "stage alone", "optional named", "optional", "no number", "named beats"],
)
def test_a_rule_of_the_user(rule, name, found):
    """A rule matches anywhere in a name; named groups count, else the first one is the micro-batch."""
    assert labels_of(name, "other", rules=(LabelRule.parse(rule),)) == [found]


def test_rules_are_tried_in_order():
    """Of several rules the first that matches a name says its kind."""
    rules = (LabelRule.parse("I=step .* input"), LabelRule.parse(r"B=step (\d+)"))
    assert labels_of("step 1", "step 2 input", rules=rules) == [("B", -1, 1), ("I", -1, -1)]


def test_rules_take_the_place_of_dialects():
    """Where a rule of the user matches, no dialect is read."""
    rules = (LabelRule.parse(r"F=my (\d+)"),)
    assert labels_of("my 3", "PP:0F0", rules=rules) == [("F", -1, 3)]


def test_rules_that_match_nothing_leave_the_dialects():
    """Rules that match no name of the trace change nothing."""
    assert labels_of("PP:0F0", rules=(LabelRule.parse("F=nothing"),)) == [("F", 0, 0)]


def test_message_labels():
    """Labels of sends and receives name the action and the direction."""
    found = message_labels(trace(note("PP:0SEND_F2", 0, 1), note("PP:3RECV_B1", 2, 3), note("PP:0F0", 4, 5)))
    assert found.direction.tolist() == [Messages.SEND, Messages.RECV]
    assert found.kind.tolist() == [Kind.F, Kind.B]
    assert found.stage.tolist() == [0, 3]
    assert found.microbatch.tolist() == [2, 1]


# From labels to actions: which work a label owns, and when its action ran.


def told(*rows, **options):
    """The timeline of a trace, through its own self-check."""
    result = reconstruct(trace(*rows), Options(**options), 0)
    result.self_check()
    return result


def test_the_time_of_a_label_is_not_that_of_its_action():
    """A label waits for its receive first; the action runs from its first kernel to its last."""
    result = told(note("PP:0F0", 0, 100), run("a", 60, 70, 80), run("b", 61, 85, 95), run("c", 62, 90, 120))
    assert actions_of(result) == [("0F0", 70, 120)]
    assert work_of(result) == [("0F0", 70, 80), ("0F0", 85, 120)]
    assert result.reconstruction == "labels"


def test_a_receive_inside_a_label_is_not_its_work():
    """The kernel that waits for the activation is communication, whatever label it stands in."""
    result = told(
        note("PP:1F0", 0, 100), run("ncclDevKernel_SendRecv(x)", 1, 5, 60), run("gemm", 2, 60, 80)
    )  # fmt: skip
    assert actions_of(result) == [("1F0", 60, 80)]


def test_backward_kernels_come_from_another_thread():
    """Autograd's own thread launches the kernels of a backward; the label owns them by time."""
    result = told(note("PP:0B0", 0, 100), run("gemm", 50, 200, 300, thread="autograd"))
    assert actions_of(result) == [("0B0", 200, 300)]


def test_the_innermost_label_owns():
    """A label inside another takes what was launched in it; the outer one keeps the rest."""
    result = told(
        note("PP:0B0", 0, 100), note("PP:0W0", 40, 60),
        run("a", 10, 110, 120), run("w", 50, 120, 130), run("b", 70, 130, 140),
    )  # fmt: skip
    assert work_of(result) == [("0B0", 110, 120), ("0B0", 130, 140), ("0W0", 120, 130)]


def test_work_outside_every_label_is_nobodys():
    """What no label asked for stays, and belongs to no action."""
    result = told(note("PP:0F0", 0, 10), run("a", 5, 20, 30), run("b", 15, 30, 40))
    assert work_of(result) == [("-", 30, 40), ("0F0", 20, 30)]


def test_a_label_without_work_is_no_action():
    """Torch's input gradient on stage 0 is an empty range."""
    result = told(note("PP:0I0", 0, 10), note("PP:0W0", 10, 20), run("a", 15, 20, 30))
    assert actions_of(result) == [("0W0", 20, 30)]


def test_actions_come_in_the_order_in_which_they_ran():
    """Two streams may run actions in another order than the host asked for them."""
    result = told(note("PP:0F0", 0, 10), note("PP:0F1", 10, 20), run("a", 5, 60, 70), run("b", 15, 40, 50))
    assert actions_of(result) == [("0F1", 40, 50), ("0F0", 60, 70)]
    assert work_of(result) == [("0F1", 40, 50), ("0F0", 60, 70)]


def test_a_launch_where_two_labels_meet_belongs_to_the_later():
    """Clocks of whole microseconds let one label end as the next begins, however long either is."""
    for first, second in ((0, 100), (40, 55)):
        result = told(note("PP:0F0", first, 50), note("PP:0F1", 50, second), run("a", 45, 60, 70), run("b", 50, 70, 80))
        assert actions_of(result) == [("0F0", 60, 70), ("0F1", 70, 80)]


def test_without_a_gpu_operators_are_the_action():
    """On a host an action is its outermost operators, the waiting at its start left out."""
    result = told(note("Forward 0", 0, 100), note("gloo:recv", 0, 60), op("aten::mm", 60, 90))
    assert actions_of(result) == [("?F0", 60, 90)]


def test_named_actions_that_come_again_begin_a_step():
    """Without marks of the profiler a new step begins where a label comes again."""
    names = ["Forward 0", "Forward 1", "Backward 0", "Backward 1"] * 2
    result = told([note(n, 10 * i, 10 * i + 9) for i, n in enumerate(names)],
                  [op("aten::mm", 10 * i + 1, 10 * i + 8) for i in range(len(names))])  # fmt: skip
    assert steps_of(result) == [(0, 0, 40), (1, 40, 78)]
    assert result.actions.step.tolist() == [0] * 4 + [1] * 4


def test_labels_without_numbers_are_counted():
    """Rules that tell only the kind do not make a step of every micro-batch: they are counted, step by step."""
    names = ["fwd", "fwd", "bwd", "bwd"]
    rules = (LabelRule.parse("F=fwd"), LabelRule.parse("B=bwd"))
    rows = [[note(n, 10 * i, 10 * i + 9), op("aten::mm", 10 * i + 1, 10 * i + 8)] for i, n in enumerate(names)]
    once = told(rows, labels=rules)
    assert [name for name, *_ in actions_of(once)] == ["?F0", "?F1", "?B0", "?B1"]
    assert steps_of(once) == [(0, 0, 38)]
    marked = told(rows, note("ProfilerStep#1", 0, 10), note("ProfilerStep#2", 10, 50), labels=rules)
    assert [name for name, *_ in actions_of(marked)] == ["?F0", "?F0", "?B0", "?B1"]


def test_unnumbered_labels_are_counted_by_stage():
    """Micro-batches are counted for each stage and kind by itself."""
    rules = (LabelRule.parse(r"F=fwd(?P<stage>\d)"),)
    rows = [
        [note(f"fwd{s}", 10 * i, 10 * i + 9), op("aten::mm", 10 * i + 1, 10 * i + 8)] for i, s in enumerate((0, 2, 0))
    ]
    assert [name for name, *_ in actions_of(told(rows, labels=rules))] == ["0F0", "2F0", "0F1"]


def test_labels_outside_the_marked_steps_are_left_out():
    """Before the first mark there is no step, and so no action; its work stays."""
    result = told(
        note("PP:0F0", 0, 10), note("ProfilerStep#1", 20, 50), note("PP:0F0", 20, 30),
        op("aten::mm", 1, 9), op("aten::mm", 21, 29),
    )  # fmt: skip
    assert actions_of(result) == [("0F0", 21, 29)]
    assert work_of(result) == [("-", 1, 9), ("0F0", 21, 29)]


def test_a_rule_replaces_the_labels_of_its_kind_only():
    """--label F=... names the forwards; backwards are still read from the labels that stand there."""
    rules = [LabelRule.parse(r"F=mine (\d+)")]
    assert labels_of("mine 3", "PP:0F0", "PP:0B1", rules=rules) == [("F", -1, 3), ("B", 0, 1)]


def test_numbers_that_no_pipeline_has_are_no_label():
    """A stage or micro-batch of many digits would fill the memory; other digits than ASCII's are no number."""
    assert labels_of("PP:99999F0", "PP:0F9999999", "PP:\u0661F0") == []


def test_a_slice_of_a_micro_batch():
    """A number behind a point is the slice; without one the action is of a whole micro-batch."""
    found = action_labels(trace(note("PP:0F3.1", 0, 1), note("PP:0F4", 1, 2)))
    assert (found.microbatch.tolist(), found.slice.tolist()) == ([3, 4], [1, -1])
    assert message_labels(trace(note("PP:0SEND_F3.1", 0, 1))).slice.tolist() == [1]


def test_a_range_of_two_actions():
    """Torch names an overlapped forward and backward in one range: two labels of one block."""
    found = action_labels(trace(note("PP:0F0", 0, 9), note("PP:(0F3;3B1)OVERLAP_F_B", 10, 20), note("PP:0F4", 21, 22)))
    rows = zip(found.stage.tolist(), found.kind.tolist(), found.microbatch.tolist(), strict=True)
    assert list(rows) == [(0, Kind.F, 0), (0, Kind.F, 3), (3, Kind.B, 1), (0, Kind.F, 4)]
    assert found.start.tolist() == [0, 10, 10, 21]
    assert found.block[0] == found.block[3] == -1 != found.block[1]
    assert found.block[1] == found.block[2]


@pytest.mark.parametrize("name", ["PP:(0F3)OVERLAP_F_B", "PP:(0F3;x)OVERLAP_F_B", "PP:(;)OVERLAP_F_B", "PP:(0F3;3B1)"])
def test_half_of_a_block_is_none(name):
    """A range that does not name two actions names none."""
    assert labels_of(name) == []


def test_a_block_is_parted_where_its_backward_starts():
    """Work before the first backward operator is the forward's, work after it the backward's."""
    rows = [
        note("PP:(0F1;1B0)OVERLAP_F_B", 0, 100), op("aten::mm", 10, 30), op("aten::mm", 30, 40),
        op("autograd::engine::evaluate_function: MmBackward0", 50, 90, forward_thread=1, seq=3),
    ]  # fmt: skip
    found = reconstruct(trace(*rows), Options(), 0)
    assert actions_of(found) == [("0F1", 10, 40), ("1B0", 50, 90)]
    assert found.actions.block[0] == found.actions.block[1] >= 0


def test_a_block_without_operators_is_parted_in_the_middle():
    """Where kernels alone are recorded, nothing tells forward from backward: each gets half of the label."""
    rows = [note("PP:(0F1;1B0)OVERLAP_F_B", 0, 100), run("gemm", 10, 200, 210), run("gemm", 60, 210, 230)]
    assert actions_of(reconstruct(trace(*rows), Options(), 0)) == [("0F1", 200, 210), ("1B0", 210, 230)]


def test_marks_in_the_middle_of_the_pipeline_are_not_believed():
    """With profiler marks that part backwards from their forwards the labels tell the steps, which keep the numbers."""
    rows = [
        row
        for start in (0, 100)
        for name, at in (("PP:0F0", start), ("PP:0F1", start + 20), ("PP:0B0", start + 40), ("PP:0B1", start + 60))
        for row in (note(name, at, at + 10), op("aten::mm", at, at + 10))
    ]
    marks = [note("ProfilerStep#7", 50, 150), note("ProfilerStep#8", 150, 170)]
    found = reconstruct(trace(*rows, *marks), Options(), 0)
    assert found.steps.number.tolist() == [7, 8]
    assert found.actions.step.tolist() == [0] * 4 + [1] * 4


@pytest.mark.parametrize(
    ("names", "stages"),
    [
        (["PP:0F0", "PP:0B0"], (0,)),
        (["PP:0F0", "PP:3F0"], (0, 3)),
        (["PP:2RECV_F0"], (2,)),
        (["Forward 0", "Backward 0"], (-1,)),
        (["attn(F)", "mlp(B)"], (-1,)),
        (["F0", "B0"], (-1,)),
        (["chunk0-part2"], (2,)),
        (["p2p_communication.send_forward"], (-1,)),
        (["F0"], ()),
        (["Forward", "Backward"], ()),
        (["forward_step", "backward_step"], ()),
        (["DeepSpeedEngine.forward", "DeepSpeedEngine.backward"], ()),
        (["mlp forward", "mlp backward", "layer_0f-layer_3b"], ()),
        ([], ()),
    ],
)
def test_labels_that_only_pipelines_have(names, stages):
    """With the stages that they name; those of any training loop are none."""
    assert pipeline_stages(trace([note(name, i, i + 1) for i, name in enumerate(names)])) == stages
