"""Which rank stands where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblescope.align.layout import plan
from bubblescope.errors import UsageError
from bubblescope.model.options import Options
from bubblescope.model.trace import CommArgs
from tests.building import group, timeline


def plan_of(*timelines, **options):
    """The layout of some ranks; every rank of a pipeline has one place in it."""
    found = plan({t.rank: t for t in timelines}, Options(**options))
    ranks = [rank for line in found.pipelines for position in line for rank in position]
    assert len(ranks) == len(set(ranks))
    assert all(len(line) == found.pp for line in found.pipelines)
    return found


def degrees(found):
    """(pp, tp, dp, cp)."""
    return found.pp, found.tp, found.dp, found.cp


def talking(rank, *messages, **more):
    """A rank that runs one forward and sends or receives."""
    rows = [(text, 10 * i, 10 * i + 5) for i, text in enumerate(messages)]
    return timeline(rank, actions=[("?F0", 100, 110)], messages=rows, **more)


# Described process groups.


def megatron(rank, *, tp=1, pp=1, dp=1):
    """The groups of a rank as Megatron describes them: tensor-parallel ranks are neighbours, stages far apart."""
    t, d, p = rank % tp, rank // tp % dp, rank // (tp * dp)
    return [
        group("0", "default_pg", *range(tp * pp * dp)),
        group("1", "TENSOR_MODEL_PARALLEL_GROUP", *(p * dp * tp + d * tp + i for i in range(tp))),
        group("2", "PIPELINE_MODEL_PARALLEL_GROUP", *(i * dp * tp + d * tp + t for i in range(pp))),
        group("3", "DATA_PARALLEL_GROUP", *(p * dp * tp + i * tp + t for i in range(dp))),
        group("4", "CONTEXT_PARALLEL_GROUP", rank),
        group("5", "MODEL_PARALLEL_GROUP", *(i * dp * tp + d * tp + j for i in range(pp) for j in range(tp))),
    ]


def test_megatrons_groups():
    """Two pipelines of two stages of two tensor-parallel ranks each."""
    found = plan_of(*[timeline(r, groups=megatron(r, tp=2, pp=2, dp=2)) for r in range(8)])
    assert found.pipelines == (((0, 1), (4, 5)), ((2, 3), (6, 7)))
    assert degrees(found) == (2, 2, 2, 1)
    assert (found.world_size, found.source, found.findings) == (8, "process groups", ())


def test_the_device_mesh():
    """Torch's mesh dimensions describe groups as well."""
    groups = {
        0: [group("1", "mesh_pp", 0, 2), group("2", "mesh_dp", 0, 1)],
        1: [group("1", "mesh_pp", 1, 3), group("2", "mesh_dp", 0, 1)],
        2: [group("1", "mesh_pp", 0, 2), group("2", "mesh_dp", 2, 3)],
        3: [group("1", "mesh_pp", 1, 3), group("2", "mesh_dp", 2, 3)],
    }
    found = plan_of(*[timeline(r, groups=groups[r]) for r in groups])
    assert found.pipelines == (((0,), (2,)), ((1,), (3,)))
    assert degrees(found) == (2, 1, 2, 1)


def test_context_parallel_ranks_share_a_position():
    """Ranks that share a context group belong to one stage of one pipeline."""
    groups = {
        r: [group("1", "mesh_pp", r % 2, r % 2 + 2), group("2", "mesh_cp", r - r % 2, r - r % 2 + 1)] for r in range(4)
    }
    found = plan_of(*[timeline(r, groups=groups[r]) for r in groups])
    assert found.pipelines == (((0, 1), (2, 3)),)
    assert (found.pp, found.cp) == (2, 2)


def test_the_order_of_a_group_is_the_order_of_stages():
    """A pipeline whose ranks do not rise keeps the order in which its group names them."""
    groups = [group("1", "mesh_pp", 3, 1, 2, 0)]
    assert plan_of(*[timeline(r, groups=groups) for r in range(4)]).pipelines == (((3,), (1,), (2,), (0,)),)


def test_one_rank_of_four():
    """One file tells of the ranks that were not recorded, and of no other pipeline."""
    found = plan_of(timeline(2, groups=[group("1", "mesh_pp", 0, 1, 2, 3)], world=4))
    assert found.pipelines == (((0,), (1,), (2,), (3,)),)
    assert (found.world_size, found.place_of()[2]) == (4, (0, 2))


def test_one_rank_of_eight_with_replicas():
    """A file of one replica says nothing of the other replica's ranks; its degrees are known all the same."""
    found = plan_of(timeline(5, groups=megatron(5, tp=2, pp=2, dp=2), world=8))
    assert degrees(found) == (2, 2, 2, 1)
    places = found.place_of()
    assert places[5] == (0, 1)
    assert set(places) <= {0, 1, 4, 5}


@pytest.mark.parametrize("peers", ["mesh_tp", "mesh_cp"])
def test_one_rank_places_its_peers(peers):
    """A rank that was not recorded stands where the recorded rank says that it shares its stage."""
    one = timeline(2, groups=[group("1", "mesh_pp", 0, 2), group("2", peers, 2, 3)], world=4)
    assert plan_of(one).place_of()[3] == (0, 1)


def test_a_pipeline_group_of_one_is_none():
    """Megatron describes groups of one rank where a dimension is not used."""
    found = plan_of(*[timeline(r, groups=megatron(r, tp=2, dp=2)) for r in range(4)])
    assert found.pipelines == ()
    assert degrees(found) == (1, 2, 2, 1)


def test_groups_that_do_not_hold_the_rank_say_nothing():
    """A file may describe groups of other ranks too."""
    others = [group("1", "mesh_pp", 0, 1), group("2", "mesh_pp", 2, 3)]
    found = plan_of(*[timeline(r, groups=others) for r in range(4)])
    assert found.pipelines == (((0,), (1,)), ((2,), (3,)))


def test_the_smallest_group_of_a_purpose_counts():
    """Groups that join several purposes are larger than the one that is meant."""
    both = [group("1", "DATA_PARALLEL_GROUP_WITH_CP", 0, 1, 2, 3)]
    found = plan_of(*[
        timeline(r, groups=[*both, group("2", "DATA_PARALLEL_GROUP", r % 2, r % 2 + 2), group("3", "mesh_tp", r)])
        for r in range(4)
    ])  # fmt: skip
    assert found.dp == 2


def partners(rank, **sizes):
    """The groups of a rank of a mesh whose axes, innermost first, have these sizes."""
    found, stride = [], 1
    for axis, size in sizes.items():
        first = rank - rank // stride % size * stride
        found.append(group(axis, f"mesh_{axis}", *range(first, first + stride * size, stride)))
        stride *= size
    return found


@pytest.mark.parametrize(
    "sizes",
    [
        {"tp": 1, "cp": 2, "dp": 1, "pp": 2},
        {"tp": 2, "cp": 2, "dp": 1, "pp": 2},
        {"tp": 1, "cp": 2, "dp": 2, "pp": 2},
        {"tp": 2, "cp": 3, "dp": 2, "pp": 2},
        {"cp": 2, "pp": 2},
        {"cp": 2, "pp": 2, "dp": 2},
        {"tp": 2, "pp": 3, "dp": 2},
    ],
    ids=str,
)
def test_the_degrees_multiply_to_the_ranks(sizes):
    """Each degree is that of its groups, whichever others there are, and one where there are none."""
    world = int(np.prod(list(sizes.values())))
    found = plan_of(*[timeline(r, world=world, groups=partners(r, **sizes)) for r in range(world)])
    assert degrees(found) == tuple(sizes.get(axis, 1) for axis in ("pp", "tp", "dp", "cp"))
    assert len(found.pipelines) == sizes.get("dp", 1)


@pytest.mark.parametrize("recorded", [0, 5])
def test_one_rank_tells_all_degrees(recorded):
    """The groups of one rank hold those that were not recorded."""
    sizes = {"tp": 1, "cp": 2, "dp": 2, "pp": 2}
    found = plan_of(timeline(recorded, world=8, groups=partners(recorded, **sizes)))
    assert degrees(found) == (2, 1, 2, 2)


def test_experts_take_their_ranks_from_replicas():
    """Expert parallel groups lie within the replicas, so that they are no further factor."""
    extra = {r: group("e", "EXPERT_MODEL_PARALLEL_GROUP", r - r % 2, r - r % 2 + 1) for r in range(4)}
    found = plan_of(*[timeline(r, world=4, groups=[*partners(r, tp=1, dp=2, pp=2), extra[r]]) for r in range(4)])
    assert (*degrees(found), found.ep) == (2, 1, 2, 1, 2)


def test_replicas_described_with_their_context_partners_alone():
    """Megatron may describe the group that joins replicas and context; the context group says how many are what."""
    groups = {
        r: [
            *partners(r, tp=1, cp=2),
            group("p", "PIPELINE_MODEL_PARALLEL_GROUP", r % 4, r % 4 + 4),
            group("d", "DATA_PARALLEL_GROUP_WITH_CP", *range(r - r % 4, r - r % 4 + 4)),
        ]
        for r in range(8)
    }
    assert degrees(plan_of(*[timeline(r, world=8, groups=groups[r]) for r in range(8)])) == (2, 1, 2, 2)


# Without descriptions: labels, then messages.


def staged(rank, *stages):
    """A rank whose labels name its stages."""
    return timeline(rank, actions=[(f"{s}F0", 10 * i, 10 * i + 9) for i, s in enumerate(stages)])


def test_labels_alone():
    """Rank r of a pipeline holds stage r."""
    found = plan_of(*[staged(r, r) for r in range(4)])
    assert found.pipelines == (((0,), (1,), (2,), (3,)),)
    assert (found.source, degrees(found)) == ("labels", (4, 1, 1, 1))


def test_labels_order_the_ranks():
    """The stage says the position, not the rank."""
    assert plan_of(staged(0, 2), staged(1, 0), staged(2, 1)).pipelines == (((1,), (2,), (0,)),)


@pytest.mark.parametrize("stages", [[(0, 2), (1, 3)], [(0, 3), (1, 2)]], ids=["loop", "V"])
def test_labels_of_chunks(stages):
    """Two stages a rank are two chunks of a pipeline of two positions, looped or folded."""
    found = plan_of(*[staged(r, *held) for r, held in enumerate(stages)])
    assert found.pipelines == (((0,), (1,)),)


def test_ranks_with_the_same_stages_are_replicas():
    """Two ranks of one stage belong to two pipelines; to one if the user says that they are tensor-parallel."""
    ranks = [staged(0, 0), staged(1, 0), staged(2, 1), staged(3, 1)]
    assert plan_of(*ranks).pipelines == (((0,), (2,)), ((1,), (3,)))
    assert plan_of(*ranks).dp == 2
    assert plan_of(*ranks, tp=2).pipelines == (((0, 1), (2, 3)),)


@pytest.mark.parametrize(("asks", "dp"), [("0F0", None), ("0B0", 2)], ids=["forwards", "backwards"])
def test_collectives_in_forwards_leave_open_what_the_pipelines_are(asks, dp):
    """A replica's forward has nothing to reduce, a tensor-parallel one has: undescribed, both degrees are unknown."""
    ranks = [
        timeline(
            r, actions=[(f"{s}F0", 0, 9), (f"{s}B0", 9, 20)], collectives=[("", 2, 3, asks.replace("0", str(s), 1))]
        )
        for r, s in enumerate((0, 0, 1, 1))
    ]
    found = plan_of(*ranks)
    assert found.dp == dp
    assert [f.code for f in found.findings] == ([] if dp else ["replicas-assumed"])


def ringing(rank, stage, *calls):
    """A rank whose forward asks for calls, each (args, start)."""
    sent = [(CommArgs(**args), start, start + 1, f"{stage}F0") for args, start in calls]
    return timeline(rank, actions=[(f"{stage}F0", 0, 9), (f"{stage}B0", 9, 20)], collectives=sent, world=8)


RING, UNSAID = ({"op": "send", "purpose": "cp"}, 2), ({"op": "coalesced", "group_size": 2}, 2)
TENSOR = ({"op": "all_reduce", "purpose": "tp", "group_size": 2}, 4)


@pytest.mark.parametrize(
    ("calls", "stated", "shown"),
    [
        ([RING], {}, (2, None, None, None)),
        ([UNSAID], {}, (2, None, None, None)),
        ([UNSAID, TENSOR], {}, (2, 2, None, None)),
        ([RING], {"tp": 1}, (2, 1, None, None)),
        ([RING], {"tp": 2}, (2, 2, None, None)),
        ([UNSAID, TENSOR], {"dp": 1}, (2, 2, 1, 2)),
        ([RING], {"tp": 1, "dp": 2}, (2, 1, 2, 2)),
        ([RING], {"dp": 1}, (2, None, 1, None)),
        ([TENSOR], {}, (2, 2, 2, 1)),
    ],
)
def test_ranks_that_pass_messages_round_in_their_actions_need_be_no_replicas(calls, stated, shown):
    """They may be those of a context: its degree and that of replicas stay open unless told."""
    found = plan_of(*[ringing(r, r // 4, *calls) for r in range(8)], **stated)
    assert degrees(found) == shown
    assert [f.code for f in found.findings] == (["replicas-assumed"] if found.dp is None else [])
    assert all("context-parallel" in f.message for f in found.findings)


def test_replicas_that_do_not_fit_the_ranks_leave_a_context_open():
    """Three replicas are no four pipelines; nothing else tells how many there are."""
    found = plan_of(*[ringing(r, r // 4, RING) for r in range(8)], dp=3)
    assert degrees(found) == (2, None, None, None)
    conflict = "2 pipeline ranks x --dp 3 is 6 ranks, but the traces have 8; what is stated is not used"
    assert [f.message for f in found.findings if f.code == "metadata-conflict"] == [conflict]


def test_a_rank_that_no_group_holds_is_in_no_pipeline():
    """A rank beside the pipelines, with no group of its own, is not placed."""
    groups = [group("1", "mesh_pp", 0, 1)]
    found = plan_of(timeline(0, groups=groups), timeline(1, groups=groups), timeline(2))
    assert found.pipelines == (((0,), (1,)),)


def test_a_missing_stage_keeps_its_rank():
    """Stages whose ranks are not there keep their positions, and the ranks that the layout of the others gives them."""
    found = plan_of(staged(0, 0), staged(3, 3))
    assert found.pipelines == (((0,), (1,), (2,), (3,)),)


def test_a_missing_rank_does_not_mix_replicas():
    """With rank 1 of stage 0 missing, rank 2 still belongs to the pipeline of rank 0."""
    found = plan_of(staged(0, 0), staged(2, 1), staged(3, 1))
    assert found.pipelines == (((0,), (2,)), ((1,), (3,)))


@pytest.mark.parametrize(("held", "pp"), [({0: (0, 4)}, 4), ({0: (0, 7)}, 4), ({0: (0, 2), 1: (1, 3)}, 2)])
def test_chunks_tell_the_depth(held, pp):
    """Chunks that loop are p apart, chunks that fold back add up to 2p-1: one rank can tell."""
    ranks = [timeline(r, actions=[(f"{s}F0", 10 * i, 10 * i + 9) for i, s in enumerate(stages)], world=4)
             for r, stages in held.items()]  # fmt: skip
    assert plan_of(*ranks).pp == pp


def test_stage_0_alone_is_no_pipeline():
    """Ranks that all hold the one stage 0 are replicas of a model in one piece."""
    assert plan_of(staged(0, 0), staged(1, 0)).pipelines == ()


def receiving(rank, stage, *, each):
    """A rank whose label names its stage, with so many messages of no direction for its forward and its backward."""
    rows = [("either ?", 30 * i, 30 * i + 5) for i in range(each)]
    return timeline(rank, actions=[(f"{stage}F0", 200, 210), (f"{stage}B0", 210, 220)], messages=rows)


def test_a_deepest_stage_with_the_messages_of_an_inner_one_is_followed_by_another():
    """Four messages, where the first stage has two, go both ways: one more rank was not recorded."""
    found = plan_of(receiving(0, 0, each=2), receiving(1, 1, each=4))
    assert (found.world_size, found.pipelines) == (3, (((0,), (1,), (2,)),))


@pytest.mark.parametrize("each", [2, 3, 4, 8])
def test_numbers_that_do_not_hold_for_the_first_stage_invent_no_rank(each):
    """Where the first stage has as many, other kernels are among them: labels say how deep the pipeline is."""
    found = plan_of(receiving(0, 0, each=each), receiving(1, 1, each=each))
    assert (found.world_size, found.pipelines, found.source) == (2, (((0,), (1,)),), "labels")


def test_stages_of_labels_outlive_their_actions():
    """Stages that labels name on ranks whose actions nothing tells are the layout all the same."""
    named = [replace(timeline(r, messages=[("either ?", 0, 5)]), named_stages=(s, 3 - s)) for r, s in enumerate((0, 1))]
    found = plan_of(*named)
    assert (found.world_size, found.pipelines, found.source) == (2, (((0,), (1,)),), "labels")


@pytest.mark.parametrize("stage", ["1", "?", None], ids=["named", "of no name", "no actions"])
def test_labels_that_nothing_joins_to_kernels_invent_no_rank(stage):
    """How many messages there are a forward is known only where labels tell which kernels are whose."""
    acts = [] if stage is None else [(f"{stage}F0", 200, 210), (f"{stage}B0", 210, 220)]
    rows = [("either ?", 30 * i, 30 * i + 5) for i in range(4)]
    last = replace(timeline(1, actions=acts, messages=rows), named_stages=(1,))
    found = plan_of(receiving(0, 0, each=2), last)
    assert (found.world_size, found.pipelines) == (2, (((0,), (1,)),))


def chunked(rank, kinds, gaps, *, numbers):
    """A rank that runs these actions, told by autograd, and as many messages of no direction before each and behind."""
    acts = [(f"?{kind}{n}", 100 * i + 50, 100 * i + 90) for i, (kind, n) in enumerate(zip(kinds, numbers, strict=True))]
    rows = [("either ?", 100 * i + j, 100 * i + j + 1) for i, count in enumerate(gaps) for j in range(count)]
    return replace(timeline(rank, actions=acts, messages=rows), reconstruction="autograd")


@pytest.mark.parametrize("first", [0, 1])
def test_messages_of_no_direction_tell_pipelines_with_chunks(first):
    """Two ranks whose order is that of two chunks each, with three messages a forward, are a pipeline of two.

    What is posted before a rank's first action is its input, so that this rank is not the first.
    """
    acts, numbers = "FFFFBBBB", (0, 1, 2, 3, 2, 3, 0, 1)
    ranks = {0: chunked(first, acts, (0, 2, 2, 1, 1, 1, 2, 2, 1), numbers=numbers)}
    ranks[1] = chunked(1 - first, acts, (1, 2, 2, 1, 1, 1, 2, 2, 0), numbers=numbers)
    found = plan_of(*sorted(ranks.values(), key=lambda t: t.rank))
    assert (found.pipelines, found.source) == ((((first,), (1 - first,)),), "message counts")


def test_all_to_alls_of_replicas_make_no_pipeline():
    """Three kernels a forward on ranks that run forward and backward in turn may be anything."""
    acts, numbers = "FBFBFBFB", (0, 0, 1, 1, 2, 2, 3, 3)
    ranks = [chunked(r, acts, (0, 2, 1, 2, 1, 2, 1, 2, 1), numbers=numbers) for r in (0, 1)]
    found = plan_of(*ranks)
    assert (found.pipelines, found.source) == ((), "no pipeline messages")


def test_message_peers():
    """Who sends to whom makes the pipelines, recorded or not."""
    found = plan_of(
        talking(0, "send 2", "recv 2"), talking(1, "send 3", "recv 3"),
        talking(2, "recv 0", "send 0"), talking(3, "recv 1", "send 1"),
    )  # fmt: skip
    assert found.pipelines == (((0,), (2,)), ((1,), (3,)))
    assert found.source == "message peers"


def test_peers_that_were_not_recorded_leave_an_assumption():
    """What lies behind a rank that nobody recorded is unknown: one pipeline over all ranks, and it is said."""
    found = plan_of(talking(1, "recv 0", "send 2"), world_of_four())
    assert found.pipelines == (((0,), (1,), (2,), (3,)),)
    assert [f.code for f in found.findings] == ["layout-assumed"]


def test_a_pipeline_against_the_order_of_ranks():
    """The first message of a stage is a receive from the stage before: rank 1 is the first stage here."""
    found = plan_of(talking(0, "recv 1", "send 1"), talking(1, "send 0", "recv 0"))
    assert found.pipelines == (((1,), (0,)),)


def world_of_four():
    """A rank that runs and talks to nobody."""
    return timeline(3, actions=[("?F0", 0, 10)], world=4)


def test_messages_without_peers_are_counted():
    """Two pipelines of two ranks: each rank is short of two messages a forward, four a pipeline."""
    first = {"actions": [("?F0", 0, 10), ("?B0", 40, 60)], "messages": [("send ?", 10, 12), ("recv ?", 11, 40)]}
    last = {"actions": [("?F0", 12, 20), ("?B0", 20, 38)], "messages": [("recv ?", 1, 12), ("send ?", 38, 40)]}
    apart = plan_of(timeline(0, **first), timeline(1, **first), timeline(2, **last), timeline(3, **last))
    assert apart.pipelines == (((0,), (2,)), ((1,), (3,)))
    beside = plan_of(timeline(0, **first), timeline(1, **last), timeline(2, **first), timeline(3, **last))
    assert beside.pipelines == (((0,), (1,)), ((2,), (3,)))


def test_which_end_is_first_needs_no_clock():
    """The rank that sends first is the first stage, however late its clock says that it began."""
    first = {"actions": [("?F0", 50, 60), ("?B0", 90, 99)], "messages": [("send ?", 60, 62), ("recv ?", 61, 90)]}
    last = {"actions": [("?F0", 12, 20), ("?B0", 20, 38)], "messages": [("recv ?", 1, 12), ("send ?", 38, 40)]}
    assert plan_of(timeline(0, **first), timeline(1, **last)).pipelines == (((0,), (1,)),)
    assert plan_of(timeline(1, **first), timeline(0, **last)).pipelines == (((1,), (0,)),)


def test_no_messages_no_pipeline():
    """Without messages, or with fused ones alone, nothing says that there is a pipeline."""
    for ranks in ([timeline(0), timeline(1)], [talking(0, "either ?"), talking(1, "either ?")]):
        found = plan_of(*ranks)
        assert (found.pipelines, found.pp, found.world_size) == ((), 1, 2)


def test_one_rank_alone():
    """A single rank is a job of one."""
    found = plan_of(timeline(0))
    assert (found.pipelines, found.world_size, degrees(found)) == ((), 1, (1, 1, 1, 1))


# What the user states.


def test_the_users_grid():
    """Tensor-parallel ranks are neighbours, stages far apart."""
    found = plan_of(*[timeline(r) for r in range(8)], pp=2, tp=2, dp=2)
    assert found.pipelines == (((0, 1), (4, 5)), ((2, 3), (6, 7)))
    assert (found.source, degrees(found)) == ("stated", (2, 2, 2, 1))


def test_the_replicas_follow_from_the_rest():
    """What the degrees leave of the world is data-parallel."""
    found = plan_of(*[timeline(r) for r in range(4)], pp=2)
    assert found.pipelines == (((0,), (2,)), ((1,), (3,)))
    assert degrees(found) == (2, 1, 2, 1)


def test_the_user_beats_the_trace():
    """Stated degrees hold against described groups, and the contradiction is a finding."""
    found = plan_of(*[timeline(r, groups=[group("1", "mesh_pp", 0, 1, 2, 3)]) for r in range(4)], pp=2)
    assert found.pipelines == (((0,), (2,)), ((1,), (3,)))
    (finding,) = found.findings
    assert (finding.code, finding.severity) == ("metadata-conflict", "warning")
    assert "--pp 2" in finding.message
    assert "4" in finding.message


def test_agreement_is_no_finding():
    """Stating what the trace says is no conflict."""
    groups = [group("1", "mesh_pp", 0, 1)]
    assert plan_of(timeline(0, groups=groups), timeline(1, groups=groups), pp=2, tp=1, dp=1).findings == ()


def test_the_user_may_deny_a_pipeline():
    """--pp 1 is an answer."""
    assert plan_of(talking(0, "send 1"), talking(1, "recv 0"), pp=1).pipelines == ()


@pytest.mark.parametrize(("stated", "used"), [({"tp": 2}, "tp 1"), ({"dp": 2}, "dp 1"), ({"tp": 4, "dp": 2}, "tp 1")])
def test_described_groups_beat_degrees_stated_without_pp(stated, used):
    """The contradiction is said, and what is used instead."""
    ranks = [timeline(r, world=4, groups=partners(r, tp=1, cp=2, pp=2)) for r in range(4)]
    found = plan_of(*ranks, **stated)
    assert degrees(found) == (2, 1, 1, 2)
    assert [finding.code for finding in found.findings] == ["metadata-conflict"] * len(stated)
    assert f"{used} is used" in found.findings[0].message


def test_pipelines_that_a_stated_degree_does_not_divide():
    """Four pipelines are no three tensor-parallel partners."""
    found = plan_of(*[staged(r, r // 4) for r in range(8)], tp=3)
    assert degrees(found) == (2, 1, 4, 1)
    assert "--tp 3 contradicts the traces, which say 1; tp 1 is used" in found.findings[0].message


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"dp": 4}, "--dp 4 contradicts the traces, which say 2; dp 2 is used"),
        ({"dp": 3}, "--dp 3 contradicts the traces, which say 2; dp 2 is used"),
        ({"dp": 1}, "--dp 1 contradicts the traces, which say 2; dp 2 is used"),
        (
            {"tp": 2, "dp": 2},
            "2 pipeline ranks x --tp 2 x --dp 2 is 8 ranks, but the traces have 4; tp 1 and dp 2 are used",
        ),
        (
            {"tp": 1, "dp": 1},
            "2 pipeline ranks x --tp 1 x --dp 1 is 2 ranks, but the traces have 4; tp 1 and dp 2 are used",
        ),
    ],
)
def test_stated_degrees_that_do_not_fit_the_ranks(stated, message):
    """Four ranks in pipelines of two are two replicas; of two statements that together deny it either may be wrong."""
    found = plan_of(*[staged(r, r // 2) for r in range(4)], **stated)
    assert degrees(found) == (2, 1, 2, 1)
    assert [(f.code, f.message) for f in found.findings] == [("metadata-conflict", message)]


@pytest.mark.parametrize("stated", [{"tp": 2}, {"dp": 2}, {"tp": 2, "dp": 1}, {"tp": 1, "dp": 2}])
def test_stated_degrees_that_fit_the_ranks(stated):
    """Two unnamed pipelines may be partners as well as replicas: what is stated is used, and no conflict."""
    found = plan_of(*[staged(r, r // 2) for r in range(4)], **stated)
    assert found.findings == ()
    assert all(getattr(found, name) == degree for name, degree in stated.items())


def test_a_stated_pipeline_leaves_context_parallel_ranks_their_place():
    """They share a position, and what the traces say of them is no contradiction."""
    found = plan_of(*[timeline(r, world=4, groups=partners(r, tp=1, cp=2, pp=2)) for r in range(4)], pp=2, tp=1, dp=1)
    assert found.pipelines == (((0, 1), (2, 3)),)
    assert (degrees(found), found.findings) == ((2, 1, 1, 2), ())


def test_stated_replicas_settle_who_are_partners():
    """Of four pipelines whose ranks share work with unknown ones, two replicas are of two partners each."""
    ranks = [timeline(r, actions=[(f"{r // 4}F0", 0, 9)], collectives=[("", 2, 3, f"{r // 4}F0")]) for r in range(8)]
    assert [f.code for f in plan_of(*ranks).findings] == ["replicas-assumed"]
    found = plan_of(*ranks, dp=2)
    assert found.pipelines == (((0, 1), (4, 5)), ((2, 3), (6, 7)))
    assert degrees(found) == (2, 2, 2, 1)


def test_more_ranks_than_were_given():
    """A grid may be larger than the files: ranks that were not recorded have their place."""
    found = plan_of(timeline(0), timeline(1), pp=4)
    assert found.pipelines == (((0,), (1,), (2,), (3,)),)


@pytest.mark.parametrize("options", [{"pp": 3}, {"pp": 2, "tp": 3}, {"pp": 8}, {"pp": 2, "dp": 4}])
def test_an_impossible_grid(options):
    """Degrees that do not multiply to the stated world are the user's error."""
    with pytest.raises(UsageError, match="4 ranks"):
        plan_of(timeline(0, world=4), **options)


def test_described_tensor_groups_join_labelled_pipelines():
    """Labels give the stages, a described tensor-parallel group which of their ranks share one."""
    groups = {r: [group("1", "mesh_tp", r - r % 2, r - r % 2 + 1)] for r in range(4)}
    found = plan({r: timeline(r, actions=[(f"{r // 2}F0", 0, 9)], groups=groups[r]) for r in range(4)}, Options())
    assert found.pipelines == (((0, 1), (2, 3)),)
    assert (found.pp, found.tp, found.dp) == (2, 2, 1)


def test_a_lone_first_stage_that_sends_is_a_pipeline():
    """One file of four, of stage 0: it sends, so there is a pipeline, and its depth is an assumption that is said."""
    found = plan({0: timeline(0, actions=[("0F0", 0, 9)], messages=[("send 1", 9, 10)], world=4)}, Options())
    assert found.pipelines
    assert found.pp > 1


def test_a_rank_where_the_pipeline_turns_back_tells_how_deep_it_is():
    """Stages 3 and 4 on one rank of four are the turn of eight; the two stages of a job of one rank are no turn."""
    turn = timeline(3, actions=[("3F0", 0, 10), ("4F0", 10, 20)], messages=[("recv ?", 0, 1)], world=4)
    assert plan_of(turn).pp == 4
    alone = timeline(0, actions=[("0F0", 0, 10), ("1F0", 10, 20)], world=1)
    assert plan_of(alone).pp == 1


def test_a_rank_that_was_not_recorded_stands_between_its_neighbours():
    """Whom the others receive from and send to places it; where two in a row lack, nothing does."""

    def inner(rank, before, behind):
        return timeline(
            rank, world=4, actions=[("?F0", 10, 20), ("?B0", 30, 40)],
            messages=[
                (f"recv {before}", 0, 10), (f"send {behind}", 20, 21),
                (f"recv {behind}", 21, 30), (f"send {before}", 40, 41),
            ],
        )  # fmt: skip

    first = timeline(
        0, world=4, actions=[("?F0", 0, 10), ("?B0", 50, 60)], messages=[("send 1", 10, 11), ("recv 1", 11, 50)]
    )
    last = timeline(
        3, world=4, actions=[("?F0", 30, 40), ("?B0", 40, 45)], messages=[("recv 2", 0, 30), ("send 2", 45, 46)]
    )
    assert plan_of(first, inner(2, 1, 3), last).pipelines == (((0,), (1,), (2,), (3,)),)
    assert plan_of(first, inner(1, 0, 2), inner(2, 1, 3)).pipelines == (((0,), (1,), (2,), (3,)),)
    assert [f.code for f in plan_of(first, last).findings] == ["layout-assumed"]


def labelled(rank, stage, *messages, **more):
    """A rank whose one forward and backward name their stage."""
    rows = [(text, 10 * i, 10 * i + 5) for i, text in enumerate(messages)]
    return timeline(rank, actions=[(f"{stage}F0", 100, 110), (f"{stage}B0", 120, 130)], messages=rows, **more)


FIRST, INNER = ("send 1", "recv 1"), ("recv 0", "send 2", "recv 2", "send 0")


def test_a_stage_behind_the_deepest_one_recorded():
    """Where that one sends on and nothing states the number of ranks, there is one more than its label asks for."""
    found = plan_of(labelled(0, 0, *FIRST), labelled(1, 1, *INNER))
    assert (found.world_size, found.pp) == (3, 3)
    found = plan_of(labelled(0, 0, *FIRST), labelled(1, 1, "recv 0", "send 0"))
    assert (found.world_size, found.pp) == (2, 2)


def test_a_stage_behind_the_deepest_one_whose_messages_outnumber_its_forwards():
    """A recording that begins in the middle of a step holds messages of forwards whose label it does not."""
    found = plan_of(labelled(0, 0, *FIRST), labelled(1, 1, *INNER, *INNER))
    assert (found.world_size, found.pp) == (3, 3)


def test_a_stated_number_of_ranks_stands():
    """Whatever a stage seems to ask for."""
    found = plan_of(labelled(0, 0, *FIRST, world=4), labelled(1, 1, *INNER, world=4))
    assert found.world_size == 4


def test_chunks_that_fold_back_ask_for_ranks():
    """Stages 1 and 6 on one rank are those of the second of four."""
    both = [("1F0", 0, 10), ("6F0", 20, 30), ("6B0", 40, 50), ("1B0", 60, 70)]
    found = plan_of(timeline(1, actions=both, messages=[("recv 0", 0, 1), ("send 2", 10, 11)]))
    assert (found.world_size, found.pp) == (4, 4)


def test_a_rank_stands_where_its_partner_does():
    """The pipeline of rank 8 was not recorded; its tensor-parallel partner 9 is in one that was."""
    groups = {
        5: [group("1", "mesh_pp", 1, 5, 9), group("2", "mesh_tp", 4, 5)],
        8: [group("2", "mesh_tp", 8, 9)],
        9: [group("1", "mesh_pp", 1, 5, 9), group("2", "mesh_tp", 8, 9)],
    }
    found = plan_of(*[timeline(rank, world=12, groups=mine) for rank, mine in groups.items()])
    assert found.pipelines == (((1,), (4, 5), (8, 9)),)


def test_actions_that_somebody_named_are_those_of_a_pipeline():
    """Without stages and messages, the ranks of a table are one line, and a warning says that this is assumed."""
    table = [replace(timeline(rank, actions=[("?F0", 0, 1)]), reconstruction="table") for rank in range(3)]
    found = plan_of(*table)
    assert found.pipelines == (((0,), (1,), (2,)),)
    assert [f.code for f in found.findings] == ["layout-assumed"]
    assert plan_of(table[0]).pipelines == ()
