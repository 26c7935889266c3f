"""One rank of a run: how its process joins the others, and how its steps are profiled."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from recording.files import trace_name
from recording.libraries import dist, torch
from recording.plan import Plan
from recording.stage import oversleeps

__all__ = ["TIMEOUT", "UNRECORDED_STEPS", "joined", "profile_steps", "sleeps_key"]

UNRECORDED_STEPS = 2  # the first step also exchanges shapes between the stages, the second warms the profiler up
TIMEOUT = timedelta(seconds=120)


def loopback_interface() -> str | None:
    """Find the name of the loopback interface, which differs between systems."""
    names = {name for _, name in socket.if_nameindex()}
    return next((name for name in ("lo", "lo0") if name in names), None)


@contextlib.contextmanager
def joined(plan: Plan, rank: int, port: int) -> Iterator[Any]:
    """Make this process a rank of the run, talking over loopback only; give the store that all share."""
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    interface = loopback_interface()
    if interface:
        os.environ["GLOO_SOCKET_IFNAME"] = interface
    for name in [name for name in os.environ if name.startswith("PT_PROFILER_JOB")]:
        del os.environ[name]  # torch would write them into the trace
    store = dist.TCPStore("127.0.0.1", port, is_master=False, timeout=TIMEOUT)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=plan.ranks, timeout=TIMEOUT)
    yield store
    store.set(sleeps_key(rank), json.dumps([1e3 * seconds for seconds in oversleeps]))
    dist.barrier()
    dist.destroy_process_group()


def sleeps_key(rank: int) -> str:
    """Name the entry of the store where a rank leaves how late its sleeps were, in ms."""
    return f"oversleeps of {rank}"


def profile_steps(plan: Plan, rank: int, store: Any, folder: str, step: Callable[[], Any]) -> None:
    """Run every step of one rank and write its raw trace into a folder."""

    def export(profiler: Any) -> None:
        profiler.export_chrome_trace(str(Path(folder, trace_name(rank, compressed=False))))

    gc.collect()
    gc.disable()  # a collection in the middle of a stage would be work that the plan does not know
    dist.barrier()
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=UNRECORDED_STEPS - 1, warmup=1, active=plan.steps, repeat=1),
        on_trace_ready=export,
    ) as profiler:
        for number in range(UNRECORDED_STEPS + plan.steps):
            if number == UNRECORDED_STEPS:
                oversleeps.clear()
            step()
            if number == UNRECORDED_STEPS + plan.steps - 1:
                wait_for_all(plan, rank, store)
            profiler.step()


def wait_for_all(plan: Plan, rank: int, store: Any) -> None:
    """Wait until every rank has come this far, by the store, which leaves nothing in a trace.

    After the last step a rank writes its trace. It must not take the cores while others still work, for a real-time
    priority would let it keep them.
    """
    store.set(f"{rank} is done", "")
    store.wait([f"{each} is done" for each in range(plan.ranks)], TIMEOUT)
