"""The project holds together: metadata, licence, version, layers, and the one command that decides about a merge."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import metadata, version
from pathlib import Path

import bubblescope

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "bubblescope"
README = (ROOT / "README.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# Which layers a layer may import. Everything may import these two.
BASE = {"model", "errors"}


def commands() -> list[str]:
    """The shell commands of the README."""
    return [line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines()]


def test_readme_has_two_commands_that_set_themselves_up():
    """One analyzes a sample, one runs the tests; each makes its own environment first."""
    sample, tests = commands()
    assert sample.startswith("python3 -m venv ")
    assert tests.startswith("python3 -m venv --clear ")
    assert sample.split(" && ")[-1] == ".venv/bin/bubblescope analyze sample_traces/1f1b_p4m8"
    assert tests.split(" && ")[-1] == "build/venv/bin/python -m pytest -n auto"
    assert [Path(shlex.split(part)[0]).name for part in tests.split(" && ")[2:]] == ["ruff", "ruff", "mypy", "python"]


def test_ci_runs_the_test_command_of_the_readme():
    """Word for word, as the last line, so that its exit status is that of the script."""
    script = ROOT / ".ci" / "run"
    assert script.read_text("utf-8").splitlines()[-1] == commands()[1]
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", str(script)], check=True)


def test_environments_are_left_alone_by_git():
    """What the two commands make is no part of the repository."""
    ignored = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    assert {".venv/", "build/"} <= set(ignored)


def test_metadata():
    """What a package index shows."""
    assert PROJECT["name"] == "bubblescope"
    assert PROJECT["license"] == "Apache-2.0"
    assert PROJECT["readme"] == "README.md"
    assert PROJECT["scripts"] == {"bubblescope": "bubblescope.cli:main"}
    assert "Apache License" in (ROOT / "LICENSE").read_text("utf-8")[:200]
    assert metadata("bubblescope")["Summary"] == PROJECT["description"]


def test_version_stands_in_one_place():
    """In `_version.py`; the package, its metadata and the command take it from there."""
    assert "version" not in PROJECT
    assert version("bubblescope") == bubblescope.__version__
    number = re.escape(bubblescope.__version__)
    assert [f.name for f in PACKAGE.rglob("*.py") if re.search(rf"\"{number}\"", f.read_text("utf-8"))] == [
        "_version.py"
    ]
    assert f"{bubblescope.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_dependencies_are_explained():
    """Every dependency has a row in the table of docs/design.md, and no other package has."""
    rows = set(
        re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", (ROOT / "docs" / "design.md").read_text("utf-8"), re.MULTILINE)
    )
    assert rows == {re.split(r"[><=;]", entry)[0] for entry in PROJECT["dependencies"]}


def test_package_is_typed():
    """Type checkers read it."""
    assert (PACKAGE / "py.typed").is_file()
    assert "Typing :: Typed" in PROJECT["classifiers"]


def test_public_names_are_sorted_and_there():
    """`__all__` of the package."""
    assert bubblescope.__all__ == sorted(bubblescope.__all__)
    assert all(getattr(bubblescope, name) for name in bubblescope.__all__)


def test_importing_the_package_is_cheap():
    """Neither numpy nor pandas nor rich is there before somebody needs them."""
    code = "import sys, bubblescope.cli; print(sorted({'numpy', 'pandas', 'rich.console'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def imported(file: Path) -> set[str]:
    """Top-level modules of the package that a file imports, wherever in it."""
    nodes = [node for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    modules = [(node.module or "", node.names) for node in nodes]
    inner = {module.split(".")[1] for module, _ in modules if module.startswith("bubblescope.")}
    return inner | {alias.name for module, names in modules if module == "bubblescope" for alias in names}


def test_pages_name_no_private_place():
    """Nothing in the documentation points to somebody's machine."""
    for page in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")):
        assert not re.search(r"(?<![\w.])/(work|home|root|Users)/", page.read_text("utf-8")), page
