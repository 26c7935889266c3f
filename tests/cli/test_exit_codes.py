"""What a script sees: exit codes, and streams that hold what they should."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from bubblescope.errors import InputError, UndecidedError, UsageError

DEGREES = ["pp", "tp", "dp", "virtual", "microbatches"]
unix = pytest.mark.skipif(os.name == "nt", reason="streams differ there")


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        (["--help"], 0, ""),
        (["-h"], 0, ""),
        (["--version"], 0, ""),
        (["schema"], 0, ""),
        (["analyze", "-h"], 0, ""),
        (["analyze", "t"], 0, ""),
        ([], 2, "Usage: bubblescope"),
        (["analyse", "t"], 2, "hint: did you mean analyze?"),
        (["."], 2, "hint: did you mean bubblescope analyze .?"),
        (["--jsn"], 2, "No such option"),
        (["analyze"], 2, "TRACE"),
        (["analyze", "t", "--nonsense"], 2, "hint: see bubblescope analyze --help"),
        (["analyze", "t", "--pp", "0"], 2, "--pp must be at least 1"),
        (["analyze", "t", "--pp", "many"], 2, "'many' is not a valid integer"),
        (["analyze", "t", "--jobs", "0"], 2, "--jobs must be at least 1"),
        *((["analyze", "t", f"--{name}", "65537"], 2, f"--{name} must be at most 65536") for name in DEGREES),
        (["analyze", "t", "--steps", "9" * 5000], 2, "--steps expects a step"),
        (["analyze", "t", "--steps", "²"], 2, "--steps expects a step"),
        (["analyze", "t", "--steps", "5:2"], 2, "ends before it begins"),
        (["analyze", "t", "--ranks", "5-2"], 2, "--ranks expects"),
        (["analyze", "t", "--ranks", "0-99999999"], 2, "--ranks expects"),
        (["analyze", "t", "--layers", "8,,8"], 2, "--layers expects"),
        (["analyze", "t", "--layers", "²"], 2, "--layers expects"),
        (["analyze", "t", "--layers", "8,0"], 2, "each from 1 to 65536"),
        (["analyze", "t", "--label", "X=a"], 2, "KIND=REGEX"),
        (["analyze", "t", "--label", "F=("], 2, "does not compile"),
        (["analyze", "t", "--format", "html"], 2, "--format"),
        (["analyze", "t", "--json", "--format", "csv"], 2, "two formats"),
        (["analyze", "t", "-o", "/"], 2, "is a directory"),
        (["analyze", "t", "-o", ""], 2, "found an empty one"),
        (["analyze", "t", "-o", "x" * 5000], 2, "File name too long"),
        (["analyze", "t", "-o", "/no/such/place/a.json"], 2, "no such directory"),
        (["analyze", "t", "-o", "a.html"], 2, "no format is known"),
    ],
)
def test_command_lines_have_their_codes(bubblescope, arguments, code, part):
    """0 only for what was done, 2 for what was not understood, and then stderr says what and stdout is empty."""
    seen = bubblescope(*arguments)
    assert seen.code == code
    assert part in seen.err
    assert not (code and seen.out)
    assert not (code == 0 and seen.err)


@pytest.mark.parametrize(
    ("problem", "code", "part"),
    [
        (UsageError("no schedule is called 'x'", hint="did you mean y?"), 2, "hint: did you mean y?"),
        (InputError("rank0.json: expected a trace, found a config"), 3, "error: rank0.json: expected"),
        (UndecidedError("ranks 2 and 3 are missing"), 4, "error: ranks 2 and 3"),
        (KeyError("stage"), 70, "this is a bug in bubblescope: KeyError: 'stage'"),
        (RecursionError("deep"), 70, "BUBBLESCOPE_DEBUG=1"),
        (KeyboardInterrupt(), 130, "error: interrupted"),
        (BrokenPipeError(32, "Broken pipe"), 70, "this is a bug"),
        (OSError(28, "No space left on device"), 70, "this is a bug"),
    ],
)
def test_problems_have_their_codes(bubblescope, engine, problem, code, part):
    """Each kind of problem has its exit code, and no user sees a traceback."""
    engine.problem = problem
    seen = bubblescope("analyze", "t")
    assert seen.code == code
    assert part in seen.err
    assert not seen.out
    assert "Traceback" not in seen.err


def test_a_bug_shows_its_traceback_on_request(bubblescope, engine, monkeypatch):
    """BUBBLESCOPE_DEBUG=1 prints what a report of the bug needs."""
    monkeypatch.setenv("BUBBLESCOPE_DEBUG", "1")
    engine.problem = KeyError("stage")
    seen = bubblescope("analyze", "t")
    assert seen.code == 70
    assert "Traceback (most recent call last)" in seen.err


def test_error_messages_command_no_terminal(bubblescope, engine):
    """A hostile file name in a message is text."""
    engine.problem = InputError("\x1b[2Jrank[red]0.json: no trace\nrank1.json: no trace")
    seen = bubblescope("analyze", "t")
    assert "\\x1b[2Jrank[red]0.json: no trace\nrank1.json: no trace\n" in seen.err


def command(*arguments: str, **settings) -> subprocess.Popen[bytes]:
    """The installed program as a process of its own."""
    code = "from bubblescope.cli import main; main()"
    return subprocess.Popen([sys.executable, "-c", code, *arguments], **settings)


@pytest.mark.skipif(os.name == "nt", reason="pipes differ there")
@pytest.mark.parametrize("arguments", [["schema"], ["--help"], ["--version"]])
def test_closed_pipe_ends_quietly(arguments):
    """`bubblescope ... | head -0` is nobody's mistake."""
    reader, writer = os.pipe()
    os.close(reader)
    process = command(*arguments, stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


def shell(line: str, tmp_path, **environment: str) -> tuple[int, bytes, bytes]:
    """What a line of shell prints, with $RUN for the program, $T for a trace and $O for a file."""
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 10}
    (tmp_path / "rank0.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [kernel]}))
    run = shlex.join([sys.executable, "-c", "from bubblescope.cli import main; main()"])
    names = f"T={shlex.quote(str(tmp_path / 'rank0.json'))}; O={shlex.quote(str(tmp_path / 'out.json'))}; "
    settings = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")} | environment
    done = subprocess.run(
        ["bash", "-c", names + line.replace("$RUN", run)], capture_output=True, env=settings, check=False
    )
    return done.returncode, done.stdout, done.stderr


PRINTING = ["analyze $T", "analyze $T --json", "schema", "--help", "--version", "analyze --help"]


@unix
@pytest.mark.parametrize("buffering", ["", "1"])
@pytest.mark.parametrize("arguments", PRINTING)
@pytest.mark.parametrize(("stream", "why"), [(">&-", b"stdout is closed"), (">/dev/full", b"No space left on device")])
def test_a_result_that_cannot_be_written_is_an_error(tmp_path, arguments, stream, why, buffering):
    """A script must not take it for a success, nor for a failed gate."""
    if stream == ">/dev/full" and not Path("/dev/full").exists():
        pytest.skip("no such device here")
    code, _, err = shell(f"$RUN {arguments} {stream}", tmp_path, PYTHONUNBUFFERED=buffering)
    assert (code, err) == (2, b"error: cannot write the output: " + why + b"\n")


@unix
@pytest.mark.parametrize("jobs", ["", "--jobs 2"])
@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&-", "<&- >&- 2>&-", "2>/dev/full >/dev/full"])
def test_a_result_in_a_file_needs_no_streams(tmp_path, streams, jobs):
    """A daemon has none; the file is what it should be, and holds nothing that was meant for a stream."""
    code, out, err = shell(f"$RUN analyze $T {jobs} -o $O {streams}", tmp_path)
    assert (code, out) == (0, b"")
    assert json.loads((tmp_path / "out.json").read_bytes())["schema"] == "bubblescope.report/1"
    assert err == (b"" if "2>" in streams else f"Wrote {tmp_path / 'out.json'}\n".encode())


@unix
@pytest.mark.parametrize("streams", ["2>&-", "2>/dev/full", "2> >(true)"])
@pytest.mark.parametrize(("arguments", "code"), [("nonsense", 2), ("", 2), ("analyze ''", 3), ("schema", 0)])
def test_errors_that_nobody_reads_keep_their_codes(tmp_path, arguments, code, streams):
    """Where stderr goes nowhere the exit code still tells."""
    assert shell(f"$RUN {arguments} {streams}", tmp_path)[0] == code


@unix
def test_a_write_that_leaves_something_over_is_no_success(tmp_path):
    """Nor where Python is told to use no buffers, as in containers: what a disk takes a part of is not whole."""
    line = "ulimit -f 1; $RUN schema > $O"
    code, _, err = shell(line, tmp_path, PYTHONUNBUFFERED="1")
    assert code == 2
    assert b"cannot write the output: File too large" in err


@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
@pytest.mark.parametrize("value", ["²", "", "0", "-1", "wide", "9" * 12, "9" * 5000])
def test_odd_sizes_of_terminals_are_ignored(bubblescope, monkeypatch, name, value):
    """What is no number of columns is none, for results and for errors."""
    usual = bubblescope("analyze", "t").out
    monkeypatch.setenv(name, value)
    assert bubblescope("analyze", "t").out == usual
    assert bubblescope("nonsense").code == 2


@pytest.mark.skipif(os.name == "nt", reason="signals differ there")
def test_ctrl_c_ends_with_130(tmp_path):
    """An interrupted run says so with its exit code, whatever it was doing."""
    waiting = tmp_path / "waiting"
    code = (
        "import sys, types, time, pathlib\n"
        "engine = types.ModuleType('bubblescope.engine')\n"
        f"engine.analyze = lambda *_: (pathlib.Path({str(waiting)!r}).touch(), time.sleep(60))\n"
        "sys.modules['bubblescope.engine'] = engine\n"
        "from bubblescope.cli import main; main()"
    )
    process = subprocess.Popen([sys.executable, "-c", code, "analyze", "t"], stderr=subprocess.PIPE)
    for _ in range(600):
        if waiting.exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == b"error: interrupted\n"


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("degraded", 0), ("unusable", 3)])
def test_unusable_data_end_with_3(bubblescope, engine, verdict, code):
    """What there is of the report is written all the same."""
    quality = replace(engine.report.quality, verdict=verdict)
    engine.report = replace(engine.report, quality=quality)
    seen = bubblescope("analyze", "t", "--json")
    assert (seen.code, json.loads(seen.out)["quality"]["verdict"]) == (code, verdict)
    assert ("none of the numbers can be told" in seen.err) == (code == 3)
