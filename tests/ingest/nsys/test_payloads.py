"""What NCCL tells in its payloads, as JSON or as bytes, and whatever else may stand there."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.ingest.nsys.database import Database
from bubblescope.ingest.nsys.payloads import Payload, Payloads
from tests.ingest.nsys.exports import entry, export

TOLD = {
    "NCCL communicator ID": 0xFEED_0000_0000_0001,
    "Message size [bytes]": 4096,
    "Peer rank": 3,
    "No. of ranks": 8,
    "Rank": 2,
}
PAYLOAD = Payload("feed000000000001", 4096, 3, 8, 2)
NOTHING = Payload()

# NCCL's layout: five fields, the first at no offset, as an export writes it.
LAYOUT = (
    entry("NCCL communicator ID", 18, None),
    entry("Message size [bytes]", 22, 8),
    entry("Peer rank", 5, 16),
    entry("No. of ranks", 15, 20),
    entry("Rank", 13, 24),
    entry("Reduction operation", 16_777_300, 28),
)
BODY = struct.pack("<QQiihh", TOLD["NCCL communicator ID"], 4096, 3, 8, 2, 0)


def blob(body=BODY, layout=9, domain=1, size=None):
    """Bytes behind NVTX's header."""
    size = len(body) if size is None else size
    return struct.pack("<IIIIQQ", domain, 0, layout, 0, size, 32 + size) + body


@pytest.fixture
def payloads(opened):
    """Reads payloads of NCCL's layout."""
    return Payloads(opened(*LAYOUT).database)


@pytest.fixture(scope="module")
def reader(tmp_path_factory):
    """The same, once for many examples."""
    with Database(export(tmp_path_factory.mktemp("payloads") / "report.sqlite", *LAYOUT)) as database:
        return Payloads(database)


class TestJson:
    """An export with --include-json."""

    def test_numbers(self, payloads):
        """As they are."""
        assert payloads.of_json(json.dumps(TOLD).encode()) == PAYLOAD

    def test_numbers_as_text(self, payloads):
        """Also with marks between their thousands."""
        texts = {key: f"{value:,}" for key, value in TOLD.items()}
        assert texts["Message size [bytes]"] == "4,096"
        assert payloads.of_json(json.dumps(texts).encode()) == PAYLOAD

    def test_some_of_it(self, payloads):
        """What is not told is not known."""
        assert payloads.of_json(b'{"Peer rank": 0, "Color": 7}') == Payload(peer=0)

    @pytest.mark.parametrize(
        "value", ["-1", "1.5", "true", "null", "[3]", '{"a": 3}', '"three"', '""', '"-3"', '"1.5"', "1000000", "1e3"]
    )
    def test_what_is_no_rank(self, payloads, value):
        """Negative, broken, of another type, or more than any job has: not told."""
        assert payloads.of_json(b'{"Peer rank": %b, "Rank": 1}' % value.encode()) == Payload(rank=1)

    @pytest.mark.parametrize(
        "text",
        [
            b"", b"x", b"[]", b"3", b'"Peer rank"', b"{", b'{"Peer rank": 3', b"\xff\xfe", b"null",
            b"[" * 100_000, b'{"a":' * 10_000, b"9" * 5000, b'{"Peer rank": ' + b"9" * 5000 + b"}",
            b'{"Peer rank": 1e999}',
        ],
        ids=lambda text: text[:8].decode("latin-1"),
    )  # fmt: skip
    def test_what_is_no_payload(self, payloads, text):
        """Garbage, other JSON, and bombs tell nothing."""
        assert payloads.of_json(text) == NOTHING


class TestBlobs:
    """An export with --include-blobs."""

    def test_bytes(self, payloads):
        """By the layout that the file describes: fields of eight, four and two bytes, and one that is no integer."""
        assert payloads.of_blob(blob()) == PAYLOAD

    @pytest.mark.parametrize("write", [str.lower, str.upper])
    def test_bytes_as_text(self, payloads, write):
        """In hexadecimal digits."""
        assert payloads.of_blob(write(blob().hex()).encode()) == PAYLOAD

    @pytest.mark.parametrize(("length", "expected"), [
        (27, PAYLOAD._replace(rank=2)), (25, PAYLOAD._replace(rank=-1)), (23, PAYLOAD._replace(rank=-1, ranks=-1)),
        (8, Payload("feed000000000001")), (7, NOTHING), (0, NOTHING),
    ])  # fmt: skip
    def test_what_lies_beyond_the_end_is_not_told(self, payloads, length, expected):
        """Of bytes that were cut off, and of a payload that says itself that it is shorter."""
        assert payloads.of_blob(blob(BODY[:length])) == expected
        assert payloads.of_blob(blob()[: 32 + length]) == expected
        assert payloads.of_blob(blob(BODY, size=length)) == expected

    @pytest.mark.parametrize("raw", [b"", b"\x01", blob()[:31], blob(layout=10), blob(domain=2)])
    def test_what_has_no_known_layout(self, payloads, raw):
        """Or no header at all: nothing."""
        assert payloads.of_blob(raw) == NOTHING

    @pytest.mark.parametrize("offset", [-1, -(2**62), 26, 2**62])
    def test_offsets_outside(self, opened, offset):
        """A field that would lie outside the payload is not told."""
        payloads = Payloads(opened(entry("Peer rank", 5, offset), entry("Rank", 5, 20)).database)
        assert payloads.of_blob(blob()) == Payload(rank=8)

    def test_a_layout_of_another_domain(self, opened):
        """Of the same number is another layout."""
        payloads = Payloads(opened(entry("Peer rank", 5, 16), entry("Peer rank", 5, 20, domain=2)).database)
        assert (payloads.of_blob(blob()).peer, payloads.of_blob(blob(domain=2)).peer) == (3, 8)

    def test_a_layout_that_several_processes_register(self, opened):
        """Is one."""
        assert Payloads(opened(*LAYOUT, *LAYOUT).database).of_blob(blob()) == PAYLOAD

    def test_no_layouts(self, opened):
        """A file that describes none tells nothing."""
        assert Payloads(opened(("OTHER", {"x": 1})).database).of_blob(blob()) == NOTHING


@given(raw=st.binary(max_size=80))
def test_any_bytes_are_read(reader, raw):
    """Whatever they are, a payload comes of them whose numbers are natural or -1."""
    for payload in (reader.of_json(raw), reader.of_blob(raw), reader.of_blob(blob(raw))):
        assert all(-1 <= number < 2**63 for number in payload[1:])


@given(st.dictionaries(st.sampled_from([*TOLD, "Color"]), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists, max_leaves=5,
)))  # fmt: skip
def test_any_json_is_read(reader, fields):
    """Whatever its values are."""
    payload = reader.of_json(json.dumps(fields).encode())
    peer = fields.get("Peer rank")
    if type(peer) is int:
        assert payload.peer == (peer if 0 <= peer < 1_000_000 else -1)
