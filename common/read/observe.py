"""The joins: region → launch calls → GPU events → chains of CPU ops; what one forward did.

A *forward* is one range of the region's label. Its GPU work is joined by correlation id to the
calls made inside the range on the range's own thread: never by time, for the GPU runs behind the
CPU and the work of one forward ends long after its range. Processes count these ids each for
itself: where the file does not tell whose an event is, it is counted nowhere, and spoken of.
"""

import sys
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from operator import attrgetter
from statistics import mean, stdev

import msgspec

from ..cli import UserError, shown
from ..story import Story, as_builtins
from .kernel_names import KernelName, decode
from .kinds import CALLS_OTHERS, kind_of_op, kind_of_step
from .occupancy import Device, Residency, ZeroReason, reported_zero_reason, residency
from .trace import Call, GpuEvent, Sort, Span, Trace
from .usage import Usage, usage


class Op(msgspec.Struct, frozen=True, gc=False):  # as many as the trace has
    """A CPU op inside a forward; `depth` 0 stands directly under the region."""

    name: str
    depth: int
    start: int  # ns
    end: int  # ns


class Step(msgspec.Struct, frozen=True, gc=False):
    """One piece of work of a forward: a GPU event or, in a trace of the CPU alone, an op."""

    kind: str
    name: str
    ns: float | None  # mean over the forwards; None when one of them is unknown
    ops: tuple[Op, ...]  # from directly under the region down to the launch
    path: tuple[str, ...]  # their names
    call: str | None = None  # the runtime or driver call that launched it
    gpu: GpuEvent | None = None
    kernel: KernelName | None = None
    residency: Residency | None = None
    zero_reason: ZeroReason | None = None  # why the profiler's occupancy reads 0

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
    lost: int = 0  # launches without a GPU record
    undecided: int = 0  # calls whose GPU events may be another call's

    def count(self, sort: str) -> int:
        return sum(step.sort == sort for step in self.steps)

    @property
    def gpu_ns(self) -> int | None:
        """Sum of its GPU events. None when the time of one is unknown or not credible, or when it
        is not known which they are."""
        times = [step.ns for step in self.steps if step.gpu]
        return None if not times or None in times or self.undecided else sum(times)


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
    undecided: tuple[GpuEvent, ...]  # several launches may have made them
    elsewhere: int = 0  # GPU events that the process's other threads launched meanwhile
    nested: int = 0  # forwards inside another one
    overlapping: int = 0  # forwards that begin inside another one and end behind it
    processes: int = 1  # that ran the region

    @property
    def on_gpu(self) -> bool:
        return bool(self.trace.gpu)

    @property
    def story(self) -> Story | None:
        return self.trace.story

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
            msgspec.structs.replace(step, ns=_mean(same.ns for same in (step, *rest)))
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
        if not steps or any(step.ns is None for step in steps) or self.undecided_calls:
            return None
        events = [step.gpu for step in steps]
        busy = 0
        by_device = defaultdict(list)
        for event in events:
            by_device[event.place].append((event.start, event.end))
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
    def undecided_calls(self) -> int:
        """Calls of the forwards whose GPU events may be another call's."""
        return sum(forward.undecided for forward in self.forwards)

    @property
    def missing(self) -> int:
        """Launches of the forwards whose GPU work is not in the file, or may be another's."""
        return sum(forward.lost for forward in self.forwards) + self.undecided_calls

    def per_forward(self, sort: Sort) -> int | list[int] | None:
        """How many kernels, copies or memsets: a number when all forwards agree, else one for each
        in time order; None when unknown. At least so many, where GPU records were lost."""
        if not self.on_gpu or self.undecided_calls:
            return None
        return agreed([forward.count(sort) for forward in self.forwards])

    @property
    def launches_per_forward(self) -> int | list[int] | None:
        return agreed([forward.launches for forward in self.forwards])

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


def agreed(counts: list[int]) -> int | list[int] | None:
    """One number for equal ones."""
    if not counts:
        return None
    return counts[0] if len(set(counts)) == 1 else counts


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

    joined = join(trace)
    answers = joined.answers
    lost = {id(call) for call in joined.lost} - answers.keys()
    incredible = _incredible(trace)
    timeless = set(map(id, incredible))
    device = device_of(trace)
    on_gpu = bool(trace.gpu)
    ops, calls = by_thread(trace.ops), by_thread(trace.calls)
    starts_of_ops, starts_of_calls = (
        {thread: [event.start for event in events] for thread, events in threads.items()}
        for threads in (ops, calls)
    )
    forwards = []
    for span in finished:
        made = _within(span, calls, starts_of_calls)
        working = [call for call in made if id(call) in answers]
        inside, chains = _tree(_within(span, ops, starts_of_ops), working)
        steps, launched = [], []
        for call, chain in zip(working, chains, strict=True):
            path = tuple([op.name for op in chain])
            for event in answers[id(call)]:
                credible = id(event) not in timeless
                steps.append(_gpu_step(event, call, chain, path, device, credible))
                if credible:
                    launched.append((event, call.start))
        forwards.append(
            Forward(
                cpu_ns=span.end - span.start,
                launches=sum([call.launches for call in made]),
                ops=tuple(inside),
                steps=tuple(_in_gpu_order(steps) if on_gpu else _cpu_steps(inside)),
                usage=usage(launched),
                lost=sum([id(call) in lost for call in made]) if lost else 0,
                undecided=sum([id(call) in joined.undecided_calls for call in made])
                if joined.undecided_calls
                else 0,
            )
        )
    nested, overlapping = _inside_each_other(finished)
    return Observation(
        trace=trace,
        region=region,
        forwards=tuple(forwards),
        unfinished=len(ranges) - len(finished),
        leaked=tuple(joined.leaked),
        lost=tuple(joined.lost),
        incredible=tuple(incredible),
        shared=tuple(joined.shared),
        undecided=tuple(joined.undecided),
        elsewhere=_elsewhere(finished, calls, answers),
        nested=nested,
        overlapping=overlapping,
        processes=len({span.thread[0] for span in ranges}),
    )


def _inside_each_other(ranges: Sequence[Span]) -> tuple[int, int]:
    """How many ranges lie inside another one of their thread, and how many only begin there."""
    nested = overlapping = 0
    until: dict = {}
    for span in ranges:
        end = until.get(span.thread, 0)
        nested += span.end <= end
        overlapping += span.start < end < span.end
        until[span.thread] = max(end, span.end)
    return nested, overlapping


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
    if trace.story:
        return trace.story.label
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


@dataclass(slots=True)
class Joined:
    """Launch calls and GPU events, joined by correlation id."""

    answers: dict[int, list[GpuEvent]]  # the events of a call, by the call's `id`
    shared: list[tuple[Call, int]]  # launches answered by several kernels
    lost: list[Call]  # launches answered by none
    leaked: list[GpuEvent]  # their call is not in the file
    undecided: list[GpuEvent]  # several calls, of several processes say, may have made them
    undecided_calls: set[int]  # those calls, by `id`


def join(trace: Trace) -> Joined:
    events, calls = defaultdict(list), defaultdict(list)
    for event in trace.gpu:
        events[event.correlation].append(event)
    for call in trace.calls:
        if call.correlation is not None:
            calls[call.correlation].append(call)
    answers: dict[int, list[GpuEvent]] = {}
    found = Joined(answers, [], [], events.pop(None, []), [], set())
    several = len(trace.processes) > 1
    spoken_for: set[int] = set()  # calls beside the one that did the work
    for correlation, group in events.items():
        made = calls.get(correlation)
        if made is None:
            found.leaked += group
        elif len(made) == 1 and not several:
            answers[id(made[0])] = group
        else:
            _divide(made, group, found, spoken_for)
    surplus = []
    for call in trace.calls:
        group = answers.get(id(call))
        if not call.launches or call.correlation is None:
            continue
        if group is None:
            if id(call) not in spoken_for and id(call) not in found.undecided_calls:
                found.lost.append(call)
        elif len(group) > 1 and not call.launches_graph:
            found.shared.append((call, len(group)))
            group.sort(key=lambda event: event.start or 0)
            surplus += [(call, event) for event in group[1:]]
    # One launch starts one kernel. If just as many launches went without, the ids were mixed up,
    # and both sides still stand in order.
    if surplus and len(surplus) == len(found.lost) and not several:
        surplus.sort(key=lambda pair: pair[1].start or 0)
        found.lost.sort(key=lambda call: call.start)
        for (call, event), launch in zip(surplus, found.lost, strict=True):
            answers[id(call)] = answers[id(call)][:1]
            answers[id(launch)] = [event]
    return found


def _divide(made: list[Call], group: list[GpuEvent], found: Joined, spoken_for: set[int]) -> None:
    """The events of one id among the calls of this id: each goes to its own process's launch."""
    by_process = defaultdict(list)
    for event in group:
        by_process[event.process].append(event)
    for process, events in by_process.items():
        # Whose process is unknown may be anyone's.
        own = [call for call in made if process in (None, call.thread[0])]
        alike = Counter(call.name for call in set(own))  # one written twice is one
        if not own:
            found.leaked += events
        elif len({call.thread[0] for call in own}) > 1 or max(alike.values()) > 1:
            found.undecided += events
            found.undecided_calls.update(map(id, own))
        else:
            # A launch and what it calls can carry one id; the launch does the work.
            call = max(own, key=lambda call: call.launches)
            found.answers.setdefault(id(call), []).extend(events)
            spoken_for.update(map(id, own))


def _incredible(trace: Trace) -> list[GpuEvent]:
    """Events that end after the next one of their stream: a stream finishes in order, so their
    duration was mismeasured. (A short overlap is none: dependent launches start early.)"""
    found = []
    lanes = defaultdict(list)
    several = len(trace.processes) > 1
    for event in trace.gpu:
        # The streams of two processes may go by one number.
        if event.end is not None and not (several and event.process is None):
            lanes[event.lane].append(event)
    for lane in lanes.values():
        lane.sort(key=lambda event: event.start)
        found += [
            one
            for one, following in zip(lane, lane[1:], strict=False)
            if one.end > following.end and one.start < following.start
        ]
    return found


def device_of(trace: Trace) -> Device | None:
    """The limits of the GPU that the trace tells of."""
    told = [as_builtins(trace.story.device)] if trace.story else []
    devices = map(Device.from_properties, (*trace.devices, *told))
    return next(filter(None, devices), None)


def by_thread(events: Iterable) -> dict:
    threads = defaultdict(list)
    for event in events:
        threads[event.thread].append(event)
    for thread in threads.values():
        thread.sort(key=_start)
    return threads


_start = attrgetter("start")


def _within(span: Span, threads: dict, starts: dict) -> Sequence:
    """The events of the span's thread that start inside it. What starts at its very end, in a trace
    of whole microseconds, belongs to what follows."""
    if span.thread not in threads:
        return ()
    moments = starts[span.thread]
    low = bisect_left(moments, span.start)
    return threads[span.thread][low : bisect_left(moments, span.end, low)]


def _tree(spans: Sequence[Span], calls: Sequence[Call]) -> tuple[list[Op], list[tuple[Op, ...]]]:
    """The spans inside a finished region as ops with their depth, parents before children; and for
    each of the calls the ops that are running when it starts, outermost first."""
    ops: list[Op] = []
    chains: list[tuple[Op, ...]] = []
    above: list[Op] = []
    moments = [call.start for call in calls]
    moments.append(sys.maxsize)
    moment, latest = moments[0], -1
    for span in spans:
        start = span.start
        if start == latest:  # the longer one is the parent, in whichever order they stand
            in_order = sorted(spans, key=lambda span: (span.start, -(span.end or span.start)))
            if in_order != spans:
                return _tree(in_order, calls)
        latest = start
        while moment < start:
            chains.append(tuple([op for op in above if op.end > moment]))
            moment = moments[len(chains)]
        while above and above[-1].end <= start:
            above.pop()
        # The region has finished, so this has: one without an end was too short to measure.
        op = Op(span.name, len(above), start, span.end or start)
        ops.append(op)
        above.append(op)
    while len(chains) < len(calls):
        chains.append(tuple([op for op in above if op.end > moment]))
        moment = moments[len(chains)]
    return ops, chains


@lru_cache(maxsize=4096)  # a model launches few footprints many times
def _footprint(device: Device | None, event: tuple) -> tuple[Residency | None, ZeroReason | None]:
    reported, registers, shared_memory, grid, block = event
    return (
        residency(device, registers, shared_memory, block),
        reported_zero_reason(device, reported, registers, shared_memory, grid, block),
    )


def _gpu_step(
    event: GpuEvent,
    call: Call,
    ops: tuple[Op, ...],
    path: tuple[str, ...],
    device: Device | None,
    credible: bool,
) -> Step:
    kernel = decode(event.name)
    footprint = event.reported_occupancy, event.registers, event.shared_memory
    fits, why_zero = _footprint(device, (*footprint, event.grid, event.block))
    return Step(
        kind_of_step(path, event.name, event.sort),
        event.name,
        event.duration if credible else None,
        ops,
        path,
        call.name,
        event,
        kernel,
        fits,
        why_zero,
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
        if op.start < done or kind_of_op(op.name) is None:
            continue
        calls_others = op.name in CALLS_OTHERS and any(
            kind_of_op(below.name) for below in _below(ops, index)
        )
        if not calls_others:
            chain = tuple(o for o in above if o.end >= op.end)
            path = tuple(o.name for o in chain)
            steps.append(
                Step(kind_of_step(path, None, "op"), op.name, op.end - op.start, chain, path)
            )
            done = op.end
    return steps


def _below(ops: Sequence[Op], index: int) -> Iterable[Op]:
    for op in ops[index + 1 :]:
        if op.depth <= ops[index].depth:
            return
        yield op


def _mean(values: Iterable[float | None]) -> float | None:
    values = list(values)
    return None if not values or None in values else mean(values)
