"""Rows, and what lies beside them: guess against observation, one observation against another."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from ..cli import UserError
from ..read.kinds import VOCABULARY, kind_of_op
from ..read.known import total
from ..read.observe import Observation, Op, Step, wrappers

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
    """Lay the guess beside the rows, in order, so that as many as possible agree."""
    pairs = _align(guess, seen, lambda word, row: word == row.kind)
    return [Pair(word, row) for word, row in pairs]


def _align(
    left: Sequence[A], right: Sequence[B], agree: Callable[[A, B], bool]
) -> list[tuple[A | None, B | None]]:
    """The longest common subsequence of two sequences, with what each has alone in between."""
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
    pairs = _align(rows(a.steps), rows(b.steps), lambda x, y: x.kind == y.kind)
    return [Difference(row, x, y) for x, y in pairs if (row := x or y)]
