"""What files are, as page, JSON and CSV.

After a wanted change write the goldens anew with `BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/report`, and read the
difference before committing it.
"""

from __future__ import annotations

import csv
import io
import json as standard
import os
from dataclasses import replace
from pathlib import Path

import jsonschema
import msgspec
import pytest
from rich.console import Console

from bubblescope.model.info import Info
from bubblescope.model.trace import Finding
from bubblescope.report import info_csv, inventories, json, pages
from tests import infos
from tests.infos import file, info, job, rank
from tests.markdowns import outside_code

GOLDEN = Path(__file__).parent / "golden"
RENDERERS = {
    "txt": lambda found: pages.plain(inventories.page(found)),
    "md": lambda found: pages.markdown(inventories.page(found)),
    "json": json.render,
    "csv": info_csv.render,
}


@pytest.fixture(params=sorted(infos.SAMPLES))
def sample(request) -> str:
    """The name of each sample in turn."""
    return request.param


@pytest.mark.parametrize("suffix", sorted(RENDERERS))
def test_output_is_the_golden_one(sample, suffix):
    """A renderer writes exactly what was last looked at and found good."""
    path = GOLDEN / f"info-{sample}.{suffix}"
    made = RENDERERS[suffix](infos.SAMPLES[sample]())
    if os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS"):
        path.write_bytes(made)
    assert made == path.read_bytes()


def test_json_matches_the_schema(sample):
    """What is written is what the schema promises."""
    written = standard.loads(json.render(infos.SAMPLES[sample]()))
    jsonschema.validate(written, standard.loads(json.schema("info")))


def test_json_survives_the_way_there_and_back():
    """Reading it gives what was written."""
    assert msgspec.json.decode(json.render(infos.poor()), type=Info) == infos.poor()


@pytest.mark.parametrize("suffix", ["txt", "md", "csv"])
def test_names_command_nothing(suffix):
    """No control character, no markup and no formula of a name gets through."""
    text = RENDERERS[suffix](infos.hostile()).decode()
    assert "\x1b" not in text
    assert "\u202e" not in text
    if suffix == "md":
        assert "<script>" not in outside_code(text)
    if suffix == "csv":
        assert not [cell for row in csv.reader(io.StringIO(text)) for cell in row if cell.startswith("=")]


def table(found: Info, title: str):
    """A table of the page."""
    (table,) = (table for table in inventories.page(found).tables if table.title == title)
    return table


def test_ranks_with_streams_alike_share_their_rows():
    """As many rows as kinds of streams, not as ranks."""
    others = [file(f"rank{n}.json.gz", rank(n)) for n in range(8)]
    odd = file("rank8.json.gz", rank(8, lanes=rank().lanes[:1]))
    rows = table(info(*others, odd, of=job()), "Streams").rows
    assert [(row[0], row[2]) for row in rows] == [
        ("8", "compute, copies"),
        ("0-7", "compute, copies"),
        ("0-7", "sends and receives, collectives"),
    ]


def test_ranks_alike_in_their_steps_share_a_row():
    """A rank that is not told has its own, with the name of its file."""
    whole = [file(f"rank{n}.json.gz", rank(n)) for n in range(8)]
    cut = file("rank8.json.gz", rank(8, steps=(replace(rank().steps[0], complete=False),)))
    nameless = [file(f"{name}.json", rank(None)) for name in "ab"]
    rows = table(info(*whole, cut, *nameless, of=job(complete_steps=())), "Steps and actions").rows
    assert [(*row[:2], row[4]) for row in rows] == [
        ("0-7", "", ""),
        ("8", "", "0"),
        ("?", "a.json", ""),
        ("?", "b.json", ""),
    ]


@pytest.mark.parametrize("title", ["Events", "Steps and actions"])
def test_a_rank_that_two_files_claim_goes_by_both(title):
    """Else nobody could tell which row is whose."""
    shown = table(info(file("a.json", rank(0)), file("b.json", rank(0)), file("c.json", rank(1)), of=job()), title)
    assert shown.headers[1] == "file"
    assert [row[:2] for row in shown.rows] == [("0", "a.json"), ("0", "b.json"), ("1", "")]


@pytest.mark.parametrize(
    ("findings", "state"),
    [
        ([("truncated", "warning")], "cut off"),
        ([("repaired", "info")], "mended"),
        ([("repaired", "warning")], "damaged"),
        ([("repaired", "warning"), ("truncated", "warning")], "cut off, damaged"),
        ([("other-processes", "info")], ""),
    ],
)
def test_a_damaged_file_is_told_at_first_sight(findings, state):
    """In its own row."""
    bad = file("b", rank(1, findings=tuple(Finding(code, severity, "...", "b") for code, severity in findings)))
    shown = table(info(file("a", rank()), bad, file("c", problem="so"), of=job()), "Files")
    assert shown.headers[2] == "state"
    assert [row[2] for row in shown.rows] == ["", state, "unreadable"]


def test_what_speaks_against_nothing_is_told_apart():
    """A text that was mended is no reason to doubt, and no secret."""
    found = info(file("a", rank(findings=(Finding("repaired", "info", "mended", "a"),))), of=job())
    page = inventories.page(found)
    assert (page.warnings, page.remarks) == ((), ("repaired: a: mended",))


LOST = "{} of {} kernels have no launch"


@pytest.mark.parametrize(
    ("numbers", "lost", "said"),
    [
        ((0, 1), (4, 4), "4 of 9 kernels have no launch (on ranks 0-1)"),
        ((0, 1), (4, 5), "4 of 9 kernels have no launch (on ranks 0-1; the numbers are those of the first)"),
        ((None, None), (4, 4), "4 of 9 kernels have no launch (on 2 of 2 ranks)"),
        ((0,), (4,), "4 of 9 kernels have no launch"),
    ],
)
def test_what_is_alike_on_ranks_of_a_file_is_said_once(numbers, lost, said):
    """With the ranks, and whether all numbers are the same."""
    ranks = [
        rank(number, findings=(Finding("no-launch", "info", LOST.format(count, 9), "a"),))
        for number, count in zip(numbers, lost, strict=True)
    ]
    page = inventories.page(info(file("a", *ranks), of=job()))
    assert page.remarks == (f"no-launch: a: {said}",)


def test_what_differs_between_ranks_of_a_file_is_counted():
    """Two messages of one code are two findings."""
    ranks = [rank(n, findings=(Finding("no-launch", "info", f"on stream {word}", "a"),)) for n, word in enumerate("xy")]
    page = inventories.page(info(file("a", *ranks), of=job()))
    assert page.remarks == ("no-launch: a: on stream x (and 1 more like it)",)


def test_what_to_do_is_said_once():
    """The others of that kind name the first."""
    shown = table(infos.nothing(), "No traces")
    assert [row[3] for row in shown.rows] == ["Record or copy it again.", "Give traces.", "as for notes.txt"]


def test_ranks_that_are_not_told_lack_something_too():
    """They are counted with those that are."""
    bare = [file(f"{n}.json", rank(n, needs=(infos.LABELS,))) for n in (3, None)]
    assert table(info(*bare, of=job()), "What to add to the recording").rows[0][0] == "3, ?"


def test_long_tables_are_cut():
    """What is not shown is counted."""
    found = info(*(file(f"rank{n}.json.gz", rank(n)) for n in range(30)), of=job())
    assert len(table(found, "Files").rows) == 24
    assert table(found, "Files").more == "… and 6 more, see --json"


def test_what_all_ranks_lack_is_said_once():
    """With the ranks that lack it."""
    bare = [file(f"rank{n}.json.gz", rank(n, needs=(infos.LABELS,))) for n in range(3)]
    assert table(info(*bare, of=job()), "What to add to the recording").rows == (
        ("0-2", infos.LABELS.lacks, infos.LABELS.add),
    )


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "As one job: ranks 0-1 of 2; steps on all of them: 0-1; complete: 0-1. analyze measures the bubble."),
        (
            {"answer": "time", "problem": "no pipeline is in sight"},
            "analyze tells where the time went, but no bubble, for no pipeline is in sight.",
        ),
        ({"verdict": "degraded"}, "analyze measures the bubble; the data are degraded, see the warnings."),
        ({"world_size": None, "ranks": (3,)}, "As one job: rank 3; complete: 0-1."),
        ({"missing_ranks": (2, 3)}, "; ranks 2-3 missing;"),
    ],
)
def test_the_end_says_what_the_job_is(changes, text):
    """Ranks, steps, what can be answered, and the command to run next."""
    page = inventories.page(info(file("a", rank()), of=job(**changes)))
    (note,) = page.notes
    assert text in note
    assert page.commands == (("Next", "bubblescope analyze traces"),)


def test_the_command_can_be_copied():
    """However narrow the page and long the path: no line break is in it."""
    command = f"bubblescope analyze {'long/' * 40}"
    out = io.StringIO()
    shown = inventories.page(info(file("a", rank()), of=job(command=command)))
    pages.draw(shown, Console(file=out, width=40, color_system=None, force_terminal=False))
    assert out.getvalue().splitlines()[-1] == f"Next: {command}"


def test_no_command_is_told_that_would_fail():
    """The problem is told instead."""
    page = inventories.page(info(file("a", rank()), of=job(answer="nothing", problem="so", command=None)))
    assert page.commands == ()
    assert page.notes == ("As one job: ranks 0-1 of 2. analyze cannot tell anything of it, for so.",)


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ((file("a", rank()),), "1 trace of 1 rank."),
        ((file("a", rank(0), rank(1)), file("b", rank(2))), "2 traces of 3 ranks."),
        (
            (file("a", rank(0)), file("b", rank(0)), file("c", rank(None)), file("d", rank(None))),
            "4 traces of 3 ranks.",
        ),
        ((file("a", rank()), file("b", trace=False)), "1 trace of 1 rank and 1 file that is no trace."),
        (
            (file("a", rank()), file("b"), file("c", trace=False), file("d", trace=False)),
            "1 trace of 1 rank, 1 trace that cannot be read and 2 files that are none.",
        ),
        ((file("a", trace=False),), "1 file, which cannot be read as a trace."),
        ((file("a"), file("b")), "2 files, none of which can be read as a trace."),
    ],
)
def test_the_headline_counts(files, text):
    """Traces, their ranks, and what is none."""
    assert inventories.page(info(*files, of=job(ranks=(0, 1, 2)))).headline == text


def test_a_rank_that_was_recorded_again():
    """Is counted once: what the files are as one job tells how many ranks there are."""
    files = [file(name, rank(None)) for name in "abcd"]
    assert inventories.page(info(*files, of=job(ranks=(0, 1)))).headline == "4 traces of 2 ranks."


def test_files_of_several_folders_keep_their_paths():
    """Else two of one name could not be told apart."""
    files = [replace(file("rank0.json", rank()), path=f"{folder}/rank0.json") for folder in "ab"]
    shown = table(info(*files, of=job()), "Files")
    assert [row[0] for row in shown.rows] == ["a/rank0.json", "b/rank0.json"]


def test_evaluations_and_marks_that_are_no_steps_are_shown():
    """Neither is a step that was cut."""
    odd, narrow = rank(), Finding("narrow-marks", "info", "so")
    steps = (replace(odd.steps[0], kind="evaluation"), replace(odd.steps[1], complete=False))
    shown = table(
        info(file("a", replace(odd, steps=steps, findings=(narrow,))), of=job(complete_steps=(0,))), "Steps and actions"
    )
    cells = dict(zip(shown.headers, shown.rows[0], strict=True))
    assert (cells["marked"], cells["evaluations"], cells["cut"]) == ("too often", "0", "1")
