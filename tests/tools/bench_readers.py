"""How long readers take for the same traces, and how much memory: ours, json.load, and others.

    python tests/tools/bench_readers.py --events 200000 1000000 [--runs 5] [--others PYTHON]
                                        [--before CHECKOUT]

PYTHON is an interpreter that has traceinsight 0.6.1 (HolisticTraceAnalysis by its new name), AMD's
TraceLens (which is on GitHub alone), gpu-idle 0.1.0 and torch-tb-profiler 0.4.3; without it only
json.load and look are measured. CHECKOUT is another state of this project (git worktree add …),
whose look is measured beside. Each reader is a process of its own; of several runs, which take
turns, the fastest, the least CPU time and the largest memory are printed: where others use the
machine as well, the CPU time is disturbed less. Python may keep the modules that it has compiled,
as it does for everybody, and every reader has run once on a small trace.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from grow import RECORDING, ROOT, grow, write

JSON = "import json, sys; json.load(open(sys.argv[1]))"
HTA = (
    "import sys; from hta.trace_analysis import TraceAnalysis; "
    "TraceAnalysis(trace_files={0: sys.argv[1]}).get_gpu_kernel_breakdown(visualize=False)"
)
TRACELENS = (
    "import sys; from TraceLens import TreePerfAnalyzer; "
    "TreePerfAnalyzer.from_file(profile_filepath=sys.argv[1]).get_df_kernel_launchers()"
)
TB = (
    "import sys, tempfile; from torch_tb_profiler.io.cache import Cache; "
    "from torch_tb_profiler.profiler.data import RunProfileData; "
    "c = Cache(); c.__enter__(); "
    "RunProfileData.parse('w', None, sys.argv[1], tempfile.mkdtemp())"
)


def commands(others: str | None, before: Path | None) -> dict[str, list[str]]:
    found = {
        "json.load": [sys.executable, "-c", JSON],
        "look": [sys.executable, "-m", "common.look"],
    }
    if before:
        start = "import sys, runpy; sys.path[0] = sys.argv.pop(1); "
        start += "runpy.run_module('common.look', run_name='__main__', alter_sys=True)"
        found["look, before"] = [sys.executable, "-c", start, str(before.resolve())]
    if others:
        found["gpu-idle 0.1.0"] = [str(Path(others).parent / "gpu-idle")]
        found["torch-tb-profiler 0.4.3"] = [others, "-c", TB]
        found["TraceLens"] = [others, "-c", TRACELENS]
        found["HTA (traceinsight 0.6.1)"] = [others, "-c", HTA]
    return found


Figures = tuple[float, float, float]


def measure(command: list[str], timeout: float, compiled: str = "") -> Figures | str:
    """(seconds, seconds of CPU, peak MB), or why there is no figure. `compiled` is the folder for
    compiled modules."""
    environment = os.environ | ({"PYTHONPYCACHEPREFIX": compiled} if compiled else {})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    start = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        late = threading.Event()
        timer = threading.Timer(timeout, lambda: (late.set(), _kill(process)))
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)  # the peak of this child alone
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - start
        if late.is_set():
            return f"not done in {timeout:g} s"
        if process.returncode:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().split("\n")[-1]
            return f"failed: {last[:80]}"
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def _kill(process: subprocess.Popen) -> None:
    """With the workers that it has started: they would disturb whoever comes next."""
    os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--ours-only-from", type=int, default=5_000_000)
    parser.add_argument("--others", metavar="PYTHON")
    parser.add_argument("--before", type=Path, metavar="CHECKOUT")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--minified", action="store_true")
    parser.add_argument("--gzip", action="store_true")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    readers = commands(asked.others, asked.before)
    with tempfile.TemporaryDirectory() as folder:
        compiled = str(Path(folder) / "compiled")
        small = Path(folder) / "small.json"
        write(small, grow(RECORDING, 100, asked.minified), False)
        for command in readers.values():
            measure([*command, str(small)], asked.timeout, compiled)
        for events in asked.events:
            path = Path(folder) / "trace.json"
            write(path, grow(RECORDING, events, asked.minified), asked.gzip)
            print(f"\n{events:,} events, {path.stat().st_size / 1e6:.0f} MB", flush=True)
            best: dict[str, Figures | str] = {}
            for _ in range(asked.runs):
                for name, command in readers.items():
                    if events >= asked.ours_only_from and name != "look":
                        continue
                    if asked.gzip and name == "json.load":
                        command = [*command[:2], JSON.replace("open(", "__import__('gzip').open(")]
                    before = best.get(name)
                    if isinstance(before, str):  # it will not do better
                        continue
                    figures = measure([*command, str(path)], asked.timeout, compiled)
                    if before and not isinstance(figures, str):
                        figures = (*map(min, before[:2], figures[:2]), max(before[2], figures[2]))
                    best[name] = figures
            base = next(figures for figures in best.values() if not isinstance(figures, str))
            for name, figures in best.items():
                if isinstance(figures, str):
                    print(f"  {name:24} {figures}", flush=True)
                    continue
                time_, cpu, memory = (one / of for one, of in zip(figures, base, strict=True))
                print(
                    f"  {name:24} {figures[0]:7.2f} s {figures[1]:7.2f} s CPU {figures[2]:6.0f} MB"
                    f"  {time_:5.2f} × time {cpu:5.2f} × CPU {memory:5.2f} × memory",
                    flush=True,
                )


if __name__ == "__main__":
    main()
