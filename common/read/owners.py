"""Whose GPU time it is: every microsecond has a label, or is said to have none.

Work belongs to the labels that are open on its own thread when it is launched. Backward does not
run there: the thread that calls `backward()` waits, and an autograd thread works for it. All that
it launches while the other waits, final callbacks included, is the waiting label's. It is decided
from the events and never from a label's name: a thread waits where none of its ops and calls
begins, and an autograd thread works for it if it evaluates a graph meanwhile.
Of several threads that wait it is the one whose forward ops are differentiated, by the sequence
numbers that forward and backward ops share; else the one whose wait holds all that the others' do;
else nobody's.

The same numbers lead from a backward op to the forward op, and so to the label whose forward it
differentiates. They repeat from thread to thread, and `Fwd thread id` is a number of the autograd
engine's own, which the fwdbwd arrows tie to a thread.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .join import Joined, Placed
from .known import total
from .lanes import Lanes, by_thread
from .trace import EVALUATE, Call, GpuEvent, Span, Thread, Trace

INFINITE = 1 << 64  # ns: after everything
TOO_MANY = 5_000_000  # pairs of a backward op and a thread that may have waited for it


class Interval(NamedTuple):
    start: int  # ns
    end: int


class Service(NamedTuple):
    """While this lasts an autograd thread works for another thread, which waits."""

    start: int
    end: int
    waiting: Thread


def merged(spans: Iterable[tuple[int, int]]) -> list[Interval]:
    """As few intervals as cover the same time, in order."""
    found: list[Interval] = []
    for start, end in sorted(spans):
        if found and start <= found[-1].end:
            if end > found[-1].end:
                found[-1] = Interval(found[-1].start, end)
        else:
            found.append(Interval(start, end))
    return found


def common(left: Sequence[Interval], right: Sequence[Interval]) -> Iterator[Interval]:
    """The time that two lists of intervals share."""
    i = j = 0
    while i < len(left) and j < len(right):
        start, end = max(left[i].start, right[j].start), min(left[i].end, right[j].end)
        if start < end:
            yield Interval(start, end)
        if left[i].end < right[j].end:
            i += 1
        else:
            j += 1


class Ledger:
    """Amounts of work at moments, summed up between any two of them."""

    def __init__(self, moments: list[int], amounts: Iterable[int | None]) -> None:
        """`moments` are in order; an amount that is None makes sums over it unknown."""
        self.moments = moments
        known, unknown = [0], [0]
        for amount in amounts:
            known.append(known[-1] + (amount or 0))
            unknown.append(unknown[-1] + (amount is None))
        self._known, self._unknown = known, unknown if unknown[-1] else None

    def between(self, start: int, end: int) -> int | None:
        low = bisect_right(self.moments, start - 1)
        high = bisect_right(self.moments, end - 1, low)
        if self._unknown and self._unknown[high] > self._unknown[low]:
            return None
        return self._known[high] - self._known[low]

    def over(self, intervals: Iterable[Interval]) -> int | None:
        return total(self.between(*interval) for interval in intervals)


# ── Who works for whom ────────────────────────────────────────────────────────────────────────────


class Services:
    """Of each autograd thread, for whom it works when."""

    def __init__(self, trace: Trace, lanes: Lanes) -> None:
        self.roots = {
            thread: found
            for thread, spans in lanes.ops.items()
            if trace.evaluates and (found := _roots(spans.spans))
        }
        self.links = Links(trace, self.roots)
        self._ops = lanes.ops
        self._labelled = by_thread(span for span in trace.annotations if span.end is not None)
        self._begun = {
            thread: sorted(
                [
                    *(lanes.ops[thread].starts if thread in lanes.ops else ()),
                    *lanes.call_starts.get(thread, ()),
                ]
            )
            for thread in (self._labelled if self.roots else ())
        }
        self._around = {
            thread: merged((span.start, span.end or span.start) for span in spans)
            for thread, spans in self._labelled.items()
        }
        self.of: dict[Thread, list[Service]] = {}
        for thread, roots in self.roots.items():
            if services := self._services(thread, roots):
                self.of[thread] = services
        self._starts = {
            thread: [service.start for service in found] for thread, found in self.of.items()
        }

    def waiting(self, thread: Thread, moment: int) -> Thread | None:
        """The thread for which an autograd thread works at a moment."""
        if thread not in self.of:
            return None
        at = bisect_right(self._starts[thread], moment) - 1
        found = self.of[thread]
        return found[at].waiting if at >= 0 and moment < found[at].end else None

    def workers(self, span: Span) -> Iterator[tuple[Thread, Interval]]:
        """The autograd threads that work for the range, and when."""
        for thread, services in self.of.items():
            for service in services:
                if service.waiting == span.thread and span.end is not None:
                    start, end = max(service.start, span.start), min(service.end, span.end)
                    if start < end:
                        yield thread, Interval(start, end)

    def _services(self, worker: Thread, roots: Sequence[Span]) -> list[Service]:
        others = [thread for thread in self._around if thread != worker and thread[0] == worker[0]]
        if len(others) * len(roots) > TOO_MANY:
            others = [thread for thread in others if thread in self.links.forward_threads]
        waits: list[dict[Thread, Interval]] = [self._waits(root, others) for root in roots]
        sizes = Counter((thread, wait) for found in waits for thread, wait in found.items())
        services: list[Service] = []
        for root, found in zip(roots, waits, strict=True):
            waiting = self._which(root, found, sizes)
            if waiting is None:
                continue
            start, end = found[waiting]
            if services and services[-1].waiting == waiting and services[-1].start == start:
                continue
            if services and services[-1].end > start:  # two waits overlap: each up to the next
                services[-1] = services[-1]._replace(end=min(services[-1].end, root.start))
                start = root.start
            services.append(Service(start, end, waiting))
        return services

    def _waits(self, root: Span, others: Iterable[Thread]) -> dict[Thread, Interval]:
        """The threads that begin nothing while this backward op runs, though a label is open on
        them, each with how long it waits."""
        found = {}
        start, end = root.start, root.end or root.start + 1
        for thread in others:
            around = self._around[thread]
            at = bisect_right(around, (start, INFINITE)) - 1
            if at < 0 or around[at].end < end:
                continue
            begun = self._begun[thread]
            after = bisect_right(begun, start)
            until = begun[after] if after < len(begun) else around[at].end
            if until >= end:
                since = begun[after - 1] if after else around[at].start
                found[thread] = Interval(max(since, around[at].start), min(until, around[at].end))
        return found

    def _which(
        self, root: Span, waits: dict[Thread, Interval], sizes: Counter[tuple[Thread, Interval]]
    ) -> Thread | None:
        if len(waits) < 2:
            return next(iter(waits), None)
        forward = self.links.thread_of(root)
        if forward in waits:
            return forward
        # Who waits for its own backward has run something before; a prefetcher may have not.
        ran = [thread for thread in waits if self._ops.get(thread)] or list(waits)
        ranked = sorted(ran, key=lambda thread: sizes[thread, waits[thread]], reverse=True)
        first, *others = ranked[:2]
        alone = not others or sizes[first, waits[first]] > sizes[others[0], waits[others[0]]]
        return first if alone else None


def _roots(spans: Sequence[Span]) -> list[Span]:
    """The outermost backward ops of a thread."""
    found: list[Span] = []
    for span in spans:
        if span.name.startswith(EVALUATE) and span.end is not None:
            if not found or span.start >= (found[-1].end or 0):
                found.append(span)
    return found


class Links:
    """From a backward op to its forward op: (forward thread, sequence number)."""

    def __init__(self, trace: Trace, roots: dict[Thread, list[Span]]) -> None:
        nodes = {id(node.span): node for node in trace.nodes if roots}
        self._nodes = {
            id(root): nodes[id(root)]
            for found in roots.values()
            for root in found
            if id(root) in nodes and nodes[id(root)].forward_thread
        }
        # Several ops can carry one number. It counts up when a graph node is made, so that the one
        # that begins last made it.
        self._forward: dict[tuple[Thread, int], Span] = {}
        for node in trace.nodes if self._nodes else ():
            if not node.forward_thread:
                key = node.span.thread, node.sequence
                if key not in self._forward or self._forward[key].start <= node.span.start:
                    self._forward[key] = node.span
        self.forward_threads = {thread for thread, _ in self._forward}
        self._thread: dict[tuple[object, int], Thread] = {}
        if self._nodes:
            self._tie(trace)

    def _tie(self, trace: Trace) -> None:
        """Which thread the engine's number of a forward thread means."""
        votes: dict[tuple[object, int], Counter[Thread]] = defaultdict(Counter)
        by_place = {(n.span.thread, n.span.start): n for n in self._nodes.values()}
        for arrow in trace.arrows:
            if node := by_place.get((arrow.to, arrow.at)):
                votes[node.span.thread[0], node.forward_thread or 0][arrow.whence] += 1
        for node in self._nodes.values():
            key = node.span.thread[0], node.forward_thread or 0
            if key in self._thread:
                continue
            if votes[key]:
                self._thread[key] = votes[key].most_common(1)[0][0]
        unsure: dict[tuple[object, int], Counter[Thread]] = defaultdict(Counter)
        for node in self._nodes.values():
            key = node.span.thread[0], node.forward_thread or 0
            if key not in self._thread:
                for thread in self.forward_threads:
                    forward = self._forward.get((thread, node.sequence))
                    if thread[0] == key[0] and forward and forward.start <= node.span.start:
                        unsure[key][thread] += 1
        for key, counts in unsure.items():
            first, *others = counts.most_common(2)
            if not others or others[0][1] < first[1]:
                self._thread[key] = first[0]

    @property
    def known(self) -> bool:
        return bool(self._nodes)

    def thread_of(self, root: Span) -> Thread | None:
        node = self._nodes.get(id(root))
        return self._thread.get((root.thread[0], node.forward_thread or 0)) if node else None

    def forward_of(self, root: Span) -> Span | None:
        """The forward op that a backward op differentiates; None where it is not in the file, or
        cannot be told, or where there is none, as of AccumulateGrad."""
        node, thread = self._nodes.get(id(root)), self.thread_of(root)
        if node is None or thread is None:
            return None
        found = self._forward.get((thread, node.sequence))
        return found if found and found.start <= root.start else None


# ── Whose ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Owned:
    """GPU time of one label, in nanoseconds; None is unknown."""

    own: int | None  # launched by the threads that the label is open on
    others: int | None  # by autograd threads that work for it
    backward: int | None = None  # by backward ops of its forward ops, wherever they run

    @property
    def all(self) -> int | None:
        return total((self.own, self.others))


class Owners:
    """The GPU time of a trace by label: each event once for each label, and once in all."""

    def __init__(
        self,
        trace: Trace,
        joined: Joined,
        placed: Placed,
        services: "Services",
        unreliable: set[int],
    ) -> None:
        """`unreliable` are GPU events, by their `id`, whose duration is not credible."""
        self.services = services
        self._unreliable = unreliable
        self._answers = joined.answers
        self._doubtful = joined.undecided_calls | placed.unknown
        self._ledgers: dict[Thread, Ledger] = {}
        self._placed = placed.threads
        lent: dict[tuple[Thread, Thread], tuple[list[int], list[int | None]]] = {}
        self._lent_calls: dict[tuple[Thread, Thread], list[Call]] = defaultdict(list)
        for thread, working in placed.threads.items():
            amounts = [self.work(call) for call in working.calls]
            self._ledgers[thread] = Ledger(working.moments, amounts)
            if thread in self.services.of:
                of_calls = zip(working.calls, working.moments, amounts, strict=True)
                for call, moment, amount in of_calls:
                    if waiting := self.services.waiting(thread, moment):
                        moments, works = lent.setdefault((thread, waiting), ([], []))
                        moments.append(moment)
                        works.append(amount)
                        self._lent_calls[thread, waiting].append(call)
        self._lent = {pair: Ledger(moments, works) for pair, (moments, works) in lent.items()}
        self._backward = self._of_forward_ops()
        named: dict[str, dict[Thread, list[tuple[int, int]]]] = defaultdict(
            lambda: defaultdict(list)
        )
        everywhere: dict[Thread, list[tuple[int, int]]] = defaultdict(list)
        for span in trace.annotations:
            if span.end is not None and not span.is_profiler_step:
                named[span.name][span.thread].append((span.start, span.end))
                everywhere[span.thread].append((span.start, span.end))
        self._time = {name: _merged_each(threads) for name, threads in named.items()}
        self._labelled = _merged_each(everywhere)

    def work(self, call: Call) -> int | None:
        """Nanoseconds of what a call made run; None where that is unknown, or where it counts."""
        if id(call) in self._doubtful:
            return None
        events = self._answers.get(id(call), ())
        if self._unreliable and any(id(event) in self._unreliable for event in events):
            return None
        return total(event.duration for event in events)

    def of(self, label: str) -> Owned:
        return self.over(self._time.get(label, {}))

    def over(self, times: dict[Thread, list[Interval]]) -> Owned:
        """Of any intervals of threads, merged and in order."""
        own, others = self._over(times)
        backward: int | None = None
        if self.services.links.known:
            backward = total(
                ledger.over(times[thread])
                for thread, ledger in self._backward.items()
                if thread in times
            )
        return Owned(own, others, backward)

    def events(self, label: str) -> Iterator[GpuEvent]:
        """Those of a label, each once."""
        for call, _ in self.calls(self._time.get(label, {})):
            yield from self._answers.get(id(call), ())

    def calls(self, times: dict[Thread, list[Interval]]) -> Iterator[tuple[Call, Thread]]:
        """The calls that work in any intervals of threads and for them, each once, with the thread
        for which it counts."""
        for thread, intervals in times.items():
            if working := self._placed.get(thread):
                for start, end in intervals:
                    for number in working.within(start, end):
                        yield working.calls[number], thread
        for pair, ledger in self._lent.items():
            worker, waiting = pair
            mine = times.get(worker, [])
            for start, end in times.get(waiting, ()):
                low = bisect_left(ledger.moments, start)
                for number in range(low, bisect_left(ledger.moments, end, low)):
                    moment = ledger.moments[number]
                    at = bisect_right(mine, (moment, INFINITE)) - 1
                    if at < 0 or mine[at].end <= moment:  # not its own already
                        yield self._lent_calls[pair][number], worker

    @property
    def labelled(self) -> int | None:
        """All that has any label."""
        return total(self._over(self._labelled))

    @property
    def launched(self) -> int | None:
        """All whose launch is in the file."""
        return total(ledger.between(-INFINITE, INFINITE) for ledger in self._ledgers.values())

    @property
    def unlinked_backward(self) -> int | None:
        """What backward ops launched whose forward op is not known."""
        return self._unlinked if self.services.links.known else None

    def _over(self, times: dict[Thread, list[Interval]]) -> tuple[int | None, int | None]:
        own = total(
            self._ledgers[thread].over(intervals)
            for thread, intervals in times.items()
            if thread in self._ledgers
        )
        others = total(self._lent_over(pair, times) for pair in self._lent if pair[1] in times)
        return own, others

    def _lent_over(
        self, pair: tuple[Thread, Thread], times: dict[Thread, list[Interval]]
    ) -> int | None:
        worker, waiting = pair
        ledger = self._lent[pair]
        whole = ledger.over(times[waiting])
        if worker not in times or whole is None:
            return whole
        # A label that is open on both threads has it as its own already.
        twice = ledger.over(common(times[waiting], times[worker]))
        return None if twice is None else whole - twice

    def _of_forward_ops(self) -> dict[Thread, Ledger]:
        """The work of backward ops, put where their forward ops begin."""
        found: dict[Thread, list[tuple[int, int | None]]] = defaultdict(list)
        unlinked: list[int | None] = []
        for thread, roots in self.services.roots.items():
            if (ledger := self._ledgers.get(thread)) is None:
                continue
            for root in roots:
                amount = ledger.between(root.start, root.end or root.start)
                if forward := self.services.links.forward_of(root):
                    found[forward.thread].append((forward.start, amount))
                else:
                    unlinked.append(amount)
        self._unlinked = total(unlinked)
        ledgers = {}
        for thread, pairs in found.items():
            pairs.sort(key=lambda pair: pair[0])
            ledgers[thread] = Ledger([at for at, _ in pairs], [amount for _, amount in pairs])
        return ledgers

    # ── One range ─────────────────────────────────────────────────────────────────────────────────

    def during(self, span: Span) -> int | None:
        """Nanoseconds of what was launched in a range, and for it."""
        around = {span.thread: [Interval(span.start, span.end or span.start)]}
        return total(self._over(around))


def _merged_each(
    threads: dict[Thread, list[tuple[int, int]]],
) -> dict[Thread, list[Interval]]:
    return {thread: merged(spans) for thread, spans in threads.items()}
