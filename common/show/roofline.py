"""The roofline, drawn: what each step computes for a byte that it moves, and how fast it does.

Both axes are logarithmic. The slope is what the memory delivers, the roofs are the peaks of the
types that were computed with; a point is a step, the larger the more time it takes. Points below
the slope are bound by memory, points below a roof by computing.
"""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ..cli import visible
from ..compare.rates import Rate
from .words import digits, duration

WIDE, HIGH = 720, 420
LEFT, RIGHT, TOP, BOTTOM = 64, 96, 16, 48
LARGEST, SMALLEST = 13.0, 3.0  # radii
NAMED = 8  # points with their name beside them

STYLE = """
.roofline { display: block; width: 100%; height: auto; font: 13px system-ui, sans-serif; }
.roofline .grid { stroke: var(--line); fill: none; }
.roofline text { fill: var(--soft); }
.roofline .roof { stroke: var(--ink); stroke-width: 2; fill: none; }
.roofline circle { fill-opacity: 0.65; }
.roofline .memory { fill: #1d5fc4; } .roofline .compute { fill: #a84d06; }
.roofline .cache { fill: #08766a; } .roofline .doubtful { fill: #c3261b; }
@media (prefers-color-scheme: dark) {
  .roofline .memory { fill: #82aeff; } .roofline .compute { fill: #ffa964; }
  .roofline .cache { fill: #4fd3bd; } .roofline .doubtful { fill: #ff8076; } }
"""


class Point(NamedTuple):
    name: str
    rate: Rate
    intensity: float  # FLOP for a byte
    tflops: float


def roofline(found: Sequence[tuple[str, Rate]]) -> str:
    """An SVG of the steps of which all is known; empty where there is none."""
    points = [
        Point(name, rate, rate.work.flop / rate.work.bytes, rate.tflops)
        for name, rate in found
        if rate.work.flop and rate.work.bytes and rate.tflops and rate.bound
    ]
    slopes = {rate.peak_tbs for _, rate, *_ in points if rate.peak_tbs}
    if not points or len(slopes) != 1:
        return ""
    slope = slopes.pop()
    roofs = sorted({rate.peak_tflops for _, rate, *_ in points if rate.peak_tflops})
    xs = [point.intensity for point in points] + [roof / slope for roof in roofs]
    ys = [point.tflops for point in points] + roofs
    low_x, high_x = _decades(xs)
    low_y, high_y = _decades(ys)

    def across(x: float) -> float:
        return LEFT + (math.log10(x) - low_x) / (high_x - low_x) * (WIDE - LEFT - RIGHT)

    def down(y: float) -> float:
        return HIGH - BOTTOM - (math.log10(y) - low_y) / (high_y - low_y) * (HIGH - BOTTOM - TOP)

    parts = []
    for power in range(low_x, high_x + 1):
        x = across(10.0**power)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{HIGH - BOTTOM}"/>')
        parts.append(_words(x, HIGH - BOTTOM + 18, f"{10.0**power:g}", "middle"))
    for power in range(low_y, high_y + 1):
        y = down(10.0**power)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDE - RIGHT}"/>')
        parts.append(_words(LEFT - 8, y + 4, f"{10.0**power:g}", "end"))
    parts.append(_words((LEFT + WIDE - RIGHT) / 2, HIGH - 8, "FLOP for a byte", "middle"))
    parts.append(_words(LEFT + 4, TOP - 4, "TFLOP/s"))
    end = 10.0**high_x
    for roof in roofs:
        knee = roof / slope
        parts.append(
            f'<path class="roof" d="M{across(knee):.1f} {down(roof):.1f}H{across(end):.1f}"/>'
        )
        parts.append(_words(across(end) + 6, down(roof) + 4, f"{roof:g} TFLOP/s"))
    first = max(10.0**low_x, 10.0**low_y / slope)
    last = min(roofs[-1] / slope if roofs else end, end)
    parts.append(
        f'<path class="roof" d="M{across(first):.1f} {down(first * slope):.1f}'
        f'L{across(last):.1f} {down(last * slope):.1f}"/>'
    )
    middle = math.sqrt(first * last)
    parts.append(_words(across(middle) - 8, down(middle * slope) - 6, f"{slope:g} TB/s", "end"))
    whole = max(point.rate.work.ns for point in points)
    ordered = sorted(points, key=lambda point: -point.rate.work.ns)
    for number, point in enumerate(ordered):
        rate = point.rate
        radius = max(SMALLEST, LARGEST * math.sqrt(rate.work.ns / whole))
        x, y = across(point.intensity), down(point.tflops)
        words = f"{point.name}: {digits(point.tflops)} TFLOP/s, {digits(rate.tbs or 0)} TB/s, "
        words += f"{duration(rate.work.ns)} in all, bound by {rate.bound}"
        parts.append(
            f'<circle class="{rate.bound}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{_text(words)}</title></circle>"
        )
        if number < NAMED:
            parts.append(_words(x + radius + 3, y + 4, point.name))
    return (
        f'<svg class="roofline" viewBox="0 0 {WIDE} {HIGH}" role="img" '
        f'aria-label="Roofline; its figures stand in the table below">{"".join(parts)}</svg>'
    )


def _decades(values: Sequence[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)))
    high = math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def _words(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_text(words)}</text>'


def _text(words: str) -> str:
    return escape(visible(words), quote=True)
