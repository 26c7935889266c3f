"""A command line whose engine is a fake, so that each test decides what the analysis does."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import msgspec
import pytest

from bubblescope.cli import run
from bubblescope.model.report import Report
from tests import whatifs

SAMPLE = Path(__file__).parents[1] / "report" / "golden" / "1f1b.json"


class Engine(ModuleType):
    """Stands for `bubblescope.engine`: remembers its call, and returns a report or raises."""

    def __init__(self) -> None:
        super().__init__("bubblescope.engine")
        self.report = msgspec.json.decode(SAMPLE.read_bytes(), type=Report)
        self.forecast = whatifs.usual()
        self.problem: BaseException | None = None
        self.call: SimpleNamespace | None = None

    def analyze(self, paths, options, progress=None):
        """What the real one is called with, and returns."""
        self.call = SimpleNamespace(paths=paths, options=options, progress=progress)
        if progress is not None:
            progress(1, 2)
        if self.problem is not None:
            raise self.problem
        return SimpleNamespace(report=self.report)

    def whatif(self, paths, changes=(), options=None, progress=None, *, anyway=False):
        """Likewise; the forecasts do not depend on what was asked."""
        self.call = SimpleNamespace(paths=paths, changes=changes, options=options, progress=progress, anyway=anyway)
        if progress is not None:
            progress(1, 2)
        if self.problem is not None:
            raise self.problem
        return self.forecast


@pytest.fixture
def engine(monkeypatch) -> Engine:
    """The fake, in the place of the real one."""
    fake = Engine()
    monkeypatch.setitem(sys.modules, "bubblescope.engine", fake)
    return fake


@pytest.fixture
def bubblescope(engine, capfd, monkeypatch):
    """Run a command line; returns its exit code, stdout and stderr."""
    assert engine is not None
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str) -> SimpleNamespace:
        capfd.readouterr()
        code = run(arguments)
        sys.stdout.flush()
        out, err = capfd.readouterr()
        return SimpleNamespace(code=code, out=out, err=err)

    return call
