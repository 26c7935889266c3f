"""A rank's halves of pipeline messages, and its collectives."""

from __future__ import annotations

from bubblescope.model.options import Options
from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.passes import reconstruct
from tests.building import kernel, messages_of, note, op, run, trace

SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def told(*rows):
    """The timeline of a trace, through its own self-check."""
    result = reconstruct(trace(*rows), Options(), 0)
    result.self_check()
    return result


def send(host, start, end, dst=1, description="", **more):
    """A send with arguments on its kernel."""
    return run(SENDRECV, host, start, end, comm=CommArgs(op="send", dst=dst, description=description, **more))


def recv(host, start, end, src=1, description="", **more):
    """A receive with arguments on its kernel."""
    return run(SENDRECV, host, start, end, comm=CommArgs(op="recv", src=src, description=description, **more))


def collectives_of(result):
    """(operation, start, end) of each collective."""
    c = result.collectives
    return list(zip([result.calls[i].op for i in c.call], c.start.tolist(), c.end.tolist(), strict=True))


def test_direction_and_peer():
    """A send names whom it goes to, a receive whom it comes from."""
    result = told(run("gemm", 0, 1, 2), send(1, 10, 20, dst=3), recv(2, 30, 40, src=5))
    assert messages_of(result) == [("send 3", 10, 20), ("recv 5", 30, 40)]


def test_peers_are_unknown_before_torch_tells_them():
    """Kernels without peers, and gloo, leave the peer open."""
    result = told(run("gemm", 0, 1, 2), run(SENDRECV, 1, 10, 20, comm=CommArgs(op="send")))
    assert messages_of(result) == [("send ?", 10, 20)]
    assert messages_of(told(op("aten::mm", 0, 1), note("gloo:recv", 2, 9))) == [("recv ?", 2, 9)]


def test_a_fused_kernel_has_no_direction():
    """A batched send and receive are one kernel that tells neither."""
    assert messages_of(told(run("gemm", 0, 1, 2), run(SENDRECV, 1, 10, 20))) == [("either ?", 10, 20)]


def test_messages_come_in_the_order_in_which_they_were_posted():
    """The host's order counts, not that of the streams."""
    result = told(run("gemm", 0, 1, 2), send(5, 10, 20, dst=1), recv(3, 30, 40, src=2))
    assert messages_of(result) == [("recv 2", 30, 40), ("send 1", 10, 20)]


def test_an_all_to_all_is_no_pipeline_message():
    """SendRecv kernels of an all-to-all are collectives, whether the kernel says so or the call around it."""
    told_by_kernel = told(run("gemm", 0, 1, 2), run(SENDRECV, 1, 10, 20, comm=CommArgs(op="all_to_allv")))
    told_by_host = told(run("gemm", 0, 1, 2), note("nccl:all_to_all", 3, 6), run(SENDRECV, 4, 10, 20))
    for result in (told_by_kernel, told_by_host):
        assert messages_of(result) == []
        assert collectives_of(result) == [("all_to_all", 10, 20)]


def test_sends_of_other_groups_are_not_the_pipeline():
    """A ring of context-parallel ranks sends too; sends of the pipeline's group or of no known one are messages."""
    result = told(
        run("gemm", 0, 1, 2),
        send(1, 10, 20, description="CONTEXT_PARALLEL_GROUP"),
        recv(2, 20, 30, description="mesh_cp"),
        send(3, 30, 40, description="PIPELINE_MODEL_PARALLEL_GROUP"),
        send(4, 40, 50, description="mesh_pp"),
        send(5, 50, 60, description="default_pg"),
        send(6, 60, 70, description="undefined"),
    )
    assert [start for _, start, _ in messages_of(result)] == [30, 40, 50, 60]
    assert collectives_of(result) == [("send", 10, 20), ("recv", 20, 30)]


def test_bytes_of_messages_and_collectives():
    """Elements and type of the call give its bytes."""
    result = told(
        run("gemm", 0, 1, 2), send(1, 10, 20, elements=100, dtype="BFloat16"), send(2, 20, 30),
        run("ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 3, 40, 50,
            comm=CommArgs(op="allreduce", elements=8, dtype="Float")),
    )  # fmt: skip
    assert result.messages.bytes.tolist() == [200, -1]
    assert result.collectives.bytes.tolist() == [32]


def test_labels_of_messages_name_the_action():
    """The label around the launch says which action sends or awaits it."""
    result = told(
        note("PP:0F0", 0, 10), run("gemm", 1, 20, 30),
        note("PP:0SEND_F0", 10, 12), send(11, 30, 35), note("PP:0RECV_B0", 12, 14), recv(13, 35, 60),
        send(20, 70, 80),
    )  # fmt: skip
    assert messages_of(result) == [("send 1 0F0", 30, 35), ("recv 1 0B0", 35, 60), ("send 1", 70, 80)]


def test_labels_of_messages_name_the_direction_too():
    """A batched send has a fused kernel that tells no direction; its label does."""
    result = told(
        note("PP:0F0", 0, 10), run("gemm", 1, 20, 30),
        note("PP:0SEND_F0", 10, 12), run(SENDRECV, 11, 30, 35), note("PP:0RECV_B0", 12, 14), run(SENDRECV, 13, 35, 60),
    )  # fmt: skip
    assert messages_of(result) == [("send ? 0F0", 30, 35), ("recv ? 0B0", 35, 60)]


def test_a_label_of_an_action_names_no_message():
    """A receive inside a forward's own label is no labelled message."""
    result = told(note("PP:1F0", 0, 10), recv(1, 5, 20), run("gemm", 2, 20, 30))
    assert messages_of(result) == [("recv 1", 5, 20)]


def test_messages_know_their_step():
    """A message belongs to the step whose host posted it, however late it moves; outside all steps to none."""
    result = told(
        note("ProfilerStep#1", 10, 20), note("ProfilerStep#2", 20, 30), run("gemm", 11, 12, 13),
        send(5, 6, 7), send(15, 25, 26), recv(25, 40, 41), kernel(SENDRECV, 90, 91),
    )  # fmt: skip
    assert dict(zip(result.messages.start.tolist(), result.messages.step.tolist(), strict=True)) == {
        90: -1, 6: -1, 25: 0, 40: 1,
    }  # fmt: skip


def test_messages_of_a_step_without_actions_stay_in_it():
    """An evaluation that nobody labelled has messages and no known action: they do not go to the steps beside it."""
    result = told(
        note("ProfilerStep#1", 0, 20), note("ProfilerStep#2", 20, 30), note("ProfilerStep#3", 30, 50),
        note("PP:0F0", 1, 10), run("gemm", 2, 3, 4), note("PP:0F0", 31, 40), run("gemm", 32, 33, 34),
        send(22, 23, 24), recv(27, 28, 29),
    )  # fmt: skip
    assert result.messages.step.tolist() == [1, 1]


def test_collectives_know_who_asked():
    """A collective launched inside an action's range belongs to it; others to nobody."""
    reduce = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)"
    args = CommArgs(op="allreduce", description="TENSOR_MODEL_PARALLEL_GROUP")
    result = told(
        note("PP:0F0", 0, 10), run("gemm", 1, 20, 30), run(reduce, 2, 30, 40, comm=args),
        note("PP:0F1", 10, 20), run("gemm", 11, 15, 18), run(reduce, 12, 50, 60, comm=args), run(reduce, 30, 70, 80),
    )  # fmt: skip
    assert [name for name, *_ in _owned(result)] == ["0F0", "0F1", "-"]


def _owned(result):
    a = result.actions
    names = [f"0F{i}" for i in a.microbatch.tolist()] + ["-"]
    return [(names[i], s) for i, s in zip(result.collectives.action.tolist(), result.collectives.start, strict=True)]
