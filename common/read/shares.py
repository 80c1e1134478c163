"""What a GPU's time went to, by kind of work: each moment once, idle time included.

A moment in which several events run belongs to the one that began first; communication counts only
where nothing else runs, for what is hidden behind computing costs nothing.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .owners import merged
from .trace import GpuEvent


@dataclass(frozen=True, slots=True)
class Shares:
    """Nanoseconds, of all GPUs together; `kinds` and `idle` add up to `whole`."""

    whole: int
    idle: int
    kinds: dict[str, int]  # the most expensive first

    def of(self, ns: float) -> float:
        return ns / self.whole if self.whole else 0.0


def shares(parts: Iterable[Iterable[tuple[GpuEvent, str]]]) -> Shares:
    """Of the parts, forwards say, together: what lies between two of them is nobody's."""
    whole = busy = 0
    kinds: dict[str, int] = defaultdict(int)
    for part in parts:
        gpus: dict[tuple, list[tuple[int, int, str]]] = {}
        for event, kind in part:
            if event.start is not None and event.duration is not None:
                span = event.start, event.start + event.duration, kind
                gpus.setdefault(event.place, []).append(span)
        for spans in gpus.values():
            spans.sort()
            whole += max(end for _, end, _ in spans) - spans[0][0]
            busy += _count(spans, kinds)
    ordered = sorted(
        ((kind, ns) for kind, ns in kinds.items() if ns), key=lambda one: (-one[1], one[0])
    )
    return Shares(whole, whole - busy, dict(ordered))


def _count(spans: list[tuple[int, int, str]], kinds: dict[str, int]) -> int:
    """The time of one GPU by kind, into `kinds`; returns the time in which anything ran."""
    talk = [(start, end) for start, end, kind in spans if kind == "communication"]
    until, busy = spans[0][0], 0
    for start, end, kind in spans:
        if kind != "communication" and end > until:
            alone = end - max(start, until)
            kinds[kind] += alone
            busy += alone
            until = end
    if talk:
        either = sum(end - start for start, end in merged((start, end) for start, end, _ in spans))
        kinds["communication"] += either - busy
        busy = either
    return busy
