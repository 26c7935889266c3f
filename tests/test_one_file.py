"""Files that are no ranks: several ranks in one, one process with several GPUs, several recordings of one rank."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bubblescope.emit import Job, truth, write
from bubblescope.engine import analyze
from bubblescope.errors import InputError
from bubblescope.ingest.chrome import read_all
from bubblescope.ingest.nsys import read as read_nsys

BASE = {"p": 3, "m": 4, "steps": 4, "kernels": 2, "jitter": 0.05, "p2p_ns": 50_000}
SHAPES = {
    "labels": {"labels": "pp"},
    "numbers": {"labels": "none", "fused": True},
    "replicas": {"p": 2, "d": 2, "t": 2, "labels": "none"},
    "chunks": {"schedule": "interleaved-1f1b", "v": 2, "m": 6},
    "launches": {"labels": "none", "host": "launches"},
    "kernels": {"labels": "none", "host": "none"},
    "cpu": {"backend": "cpu"},
    "cpu numbers": {"backend": "cpu", "labels": "none"},
}
RIGHT = 1e-8


def analyzed(job):
    """The report of a job's files."""
    with TemporaryDirectory() as folder:
        write(job, Path(folder))
        return analyze([folder]).report


def told_right(job, report):
    """The bubble, the schedule and the shape are the job's."""
    known = truth(job)
    assert report.bubble.measured == pytest.approx(known.bubble, abs=RIGHT)
    assert job.schedule in (report.schedule.name, *report.schedule.also)
    assert (report.layout.pp, len(report.ranks)) == (job.p, job.world)
    assert report.schedule.microbatches == job.m


def of_one_process(path, gpus, *, anew):
    """The merged file with one id for all processes, so many GPUs, and numbers of launches made unique if `anew`."""
    document = json.loads(gzip.decompress(path.read_bytes()))
    for event in document["traceEvents"]:
        args = event.get("args", {})
        if not isinstance(event["pid"], int):
            continue
        number = event["pid"] if event["pid"] < 100 else (event["pid"] - 7000) // 13
        if event["pid"] < 100:
            event["pid"] = number % gpus
            args |= {"device": number % gpus} if "device" in args else {}
        else:
            event |= {"pid": 1, "tid": event["tid"] + 1000 * number}
        for key in ("correlation", "External id") if anew else ():
            args |= {key: args[key] + 10**6 * number} if key in args else {}
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return path


class TestMerged:
    """The ranks of a merged file are those of files of their own."""

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("merged", ["behind", "shifted", "sorted"])
    @pytest.mark.parametrize("alone", [False, True])
    def test_every_shape(self, shape, merged, alone):
        """Though numbers of launches collide, and devices where each process sees its own only."""
        job = Job(**(BASE | SHAPES[shape]), one_file=merged, one_gpu_visible=alone)
        if (shape, merged, alone) == ("kernels", "behind", True):
            pytest.skip("all kernels name one GPU, and no launch tells them apart")
        report = analyzed(job)
        told_right(job, report)
        apart = analyzed(replace(job, one_file="no", one_gpu_visible=False))
        assert report.quality.verdict == apart.quality.verdict
        assert [rank.compute_ns for rank in report.ranks] == [rank.compute_ns for rank in apart.ranks]

    def test_metadata_of_one_are_nobodys(self, tmp_path):
        """The rank that the merged file tells is that of its last part, and is not claimed by the others."""
        job = Job(**BASE, one_file="shifted")
        (path,) = write(job, tmp_path)
        traces = read_all(path)
        assert [trace.identity.rank for trace in traces] == [None] * 3
        assert [trace.identity.host for trace in traces] == [None] * 3
        assert [trace.identity.clock for trace in traces] == [None] * 3

    def test_ids_that_mix(self, tmp_path):
        """One GPU for all, and numbers that collide, in no order of ranks: refused, with what to do."""
        (path,) = write(Job(**BASE, one_file="behind", one_gpu_visible=True, compress=False), tmp_path)
        document = json.loads(path.read_text())
        document["traceEvents"].sort(key=lambda event: event["ts"])
        path.write_text(json.dumps(document))
        with pytest.raises(InputError, match="several ranks, and nothing tells which events are whose") as refused:
            read_all(path)
        assert refused.value.hint == "Give the trace of each rank as a file of its own."

    @pytest.mark.parametrize("in_order", [False, True])
    def test_processes_of_one_id(self, tmp_path, in_order):
        """As in containers: refused, too."""
        (path,) = write(Job(**BASE, one_file="behind", one_gpu_visible=True, compress=False), tmp_path)
        document = json.loads(path.read_text())
        for event in document["traceEvents"]:
            if event.get("cat") != "kernel" and isinstance(event["pid"], int) and event["pid"] > 100:
                event["pid"] = 7000
        document["traceEvents"] = [e for e in document["traceEvents"] if e["pid"] in {0, 7000}]
        if in_order:
            document["traceEvents"].sort(key=lambda event: event["ts"])
        path.write_text(json.dumps(document))
        with pytest.raises(InputError, match="processes of the same id"):
            read_all(path)

    @pytest.mark.parametrize("shape", [{}, {"labels": "none"}, {"backend": "cpu"}])
    @pytest.mark.parametrize(("gpus", "anew"), [(1, True), (2, True), (3, False)])
    def test_processes_of_one_id_in_the_same_step(self, tmp_path, shape, gpus, anew):
        """Are refused where they are more than GPUs, or their numbers collide, though a process may drive several."""
        (path,) = write(Job(**(BASE | {"skew_ns": (0, 300_000, 700_000)} | shape), one_file="behind"), tmp_path)
        path = of_one_process(path, gpus, anew=anew)
        with pytest.raises(InputError, match=r"process(es of the same id| is in one step several times)"):
            read_all(path)

    def test_one_process_whose_threads_mark_their_steps(self, tmp_path):
        """Is as many ranks as it has GPUs, where its numbers are its own."""
        job = Job(**BASE, one_file="behind")
        report = analyze([of_one_process(*write(job, tmp_path), 3, anew=True)]).report
        told_right(job, report)

    def test_names_of_processes_tell_the_ranks(self, tmp_path):
        """Whatever the order of their ids."""
        (path,) = write(Job(**BASE, one_file="behind", compress=False), tmp_path)
        document = json.loads(path.read_text())
        for event in document["traceEvents"]:
            if event["name"] == "process_name":
                place = event["pid"] if event["pid"] < 100 else (event["pid"] - 7000) // 13
                event["args"]["name"] = f"[rank{2 - place}] python"
        document["traceEvents"].sort(key=lambda event: event["ts"])
        path.write_text(json.dumps(document))
        assert [trace.identity.rank for trace in read_all(path)] == [2, 1, 0]
        names = [{thread.pid for thread in trace.threads} for trace in read_all(path)]
        assert names == [{"7000"}, {"7013"}, {"7026"}]


ONE_PROCESS = {
    "labels": {},
    "sorted": {"one_file": "sorted"},
    "split backwards": {"schedule": "zb-h1"},
    "chunks": {"schedule": "interleaved-1f1b", "v": 2, "m": 6},
    "layers": {"layer_labels": True, "autograd": False},
    "an export": {"recorder": "nsys", "one_file": "no", "one_file_a_host": True},
}


class TestOneProcess:
    """The GPUs of one process are ranks."""

    @pytest.mark.parametrize("shape", ONE_PROCESS)
    def test_every_shape(self, shape):
        """What a range is for is told by what was launched inside; copies are no work and no messages."""
        job = Job(**(BASE | {"one_process": True, "one_file": "behind"} | ONE_PROCESS[shape]))
        report = analyzed(job)
        told_right(job, report)
        assert (report.layout.source, report.quality.verdict) == ("labels", "ok")
        assert {(call.group, call.op) for call in report.communication} == {("pp", "peer_copy")}
        assert report.clock.error_ns == 0

    @pytest.mark.parametrize("shape", [{"labels": "none"}, {"labels": "torch"}, {"labels": "none", "host": "launches"}])
    def test_a_pipeline_that_nothing_tells(self, shape):
        """Is no reason to call the numbers right."""
        report = analyzed(Job(**BASE, **shape, one_process=True, one_file="behind"))
        assert report.bubble.measured is None
        assert report.quality.verdict == "degraded"
        (finding,) = [found for found in report.quality.findings if found.code == "unlabelled"]
        assert "copies from one GPU of a process to another may pass between stages" in finding.message

    @pytest.mark.parametrize("copy", ["Memcpy DtoD (Device -> Device)", "CopyDeviceToDevice", None])
    def test_copies_that_name_no_other_gpu_are_no_reason_for_calm(self, tmp_path, copy):
        """Nor is it where there is none: activations may go through the host."""
        (path,) = write(Job(**BASE, labels="none", one_process=True, one_file="behind", compress=False), tmp_path)
        document = json.loads(path.read_text())
        peers = [event for event in document["traceEvents"] if "PtoP" in event["name"]]
        assert peers
        for event in peers:
            event["name"] = copy
        document["traceEvents"] = [event for event in document["traceEvents"] if event["name"]]
        path.write_text(json.dumps(document))
        report = analyze([path]).report
        assert (report.bubble.measured, report.quality.verdict) == (None, "degraded")
        (finding,) = [found for found in report.quality.findings if found.code == "unlabelled"]
        assert "GPUs of one process that no communication connects" in finding.message

    @pytest.mark.parametrize("exported", [False, True])
    def test_host_events_are_shared_out(self, tmp_path, exported):
        """Each GPU has the labels of its own stage, and the marks of steps, which one thread sets, are of all."""
        how = {"recorder": "nsys", "one_file_a_host": True} if exported else {"one_file": "behind"}
        (path,) = write(Job(**BASE, **how, one_process=True), tmp_path)
        traces = list(read_nsys(path)) if exported else read_all(path)
        for stage, trace in enumerate(traces):
            names = {trace.names[number] for number in trace.annotations.name}
            assert {name[3] for name in names if name.startswith("PP:")} == {str(stage)}
            assert {f"ProfilerStep#{number}" for number in range(4)} <= names
            assert set(trace.launches.correlation.tolist()) == set(trace.kernels.correlation.tolist())
            assert (trace.identity.process, trace.identity.device) == ("7000", str(stage))

    def test_without_launches(self, tmp_path):
        """Nothing tells which ranges are of which GPU: refused."""
        (path,) = write(Job(**BASE, one_process=True, one_file="behind", compress=False), tmp_path)
        document = json.loads(path.read_text())
        document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") != "cuda_runtime"]
        path.write_text(json.dumps(document))
        with pytest.raises(InputError, match="it has no launches of the kernels"):
            read_all(path)


CYCLES = {
    "numbers go on": {},
    "numbers come again": {"count_anew": True},
    "nobody tells a rank": {"metadata": "none", "count_anew": True},
    "names tell no rank": {"neutral_names": True, "count_anew": True, "labels": "none"},
    "three": {"cycles": 3, "steps": 6, "count_anew": True},
    "cpu": {"backend": "cpu", "count_anew": True},
    "a step each": {"cycles": 4, "count_anew": True},
    "merged": {"one_file": "shifted", "count_anew": True},
    "of one process": {"one_process": True, "one_file": "behind", "count_anew": True},
}


class TestCycles:
    """Recordings of one process behind each other are one rank."""

    @pytest.mark.parametrize("shape", CYCLES)
    def test_every_shape(self, shape):
        """With all its steps, none of which lasts until the next recording."""
        job = Job(**(BASE | {"cycles": 2} | CYCLES[shape]))
        report = analyzed(job)
        told_right(job, report)
        assert report.quality.verdict == "ok"
        assert [step.step for step in report.steps] == list(range(job.steps))
        assert max(step.window_ns for step in report.steps) < job.rest_ns
        assert len(report.inputs) == job.cycles * (1 if job.one_file != "no" else job.p) * (
            job.p if job.one_file != "no" else 1
        )
        whole = analyzed(replace(job, cycles=1, count_anew=False))
        rate, expected = (each.throughput.microbatches_per_s for each in (report, whole))
        assert rate == pytest.approx(expected, rel=0.05)

    @pytest.mark.parametrize("shape", [{}, {"backend": "cpu"}, {"labels": "none"}])
    def test_in_one_document_or_behind_each_other(self, tmp_path, shape):
        """The files of a rank as one file."""
        job = Job(**BASE, **shape, cycles=2, count_anew=True, compress=False)
        paths = write(job, tmp_path / "apart")
        for way in ("behind", "in one list"):
            folder = tmp_path / way
            folder.mkdir()
            for rank in range(job.p):
                texts = [path.read_text() for path in paths if path.name.startswith(f"rank{rank}")]
                text = "".join(texts)
                if way == "in one list":
                    documents = list(map(json.loads, texts))
                    events = [event for document in documents for event in document["traceEvents"]]
                    text = json.dumps(documents[0] | {"traceEvents": events})
                (folder / f"rank{rank}.json").write_text(text)
            report = analyze(folder).report
            told_right(job, report)
            assert [step.step for step in report.steps] == list(range(4))
            assert len(report.inputs) == job.p
            assert report.steps[-1].window_ns < job.rest_ns

    @pytest.mark.parametrize("merged", ["shifted", "sorted"])
    @pytest.mark.parametrize("shape", [{}, {"backend": "cpu"}, {"p": 2, "d": 2, "labels": "none"}])
    def test_all_in_one_file(self, tmp_path, merged, shape):
        """Of a script that keeps nothing but the events: moments of one file are comparable."""
        job = Job(**(BASE | shape), cycles=2, count_anew=True, one_file=merged, compress=False)
        documents = [json.loads(path.read_text()) for path in write(job, tmp_path / "apart")]
        first = min(document["baseTimeNanoseconds"] for document in documents)
        events = []
        for document in documents:
            later = (document["baseTimeNanoseconds"] - first) / 1000
            events += [e | {"ts": e["ts"] + later} if "ts" in e else e for e in document["traceEvents"]]
        path = tmp_path / "merged.json"
        path.write_text(json.dumps({"traceEvents": events}))
        report = analyze([path]).report
        told_right(job, report)
        assert [step.step for step in report.steps] == list(range(job.steps))
        assert report.quality.verdict == "ok"

    def test_a_recording_that_one_rank_lacks(self, tmp_path):
        """Its steps are incomplete, and those of the others keep their numbers."""
        job = Job(**BASE, cycles=2, count_anew=True, metadata="none", rest_ns=7_000_000_000)
        paths = write(job, tmp_path)
        (lost,) = [path for path in paths if path.name == "rank1_trace.json.gz"]
        lost.unlink()
        report = analyze(tmp_path).report
        assert [step.step for step in report.steps if step.complete] == [2, 3]

    def test_ranks_that_claim_one_number(self, tmp_path):
        """Are an error still where their processes differ, or their recordings overlap."""
        job = Job(**BASE, cycles=2, count_anew=True, compress=False)
        paths = write(job, tmp_path)
        first = paths[0].read_text()
        (tmp_path / "rank0_again.json").write_text(first)
        with pytest.raises(InputError, match="claimed by two files"):
            analyze(tmp_path)
        (tmp_path / "rank0_again.json").unlink()
        path = next(path for path in paths if path.name.startswith("rank0_trace_cycle1"))
        path.write_text(path.read_text().replace('"pid":7000,', '"pid":6999,'))
        with pytest.raises(InputError, match="claimed by two files"):
            analyze(tmp_path)


class TestCopies:
    """Recordings that are given twice."""

    @pytest.mark.parametrize(
        "shape",
        [
            {"metadata": "none"},
            {"one_file": "shifted"},
            {"backend": "cpu", "labels": "none", "metadata": "none"},
            {"one_process": True, "one_file": "behind"},
        ],
    )
    def test_count_once(self, tmp_path, shape):
        """And the report names both files; where they tell ranks, two files claim each."""
        job = Job(**(BASE | shape))
        for turn, path in enumerate(write(job, tmp_path)):
            for name in (f"{'abc'[turn]}.json.gz", f"{'abc'[turn]}_copy.json.gz"):
                (tmp_path / name).write_bytes(path.read_bytes())
            path.unlink()
        report = analyze([tmp_path]).report
        told_right(job, report)
        assert (len(report.inputs), report.quality.verdict) == (2 * job.p, "ok")
        said = [f.message for f in report.quality.findings if f.code == "several-recordings"]
        assert said
        assert all("counts once" in message for message in said)
