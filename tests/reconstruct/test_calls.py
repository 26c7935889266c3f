"""What each communication unit is."""

from __future__ import annotations

import numpy as np
import pytest

from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.calls import Talk, describe, size_of
from bubblescope.reconstruct.operations import normal_op
from bubblescope.reconstruct.units import Units, gather
from tests.building import kernel, note, op, run, trace

GENERIC = "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)"
SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def calls_of(*rows):
    """The call of each communication unit of a trace, in host order."""
    built = trace(*rows)
    _, communication, _ = gather(built)
    talk = describe(built, communication)
    calls, row = talk.calls, talk.row
    assert len(set(calls)) == len(calls)
    return [calls[r] for r in row]


def ops_of(*rows):
    """The operation of each communication unit of a trace."""
    return [call.op for call in calls_of(*rows)]


@pytest.mark.parametrize(
    ("spellings", "name"),
    [
        ("send isend SEND", "send"),
        ("recv recv_ recv_any_source_ recvAnySource", "recv"),
        ("send_recv SendRecv sendrecv", "send_recv"),
        ("allreduce allreduce_ all_reduce AllReduce allreduce_coalesced_ all_reduce_coalesced", "all_reduce"),
        ("allgather _allgather_base _allgather_base_ all_gather AllGather all_gather_into_tensor", "all_gather"),
        ("_all_gather_base all_gather_into_tensor_coalesced allgather_coalesced_", "all_gather"),
        ("reduce_scatter _reduce_scatter_base _reduce_scatter_base_ ReduceScatter", "reduce_scatter"),
        ("reduce_scatter_tensor reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("alltoall alltoall_base_ all_to_all all_to_allv AllToAll all_to_all_single", "all_to_all"),
        ("broadcast broadcast_ _broadcast_oop Broadcast", "broadcast"),
        ("reduce reduce_ _reduce_oop Reduce", "reduce"),
    ],
)
def test_one_name_for_all_spellings(spellings, name):
    """Spellings of torch, NCCL and gloo become one name."""
    assert {normal_op(spelling) for spelling in spellings.split()} == {name}


def test_what_is_not_listed_keeps_its_name():
    """An unknown operation is called what it calls itself, in small letters."""
    assert normal_op("Barrier") == "barrier"
    assert normal_op("wait") == "wait"


def test_the_kernels_own_arguments_come_first():
    """Arguments on the kernel beat the call around its launch and the kernel's name."""
    args = CommArgs(op="_allgather_base", description="TENSOR_MODEL_PARALLEL_GROUP", ranks=(0, 1), elements=8)
    (call,) = calls_of(op("c10d::send", 0, 10), run(SENDRECV, 5, 20, 30, comm=args))
    assert (call.op, call.description, call.ranks) == ("all_gather", "TENSOR_MODEL_PARALLEL_GROUP", (0, 1))


@pytest.mark.parametrize(
    ("around", "name"),
    [
        (note("nccl:all_to_all", 0, 10), "all_to_all"),
        (op("c10d::alltoall_base_", 0, 10), "all_to_all"),
        (op("_c10d_functional::reduce_scatter_tensor", 0, 10), "reduce_scatter"),
        (note("nccl:send 0->1", 0, 10), "send"),
        (note("nccl:recv 1<-0", 0, 10), "recv"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_the_host_call_around_the_launch(around, name):
    """Without arguments the call that holds the launch tells the operation, even for a SendRecv kernel."""
    assert ops_of(around, run(SENDRECV, 5, 20, 30)) == [name]


def test_the_innermost_host_call_tells():
    """Calls nest; the one nearest to the launch is meant, and one that has ended is not."""
    rows = [op("c10d::broadcast_", 0, 50), note("nccl:all_reduce", 1, 5), note("nccl:send 0->1", 10, 20)]
    assert ops_of(rows, run(GENERIC, 3, 60, 61), run(GENERIC, 15, 70, 71), run(GENERIC, 30, 80, 81)) == [
        "all_reduce", "send", "broadcast",
    ]  # fmt: skip


def test_a_host_call_of_another_thread_tells_nothing():
    """A call on another thread at the same time is none of this kernel's business."""
    assert ops_of(note("nccl:all_to_all", 0, 10, thread="other"), run(SENDRECV, 5, 20, 30)) == ["send_recv"]


def test_each_thread_has_its_own_host_calls():
    """Two threads may launch at the same moment, one inside a call and one outside."""
    calls = [note("nccl:all_to_all", 0, 10), note("nccl:all_reduce", 20, 30, thread="autograd")]
    launched = [run(GENERIC, at, 50 + at, 51 + at, thread=t) for t in ("main", "autograd") for at in (5, 25)]
    assert ops_of(calls, launched) == ["all_to_all", "unknown", "unknown", "all_reduce"]


def test_coalesced_calls_leave_it_to_the_kernel():
    """`nccl:coalesced` says nothing of what it batches."""
    assert ops_of(note("nccl:coalesced", 0, 10), run(SENDRECV, 5, 20, 30)) == ["send_recv"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (SENDRECV, "send_recv"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", "send_recv"),
        ("ncclSendRecvKernel_copy_i8(ncclWorkElem)", "send_recv"),
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "all_reduce"),
        ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "all_reduce"),
        ("ncclAllReduceTreeLL128Kernel_sum_f32(ncclColl)", "all_reduce"),
        ("ncclReduceScatterRingLLKernel_sum_f16(ncclColl)", "reduce_scatter"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "all_gather"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(x)", "reduce_scatter"),
        ("ncclDevKernel_Reduce_Sum_f32_RING_LL(x)", "reduce"),
        ("ncclDevKernel_Broadcast_RING_LL(x)", "broadcast"),
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(x)", "all_reduce"),
        ("ncclSymDevKernel_AllGather_LL(x)", "all_gather"),
        ("void ncclDevKernel_AllReduce<4>(x)", "all_reduce"),
        (GENERIC, "unknown"),
        ("ncclDevKernel_Generic(x)", "unknown"),
        ("void dpsk::ep::internode::dispatch<false>(int4*)", "all_to_all"),
        ("nvshmemi_transfer", "unknown"),
    ],
)
def test_the_kernels_name(name, found):
    """With nothing else the kernel's name tells the operation, over all of NCCL's ways to spell it."""
    assert ops_of(kernel(name, 0, 10)) == [found]


def test_a_missing_launch_leaves_the_kernels_name():
    """A kernel without a launch has no host call, however long one lasts."""
    assert ops_of(note("nccl:all_to_all", 0, 100), run("gemm", 1, 2, 3), kernel(SENDRECV, 20, 30)) == ["send_recv"]


def test_a_host_call_names_what_arguments_leave_open():
    """Arguments without an operation keep their group, and take the operation from the call around the launch."""
    (call,) = calls_of(op("c10d::allreduce_", 0, 10), run(GENERIC, 5, 20, 30, comm=CommArgs(description="mesh_tp")))
    assert (call.op, call.description) == ("all_reduce", "mesh_tp")


def test_equal_calls_share_a_row():
    """Calls that say the same are one row of the table."""
    built = trace([run(SENDRECV, i, 10 + i, 11 + i, comm=CommArgs(op="send", dst=1)) for i in range(3)])
    talk = describe(built, gather(built)[1])
    calls, row = talk.calls, talk.row
    assert calls == (CommArgs(op="send", dst=1),)
    assert row.tolist() == [0, 0, 0]


def test_gloo_without_a_gpu():
    """On a host gloo's annotations tell the operation, also where they overlap each other."""
    built = [
        op("aten::mm", 0, 5),
        note("gloo:send", 10, 30),
        note("gloo:recv", 12, 20),
        note("gloo:recvAnySource", 40, 50),
    ]
    assert ops_of(built) == ["send", "recv", "recv"]


@pytest.mark.parametrize(
    ("dtype", "elements", "size"),
    [
        ("Float", 6144, 24576), ("BFloat16", 10, 20), ("Half", 10, 20), ("Byte", 10, 10), ("Int", 3, 12),
        ("Long", 3, 24), ("Double", 3, 24), ("float8_e4m3fn", 8, 8), ("Float8_e5m2", 8, 8), ("ComplexFloat", 2, 16),
        ("Bool", 5, 5), ("Float", 0, 0), ("Float", -1, -1), ("", 10, -1), ("QInt4", 10, -1),
    ],
)  # fmt: skip
def test_bytes(dtype, elements, size):
    """Bytes are elements times the width of the type; -1 where either is unknown."""
    assert size_of(CommArgs(dtype=dtype, elements=elements)) == size


def test_no_calls_no_bytes():
    """Nothing has no size."""
    assert Talk(Units.empty(), (), np.empty(0, np.int64), np.empty(0, np.int64)).bytes.tolist() == []


PARAMS = "record_param_comms"


def params(word, start, end, **more):
    """The operator that records the arguments of a call."""
    return op(PARAMS, start, end, comm=CommArgs(op=word, **more))


@pytest.mark.parametrize("kernel_name", [GENERIC, SENDRECV])
@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (params("alltoall_base", 0, 2), "all_to_all"),
        (op("c10d::alltoall_base_", 0, 2), "all_to_all"),
        (note("nccl:all_to_all", 0, 2), "all_to_all"),
        ([op("c10d::alltoall_base_", 0, 4), params("alltoall_base", 1, 3)], "all_to_all"),
        ([params("alltoall_base", 0, 1), params("wait", 2, 3)], "all_to_all"),
    ],
)
def test_the_call_before_the_launch_tells_a_kernel_that_says_nothing(kernel_name, asked, name):
    """One that may be anything, or whose name is that of what it is made of."""
    assert ops_of(asked, run(kernel_name, 5, 20, 30)) == [name]


def test_the_call_before_a_launch_tells_its_group():
    """Its arguments stand for the kernel's, which has none."""
    (call,) = calls_of(params("allreduce", 0, 2, description="tp", ranks=(0, 1)), run(GENERIC, 5, 20, 30))
    assert (call.op, call.description, call.ranks) == ("all_reduce", "tp", (0, 1))


def test_a_call_speaks_for_one_launch_alone():
    """The next kernel is nobody's, and what another thread asked for is no business of this one."""
    elsewhere = op(PARAMS, 6, 7, thread="other", comm=CommArgs(op="broadcast"))
    rows = [params("allreduce", 0, 2), run(GENERIC, 5, 20, 30), elsewhere, run(GENERIC, 8, 30, 40)]
    assert ops_of(rows) == ["all_reduce", "unknown"]


def test_a_kernels_own_name_outdoes_a_call_that_says_otherwise():
    """It belongs to a launch that was not recorded."""
    rows = [params("allreduce", 0, 2), run("ncclDevKernel_Broadcast_RING_LL(x)", 5, 20, 30)]
    assert ops_of(rows) == ["broadcast"]


@pytest.mark.parametrize(
    ("others", "name"),
    [
        (["allreduce"], "all_reduce"),
        (["allreduce", "broadcast"], "collective"),
        (["allreduce", "send"], "unknown"),
        (["allreduce", ""], "unknown"),
        ([], "unknown"),
    ],
)
def test_a_kernel_without_a_launch_is_as_the_others_of_its_name(others, name):
    """If none of them sends, neither does it; one of unknown operation speaks for nothing."""
    later = [
        [*([params(word, 10 * i, 10 * i + 2)] if word else []), run(GENERIC, 10 * i + 5, 100 + 10 * i, 105 + 10 * i)]
        for i, word in enumerate(others, start=1)
    ]
    assert ops_of(kernel(GENERIC, 0, 4), later)[0] == name
