"""Kernel families: how each is called, what its kernels do, which cores do it.

How to read this file: `FAMILIES` is the one table that ties a family, the name that a rule of
`kernel_rules` gives, to words for people and to a kind of work. Nobody else looks into the text of
a family's name. A family of many trades (a library's other kernels) has no kind here: then the
function's name tells, or the CPU op that launched it; `kinds` asks them in turn.

    words       what a table column has room for: at most 24 characters
    kind        what every kernel of the family does; None: the name or the op decides
    cores       True Tensor Cores, False CUDA cores, None: the name tells, or nobody
    of_op       its names say how, the op that launched it says what: the op is asked first
    matrix      what the vendor calls its matrix units
    op_in_words its op belongs in a column, behind the first word: `Memcpy DtoD`, `ATen mul`
    built_for   so does the GPU it was built for: one package, other kernels for other GPUs

What a family's cores are is known, not guessed: libraries of sorts and elementwise kernels have no
matrix instruction, and a GEMM's name mostly spells its own. Where nobody says so it is None.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    words: str
    kind: str | None = None
    cores: bool | None = None
    of_op: bool = False
    matrix: str = "Tensor Cores"
    op_in_words: bool = False
    built_for: bool = False

    @property
    def plain(self) -> str:
        """The cores that are no matrix units."""
        return "CUDA cores" if self.matrix == "Tensor Cores" else f"no {self.matrix}"


_MATRIX = "Matrix Cores"  # of AMD


def _aten(words: str, kind: str | None = None, **more) -> Family:
    return Family(words, kind, cores=False, of_op=True, **more)


# fmt: off
FAMILIES: dict[str, Family] = {
    # Copies and communication
    "Memcpy": Family("Memcpy", "copy", cores=False, of_op=True, op_in_words=True),
    "Memset": Family("Memset", "memset", cores=False),
    "NCCL": Family("NCCL", "communication", cores=False, op_in_words=True),
    "DeepEP": Family("DeepEP", "communication", op_in_words=True),
    "symmetric memory": Family("symmetric memory", "communication"),
    "custom all-reduce": Family("custom all-reduce", "communication"),
    "Userbuffers": Family("Userbuffers", "communication"),
    "NVSHMEM": Family("NVSHMEM", "communication"),
    "MORI": Family("MORI", "communication", op_in_words=True),

    # Attention
    "FlashAttention-2": Family("FlashAttention-2", "attention"),
    "FlashAttention-3": Family("FlashAttention-3", "attention"),
    "FlashAttention-4 / CuTe": Family("flash-attn-4", "attention", built_for=True),
    "FlashMLA": Family("FlashMLA", "attention"),
    "Triton attention": Family("Triton attention", "attention"),
    "Gluon attention": Family("Gluon attention", "attention"),
    "memory-efficient attention (fmha_cutlass)": Family("fmha_cutlass", "attention"),
    "CUTLASS attention": Family("CUTLASS attention", "attention"),
    "cuDNN SDPA (generated)": Family("cuDNN SDPA", "attention"),
    "TensorRT(-LLM) fmha_v2": Family("TensorRT fmha_v2", "attention"),
    "TensorRT-LLM gen FMHA (via FlashInfer)": Family("TensorRT-LLM FMHA", "attention"),
    "FlashInfer": Family("FlashInfer", "attention"),
    "paged attention": Family("paged attention", "attention"),
    "attention on AMD (CK/AITER/AOTriton)":
        Family("attention (AMD)", "attention", matrix=_MATRIX),

    # GEMM on NVIDIA GPUs
    "nvjet": Family("nvjet", "matmul", cores=True),
    "CUTLASS GEMM (in cuBLAS)": Family("CUTLASS GEMM", "matmul"),
    "CUTLASS 3.x GEMM (in cuBLAS)": Family("CUTLASS 3.x GEMM", "matmul"),
    "CUTLASS 2.x GEMM (templates)": Family("CUTLASS 2.x GEMM", "matmul"),
    "CUTLASS 3.x GEMM (templates)": Family("CUTLASS 3.x GEMM", "matmul"),
    "cuBLAS GEMM (xmma)": Family("cuBLAS GEMM", "matmul"),
    "cuBLAS GEMM (hand-written SASS)": Family("cuBLAS GEMM", "matmul"),
    "split-K reduce": Family("split-K reduce", "matmul", cores=False),
    "cuBLAS GEMV": Family("cuBLAS GEMV", "matmul", cores=False),
    "cuBLAS other (small-N GEMM, dot, epilogue, trsm)": Family("cuBLAS other", cores=False),
    "DeepGEMM": Family("DeepGEMM", "matmul", cores=True),
    "TensorRT-LLM gen batched GEMM (MoE, via FlashInfer)":
        Family("TensorRT-LLM GEMM", "matmul", cores=True),
    "Marlin": Family("Marlin", "matmul"),

    # Convolution
    "cuDNN conv (xmma)": Family("cuDNN conv", "conv"),
    "cuDNN conv (CUTLASS)": Family("cuDNN conv", "conv"),
    "cuDNN conv (hand-written SASS)": Family("cuDNN conv", "conv"),
    "cuDNN other (conv helpers, batch norm, winograd, fft)": Family("cuDNN other", cores=False),
    "cuDNN RNN": Family("cuDNN RNN", "rnn"),
    "cuFFT": Family("cuFFT", "fft"),

    # Triton. A compiled kernel's kind is read from the ops that it fuses.
    "Triton (inductor)": Family("Triton (compiled)"),
    "Triton (hand-written)": Family("Triton (hand-written)"),

    # ATen
    "ATen vectorized elementwise": _aten("ATen elementwise", op_in_words=True),
    "ATen unrolled elementwise": _aten("ATen elementwise", op_in_words=True),
    "ATen elementwise (non-contiguous)": _aten("ATen elementwise", op_in_words=True),
    "ATen softmax": _aten("ATen softmax", "softmax"),
    "ATen reduce": _aten("ATen reduce", "reduce"),
    "ATen triu/tril": _aten("ATen triu/tril", "triu"),
    "ATen cat": _aten("ATen cat", "cat"),
    "ATen index / gather / scatter": _aten("ATen index", "index"),
    "ATen normalization": _aten("ATen normalization", "normalization"),
    "optimizer / foreach (multi_tensor_apply)": _aten("foreach / optimizer", "optimizer"),
    "ATen other": _aten("ATen other", op_in_words=True),

    # Other libraries
    "CUB / rocPRIM (sort, scan, reduce)": _aten("CUB / rocPRIM"),
    "vLLM / SGLang / AITER custom op": Family("vLLM / SGLang"),
    "FlashInfer (other)": Family("FlashInfer"),
    "TensorRT-LLM (other)": Family("TensorRT-LLM"),
    "Transformer Engine": Family("Transformer Engine"),
    "apex": Family("apex", "normalization"),
    "bitsandbytes": Family("bitsandbytes"),
    "Mamba": Family("Mamba"),
    "FBGEMM embedding / recommender": Family("FBGEMM", cores=False),
    "CuTe DSL kernel (not attention)": Family("CuTe DSL kernel"),
    "custom kernel": Family("custom kernel", op_in_words=True),

    # AMD
    "rocBLAS/hipBLASLt (Tensile)": Family("hipBLASLt (Tensile)", "matmul", matrix=_MATRIX),
    "rocBLAS (other)": Family("rocBLAS", matrix=_MATRIX),
    "MIOpen conv (igemm asm)": Family("MIOpen conv", "conv", cores=True, matrix=_MATRIX),
    "MIOpen other": Family("MIOpen", cores=False, matrix=_MATRIX),
    "Composable Kernel (CK)": Family("Composable Kernel", matrix=_MATRIX),

    "other": Family("other"),
}
# fmt: on
