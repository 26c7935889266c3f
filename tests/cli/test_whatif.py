"""`bubblescope whatif`: what it hands to the engine, what it does with the answer, and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import get_args

import pytest

from bubblescope.cli.schema import NAMES
from bubblescope.cli.whatif import command
from bubblescope.errors import InputError, UndecidedError
from bubblescope.model.changes import KEYS, Changes, Trouble
from bubblescope.model.options import Options, StepRange
from bubblescope.report import forecast_csv, forecasts, pages
from bubblescope.report import json as rendered
from tests import whatifs

RENDERERS = {
    "table": lambda found: pages.plain(forecasts.page(found)),
    "json": rendered.render,
    "markdown": lambda found: pages.markdown(forecasts.page(found)),
    "csv": forecast_csv.render,
}


def test_each_try_is_one_forecast(bubblescope, engine):
    """What is joined by commas is one change, and the order stays."""
    bubblescope("whatif", "a", "b", "--try", "m=16", "--try", "schedule=zb-h1, v=2", "--try", "without=p2p+host")
    assert engine.call.paths == ("a", "b")
    assert engine.call.changes == (
        Changes(microbatches=16),
        Changes(schedule="zb-h1", virtual=2),
        Changes(without=frozenset({"p2p", "host"})),
    )
    assert engine.call.anyway is False


def test_nothing_tried_asks_the_usual(bubblescope, engine):
    """Without --try the engine is asked for no change, and chooses."""
    bubblescope("whatif", "-")
    assert (engine.call.paths, engine.call.changes, engine.call.options) == (("-",), (), Options())


def test_options_of_the_job_reach_the_engine(bubblescope, engine):
    """They are those of analyze, and stand beside changes of the same name."""
    bubblescope("whatif", "t", "--anyway", "--steps", "2:", "--pp", "4", "--microbatches", "8", "--try", "m=16")
    assert engine.call.options == Options(steps=StepRange(2), pp=4, microbatches=8)
    assert engine.call.changes == (Changes(microbatches=16),)
    assert engine.call.anyway is True


@pytest.mark.parametrize(
    ("arguments", "form"),
    [
        ([], "table"),
        (["--json"], "json"),
        (["--format", "markdown"], "markdown"),
        (["--format", "csv", "-o", "-"], "csv"),
    ],
)
def test_stdout_holds_the_result_and_nothing_else(bubblescope, arguments, form):
    """Page and data are what the renderers make."""
    seen = bubblescope("whatif", "t", *arguments)
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.encode() == RENDERERS[form](whatifs.usual())


@pytest.mark.parametrize(("name", "form"), [("w.json", "json"), ("w.md", "markdown"), ("w.csv", "csv"), ("w", "table")])
def test_file_gets_the_format_of_its_suffix(bubblescope, tmp_path, name, form):
    """The name of the file decides, stdout stays empty, and stderr says what was written."""
    path = tmp_path / name
    seen = bubblescope("whatif", "t", "-o", str(path))
    assert path.read_bytes() == RENDERERS[form](whatifs.usual())
    assert (seen.out, seen.err) == ("", f"Wrote {path}\n")


def test_files_are_not_overwritten_unasked(bubblescope, engine, tmp_path):
    """An existing file is refused before the work starts, and replaced with -f."""
    path = tmp_path / "w.json"
    path.write_text("precious")
    seen = bubblescope("whatif", "t", "-o", str(path))
    assert (seen.code, engine.call, path.read_text()) == (2, None, "precious")
    assert "exists already" in seen.err
    assert bubblescope("whatif", "t", "-o", str(path), "-f").code == 0
    assert json.loads(path.read_bytes())["schema"] == "bubblescope.whatif/1"


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ("", "a what-if changes something"),
        (" , ", "a what-if changes something"),
        ("shedule=zb-h1", "hint: did you mean schedule?"),
        ("schedule=", "schedule takes a name"),
        ("m=many", "m takes a number"),
        ("m=0", "m must be from 1 to 65536"),
        ("m=8,microbatches=9", "stands twice"),
        ("layers=8+x", "layers takes a number"),
        ("layers=0+8", "layers takes `best`"),
        ("p2p=fast", "p2p takes a factor"),
        ("p2p=-1", "p2p must be from 0"),
        ("without=luck", "without takes one of imbalance"),
        ("overlap=yes", "overlap stands by itself"),
        ("recompute=maybe", "recompute takes on or off"),
        ("\x1b[31m=1", "nothing can be changed that is called '\\x1b[31m'"),
    ],
)
def test_bad_changes_end_with_2(bubblescope, engine, changes, part):
    """Before anything is read, and stderr says what was not understood."""
    seen = bubblescope("whatif", "t", "--try", changes)
    assert (seen.code, seen.out, engine.call) == (2, "", None)
    assert part in seen.err
    assert "\x1b" not in seen.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["whatif"], "TRACE"),
        (["whatif", "t", "--try"], "requires an argument"),
        (["whatif", "t", "--attribution", "shapley"], "No such option"),
        (["whatif", "t", "--json", "--format", "csv"], "two formats"),
        (["what-if", "t"], "hint: did you mean whatif?"),
    ],
)
def test_bad_command_lines_end_with_2(bubblescope, arguments, part):
    """As with any command."""
    seen = bubblescope(*arguments)
    assert (seen.code, seen.out) == (2, "")
    assert part in seen.err


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        (InputError("rank0.json: expected a trace, found a config"), 3),
        (UndecidedError("no pipeline was found: there is nothing to replay"), 4),
        (UndecidedError("the replay misses the run by 8.1 %", hint="--anyway forecasts all the same"), 4),
        (KeyError("stage"), 70),
    ],
)
def test_problems_have_their_codes(bubblescope, engine, problem, code):
    """What the engine refuses is no result, and told on stderr."""
    engine.problem = problem
    seen = bubblescope("whatif", "t", "--try", "m=16")
    assert (seen.code, seen.out) == (code, "")
    assert str(problem) in seen.err
    assert (getattr(problem, "hint", None) or "") in seen.err


@pytest.mark.parametrize("width", [20, 72, 140])
def test_columns_sets_the_width(bubblescope, monkeypatch, width):
    """A log that is narrower says so with COLUMNS."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, bubblescope("whatif", "t").out.splitlines())) <= width


@pytest.mark.skipif(os.name == "nt", reason="pipes differ there")
@pytest.mark.parametrize("form", [[], ["--json"], ["--format", "csv"]])
def test_closed_pipe_ends_quietly(form):
    """`bubblescope whatif ... | head -0` is nobody's mistake."""
    code = (
        "import sys, types\n"
        "from tests import whatifs\n"
        "engine = types.ModuleType('bubblescope.engine')\n"
        "engine.whatif = lambda *_, **more: whatifs.usual()\n"
        "sys.modules['bubblescope.engine'] = engine\n"
        "from bubblescope.cli import main; main()"
    )
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.Popen(
        [sys.executable, "-c", code, "whatif", "t", *form], stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (0, b"")


@pytest.mark.parametrize(
    ("trace", "code", "part"),
    [
        ("no-such-file.json", 3, b"no-such-file.json"),
        ("no-pipeline.json", 4, b"error: nothing can be replayed: no pipeline was found\n"),
    ],
)
def test_traces_that_cannot_be_replayed(tmp_path, trace, code, part):
    """With the real engine: what is no trace ends with 3, and a trace without a pipeline with 4."""
    kernel = {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 100, "dur": 10}
    (tmp_path / "no-pipeline.json").write_text(json.dumps({"schemaVersion": 1, "traceEvents": [kernel]}))
    main = "from bubblescope.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", main, "whatif", str(tmp_path / trace)], capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (code, b"")
    assert part in done.stderr


def test_help_tells_the_whole_grammar():
    """Every word that may stand in CHANGES, and every trouble that a run can be without."""
    text = " ".join(command.help.split())
    short = {name: key for key, name in reversed(KEYS.items())}
    assert not [key for key in short.values() if f" {key}=" not in text and f" {key} " not in text]
    assert f"without=TROUBLE one of {', '.join(get_args(Trouble))}" in text


@pytest.mark.parametrize(("arguments", "name"), [([], "report"), (["report"], "report"), (["whatif"], "whatif")])
def test_schema_prints_the_schema_asked_for(bubblescope, arguments, name):
    """That of the report where nothing is said."""
    assert bubblescope("schema", *arguments).out.encode() == rendered.schema(name)


def test_schema_knows_all_that_have_one(bubblescope):
    """No other name is taken."""
    assert tuple(rendered.SCHEMAS) == NAMES
    seen = bubblescope("schema", "trace")
    assert (seen.code, seen.out) == (2, "")
