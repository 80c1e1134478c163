"""04_d · Kernels from outside PyTorch: the ways in, and one kernel to read.

    triton         a FlashAttention forward written below, in Triton: nothing to download
    gluon          the same arithmetic one level lower, for Hopper: common/kernels/hopper.py
    flex           FlexAttention: torch.compile writes the kernel, from a mask given in Python
    hub            a compiled FlashAttention-2 from the Hub, through the `kernels` library, at a
                   commit; hub:REPO@COMMIT is another one
    fa4            the package flash-attn-4 from PyPI, on a Hopper GPU with the kernel it has for
                   Hopper: uv run --extra fa4 04_d_kernels_attention.py …

Guess before you look: one kernel each. Under which name, and through which launch call? How many
warps does it keep on an SM? Which way of launching costs the CPU most is not asked of a recording,
for recording costs CPU time too: uv run -m common.experiment cost.

Without a GPU the Triton kernel runs in Triton's interpreter, in Python: right, slow, and with
nothing of it in the trace.
"""

import common  # noqa: F401 — first: Ctrl-C while torch is imported is no traceback

# isort: split
import logging
import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch

from common.cli import UserError, option
from common.compare import claims
from common.compare.claims import Claim, Expectation
from common.lesson import Lesson, Subject, main
from common.lesson import Options as CommonOptions
from common.record.workload import Attention, Workload

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when a kernel is declared

import triton
import triton.language as tl
from triton.testing import do_bench

LOG2_E = math.log2(math.e)
LOWEST = tl.constexpr(-3e38)
# On shorter rows, asking at the end whether a sum overflowed takes what the loop has saved.
FIXED_FROM = 2048
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


@triton.jit
def attend(
    acc, row_max, row_sum, q, k_ptr, v_ptr, stride_k, stride_v, seq, rows, start, stop,
    SCALE: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr, ONLINE: tl.constexpr, KEEP: tl.constexpr, RARE: tl.constexpr = False,
):  # fmt: skip
    """Fold the keys start … stop into (acc, row_max, row_sum), a tile at a time; store no score.

    acc holds the weighted sum of values so far, in units of exp2(row_max). ONLINE: when a tile
    raises a row's maximum, what is there shrinks. Otherwise row_max stays, whatever the tile holds.
    """
    columns = tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_D)
    # Scale, then subtract, is one instruction. But of huge scores, scaled and rounded, the largest
    # less itself is not 0: a RARE loop, which is for such rows too, subtracts first.
    BEFORE: tl.constexpr = 1.0 if RARE else SCALE
    AFTER: tl.constexpr = SCALE if RARE else 1.0
    # A RARE loop is to leave the others their registers, and is slow: nothing is fetched ahead.
    for n in tl.range(start, stop, BLOCK_N, num_stages=1 if RARE else None, disable_licm=RARE):
        n = tl.multiple_of(n, BLOCK_N)
        # num_stages tiles of K and V are in flight: the shared memory that the trace shows.
        k_ptrs = k_ptr + (n + columns)[None, :] * stride_k + dims[:, None]
        v_ptrs = v_ptr + (n + columns)[:, None] * stride_v + dims[None, :]
        # Only diagonal tiles can pass the end; only head dims that are no power of two the side.
        if MASKED:
            k_mask = ((n + columns) < seq)[None, :] & (dims < HEAD_DIM)[:, None]
            v_mask = ((n + columns) < seq)[:, None] & (dims < HEAD_DIM)[None, :]
            k = tl.load(k_ptrs, mask=k_mask, other=0.0)
            v = tl.load(v_ptrs, mask=v_mask, other=0.0)
        elif HEAD_DIM < BLOCK_D:
            k = tl.load(k_ptrs, mask=(dims < HEAD_DIM)[:, None], other=0.0)
            v = tl.load(v_ptrs, mask=(dims < HEAD_DIM)[None, :], other=0.0)
        else:
            k = tl.load(k_ptrs)
            v = tl.load(v_ptrs)
        scores = tl.dot(q, k)  # Tensor Cores; BLOCK_M × BLOCK_N floats, all of them in registers
        if MASKED:
            scores = tl.where(rows[:, None] >= (n + columns)[None, :], scores, float("-inf"))
        if ONLINE:
            new_max = tl.maximum(row_max, tl.max(scores, 1) * BEFORE)
            # Nothing but -inf so far: with any number as the maximum, weights are 0 and not NaN.
            new_max = tl.where(new_max == float("-inf"), LOWEST, new_max)
            shrink = tl.math.exp2((row_max - new_max) * AFTER)
            acc, row_sum, row_max = acc * shrink[:, None], row_sum * shrink, new_max
        # exp(x · scale) = exp2(x · scale · log2 e): the GPU has an instruction for exp2 alone.
        weights = tl.math.exp2((scores * BEFORE - row_max[:, None]) * AFTER)
        if not ONLINE:
            # No weight is 1 for sure now. What v's type cannot hold is cut off before the sum as
            # well, so that a row's largest weight is equally rounded above and below the line.
            bits = weights.to(tl.int32, bitcast=True)
            weights = (bits & KEEP).to(tl.float32, bitcast=True)
        row_sum += tl.sum(weights, 1)
        acc = tl.dot(weights.to(v.dtype), v, acc)
    return acc, row_max, row_sum


@triton.jit
def flash_attention_triton(
    q_ptr, k_ptr, v_ptr, out_ptr,
    stride_qb, stride_qh, stride_qs, stride_kb, stride_kh, stride_ks,
    stride_vb, stride_vh, stride_vs, stride_ob, stride_oh, stride_os,
    sequences, heads, group, seq, SCALE: tl.constexpr,
    FIXED: tl.constexpr, KEEP: tl.constexpr, LIMIT: tl.constexpr,
    HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """One program: BLOCK_M rows of one head, and only the keys that those rows may see.

    Whatever is subtracted from all scores of a row cancels in softmax: the maximum only keeps the
    numbers small. So the tiles on the diagonal give each row a maximum, and if FIXED, the loop over
    all the others, which takes nearly all the time, subtracts that one and looks for no larger.
    Where a sum overflowed, because later scores were far larger, the rows are done again online.
    """
    # Programs start along the first axis of the grid (all sequences) before the second (row tiles).
    # Counting the tiles down starts every head's longest rows first; short ones fill the gaps.
    batch, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    first = (tl.num_programs(1) - 1 - tl.program_id(1)) * BLOCK_M
    stop = min(first + BLOCK_M, seq)
    q_ptr += batch.to(tl.int64) * stride_qb + head.to(tl.int64) * stride_qh
    k_ptr += batch.to(tl.int64) * stride_kb + (head // group).to(tl.int64) * stride_kh
    v_ptr += batch.to(tl.int64) * stride_vb + (head // group).to(tl.int64) * stride_vh
    out_ptr += batch.to(tl.int64) * stride_ob + head.to(tl.int64) * stride_oh

    rows, dims = first + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D)
    inside = (rows < seq)[:, None] & (dims < HEAD_DIM)[None, :]
    q = tl.load(q_ptr + rows[:, None] * stride_qs + dims[None, :], mask=inside, other=0.0)
    no_acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    no_max = tl.full([BLOCK_M], float("-inf"), tl.float32)
    no_sum = tl.zeros([BLOCK_M], tl.float32)
    acc, row_max, row_sum = attend(
        no_acc, no_max, no_sum, q, k_ptr, v_ptr, stride_ks, stride_vs, seq, rows,
        first, stop, SCALE, HEAD_DIM, BLOCK_D, BLOCK_N, True, True, KEEP,
    )  # fmt: skip
    acc, row_max, row_sum = attend(  # below the diagonal, where no mask is needed either
        acc, row_max, row_sum, q, k_ptr, v_ptr, stride_ks, stride_vs, seq, rows,
        0, first, SCALE, HEAD_DIM, BLOCK_D, BLOCK_N, False, not FIXED, KEEP,
    )  # fmt: skip
    if FIXED:
        # 0 · x is NaN where x is infinite or NaN, and no comparison with NaN is true.
        held = (row_sum < LIMIT) & (tl.sum(acc * 0.0, 1) == 0.0)
        if tl.min(held.to(tl.int32), 0) == 0:
            acc, row_max, row_sum = attend(
                no_acc, no_max, no_sum, q, k_ptr, v_ptr, stride_ks, stride_vs, seq, rows,
                0, stop, SCALE, HEAD_DIM, BLOCK_D, BLOCK_N, True, True, KEEP, RARE=True,
            )  # fmt: skip
    row_sum = tl.where(row_sum == 0.0, 1.0, row_sum)  # nothing but -inf in the row: zeros
    out = (acc / row_sum[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + rows[:, None] * stride_os + dims[None, :], out, mask=inside)


def tile(block_m: int, block_n: int, warps: int, stages: int) -> triton.Config:
    return triton.Config(
        {"BLOCK_M": block_m, "BLOCK_N": block_n}, num_warps=warps, num_stages=stages
    )


def steadily(kernel, quantiles) -> list[float]:
    """Milliseconds of the fastest of many runs, after a warm-up long enough for the clock to rise.

    Noise only ever adds to a time. Triton's own way is the median of a tenth of a second.
    """
    return [min(do_bench(kernel, warmup=150, rep=150, return_mode="all"))]


# Few, for each is compiled and timed the first time a shape is seen; the choice is kept on disk.
TILES = [tile(64, 64, 4, 3), tile(128, 64, 8, 3), tile(128, 128, 8, 3), tile(64, 32, 4, 2)]
# Larger tiles pay where K and V of all heads are more than the L2 cache holds: the tuner must know
# how many there are. One choice for all of them was another one in the next process.
KEY = ["HEAD_DIM", "seq", "sequences"]
tuned = triton.autotune(TILES, key=KEY, do_bench=steadily, cache_results=True)(
    flash_attention_triton
)


def triton_attention(q, k, v, tiles: triton.Config | None = None, tuner=tuned) -> torch.Tensor:
    """Causal attention of [batch, heads, seq, head_dim] tensors, bf16 or fp16, head_dim up to 256.

    k and v may have fewer heads than q: a whole number of q's heads then shares each. `tiles` are
    used instead of those that `tuner` chooses.
    """
    if INTERPRETED:
        tiles = TILES[-1]
        if q.dtype == torch.bfloat16:  # NumPy has no bf16
            return triton_attention(q.float(), k.float(), v.float()).to(q.dtype)
    batch, heads, seq, head_dim = q.shape
    q, k, v = (x if x.stride(-1) == 1 else x.contiguous() for x in (q, k, v))
    out = torch.empty_like(q)
    constants = {
        "SCALE": LOG2_E / math.sqrt(head_dim),  # as an argument, float64 to torch.compile
        "FIXED": seq >= FIXED_FROM,
        "KEEP": {torch.bfloat16: -(2**16), torch.float16: -(2**13)}.get(q.dtype, -1),
        "LIMIT": 2.0**15 if q.dtype == torch.float16 else 2.0**120,
        "HEAD_DIM": head_dim,
        "BLOCK_D": max(16, triton.next_power_of_2(head_dim)),
    }
    kernel = tuner
    if tiles:
        kernel = flash_attention_triton
        constants |= tiles.kwargs | {"num_warps": tiles.num_warps, "num_stages": tiles.num_stages}
    kernel[lambda meta: (batch * heads, triton.cdiv(seq, meta["BLOCK_M"]))](
        q, k, v, out,
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *out.stride()[:3],
        batch * heads, heads, heads // k.shape[1], seq, **constants,
    )  # fmt: skip
    return out


def triton_here(work: Workload):
    if work.device == "cpu" and not INTERPRETED:
        raise UserError(
            "--kernel triton --device cpu: on a machine with a GPU, Triton compiles for it; put "
            "TRITON_INTERPRET=1 in front to run the kernel in Python, or leave --device out"
        )
    return triton_attention


def tuned_tiles(work: Workload) -> str | None:
    best = getattr(tuned, "best_config", None)
    return best and "{BLOCK_M} queries × {BLOCK_N} keys, ".format(**best.kwargs) + (
        f"{best.num_warps} warps, {best.num_stages} stages: the tuner's choice of {len(TILES)}"
    )


def gluon(work: Workload):
    from common.kernels import hopper

    if why := hopper.why_not(work.head_dim, work.dtype):
        raise UserError(f"--kernel gluon: {why}; choose --kernel triton")
    return hopper.attention


def gluon_tiles(work: Workload) -> str:
    from common.kernels import hopper

    return hopper.in_words(work.head_dim)


def flex(work: Workload):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    # Once, outside the step: which tiles hold nothing to see, and need not be visited.
    mask = create_block_mask(
        lambda batch, head, query, key: query >= key, None, None, work.seq, work.seq, work.device
    )
    compiled = torch.compile(flex_attention)
    return lambda q, k, v: compiled(q, k, v, block_mask=mask)


FLASH_ATTN_2 = "kernels-community/flash-attn2"
# What comes from the Hub is run: a commit, and not whatever its branch holds by then. This one is
# in public lock files; its builds need torch 2.10 or newer.
PINNED = f"{FLASH_ATTN_2}@81fb77c12b2ad5d69380669b46739d5868614502"


def is_local(repository: str) -> bool:
    """Whether the `kernels` library takes it from a folder: LOCAL_KERNELS=REPO=FOLDER:…"""
    entries = os.environ.get("LOCAL_KERNELS", "").split(":")
    return repository in (entry.partition("=")[0] for entry in entries)


def hub(work: Workload, pinned: str = PINNED):
    repository, _, commit = pinned.partition("@")
    if not re.fullmatch("[0-9a-f]{40}", commit) and not is_local(repository):
        raise UserError(
            f"--kernel hub:{pinned}: no commit, and what comes from the Hub is run; write "
            f"hub:{repository}@COMMIT, all 40 digits of it, or LOCAL_KERNELS={repository}=FOLDER"
        )
    logging.getLogger("kernels").setLevel(logging.ERROR)  # offline it warns of what it cannot ask
    try:
        from kernels import get_kernel

        kernel = get_kernel(repository, revision=commit or "local")
    except (ImportError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        if "could not verify" in reason:
            reason = "the Hub does not answer."
        elif "trusted publisher" in reason:
            reason = "the Hub does not trust its publisher; to run it all the same, download it."
        raise UserError(
            f"--kernel hub: cannot load {repository}: {reason} LOCAL_KERNELS={repository}=FOLDER "
            "takes it from a folder, HF_HUB_OFFLINE=1 from the Hub's cache on this machine; "
            "or choose --kernel triton or flex"
        ) from error
    return lambda q, k, v: first(kernel.flash_attn_func(q, k, v, causal=True))


def hub_commit(work: Workload) -> str | None:
    """Of the kernel that --kernel hub names no commit of."""
    return None if is_local(FLASH_ATTN_2) else PINNED.replace("@", " at commit ")


def fa4(work: Workload):
    try:
        from flash_attn.cute import flash_attn_func
    except ImportError as error:
        raise UserError(
            f"--kernel fa4: {error}; install it with uv run --extra fa4 04_d_kernels_attention.py"
        ) from error
    return lambda q, k, v: first(flash_attn_func(q, k, v, causal=True))


def first(result):
    """The output alone: some builds return the softmax statistics behind it."""
    return result[0] if isinstance(result, tuple) else result


@dataclass(frozen=True)
class Way:
    """A way to a kernel: what makes it run, and what its trace should show."""

    build: Callable[..., Attention]  # from the workload; from the Hub, with a repository
    launch: str  # the call that starts it
    claims: tuple[Claim, ...] = ()
    cuda_only: bool = False
    layout: Literal["bhsd", "bshd"] = "bhsd"
    configuration: Callable[[Workload], str | None] | None = None


WAYS = {
    "triton": Way(
        triton_here,
        launch="cuLaunchKernelEx",
        claims=(
            Claim("tuning and compiling left nothing in the recording", claims.forwards_alike),
        ),
        configuration=tuned_tiles,
    ),
    "gluon": Way(gluon, "cuLaunchKernelEx", cuda_only=True, configuration=gluon_tiles),
    "flex": Way(flex, "cuLaunchKernel"),
    "hub": Way(hub, "cudaLaunchKernel", layout="bshd", configuration=hub_commit),
    "fa4": Way(fa4, "cudaLaunchKernelExC", cuda_only=True, layout="bshd"),
}
CHOICES = "triton, gluon, flex, hub, hub:REPO@COMMIT or fa4"
ALL_WAYS = (
    Claim("attention is one kernel", claims.one_kernel("attention")),
    Claim("no score matrix is ever in memory", claims.no_score_matrix),
    Claim("no transpose on the CPU", claims.op_count("aten::transpose", 0)),
    Claim(
        "less than half of an SM's warps are resident: tiles take its registers or its memory",
        claims.residency_below("attention", 50),
    ),
    Claim(
        "where the profiler reads 0 % occupancy, shared memory is why, not the launch call",
        claims.zero_explained_by_shared_memory("attention"),
    ),
)
NOT_SEEN = (
    "on the CPU the kernel is Python (Triton's interpreter) or one compiled function (flex), and "
    "no op of it is recorded; on a GPU its name may be unknown here."
)


@dataclass(frozen=True)
class Options(CommonOptions):
    kernel: str = option("triton", CHOICES, metavar="KERNEL")

    chooses = "kernel"


def lesson(options: Options) -> Lesson:
    name, _, repository = options.kernel.partition(":")
    way = WAYS.get(name)
    if way is None or (repository and name != "hub"):
        raise UserError(f"--kernel {options.kernel}: choose {CHOICES}")
    launched = Claim(
        f"it is launched through {way.launch}", claims.launched_by("attention", way.launch)
    )
    expected = Expectation(
        guess="attention",
        claims=(*ALL_WAYS, launched, *way.claims),
        reasons={"-attention": NOT_SEEN},
    )
    subject = Subject(
        "kernels",
        label="flash_kernel_fwd",
        cuda_only=way.cuda_only,
        layout=way.layout,
        configuration=None if repository else way.configuration,  # its name tells the commit
    )
    build = partial(way.build, pinned=repository) if repository else way.build
    return Lesson(subject, expected, expected, build)


if __name__ == "__main__":
    main(__file__, __doc__, Options, lesson, "--kernel flex")
