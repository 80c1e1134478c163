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

FEW = 3  # of a list without end, so many are named


# ── Numbers ───────────────────────────────────────────────────────────────────────────────────────


def percent(share: float) -> str:
    return "<1 %" if share < 0.005 else f"{100 * share:.0f} %"


def microseconds(ns: float | None) -> str:
    return "unknown" if ns is None else f"{ns / 1e3:,.1f} µs"


def duration(ns: float | None, spread: float | None = None) -> str:
    if ns is None:
        return "unknown"
    unit, word = (1e9, "s") if ns >= 1e9 else (1e6, "ms") if ns >= 1e6 else (1e3, "µs")
    more = f" ± {digits(spread / unit)}" if spread is not None else ""
    return f"{digits(ns / unit)}{more} {word}"


def digits(number: float) -> str:
    """Three digits that mean something, and no exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def ratio(number: float | None) -> str:
    if number is None:
        return "unknown"
    return f"{number:.2f}" if number >= 0.1 else f"{number:.3f}"


def tflops(number: float | None) -> str:
    if number is None:
        return "unknown"
    return "<0.01" if number < 0.01 else digits(number)


def mebibytes(count: float | None) -> str:
    return "unknown" if count is None else f"+{count / 2**20:,.0f}"


def size(count: float | None) -> str:
    """Bytes, in the unit that needs the fewest digits."""
    if count is None:
        return "unknown"
    power = min(int(math.log2(max(count, 1)) // 10), 4)
    return f"{digits(count / 2 ** (10 * power))} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def plural(count: int | None, word: str) -> str:
    return f"{'unknown' if count is None else count} {word if count == 1 else plural_of(word)}"


def plural_of(word: str) -> str:
    return {
        "copy": "copies",
        "launch": "launches",
        "e-mail address": "e-mail addresses",
        "IP address": "IP addresses",
        "hardware address": "hardware addresses",
    }.get(word, word + "s")


def few(words: list[str]) -> str:
    more = f" and {len(words) - FEW} more" if len(words) > FEW else ""
    return ", ".join(words[:FEW]) + more


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


def repeats(row: Row) -> str:
    works = sum(step.kind != "memset" or row.kind == "memset" for step in row.steps)
    return f" ×{works}" if works > 1 and not row.op else ""


def what_ran(row: Row) -> str:
    """The kernel in a few words."""
    main = row.main
    if main.kernel is None:
        name = said(main.name) or main.name
        return name if len(name) <= 30 else f"{name[:29]}…"
    kernels = sum(step.sort == "kernel" for step in row.steps)
    if row.op:
        return f"{kernels} kernels"
    cores = {True: " · Tensor Cores", False: "", None: ""}[main.kernel.tensor_cores]
    if main.kernel.tensor_cores is False and main.kind in ("matmul", "attention"):
        cores = " · CUDA cores"
    memset = " + memset" if row.kind != "memset" and row.steps[0].kind == "memset" else ""
    return brief(main.kernel) + cores + memset


def sums(seen: Observation) -> str:
    """5 kernels + 1 copy + 1 memset a forward (3 forwards, all alike) · GPU … · CPU … · peak …"""
    parts = [f"{work(seen)} a forward"]
    alike = "alike" if seen.alike else "not alike"
    forwards = len(seen.forwards)
    parts[0] += f" ({plural(forwards, 'forward')}{', ' + alike if forwards > 1 else ''})"
    if seen.on_gpu:
        least = "at least " if seen.missing and seen.gpu_ns is not None else ""
        parts.append(f"GPU {least}{duration(seen.gpu_ns)}")
        if seen.other_steps:
            mean = seen.gpu_others_ns and seen.gpu_others_ns / forwards
            parts[-1] += f" + {duration(mean)} on autograd threads"
    if seen.captured:
        parts.append(f"{plural(seen.captured, 'launch')} captured into a graph, not run")
    parts.append(f"CPU {duration(seen.cpu_ns, seen.cpu_spread_ns)}")
    if seen.story:
        peak = seen.story.peak_bytes
        parts.append("peak unknown" if peak is None else f"peak +{peak / 2**20:,.0f} MiB")
    return " · ".join(parts)


def work(seen: Observation) -> str:
    """5 kernels + 1 copy + 1 memset"""
    if not seen.on_gpu:
        return plural(len(seen.steps), "working op")
    if seen.undecided_calls:
        return "unknown kernels"
    found = " + ".join(
        f"{min(count)} to {max(count)} {plural_of(name)}"
        if isinstance(count, list)
        else plural(count, name)
        for name in ("kernel", "copy", "memset")
        if (count := seen.per_forward(name))
    )
    if not found and (seen.elsewhere or seen.other_steps):
        return "nothing on the GPU from its own thread"
    return f"{'at least ' if seen.missing else ''}{found}" if found else "nothing on the GPU"


def by_time(used: Usage) -> list[tuple[str, Stretches]]:
    """Culprits of idle time, the worst first."""
    return sorted(used.idle_by.items(), key=lambda pair: (-pair[1].ns, pair[0]))


def idle(used: Usage, where: str) -> str:
    """GPU idle 12 % <where> (10 % launch-bound, 2 % waiting, though launched)"""
    causes = {
        "launch-bound": used.launch_bound,  # its launch came after the GPU had run dry
        "waiting, though launched": used.waiting,
        "launch unknown" if used.launch_bound is not None else "cause unknown": used.idle_unknown,
    }
    why = ", ".join(f"{percent(ns / used.span)} {name}" for name, ns in causes.items() if ns)
    share = percent(used.idle / used.span) if used.idle else "0 %"
    return f"GPU idle {share} {where}{f' ({why})' if why else ''}"


def shares(used: Usage) -> list[str]:
    """Tensor Cores … % of GPU time, copies … %"""
    if not used.cores_known:
        cores = "Tensor Cores unknown"
    else:
        share = percent(used.tensor_cores / used.work) if used.tensor_cores else "0 %"
        unsure = used.cores_unknown / used.work
        cores = f"Tensor Cores {share}{f' (unknown for {percent(unsure)})' if unsure else ''}"
        cores += " of GPU time"
    parts = [cores]
    if used.copies:
        parts.append(f"copies and memsets {percent(used.copies / used.work)}")
    if used.communication:
        alone = percent(used.exposed / (used.exposed + used.overlapped)) if used.exposed else "0 %"
        parts.append(
            f"communication {percent(used.communication / used.work)} ({alone} of it exposed)"
        )
    return parts


def time_of_gpu(used: Usage, where: str = "between first and last event") -> str:
    """GPU idle … % between first and last event: … · Tensor Cores … % · copies … %"""
    if not used.work or not used.span:
        return ""
    return " · ".join([idle(used, where), *shares(used)])


def private(findings: Sequence[Finding]) -> str:
    """1 host name ("host_name": w…), 12 personal paths (the first in "Call stack": /home/…)"""
    words = []
    for found in findings:
        count = f"{'at least ' if found.more else ''}{plural(found.count, found.kind)}"
        first = "the first " if found.count > 1 else ""
        where = f'in "{found.key}": ' if found.key else ""
        words.append(f"{count} ({first}{where}{found.example})")
    return ", ".join(words)
