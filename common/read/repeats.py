"""One recording as a small value: what a forward of it costs, in all and step by step.

What is counted as one is a forward of the region, where there is one that stands for the trace;
else a step of the profiler's schedule; else the whole recording. Of several in a file the median
stands for it: they share a process, a clock and a cache, and are no repeats.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal, TypeAlias

from .kernel_names import decode
from .kinds import kind_of_kernel
from .known import known, total
from .labels import is_incidental
from .linked import Linked, link
from .observe import Forward, Observation, Step, observe, time_of
from .steps import launched, profiled_steps
from .survey import busy_time
from .trace import GpuEvent, Trace
from .usage import usage

Unit: TypeAlias = Literal["forward", "profiler step", "recording"]
METRICS = ("work", "busy", "elapsed")


@dataclass(frozen=True, slots=True)
class Part:
    """A step of a unit, or all steps of one kernel. Nanoseconds a unit; None is unknown."""

    kind: str
    name: str
    count: float  # a unit
    ns: float | None


@dataclass(frozen=True, slots=True)
class Repeat:
    """Nanoseconds a unit; None is unknown."""

    file: str
    unit: Unit
    region: str | None
    units: int
    on_gpu: bool  # else all times are the CPU's
    work: float | None  # sum of what was launched in it and for it
    busy: float | None  # time in which any of it ran
    elapsed: float | None  # from one to the next, idle time too
    parts: tuple[Part, ...]
    records: str | None  # what a recording of ours tells that it records
    device: str | None

    def metric(self, name: str) -> float | None:
        return {"work": self.work, "busy": self.busy, "elapsed": self.elapsed}[name]


def only_label(linked: Linked) -> str | None:
    """The label that stands for the whole trace: that of our own recordings, or the only one that
    somebody gave, if most of the GPU's time is its."""
    if linked.trace.story:
        return linked.trace.story.label
    labels = list(linked.trace.labels)
    if len(labels) != 1 or is_incidental(labels[0]):
        return None
    its, all_of_it = linked.owners.of(labels[0]).all, linked.owners.launched
    # Where no GPU time is known, none speaks against it.
    return None if all_of_it and its is not None and its * 2 <= all_of_it else labels[0]


def repeat_of(trace: Trace, name: str, region: str | None = None) -> Repeat:
    """`name` is what the file is called. Raises UserError for a region that is not there."""
    linked = link(trace)
    label = only_label(linked) if region is None else region
    if label is not None:
        return _of_region(observe(linked, label), name)
    if any(span.is_profiler_step and span.end is not None for span in trace.annotations):
        return _of_steps(linked, name)
    return _of_all(linked, name)


def _of_region(seen: Observation, name: str) -> Repeat:
    forwards, on_gpu = seen.forwards, seen.on_gpu
    whole = seen.usage_of_recording if on_gpu else None
    undecided = bool(seen.undecided_calls)
    work = [_work(one) if on_gpu else one.cpu_ns for one in forwards]
    busy = [_busy(one) if on_gpu else one.cpu_ns for one in forwards]
    story = seen.story
    steps = [step for one in forwards for step in (*one.steps, *one.others)]
    return Repeat(
        name,
        "forward",
        seen.region,
        len(forwards),
        on_gpu,
        None if undecided else _median(work),
        None if undecided else _median(busy),
        whole.span / len(forwards) if whole and whole.events and forwards else seen.cpu_ns,
        _parts([(step.kind, step.name, step.ns) for step in steps], len(forwards)),
        " ".join(map(str, (*story.key, story.dtype, list(story.shape), story.mode))).replace(
            "  ", " "
        )
        if story
        else None,
        _device(seen.trace),
    )


def _work(forward: Forward) -> int | None:
    """A forward that launched nothing took no GPU time, if nothing was lost."""
    if forward.lost or forward.undecided:
        return None
    own = forward.gpu_ns if forward.steps else 0
    return total((own, time_of(forward.others) if forward.others else 0))


def _busy(forward: Forward) -> int | None:
    if _work(forward) is None:
        return None
    steps: Iterable[Step] = (*forward.steps, *forward.others)
    return busy_time(step.on_gpu.event for step in steps if step.on_gpu)


def _of_steps(linked: Linked, name: str) -> Repeat:
    found, on_gpu = profiled_steps(linked).steps, bool(linked.trace.gpu)
    spans = [s for s in linked.trace.annotations if s.is_profiler_step and s.end is not None]
    events = [event for span in spans for event in launched(linked, span)]
    return Repeat(
        name,
        "profiler step",
        None,
        len(found),
        on_gpu,
        _median([step.gpu if on_gpu else step.cpu for step in found]),
        _median([step.busy if on_gpu else step.cpu for step in found]),
        _median([step.cpu for step in found]),
        _parts(_of_events(events), len(found)),
        None,
        _device(linked.trace),
    )


def _of_all(linked: Linked, name: str) -> Repeat:
    used = usage([linked.launched()], linked.culprits)
    events = [event for event in linked.trace.gpu if id(event) not in linked.timeless]
    whole = total(
        None if id(event) in linked.timeless else event.duration for event in linked.trace.gpu
    )
    on_gpu = bool(linked.trace.gpu)
    return Repeat(
        name,
        "recording",
        None,
        1,
        on_gpu,
        whole if on_gpu else None,
        used.busy if on_gpu and whole is not None else None,
        used.span if on_gpu and whole is not None else None,
        _parts(_of_events(events), 1),
        None,
        _device(linked.trace),
    )


def _of_events(events: Sequence[GpuEvent]) -> list[tuple[str, str, float | None]]:
    return [
        (
            kind_of_kernel(decode(event.name)) or "other" if event.sort == "kernel" else event.sort,
            event.name,
            event.duration,
        )
        for event in events
    ]


def _parts(found: Iterable[tuple[str, str, float | None]], units: int) -> tuple[Part, ...]:
    sums: dict[tuple[str, str], list] = {}
    for kind, name, ns in found:
        both = sums.setdefault((kind, name), [0, 0])
        both[0] += 1
        both[1] = None if ns is None or both[1] is None else both[1] + ns
    return tuple(
        Part(kind, name, count / units, None if ns is None else ns / units)
        for (kind, name), (count, ns) in sums.items()
    )


def _median(values: Sequence[float | None]) -> float | None:
    numbers = known(values)
    return median(numbers) if numbers else None


def _device(trace: Trace) -> str | None:
    if trace.story:
        return trace.story.device.name
    return next((str(device["name"]) for device in trace.devices if "name" in device), None)
