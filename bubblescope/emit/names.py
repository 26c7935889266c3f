"""The names that operators, kernels and labels carry."""

from __future__ import annotations

from typing import NamedTuple

from bubblescope.emit.job import Job
from bubblescope.emit.pieces import Piece
from bubblescope.emit.plan import Block
from bubblescope.model.actions import WHOLE, Action, Kind

__all__ = [
    "LAYER",
    "P2P_KERNEL",
    "REDUCE",
    "STEP_KERNEL",
    "ZERO",
    "Part",
    "Reducing",
    "Zeroing",
    "attends",
    "block_label",
    "kernel_name",
    "layer_label",
    "message_label",
    "step_label",
]

P2P_KERNEL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
STEP_KERNEL = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "FusedOptimizerTensorListMetadata<3>, at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, "
    "(at::native::ADAM_MODE)1, false>>(at::native::(anonymous namespace)::FusedOptimizerTensorListMetadata<3>)"
)
_GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_{}_n_tilesize{}_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
_POINTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}CUDAKernelImpl(at::TensorIteratorBase&)>"


class Reducing(NamedTuple):
    """A collective that sums: torch's operator and range, the operation's name in arguments, and NCCL's function."""

    op: str
    note: str
    collective: str
    call: str
    kernel: str


_REDUCES = "ncclDevKernel_{}_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
REDUCE = {
    "all-reduce": Reducing("allreduce_", "nccl:all_reduce", "allreduce", "ncclAllReduce", _REDUCES.format("AllReduce")),
    "reduce-scatter": Reducing(
        "_reduce_scatter_base_",
        "nccl:_reduce_scatter_base",
        "_reduce_scatter_base",
        "ncclReduceScatter",
        _REDUCES.format("ReduceScatter"),
    ),
}


class Zeroing(NamedTuple):
    """What runs before a step's first action: an operator, the one inside it, their kernel, and how often."""

    outer: str
    inner: str
    kernel: str
    times: int


_FOREACH = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "TensorListMetadata<1>, at::native::(anonymous namespace)::ZeroFunctor<float, 1, 1, 0>>"
    "(at::native::(anonymous namespace)::TensorListMetadata<1>)"
)
_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, {}ul>>(int)"
ZERO = {
    "fill": Zeroing("aten::zero_", "aten::fill_", _ELEMENTWISE.format("FillFunctor<float>", 1), 3),
    "foreach": Zeroing("aten::_foreach_zero_", "aten::_foreach_zero_", _FOREACH, 2),
    "cast": Zeroing(
        "aten::to", "aten::copy_", _ELEMENTWISE.format("bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)", 2), 3
    ),
}


class Part(NamedTuple):
    """One part of a layer: its operators, its autograd node, and its kernels."""

    outer: str
    inner: str
    node: str
    forward: str
    backward: str
    weights: bool = False


LAYER = (
    Part(
        "aten::linear",
        "aten::addmm",
        "AddmmBackward0",
        _GEMM.format("t", "128x128x64"),
        _GEMM.format("n", "128x128x64"),
        weights=True,
    ),
    Part(
        "aten::_scaled_dot_product_flash_attention",
        "aten::_flash_attention_forward",
        "ScaledDotProductFlashAttentionBackward0",
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>(Flash_fwd_params)",
        "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128>>(int)",
    ),
    Part(
        "aten::matmul",
        "aten::mm",
        "MmBackward0",
        _GEMM.format("t", "256x128x64"),
        _GEMM.format("n", "256x128x64"),
        weights=True,
    ),
    Part("aten::gelu", "aten::gelu", "GeluBackward0", _POINTWISE.format("Gelu"), _POINTWISE.format("GeluBackward")),
)


_WEIGHT_GRADIENTS = (
    _GEMM.format("nt", "64x128x64") + "_wgrad",
    "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::native::func_wrapper_t>>",
)
_BLIND = (
    (_GEMM.format("tn", "128x128x64"), "void attention::tiled<Traits<128, 64>, Sweep>(Params)"),
    (_GEMM.format("nn", "128x128x64"), "void attention::tiled<Traits<64, 128>, Columns>(Params)"),
    (_GEMM.format("nt", "64x128x64"), "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float>>"),
)


def kernel_name(job: Job, layer: Part, kind: Kind) -> str:
    """The kernel of a part of a layer in an action of that kind."""
    if job.kernel_names == "blind":
        return _BLIND[(0, 1, 1, 2)[kind]][0 if layer.weights else 1]
    if job.kernel_names == "split" and kind == Kind.W:
        return _WEIGHT_GRADIENTS[0 if layer.weights else 1]
    return layer.forward if kind == Kind.F else layer.backward


def block_label(block: Block) -> str:
    """The range of a block: one action, or a forward and a backward in one range, as torch writes them."""
    inner = ";".join(map(str, block))
    return f"PP:{inner}" if len(block) == 1 else f"PP:({inner})OVERLAP_F_B"


def attends(part: int) -> bool:
    """Whether that part of a stage's layers is an attention."""
    return LAYER[part % len(LAYER)].outer == "aten::_scaled_dot_product_flash_attention"


def layer_label(job: Job, action: Action, piece: Piece) -> str:
    """The range of a layer; an all-reduce is of the layer before it."""
    return f"layers.{job.first_layer(action.stage) + piece.part - piece.comm}"


def message_label(verb: str, action: Action) -> str:
    """The range of a send or receive; every gradient is a B, also where its backward is split."""
    kind, part = "F" if action.kind == Kind.F else "B", "" if action.slice == WHOLE else f".{action.slice}"
    return f"PP:{action.stage}{verb.upper()}_{kind}{action.microbatch}{part}"


def step_label(action: Action) -> str:
    """The range that GPipe opens around an action and its messages."""
    return f"{'Forward' if action.kind == Kind.F else 'Backward'} {action.microbatch}"
