"""Which ranks a file holds, and who each of them is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bubblescope.ingest.nsys.schema import pid_of
from bubblescope.ingest.nsys.session import NODES, RANKS, Session
from bubblescope.ingest.nsys.work import Work
from bubblescope.ingest.owners import Owner, devices_of
from bubblescope.ingest.owners import owners as of_kernels
from bubblescope.model.columns import Bools
from bubblescope.model.trace import Device, Identity, Kernels, Membership

__all__ = ["held", "identities", "owners"]


def owners(work: Work) -> tuple[Owner, ...]:
    """The ranks of a file, in the order of their devices, then of their processes."""
    ran = work.kernels.rows.kind == Kernels.KERNEL
    return of_kernels(work.kernels.process[ran], work.device[ran])


def held(work: Work, owner: Owner) -> Bools:
    """Which rows of the work a rank ran."""
    return owner.ran(work.kernels.process, work.device)


def identities(
    found: Sequence[Owner], told: Session, members: Mapping[int, frozenset[Membership]], path: str
) -> list[Identity]:
    """Who the ranks of a file are, as far as the file tells; in the order of `found`.

    What MPI told of a process stands above the environment. That is the recorder's: of one process it is its own, of
    several it tells at most which node they ran on, so that their places there are counted on from its first.
    """
    placed = sorted(found, key=lambda owner: told.gpu_of.get((pid_of(owner.process), owner.device), owner.device))
    single = len(found) == 1
    place = {owner: number for number, owner in enumerate(placed)}
    rank, world = _of_one(told) if single else (None, None)
    node = None if single else next((told.environment[name] for name in NODES if name in told.environment), None)
    result = []
    for owner in found:
        alone = sum(other.process == owner.process for other in found) == 1
        identity = Identity(
            world_size=world,
            host=told.host,
            clock=path,
            process=str(pid_of(owner.process)),
            device=None if alone else str(owner.device),
            devices=_devices(owner, told),
            memberships=tuple(sorted(members.get(owner.process, ()), key=lambda m: (m.communicator, m.rank))),
        )
        number = told.mpi.get(owner.process)
        if number is not None and alone:
            identity = replace(identity, rank=number, rank_source="metadata")
        elif rank is not None:
            identity = replace(identity, rank=rank, rank_source="environment")
        elif node is not None:
            identity = replace(identity, rank=node * len(found) + place[owner], rank_source="environment")
        result.append(identity)
    return result


def _of_one(told: Session) -> tuple[int | None, int | None]:
    """Rank and number of ranks by the environment of a single process, from one launcher."""
    for rank, world in RANKS:
        number, count = told.environment.get(rank), told.environment.get(world)
        if number is not None:
            return (number, count) if count is None or number < count else (None, None)
    return None, None


def _devices(owner: Owner, told: Session) -> tuple[Device, ...]:
    gpu = told.gpu_of.get((pid_of(owner.process), owner.device), owner.device)
    return devices_of(owner.device, gpu, told.gpus)
