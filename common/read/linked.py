"""A trace with everything tied together: what the survey and every region read."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from .join import Joined, Placed, clocks_disagree, join, place
from .lanes import Lanes
from .owners import Owners, Services
from .trace import GpuEvent, Trace
from .usage import Culprits, Launched


@dataclass(frozen=True)
class Linked:
    trace: Trace
    lanes: Lanes
    joined: Joined
    placed: Placed
    incredible: list[GpuEvent]  # their duration was mismeasured
    timeless: set[int]  # the same, by `id`
    skew: int | None  # ns by which the GPU's clock runs behind the CPU's; None where it does not

    @cached_property
    def services(self) -> Services:
        return Services(self.trace, self.lanes)

    @cached_property
    def owners(self) -> Owners:
        return Owners(self.trace, self.joined, self.placed, self.services, self.timeless)

    @cached_property
    def culprits(self) -> Culprits:
        return Culprits(self.trace, self.lanes, self.skew is None)

    def launched(self) -> Iterator[Launched]:
        """Every GPU event of a credible time, with its launch."""
        for event in (*self.joined.leaked, *self.joined.undecided):
            if id(event) not in self.timeless:
                yield Launched(event, None, None)
        unknown = self.placed.unknown  # these stand in several places
        for call_id in unknown:
            for event in self.joined.answers.get(call_id, ()):
                if id(event) not in self.timeless:
                    yield Launched(event, None, None)
        for thread, working in self.placed.threads.items():
            for call in working.calls:
                if unknown and id(call) in unknown:
                    continue
                for event in self.joined.answers.get(id(call), ()):
                    if id(event) not in self.timeless:
                        yield Launched(event, call, thread)


def link(trace: Trace) -> Linked:
    lanes = Lanes(trace.ops, trace.calls)
    joined = join(trace)
    placed = place(trace, joined, lanes)
    incredible = _incredible(trace)
    timeless = set(map(id, incredible))
    skew = clocks_disagree(trace, joined)
    return Linked(trace, lanes, joined, placed, incredible, timeless, skew)


def _incredible(trace: Trace) -> list[GpuEvent]:
    """Events that end after the next one of their stream: a stream finishes in order, so their
    duration was mismeasured. (A short overlap is none: dependent launches start early.)"""
    found: list[GpuEvent] = []
    lanes: dict[tuple, list[tuple[int, int, GpuEvent]]] = {}
    several = len(trace.processes) > 1
    for event in trace.gpu:
        # The streams of two processes may go by one number.
        if event.start is not None and event.duration is not None:
            if not (several and event.process is None):
                span = event.start, event.start + event.duration, event
                lanes.setdefault(event.lane, []).append(span)
    for lane in lanes.values():
        lane.sort(key=lambda span: span[0])
        found += [
            event
            for (start, end, event), (next_start, next_end, _) in zip(lane, lane[1:], strict=False)
            if end > next_end and start < next_start
        ]
    return found
