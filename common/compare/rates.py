"""How fast the steps of a forward run, and how far that is from what the GPU can do at most.

The roofline: what must be computed takes at least FLOP / peak TFLOP/s, what must be moved at least
bytes / peak TB/s; the longer of the two bounds the step, and its share of that peak says how near
the bound it is (S. Williams and others, "Roofline", 2009).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

from ..read.kinds import MAY_USE_TENSOR_CORES
from ..read.linked import Linked
from ..read.observe import Observation, Step
from ..read.rates import Sum, siblings, summed, works, works_of_ops
from ..read.trace import Trace
from .facts import L2_BYTES, PEAK_TBS, PEAK_TFLOPS
from .rows import Row

Bound: TypeAlias = Literal["compute", "memory", "cache", "doubtful"]


@dataclass(frozen=True)
class Gpu:
    """What a GPU can do at most; None is unknown."""

    name: str

    def tflops(self, dtype: str | None) -> float | None:
        return PEAK_TFLOPS.get(self.name, {}).get(dtype or "")

    @property
    def tbs(self) -> float | None:
        return PEAK_TBS.get(self.name)

    @property
    def cache(self) -> int | None:
        return L2_BYTES.get(self.name)


def gpu_of(trace: Trace) -> Gpu | None:
    """The one of which all that the trace says of GPUs speaks."""
    told = {str(device["name"]) for device in trace.devices if "name" in device}
    if trace.story and trace.story.device.type == "cuda":
        told.add(trace.story.device.name)
    return Gpu(told.pop()) if len(told) == 1 else None


@dataclass(frozen=True)
class Rate:
    """Of one step or of several together. None is unknown."""

    work: Sum
    times: int
    peak_tflops: float | None
    peak_tbs: float | None
    cache: int | None  # bytes that the L2 cache holds

    @property
    def tflops(self) -> float | None:
        return None if self.work.flop is None else self.work.flop / self.work.ns / 1e3

    @property
    def tbs(self) -> float | None:
        return None if self.work.bytes is None else self.work.bytes / self.work.ns / 1e3

    @property
    def share_of_compute(self) -> float | None:
        return _share(self.tflops, self.peak_tflops)

    @property
    def share_of_memory(self) -> float | None:
        return _share(self.tbs, self.peak_tbs) if self.work.memory else None

    @property
    def share(self) -> float | None:
        """Of the peak that bounds it."""
        shares = self.share_of_compute, self.share_of_memory
        return None if self.bound is None else max(share or 0 for share in shares)

    @property
    def bound(self) -> Bound | None:
        """Which peak is nearer. Above the memory's: the data came from the cache, if a single
        step's fits there; else the shapes do not tell what happened."""
        compute, memory = self.share_of_compute, self.share_of_memory
        if memory is None or (compute is None and self.work.flop != 0):
            # Where one is unknown the other may be nearer.
            return None if compute is None or compute <= 1 else "doubtful"
        if max(compute or 0, memory) > 1:
            if (compute or 0) <= 1 and self.cache and self._bytes_of_one <= self.cache:
                return "cache"
            return "doubtful"
        return "compute" if (compute or 0) > memory else "memory"

    @property
    def _bytes_of_one(self) -> float:
        return (self.work.bytes or 0) / self.times


def _share(rate: float | None, peak: float | None) -> float | None:
    return None if rate is None or not peak else rate / peak


class Rates:
    """Of the steps of one forward."""

    def __init__(self, steps: Sequence[Step], seen: Observation) -> None:
        self.gpu = gpu_of(seen.trace) if seen.on_gpu else None
        self._works = works(steps, seen.story)
        self._siblings = siblings(steps, self._works)

    @cached_property
    def by_shapes(self) -> bool:
        """Whether any op's work is known: copies and memsets carry their bytes without that."""
        return any(work.flop for work in self._works.values())

    def of(self, rows: Iterable[Row]) -> Rate | None:
        """Of rows of one place or kind; None where the work of one is unknown."""
        rows = list(rows)
        steps = [step for row in rows for step in row.steps]
        if not rows or not (work := summed(steps, self._works, self._siblings)):
            return None
        times = sum(id(step) in self._works and step.kind != "memset" for step in steps)
        return self._rate(work, steps, max(times, 1))

    def _rate(self, work: Sum, steps: Sequence[Step], times: int) -> Rate:
        cores = _cores(work, steps)
        return Rate(work, times, *_peaks(self.gpu, cores))


def _peaks(gpu: Gpu | None, cores: str | None) -> tuple[float | None, float | None, int | None]:
    return (gpu.tflops(cores), gpu.tbs, gpu.cache) if gpu else (None, None, None)


def _cores(work: Sum, steps: Sequence[Step]) -> str | None:
    """By which of the GPU's peaks it is measured. What is no matmul runs on CUDA cores, which
    compute in fp32 whatever is stored; fp32 on Tensor Cores is tf32."""
    mains = [step for step in steps if step.kind in MAY_USE_TENSOR_CORES]
    if not mains:
        return "fp32"
    if work.dtype != "fp32":
        return work.dtype
    uses = {step.kernel.tensor_cores for step in mains if step.kernel}
    return "tf32" if True in uses else "fp32" if uses == {False} else None


def rates_of_ops(linked: Linked) -> list[tuple[str, Rate]]:
    """Of a whole trace by op, those that took longest first."""
    gpu = gpu_of(linked.trace)
    found = []
    for op in works_of_ops(linked):
        if not op.ns:
            continue
        dtype = op.dtypes.copy().pop() if len(op.dtypes) == 1 else None
        cores = dtype
        if not op.kinds & MAY_USE_TENSOR_CORES:
            cores = "fp32"
        elif dtype == "fp32":
            cores = "tf32" if True in op.cores else "fp32" if op.cores == {False} else None
        work = Sum(op.flop, op.bytes, op.ns, dtype, True)
        found.append((op.name, Rate(work, op.runs, *_peaks(gpu, cores))))
    return found


@dataclass(frozen=True)
class OpRate:
    """All rows of one kind and way."""

    row: Row  # the first of them
    rows: tuple[Row, ...]
    rate: Rate | None

    @cached_property
    def ns(self) -> float:
        return sum(row.ns or 0 for row in self.rows)


def by_op(rates: Rates, rows: Sequence[Row]) -> list[OpRate]:
    """The rows put together that do the same for the same ops; the dearest first."""
    found: dict[object, list[Row]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    made = [OpRate(same[0], tuple(same), rates.of(same)) for same in found.values()]
    return sorted(made, key=lambda one: -one.ns)
