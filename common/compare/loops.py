"""The rows of a forward with their loops folded, in as many lines as a page has room for.

Rows are alike if they do the same work for the same ops: which kernel a library took for it may
differ from turn to turn, and is told. Where even the folded rows are too many, cheap neighbours
share a line. No row is lost: `rows_of` gives all of them back.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Protocol, TypeAlias, TypeVar

from ..read import fold
from ..read.known import total

FEW_ROWS = 24  # so many are shown as they are
ROOM = 36  # lines of a picture

# Kinds with which a layer or a block begins, and those with which it ends.
BEGINS = ("normalization", "conv", "embedding")
ENDS = ("add", "activation")


class Measured(Protocol):
    """A row of a recording, or one of two recordings beside each other."""

    @property
    def kind(self) -> str: ...
    @property
    def key(self) -> Hashable: ...
    @property
    def ns(self) -> float | None: ...
    @property
    def count(self) -> int: ...


R = TypeVar("R", bound=Measured)


@dataclass(frozen=True)
class Line(Generic[R]):
    """What stands at one place of the pattern: a row for each turn of the loops around it."""

    rows: tuple[R, ...]

    @property
    def first(self) -> R:
        return self.rows[0]

    @cached_property
    def ns(self) -> float | None:
        return total(row.ns for row in self.rows)

    @cached_property
    def count(self) -> int:
        """Of steps."""
        return sum(row.count for row in self.rows)


@dataclass(frozen=True)
class Several(Generic[R]):
    """Cheap neighbours, in one line."""

    parts: "tuple[Folded[R], ...]"

    @property
    def rows(self) -> list[R]:
        return list(rows_of(self.parts))

    @cached_property
    def ns(self) -> float | None:
        return total(part.ns for part in self.parts)

    @cached_property
    def count(self) -> int:
        return sum(row.count for row in self.rows)


@dataclass(frozen=True)
class Repeat(Generic[R]):
    """A loop; its deviating turns stand apart."""

    body: "tuple[Folded[R], ...]"
    counts: tuple[int, ...]
    deviations: "tuple[tuple[int, tuple[Folded[R], ...]], ...]" = ()  # behind how many turns: what

    @property
    def turns(self) -> int:
        return sum(self.counts)

    @cached_property
    def ns(self) -> float | None:
        """Of its turns, the deviating ones apart."""
        return total(part.ns for part in self.body)


Folded: TypeAlias = Line[R] | Several[R] | Repeat[R]


def rows_of(parts: Iterable[Folded[R]]) -> Iterator[R]:
    """Every row that the parts stand for; in no order."""
    for part in parts:
        match part:
            case Line():
                yield from part.rows
            case Several():
                yield from rows_of(part.parts)
            case Repeat():
                yield from rows_of(part.body)
                for _, deviating in part.deviations:
                    yield from rows_of(deviating)


def folded(rows: Sequence[R]) -> tuple[Folded[R], ...]:
    """The rows, their repetitions folded."""

    def begins(at: int) -> int:
        kind = rows[at].kind
        if kind in BEGINS and (not at or rows[at - 1].kind != kind):
            return 2
        return 0 if kind in ENDS else 1

    return tuple(_part(part, rows) for part in fold.fold([row.key for row in rows], begins))


def _part(part: fold.Part, rows: Sequence[R]) -> Folded[R]:
    if isinstance(part, fold.Place):
        return Line(tuple([rows[at] for at in part.at]))
    return Repeat(
        tuple(_part(one, rows) for one in part.body),
        part.counts,
        tuple(
            (one.after, tuple(_part(inner, rows) for inner in one.parts)) for one in part.deviations
        ),
    )


def has_loops(parts: Iterable[Folded[R]]) -> bool:
    return any(isinstance(part, Repeat) for part in parts)


# ── In so many lines ──────────────────────────────────────────────────────────────────────────────


def in_lines(parts: Sequence[Folded[R]], room: int = ROOM) -> tuple[Folded[R], ...]:
    """The parts in `room` lines at the most: the cheapest of neighbours share one, those below the
    least limit that will do."""
    if lines(parts) <= room:
        return tuple(parts)
    limits = sorted({part.ns or 0 for part in _all(parts)})
    low, high = (
        0,
        len(limits),
    )  # the limit is above limits[:low], and need not be above limits[high]
    while low < high:
        middle = (low + high) // 2
        if lines(_shared(parts, limits[middle])) <= room:
            high = middle
        else:
            low = middle + 1
    return _shared(parts, limits[low] if low < len(limits) else float("inf"))


def lines(parts: Iterable[Folded[R]]) -> int:
    """How many a picture takes: a loop's turns have a line above them, and a deviation too."""
    found = 0
    for part in parts:
        found += 1
        if isinstance(part, Repeat) and not is_line(part):
            found += lines(part.body)
        if isinstance(part, Repeat):
            found += sum(1 + lines(deviating) for _, deviating in part.deviations)
    return found


def is_line(loop: Repeat[R]) -> bool:
    """A loop of one row: it needs no line above it."""
    return len(loop.body) == 1 and not isinstance(loop.body[0], Repeat)


def _all(parts: Iterable[Folded[R]]) -> Iterator[Folded[R]]:
    for part in parts:
        yield part
        if isinstance(part, Repeat):
            yield from _all(part.body)
            for _, deviating in part.deviations:
                yield from _all(deviating)


def _shared(parts: Iterable[Folded[R]], limit: float) -> tuple[Folded[R], ...]:
    """Neighbours up to the limit in one line each."""
    found: list[Folded[R]] = []
    cheap: list[Folded[R]] = []

    def close() -> None:
        if len(cheap) == 1:
            found.append(cheap[0])
        elif cheap:
            found.append(Several(tuple(cheap)))
        cheap.clear()

    for part in parts:
        whole = part.ns or 0
        if isinstance(part, Repeat):
            whole += sum(inner.ns or 0 for _, d in part.deviations for inner in d)
        if whole <= limit:
            cheap.append(part)
            continue
        close()
        if isinstance(part, Repeat):
            part = Repeat(
                _shared(part.body, limit),
                part.counts,
                tuple((after, _shared(deviating, limit)) for after, deviating in part.deviations),
            )
        found.append(part)
    close()
    return tuple(found)
