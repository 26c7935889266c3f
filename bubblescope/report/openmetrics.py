"""The numbers of a run as OpenMetrics text, for what collects metrics from builds: GitLab, Prometheus.

The whole job and its parts are families of their own, so that no sum counts anything twice. Units are base units.
"""

from __future__ import annotations

from collections.abc import Iterator

from bubblescope.model.baseline import Baseline
from bubblescope.model.metrics import METRICS, Metric, MetricKind, Part, Unit
from bubblescope.model.writing import plain
from bubblescope.report.wording import visible

__all__ = ["render"]

_UNITS: dict[Unit, str] = {"share": "ratio", "ratio": "ratio", "ns": "seconds", "per_s": ""}


def render(baseline: Baseline) -> bytes:
    """A gauge for each number, and what the run was as labels of one that is always 1."""
    lines = list(_run(baseline))
    for name, kind in METRICS.items():
        for by in (None, *kind.parts):
            found = [each for each in baseline.metrics if (each.metric, each.by) == (name, by)]
            lines += _family(name, kind, by, found) if found else []
    return ("\n".join([*lines, "# EOF"]) + "\n").encode()


def _run(baseline: Baseline) -> Iterator[str]:
    run = baseline.fingerprint
    labels = {
        "schedule": run.schedule,
        "pp": run.pp,
        "tp": run.tp,
        "dp": run.dp,
        "virtual": run.virtual,
        "microbatches": run.microbatches,
        "world_size": run.world_size,
        "devices": ", ".join(run.devices),
        "steps": run.steps,
    }
    known = {name: str(value) for name, value in labels.items() if value is not None}
    yield "# TYPE bubblescope_run info"
    yield "# HELP bubblescope_run What the run was."
    yield f"bubblescope_run_info{_labels(known)} 1"


def _family(name: str, kind: MetricKind, by: Part | None, found: list[Metric]) -> Iterator[str]:
    unit = _UNITS[kind.unit]
    stem = f"bubblescope_{'' if by is None else f'{by}_'}{name.replace('_per_s', '_per_second')}"
    family = f"{stem}_{unit}" if unit else stem
    yield f"# TYPE {family} gauge"
    if unit:
        yield f"# UNIT {family} {unit}"
    yield f"# HELP {family} {kind.title[0].upper()}{kind.title[1:]}{'' if by is None else f', by {by}'}."
    for each in found:
        labels = "" if by is None else _labels({by: each.of or ""})
        yield f"{family}{labels} {_number(each.value, kind.unit)}"


def _labels(pairs: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{_label(value)}"' for name, value in pairs.items()) + "}"


def _label(text: str) -> str:
    # GitLab takes the rest of a line behind `#` for a comment, within quotes too.
    safe = visible(text).replace("#", "\\x23")
    return safe.replace("\\", "\\\\").replace('"', '\\"')


def _number(value: float, unit: Unit) -> str:
    """A value in its base unit: GitLab compares texts, so that digits which mean nothing would be changes."""
    if unit == "per_s":
        return f"{value:.6g}"
    text = plain(value / 1e9, 9) if unit == "ns" else plain(value, 6)
    return text.rstrip("0").rstrip(".")
