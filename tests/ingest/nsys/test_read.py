"""Whole exports: what a rank is made of, whatever the file looks like, and files that are none."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblescope.emit import Job, write
from bubblescope.errors import InputError
from bubblescope.ingest.nsys import read
from bubblescope.ingest.registry import read as read_any
from bubblescope.model.trace import Thread
from tests.ingest.nsys.exports import (
    CAPTURE,
    FILLS,
    GRAPHS,
    KERNELS,
    LAUNCHES,
    OLD_OPTIONS,
    OPTIONS,
    RANGES,
    Text,
    began,
    codes,
    copied,
    create,
    domain,
    export,
    filled,
    kernel,
    launch,
    pushed,
    spelled,
    told,
    variable,
)

EPOCH = 1_779_782_330_176_752_435
STEP = [
    kernel("gemm", 120, 130, correlation=1),
    kernel("add", 130, 140, correlation=2, stream=13),
    copied(1, 140, 150, correlation=3),
    filled(150, 160, correlation=4),
    launch("cudaLaunchKernel_v7000", 11, 12, correlation=1),
    launch("cudaLaunchKernel_v7000", 21, 22, correlation=2, tid=99),
    launch("cudaMemcpyAsync_v3020", 31, 32, correlation=3),
    launch("cudaMemsetAsync_v3020", 41, 42, correlation=4),
    launch("cudaDeviceSynchronize_v3020", 51, 52),
    pushed("PP:0F0, op_id = 1", 10, 40),
    pushed("aten::mm, seq = 4, op_id = 2", 10, 20),
    pushed("MmBackward0, seq = 4, op_id = 3", 20, 30, tid=99),
    domain("NCCL"),
    pushed(Text("ncclSend"), 50, 60, domain=1, jsonText='{"NCCL communicator ID": 171, "Peer rank": 1}'),
    pushed("a mark", 35, None, kind=34),
]
"""A bit of everything, of one rank."""

OTHER = [
    kernel("gemm", 120, 130, pid=20, device=1, correlation=1),
    launch("cudaLaunchKernel_v7000", 15, 16, pid=20, correlation=1),
    pushed("PP:1F0, op_id = 1", 10, 40, pid=20),
]
"""Another, whose process counts correlations from the same number."""


class TestRank:
    """What a rank is made of."""

    def test_blocks(self, trace):
        """Kernels, launches, operators and annotations, with all they refer to."""
        found = trace(*STEP)
        main, other = Thread("10", "10"), Thread("10", "99")
        assert found.threads == (main, other)
        (send,) = found.comms
        assert (send.op, send.group, send.peer) == ("send", "ab", 1)
        assert spelled(found) == dict.fromkeys(
            [
                ("kernels", "gemm", 120, 130, None, None, (1, 0, 0)),
                ("kernels", "add", 130, 140, None, None, (2, 0, 1)),
                ("kernels", "Memcpy HtoD (Host -> Device)", 140, 150, None, None, (3, 1, 0)),
                ("kernels", "Memset (Device)", 150, 160, None, None, (4, 2, 0)),
                ("launches", "cudaLaunchKernel", 11, 12, main, None, (1,)),
                ("launches", "cudaLaunchKernel", 21, 22, other, None, (2,)),
                ("launches", "cudaMemcpyAsync", 31, 32, main, None, (3,)),
                ("launches", "cudaMemsetAsync", 41, 42, main, None, (4,)),
                ("annotations", "PP:0F0", 10, 40, main, None, ()),
                ("ops", "aten::mm", 10, 20, main, None, (4,)),
                ("ops", "MmBackward0", 20, 30, other, None, (4,)),
                ("ops", "ncclSend", 50, 60, main, send, (-1,)),
            ],
            1,
        )
        assert found.on_gpu
        assert found.findings == ()

    def test_source(self, save):
        """The file, its bytes, and how many events were kept."""
        path = save(*STEP)
        (found,) = read(path)
        assert (found.source.path, found.source.format) == (str(path), "nsys")
        assert (found.source.bytes, found.source.events) == (path.stat().st_size, 12)

    def test_progress(self, save):
        """Grows to the bytes of the file."""
        seen = []
        path = save(*STEP)
        list(read(path, progress=seen.append))
        assert all(before < after for before, after in pairwise(seen))
        assert seen[-1] == path.stat().st_size

    def test_kernels_of_a_graph_share_a_launch(self, trace):
        """Those that were recorded node by node are all there, and all launched by it."""
        nodes = [
            kernel(name, at, at + 5, correlation=7, graphNodeId=at) for name, at in (("a", 10), ("b", 20), ("c", 30))
        ]
        found = trace(*nodes, launch("cudaGraphLaunch_v10000", 1, 2, correlation=7))
        assert found.kernels.correlation.tolist() == [7, 7, 7]
        assert found.launches.correlation.tolist() == [7]
        assert found.findings == ()

    def test_a_call_without_a_name_that_started_nothing(self, trace):
        """Is no launch; one that started something is, whatever it is called."""
        found = trace(
            kernel("a", 10, 20, correlation=1), launch(None, 1, 2, correlation=1), launch(None, 3, 4, correlation=2)
        )
        assert found.launches.correlation.tolist() == [1]

    def test_the_reader_is_found_by_content(self, save):
        """Whatever the file is called."""
        (found,) = read_any(save(*STEP, name="trace.json"))
        assert found.source.format == "nsys"


class TestTimes:
    """When events were."""

    def test_they_count_from_the_epoch(self, trace):
        """Where the file tells when the session began."""
        found = trace(kernel("a", -5, 20), launch("cudaLaunchKernel", -9, -8), began(EPOCH))
        assert found.absolute
        assert found.kernels.start.tolist() == [EPOCH - 5]
        assert found.kernels.end.tolist() == [EPOCH + 20]
        assert found.launches.start.tolist() == [EPOCH - 9]

    def test_they_count_from_nobody_knows_when(self, trace):
        """Where it does not."""
        found = trace(kernel("a", 10, 20))
        assert (found.absolute, found.kernels.start.tolist()) == (False, [10])

    @pytest.mark.parametrize("more", [[], [began(EPOCH)]])
    def test_they_are_wall_clock_already(self, trace, more):
        """As an export can be told to write them: nothing is added."""
        found = trace(kernel("a", EPOCH + 10, EPOCH + 20), *more)
        assert (found.absolute, found.kernels.start.tolist()) == (True, [EPOCH + 10])

    def test_beyond_all_time(self, trace):
        """An event that would overflow is left out, and told."""
        found = trace(kernel("a", 10, 20), kernel("b", 10, 2**63 - 1), began(EPOCH))
        assert found.kernels.end.tolist() == [EPOCH + 20]
        assert found.doubts.unplaced == 1

    @pytest.mark.parametrize("write", [float, str, lambda time: f" {time}.9"])
    def test_numbers_of_other_types(self, trace, write):
        """Real numbers and texts where integers should be are the integers that they show."""
        change = {"start", "end", "correlationId", "globalPid", "globalTid", "deviceId", "streamId"}
        rows = [
            (table, {key: write(value) if key in change and value is not None else value for key, value in row.items()})
            for table, row in STEP
        ]
        assert spelled(trace(*rows)) == spelled(trace(*STEP, name="plain.sqlite"))


class TestProcesses:
    """Ids count within a process."""

    def test_correlations_that_overlap(self, traces, trace):
        """Each rank of a file has its own launches, ranges and threads: those that it has in a file of its own."""
        first, second = traces(*STEP, *OTHER)
        assert spelled(first) == spelled(trace(*STEP, name="first.sqlite"))
        assert spelled(second) == spelled(trace(*OTHER, name="second.sqlite"))

    @given(data=st.data())
    @settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_any_correlations(self, tmp_path_factory, data):
        """A kernel is joined to the launch of its process and number, whatever numbers the processes use."""
        calls = data.draw(
            st.lists(st.tuples(st.sampled_from([10, 20, 30]), st.integers(0, 5)), unique=True, min_size=1, max_size=15)
        )
        rows = []
        for at, (pid, correlation) in enumerate(calls):
            rows.append(kernel(f"{pid}/{correlation}", 100 + at, 101 + at, pid=pid, correlation=correlation))
            rows.append(launch(f"cuLaunch {pid}/{correlation}", at, at + 1, pid=pid, correlation=correlation))
        path = tmp_path_factory.mktemp("any") / "report.sqlite"
        joined = []
        for trace in read(export(path, *data.draw(st.permutations(rows)))):
            names = {
                correlation: trace.names[name]
                for correlation, name in zip(trace.launches.correlation.tolist(), trace.launches.name, strict=True)
            }
            for correlation, name in zip(trace.kernels.correlation.tolist(), trace.kernels.name, strict=True):
                assert names[correlation] == f"cuLaunch {trace.names[name]}"
                joined.append(trace.names[name])
        assert sorted(joined) == sorted(f"{pid}/{correlation}" for pid, correlation in calls)


class TestOrder:
    """Rows of an export stand in no order."""

    @given(seed=st.integers(0, 2**32))
    @settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
    def test_a_shuffled_export_reads_equal(self, tmp_path_factory, seed):
        """Name by name and row by row."""
        folder = tmp_path_factory.mktemp("order")
        rows = [*STEP, *OTHER, *STRINGS]
        plain = list(read(export(folder / "report.sqlite", *rows)))
        (folder / "report.sqlite").unlink()
        shuffled = list(read(export(folder / "report.sqlite", *rows, seed=seed)))
        assert [exactly(trace) for trace in shuffled] == [exactly(trace) for trace in plain]

    def test_a_shuffled_job_reads_equal(self, tmp_path):
        """A whole host, with all that a training step has."""
        job = Job(p=2, m=2, t=2, steps=1, recorder="nsys", payloads="json", one_file_a_host=True, ranks_a_host=4)
        (path,) = [path for path in write(job, tmp_path) if path.suffix == ".sqlite"]
        plain = list(read(path))
        rows = []
        with closing(sqlite3.connect(path)) as database:
            database.row_factory = sqlite3.Row
            names = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            rows = [(name, dict(row)) for name in names for row in database.execute(f"SELECT * FROM {name}")]  # noqa: S608
        path.unlink()
        shuffled = list(read(export(path, *rows, seed=1)))
        assert len(shuffled) == 4
        assert [exactly(trace) for trace in shuffled] == [exactly(trace) for trace in plain]


STRINGS = [pushed(Text(f"text {i}"), 1000 + i, 1100 + i, pid=20) for i in range(20)]


def exactly(trace):
    """All of a trace that can be compared, rows in their order."""
    blocks = [getattr(trace, name) for name in ("ops", "annotations", "launches", "kernels")]
    columns = [{key: value.tolist() for key, value in vars(block).items()} for block in blocks]
    return columns, trace.names, trace.threads, trace.comms, trace.identity, trace.findings


class TestSchemas:
    """Exports of other ages."""

    def test_tables_with_versions(self, trace):
        """Of which the rows are the same."""
        renamed = {KERNELS: f"{KERNELS}_V3", "CUPTI_ACTIVITY_KIND_MEMCPY": "CUPTI_ACTIVITY_KIND_MEMCPY2",
                   LAUNCHES: f"{LAUNCHES}_V2", RANGES: f"{RANGES}_V2"}  # fmt: skip
        assert spelled(trace(*STEP, renamed=renamed)) == spelled(trace(*STEP, name="plain.sqlite"))

    def test_strings_without_a_key(self, trace):
        """Are found all the same."""
        assert spelled(trace(*STEP, keyed=False)) == spelled(trace(*STEP, name="plain.sqlite"))

    def test_2021(self, tmp_path):
        """The schema of Nsight Systems 2021.5, with only the columns that it documents."""
        path = tmp_path / "report1.sqlite"
        with closing(sqlite3.connect(path)) as database:
            database.executescript(OLD)
            database.commit()
        (found,) = read_any(path)
        found.self_check()
        assert spelled(found) == dict.fromkeys(
            [
                ("kernels", "void gemm(int)", 300, 400, None, None, (7, 0, 0)),
                ("launches", "cudaLaunchKernel", 200, 250, Thread("10", "11"), None, (7,)),
                ("annotations", "mine", 100, 500, Thread("10", "11"), None, ()),
                ("ops", "ncclSend", 150, 160, Thread("10", "11"), None, (-1,)),
            ],
            1,
        )
        assert found.identity.devices[0].name == "Tesla V100"
        assert codes(found) == {"nccl-payloads", "unpaired-events"}

    def test_no_ranges(self, trace):
        """A recording of CUDA alone."""
        found = trace(*(row for row in STEP if row[0] != RANGES))
        assert (len(found.kernels), len(found.launches), len(found.ops), len(found.annotations)) == (4, 4, 0, 0)

    def test_kernels_alone(self, trace):
        """Are a rank; nothing is known of its threads."""
        found = trace(kernel("a", 1, 2))
        assert (len(found.kernels), found.threads, found.findings) == (1, (), ())

    @pytest.mark.parametrize(
        "lost", ["deviceId", "streamId", "correlationId", "demangledName", "shortName", "globalPid"]
    )
    def test_a_column_of_kernels_that_is_not_there(self, trace, lost):
        """Costs what it would tell, and no kernel."""
        found = trace(*STEP, without={KERNELS: {lost}, "CUPTI_ACTIVITY_KIND_MEMCPY": {lost}, FILLS: {lost}})
        assert sorted(found.kernels.start.tolist()) == [120, 130, 140, 150]

    @pytest.mark.parametrize("lost", ["globalTid", "domainId", "textId", "text", "jsonText", "eventType", "end"])
    def test_a_column_of_ranges_that_is_not_there(self, trace, lost):
        """Costs no kernel either."""
        assert len(trace(*STEP, without={RANGES: {lost}}).kernels) == 4


OLD = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO StringIds VALUES (1, 'void gemm(int)'), (2, 'gemm'), (3, 'cudaLaunchKernel_v7000'), (4, 'ncclSend');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (300, 400, 0, 1, 7, 7, 10 << 24, 1, 2, 1, 0);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (200, 250, 0, 10 << 24 | 11, 7, 3, 0);
CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER,
    category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER,
    domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL);
INSERT INTO NVTX_EVENTS (start, end, eventType, text, globalTid, textId, domainId) VALUES
    (100, 500, 59, 'mine', 10 << 24 | 11, NULL, 0), (150, 160, 59, NULL, 10 << 24 | 11, 4, 1),
    (170, NULL, 60, 'open', 10 << 24 | 11, NULL, 0), (180, NULL, 34, 'mark', 10 << 24 | 11, NULL, 0);
CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);
INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '2.7.1');
CREATE TABLE TARGET_INFO_GPU (id INTEGER NOT NULL, name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'Tesla V100');
"""


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a sound file of many pages."""
    more = [kernel(f"kernel {i}", 200 + i, 201 + i, correlation=i) for i in range(300)]
    return export(tmp_path_factory.mktemp("whole") / "report.sqlite", *STEP, *OTHER, *more).read_bytes()


class TestFiles:
    """Files that are no exports, or have nothing in them."""

    @pytest.mark.parametrize(
        "rows",
        [
            [pushed("mine", 1, 2), launch("cudaLaunchKernel", 1, 2)],
            [kernel("a", 0, 0)],
            [kernel("a", None, None)],
            [copied(1, 1, 2), filled(1, 2)],
            [(OPTIONS, {"name": "EXPORT_SCHEMA_VERSION", "value": "3.24.14"})],
            [(OLD_OPTIONS, {"name": "EXPORT_SCHEMA_VERSION", "value": "2.7.1"})],
        ],
        ids=["host only", "no times", "no times at all", "copies", "empty", "old and empty"],
    )
    def test_no_kernels(self, save, rows):
        """The table that lacks is named, and how to record it."""
        path = save(*rows)
        with pytest.raises(InputError, match=rf"report\.sqlite: expected kernels.*{KERNELS}.*{GRAPHS}") as caught:
            list(read_any(path))
        assert "--trace=cuda,nvtx" in caught.value.hint

    def test_an_empty_file(self, tmp_path):
        """What a failed export leaves: said to be one, whoever reads it."""
        path = tmp_path / "report.sqlite"
        path.touch()
        with pytest.raises(InputError, match="found an empty file"):
            list(read_any(path))
        with pytest.raises(InputError, match="expected kernels"):
            list(read(path))

    def test_another_database(self, tmp_path):
        """Of some other program."""
        path = tmp_path / "report.sqlite"
        with closing(sqlite3.connect(path)) as database:
            create(database, "kernels", [{"start": 1, "end": 2, "StringIds": 3}])
            database.commit()
        with pytest.raises(InputError, match="no export of Nsight Systems"):
            list(read_any(path))
        with pytest.raises(InputError, match="expected kernels"):
            list(read(path))

    @given(share=st.floats(0, 1), seed=st.integers(0, 99))
    @settings(max_examples=60)
    def test_a_file_that_was_cut(self, whole, tmp_path_factory, share, seed):
        """Anywhere, is an error that names it, or reads."""
        content = whole[: round(len(whole) * share)]
        self.reads_or_names(tmp_path_factory, f"cut{seed}.sqlite", content)

    @given(data=st.data())
    @settings(max_examples=100)
    def test_a_file_with_damage(self, whole, tmp_path_factory, data):
        """Some bytes that were changed, likewise."""
        content = bytearray(whole)
        for _ in range(data.draw(st.integers(1, 8))):
            content[data.draw(st.integers(100, len(content) - 1))] = data.draw(st.integers(0, 255))
        self.reads_or_names(tmp_path_factory, "damaged.sqlite", bytes(content))

    @staticmethod
    def reads_or_names(factory, name, content):
        """Read a file of that content."""
        path = factory.mktemp("damage") / name
        path.write_bytes(content)
        try:
            for trace in read_any(path):
                trace.self_check()
        except InputError as error:
            assert str(path) in error.message and error.hint  # noqa: PT017, PT018 - not raising is fine too

    def test_a_cut_file_is_an_error(self, whole, tmp_path):
        """Half of it is not taken for all of it."""
        path = tmp_path / "cut.sqlite"
        path.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(InputError, match=r"cut\.sqlite: .*damaged SQLite database"):
            list(read_any(path))

    def test_a_schema_that_is_no_text(self, whole, tmp_path):
        """Is damage, whatever SQLite says of it."""
        path = tmp_path / "report.sqlite"
        path.write_bytes(whole.replace(b"CREATE TABLE", b"CREATE T\xffBLE"))
        with pytest.raises(InputError, match=r"report\.sqlite: .*damaged SQLite database"):
            list(read_any(path))

    @pytest.mark.parametrize("mode", ["DELETE", "WAL"])
    def test_nothing_is_written(self, save, tmp_path, mode):
        """Neither into the file nor beside it, in a folder where nobody may write."""
        path = save(*STEP)
        with closing(sqlite3.connect(path)) as database:
            database.execute(f"PRAGMA journal_mode = {mode}")
        before = path.read_bytes()
        tmp_path.chmod(0o500)
        try:
            assert len(list(read_any(path))) == 1
            assert [file.name for file in tmp_path.iterdir()] == ["report.sqlite"]
        finally:
            tmp_path.chmod(0o700)
        assert path.read_bytes() == before

    def test_names_that_mean_something_to_sqlite(self, save):
        """A path is a path."""
        assert len(list(read_any(save(*STEP, name="50%25 a?mode=memory#b.sqlite")))) == 1


class TestOddTexts:
    """Texts of any kind do no harm."""

    @given(text=st.binary(max_size=60) | st.text(max_size=60), by_id=st.booleans())
    @settings(max_examples=40)
    def test_any_text(self, tmp_path_factory, text, by_id):
        """As the name of a range, a kernel and a call, in payloads and in what is told of the session."""
        value = Text(text) if by_id and isinstance(text, str) else text
        strings = [("StringIds", {"id": 2, "value": text})]
        rows = [
            kernel("a", 10, 20, correlation=1, demangledName=2),
            launch("b", 1, 2, correlation=1, nameId=2),
            pushed(value, 1, 2, jsonText=text, binaryData=text),
            pushed(None, 1, 2, textId=2, jsonTextId=2),
            variable("RANK", text), variable("Hostname", text), told(text),
            (CAPTURE, {"name": "PROCESS_0:ENVIRONMENT_VARIABLE", "value": text}),
            ("TARGET_INFO_GPU", {"id": 0, "name": text}),
            domain(text),
        ]  # fmt: skip
        (trace,) = read(export(tmp_path_factory.mktemp("odd") / "report.sqlite", *rows, *strings))
        trace.self_check()
        assert len(trace.kernels) == 1

    def test_no_utf8(self, trace):
        """A name that is damaged is that of its kernel all the same."""
        found = trace(kernel("a", 1, 2, demangledName=2), ("StringIds", {"id": 2, "value": b"ge\xffmm"}))
        assert found.names == ("ge\N{REPLACEMENT CHARACTER}mm",)


WORK = (KERNELS, "CUPTI_ACTIVITY_KIND_MEMCPY", FILLS, GRAPHS)


def counted(path):
    """Work, launches, ranges and pairs of a launch and what it started, of the processes with kernels, by SQL."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as database:
        there = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        ran = " UNION ALL ".join(
            f"SELECT correlationId, globalPid FROM {table} WHERE end >= start AND globalPid IN owners"  # noqa: S608
            for table in WORK
            if table in there
        )
        call = " OR ".join(f"value LIKE '%{word}%'" for word in ("launch", "memcpy", "memset", "enqueue"))
        (row,) = database.execute(
            f"WITH owners AS (SELECT DISTINCT globalPid FROM {KERNELS}), ran AS ({ran}), "  # noqa: S608
            f"calls AS (SELECT correlationId, globalTid & ~0xffffff AS globalPid, {call} AS launches FROM {LAUNCHES} r "
            "JOIN StringIds ON id = nameId) SELECT (SELECT COUNT(*) FROM ran), "
            "(SELECT COUNT(*) FROM calls WHERE launches AND globalPid IN owners), "
            f"(SELECT COUNT(*) FROM {RANGES} WHERE eventType IN (59, 60, 70, 71) AND end IS NOT NULL AND "
            "globalTid & ~0xffffff IN owners), "
            "(SELECT COUNT(*) FROM calls JOIN (SELECT DISTINCT * FROM ran) USING (correlationId, globalPid))"
        ).fetchall()
    return row


@pytest.mark.parametrize("pattern", ["real/nsys/*.sqlite", "synthetic/nsys_*/*.sqlite"])
def test_recorded_exports(shared, pattern):
    """All read, and their counts are those of SQL; one without a table of kernels says so."""
    paths = sorted(shared.glob(pattern))
    assert paths
    for path in paths:
        if path.stem == "no_kernel_table":
            with pytest.raises(InputError, match=KERNELS):
                list(read_any(path))
            continue
        found = list(read_any(path))
        for trace in found:
            trace.self_check()
        launched = sum(
            len(set(trace.kernels.correlation.tolist()) & set(trace.launches.correlation.tolist())) for trace in found
        )
        kernels, launches = (sum(len(getattr(trace, block)) for trace in found) for block in ("kernels", "launches"))
        marked = sum(len(trace.ops) + len(trace.annotations) for trace in found)
        assert (kernels, launches, marked, launched) == counted(path), path
        assert len({trace.identity.clock for trace in found}) == 1
        assert all(trace.absolute for trace in found), path
