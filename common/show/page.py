"""Everything at a glance as one HTML page: lanes, tables and curves, and nothing from elsewhere.

The page needs no script and no network, and forbids itself both. A lane is the GPU's time of one
forward; lanes of one experiment are drawn to one scale. Whatever comes from a trace is escaped.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from statistics import median_low

import msgspec

from ..cli import visible
from ..compare.variants import Group, Refused, Sweep, Variant
from ..compare.worth import worth_seeing
from ..read.kernel_names import brief
from ..read.known import known
from ..read.observe import Forward, Observation, Step
from ..read.op_names import chain
from ..story import Conditions
from . import tables
from .words import conditions, duration, microseconds, size, work
from .worth import in_words

# Colours by what a step does; kinds of one row share one. (light, dark): white words are readable
# on the first, black ones on the second.
COLOURS = {
    "matmul": ("#1d5fc4", "#82aeff"),
    "attention": ("#08766a", "#4fd3bd"),
    "fused": ("#a3256f", "#f493cd"),
    "softmax": ("#7440b8", "#c5a2ff"),
    "mask": ("#855f00", "#ffcb54"),
    "arithmetic": ("#3b7410", "#9ed663"),
    "reduce": ("#4d5f8f", "#a9b8e6"),
    "copy": ("#c3261b", "#ff8076"),
    "cast": ("#a84d06", "#ffa964"),
    "fill": ("#59636f", "#b4bdc8"),
    "other": ("#6b625c", "#cbc2bb"),
}
ROW = {
    **{kind: kind for kind in COLOURS},
    **dict.fromkeys(("exp",), "softmax"),
    **dict.fromkeys(("where", "triu", "compare"), "mask"),
    **dict.fromkeys(("mul", "div", "add", "sub"), "arithmetic"),
    **dict.fromkeys(("cat",), "copy"),
    **dict.fromkeys(("memset",), "fill"),
    # of other models than those of this tutorial
    **dict.fromkeys(("conv", "rnn", "fft"), "matmul"),
    **dict.fromkeys(("activation", "math", "rope", "optimizer"), "arithmetic"),
    **dict.fromkeys(("normalization", "pool", "loss", "scan", "sort"), "reduce"),
    **dict.fromkeys(("index", "embedding", "resize"), "copy"),
    **dict.fromkeys(("quantize",), "cast"),
    **dict.fromkeys(("random",), "fill"),
    **dict.fromkeys(("communication", "routing"), "other"),
}
WORD_FITS = 7  # percent of a desktop's lane, from which on a bar has room for its kind
WORD_FITS_PHONE = 17
THIN = 0.7  # percent of the lane, up to which a bar has no room for a gap either


@dataclass(frozen=True)
class Bar:
    """A step on its lane, in nanoseconds from the lane's start."""

    step: Step
    start: int
    duration: float


def page(
    groups: Sequence[Group], measured: Sequence[Sweep], refused: dict[Refused, str], more: str = ""
) -> str:
    """The whole page. `more` is a line below the tables."""
    devices = dict.fromkeys(one.conditions.device.name for one in groups)
    kinds = {
        bar.step.kind for one in groups for variant in one.variants for bar in bars(variant.seen)
    }
    widths = scales(groups)
    body = [
        "<header><h1>Attention at a glance</h1>",
        f"<p>{_text(' and '.join(devices))}. Every lane is one forward; lanes below one another "
        "have one scale. Point at a step, or tap it, for its name and time.</p>",
        _legend(kinds),
        "</header><main>",
        *(_group(one, width) for one, width in zip(groups, widths, strict=True)),
        *(_sweep(one, refused) for one in measured),
        "</main><footer>",
        *(f"<p>{_text(line)}</p>" for line in [*tables.footnote(groups), more] if line),
        "</footer>",
    ]
    return f"{_head()}<body>\n" + "\n".join(body) + "\n</body></html>\n"


def _text(words: object) -> str:
    return escape(visible(str(words)), quote=True)


# ── Lanes ─────────────────────────────────────────────────────────────────────────────────────────


def bars(seen: Observation) -> list[Bar]:
    """The steps of the forward whose time is the median; none when a time of it is unknown."""
    forward = _median(seen)
    if forward is None:
        return []
    starts = known(step.gpu.start if step.gpu else step.ops[-1].start for step in forward.steps)
    times = known(step.ns for step in forward.steps)
    if starts is None or times is None:
        return []
    first = min(starts, default=0)
    spans = zip(forward.steps, starts, times, strict=True)
    return [Bar(step, start - first, ns) for step, start, ns in spans]


def _median(seen: Observation) -> Forward | None:
    def time(forward: Forward) -> float | None:
        return forward.gpu_ns if seen.on_gpu else forward.cpu_ns

    timed = [(ns, one) for one in seen.forwards if (ns := time(one)) is not None]
    middle = median_low(ns for ns, _ in timed) if timed else None
    return next((one for ns, one in timed if ns == middle), None)


def scales(groups: Sequence[Group]) -> list[float]:
    """The nanoseconds that a lane's full width stands for, for each group: the same for eager and
    compiled forwards of one experiment."""

    def experiment(one: Group) -> Conditions:
        return msgspec.structs.replace(one.conditions, mode="eager")

    longest: dict[Conditions, float] = {}
    for one in groups:
        for variant in one.variants:
            for bar in bars(variant.seen):
                end = max(longest.get(experiment(one), 1), bar.start + bar.duration)
                longest[experiment(one)] = end
    return [longest.get(experiment(one), 1) for one in groups]


def _group(one: Group, width: float) -> str:
    unit = "GPU" if one.on_gpu else "CPU"
    lanes = "".join(_lane(variant, width) for variant in one.variants)
    return (
        f"<section><h2>{_text(conditions(one.conditions))}</h2>"
        f'<div class="lanes">{lanes}{_axis(width)}</div>'
        f'<p class="note">{unit} time of one forward, the one of median time. '
        "The table has means over all of them.</p>"
        f"{_table(conditions(one.conditions), *tables.glance_table(one))}</section>"
    )


def _lane(variant: Variant, width: float) -> str:
    seen = variant.seen
    drawn = bars(seen)
    items = "".join(_bar(bar, width) for bar in drawn)
    # A lesson about one kernel begins with that.
    count = f"<span>{_text(work(seen))}</span> · " if len(seen.steps) > 2 else ""
    name, time = _text(variant.name), _text(duration(variant.ns))
    lane = (
        f'<ol class="lane" role="list" aria-label="{name}, step by step">{items}</ol>'
        if items
        else '<p class="lane none">no step with a known time</p>'
    )
    return (
        f'<div class="variant"><h3>{name}</h3><p class="time">{time}</p>{lane}'
        f'<p class="lesson">{count}{_text(in_words(worth_seeing(variant)))}</p></div>'
    )


def _row(step: Step) -> str:
    return ROW.get(step.kind, "other")


def _bar(bar: Bar, width: float) -> str:
    left, share = (100 * ns / width for ns in (bar.start, bar.duration))
    classes = [_row(bar.step)]
    if share < THIN:
        classes.append("thin")
    if left > 50:
        classes.append("east")
    narrow = "" if share >= WORD_FITS_PHONE else ' class="narrow"'
    word = f"<b{narrow}>{_text(bar.step.kind)}</b>" if share >= WORD_FITS else ""
    short = brief(bar.step.kernel) if bar.step.kernel else ""
    ops = chain(bar.step.path) if bar.step.path else ""
    tip = (
        f"<strong>{_text(bar.step.kind)} · {microseconds(bar.duration)}</strong> "
        f"{_text(short)} "
        f"<code>{_text(bar.step.name)}</code>"
        + (f" <small>launched by {_text(ops)}</small>" if ops and bar.step.gpu else "")
    )
    return (
        f'<li class="{" ".join(classes)}" tabindex="0" '
        f'style="left:{left:.4f}%;width:{share:.4f}%">{word}<span class="tip">{tip}</span></li>'
    )


def _axis(width: float) -> str:
    unit, word = (1e6, "ms") if width >= 1e6 else (1e3, "µs")
    marks = "".join(
        f'<span style="left:{100 * ns / width:.4f}%">{ns / unit:g}{f" {word}" if ns else ""}</span>'
        for ns in _ticks(width)
    )
    return f'<div class="axis" aria-hidden="true"><div>{marks}</div></div>'


def _ticks(width: float) -> list[int]:
    """From 0 in steps of 1, 2 or 5 of a power of ten; none where its words would not fit."""
    power = 10 ** math.floor(math.log10(width))
    steps = power // 5, power // 2, power, 2 * power, 5 * power
    step = next(s for s in steps if s and width / s <= 4)
    return [tick for tick in range(0, math.ceil(width), step) if tick < 0.88 * width]


def _legend(kinds: Iterable[str]) -> str:
    """The colours of the kinds that the page shows."""
    shown: dict[str, list[str]] = {row: [] for row in COLOURS}
    for kind in sorted(kinds, key=lambda kind: (kind not in COLOURS, kind)):
        shown[ROW.get(kind, "other")].append(kind)
    items = "".join(
        f'<li><i class="{row}"></i>{_text(", ".join(same))}</li>'
        for row, same in shown.items()
        if same
    )
    return f'<ul class="legend" role="list" aria-label="Colours">{items}</ul>'


# ── Tables ────────────────────────────────────────────────────────────────────────────────────────


def _table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{_text(" ".join(head.split()))}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{_text(line[0])}</th>'
        + "".join(f"<td>{_text(cell)}</td>" for cell in line[1:])
        + "</tr>"
        for line in lines
    )
    # On a phone it is wider than the page: it can be moved, by keyboard too.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{_text(title)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


# ── Curves ────────────────────────────────────────────────────────────────────────────────────────

WIDE, HIGH = 520, 400
LEFT, RIGHT, TOP, BOTTOM = 62, 122, 12, 44
LINE = 15  # between the names at the curves' ends


def _sweep(one: Sweep, refused: dict[Refused, str]) -> str:
    on_gpu = one.groups[0].on_gpu
    shown = [_curves("time of a forward", one, lambda v: v.ns, duration, 10)]
    if on_gpu:
        shown.append(_curves("peak memory over the inputs", one, lambda v: v.peak_bytes, size, 2))
    figures = "".join(
        f"<h3>{_text(title)}</h3>{_table(title, heads, lines)}"
        for title, heads, lines in tables.sweep_tables(one)
    )
    gaps = "".join(f"<li>{_text(line)}</li>" for line in tables.missing(one, refused))
    return (
        f"<section><h2>By length · {_text(conditions(one.conditions))}</h2>"
        f'<div class="curves">{"".join(shown)}</div>'
        '<p class="note">Both axes are logarithmic: a power of the length is a straight line, and '
        "its exponent the slope.</p>"
        + (f'<ul class="gaps">{gaps}</ul>' if gaps else "")
        + f"{figures}</section>"
    )


def _curves(
    title: str,
    one: Sweep,
    value: Callable[[Variant], float | None],
    words: Callable[[float], str],
    base: int,
) -> str:
    """A chart on two logarithmic axes, the name of each curve at its end."""
    series = {}
    for curve in one.curves.values():
        points = [(x, y) for x in sorted(curve) if (y := value(curve[x]))]
        if points:
            series[next(iter(curve.values())).name] = points
    if not series:
        return ""
    xs = [math.log(x) for x in one.lengths]
    ys = [math.log(y) for points in series.values() for _, y in points]
    across = _scale(min(xs), max(xs), LEFT, WIDE - RIGHT)
    down = _scale(min(ys), max(ys), HIGH - BOTTOM, TOP)
    parts = []
    low, high = math.exp(min(ys)), math.exp(max(ys))
    for tick in _marks(low, high, base):
        y = down(math.log(tick))
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDE - RIGHT}"/>')
        parts.append(
            f'<text class="tick" x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">'
            f"{_text(words(tick))}</text>"
        )
    for length in one.lengths:
        x = across(math.log(length))
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{HIGH - BOTTOM}"/>')
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{HIGH - BOTTOM + 18}" text-anchor="middle">'
            f"{length}</text>"
        )
    parts.append(
        f'<text class="tick" x="{(LEFT + WIDE - RIGHT) / 2}" y="{HIGH - 6}" text-anchor="middle">'
        "tokens in a sequence</text>"
    )
    ends = [down(math.log(points[-1][1])) for points in series.values()]
    for number, ((name, points), end, label) in enumerate(
        zip(series.items(), ends, _apart(ends), strict=True)
    ):
        places = [(across(math.log(x)), down(math.log(y)), x, y) for x, y in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _, _ in places)
        last = places[-1][0]
        parts.append(
            f'<g class="curve c{number % CURVES}"><polyline points="{path}"/>'
            + "".join(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2"><title>{_text(name)}, {length}: '
                f"{_text(words(figure))}</title></circle>"
                for x, y, length, figure in places
            )
            + f'<path class="lead" d="M{last + 4:.1f} {end:.1f}L{WIDE - RIGHT + 10} {label:.1f}"/>'
            f'<text x="{WIDE - RIGHT + 13}" y="{label + 4:.1f}">{_text(name)}</text></g>'
        )
    return (
        f"<figure><figcaption>{_text(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{_text(title)} against the '
        f'length of the sequence; the figures stand in the table below">{"".join(parts)}</svg>'
        "</figure>"
    )


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1
    return lambda value: start + (value - low) / span * (end - start)


def _marks(low: float, high: float, base: int) -> list[float]:
    """Powers of the base within the range, six at the most; its ends where there is none."""
    first, last = math.ceil(math.log(low, base)), math.floor(math.log(high, base))
    if first > last:
        return sorted({low, high})
    return [float(base) ** k for k in range(first, last + 1, (last - first) // 6 + 1)]


def _apart(places: Sequence[float]) -> list[float]:
    """The places moved as little as need be for names not to overlap, inside the chart."""
    order = sorted(range(len(places)), key=places.__getitem__)
    moved = list(places)
    for before, this in zip(order, order[1:], strict=False):
        moved[this] = max(moved[this], moved[before] + LINE)
    bottom: float = HIGH - BOTTOM
    for this in reversed(order):
        moved[this] = min(moved[this], bottom)
        bottom = moved[this] - LINE
    return moved


# ── Style ─────────────────────────────────────────────────────────────────────────────────────────

# Of the curves, (light, dark).
CURVE_COLOURS = (
    ("#c3261b", "#ff8076"), ("#a84d06", "#ffa964"), ("#7440b8", "#c5a2ff"), ("#3b7410", "#9ed663"),
    ("#08766a", "#4fd3bd"), ("#1d5fc4", "#82aeff"), ("#59636f", "#b4bdc8"), ("#855f00", "#ffcb54"),
    ("#a3256f", "#f493cd"), ("#4d5f8f", "#a9b8e6"), ("#6b625c", "#cbc2bb"), ("#00677f", "#6cc9e4"),
)  # fmt: skip
CURVES = len(CURVE_COLOURS)

STYLE = """
:root { color-scheme: light dark; --page: #fbfaf8; --ink: #1c1f24; --soft: #5b626d;
  --line: #e3e0da; --track: #f0eeea; --on: #fff; --card: #fff; }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --ink: #e9e7e3; --soft: #a3a9b3;
  --line: #2c3038; --track: #1e2127; --on: #14161a; --card: #1b1e24; } }
* { box-sizing: border-box; margin: 0; }
body { background: var(--page); color: var(--ink); max-width: 70rem; margin: 0 auto;
  padding: 2.5rem 1.25rem 6rem; font: 1rem/1.5 system-ui, sans-serif;
  font-variant-numeric: tabular-nums; -webkit-text-size-adjust: 100%; }
h1 { font-size: 1.9rem; font-weight: 650; letter-spacing: -0.02em; line-height: 1.2; }
h2 { font-size: 1.05rem; font-weight: 600; margin: 3rem 0 1.25rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 0.95rem; font-weight: 600; }
header p { color: var(--soft); margin-top: 0.5rem; max-width: 44rem; }
.note, .lesson, footer, .gaps { color: var(--soft); font-size: 0.875rem; }
.note { margin-top: 0.75rem; }
.legend { list-style: none; padding: 0; margin-top: 1.25rem; display: flex; flex-wrap: wrap;
  gap: 0.35rem 1.1rem; font-size: 0.875rem; color: var(--soft); }
.legend i { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 3px;
  margin-right: 0.4rem; vertical-align: -0.08rem; }
.variant { display: grid; grid-template-columns: 9rem 1fr 5rem; column-gap: 1rem;
  align-items: center; margin-bottom: 0.7rem; }
.variant .time { grid-column: 3; grid-row: 1; text-align: right; font-weight: 600; }
.variant .lane { grid-column: 2; grid-row: 1; }
.variant .lesson { grid-column: 2 / 4; margin-top: 0.15rem; }
.lane { list-style: none; padding: 0; position: relative; height: 2.1rem; border-radius: 4px;
  background: var(--track); }
.lane.none { padding: 0.3rem 0.6rem; color: var(--soft); font-size: 0.875rem; }
.lane li { position: absolute; top: 0; bottom: 0; min-width: 2px; color: var(--on);
  border-radius: 2px; box-shadow: inset -1px 0 0 var(--track); cursor: default; }
.lane li.thin { box-shadow: none; border-radius: 0; }
.lane b { display: block; overflow: hidden; padding-left: 0.45rem;
  font-size: 0.8rem; font-weight: 500; line-height: 2.1rem; white-space: nowrap; }
.lane li:hover, .lane li:focus { outline: 2px solid var(--ink); outline-offset: 1px; z-index: 2; }
.tip { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
li:hover > .tip, li:focus > .tip { width: max-content; max-width: 26rem; height: auto;
  clip-path: none; top: calc(100% + 7px); left: 0; z-index: 3; padding: 0.6rem 0.8rem;
  background: var(--card); color: var(--ink); border: 1px solid var(--line); border-radius: 6px;
  box-shadow: 0 6px 24px rgb(0 0 0 / 0.18); font-size: 0.85rem; line-height: 1.4;
  pointer-events: none; }
li.east:hover > .tip, li.east:focus > .tip { left: auto; right: 0; }
.tip code, .tip small { display: block; margin-top: 0.25rem; overflow-wrap: anywhere;
  font-size: 0.78rem; color: var(--soft); }
.tip code { font-family: ui-monospace, monospace; display: -webkit-box; overflow: hidden;
  -webkit-box-orient: vertical; -webkit-line-clamp: 4; }
.axis { padding: 0 6rem 0 10rem; height: 1.4rem; font-size: 0.75rem; color: var(--soft); }
.axis div { position: relative; border-top: 1px solid var(--line); }
.axis span { position: absolute; top: 0; padding: 0.2rem 0 0 0.25rem; white-space: nowrap;
  border-left: 1px solid var(--line); }
.scroll { overflow-x: auto; margin-top: 1.25rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; }
th, td { padding: 0.4rem 0 0.4rem 1rem; text-align: right; font-weight: 400; white-space: nowrap;
  border-bottom: 1px solid var(--line); }
thead th { color: var(--soft); white-space: normal; vertical-align: bottom; line-height: 1.25; }
tbody th { font-weight: 600; }
th:first-child { text-align: left; padding: 0.4rem 0; position: sticky; left: 0;
  background: var(--page); }
.curves { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(26rem, 100%), 1fr));
  gap: 1.5rem; }
figcaption { font-weight: 600; font-size: 0.95rem; margin-bottom: 0.5rem; }
svg { display: block; width: 100%; height: auto; font: 13px system-ui, sans-serif; }
svg .grid { stroke: var(--line); fill: none; }
svg .tick { fill: var(--soft); }
.curve polyline { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.curve circle, .curve text { fill: currentColor; }
.curve .lead { stroke: currentColor; fill: none; opacity: 0.45; }
.curve:hover polyline { stroke-width: 4; }
section > h3 { margin-top: 2rem; }
.gaps { padding-left: 1.1rem; margin-top: 0.75rem; }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); }
footer p { max-width: 48rem; overflow-wrap: anywhere; }
.lesson span { color: var(--ink); }
@media (max-width: 60rem) { .lane b.narrow { display: none; } }
@media (max-width: 44rem) {
  body { padding: 1.5rem 1rem 8rem; }
  h1 { font-size: 1.6rem; }
  .variant { grid-template-columns: 1fr auto; margin-bottom: 1.1rem; row-gap: 0.25rem; }
  .variant .time { grid-column: 2; }
  .variant .lane { grid-column: 1 / 3; grid-row: 2; }
  .variant .lesson { grid-column: 1 / 3; }
  .axis { padding: 0; }
  .lane li:hover > .tip, .lane li:focus > .tip { position: fixed; top: auto; left: 0.75rem;
    right: 0.75rem; bottom: 0.75rem; width: auto; max-width: none; }
}
"""


def _head() -> str:
    rules = [STYLE]
    for mode in (0, 1):
        chosen = "".join(
            f".{row} {{ background: {both[mode]}; }}\n" for row, both in COLOURS.items()
        )
        chosen += "".join(
            f".c{n} {{ color: {both[mode]}; }}\n" for n, both in enumerate(CURVE_COLOURS)
        )
        rules.append(f"@media (prefers-color-scheme: dark) {{\n{chosen}}}\n" if mode else chosen)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Attention at a glance</title><style>{''.join(rules)}</style></head>"
    )
