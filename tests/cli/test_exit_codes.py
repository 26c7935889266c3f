"""What a script sees: exit codes, and streams that hold what they should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bubblescope.errors import InputError, UndecidedError, UsageError


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
        (["analyze", "t", "--steps", "5:2"], 2, "ends before it begins"),
        (["analyze", "t", "--ranks", "5-2"], 2, "--ranks expects"),
        (["analyze", "t", "--ranks", "0-99999999"], 2, "--ranks expects"),
        (["analyze", "t", "--label", "X=a"], 2, "KIND=REGEX"),
        (["analyze", "t", "--label", "F=("], 2, "does not compile"),
        (["analyze", "t", "--format", "html"], 2, "--format"),
        (["analyze", "t", "--json", "--format", "csv"], 2, "two formats"),
        (["analyze", "t", "-o", "/"], 2, "is a directory"),
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
        (BrokenPipeError(32, "Broken pipe"), 0, ""),
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
