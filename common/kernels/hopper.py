"""Causal FlashAttention forward for Hopper GPUs in Gluon, in the manner of FlashAttention-3.

Gluon is Triton's lower level: tiles stay, but the kernel itself says which warps do what, where
each tile lives and when it moves. Written for Triton 3.6 and 3.9 (``triton.experimental.gluon``);
needs an sm_90 GPU, head_dim 64 or 128, and 16-byte aligned rows. The Triton kernel in 04_d is
the one to read first: the arithmetic is the same, everything here is about overlap.

Who does what in one CTA:

* one *producer* warp only issues TMA copies: K and V tiles into a ring of STAGES shared buffers;
* NUM_WG *consumer* warpgroups (4 warps, 128 threads) own 64 query rows each. They share every
  K and V tile, so one copy from L2 feeds NUM_WG * 64 rows;
* a warpgroup issues Q K(j+1) and P V(j) together (wgmma runs on its own once issued), waits for
  both, and turns the scores into weights. In it, products and softmax take turns; waiting for
  P V later gained nothing (docs/attention_kernels.md, step 16). What overlaps them are the other
  warpgroups;
* the grid is as many CTAs as fit; each walks over tiles, longest rows first, so the copies for
  its next tile start while its last one is still being multiplied and stored. Tiles end where the
  sequence ends: what the first one has too many are rows before key 0, the cheapest to leave out.

mbarriers keep them honest: ``full[s]`` completes when the bytes of stage s have landed,
``empty[s]`` when every warpgroup has let go of them. A phase flips at each completion: ``& 1``.

The softmax subtracts, from all scores of a row, the maximum of the row's diagonal tile: the loop
looks for no maximum and rescales nothing. That is exact as long as no sum overflows. A tile where
one did is written as NaN, noted, and done again with the online softmax after the last tile; the
note costs a warpgroup no exchange among its threads until then. docs/attention_kernels.md says why
that is right for every input.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from threading import get_ident

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

LOG2_E = 1.4426950408889634
ROWS = gl.constexpr(64)  # query rows of one warpgroup: the M of one wgmma instruction

# Triton 3.9 renamed the two TMA copies.
tma_load = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
tma_store = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global
barrier = getattr(gl, "barrier", None) or gl.thread_barrier
# A row's sum of weights must stay below. bf16: 1 / sum is still a normal number. fp16: no weight is
# near 65504, the largest that can be multiplied.
LIMIT_BF16 = gl.constexpr(2.0**120)
LIMIT_FP16 = gl.constexpr(2.0**15)


@gluon.jit
def _rounds(tiles):
    """How many tiles this CTA gets: every CTA one a round, the last round may be short."""
    grid = gl.num_programs(0)
    full = tiles // grid
    pos = gl.program_id(0)
    if full % 2 == 1:
        pos = grid - 1 - pos
    return full + (pos < tiles - full * grid).to(gl.int32)


@gluon.jit
def _quotient(a, reciprocal):
    """a // b, of reciprocal(b): five instructions instead of thirty."""
    return ((a.to(gl.int64) * reciprocal) >> 40).to(gl.int32)


@gluon.jit
def _tile(r, walk):
    """(batch, head, row block) of this CTA's tile in round r: longest rows first, and every other
    round is dealt backwards, so that whoever got a long tile now gets a short one next."""
    heads, heads_total, per_heads, per_heads_total, row_blocks, skip = walk
    pos = gl.program_id(0)
    if r % 2 == 1:
        pos = gl.num_programs(0) - 1 - pos
    t = r * gl.num_programs(0) + pos
    above = _quotient(t, per_heads_total)
    z = t - above * heads_total
    batch = _quotient(z, per_heads)
    return batch, z - batch * heads, row_blocks - 1 - above


@gluon.jit
def _first_row(r, m, walk, W: gl.constexpr, NUM_WG: gl.constexpr):
    """Row of the sequence where warpgroup W starts in round r, negative if it has none. The lowest
    rows see the most keys: each warpgroup takes the lowest in one round and the highest in the
    next."""
    place = W + (r % 2) * (NUM_WG - 1 - 2 * W)
    heads, heads_total, per_heads, per_heads_total, row_blocks, skip = walk
    return (m * NUM_WG + place - skip) * ROWS


@gluon.jit
def _key_tiles(m, walk, NUM_WG: gl.constexpr):
    """How many tiles of keys row block m needs."""
    heads, heads_total, per_heads, per_heads_total, row_blocks, skip = walk
    return (m + 1) * NUM_WG - skip


@gluon.jit
def _producer(args, NUM_WG: gl.constexpr):
    """One warp, 24 registers a thread: keep the ring of K and V tiles filled, across tiles."""
    k_desc, v_desc, k_smem, v_smem, full, empty, group, tiles, walk = args
    STAGES: gl.constexpr = k_smem.shape[0]
    N: gl.constexpr = k_smem.shape[3]
    D: gl.constexpr = k_smem.shape[4]
    it = 0
    for r in range(_rounds(tiles)):
        batch, head, m = _tile(r, walk)
        head = head // group
        blocks = _key_tiles(m, walk, NUM_WG)
        for i in range(blocks):
            stage = it % STAGES
            n = (blocks - 1 - i) * N  # from the diagonal down to key 0
            mbarrier.wait(empty.index(stage), ((it // STAGES) & 1) ^ 1)
            mbarrier.expect(full.index(stage), N * D * 2 * 2)
            tma_load(k_desc, [batch, head, n, 0], full.index(stage), k_smem.index(stage))
            tma_load(v_desc, [batch, head, n, 0], full.index(stage), v_smem.index(stage))
            it += 1


@gluon.jit
def _load_q(q_desc, q_smem, bar, batch, head, row, pred):
    mbarrier.expect(bar, ROWS * q_smem.shape[3] * 2, pred=pred)
    tma_load(q_desc, [batch, head, row, 0], bar, q_smem, pred=pred)


@gluon.jit
def _or(a, b):
    return a | b


@gluon.jit
def _reciprocal(x):
    """1 / x but for the last bit, x normal: one instruction instead of ten."""
    return gl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], gl.float32, True, 1)


@gluon.jit
def _own_sum(x):
    """[rows, columns] to [rows, 4]: each thread adds up the columns that it holds; no shuffles."""
    return gl.sum(gl.sum(x.reshape([x.shape[0], x.shape[1] // 8, 4, 2]), 3), 1)


@gluon.jit
def _larger(a, b, TYPE: gl.constexpr):
    """The larger of |a| and |b|, of either sign; NaN if one is. Two numbers an instruction."""
    return gl.inline_asm_elementwise(
        "max.NaN.xorsign.abs." + TYPE + "x2 $0, $1, $2;", "=r,r,r", [a, b], a.dtype, True, 2
    )


@gluon.jit
def _not_finite(x):
    """[rows, columns] of bf16 or fp16 to [rows, 4]: does a thread hold an infinity or a NaN?"""
    TYPE: gl.constexpr = "bf16" if x.dtype == gl.bfloat16 else "f16"
    EXPONENT: gl.constexpr = 0x7F80 if x.dtype == gl.bfloat16 else 0x7C00
    LEVELS: gl.constexpr = 3 if x.shape[1] == 64 else 4
    x = x.reshape([x.shape[0], x.shape[1] // 8, 4, 2])
    for _ in gl.static_range(LEVELS):
        x = x.reshape([x.shape[0], x.shape[1] // 2, 2, 4, 2]).permute([0, 1, 3, 4, 2])
        a, b = x.split()
        x = _larger(a, b, TYPE)
    x = x.reshape([x.shape[0], 4, 2]).to(gl.int16, bitcast=True).to(gl.int32) & EXPONENT
    return gl.max(x, 2) == EXPONENT


@gluon.jit
def _cut(x, dtype: gl.constexpr):
    """Without the bits that dtype cannot hold: what is summed is then what is multiplied."""
    keep: gl.constexpr = -65536 if dtype == gl.bfloat16 else -8192
    return (x.to(gl.int32, bitcast=True) & keep).to(gl.float32, bitcast=True)


@gluon.jit
def _fetch(desc, batch, head, row, smem, bar, fetched):
    """Bring one tile into smem and wait for it. Returns the copies on bar so far."""
    barrier()  # every warp has let go of what was there
    mbarrier.expect(bar, smem.shape[2] * smem.shape[3] * 2)
    tma_load(desc, [batch, head, row, 0], bar, smem)
    mbarrier.wait(bar, fetched & 1)
    return fetched + 1


@gluon.jit
def _online(q_smem, kv_smem, k_desc, v_desc, bar, fetched, batch, head, row0, scale_log2):
    """64 rows with the online softmax: slow, and right whatever the scores are.

    One tile of 64 keys at a time: its keys, then its values, through the same buffer. A row that
    has seen only -inf so far is given 0 as its maximum: exp2(-inf - 0) is 0, exp2(-inf + inf) NaN.
    Subtract, then scale: the other way round is one instruction, which rounds once, and of scores
    near 1e38 the largest less itself is then not 0. Returns (output, fetched).
    """
    D: gl.constexpr = kv_smem.shape[3]
    B: gl.constexpr = kv_smem.shape[2]
    dtype: gl.constexpr = kv_smem.dtype
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, B, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)
    o_rows: gl.constexpr = gl.SliceLayout(1, o_layout)
    rows = row0 + gl.arange(0, ROWS, gl.SliceLayout(1, s_layout))
    row_max = gl.full([ROWS], float("-inf"), gl.float32, gl.SliceLayout(1, s_layout))
    row_sum = gl.full([ROWS], 0.0, gl.float32, gl.SliceLayout(1, s_layout))
    acc = gl.zeros([ROWS, D], gl.float32, o_layout)
    q = q_smem.reshape([ROWS, D])
    kv = kv_smem.reshape([B, D])
    for n in range(0, row0 + ROWS, B):
        fetched = _fetch(k_desc, batch, head, n, kv_smem, bar, fetched)
        zero = gl.zeros([ROWS, B], gl.float32, s_layout)
        s = warpgroup_mma(q, kv.permute((1, 0)), zero, use_acc=False, is_async=True)
        s = warpgroup_mma_wait(0, deps=[s])
        cols = n + gl.arange(0, B, gl.SliceLayout(0, s_layout))
        s = gl.where(gl.expand_dims(rows, 1) >= gl.expand_dims(cols, 0), s, float("-inf"))
        new_max = gl.maximum(row_max, gl.max(s, 1))
        ref = gl.where(new_max == float("-inf"), 0.0, new_max)
        p = gl.exp2((s - gl.expand_dims(ref, 1)) * scale_log2)
        shrink = gl.exp2((row_max - ref) * scale_log2)
        row_max = new_max
        row_sum = row_sum * shrink + gl.sum(p, 1)
        acc = acc * gl.expand_dims(gl.convert_layout(shrink, o_rows), 1)
        fetched = _fetch(v_desc, batch, head, n, kv_smem, bar, fetched)
        acc = warpgroup_mma(gl.convert_layout(p.to(dtype), p_layout), kv, acc, is_async=True)
        acc = warpgroup_mma_wait(0, deps=[acc])
    total = gl.where(row_sum == 0.0, 1.0, row_sum)  # nothing but -inf in the row: zeros
    return acc * gl.expand_dims(1.0 / gl.convert_layout(total, o_rows), 1), fetched


@gluon.jit
def _consumer(args, W: gl.constexpr, NUM_WG: gl.constexpr, GUARD: gl.constexpr):
    """Warpgroup W: 64 rows of each tile. Scores, weights and output never leave its registers."""
    (
        q_desc,
        k_desc,
        v_desc,
        out_desc,
        q_smem,
        o_smem,
        k_smem,
        v_smem,
        q_full,
        full,
        empty,
        again,
        votes,
        group,
        tiles,
        walk,
        scale_log2,
    ) = args
    STAGES: gl.constexpr = k_smem.shape[0]
    N: gl.constexpr = k_smem.shape[3]
    D: gl.constexpr = k_smem.shape[4]
    dtype: gl.constexpr = k_smem.dtype
    limit: gl.constexpr = LIMIT_BF16 if dtype == gl.bfloat16 else LIMIT_FP16
    # Registers a thread: scores N/2, output D/2, weights (16 bit) N/4.
    s_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    p_layout: gl.constexpr = gl.DotOperandLayout(0, o_layout, 2)
    s_rows: gl.constexpr = gl.SliceLayout(1, s_layout)
    o_rows: gl.constexpr = gl.SliceLayout(1, o_layout)
    o_zero = gl.zeros([ROWS, D], gl.float32, o_layout)
    s_zero = gl.zeros([ROWS, N], gl.float32, s_layout)
    # Bit r % 32: a tile of round r is to be done again.
    lost = _not_finite(o_zero.to(dtype)).to(gl.int32)
    q = q_smem.index(W).reshape([ROWS, D])

    rounds = _rounds(tiles)
    batch, head, m = _tile(0, walk)
    row0 = _first_row(0, m, walk, W, NUM_WG)
    _load_q(q_desc, q_smem.index(W), q_full.index(W), batch, head, row0, True)
    it = 0  # K/V tiles consumed so far: the ring's position, in step with the producer's
    for r in range(rounds):
        end = it + _key_tiles(m, walk, NUM_WG)
        first = gl.minimum(end - row0 // N - 1, end)
        for i in range(it, first):  # tiles above this warpgroup's diagonal: hand them back
            mbarrier.wait(full.index(i % STAGES), (i // STAGES) & 1)
            mbarrier.arrive(empty.index(i % STAGES))

        mbarrier.wait(q_full.index(W), r & 1)
        if row0 >= 0:
            # The diagonal tile comes first: it alone needs a mask, and gives the row its maximum.
            stage = first % STAGES
            mbarrier.wait(full.index(stage), (first // STAGES) & 1)
            k_t = k_smem.index(stage).reshape([N, D]).permute((1, 0))
            s = warpgroup_mma(q, k_t, s_zero, use_acc=False, is_async=True)
            s = warpgroup_mma_wait(0, deps=[s])
            rows = gl.arange(0, ROWS, s_rows)
            cols = gl.arange(0, N, gl.SliceLayout(0, s_layout))
            s = gl.where(gl.expand_dims(rows, 1) >= gl.expand_dims(cols, 0), s, float("-inf"))
            row_max = gl.expand_dims(gl.max(s, 1) * scale_log2, 1)
            p32 = _cut(gl.exp2(s * scale_log2 - row_max), dtype)
            sums = _own_sum(p32)
            p = gl.convert_layout(p32.to(dtype), p_layout)
            acc = o_zero

            before = stage
            phase = (first // STAGES) & 1
            for _ in range(first + 1, end):
                stage = before + 1
                wrap = stage == STAGES
                stage = gl.where(wrap, 0, stage)
                phase = gl.where(wrap, phase ^ 1, phase)
                k_t = k_smem.index(stage).reshape([N, D]).permute((1, 0))
                mbarrier.wait(full.index(stage), phase)
                s_next = warpgroup_mma(q, k_t, s_zero, use_acc=False, is_async=True)
                o_next = warpgroup_mma(p, v_smem.index(before).reshape([N, D]), acc, is_async=True)
                s, acc = warpgroup_mma_wait(0, deps=[s_next, o_next])
                p32 = _cut(gl.exp2(s * scale_log2 - row_max), dtype)
                sums += _own_sum(p32)
                p = gl.convert_layout(p32.to(dtype), p_layout)
                mbarrier.arrive(empty.index(before))
                before = stage

            # Every product with Q is done: fetch the next tile's Q behind the last P V.
            here = [batch, head, row0, 0]
            batch, head, m = _tile(r + 1, walk)
            row0 = _first_row(r + 1, m, walk, W, NUM_WG)
            stage = (end - 1) % STAGES
            o_next = warpgroup_mma(p, v_smem.index(stage).reshape([N, D]), acc, is_async=True)
            _load_q(q_desc, q_smem.index(W), q_full.index(W), batch, head, row0, r + 1 < rounds)
            total = gl.convert_layout(gl.sum(sums, 1), o_rows)
            acc = warpgroup_mma_wait(0, deps=[o_next])
            mbarrier.arrive(empty.index(stage))
            # What overflowed is NaN or infinite from here on. No comparison with NaN is true.
            scale = gl.where(total < limit, _reciprocal(total), float("nan"))
            acc = acc * gl.expand_dims(scale, 1)
            tma.store_wait(0)  # the previous tile's output has left the buffer
            out = acc.to(dtype)
            o_smem.index(W).reshape([ROWS, D]).store(out)
            fence_async_shared()  # make ordinary stores visible to the copy engine
            tma_store(out_desc, here, o_smem.index(W))
            if GUARD:
                lost = lost | gl.where(_not_finite(out), 1 << (r % 32), 0)
        else:  # no rows here
            batch, head, m = _tile(r + 1, walk)
            row0 = _first_row(r + 1, m, walk, W, NUM_WG)
            _load_q(q_desc, q_smem.index(W), q_full.index(W), batch, head, row0, r + 1 < rounds)
        it = end
    todo = 0
    if GUARD:
        # Is there anything to do again? A word a warp, exchanged while the last store is under way.
        own: gl.constexpr = gl.DistributedLinearLayout([], [[0]] * 5, [[1], [2]], [], [4])
        all: gl.constexpr = gl.DistributedLinearLayout([[1], [2]], [[0]] * 5, [[0]] * 2, [], [4])
        of_warp = gl.reduce(lost.reshape([4, ROWS]), 1, _or)
        votes.index(W).store(gl.convert_layout(of_warp, own))
        barrier()
        todo = gl.reduce(votes.index(W).load(all), 0, _or)
    tma.store_wait(0)

    if GUARD:
        if todo != 0:
            # The stores so far must have arrived, not only have been read: a later one must win.
            todo = gl.inline_asm_elementwise(
                "cp.async.bulk.wait_group 0; mov.b32 $0, $1;", "=r,r", [todo], gl.int32, False, 1
            )
            fetched = 0
            for r in range(rounds):
                batch, head, m = _tile(r, walk)
                row0 = _first_row(r, m, walk, W, NUM_WG)
                if (((todo >> (r % 32)) & 1) == 1) & (row0 >= 0):
                    bar = again.index(W)
                    q_tile = q_smem.index(W)
                    kv = o_smem.index(W)
                    fetched = _fetch(q_desc, batch, head, row0, q_tile, bar, fetched)
                    out, fetched = _online(
                        q_tile,
                        kv,
                        k_desc,
                        v_desc,
                        bar,
                        fetched,
                        batch,
                        head // group,
                        row0,
                        scale_log2,
                    )
                    kv.reshape([ROWS, D]).store(out.to(dtype))
                    fence_async_shared()
                    tma_store(out_desc, [batch, head, row0, 0], kv)
                    tma.store_wait(0)


@gluon.jit(do_not_specialize=["per_heads", "per_heads_total", "skip"])
def flash_attention_gluon(
    q_desc,
    k_desc,
    v_desc,
    out_desc,
    group,
    tiles,
    heads,
    heads_total,
    per_heads: gl.int64,
    per_heads_total: gl.int64,
    row_blocks,
    skip,
    scale_log2,
    NUM_WG: gl.constexpr,
    N: gl.constexpr,
    D: gl.constexpr,
    STAGES: gl.constexpr,
    GUARD: gl.constexpr,
    REGS: gl.constexpr,
    num_warps: gl.constexpr,
):
    gl.static_assert(N == ROWS)  # so that one tile is the whole diagonal, and fits the output's
    dtype: gl.constexpr = k_desc.dtype
    bar: gl.constexpr = mbarrier.MBarrierLayout()
    q_smem = gl.allocate_shared_memory(dtype, [NUM_WG, 1, 1, ROWS, D], q_desc.layout)
    o_smem = gl.allocate_shared_memory(dtype, [NUM_WG, 1, 1, ROWS, D], out_desc.layout)
    k_smem = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, N, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(dtype, [STAGES, 1, 1, N, D], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [NUM_WG, 1], bar)
    again = gl.allocate_shared_memory(gl.int64, [NUM_WG, 1], bar)
    votes = gl.allocate_shared_memory(gl.int32, [NUM_WG, 4], gl.SwizzledSharedLayout(1, 1, 1, [0]))
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], bar)
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], bar)
    for i in gl.static_range(NUM_WG):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(again.index(i), count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=NUM_WG)
    fence_async_shared()

    walk = (heads, heads_total, per_heads, per_heads_total, row_blocks, skip)
    c = (
        q_desc,
        k_desc,
        v_desc,
        out_desc,
        q_smem,
        o_smem,
        k_smem,
        v_smem,
        q_full,
        full,
        empty,
        again,
        votes,
        group,
        tiles,
        walk,
        scale_log2,
    )
    p = (k_desc, v_desc, k_smem, v_smem, full, empty, group, tiles, walk)
    # setmaxnreg moves registers from the producer to the consumers: REGS each, 24 for the producer.
    if NUM_WG == 3:
        gl.warp_specialize(
            [
                (_consumer, (c, 0, NUM_WG, GUARD)),
                (_consumer, (c, 1, NUM_WG, GUARD)),
                (_consumer, (c, 2, NUM_WG, GUARD)),
                (_producer, (p, NUM_WG)),
            ],
            [4, 4, 1],
            [REGS, REGS, 24],
        )
    else:
        gl.warp_specialize(
            [
                (_consumer, (c, 0, NUM_WG, GUARD)),
                (_consumer, (c, 1, NUM_WG, GUARD)),
                (_consumer, (c, 2, NUM_WG, GUARD)),
                (_consumer, (c, 3, NUM_WG, GUARD)),
                (_producer, (p, NUM_WG)),
            ],
            [4, 4, 4, 1],
            [REGS, REGS, REGS, 24],
        )


# NUM_WG: (registers a consumer thread, registers a thread at launch: 65,536 over all threads).
REGISTERS = {3: (160, 128), 4: (112, 96)}
# head_dim: (NUM_WG, STAGES), the best measured on an H200.
CONFIG = {64: (4, 6), 128: (3, 4)}
KEYS = 64  # of one tile


def why_not(head_dim: int, dtype: str) -> str | None:
    """None where this kernel can run, else what it needs. Rows must also be 16-byte aligned."""
    if not torch.cuda.is_available() or torch.cuda.get_device_capability()[0] != 9:
        return "needs a Hopper GPU (sm_90)"
    if head_dim not in (64, 128):
        return f"needs head_dim 64 or 128, not {head_dim}"
    return None if dtype in ("bf16", "fp16") else f"needs bf16 or fp16, not {dtype}"


def in_words(head_dim: int) -> str:
    wgs, stages = CONFIG[head_dim]
    return f"{wgs} warpgroups of 64 queries, tiles of {KEYS} keys, {stages} stages"


def attention(q, k, v, guard=True):
    """Causal attention of ``[batch, heads, seq, head_dim]``; k and v may have fewer heads (GQA).

    bf16 or fp16, head_dim 64 or 128; every row 16-byte aligned, else it raises AssertionError.
    ``guard=False`` leaves out the check for sums that overflowed, to measure what it costs.
    """
    out = torch.empty_like(q)
    if torch.compiler.is_compiling():
        Launch(q.shape, k.shape, guard)(q, k, v, out)
    else:
        _launch(
            q.shape, k.shape, q.stride(), k.stride(), v.stride(), out.stride(), q.dtype,
            q.get_device(), guard, get_ident(),
        )(q, k, v, out)  # fmt: skip
    return out


def reciprocal(b: int) -> int:
    """2⁴⁰ / b, rounded up: (a · it) >> 40 is a // b, where a · b <= 2⁴⁰ and a // b < 2²³."""
    return -(-(1 << 40) // b)


class Launch:
    """What a launch needs beside the tensors. It is the same for all tensors of the same shapes,
    strides and dtype, and costs the CPU more to make than the launch itself.

    The descriptors stay, and point to a tensor only during a call: no tensor is kept alive.
    """

    def __init__(self, q_shape, k_shape, guard=True):
        batch, heads, seq, head_dim = q_shape
        wgs, stages = CONFIG[head_dim]
        regs, self.at_launch = REGISTERS[wgs]
        row_blocks = triton.cdiv(seq, 64 * wgs)
        tiles = batch * heads * row_blocks
        self.grid = (min(tiles, _multiprocessors()), 1, 1)
        self.arguments = (
            heads // k_shape[1],
            tiles,
            heads,
            batch * heads,
            reciprocal(heads),
            reciprocal(batch * heads),
            row_blocks,
            row_blocks * wgs - triton.cdiv(seq, 64),
            LOG2_E / math.sqrt(head_dim),
        )
        self.constants = {
            "NUM_WG": wgs,
            "N": KEYS,
            "D": head_dim,
            "STAGES": stages,
            "GUARD": guard,
            "REGS": regs,
            "num_warps": 4,
        }
        self.descs: list[TensorDescriptor] = []
        self.launch: Callable | None = None

    def __call__(self, *tensors):
        """Launch for (q, k, v, out), which must be of the shapes, strides and dtype as before."""
        if self.launch is None:
            descs = [_desc(tensor) for tensor in tensors]
            kernel = flash_attention_gluon[self.grid](
                *descs, *self.arguments, **self.constants, maxnreg=self.at_launch
            )
            if torch.compiler.is_compiling():
                return
            # From here on without a look at the arguments' types: they are always these.
            self.descs, self.launch = descs, kernel[self.grid]
        else:
            for desc, tensor in zip(self.descs, tensors, strict=True):
                desc.base = tensor
            try:
                self.launch(*self.descs, *self.arguments, *self.constants.values())
            finally:
                self._let_go()
            return
        self._let_go()

    def _let_go(self):
        for desc in self.descs:
            desc.base = None


@lru_cache(maxsize=64)  # a thread has its own: a descriptor is changed and then read
def _launch(q_shape, k_shape, q, k, v, out, dtype, device, guard, thread) -> Launch:
    return Launch(q_shape, k_shape, guard)


@lru_cache
def _multiprocessors() -> int:
    return torch.cuda.get_device_properties().multi_processor_count


def _desc(t):
    """What the copy engine needs to know: shape, strides and the box [1, 1, 64, head_dim]. It
    fills rows past the end of the sequence with zeros and never writes them."""
    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=4)
    return TensorDescriptor(t, list(t.shape), list(t.stride()), [1, 1, 64, t.shape[-1]], layout)
