"""bubblescope: how much GPU time a pipeline-parallel run loses to bubbles, against theory, and why."""

from bubblescope._version import __version__

__all__ = ["__version__"]
