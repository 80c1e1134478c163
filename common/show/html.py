"""What pages are made of: escaped words, colours by what a step does, axes, tables."""

import math
from collections.abc import Iterable, Sequence
from html import escape

from ..cli import visible
from .language import say

# Colours by what a step does; kinds of one row share one. (light, dark): white words are readable
# on the first, black ones on the second. Any two differ for a reader who lacks red or green cones
# too, and those of a naive forward clearly: the tests compute by how much.
COLOURS = {
    "matmul": ("#006ef6", "#72a5ff"),
    "attention": ("#1a7d74", "#73f0cc"),
    "fused": ("#833276", "#cc7abd"),
    "softmax": ("#3f0068", "#d9e9f6"),
    "mask": ("#956700", "#bb8d05"),
    "arithmetic": ("#2d4028", "#c7fb8b"),
    "reduce": ("#0054b9", "#b1b7c1"),
    "copy": ("#bd4d77", "#c9798a"),
    "cast": ("#843c05", "#efa268"),
    "fill": ("#484c50", "#aec6f1"),
    "other": ("#695b4f", "#cbb29b"),
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
LONGEST = 9  # letters of a word on a bar for which there is room; a longer one is cut off
LETTER = 0.6  # of the height of the words on bars, the width of a letter


def text(words: object) -> str:
    return escape(visible(str(words)), quote=True)


def row(kind: str) -> str:
    """The class that gives a kind of step its colour."""
    return ROW.get(kind, "other")


def on_bar(word: str) -> str:
    """A word that is seen where its bar has room for it."""
    return f'<span class="word"><b class="s{min(len(word), LONGEST)}">{text(word)}</b></span>'


def axis(width: float) -> str:
    unit, word = (1e6, "ms") if width >= 1e6 else (1e3, "µs")
    marks = "".join(
        f'<span style="left:{100 * ns / width:.4f}%">{ns / unit:g}{f" {word}" if ns else ""}</span>'
        for ns in ticks(width)
    )
    return f'<div class="axis" aria-hidden="true"><div>{marks}</div></div>'


def ticks(width: float) -> list[int]:
    """From 0 in steps of 1, 2 or 5 of a power of ten; none where its words would not fit."""
    power = 10 ** math.floor(math.log10(width))
    steps = power // 5, power // 2, power, 2 * power, 5 * power
    step = next(s for s in steps if s and width / s <= 4)
    return [tick for tick in range(0, math.ceil(width), step) if tick < 0.88 * width]


def legend(kinds: Iterable[str]) -> str:
    """The colours of the kinds that the page shows."""
    shown: dict[str, list[str]] = {row: [] for row in COLOURS}
    for kind in sorted(kinds, key=lambda kind: (kind not in COLOURS, kind)):
        shown[row(kind)].append(kind)
    items = "".join(
        f'<li><i class="{one}"></i>{text(", ".join(same))}</li>'
        for one, same in shown.items()
        if same
    )
    return f'<ul class="legend" role="list" aria-label="{text(say("Colours"))}">{items}</ul>'


def table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{text(" ".join(head.split()))}</th>' for head in heads)
    body = "".join(
        f'<tr><th scope="row">{text(line[0])}</th>'
        + "".join(f"<td>{text(cell)}</td>" for cell in line[1:])
        + "</tr>"
        for line in lines
    )
    # On a phone it is wider than the page: it can be moved, by keyboard too.
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{text(title)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
