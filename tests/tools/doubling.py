"""What twice the input costs, in time and memory: about twice, or the way of reading is wrong.

    python tests/tools/doubling.py [--size 20000] [--doublings 2] [--only threads,salvage]

Each kind of input is made at a size and its doubles, and looked at in a process of its own. Printed
are seconds of CPU, the largest memory beyond that of an empty trace, and for each doubling their
ratios. Ends with exit code 1 where a ratio is above 2.3 (and the time long enough to be measured).
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMIT = 2.3
LEAST_SECONDS, LEAST_MB = 0.5, 20  # less is noise
START = 5_150_000_000_000


def _timed(cat: str, name: str, ts: float, dur: float, pid: int = 1, tid: int = 1, **args) -> dict:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": START + ts,
            "dur": dur, "args": args}  # fmt: skip


def _launched(number: int, at: float, pid: int = 1, tid: int = 1) -> list[dict]:
    """An op, its launch and its kernel: 10 µs."""
    return [
        _timed("cpu_op", "aten::mul", at, 8, pid, tid, **{"External id": number}),
        _timed("cuda_runtime", "cudaLaunchKernel", at + 1, 5, pid, tid, correlation=number,
               **{"External id": number}),
        _timed("kernel", "elementwise", at + 6, 3, 0, 7, correlation=number, device=0, stream=7),
    ]  # fmt: skip


def _region(ts: float, dur: float, name: str = "fwd", pid: int = 1, tid: int = 1) -> dict:
    return _timed("user_annotation", name, ts, dur, pid, tid)


def _steps(n: int) -> list[dict]:
    return [event for i in range(n) for event in _launched(i + 1, 10 * i)]


def _file(*events) -> bytes:
    return json.dumps({"traceEvents": [*events]}).encode()


def one_region(n: int) -> bytes:
    return _file(_region(0, 10 * n), *_steps(n))


def many_regions(n: int) -> bytes:
    return _file(*(_region(10 * i, 9) for i in range(n)), *_steps(n))


def labels(n: int) -> bytes:
    return _file(*(_region(10 * i, 9, f"label {i % 100}") for i in range(n)), *_steps(n))


def nested_regions(n: int) -> bytes:
    return _file(*(_region(i, 10 * n - 2 * i) for i in range(n)), *_launched(1, 5 * n - 9))


def nested_ops(n: int) -> bytes:
    around = [_timed("cpu_op", "aten::f", i / 1000, 20 * n - i / 500) for i in range(n)]
    return _file(_region(0, 30 * n), *around, *_launched(1, 9 * n), *_launched(2, 9 * n + 20))


def equal_starts(n: int) -> bytes:
    return _file(*(_region(0, 5) for _ in range(n)), *_launched(1, 1))


def threads(n: int) -> bytes:
    steps = (_launched(i + 1, 10 * i, tid=i) for i in range(n))
    return _file(_region(0, 10 * n), *(event for step in steps for event in step))


def processes(n: int) -> bytes:
    parts = []
    for pid in range(2, n + 2):
        parts.append({"ph": "M", "name": "process_name", "pid": pid, "args": {}})
        parts += [_region(0, 9, pid=pid, tid=pid), *_launched(1, 0, pid, pid)]
    return _file(*parts)


def cpu_only(n: int) -> bytes:
    ops = (_timed("cpu_op", "aten::mul", 10 * i, 8) for i in range(3 * n))
    return _file(_region(0, 30 * n), *ops)


def halves(n: int) -> bytes:
    events = [event for event in (_region(0, 10 * n), *_steps(n))]
    begins = [{k: v for k, v in event.items() if k != "dur"} | {"ph": "B"} for event in events]
    ends = [b | {"ph": "E", "ts": b["ts"] + e["dur"]} for b, e in zip(begins, events, strict=True)]
    return _file(*sorted(begins + ends, key=lambda half: half["ts"]))


def odd_arguments(n: int) -> bytes:
    return _file(_region(0, 10 * n), *(event | {"args": []} for event in _steps(n)))


def empty_objects(n: int) -> bytes:
    return b'{"traceEvents":[' + b"{}," * (50 * n) + b"{}]}"


def empty_devices(n: int) -> bytes:
    return b'{"deviceProperties":[' + b"{}," * (50 * n) + b'{}],"traceEvents":[]}'


def nan(n: int) -> bytes:
    return _file(_region(0, 10 * n), *_steps(n)).replace(b'"dur": 3,', b'"dur": NaN,')


def nan_unterminated(n: int) -> bytes:
    return b'{"traceEvents":[{"name":"NaN' + b'\\"' * (10 * n)


def surrogates(n: int) -> bytes:
    return _file(_region(0, 10 * n), *_steps(n)).replace(b"elementwise", rb"k\udcff\ud800")


def salvage(n: int) -> bytes:
    events = [event | {"x": [{"a": [{"b": 1}]}]} for event in _steps(n)]
    return _file(_region(0, 10 * n), *events)[:-40]


def salvage_broken(n: int) -> bytes:
    return _file(_region(0, 10 * n), *_steps(n)).replace(b'"tid": 7', b'"tid": \x01')


def names(n: int) -> bytes:
    steps = (event | {"name": f"{event['name']}<{i}>"} for i, event in enumerate(_steps(n)))
    return _file(_region(0, 10 * n), *steps)


def _mixed(n: int, seed: int) -> bytes:
    """Steps of several kinds, in an order of chance."""
    rng, events = random.Random(seed), _steps(n)
    for op in events[::3]:
        op["name"] = rng.choice(("aten::mul", "aten::add", "aten::div", "aten::exp"))
    return _file(_region(0, 10 * n), *events)


def two_recordings(n: int) -> bytes:
    return _mixed(n, 0)


def other(n: int) -> bytes:
    return _mixed(n, 1)


def nested_launches(n: int) -> bytes:
    """As many ops around as there are launches inside."""
    around = [_timed("cpu_op", "aten::f", i / 1000, 20 * n - i / 500) for i in range(n)]
    inside = (_launched(i + 1, n + 10 * i) for i in range(n))
    return _file(_region(0, 30 * n), *around, *(event for step in inside for event in step))


BESIDE = "beside another"
KINDS: dict[Callable[[int], bytes], str] = {
    one_region: "", many_regions: "", labels: "", nested_regions: "", nested_ops: "",
    equal_starts: "", threads: "", processes: "", cpu_only: "", names: "", halves: "",
    odd_arguments: "", empty_objects: "", empty_devices: "", nan: "", nan_unterminated: "",
    surrogates: "", salvage: "--salvage", salvage_broken: "--salvage", two_recordings: BESIDE,
    nested_launches: "",
}  # fmt: skip


def cost(path: Path, *options: str, timeout: float) -> tuple[float, float] | None:
    """(seconds of CPU, peak MB) of looking at a file; None where it takes too long."""
    command = [sys.executable, "-m", "common.look", str(path), *filter(None, options)]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    late = time.monotonic() + timeout
    while True:
        pid, _, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = 0
            return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
        if time.monotonic() > late:
            process.kill()
            os.wait4(process.pid, 0)
            process.returncode = 0
            return None
        time.sleep(0.01)


def _write(path: Path, name: str, size: int) -> None:
    """In a process of its own: what this one takes, its children would seem to take too."""
    code = (
        "import sys, pathlib, doubling; "
        "pathlib.Path(sys.argv[1]).write_bytes(getattr(doubling, sys.argv[2])(int(sys.argv[3])))"
    )
    command = [sys.executable, "-c", code, str(path), name, str(size)]
    subprocess.run(command, cwd=Path(__file__).parent, check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--doublings", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--json", action="store_true", help="what look --json costs")
    parser.add_argument("--timeout", type=float, default=120)
    asked = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        path, beside = Path(folder) / "trace.json", Path(folder) / "beside.json"
        path.write_bytes(_file(_region(0, 5)))
        base = cost(path, timeout=asked.timeout)
        if base is None:
            raise SystemExit("an empty trace takes too long")
        for kind, option in KINDS.items():
            if asked.only and kind.__name__ not in asked.only.split(","):
                continue
            before, said = None, []
            for doubling in range(asked.doublings + 1):
                _write(path, kind.__name__, asked.size << doubling)
                options = [option, "--json" * asked.json]
                if option == BESIDE:
                    _write(beside, other.__name__, asked.size << doubling)
                    options[0] = str(beside)
                spent = cost(path, *options, timeout=asked.timeout)
                if spent is None:
                    said.append(f"not done in {asked.timeout:g} s")
                    bad += 1
                    break
                seconds, mb = (a - b for a, b in zip(spent, base, strict=True))
                text = f"{seconds:6.2f} s {mb:5.0f} MB"
                if before:
                    ratios = [
                        max(a, least) / max(b, least)
                        for a, b, least in zip(
                            (seconds, mb), before, (LEAST_SECONDS, LEAST_MB), strict=True
                        )
                    ]
                    text += f"  ×{ratios[0]:.1f} ×{ratios[1]:.1f}"
                    bad += max(ratios) > LIMIT
                said.append(text)
                before = seconds, mb
            print(f"{kind.__name__:18} {'   '.join(said)}", flush=True)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
