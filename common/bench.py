"""Time the attention kernels beside each other: flash, cuDNN, and those of 04_d.

Each is first compared with a float64 reference on fresh random inputs, its output poisoned with NaN
before. Then replays of CUDA graphs (so that launch cost is out) are timed with device events, the
contenders taking turns, over three input sets in rotation. Shown: the median, its spread, TFLOP/s
(4·B·H·S²·D/2 operations, causal) and the ratio to cuDNN, whose time holds its memset. Then the
kernels alone, as the profiler times them, with their own ratio; and what a call costs the CPU when
nothing is recorded.
"""

import json
import os
import runpy
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
import triton
from rich.table import Table
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.profiler import ProfilerActivity, profile, record_function

from common import report
from common.cli import UserError, note, one_line_errors, option, parse
from common.observe import observe
from common.trace import read
from common.workload import TOLERANCE, Attention, Workload, relative_error, why_no_cuda

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


def contenders(work: Workload) -> dict[str, Attention]:
    """What can run this shape on this GPU."""
    # A second length would make flex compile once for any length, which is slower.
    torch._dynamo.reset()
    script = runpy.run_path(str(Path(__file__).parent.parent / "04_d_kernels_attention.py"))
    found = {
        "flash": partial(_sdpa, SDPBackend.FLASH_ATTENTION),
        "cudnn": partial(_sdpa, SDPBackend.CUDNN_ATTENTION),
        "flex": script["flex"](work),
        "triton": script["triton_attention"],
    }
    for name in ("gluon", "fa4"):
        try:
            found[name] = script[name](work)
        except UserError as error:
            note(str(error))
    if "fa4" in found:  # [batch, seq, heads, head_dim]; views, so that nothing is moved
        found["fa4"] = partial(_heads_second, found["fa4"])
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
    return {
        name: [
            sum(step.ns for step in forward.steps if step.sort == "kernel") / 1e3
            for forward in observe(trace, name).forwards
        ]
        for name in attentions
    }


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


def main(options: Options) -> None:
    if why := why_no_cuda():
        raise UserError(f"the benchmark needs a GPU: {why}")
    out = report.console()
    versions = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cudnn": torch.backends.cudnn.version(),
    }
    out.print(" · ".join(map(str, versions.values())), "bf16, causal", sep="\n")
    found = []
    for head_dim in (64, 128):
        for batch, seq in SWEEP:
            if options.head_dim not in (None, head_dim) or options.seq not in (None, seq):
                continue
            work = Workload(batch, HEADS, seq, head_dim, "bf16", "cuda")
            attentions = contenders(work)
            errors = {name: check(name, attention, work) for name, attention in attentions.items()}
            figures = {
                "us": measure(attentions, work),
                "kernel_us": kernels_alone(attentions, work),
                "cpu_us": cpu_cost(attentions, work),
                "relative_error": errors,
            }
            found.append({"shape": list(work.shape), **figures})
            out.print(_table(work, **figures))
    if not found:
        raise UserError(f"--seq: choose one of {' '.join(str(seq) for _, seq in SWEEP)}")
    if options.json:
        options.json.write_text(json.dumps({**versions, "results": found}, indent=2) + "\n")


def _table(work: Workload, us: Samples, kernel_us: Samples, cpu_us, relative_error) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", title_justify="left",
                  title=str(list(work.shape)))  # fmt: skip
    for name in ("", "µs", "min … max", "TFLOP/s", "÷ cuDNN", "kernel µs", "÷ cuDNN", "CPU µs"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    operations = 4 * work.batch * work.heads * work.seq**2 * work.head_dim / 2
    middle, kernel = (
        {name: statistics.median(times) for name, times in samples.items()}
        for samples in (us, kernel_us)
    )
    for name, times in us.items():
        table.add_row(
            name, f"{middle[name]:.1f}", f"{min(times):.1f} … {max(times):.1f}",
            f"{operations / middle[name] / 1e6:.0f}", f"{middle[name] / middle['cudnn']:.3f}",
            f"{kernel[name]:.1f}", f"{kernel[name] / kernel['cudnn']:.3f}", f"{cpu_us[name]:.0f}",
        )  # fmt: skip
    return table


if __name__ == "__main__":
    with one_line_errors():
        main(parse(Options, __doc__, "--seq 1024 --json bench.json", module="common.bench"))
