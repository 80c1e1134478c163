"""Repetition in a sequence: layers, decode steps, micro-batches, one inside the other.

`fold` finds what repeats at once (abc abc abc), the shortest period first, and puts a loop in its
place; a loop is then an element like others, so that loops of loops are found in the same way. How
often a loop turns is no part of what it is: the stages of a network, of three, four and six blocks,
are one loop, met three times. Between two stretches of one loop, a turn that is somewhat different
is a deviation of it.

Nothing is lost: `places` names every element of the sequence once.

It takes time in proportion to the length: for a period p the sequence is compared with itself p
further on, in C. Which periods are worth that is told by how far equal elements, pairs and fours
are apart. What is compared is counted and bounded (WORK), by the sequence and not by a clock.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from operator import eq
from typing import TypeAlias

WORK = 40  # comparisons for each element, at the most …
LEAST_WORK = 1 << 22  # … but so many for any sequence
ALIKE = 0.5  # what a deviating turn has in common with the others, at the least
LOOK = 16  # looking for periods takes so many times as long as comparing
LONG, SAMPLES, SAMPLE = 1 << 16, 16, 1 << 12
SPARSE = 4  # a period is tried if something comes again after it, for each so many of its elements


@dataclass(frozen=True, slots=True)
class Place:
    """An element of the pattern, and where in the sequence it stands: once a turn around it."""

    at: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Deviation:
    """A turn that is not like the others."""

    after: int  # so many of the others
    parts: "tuple[Part, ...]"


@dataclass(frozen=True, slots=True)
class Loop:
    """What repeats, once."""

    body: "tuple[Part, ...]"
    counts: tuple[int, ...]  # of its turns, deviating ones apart; for each turn of a loop around it
    deviations: tuple[Deviation, ...] = ()

    @property
    def turns(self) -> int:
        return sum(self.counts)


Part: TypeAlias = Place | Loop


def places(parts: Sequence[Part]) -> Iterator[int]:
    """Every index that the parts stand for, in no order."""
    for part in parts:
        if isinstance(part, Place):
            yield from part.at
        else:
            yield from places(part.body)
            for one in part.deviations:
                yield from places(one.parts)


def fold(
    sequence: Sequence[Hashable], begins: Callable[[int], int] = lambda at: 1
) -> tuple[Part, ...]:
    """The sequence with its repetitions folded. A stretch that holds a part of a turn more may be
    cut into turns in several ways. `begins` says of an element, by its index, how well a turn
    begins with it: 2 well, 1 perhaps, 0 badly. The first of the best is taken; if all are bad, one
    turn is given up for a good one."""
    return _Folder(sequence, begins).folded()


# An element by its index; or a loop at one place: its period, and the nodes of all its turns.
_Node: TypeAlias = "int | tuple[int, list[_Node]]"


class _Folder:
    def __init__(self, sequence: Sequence[Hashable], begins: Callable[[int], int]) -> None:
        numbers: dict[Hashable, int] = {}
        self._tokens = [numbers.setdefault(one, len(numbers)) for one in sequence]
        self._nodes: list[_Node] = list(range(len(self._tokens)))
        self._begins = begins
        self._kinds = len(numbers)
        self._loops: dict[tuple[int, ...], int] = {}  # body → token
        self._bodies: dict[int, tuple[int, ...]] = {}  # … and back
        self._cut: dict[tuple[int, ...], int] = {}  # least rotation of a body → where it is begun
        self._left = max(WORK * len(self._tokens), LEAST_WORK)

    def folded(self) -> tuple[Part, ...]:
        while self._left > 0 and self._fold_shortest():
            pass
        return tuple(self._with_deviations())

    def _fold_shortest(self) -> bool:
        """Fold all repeats of the shortest period that has one. Of a long sequence a sample is
        asked for periods first: most often it has them all."""
        length = len(self._tokens)
        samples = [range(0, length, length // SAMPLES), range(1)] if length > LONG else [range(1)]
        for starts in samples:
            size = SAMPLE if len(starts) > 1 else length
            self._left -= LOOK * size * len(starts)
            for period in _periods([self._tokens[at : at + size] for at in starts]):
                self._left -= length
                if runs := self._runs(period):
                    self._replace(runs)
                    return True
                if self._left <= 0:
                    return False
        return False

    def _runs(self, period: int) -> list[tuple[int, int, int]]:
        """Where a period repeats: (start, period, turns), in order and apart."""
        tokens, found = self._tokens, []
        same = bytes(map(eq, tokens, islice(tokens, period, None)))
        turn = b"\1" * period
        at = same.find(turn)
        while at >= 0:
            end = same.find(0, at)
            length = (len(same) if end < 0 else end) - at + period
            run = self._cut_into_turns(at, length, period)
            found.append(run)
            start, its, turns = run
            at = same.find(turn, start + its * turns)
        return found

    def _cut_into_turns(self, at: int, length: int, period: int) -> tuple[int, int, int]:
        """A stretch of one period as (start, period, turns): begun like others of its kind."""
        body = tuple(self._tokens[at : at + period])
        period = _root(body)
        body = body[:period]
        least = _least_rotation(body)
        kind = body[least:] + body[:least]
        spare = length % period
        begun = self._cut.get(kind)
        if begun is None:
            shift = self._beginning(at, length, period)
            self._cut[kind] = (shift - least) % period
        else:
            shift = (least + begun) % period
            if shift > spare and length - shift < 2 * period:
                shift = 0  # begun like others, it would be no loop
        return at + shift, period, (length - shift) // period

    def _beginning(self, at: int, length: int, period: int) -> int:
        """How far into a stretch its first turn begins: like the whole sequence, else where that
        is best."""
        spare, turns = length % period, length // period
        head = self._tokens[0]
        if at and self._tokens.count(head) <= turns + 1:  # once a turn, and nowhere else
            for shift in range(spare + 1):
                if self._tokens[at + shift] == head:
                    return shift
        well = [self._begins(_first(node)) for node in self._nodes[at : at + period]]
        best = max(well[: spare + 1])
        if not best and turns > 2:
            best = max(well)
        return well.index(best)

    def _replace(self, runs: list[tuple[int, int, int]]) -> None:
        """A loop in the place of each stretch."""
        tokens: list[int] = []
        nodes: list[_Node] = []
        done = 0
        for start, period, turns in runs:
            tokens += self._tokens[done:start]
            nodes += self._nodes[done:start]
            done = start + period * turns
            body = tuple(self._tokens[start : start + period])
            if (token := self._loops.get(body)) is None:
                token = self._loops[body] = self._kinds + len(self._loops)
                self._bodies[token] = body
            tokens.append(token)
            nodes.append((period, self._nodes[start:done]))
        self._tokens = tokens + self._tokens[done:]
        self._nodes = nodes + self._nodes[done:]

    def _with_deviations(self) -> Iterator[Part]:
        tokens, nodes, at = self._tokens, self._nodes, 0
        while at < len(tokens):
            part, token = _part([nodes[at]]), tokens[at]
            at += 1
            if not isinstance(part, Loop):
                yield part
                continue
            deviations = []
            while again := self._next_stretch(token, at):
                deviating = tuple(_part([node]) for node in nodes[at:again])
                deviations.append(Deviation(part.turns, deviating))
                more = _part([nodes[again]])
                assert isinstance(more, Loop)
                part = Loop(tuple(map(_joined, part.body, more.body)), part.counts + more.counts)
                at = again + 1
            yield Loop(part.body, part.counts, tuple(deviations))

    def _next_stretch(self, loop: int, at: int) -> int:
        """Where the same loop goes on, if all that stands before is one deviating turn; else 0."""
        body = self._bodies[loop]
        for end in range(at + 1, min(at + 2 * len(body), len(self._tokens) - 1) + 1):
            if self._tokens[end] == loop:
                common = (Counter(self._tokens[at:end]) & Counter(body)).total()
                return end if common >= ALIKE * max(end - at, len(body)) else 0
        return 0


def _periods(stretches: Sequence[Sequence[int]]) -> list[int]:
    """The distances at which elements come again, or pairs of them, or fours; in order."""
    found: dict[int, int] = {}
    most = max(map(len, stretches)) // 2
    for size in (0, 1, 2):
        apart: dict[int, int] = {}
        if size:
            numbers: dict[tuple[int, int], int] = {}
            stretches = [
                [
                    numbers.setdefault(pair, len(numbers))
                    for pair in zip(names, islice(names, size, None), strict=False)
                ]
                for names in stretches
            ]
        for names in stretches:
            last: dict[int, int] = {}
            for at, name in enumerate(names):
                if (before := last.get(name)) is not None:
                    apart[at - before] = apart.get(at - before, 0) + 1
                last[name] = at
        if not apart:  # nothing comes again, so no more of it does
            break
        for distance, count in apart.items():
            found[distance] = max(found.get(distance, 0), count)
    return sorted(d for d, count in found.items() if d <= most and count * SPARSE >= d)


def _first(node: _Node) -> int:
    while not isinstance(node, int):
        node = node[1][0]
    return node


def _root(body: tuple[int, ...]) -> int:
    """The length of the shortest beginning of which the body is a power."""
    length = len(body)
    for size in range(1, length // 2 + 1):
        if length % size == 0 and body[size:] == body[:-size]:
            return size
    return length


def _least_rotation(body: tuple[int, ...]) -> int:
    """Where the rotation begins that sorts first. Two candidates race; whichever loses is out, with
    all that it was compared with."""
    length = len(body)
    one, other, same = 0, 1, 0
    while one < length and other < length and same < length:
        a, b = body[(one + same) % length], body[(other + same) % length]
        if a == b:
            same += 1
            continue
        if a > b:
            one += same + 1
        else:
            other += same + 1
        if one == other:
            other += 1
        same = 0
    return min(one, other)


def _part(nodes: Sequence[_Node]) -> Part:
    """What stands at one place, in every turn around it."""
    loops = [node for node in nodes if not isinstance(node, int)]
    if not loops:
        return Place(tuple(node for node in nodes if isinstance(node, int)))
    period = loops[0][0]
    body = tuple(
        _part([node for _, turns in loops for node in turns[place::period]])
        for place in range(period)
    )
    return Loop(body, tuple(len(turns) // period for _, turns in loops))


def _joined(one: Part, other: Part) -> Part:
    """Two stretches of one loop, outside of any other."""
    if isinstance(one, Place) and isinstance(other, Place):
        return Place(one.at + other.at)
    assert isinstance(one, Loop) and isinstance(other, Loop)
    body = tuple(map(_joined, one.body, other.body))
    return Loop(body, one.counts + other.counts)
