"""Recordings in which nothing joins what the host did to what ran."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.model.options import Options
from bubblescope.reconstruct.passes import reconstruct
from tests.building import actions_of, kernel, launch, note, trace

SENDRECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
FORWARD, BACKWARD = "flash_fwd_kernel", "flash_bwd_kernel"
ADAM = "void at::native::multi_tensor_apply_kernel<FusedAdam>(x)"


def ran(number, *, launches=()):
    """Two steps of a first stage in 1F1B, each at 1000 k; every kernel has the number that `number` gives it."""
    rows, i = [], 0
    for at in (0, 1000):
        for name, start, end in (
            (FORWARD, 100, 150), (FORWARD, 150, 190), (SENDRECV, 195, 210),
            (FORWARD, 220, 270), (FORWARD, 270, 310), (SENDRECV, 315, 340), (SENDRECV, 320, 400),
            (BACKWARD, 410, 510), (BACKWARD, 510, 590), (SENDRECV, 595, 700),
            (BACKWARD, 710, 810), (BACKWARD, 810, 890), (ADAM, 900, 950),
        ):  # fmt: skip
            rows.append(kernel(name, at + start, at + end, number(i)))
            i += 1
    return [*rows, *(launch(each, 5 * k) for k, each in enumerate(launches))]


def names(*texts):
    """Labels of both steps, on the host long before anything ran, and the marks of the steps."""
    length = 10 * len(texts)
    return [
        *(note(f"PP:{text}", 10 * i, 10 * i + 9) for i, text in enumerate(2 * texts)),
        *(note(f"ProfilerStep#{4 + k}", length * k, length * (k + 1)) for k in (0, 1)),
    ]


def told(*rows):
    """The timeline, which has been through its own self-check."""
    result = reconstruct(trace(*rows), Options(), 0)
    result.self_check()
    return result


LABELS = ("2F0", "2F1", "2B0", "2B1")
WAYS = {
    "no launches": ran(lambda _: -1),
    "launches without kernels": ran(lambda i: 100 + i, launches=range(20)),
    "number 0 alone": ran(lambda _: 0, launches=[0] * 20),
}


@pytest.mark.parametrize("rows", WAYS.values(), ids=WAYS.keys())
def test_labels_name_what_kernels_tell(rows):
    """As many actions, of the same kinds in the same order, are called as labels say and ran when kernels ran."""
    found = told(rows, names(*LABELS))
    assert found.reconstruction == "kernels"
    assert [(text, start, end) for text, start, end, *_ in actions_of(found)][:4] == [
        ("2F0", 100, 190), ("2F1", 220, 310), ("2B0", 410, 590), ("2B1", 710, 890),
    ]  # fmt: skip
    assert found.steps.number.tolist() == [4, 5]
    assert found.named_stages == (2,)
    (finding,) = [f for f in found.findings if f.code == "unjoined-labels"]
    assert "4 forwards and 4 backwards" in finding.message


def test_labels_that_name_a_few_more_leave_the_kernels_their_actions():
    """A recording may begin or end amid a step: nothing tells which name is whose."""
    cut = [note("PP:2F9", 500, 505)]
    found = told(WAYS["no launches"], names(*LABELS), cut)
    assert len(found.actions) == 8
    assert set(found.actions.stage.tolist()) == {-1}
    assert found.named_stages == (2,)


def test_kernels_that_contradict_labels_tell_nothing():
    """Twice as many actions as kernels seem to be: what they tell is wrong, and the stages of the labels stay."""
    found = told(WAYS["no launches"], names("0F0", "2F0", "0F1", "2F1", "2B0", "0B0", "2B1", "0B1"))
    assert (len(found.actions), found.reconstruction) == (0, None)
    assert found.named_stages == (0, 2)
    assert [f.code for f in found.findings] == ["unjoined-labels"]


def test_one_launch_of_number_0_is_a_launch():
    """Where a recorder counts from 0 the first launch has that number, and joins."""
    built = trace(kernel(FORWARD, 100, 150, 0), launch(0, 12), note("PP:1F0", 10, 20))
    found = reconstruct(built, Options(), 0)
    assert [text for text, *_ in actions_of(found)] == ["1F0"]
    assert found.named_stages == ()
    assert not found.findings


def test_without_labels_nothing_is_said():
    """A recording of kernels alone has no labels to join."""
    found = told(WAYS["no launches"])
    assert [f.code for f in found.findings if f.code == "unjoined-labels"] == []
    assert len(found.actions) == 8


def test_numbers_of_a_recording_do_not_change():
    """What is left aside is left as it is in the trace."""
    built = trace(*WAYS["number 0 alone"], *names(*LABELS))
    before = built.kernels.correlation.copy()
    reconstruct(replace(built), Options(), 0)
    assert np.array_equal(built.kernels.correlation, before)
