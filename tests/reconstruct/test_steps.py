"""Where one step ends and the next begins."""

from __future__ import annotations

import numpy as np

from bubblescope.reconstruct import steps
from bubblescope.reconstruct.units import NO_HOST, Units, gather
from tests.building import kernel, launch, note, op, run, trace

OPTIMIZER = "Optimizer.step#AdamW.step"


def units_of(built):
    """All units of a trace."""
    return Units.concat(gather(built))


def find(built, again=(), begun=()):
    """The steps of a trace on the host."""
    return steps.find(built, units_of(built), np.array(again, np.int64), np.array(begun, np.int64))


def marks_of(built, again=()):
    """(number, start, end) of each step on the host."""
    found = find(built, again)
    return list(zip(found.number.tolist(), found.start.tolist(), found.end.tolist(), strict=True))


def test_profiler_steps_carry_their_numbers():
    """A mark lasts until the next, so that work between two annotations is not lost; the last ends by itself."""
    built = trace(note("ProfilerStep#3", 0, 10), note("ProfilerStep#4", 20, 30), op("between", 12, 15))
    assert marks_of(built) == [(3, 0, 20), (4, 20, 30)]
    found = find(built)
    assert steps.rows_of(found, units_of(built)).tolist() == [0]


def test_profiler_steps_in_any_order():
    """Rows out of order are put in time order."""
    built = trace(note("ProfilerStep#5", 40, 50), note("ProfilerStep#3", 0, 10), note("ProfilerStep#4", 20, 30))
    assert marks_of(built) == [(3, 0, 20), (4, 20, 40), (5, 40, 50)]


def test_a_step_marked_twice_counts_once():
    """The earliest of marks with one number stands."""
    built = trace(note("ProfilerStep#3", 0, 10), note("ProfilerStep#3", 1, 9), note("ProfilerStep#4", 20, 30))
    assert marks_of(built) == [(3, 0, 20), (4, 20, 30)]


def test_a_step_that_comes_again_later():
    """Ends the one before it, is none itself, and is told."""
    rows = [note(f"ProfilerStep#{n}", at, at + 10) for n, at in ((3, 0), (4, 20), (3, 100), (4, 120))]
    built = trace(rows, op("again", 105, 108))
    assert marks_of(built) == [(3, 0, 20), (4, 20, 30)]
    assert steps.rows_of(find(built), units_of(built)).tolist() == [steps.NONE]
    (told,) = steps.repeated(built)
    assert (told.code, told.severity, "2 of 2 (3, 4)" in told.message) == ("repeated-steps", "warning", True)
    assert steps.repeated(trace(rows[:2], note("ProfilerStep#3", 1, 9))) == ()


def test_a_step_whose_next_mark_is_missing():
    """Lasts as long as its own mark: what runs until the mark after that is not its."""
    built = trace(
        note("ProfilerStep#3", 0, 10), note("ProfilerStep#5", 40, 50), run("a", 5, 6, 9), run("b", 45, 46, 49)
    )
    assert marks_of(built) == [(3, 0, 10), (5, 40, 50)]
    found = steps.extent(find(built), *gather(built), on_gpu=True)
    assert (found.start.tolist(), found.end.tolist()) == ([6, 46], [10, 50])


def test_steps_that_hold_moments():
    """By number, each once; what lies outside of all is in none."""
    found = find(trace(note("ProfilerStep#3", 0, 10), note("ProfilerStep#4", 20, 30)))
    assert steps.holding(found, np.array([-5, 3, 4, 31])) == (3,)


def test_names_that_nearly_are_marks():
    """Only the profiler's own mark is one; without any, the whole file is a step."""
    names = ["ProfilerStep#", "ProfilerStep#3b", "my ProfilerStep#3", "ProfilerStep*"]
    built = trace([note(name, 0, 10) for name in names], op("aten::mm", 2, 7), op("aten::mm", 8, 9))
    assert marks_of(built) == [(0, 2, 9)]


def test_marks_beat_everything_else():
    """Where the profiler marked steps, neither recurrence nor the optimizer cuts."""
    built = trace(note("ProfilerStep#1", 0, 100), note(OPTIMIZER, 40, 50), op("aten::mm", 10, 20))
    assert marks_of(built, again=[30]) == [(1, 0, 100)]


def test_marks_that_cut_through_the_pipeline_still_number_the_steps():
    """Marks a little late on all ranks tear only those that begin at once: all must count alike."""
    marks = [note("ProfilerStep#4", 12, 100), note("ProfilerStep#5", 112, 200)]
    ends = [note(OPTIMIZER, at, at + 10) for at in (80, 180)]
    built = trace(*marks, *ends, op("aten::mm", 10, 70), op("aten::mm", 110, 170), op("aten::sum", 195, 198))
    torn = steps.find(built, units_of(built), np.array([], np.int64), np.array([10, 110]), lambda _: True)
    assert torn.number.tolist() == [4, 5]
    assert torn.end.tolist() == [90, 190]


def test_a_recurrence_cuts():
    """Without marks a step begins where a named action comes again, and the optimizer does not cut."""
    built = trace(note(OPTIMIZER, 40, 45), op("aten::mm", 10, 20), op("aten::mm", 60, 70))
    assert marks_of(built, again=[50]) == [(0, 10, 50), (1, 50, 70)]


def test_cuts_outside_the_work_make_no_steps():
    """A recurrence at the very first work, or after the last, adds no empty step."""
    built = trace(op("aten::mm", 10, 20), op("aten::mm", 60, 70))
    assert marks_of(built, again=[5, 10, 90]) == [(0, 10, 70)]


def test_the_end_of_the_optimizer_cuts():
    """Without marks and labels a step ends with its optimizer."""
    built = trace(op("a", 10, 20), note(OPTIMIZER, 20, 30), op("b", 40, 50), note(OPTIMIZER, 50, 60), op("c", 70, 80))
    assert marks_of(built) == [(0, 10, 30), (1, 30, 60), (2, 60, 80)]


def test_a_long_pause_between_steps_makes_no_others_one():
    """Where actions run between all calls of the optimizer, each ends a step, however long an evaluation takes once."""
    ends = [note("Optimizer.step#Adam", at - 5, at) for at in (100, 200, 9000, 9100)]
    assert steps.optimizer_ends(trace(*ends), np.array([10, 150, 8950, 9050])).tolist() == [100, 200, 9000, 9100]
    assert steps.optimizer_ends(trace(*ends), np.array([10, 8950])).tolist() == [200, 9100]


def test_two_optimizers_in_a_row_end_one_step():
    """Two optimizers of one model do not make a step of the moment between them."""
    built = trace(
        op("a", 0, 100),
        [note(OPTIMIZER, 100, 110), note(OPTIMIZER, 111, 120)],
        op("b", 130, 230),
        [note(OPTIMIZER, 231, 240), note(OPTIMIZER, 241, 250)],
        op("c", 260, 300),
    )
    assert marks_of(built) == [(0, 0, 120), (1, 120, 250), (2, 250, 300)]


def test_zeroing_gradients_ends_no_step():
    """Optimizer.zero_grad is no end of a step."""
    built = trace(op("a", 0, 10), note("Optimizer.zero_grad#AdamW.zero_grad", 20, 30), op("b", 40, 50))
    assert marks_of(built) == [(0, 0, 50)]


def test_nothing_at_all():
    """A trace without units has no step."""
    assert marks_of(trace(note("hello", 0, 10))) == []
    assert steps.rows_at(steps.Marks.empty(), np.array([5])).tolist() == [-1]


def test_kernels_alone_make_one_step():
    """Without any launch the kernels' own times bound the step, the last one included."""
    assert marks_of(trace(kernel("gemm", 5, 9), kernel("gemm", 20, 30))) == [(0, 5, 21)]


def test_work_belongs_to_the_step_that_launched_it():
    """A kernel that runs after the next step began still belongs to the step whose host asked for it."""
    built = trace(note("ProfilerStep#1", 0, 10), note("ProfilerStep#2", 10, 20), run("late", 9, 15, 18))
    found = find(built)
    assert steps.rows_of(found, units_of(built)).tolist() == [0]


def test_work_without_a_launch_is_dated_by_its_start():
    """Where no launch was recorded, the kernel's own start says which step; outside all steps it has none."""
    built = trace(
        note("ProfilerStep#1", 0, 10), note("ProfilerStep#2", 10, 20), launch(1, 3),
        kernel("known", 12, 14, 1), kernel("first", 5, 6), kernel("second", 15, 16), kernel("after", 25, 26),
    )  # fmt: skip
    units = units_of(built)
    rows = steps.rows_of(find(built), units).tolist()
    assert dict(zip(units.start.tolist(), rows, strict=True)) == {12: 0, 5: 0, 15: 1, 25: -1}
    assert sorted(units.host.tolist())[:3] == [NO_HOST] * 3


def test_work_launched_before_the_recording_began():
    """Is of the first step where nothing marks any: the file shows it, and it counts."""
    built = trace(kernel("before", 5, 6), run("known", 10, 12, 14), run("last", 20, 22, 24))
    assert marks_of(built) == [(0, 5, 21)]
    assert steps.rows_of(find(built), units_of(built)).tolist() == [0, 0, 0]


def test_moments_outside_the_steps_have_none():
    """Before the first and after the last mark there is no step; a border belongs to the later one."""
    marks = steps.Marks([1, 2], [10, 20], [20, 30])
    moments = np.array([9, 10, 19, 20, 30, 31])
    assert steps.rows_at(marks, moments).tolist() == [-1, 0, 0, 1, 1, -1]


def extent_of(built):
    """(number, start, end) of each step where it ran."""
    work, communication, _ = gather(built)
    found = find(built)
    rows = steps.extent(found, work, communication, on_gpu=built.on_gpu)
    return list(zip(rows.number.tolist(), rows.start.tolist(), rows.end.tolist(), strict=True))


def test_on_a_gpu_a_step_lasts_from_its_first_kernel_to_the_next_steps():
    """The stream runs behind the host, and so do the steps; the last ends with its last kernel."""
    built = trace(
        note("ProfilerStep#1", 0, 10), note("ProfilerStep#2", 10, 20),
        run("a", 1, 100, 110), run("ncclDevKernel_SendRecv(x)", 2, 105, 130), run("b", 12, 150, 160),
    )  # fmt: skip
    assert extent_of(built) == [(1, 100, 150), (2, 150, 160)]


def test_on_a_gpu_a_step_that_asked_for_nothing_keeps_its_mark():
    """A step without kernels begins at its mark."""
    built = trace(note("ProfilerStep#1", 0, 10), note("ProfilerStep#2", 10, 20), run("a", 12, 15, 28))
    assert extent_of(built) == [(1, 0, 15), (2, 15, 28)]


def test_on_a_gpu_the_last_step_ends_with_its_host_too():
    """A host that goes on after the last kernel is still at work on the step."""
    built = trace(note("ProfilerStep#1", 0, 50), run("a", 12, 15, 28))
    assert extent_of(built) == [(1, 15, 50)]


def test_on_a_host_the_marks_are_the_steps():
    """Without a GPU the host's marks stand."""
    built = trace(note("ProfilerStep#1", 0, 10), note("ProfilerStep#2", 12, 20), op("a", 3, 4))
    assert extent_of(built) == [(1, 0, 12), (2, 12, 20)]


def test_the_whole_file_begins_with_its_first_action():
    """A label stands before the first launch in it; its step does too, or its action would belong to none."""
    built = trace(note("PP:0F0", 0, 10), run("a", 5, 20, 30))
    found = find(built, begun=[0])
    assert (found.start.tolist(), found.end.tolist()) == ([0], [6])


def test_on_a_host_the_whole_file_ends_with_its_last_work():
    """Without a GPU the last operator's own time belongs to the step."""
    assert extent_of(trace(op("a", 3, 4), op("b", 10, 90), op("c", 20, 30))) == [(0, 3, 90)]
