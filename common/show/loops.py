"""A forward's steps with their loops folded: the pattern once, how often, and what it comes to."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console

from ..compare.loops import Folded, Line, R, Repeat, Several, is_line, rows_of
from ..compare.rows import Difference, Row
from ..read.known import total
from .terminal import print_lines
from .words import duration, percent, plural, repeats, what_ran

Cells = list[str]
RUNG = "│ "  # stands before what a loop holds


COLUMNS = ("times", "mean", "total", "share")


def show_folded(out: Console, table: tuple[Cells, list[Cells]]) -> None:
    heads, lines = table
    print_lines(out, heads, lines, COLUMNS, (heads[-1], heads[1]))


def folded_table(
    parts: Sequence[Folded[Row]],
    on_gpu: bool,
    launched_by: Callable[[Row], str],
    bound_by: Callable[[Sequence[Row]], str] = lambda rows: "",
) -> tuple[Cells, list[Cells]]:
    """Heads, and each line with its times, mean, total and share; those of a loop stand below its
    own."""
    whole = total(row.ns for row in rows_of(parts))
    heads = ["on the GPU", "kernel"] if on_gpu else ["on the CPU", "op"]
    heads += [*COLUMNS, "bound by"]
    heads.append("launched by" if on_gpu else "called by")

    def numbers(ns: float | None, turns: int) -> Cells:
        share = percent(ns / whole) if whole and ns is not None else ""
        return [duration(None if ns is None else ns / turns), duration(ns), share]

    def one(part: Folded[Row]) -> Cells:
        if isinstance(part, Repeat):
            return [_turns(part), "", "", *numbers(part.ns, part.turns), "", ""]
        figures = [f"{part.count:,}", *numbers(part.ns, part.count)]
        if isinstance(part, Several):
            return [plural(part.count, "step"), kinds(part.rows), *figures, "", ""]
        first = part.first
        words = first.kind + repeats(first), _kernels(part.rows)
        return [*words, *figures, bound_by(part.rows), launched_by(first)]

    lines = list(_lines(parts, one))
    count = sum(row.count for row in rows_of(parts))
    lines.append(["all", "", f"{count:,}", *numbers(whole, 1)[1:], "", ""])
    lines[-1].insert(3, "")
    if not any(line[6] for line in lines):
        heads.pop(6)
        lines = [line[:6] + line[7:] for line in lines]
    return heads, lines


def show_folded_difference(
    out: Console,
    parts: Sequence[Folded[Difference]],
    change: Callable[[float | None, float | None], str],
) -> None:
    """Two recordings side by side; of a loop, what all of its turns come to."""
    heads = ["", "step", "what ran in A", "in B", "times", "A", "B", "B − A"]

    def sides(rows: Sequence[Difference]) -> Cells:
        one = [total(x.ns for row in rows if (x := side(row))) for side in (_a, _b)]
        there = [any(side(row) for row in rows) for side in (_a, _b)]
        shown = [duration(ns) if is_there else "" for ns, is_there in zip(one, there, strict=True)]
        return [*shown, change(*(ns if x else None for ns, x in zip(one, there, strict=True)))]

    def one(part: Folded[Difference]) -> Cells:
        rows = list(rows_of([part]))
        if isinstance(part, Repeat):
            return [_turns(part), "", "", "", *sides(list(rows_of(part.body)))]
        if isinstance(part, Several):
            words = [plural(part.count, "step"), kinds(rows), ""]
        else:
            first = part.first
            ran = [_kernels([x for row in rows if (x := side(row))]) for side in (_a, _b)]
            if ran[0] == ran[1]:
                ran[1] = "same"
            words = [first.kind + repeats(first.row), *ran]
        return [*words, f"{part.count:,}", *sides(rows)]

    def mark(part: Folded[Difference]) -> str:
        rows = list(rows_of([part]))
        if all(row.in_both for row in rows):
            return ""
        if isinstance(part, Line):
            return "−" if rows[0].a else "+"
        return "±"

    lines = [[mark_, *cells] for mark_, cells in _marked(parts, one, mark)]
    print_lines(out, heads, lines, heads[4:], (heads[3], heads[2]))


def _a(row: Difference) -> Row | None:
    return row.a


def _b(row: Difference) -> Row | None:
    return row.b


def _lines(parts: Sequence[Folded[R]], one: Callable[[Folded[R]], Cells]) -> Iterator[Cells]:
    for _, cells in _marked(parts, one, lambda part: ""):
        yield cells


def _marked(
    parts: Sequence[Folded[R]],
    one: Callable[[Folded[R]], Cells],
    mark: Callable[[Folded[R]], str],
    indent: str = "",
) -> Iterator[tuple[str, Cells]]:
    """A line for each part, below that of the loop that holds it."""
    for part in parts:
        if not isinstance(part, Repeat):
            yield mark(part), _indented(one(part), indent)
            continue
        if is_line(part):  # of one row: its own line says it all
            [inner] = part.body
            cells = one(inner)
            cells[0] += f" · {_turns(part)}"
            yield mark(inner), _indented(cells, indent)
        else:
            cells = one(part)
            yield mark(part), _indented(cells, indent)
            yield from _marked(part.body, one, mark, indent + RUNG)
        for after, deviating in part.deviations:
            blank = [""] * (len(cells) - 1)
            yield "", [f"{indent}but turn {after + 1:,}:", *blank]
            yield from _marked(deviating, one, mark, indent + RUNG)


def _indented(cells: Cells, indent: str) -> Cells:
    return [indent + cells[0], *cells[1:]]


def _turns(loop: Repeat) -> str:
    low, high = min(loop.counts), max(loop.counts)
    if loop.deviations:  # its stretches between them are no counts of a loop around it
        return f"{loop.turns:,} ×"
    return f"{low:,} ×" if low == high else f"{low:,} to {high:,} ×"


def kinds(rows: Sequence[Row | Difference]) -> str:
    """What cheap steps do, the most frequent first."""
    counts = Counter(row.kind for row in rows)
    return ", ".join(
        f"{count:,} {kind}" if count > 1 else kind for kind, count in counts.most_common()
    )


def _kernels(rows: Sequence[Row]) -> str:
    """What ran at one place: the kernel of most turns, and how many others."""
    if not rows:
        return ""
    by_name: dict[str, Row] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        name = row.main.name
        by_name.setdefault(name, row)
        counts[name] += 1
    [(most, _)] = counts.most_common(1)
    others = f" +{len(counts) - 1}" if len(counts) > 1 and not rows[0].op else ""
    return what_ran(by_name[most]) + others
