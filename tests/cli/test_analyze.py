"""`bubblescope analyze`: what it hands to the engine, and what it does with the answer."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from bubblescope.cli.options import parse_ranks
from bubblescope.model.options import LabelRule, Options, StepRange
from bubblescope.report import registry


def test_options_reach_the_engine(bubblescope, engine):
    """What the user states arrives as one value."""
    bubblescope(
        *("analyze", "a", "b", "--steps", "2:5", "--ranks", "0,2-4", "--pp", "4", "--tp", "2", "--dp", "1"),
        *(
            "--virtual",
            "2",
            "--microbatches",
            "8",
            "--layers",
            "8,8, 8+7",
            "--schedule",
            "gpipe",
            "--label",
            "F=f",
            "--label",
            "b=g",
            "-j",
            "3",
        ),
    )
    assert engine.call.paths == ("a", "b")
    assert engine.call.options == Options(
        pp=4,
        tp=2,
        dp=1,
        virtual=2,
        microbatches=8,
        layers=(8, 8, 8, 7),
        schedule="gpipe",
        labels=(LabelRule("F", "f"), LabelRule("B", "g")),
        steps=StepRange(2, 5),
        ranks=(0, 2, 3, 4),
        jobs=3,
    )


def test_what_throughput_needs_reaches_the_engine(bubblescope, engine):
    """Numbers may be written as 4.2e11."""
    bubblescope(
        *("analyze", "a", "--batch-size", "2048", "--sequence-length", "4096"),
        *("--flops-per-token", "4.2e11", "--peak-flops", "989e12", "--recompute", "1"),
    )
    assert engine.call.options == Options(
        batch_size=2048, sequence_length=4096, flops_per_token=4.2e11, peak_flops=989e12, recompute=1.0
    )


def test_nothing_stated_is_nothing_asked(bubblescope, engine):
    """Without options the traces tell everything; - is handed on as a trace."""
    bubblescope("analyze", "-")
    assert engine.call.paths == ("-",)
    assert engine.call.options == Options()


@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        ([], "table"),
        (["--json"], "json"),
        (["--format", "json", "--json"], "json"),
        (["--format", "markdown"], "markdown"),
        (["--format", "csv", "-o", "-"], "csv"),
    ],
)
def test_stdout_holds_the_result_and_nothing_else(bubblescope, engine, arguments, form):
    """A program that reads stdout reads the report alone."""
    seen = bubblescope("analyze", "t", *arguments)
    assert seen.out.encode() == registry.render(form, engine.report)
    assert seen.err == ""


@pytest.mark.parametrize("width", [1, 20, 40, 72, 140])
def test_columns_sets_the_width(bubblescope, monkeypatch, width):
    """A log that is narrower says so with COLUMNS."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, bubblescope("analyze", "t").out.splitlines())) <= width


@pytest.mark.parametrize("name", ["r.json", "r.md", "r.csv", "r.txt", "r"])
def test_file_gets_the_format_of_its_suffix(bubblescope, engine, tmp_path, name):
    """The name of the file decides, stdout stays empty, and stderr says what was written."""
    path = tmp_path / name
    seen = bubblescope("analyze", "t", "-o", str(path))
    assert path.read_bytes() == registry.render(registry.guess(name), engine.report)
    assert (seen.out, seen.err) == ("", f"Wrote {path}\n")


def test_stated_format_beats_the_suffix(bubblescope, tmp_path):
    """Who says --json gets JSON, whatever the file is called."""
    path = tmp_path / "r.txt"
    bubblescope("analyze", "t", "-o", str(path), "--json", "-q")
    assert json.loads(path.read_bytes())["schema"] == "bubblescope.report/1"


def test_files_are_not_overwritten_unasked(bubblescope, engine, tmp_path):
    """An existing file is refused before the work starts, and replaced with -f."""
    path = tmp_path / "r.json"
    path.write_text("precious")
    path.chmod(0o640)
    seen = bubblescope("analyze", "t", "-o", str(path))
    assert seen.code == 2
    assert "exists already" in seen.err
    assert engine.call is None
    assert path.read_text() == "precious"
    assert bubblescope("analyze", "t", "-o", str(path), "-f").code == 0
    assert path.read_bytes().startswith(b"{")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_failed_write_leaves_nothing_behind(bubblescope, tmp_path, monkeypatch):
    """Where the last step fails the folder is as it was."""

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    seen = bubblescope("analyze", "t", "-o", str(tmp_path / "r.json"))
    assert seen.code == 2
    assert "Permission denied" in seen.err
    assert list(tmp_path.iterdir()) == []


def test_devices_stay_devices(bubblescope):
    """/dev/null is written to, not replaced, and has nothing that must not be overwritten."""
    for force in ((), ("-f",)):
        assert bubblescope("analyze", "t", "-o", "/dev/null", *force, "--json").code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no such files here")
def test_pipes_stay_pipes(bubblescope, engine):
    """-o >(program) and -o /dev/stdout | program write to the pipe."""
    reader, writer = os.pipe()
    seen = bubblescope("analyze", "t", "-o", f"/dev/fd/{writer}", "--format", "csv")
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == registry.render("csv", engine.report)
    assert (seen.code, seen.out) == (0, "")


def test_quiet_says_nothing(bubblescope, tmp_path):
    """With -q stderr is for errors only."""
    assert bubblescope("analyze", "t", "-q", "-o", str(tmp_path / "r.json")).err == ""


@pytest.mark.parametrize(
    ("text", "ranks"), [("0", (0,)), ("0,2-5", (0, 2, 3, 4, 5)), (" 3 , 1-1", (1, 3)), ("2,2", (2,))]
)
def test_rank_lists_are_read(text, ranks):
    """Ranks and ranges, in any order and as often as one likes."""
    assert parse_ranks(text) == ranks


def test_schema_prints_the_shipped_schema(bubblescope):
    """The command prints the file that the package ships."""
    shipped = Path(registry.__file__).with_name("schema.json")
    assert bubblescope("schema").out.encode() == shipped.read_bytes()
