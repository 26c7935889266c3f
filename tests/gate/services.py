"""What CI services do with the recipes of docs/gate.md and with action.yml: the same lines, in the same shells.

Left out, by name, is what needs a network: the lines of `INSTALLS`, the step `install` of the action, and the actions
of others, which are looked after as far as what they are handed goes. Anything unknown is an error.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

__all__ = ["ACTION", "INSTALLS", "RECIPES", "ROOT", "GitHub", "Ran", "environment", "git", "needs_tools", "shell"]

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
RECIPES: dict[str, str] = dict(
    re.findall(
        r"<!-- recipe: ([\w-]+) -->\n```\w+\n(.*?)```\n", (ROOT / "docs" / "gate.md").read_text("utf-8"), re.DOTALL
    )
)
INSTALLS = {"pip install bubblescope"}
LACKING = [name for name in ("bash", "git") if shutil.which(name) is None]

needs_tools = pytest.mark.skipif(bool(LACKING), reason=f"recipes need {' and '.join(LACKING)}, which are not there")


@dataclass(frozen=True)
class Ran:
    """How something ended; `outputs` of an action, and what it left for others, by the name of who took it."""

    code: int
    out: str
    err: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    taken: Mapping[str, Sequence[str]] = field(default_factory=dict)


def environment(home: Path, **more: str) -> dict[str, str]:
    """That of a fresh machine, with the bubblescope that is tested on its PATH, and nothing of who runs the tests."""
    return {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        **more,
    }


def shell(words: Sequence[str], cwd: Path, env: Mapping[str, str]) -> Ran:
    """Run a command to its end."""
    done = subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def git(place: Path, *words: str) -> str:
    """What git says; the commits are nobody's, and no settings or variables of who runs the tests have a say."""
    who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "init.defaultBranch=main"]
    ran = shell(["git", *who, *words], place, environment(place.parent))
    assert ran.code == 0, ran.err
    return ran.out


def filled(text: str, known: Mapping[str, str]) -> str:
    """The text with its expressions replaced, as GitHub does before anything runs; what a step did not say is empty."""

    def value(match: re.Match[str]) -> str:
        return known.get(match[1], "") if match[1].startswith("steps.") else known[match[1]]

    return re.sub(r"\$\{\{\s*([\w.-]+)\s*\}\}", value, text)


class GitHub:
    """A runner: one checked out repository, and the places that its jobs write to."""

    def __init__(self, clone: Path, place: Path, **variables: str) -> None:
        self.clone = clone
        self.temporary = place / "runner temp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.summary = place / "summary.md"
        self.variables = {
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_WORKSPACE": str(clone),
            "RUNNER_TEMP": str(self.temporary),
            **variables,
        }

    def workflow(self, text: str) -> Ran:
        """Run the only job of a workflow: behind a failure only steps that ask for it."""
        (job,) = yaml.safe_load(text)["jobs"].values()
        ran, taken = [Ran(0, "", "")], {}
        for step in job["steps"]:
            assert step.get("if") in {None, "${{ !cancelled() }}"}
            if any(each.code for each in ran) and "if" not in step:
                continue
            name = step.get("uses", "").partition("@")[0]
            if "run" in step:
                ran.append(self._line(step["run"]))
            elif name == "OWNER/bubblescope":
                ran.append(self.action(**step["with"]))
            else:
                taken[name] = self._handed(name, step.get("with", {}))
        code = next((each.code for each in ran if each.code), 0)
        return Ran(code, "".join(each.out for each in ran), "".join(each.err for each in ran), ran[-1].outputs, taken)

    def _line(self, script: str) -> Ran:
        if script.strip() in INSTALLS:
            return Ran(0, "", "")
        return self._bash(script, ("-e",), self.clone, {})[0]

    def _handed(self, name: str, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """The files that an action of others is handed; each has to be there."""
        paths = {
            "actions/checkout": (),
            "actions/upload-artifact": inputs.get("path", "").split(),
            "benchmark-action/github-action-benchmark": [inputs.get("output-file-path", "")],
        }[name]
        assert all((self.clone / path).exists() for path in paths)
        return tuple(paths)

    def action(self, **given: Any) -> Ran:
        """Run the steps of action.yml, but for the one that installs."""
        assert set(given) <= set(ACTION["inputs"]), "an input that is not declared"
        known = {f"inputs.{name}": str(about.get("default", "")) for name, about in ACTION["inputs"].items()}
        for name, value in given.items():
            known[f"inputs.{name}"] = value if isinstance(value, str) else json.dumps(value)
        ran = Ran(0, "", "")
        for step in ACTION["runs"]["steps"]:
            if ran.code or step["id"] == "install":
                continue
            env = {name: filled(text, known) for name, text in step["env"].items()}
            cwd = self.clone / filled(step.get("working-directory", "."), known)
            assert step["shell"] == "bash"
            ran, said = self._bash(step["run"], ("--noprofile", "--norc", "-eo", "pipefail"), cwd, env)
            known |= {f"steps.{step['id']}.outputs.{name}": value for name, value in said.items()}
        outputs = {name: filled(about["value"], known) for name, about in ACTION["outputs"].items()}
        return Ran(ran.code, ran.out, ran.err, outputs)

    def _bash(
        self, script: str, options: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> tuple[Ran, dict[str, str]]:
        """Run a script as the runner does, from a file, and read what it told by GITHUB_OUTPUT."""
        file, told = self.temporary / "step.sh", self.temporary / "outputs"
        file.write_text(script, "utf-8")
        told.write_text("", "utf-8")
        variables = environment(self.temporary, **self.variables, GITHUB_OUTPUT=str(told), **env)
        ran = shell(["bash", *options, str(file)], cwd, variables)
        return ran, dict(line.split("=", 1) for line in told.read_text("utf-8").splitlines())
