"""`bubblescope simulate`: what it prints, in every format, and what it refuses.

After a wanted change write the goldens anew with `BUBBLESCOPE_UPDATE_GOLDENS=1 pytest tests/cli/test_simulate.py`,
and read the difference before committing it.
"""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from bubblescope.engine import analyze
from bubblescope.schedules import trial
from bubblescope.schedules.family import Shape
from bubblescope.schedules.registry import FAMILIES

GOLDEN = Path(__file__).parent / "golden"
UPDATE = os.environ.get("BUBBLESCOPE_UPDATE_GOLDENS")
UNKNOWN = "0F0,0F1,0B1,0B0\n1F0,1F1,1B0,1B1\n"
TWO = ("simulate", "--schedule", "1f1b", "-p", "2", "-m", "2")


def check_golden(name: str, text: str) -> None:
    """Compare with what was last looked at and found good."""
    path = GOLDEN / name
    if UPDATE:
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


def named(name: str, p: int, m: int, *more: str) -> tuple[str, ...]:
    """A command line."""
    return ("simulate", "--schedule", name, "-p", str(p), "-m", str(m), *more)


@pytest.fixture
def simulated(bubblescope):
    """The JSON that a command line prints."""

    def call(*arguments: str) -> dict:
        seen = bubblescope(*arguments, "--json")
        assert (seen.code, seen.err) == (0, "")
        return json.loads(seen.out)

    return call


@pytest.mark.parametrize(
    ("golden", "arguments"),
    [
        ("simulate-1f1b.txt", named("1f1b", 4, 8)),
        ("simulate-1f1b-uneven.txt", named("1f1b", 4, 4, "--forward", "1,1,1,1.5", "--comm", "0.5,1,0.5")),
        ("simulate-interleaved-1f1b.txt", named("interleaved-1f1b", 2, 4, "--backward", "2.5")),
        ("simulate-pipedream.txt", named("pipedream", 3, 4)),
        ("simulate-1f1b.md", (*TWO, "--format", "markdown")),
        ("simulate-1f1b.json", (*TWO, "--json")),
        ("simulate-1f1b.csv", (*TWO, "--format", "csv")),
        ("simulate-1f1b-narrow.txt", named("1f1b", 3, 5, "--no-picture")),
    ],
)
def test_output_is_the_golden_one(bubblescope, monkeypatch, golden, arguments):
    """Page and data are what was last looked at and found good; nothing is said beside them."""
    if "narrow" in golden:
        monkeypatch.setenv("COLUMNS", "50")
    seen = bubblescope(*arguments)
    assert (seen.code, seen.err) == (0, "")
    check_golden(golden, seen.out)


def test_formula_and_simulation_agree(simulated):
    """All four ways to count, of 1f1b with four ranks and eight micro-batches, by hand: 9 of 33 units are idle."""
    data = simulated(*named("1f1b", 4, 8))
    share, ratio = pytest.approx(9 / 33), pytest.approx(9 / 24)
    assert data["bubble"] == {
        "formula": share, "simulated": share, "ratio_to_ideal": ratio, "span": share, "span_formula": share,
    }  # fmt: skip
    assert (data["idle"]["formula"], data["idle"]["simulated"]) == (9, 9)
    assert (data["makespan"], data["window"], data["useful"]) == (33, 33, [24, 24, 24, 24])
    assert data["memory"]["activations"] == data["peak_activations"] == [4, 3, 2, 1]
    assert data["orders"][2][:4] == ["2F0", "2F1", "2B0", "2F2"]
    assert data["starts"][2][:4] == [2, 3, 6, 8]


def test_times_by_rank_and_by_stage(simulated):
    """A list of p times is one a rank, shared by its chunks; a list of p v times is one a stage."""
    for forward in ("2,4", "1,2,1,2"):
        data = simulated(*named("interleaved-1f1b", 2, 4, "-v", "2", "--forward", forward))
        assert data["times"]["forward"] == [1, 2, 1, 2]
        assert data["useful"][1] == 4 * (4 + 2)


@pytest.mark.parametrize(
    ("schedule", "more", "useful"),
    [
        ("1f1b", ("--backward", "3"), 1 + 3),
        ("1f1b", ("--backward", "3", "--weight", "5"), 1 + 3 + 5),
        ("zb-h1", ("--backward", "3"), 1 + 1.5 + 1.5),
        ("zb-h1", ("--backward", "3", "--weight", "5"), 1 + 3 + 5),
    ],
)
def test_backward_is_the_full_one_unless_weight_is_given(simulated, schedule, more, useful):
    """Alone it is the whole backward, of which half is W; beside a weight gradient it is the input gradient."""
    data = simulated(*named(schedule, 2, 2, *more))
    assert data["useful"] == [2 * useful] * 2
    if schedule == "zb-h1":
        at = dict(zip(data["orders"][1], data["starts"][1], strict=True))
        assert at["1F1"] - at["1I0"] == data["times"]["input"][0]


def test_transfers_by_edge(simulated):
    """A list of transfers has one for each pair of neighbours, used both ways."""
    data = simulated(*named("gpipe", 3, 1, "--comm", "1,10"))
    starts = [dict(zip(*rank, strict=True)) for rank in zip(data["orders"], data["starts"], strict=True)]
    assert [starts[stage][f"{stage}F0"] for stage in range(3)] == [0, 2, 13]
    assert [starts[stage][f"{stage}B0"] for stage in range(3)] == [29, 26, 14]


def test_transfers_by_edge_where_steps_overlap(simulated):
    """The step that is added has the transfers of the first one."""
    even, listed = (simulated(*named("pipedream", 3, 4, "--comm", comm)) for comm in ("7", "7,7.000001"))
    assert listed["window"] == pytest.approx(even["window"], rel=1e-5)
    assert listed["window"] < listed["makespan"]


def test_blocking_sends(bubblescope, simulated):
    """Sends that hold their rank cost time, or bring an order to a stand, which names the actions that wait."""
    free, held = (simulated(*named("1f1b", 4, 8, "--comm", "0.5", *more)) for more in ([], ["--blocking"]))
    assert held["window"] > free["window"]
    assert held["times"]["blocking"] is True
    stuck = bubblescope(*named("zb-v", 2, 11, "--blocking"))
    assert stuck.code == 2
    assert "error: zb-v comes to a stand: " in stuck.err
    assert "3F0 waits for 2W0" in stuck.err
    assert "hint: with sends that do not hold their rank it may run" in stuck.err


@pytest.mark.parametrize("name", [family.name for family in FAMILIES])
def test_every_schedule_runs(bubblescope, simulated, name):
    """Each schedule of the registry has a page and data; where it has a closed form, the simulation agrees."""
    (family,) = (family for family in FAMILIES if family.name == name)
    slices = 1 if family.problem(Shape(4, 8, family.chunks)) is None else 2
    data = simulated(*named(name, 4, 8, "--slices", str(slices)))
    assert data["schedule"] == name
    assert bubblescope(*named(name, 4, 8, "--slices", str(slices))).code == 0
    for part, formula, counted in (
        ("idle", "formula", "simulated"), ("bubble", "formula", "simulated"), ("bubble", "span_formula", "span"),
    ):  # fmt: skip
        if data[part][formula] is not None:
            assert data[part][formula] == pytest.approx(data[part][counted]), (part, formula)


def test_overlapped_actions_are_one_in_the_order(simulated):
    """A forward and a backward in one block stand in brackets and have one start."""
    data = simulated(*named("dualpipe-v", 2, 4))
    assert data["orders"][0][7] == "(0F3;3B1)"
    assert all(len(order) == len(starts) for order, starts in zip(data["orders"], data["starts"], strict=True))


def test_aliases_are_names(simulated):
    """A schedule answers to its other names."""
    assert simulated(*named("DAPPLE", 2, 2))["schedule"] == "1f1b"


def test_all_schedules_are_ranked(simulated, bubblescope):
    """Every schedule is in the list or has a reason; the smallest bubble comes first."""
    ranking = simulated("simulate", "--all", "-p", "3", "-m", "3")
    bubbles = [row["bubble"]["simulated"] for row in ranking["schedules"]]
    assert bubbles == pytest.approx(sorted(bubbles))
    reasons = {row["schedule"]: row["reason"] for row in ranking["impossible"]}
    assert reasons["chimera"] == "chimera needs p and m even, found p=3 m=3"
    listed = {row["schedule"] for row in ranking["schedules"]}
    assert listed | set(reasons) == {family.name for family in FAMILIES}
    assert not listed & set(reasons)
    page = bubblescope("simulate", "--all", "-p", "3", "-m", "3").out
    assert all(name in page for name in listed | set(reasons))
    assert "of those that drain" in page


def test_all_takes_chunks_and_slices_where_a_schedule_allows(simulated):
    """Schedules of one chunk keep it; others take what was said; micro-batches are cut only where that is usual."""

    def shapes(*more: str) -> dict:
        ranking = simulated("simulate", "--all", "-p", "2", "-m", "4", *more)
        return {row["schedule"]: (row["v"], row["slices"]) for row in ranking["schedules"]}

    usual, wished = shapes(), shapes("-v", "3", "--slices", "2")
    assert (usual["1f1b"], usual["looped-bfs"], usual["seq1f1b"]) == ((1, 1), (2, 1), (1, 4))
    assert (wished["1f1b"], wished["looped-bfs"], wished["zb-v"], wished["seq1f1b"]) == ((1, 1), (3, 1), (2, 1), (1, 2))


def test_all_says_which_come_to_a_stand(simulated):
    """A schedule that cannot run with sends that hold their rank is impossible, and says why."""
    ranking = simulated("simulate", "--all", "-p", "2", "-m", "11", "--blocking")
    reasons = {row["schedule"]: row["reason"] for row in ranking["impossible"]}
    assert reasons["zb-v"].startswith("it comes to a stand: ")


def test_csv_has_the_numbers_of_the_ranking(bubblescope):
    """A spreadsheet can sort schedules by what the table has."""
    seen = bubblescope("simulate", "--all", "-p", "2", "-m", "2", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(seen.out)))
    (bubble,) = (
        row["value"] for row in rows if (row["section"], row["id"], row["metric"]) == ("bubble", "1f1b", "simulated")
    )
    assert float(bubble) == pytest.approx(1 / 3)


def test_a_file_is_named(bubblescope, tmp_path):
    """The page of a file says which schedule it is, by whatever name, and shows what a named one shows."""
    path = tmp_path / "mine.csv"
    path.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    seen = bubblescope("simulate", "--schedule", str(path))
    assert seen.code == 0
    assert str(path) in "".join(seen.out.split())
    assert "33.3% of the window is bubble, just what the formula of 1f1b says." in seen.out
    assert "confidence 100%" in seen.out
    assert "rank 1 |....F0  B0      F1  B1      ........|" in seen.out


def test_a_file_may_have_any_name(bubblescope, tmp_path, monkeypatch):
    """A path, or the name of a file that is no schedule's, is a file; a schedule's name is the schedule."""
    monkeypatch.chdir(tmp_path)
    for name in ("1f1b", "written"):
        Path(name).write_text("0F0\n1F0\n")
    assert "forward-only" in bubblescope("simulate", "--schedule", "written").out
    assert "forward-only" in bubblescope("simulate", "--schedule", "./1f1b").out
    assert bubblescope("simulate", "--schedule", "1f1b").code == 2


def test_an_unknown_order_says_why(bubblescope, simulated, tmp_path):
    """An order of no known schedule is simulated all the same."""
    path = tmp_path / "odd.csv"
    path.write_text("0F0,0F1,0F2,0B2,0B0,0B1\n1F2,1B2,1F0,1B0,1F1,1B1\n")
    data = simulated("simulate", "--schedule", str(path))
    assert data["schedule"] == "unknown"
    assert data["detected"]["reason"].startswith("nothing fits: the nearest, ")
    assert (data["bubble"]["formula"], data["idle"]["text"], data["idle"]["formula"]) == (None, None, None)
    seen = bubblescope("simulate", "--schedule", str(path))
    assert "the order is that of no known schedule." in seen.out
    assert "unknown: nothing fits" in seen.out
    assert "no exact closed form" in seen.out


def test_departures_are_told(bubblescope, simulated, tmp_path):
    """A file that leaves its schedule in places says where, and how often."""
    first = ",".join([f"0F{i}" for i in range(12)] + [f"0B{i}" for i in range(12)])
    last = ",".join([f"1F{i}" for i in range(12)] + [f"1B{i}" for i in (0, 1, 3, 2, *range(4, 12))])
    path = tmp_path / "swapped.csv"
    path.write_text(f"{first}\n{last}\n")
    data = simulated("simulate", "--schedule", str(path))
    assert data["schedule"] == "gpipe"
    assert {row["rank"] for row in data["detected"]["departures"]} == {1}
    assert "2 from its order; rank 1 at position 14: 1B3 instead of " in " ".join(
        bubblescope("simulate", "--schedule", str(path)).out.split()
    )


def test_a_deadlock_in_a_file_is_unusable_input(bubblescope, tmp_path):
    """Actions that wait for each other are listed."""
    path = tmp_path / "stuck.csv"
    path.write_text("0F0,0F1,0B0,0B1\n1F0,1F1,1B1,1B0\n".replace("0F0,0F1,0B0", "0F0,0B0,0F1"))
    seen = bubblescope("simulate", "--schedule", str(path))
    assert seen.code == 3
    assert "comes to a stand: " in seen.err
    assert "0B0 waits for 1B0" in seen.err
    assert "1F1 waits for 0F1" in seen.err
    assert seen.out == ""


def test_a_size_that_contradicts_the_file_is_refused(bubblescope, tmp_path):
    """What a file says by itself may be repeated, but not denied."""
    path = tmp_path / "two.csv"
    path.write_text("0F0\n1F0\n")
    assert bubblescope("simulate", "--schedule", str(path), "-p", "2", "-m", "1", "-v", "1").code == 0
    for option, value in (("-p", "3"), ("-m", "2"), ("-v", "2"), ("--slices", "2"), ("--group", "1")):
        seen = bubblescope("simulate", "--schedule", str(path), option, value)
        assert seen.code == 2
        assert f"contradicts {path}" in seen.err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("simulate",), "one of --schedule and --all is needed"),
        (("simulate", "--all", "--schedule", "1f1b"), "one of --schedule and --all is needed"),
        (("simulate", "--schedule", "1f1b", "-m", "8"), "--pp is missing"),
        (("simulate", "--all", "-p", "8"), "--microbatches is missing"),
        (named("1f1b", 0, 8), "--pp must be from 1 to 1,000,000, found 0"),
        (named("1f1b", 4, 0), "--microbatches must be from 1 to 1,000,000, found 0"),
        (named("1f1b", 4, -8), "--microbatches must be from 1 to 1,000,000, found -8"),
        (named("1f1b", 4, 10**30), "--microbatches must be from 1 to 1,000,000"),
        (named("1f1b", 4, 8, "-v", "0"), "--virtual must be"),
        (named("1f1b", 4, 8, "--slices", "0"), "--slices must be"),
        (named("1f1b", 4, 8, "--group", "0"), "--group must be"),
        (named("2f2b", 4, 8), "no schedule is called '2f2b'"),
        (named("", 4, 8), "no schedule is called ''"),
        (named("1f1b", 4, 8, "-v", "2"), "1f1b has one chunk a rank"),
        (named("1f1b", 4, 8, "--slices", "2"), "1f1b takes micro-batches whole, found slices=2"),
        (named("chimera", 3, 8), "chimera needs p and m even, found p=3 m=8"),
        (named("seq1f1b", 4, 8, "--slices", "1"), "seq1f1b needs at least 2 slices"),
        (named("1f1b", 4, 8, "--forward", "nan"), "forward: a time is 0 or lies between 1e-09 and 1e+12, found nan"),
        (named("1f1b", 4, 8, "--backward", "1,inf,1,1"), "backward: a time is 0 or lies between"),
        (named("1f1b", 4, 8, "--comm", "-1"), "comm: a time is 0 or lies between 1e-09 and 1e+12, found -1"),
        (named("1f1b", 4, 8, "--forward", "1e-10"), "forward: a time is 0 or lies between"),
        (named("1f1b", 4, 8, "--forward", "1e13"), "forward: a time is 0 or lies between"),
        (named("1f1b", 4, 8, "--forward", "x"), "--forward expects a number or a list like 1,1,2, found 'x'"),
        (named("1f1b", 4, 8, "--forward", ""), "--forward expects a number or a list like 1,1,2, found ''"),
        (named("1f1b", 4, 8, "--forward", "0", "--backward", "0"), "forward and backward take no time"),
        (named("zb-h1", 4, 8, "--weight", "1,2"), "weight takes one time, or one for each of 4 ranks, found 2"),
        (named("gpipe", 4, 8, "--group", "2"), "gpipe takes no groups, found group=2"),
        (named("1f1b", 4, 8, "--forward", "1,2"), "forward takes one time, or one for each of 4 ranks, found 2"),
        (
            named("looped-bfs", 4, 8, "--backward", "1,2"),
            "backward takes one time, or one for each of 4 ranks or 8 stages, found 2",
        ),
        (
            named("1f1b", 4, 8, "--comm", "1,2"),
            "comm takes one time, or one for each of 3 pairs of neighbours, found 2",
        ),
        (("simulate", "--all", "-p", "4", "-m", "8", "--forward", "1,2,3"), "no schedule is possible: forward takes"),
        (named("1f1b", 1000, 100_000), "too large: 200,000,000 actions to simulate, of at most 1,000,000"),
        (named("pipedream", 1000, 200), "too large: 1,200,000 actions"),
        (("simulate", "--all", "-p", "100", "-m", "1000"), "too large: "),
        ((*TWO, "-o", "x.foo"), "no format is known for 'x.foo'"),
        ((*TWO, "--steps", "3"), "--steps needs --emit"),
        ((*TWO, "--no-labels"), "--no-labels needs --emit"),
        ((*TWO, "--straggler", "1:2"), "--straggler needs --emit"),
        ((*TWO, "--emit", "perfetto", "d"), "'perfetto' is not one of 'kineto', 'nsys'"),
    ],
)
def test_what_cannot_be_is_refused(bubblescope, tmp_path, monkeypatch, arguments, problem):
    """Every wrong wish ends with 2, says what was found, and prints nothing else."""
    monkeypatch.chdir(tmp_path)
    seen = bubblescope(*arguments)
    assert (seen.code, seen.out) == (2, "")
    assert problem in seen.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", "hello", "0F0\n\0", "0F0,0F0", "{}"])
def test_a_file_that_is_no_schedule_is_unusable_input(bubblescope, tmp_path, text):
    """It ends with 3 and names the file."""
    path = tmp_path / "bad.csv"
    path.write_text(text)
    seen = bubblescope("simulate", "--schedule", str(path))
    assert seen.code == 3
    assert f"error: {path}" in seen.err
    assert bubblescope("simulate", "--schedule", str(tmp_path / "none.csv")).code == 3


def test_a_file_name_cannot_command_the_terminal(bubblescope, tmp_path):
    """Control characters in the path are shown as escapes."""
    path = tmp_path / "a\x1b[31m.csv"
    path.write_text("0F0\n")
    seen = bubblescope("simulate", "--schedule", str(path))
    assert seen.code == 0
    assert "\x1b" not in seen.out
    assert "\\x1b[31m.csv" in "".join(seen.out.split())


def test_output_to_a_file(bubblescope, tmp_path):
    """The suffix says the format, an existing file is refused, and -f overwrites it."""
    for suffix, form in (("json", "json"), ("md", "markdown"), ("csv", "csv"), ("txt", "table")):
        path = tmp_path / f"out.{suffix}"
        seen = bubblescope(*TWO, "-o", str(path))
        assert (seen.code, seen.out, seen.err) == (0, "", f"Wrote {path}\n")
        assert path.read_text("utf-8") == bubblescope(*TWO, "--format", form).out
        assert bubblescope(*TWO, "-o", str(path)).code == 2
        assert bubblescope(*TWO, "-o", str(path), "-f", "-q").err == ""


@pytest.mark.parametrize("width", [20, 40, 72, 140])
def test_columns_sets_the_width(bubblescope, monkeypatch, width):
    """A log that is narrower or wider says so with COLUMNS, the picture included."""
    monkeypatch.setenv("COLUMNS", str(width))
    assert max(map(len, bubblescope(*named("1f1b", 4, 16)).out.splitlines())) <= width


def test_colour_only_where_wanted(bubblescope, monkeypatch):
    """A pipe gets plain ASCII but for the sign of an absent number; FORCE_COLOR colours the picture."""
    plain = bubblescope(*TWO).out
    assert "\x1b" not in plain
    assert plain.replace("–", "-").isascii()  # noqa: RUF001
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[30;104mF0" in bubblescope(*TWO).out


def test_many_ranks_have_no_picture(bubblescope):
    """What would not fit is left out with a note, and so is a picture that nobody wants."""
    assert "No picture: 64 lanes are too many lines." in bubblescope(*named("1f1b", 64, 8)).out
    assert "Cut: the picture shows the first " in bubblescope(*named("1f1b", 8, 200)).out
    bare = bubblescope(*named("1f1b", 64, 8, "--no-picture")).out
    assert "picture" not in bare
    assert "dots are idle" not in bare


def test_large_shapes_take_bounded_time(bubblescope, monkeypatch):
    """The limit counts actions before any is made."""
    monkeypatch.setattr(trial, "MOST_ACTIONS", 1000)
    assert bubblescope(*named("1f1b", 10, 50)).code == 0
    assert bubblescope(*named("1f1b", 10, 51)).code == 2
    assert bubblescope(*named("zb-h1", 10, 34)).code == 2


class TestEmit:
    """`--emit`: the traces of a run, read back by analyze."""

    def test_traces_say_what_was_simulated(self, bubblescope, tmp_path):
        """Without faults, the measured bubble is the simulated one."""
        seen = bubblescope(
            *named("gpipe", 2, 4, "--forward", "10", "--backward", "20", "--emit", "kineto", str(tmp_path))
        )
        assert seen.code == 0
        assert seen.err == f"Wrote 2 traces and truth.json to {tmp_path}\n"
        report = analyze([str(tmp_path)]).report
        assert report.schedule.name == "gpipe"
        assert report.bubble.measured == pytest.approx(0.2, abs=1e-3)

    def test_exports_are_of_the_same_run(self, bubblescope, tmp_path):
        """In either format the truth is the same."""
        run = named("1f1b", 2, 4, "--forward", "10", "--backward", "20", "--imbalance", "2", "--emit")
        for recorder in ("kineto", "nsys"):
            assert bubblescope(*run, recorder, str(tmp_path / recorder)).code == 0
        names = sorted(path.name for path in (tmp_path / "nsys").iterdir())
        assert names == ["rank0_report.sqlite", "rank1_report.sqlite", "truth.json"]
        one, other = ((tmp_path / recorder / "truth.json").read_bytes() for recorder in ("kineto", "nsys"))
        assert one == other

    def test_faults_are_in_the_traces(self, bubblescope, tmp_path):
        """A last stage twice as heavy is found again, and the sizes stated are those of the job."""
        faults = ("--imbalance", "2", "--dp", "2", "--tp", "2", "--steps", "2", "--jitter", "0.01", "--skew-ms", "1")
        times = ("--forward", "5", "--backward", "10")
        assert bubblescope(*named("1f1b", 2, 4, *times, "--emit", "kineto", str(tmp_path), *faults)).code == 0
        report = analyze([str(tmp_path)]).report
        assert (report.layout.pp, report.layout.dp, report.layout.tp) == (2, 2, 2)
        assert len(report.steps) == 2
        assert report.imbalance.slowest_stage == 1
        assert report.imbalance.stage_ratio == pytest.approx(4 / 3, abs=0.03)

    def test_a_file_can_be_emitted(self, bubblescope, tmp_path):
        """Orders of a CSV file leave traces of the same order."""
        path = tmp_path / "mine.csv"
        path.write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
        folder = tmp_path / "traces"
        times = ("--forward", "10", "--backward", "20")
        assert bubblescope("simulate", "--schedule", str(path), *times, "--emit", "kineto", str(folder)).code == 0
        assert analyze([str(folder)]).report.schedule.name == "1f1b"

    def test_the_same_seed_leaves_the_same_files(self, bubblescope, tmp_path):
        """And another one others."""
        written = []
        for k, seed in enumerate(("1", "1", "2")):
            folder = tmp_path / str(k)
            faults = ("--jitter", "0.1", "--skew-ms", "2", "--seed", seed, "--steps", "1")
            assert bubblescope(*TWO, "--emit", "kineto", str(folder), *faults).code == 0
            written.append({path.name: path.read_bytes() for path in folder.iterdir()})
        assert written[0] == written[1] != written[2]

    def test_files_are_not_overwritten_unasked(self, bubblescope, tmp_path):
        """What is there is refused; -f overwrites it."""
        emit = (*TWO, "--steps", "1", "--emit", "kineto", str(tmp_path))
        assert bubblescope(*emit).code == 0
        assert bubblescope(*emit).code == 2
        assert bubblescope(*emit, "-f").code == 0

    @pytest.mark.parametrize(
        ("more", "problem"),
        [
            (("--imbalance", "1,2,3"), "scale needs a factor for each of 2"),
            (("--imbalance", "x"), "--imbalance expects a number or a list"),
            (("--imbalance", "nan"), "a factor must be above 0"),
            (("--jitter", "2"), "--jitter must be from 0 to 1, found 2"),
            (("--jitter", "nan"), "--jitter must be from 0 to 1, found nan"),
            (("--straggler", "1"), "--straggler expects a rank and a factor like 3:1.5, found '1'"),
            (("--straggler", "1:0"), "a factor must be above 0"),
            (("--straggler", "7:2"), "there is no rank 7 among 2"),
            (("--skew-ms", "-1"), "--skew-ms must be from 0"),
            (("--steps", "0"), "--steps must be from 1"),
            (("--dp", "0"), "--dp must be from 1"),
            (("--tp", "9999999"), "--tp must be from 1"),
            (("--dp", "1000", "--tp", "1000"), "too large: "),
            (("--blocking",), "--blocking and --emit do not go together"),
        ],
    )
    def test_faults_that_cannot_be(self, bubblescope, tmp_path, more, problem):
        """They end with 2, and nothing is written."""
        folder = tmp_path / "traces"
        seen = bubblescope(*TWO, "--emit", "kineto", str(folder), *more)
        assert (seen.code, seen.out) == (2, "")
        assert problem in seen.err
        assert not folder.exists()

    def test_all_writes_no_traces(self, bubblescope, tmp_path):
        """Nor does an empty name of a folder take them."""
        assert bubblescope("simulate", "--all", "-p", "2", "-m", "2", "--emit", "kineto", str(tmp_path)).code == 2
        assert bubblescope(*TWO, "--emit", "kineto", "").code == 2
