"""Tables of slices, as text and as Parquet."""

from __future__ import annotations

import gzip
import sys

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.registry import read
from bubblescope.ingest.sniff import sniff
from bubblescope.ingest.timelines import parquet
from bubblescope.model.actions import Kind
from bubblescope.model.slices import RankSlices
from bubblescope.model.timeline import Messages
from bubblescope.model.trace import Coordinate

HEADER = "rank,stage,kind,microbatch,start_us,duration_us\n"
ROWS = "0,0,F,0,0,10\n1,1,F,0,10,10\n1,1,B,0,20,20\n0,0,B,0,40,20\n"


def ranks_of(path) -> list[RankSlices]:
    """The ranks of a file, checked."""
    found = list(read(path))
    for each in found:
        each.self_check()
    return found


def columns_of(ranks):
    """All columns of all actions, rank by rank."""
    names = ("start", "end", "step", "kind", "stage", "chunk", "microbatch", "slice")
    return [
        (each.identity.rank, *zip(*(getattr(each.actions, n).tolist() for n in names), strict=True)) for each in ranks
    ]


@pytest.fixture
def table(save):
    """The ranks of a table that is given as text."""
    return lambda text: ranks_of(save(text, "notes.dat"))


@pytest.fixture
def arrow(tmp_path):
    """Write columns as Parquet."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")

    def write(columns):
        pq.write_table(pa.table(columns), tmp_path / "table.bin")
        return tmp_path / "table.bin"

    return write


def test_a_table_of_actions(table):
    """A row is an action of the rank that it names; missing columns are unknown."""
    one, other = table(HEADER + ROWS)
    assert columns_of([one, other]) == [
        (0, (0, 10_000, -1, Kind.F, 0, -1, 0, -1), (40_000, 60_000, -1, Kind.B, 0, -1, 0, -1)),
        (1, (10_000, 20_000, -1, Kind.F, 1, -1, 0, -1), (20_000, 40_000, -1, Kind.B, 1, -1, 0, -1)),
    ]
    assert (one.source.format, one.source.events) == ("table", 4)
    assert one.findings == other.findings == ()
    assert one.identity.clock == other.identity.clock is not None


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.replace(",", ";"),
        lambda t: t.replace(",", "\t"),
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("\n", "\r"),
        lambda t: "\ufeff" + t,
        lambda t: "sep=;\r\n" + t.replace(",", ";").replace("\n", "\r\n"),
        lambda t: '"sep=|"\n' + t.replace(",", "|"),
        lambda t: t.encode("utf-16"),
        lambda t: "\ufeffsep=\t\n".encode("utf-16-be") + t.replace(",", "\t").encode("utf-16-be"),
        lambda t: gzip.compress(t.encode("utf-16")),
        lambda t: t.replace("rank", '"rank"').replace("F", '"F"'),
        lambda t: t.replace("F", "forward").replace("B", "bwd"),
        lambda t: t.replace("F", "f").replace("B", "b"),
        lambda t: t + "\n\n",
        lambda t: t.rstrip("\n"),
        lambda t: t.replace("rank,stage,kind,microbatch", "Global Rank,pp_stage,op,mb"),
        lambda t: t.replace("start_us,duration_us", "ts (us),dur [us]"),
        lambda t: t.replace("0,0,F,0,0,10", "0.0,0,F,0,0.0,1e1"),
    ],
)
def test_manners_of_writing_do_not_matter(table, change):
    """Separators, line ends, quotes, words and aliases make no difference."""
    assert columns_of(table(change(HEADER + ROWS))) == columns_of(table(HEADER + ROWS))


def test_a_table_may_be_compressed(save):
    """Text is told and read inside gzip."""
    (one, _) = ranks_of(save(gzip.compress((HEADER + ROWS).encode())))
    assert len(one.actions) == 2


@pytest.mark.parametrize(
    ("unit", "text", "nanos"),
    [
        ("ns", "1700000000123456789", 1700000000123456789),
        ("us", "1700000000123456.789", 1700000000123456789),
        ("ms", "1700000000123.456789", 1700000000123456789),
        ("s", "1700000000.123456789", 1700000000123456789),
        ("seconds", "0.5", 500_000_000),
        ("MS", "0.5", 500_000),
    ],
)
def test_units_and_digits(table, unit, text, nanos):
    """The name of a column tells its unit, and no digit is lost."""
    (only,) = table(f"rank,kind,start_{unit},end_{unit}\n0,F,{text},{text}\n")
    assert only.actions.start.tolist() == [nanos]
    assert only.absolute == (nanos > 10**18)


def test_an_end_does_as_well_as_a_duration(table):
    """Where both stand, the end counts."""
    (only,) = table("rank,kind,start_ms,end_ms,duration_ms\n0,F,1,3,99\n")
    assert only.actions.end.tolist() == [3_000_000]


def test_a_stage_may_stand_for_a_rank(table):
    """Without ranks there is one a stage, in each replica; ranks are numbered as Megatron does."""
    found = table("replica,stage,kind,start_us,end_us\n" + "".join(f"{d},{s},F,0,1\n" for d in (0, 1) for s in (0, 1)))
    assert [each.identity.rank for each in found] == [0, 1, 2, 3]
    assert found[1].identity.coordinates == (Coordinate("pp", 0, 0), Coordinate("dp", 1, 0))


def test_a_row_that_tells_no_rank_moves_no_other(table):
    """It is left out with a word: to number all ranks by something else for its sake would mix replicas up."""
    one, other = table(HEADER + ROWS + ",1,F,1,60,10\n")
    assert [each.identity.rank for each in (one, other)] == [0, 1]
    assert [len(each.actions) for each in (one, other)] == [2, 2]
    assert [f.code for f in one.findings] == ["unusable-rows"]


def test_a_row_that_tells_no_stage_moves_no_other(table):
    """Likewise where stages stand for ranks."""
    found = table("stage,kind,start_us,end_us\n0,F,0,5\n1,F,5,9\n,F,9,12\n")
    assert [each.identity.rank for each in found] == [0, 1]
    assert [f.code for f in found[0].findings] == ["unusable-rows"]


def test_a_table_in_which_no_row_tells_a_rank(table):
    """It is refused, with the reason."""
    with pytest.raises(InputError, match="2 slices tell neither rank nor stage"):
        table("stage,kind,start_us,end_us\n,F,0,5\n,B,5,9\n")


def test_replicas_are_told_by_their_column(table):
    """Whatever order ranks are numbered in: the first stage of a rank tells its place, where no column does."""
    rows = [(2, 0, 0), (0, 1, 0), (1, 0, 1), (3, 1, 1)]
    found = table("rank,stage,dp_rank,kind,start_us,end_us\n" + "".join(f"{r},{s},{d},F,0,5\n" for r, s, d in rows))
    assert {each.identity.rank: [c.position for c in each.identity.coordinates] for each in found} == {
        2: [0, 0],
        0: [1, 0],
        1: [0, 1],
        3: [1, 1],
    }


def test_messages_collectives_and_the_optimizer(table):
    """What is no action has its own place; what means nothing is counted."""
    (only,) = table(
        "rank,kind,start_us,end_us,mb,peer\n"
        "0,F,0,1,0,\n0,send-forward,1,2,0,1\n0,recv_backward,2,3,,1\n0,grads-reduce-scatter,4,5,,\n"
        "0,optimizer,5,6,,\n0,checkpoint,6,7,,\n"
    )
    assert only.messages.direction.tolist() == [Messages.SEND, Messages.RECV]
    assert only.messages.kind.tolist() == [Kind.F, Kind.B]
    assert only.messages.peer.tolist() == [1, 1]
    assert [call.description for call in only.calls] == ["dp"]
    assert only.optimizer.start.tolist() == [5000]
    assert [(f.code, f.severity) for f in only.findings] == [("ignored-slices", "info")]


def test_columns_that_mean_nothing_are_named(table):
    """So that a misspelt one is noticed."""
    (only,) = table("rank,kind,start_us,end_us,colour\n0,F,0,1,red\n")
    (finding,) = only.findings
    assert (finding.code, finding.severity) == ("ignored-columns", "info")
    assert "'colour'" in finding.message


@pytest.mark.parametrize(
    ("again", "message"),
    [
        ("start_us", "'start_us' is left aside, because the first column of that name tells the same"),
        ("ts_ms", "'ts_ms' is left aside, because 'start_us' tells the same"),
        (
            "start_us,op",
            "'start_us' is left aside, because the first column of that name tells the same; so are 1 more",
        ),
    ],
)
def test_columns_that_tell_the_same_are_told(table, again, message):
    """Which of them counts is said."""
    (only,) = table(f"rank,kind,start_us,end_us,{again}\n0,F,0,9{',5' * len(again.split(','))}\n")
    assert only.actions.start.tolist() == [0]
    assert [(f.code, f.severity, f.message) for f in only.findings] == [("ignored-columns", "info", message)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("0,0,F,1,nan,3", "start_us is 'nan', which is no time"),
        ("0,0,F,1,abc,3", "start_us is 'abc', which is no number"),
        ("0,0,F,1,,3", "start_us is empty"),
        ("0,0,F,1,1e999999999,3", "start_us is '1e999999999', which is beyond any time"),
        ("0,0,F,1,inf,3", "start_us is 'inf', which is beyond any time"),
        ("0,0,F,1,5,x", "duration_us is 'x', which is no number"),
        ("0,0,F,1,100,-3", "it ends before it starts: duration_us is '-3'"),
        ("x,0,F,1,100,3", "rank is 'x', which is no whole number from 0"),
        ("1.5,0,F,1,100,3", "rank is '1.5', which is no whole number from 0"),
        ("99999999999,0,F,1,100,3", "rank is '99999999999', which is more than"),
        ("0,x,F,1,100,3", "stage is 'x', which is no whole number from 0"),
        ("0,0,F,\x1b[2J,100,3", r"microbatch is '\x1b[2J', which is no whole number from 0"),
        (f"0,0,F,1,{'y' * 99},3", f"start_us is '{'y' * 40}'..., which is no number"),
        ("0,0,F", "start_us is empty"),
    ],
)
def test_rows_that_cannot_be_are_counted(table, row, reason):
    """They are left out, with a warning that names the first."""
    one, other = table(HEADER + ROWS + row + "\n" + row + "\n")
    assert columns_of([one, other]) == columns_of(table(HEADER + ROWS))
    (finding,) = one.findings
    assert (finding.code, finding.severity) == ("unusable-rows", "warning")
    assert finding.message.startswith(f"rows left out: 2; the first is row 5: {reason}")


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("0,020", "Write a decimal point. "),
        ("1.234,5", "Write a decimal point. "),
        ("2026-01-31T10:00:00Z", "Write numbers, for example microseconds since the start, in start_us. "),
        ("10:00:00.123", "Write numbers, for example microseconds since the start, in start_us. "),
        ("12 ms", "Write the number alone, and its unit at the end of the column's name. "),
        ("1'234'567.5", "Write numbers without anything between their digits. "),
        ("", "Name the columns"),
    ],
)
def test_what_to_write_instead_is_said(table, arrow, value, remedy):
    """By what the value looks like, in text and in Parquet."""
    with pytest.raises(InputError) as text:
        table(f"rank;kind;start_ms;end_ms\n0;F;{value};3\n")
    with pytest.raises(InputError) as typed:
        ranks_of(arrow({"rank": [0], "kind": ["F"], "start_ms": [value], "end_ms": [3]}))
    assert f"row 1: start_ms is {repr(value) if value else 'empty'}" in str(text.value)
    assert str(text.value).partition(": ")[2] == str(typed.value).partition(": ")[2]
    assert text.value.hint.startswith(remedy)
    assert typed.value.hint == text.value.hint


def test_an_end_before_its_start_shows_both(table):
    """Which of the two is wrong only the writer knows."""
    one, *_ = table("rank,kind,start_us,end_us\n0,F,0,5\n0,F,9,7\n")
    assert one.findings[0].message.endswith("row 2: it ends before it starts: start_us is '9', end_us is '7'")


def test_fields_beyond_the_columns_tear_a_row(table):
    """A decimal comma between commas shifts what stands behind it, so the row is out; empty ones do no harm."""
    one, _ = table(HEADER + ROWS.replace("\n", ",,\n") + "0,0,F,1,60,5,10\n")
    assert len(one.actions) == 2
    (finding,) = one.findings
    assert finding.message == (
        "rows left out: 1; the first is row 5: it has more fields than there are columns; a number is written with a "
        "decimal point"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (HEADER, "none of its 0 rows is one"),
        (HEADER + "0,0,B,0,0,1\n", "none of its 1 rows is one"),
        (HEADER + "0,0,F,0,x,1\n", "row 1: start_us is 'x', which is no number"),
        (HEADER + "0,0,hello,0,0,1\n", "'hello'"),
        (HEADER + '0,0,"F,0,0,1\n' + "x" * 200_000, "line 3: field larger than field limit"),
    ],
)
def test_a_table_without_forwards_is_an_error(table, text, words):
    """The error says why, and its hint what a table looks like."""
    with pytest.raises(InputError, match=words) as caught:
        table(text)
    assert "start_us" in caught.value.hint


@pytest.mark.parametrize(
    ("header", "lacks"),
    [
        ("rank,start_us,end_us", "kind"),
        ("kind,start_us,end_us", "rank or stage"),
        ("rank,kind,end_us", "start"),
        ("rank,kind,start_us", "duration"),
        ("rank,kind,start,end", "start with its unit (call 'start' start_us, or _ns, _ms, _s), end with its unit"),
        ("mb,op,begin_ms", "rank or stage, duration"),
        ("rank,stage,kind,t0,t1", "start, duration; nothing is meant by 't0', 't1'"),
        ("rank,kind", "start, duration"),
        ("rank,stage,step", "kind, start, duration"),
        ("sep=;\nrank;kind;begin_ms", "duration"),
    ],
)
def test_a_table_that_lacks_a_column_is_told(save, header, lacks):
    """It is no trace, and what it lacks is said."""
    found = sniff(save(header + "\n1,2,3\n"))
    assert found.kind == "foreign"
    assert found.looks_like.startswith("a table without a column for " + lacks)


@pytest.mark.parametrize(
    "text", ["kind of magic", "0F0,0F1,0F2\n", "name,size\na,1\n", "a;b;c\n1;2;3\n", "step,rank\n1,2\n", "sep=;"]
)
def test_other_texts_are_no_tables(save, text):
    """A header of slices has two of kind, start, end and duration at the least."""
    assert sniff(save(text)).looks_like == "text"


def test_times_that_begin_anew_with_each_step_are_noticed(table):
    """Steps that lie on top of each other cannot be moments of one clock."""
    rows = "".join(f"0,{step},F,{start},{start + 9}\n" for step in range(3) for start in (0, 10))
    (only,) = table("rank,step,kind,start_us,end_us\n" + rows)
    assert only.restarts


def test_steps_may_overlap_a_little(table):
    """Asynchronous schedules begin a step before the last one is over."""
    rows = "".join(
        f"0,{step},F,{15 * step + start},{15 * step + start + 9}\n" for step in range(3) for start in (0, 10)
    )
    (only,) = table("rank,step,kind,start_us,end_us\n" + rows)
    assert not only.restarts


def test_text_and_parquet_are_alike(table, arrow):
    """The same columns give the same slices."""
    pa = pytest.importorskip("pyarrow")
    rows = [row.split(",") for row in ROWS.split()]
    names = HEADER.strip().split(",")
    columns = {name: [row[k] for row in rows] for k, name in enumerate(names)}
    typed = {
        "rank": pa.array(map(int, columns["rank"]), pa.int16()),
        "stage": pa.array(map(float, columns["stage"])),
        "kind": pa.array(columns["kind"]).dictionary_encode(),
        "microbatch": pa.array(columns["microbatch"]),
        "start_us": pa.array(map(float, columns["start_us"])),
        "duration_us": pa.array(map(int, columns["duration_us"]), pa.int32()),
    }
    assert columns_of(ranks_of(arrow(typed))) == columns_of(table(HEADER + ROWS))


def test_typed_times_of_parquet(arrow):
    """Timestamps and durations carry their unit in their type."""
    pa = pytest.importorskip("pyarrow")
    (only,) = ranks_of(
        arrow(
            {
                "rank": [0],
                "kind": ["F"],
                "start": pa.array([1_700_000_000_123_456], pa.timestamp("us")),
                "duration": pa.array([5], pa.duration("ms")),
            }
        )
    )
    assert only.actions.start.tolist() == [1_700_000_000_123_456_000]
    assert only.actions.end.tolist() == [1_700_000_000_128_456_000]


def test_missing_and_absurd_values_of_parquet(arrow):
    """Nulls and NaN are unknown ids and no times; the rows without times are counted."""
    pa = pytest.importorskip("pyarrow")
    found = ranks_of(
        arrow(
            {
                "rank": pa.array([0, 0, 0, 0, 0], pa.uint8()),
                "kind": pa.array(["F", "F", "F", "F", None]),
                "mb": pa.array([None, 1, 2, 3, 4], pa.int64()),
                "start_s": pa.array([0.25, float("nan"), 1e300, None, 1.0]),
                "end_ns": pa.array([2**40, 2**62, 2**62, None, 2**62], pa.int64()),
            }
        )
    )
    assert columns_of(found) == [(0, (250_000_000, 2**40, -1, Kind.F, -1, -1, -1, -1))]
    assert [f.code for f in found[0].findings] == ["unusable-rows", "ignored-slices"]
    assert found[0].findings[0].message.startswith("rows left out: 3; the first is row 2")


def test_nested_and_doubled_columns_of_parquet(arrow, tmp_path):
    """A list is no name and no number; of two columns of one name the first counts; bytes are text."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    plain = {"rank": [0, 0], "kind": [b"F", b"B"], "start_ns": [0, 10], "end_ns": [10, 30]}
    (only,) = ranks_of(arrow(plain))
    assert only.actions.kind.tolist() == [Kind.F, Kind.B]
    for name, words in (("rank", "rank is"), ("start_ns", "start_ns is"), ("kind", "F")):
        for nested in ([[value] for value in plain[name]], [{"of": value} for value in plain[name]]):
            with pytest.raises(InputError, match=words):
                ranks_of(arrow(plain | {name: nested}))
    columns = [*map(pa.array, plain.values()), pa.array([5, 5])]
    pq.write_table(pa.Table.from_arrays(columns, [*plain, "start_ns"]), tmp_path / "table.bin")
    (only,) = ranks_of(tmp_path / "table.bin")
    assert only.actions.start.tolist() == [0, 10]


def test_the_columns_of_straggler_analysis(arrow):
    """Seconds without a unit in the name, and a stage that is a position: told by the columns together."""
    pa = pytest.importorskip("pyarrow")
    (only,) = ranks_of(
        arrow(
            {
                "dp_rank": [0],
                "stage": [1],
                "rank": [2],
                "step": [23],
                "optype": ["forward-compute"],
                "start_ts": pa.array([0.5], pa.float32()),
                "duration": pa.array([0.25], pa.float32()),
                "mc": [1],
                "mb_id": [3],
            }
        )
    )
    assert columns_of([only]) == [(2, (500_000_000, 750_000_000, 23, Kind.F, -1, 1, 3, -1))]
    assert Coordinate("pp", 1, 0) in only.identity.coordinates


def test_parquet_without_pyarrow_says_what_to_install(arrow, monkeypatch):
    """An extra brings it."""
    path = arrow({"rank": [0], "kind": ["F"], "start_s": [0.0], "end_s": [1.0]})
    monkeypatch.setattr(parquet, "find_spec", lambda _name: None)
    with pytest.raises(InputError, match="a Parquet file, which needs pyarrow") as caught:
        read(path)
    assert "pip install 'bubblescope[parquet]'" in caught.value.hint


def test_damaged_and_other_parquet(arrow, tmp_path):
    """A cut file and one of other columns are no traces, and their errors say why."""
    path = arrow({"rank": [0] * 1000, "kind": ["F"] * 1000, "start_s": [0.0] * 1000, "end_s": [1.0] * 1000})
    (tmp_path / "cut").write_bytes(path.read_bytes()[:-30])
    assert sniff(tmp_path / "cut").looks_like == "a damaged Parquet file"
    whole = path.read_bytes()
    (tmp_path / "torn").write_bytes(whole[:20] + bytes(200) + whole[220:])
    with pytest.raises(InputError, match="damaged Parquet file"):
        list(read(tmp_path / "torn"))
    (tmp_path / "gzip").write_bytes(gzip.compress(whole))
    assert (sniff(tmp_path / "gzip").kind, sniff(tmp_path / "gzip").hint) == (
        "foreign",
        "Unpack it first, with gunzip.",
    )
    assert sniff(arrow({"a": [1]})).looks_like.startswith("a Parquet file without a column for rank or stage, kind")


def test_reading_text_does_not_wait_for_pyarrow(save):
    """Whoever has no Parquet file needs no pyarrow."""
    before = "pyarrow" in sys.modules
    assert len(ranks_of(save(HEADER + ROWS))) == 2
    assert ("pyarrow" in sys.modules) == before


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ("0,1,F,0,0,10\n1,2,F,0,10,10\n", "stages"),
        ("1,1,F,1,0,10\n2,2,F,1,10,10\n1,1,F,2,10,10\n", "stages and micro-batches and ranks"),
        ("0,0,F,1,0,10\n0,0,F,2,10,10\n", "micro-batches"),
    ],
)
def test_ids_from_one_are_noticed(table, rows, named):
    """All from 1 on are there, and 0 is not."""
    (finding,) = [f for each in table(HEADER + rows) for f in each.findings if f.code == "ids-from-one"]
    assert finding.message.startswith(f"{named} seem to count from 1")


@pytest.mark.parametrize("rows", [ROWS, "1,1,F,0,0,10\n1,1,F,1,10,10\n", "0,1,F,0,0,10\n1,3,F,0,10,10\n"])
def test_other_ids_are_not(table, rows):
    """From 0 on, a single one, and some that are missing in between."""
    assert not [f for each in table(HEADER + rows) for f in each.findings if f.code == "ids-from-one"]
