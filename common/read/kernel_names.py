"""Kernel name → what it is, as far as the name tells and never more.

How to read this file: `decode` brings the name to one spelling (`spelling`) and asks the rules
(`kernel_rules`) in turn; `brief` and `describe` put the answer in words (`families`). What a kernel
is for is asked in `kinds`.

    uv run -m common.kernel_names ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn
"""

import functools
from dataclasses import dataclass

from .families import FAMILIES
from .kernel_rules import RULES
from .spelling import normalise


@dataclass(frozen=True, slots=True)
class KernelName:
    """What one kernel name says. None: the name does not say."""

    name: str
    family: str  # 'other' when no rule knows the name
    tensor_cores: bool | None = None  # False: CUDA cores
    direction: str | None = None  # 'forward', 'backward', 'backward_data', 'backward_weight'…
    dtype_in: str | None = None  # 'bf16', 'fp16', 'fp32'…: of the elements read (a fill: written)
    dtype_out: str | None = None
    dtype_acc: str | None = None
    tile: tuple[int, ...] | None = None  # of a block: M, N[, K]; attention: queries, keys[, head]
    arch_token: str | None = None  # 'sm80', 'ampere', 'gfx942': the build target
    head_dim: int | None = None  # FlashAttention-2 pads it: 40 reads 64
    causal: bool | None = None
    warps: int | None = None  # of one block
    op: str | None = None  # 'masked_fill', 'softmax', 'mul', 'DtoD', 'AllReduce'…
    stages: int | None = None  # depth of the shared-memory pipeline
    max_head_dim: int | None = None  # an upper bound, where the name holds no head_dim
    note: str | None = None  # what else the name says, in words

    @property
    def cut(self) -> bool:
        """Whether a table cut the name: what follows is not visible."""
        return self.name.rstrip().endswith(("...", "…"))


@functools.lru_cache(maxsize=65536)
def decode(name: str) -> KernelName:
    """What `name` says. Any string will do: a name that no rule knows has family "other"."""
    text = normalise(name)
    for rule in RULES:
        if match := rule.match(text):
            return KernelName(name, rule.family, **rule.read(match))
    return KernelName(name, "other")


_SAY_DIRECTION = {
    "backward_data": "backward (data gradient)",
    "backward_weight": "backward (weight gradient)",
    "backward op among the fused ops": "(a backward op among them)",
}
_MOVES_DATA = ("copy", "memset", "communication")


def brief(kernel: KernelName) -> str:
    """The kernel in at most 24 characters, for a table column."""
    family = FAMILIES[kernel.family]
    words = family.words
    if kernel.op and family.op_in_words:
        words = f"{words.split()[0]} {kernel.op}"
    if family.built_for and kernel.arch_token:
        words += f", {kernel.arch_token}"
    return words if len(words) <= 24 else words[:23] + "…"


def describe(kernel: KernelName) -> str:
    """The kernel in words for people, in the order a reader asks: what, on what, how."""
    if kernel.family == "other":
        return "other: a name that no rule knows"
    what = [kernel.family]
    if kernel.op and kernel.op not in kernel.family.split():
        what.append(kernel.op)
    if kernel.direction:
        what.append(_SAY_DIRECTION.get(kernel.direction, kernel.direction))
    words = [" ".join(what)]
    if kernel.dtype_in and kernel.dtype_out and kernel.dtype_in != kernel.dtype_out:
        words.append(f"{kernel.dtype_in} → {kernel.dtype_out}")
    elif kernel.dtype_in or kernel.dtype_out:
        words.append(kernel.dtype_in or f"→ {kernel.dtype_out}")
    if kernel.dtype_acc == "fp16":
        words.append("accumulates in fp16")
    if kernel.head_dim:
        words.append(f"head dim {kernel.head_dim}")
    elif kernel.max_head_dim:
        words.append(f"head dim up to {kernel.max_head_dim}")
    if kernel.causal is not None:
        words.append("causal" if kernel.causal else "not causal")
    if kernel.tile:
        words.append("tile " + "×".join(map(str, kernel.tile)))
    if kernel.stages:
        words.append(f"{kernel.stages} stage{'s' * (kernel.stages > 1)}")
    if kernel.warps:
        words.append(f"{kernel.warps} warp{'s' * (kernel.warps > 1)}")
    family = FAMILIES[kernel.family]
    if kernel.tensor_cores is not None and family.kind not in _MOVES_DATA:
        words.append(family.matrix if kernel.tensor_cores else family.plain)
    elif family.kind not in _MOVES_DATA:
        words.append(f"{family.matrix} or not: not in the name")
    if kernel.arch_token:
        words.append(f"built for {kernel.arch_token}")
    if kernel.note:
        words.append(kernel.note)
    if kernel.cut:
        words.append("the name is cut: what follows is not visible")
    return ", ".join(words)
