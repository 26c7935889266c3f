"""What a user states about a job or asks of its analysis."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from bubblescope.errors import UsageError

__all__ = ["Attribution", "LabelRule", "Options", "StepRange"]

# More than any job has; what comes of more is hours of work by a slip of the finger.
_MOST = 65_536
_MOST_RANKS = 1_000_000
_MOST_SAMPLES = 2**40
# From a toy's forward to ten times the largest model; from a tenth of a laptop's GPU to a thousand of today's fastest.
_FLOPS_PER_TOKEN = (1.0, 1e17)
_PEAK_FLOPS = (1e9, 1e19)

LabelKind = Literal["F", "B", "I", "W"]

Attribution = Literal["ladder", "shapley"]
"""How the bubble is divided among causes: one after the other, or the mean over every order of them."""


@dataclass(frozen=True, slots=True)
class StepRange:
    """Steps `first` to `last`, both included; None is open. Numbers are those of the trace."""

    first: int | None = None
    last: int | None = None

    def __contains__(self, step: int) -> bool:
        return (self.first is None or step >= self.first) and (self.last is None or step <= self.last)

    @classmethod
    def parse(cls, text: str) -> StepRange:
        """Read `3`, `2:5`, `2:` or `:5` (last included); raises UsageError on anything else."""
        match = re.fullmatch(r"(\d{0,18})(?:(:)(\d{0,18}))?", text.strip(), re.ASCII)
        if match is None or not (match[1] or match[3]):
            raise UsageError(f"--steps expects a step or a range like 2:5, found {text!r}")
        first = int(match[1]) if match[1] else None
        last = int(match[3]) if match[3] else (None if match[2] else first)
        if first is not None and last is not None and last < first:
            raise UsageError(f"--steps {text!r} ends before it begins")
        return cls(first, last)

    def __str__(self) -> str:
        """As `parse` reads it; empty where both ends are open."""
        if self.first is not None and self.first == self.last:
            return str(self.first)
        ends = ("" if end is None else str(end) for end in (self.first, self.last))
        return "" if self == StepRange() else ":".join(ends)


@dataclass(frozen=True, slots=True)
class LabelRule:
    """A user's own label: ranges whose name matches `pattern` are actions of `kind`.

    The groups `stage` and `microbatch` of the pattern are read where they exist; without names
    the first group is the micro-batch. With neither, micro-batches are counted in order.
    """

    kind: LabelKind
    pattern: str

    @classmethod
    def parse(cls, text: str) -> LabelRule:
        """Read `KIND=REGEX`; raises UsageError where the kind or the pattern is no good."""
        kind, _, pattern = text.partition("=")
        if not pattern or kind.strip().upper() not in {"F", "B", "I", "W"}:
            raise UsageError(
                f"--label expects KIND=REGEX with KIND one of F, B, I, W, found {text!r}",
                hint=r"for example --label 'F=fwd_s(?P<stage>\d+)_mb(?P<microbatch>\d+)'",
            )
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"--label {text!r}: the pattern does not compile: {error}") from error
        return cls(kind.strip().upper(), pattern)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """All that changes an analysis; the default asks for what the traces tell by themselves.

    `layers` are those of each stage of the pipeline, in their order; what-ifs move them. With `strict` a trace that had
    to be mended, or whose end is missing, is an error.

    For throughput: `batch_size` counts samples a step over the whole job, `sequence_length` tokens a sample,
    `flops_per_token` those of forward and backward with nothing counted that runs again, `peak_flops` those of one GPU
    a second, and `recompute` is the share of the forward that runs again in the backward, 0 to 1.
    """

    pp: int | None = None
    tp: int | None = None
    dp: int | None = None
    virtual: int | None = None
    microbatches: int | None = None
    layers: tuple[int, ...] | None = None
    schedule: str | None = None
    labels: tuple[LabelRule, ...] = ()
    steps: StepRange = StepRange()
    ranks: tuple[int, ...] | None = None
    jobs: int | None = None
    strict: bool = False
    attribution: Attribution = "ladder"
    batch_size: int | None = None
    sequence_length: int | None = None
    flops_per_token: float | None = None
    peak_flops: float | None = None
    recompute: float | None = None

    def __post_init__(self) -> None:
        if self.attribution not in get_args(Attribution):
            raise UsageError(f"--attribution must be {' or '.join(get_args(Attribution))}, found {self.attribution!r}")
        for name in ("pp", "tp", "dp", "virtual", "microbatches", "jobs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UsageError(f"--{name} must be at least 1, found {value}")
            if value is not None and value > _MOST and name != "jobs":
                raise UsageError(f"--{name} must be at most {_MOST}, found {value}")
        if self.layers is not None and not (self.layers and all(1 <= count <= _MOST for count in self.layers)):
            raise UsageError(f"--layers says how many layers each stage has, each from 1 to {_MOST}")
        ranks = (self.pp or 1) * (self.tp or 1) * (self.dp or 1)
        if ranks > _MOST_RANKS:
            raise UsageError(f"--pp x --tp x --dp must be at most {_MOST_RANKS} ranks, found {ranks}")
        self._check_throughput()

    def _check_throughput(self) -> None:
        for name, least, most, example in (
            ("batch_size", 1, _MOST_SAMPLES, "2048 samples a step over all replicas"),
            ("sequence_length", 1, _MOST_SAMPLES, "4096 tokens a sample"),
            ("flops_per_token", *_FLOPS_PER_TOKEN, "4.2e11 for a model of 70e9 parameters"),
            ("peak_flops", *_PEAK_FLOPS, "989e12 FLOPs a second for an H100, which are 989 teraflops"),
            ("recompute", 0, 1, "1 where the whole forward runs again in the backward"),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:  # no comparison holds for what is no number
                span = f"{_number(least)} to {_number(most)}"
                raise UsageError(
                    f"{_option(name)} must be from {span}, found {_number(value)}", hint=f"for example {example}"
                )

    def words(self) -> tuple[str, ...]:
        """What is stated, as a command line says it; how the traces are read (`jobs`) is left out."""
        texts = {
            "steps": str(self.steps) or None,
            "ranks": None if self.ranks is None else ",".join(map(str, self.ranks)),
            "layers": None if self.layers is None else ",".join(map(str, self.layers)),
            "attribution": self.attribution if self.attribution != "ladder" else None,
        }
        for name in (*_STATED, *_THROUGHPUT):
            value = getattr(self, name)
            texts[name] = None if value is None else f"{value:.17g}" if isinstance(value, float) else str(value)
        stated = [word for name, text in texts.items() if text is not None for word in (_option(name), text)]
        labels = [word for rule in self.labels for word in ("--label", f"{rule.kind}={rule.pattern}")]
        return (*stated, *labels, *(["--strict"] if self.strict else []))

    def check_use(self) -> None:
        """Raise UsageError where a number is stated that tells nothing for want of another one."""
        for name, needed in _NEEDED.items():
            lacking = [_option(other) for other in needed if getattr(self, other) is None]
            if getattr(self, name) is not None and lacking:
                raise UsageError(f"{_option(name)} tells nothing without {' and '.join(lacking)}")


_STATED = ("pp", "tp", "dp", "virtual", "microbatches", "schedule")
_THROUGHPUT = ("batch_size", "sequence_length", "flops_per_token", "peak_flops", "recompute")

_NEEDED = {
    "sequence_length": ("batch_size",),
    "flops_per_token": ("batch_size", "sequence_length"),
    "recompute": ("batch_size", "sequence_length", "flops_per_token"),
}
"""What a number of a model is of no use without: MFU counts the FLOPs of a step's tokens."""


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"
