"""A terminal, or whatever stands in its place: colours, width, aligned tables."""

from collections.abc import Collection, Sequence
from functools import partial

from rich.cells import cell_len, set_cell_size
from rich.console import Console, Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from ..cli import visible

WIDTH = 100
GAP = 2  # blanks between two columns
LEAST_WORDS = 12  # characters of a column of words that still say something
# Columns in the order in which they give way where there is no room, by their heads.
GIVES_WAY = (
    "in B", "what ran in A", "ranks", "of", "longest", "share", "bound by", "of idle", "elements",
    "kernel",
    "op", "times", "own thread", "any running", "which is", "calls", "÷ cuDNN", "min … max",
    "its backward", "autograd", "self CPU", "CPU", "launched by", "called by",
    "launched by, in the eager recording", "B − A",
)  # fmt: skip
CELL = 300  # characters of a stranger's text in a cell of a table


def console() -> Console:
    """Colours on a terminal; plain text of a fixed width anywhere else."""
    # Names of ops and kernels are no markup: [/] in one would raise, ::key:: become a picture.
    plain = partial(Console, highlight=False, markup=False, emoji=False)
    out = plain()
    return out if out.is_terminal else plain(width=WIDTH, no_color=True)


def print_plain(out: Console, what: Table | Text | str = "") -> None:
    """Print without the blanks that pad a table's last column or end a wrapped line; names of a
    stranger's file cannot write to the terminal.

    A text is a line. A line break before or behind it is layout, one inside it a stranger's.
    """
    if isinstance(what, Text):
        _make_visible(what)
    elif isinstance(what, Table):
        for column in what.columns:
            column._cells[:] = [_visible_cell(cell) for cell in column._cells]
        _fit(what, out.width)
    with out.capture() as captured:
        out.print(what)
    for line in captured.get().split("\n")[:-1]:
        print(line.rstrip(), file=out.file)


def _fit(table: Table, width: int) -> None:
    """Give each column its room: words give way where there is too little, then whole columns, the
    least worth first; a number is never cut."""
    needed = [_needed(column) for column in table.columns]
    least = [
        need if column.justify == "right" else min(need, LEAST_WORDS)
        for column, need in zip(table.columns, needed, strict=True)
    ]

    def room() -> int:
        return width - sum(least) - GAP * (len(least) - 1)

    if width - sum(needed) - GAP * (len(needed) - 1) >= 0:
        return
    for head in GIVES_WAY:
        for number in range(len(least) - 1, 0, -1):
            if room() < 0 and len(least) > 2 and str(table.columns[number].header) == head:
                del table.columns[number], needed[number], least[number]
    for number, column in enumerate(table.columns):
        column._index = number  # where it looks for its cells
    # Names whole, then what may wrap.
    for wraps in (False, True):
        for number, column in enumerate(table.columns):
            if bool(column.no_wrap) is not wraps:
                least[number] += max(0, min(needed[number] - least[number], room()))
    for column, characters in zip(table.columns, least, strict=True):
        column.width = characters
        column.max_width = None


def _needed(column: Column) -> int:
    """Characters of a column's longest line; its head may stand on several, a word on each."""
    lines = [len(word) for word in str(column.header).split()]
    for cell in column._cells:
        parts = cell.renderables if isinstance(cell, Group) else [cell]
        lines += [cell_len(str(part)) for part in parts]
    if column.justify == "right" or column.no_wrap:  # its head is a line
        lines.append(len(str(column.header)))
    needed = max(lines, default=0)
    needed = max(needed, column.min_width or 0)
    return min(needed, column.max_width) if column.max_width else needed


def _make_visible(text: Text) -> None:
    plain = text.plain
    before, behind = plain[:1] == "\n", len(plain) > 1 and plain[-1] == "\n"
    inside = visible(plain[before : len(plain) - behind])
    text.plain = "\n" * before + inside + "\n" * behind


def _visible_cell(cell: RenderableType) -> RenderableType:
    if isinstance(cell, Group):  # of lines, each with its own
        return Group(*map(_visible_cell, cell.renderables))
    if isinstance(cell, Text):
        cell.plain = visible(cell.plain, CELL)
        return cell
    return visible(cell, CELL) if isinstance(cell, str) else cell


def show_columns(
    out: Console, heads: Sequence[str], lines: Sequence[Sequence[str]], words: Collection[str]
) -> None:
    """Aligned. The columns whose heads are among `words` stand to the left and give way where there
    is no room; no number does."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for head in heads:
        if head in words:
            table.add_column(head, no_wrap=True, overflow="ellipsis")
        else:
            # Cells of one word do not give way to others that can.
            width = max(map(len, [*head.split("\n"), *(line[heads.index(head)] for line in lines)]))
            table.add_column(head, justify="right", no_wrap=True, min_width=width)
    for line in lines:
        table.add_row(*map(Text, line))
    print_plain(out, table)


LEAST = 12  # cells that a column keeps which gives way


def print_lines(
    out: Console,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    numbers: Sequence[str],
    give_way: Sequence[str],
    wrap: bool = False,
) -> None:
    """Aligned, a line each, in time that lists of any length leave. Columns of `numbers` stand to
    the right; where there is no room those that `give_way` do, the first one first, and are cut;
    with `wrap` the last column goes on below instead."""
    cells = [[visible(cell) for cell in line] for line in (heads, *lines)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    over = sum(widths) + 2 * (len(widths) - 1) - out.width
    for name in give_way:
        column = heads.index(name)
        least = min(widths[column], LEAST)
        less = min(max(over, 0), widths[column] - least)
        widths[column] -= less
        over -= less
    right = [head in numbers for head in heads]
    for number, line in enumerate(cells):
        rest = line[-1]
        if wrap and cell_len(rest) > widths[-1]:
            line[-1], rest = _broken(rest, widths[-1])
        else:
            rest = ""
        parts = [
            cell.rjust(width) if to_right else _fitted(cell, width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        text = "  ".join(parts).rstrip()
        if number:
            print(text, file=out.file)
        else:
            print_plain(out, Text(text, "dim", no_wrap=True, overflow="ignore"))
        while rest:
            more, rest = _broken(rest, widths[-1])
            print(" " * (sum(widths[:-1]) + 2 * (len(widths) - 1)) + more, file=out.file)


def _fitted(cell: str, width: int) -> str:
    size = cell_len(cell)
    return set_cell_size(cell, width - 1) + "…" if size > width else cell + " " * (width - size)


def _broken(text: str, width: int) -> tuple[str, str]:
    """What fits, up to a blank if there is one, and the rest."""
    if cell_len(text) <= width:
        return text, ""
    head = set_cell_size(text, width)
    cut = head.rfind(" ") if " " in head.strip() else len(head)
    return text[:cut], text[cut:].lstrip()


def show_table(
    out: Console,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    below: Sequence[str] = (),
) -> None:
    """Aligned, with a line of words below each; folded where there is no room."""
    lines = [[visible(cell, CELL) for cell in line] for line in lines]
    # A head may stand on several lines; they end where the numbers begin.
    parts = [head.split("\n") for head in heads]
    height = max(map(len, parts))
    tops = list(zip(*([""] * (height - len(part)) + part for part in parts), strict=True))
    widths = [max(map(len, column)) for column in zip(*tops, *lines, strict=True)]
    wide = sum(widths) + 2 * (len(widths) - 1) <= out.width
    for top in tops if wide else ():
        print_plain(out, Text(_aligned(top, widths), "dim"))
    for number, line in enumerate(lines):
        if wide:
            print_plain(out, Text(_aligned(line, widths)))
        else:
            print_plain(out, Text(line[0], "bold"))
            named = zip(heads[1:], line[1:], strict=True)
            words = [f"{' '.join(head.split())} {cell}" for head, cell in named if cell]
            print_plain(out, Text(" · ".join(words)))
        if below:
            print_plain(out, Text(f"  {below[number]}", "dim"))


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths, strict=True)
    return "  ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)])
