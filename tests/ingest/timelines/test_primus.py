"""AMD Primus' dumps of a pipeline."""

from __future__ import annotations

import json

import pytest

from bubblescope.errors import InputError
from bubblescope.ingest.registry import read
from bubblescope.ingest.sniff import sniff
from bubblescope.model.actions import Kind
from bubblescope.model.trace import Coordinate, ProcessGroup

STEP = {
    "total": 9.5,
    "memory": 84.3,
    "fwd_start": [0.25, 3],
    "fwd_end": [1.5, 4],
    "bwd_start": [5.000001],
    "bwd_end": [8],
}


def test_a_dump_is_one_rank_of_a_pipeline(save):
    """Times of each step count from its own start; the name of the file tells the position."""
    (only,) = read(save({"7": STEP, "8": STEP}, "pp_rank_2.json"))
    only.self_check()
    assert only.restarts
    assert not only.absolute
    assert only.identity.rank == 2
    assert only.identity.coordinates == (Coordinate("pp", 2, 0),)
    a = only.actions
    assert a.start[:3].tolist() == [250_000, 3_000_000, 5_000_001]
    assert a.end[:3].tolist() == [1_500_000, 4_000_000, 8_000_000]
    assert a.kind.tolist() == [Kind.F, Kind.F, Kind.B] * 2
    assert a.step.tolist() == [7] * 3 + [8] * 3
    assert (only.extents.end.tolist(), only.extents.step.tolist()) == ([9_500_000] * 2, [7, 8])
    assert only.source.format == "timeline"


def test_without_a_rank_in_its_name_nothing_is_told(save):
    """Which position it is only the job tells."""
    (only,) = read(save({"1": STEP}, "dump.json"))
    assert only.identity.rank is None
    assert only.identity.coordinates == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"fwd_end": [1.5]}, "step 1: forwards: expected as many ends as starts, found 1 and 2"),
        ({"bwd_end": [4]}, "step 1: backwards: number 0 lasts from 5.000001 to 4.0 ms"),
        ({"fwd_start": [1e300, 3]}, "step 1: forwards: number 0 lasts from 1e\\+300"),
        ({"fwd_start": ["x", 3]}, "step 1 .*Expected `float`, got `str`"),
        ({"fwd_start": [None, 3]}, "step 1 .*Expected `float`, got `null`"),
        ({"bwd_start": {}}, "step 1 .*Expected `array`"),
    ],
)
def test_lists_that_cannot_be_are_errors(save, change, words):
    """The error names the step and what is wrong with it."""
    with pytest.raises(InputError, match=words) as caught:
        list(read(save({"1": STEP | change})))
    assert caught.value.hint


def test_a_cut_off_dump_gives_its_whole_steps(save):
    """What stands before the cut is read, and the cut is told."""
    text = json.dumps({"1": STEP, "2": STEP})
    (whole,), (cut,) = read(save(json.dumps({"1": STEP}))), read(save(text[:-20]))
    assert len(cut.actions) == len(whole.actions)
    assert [finding.code for finding in cut.findings] == ["truncated"]


@pytest.mark.parametrize(
    "document", [{"1": {"a": 1}}, {"x": STEP}, {"schema": 1, "1": STEP}, {"world_size": 8, "pp_size": 8}, STEP]
)
def test_other_documents_are_no_dumps(save, document):
    """A step's number comes first, and the lists are in it."""
    assert sniff(save(document)).kind == "foreign"


SETTINGS = {"world_size": 8, "pp_size": 4, "vp_size": 2, "num_mbs": 1, "train_iters": 20}


def dump(folder, settings, name="pp_rank_1.json"):
    """A dump of two forwards a step beside settings."""
    (folder / name).write_text(json.dumps({"1": STEP}))
    (folder / "config.json").write_text(settings if isinstance(settings, str) else json.dumps(settings))
    (only,) = read(folder / name)
    return only


def test_settings_beside_a_dump_tell_its_pipeline(tmp_path):
    """How many ranks it has and how many chunks each holds."""
    only = dump(tmp_path, SETTINGS)
    assert (only.identity.world_size, only.identity.virtual) == (4, 2)
    assert only.identity.groups == (ProcessGroup("pp", "pp", (0, 1, 2, 3)),)
    assert only.findings == ()


def test_settings_tell_no_position(tmp_path):
    """Where the name of a dump does not, either."""
    only = dump(tmp_path, SETTINGS, name="dump.json")
    assert (only.identity.rank, only.identity.world_size, only.identity.groups) == (None, 4, ())


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ("{", "implausible-metadata", "config.json cannot be read"),
        ("[" * 100_000, "implausible-metadata", "config.json cannot be read"),
        ({"pp_size": "4"}, "implausible-metadata", "config.json cannot be read"),
        ({"pp_size": 4, "padding": "x" * 100_000}, "implausible-metadata", "config.json cannot be read"),
        ({"pp_size": 0}, "implausible-metadata", "config.json tells sizes that cannot be"),
        ({"pp_size": 10**15}, "implausible-metadata", "config.json tells sizes that cannot be"),
        ({"pp_size": 4, "num_mbs": -1}, "implausible-metadata", "config.json tells sizes that cannot be"),
        ({"pp_size": 1}, "metadata-conflict", "says a pipeline of 1 ranks, and this is rank 1; it is not used"),
        (SETTINGS | {"num_mbs": 8}, "metadata-conflict", "says 16 forwards a rank and step, and this one holds 2"),
    ],
)
def test_settings_that_cannot_be_are_not_used(tmp_path, settings, code, words):
    """They are those of another run, or no settings at all; the dump is read all the same."""
    only = dump(tmp_path, settings)
    (found,) = only.findings
    assert (found.code, found.severity) == (code, "warning")
    assert words in found.message
    assert (only.identity.world_size, only.identity.virtual, only.identity.groups) == (None, None, ())
    assert len(only.actions) == 3


def test_other_settings_are_none(tmp_path):
    """Any file may be called so."""
    only = dump(tmp_path, {"learning_rate": 0.1})
    assert (only.identity.world_size, only.findings) == (None, ())


def test_settings_are_passed_over_by_their_name(save):
    """In a folder of dumps they are no trace, and no stranger."""
    assert "settings of a Primus run" in sniff(save(SETTINGS, "config.json")).looks_like
