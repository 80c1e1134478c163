"""Record attention under torch.profiler: one schedule for every script, or nothing compares.

    step 0        wait       not recorded
    step 1…       warm-up    the profiler runs, its events are thrown away
    then          active     recorded; each step is one forward inside `record_function(label)`

The last warm-up step ends with one synchronise: without it kernels that the warm-up launched still
run when recording starts, and stand in the file and in the table's totals as if they were ours.
"""

import contextlib
import json
import logging
import os
import platform
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from ..cli import UserError, note, put, scratch, shown
from ..story import METADATA_KEY, Device, Steps, Story, Unrecorded, Versions, as_builtins
from .workload import (
    TOLERANCE,
    WAY_OUT,
    Attention,
    Options,
    Workload,
    relative_error,
    scores_too_large,
)

# Kineto logs its starts, stops and missing driver codes to stderr; it reads this when it starts.
os.environ.setdefault("KINETO_LOG_LEVEL", "99")
# Dynamo and Inductor log through Python: a missing nvcc, slow autotuning, TF32 advice.
logging.getLogger("torch").setLevel(logging.ERROR)

WAIT = 1


@dataclass(frozen=True)
class Subject:
    """What is recorded: how a trace of it is recognised, and what it needs to run.

    `configuration` says in words how it ran on a workload, once it has run.
    """

    title: str
    label: str  # of the range around a forward
    stores_scores: bool | float = False  # or how many score matrices exist at once
    cuda_only: bool = False
    layout: Literal["bhsd", "bshd"] = "bhsd"  # of q, k, v: [batch, heads, seq, head_dim], or …
    configuration: Callable[[Workload], str | None] | None = None


@dataclass(frozen=True)
class Recording:
    """What one run left behind. `top` are the table's first rows:
    (name, self CPU µs, self device µs or None without a GPU, calls), over all recorded steps."""

    trace: Path
    table: Path
    top: list[tuple[str, float, float | None, int]]


def record(
    attention: Attention,
    workload: Workload,
    subject: Subject,
    options: Options,
    *,
    script: str,
    variant: str = "",
    synchronise: Literal["warm-up", "every step", "never"] = "warm-up",
    calls: tuple[str, ...] = (),
    unrecorded: Unrecorded | None = None,
    progress: Callable[[str], None] = lambda doing: None,
) -> Recording:
    """Check `attention`, record it, write trace and table; both files or none.

    `attention` maps q, k, v of `workload.shape` to the output of that shape; with the layout
    "bshd", all four are [batch, seq, heads, head_dim] instead. `script` and `variant` name the
    recording. `synchronise`: after the "warm-up", after "every step", or "never" before the end.
    `calls` name the recorded forwards where they differ, and `unrecorded` is what the same step
    took before: the trace tells of both. `progress` is told what is being done.

    Raises UserError for whatever the user can mend: a backend that refuses the shape, memory, a
    wrong result, a folder that cannot be written.
    """
    who, layout = variant or subject.title, subject.layout
    folder = _writable(options.traces / script)
    name = tag(options, workload, variant, unrecorded.process if unrecorded else None)
    with explained(who, workload, subject.stores_scores), torch.no_grad():
        inputs = laid_out(workload.inputs(), layout)
        if options.compile:
            # Compiled code is cached on disk under a key that does not know which SDPA backend is
            # pinned: unmarked, the backend compiled first would be run for all of them.
            torch.compiler.config.cache_key_tag = f"{script} {variant}"
        forward = torch.compile(attention) if options.compile else attention
        progress("compiling" if options.compile else "first forward")
        output = forward(*inputs)
        progress("checking the result against float64")
        error = relative_error(*(_heads_first(x, layout) for x in (output, *inputs)))
        if not error <= TOLERANCE[workload.dtype]:
            raise UserError(
                f"{who} is wrong on {workload}: relative error {error:.1e} against the float64 "
                f"reference, {TOLERANCE[workload.dtype]:.1e} allowed; not recorded"
            )
        del output
        peak = _peak_bytes(forward, *inputs)
        progress(f"recording {options.active} forwards")
        profiler = _profile(forward, inputs, subject.label, options, synchronise)

    progress("writing trace and table")
    on_gpu = workload.device == "cuda"
    averages = profiler.key_averages()
    if options.compile:
        ran = sum(row.count for row in averages if row.key.startswith("Torch-Compiled Region"))
        _require_compiled(who, workload, ran, options.active)
    by = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    table = averages.table(sort_by=by, row_limit=-1, max_name_column_width=100)
    # Compiled, the choice is the compiler's, and it does not tell.
    configured = None if options.compile or not subject.configuration else subject.configuration
    story = Story(
        script=script,
        title=subject.title,
        variant=variant,
        label=subject.label,
        shape=workload.shape,
        dtype=workload.dtype,
        mode=options.mode,
        device=_device(workload.device),
        versions=_versions(),
        steps=Steps(WAIT, options.warmup, options.active),
        configuration=configured(workload) if configured else None,
        peak_bytes=peak,
        relative_error=error,
        table_totals=dict(re.findall(r"^(Self .+ time total): (.+)$", table, re.M)),
        calls=calls,
        unrecorded=unrecorded,
    )
    made = Recording(folder / f"{name}.json", folder / f"{name}.txt", _top(averages, by, on_gpu))
    with _disk_errors(folder):
        with scratch() as away:  # what the profiler writes names the host: not where one may share
            raw = away / "raw.json"
            profiler.export_chrome_trace(str(raw))
            trace = with_story(raw.read_bytes() if raw.exists() else b"", as_builtins(story))
        replaced = _replaced(made)
        put({made.trace: trace, made.table: table.encode()})
    for line in replaced:
        note(line)
    return made


def _replaced(made: Recording) -> list[str]:
    """What a recording takes the place of: a trace, its table with it, or a table alone."""
    for path in (made.trace, made.table):
        if path.exists():
            when = datetime.fromtimestamp(path.stat().st_mtime)
            return [f"{shown(path)} of {when:%Y-%m-%d %H:%M} is replaced"]
    return []


def _require_compiled(who: str, workload: Workload, ran: int, active: int) -> None:
    """Raise UserError unless compiled code ran in every recorded forward: what torch.compile leaves
    eager, it leaves so without a word."""
    if ran >= active:
        return
    dynamo = torch._dynamo.config
    if os.environ.get("TORCH_COMPILE_DISABLE", "0") != "0" or dynamo.disable:
        why = "TORCH_COMPILE_DISABLE turns torch.compile off"
    elif dynamo.suppress_errors:
        why = "compiling failed, and TORCHDYNAMO_SUPPRESS_ERRORS hides why; run without it"
    else:
        why = "torch.compile left it as it is"
    some = "no" if not ran else "not every"
    raise UserError(
        f"--compile {who} {workload}: {some} forward ran compiled code: {why}; not recorded"
    )


def laid_out(
    inputs: tuple[torch.Tensor, torch.Tensor, torch.Tensor], layout: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """q, k and v of [batch, heads, seq, head_dim] in this layout: moved once, before anything is
    measured."""
    if layout != "bshd":
        return inputs
    q, k, v = (x.transpose(1, 2).contiguous() for x in inputs)
    return q, k, v


def _heads_first(x: torch.Tensor, layout: str) -> torch.Tensor:
    return x.transpose(1, 2) if layout == "bshd" else x


def tag(options: Options, workload: Workload, variant: str = "", process: int | None = None) -> str:
    """The name of the experiment: shape, variant, and whatever is not the default."""
    extra = [
        variant,
        workload.dtype if workload.dtype != "bf16" else "",
        workload.device if workload.device != "cuda" else "",
        f"warmup{options.warmup}" if options.warmup != 1 else "",
        f"active{options.active}" if options.active != 3 else "",
        f"process{process}" if process is not None else "",
        options.mode,
    ]
    return "_".join([*map(str, workload.shape), *filter(None, extra)])


def with_story(trace: bytes, story: dict) -> bytes:
    """The profiler's trace with `story` inside and without what is nobody's business: the host's
    name and the path it was first written to.

    Raises UserError when the file is not whole: the profiler does not say when the disk is full.
    """
    trace = re.sub(rb'\n\s*"host_name":\s*"[^"\n]*",?', b"", trace)
    # The last entry of a whole file; the path in it is that of the scratch folder.
    body, whole = re.subn(rb',?\s*"traceName":\s*"[^"\n]*"\s*}\s*$', b"\n}\n", trace)
    told = json.dumps({METADATA_KEY: story}, indent=2)[1:-1].strip().encode()
    body = re.sub(rb"\A\s*{", lambda _: b"{\n  " + told + b",", body, count=1)
    try:
        json.loads(body)
    except ValueError:
        whole = 0
    if not whole:
        raise UserError("the profiler wrote no whole trace: is the disk full? Nothing was kept")
    return body


def _profile(forward: Attention, inputs, label: str, options: Options, synchronise: str) -> profile:
    activities = [ProfilerActivity.CPU]
    on_gpu = inputs[0].is_cuda
    if on_gpu:
        activities.append(ProfilerActivity.CUDA)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*[Pp]rofiler.*")  # about cycles; we record one
        profiler = profile(
            activities=activities,
            schedule=schedule(wait=WAIT, warmup=options.warmup, active=options.active, repeat=1),
        )
        with contextlib.nullcontext() if options.compile else _compiler_not_imported():
            profiler.start()
            try:
                before = WAIT + options.warmup
                last = before + options.active - 1
                after = {"never": {last}, "warm-up": {before - 1, last}}.get(synchronise)
                for step in range(last + 1):
                    with record_function(label):
                        forward(*inputs)
                    if on_gpu and (after is None or step in after):
                        torch.cuda.synchronize()
                    profiler.step()
            except BaseException:
                # Left running it crashes the interpreter's exit; stopped in the middle it may
                # complain, and what stopped it matters more (so no `with profiler`).
                with contextlib.suppress(Exception):
                    profiler.stop()
                raise
            profiler.stop()
    return profiler


@contextlib.contextmanager
def _compiler_not_imported() -> Iterator[None]:
    """Preparing a trace asks for `torch._inductor`, to read a setting that only compiled code has.
    The question alone imports the whole compiler, which takes longer than torch itself."""
    lazy: set[str] = getattr(torch, "_lazy_modules", set())
    waiting = lazy & {"_inductor"}
    lazy -= waiting
    try:
        yield
    finally:
        lazy |= waiting


def _peak_bytes(forward: Attention, *inputs: torch.Tensor) -> int | None:
    """Device memory that one forward holds at its peak beyond what was there before it. The CPU's
    allocator keeps no count: None."""
    if not inputs[0].is_cuda:
        return None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    forward(*inputs)
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


@contextlib.contextmanager
def explained(variant: str, workload: Workload, stores_scores: bool | float) -> Iterator[None]:
    """Turn torch's refusals into one line. Why a pinned backend refuses stands only in warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except torch.OutOfMemoryError as error:
            raise UserError(_out_of_memory(variant, workload, stores_scores)) from error
        except (RuntimeError, NotImplementedError) as error:
            if "can't allocate memory" in str(error) or "not enough memory" in str(error):
                raise UserError(_out_of_memory(variant, workload, stores_scores)) from error
            reasons = "; ".join(dict.fromkeys(_refusals(str(w.message) for w in caught)))
            said = str(error).strip().split("\n")[0]
            raise UserError(
                f"{variant} cannot run {workload} on {workload.device}: "
                f"{reasons or said}; change that, or try another backend"
            ) from error


def _refusals(messages: Iterator[str]) -> Iterator[str]:
    for message in messages:
        text = re.sub(r"\s*\(Triggered internally at .*", "", message, flags=re.S).strip()
        # "Flash attention kernel not used because:" heads the reasons and is none itself.
        if text and not text.endswith("because:") and "has been runtime disabled" not in text:
            yield text.rstrip(".")


def _out_of_memory(variant: str, workload: Workload, stores_scores: bool | float) -> str:
    if stores_scores:
        return f"{scores_too_large(workload, variant)} and more beside them; {WAY_OUT}"
    return (
        f"out of memory: {variant} on {workload}; "
        "choose a smaller --batch, --heads, --seq or --head-dim"
    )


def _writable(folder: Path) -> Path:
    """The folder, made if need be; proven writable before anything is run."""
    with _disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder


@contextlib.contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"cannot write to {shown(folder)}: {error.strerror}; nothing was kept; "
            "choose another folder with --traces"
        ) from error


def _top(averages, by: str, on_gpu: bool) -> list[tuple[str, float, float | None, int]]:
    rows = sorted(averages, key=lambda row: getattr(row, by), reverse=True)[:5]
    return [
        (
            row.key,
            row.self_cpu_time_total,
            row.self_device_time_total if on_gpu else None,
            row.count,
        )
        for row in rows
    ]


def _device(device: str) -> Device:
    if device == "cpu":
        return Device("cpu", "CPU")
    found = torch.cuda.get_device_properties(0)
    return Device(
        "cuda",
        found.name,
        compute_major=found.major,
        compute_minor=found.minor,
        num_sms=found.multi_processor_count,
        total_global_mem=found.total_memory,
        warp_size=getattr(found, "warp_size", None),
        max_threads_per_multiprocessor=getattr(found, "max_threads_per_multi_processor", None),
        regs_per_multiprocessor=getattr(found, "regs_per_multiprocessor", None),
        shared_mem_per_block=getattr(found, "shared_memory_per_block", None),
        shared_mem_per_block_optin=getattr(found, "shared_memory_per_block_optin", None),
        shared_mem_per_multiprocessor=getattr(found, "shared_memory_per_multiprocessor", None),
    )


def _versions() -> Versions:
    try:
        from triton import __version__ as triton
    except ImportError:
        triton = None
    return Versions(
        torch=str(torch.__version__),
        cuda=torch.version.cuda,
        cudnn=torch.backends.cudnn.version(),
        triton=triton,
        python=platform.python_version(),
    )
