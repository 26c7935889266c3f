"""What a communicator is for, from the words that frameworks give it."""

from __future__ import annotations

import pytest

from bubblescope.model.groups import purpose

WORDS = {
    "pp": ["PIPELINE_MODEL_PARALLEL_GROUP", "PIPELINE_MODEL_PARALLEL_GROUP_GLOO", "mesh_pp", "pp", "PP"],
    "tp": ["TENSOR_MODEL_PARALLEL_GROUP", "TENSOR_MODEL_PARALLEL_GROUP_GLOO", "mesh_tp", "tp"],
    "dp": [
        "DATA_PARALLEL_GROUP",
        "DATA_PARALLEL_GROUP_GLOO",
        "DATA_PARALLEL_GROUP_WITH_CP",
        "DATA_PARALLEL_GROUP_WITH_CP_GLOO",
        "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
        "INTER_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
        "mesh_dp",
        "mesh_dp_shard",
        "mesh_dp_replicate",
        "mesh_fsdp",
        "dp",
        "fsdp",
    ],
    "cp": ["CONTEXT_PARALLEL_GROUP", "HIERARCHICAL_CONTEXT_PARALLEL_GROUPS", "mesh_cp", "mesh_sp", "cp"],
    "ep": ["EXPERT_MODEL_PARALLEL_GROUP", "EXPERT_MODEL_PARALLEL_GROUP_GLOO", "mesh_ep", "ep"],
    None: [
        "",
        "default_pg",
        "undefined",
        "MODEL_PARALLEL_GROUP",
        "TENSOR_AND_DATA_PARALLEL_GROUP",
        "TENSOR_AND_CONTEXT_PARALLEL_GROUP",
        "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP",
        "EMBEDDING_GROUP",
        "mesh_pp_tp",
        "app",
        "pp2",
        "a dp group",
    ],
}


@pytest.mark.parametrize(("words", "serves"), [(words, serves) for serves, all_ in WORDS.items() for words in all_])
def test_purpose(words, serves):
    """Known words, in any case and only as a whole, tell the purpose; two purposes or none tell nothing."""
    assert purpose(words) == purpose(words.lower()) == serves
