"""The generator against closed forms, against itself, and against the orders that torch makes."""

import pytest

from tests.generator import Job, truth

CLOSED_FORMS = [
    ("gpipe", 4, 8, 1),
    ("gpipe-reversed-drain", 3, 5, 1),
    ("1f1b", 4, 8, 1),
    ("1f1b", 8, 3, 1),
    ("eager-1f1b", 4, 12, 1),
    ("interleaved-1f1b", 4, 8, 2),
    ("interleaved-1f1b", 2, 6, 4),
    ("looped-bfs", 4, 8, 2),
    ("looped-bfs", 3, 6, 2),
]


@pytest.mark.parametrize(("schedule", "p", "m", "v"), CLOSED_FORMS)
def test_bubble_is_the_closed_form(schedule, p, m, v):
    job = Job(schedule=schedule, p=p, m=m, v=v, forward_ns=12_000_000, backward_ns=24_000_000)
    assert truth(job).bubble == pytest.approx((p - 1) / (v * m + p - 1), abs=1e-9)
