"""Whatever ranks tell, however little sense it makes: a report comes out, and it adds up."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bubblescope.align.resolve import resolve
from bubblescope.analysis.assemble import assemble
from bubblescope.analysis.study import study
from bubblescope.model.options import Options
from tests.analysis.jobs import call, job, rank, steps

spans = st.tuples(st.integers(0, 190), st.integers(0, 30)).map(lambda s: (s[0], s[0] + s[1]))
in_step = st.sampled_from([0, 1, -1])
few = {"max_size": 4}

messages = st.tuples(
    st.sampled_from(["send", "recv", "either"]),
    st.sampled_from("012?"),
    st.sampled_from(["", "0F0", "1B1"]),
    spans,
    in_step,
).map(lambda m: (f"{m[0]} {m[1]} {m[2]}".strip(), *m[3], m[4]))


@st.composite
def ranks(draw, number):
    """A rank of two steps that did anything at any time."""
    stages, micros = st.sampled_from([number, number + 2, "?"]), st.integers(0, 2)
    actions = [
        (f"{draw(stages)}{draw(st.sampled_from('FBIW'))}{draw(micros)}", *span, int(span[0] >= 100))
        for span in sorted(draw(st.lists(spans, max_size=6)))
    ]
    asked = st.sampled_from(["", *(name for name, *_ in actions)])
    members = st.sampled_from([(), (0, 1), (0, 1, 2)])
    texts = st.sampled_from(["tp", "dp", "pp", ""])
    calls = st.tuples(texts, spans, asked, members, in_step, st.integers(-1, 5)).map(
        lambda c: call(c[0], *c[1], c[2], ranks=c[3], step=c[4], size=c[5])
    )
    return rank(
        number,
        actions,
        messages=draw(st.lists(messages, **few)),
        calls=draw(st.lists(calls, **few)),
        stray=draw(st.lists(spans, max_size=2)),
        optimizer=draw(st.lists(spans, max_size=2)),
        steps=steps(2),
    )


@st.composite
def jobs(draw):
    """Some of three ranks, laid out by what they tell or in any other way."""
    numbers = draw(st.sampled_from([(0,), (0, 1), (0, 1, 2), (1,), (1, 2), (0, 2)]))
    timelines = {number: draw(ranks(number)) for number in numbers}
    if draw(st.booleans()):
        return resolve(timelines, Options())
    lines = [[[0], [1], [2]]], [[[0, 1], [2]]], [[[0], [1]]], [[[0], [2]], [[1], [3]]], [[[], [1], [2]]], [[[0]]]
    return job(*timelines.values(), pipelines=draw(st.sampled_from(lines)))


@given(jobs(), st.sampled_from([{}, {"microbatches": 2}, {"schedule": "gpipe"}]))
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_report_comes_out_and_adds_up(of, options):
    """Parts are not negative and add up to the window, shares are shares, bounds are in order."""
    asked = Options(**options)
    found = assemble(study(of, asked), asked)
    for row in found.ranks:
        parts = (row.compute_ns, row.in_stage_comm_ns, row.dp_ns, row.pp_ns, row.host_ns, row.other_ns)
        assert row.window_ns == sum(parts)
        assert min(parts) >= 0
        assert row.pp_wait_ns is None or row.pp_ns == row.pp_transfer_ns + row.pp_wait_ns
        assert row.bubble is None or 0 <= row.bubble + 1e-9 <= 1 + 1e-9
    for row in found.communication:
        assert row.wait_ns is None or row.total_ns == row.wait_ns + row.transfer_ns
        assert 0 <= row.exposed_ns <= row.total_ns
    for row in found.stages:
        idle = row.warmup_ns, row.steady_ns, row.cooldown_ns
        assert idle == (None, None, None) if row.bubble is None else min(idle) >= 0
    bubble = found.bubble
    assert bubble.lower is None or bubble.lower <= bubble.upper + 1e-12
    assert bubble.measured is None or bubble.measured == pytest.approx(bubble.lower)
