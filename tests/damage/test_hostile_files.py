"""Links, pipes, names and members that lead elsewhere: nothing is followed in circles, and nothing is written."""

from __future__ import annotations

import json
import os
import tempfile

import pytest

from bubblescope.emit import Job, write
from tests.damage.runs import analyzed

TINY = Job(p=2, m=2, steps=2, kernels=1, forward_ns=50_000, backward_ns=100_000, p2p_ns=5_000, compress=False)

ELSEWHERE = ["../../out", "/out", "~/out", "$(touch out)", "`touch out`", "; touch out", r"\\x\y"]

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links and names differ there")


def everything(folder):
    """All below a folder with its content, links as what they say."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            found[path] = path.readlink()
        elif path.is_file():
            found[path] = path.stat().st_mtime_ns, path.read_bytes()
        else:
            found[path] = None
    return found


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A folder of traces, with all that the program may write to beside it."""
    for name in ("home", "tmp", "work"):
        (tmp_path / name).mkdir()
    write(TINY, tmp_path / "traces")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


@pytest.mark.parametrize("recorder", ["kineto", "nsys"])
def test_an_analysis_writes_nothing(world, recorder):
    """But its result to stdout: neither beside the traces, nor where it stands, nor at home."""
    write(Job(p=2, m=2, steps=2, kernels=1, recorder=recorder), world / "more")
    before = everything(world)
    assert analyzed([world / "more"], "--json").code == 0
    assert everything(world) == before


def test_a_result_is_the_only_file_written(world):
    """Where -o says, and nowhere else."""
    before = everything(world)
    assert analyzed([world / "traces"], "-o", "out.json").code == 0
    after = everything(world)
    assert set(after) - set(before) == {world / "work" / "out.json"}
    assert {path: after[path] for path in before} == before


@pytest.mark.parametrize("name", ELSEWHERE)
@pytest.mark.parametrize("key", ["traceName", "host_name", "trace_id"])
def test_names_of_files_inside_of_traces_are_not_used(world, key, name):
    """A member that names a file names it for people."""
    for path in (world / "traces").iterdir():
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {key: name}))
    before = everything(world)
    assert analyzed([world / "traces"], "--json").code == 0
    assert everything(world) == before


@pytest.mark.parametrize("target", [".", "..", "loop", "/", "/dev/zero", "/dev/stdin", "nowhere", "/etc"])
def test_links_lead_nowhere(world, target):
    """In circles, out of the folder, to devices or to nothing: the traces are still read, each once."""
    (world / "traces" / "loop").symlink_to(target)
    outcome = analyzed([world / "traces"], "--json")
    assert outcome.code == 0
    assert json.loads(outcome.out)["layout"]["world_size"] == 2


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no such file here")  # noqa: PTH110
def test_a_link_to_what_cannot_be_read(world):
    """A file that the system does not read may be a rank that is missing: an error that names it."""
    (world / "traces" / "link").symlink_to("/proc/self/mem")
    outcome = analyzed([world / "traces"])
    assert outcome.code == 3
    assert f"{world / 'traces' / 'link'}: cannot be read" in outcome.err


@pytest.mark.parametrize("target", ["loop", "/dev/zero", "/dev/stdin", "nowhere"])
def test_links_that_are_named_lead_nowhere(world, target):
    """An error that says so."""
    (world / "loop").symlink_to(target)
    outcome = analyzed([world / "loop"])
    assert outcome.code == 3
    assert str(world / "loop") in outcome.err


@pytest.mark.parametrize(
    "name", ["-", "--json", "-o", "*.json", "a b", "?", "[x]", "$HOME", "~", "%s", "{0}", "C:\\x", "x" * 240]
)
def test_odd_names_of_files(world, name):
    """A file of any name is read by it, in a folder and by its path."""
    rank0 = next((world / "traces").glob("*rank0*"))
    target = world / "traces" / f"{name}_rank0.json"
    rank0.rename(target)
    assert analyzed([world / "traces"], "--json").code == 0
    assert analyzed([target], "--json").code == 0


def test_a_pipe_in_a_folder_is_not_waited_for(world):
    """Nobody writes to it."""
    os.mkfifo(world / "traces" / "rank2.json")
    assert analyzed([world / "traces"], "--json").code == 0


@pytest.mark.parametrize("suffix", ["-wal", "-journal", "-shm"])
@pytest.mark.parametrize("target", ["/dev/zero", "/dev/stdin", "loop", "/", None])
def test_what_lies_beside_an_export(world, suffix, target):
    """Links for SQLite's log and journal are not followed to where reading has no end."""
    for path in write(Job(p=2, m=2, steps=2, kernels=1, recorder="nsys"), world / "exports"):
        beside = path.with_name(path.name + suffix)
        if target is None:
            beside.mkdir()
        else:
            beside.symlink_to(beside.name if target == "loop" else target)
    before = everything(world / "exports")
    assert analyzed([world / "exports"], "--json").code == 0
    assert everything(world / "exports") == before
