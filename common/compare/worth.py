"""What is most worth seeing in a recording: decided here from the trace, worded in show."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

from ..read.observe import Observation, Step
from .variants import Variant

MOST = 3


@dataclass(frozen=True)
class Took:
    """PyTorch's own choice."""

    backend: str


@dataclass(frozen=True)
class OneKernel:
    step: Step
    behind_memset: bool


@dataclass(frozen=True)
class OneOp:
    name: str


@dataclass(frozen=True)
class Copies:
    count: int
    ops: tuple[str, ...]  # that asked for them


@dataclass(frozen=True)
class CopiesGone:
    """Those that naive has; `others`: all its other steps are here."""

    count: int
    others: bool


@dataclass(frozen=True)
class CoresUnused:
    """By every matmul."""

    dtypes: tuple[str, ...]  # that they read, where their names tell


@dataclass(frozen=True)
class MaskBuilt:
    """In every call."""


@dataclass(frozen=True)
class Fused:
    ops: tuple[str, ...]  # in one compiled kernel


@dataclass(frozen=True)
class CompiledHidden:
    """Compiled code ran of which no event tells: nothing can be said of the rest alone."""


@dataclass(frozen=True)
class Slowest:
    kind: str
    share: float  # of the forward's GPU time, or of its ops'
    on_gpu: bool


Sight: TypeAlias = (
    Took
    | OneKernel
    | OneOp
    | Copies
    | CopiesGone
    | CoresUnused
    | MaskBuilt
    | Fused
    | CompiledHidden
    | Slowest
)


def worth_seeing(variant: Variant) -> tuple[Sight, ...]:
    """MOST of it at the most, the most telling first."""
    return tuple(islice(_sights(variant), MOST))


def _sights(variant: Variant) -> Iterator[Sight]:
    seen, found = variant.seen, 0
    if seen.hides_compiled:
        yield CompiledHidden()
        return
    for sight in _special(variant):
        found += 1
        yield sight
    kernels = sum(step.sort == "kernel" for step in seen.steps)
    if len(seen.steps) > 1 and kernels != 1 and found < 2 and (most := _slowest(seen)):
        yield most


def _special(variant: Variant) -> Iterator[Sight]:
    seen = variant.seen
    kernels = [step for step in seen.steps if step.sort == "kernel"]
    if variant.story.variant == "auto" and seen.backend:
        yield Took(seen.backend)
    if len(kernels) == 1:
        yield OneKernel(kernels[0], any(step.sort == "memset" for step in seen.steps))
    elif len(seen.steps) == 1 and not seen.on_gpu:
        yield OneOp(seen.steps[0].name)
    yield from _copies(variant)
    matmuls = [step.kernel for step in kernels if step.kind == "matmul" and step.kernel]
    if matmuls and all(kernel.tensor_cores is False for kernel in matmuls):
        yield CoresUnused(tuple(sorted({k.dtype_in for k in matmuls if k.dtype_in})))
    if len(seen.steps) > 1 and {op.name for op in seen.ops} & {"aten::tril", "aten::triu"}:
        yield MaskBuilt()
    for step in kernels:
        if step.kind == "fused" and "softmax" in step.name:
            inside = [word for word in ("mul", "masked_fill", "where") if word in step.name]
            yield Fused((*inside, "softmax"))


def _copies(variant: Variant) -> Iterator[Sight]:
    seen, naive = variant.seen, variant.naive
    if copies := seen.of("copy"):
        above = {step.ops[0].name for step in copies if step.ops}
        yield Copies(len(copies), tuple(sorted(above)))
    elif naive and (before := naive.of("copy")):
        others = [step.kind for step in naive.steps if step.kind != "copy"]
        if [step.kind for step in seen.steps] == others:
            yield CopiesGone(len(before), bool(others))


def _slowest(seen: Observation) -> Slowest | None:
    times = [step.ns for step in seen.steps if step.ns is not None]
    if len(times) < len(seen.steps) or not sum(times):
        return None
    kind, ns = max(((step.kind, step.ns or 0) for step in seen.steps), key=lambda one: one[1])
    return Slowest(kind, ns / sum(times), seen.on_gpu)
