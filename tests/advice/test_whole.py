"""Whether the bubble is the problem, and what is if not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblescope.advice.whole import not_the_bubble, spent
from bubblescope.model.report import Outside
from bubblescope.model.trace import Finding
from tests.advice.runs import MS, Fake, a_rank, quiet, said, with_bubble


def a_job(**rank):
    """A run whose ranks are all like that."""
    return quiet(ranks=tuple(a_rank(number, **rank) for number in range(4)))


def outside(**parts):
    """Time beside the window in milliseconds; what is not named is nothing."""
    return Outside(**{f"{name}_ns": parts.get(name, 0) * MS for name in ("dp", "optimizer", "host", "other")})


def without_pipeline(**rank):
    """A run without a pipeline: the window is the step."""
    base = a_job(outside=outside(), **rank)
    ranks = tuple(replace(r, pipeline=None, bubble=None, host_ns=r.pp_ns, pp_ns=0, pp_wait_ns=0) for r in base.ranks)
    bubble = replace(base.bubble, measured=None, causes=())
    return replace(base, ranks=ranks, schedule=replace(base.schedule, name="none"), bubble=bubble, pipelines=())


def test_a_bubble_of_a_third_is_the_problem():
    """Nothing is said."""
    assert said(not_the_bubble, a_job(), Fake()) is None


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"dp": 150}, "exposed data-parallel communication"),
        ({"optimizer": 150}, "the optimizer"),
        ({"host": 150}, "idle time outside the pipeline"),
        ({"other": 150}, "other work outside the pipeline"),
    ],
)
def test_an_overhead_larger_than_the_bubble(parts, name):
    """It is named, with its share of the whole step: 150 of 380 + 150 ms."""
    told = said(not_the_bubble, a_job(outside=outside(**parts)), Fake())
    assert told.code == "not-the-bubble"
    assert told.title == f"The bubble is not the problem: 28.3% of a step is {name}"
    assert "50.2% compute, 21.5% bubble and 28.3%" in told.detail
    assert (told.gain, told.change) == (None, None)


def test_exposed_collectives_of_stages_larger_than_the_bubble():
    """They count as useful in the bubble, but not here."""
    told = said(not_the_bubble, a_job(compute=180, comm=120), Fake())
    assert "30.0% of a step is exposed tensor-" in told.title


def test_a_small_bubble_beside_compute():
    """Nothing but kernels is left to look at: 370 of 400 ms."""
    told = said(not_the_bubble, a_job(compute=370), Fake())
    assert told.title == "The bubble is not the problem: 92.5% of a step is compute"
    assert "kernels" in told.detail


def test_a_small_bubble_beside_an_overhead_that_matters():
    """5 % of a step and more is worth naming."""
    told = said(not_the_bubble, a_job(compute=370, outside=outside(host=25)), Fake())
    assert "is idle time outside the pipeline" in told.title


def test_no_pipeline():
    """The answer is where the step goes, with no forecaster at all."""
    told = said(not_the_bubble, without_pipeline(compute=304), None)
    assert told.title == "No pipeline, so no bubble: 20.0% of a step is waiting for the host"
    assert "bubble" not in told.detail
    assert told.detail.startswith("That is 76.00 ms of 380.0 ms.")


def test_no_pipeline_and_nothing_but_compute():
    """The kernels then."""
    told = said(not_the_bubble, without_pipeline(compute=370), None)
    assert "97.4% of a step is compute" in told.title


def test_what_nobody_could_tell_is_not_blamed():
    """Neither where the bubble is unknown, nor where there may be a pipeline that nobody told."""
    unknown = with_bubble(a_job(compute=370), measured=None)
    assert said(not_the_bubble, unknown, None) is None
    job = without_pipeline(compute=370)
    finding = Finding("unlabelled", "warning", "")
    assert said(not_the_bubble, replace(job, quality=replace(job.quality, findings=(finding,))), None) is None


def test_nothing_recorded():
    """No rank, no answer."""
    assert spent(quiet(ranks=())) is None
