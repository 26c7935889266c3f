"""The recipes of docs/gate.md do what they say: their own lines are run, on runs that are fine, worse and too short."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import yaml

from tests.gate.services import INSTALLS, RECIPES, ROOT, environment, git, needs_tools, shell

pytestmark = needs_tools

CODES = {"fine": 0, "worse": 1, "short": 4}


def failed_cases(file: Path) -> list[str]:
    """The names of the test cases of a JUnit file that are no successes."""
    cases = ET.parse(file).getroot().iter("testcase")  # noqa: S314  our own file
    return [case.attrib["name"] for case in cases if case.find("failure") is not None or case.find("error") is not None]


def test_every_recipe_is_run():
    """Each one of the page has its test here."""
    tests = Path(__file__).read_text("utf-8")
    assert len(RECIPES) == 9
    assert all(f'RECIPES["{name}"]' in tests for name in RECIPES)


@pytest.mark.parametrize("name", CODES)
def test_github_action(github, clone, name):
    """The step ends as the gate does, tells others how, and what is uploaded is there however it ended."""
    runner = github(name)
    ran = runner.workflow(RECIPES["github-action"])
    assert ran.code == CODES[name], ran.err
    verdict = {"fine": "pass", "worse": "fail", "short": "inconclusive"}[name]
    assert (ran.outputs["verdict"], ran.outputs["exit-code"]) == (verdict, str(CODES[name]))
    assert json.loads(Path(ran.outputs["report"]).read_text("utf-8"))["verdict"] == verdict
    assert ran.taken["actions/upload-artifact"] == ("gate.xml", "traces")
    assert bool(failed_cases(clone / "gate.xml")) == (name != "fine")
    assert verdict.upper() in runner.summary.read_text("utf-8")
    assert f"Verdict   {verdict.upper()}" in ran.out


@pytest.mark.parametrize("name", CODES)
def test_github_without_the_action(github, clone, name):
    """The same by the command alone."""
    runner = github(name)
    ran = runner.workflow(RECIPES["github"])
    assert ran.code == CODES[name], ran.err
    assert bool(failed_cases(clone / "gate.xml")) == (name != "fine")
    assert runner.summary.stat().st_size
    assert ran.err.count("::error ") == (name != "fine")


@pytest.mark.parametrize("name", CODES)
def test_gitlab(clone, machine, name):
    """The job's script, and the reports that GitLab looks for."""
    ((title, job),) = yaml.safe_load(RECIPES["gitlab"]).items()
    assert title == "bubble"
    assert set(job["before_script"]) == INSTALLS
    ran = shell(["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])], clone, machine(name, GITLAB_CI="true"))
    assert ran.code == CODES[name], ran.err
    reports = {kind: clone / file for kind, file in job["artifacts"]["reports"].items()}
    assert bool(failed_cases(reports["junit"])) == (name != "fine")
    assert reports["metrics"].read_text("utf-8").endswith("# EOF\n")
    assert "::error" not in ran.err


def jenkins(clone: Path, env: dict[str, str]) -> str:
    """How a build of the Jenkinsfile ends: its `sh` lines are run, and the branches behind the gate followed."""
    text = RECIPES["jenkins"]
    for line in re.findall(r"^ *sh '([^']*)'$", text, re.MULTILINE):
        if shell(["sh", "-xec", line], clone, env).code:
            return "FAILURE"
    (line,) = re.findall(r"returnStatus: true, script: '([^']*)'", text)
    code = shell(["sh", "-xec", line], clone, env).code
    branch = re.search(r"if \(code == (\d+)\) \{\s*unstable .*?\} else if \(code != 0\) \{\s*error ", text, re.DOTALL)
    assert branch
    return {0: "SUCCESS", int(branch[1]): "UNSTABLE"}.get(code, "FAILURE")


def test_jenkins(clone, machine):
    """Builds after each other in one workspace: each is about its own traces, and leaves its own test report."""
    assert re.search(r"junit testResults: '([^']*)'", RECIPES["jenkins"])[1] == "gate.xml"
    for name, result in {"worse": "FAILURE", "fine": "SUCCESS", "short": "UNSTABLE"}.items():
        assert jenkins(clone, machine(name)) == result
        assert bool(failed_cases(clone / "gate.xml")) == (name != "fine")


@pytest.mark.parametrize("name", CODES)
def test_script(clone, machine, recorded, name):
    """The exit code is that of the gate, and what it means is said in words."""
    shutil.copytree(recorded / name, clone / "traces")
    (clone / "hook").write_text(RECIPES["script"], "utf-8")
    ran = shell(["sh", "hook"], clone, machine(name))
    assert ran.code == CODES[name], ran.err
    said = {"fine": "", "worse": "idles more", "short": "could not decide"}[name]
    assert said in ran.err
    assert ("Not merged" in ran.err) == bool(said)
    assert {"fine": "PASS", "worse": "\nAccept ", "short": "\nRemarks\n"}[name] in ran.out


def test_script_without_traces(clone, machine):
    """What was not gated is neither fine nor a regression."""
    ran = shell(["sh", "-c", RECIPES["script"]], clone, machine("fine"))
    assert ran.code == 3
    assert "nothing was gated (exit code 3)" in ran.err


def test_script_as_a_hook(clone, repository, machine, recorded):
    """Git refuses to push what the gate refuses, and pushes what it lets pass."""
    hook = clone / ".git" / "hooks" / "pre-push"
    hook.write_text(RECIPES["script"], "utf-8")
    hook.chmod(0o755)
    git(clone, "checkout", "-q", "-b", "change")
    for name, pushed in {"worse": False, "fine": True}.items():
        shutil.rmtree(clone / "traces", ignore_errors=True)
        shutil.copytree(recorded / name, clone / "traces")
        assert (shell(["git", "push", "-q", "origin", "change"], clone, machine(name)).code == 0) == pushed
        assert bool(git(repository, "branch", "--list", "change")) == pushed


def test_first_baseline(clone, machine):
    """The lines for the beginning make a commit with a baseline that the next run passes."""
    git(clone, "rm", "-q", "bubble.json")
    git(clone, "commit", "-q", "-m", "none yet")
    ran = shell(["sh", "-ec", RECIPES["first"]], clone, machine("worse"))
    assert ran.code == 0, ran.err
    assert git(clone, "show", "--stat", "--format=%s", "HEAD").startswith("Add the baseline of the bubble\n")
    assert shell(["sh", "-c", RECIPES["script"]], clone, machine("worse")).code == 0


def test_accepting(clone, machine):
    """The lines commit the new baseline with its reason, show the change, and the next gate passes."""
    env = machine("worse")
    assert shell(["sh", "-c", "./record.sh traces"], clone, env).code == 0
    assert shell(["sh", "-c", RECIPES["script"]], clone, env).code == 1
    ran = shell(["bash", "-ec", RECIPES["accept"]], clone, env)
    assert ran.code == 0, ran.err
    assert re.search(r"^ *bubble +\d", ran.out, re.MULTILINE)
    assert git(clone, "show", "--format=", "--name-only", "HEAD") == "bubble.json\n"
    assert json.loads((clone / "bubble.json").read_text("utf-8"))["reason"] == "longer sequences"
    assert shell(["sh", "-c", RECIPES["script"]], clone, env).code == 0


def program(place: Path, name: str, text: str) -> str:
    """A PATH with a program of that name before all others."""
    place.mkdir()
    (place / name).write_text(text, "utf-8")
    (place / name).chmod(0o755)
    return f"{place}:{environment(place)['PATH']}"


@pytest.mark.parametrize("name", CODES)
def test_bencher(clone, machine, recorded, tmp_path, name):
    """Bencher is handed its format whatever the verdict, which decides in the end all the same."""
    shutil.copytree(recorded / name, clone / "traces")
    env = machine(name)
    env["PATH"] = program(tmp_path / "bin", "bencher", '#!/bin/sh\nprintf "%s\\n" "$@" > bencher.args\n')
    ran = shell(["sh", "-ec", RECIPES["bencher"]], clone, env)
    assert ran.code == CODES[name], ran.err
    words = (clone / "bencher.args").read_text("utf-8").splitlines()
    assert words[0] == "run"
    assert words[words.index("--adapter") + 1] == "json"
    measures = json.loads((clone / words[words.index("--file") + 1]).read_text("utf-8"))
    assert all(isinstance(each["value"], int | float) for of in measures.values() for each in of.values())


@pytest.mark.parametrize("name", CODES)
def test_github_action_benchmark(github, clone, name):
    """So is github-action-benchmark, by a job that runs on the main branch only."""
    document = yaml.safe_load(RECIPES["github-benchmark"])
    assert document[True] == {"push": {"branches": ["main"]}}, "YAML 1.1 reads `on` as true"
    ran = github(name).workflow(RECIPES["github-benchmark"])
    assert ran.code == CODES[name], ran.err
    (file,) = ran.taken["benchmark-action/github-action-benchmark"]
    entries = json.loads((clone / file).read_text("utf-8"))
    assert all({"name", "unit", "value"} <= set(entry) for entry in entries)
    assert "tool: customSmallerIsBetter\n" in RECIPES["github-benchmark"]


def test_a_gate_that_fails_on_purpose(clone, machine, recorded):
    """The rule that the page gives for it fails for every run."""
    page = (ROOT / "docs" / "gate.md").read_text("utf-8")
    (option,) = re.findall(r"on purpose, with `([^`]*)`", page)
    shutil.copytree(recorded / "fine", clone / "traces")
    ran = shell(["sh", "-c", f"bubblescope gate traces {option}"], clone, machine("fine"))
    assert ran.code == 1
