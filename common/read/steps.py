"""The steps of the profiler's schedule beside each other: how they spread, which one is out of
line, and what differs in it.

A step's GPU time is of the work launched in it, and for it by autograd threads. The GPU runs behind
the CPU, and so its idle time is cut where the work of one step ends and that of the next begins: a
step's is the idle time from the end of the step before it to the end of its own work. The first
one's begins with its own first event, so that all of it adds up.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from .known import known
from .lanes import by_thread
from .linked import Linked
from .owners import Interval
from .survey import busy_time
from .trace import PROFILER_STEP, GpuEvent, Span
from .usage import Gap, Launched

FEWEST = 4  # steps, among which one can be out of line
OUTSIDE = 5  # times the median distance from the median, scaled to a standard deviation
SCALE = 1.4826  # of a normal distribution
AT_LEAST = 0.1  # of the median: less is no outlier, however alike the others are
TELLING = 0.1  # of the whole difference: what explains less is not told


@dataclass(frozen=True, slots=True)
class Spread:
    """Nanoseconds. `distance` is the median distance from the median: half of the steps are
    nearer."""

    median: float
    distance: float
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class ProfiledStep:
    """Nanoseconds; None is unknown."""

    name: str
    cpu: int
    gpu: int | None  # sum of the work launched in it and for it
    busy: int | None  # time in which any of it ran
    idle: int | None

    @property
    def number(self) -> str:
        return self.name.removeprefix(PROFILER_STEP)


@dataclass(frozen=True, slots=True)
class Change:
    """What a step has more, or less, of than the others' median. Nanoseconds."""

    what: str  # "label", "kernel" or "idle"
    name: str
    usual: float
    here: int

    @property
    def more(self) -> float:
        return self.here - self.usual


@dataclass(frozen=True, slots=True)
class Outlier:
    step: ProfiledStep
    by: str  # "cpu" or "gpu"
    more: float  # ns over the median of the others
    changes: tuple[Change, ...]  # the largest first


@dataclass(frozen=True)
class Steps:
    linked: Linked
    steps: tuple[ProfiledStep, ...]
    cpu: Spread | None
    gpu: Spread | None
    idle: Spread | None
    outliers: tuple[Outlier, ...]


def profiled_steps(linked: Linked) -> Steps:
    spans = [s for s in linked.trace.annotations if s.is_profiler_step and s.end is not None]
    spans.sort(key=lambda span: span.start)
    on_gpu = bool(linked.trace.gpu)
    own = [list(launched(linked, span)) for span in spans]
    gaps = _gaps(linked, own)
    steps = []
    for span, events, idle in zip(spans, own, gaps, strict=True):
        gpu = linked.owners.during(span) if on_gpu else None
        steps.append(
            ProfiledStep(
                span.name,
                (span.end or span.start) - span.start,
                gpu,
                None if gpu is None else busy_time(events),
                None if gpu is None else sum(end - start for start, end, _ in idle),
            )
        )
    parts = _Parts(linked, spans, own, gaps)
    return Steps(
        linked,
        tuple(steps),
        _spread([step.cpu for step in steps]),
        _spread([step.gpu for step in steps]),
        _spread([step.idle for step in steps]),
        tuple(_outliers(steps, parts)),
    )


def launched(linked: Linked, span: Span) -> Iterator[GpuEvent]:
    """The GPU events of a credible time that were launched in a range and for it."""
    around = {span.thread: [Interval(span.start, span.end or span.start)]}
    for call, _ in linked.owners.calls(around):
        for event in linked.joined.answers.get(id(call), ()):
            if event.end is not None and id(event) not in linked.timeless:
                yield event


def _gaps(linked: Linked, own: Sequence[Sequence[GpuEvent]]) -> list[list[Gap]]:
    """Of each step the idle stretches of a GPU that its work ends."""
    whose = {id(event): number for number, events in enumerate(own) for event in events}
    gpus: dict[tuple, list[Launched]] = defaultdict(list)
    for one in linked.launched():
        if one.event.end is not None:
            gpus[one.event.place].append(one)
    found: list[list[Gap]] = [[] for _ in own]
    for events in gpus.values():
        events.sort(key=lambda one: one.event.start or 0)
        until = events[0].event.start or 0
        for one in events:
            start, end = one.event.start or 0, one.event.end or 0
            if start > until and (number := whose.get(id(one.event))) is not None:
                found[number].append((until, start, one))
            until = max(until, end)
    return found


def _spread(values: Sequence[int | None]) -> Spread | None:
    numbers = known(values)
    if not numbers:
        return None
    middle = median(numbers)
    distance = median(abs(number - middle) for number in numbers)
    return Spread(middle, distance, min(numbers), max(numbers))


# ── Out of line ───────────────────────────────────────────────────────────────────────────────────


def _outliers(steps: Sequence[ProfiledStep], parts: "_Parts") -> Iterator[Outlier]:
    """Steps whose time on the CPU or on the GPU is far from that of the others."""
    for by in ("cpu", "gpu"):
        values = known(getattr(step, by) for step in steps)
        if values is None or len(values) < FEWEST:
            continue
        spread = _spread(values)
        assert spread
        limit = max(OUTSIDE * SCALE * spread.distance, AT_LEAST * spread.median)
        for number, value in enumerate(values):
            if abs(value - spread.median) > limit:
                more = value - median(other for n, other in enumerate(values) if n != number)
                yield Outlier(steps[number], by, more, parts.changes(number, more))


class _Parts:
    """What each step is made of: labels and calls by their CPU time, kernels, idle by culprit."""

    def __init__(
        self,
        linked: Linked,
        spans: Sequence[Span],
        own: Sequence[Sequence[GpuEvent]],
        gaps: Sequence[Sequence[Gap]],
    ) -> None:
        self._linked, self._spans, self._own, self._gaps = linked, spans, own, gaps

    @cached_property
    def _of(self) -> list[dict[tuple[str, str], int]]:
        labels = by_thread(s for s in self._linked.trace.annotations if not s.is_profiler_step)
        found = []
        for span, events, gaps in zip(self._spans, self._own, self._gaps, strict=True):
            sums: dict[tuple[str, str], int] = defaultdict(int)
            inside = labels.get(span.thread, [])
            low = bisect_left(inside, span.start, key=lambda label: label.start)
            for label in inside[low:]:
                if label.start >= (span.end or 0):
                    break
                sums["label", label.name] += (label.end or label.start) - label.start
            for event in events:
                sums["kernel", event.name] += event.duration or 0
            for what, stretches in self._linked.culprits.of(gaps)[3].items():
                sums["idle", what] += stretches.ns
            found.append(sums)
        return found

    def changes(self, number: int, more: float) -> tuple[Change, ...]:
        """Of one step, what explains at least a tenth of its difference."""
        here, others = self._of[number], [of for n, of in enumerate(self._of) if n != number]
        found = []
        for key in {key for of in self._of for key in of}:
            usual = median(of.get(key, 0) for of in others)
            found.append(Change(*key, usual, here.get(key, 0)))
        telling = [one for one in found if abs(one.more) >= TELLING * abs(more)]
        return tuple(sorted(telling, key=lambda one: (-abs(one.more), one.what, one.name)))
