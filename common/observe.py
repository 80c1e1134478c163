"""The joins: region → launch calls → GPU events → chains of CPU ops; what one forward did.

A *forward* is one range of the region's label. Its GPU work is joined by correlation id to the
calls made inside the range on the range's own thread: never by time, for the GPU runs behind the
CPU and the work of one forward ends long after its range.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from statistics import mean, stdev

import msgspec

from common.cli import UserError, shown
from common.kernel_names import KernelName, decode
from common.occupancy import Device, Residency, ZeroReason, reported_zero_reason, residency
from common.trace import Call, GpuEvent, Span, Trace
from common.usage import Usage, usage

# What an op does, in a word. Looked up from the innermost op of a chain outwards.
KINDS = {
    "matmul": "mm bmm addmm baddbmm matmul linear",
    "attention": (
        "_flash_attention_forward _efficient_attention_forward _cudnn_attention_forward "
        "_scaled_dot_product_flash_attention_for_cpu flex_attention"
    ),
    "mask": "masked_fill masked_fill_",
    "softmax": "softmax _softmax _safe_softmax log_softmax _log_softmax",
    "mul": "mul mul_",
    "div": "div div_",
    "add": "add add_",
    "sub": "sub sub_",
    "exp": "exp exp_ exp2",
    "copy": "copy_ clone contiguous direct_copy",
    "cast": "_to_copy to",
    "fill": "fill_ zero_ fill ones zeros full scalar_tensor",
    "where": "where",
    "triu": "triu tril triu_ tril_",
    "reduce": "sum mean amax max min any all prod",
    "compare": "isneginf eq ne lt le gt ge logical_not logical_and logical_or",
    "cat": "cat",
}
KIND_OF_OP = {op: kind for kind, ops in KINDS.items() for op in ops.split()}

# These do nothing themselves: matmul calls bmm, masked_fill clones and then fills.
CALLS_OTHERS = frozenset(
    f"aten::{op}"
    for op in (
        "matmul linear masked_fill softmax _safe_softmax log_softmax contiguous clone to _to_copy "
        "ones zeros full scalar_tensor"
    ).split()
)

# Every word that a guess may use.
VOCABULARY = (*KINDS, "memset", "fused", "other")

ATTENTION_FAMILIES = ("attention", "fmha", "SDPA", "FlashAttention", "FlashInfer", "FMHA")
GEMM_FAMILIES = ("GEMM", "nvjet", "Tensile", "CUTLASS")


class Op(msgspec.Struct, frozen=True, gc=False):  # as many as the trace has
    """A CPU op inside a forward; `depth` 0 stands directly under the region."""

    name: str
    depth: int
    start: int  # ns
    end: int  # ns


@dataclass(frozen=True, slots=True)
class Step:
    """One piece of work of a forward: a GPU event or, in a trace of the CPU alone, an op."""

    kind: str
    name: str
    ns: float | None  # mean over the forwards; None when one of them is unknown
    ops: tuple[Op, ...]  # from directly under the region down to the launch
    call: str | None = None  # the runtime or driver call that launched it
    gpu: GpuEvent | None = None
    kernel: KernelName | None = None
    residency: Residency | None = None
    zero_reason: ZeroReason | None = None  # why the profiler's occupancy reads 0

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(op.name for op in self.ops)

    @property
    def sort(self) -> str:
        return self.gpu.sort if self.gpu else "op"

    def under(self, op: str) -> bool:
        """Whether an op of this name is on the way from the region to the launch."""
        return op in self.path


@dataclass(frozen=True, slots=True)
class Forward:
    cpu_ns: int | None
    launches: int
    ops: tuple[Op, ...]  # in order of start
    steps: tuple[Step, ...]  # in order of the GPU's time; of the CPU's where there is no GPU
    usage: Usage = Usage()

    def count(self, sort: str) -> int:
        return sum(step.sort == sort for step in self.steps)

    @property
    def gpu_ns(self) -> int | None:
        """Sum of its GPU events. None when the time of one is unknown or not credible."""
        times = [step.ns for step in self.steps if step.gpu]
        return None if not times or None in times else sum(times)


@dataclass(frozen=True)
class Observation:
    """What a trace shows of one region."""

    trace: Trace
    region: str
    forwards: tuple[Forward, ...]  # finished ones, in time order
    unfinished: int
    leaked: tuple[GpuEvent, ...]  # GPU work whose launch is not in the file
    lost: tuple[Call, ...]  # launches that no GPU event answers
    incredible: tuple[GpuEvent, ...]  # they outlast the next kernel of their stream
    shared: tuple[tuple[Call, int], ...]  # launches answered by several kernels, and by how many
    elsewhere: int = 0  # GPU events that the process's other threads launched meanwhile

    @property
    def on_gpu(self) -> bool:
        return bool(self.trace.gpu)

    @property
    def about(self) -> dict:
        return self.trace.about

    @cached_property
    def alike(self) -> bool:
        """Whether all forwards did the same, kernel by kernel and op by op."""
        return len({tuple((s.name, s.path) for s in f.steps) for f in self.forwards}) <= 1

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The first forward's steps, with mean times over the forwards if they are alike."""
        if not self.forwards:
            return ()
        first, *others = (forward.steps for forward in self.forwards)
        if not others or not self.alike:
            return first
        return tuple(
            replace(step, ns=_mean(same.ns for same in (step, *rest)))
            for step, *rest in zip(first, *others, strict=True)
        )

    @property
    def ops(self) -> tuple[Op, ...]:
        return self.forwards[0].ops if self.forwards else ()

    @property
    def cpu_ns(self) -> float | None:
        return _mean(forward.cpu_ns for forward in self.forwards)

    @property
    def cpu_spread_ns(self) -> float | None:
        """Standard deviation over the forwards."""
        times = [forward.cpu_ns for forward in self.forwards if forward.cpu_ns is not None]
        return stdev(times) if len(times) > 1 else None

    @property
    def gpu_ns(self) -> float | None:
        """Mean over the forwards whose every event has a credible time."""
        return _mean(f.gpu_ns for f in self.forwards if f.gpu_ns is not None)

    @cached_property
    def usage(self) -> Usage:
        """Of all forwards together; what lies between two of them is nobody's."""
        return sum((forward.usage for forward in self.forwards), Usage())

    @property
    def gpu_sum_ns(self) -> int | None:
        times = [forward.gpu_ns for forward in self.forwards]
        return None if not times or None in times else sum(times)

    @property
    def gpu_busy_ns(self) -> int | None:
        """Time in which any of the forwards' events ran, each moment of a GPU counted once."""
        steps = [step for forward in self.forwards for step in forward.steps if step.gpu]
        if not steps or any(step.ns is None for step in steps):
            return None
        events = [step.gpu for step in steps]
        busy = 0
        by_device = defaultdict(list)
        for event in events:
            by_device[str(event.device)].append((event.start, event.end))
        for spans in by_device.values():
            until = 0
            for start, end in sorted(spans):
                busy += max(0, end - max(start, until))
                until = max(until, end)
        return busy

    @property
    def unlinked_kernels(self) -> int:
        return sum(event.sort == "kernel" for event in self.leaked)

    @property
    def backend(self) -> str | None:
        """The SDPA backend that ran, by the ops inside the forward; None where none is seen."""
        for op in self.ops:
            for backend in ("math", "flash", "efficient", "cudnn"):
                if op.name.startswith(f"aten::_scaled_dot_product_{backend}_attention") or (
                    op.name == f"aten::_scaled_dot_product_attention_{backend}"
                ):
                    return backend
        return None

    def of(self, kind: str) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind == kind)


def observe(trace: Trace, region: str | None = None) -> Observation:
    """What `trace` shows of the region: of the one named, else of the one that the trace's own
    story names, else of its only label.

    Raises UserError when the region is not there, or cannot be told.
    """
    region = region or _only_region(trace)
    ranges = sorted((s for s in trace.annotations if s.name == region), key=lambda s: s.start)
    if not ranges:
        raise UserError(
            f"{shown(trace.path)}: region {region!r} not found; {_what_is_there(trace)}"
        )
    finished = [span for span in ranges if span.end is not None]

    answers, shared, lost, leaked = join(trace)
    incredible = _incredible(trace.gpu)
    timeless = set(map(id, incredible))
    device = _device(trace)
    on_gpu = bool(trace.gpu)
    ops, calls = by_thread(trace.ops), by_thread(trace.calls)
    forwards = []
    for span in finished:
        inside = _tree(_within(ops[span.thread], span))
        made = _within(calls[span.thread], span)
        working = [call for call in made if id(call) in answers]
        steps = [
            _gpu_step(event, call, chain, device, id(event) in timeless)
            for call, chain in zip(working, _chains(inside, working), strict=True)
            for event in answers[id(call)]
        ]
        steps = _in_gpu_order(steps)
        forwards.append(
            Forward(
                cpu_ns=span.end - span.start,
                launches=sum(call.launches for call in made),
                ops=tuple(inside),
                steps=tuple(steps if on_gpu else _cpu_steps(inside)),
                usage=usage(
                    (event, call.start)
                    for call in working
                    for event in answers[id(call)]
                    if id(event) not in timeless
                ),
            )
        )
    return Observation(
        trace,
        region,
        tuple(forwards),
        len(ranges) - len(finished),
        tuple(leaked),
        tuple(lost),
        tuple(incredible),
        tuple(shared),
        _elsewhere(finished, calls, answers),
    )


def _elsewhere(ranges: Sequence[Span], calls: dict, answers: dict) -> int:
    """How many GPU events other threads of the same process launched during the ranges."""
    if len(calls) < 2:
        return 0
    found = 0
    for thread, made in calls.items():
        before = [0, *accumulate(len(answers.get(id(call), ())) for call in made)]
        starts = [call.start for call in made]
        for span in ranges:
            if span.thread != thread and span.thread[0] == thread[0]:
                found += before[bisect_left(starts, span.end)]
                found -= before[bisect_left(starts, span.start)]
    return found


def _only_region(trace: Trace) -> str:
    if label := trace.about.get("label"):
        return label
    labels = trace.labels
    if len(labels) == 1:
        return next(iter(labels))
    if not labels:
        raise UserError(f"{shown(trace.path)}: no record_function region; {_what_is_there(trace)}")
    listed = ", ".join(f"{name} ({count})" for name, count in labels.most_common(12))
    more = f" and {len(labels) - 12} more" if len(labels) > 12 else ""
    raise UserError(
        f"{shown(trace.path)}: several regions, choose one with --region: {listed}{more}"
    )


def _what_is_there(trace: Trace) -> str:
    if not trace.annotations and not trace.ops:
        kernels = sum(event.sort == "kernel" for event in trace.gpu)
        return f"the trace has {kernels} kernels but no CPU events (profile with CPU activity too)"
    labels = ", ".join(name for name, _ in trace.labels.most_common(12)) or "no label"
    return f"the trace has {labels} (label a forward with torch.profiler.record_function)"


def join(trace: Trace):
    """Launch calls and GPU events by correlation id.

    Returns the events of each call by the call's `id`, the launches answered by several kernels,
    the launches answered by none, and the events whose call is not in the file.
    """
    events, calls = defaultdict(list), defaultdict(list)
    for event in trace.gpu:
        events[event.correlation].append(event)
    for call in trace.calls:
        if call.correlation is not None:
            calls[call.correlation].append(call)
    answers: dict[int, list[GpuEvent]] = {}
    leaked = list(events.pop(None, ()))
    shared, surplus = [], []
    for correlation, group in events.items():
        if correlation not in calls:
            leaked += group
            continue
        # Several calls can carry one id (a launch and what it calls); the launch does the work.
        call = max(calls[correlation], key=lambda call: call.launches)
        if call.launches and not call.launches_graph and len(group) > 1:
            shared.append((call, len(group)))
            group.sort(key=lambda event: event.start or 0)
            surplus += group[1:]
            group = group[:1]
        answers[id(call)] = group
    lost = [
        call
        for call in trace.calls
        if call.launches and call.correlation is not None and call.correlation not in events
    ]
    # One launch starts one kernel. If just as many launches went without, the ids were mixed up,
    # and both sides still stand in order.
    lost.sort(key=lambda call: call.start)
    surplus.sort(key=lambda event: event.start or 0)
    mixed_up = len(surplus) == len(lost)
    pairs = (
        zip(lost, surplus, strict=True)
        if mixed_up
        else [(call, e) for call, _ in shared for e in surplus if e.correlation == call.correlation]
    )
    for call, event in pairs:
        answers.setdefault(id(call), []).append(event)
    return answers, shared, lost, leaked


def _incredible(gpu: Sequence[GpuEvent]) -> list[GpuEvent]:
    """Events that end after the next one of their stream: a stream finishes in order, so their
    duration was mismeasured. (A short overlap is none: dependent launches start early.)"""
    found = []
    lanes = defaultdict(list)
    for event in gpu:
        if event.end is not None:
            lanes[str(event.lane)].append(event)
    for lane in lanes.values():
        lane.sort(key=lambda event: event.start)
        found += [
            one
            for one, following in zip(lane, lane[1:], strict=False)
            if one.end > following.end and one.start < following.start
        ]
    return found


def _device(trace: Trace) -> Device | None:
    for properties in (*trace.devices, trace.about.get("device")):
        if isinstance(properties, dict) and (device := Device.from_properties(properties)):
            return device
    return None


def by_thread(events: Iterable) -> dict:
    threads = defaultdict(list)
    for event in events:
        threads[event.thread].append(event)
    for thread in threads.values():
        thread.sort(key=lambda event: event.start)
    return threads


def _within(events: Sequence, span: Span) -> Sequence:
    """Those of a thread's events that start inside the span. What starts at its very end, in a
    trace of whole microseconds, belongs to what follows."""
    low = bisect_left(events, span.start, key=lambda event: event.start)
    return events[low : bisect_left(events, span.end, key=lambda event: event.start)]


def _tree(spans: Sequence[Span]) -> list[Op]:
    """The spans inside a finished region as ops with their depth, parents before children."""
    ops, open_ends = [], []
    for span in sorted(spans, key=lambda span: (span.start, -(span.end or span.start))):
        # The region has finished, so this has: one without an end was too short to measure.
        name, start, end = span.name, span.start, span.end or span.start
        while open_ends and open_ends[-1] <= start:
            open_ends.pop()
        ops.append(Op(name, len(open_ends), start, end))
        open_ends.append(end)
    return ops


def _chains(ops: Sequence[Op], calls: Sequence[Call]) -> Iterable[tuple[Op, ...]]:
    """For each call the ops that are running when it starts, outermost first. Both in order of
    start: one walk over both."""
    running, coming = [], 0
    for call in calls:
        while coming < len(ops) and ops[coming].start <= call.start:
            running.append(ops[coming])
            coming += 1
        running = [op for op in running if op.end > call.start]
        yield tuple(running)


@lru_cache(maxsize=4096)  # a model launches few footprints many times
def _footprint(device: Device | None, event: tuple) -> tuple[Residency | None, ZeroReason | None]:
    reported, registers, shared_memory, grid, block = event
    return (
        residency(device, registers, shared_memory, block),
        reported_zero_reason(device, reported, registers, shared_memory, grid, block),
    )


def _gpu_step(
    event: GpuEvent, call: Call, ops: tuple[Op, ...], device: Device | None, timeless: bool
) -> Step:
    kernel = decode(event.name)
    footprint = event.reported_occupancy, event.registers, event.shared_memory
    fits, why_zero = _footprint(device, (*footprint, event.grid, event.block))
    return Step(
        kind=_kind(ops, kernel, event.sort),
        name=event.name,
        ns=None if timeless else event.duration,
        ops=ops,
        call=call.name,
        gpu=event,
        kernel=kernel,
        residency=fits,
        zero_reason=why_zero,
    )


def _in_gpu_order(steps: Sequence[Step]) -> list[Step]:
    """Steps in order of launch, put in order of their start. One whose start is unknown stays
    behind what was launched before it, as on a stream."""
    moments, latest = [], 0
    for step in steps:
        latest = step.gpu.start or latest
        moments.append(latest)
    return [steps[i] for i in sorted(range(len(steps)), key=moments.__getitem__)]


def _cpu_steps(ops: Sequence[Op]) -> list[Step]:
    """Where there is no GPU: the ops that do the work, and not those that only call them."""
    steps, done = [], -1
    above: list[Op] = []  # the latest op of each depth
    for index, op in enumerate(ops):
        del above[op.depth :]
        above.append(op)
        if op.start < done or _kind_of_op(op.name) is None:
            continue
        calls_others = op.name in CALLS_OTHERS and any(
            _kind_of_op(below.name) for below in _below(ops, index)
        )
        if not calls_others:
            chain = tuple(o for o in above if o.end >= op.end)
            steps.append(Step(_kind(chain, None, "op"), op.name, op.end - op.start, chain))
            done = op.end
    return steps


def _below(ops: Sequence[Op], index: int) -> Iterable[Op]:
    for op in ops[index + 1 :]:
        if op.depth <= ops[index].depth:
            return
        yield op


def _kind(ops: Sequence[Op], kernel: KernelName | None, sort: str) -> str:
    """One word for a step. The kernel decides where its name is plain, else the nearest op."""
    if sort == "memset":
        return "memset"
    family = kernel.family if kernel else ""
    if any(word in family for word in ATTENTION_FAMILIES):
        return "attention"
    if any(word in family for word in GEMM_FAMILIES):
        return "matmul"
    if family == "Triton (inductor)":
        return _kind_of_fused(kernel.op or "")
    if any(op.name == "aten::_to_copy" for op in ops):
        return "cast"
    for op in reversed(ops):
        if kind := _kind_of_op(op.name):
            return kind
    if sort == "copy":
        return "copy"
    return KIND_OF_OP.get((kernel.op if kernel else None) or "", "other")


def _kind_of_op(name: str) -> str | None:
    return KIND_OF_OP.get(name.removeprefix("aten::"))


def _kind_of_fused(text: str) -> str:
    """From the op names in an Inductor kernel's name: one kind, or fused."""
    kinds = set()
    for op in sorted(KIND_OF_OP, key=len, reverse=True):  # _safe_softmax before softmax
        if f"_{op}_" in f"_{text}_":
            kinds.add(KIND_OF_OP[op])
            text = f"_{text}_".replace(f"_{op}_", "__")
    return kinds.pop() if len(kinds) == 1 else "fused" if kinds else "other"


def _mean(values: Iterable[float | None]) -> float | None:
    values = list(values)
    return None if not values or None in values else mean(values)
