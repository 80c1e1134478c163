"""Memory over a recording: how much was held, when it was most, and whose it was then.

The profiler records blocks that are taken and given back, each with what the allocator then holds
in all. So the curve and its peak are the allocator's own. A block that was taken in the recording
belongs to the op, label and module around its taking. What was held before belongs to nobody here:
parameters, optimizer states, what the caller keeps.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .linked import Linked
from .places import Places
from .trace import Allocation

CPU = 0  # torch's number of the device type


@dataclass(frozen=True, slots=True)
class Holder:
    """Blocks of one op, label or module that stand in memory at the peak. A name of None: none was
    open when they were taken."""

    name: str | None
    bytes: int
    blocks: int


@dataclass(frozen=True)
class Memory:
    """Of one device. Bytes, nanoseconds; None is unknown."""

    device: tuple[int | None, int | None]
    taken: int  # blocks taken in the recording
    returned: int
    first: int  # when the first of both happened
    last: int
    curve: tuple[tuple[int, int], ...]  # (ns, bytes held from then on), in order
    peak: int
    peak_at: int
    reserved: int | None  # by the allocator, at the peak
    begin: int  # held when recording began
    end: int
    before: int | None  # of the peak, taken before recording began
    by_op: tuple[Holder, ...]  # of the peak's others, the largest first
    by_label: tuple[Holder, ...]
    by_module: tuple[Holder, ...]
    odd: int  # events that contradict the one before: the allocator's sum, or a block taken twice


def memory(linked: Linked) -> tuple[Memory, ...]:
    """Of every device whose memory was recorded: accelerators first, then the CPU's."""
    devices: dict[tuple, list[Allocation]] = {}
    for one in linked.trace.allocations:
        if one.allocated is not None:
            devices.setdefault(one.device, []).append(one)
    places = Places(linked) if devices else None
    found = []
    for device in sorted(devices, key=lambda it: (it[0] == CPU, str(it))):
        events = sorted(devices[device], key=lambda one: one.start)
        assert places is not None
        found.append(_memory(linked, places, device, events))
    return tuple(found)


def _memory(linked: Linked, places: Places, device: tuple, events: list[Allocation]) -> Memory:
    held = [one.allocated or 0 for one in events]
    # The sum of the first of equal peaks: what is held then is what made it.
    at = max(range(len(events)), key=lambda index: held[index])
    live, odd = _live(events[: at + 1])
    odd += sum(
        one.allocated != before + one.bytes for before, one in zip(held, events[1:], strict=False)
    )
    begin = held[0] - events[0].bytes
    peak = held[at]
    before = peak - sum(one.bytes for one in live)
    return Memory(
        device,
        sum(one.bytes > 0 for one in events),
        sum(one.bytes < 0 for one in events),
        events[0].start,
        events[-1].start,
        tuple((one.start, one.allocated or 0) for one in events),
        peak,
        events[at].start,
        events[at].reserved,
        begin,
        held[-1],
        before if before >= 0 else None,
        _held((_op(linked, one), one.bytes) for one in live),
        _held((places.at(one.thread, one.start).label, one.bytes) for one in live),
        _held((places.at(one.thread, one.start).module, one.bytes) for one in live),
        odd,
    )


def _live(events: list[Allocation]) -> tuple[list[Allocation], int]:
    """The blocks that stand at the end, and how many were taken while they stood."""
    standing: dict[int | None, Allocation] = {}
    odd = 0
    for one in events:
        if one.bytes > 0:
            odd += one.address in standing
            standing[one.address] = one
        else:
            standing.pop(one.address, None)  # of one taken before there is nothing to forget
    return list(standing.values()), odd


def _op(linked: Linked, one: Allocation) -> str | None:
    if (ops := linked.lanes.ops.get(one.thread)) is None:
        return None
    index = ops.at(one.start)
    return ops.spans[index].name if index >= 0 else None


def _held(parts: Iterable[tuple[str | None, int]]) -> tuple[Holder, ...]:
    sums: dict[str | None, list[int]] = {}
    for name, size in parts:
        both = sums.setdefault(name, [0, 0])
        both[0] += size
        both[1] += 1
    found = [Holder(name, size, count) for name, (size, count) in sums.items()]
    return tuple(sorted(found, key=lambda one: (-one.bytes, one.name or "")))


def thinned(seen: Memory, points: int) -> Iterator[tuple[int, int]]:
    """The curve in so many stretches of equal time at the most: of each its end, and the most that
    was held in it."""
    whole = seen.last - seen.first
    bounds = [seen.first + whole * number // points for number in range(1, points + 1)]
    held, index, curve = seen.begin, 0, seen.curve
    for number, bound in enumerate(bounds):
        most, last = held, number == points - 1
        while index < len(curve) and (curve[index][0] < bound or last):
            held = curve[index][1]
            most = max(most, held)
            index += 1
        yield bound, most
