"""A repository whose job leaves traces, in each of three states, and machines that gate it."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from bubblescope.cli import run
from bubblescope.emit import Job, write
from tests.gate.services import GitHub, environment, git

JOB = Job(schedule="1f1b", p=2, m=4, steps=6, jitter=0.01, kernels=2, seed=1)
RUNS = {
    "baseline": JOB,
    "fine": replace(JOB, seed=2),
    "worse": replace(JOB, host_gap_ns=3_000_000, seed=3),
    "short": replace(JOB, steps=1, seed=4),
}
RECORD = """#!/bin/sh
set -e
mkdir "$1"
cp "$RECORDED"/* "$1"
"""


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """A folder with the traces of each run, and the baseline."""
    place = tmp_path_factory.mktemp("recorded")
    for name, job in RUNS.items():
        write(job, place / name)
    assert run(["baseline", "save", str(place / "baseline"), "-o", str(place / "bubble.json"), "-q"]) == 0
    return place


@pytest.fixture
def repository(tmp_path, recorded):
    """A repository with a script that records, and the baseline of a good run."""
    place = tmp_path / "origin"
    place.mkdir()
    (place / "record.sh").write_text(RECORD, "utf-8")
    (place / "record.sh").chmod(0o755)
    shutil.copy(recorded / "bubble.json", place)
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-q", "-m", "begin")
    return place


@pytest.fixture
def clone(repository, tmp_path):
    """A fresh clone of it."""
    git(tmp_path, "clone", "-q", str(repository), "clone")
    return tmp_path / "clone"


@pytest.fixture
def machine(tmp_path, recorded):
    """The environment of a machine on which the job leaves the traces of that run."""

    def call(name: str, **more: str) -> dict[str, str]:
        who = {f"GIT_{role}_{what}": "x@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return environment(tmp_path, RECORDED=str(recorded / name), **who, **more)

    return call


@pytest.fixture
def github(clone, tmp_path, recorded):
    """A runner of GitHub on which the job leaves the traces of that run."""
    return lambda name: GitHub(clone, tmp_path, RECORDED=str(recorded / name))
