"""Rows, and what lies beside them: guess against observation, one observation against another."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ..cli import UserError
from ..read.kinds import BY_LIBRARIES, VOCABULARY, kind_of_op
from ..read.known import total
from ..read.observe import Observation, Op, Step, Trail, wrappers

LONG_RUN = 3  # from so many steps of one op on, the picture shows the op


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the picture: one step, or several that belong together."""

    kind: str
    steps: tuple[Step, ...]
    op: str | None = None  # the op that a long run was grouped by
    outer: Trail | None = None  # the outermost op that not all share
    merged: int = 1  # neighbours of one kind and way

    @property
    def main(self) -> Step:
        """The step that takes longest stands for the row."""
        return max(self.steps, key=lambda step: step.ns or 0)

    @property
    def ns(self) -> float | None:
        return total(step.ns for step in self.steps)

    @property
    def count(self) -> int:
        return len(self.steps)

    @property
    def works(self) -> int:
        """Its steps, without the memsets that prepare others."""
        return sum(step.kind != "memset" or self.kind == "memset" for step in self.steps)

    @property
    def key(self) -> Hashable:
        """Equal for rows that do the same for the same ops, by whichever kernel."""
        main = self.main
        if main.on_gpu and main.on_gpu.graph:
            return self.kind, main.name
        if self.outer and (self.op or self.kind in BY_LIBRARIES):
            # A library may take one kernel for it, or several.
            return self.kind, self.outer, self.merged
        trail = main.op and main.op.trail
        # Without an op, the name of what ran is all that there is.
        return self.kind, trail or main.name, self.merged


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
        outer = op.trail if op else None
        if op and len(work) >= LONG_RUN and len(kinds) > 1:
            found.append(Row(_kind_of_group(op, work), run, op.name, outer))
            continue
        waiting: list[Step] = []
        for step in run:
            waiting.append(step)
            if step.kind != "memset" or step is run[-1]:
                found.append(Row(step.kind, tuple(waiting), outer=outer))
                waiting = []
    merged = []
    for _, alike in groupby(found, key=_what_and_whence):
        same = list(alike)
        if len(same) > 1:
            together = tuple(step for row in same for step in row.steps)
            first = same[0]
            merged.append(Row(first.kind, together, first.op, first.outer, len(same)))
        else:
            merged += same
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
    places = aligned(guess, [unit.row.kind for unit in units])
    pairs = [(None if i is None else guess[i], None if j is None else units[j]) for i, j in places]
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


_BITS = 1 << 30  # of a table, at the most


def aligned(
    left: Sequence[Hashable], right: Sequence[Hashable]
) -> list[tuple[int | None, int | None]]:
    """The longest common subsequence of two sequences, with what each has alone in between, as
    pairs of places.

    A row of the table of lengths is a number, of whose bits each that is 0 says that the length
    grows there (H. Hyyrö, "Bit-parallel LCS-length computation revisited", 2004): sequences of
    thousands take milliseconds. What both begin or end with agrees and needs no table.
    """
    low, most = 0, min(len(left), len(right))
    while low < most and left[low] == right[low]:
        low += 1
    behind = 0
    while behind < most - low and left[-1 - behind] == right[-1 - behind]:
        behind += 1
    pairs: list[tuple[int | None, int | None]] = [(at, at) for at in range(low)]
    ends = len(left) - behind, len(right) - behind
    pairs += _pieces(left, right, low, ends[0], low, ends[1])
    pairs += zip(range(ends[0], len(left)), range(ends[1], len(right)), strict=True)
    return pairs


def _pieces(
    left: Sequence[Hashable], right: Sequence[Hashable], i: int, i_end: int, j: int, j_end: int
) -> list[tuple[int | None, int | None]]:
    """left[i:i_end] and right[j:j_end] aligned: what is too large for one table in two halves, cut
    where the lengths of both are most (D. Hirschberg, 1975)."""
    if (i_end - i) * (j_end - j) <= _BITS or i_end - i < 2:
        return _backtrack(left, right, i, i_end, j, j_end)
    middle = (i + i_end) // 2
    before = _lengths(_rows_of_bits(left[i:middle], right[j:j_end])[-1], j_end - j)
    after = _lengths(_rows_of_bits(left[middle:i_end][::-1], right[j:j_end][::-1])[-1], j_end - j)
    cut = max(range(j_end - j + 1), key=lambda n: before[n] + after[j_end - j - n])
    return _pieces(left, right, i, middle, j, j + cut) + _pieces(
        left, right, middle, i_end, j + cut, j_end
    )


def _rows_of_bits(
    left: Sequence[Hashable], right: Sequence[Hashable], all_of_them: bool = False
) -> list[int]:
    """Bit k of a row is 0 where the length grows with right[k]."""
    places: dict[Hashable, int] = {}
    for at, one in enumerate(right):
        places[one] = places.get(one, 0) | 1 << at
    mask = (1 << len(right)) - 1
    row, rows = mask, [mask]
    for one in left:
        both = row & places.get(one, 0)
        row = ((row + both) | (row - both)) & mask
        if all_of_them:
            rows.append(row)
    return rows if all_of_them else [row]


def _lengths(row: int, count: int) -> list[int]:
    """The length for each beginning of the right side."""
    lengths = [0]
    for bit in reversed(f"{row:0{count}b}" if count else ""):
        lengths.append(lengths[-1] + (bit == "0"))
    return lengths


def _backtrack(
    left: Sequence[Hashable], right: Sequence[Hashable], i: int, i_end: int, j: int, j_end: int
) -> list[tuple[int | None, int | None]]:
    # Backwards, for the table of ends tells from the first places on what to take.
    table = _rows_of_bits(left[i:i_end][::-1], right[j:j_end][::-1], True)
    pairs: list[tuple[int | None, int | None]] = []
    while i < i_end and j < j_end:
        if left[i] == right[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
            continue
        # Without right[j] as long as with it: its bit does not grow.
        row = table[i_end - i]
        if row >> (j_end - j - 1) & 1:
            pairs.append((None, j))
            j += 1
        else:
            pairs.append((i, None))
            i += 1
    return pairs + [(at, None) for at in range(i, i_end)] + [(None, at) for at in range(j, j_end)]


@dataclass(frozen=True, slots=True)
class Difference:
    """One line of two recordings side by side: what both have, or one alone."""

    row: Row  # of the first that has it
    a: Row | None
    b: Row | None

    @property
    def in_both(self) -> bool:
        return self.a is not None and self.b is not None

    @property
    def kind(self) -> str:
        return self.row.kind

    @property
    def count(self) -> int:
        """Steps of either."""
        return max(row.count for row in (self.a, self.b) if row)

    @property
    def key(self) -> Hashable:
        return self.a and self.a.key, self.b and self.b.key

    @property
    def ns(self) -> float | None:
        """Of both together."""
        return total(row.ns for row in (self.a, self.b) if row)


def differences(a: Observation, b: Observation) -> list[Difference]:
    """Two recordings step by step."""
    left, right = rows(a.steps), rows(b.steps)
    pairs = aligned([row.kind for row in left], [row.kind for row in right])
    sides = [(None if i is None else left[i], None if j is None else right[j]) for i, j in pairs]
    return [Difference(row, x, y) for x, y in sides if (row := x or y)]
