"""PyTorch, or None where it is missing: help and checks of the options work without it."""

from __future__ import annotations

from typing import Any

try:
    import torch
    import torch.distributed as dist
    import torch.multiprocessing as mp
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] not in {"torch", "numpy"}:
        raise
    torch = dist = mp = None  # type: ignore[assignment]

__all__ = ["Function", "Module", "dist", "mp", "torch"]

Function: Any = torch.autograd.Function if torch else object
Module: Any = torch.nn.Module if torch else object
