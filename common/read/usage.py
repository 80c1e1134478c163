"""What a GPU did with its time: idle and why, on Tensor Cores, copying, communicating."""

import operator
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from .kernel_names import decode
from .kinds import MAY_USE_TENSOR_CORES, kind_of_kernel
from .trace import GpuEvent


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
    cores_unknown: int = 0  # kernels that may use them, and whose names do not tell
    copies: int = 0  # and memsets
    communication: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(*map(operator.add, _figures(self), _figures(other)))

    @property
    def idle(self) -> int:
        return self.launch_bound + self.waiting + self.idle_unknown


_figures = operator.attrgetter(*Usage.__dataclass_fields__)


def usage(launched: Iterable[tuple[GpuEvent, int | None]]) -> Usage:
    """Of GPU events, each with the start of its launch call where that is known."""
    gpus = defaultdict(list)
    for pair in launched:
        if pair[0].end is not None:
            gpus[pair[0].place].append(pair)
    return sum(map(_one_device, gpus.values()), Usage())


def _one_device(events: list[tuple[GpuEvent, int | None]]) -> Usage:
    events.sort(key=_start)
    first = until = events[0][0].start
    busy = launch_bound = waiting = idle_unknown = 0
    work = tensor_cores = cores_unknown = copies = communication = 0
    for event, launch in events:
        start, duration = event.start, event.duration
        if (gap := start - until) > 0:
            if launch is None:
                idle_unknown += gap
            elif launch >= until:
                launch_bound += gap
            else:
                waiting += gap
        end = start + duration
        if end > until:
            busy += end - max(start, until)
            until = end
        work += duration
        if event.sort != "kernel":
            copies += duration
            continue
        share = _share(event.name)
        if share == "communication":
            communication += duration
        elif share == "Tensor Cores":
            tensor_cores += duration
        elif share == "cores unknown":
            cores_unknown += duration
    return Usage(
        events=len(events),
        span=until - first,
        busy=busy,
        launch_bound=launch_bound,
        waiting=waiting,
        idle_unknown=idle_unknown,
        work=work,
        tensor_cores=tensor_cores,
        cores_unknown=cores_unknown,
        copies=copies,
        communication=communication,
    )


@lru_cache(maxsize=65536)
def _share(name: str) -> str | None:
    """Which of the shares a kernel's time belongs to."""
    kernel = decode(name)
    kind = kind_of_kernel(kernel)
    if kind == "communication":
        return kind
    if kernel.tensor_cores:
        return "Tensor Cores"
    unknown = kernel.tensor_cores is None and kind in MAY_USE_TENSOR_CORES
    return "cores unknown" if unknown else None


def _start(pair: tuple[GpuEvent, int | None]) -> int:
    return pair[0].start
