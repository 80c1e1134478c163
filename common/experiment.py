"""Experiments that settle what a table or a trace alone leaves open. Each records what it needs on
this machine's GPU, or reads recordings with --replay, and draws its conclusion from them.

    leak        is the table's "Self CUDA time total" the time of the forwards? The same attention
                recorded with and without one synchronise at the end of the warm-up
    occupancy   why the profiler says 0 % for kernels that run well: because of how they are
                launched, or of the shared memory they take?
    cpu         which SDPA backend costs most CPU time, and which cannot be told apart: many
                forwards, each waited for, so that no launch waits for the GPU
    tuning      what a trace shows of an autotuned kernel that was not warmed up: the first recorded
                forward has forgotten which tiles are fastest
"""

import re
import runpy
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod
from pathlib import Path
from statistics import mean, median, stdev
from typing import TYPE_CHECKING

from .cli import UserError, note, one_line_errors, option, parse, positive, shown
from .compare.claims import noise
from .read import recordings
from .read.observe import Observation, Step, device_of, observe
from .read.occupancy import DEFAULT_SHARED_MEMORY, kineto_estimate
from .show import report

if TYPE_CHECKING:
    from .record.workload import Workload

ROOT = Path(__file__).parent.parent
SHIPPED = ROOT / "traces" / "experiments"
BACKENDS = ("math", "efficient", "flash", "cudnn")


@dataclass(frozen=True)
class Options:
    experiment: str = option(
        None,
        "leak, occupancy, cpu or tuning",
        positional=True,
        choices=("leak", "occupancy", "cpu", "tuning"),
        metavar="EXPERIMENT",
    )
    replay: str | None = option(
        None,
        "read recordings instead of making them: of a FOLDER, or the shipped ones",
        nargs="?",
        const="",
        metavar="FOLDER",
    )
    forwards: int = option(100, "forwards that cpu records", type=positive, metavar="N")
    traces: Path = option(Path("traces"), "folder for the recordings", type=Path, metavar="DIR")
    json: bool = option(False, "print one JSON object", action="store_true")


@dataclass(frozen=True)
class Result:
    """`heads` and `lines` are the table; `found` is the same for programs."""

    heads: tuple[str, ...]
    lines: list[list[str]]
    found: list[dict]
    conclusions: list[str]


def experiment(options: Options) -> None:
    name = options.experiment
    if options.replay is None:
        paths = record(name, options.traces, options.forwards)
        note(f"recorded in {shown(paths[0].parent)}")
    else:
        paths = [Path(options.replay) if options.replay else SHIPPED]
    seen = load(name, paths)
    result = READERS[name](seen)
    if options.json:
        report.print_json(
            {
                "experiment": name,
                "device": seen[0].about["device"]["name"],
                "torch": seen[0].about["versions"]["torch"],
                "recordings": result.found,
                "conclusions": result.conclusions,
            }
        )
        return
    about = seen[0].about
    shapes = {str(one.about["shape"]) for one in seen}
    work = f"{about['dtype']} {shapes.pop() if len(shapes) == 1 else ''}".strip()
    title = [f"experiment: {name}", work, about["device"]["name"]]
    report.show_experiment(
        report.console(),
        " · ".join([*title, f"torch {about['versions']['torch']}"]),
        result.heads,
        result.lines,
        result.conclusions,
    )


def load(name: str, paths: Sequence[Path]) -> list[Observation]:
    """What the recordings of this experiment show: all of one machine.

    Raises UserError when there are none, two of one kind, or some of several GPUs or versions.
    """
    seen = []
    for path in paths:
        if not path.exists():
            raise UserError(
                "no recordings of experiments come with this copy; record: uv run -m "
                f"common.experiment {name}"
                if path == SHIPPED
                else f"--replay {shown(path)}: no such folder"
            )
        folder, pattern = (path.parent, path.name) if path.is_file() else (path, "**/*.json*")
        for trace in recordings.traces_in(folder, pattern):
            if trace.about["script"] == f"experiment_{name}":
                seen.append(observe(trace))
    if not seen:
        raise UserError(f"no recording of the experiment {name} in {' '.join(map(shown, paths))}")
    machines = {f"{s.about['device']['name']}, torch {s.about['versions']['torch']}" for s in seen}
    if len(machines) > 1:
        raise UserError(
            f"recordings of several machines ({'; '.join(sorted(machines))}): give the folder of "
            "one with --replay"
        )
    files = {}
    for one in seen:
        kind = one.about["variant"], str(one.about["shape"])
        if files.setdefault(kind, one.trace.path) != one.trace.path:
            raise UserError(
                f"two recordings of {' '.join(kind)}: {shown(files[kind])} and "
                f"{shown(one.trace.path)}; give a folder with one of them"
            )
    return seen


# ── leak ──────────────────────────────────────────────────────────────────────────────────────────

UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class Leak:
    """One recording: its GPU events and the table's total."""

    seen: Observation

    @property
    def joined(self) -> int:
        return sum(step.gpu is not None for f in self.seen.forwards for step in f.steps)

    @property
    def total_ns(self) -> float | None:
        """The profiler's own figure, as its table prints it: three decimals."""
        text = self.seen.about.get("table_totals", {}).get("Self CUDA time total", "")
        found = re.fullmatch(r"([\d.]+)(us|ms|s)", text)
        return float(found[1]) * UNITS[found[2]] if found else None

    @property
    def file_ns(self) -> int | None:
        times = [event.duration for event in self.seen.trace.gpu]
        return None if None in times else sum(times)

    @property
    def leaked_ns(self) -> int | None:
        times = [event.duration for event in self.seen.leaked]
        return None if None in times else sum(times)

    @property
    def from_warm_up(self) -> bool:
        """Whether something has no launch in the file, and all such started before all that has
        one. Otherwise launch records may have been lost."""
        launched = [s.gpu.start for f in self.seen.forwards for s in f.steps if s.gpu]
        starts = [event.start for event in self.seen.leaked]
        if not starts or not launched or None in (*starts, *launched):
            return False
        return max(starts) < min(launched)

    @property
    def total_is_of_the_file(self) -> bool:
        """Whether the table's total is the sum of all GPU events, as exactly as it is printed."""
        if self.total_ns is None or self.file_ns is None:
            return False
        unit = next((unit for unit in UNITS.values() if self.total_ns < 1000 * unit), 1e9)
        return abs(self.total_ns - self.file_ns) <= unit / 1e3


def leak(seen: Sequence[Observation]) -> Result:
    by = {s.about["variant"]: Leak(s) for s in seen}
    missing = [name for name in ("never", "warm-up") if name not in by]
    if missing:
        raise UserError(f"leak lays two recordings side by side, and {missing[0]} is not there")
    lines, found = [], []
    for name in ("never", "warm-up"):
        one = by[name]
        kernels = sum(event.sort == "kernel" for event in one.seen.trace.gpu)
        forwards = len(one.seen.forwards)
        lines.append(
            [
                {"never": "not synchronised", "warm-up": "synchronised after the warm-up"}[name],
                f"{len(one.seen.trace.gpu)}",
                f"{one.joined}",
                f"{len(one.seen.leaked)}",
                report.microseconds(one.total_ns),
                report.microseconds(one.seen.gpu_sum_ns),
            ]
        )
        found.append(
            {
                "file": shown(one.seen.trace.path),
                "synchronised": name != "never",
                "forwards": forwards,
                "kernels": kernels,
                "gpu_events": len(one.seen.trace.gpu),
                "joined_gpu_events": one.joined,
                "gpu_events_without_launch": len(one.seen.leaked),
                "table_total_us": _us(one.total_ns),
                "file_sum_us": _us(one.file_ns),
                "forwards_sum_us": _us(one.seen.gpu_sum_ns),
            }
        )
    heads = (
        "recording", "GPU events\nin the file", "joined to\na forward", "without\na launch",
        "the table's\ntotal", "GPU time of\nthe forwards",
    )  # fmt: skip
    never, after = by["never"], by["warm-up"]
    conclusions = [_of_total("Not synchronised", never), _of_total("Synchronised", after)]
    if after.from_warm_up:
        conclusions.append("The synchronise did not keep them out.")
    elif never.from_warm_up and not after.seen.leaked:
        conclusions.append("One synchronise at the end of the warm-up keeps them out.")
    elif not never.seen.leaked and not after.seen.leaked:
        conclusions.append(
            "Here the synchronise makes no difference: the warm-up's work had ended before "
            "recording started. Longer forwards may show one."
        )
    return Result(heads, lines, found, conclusions)


def _of_total(how: str, one: Leak) -> str:
    """What the table's total of this recording holds."""
    if one.total_ns is None:
        return f"{how}: the recording does not tell the table's total."
    total = f"{how}: the table's total, {report.microseconds(one.total_ns)},"
    if not one.total_is_of_the_file:
        return (
            f"{total} is not the sum of the file's GPU events, {report.microseconds(one.file_ns)}."
        )
    leaked = one.seen.leaked
    others = len(one.seen.trace.gpu) - one.joined - len(leaked)
    if not leaked and not others:
        return f"{total} is the GPU time of the forwards."
    holds = []
    if leaked:
        count = report.plural(len(leaked), "event")
        time = report.microseconds(one.leaked_ns)
        whence = (
            "launched by the warm-up and still running when recording started"
            if one.from_warm_up
            else "without a launch in the file"
        )
        holds.append(f"{count} of {time}, {whence}")
    if others:
        holds.append(f"{report.plural(others, 'event')} launched outside the forwards")
    return f"{total} holds more than the forwards: {' and '.join(holds)}."


# ── occupancy ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Footprint:
    """The main kernel of a recording."""

    seen: Observation
    name: str
    step: Step
    limit: int  # bytes of shared memory of a block that has not opted in to more
    opted_in: int | None  # the profiler's estimate, computed with the limit that was opted in to

    @property
    def reported(self) -> float | None:
        return self.step.gpu.reported_occupancy

    @property
    def over(self) -> bool | None:
        shared = self.step.gpu.shared_memory
        return None if shared is None else shared > self.limit


def occupancy(seen: Sequence[Observation]) -> Result:
    rows = sorted((_footprint(s) for s in seen), key=lambda row: row.step.gpu.shared_memory or 0)
    lines = []
    for row in rows:
        gpu, fits = row.step.gpu, row.step.residency
        threads = prod(gpu.block) if gpu.block else None
        lines.append(
            [
                row.name,
                row.step.call or "unknown",
                f"{_count(gpu.registers)}×{_count(threads)}",
                _count(gpu.shared_memory),
                _percent(row.reported),
                _percent(row.opted_in),
                f"{fits.warps}/{fits.max_warps}" if fits else "unknown",
                _limits(fits.limits) if fits else "unknown",
            ]
        )
    heads = (
        "kernel,\nhead_dim", "launched by", "registers\n×threads", "shared\nbytes",
        "profiler\nsays", "with true\nlimit", "warps\nthat fit", "limited by",
    )  # fmt: skip
    found = [
        {
            "recording": row.name,
            "file": shown(row.seen.trace.path),
            **report.as_json(row.seen)["steps"][row.seen.steps.index(row.step)],
            "occupancy_with_opt_in_limit_pct": row.opted_in,
        }
        for row in rows
    ]
    return Result(heads, lines, found, _why_zero(rows))


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _percent(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.0f} %"


def _limits(names: Sequence[str]) -> str:
    if set(names) == {"registers", "shared memory"}:
        return "both"
    return ", ".join(name.removesuffix(" memory") for name in names)


def _footprint(seen: Observation) -> Footprint:
    kernels = [step for step in seen.steps if step.sort == "kernel"]
    if not kernels:
        raise UserError(f"{shown(seen.trace.path)}: no kernel in it; recorded without a GPU?")
    step = max(kernels, key=lambda step: step.ns or 0)
    device, gpu = device_of(seen.trace), step.gpu
    return Footprint(
        seen=seen,
        name=f"{seen.about['variant']} {seen.about['shape'][3]}",
        step=step,
        limit=device.default_shared_memory if device else DEFAULT_SHARED_MEMORY,
        opted_in=kineto_estimate(
            device, gpu.registers, gpu.shared_memory, gpu.grid, gpu.block, opt_in=True
        ),
    )


def _why_zero(rows: Sequence[Footprint]) -> list[str]:
    """What tells the kernels that read 0 % from the others: shared memory, or the launch call?"""
    told = [row for row in rows if row.reported is not None and row.over is not None]
    zero = [row for row in told if row.reported == 0]
    others = [row for row in told if row.reported != 0]
    if not zero or not others:
        what = "no kernel reads" if not zero else "every kernel reads"
        return [f"Nothing to compare: {what} 0 %."]
    limit = zero[0].limit
    odd = [row for row in zero if not row.over] + [row for row in others if row.over]
    if odd:
        first = odd[0]
        said = [
            f"Shared memory does not decide: {first.name} takes {first.step.gpu.shared_memory:,} "
            f"bytes a block and reads {_percent(first.reported)}."
        ]
    else:
        said = [
            f"Shared memory decides: above {limit:,} bytes a block the profiler says 0 % "
            f"({report.plural(len(zero), 'kernel')}), up to that it does not "
            f"({report.plural(len(others), 'kernel')})."
        ]
    both = {row.step.call for row in zero} & {row.step.call for row in others}
    if both:
        call = sorted(map(str, both))[0]
        examples = [next(r for r in rows_ if r.step.call == call) for rows_ in (zero, others)]
        said.append(
            f"The launch call does not: {call} launched {examples[0].name}, which reads 0 %, and "
            f"{examples[1].name}, which reads {_percent(examples[1].reported)}."
        )
    else:
        said.append(
            "The launch call may decide as well: no call launched kernels of both sorts. These "
            "recordings cannot tell."
        )
    return said


# ── cpu ───────────────────────────────────────────────────────────────────────────────────────────


def cpu(seen: Sequence[Observation]) -> Result:
    times = {
        s.about["variant"]: [forward.cpu_ns for forward in s.forwards]
        for s in seen
        if len(s.forwards) > 1
    }
    if len(times) < 2:
        raise UserError("cpu compares backends, and fewer than two have several forwards here")
    ranked = sorted(times, key=lambda name: mean(times[name]), reverse=True)
    files = {s.about["variant"]: s.trace.path for s in seen}
    lines, found = [], []
    for name in ranked:
        each = times[name]
        error = stdev(each) / len(each) ** 0.5
        lines.append(
            [
                name,
                str(len(each)),
                report.duration(mean(each), error),
                report.duration(median(each)),
            ]
        )
        found.append(
            {
                "backend": name,
                "file": shown(files[name]),
                "forwards": len(each),
                "cpu_us_mean": _us(mean(each)),
                "cpu_us_standard_error": _us(error),
                "cpu_us_median": _us(median(each)),
            }
        )
    heads = ("backend", "forwards", "CPU a forward,\n± standard error", "median")
    fused = {s.about["variant"] for s in seen if report.per_forward(s, "kernel") == 1}
    return Result(heads, lines, found, _ranking(ranked, times, fused))


def _ranking(ranked: Sequence[str], times: dict[str, list[int]], fused: set[str]) -> list[str]:
    """The order, and what can be told of the first; `fused` are one kernel a forward."""
    words, apart = [ranked[0]], []
    for one, following in pairwise(ranked):
        difference = mean(times[one]) - mean(times[following])
        apart.append(difference > noise(times[one], times[following]))
        words += [">" if apart[-1] else "≈", following]
    said = [
        " ".join(words) + "   (≈: closer than two standard errors of their difference)"
        if not all(apart)
        else " ".join(words)
    ]
    said.append(_most(ranked, times))
    single = [name for name in ranked if name in fused]
    if 2 <= len(single) < len(ranked):
        said.append(f"Of those that are one kernel: {_most(single, times)}")
    return said


def _most(ranked: Sequence[str], times: dict[str, list[int]]) -> str:
    first, second = ranked[:2]
    difference = mean(times[first]) - mean(times[second])
    unsure = noise(times[first], times[second])
    if difference > unsure:
        return (
            f"{first} costs most, {report.duration(difference)} more than {second}; up to "
            f"{report.duration(unsure)} would be noise."
        )
    return (
        f"which costs most cannot be told, for {first} and {second} differ by "
        f"{report.duration(difference)}, and up to {report.duration(unsure)} is noise; try more "
        "--forwards."
    )


# ── tuning ────────────────────────────────────────────────────────────────────────────────────────


def tuning(seen: Sequence[Observation]) -> Result:
    """What each forward ran: the kernel in how many forms, and what else."""
    one, *more = seen
    if more:
        raise UserError(
            f"tuning reads one recording, and there are {len(seen)}: {shown(one.trace.path)} and "
            f"{shown(more[0].trace.path)}; give one of them with --replay"
        )
    if not one.on_gpu:
        raise UserError(f"{shown(one.trace.path)}: no kernel in it; recorded without a GPU?")
    lines, found = [], []
    for number, forward in enumerate(one.forwards, 1):
        kernels = [step for step in forward.steps if step.kind == "attention"]
        others = [step for step in forward.steps if step.kind != "attention"]
        forms = {(step.gpu.grid, step.gpu.block, step.gpu.shared_memory) for step in kernels}
        kinds = ", ".join(dict.fromkeys(step.kind for step in others))
        times = [step.ns for step in forward.steps]
        gpu = None if None in times else sum(times)
        lines.append(
            [
                f"forward {number}",
                f"{len(kernels)}",
                f"{len(forms)}",
                f"{len(others)} {kinds}".rstrip(),
                report.duration(gpu),
                report.duration(forward.cpu_ns),
            ]
        )
        found.append(
            {
                "file": shown(one.trace.path),
                "forward": number,
                "attention_kernels": len(kernels),
                "forms_of_the_kernel": len(forms),
                "other_gpu_events": len(others),
                "gpu_us": _us(gpu),
                "cpu_us": _us(forward.cpu_ns),
            }
        )
    heads = ("", "attention\nkernels", "forms\nof it", "others", "GPU", "CPU")
    return Result(heads, lines, found, _of_tuning(one, found))


def _of_tuning(one: Observation, found: Sequence[dict]) -> list[str]:
    first, *later = found
    alike = {(f["attention_kernels"], f["other_gpu_events"]) for f in later}
    if not later or alike != {(1, 0)} or first["attention_kernels"] <= 1:
        return ["No forward that tunes stands before forwards that do not: nothing to tell apart."]
    grids = {step.gpu.grid for forward in one.forwards[1:] for step in forward.steps}
    kept = " or ".join("×".join(map(str, grid)) if grid else "unknown" for grid in grids)
    said = [
        f"Tuning shows as {first['attention_kernels']} runs of one kernel in "
        f"{first['forms_of_the_kernel']} forms (grid, block, shared memory), and "
        f"{first['other_gpu_events']} events between them that are not attention; the form kept "
        f"has grid {kept}."
    ]
    if how := one.about.get("configuration"):
        said.append(f"Here it was {how}; Triton's own default is 100 ms.")
    if first["gpu_us"] and None not in [f["gpu_us"] for f in later]:
        usual = mean(f["gpu_us"] for f in later)
        said.append(
            f"An average over these {len(found)} forwards would say "
            f"{report.duration(mean(f['gpu_us'] for f in found) * 1e3)} of GPU time a forward; "
            f"without the first it is {report.duration(usual * 1e3)}."
        )
    return said


def _us(ns: float | None) -> float | None:
    return None if ns is None else round(ns / 1e3, 3)


READERS: dict[str, Callable[[Sequence[Observation]], Result]] = {
    "leak": leak,
    "occupancy": occupancy,
    "cpu": cpu,
    "tuning": tuning,
}

# ── Recording: from here on with torch ────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Recipe:
    """One recording of an experiment."""

    variant: str
    work: "Workload"
    attention: Callable
    title: str
    label: str
    backend: str | None = None  # of SDPA, pinned
    active: int = 3
    synchronise: str = "warm-up"


def record(name: str, traces: Path, forwards: int) -> list[Path]:
    """Record the experiment on this machine's GPU. Returns the trace files. A variant that this GPU
    refuses is named and left out."""
    from .lesson import progress_line
    from .record import workload

    work, why = workload.choose(workload.Options())
    if work.device == "cpu":
        raise UserError(
            f"{why}, and the experiment {name} needs a GPU; --replay reads the recordings of one"
        )
    made = []
    with progress_line() as progress:
        for recipe in recipes(name, work, forwards):
            try:
                made.append(record_one(name, recipe, traces, progress))
            except UserError as error:
                note(f"{recipe.variant} is left out: {error}")
    if not made:
        raise UserError(f"nothing of the experiment {name} could be recorded; the notes say why")
    return made


def recipes(name: str, work: "Workload", forwards: int) -> list[Recipe]:
    import torch.nn.functional as F

    def sdpa(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    if name == "leak":
        script = runpy.run_path(str(ROOT / "04_b_inplace_ops_attention.py"))
        attention = script["Attention"](work)
        return [
            Recipe(how, work, attention, "in-place attention", "attn_fwd", synchronise=how)
            for how in ("never", "warm-up")
        ]
    if name == "cpu":
        return [
            Recipe(backend, work, sdpa, "SDPA", "sdpa_fwd", backend, forwards, "every step")
            for backend in BACKENDS
        ]
    script = runpy.run_path(str(ROOT / "04_d_kernels_attention.py"))
    if name == "tuning":
        return [Recipe("triton", work, Forgetful(script), "kernels", "flash_kernel_fwd")]
    small = partial(script["triton_attention"], tiles=script["TILES"][-1])
    wide = replace(work, head_dim=2 * work.head_dim)
    return [
        Recipe("flash", work, sdpa, "SDPA", "sdpa_fwd", "flash"),
        Recipe("flash", wide, sdpa, "SDPA", "sdpa_fwd", "flash"),
        Recipe("cudnn", work, sdpa, "SDPA", "sdpa_fwd", "cudnn"),
        Recipe("triton", work, script["triton_attention"], "kernels", "flash_kernel_fwd"),
        Recipe("triton-small", work, small, "kernels", "flash_kernel_fwd"),
    ]


class Forgetful:
    """04_d's kernel, whose tuner forgets its choice at the first recorded forward."""

    BEFORE = 4  # forwards: the check of the result, the memory's, the wait and the warm-up
    MS = 4  # of runs that the tuner gives each configuration; Triton's own default is 100

    def __init__(self, script: dict):
        import triton

        self.calls = 0
        self.attention = script["triton_attention"]
        self.tuned = triton.autotune(script["TILES"], key=["HEAD_DIM", "seq"], do_bench=self.bench)(
            script["flash_attention_triton"]
        )
        # The function looks its tuned kernel up in the script's own names.
        self.attention.__globals__["tuned"] = self.tuned

    def bench(self, kernel, quantiles):
        from triton.testing import do_bench

        return do_bench(kernel, warmup=1, rep=self.MS, quantiles=quantiles)

    def configuration(self) -> str:
        return f"tuned in the first recorded forward, {self.MS} ms a configuration"

    def __call__(self, q, k, v):
        self.calls += 1
        if self.calls == self.BEFORE + 1:
            self.tuned.cache.clear()
        return self.attention(q, k, v)


def record_one(name: str, recipe: Recipe, traces: Path, progress=lambda doing: None) -> Path:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from .record import harness, workload

    backends = {
        "math": SDPBackend.MATH,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
    }
    options = type("Options", (workload.Options,), {"variant": recipe.variant})
    with sdpa_kernel(backends[recipe.backend]) if recipe.backend else nullcontext():
        return harness.record(
            recipe.attention,
            recipe.work,
            options(traces=traces, active=recipe.active),
            script=f"experiment_{name}",
            title=recipe.title,
            label=recipe.label,
            stores_scores=recipe.backend in (None, "math") and name != "occupancy",
            synchronise=recipe.synchronise,
            progress=lambda doing: progress(f"{recipe.variant}: {doing}"),
        ).trace


if __name__ == "__main__":
    with one_line_errors():
        experiment(parse(Options, __doc__, "leak --replay", module="common.experiment"))
