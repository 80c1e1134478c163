"""The whole of a trace, where no region is singled out: labels, kernels, ops, the GPU's time."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate

from .observe import by_thread, join
from .trace import Call, GpuEvent, Trace
from .usage import Usage, usage

TOP = 10


@dataclass(slots=True)
class Total:
    """What all events of one name come to. Times in nanoseconds."""

    name: str
    count: int = 0
    cpu: int = 0  # of a label from its start to its end; of an op without the ops inside it
    # Of the work launched in it; of an op without what ops inside it launched. None where that may
    # be another process's.
    gpu: int | None = 0


@dataclass(frozen=True)
class Survey:
    trace: Trace
    labels: tuple[Total, ...]  # in order of GPU time, then CPU time
    kernels: tuple[Total, ...]  # the most expensive ones; copies and memsets among them
    ops: tuple[Total, ...]
    usage: Usage
    leaked: tuple[GpuEvent, ...]
    lost: tuple[Call, ...]
    undecided: tuple[GpuEvent, ...]


def survey(trace: Trace) -> Survey:
    joined = join(trace)
    answers = joined.answers
    calls = by_thread(trace.calls)
    launched: list[tuple[GpuEvent, int | None]] = [(event, None) for event in joined.leaked]
    launched += [(event, None) for event in joined.undecided]
    for call in trace.calls:
        launched += [(event, call.start) for event in answers.get(id(call), ())]

    def work(call: Call) -> int:
        return sum(event.duration or 0 for event in answers.get(id(call), ()))

    def unclear(call: Call) -> bool:
        return id(call) in joined.undecided_calls

    kernels: dict[str, Total] = {}
    for event in trace.gpu:
        total = kernels.setdefault(event.name, Total(event.name))
        total.count += 1
        total.gpu += event.duration or 0
    return Survey(
        trace,
        _ordered(_labels(trace, calls, work, unclear).values()),
        _ordered(kernels.values())[:TOP],
        _ordered(_ops(trace, calls, work, unclear).values())[:TOP],
        usage(launched),
        tuple(joined.leaked),
        tuple(joined.lost),
        tuple(joined.undecided),
    )


def _ordered(totals) -> tuple[Total, ...]:
    return tuple(sorted(totals, key=lambda total: (-(total.gpu or 0), -total.cpu, total.name)))


def _labels(trace: Trace, calls: dict, work, unclear) -> dict[str, Total]:
    starts = {thread: [call.start for call in made] for thread, made in calls.items()}
    sums = {thread: [0, *accumulate(map(work, made))] for thread, made in calls.items()}
    doubts = {thread: [0, *accumulate(map(unclear, made))] for thread, made in calls.items()}
    labels: dict[str, Total] = {}
    for span in trace.annotations:
        if span.name.startswith("ProfilerStep#"):
            continue
        total = labels.setdefault(span.name, Total(span.name))
        total.count += 1
        if span.end is None:
            continue
        total.cpu += span.end - span.start
        if span.thread in starts:
            low, high = (
                bisect_left(starts[span.thread], moment) for moment in (span.start, span.end)
            )
            if doubts[span.thread][high] > doubts[span.thread][low]:
                total.gpu = None
            elif total.gpu is not None:
                total.gpu += sums[span.thread][high] - sums[span.thread][low]
    return labels


def _ops(trace: Trace, calls: dict, work, unclear) -> dict[str, Total]:
    """One walk over each thread: ops and calls in order of start, the open ops on a stack."""
    totals: dict[str, Total] = {}
    for thread, ops in by_thread(trace.ops).items():
        ops = sorted(ops, key=lambda op: (op.start, -(op.end or op.start)))
        launches = iter(calls.get(thread, ()))
        launch = next(launches, None)
        stack: list = []

        def innermost(moment: int, stack=stack):
            while stack and (stack[-1].end or 0) <= moment:
                stack.pop()
            return totals[stack[-1].name] if stack else None

        def count(call: Call) -> None:
            if not (total := innermost(call.start)):  # noqa: B023 — called in this round only
                return
            if unclear(call):
                total.gpu = None
            elif total.gpu is not None:
                total.gpu += work(call)

        for op in ops:
            while launch and launch.start < op.start:
                count(launch)
                launch = next(launches, None)
            above = innermost(op.start)
            total = totals.setdefault(op.name, Total(op.name))
            total.count += 1
            if op.end is not None:
                total.cpu += op.end - op.start
                if above:
                    above.cpu -= min(op.end, stack[-1].end) - op.start
                stack.append(op)
        while launch:
            count(launch)
            launch = next(launches, None)
    return totals
