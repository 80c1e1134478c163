"""How often the gate is wrong: unchanged pairs of groups drawn from real repeats, and the same with
one side slower.

    uv run tests/tools/gate_rates.py FOLDER --pairs 200 --slower 10 --fail-over 5

FOLDER holds recordings of one thing, each made by a process of its own. Each pair divides some,
drawn by chance, into BASE and NEW; the slower NEW has every time multiplied.
"""

import argparse
import random
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from common.compare.gate import gate
from common.read.many import files
from common.read.repeats import METRICS, Repeat, repeat_of
from common.read.trace import read


def slowed(one: Repeat, factor: float) -> Repeat:
    def times(ns: float | None) -> float | None:
        return None if ns is None else ns * factor

    parts = tuple(replace(part, ns=times(part.ns)) for part in one.parts)
    return replace(
        one,
        work=times(one.work),
        busy=times(one.busy),
        elapsed=times(one.elapsed),
        parts=parts,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--slower", type=float, default=10, help="percent (default: 10)")
    parser.add_argument("--fail-over", type=float, default=5, help="percent (default: 5)")
    asked = parser.parse_args()
    repeats = [repeat_of(read(path), path.name) for path in files([asked.folder])]
    chance, factor = random.Random(0), 1 + asked.slower / 100
    print(f"{len(repeats)} recordings, {asked.pairs} pairs, --fail-over {asked.fail_over:g}%")
    print("metric   in a group  slower, unchanged  slower, slowed  unclear, slowed")
    for metric in METRICS:
        for size in sorted({1, 2, 3, 5, len(repeats) // 2}):
            if 2 * size > len(repeats):
                continue
            verdicts = {1.0: [], factor: []}
            for _ in range(asked.pairs):
                drawn = chance.sample(repeats, 2 * size)
                for by, found in verdicts.items():
                    new = [slowed(one, by) for one in drawn[size:]]
                    found.append(gate(drawn[:size], new, metric, asked.fail_over / 100).verdict)
            same, more = verdicts[1.0], verdicts[factor]
            cells = [f"{metric:7}", f"{size:11}"]
            cells.append(f"{same.count('slower'):8} of {len(same)}")
            cells += [f"{more.count(word):6} of {len(more)}" for word in ("slower", "unclear")]
            print("  ".join(cells))


if __name__ == "__main__":
    main()
