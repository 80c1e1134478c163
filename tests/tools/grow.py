"""A trace of any size out of a small recording, as the profiler would write it.

    python tests/tools/grow.py 1000000 big.json [--from RECORDING] [--minified] [--gzip]

The recording's steps are repeated one after the other; times, correlations, External ids, flow ids
and step numbers go on counting. One repetition is in memory at a time.
"""

import argparse
import gzip
import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "traces/recorded/h200/04_a_naive_attention/8_16_1024_64_eager.json.gz"
SLACK = 100  # µs between two repetitions

# What counts on from one repetition to the next; the groups name the counter.
COUNTS_ON = re.compile(
    r'"ts": ?(?P<ts>[\d.]+)|"(?:External id|correlation|id)": ?(?P<id>\d+)'
    r'|"Ev Idx": ?(?P<index>\d+)|"ProfilerStep#(?P<step>\d+)"'
)


def grow(recording: Path, events: int, minified: bool = False) -> Iterator[str]:
    """The file's text in pieces: at least `events` entries in traceEvents."""
    text = gzip.decompress(recording.read_bytes()).decode()
    if minified:
        text = re.sub(r'("(?:[^"\\]|\\.)*")|\s+', lambda m: m[1] or "", text)
    opening = re.search(r'"traceEvents": ?\[', text).end()
    head, entries, foot = text[:opening], *_split(text[opening:])
    # Metadata, instants and the profiler's own span stand once, at the end.
    repeated = [e for e in entries if re.search(r'"ph": ?"[Xsf]"', e) and '"Trace"' not in e]
    once = [e for e in entries if e not in set(repeated)]
    template, steps = _template(",".join(repeated))
    spans = [json.loads(entry) for entry in repeated]
    start = min(event["ts"] for event in spans)
    period = Decimal(int(max(e["ts"] + e.get("dur", 0) for e in spans) - start) + SLACK)
    ids = 1 + max(event.get("args", {}).get("correlation", 0) for event in spans)
    ids = max(ids, 1 + max(event.get("args", {}).get("External id", 0) for event in spans))
    repetitions = max(1, -(-(events - len(once)) // len(repeated)))
    yield head
    for number in range(repetitions):
        further = {"ts": number * period, "id": number * ids, "index": number * ids}
        further["step"] = number * steps
        yield "".join(
            part if isinstance(part, str) else str(part[1] + further[part[0]]) for part in template
        )
        yield ","
    yield ",".join(once) + foot


def _split(text: str) -> tuple[list[str], str]:
    """The entries of a JSON list, each with the blanks before it, and what comes behind them."""
    entries, at, decoder = [], 0, json.JSONDecoder()
    while True:
        start = at + re.match(r"\s*", text[at:]).end()
        _, end = decoder.raw_decode(text, start)
        entries.append(text[at:end])
        comma = re.compile(r"\s*,").match(text, end)
        if not comma:
            return entries, text[end:]
        at = comma.end()


def _template(text: str) -> tuple[list, int]:
    """The text cut at everything that counts on, and how many profiler steps it holds."""
    parts, at, steps = [], 0, set()
    for match in COUNTS_ON.finditer(text):
        name = match.lastgroup
        number = Decimal(match[name]) if name == "ts" else int(match[name])
        if name == "step":
            steps.add(number)
        parts += [text[at : match.start(name)], (name, number)]
        at = match.end(name)
    return [*parts, text[at:]], len(steps)


def write(path: Path, pieces: Iterator[str], packed: bool) -> None:
    with gzip.open(path, "wt", 1) if packed else path.open("w") as file:
        for piece in pieces:
            file.write(piece)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("events", type=int)
    parser.add_argument("path", type=Path)
    parser.add_argument("--from", dest="recording", type=Path, default=RECORDING)
    parser.add_argument("--minified", action="store_true")
    parser.add_argument("--gzip", action="store_true")
    asked = parser.parse_args()
    write(asked.path, grow(asked.recording, asked.events, asked.minified), asked.gzip)
