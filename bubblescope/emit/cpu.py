"""One rank's run on CPU: operators are the work, the backward runs on the main thread, messages are gloo's."""

from __future__ import annotations

from bubblescope.emit.job import Job
from bubblescope.emit.marks import Marks
from bubblescope.emit.names import LAYER, ZERO, block_label, layer_label, message_label, step_label
from bubblescope.emit.pieces import Piece, cut
from bubblescope.emit.run import Pass, Ran, Reduction, Run, Span, Step, Transfer
from bubblescope.emit.tape import Node, Tape
from bubblescope.model.actions import Action, Kind

__all__ = ["CpuRank"]

OP_NS = 1_500  # a posting operator; its message is on its way 500 ns before it returns


class CpuRank:
    """Lays steps on one rank's tape."""

    def __init__(self, job: Job, rank: int, tape: Tape) -> None:
        self.job, self.rank, self.tape = job, rank, tape
        self.place = job.place(rank)
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
        tape, previous, sends = self.tape, part.release + self.job.opening_ns * (not part.evaluates), 1
        tape.grads = not part.evaluates
        if part.optimizer is not None:
            tape.mark("Optimizer.zero_grad#AdamW.zero_grad", part.start + 5_000, part.start + 20_000)
            self._zero(part.release)
        self.nodes.clear()
        reductions = part.dp.get((self.place.pp, self.place.dp), ())
        self.due = {action: [r for r in reductions if r.under == action] for action in {r.under for r in reductions}}
        for k, ran in enumerate(lane):
            posted = self._receives(run, lane, k)
            self._block(ran, max(previous + self.job.post_ns(sends) + 500, posted))
            self._sends(run, ran)
            if self.job.labels == "torch":
                tape.mark(step_label(ran.parts[0].action), previous + 2_500, ran.end + 2_500)
            previous, sends = ran.end, len(ran.parts)
            self.marks.block(part, lane, k, ran.end + self.job.post_ns(sends) + 500)
        self._after(part)

    def _zero(self, release: int) -> None:
        """What a rank computes before its first action, outside of all labels."""
        if self.job.zero_grad != "none":
            what = ZERO[self.job.zero_grad]
            took = self.job.opening_ns // what.times
            for begin in (release + took * i for i in range(what.times)):
                self.tape.op(what.outer, begin, begin + took)
                self.tape.op(what.inner, *_inside(Piece(begin, begin + took, 0, comm=False)))

    def _receives(self, run: Run, lane: list[Ran], k: int) -> int:
        """Post what is due before the k-th block; hand back when the last posting returned."""
        ahead, at = self.job.recv_ahead, 0
        for ran in lane[: ahead + 1] if k == 0 else lane[k + ahead : k + ahead + 1]:
            for part in ran.parts:
                transfer = run.transfers.get(part.action)
                if transfer is not None:
                    at = max(at, transfer.received)
                    self._message(transfer, at, "recv")
                    at += OP_NS
        return at

    def _sends(self, run: Run, ran: Ran) -> None:
        """Post a block's outputs."""
        for part in ran.parts:
            transfer = run.outgoing.get(part.action)
            if transfer is not None:
                self._message(transfer, transfer.sent, "send")

    def _message(self, transfer: Transfer, posted: int, verb: str) -> None:
        """The operator that posts a message, and the range of gloo's that opens in it and lasts until the end."""
        tape, opened = self.tape, posted + OP_NS - 500
        tape.op("c10d::send" if verb == "send" else "c10d::recv_", posted, posted + OP_NS, number=tape.number)
        tape.mark(f"gloo:{verb}", opened, max(transfer.end, opened + 1))
        if self.job.comm_labels:
            action = transfer.producer if verb == "send" else transfer.consumer
            tape.mark(message_label(verb, action), posted, posted + OP_NS)

    def _block(self, ran: Ran, opened: int) -> None:
        """The operators of a block; torch's range includes the wait for the inputs."""
        if self.job.labels == "pp":
            self.tape.mark(block_label(ran.actions), opened, ran.end + 500)
        for part in ran.parts:
            lay = self._forward if part.action.kind == Kind.F else self._backward
            lay(part.action, cut(self.job, part, self.rank))

    def _forward(self, action: Action, pieces: list[Piece]) -> None:
        tape = self.tape
        nodes = self.nodes[action] = []
        for piece in pieces:
            if self.job.layer_labels:
                tape.mark(layer_label(self.job, action, piece), piece.begin, piece.end)
            if piece.comm:
                self._reduce((piece.begin, piece.end))
                continue
            layer, inner = LAYER[piece.part % len(LAYER)], _inside(piece)
            tape.op(layer.outer, piece.begin, piece.end, number=tape.number)
            tape.op(layer.inner, *inner, number=tape.number)
            nodes.append(Node(tape.number, piece.begin))
            tape.number += tape.grads

    def _backward(self, action: Action, pieces: list[Piece]) -> None:
        tape, nodes = self.tape, iter(reversed(self.nodes[action._replace(kind=Kind.F)]))
        for piece in pieces:
            if piece.comm:
                self._reduce((piece.begin, piece.end))
                continue
            node, layer = next(nodes), LAYER[(self.job.layers[action.stage] - 1 - piece.part) % len(LAYER)]
            grads = layer.weights and action.kind != Kind.I
            end = piece.end - min(10_000, (piece.end - piece.begin) // 20) * grads
            inner = _inside(Piece(piece.begin, end, 0, comm=False))
            name = f"autograd::engine::evaluate_function: {layer.node}"
            tape.op(name, piece.begin, end, number=node.number, backward=True)
            tape.op(layer.node, *inner, number=node.number, backward=True)
            if action.kind != Kind.W:
                tape.link(node, piece.begin)
            if grads:
                name = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
                tape.op(name, end, piece.end, backward=True)
        for reduction in self.due.get(action, ()):
            posted = max(pieces[0].begin, min(reduction.begin, pieces[-1].end - OP_NS) - OP_NS + 500)
            tape.op("c10d::allreduce_", posted, posted + OP_NS, backward=True)
            tape.mark("gloo:all_reduce", posted + OP_NS - 500, reduction.end)

    def _reduce(self, span: Span) -> None:
        """A blocking all-reduce."""
        self.tape.op("c10d::allreduce_", *span, number=self.tape.number)
        self.tape.mark("gloo:all_reduce", *_inside(Piece(*span, 0, comm=True)))

    def _after(self, done: Pass) -> None:
        """The one reduction of all gradients, and the optimizer."""
        for reduction in self.due.get(None, ()):
            self._reduce((reduction.begin, reduction.end))
        if done.optimizer is None:
            return
        begin, end = done.optimizer
        self.tape.mark("Optimizer.step#AdamW.step", begin - 1_000, end + 1_000)
        middle = (begin + end) // 2
        self.tape.op("aten::_foreach_addcdiv_", begin, middle, number=self.tape.number)
        self.tape.op("aten::_foreach_addcmul_", middle, end, number=self.tape.number)


def _inside(piece: Piece) -> Span:
    """A little less than a piece."""
    edge = min(500, (piece.end - piece.begin) // 8)
    return piece.begin + edge, piece.end - edge
