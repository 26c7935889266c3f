"""Reports of Nsight Systems are read through what `nsys` exports; here a script stands for it, never the real one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest import folders
from bubblescope.ingest.sources import expand

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the script that stands for nsys needs a shebang")

TRACE = '{"traceEvents": [{"ph": "X", "name": "x", "ts": 1}]}'
NSYS = """
import json, pathlib, shutil, sqlite3, sys
with open(pathlib.Path(__file__).parent / "calls", "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
target, report = pathlib.Path(sys.argv[-2]), pathlib.Path(sys.argv[-1])
def export():
    with sqlite3.connect(target) as connection:
        connection.execute("CREATE TABLE META_DATA_EXPORT (name, value)")
        connection.execute("INSERT INTO META_DATA_EXPORT VALUES ('content', ?)", [report.read_bytes()])
"""
WORKS = "export()"
FAILS = """
sys.stdout.write("what stdout says")
sys.stderr.write("\\n\\x1b[2K[5%]\\r[100%] loading\\r\\x1b[31mcannot\\x07 open it\\x1b[0m\\nmore\\n")
sys.exit(3)
"""
OLD = """
if "--include-json=true" in sys.argv:
    sys.exit("unrecognised option '--include-json=true'")
export()
"""
HALF = "target.write_bytes(b'SQLite format 3'); sys.exit(1)"
EMPTY = "pass"


@pytest.fixture(autouse=True)
def _own_folders(tmp_path, monkeypatch):
    """No nsys on the PATH, and neither the user's cache nor the system's folder of temporary files."""
    for name in ("bin", "cache", "temporary", "run"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path / "run")


@pytest.fixture
def nsys(tmp_path):
    """Install a script as nsys that ends like this; what it gives tells with which arguments it was called."""

    def install(ending: str = WORKS):
        (tmp_path / "bin" / "nsys").write_text(f"#!{sys.executable}{NSYS}{ending}")
        (tmp_path / "bin" / "nsys").chmod(0o700)
        return lambda: [json.loads(line) for line in (tmp_path / "bin" / "calls").read_text().splitlines()]

    return install


def report(name: str = "rank3.nsys-rep", content: bytes = b"\x08\x01") -> Path:
    """A report in the current directory."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def export(name: str) -> Path:
    """An export in the current directory."""
    connection = sqlite3.connect(name)
    connection.execute("CREATE TABLE ANALYSIS_DETAILS (x)")
    connection.close()
    return Path(name)


def content(path: Path) -> bytes:
    """The report that an export was made of."""
    connection = sqlite3.connect(path)
    ((value,),) = connection.execute("SELECT value FROM META_DATA_EXPORT").fetchall()
    connection.close()
    return value


def cached(tmp_path) -> list[str]:
    """The files and folders of the cache, without the folders of the reports."""
    return sorted(path.name for path in (tmp_path / "cache/bubblescope/nsys").glob("*/*"))


def test_a_report_is_read_through_its_export(tmp_path, nsys):
    """Its export lies in the cache, under the report's name, and a finding says where."""
    calls = nsys()
    found = expand([str(report())])
    (path,) = found.paths
    assert (path.name, content(path)) == ("rank3.sqlite", b"\x08\x01")
    assert tmp_path / "cache" in path.parents
    assert [(f.code, f.severity, f.input) for f in found.findings] == [("exported", "info", "rank3.nsys-rep")]
    assert str(path) in found.findings[0].message
    ((*arguments, output, source),) = calls()
    options = ["--type", "sqlite", "--include-json=true", "--force-overwrite=true", "--output"]
    assert arguments == ["export", *options]
    assert Path(source) == tmp_path / "run" / "rank3.nsys-rep"
    assert (Path(output).name, Path(output).exists()) == ("rank3.sqlite", False)
    assert cached(tmp_path) == ["rank3.sqlite"]


def test_a_report_is_exported_once(nsys):
    """A second run reads the export of the first."""
    calls = nsys()
    first = expand([str(report())]).paths
    assert expand([str(Path("rank3.nsys-rep").absolute())]).paths == first
    assert len(calls()) == 1


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_report_that_changed_is_exported_anew(tmp_path, nsys, change):
    """Another size or time is another report, and what was exported of the old one is gone."""
    nsys()
    path = report()
    other = report("other.nsys-rep")
    before = expand([str(path), str(other)]).paths
    if change == "size":
        path.write_bytes(b"longer")
    os.utime(path, ns=(0, 0 if change == "time" else path.stat().st_mtime_ns))
    after = expand([str(path), str(other)]).paths
    assert (after[0] != before[0], after[1] == before[1]) == (True, True)
    assert content(after[0]) == path.read_bytes()
    assert cached(tmp_path) == ["other.sqlite", "rank3.sqlite"]


def test_an_export_in_the_cache_that_broke_is_made_again(nsys):
    """What lies in the cache is looked at before it is used."""
    calls = nsys()
    (path,) = expand([str(report())]).paths
    path.write_bytes(path.read_bytes()[:100])
    assert expand(["rank3.nsys-rep"]).paths == (path,)
    assert (content(path), len(calls())) == (b"\x08\x01", 2)


def test_reports_of_one_name_stay_apart(nsys):
    """Reports of several hosts may have the same name."""
    nsys()
    names = [str(report("a/job.nsys-rep", b"one")), str(report("b/job.qdrep", b"two"))]
    assert [content(path) for path in expand(names).paths] == [b"one", b"two"]


def test_an_old_nsys_is_asked_once_more(nsys):
    """A version that refuses --include-json exports without."""
    calls = nsys(OLD)
    (path,) = expand([str(report())]).paths
    assert content(path) == b"\x08\x01"
    assert ["--include-json=true" in call for call in calls()] == [True, False]


def test_a_failure_says_what_nsys_said(tmp_path, nsys):
    """The first line of stderr that tells anything, as plain text, and the command; nothing of it stays."""
    calls = nsys(FAILS)
    with pytest.raises(InputError) as caught:
        expand([str(report())])
    assert caught.value.message == "rank3.nsys-rep: nsys could not export it: cannot open it"
    assert "nsys export --type sqlite --include-json=true" in caught.value.hint
    assert (len(calls()), cached(tmp_path)) == (1, [])


@pytest.mark.parametrize("ending", [HALF, EMPTY])
def test_half_an_export_is_none(tmp_path, nsys, ending):
    """An export that is not whole, or not there, is an error, whatever nsys returns."""
    nsys(ending)
    with pytest.raises(InputError, match="could not export it: it ended with"):
        expand([str(report())])
    assert cached(tmp_path) == []
    nsys(WORKS)
    assert content(*expand(["rank3.nsys-rep"]).paths) == b"\x08\x01"


def test_an_interrupted_export_leaves_nothing(tmp_path, nsys, monkeypatch):
    """Ctrl-C during the export leaves no file that a later run takes for whole."""
    nsys()

    def interrupt(command, **_):
        Path(command[-2]).write_bytes(b"SQLite format 3")
        raise KeyboardInterrupt

    monkeypatch.setattr("bubblescope.ingest.reports.subprocess.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        expand([str(report())])
    assert cached(tmp_path) == []


def test_an_nsys_that_cannot_run(tmp_path, nsys):
    """An nsys that the system refuses to run is an error that names it."""
    nsys()
    (tmp_path / "bin" / "nsys").write_text("#!/no/such/interpreter\n")
    with pytest.raises(InputError, match="nsys: cannot be run: No such file"):
        expand([str(report())])


@pytest.mark.parametrize("home", ["file", "relative"])
def test_without_a_cache_the_export_goes_with_the_program(tmp_path, nsys, monkeypatch, home):
    """Where the cache cannot be written the export lies in a temporary folder."""
    nsys()
    Path("file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path("file").absolute()) if home == "file" else "run")
    monkeypatch.setenv("HOME", str(Path("file").absolute()))
    registered = []
    monkeypatch.setattr("atexit.register", lambda call, *args, **options: registered.append((call, args, options)))
    (path,) = expand([str(report())]).paths
    assert (content(path), tmp_path / "temporary" in path.parents) == (b"\x08\x01", True)
    assert registered == [(shutil.rmtree, (path.parent,), {"ignore_errors": True})]


def test_a_full_disk_is_no_bug(tmp_path, nsys, monkeypatch):
    """Where nothing can be written the error names the folders to set."""
    nsys()
    monkeypatch.setattr(tempfile, "mkdtemp", lambda **_: (tmp_path / "run" / "x" / "y").mkdir())
    with pytest.raises(InputError, match="cannot be written: No such file") as caught:
        expand([str(report())])
    assert "TMPDIR" in caught.value.hint


def test_the_cache_is_private(nsys):
    """A report holds the environment of a job, which is nobody else's business."""
    nsys()
    (path,) = expand([str(report())]).paths
    assert path.parent.stat().st_mode & 0o077 == 0


def test_the_cache_is_below_home_by_default(monkeypatch, tmp_path):
    """As the XDG Base Directory Specification wants it."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folders.cache() == tmp_path / ".cache" / "bubblescope"


def test_a_name_that_looks_like_an_option(nsys):
    """A report whose name begins with a dash is no option of nsys."""
    calls = nsys()
    assert content(*expand([str(report("--help.nsys-rep"))]).paths) == b"\x08\x01"
    assert not [argument for argument in calls()[0][-2:] if argument.startswith("-")]


def test_without_nsys_the_command_is_the_hint():
    """A report alone, and no nsys: the error says which command makes it readable."""
    with pytest.raises(InputError, match="found a report of Nsight Systems, and no nsys on the PATH") as caught:
        expand([str(report("my report.nsys-rep"))])
    arguments = ["--type", "sqlite", "--include-json=true", "--output", "my report.sqlite", "my report.nsys-rep"]
    assert shlex.split(caught.value.hint) == ["nsys", "export", *arguments]
    assert caught.value.exit_code == 3


def test_without_nsys_several_reports_are_named():
    """Each report is named, and the hint is the command for the first, whatever else lies there."""
    for name in ("rank1.nsys-rep", "rank0.nsys-rep", "killed.qdstrm"):
        report(name)
    Path("a.txt").write_text("notes")
    with pytest.raises(InputError, match="none among 4 files") as caught:
        expand(["a.txt", "rank1.nsys-rep", "rank0.nsys-rep", "killed.qdstrm"])
    assert "rank0.nsys-rep: a report of Nsight Systems" in caught.value.message
    assert caught.value.hint.splitlines()[0].endswith("rank1.nsys-rep")


def test_without_nsys_other_traces_are_read():
    """A report among traces is passed over with a warning, which holds the command."""
    Path("rank0.json").write_text(TRACE)
    report()
    found = expand(["."])
    assert [path.name for path in found.paths] == ["rank0.json"]
    ((finding),) = found.findings
    assert (finding.code, finding.severity, finding.input) == ("skipped", "warning", "rank3.nsys-rep")
    assert finding.message.endswith("--include-json=true --output rank3.sqlite rank3.nsys-rep")


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize("name", ["rank3.nsys-rep", "rank3.qdrep", "rank3.qdstrm"])
def test_a_report_beside_its_export_is_passed_over(nsys, installed, name):
    """Reading both would be one rank twice."""
    if installed:
        nsys(FAILS)
    report(name)
    export("rank3.sqlite")
    found = expand(["."])
    assert [path.name for path in found.paths] == ["rank3.sqlite"]
    assert [(f.code, f.severity, f.input) for f in found.findings] == [("skipped", "info", name)]


def test_an_export_that_is_not_read_replaces_nothing(nsys):
    """A report that is named is read, though an export lies beside it that is not."""
    nsys()
    export("rank3.sqlite")
    assert content(*expand([str(report())]).paths) == b"\x08\x01"


def test_exports_keep_the_places_of_their_reports(nsys):
    """Ranks that nothing tells are counted in the order of the files."""
    nsys()
    for number in (2, 10, 1):
        report(f"rank{number}.nsys-rep", str(number).encode())
    export("rank5.sqlite")
    assert [path.name for path in expand(["."]).paths] == [f"rank{n}.sqlite" for n in (1, 2, 5, 10)]


def test_what_a_killed_run_left_is_not_exported(nsys):
    """A .qdstrm is nothing for nsys; alone it is an error that names the program that imports it."""
    nsys(FAILS)
    with pytest.raises(InputError, match="a killed run left unfinished") as caught:
        expand([str(report("job.qdstrm"))])
    assert "QdstrmImporter --input-file job.qdstrm" in caught.value.hint


@pytest.mark.parametrize(("other", "severity"), [("job.nsys-rep", "info"), ("rank0.nsys-rep", "warning")])
def test_what_a_killed_run_left_among_others(nsys, other, severity):
    """It matters only where nothing was made of it."""
    nsys()
    report("job.qdstrm")
    report(other)
    found = expand(["."])
    assert len(found.paths) == 1
    assert {finding.input: finding.severity for finding in found.findings}["job.qdstrm"] == severity
