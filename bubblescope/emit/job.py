"""The description of a job to emit, and who sits where in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bubblescope.emit.check import check
from bubblescope.emit.choices import (
    Backend,
    Calls,
    CommNames,
    Descriptions,
    Era,
    EvalAt,
    GroupsTold,
    Host,
    InStage,
    KernelNames,
    Labels,
    Launches,
    Marks,
    Metadata,
    OneFile,
    P2PArgs,
    Payloads,
    Recorder,
    ReduceOp,
    StageWork,
    ZeroGrad,
)
from bubblescope.emit.settle import settled
from bubblescope.model.actions import Action, Kind, Order
from bubblescope.schedules.family import Family, Shape
from bubblescope.schedules.registry import find

__all__ = ["Job", "Place", "Recorder", "StageWork"]

CPU_GAP_NS = 20_000  # on CPU one thread computes and posts messages: it needs a gap between actions
CPU_POST_NS, CPU_NEXT_NS = 2_000, 1_500  # from a block's end to its first message, and from each message to the next


class Place(NamedTuple):
    """Where a global rank sits: pipeline rank, replica, tensor-parallel and context-parallel index."""

    pp: int
    dp: int
    tp: int
    cp: int


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that decides a run and the files it leaves; a job that cannot be raises UsageError.

    A step of a schedule that never drains is emitted as its order says, with a flush behind it.

    Attributes:
        schedule: a name or alias of the registry; with `orders` any text.
        p: pipeline ranks.
        m: micro-batches a step, both directions together where a pipeline runs both ways.
        v: chunks a rank holds, for each direction.
        slices: pieces that a micro-batch is cut into along its sequence.
        group: micro-batches that an interleaved schedule takes through a chunk at a time; None is usual.
        variant: which of the schedule's textbook orders, the usual one being 0.
        orders: the actions of every rank, in order, in place of a schedule; then p, m, v and slices follow from them.
        together: with `orders`, the actions that run as one block with the one behind them.
        d: data-parallel replicas.
        t: tensor-parallel ranks a stage.
        c: context-parallel ranks a stage, which pass keys and values round a ring under every attention.
        forward_ns: forward time per rank and micro-batch, all chunks together.
        backward_ns: full backward time, likewise.
        weight_fraction: share of the backward that is W, where it is split.
        stage_times: times of every stage, in place of the three above; empty for stages alike.
        scale: factor per stage (p v of them) or per rank (p of them); empty for balanced.
        slow: pairs of a glob over `step.replica.action` (`*.1.2F*`) and a factor: long micro-batches, late steps.
        straggler: pairs of a global rank and a factor on all it does, and with it its tensor-parallel peers.
        jitter: relative sigma of every action's time.
        p2p_ns: how long a transfer moves bytes.
        edges_ns: the same for each pair of neighbouring ranks; between other ranks the longest of them.
        host_gap_ns: idle time before each action, after its input arrived.
        host_gaps_ns: the same for each pipeline rank, in place of it; empty for ranks alike.
        pause_ns: how long a host stands still that pauses, as for garbage collection.
        pause_chance: how likely it does so in a forward, each rank by itself: before it, or behind its first kernel.
        offload_ns: how long the copy of a forward's activations to the host takes, which begins at its end, and that
            of others back for the next backward, which begins as soon as a backward's launches are through; each way
            has a stream of its own, and nobody waits for it.
        overrun_ns: how much too late a recorded end of a compute kernel lies that is wrong.
        overrun_chance: how likely one is, each by itself.
        recv_ahead: by how many actions earlier than needed a receive is posted; the length of an order or more posts
            all of a step's receives at its beginning.
        recv_streams: streams that the receives of one input take in turns: those of several spin side by side.
        steps: optimizer steps recorded.
        ramp: micro-batches of each of them, in place of both; m is then the commonest, of equals the largest.
        eval_steps: the steps, from 0, that have an evaluation: forwards alone, stage by stage, without gradients.
        eval_m: micro-batches of it.
        eval_at: whether it is a step of its own behind the other, or stands in its step before or behind the training.
        zero_grad: what each rank computes before its first action of a training step, outside all labels: gradients
            filled with zeros, one kernel each or many in one, or weights cast.
        zero_grad_ns: how long, where it does.
        marks: `ProfilerStep#N` a step, or, of a profiler that is called behind each micro-batch, as many a step as
            it has micro-batches, or none.
        first_step: number in the first `ProfilerStep#N`.
        dp_ns: gradient all-reduce after the pipeline, where d or c > 1.
        dp_early: start it at the rank's own end, inside the window, instead of after the whole pipeline.
        dp_buckets: buckets of every stage, reduced one by one under its last backward, in place of the one all-reduce;
            all of them of a rank together take `dp_ns`. 0 for none.
        dp_op: how gradients are reduced.
        optimizer_ns: optimizer kernels after the pipeline. Without backwards there is none, and no gradients.
        tp_share: share of an action spent in tensor-parallel all-reduces, where t > 1.
        in_stage: what the ranks of a stage do in place of them: an all-to-all is a kernel that sends and receives.
        kernels: compute kernels (layers) an action.
        stage_layers: the same for every stage, in place of it; empty for stages alike.
        kernel_gap_ns: idle time between the kernels of an action.
        run_ahead_ns: how far the host launches ahead of the GPU, where no host gap is asked for.
        ranks_a_host: ranks fill one host after the other; those of one share its clock, so their skew should be alike.
        skew_ns: clock offset per global rank; missing ones are 0.
        drift_ppm: clock drift per global rank; missing ones are 0.
        labels: PP:sFm ranges, GPipe's `Forward i`, which names no chunk, or none.
        layer_labels: a range `layers.n` around each layer of a forward, counted over the model.
        comm_labels: PP:sRECV_Fm and PP:sSEND_Fm too.
        autograd: write sequence numbers and fwdbwd flows.
        p2p_args: where peers of sends and receives are written.
        announced: each message follows a small one that tells its shape.
        named_calls: torch's operators and ranges, and NCCL's, say which call of a group a kernel is.
        launches: launches have the numbers of their kernels, or number 0 like them, or are cut out of the file.
        host: what is recorded of the host: everything, the launches of kernels alone, or nothing at all.
        kernel_names: what kernels are called: as torch does with input and weight gradients alike, with the two
            told apart, or so that no word tells a forward from a backward.
        calls: which calls of communication the host's side holds: all, `record_param_comms` alone, torch's operators
            alone, ranges alone, or none.
        comm_names: what kernels of communication are called: as NCCL does, or all alike and without arguments, as RCCL
            does; then `p2p_args` say whether the calls have any.
        recompute: a backward that needs gradients of its inputs runs the kernels of its forward again before its own.
        fused: a send and the next receive with one peer are one kernel, which blocks the rank.
        backend: GPU kernels and launches, or operators only.
        era: how time stamps are written.
        metadata: where the job's metadata stand in the file.
        pg_desc: flavour of the process group descriptions.
        groups_told: whether anything names groups and their members; or calls tell what they do and the sizes of
            message and group alone, as of a torch before 2.2 and an NCCL before 2.25; or collectives not even that.
        gpu_annotations: write the GPU's copies of annotations.
        missing: global ranks whose file is not written.
        neutral_names: file names that tell no rank.
        compress: write .json.gz rather than .json.
        seed: of every random number.
        recorder: what records the run: one for all ranks, or one for each of them. An export of Nsight Systems knows
            `labels`, `comm_labels` and `autograd` as NVTX ranges, operators only with `autograd`, NCCL's own ranges
            unless `host` leaves them out; `era`, `pg_desc`, `gpu_annotations` and `compress` are Kineto's.
        payloads: how an export holds what NCCL's ranges tell (communicators, sizes, peers): as JSON, as bytes, or not,
            as is usual. With `p2p_args` none there is nothing to hold, as of an NCCL older than 2.16.
        one_file_a_host: all ranks of a host that nsys records are processes of one export, rather than one each.
        one_file: all ranks that Kineto records in one list of events, with the metadata of the last: one behind the
            other as they are, with ids of processes shifted by one offset a rank, or so and sorted by time.
        one_gpu_visible: each process sees its own GPU only, and calls it 0.
        one_process: the ranks are GPUs of one process, which drives each by threads of its own and moves activations
            by copies; what records it writes one file.
        cycles: recordings of which each holds as many of the steps, in files of their own.
        rest_ns: how much time lies between them.
        count_anew: each of them numbers its steps from `first_step` on.
    """

    schedule: str = "1f1b"
    p: int = 4
    m: int = 8
    v: int = 1
    slices: int = 1
    group: int | None = None
    variant: int = 0
    orders: tuple[Order, ...] = ()
    together: frozenset[Action] = frozenset()
    d: int = 1
    t: int = 1
    c: int = 1
    forward_ns: int = 10_000_000
    backward_ns: int = 20_000_000
    weight_fraction: float = 0.5
    stage_times: tuple[StageWork, ...] = ()
    scale: tuple[float, ...] = ()
    slow: tuple[tuple[str, float], ...] = ()
    straggler: tuple[tuple[int, float], ...] = ()
    jitter: float = 0.0
    p2p_ns: int = 0
    edges_ns: tuple[int, ...] = ()
    host_gap_ns: int = 0
    host_gaps_ns: tuple[int, ...] = ()
    pause_ns: int = 0
    pause_chance: float = 0.0
    offload_ns: int = 0
    overrun_ns: int = 0
    overrun_chance: float = 0.0
    recv_ahead: int = 0
    recv_streams: int = 1
    steps: int = 2
    ramp: tuple[int, ...] = ()
    eval_steps: tuple[int, ...] = ()
    eval_m: int = 2
    eval_at: EvalAt = "between"
    zero_grad: ZeroGrad = "none"
    zero_grad_ns: int = 800_000
    marks: Marks = "step"
    first_step: int = 0
    dp_ns: int = 4_000_000
    dp_early: bool = False
    dp_buckets: int = 0
    dp_op: ReduceOp = "all-reduce"
    optimizer_ns: int = 3_000_000
    tp_share: float = 0.15
    in_stage: InStage = "all-reduce"
    kernels: int = 4
    stage_layers: tuple[int, ...] = ()
    kernel_gap_ns: int = 0
    run_ahead_ns: int = 500_000
    ranks_a_host: int = 8
    skew_ns: tuple[int, ...] = ()
    drift_ppm: tuple[float, ...] = ()
    labels: Labels = "pp"
    comm_labels: bool = False
    layer_labels: bool = False
    autograd: bool = True
    p2p_args: P2PArgs = "kernel"
    announced: bool = False
    named_calls: bool = True
    launches: Launches = "joined"
    host: Host = "all"
    kernel_names: KernelNames = "torch"
    calls: Calls = "all"
    comm_names: CommNames = "nccl"
    recompute: bool = False
    fused: bool = False
    backend: Backend = "cuda"
    era: Era = "relative"
    metadata: Metadata = "before"
    pg_desc: Descriptions = "megatron"
    groups_told: GroupsTold = "named"
    gpu_annotations: bool = True
    missing: tuple[int, ...] = ()
    neutral_names: bool = False
    compress: bool = True
    seed: int = 0
    recorder: Recorder | tuple[Recorder, ...] = "kineto"
    payloads: Payloads = "none"
    one_file_a_host: bool = False
    one_file: OneFile = "no"
    one_gpu_visible: bool = False
    one_process: bool = False
    cycles: int = 1
    rest_ns: int = 5_000_000_000
    count_anew: bool = False

    def __post_init__(self) -> None:
        """Keep lists as tuples, take the sizes of explicit orders, and refuse jobs that no framework could run."""
        for name, value in settled(self).items():
            object.__setattr__(self, name, value)
        check(self)

    @property
    def shape(self) -> Shape:
        """The size of the pipeline."""
        return Shape(self.p, self.m, self.v, self.slices, self.group)

    @property
    def family(self) -> Family:
        """The schedule; of explicit orders there is none to ask for."""
        return find(self.schedule)

    @cached_property
    def kinds(self) -> frozenset[Kind]:
        """Kinds of the actions that run."""
        if self.orders:
            return frozenset(action.kind for order in self.orders for action in order)
        return self.family.kinds

    @property
    def opening_ns(self) -> int:
        """How long a rank computes before its first action of a training step."""
        return 0 if self.zero_grad == "none" else self.zero_grad_ns

    @property
    def trains(self) -> bool:
        """Whether there are backwards, and thus gradients and an optimizer."""
        return self.kinds != {Kind.F}

    @cached_property
    def stages(self) -> int:
        """Stages of the whole pipeline."""
        if self.orders:
            return 1 + max(action.stage for order in self.orders for action in order)
        return self.p * self.v

    @property
    def world(self) -> int:
        """Ranks of the whole job."""
        return self.p * self.d * self.c * self.t

    def late_ns(self, pp: int) -> int:
        """How late the hosts of a pipeline rank are for each action."""
        return self.host_gaps_ns[pp] if self.host_gaps_ns else self.host_gap_ns

    def gap_ns(self, pp: int) -> int:
        """Idle time before each action of a pipeline rank, what the backend needs included."""
        return self.late_ns(pp) + (CPU_GAP_NS if self.backend == "cpu" else 0)

    @cached_property
    def layers(self) -> tuple[int, ...]:
        """Layers of every stage."""
        return self.stage_layers or (self.kernels,) * self.stages

    def first_layer(self, stage: int) -> int:
        """The number of a stage's first layer, counted over the model."""
        return sum(self.layers[:stage])

    def pattern(self, stage: int) -> tuple[bool, ...]:
        """For each kernel of an action, whether it is an all-reduce: one after half of the kernels, one at the end."""
        layers = self.layers[stage]
        if self.t == 1:
            return (False,) * layers
        half = layers // 2
        return (False,) * half + (True,) * (half > 0) + (False,) * (layers - half) + (True,)

    def runs_again(self, kind: Kind) -> bool:
        """Whether an action of that kind begins with the kernels of its forward."""
        return self.recompute and kind in {Kind.B, Kind.I}

    def pieces(self, action: Action) -> int:
        """Kernels and all-reduces of an action."""
        return len(self.pattern(action.stage)) * (2 if self.runs_again(action.kind) else 1)

    @property
    def ticks(self) -> int:
        """Host work units that the shortest action must last, for its kernels to be launched ahead."""
        pieces = max(len(self.pattern(stage)) for stage in range(self.stages)) * (2 if self.recompute else 1)
        passed = (self.c - 1) * -(-pieces // 4)
        return 8 * pieces + (80 if self.announced else 40) + 4 * (self.dp_buckets + passed)

    def post_ns(self, place: int) -> int:
        """How long after a block's end the message is posted that has `place` others before it."""
        return CPU_POST_NS + CPU_NEXT_NS * place if self.backend == "cpu" else 0

    def moves_ns(self, source: int, target: int) -> int:
        """How long a transfer between two pipeline ranks moves bytes."""
        if not self.edges_ns:
            return self.p2p_ns
        return self.edges_ns[min(source, target)] if abs(source - target) == 1 else max(self.edges_ns)

    def rank(self, pp: int, dp: int, tp: int, cp: int = 0) -> int:
        """Global rank: tensor-parallel ranks are neighbours, pipeline ranks furthest apart."""
        return tp + self.t * (cp + self.c * (dp + self.d * pp))

    def place(self, rank: int) -> Place:
        """Where a global rank sits."""
        rank, tp = divmod(rank, self.t)
        rank, cp = divmod(rank, self.c)
        return Place(*divmod(rank, self.d), tp, cp)

    def apart(self, rank: int) -> int:
        """A number that ranks have in common which pass keys and values round, and do all else at the same moments."""
        return self.rank(*self.place(rank)._replace(cp=0))

    @cached_property
    def recorders(self) -> tuple[Recorder, ...]:
        """What records each global rank."""
        return (self.recorder,) * self.world if isinstance(self.recorder, str) else self.recorder

    def host_of(self, rank: int) -> int:
        """The host of a global rank, counted from 0."""
        return rank // self.ranks_a_host

    def factor(self, rank: int, stage: int) -> float:
        """How much longer than the mean a stage works on a pipeline rank."""
        if not self.scale:
            return 1.0
        return self.scale[stage if len(self.scale) == self.stages else rank]
