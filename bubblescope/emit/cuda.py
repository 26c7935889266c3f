"""One rank's run on a GPU: a host thread that launches ahead, the autograd thread, and the streams."""

from __future__ import annotations

from typing import Literal

from bubblescope.emit.cuda_comms import COPY_STREAM, DP_STREAM, MESSAGE_TICKS, TP_STREAM, CudaComms
from bubblescope.emit.job import Job
from bubblescope.emit.marks import Marks
from bubblescope.emit.names import (
    LAYER,
    REDUCE,
    STEP_KERNEL,
    ZERO,
    attends,
    block_label,
    kernel_name,
    layer_label,
    message_label,
    step_label,
)
from bubblescope.emit.pieces import Piece, cut
from bubblescope.emit.run import Done, Pass, Ran, Reduction, Run, Step
from bubblescope.emit.simulate import TICK_NS, shortest
from bubblescope.emit.tape import COMPUTE_STREAM, Launch, Node, Tape
from bubblescope.model.actions import Action, Kind

__all__ = ["CudaRank"]

MOST_NS = 4_000  # of a unit of the host's work
GAP_TICKS = 17  # units between posting the receives of a block and launching its first kernel


class CudaRank(CudaComms):
    """Lays steps on one rank's tape."""

    def __init__(self, job: Job, rank: int, tape: Tape) -> None:
        self.place = job.place(rank)
        gap = job.late_ns(self.place.pp)
        late = gap >= GAP_TICKS * TICK_NS  # a smaller gap is none that a launch could make
        slack = gap // (GAP_TICKS + (2 * MESSAGE_TICKS if job.announced else 0)) if late else MOST_NS
        super().__init__(job, rank, tape, max(TICK_NS, min(MOST_NS, shortest(job) // job.ticks, slack)))
        self.lead = 3 * self.unit + (0 if late else job.run_ahead_ns)
        self.marks = Marks(job, tape)
        self.nodes: dict[Action, list[Node]] = {}
        self.due: dict[Action | None, list[Reduction]] = {}

    def step(self, step: Step) -> None:
        """Write one step: its mark, and its passes."""
        runs = [part.runs[self.place.dp] for part in step.passes]
        self.marks.step(step, [run.lanes[self.place.pp] for run in runs])
        for part, run in zip(step.passes, runs, strict=True):
            self._pass(part, run, run.lanes[self.place.pp])

    def _pass(self, part: Pass, run: Run, lane: list[Ran]) -> None:
        """Write what leads to the first action, the pipeline, and what follows."""
        self.at = part.start + self.unit
        self.tape.grads = not part.evaluates
        if part.optimizer is not None:
            self._spend("Optimizer.zero_grad#AdamW.zero_grad", 2)
            self._zero(part.release)
        self.nodes.clear()
        self.due.clear()
        for reduction in part.dp.get((self.place.pp, self.place.dp), ()):
            self.due.setdefault(reduction.under, []).append(reduction)
        for k, ran in enumerate(lane):
            opened = self.at
            self._receives(run, lane, k)
            self._block(ran)
            self._sends(run, lane, k)
            if self.job.labels == "torch":
                self.tape.mark(step_label(ran.parts[0].action), opened, self.at)
                self.at += self.unit
            self.marks.block(part, lane, k, self.at)
        self._after(part)

    def _spend(self, name: str, units: int) -> None:
        self.tape.mark(name, self.at, self.at + units * self.unit)
        self.at += (units + 1) * self.unit

    def _zero(self, release: int) -> None:
        """What a rank computes before its first action, outside of all labels."""
        if self.job.zero_grad == "none":
            return
        what, tape, unit = ZERO[self.job.zero_grad], self.tape, self.unit
        took = self.job.opening_ns // what.times
        for begin in (release + took * i for i in range(what.times)):
            at = self.at
            tape.op(what.outer, at, at + 2 * unit)
            owner = tape.op(what.inner, at + unit // 2, at + 2 * unit - unit // 4)
            tape.kernel(what.kernel, (begin, begin + took), Launch(at + unit, at + unit + unit // 2, owner))
            self.at += 2 * unit

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
            tape.number += tape.grads
            self.at += 2 * unit
            self._pass_round(piece, piece.part, tape.main)

    def _backward(self, action: Action, pieces: list[Piece]) -> None:
        """Nodes run in decreasing order of their numbers, on the autograd engine's thread."""
        unit, tape = self.unit, self.tape
        nodes = iter(reversed(self.nodes[action._replace(kind=Kind.F)]))
        due = self.due.get(action, [])
        for piece in pieces:
            while due and due[0].begin < piece.begin:
                self._gradients(due.pop(0), tape.engine)
            if piece.comm:
                self._of_stage(piece, tape.engine)
                continue
            if piece.again:
                self._recompute(piece)
                continue
            at, node = self.at, next(nodes)
            part = self.job.layers[action.stage] - 1 - piece.part
            layer = LAYER[part % len(LAYER)]
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
            if action.kind != Kind.W:
                self._pass_round(piece, part, tape.engine)
        for reduction in due:
            self._gradients(reduction, tape.engine)

    def _recompute(self, piece: Piece) -> None:
        """A kernel of the forward, run again by the autograd engine; nothing counts its graph here."""
        unit, tape, at, layer = self.unit, self.tape, self.at, LAYER[piece.part % len(LAYER)]
        name = "autograd::engine::evaluate_function: CheckpointFunctionBackward"
        tape.op(name, at, at + 2 * unit, backward=True)
        owner = tape.op(layer.inner, at + unit // 2, at + 2 * unit - unit // 4, backward=True)
        launch = Launch(at + unit, at + unit + unit // 2, owner, tape.engine)
        tape.kernel(kernel_name(self.job, layer, Kind.F), (piece.begin, piece.end), launch)
        self.at += 2 * unit
        self._pass_round(piece, piece.part, tape.engine)

    def _pass_round(self, piece: Piece, part: int, tid: int) -> None:
        """What the ranks of a context pass round under an attention."""
        if self.job.c > 1 and attends(part):
            self._ring(piece, tid)

    def _gradients(self, reduction: Reduction, tid: int) -> None:
        """One reduction over the replicas."""
        self._reduce((reduction.begin, reduction.end), tid, DP_STREAM, "dp", REDUCE[self.job.dp_op])

    def _of_stage(self, piece: Piece, tid: int) -> None:
        """What the ranks of a stage do together."""
        if self.job.in_stage == "all-reduce":
            self._reduce((piece.begin, piece.end), tid, TP_STREAM, "tp")
        else:
            self._exchange((piece.begin, piece.end), tid)

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

    def _after(self, done: Pass) -> None:
        """The one reduction of all gradients, and the optimizer."""
        for reduction in self.due.get(None, ()):
            self._wait(reduction.begin)
            self._gradients(reduction, self.tape.main)
        if done.optimizer is None:
            return
        self._wait(done.optimizer[0])
        unit, tape, at = self.unit, self.tape, self.at
        note = tape.mark("Optimizer.step#AdamW.step", at, at + 8 * unit)
        begin, end = done.optimizer
        middle = (begin + end) // 2
        for i, span in enumerate(((begin, middle), (middle, end))):
            first = at + unit + 3 * i * unit
            owner = tape.op("aten::_fused_adamw_", first, first + 2 * unit, number=tape.number)
            tape.kernel(STEP_KERNEL, span, Launch(first + unit // 2, first + unit, owner))
        tape.project("Optimizer.step#AdamW.step", done.optimizer, note, COMPUTE_STREAM)
        self.at += 9 * unit
