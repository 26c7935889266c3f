"""From files to an analysis: the pool, the ranks, the progress, the errors."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from pathlib import Path
from string import ascii_lowercase

import pytest

import bubblescope
from bubblescope import engine, mapping
from bubblescope.emit import Job, write
from bubblescope.engine import analyze, load, read_ranks
from bubblescope.errors import InputError, UsageError
from bubblescope.ingest import sources
from bubblescope.model.options import Options, StepRange

TINY = Job(p=2, m=3, steps=3, kernels=1, forward_ns=50_000, backward_ns=100_000, optimizer_ns=20_000, p2p_ns=5_000)
unix = pytest.mark.skipif(sys.platform == "win32", reason="signals differ there")


@pytest.fixture(name="traces")
def _traces(tmp_path):
    """The two traces of a tiny job."""
    return [str(path) for path in write(TINY, tmp_path)]


def rankless(folder, *lengths):
    """Traces that do not tell their rank, each of one kernel of the given length."""
    paths = []
    for name, length in zip(ascii_lowercase, lengths, strict=False):
        kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": length}
        path = folder / f"{name}.json"
        path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [kernel]}))
        paths.append(str(path))
    return paths


class Bar:
    """Remembers what it is told."""

    def __init__(self):
        self.told = []

    def __call__(self, done, total):
        """Take note."""
        self.told.append((done, total))

    def check(self):
        """It never goes back or past the end, and ends at the end."""
        done, totals = zip(*self.told, strict=True)
        assert list(done) == sorted(done)
        assert len(set(totals)) == 1
        assert done[-1] == totals[0] > 0


def test_a_pool_and_one_process_give_the_same_report(traces, tmp_path):
    """Through spawned workers nothing is lost; the progress of both reaches the total of the files."""
    alone, pooled = Bar(), Bar()
    first = analyze(traces, Options(jobs=1), alone)
    second = analyze(traces, Options(jobs=2), pooled)
    assert first.report == second.report
    size = sum((tmp_path / name).stat().st_size for name in map(str, traces))
    for bar in (alone, pooled):
        bar.check()
        assert bar.told[-1] == (size, size)
    assert not multiprocessing.active_children()


def test_small_input_starts_no_process(traces, monkeypatch):
    """Unless the user asks for processes; one file never needs several."""
    monkeypatch.setattr(mapping, "_pool", None)
    assert len(load(traces).timelines) == 2
    assert len(load(traces[:1], Options(jobs=8)).timelines) == 1


def test_much_input_starts_a_pool_by_itself(traces, monkeypatch):
    """From a number of bytes on, as many processes as there are processors or files."""
    asked = []

    def pool(jobs):
        asked.append(jobs)
        raise InputError("no further")

    monkeypatch.setattr(mapping, "_pool", pool)
    monkeypatch.setattr(mapping, "WORTH_A_POOL", 10)
    monkeypatch.setattr(mapping.os, "cpu_count", lambda: 64)
    with pytest.raises(InputError, match="no further"):
        load(traces)
    assert asked == [2]


@pytest.mark.parametrize(("asked", "files", "used"), [(None, 99, 2), (1, 99, 1), (5, 99, 5), (64, 99, 8), (64, 3, 3)])
def test_processes_that_are_of_no_use_are_not_started(monkeypatch, asked, files, used):
    """However many are asked for: no more than files, and not many a core."""
    monkeypatch.setattr(mapping.os, "cpu_count", lambda: 2)
    assert mapping._processes(asked, files) == used


def test_the_order_of_the_files_gives_no_order_to_the_ranks(traces):
    """Ranks come sorted, wherever their file stands."""
    assert list(load(traces[::-1]).timelines) == [0, 1]


def test_two_files_of_one_rank_are_an_error_that_names_both(traces, tmp_path):
    """A copy under another name."""
    copy = tmp_path / "copy.json.gz"
    copy.write_bytes((tmp_path / traces[1]).read_bytes())
    with pytest.raises(InputError, match="rank 1 is claimed by two files") as caught:
        analyze([*traces, str(copy)])
    assert traces[1] in str(caught.value)
    assert str(copy) in str(caught.value)
    assert caught.value.hint


def test_files_without_a_rank_take_the_order(tmp_path):
    """In the order in which they were named; the report says so."""
    found = analyze(rankless(tmp_path, 10, 20)[::-1]).report
    assert [(i.rank, i.path[-6:], i.rank_source) for i in found.inputs] == [
        (0, "b.json", "order"),
        (1, "a.json", "order"),
    ]
    assert [row.compute_ns for row in found.ranks] == [20_000, 10_000]


def test_files_without_a_rank_take_the_numbers_that_are_free(tmp_path):
    """Rank 1 is known by its metadata, so the others are 0 and 2."""
    first, second, third = rankless(tmp_path, 10, 20, 30)
    known = json.loads((tmp_path / "b.json").read_text()) | {"distributedInfo": {"rank": 1, "world_size": 3}}
    (tmp_path / "b.json").write_text(json.dumps(known))
    found = analyze([first, second, third]).report
    assert [(i.rank, i.path[-6:], i.rank_source) for i in found.inputs] == [
        (0, "a.json", "order"),
        (1, "b.json", "metadata"),
        (2, "c.json", "order"),
    ]


def test_chosen_ranks_are_all_that_is_read_of_a_job(traces):
    """--ranks 1: the other is missing."""
    found = analyze(traces, Options(ranks=(1,))).report
    assert [row.rank for row in found.ranks] == [1]
    assert found.layout.missing_ranks == (0,)
    assert found.bubble.measured is None


def test_chosen_ranks_that_are_not_there_are_an_error(traces):
    """None of them is."""
    with pytest.raises(UsageError, match="--ranks"):
        analyze(traces, Options(ranks=(7, 8)))


def test_a_misspelt_schedule_is_told_before_anything_is_read():
    """The file does not even exist."""
    with pytest.raises(UsageError, match="no schedule is called"):
        analyze(["nowhere.json"], Options(schedule="1f1g"))


def test_a_path_that_does_not_exist_is_an_input_error(tmp_path):
    """With the path in its message."""
    with pytest.raises(InputError, match="nowhere"):
        analyze([str(tmp_path / "nowhere.json")])


def test_what_was_passed_over_stands_in_the_report(traces, tmp_path):
    """A note beside the traces of a directory."""
    (tmp_path / "notes.txt").write_text("slow since Tuesday")
    found = analyze([str(tmp_path)]).report
    assert len(found.inputs) == len(traces)
    assert [(f.code, f.input) for f in found.quality.findings] == [("skipped", str(tmp_path / "notes.txt"))]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_that_vanishes_is_an_input_error(traces, tmp_path, monkeypatch, jobs):
    """Between the listing and the reading; the message names it."""
    expand = sources.expand

    def found(args):
        listed = expand(args)
        (tmp_path / traces[1]).unlink()
        return listed

    monkeypatch.setattr(sources, "expand", found)
    with pytest.raises(InputError, match=f"{traces[1]}: cannot be read: No such file") as caught:
        load(traces, Options(jobs=jobs))
    assert caught.value.exit_code == 3


def test_whatever_the_system_says_while_reading_is_an_input_error(traces, monkeypatch):
    """A disk that fails is no bug of the program."""

    def fail(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(mapping.registry, "read", fail)
    with pytest.raises(InputError, match=f"{traces[0]}: cannot be read: Input/output error"):
        load(traces)


@pytest.mark.parametrize("more", [{}, {"schemaVersion": 1}])
@pytest.mark.parametrize("cat", ["user_annotation", "", "cuda_runtime"])
def test_ranges_alone_measure_nothing(tmp_path, cat, more):
    """A timeline that somebody's own instrumentation wrote says when, but not how much work there was."""
    rows = [{"ph": "X", "cat": cat, "name": f"F{n}", "pid": 0, "tid": 0, "ts": n, "dur": 1} for n in range(4)]
    rows.append({"ph": "X", "cat": "user_annotation", "name": "step", "pid": 0, "tid": 0, "ts": 0, "dur": 9})
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": rows} | more))
    with pytest.raises(
        InputError, match=r"trace.json: expected kernels or operators, found named ranges only"
    ) as caught:
        analyze([str(tmp_path)])
    assert "docs/timelines.md" in caught.value.hint


def cut(path):
    """Cut a compressed trace off in its middle."""
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_error_of_a_worker_is_the_error_of_the_caller(traces, tmp_path, jobs):
    """The same class, message and hint, soon, and with no process left behind."""
    (tmp_path / traces[1]).write_bytes(gzip.compress(b'{"traceEvents": []}'))
    begun = time.monotonic()
    with pytest.raises(InputError) as caught:
        analyze(traces, Options(jobs=jobs))
    assert time.monotonic() - begun < 30
    assert type(caught.value) is InputError
    assert caught.value.exit_code == 3
    assert caught.value.message.startswith(f"{traces[1]}: expected kernels")
    assert "Record with" in caught.value.hint
    assert not multiprocessing.active_children()


def die(_path, _options):
    """What a worker does where the system takes its memory away."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_worker_that_is_killed_is_an_error_with_a_hint(traces, monkeypatch):
    """No traceback of a pool, and nothing that waits for it."""
    monkeypatch.setattr(engine, "read_ranks", die)
    with pytest.raises(InputError, match="was killed") as caught:
        analyze(traces, Options(jobs=2))
    assert "--jobs 2" in caught.value.hint
    assert not multiprocessing.active_children()


def test_a_progress_that_fails_ends_the_pool(traces):
    """Whoever is told may interrupt: nothing hangs, and nothing goes on."""

    def interrupt(_done, _total):
        raise KeyboardInterrupt

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        analyze(traces, Options(jobs=2), interrupt)
    assert time.monotonic() - begun < 30
    assert not multiprocessing.active_children()


def dawdle(path, _options):
    """Be done with one file, and take a minute for any other."""
    if path.name != "a.json":
        time.sleep(60)


def test_an_interrupt_ends_workers_in_the_middle(tmp_path, monkeypatch):
    """Who presses Ctrl-C does not wait for a large file to be read to its end."""

    def interrupt(_done, _total):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "read_ranks", dawdle)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        load(rankless(tmp_path, 10, 20, 30), Options(jobs=3), interrupt)
    assert time.monotonic() - begun < 30
    assert not multiprocessing.active_children()


def tell_interrupts(_path, _options, _progress=None):
    """Whether this process was started so that Ctrl-C does not reach it, and whether it leaves it alone now."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return signal.SIGINT in blocked, signal.getsignal(signal.SIGINT) == signal.SIG_IGN


@unix
def test_workers_leave_interrupts_to_the_parent():
    """From their birth on, or each would print a traceback; the parent still hears them."""
    paths = dict.fromkeys(map(Path, "abc"), 1)
    with mapping._pool(2) as pool:
        tasks = mapping._submitted(pool, tell_interrupts, paths, Options())
        told = mapping._gathered(tasks, paths, lambda *_: None)
    assert set(told.values()) == {(True, True)}
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


@unix
def test_an_interrupt_while_workers_start_is_held_and_not_lost():
    """All of them have their orders first."""
    done = []

    def work():
        with mapping._interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]


@unix
def test_interrupts_are_left_alone_in_other_threads():
    """Only the main thread may say what a signal does; a program may call the engine from any."""
    errors = []

    def work():
        try:
            with mapping._interrupts_held():
                pass
        except ValueError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert errors == []


def linger(path, _options):
    """Leave a mark beside the file, and take a while."""
    path.with_suffix(".read").touch()
    time.sleep(0.2)


def test_an_error_leaves_the_other_files_unread(tmp_path, monkeypatch):
    """What waits in the queue is not begun after the first is interrupted."""

    def interrupt(_done, _total):
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "read_ranks", linger)
    with pytest.raises(KeyboardInterrupt):
        load(rankless(tmp_path, *[10] * 20), Options(jobs=2), interrupt)
    assert 1 <= len(list(tmp_path.glob("*.read"))) <= 12


def test_the_map_step_gives_a_small_value_that_travels(traces, tmp_path):
    """One file becomes one timeline, which a pickle keeps, and tells the bytes that it read."""
    path, told = tmp_path / traces[0], []
    (timeline,) = read_ranks(path, Options(), told.append)
    assert told[-1] == path.stat().st_size
    assert (timeline.rank, len(timeline.actions), len(timeline.steps)) == (0, 18, 3)
    again = pickle.loads(pickle.dumps(timeline))  # noqa: S301 - our own
    assert again.actions.start.tolist() == timeline.actions.start.tolist()
    assert len(pickle.dumps(timeline)) < len(gzip.decompress(path.read_bytes())) / 2


def test_the_map_step_does_not_guess_a_rank(tmp_path):
    """Which number is free only the whole job tells."""
    (path,) = rankless(tmp_path, 10)
    assert [timeline.rank for timeline in read_ranks(tmp_path / path, Options())] == [-1]


def test_options_reach_the_workers_and_the_analysis(traces):
    """Steps are chosen after, labels are read in the map step."""
    found = analyze(traces, Options(jobs=2, steps=StepRange(0, 1))).report
    assert [s.step for s in found.steps if s.used] == [0, 1]


def test_the_package_offers_the_engine(traces):
    """`bubblescope.analyze` and `load` are functions, however often and in whatever order they are asked for."""
    assert bubblescope.load is load
    assert bubblescope.analyze is analyze
    assert bubblescope.analyze(traces).report == bubblescope.analyze(traces).report


def test_one_path_need_not_be_a_list(tmp_path):
    """A folder as text, as a Path, or in a list: all the same."""
    write(Job(schedule="1f1b", p=2, m=2, steps=1), tmp_path)
    reports = [analyze(given).report for given in (str(tmp_path), tmp_path, [tmp_path])]
    assert reports[0] == reports[1] == reports[2]


def test_public_names_are_listed():
    """Names that are imported when first asked for show up before that."""
    assert set(bubblescope.__all__) <= set(dir(bubblescope))


@pytest.mark.parametrize("spoil", [lambda text: text[:-1], lambda text: text.replace(b'"dur":', b'"dur":inf,"x":', 1)])
def test_strict_refuses_what_is_damaged(traces, spoil):
    """A trace that had to be mended is an error with the place, if that is asked for; else it is read."""
    path = Path(traces[0])
    path.write_bytes(spoil(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()))
    assert analyze(traces).report.bubble.measured is not None
    with pytest.raises(InputError, match=rf"{path.name}: .* byte \d+") as caught:
        analyze(traces, Options(strict=True))
    assert "--strict" in caught.value.hint


def test_copies_of_no_length_make_no_gpu(tmp_path):
    """A stray copy does not turn a run on CPU into one on a GPU, whose work would be that copy."""
    operator = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 100, "dur": 50}
    copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy", "pid": 0, "tid": 7, "ts": 1, "dur": 0}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [operator, copy]}))
    (timeline,) = read_ranks(path, Options())
    assert not timeline.on_gpu
