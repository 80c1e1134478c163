"""Whether it is slower, in words, as Markdown and for programs."""

from rich.console import Console
from rich.text import Text

from ..cli import visible
from ..compare.gate import Gate, PartGrowth
from ..read.kernel_names import brief, decode
from ..read.repeats import Repeat
from .as_json import us
from .language import in_english
from .modules import left_out
from .steps import signed
from .terminal import print_plain, show_columns
from .words import duration, plural

FEW = 10  # steps
METRICS = {
    "work": "GPU work",
    "busy": "time in which the GPU works",
    "elapsed": "time from one to the next",
}


@in_english
def show_gate(out: Console, seen: Gate) -> None:
    for name, group in (("BASE", seen.base), ("NEW", seen.new)):
        print_plain(out, Text(f"{name:5} {_group(group)}", "bold"))
    print_plain(out)
    colour = {"slower": "red", "unclear": "yellow", "not slower": "green"}[seen.verdict]
    print_plain(out, Text(verdict(seen), colour))
    print_plain(out, sure(seen))
    if lines := [_line(part) for part in seen.parts[:FEW] if part.more]:
        print_plain(out)
        show_columns(out, ["step", "which is", "BASE", "NEW", "more", ""], lines, _LEFT)
        if more := sum(bool(part.more) for part in seen.parts) - len(lines):
            print_plain(out, Text(f"and {plural(more, 'step')} that changed less", "dim"))
    for text in doubts(seen):
        print_plain(out, Text(f"warning: {text}", "yellow"))


_LEFT = {"step", "which is", ""}


@in_english
def markdown(seen: Gate) -> str:
    """For a pull request."""
    mark = {"slower": "❌", "unclear": "⚠️", "not slower": "✅"}[seen.verdict]
    lines = [f"{mark} **{verdict(seen)}**", "", sure(seen), ""]
    lines += [f"- BASE: {_group(seen.base)}", f"- NEW: {_group(seen.new)}"]
    lines += [f"- warning: {text}" for text in doubts(seen)]
    if rows := [_line(part) for part in seen.parts[:FEW] if part.more]:
        lines += ["", "| step | which is | BASE | NEW | more | |", "|---|---|--:|--:|--:|---|"]
        lines += ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]
    return visible("\n".join(lines))


def _cell(text: str) -> str:
    """What Markdown or HTML would obey stands as it is written."""
    for sign in "\\`*_[]|":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("<", "&lt;").replace(">", "&gt;")


def _group(group: tuple[Repeat, ...]) -> str:
    first = group[0]
    what = first.records or (first.region and f"label {first.region}") or ""
    words = [plural(len(group), "recording") + (f" of {what}" if what else "")]
    words += [first.device] if first.device else []
    return " · ".join([*words, first.file if len(group) == 1 else f"{first.file} …"])


def measured(seen: Gate) -> str:
    """GPU work a forward"""
    first = seen.base[0]
    what = METRICS[seen.metric] if first.on_gpu else "CPU time"
    return f"{what} a {first.unit}"


def verdict(seen: Gate) -> str:
    grown, limit = seen.growth, f"{100 * seen.threshold:g} %"
    times = f"{duration(grown.base)} → {duration(grown.new)}"
    change = f"{measured(seen)} {times}, {_share(grown.share)}"
    if seen.verdict == "slower":
        return f"slower: {change}, more than {limit}"
    if seen.verdict == "not slower":
        return f"not slower by {limit}: {change}"
    return f"unclear: {change}, more than {limit}, but recordings of one group differ as much"


def sure(seen: Gate) -> str:
    """What the spread between recordings allows to say."""
    grown = seen.growth
    if grown.low is None or grown.high is None or grown.spread is None or grown.tells is None:
        return (
            "one recording on each side: no measure of the spread between runs, so the threshold "
            "alone decides; give folders of repeats"
        )
    words = (
        f"growth between {_share(grown.low)} and {_share(grown.high)}; recordings of one group "
        f"spread by {100 * grown.spread:.2g} %, so that growth from {100 * grown.tells:.2g} % on "
        "can be told"
    )
    short = seen.verdict == "unclear" or grown.tells > seen.threshold
    return words + ("; record more of them" if short else "")


def _share(share: float) -> str:
    return f"{'−' if share < 0 else '+'}{100 * abs(share):.2g} %" if share else "±0 %"


def _line(part: PartGrowth) -> list[str]:
    name = brief(decode(part.name)) if part.kind != "op" else part.name
    note = {True: "", False: "within the spread", None: ""}[part.beyond]
    note = "new" if part.base is None else "gone" if part.new is None else note
    times = (part.base, part.new)
    cells = ["" if ns is None else duration(ns) for ns in times]
    return [part.kind, name, *cells, signed(part.more), note]


def doubts(seen: Gate) -> list[str]:
    said = []
    for doubt in seen.doubts:
        if doubt.what == "same recording":
            said.append(
                f"{doubt.one} and {doubt.other} are the same recording: counted once, for a copy "
                "is no repeat"
            )
        elif doubt.what == "device":
            said.append(f"BASE ran on {doubt.one}, NEW on {doubt.other}")
        else:
            said.append(f"BASE records {doubt.one}, NEW {doubt.other}")
    return said


@in_english
def gate_json(seen: Gate, top: int | None = None) -> dict:
    grown = seen.growth
    return {
        "verdict": seen.verdict,
        "metric": seen.metric,
        "of": measured(seen),
        "unit": seen.base[0].unit,
        "region": seen.new[0].region,
        "fail_over": seen.threshold,
        "base_us": us(grown.base),
        "new_us": us(grown.new),
        "growth": round(grown.share, 6),
        "growth_low": _rounded(grown.low),
        "growth_high": _rounded(grown.high),
        "spread": _rounded(grown.spread),
        "could_tell": _rounded(grown.tells),
        "base": [_repeat_json(one, seen.metric) for one in seen.base[:top]],
        "new": [_repeat_json(one, seen.metric) for one in seen.new[:top]],
        "steps": [
            {
                "kind": part.kind,
                "name": part.name,
                "base_us": us(part.base),
                "new_us": us(part.new),
                "base_count": part.base_count,
                "new_count": part.new_count,
                "more_us": us(part.more),
                "beyond_spread": part.beyond,
            }
            for part in seen.parts[:top]
        ],
        "warnings": doubts(seen),
        **left_out(
            {
                "base": (len(seen.base), top),
                "new": (len(seen.new), top),
                "steps": (len(seen.parts), top),
            }
        ),
    }


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)


def _repeat_json(one: Repeat, metric: str) -> dict:
    return {"file": one.file, "us": us(one.metric(metric)), "units": one.units}
