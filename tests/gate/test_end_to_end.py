"""From the first baseline to an accepted regression, by the commands and lines that a user types and sees."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bubblescope.emit import Job, StageWork, write
from tests.gate.services import Ran, environment, git, needs_tools, shell

pytestmark = needs_tools

JOB = Job(schedule="1f1b", p=4, m=8, steps=6, jitter=0.01, p2p_ns=200_000, kernels=2, seed=1)
HEAVY = StageWork(14_000_000, 28_000_000, 14_000_000)
EVEN = StageWork(10_000_000, 20_000_000, 10_000_000)
REGRESSIONS = {
    "host": (replace(JOB, host_gap_ns=1_500_000, seed=2), "gaps of the host"),
    "imbalance": (replace(JOB, stage_times=(EVEN, EVEN, HEAVY, EVEN), seed=3), "uneven stages"),
}
SETTINGS = """[tool.bubblescope.gate]
baseline = "ci/bubble.json"
fail-on = ["bubble:+2pp", "bubble@stage=any > 60%"]
warn-on = "step_time:+5%"
"""


class Project:
    """A repository of somebody who trains."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (place / "ci").mkdir(parents=True)
        (place / ".gitignore").write_text("traces/\n", "utf-8")
        git(place, "init", "-q")

    def train(self, job: Job) -> None:
        """Leave the traces of a job."""
        shutil.rmtree(self.place / "traces", ignore_errors=True)
        write(job, self.place / "traces")

    def types(self, line: str) -> Ran:
        """What a line of the shell does."""
        return shell(["bash", "-c", line], self.place, environment(self.place.parent))

    def commit(self, message: str) -> None:
        """Commit everything."""
        git(self.place, "add", "-A")
        git(self.place, "commit", "-q", "-m", message)


def accepted(ran: Ran) -> str:
    """The command behind the last line, as it is printed."""
    last = ran.out.rstrip("\n").splitlines()[-1]
    assert re.match(r"Accept +bubblescope ", last)
    return last.removeprefix("Accept").strip()


@pytest.mark.slow
@pytest.mark.parametrize("gate", ["bubblescope gate traces --baseline ci/bubble.json", "bubblescope gate traces"])
@pytest.mark.parametrize("cause", REGRESSIONS)
def test_a_regression_is_stopped_and_accepted(tmp_path, gate, cause):
    """Passes, fails with all that there is to know, and passes again once the command it prints was run."""
    project = Project(tmp_path / "project")
    project.train(JOB)
    if "--baseline" not in gate:
        (project.place / "pyproject.toml").write_text(SETTINGS, "utf-8")
    assert project.types("bubblescope baseline save traces -o ci/bubble.json").code == 0
    project.commit("begin")

    project.train(replace(JOB, seed=9))
    fine = project.types(gate)
    assert (fine.code, "Verdict   PASS" in fine.out) == (0, True), fine.err
    assert "Accept" not in fine.out

    worse, told = REGRESSIONS[cause]
    project.train(worse)
    failed = project.types(f"{gate} --report gate.json")
    assert failed.code == 1, failed.err
    check_page(failed.out, told)
    check_report(json.loads((project.place / "gate.json").read_text("utf-8")), cause)
    (project.place / "gate.json").unlink()
    assert git(project.place, "status", "--porcelain") == ""

    command = accepted(failed)
    assert command == "bubblescope baseline save traces -o ci/bubble.json -f --reason 'why this is fine'"
    assert project.types(command).code == 0
    assert git(project.place, "status", "--porcelain") == " M ci/bubble.json\n"
    shown = project.types("bubblescope baseline diff <(git show HEAD:ci/bubble.json) ci/bubble.json")
    assert shown.code == 0, shown.err
    (row,) = re.findall(r"^ *bubble +([\d.]+)% +([\d.]+)% +", shown.out, re.MULTILINE)
    assert float(row[0]) + 2 < float(row[1])
    project.commit("accept")
    again = project.types(gate)
    assert (again.code, "Verdict   PASS" in again.out) == (0, True)


def check_page(text: str, cause: str) -> None:
    """The rule with its values, where it is worst, what made it worse, and the command that looks closer."""
    words = " ".join(text.split())
    found = re.search(
        r"Failed bubble:\+2pp \([^)]+\): ([\d.]+)% to ([\d.]+)%, up [\d.]+ points; "
        r"expected: rises by at most 2\.0 points",
        words,
    )
    assert found
    assert float(found[1]) + 2 < float(found[2])
    assert re.search(rf"Worst stage \d \(rank \d\): bubble [\d.]+%, [\d.]+% in the baseline; {cause}: [\d.]+ p", words)
    assert "Next bubblescope compare ci/bubble.json traces " in words


def check_report(found: dict, cause: str) -> None:
    """The same as data."""
    assert found["verdict"] == "fail"
    failed = [check["rule"] for check in found["checks"] if check["outcome"] == "fail" and check["level"] == "error"]
    assert failed == ["bubble:+2pp"]
    assert cause in [worst["of"] for worst in found["worst"] if worst["by"] == "cause"]


def test_settings_hold_in_every_directory(tmp_path):
    """Of the project that is gated from a folder within: its file, its baseline, and a command that works there."""
    project = Project(tmp_path / "project")
    (project.place / "pyproject.toml").write_text(SETTINGS, "utf-8")
    project.train(JOB)
    assert project.types("cd ci && bubblescope baseline save ../traces -o bubble.json").code == 0
    project.train(REGRESSIONS["host"][0])
    failed = project.types("cd ci && bubblescope gate ../traces")
    assert failed.code == 1, failed.err
    assert project.types(f"cd ci && {accepted(failed)}").code == 0
    assert project.types("cd ci && bubblescope gate ../traces").code == 0
    assert project.types("bubblescope gate traces").code == 0


def test_before_there_is_a_baseline(tmp_path):
    """The first gate decides nothing, unless it may, and prints the command that makes the baseline."""
    project = Project(tmp_path / "project")
    project.train(JOB)
    first = project.types("bubblescope gate traces --baseline ci/bubble.json")
    assert first.code == 4
    assert project.types("bubblescope gate traces --baseline ci/bubble.json --on-missing-baseline warn").code == 0
    assert project.types(accepted(first)).code == 0
    assert project.types("bubblescope gate traces --baseline ci/bubble.json").code == 0
