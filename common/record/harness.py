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
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from ..cli import UserError, note, shown
from ..read.trace import METADATA_KEY
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
class Recording:
    """What one run left behind. `top` are the table's first rows:
    (name, self CPU µs, self device µs or None without a GPU, calls), over all recorded steps."""

    trace: Path
    table: Path
    top: list[tuple[str, float, float | None, int]]


def record(
    attention: Attention,
    workload: Workload,
    options: Options,
    *,
    script: str,
    title: str,
    label: str,
    stores_scores: bool,
    layout: str = "bhsd",
    synchronise: str = "warm-up",
    progress=lambda doing: None,
) -> Recording:
    """Check `attention`, record it, write trace and table; both files or none.

    `attention` maps q, k, v of `workload.shape` to the output of that shape; with layout "bshd",
    all four are [batch, seq, heads, head_dim] instead. Where it has a `configuration`, a function
    that says in words how it runs, the trace keeps its answer. `synchronise`: after the "warm-up",
    after "every step", or "never" before the end. `progress` is told what is being done.

    Raises UserError for whatever the user can mend: a backend that refuses the shape, memory, a
    wrong result, a folder that cannot be written.
    """
    variant = options.variant or title
    mode = "compile" if options.compile else "eager"
    folder = _writable(options.traces / script)
    name = tag(options, workload)
    with _explained(variant, workload, stores_scores), torch.no_grad():
        inputs = workload.inputs()
        if layout == "bshd":  # moved once, before anything is measured
            inputs = tuple(x.transpose(1, 2).contiguous() for x in inputs)
        if options.compile:
            # Compiled code is cached on disk under a key that does not know which SDPA backend is
            # pinned: unmarked, the backend compiled first would be run for all of them.
            torch.compiler.config.cache_key_tag = f"{script} {options.variant}"
        forward = torch.compile(attention) if options.compile else attention
        progress("compiling" if options.compile else "first forward")
        output = forward(*inputs)
        progress("checking the result against float64")
        error = relative_error(*(_heads_first(x, layout) for x in (output, *inputs)))
        if not error <= TOLERANCE[workload.dtype]:
            raise UserError(
                f"{variant} is wrong on {workload}: relative error {error:.1e} against the float64 "
                f"reference, {TOLERANCE[workload.dtype]:.1e} allowed; not recorded"
            )
        del output
        peak = _peak_bytes(forward, *inputs)
        progress(f"recording {options.active} forwards")
        profiler = _profile(forward, inputs, label, options, synchronise)

    configuration = getattr(attention, "configuration", lambda: None)
    about = {
        "script": script,
        "title": title,
        "variant": options.variant,
        "label": label,
        "shape": list(workload.shape),
        "dtype": workload.dtype,
        "mode": mode,
        "device": _device(workload.device),
        "versions": _versions(),
        "steps": {"wait": WAIT, "warmup": options.warmup, "active": options.active},
        # Compiled, the choice is the compiler's, and it does not tell.
        "configuration": None if options.compile else configuration(),
        "peak_bytes": peak,
        "relative_error": error,
    }
    progress("writing trace and table")
    on_gpu = workload.device == "cuda"
    averages = profiler.key_averages()
    by = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    table = averages.table(sort_by=by, row_limit=-1, max_name_column_width=100)
    about["table_totals"] = dict(re.findall(r"^(Self .+ time total): (.+)$", table, re.M))
    with (
        _disk_errors(folder),
        tempfile.TemporaryDirectory(prefix=".recording-", dir=folder) as scratch,
    ):
        raw = Path(scratch) / "raw.json"
        profiler.export_chrome_trace(str(raw))
        trace = with_story(raw.read_bytes() if raw.exists() else b"", about)
        _publish(Path(scratch), folder, {f"{name}.json": trace, f"{name}.txt": table.encode()})
    return Recording(folder / f"{name}.json", folder / f"{name}.txt", _top(averages, by, on_gpu))


def _heads_first(x: torch.Tensor, layout: str) -> torch.Tensor:
    return x.transpose(1, 2) if layout == "bshd" else x


def tag(options: Options, workload: Workload) -> str:
    """The name of the experiment: shape, variant, and whatever is not the default."""
    extra = [
        options.variant,
        workload.dtype if workload.dtype != "bf16" else "",
        workload.device if workload.device != "cuda" else "",
        f"warmup{options.warmup}" if options.warmup != 1 else "",
        f"active{options.active}" if options.active != 3 else "",
        "compile" if options.compile else "eager",
    ]
    return "_".join([*map(str, workload.shape), *filter(None, extra)])


def with_story(trace: bytes, about: dict) -> bytes:
    """The profiler's trace with `about` inside and without what is nobody's business: the host's
    name and the path it was first written to.

    Raises UserError when the file is not whole: the profiler does not say when the disk is full.
    """
    trace = re.sub(rb'\n\s*"host_name":\s*"[^"\n]*",?', b"", trace)
    # The last entry of a whole file; the path in it is that of the scratch folder.
    body, whole = re.subn(rb',?\s*"traceName":\s*"[^"\n]*"\s*}\s*$', b"\n}\n", trace)
    story = json.dumps({METADATA_KEY: about}, indent=2)[1:-1].strip().encode()
    body = re.sub(rb"\A\s*{", lambda _: b"{\n  " + story + b",", body, count=1)
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
    lazy = getattr(torch, "_lazy_modules", set())
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
def _explained(variant: str, workload: Workload, stores_scores: bool) -> Iterator[None]:
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


def _out_of_memory(variant: str, workload: Workload, stores_scores: bool) -> str:
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


def _publish(scratch: Path, folder: Path, files: dict[str, bytes]) -> None:
    """Write all files beside their places, then move them there."""
    for name, content in files.items():
        with open(scratch / name, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    for name in files:
        if name.endswith(".json") and (old := folder / name).exists():
            made = datetime.fromtimestamp(old.stat().st_mtime)
            note(f"{shown(old)} of {made:%Y-%m-%d %H:%M} is replaced")
        os.replace(scratch / name, folder / name)


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


def _device(device: str) -> dict:
    """Name and limits, under the names that Kineto's own `deviceProperties` uses."""
    if device == "cpu":
        return {"type": "cpu", "name": "CPU"}
    found = torch.cuda.get_device_properties(0)
    known = {
        "computeMajor": "major",
        "computeMinor": "minor",
        "numSms": "multi_processor_count",
        "totalGlobalMem": "total_memory",
        "warpSize": "warp_size",
        "maxThreadsPerMultiprocessor": "max_threads_per_multi_processor",
        "regsPerMultiprocessor": "regs_per_multiprocessor",
        "sharedMemPerBlock": "shared_memory_per_block",
        "sharedMemPerBlockOptin": "shared_memory_per_block_optin",
        "sharedMemPerMultiprocessor": "shared_memory_per_multiprocessor",
    }
    limits = {ours: getattr(found, theirs, None) for ours, theirs in known.items()}
    return {"type": "cuda", "name": found.name, **limits}


def _versions() -> dict:
    try:
        from triton import __version__ as triton
    except ImportError:
        triton = None
    return {
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "triton": triton,
        "python": platform.python_version(),
    }
