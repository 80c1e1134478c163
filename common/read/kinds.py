"""The kind of a step, one word: matmul, softmax, conv, communication…

How to read this file: `KINDS` says which ops do what, `WORDS` which words in the function name of a
library's kernel do. `kind_of_step` asks in the order in which the answers can be trusted:

    1  the kernel's family, where all its kernels do one thing (`families`); a GEMM, though, may be
       a part of a convolution (`PART_OF`)
    2  the kernel's own function name, where it comes from a library that names kernels for their
       work
    3  the CPU ops that launched it, from the innermost outwards; an op may be a part of another one
    4  the names of those families whose kernels serve any op (ATen's elementwise ones, CUB); before
       the ops where these are done by a library (`BY_LIBRARIES`)

What is not known stays `other`: a wrong word is worse than none. Backward ops go by the forward's
name: `aten::silu_backward` and `SiluBackward0` are silu's.
"""

import re
from functools import lru_cache

from .families import FAMILIES
from .kernel_names import KernelName, decode

# What an op does, in a word. In-place forms (mul_) and backward forms need no entry of their own.
KINDS = {
    "matmul": (
        "mm bmm addmm baddbmm addbmm matmul linear mv addmv dot vdot einsum _scaled_mm _int_mm "
        "_grouped_mm _scaled_grouped_mm _addmm_activation _weight_int4pack_mm _weight_int8pack_mm "
        "_cslt_sparse_mm mkldnn_linear"
    ),
    "attention": (
        "_flash_attention_forward _efficient_attention_forward _cudnn_attention_forward "
        "_scaled_dot_product_flash_attention_for_cpu flex_attention _flash_attention "
        "_efficient_attention _cudnn_attention _scaled_dot_product_flash_attention "
        "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
        "_scaled_dot_product_fused_attention_overrideable"
    ),
    "mask": "masked_fill",
    "softmax": "softmax _softmax _safe_softmax log_softmax _log_softmax _masked_softmax",
    "mul": "mul",
    "div": "div true_divide",
    "add": "add",
    "sub": "sub rsub",
    "exp": "exp exp2",
    "copy": (
        "copy_ clone contiguous direct_copy copy split_with_sizes_copy slice_scatter "
        "select_scatter all_gather_copy_in"
    ),
    "cast": "_to_copy to",
    "fill": "fill_ zero_ fill ones zeros full scalar_tensor arange linspace eye",
    "where": "where",
    "triu": "triu tril",
    "reduce": (
        "sum mean amax max min amin any all prod norm linalg_vector_norm std var var_mean std_mean "
        "argmax argmin logsumexp nansum aminmax count_nonzero lp_norm l2_norm"
    ),
    "compare": (
        "isneginf isposinf isnan isinf isfinite eq ne lt le gt ge equal logical_not logical_and "
        "logical_or logical_xor bitwise_and bitwise_or bitwise_xor bitwise_not"
    ),
    "cat": "cat _chunk_cat chunk_cat stack",
    "conv": (
        "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution "
        "_convolution cudnn_convolution cudnn_convolution_transpose cudnn_convolution_relu "
        "cudnn_convolution_add_relu miopen_convolution miopen_convolution_transpose "
        "miopen_convolution_relu miopen_depthwise_convolution mkldnn_convolution "
        "convolution_overrideable _conv_depthwise2d conv_depthwise3d slow_conv2d _slow_conv2d "
        "_slow_conv2d_forward slow_conv3d slow_conv3d_forward slow_conv_transpose2d "
        "slow_conv_transpose3d thnn_conv2d"
    ),
    "embedding": "embedding embedding_dense embedding_sparse embedding_bag _embedding_bag "
    "_embedding_bag_dense embedding_renorm",
    "normalization": (
        "layer_norm native_layer_norm group_norm native_group_norm batch_norm native_batch_norm "
        "_batch_norm_impl_index _native_batch_norm_legit _batch_norm_with_update cudnn_batch_norm "
        "miopen_batch_norm batch_norm_stats batch_norm_elemt batch_norm_update_stats "
        "batch_norm_gather_stats_with_counts instance_norm rms_norm _fused_rms_norm _weight_norm "
        "_weight_norm_interface"
    ),
    "activation": (
        "relu relu6 gelu silu mish elu selu celu leaky_relu prelu _prelu_kernel hardtanh hardswish "
        "hardsigmoid sigmoid tanh log_sigmoid softplus threshold glu hardshrink softshrink swish"
    ),
    "pool": (
        "max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices "
        "max_pool1d_with_indices avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d "
        "adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d _adaptive_avg_pool3d "
        "adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d"
    ),
    "resize": (
        "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d "
        "_upsample_nearest_exact2d _upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d "
        "upsample_trilinear3d upsample_bicubic2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa "
        "grid_sampler_2d grid_sampler_3d"
    ),
    "random": (
        "native_dropout _fused_dropout bernoulli uniform normal exponential cauchy log_normal "
        "geometric poisson multinomial random rand randn randint randperm rand_like randn_like "
        "randint_like"
    ),
    "index": (
        "index index_select index_put _index_put_impl _unsafe_index _unsafe_index_put gather "
        "scatter scatter_add scatter_reduce index_add index_copy index_fill index_reduce take put "
        "masked_select masked_scatter nonzero"
    ),
    "sort": "sort argsort topk msort kthvalue unique_dim _unique2 unique_consecutive",
    "scan": "cumsum cumprod cummax cummin _cummax_helper _cummin_helper logcumsumexp _logcumsumexp",
    "rnn": (
        "_cudnn_rnn miopen_rnn mkldnn_rnn_layer _thnn_fused_lstm_cell _thnn_fused_gru_cell lstm gru"
    ),
    "fft": "_fft_r2c _fft_c2r _fft_c2c fft_fft fft_ifft fft_rfft fft_irfft fft_fft2 fft_ifft2",
    "loss": (
        "nll_loss nll_loss_forward nll_loss2d nll_loss2d_forward cross_entropy_loss mse_loss mse "
        "l1_loss smooth_l1_loss huber_loss binary_cross_entropy kl_div _ctc_loss ctc_loss"
    ),
    "optimizer": (
        "_fused_adam _fused_adamw _fused_sgd _fused_adagrad "
        "_amp_foreach_non_finite_check_and_unscale _amp_update_scale"
    ),
    "communication": (
        "record_param_comms all_reduce all_gather_into_tensor reduce_scatter_tensor "
        "all_to_all_single wait_tensor"
    ),
    "routing": "get_dispatch_layout",  # of tokens to experts
    "math": (
        "pow sqrt rsqrt square abs neg sin cos tan sinh cosh asin acos atan atan2 log log2 log10 "
        "log1p expm1 reciprocal clamp clamp_min clamp_max clamp_scalar clip floor ceil round trunc "
        "frac sign sgn erf erfc erfinv remainder fmod floor_divide maximum minimum fmin fmax "
        "nan_to_num logit addcmul addcdiv lerp polar angle pow_tensor_scalar pow_tensor_tensor"
    ),
}
KIND_OF_OP = {op: kind for kind, ops in KINDS.items() for op in ops.split()}

# Kinds that no op is named for: of kernels alone.
_OF_KERNELS = ("rope", "quantize")

# Every word that a guess may use.
VOCABULARY = (*KINDS, *_OF_KERNELS, "memset", "fused", "other")

# These do nothing themselves: matmul calls bmm, masked_fill clones and then fills.
CALLS_OTHERS = frozenset(
    f"aten::{op}"
    for op in (
        "matmul linear masked_fill softmax _safe_softmax log_softmax contiguous clone to _to_copy "
        "ones zeros full scalar_tensor einsum conv1d conv2d conv3d conv_transpose1d "
        "conv_transpose2d conv_transpose3d convolution _convolution thnn_conv2d layer_norm "
        "group_norm batch_norm _batch_norm_impl_index instance_norm rms_norm embedding_bag "
        "max_pool1d max_pool2d adaptive_avg_pool1d adaptive_avg_pool2d rand randn randint randperm "
        "rand_like randn_like arange index_put index_put_ masked_select argsort lstm gru "
        "cross_entropy_loss nll_loss norm mse_loss l1_loss stack"
    ).split()
)

# What may be a part of what: a GEMM is how some library does a convolution, relu calls clamp, an
# embedding index_select, a cast copy_. The op further out then names the step.
PART_OF = {
    "matmul": frozenset({"conv", "rnn"}),
    "math": frozenset({"activation"}),
    "index": frozenset({"embedding"}),
    "copy": frozenset({"cast"}),
}

# A library or a template does these. An elementwise kernel beside them does something else, and
# where Inductor names it after them they only say what it is fused behind:
# triton_poi_fused_addmm_gelu is a gelu.
BY_LIBRARIES = frozenset(("matmul", "attention", "conv", "rnn", "fft", "communication"))

# Work that Tensor Cores may do: of others (a normalization, a sort) nobody asks. None: unknown.
MAY_USE_TENSOR_CORES = frozenset(
    ("matmul", "attention", "conv", "rnn", "fft", "scan", "fused", None)
)

# Ops of other namespaces than aten, by the start of their name.
_OF_NAMESPACE = (
    ("c10d::", "communication"),
    ("_c10d_functional::", "communication"),
    ("symm_mem::", "communication"),
    ("fbgemm::split_embedding_codegen_lookup", "embedding"),
    ("fbgemm::dense_embedding_codegen_lookup", "embedding"),
    ("fbgemm::asynchronous_", "scan"),
    ("fbgemm::permute_", "index"),
    ("fbgemm::block_bucketize", "index"),
    ("torch::autograd::CppNode<SplitLookup", "embedding"),
    ("torch::autograd::CppNode<fbgemm_gpu::Permute", "index"),
)

# The function names of library kernels, in the order of what weighs most in a kernel that does two
# things: an all-reduce that normalizes on its way communicates.
_B, _E = r"(?<![a-z])", r"(?![a-z])"  # words begin and end
WORDS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "communication",
            r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device_reduce|_a2a_",
        ),
        ("index", r"(?:and|store|write|append|gather)\w*cache|kv_buffer|kv_indices"),
        ("attention", rf"attention|{_B}attn{_E}|fmha|{_B}mla{_E}|flash_(?:fwd|bwd)|merge_states?"),
        ("conv", rf"{_B}conv(?:[123]d|olution)?(?![a-z0-9])|winograd|[dw]grad|im2(?:d2)?_?col"),
        ("rnn", rf"{_B}(?:lstm|gru|rnn){_E}"),
        ("fused", rf"norm\w*{_B}(?:m?rope|rotary)|{_B}(?:m?rope|rotary)\w*norm"),
        ("matmul", rf"gemm|gemv|mat_?mul|{_B}b?mm{_E}|fused_moe{_E}|{_B}fmoe{_E}"),
        (
            "normalization",
            r"(?:rms|layer|group|batch|qk|instance|weight|l2)[_ ]?norm|"
            rf"{_B}[lb]n_(?:fwd|bwd|fw|bw)",
        ),
        ("rope", rf"rotary|{_B}m?rope{_E}"),
        ("optimizer", rf"{_B}(?:adam|adamw|lamb|sgd|adagrad|lion){_E}|optimizer"),
        ("loss", r"cross_entropy|nll_loss|mse_loss"),
        (
            "routing",
            rf"{_B}moe{_E}|expert|routing|router|gating|finalize|bitmatrix|expand_input_rows|"
            r"to_fused|reduce_fused|fused_mapping",
        ),
        ("activation", rf"act_and_mul|{_B}(?:silu|gelu|swiglu|geglu|relu|mish){_E}"),
        ("quantize", r"quant|fp8|cast_(?:and_)?transpose|cast_back|qparam"),
        ("softmax", r"soft_?max"),
        ("compare", rf"{_B}compare"),
        ("random", r"sampling|dropout|distribution_elementwise|bernoulli"),
        ("pool", r"pool(?!ed)"),
        ("resize", r"upsample"),
        ("sort", rf"{_B}sort|radix_?(?:sort|find)|merge_?sort|onesweep|{_B}top_?k{_E}"),
        ("scan", r"scan|cum_?sum|prefix_sum|state_passing|chunk_state|delta_rule"),
        ("embedding", r"embedding"),
        ("index", r"gather|scatter|index|indices|permute|bucketize"),
        ("reduce", rf"{_B}(?:device_?)?reduce"),
        ("copy", r"copy|transpose|nchw|nhwc"),
    )
)
_SPLIT = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=8192)
def kind_of_step(path: tuple[str, ...], name: str | None, sort: str) -> str:
    """One word for a step: from the ops that it was launched in, its kernel's name, its sort."""
    if sort == "memset":
        return "memset"
    by_ops = kind_of_path(path)
    if sort == "copy" and by_ops == "cast":
        return "copy"  # bytes are moved as they are, whatever op asked for it
    if name is None:
        return by_ops or "other"
    kernel = decode(name)
    by_name = kind_of_kernel(kernel)
    if by_name and not FAMILIES[kernel.family].of_op:
        return by_ops if by_ops and by_ops in PART_OF.get(by_name, ()) else by_name
    if sort == "copy":
        return by_ops or "copy"
    if by_name and by_ops in BY_LIBRARIES:
        return by_name  # the bias that addmm copies, beside the GEMM
    return by_ops or by_name or "other"


def kind_of_path(path: tuple[str, ...]) -> str | None:
    """What the ops from the outermost to the launch do: the nearest one whose kind is known, or
    what that is a part of."""
    found = None
    for op in reversed(path):
        kind = kind_of_op(op)
        if found is None or kind in PART_OF.get(found, ()):
            found = kind
        elif kind not in (None, found):
            break
    return found


_NODE = re.compile(r"(?:\w+::)*(\w+?)Backward(?:\d+|Impl)?")
_ENGINE = "autograd::engine::evaluate_function: "


@lru_cache(maxsize=8192)
def plain_op(name: str) -> str:
    """An op's name without namespace, and a backward op's or node's by the forward's."""
    name = name.removeprefix(_ENGINE)
    if node := _NODE.fullmatch(name):
        words = _SPLIT.sub("_", re.sub(r"(\d)D", r"\1d_", node[1])).lower().rstrip("_")
        return next((op for op in (words, f"_{words}") if op in KIND_OF_OP), words)
    name = name.removeprefix("aten::")
    if name not in KIND_OF_OP and "::" not in name:
        name = re.sub(r"_(?:double_)?backward(?:_[a-z]+)*$", "", name)
        if name not in KIND_OF_OP:
            name = name.removesuffix("_")
    return name


@lru_cache(maxsize=8192)
def kind_of_op(name: str) -> str | None:
    """What an op does; None where that is not known."""
    op = plain_op(name)
    if kind := KIND_OF_OP.get(op):
        return kind
    if op.startswith("_foreach_"):  # of lists of tensors, as optimizers have them
        return {"_foreach_copy": "copy", "_foreach_norm": "reduce", "_foreach_zero": "fill"}.get(
            op, "optimizer"
        )
    if compiled := COMPILED_CPP.fullmatch(op):
        here = set(_kinds_of_fused(compiled[1])) - BY_LIBRARIES
        return here.pop() if len(here) == 1 else "fused"
    name = name.removeprefix(_ENGINE)
    return next((kind for start, kind in _OF_NAMESPACE if name.startswith(start)), None)


def kind_of_kernel(kernel: KernelName) -> str | None:
    """What a kernel does, by its name alone; None where that is not known."""
    if kernel.family == "Triton (inductor)":
        return _kind_of_fused(kernel)
    op = kernel.op or ""
    return (
        KIND_OF_OP.get(op)
        or FAMILIES[kernel.family].kind
        or kind_of_op(op)
        or next((kind for kind, words in WORDS if words.search(_words(op))), None)
    )


def _words(op: str) -> str:
    return _SPLIT.sub("_", op).lower()


# In a compiled kernel's name: op names between underscores, the longest first (safe_softmax).
_FUSED = re.compile(
    "(?:(?<=_)|^)(?:"
    + "|".join(sorted({op.strip("_") for op in KIND_OF_OP}, key=len, reverse=True))
    + ")(?=_|$)"
)
_KIND_OF_FUSED = {op.strip("_"): kind for op, kind in KIND_OF_OP.items()}


# What Inductor compiles for the CPU, where its own kernel profile records it.
COMPILED_CPP = re.compile(r"(?:graph_\d+_)?cpp_fused_?(\w*?)(?:_\d+)?")


def _kinds_of_fused(ops: str) -> list[str]:
    return [_KIND_OF_FUSED[op] for op in _FUSED.findall(ops)]


def _kind_of_fused(kernel: KernelName) -> str | None:
    """From the op names in an Inductor kernel's name: one kind, or fused."""
    found = _kinds_of_fused(kernel.op or "")
    if kernel.tensor_cores is None:  # a template: no other kernel of Inductor's could have any
        found = [kind for kind in found if kind in BY_LIBRARIES][:1]
        return found[0] if found else None
    here = set(found) - BY_LIBRARIES
    if len(here) == 1 and not kernel.cut:
        return here.pop()
    return "fused" if len(here) > 1 or (found and not kernel.cut) else None
