"""The parts sum: causes to the measured bubble, points to the gap, partitions to windows, whoever wrote the trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from bubblescope.engine import analyze
from bubblescope.errors import InputError
from bubblescope.ingest.sniff import sniff
from bubblescope.model.options import Options, StepRange
from tests.conftest import SAMPLES


def checked(traces: Path, how: str) -> None:
    """Analyze and add up."""
    report = analyze(traces, Options(attribution=how)).report
    report.self_check()
    left = [cause for cause in report.bubble.causes if cause.cause == "residual"]
    assert all(abs(cause.share) <= 0.05 for cause in left) or not report.bubble.trusted


@pytest.mark.parametrize("how", ["ladder", "shapley"])
@pytest.mark.parametrize("sample", sorted(path.name for path in SAMPLES.iterdir() if path.is_dir()))
def test_the_parts_of_every_sample_sum(sample, how):
    """In the order of the ladder, and in every order."""
    checked(SAMPLES / sample, how)


def is_readable(path):
    """Whether a path is a file of a format that is read."""
    return path.is_file() and sniff(path).readable


@pytest.mark.parametrize("how", ["ladder", "shapley"])
@pytest.mark.parametrize("kind", ["torch", "frameworks", "synthetic"])
def test_the_parts_of_recorded_and_simulated_jobs_sum(shared, kind, how):
    """Each folder is a job; those of formats that are not read are passed over."""
    folders = [folder for folder in sorted((shared / kind).iterdir()) if any(map(is_readable, folder.rglob("*")))]
    assert len(folders) >= 3
    for folder in folders:
        checked(folder, how)


@pytest.mark.parametrize("how", ["ladder", "shapley"])
def test_the_parts_of_other_peoples_runs_sum(shared, how):
    """Instrumented timelines, a folder or a file each."""
    real = shared / "real"
    timelines = [*(real / "bytedance_st").glob("*timeline*"), *(real / "bytedance_st").glob("*.parquet")]
    timelines += [*(real / "megascan_pp4").iterdir(), *(real / "pippy_1f1b").iterdir(), real / "primus_pp8"]
    for traces in timelines:
        checked(traces, how)


def test_the_parts_of_single_files_sum(shared):
    """Profiler output of all kinds; what cannot be used is refused."""
    used = 0
    for traces in [*(shared / "real/nsys").iterdir(), *(shared / "real/kineto_oddities").iterdir()]:
        try:
            checked(traces, "ladder")
            used += 1
        except InputError:
            continue
    assert used >= 10


@pytest.fixture(scope="module")
def st():
    """The report over all 32 steps."""
    traces = Path(__file__).resolve().parents[2] / "shared/traces/real/bytedance_st/timeline-ST.json.gz"
    if not traces.exists():
        pytest.skip("no recorded traces in ../shared/traces beside the repository")
    return analyze(traces, Options(steps=StepRange(0, 10_000))).report


class TestPublished:
    """ByteDance's job ST: what its authors and others published of it (arXiv 2505.05713 and its repository)."""

    def test_all_steps_are_used(self, st):
        """The file holds 32, and none is incomplete."""
        assert sum(step.used for step in st.steps) == 32

    @pytest.mark.parametrize(("cause", "share"), [("structural", 0.364), ("imbalance", 0.149)])
    def test_shares(self, st, cause, share):
        """As counted by a program that shares nothing with this one, within 0.3 points."""
        known = {one.cause: one.share for one in st.bubble.causes}
        assert known[cause] == pytest.approx(share, abs=0.003)

    def test_useful_and_residual(self, st):
        """48.6 % useful, and what is left over is under 0.7 %."""
        assert 1 - st.bubble.measured == pytest.approx(0.486, abs=0.003)
        assert abs(st.bubble.causes[-1].share) < 0.007

    def test_published_slowdowns(self, st):
        """S within 2 %, M_S within 0.06, M_W small: one rank by itself is not to blame."""
        assert st.imbalance.slowdown == pytest.approx(1.1787021836556841, rel=0.02)
        assert st.imbalance.slowest_stage == 3
        assert st.imbalance.slowest_stage_share == pytest.approx(1.2193563788811714, abs=0.06)
        assert st.imbalance.slowest_rank_share < 0.1
