"""What a trace's communication moves, and among whom.

The args of an event say so: a kernel's name lies (a `Broadcast_…_int8_t` moves what the args say),
and one kernel name serves several collectives. What no args tell is unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from .kernel_names import decode
from .kinds import kind_of_kernel
from .trace import Collective, GpuEvent


@dataclass(slots=True)
class Moved:
    """All events of one collective among the same ranks. Nanoseconds; None is unknown."""

    collective: Collective
    told_by_args: bool  # else the name alone is known, from the kernel's
    count: int = 0
    gpu: int | None = 0


def communication(events: Iterable[GpuEvent]) -> tuple[Moved, ...]:
    """The dearest first."""
    found: dict[tuple[Collective, bool], Moved] = {}
    for event in events:
        if event.sort != "kernel":
            continue
        told = event.collective
        if told is None:
            kernel = decode(event.name)
            if kind_of_kernel(kernel) != "communication":
                continue
            said = kernel.op or kernel.family
            collective = Collective(said, None, None, None, None, None, None)
        else:
            collective = told
        key = collective, told is not None
        if (moved := found.get(key)) is None:
            moved = found[key] = Moved(*key)
        moved.count += 1
        known = moved.gpu is not None and event.duration is not None
        moved.gpu = (moved.gpu or 0) + (event.duration or 0) if known else None
    return tuple(sorted(found.values(), key=lambda one: -(one.gpu or 0)))
