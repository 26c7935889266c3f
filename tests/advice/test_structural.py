"""Proposals about the schedule: what they ask of the replay, and the textbook's numbers in their words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.advice.structural import (
    more_microbatches,
    needed,
    rule_of_thumb,
    smaller_microbatches,
    tensor_parallel,
    virtual_stages,
    zero_bubble,
)
from bubblescope.model.whatif import Memory
from tests.advice.runs import Fake, a_run, causes, quiet, said, with_bubble, with_imbalance


@pytest.mark.parametrize(
    ("p", "v", "share", "m"), [(8, 1, 0.05, 133), (8, 4, 0.05, 34), (8, 1, 0.1, 63), (4, 1, 0.1, 27), (2, 1, 0.5, 1)]
)
def test_micro_batches_for_a_share(p, v, share, m):
    """M >= (p-1)(1-share) / (v share); just as many keep the share, one less does not."""
    idle = (p - 1) / v
    assert needed(idle, share) == m
    assert idle / (idle + m) <= share + 1e-12
    assert m == 1 or idle / (idle + m - 1) > share


def test_a_second_of_waiting_for_a_second_of_work():
    """0.1 s of compute and 0.1 s of waiting is a bubble of half; four times the compute makes it a fifth."""
    assert needed(1.0, 0.5) == 1
    assert needed(1.0, 0.2) == 4


def test_rule_of_thumb():
    """M = 4p leaves 18 % at p = 8."""
    assert rule_of_thumb(8) == pytest.approx(7 / 39)
    assert f"{rule_of_thumb(8):.0%}" == "18%"
    assert rule_of_thumb(8, 4) == pytest.approx(7 / (4 * 32 + 7))


def test_more_microbatches():
    """Twice as many are replayed; the text has the run's own counts and what m = 4p would leave."""
    fake = Fake({"m=16": (0.1, a_run(microbatches=16, bubble=0.18))})
    told = said(more_microbatches, quiet(), fake)
    assert (told.code, told.gain, told.gain_ns, told.change) == ("more-microbatches", 0.1, 40_000_000, "m=16")
    assert told.title == "Run more micro-batches a step: 16 instead of 8"
    assert told.detail == (
        "4 ranks fill and drain for 8 micro-batches; with twice as many the bubble goes from 30.0% to 18.0%. On paper, "
        "with stages alike and transfers free, the bubble is 27.3%; 10% takes m = 27, 5% m = 57; m = 4p = 16, often "
        "called negligible, still leaves 15.8%."
    )


def test_eight_stages_are_told_the_textbook():
    """133 micro-batches for 5 %, 18 % left by the rule of thumb; p = 8 with m = 176 is 3.8 %."""
    told = said(more_microbatches, quiet(), Fake({"m=64": 0.1}, measured=a_run(pp=8, microbatches=32)))
    assert "5% m = 133" in told.detail
    assert "m = 4p = 32, often called negligible, still leaves 17.9%" in told.detail
    assert "p = 8 with m = 176, which leaves 3.8%, where m = 4p leaves 18%" in told.limits
    assert f"{7 / (176 + 7):.1%}" == "3.8%"


def test_virtual_stages_need_fewer_micro_batches():
    """34 at p = 8, v = 4, which the schedule takes 8 at a time; 10 % takes 16."""
    run = a_run(schedule="interleaved-1f1b", pp=8, virtual=4)
    detail = said(more_microbatches, quiet(), Fake({"m=16": 0.1}, measured=run)).detail
    assert "10% takes m = 16, 5% m = 40 (multiples of p = 8)" in detail


@pytest.mark.parametrize(
    ("m", "text"), [(26, "10% takes m = 27, 5% m = 57"), (27, "; 5% takes m = 57"), (56, "; 5% takes m = 57")]
)
def test_targets_that_are_met_are_left_out(m, text):
    """27 micro-batches have a bubble of 10 % at p = 4."""
    told = said(more_microbatches, quiet(), Fake({f"m={2 * m}": 0.1}, measured=a_run(microbatches=m)))
    assert text in told.detail


def test_all_targets_met():
    """57 micro-batches at p = 4 have a bubble of 5 %."""
    told = said(more_microbatches, quiet(), Fake({"m=114": 0.1}, measured=a_run(microbatches=57)))
    assert "takes m" not in told.detail


def test_a_small_rest_is_no_warning():
    """M = 4p leaves 4.5 % at p = 4, v = 4."""
    run = a_run(schedule="interleaved-1f1b", virtual=4)
    assert "negligible" not in said(more_microbatches, quiet(), Fake({"m=16": 0.1}, measured=run)).detail


def test_unknown_schedules_have_no_counts():
    """No formula, no number of micro-batches."""
    told = said(more_microbatches, quiet(), Fake({"m=16": 0.1}, measured=a_run(schedule="unknown")))
    assert "On paper" not in told.detail


@pytest.mark.parametrize(
    "rule", [more_microbatches, smaller_microbatches, virtual_stages, zero_bubble, tensor_parallel]
)
def test_what_cannot_be_is_not_proposed(rule):
    """Neither where the replay refuses it, nor where nothing can be replayed."""
    assert said(rule, quiet(), Fake()) is None
    assert said(rule, quiet(), None) is None


def test_smaller_microbatches():
    """Half the size, twice as many."""
    told = said(smaller_microbatches, quiet(), Fake({"microbatch=0.5": 0.08}))
    assert (told.code, told.gain, told.change) == ("smaller-microbatches", 0.08, "microbatch=0.5")
    assert "16 instead of 8" in told.title


@pytest.mark.parametrize(
    ("run", "change"),
    [
        (a_run(), "schedule=interleaved-1f1b,v=2"),
        (a_run(schedule="gpipe"), "schedule=interleaved-1f1b,v=2"),
        (a_run(schedule="interleaved-1f1b", virtual=2), "schedule=interleaved-1f1b,v=4"),
        (a_run(schedule="looped-bfs", virtual=2), "schedule=looped-bfs,v=4"),
    ],
)
def test_virtual_stages(run, change):
    """Twice as many as there are, in a schedule that takes several."""
    told = said(virtual_stages, quiet(), Fake({change: 0.1}, measured=run))
    assert (told.code, told.change) == ("virtual-stages", change)
    assert f"p v = {4 * 2 * run.virtual}" in told.detail


def test_virtual_stages_do_not_suit_a_fold():
    """zb-v has two chunks, and no schedule here has four that fold."""
    fake = Fake({"schedule=interleaved-1f1b,v=4": 0.1}, measured=a_run(schedule="zb-v", virtual=2))
    assert said(virtual_stages, quiet(), fake) is None


def test_zero_bubble_takes_the_better_one():
    """Both are replayed and told; the barrier is in the text, its price in the limits, and what a rank keeps."""
    better = a_run(schedule="zb-v", virtual=2, bubble=0.12, memory=Memory(activations=6.0, weights=1.0))
    fake = Fake({"schedule=zb-h1": (0.08, a_run(bubble=0.2)), "schedule=zb-v": (0.12, better)})
    told = said(zero_bubble, quiet(), fake)
    assert (told.code, told.gain, told.change) == ("zero-bubble", 0.12, "schedule=zb-v")
    assert told.title == "Split backwards into input and weight gradients with zb-v, two chunks a rank"
    assert "from 30.0% to 12.0%; zb-h1 saves 8.0% of a step" in told.detail
    assert "activations of 6 micro-batches instead of 4" in told.detail
    assert "barrier" in told.detail
    assert "7 to 10%" in told.limits
    assert "Table 10" in told.source


def test_zero_bubble_with_one_that_cannot_be():
    """The other one is proposed."""
    assert said(zero_bubble, quiet(), Fake({"schedule=zb-h1": 0.08})).change == "schedule=zb-h1"


@pytest.mark.parametrize(
    ("schedule", "virtual", "asked"),
    [
        ("interleaved-1f1b", 2, ["schedule=interleaved-zb", "schedule=zb-v"]),
        ("zb-h1", 1, ["schedule=zb-v"]),
        ("zb-v", 2, []),
        ("zb-2p", 1, []),
        ("dualpipe-v", 2, []),
        ("pipedream", 1, []),
        ("forward-only", 1, []),
        ("unknown", 1, []),
    ],
)
def test_zero_bubble_asks_what_suits(schedule, virtual, asked):
    """Nothing of runs that split already, have no backwards, or never drain."""
    fake = Fake(measured=a_run(schedule=schedule, virtual=virtual))
    assert said(zero_bubble, quiet(), fake) is None
    assert fake.asked == asked


@pytest.mark.parametrize(
    ("tp", "pp", "asked"), [(2, 4, ["tp=4"]), (4, 8, ["tp=8"]), (8, 8, []), (1, 2, []), (None, 4, [])]
)
def test_tensor_parallel_stays_in_a_node(tp, pp, asked):
    """Doubled up to 8, from 4 stages on, where the degree is known."""
    fake = Fake({"tp=4": (0.1, a_run(pp=2)), "tp=8": (0.1, a_run(pp=4))}, measured=a_run(tp=tp, pp=pp))
    told = said(tensor_parallel, quiet(), fake)
    assert fake.asked == asked
    assert (told is None) == (not asked)
    assert told is None or f"On the same GPUs {pp // 2} stages take the place of {pp}" in told.detail


@pytest.mark.parametrize(("tp", "words"), [(1, "Both ranks of a stage"), (2, "All 4 ranks of a stage")])
def test_two_ranks_are_both(tp, words):
    """And more than two are all."""
    fake = Fake({f"tp={2 * tp}": (0.1, a_run(pp=4))}, measured=a_run(tp=tp, pp=8))
    assert words in said(tensor_parallel, quiet(), fake).detail


@pytest.mark.parametrize(
    "rule", [more_microbatches, virtual_stages, zero_bubble, tensor_parallel, smaller_microbatches]
)
def test_nothing_is_promised_where_the_numbers_do_not_stand(rule):
    """The text then has no forecast in it."""
    answers = ["m=16", "microbatch=0.5", "schedule=interleaved-1f1b,v=2", "schedule=zb-h1", "tp=4"]
    run = a_run(bubble=0.123, memory=Memory(activations=9.0, weights=1.0))
    told = said(rule, with_bubble(quiet(), trusted=False), Fake(dict.fromkeys(answers, (0.1, run))))
    assert not any(number in told.detail for number in ("12.3%", "30.0%", " 9 micro-batches", "keeps"))


def test_half_of_a_backward_is_taken_for_its_weight_gradient():
    """Unless the run splits its backwards itself."""
    fake = Fake({"schedule=zb-h1": 0.08})
    split = quiet(stages=tuple(replace(stage, weight_ns=10) for stage in quiet().stages))
    assert "half of a backward" in said(zero_bubble, quiet(), fake).detail
    assert "half of a backward" not in said(zero_bubble, split, fake).detail


UNEVEN = with_imbalance(
    with_bubble(quiet(), causes=causes(structural=0.2, imbalance=0.1)), stage_ratio=1.3, slowest_stage=3
)
CUT = a_run(schedule="zb-v", virtual=2)


@pytest.mark.parametrize(
    ("joint", "text"), [(0.3, "Only 14.0% of a step would be left of that once stages are even"), (0.415, "")]
)
def test_what_spreading_a_heavy_stage_brings_is_told(joint, text):
    """Beyond even stages the change saves what both save together less what these do, 30 - 16 %."""
    answers = {
        "schedule=zb-v": (0.26, CUT),
        "without=imbalance": 0.16,
        "schedule=zb-v,without=imbalance": (joint, CUT),
    }
    told = said(zero_bubble, UNEVEN, Fake(answers))
    assert told.gain == 0.26
    assert text in told.detail
    assert ("heavy stage 3" in told.detail) == bool(text)


def test_known_layers_are_divided_anew_with_the_stages():
    """Then the change itself has even stages, and the best division of the present ones is taken off it."""
    told = said(zero_bubble, UNEVEN, Fake({"schedule=zb-v": (0.32, CUT), "layers=best": 0.16}))
    assert "Only 16.0% of a step would be left of that" in told.detail


def test_as_many_stages_spread_nothing():
    """No further replay is asked for."""
    fake = Fake({"schedule=zb-h1": 0.1})
    said(zero_bubble, UNEVEN, fake)
    assert fake.asked == ["schedule=zb-h1", "schedule=zb-v"]


@pytest.mark.parametrize(("tp", "free"), [(1, True), (2, False)])
def test_collectives_that_the_run_does_not_show_are_free(tp, free):
    """The title says so, where the gain stands."""
    run = a_run(tp=tp)
    told = said(tensor_parallel, quiet(), Fake({f"tp={2 * tp}": (0.1, a_run(pp=2))}, measured=run))
    assert told.title.endswith("if their collectives cost nothing: this run shows none") == free
    assert ("at the speed that was measured" in told.detail) != free
