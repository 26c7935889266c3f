"""What GPUs can do at most: dense bf16 FLOPs a second, by the name that the driver gives them."""

from __future__ import annotations

import re

__all__ = ["peak_flops"]

# Teraflops of bf16 on the matrix units with fp32 accumulation, without sparsity, at the boost clock: where a data sheet
# gives the figure with sparsity only, half of it. Names are whole ones: a variant that is not listed, or a slice of a
# GPU (`... MIG 1g.10gb`), has other figures. GPUs without bf16 (V100, T4) have none.
_PEAKS: tuple[tuple[str, float], ...] = (
    # NVIDIA A100 and A800 Tensor Core GPU data sheets; A800 differs in NVLink only.
    (r"A[18]00-SXM4?-[48]0GB|A[18]00-PCIE-[48]0GB|A[18]00 80GB PCIe", 312.0),
    # NVIDIA H100 Tensor Core GPU data sheet: SXM 1979, PCIe 1513, NVL 1671 with sparsity; 989.4 in the whitepaper.
    (r"H100 80GB HBM3|H800", 989.4),
    (r"H100 PCIe|H800 PCIe", 756.5),
    (r"H100 NVL", 835.5),
    # NVIDIA H200 Tensor Core GPU data sheet: SXM 1979, NVL 1671 with sparsity. H20 has the memory, not the units.
    (r"H200", 989.4),
    (r"H200 NVL", 835.5),
    (r"H20", 148.0),
    # NVIDIA GH200 Grace Hopper Superchip data sheet: 1979 with sparsity.
    (r"GH200 (120|144G|480)(GB)?( HBM3e)?", 989.4),
    # NVIDIA HGX B200 and GB200 NVL72 data sheets: 4.5 and 5 petaflops a GPU with sparsity.
    (r"B200", 2250.0),
    (r"GB200", 2500.0),
    # NVIDIA's data sheets of each; that of L4 gives 242 with sparsity.
    (r"A10", 125.0),
    (r"A30", 165.0),
    (r"A40", 149.7),
    (r"L4", 121.0),
    (r"L40", 181.05),
    (r"L40S", 362.05),
    # NVIDIA Ampere GA102 and Ada GPU architecture whitepapers, appendices.
    (r"RTX A6000", 154.8),
    (r"GeForce RTX 3090", 71.0),
    (r"GeForce RTX 4090", 165.2),
    # AMD Instinct data sheets; a MI250X shows its two dies as two devices, each with half of 383.
    (r"AMD Instinct MI210", 181.0),
    (r"AMD Instinct MI250X", 191.5),
    (r"AMD Instinct MI300X|AMD Instinct MI325X", 1307.4),
)


def peak_flops(device: str) -> float | None:
    """Dense bf16 FLOPs a second of a GPU of that name; None where the table does not have it."""
    name = re.sub(r"\s+", " ", device.strip()).removeprefix("NVIDIA ")
    return next((tera * 1e12 for pattern, tera in _PEAKS if re.fullmatch(pattern, name)), None)
