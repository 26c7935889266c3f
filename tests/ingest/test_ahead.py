"""Inflating ahead gives what inflating gives, to the byte and to the error."""

from __future__ import annotations

import gzip
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblescope.ingest import ahead
from bubblescope.ingest.ahead import Ahead
from bubblescope.ingest.inflate import CutOffError, DamagedError, Inflater

TEXT = random.Random(1).randbytes(3000)  # noqa: S311 - no secret
PACKED = gzip.compress(TEXT)


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Blocks of which the text holds many."""
    monkeypatch.setattr(ahead, "_BLOCK", 100)


@pytest.fixture(name="opened")
def _opened(tmp_path):
    """A function that opens bytes as a gzip file."""
    files, readers = [], []

    def opened(packed):
        path = tmp_path / "x.gz"
        path.write_bytes(packed)
        files.append(path.open("rb"))
        readers.append(Ahead(Inflater(files[-1])))
        return readers[-1]

    yield opened
    for reader, file in zip(readers, files, strict=True):
        reader.close()
        file.close()


def read(reader, size=64):
    """All that comes out, and what went wrong at last."""
    text, target = b"", bytearray(size)
    try:
        while count := reader.readinto(memoryview(target)):
            text += target[:count]
    except (CutOffError, DamagedError) as error:
        return text, type(error)
    return text, None


@given(size=st.integers(1, 500), members=st.lists(st.binary(max_size=400), max_size=4))
def test_the_text_is_the_same(tmp_path_factory, size, members):
    """Whatever the size of what is asked for, and however many members there are."""
    path = tmp_path_factory.mktemp("ahead") / "x.gz"
    path.write_bytes(b"".join(map(gzip.compress, members)))
    with path.open("rb") as file:
        reader = Ahead(Inflater(file))
        assert read(reader, size) == (b"".join(members), None)
        assert read(reader, size) == (b"", None)
        reader.close()


@pytest.mark.parametrize(("packed", "error"), [(PACKED[:-100], CutOffError), (PACKED[:-8] + bytes(8), DamagedError)])
def test_what_goes_wrong_is_told_behind_the_text(opened, packed, error):
    """As often as it is asked."""
    reader = opened(packed)
    text, told = read(reader)
    assert told is error
    assert TEXT.startswith(text)
    assert len(text) > 2000
    assert read(reader) == (b"", error)


@given(flipped=st.integers(20, len(PACKED) - 1), member=st.booleans())
def test_what_lies_before_a_damage_comes_out(tmp_path_factory, flipped, member):
    """Up to a few bytes, however much is inflated at a time: random text is stored as it is, but for a few bytes."""
    path = tmp_path_factory.mktemp("ahead") / "x.gz"
    packed = bytearray(PACKED)
    packed[flipped] ^= 255
    path.write_bytes((PACKED if member else b"") + packed)
    with path.open("rb") as file:
        text, error = read(Inflater(file), 1 << 16)
        text = text.removeprefix(TEXT) if member else text
        assert error is DamagedError
        whole = max(flipped - 200, 0)
        assert (len(text) >= whole, text[:whole]) == (True, TEXT[:whole])


def test_where_a_damage_is(tmp_path):
    """Not at the end of what was read of the file."""
    path = tmp_path / "x.gz"
    packed = gzip.compress(b"".join(b"%d\n" % number for number in range(20_000)))
    path.write_bytes(packed[:9000] + bytes(400) + packed[9400:])
    with path.open("rb") as file:
        reader = Inflater(file)
        assert read(reader)[1] is DamagedError
        with pytest.raises(DamagedError) as caught:
            reader.readinto(memoryview(bytearray(64)))
    assert 8900 < caught.value.at < 9500


def test_what_lies_behind_is_counted(opened):
    """Once the end is read."""
    reader = opened(PACKED + b"no gzip")
    assert read(reader) == (TEXT, None)
    assert reader.behind == len(b"no gzip")


def test_a_thread_ends_with_its_reader(opened):
    """In the middle of what it does; and a small text starts none."""
    before = threading.active_count()
    small, large = opened(gzip.compress(TEXT[:50])), opened(PACKED)
    read(small)
    assert threading.active_count() == before
    for _ in range(3):
        large.readinto(memoryview(bytearray(64)))
    assert threading.active_count() == before + 1
    large.close()
    assert threading.active_count() == before
