"""Files of the ranks of a made-up job, as large and as many as asked, with a straggler.

    uv run tests/tools/make_ranks.py FOLDER --ranks 256 --steps 20

Every rank runs the same steps; before each all-reduce the straggler computes longer, and the others
wait in it: LAYERS times a step, LATE µs each, where nothing is left to chance (`--jitter 0`).
"""

import argparse
import gzip
import json
import random
from pathlib import Path

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
START = 5_150_000_000_000
LAYERS = 12
COMPUTE, LATE, TRANSFER = 200.0, 60.0, 50.0  # µs: of a layer, the straggler's more, an all-reduce


def rank_file(rank: int, ranks: int, steps: int, straggler: int, jitter: float = 0.0) -> dict:
    """A trace. Clocks of the ranks disagree by seconds, as those of machines may."""
    chance = random.Random(rank)
    clock = START + 1_000_000.0 * rank
    pid, events = 1000 + rank, []
    cpu, gpu, correlation = clock, clock + 100, 0

    def timed(cat, name, ts, dur, pid, tid, **args) -> None:
        event = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid}
        events.append(event | {"ts": round(ts, 3), "dur": round(dur, 3), "args": args})

    def launched(op, kernel, dur, stream, **args) -> None:
        nonlocal cpu, gpu, correlation
        correlation += 1
        timed("cpu_op", op, cpu, 20, pid, pid, **{"External id": correlation})
        timed("cuda_runtime", "cudaLaunchKernel", cpu + 5, 8, pid, pid,
              **{"External id": correlation, "correlation": correlation})  # fmt: skip
        timed("kernel", kernel, gpu, dur, 0, stream,
              **{"External id": correlation, "correlation": correlation, "device": 0,
                 "stream": stream, "grid": [16, 8, 8], "block": [128, 1, 1],
                 "registers per thread": 168, "shared memory": 0, **args})  # fmt: skip
        cpu, gpu = cpu + 25, gpu + dur

    for step in range(steps):
        begin = cpu
        for _ in range(LAYERS):
            compute = COMPUTE + LATE * (rank == straggler) + jitter * chance.random()
            launched("aten::mm", GEMM, compute, 7)
            wait = COMPUTE + LATE + jitter - compute  # until the last could come
            launched("nccl:all_reduce", NCCL, wait + TRANSFER, 20, **{
                "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 1 << 20,
                "Out msg nelems": 1 << 20, "Group size": ranks, "Process Group Name": "0",
                "Process Group Description": "default_pg"})  # fmt: skip
        cpu = max(cpu, gpu - 100)
        timed("user_annotation", f"ProfilerStep#{step + 2}", begin, cpu - begin, pid, pid)
    names = [{"name": "process_name", "ph": "M", "ts": START, "pid": pid, "tid": 0, "args": {}}]
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks, "pg_count": 1},
        "traceEvents": names + events,
        "traceName": "trace.json",
    }


def write(folder: Path, ranks: int, steps: int, straggler: int, jitter: float = 0.0) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for rank in range(ranks):
        text = json.dumps(rank_file(rank, ranks, steps, straggler, jitter), indent=1)
        path = folder / f"rank{rank}.json.gz"
        path.write_bytes(gzip.compress(text.encode(), 6, mtime=0))
        paths.append(path)
    return paths


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--straggler", type=int, default=3)
    parser.add_argument("--jitter", type=float, default=5.0, help="µs (default: 5)")
    asked = parser.parse_args()
    write(asked.folder, asked.ranks, asked.steps, asked.straggler, asked.jitter)


if __name__ == "__main__":
    main()
