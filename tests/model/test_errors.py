"""Errors: what they say, what they exit with, and that they survive the way back from a worker."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from bubblescope.errors import BubblescopeError, InputError, UndecidedError, UsageError
from bubblescope.model.options import StepRange

KINDS = [(BubblescopeError, 70), (UsageError, 2), (InputError, 3), (UndecidedError, 4)]


@pytest.mark.parametrize(("kind", "code"), KINDS)
def test_exit_codes(kind, code):
    """Each error carries the exit code of the command line, and all are of one family."""
    assert kind.exit_code == code
    assert issubclass(kind, BubblescopeError)


@pytest.mark.parametrize("kind", [kind for kind, _ in KINDS])
@pytest.mark.parametrize("hint", [None, "open another file"])
@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])  # noqa: S301
def test_a_copy_says_the_same(kind, hint, again):
    """Pickled or copied, an error keeps its class, message, hint and text."""
    error = again(kind("cannot read x.json: expected {, found [", hint=hint))
    assert type(error) is kind
    assert (error.message, error.hint) == ("cannot read x.json: expected {, found [", hint)
    assert str(error) == error.message


def test_errors_come_back_from_a_worker():
    """What a worker process raises arrives as it was raised there."""
    with (
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
        pytest.raises(UsageError, match="--steps expects a step") as caught,
    ):
        pool.submit(StepRange.parse, "first").result()
    assert caught.value.exit_code == 2


def test_the_hint_is_not_part_of_the_text():
    """Who prints an error decides where its hint goes."""
    assert str(UsageError("no such rank", hint="rank 3 is there")) == "no such rank"
