"""One rank's run on a GPU: a host thread that launches ahead, the autograd thread, and the streams."""

from __future__ import annotations

from typing import Literal

from bubblescope.emit.announce import TENSOR, Content, messages
from bubblescope.emit.groups import communicator, groups_of, message_args
from bubblescope.emit.job import Job
from bubblescope.emit.names import (
    LAYER,
    P2P_KERNEL,
    REDUCE_KERNEL,
    STEP_KERNEL,
    block_label,
    kernel_name,
    layer_label,
    message_label,
    step_label,
    step_mark,
)
from bubblescope.emit.pieces import Piece, cut
from bubblescope.emit.run import Done, Ran, Run, Span, Step, Transfer
from bubblescope.emit.simulate import START_NS, TICK_NS, shortest
from bubblescope.emit.tape import COMPUTE_STREAM, Args, Launch, Node, Tape
from bubblescope.model.actions import Action, Kind

__all__ = ["CudaRank"]

SUM = 0  # as NCCL numbers reductions
JOIN_NS = 100_000  # between one communicator and the next
MOST_NS = 4_000  # of a unit of the host's work
MESSAGE_TICKS = 6  # units that a message takes, its label included
GAP_TICKS = 17  # units between posting the receives of a block and launching its first kernel
TP_STREAM, DP_STREAM = 36, 40
COPY_STREAM = {"DtoH": 13, "HtoD": 14, "PtoP": 23}
FIRST_STREAM = {(True, True): 20, (True, False): 24, (False, True): 28, (False, False): 32}
"""Of the first stage's messages, by whether they are forwards and whether they are sends."""


class CudaRank:
    """Lays steps on one rank's tape; `at` is where the launching thread stands, in units of its work."""

    def __init__(self, job: Job, rank: int, tape: Tape) -> None:
        self.job, self.rank, self.tape = job, rank, tape
        self.place = job.place(rank)
        self.groups = groups_of(job, rank)
        self.communicators = {axis: communicator(job, group) for axis, group in self.groups.items()}
        gap = job.late_ns(self.place.pp)
        late = gap >= GAP_TICKS * TICK_NS  # a smaller gap is none that a launch could make
        slack = gap // (GAP_TICKS + (2 * MESSAGE_TICKS if job.announced else 0)) if late else MOST_NS
        self.unit = max(TICK_NS, min(MOST_NS, shortest(job) // job.ticks, slack))
        self.lead = 3 * self.unit + (0 if late else job.run_ahead_ns)
        self.at = 0
        self.nodes: dict[Action, list[Node]] = {}
        self.busy: dict[int, int] = {}
        self.streams: dict[tuple[bool, bool, int, int], int] = {}
        self._join()

    def step(self, step: Step) -> None:
        """Write one step: its annotation, the pipeline, and what follows."""
        run, name = step.runs[self.place.dp], step_mark(self.job, step.number)
        marks = not (self.job.one_process and self.rank)  # a process has one profiler, in its first thread
        outer = self.tape.mark(name, step.start, step.end) if marks else None
        self.at = step.start + self.unit
        if step.optimizer is not None:
            self._spend("Optimizer.zero_grad#AdamW.zero_grad", 2)
        self.nodes.clear()
        lane = run.lanes[self.place.pp]
        for k, ran in enumerate(lane):
            opened = self.at
            self._receives(run, lane, k)
            self._block(ran)
            self._sends(run, lane, k)
            if self.job.labels == "torch":
                self.tape.mark(step_label(ran.parts[0].action), opened, self.at)
                self.at += self.unit
        self._after(step)
        if outer is not None:
            self.tape.project(name, (lane[0].start, lane[-1].end), outer, COMPUTE_STREAM)

    def _join(self) -> None:
        """Make the communicators, before the first step; no group of one rank has any."""
        groups = [] if self.job.one_process else [g for g in self.groups.values() if len(g.ranks) > 1]
        for behind, group in enumerate(groups, start=-len(groups)):
            begin = START_NS + behind * JOIN_NS
            sizes = (len(group.ranks), group.ranks.index(self.rank), self.tape.device)
            span = (begin, begin + JOIN_NS // 2)
            self.tape.call("ncclCommInitRank", span, self.communicators[group.axis], *sizes)

    def _spend(self, name: str, units: int) -> None:
        self.tape.mark(name, self.at, self.at + units * self.unit)
        self.at += (units + 1) * self.unit

    def _wait(self, moment: int) -> None:
        """Launch no earlier than the lead before a moment."""
        self.at = max(self.at, moment - self.lead)

    def _receives(self, run: Run, lane: list[Ran], k: int) -> None:
        """Post what is due before the k-th block; a fused receive went with its send, and a copy has none."""
        if self.job.one_process:
            return
        ahead = self.job.recv_ahead
        blocks = lane[: ahead + 1] if k == 0 else lane[k + ahead : k + ahead + 1]
        actions = [action for ran in blocks if not ran.fused for action in ran.actions]
        due = [run.transfers[action] for action in actions if action in run.transfers]
        for behind, transfer in enumerate(due, start=1 - len(due)):
            ticks = MESSAGE_TICKS * (2 if self.job.announced else 1)
            self._wait(transfer.received + behind * ticks * self.unit)
            self._labelled(message_label("RECV", transfer.consumer), transfer, sends=False)

    def _labelled(self, name: str, transfer: Transfer, *, sends: bool) -> None:
        begin = self.at
        for message, content in messages(self.job, transfer, sends=sends):
            self._message(message, content, sends=sends)
        if self.job.comm_labels:
            self.tape.mark(name, begin - self.unit // 4, self.at)
            self.at += self.unit

    def _message(self, transfer: Transfer, content: Content, *, sends: bool) -> None:
        """One send or receive that is a kernel of its own."""
        unit, at = self.unit, self.at
        owner, extra = self._post(transfer, content, sends=sends)
        mine, peer = (transfer.source, transfer.target) if sends else (transfer.target, transfer.source)
        name = f"nccl:send {mine}->{peer}" if sends else f"nccl:recv {mine}<-{peer}"
        note = self.tape.mark(name, at + 3 * unit // 2, at + 3 * unit)
        launch = Launch(at + 2 * unit, at + 2 * unit + unit // 2, owner)
        self._told(transfer, content, (launch.begin - unit // 4, launch.end + unit // 4), sends=sends)
        stream = self._stream(transfer, sends=sends)
        begin = max(transfer.sent if sends else transfer.received, launch.end)
        span = self._shown((begin, transfer.end), stream)
        on_kernel = extra if self.job.p2p_args == "kernel" else None
        self.tape.kernel(P2P_KERNEL, span, launch, stream=stream, extra=on_kernel)
        self.tape.project(name, span, note, stream)
        self.at += 5 * unit

    def _hand_over(self, transfer: Transfer) -> None:
        """Move a block's output to another GPU of the process."""
        unit, at = self.unit, self.at
        owner = self.tape.op("aten::to", at, at + 4 * unit)
        span = self._shown((transfer.begin, transfer.end), COPY_STREAM["PtoP"])
        self.tape.copy("PtoP", span, Launch(at + unit, at + 2 * unit, owner), COPY_STREAM["PtoP"])
        self.at += 5 * unit

    def _told(self, transfer: Transfer, content: Content, span: Span, *, sends: bool) -> None:
        """The call of NCCL behind a send or receive; the peer is counted in the communicator."""
        peer = transfer.target if sends else transfer.source
        self.tape.call("ncclSend" if sends else "ncclRecv", span, self.communicators["pp"], content.bytes, peer)

    def _post(self, transfer: Transfer, content: Content, *, sends: bool) -> tuple[Args, Args]:
        """The operators of a message, four units long; their arguments tell the peer where the job says so."""
        unit, at, tape = self.unit, self.at, self.tape
        peer = transfer.target if sends else transfer.source
        group = self.groups["pp"]
        extra = message_args(group, "send" if sends else "recv", content.elements) | {"dtype": content.dtype}
        extra["Dst Rank" if sends else "Src Rank"] = group.ranks[peer]
        tape.op("c10d::send" if sends else "c10d::recv_", at, at + 4 * unit, number=tape.number)
        owner = tape.op("record_param_comms", at + unit, at + 7 * unit // 2)
        if self.job.p2p_args == "none":
            owner["Input Dims"] = [[], [], [], [], [], [], []]
        else:
            owner |= extra | {"Rank": peer, "Global rank start": group.ranks[0], "Global rank stride": 1}
        return owner, extra

    def _stream(self, transfer: Transfer, *, sends: bool) -> int:
        """The outputs of a stage on a rank have their own stream on either side: chunks run in no common order."""
        way = (transfer.producer.kind == Kind.F, sends)
        known = sum(stream[:2] == way for stream in self.streams)
        output = (*way, transfer.source, transfer.producer.stage)
        return self.streams.setdefault(output, FIRST_STREAM[way] + 24 * known)

    def _shown(self, span: Span, stream: int) -> Span:
        """When a communication kernel runs: a stream runs one at a time, and none takes no time."""
        begin = max(span[0], self.busy.get(stream, 0))
        self.busy[stream] = end = max(span[1], begin + 1)
        return begin, end

    def _block(self, ran: Ran) -> None:
        """Launch the kernels of a block."""
        self._wait(ran.start)
        opened, forwards = self.at, list[Piece]()
        self.at += self.unit
        for part in ran.parts:
            pieces = cut(self.job, part, self.rank)
            if part.action.kind == Kind.F:
                self._forward(part, pieces)
                forwards += [piece for piece in pieces if not piece.comm]
                self._copy("DtoH", part.end, backward=False)
            else:
                self._backward(part.action, pieces)
                if part.action.kind != Kind.W:
                    self._copy("HtoD", self.at + self.unit, backward=True)
        if self.job.labels == "pp":
            name = block_label(ran.actions)
            owner = self.tape.mark(name, opened, self.at)
            if forwards:
                self.tape.project(name, (forwards[0].begin, forwards[-1].end), owner, COMPUTE_STREAM)
        self.at += self.unit

    def _copy(self, way: Literal["HtoD", "DtoH"], begin: int, *, backward: bool) -> None:
        """Move activations to the host or back, beside all else, where the job does so at all."""
        if not self.job.offload_ns:
            return
        at, unit, stream = self.at, self.unit, COPY_STREAM[way]
        owner = self.tape.op("aten::copy_", at, at + unit, backward=backward)
        launch = Launch(at + unit // 4, at + unit // 2, owner, self.tape.engine if backward else None)
        begin = max(begin, self.busy.get(stream, 0))
        self.tape.copy(way, self._shown((begin, begin + self.job.offload_ns), stream), launch, stream)
        self.at += unit

    def _forward(self, done: Done, pieces: list[Piece]) -> None:
        unit, tape = self.unit, self.tape
        nodes = self.nodes[done.action] = []
        for piece in pieces:
            if done.pause:
                self._wait(piece.begin)
            if self.job.layer_labels:
                tape.mark(layer_label(self.job, done.action, piece), self.at, self.at + 2 * unit)
            if piece.comm:
                self._of_stage(piece, tape.main)
                continue
            at, layer = self.at, LAYER[piece.part % len(LAYER)]
            tape.op(layer.outer, at, at + 2 * unit, number=tape.number)
            owner = tape.op(layer.inner, at + unit // 2, at + 2 * unit - unit // 4, number=tape.number)
            launch = Launch(at + unit, at + unit + unit // 2, owner)
            tape.kernel(kernel_name(self.job, layer, Kind.F), (piece.begin, piece.end), launch)
            nodes.append(Node(tape.number, at))
            tape.number += 1
            self.at += 2 * unit

    def _backward(self, action: Action, pieces: list[Piece]) -> None:
        """Nodes run in decreasing order of their numbers, on the autograd engine's thread."""
        unit, tape = self.unit, self.tape
        nodes = iter(reversed(self.nodes[action._replace(kind=Kind.F)]))
        for piece in pieces:
            if piece.comm:
                self._of_stage(piece, tape.engine)
                continue
            if piece.again:
                self._recompute(piece)
                continue
            at, node = self.at, next(nodes)
            layer = LAYER[(self.job.layers[action.stage] - 1 - piece.part) % len(LAYER)]
            name, number = layer.node, node.number
            tape.op(f"autograd::engine::evaluate_function: {name}", at, at + 2 * unit, number=number, backward=True)
            tape.op(name, at + unit // 4, at + 2 * unit - unit // 4, number=number, backward=True)
            owner = tape.op(layer.inner, at + unit // 2, at + 2 * unit - unit // 2, backward=True)
            launch = Launch(at + unit, at + unit + unit // 4, owner, tape.engine)
            tape.kernel(kernel_name(self.job, layer, action.kind), (piece.begin, piece.end), launch)
            if action.kind != Kind.W:
                tape.link(node, at)
            if layer.weights and action.kind != Kind.I:
                name = "torch::autograd::AccumulateGrad"
                tape.op(f"autograd::engine::evaluate_function: {name}", at + 2 * unit, at + 3 * unit, backward=True)
            self.at += 3 * unit

    def _recompute(self, piece: Piece) -> None:
        """A kernel of the forward, run again by the autograd engine; nothing counts its graph here."""
        unit, tape, at, layer = self.unit, self.tape, self.at, LAYER[piece.part % len(LAYER)]
        name = "autograd::engine::evaluate_function: CheckpointFunctionBackward"
        tape.op(name, at, at + 2 * unit, backward=True)
        owner = tape.op(layer.inner, at + unit // 2, at + 2 * unit - unit // 4, backward=True)
        launch = Launch(at + unit, at + unit + unit // 2, owner, tape.engine)
        tape.kernel(kernel_name(self.job, layer, Kind.F), (piece.begin, piece.end), launch)
        self.at += 2 * unit

    def _of_stage(self, piece: Piece, tid: int) -> None:
        """What the ranks of a stage do together."""
        if self.job.in_stage == "all-reduce":
            self._reduce(piece, tid, TP_STREAM, "tp")
        else:
            self._exchange(piece, tid)

    def _reduce(self, piece: Piece, tid: int, stream: int, axis: str) -> None:
        """An all-reduce of a group."""
        tape, group = self.tape, self.communicators[axis]
        extra = message_args(self.groups[axis], "allreduce", TENSOR.elements)
        launch, note = self._collective("allreduce_", "nccl:all_reduce", extra, tid)
        told = (launch.begin - self.unit // 4, launch.end + self.unit // 4)
        tape.call("ncclAllReduce", told, group, TENSOR.bytes, SUM, tid=tid)
        span = self._shown((piece.begin, piece.end), stream)
        tape.kernel(REDUCE_KERNEL, span, launch, stream=stream, extra=extra)
        tape.project("nccl:all_reduce", span, note, stream)

    def _exchange(self, piece: Piece, tid: int) -> None:
        """An all-to-all of a stage: torch sends to and receives from each member, in one kernel."""
        tape, unit, told = self.tape, self.unit, self.job.p2p_args
        members = self.groups["tp"].ranks
        extra = message_args(self.groups["tp"], "all_to_allv", TENSOR.elements)
        launch, note = self._collective("alltoall_base_", "nccl:all_to_all", extra if told != "none" else {}, tid)
        tape.call("ncclGroupStart", (launch.begin - unit // 2, launch.begin - unit // 4), tid=tid)
        for peer in range(len(members)):
            for name in ("ncclSend", "ncclRecv"):
                span = (launch.begin - unit // 4, launch.begin)
                tape.call(name, span, self.communicators["tp"], TENSOR.bytes // len(members), peer, tid=tid)
        tape.call("ncclGroupEnd", (launch.begin, launch.end + unit // 4), tid=tid)
        span = self._shown((piece.begin, piece.end), TP_STREAM)
        tape.kernel(P2P_KERNEL, span, launch, stream=TP_STREAM, extra=extra if told == "kernel" else None)
        tape.project("nccl:all_to_all", span, note, TP_STREAM)

    def _collective(self, op: str, name: str, extra: Args, tid: int) -> tuple[Launch, Args]:
        """The host's part of a call of a group: its launch, and torch's range."""
        unit, at, tape = self.unit, self.at, self.tape
        backward = tid == tape.engine
        tape.op(f"c10d::{op}", at, at + 2 * unit, number=None if backward else tape.number, backward=backward)
        owner = tape.op("record_param_comms", at + unit // 4, at + 2 * unit - unit // 4, backward=backward)
        owner |= extra
        note = tape.mark(name, at + unit // 2, at + 2 * unit - unit // 2, tid=tid)
        self.at += 3 * unit
        return Launch(at + unit, at + unit + unit // 4, owner, tid), note

    def _sends(self, run: Run, lane: list[Ran], k: int) -> None:
        """Post a block's outputs, alone or in one kernel with the next receive."""
        follower = lane[k + 1] if k + 1 < len(lane) else None
        for part in lane[k].parts:
            transfer = run.outgoing.get(part.action)
            if transfer is None:
                continue
            self.tape.op("aten::detach", self.at, self.at + self.unit // 2, number=self.tape.number)
            self.at += self.unit
            if self.job.one_process:
                self._hand_over(transfer)
            elif follower is not None and follower.fused:
                self._batch(transfer, run.transfers[follower.parts[0].action])
            else:
                self._labelled(message_label("SEND", part.action), transfer, sends=True)

    def _batch(self, out: Transfer, back: Transfer) -> None:
        """A coalesced send and receive: its kernel carries no arguments, and is launched where NCCL's group ends."""
        sent, received = (messages(self.job, half, sends=half is out) for half in (out, back))
        for (outgoing, content), (incoming, _) in zip(sent, received, strict=True):
            self._batched(outgoing, incoming, content)

    def _batched(self, out: Transfer, back: Transfer, content: Content) -> None:
        """One of its kernels."""
        begin, unit = self.at, self.unit
        self.tape.call("ncclGroupStart", (begin - unit // 2, begin - unit // 4))
        for transfer, sends in ((out, True), (back, False)):
            self._post(transfer, content, sends=sends)
            self._told(transfer, content, (self.at + 2 * unit, self.at + 3 * unit), sends=sends)
            self.at += 5 * unit
        note = self.tape.mark("nccl:coalesced", begin, self.at)
        launch = Launch(self.at - unit, self.at - unit // 2, note)
        self.tape.call("ncclGroupEnd", (launch.begin, self.at - unit // 4))
        stream = self._stream(out, sends=True)
        span = self._shown((max(out.sent, launch.end), max(out.end, back.end)), stream)
        self.tape.kernel(P2P_KERNEL, span, launch, stream=stream)
        self.tape.project("nccl:coalesced", span, note, stream)
        self.at += unit

    def _after(self, step: Step) -> None:
        """Gradient all-reduce and optimizer."""
        if (span := step.dp.get((self.place.pp, self.place.dp))) is not None:
            self._wait(span[0])
            self._reduce(Piece(*span, 0, comm=True), self.tape.main, DP_STREAM, "dp")
        if step.optimizer is None:
            return
        self._wait(step.optimizer[0])
        unit, tape, at = self.unit, self.tape, self.at
        note = tape.mark("Optimizer.step#AdamW.step", at, at + 8 * unit)
        begin, end = step.optimizer
        middle = (begin + end) // 2
        for i, span in enumerate(((begin, middle), (middle, end))):
            first = at + unit + 3 * i * unit
            owner = tape.op("aten::_fused_adamw_", first, first + 2 * unit, number=tape.number)
            tape.kernel(STEP_KERNEL, span, Launch(first + unit // 2, first + unit, owner))
        tape.project("Optimizer.step#AdamW.step", step.optimizer, note, COMPUTE_STREAM)
        self.at += 9 * unit
