"""The action: its file keeps rules, its inputs arrive as they were written, and nothing in them is run."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
import yaml

from bubblescope.model.settings import KEYS
from tests.gate.services import ACTION, ROOT, environment, needs_tools, shell

pytestmark = needs_tools

STEPS = {step["id"]: step for step in ACTION["runs"]["steps"]}
SCRIPTS = {name: (ROOT / "ci" / f"{name}.sh").read_text("utf-8") for name in ("install", "gate")}
HOSTILE = """$(touch pwned) `touch pwned` "; touch pwned; "' ; touch pwned ; ' && touch pwned #
$(touch pwned)
-o
--report=pwned
pwned"""
"""Each line is an attack; as a whole it is the name of a file."""


def test_everything_is_described():
    """Every input and output says what it is; what has to be there is only the traces."""
    assert ACTION["runs"]["using"] == "composite"
    for about in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert len(about["description"]) > 20
        assert about["description"].endswith(".")
    assert [name for name, about in ACTION["inputs"].items() if about.get("required")] == ["traces"]
    assert all("default" in about or about.get("required") for about in ACTION["inputs"].values())
    assert all(isinstance(name, str) for name in ACTION["inputs"]), "YAML 1.1 reads `off` as false"


def test_nothing_is_put_into_a_script():
    """An input within `run:` would be code; all go through the environment, by names that no setting has."""
    for step in STEPS.values():
        assert "${{" not in step["run"]
        assert all(re.fullmatch(r"GATE_[A-Z_]+", name) for name in step["env"])
        assert all(re.fullmatch(r"\$\{\{ [\w.-]+ \}\}", text) for text in step["env"].values())


def test_every_input_is_used():
    """Each is handed to a step, each script reads what it is handed, and nothing else."""
    text = yaml.safe_dump(ACTION["runs"])
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    for name, script in SCRIPTS.items():
        assert set(re.findall(r"\$\{(GATE_[A-Z_]+)", script)) == set(STEPS[name]["env"])


def test_every_setting_is_an_input():
    """By the same name."""
    assert set(KEYS) <= set(ACTION["inputs"])


def test_the_readme_shows_inputs_that_exist():
    """The few lines of the README are an action's step."""
    (block,) = re.findall(
        r"```yaml\n(- uses: OWNER/bubblescope@.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )
    (step,) = yaml.safe_load(block)
    assert {"traces", "baseline"} <= set(step["with"]) <= set(ACTION["inputs"])


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_strict(name):
    """They stop at what they do not expect."""
    assert "\nset -euo pipefail\n" in SCRIPTS[name]
    assert shell(["bash", "-n", str(ROOT / "ci" / f"{name}.sh")], ROOT, environment(ROOT)).code == 0


@pytest.fixture
def action(github, clone, recorded):
    """The action on a machine that has the traces of that run in `traces`."""

    def call(run: str, **given: object):
        shutil.copytree(recorded / run, clone / "traces", dirs_exist_ok=True)
        return github(run).action(**{name.replace("_", "-"): value for name, value in given.items()})

    return call


def report(ran) -> dict:
    """What the action wrote."""
    return json.loads(Path(ran.outputs["report"]).read_text("utf-8"))


def test_rules_arrive(action):
    """One a line, with space around them and ends of lines as some editors leave them."""
    rules = "bubble > 1%\r\n\n  bubble@stage=1 > 90%  \n"
    ran = action("fine", traces="traces\n", fail_on=rules, warn_on="imbalance > 1.0", args="--steps=2:3\n--pp=2\n")
    found = report(ran)
    assert [(check["rule"], check["level"], check["origin"]) for check in found["checks"]] == [
        ("bubble > 1%", "error", "--fail-on"),
        ("bubble@stage=1 > 90%", "error", "--fail-on"),
        ("imbalance > 1", "warn", "--warn-on"),
    ]
    assert found["run"]["fingerprint"]["steps"] == 2
    assert ran.code == 1


def test_files_and_presets_arrive(action, clone):
    """Both files are written, over old ones too."""
    (clone / "gate.xml").write_text("old", "utf-8")
    given = {"preset": "strict", "off": "step_time\nimbalance", "junit": "gate.xml", "markdown": "gate.md"}
    ran = action("fine", traces="traces", baseline="bubble.json\n", **given)
    assert (ran.code, ran.outputs["verdict"], ran.outputs["exit-code"]) == (0, "pass", "0")
    levels = {check["rule"]: check["level"] for check in report(ran)["checks"]}
    assert levels["bubble:+1pp"] == "error"
    assert levels["step_time:+5%"] == levels["imbalance:+5%"] == "off"
    assert (clone / "gate.md").read_text("utf-8").startswith("### bubblescope gate: PASS")
    assert (clone / "gate.xml").read_text("utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("policy", "code", "verdict"), [("", 4, "inconclusive"), ("warn", 0, "pass"), ("pass", 0, "pass")]
)
def test_a_missing_baseline(action, policy, code, verdict):
    """As the input says."""
    ran = action("fine", traces="traces", baseline="none.json", on_missing_baseline=policy)
    assert (ran.code, ran.outputs["verdict"]) == (code, verdict)


@pytest.mark.parametrize("strict", [False, "False"])
def test_undecided_may_pass(action, strict):
    """The step then passes, and still says what it found; a regression never passes."""
    ran = action("short", traces="traces", baseline="bubble.json", fail_on_inconclusive=strict)
    assert (ran.code, ran.outputs["verdict"], ran.outputs["exit-code"]) == (0, "inconclusive", "4")
    assert action("worse", traces="traces", baseline="bubble.json", fail_on_inconclusive=strict).code == 1


def test_switches(action):
    """`true` compares what is not alike; what is no switch is refused, and not taken for false."""
    given = {"traces": "traces", "baseline": "bubble.json", "args": "--virtual=2\n--schedule=interleaved-1f1b"}
    assert action("fine", **given).outputs["exit-code"] == "4"
    assert action("fine", **given, allow_mismatch=True).outputs["exit-code"] in {"0", "1"}
    ran = action("fine", traces="traces", allow_degraded="yes")
    assert (ran.code, ran.outputs["verdict"]) == (2, "")
    assert "allow-degraded must be true or false, found yes" in ran.err


def test_settings_of_the_job_hold(github, clone, recorded):
    """An input that is not given does not hide what the environment or a file says."""
    shutil.copytree(recorded / "fine", clone / "traces")
    (clone / "bubblescope.toml").write_text('[gate]\nwarn-on = ["imbalance > 1.0"]\n', "utf-8")
    runner = github("fine")
    runner.variables["BUBBLESCOPE_GATE_FAIL_ON"] = "bubble > 1%"
    found = report(runner.action(traces="traces"))
    assert [(check["rule"], check["level"]) for check in found["checks"]] == [
        ("bubble > 1%", "error"),
        ("imbalance > 1", "warn"),
    ]


def test_paths_with_anything_in_them(action, clone, recorded):
    """Space, quotes, dollars and a dash at the front are parts of names; each line is one, and may be a glob."""
    odd = "-my $HOME 'traces' \"x\" (1)"
    (clone / odd).mkdir()
    files = sorted((recorded / "fine").iterdir())
    for file, name in zip(files, ("rank 0;.json.gz", "b*.json.gz"), strict=True):
        shutil.copy(file, clone / odd / name)
    shutil.copy(clone / "bubble.json", clone / "base line's.json")
    given = {"baseline": "base line's.json", "junit": f"{odd}/gate.xml", "markdown": "a\nb.md"}
    ran = action("short", traces=f"{odd}/rank 0;.json.gz\n{odd}/b[*].json.gz\n", **given)
    assert ran.code == 0, ran.err
    assert report(ran)["inputs"] == [f"{odd}/rank 0;.json.gz", f"{odd}/b[*].json.gz"]
    assert (clone / odd / "gate.xml").exists()
    assert (clone / "a\nb.md").exists()


def test_another_directory(action, clone):
    """Paths and settings start in the working directory."""
    (clone / "part").mkdir()
    (clone / "part" / "bubblescope.toml").write_text('[gate]\nbaseline = "../bubble.json"\n', "utf-8")
    ran = action("worse", traces="../traces", working_directory="part", junit="gate.xml")
    assert ran.code == 1, ran.err
    assert (clone / "part" / "gate.xml").exists()


@pytest.mark.parametrize("given", [{"args": "--help"}, {"traces": " \n"}, {"traces": "nothing*"}, {"preset": "loose"}])
def test_nothing_gated_is_not_green(action, given):
    """Neither is it red as a regression is: no verdict, and a code of its own."""
    ran = action("fine", **{"traces": "traces", "baseline": "bubble.json"} | given)
    assert ran.code in {2, 3}
    assert ran.outputs == {"verdict": "", "report": "", "exit-code": str(ran.code)}


@pytest.mark.parametrize(("code", "ends"), [(0, 2), (1, 2), (4, 4), (70, 70), (127, 127)])
def test_a_program_that_breaks_is_no_verdict(github, tmp_path, code, ends):
    """Without a report there is none, whatever the exit code: a Python that cannot start ends with 1, too."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "bubblescope").write_text(f"#!/bin/sh\nexit {code}\n", "utf-8")
    (tmp_path / "bin" / "bubblescope").chmod(0o755)
    runner = github("fine")
    runner.variables["PATH"] = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    ran = runner.action(**{"traces": "traces", "fail-on-inconclusive": False})
    assert (ran.code, ran.outputs["verdict"], ran.outputs["report"]) == (ends, "", "")


@pytest.mark.parametrize("name", sorted({*ACTION["inputs"]} - {"working-directory", "python", "version"}))
def test_hostile_inputs_are_data(action, clone, name):
    """Whichever input holds it, nothing of it is run or taken for an option; at most a file gets a silly name."""
    given = {"traces": "traces", "baseline": "bubble.json"} | {name: HOSTILE}
    ran = action("fine", **given)
    assert not (clone / "pwned").exists()
    assert not any(path.name == "pwned" for path in clone.parent.rglob("*"))
    wrote = name in {"junit", "markdown"}
    assert (clone / HOSTILE).exists() == wrote
    assert ran.code == (0 if wrote else 4 if name == "baseline" else 3 if name in {"traces", "args"} else 2), ran.err


STUB = """#!/bin/sh
printf '%s\\n' "$@" >> "$LOG"
[ "$1" = -I ] || exit 3
if [ "$3" = venv ]; then mkdir -p "$4/bin" && cp "$0" "$4/bin/python"; fi
if [ "$3" = "$BREAKS" ]; then exit 1; fi
"""


@pytest.fixture
def install(tmp_path):
    """Runs ci/install.sh with a python that only writes down what it is asked for."""

    def call(version: str = "", breaks: str = ""):
        python = tmp_path / "a python"
        python.write_text(STUB, "utf-8")
        python.chmod(0o755)
        (tmp_path / "temp dir").mkdir()
        places = {"LOG": tmp_path / "log", "GITHUB_OUTPUT": tmp_path / "told", "RUNNER_TEMP": tmp_path / "temp dir"}
        variables = {"GITHUB_ACTION_PATH": "/some where", "GATE_VERSION": version, "BREAKS": breaks}
        env = environment(tmp_path, **variables, GATE_PYTHON=str(python), **{k: str(v) for k, v in places.items()})
        ran = shell(["bash", str(ROOT / "ci" / "install.sh")], tmp_path, env)
        said = [(tmp_path / name).read_text("utf-8") if (tmp_path / name).exists() else "" for name in ("log", "told")]
        return ran, *said

    return call


@pytest.mark.parametrize(("version", "what"), [("", "/some where"), ("0.1.0", "bubblescope==0.1.0")])
def test_installing(install, tmp_path, version, what):
    """From the checkout of the action, or from the index; the next step is told where the command is."""
    ran, log, told = install(version)
    assert ran.code == 0, ran.err
    assert log.splitlines()[-1] == what
    assert re.fullmatch(rf"command={re.escape(str(tmp_path))}/temp dir/bubblescope\.\w+/bin/bubblescope\n", told)


@pytest.mark.parametrize("version", [HOSTILE, "0.1 --index-url=https://example.com", "@ https://example.com/x"])
def test_hostile_versions_are_refused(install, tmp_path, version):
    """A version is digits, letters and dots."""
    ran, log, told = install(version)
    assert (ran.code, log, told) == (2, "", "")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("breaks", ["venv", "pip"])
def test_an_install_that_fails_is_no_regression(install, breaks):
    """Only a rule ends with 1."""
    ran, _, told = install(breaks=breaks)
    assert (ran.code, told) == (2, "")
    assert "::error title=Nothing was gated::" in ran.out


@pytest.mark.parametrize("variable", ["RUNNER_TEMP", "GITHUB_OUTPUT"])
def test_a_broken_runner_is_no_failed_rule(tmp_path, variable):
    """Whatever is missing, neither script ends with 1."""
    places = {"GITHUB_ACTION_PATH": ROOT, "RUNNER_TEMP": tmp_path, "GITHUB_OUTPUT": tmp_path / "o"}
    env = environment(tmp_path, **{name: str(place) for name, place in places.items()})
    for broken in ({**env, variable: "/nonexistent/x"}, {name: text for name, text in env.items() if name != variable}):
        for script in ("install", "gate"):
            asked = {"GATE_PYTHON": "/bin/false", "GATE_TRACES": "nope", "GATE_FAIL_ON": "bubble > 1%"}
            assert shell(["bash", str(ROOT / "ci" / f"{script}.sh")], tmp_path, {**broken, **asked}).code in {2, 3}
