"""From arguments to files."""

from __future__ import annotations

import io
import sys
import tempfile

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.sources import expand

TRACE = '{"traceEvents": [{"ph": "X", "name": "x", "ts": 1}]}'


@pytest.fixture
def tree(tmp_path):
    """A directory with traces and other files, one and two levels deep."""
    for name in ("rank10.json", "rank2.json", "b/rank0.json", "a/rank1.json", "a/deep/rank9.json", ".hidden.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TRACE)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "a" / "notes.txt").write_text("hello")
    return tmp_path


def found(tree, *args) -> list[str]:
    """The traces that arguments stand for, relative to the tree."""
    return [str(path.relative_to(tree)) for path in expand([str(arg) for arg in args]).paths]


def test_directory(tree):
    """A directory gives its files and those one level deeper, numbers in order, and reports what it passed over."""
    assert found(tree, tree) == ["a/rank1.json", "b/rank0.json", "rank2.json", "rank10.json"]
    findings = expand([str(tree)]).findings
    assert {finding.code for finding in findings} == {"skipped"}
    assert [(finding.input, finding.message.split("like ")[1]) for finding in findings] == [
        (str(tree / "a" / "notes.txt"), "text"),
        (str(tree / "config.json"), "JSON, but with no traceEvents"),
    ]


def test_files_keep_the_order_in_which_they_are_named(tree):
    """Several files stay in the order of the arguments, each once."""
    args = (tree / "rank10.json", tree / "rank2.json", tree / "a" / ".." / "rank10.json", tree / "b")
    assert found(tree, *args) == ["rank10.json", "rank2.json", "b/rank0.json"]


def test_glob(tree):
    """A pattern that no shell expanded is expanded, through directories too."""
    assert found(tree, tree / "rank*.json") == ["rank2.json", "rank10.json"]
    assert found(tree, tree / "**" / "rank?.json") == [
        "a/deep/rank9.json",
        "a/rank1.json",
        "b/rank0.json",
        "rank2.json",
    ]
    assert found(tree, tree / "[b-z]") == ["b/rank0.json"]


def test_a_file_whose_name_looks_like_a_glob(tmp_path):
    """A file that exists is taken by its name."""
    (tmp_path / "run[1].json").write_text(TRACE)
    assert found(tmp_path, tmp_path / "run[1].json") == ["run[1].json"]


@pytest.mark.parametrize("name", ["gone.json", "gone*.json", "gone/"])
def test_missing(tmp_path, name):
    """A path that does not exist, or a pattern without files, is named."""
    with pytest.raises(InputError, match="gone") as caught:
        expand([str(tmp_path / name)])
    assert caught.value.hint


def test_foreign_file_named_alone(tree):
    """A file that is no trace, named alone, is an error that says what it looks like."""
    with pytest.raises(InputError, match=r"config.json: expected a trace, found JSON, but with no traceEvents"):
        expand([str(tree / "config.json")])


def test_nothing_left(tree):
    """No trace among several files: each is named with what it looks like."""
    with pytest.raises(InputError, match="none among 2 files") as caught:
        expand([str(tree / "config.json"), str(tree / "a" / "notes.txt")])
    assert "config.json: JSON, but with no traceEvents" in caught.value.message
    assert "notes.txt: text" in caught.value.message


def test_no_files(tmp_path):
    """An empty directory, and no argument at all, are errors."""
    for args in ([str(tmp_path)], []):
        with pytest.raises(InputError, match="found no files"):
            expand(args)


def test_foreign_file_among_traces(tree):
    """A file that is no trace among others is passed over and reported."""
    result = expand([str(tree / "config.json"), str(tree / "rank2.json")])
    assert [path.name for path in result.paths] == ["rank2.json"]
    assert [finding.code for finding in result.findings] == ["skipped"]


class Piped(io.TextIOWrapper):
    """Standard input that holds these bytes."""

    def __init__(self, content):
        super().__init__(io.BytesIO(content))


def test_a_dash_reads_standard_input(monkeypatch, tmp_path):
    """- stands for a trace that is piped in, which is spooled to a file of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", Piped(b'{"schemaVersion": 1, "traceEvents": []}'))
    (path,) = expand(["-"]).paths
    assert path.read_bytes() == b'{"schemaVersion": 1, "traceEvents": []}'
    assert tmp_path in path.parents


@pytest.mark.parametrize("stdin", [None, "terminal"])
def test_a_dash_without_a_pipe_says_so(monkeypatch, stdin):
    """- on a terminal, or without standard input, is an error that says what was expected."""
    if stdin is not None:
        stdin = Piped(b"")
        monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InputError, match="standard input"):
        expand(["-"])
