"""Rows, and what lies beside them: guess against observation, one observation against another."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeVar

from ..cli import UserError
from ..read.kinds import VOCABULARY, kind_of_op
from ..read.known import total
from ..read.observe import Observation, Op, Step, wrappers

MANY = 1 << 20  # pairs of rows that are all looked at
WINDOW = 128  # rows of each of two longer sequences
LONG_RUN = 3  # from so many steps of one op on, the picture shows the op

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the picture: one step, or several that belong together."""

    kind: str
    steps: tuple[Step, ...]
    op: str | None = None  # the op that a long run was grouped by

    @property
    def main(self) -> Step:
        """The step that takes longest stands for the row."""
        return max(self.steps, key=lambda step: step.ns or 0)

    @property
    def ns(self) -> float | None:
        return total(step.ns for step in self.steps)


def rows(steps: Sequence[Step]) -> list[Row]:
    """The steps as a reader sees them: a memset joins the kernel it prepares, a long run of one
    op's kernels becomes that op, neighbours of one kind and path are counted together.

    The kernels of a CUDA graph are not their launch's: each is a step of its own.
    """
    level = wrappers(steps)
    found: list[Row] = []
    for op, same_op in groupby(steps, key=lambda step: _op_at(step, level)):
        run = tuple(same_op)
        work = [step for step in run if step.kind != "memset"]
        kinds = {step.kind for step in work}
        if op and len(work) >= LONG_RUN and len(kinds) > 1:
            found.append(Row(_kind_of_group(op, work), run, op.name))
            continue
        waiting: list[Step] = []
        for step in run:
            waiting.append(step)
            if step.kind != "memset" or step is run[-1]:
                found.append(Row(step.kind, tuple(waiting)))
                waiting = []
    merged = []
    for _, alike in groupby(found, key=_what_and_whence):
        same = list(alike)
        together = tuple(step for row in same for step in row.steps)
        merged.append(Row(same[0].kind, together, same[0].op) if len(same) > 1 else same[0])
    return merged


def _op_at(step: Step, level: int) -> Op | None:
    """The op of a depth on the way to a launch; None for what a graph launched, of whose kernels
    the op around the graph's launch says nothing."""
    if step.on_gpu and step.on_gpu.graph:
        return None
    op = step.op
    if op is None or op.depth < level:
        return None
    while op.depth > level and op.above:
        op = op.above
    return op


def _what_and_whence(row: Row) -> tuple:
    main = row.main
    if main.on_gpu and main.on_gpu.graph:
        return row.kind, main.name, id(main)  # neighbours of a graph stay apart
    return row.kind, main.op and main.op.trail, row.op


def _kind_of_group(op: Op, steps: Sequence[Step]) -> str:
    longest = max(steps, key=lambda step: step.ns or 0)
    return kind_of_op(op.name) or longest.kind


@dataclass(frozen=True, slots=True)
class Pair:
    """One line of an alignment: what was guessed, what was seen, or both where they agree."""

    guess: str | None
    row: Row | None
    words: int = 1  # how often it was guessed: of neighbours that are counted together


def parse_guess(text: str) -> tuple[str, ...]:
    """Words such as "matmul softmax matmul". Raises UserError for a word we do not know."""
    words = tuple(text.replace(",", " ").lower().split())
    for word in words:
        if word not in VOCABULARY:
            raise UserError(
                f"--guess: {word!r} is no kind of step; choose from {' '.join(VOCABULARY)}"
            )
    if not words:
        raise UserError('--guess: no step given; for example --guess "matmul softmax matmul"')
    return words


def align(guess: Sequence[str], seen: Sequence[Row]) -> list[Pair]:
    """Lay the guess beside the rows, in order, so that as many words as possible agree.

    Neighbours that are counted together agree with one word, or with one for each of them. With any
    other number of words the row is divided: what was not guessed is a row of its own.
    """
    units = [unit for row in seen for unit in _divided(row, guess.count(row.kind))]
    pairs = aligned(guess, units, lambda word, unit: word == unit.row.kind)
    agreed = Counter(id(unit.row) for word, unit in pairs if word is not None and unit)
    found: list[Pair] = []
    placed: set[int] = set()  # rows that stand there as a whole
    last: Row | None = None  # the row of which the last of `found` is a part
    for word, unit in pairs:
        if unit is None:
            found.append(Pair(word, None))
            last = None
        elif agreed[id(unit.row)] < 2:
            if id(unit.row) not in placed and (word is not None or not agreed[id(unit.row)]):
                found.append(Pair(word, unit.row))
                placed.add(id(unit.row))
            last = None
        else:
            before = found[-1] if found else None
            if before and before.row and unit.row is last and before.guess == word:
                whole = Row(unit.row.kind, before.row.steps + unit.steps)
                found[-1] = Pair(word, whole, before.words + 1)
            else:
                found.append(Pair(word, Row(unit.row.kind, unit.steps)))
            last = unit.row
    return found


class _Unit(NamedTuple):
    """One of the neighbours that a row counts together, with what was left over."""

    row: Row
    steps: tuple[Step, ...]


def _divided(row: Row, words: int) -> list[_Unit]:
    """A row's neighbours, one by one as far as there are words for them."""
    if row.op is not None or words < 2 or len(row.steps) < 2:
        return [_Unit(row, row.steps)]
    units: list[list[Step]] = []
    for step in row.steps:
        prepares = units and units[-1][-1].kind == "memset" != row.kind
        if prepares or len(units) > words:
            units[-1].append(step)
        else:
            units.append([step])
    return [_Unit(row, tuple(steps)) for steps in units]


def aligned(
    left: Sequence[A], right: Sequence[B], agree: Callable[[A, B], bool]
) -> list[tuple[A | None, B | None]]:
    """The longest common subsequence of two sequences, with what each has alone in between. Of very
    long ones that differ it is looked for a window at a time, so that twice the length takes twice
    the time: then it need not be the longest."""
    pairs: list[tuple[A | None, B | None]] = []
    i = j = 0
    while (len(left) - i) * (len(right) - j) > MANY:
        if agree(left[i], right[j]):
            pairs.append((left[i], right[j]))
            i, j = i + 1, j + 1
            continue
        there = i, j
        for one, other in _aligned_exactly(left[i : i + WINDOW], right[j : j + WINDOW], agree):
            pairs.append((one, other))
            i, j = i + (one is not None), j + (other is not None)
            if max(i - there[0], j - there[1]) >= WINDOW // 2:
                break
    return pairs + _aligned_exactly(left[i:], right[j:], agree)


def _aligned_exactly(
    left: Sequence[A], right: Sequence[B], agree: Callable[[A, B], bool]
) -> list[tuple[A | None, B | None]]:
    """The longest; all pairs are looked at."""
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in reversed(range(len(left))):
        for j in reversed(range(len(right))):
            best[i][j] = (
                best[i + 1][j + 1] + 1
                if agree(left[i], right[j])
                else max(best[i + 1][j], best[i][j + 1])
            )
    pairs: list[tuple[A | None, B | None]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        if agree(left[i], right[j]):
            pairs.append((left[i], right[j]))
            i, j = i + 1, j + 1
        elif best[i][j + 1] >= best[i + 1][j]:
            pairs.append((None, right[j]))
            j += 1
        else:
            pairs.append((left[i], None))
            i += 1
    pairs += [(word, None) for word in left[i:]] + [(None, row) for row in right[j:]]
    return pairs


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of two recordings side by side: what both have, or one alone."""

    row: Row  # of the first that has it
    a: Row | None
    b: Row | None

    @property
    def in_both(self) -> bool:
        return self.a is not None and self.b is not None


def differences(a: Observation, b: Observation) -> list[Difference]:
    """Two recordings step by step."""
    pairs = aligned(rows(a.steps), rows(b.steps), lambda x, y: x.kind == y.kind)
    return [Difference(row, x, y) for x, y in pairs if (row := x or y)]
