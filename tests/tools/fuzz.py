"""Damage recordings in every way and look at them: an answer or one line of error, soon.

    python tests/tools/fuzz.py 20000 [--seed 0]

Prints what became of the inputs, as counts. A crash, or more than two seconds, ends with exit code
1 and the seeds that did it.
"""

import argparse
import contextlib
import copy
import gzip
import io
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from common.cli import UserError  # noqa: E402
from common.look import Options, look  # noqa: E402
from common.read import pieces as reader  # noqa: E402

SLOW = 2  # seconds
KEPT = 120  # events of a recording: the most damage for the least time
VALUES = [
    None, True, 0, -1, 1.5, 10**30, 2**63, "", "text", "0", "NaN", "1e9", [], [1], {}, {"a": 1},
]  # fmt: skip
RECORDINGS = sorted((ROOT / "traces/recorded/h200").rglob("*.json.gz"))


def samples() -> list[dict]:
    """The first events of each kind of every recording, around its first steps."""
    found = []
    for path in RECORDINGS:
        whole = json.loads(gzip.decompress(path.read_bytes()))
        events = [event for event in whole["traceEvents"] if event["ph"] == "X"]
        calls = {e["args"]["correlation"] for e in events[:KEPT] if "correlation" in e["args"]}
        gpu = [e for e in events[KEPT:] if e.get("args", {}).get("correlation") in calls]
        whole["traceEvents"] = events[:KEPT] + gpu
        found.append(whole)
    return found


def damaged(rng: random.Random, sample: dict, other: dict) -> bytes:
    whole = copy.deepcopy(sample)
    if rng.random() < 0.5:
        del whole["profiling_attention"]
    events = whole["traceEvents"]
    if rng.random() < 0.1:  # two ranks in one file, told apart or not
        names = {"ph": "M", "name": "process_name", "pid": 0, "args": {}}
        events += [names] * rng.randrange(2) + copy.deepcopy(other["traceEvents"])
        for event in events[-len(other["traceEvents"]) :]:
            event["pid"] = rng.choice((event["pid"], 1))
    if rng.random() < 0.1:  # times since 1970, as older versions write them
        for event in events:
            event["ts"] = event.get("ts", 0) + 1_790_857_026_000_000
    if rng.random() < 0.1:
        whole = dict(reversed(whole.items()))
    for _ in range(rng.choice((0, 1, 1, 3, 10))):
        event = rng.choice(events)
        fields = event["args"] if rng.random() < 0.5 and event.get("args") else event
        if not isinstance(fields, dict) or not fields:
            continue
        name = rng.choice(list(fields))
        what = rng.randrange(6)
        if what == 0:
            del fields[name]
        elif what == 1:
            fields[name] = rng.choice(VALUES)
        elif what == 2:
            events.append(copy.deepcopy(event))
        elif what == 3:
            rng.shuffle(events)
        elif what == 4 and len(events) > 1:
            events.remove(event)
        else:
            fields[name] = copy.deepcopy(rng.choice(list(rng.choice(events).values())))
    indent = rng.choice((None, 1, 2))
    data = bytearray(json.dumps(whole, indent=indent).encode())
    if rng.random() < 0.3:
        for _ in range(rng.choice((1, 1, 2, 20))):
            data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.15:
        del data[rng.randrange(len(data)) :]
    if rng.random() < 0.1:
        at, length = rng.randrange(len(data) or 1), rng.randrange(200)
        data[at : at + length] = data[at : at + length] * 2 if rng.random() < 0.5 else b""
    if rng.random() < 0.15:
        data = bytearray(gzip.compress(data, 1))
        if rng.random() < 0.5:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


def fuzz(count: int, seed: int = 0) -> tuple[Counter, list[str]]:
    """(what became of the inputs, the failures with their seeds)."""
    outcomes, failures, all_samples = Counter(), [], samples()
    block, most = reader.BLOCK, reader.MOST
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.json"
        for number in range(seed, seed + count):
            rng = random.Random(number)
            path.write_bytes(damaged(rng, rng.choice(all_samples), rng.choice(all_samples)))
            reader.BLOCK = rng.choice((block, 2000, 9000))  # whole, and in pieces
            reader.MOST = rng.choice((most, 4000))
            options = Options([path], json=rng.random() < 0.5, salvage=rng.random() < 0.3)
            start, out = time.perf_counter(), io.StringIO()
            try:
                with contextlib.redirect_stdout(out):
                    look(options)
                if options.json:
                    json.loads(out.getvalue(), parse_constant=lambda token: 1 / 0)
                outcome = "salvaged" if "damaged file:" in out.getvalue() else "answered"
            except UserError as error:
                outcome = "refused in one line" if "\n" not in str(error) else "crash"
            except Exception as error:  # noqa: BLE001 — finding these is the purpose
                outcome = "crash"
                failures.append(f"seed {number}: {type(error).__name__}: {error}"[:200])
            if time.perf_counter() - start > SLOW:
                failures.append(f"seed {number}: {time.perf_counter() - start:.1f} s")
                outcome = "slow"
            outcomes[outcome] += 1
    reader.BLOCK, reader.MOST = block, most
    return outcomes, failures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    found, failed = fuzz(asked.count, asked.seed)
    print(f"{asked.count:,} inputs: " + ", ".join(f"{n:,} {what}" for what, n in found.items()))
    print("\n".join(failed[:20]))
    sys.exit(bool(failed))
