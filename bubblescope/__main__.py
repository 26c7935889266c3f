"""`python -m bubblescope`, where the command itself is not on the PATH."""

from __future__ import annotations

from bubblescope.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
