"""The whole of a trace, where no region is singled out: labels, kernels, ops, the GPU's time."""

from collections.abc import Iterable
from dataclasses import dataclass

from .communication import Moved, communication
from .linked import Linked, link
from .owners import merged
from .trace import GpuEvent, Trace
from .usage import Usage, usage

TOP = 10


@dataclass(slots=True)
class Total:
    """What all events of one name come to. Times in nanoseconds; None is unknown."""

    name: str
    count: int = 0
    cpu: int | None = 0  # of an op without the ops inside it
    gpu: int | None = 0  # of an op without what ops inside it launched

    def add_cpu(self, ns: int) -> None:
        if self.cpu is not None:
            self.cpu += ns

    def add_gpu(self, ns: int | None) -> None:
        self.gpu = None if self.gpu is None or ns is None else self.gpu + ns


@dataclass(frozen=True, slots=True)
class Label:
    """A label's time in nanoseconds. None is unknown."""

    name: str
    count: int
    cpu: int | None  # from start to end; a range inside another one of this label counts once
    own: int | None  # GPU time of what its own threads launched
    others: int | None  # of what autograd threads launched for it while it waited
    gpu: int | None  # both
    busy: int | None  # time in which any of it ran
    backward: int | None  # GPU time of the backward of its forward ops, wherever that ran


@dataclass(frozen=True, slots=True)
class ProfilerStep:
    """One step of the profiler's schedule. Nanoseconds; None is unknown."""

    name: str
    cpu: int
    gpu: int | None  # of what was launched in it, by autograd threads for it too


@dataclass(frozen=True)
class Survey:
    trace: Trace
    linked: Linked
    labels: tuple[Label, ...]  # in order of GPU time, then CPU time
    unlabelled: int | None  # GPU time under no label
    unlinked_backward: int | None  # GPU time of backward ops whose forward op is not known
    kernels: tuple[Total, ...]  # the most expensive ones; copies and memsets among them
    ops: tuple[Total, ...]
    usage: Usage
    steps: tuple[ProfilerStep, ...]
    communication: tuple[Moved, ...]


def survey(linked: Linked | Trace) -> Survey:
    linked = link(linked) if isinstance(linked, Trace) else linked
    trace, owners = linked.trace, linked.owners
    kernels: dict[str, Total] = {}
    for event in trace.gpu:
        total = kernels.setdefault(event.name, Total(event.name))
        total.count += 1
        total.add_gpu(None if id(event) in linked.timeless else event.duration)
    whole = (
        None
        if any(total.gpu is None for total in kernels.values())
        else sum(total.gpu or 0 for total in kernels.values())
    )
    labelled = owners.labelled
    return Survey(
        trace,
        linked,
        _labels(linked),
        None if whole is None or labelled is None else whole - labelled,
        owners.unlinked_backward,
        _ordered(kernels.values())[:TOP],
        _ordered(_ops(linked).values())[:TOP],
        usage([linked.launched()], linked.culprits),
        tuple(
            ProfilerStep(span.name, span.end - span.start, owners.during(span))
            for span in trace.annotations
            if span.is_profiler_step and span.end is not None
        ),
        communication(trace.gpu),
    )


def _ordered(totals: Iterable[Total]) -> tuple[Total, ...]:
    return tuple(
        sorted(totals, key=lambda total: (-(total.gpu or 0), -(total.cpu or 0), total.name))
    )


# ── Labels ────────────────────────────────────────────────────────────────────────────────────────


def _labels(linked: Linked) -> tuple[Label, ...]:
    counts: dict[str, int] = {}
    times: dict[str, dict] = {}
    # A range without its time; and a label none of whose ranges ended.
    unknown: set[str] = {one.name for one in linked.trace.untimed if one.sort == "region"}
    for span in linked.trace.annotations:
        if span.is_profiler_step:
            continue
        counts[span.name] = counts.get(span.name, 0) + 1
        on_threads = times.setdefault(span.name, {})
        if span.end is not None:
            on_threads.setdefault(span.thread, []).append((span.start, span.end))
    for one in linked.trace.untimed:
        if one.sort == "region" and not one.name.startswith("ProfilerStep#"):
            counts[one.name] = counts.get(one.name, 0) + 1
    unknown |= {name for name, on_threads in times.items() if not on_threads}
    overlapping = _overlapping(linked.trace.gpu)
    found = []
    for name, count in counts.items():
        owned = linked.owners.of(name)
        gpu = None if name in unknown else owned.all
        cpu = sum(
            end - start for spans in times.get(name, {}).values() for start, end in merged(spans)
        )
        busy = gpu
        if gpu and overlapping:
            busy = busy_time(linked.owners.events(name))
        found.append(
            Label(
                name,
                count,
                None if name in unknown else cpu,
                None if name in unknown else owned.own,
                None if name in unknown else owned.others,
                gpu,
                None if gpu is None else busy,
                owned.backward,
            )
        )
    found.sort(key=lambda label: (-(label.gpu or 0), -(label.cpu or 0), label.name))
    return tuple(found)


def busy_time(events: Iterable[GpuEvent]) -> int:
    """Nanoseconds in which any of the events ran, each moment of a GPU counted once."""
    gpus: dict[tuple, list[tuple[int, int]]] = {}
    for event in events:
        if event.start is not None and event.duration is not None:
            span = event.start, event.start + event.duration
            gpus.setdefault(event.place, []).append(span)
    return sum(end - start for spans in gpus.values() for start, end in merged(spans))


def _overlapping(events: Iterable[GpuEvent]) -> bool:
    """Whether any two events of one GPU run at the same time."""
    until: dict[tuple, int] = {}
    timed = [event for event in events if event.end is not None]
    for event in sorted(timed, key=lambda event: event.start or 0):
        if (event.start or 0) < until.get(event.place, event.start or 0):
            return True
        until[event.place] = event.end or 0
    return False


# ── Ops ───────────────────────────────────────────────────────────────────────────────────────────


def _ops(linked: Linked) -> dict[str, Total]:
    totals: dict[str, Total] = {}
    for thread, ops in linked.lanes.ops.items():
        spans, parents = ops.spans, ops.parents
        for span, parent in zip(spans, parents, strict=True):
            try:
                total = totals[span.name]
            except KeyError:
                total = totals[span.name] = Total(span.name)
            total.count += 1
            if span.end is None:
                continue
            total.add_cpu(span.end - span.start)
            if parent >= 0:
                above = spans[parent]
                totals[above.name].add_cpu(span.start - min(span.end, above.end or span.end))
        if working := linked.placed.threads.get(thread):
            for call, index in zip(working.calls, working.ops, strict=True):
                if index >= 0:
                    totals[spans[index].name].add_gpu(linked.owners.work(call))
    for one in linked.trace.untimed:
        if one.sort == "op":
            total = totals.setdefault(one.name, Total(one.name))
            total.count += 1
            total.cpu = total.gpu = None
    return totals
