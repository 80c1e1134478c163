"""One region of a trace: what each of its forwards did, step by step.

A *forward* is one range of the region's label. Its GPU work is joined by correlation id to the
calls made inside the range on the range's own thread: never by time, for the GPU runs behind the
CPU and the work of one forward ends long after its range. What autograd threads launch for the
range while it waits stands beside that, apart. Processes count the ids each for itself: where the
file does not tell whose an event is, it is counted nowhere, and spoken of.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from statistics import stdev
from typing import TypeAlias, TypeVar

import msgspec

from ..cli import UserError, named, shown
from ..story import Story, as_builtins
from .kernel_names import KernelName, decode
from .kinds import CALLS_OTHERS, COMPILED_CPP, kind_of_op, kind_of_step
from .lanes import Spans
from .linked import Linked, link
from .occupancy import Device, Residency, ZeroReason, reported_zero_reason, residency
from .op_names import is_compiled
from .owners import Interval, merged
from .survey import busy_time
from .trace import Call, GpuEvent, Shapes, Sort, Span, Thread, Trace
from .usage import Launched, Usage, usage


class Trail(msgspec.Struct, frozen=True, gc=False, eq=False):
    """The names of the ops from directly under a region down to one, each op's once in memory: two
    steps were launched on the same way if their trails are the same object."""

    name: str
    above: "Trail | None"

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(reversed([trail.name for trail in _upwards(self)]))


class Op(msgspec.Struct, frozen=True, gc=False):  # as many as the trace has
    """A CPU op inside a forward; `depth` 0 stands directly under the region."""

    name: str
    depth: int
    start: int  # ns
    end: int  # ns
    above: "Op | None"
    trail: Trail
    shapes: Shapes | None = None

    @property
    def chain(self) -> tuple["Op", ...]:
        """From directly under the region down to this one."""
        return tuple(reversed(list(_upwards(self))))


Linkable = TypeVar("Linkable", Op, Trail)


def _upwards(one: Linkable | None) -> Iterator[Linkable]:
    while one is not None:
        yield one
        one = one.above


class OnGpu(msgspec.Struct, frozen=True, gc=False):
    """A GPU event of a forward, its launch, and what both tell."""

    event: GpuEvent
    launch: Call
    kernel: KernelName
    residency: Residency | None
    zero_reason: ZeroReason | None  # why the profiler's occupancy reads 0

    @property
    def graph(self) -> bool:
        """Whether the call launched a whole CUDA graph."""
        return self.launch.launches_graph


class Step(msgspec.Struct, frozen=True, gc=False):
    """One piece of work of a forward: a GPU event or, in a trace of the CPU alone, an op."""

    kind: str
    name: str
    ns: float | None  # mean over the forwards; None when one of them is unknown
    op: Op | None  # the innermost that was running at the launch
    on_gpu: OnGpu | None = None

    @property
    def ops(self) -> tuple[Op, ...]:
        """From directly under the region down to the launch."""
        return self.op.chain if self.op else ()

    @property
    def path(self) -> tuple[str, ...]:
        """Their names."""
        return self.op.trail.path if self.op else ()

    @property
    def way(self) -> tuple[str, Trail | None]:
        """The step and how it came about: equal for steps of forwards that did the same."""
        return self.name, self.op.trail if self.op else None

    @property
    def gpu(self) -> GpuEvent | None:
        return self.on_gpu.event if self.on_gpu else None

    @property
    def call(self) -> str | None:
        return self.on_gpu.launch.name if self.on_gpu else None

    @property
    def kernel(self) -> KernelName | None:
        return self.on_gpu.kernel if self.on_gpu else None

    @property
    def residency(self) -> Residency | None:
        return self.on_gpu.residency if self.on_gpu else None

    @property
    def zero_reason(self) -> ZeroReason | None:
        return self.on_gpu.zero_reason if self.on_gpu else None

    @property
    def sort(self) -> Sort | str:
        return self.on_gpu.event.sort if self.on_gpu else "op"

    def under(self, op: str) -> bool:
        """Whether an op of this name is on the way from the region to the launch."""
        return any(one.name == op for one in _upwards(self.op))


def time_of(steps: Iterable[Step]) -> int | None:
    """Sum of GPU events in nanoseconds; None where there is none, or the time of one is unknown."""
    times = [step.on_gpu.event.duration if step.ns is not None else None
             for step in steps if step.on_gpu]  # fmt: skip
    known = [time for time in times if time is not None]
    return sum(known) if times and len(known) == len(times) else None


@dataclass(frozen=True, slots=True)
class Forward:
    span: Span
    cpu_ns: int
    launches: int
    made_ops: Callable[[], tuple[Op, ...]]  # a recording has many, and few ask for them
    steps: tuple[Step, ...]  # in order of the GPU's time; of the CPU's where there is no GPU
    counts: Counter[str]  # of the steps, by sort
    # Sum of its GPU events. None when the time of one is unknown or not credible, or when it is not
    # known which they are.
    gpu_ns: int | None
    others: tuple[Step, ...] = ()  # what autograd threads launched for it, likewise
    lost: int = 0  # launches without a GPU record
    captured: int = 0  # launches into a CUDA graph
    undecided: int = 0  # calls whose GPU events may be another call's

    @property
    def ops(self) -> tuple[Op, ...]:
        """In order of start."""
        return self.made_ops()

    def count(self, sort: str) -> int:
        return self.counts[sort]

    @property
    def launched(self) -> Iterator[Launched]:
        """Its steps on the GPU that have a credible time."""
        for step in self.steps:
            if step.on_gpu and step.ns is not None:
                yield Launched(step.on_gpu.event, step.on_gpu.launch, self.span.thread)


@dataclass(frozen=True)
class Observation:
    """What a trace shows of one region."""

    trace: Trace
    linked: Linked
    region: str
    forwards: tuple[Forward, ...]  # finished ones, in time order
    unfinished: int
    untimed: int  # ranges without a usable time
    elsewhere: int = 0  # GPU events that other threads launched meanwhile, and no forward counts
    nested: int = 0  # forwards inside another one
    overlapping: int = 0  # forwards that begin inside another one and end behind it
    processes: int = 1  # that ran the region

    # Of the whole trace:

    @property
    def leaked(self) -> Sequence[GpuEvent]:
        """GPU work whose launch is not in the file."""
        return self.linked.joined.leaked

    @property
    def lost(self) -> Sequence[Call]:
        """Launches that no GPU event answers."""
        return self.linked.joined.lost

    @property
    def incredible(self) -> Sequence[GpuEvent]:
        """They outlast the next kernel of their stream."""
        return self.linked.incredible

    @property
    def shared(self) -> Sequence[tuple[Call, int]]:
        """Launches answered by several kernels, and by how many."""
        return self.linked.joined.shared

    @property
    def undecided(self) -> Sequence[GpuEvent]:
        """Several launches may have made them."""
        return self.linked.joined.undecided

    @property
    def on_gpu(self) -> bool:
        return bool(self.trace.gpu)

    @property
    def story(self) -> Story | None:
        return self.trace.story

    @cached_property
    def alike(self) -> bool:
        """Whether all forwards did the same, kernel by kernel and op by op."""
        ways = {tuple(step.way for step in (*f.steps, *f.others)) for f in self.forwards}
        return len(ways) <= 1

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The first forward's steps, with mean times over the forwards if they are alike."""
        return self._mean_of(lambda forward: forward.steps)

    @cached_property
    def other_steps(self) -> tuple[Step, ...]:
        """The same of what autograd threads launched for it."""
        return self._mean_of(lambda forward: forward.others)

    def _mean_of(self, steps: Callable[[Forward], tuple[Step, ...]]) -> tuple[Step, ...]:
        if not self.forwards:
            return ()
        first, *others = map(steps, self.forwards)
        if not others or not self.alike:
            return first
        return tuple(
            msgspec.structs.replace(step, ns=_mean([same.ns for same in (step, *rest)]))
            for step, *rest in zip(first, *others, strict=True)
        )

    @cached_property
    def wrappers(self) -> int:
        """How many outermost ops all steps share: they say nothing about a single step."""
        return wrappers(self.steps)

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        return self.forwards[0].ops if self.forwards else ()

    @property
    def cpu_ns(self) -> float | None:
        return _mean([forward.cpu_ns for forward in self.forwards])

    @property
    def cpu_spread_ns(self) -> float | None:
        """Standard deviation over the forwards."""
        times = [forward.cpu_ns for forward in self.forwards]
        return stdev(times) if len(times) > 1 else None

    @property
    def gpu_ns(self) -> float | None:
        """Mean over the forwards whose every event has a credible time. One that launched nothing
        took no GPU time, if all that was launched is in the file. None where it is not known whose
        some work is."""
        return None if self.undecided_calls else _mean(self._known_times)

    @property
    def gpu_sum_ns(self) -> int | None:
        times = self._known_times
        return sum(times) if times and len(times) == len(self.forwards) else None

    @cached_property
    def _known_times(self) -> list[int]:
        """Of the forwards; where none ran anything on the GPU nothing is known."""
        if not any(forward.steps and forward.steps[0].on_gpu for forward in self.forwards):
            return []
        found = []
        for forward in self.forwards:
            empty = not forward.steps and not forward.lost and not forward.undecided
            ns = 0 if empty else forward.gpu_ns
            if ns is not None:
                found.append(ns)
        return found

    @cached_property
    def usage(self) -> Usage:
        """Of all forwards together; what lies between two of them is nobody's."""
        return usage((forward.launched for forward in self.forwards), self.linked.culprits)

    @cached_property
    def usage_of_recording(self) -> Usage:
        """Of the GPUs that the forwards ran on, from the first event of the first forward to the
        end of the last: with what lies between the forwards, and what else ran there."""
        spans = self._recorded
        inside = (
            one
            for one in self.linked.launched()
            if one.event.place in spans
            and one.event.start is not None
            and spans[one.event.place][0] <= one.event.start < spans[one.event.place][1]
        )
        return usage([inside], self.linked.culprits)

    @property
    def idle_of_recording(self) -> tuple[int, int]:
        """The idle time and the whole of the same, in nanoseconds: no cause is looked for."""
        inside: dict[tuple, list[GpuEvent]] = {place: [] for place in self._recorded}
        timeless = self.linked.timeless
        for event in self.trace.gpu:
            if event.start is not None and event.duration is not None and id(event) not in timeless:
                if (kept := inside.get(event.place)) is not None:
                    kept.append(event)
        idle = whole = 0
        for place, events in inside.items():
            low, high = self._recorded[place]
            whole += high - low
            events.sort(key=_start)
            until = low
            for event in events:
                start, end = event.start or 0, event.end or 0
                if start > until:
                    idle += max(0, min(start, high) - until)
                if end > until:
                    until = end
        return idle, whole

    @cached_property
    def _recorded(self) -> dict[tuple, tuple[int, int]]:
        """By GPU, from where to where the forwards' events run."""
        spans: dict[tuple, list[int]] = {}
        for forward in self.forwards:
            for step in (*forward.steps, *forward.others):
                if step.on_gpu and step.ns is not None:
                    event = step.on_gpu.event
                    if event.start is not None and event.duration is not None:
                        span = spans.setdefault(event.place, [event.start, event.start])
                        span[0] = min(span[0], event.start)
                        span[1] = max(span[1], event.start + event.duration)
        return {place: (low, high) for place, (low, high) in spans.items()}

    @property
    def gpu_busy_ns(self) -> int | None:
        """Time in which any of the forwards' events ran, each moment of a GPU counted once."""
        steps = [step for forward in self.forwards for step in forward.steps if step.on_gpu]
        if not steps or any(step.ns is None for step in steps) or self.undecided_calls:
            return None
        return busy_time(step.on_gpu.event for step in steps if step.on_gpu)

    @property
    def gpu_own_ns(self) -> int | None:
        """Sum over all forwards of what their own threads launched."""
        return self.linked.owners.of(self.region).own if self.on_gpu else None

    @property
    def gpu_others_ns(self) -> int | None:
        """Sum over all forwards of what autograd threads launched for them."""
        return self.linked.owners.of(self.region).others if self.on_gpu else None

    @property
    def unlinked_kernels(self) -> int:
        return sum(event.sort == "kernel" for event in self.leaked)

    @property
    def undecided_calls(self) -> int:
        """Calls of the forwards whose GPU events may be another call's."""
        return sum(forward.undecided for forward in self.forwards)

    @property
    def captured(self) -> int:
        return sum(forward.captured for forward in self.forwards)

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

    @cached_property
    def compiled(self) -> bool:
        """Whether compiled code ran in the recording."""
        return any(map(is_compiled, self._op_names))

    @cached_property
    def _op_names(self) -> set[str]:
        return {op.name for op in self.trace.ops}

    @cached_property
    def hides_compiled(self) -> bool:
        """Whether compiled code ran of which no event tells: what Inductor compiles for the CPU
        leaves none, unless its kernel profile is on."""
        if self.on_gpu or any(call.launches for call in self.trace.calls) or not self.compiled:
            return False
        return not any(map(COMPILED_CPP.fullmatch, self._op_names))

    def of(self, kind: str) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.kind == kind)


def agreed(counts: list[int]) -> int | list[int] | None:
    """One number for equal ones."""
    if not counts:
        return None
    return counts[0] if len(set(counts)) == 1 else counts


def wrappers(steps: Sequence[Step]) -> int:
    """How many of the outermost ops all steps share, short of the innermost of any."""
    if not steps:
        return 0
    shared = steps[0].op
    least = min(step.op.depth if step.op else 0 for step in steps)
    for step in steps[1:]:
        other = step.op
        while shared is not other:
            if shared is None or other is None:
                return 0
            if shared.depth >= other.depth:
                shared = shared.above
            else:
                other = other.above
    return min(shared.depth + 1, least) if shared else 0


# ── Making it ─────────────────────────────────────────────────────────────────────────────────────


def observe(source: Trace | Linked, region: str | None = None) -> Observation:
    """What a trace shows of the region: of the one named, else of the one that the trace's own
    story names, else of its only label.

    Raises UserError when the region is not there, or cannot be told.
    """
    trace = source if isinstance(source, Trace) else source.trace
    region = _only_region(trace) if region is None else region
    ranges = sorted((s for s in trace.annotations if s.name == region), key=lambda s: s.start)
    untimed = sum(one.sort == "region" and one.name == region for one in trace.untimed)
    if not ranges and not untimed:
        raise UserError(
            f"{shown(trace.path)}: region '{named(region)}' not found; {what_is_there(trace)}"
        )
    linked = link(source) if isinstance(source, Trace) else source
    finished = [span for span in ranges if span.end is not None]
    maker = _Maker(linked)
    forwards = tuple(map(maker.forward, finished))
    nested, overlapping = _inside_each_other(finished)
    return Observation(
        trace=trace,
        linked=linked,
        region=region,
        forwards=forwards,
        unfinished=len(ranges) - len(finished),
        untimed=untimed,
        elsewhere=_elsewhere(linked, finished, maker.counted),
        nested=nested,
        overlapping=overlapping,
        processes=len({span.thread[0] for span in ranges}),
    )


Told: TypeAlias = tuple[str, KernelName, Residency | None, ZeroReason | None]


def _start(event: GpuEvent) -> int:
    return event.start or 0


class _Maker:
    """Makes forwards, and remembers which calls they count."""

    def __init__(self, linked: Linked) -> None:
        self._linked = linked
        self._lost = {id(call) for call in linked.joined.lost} - linked.joined.answers.keys()
        self._device = device_of(linked.trace)
        self._trails: dict[tuple[int, str], Trail] = {}
        self._told: dict[tuple, Told] = {}
        self._counts: dict[tuple[str, ...], Counter[str]] = {}
        self._undecided = linked.joined.undecided_calls | linked.placed.unknown
        self.counted: set[int] = set()
        self._latest: tuple[object, tuple[Step, ...]] | None = None  # which ops, and their steps

    def forward(self, span: Span) -> Forward:
        linked = self._linked
        start, end = span.start, span.end or span.start
        made = linked.lanes.calls_within(span.thread, start, end)
        own = Interval(start, end)
        steps, undecided = self._steps(span.thread, own)
        others: list[Step] = []
        for thread, interval in linked.services.workers(span):
            others += self._steps(thread, interval)[0]
        ops = partial(self._ops, span.thread, own)
        on_gpu = bool(linked.trace.gpu)
        its = tuple(_in_gpu_order(steps)) if on_gpu else self._cpu_steps(span.thread, own)
        return Forward(
            span=span,
            cpu_ns=end - start,
            launches=linked.joined.launches(self._counted_here(span, made)),
            made_ops=ops,
            steps=its,
            counts=self._count(its),
            gpu_ns=None if undecided else time_of(its),
            others=tuple(_in_gpu_order(others)),
            lost=sum([id(call) in self._lost for call in made]) if self._lost else 0,
            captured=sum([id(call) in linked.joined.captured for call in made])
            if linked.joined.captured
            else 0,
            undecided=undecided,
        )

    def _count(self, steps: Sequence[Step]) -> Counter[str]:
        """By sort; of forwards that are alike it is one in memory."""
        sorts = tuple([step.on_gpu.event.sort if step.on_gpu else "op" for step in steps])
        if (found := self._counts.get(sorts)) is None:
            found = self._counts[sorts] = Counter(sorts)
        return found

    def _counted_here(self, span: Span, made: Sequence[Call]) -> list[Call]:
        """The calls of a range: of those that ran anything the ones that count for it, though they
        be stamped elsewhere."""
        answers = self._linked.joined.answers
        silent = [call for call in made if id(call) not in answers]
        if (working := self._linked.placed.threads.get(span.thread)) is None:
            return silent
        numbers = working.within(span.start, span.end or span.start)
        return silent + working.calls[numbers.start : numbers.stop]

    def _cpu_steps(self, thread: Thread, interval: Interval) -> tuple[Step, ...]:
        """Of the ops in an interval. Regions inside one another often hold the very same."""
        spans = self._linked.lanes.ops.get(thread)
        which = thread, spans.within(*interval) if spans else None
        if self._latest is None or self._latest[0] != which:
            self._latest = which, tuple(_cpu_steps(self._ops(thread, interval)))
        return self._latest[1]

    def _ops(self, thread: Thread, interval: Interval) -> tuple[Op, ...]:
        """The ops that begin in an interval of a thread, parents before children."""
        if (spans := self._linked.lanes.ops.get(thread)) is None:
            return ()
        low, high = spans.within(*interval)
        made: dict[int, Op] = {}
        return tuple([self._op(spans, index, low, made) for index in range(low, high)])

    def _op(self, spans: Spans, index: int, low: int, made: dict[int, Op]) -> Op:
        """One of a thread's ops, with those above it from index `low` on, each made once."""
        waiting = []
        parents = spans.parents
        while index >= low and index not in made:
            waiting.append(index)
            index = parents[index]
        above = made[index] if index >= low else None
        for one in reversed(waiting):
            span = spans.spans[one]
            name, start = span.name, span.start
            over, depth = (above.trail, above.depth + 1) if above else (None, 0)
            key = id(over), name
            if (trail := self._trails.get(key)) is None:
                trail = self._trails[key] = Trail(name, over)
            # The region has finished, so this has: one without an end was too short to measure.
            end = span.end or start
            above = made[one] = Op(name, depth, start, end, above, trail, span.shapes)
        assert above is not None
        return above

    def _steps(self, thread: Thread, interval: Interval) -> tuple[list[Step], int]:
        """The steps that an interval of a thread launched, in that order; and the number of calls
        of which it is not known what they made run."""
        steps: list[Step] = []
        undecided = 0
        if (working := self._linked.placed.threads.get(thread)) is None:
            return steps, undecided
        answers, timeless = self._linked.joined.answers, self._linked.timeless
        spans = self._linked.lanes.ops.get(thread)
        low = spans.within(*interval)[0] if spans else 0
        made: dict[int, Op] = {}
        for number in working.within(*interval):
            call, index = working.calls[number], working.ops[number]
            call_id = id(call)
            if call_id in self._undecided:
                undecided += 1
                continue
            self.counted.add(call_id)
            op = None
            if spans and index >= low:
                op = made[index] if index in made else self._op(spans, index, low, made)
            for event in answers.get(call_id, ()):
                ns = None if id(event) in timeless else event.duration
                kind, kernel, fits, why_zero = self._tell(event, op.trail if op else None)
                on_gpu = OnGpu(event, call, kernel, fits, why_zero)
                steps.append(Step(kind, event.name, ns, op, on_gpu))
        return steps, undecided

    def _tell(self, event: GpuEvent, trail: Trail | None) -> Told:
        """The kind of step that an event is, by its own name and the way to it, and what its name
        and its footprint tell: a model launches a few kernels many times."""
        footprint = event.registers, event.shared_memory, event.grid, event.block
        key = id(trail), event.name, event.sort, event.reported_occupancy, footprint
        if (found := self._told.get(key)) is None:
            path = trail.path if trail else ()
            found = self._told[key] = (
                kind_of_step(path, event.name, event.sort),
                decode(event.name),
                residency(self._device, event.registers, event.shared_memory, event.block),
                reported_zero_reason(self._device, event.reported_occupancy, *footprint),
            )
        return found


def _inside_each_other(ranges: Sequence[Span]) -> tuple[int, int]:
    """How many ranges lie inside another one of their thread, and how many only begin there."""
    nested = overlapping = 0
    until: dict[Thread, int] = {}
    for span in ranges:
        end, its = until.get(span.thread), span.end or span.start
        if end is not None:
            nested += its <= end
            overlapping += span.start < end < its
        until[span.thread] = its if end is None else max(end, its)
    return nested, overlapping


def _elsewhere(linked: Linked, ranges: Sequence[Span], counted: set[int]) -> int:
    """How many GPU events other threads of the process launched during the ranges, and no forward
    counts. A process that has no op and no label of its own may be misnamed: its are anybody's."""
    joined = linked.joined
    own = {span.thread for span in ranges}
    known = {thread[0] for thread in linked.lanes.ops}
    known |= {span.thread[0] for span in linked.trace.annotations}
    processes = {span.thread[0] for span in ranges}
    uncounted: dict[object, list[int]] = defaultdict(list)
    for thread, working in linked.placed.threads.items():
        of = thread[0] if thread[0] in known else None
        if thread in own or (of is not None and of not in processes):
            continue
        for call, moment in zip(working.calls, working.moments, strict=True):
            if id(call) not in counted and id(call) not in linked.placed.unknown:
                events = len(joined.answers.get(id(call), ()))
                uncounted[of] += [moment] * events
    found = 0
    for of, moments in uncounted.items():
        moments.sort()
        spans = [s for s in ranges if of is None or s.thread[0] == of]
        for start, end in merged((span.start, span.end or span.start) for span in spans):
            found += bisect_left(moments, end) - bisect_left(moments, start)
    return found


def _only_region(trace: Trace) -> str:
    if trace.story:
        return trace.story.label
    labels = trace.labels
    if len(labels) == 1:
        return next(iter(labels))
    if not labels:
        raise UserError(f"{shown(trace.path)}: no record_function region; {what_is_there(trace)}")
    listed = ", ".join(f"{named(name)} ({count})" for name, count in labels.most_common(12))
    more = f" and {len(labels) - 12} more" if len(labels) > 12 else ""
    raise UserError(
        f"{shown(trace.path)}: several regions, choose one with --region: {listed}{more}"
    )


def what_is_there(trace: Trace) -> str:
    if not trace.annotations and not trace.ops:
        kernels = sum(event.sort == "kernel" for event in trace.gpu)
        return f"the trace has {kernels} kernels but no CPU events (profile with CPU activity too)"
    labels = ", ".join(named(name) for name, _ in trace.labels.most_common(12)) or "no label"
    return f"the trace has {labels} (label a forward with torch.profiler.record_function)"


def device_of(trace: Trace) -> Device | None:
    """The limits of the GPU that the trace tells of."""
    told = [as_builtins(trace.story.device)] if trace.story else []
    devices = map(Device.from_properties, (*trace.devices, *told))
    return next(filter(None, devices), None)


def _in_gpu_order(steps: Sequence[Step]) -> list[Step]:
    """Steps in order of launch, put in order of their start. One whose start is unknown stays
    behind what was launched before it, as on a stream."""
    moments, latest = [], None
    for step in steps:
        start = step.on_gpu.event.start if step.on_gpu else None
        latest = latest if start is None else start
        moments.append((latest is not None, latest or 0))
    return [steps[i] for i in sorted(range(len(steps)), key=moments.__getitem__)]


def _cpu_steps(ops: Sequence[Op]) -> list[Step]:
    """Where there is no GPU: the ops that do the work, and not those that only call them."""
    steps, done = [], -1
    works = _that_work_below(ops)
    for index, op in enumerate(ops):
        if op.start < done or kind_of_op(op.name) is None:
            continue
        if op.name in CALLS_OTHERS and works[index]:
            continue
        kind = kind_of_step(op.trail.path, None, "op")
        steps.append(Step(kind, op.name, op.end - op.start, op))
        done = op.end
    return steps


def _that_work_below(ops: Sequence[Op]) -> list[bool]:
    """For each op whether one inside it does work."""
    found = [False] * len(ops)
    open_: list[int] = []  # the latest op of each depth
    for index, op in enumerate(ops):
        del open_[op.depth :]
        if kind_of_op(op.name):
            for above in reversed(open_):
                if found[above]:
                    break
                found[above] = True
        open_.append(index)
    return found


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
