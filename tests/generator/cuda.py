"""One rank's run on a GPU: a host thread that launches ahead, the autograd thread, and the streams."""

from tests.generator.groups import groups_of, message_args
from tests.generator.job import Job
from tests.generator.names import LAYER, P2P_KERNEL, REDUCE_KERNEL, STEP_KERNEL, step_label
from tests.generator.orders import Action
from tests.generator.pieces import Piece, cut
from tests.generator.simulate import Done, Run, Step, Transfer, simulate
from tests.generator.tape import COMPUTE_STREAM, Tape, Where

ELEMENTS = 4_194_304
STREAMS = {("F", True): 20, ("F", False): 24, ("B", True): 28, ("B", False): 32}  # per kind and whether it sends
TP_STREAM, DP_STREAM = 36, 40


class CudaRank:
    """Lays steps on one rank's tape; ``at`` is where the launching thread stands."""

    def __init__(self, job: Job, rank: int, tape: Tape) -> None:
        self.job, self.rank, self.tape = job, rank, tape
        self.place = job.place(rank)
        self.groups = groups_of(job, rank)
        steps = simulate(job)
        shortest = min(done.useful for step in steps for run in step.runs for lane in run.done for done in lane)
        self.unit = max(8, min(4000, shortest // (8 * len(job.pattern) + 40)))
        self.lead = 3 * self.unit + (0 if job.host_gap_ns else job.run_ahead_ns)
        self.at = 0
        self.nodes: dict[tuple[int, int], list[Where]] = {}
        self.busy: dict[int, int] = {}

    def step(self, step: Step) -> None:
        """Write one step: its annotation, the pipeline, and what follows."""
        run, name = step.runs[self.place.dp], f"ProfilerStep#{self.job.first_step + step.number}"
        outer = self.tape.mark(name, step.start, step.end)
        self.at = step.start + self.unit
        self._spend("Optimizer.zero_grad#AdamW.zero_grad", 2)
        self.nodes.clear()
        lane = run.done[self.place.pp]
        for k, done in enumerate(lane):
            opened = self.at
            self._receives(run, lane, k)
            self._action(done)
            self._sends(done, run)
            if self.job.labels == "torch":
                self.tape.mark(step_label(done.action), opened, self.at)
                self.at += self.unit
        self._after(step)
        self.tape.project(name, (lane[0].start, lane[-1].end), outer, COMPUTE_STREAM)

    def _spend(self, name: str, units: int) -> None:
        self.tape.mark(name, self.at, self.at + units * self.unit)
        self.at += (units + 1) * self.unit

    def _wait(self, moment: int) -> None:
        """Launch no earlier than the lead before a moment."""
        self.at = max(self.at, moment - self.lead)

    def _receives(self, run: Run, lane: list[Done], k: int) -> None:
        """Post what is due before the k-th action; a fused receive went with its send."""
        ahead = self.job.recv_ahead
        for done in lane[: ahead + 1] if k == 0 else lane[k + ahead : k + ahead + 1]:
            transfer = run.transfers.get(done.action)
            if transfer is not None and not done.fused:
                self._wait(transfer.received)
                self._labelled(
                    f"PP:{done.action.stage}RECV_{done.action.kind}{done.action.micro}", transfer, sends=False
                )

    def _labelled(self, name: str, transfer: Transfer, *, sends: bool) -> None:
        begin = self.at
        self._message(transfer, sends=sends)
        if self.job.comm_labels:
            self.tape.mark(name, begin - self.unit // 4, self.at)
            self.at += self.unit

    def _message(self, transfer: Transfer, *, sends: bool) -> None:
        """One send or receive that is a kernel of its own."""
        unit, at = self.unit, self.at
        owner, extra = self._post(transfer, sends=sends)
        mine, peer = (transfer.source, transfer.target) if sends else (transfer.target, transfer.source)
        name = f"nccl:send {mine}->{peer}" if sends else f"nccl:recv {mine}<-{peer}"
        note = self.tape.mark(name, at + 3 * unit // 2, at + 3 * unit)
        span = transfer.sent if sends else transfer.received, transfer.end
        launch = (at + 2 * unit, at + 2 * unit + unit // 2)
        stream = STREAMS["F" if transfer.producer.kind == "F" else "B", sends]
        span, extra = self._shown(span, stream), extra if self.job.p2p_args == "kernel" else None
        self.tape.kernel(P2P_KERNEL, span, launch=launch, owner=owner, stream=stream, extra=extra)
        self.tape.project(name, span, note, stream)
        self.at += 5 * unit

    def _post(self, transfer: Transfer, *, sends: bool) -> tuple[dict, dict]:
        """The operators of a message, four units long; their arguments tell the peer where the job says so."""
        unit, at, tape = self.unit, self.at, self.tape
        peer = transfer.target if sends else transfer.source
        group = self.groups["pp"]
        extra = message_args(group, "send" if sends else "recv", ELEMENTS)
        extra["Dst Rank" if sends else "Src Rank"] = group.ranks[peer]
        tape.op("c10d::send" if sends else "c10d::recv_", at, at + 4 * unit, number=tape.number)
        owner = tape.op("record_param_comms", at + unit, at + 7 * unit // 2)
        if self.job.p2p_args == "none":
            owner["Input Dims"] = [[], [], [], [], [], [], []]
        else:
            owner |= extra | {"Rank": peer, "Global rank start": group.ranks[0], "Global rank stride": 1}
        return owner, extra

    def _shown(self, span: Where, stream: int) -> Where:
        """When a communication kernel runs: a stream runs one at a time, and none takes no time."""
        begin = max(span[0], self.busy.get(stream, 0))
        self.busy[stream] = end = max(span[1], begin + 1)
        return begin, end

    def _action(self, done: Done) -> None:
        """Launch an action's kernels."""
        action = done.action
        self._wait(done.start)
        opened, pieces = self.at, cut(self.job, done, self.rank)
        self.at += self.unit
        if action.kind == "F":
            self._forward(action, pieces)
        else:
            self._backward(action, pieces)
        if self.job.labels == "pp":
            name = f"PP:{action}"
            owner = self.tape.mark(name, opened, self.at)
            if action.kind == "F":
                launched = [piece for piece in pieces if not piece.comm]
                self.tape.project(name, (launched[0].begin, launched[-1].end), owner, COMPUTE_STREAM)
        self.at += self.unit

    def _forward(self, action: Action, pieces: list[Piece]) -> None:
        unit, tape = self.unit, self.tape
        nodes = self.nodes[action.stage, action.micro] = []
        for piece in pieces:
            if piece.comm:
                self._reduce(piece, tape.main, TP_STREAM, "tp")
                continue
            at, layer = self.at, LAYER[piece.part % len(LAYER)]
            tape.op(layer.outer, at, at + 2 * unit, number=tape.number)
            owner = tape.op(layer.inner, at + unit // 2, at + 2 * unit - unit // 4, number=tape.number)
            launch = (at + unit, at + unit + unit // 2)
            tape.kernel(layer.forward, (piece.begin, piece.end), launch=launch, owner=owner)
            nodes.append((tape.number, at))
            tape.number += 1
            self.at += 2 * unit

    def _backward(self, action: Action, pieces: list[Piece]) -> None:
        """Nodes run in decreasing order of their numbers, on the autograd engine's thread."""
        unit, tape = self.unit, self.tape
        nodes = iter(reversed(self.nodes[action.stage, action.micro]))
        parts = self.job.kernels
        for piece in pieces:
            if piece.comm:
                self._reduce(piece, tape.engine, TP_STREAM, "tp")
                continue
            at, node = self.at, next(nodes)
            layer = LAYER[(parts - 1 - piece.part) % len(LAYER)]
            name = layer.node
            tape.op(f"autograd::engine::evaluate_function: {name}", at, at + 2 * unit, number=node[0], backward=True)
            owner = tape.op(name, at + unit // 4, at + 2 * unit - unit // 4, number=node[0], backward=True)
            owner = tape.op(layer.inner, at + unit // 2, at + 2 * unit - unit // 2, backward=True)
            launch = (at + unit, at + unit + unit // 4)
            span = (piece.begin, piece.end)
            tape.kernel(layer.backward, span, launch=launch, owner=owner, tid=tape.engine)
            if action.kind != "W":
                tape.link(node, at)
            if layer.weights and action.kind != "I":
                name = "torch::autograd::AccumulateGrad"
                tape.op(f"autograd::engine::evaluate_function: {name}", at + 2 * unit, at + 3 * unit, backward=True)
            self.at += 3 * unit

    def _reduce(self, piece: Piece, tid: int, stream: int, axis: str) -> None:
        """An all-reduce of a group."""
        unit, at, tape = self.unit, self.at, self.tape
        extra = message_args(self.groups[axis], "allreduce", ELEMENTS)
        backward = tid == tape.engine
        tape.op("c10d::allreduce_", at, at + 2 * unit, number=None if backward else tape.number, backward=backward)
        owner = tape.op("record_param_comms", at + unit // 4, at + 2 * unit - unit // 4, backward=backward)
        owner |= extra
        note = tape.mark("nccl:all_reduce", at + unit // 2, at + 2 * unit - unit // 2, tid=tid)
        launch = (at + unit, at + unit + unit // 4)
        span = self._shown((piece.begin, piece.end), stream)
        tape.kernel(REDUCE_KERNEL, span, launch=launch, owner=owner, stream=stream, tid=tid, extra=extra)
        tape.project("nccl:all_reduce", span, note, stream)
        self.at += 3 * unit

    def _sends(self, done: Done, run: Run) -> None:
        """Post an action's output, alone or in one kernel with the next receive."""
        transfer, tape, action = run.outgoing.get(done.action), self.tape, done.action
        if transfer is None:
            return
        lane = run.done[self.place.pp]
        after = lane.index(done) + 1
        tape.op("aten::detach", self.at, self.at + self.unit // 2, number=tape.number)
        self.at += self.unit
        if after < len(lane) and lane[after].fused:
            self._batch(transfer, run.transfers[lane[after].action])
        else:
            self._labelled(f"PP:{action.stage}SEND_{action.kind}{action.micro}", transfer, sends=True)

    def _batch(self, out: Transfer, back: Transfer) -> None:
        """A coalesced send and receive: its kernel carries no arguments."""
        begin = self.at
        for transfer, sends in ((out, True), (back, False)):
            self._post(transfer, sends=sends)
            self.at += 5 * self.unit
        note = self.tape.mark("nccl:coalesced", begin, self.at)
        launch = (self.at - self.unit, self.at - self.unit // 2)
        stream = STREAMS["F" if out.producer.kind == "F" else "B", True]
        span = self._shown((out.sent, max(out.end, back.end)), stream)
        self.tape.kernel(P2P_KERNEL, span, launch=launch, owner=note, stream=stream)
        self.tape.project("nccl:coalesced", span, note, stream)
        self.at += self.unit

    def _after(self, step: Step) -> None:
        """Gradient all-reduce and optimizer."""
        if (span := step.dp.get((self.place.pp, self.place.dp))) is not None:
            self._wait(span[0])
            self._reduce(Piece(*span, 0, comm=True), self.tape.main, DP_STREAM, "dp")
        self._wait(step.optimizer[0])
        unit, tape, at = self.unit, self.tape, self.at
        note = tape.mark("Optimizer.step#AdamW.step", at, at + 8 * unit)
        begin, end = step.optimizer
        middle = (begin + end) // 2
        for i, span in enumerate(((begin, middle), (middle, end))):
            first = at + unit + 3 * i * unit
            owner = tape.op("aten::_fused_adamw_", first, first + 2 * unit, number=tape.number)
            tape.kernel(STEP_KERNEL, span, launch=(first + unit // 2, first + unit), owner=owner)
        tape.project("Optimizer.step#AdamW.step", step.optimizer, note, COMPUTE_STREAM)
        self.at += 9 * unit
