"""What a GPU did with its time: idle and why, on Tensor Cores, copying, communicating."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields

from common.kernel_names import decode
from common.trace import GpuEvent


@dataclass(frozen=True, slots=True)
class Usage:
    """Nanoseconds. Idle times lie between the first and the last event of a device; the others are
    sums of events, those of concurrent streams included. Events without a time are left out."""

    events: int = 0
    span: int = 0  # from the first event's start to the last one's end
    busy: int = 0  # each moment counted once
    launch_bound: int = 0  # idle, and the next launch call came after the GPU had run dry
    waiting: int = 0  # idle, though the next work had been launched: a sync, an event, the queue
    idle_unknown: int = 0  # idle, and the next work's launch is not in the file
    work: int = 0  # all events
    tensor_cores: int = 0
    cores_unknown: int = 0  # kernels whose names do not tell
    copies: int = 0  # and memsets
    communication: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    @property
    def idle(self) -> int:
        return self.launch_bound + self.waiting + self.idle_unknown


def usage(launched: Iterable[tuple[GpuEvent, int | None]]) -> Usage:
    """Of GPU events, each with the start of its launch call where that is known."""
    devices = defaultdict(list)
    for event, launch in launched:
        if event.end is not None:
            devices[str(event.device)].append((event, launch))
    total = Usage()
    for events in devices.values():
        events.sort(key=lambda pair: pair[0].start)
        total += _one_device(events)
    return total


def _one_device(events: list[tuple[GpuEvent, int | None]]) -> Usage:
    sums = dict.fromkeys((field.name for field in fields(Usage)), 0)
    first = until = events[0][0].start
    for event, launch in events:
        if (gap := event.start - until) > 0:
            by = "idle_unknown" if launch is None else "waiting"
            sums["launch_bound" if launch is not None and launch >= until else by] += gap
        sums["busy"] += max(0, event.end - max(event.start, until))
        until = max(until, event.end)
        sums["work"] += event.duration
        if event.sort != "kernel":
            sums["copies"] += event.duration
            continue
        kernel = decode(event.name)
        if kernel.family == "NCCL":
            sums["communication"] += event.duration
        elif kernel.tensor_cores:
            sums["tensor_cores"] += event.duration
        elif kernel.tensor_cores is None:
            sums["cores_unknown"] += event.duration
    return Usage(**sums | {"events": len(events), "span": until - first})
