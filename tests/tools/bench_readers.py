"""How long readers take for the same traces, and how much memory: ours, json.load, and others.

    python tests/tools/bench_readers.py --events 200000 1000000 [--runs 5] [--others PYTHON]

PYTHON is an interpreter that has traceinsight 0.6.1 (HolisticTraceAnalysis by its new name), AMD's
TraceLens (which is on GitHub alone), gpu-idle 0.1.0 and torch-tb-profiler 0.4.3; without it only
json.load and look are measured. Each reader is a process of its own; of several runs, which take
turns, the fastest and the largest memory are printed.
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


def commands(others: str | None) -> dict[str, list[str]]:
    found = {
        "json.load": [sys.executable, "-c", JSON],
        "look": [sys.executable, "-m", "common.look"],
    }
    if others:
        found["gpu-idle 0.1.0"] = [str(Path(others).parent / "gpu-idle")]
        found["torch-tb-profiler 0.4.3"] = [others, "-c", TB]
        found["TraceLens"] = [others, "-c", TRACELENS]
        found["HTA (traceinsight 0.6.1)"] = [others, "-c", HTA]
    return found


def measure(command: list[str], timeout: float) -> tuple[float, float] | str:
    """(seconds, peak MB), or why there is no figure."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
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
    return seconds, usage.ru_maxrss / 1024


def _kill(process: subprocess.Popen) -> None:
    """With the workers that it has started: they would disturb whoever comes next."""
    os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--events", type=int, nargs="+", default=[200_000, 1_000_000])
    parser.add_argument("--ours-only-from", type=int, default=5_000_000)
    parser.add_argument("--others", metavar="PYTHON")
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--minified", action="store_true")
    parser.add_argument("--gzip", action="store_true")
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as folder:
        for events in asked.events:
            path = Path(folder) / "trace.json"
            write(path, grow(RECORDING, events, asked.minified), asked.gzip)
            print(f"\n{events:,} events, {path.stat().st_size / 1e6:.0f} MB", flush=True)
            best: dict[str, tuple[float, float] | str] = {}
            for _ in range(asked.runs):
                for name, command in commands(asked.others).items():
                    if events >= asked.ours_only_from and name != "look":
                        continue
                    if asked.gzip and name == "json.load":
                        command = [*command[:2], JSON.replace("open(", "__import__('gzip').open(")]
                    before = best.get(name)
                    if isinstance(before, str):  # it will not do better
                        continue
                    figures = measure([*command, str(path)], asked.timeout)
                    if before and not isinstance(figures, str):
                        figures = min(before[0], figures[0]), max(before[1], figures[1])
                    best[name] = figures
            base = next(figures for figures in best.values() if not isinstance(figures, str))
            for name, figures in best.items():
                if isinstance(figures, str):
                    print(f"  {name:24} {figures}", flush=True)
                    continue
                ratio = f"{figures[0] / base[0]:5.2f} × time  {figures[1] / base[1]:5.2f} × memory"
                print(f"  {name:24} {figures[0]:7.2f} s {figures[1]:6.0f} MB  {ratio}", flush=True)


if __name__ == "__main__":
    main()
