"""Kernel name → what it is, as far as the name tells and never more.

How to read this file: `RULES` is the whole knowledge, one rule a kernel family, tried in order; the
first whose pattern matches the start of the (normalised) name decides. A rule's pattern *is* the
family's grammar, and its named groups are fields of `KernelName`: `(?P<head_dim>…)` fills
`head_dim`. `READ` says how a group's text becomes a value; a token it does not know becomes None.
What holds for every name of a rule stands beside the pattern as keywords; `more` is a small
function for the few facts that no single token carries.

Names come in three spellings, and all of them are brought to one before the rules see them:

    flash_fwd_kernel<…<64, 128>, false>                    Kineto: torch.profiler's Chrome traces
    flash_fwd_kernel<…<(int)64, (int)128>, (bool)0>        Nsight Systems and Nsight Compute
    _Z16flash_fwd_kernelI…ILi64ELi128EELb0EE…              mangled: too long to demangle, or Windows

Three warnings that the rules keep to. An architecture token (`sm80`, `ampere`) is what the kernel
was built for, not the GPU it ran on. `f16` in a cuDNN attention kernel means any 16-bit type. And a
table cuts names (`…_128x25...`): what is cut is not visible, so it is None, and so is a number cut
in half.

    uv run -m common.kernel_names ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn
"""

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

# A demangled name is at most 8,192 characters (Kineto leaves longer ones mangled, and the beginning
# of those says it all), so reading more would only give hostile input a lever.
_LONGEST = 8192


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


# ── Tokens ────────────────────────────────────────────────────────────────────────────────────────


def _by_token(words: Mapping[object, str]) -> dict[str, object]:
    return {token: word for word, tokens in words.items() for token in tokens.split("|")}


# Spellings of data types in names, C++ and GEMM tokens alike. Namespaces are cut off first.
DTYPES = _by_token(
    {
        "bf16": "bf16|BFloat16|bfloat16_t|__nv_bfloat16|__hip_bfloat16|__bf16|Bfloat16",
        "fp16": "f16|fp16|Half|half_t|__half|half|Fp16",
        "fp32": "f32|fp32|float|Fp32",
        "fp64": "f64|fp64|double",
        "tf32": "tf32|tfloat32_t",
        "fp8_e4m3": "e4m3|E4m3|Float8_e4m3fn|float_e4m3_t|__nv_fp8_e4m3",
        "fp8_e5m2": "e5m2|E5m2|Float8_e5m2|float_e5m2_t|__nv_fp8_e5m2",
        "int8": "s8|i8|int8|int8_t|signed char",
        "uint8": "u8|uint8_t|unsigned char",
        "int16": "short",
        "int32": "s32|i32|int|int32_t",
        "int64": "long|long long|int64_t",
        "bool": "bool",
        "complex64": "complex<float>",
        "complex128": "complex<double>",
    }
)
# BLAS letters. nvjet and Tensile have letters of their own: t and B are bf16 there.
BLAS = {"s": "fp32", "h": "fp16", "d": "fp64", "i": "int32", "c": "complex64", "z": "complex128"}
NVJET = BLAS | {"t": "bf16", "q": "fp8_e4m3", "r": "fp8_e5m2", "o": "fp4_e2m1"}
TENSILE = {"B": "bf16", "H": "fp16", "S": "fp32", "D": "fp64", "C": "complex64", "Z": "complex128"}

DIRECTIONS = _by_token(
    {
        "forward": "fwd|Fwd|BatchPrefill|fprop|F|Forward|forward|fw",
        "backward": "bwd|Bwd|bprop|B|Backward|backward|bw|stridedB",
        "backward_data": "dgrad|Dgrad|bwd_data",
        "backward_weight": "wgrad|Wgrad|wrw|bwd_weight",
        # Seen in recordings, not proven by the name, and the words say so.
        "forward (as observed; relu is a template token)": "relu",
        "backward (filter gradient when splitK)": "stridedB_splitK",
    }
)
CORES = _by_token(
    {
        True: "tensorop|TensorOp|tensor|warpgroup|Prefill|MI|mfma|xdl",
        False: "simt|Simt|ffma|SN|SE|",  # nothing, where BLAS names have the instruction's digits
    }
)
NOTES = {
    "f16": "a 16-bit type (fp16 and bf16 share the name)",
    "f8": "an 8-bit type",
    "mxfp8": "an 8-bit type in scaled blocks",
    "splitkv": "one part of a split KV",
    "combine": "adds up the parts of a split KV",
    "dot_do_o": "the row sums that the backward needs",
    "convert_dq": "converts the gradient of q",
}
TRITON = {
    "poi": "pointwise",
    "red": "reduction",
    "per": "persistent reduction",
    "for": "foreach",
    "spl": "split scan",
    "tem": "template: may use Tensor Cores",
}

_N = r"\d{1,7}"
_TILE = rf"{_N}x{_N}(?:x{_N})?"
_NS = r"(?:\w++::)*+"
_LONG_FIRST = sorted(map(re.escape, DTYPES), key=len, reverse=True)
_CPP = rf"(?:c10::|cutlass::|std::)?(?:{'|'.join(_LONG_FIRST)})(?![A-Za-z0-9]|_t)"
_GEMM = r"(?:bf16|tf32|[fsiu]\d{1,2}|fp\d{1,2}|u?int\d{1,2}|e4m3|e5m2)"
_ATEN_OP = (  # what is left of a functor's name when its house style is taken off
    (r"^(?:launch|CUDAFunctor(?:On(?:Self|Other))?)_|^(?:direct|b?float16)_(?=copy)", ""),
    (r"(?:_?(?:cuda|kernel|impl|out|CUDA|Kernel|Impl|Internal|Functor|functor|Ops))+$", ""),
    (r"(?<=[a-z0-9])(?=[A-Z])", "_"),
)


def _numbers(token: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", token))


def _op(token: str) -> str:
    """The op in an ATen function or functor: `masked_fill_kernel` has masked_fill."""
    op = token
    for pattern, by in _ATEN_OP:
        op = re.sub(pattern, by, op)
    return op.lower() or token


def _arch(token: str) -> str:
    # CUTLASS writes a bare 80, Tensile a bare 942 or 90a.
    return ("sm" if len(token) == 2 else "gfx") + token if token[0].isdigit() else token.lower()


READ: Mapping[str, Callable] = {
    "tensor_cores": lambda token: CORES.get(token, token.isdigit() or None),
    "direction": DIRECTIONS.get,
    "tile": _numbers,
    "arch_token": _arch,
    "head_dim": int,
    "max_head_dim": lambda token: int(token) if token != "65536" else None,  # 65536: any
    "causal": {"true": True, "false": False, "Causal": True, "causal": True, "Dense": False}.get,
    "warps": lambda token: math.prod(_numbers(token)),  # 2x2x1
    "op": _op,
    "word": str,  # an op that stands in its own words
    "stages": int,
    "note": NOTES.get,
}


@dataclass(frozen=True, slots=True)
class Rule:
    """One family: the pattern its names match from the start, and what follows from a match."""

    family: str
    pattern: re.Pattern[str]
    facts: Mapping[str, object]  # of every name that matches
    words: Mapping[str, str]  # its alphabet of data types
    more: Callable[[re.Match[str], dict], dict] | None

    def read(self, match: re.Match[str]) -> dict:
        facts = dict(self.facts)
        for name, token in match.groupdict().items():
            if token is None:
                continue
            if name.startswith("dtype"):
                facts[name] = self.words.get(token.rpartition("::")[2])
            elif name == "k":  # K stands apart from M and N in some grammars
                facts["tile"] += (int(token),)
            elif name in READ:
                facts["op" if name == "word" else name] = READ[name](token)
        return facts | self.more(match, facts) if self.more else facts


def _rule(family: str, pattern: str, *, words=DTYPES, more=None, **facts) -> Rule:
    return Rule(family, re.compile(pattern, re.ASCII), facts, words, more)


# ── The few facts that no single token carries ────────────────────────────────────────────────────


def _blas(match: re.Match[str], facts: dict) -> dict:
    """Types of a `[OUT_]{ACC}{INST}gemm_[IN_]` name: one that equals the accumulator's is left out.

    Left out is only known once the tile behind it is seen; a name cut before it says nothing.
    """
    acc = BLAS[match["acc"][-1]]
    known = {"dtype_acc": acc, "dtype_out": facts.get("dtype_out") or acc}
    if "tile" in facts and "dtype_in" not in facts:
        if not (facts["tensor_cores"] and acc == "fp32"):
            known["dtype_in"] = acc
        elif "s1688" in match[0]:
            # Tensor Cores have no fp32 input, and 16x8x8 with none named is the TF32 instruction.
            known["dtype_in"] = "fp32 in memory, tf32 in the Tensor Core"
    return known


def _fmha_cores(match: re.Match[str], facts: dict) -> dict:
    # DefaultGemmType in xformers' gemm_kernel_utils.h: fp16 from sm70, fp32 and bf16 from sm80.
    arch = int(facts["arch_token"][2:])
    return {"tensor_cores": arch >= (70 if facts["dtype_in"] == "fp16" else 80)}


def _cudnn_sdpa(match: re.Match[str], facts: dict) -> dict:
    return {"head_dim": facts["tile"][2]} if len(facts.get("tile") or ()) == 3 else {}


def _flashinfer(match: re.Match[str], facts: dict) -> dict:
    return {
        "causal": {"0": False, "1": True}.get(match["mask"]),
        "head_dim": 16 * int(match["d"]) if match["d"] else None,
    }


def _nvjet(match: re.Match[str], facts: dict) -> dict:
    # Three letters: input, compute, output. Five: A, B, C, compute, D.
    a, *_, compute, out = match["types"]
    types = {"dtype_in": a, "dtype_acc": compute, "dtype_out": out}
    return {name: NVJET.get(letter) for name, letter in types.items()}


def _backward(match: re.Match[str], facts: dict) -> dict:
    """Direction of an ATen kernel: only a gradient tells it; `forward` may be part of an op."""
    grad = re.search(r"[Bb]ackward|(?:^|_)grad_|[a-z_]Grad(?=[A-Z])", match["fn"])
    return {"direction": "backward"} if grad else {}


def _softmax(match: re.Match[str], facts: dict) -> dict:
    told = match.groupdict()
    log = told.get("log") == "true" or "LogSoftMax" in match.string
    known = {}
    if log or told.get("log") or not match.string.endswith("…"):
        known["op"] = "log_softmax" if log else "softmax"
    if told.get("log2"):
        known["note"] = f"rows of up to {1 << int(told['log2']):,}"
    return known


def _igemm(match: re.Match[str], facts: dict) -> dict:
    # "bwd" is the data gradient here: the filter's has its own word, wrw.
    known = {"arch_token": {"2": "gfx90a", "3": "gfx94x"}.get(match["gen"])}
    return known | ({"direction": "backward_data"} if match["direction"] == "bwd" else {})


def _ck_conv(match: re.Match[str], facts: dict) -> dict:
    return {"dtype_in": "16-bit stored as ushort (CK bf16)"} if match["ushort"] else {}


_FUNCTOR = re.compile(  # MulFunctor in BinaryFunctor<float, float, float, …::MulFunctor<float>>
    rf"{_NS}(?:[AB]Unary|Binary)Functor<(?P<a>{_CPP}), {_CPP}, (?P<out>{_CPP}), "
    rf"{_NS}(?P<op>\w+)(?=[<(>,])"
    # add in CUDAFunctor_add<float>, or masked_fill in masked_fill_kernel(…)::{lambda(float, bool)
    rf"|{_NS}(?!(?:[AB]Unary|Binary)Functor)(?P<fn>\w+)(?=[<(,>])"
    rf"(?:<(?P<t>{_CPP})\b[^<>()]*>)?(?P<call>\()?",
    re.ASCII,
)
_LAMBDA = re.compile(r"\{lambda\((?P<args>[^(){}]+)\)#")
_COPY_TO = re.compile(r"(b?float16)_copy_kernel_cuda")


def _elementwise(match: re.Match[str], facts: dict) -> dict:
    """Op and data types of an ATen elementwise kernel, from the functor in its template arguments.

    A kernel that casts on load (`gpu_kernel_impl`, `LoadWithCast`) reads any type: no data type.
    """
    found = _FUNCTOR.match(match.string, match.end())
    if not found or not (raw := found["op"] or found["fn"]):
        return {}
    known: dict = {"op": _op(raw)}
    if re.search(r"[Bb]ackward", raw):
        known["direction"] = "backward"
    unseen = "unrolled" in match[0] and match.string.endswith("…")  # its casts stand at the end
    if match.groupdict().get("casts") or "LoadWithCast" in match.string or unseen:
        return known
    types = [found["a"] or (found["t"] if not found["call"] else None)]
    if found["call"] and (inner := _LAMBDA.search(match.string, found.end())):
        args = inner["args"].split(", ")
        types = [a for a in args if a != "bool"] or args  # beside other types, bool is a mask
    words = {DTYPES.get(t.rpartition("::")[2]) for t in types if t}
    known["dtype_in"] = words.pop() if len(words) == 1 else None
    if found["out"]:
        known["dtype_out"] = DTYPES.get(found["out"].rpartition("::")[2])
    if to := _COPY_TO.match(raw):
        known["dtype_out"] = {"bfloat16": "bf16", "float16": "fp16"}[to[1]]
    return known


def _triton(match: re.Match[str], facts: dict) -> dict:
    kind, ops = match["kind"], match["ops"].strip("_")
    known = {
        "op": ops or None,
        "note": TRITON.get(kind),
        "tensor_cores": None if kind == "tem" else False,
    }
    if "backward" in ops:
        known["direction"] = "backward op among the fused ops"
    elif kind == "tem" and ops == "flex_attention" and not match.string.endswith("…"):
        known["direction"] = "forward"
    return known


# ── The table ─────────────────────────────────────────────────────────────────────────────────────

_FLAG = r"(?:true|false)"


def _traits(flags: str = "") -> str:
    """FlashAttention-2's template arguments; only behind whole traits are flags what they seem."""
    return (
        rf"<(?:{_FLAG}, )?{_NS}Flash_(?:fwd|bwd)_kernel_traits<(?P<head_dim>{_N}), "
        rf"(?P<tile>{_N}, {_N}), (?P<warps>{_N})(?:(?:, (?:{_N}|{_FLAG}))*+, (?P<dtype_in>{_CPP})"
        rf"(?:, {_NS}Flash_kernel_traits<[^<>]*+>)?>{flags})?"
    )


_CAUSAL_1ST, _CAUSAL_2ND = rf"(?:, (?P<causal>{_FLAG}))?", rf"(?:, {_FLAG}, (?P<causal>{_FLAG}))?"
_FLASH = r"(?:(?:pytorch_)?flash::|(?=\w+<))"  # a bare flash_fwd_kernel could be anybody's
_FA2 = {"family": "FlashAttention-2", "dtype_acc": "fp32"}
# Their dots are of 16-bit tiles: on any GPU that Triton supports that is the Tensor Cores' work.
_OF_04D = {"direction": "forward", "tensor_cores": True, "dtype_acc": "fp32", "causal": True}
_FA3_MAIN = (  # …(BlockM, BlockN, head dim), element, accumulator, architecture, causal
    rf"C<(?P<tile>{_N}>, {_NS}C<{_N})>, {_NS}C<(?P<head_dim>{_N})>>, (?:{_N}, )?"
    rf"(?P<dtype_in>{_CPP}), (?P<dtype_acc>{_CPP}), {_NS}(?P<arch_token>Sm{_N}), "
    rf"(?P<causal>{_FLAG})"
)
_XMMA = (  # A and D, B and accumulator, compute; layouts; tile; pipe
    rf"_(?P<dtype_in>{_GEMM})(?P<dtype_out>{_GEMM})_{_GEMM}(?P<dtype_acc>{_GEMM})_{_GEMM}"
    rf"(?:_[a-z]+)+?_tilesize(?P<tile>{_TILE})(?:_stage(?P<stages>{_N}))?"
    rf"(?:_warpsize(?P<warps>{_TILE}))?(?:_g\d+)?(?:_(?P<tensor_cores>warpgroup|tensor|ffma))?"
)
_IN, _OUT, _ACC = (rf"(?P<dtype_{which}>{_CPP})" for which in ("in", "out", "acc"))
_G_IN, _G_OUT = rf"(?:_(?P<dtype_in>{_GEMM}))?", rf"(?:(?P<dtype_out>{_GEMM})_)?"
_K_STAGES = rf"(?P<k>{_N})x(?P<stages>{_N})"
_AT = r"at::native::(?:\w+::)*"
_SASS = r"(?P<arch_token>maxwell|volta|turing|ampere|hopper)"
_NO_CORES = {"tensor_cores": False}

# fmt: off
RULES: tuple[Rule, ...] = (
    # Copies
    _rule("Memcpy", r"Memcpy (?P<word>\w+)|\[CUDA memcpy", **_NO_CORES),
    _rule("Memset", r"Memset\b|\[CUDA memset", **_NO_CORES),

    # Communication. SendRecv and AllGather carry no type; old names print one all the same.
    _rule("NCCL", rf"(?:nccl|rccl)(?:Dev)?Kernel_(?P<word>[A-Za-z]+)"
        rf"(?:_(?:[A-Z0-9]+_)*(?:Sum|Prod|Min|Max|MinMax|PreMulSum|SumPostDiv)_{_IN})?",
        **_NO_CORES),
    _rule("NCCL", r"(?:nccl|rccl|msccl)\w*[Kk]ernel", **_NO_CORES),

    # Attention
    _rule(pattern=rf"{_FLASH}flash_fwd_splitkv_(?P<note>combine)_kernel(?:{_traits()})?", **_FA2,
        direction="forward", tensor_cores=False),
    _rule(pattern=rf"{_FLASH}flash_fwd_(?P<note>splitkv)_kernel"
        rf"(?:{_traits(_CAUSAL_1ST)})?",
        **_FA2, direction="forward", tensor_cores=True),
    _rule(pattern=rf"{_FLASH}flash_(?P<direction>fwd)_kernel"
        rf"(?:{_traits(_CAUSAL_2ND)})?", **_FA2, tensor_cores=True),
    _rule(pattern=rf"{_FLASH}flash_(?P<direction>bwd)_(?P<note>dot_do_o|convert_dq)\w*"
        rf"(?:{_traits()})?", **_FA2, tensor_cores=False),
    _rule(pattern=rf"{_FLASH}flash_(?P<direction>bwd)_\w*kernel"
        rf"(?:{_traits(_CAUSAL_2ND)})?", **_FA2, tensor_cores=True),
    _rule("FlashAttention-3", rf"{_NS}device_kernel<{_NS}FlashAttnFwdCombine", direction="forward",
        tensor_cores=False, note=NOTES["combine"]),
    _rule("FlashAttention-3", rf"{_NS}device_kernel<.*?CollectiveMainloop(?P<direction>Fwd|Bwd)"
        rf"(?:\w*<(?P<stages>{_N}),)?(?:.*?{_FA3_MAIN})?", tensor_cores=True),
    _rule("FlashAttention-3",
        rf"{_NS}device_kernel<flash::(?:{_NS}\w*?(?P<direction>Fwd|Bwd))?"),
    _rule("FlashAttention-4 / CuTe",
        r"kernel_cutlass_\w*?FlashAttention(?P<direction>Forward|Backward)"
        rf"(?P<arch_token>Sm{_N}[a-z]?)(?:\w*?tensorptr(?P<dtype_in>{_GEMM})gmem)?",
        tensor_cores=True),
    _rule("FlashAttention-4 / CuTe",
        r"kernel_cutlass_\w*?FlashAttention(?P<direction>Forward|Backward)?"),
    _rule("Triton attention", r"flash_attention_triton$", **_OF_04D),  # the kernel of 04_d
    _rule("Gluon attention", r"flash_attention_gluon$", **_OF_04D),  # of common/hopper.py
    _rule("memory-efficient attention (fmha_cutlass)", r"fmha_cutlass(?P<direction>[FB])_"
        rf"(?P<dtype_in>{_GEMM})_(?:not)?aligned_(?P<tile>{_TILE})(?:_k(?P<max_head_dim>{_N}))?"
        rf"(?:_[a-z]+)*_(?P<arch_token>sm{_N})", dtype_acc="fp32", more=_fmha_cores),
    _rule("memory-efficient attention (fmha_cutlass)", r"fmha_cutlass(?P<direction>[FB])_"),
    _rule("cuDNN SDPA (generated)", r"cudnn_generated_\w+?_sdpa_(?P<arch_token>sm\d+)_flash_"
        r"(?P<direction>fprop|bprop)_(?:wgmma_|wmma_)?(?P<note>f16|f8|mxfp8)"
        rf"(?:_knob_\w+?_(?P<tile>{_TILE}))?", tensor_cores=True, more=_cudnn_sdpa),
    _rule("cuDNN SDPA (generated)", r"cudnn_generated_\w+?_sdpa_"),
    _rule("cuDNN SDPA (generated)", r"cudnn::fusion::(?:compute_dot_do_o|convert_dq)",
        direction="backward", tensor_cores=False),
    _rule("TensorRT(-LLM) fmha_v2", rf"fmha_v2_flash_attention_(?P<dtype_in>{_GEMM})_"
        rf"(?P<tile>{_N}_{_N})_\w+?_(?P<head_dim>{_N})(?:_(?:\w+?_)??(?P<causal>causal))?"
        r"(?:_\w*?(?P<arch_token>sm\d+))?", direction="forward", tensor_cores=True),
    _rule("TensorRT-LLM gen FMHA (via FlashInfer)", r"fmha(?P<arch_token>Sm\d+[a-z]?)Kernel_"
        r"Q(?:kv)?(?P<dtype_in>E4m3|Bfloat16|Fp16)(?:Kv[A-Z]\w+?)??"
        rf"O(?P<dtype_out>E4m3|Bfloat16|Fp16)H(?:Qk)?(?P<head_dim>{_N})"
        rf"(?:\w*?(?P<causal>Causal|Dense))?(?:\w*?Q(?P<tile>{_N}Kv{_N}))?",
        direction="forward", tensor_cores=True),
    _rule("FlashInfer",
        r"flashinfer::\w*(?P<tensor_cores>Prefill)\w*<(?:flashinfer::)?KernelTraits<"
        rf"\(flashinfer::MaskMode\)(?P<mask>\d)(?:, {_N}, {_N}, {_N}, (?P<d>{_N})(?:, {_N})*+"
        rf"(?:, \(\w+::\w+\)\d)?(?:, {_IN})?)?", direction="forward", more=_flashinfer),
    _rule("FlashInfer", r"flashinfer::\w*(?:Decode|Prefill|Attention|MLA)", direction="forward"),
    _rule("paged attention", r"(?:vllm::)?(?:_varlen_prefill_kernel|kernel_unified_attention|"
        r"paged_attention)(?:\w*?(?P<tensor_cores>mfma))?"
        rf"(?:\w*<(?:{_N}, )?{_IN},)?", direction="forward"),
    _rule("attention on AMD (CK/AITER/AOTriton)", rf"(?:aiter::)?fmha_(?P<direction>fwd|bwd)_"
        rf"hd(?P<head_dim>{_N})_(?P<dtype_in>{_GEMM})(?:_(?P<causal>causal))?"),
    _rule("attention on AMD (CK/AITER/AOTriton)", r"(?:(?:attn|sage)_(?=fwd$))?"
        r"(?P<direction>fwd|bwd(?=_))(?:_kernel_fuse|_kernel_d[kq]\w*|_preprocess)?$"),
    _rule("attention on AMD (CK/AITER/AOTriton)",
        r"ck_tile::.*?Fmha(?P<direction>Fwd|Bwd|\w*Prefill)"
        rf"(?:.*?Problem<{_IN})?", tensor_cores=True),

    # GEMM on NVIDIA GPUs
    _rule("nvjet",
        rf"nvjet_(?:(?P<arch_token>sm\d+[a-z]?)_)?(?P<types>[a-z]{{5}}|[a-z]{{3}})_(?:mma_)?"
        rf"(?:(?P<tile>{_TILE})(?:_(?P<k>{_N})x)?_?(?P<stages>{_N})?(?=_))?", tensor_cores=True,
        more=_nvjet),
    _rule("nvjet", r"nvjet_", tensor_cores=True),
    _rule("CUTLASS GEMM (in cuBLAS)", r"(?:cutlass::Kernel2?<)?cutlass_(?P<arch_token>\d\d)_"
        rf"(?:wmma_|sp)?(?P<tensor_cores>tensorop|simt)_{_G_OUT}(?P<acc>g?[shdicz])"
        rf"\d*(?:tf32)?gemm(?:_planar_complex)?(?:_relu)?{_G_IN}(?:_forwardCompat)?"
        rf"(?:_(?P<tile>{_TILE})(?:_{_K_STAGES})?(?=_))?", more=_blas),
    # 0 stages: chosen by the builder
    _rule("CUTLASS 3.x GEMM (in cuBLAS)", r"cutlass3x_(?P<arch_token>sm\d+[a-z]?)_"
        rf"\w*?(?P<tensor_cores>tensorop|simt)_\w*?gemm_(?P<dtype_in>{_GEMM})_{_GEMM}_"
        rf"(?P<dtype_acc>{_GEMM})_(?:{_GEMM}|void)_(?P<dtype_out>{_GEMM})_(?P<tile>{_TILE})"
        rf"(?:_{_TILE}_(?:0|(?P<stages>{_N})))?(?=_)"),
    _rule("cuBLAS GEMM (xmma)", rf"(?P<arch_token>sm\d+)_xmma_gemm{_XMMA}"),
    _rule("cuBLAS GEMM (hand-written SASS)", rf"(?:trt_)?{_SASS}_{_G_OUT}"
        rf"(?P<acc>g?[shdicz])(?P<tensor_cores>\d*)gemm{_G_IN}"
        rf"(?:_(?P<tile>{_TILE})(?:_\w*?stages_{_K_STAGES})?(?=_))?", more=_blas),
    _rule("split-K reduce", r"(?:cublasLt::)?splitKreduce", **_NO_CORES),
    _rule("cuBLAS GEMV", rf"internal::gemvx::kernel<\w+, \w+, {_IN}, {_CPP}, "
        rf"{_OUT}, {_ACC}", **_NO_CORES),
    _rule("cuBLAS GEMV", rf"gemv\w+<(?:int, int, )?+{_IN}, {_CPP}, "
        rf"{_OUT}, {_ACC}", **_NO_CORES),
    _rule("cuBLAS GEMV", r"gemv(?:2[NT]|NSP)_|internal::gemvx", **_NO_CORES),
    _rule("cuBLAS other (small-N GEMM, dot, epilogue, trsm)",
        r"(?:gemmSN_\w+|gemmk1|dot|reduce_1Block|magma_\w+|scal|trsm_\w+|asum|axpy|nrm2)"
        r"_kernel\w*<|[sdhcz]gemm_largek|getrf_\w+<|cublas(?:Lt)?::\w+", **_NO_CORES),
    _rule("DeepGEMM", r"deep_gemm::(?P<arch_token>sm\d+)_(?:(?P<dtype_in>bf16)_)?",
        tensor_cores=True),
    _rule("TensorRT-LLM gen batched GEMM (MoE, via FlashInfer)",
        r"bmm_(?P<dtype_out>[A-Z]\w{1,20}?)_\w{1,40}?_"
        rf"(?P<dtype_acc>Fp32)_t(?P<tile>{_TILE})(?:u\d+)?_s(?P<stages>{_N})_"
        r"(?:\w*_(?P<arch_token>sm\d+[a-z]?)$)?", tensor_cores=True),

    # Convolution
    _rule("cuDNN conv (xmma)", r"(?P<arch_token>sm\d+)_xmma_(?P<direction>fprop|dgrad|wgrad)"
        rf"_implicit_gemm(?:_indexed)?{_XMMA}"),
    _rule("cuDNN conv (CUTLASS)",
        r"(?:cutlass_\w*cudnn\w*::Kernel2?<)?cutlass_(?:(?P<arch_token>\d\d)_)?"
        rf"(?:wmma_)?(?P<tensor_cores>tensorop|simt)_{_G_OUT}(?P<acc>[shdi])\d*"
        rf"(?P<direction>fprop|dgrad|wgrad)(?:_[a-z_]+?)?{_G_IN}"
        rf"_(?P<tile>{_TILE})(?:_{_K_STAGES})?(?=_)", more=_blas),
    _rule("cuDNN conv (CUTLASS)", r"cutlass_\w*cudnn\w*::Kernel2?<.*?ImplicitGemm.*?Conv[23]d"
        r"(?P<direction>Fprop|Dgrad|Wgrad)(?:.*?(?P<dtype_in>tfloat32_t|half_t|bfloat16_t))?"
        r"(?:.*?(?P<tensor_cores>TensorOp|Simt))?"),
    _rule("cuDNN conv (hand-written SASS)", rf"(?:cudnn_(?:infer_|train_)?)?{_SASS}_"
        rf"{_G_OUT}(?P<acc>[shi])(?P<tensor_cores>\d*)cudnn(?P<w>_winograd)?"
        rf"{_G_IN}(?:_(?P<tile>{_TILE})(?=_))?"
        r"(?(w)|(?:\w*?_(?P<direction>relu|stridedB_splitK|stridedB))?)", more=_blas),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        r"cudnn::(?:\w+::)*bn_(?P<direction>fw|bw)", op="batch norm", **_NO_CORES),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        r"(?:cask_cudnn\w*|cudnn)::(?:\w+::)*(?:\w*?(?P<direction>dgrad|wgrad|Wgrad))?",
        **_NO_CORES),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        r"fft[12]d_|(?:im|ex)plicit_convolve_sgemm|DSE::", **_NO_CORES),

    # Triton. Names of hand-written kernels are bare Python names: only those that are known count.
    _rule("Triton (inductor)",
        r"triton_(?P<kind>poi|red|per|tem|for|spl)_fused_?(?P<ops>\w*?)(?:_\d+$|$|…)",
        more=_triton),
    _rule("Triton (inductor)", r"triton__(?:\d+(?:d|de)?)+$"),
    _rule("Triton (hand-written)",
        r"_matmul_ogs_[NT]+_(?P<dtype_out>[a-z0-9]+?)x(?P<dtype_in>[a-z]+\d+)x"
        rf"[a-z]+\d+_(?P<tile>{_TILE})"),
    _rule("Triton (hand-written)",
        r"(?:_matmul_ogs\w*|_combined_routing\w*|_topk_forward|fused_moe_kernel|"
        r"_copy_page_indices_kernel|_finalize_matmul\w*|mul_broadcast_2d_kernel|reduce_segments|"
        r"sage_quant_kernel)$"),

    # ATen
    _rule("ATen vectorized elementwise", rf"{_NS}vectorized_elementwise_kernel<{_N}, ",
        more=_elementwise, **_NO_CORES),
    _rule("ATen unrolled elementwise", rf"{_NS}unrolled_elementwise_kernel\w*<(?:{_N}, )?",
        more=_elementwise, **_NO_CORES),
    _rule("ATen elementwise (non-contiguous)", rf"at::native::elementwise_kernel(?:_manual_unroll)?"
        rf"<{_N}, {_N}, {_NS}(?:gpu_kernel_impl_nocast<|"
        rf"(?P<casts>gpu_kernel_impl<|type_specialized_broadcast_kernel_launcher<{_N}>::apply<))?",
        more=_elementwise, **_NO_CORES),
    _rule("ATen vectorized elementwise", rf"{_NS}vectorized_elementwise_kernel", **_NO_CORES),
    _rule("ATen unrolled elementwise", rf"{_NS}unrolled_elementwise_kernel", **_NO_CORES),
    _rule("ATen elementwise (non-contiguous)",
        r"at::native::elementwise_kernel(?:_manual_unroll)?\b", **_NO_CORES),
    _rule("ATen softmax", rf"{_NS}softmax_warp_(?:(?P<direction>forward|backward)\b)?(?:<{_IN}, "
        rf"{_OUT}, {_ACC}, (?P<log2>\d{{1,2}}), (?P<log>{_FLAG}))?", **_NO_CORES,
        more=_softmax),
    _rule("ATen softmax", rf"{_NS}cunn_(?:Spatial)?SoftMax(?P<direction>Forward|Backward)\w*"
        rf"(?:<(?:{_N}, )?{_IN}, {_ACC}, {_OUT})?", **_NO_CORES,
        more=_softmax),
    _rule("ATen reduce", rf"{_AT}reduce_kernel(?:<{_N}, {_N}, {_NS}ReduceOp<{_IN}, "
        rf"(?:{_NS}func_wrapper_t<{_CPP}, )?"
        rf"(?:{_NS}(?!func_wrapper_t)(?P<op>\w+)(?=[<(>,]))?"
        rf"(?:.*?, unsigned int, {_OUT}, {_N})?)?", **_NO_CORES),
    _rule("ATen triu/tril", rf"{_NS}triu_tril_kernel(?:<{_IN}, \w+, (?P<upper>{_FLAG}))?",
        **_NO_CORES, more=lambda m, _: {"op": {"true": "triu", "false": "tril"}.get(m["upper"])}),
    _rule("ATen cat", rf"{_NS}CatArrayBatchedCopy", op="cat", **_NO_CORES),
    _rule("ATen index / gather / scatter", rf"(?:{_AT})?"
        r"(?P<fn>index(?:Select|Func|_|ing_)\w*|_?scatter_gather\w*|vectorized_gather\w*|"
        r"sum_and_scatter)<",
        more=_backward, **_NO_CORES),
    _rule("ATen normalization", rf"{_AT}(?P<fn>\w*?(?:layer_norm|LayerNorm|batch_norm|GroupNorm|"
        r"RowwiseMoments|FusedParams|GammaBeta|ComputeInternalGradients|weight_norm)\w*)",
        more=_backward, **_NO_CORES),
    _rule("optimizer / foreach (multi_tensor_apply)",
        rf"{_NS}multi_tensor_apply_kernel(?:<[^()]{{0,300}}?\b(?P<op>\w{{1,60}}Functor)\b)?",
        **_NO_CORES),
    _rule("ATen other", rf"{_AT}(?P<op>(?P<fn>\w+))(?=$|[<(])", more=_backward, **_NO_CORES),
    _rule("ATen other", r"at::native::", **_NO_CORES),
    _rule("ATen other",
        r"(?P<fn>elementwise_kernel_with_index)(?:<\w+, at::native::(?P<op>\w+)(?=[<(]))?",
        more=_backward, **_NO_CORES),

    # Other libraries
    _rule("CUB / rocPRIM (sort, scan, reduce)",
        r"(?:at_cuda_detail::)?(?:cub|rocprim|thrust)::(?:(?:\w+::)*(?P<word>\w+)(?=[<(]))?",
        **_NO_CORES),
    _rule("vLLM / SGLang / AITER custom op", r"(?:vllm|moe::dev|sglang|sgl_hip|aiter)::|"
        r"(?:store_kvcache|clamp_position_kernel|resolve_future_token_ids_kernel)\b"),
    _rule("FBGEMM embedding / recommender",
        r"(?:fbgemm_gpu::)?(?:split|dense)_embedding_(?:codegen_)?"
        r"(?P<direction>forward|backward)", **_NO_CORES),
    _rule("FBGEMM embedding / recommender", r"fbgemm_gpu::|(?:split|dense)_embedding|"
        r"bounds_check_indices_kernel|recat_copy_async_kernel", **_NO_CORES),
    _rule("CuTe DSL kernel (not attention)", r"kernel_cutlass_"),

    # AMD
    _rule("rocBLAS/hipBLASLt (Tensile)",
        r"Cijk_A\w{3}_B\w{3}_(?P<dtype_in>[BHSDCZ])_?(?P<dtype_out>[BHSDCZ])"
        rf"(?P<dtype_acc>[BHSDCZ])_(?:\w*?_MT(?P<tile>{_TILE})_(?P<tensor_cores>MI|[A-Z]+))?"
        r"(?:\w*?_ISA(?P<arch_token>[0-9a-f]+)_)?", words=TENSILE),
    _rule("rocBLAS/hipBLASLt (Tensile)", r"Cijk_A\w{3}_B\w{3}_(?P<dtype_in>[HSDCZ])B_"
        rf"(?:\w*?_?MT(?P<tile>{_TILE})_(?P<tensor_cores>MI|[A-Z]+))?"
        r"(?:\w*?_ISA(?P<arch_token>[0-9a-f]+)_)?", words=TENSILE,
        more=lambda m, f: {"dtype_out": f["dtype_in"], "dtype_acc": f["dtype_in"]}),
    _rule("rocBLAS/hipBLASLt (Tensile)", r"Cijk_\w*_PostGSU", **_NO_CORES),
    _rule("rocBLAS/hipBLASLt (Tensile)", r"Cijk_"),
    _rule("MIOpen conv (igemm asm)", r"igemm_(?P<direction>fwd|bwd|wrw)_gtcx?(?P<gen>\d?)_nhwc_"
        rf"(?P<dtype_in>{_GEMM})_(?:\w*?_bt(?P<tile>{_TILE})_)?", tensor_cores=True,
        more=_igemm),
    _rule("MIOpen other",
        r"(?:MIOpen|miopen|SubTensorOp|batched_transpose_|transpose_[CNHW]+2|Im2d2Col)"
        r"(?:\w*?(?P<direction>Fwd|Bwd))?", **_NO_CORES),
    _rule("Composable Kernel (CK)", r"ck::(?:\w+::)*kernel_(?=\w*(?P<tensor_cores>xdl))"
        r"\w*?(?P<direction>fwd|bwd_data|bwd_weight)(?:.*?(?P<ushort>unsigned short, float))?",
        op="conv",
        more=_ck_conv),
    _rule("Composable Kernel (CK)", r"ck_tile::.*?Rmsnorm2dFwd(?:.*?Problem<(?P<dtype_in>\w+))?",
        op="RMSNorm", **_NO_CORES),
    _rule("Composable Kernel (CK)", r"ck(?:_tile)?::"),
)
# fmt: on


# ── One spelling ──────────────────────────────────────────────────────────────────────────────────

_SPELLING = (
    (re.compile(r"\(anonymous namespace\)::|<unnamed>::"), ""),
    (re.compile(r"\(bool\)0"), "false"),
    (re.compile(r"\(bool\)1"), "true"),
    (re.compile(r"\((?:unsigned )?(?:int|long|short|char)\)(?=-?\d)"), ""),
    (re.compile(r"\b(\d+)(?:u|l|ul|ull|ll)\b"), r"\1"),  # 2ul, 64u
    (re.compile(r"\[lambda\(([^()\[\]]*)\) \(instance (\d+)\)\]"), r"{lambda(\1)#\2}"),
    (re.compile(r"(?<=>) (?=>)"), ""),
    (re.compile(r"^std::enable_if<[^<>]*>::type +"), ""),
    (re.compile(r"void (?=\w)"), ""),  # return types
)
_CUT = re.compile(r"[0-9A-Za-z]*(?:\.\.\.|…)$")


def _normalise(name: str) -> str:
    text = name.strip()[:_LONGEST]
    if text.endswith(("...", "…")):
        text = _CUT.sub("…", text)  # a token cut in half would be read wrong
    if text.startswith("_Z"):
        text = _demangle(text)
    for pattern, by in _SPELLING:
        text = pattern.sub(by, text)
    return text


_MANGLED = re.compile(
    r"(?P<length>\d{1,5})|L(?:b(?P<bool>[01])|[a-z](?P<value>n?\d+))E|(?P<std>St)|(?P<lambda>Ul)"
    r"|(?P<same>S[0-9A-Z]*_|T\d*_|S[absiod])|(?P<bf16>DF16b)|(?P<f16>DF16_|Dh)|(?P<open>[NZIJXL])"
    r"|(?P<call>cl)|(?P<close>E\d*_?)|(?P<type>[a-z])|.",
    re.ASCII | re.DOTALL,
)
_BUILTIN = {
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "f": "float",
    "d": "double",
}


def _demangle(text: str) -> str:
    """Readable text of an Itanium-mangled name: one pass, enough for the rules, no more.

    Substitutions (`S1_`: "as before") come out as `?`, pointers and references without their marks.
    """
    out: list[str] = []
    stack = [["Z", 0]]  # open brackets, each with the number of things in it; Z awaits a name
    glue = False  # the next thing belongs to the last one, as b in a::b

    def begin() -> None:
        nonlocal glue
        top = stack[-1]
        if glue:
            out.append("::")
        elif top[0] == "Z" and top[1]:  # the name is complete, so these are the parameters
            top[0] = "("
            out.append("(")
        elif top[1]:
            out.append("::" if top[0] == "N" else "" if top[0] in "ZL" else ", ")
        glue = False
        top[1] += 1

    at = 2
    while at < len(text):
        token = _MANGLED.match(text, at)
        at = token.end()
        kind, word = token.lastgroup, token[0]
        if kind == "length" and stack[-1][0] != "L":
            name, at = text[at : at + int(word)], at + int(word)
            if not name.startswith("_GLOBAL__N_"):
                begin()
                out.append(name)
        elif kind == "bool":
            begin()
            out.append("true" if token["bool"] == "1" else "false")
        elif kind in ("length", "value"):  # a length after L…E's type is an enumerator
            begin()
            out.append((token["value"] or word).replace("n", "-"))
        elif kind == "same":
            if stack[-1][0] != "N":
                begin()
                out.append("?")
        elif kind in ("bf16", "f16", "type"):
            if word != "v":
                begin()
                out.append({"bf16": "__bf16", "f16": "half"}.get(kind) or _BUILTIN.get(word, "?"))
            elif stack[-1] == ["Z", 1]:  # no parameters, or the return type of a template
                stack[-1] = ["(", 0]
                out.append("(")
        elif kind == "std":
            begin()
            out.append("std")
            glue = True
        elif kind == "call" and stack[-1][0] == "N":
            begin()
            out.append("operator()")
        elif kind == "lambda":
            begin()
            out.append("{lambda(")
            stack.append(["U", 0])
        elif kind == "open":
            if word == "I":
                out.append("<")
            elif word != "J":
                begin()
            stack.append([word, 0])
        elif kind == "close" and len(stack) > 1:
            closed, _ = stack.pop()
            out.append({"I": ">", "(": ")", "U": ")#1}"}.get(closed, ""))
            glue = closed in "Z("
            at = token.end() if closed == "U" else token.start() + 1
    return "".join(out) + (")" if stack[0][0] == "(" else "")


# ── What the rest of the project calls ────────────────────────────────────────────────────────────


@functools.lru_cache(maxsize=65536)
def decode(name: str) -> KernelName:
    """What `name` says. Any string will do: a name that no rule knows has family "other"."""
    text = _normalise(name)
    for rule in RULES:
        if match := rule.pattern.match(text):
            return KernelName(name, rule.family, **rule.read(match))
    return KernelName(name, "other")


_FAMILY = {  # the word a table column has room for
    "cuBLAS GEMM (hand-written SASS)": "cuBLAS GEMM",
    "cuBLAS GEMM (xmma)": "cuBLAS GEMM",
    "cuBLAS other (small-N GEMM, dot, epilogue, trsm)": "cuBLAS other",
    "CUTLASS GEMM (in cuBLAS)": "CUTLASS GEMM",
    "CUTLASS 3.x GEMM (in cuBLAS)": "CUTLASS 3.x GEMM",
    "TensorRT-LLM gen batched GEMM (MoE, via FlashInfer)": "TensorRT-LLM GEMM",
    "TensorRT-LLM gen FMHA (via FlashInfer)": "TensorRT-LLM FMHA",
    "TensorRT(-LLM) fmha_v2": "TensorRT fmha_v2",
    "FlashAttention-4 / CuTe": "FlashAttention-4",
    "memory-efficient attention (fmha_cutlass)": "fmha_cutlass",
    "cuDNN SDPA (generated)": "cuDNN SDPA",
    "attention on AMD (CK/AITER/AOTriton)": "attention (AMD)",
    "cuDNN conv (xmma)": "cuDNN conv",
    "cuDNN conv (CUTLASS)": "cuDNN conv",
    "cuDNN conv (hand-written SASS)": "cuDNN conv",
    "cuDNN other (conv helpers, batch norm, winograd, fft)": "cuDNN other",
    "ATen index / gather / scatter": "ATen index",
    "optimizer / foreach (multi_tensor_apply)": "foreach / optimizer",
    "Triton (inductor)": "Triton (compiled)",
    "CUB / rocPRIM (sort, scan, reduce)": "CUB / rocPRIM",
    "vLLM / SGLang / AITER custom op": "vLLM / SGLang",
    "FBGEMM embedding / recommender": "FBGEMM",
    "CuTe DSL kernel (not attention)": "CuTe DSL kernel",
    "rocBLAS/hipBLASLt (Tensile)": "hipBLASLt (Tensile)",
    "MIOpen conv (igemm asm)": "MIOpen conv",
    "MIOpen other": "MIOpen",
    "Composable Kernel (CK)": "Composable Kernel",
}
_SAY_DIRECTION = {
    "backward_data": "backward (data gradient)",
    "backward_weight": "backward (weight gradient)",
    "backward op among the fused ops": "(a backward op among them)",
}
_AMD = ("rocBLAS", "MIOpen", "Composable Kernel", "attention on AMD")
_MOVES_DATA = ("Memcpy", "Memset", "NCCL")


def brief(kernel: KernelName) -> str:
    """The kernel in at most 24 characters, for a table column."""
    if kernel.op and kernel.family in ("Memcpy", "NCCL"):
        words = f"{kernel.family} {kernel.op}"
    elif kernel.family.startswith("ATen ") and "elementwise" in kernel.family:
        words = f"ATen {kernel.op or 'elementwise'}"
    elif kernel.op and kernel.family == "ATen other":
        words = f"ATen {kernel.op}"
    else:
        words = _FAMILY.get(kernel.family, kernel.family)
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
    matrix, plain = ("Tensor Cores", "CUDA cores")
    if kernel.family.startswith(_AMD):
        matrix, plain = ("Matrix Cores", "no Matrix Cores")
    if kernel.tensor_cores is None:
        words.append(f"{matrix} or not: not in the name")
    elif kernel.family not in _MOVES_DATA:
        words.append(matrix if kernel.tensor_cores else plain)
    if kernel.arch_token:
        words.append(f"built for {kernel.arch_token}")
    if kernel.note:
        words.append(kernel.note)
    if kernel.name.rstrip().endswith(("...", "…")):
        words.append("the name is cut: what follows is not visible")
    return ", ".join(words)
