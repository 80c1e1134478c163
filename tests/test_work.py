"""FLOP and bytes of an op from its shapes: by hand, by plain loops, and on real recordings."""

import json
import math
from itertools import product

import pytest
from build import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st

from common.read.trace import GpuEvent, Shapes, read
from common.read.work import FORMULAS, has_formula, plain, work_of, work_of_copy

BF16, FP32, LONG = "c10::BFloat16", "float", "long int"


def shapes(*inputs, strides=True) -> Shapes:
    """Inputs as (type, shape), or a value that is no tensor: as the profiler writes them."""
    dims, types, concrete, steps = [], [], [], []
    for one in inputs:
        if isinstance(one, tuple):
            kind, shape, *stride = one
            row = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
            dims.append(list(shape)), types.append(kind), concrete.append("")
            steps.append(list(stride[0]) if stride else row)
        else:
            kind = "ScalarList" if isinstance(one, list) else "" if one is None else "Scalar"
            dims.append([]), types.append(kind), steps.append([])
            concrete.append("" if one is None else str(one))
    texts = [json.dumps(part).encode() for part in (dims, types, concrete, steps)]
    return Shapes(*texts[:3], texts[3] if strides else b"")


def of(op, *inputs):
    return work_of(f"aten::{op}", shapes(*inputs))


def test_matmuls():
    a, b = (BF16, (64, 32)), (BF16, (32, 16))
    mm = of("mm", a, b)
    assert (mm.flop, mm.bytes, mm.dtype) == (
        2 * 64 * 32 * 16,
        2 * (64 * 32 + 32 * 16 + 64 * 16),
        "bf16",
    )
    addmm = of("addmm", (BF16, (16,)), a, b, 1, 1)
    assert (addmm.flop, addmm.bytes) == (mm.flop + 64 * 16, mm.bytes + 32)
    bmm = of("bmm", (FP32, (3, 64, 32)), (FP32, (3, 32, 16)))
    assert (bmm.flop, bmm.bytes, bmm.dtype) == (3 * mm.flop, 6 * mm.bytes, "fp32")
    assert of("mv", a, (BF16, (32,))).flop == 2 * 64 * 32
    assert of("_scaled_mm", ("c10::Float8_e4m3fn", (64, 32)), ("c10::Float8_e4m3fn", (32, 16))) == (
        type(mm)(mm.flop, None, "fp8")
    )  # of which type the result is, the inputs do not tell


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 6), st.integers(1, 6), st.booleans())
def test_attention_counts_the_pairs_that_the_mask_leaves(queries, keys, causal):
    q, k = (BF16, (2, 3, queries, 8)), (BF16, (2, 3, keys, 8))
    found = of("_scaled_dot_product_flash_attention", q, k, k, 0.0, causal, False, None)
    pairs = sum(not causal or key <= query for query, key in product(range(queries), range(keys)))
    assert found.flop == 2 * 3 * pairs * (2 * 8 + 2 * 8)
    assert found.bytes == 2 * 2 * 3 * 8 * (2 * queries + 2 * keys)


def test_attention_in_both_layouts_and_backward():
    q, heads_last = (BF16, (2, 3, 10, 8)), (BF16, (2, 10, 3, 8))
    forward = of("_scaled_dot_product_flash_attention", q, q, q, 0.0, False, False, None)
    inner = of("_flash_attention_forward", *[heads_last] * 3, None, None, 10, 10, 0.0, False, False)
    assert inner == forward
    stats = (FP32, (2, 3, 10))
    backward = of(
        "_scaled_dot_product_flash_attention_backward",
        q, q, q, q, q, stats, None, None, 10, 10, 0.0, False,
    )  # fmt: skip
    assert backward.flop == 2.5 * forward.flop  # five matmuls instead of two
    # Of sequences of different lengths nobody knows.
    starts = ("int", (3,))
    assert (
        of("_flash_attention_forward", *[heads_last] * 3, starts, starts, 10, 10, 0.0, False)
        is None
    )
    # Without values it is not known whether a mask halves it.
    none = Shapes(
        *list(shapes(q, q, q, 0.0, False).__getattribute__(f) for f in ("dims", "types")), b"", b""
    )
    bare = work_of("aten::_scaled_dot_product_flash_attention", none)
    assert bare.flop is None and bare.bytes == forward.bytes


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(0, 2), st.integers(1, 2), st.integers(1, 2),
)  # fmt: skip
def test_convolution_against_counting(kernel, stride, padding, dilation, groups):
    size, channels, outputs = 9, 4 * groups, 2 * groups
    x, weight = (FP32, (2, channels, size, size)), (FP32, (outputs, 4, kernel, kernel))
    out = len(range(0, size + 2 * padding - dilation * (kernel - 1), stride))
    pair = [[n, n] for n in (stride, padding, dilation)]
    found = of("convolution", x, weight, None, *pair, False, [0, 0], groups)
    assert found.flop == 2 * (2 * outputs * out * out) * (4 * kernel * kernel)
    assert (
        of("cudnn_convolution", x, weight, pair[1], pair[0], pair[2], groups, False).flop
        == found.flop
    )
    grad = (FP32, (2, outputs, out, out))
    both = of(
        "convolution_backward",
        grad,
        x,
        weight,
        [0],
        *pair,
        False,
        [0, 0],
        groups,
        [True, True, False],
    )
    one = of(
        "convolution_backward",
        grad,
        x,
        weight,
        [0],
        *pair,
        False,
        [0, 0],
        groups,
        [False, True, False],
    )
    assert (both.flop, one.flop) == (2 * found.flop, found.flop)


def test_a_transposed_convolution_multiplies_each_input():
    x, weight = (FP32, (2, 8, 5, 5)), (FP32, (8, 3, 2, 2))
    found = of("convolution", x, weight, None, [2, 2], [0, 0], [1, 1], True, [0, 0], 1)
    assert found.flop == 2 * (2 * 8 * 5 * 5) * 3 * 2 * 2
    assert found.bytes == 4 * (2 * 8 * 25 + 8 * 3 * 4 + 2 * 3 * 10 * 10)


def test_elementwise_reads_what_is_there_and_writes_the_result():
    a, row = (BF16, (8, 16)), (BF16, (16,))
    assert (of("add", a, a, 1).flop, of("add", a, a, 1).bytes) == (128, 2 * 3 * 128)
    assert of("mul", a, row).bytes == 2 * (128 + 16 + 128)
    assert of("add_", a, a, 1) == of("add", a, a, 1)
    assert of("add", a, ("double", ()), 1).bytes == 2 * 2 * 128  # a number is not moved
    assert of("add", a, (FP32, (8, 16)), 1).bytes == 2 * 128 + 4 * 128 + 4 * 128
    assert of("eq", a, a).bytes == 2 * 2 * 128 + 128
    assert of("masked_fill_", a, ("bool", (8, 16)), 0).bytes == 2 * 128 + 128 + 2 * 128
    assert of("mul", (BF16, (8, 1)), row).flop == 128
    assert of("mul", (BF16, (8, 3)), row) is None  # not of one shape
    expanded = (BF16, (8, 16), (0, 1))
    assert of("copy_", a, expanded, False).bytes == 2 * (16 + 128)


def test_sums_norms_and_rows():
    x = (FP32, (8, 16))
    assert of("sum", x, None).bytes == 4 * (128 + 1)
    assert of("mean", x, [-1], True, None).bytes == 4 * (128 + 8)
    assert of("argmax", x, 0, False).bytes == 4 * 128 + 8 * 16
    assert of("sum", x, [5], True, None) is None
    row = (FP32, (16,))
    assert of("native_layer_norm", x, [16], row, row, 1e-5).flop == 8 * 128
    assert of("native_layer_norm", x, [16], None, None, 1e-5).flop == 6 * 128
    assert of("native_batch_norm", x, None, None, row, row, False, 0.1, 1e-5).flop == 2 * 128
    assert of("_softmax", x, -1, False).bytes == 2 * 4 * 128
    table, ids = (BF16, (1000, 16)), (LONG, (5,))
    assert of("index_select", table, 0, ids).bytes == 2 * 2 * 5 * 16 + 5 * 8


@pytest.mark.parametrize("op", sorted(FORMULAS))
def test_what_is_not_as_expected_is_unknown_and_never_an_error(op):
    odd = (None, 3, [1, 2], (BF16, ()), (BF16, (0, 4)), (FP32, (2, 3)), (LONG, (1, 2, 3, 4)))
    for count in range(4):
        for inputs in product(odd, repeat=count):
            found = of(op, *inputs)
            assert found is None or (found.flop or 0) >= 0 <= (found.bytes or 0)
    for text in (b"", b"{}", b"[1, 2]", b"null", b'["x"]', b"[[1e400]]", b"[[-1]]", b"[[[[]]]]"):
        assert work_of(op, Shapes(text, text, text, text)) is None
    huge = (BF16, (1 << 40, 1 << 40))
    assert of(op, huge, huge, huge) is None


def test_names():
    assert plain("aten::add_") == "add" and has_formula("aten::mul_")
    assert not has_formula("vllm::mm") and work_of("vllm::mm", shapes((BF16, (2, 2)))) is None
    assert work_of("aten::mm", None) is None


def gpu(sort, name, size):
    return GpuEvent(sort, name, 0, 1, 0, 7, 1, 1, None, None, None, None, None, size)


def test_copies_tell_their_bytes():
    assert work_of_copy(gpu("copy", "Memcpy DtoD (Device -> Device)", 100)).bytes == 200
    to_host = work_of_copy(gpu("copy", "Memcpy DtoH (Device -> Pageable)", 100))
    assert (to_host.bytes, to_host.memory) == (100, False)
    assert work_of_copy(gpu("memset", "Memset (Device)", 100)).bytes == 100
    assert work_of_copy(gpu("copy", "Memcpy DtoD (Device -> Device)", None)) is None


def test_against_an_independent_count_of_a_recording():
    """GEMMs of a GPT, from its sizes alone: 6 layers of width 768, 8 sequences of 512 tokens, 8192
    words, 3 forwards."""
    trace = read(ROOT / "tests" / "data" / "shapes" / "gpt_forward_shapes.json.gz")
    tokens, width, words = 8 * 512, 768, 8192
    layer = 12 * width * width  # weights: 3 + 1 + 4 + 4
    biases = 6 * tokens * (3 + 1 + 4 + 1) * width
    expected = 3 * (2 * tokens * (6 * layer + width * words) + biases)
    gemms = ("aten::mm", "aten::addmm")
    assert sum(work_of(op.name, op.shapes).flop for op in trace.ops if op.name in gemms) == expected
