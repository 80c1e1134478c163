"""Numbers, and what is counted, in words: the only place that words them."""

import math
from collections.abc import Sequence

from ..cli import shown
from ..compare.rows import Row
from ..read.kernel_names import brief
from ..read.observe import Observation
from ..read.op_names import said
from ..read.privacy import Finding
from ..read.usage import Stretches, Usage
from ..story import Conditions
from .language import say, spoken

FEW = 3  # of a list without end, so many are named


# ── Numbers ───────────────────────────────────────────────────────────────────────────────────────


def percent(share: float) -> str:
    return "<1 %" if share < 0.005 else f"{100 * share:.0f} %"


def microseconds(ns: float | None) -> str:
    return say("unknown") if ns is None else f"{ns / 1e3:,.1f} µs"


def duration(ns: float | None, spread: float | None = None) -> str:
    if ns is None:
        return say("unknown")
    unit, word = (1e9, "s") if ns >= 1e9 else (1e6, "ms") if ns >= 1e6 else (1e3, "µs")
    more = f" ± {digits(spread / unit)}" if spread is not None else ""
    return f"{digits(ns / unit)}{more} {word}"


def digits(number: float) -> str:
    """Three digits that mean something, and no exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def ratio(number: float | None) -> str:
    if number is None:
        return say("unknown")
    return f"{number:.2f}" if number >= 0.1 else f"{number:.3f}"


def tflops(number: float | None) -> str:
    if number is None:
        return say("unknown")
    return "<0.01" if number < 0.01 else digits(number)


def mebibytes(count: float | None) -> str:
    return say("unknown") if count is None else f"+{count / 2**20:,.0f}"


def size(count: float | None) -> str:
    """Bytes, in the unit that needs the fewest digits."""
    if count is None:
        return say("unknown")
    power = min(int(math.log2(max(count, 1)) // 10), 4)
    return f"{digits(count / 2 ** (10 * power))} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def plural(count: int | None, word: str) -> str:
    """3 kernels"""
    number = say("unknown") if count is None else str(count)
    return f"{number} {say(word) if count == 1 else plural_of(word)}"


def plural_of(word: str) -> str:
    if spoken() != "en":  # not every language has one
        return say(word)
    return {
        "copy": "copies",
        "launch": "launches",
        "e-mail address": "e-mail addresses",
        "IP address": "IP addresses",
        "hardware address": "hardware addresses",
    }.get(word, word + "s")


def few(words: list[str]) -> str:
    first = ", ".join(words[:FEW])
    more = len(words) - FEW
    return say("{first} and {more} more", first=first, more=more) if more > 0 else first


# ── What was recorded, what ran ───────────────────────────────────────────────────────────────────


def headline(seen: Observation) -> str:
    """Who ran what on what: GPU and version stand beside every number."""
    story = seen.story
    if story is None:
        devices = sorted({str(d["name"]) for d in seen.trace.devices if "name" in d})
        return " · ".join([shown(seen.trace.path), seen.region, *devices])
    return " · ".join(
        [
            " ".join(filter(None, (story.number, story.title, story.variant))),
            f"{story.dtype} {list(story.shape)}",
            story.mode,
            story.device.name,
            f"torch {story.versions.torch}",
        ]
    )


def conditions(made: Conditions) -> str:
    """What the numbers of a group have in common."""
    shape = ", ".join("seq" if size is None else str(size) for size in made.shape)
    words = [f"{made.dtype} [{shape}]", made.mode, made.device.name]
    words.append(f"torch {made.versions.torch}")
    if made.steps:
        words.append(plural(made.steps.active, "forward"))
    return " · ".join(words)


WHAT = {  # by (script, variant)
    ("04_a_naive_attention", ""): "five lines, one op each",
    ("04_b_inplace_ops_attention", ""): "the same five, the mask filled in place",
    ("04_c_sdpa_attention", "math"): "one call, worked out op by op",
    ("04_c_sdpa_attention", "efficient"): "one call, the kernel that came from xFormers",
    ("04_c_sdpa_attention", "flash"): "one call, FlashAttention-2",
    ("04_c_sdpa_attention", "cudnn"): "one call, a kernel that cuDNN generates",
    ("04_c_sdpa_attention", "auto"): "one call, the backend left to PyTorch",
    ("04_d_kernels_attention", "triton"): "a kernel in Triton, to read in the script",
    ("04_d_kernels_attention", "gluon"): "a kernel in Gluon, for Hopper alone",
    ("04_d_kernels_attention", "flex"): "FlexAttention, a kernel that torch.compile writes",
    ("04_d_kernels_attention", "hub"): "FlashAttention-2 from the Hub",
    ("04_d_kernels_attention", "fa4"): "a kernel of the package flash-attn-4",
}


def what(script: str, variant: str) -> str:
    """What a variant of the tutorial is, in a clause; nothing of any other."""
    return say(clause) if (clause := WHAT.get((script, variant))) else ""


def repeats(row: Row) -> str:
    return f" ×{row.works}" if row.works > 1 and not row.op else ""


def what_ran(row: Row) -> str:
    """The kernel in a few words."""
    main = row.main
    if main.kernel is None:
        name = said(main.name) or main.name
        return name if len(name) <= 30 else f"{name[:29]}…"
    kernels = sum(step.sort == "kernel" for step in row.steps)
    if row.op:
        return plural(kernels, "kernel")
    cores = {True: " · Tensor Cores", False: "", None: ""}[main.kernel.tensor_cores]
    if main.kernel.tensor_cores is False and main.kind in ("matmul", "attention"):
        cores = " · CUDA cores"
    memset = " + memset" if row.kind != "memset" and row.steps[0].kind == "memset" else ""
    return brief(main.kernel) + cores + memset


def sums(seen: Observation) -> str:
    """5 kernels + 1 copy + 1 memset a forward (3 forwards, all alike) · GPU … · CPU … · peak …"""
    forwards = len(seen.forwards)
    template = "{work} a forward ({forwards})"
    if forwards > 1 and seen.alike:
        template = "{work} a forward ({forwards}, alike)"
    elif forwards > 1:
        template = "{work} a forward ({forwards}, not alike)"
    parts = [say(template, work=work(seen), forwards=plural(forwards, "forward"))]
    if seen.on_gpu:
        least = seen.missing and seen.gpu_ns is not None
        gpu = say("GPU at least {time}" if least else "GPU {time}", time=duration(seen.gpu_ns))
        if seen.other_steps:
            mean = seen.gpu_others_ns and seen.gpu_others_ns / forwards
            gpu = say("{gpu} + {time} on autograd threads", gpu=gpu, time=duration(mean))
        parts.append(gpu)
    if seen.captured:
        launches = plural(seen.captured, "launch")
        parts.append(say("{launches} captured into a graph, not run", launches=launches))
    parts.append(say("CPU {time}", time=duration(seen.cpu_ns, seen.cpu_spread_ns)))
    if seen.story:
        peak = seen.story.peak_bytes
        parts.append(
            say("peak unknown")
            if peak is None
            else say("peak +{size} MiB", size=f"{peak / 2**20:,.0f}")
        )
    return " · ".join(parts)


def work(seen: Observation) -> str:
    """5 kernels + 1 copy + 1 memset"""
    if not seen.on_gpu:
        return plural(len(seen.steps), "working op")
    if seen.undecided_calls:
        return say("unknown kernels")
    found = " + ".join(
        say("{least} to {most} {kind}", least=min(count), most=max(count), kind=plural_of(name))
        if isinstance(count, list)
        else plural(count, name)
        for name in ("kernel", "copy", "memset")
        if (count := seen.per_forward(name))
    )
    if not found and (seen.elsewhere or seen.other_steps):
        return say("nothing on the GPU from its own thread")
    if not found:
        return say("nothing on the GPU")
    return say("at least {work}", work=found) if seen.missing else found


def by_time(used: Usage) -> list[tuple[str, Stretches]]:
    """Culprits of idle time, the worst first."""
    return sorted(used.idle_by.items(), key=lambda pair: (-pair[1].ns, pair[0]))


def idle(used: Usage, where: str) -> str:
    """GPU idle 12 % <where> (10 % launch-bound, 2 % waiting, though launched)"""
    known = used.launch_bound is not None
    causes = (
        (say("launch-bound"), used.launch_bound),  # its launch came after the GPU had run dry
        (say("waiting, though launched"), used.waiting),
        (say("launch unknown" if known else "cause unknown"), used.idle_unknown),
    )
    why = ", ".join(f"{percent(ns / used.span)} {name}" for name, ns in causes if ns)
    share = percent(used.idle / used.span) if used.idle else "0 %"
    said = say("GPU idle {share} {where}", share=share, where=say(where))
    return f"{said} ({why})" if why else said


def shares(used: Usage) -> list[str]:
    """Tensor Cores … % of GPU time, copies … %"""
    if not used.cores_known:
        cores = say("Tensor Cores unknown")
    else:
        share = percent(used.tensor_cores / used.work) if used.tensor_cores else "0 %"
        unsure = used.cores_unknown / used.work
        cores = (
            say(
                "Tensor Cores {share} (unknown for {unsure}) of GPU time",
                share=share,
                unsure=percent(unsure),
            )
            if unsure
            else say("Tensor Cores {share} of GPU time", share=share)
        )
    parts = [cores]
    if used.copies:
        parts.append(say("copies and memsets {share}", share=percent(used.copies / used.work)))
    if used.communication:
        parts.append(
            say(
                "communication {share} ({alone} of it exposed)",
                share=percent(used.communication / used.work),
                alone=percent(used.exposed / (used.exposed + used.overlapped))
                if used.exposed
                else "0 %",
            )
        )
    return parts


def time_of_gpu(used: Usage, where: str = "between first and last event") -> str:
    """GPU idle … % between first and last event: … · Tensor Cores … % · copies … %"""
    if not used.work or not used.span:
        return ""
    return " · ".join([idle(used, where), *shares(used)])


def time_inside(seen: Observation) -> str:
    """Of the forwards. One whose work is one event has no gap inside, whatever it is: nothing to
    say of that."""
    if all(len(forward.steps) < 2 for forward in seen.forwards):
        return " · ".join(shares(seen.usage)) if seen.usage.work and seen.usage.span else ""
    return time_of_gpu(seen.usage, "inside a forward")


def private(findings: Sequence[Finding]) -> str:
    """1 host name ("host_name": w…), 12 personal paths (the first in "Call stack": /home/…)"""
    words = []
    for found in findings:
        count = plural(found.count, found.kind)
        if found.more:
            count = say("at least {work}", work=count)
        first = say("the first ") if found.count > 1 else ""
        where = say('in "{key}": ', key=found.key) if found.key else ""
        words.append(f"{count} ({first}{where}{found.example})")
    return ", ".join(words)
