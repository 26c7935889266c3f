"""What a rank's threads post on a GPU: sends and receives, collectives of its groups, and their kernels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from bubblescope.emit.announce import TENSOR, Content, messages
from bubblescope.emit.groups import collective_args, communicator, groups_of, message_args
from bubblescope.emit.job import Job
from bubblescope.emit.names import P2P_KERNEL, REDUCE, Reducing
from bubblescope.emit.pieces import Piece
from bubblescope.emit.run import Span, Transfer
from bubblescope.emit.simulate import START_NS
from bubblescope.emit.tape import Args, Launch, Tape
from bubblescope.model.actions import Kind

__all__ = ["COPY_STREAM", "MESSAGE_TICKS", "CudaComms"]

SUM = 0  # as NCCL numbers reductions
JOIN_NS = 100_000  # between one communicator and the next
MESSAGE_TICKS = 6  # units that a message takes, its label included
TP_STREAM, CP_STREAM, DP_STREAM = 36, 38, 40
COPY_STREAM = {"DtoH": 13, "HtoD": 14, "PtoP": 23}
FIRST_STREAM = {(True, True): 20, (True, False): 24, (False, True): 28, (False, False): 32}
"""Of the first stage's messages, by whether they are forwards and whether they are sends."""
RING_SHARE = 0.8
"""How much of an attention on one block the next one takes to pass."""


class CudaComms:
    """Lays communication on one rank's tape; `at` is where the launching thread stands, in units of its work."""

    def __init__(self, job: Job, rank: int, tape: Tape, unit: int) -> None:
        self.job, self.rank, self.tape, self.unit = job, rank, tape, unit
        self.groups = groups_of(job, rank)
        self.communicators = {axis: communicator(job, group) for axis, group in self.groups.items()}
        self.at = 0
        self.busy: dict[int, int] = {}
        self.streams: dict[tuple[bool, bool, int, int, int], int] = {}
        self.received: Counter[tuple[bool, bool, int, int]] = Counter()
        self._join()

    def _join(self) -> None:
        """Make the communicators, before the first step; no group of one rank has any."""
        groups = [] if self.job.one_process else [g for g in self.groups.values() if len(g.ranks) > 1]
        for behind, group in enumerate(groups, start=-len(groups)):
            begin = START_NS + behind * JOIN_NS
            sizes = (len(group.ranks), group.ranks.index(self.rank), self.tape.device)
            span = (begin, begin + JOIN_NS // 2)
            self.tape.call("ncclCommInitRank", span, self.communicators[group.axis], *sizes)

    def _labelled(self, name: str, transfer: Transfer, *, sends: bool) -> None:
        begin, stream = self.at, self._stream(transfer, sends=sends)
        for message, content in messages(self.job, transfer, sends=sends):
            self._message(message, content, stream, sends=sends)
        if self.job.comm_labels:
            self.tape.mark(name, begin - self.unit // 4, self.at)
            self.at += self.unit

    def _message(self, transfer: Transfer, content: Content, stream: int, *, sends: bool) -> None:
        """One send or receive that is a kernel of its own."""
        unit, at = self.unit, self.at
        owner, extra = self._post(transfer, content, sends=sends)
        mine, peer = (transfer.source, transfer.target) if sends else (transfer.target, transfer.source)
        name = f"nccl:send {mine}->{peer}" if sends else f"nccl:recv {mine}<-{peer}"
        note = self.tape.mark(name, at + 3 * unit // 2, at + 3 * unit)
        launch = Launch(at + 2 * unit, at + 2 * unit + unit // 2, owner)
        self._told(transfer, content, (launch.begin - unit // 4, launch.end + unit // 4), sends=sends)
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
        extra = message_args(self.job, group, "send" if sends else "recv", content.elements) | {"dtype": content.dtype}
        extra["Dst Rank" if sends else "Src Rank"] = group.ranks[peer]
        tape.op("c10d::send" if sends else "c10d::recv_", at, at + 4 * unit, number=tape.number)
        owner = tape.op("record_param_comms", at + unit, at + 7 * unit // 2)
        if self.job.p2p_args == "none":
            owner["Input Dims"] = [[], [], [], [], [], [], []]
        else:
            owner |= extra | {"Rank": peer}
            if self.job.groups_told == "named":
                owner |= {"Global rank start": group.ranks[0], "Global rank stride": 1}
        return owner, extra

    def _stream(self, transfer: Transfer, *, sends: bool) -> int:
        """The outputs of a stage on a rank have their own stream on either side: chunks run in no common order.

        Where the job says so, receives of one output have several, and take them in turns.
        """
        way = (transfer.producer.kind == Kind.F, sends)
        known = sum(stream[:2] == way for stream in self.streams)
        output, turn = (*way, transfer.source, transfer.producer.stage), 0
        if not sends:
            turn = self.received[output] % self.job.recv_streams
            self.received[output] += 1
        return self.streams.setdefault((*output, turn), FIRST_STREAM[way] + 24 * known)

    def _shown(self, span: Span, stream: int) -> Span:
        """When a communication kernel runs: a stream runs one at a time, and none takes no time."""
        begin = max(span[0], self.busy.get(stream, 0))
        self.busy[stream] = end = max(span[1], begin + 1)
        return begin, end

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

    def _reduce(self, span: Span, tid: int, stream: int, axis: str, what: Reducing = REDUCE["all-reduce"]) -> None:
        """A sum over a group."""
        tape, group = self.tape, self.communicators[axis]
        extra = collective_args(self.job, self.groups[axis], what.collective, TENSOR.elements)
        launch, note = self._collective((what.op,), what.note, extra, tid)
        told = (launch.begin - self.unit // 4, launch.end + self.unit // 4)
        tape.call(what.call, told, group, TENSOR.bytes, SUM, tid=tid)
        span = self._shown(span, stream)
        tape.kernel(what.kernel, span, launch, stream=stream, extra=extra)
        tape.project(what.note, span, note, stream)

    def _exchange(self, span: Span, tid: int) -> None:
        """An all-to-all of a stage: torch sends to and receives from each member, in one kernel."""
        group = self.groups["tp"]
        extra = collective_args(self.job, group, "all_to_allv", TENSOR.elements)
        launch, note = self._collective(("alltoall_base_",), "nccl:all_to_all", self._if_told("op", extra), tid)
        peers = range(len(group.ranks))
        self._grouped([(name, peer) for peer in peers for name in ("ncclSend", "ncclRecv")], "tp", launch)
        span = self._shown(span, TP_STREAM)
        self.tape.kernel(P2P_KERNEL, span, launch, stream=TP_STREAM, extra=self._if_told("kernel", extra))
        self.tape.project("nccl:all_to_all", span, note, TP_STREAM)

    def _ring(self, piece: Piece, tid: int) -> None:
        """Keys and values pass from member to member of the context while the attention computes on those before."""
        group = self.groups["cp"]
        me, count = group.ranks.index(self.rank), len(group.ranks)
        share = (piece.end - piece.begin) // count
        for block in range(count - 1):
            begin = piece.begin + block * share
            extra = collective_args(self.job, group, "coalesced", TENSOR.elements)
            launch, note = self._collective(("send", "recv_"), "nccl:coalesced", self._if_told("op", extra), tid)
            self._grouped([("ncclSend", (me + 1) % count), ("ncclRecv", (me - 1) % count)], "cp", launch)
            span = self._shown((begin, begin + int(RING_SHARE * share)), CP_STREAM)
            self.tape.kernel(P2P_KERNEL, span, launch, stream=CP_STREAM, extra=self._if_told("kernel", extra))
            self.tape.project("nccl:coalesced", span, note, CP_STREAM)

    def _if_told(self, least: str, extra: Args) -> Args:
        """Arguments of a call that sends and receives, where the job tells them: on operators, or on kernels, too."""
        return extra if self.job.p2p_args in {"kernel", least} else {}

    def _grouped(self, calls: Sequence[tuple[str, int]], axis: str, launch: Launch) -> None:
        """Sends and receives that NCCL takes as one; their bytes are shared out."""
        tape, unit, group, tid = self.tape, self.unit, self.communicators[axis], launch.tid
        size = TENSOR.bytes * 2 // len(calls)
        tape.call("ncclGroupStart", (launch.begin - unit // 2, launch.begin - unit // 4), tid=tid)
        for name, peer in calls:
            tape.call(name, (launch.begin - unit // 4, launch.begin), group, size, peer, tid=tid)
        tape.call("ncclGroupEnd", (launch.begin, launch.end + unit // 4), tid=tid)

    def _collective(self, ops: tuple[str, ...], name: str, extra: Args, tid: int) -> tuple[Launch, Args]:
        """The host's part of a call of a group: its launch, and torch's range; the last operator is the one around."""
        unit, at, tape = self.unit, self.at, self.tape
        backward = tid == tape.engine
        number = None if backward else tape.number
        for place, op in enumerate(ops, start=1 - len(ops)):
            begin, end = (at, at + 2 * unit) if not place else (at + (place - 1) * unit // 4, at + place * unit // 4)
            tape.op(f"c10d::{op}", begin, end, number=number, backward=backward)
        owner = tape.op("record_param_comms", at + unit // 4, at + 2 * unit - unit // 4, backward=backward)
        owner |= extra
        note = tape.mark(name, at + unit // 2, at + 2 * unit - unit // 2, tid=tid)
        self.at += 3 * unit
        return Launch(at + unit, at + unit + unit // 4, owner, tid), note
