"""Everything at a glance as one HTML page: lanes, tables and curves, and nothing from elsewhere.

The page needs no script and no network, and forbids itself both. A lane is the GPU's time of one
forward; lanes of one experiment are drawn to one scale, and the short ones once more, to a finer
one. Whatever comes from a trace is escaped.
"""

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low
from urllib.parse import quote

import msgspec

from ..compare.facts import POST_GPU, POST_TITLE
from ..compare.variants import Group, Refused, Sweep, Variant
from ..compare.worth import worth_seeing
from ..read.kernel_names import brief
from ..read.known import known
from ..read.observe import Forward, Observation, Step
from ..read.op_names import chain
from ..story import Conditions
from . import tables
from .html import COLOURS, LETTER, LONGEST, axis, legend, on_bar, row
from .html import table as _table
from .html import text as _text
from .language import say, spoken
from .launches import opened
from .words import conditions, digits, duration, microseconds, size, what, work
from .worth import in_words

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide.md"
TITLE = "Attention at a glance"
SLOPES = (
    "Both axes are logarithmic: a power of the length is a straight line, and its exponent the "
    "slope."
)
SHORT = 6  # a lane that is shorter than this part of the width is magnified

THIN = 0.7  # percent of the lane, up to which a bar has no room for a gap either


@dataclass(frozen=True)
class Bar:
    """A step on its lane, in nanoseconds from the lane's start."""

    step: Step
    start: int
    duration: float


def page(
    groups: Sequence[Group],
    measured: Sequence[Sweep],
    refused: dict[Refused, str],
    more: str = "",
    place: Path | None = None,
) -> str:
    """The whole page. `more` is a line below the tables; `place` is the file that it will be, for
    links to what lies near it."""
    devices = dict.fromkeys(one.conditions.device.name for one in groups)
    kinds = {
        bar.step.kind for one in groups for variant in one.variants for bar in bars(variant.seen)
    }
    head, below = headline(groups)
    body = [
        f'<header><p class="over">{_text(say(TITLE))}</p><h1>{_text(head)}</h1>',
        f"<p>{_text(below)}</p>" if below else "",
        f"<p>{'' if below else _text(say(' and ').join(devices) + '. ')}"
        + _text(
            say(
                "Every lane is one forward; lanes below one another have one scale. Point at a "
                "step for its name and time, or open the steps of a lane."
            )
        )
        + "</p>",
        legend(kinds),
        "</header><main>",
        *(
            _group(one, width, finer, place)
            for one, width, finer in zip(groups, scales(groups), finer_scales(groups), strict=True)
        ),
        *(_sweep(one, refused) for one in measured),
        "</main><footer>",
        *(f"<p>{_text(line)}</p>" for line in [*tables.footnote(groups), more] if line),
        f"<p>{_link(GUIDE, say('The guide'), place)} "
        + _text(
            say(
                "goes through such recordings, one by one. The post is “{title}”.", title=POST_TITLE
            )
        )
        + "</p>",
        "</footer>",
    ]
    return f"{_head()}<body>\n" + "\n".join(filter(None, body)) + "\n</body></html>\n"


def headline(groups: Sequence[Group]) -> tuple[str, str]:
    """How much faster than naive the fastest is, with how much less memory, and which that is."""
    found = [
        (one, best)
        for one in groups
        if (timed := [v for v in one.variants if v.ratio])
        and (best := min(timed, key=lambda v: v.ratio or 1)).naive
        and (best.ratio or 1) < 1
    ]
    if not found:
        return say("Attention, variant by variant"), ""
    one, best = found[0]
    naive = next(v for v in one.variants if v.seen is best.naive)
    assert best.ratio
    fields = {
        "times": digits(1 / best.ratio),
        "fast": best.name,
        "fast_work": work(best.seen),
        "fast_time": duration(best.ns),
        "naive": naive.name,
        "naive_work": work(naive.seen),
        "naive_time": duration(naive.ns),
    }
    head = say("{times} times faster than naive attention", **fields)
    below = say(
        "{fast}, {fast_work}, takes {fast_time} of GPU time where {naive}, {naive_work}, takes "
        "{naive_time}."
        if one.on_gpu
        else "{fast}, {fast_work}, takes {fast_time} of CPU time where {naive}, {naive_work}, "
        "takes {naive_time}.",
        **fields,
    )
    if best.peak_bytes and naive.peak_bytes:
        share = naive.peak_bytes / best.peak_bytes
        if share >= 1.05:
            head = say("{head}, with {less} times less memory", head=head, less=digits(share))
        below += " " + say(
            "At its peak it holds {fast} over its inputs, not {naive}.",
            fast=size(best.peak_bytes),
            naive=size(naive.peak_bytes),
        )
    return head, f"{below} {conditions(one.conditions)}."


def _link(target: Path, words: str, place: Path | None) -> str:
    """A link where the way from the page to the file leads through no folder that the file's
    receiver need not know of; else the words alone."""
    if place is not None:
        near, far = place.resolve().parent, target.resolve()
        if far.exists() and any(
            far.is_relative_to(folder) and near.is_relative_to(folder) for folder in (near, ROOT)
        ):
            way = quote(Path(os.path.relpath(far, near)).as_posix())
            return f'<a href="{_text(way)}">{_text(words)}</a>'
    return _text(words)


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
    return [longest or 1 for longest in _longest(groups, lambda variant: [end(variant)])]


def finer_scales(groups: Sequence[Group]) -> list[float | None]:
    """The same for the lanes that are SHORT on that scale, and what was published of them; None
    where all are, or none."""
    widths = dict(zip(map(_experiment, groups), scales(groups), strict=True))

    def ends(variant: Variant) -> list[float]:
        if not is_short(variant, widths[_experiment_of(variant)]):
            return []
        return [end(variant), _published(variant) or 0]

    some = _longest(groups, ends)
    long = _longest(
        groups,
        lambda variant: [0 if is_short(variant, widths[_experiment_of(variant)]) else end(variant)],
    )
    return [one if one and whole else None for one, whole in zip(some, long, strict=True)]


def end(variant: Variant) -> float:
    """Where its lane ends, in nanoseconds from its start; 0 where that is unknown."""
    return max((bar.start + bar.duration for bar in bars(variant.seen)), default=0)


def is_short(variant: Variant, width: float) -> bool:
    return 0 < end(variant) * SHORT < width


def _experiment(one: Group) -> Conditions:
    return msgspec.structs.replace(one.conditions, mode="eager")


def _experiment_of(variant: Variant) -> Conditions:
    return msgspec.structs.replace(variant.story.conditions, mode="eager")


def _longest(groups: Sequence[Group], ends: Callable[[Variant], Sequence[float]]) -> list[float]:
    """For each group, over all of its experiment."""
    longest: dict[Conditions, float] = {}
    for one in groups:
        for variant in one.variants:
            found = [*ends(variant), longest.get(_experiment(one), 0)]
            longest[_experiment(one)] = max(found)
    return [longest.get(_experiment(one), 0) for one in groups]


def _published(variant: Variant) -> float | None:
    """Nanoseconds, on the post's GPU."""
    told = variant.published
    return told.gpu_us * 1e3 if told and told.gpu_us else None


def _group(one: Group, width: float, finer: float | None, place: Path | None) -> str:
    lanes = "".join(_variant(variant, width, finer is not None, place) for variant in one.variants)
    note = "GPU time of one forward, the one of median time. The table has means over all of them."
    if not one.on_gpu:
        note = (
            "CPU time of one forward, the one of median time. The table has means over all of them."
        )
    return (
        f"<section><h2>{_text(conditions(one.conditions))}</h2>"
        f'<div class="lanes">{lanes}{axis(width)}</div>'
        f"{_magnified(one, width, finer) if finer else ''}"
        f'<p class="note">{_text(say(note))}</p>'
        f"{_table(conditions(one.conditions), *tables.glance_table(one))}</section>"
    )


def _variant(variant: Variant, width: float, magnifies: bool, place: Path | None) -> str:
    seen = variant.seen
    drawn = bars(seen)
    # A lesson about one kernel begins with that.
    count = f"<span>{_text(work(seen))}</span> · " if len(seen.steps) > 2 else ""
    said = f"{what(*variant.key)}: " if what(*variant.key) else ""
    inside = ""
    if (forward := _median(seen)) and drawn:
        file = _link(seen.trace.path, seen.trace.path.name, place)
        inside = (
            f"<details><summary>{_text(say('Steps and launches'))}"
            f"<i> {_text(variant.name)}</i></summary>"
            f"{opened(seen, forward)}"
            f'<p class="note">{_text(say("recording:"))} {file}</p></details>'
        )
    post = "" if magnifies and is_short(variant, width) else _post(variant, width)
    return (
        f'<div class="variant"><h3>{_text(variant.name)}</h3>'
        f'<p class="time">{_text(duration(variant.ns))}</p>{_lane(variant, width)}{post}'
        f'<p class="lesson">{_text(said)}{count}{_text(in_words(worth_seeing(variant)))}</p>'
        f"{inside}</div>"
    )


def _magnified(one: Group, width: float, finer: float) -> str:
    """The short lanes once more, on a scale of their own."""
    short = [variant for variant in one.variants if is_short(variant, width)]
    if not short:
        return ""
    lanes = "".join(
        f'<div class="variant"><h3>{_text(variant.name)}</h3>'
        f'<p class="time">{_text(duration(variant.ns))}</p>'
        f"{_lane(variant, finer)}{_post(variant, finer)}</div>"
        for variant in short
    )
    title = say("The short ones, magnified {times} times", times=digits(width / finer))
    return (
        f'<h3 class="magnified">{_text(title)}</h3>'
        f'<div class="lanes fine">{lanes}{axis(finer)}</div>'
    )


def _lane(variant: Variant, width: float) -> str:
    items = "".join(_bar(bar, width) for bar in bars(variant.seen))
    if not items:
        return f'<p class="lane none">{_text(say("no step with a known time"))}</p>'
    label = _text(say("{variant}, step by step", variant=variant.name))
    return f'<ol class="lane" role="list" aria-label="{label}">{items}</ol>'


def _post(variant: Variant, width: float) -> str:
    """What the post published of it, as a bar on the same scale; an open end where it is longer."""
    if (ns := _published(variant)) is None:
        return ""
    gpu = POST_GPU.removeprefix("NVIDIA ").partition("-")[0]
    share = 100 * ns / width
    words = say("{gpu}, as published: {time}", gpu=gpu, time=duration(ns))
    if share > 100:
        words = say("{bar}, longer than the lane", bar=words)
    kind = " beyond" if share > 100 else " wide" if share > 50 else ""
    return (
        f'<p class="post{kind}"><i style="width:{min(share, 100):.4f}%"></i>'
        f"<span>{_text(words)}</span></p>"
    )


def _bar(bar: Bar, width: float) -> str:
    left, share = (100 * ns / width for ns in (bar.start, bar.duration))
    classes = [row(bar.step.kind)]
    if share < THIN:
        classes.append("thin")
    if left > 50:
        classes.append("east")
    short = brief(bar.step.kernel) if bar.step.kernel else ""
    ops = chain(bar.step.path) if bar.step.path else ""
    tip = (
        f"<strong>{_text(bar.step.kind)} · {microseconds(bar.duration)}</strong> "
        f"{_text(short)} "
        f"<code>{_text(bar.step.name)}</code>"
        + (
            f" <small>{_text(say('launched by {ops}', ops=ops))}</small>"
            if ops and bar.step.gpu
            else ""
        )
    )
    return (
        f'<li class="{" ".join(classes)}" style="left:{left:.4f}%;width:{share:.4f}%">'
        f'{on_bar(bar.step.kind)}<span class="tip">{tip}</span></li>'
    )


# ── Curves ────────────────────────────────────────────────────────────────────────────────────────

WIDE, HIGH = 520, 400
LEFT, RIGHT, TOP, BOTTOM = 62, 122, 12, 44
LINE = 15  # between the names at the curves' ends


def _sweep(one: Sweep, refused: dict[Refused, str]) -> str:
    on_gpu = one.groups[0].on_gpu
    shown = [_curves(say("time of a forward"), one, lambda v: v.ns, duration, 10)]
    if on_gpu:
        shown.append(
            _curves(say("peak memory over the inputs"), one, lambda v: v.peak_bytes, size, 2)
        )
    figures = "".join(
        f"<h3>{_text(title)}</h3>{_table(title, heads, lines)}"
        for title, heads, lines in tables.sweep_tables(one)
    )
    gaps = "".join(f"<li>{_text(line)}</li>" for line in tables.missing(one, refused))
    return (
        f"<section><h2>{_text(say('By length'))} · {_text(conditions(one.conditions))}</h2>"
        f'<div class="curves">{"".join(shown)}</div>'
        f'<p class="note">{_text(say(SLOPES))}</p>'
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
        f"{_text(say('tokens in a sequence'))}</text>"
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
    described = say(
        "{title} against the length of the sequence; the figures stand in the table below",
        title=title,
    )
    return (
        f"<figure><figcaption>{_text(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="{_text(described)}">'
        f"{''.join(parts)}</svg>"
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
  --line: #e3e0da; --track: #f0eeea; --op: #d3dbe6;
  --on: #fff; --card: #fff; --link: #0b57c4; --mark: rgb(0 0 0 / 0.3); }
@media (prefers-color-scheme: dark) { :root { --page: #14161a; --ink: #e9e7e3; --soft: #a3a9b3;
  --line: #2c3038; --track: #1e2127; --op: #3a4454;
  --on: #14161a; --card: #1b1e24; --link: #8ab4ff; --mark: rgb(255 255 255 / 0.35); } }
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
.over { font-size: 0.875rem; font-weight: 600; margin: 0 0 0.4rem; }
header .over { margin: 0 0 0.4rem; }
a { color: var(--link); display: inline-block; min-height: 1.5rem; max-width: 100%;
  overflow-wrap: anywhere; }
.legend { list-style: none; padding: 0; margin-top: 1.25rem; display: flex; flex-wrap: wrap;
  gap: 0.35rem 1.1rem; font-size: 0.875rem; color: var(--soft); }
.legend i { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 3px;
  margin-right: 0.4rem; vertical-align: -0.08rem; }
.variant { display: grid; grid-template-columns: 9rem 1fr 5rem; column-gap: 1rem;
  align-items: center; margin-bottom: 0.7rem; }
.variant .time { grid-column: 3; grid-row: 1; text-align: right; font-weight: 600; }
.variant .lane { grid-column: 2; grid-row: 1; }
.variant .post { grid-column: 2; }
.variant .lesson, .variant details { grid-column: 2 / 4; margin-top: 0.15rem; }
.post { display: flex; align-items: center; position: relative; height: 1.35rem;
  margin-top: 2px; font-size: 0.75rem; white-space: nowrap; }
.post i { height: 100%; flex: none; border: 1.5px solid var(--soft); border-radius: 2px;
  background: repeating-linear-gradient(135deg, var(--line) 0 3px, transparent 3px 8px); }
.post span { padding: 0 0.4rem; color: var(--ink); }
.post.wide span, .post.beyond span { position: absolute; left: 0.4rem; background: var(--page); }
.post.beyond i { border-right-style: none; }
.magnified { margin: 1.75rem 0 0.9rem; }
summary { min-height: 1.6rem; padding: 0.15rem 0; width: fit-content; cursor: pointer;
  font-size: 0.8125rem; color: var(--link); }
summary i { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
details[open] { padding-bottom: 0.75rem; border-bottom: 1px solid var(--line); }
.both { margin-top: 0.5rem; }
.both > p { font-size: 0.75rem; color: var(--soft); }
.both .axis { padding: 0; }
.cpu { list-style: none; padding: 0; position: relative; background: var(--track);
  border-radius: 4px 4px 0 0; overflow: hidden; }
.cpu li { position: absolute; height: 1.25rem; min-width: 1px; background: var(--op);
  color: var(--ink); box-shadow: inset 1px 1px 0 0 var(--page); }
.cpu li.call { bottom: 0; height: 0.7rem; min-width: 3px;
  background: var(--ink); box-shadow: none; }
.arrows { position: relative; height: 2.2rem; }
.arrows svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.arrows path { stroke: var(--ink); stroke-width: 1.2; vector-effect: non-scaling-stroke; }
.arrows i { position: absolute; bottom: 0; margin-left: -4px; border: 4px solid transparent;
  border-top: 7px solid var(--ink); border-bottom: 0; }
.steps { list-style: none; padding: 0; margin-top: 0.75rem; font-size: 0.8125rem; }
.steps li { padding: 0.35rem 0; border-top: 1px solid var(--line); overflow-wrap: anywhere; }
.steps li > i { display: inline-block; width: 0.8rem; height: 0.8rem; border-radius: 3px;
  margin-right: 0.4rem; vertical-align: -0.08rem; }
.steps small, .steps code { display: block; color: var(--soft); font-size: 0.75rem; }
.steps code { font-family: ui-monospace, monospace; display: -webkit-box; overflow: hidden;
  -webkit-box-orient: vertical; -webkit-line-clamp: 3; }
.lane { list-style: none; padding: 0; position: relative; height: 2.1rem; border-radius: 4px;
  background: var(--track); }
.lane.none { padding: 0.3rem 0.6rem; color: var(--soft); font-size: 0.875rem; }
.lane li { position: absolute; top: 0; bottom: 0; min-width: 2px; color: var(--on);
  border-radius: 2px; box-shadow: inset -1px 0 0 var(--track); cursor: default; }
.copy { background-image: repeating-linear-gradient(135deg, transparent 0 3px,
  var(--mark) 3px 6px); }
.mask { background-image: radial-gradient(var(--mark) 1.3px, transparent 1.6px);
  background-size: 6px 6px; }
.lane li.thin { box-shadow: none; border-radius: 0; }
.word { display: block; container-type: inline-size; overflow: hidden; }
.word b { display: none; padding-left: 0.35rem; font-size: 0.8rem; font-weight: 500;
  line-height: 2.1rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.cpu .word b { font-size: 0.7rem; line-height: 1.25rem; padding-left: 0.2rem; }
.lane li:hover { outline: 2px solid var(--ink); outline-offset: 1px; z-index: 2; }
.tip { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
li:hover > .tip { width: max-content; max-width: 26rem; height: auto;
  clip-path: none; top: calc(100% + 7px); left: 0; z-index: 3; padding: 0.6rem 0.8rem;
  background: var(--card); color: var(--ink); border: 1px solid var(--line); border-radius: 6px;
  box-shadow: 0 6px 24px rgb(0 0 0 / 0.18); font-size: 0.85rem; line-height: 1.4;
  pointer-events: none; }
li.east:hover > .tip { left: auto; right: 0; }
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
@media (max-width: 44rem) {
  body { padding: 1.5rem 1rem 8rem; }
  h1 { font-size: 1.6rem; }
  .variant { grid-template-columns: 1fr auto; margin-bottom: 1.1rem; row-gap: 0.25rem; }
  .variant .time { grid-column: 2; }
  .variant .lane { grid-column: 1 / 3; grid-row: 2; }
  .variant .lesson { grid-column: 1 / 3; }
  .variant .post, .variant details { grid-column: 1 / 3; }
  .axis { padding: 0; }
  .lane li:hover > .tip { position: fixed; top: auto; left: 0.75rem;
    right: 0.75rem; bottom: 0.75rem; width: auto; max-width: none; }
}
"""


def _head() -> str:
    rules = [STYLE]
    for letters in range(1, LONGEST + 1):  # a word shows where its bar has room for it
        rules.append(
            f"@container (min-width: {0.8 * LETTER * letters + 0.4:.2f}rem) "
            f"{{ b.s{letters} {{ display: block; }} }}\n"
        )
    for mode in (0, 1):
        chosen = "".join(
            f".{row} {{ background-color: {both[mode]}; }}\n" for row, both in COLOURS.items()
        )
        chosen += "".join(
            f".c{n} {{ color: {both[mode]}; }}\n" for n, both in enumerate(CURVE_COLOURS)
        )
        rules.append(f"@media (prefers-color-scheme: dark) {{\n{chosen}}}\n" if mode else chosen)
    return (
        f'<!doctype html>\n<html lang="{spoken()}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'\">"
        f"<title>{_text(say(TITLE))}</title><style>{''.join(rules)}</style></head>"
    )
