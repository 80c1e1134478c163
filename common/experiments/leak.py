"""leak: is the table's "Self CUDA time total" the time of the forwards? The same attention recorded
with and without one synchronise at the end of the warm-up."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..cli import UserError, shown
from ..read.known import known, total
from ..read.observe import Observation
from ..show.words import microseconds, plural
from ..story import Story
from . import Asked, Recipe, Recorded, Result, Synchronise, us

UNITS = {"us": 1e3, "ms": 1e6, "s": 1e9}


@dataclass(frozen=True)
class Leak:
    """One recording: its GPU events and the table's total."""

    seen: Observation
    story: Story

    @property
    def joined(self) -> int:
        return sum(step.gpu is not None for f in self.seen.forwards for step in f.steps)

    @property
    def total_ns(self) -> float | None:
        """The profiler's own figure, as its table prints it: three decimals."""
        text = self.story.table_totals.get("Self CUDA time total", "")
        found = re.fullmatch(r"([\d.]+)(us|ms|s)", text)
        return float(found[1]) * UNITS[found[2]] if found else None

    @property
    def file_ns(self) -> float | None:
        return total(event.duration for event in self.seen.trace.gpu)

    @property
    def leaked_ns(self) -> float | None:
        return total(event.duration for event in self.seen.leaked)

    @property
    def from_warm_up(self) -> bool:
        """Whether something has no launch in the file, and all such started before all that has
        one. Otherwise launch records may have been lost."""
        launched = known(s.gpu.start for f in self.seen.forwards for s in f.steps if s.gpu)
        starts = known(event.start for event in self.seen.leaked)
        if not starts or not launched:
            return False
        return max(starts) < min(launched)

    @property
    def total_is_of_the_file(self) -> bool:
        """Whether the table's total is the sum of all GPU events, as exactly as it is printed."""
        if self.total_ns is None or self.file_ns is None:
            return False
        unit = next((unit for unit in UNITS.values() if self.total_ns < 1000 * unit), 1e9)
        return abs(self.total_ns - self.file_ns) <= unit / 1e3


def read(seen: Sequence[Recorded]) -> Result:
    by = {s.variant: Leak(s.seen, s.story) for s in seen}
    missing = [name for name in ("never", "warm-up") if name not in by]
    if missing:
        raise UserError(f"leak lays two recordings side by side, and {missing[0]} is not there")
    lines, found = [], []
    for name in ("never", "warm-up"):
        one = by[name]
        kernels = sum(event.sort == "kernel" for event in one.seen.trace.gpu)
        forwards = len(one.seen.forwards)
        lines.append(
            [
                {"never": "not synchronised", "warm-up": "synchronised after the warm-up"}[name],
                f"{len(one.seen.trace.gpu)}",
                f"{one.joined}",
                f"{len(one.seen.leaked)}",
                microseconds(one.total_ns),
                microseconds(one.seen.gpu_sum_ns),
            ]
        )
        found.append(
            {
                "file": shown(one.seen.trace.path),
                "synchronised": name != "never",
                "forwards": forwards,
                "kernels": kernels,
                "gpu_events": len(one.seen.trace.gpu),
                "joined_gpu_events": one.joined,
                "gpu_events_without_launch": len(one.seen.leaked),
                "table_total_us": us(one.total_ns),
                "file_sum_us": us(one.file_ns),
                "forwards_sum_us": us(one.seen.gpu_sum_ns),
            }
        )
    heads = (
        "recording", "GPU events\nin the file", "joined to\na forward", "without\na launch",
        "the table's\ntotal", "GPU time of\nthe forwards",
    )  # fmt: skip
    never, after = by["never"], by["warm-up"]
    conclusions = [_of_total("Not synchronised", never), _of_total("Synchronised", after)]
    if after.from_warm_up:
        conclusions.append("The synchronise did not keep them out.")
    elif never.from_warm_up and not after.seen.leaked:
        conclusions.append("One synchronise at the end of the warm-up keeps them out.")
    elif not never.seen.leaked and not after.seen.leaked:
        conclusions.append(
            "Here the synchronise makes no difference: the warm-up's work had ended before "
            "recording started. Longer forwards may show one."
        )
    return Result(heads, lines, found, conclusions)


def _of_total(how: str, one: Leak) -> str:
    """What the table's total of this recording holds."""
    if one.total_ns is None:
        return f"{how}: the recording does not tell the table's total."
    total = f"{how}: the table's total, {microseconds(one.total_ns)},"
    if not one.total_is_of_the_file:
        return f"{total} is not the sum of the file's GPU events, {microseconds(one.file_ns)}."
    leaked = one.seen.leaked
    others = len(one.seen.trace.gpu) - one.joined - len(leaked)
    if not leaked and not others:
        return f"{total} is the GPU time of the forwards."
    holds = []
    if leaked:
        count = plural(len(leaked), "event")
        time = microseconds(one.leaked_ns)
        whence = (
            "launched by the warm-up and still running when recording started"
            if one.from_warm_up
            else "without a launch in the file"
        )
        holds.append(f"{count} of {time}, {whence}")
    if others:
        holds.append(f"{plural(others, 'event')} launched outside the forwards")
    return f"{total} holds more than the forwards: {' and '.join(holds)}."


def recipes(asked: Asked) -> list[Recipe]:
    from .. import scripts
    from ..lesson import Options

    lesson = scripts.load("04_b_inplace_ops_attention").lesson(Options())
    attention = lesson.build(asked.work)
    ways: tuple[Synchronise, ...] = ("never", "warm-up")
    return [Recipe(how, asked.work, attention, lesson.subject, synchronise=how) for how in ways]
