"""The grammar of kernel names: one rule a kernel family, each with a name that it decides.

How to read this file: `RULES` is the whole knowledge, tried in order; the first whose pattern
matches the start of the (normalised) name decides. A rule's pattern *is* the family's grammar, and
its named groups are fields of `KernelName`: `(?P<head_dim>…)` fills `head_dim`. `READ` says how a
group's text becomes a value; a token it does not know becomes None. What holds for every name of a
rule stands beside the pattern as keywords, what holds for every name of a family in `families`;
`more` is a small function for the few facts that no single token carries. `example` is a name that
the rule decides, from a trace or a published profile, else spelled from the library's source; long
ones are cut as tables cut them.

Three warnings that the rules keep to. An architecture token (`sm80`, `ampere`) is what the kernel
was built for, not the GPU it ran on. `f16` in a cuDNN attention kernel means any 16-bit type. And a
table cuts names (`…_128x25...`): what is cut is not visible, so it is None, and so is a number cut
in half.

A bare name that could be anybody's (`softmax`, `reduce_kernel`) has no rule.
"""

import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .families import FAMILIES

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
    (r"(?:_(?:cuda|kernel|impl|out)|_?(?:CUDA|Kernel|Impl|Internal|[Ff]unctor|Ops))+$", ""),
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
    source: str  # of the pattern
    example: str
    facts: Mapping[str, Any]  # of every name that matches
    words: Mapping[str, str]  # its alphabet of data types
    more: Callable[[re.Match[str], dict], dict] | None

    @property
    def pattern(self) -> re.Pattern[str]:
        """Compiled when a name gets as far: all of them would take longer than a small trace."""
        return re.compile(self.source, re.ASCII)

    def match(self, name: str) -> re.Match[str] | None:
        # Most names lack a word that the pattern has, which is told without compiling it.
        return self.pattern.match(name) if needed(self.source) in name else None

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


_SYNTAX = re.compile(
    r"(?P<word>[A-Za-z0-9_:]+)|(?P<open>\()|(?P<close>\))|(?P<either>\|)|(?P<times>[*+?]|\{[\d,]+\})"
    r"|\\(?:x..|.)|\[(?:\\.|[^]\\])+\]|.",
    re.DOTALL,
)


@functools.cache
def needed(pattern: str) -> str:
    """The longest word that stands in all that a pattern matches; empty where none does: a word
    outside of every group, of which there is no other to choose from."""
    words, depth, before = [""], 0, None
    for token in _SYNTAX.finditer(pattern):
        kind = token.lastgroup
        depth += (kind == "open") - (kind == "close")
        if depth == 0:
            if kind == "either":
                return ""
            if kind == "word":
                words.append(token[0])
            elif kind == "times" and before == "word":  # of the letter before it
                words[-1] = words[-1][:-1]
        before = kind
    return max(words, key=len)


def _rule(family: str, pattern: str, *, example: str, words=DTYPES, more=None, **facts) -> Rule:
    facts = {"tensor_cores": FAMILIES[family].cores} | facts
    return Rule(family, pattern, example, facts, words, more)


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


def _fa4(match: re.Match[str], facts: dict) -> dict:
    kernel = {"8": "Ampere", "9": "Hopper", "10": "Blackwell", "12": "Blackwell"}
    generation = kernel.get(facts["arch_token"].strip("smaf")[:-1])
    return {"note": f"the {generation} kernel"} if generation else {}


def _cudnn_sdpa(match: re.Match[str], facts: dict) -> dict:
    return {"head_dim": facts["tile"][2]} if len(facts.get("tile") or ()) == 3 else {}


def _flashinfer(match: re.Match[str], facts: dict) -> dict:
    return {
        "causal": {"0": False, "1": True}.get(match["mask"]),
        "head_dim": 16 * int(match["d"]) if match["d"] else None,
    }


def _nvjet(match: re.Match[str], facts: dict) -> dict:
    # Three letters: input, compute, output. Five: A, B, C, compute, D.
    a, *_, compute, out = list(match["types"])
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
    types: list[str | None] = [found["a"] or (found["t"] if not found["call"] else None)]
    if found["call"] and (inner := _LAMBDA.search(match.string, found.end())):
        args = inner["args"].split(", ")
        types = [*([a for a in args if a != "bool"] or args)]  # beside other types, bool is a mask
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
_FN = r"(?P<op>\w+)(?=[<(]|$)"  # a whole function name: the rest of one is no op
_BARE = r"(?=[<(]|_\d+$|$)"  # what may follow a name without a namespace

# fmt: off
RULES: tuple[Rule, ...] = (
    # Copies
    _rule("Memcpy", r"Memcpy (?P<word>\w+)|\[CUDA memcpy|__amd_rocclr_copyBuffer",
        example="[CUDA memcpy]"),
    _rule("Memset", r"Memset\b|\[CUDA memset|__amd_rocclr_fillBuffer",
        example="[CUDA memset]"),

    # Communication. SendRecv and AllGather carry no type; old names print one all the same.
    _rule("NCCL", rf"(?:nccl|rccl)(?:Dev)?Kernel_(?P<word>[A-Za-z]+)"
        rf"(?:_(?:[A-Z0-9]+_)*(?:Sum|Prod|Min|Max|MinMax|PreMulSum|SumPostDiv)_{_IN})?",
        example="ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)"),
    _rule("NCCL", r"ncclSymk?DevKernel_(?P<word>[A-Z][A-Za-z]+)",
        example="ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)"),
    _rule("NCCL", r"(?:nccl|rccl|msccl)\w*[Kk]ernel",
        example="mscclKernel_Sum_float_LL_false(ncclDevComm*, mscclAlgo*, mscclWork*)"),

    _rule("DeepEP", rf"(?:deep_ep|dpsk::ep)::{_NS}{_FN}",
        example="void deep_ep::internode_ll::dispatch<true, 3, 10, 7168>(void*, float*, int*, "
            "long*)"),
    _rule("symmetric memory", r"(?P<op>multimem_(?:one_shot_)?(?:all_reduce|all_gather|reduce)\w*|"
        r"(?:one|two)_shot_all_reduce_kernel\w*)(?=<)",
        example="void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::"
            "BFloat16*, unsigned long, unsigned int**, unsigned long, unsigned long)"),
    _rule("symmetric memory", rf"c10d::symmetric_memory::{_NS}{_FN}",
        example="c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned "
            "long)"),
    _rule("Userbuffers", r"(?:transformer_engine::)?k?userbuffers_(?:fp16_sum|push|pull)\w*",
        example="void userbuffers_fp16_sum_inplace_gpu_rw_ag<2>(int, int, int, int, int, int, "
            "int)"),
    _rule("NVSHMEM", r"nvshmemi?x?_\w+|barrier_on_stream_kernel_threadgroup",
        example="void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)"),
    _rule("MORI", r"(?:mori::\w+::)*+Ep(?P<word>Dispatch|Combine)\w*Kernel\w*",
        example="EpDispatchIntraNodeKernel_bf16"),
    _rule("custom all-reduce", r"(?P<op>cross_device_reduce_[12]stage\w*|"
        r"all_reduce_(?:one|two)_shot\w*|all_?reduce_fusion_kernel\w*|(?:one|two)ShotAllReduce\w*|"
        rf"moeA2A(?:Dispatch|Combine)Kernel|one_shot_all_reduce_kernel\w*){_BARE}",
        example="void (anonymous namespace)::all_reduce_one_shot_push_kernel<__nv_bfloat16, 8u, "
            "true>((anonymous namespace)::AllReducePushData, device::distributed::PushController)"),

    # Attention
    _rule(pattern=rf"{_FLASH}flash_fwd_splitkv_(?P<note>combine)_kernel(?:{_traits()})?", **_FA2,
        direction="forward", tensor_cores=False,
        example="void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64, 128,"
            " 4, false, false, cutlass::half_t, Flash_kernel_traits<128, 64, 128, 4, cutlass::half_"
            "t> >..."),
    _rule(pattern=rf"{_FLASH}flash_fwd_(?P<note>splitkv)_kernel"
        rf"(?:{_traits(_CAUSAL_1ST)})?",
        **_FA2, direction="forward", tensor_cores=True,
        example="void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4, "
            "false, false, cutlass::half_t, Flash_kernel_traits<128, 64, 128, 4, cutlass::half_t> "
            ">, true, ..."),
    _rule(pattern=rf"{_FLASH}flash_(?P<direction>fwd)_kernel"
        rf"(?:{_traits(_CAUSAL_2ND)})?", **_FA2, tensor_cores=True,
        example="void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, "
            "false, false, cutlass::bfloat16_t, Flash_kernel_traits<128, 128, 64, 4, cutlass::"
            "bfloat16_t> >, false, true, ..."),
    _rule(pattern=rf"{_FLASH}flash_(?P<direction>bwd)_(?P<note>dot_do_o|convert_dq)\w*"
        rf"(?:{_traits()})?", **_FA2, tensor_cores=False,
        example="void pytorch_flash::flash_bwd_convert_dq_kernel<Flash_bwd_kernel_traits<(int)64, ("
            "int)64, (int)128, (int)8, (int)2, (int)4, (int)4, (bool)1, (bool)0, cutlass::bfloat16_"
            "t, Flash_kernel_traits<(int)64, (int)64, (int)128, (int)8, cutlass::bfloat16_t>>..."),
    _rule(pattern=rf"{_FLASH}flash_(?P<direction>bwd)_\w*kernel"
        rf"(?:{_traits(_CAUSAL_2ND)})?", **_FA2, tensor_cores=True,
        example="void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_"
            "traits<(int)64, (int)64, (int)128, (int)8, (int)2, (int)4, (int)4, (bool)1, (bool)0, "
            "cutlass::bfloat16_t, Flash_kernel_traits<(int)64, (int)64, (int)128, (int)8, cutlass::"
            "bfloat16_t>>, (bool)0, (bool)0, ..."),
    _rule("FlashAttention-3", rf"{_NS}device_kernel<{_NS}FlashAttnFwdCombine", direction="forward",
        tensor_cores=False, note=NOTES["combine"],
        example="void cutlass::device_kernel<flash::FlashAttnFwdCombine<..."),
    _rule("FlashAttention-3", rf"{_NS}device_kernel<.*?CollectiveMainloop(?P<direction>Fwd|Bwd)"
        rf"(?:\w*<(?P<stages>{_N}),)?(?:.*?{_FA3_MAIN})?", tensor_cores=True,
        example="void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<"
            "flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, "
            "cute::tuple<cute::C<128>, cute::C<80>, cute::C<256> >, 256, cutlass::bfloat16_t, "
            "float, cutlass::arch::Sm90, false, ..."),
    _rule("FlashAttention-3",
        rf"{_NS}device_kernel<flash::(?:{_NS}\w*?(?P<direction>Fwd|Bwd))?",
        example="void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<cute::C<"
            "128>, cute::C<128> >, cutlass::bfloat16_t, float, cutlass::arch::Sm90, true, false> "
            ">"),
    _rule("FlashAttention-3", r"flash::compute_attn_ws(?:_fp8)?<"  # its first releases
        rf"(?:{_NS}Flash_(?P<direction>fwd|bwd)_kernel_traits<(?P<head_dim>{_N}), "
        rf"(?P<tile>{_N}, {_N}), (?P<warps>{_N}), (?P<stages>{_N})"
        rf"(?:(?:, (?:{_N}|{_FLAG}))*+, (?P<dtype_in>{_CPP})[^<>]*+>, (?P<causal>{_FLAG}))?)",
        tensor_cores=True,
        example="void flash::compute_attn_ws<Flash_fwd_kernel_traits<192, 128, 128, 12, 2, false, "
            "1, cutlass::bfloat16_t, 128>, true, flash::SingleTileScheduler, flash::SeqLenTraits<"
            "true> >"),
    _rule("FlashAttention-3", r"flash::prepare_varlen_num_blocks_kernel", tensor_cores=False,
        note="plans the tiles of sequences of several lengths",
        example="flash::prepare_varlen_num_blocks_kernel(int, int, int, int const*, int const*)"),
    _rule("FlashMLA", rf"{_NS}(?:flash_fwd_(?:splitkv_)?mla_(?P<note>combine)\w*|"
        r"get_mla_metadata_kernel)", tensor_cores=False, direction="forward",
        example="void flash::flash_fwd_splitkv_mla_combine_kernel<cutlass::bfloat16_t, float, long,"
            " 512, 64>(Flash_fwd_mla_params)"),
    _rule("FlashMLA", rf"{_NS}flash_fwd_(?:splitkv_)?mla_\w*(?:<{_NS}Flash_fwd_kernel_traits_mla<"
        rf"(?P<head_dim>{_N}), (?P<tile>{_N}, {_N}), (?P<warps>{_N}), (?P<dtype_in>{_CPP}))?",
        direction="forward",
        example="void flash::flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, "
            "8, cutlass::bfloat16_t, 512, true, 0, cutlass::bfloat16_t, cutlass::bfloat16_t>, true,"
            " ..."),
    _rule("CUTLASS attention", rf"{_NS}device_kernel<cutlass::fmha::kernel::"
        r"(?P<arch_token>Sm\d+)?\w*?(?:Fmha|Mla)(?:\w*?(?P<direction>Fwd|Bwd))?",
        example="void cutlass::device_kernel<cutlass::fmha::kernel::Sm100FmhaFwdKernelTmaWarpspecia"
            "lized<cute:..."),
    _rule("FlashAttention-4 / CuTe",
        r"kernel_cutlass_\w*?FlashAttention(?P<direction>Forward|Backward)"
        rf"(?P<arch_token>Sm{_N}[a-z]?)(?:\w*?tensorptr(?P<dtype_in>{_GEMM})gmem)?",
        tensor_cores=True, more=_fa4,
        example="kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_"
            "object_at__tensor0000o11101213_tensor0000o11101213_tensor0000o10111213_"
            "tensor0000o11101213_None_None_None_Non_0"),
    _rule("FlashAttention-4 / CuTe",
        r"kernel_cutlass_\w*?FlashAttention(?P<direction>Forward|Backward)?",
        example="kernel_cutlass_kernel_flash_attncuteflash_bwd_preprocessFlashAttentionBackwardPrep"
            "rocess_object_at__tensorptrbf16gmem..."),
    _rule("Triton attention", r"flash_attention_triton$", **_OF_04D,
        example="flash_attention_triton"),  # the kernel of 04_d
    _rule("Gluon attention", r"flash_attention_gluon$", **_OF_04D,
        example="flash_attention_gluon"),  # of common/kernels/hopper.py
    _rule("Triton attention", r"_attn_(?P<direction>fwd|bwd)(?:_d[kq]\w*|_preprocess)?(?:_\d+)?$",
        example="_attn_fwd"),
    _rule("Triton attention", r"_fwd_(?:grouped_)?kernel_stage[12](?:_\w+)?$", direction="forward",
        example="_fwd_grouped_kernel_stage1"),
    _rule("memory-efficient attention (fmha_cutlass)", r"fmha_cutlass(?P<direction>[FB])_"
        rf"(?P<dtype_in>{_GEMM})_(?:not)?aligned_(?P<tile>{_TILE})(?:_k(?P<max_head_dim>{_N}))?"
        rf"(?:_[a-z]+)*_(?P<arch_token>sm{_N})", dtype_acc="fp32", more=_fmha_cores,
        example="fmha_cutlassB_f16_aligned_64x64_k64_sm70"),
    _rule("memory-efficient attention (fmha_cutlass)", r"fmha_cutlass(?P<direction>[FB])_",
        example="fmha_cutlassF_..."),
    _rule("cuDNN SDPA (generated)", r"cudnn_generated_\w+?_sdpa_(?P<arch_token>sm\d+)_flash_"
        r"(?P<direction>fprop|bprop)_(?:wgmma_|wmma_)?(?P<note>f16|f8|mxfp8)"
        rf"(?:_knob_\w+?_(?P<tile>{_TILE}))?", tensor_cores=True, more=_cudnn_sdpa,
        example="cudnn_generated_fort_native_sdpa_sm80_flash_fprop_wmma_f16_knob_3_64x64x128_4x1x1_"
            "kernel0_0"),
    _rule("cuDNN SDPA (generated)", r"cudnn_generated_\w+?_sdpa_",
        example="cudnn_generated_fort_native_sdpa_..."),
    _rule("cuDNN SDPA (generated)", r"cudnn::fusion::(?:compute_dot_do_o|convert_dq)",
        direction="backward", tensor_cores=False,
        example="void cudnn::fusion::convert_dq_to_16bits<..."),
    _rule("TensorRT(-LLM) fmha_v2", rf"fmha_v2_flash_attention_(?P<dtype_in>{_GEMM})_"
        rf"(?P<tile>{_N}_{_N})_\w+?_(?P<head_dim>{_N})(?:_(?:\w+?_)??(?P<causal>causal))?"
        r"(?:_\w*?(?P<arch_token>sm\d+))?", direction="forward", tensor_cores=True,
        example="fmha_v2_flash_attention_fp16_64_32_S_qkv_128_causal_sm86_kernel_nl"),
    _rule("TensorRT-LLM gen FMHA (via FlashInfer)", r"fmha(?P<arch_token>Sm\d+[a-z]?)Kernel_"
        r"Q(?:kv)?(?P<dtype_in>E4m3|Bfloat16|Fp16)(?:Kv[A-Z]\w+?)??"
        rf"O(?P<dtype_out>E4m3|Bfloat16|Fp16)H(?:Qk)?(?P<head_dim>{_N})"
        rf"(?:\w*?(?P<causal>Causal|Dense))?(?:\w*?Q(?P<tile>{_N}Kv{_N}))?",
        direction="forward", tensor_cores=True,
        example="fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentConte"
            "xt"),
    _rule("FlashInfer",
        r"flashinfer::\w*(?P<tensor_cores>Prefill)\w*<(?:flashinfer::)?KernelTraits<"
        rf"\(flashinfer::MaskMode\)(?P<mask>\d)(?:, {_N}, {_N}, {_N}, (?P<d>{_N})(?:, {_N})*+"
        rf"(?:, \(\w+::\w+\)\d)?(?:, {_IN})?)?", direction="forward", more=_flashinfer,
        example="void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<("
            "flashinfer::MaskMode)0, 16u, 1u, 4u, 4u, 4u, 1u, 4u, (flashinfer::PosEncodingMode)0, _"
            "_nv_bfloat16, ..."),
    _rule("FlashInfer", r"flashinfer::\w*(?:Decode|Prefill|Attention|MLA)", direction="forward",
        example="void flashinfer::BatchDecodeWithPagedKVCacheKernel<..."),
    _rule("paged attention", r"(?:vllm::)?(?:_varlen_prefill_kernel|kernel_unified_attention|"
        r"paged_attention)(?:\w*?(?P<tensor_cores>mfma))?"
        rf"(?:\w*<(?:{_N}, )?{_IN},)?", direction="forward",
        example="_varlen_prefill_kernel"),
    _rule("attention on AMD (CK/AITER/AOTriton)", rf"(?:aiter::)?fmha_(?P<direction>fwd|bwd)_"
        rf"hd(?P<head_dim>{_N})_(?P<dtype_in>{_GEMM})(?:_(?P<causal>causal))?",
        example="aiter::fmha_fwd_hd128_bf16_rtz"),
    _rule("attention on AMD (CK/AITER/AOTriton)", r"(?:(?:attn|sage)_(?=fwd$))?"
        r"(?P<direction>fwd|bwd(?=_))(?:_kernel_fuse|_kernel_d[kq]\w*|_preprocess)?$",
        example="attn_fwd"),
    _rule("attention on AMD (CK/AITER/AOTriton)",
        r"ck_tile::.*?Fmha(?P<direction>Fwd|Bwd|\w*Prefill)"
        rf"(?:.*?Problem<{_IN})?", tensor_cores=True,
        example="_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS_"
            "40BlockFmhaBatchPrefillPipelineQRKSVSAsyncINS_36BlockFmhaBatchPrefillPipelineProblemID"
            "F16bDF16bDF16bffDF16bhfDF16bfDF16bNS_13TileFmhaShapeINS_8sequenceIJLi128ELi128ELi32ELi"
            "128ELi32ELi128EEEENS5_IJLi4ELi1ELi1EEEENS5_IJLi32ELi32ELi16EEEES7_S8_Lb1EEELb1ENS_"
            "17ComposedAttentionILj0ELb1EEENS_30SimplifiedGenericAttentionMaskILb1EEELb0ELi1ENS_"
            "26TileFmhaBatchPrefillTraitsILb1ELb1ELb1ELb1ELb0ELNS_22BlockAttentionBiasEnumE0ELb0ELb"
            "0ELb0ELNS_28BlockAttentionQuantScaleEnumE0ELin1ELb0ELb0ELi1ELNS_"
            "37BlockAttentionKVCacheMemoryLayoutEnumE1ELNS_36BlockAttentionKVCacheLookupTableEnumE1"
            "ELNS_33BlockAttentionKVCacheLoadModeEnumE0EEEEENS_53BlockFmhaBatchPrefillPipelineQRKSV"
            "SAsyncDefaultPolicyEEENS_17Default2DEpilogueINS_24Default2DEpilogueProblemIfDF16bLb1EL"
            "b1ELb1EEEvEEEEJNSS_21FmhaFwdGroupModeKargsEEEEvDpT1_"),

    # GEMM on NVIDIA GPUs
    _rule("nvjet",
        rf"nvjet_(?:(?P<arch_token>sm\d+[a-z]?)_)?(?P<types>[a-z]{{5}}|[a-z]{{3}})_(?:mma_)?"
        rf"(?:(?P<tile>{_TILE})(?:_(?P<k>{_N})x)?_?(?P<stages>{_N})?(?=_))?",
        more=_nvjet,
        example="nvjet_tst_192x8_64x8_4x1_v_bz_TNT"),
    _rule("nvjet", r"nvjet_",
        example="nvjet_..."),
    _rule("CUTLASS GEMM (in cuBLAS)", r"(?:cutlass::Kernel2?<)?cutlass_(?P<arch_token>\d\d)_"
        rf"(?:wmma_|sp)?(?P<tensor_cores>tensorop|simt)_{_G_OUT}(?P<acc>g?[shdicz])"
        rf"\d*(?:tf32)?gemm(?:_planar_complex)?(?:_relu)?{_G_IN}(?:_forwardCompat)?"
        rf"(?:_(?P<tile>{_TILE})(?:_{_K_STAGES})?(?=_))?", more=_blas,
        example="cutlass_80_tensorop_d884gemm_128x64_16x3_nn_align1"),
    # 0 stages: chosen by the builder
    _rule("CUTLASS 3.x GEMM (in cuBLAS)", r"cutlass3x_(?P<arch_token>sm\d+[a-z]?)_"
        rf"\w*?(?P<tensor_cores>tensorop|simt)_\w*?gemm_(?P<dtype_in>{_GEMM})_{_GEMM}_"
        rf"(?P<dtype_acc>{_GEMM})_(?:{_GEMM}|void)_(?P<dtype_out>{_GEMM})_(?P<tile>{_TILE})"
        rf"(?:_{_TILE}_(?:0|(?P<stages>{_N})))?(?=_)",
        example="cutlass3x_sm100_simt_sgemm_f32_f32_f32_f32_f32_64x32x16_1x1x1_3_tnn_align1_bias_"
            "f32_relu"),
    _rule("CUTLASS 3.x GEMM (templates)", rf"{_NS}device_kernel<.{{0,160}}?(?:gemm::kernel::Gemm|"
        r"gemm::Device|grouped_gemm)(?:.*?Mainloop(?P<arch_token>Sm\d+)(?:\w*?(?P<mma>Gmma|Umma))?)?",
        more=lambda m, _: {"tensor_cores": True} if m["mma"] else {},
        example="void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>("
            "dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel::Params)"),
    _rule("CUTLASS 2.x GEMM (templates)", r"cutlass::Kernel2?<(?:[\w:]+<)?cutlass::gemm::kernel::",
        example="void cutlass::Kernel2<vllm::enable_sm80_to_sm89<cutlass::gemm::kernel::"
            "DefaultGemmWithVisitor..."),
    _rule("Marlin", r"marlin(?:_\w+)?::Marlin",
        example="void marlin_moe_wna16::Marlin<1125899906909960l, ..."),
    _rule("cuBLAS GEMM (xmma)", rf"(?P<arch_token>sm\d+)_xmma_gemm{_XMMA}",
        example="sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize96x64x32_stage3_warpsize2x2x1_"
            "tensor16x8x16_kernel"),
    _rule("cuBLAS GEMM (hand-written SASS)", rf"(?:trt_)?{_SASS}_{_G_OUT}"
        rf"(?P<acc>g?[shdicz])(?P<tensor_cores>\d*)gemm{_G_IN}"
        rf"(?:_(?P<tile>{_TILE})(?:_\w*?stages_{_K_STAGES})?(?=_))?", more=_blas,
        example="volta_sgemm_64x64_nn"),
    _rule("split-K reduce", r"(?:cublasLt::)?splitKreduce",
        example="void cublasLt::splitKreduce_kernel<..."),
    _rule("cuBLAS GEMV", rf"internal::gemvx::kernel<\w+, \w+, {_IN}, {_CPP}, "
        rf"{_OUT}, {_ACC}",
        example="std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, _"
            "_nv_bfloat16, __nv_bfloat16, float, ..."),
    _rule("cuBLAS GEMV", rf"gemv\w+<(?:int, int, )?+{_IN}, {_CPP}, "
        rf"{_OUT}, {_ACC}",
        example="void gemvNSP_kernel<float, float, float, float, ..."),
    _rule("cuBLAS GEMV", r"gemv(?:2[NT]|NSP)_|internal::gemvx",
        example="void gemv2T_kernel_val<int, int, ..."),
    _rule("cuBLAS other (small-N GEMM, dot, epilogue, trsm)",
        r"(?:gemmSN_\w+|gemmk1)_kernel\w*<|(?:magma_)?[sdhcz]gemm(?:_largek|Ex)", op="gemm",
        example="void gemmk1_kernel<float, 256, 5, false, false, false, false, ..."),
    _rule("cuBLAS other (small-N GEMM, dot, epilogue, trsm)",
        r"(?:cublasLt::)?epilogue::impl::globalKernel", op="epilogue of a gemm",
        example="void epilogue::impl::globalKernel<float, float, float, true, true>(int, int, long,"
            " float*, cublasLtEpilogue_t, int, float*, long, void*, long, long, long, float*, "
            "long)"),
    _rule("cuBLAS other (small-N GEMM, dot, epilogue, trsm)",
        r"(?:gemmSN_\w+|gemmk1|dot|reduce_1Block|magma_\w+|scal|trsm_\w+|asum|axpy|nrm2)"
        r"_kernel\w*<|[sdhcz]gemm_largek|getrf_\w+<|cublas(?:Lt)?::\w+",
        example="void scal_kernel<float, float, ..."),
    _rule("DeepGEMM", r"deep_gemm::(?P<arch_token>sm\d+)_(?:(?P<dtype_in>bf16)_)?",
        example="void deep_gemm::sm90_tf32_hc_prenorm_gemm_impl<..."),
    _rule("DeepGEMM", r"(?:deep_gemm|dpsk::gemm)::(?:fp8|bf16)?_?gemm_kernel",
        example="void deep_gemm::fp8_gemm_kernel<4096u, 7168u, 256u, 128u, 128u, 0u, 128u, 4u, 3u>("
            "__nv_bfloat16*, float*, int*, unsigned int, CUtensorMap_st)"),
    _rule("TensorRT-LLM gen batched GEMM (MoE, via FlashInfer)",
        r"(?:bmm|gemm)_(?P<dtype_out>[A-Z]\w{1,20}?)_\w{1,40}?_"
        r"(?P<dtype_acc>Fp32)(?:_[ABC]b\w{1,20}?)*"
        rf"_t(?P<tile>{_TILE})(?:u\d+)?_s(?P<stages>{_N})(?:x\d+)*_"
        r"(?:\w*_(?P<arch_token>sm\d+[a-z]?)$)?",
        example="bmm_Bfloat16_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_"
            "16dp256b_rM_TN_transOut_schedP2x1x2x3_biasM_bN_tmaOpt_clmp_dynBatch_sm100f"),

    # Convolution
    _rule("cuDNN conv (xmma)", r"(?P<arch_token>sm\d+)_xmma_(?P<direction>fprop|dgrad|wgrad)"
        rf"_implicit_gemm(?:_indexed)?{_XMMA}",
        example="sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_"
            "tilesize128x64x64_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn"),
    _rule("cuDNN conv (CUTLASS)",
        r"(?:cutlass_\w*cudnn\w*::Kernel2?<)?cutlass_(?:(?P<arch_token>\d\d)_)?"
        rf"(?:wmma_)?(?P<tensor_cores>tensorop|simt)_{_G_OUT}(?P<acc>[shdi])\d*"
        rf"(?P<direction>fprop|dgrad|wgrad)(?:_[a-z_]+?)?{_G_IN}"
        rf"_(?P<tile>{_TILE})(?:_{_K_STAGES})?(?=_)", more=_blas,
        example="void cutlass_cudnn_infer::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_"
            "64x128_32x3_nhwc_align4>..."),
    _rule("cuDNN conv (CUTLASS)", r"cutlass_\w*cudnn\w*::Kernel2?<.*?ImplicitGemm.*?Conv[23]d"
        r"(?P<direction>Fprop|Dgrad|Wgrad)(?:.*?(?P<dtype_in>tfloat32_t|half_t|bfloat16_t))?"
        r"(?:.*?(?P<tensor_cores>TensorOp|Simt))?",
        example="_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_"
            "11threadblock22ImplicitGemmMultistageINS_4gemm9GemmShapeILi128ELi128ELi32EEENS4_"
            "52Conv2dWgradOutputGradientTileAccessIteratorOptimizedINS_"
            "11MatrixShapeILi128ELi32EEENS_10tfloat32_tENS_9transform29PitchLinearWarpRakedThreadMa"
            "pINS_16PitchLinearShapeILi128ELi32EEELi128ENSF_ILi8ELi4EEELi4EEENS_12AlignedArrayISC_"
            "Li4ELi16EEEEENSD_11threadblock25RegularTileAccessIteratorISB_SC_NS_"
            "6layout40ColumnMajorTensorOpMultiplicandCongruousILi32ELi32EEELi1ESI_Li16EEELNS_"
            "4arch14CacheOperation4KindE0ENS4_48Conv2dWgradActivationTileAccessIteratorOptimizedINS"
            "A_ILi32ELi128EEESC_SI_SK_EENSN_ISW_SC_NSO_37RowMajorTensorOpMultiplicandCongruousILi32"
            "ELi32EEELi0ESI_Li16EEELSU_0ENS6_11threadblock9MmaPolicyINS6_4warp11MmaTensorOpINS7_"
            "ILi64ELi64ELi32EEESC_SQ_SC_SZ_fNSO_8RowMajorENS13_17MmaTensorOpPolicyINSS_3MmaINS7_"
            "ILi16ELi8ELi8EEELi32ESC_S16_SC_NSO_11ColumnMajorEfS16_NSS_13OpMultiplyAddEEENSA_"
            "ILi1ELi1EEEEELi1ELb0EbEENSA_ILi0ELi0EEES1G_Li1EEELi4EbEENS_"
            "8epilogue11threadblock8EpilogueIS8_S1F_Li1ENS1K_22PredicatedTileIteratorINS1K_"
            "26OutputTileOptimalThreadMapINS1K_15OutputTileShapeILi128ELi8ELi2ELi1ELi1EEENS1O_"
            "ILi1ELi8ELi1ELi1ELi8EEELi128ELi4ELi32EEEfLb0ENSO_9NoPermuteELb0EEENS1J_"
            "4warp24FragmentIteratorTensorOpIS15_S19_fNS_5ArrayIfLi4ELb1EEES16_EENS1U_"
            "20TileIteratorTensorOpIS15_S19_fS16_EENS1K_18SharedLoadIteratorINS1R_"
            "18CompactedThreadMapEfLi16EEENS1J_6thread17LinearCombinationIfLi4EffLNS24_"
            "9ScaleType4KindE0ELNS_15FloatRoundStyleE2EEENSA_ILi0ELi8EEELi2ELi1EEENS11_"
            "30GemmIdentityThreadblockSwizzleILi4EEELNS1_8OperatorE2ENS1_17Conv2dProblemSizeELNS1_"
            "9GroupModeE0EEEEEvNT_6ParamsE"),
    _rule("cuDNN conv (hand-written SASS)", rf"(?:cudnn_(?:infer_|train_)?)?{_SASS}_"
        rf"{_G_OUT}(?P<acc>[shi])(?P<tensor_cores>\d*)cudnn(?P<w>_winograd)?"
        rf"{_G_IN}(?:_(?P<tile>{_TILE})(?=_))?"
        r"(?(w)|(?:\w*?_(?P<direction>relu|stridedB_splitK|stridedB))?)", more=_blas,
        example="cudnn_volta_scudnn_128x64_relu_small_nn_v1"),
    _rule("cuDNN RNN", r"(?:cudnn::)?(?:elemWiseRNNcell|LSTM_elementWise_|GRU_elementWise_|"
        r"(?:persist)?RNN_blockPersist)",
        example="void elemWiseRNNcell<float, float, float, (cudnnRNNMode_t)0, (cudnnRNNBiasMode_"
            "t)2>(int, int, int)"),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        r"(?P<op>(?:nchwToNhwc|nhwcToNchw)Kernel)<",
        example="void nchwToNhwcKernel<float, float, float, true, false, (cudnnKernelDataType_t)0>("
            "int, int, int, int, float const*, float*, float, float)"),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        r"(?P<op>(?P<direction>wgrad|dgrad)(?:2d)?_(?:alg\w+|engine|c1_k1\w*))<",
        example="void wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int, "
            "float const*, int, float*, float const*, kernel_grad_params, unsigned long long, int, "
            "float)"),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        r"cutlass_\w*cudnn\w*::Kernel2?<\w*cudnn\w*::reduction::", op="split-K reduce of a conv",
        example="void cutlass_cudnn_train::Kernel<cutlass_cudnn_train::reduction::kernel::"
            "ReduceSplitK<cutlass_cudnn_train::MatrixShape<4, 128>, ..."),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        r"cudnn::(?:\w+::)*bn_(?P<direction>fw|bw)", op="batch norm",
        example="void cudnn::bn_bw_1C11_singleread<..."),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        rf"(?:cask_cudnn\w*|cudnn)::(?:\w+::)*(?:(?={_FN}))?"
        r"(?:\w*?(?P<direction>dgrad|wgrad|Wgrad))?",
        example="void cudnn::ops::scalePackedTensor_kernel<float, float>(long, float*, float)"),
    _rule("cuDNN other (conv helpers, batch norm, winograd, fft)",
        r"fft[12]d_|(?:im|ex)plicit_convolve_sgemm|DSE::",
        example="void fft2d_r2c_32x32<float, ..."),

    _rule("cuFFT", r"(?:regular_fft|vector_fft|spRealComplex\w*|postprocess_kernel_\w*fft)\w*<?",
        example="void regular_fft<192u, EPT<12u, 16u>, 16u, 2u, (padding_t)6, (twiddle_t)0, ..."),

    # Triton. Names of hand-written kernels are bare Python names: only those that are known count.
    _rule("Triton (inductor)",
        r"triton_(?P<kind>poi|red|per|tem|for|spl)_fused_?(?P<ops>\w*?)(?:_\d+$|$|…)",
        more=_triton,
        example="triton_poi_fused_0"),
    _rule("Triton (inductor)", r"triton__(?:\d+(?:d|de)?)+$",
        example="triton__0d1d2d"),
    _rule("Triton (hand-written)",
        r"_matmul_ogs_[NT]+_(?P<dtype_out>[a-z0-9]+?)x(?P<dtype_in>[a-z]+\d+)x"
        rf"[a-z]+\d+_(?P<tile>{_TILE})", op="matmul",
        example="_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1"),
    _rule("Triton (hand-written)",
        r"(?P<op>_matmul_ogs\w*|_combined_routing\w*|_topk_forward|fused_moe_kernel|"
        r"_copy_page_indices_kernel|_finalize_matmul\w*|mul_broadcast_2d_kernel|reduce_segments|"
        r"sage_quant_kernel)$",
        example="_topk_forward"),
    # of mixtures of experts and of serving: triton_kernels, vLLM, SGLang
    _rule("Triton (hand-written)",
        r"(?P<op>_sum_bitmatrix_\w+|_fwd_kernel_ep_(?:gather|scatter)\w*|_(?:un)?permute_kernel|"
        r"create_flashinfer_kv_indices_triton|compute_position_kernel|_silu_and_mul_post_quant_kernel|"
        r"_per_token_group_quant_\w+|_w8a8_(?:triton_)?block_\w*(?:mm|matmul)|awq_gemm_kernel|"
        r"awq_dequantize_kernel|_mxfp8_block_scaled_matmul_kernel|_lora_(?:shrink|expand)_kernel)"
        r"(?:_\d+)?$",
        example="_sum_bitmatrix_rows"),
    # of Liger and flash-attn
    _rule("Triton (hand-written)", r"(?P<op>_(?:fused_add_)?(?:rms|layer|group)_norm_"
        r"(?P<direction>forward|backward)_kernel|_(?:swiglu|geglu_tanh)_(?:forward|backward)_kernel|"
        r"_triton_rope|liger_\w+_kernel|rotary_kernel)(?:_\d+)?$",
        example="_rms_norm_forward_kernel"),
    # of Mamba and flash-linear-attention
    _rule("Triton (hand-written)", r"(?P<op>_chunk_(?:scan|state|cumsum)\w*|_state_passing_\w+|"
        r"_bmm_chunk_\w+|_selective_scan_update_kernel|_causal_conv1d_\w+|"
        r"(?:chunk|fused_recurrent)_\w*delta_rule\w*|chunk_(?:fwd|bwd)_kernel_\w+|"
        r"chunk_local_cumsum_\w+|chunk_scaled_dot_kkt_\w+|recompute_w_u_\w+|"
        r"_?layer_norm_(?:gated_)?(?:fwd|bwd)_(?:1pass_)?kernel)(?:_\d+)?$",
        example="_chunk_scan_fwd_kernel"),

    # ATen
    _rule("ATen vectorized elementwise", rf"{_NS}vectorized_elementwise_kernel<{_N}, ",
        more=_elementwise,
        example="void at::native::vectorized_elementwise_kernel<4, at::native::AbsFunctor<"
            "long>..."),
    _rule("ATen vectorized elementwise",
        rf"{_NS}(?P<casts>vectorized_templated)_elementwise_kernel(?:<{_N}, (?:{_N}, )?)?",
        more=_elementwise,
        example="void at::native::vectorized_templated_elementwise_kernel<8, at::native::"
            "CUDAFunctor_add<float>, std::array<char*, 3ul>, ..."),
    _rule("ATen unrolled elementwise", rf"{_NS}unrolled_elementwise_kernel\w*<(?:{_N}, )?",
        more=_elementwise,
        example="void at::native::unrolled_elementwise_kernel<at::native::FillFunctor<float>, at::"
            "detail::Array<char*, 1>, TrivialOffsetCalculator<0, unsigned int>, "
            "TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithoutCast, at::"
            "native::memory::StoreWithoutCast>(int, at::native::FillFunctor<float>, at::detail::"
            "Array<char*, 1>, TrivialOffsetCalculator<0, unsigned int>, TrivialOffsetCalculator<1, "
            "unsigned int>, at::native::memory::LoadWithoutCast, at::native::memory::"
            "StoreWithoutCast)"),
    _rule("ATen elementwise (non-contiguous)", rf"at::native::elementwise_kernel(?:_manual_unroll)?"
        rf"<{_N}, {_N}, {_NS}(?:gpu_kernel_impl_nocast<|"
        rf"(?P<casts>gpu_kernel_impl<|type_specialized_broadcast_kernel_launcher<{_N}>::apply<))?",
        more=_elementwise,
        example="_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_15gpu_kernel_implIZNS0_16copy_"
            "kernel_implIN3c104HalfES5_EEvRNS_14TensorIteratorEEUlS5_E_EEvS7_RKT_EUliE0_EEviT1_"),
    _rule("ATen vectorized elementwise", rf"{_NS}vectorized_elementwise_kernel",
        example="void at::native::vectorized_elementwise_kernel<..."),
    _rule("ATen unrolled elementwise", rf"{_NS}unrolled_elementwise_kernel",
        example="unrolled_elementwise_kernel"),
    _rule("ATen elementwise (non-contiguous)",
        r"at::native::elementwise_kernel(?:_manual_unroll)?\b",
        example="void at::native::elementwise_kernel<..."),
    _rule("ATen softmax", rf"{_NS}softmax_warp_(?:(?P<direction>forward|backward)\b)?(?:<{_IN}, "
        rf"{_OUT}, {_ACC}, (?P<log2>\d{{1,2}}), (?P<log>{_FLAG}))?",
        more=_softmax,
        example="void (anonymous namespace)::softmax_warp_forward<float, float, float, 1, false, "
            "..."),
    _rule("ATen softmax", rf"{_NS}cunn_(?:Spatial)?SoftMax(?P<direction>Forward|Backward)\w*"
        rf"(?:<(?:{_N}, )?{_IN}, {_ACC}, {_OUT})?",
        more=_softmax,
        example="void at::native::(anonymous namespace)::cunn_SoftMaxForwardReg<float, float, "
            "float, at::native::(anonymous namespace)::SoftMaxForwardEpilogue, long, 4>(float*, "
            "float const*, long)"),
    _rule("ATen reduce", rf"{_AT}reduce_kernel(?:<{_N}, {_N}, {_NS}ReduceOp<{_IN}, "
        rf"(?:{_NS}func_wrapper_t<{_CPP}, )?"
        rf"(?:{_NS}(?!func_wrapper_t)(?P<op>\w+)(?=[<(>,]))?"
        rf"(?:.*?, unsigned int, {_OUT}, {_N})?)?",
        example="void at::native::reduce_kernel<512, 1, at::native::ReduceOp<int, at::native::"
            "ArgMaxOps<int>, unsigned int, long, 4>..."),
    _rule("ATen triu/tril", rf"{_NS}triu_tril_kernel(?:<{_IN}, \w+, (?P<upper>{_FLAG}))?",
        more=lambda m, _: {"op": {"true": "triu", "false": "tril"}.get(m["upper"])},
        example="void at::native::triu_tril_kernel<bool, int, false, ..."),
    _rule("ATen cat", rf"{_NS}CatArrayBatchedCopy", op="cat",
        example="void at::native::(anonymous namespace)::CatArrayBatchedCopy<..."),
    _rule("ATen index / gather / scatter", rf"(?:{_AT})?"
        r"(?P<fn>index(?:Select|Func|_|ing_)\w*|_?scatter_gather\w*|vectorized_gather\w*|"
        r"sum_and_scatter)<",
        more=_backward,
        example="void at::native::vectorized_gather_kernel<..."),
    _rule("ATen normalization", rf"{_AT}(?P<fn>\w*?(?:layer_norm|LayerNorm|batch_norm|GroupNorm|"
        r"RowwiseMoments|FusedParams|GammaBeta|ComputeInternalGradients|weight_norm)\w*)",
        more=_backward,
        example="void at::native::(anonymous namespace)::RowwiseMomentsCUDAKernel<..."),
    _rule("optimizer / foreach (multi_tensor_apply)",
        rf"{_NS}multi_tensor_apply_kernel(?:<[^()]{{0,300}}?\b(?P<op>\w{{1,60}}Functor)\b)?",
        example="void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<..."),
    _rule("ATen other", rf"{_AT}(?P<op>(?P<fn>\w+))(?=$|[<(])", more=_backward,
        example="void at::native::(anonymous namespace)::krn_partials_per_segment<..."),
    _rule("ATen other", rf"at::cuda::{_NS}{_FN}",  # what torch.cuda._sleep waits in
        example="at::cuda::(anonymous namespace)::spin_kernel(long)"),
    _rule("ATen other", r"at::native::",
        example="void at::native::(anonymous namespace)::..."),
    _rule("ATen other",
        r"(?P<fn>elementwise_kernel_with_index)(?:<\w+, at::native::(?P<op>\w+)(?=[<(]))?",
        more=_backward,
        example="void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_"
            "cuda_out(..."),

    # Other libraries
    _rule("CUB / rocPRIM (sort, scan, reduce)",
        r"(?:at_cuda_detail::)?(?:cub|rocprim|thrust)::(?:(?:\w+::)*(?P<word>\w+)(?=[<(]))?",
        example="void cub::DeviceScanInitKernel<..."),
    _rule("vLLM / SGLang / AITER custom op", r"moe::dev::(?:(?P<op>\w+)::)?",
        example="void moe::dev::finalize::finalizeKernelVecLoad<moe::dev::finalize::KernelParams<"
            "cutlass::bfloat16_t, cutlass::bfloat16_t, 4, true> >(moe::dev::finalize::KernelParams<"
            "cutlass::bfloat16_t, cutlass::bfloat16_t, 4, true>)"),
    _rule("vLLM / SGLang / AITER custom op", rf"(?:vllm|sglang|sgl_hip|aiter)::{_NS}(?:{_FN})?",
        example="void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(vllm::RankData*, vllm::"
            "RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)"),
    _rule("vLLM / SGLang / AITER custom op",
        r"(?P<op>store_kvcache|clamp_position_kernel|resolve_future_token_ids_kernel)\b",
        example="void (anonymous namespace)::clamp_position_kernel<long>(long*, long const*, "
            "unsigned long)"),
    _rule("FlashInfer (other)", rf"flashinfer::{_NS}{_FN}",
        example="void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*, __"
            "nv_bfloat16*, __nv_bfloat16*, unsigned int, unsigned int, unsigned int, float, "
            "float)"),
    _rule("TensorRT-LLM (other)", rf"tensorrt_llm::{_NS}{_FN}",
        example="void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::"
            "BlockScaleQuantizationType)2, __nv_bfloat16, 32, true>(int, int, int)"),
    _rule("Transformer Engine", rf"transformer_engine::{_NS}{_FN}",
        example="void transformer_engine::normalization::rmsnorm_fwd_general_kernel<transformer_"
            "engine::normalization::..."),
    _rule("apex", r"cu(?:Apply(?:Layer|RMS)Norm|ComputeGrad(?:Input|GammaBeta)|"
        r"ComputePartGradGammaBeta)\w*<|layer_norm::ln_(?P<direction>fwd|bwd)_",
        example="void layer_norm::ln_fwd_kernel<layer_norm::Kernel_traits<__nv_bfloat16, ..."),
    _rule("bitsandbytes", r"(?P<op>k(?:gemm_4bit_inference|(?:Deq|Q)uantize|Optimizer|"
        r"Int8VectorQuant|PreconditionOptimizer)\w*)(?=[<(]|$)",
        example="void kDequantizeBlockwise<float, 512, 64, 8, 2>(float*, unsigned char*, float*, "
            "float*, int, int)"),
    _rule("Mamba", r"(?P<op>selective_scan_(?P<direction>fwd|bwd)_kernel)<", op="selective_scan",
        example="void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16, 1, ..."),
    _rule("Mamba", r"(?P<op>causal_conv1d_\w+)<",
        example="void causal_conv1d_channellast_fwd_kernel<Causal_conv1d_channellast_fwd_kernel_"
            "traits<128, ..."),
    _rule("FBGEMM embedding / recommender", r"(?:fbgemm_gpu::)?(?:split|dense)_embedding"
        r"(?:_(?:codegen_)?(?P<direction>forward|backward))?", op="embedding",
        example="split_embedding_backward_codegen_rowwise_adagrad_weighted_find_long_segments(..."),
    _rule("FBGEMM embedding / recommender", rf"fbgemm_gpu::{_NS}(?:{_FN})?",
        example="void fbgemm_gpu::_offsets_range_cuda_kernel<int>(long, long, int const*, int*)"),
    _rule("FBGEMM embedding / recommender", r"(?P<op>bounds_check_indices_kernel\w*|"
        r"recat_copy_async_kernel|permute_pooled_embs_kernel|linearize_\w*ind\w+|jagged_dense_\w+|"
        r"(?:lru|lfu)_cache_\w+)(?=[<(]|$)",
        example="void permute_pooled_embs_kernel<float>(float const*, long const*, long const*, "
            "long const*, float*, long, long, long)"),
    _rule("CuTe DSL kernel (not attention)",
        r"kernel_cutlass_(?:[a-z0-9_]*(?P<op>[A-Z]\w*?)_object_)?",
        example="kernel_cutlass_kernel_flashinfernormkernelsfused_add_rmsnormFusedAddRMSNormKernel_"
            "object_at__tensorptrbf16gmemalign128o409640961_tensorptrbf16gmemalign128o409640961_"
            "tensorptrbf16gmemalign_0"),

    # Nobody's namespace, and a name that says what they do: templates of SGLang, vLLM, AITER and
    # those who copied them.
    _rule("custom kernel", r"(?P<op>fused_qk_?norm\w*|groupnorm_kernel_dispatch_\w+|"
        r"fused_add_rms_?norm\w*|(?:norm::)?(?:FusedAdd)?RMSNormKernel)(?=<)",
        example="void (anonymous namespace)::groupnorm_kernel_dispatch_down<__hip_bfloat16, 1024u>("
            "unsigned int, unsigned int, long, float, bool, __hip_bfloat16 const*)"),
    _rule("custom kernel", r"(?P<op>fused_rope(?:_\w+)?_kernel|rotary_embedding_kernel)(?=<)",
        example="void rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, "
            "c10::BFloat16*, c10::BFloat16 const*, int, long, long, long, int, int, int)"),
    _rule("custom kernel", r"(?:activation::)?(?P<op>act_and_mul_kernel)(?=<)",
        example="void activation::act_and_mul_kernel<__nv_bfloat16, &silu<..."),
    _rule("custom kernel",
        r"(?P<op>per_(?:token|tensor|channel)_(?:group_)?quant_\w+|quantize_with_block_size)(?=<)",
        example="void per_token_group_quant_8bit_kernel<__nv_bfloat16, c10::Float8_e4m3fn, false>(_"
            "_nv_bfloat16 const*, void*, float*, int, int, int, float, float, float, int, int)"),
    _rule("custom kernel", r"(?P<op>moe_align_block_size\w*|count_and_sort_expert_tokens_kernel|"
        r"topkGating(?:Softmax)?|moe_fused_gate\w*|moe_sum_\w+)(?=<)",
        example="void moe_align_block_size_small_batch_expert_kernel<int, 256>(int const*, int*, "
            "int*, int*, int, int, unsigned long, bool, int)"),
    # DeepSeek's, of its published profiles
    _rule("custom kernel", r"(?:cuda::)?(?P<op>per_(?:token|channel)_cast_\w+|cast_back_impl|"
        r"(?:batched_)?swiglu_\w+|batched_transpose|get_fused_mapping|expand_to_fused\w*|"
        r"reduce_fused_impl|clean_and_count_expert)(?=[<(])",
        example="void cuda::per_token_cast_to_fp8_with_channels<__nv_bfloat16, 128, false, 128, "
            "false>(__nv_bfloat16 const*, int, unsigned char*, float*, int, int, int, int, bool, "
            "float)"),
    _rule("custom kernel", rf"dpsk::{_NS}{_FN}",
        example="void dpsk::grouped_gemm::cuda::utils::transpose<512, 128, 4, 4>(unsigned char "
            "const*, unsigned char*, int, int, int, int)"),
    _rule("custom kernel",
        r"(?P<op>(?:fused_a|router)_gemm_kernel|fast_hadamard_transform_kernel)(?=<)",
        example="void fused_a_gemm_kernel<1, 2112, 7168, 16, 8, 256, 16>(__nv_bfloat16*)"),

    # AMD
    _rule("rocBLAS/hipBLASLt (Tensile)",
        r"Cijk_A\w{3}_B\w{3}_(?P<dtype_in>[BHSDCZ])_?(?P<dtype_out>[BHSDCZ])"
        rf"(?P<dtype_acc>[BHSDCZ])_(?:\w*?_MT(?P<tile>{_TILE})_(?P<tensor_cores>MI|[A-Z]+))?"
        r"(?:\w*?_ISA(?P<arch_token>[0-9a-f]+)_)?", words=TENSILE,
        example="Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32_MI32x32x1_SN_LDSB0_AFC1_"
            "AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_"
            "ISA90a_IU1_K1_LBSPPA0_LBSPPB0_LBSPPM0_LPA0_LPB0_LPM0_LRVW4_LWPMn1_MIAV0_MIWT2_1_MO40_"
            "NTn1_NTA0_NTB0_NTC0_NTD0_NTM0_NEPBS2_NLCA1_NLCB1_ONLL1_PGR2_PLR1_PKA1_SIA3_SS1_SPO1_"
            "SRVW0_SSO0_SVW1_SK0_SKXCCM0_TLDS0_ULSGRO0_USL1_UIOFGRO0_USFGROn1_VSn1_VWA2_VWB1_"
            "WSGRA0_WSGRB0_WS64_WG64_4_1"),
    _rule("rocBLAS/hipBLASLt (Tensile)", r"Cijk_A\w{3}_B\w{3}_(?P<dtype_in>[HSDCZ])B_"
        rf"(?:\w*?_?MT(?P<tile>{_TILE})_(?P<tensor_cores>MI|[A-Z]+))?"
        r"(?:\w*?_ISA(?P<arch_token>[0-9a-f]+)_)?", words=TENSILE,
        more=lambda m, f: {"dtype_out": f["dtype_in"], "dtype_acc": f["dtype_in"]},
        example="Cijk_Ailk_Bjlk_SB_Bias_AS_SAV_UserArgs_MT64x16x16_MI16x16x1_SN_LDSB0_AFC1_AFEM1_"
            "AFEM1_ASEM1_CLR1_CADS0_EPS0_GRVWA1_GRVWB1_GSUAMB_ISA90a_IU1_K1_LBSPPA0_LBSPPB0_"
            "LBSPPM0_LPA0_LPB0_LPM0_LRVW1_LWPMn1_MIAV0_MIWT1_1_MO40_NTn1_NTA0_NTB0_NTC0_NTD0_NTM0_"
            "NEPBS2_NLCA1_NLCB1_ONLL1_PGR2_PLR1_PKA1_SIA3_SS1_SPO1_SRVW0_SSO0_SVW1_TLDS0_USFGROn1_"
            "VSn1_VWA1_VWB1_WSGRA0_WSGRB0_WS64_WG64_4_1"),
    _rule("rocBLAS/hipBLASLt (Tensile)", r"Cijk_\w*_PostGSU", **_NO_CORES,
        example="Cijk_SB_BiasS_HAS_ScaleAlphaVec_PostGSU16_VW4"),
    _rule("rocBLAS/hipBLASLt (Tensile)", r"Cijk_",
        example="Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128_MI16x16x1_SN_LDSB1_AFC1_"
            "AFEM1_AFEM1_ASEM1_CLR1_CADS0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA2_GRVWB2_GSUAMB_GLS0_"
            "ISA942_IU1_K1_LBSPPA256_LBSPPB512_LBSPPM0_LPA16_LPB8_LPM0_LRVW4_LWPMn1_MIAV0_MIWT1_1_"
            "MO40_NTn1_NTA4_NTB0_NTC0_NTD4_NTM0_NEPBS16_NLCA1_NLCB1_ONLL1_PGR2_PLR1_PKA1_SIA3_SS1_"
            "SPO0_SRVW0_SSO0_SVW1_SK0_SKXCCM0_TLDS1_ULSGRO0_USL1_UIOFGRO0_USFGROn1_VSn1_VWA1_VWB1_"
            "WSGRA0_WSGRB0_WS64_WG16_4_4"),
    _rule("rocBLAS (other)", r"rocblas_(?P<op>\w+)(?=[<(]|$)",
        example="void rocblas_gemvt_warp_reduce_kernel<..."),
    _rule("MIOpen conv (igemm asm)", r"igemm_(?P<direction>fwd|bwd|wrw)_gtcx?(?P<gen>\d?)_nhwc_"
        rf"(?P<dtype_in>{_GEMM})_(?:\w*?_bt(?P<tile>{_TILE})_)?",
        more=_igemm,
        example="igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt64x64x64_wt16x16x16_ws1x1_wr2x2_ta1x8x2x1_"
            "1x8x1x32_tb1x8x2x1_1x8x1x32"),
    _rule("MIOpen other", r"(?:miopen\w*AsmConv|naive_conv_)\w*", op="conv", tensor_cores=None,
        example="miopenSp3AsmConv_v21_1_3_gfx9_fp32_f2x3_stride1"),
    _rule("MIOpen other",
        rf"(?:(?={_FN}))?"
        r"(?:MIOpen|miopen|SubTensorOp|batched_transpose_|transpose_[CNHW]+2|Im2d2Col)"
        r"(?:\w*?(?P<direction>Fwd|Bwd))?",
        example="Im2d2Col_v2"),
    _rule("Composable Kernel (CK)", r"ck::(?:\w+::)*kernel_(?=\w*(?P<tensor_cores>xdl))"
        r"\w*?(?P<direction>fwd|bwd_data|bwd_weight)(?:.*?(?P<ushort>unsigned short, float))?",
        op="conv",
        more=_ck_conv,
        example="_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_"
            "cshuffle_v3INS_34GridwiseGemmMultiD_xdl_cshuffle_v3INS_13tensor_"
            "layout4gemm8RowMajorENS6_11ColumnMajorENS_5TupleIJEEES7_ttftSA_tNS0_12element_"
            "wise11PassThroughESC_SC_LNS1_18GemmSpecializationE7ELi256ELi128ELi128ELi64ELi8ELi8ELi3"
            "2ELi32ELi2ELi2ENS_8SequenceIJLi8ELi32ELi1EEEENSE_IJLi1ELi0ELi2EEEESG_"
            "Li2ELi8ELi8ELb0ELi0ESF_SG_SG_Li2ELi8ELi8ELb0ELi0ELi1ELi1ENSE_"
            "IJLi1ELi32ELi1ELi8EEEENSE_IJLi8EEEELNS_26BlockGemmPipelineSchedulerE0ELNS_"
            "24BlockGemmPipelineVersionE2EttttLb0ELb0EEENS1_30ComputePtrOffsetOfStridedBatchILi1ELi"
            "1ELi0EvEENS_16TensorDescriptorINS9_IJNS_5EmbedINS9_IJiiiiEEESQ_Lb0EEENS_"
            "11PassThroughIiEENS_3PadIiiiLb0EEESV_ST_ST_NSP_INS9_IJiiEEESW_Lb0EEESX_ST_NS_23Merge_"
            "v2_magic_divisionINS9_IJiiiEEEEES10_NS_8RightPadIiiLb0EEES12_NS_7UnMergeISW_Lb0EEEST_"
            "EEENS9_IJNSE_IJLi0EEEENSE_IJLi1EEEENSE_IJLi2EEEENSE_IJLi3EEEENSE_IJLi4EEEENSE_"
            "IJLi5EEEENSE_IJLi6EEEENSE_IJLi7EEEESI_NSE_IJLi9ELi11ELi13EEEENSE_"
            "IJLi10ELi12ELi14EEEENSE_IJLi15EEEENSE_IJLi16EEEENSE_IJLi18EEEENSE_IJLi17EEEEEEENS9_"
            "IJNSE_IJLi1ELi2ELi3ELi4EEEES1B_S1C_S1D_SI_NSE_IJLi9EEEENSE_IJLi10ELi11EEEENSE_"
            "IJLi12ELi13EEEENSE_IJLi14EEEES1G_S1H_S1J_S1I_NSE_IJLi19ELi20EEEENSE_IJLi21EEEEEEENSE_"
            "IJLi19ELi21ELi20EEEElEENSO_INS9_IJS14_S12_S12_S14_ST_EEENS9_IJS16_S17_S18_S1A_S19_"
            "EEENS9_IJNSE_IJLi1ELi2EEEES19_S1A_NSE_IJLi5ELi6EEEES1D_EEENSE_IJLi5ELi7ELi6EEEElEESA_"
            "NSO_INS9_IJSX_S12_S12_EEENS9_IJS16_S17_S18_EEENS9_IJS1X_S19_S1A_EEENSE_"
            "IJLi3ELi4EEEElEELb1ELNS_25InMemoryDataOperationEnumE0ELi1ELNS_10TailNumberE10EEEvNT_"
            "8ArgumentET1_T2_T3_T4_T0_S2F_"),
    _rule("Composable Kernel (CK)", r"ck::(?:\w+::)*kernel_(?:[a-z]+_)?(?:mx)?gemm"
        r"(?:\w*?(?P<tensor_cores>xdl))?", op="gemm",
        example="void ck::kernel_moe_gemm<ck::GridwiseMoeGemmBlockScale<..."),
    _rule("Composable Kernel (CK)", r"ck_tile::kentry<(?:\d+, )+ck_tile::\w*(?:Gemm|Flatmm)Kernel",
        op="gemm", example="void ck_tile::kentry<1, ck_tile::GroupedGemmKernel<..."),
    _rule("Composable Kernel (CK)", r"ck_tile::kentry<(?:\d+, )+ck_tile::MoeSorting",
        op="moe sorting", example="void ck_tile::kentry<2, ck_tile::MoeSortingKernel<..."),
    _rule("Composable Kernel (CK)", r"ck_tile::.*?Rmsnorm2dFwd(?:.*?Problem<(?P<dtype_in>\w+))?",
        op="RMSNorm", **_NO_CORES,
        example="_ZN7ck_tile6kentryILi1ENS_12Rmsnorm2dFwdINS_27Rmsnorm2dFwdPipelineOnePassINS_"
            "27Rmsnorm2dFwdPipelineProblemIDF16bDF16bfDF16bDF16bDF16bffNS_19Generic2dBlockShapeINS_"
            "8sequenceIJLi1ELi3072EEEENS5_IJLi1ELi128EEEENS5_IJLi1ELi8EEEEEENS_"
            "18Rmsnorm2dFwdTraitsILb1ELb0ELb0ELb0ELNS_21Rmsnorm2dFusedAddEnumE0ELNS_"
            "23Rmsnorm2dFusedQuantEnumE0ELNS_22Rmsnorm2dSensitiveEnumE0EEEEENS_"
            "33Rmsnorm2dFwdPipelineDefaultPolicyEEENS_17Default2DEpilogueINS_"
            "24Default2DEpilogueProblemIfDF16bLb0ELb1ELb0EEEvEEEEJNSM_5KargsEEEEvDpT1_"),
    _rule("Composable Kernel (CK)", r"ck(?:_tile)?::",
        example="void ck_tile::kentry<..."),
)
# fmt: on
