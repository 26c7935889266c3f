"""`bubblescope config show` says what holds and who said so, and lets no name act."""

from __future__ import annotations

import csv
import io
import json
import os
import sys
from types import SimpleNamespace

import click
import pytest

from bubblescope.cli.config import resolved, stated
from bubblescope.model.settings import KEYS

TEXT = '[tool.bubblescope.gate]\nbaseline = "base.json"\nfail-on = ["bubble:+2pp", "gap > 3%"]\noff = []\n'
HOSTILE = '[gate]\nbaseline = """::error::x|<b>\n::error::y ##[error]z\\u001b[1m"""\nfail-on = [\'bubble > 1%\']\n'


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The working directory: the root of a repository, without variables of the gate."""
    for key in KEYS:
        monkeypatch.delenv(f"BUBBLESCOPE_GATE_{key.upper().replace('-', '_')}", raising=False)
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_table(place, bubblescope, monkeypatch):
    """Every key has a line with its value and origin, a list a line for each text."""
    (place / "pyproject.toml").write_text(TEXT)
    monkeypatch.setenv("BUBBLESCOPE_GATE_ALLOW_MISMATCH", "yes")
    seen = bubblescope("config", "show")
    assert (seen.code, seen.err) == (0, "")
    headline, *rows = [line.split() for line in seen.out.splitlines() if line]
    assert headline == ["Settings", "are", "read", "from", "pyproject.toml."]
    assert rows[1:] == [
        ["key", "value", "from"],
        ["baseline", "base.json", "pyproject.toml"],
        ["preset", "–", "default"],  # noqa: RUF001  what stands for nothing
        ["fail-on", "bubble:+2pp", "pyproject.toml"],
        ["gap", ">", "3%"],
        ["warn-on", "–", "default"],  # noqa: RUF001
        ["off", "[]", "pyproject.toml"],
        ["on-missing-baseline", "fail", "default"],
        ["allow-mismatch", "true", "BUBBLESCOPE_GATE_ALLOW_MISMATCH"],
        ["allow-degraded", "false", "default"],
        ["Rules", "that", "hold", "with", "these", "settings"],
        ["rule", "level", "from"],
        ["bubble:+2pp", "error", "pyproject.toml"],
        ["gap", ">", "3%", "error", "pyproject.toml"],
    ]


def test_no_file(place, bubblescope, monkeypatch):
    """Where none is found it says where it looked."""
    (place / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(place / "a" / "b")
    seen = bubblescope("config", "show")
    assert seen.code == 0
    assert seen.out.startswith("No file sets anything: ")
    assert "Looked in  ., .., ../..\n" in seen.out
    assert seen.out.count("  default\n") == len(KEYS)
    assert "No rule holds with these settings" in seen.out


def test_json(place, bubblescope):
    """The values keep their types, and each has its origin."""
    (place / "gate.toml").write_text(TEXT.replace("tool.bubblescope.", ""))
    seen = bubblescope("config", "show", "--json", "--config", "gate.toml")
    found = json.loads(seen.out)
    assert (found["schema"], found["file"], found["looked"]) == ("bubblescope.config/1", "gate.toml", [])
    assert list(found["settings"]) == list(KEYS)
    assert found["settings"]["fail-on"] == {"value": ["bubble:+2pp", "gap > 3%"], "origin": "gate.toml"}
    assert found["settings"]["off"] == {"value": [], "origin": "gate.toml"}
    assert found["settings"]["preset"] == {"value": None, "origin": "default"}
    assert found["settings"]["baseline"]["value"] == "base.json"
    assert found["settings"]["allow-mismatch"]["value"] is False


def test_csv(place, bubblescope):
    """A row for each value: one for each text of a list, and one without a value where there is none."""
    (place / "pyproject.toml").write_text(TEXT)
    rows = list(csv.reader(io.StringIO(bubblescope("config", "show", "--format", "csv").out)))
    assert rows[:4] == [
        ["key", "value", "origin"],
        ["baseline", "base.json", "pyproject.toml"],
        ["preset", "", "default"],
        ["fail-on", "bubble:+2pp", "pyproject.toml"],
    ]
    assert ["off", "", "pyproject.toml"] in rows
    assert ["allow-mismatch", "false", "default"] in rows


def test_output_file(place, bubblescope):
    """-o writes a file in the format of its suffix."""
    seen = bubblescope("config", "show", "-o", "out.md")
    assert (seen.code, seen.out) == (0, "")
    assert "| on-missing-baseline | fail | default |" in (place / "out.md").read_text("utf-8")


@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_hostile_values_are_shown(place, bubblescope, form):
    """No text of a file commands a terminal, a CI system, Markdown or a spreadsheet."""
    (place / "bubblescope.toml").write_text(HOSTILE)
    seen = bubblescope("config", "show", "--format", form)
    assert seen.code == 0
    assert "\x1b" not in seen.out
    assert "##[" not in seen.out
    assert not any(line.lstrip().startswith("::") for line in seen.out.splitlines())
    assert form != "markdown" or "<b>" not in seen.out
    assert form != "json" or json.loads(seen.out)["rules"] == [
        {"rule": "bubble > 1%", "level": "error", "origin": "bubblescope.toml"}
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('fail-on = ["bubbel > 1%"]', "bubblescope.toml: no number is called 'bubbel'"),
        ('preset = "strickt"', "no preset is called 'strickt'"),
        ('preset = "default"\noff = ["step_tim"]', "no number is called 'step_tim'"),
    ],
)
def test_what_a_gate_would_refuse_is_refused(place, bubblescope, text, message):
    """So that a pull request that changes the settings can check them without traces."""
    (place / "bubblescope.toml").write_text(f"[gate]\n{text}\n")
    seen = bubblescope("config", "show")
    assert seen.code == 2
    assert message in seen.err


def test_rules_of_a_preset_are_listed(place, bubblescope):
    """As if it were stated; what is off is there, too."""
    (place / "bubblescope.toml").write_text("[gate]\noff = ['step_time']\n")
    seen = bubblescope("config", "show", "--preset", "default")
    assert [line.split() for line in seen.out.splitlines()[-3:]] == [
        ["bubble:+2pp", "error", "preset", "default"],
        ["imbalance:+5%", "warn", "preset", "default"],
        ["step_time:+5%", "off", "preset", "default"],
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="names are text there")
@pytest.mark.parametrize("form", ["table", "markdown", "csv", "json"])
def test_a_name_that_is_no_text(place, bubblescope, form):
    """A file whose name is not UTF-8 is read and named all the same."""
    name = os.fsdecode(b"gate\xff.toml")
    (place / name).write_text("[gate]\nbaseline = 'x'\n")
    seen = bubblescope("config", "show", "--format", form, "--config", name)
    assert seen.code == 0
    assert "gate" in seen.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["config", "show", "--config", "nope.toml"], "error: cannot read nope.toml: "),
        (["config", "show", "--config", ""], "error: --config takes the name of a file, found an empty one"),
        (["config", "show", "--config", "."], "error: cannot read .: "),
        (["config", "shwo"], "hint: did you mean bubblescope config show?"),
        (["config", "zzz"], "hint: see bubblescope config --help"),
        (["config"], "Usage: bubblescope config "),
        (["config", "show", "extra"], "unexpected extra argument"),
    ],
)
def test_wrong_usage(place, bubblescope, arguments, message):
    """Each is an error of usage, and says what to do; stdout stays empty."""
    assert place.is_dir()
    seen = bubblescope(*arguments)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err


def test_a_wrong_file_is_wrong_usage(place, bubblescope):
    """An unknown key ends with 2 and the key that is meant."""
    (place / "pyproject.toml").write_text("[tool.bubblescope.gate]\nfail_on = 'x'\n")
    seen = bubblescope("config", "show")
    assert (seen.code, seen.out) == (2, "")
    assert seen.err.splitlines() == [
        "error: pyproject.toml has an unknown key 'fail_on' in [tool.bubblescope.gate]",
        "hint: did you mean fail-on?",
    ]


def test_a_directory_that_is_gone(place, bubblescope, monkeypatch):
    """It is an error that says so, and no bug."""
    gone = place / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    seen = bubblescope("config", "show")
    monkeypatch.chdir(place)
    assert (seen.code, "the working directory is gone" in seen.err) == (2, True)


def test_only_what_the_command_line_says_is_stated(place):
    """An option that nobody typed hides nothing of the file, whatever its default."""
    (place / "bubblescope.toml").write_text("[gate]\nallow-mismatch = true\nfail-on = 'x'\n")
    kept = SimpleNamespace()

    @click.command()
    @click.option("--fail-on", multiple=True)
    @click.option("--warn-on", multiple=True)
    @click.option("--allow-mismatch", is_flag=True)
    @click.option("--other")
    @click.pass_context
    def gate(context, **_given):
        kept.settings = resolved(stated(context), None)

    gate.main(["--warn-on", "w", "--other", "o"], standalone_mode=False)
    settings = kept.settings
    assert (settings.fail_on.value, settings.fail_on.origin) == (("x",), "bubblescope.toml")
    assert (settings.warn_on.value, settings.warn_on.origin) == (("w",), "--warn-on")
    assert settings.allow_mismatch.value is True
