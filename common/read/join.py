"""Launch calls and GPU events, joined by correlation id within their process; and each launch put
in its place: the thread, the moment and the op that it counts for.

Two witnesses say which op launched. Time and thread: the op that is open on the call's thread when
the call begins. And `External id`, which the profiler writes a second time, on the op and on the
call. Where both agree, as in nearly every trace, that is that. Where they contradict each other the
id is right if it names one op; if ops of several processes carry it the place is unknown, and is
spoken of, never counted as 0.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .lanes import Lanes
from .trace import STRANGER, Call, GpuEvent, Span, Thread, Trace


@dataclass(slots=True)
class Joined:
    """Calls are named by their `id`: equal ones stay apart."""

    answers: dict[int, list[GpuEvent]] = field(default_factory=dict)  # the events of a call
    shared: list[tuple[Call, int]] = field(default_factory=list)  # launches of several kernels
    lost: list[Call] = field(default_factory=list)  # launches answered by none
    leaked: list[GpuEvent] = field(default_factory=list)  # their call is not in the file
    # Several calls, of several processes say, may have made them:
    undecided: list[GpuEvent] = field(default_factory=list)
    undecided_calls: set[int] = field(default_factory=set)
    # A launch and what it calls can carry one id: a launch of the runtime, and the driver's.
    beside: set[int] = field(default_factory=set)
    captured: set[int] = field(default_factory=set)  # launches into a graph: nothing runs

    def launches(self, calls: Iterable[Call]) -> int:
        launches = [call for call in calls if call.launches]
        if self.beside:
            return sum(id(call) not in self.beside for call in launches)
        return len(launches)


def join(trace: Trace) -> Joined:
    # Nearly every list holds one: written so, and not made empty to grow, it takes less memory.
    events: dict[int | None, list[GpuEvent]] = {}
    calls: dict[int, list[Call]] = {}
    for event in trace.gpu:
        if (group := events.get(event.correlation)) is None:
            events[event.correlation] = [event]
        else:
            group.append(event)
    for call in trace.calls:
        if (correlation := call.correlation) is not None:
            if (made := calls.get(correlation)) is None:
                calls[correlation] = [call]
            else:
                made.append(call)
    found = Joined(leaked=events.pop(None, []))
    answers = found.answers
    several = len(trace.processes) > 1 or any(event.process is STRANGER for event in trace.gpu)
    for id_, group in events.items():
        made = calls.get(id_) if id_ is not None else None
        if made is None:
            found.leaked += group
        elif len(made) == 1 and not several:
            answers[id(made[0])] = group
        else:
            _divide(made, group, found)
    for made in calls.values():
        if len(made) > 1:
            _find_doubles(made, found)
    found.captured = _captured(trace, answers)
    surplus: list[tuple[Call, GpuEvent]] = []
    silent = found.beside | found.undecided_calls | found.captured
    for call in trace.calls:
        own = answers.get(id(call))
        if not call.launches or call.correlation is None:
            continue
        if own is None:
            if id(call) not in silent:
                found.lost.append(call)
        elif len(own) > 1 and not call.launches_graph:
            found.shared.append((call, len(own)))
            own.sort(key=_start)
            surplus += [(call, event) for event in own[1:]]
    # One launch starts one kernel. If just as many launches went without, the ids were mixed up,
    # and both sides still stand in order.
    if surplus and len(surplus) == len(found.lost) and not several:
        surplus.sort(key=lambda pair: _start(pair[1]))
        found.lost.sort(key=lambda call: call.start)
        for (call, event), launch in zip(surplus, found.lost, strict=True):
            answers[id(call)] = answers[id(call)][:1]
            answers[id(launch)] = [event]
    return found


def _start(event: GpuEvent) -> int:
    return event.start or 0


def _divide(made: list[Call], group: list[GpuEvent], found: Joined) -> None:
    """The events of one id among the calls of this id: each goes to its own process's launch."""
    by_process = defaultdict(list)
    for event in group:
        by_process[event.process].append(event)
    if _contradicts(made, by_process):
        found.undecided += group
        found.undecided_calls.update(map(id, made))
        return
    calls_of = defaultdict(list)
    for call in made:
        calls_of[call.thread[0]].append(call)
    for process, events in by_process.items():
        # Whose process is unknown may be anyone's.
        own = made if process is None else calls_of.get(process, [])
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
            found.beside.update(id(other) for other in own if other is not call)


def _contradicts(made: list[Call], by_process: dict[object, list[GpuEvent]]) -> bool:
    """Whether one process has several events of a call that starts one, and another process, with a
    call of this id, has none: the events stand in the wrong part of the file."""
    callers = {call.thread[0] for call in made}
    if callers <= by_process.keys() or any(call.launches_graph for call in made):
        return False
    return any(len(events) > 1 for process, events in by_process.items() if process in callers)


def _find_doubles(made: list[Call], found: Joined) -> None:
    """Of a launch of the runtime and the driver's launch inside it, which carry one id, the one
    that has no GPU event is no launch of its own."""
    by_process = defaultdict(list)
    for call in made:
        if call.launches:
            by_process[call.thread[0]].append(call)
    for launches in by_process.values():
        runtime = [call for call in launches if not call.of_driver]
        driver = [call for call in launches if call.of_driver]
        if len(runtime) == len(driver) == 1:
            spare = runtime[0] if id(driver[0]) in found.answers else driver[0]
            found.beside.add(id(spare))


def _captured(trace: Trace, answers: dict[int, list[GpuEvent]]) -> set[int]:
    """Launches between the begin and the end of a stream's capture on their thread: they go into
    the graph. One that has a GPU event ran all the same, on another stream."""
    depth: dict[Thread, int] = defaultdict(int)
    marks = [call for call in trace.calls if "Capture" in call.name]
    if not any("BeginCapture" in call.name for call in marks):
        return set()
    threads = {call.thread for call in marks}
    found = set()
    for call in sorted((c for c in trace.calls if c.thread in threads), key=lambda c: c.start):
        if "BeginCapture" in call.name:
            depth[call.thread] += 1
        elif "EndCapture" in call.name:
            depth[call.thread] = max(0, depth[call.thread] - 1)
        elif depth[call.thread] and call.launches and id(call) not in answers:
            found.add(id(call))
    return found


# ── Places ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class Working:
    """The calls that made GPU events, or may have, and count for one thread, in order of the
    moments at which they count. `ops` are the innermost ops there, by their index among the
    thread's; -1: none."""

    calls: list[Call] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)  # ns
    ops: list[int] = field(default_factory=list)

    def keep(self, wanted: Callable[[Call], bool]) -> None:
        self._take([number for number, call in enumerate(self.calls) if wanted(call)])

    def sort(self) -> None:
        self._take(sorted(range(len(self.calls)), key=self.moments.__getitem__))

    def _take(self, numbers: list[int]) -> None:
        self.calls = [self.calls[number] for number in numbers]
        self.moments = [self.moments[number] for number in numbers]
        self.ops = [self.ops[number] for number in numbers]

    def within(self, start: int, end: int) -> range:
        """Their indices. What counts at the very end belongs to what follows."""
        low = bisect_left(self.moments, start)
        return range(low, bisect_left(self.moments, end, low))


@dataclass(slots=True)
class Placed:
    threads: dict[Thread, Working]
    moved: int  # calls that the id puts elsewhere than time and thread do
    unknown: set[int]  # calls, by `id`, that ops of several processes may have made: with each


def place(trace: Trace, joined: Joined, lanes: Lanes) -> Placed:
    answers = joined.answers
    threads: dict[Thread, Working] = {}
    doubted: list[tuple[Working, int]] = []
    for thread, calls in lanes.calls.items():
        made = [c for c in calls if id(c) in answers or id(c) in joined.undecided_calls]
        if not made:
            continue
        moments = [call.start for call in made]
        ops = lanes.ops.get(thread)
        working = Working(made, moments, list(ops.at_each(moments)) if ops else [-1] * len(made))
        threads[thread] = working
        for number, (call, index) in enumerate(zip(made, working.ops, strict=True)):
            if call.external and (
                ops is None or index < 0 or ops.spans[index].external != call.external
            ):
                doubted.append((working, number))
    return _ask_ids(trace, lanes, threads, doubted)


def _ask_ids(
    trace: Trace,
    lanes: Lanes,
    threads: dict[Thread, Working],
    doubted: list[tuple[Working, int]],
) -> Placed:
    """Of the calls whose id is not that of the innermost op around them."""
    wanted = {working.calls[number].external for working, number in doubted}
    named: dict[int | None, list[tuple[Span, bool]]] = defaultdict(list)  # and whether it is an op
    for spans, are_ops in ((trace.ops, True), (trace.annotations, False)) if wanted else ():
        for span in spans:
            if span.external in wanted:
                named[span.external].append((span, are_ops))
    known = {thread[0] for thread in lanes.ops} if wanted else set()
    known |= {span.thread[0] for span in trace.annotations} if wanted else set()
    moves: list[tuple[Call, Span, bool]] = []
    unknown: set[int] = set()
    for working, number in doubted:
        call = working.calls[number]
        around = named.get(call.external, [])
        # An outer op, or the label itself; or an id that nothing in the file carries.
        if not around or any(_encloses(span, call) for span, _ in around):
            continue
        # Processes count their ids each for itself. Calls written under a process that has no op
        # and no label may be any other's.
        near = [one for one in around if one[0].thread[0] == call.thread[0]]
        if not near and call.thread[0] in known:
            continue
        near = near or around
        if len(near) == 1 and near[0][0].end is not None:
            moves.append((call, *near[0]))
        elif len({span.thread[0] for span, _ in near}) > 1:
            unknown.add(id(call))
            moves += [(call, *one) for one in near]  # it may count for each of them
        # What several ops of one process carry names none of them: time and thread stand.
    if moves:
        gone = {id(call) for call, _, _ in moves}
        for working in {id(working): working for working, _ in doubted}.values():
            working.keep(lambda call: id(call) not in gone)
        for call, span, is_op in moves:
            working = threads.setdefault(span.thread, Working())
            working.calls.append(call)
            working.moments.append(span.start)
            working.ops.append(_index(lanes, span) if is_op else -1)
        for thread in {span.thread for _, span, _ in moves}:
            threads[thread].sort()
    moved = sum(id(call) not in unknown for call, _, _ in moves)
    return Placed(threads, moved, unknown)


def _encloses(span: Span, call: Call) -> bool:
    end = span.end
    return span.thread == call.thread and end is not None and span.start <= call.start < end


def _index(lanes: Lanes, span: Span) -> int:
    ops = lanes.ops[span.thread]
    index = bisect_left(ops.starts, span.start)
    while ops.spans[index] is not span:
        index += 1
    return index


# ── Clocks ────────────────────────────────────────────────────────────────────────────────────────

SKEW = 20_000  # ns: the clocks of CPU and GPU are aligned this well where all is well
SHARE = 10  # one launch in so many


def clocks_disagree(trace: Trace, joined: Joined) -> int | None:
    """By how many nanoseconds the GPU's clock runs behind the CPU's, at least; None where no more
    than a few kernels start before their launch. Then no cause may be read from comparing them."""
    early, pairs = [], 0
    for call in trace.calls:
        for event in joined.answers.get(id(call), ()):
            if event.start is not None:
                pairs += 1
                if event.start < call.start - SKEW:
                    early.append(call.start - event.start)
    return sorted(early)[len(early) // 2] if early and len(early) * SHARE >= pairs else None
