"""Generate valid traces of every shape and lay our answers beside those of a reader of its own.

    python tests/tools/differential.py 20000 [--seed 0]

The small reader below shares nothing with the product: it loads the whole file with `json` and asks
one question at a time, by brute force. Traces have threads, processes, ranks put together, sorted
and shuffled, streams, leaks, CUDA graphs, nesting, and ids and numbers of every spelling. Where the
product says "unknown" (null) although the small reader has a number, it must say why in a warning,
or the file be one of several ranks. Ends with exit code 1 and the seeds that disagree.
"""

import argparse
import contextlib
import io
import json
import random
import sys
import tempfile
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from common.look import Options, look  # noqa: E402

LABEL = "fwd"
KEYS = (
    "regions", "kernels_per_forward", "copies_per_forward", "memsets_per_forward",
    "cuda_sum_us", "gpu_busy_us", "total_kernels", "unlinked_kernels", "streams",
)  # fmt: skip


# ── Traces ────────────────────────────────────────────────────────────────────────────────────────


def spelled(rng: random.Random, value: int):
    """A number, or the same as text."""
    return str(value) if rng.random() < 0.1 else value


class Rank:
    """Events of one process: its threads do forwards, one after the other."""

    def __init__(self, rng: random.Random, pid: int, base: float, device: int) -> None:
        self.rng, self.pid, self.device = rng, pid, device
        self.events, self.next_id, self.gpu_free = [], 1, {}
        start = base + rng.randrange(50)
        for thread in range(rng.choice((1, 1, 2, 3))):
            self.thread = pid * 10 + thread
            at = start + rng.randrange(20)
            for _ in range(rng.choice((1, 2, 3))):
                at = self.forward(at) + rng.randrange(1, 30)
            if rng.random() < 0.3:  # work under no label
                self.step(at + 2)
        for _ in range(rng.choice((0, 0, 0, 2))):  # of a warm-up: no launch in the file
            self.gpu(9000 + self.next_id, "kernel", base + rng.randrange(40))
            self.next_id += 1

    def add(self, cat: str, name: str, ts: float, dur: float, **args) -> None:
        of_gpu = cat in ("kernel", "gpu_memcpy", "gpu_memset")
        self.events.append({
            "ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "args": args,
            "pid": self.device if of_gpu else spelled(self.rng, self.pid),
            "tid": args["stream"] if of_gpu else spelled(self.rng, self.thread),
        })  # fmt: skip

    def forward(self, at: float) -> float:
        begin = at
        at += 1
        for _ in range(self.rng.choice((0, 1, 2, 3, 5))):
            at = self.step(at)
        self.add("user_annotation", LABEL, begin, at + 1 - begin)
        return at + 1

    def step(self, at: float) -> float:
        """Nested ops around one launch, or a nested region of another label."""
        depth, rng = rng_depth(self.rng), self.rng
        call = at + depth + 1
        for level in range(depth):
            self.add("cpu_op", rng.choice(("aten::mul", "aten::bmm", "aten::copy_")), at + level,
                     2 * (depth - level) + 4, **{"External id": self.next_id})  # fmt: skip
        if rng.random() < 0.1:
            self.add("user_annotation", "inner", at + depth + 0.25, 3)
        sorts = "kernel", "kernel", "kernel", "gpu_memcpy", "gpu_memset", "graph", "sync"
        sort = rng.choice(sorts)
        number, self.next_id = self.next_id, self.next_id + 1
        if sort == "sync":
            self.add("cuda_runtime", "cudaStreamSynchronize", call, 2, correlation=number)
            return call + depth + 5
        name = {
            "kernel": rng.choice(("cudaLaunchKernel", "cuLaunchKernelEx", "hipLaunchKernel")),
            "gpu_memcpy": "cudaMemcpyAsync", "gpu_memset": "cudaMemsetAsync",
            "graph": "cudaGraphLaunch",
        }[sort]  # fmt: skip
        cat = "cuda_driver" if name == "cuLaunchKernelEx" else "cuda_runtime"
        self.add(cat, name, call, 2, correlation=spelled(rng, number), **{"External id": number})
        for _ in range(rng.choice((1, 2, 4)) if sort == "graph" else 1):
            self.gpu(number, "kernel" if sort == "graph" else sort, call + 3)
        return call + depth + 5

    def gpu(self, number: int, cat: str, after: float) -> None:
        stream = self.rng.choice((7, 7, 7, 20))
        start = max(after, self.gpu_free.get(stream, 0)) + self.rng.choice((0, 0.5, 4))
        dur = self.rng.choice((1, 2.25, 10, 30.125))
        self.gpu_free[stream] = start + dur
        self.add(cat, f"{cat} {self.rng.randrange(4)}", start, dur, device=self.device,
                 stream=stream, correlation=spelled(self.rng, number))  # fmt: skip


def rng_depth(rng: random.Random) -> int:
    return rng.choice((0, 1, 1, 2, 4))


def generated(rng: random.Random) -> tuple[dict, int]:
    """A trace, and of how many ranks it is."""
    base = rng.choice((0, 5_150_000_000_000, 1_790_857_026_000_000))
    count = rng.choice((1, 1, 1, 2, 3))
    ranks = [Rank(rng, 100 + n, base + 1000, n) for n in range(count)]
    parts = []
    for rank in ranks:
        name = {"ph": "M", "name": "process_name", "pid": rank.pid, "tid": 0, "args": {"name": "p"}}
        events = sorted(rank.events, key=lambda e: e["ts"]) if rng.random() < 0.5 else rank.events
        parts.append([name, *events])
    events = [event for part in parts for event in part]
    order = rng.choice(("one behind the other", "sorted", "shuffled"))
    if order == "sorted":
        events.sort(key=lambda e: e.get("ts", 0))
    elif order == "shuffled":
        rng.shuffle(events)
    return {"schemaVersion": 1, "traceEvents": events}, count


# ── A small reader ────────────────────────────────────────────────────────────────────────────────


def small_reader(whole: dict) -> dict:
    """What one process did in the label, by brute force. Only right for a file of one rank."""
    timed = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    regions = [e for e in timed if e["cat"] == "user_annotation" and e["name"] == LABEL]
    calls = [e for e in timed if e["cat"] in ("cuda_runtime", "cuda_driver")]
    works = [e for e in timed if e["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    launched = {str(call["args"]["correlation"]): call for call in calls}
    counts = {sort: [] for sort in ("kernel", "gpu_memcpy", "gpu_memset")}
    mine = []
    for region in sorted(regions, key=lambda e: e["ts"]):
        found = []
        for work in works:
            call = launched.get(str(work["args"]["correlation"]))
            if call and str(call["tid"]) == str(region["tid"]):
                if region["ts"] <= call["ts"] < region["ts"] + region["dur"]:
                    found.append(work)
        for sort, count in counts.items():
            count.append(sum(work["cat"] == sort for work in found))
        mine += found

    def agreed(count: list[int]):
        return count[0] if len(set(count)) == 1 else count

    busy, until = Fraction(), None
    spans = ((Fraction(w["ts"]), Fraction(w["ts"]) + Fraction(w["dur"])) for w in mine)
    for start, end in sorted(spans):
        busy += max(0, end - max(start, until if until is not None else start))
        until = max(end, until) if until is not None else end
    kernels = [work for work in works if work["cat"] == "kernel"]
    return {
        "regions": len(regions),
        "kernels_per_forward": agreed(counts["kernel"]) if works else None,
        "copies_per_forward": agreed(counts["gpu_memcpy"]) if works else None,
        "memsets_per_forward": agreed(counts["gpu_memset"]) if works else None,
        "cuda_sum_us": round(float(sum(work["dur"] for work in mine)), 3) if mine else None,
        "gpu_busy_us": round(float(busy), 3) if mine else None,
        "total_kernels": len(kernels),
        "unlinked_kernels": sum(str(k["args"]["correlation"]) not in launched for k in kernels),
        "streams": sorted({work["args"]["stream"] for work in mine}, key=str),
    }


def disagreements(found: dict, wanted: dict, ranks: int) -> list[str]:
    """Where both have a number and it is not the same, or one is unknown without a word."""
    if ranks > 1:  # only what is a sum over all of them can be asked of a file of several
        return [key for key in ("regions", "total_kernels") if found[key] != wanted[key]]
    said = []
    for key in KEYS:
        ours, theirs = found[key], wanted[key]
        if isinstance(ours, float) and isinstance(theirs, float):
            if abs(ours - theirs) > 0.002:
                said.append(f"{key}: {ours}, not {theirs}")
        elif ours is None and theirs is not None and found["warnings"]:
            continue
        elif ours != theirs:
            said.append(f"{key}: {ours}, not {theirs}")
    return said


def of_ranks(whole: dict, found: dict) -> list[str]:
    """In a file of several ranks a number must be the sum of what each alone has, or unknown."""
    events = [event for event in whole["traceEvents"] if event["ph"] == "X"]
    pids = sorted({str(e["pid"]) for e in events if e["cat"] not in
                   ("kernel", "gpu_memcpy", "gpu_memset")})  # fmt: skip
    total: float | None = 0.0
    for number, pid in enumerate(pids):
        its_gpu = [e for e in events if e["args"].get("device") == number]
        part = its_gpu + [e for e in events if "stream" not in e["args"] and str(e["pid"]) == pid]
        its = small_reader({"traceEvents": part})["cuda_sum_us"]
        total += its or 0
    ours = found["cuda_sum_us"]
    # By chance a shuffled file of few events looks like ranks one behind the other. What then
    # stands behind the other rank's events is told: without a launch in the file.
    if ours is not None and ours < total and "without a launch" in " ".join(found["warnings"]):
        return []
    if ours is not None and abs(ours - round(total, 3)) > 0.002:
        return [f"cuda_sum_us of {len(pids)} ranks: {ours}, not {total}"]
    return []


def differ(count: int, seed: int = 0) -> tuple[Counter, list[str]]:
    outcomes, failures = Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        for number in range(seed, seed + count):
            rng = random.Random(number)
            whole, ranks = generated(rng)
            text = json.dumps(whole, indent=rng.choice((None, 1)))
            path.write_text(text)
            whole = json.loads(text, parse_float=Decimal)  # what is written, exactly
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                look(Options([path], region=LABEL, json=True))
            found = json.loads(out.getvalue())
            wrong = disagreements(found, small_reader(whole), ranks)
            if ranks > 1:
                wrong += of_ranks(whole, found)
            kind = "disagree" if wrong else "unknown" if found["cuda_sum_us"] is None else "agree"
            outcomes[f"{'several ranks' if ranks > 1 else 'one rank'}: {kind}"] += 1
            if wrong:
                failures.append(f"seed {number}: {'; '.join(wrong)}")
    return outcomes, failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    kinds, failed = differ(asked.count, asked.seed)
    print(f"{asked.count:,} traces: " + ", ".join(f"{n:,} {k}" for k, n in sorted(kinds.items())))
    print("\n".join(failed[:20]))
    sys.exit(bool(failed))
