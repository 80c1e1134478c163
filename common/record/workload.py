"""What runs: the options, the inputs, and the check that the result is right.

Every variant gets the same q, k and v: identical inputs are the control of the experiment.
"""

import contextlib
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from ..cli import UserError, option, positive
from ..story import DTYPES, Dtype, Mode

TORCH_DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}

# Relative error allowed against the float64 reference. For the 16-bit types it is twice the spacing
# of numbers at 1 (2^-7 and 2^-10): inputs, scores, weights and output are each rounded once. In
# float32 sums of `seq` products dominate the rounding of single values.
TOLERANCE = {"bf16": 2**-6, "fp16": 2**-9, "fp32": 1e-5}

# The post's shape, and one that a laptop's CPU records in a moment.
DEFAULT_SHAPE = {"cuda": (8, 16, 1024, 64), "cpu": (2, 4, 256, 64)}


def _size(axis: int, help: str):
    gpu, cpu = DEFAULT_SHAPE["cuda"][axis], DEFAULT_SHAPE["cpu"][axis]
    default = f"{gpu}" if gpu == cpu else f"{gpu}, on the CPU {cpu}"
    return option(None, f"{help} (default: {default})", type=positive, metavar="N")


@dataclass(frozen=True)
class Options:
    """What to run and how to record it: the same in every script."""

    batch: int | None = _size(0, "sequences in the batch")
    heads: int | None = _size(1, "attention heads")
    seq: int | None = _size(2, "tokens in a sequence")
    head_dim: int | None = _size(3, "numbers a head holds for a token")
    dtype: Dtype = option("bf16", "data type of q, k and v", choices=DTYPES)
    device: str = option(
        "auto", "where to run; auto takes CUDA if there is one", choices=("auto", "cuda", "cpu")
    )
    compile: bool = option(
        False, "compile with torch.compile instead of running eagerly", action="store_true"
    )
    warmup: int = option(1, "profiler warm-up steps before recording", type=positive, metavar="N")
    active: int = option(3, "steps to record", type=positive, metavar="N")
    traces: Path = option(Path("traces"), "folder for trace and table", type=Path, metavar="DIR")

    def shape(self, device: str) -> tuple[int, int, int, int]:
        """(batch, heads, seq, head_dim): as given, else the device's own."""
        batch, heads, seq, head_dim = DEFAULT_SHAPE[device]
        return (
            self.batch or batch, self.heads or heads, self.seq or seq, self.head_dim or head_dim
        )  # fmt: skip

    @property
    def mode(self) -> Mode:
        return "compile" if self.compile else "eager"


@dataclass(frozen=True)
class Workload:
    """One attention problem on one device. The shape is (batch, heads, seq, head_dim)."""

    batch: int
    heads: int
    seq: int
    head_dim: int
    dtype: Dtype
    device: Literal["cuda", "cpu"]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return self.batch, self.heads, self.seq, self.head_dim

    def __str__(self) -> str:
        return f"{self.dtype} {list(self.shape)}"

    @property
    def score_bytes(self) -> int:
        """Bytes of the score matrix of all heads, in the dtype of the inputs."""
        return self.batch * self.heads * self.seq**2 * TORCH_DTYPES[self.dtype].itemsize

    def inputs(self, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q, k and v: standard normal, each of `self.shape`, drawn on the device."""
        generator = torch.Generator(self.device).manual_seed(seed)
        dtype = TORCH_DTYPES[self.dtype]
        q, k, v = (
            torch.randn(self.shape, dtype=dtype, device=self.device, generator=generator)
            for _ in range(3)
        )
        return q, k, v


def choose(options: Options) -> tuple[Workload, str | None]:
    """The workload that the options ask for, and why it runs on the CPU if nobody asked for that.

    Only sizes the user left open depend on the device. Raises UserError when `--device cuda`
    cannot be had.
    """
    why = None if options.device == "cpu" else why_no_cuda()
    if why and options.device == "cuda":
        raise UserError(f"--device cuda: {why}; leave --device out to run on the CPU")
    device: Literal["cuda", "cpu"] = "cpu" if why or options.device == "cpu" else "cuda"
    return Workload(*options.shape(device), options.dtype, device), why


def why_no_cuda() -> str | None:
    """None when a CUDA device can run kernels of this torch, else the reason in one sentence."""
    build = f"torch {torch.__version__}"
    if torch.version.cuda is None and torch.version.hip is None:
        return f"{build} is built without CUDA"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the same reason comes with the exception
        try:
            torch.cuda.init()
            if torch.cuda.device_count() == 0:
                return f"{build} sees no CUDA device"
        except (RuntimeError, AssertionError) as error:
            reason = str(error).split(". ")[0].split("\n")[0].rstrip(".")
            return f"{build} cannot use CUDA: {reason}"
        if torch.version.hip:
            return None
        return why_no_kernels(
            torch.cuda.get_device_capability(),
            torch.cuda.get_arch_list(),
            torch.cuda.get_device_name(),
        )


def why_no_kernels(capability: tuple[int, int], built: list[str], name: str) -> str | None:
    """None when a GPU of this compute capability can run one of the architectures `built`.

    Machine code (`sm_90`) runs within its major version from its own minor version on; PTX
    (`compute_90`) is compiled by the driver for any later GPU. Source: CUDA C++ Programming Guide,
    "Application Compatibility".
    """
    targets = []
    for arch in built:
        kind, _, digits = arch.partition("_")
        if digits := "".join(filter(str.isdigit, digits)):
            targets.append((kind, (int(digits[:-1]), int(digits[-1]))))
    for kind, target in targets:
        newer = capability >= target
        if newer and (kind == "compute" or capability[0] == target[0]):
            return None
    if not targets:
        return None
    age = "old" if capability < min(target for _, target in targets) else "new"
    return (
        f"{name} (sm_{capability[0]}{capability[1]}) is too {age} for "
        f"torch {torch.__version__}, built for {' '.join(built)}"
    )


# Score matrices, in the inputs' dtype, that exist at once where they are stored: the peak measured
# for naive attention (torch 2.15, CPU: 1.94; torch 2.11, H200: 2.0).
STORED = 1.94


def require_memory(workload: Workload, variant: str, stores_scores: bool | float) -> None:
    """Raise UserError when the tensors that must exist at once cannot fit: better said before
    trying, and on the CPU there is no second chance. `stores_scores`: whether, or how often."""
    free, where = free_bytes(workload.device)
    times = STORED if stores_scores is True else stores_scores
    size = TORCH_DTYPES[workload.dtype].itemsize
    inputs = 4 * workload.batch * workload.heads * workload.seq * workload.head_dim * size
    if times and times * workload.score_bytes + inputs > free:
        raise UserError(f"{scores_too_large(workload, variant, times)}, and {where}; {WAY_OUT}")
    if inputs > free:
        raise UserError(
            f"q, k, v and the output of {workload} need {gib(inputs)}, {where}: "
            "choose a smaller --batch, --heads, --seq or --head-dim"
        )


WAY_OUT = "use a shorter --seq, or 04_c with --backend flash, which never stores them"


def scores_too_large(workload: Workload, variant: str, times: float = 1) -> str:
    size = TORCH_DTYPES[workload.dtype].itemsize
    more = f", and {times:g} times that at once" if times != 1 else ""
    return (
        f"out of memory: {variant} needs {gib(workload.score_bytes)} for the scores of {workload} "
        f"(batch x heads x seq^2 x {size} bytes){more}"
    )


def free_bytes(device: str) -> tuple[int, str]:
    """Bytes free on the device, and the words that say so."""
    if device == "cuda":
        free, _ = torch.cuda.mem_get_info()
        return free, f"{torch.cuda.get_device_name()} has {gib(free)} free"
    free = _free_ram()
    return free, f"this machine has {gib(free)} of memory free"


def _free_ram() -> int:
    """What the machine has, or what the container may have of it, where that is less."""
    return min([_free_of_machine(), *_free_of_container()])


def _free_of_container(
    told: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")
) -> Iterator[int]:
    """Bytes left under each limit of memory that this process is under, of cgroup v2 and v1.

    Source: the kernel's admin-guide/cgroup-v2 and cgroup-v1/memory. File pages that nobody uses
    count as used there, and are given back when they are needed.
    """
    try:
        lines = told.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        number, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if number == "0" and not controllers:
            base, names = root, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            base = root / "memory"
            names = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        else:
            continue
        # Inside a container its own group is the root, whatever the path outside.
        place = base / path.lstrip("/")
        groups = [one for one in (place, *place.parents) if one == base or base in one.parents]
        for group in groups:
            if (left := _left_in(group, *names)) is not None:
                yield left


def _left_in(group: Path, most: str, used: str, unused: str) -> int | None:
    try:
        limit, use = (int((group / name).read_text()) for name in (most, used))
    except (OSError, ValueError):  # not there, or "max"
        return None
    given_back = 0
    with contextlib.suppress(OSError, ValueError):
        stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        given_back = int(stat.get(unused, 0))
    return max(0, limit - use + given_back)


def _free_of_machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    if not hasattr(os, "sysconf"):  # Windows: unknown, so nothing is refused
        return 2**63
    # macOS: no /proc, and no count of free pages either.
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def gib(count: float) -> str:
    return f"{count / 2**30:.1f} GiB"


def causal_mask(seq: int, device: str) -> torch.Tensor:
    """(seq, seq), true where a token must not look: at those after it."""
    return torch.ones(seq, seq, dtype=torch.bool, device=device).triu(1)


Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def relative_error(
    output: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
) -> float:
    """‖output − reference‖ / ‖reference‖ over a slice: the first and the last head, and rows from
    the start, the middle and the end. NaN when any element of the whole output is not finite.
    """
    if not torch.isfinite(output).all():
        return float("nan")
    batch, heads, seq, _ = q.shape
    rows = sorted(
        {
            *range(min(8, seq)),
            *range(seq // 2, min(seq // 2 + 16, seq)),
            *range(max(0, seq - 8), seq),
        }
    )
    wrong = total = 0.0
    for b, h in {(0, 0), (batch - 1, heads - 1)}:
        one_q, one_k, one_v = (_float64(x[b, h]) for x in (q, k, v))
        expected = causal_attention_rows(one_q, one_k, one_v, rows)
        wrong += np.square(_float64(output[b, h, rows]) - expected).sum()
        total += np.square(expected).sum()
    return float(np.sqrt(wrong / total))


def causal_attention_rows(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, rows: list[int]
) -> np.ndarray:
    """Rows of causal attention for one head, straight from the definition, in float64.

    q, k, v: (seq, head_dim). Returns (len(rows), head_dim). Row i looks at tokens 0 to i.
    """
    scores = q[rows] @ k.T / np.sqrt(q.shape[1])
    scores[np.arange(len(k)) > np.array(rows)[:, None]] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights @ v / weights.sum(axis=1, keepdims=True)


def _float64(x: torch.Tensor) -> np.ndarray:
    return x.detach().float().cpu().numpy().astype(np.float64)
