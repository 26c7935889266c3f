"""An SQLite file is read whatever tables and columns it has, and is never written."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.nsys.database import ABSENT, Database, Table, quoted
from tests.ingest.nsys.exports import create

WANTED = Table("THINGS", ("start", "end"), ("text",))


@pytest.fixture
def stored(tmp_path):
    """Let a function fill a database, and open it."""
    opened = []

    def fill(function, name="report.sqlite"):
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            function(connection)
            connection.commit()
        opened.append(Database(tmp_path / name))
        return opened[-1]

    yield fill
    for database in opened:
        database.__exit__(None, None, None)


@pytest.fixture
def things(stored):
    """Store one table of the given rows, and open it."""
    return lambda *rows, name="THINGS": stored(lambda connection: create(connection, name, rows))


def cells(database, table=WANTED, *where):
    """The rows of a table as tuples."""
    return [
        row
        for rows in database.rows(table, *where)
        for row in zip(*(rows.numbers[c].tolist() for c in table.numbers), *rows.texts.values(), strict=True)
    ]


class TestTables:
    """Which tables answer to a name."""

    @pytest.mark.parametrize("name", ["THINGS", "THINGS2", "THINGS_V3", "THINGS_3", "THINGSV12", "things_v3"])
    def test_a_version_may_stand_behind_a_name(self, things, name):
        """With or without V and underscore."""
        database = things({"start": 1, "end": 2, "text": "a"}, name=name)
        assert database.versions("THINGS") == (name,)
        assert cells(database) == [(1, 2, b"a")]

    @pytest.mark.parametrize("name", ["THINGS_OF", "THINGSX", "MY_THINGS", "THINGS_V", "THINGS_V3_OLD"])
    def test_other_tables_do_not_answer(self, things, name):
        """Whose name only begins or ends alike."""
        assert cells(things({"start": 1, "end": 2, "text": "a"}, name=name)) == []

    def test_all_versions_are_read(self, stored):
        """Where a file has two, the rows of both."""

        def fill(connection):
            create(connection, "THINGS", [{"start": 1, "end": 2}])
            create(connection, "THINGS_V3", [{"start": 3, "text": "b"}])

        database = stored(fill)
        assert sorted(cells(database)) == [(1, 2, None), (3, ABSENT, b"b")]
        assert database.has("THINGS", "text")
        assert not database.has("THINGS", "texts")

    def test_a_table_that_is_not_there_has_no_rows(self, things):
        """And is not said to be there."""
        database = things({"a": 1}, name="OTHERS")
        assert cells(database) == []
        assert not database.has("THINGS")
        assert database.tables == ("OTHERS",)

    def test_views_are_no_tables(self, stored):
        """What they compute may take for ever, as this one would."""
        endless = "WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start FROM n"
        database = stored(lambda connection: connection.execute(f"CREATE VIEW THINGS AS {endless}"))
        assert database.tables == ()
        assert cells(database) == []

    def test_virtual_tables_are_no_tables(self, stored):
        """Their code is not for us to run; what such a module keeps in tables of its own does no harm."""

        def fill(connection):
            connection.execute("CREATE VIRTUAL TABLE THINGS USING rtree(id, start, end)")
            connection.execute("INSERT INTO THINGS VALUES (1, 2, 3)")

        database = stored(fill)
        assert "THINGS" not in database.tables
        assert cells(database) == []

    def test_generated_columns_are_not_computed(self, stored):
        """They read as columns that are not there."""

        def fill(connection):
            connection.execute("CREATE TABLE THINGS (start, end AS (start + 1), text AS (zeroblob(9)) STORED)")
            connection.execute("INSERT INTO THINGS VALUES (1)")

        assert cells(stored(fill)) == [(1, ABSENT, None)]

    def test_names_of_any_characters(self, stored):
        """A quote in the name of a table or column ends nothing."""
        assert quoted('a"b') == '"a""b"'

        def fill(connection):
            connection.execute('CREATE TABLE "x""; DROP TABLE y" ("sta""rt")')
            connection.execute('INSERT INTO "x""; DROP TABLE y" VALUES (1)')

        database = stored(fill)
        assert cells(database, Table('x"; DROP TABLE y', ('sta"rt',))) == [(1,)]


class TestValues:
    """What stands in a column, whatever was written into it."""

    def test_a_missing_column_reads_as_absent(self, things):
        """Numbers as ABSENT, texts as None."""
        assert cells(things({"start": 1})) == [(1, ABSENT, None)]

    def test_null_is_absent(self, things):
        """In both kinds of columns."""
        assert cells(things({"start": None, "end": 3, "text": None})) == [(ABSENT, 3, None)]

    @pytest.mark.parametrize(
        ("value", "number"),
        [
            (0, 0), (-5, -5), (2**63 - 1, 2**63 - 1), (7.0, 7), (7.9, 7), (-7.9, -7), (1e300, ABSENT),
            ("12", 12), (" 12 ", 12), ("12.7", 12), ("x", ABSENT), ("", ABSENT), (b"12", 12), (float("nan"), ABSENT),
        ],
    )  # fmt: skip
    def test_numbers(self, things, value, number):
        """Of any type of SQLite as what they show, towards zero; what shows none is absent."""
        assert cells(things({"start": value, "end": 1, "text": ""})) == [(number, 1, b"")]

    @pytest.mark.parametrize("value", [7.5, "7", b"7", None, 2**62 + 1])
    def test_numbers_without_texts(self, things, value):
        """Tables of numbers alone, which take a quicker way, read the same."""
        database = things({"start": value, "end": 1})
        with_texts, without = cells(database), cells(database, Table("THINGS", ("start", "end")))
        assert [row[:2] for row in with_texts] == without

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("a", b"a"), ("é", "é".encode()), (b"\xff\x00\xfe", b"\xff\x00\xfe"), (12, b"12"), ("", b""), (b"", None),
            ("x" * 20_000, b"x" * 16_384), (b"\xff" * 20_000, b"\xff" * 16_384),
        ],
        ids=["ascii", "two bytes", "blob", "number", "empty", "empty blob", "long", "long blob"],
    )  # fmt: skip
    def test_texts(self, things, value, text):
        """Come as bytes, and none is longer than a name or payload can be."""
        assert cells(things({"start": 1, "end": 2, "text": value})) == [(1, 2, text)]

    def test_texts_that_are_no_utf8(self, stored):
        """Come as the bytes that they are."""

        def fill(connection):
            connection.execute("CREATE TABLE THINGS (start, end, text TEXT)")
            connection.execute("INSERT INTO THINGS VALUES (1, 2, CAST(x'61ff62' AS TEXT))")

        assert cells(stored(fill)) == [(1, 2, b"a\xffb")]

    def test_databases_in_utf16(self, stored):
        """Texts come in UTF-8 all the same."""

        def fill(connection):
            connection.execute("PRAGMA encoding = 'UTF-16'")
            create(connection, "THINGS", [{"start": 1, "end": 2, "text": "é"}])

        assert cells(stored(fill)) == [(1, 2, "é".encode())]

    @pytest.mark.parametrize("table", [WANTED, Table("THINGS", ("start", "end"))])
    def test_many_rows_come_in_parts(self, things, table):
        """And all of them come."""
        database = things(*({"start": i, "end": -i, "text": str(i)} for i in range(12_000)))
        assert len(list(database.rows(table))) > 1
        assert sorted(row[:2] for row in cells(database, table)) == [(i, -i) for i in range(12_000)]

    def test_conditions(self, things):
        """Rows are chosen by columns and values."""
        database = things(*({"start": i, "end": i, "text": str(i)} for i in range(9)))
        assert cells(database, WANTED, '"start" > ? AND "text" <> ?', (6, "8")) == [(7, 7, b"7")]


@pytest.mark.parametrize(
    ("columns", "key"),
    [
        ("id INTEGER PRIMARY KEY, value", True),
        ("id integer, value, PRIMARY KEY (id)", True),
        ("id INTEGER, value", False),
        ("id INT PRIMARY KEY, value", False),
        ("id, value INTEGER PRIMARY KEY", False),
        ("value", False),
    ],
)
def test_keys(stored, columns, key):
    """Only an INTEGER PRIMARY KEY is what SQLite finds rows by."""
    assert stored(lambda connection: connection.execute(f"CREATE TABLE T ({columns})")).is_key("T", "id") is key


class TestFiles:
    """The file, and what lies beside it."""

    @pytest.mark.parametrize("mode", ["DELETE", "WAL"])
    def test_nothing_is_written(self, stored, tmp_path, mode):
        """Neither into the file nor beside it, whatever journal it was left with."""

        def fill(connection):
            connection.execute(f"PRAGMA journal_mode = {mode}")
            create(connection, "THINGS", [{"start": 1, "end": 2, "text": "a"}])

        stored(fill).__exit__(None, None, None)
        path = tmp_path / "report.sqlite"
        before, changed = path.read_bytes(), path.stat().st_mtime_ns
        path.chmod(0o400)
        tmp_path.chmod(0o500)
        try:
            with Database(path) as database:
                assert cells(database) == [(1, 2, b"a")]
                assert [file.name for file in tmp_path.iterdir()] == ["report.sqlite"]
        finally:
            tmp_path.chmod(0o700)
        assert [file.name for file in tmp_path.iterdir()] == ["report.sqlite"]
        assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, changed)

    def test_a_writer_that_did_not_finish_is_told(self, tmp_path):
        """Its log is neither read nor merged."""
        path, copy = tmp_path / "report.sqlite", tmp_path / "copy.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            create(connection, "THINGS", [{"start": 1}])
            connection.commit()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("INSERT INTO THINGS VALUES (2)")
            connection.commit()
            copy.write_bytes(path.read_bytes())
            log = tmp_path / "copy.sqlite-wal"
            log.write_bytes((tmp_path / "report.sqlite-wal").read_bytes())
        before = log.read_bytes()
        with Database(copy) as database:
            assert database.unmerged
            assert cells(database) == [(1, ABSENT, None)]
        assert {file.name for file in tmp_path.glob("copy*")} == {"copy.sqlite", "copy.sqlite-wal"}
        assert log.read_bytes() == before

    def test_a_journal_of_a_writer_that_did_not_finish_is_told(self, tmp_path):
        """An export that was killed, or still runs: pages of it are in the file, and those it replaced in a journal."""
        path, copy = tmp_path / "report.sqlite", tmp_path / "copy.sqlite"
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = PERSIST")
            connection.execute("PRAGMA cache_size = 1")
            create(connection, "THINGS", [{"start": number} for number in range(2000)])
            connection.execute("BEGIN")
            connection.execute("UPDATE THINGS SET start = 7")
            copy.write_bytes(path.read_bytes())
            (tmp_path / "copy.sqlite-journal").write_bytes((tmp_path / "report.sqlite-journal").read_bytes())
            connection.execute("COMMIT")
        with Database(copy) as half, Database(path) as whole:
            assert (half.unmerged, whole.unmerged) == (True, False)

    @pytest.mark.parametrize("log", [None, b""])
    def test_an_empty_log_is_nothing(self, things, tmp_path, log):
        """A writer that finished leaves one."""
        if log is not None:
            (tmp_path / "report.sqlite-wal").write_bytes(log)
        assert not things({"start": 1}).unmerged

    def test_a_file_cut_off_in_its_tables(self, things, tmp_path):
        """Is damage, named as that, when the rows are asked for."""
        things(*({"start": i, "end": i, "text": "x" * 100} for i in range(2000)))
        path = tmp_path / "cut.sqlite"
        path.write_bytes((tmp_path / "report.sqlite").read_bytes()[: 40 * 1024])
        with (
            pytest.raises(InputError, match=r"cut\.sqlite: expected an export .*, found a damaged SQLite") as caught,
            Database(path) as database,
        ):
            cells(database)
        assert "--force-overwrite" in caught.value.hint

    def test_a_file_that_is_no_database(self, tmp_path):
        """Is damage as soon as it is opened."""
        path = tmp_path / "report.sqlite"
        path.write_bytes(b"SQLite format 3\x00" + b"\x07" * 4000)
        with pytest.raises(InputError, match="found a damaged SQLite database"):
            Database(path)

    def test_a_schema_that_is_no_text(self, things, tmp_path):
        """SQLite quotes it in its message, which is then no text either: damage all the same."""
        things({"start": 1})
        path = tmp_path / "report.sqlite"
        path.write_bytes(path.read_bytes().replace(b"CREATE TABLE", b"CREATE T\xffBLE"))
        with pytest.raises(InputError, match=r"found a damaged SQLite database$"):
            Database(path)

    def test_progress(self, tmp_path):
        """Is told in bytes of the file."""
        seen = []
        with closing(sqlite3.connect(tmp_path / "report.sqlite")) as connection:
            create(connection, "THINGS", [{"start": 1}])
            connection.commit()
        with Database(tmp_path / "report.sqlite", seen.append) as database:
            database.advance(0.5)
            database.advance(1)
        size = (tmp_path / "report.sqlite").stat().st_size
        assert seen == [size // 2, size]
