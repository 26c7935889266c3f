"""Which ranks a file holds: a process on a device is one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bubblescope.errors import InputError
from bubblescope.model.columns import Bools, Ints, distinct
from bubblescope.model.trace import Device

__all__ = ["FEW", "MOST", "Owner", "check_count", "devices_of", "owners", "too_many"]

FEW = 0.01
"""Share of the kernels of the busiest rank below which a process, or a device of a process, is no rank itself.

Data loaders and stray contexts run a few kernels; the lightest stage of a pipeline runs far more.
"""

MOST = 1024
"""Ranks that one file may hold: more are no job of anybody's, but damage."""


MOST_OF_A_PROCESS = 64
"""GPUs that one process may drive: hosts have up to 16, each of which may be cut into 7."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process on a device of its own counting: a rank."""

    process: int
    device: int

    def ran(self, process: Ints, device: Ints) -> Bools:
        """Which rows are this rank's, going by the process and the device of each."""
        rows: Bools = (process == self.process) & (device == self.device)
        return rows


def owners(process: Ints, device: Ints) -> tuple[Owner, ...]:
    """The ranks that ran kernels, given the process and the device of each, by device, then by process."""
    processes, devices = distinct(process), distinct(device)
    place = np.searchsorted(devices, device) * len(processes) + np.searchsorted(processes, process)
    places, count = np.unique(place, return_counts=True)
    number, owner = np.divmod(places[count >= FEW * count.max(initial=0)], max(len(processes), 1))
    return tuple(map(Owner, processes[owner].tolist(), devices[number].tolist()))


def check_count(path: Path, found: Sequence[Owner], hint: str) -> None:
    """Raise InputError where a file holds more than anyone's ranks."""
    if len(found) > MOST:
        raise too_many(path, len(found), hint)
    count = max(Counter(owner.process for owner in found).values(), default=0)
    if count > MOST_OF_A_PROCESS:
        message = f"{path}: expected the GPUs of one host, found a process with {count}, more than {MOST_OF_A_PROCESS}"
        raise InputError(message, hint=hint)


def too_many(path: Path, count: int, hint: str) -> InputError:
    """The error for a file that holds more than anyone's ranks."""
    return InputError(
        f"{path}: expected the ranks of one job, found kernels of {count} processes and devices, more than {MOST}",
        hint=hint,
    )


def devices_of(number: int, gpu: int, names: Mapping[int, str]) -> tuple[Device, ...]:
    """The device of a rank, named as that GPU is, or as all are; none where neither tells a name."""
    models = set(names.values())
    name = names.get(gpu) or (models.pop() if len(models) == 1 else None)
    return () if not name else (Device(number, name),)
