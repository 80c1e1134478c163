"""How fast steps run and what bounds them: from shapes, from our own recordings, never a guess."""

import json

import pytest
from build import H200, NVJET, ROOT, forward, kernel, launch, op, region, story, write
from seen import look, recorded

from common.compare.rates import Rates, by_op, gpu_of, rates_of_ops
from common.compare.rows import rows
from common.read.linked import link
from common.read.observe import observe
from common.read.trace import read

SHAPES = ROOT / "tests" / "data" / "shapes"


def shaped(name, ts, dur, dims, types, concrete=()):
    args = {"Input Dims": dims, "Input type": types, "Concrete Inputs": list(concrete)}
    return op(name, ts, dur, **args)


def one_op(tmp_path, name, us, dims, types, concrete=(), kernel_name="k", device=H200):
    """A forward of one op that launches one kernel of so many microseconds."""
    events = [region(0, 100), shaped(name, 5, 50, dims, types, concrete)]
    events += [launch(1, 10), kernel(1, 2000, us, kernel_name)]
    return look(tmp_path, events, device=device)


def rate(seen):
    [row] = rows(seen.steps)
    return Rates(seen.steps, seen).of([row])


def big(*shape):
    return [list(shape)], ["c10::BFloat16"]


def test_what_memory_bounds(tmp_path):
    """gelu of 2^28 elements moves 2^30 bytes."""
    seen = one_op(tmp_path, "aten::gelu", 300, *big(1 << 14, 1 << 14))
    found = rate(seen)
    assert found.tbs == pytest.approx((1 << 30) / 300e-6 / 1e12)
    assert found.bound == "memory" and found.share == pytest.approx(found.tbs / 4.8)


def test_what_computing_bounds(tmp_path):
    size = 4096
    dims, types = [[size, size]] * 2, ["c10::BFloat16"] * 2
    found = rate(one_op(tmp_path, "aten::mm", 200, dims, types, kernel_name=NVJET))
    assert found.tflops == pytest.approx(2 * size**3 / 200e-6 / 1e12)
    assert found.bound == "compute" and found.share == pytest.approx(found.tflops / 989)


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("ampere_sgemm_128x64_tn", 67),  # CUDA cores
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_stage3_warpsize2x2x1_"
         "tensor16x8x8_aligna4_alignc4_execute_kernel__5x_cublas", 494),
        ("k", None),  # its name does not tell
    ],
)  # fmt: skip
def test_fp32_is_measured_by_the_cores_that_did_it(tmp_path, name, peak):
    dims, types = [[4096, 4096]] * 2, ["float"] * 2
    found = rate(one_op(tmp_path, "aten::mm", 9000, dims, types, kernel_name=name))
    assert found.peak_tflops == peak
    assert found.bound == (None if peak is None else "compute")


def test_a_rate_above_the_peak_says_why(tmp_path):
    """Out of the cache, if it holds so much; else the shapes do not tell."""
    small = rate(one_op(tmp_path, "aten::gelu", 1, *big(1024, 2048)))
    assert small.tbs > 4.8 and small.bound == "cache"
    large = rate(one_op(tmp_path, "aten::gelu", 1, *big(1 << 14, 1 << 14)))
    assert large.tbs > 4.8 and large.bound == "doubtful"
    dims, types = [[4096, 4096]] * 2, ["c10::BFloat16"] * 2
    fast = rate(one_op(tmp_path, "aten::mm", 1, dims, types, kernel_name=NVJET))
    assert fast.tflops > 989 and fast.bound == "doubtful"


def test_unknown_stays_unknown(tmp_path):
    assert rate(one_op(tmp_path, "aten::mystery", 5, *big(4, 4))) is None
    assert rate(one_op(tmp_path, "aten::gelu", 5, [[4, 4]], ["mystery"])) is None
    other = rate(one_op(tmp_path, "aten::gelu", 5, *big(4, 4), device=H200 | {"name": "NVIDIA X"}))
    assert other.tbs and other.bound is None and other.share is None
    two = [H200, H200 | {"id": 1, "name": "NVIDIA X"}]
    seen = look(tmp_path, forward(100, ("gelu", "k", 5)))
    file = json.loads(seen.trace.path.read_text()) | {"deviceProperties": two}
    assert gpu_of(read(write(tmp_path, file))) is None


def test_a_memset_before_a_kernel_is_no_work_of_it(tmp_path):
    """Without shapes the bytes of the memset say nothing of the matmul."""
    seen = look(tmp_path, forward(100, ("mm", "memset", 1), ("mm", NVJET, 5)))
    assert Rates(seen.steps, seen).of(rows(seen.steps)) is None


def test_the_longest_kernel_of_an_op_stands_for_it(tmp_path):
    """A layout is changed, then convolved: the time of both, the work once."""
    dims = [[4, 8, 32, 32], [8, 8, 3, 3], [], [], [], []]
    types = ["float", "float", "ScalarList", "ScalarList", "ScalarList", "Scalar"]
    concrete = ["", "", "[1, 1]", "[1, 1]", "[1, 1]", "1"]
    events = [region(0, 100), shaped("aten::cudnn_convolution", 5, 50, dims, types, concrete)]
    events += [launch(1, 10), kernel(1, 2000, 5, "k1"), launch(2, 20), kernel(2, 2010, 20, "k2")]
    seen = look(tmp_path, events)
    found = Rates(seen.steps, seen).of(rows(seen.steps))
    assert found.work.ns == 25_000 and found.times == 1
    assert found.work.flop == 2 * 4 * 8 * 32 * 32 * 8 * 9


def test_the_five_lines_of_naive_attention_tell_their_bytes():
    """By hand: bf16 [8, 16, 1024, 64], scores of 8·16·1024² elements."""
    seen = recorded("04_a", "eager")
    scores, one = 8 * 16 * 1024**2, 8 * 16 * 1024 * 64
    moved = [2 * (2 * one + scores), 4 * scores, 4 * scores, 4 * scores + 1024**2, 4 * scores,
             2 * (2 * one + scores)]  # fmt: skip
    its = rows(seen.steps)
    assert [row.kind for row in its] == "matmul mul copy mask softmax matmul".split()
    rates = Rates(seen.steps, seen)
    for row, by_hand in zip(its, moved, strict=True):
        found = rates.of([row])
        assert found.tbs == pytest.approx(by_hand / row.ns / 1e3, rel=1e-5)
        assert found.bound == "memory" and 0.2 < found.share < 1


def test_one_attention_kernel_is_known_by_the_story_and_no_other_step():
    seen = recorded("04_c", "eager", "flash")
    found = Rates(seen.steps, seen).of(rows(seen.steps))
    pairs = 8 * 16 * 1024 * 1025 // 2
    assert found.work.flop == 4 * pairs * 64 and found.bound == "compute"
    math = recorded("04_c", "eager", "math")
    kernels = [row for row in rows(math.steps) if row.main.sort == "kernel"]
    assert all(Rates(math.steps, math).of([row]) is None for row in kernels)


def test_other_people_s_story_is_not_enough(tmp_path):
    seen = look(tmp_path, forward(100, ("bmm", NVJET, 5), ("mul", "k", 5)), about=story())
    assert not Rates(seen.steps, seen).by_shapes


@pytest.mark.parametrize(
    "path", sorted(SHAPES.glob("*_shapes.json.gz")), ids=lambda path: path.name
)
def test_no_rate_of_a_real_recording_is_above_the_peak_without_a_reason(path):
    linked = link(read(path))
    seen = observe(linked)
    found = [one.rate for one in by_op(Rates(seen.steps, seen), rows(seen.steps)) if one.rate]
    found += [one for _, one in rates_of_ops(linked)]
    assert found
    for one in found:
        shares = [share for share in (one.share_of_compute, one.share_of_memory) if share]
        if one.bound in ("compute", "memory"):
            assert max(shares) <= 1
        elif max(shares, default=0) > 1:
            assert one.bound in ("cache", "doubtful")


def test_both_ways_of_counting_a_recording_agree():
    """Of the forwards, step by step; and of the whole trace, op by op."""
    linked = link(read(SHAPES / "gpt_forward_shapes.json.gz"))
    seen = observe(linked)
    steps = by_op(Rates(seen.steps, seen), rows(seen.steps))
    matmuls = sum(one.rate.work.flop for one in steps if one.row.kind == "matmul")
    ops = dict(rates_of_ops(linked))
    assert 3 * matmuls == ops["aten::addmm"].work.flop + ops["aten::mm"].work.flop
