"""Files of the ranks of one job: each file becomes a small value, and the values merge.

A collective ends on all ranks at about one moment, and begins on each when that rank comes to it.
So the rank whose collective is shortest came last, and any other waited for it as much longer as
its own is. No clock of one rank is compared with another's: they may disagree by seconds.

That holds where every rank needs something of every other: not in a broadcast, whose root may be
gone before the others come, and not in a transfer between two.

Collectives are matched by the order in which a rank comes to them among those of one group, name
and size; where the group is not told, or ranks have different numbers of them, they are not
matched. What merges is, of each collective, the shortest and the longest, the sum and how many took
part: it grows with the length of the files and not with the ranks.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Literal, NamedTuple, TypeAlias

from ..cli import UserError
from .kernel_names import decode
from .kinds import kind_of_kernel
from .known import total
from .linked import Linked, link
from .owners import Interval, common, merged
from .steps import profiled_steps
from .survey import busy_time
from .trace import Trace
from .usage import usage

Where: TypeAlias = Literal["gpu", "cpu"]
# Labels around collectives that run on threads of the CPU; those of NCCL only hand them over.
_ON_CPU = re.compile(r"(?:gloo|mpi|ucc):(?P<name>.+)")
_ALL_FOR_ALL = re.compile(r"_*all_?(?:reduce|gather|to_?all)|_*reduce_?scatter|_*barrier", re.I)
_UNEVEN = re.compile(r"_*all_?to_?all", re.I)  # each rank has a size of its own


class Kind(NamedTuple):
    """Which collectives are alike. None: not told."""

    group: str | None
    ranks: str | None  # of the group, as the profiler writes them
    name: str
    elements: int | None
    where: Where  # whose time it is


class Came(NamedTuple):
    """A rank, by what it is called, and how long it was in a collective (ns)."""

    ns: int
    who: str


@dataclass(frozen=True, slots=True)
class Row:
    """One rank. Nanoseconds; None is unknown."""

    file: str
    rank: int | None
    size: int | None  # ranks of the job
    steps: int
    step_cpu: int | None  # median
    span: int | None  # of the GPU, from its first event to the end of its last
    busy: int | None
    compute: int | None  # busy with other kernels than communication
    communication: int | None
    exposed: int | None  # of the collectives' time: nothing else ran on the GPU
    overlapped: int | None
    untold: int  # collectives of which the file does not tell the group
    in_collectives: tuple[tuple[Kind, int, int], ...]  # how many were matched, and their time
    waited: int | None = None  # for others, in collectives; known once all are merged
    waited_for: int | None = None  # by others, in all

    @property
    def who(self) -> str:
        return self.file if self.rank is None else f"rank {self.rank}"


@dataclass(frozen=True, slots=True)
class Met:
    """One collective on the ranks that were merged: the first and the last to come."""

    last: Came  # it was in it for the shortest time
    first: Came
    total: int
    ranks: int

    @property
    def waited(self) -> int:
        return self.total - self.ranks * self.last.ns

    def merged(self, other: "Met") -> "Met":
        return Met(
            min(self.last, other.last),
            max(self.first, other.first),
            self.total + other.total,
            self.ranks + other.ranks,
        )


@dataclass(frozen=True)
class Ranks:
    """Of one file or of many: merging is in any order, and in any grouping, the same."""

    rows: tuple[Row, ...] = ()
    met: dict[Kind, tuple[Met, ...]] = field(default_factory=dict)
    unread: tuple[tuple[str, str], ...] = ()  # files that could not be read, and why
    devices: frozenset[str] = frozenset()

    def merged(self, other: "Ranks") -> "Ranks":
        met = dict(self.met)
        for kind, theirs in other.met.items():
            ours = met.get(kind, ())
            both = [mine.merged(its) for mine, its in zip(ours, theirs, strict=False)]
            longer = ours if len(ours) > len(theirs) else theirs
            met[kind] = (*both, *longer[len(both) :])
        return Ranks(
            tuple(sorted((*self.rows, *other.rows), key=_in_order)),
            met,
            tuple(sorted((*self.unread, *other.unread))),
            self.devices | other.devices,
        )


def _in_order(row: Row) -> tuple:
    return row.rank is None, row.rank or 0, row.file


def ranks_of(trace: Trace, name: str) -> Ranks:
    """One file's; `name` is what the file is called."""
    linked = link(trace)
    steps = profiled_steps(linked)
    used = usage([linked.launched()], linked.culprits) if trace.gpu else None
    found, untold = _collectives(linked)
    exposed, overlapped = (used.exposed, used.overlapped) if used else (None, None)
    talked = used.communication if used else None
    if on_cpu := [span for span in _on_cpu(trace)]:
        talked = (talked or 0) + sum(end - start for start, end in on_cpu)
        alone, beside = _beside_gpu(linked, on_cpu)
        exposed, overlapped = total((exposed, alone)), total((overlapped, beside))
    row = Row(
        name,
        trace.job.rank if trace.job else None,
        trace.job.size if trace.job else None,
        len(steps.steps),
        round(steps.cpu.median) if steps.cpu else None,
        used.span if used else None,
        used.busy if used else None,
        _compute(trace) if used else None,
        talked,
        exposed,
        overlapped,
        untold,
        tuple(sorted(((kind, len(ns), sum(ns)) for kind, ns in found.items()), key=str)),
    )
    met = {
        kind: tuple(Met(Came(ns, row.who), Came(ns, row.who), ns, 1) for ns in times)
        for kind, times in found.items()
    }
    devices = frozenset(str(device["name"]) for device in trace.devices if "name" in device)
    return Ranks((row,), met, (), devices)


def _collectives(linked: Linked) -> tuple[dict[Kind, list[int]], int]:
    """The times of those between all ranks of a group, in order of their begin; and how many there
    are of unknown group."""
    trace = linked.trace
    alone = trace.job is not None and trace.job.groups == 1
    begun: list[tuple[int, Kind, int]] = []
    untold = 0
    for event in trace.gpu:
        if event.sort != "kernel" or event.start is None or event.duration is None:
            continue
        told = event.collective
        if told is None:
            kernel = decode(event.name)
            if kind_of_kernel(kernel) != "communication":
                continue
            name, elements, group, ranks = kernel.op or kernel.family, None, None, None
        else:
            name, elements = told.name, told.elements_in
            group, ranks = told.group, told.ranks
        if not _ALL_FOR_ALL.match(name) or id(event) in linked.timeless:
            continue
        if _UNEVEN.match(name):
            elements = None
        if group is None and not alone:
            untold += 1
        else:
            begun.append((event.start, Kind(group, ranks, name, elements, "gpu"), event.duration))
    for span in trace.annotations:
        match = _ON_CPU.match(span.name)
        if match and span.end is not None and _ALL_FOR_ALL.match(match["name"]):
            if alone:
                kind = Kind(None, None, match["name"], None, "cpu")
                begun.append((span.start, kind, span.end - span.start))
            else:
                untold += 1
    begun.sort(key=lambda one: one[0])
    found: dict[Kind, list[int]] = defaultdict(list)
    for _, kind, ns in begun:
        found[kind].append(ns)
    return dict(found), untold


def _on_cpu(trace: Trace) -> list[Interval]:
    return merged(
        (span.start, span.end)
        for span in trace.annotations
        if span.end is not None and _ON_CPU.match(span.name)
    )


def _beside_gpu(linked: Linked, spans: list[Interval]) -> tuple[int | None, int | None]:
    """Of the CPU's collectives the time in which the GPU did nothing, and in which it worked; not
    to be told where there is no GPU, or its clock is another."""
    if not linked.trace.gpu or linked.skew is not None:
        return None, None
    busy = merged(
        (event.start, event.end)
        for event in linked.trace.gpu
        if event.start is not None and event.end is not None
    )
    beside = sum(end - start for start, end in common(spans, busy))
    return sum(end - start for start, end in spans) - beside, beside


def _compute(trace: Trace) -> int:
    return busy_time(
        event
        for event in trace.gpu
        if event.collective is None
        and not (event.sort == "kernel" and kind_of_kernel(decode(event.name)) == "communication")
    )


# ── Once all are merged ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Wait:
    """One collective in which ranks waited. Nanoseconds."""

    kind: Kind
    number: int  # among those of its kind, from 1
    last: str  # who came last
    longest: int  # somebody's wait
    whose: str
    total: int  # all ranks' waits


@dataclass(frozen=True)
class Job:
    """All ranks of a job that were read."""

    rows: tuple[Row, ...]
    size: int | None  # ranks, as the files tell
    devices: tuple[str, ...]
    waits: tuple[Wait, ...]  # the longest first
    collectives: int  # matched on all their ranks
    unmatched: tuple[tuple[Kind, int, int], ...]  # of which ranks have different numbers: from, to
    straggler: str | None  # for whom the others waited longest
    last: int  # in how many collectives it came last
    missing: tuple[int, ...]  # ranks
    unread: tuple[tuple[str, str], ...]


def job(ranks: Ranks) -> Job:
    """Raises UserError for files that are not of one job."""
    if not ranks.rows:
        names = "; ".join(f"{why}" for _, why in ranks.unread[:1])
        raise UserError(f"none of {len(ranks.unread)} files could be read: {names}")
    sizes = {row.size for row in ranks.rows if row.size is not None}
    if len(sizes) > 1:
        said = " and ".join(str(size) for size in sorted(sizes))
        raise UserError(f"the files are of jobs of {said} ranks; give those of one")
    by_rank: dict[int, Row] = {}
    for row in ranks.rows:
        if row.rank in by_rank:
            raise UserError(
                f"{by_rank[row.rank].file} and {row.file} are both of rank {row.rank}; give the "
                "files of one job (repeats are compared with --fail-over)"
            )
        if row.rank is not None:
            by_rank[row.rank] = row
    counts: dict[Kind, list[int]] = defaultdict(list)
    for row in ranks.rows:
        for kind, count, _ in row.in_collectives:
            counts[kind].append(count)
    unmatched = tuple(
        sorted(((kind, min(n), max(n)) for kind, n in counts.items() if len(set(n)) > 1), key=str)
    )
    matched = {kind for kind, n in counts.items() if len(set(n)) == 1 and len(n) > 1}
    shortest = {kind: sum(met.last.ns for met in ranks.met[kind]) for kind in matched}
    waited_for: Counter[str] = Counter()
    last: Counter[str] = Counter()
    waits = []
    for kind in matched:
        for number, met in enumerate(ranks.met[kind], 1):
            if met.waited:
                waited_for[met.last.who] += met.waited
                last[met.last.who] += 1
                longest = met.first.ns - met.last.ns
                waits.append(Wait(kind, number, met.last.who, longest, met.first.who, met.waited))
    rows = tuple(
        replace(
            row,
            waited=sum(ns - shortest[kind] for kind, _, ns in row.in_collectives if kind in matched)
            if matched
            else None,
            waited_for=waited_for[row.who] if matched else None,
        )
        for row in ranks.rows
    )
    waits.sort(key=lambda wait: (-wait.total, str(wait.kind), wait.number))
    worst = max(waited_for, key=lambda who: (waited_for[who], who), default=None)
    size = next(iter(sizes), None)
    missing = set(range(size)) - by_rank.keys() if size is not None and by_rank else set()
    return Job(
        rows,
        size,
        tuple(sorted(ranks.devices)),
        tuple(waits),
        sum(len(ranks.met[kind]) for kind in matched),
        unmatched,
        worst,
        last[worst] if worst is not None else 0,
        tuple(sorted(missing)),
        ranks.unread,
    )


def middle(values: Iterable[int | None]) -> float | None:
    """The median of those that are known."""
    found = [value for value in values if value is not None]
    return median(found) if found else None
