"""A terminal, or whatever stands in its place: colours, width, aligned tables."""

from collections.abc import Collection, Sequence
from functools import partial

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from ..cli import visible

WIDTH = 100


def console() -> Console:
    """Colours on a terminal; plain text of a fixed width anywhere else."""
    # Names of ops and kernels are no markup: [/] in one would raise, ::key:: become a picture.
    plain = partial(Console, highlight=False, markup=False, emoji=False)
    out = plain()
    return out if out.is_terminal else plain(width=WIDTH, no_color=True)


def print_plain(out: Console, what: Table | Text | str = "") -> None:
    """Print without the blanks that pad a table's last column or end a wrapped line; names of a
    stranger's file cannot write to the terminal."""
    _make_visible(what)
    with out.capture() as captured:
        out.print(what)
    for line in captured.get().split("\n")[:-1]:
        print(line.rstrip(), file=out.file)


def _make_visible(what: Table | Text | str) -> None:
    if isinstance(what, Text):
        what.plain = visible(what.plain)
    elif isinstance(what, Table):
        for column in what.columns:
            column._cells[:] = [_visible_cell(cell) for cell in column._cells]


def _visible_cell(cell: RenderableType) -> RenderableType:
    if isinstance(cell, Text):
        _make_visible(cell)
        return cell
    return visible(cell) if isinstance(cell, str) else cell


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


def show_table(
    out: Console,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    below: Sequence[str] = (),
) -> None:
    """Aligned, with a line of words below each; folded where there is no room."""
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
