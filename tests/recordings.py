"""Jobs whose recordings are out of the ordinary, as users' are: what may be odd in a file, drawn beside the rest.

job = odd(Random(7).choice)
assert calm_faults(job, analyzed(job).report) == []
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bubblescope.emit import Job
from bubblescope.errors import UsageError
from bubblescope.model.report import Report
from tests.ordinary import complaints, ordinary

__all__ = ["ODDITIES", "calm_faults", "odd", "some_of"]

Choose = Callable[[Sequence[Any]], Any]
"""Takes one of several values."""

Fields = Mapping[str, Any]

ODDITIES: Mapping[str, Callable[[Choose], Fields]] = {
    "merged files": lambda choose: {
        "missing": (),
        "one_file": choose(("behind", "shifted", "sorted")),
        "one_gpu_visible": choose((True, False)),
    },
    "several GPUs a process": lambda choose: {
        "one_process": True,
        "one_file": "behind",
        "labels": "pp",
        "ranks_a_host": 8,
        "skew_ns": (),
        "drift_ppm": (),
        "fused": False,
        "missing": (),
        "d": 1,
        "t": 1,
        "dp_ns": choose((0, 3_000_000)),
    },
    "several cycles": lambda choose: {
        "steps": choose((2, 4)),
        "cycles": 2,
        "rest_ns": choose((50_000_000, 5_000_000_000)),
        "count_anew": choose((True, False)),
        "drift_ppm": (),
    },
    "kernels of one name": lambda choose: {
        "comm_names": "generic",
        "calls": choose(("all", "params", "ops", "none")),
        "p2p_args": choose(("op", "none")),
    },
    "all-to-alls": lambda choose: {
        "t": 2,
        "in_stage": "all-to-all",
        "named_calls": choose((True, False)),
        "labels": choose(("pp", "none")),
    },
    "announced messages": lambda _choose: {"announced": True},
    "launches that nothing joins": lambda choose: {"launches": choose(("unnumbered", "trimmed"))},
    "offloaded activations": lambda choose: {"offload_ns": choose((1_000_000, 9_000_000))},
    "kernels that overrun": lambda choose: {
        "overrun_ns": choose((500_000, 500_000_000)),  # what ends before the next kernel begins, nothing shows
        "overrun_chance": choose((0.001, 0.01)),
    },
}
"""What may be odd, and the fields that make it so."""

_BY_NSYS = frozenset(ODDITIES) - {"merged files", "several cycles", "kernels of one name"}
"""What exports of Nsight Systems may have, too."""

_TRIES = 50


def odd(choose: Choose, *oddities: str) -> Job:
    """A job of the space of ordinary ones with some oddities, or one or two of any; what cannot be is drawn again."""
    for _ in range(_TRIES):
        names = oddities or some_of(choose, ODDITIES)
        try:
            return ordinary(choose, **_fields(choose, names))
        except UsageError:
            continue
    raise ValueError(f"no job has {', '.join(names)}")


def some_of(choose: Choose, oddities: Mapping[str, object]) -> tuple[str, ...]:
    """The names of one or two of them."""
    return tuple({choose(tuple(oddities)) for _ in range(choose((1, 1, 2)))})


def _fields(choose: Choose, names: Sequence[str]) -> Fields:
    fields = {name: value for oddity in sorted(names) for name, value in ODDITIES[oddity](choose).items()}
    if _BY_NSYS.issuperset(names) and choose((True, False, False)):
        fields |= {"recorder": "nsys", "payloads": choose(("json", "none"))}
        fields |= {"one_file": "no", "one_file_a_host": True} if "one_process" in fields else {}
    return fields


def calm_faults(job: Job, report: Report) -> list[str]:
    """What a report gets wrong and calls right: its bubble, the interval of that, or the name of the schedule."""
    if report.quality.verdict != "ok":
        return []
    return [fault for fault in complaints(job, report) if fault.startswith(("bubble:", "interval:", "schedule:"))]
