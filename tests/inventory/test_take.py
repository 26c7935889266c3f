"""What `info` says of files whose truth is known: emitted runs, whole, stripped, damaged and beside foreign files."""

from __future__ import annotations

import gzip
import multiprocessing
import sqlite3
from collections import Counter
from contextlib import closing
from dataclasses import replace

import orjson
import pytest

import bubblescope
from bubblescope.emit import Job, write
from bubblescope.engine import analyze
from bubblescope.errors import InputError
from bubblescope.model.options import Options
from bubblescope.report import inventories

RUN = Job(schedule="1f1b", p=2, m=4, steps=3, first_step=7, kernels=3)
TP = Job(schedule="1f1b", p=2, t=2, d=2, m=4, steps=2, kernels=3)


@pytest.fixture
def told(tmp_path):
    """A function that writes a run and says what its files are."""

    def of(job: Job, **options):
        folder = tmp_path / "traces"
        write(job, folder, overwrite=True)
        return bubblescope.info([str(folder)], **options)

    return of


def ranks(found):
    """What the traces hold of each rank."""
    return [rank for file in found.files for rank in file.ranks]


def needs(found):
    """The codes of all that is lacking."""
    return {need.code for rank in ranks(found) for need in rank.needs}


def test_a_file_says_who_recorded_it(told):
    """Size, compression, rank, world, host, backend and device."""
    found = told(RUN)
    for number, file in enumerate(file for file in found.files if file.trace):
        (rank,) = file.ranks
        assert (file.format, file.looks_like, file.gzip) == ("kineto", "a PyTorch Profiler trace", True)
        assert file.bytes > 0
        assert (rank.rank, rank.rank_source, rank.world_size) == (number, "metadata", 2)
        assert (rank.host, rank.backend, rank.devices) == ("node0", "nccl", ("NVIDIA H100 80GB HBM3",))


def test_events_are_those_of_the_file(tmp_path):
    """Each kind, counted in the JSON itself."""
    write(RUN, tmp_path)
    for path in sorted(tmp_path.glob("rank*")):
        events = orjson.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        kinds = Counter(event.get("cat") for event in events if event["ph"] == "X")
        ((rank,),) = (file.ranks for file in bubblescope.info([str(path)]).files)
        assert rank.events == len(events)
        assert rank.counts.kernels == kinds["kernel"]
        assert rank.counts.operators == kinds["cpu_op"]
        assert rank.counts.launches == kinds["cuda_runtime"]
        assert rank.counts.ranges == kinds["user_annotation"]
        timed = [event for event in events if event["ph"] == "X"]
        assert rank.span_ns == pytest.approx(
            1000 * (max(e["ts"] + e["dur"] for e in timed) - min(e["ts"] for e in timed)), rel=1e-3
        )


def test_steps_and_actions_are_those_of_the_run(told):
    """3 steps of 4 forwards and 4 backwards, told by labels of a dialect that is named."""
    for rank in ranks(told(RUN)):
        assert rank.marked
        assert [(step.step, step.actions, step.complete) for step in rank.steps] == [(n, 8, True) for n in (7, 8, 9)]
        assert (rank.actions.told_by, rank.actions.dialect) == ("labels", "torch stages")
        assert rank.actions.counts == {"F": 12, "B": 12}
        assert rank.counts.messages == 3 * 4 * 2
        assert rank.problem is None


def test_streams_say_what_runs_on_them(told):
    """The kernels of all streams are all kernels; messages, collectives and compute are told apart."""
    for rank in ranks(told(TP)):
        lanes = rank.lanes
        assert sum(lane.compute + lane.messages + lane.collectives for lane in lanes) == rank.counts.kernels
        assert sum(lane.collectives for lane in lanes) == rank.counts.collectives
        assert sum(lane.messages for lane in lanes) == rank.counts.messages
        assert all(0 < lane.busy_ns <= rank.span_ns for lane in lanes)


def test_communicators_are_told_with_what_they_serve(told):
    """By their descriptions; how often each was used adds up."""
    for rank in ranks(told(TP)):
        purposes = {group.purpose for group in rank.groups}
        assert {"pp", "tp", "dp"} <= purposes
        used = sum(group.calls for group in rank.groups)
        assert used == rank.counts.collectives + rank.counts.messages


def test_threads_hold_all_events_of_the_host(told):
    """Each event is of one of them."""
    for rank in ranks(told(RUN)):
        assert sum(thread.operators for thread in rank.threads) == rank.counts.operators
        assert sum(thread.launches for thread in rank.threads) == rank.counts.launches
        assert sum(thread.ranges for thread in rank.threads) == rank.counts.ranges


def rewritten(folder, change):
    """What is said of a run whose first rank has its events changed by `change(events)`."""
    write(RUN, folder, overwrite=True)
    path = folder / "rank0_trace.json.gz"
    trace = orjson.loads(gzip.decompress(path.read_bytes()))
    trace["traceEvents"] = change(trace["traceEvents"])
    path.write_bytes(gzip.compress(orjson.dumps(trace)))
    ((rank,),) = (file.ranks for file in bubblescope.info([str(path)]).files)
    return rank


def test_events_of_other_processes_do_not_count(tmp_path):
    """They are listed by thread, but neither stretch the span nor add to the counts, as no number rests on them."""
    alien = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 99, "tid": 99, "ts": 1.0, "dur": 5.0}
    plain = rewritten(tmp_path, lambda events: events)
    added = rewritten(tmp_path, lambda events: [{**alien, "ts": events[1]["ts"] - 9e8}, *events])
    assert (added.start_ns, added.span_ns, added.counts) == (plain.start_ns, plain.span_ns, plain.counts)
    assert added.steps == plain.steps
    assert added.events == plain.events + 1
    assert [thread.pid for thread in added.threads if thread.operators == 1] == ["99"]


def test_kernels_of_the_last_launches_are_asked_for(tmp_path):
    """By waiting for them at the end of the recording."""
    kernels = []

    def lose(events):
        kernels.extend(event["ts"] for event in events if event.get("cat") == "kernel")
        last = sorted(kernels)[-12:]
        return [event for event in events if event.get("cat") != "kernel" or event["ts"] not in last]

    assert "ending" in {need.code for need in rewritten(tmp_path, lose).needs}


@pytest.mark.parametrize("change", [{}, {"backend": "cpu"}])
def test_a_file_that_is_cut_off_lacks_no_waiting(tmp_path, change):
    """What is behind the cut was recorded; and on CPU there is no GPU to wait for."""
    write(replace(RUN, **change), tmp_path)
    text = gzip.decompress((tmp_path / "rank0_trace.json.gz").read_bytes())
    cut = tmp_path / "cut.json"
    cut.write_bytes(text[: len(text) * 8 // 10])
    ((rank,),) = (file.ranks for file in bubblescope.info([str(cut)]).files)
    assert rank.steps[-1].complete is False
    assert "ending" not in {need.code for need in rank.needs}


def test_a_whole_run_lacks_nothing(told):
    """And analyze measures its bubble."""
    found = told(RUN)
    assert needs(found) == set()
    job = found.job
    assert (job.world_size, job.ranks, job.missing_ranks) == (2, (0, 1), ())
    assert (job.common_steps, job.complete_steps) == ((7, 8, 9), (7, 8, 9))
    assert (job.answer, job.verdict, job.problem) == ("bubble", "ok", None)
    assert job.command.startswith("bubblescope analyze ")


@pytest.mark.parametrize(
    ("change", "codes"),
    [
        ({"labels": "none", "autograd": False}, {"labels"}),
        ({"labels": "none", "autograd": False, "host": "none"}, {"labels", "host"}),
        ({"metadata": "none", "neutral_names": True}, {"rank"}),
        ({"steps": 1}, {"more-steps"}),
    ],
)
def test_what_a_recording_lacks_is_named(told, change, codes):
    """With the line that adds it."""
    found = told(replace(RUN, **change))
    assert codes <= needs(found)
    assert all(need.add and need.lacks for rank in ranks(found) for need in rank.needs)


def test_lines_are_in_the_words_of_the_recorder(told):
    """An export of Nsight Systems asks for NVTX ranges and for its own options."""
    found = told(replace(RUN, recorder="nsys", labels="none", autograd=False, payloads="none"))
    lines = {need.code: need.add for rank in ranks(found) for need in rank.needs}
    assert lines["labels"].startswith("with torch.cuda.nvtx.range(")
    assert lines["payloads"] == "nsys export --type sqlite --include-json=true"
    assert {file.format for file in found.files if file.trace} == {"nsys"}


def test_a_missing_rank_is_named_with_the_job(told):
    """The bubble is then an interval."""
    job = told(replace(RUN, missing=(1,))).job
    assert (job.ranks, job.missing_ranks, job.world_size) == ((0,), (1,), 2)
    assert (job.answer, job.verdict) == ("interval", "degraded")
    assert job.problem == "no trace of rank 1"
    assert [need.code for need in job.needs] == ["ranks"]


def test_a_file_that_cannot_be_read_does_not_stop_the_others(told, tmp_path):
    """Its row says why and what to do, and the job is made of the rest."""
    told(replace(RUN, missing=(1,)))
    with closing(sqlite3.connect(tmp_path / "traces" / "rank1.sqlite")) as database:
        database.execute("CREATE TABLE META_DATA_EXPORT (name TEXT)")
    found = bubblescope.info([str(tmp_path / "traces")])
    export = next(file for file in found.files if file.path.endswith("rank1.sqlite"))
    assert (export.trace, export.format, export.ranks) == (True, None, ())
    assert "expected kernels, found none" in export.problem
    assert export.hint.startswith("Record with nsys profile")
    assert found.job.ranks == (0,)
    assert found.readable


def test_foreign_files_are_listed_as_what_they_look_like(tmp_path):
    """With what to do; none of them can be read, and the job is nothing."""
    (tmp_path / "empty.json").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("so what")
    found = bubblescope.info([str(tmp_path)])
    assert [(file.looks_like, file.trace, file.format) for file in found.files] == [
        ("an empty file", False, None),
        ("text", False, None),
    ]
    assert all(file.problem and file.hint for file in found.files)
    assert not found.readable
    assert (found.job.answer, found.job.command) == ("nothing", None)


def test_two_files_of_one_rank_are_a_problem_of_the_job_only(told, tmp_path):
    """Both are described, and the job says which they are."""
    told(RUN)
    copy = tmp_path / "traces" / "copy_of_rank0.json.gz"
    copy.write_bytes((tmp_path / "traces" / "rank0_trace.json.gz").read_bytes())
    found = bubblescope.info([str(tmp_path / "traces")])
    assert [rank.rank for rank in ranks(found)] == [0, 0, 1]
    assert found.job.answer == "nothing"
    assert "claimed by two files" in found.job.problem
    assert found.job.command is None


def test_an_unfinished_copy_beside_its_file_is_no_second_trace(told, tmp_path):
    """As analyze passes it over; alone it is a trace."""
    told(RUN)
    left = tmp_path / "traces" / "rank0_trace.json.gz.tmp"
    left.write_bytes((tmp_path / "traces" / "rank0_trace.json.gz").read_bytes()[:900])
    found = bubblescope.info([str(tmp_path / "traces")])
    assert found.job.answer == "bubble"
    (file,) = (file for file in found.files if file.path == str(left))
    assert (file.trace, file.hint) == (False, "Nothing: the finished file is read.")
    assert bubblescope.info([str(left)]).readable


def test_ranges_alone_say_what_they_are(tmp_path):
    """The file is described, with why its work tells nothing."""
    event = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    (tmp_path / "rank0.json").write_bytes(orjson.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    found = bubblescope.info(tmp_path)
    (rank,) = ranks(found)
    assert (rank.counts.ranges, rank.marked, rank.steps) == (1, True, ())
    assert "named ranges only" in rank.problem
    assert found.readable
    assert found.job.answer == "nothing"


def test_nothing_need_be_done_with_a_foreign_file_beside_traces(told, tmp_path):
    """A damaged one may have been a trace, and is worth its advice."""
    told(RUN)
    (tmp_path / "traces" / "notes.txt").write_text("so what")
    (tmp_path / "traces" / "cut.sqlite").write_bytes(b"SQLite format 3\x00")
    hints = {
        file.looks_like: file.hint for file in bubblescope.info([str(tmp_path / "traces")]).files if not file.trace
    }
    assert hints.pop("text") is None
    assert hints["a damaged SQLite database"].startswith("Copy it again")


def test_no_line_of_a_script_mends_a_file_that_is_cut_off(told, tmp_path):
    """Its last step lacks actions, as that of a recording does that ends too early."""
    told(RUN)
    path = tmp_path / "traces" / "rank1_trace.json.gz"
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 3 // 4])
    found = bubblescope.info([str(tmp_path / "traces")])
    rank = ranks(found)[1]
    assert {"truncated", "lost-kernels"} <= {finding.code for finding in rank.findings}
    assert rank.steps[-1].complete is False
    assert "ending" not in needs(found)


def test_no_file_at_all_is_an_error(tmp_path):
    """An empty directory holds nothing that could be described."""
    with pytest.raises(InputError, match="expected traces, found no files"):
        bubblescope.info([str(tmp_path)])


def test_a_path_that_is_not_there_is_an_error(tmp_path):
    """It is a slip of the command line, and no file."""
    with pytest.raises(InputError, match="found neither"):
        bubblescope.info([str(tmp_path / "missing.json")])


def test_a_pool_tells_the_same(told):
    """Of the same files, in the same order."""
    assert told(TP, options=Options(jobs=2)) == told(TP, options=Options(jobs=1))
    assert not multiprocessing.active_children()


def test_it_agrees_with_the_analysis(told, tmp_path):
    """Ranks, steps and verdict are those of the report."""
    found = told(TP)
    report = analyze([str(tmp_path / "traces")]).report
    assert found.job.complete_steps == tuple(step.step for step in report.steps if step.complete)
    assert found.job.ranks == tuple(rank.rank for rank in report.ranks)
    assert found.job.verdict == report.quality.verdict


def test_an_evaluation_is_no_step_that_was_cut(told):
    """At the end too; nothing is to be added for it."""
    found = told(replace(RUN, eval_steps=(1, 2), labels="pp"))
    kinds = ["training", "training", "evaluation", "training", "evaluation"]
    assert [[step.kind for step in rank.steps] for rank in ranks(found)] == [kinds] * 2
    assert all(step.complete for rank in ranks(found) for step in rank.steps)
    assert not any(need.code == "ending" for rank in ranks(found) for need in rank.needs)


def test_a_training_with_an_evaluation_inside_is_not_cut(told):
    """One rank cannot tell it, the job can."""
    found = told(replace(RUN, steps=5, eval_steps=(2,), eval_at="behind", labels="pp"))
    assert found.job.complete_steps == (7, 8, 9, 10, 11)
    assert all("cut" not in table.headers for table in inventories.page(found).tables)
