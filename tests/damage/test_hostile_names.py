"""Names that mean something to a terminal, a browser, a spreadsheet or a CI system: every output shows them as text."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from contextlib import closing
from sqlite3 import connect

import pytest

from bubblescope.emit import Job, write
from tests.damage.runs import analyzed

TINY = {"p": 2, "m": 2, "steps": 3, "kernels": 1, "forward_ns": 50_000, "backward_ns": 100_000, "p2p_ns": 5_000}
FORMATS = ("json", "table", "markdown", "csv")
HOSTILE = {
    "terminal": "\x1b[2J\x1b]0;title\x07\x9b31m\x7f\x00",
    "html": "<script>alert(1)</script><img src=x onerror=y>&lt;",
    "markdown": "| a | b |\n# h\n- [x](https://evil.example) ![i](x) `c` **b** @team #1",
    "workflow": "\n::error file=a::x\r\n##[error]x\n%0A::error::x",
    "command": "::error file=a,line=1::x ::stop-commands::y ##[group]z",
    "bidi": "\u202edesrever\u202c\u2066x\u2069\u200b\ufeff\u00ad",
    "lines": "a\u2028b\u2029c\x85d\x0be\x0cf\rg",
    "formula": '=HYPERLINK("https://evil.example","x")',
    "markup": "[bold red]x[/] {count} %s %(x)s ${y}",
    "path": "../../etc/passwd",
    "sql": "'; DROP TABLE StringIds; --",
    "surrogate": "\ud800x",
    "tag": "\U000e0041\U000e007f",
    "long": "x" * 1_000_000,
}
LONGEST = 1_000_000
"""Bytes of a report on two ranks, whatever their names are."""

each_name = pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
each_format = pytest.mark.parametrize("form", FORMATS)


def spoiled(document, text):
    """A trace in which every name ends with a text, or begins with it."""
    for event in document["traceEvents"]:
        args = event.get("args")
        if event.get("cat") == "kernel" and "nccl" not in event["name"]:
            event["name"] = text + event["name"]
        for key in ("name", "labels", "Process Group Name", "Process Group Description", "dtype"):
            if isinstance(args, dict) and isinstance(args.get(key), str):
                args[key] = text if key.endswith("Description") else args[key] + text
    told = document.get("distributedInfo", {})
    told["backend"] = text
    for group in told.get("pg_config", ()):
        group.update(pg_name=f"{group.get('pg_name')}{text}", pg_desc=text)
    document |= {"host_name": text, "traceName": f"../../{text}", text: text}
    document["deviceProperties"] = [{"id": 0, "name": text}]
    document["traceEvents"] += [
        {"ph": "X", "cat": "user_annotation", "name": text, "pid": 0, "tid": text, "ts": 1, "dur": 1},
        {"ph": "E", "cat": "user_annotation", "name": text, "pid": 0, "tid": text, "ts": 1},
    ]


@pytest.fixture(params=["pp", "none"])
def kineto(request, tmp_path):
    """Write traces in which a text stands wherever a name may."""

    def make(text):
        for path in write(Job(compress=False, labels=request.param, **TINY), tmp_path):
            document = json.loads(path.read_bytes())
            spoiled(document, text)
            path.write_text(json.dumps(document))
        return tmp_path

    return make


@pytest.fixture
def nsys(tmp_path):
    """The same for exports of Nsight Systems."""

    def make(text):
        for path in write(Job(recorder="nsys", **TINY), tmp_path):
            with closing(connect(path)) as database:
                sound = text.encode("utf-8", "replace").decode()
                database.execute("UPDATE StringIds SET value = value || ? WHERE value NOT LIKE 'cu%'", (sound,))
                database.execute("UPDATE TARGET_INFO_GPU SET name = ?", (sound,))
                database.execute("UPDATE TARGET_INFO_SYSTEM_ENV SET value = value || ?", (sound,))
                database.commit()
        return tmp_path

    return make


def acting(text):
    """Characters that act instead of showing."""
    hidden = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    return sorted({char for char in text if char != "\n" and unicodedata.category(char) in hidden})


def is_harmless(outcome, form):
    """Whether what is printed is text of its format, and nothing else."""
    assert outcome.fault is None
    text = outcome.out.decode()
    assert not acting(text), form
    assert not acting(outcome.err)
    assert not re.search(r"(?m)^\s*::[\w-]+[^:\n]*::|##\[", text + outcome.err)
    assert len(outcome.out) < LONGEST
    if outcome.code or not text:
        return
    if form == "json":
        json.loads(text)
    elif form == "csv":
        rows = list(csv.reader(io.StringIO(text)))
        assert {len(row) for row in rows} == {4}
        assert not [cell for row in rows for cell in row if re.match(r"[=+@\t\r]|-\D", cell)]
    elif form == "markdown":
        assert "<script" not in text
        assert "<img" not in text
        assert "@team" not in text
        assert "](https" not in text


@each_format
@each_name
def test_names_in_a_trace_are_text(kineto, text, form):
    """Of kernels, groups, threads, devices, hosts and members of the document."""
    is_harmless(analyzed([kineto(text)], "--format", form), form)


@each_format
@each_name
def test_names_in_an_export_are_text(nsys, text, form):
    """Of kernels, ranges, devices and hosts."""
    is_harmless(analyzed([nsys(text)], "--format", form), form)


@each_format
@pytest.mark.parametrize("text", [text for name, text in HOSTILE.items() if name not in {"long", "path", "surrogate"}])
def test_names_of_files_are_text(tmp_path, text, form):
    """A name may hold all but a slash and a zero, and stands in findings, errors and results."""
    folder = tmp_path / text.replace("/", "|").replace("\x00", "0")
    folder.mkdir()
    for path in write(Job(compress=False, **TINY), folder):
        path.rename(path.with_name(f"{folder.name[:60]}{path.name}"))
    (folder / f"{folder.name[:60]}.json").write_text("[1, 2]")
    is_harmless(analyzed([folder], "--format", form), form)
    is_harmless(analyzed([folder / f"{folder.name[:60]}.json"], "--format", form), form)


def test_json_keeps_what_names_say(kineto):
    """Escapes in JSON are read as what was escaped; what shows stands as it is."""
    outcome = analyzed([kineto("\u202e\x9bé漢\U0001f600")], "--json")
    assert "\\u202e\\u009bé漢😀".encode() in outcome.out
    assert "\u202e\x9bé漢😀" in json.dumps(json.loads(outcome.out), ensure_ascii=False)
