"""Jobs of all sorts, and the rows of the files that they leave."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal

from bubblescope.emit import Job
from bubblescope.model.actions import Action

ROUGH = {"jitter": 0.05, "p2p_ns": 200_000, "host_gap_ns": 70_000, "seed": 3}
JOBS = {
    "1f1b": Job(**ROUGH),
    "1f1b fused": Job(**ROUGH, fused=True, labels="none", p2p_args="op"),
    "1f1b ahead": Job(**ROUGH, recv_ahead=1, comm_labels=True),
    "gpipe torch labels": Job(**ROUGH, schedule="gpipe", p=3, m=6, labels="torch", metadata="after"),
    "gpipe epoch": Job(**ROUGH, schedule="gpipe", p=2, m=4, era="epoch-fraction", p2p_args="none"),
    "interleaved": Job(**ROUGH, schedule="interleaved-1f1b", v=2, scale=(1.0, 1.0, 1.3, 1.0)),
    "looped-bfs two ranks": Job(**ROUGH, schedule="looped-bfs", p=2, m=4, v=2, kernel_gap_ns=3_000),
    "zb-h1": Job(**ROUGH, schedule="zb-h1"),
    "zb-v": Job(**ROUGH, schedule="zb-v", v=2),
    "tp and dp": Job(**ROUGH, p=2, m=4, d=2, t=2, kernel_gap_ns=1_000, dp_early=True, slow=(("*.1.1F*", 1.5),)),
    "zb-v ahead": Job(**ROUGH, schedule="zb-v", v=2, recv_ahead=1, comm_labels=True),
    "dualpipe": Job(**ROUGH, schedule="dualpipe", p=4, m=8, comm_labels=True),
    "dualpipe-v ahead": Job(**ROUGH, schedule="dualpipe-v", p=2, m=6, v=2, recv_ahead=1, t=2),
    "dualpipe-v fused": Job(**ROUGH, schedule="dualpipe-v", p=2, m=6, v=2, fused=True),
    "chimera": Job(**ROUGH, schedule="chimera", d=2, recv_ahead=1, straggler=((3, 1.5),)),
    "seq1f1b": Job(**ROUGH, schedule="seq1f1b", slices=3, comm_labels=True),
    "forward-only": Job(**ROUGH, schedule="forward-only", v=2, d=2),
    "by hand": Job(
        **ROUGH,
        orders=[[Action.parse(text) for text in lane.split()] for lane in ("0F0 0F1 0B0 0B1", "1F0 1B0 1F1 1B1")],
        together=[Action.parse("0F1")],
    ),
    "cpu dualpipe-v": Job(**ROUGH, schedule="dualpipe-v", p=2, m=6, v=2, backend="cpu", comm_labels=True),
    "cpu chimera": Job(**ROUGH, schedule="chimera", p=2, m=4, backend="cpu"),
    "cpu": Job(**ROUGH, p=3, m=4, backend="cpu"),
    "cpu gpipe": Job(**ROUGH, schedule="gpipe", p=2, m=4, t=2, d=2, backend="cpu", labels="torch"),
    "all-to-alls": Job(**ROUGH, p=2, m=4, t=2, in_stage="all-to-all"),
    "announced": Job(**ROUGH, p=3, m=4, announced=True, comm_labels=True),
    "announced fused": Job(**ROUGH, announced=True, fused=True),
    "pauses": Job(**ROUGH, p=3, m=4, d=2, t=2, pause_ns=3_000_000, pause_chance=0.3),
    "pauses in blocks": Job(**ROUGH, schedule="dualpipe-v", p=2, m=6, v=2, pause_ns=3_000_000, pause_chance=0.5),
    "pauses of one kernel": Job(p=2, m=4, kernels=1, pause_ns=3_000_000, pause_chance=0.5),
    "hosts of their own": Job(**(ROUGH | {"host_gap_ns": 0}), p=3, m=4, host_gaps_ns=(0, 400_000, 50_000)),
    "cpu pauses": Job(p=2, m=4, backend="cpu", pause_ns=3_000_000, pause_chance=0.5, host_gaps_ns=(0, 400_000)),
    "offload": Job(**ROUGH, p=3, m=4, offload_ns=9_000_000, t=2),
    "offload in blocks": Job(**ROUGH, schedule="dualpipe-v", p=2, m=6, v=2, offload_ns=2_000_000),
    "layers": Job(**ROUGH, p=2, m=4, t=2, stage_layers=(2, 5), layer_labels=True, recompute=True),
    "cpu layers": Job(p=3, m=4, backend="cpu", stage_layers=(1, 4, 2), layer_labels=True),
    "buckets": Job(**ROUGH, p=3, m=4, d=2, dp_buckets=3, dp_ns=12_000_000),
    "buckets of chunks": Job(
        **ROUGH,
        schedule="interleaved-1f1b",
        p=2,
        m=4,
        v=2,
        d=2,
        t=2,
        dp_buckets=2,
        dp_op="reduce-scatter",
        groups_told="sized",
        kernel_gap_ns=2_000,
    ),
    "buckets of split backwards": Job(**ROUGH, schedule="zb-v", v=2, d=2, dp_buckets=4, groups_told="none"),
    "buckets in blocks": Job(**ROUGH, schedule="dualpipe-v", p=2, m=6, v=2, d=2, dp_buckets=2, recv_ahead=1),
    "cpu buckets": Job(**ROUGH, p=2, m=4, d=2, dp_buckets=3, backend="cpu"),
    "early receives": Job(**ROUGH, p=4, m=2, recv_ahead=99, recv_streams=3),
    "evaluations between": Job(**ROUGH, p=3, m=4, d=2, eval_steps=(0, 1), eval_m=5),
    "evaluations before": Job(**ROUGH, schedule="zb-v", p=2, m=4, v=2, eval_steps=(1,), eval_at="before"),
    "evaluations behind": Job(**ROUGH, schedule="dualpipe", eval_steps=(0,), eval_at="behind", recv_ahead=1),
    "cpu evaluations": Job(**ROUGH, p=2, m=4, eval_steps=(0,), eval_at="before", backend="cpu", zero_grad="fill"),
    "ramp": Job(**ROUGH, p=2, ramp=(2, 2, 4, 4, 4)),
    "ramp of chunks": Job(**ROUGH, schedule="interleaved-1f1b", p=2, v=2, ramp=(2, 4), zero_grad="foreach"),
    "rings": Job(**ROUGH, p=2, m=4, c=3, recompute=True),
    "rings of all axes": Job(**ROUGH, schedule="zb-h1", p=2, m=4, c=2, t=2, d=2, dp_buckets=2, pg_desc="mesh"),
    "zeros": Job(**ROUGH, p=2, m=4, zero_grad="cast", zero_grad_ns=1_500_000),
    "marks of micro-batches": Job(**ROUGH, p=3, m=5, marks="micro-batch", eval_steps=(0,), eval_m=1),
    "cpu marks of micro-batches": Job(**ROUGH, p=3, m=5, marks="micro-batch", backend="cpu"),
    "no marks": Job(**ROUGH, p=2, m=3, marks="none"),
    "one kernel, no transfer time": Job(p=2, m=2, kernels=1, forward_ns=100_000, backward_ns=150_000),
}


def read(path):
    """A file's content, its numbers exact."""
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data, parse_float=Decimal)


def rows(content, *cats):
    """Complete events of some categories, with whole nanoseconds."""
    found = []
    for event in content["traceEvents"]:
        if event["ph"] == "X" and event["cat"] in cats:
            start, took = event["ts"] * 1000, event["dur"] * 1000
            assert start == int(start)
            assert took == int(took)
            found.append({**event, "start": int(start), "end": int(start + took)})
    return found
