"""The shape of the house: which way imports point, what a module must have, how long things may be."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "bubblescope"
MODULES = sorted(PACKAGE.rglob("*.py"))

EVERYWHERE = {"errors", "atomic", "_version"}
BELOW = {
    "model": set(),
    "ingest": {"model"},
    "reconstruct": {"model"},
    "align": {"schedules", "model"},
    "schedules": {"model"},
    "analysis": {"align", "schedules", "model"},
    "forecast": {"analysis", "align", "schedules", "model"},
    "advice": {"forecast", "analysis", "schedules", "model"},
    "report": {"schedules", "model"},
    "emit": {"schedules", "model"},
    "mapping": {"ingest", "reconstruct", "model"},
    "reduction": {"advice", "align", "analysis", "forecast", "schedules", "model"},
    "engine": {"mapping", "reduction", "ingest", "schedules", "model"},
    "inventory": {"engine", "mapping", "reduction", "analysis", "ingest", "reconstruct", "model"},
    "gate": {"engine", "model"},
    "cli": {"emit", "engine", "gate", "inventory", "report", "schedules", "model"},
    "__main__": {"cli"},
    "errors": set(),
    "atomic": set(),
    "_version": set(),
    "": {"engine", "gate", "inventory", "model"},
}
"""What each part may import beside itself and what is open to all; the empty name is the package's own front door."""

SAYING = {"print", "sys.stdout", "sys.stderr", "sys.__stdout__", "sys.__stderr__"}
"""What only the command line may use."""


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = ["bubblescope", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def part_of(name: str) -> str:
    """The part of the house that a module belongs to; the front door is the empty name."""
    return name.split(".")[1] if "." in name else ""


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Dotted names of the modules of this package that a module imports anywhere, also inside functions."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "bubblescope")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import"
            if node.module == "bubblescope":
                yield from (f"bubblescope.{alias.name}" for alias in node.names)
            elif node.module and node.module.startswith("bubblescope."):
                yield node.module


def named(path: Path) -> list[str] | None:
    """The names of `__all__`, as written; None where there is none."""
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


def as_ruff_sorts(name: str) -> tuple[int, list[tuple[int, int | str]]]:
    """Key of rule RUF022: CONSTANTS, then Classes, then the rest; numbers in names by their value."""
    group = 0 if len(name) > 1 and name.isupper() else 1 if name[0].isupper() else 2
    return group, [(0, int(piece)) if piece.isdigit() else (1, piece) for piece in re.findall(r"\d+|\D+", name)]


def each_module(function):
    """Run a test for every module, under its dotted name."""
    return pytest.mark.parametrize("path", MODULES, ids=name_of)(function)


def test_the_parts_are_known():
    """Every part of the package has its place in the table above."""
    assert {part_of(name_of(path)) for path in MODULES} <= set(BELOW)


def test_the_table_points_one_way():
    """No part may import, directly or through others, what imports it; only its own entrance imports the command."""
    reach = BELOW
    for _ in BELOW:
        reach = {part: below.union(*(reach[other] for other in below)) for part, below in reach.items()}
    assert not [part for part, below in reach.items() if part in below]
    assert [part for part, below in reach.items() if "cli" in below] == ["__main__"]


@each_module
def test_imports_point_one_way(path):
    """A module imports only from its own part, those below it, and what is open to all."""
    part = part_of(name_of(path))
    allowed = BELOW[part] | EVERYWHERE | {part}
    wrong = [name for name in imported(path) if part_of(name) not in allowed]
    assert not wrong, f"{name_of(path)} imports {wrong}"


@each_module
def test_docstring(path):
    """A module begins with what it is for, in a first line that fits."""
    text = ast.get_docstring(tree_of(path))
    assert text
    assert len(text.splitlines()[0]) <= 120


@each_module
def test_public_names(path):
    """A module of more than a docstring lists its public names, all there, each once, sorted as ruff sorts."""
    names = named(path)
    if names is None:
        body = tree_of(path).body[1:]
        assert all(isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("__") for node in body)
        return
    assert names == sorted(set(names), key=as_ruff_sorts)
    module = import_module(name_of(path))
    assert not [name for name in names if not hasattr(module, name)]


def test_sorting_is_that_of_ruff():
    """The order that is asked for is the one of rule RUF022."""
    names = ["A1", "B", "MAX", "b10", "b2", "a", "Camel", "_x", "__version__", "Zed", "zed", "A"]
    expected = ["A1", "MAX", "A", "B", "Camel", "Zed", "__version__", "_x", "a", "b2", "b10", "zed"]
    assert sorted(names, key=as_ruff_sorts) == expected


@each_module
def test_length(path):
    """No module has over 400 lines, no function a body of over 60."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.body[0].lineno + 1 <= 60, f"{node.name} at line {node.lineno}"


@each_module
def test_only_the_command_line_prints(path):
    """No other part prints or touches the streams of the process."""
    if part_of(name_of(path)) == "cli":
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Name | ast.Attribute):
            assert ast.unparse(node) not in SAYING, f"line {node.lineno}"
        elif isinstance(node, ast.ImportFrom) and node.module == "sys":
            assert not {f"sys.{alias.name}" for alias in node.names} & SAYING, f"line {node.lineno}"


@each_module
def test_no_bare_except(path):
    """Every handler says what it handles."""
    for node in ast.walk(tree_of(path)):
        assert not (isinstance(node, ast.ExceptHandler) and node.type is None), f"line {node.lineno}"


@pytest.mark.parametrize("module", ["bubblescope", "bubblescope.cli"])
def test_importing_is_quick(module):
    """Help and version do not wait for numpy or pandas."""
    code = f"import sys, {module}; print(*sorted({{'numpy', 'pandas'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert done.stdout.split() == []
