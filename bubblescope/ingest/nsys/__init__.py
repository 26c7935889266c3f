"""SQLite exports of NVIDIA Nsight Systems: one file may hold the processes of several ranks."""

from bubblescope.ingest.nsys.read import read

__all__ = ["read"]
