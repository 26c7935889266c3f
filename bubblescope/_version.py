"""The version, read by the build and by `bubblescope --version`."""

__version__ = "0.1.0"
