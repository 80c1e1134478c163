"""Experiments from made-up recordings, asked through their command line."""

import gzip
import json
from pathlib import Path

import pytest
from build import FLASH, NVJET, SOFTMAX, forward, region, story, trace, write

from common.experiment import SHIPPED

WAITING = pytest.mark.skipif(not SHIPPED.exists(), reason="no recordings are shipped yet")


EX, PLAIN = "cuLaunchKernelEx", "cudaLaunchKernel"  # launch calls
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>"


def save(folder: Path, name: str, variant: str, *events, file="", **more) -> Path:
    """A recording of the experiment `name`."""
    about = story(script=f"experiment_{name}", variant=variant, **more)
    return write(folder, trace(*events, about=about), f"{file or variant}.json")


def as_experiment(folder: Path, name: str, variant: str, path: Path, **more) -> None:
    """A real recording, told to be one of an experiment."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    about = content["profiling_attention"]
    about |= {"script": f"experiment_{name}", "variant": variant} | more
    write(folder, json.dumps(content).encode(), f"{variant}_{path.name.removesuffix('.gz')}")


def conclusions(ask, name: str, folder: Path) -> list[str]:
    code, out, err = ask(name, "--json", "--replay", folder)
    assert code == 0, err
    return json.loads(out)["conclusions"]


def refused(ask, *arguments) -> str:
    code, out, err = ask(*arguments)
    assert (code, out) == (2, "") and err.startswith("error: ") and err.count("\n") == 1, err
    return err


def attention(first, us=100):
    """Three forwards of two kernels, 300 µs each."""
    return [
        forward(
            5000 * n, ("matmul", NVJET, us), ("softmax", SOFTMAX, us + 100), first=first + 10 * n
        )
        for n in (1, 2, 3)
    ]


def total(text: str) -> dict:
    return {"table_totals": {"Self CPU time total": "1.000ms", "Self CUDA time total": text}}


def leak(folder, never=(), after=(), never_total="900.000us", after_total="900.000us"):
    save(folder, "leak", "never", attention(100), *never, **total(never_total))
    save(folder, "leak", "warm-up", attention(100), *after, **total(after_total))
    return folder


def occupancy(folder, *kernels):
    """Recordings of (variant, launch call, bytes of shared memory, what the profiler says)."""
    for number, (variant, call, shared, says) in enumerate(kernels):
        args = {"shared memory": shared, "est. achieved occupancy %": says, "grid": [16, 128, 1]}
        work = forward(100, ("sdpa", FLASH, 90), call=call, **args)
        save(folder, "occupancy", variant, work, file=str(number))
    return folder


def cost(folder, **times):
    """For each variant, of each process, what a forward took: not recorded, and recorded, µs."""
    for variant, processes in times.items():
        for number, (plain, recorded) in enumerate(processes, 1):
            told = {"process": number, "cpu_ns": [plain * 1000 - 1, plain * 1000, plain * 9000]}
            work = [region(10_000 * n, recorded) for n in (1, 2, 3)]
            save(folder, "cost", variant, work, file=f"{variant}_{number}", unrecorded=told)
    return folder


def peak(folder, **mib):
    """Peaks by variant, of scores of 256 MiB and an output of 16."""
    for variant, peak in mib.items():
        save(
            folder, "peak", variant, forward(100, ("mul", "k", 5)), shape=[8, 16, 1024, 64],
            peak_bytes=None if peak is None else peak << 20,
        )  # fmt: skip
    return folder


def plan(folder, backend, *times):
    """Forwards of so many µs: the first of a kind of call, and the same again."""
    calls = [f"call {n // 2}{', again' * (n % 2)}" for n in range(len(times))]
    work = [region(100_000 * n, us) for n, us in enumerate(times, 1)]
    save(folder, "plan", backend, work, calls=calls)
    return folder


def tuned(ts, *blocks):
    """A forward that runs attention once with each block size, a fill before each."""
    events = [region(ts, 900)]
    for number, block in enumerate(blocks):
        events += forward(ts + 10 + 100 * number, ("fill_", FILL, 50), first=ts + 10 * number)[1:]
        events += forward(
            ts + 50 + 100 * number, ("triton", FLASH, 60), first=ts + 10 * number + 1,
            block=[block, 1, 1],
        )[1:]  # fmt: skip
    return events
