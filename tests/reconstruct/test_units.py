"""What counts as a unit of work, what as communication, and when the host asked for it."""

from __future__ import annotations

import pytest

from bubblescope.model.trace import CommArgs
from bubblescope.reconstruct.units import NO_HOST, gather, outermost
from tests.building import kernel, launch, note, op, run, trace

COMMUNICATION = [
    "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
    "ncclAllReduceRingLLKernel_sum_f32(ncclColl)",
    "ncclSendRecvKernel_copy_i8(ncclWorkElem)",
    "ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16",
    "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
    "void ncclKernel_Generic<2>(ncclDevComm*)",
    "rcclGenericKernel",
    "void dpsk::ep::internode::dispatch<false, 8, false>(int4*, float*)",
    "void deep_ep::intranode::combine<__nv_bfloat16, 8>(__nv_bfloat16*)",
    "nvshmemi_transfer_rma_get",
    "void nvshmem_barrier_kernel(int)",
    "mscclKernel_Sum_float_Simple_false",
    "hccl_all_reduce",
    "hcom_allReduce__271_0_1",
    "void cross_device_reduce_1stage<float, 2>(RankData*)",
    "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 4>(vllm::RankData*)",
    "Memcpy PtoP (Device -> Device)",
    "[CUDA memcpy Peer-to-Peer]",
]
WORK = [
    "void cutlass::Kernel<cutlass_80_tensorop_bf16>(Params)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
    "Memcpy DtoD (Device -> Device)",
    "CopyDeviceToDevice",
    "zeCommandListAppendMemoryCopy(D2D)",
    "Memset (Device)",
    "Memcpy",
    "hipMemcpyAsync",
    "void at::native::copy_host_to_device(int)",
    "void step::internal::kernel(int)",
    "void my_nccl_free_reduce(float*)",
    "void keep::internode_scan(int)",
]
COPIES = [
    "Memcpy HtoD (Pageable -> Device)",
    "Memcpy HtoD (Pinned -> Device)",
    "Memcpy HtoD (Host -> Device)",
    "Memcpy DtoH (Device -> Pinned)",
    "Memcpy DtoH (Device -> Pageable)",
    "Memcpy HtoA (Host -> Array)",
    "[CUDA memcpy DtoH]",
    "[CUDA memcpy Host-to-Device]",
    "CopyHostToDevice",
    "CopyDeviceToHost",
    "MEMORY_COPY_DEVICE_TO_HOST",
    "hipMemcpyDtoHAsync",
    "zeCommandListAppendMemoryCopy(M2D)",
]


def rows(units, names):
    """(name, host, start, end) of units."""
    return [
        (names[n], h, s, e)
        for n, h, s, e in zip(
            units.name.tolist(), units.host.tolist(), units.start.tolist(), units.end.tolist(), strict=True
        )
    ]


def split(built):
    """(work, communication) of a trace, readable."""
    work, communication, _ = gather(built)
    return rows(work, built.names), rows(communication, built.names)


def test_kernels_are_dated_by_their_launch():
    """A kernel's host time is its launch's, and units come in the order of launches, not of kernels."""
    work, _ = split(
        trace(launch(1, 5), launch(2, 3), kernel("late launch", 10, 20, 1), kernel("early launch", 30, 40, 2))
    )
    assert work == [("early launch", 3, 30, 40), ("late launch", 5, 10, 20)]


def test_the_launching_thread_is_kept():
    """A unit knows which thread launched it."""
    built = trace(op("aten::mm", 0, 1), run("forward", 1, 10, 20), run("backward", 2, 30, 40, thread="autograd"))
    work, *_ = gather(built)
    assert [built.threads[t].tid for t in work.thread] == ["main", "autograd"]


def test_a_kernel_without_a_launch_has_no_host_time():
    """What was launched before the recording began comes first and has neither host time nor thread."""
    built = trace(launch(1, 5), kernel("seen", 10, 20, 1), kernel("unseen", 30, 40, 9), kernel("none", 50, 60))
    work, _ = split(built)
    assert work == [("unseen", NO_HOST, 30, 40), ("none", NO_HOST, 50, 60), ("seen", 5, 10, 20)]
    assert gather(built)[0].thread.tolist() == [-1, -1, 0]


def test_a_trace_without_launches():
    """Kernels alone are units all the same."""
    work, communication = split(trace(kernel("gemm", 0, 5, 1), kernel("ncclDevKernel_SendRecv(x)", 5, 9, 2)))
    assert work == [("gemm", NO_HOST, 0, 5)]
    assert communication == [("ncclDevKernel_SendRecv(x)", NO_HOST, 5, 9)]


def test_kernels_of_a_graph_share_its_launch():
    """All kernels of a CUDA graph were asked for by the one call that replays it."""
    work, _ = split(trace(launch(7, 100), kernel("a", 110, 120, 7), kernel("b", 120, 130, 7)))
    assert work == [("a", 100, 110, 120), ("b", 100, 120, 130)]


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_launches_with_one_number_the_earlier_asked(order):
    """A runtime call and the driver call inside it may share a number; rows may come in any order."""
    built = trace(*[launch(1, 5, 9), launch(1, 6, 8)][::order], kernel("gemm", 10, 20, 1))
    assert split(built)[0] == [("gemm", 5, 10, 20)]


@pytest.mark.parametrize("order", [1, -1])
def test_numbers_that_come_again(order):
    """Where two recordings were joined, a kernel has the last launch of its number before it, or else the first."""
    rows = [launch(1, 5), launch(1, 105), launch(2, 107), kernel("first", 10, 20, 1), kernel("again", 110, 120, 1)]
    work, _ = split(trace(*rows[::order], kernel("early", 100, 103, 2), kernel("stray", 2, 3, 1)))
    assert sorted(work) == [
        ("again", 105, 110, 120),
        ("early", 107, 100, 103),
        ("first", 5, 10, 20),
        ("stray", 5, 2, 3),
    ]


@pytest.mark.parametrize("number", [-1, 0])
def test_unknown_numbers_join_nothing(number):
    """A kernel with number 0 joins launch 0; -1 means unknown and joins nothing, not even another -1."""
    built = trace(launch(number, 5), kernel("gemm", 10, 20, number))
    assert split(built)[0] == [("gemm", 5 if number == 0 else NO_HOST, 10, 20)]


@pytest.mark.parametrize("name", COMMUNICATION)
def test_kernels_that_communicate(name):
    """Kernels of every communication library are told by their names."""
    work, communication = split(trace(run(name, 0, 1, 2)))
    assert (work, len(communication)) == ([], 1)


@pytest.mark.parametrize("name", WORK)
def test_kernels_that_work(name):
    """Names that only look like it are work, and so are fills, and copies unless they are known to leave the device."""
    work, communication = split(trace(run(name, 0, 1, 2)))
    assert (len(work), communication) == (1, [])


@pytest.mark.parametrize("name", COPIES)
def test_copies_off_the_device(name):
    """Between host and device nothing computes: they stand apart, with what asked for them."""
    gathered = gather(trace(run(name, 0, 1, 2)))
    assert list(map(len, gathered)) == [0, 0, 1]
    assert gathered.copies.host.tolist() == [0]


def test_arguments_make_a_kernel_communication():
    """A kernel with communication arguments communicates, whatever it is called."""
    work, communication = split(trace(run("mystery", 0, 1, 2, comm=CommArgs(op="allreduce"))))
    assert (work, len(communication)) == ([], 1)


def test_without_a_gpu_outermost_operators_are_the_work():
    """An operator inside another is not work twice; each thread stands for itself."""
    work, _ = split(
        trace(
            op("aten::linear", 0, 10),
            op("aten::addmm", 2, 8),
            op("aten::relu", 10, 12),  # begins as the one before ends
            op("aten::mul", 3, 6, thread="autograd"),
        )
    )
    assert work == [("aten::linear", 0, 0, 10), ("aten::mul", 3, 3, 6), ("aten::relu", 10, 10, 12)]


def test_without_a_gpu_calls_of_c10d_are_no_work():
    """Communication operators are no work, outermost or not, and neither is what they call."""
    work, communication = split(
        trace(
            op("c10d::send", 0, 10),
            op("record_param_comms", 1, 9),
            op("_c10d_functional::all_reduce", 20, 30),
            op("_dtensor::shard_dim_alltoall", 30, 40),
            op("aten::copy_", 21, 22),
            op("aten::mm", 50, 60),
        )
    )
    assert work == [("aten::mm", 50, 50, 60)]
    assert communication == []


def test_without_a_gpu_gloo_communicates():
    """Gloo's annotations are the communication; others are not."""
    _, communication = split(trace(op("aten::mm", 0, 5), note("gloo:send", 5, 9), note("my gloo:send", 5, 9)))
    assert communication == [("gloo:send", 5, 5, 9)]


@pytest.mark.parametrize("around", [[], [op("SendBackward", 0, 90)]], ids=["alone", "in an operator"])
def test_a_message_of_gloo_was_posted_when_its_operator_began(around):
    """The range of a call is opened only when gloo has the message; the outermost call around it counts."""
    calls = [
        op("c10d::send", 10, 20), op("record_param_comms", 12, 19), note("gloo:send", 18, 60),
        op("c10d::recv_", 30, 40), note("gloo:recv", 39, 50),
    ]  # fmt: skip
    _, communication = split(trace(*around, calls))
    assert communication == [("gloo:send", 18, 10, 60), ("gloo:recv", 39, 30, 50)]


def test_a_message_of_gloo_outside_any_operator_of_its_thread():
    """What another thread does, or ended before, posted nothing."""
    calls = [op("c10d::send", 10, 20), op("c10d::recv_", 20, 60, thread="other"), note("gloo:send", 30, 60)]
    assert split(trace(calls))[1] == [("gloo:send", 30, 30, 60)]


def test_with_a_gpu_operators_are_no_units():
    """Where there are kernels, operators and gloo's annotations are no units."""
    work, communication = split(trace(op("aten::mm", 0, 5), note("gloo:send", 5, 9), run("gemm", 1, 10, 20)))
    assert work == [("gemm", 1, 10, 20)]
    assert communication == []


def test_an_empty_trace():
    """No events, no units."""
    assert split(trace()) == ([], [])


def test_outermost_keeps_one_of_two_equal_operators():
    """Two operators of the same time are one outermost and one inner; touching ones are both outermost."""
    ops = trace(op("a", 0, 10), op("b", 0, 10), op("c", 10, 10), op("d", 10, 20)).ops
    assert sorted(outermost(ops).tolist()) == [False, False, True, True]
