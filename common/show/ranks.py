"""The ranks of one job beside each other: who is late, and who waits for whom."""

from rich.console import Console
from rich.text import Text

from ..read.ranks import Job, Kind, Row, middle
from .as_json import us
from .language import in_english
from .modules import left_out
from .terminal import print_plain, show_columns
from .words import FEW, duration, few, percent, plural, plural_of

MOST = 20  # ranks of a table
WAITS = 8
LISTED = 100  # waits in JSON


@in_english
def show_ranks(out: Console, seen: Job) -> None:
    told = f"{plural(len(seen.rows), 'rank')}"
    if seen.size is not None:
        told = f"{len(seen.rows)} of {plural(seen.size, 'rank')}"
    print_plain(out, Text(" · ".join([told, *seen.devices]), "bold"))
    print_plain(out)
    _show_rows(out, seen)
    print_plain(out)
    print_plain(out, straggler(seen))
    if seen.waits:
        print_plain(out)
        _show_waits(out, seen)
    for text in warnings(seen):
        print_plain(out, Text(f"warning: {text}", "yellow"))


def _show_rows(out: Console, seen: Job) -> None:
    heads = ["rank", "CPU a\nstep", "GPU\nbusy", "computes", "in commu-\nnication", "exposed"]
    heads += ["over-\nlapped", "waited", "waited\nfor"]
    listed = sorted(seen.rows, key=_worth) if len(seen.rows) > MOST else list(seen.rows)
    lines = [
        [
            row.who.removeprefix("rank "),
            duration(row.step_cpu),
            *map(duration, (row.busy, row.compute, row.communication, row.exposed)),
            *map(duration, (row.overlapped, row.waited, row.waited_for)),
        ]
        for row in listed[:MOST]
    ]
    if len(seen.rows) > 1:
        columns = ["step_cpu", "busy", "compute", "communication", "exposed", "overlapped"]
        columns += ["waited", "waited_for"]
        middles = [middle(getattr(row, name) for row in seen.rows) for name in columns]
        lines.append(["median", *map(duration, middles)])
    show_columns(out, heads, lines, {"rank"})
    if more := len(listed) - MOST:
        if more > 0:
            words = f"and {plural(more, 'rank')} more, who were waited for less; --json has all"
            print_plain(out, Text(words, "dim"))


def _worth(row: Row) -> tuple:
    return -(row.waited_for or 0), -(row.step_cpu or 0), row.rank or 0


def straggler(seen: Job) -> str:
    if not seen.collectives:
        return (
            "who waits for whom is unknown: no collective of all ranks of a group is in these "
            "files, as far as they tell"
        )
    if seen.straggler is None:
        return f"nobody waited: {plural(seen.collectives, 'collective')}, alike on all ranks"
    row = next(row for row in seen.rows if row.who == seen.straggler)
    others = [other for other in seen.rows if other is not row]
    words = (
        f"{row.who} is the straggler: it came last in {seen.last} of "
        f"{plural(seen.collectives, 'collective')}, and others waited {duration(row.waited_for)} "
        "for it"
    )
    for what, mine, usual in (
        ("computes", row.compute, middle(other.compute for other in others)),
        ("takes CPU time a step", row.step_cpu, middle(other.step_cpu for other in others)),
    ):
        if mine and usual and abs(mine / usual - 1) >= 0.02:
            more = "more" if mine > usual else "less"
            words += f"; it {what} {percent(abs(mine / usual - 1))} {more} than the others"
    return words


def _show_waits(out: Console, seen: Job) -> None:
    lines = [
        [
            f"{named(wait.kind)}, no. {wait.number:,}",
            wait.last,
            wait.whose,
            duration(wait.longest),
            duration(wait.total),
        ]
        for wait in seen.waits[:WAITS]
    ]
    heads = ["longest waits", "for", "longest", "it waited", "all waited"]
    show_columns(out, heads, lines, {"longest waits", "for", "longest"})
    if more := len(seen.waits) - WAITS:
        if more > 0:
            rest = sum(wait.total for wait in seen.waits[WAITS:])
            words = f"and {plural(more, 'collective')} more, {duration(rest)} in all"
            print_plain(out, Text(words, "dim"))


def named(kind: Kind) -> str:
    words = kind.name.strip("_")
    if kind.elements is not None:
        words += f" of {kind.elements:,}"
    return f"{words} · {kind.group}" if kind.group else words


def warnings(seen: Job) -> list[str]:
    said = []
    if seen.missing:
        verb = "is" if len(seen.missing) == 1 else "are"
        listed = few([str(rank) for rank in seen.missing])
        word = "rank" if len(seen.missing) == 1 else plural_of("rank")
        said.append(f"{word} {listed} {verb} not among the files")
    if nameless := sum(row.rank is None for row in seen.rows):
        said.append(f"{plural(nameless, 'file')} of no rank that is told: named by the file")
    if untold := sum(row.untold for row in seen.rows):
        said.append(
            f"{plural(untold, 'collective')} of a group that is not told: in no wait (record with "
            "a newer torch)"
        )
    for kind, least, most in seen.unmatched[:FEW]:
        said.append(
            f"{named(kind)}: {least} on one rank and {most} on another, so which belong together "
            "is unknown: in no wait"
        )
    for _, why in seen.unread[:FEW]:
        said.append(f"left out: {why}")
    if more := seen.unread[FEW:]:
        said.append(f"left out: {plural(len(more), 'more file')}")
    return said


@in_english
def ranks_json(seen: Job, top: int | None = None) -> dict:
    return {
        "ranks": [
            {
                "rank": row.rank,
                "file": row.file,
                "steps": row.steps,
                "step_cpu_us": us(row.step_cpu),
                "gpu_span_us": us(row.span),
                "gpu_busy_us": us(row.busy),
                "compute_us": us(row.compute),
                "communication_us": us(row.communication),
                "communication_exposed_us": us(row.exposed),
                "communication_overlapped_us": us(row.overlapped),
                "waited_us": us(row.waited),
                "waited_for_us": us(row.waited_for),
            }
            for row in (seen.rows if top is None else sorted(seen.rows, key=_worth)[:top])
        ],
        "job_ranks": seen.size,
        "devices": list(seen.devices),
        "missing_ranks": list(seen.missing[:top]),
        "collectives": seen.collectives,
        "straggler": seen.straggler,
        "straggler_last_in": seen.last if seen.straggler else None,
        "waits": [
            {
                "collective": wait.kind.name,
                "group": wait.kind.group,
                "elements": wait.kind.elements,
                "number": wait.number,
                "last": wait.last,
                "waited_longest": wait.whose,
                "longest_us": us(wait.longest),
                "all_us": us(wait.total),
            }
            for wait in seen.waits[: LISTED if top is None else top]
        ],
        "waits_us": us(sum(wait.total for wait in seen.waits)) if seen.collectives else None,
        "warnings": warnings(seen),
        **left_out(
            {
                "ranks": (len(seen.rows), top),
                "waits": (len(seen.waits), LISTED if top is None else top),
            }
        ),
    }
