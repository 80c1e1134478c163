"""Lists of any length, aligned, a line each."""

import io

from rich.console import Console

from common.show.terminal import print_lines


def printed(lines, width=40, heads=("name", "n", "what it was"), **more) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True)
    print_lines(console, heads, lines, ("n",), (heads[-1],), **more)
    return out.getvalue().split("\n")[:-1]


def test_numbers_stand_to_the_right():
    head, *lines = printed([["a", "5", "x"], ["bcd", "1,234", "y"]])
    assert head == "name      n  what it was"
    assert lines == ["a         5  x", "bcd   1,234  y"]


def test_what_gives_way_is_cut_and_numbers_are_not():
    lines = printed([["a", "1,234,567", "long " * 20]], width=30)
    assert all(len(line) <= 30 for line in lines)
    assert lines[1].startswith("a     1,234,567  long") and lines[1].endswith("…")


def test_the_last_column_goes_on_below_if_asked():
    _, *lines = printed([["a", "1", "one two three four five six"]], width=24, wrap=True)
    assert " ".join(line[9:].strip() for line in lines) == "one two three four five six"
    assert all(line.startswith(" " * 9) for line in lines[1:]) and len(lines) > 1
    _, *lines = printed([["a", "1", "x" * 50]], width=24, wrap=True)
    assert "".join(line[9:] for line in lines) == "x" * 50


def test_a_stranger_s_names_write_nothing_to_the_terminal():
    assert "\x1b" not in "".join(printed([["\x1b[31m", "1", "\x1b[0m"]]))


def test_wide_letters_take_two_cells():
    _, first, second = printed([["注意", "1", "x"], ["abcd", "2", "x"]])
    assert first.index("1") == second.index("2") - 2
