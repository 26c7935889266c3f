"""Traces that are damaged: what is read of them, and what is said of the rest."""

from __future__ import annotations

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bubblescope.errors import InputError
from bubblescope.ingest import damage, windows
from bubblescope.ingest.chrome import read, read_all
from bubblescope.ingest.inflate import MOST_RATIO

COUNT = 40


def event(number: int, **more: object) -> dict:
    """An operator with lists of objects, brackets and borders in its arguments."""
    return {
        "ph": "X", "cat": "cpu_op", "name": f"op {number}", "pid": 1, "tid": 2, "ts": number + 0.5, "dur": 1.0,
        "args": {"dims": [[4, 2], [2]], "rows": [{"a": number}, {"name": "x"}], "text": "a,b},{c"}, **more,
    }  # fmt: skip


def document(count: int = COUNT, rank: int = 3, indent: int | None = None) -> str:
    """A trace of so many operators."""
    events = [event(number) for number in range(count)]
    told = {"rank": rank, "world_size": 8}
    whole = {"schemaVersion": 1, "distributedInfo": told, "traceEvents": events, "traceName": "x"}
    return json.dumps(whole, indent=indent)


def findings(trace) -> dict[str, tuple[str, str]]:
    """Severity and message by code."""
    return {finding.code: (finding.severity, finding.message) for finding in trace.findings}


def numbers(trace) -> list[int]:
    """The operators that were read."""
    return [int(trace.names[name].removeprefix("op ")) for name in trace.ops.name.tolist()]


@pytest.mark.parametrize("window", [64, 1 << 20])
@pytest.mark.parametrize("bad", ['say "hi" to', "a\nb", "C:\\Users", "caf\udce9", "\\ud800"])
def test_what_is_mended_loses_nothing(save, bad, window):
    """An event with a broken name is read with the others, and the place is told."""
    text = document().replace("op 20", bad).encode("utf-8", "surrogateescape")
    trace = read(save(text), window=window)
    severity, message = findings(trace)["repaired"]
    assert (len(trace.ops), severity) == (COUNT, "info")
    assert trace.source.events == COUNT
    at = int(message.rsplit("from byte ", 1)[1].split()[0])
    assert at <= text.index(bad.encode("utf-8", "surrogateescape"))
    assert window > 64 or at >= text.index(b'"op 19"')


@pytest.mark.parametrize("window", [64, 1 << 20])
def test_what_cannot_be_read_is_left_out_alone(save, window):
    """An event whose bracket is gone goes, with its place and length; its neighbours stay."""
    text = document().replace('"dims": [[4, 2], [2]], "rows": [{"a": 20}', '"dims": [[4, 2], [2, "rows": [{"a": 20}')
    begin, end = (
        text.index('{"ph": "X", "cat": "cpu_op", "name": "op 20"'),
        text.index('{"ph": "X", "cat": "cpu_op", "name": "op 21"'),
    )
    trace = read(save(text), window=window)
    assert numbers(trace) == [number for number in range(COUNT) if number != 20]
    assert findings(trace)["repaired"] == (
        "warning",
        f"the text is damaged: left out 1 piece, in bytes: {end - begin} at byte {begin} (no event can be read there)",
    )


@pytest.mark.parametrize("window", [64, 1 << 20])
@pytest.mark.parametrize("filling", ["", "\0" * 300])
def test_events_are_not_swallowed_by_a_string(save, window, filling):
    """Where a block of the file is lost, from the middle of a name on, the loss is told and the next event is read."""
    text = document(indent=1)
    begin, end = text.index("op 20") + 2, text.rindex("{", 0, text.index("op 24"))
    trace = read(save(text[:begin] + filling + text[end:]), window=window)
    assert findings(trace)["repaired"][0] == "warning"
    assert numbers(trace) == [*range(20), *range(24, COUNT)]


def test_many_losses_name_the_first_few(save):
    """Of many places three are told, and how many more there are."""
    text = document().replace('"args": {', '"args": {{')
    with pytest.raises(InputError, match="found none among 0 events"):
        read(save(text))
    text = document().replace(
        '1.0, "args": {"dims": [[4, 2], [2]], "rows": [{"a": 1', '1.0, "args": {{"dims": [], "rows": [{"a": 1'
    )
    _, message = findings(read(save(text)))["repaired"]
    assert "left out 11 pieces" in message
    assert "and 8 more" in message


@settings(deadline=None, max_examples=150)
@given(st.integers(0, len(document()) - 1), st.sampled_from([64, 300, 1 << 20]), st.sampled_from([None, 1]))
def test_a_cut_document_gives_what_was_whole(tmp_path_factory, cut, window, indent):
    """Every event that is whole before the cut is read, and the cut is told."""
    path = tmp_path_factory.getbasetemp() / "cut.json"
    text = document(indent=indent)
    path.write_text(text[:cut])
    ends = [text.index(f'"a": {number}') for number in range(COUNT)]
    try:
        trace = read(path, window=window)
    except InputError:
        assert cut < ends[0] + 200
        return
    whole = numbers(trace)
    assert whole == list(range(len(whole)))
    assert sum(end < cut for end in ends) - 1 <= len(whole) <= sum(end < cut for end in ends)
    assert findings(trace)["truncated"][0] == "warning"


@settings(deadline=None, max_examples=300)
@given(
    st.integers(0, len(document()) - 1),
    st.integers(0, 3),
    st.binary(max_size=3) | st.text('{}[]",:\\\n', max_size=3).map(str.encode),
    st.sampled_from([64, 300, 1 << 20]),
)
def test_local_damage_costs_two_events_at_most(tmp_path_factory, at, length, instead, window):
    """Bytes lost, changed or added anywhere in the events cost at most the two events they touch."""
    text = document().encode()
    first, last = text.index(b'{"ph"') + 1, text.index(b'], "traceName"')
    at = first + at % (last - first)
    path = tmp_path_factory.getbasetemp() / "local.json"
    path.write_bytes(text[:at] + instead + text[at + length :])
    trace = read(path, window=window)
    trace.self_check()
    assert COUNT - 2 <= len(trace.ops) <= COUNT


@settings(deadline=None)
@given(st.data(), st.integers(64, 300))
def test_any_byte_changed_reads_or_is_an_input_error(tmp_path_factory, data, window):
    """Nothing but the project's own errors comes of it, and they name the file."""
    text = bytearray(document(12).encode())
    text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_bytes(text)
    try:
        read(path, window=window).self_check()
    except InputError as error:
        assert str(path) in error.message  # noqa: PT017 - not raising is fine too


@pytest.mark.parametrize("tail", ["", ",", "}", "}}", '}, "traceName": "x"}', "]}", "]} ]}", "\0\0\0"])
@pytest.mark.parametrize("window", [64, 1 << 20])
def test_a_list_that_does_not_end_as_it_should(save, tail, window):
    """Whatever stands where the end of the list and of the document should be, the events before it count."""
    text = document()
    trace = read(save(text[: text.index('], "traceName"')] + tail), window=window)
    assert len(trace.ops) == COUNT
    assert bool(trace.findings) == (tail != "]}")


@pytest.mark.parametrize("window", [64, 1 << 20])
@pytest.mark.parametrize("comma", [",", " ,\n "])
def test_a_comma_behind_the_last_event(save, comma, window):
    """It costs nothing, and is told with its place."""
    text = document().replace('], "traceName"', f'{comma}], "traceName"')
    trace = read(save(text), window=window)
    assert len(trace.ops) == COUNT
    severity, message = findings(trace)["repaired"]
    place = text.rindex(",", 0, text.index('], "traceName"'))
    assert (severity, f"mended misplaced commas (1), from byte {place} on" in message) == ("info", True)


@pytest.mark.parametrize("joint", ["", "\n", "\0", "]"])
def test_documents_of_one_rank_behind_each_other(save, joint):
    """What `cat` makes of a file and its copy is one trace, and each event counts once."""
    trace = read(save(document() + joint + document()))
    assert len(trace.ops) == trace.doubts.doubled == COUNT
    assert trace.identity.rank == 3
    assert "repaired" in findings(trace)


def test_documents_of_several_ranks_behind_each_other(save):
    """What `cat` makes of the files of several ranks is a trace of each."""
    traces = read_all(save("".join(document(10 + rank, rank) for rank in range(3))))
    assert [(trace.identity.rank, len(trace.ops)) for trace in traces] == [(0, 10), (1, 11), (2, 12)]


def test_ranks_told_too_late_are_refused(save):
    """Where only the end of a document tells that it is of another rank, its events are mixed up already."""
    late = json.dumps({"traceEvents": [event(1)], "distributedInfo": {"rank": 5}})
    with pytest.raises(InputError, match="found those of several"):
        read(save(document() + late))


def test_lists_behind_each_other(save):
    """Bare lists too."""
    first, second = (json.dumps([event(number) for number in range(at, at + 5)]) for at in (0, 5))
    assert len(read(save(first + second)).ops) == 10


def test_metadata_with_words_that_are_no_json(save):
    """The rank is known although its object holds NaN; a trailing comma ends no document."""
    text = (
        document()
        .replace('"world_size": 8', '"world_size": 8, "x": NaN')
        .replace('"traceName": "x"', '"traceName": "x",')
    )
    identity = read(save(text)).identity
    assert (identity.rank, identity.world_size) == (3, 8)


def test_a_broken_header(save):
    """Events are found behind a header that is no JSON, and that part is told."""
    text = document().replace('"schemaVersion": 1', '"schemaVersion": "C:\\", "x": 1')
    trace = read(save(text))
    assert len(trace.ops) == COUNT
    assert "repaired" in findings(trace)


def test_byte_order_mark_counts_as_a_repair(save):
    """It is told, and nothing else."""
    severity, message = findings(read(save("\ufeff" + document())))["repaired"]
    assert (severity, "byte order mark (1)" in message) == ("info", True)


@pytest.mark.parametrize("where", ["name", "args", "member"])
def test_a_string_beyond_all_measure(save, where, monkeypatch):
    """An event that is longer than events are is left out without being held; a member is stepped over."""
    monkeypatch.setattr(damage, "LONGEST_EVENT", 1 << 16)
    long = "x" * (1 << 18)
    text = document()
    text = {
        "name": text.replace("op 20", long),
        "args": text.replace('"a": 20', f'"a": "{long}"'),
        "member": text.replace('"schemaVersion": 1', f'"schemaVersion": 1, "long": "{long}"'),
    }[where]
    trace = read(save(text), window=1 << 10)
    assert len(trace.ops) == COUNT - (where != "member")
    assert bool(trace.findings) == (where != "member")


def test_a_bomb(save):
    """Gzip that holds next to nothing, many times over, is an error that says so."""
    packed = gzip.compress(b"[" + b" " * (300 << 20), compresslevel=9)
    assert len(packed) * MOST_RATIO < 300 << 20
    with pytest.raises(InputError, match=f"holds more than {MOST_RATIO} times its own size") as caught:
        read(save(packed, "bomb.json"))
    assert "gunzip" in caught.value.hint


def test_what_follows_gzip(save):
    """Bytes behind the end of a gzip stream are told, padding is not."""
    packed = gzip.compress(document().encode())
    assert "no gzip" in findings(read(save(packed + b"junk", "a.gz")))["repaired"][1]
    assert not read(save(packed + bytes(512), "b.gz")).findings


def test_times_written_as_texts_are_counted(save):
    """Each is a repair that loses nothing."""
    trace = read(save(document().replace('"ts": 7.5', '"ts": "7.5"').replace('"ts": 9.5', '"ts": "9.5"')))
    assert len(trace.ops) == COUNT
    assert "mended times that are written as texts (2)" in findings(trace)["repaired"][1]


@pytest.mark.parametrize("window", [64, 1 << 20])
@pytest.mark.parametrize("bad", ['"ts": "20.5"', '"ts": []'])
def test_the_place_of_a_value_of_the_wrong_type(save, bad, window):
    """It is that of the value or its event, however much of the file is decoded together."""
    text = document().replace('"ts": 20.5', bad)
    message = findings(read(save(text), window=window))["repaired"][1]
    at = int(message.rsplit("from byte ", 1)[1].split()[0])
    assert text.index('{"ph": "X"', text.index("op 19")) <= at <= text.index(bad)


def test_the_place_of_a_value_behind_damage(save):
    """What is decoded together with a damaged event has a place of its own."""
    broken = document().replace('"name": "op 18"', '"name" "op 18" {')
    text = broken.replace('"ts": 20.5', '"ts": "20.5"')
    message = findings(read(save(text)))["repaired"][1]
    at = text.index('{"ph": "X"', text.index("op 19"))
    assert f"from byte {at} on" in message


BETWEEN = ["", ",,", ", \0\0\0,", ",\nWARNING: rank 0 is slow\n", "\x1a,", ", null,"]


@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("bad", ["op", 'the "op"', 'an 8" op', "the\nop"])
def test_damage_between_all_events(save, between, bad):
    """Whatever stands between events, and in them, they are read; none is looked for farther than it needs."""
    bads = [bad.replace("op", f"op {number}") for number in range(COUNT)]
    events = [json.dumps(event(number)).replace(f"op {number}", bads[number]) for number in range(COUNT)]
    trace = read(save('{"traceEvents": [' + between.join(events) + '], "distributedInfo": {"rank": 1}}'))
    assert [trace.names[name] for name in trace.ops.name.tolist()] == bads


@pytest.mark.parametrize("between", [",,", "", ",\njunk\n"])
def test_damage_everywhere_takes_time_in_proportion(save, between):
    """How much of a damaged file is looked at again grows with the file, not with its square."""
    looked = 0

    class Counting:
        """Counts the bytes that a pattern may look at."""

        def __init__(self, pattern):
            self.pattern = pattern

        def finditer(self, data, begin, end):
            nonlocal looked
            for found in self.pattern.finditer(data, begin, end):
                looked += found.end() - begin
                begin = found.end()
                yield found

    count = 1000
    events = [json.dumps(event(number, args={"External id": number})) for number in range(count)]
    text = '{"traceEvents": [' + between.join(events) + "]}"
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((windows, "_TOKEN"), (damage, "_TOKEN")):
            patch.setattr(module, name, Counting(getattr(module, name)))
        trace = read(save(text))
    assert len(trace.ops) == count
    assert looked < 40 * len(text)


@pytest.mark.parametrize("wanted", ["schemaVersion", "distributedInfo"])
@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ('{"x": NaN, "rank": 3}', "words that are no JSON, as NaN (1)"),
        ('{"x": "a\nb", "rank": 3}', "raw control characters (1)"),
        ('{"x": "C:\\Users", "rank": 3}', "backslashes that escape nothing (1)"),
        ('{"x": "caf\udce9", "rank": 3}', "strings with bytes that are no UTF-8 (1)"),
        ('{"x": 1,, "rank": 3}', "misplaced commas (1)"),
        ("{1: 2}", "members beside the events that are no JSON (1)"),
        ("inf", "words that are no JSON, as NaN (1)"),
    ],
)
def test_damage_beside_the_events_is_told(save, wanted, bad, kind):
    """What is mended in the members of a document counts, with its place, whether they are used or not."""
    text = f'{{"{wanted}": {bad}, "traceEvents": {json.dumps([event(1)])}}}'
    trace = read(save(text.encode("utf-8", "surrogateescape")))
    at = text.index(bad)
    assert findings(trace)["repaired"] == ("info", f"the text is damaged: mended {kind}, from byte {at} on")
    assert trace.identity.rank == (3 if wanted == "distributedInfo" and "rank" in bad else None)


def test_a_text_beside_the_events_keeps_what_is_no_utf8(save):
    """The name of a host is known as far as it is."""
    text = document().replace('"schemaVersion": 1', '"host_name": "caf\udce9"')
    assert read(save(text.encode("utf-8", "surrogateescape"))).identity.host == "caf\ufffd"
