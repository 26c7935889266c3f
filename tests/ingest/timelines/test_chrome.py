"""Chrome lists of slices that somebody's own code named."""

from __future__ import annotations

import json

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.registry import read
from bubblescope.ingest.timelines.chrome import read as read_list
from bubblescope.model.actions import Kind
from bubblescope.model.slices import RankSlices
from bubblescope.model.trace import Coordinate, RankTrace


def slice_(name, start, dur, lane=(0, 0), **args):
    """A slice; times in microseconds."""
    return {"ph": "X", "name": name, "pid": lane[0], "tid": lane[1], "ts": start, "dur": dur, "args": args}


def half(ph, name, at, pid, **args):
    """One half of a slice."""
    return {"ph": ph, "name": name, "pid": pid, "tid": 0, "ts": at, "args": args}


def lane_name(kind, name, pid, tid=0):
    """Metadata of a thread or a process."""
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}


@pytest.fixture
def ranks(save):
    """The ranks of a list of events, checked."""

    def get(*events, document=list):
        found = list(read(save(json.dumps(document(events)), "anything.txt")))
        for each in found:
            assert isinstance(each, RankSlices)
            each.self_check()
        return found

    return get


def test_names_with_numbers_and_lanes_by_thread(ranks):
    """PiPPy: one process, a thread a rank, all ids in the names; times since the epoch lose no digit."""
    one, other = ranks(
        slice_("F_0,0", 1649317709410899.2, 10.5, ("0", "0")),
        slice_("F_1,0", 1649317709410920.4, 10, ("0", "1")),
        slice_("B_1,0", 1649317709410940, 20, ("0", "1")),
        slice_("S_1,0", 1649317709410960, 20, ("0", "1")),
    )
    assert [each.identity.rank for each in (one, other)] == [0, 1]
    assert one.actions.start.tolist() == [1649317709410899200]
    assert one.actions.end.tolist() == [1649317709410909700]
    assert one.absolute
    assert one.identity.clock == other.identity.clock is not None
    assert sorted(zip(other.actions.kind, other.actions.stage, other.actions.microbatch, strict=True)) == [
        (Kind.F, 1, 0),
        (Kind.B, 1, 0),
    ]
    assert [(f.code, "S_1,0" in f.message) for f in one.findings] == [("ignored-slices", True)]
    assert other.findings == ()


def test_halves_whose_arguments_stand_at_the_end(ranks):
    """MegaScan: `B` opens, `E` closes and tells; marks of the iteration belong to its step."""
    one, other = ranks(
        {"ph": "i", "name": "iteration begin", "pid": 0, "tid": 0, "ts": 0, "args": {"iteration": 10}},
        half("B", "forward", 5, 0, iteration=10),
        half("E", "forward", 9, 0, iteration=10, microbatch=2, model_chunk=1, pp_rank=0),
        half("B", "backward", 6, 1, iteration=10),
        half("E", "backward", 8, 1, iteration=10, microbatch=3, model_chunk=0, pp_rank=1),
        half("E", "backward", 9, 1, iteration=10, microbatch=4, model_chunk=0, pp_rank=1),
    )
    a = one.actions
    assert [column.tolist() for column in (a.start, a.end, a.step, a.chunk, a.microbatch)] == [
        [5000],
        [9000],
        [10],
        [1],
        [2],
    ]
    assert one.extents.step.tolist() == [10]
    assert one.identity.coordinates == (Coordinate("pp", 0, 0),)
    assert other.actions.kind.tolist() == [Kind.B]
    assert [f.code for f in one.findings] == ["unusable-rows"]


def test_places_in_the_names_of_threads_and_processes(ranks):
    """StragglerAnalysis: the process is the replica, threads are stages; ranks are counted as Megatron does."""
    found = ranks(
        *(lane_name("process_name", f"DP rank [{dp}]", dp) for dp in range(2)),
        *(
            lane_name("thread_name", f"PP rank {pp}, TP rank 0, {what}", dp, 10 * pp + k)
            for dp in range(2)
            for pp in range(2)
            for k, what in enumerate(("compute", "dp-comm"))
        ),
        *(slice_("forward-compute", 10 * pp, 5, (dp, 10 * pp), mb_id=0) for dp in range(2) for pp in range(2)),
        slice_("params-all-gather", 0, 3, (1, 11), mb_id=-1),
        slice_("optimizer", 50, 3, (1, 10), step=None),
        slice_("forward-recv", 8, 2, (1, 10), mb_id=-1),
    )
    assert [each.identity.rank for each in found] == [0, 1, 2, 3]
    last = found[3]
    assert last.identity.coordinates == (Coordinate("pp", 1, 0), Coordinate("dp", 1, 0), Coordinate("tp", 0, 0))
    assert [len(block) for block in last.blocks] == [1, 1, 1, 1, 0]
    assert last.calls[last.collectives.call[0]].description == "dp"
    assert last.messages.microbatch.tolist() == [-1]
    assert [len(block) for block in found[0].blocks] == [1, 0, 0, 0, 0]


def test_stages_that_overlap_on_one_lane_are_ranks(ranks):
    """A list without threads holds a rank a stage."""
    found = ranks(*(slice_("forward", 10 * m + 5 * s, 10, stage=s, mb=m) for s in range(3) for m in range(4)))
    assert [set(each.actions.stage.tolist()) for each in found] == [{0}, {1}, {2}]


def test_stages_that_take_turns_on_one_lane_are_chunks(ranks):
    """One rank of several files may hold several stages, and only the job tells its number."""
    (only,) = ranks(*(slice_("forward", 20 * m + 10 * s, 10, stage=s, mb=m) for s in range(2) for m in range(4)))
    assert only.identity.rank is None
    assert only.identity.clock is None


def test_the_name_of_the_file_tells_a_rank(save):
    """A file of one lane is the rank that it is called after."""
    (only,) = read(save(json.dumps([slice_("forward", 0, 1)]), "rank3.json"))
    assert (only.identity.rank, only.identity.rank_source) == (3, "filename")


def test_arguments_tell_ranks(ranks):
    """An argument `rank` stands above lanes, and is said once for a lane."""
    found = ranks(slice_("forward", 0, 5, (7, 1), rank=5), slice_("backward", 5, 5, (7, 1)))
    assert [(each.identity.rank, len(each.actions)) for each in found] == [(5, 2)]


def test_an_object_of_events_is_read_as_a_list_is(ranks):
    """The list may stand in `traceEvents`, beside members that mean nothing."""
    (only,) = ranks(slice_("forward", 0, 5), document=lambda e: {"other": [1], "traceEvents": list(e), "more": {}})
    assert only.actions.end.tolist() == [5000]
    assert (only.source.format, only.source.events) == ("timeline", 1)


def test_whole_numbers_may_be_written_as_fractions(ranks):
    """As tables with gaps become JSON: 3.0 is 3, and what is no whole number is no id."""
    (only,) = ranks(slice_("forward", 0, 5, rank=3.0, mb=2.0), slice_("forward", 5, 5, rank=3, mb=1.5))
    assert only.identity.rank == 3
    assert only.actions.microbatch.tolist() == [2, -1]


@pytest.mark.parametrize("pid", [None, 1.5, -1])
def test_any_process_id_will_do(ranks, pid):
    """Ids of processes only tell slices apart."""
    (only,) = ranks(slice_("forward", 0, 5, (pid, 0)), slice_("backward", 5, 5, (pid, 0)))
    assert only.actions.kind.tolist() == [Kind.F, Kind.B]


def test_a_mark_has_no_length_among_times_of_any_size(ranks):
    """Times since the epoch are read digit by digit, and the mark of an iteration among them, too."""
    mark = {
        "ph": "i",
        "name": "iteration begin",
        "pid": 0,
        "tid": 0,
        "ts": 1649317709410899.2,
        "args": {"iteration": 7},
    }
    (only,) = ranks(mark, slice_("forward", 1649317709410899.2, 5, iteration=7))
    assert only.extents.start.tolist() == only.extents.end.tolist() == [1649317709410899200]


def test_a_slice_without_a_length_is_unusable(ranks):
    """How long it took is not told, which is not the same as no time."""
    lacking = {key: value for key, value in slice_("forward", 10, 5).items() if key != "dur"}
    (only,) = ranks(slice_("forward", 0, 5), lacking)
    assert len(only.actions) == 1
    assert [f.code for f in only.findings] == ["unusable-rows"]


def test_a_list_without_a_usable_slice_is_an_error(save):
    """Its events name forwards, but none of them has a time."""
    text = json.dumps([slice_("forward", 0, 5) | {"pid": [k]} for k in range(2)])
    with pytest.raises(InputError, match="found none"):
        list(read(save(text)))


def test_unusable_events_are_counted(ranks):
    """An event without a time, with a negative length, or of no object is left out."""
    (only,) = ranks(
        slice_("forward", 0, 5),
        slice_("forward", 10, -5),
        slice_("forward", None, 5),
        slice_("forward", "20", "5"),
        7,
        {"ph": "X", "name": 3},
    )
    assert only.actions.start.tolist() == [0, 20_000]
    (finding,) = only.findings
    assert finding.code == "unusable-rows"
    assert finding.message.startswith("4 events")


def test_absurd_numbers_are_not_told(ranks):
    """Ids beyond all jobs count as missing."""
    (only,) = ranks(slice_("forward", 0, 5, stage=10**9, mb=2**40, step=2**70, chunk=10**6, rank="x"))
    a = only.actions
    assert [int(column[0]) for column in (a.stage, a.microbatch, a.step, a.chunk)] == [-1, -1, -1, -1]


def test_traces_of_profilers_stay_what_they_are(save):
    """Operators make a trace, whatever its ranges are called; and so do the marks of Kineto."""
    op = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 0, "tid": 0, "ts": 1, "dur": 1}
    named = slice_("forward", 0, 5) | {"cat": "user_annotation"}
    for document in ([op, slice_("forward", 0, 5)], [named], {"schemaVersion": 1, "traceEvents": [named]}):
        (trace,) = read(save(json.dumps(document)))
        assert isinstance(trace, RankTrace)


def test_other_names_make_no_timeline(save):
    """A list in which nothing is called forward is a trace of ranges, as before."""
    (trace,) = read(save(json.dumps([slice_("attention", 0, 5)])))
    assert isinstance(trace, RankTrace)


@pytest.mark.parametrize("window", [64, 256, 1 << 20])
def test_windows_do_not_show(tmp_path, window):
    """Whatever is decoded at a time, the rows are the same."""
    path = tmp_path / "list.json"
    path.write_text(json.dumps([slice_(f"F_{k % 2},{k}", 1.5 * k, 1, (0, k % 2)) for k in range(40)]))
    rows = read_list(path, window=window).rows
    assert rows.start.tolist() == [1500 * k for k in range(40)]
    assert rows.microbatch.tolist() == list(range(40))
