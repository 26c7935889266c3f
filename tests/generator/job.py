"""The description of a synthetic job, and who sits where in it."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

Labels = Literal["pp", "torch", "none"]
P2PArgs = Literal["kernel", "op", "none"]
Backend = Literal["cuda", "cpu"]
Era = Literal["relative", "epoch-int", "epoch-fraction"]
Metadata = Literal["before", "after", "none"]

SPLIT_BACKWARD = frozenset({"zb-h1", "interleaved-zb", "zb-v"})
V_PLACEMENT = frozenset({"zb-v"})
MANY_CHUNKS = frozenset({"interleaved-1f1b", "looped-bfs", "interleaved-zb", "zb-v"})
CPU_GAP_NS = 20_000  # on CPU one thread computes and posts messages: it needs a gap between actions
CPU_POST_NS = (2_000, 3_500)  # after an action's end: its send is posted, then the next receive


class Place(NamedTuple):
    """Where a global rank sits: pipeline rank, replica, tensor-parallel index."""

    pp: int
    dp: int
    tp: int


@dataclass(frozen=True)
class Job:
    """Everything that decides a synthetic run and the files it leaves.

    Attributes:
        schedule: gpipe, gpipe-reversed-drain, naive, 1f1b, eager-1f1b, interleaved-1f1b, looped-bfs, zb-h1,
            interleaved-zb or zb-v.
        p: Pipeline ranks.
        m: Micro-batches a step.
        v: Chunks a rank holds.
        d: Data-parallel replicas.
        t: Tensor-parallel ranks a stage.
        forward_ns: Forward time per rank and micro-batch, all chunks together.
        backward_ns: Full backward time, likewise.
        weight_fraction: Share of the backward that is W, where it is split.
        scale: Factor per stage (p * v of them) or per rank (p of them); empty for balanced.
        slow: Pairs of a glob over ``step.replica.action`` (``*.1.2F*``) and a factor: stragglers, long micro-batches.
        jitter: Relative sigma of every action's time.
        p2p_ns: How long a transfer moves bytes.
        host_gap_ns: Idle time before each action, after its input arrived.
        recv_ahead: By how many actions earlier than needed a receive is posted.
        steps: Optimizer steps recorded.
        first_step: Number in the first ``ProfilerStep#N``.
        dp_ns: Gradient all-reduce after the pipeline, where d > 1.
        dp_early: Start it at the rank's own end, inside the window, instead of after the whole pipeline.
        optimizer_ns: Optimizer kernels after the pipeline.
        tp_share: Share of an action spent in tensor-parallel all-reduces, where t > 1.
        kernels: Compute kernels (layers) an action.
        kernel_gap_ns: Idle time between the kernels of an action.
        run_ahead_ns: How far the host launches ahead of the GPU, where no host gap is asked for.
        skew_ns: Clock offset per global rank; missing ones are 0.
        drift_ppm: Clock drift per global rank; missing ones are 0.
        labels: PP:sFm ranges, GPipe's ``Forward i``, or none.
        comm_labels: PP:sRECV_Fm and PP:sSEND_Fm too.
        autograd: Write sequence numbers and fwdbwd flows.
        p2p_args: Where peers of sends and receives are written.
        fused: A send and the next receive with one peer are one kernel, which blocks the rank.
        backend: GPU kernels and launches, or operators only.
        era: How time stamps are written.
        metadata: Where the job's metadata stand in the file.
        pg_desc: Flavour of the process group descriptions: megatron, mesh or undefined.
        gpu_annotations: Write the GPU's copies of annotations.
        missing: Global ranks whose file is not written.
        neutral_names: File names that tell no rank.
        compress: Write .json.gz rather than .json.
        seed: Seed of every random number.
    """

    schedule: str = "1f1b"
    p: int = 4
    m: int = 8
    v: int = 1
    d: int = 1
    t: int = 1
    forward_ns: int = 10_000_000
    backward_ns: int = 20_000_000
    weight_fraction: float = 0.5
    scale: tuple[float, ...] = ()
    slow: tuple[tuple[str, float], ...] = ()
    jitter: float = 0.0
    p2p_ns: int = 0
    host_gap_ns: int = 0
    recv_ahead: int = 0
    steps: int = 2
    first_step: int = 0
    dp_ns: int = 4_000_000
    dp_early: bool = False
    optimizer_ns: int = 3_000_000
    tp_share: float = 0.15
    kernels: int = 4
    kernel_gap_ns: int = 0
    run_ahead_ns: int = 500_000
    skew_ns: tuple[int, ...] = ()
    drift_ppm: tuple[float, ...] = ()
    labels: Labels = "pp"
    comm_labels: bool = False
    autograd: bool = True
    p2p_args: P2PArgs = "kernel"
    fused: bool = False
    backend: Backend = "cuda"
    era: Era = "relative"
    metadata: Metadata = "before"
    pg_desc: Literal["megatron", "mesh", "undefined"] = "megatron"
    gpu_annotations: bool = True
    missing: tuple[int, ...] = ()
    neutral_names: bool = False
    compress: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        """Keep lists as tuples, and refuse jobs that no framework could run."""
        for name in ("scale", "slow", "skew_ns", "drift_ppm", "missing"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        self._check(self.v == 1 or self.schedule in MANY_CHUNKS, f"{self.schedule} has one chunk a rank")
        self._check(self.schedule not in V_PLACEMENT or self.v == 2, f"{self.schedule} has two chunks a rank")
        self._check(len(self.scale) in (0, self.p, self.p * self.v), "scale needs p or p * v factors")
        self._check(not (self.fused and self.recv_ahead), "a fused receive cannot be posted ahead")
        self._check(not self.fused or self.backend == "cuda", "gloo fuses nothing")
        self._check(
            self.labels != "torch" or (self.v == 1 and not self.split),
            "Forward i labels name neither chunk nor I and W",
        )
        self._check(min(self.p, self.m, self.v, self.d, self.t, self.steps, self.kernels) > 0, "counts start at 1")

    def _check(self, holds: bool, message: str) -> None:
        if not holds:
            raise ValueError(message)

    @property
    def stages(self) -> int:
        """Stages of the whole pipeline."""
        return self.p * self.v

    @property
    def world(self) -> int:
        """Ranks of the whole job."""
        return self.p * self.d * self.t

    @property
    def split(self) -> bool:
        """Whether the backward is split into I and W."""
        return self.schedule in SPLIT_BACKWARD

    @property
    def gap_ns(self) -> int:
        """Idle time before each action, what the backend needs included."""
        return self.host_gap_ns + (CPU_GAP_NS if self.backend == "cpu" else 0)

    @property
    def pattern(self) -> tuple[bool, ...]:
        """For each kernel of an action, whether it is an all-reduce: one after half of the kernels, one at the end."""
        if self.t == 1:
            return (False,) * self.kernels
        half = self.kernels // 2
        return (False,) * half + (True,) * (half > 0) + (False,) * (self.kernels - half) + (True,)

    @property
    def post_ns(self) -> tuple[int, int]:
        """How long after an action's end its send, and the next receive, are posted."""
        return CPU_POST_NS if self.backend == "cpu" else (0, 0)

    def holder(self, stage: int) -> int:
        """Pipeline rank that holds a stage."""
        if self.schedule in V_PLACEMENT and stage >= self.p:
            return 2 * self.p - 1 - stage
        return stage % self.p

    def rank(self, pp: int, dp: int, tp: int) -> int:
        """Global rank: tensor-parallel ranks are neighbours, pipeline ranks furthest apart."""
        return tp + self.t * (dp + self.d * pp)

    def place(self, rank: int) -> Place:
        """Where a global rank sits."""
        return Place(rank // (self.t * self.d), rank // self.t % self.d, rank % self.t)

    def factor(self, stage: int) -> float:
        """How much longer than the mean a stage works."""
        if not self.scale:
            return 1.0
        return self.scale[stage] if len(self.scale) == self.stages else self.scale[self.holder(stage)]
