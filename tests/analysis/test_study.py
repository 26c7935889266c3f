"""Whole reports of jobs in the corners: no pipeline, no action, no step, nothing but one kernel."""

from __future__ import annotations

import dataclasses

import pytest

from bubblescope.align.resolve import resolve
from bubblescope.analysis.assemble import assemble
from bubblescope.analysis.study import study
from bubblescope.emit import Job, write
from bubblescope.engine import analyze
from bubblescope.model.options import Options
from bubblescope.model.timeline import Steps
from bubblescope.reconstruct.passes import reconstruct
from tests.analysis.jobs import RANK_0, RANK_1, call, job, one_f_one_b, rank, report, steps
from tests.building import forward, kernel, note, op, run, timeline, trace


def test_an_order_that_fits_nothing_is_not_believed_where_kernels_alone_tell_halves(tmp_path):
    """The two chunks of zb-v look like twice the micro-batches of one: neither these nor the bubble are told."""
    job = Job(schedule="zb-v", p=3, m=9, v=2, kernels=2, labels="none", autograd=False, p2p_args="none", missing=(1,))
    write(job, tmp_path)
    report = analyze([str(tmp_path)], Options(jobs=1)).report
    assert (report.schedule.name, report.schedule.microbatches, report.bubble.measured) == ("unknown", None, None)


def resolved(*timelines, **options):
    """The report of ranks that are laid out by what they tell."""
    asked = Options(**options)
    return assemble(study(resolve({t.rank: t for t in timelines}, asked), asked), asked)


def recorded(*rows, **options):
    """The report of one trace of literal events."""
    asked = Options(**options)
    return resolved(reconstruct(trace(*rows), asked, 0), **options)


def nothing_piped(found):
    """A report that says in every place that there is no pipeline."""
    assert (found.schedule.name, found.schedule.confidence, found.schedule.microbatches) == ("none", 1, None)
    assert (found.layout.pp, found.layout.virtual, found.layout.stages) == (1, 1, ())
    assert (found.bubble.measured, found.bubble.lower, found.bubble.formula, found.bubble.replay) == (None,) * 4
    assert not found.bubble.trusted
    assert (found.pipelines, found.stages, found.worst_bubbles) == ((), (), ())
    assert all((row.bubble, row.pipeline, row.pp_ns) == (None, None, 0) for row in found.ranks)
    return True


def test_data_parallel_ranks_have_no_pipeline():
    """The window is the step, and the collectives are still split into wait and transfer."""
    ranks = [
        rank(r, stray=[(0, 50 + 10 * r)], calls=[call("dp", 50 + 10 * r, 80, ranks=(0, 1))], steps=[(0, 0, 100)])
        for r in range(2)
    ]
    found = resolved(*ranks)
    assert nothing_piped(found)
    assert [(row.window_ns, row.compute_ns, row.dp_ns, row.host_ns) for row in found.ranks] == [
        (100, 50, 30, 20),
        (100, 60, 20, 20),
    ]
    (row,) = found.communication
    assert (row.group, row.total_ns, row.transfer_ns, row.wait_ns) == ("dp", 25, 20, 5)
    assert found.quality.verdict == "ok"


def test_without_a_pipeline_used_steps_count_as_with_one():
    """The first of three is left out, of rows and of communication."""
    made = [call("dp", 60 + 100 * k, 60 + 100 * k + 10 * (k > 0), step=k) for k in range(3)]
    stray = [(0, 90), (100, 150), (200, 230)]
    found = resolved(rank(0, stray=stray, calls=made, steps=steps(3)))
    assert [(s.step, s.complete, s.used) for s in found.steps] == [(0, True, False), (1, True, True), (2, True, True)]
    assert (found.ranks[0].compute_ns, found.communication[0].total_ns) == (40, 10)


def test_one_kernel_is_an_answer():
    """A trace with nothing else: its step is that kernel."""
    found = recorded(kernel("gemm", 5, 25))
    assert nothing_piped(found)
    assert (found.ranks[0].window_ns, found.ranks[0].compute_ns) == (20, 20)
    assert [(s.start_ns, s.end_ns) for s in found.steps] == [(0, 20)]


def test_operators_alone_are_an_answer():
    """A run without a GPU: operators are the compute."""
    found = recorded(op("aten::mm", 0, 10), op("aten::mm", 15, 20))
    assert nothing_piped(found)
    assert (found.ranks[0].compute_ns, found.ranks[0].host_ns, found.inputs[0].device) == (15, 5, None)


def test_forwards_without_anything_else_are_an_answer():
    """Operators with autograd's numbers, and no backward."""
    assert nothing_piped(recorded(forward(0, 1, 2, 3)))


def test_a_trace_of_nothing_is_an_answer():
    """No event at all: the file may be refused before, the analysis does not fall over it."""
    found = recorded()
    assert nothing_piped(found)
    assert (found.steps, found.communication) == ((), ())
    assert [row.window_ns for row in found.ranks] == [0]


def test_a_labelled_run_on_one_rank_is_no_pipeline():
    """Stage 0 alone has nobody to wait for."""
    assert nothing_piped(resolved(rank(0, [("0F0", 0, 10), ("0B0", 10, 30)])))


def test_a_rank_with_no_step_among_others():
    """It is as good as not recorded: all ranks have rows, and no single bubble is measured."""
    empty = dataclasses.replace(rank(1), steps=Steps.empty())
    found = report(job(rank(0, RANK_0), empty))
    assert (found.bubble.measured, [s.complete for s in found.steps]) == (None, [True])
    assert found.bubble.lower is not None
    assert [(row.rank, row.window_ns) for row in found.ranks] == [(0, 90), (1, 0)]
    assert "unlabelled" in {f.code for f in found.quality.findings}


def test_a_rank_without_actions_among_others():
    """It is as good as not recorded: the others tell the schedule; what ran on it is still told."""
    found = report(job(rank(0, RANK_0), rank(1, stray=[(10, 70)], steps=[(0, 0, 100)])))
    assert (found.bubble.measured, found.schedule.name) == (None, "1f1b")
    assert [(row.compute_ns, row.host_ns) for row in found.ranks] == [(60, 30), (60, 40)]
    assert found.quality.verdict == "degraded"


def test_messages_without_any_action_are_an_unknown_schedule():
    """Stages talk, and nobody knows what they do."""
    ranks = [rank(r, stray=[(0, 10)], messages=[(f"send {1 - r}", 10, 20)]) for r in range(2)]
    found = resolved(*ranks)
    assert (found.schedule.name, found.schedule.confidence, found.schedule.reconstruction) == ("unknown", 0, None)
    assert found.layout.pp == 2
    assert any("no forward or backward could be told" in fact for fact in found.schedule.evidence)
    assert [row.pp_ns for row in found.ranks] == [10, 10]


def test_kernels_of_a_pipeline_without_host_are_an_answer():
    """Sends and computation on the GPU, and no launch of them."""
    found = recorded(kernel("gemm", 0, 10), kernel("ncclDevKernel_SendRecv(x)", 10, 20), kernel("gemm", 22, 30))
    assert (found.schedule.name, found.schedule.confidence, found.layout.pp) == ("none", 0.0, None)
    assert found.bubble.measured is None
    assert (found.ranks[0].compute_ns, found.ranks[0].other_ns, found.ranks[0].host_ns) == (18, 10, 2)
    assert [f.code for f in found.quality.findings] == ["unlabelled"]


def test_labels_of_a_pipeline_are_no_proof_of_none():
    """Those of DualPipe name parts of forwards and backwards on one rank, and its messages were not recorded."""
    found = recorded(
        *(note("1F1B", 0, 9), note("attn(F)", 1, 3), note("mlp(B)", 4, 8)),
        *(run("gemm", 2, 10, 20), run("gemm", 5, 20, 40)),
    )
    assert (found.schedule.name, found.quality.verdict) == ("none", "degraded")
    assert [f.code for f in found.quality.findings] == ["unlabelled"]
    assert "labels on rank 0 are those of a pipeline's forwards and backwards" in found.quality.findings[0].message


def test_labels_of_a_training_loop_are_no_sign_of_a_pipeline():
    """Anybody calls a forward a forward."""
    found = recorded(
        *(note("DeepSpeedEngine.forward", 1, 3), note("DeepSpeedEngine.backward", 4, 8)),
        *(run("gemm", 2, 10, 20), run("gemm", 5, 20, 40)),
    )
    assert (found.schedule.name, found.quality.verdict) == ("none", "ok")


def test_a_rank_beside_the_pipeline_keeps_its_step():
    """Rank 2 is in no pipeline: its window is the step, as if there were none."""
    of = job(rank(0, RANK_0), rank(1, RANK_1), rank(2, stray=[(0, 40)], steps=[(0, 0, 100)]), pipelines=[[[0], [1]]])
    found = report(of)
    assert found.bubble.measured == pytest.approx(1 / 3)
    assert (found.ranks[2].pipeline, found.ranks[2].window_ns, found.ranks[2].compute_ns) == (None, 100, 40)


def test_a_study_holds_what_its_report_rests_on():
    """Two used steps of one pipeline, m, and the schedule."""
    found = study(one_f_one_b(times=3), Options())
    assert (found.used, found.microbatches, found.piped, len(found.whole)) == ([1, 2], 2, True, 2)
    assert found.schedule.shape.p == 2


def test_a_study_without_a_pipeline_has_no_micro_batches():
    """And no schedule."""
    found = study(resolve({0: rank(0, stray=[(0, 10)])}, Options()), Options())
    assert (found.microbatches, found.piped, found.steps, found.schedule) == (None, False, [], None)


def test_the_report_names_its_inputs_and_its_clock():
    """By rank, with what the files told."""
    found = report(one_f_one_b())
    assert [(i.rank, i.path, i.format, i.rank_source) for i in found.inputs] == [
        (r, "rank.json", "kineto", "order") for r in range(2)
    ]
    assert (found.clock.method, found.clock.offsets_ns, found.clock.error_ns) == ("recorded", {"0": 0, "1": 0}, None)
    assert [(s.stage, s.chunk, s.ranks) for s in found.layout.stages] == [(0, 0, (0,)), (1, 0, (1,))]


def test_departures_name_a_rank_that_was_recorded():
    """Nobody holds position 0 of the first pipeline; rank 3 holds it in the second, and swapped two backwards."""
    order = ("F0", "F1", "F2", "F3", "B0", "B1", "B3", "B2")
    one = rank(3, [(f"0{name}", 10 * i, 10 * i + 10) for i, name in enumerate(order)])
    found = report(job(one, pipelines=[[[], [1]], [[3], [2]]], placement={0: (0,), 1: (1,)})).schedule
    assert (found.name, found.confidence) == ("gpipe", 7 / 8)
    assert [(d.rank, d.expected, d.found) for d in found.departures] == [(3, None, "0B3"), (3, "0B3", None)]


@pytest.mark.parametrize(("count", "pp"), [(4, None), (3, 3), (2, 2)])
def test_an_assumed_layout_is_no_fact(count, pp):
    """Four ranks that send and tell no more may be two pipelines; of three, if there is one at all, all are."""
    messages = [("send ?", 10, 20), ("recv ?", 30, 40)]
    ranks = [timeline(r, messages=messages, steps=[(0, 0, 100)]) for r in range(count)]
    found = resolved(*ranks)
    assert (found.schedule.name, found.layout.source) == ("unknown", "rank order, assumed")
    assert (found.layout.world_size, found.layout.pp) == (count, pp)
    assert (found.layout.tp is None, found.layout.dp is None) == (pp is None, pp is None)
    assert found.bubble.measured is None


def test_an_assumed_layout_bounds_no_bubble():
    """Where they may be two pipelines, the actions of some ranks do not tell how long others work."""
    acting = {0: [("?F0", 10, 30), ("?B0", 50, 80)], 1: [("?F0", 10, 20), ("?F1", 20, 30), ("?B0", 50, 80)]}
    messages = [("send ?", 30, 40), ("recv ?", 40, 50)]
    ranks = [timeline(r, actions=acting.get(r, []), messages=messages, steps=[(0, 0, 100)]) for r in range(4)]
    found = resolved(*ranks)
    assert (found.schedule.name, found.layout.source) == ("unknown", "rank order, assumed")
    assert (found.layout.pp, found.bubble.lower, found.bubble.upper) == (None, None, None)
