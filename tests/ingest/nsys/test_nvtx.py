"""Which ranges become operators, annotations and calls of NCCL, and what is taken off their names."""

from __future__ import annotations

import json
import struct
from types import SimpleNamespace

import pytest

from bubblescope.ingest.nsys.nvtx import ranges
from bubblescope.model.trace import CommArgs, Membership
from tests.ingest.nsys.exports import RANGES, Text, domain, entry, kernel, process, pushed, thread

COMMUNICATOR = "NCCL communicator ID"
BYTES = "Message size [bytes]"
BACKWARD = "autograd::engine::evaluate_function: MmBackward0"


def json_of(**fields):
    """A payload; the words of its fields with underscores in place of blanks."""
    names = {"communicator": COMMUNICATOR, "bytes": BYTES, "peer": "Peer rank", "ranks": "No. of ranks", "rank": "Rank"}
    return json.dumps({names[key]: value for key, value in fields.items()})


@pytest.fixture
def marked(opened):
    """Write rows, and read their ranges: operators and annotations as tuples, operators with number and call."""

    def write(*rows, **how):
        file = opened(*rows, **how)
        found = ranges(file.database, file.strings, file.names)
        names = list(file.names)
        ops, notes = found.ops.rows, found.annotations.rows
        times = [
            list(zip((names[i] for i in b.name), b.start.tolist(), b.end.tolist(), strict=True)) for b in (ops, notes)
        ]
        calls = [None if number < 0 else found.comms[number] for number in ops.comm.tolist()]
        return SimpleNamespace(ops=times[0], notes=times[1], sequence=ops.sequence.tolist(), calls=calls, all=found)

    return write


class TestKinds:
    """Which events last."""

    @pytest.mark.parametrize("kind", [59, 60, 70, 71])
    def test_ranges(self, marked, kind):
        """Pushed and popped, started and ended, and both from a file of events."""
        assert marked(pushed("mine", 10, 20, kind=kind)).notes == [("mine", 10, 20)]

    @pytest.mark.parametrize("kind", [33, 34, 39, 75, 76, 97, 0])
    def test_what_does_not_last(self, marked, kind):
        """Categories, marks, names of threads and domains: no ranges, and none left open."""
        found = marked(pushed("mark", 10, None, kind=kind), pushed("odd", 10, 20, kind=kind), pushed("mine", 1, 2))
        assert (found.notes, found.all.open) == ([("mine", 1, 2)], 0)

    def test_a_range_may_end_on_another_thread(self, marked):
        """It is told on the one where it began."""
        found = marked(pushed("mine", 10, 20, tid=11, kind=60, endGlobalTid=thread(10, 99)))
        assert found.notes == [("mine", 10, 20)]
        assert found.all.annotations.thread.tolist() == [thread(10, 11)]
        assert found.all.annotations.process.tolist() == [process(10)]

    def test_open_ranges_are_counted(self, marked):
        """And left out, as are those without a beginning, which nothing is known of."""
        found = marked(pushed("a", 10, None), pushed("b", 10, None, kind=60), pushed("c", None, 20), pushed("d", 1, 2))
        assert (found.notes, found.all.open) == ([("d", 1, 2)], 2)

    def test_types_that_are_not_told(self, marked):
        """A table without the column holds ranges."""
        found = marked(pushed("a", 10, 20), pushed("b", 10, None), without={RANGES: {"eventType"}})
        assert (found.notes, found.all.open) == ([("a", 10, 20)], 1)

    def test_an_end_before_the_start(self, marked):
        """Is left to be judged with all else."""
        assert marked(pushed("a", 10, 5)).notes == [("a", 10, 5)]

    def test_times_before_the_session(self, marked):
        """Are times."""
        assert marked(pushed("a", -10, -5)).notes == [("a", -10, -5)]

    def test_order(self, marked):
        """By start, the outer one first."""
        found = marked(pushed("late", 7, 8), pushed("inner", 1, 5), pushed("outer", 1, 9))
        assert [name for name, _, _ in found.notes] == ["outer", "inner", "late"]

    def test_no_table(self, marked):
        """A file without it has no ranges."""
        found = marked(kernel("gemm", 1, 2))
        assert (found.ops, found.notes, found.calls, found.all.members) == ([], [], [], {})


class TestNames:
    """What stands in a text, or in the table of strings."""

    @pytest.mark.parametrize("text", ["mine", Text("mine")], ids=["text", "textId"])
    @pytest.mark.parametrize("keyed", [True, False])
    def test_text_or_its_number(self, marked, text, keyed):
        """The other is NULL."""
        assert marked(pushed(text, 1, 2), keyed=keyed).notes == [("mine", 1, 2)]

    @pytest.mark.parametrize(("given", "lost"), [("mine", "textId"), (Text("mine"), "text")])
    def test_the_other_column_is_not_there(self, marked, given, lost):
        """Nothing was written to it."""
        assert marked(pushed(given, 1, 2), without={RANGES: {lost}}).notes == [("mine", 1, 2)]

    def test_both_in_one_file(self, marked):
        """A name is one name, wherever it stands."""
        found = marked(pushed("mine", 1, 2), pushed(Text("mine"), 3, 4), pushed(Text("other"), 5, 6))
        assert found.notes == [("mine", 1, 2), ("mine", 3, 4), ("other", 5, 6)]
        first, second, _ = found.all.annotations.rows.name.tolist()
        assert first == second

    def test_neither(self, marked):
        """A range without a name has the empty one; so has one whose number is of no string."""
        assert [note[0] for note in marked(pushed(None, 1, 2), pushed(None, 3, 4, textId=99)).notes] == ["", ""]

    def test_a_text_that_is_no_utf8(self, marked):
        """Shows that something was there."""
        assert marked(pushed(b"a\xffb", 1, 2)).notes == [("a\N{REPLACEMENT CHARACTER}b", 1, 2)]


class TestOperators:
    """What torch's `emit_nvtx` writes."""

    @pytest.mark.parametrize(
        ("text", "name", "sequence"),
        [
            ("aten::mm, seq = 7, op_id = 9", "aten::mm", 7),
            ("aten::mm, seq = 0", "aten::mm", 0),
            ("aten::empty, op_id = 9", "aten::empty", -1),
            ("aten::mm, op_id = 9, sizes = [[4, 4], []]", "aten::mm", -1),
            ("aten::mm, seq = 7, op_id = 9, sizes = [[4]], input_op_ids = [(7,0)]", "aten::mm", 7),
            ("AddBackward0, seq = 3, op_id = 4", "AddBackward0", 3),
            (f"{BACKWARD}, op_id = 5", BACKWARD, -1),
            ("c10d::send, op_id = 5", "c10d::send", -1),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("by_id", [False, True])
    def test_operators(self, marked, text, name, sequence, by_id):
        """By autograd's number, or by a name space in the name, behind which torch wrote something of its own."""
        found = marked(pushed(Text(text) if by_id else text, 1, 2))
        assert (found.ops, found.sequence, found.calls, found.notes) == ([(name, 1, 2)], [sequence], [None], [])

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("aten::mm", "aten::mm"),
            ("Forward 3", "Forward 3"),
            ("Forward 3, op_id = 9", "Forward 3"),
            ("PP:0F1, op_id = 9", "PP:0F1"),
            ("FSDP::pre_forward (layers.0), op_id = 9", "FSDP::pre_forward (layers.0)"),
            ("Optimizer.step#SGD.step, op_id = 9, sizes = []", "Optimizer.step#SGD.step"),
            ("a, seq = x", "a, seq = x"),
        ],
    )
    @pytest.mark.parametrize("by_id", [False, True])
    def test_annotations(self, marked, text, name, by_id):
        """What a user or a framework named, without what `emit_nvtx` appends."""
        found = marked(pushed(Text(text) if by_id else text, 1, 2))
        assert (found.notes, found.ops) == ([(name, 1, 2)], [])

    def test_many_operators_of_one_name(self, marked):
        """Have one name and a number each."""
        found = marked(*(pushed(f"aten::mm, seq = {i}, op_id = {i + 5}", i, i) for i in range(6000)))
        assert found.sequence == list(range(6000))
        assert set(found.all.ops.rows.name.tolist()) == {found.all.ops.rows.name[0]}


class TestNccl:
    """NCCL's own ranges."""

    @pytest.mark.parametrize(
        "name", ["ncclSend", "ncclAllReduce", "ncclGroupStart", "ncclGroupEnd", "ncclCommInitRank"]
    )
    def test_functions_are_operators(self, marked, name):
        """Known by their full name without their domain, which cropped exports lack; no call is known of them."""
        found = marked(pushed(Text(name), 1, 2, domain=1))
        assert (found.ops, found.calls, found.notes) == ([(name, 1, 2)], [None], [])

    @pytest.mark.parametrize("name", ["ncclSendings", "my ncclSend", "ncclCommCount", "ncclHelper"])
    def test_other_names(self, marked, name):
        """Are annotations, whatever they begin with."""
        assert marked(pushed(name, 1, 2)).ops == []

    @pytest.mark.parametrize("titled", ["NCCL", Text("NCCL")])
    def test_bare_names_in_its_domain(self, marked, titled):
        """Newer tracing writes them without the prefix; the domain's name stands in a text or in the strings."""
        found = marked(domain(titled), pushed("Send", 1, 2, domain=1), pushed("GroupEnd", 3, 4, domain=1))
        assert found.ops == [("ncclSend", 1, 2), ("ncclGroupEnd", 3, 4)]

    def test_the_domain_may_be_named_after_its_ranges(self, marked):
        """For rows stand in no order."""
        assert marked(pushed("Send", 1, 2, domain=1), domain("NCCL")).ops == [("ncclSend", 1, 2)]

    @pytest.mark.parametrize(
        "rows",
        [
            [pushed("Send", 1, 2, domain=1)],
            [domain("NCCL", 2), pushed("Send", 1, 2, domain=1)],
            [domain("mine", 1), pushed("Send", 1, 2, domain=1)],
            [domain("NCCL", 1, pid=20), pushed("Send", 1, 2, domain=1)],
            [domain("NCCL", 1), pushed("Send", 1, 2, domain=0)],
            [domain("NCCL", 1), pushed("Sending", 1, 2, domain=1)],
        ],
        ids=["unnamed", "other number", "other name", "other process", "no domain", "other word"],
    )
    def test_bare_names_elsewhere(self, marked, rows):
        """In no domain of NCCL's of this process, they are somebody's words."""
        found = marked(*rows)
        assert (found.ops, found.notes) == ([], [(rows[-1][1]["text"], 1, 2)])

    def test_one_name_in_two_domains(self, marked):
        """Only those in NCCL's are its own."""
        found = marked(domain("NCCL"), pushed("Send", 1, 2, domain=1), pushed("Send", 3, 4, domain=0))
        assert (found.ops, found.notes) == ([("ncclSend", 1, 2)], [("Send", 3, 4)])


class TestCalls:
    """Calls of NCCL that say with whom or how much."""

    @pytest.mark.parametrize("how", ["jsonText", "jsonTextId", "binaryData"])
    def test_a_send(self, marked, how):
        """Its peer counts within the communicator; its bytes are elements of one."""
        body = struct.pack("<QQi", 0xAB, 4096, 1)
        value = {
            "jsonText": json_of(communicator=0xAB, bytes=4096, peer=1),
            "jsonTextId": Text(json_of(communicator=0xAB, bytes=4096, peer=1)),
            "binaryData": struct.pack("<IIIIQQ", 1, 0, 9, 0, len(body), 32 + len(body)) + body,
        }[how]
        layout = [entry(COMMUNICATOR, 18, None), entry(BYTES, 22, 8), entry("Peer rank", 5, 16)]
        found = marked(pushed(Text("ncclSend"), 1, 2, domain=1, **{how: value}), *layout)
        assert found.calls == [CommArgs(op="send", group="ab", elements=4096, dtype="uint8", peer=1)]
        assert found.all.untold == 0

    @pytest.mark.parametrize("payload", [None, "garbage", "{}", json_of(communicator=1, bytes=8), json_of(peer=-1)])
    def test_messages_to_nobody_known(self, marked, payload):
        """Are no calls, and counted."""
        found = marked(
            pushed("ncclSend", 1, 2, jsonText=payload),
            pushed("ncclRecv", 3, 4, jsonText=payload),
            pushed("ncclSend", 5, 6, jsonText=json_of(peer=0)),
            pushed("ncclAllReduce", 7, 8, jsonText=payload),
        )
        assert found.all.untold == 2
        assert [call.op if call else None for call in found.calls[:3]] == [None, None, "send"]

    @pytest.mark.parametrize(
        ("name", "op", "elements"),
        [
            ("ncclAllReduce", "all_reduce", 100), ("ncclBroadcast", "broadcast", 100), ("ncclReduce", "reduce", 100),
            ("ncclAllGather", "all_gather", 400), ("ncclReduceScatter", "reduce_scatter", 400),
            ("ncclAlltoAll", "all_to_all", 400), ("ncclGather", "gather", 400), ("ncclScatter", "scatter", 400),
        ],
    )  # fmt: skip
    def test_collectives(self, marked, name, op, elements):
        """Some count the bytes of one member: with their number, which the making of the communicator told, of all."""
        found = marked(
            pushed("ncclCommInitRank", 1, 2, jsonText=json_of(communicator=171, ranks=4, rank=2)),
            pushed(name, 3, 4, jsonText=json_of(communicator=171, bytes=100)),
        )
        assert found.calls == [
            None,
            CommArgs(op=op, group="ab", group_size=4, elements=elements, dtype="uint8"),
        ]

    def test_a_share_of_unknown_many(self, marked):
        """Where nobody tells the members, the elements are not known."""
        found = marked(pushed("ncclAllGather", 3, 4, jsonText=json_of(communicator=171, bytes=100)))
        assert (found.calls[0].elements, found.calls[0].group_size) == (-1, -1)

    def test_members_of_unnamed_communicators(self, marked):
        """NCCL before 2.25 does not say which communicator a call is of: no size is taken for that of another."""
        found = marked(
            pushed("ncclCommInitRank", 1, 2, jsonText=json_of(ranks=8, rank=2)),
            pushed("ncclCommInitRank", 1, 2, jsonText=json_of(ranks=2, rank=1)),
            pushed("ncclAllGather", 3, 4, jsonText=json_of(bytes=100)),
        )
        (call,) = [call for call in found.calls if call]
        assert (call.group, call.group_size, call.elements) == ("", -1, -1)
        assert found.all.members == {}

    def test_equal_calls_are_one(self, marked):
        """A training step repeats its calls; each call that differs is another."""
        texts = [json_of(communicator=1, bytes=8, peer=peer) for peer in (0, 1, 0)]
        found = marked(*(pushed("ncclSend", i, i, jsonText=text) for i, text in enumerate(texts)))
        assert [call.peer for call in found.calls] == [0, 1, 0]
        assert len(found.all.comms) == 2

    def test_payloads_of_other_ranges(self, marked):
        """Are nobody's call."""
        found = marked(pushed("mine", 1, 2, jsonText=json_of(communicator=1, bytes=8, peer=0)))
        assert (found.notes, found.all.comms) == ([("mine", 1, 2)], ())

    def test_members(self, marked):
        """Each process tells its place in each communicator that it joins; a place beyond all places is none."""
        found = marked(
            pushed("ncclCommInitRank", 1, 2, pid=10, jsonText=json_of(communicator=171, ranks=4, rank=2)),
            pushed("ncclCommSplit", 1, 2, pid=10, jsonText=json_of(communicator=172, ranks=2, rank=0)),
            pushed("ncclCommInitRank", 1, 2, pid=20, jsonText=json_of(communicator=171, ranks=4, rank=3)),
            pushed("ncclCommInitRank", 1, 2, pid=20, jsonText=json_of(communicator=173, ranks=4, rank=4)),
        )
        assert found.all.members == {
            process(10): {Membership("ab", 2, 4), Membership("ac", 0, 2)},
            process(20): {Membership("ab", 3, 4)},
        }
