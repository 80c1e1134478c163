"""What is most worth doing about a recording: nothing that the trace does not prove.

Each advice is a finding with its figures; its `share` is the part of the GPU's time, idle time
included, that it is about: the most that could be won, and by that they are ordered.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import msgspec

from ..read.kernel_names import decode
from ..read.linked import Linked
from ..read.observe import Observation, Step
from ..read.shares import Shares, shares
from ..read.trace import GpuEvent, Span
from ..read.usage import COMPILE, LOADER, Launched, Usage, usage
from ..read.ways import Ways, events

MOST = 3
LEAST = 0.01  # of the GPU's time: of less nobody is told
LEAST_FUSIBLE = 0.15

# These have a fused form: https://docs.pytorch.org/docs/stable/optim.html
FUSED_OPTIMIZERS = ("Adam", "AdamW", "SGD", "Adagrad")
ELEMENTWISE = frozenset(
    "mul add sub div activation math cast mask where compare fill exp triu rope".split()
)
# What stands between the matmuls of attention that somebody wrote out.
BEFORE_SOFTMAX = ELEMENTWISE | {"copy", "memset"}
BEHIND_SOFTMAX = frozenset(("cast", "copy", "random", "mul", "memset"))
BATCHED = ("aten::bmm", "aten::baddbmm", "aten::einsum")
MATH = "aten::_scaled_dot_product_attention_math"


@dataclass(frozen=True)
class LaunchBound:
    """The GPU had run dry before the next launch came."""

    share: float
    idle: float  # share of all idle time
    launches: int
    mean_ns: float  # of what they launched
    culprit: str | None  # what the CPU was in most of that time


@dataclass(frozen=True)
class DataLoader:
    share: float
    count: int
    longest_ns: int


@dataclass(frozen=True)
class Compiling:
    share: float
    count: int


@dataclass(frozen=True)
class Blocked:
    """Idle while the CPU sat in a call that waits for the GPU."""

    share: float
    count: int
    call: str
    items: int  # copies to the host that `.item()` and the like asked for


@dataclass(frozen=True)
class PageableCopies:
    share: float
    count: int
    to_device: bool


@dataclass(frozen=True)
class UnfusedOptimizer:
    share: float  # from its first event to its last, with what is idle between them
    name: str
    launches: int
    foreach: bool


@dataclass(frozen=True)
class CudaCoreMatmuls:
    """Matmuls or convolutions in fp32."""

    share: float
    count: int


@dataclass(frozen=True)
class MathAttention:
    """Attention whose scores stand in memory."""

    share: float
    count: int
    by_hand: bool  # else it is SDPA's math backend
    masked: bool  # a step of a mask is among them


@dataclass(frozen=True)
class LayoutChanges:
    """Around convolutions."""

    share: float
    count: int


@dataclass(frozen=True)
class Copies:
    share: float
    count: int
    ops: tuple[str, ...]  # that asked for most of them


@dataclass(frozen=True)
class Elementwise:
    share: float
    count: int


@dataclass(frozen=True)
class ExposedCommunication:
    share: float
    of_it: float  # share of communication that nothing hides


Advice: TypeAlias = (
    LaunchBound
    | DataLoader
    | Compiling
    | Blocked
    | PageableCopies
    | UnfusedOptimizer
    | CudaCoreMatmuls
    | MathAttention
    | LayoutChanges
    | Copies
    | Elementwise
    | ExposedCommunication
)


class Piece(msgspec.Struct, frozen=True, gc=False):  # as many as the forwards' steps
    """A GPU event in order of its launch, as far as advice asks."""

    event: GpuEvent
    kind: str
    path: tuple[str, ...]
    dtype: str | None = None  # that its op's shapes tell

    @property
    def ns(self) -> int:
        return self.event.duration or 0


@dataclass(frozen=True)
class Top:
    """The top of a page. No shares and no advice where no time on a GPU is known."""

    shares: Shares
    advice: tuple[Advice, ...]
    more: int  # that are worth less


def top_of_region(seen: Observation) -> Top:
    """Of all forwards together; of an unknown sum there are no shares."""
    if seen.gpu_sum_ns is None:
        return Top(Shares(0, 0, {}), (), 0)
    paths: dict[int, tuple[str, ...]] = {}  # of few ways, by their `id`

    def path(step: Step) -> tuple[str, ...]:
        way = id(step.op and step.op.trail)
        if (found := paths.get(way)) is None:
            found = paths[way] = step.path
        return found

    forwards = [
        [
            Piece(step.on_gpu.event, step.kind, path(step), _dtype(step))
            for step in (*forward.steps, *forward.others)
            if step.on_gpu and step.ns is not None
        ]
        for forward in seen.forwards
    ]
    launches = sum(forward.launches for forward in seen.forwards)
    if not any(forward.others for forward in seen.forwards):
        return _top(forwards, seen.usage if any(forwards) else Usage(), launches, seen.linked)
    # The GPU is not idle while it works for the autograd threads.
    calls = {
        id(step.on_gpu.launch)
        for forward in seen.forwards
        for step in forward.others
        if step.on_gpu and step.on_gpu.launch.launches
    }
    parts = [
        [
            Launched(step.on_gpu.event, step.on_gpu.launch, step.on_gpu.launch.thread)
            for step in (*forward.steps, *forward.others)
            if step.on_gpu and step.ns is not None
        ]
        for forward in seen.forwards
    ]
    whole = usage(parts, seen.linked.culprits)
    return _top(forwards, whole, launches + len(calls), seen.linked)


def top_of_trace(linked: Linked, used: Usage) -> Top:
    """Of the whole of it."""
    ways = Ways()
    paths: dict[int, tuple[str, ...]] = {-1: ()}
    pieces = []
    for one in events(linked, ways):
        if (path := paths.get(one.way)) is None:
            path = paths[one.way] = ways.path(one.way)
        pieces.append(Piece(one.event, one.kind, path))
    launches = sum(call.launches for call in linked.trace.calls)
    return _top([pieces], used, launches, linked)


def _top(parts: Sequence[Sequence[Piece]], used: Usage, launches: int, linked: Linked) -> Top:
    found = shares(((piece.event, piece.kind) for piece in part) for part in parts)
    if not found.whole:
        return Top(found, (), 0)
    pieces = [piece for part in parts for piece in part]
    advice = [
        *_idle(found, used, launches, pieces),
        *_of_pieces(found, parts, pieces),
        *_optimizers(found, pieces, linked),
    ]
    if used.exposed and used.communication:
        exposed = found.of(used.exposed)
        both = used.exposed + used.overlapped
        advice.append(ExposedCommunication(exposed, used.exposed / both))
    worth = [one for one in advice if one.share >= LEAST]
    worth.sort(key=lambda one: -one.share)
    return Top(found, tuple(worth[:MOST]), len(worth[MOST:]))


def _dtype(step: Step) -> str | None:
    op = step.op
    if op is None or op.shapes is None:
        return None
    return "fp32" if b'"float"' in op.shapes.types else None


# ── Idle time ─────────────────────────────────────────────────────────────────────────────────────


def _idle(found: Shares, used: Usage, launches: int, pieces: Sequence[Piece]) -> Iterator[Advice]:
    """The idle time in which the next launch had not come, by what kept the CPU."""
    if used.launch_bound is None or not used.idle:
        return
    late = used.launch_bound
    by = dict(used.idle_by)
    if loader := by.pop(LOADER, None):
        late -= loader.ns
        yield DataLoader(found.of(loader.ns), loader.count, loader.longest)
    if compiling := by.pop(COMPILE, None):
        late -= compiling.ns
        yield Compiling(found.of(compiling.ns), compiling.count)
    waits = {name: stretches for name, stretches in by.items() if _waits(name)}
    if waits:
        ns = sum(stretches.ns for stretches in waits.values())
        late -= ns
        items = sum("aten::_local_scalar_dense" in piece.path for piece in pieces)
        count = sum(stretches.count for stretches in waits.values())
        longest = max(waits, key=lambda name: waits[name].ns)
        yield Blocked(found.of(ns), count, longest, items)
    kernels = [piece.ns for piece in pieces]
    if late > 0 and kernels and launches:
        others = {name: s.ns for name, s in by.items() if not _waits(name)}
        culprit = max(others, key=lambda name: others[name]) if others else None
        mean = sum(kernels) / len(kernels)
        yield LaunchBound(found.of(late), found.of(used.idle), launches, mean, culprit)


def _waits(name: str) -> bool:
    """Whether a call waits for the GPU: it synchronises, or copies and blocks."""
    return name.startswith(("cuda", "hip", "cu")) and ("Synchronize" in name or "Memcpy" in name)


# ── Steps ─────────────────────────────────────────────────────────────────────────────────────────


def _of_pieces(
    found: Shares, parts: Sequence[Sequence[Piece]], pieces: Sequence[Piece]
) -> Iterator[Advice]:
    def sums(chosen: Iterable[Piece]) -> tuple[float, int]:
        times = [piece.ns for piece in chosen]
        return found.of(sum(times)), len(times)

    for to_device in (True, False):
        word = "Pageable -> Device" if to_device else "Device -> Pageable"
        share, count = sums(p for p in pieces if p.event.sort == "copy" and word in p.event.name)
        yield PageableCopies(share, count, to_device)
    yield CudaCoreMatmuls(*sums(p for p in pieces if _on_cuda_cores(p)))
    math, attention = _math_attention(found, parts)
    yield math
    pieces = _without(pieces, attention)
    yield LayoutChanges(*sums(p for p in pieces if _changes_layout(p.event.name)))
    copies = [p for p in pieces if p.kind == "copy" and not _over_the_bus(p.event)]
    copies = [p for p in copies if not _changes_layout(p.event.name)]
    asked: Counter[str] = Counter()
    for piece in copies:
        asked[piece.path[0] if piece.path else ""] += piece.ns
    ops = tuple(op for op, _ in asked.most_common(2) if op)
    yield Copies(*sums(copies), ops)
    eager = [
        p for p in pieces if p.kind in ELEMENTWISE and p.event.sort == "kernel" and _is_aten(p)
    ]
    share, count = sums(eager)
    if share >= LEAST_FUSIBLE:
        yield Elementwise(share, count)


@lru_cache(maxsize=8192)
def _changes_layout(name: str) -> bool:
    return "nchwToNhwc" in name or "nhwcToNchw" in name or "batched_transpose" in name


def _over_the_bus(event: GpuEvent) -> bool:
    return event.sort == "copy" and ("HtoD" in event.name or "DtoH" in event.name)


def _is_aten(piece: Piece) -> bool:
    return decode(piece.event.name).family.startswith("ATen")


def _on_cuda_cores(piece: Piece) -> bool:
    """A matmul in fp32 that is no product with a vector: that one memory bounds."""
    if piece.kind not in ("matmul", "conv") or piece.event.sort != "kernel":
        return False
    kernel = decode(piece.event.name)
    if kernel.tensor_cores is not False or kernel.family in ("split-K reduce", "cuBLAS GEMV"):
        return False
    if not kernel.family.startswith(("CUTLASS", "cuBLAS GEMM", "cuDNN conv")):
        return False
    return (kernel.dtype_in or piece.dtype) == "fp32"


def _math_attention(
    found: Shares, parts: Sequence[Sequence[Piece]]
) -> tuple[MathAttention, list[Piece]]:
    """SDPA's math backend; else two batched matmuls with a softmax between them, and nothing there
    but what masks, scales and copies scores. With its pieces, in order."""
    its = [piece for part in parts for piece in part if MATH in piece.path]
    by_hand = not its
    count = sum(piece.kind == "softmax" for piece in its)
    for part in parts if by_hand else ():
        open_: list[Piece] = []  # from the first matmul on
        softmax = False
        for piece in part:
            batched = piece.kind == "matmul" and any(op in BATCHED for op in piece.path)
            if batched and softmax:
                count += 1
                its += [*open_, piece]
            if batched:
                open_, softmax = ([] if softmax else [piece]), False
            elif open_ and piece.kind == "softmax" and not softmax:
                softmax = True
                open_.append(piece)
            elif open_ and piece.kind in (BEHIND_SOFTMAX if softmax else BEFORE_SOFTMAX):
                open_.append(piece)
            else:
                open_, softmax = [], False
    masked = any(piece.kind in ("mask", "where", "triu") for piece in its)
    share = found.of(sum(piece.ns for piece in its))
    return MathAttention(share, count, by_hand, masked), its


def _without(pieces: Sequence[Piece], some: Sequence[Piece]) -> list[Piece]:
    """The others, where both are in the same order."""
    some_, kept = iter(some), []
    one = next(some_, None)
    for piece in pieces:
        if piece is one:
            one = next(some_, None)
        else:
            kept.append(piece)
    return kept


# ── Optimizers ────────────────────────────────────────────────────────────────────────────────────

STEP = "Optimizer.step#"


def _optimizers(
    found: Shares, pieces: Sequence[Piece], linked: Linked
) -> Iterator[UnfusedOptimizer]:
    """Those that run tensor by tensor, or list by list, though a kernel for all of it is there."""
    spans: dict[str, list[Span]] = {}
    for span in linked.trace.annotations:
        if span.name.startswith(STEP) and span.end is not None:
            spans.setdefault(span.name.removeprefix(STEP).removesuffix(".step"), []).append(span)
    if not any(name in FUSED_OPTIMIZERS for name in spans):
        return
    of = {id(piece.event): piece for piece in pieces}
    for name in sorted(spans.keys() & set(FUSED_OPTIMIZERS)):
        its: list[Piece] = []
        elapsed = 0
        for span in spans[name]:
            here = [of[id(event)] for event in _launched_in(span, linked) if id(event) in of]
            starts = [p.event.start for p in here if p.event.start is not None]
            elapsed += max((p.event.end or 0 for p in here), default=0) - min(starts, default=0)
            its += here
        ops = {op for piece in its for op in piece.path}
        if not its or any("_fused_" in op for op in ops):
            continue
        if any(decode(p.event.name).family == "Triton (inductor)" for p in its):
            continue  # compiled: fused in another way
        foreach = any(op.startswith("aten::_foreach_") for op in ops)
        yield UnfusedOptimizer(found.of(elapsed), name, len(its), foreach)


def _launched_in(span: Span, linked: Linked) -> Iterator[GpuEvent]:
    if working := linked.placed.threads.get(span.thread):
        for number in working.within(span.start, span.end or span.start):
            yield from linked.joined.answers.get(id(working.calls[number]), ())
