"""Forwards and backwards from kernels and messages alone, on literal segments and on whole emitted jobs."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblescope.emit import Job, truth, write
from bubblescope.emit.tape import ORIGIN_NS
from bubblescope.engine import read_ranks
from bubblescope.errors import UsageError
from bubblescope.model.actions import Kind
from bubblescope.model.options import Options
from bubblescope.model.trace import Identity, RankTrace, Source
from bubblescope.reconstruct.kernels import find_blocks
from bubblescope.reconstruct.units import Units

WORDS = {"f": "flash_fwd", "b": "flash_bwd", "i": "gemm_dgrad", "w": "gemm_wgrad"}


def kinds(text, *, named=True, trains=True):
    """Kinds of the actions of a rank: a letter a kernel of 10 ns, `|` a message, `#` an optimizer between steps."""
    letters = text.replace("|", "").replace("#", "").replace(" ", "")
    names = sorted(set(letters))
    marks: dict[str, list[int]] = {"|": [], "#": []}
    at = 0
    for letter in text.replace(" ", ""):
        if letter in marks:
            marks[letter].append(at * 10)
        else:
            at += 1
    host = np.arange(len(letters)) * 10
    code = np.array([names.index(letter) for letter in letters])
    work = Units(host, host + 9, host, np.full(len(host), -1), code, np.full(len(host), -1))
    table = tuple(WORDS.get(name, name) if named else name for name in names)
    trace = RankTrace(source=Source("x", "kineto", 1, 1), identity=Identity(), absolute=True, names=table)
    found = find_blocks(trace, work, np.array(marks["|"]), np.array(marks["#"]), trains=trains)
    return "".join(Kind(kind).name for kind in found.kind.tolist())


@pytest.mark.parametrize("named", [True, False], ids=["words", "no words"])
@pytest.mark.parametrize(
    ("stage", "text", "expected"),
    [
        ("inner", "fxfx|fxfx|ybyb|fxfx|ybyb|ybyb#" * 2, "FFBFBB" * 2),
        ("first", "fxfx|fxfx|ybybfxfx|ybyb|ybyb#" * 2, "FFBFBB" * 2),
        ("last", "|".join(["fxfxybyb"] * 6), "FB" * 6),
        ("last of gpipe", "fxfx|fxfx|fxfxybyb|ybyb|ybyb#" * 2, "FFFBBB" * 2),
        ("last of gpipe, receives posted before", "|fxfxfxfxfxfxybyb|ybyb|ybyb#" * 2, "FFFBBB" * 2),
        ("first of gpipe, receives posted before", "fxfx|fxfx|fxfx|ybybybybybyb#" * 2, "FFFBBB" * 2),
        ("inner, recomputed", "fxfx|fxfx|fxfxybyb|fxfx|fxfxybyb|fxfxybyb#" * 2, "FFBFBB" * 2),
    ],
    ids=lambda value: value if " " not in value or value.isalpha() else None,
)
def test_actions_are_told_apart(named, stage, text, expected):
    """On every stage of 1F1B and GPipe, with and without words in the names of kernels."""
    assert stage
    assert kinds(text, named=named) == expected


@pytest.mark.parametrize("text", ["z|#z|#z|#", "ab|#ab|#"])
def test_where_all_kernels_come_once_a_step_none_is_an_action(text):
    """What is left is nothing, and nothing is told of it."""
    assert kinds(text) == ""


def test_layers_computed_again_one_by_one_belong_to_the_backward():
    """Each layer of a backward is preceded by its forward."""
    forward, back = "fxfxfxfx", "ybfx" * 3 + "yb"
    assert kinds(f"{forward}|{forward}|{back}|{forward}|{back}|{back}#" * 2) == "FFBFBB" * 2


def test_weight_gradients_that_stand_apart_are_w():
    """Input gradients stand alone too, or only before them."""
    assert kinds("fxfx|iyiy|fxfx|iyiy|wwww|fxfx|iyiywwww|wwww#" * 2) == "FIFIWFIWW" * 2
    assert kinds("fxfx|fxfx|iyiywwwwfxfx|iyiywwww|iyiywwww#" * 2) == "FFIWFIWIW" * 2


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        ("first and last stage", "F|F|FI|W|FI|WF|IW|FI|W|IW|IW#"),
        ("two stages in the middle", "FF|FF|FF|IW|FI|WF|IW|FI|WF|IW|FI|WF|IWIIIIIWWWWW#"),
        ("last of ZB-H1", "FI|FI|FI|WFI|W|WW#"),
        ("weight gradients in pairs", "FI|FI|WW#"),
        ("forwards in pairs", "FF|I|W|I|W|FF|I|W|I|W#"),
        ("rank without weight gradients apart", "F|F|IW|F|IW|IW#"),
    ],
    ids=lambda value: value if "#" not in value else "",
)
def test_words_tell_split_backwards_where_messages_do_not(stage, text):
    """Actions that follow each other without a message are cut by what their kernels do."""
    assert stage
    kernels = text.replace("F", "fgh").replace("I", "iyi").replace("W", "wvw")
    expected = text.replace("|", "").replace("#", "")
    assert kinds(kernels * 2).replace("IW", "B") == expected.replace("IW", "B") * 2


def test_forwards_run_again_before_input_gradients_belong_to_these():
    """On a rank that holds the first and the last stage, forwards stand alone, in front of others, and run again."""
    assert kinds("fgh|fgh|fghfghiyi|ww|fgh|fghiyiww|fghiyiww|fghiyiww#" * 2) == "FFFIWFIWIWIW" * 2
    assert kinds("fghfgh|fghfgh|fghiyiwwfghiyi|ww|fghiyiww|fghiyiww#" * 2) == "FFFFIWIWIWIW" * 2


def test_forwards_before_input_gradients_are_no_recomputation_where_others_stand_alone():
    """The last stage's input gradients follow its forwards directly, the first stage's follow a message."""
    assert kinds("fgh|fgh|fghiyi|ww|fghiyi|ww|iyiww|iyiww#" * 2) == "FFFIWFIWIWIW" * 2


def test_a_backward_whose_layers_take_turns_is_whole_beside_split_ones():
    """It alternates layer by layer between input and weight gradients."""
    text = "ffff|ffff|iwiwiwiw|ffff|iiii|ffff|iiii|wwww|iwiwiwiw|wwww#"
    assert kinds(text * 2) == "FFBFIFIWBW" * 2


def test_words_that_make_no_pipeline_give_no_actions():
    """A weight gradient before its input gradient, and more input gradients than forwards."""
    assert kinds("ff|ff|ww|ff|ii|ii|ww|ii|ww#" * 2) == ""
    assert kinds("fgh|fgh|ii|ii|ii|ii|ww|ww|ww|ww#" * 2) == ""


def test_halves_of_one_name_are_never_called_two_forwards():
    """Where both gradients have the same kernels a forward of two layers is not cut to match their number."""
    assert kinds("fxfxyzyz|fxfxyzyz|yzyz|fxfxyzyz|yzyz|yzyz#" * 2, named=False) == ""


@pytest.mark.parametrize(
    ("stage", "text", "expected"),
    [
        ("last of ZB-H1", "fghyz|fghyz|yz|fghyz|yzyz#", "FIFIWFIWW"),
        ("inner of ZB-H1, weights put off by one", "fgh|fgh|yz|fgh|yz|yz|yz|yzyz#", "FFIFIWIWW"),
        ("inner, both input gradients first", "fgh|fgh|yz|yz|yzyz#", "FFIIWW"),
        ("inner of ZB-H2, the last weights behind a message", "fgh|fgh|fgh|yz|fgh|yz|yz|yz|yzyzyzyz#", "FFFIFIIIWWWW"),
    ],
    ids=lambda value: value if " " in value and "|" not in value else None,
)
def test_halves_of_one_name_are_told_by_messages_and_turns(stage, text, expected):
    """Nothing is sent behind a weight gradient, and it waits for its input gradient."""
    assert stage
    assert kinds(text * 2, named=False) == expected * 2
    evaluation = "fgh|fgh|fgh|#"
    assert kinds(f"{text}{evaluation}{text}", named=False) == f"{expected}FFF{expected}"


def test_a_message_inside_an_action_does_not_cut_it():
    """What stands whole more often is one action."""
    assert kinds("fgxh|fgxh|fgxh|ybyb|fg|xh|ybyb|ybyb|ybyb#" * 2, named=False) == "FFFBFBBB" * 2


def test_a_kernel_more_or_less_changes_nothing():
    """One forward has a copy of its own, one backward another variant of a kernel."""
    forward, back = "fxgxfxgxfxgx", "ybycybycybyc"
    text = f"{forward}|{forward}q|{back}|{forward}|{back[:-1]}q|{back}#" * 2
    assert kinds(text, named=False) == "FFBFBB" * 2


def test_what_makes_no_pipeline_gives_no_actions():
    """Without a message, with one string only and no optimizer's backward, and with a backward for no forward."""
    assert kinds("fxfxybyb" * 4) == ""
    assert kinds("|ybyb|ybyb|ybyb|fxfx|ybyb|ybyb#") == ""


@pytest.mark.parametrize("named", [True, False], ids=["words", "no words"])
@pytest.mark.parametrize(
    ("stage", "text", "expected"),
    [
        ("inner", "fxfx|fxfx|ybyb|fxfx|ybyb|ybyb# EVAL fxfx|fxfx|ybyb|fxfx|ybyb|ybyb#", "FFBFBB"),
        ("first", "fxfx|fxfx|ybybfxfx|ybyb|ybyb# EVAL fxfx|fxfx|ybybfxfx|ybyb|ybyb#", "FFBFBB"),
        ("last", "|fxfxybyb|fxfxybyb|fxfxybyb|# EVAL |fxfxybyb|fxfxybyb|fxfxybyb#", "FBFBFB"),
        (
            "last, recomputed",
            "|fxfxfxfxybyb|fxfxfxfxybyb|fxfxfxfxybyb# EVAL |fxfxfxfxybyb|fxfxfxfxybyb|fxfxfxfxybyb#",
            "FBFBFB",
        ),
    ],
    ids=["inner", "first", "last", "last, recomputed"],
)
@pytest.mark.parametrize("forwards", [1, 3, 9])
def test_an_evaluation_between_steps_spoils_none(named, stage, text, expected, forwards):
    """Its forwards have no backwards, whatever their number, and are not what a backward runs again."""
    assert stage
    found = kinds(text.replace("EVAL", "|fxfx" * forwards + "#"), named=named)
    assert found == expected + "F" * forwards + expected


def test_split_backwards_beside_an_evaluation():
    """Whether backwards are split is told by the steps that have any."""
    step = "fxfx|iyiy|fxfx|iyiy|wwww|fxfx|iyiywwww|wwww#"
    assert kinds(f"{step}{'|fxfx' * 12}#{step}") == "FIFIWFIWW" + "F" * 12 + "FIFIWFIWW"


def test_an_evaluation_within_a_step_spoils_this_one_only():
    """More forwards than backwards in one of two steps, at its beginning or its end."""
    step = "|fxfxybyb|fxfxybyb|fxfxybyb"
    assert kinds(f"{step}|fxfx|fxfx#{step}#") == "FBFBFBFFFBFBFB"
    assert kinds(f"{step}#|fxfx|fxfx{step}#") == "FBFBFBFFFBFBFB"


@pytest.mark.parametrize("named", [True, False], ids=["words", "no words"])
@pytest.mark.parametrize(
    ("before", "behind"),
    [("z|", ""), ("zz", ""), ("zc|", "n"), ("", "|n"), ("z|c|", "nn"), ("zz#", "|n")],
)
@pytest.mark.parametrize(
    ("step", "expected"),
    [("|fxfxybyb|fxfxybyb|fxfxybyb|", "FBFBFB"), ("fxfx|fxfx|ybyb|fxfx|ybyb|ybyb", "FFBFBB")],
    ids=["last", "inner"],
)
def test_what_recurs_once_a_step_is_no_action(named, before, behind, step, expected):
    """Fills and casts before the first forward, norms behind the last backward, with a message between or not."""
    for rounds in (1, 2, 3):
        found = kinds(f"{before}{step}{behind}#" * rounds, named=named)
        assert found == expected * rounds


def test_a_step_of_one_micro_batch_keeps_its_forward():
    """Each action recurs once a step then, and is none the less one."""
    assert kinds("fxfx|ybyb#" * 3) == "FB" * 3
    assert kinds("|fxfxybyb|#" * 3) == "FB" * 3


def test_without_an_optimizer_and_words_all_are_forwards():
    """An evaluation runs none but forwards."""
    assert kinds("|fxfx|fxfx|fxfx|fxfx", named=False, trains=False) == "FFFF"
    assert kinds("|fxfx|fxfx|fxfx", named=False, trains=False) == ""


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Jobs whose files have neither labels nor numbers, recorded in every way."""
    schedule = draw(st.sampled_from(("1f1b", "gpipe", "zb-h1", "interleaved-1f1b")))
    p = draw(st.sampled_from((2, 3, 4)))
    fused = schedule == "1f1b" and draw(st.booleans())
    host = draw(st.sampled_from(("all", "launches", "none")))
    recompute = draw(st.booleans())
    return Job(
        schedule=schedule,
        p=p,
        m=p * draw(st.sampled_from((2, 3))),
        v=2 if schedule.startswith("inter") else 1,
        t=draw(st.sampled_from((1, 2))),
        labels="none",
        autograd=False,
        p2p_args=draw(st.sampled_from(("kernel", "op", "none"))),
        fused=fused,
        recv_ahead=0 if fused or host == "none" else draw(st.sampled_from((0, 2))),  # without launches little cuts then
        jitter=0.05,
        recompute=recompute,
        backward_ns=30_000_000 if recompute else 20_000_000,
        host=host,
        kernel_names="split" if schedule == "zb-h1" else draw(st.sampled_from(("torch", "split", "blind"))),
        kernels=draw(st.sampled_from((4, 8, 12))),
        p2p_ns=draw(st.sampled_from((0, 200_000))),
        kernel_gap_ns=draw(st.sampled_from((0, 2_000))),
        metadata=draw(st.sampled_from(("before", "none"))),
        zero_grad=draw(st.sampled_from(("none", "fill", "foreach", "cast"))),
        eval_steps=() if recompute else draw(st.sampled_from(((), (0,), (1,)))),
        eval_m=draw(st.integers(1, 2 * p)),
        seed=draw(st.integers(0, 2**16)),
    )


def shown(known, kinds):
    """(step, kind, begin, end) of a rank's actions; an I with its W right behind is one B where one was found."""
    rows, last = [], None
    for step, a in known:
        follows = a.action.kind == Kind.W and last == (step, a.action._replace(kind=Kind.I))
        if follows and kinds[len(rows) - 1 : len(rows)] == ["B"]:
            rows[-1] = (step, "B", rows[-1][2], a.end)
        else:
            rows.append((step, a.action.kind.name, a.start, a.end))
        last = (step, a.action)
    return rows


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(jobs())
def test_actions_of_emitted_jobs_come_back(job):
    """Kinds, steps and, to an all-reduce, begin and end of every action are true, and all but fills is explained.

    Nothing parts an input gradient from its own weight gradient right behind it; they may come back as one.
    """
    try:
        known = truth(job)
    except UsageError:
        return  # recomputation makes some jobs deadlock or too short
    for rank, timeline in _timelines(job):
        found = timeline.actions
        names = [Kind(k).name for k in found.kind.tolist()]
        acts = [
            (s.number, a)
            for s in known.steps
            for p in s.pipelines
            for r in p.ranks
            if r.rank == rank
            for a in r.actions
        ]
        mine = shown(acts, names)
        assert timeline.reconstruction == "kernels"
        assert list(zip(found.step.tolist(), names, strict=True)) == [row[:2] for row in mine]
        for (_, _, begin, over), start, end in zip(mine, found.start.tolist(), found.end.tolist(), strict=True):
            assert abs(begin + ORIGIN_NS - start) <= 0.1 * (over - begin)
            assert abs(over + ORIGIN_NS - end) <= 0.1 * (over - begin)
        work = timeline.work.take(timeline.work.action < 0)
        fills = job.opening_ns * sum(step.m > 0 for step in known.steps)
        assert int(np.sum(work.end - work.start)) == pytest.approx(fills, rel=0.01)


def _timelines(job):
    with TemporaryDirectory() as folder:
        return [(rank, *read_ranks(path, Options())) for rank, path in enumerate(write(job, Path(folder)))]


@pytest.mark.parametrize("evaluated", [(), (0,)], ids=["training", "with an evaluation"])
@pytest.mark.parametrize(("schedule", "p", "m"), [("zb-h1", 2, 3), ("zb-h1", 3, 3), ("zb-h1", 4, 6), ("zb-h2", 3, 6)])
def test_split_backwards_of_emitted_jobs_whose_halves_are_alike(schedule, p, m, evaluated):
    """Kinds come back in their order on every rank, but where an input gradient and its weight gradient are one B."""
    job = Job(
        schedule=schedule,
        p=p,
        m=m,
        labels="none",
        autograd=False,
        kernel_names="torch",
        kernels=3,
        eval_steps=evaluated,
        eval_m=p,
    )
    known = truth(job)
    for rank, timeline in _timelines(job):
        found = timeline.actions
        names = [Kind(kind).name for kind in found.kind.tolist()]
        acts = [
            (step.number, a)
            for step in known.steps
            for pipeline in step.pipelines
            for of in pipeline.ranks
            if of.rank == rank
            for a in of.actions
        ]
        assert list(zip(found.step.tolist(), names, strict=True)) == [row[:2] for row in shown(acts, names)]
