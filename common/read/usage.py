"""What a GPU did with its time: idle and why, on Tensor Cores, copying, communicating."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from .kernel_names import decode
from .kinds import MAY_USE_TENSOR_CORES, kind_of_kernel
from .lanes import Lanes
from .trace import Call, GpuEvent, Span, Thread, Trace

# What the CPU thread that launched next was in, while the GPU had nothing to do.
ALREADY = "launched before, and waiting"  # for another stream, an event, or to be started
NOT_IN_FILE = "a launch that is not in the file"
CLOCKS = "unknown: the clocks of CPU and GPU disagree"
BETWEEN = "Python, between ops"
LOADER = "the data loader"
COMPILE = "compiling"
NOTHING = "nothing that was recorded"


@dataclass(slots=True)
class Stretches:
    """Idle stretches of one culprit, in nanoseconds."""

    ns: int = 0
    count: int = 0
    longest: int = 0

    def add(self, ns: int, count: int = 1, longest: int | None = None) -> None:
        self.ns += ns
        self.count += count
        self.longest = max(self.longest, ns if longest is None else longest)


@dataclass(frozen=True, slots=True)
class Usage:
    """Nanoseconds. Idle times lie between the first and the last event of a device; the others are
    sums of events, those of concurrent streams included. Events without a time are left out."""

    events: int = 0
    span: int = 0  # from the first event's start to the last one's end
    busy: int = 0  # each moment counted once
    # Idle, and the next launch call came after the GPU had run dry; or it had been made before: a
    # sync, an event, the queue. Both are None where the clocks of CPU and GPU disagree.
    launch_bound: int | None = 0
    waiting: int | None = 0
    idle_unknown: int = 0  # idle, and the next work's launch is not in the file, or not to be told
    work: int = 0  # all events
    kernels: int = 0  # of it, kernels
    tensor_cores: int = 0
    cores_unknown: int = 0  # kernels whose names do not tell
    copies: int = 0  # and memsets
    communication: int = 0
    exposed: int = 0  # time in which the GPU ran communication and nothing else
    overlapped: int = 0  # time in which it ran communication beside other kernels
    idle_by: dict[str, Stretches] = field(default_factory=dict)

    @property
    def idle(self) -> int:
        return self.span - self.busy

    @property
    def cores_known(self) -> bool:
        """Whether the name of any kernel tells if it uses Tensor Cores."""
        return self.cores_unknown < self.kernels or not self.kernels


class Launched(NamedTuple):
    """A GPU event and its launch, where that is in the file."""

    event: GpuEvent
    call: Call | None
    thread: Thread | None  # for which the call counts


def usage(parts: Iterable[Iterable[Launched]], culprits: "Culprits") -> Usage:
    """Of the parts together; what lies between two of them is nobody's."""
    found = _Sums()
    for part in parts:
        gpus: dict[tuple, list[Launched]] = {}
        for one in part:
            event = one.event
            if event.start is not None and event.duration is not None:
                gpus.setdefault(event.place, []).append(one)
        for events in gpus.values():
            found.add(events, culprits)
    return found.usage()


def _start(one: Launched) -> int:
    return one.event.start or 0


Gap: TypeAlias = tuple[int, int, Launched]


class _Sums:
    def __init__(self) -> None:
        self._whole = self._busy = self._events = 0
        self._causes: list[int | None] = [0, 0, 0]
        self._kernels: dict[str, int] = {}  # by name
        self._copies = 0
        self._communicates, self._judged = False, 0  # any kernel, of so many names
        self._exposed = self._overlapped = 0
        self._by: dict[str, Stretches] = {}

    def add(self, events: list[Launched], culprits: "Culprits") -> None:
        """The events of one GPU."""
        if len(events) > 1:
            events.sort(key=_start)
        kernels = self._kernels
        first = until = _start(events[0])
        busy = 0
        gaps: list[Gap] = []
        for one in events:
            event = one.event
            start, duration = event.start or 0, event.duration or 0
            if start > until:
                gaps.append((until, start, one))
            end = start + duration
            if end > until:
                busy += end - (start if start > until else until)
                until = end
            if event.sort == "kernel":
                kernels[event.name] = kernels.get(event.name, 0) + duration
            else:
                self._copies += duration
        self._events += len(events)
        self._whole += until - first
        self._busy += busy
        if len(kernels) > self._judged:
            self._judged = len(kernels)
            self._communicates = any(_share(name) == "communication" for name in kernels)
        if self._communicates:
            self._add_exposed([one.event for one in events if one.event.sort == "kernel"])
        if gaps:
            self._blame(gaps, culprits)

    def _add_exposed(self, kernels: list[GpuEvent]) -> None:
        spans: tuple[list[tuple[int, int]], list[tuple[int, int]]] = [], []
        for event in kernels:
            others = _share(event.name) != "communication"
            spans[others].append((event.start or 0, event.end or 0))
        exposed, overlapped = _exposed(*spans)
        self._exposed += exposed
        self._overlapped += overlapped

    def _blame(self, gaps: list[Gap], culprits: "Culprits") -> None:
        *causes, by = culprits.of(gaps)
        for number, cause in enumerate(causes):
            known = self._causes[number]
            self._causes[number] = None if cause is None or known is None else known + cause
        for what, stretches in by.items():
            self._by.setdefault(what, Stretches()).add(
                stretches.ns, stretches.count, stretches.longest
            )

    def usage(self) -> Usage:
        launch_bound, waiting, unknown = self._causes
        times: dict[str | None, int] = defaultdict(int)
        for name, ns in self._kernels.items():
            times[_share(name)] += ns
        kernels = sum(self._kernels.values())
        return Usage(
            events=self._events,
            span=self._whole,
            busy=self._busy,
            launch_bound=launch_bound,
            waiting=waiting,
            idle_unknown=unknown or 0,
            work=kernels + self._copies,
            kernels=kernels,
            tensor_cores=times["Tensor Cores"],
            cores_unknown=times["cores unknown"],
            copies=self._copies,
            communication=times["communication"],
            exposed=self._exposed,
            overlapped=self._overlapped,
            idle_by=self._by,
        )


def _exposed(talk: Sequence[tuple[int, int]], others: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The time of communication alone, and beside other kernels; each moment once."""
    marks = [(at, 0, change) for span in talk for at, change in zip(span, (1, -1), strict=True)]
    marks += [(at, 1, change) for span in others for at, change in zip(span, (1, -1), strict=True)]
    marks.sort()
    running, alone, beside, before = [0, 0], 0, 0, 0
    for at, which, change in marks:
        if running[0]:
            if running[1]:
                beside += at - before
            else:
                alone += at - before
        running[which] += change
        before = at
    return alone, beside


@lru_cache(maxsize=65536)
def _share(name: str) -> Literal["communication", "Tensor Cores", "cores unknown"] | None:
    """Which of the shares a kernel's time belongs to."""
    kernel = decode(name)
    kind = kind_of_kernel(kernel)
    if kind == "communication":
        return "communication"
    if kernel.tensor_cores:
        return "Tensor Cores"
    unknown = kernel.tensor_cores is None and kind in MAY_USE_TENSOR_CORES
    return "cores unknown" if unknown else None


# ── Who keeps the GPU waiting ─────────────────────────────────────────────────────────────────────

SHORT = 20_000  # ns: of a shorter stretch it is asked what its middle lies in


class Culprits:
    """What the CPU did while a GPU was idle: the call, the op or the label, innermost, in which the
    thread that launched next spent most of the stretch before its launch."""

    def __init__(self, trace: Trace, lanes: Lanes, clocks_agree: bool) -> None:
        self._lanes = lanes
        self._clocks_agree = clocks_agree
        special = [s for s in trace.annotations if s.end is not None and _of_label(s.name)]
        self._special: dict[Thread, list[Span]] = defaultdict(list)
        for span in sorted(special, key=lambda span: span.start):
            self._special[span.thread].append(span)

    def of(self, gaps: Sequence[Gap]) -> tuple[int | None, int | None, int, dict[str, Stretches]]:
        """Launch-bound, waiting, unknown; and all of it by culprit."""
        by: dict[str, Stretches] = defaultdict(Stretches)
        if not self._clocks_agree:
            for start, end, _ in gaps:
                by[CLOCKS].add(end - start)
            return None, None, sum(end - start for start, end, _ in gaps), dict(by)
        launch_bound = waiting = unknown = 0
        for start, end, one in gaps:
            if one.call is None or one.thread is None:
                unknown += end - start
                by[NOT_IN_FILE].add(end - start)
            elif one.call.start < start:
                waiting += end - start
                by[self._already(start, end, one.call)].add(end - start)
            else:
                launch_bound += end - start
                by[self._most(one.thread, start, one.call.start)].add(end - start)
        return launch_bound, waiting, unknown, dict(by)

    def _already(self, start: int, end: int, call: Call) -> str:
        """A launch before the stretch: what is waited for is on the GPU, or the call itself takes
        so long."""
        if call.duration and call.start + call.duration > (start + end) // 2:
            return call.name
        return ALREADY

    def _most(self, thread: Thread, start: int, end: int) -> str:
        """What the thread spent most of the time in."""
        if end - start <= SHORT:
            return self._at(thread, (start + end) // 2)
        marks = {start, end}
        ops, calls = self._lanes.ops.get(thread), self._lanes.calls_within(thread, start, end)
        if ops:
            low, high = ops.within(start, end)
            for span in ops.spans[low:high]:
                marks.add(span.start)
                if span.end is not None and span.end < end:
                    marks.add(span.end)
            around = ops.at(start)
            while around >= 0:
                if (until := ops.spans[around].end) is not None and until < end:
                    marks.add(until)
                around = ops.parents[around]
        labels = self._special.get(thread, [])
        first = bisect_left(labels, start, key=lambda span: span.start)
        for span in labels[max(0, first - 1) :]:
            if span.start >= end:
                break
            marks.update(at for at in (span.start, span.end or 0) if start < at < end)
        for call in calls:
            marks.add(call.start)
            if call.duration and call.start + call.duration < end:
                marks.add(call.start + call.duration)
        for span in self._special.get(thread, ()):
            if span.start >= end:
                break
            marks.update(at for at in (span.start, span.end or 0) if start < at < end)
        times: dict[str, int] = defaultdict(int)
        moments = sorted(marks)
        for at, until in zip(moments, moments[1:], strict=False):
            times[self._at(thread, at)] += until - at
        return max(times, key=lambda what: times[what]) if times else NOTHING

    def _at(self, thread: Thread, moment: int) -> str:
        """What the thread was in: a call, else what a label says, else an op."""
        if call := self._call_at(thread, moment):
            return call.name
        for span in self._special.get(thread, ()):
            if span.start > moment:
                break
            if moment < (span.end or 0):
                return _of_label(span.name) or NOTHING
        if (ops := self._lanes.ops.get(thread)) is None:
            return BETWEEN if thread in self._lanes.calls else NOTHING
        index = ops.at(moment)
        if index < 0:
            return BETWEEN
        return _of_op(ops.spans[index].name)

    def _call_at(self, thread: Thread, moment: int) -> Call | None:
        starts = self._lanes.call_starts.get(thread, [])
        at = bisect_right(starts, moment) - 1
        # A runtime call may hold a driver's: the innermost that is open, two back at the most.
        for index in range(at, max(-1, at - 3), -1):
            call = self._lanes.calls[thread][index]
            if call.duration and call.start <= moment < call.start + call.duration:
                return call
        return None


@lru_cache(maxsize=4096)
def _of_label(name: str) -> str | None:
    """A label that says what the CPU does in it."""
    if name.startswith("enumerate(DataLoader)"):
        return LOADER
    return COMPILE if _compiles(name) else None


@lru_cache(maxsize=4096)
def _of_op(name: str) -> str:
    if name.startswith("enumerate(DataLoader)"):
        return LOADER
    return COMPILE if _compiles(name) else name


def _compiles(name: str) -> bool:
    return "(dynamo_timed)" in name or name.startswith(("compile_fx", "TorchDynamo Compile"))
