"""What is worth doing: each advice from a trace that proves it, and none from one that does not."""

import pytest
from build import (
    FFMA,
    NVJET,
    ROOT,
    SOFTMAX,
    forward,
    kernel,
    launch,
    op,
    region,
    trace,
    write,
)  # fmt: skip
from seen import look, recorded

from common.compare import advice
from common.compare.advice import top_of_region, top_of_trace
from common.read.linked import link
from common.read.observe import observe
from common.read.survey import survey
from common.read.trace import read
from common.show import top as words

SHAPES = ROOT / "tests" / "data" / "shapes"


def found(seen) -> dict:
    return {type(one): one for one in top_of_region(seen).advice}


def busy(tmp_path, *steps, **more):
    """A forward whose GPU never idles."""
    return look(tmp_path, forward(100, *steps), **more)


def test_a_gpu_that_runs_dry_is_launch_bound(tmp_path):
    """Ten kernels of 2 µs, launched every 20 µs: 18 of 20 are idle."""
    events = [region(0, 300)]
    for n in range(10):
        at = 10 + 20 * n
        events += [op("aten::mul", at, 15), launch(n + 1, at + 2), kernel(n + 1, at + 8, 2, "k")]
    one = found(look(tmp_path, events))[advice.LaunchBound]
    assert (one.launches, one.mean_ns) == (10, 2000)
    assert one.share == one.idle == pytest.approx(9 * 18 / (9 * 20 + 2))
    assert "launch-bound: 10 launches, 2 µs of work each" in words.advice(one)


def test_a_busy_gpu_is_told_nothing(tmp_path):
    assert top_of_region(busy(tmp_path, ("linear mm", NVJET, 50), ("topk", "k", 50))).advice == ()


def test_the_data_loader_is_to_blame_for_what_it_is_to_blame(tmp_path):
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    events = [region(0, 1200), op("aten::mul", 5, 20), launch(1, 10), kernel(1, 20, 10, "k"),
              region(40, 1000, loader), op("aten::mul", 1050, 20), launch(2, 1055),
              kernel(2, 1060, 10, "k")]  # fmt: skip
    its = found(look(tmp_path, events, region="fwd"))
    assert its[advice.DataLoader].share == pytest.approx(1030 / 1050, abs=0.02)
    assert advice.LaunchBound not in its


def test_attention_that_is_written_out(tmp_path):
    steps = [("matmul bmm", NVJET, 10), ("mul", "k", 5), ("masked_fill masked_fill_", "k", 5),
             ("softmax _softmax", SOFTMAX, 10), ("matmul bmm", NVJET, 10)]  # fmt: skip
    one = found(busy(tmp_path, *steps, ("linear addmm", NVJET, 60)))[advice.MathAttention]
    assert (one.share, one.count, one.by_hand, one.masked) == (0.4, 1, True, True)
    assert "scores and mask materialised" in words.advice(one)
    # A router's softmax between two layers is no attention; nor is one that samples.
    router = [("linear addmm", NVJET, 10), ("softmax _softmax", SOFTMAX, 10),
              ("linear addmm", NVJET, 10)]  # fmt: skip
    assert advice.MathAttention not in found(busy(tmp_path, *router))
    other = [steps[0], ("topk", "k", 5), *steps[3:]]
    assert advice.MathAttention not in found(busy(tmp_path, *other))


def test_sdpa_s_math_backend():
    one = found(recorded("04_c", "eager", "math"))[advice.MathAttention]
    assert not one.by_hand and one.count == 3 and one.share > 0.9
    for backend in ("flash", "cudnn", "efficient"):
        assert advice.MathAttention not in found(recorded("04_c", "eager", backend))


def test_fp32_matmuls_on_cuda_cores(tmp_path):
    one = found(busy(tmp_path, ("linear mm", FFMA, 30), ("topk", "k", 70)))[advice.CudaCoreMatmuls]
    assert (one.share, one.count) == (0.3, 1)
    assert advice.CudaCoreMatmuls not in found(busy(tmp_path, ("linear mm", NVJET, 30)))
    # Products with a vector would not be faster: memory bounds them.
    gemv = "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>"
    assert advice.CudaCoreMatmuls not in found(busy(tmp_path, ("linear mv", gemv, 30)))


def optimizer(*ops, name="AdamW"):
    events = [region(0, 500), region(10, 400, f"Optimizer.step#{name}.step")]
    for n, inner in enumerate(ops):
        at = 20 + 20 * n
        events += [op(inner, at, 15), launch(n + 1, at + 2), kernel(n + 1, 2000 + 5 * n, 5, "k")]
    return events


def test_an_optimizer_that_runs_tensor_by_tensor(tmp_path):
    seen = look(tmp_path, optimizer("aten::mul_", "aten::addcdiv_"), region="fwd")
    one = found(seen)[advice.UnfusedOptimizer]
    assert (one.name, one.launches, one.foreach, one.share) == ("AdamW", 2, False, 1)
    seen = look(tmp_path, optimizer("aten::_foreach_mul_", "aten::_foreach_add_"), region="fwd")
    assert found(seen)[advice.UnfusedOptimizer].foreach
    for events in (optimizer("aten::_fused_adamw_"), optimizer("aten::mul_", name="LBFGS")):
        assert advice.UnfusedOptimizer not in found(look(tmp_path, events, region="fwd"))


def test_copies_and_layouts(tmp_path):
    copies = busy(tmp_path, ("masked_fill clone copy_", "copy", 25), ("topk", "k", 75))
    one = found(copies)[advice.Copies]
    assert (one.share, one.count, one.ops) == (0.25, 1, ("aten::masked_fill",))
    name = "void cudnn::engines_precompiled::nchwToNhwcKernel<float, float, float, false>"
    its = found(busy(tmp_path, ("conv2d convolution", name, 25), ("topk", "k", 75)))
    assert its[advice.LayoutChanges].count == 1


def test_elementwise_steps_of_attention_are_not_told_twice(tmp_path):
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
    steps = [("matmul bmm", NVJET, 10), ("mul", name, 50), ("softmax _softmax", SOFTMAX, 10),
             ("matmul bmm", NVJET, 10)]  # fmt: skip
    its = found(busy(tmp_path, *steps))
    assert advice.MathAttention in its and advice.Elementwise not in its
    assert (
        found(busy(tmp_path, ("add", name, 50), ("topk", "k", 50)))[advice.Elementwise].share == 0.5
    )


def test_at_most_three_the_dearest_first_and_the_rest_is_counted():
    for path in sorted(SHAPES.glob("*.json.gz")):
        linked = link(read(path))
        seen = observe(linked)
        for its in (top_of_region(seen), top_of_trace(linked, survey(linked).usage)):
            shares = [one.share for one in its.advice]
            assert len(shares) <= 3 and shares == sorted(shares, reverse=True)
            assert all(0.01 <= share <= 1 for share in shares)
            assert its.more == 0 or len(shares) == 3


def test_what_real_recordings_prove():
    slow = found(observe(read(SHAPES / "gpt_forward_fp32_math_shapes.json.gz")))
    assert slow[advice.CudaCoreMatmuls].share > 0.7
    assert slow[advice.MathAttention].count == 12  # 6 layers, 2 forwards
    gpt = found(observe(read(SHAPES / "gpt_forward_shapes.json.gz")))
    assert list(gpt) == [advice.LaunchBound]


def test_without_a_gpu_there_is_no_top(tmp_path):
    path = write(tmp_path, trace(forward(100, ("mul", "", 0)), device=None))
    its = top_of_region(observe(read(path)))
    assert (its.shares.whole, its.advice, its.more) == (0, (), 0)


def test_every_advice_has_words():
    """No finding without a sentence, and the figure in it."""
    samples = [
        advice.LaunchBound(0.5, 0.6, 10, 5e3, "aten::mm"), advice.DataLoader(0.5, 4, 10**6),
        advice.Compiling(0.5, 2), advice.Blocked(0.5, 3, "cudaStreamSynchronize", 2),
        advice.PageableCopies(0.5, 3, True), advice.PageableCopies(0.5, 1, False),
        advice.UnfusedOptimizer(0.5, "AdamW", 400, True), advice.CudaCoreMatmuls(0.5, 1),
        advice.MathAttention(0.5, 2, True, False), advice.LayoutChanges(0.5, 4),
        advice.Copies(0.5, 1, ("aten::clone",)), advice.Elementwise(0.5, 9),
        advice.ExposedCommunication(0.5, 0.9),
    ]  # fmt: skip
    assert {type(one) for one in samples} == set(advice.Advice.__args__)
    for one in samples:
        assert "50 %" in words.advice(one) and "→" in words.advice(one)
