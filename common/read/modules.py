"""Which module, and which function of somebody's own, a trace's GPU time belongs to.

A module's forward is what was launched while it ran, on its thread; its backward, what the backward
ops of its forward ops launched, wherever they ran. A module inside another one counts in both.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from .frames import MODULE
from .known import total
from .linked import Linked
from .owners import Interval, merged
from .places import Place, Places
from .survey import Total
from .trace import GpuEvent, Thread

TOP = 10  # kernels


@dataclass(frozen=True, slots=True)
class Module:
    """All calls of one module from one place of the tree. Nanoseconds; None is unknown."""

    name: str  # such as Linear_3: the fourth Linear that was called
    calls: int
    cpu: int | None
    forward: int | None  # GPU time
    backward: int | None
    inside: tuple["Module", ...]  # in order of their first call

    @property
    def kind(self) -> str:
        """Its class."""
        head, _, number = self.name.rpartition("_")
        return head if head and number.isdigit() else self.name

    @property
    def gpu(self) -> int | None:
        return total((self.forward, self.backward))


@dataclass(frozen=True, slots=True)
class Share:
    """What of a kernel's time was launched from one place."""

    place: Place
    count: int
    gpu: int | None


@dataclass(frozen=True, slots=True)
class Dear:
    """A kernel that costs much, and from where it was launched, the dearest place first."""

    kernel: Total
    shares: tuple[Share, ...]

    @property
    def by_frame(self) -> tuple[tuple[str | None, bool, int | None], ...]:
        """The same by function: which, whether it is the backward of it, GPU time."""
        sums: dict[tuple[str | None, bool], list[int | None]] = defaultdict(list)
        for share in self.shares:
            sums[share.place.frame, share.place.backward].append(share.gpu)
        found = [(*key, total(times)) for key, times in sums.items()]
        return tuple(sorted(found, key=lambda one: (-(one[2] or 0), str(one))))


@dataclass(frozen=True)
class Code:
    linked: Linked
    modules: tuple[Module, ...]  # the outermost ones
    # Of all that was launched. None is unknown.
    forward: int | None  # in any module
    backward: int | None  # for the backward of any module
    elsewhere: int | None  # for none
    work: int | None  # all of it
    dearest: tuple[Dear, ...]


def code(linked: Linked, top: int = TOP) -> Code:
    """`top`: so many kernels are told of."""
    places = Places(linked)
    root = _Node()
    for thread, spans in places.modules.items():
        nodes: list[_Node] = []
        for span, parent in zip(spans, spans.parents, strict=True):
            above = nodes[parent] if parent >= 0 else root
            name = span.name.removeprefix(MODULE)
            node = above.inside.setdefault(name, _Node())
            nodes.append(node)
            node.calls += 1
            if span.end is None:
                node.unended = True
            else:
                node.times[thread].append((span.start, span.end))
    whole = linked.owners.over(root.all_inside())
    known = _work(linked)
    gpu = whole.own if linked.trace.gpu else None
    backward = whole.backward if linked.trace.gpu else None
    rest = None if known is None or gpu is None else known - gpu - (backward or 0)
    return Code(
        linked,
        root.modules(linked),
        gpu,
        backward,
        rest,
        known,
        _dearest(linked, places, top),
    )


@dataclass(slots=True)
class _Node:
    calls: int = 0
    unended: bool = False
    times: dict[Thread, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    inside: dict[str, "_Node"] = field(default_factory=dict)

    def modules(self, linked: Linked) -> tuple[Module, ...]:
        return tuple(node._module(name, linked) for name, node in self.inside.items())

    def _module(self, name: str, linked: Linked) -> Module:
        times = {thread: merged(spans) for thread, spans in self.times.items()}
        owned = linked.owners.over(times)
        on_gpu = bool(linked.trace.gpu) and not self.unended
        cpu = sum(end - start for spans in times.values() for start, end in spans)
        return Module(
            name,
            self.calls,
            None if self.unended else cpu,
            owned.own if on_gpu else None,
            owned.backward if on_gpu else None,
            self.modules(linked),
        )

    def all_inside(self) -> dict[Thread, list[Interval]]:
        threads: dict[Thread, list[tuple[int, int]]] = defaultdict(list)
        for node in self.inside.values():
            for thread, spans in node.times.items():
                threads[thread] += spans
        return {thread: merged(spans) for thread, spans in threads.items()}


def _work(linked: Linked) -> int | None:
    """All GPU time, launches that are not in the file included."""
    timeless = linked.timeless
    return total(None if id(event) in timeless else event.duration for event in linked.trace.gpu)


def _dearest(linked: Linked, places: Places, top: int) -> tuple[Dear, ...]:
    kernels: dict[str, Total] = {}
    for event in linked.trace.gpu:
        kernel = kernels.setdefault(event.name, Total(event.name))
        kernel.count += 1
        kernel.add_gpu(None if id(event) in linked.timeless else event.duration)
    ordered = sorted(kernels.values(), key=lambda kernel: (-(kernel.gpu or 0), kernel.name))[:top]
    asked = {kernel.name for kernel in ordered}
    found: dict[str, dict[Place, list[GpuEvent]]] = {name: defaultdict(list) for name in asked}
    for thread, working in linked.placed.threads.items():
        for call, moment in zip(working.calls, working.moments, strict=True):
            events = linked.joined.answers.get(id(call), ())
            wanted = [event for event in events if event.name in asked]
            if wanted and id(call) not in linked.placed.unknown:
                place = places.at(thread, moment)
                for event in wanted:
                    found[event.name][place].append(event)
    return tuple(Dear(kernel, _shares(linked, found[kernel.name])) for kernel in ordered)


def _shares(linked: Linked, by_place: dict[Place, list[GpuEvent]]) -> tuple[Share, ...]:
    shares = [
        Share(
            place,
            len(events),
            total(None if id(e) in linked.timeless else e.duration for e in events),
        )
        for place, events in by_place.items()
    ]
    return tuple(sorted(shares, key=lambda share: (-(share.gpu or 0), str(share.place))))


# ── Folded ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Folded:
    """Modules that are built alike and stand beside each other, as one: layers."""

    modules: tuple[Module, ...]
    inside: tuple["Folded", ...]

    @property
    def calls(self) -> int:
        return sum(module.calls for module in self.modules)

    @property
    def cpu(self) -> int | None:
        return total(module.cpu for module in self.modules)

    @property
    def forward(self) -> int | None:
        return total(module.forward for module in self.modules)

    @property
    def backward(self) -> int | None:
        return total(module.backward for module in self.modules)


def folded(modules: Sequence[Module]) -> tuple[Folded, ...]:
    """Neighbours of one class that hold the same, layer by layer; one that holds none stays alone,
    for the two Linears of an MLP are not the same thing twice."""
    return _folded([(module,) for module in modules])


def _folded(groups: Sequence[tuple[Module, ...]]) -> tuple[Folded, ...]:
    """Of groups of modules that correspond to each other: the first Linear of each layer."""
    found = []
    for (_, holds), alike in groupby(groups, key=lambda group: _structure(group[0])):
        same = list(alike)
        runs = [tuple(module for group in same for module in group)] if holds else same
        for run in runs:
            found.append(Folded(run, _inside(run)))
    return tuple(found)


def _inside(alike: tuple[Module, ...]) -> tuple[Folded, ...]:
    return _folded(list(zip(*(module.inside for module in alike), strict=True)))


def _structure(module: Module) -> tuple:
    return module.kind, tuple(_structure(inner) for inner in module.inside)
