"""Sends and receives that the host posted, for the kernels that do not tell."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.model.trace import CommArgs, Identity
from bubblescope.reconstruct.calls import describe
from bubblescope.reconstruct.units import gather
from tests.building import group, note, op, run, trace

SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
PARAMS = "record_param_comms"


def halves(*rows, rank=None, groups=()):
    """(start, what it is) of every half that the communication kernels of a trace hold."""
    built = replace(trace(*rows), identity=Identity(rank=rank, groups=tuple(groups)))
    _, communication, _ = gather(built)
    talk = describe(built, communication)
    return [
        (start, f"{call.op} {call.dst if call.op == 'send' else call.src}")
        for start, call in zip(talk.units.start.tolist(), (talk.calls[r] for r in talk.row), strict=True)
    ]


def post(word, peer, start, end=None):
    """The operator with the arguments of one send or receive."""
    args = CommArgs(op=word, dst=peer) if word == "send" else CommArgs(op=word, src=peer)
    return op(PARAMS, start, start + 2 if end is None else end, comm=args)


@pytest.mark.parametrize("kernel", [SENDRECV, GENERIC])
def test_a_coalesced_kernel_holds_what_was_posted_since_the_launch_before(kernel):
    """Two calls, one launch: a send and a receive; the next launch holds only what came after."""
    rows = [
        post("send", 2, 0),
        post("recv", 0, 3),
        run(kernel, 6, 20, 30),
        post("recv", 2, 8),
        run(kernel, 11, 40, 50),
    ]
    assert halves(rows) == [(20, "send 2"), (20, "recv 0"), (40, "recv 2")]


def test_a_launch_inside_its_own_call():
    """A call that is not coalesced holds its launch, and is what the kernel does."""
    rows = [post("send", 1, 0, 10), run(SENDRECV, 5, 20, 30), post("recv", 1, 12, 20), run(SENDRECV, 15, 30, 40)]
    assert halves(rows) == [(20, "send 1"), (30, "recv 1")]


def test_the_kernels_own_arguments_win_over_calls_that_say_otherwise():
    """A kernel that names its peer is believed, unless it is one of several that were posted with it."""
    own = CommArgs(op="send", dst=7)
    assert halves(post("recv", 1, 0), run(SENDRECV, 5, 20, 30, comm=own)) == [(20, "send 7")]
    together = [post("send", 7, 0), post("recv", 1, 2), run(SENDRECV, 5, 20, 30, comm=own)]
    assert halves(together) == [(20, "send 7"), (20, "recv 1")]


def test_calls_of_another_thread_are_not_this_kernels():
    """What a second thread posts is launched by that thread."""
    elsewhere = op(PARAMS, 0, 2, thread="other", comm=CommArgs(op="send", dst=3))
    assert halves(elsewhere, run(SENDRECV, 5, 20, 30)) == [(20, "send_recv -1")]


def test_names_of_operators_tell_the_direction():
    """Without arguments torch's own operators still say send or receive."""
    rows = [op("c10d::send", 0, 2), op("c10d::recv_", 3, 5), run(SENDRECV, 6, 20, 30)]
    assert halves(rows) == [(20, "send -1"), (20, "recv -1")]


def test_a_kernel_of_any_operation_holds_what_was_posted():
    """Its name tells nothing; a send before its launch does, also by the name of an operator alone."""
    assert halves(op("c10d::send", 0, 2), run(GENERIC, 6, 20, 30)) == [(20, "send -1")]
    assert halves(note("nccl:recv 0<-1", 0, 2), run(GENERIC, 6, 20, 30), rank=0) == [(20, "recv 1")]


def test_an_all_to_all_is_not_torn_apart():
    """Sends that were posted for something else do not turn a collective into messages."""
    rows = [post("send", 1, 0), note("nccl:all_to_all", 4, 8), run(SENDRECV, 5, 20, 30)]
    assert halves(rows) == [(20, "all_to_all -1")]


@pytest.mark.parametrize(
    ("groups", "peer"),
    [
        ([], 1),  # no group is known: the label of the default group names global ranks, if it names us
        ([group("0", "default_pg", 0, 1, 2, 3), group("1", "mesh_pp", 0, 2)], 2),
        ([group("0", "default_pg", 0, 1, 2, 3)], 1),
        ([group("0", "undefined", 0, 1), group("1", "undefined", 0, 2)], -1),
        ([group("0", "undefined", 1, 0)], -1),
    ],
    ids=["no groups", "the pipeline's first", "the only one", "two that disagree", "none where we are first"],
)
def test_labels_name_ranks_of_a_group(groups, peer):
    """`nccl:send 0->1` on rank 0 counts within a group: the pipeline's, or any that leaves no doubt."""
    assert halves(note("nccl:send 0->1", 0, 10), run(SENDRECV, 5, 20, 30), rank=0, groups=groups) == [
        (20, f"send {peer}")
    ]


def test_announcements_of_shapes_are_no_messages():
    """A few integers before each tensor tell its shape; of two small messages neither is an announcement."""

    def between(sizes):
        rows = [
            run(SENDRECV, 5 + 10 * i, 20 + 10 * i, 25 + 10 * i, comm=CommArgs(op="send", dst=1, elements=n, dtype=t))
            for i, (n, t) in enumerate(sizes)
        ]
        built = trace(rows)
        return describe(built, gather(built)[1]).between_stages(Identity()).tolist()

    assert between([(3, "Long"), (4_000_000, "BFloat16")]) == [False, True]
    assert between([(3, "Long"), (8, "Float")]) == [True, True]
    assert between([(256, "Float"), (4_000_000, "BFloat16"), (-1, "")]) == [False, True, True]
