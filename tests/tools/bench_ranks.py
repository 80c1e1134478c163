"""How long `look FOLDER` takes for the ranks of a made-up job, and how much memory, by --jobs.

uv run tests/tools/bench_ranks.py --ranks 16,64,256 --jobs 1,2
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from make_ranks import write

ROOT = Path(__file__).parents[2]


def measured(folder: Path, jobs: int) -> tuple[float, int]:
    """Seconds, and the most memory of any process, in MB."""
    code = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, done.returncode)\n"
    )
    look = [sys.executable, "-m", "common.look", str(folder), "--jobs", str(jobs), "--json"]
    begin = time.perf_counter()
    told = subprocess.run(
        [sys.executable, "-c", code, *look], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert told[1] == "0"
    return time.perf_counter() - begin, int(told[0]) // 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--ranks", default="16,64,256")
    parser.add_argument("--jobs", default="1,2")
    parser.add_argument("--steps", type=int, default=100, help="of a rank (default: 100)")
    asked = parser.parse_args()
    jobs = [int(number) for number in asked.jobs.split(",")]
    print("ranks  jobs  seconds  ms a rank  MB of the largest process", flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for ranks in [int(number) for number in asked.ranks.split(",")]:
            folder = Path(scratch) / str(ranks)
            write(folder, ranks, asked.steps, straggler=3, jitter=5)
            for number in jobs:
                seconds, memory = measured(folder, number)
                each = 1000 * seconds / ranks
                print(f"{ranks:5}  {number:4}  {seconds:7.1f}  {each:9.0f}  {memory:6}", flush=True)


if __name__ == "__main__":
    main()
