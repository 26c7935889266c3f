"""Files that are there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

__all__ = ["write"]


def write(path: Path, data: bytes) -> None:
    """Write under another name and rename, so that nobody ever sees half a file; raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".bubblescope-")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(_mode(path))
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _mode(path: Path) -> int:
    """The mode that the file has, or that a new file gets; mkstemp's is for secrets."""
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
