"""Who is slow, in the words of the summary."""

from __future__ import annotations

from dataclasses import replace

from bubblescope.model.report import CausePart
from bubblescope.report import cause_tables, uneven, verdict


def test_a_slow_rank_has_its_price(samples):
    """S of 1.25 wastes a fifth of a step; a rank that is to blame for half of it costs a tenth."""
    report = samples["imbalanced"]
    known = replace(report.imbalance, slowdown=1.25, slowest_rank_share=0.5)
    assert uneven.slow_ranks(replace(report, imbalance=known)).endswith("without it a step would be 10.0% shorter")
    unknown = replace(report.imbalance, slowdown=None)
    assert "shorter" not in uneven.slow_ranks(replace(report, imbalance=unknown))


def test_of_two_replicas_either_may_be_out_of_line(samples):
    """Nobody knows whether the one is slow or the other quick; with three the median tells."""
    report = samples["imbalanced"]
    doubt = "or its only replica is quick"
    assert len(report.pipelines) == 2
    assert doubt in uneven.slow_ranks(report)
    assert doubt not in uneven.slow_ranks(replace(report, pipelines=(*report.pipelines, report.pipelines[0])))


def test_gaps_without_any_message_may_be_transfers(samples):
    """Where no message was recorded the host is not blamed by itself."""
    base = samples["1f1b"]
    causes = [replace(c, points=0.5 if c.cause == "host" else c.points) for c in base.bubble.causes]
    late = replace(base, bubble=replace(base.bubble, causes=tuple(causes)))
    silent = replace(late, communication=())
    for report, words in ((late, "launch gaps"), (silent, "no message was recorded")):
        table = cause_tables.causes(report)
        assert words in next(row[-1] for row in table.rows if row[0] == "host")
    assert "no message was recorded" in verdict.verdict(silent)
    assert "no message was recorded" not in verdict.verdict(late)


def test_parts_of_a_cause_stand_below_it(samples):
    """With what each is; a cause that is all rest has no parts worth a row."""
    report = samples["1f1b"]

    def part(name, points):
        return CausePart(part=name, ns=1, share=points, points=points, error=None)

    def rows(*parts):
        causes = [replace(c, parts=parts, points=0.02) if c.cause == "jitter" else c for c in report.bubble.causes]
        table = cause_tables.causes(replace(report, bubble=replace(report.bubble, causes=tuple(causes))))
        return [row[0] for row in table.rows]

    assert "  data" in rows(part("data", 0.015), part("pauses", 0.0), part("rest", 0.005))
    assert "  rest" in rows(part("data", 0.015), part("pauses", 0.0), part("rest", 0.005))
    assert "  rest" not in rows(part("data", 0.0), part("pauses", 0.0), part("rest", 0.02))
