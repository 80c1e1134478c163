"""Every GPU event of a trace, whatever its label, with its kind and the ops around its launch."""

from array import array
from collections.abc import Iterator
from typing import NamedTuple

from .kinds import kind_of_step
from .lanes import Spans
from .linked import Linked
from .trace import Call, GpuEvent, Thread


class Ways:
    """The chains of op names of a trace, each once, by number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[int, str], int] = {}
        self._links: list[tuple[int, str]] = []

    def of(self, spans: Spans) -> array:
        """For each op of a thread the number of its chain. Parents stand before their children."""
        found, numbers, links = array("i"), self._numbers, self._links
        for span, parent in zip(spans.spans, spans.parents, strict=True):
            link = (found[parent] if parent >= 0 else -1), span.name
            number = numbers.get(link)
            if number is None:
                number = numbers[link] = len(links)
                links.append(link)
            found.append(number)
        return found

    def path(self, number: int) -> tuple[str, ...]:
        """Outermost first."""
        names = []
        while number >= 0:
            number, name = self._links[number]
            names.append(name)
        return tuple(reversed(names))


class Event(NamedTuple):
    """A GPU event of a credible time, and whence it came; None where that is unknown."""

    event: GpuEvent
    kind: str
    way: int  # of Ways; -1: no op
    call: Call | None
    thread: Thread | None
    op: int  # its index among the thread's; -1: none


def events(linked: Linked, ways: Ways) -> Iterator[Event]:
    kinds: dict[tuple[int, str, str], str] = {}

    def kind(event: GpuEvent, way: int) -> str:
        key = way, event.name, event.sort
        if (found := kinds.get(key)) is None:
            found = kinds[key] = kind_of_step(ways.path(way), event.name, event.sort)
        return found

    placed, joined, timeless = linked.placed, linked.joined, linked.timeless
    for event in (*joined.leaked, *joined.undecided):
        if id(event) not in timeless:
            yield Event(event, kind(event, -1), -1, None, None, -1)
    for call_id in placed.unknown:
        for event in joined.answers.get(call_id, ()):
            if id(event) not in timeless:
                yield Event(event, kind(event, -1), -1, None, None, -1)
    for thread, working in placed.threads.items():
        spans = linked.lanes.ops.get(thread)
        numbers = ways.of(spans) if spans else array("i")
        for call, op in zip(working.calls, working.ops, strict=True):
            if placed.unknown and id(call) in placed.unknown:
                continue
            way = numbers[op] if op >= 0 else -1
            for event in joined.answers.get(id(call), ()):
                if id(event) not in timeless:
                    yield Event(event, kind(event, way), way, call, thread, op)
