"""From arguments to files."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.sources import expand

pipes = pytest.mark.skipif(sys.platform == "win32", reason="no such files there")

TRACE = '{"traceEvents": [{"ph": "X", "name": "x", "ts": 1}]}'


@pytest.fixture
def tree(tmp_path):
    """A directory with traces and other files, some in folders."""
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
    """A directory gives its files and those below it, numbers in order, and reports what it passed over."""
    assert found(tree, tree) == ["a/deep/rank9.json", "a/rank1.json", "b/rank0.json", "rank2.json", "rank10.json"]
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


def test_what_to_do_names_its_file_where_others_need_something_else(tree):
    """Advice on one file is no advice on all."""
    (tree / "broken.sqlite").write_bytes(b"SQLite format 3\x00")
    with pytest.raises(InputError, match="none among 2 files") as caught:
        expand([str(tree / "config.json"), str(tree / "broken.sqlite")])
    assert caught.value.hint.startswith(f"Of {tree / 'broken.sqlite'}: Copy it again")
    assert caught.value.hint.endswith("\nbubblescope info says what to do with each.")
    with pytest.raises(InputError) as caught:
        expand([str(tree / "config.json"), str(tree / "a" / "notes.txt")])
    assert caught.value.hint.startswith("Give traces")


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


def test_a_dash_twice_is_one_trace(monkeypatch):
    """Standard input can be read only once."""
    monkeypatch.setattr(sys, "stdin", Piped(TRACE.encode()))
    result = expand(["-", "-"])
    assert (len(result.paths), result.findings) == (1, ())


@pytest.mark.parametrize("stdin", [None, "terminal"])
def test_a_dash_without_a_pipe_says_so(monkeypatch, stdin):
    """- on a terminal, or without standard input, is an error that says what was expected."""
    if stdin is not None:
        stdin = Piped(b"")
        monkeypatch.setattr(stdin, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", stdin)
    with pytest.raises(InputError, match="standard input"):
        expand(["-"])


def _buried(folder) -> Path:
    """A directory whose only trace lies five folders deep."""
    (folder / "1/2/3/4/5").mkdir(parents=True)
    (folder / "1/2/3/4/5/rank0.json").write_text(TRACE)
    return folder


def test_directories_are_descended_some_levels(tmp_path):
    """Traces lie in folders of folders, but not at any depth, and no link is followed."""
    for name in ("1/2/3/4/rank0.json", "1/2/3/4/5/rank1.json", "1/.git/rank2.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(TRACE)
    (tmp_path / "1" / "round").symlink_to(tmp_path)
    assert found(tmp_path, tmp_path) == ["1/2/3/4/rank0.json"]
    with pytest.raises(InputError, match="found no files") as caught:
        expand([str(_buried(tmp_path / "new"))])
    assert "4 folders deep" in caught.value.hint


def test_an_empty_name_is_not_the_current_directory():
    """A variable that is not set must not analyze whatever lies here."""
    with pytest.raises(InputError, match="found an empty one"):
        expand([""])


@pytest.mark.parametrize("name", ["x" * 5000, "x" * 5000 + "*"])
def test_names_that_no_file_can_have(tmp_path, name):
    """What the system refuses to look up is an error that says so."""
    with pytest.raises(InputError):
        expand([str(tmp_path / name)])


def feed(path, content) -> threading.Thread:
    """Write to a pipe as soon as somebody reads it."""
    writer = threading.Thread(target=path.write_bytes, args=(content,), daemon=True)
    writer.start()
    return writer


@pipes
@pytest.mark.parametrize("content", [TRACE.encode(), gzip.compress(TRACE.encode(), mtime=0)])
def test_a_pipe_is_read_as_a_file_of_its_name(tmp_path, content):
    """A pipe that is named is copied, whatever it brings, for a trace is read more than once."""
    os.mkfifo(tmp_path / "rank3.json")
    writer = feed(tmp_path / "rank3.json", content)
    (path,) = expand([str(tmp_path / "rank3.json")]).paths
    writer.join(10)
    assert (path.name, path.read_bytes()) == ("rank3.json", content)
    assert path.parent != tmp_path


@pipes
def test_a_shell_substitutes_processes():
    """<(zcat rank0.json.gz) is a trace."""
    reader, writer = os.pipe()
    os.write(writer, TRACE.encode())
    os.close(writer)
    (path,) = expand([f"/dev/fd/{reader}"]).paths
    os.close(reader)
    assert path.read_text() == TRACE


@pipes
def test_pipes_in_directories_are_passed_over(tree):
    """Nobody writes to them, so that reading would never end."""
    os.mkfifo(tree / "rank5.json")
    os.mkfifo(tree / "a" / "rank6.json")
    assert "rank5.json" not in found(tree, tree)
    assert found(tree, tree / "rank*.json") == ["rank2.json", "rank10.json"]
    with pytest.raises(InputError, match="found none"):
        expand([str(tree / "rank[5]*")])


@pipes
@pytest.mark.parametrize("name", ["/dev/null", "/dev/zero"])
def test_devices_are_no_traces(name):
    """A device has nothing to read, or no end."""
    with pytest.raises(InputError, match="found a device"):
        expand([name])


@pipes
def test_a_full_disk_is_no_bug(monkeypatch):
    """Where standard input cannot be copied the error says where to."""
    monkeypatch.setattr(sys, "stdin", Piped(TRACE.encode()))
    monkeypatch.setattr(shutil, "copyfileobj", lambda *_: Path("/dev/full").write_bytes(b"x"))
    with pytest.raises(InputError, match="No space left on device") as caught:
        expand(["-"])
    assert "TMPDIR" in caught.value.hint


def test_leftovers_beside_the_finished_file(tmp_path):
    """What a killed run left is read only where nothing finished lies beside it."""
    for name in ("rank0.json", "rank0.json.tmp", "rank1.json.tmp"):
        (tmp_path / name).write_text(TRACE)
    found = expand([str(tmp_path)])
    assert [path.name for path in found.paths] == ["rank0.json", "rank1.json.tmp"]
    assert [(f.code, f.input) for f in found.findings] == [("skipped", str(tmp_path / "rank0.json.tmp"))]
