"""Memory over a recording: the curve, its peak, and whose it was then."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..cli import UserError, shown
from ..read.linked import Linked
from ..read.memory import CPU, Holder, Memory, thinned
from .as_json import us
from .language import in_english
from .modules import left_out
from .terminal import print_plain, show_columns
from .words import duration, percent, plural, size

COLUMNS, ROWS = 64, 6  # of the picture
POINTS = 200  # of the curve in JSON
FEW = 8  # ops, labels, modules
FLAG = "profile(…, profile_memory=True)"
CUDA = 1  # torch's numbers of device types
DEVICES = {CPU: "CPU", CUDA: "GPU"}
BLOCKS = " ▁▂▃▄▅▆▇█"


def require_memory(linked: Linked, seen: Sequence[Memory]) -> None:
    if not seen:
        raise UserError(
            f"{shown(linked.trace.path)}: memory was not recorded; record again with {FLAG}"
        )


@in_english
def show_memory(out: Console, linked: Linked, seen: Sequence[Memory]) -> None:
    """Of each device, the CPU only where there is no other. Raises UserError where there is
    none."""
    require_memory(linked, seen)
    devices = sorted({str(d["name"]) for d in linked.trace.devices if "name" in d})
    print_plain(out, Text(" · ".join([shown(linked.trace.path), *devices]), "bold"))
    for one in [one for one in seen if one.device[0] != CPU] or seen:
        _show_device(out, one)


def _show_device(out: Console, seen: Memory) -> None:
    print_plain(
        out,
        f"\n{named(seen.device)}: peak {size(seen.peak)}, {duration(seen.peak_at - seen.first)} "
        f"after the first of {plural(seen.taken, 'block')} taken ({seen.returned} given back)",
    )
    words = f"{size(seen.begin)} held when recording began, {size(seen.end)} at its end"
    if seen.reserved:
        words += f" · {size(seen.reserved)} reserved by the allocator at the peak"
    print_plain(out, words)
    print_plain(out)
    for line in picture(seen):
        print_plain(out, Text(line, no_wrap=True, overflow="ignore"))
    for what, holders in (
        ("op", seen.by_op),
        ("label", seen.by_label),
        ("module", seen.by_module),
    ):
        if what != "op" and all(one.name is None for one in holders):
            continue
        print_plain(out)
        _show_holders(out, seen, what, holders)
    if seen.odd:
        events = plural(seen.odd, "memory event")
        print_plain(
            out,
            Text(
                f"warning: {events} at odds with the one before: some are missing, and what is "
                "held by whom is a lower bound",
                "yellow",
            ),
        )


def named(device: tuple[int | None, int | None]) -> str:
    kind, number = device
    if kind is None:
        return "unknown device"
    name = DEVICES.get(kind, f"device of type {kind}")
    return name if number is None else f"{name} {number}"


def picture(seen: Memory) -> list[str]:
    """The most that was held in each of COLUMNS stretches of equal time, from 0 to the peak."""
    heights = [held for _, held in thinned(seen, COLUMNS)]
    eighths = [round(8 * ROWS * height / (seen.peak or 1)) for height in heights]
    lines = []
    for row in reversed(range(ROWS)):
        label = size(seen.peak) if row == ROWS - 1 else "0" if row == 0 else ""
        bars = "".join(BLOCKS[min(8, max(0, eighth - 8 * row))] for eighth in eighths)
        lines.append(f"{label:>9} {bars}".rstrip())
    whole = duration(seen.last - seen.first)
    return [*lines, f"{'':9} 0{whole:>{COLUMNS - 1}}"]


def _show_holders(out: Console, seen: Memory, what: str, holders: Sequence[Holder]) -> None:
    head = f"held at the peak, by {what}"

    def row(name: str, count: int | None, blocks: str) -> list[str]:
        share = "" if count is None or not seen.peak else percent(count / seen.peak)
        return [name, size(count), share, blocks]

    lines = [
        row(one.name or f"under no {what}", one.bytes, f"{one.blocks:,}") for one in holders[:FEW]
    ]
    if more := holders[FEW:]:
        blocks = sum(one.blocks for one in more)
        other = plural(len(more), "other")
        lines.append(row(other, sum(one.bytes for one in more), f"{blocks:,}"))
    lines.append(row("taken before recording began", seen.before, ""))
    show_columns(out, [head, "memory", "of peak", "blocks"], lines, {head})


@in_english
def memory_json(linked: Linked, seen: Sequence[Memory], top: int | None = None) -> dict:
    """For programs; `top` leaves out all but so many ops, labels, modules, and the curve.

    Raises UserError where memory was not recorded.
    """
    require_memory(linked, seen)
    return {"file": shown(linked.trace.path), "devices": [_device_json(one, top) for one in seen]}


def _device_json(seen: Memory, top: int | None) -> dict:
    def holders(found: Sequence[Holder]) -> list[dict]:
        return [{"name": one.name, "bytes": one.bytes, "blocks": one.blocks} for one in found[:top]]

    lists = {"by_op": seen.by_op, "by_label": seen.by_label, "by_module": seen.by_module}
    return {
        "device": named(seen.device),
        "blocks_taken": seen.taken,
        "blocks_returned": seen.returned,
        "span_us": us(seen.last - seen.first),
        "begin_bytes": seen.begin,
        "end_bytes": seen.end,
        "peak_bytes": seen.peak,
        "peak_at_us": us(seen.peak_at - seen.first),
        "reserved_at_peak_bytes": seen.reserved,
        "taken_before_bytes": seen.before,
        **{name: holders(found) for name, found in lists.items()},
        "curve": [[us(at - seen.first), held] for at, held in thinned(seen, POINTS)]
        if top is None
        else None,
        "odd_events": seen.odd,
        **left_out({name: (len(found), top) for name, found in lists.items()}),
    }
