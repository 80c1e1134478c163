"""Time the attention kernels beside each other: flash, cuDNN, and those of 04_d.

Each is first compared with a float64 reference on fresh random inputs, its output poisoned with NaN
before. Then replays of CUDA graphs (so that launch cost is out) are timed with device events, the
contenders taking turns, over three input sets in rotation. Shown: the median, its spread, TFLOP/s
(4·B·H·S²·D/2 operations, causal) and the ratio to cuDNN, whose time holds its memset. Then the
kernels alone, as the profiler times them, with their own ratio; and what a call costs the CPU when
nothing is recorded. Of several runs, each has its figure, one behind the other.
"""

import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
import triton
from rich.table import Table
from rich.text import Text
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile, record_function

from . import scripts
from .cli import (
    UserError,
    note,
    one_line_errors,
    option,
    parse,
    progress,
    require_writable,
    shown,
    write_whole,
)
from .read.known import known, total
from .read.observe import observe
from .read.trace import Trace, read
from .record.workload import TOLERANCE, Attention, Workload, relative_error, why_no_cuda
from .show.terminal import console, print_plain

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # no news of the profiler's starts and stops

HEADS = 16
SWEEP = ((16, 512), (8, 1024), (4, 2048), (2, 4096), (1, 8192), (1, 16384))
ROUNDS = 9  # of which the first two warm up
REPLAY_US = 1500  # of work in one graph: long beside the event's own half microsecond
PROFILED = 20  # calls of each under the profiler

Samples = dict[str, list[float]]  # microseconds a call


@dataclass(frozen=True)
class Options:
    json: Path | None = option(None, "write the figures to this file", type=Path, metavar="FILE")
    seq: int | None = option(None, "only this sequence length", type=int, metavar="N")
    head_dim: int | None = option(None, "only 64 or only 128", type=int, metavar="N")
    replay: list[Path] | None = option(
        None, "show these runs' files instead", type=Path, nargs="+", metavar="FILE"
    )


def contenders(work: Workload) -> dict[str, Attention]:
    """What can run this shape on this GPU."""
    # A second length would make flex compile once for any length, which is slower.
    torch._dynamo.reset()
    found: dict[str, Attention] = {
        "flash": partial(_sdpa, SDPBackend.FLASH_ATTENTION),
        "cudnn": partial(_sdpa, SDPBackend.CUDNN_ATTENTION),
    }
    for name, way in scripts.load("04_d_kernels_attention").WAYS.items():
        if name == "hub":  # it needs the network
            continue
        try:
            attention = way.build(work)
        except UserError as error:
            note(str(error))
            continue
        # [batch, seq, heads, head_dim]: views, so that nothing is moved.
        found[name] = partial(_heads_second, attention) if way.layout == "bshd" else attention
    return found


def _sdpa(backend: SDPBackend, q, k, v):
    with sdpa_kernel(backend):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def _heads_second(attention: Attention, q, k, v):
    return attention(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)


def check(name: str, attention: Attention, work: Workload) -> float:
    """The relative error. Raises UserError when it is not of the dtype's size."""
    q, k, v = work.inputs(seed=work.seq)
    poison = torch.full_like(q, float("nan"))
    del poison  # the allocator hands this block to the output: an element not written stays NaN
    error = relative_error(attention(q, k, v), q, k, v)
    if not error <= TOLERANCE[work.dtype]:
        raise UserError(f"{name} is wrong on {work}: relative error {error:.1e}")
    return error


def measure(attentions: dict[str, Attention], work: Workload) -> Samples:
    """Microseconds a call, ROUNDS − 2 samples each, taken in turns."""
    sets = [work.inputs(seed) for seed in range(3)]
    graphs = {name: _graph(attention, sets) for name, attention in attentions.items()}
    samples: Samples = {name: [] for name in graphs}
    for turn in range(ROUNDS):
        for name, (graph, calls) in graphs.items():
            us = _elapsed_us(graph.replay) / calls
            if turn >= 2:
                samples[name].append(us)
    return samples


def _graph(attention: Attention, sets) -> tuple[torch.cuda.CUDAGraph, int]:
    attention(*sets[0])
    once = _elapsed_us(lambda: attention(*sets[0]))
    calls = max(3, min(40, int(REPLAY_US / max(once, 20))))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        attention(*sets[0])
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in range(calls):
            attention(*sets[call % len(sets)])
    return graph, calls


def _elapsed_us(run: Callable[[], object]) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


def kernels_alone(attentions: dict[str, Attention], work: Workload) -> Samples:
    """Microseconds of each call's kernels, without memsets and launch gaps, read from one trace."""
    sets = [work.inputs(seed) for seed in range(3)]
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        for turn in range(PROFILED):
            for name, attention in attentions.items():
                with record_function(name):
                    attention(*sets[turn % len(sets)])
            torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        profiler.export_chrome_trace(str(path))
        trace = read(path)
    return {name: _kernel_us(name, trace) for name in attentions}


def _kernel_us(name: str, trace: Trace) -> list[float]:
    calls = observe(trace, name).forwards
    times = known(total(s.ns for s in call.steps if s.sort == "kernel") for call in calls)
    if times is None:
        raise UserError(f"{name}: the profiler gave a kernel of it no credible time; try again")
    return [ns / 1e3 for ns in times]


def cpu_cost(attentions: dict[str, Attention], work: Workload) -> dict[str, float]:
    """Microseconds of the CPU a call takes to launch, the best of five times 50 calls."""
    inputs, found = work.inputs(), {}
    for name, attention in attentions.items():
        times = []
        for _ in range(5):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(50):
                attention(*inputs)
            times.append((time.perf_counter() - start) / 50 * 1e6)
        found[name] = min(times)
    torch.cuda.synchronize()
    return found


def run(options: Options) -> dict:
    """Measure, with progress on stderr. {gpu, torch, triton, cudnn, results: one for each shape}"""
    if why := why_no_cuda():
        raise UserError(f"the benchmark needs a GPU: {why}; --replay shows the figures of one")
    if options.json:
        require_writable("--json", options.json)
    found = []
    for work in sweep(options):
        with progress() as doing:
            doing(str(work))
            attentions = contenders(work)
            errors = {name: check(name, attention, work) for name, attention in attentions.items()}
            found.append(
                {
                    "shape": list(work.shape),
                    "us": measure(attentions, work),
                    "kernel_us": kernels_alone(attentions, work),
                    "cpu_us": cpu_cost(attentions, work),
                    "relative_error": errors,
                }
            )
    return {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cudnn": torch.backends.cudnn.version(),
        "results": found,
    }


def sweep(options: Options) -> list[Workload]:
    """The shapes that are asked for. Raises UserError when there is none."""
    works = [
        Workload(batch, HEADS, seq, head_dim, "bf16", "cuda")
        for head_dim in (64, 128)
        for batch, seq in SWEEP
        if options.head_dim in (None, head_dim) and options.seq in (None, seq)
    ]
    if not works:
        raise UserError(
            f"--seq {options.seq} --head-dim {options.head_dim}: nothing to time; choose of "
            f"{' '.join(str(seq) for _, seq in SWEEP)} and of 64 128"
        )
    return works


def load(path: Path) -> dict:
    try:
        found = json.loads(path.read_text())
        found["results"][0]["kernel_us"]
        return found
    except OSError as error:
        raise UserError(f"--replay {shown(path)}: {error.strerror}") from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise UserError(f"--replay {shown(path)}: not a file of this benchmark's --json") from error


def show(runs: list[dict], options: Options) -> None:
    conditions = {tuple(run[key] for key in ("gpu", "torch", "triton", "cudnn")) for run in runs}
    if len(conditions) > 1:
        raise UserError("--replay: runs of several machines or versions; give those of one")
    gpu, torch_version, triton_version, cudnn = conditions.pop()
    out = console()
    words = f"{gpu} · torch {torch_version} · Triton {triton_version} · cuDNN {cudnn}"
    print_plain(out, Text(words))
    print_plain(out, "bf16, causal, µs")
    wanted = [list(work.shape) for work in sweep(options)]
    for shape in wanted:
        same = [one for run in runs for one in run["results"] if one["shape"] == shape]
        if same:
            print_plain(out, Text(f"\n{shape}"))
            print_plain(out, _table(same))


def _table(runs: list[dict]) -> Table:
    """One shape's figures; of several runs, one behind the other."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("", "µs", "min … max", "TFLOP/s", "÷ cuDNN", "kernel", "÷ cuDNN", "CPU"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name in runs[0]["us"]:
        table.add_row(name, *_row(name, runs))
    return table


def _row(name: str, runs: list[dict]) -> list[str]:
    batch, heads, seq, head_dim = runs[0]["shape"]
    operations = 4 * batch * heads * seq**2 * head_dim / 2
    whole, kernel = (
        [(statistics.median(run[of][name]), statistics.median(run[of]["cudnn"])) for run in runs]
        for of in ("us", "kernel_us")
    )
    times = [us for run in runs for us in run["us"][name]]

    def each(figures: Iterable[float], digits: int) -> str:
        return " ".join(f"{figure:.{digits}f}" for figure in figures)

    return [
        each((us for us, _ in whole), 1),
        f"{min(times):.1f} … {max(times):.1f}",
        each((operations / us / 1e6 for us, _ in whole), 0),
        each((us / cudnn for us, cudnn in whole), 3),
        each((us for us, _ in kernel), 1),
        each((us / cudnn for us, cudnn in kernel), 3),
        each((run["cpu_us"][name] for run in runs), 0),
    ]


def main(options: Options) -> None:
    if options.replay:
        show([load(path) for path in options.replay], options)
        return
    found = run(options)
    show([found], options)
    if options.json:
        write_whole("--json", options.json, as_json(found))


def as_json(found: dict) -> str:
    """One line a shape, nanoseconds at most."""
    shapes = ",\n".join(json.dumps(_rounded(one)) for one in found["results"])
    head = json.dumps({key: value for key, value in found.items() if key != "results"})[:-1]
    return f'{head}, "results": [\n{shapes}\n]}}\n'


def _rounded(value):
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


if __name__ == "__main__":
    with one_line_errors():
        main(parse(Options, __doc__, "--seq 1024 --json bench.json", module="common.bench"))
