"""Traces in the layout that torch.profiler writes, so that a test says in a few lines what its
trace holds; and the shipped recordings, read without the code under test.

Times are microseconds after START. A GPU event names the correlation id of its launch.
"""

import gzip
import importlib.util
import json
from decimal import Decimal
from pathlib import Path

ROOT = Path(__file__).parent.parent
CASES = ROOT / "tests" / "data" / "cases"
RECORDED = ROOT / "traces" / "recorded" / "h200"
SCRIPTS = {
    "04_a": "04_a_naive_attention",
    "04_b": "04_b_inplace_ops_attention",
    "04_c": "04_c_sdpa_attention",
    "04_d": "04_d_kernels_attention",
}
BACKENDS = ("auto", "math", "efficient", "flash", "cudnn")
KERNELS = ("triton", "gluon", "flex", "fa4")

START = 5_150_000_000_000
LABEL = "fwd"
THREAD = 4242
H200 = {
    "id": 0,
    "name": "NVIDIA H200",
    "totalGlobalMem": 150109880320,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 132,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 232448,
    "sharedMemPerMultiprocessor": 233472,
}

# Real names, one of a kind each.
NVJET = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_TNT"
FFMA = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_a"
FLASH = (
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
    "cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)"
)
SOFTMAX = (
    "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 10, "
    "false, false>(c10::BFloat16*, c10::BFloat16 const*, int, int, int, bool const*, int, bool)"
)


def _timed(cat, name, ts, dur, pid, tid, args) -> dict:
    return {
        "ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid,
        "ts": START + ts, "dur": dur, "args": args,
    }  # fmt: skip


def region(ts, dur, name=LABEL, thread=THREAD) -> dict:
    return _timed("user_annotation", name, ts, dur, THREAD, thread, {"External id": 1})


def op(name, ts, dur, thread=THREAD, **args) -> dict:
    """`external` is the id that its launches carry as well; `sequence` that of its graph node."""
    return _timed("cpu_op", name, ts, dur, THREAD, thread, _args(args))


def _args(args: dict) -> dict:
    names = {
        "external": "External id",
        "sequence": "Sequence number",
        "forward_thread": "Fwd thread id",
    }
    return {names.get(key, key): value for key, value in args.items()}


def launch(correlation, ts, name="cudaLaunchKernel", thread=THREAD, dur=5, **args) -> dict:
    cat = "cuda_driver" if name.startswith("cu") and not name.startswith("cuda") else "cuda_runtime"
    args = {"cbid": 211, "correlation": correlation, **_args(args)}
    return _timed(cat, name, ts, dur, THREAD, thread, args)


def kernel(correlation, ts, dur, name=NVJET, stream=7, device=0, **args) -> dict:
    """`args` replace or add to those of the event; one given as None is left out."""
    known = {
        "queued": 0, "device": device, "context": 1, "stream": stream,
        "correlation": correlation, "registers per thread": 168, "shared memory": 0,
        "grid": [16, 8, 8], "block": [128, 1, 1], "est. achieved occupancy %": 18,
    }  # fmt: skip
    known = {key: value for key, value in (known | args).items() if value is not None}
    return _timed("kernel", name, ts, dur, device, stream, known)


def copy(correlation, ts, dur, stream=7) -> dict:
    args = {"device": 0, "context": 1, "stream": stream, "correlation": correlation, "bytes": 512}
    name = "Memcpy DtoD (Device -> Device)"
    return _timed("gpu_memcpy", name, ts, dur, 0, stream, args)


def memset(correlation, ts, dur, stream=7) -> dict:
    args = {"device": 0, "context": 1, "stream": stream, "correlation": correlation, "bytes": 4}
    return _timed("gpu_memset", "Memset (Device)", ts, dur, 0, stream, args)


def forward(ts, *steps, first=None, label=LABEL, call="cudaLaunchKernel", **args) -> list[dict]:
    """One labelled forward of `(ops, kernel name, µs)`: ops from the outermost to the one that
    launches, "masked_fill clone copy_"; the name "copy" or "memset" makes one of those; the name
    "" makes no GPU event. Ops take 20 µs, one step after the other; the GPU runs 1 ms behind."""
    events = [region(ts, 20 * len(steps) + 10, label)]
    gpu_time = ts + 1000
    for number, (ops, name, us) in enumerate(steps):
        at, correlation = ts + 5 + 20 * number, (first or ts + 1) + number
        chain = [word if "::" in word else f"aten::{word}" for word in ops.split()]
        events += [op(word, at + depth, 18 - 2 * depth) for depth, word in enumerate(chain)]
        if name == "copy":
            events.append(launch(correlation, at + 9, "cudaMemcpyAsync"))
            events.append(copy(correlation, gpu_time, us))
        elif name == "memset":
            events.append(launch(correlation, at + 9, "cudaMemsetAsync"))
            events.append(memset(correlation, gpu_time, us))
        elif name:
            events.append(launch(correlation, at + 9, call))
            events.append(kernel(correlation, gpu_time, us, name, **args))
        gpu_time += us
    return events


def story(**changes) -> dict:
    """What our scripts write of a run into its trace."""
    return {
        "script": "04_x_test", "title": "test attention", "variant": "", "label": LABEL,
        "shape": [2, 4, 256, 64], "dtype": "bf16", "mode": "eager",
        "device": {"type": "cuda", "name": "NVIDIA H200"},
        "versions": {"torch": "2.11.0"}, "steps": {"wait": 1, "warmup": 1, "active": 3},
        "peak_bytes": 1 << 20,
    } | changes  # fmt: skip


def trace(*events, about=None, device=H200) -> dict:
    """The file's JSON; `events` are events, or lists of them however deep."""
    flat = list(_flat(events))
    names = [{"name": "process_name", "ph": "M", "ts": START, "pid": THREAD, "tid": 0, "args": {}}]
    file = {"schemaVersion": 1, "deviceProperties": [device] if device else [],
            "traceEvents": names + flat, "traceName": "trace.json"}  # fmt: skip
    return file | ({"profiling_attention": about} if about is not None else {})


def _flat(events):
    for item in events:
        if isinstance(item, dict):
            yield item
        else:
            yield from _flat(item)


def write(folder: Path, content, name="trace.json") -> Path:
    """Write a trace, or bytes as they are."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(data)
    return path


def make(folder: Path, path: str, *steps, **about) -> Path:
    """A small recording of ours; steps as `forward` takes them."""
    steps = steps or (("mul", "k", 5),)
    return write(folder, trace(forward(100, *steps), about=story(**about)), path)


def recording(script: str, mode: str = "eager", backend: str = "") -> Path:
    """A shipped recording, such as ("04_c", "compile", "flash")."""
    variant = f"{backend}_" if backend else ""
    return RECORDED / SCRIPTS[script] / f"8_16_1024_64_{variant}{mode}.json.gz"


def recordings() -> list[tuple[str, str, str]]:
    """Arguments of `recording` for all that is shipped."""
    modes = ("eager", "compile")
    own = [(script, mode, "") for script in ("04_a", "04_b") for mode in modes]
    own += [("04_c", mode, backend) for backend in BACKENDS for mode in modes]
    return own + [("04_d", mode, kernel) for kernel in KERNELS for mode in modes]


def load(path: Path) -> dict:
    """The file's JSON with exact decimals, by the standard library alone."""
    return json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)


def truth(path: Path, label: str | None = None) -> list[dict]:
    """Each forward of a recording by plain loops: its GPU events in order of time, each with the
    names of the CPU ops around its launch."""
    file = load(path)
    label = label or file["profiling_attention"]["label"]
    timed = [event for event in file["traceEvents"] if event["ph"] == "X"]
    forwards = []
    for span in timed:
        if span["cat"] != "user_annotation" or span["name"] != label:
            continue
        inside = [
            event
            for event in timed
            if event["tid"] == span["tid"]
            and event["cat"] in ("cpu_op", "cuda_runtime", "cuda_driver")
            and span["ts"] <= event["ts"] < span["ts"] + span["dur"]
        ]
        ops = [event for event in inside if event["cat"] == "cpu_op"]
        work = []
        for call in inside:
            for event in timed:
                if (
                    event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")
                    and event["args"]["correlation"] == call["args"].get("correlation")
                    and call["cat"] != "cpu_op"
                ):
                    around = [o["name"] for o in ops if o["ts"] <= call["ts"] < o["ts"] + o["dur"]]
                    work.append({"event": event, "call": call["name"], "ops": around})
        work.sort(key=lambda item: item["event"]["ts"])
        forwards.append({"dur": span["dur"], "ops": [o["name"] for o in ops], "work": work})
    return forwards


def tool(name: str):
    """A module of tests/tools."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
