"""A thread's ops and calls in order of time, and what encloses what.

A lane is sorted once: by start and, of equal starts, the longer first, so that parents stand before
their children in whichever order the file has them. Whatever asks which op was running at a moment
asks here.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from math import inf
from operator import attrgetter, eq
from typing import Protocol, TypeVar

from .trace import Call, Span, Thread


class Timed(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def thread(self) -> Thread: ...


T = TypeVar("T", bound=Timed)
_start = attrgetter("start")


def by_thread(events: Iterable[T]) -> dict[Thread, list[T]]:
    """In order of time."""
    threads: dict[Thread, list[T]] = defaultdict(list)
    for event in events:
        threads[event.thread].append(event)
    for thread in threads.values():
        thread.sort(key=_start)
    return dict(threads)


class Spans(Sequence[Span]):
    """The ranges of one thread, nested. One without an end was too short to measure, or was open
    when the profiler stopped: it encloses nothing."""

    def __init__(self, spans: list[Span]) -> None:
        self.spans = spans
        self.starts = [span.start for span in spans]
        self._ties_by_length()

    def _ties_by_length(self) -> None:
        starts, low = self.starts, 0
        if not any(map(eq, starts, islice(starts, 1, None))):
            return
        for high in range(1, len(starts) + 1):
            if high == len(starts) or starts[high] != starts[low]:
                if high - low > 1:
                    same = self.spans[low:high]
                    same.sort(key=lambda span: span.start - (span.end or span.start))
                    self.spans[low:high] = same
                low = high

    def __len__(self) -> int:
        return len(self.spans)

    def __getitem__(self, index):
        return self.spans[index]

    @cached_property
    def parents(self) -> array:
        """For each range the one that is open when it begins, innermost; -1 where none is."""
        found = array("i")
        keep = found.append
        around: list[tuple[int, float]] = []  # the ranges that are open around the innermost
        inner, until = -1, inf
        for index, (start, span) in enumerate(zip(self.starts, self.spans, strict=True)):
            while until <= start:
                inner, until = around.pop()
            keep(inner)
            if (end := span.end) is not None:
                around.append((inner, until))
                inner, until = index, end
        return found

    def within(self, start: int, end: int) -> tuple[int, int]:
        """The range of indices of what starts inside. What starts at the very end, in a trace of
        whole microseconds, belongs to what follows."""
        low = bisect_left(self.starts, start)
        return low, bisect_left(self.starts, end, low)

    def at(self, moment: int) -> int:
        """The innermost range that is open at a moment; -1 where none is."""
        index = bisect_right(self.starts, moment) - 1
        spans, parents = self.spans, self.parents
        while index >= 0 and (spans[index].end or 0) <= moment:
            index = parents[index]
        return index

    def at_each(self, moments: Iterable[int]) -> Iterator[int]:
        """`at` of moments in order, in time that grows with their number and not with the depth:
        what has ended for one moment has ended for the next."""
        spans, starts, above = self.spans, self.starts, self.parents[:]
        for moment in moments:
            index = bisect_right(starts, moment) - 1
            last = index
            while index >= 0 and (spans[index].end or 0) <= moment:
                index = above[index]
            while last != index:
                above[last], last = index, above[last]
            yield index


class Lanes:
    """All threads of a trace."""

    def __init__(self, ops: Iterable[Span], calls: Iterable[Call]) -> None:
        self.ops = {thread: Spans(spans) for thread, spans in by_thread(ops).items()}
        self.calls = by_thread(calls)
        self.call_starts = {
            thread: [call.start for call in calls] for thread, calls in self.calls.items()
        }

    def calls_within(self, thread: Thread, start: int, end: int) -> list[Call]:
        starts = self.call_starts.get(thread, [])
        low = bisect_left(starts, start)
        return self.calls[thread][low : bisect_left(starts, end, low)] if starts else []
