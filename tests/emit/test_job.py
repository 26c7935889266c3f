"""Jobs that cannot be are refused, with what is wrong."""

from __future__ import annotations

from math import inf, nan

import pytest

from bubblescope.emit import Job, truth
from bubblescope.errors import UsageError
from bubblescope.model.actions import Action


def order(text):
    """An order from its actions."""
    return tuple(map(Action.parse, text.split()))


REFUSED = [
    ({"schedule": "1f2b"}, "no schedule is called '1f2b'"),
    ({"p": 0}, "p must be at least 1"),
    ({"steps": 0}, "steps must be at least 1"),
    ({"p2p_ns": -1}, "p2p_ns must be at least 0"),
    ({"jitter": nan}, "jitter must be at least 0"),
    ({"p": 10_000, "m": 10_000}, "about 1600000000 kernels"),
    ({"forward_ns": 10**16}, "no more than 10"),
    ({"labels": "all"}, "labels must be one of pp, torch, none"),
    ({"v": 2}, "1f1b has one chunk a rank"),
    ({"schedule": "zb-v"}, "two chunks"),
    ({"schedule": "chimera", "p": 3}, "even"),
    ({"group": 0}, "group must be at least 1"),
    ({"weight_fraction": 1.5}, "weight_fraction"),
    ({"tp_share": 1.0}, "tp_share"),
    ({"scale": (1.0, 2.0)}, "scale needs a factor for each of 4 ranks"),
    ({"scale": (1.0, 1.0, 0.0, 1.0)}, "a factor must be above 0"),
    ({"slow": [("*", inf)]}, "a factor must be above 0"),
    ({"stage_times": [(1_000_000, 2_000_000, 0)]}, "times are needed for 4 stages"),
    ({"p": 1, "stage_times": [(1_000_000, 2_000_000, 3_000_000)]}, "no shorter than its weight part"),
    ({"stage_layers": (1, 2)}, "stage_layers needs at least 1 for each of 4 stages"),
    ({"stage_layers": (1, 2, 0, 1)}, "stage_layers needs at least 1 for each of 4 stages"),
    ({"edges_ns": (1, 2)}, "3 pairs of neighbours"),
    ({"edges_ns": (1, 2, -3)}, "found -3"),
    ({"host_gaps_ns": (1, 2, 3)}, "host_gaps_ns needs a time for each of 4 ranks, found 3"),
    ({"host_gaps_ns": (1, 2, 3, -4)}, "found -4"),
    ({"pause_ns": -1}, "pause_ns must be at least 0"),
    ({"pause_chance": 1.5}, "pause_chance must lie between 0 and 1, found 1.5"),
    ({"straggler": [(4, 2.0)]}, "there is no rank 4 among 4"),
    ({"missing": [-1]}, "there is no rank -1"),
    ({"missing": range(4)}, "nothing to write"),
    ({"skew_ns": [0] * 5}, "5 values for 4 ranks"),
    ({"skew_ns": [10**16]}, "skew_ns must lie between"),
    ({"drift_ppm": [nan]}, "drift_ppm must lie between"),
    ({"recorder": "ncu"}, "recorder must be one of kineto, nsys, found 'ncu'"),
    ({"recorder": ["nsys", "kineto"]}, "recorder needs one for each of 4 ranks, found 2"),
    ({"recorder": "nsys", "backend": "cpu"}, "nsys records GPUs"),
    ({"payloads": "xml"}, "payloads must be one of json, blobs, none"),
    ({"fused": True, "recv_ahead": 1}, "posted ahead"),
    ({"fused": True, "backend": "cpu"}, "gloo fuses nothing"),
    ({"cycles": 2, "steps": 3}, "cycles must divide the steps, found 2 for 3"),
    ({"recorder": "nsys", "one_file": "behind"}, "nsys puts ranks in one file by one_file_a_host"),
    ({"one_process": True, "one_file": "behind", "d": 2}, "GPUs of one pipeline"),
    ({"one_process": True, "one_file": "behind", "ranks_a_host": 2}, "runs on one host"),
    ({"one_process": True}, "one process leaves one file"),
    ({"one_file": "sideways"}, "one_file must be one of no, behind, shifted, sorted"),
    ({"calls": "some"}, "calls must be one of all, params, ops, ranges, none"),
    ({"comm_names": "rccl"}, "comm_names must be one of nccl, generic"),
    ({"comm_names": "generic"}, "p2p_args must be op or none"),
    ({"calls": "none", "backend": "cpu"}, "of GPUs that Kineto records"),
    ({"calls": "none", "recorder": "nsys"}, "of GPUs that Kineto records"),
    ({"ramp": (2, 0)}, "a ramp needs at least 1 micro-batch a step, found 0"),
    ({"schedule": "chimera", "ramp": (8, 7)}, "even"),
    ({"orders": [order("0F0 0B0")], "ramp": (1, 1)}, "explicit orders have one size"),
    ({"eval_steps": (2,)}, "there is no step 2 among 2"),
    ({"eval_steps": (0,), "schedule": "forward-only"}, "no evaluation beside them"),
    ({"eval_steps": (0,), "cycles": 2}, "there are no evaluations"),
    ({"eval_at": "within"}, "eval_at must be one of between, before, behind"),
    ({"zero_grad": "fill", "schedule": "forward-only"}, "no gradients to fill"),
    ({"c": 2, "kernels": 1}, "needs 2"),
    ({"c": 2, "backend": "cpu"}, "nothing passes round a ring"),
    ({"dp_op": "reduce-scatter", "backend": "cpu"}, "gloo reduces all"),
    ({"schedule": "seq1f1b", "slices": 2, "labels": "torch"}, "Forward i labels"),
    ({"schedule": "zb-h1", "labels": "torch"}, "Forward i labels"),
    ({"schedule": "chimera", "labels": "torch"}, "Forward i labels"),
    ({"orders": [order("0F0 0B0"), ()]}, "rank 1 has no actions"),
    ({"orders": [order("0F0 0F0")]}, "0F0 stands more than once"),
    ({"orders": [order("0B0 0F0")]}, "0B0 has no forward before it"),
    ({"orders": [order("0F0 0F1.0")]}, "some actions are slices"),
    ({"orders": [order("0F0 0B0")], "together": [Action.parse("0B0")]}, "there is none"),
    ({"orders": [order("0F0 0F1 0B0")], "together": order("0F0 0F1")}, "a block is two actions"),
]


@pytest.mark.parametrize(("made", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_jobs_that_cannot_be(made, message):
    """Before anything is simulated."""
    with pytest.raises(UsageError, match=message):
        Job(**made)


LATER = [
    ({"schedule": "gpipe", "variant": 2}, "gpipe has 2 orders"),
    ({"slices": 2}, "1f1b takes micro-batches whole"),
    ({"forward_ns": 100}, "0F0 takes 100 ns, which is too short for 4 kernels"),
    ({"schedule": "zb-h1", "weight_fraction": 0}, "W0 takes 1 ns"),
]


@pytest.mark.parametrize(("made", "message"), LATER, ids=[message for _, message in LATER])
def test_jobs_that_cannot_run(made, message):
    """What only their orders and times tell."""
    with pytest.raises(UsageError, match=message):
        truth(Job(**made))


def test_a_job_takes_lists():
    """What was given as a list is kept as a tuple."""
    assert Job(scale=[1.0, 2.0, 1.0, 1.0], missing=[2]) == Job(scale=(1.0, 2.0, 1.0, 1.0), missing=(2,))


def test_a_job_takes_an_alias():
    """And goes by the schedule's own name."""
    assert Job(schedule="ZBV", v=2) == Job(schedule="zb-v", v=2)
