"""Folders of our own: one that stays from run to run, and some that go when the program does."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["cache", "passing"]


def cache() -> Path:
    """The user's folder for what can be made again, which need not exist.

    It is where the XDG Base Directory Specification says: below XDG_CACHE_HOME, if that is an absolute path, or else
    below ~/.cache.

    Raises:
        RuntimeError: nothing tells the user's home.
    """
    said = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (said if said.is_absolute() else Path.home() / ".cache") / "bubblescope"


def passing() -> Path:
    """A new folder, which goes when the program does; raises OSError."""
    folder = Path(tempfile.mkdtemp(prefix="bubblescope-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
