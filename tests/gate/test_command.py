"""`bubblescope gate` and `baseline` as a script sees them: every exit code, every output in each outcome."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import jsonschema
import pytest
import xmlschema

from bubblescope.cli import run as command_line
from bubblescope.report import baselines
from bubblescope.report.json import schema
from tests.gate.runs import usual

SAMPLES = Path(__file__).parents[2] / "sample_traces"
XSD = xmlschema.XMLSchema(str(Path(__file__).parent / "junit.xsd"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project: `good` and `bad` are runs, `few` has one step, `other` another shape, `torn` doubtful numbers."""
    runs = {
        "good": usual(0.29),
        "bad": usual(0.40),
        "few": usual(0.40, None, 1),
        "other": usual(0.29, microbatches=16),
        "torn": replace(usual(0.29), doubts={"bubble": ("truncated",)}),
    }
    for name, numbers in runs.items():
        (tmp_path / f"{name}.json").write_bytes(baselines.render(numbers))
    (tmp_path / "no.txt").write_text("no trace", "utf-8")
    (tmp_path / "damaged.json").write_text('{"schema": "bubblescope.baseline/1"}', "utf-8")
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "COLUMNS", "BUBBLESCOPE_GATE_FAIL_ON"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def bubblescope(here, capfd):
    """Run a command line in that project."""
    assert here.is_dir()

    def call(*arguments: str) -> SimpleNamespace:
        capfd.readouterr()
        code = command_line(arguments)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        # 0: nothing failed
        ("good.json --baseline good.json", 0, "PASS: all 3 rules hold"),
        ("bad.json --baseline good.json --warn-on bubble:+2pp", 0, "PASS: 1 rule only warns"),
        ("good.json --fail-on bubble>35%", 0, "PASS: the rule holds"),
        (
            "good.json --baseline nope.json --on-missing-baseline warn",
            0,
            "PASS: nothing was compared, as is allowed",
        ),
        (
            "good.json --baseline nope.json --on-missing-baseline pass",
            0,
            "PASS: nothing was compared, as is allowed",
        ),
        (
            "good.json --baseline other.json --on-missing-baseline pass",
            0,
            "PASS: nothing was compared, as is allowed",
        ),
        ("good.json --baseline other.json --allow-mismatch", 0, "PASS: all 3 rules hold"),
        ("torn.json --baseline good.json --allow-degraded", 0, "PASS: all 3 rules hold"),
        ("bad.json --baseline good.json --preset default --off bubble", 0, "PASS: 2 of 3 rules hold"),
        # 1: a rule failed, and nothing else
        ("bad.json --baseline good.json", 1, "FAIL: 1 of 3 rules failed"),
        ("bad.json --fail-on bubble>35%", 1, "FAIL: 1 of 1 rule failed"),
        ("good.json --fail-on bubble@stage=3>29.5%", 1, "FAIL: 1 of 1 rule failed"),
        ("bad.json --baseline nope.json --fail-on bubble>35% --fail-on bubble:+2pp", 1, "FAIL: 1 of 2 rules failed"),
        ("bad.json --baseline other.json --allow-mismatch", 1, "FAIL: 1 of 3 rules failed"),
        ("bad.json --baseline good.json --preset strict", 1, "FAIL"),
        # 2: wrong usage or settings
        ("good.json", 2, "the gate has no rule"),
        ("", 2, "TRACE"),
        ("good.json --fail-on bubble", 2, "is no rule"),
        ("good.json --fail-on bubbel>3%", 2, "did you mean bubble?"),
        ("good.json --preset strickt", 2, "did you mean strict?"),
        ("good.json --on-missing-baseline maybe", 2, "maybe"),
        ("good.json --baselin good.json", 2, "--baseline"),
        ("good.json --config nope.toml", 2, "nope.toml"),
        ("good.json bad.json --fail-on bubble>3%", 2, "is a whole run by itself"),
        ("good.json --fail-on bubble>3% --junit no.txt", 2, "exists already"),
        ("good.json --fail-on bubble>3% --junit a/b.xml", 2, "no such directory"),
        ("good.json --fail-on bubble>3% --junit x --markdown x", 2, "to hold two things at once"),
        ("good.json --fail-on bubble>3% -o x.md --markdown x.md", 2, "to hold two things at once"),
        # 3: an input is missing, unreadable or unusable
        ("nope.json --fail-on bubble>3%", 3, "nope.json"),
        ("no.txt --fail-on bubble>3%", 3, "no.txt"),
        ("damaged.json --fail-on bubble>3%", 3, "is damaged"),
        ("good.json --baseline damaged.json", 3, "is damaged"),
        ("good.json --baseline no.txt", 3, "expected a baseline"),
        ("good.json --baseline .", 3, "cannot be read"),
        # 4: the inputs cannot decide
        ("good.json --baseline nope.json", 4, "INCONCLUSIVE: the baseline is missing"),
        ("good.json --fail-on bubble:+2pp", 4, "no baseline is named to compare with"),
        ("good.json --baseline other.json", 4, "as the runs differ in micro-batches"),
        ("few.json --baseline good.json", 4, "too few steps"),
        ("good.json --baseline few.json", 4, "1 in the baseline"),
        ("torn.json --baseline good.json", 4, "degraded (truncated)"),
        ("good.json --fail-on mfu<0.4", 4, "the MFU of the run is unknown: it takes --batch-size"),
        ("good.json --fail-on bubble>35% --fail-on bubble@stage=9>1%", 4, "of stage 9"),
    ],
)
def test_exit_codes(bubblescope, line, code, text):
    """Each verdict has its code, each trouble another one; what was found is on stdout, trouble on stderr."""
    seen = bubblescope("gate", *line.split())
    assert seen.code == code
    decided = code in {0, 1, 4}
    assert text in " ".join((seen.out if decided else seen.err).split())
    assert bool(seen.out) == decided
    assert bool(seen.err) != decided


OUTCOMES = {
    "pass": ("good.json --baseline good.json", 0),
    "fail": ("bad.json --baseline good.json", 1),
    "inconclusive": ("good.json --baseline other.json", 4),
}


@pytest.mark.parametrize("verdict", OUTCOMES)
def test_every_output_in_each_outcome(bubblescope, here, monkeypatch, verdict):
    """All files are written whatever the verdict is, and each says it in its own way."""
    line, code = OUTCOMES[verdict]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    places = {"junit": "j.xml", "markdown": "m.md", "openmetrics": "o.txt", "bencher": "b.json", "benchmark": "g.json"}
    files = [word for name, place in places.items() for word in (f"--{name}", place)]
    seen = bubblescope("gate", *line.split(), *files, "--json")
    assert seen.code == code
    made = json.loads(seen.out)
    jsonschema.validate(made, json.loads(schema("gate")))
    assert made["verdict"] == verdict
    assert (here / "m.md").read_text("utf-8").startswith(f"### bubblescope gate: {verdict.upper()}: ")
    assert (here / "summary.md").read_bytes() == (here / "m.md").read_bytes()
    XSD.validate(str(here / "j.xml"))
    suite = XSD.to_dict(str(here / "j.xml"))
    kinds = {"pass": None, "fail": "failure", "inconclusive": "error"}
    text = (here / "j.xml").read_text("utf-8")
    assert suite is not None
    assert all((f"<{kind}" in text) == (kinds[verdict] == kind) for kind in ("failure", "error"))
    assert (here / "o.txt").read_text("utf-8").endswith("# EOF\n")
    assert (
        json.loads((here / "b.json").read_bytes())["pipeline"]["bubble"]["value"] == made["run"]["metrics"][0]["value"]
    )
    assert {row["name"] for row in json.loads((here / "g.json").read_bytes())} >= {"bubble"}
    notes = [row for row in seen.err.splitlines() if row.startswith("::")]
    assert len(notes) == (0 if verdict == "pass" else 1)
    assert all(note.startswith("::error ") for note in notes)


@pytest.mark.parametrize("verdict", OUTCOMES)
@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_every_format_in_each_outcome(bubblescope, verdict, form):
    """On stdout, and the same to a file."""
    line, code = OUTCOMES[verdict]
    seen = bubblescope("gate", *line.split(), "--format", form)
    assert seen.code == code
    assert not seen.err
    again = bubblescope("gate", *line.split(), "--format", form, "-o", "out", "-q")
    assert (again.code, again.out, again.err) == (code, "", "")
    assert Path("out").read_text("utf-8") == seen.out
    if form == "csv":
        assert {row["outcome"] for row in csv.DictReader(io.StringIO(seen.out))} >= {verdict}
    if form == "table":
        last = seen.out.strip().split("\n\n")[-1]
        assert last.startswith(f"Verdict   {verdict.upper()}")
        assert ("Accept    bubblescope baseline save" in last) == (verdict != "pass")


def test_files_are_overwritten_only_if_told(bubblescope, here):
    """-f is for all of them; without it nothing is written and nothing is measured."""
    (here / "j.xml").write_text("mine", "utf-8")
    line = ["gate", "good.json", "--fail-on", "bubble>35%", "--junit", "j.xml", "--markdown", "m.md"]
    assert bubblescope(*line).code == 2
    assert (here / "j.xml").read_text("utf-8") == "mine"
    assert not (here / "m.md").exists()
    assert bubblescope(*line, "-f").code == 0
    assert (here / "j.xml").read_text("utf-8").startswith("<?xml")


def test_a_summary_that_cannot_be_written_changes_no_verdict(bubblescope, monkeypatch):
    """It is told on stderr."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "/no/such/place")
    seen = bubblescope("gate", "bad.json", "--baseline", "good.json", "--github", "always", "-q")
    assert seen.code == 1
    assert "the summary of the step could not be written" in seen.err


def test_a_full_summary_is_not_made_too_long(bubblescope, here, monkeypatch):
    """GitHub drops a summary of over 1 MiB as a whole."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "s.md"))
    (here / "s.md").write_bytes(b"x" * ((1 << 20) - 100))
    bubblescope("gate", "bad.json", "--baseline", "good.json", "--github", "always")
    assert (here / "s.md").stat().st_size <= 1 << 20
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    before = (here / "s.md").read_bytes()
    bubblescope("gate", "bad.json", "--baseline", "good.json", "--github", "never")
    assert (here / "s.md").read_bytes() == before


def test_settings_reach_the_gate(bubblescope, here, monkeypatch):
    """File, then variable, then option; the output says who asked."""
    (here / "pyproject.toml").write_text(
        '[tool.bubblescope.gate]\nbaseline = "good.json"\nfail-on = ["bubble:+20pp"]\n', "utf-8"
    )
    assert "bubble:+20pp" in bubblescope("gate", "bad.json").out
    assert bubblescope("gate", "bad.json").code == 0
    monkeypatch.setenv("BUBBLESCOPE_GATE_FAIL_ON", "bubble:+5pp")
    seen = bubblescope("gate", "bad.json")
    assert seen.code == 1
    assert "bubble:+5pp (BUBBLESCOPE_GATE_FAIL_ON)" in seen.out
    assert bubblescope("gate", "bad.json", "--fail-on", "bubble:+15pp").code == 0


def test_commands_that_are_told_have_the_options_of_the_run(bubblescope, here):
    """To look closer and to accept, as they can be pasted."""
    shutil.copytree(SAMPLES / "1f1b_p4m8", here / "my traces")
    seen = bubblescope("gate", "my traces", "--baseline", "nope.json", "--steps", "3:4", "--pp", "4", "--json")
    made = json.loads(seen.out)
    assert made["look"] == "bubblescope analyze 'my traces' --steps 3:4 --pp 4"
    assert made["accept"] == ["bubblescope baseline save 'my traces' --steps 3:4 --pp 4 -o nope.json"]


def test_missing_ranks_are_undecided(bubblescope, here):
    """One rank of four: nobody knows the bubble, so the gate does not, and there is no baseline of it."""
    shutil.copytree(SAMPLES / "1f1b_p4m8", here / "t", ignore=shutil.ignore_patterns("rank[123]*"))
    assert bubblescope("gate", "t", "--fail-on", "bubble > 10%").code == 4
    seen = bubblescope("baseline", "save", "t", "-o", "b.json")
    assert seen.code == 4
    assert "the bubble of this run is unknown (layout-assumed, missing-ranks): it cannot be a baseline" in seen.err
    assert not (here / "b.json").exists()


def test_a_baseline_is_saved_shown_and_told_apart(bubblescope, here):
    """A few kB that validate, the same bytes each time; an existing one is kept unless told otherwise."""
    sample = str(SAMPLES / "1f1b_p4m8")
    assert bubblescope("baseline", "save", sample, "-o", "b.json").code == 0
    data = (here / "b.json").read_bytes()
    assert len(data) < 8_000
    jsonschema.validate(json.loads(data), json.loads(schema("baseline")))
    assert bubblescope("baseline", "save", sample).out.encode() == data
    assert bubblescope("baseline", "save", sample, "-o", "b.json").code == 2
    seen = bubblescope("baseline", "save", sample, "-o", "b.json", "-f", "--reason", "a | b")
    assert (seen.code, seen.out) == (0, "")
    assert json.loads((here / "b.json").read_bytes())["reason"] == "a | b"
    assert "29.2%" in bubblescope("baseline", "show", "b.json").out
    assert bubblescope("baseline", "show", "nope.json").code == 3
    assert "+11.0 points" in bubblescope("baseline", "diff", "good.json", "bad.json").out
    assert bubblescope("baseline", "diff", "good.json", "nope.json").code == 3
    assert bubblescope("baseline", "dif").code == 2


def test_one_step_makes_a_baseline_with_a_warning(bubblescope):
    """Gates will not decide against it, and that is said when it is made, not when it is used."""
    seen = bubblescope("baseline", "save", str(SAMPLES / "1f1b_p4m8"), "--steps", "3")
    assert seen.code == 0
    assert "too few steps to know the noise" in seen.err


def test_a_gate_that_failed_has_failed_also_where_nobody_reads(here):
    """A closed pipe ends quietly, with the code of the verdict and with all files written."""
    line = 'read -r _ < go; exec "$0" -m bubblescope gate bad.json --baseline good.json --junit j.xml'
    script = f"mkfifo go; ({line}; ) | (exec <&-; echo > go; sleep 0.3); echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script, sys.executable], cwd=here, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
    assert "Traceback" not in done.stderr
    assert (here / "j.xml").exists()


@pytest.mark.parametrize(
    "files",
    [
        ["--junit", "k.xml", "--markdown", "./k.xml"],
        ["--junit", "link.xml", "--markdown", "k.xml"],
        ["--junit", "good.json", "-f"],
        ["--junit", "./bad.json", "-f"],
        ["-o", "good.json", "-f"],
        ["--junit", "-"],
    ],
)
def test_no_output_replaces_another_or_what_is_read(bubblescope, here, files):
    """Whatever the file is called."""
    (here / "link.xml").symlink_to(here / "k.xml")
    seen = bubblescope("gate", "bad.json", "--baseline", "good.json", *files)
    assert (seen.code, seen.out) == (2, "")


def test_what_keeps_a_gate_from_a_verdict_is_annotated(bubblescope):
    """A step that is red has something red to read."""
    seen = bubblescope("gate", "nope.json", "--fail-on", "bubble > 3%", "--github", "always")
    assert seen.code == 3
    assert seen.err.startswith("::error title=bubblescope gate::nope.json")


def test_the_verdict_is_told_where_the_page_goes_to_a_file(bubblescope):
    """In a log, with one line; -q leaves it out."""
    seen = bubblescope("gate", "bad.json", "--baseline", "good.json", "-o", "out.json")
    assert (seen.code, seen.out) == (1, "")
    assert seen.err == "Wrote out.json\nFAIL: 1 of 3 rules failed\n"


def test_traces_are_never_replaced(bubblescope, here):
    """Neither in a folder that is read nor behind a glob, whatever -f says."""
    shutil.copytree(SAMPLES / "1f1b_p4m8", here / "t")
    trace = next((here / "t").glob("*.gz"))
    before = trace.read_bytes()
    for name in ("t", "t/*.gz"):
        seen = bubblescope("gate", name, "--fail-on", "bubble > 90%", "--report", str(trace), "-f")
        assert (seen.code, seen.out) == (2, "")
    assert trace.read_bytes() == before


def test_a_summary_begins_on_a_line_of_its_own(bubblescope, here, monkeypatch):
    """Or Markdown takes its heading for text."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "s.md"))
    (here / "s.md").write_text("no end", "utf-8")
    bubblescope("gate", "bad.json", "--baseline", "good.json", "--github", "always")
    assert "\n### bubblescope gate: FAIL" in (here / "s.md").read_text("utf-8")


def test_a_switch_of_the_file_can_be_denied(bubblescope, here):
    """An option of the command wins, also where it says no."""
    (here / "bubblescope.toml").write_text("[gate]\nallow-mismatch = true\n", "utf-8")
    line = ["gate", "good.json", "--baseline", "other.json"]
    assert bubblescope(*line).code == 0
    assert bubblescope(*line, "--no-allow-mismatch").code == 4


def test_commands_take_no_name_for_an_option(bubblescope, here):
    """A baseline that is called like one, and one that would come from stdin."""
    shutil.copy(here / "good.json", here / "-b.json")
    made = json.loads(bubblescope("gate", "bad.json", "--baseline=-b.json", "--json").out)
    assert made["look"] == "bubblescope compare ./-b.json bad.json"
    assert made["accept"][0].startswith("bubblescope baseline save bad.json -o ./-b.json -f")
    assert bubblescope("gate", "bad.json", "--baseline", "-").code == 2


def test_a_baseline_without_a_bubble_says_what_gates_cannot_decide(bubblescope, here):
    """When it is made, not when it is used."""
    alone = usual(0.29, schedule="none", pp=1)
    alone = replace(alone, metrics=tuple(each for each in alone.metrics if each.metric == "step_time"))
    (here / "alone.json").write_bytes(baselines.render(alone))
    seen = bubblescope("baseline", "save", "alone.json")
    assert seen.code == 0
    assert "the run has no bubble; state other rules" in seen.err


def test_a_device_takes_several_outputs(bubblescope):
    """Who throws two of them away loses nothing."""
    line = ["gate", "good.json", "--fail-on", "bubble > 35%", "--junit", "/dev/null", "--markdown", "/dev/null"]
    assert bubblescope(*line).code == 0
