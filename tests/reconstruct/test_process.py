"""Which process of a file is the rank."""

from __future__ import annotations

from dataclasses import replace

from bubblescope.reconstruct.process import main_process
from tests.building import kernel, launch, note, op, trace


def named(block, built):
    """Names of a block's rows."""
    return [built.names[name] for name in block.name]


def test_the_busiest_process_is_the_rank():
    """Host events of other processes are left out, kernels stay, and a finding counts what went."""
    built = main_process(
        trace(
            op("mine", 0, 1),
            note("mine too", 1, 2),
            launch(1, 2),
            op("theirs", 0, 9, thread="2:loader"),
            note("theirs too", 0, 9, thread="2:loader"),
            launch(2, 2, thread="3:other"),
            kernel("gemm", 3, 4, 1),
            kernel("gemm", 3, 4, 2),
        )
    )
    built.self_check()
    assert named(built.ops, built) == ["mine"]
    assert named(built.annotations, built) == ["mine too"]
    assert built.launches.correlation.tolist() == [1]
    assert len(built.kernels) == 2
    (finding,) = built.findings
    assert (finding.code, finding.severity, finding.input) == ("other-processes", "info", "rank.json")
    assert finding.message.startswith("3 host events of other processes than 1 ")


def test_one_process_is_left_alone():
    """Threads of one process are one rank, and nothing is said."""
    built = trace(op("a", 0, 1), op("b", 0, 1, thread="autograd"))
    assert main_process(built) is built


def test_a_process_without_events_is_none():
    """A process that is only named leaves the trace as it is."""
    built = trace(op("a", 0, 1), op("b", 0, 1, thread="2:loader"))
    quiet = built.ops.take(built.ops.thread == 0)
    assert main_process(replace(built, ops=quiet)).findings == ()
