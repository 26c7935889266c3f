"""One thing of enormous size, or too many small ones: answered in bounds of memory and time that a job fits into."""

from __future__ import annotations

import json
import os
import resource
import sys
import time

import pytest

from tests.damage.runs import analyzed

KERNEL = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 10}
RANGE = KERNEL | {"cat": "user_annotation", "tid": 1}
SEND = KERNEL | {"name": "ncclDevKernel_SendRecv"}
LONG = "<long>"
DEEP = 100_000

MEGABYTES, SECONDS = 600, 60
"""Of one process that analyzes a file with a string of 100 MB: the string, its window, and what Python needs."""

unix = pytest.mark.skipif(os.name == "nt", reason="no limits of processes there")


def document(*events, **members):
    """A trace of two kernels and some other events."""
    return {"schemaVersion": 1, **members, "traceEvents": [KERNEL, *events, KERNEL | {"ts": 200}]}


STRINGS = {
    "name": document(KERNEL | {"name": LONG}),
    "range": document(RANGE | {"name": f"PP:0F0{LONG}", "ts": 90, "dur": 50}),
    "thread name": document({"ph": "M", "name": "thread_name", "pid": 0, "tid": 1, "args": {"name": LONG}}, RANGE),
    "category": document(KERNEL | {"cat": LONG}),
    "process": document(KERNEL | {"pid": LONG}),
    "argument": document(KERNEL | {"args": {"note": LONG}}),
    "group": document(SEND | {"args": {"Collective name": "send", "Process Group Name": LONG, "Dst Rank": 1}}),
    "group that is known": document(SEND | {"args": {"Collective name": "send", "Process Group Ranks": LONG}}),
    "member": document(other=LONG),
    "member that is kept": document(host_name=LONG),
    "key": document(**{LONG: 1}),
    "key of an event": document(KERNEL | {LONG: 1}),
    "slice": [KERNEL | {"cat": "", "name": f"forward {LONG}"}, KERNEL | {"cat": "", "name": "forward", "pid": LONG}],
}
FILLERS = {"letters": "x", "escapes": r"\\", "brackets": "[{", "borders": "},{", "digits": "1"}


def written(path, base, filler, size):
    """Write a document with a string of so many bytes, piece by piece."""
    head, *tails = json.dumps(base).split(LONG)
    with path.open("w") as file:
        file.write(head)
        for tail in tails:
            for _ in range(size >> 16):
                file.write(filler * ((1 << 16) // len(filler)))
            file.write(tail)
    return path


@pytest.mark.parametrize("filler", FILLERS.values(), ids=FILLERS)
@pytest.mark.parametrize("base", STRINGS.values(), ids=STRINGS)
def test_a_string_of_megabytes(tmp_path, base, filler):
    """Wherever it stands and whatever it is made of, the rest is read, and no output holds all of it."""
    path = written(tmp_path / "rank0.json", base, filler, 3 << 20)
    for form in ("json", "table"):
        outcome = analyzed([path], "--format", form)
        assert outcome.fault is None
        assert len(outcome.out) + len(outcome.err) < 300_000


def spent(path):
    """Exit code, megabytes at the peak, and seconds of work of the program as a process of its own."""
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
        resource.setrlimit(resource.RLIMIT_CPU, (4 * SECONDS, 4 * SECONDS))
        run = "from bubblescope.cli import main; main()"
        os.execv(sys.executable, [sys.executable, "-c", run, "analyze", str(path), "--json", "--jobs", "1"])  # noqa: S606
    _, status, used = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), used.ru_maxrss / 1024, used.ru_utime + used.ru_stime


@unix
@pytest.mark.slow
@pytest.mark.parametrize("filler", ["x", r"\\"], ids=["letters", "escapes"])
@pytest.mark.parametrize("base", STRINGS.values(), ids=STRINGS)
def test_a_string_of_a_hundred_megabytes(tmp_path, base, filler):
    """Costs a few times its size and a few seconds, and is no reason to give up."""
    code, megabytes, seconds = spent(written(tmp_path / "rank0.json", base, filler, 100 << 20))
    assert code in (0, 3, 4)
    assert megabytes < MEGABYTES
    assert seconds < SECONDS


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}"), ("[[{},", "]]")])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("where", ["other", "distributedInfo", "args", "event", "traceEvents"])
def test_any_depth(tmp_path, where, opening, closing, ends):
    """Values within values are stepped over, left out or refused."""
    value = opening * DEEP + "1" + closing * DEEP * ends
    if where == "traceEvents":
        text = f'{{"traceEvents":{value}'
    elif where == "event":
        text = json.dumps(document(7)).replace(" 7,", f" {value},", 1)
    else:
        base = document(KERNEL | {"args": 5}) if where == "args" else document(**{where: 5})
        text = json.dumps(base).replace(f'"{where}": 5', f'"{where}": {value}')
    path = tmp_path / "rank0.json"
    path.write_text(text)
    assert analyzed([path], "--json").fault is None


@pytest.mark.parametrize("ranks", [10**5, pytest.param(10**6 - 1, marks=pytest.mark.slow), 3 * 10**6])
def test_a_million_ranks(tmp_path, ranks):
    """A list of them costs its own length, in metadata as in a call, as numbers or as a text."""
    told = {
        "rank": 0,
        "world_size": ranks,
        "pg_config": [{"pg_name": "0", "pg_desc": "pp", "ranks": list(range(ranks))}],
    }
    calls = [SEND | {"ts": 300, "args": {"Collective name": "send", "Process Group Ranks": list(range(ranks))}}]
    calls += [SEND | {"ts": 400, "args": {"Collective name": "send", "Process Group Ranks": str(list(range(ranks)))}}]
    path = tmp_path / "rank0.json"
    path.write_text(json.dumps(document(*calls, distributedInfo=told)))
    assert analyzed([path], "--json").fault is None


def labelled(count, name):
    """Kernels that were launched inside ranges of their own."""
    for i in range(count):
        yield KERNEL | {"ts": i * 10, "args": {"correlation": i}}
        call = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 1, "ts": i * 10 - 8, "dur": 1}
        yield KERNEL | call | {"args": {"correlation": i}}
        yield RANGE | {"name": name(i), "ts": i * 10 - 9, "dur": 4}


def sent(i, **args):
    """A message."""
    return SEND | {"ts": i * 10, "args": {"Collective name": "send", "In msg nelems": i, "Dst Rank": i % 7, **args}}


MANY = {
    "names": lambda n: [KERNEL | {"name": f"k{i}", "ts": i * 10} for i in range(n)],
    "threads": lambda n: [KERNEL | {"cat": "cpu_op", "tid": i, "ts": i * 10} for i in range(n)],
    "streams": lambda n: [KERNEL | {"tid": i, "ts": i * 10} for i in range(n)],
    "processes": lambda n: [KERNEL | {"pid": i, "ts": i * 10} for i in range(n)],
    "groups": lambda n: [sent(i, **{"Process Group Name": str(i)}) for i in range(n)],
    "groups of ranks": lambda n: [sent(i, **{"Process Group Ranks": f"[{i}, {i + 1}]"}) for i in range(n)],
    "peers": lambda n: [sent(i, **{"Process Group Name": "p", "Dst Rank": i}) for i in range(n)],
    "stages": lambda n: list(labelled(n, lambda i: f"PP:{i}F{i % 8}")),
    "micro-batches": lambda n: list(labelled(n, lambda i: f"PP:0{'FB'[i % 2]}{i // 2}")),
    "steps": lambda n: [
        event | {"ts": i * 10} for i in range(n) for event in (KERNEL, RANGE | {"name": f"ProfilerStep#{i}"})
    ],
    "nested ranges": lambda n: [RANGE | {"name": f"a{i}", "ts": i, "dur": 10**7 - 2 * i} for i in range(n)],
    "one moment": lambda n: [e | {"ts": 5, "name": f"a{i % 50}"} for i in range(n) for e in (KERNEL, RANGE)],
    "halves": lambda n: [
        RANGE | {"ph": phase, "name": f"a{i}", "ts": at + i} for phase, at in (("B", 0), ("E", 10**6)) for i in range(n)
    ],
}
SLICES = {
    "micro-batches": lambda n: [{"mb": i, "stage": i % 100} for i in range(n)],
    "ranks": lambda n: [{"mb": i % 8, "stage": 0, "rank": i // 8} for i in range(n)],
    "stages": lambda n: [{"mb": i % 8, "stage": i // 8} for i in range(n)],
}


def growth(path, made, count):
    """How much longer four times as much takes; 4 is as it should be, 16 would be quadratic."""
    seconds = []
    for size in (count, 4 * count):
        path.write_text(json.dumps(made(size)))
        began = time.process_time()
        assert analyzed([path], "--json").fault is None
        seconds.append(time.process_time() - began)
    return seconds[1] / max(seconds[0], 0.2)


@pytest.mark.slow
@pytest.mark.parametrize("made", MANY.values(), ids=MANY)
def test_many_different_things(tmp_path, made):
    """Time grows with their number, not with its square."""
    assert growth(tmp_path / "rank0.json", lambda n: document(*made(n)), 4000) < 9


@pytest.mark.slow
@pytest.mark.parametrize("made", SLICES.values(), ids=SLICES)
def test_many_different_slices(tmp_path, made):
    """Nor with that of the places that a timeline tells."""

    def events(count):
        every = enumerate(made(count))
        return [
            KERNEL | {"cat": "", "name": "forward", "ts": i * 10, "pid": str(args), "args": args} for i, args in every
        ]

    assert growth(tmp_path / "rank0.json", events, 1000) < 9
