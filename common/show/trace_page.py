"""One trace as an HTML page: what its report says, and the roofline.

No script, and nothing from elsewhere. Whatever comes from a trace is escaped.
"""

from collections.abc import Sequence

from ..cli import shown
from ..compare.advice import Top, top_of_region, top_of_trace
from ..compare.compared import Compared
from ..compare.rates import Rate, Rates, by_op, gpu_of, rates_of_ops
from ..compare.rows import rows
from ..read.op_names import said
from ..read.survey import Survey
from . import page, rates, roofline
from .report import table_of_steps
from .top import advice, shares
from .warnings import survey_warnings, trust, warnings
from .words import duration, headline, sums, time_of_gpu

MOST = 30  # ops, kernels


def page_of_region(compared: Compared) -> str:
    seen = compared.seen
    shown_rows = rows(seen.steps)
    its = Rates(seen.steps, seen)
    found = by_op(its, shown_rows)
    steps = table_of_steps(seen, shown_rows, seen.wrappers, its, room=len(shown_rows) + 1)
    below = [sums(seen), time_of_gpu(seen.usage, "inside a forward")]
    body = [_top(top_of_region(seen))]
    if its.by_shapes:
        named = [(one.row.kind, one.rate) for one in found if one.rate]
        lines = rates.step_lines(found[:MOST])
        notes = rates.notes([rate for _, rate in named], its.gpu)
        body.append(_rates(named, [*rates.HEADS, *rates.RATES, "bound by"], lines, notes))
    body.append(f"<section><h2>Steps</h2>{page._table('Steps', *steps)}</section>")
    return _page(headline(seen), trust(seen.linked), body, [*below, *warnings(seen)])


def page_of_trace(seen: Survey) -> str:
    found = rates_of_ops(seen.linked)
    devices = sorted({str(d["name"]) for d in seen.trace.devices if "name" in d})
    body = [_top(top_of_trace(seen.linked, seen.usage))]
    if found:
        notes = rates.notes([rate for _, rate in found], gpu_of(seen.trace))
        named = [(said(name), rate) for name, rate in found]
        heads = [*rates.OP_HEADS, *rates.RATES, "bound by"]
        body.append(_rates(named, heads, rates.op_lines(found[:MOST]), notes))
    if seen.labels:
        lines = [
            [one.name, f"{one.count:,}", duration(one.cpu), duration(one.gpu)]
            for one in seen.labels[:MOST]
        ]
        table = page._table("Labels", ["label", "times", "CPU", "GPU"], lines)
        body.append(f"<section><h2>Labels</h2>{table}</section>")
    for title, totals in (("Kernels", seen.kernels), ("Ops", seen.ops)):
        lines = [[one.name, f"{one.count:,}", duration(one.gpu)] for one in totals]
        table = page._table(title, [title.lower(), "times", "GPU"], lines)
        body.append(f"<section><h2>{title}</h2>{table}</section>")
    title = " · ".join([shown(seen.trace.path), *devices])
    below = [time_of_gpu(seen.usage), *survey_warnings(seen)]
    return _page(title, trust(seen.linked), body, below)


def _top(top: Top) -> str:
    if not top.shares.whole:
        return ""
    lines = "".join(f"<li>{page._text(advice(one))}</li>" for one in top.advice)
    worth = f"<h2>Most worth doing</h2><ol>{lines}</ol>" if lines else ""
    return f"<section><p>GPU time: {page._text(shares(top.shares))}</p>{worth}</section>"


def _rates(
    named: Sequence[tuple[str, Rate]],
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    notes: Sequence[str],
) -> str:
    figure = roofline.roofline(named)
    words = "".join(f'<p class="note">{page._text(note)}</p>' for note in notes)
    table = page._table("Rates", heads, lines)
    return f"<section><h2>Rates</h2>{figure}{words}{table}</section>"


def _page(title: str, doubt: str | None, body: Sequence[str], below: Sequence[str]) -> str:
    lines = "".join(f"<p>{page._text(line)}</p>" for line in below if line)
    trusted = f"<p>how far to trust it: {page._text(doubt)}</p>" if doubt else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{page._text(title)}</title><style>{page.STYLE}{roofline.STYLE}</style></head>"
        f"<body><header><h1>{page._text(title)}</h1>{trusted}</header>\n<main>"
        + "\n".join(body)
        + f"</main>\n<footer>{lines}</footer></body></html>\n"
    )
