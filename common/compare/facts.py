"""Figures that others published: what GPUs can do at most, and the post's own measurements."""

from dataclasses import dataclass

# Peaks in TFLOP/s, dense: without the doubling for structured sparsity. bf16, fp16, tf32, fp8 and
# int8 on Tensor Cores, fp32 on CUDA cores. Source: NVIDIA's data sheets of each product (which give
# most Tensor Core figures with sparsity: halved here). By the name that CUDA tells; a part of a GPU
# (MIG) has another name, and what is not here is unknown.
_HOPPER_SXM: dict[str, float] = {
    "bf16": 989, "fp16": 989, "fp32": 67, "tf32": 494, "fp8": 1979, "int8": 1979,
}  # fmt: skip
_A100 = {"bf16": 312, "fp16": 312, "fp32": 19.5, "tf32": 156, "int8": 624}
PEAK_TFLOPS: dict[str, dict[str, float]] = {
    "NVIDIA H200": _HOPPER_SXM,
    "NVIDIA H100 80GB HBM3": _HOPPER_SXM,
    "NVIDIA H100 PCIe": {"bf16": 756, "fp16": 756, "fp32": 51, "tf32": 378},
    "NVIDIA A100-SXM4-80GB": _A100,
    "NVIDIA A100-SXM4-40GB": _A100,
    "NVIDIA A100 80GB PCIe": _A100,
    "NVIDIA A100-PCIE-40GB": _A100,
    "NVIDIA L40S": {"bf16": 362, "fp16": 362, "fp32": 91.6},
}

# What the GPU's memory moves at most, TB/s (10^12 bytes a second), and what its L2 cache holds,
# bytes. Sources: the same data sheets; for L2 NVIDIA's white papers of the architectures (H100: 50
# MB; A100: 40 MB; Ada: 96 MB).
PEAK_TBS: dict[str, float] = {
    "NVIDIA H200": 4.8,
    "NVIDIA H100 80GB HBM3": 3.35,
    "NVIDIA H100 PCIe": 2.0,
    "NVIDIA A100-SXM4-80GB": 2.039,
    "NVIDIA A100-SXM4-40GB": 1.555,
    "NVIDIA A100 80GB PCIe": 1.935,
    "NVIDIA A100-PCIE-40GB": 1.555,
    "NVIDIA L40S": 0.864,
}
_MB = 1 << 20
L2_BYTES: dict[str, int] = {
    "NVIDIA H200": 50 * _MB,
    "NVIDIA H100 80GB HBM3": 50 * _MB,
    "NVIDIA H100 PCIe": 50 * _MB,
    "NVIDIA A100-SXM4-80GB": 40 * _MB,
    "NVIDIA A100-SXM4-40GB": 40 * _MB,
    "NVIDIA A100 80GB PCIe": 40 * _MB,
    "NVIDIA A100-PCIE-40GB": 40 * _MB,
    "NVIDIA L40S": 96 * _MB,
}


@dataclass(frozen=True)
class Published:
    """What the post says of one variant; None where it says nothing."""

    gpu_events: int  # kernels a forward as the post counts: with copies, without memsets
    gpu_us: float | None
    cpu_us: float | None


POST_TITLE = "Profiling in PyTorch, part 3: attention"
POST_GPU = "NVIDIA A100-SXM4-80GB"
POST_SHAPE = (8, 16, 1024, 64)
POST_CONDITIONS = (POST_SHAPE, "bf16", "eager")
# Source: the post "Profiling in PyTorch, part 3: attention"; by (script, variant).
POST = {
    ("04_a_naive_attention", ""): Published(6, None, None),
    ("04_b_inplace_ops_attention", ""): Published(5, 1955, None),
    ("04_c_sdpa_attention", "math"): Published(20, 7239, None),
    ("04_c_sdpa_attention", "efficient"): Published(1, 277.9, 117),
    ("04_c_sdpa_attention", "flash"): Published(1, 146.8, 138),
    ("04_c_sdpa_attention", "cudnn"): Published(1, 186.3, 214),
}
