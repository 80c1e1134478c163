"""What an op must compute and move, from the shapes of its inputs.

How to read this file: `work_of` looks its op up in `FORMULAS`. A formula counts what the result
needs and no more: every input read once, the output written once, each element of a broadcast or
expanded tensor once. Kernels move more where caches do not help, so a rate is one of useful bytes;
one above the memory's peak says that the data came from a cache, or that the shapes do not tell.

    matmul          2·M·N·K: a multiplication and an addition for each product; 1 for each bias
    attention       two matmuls, of the pairs of query and key that a causal mask leaves; backward
                    five: the scores again, and dV, dP, dQ, dK (Dao, "FlashAttention-2", 2023)
    convolution     2 · outputs · input channels of a group · size of the kernel; so each gradient
    normalization   for each element: mean 1, variance 3, normalise 2, weight 1, bias 1
    softmax         for each element 5: maximum, subtract, exp, add, divide
    elementwise     1 for each element of the result, whatever the function
    copies          none; read once, written once

None is unknown: no formula, a type without a size, values that the profiler left out.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from .trace import GpuEvent, Shapes

# Bytes of an element, and the type's short name, by the profiler's name of it.
TYPES: dict[str, tuple[int, str]] = {
    "c10::BFloat16": (2, "bf16"),
    "c10::Half": (2, "fp16"),
    "float": (4, "fp32"),
    "double": (8, "fp64"),
    "c10::complex<float>": (8, "complex64"),
    "c10::complex<double>": (16, "complex128"),
    "c10::Float8_e4m3fn": (1, "fp8"),
    "c10::Float8_e5m2": (1, "fp8"),
    "c10::Float8_e4m3fnuz": (1, "fp8"),
    "c10::Float8_e5m2fnuz": (1, "fp8"),
    "long int": (8, "int64"),
    "long": (8, "int64"),
    "long long": (8, "int64"),
    "__int64": (8, "int64"),
    "int": (4, "int32"),
    "short int": (2, "int16"),
    "short": (2, "int16"),
    "signed char": (1, "int8"),
    "unsigned char": (1, "uint8"),
    "bool": (1, "bool"),
}
MOST = 1 << 62  # of a number of elements that anybody has


@dataclass(frozen=True, slots=True)
class Work:
    """Of one run of an op. None is unknown."""

    flop: float | None
    bytes: float | None
    dtype: str | None  # of what is computed with
    memory: bool = True  # whether the bytes are the GPU's own; else they came over the bus


@dataclass(frozen=True, slots=True)
class Tensor:
    shape: tuple[int, ...]
    size: int  # bytes of an element
    dtype: str
    strides: tuple[int, ...] = ()

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Of what is in memory: along an expanded dimension there is one element."""
        if len(self.strides) != len(self.shape):
            return self.elements * self.size
        there = (
            n if stride or not n else 1 for n, stride in zip(self.shape, self.strides, strict=True)
        )
        return math.prod(there) * self.size


class Unknown(Exception):
    """The shapes do not tell what a formula asks for."""


@dataclass(frozen=True)
class Inputs:
    """Of an op, decoded."""

    dims: list[Any]
    types: list[Any]
    concrete: list[Any]
    strides: list[Any]

    def is_tensor(self, at: int) -> bool:
        if at >= len(self.types) or not isinstance(kind := self.types[at], str):
            return False
        return kind in TYPES and _sizes(self.dims[at]) is not None

    def tensor(self, at: int, rank: int | None = None) -> Tensor:
        if not self.is_tensor(at):
            raise Unknown
        shape = _sizes(self.dims[at]) or ()
        if rank is not None and len(shape) != rank:
            raise Unknown
        size, dtype = TYPES[self.types[at]]
        strides = _sizes(self.strides[at]) if at < len(self.strides) else None
        return Tensor(shape, size, dtype, strides or ())

    @property
    def tensors(self) -> list[Tensor]:
        return [self.tensor(at) for at in range(len(self.types)) if self.is_tensor(at)]

    def value(self, at: int) -> Any:
        """Of what is no tensor: a number, a truth value, a list of them; None where it is empty."""
        if at >= len(self.concrete):
            raise Unknown
        text = self.concrete[at]
        if not isinstance(text, str):
            raise Unknown
        if text in ("True", "False"):
            return text == "True"
        if not text:
            return None
        try:
            return msgspec.json.decode(text.replace("True", "true").replace("False", "false"))
        except msgspec.DecodeError:
            raise Unknown from None

    def truth(self, at: int) -> bool:
        value = self.value(at)
        if not isinstance(value, bool):
            raise Unknown
        return value

    def numbers(self, at: int, count: int) -> list[int]:
        """A list of one for each dimension; one alone stands for all."""
        value = self.value(at)
        if not isinstance(value, list) or not all(type(n) is int for n in value):
            raise Unknown
        if len(value) == 1:
            value = value * count
        if len(value) != count:
            raise Unknown
        return value


def _sizes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(type(n) is int and 0 <= n < MOST for n in value):
        return None
    return tuple(value)


Formula: TypeAlias = Callable[[Inputs], Work]


@lru_cache(maxsize=1 << 16)
def work_of(op: str, shapes: Shapes | None) -> Work | None:
    """What one run of an op computes and moves; None where nobody can tell."""
    formula = FORMULAS.get(plain(op))
    if formula is None or shapes is None:
        return None
    try:
        found = formula(_decoded(shapes))
    except Unknown:
        return None
    big = max(found.flop or 0, found.bytes or 0)
    return found if big < MOST else None


def has_formula(op: str) -> bool:
    return plain(op) in FORMULAS


@lru_cache(maxsize=8192)
def plain(op: str) -> str:
    """Without its namespace, and without the mark of an op in place."""
    name = op.removeprefix("aten::")
    return name.removesuffix("_") if "::" not in name else name


def work_of_copy(event: GpuEvent) -> Work | None:
    """Of a copy or memset, which carries its bytes. One between two places of a GPU reads and
    writes them."""
    if event.bytes is None or event.sort == "kernel":
        return None
    if event.sort == "memset":
        return Work(0, event.bytes, None)
    if "DtoD" in event.name or "Device -> Device" in event.name:
        return Work(0, 2 * event.bytes, None)
    return Work(0, event.bytes, None, memory=False)


def _decoded(shapes: Shapes) -> Inputs:
    lists = []
    for text in (shapes.dims, shapes.types, shapes.concrete, shapes.strides):
        try:
            value = msgspec.json.decode(text) if text else []
        except (msgspec.DecodeError, RecursionError):
            value = []
        lists.append(value if isinstance(value, list) else [])
    inputs = Inputs(*lists)
    if len(inputs.dims) != len(inputs.types):
        raise Unknown
    return inputs


# ── Matmul ────────────────────────────────────────────────────────────────────────────────────────


def _product(
    a: Tensor, b: Tensor, m: int, n: int, k: int, batch: int = 1, bias: Tensor | None = None
) -> Work:
    out = batch * m * n
    moved = a.bytes + b.bytes + out * a.size + (bias.bytes if bias else 0)
    return Work(2 * out * k + (out if bias else 0), moved, a.dtype)


def _mm(at: int, bias: int | None = None) -> Formula:
    def formula(inputs: Inputs) -> Work:
        a, b = inputs.tensor(at, 2), inputs.tensor(at + 1, 2)
        (m, k), (same, n) = a.shape, b.shape
        _require(k == same)
        return _product(a, b, m, n, k, bias=_maybe(inputs, bias))

    return formula


def _bmm(at: int, bias: int | None = None) -> Formula:
    def formula(inputs: Inputs) -> Work:
        a, b = inputs.tensor(at, 3), inputs.tensor(at + 1, 3)
        (batch, m, k), (others, same, n) = a.shape, b.shape
        _require(k == same and batch == others)
        return _product(a, b, m, n, k, batch, _maybe(inputs, bias))

    return formula


def _mv(at: int, bias: int | None = None) -> Formula:
    def formula(inputs: Inputs) -> Work:
        a, b = inputs.tensor(at, 2), inputs.tensor(at + 1, 1)
        (m, k), (same,) = a.shape, b.shape
        _require(k == same)
        return _product(a, b, m, 1, k, bias=_maybe(inputs, bias))

    return formula


def _dot(inputs: Inputs) -> Work:
    a, b = inputs.tensor(0, 1), inputs.tensor(1, 1)
    _require(a.shape == b.shape)
    return _product(a, b, 1, 1, a.shape[0])


def _mm_of_another_type(at: int) -> Formula:
    """Its result is of a type that the inputs do not tell."""

    def formula(inputs: Inputs) -> Work:
        found = _mm(at)(inputs)
        return Work(found.flop, None, found.dtype)

    return formula


def _linear(inputs: Inputs) -> Work:
    a, b = inputs.tensor(0), inputs.tensor(1, 2)
    _require(bool(a.shape) and a.shape[-1] == b.shape[1])
    n, k = b.shape
    return _product(a, b, a.elements // k if k else 0, n, k, bias=_maybe(inputs, 2))


def _maybe(inputs: Inputs, at: int | None) -> Tensor | None:
    return inputs.tensor(at) if at is not None and inputs.is_tensor(at) else None


def _require(holds: bool) -> None:
    if not holds:
        raise Unknown


# ── Attention ─────────────────────────────────────────────────────────────────────────────────────


def _attention(
    causal: int, heads_first: bool = True, backward: bool = False, lengths: Sequence[int] = ()
) -> Formula:
    """`causal`: which input says so, a truth value or the number of a mask's kind; `lengths`: the
    inputs that hold where sequences of different lengths begin: then nobody knows."""

    def formula(inputs: Inputs) -> Work:
        first = 1 if backward else 0
        q, k, v = (inputs.tensor(first + n, 4) for n in range(3))
        if any(inputs.is_tensor(at) for at in lengths):
            raise Unknown
        rows, heads = (2, 1) if heads_first else (1, 2)
        batch, queries, keys = q.shape[0], q.shape[rows], k.shape[rows]
        size, values = q.shape[3], v.shape[3]
        out = batch * q.shape[heads] * queries * values * q.size
        read = q.bytes + k.bytes + v.bytes
        moved = read + out
        if backward:  # the output and its gradient are read, three gradients written
            moved = read + 2 * out + (q.elements + k.elements + v.elements) * q.size
        try:
            masked = inputs.value(causal)
        except Unknown:
            return Work(None, moved, q.dtype)
        if not isinstance(masked, int):  # a truth value is one
            return Work(None, moved, q.dtype)
        pairs = queries * keys
        if masked:  # query i sees the keys up to i
            least = min(queries, keys)
            pairs = least * (least + 1) // 2 + (queries - least) * keys
        width = 3 * size + 2 * values if backward else size + values
        return Work(2 * batch * q.shape[heads] * pairs * width, moved, q.dtype)

    return formula


# ── Convolution ───────────────────────────────────────────────────────────────────────────────────


def _conv(
    stride: int, padding: int, dilation: int, groups: int, transposed: int | bool = False,
    output_padding: int | None = None, bias: int | None = None,
) -> Formula:  # fmt: skip
    """By which input says what; `transposed` may be known beforehand."""

    def formula(inputs: Inputs) -> Work:
        x, weight = inputs.tensor(0), inputs.tensor(1)
        count = len(x.shape) - 2
        _require(count >= 1 and len(weight.shape) == count + 2)
        turned = transposed if isinstance(transposed, bool) else inputs.truth(transposed)
        steps, pads, holes = (inputs.numbers(at, count) for at in (stride, padding, dilation))
        parts = inputs.value(groups)
        _require(type(parts) is int and parts > 0 and all(step > 0 for step in steps))
        kernel = weight.shape[2:]
        if turned:
            more = [0] * count if output_padding is None else inputs.numbers(output_padding, count)
            out = [
                (n - 1) * step - 2 * pad + hole * (k - 1) + extra + 1
                for n, step, pad, hole, k, extra in zip(
                    x.shape[2:], steps, pads, holes, kernel, more, strict=True
                )
            ]
            channels = weight.shape[1] * parts
        else:
            out = [
                (n + 2 * pad - hole * (k - 1) - 1) // step + 1
                for n, step, pad, hole, k in zip(
                    x.shape[2:], steps, pads, holes, kernel, strict=True
                )
            ]
            channels = weight.shape[0]
        _require(all(n > 0 for n in out))
        written = x.shape[0] * channels * math.prod(out)
        added = _maybe(inputs, bias)
        moved = x.bytes + weight.bytes + written * x.size + (added.bytes if added else 0)
        return Work(_multiplied(x.shape, weight.shape, written, turned), moved, x.dtype)

    return formula


def _multiplied(x: Sequence[int], weight: Sequence[int], written: int, turned: bool) -> int:
    """Each output element takes a product for every input channel of its group and place of the
    kernel; transposed, each input element gives one for every output channel."""
    return 2 * (math.prod(x) if turned else written) * math.prod(weight[1:])


def _conv_backward(inputs: Inputs) -> Work:
    grad, x, weight = (inputs.tensor(at) for at in range(3))
    turned, wanted = inputs.truth(7), inputs.value(10)
    _require(isinstance(wanted, list) and len(wanted) == 3 and len(x.shape) > 2)
    each = _multiplied(x.shape, weight.shape, grad.elements, turned)
    moved = 0
    if wanted[0]:
        moved += grad.bytes + weight.bytes + x.elements * x.size
    if wanted[1]:
        moved += grad.bytes + x.bytes + weight.elements * weight.size
    return Work(each * (bool(wanted[0]) + bool(wanted[1])), moved, x.dtype)


# ── Normalization, softmax, reductions ────────────────────────────────────────────────────────────


def _norm(each: int, weight: int, bias: int | None = None, training: int | None = None) -> Formula:
    """`each`: operations an element, without weight and bias. Batch norm evaluated only scales."""

    def formula(inputs: Inputs) -> Work:
        x = inputs.tensor(0)
        count = each
        if training is not None and not inputs.truth(training):
            count = 2
        affine = [at for at in (weight, bias) if at is not None and inputs.is_tensor(at)]
        moved = x.bytes + x.elements * x.size + sum(inputs.tensor(at).bytes for at in affine)
        return Work((count + len(affine)) * x.elements, moved, x.dtype)

    return formula


def _norm_backward(x: int) -> Formula:
    """Reads the gradient and the input, writes the input's gradient. Nobody counts its operations
    alike."""

    def formula(inputs: Inputs) -> Work:
        grad, of = inputs.tensor(0), inputs.tensor(x)
        return Work(None, grad.bytes + of.bytes + of.elements * of.size, of.dtype)

    return formula


def _softmax(inputs: Inputs) -> Work:
    x = inputs.tensor(0)
    size = 4 if inputs.value(2) is True else x.size  # half_to_float
    return Work(5 * x.elements, x.bytes + x.elements * size, x.dtype)


def _softmax_backward(inputs: Inputs) -> Work:
    grad, out = inputs.tensor(0), inputs.tensor(1)
    return Work(4 * out.elements, grad.bytes + out.bytes + out.elements * out.size, out.dtype)


def _reduce(size: int | None = None) -> Formula:
    """`size`: bytes of an element of the result, where it is not that of the input."""

    def formula(inputs: Inputs) -> Work:
        x = inputs.tensor(0)
        dims = inputs.value(1) if len(inputs.types) > 1 else None
        if type(dims) is int:
            dims = [dims]
        if dims is None or dims == []:
            dims = list(range(len(x.shape)))
        rank = len(x.shape)
        _require(isinstance(dims, list) and all(type(d) is int and -rank <= d < rank for d in dims))
        gone = {d % rank for d in dims} if rank else set()
        left = math.prod(n for d, n in enumerate(x.shape) if d not in gone)
        return Work(x.elements, x.bytes + left * (size or x.size), x.dtype)

    return formula


# ── Elementwise, copies, indices ──────────────────────────────────────────────────────────────────


def _elementwise(size: int | None = None, each: int = 1) -> Formula:
    """Of all tensors among the inputs, broadcast to one shape; the result has the type of the
    widest that is no single number, or `size` bytes an element."""

    def formula(inputs: Inputs) -> Work:
        tensors = inputs.tensors
        _require(bool(tensors))
        shape = _broadcast([tensor.shape for tensor in tensors])
        wide = max((t for t in tensors if t.shape), key=lambda t: (_rank(t), t.size), default=None)
        wide = wide or max(tensors, key=lambda t: (_rank(t), t.size))
        count = math.prod(shape)
        moved = sum(tensor.bytes for tensor in tensors if tensor.shape)
        return Work(each * count, moved + count * (size or wide.size), wide.dtype)

    return formula


def _rank(tensor: Tensor) -> int:
    """Types of truth give way to whole numbers, these to others."""
    return 0 if tensor.dtype == "bool" else 1 if "int" in tensor.dtype else 2


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(map(len, shapes))
    whole = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    found = []
    for sizes in zip(*whole, strict=True):
        wide = {n for n in sizes if n != 1}
        _require(len(wide) < 2)
        found.append(wide.pop() if wide else 1)
    return tuple(found)


def _copy(inputs: Inputs) -> Work:
    to, source = inputs.tensor(0), inputs.tensor(1)
    return Work(0, source.bytes + to.elements * to.size, to.dtype)


def _fill(inputs: Inputs) -> Work:
    to = inputs.tensor(0)
    return Work(0, to.elements * to.size, to.dtype)


def _dropout(inputs: Inputs) -> Work:
    x = inputs.tensor(0)
    return Work(x.elements, x.bytes + x.elements * (x.size + 1), x.dtype)  # and a mask of bytes


def _index_select(inputs: Inputs) -> Work:
    x, dim, index = inputs.tensor(0), inputs.value(1), inputs.tensor(2)
    _require(type(dim) is int and bool(x.shape) and -len(x.shape) <= dim < len(x.shape))
    _require(x.shape[dim] > 0)
    moved = x.elements // x.shape[dim] * index.elements
    return Work(0, 2 * moved * x.size + index.bytes, x.dtype)


def _gather(inputs: Inputs) -> Work:
    x, index = inputs.tensor(0), inputs.tensor(2)
    return Work(0, 2 * index.elements * x.size + index.bytes, x.dtype)


# ── Which op has which ────────────────────────────────────────────────────────────────────────────

_UNARY = """
    abs neg exp log log2 log10 log1p expm1 sqrt rsqrt square reciprocal sin cos tan tanh sigmoid erf
    erfc floor ceil round trunc sign relu gelu silu mish elu selu leaky_relu hardtanh hardswish
    hardsigmoid softplus log_sigmoid relu6 clamp clamp_min clamp_max bitwise_not tril triu
    nan_to_num
"""
_BINARY = """
    add sub rsub mul div true_divide pow maximum minimum fmod remainder atan2 bitwise_and bitwise_or
    bitwise_xor where addcmul addcdiv lerp masked_fill sigmoid_backward tanh_backward silu_backward
    gelu_backward threshold_backward hardtanh_backward hardswish_backward leaky_relu_backward
    elu_backward
"""
_COMPARE = "eq ne lt le gt ge logical_and logical_or logical_not logical_xor isnan isinf isfinite"

FORMULAS: dict[str, Formula] = {
    "mm": _mm(0),
    "addmm": _mm(1, 0),
    "_addmm_activation": _mm(1, 0),
    "bmm": _bmm(0),
    "baddbmm": _bmm(1, 0),
    "mv": _mv(0),
    "addmv": _mv(1, 0),
    "dot": _dot,
    "vdot": _dot,
    "_int_mm": _mm_of_another_type(0),
    "_scaled_mm": _mm_of_another_type(0),
    "mkldnn_linear": _linear,
    # SDPA's kernels
    "_scaled_dot_product_flash_attention": _attention(4),
    "_scaled_dot_product_flash_attention_for_cpu": _attention(4),
    "_scaled_dot_product_efficient_attention": _attention(6),
    "_scaled_dot_product_cudnn_attention": _attention(6),
    "_cudnn_attention_forward": _attention(10, lengths=(4, 5)),
    "_flash_attention_forward": _attention(8, heads_first=False, lengths=(3, 4)),
    "_efficient_attention_forward": _attention(9, heads_first=False, lengths=(4, 5)),
    "_scaled_dot_product_flash_attention_backward":
        _attention(11, backward=True, lengths=(6, 7)),
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention(7, backward=True),
    "_scaled_dot_product_efficient_attention_backward": _attention(11, backward=True),
    "_scaled_dot_product_cudnn_attention_backward":
        _attention(14, backward=True, lengths=(9, 10)),
    "_cudnn_attention_backward": _attention(14, backward=True, lengths=(9, 10)),
    "_flash_attention_backward":
        _attention(11, heads_first=False, backward=True, lengths=(6, 7)),
    "_efficient_attention_backward":
        _attention(14, heads_first=False, backward=True, lengths=(6, 7)),
    # Convolutions
    "convolution": _conv(3, 4, 5, 8, 6, 7, bias=2),
    "_convolution": _conv(3, 4, 5, 8, 6, 7, bias=2),
    "cudnn_convolution": _conv(3, 2, 4, 5),
    "cudnn_convolution_transpose": _conv(4, 2, 5, 6, True, 3),
    "miopen_convolution": _conv(4, 3, 5, 6, bias=2),
    "miopen_convolution_transpose": _conv(5, 3, 6, 7, True, 4, bias=2),
    "mkldnn_convolution": _conv(4, 3, 5, 6, bias=2),
    "convolution_backward": _conv_backward,
    # Normalizations
    "native_layer_norm": _norm(6, 2, 3),
    "native_group_norm": _norm(6, 1, 2),
    "native_batch_norm": _norm(6, 1, 2, training=5),
    "cudnn_batch_norm": _norm(6, 1, 2, training=5),
    "miopen_batch_norm": _norm(6, 1, 2, training=5),
    "_fused_rms_norm": _norm(3, 2),
    "native_layer_norm_backward": _norm_backward(1),
    "native_group_norm_backward": _norm_backward(1),
    "native_batch_norm_backward": _norm_backward(1),
    "cudnn_batch_norm_backward": _norm_backward(0),
    "miopen_batch_norm_backward": _norm_backward(0),
    "_fused_rms_norm_backward": _norm_backward(1),
    "_softmax": _softmax,
    "_log_softmax": _softmax,
    "_softmax_backward_data": _softmax_backward,
    "_log_softmax_backward_data": _softmax_backward,
    # Reductions
    **dict.fromkeys("sum mean amax amin prod nansum logsumexp".split(), _reduce()),
    **dict.fromkeys("all any".split(), _reduce(1)),
    **dict.fromkeys("argmax argmin".split(), _reduce(8)),
    # Elementwise, and what only moves
    **dict.fromkeys((_UNARY + " " + _BINARY).split(), _elementwise()),
    **dict.fromkeys(_COMPARE.split(), _elementwise(1)),
    "native_dropout": _dropout,
    "copy": _copy,
    **dict.fromkeys("fill zero".split(), _fill),
    "index_select": _index_select,
    "gather": _gather,
}  # fmt: skip
