"""What names of slices, columns, threads and processes say."""

from __future__ import annotations

import pytest

from bubblescope.ingest.timelines.words import CALLS, Role, field_of, meaning, places, tells_actions
from bubblescope.model.actions import Kind
from bubblescope.model.timeline import Messages
from bubblescope.reconstruct.operations import normal_op

ACTIONS = {
    "forward": (Kind.F, -1, -1, -1),
    "Forward": (Kind.F, -1, -1, -1),
    "forward-compute": (Kind.F, -1, -1, -1),
    "forward_step": (Kind.F, -1, -1, -1),
    "fwd 3": (Kind.F, -1, 3, -1),
    "forward mb 3": (Kind.F, -1, 3, -1),
    "F3": (Kind.F, -1, 3, -1),
    "F_2,4": (Kind.F, 2, 4, -1),
    "B_0_11": (Kind.B, 0, 11, -1),
    "2F4": (Kind.F, 2, 4, -1),
    "PP:2I4.1": (Kind.I, 2, 4, 1),
    "backward-compute": (Kind.B, -1, -1, -1),
    "bwd": (Kind.B, -1, -1, -1),
    "backward_input": (Kind.I, -1, -1, -1),
    "dgrad 2": (Kind.I, -1, 2, -1),
    "weight grad": (Kind.W, -1, -1, -1),
    "wgrad": (Kind.W, -1, -1, -1),
    "W0": (Kind.W, -1, 0, -1),
}


@pytest.mark.parametrize(("name", "expected"), ACTIONS.items())
def test_names_of_actions(name, expected):
    """A word tells the kind, numbers the stage, the micro-batch and the slice."""
    said = meaning(name)
    assert said.role == Role.ACTION
    assert (said.kind, said.stage, said.microbatch, said.slice) == expected


@pytest.mark.parametrize(
    ("name", "direction", "kind"),
    [
        ("forward-send", Messages.SEND, Kind.F),
        ("forward_recv", Messages.RECV, Kind.F),
        ("recv-backward", Messages.RECV, Kind.B),
        ("send grad 3", Messages.SEND, Kind.B),
        ("send", Messages.SEND, -1),
        ("P2P recv", Messages.RECV, -1),
    ],
)
def test_names_of_messages(name, direction, kind):
    """A message is a send or a receive, of a forward's output or of a backward's where the name says so."""
    said = meaning(name)
    assert (said.role, said.direction, said.kind) == (Role.MESSAGE, direction, kind)


@pytest.mark.parametrize(
    ("name", "op", "purpose"),
    [
        ("params-all-gather", "all_gather", "dp"),
        ("grads_reduce_scatter", "reduce_scatter", "dp"),
        ("layernorm-grads-all-reduce", "all_reduce", "tp"),
        ("embedding-grads-all-reduce", "all_reduce", "pp"),
        ("tp allreduce", "all_reduce", "tp"),
        ("all-grads-sync", "all_reduce", "dp"),
    ],
)
def test_names_of_collectives(name, op, purpose):
    """A collective tells what it does and for which group."""
    said = meaning(name)
    assert said.role == Role.COLLECTIVE
    assert (CALLS[said.call].op, CALLS[said.call].description) == (op, purpose)


@pytest.mark.parametrize("name", ["optimizer", "optimizer-clip-main-grad", "Optimizer.step", "opt step"])
def test_names_of_the_optimizer(name):
    """Everything that begins with the optimizer is its own."""
    assert meaning(name).role == Role.OPTIMIZER


@pytest.mark.parametrize(
    "name", ["", "gc", "f", "i", "b3", "forwarding", "backbone", "S_3,0", "attention", "send_mail"]
)
def test_names_of_nothing(name):
    """Other names mean nothing; single letters must be large ones."""
    assert meaning(name).role == Role.NONE


def test_only_forwards_make_a_timeline():
    """A list in which nothing is called forward is none."""
    assert tells_actions(["gc", "F_0,1"])
    assert not tells_actions(["backward", "optimizer", "gc"])


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("Micro_Batch", "microbatch"),
        ("mb-id", "microbatch"),
        ("pp_rank", "pp"),
        ("model_chunk", "chunk"),
        ("iteration", "step"),
        ("optype", "kind"),
        ("seq_id", None),
        ("colour", None),
    ],
)
def test_names_of_columns(name, field):
    """Aliases of a field differ in case, dashes and words."""
    assert field_of(name) == field


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("PP rank 1, TP rank 0, compute", {"pp": 1, "tp": 0}),
        ("DP rank [1]", {"dp": 1}),
        ("rank 3", {"rank": 3}),
        ("Global rank: 12", {"rank": 12}),
        ("stage 2", {"stage": 2}),
        ("frank 3", {}),
        ("worker", {}),
    ],
)
def test_names_of_lanes(name, told):
    """A thread or a process may say where it stands."""
    assert places(name) == told


def test_calls_are_called_as_recorders_call_them():
    """So that what is known of an operation, such as its bus bandwidth, is known of a timeline's, too."""
    assert [call.op for call in CALLS] == [normal_op(call.op) for call in CALLS]
