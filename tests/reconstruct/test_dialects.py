"""The texts of every dialect, what they name, and what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubblescope.model.actions import Kind
from bubblescope.model.names import plainly
from bubblescope.model.options import LabelRule, Options
from bubblescope.reconstruct.dialects import DIALECTS, MESSAGE_DIALECTS, RECOMPUTED, read
from bubblescope.reconstruct.labels import action_labels
from bubblescope.reconstruct.passes import reconstruct
from tests.building import actions_of, backward, forward, kernel, messages_of, note, op, run, steps_of, trace

SUFFIXES = ["", ", op_id = 9", ", seq = 3, op_id = 9, sizes = [[2, 3]], input_op_ids = [(1,0)]"]
SENDRECV = "ncclDevKernel_SendRecv(x)"
LETTERS = {**{int(kind): kind.name for kind in Kind}, RECOMPUTED: "R"}


def words(dialects, name):
    """The words of a dialect."""
    return next(d.words for d in dialects if d.name == name)


def said(name, text):
    """What a text names: kind, then each id that it tells, by its first letter (`F m3 c1`)."""
    found = []
    for ids in read(text, words(DIALECTS, name)):
        told = [f"{n[0]}{getattr(ids, n)}" for n in ("stage", "chunk", "microbatch") if getattr(ids, n) >= 0]
        found.append(" ".join([LETTERS[ids.kind], *told]) + ("" if ids.slice < 0 else f".{ids.slice}"))
    return found


NAMED = [
    ("torch stages", "PP:2F5", ["F s2 m5"]),
    ("torch stages", "PP:2W5.1", ["W s2 m5.1"]),
    ("torch stages", "PP:(0F3;3B1)OVERLAP_F_B", ["F s0 m3", "B s3 m1"]),
    ("zero bubble", "F3", ["F m3"]),
    ("zero bubble", "B3.1", ["B c1 m3"]),
    ("zero bubble", "W12.1.0", ["W c1 m12.0"]),
    ("zero bubble", "R3.0.0", ["R c0 m3.0"]),
    ("torch 2.4 actions", "F0_s1", ["F s1 m0"]),
    ("pithtrain", "forward chunk 3 (phase1)", ["F c1 m3"]),
    ("pithtrain", "backward chunk 12 (phase0)", ["B c0 m12"]),
    ("pithtrain", "rank 3 backward chunk 12 (phase0)", ["B c0 m12"]),
    ("pithtrain", "forward chunk 4 (phase0) backward chunk 1 (phase1)", ["F c0 m4", "B c1 m1"]),
    ("pithtrain", "weight chunk", ["W"]),
    ("pippy interleaved", "Forward 3", ["F"]),
    ("pippy interleaved", "1F1B 7", ["F", "B"]),
    ("pippy interleaved", "Cooldown 9", ["B"]),
    ("pippy interleaved", "Cooldown (backward) 9", ["B"]),
    ("torch gpipe", "Forward 3", ["F m3"]),
    ("torch gpipe", "Backward 3", ["B m3"]),
    ("pippy stages", "Stage 2 Forward", ["F s2"]),
    ("pippy stages", "Stage 2 Backward", ["B s2"]),
    ("fairscale", "chunk3-part1", ["F s1 m3"]),
    ("fairscale", "chunk3-rank5", ["F m3"]),
    ("deepspeed", "DeepSpeedEngine.forward", ["F"]),
    ("deepspeed", "DeepSpeedEngine.backward", ["B"]),
    ("mstx", "forward_step", ["F"]),
    ("mstx", "{'name': 'forward_step'}", ["F"]),
    ("mstx", "{'name': 'forward_step_with_model_graph', 'current_microbatch': 3}", ["F"]),
    ("mstx", "forward_step_no_model_graph", ["F"]),
    ("mstx", "backward_step", ["B"]),
    ("mstx", "{'name': 'backward_step_with_model_graph'}", ["B"]),
    ("mstx", "{'name': 'forward_backward_overlaping'}", ["F", "B"]),
    ("mstx", "WeightGradStore.pop", ["W"]),
    ("megatron layers", "attn forward", ["F"]),
    ("megatron layers", "moe_combine backward", ["B"]),
    ("megatron layers", "mlp wgrad", ["B"]),
    ("dualpipe", "attn(F)", ["F"]),
    ("dualpipe", "combine(B)", ["B"]),
    ("dualpipe", "mlp(W)", ["B"]),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "text", "found"), NAMED, ids=[text for _, text, _ in NAMED])
def test_a_text_of_a_dialect(dialect, text, found):
    """Every text names what its framework means by it."""
    assert said(dialect, text) == found


def test_every_dialect_has_a_row_above():
    """No dialect goes untested."""
    assert {name for name, *_ in NAMED} == {dialect.name for dialect in DIALECTS}


TRANSFERS = [
    ("torch stages", "PP:0SEND_F2", ["send F"]),
    ("zero bubble", "SEND_FORWARD.3.1.0", ["send F"]),
    ("zero bubble", "RECV_BACKWARD.8.0.0_SEND_BACKWARD.7.0.0_RECV_FORWARD.28.0.0", ["recv B", "send B", "recv F"]),
    *(
        ("megatron", f"megatron.core.pipeline_parallel.p2p_communication.{name}", found)
        for name, found in (
            ("recv_forward", ["recv F"]),
            ("recv_backward", ["recv B"]),
            ("send_forward", ["send F"]),
            ("send_backward", ["send B"]),
            ("send_forward_recv_backward", ["send F", "recv B"]),
            ("send_backward_recv_forward", ["send B", "recv F"]),
            ("send_forward_recv_forward", ["send F", "recv F"]),
            ("send_backward_recv_backward", ["send B", "recv B"]),
            ("send_forward_backward_recv_forward_backward", ["send F", "send B", "recv F", "recv B"]),
        )
    ),
]


@pytest.mark.parametrize(("dialect", "text", "found"), TRANSFERS, ids=[text for _, text, _ in TRANSFERS])
def test_a_text_of_a_transfer(dialect, text, found):
    """Sends and receives say their directions and the kinds of their actions."""
    ids = read(text, words(MESSAGE_DIALECTS, dialect))
    assert [f"{['send', 'recv'][i.direction]} {Kind(i.kind).name}" for i in ids] == found


UNNAMED = [
    "forward", "backward", "Forward", "Backward", "aten::linear", "F", "B", "FSDP::pre_forward", "forward_backward",
    "W_clear.0.0", "iter_0_3", "pre_send", "forward_step_func", "1F1B", "layer00.stage1_f", "pipeline send/recv",
    "DistributedDataParallel.forward", "## forward ##", "nn.Module: Forward",
    "megatron.core.pipeline_parallel.schedules.x.warmup",
    "chunk1", "rank=3; pp=0/2 dp=0/1 cp=0/1 ep=3/4; mbs=1 seq=2048", "DeepSpeedEngine.allreduce_gradients", "Stage 1",
    "my attn forward", "PipelineEngine.forward", "{'name': 'x'}", "F1.2.3.4", "send_forward", "SEND_FORWARD.1",
]  # fmt: skip


@pytest.mark.parametrize("text", UNNAMED)
def test_other_texts_are_no_labels(text):
    """What frameworks and models call other things names no action and no message."""
    assert not any(read(text, dialect.words) for dialect in (*DIALECTS, *MESSAGE_DIALECTS))


def labelled(*names, suffix=""):
    """(kind, chunk, micro-batch) of each name that is a label, in their order."""
    found = action_labels(plainly(trace([note(name + suffix, i, i + 1) for i, name in enumerate(names)])))
    rows = zip(found.kind.tolist(), found.chunk.tolist(), found.microbatch.tolist(), strict=True)
    return [f"{Kind(kind).name}{'' if c < 0 else f' c{c}'}{'' if m < 0 else f' m{m}'}" for kind, c, m in rows]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_suffixes_change_nothing(suffix):
    """What emit_nvtx appends hides no label of any dialect."""
    assert labelled("F0.0.0", "B0.0.0", "W0.0.0", suffix=suffix) == ["F m0", "I m0", "W m0"]
    assert labelled("Forward 3", "Backward 3", suffix=suffix) == ["F m3", "B m3"]
    assert labelled("PP:0F1", suffix=suffix) == ["F m1"]
    assert labelled("DeepSpeedEngine.forward", suffix=suffix) == ["F"]


def test_b_is_the_input_gradient_where_w_is_named():
    """The zero-bubble fork writes B for both; a W anywhere in the file tells which."""
    assert labelled("F0", "B0", "W0") == ["F m0", "I m0", "W m0"]
    assert labelled("F0", "B0") == ["F m0", "B m0"]
    assert labelled("PP:0F0", "PP:0B0", "PP:0W0") == ["F m0", "B m0", "W m0"]


def test_a_chunk_tells_something_only_where_there_are_several():
    """The stage of the only chunk is that of the rank."""
    assert labelled("F0.0", "F0.1", "B0.1") == ["F c0 m0", "F c1 m0", "B c1 m0"]
    assert labelled("F0.0", "B0.0") == ["F m0", "B m0"]


def test_a_slice_tells_something_only_where_there_are_several():
    """Sequence number 0 alone is the whole micro-batch."""
    found = action_labels(trace(note("F0.0.0", 0, 1), note("B0.0.0", 1, 2)))
    assert found.slice.tolist() == [-1, -1]
    found = action_labels(trace(note("F0.0.0", 0, 1), note("F0.0.1", 1, 2), note("B0.0.1", 2, 3)))
    assert found.slice.tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "names", [("F0", "F1"), ("forward_step",), ("B3", "W3"), ("backward_step", "WeightGradStore.pop")]
)
def test_plain_texts_count_only_with_their_counterparts(names):
    """A range called F1 may be anything; with a B1 it is a dialect."""
    assert labelled(*names) == []


def test_recomputation_belongs_to_its_backward():
    """A backward begins with the forward that is run again for it, if nothing stands between."""
    found = action_labels(
        trace(note("F0", 0, 10), note("R0", 10, 20), note("B0", 21, 30), note("R1", 30, 31), note("F1", 32, 40))
    )
    assert list(zip(found.kind.tolist(), found.start.tolist(), found.end.tolist(), strict=True)) == [
        (Kind.F, 0, 10), (Kind.B, 10, 30), (Kind.F, 32, 40),
    ]  # fmt: skip


def test_a_range_inside_one_of_its_kind_is_no_second_action():
    """Kinds without numbers may nest; the outermost range is the action."""
    names = [note("forward_step", 0, 20), note("{'name': 'forward_step'}", 5, 15), note("backward_step", 20, 30)]
    found = action_labels(trace(names))
    assert list(zip(found.kind.tolist(), found.start.tolist(), strict=True)) == [(Kind.F, 0), (Kind.B, 20)]


def told(*rows, **options):
    """The timeline of a trace, through its own self-check."""
    result = reconstruct(trace(*rows), Options(**options), 0)
    result.self_check()
    return result


def names_of(result):
    """The actions of a timeline."""
    return [name for name, *_ in actions_of(result)]


def acting(*names):
    """Ranges of these names, 10 each, with an operator each."""
    return [[note(n, 10 * i, 10 * i + 9), op("aten::mm", 10 * i + 1, 10 * i + 8)] for i, n in enumerate(names)]


def test_kinds_alone_are_counted():
    """DeepSpeed names no micro-batch: they are counted in order."""
    names = ["DeepSpeedEngine.forward", "DeepSpeedEngine.backward"] * 2
    assert names_of(told(acting(*names))) == ["?F0", "?B0", "?F1", "?B1"]


def test_stages_without_micro_batches_are_counted_by_stage():
    """PiPPy's breadth-first schedule names the stage alone."""
    names = ["Stage 0 Forward", "Stage 0 Forward", "Stage 2 Forward", "Stage 2 Backward"]
    assert names_of(told(acting(*names))) == ["0F0", "0F1", "2F0", "2B0"]


def test_numbers_of_ticks_are_no_micro_batches():
    """PiPPy's interleaved schedule counts ticks, and names a forward and a backward at once."""
    result = told(acting("Forward 0", "Forward 1", "1F1B 2", "Cooldown 3"), op("aten::mm", 28, 29))
    assert names_of(result) == ["?F0", "?F1", "?F2", "?B0", "?B1"]


def test_autograd_leads_an_uncounted_backward_to_its_forward():
    """Where backwards run in another order than forwards, counting would mix them up; numbers tell."""
    names = ["DeepSpeedEngine.forward"] * 2 + ["DeepSpeedEngine.backward"] * 2
    rows = [note(n, 100 * i, 100 * i + 50) for i, n in enumerate(names)]
    numbers = [forward(0, 1, 2), forward(100, 3, 4), backward(200, 4, 3), backward(300, 2, 1)]
    assert names_of(told(rows, numbers)) == ["?F0", "?F1", "?B1", "?B0"]


def test_autograd_completes_labels_of_forwards():
    """Only DeepSpeed's last stage names backwards; on the others autograd's numbers tell them, with their ids."""
    numbers = [forward(0, 1, 2), forward(100, 3, 4), backward(200, 2, 1), backward(300, 4, 3)]
    plain = told(note("DeepSpeedEngine.forward", 0, 50), note("DeepSpeedEngine.forward", 100, 150), numbers)
    assert names_of(plain) == ["?F0", "?F1", "?B0", "?B1"]
    assert plain.reconstruction == "labels"
    numbered = told(note("chunk3-part1", 0, 50), note("chunk4-part1", 100, 150), numbers)
    assert names_of(numbered) == ["1F3", "1F4", "1B3", "1B4"]


def test_a_rule_for_forwards_is_completed():
    """A user who names forwards only gets the backwards from autograd."""
    rows = [note("mine 7", 0, 50), forward(0, 1, 2), backward(200, 2, 1)]
    assert names_of(told(rows, labels=(LabelRule.parse(r"F=mine (\d+)"),))) == ["?F7", "?B7"]


def test_a_training_is_not_read_as_inference():
    """Forward labels alone, an optimizer, and nothing that tells the backwards: nothing is claimed, and why is said."""
    rows = [note("DeepSpeedEngine.forward", 0, 10), run("gemm", 5, 10, 20), run("gemm", 30, 30, 60)]
    trained = told(rows, kernel("multi_tensor_apply_kernel", 70, 80))
    assert names_of(trained) == []
    assert trained.reconstruction is None
    assert [f.code for f in trained.findings] == ["backward-unlabelled"]
    inferred = told(rows)
    assert names_of(inferred) == ["?F0"]
    assert [f.code for f in inferred.findings] == []


def test_a_range_of_several_messages():
    """Each message of a batch takes the next label of its direction."""
    rows = [
        note("F0.0.0", 0, 5), op("aten::mm", 1, 4), note("B0.0.0", 5, 10), op("aten::mm", 6, 9),
        note("RECV_BACKWARD.8.0.0_SEND_BACKWARD.7.0.0_SEND_FORWARD.9.0.0", 10, 50),
        note("gloo:send", 11, 20), note("gloo:recv", 21, 30), note("gloo:send", 31, 40),
    ]  # fmt: skip
    assert messages_of(told(rows)) == [("send ? ?B7", 11, 20), ("recv ? ?B8", 21, 30), ("send ? ?F9", 31, 40)]


def test_a_fused_call_of_several_messages_names_none():
    """One kernel that carries them all is neither the one nor the other."""
    rows = [note("SEND_FORWARD.1.0.0_RECV_BACKWARD.0.0.0", 0, 10), run(SENDRECV, 5, 10, 20), run("gemm", 20, 30, 40)]
    assert messages_of(told(rows)) == [("either ?", 10, 20)]


def test_a_direction_of_megatron():
    """A fused call inside a named transfer has its direction and kind, and no micro-batch."""
    rows = [note("megatron.core.pipeline_parallel.p2p_communication.recv_forward", 0, 10), run(SENDRECV, 5, 10, 20)]
    assert messages_of(told(rows)) == [("recv ? ?F?", 10, 20)]


def test_iterations_are_steps():
    """The zero-bubble fork names rank and iteration."""
    rows = acting("F0", "B0", "F0", "B0")
    marked = told(rows, note("iter_3_7, op_id = 2", 0, 20), note("iter_3_8", 20, 40))
    assert [number for number, *_ in steps_of(marked)] == [7, 8]


def test_every_dialect_is_documented():
    """The page on labels has a row for every dialect of actions and of messages."""
    page = (Path(__file__).parents[2] / "docs" / "labels.md").read_text("utf-8")
    missing = [d.name for d in (*DIALECTS, *MESSAGE_DIALECTS) if f"\n| {d.name} |" not in page]
    assert not missing
