"""From the events of one rank to its timeline, all passes together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.model.options import Options
from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.passes import reconstruct
from tests.building import (
    actions_of,
    backward,
    forward,
    group,
    kernel,
    messages_of,
    note,
    op,
    run,
    steps_of,
    trace,
    work_of,
)

SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
ALLREDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
ADAM = "void at::native::multi_tensor_apply_kernel<FusedAdam>(x)"
OPTIMIZER = "Optimizer.step#AdamW.step"
TP = CommArgs(op="allreduce", description="TENSOR_MODEL_PARALLEL_GROUP", group_size=2)
DP = CommArgs(op="allreduce", description="DATA_PARALLEL_GROUP", group_size=2)


def send(dst):
    """Arguments of a send."""
    return CommArgs(op="send", dst=dst)


def recv(src):
    """Arguments of a receive."""
    return CommArgs(op="recv", src=src)


def told(built, **options):
    """The timeline of a trace; trace and timeline have been through their own self-checks."""
    built.self_check()
    result = reconstruct(built, Options(**options), built.identity.rank)
    result.self_check()
    result.optimizer.self_check()
    return result


def on_gpu():
    """One step of the first of two stages: two micro-batches in 1F1B, an optimizer, torch's labels."""
    return trace(
        note("ProfilerStep#4", 0, 100),
        note("PP:0F0", 0, 10), run("gemm", 2, 1000, 1030), run(ALLREDUCE, 3, 1030, 1040, comm=TP),
        note("PP:0SEND_F0", 10, 12), run(SENDRECV, 11, 1040, 1050, comm=send(1)),
        note("PP:0F1", 12, 20), run("gemm", 14, 1045, 1080),
        note("PP:0SEND_F1", 20, 22), run(SENDRECV, 21, 1080, 1090, comm=send(1)),
        note("PP:0RECV_B0", 22, 24), run(SENDRECV, 23, 1050, 1120, comm=recv(1)),
        note("PP:0B0", 24, 40), run("dgemm", 30, 1120, 1180, thread="autograd"),
        note("PP:0RECV_B1", 40, 42), run(SENDRECV, 41, 1120, 1200, comm=recv(1)),
        note("PP:0B1", 42, 60), run("dgemm", 50, 1200, 1260, thread="autograd"),
        run(ALLREDUCE, 62, 1260, 1300, comm=DP),
        note(OPTIMIZER, 70, 80), run(ADAM, 71, 1300, 1340), kernel(ADAM, 1350, 1360),
        rank=0,
    )  # fmt: skip


def on_host():
    """Two steps of the last of two stages on gloo, unlabelled: two micro-batches each, told by autograd."""
    rows = []
    for at, n, step in ((0, 10, 0), (1000, 20, 1)):
        rows += [
            note(f"ProfilerStep#{step}", at, at + 900),
            note("gloo:recv", at + 10, at + 95), op("c10d::recv_", at + 10, at + 95),
            forward(at + 100, n, n + 1), backward(at + 130, n + 1, -1, n),
            note("gloo:send", at + 170, at + 180), op("c10d::send", at + 170, at + 172),
            note("gloo:recv", at + 190, at + 295), op("c10d::recv_", at + 190, at + 295),
            forward(at + 300, n + 2, n + 3), backward(at + 330, n + 3, -1, n + 2),
            note("gloo:send", at + 370, at + 380), op("c10d::send", at + 370, at + 372),
            note(OPTIMIZER, at + 400, at + 500), op("aten::_foreach_add_", at + 410, at + 490, seq=n + 4),
        ]  # fmt: skip
    return trace(rows, rank=1)


def test_on_a_gpu_with_labels():
    """Labels give the actions, launches the work, and a kernel that waits for a peer is none."""
    result = told(on_gpu())
    assert result.reconstruction == "labels"
    assert result.on_gpu
    assert actions_of(result) == [("0F0", 1000, 1030), ("0F1", 1045, 1080), ("0B0", 1120, 1180), ("0B1", 1200, 1260)]
    assert work_of(result) == actions_of(result)
    assert messages_of(result) == [
        ("send 1 0F0", 1040, 1050), ("send 1 0F1", 1080, 1090), ("recv 1 0B0", 1050, 1120), ("recv 1 0B1", 1120, 1200),
    ]  # fmt: skip
    assert steps_of(result) == [(4, 1000, 1340)]


def test_copies_off_the_device_make_no_action_longer():
    """Inputs before it, activations behind it, a copy inside it: it runs while its kernels do."""
    result = told(
        trace(
            note("ProfilerStep#0", 0, 100),
            note("PP:0F0", 0, 10), run("Memcpy HtoD (Pinned -> Device)", 1, 900, 990), run("gemm", 2, 1000, 1030),
            run("Memcpy DtoH (Device -> Pageable)", 3, 1030, 1040), run("Memset (Device)", 5, 1045, 1050),
            run("Memcpy DtoD (Device -> Device)", 4, 1040, 1045), run("Memcpy DtoH (Device -> Pinned)", 6, 1050, 1400),
            note("PP:0B0", 24, 40), run("CopyHostToDevice", 25, 1100, 1130), run("dgemm", 30, 1120, 1180),
            note("PP:0F1", 42, 60), run("Memcpy HtoD (Pageable -> Device)", 50, 1200, 1260),
            rank=0,
        )
    )  # fmt: skip
    assert actions_of(result) == [("0F0", 1000, 1050), ("0B0", 1120, 1180)]
    assert work_of(result) == [("0F0", 1000, 1030), ("0F0", 1040, 1050), ("0B0", 1120, 1180)]
    assert list(zip(result.copies.start.tolist(), result.copies.end.tolist(), strict=True)) == [
        (900, 990), (1030, 1040), (1050, 1400),
    ]  # fmt: skip
    assert steps_of(result) == [(0, 900, 1400)]


def test_on_a_gpu_collectives_and_optimizer():
    """A collective in a label is its action's, others are nobody's; the optimizer's work is no action's."""
    result = told(on_gpu())
    c = result.collectives
    asked = [(c.action[i], result.calls[c.call[i]].description, c.start[i], c.end[i]) for i in range(len(c))]
    assert asked == [(0, "TENSOR_MODEL_PARALLEL_GROUP", 1030, 1040), (-1, "DATA_PARALLEL_GROUP", 1260, 1300)]
    assert (result.optimizer.start.tolist(), result.optimizer.end.tolist()) == ([1300, 1350], [1340, 1360])


def test_on_a_host_with_autograd():
    """Sequence numbers give the actions, step by step; waiting in a receive is none of their time."""
    result = told(on_host())
    assert result.reconstruction == "autograd"
    assert not result.on_gpu
    once = [("?F0", 100, 119), ("?B0", 130, 159), ("?F1", 300, 319), ("?B1", 330, 359)]
    assert actions_of(result) == once + [(name, start + 1000, end + 1000) for name, start, end in once]
    assert result.actions.step.tolist() == [0] * 4 + [1] * 4
    assert [text for text, *_ in messages_of(result)] == ["recv ?", "send ?"] * 4
    assert steps_of(result) == [(0, 0, 1000), (1, 1000, 1900)]
    assert result.optimizer.start.tolist() == [410, 1410]


def test_on_a_gpu_with_autograd():
    """Without labels, operators tell the actions and the kernels launched inside them are the work."""
    built = trace(
        forward(0, 1, 2), run("gemm", 5, 100, 150), run("gemm", 15, 150, 190),
        run(SENDRECV, 25, 190, 200, comm=send(1)), run(SENDRECV, 28, 195, 300, comm=recv(1)),
        backward(30, 2, 1, thread="autograd"), run("dgemm", 35, 300, 380, thread="autograd"),
    )  # fmt: skip
    result = told(built)
    assert actions_of(result) == [("?F0", 100, 190), ("?B0", 300, 380)]
    assert result.reconstruction == "autograd"


def test_a_tensor_parallel_layer_ends_with_its_collective():
    """The collective after the last linked operator is still its action's, one in the optimizer never."""
    built = trace(
        forward(0, 1, 2), run("gemm", 5, 100, 150), run(ALLREDUCE, 22, 150, 160, comm=TP),
        run(SENDRECV, 25, 160, 170, comm=send(1)), run(SENDRECV, 28, 165, 300, comm=recv(1)),
        backward(30, 2, 1), run("dgemm", 35, 300, 380),
        note(OPTIMIZER, 60, 90), run(ADAM, 65, 390, 395), run(ALLREDUCE, 70, 400, 410, comm=TP),
        run("clip", 55, 380, 390),
    )  # fmt: skip
    result = told(built)
    assert actions_of(result) == [("?F0", 100, 150), ("?B0", 300, 380)]
    assert result.collectives.action.tolist() == [0, -1]


def test_kernels_alone():
    """Without host events there are no actions, and still work, messages and a step."""
    result = told(trace(kernel("gemm", 0, 10), kernel(SENDRECV, 10, 20), kernel("gemm", 20, 30)))
    assert result.reconstruction is None
    assert actions_of(result) == []
    assert work_of(result) == [("-", 0, 10), ("-", 20, 30)]
    assert messages_of(result) == [("either ?", 10, 20)]
    assert steps_of(result) == [(0, 0, 30)]


def test_labels_beat_autograd():
    """Where somebody named forwards and backwards, sequence numbers are not asked for more."""
    result = told(trace(note("Forward 0", 0, 5), note("Backward 0", 5, 8), forward(0, 1, 2), backward(40, 2, 1)))
    assert [name for name, *_ in actions_of(result)] == ["?F0"]
    assert result.reconstruction == "labels"


def test_an_empty_trace():
    """Nothing comes of nothing, without complaint."""
    result = told(trace())
    assert (actions_of(result), messages_of(result), steps_of(result), result.reconstruction) == ([], [], [], None)


def test_what_the_trace_says_of_itself_comes_along():
    """Identity, source, findings and clock are those of the trace; the rank is the given one."""
    built = trace(op("aten::mm", 0, 1), op("x", 0, 9, thread="2:loader"), op("y", 0, 1), absolute=False,
                  groups=[group("5", "mesh_pp", 0, 1)], rank=3)  # fmt: skip
    result = reconstruct(built, Options(), 7)
    assert (result.rank, result.identity, result.source) == (7, built.identity, built.source)
    assert result.absolute is False
    assert [finding.code for finding in result.findings] == ["other-processes"]


@pytest.mark.parametrize(
    "name",
    [
        "elementwise_kernel<4, gelu(x)::{lambda()#1}>(int)",
        "multi_tensor_apply_kernel<TensorListMetadata<1>, ZeroFunctor>",
    ],
)
def test_what_updates_no_weights_is_no_optimizer(name):
    """Lambdas of C++ are no LAMB, and what fills many tensors at once ends no step."""
    result = told(trace(run(name, 5, 100, 150), run(ADAM, 15, 150, 190)))
    assert (result.optimizer.start.tolist(), result.optimizer.end.tolist()) == ([150], [190])


# What must change nothing.

BLOCKS = ("ops", "annotations", "launches", "kernels")
TRACES = pytest.mark.parametrize("built", [on_gpu(), on_host()], ids=["gpu", "host"])
COLUMNS = ("steps", "actions", "work", "messages", "collectives")


def rows(block):
    """Rows of a block, sorted, so that ties may come in any order."""
    return sorted(zip(*(column.tolist() for column in vars(block).values()), strict=True))


def whole(result):
    """All that a timeline says, with calls spelt out and every block sorted."""
    said = {name: rows(getattr(result, name)) for name in ("steps", "actions", "work")}
    for name in ("messages", "collectives"):
        block = getattr(result, name)
        calls = [result.calls[i] for i in block.call]
        plain = zip(*(c.tolist() for n, c in vars(block).items() if n != "call"), strict=True)
        said[name] = sorted(((row, call) for row, call in zip(plain, calls, strict=True)), key=repr)
    said["optimizer"] = rows_of_spans(result.optimizer)
    said["how"] = result.reconstruction
    return said


def rows_of_spans(spans):
    """(start, end) of each interval."""
    return list(zip(spans.start.tolist(), spans.end.tolist(), strict=True))


def shifted(built, by):
    """The trace on a clock that is ahead."""
    moved = {n: getattr(built, n).replace(start=getattr(built, n).start + by, end=getattr(built, n).end + by)
             for n in BLOCKS}  # fmt: skip
    return replace(built, **moved)


@TRACES
@given(dice=st.randoms(use_true_random=False))
def test_the_order_of_rows_says_nothing(built, dice):
    """Events may stand in a file in any order."""
    mixed = {}
    for name in BLOCKS:
        block = getattr(built, name)
        order = list(range(len(block)))
        dice.shuffle(order)
        mixed[name] = block.take(np.array(order, np.int64))
    assert whole(told(replace(built, **mixed))) == whole(told(built))


@TRACES
@given(by=st.integers(-(10**15), 2 * 10**18))
def test_the_origin_of_time_says_nothing(built, by):
    """A constant added to all times is added to the timeline, and to nothing else."""
    there, here = told(shifted(built, by)), told(built)
    moved = replace(here, optimizer=here.optimizer.moved(lambda t: t + by),
                    **{name: getattr(here, name).moved(lambda t: t + by) for name in COLUMNS})  # fmt: skip
    assert whole(there) == whole(moved)


@TRACES
@given(numbers=st.integers(1, 10**12))
def test_the_numbers_of_events_say_nothing(built, numbers):
    """Correlation and sequence numbers tell only what belongs together and what comes first."""
    ops = built.ops.replace(sequence=np.where(built.ops.sequence >= 0, built.ops.sequence + numbers, -1))
    kernels, launches = (
        block.replace(correlation=np.where(block.correlation >= 0, block.correlation + numbers, -1))
        for block in (built.kernels, built.launches)
    )
    assert whole(told(replace(built, ops=ops, kernels=kernels, launches=launches))) == whole(told(built))


@TRACES
def test_unrelated_events_say_nothing(built):
    """Annotations and operators of other tools, on another thread, leave the actions as they are."""
    other = trace(note("epoch 1", -50, 5000, thread="main"), rank=0).annotations
    named = replace(built, names=(*built.names, "epoch 1"))
    more = other.replace(name=np.array([len(built.names)]))
    added = replace(named, annotations=type(other).concat((built.annotations, more)))
    assert whole(told(added)) == whole(told(built))


@pytest.mark.parametrize("inside", [False, True], ids=["none inside", "one inside"])
def test_kernels_that_nothing_names_between_actions_are_borders(inside):
    """What follows a forward's last node before one of them is still the forward; those within it are no borders."""
    rows = [
        *forward(0, 1, 2), run("gemm", 2, 1000, 1010), run("gemm", 15, 1010, 1020),
        op("aten::frozen", 25, 45, seq=9), run("gemm", 30, 1020, 1030), run(GENERIC, 50, 1030, 1040),
        *backward(60, 2, 1), run("dgemm", 65, 1100, 1150),
    ]  # fmt: skip
    built = trace(*rows, *([run(GENERIC, 12, 1010, 1012)] if inside else []), rank=0)
    result = told(built)
    assert spans_of(result) == [("F", 1000, 1030), ("B", 1100, 1150)]


def spans_of(timeline):
    """Kind, start and end of each action."""
    rows = timeline.actions
    return [
        ("FBIW"[k], s, e) for k, s, e in zip(rows.kind.tolist(), rows.start.tolist(), rows.end.tolist(), strict=True)
    ]


def test_backwards_beside_labels_of_forwards_end_with_their_collectives():
    """Where labels name forwards alone, the collective behind the last operator of a backward is its own, too."""
    rows = [note("ProfilerStep#0", -1, 200)]
    for k, at in enumerate((0, 40)):
        rows += [
            note(f"PP:0F{k}", at, at + 22),
            *forward(at, 2 * k + 1, 2 * k + 2),
            run("gemm", at + 2, 1000 + at, 1020 + at),
        ]
        rows += [run(ALLREDUCE, at + 21, 1020 + at, 1025 + at, comm=TP)]
        rows += [run(SENDRECV, at + 25, 1025 + at, 1026 + at, comm=send(1))]
    for k, at in ((0, 100), (1, 150)):
        rows += [run(SENDRECV, at - 5, 1000 + at, 1001 + at, comm=recv(1)), *backward(at, 2 * k + 2, 2 * k + 1)]
        rows += [run("dgemm", at + 5, 1001 + at, 1030 + at), run(ALLREDUCE, at + 22, 1030 + at, 1040 + at, comm=TP)]
    result = told(trace(*rows, rank=0))
    assert [span for span in spans_of(result) if span[0] == "B"] == [("B", 1101, 1130), ("B", 1151, 1180)]
    assert result.own_collectives().action.tolist() == [0, 1, 2, 3]
