"""`bubblescope info`: what it writes where, and how it ends."""

from __future__ import annotations

import gzip
import io
import json
import sys

import pytest

from bubblescope.cli import run
from bubblescope.emit import Job, write
from bubblescope.inventory.take import info
from bubblescope.report import info_csv, inventories, pages
from bubblescope.report import json as rendered

RENDERERS = {
    "table": lambda found: pages.plain(inventories.page(found)),
    "json": rendered.render,
    "markdown": lambda found: pages.markdown(inventories.page(found)),
    "csv": info_csv.render,
}


@pytest.fixture
def traces(tmp_path):
    """The traces of a small run."""
    folder = tmp_path / "traces"
    write(Job(p=2, m=2, steps=1, kernels=2), folder)
    return folder


@pytest.fixture
def called(capfd, monkeypatch):
    """Run a command line; returns its exit code, stdout and stderr."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = run(["info", *arguments])
        sys.stdout.flush()
        return (code, *capfd.readouterr())

    return call


@pytest.mark.parametrize("form", RENDERERS)
def test_stdout_holds_the_result_and_nothing_else(called, traces, form):
    """In every format."""
    code, out, err = called(str(traces), "--format", form)
    assert (code, err) == (0, "")
    assert out.encode() == RENDERERS[form](info([str(traces)]))


def test_a_file_gets_the_format_of_its_suffix(called, traces, tmp_path):
    """And is not overwritten unasked."""
    target = tmp_path / "info.json"
    code, out, err = called(str(traces), "-o", str(target))
    assert (code, out, err) == (0, "", f"Wrote {target}\n")
    assert json.loads(target.read_bytes())["schema"] == "bubblescope.info/1"
    assert called(str(traces), "-o", str(target))[0] == 2
    assert called(str(traces), "-o", str(target), "-f", "-q") == (0, "", "")


def test_standard_input_is_read(called, traces, monkeypatch):
    """As it comes out of a pipe, compressed or not."""
    data = gzip.decompress(next(traces.glob("rank0*")).read_bytes())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    code, out, _ = called("-", "--json")
    (file,) = json.loads(out)["files"]
    assert (code, file["gzip"], file["bytes"], len(file["ranks"])) == (0, False, len(data), 1)


def test_nothing_that_can_be_read_ends_with_3(called, tmp_path):
    """The page and the JSON are written all the same: to know what a file is, is why one asks."""
    (tmp_path / "notes.txt").write_text("so what")
    code, out, err = called(str(tmp_path / "notes.txt"))
    assert code == 3
    assert "notes.txt  text" in " ".join(out.split(" ")).replace("   ", "  ")
    assert err.startswith("error: none of the files can be read as a trace")
    code, out, _ = called(str(tmp_path), "--json")
    assert (code, json.loads(out)["files"][0]["looks_like"]) == (3, "text")


def test_foreign_files_beside_traces_are_no_failure(called, traces):
    """They are listed."""
    (traces / "notes.txt").write_text("so what")
    code, out, err = called(str(traces))
    assert (code, err) == (0, "")
    assert "notes.txt" in out


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        ([], 2, "TRACE"),
        (["missing.json"], 3, "missing.json: expected a file or a directory, found neither"),
        (["missing*.json"], 3, "expected files of this pattern, found none"),
        (["t", "--pp", "2"], 2, "No such option"),
        (["t", "--jobs", "0"], 2, "--jobs must be at least 1"),
        (["t", "--format", "html"], 2, "--format"),
    ],
)
def test_command_lines_have_their_codes(called, arguments, code, part):
    """2 for what was not understood, 3 for what is not there; stdout is empty then."""
    seen = called(*arguments)
    assert seen[:2] == (code, "")
    assert part in seen[2]
