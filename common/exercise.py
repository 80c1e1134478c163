"""Exercises, each on a recording that comes with the project: no GPU and no PyTorch is needed.

    uv run -m common.exercise                  all of them
    uv run -m common.exercise 1                one: the question, and where to look
    uv run -m common.exercise 1 --answer 1.5   your answer, checked against the recording
    uv run -m common.exercise 1 --solution     the sum

Every answer is computed from the recording when it is asked for. A number is right within 3 %.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

from rich.text import Text

from . import experiment
from .cli import UserError, one_line_errors, option, parse, positive, shown
from .compare.claims import footprint, ops_inside, score_bytes
from .experiments import Recorded, leak, peak
from .read import recordings
from .read.kernel_names import decode, describe
from .read.observe import Observation, OnGpu, Step, observe
from .read.trace import read
from .show.as_json import print_json
from .show.terminal import console, print_plain
from .show.words import duration, microseconds, percent
from .story import Story

CLOSE = 0.03  # of the answer
SHAPE = (8, 16, 1024, 64)
LAYERS = 32
TRITON_SEQS = (512, 1024, 2048, 4096, 8192)
FMHA = "fmha_cutlassF_f32_aligned_32x128_gmem_sm75"


@dataclass(frozen=True)
class Solution:
    """The answer, a number or a word, and the sum that leads to it."""

    answer: float | str
    working: tuple[str, ...]


@dataclass(frozen=True)
class Exercise:
    section: str  # of the guide
    question: str
    look: str  # a command that shows what is needed
    hint: str
    solve: Callable[[], Solution]


# ── What the recordings hold ──────────────────────────────────────────────────────────────────────


@cache
def _seen(script: str, variant: str = "", seq: int = SHAPE[2], mode: str = "eager") -> Observation:
    batch, heads, _, head_dim = SHAPE
    path = recordings.shipped(script, variant, (batch, heads, seq, head_dim), "bf16", mode)
    return observe(read(path))


NAIVE, IN_PLACE = "04_a_naive_attention", "04_b_inplace_ops_attention"
SDPA, KERNELS = "04_c_sdpa_attention", "04_d_kernels_attention"


@cache
def _recorded(name: str) -> dict[str, Recorded]:
    """Those of an experiment, by variant."""
    return {one.variant: one for one in experiment.load(name, [experiment.SHIPPED])}


def _path(script: str, variant: str = "", mode: str = "eager") -> str:
    return shown(_seen(script, variant, mode=mode).trace.path)


def _known(value: float | None) -> float:
    if not value:
        raise UserError("the recording does not tell it")
    return value


def _story(seen: Observation) -> Story:
    if seen.story is None:
        raise UserError(f"{shown(seen.trace.path)}: it does not tell what was recorded")
    return seen.story


def _one(seen: Observation, kind: str, number: int = 0) -> Step:
    steps = seen.of(kind)
    if len(steps) <= number:
        raise UserError(f"{shown(seen.trace.path)}: no {kind} in it")
    return steps[number]


def _on_gpu(step: Step) -> OnGpu:
    if step.on_gpu is None:
        raise UserError("recorded without a GPU")
    return step.on_gpu


def _us(step: Step) -> float:
    return _known(step.ns) / 1e3


# ── The sums ──────────────────────────────────────────────────────────────────────────────────────


def mask_rate() -> Solution:
    seen = _seen(NAIVE)
    story = _story(seen)
    moved, us = 2 * score_bytes(story), _us(_one(seen, "mask"))
    rate = moved / us / 1e6
    return Solution(
        rate,
        (
            f"{' × '.join(map(str, (*story.shape[:3], story.shape[2])))} numbers of 2 bytes are "
            f"{moved // 2:,} bytes; read once and written once, {moved:,}.",
            f"{moved:,} bytes / {us:.1f} µs = {rate:.2f} TB/s.",
        ),
    )


def copy_of_layers() -> Solution:
    us = _us(_one(_seen(NAIVE), "copy"))
    return Solution(
        LAYERS * us / 1e3, (f"{LAYERS} layers × {us:.1f} µs = {LAYERS * us / 1e3:.2f} ms.",)
    )


def ops_saved() -> Solution:
    before = ops_inside(_seen(NAIVE), "aten::masked_fill")
    after = ops_inside(_seen(IN_PLACE), "aten::masked_fill_")
    return Solution(
        len(before) - len(after),
        (f"{len(before)} ops with masked_fill, {len(after)} with masked_fill_.",),
    )


def freed_peak() -> Solution:
    by = _recorded("peak")
    held, freed = (by[name].story.peak_bytes for name in ("in-place", "in-place" + peak.FORGETS))
    mib = _known(freed) / 2**20
    return Solution(
        mib,
        (
            f"+{_known(held) / 2**20:,.0f} MiB with the name, +{mib:,.0f} MiB without: two "
            f"score-sized tensors of {score_bytes(by['in-place'].story) / 2**20:,.0f} MiB, as mul "
            "and softmax hold them. The output comes after one of them has gone.",
        ),
    )


def wide_softmax() -> Solution:
    narrow = _us(_one(_seen(NAIVE), "softmax"))
    wide = _us(next(s for s in _seen(SDPA, "math").steps if "softmax_warp_forward" in s.name))
    return Solution(
        wide / narrow,
        (
            f"bf16 scores {narrow:.1f} µs, FP32 scores {wide:.1f} µs: {wide / narrow:.2f} times.",
            *(
                ("Twice the bytes and no more time: it is not bytes that softmax waits for.",)
                if wide < 1.1 * narrow
                else ()
            ),
        ),
    )


def matmul_rate() -> Solution:
    seen = _seen(SDPA, "math")
    batch, heads, seq, head_dim = _story(seen).shape
    operations, us = 2 * batch * heads * seq**2 * head_dim, _us(_one(seen, "matmul"))
    rate = operations / us / 1e6
    return Solution(
        rate,
        (
            f"2 × {batch} × {heads} × {seq} × {seq} × {head_dim} = {operations / 1e9:.1f} GFLOP: a "
            "product and a sum for each of them.",
            f"{operations / 1e9:.1f} GFLOP / {us:.1f} µs = {rate:.1f} TFLOP/s.",
        ),
    )


def read_name() -> Solution:
    kernel = decode(FMHA)
    return Solution(kernel.dtype_in or "", (describe(kernel),))


def flash_wide() -> Solution:
    seen = next(
        one.seen
        for one in experiment.load("occupancy", [experiment.SHIPPED])
        if one.variant == "flash" and one.story.shape[3] == 128
    )
    work = _on_gpu(_one(seen, "attention"))
    fits, gpu = work.residency, work.event
    if not fits or not gpu.block:
        raise UserError("the recording does not tell it")
    threads = prod(gpu.block)
    return Solution(
        fits.warps,
        (
            footprint(work),
            f"{fits.blocks} blocks × {threads} threads / 32 threads a warp = {fits.warps} warps.",
        ),
    )


def cudnn_idle() -> Solution:
    idle, whole = _seen(SDPA, "cudnn").idle_of_recording
    return Solution(
        _known(idle) / 1e3,
        (
            f"{microseconds(idle)} of {microseconds(whole)} between the first GPU event and the "
            f"last, {percent(_known(idle) / _known(whole))}.",
        ),
    )


def tuning_share() -> Solution:
    seen = _recorded("tuning")["triton"].seen
    first, *others = (sum(step.ns or 0 for step in forward.steps) for forward in seen.forwards)
    factor = first / (sum(others) / len(others))
    return Solution(
        factor,
        (
            f"{duration(first)} in the first, {duration(sum(others) / len(others))} in each of the "
            f"others: {factor:.0f} times.",
        ),
    )


def naive_to_gluon() -> Solution:
    naive, gluon = _known(_seen(NAIVE).gpu_ns), _known(_seen(KERNELS, "gluon").gpu_ns)
    return Solution(
        naive / gluon, (f"{duration(naive)} / {duration(gluon)} = {naive / gluon:.1f}.",)
    )


def triton_behind() -> Solution:
    times = {
        seq: tuple(
            _known(_seen(script, variant, seq).gpu_ns)
            for script, variant in ((KERNELS, "triton"), (SDPA, "cudnn"))
        )
        for seq in TRITON_SEQS
    }
    first = next(seq for seq, (triton, cudnn) in times.items() if triton > cudnn)
    return Solution(
        first,
        tuple(f"{seq}: Triton {duration(t)}, cuDNN {duration(c)}" for seq, (t, c) in times.items()),
    )


def leaked_share() -> Solution:
    one = _recorded("leak")["never"]
    found = leak.Leak(one.seen, one.story)
    part, whole = _known(found.leaked_ns), _known(found.total_ns)
    return Solution(
        100 * part / whole,
        (f"{microseconds(part)} of {microseconds(whole)}: {100 * part / whole:.1f} %.",),
    )


def first_control() -> Solution:
    nvjet = _one(_seen(NAIVE), "matmul")
    xmma = [_one(_seen(SDPA, "math"), "matmul", number) for number in (0, 1)]
    return Solution(
        float(_known(_on_gpu(nvjet).event.shared_memory)),
        tuple(f"{step.call}: {footprint(_on_gpu(step))}" for step in (nvjet, *xmma)),
    )


def first_call() -> Solution:
    one = _recorded("plan")["cudnn"]
    times = dict(zip(one.story.calls, (f.cpu_ns for f in one.seen.forwards), strict=True))
    call = "shorter rows"
    first, second = times[call], times[f"{call}, again"]
    return Solution(
        first / second,
        (f"{duration(first)} the first time, {duration(second)} the second: "
         f"{first / second:.0f} times.",),
    )  # fmt: skip


def whose_memset() -> Solution:
    memset = _one(_seen(NAIVE), "memset")
    return Solution(memset.ops[-1].name if memset.ops else "", (" › ".join(memset.path),))


EXERCISES = (
    Exercise(
        "1 · Naive attention",
        "The mask reads all scores and writes them again. How many TB/s is that?",
        "04_a_naive_attention.py --replay",
        "bytes read and bytes written, over the time of the mask; 1 TB is 10^12 bytes",
        mask_rate,
    ),
    Exercise(
        "1 · Naive attention",
        f"A model of {LAYERS} such layers makes the copy in each. How many ms a forward is that?",
        "04_a_naive_attention.py --replay",
        "the time of the copy, for each layer",
        copy_of_layers,
    ),
    Exercise(
        "2 · In place",
        "How many CPU ops does the underscore save in the masking step?",
        "04_b_inplace_ops_attention.py --replay",
        "the second line of what to look for counts both",
        ops_saved,
    ),
    Exercise(
        "2 · In place",
        "With `del scores` before the last matmul of 04_b: what is the peak, in MiB?",
        "-m common.experiment peak --replay",
        "which op holds most then, and how many score-sized tensors?",
        freed_peak,
    ),
    Exercise(
        "3 · SDPA, math",
        "Math's softmax kernel (softmax_warp_forward) reads and writes FP32, twice the bytes of "
        "04_a's. How many times as long does it take?",
        f"-m common.look {Path('traces/recorded/h200') / SDPA}/8_16_1024_64_math_eager.json.gz "
        "--json",
        "the same kernel is in the recording of 04_a; compare the two times",
        wide_softmax,
    ),
    Exercise(
        "3 · SDPA, math",
        "How many TFLOP/s does math's first matmul reach, all of the square counted?",
        "04_c_sdpa_attention.py --backend math --replay",
        "2·B·H·S²·D operations, over its time",
        matmul_rate,
    ),
    Exercise(
        "3 · SDPA, efficient",
        f"Which type do the elements have that {FMHA} reads?",
        f"-m common.kernel_names {FMHA}",
        "the piece behind fmha_cutlassF",
        read_name,
    ),
    Exercise(
        "3 · SDPA, flash",
        "How many warps of flash fit on an SM when head_dim is 128?",
        "-m common.experiment occupancy --replay",
        "registers a thread × threads a block, out of 65,536; shared memory beside it",
        flash_wide,
    ),
    Exercise(
        "3 · SDPA, cuDNN",
        "For how many µs does the GPU stand still between the first and the last event of cuDNN's "
        "recording?",
        f"-m common.look {Path('traces/recorded/h200') / SDPA}/8_16_1024_64_cudnn_eager.json.gz "
        "--json",
        "gpu_over_recording",
        cudnn_idle,
    ),
    Exercise(
        "4 · Kernels from outside",
        "How many times as much GPU time as a later forward does the one that tunes take?",
        "-m common.experiment tuning --replay",
        "the GPU column, first line over the others",
        tuning_share,
    ),
    Exercise(
        "5 · At a glance",
        "From naive to the Gluon kernel, how many times faster?",
        "-m common.glance",
        "one over the other; 1 ms is 1,000 µs",
        naive_to_gluon,
    ),
    Exercise(
        "5 · At a glance",
        "At which of the recorded lengths does the Triton kernel first take longer than cuDNN's?",
        "-m common.glance --sweep 512,1024,2048,4096,8192",
        "two lines of the first table, from left to right",
        triton_behind,
    ),
    Exercise(
        "6 · Whose time is the table's total?",
        "Not synchronised: how many % of the table's total belong to no forward?",
        "-m common.experiment leak --replay",
        "the events without a launch, over the total",
        leaked_share,
    ),
    Exercise(
        "6 · Why 0 % occupancy?",
        "naive's first matmul, nvjet, reads 0 % as well. For how many bytes of shared memory does "
        "a block of it ask?",
        f"-m common.look {Path('traces/recorded/h200') / NAIVE}/8_16_1024_64_eager.json.gz --json",
        "shared_memory of the first step of kind matmul",
        first_control,
    ),
    Exercise(
        "6 · Does cuDNN search in every call?",
        "How many times as long as the second takes the first call with shorter rows, on the CPU?",
        "-m common.experiment plan --replay",
        "cudnn, shorter rows, and the line below it",
        first_call,
    ),
    Exercise(
        "7 · Your own model",
        "Take 04_a's recording for one of your own. Which op launched the memset?",
        f"-m common.look {Path('traces/recorded/h200') / NAIVE}/8_16_1024_64_eager.json.gz --json",
        "ops of the step of kind memset, the innermost",
        whose_memset,
    ),
)


# ── The command ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Options:
    number: int | None = option(
        None,
        "the exercise (default: list them all)",
        positional=True,
        type=positive,
        nargs="?",
        metavar="N",
    )
    answer: str | None = option(None, "your answer: a number, or a word", metavar="ANSWER")
    solution: bool = option(False, "show the answer and the sum", action="store_true")
    json: bool = option(False, "print one JSON object", action="store_true")


def is_right(answer: float | str, given: str) -> bool:
    """Raises UserError where a number is asked for and none is given."""
    if isinstance(answer, str):
        return given.strip().lower().removeprefix("aten::") == answer.lower().removeprefix("aten::")
    found = re.fullmatch(r"\s*([+-]?[\d.,]*\d)\s*[^\d.,]*", given)  # a unit may follow
    if not found:
        raise UserError(f"--answer {given!r}: a number is asked for, such as 12.5")
    text = found[1]
    # 213,188 is a large number, 1,5 a small one.
    grouped = re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", text)
    try:
        number = float(text.replace(",", "" if grouped else "."))
    except ValueError:
        raise UserError(f"--answer {given!r}: a number is asked for, such as 12.5") from None
    return abs(number - answer) <= CLOSE * abs(answer)


def exercise(options: Options) -> None:
    number = options.number
    if number is None:
        if options.answer is not None or options.solution:
            raise UserError("which exercise? Give its number, such as: 1 --answer 1.5")
        everything(options.json)
        return
    if number > len(EXERCISES):
        raise UserError(f"there is no exercise {number}; there are {len(EXERCISES)}")
    one = EXERCISES[number - 1]
    given = options.answer
    solution = one.solve() if options.solution or given is not None else None
    right = is_right(solution.answer, given) if solution and given is not None else None
    told = solution if options.solution or right else None
    if options.json:
        print_json(
            {
                "exercise": number,
                "section": one.section,
                "question": one.question,
                "look": f"uv run {one.look}",
                "right": right,
                "answer": told.answer if told else None,
                "working": list(told.working) if told else None,
            }
        )
        return
    out = console()
    print_plain(out, Text(f"{number}  {one.section}", "bold"))
    print_plain(out, Text(f"\n{one.question}"))
    if right is not None:
        print_plain(out, Text("\nright" if right else f"\nnot {given}: {one.hint}", "bold"))
    if told:
        print_plain(out, Text("\n".join(("", *told.working))))
    elif right is None:
        out.print(Text(f"\nlook    uv run {one.look}"), soft_wrap=True)
        out.print(Text(f"answer  uv run -m common.exercise {number} --answer …"), soft_wrap=True)


def everything(json: bool) -> None:
    if json:
        listed = [
            {"exercise": number, "section": one.section, "question": one.question}
            for number, one in enumerate(EXERCISES, 1)
        ]
        print_json({"exercises": listed})
        return
    out = console()
    section = ""
    for number, one in enumerate(EXERCISES, 1):
        if one.section != section:
            section = one.section
            print_plain(out, Text(f"{chr(10) if number > 1 else ''}{section}", "bold"))
        print_plain(out, Text(f"{number:3}  {one.question}"))


if __name__ == "__main__":
    with one_line_errors():
        exercise(parse(Options, __doc__, "1 --answer 1.5", module="common.exercise"))
