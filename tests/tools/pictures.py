"""Make the pictures of the guide: the shipped recordings in the real Perfetto UI.

    uv run --group pictures tests/tools/pictures.py [NAME …]      all, unless told otherwise

Each shows one forward: the CPU thread, under it the GPU stream, and the arrow that Perfetto draws
from a launch to its work. Beside the lanes stand the names that have no room on them; one thing is
circled, with a note. Its figures are means over
the forwards, as in the reports. Words are 3 % of the width high: on a phone
of 390 pixels they are still read.
"""

import base64
import hashlib
import io
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from perfetto import ROOT, Perfetto, missing, perfetto

from common.read.observe import Observation, observe
from common.read.trace import read
from common.show.words import duration, microseconds

TRACES = ROOT / "traces"
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT, SCALE = 600, 900, 2  # of a picture, the gutter included; pixels of CSS
SHELL, SCROLLBAR = 250, 15  # what Perfetto's page has beside the lanes, not in the picture
ROW, PADDING = 18, 3  # of a slice; above the first
COLOURS = 48
MARGIN = 0.02  # of the frame, on both sides
GUTTER = 44  # for the lanes' names
TEXT, LEADING = 19, 24
LETTER = 0.53  # of the height, the width of a letter of Roboto, on average
GAP = 14  # between words of one line


@dataclass(frozen=True)
class Circled:
    """Slices to draw a line around, and what to say of them. `first` and `last` are beginnings of
    names, on the CPU inside the forward or, with `work`, on the GPU; the line goes around both
    and all between them, below them too. With `gap` it goes around what is between them alone."""

    note: Callable[[Observation], str] | str
    first: str
    last: str = ""
    work: bool = False
    gap: bool = False

    def words(self, seen: Observation) -> str:
        return self.note if isinstance(self.note, str) else self.note(seen)


@dataclass(frozen=True)
class Picture:
    """`ops` frames the CPU from the first op of one name to the first of another, not the whole
    forward; `before` starts the frame where the GPU's lane starts; `arrow` is the work, by the
    beginning of its name, to draw the arrow to. `above` and `below` are slices of the CPU whose
    names stand beside the lanes; below a GPU's lane stands what each piece of work does."""

    recording: str
    circled: Circled
    arrow: str = ""
    ops: tuple[str, str] | None = None
    forward: int = 0
    before: bool = False
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()

    @property
    def path(self) -> Path:
        return TRACES / f"{self.recording}.json.gz"


def _copy(seen: Observation) -> str:
    (copy,) = (step for step in seen.steps if step.sort == "copy")
    return f"{microseconds(copy.ns)} for a copy that nobody wrote"


def _in_fp32(seen: Observation) -> str:
    matmul = next(step for step in seen.steps if step.kind == "matmul")
    assert matmul.kernel and matmul.kernel.tensor_cores is False
    assert matmul.kernel.dtype_in == "fp32"
    return f"{microseconds(matmul.ns)}: a matmul in FP32, on CUDA cores"


def _alone(seen: Observation) -> str:
    (kernel,) = (step for step in seen.steps if step.sort == "kernel")
    return f"one kernel for all of it: {microseconds(kernel.ns)}"


def _call(seen: Observation) -> str:
    (kernel,) = (step for step in seen.steps if step.sort == "kernel")
    return f"another launch call: {kernel.call}"


NAIVE = "recorded/h200/04_a_naive_attention/8_16_1024_64_eager"
IN_PLACE = "recorded/h200/04_b_inplace_ops_attention/8_16_1024_64_eager"
SDPA = "recorded/h200/04_c_sdpa_attention/8_16_1024_64_{}_eager"
KERNELS = "recorded/h200/04_d_kernels_attention/8_16_1024_64_{}_eager"
LEAK = "experiments/h200/experiment_leak/8_16_1024_64_never_eager"
FIVE = "aten::matmul", "aten::mul", "aten::masked_fill", "aten::masked_fill_", "aten::softmax"
ONE = ("aten::scaled_dot_product_attention",)
ALL = {
    "naive": Picture(NAIVE, Circled(_copy, "Memcpy", work=True), "Memcpy", above=FIVE),
    "mask_out_of_place": Picture(
        NAIVE,
        Circled("first it copies the whole input", "aten::clone"),
        ops=("aten::masked_fill", "aten::masked_fill"),
        forward=1,
        above=("aten::expand", "aten::clone", "aten::masked_fill_"),
        below=("aten::empty_like", "cudaMemcpyAsync", "cudaLaunchKernel"),
    ),
    "in_place": Picture(
        IN_PLACE,
        Circled(
            "no copy between mul and mask",
            "void at::native::vectorized",
            "void at::native::elementwise",
            work=True,
            gap=True,
        ),
        above=FIVE,
    ),
    "mask_in_place": Picture(
        IN_PLACE,
        Circled("one launch, and no copy before it", "cudaLaunchKernel"),
        ops=("aten::masked_fill_", "aten::masked_fill_"),
        forward=1,
        above=("aten::expand",),
        below=("cudaLaunchKernel",),
    ),
    "math": Picture(SDPA.format("math"), Circled(_in_fp32, "sm80", work=True), "sm80", above=ONE),
    "math_mask": Picture(
        SDPA.format("math"),
        Circled("a causal mask, built in every call", "aten::ones", "aten::tril"),
        ops=("aten::ones", "aten::where"),
        forward=1,
        above=("aten::ones", "aten::tril", "aten::scalar_tensor", "aten::where"),
    ),
    "efficient": Picture(
        SDPA.format("efficient"),
        Circled(_alone, "fmha", work=True),
        "fmha",
        above=(*ONE, "cudaLaunchKernel"),
    ),
    "flash": Picture(
        SDPA.format("flash"),
        Circled(_alone, "void pytorch_flash", work=True),
        "void pytorch_flash",
        above=(*ONE, "cudaLaunchKernel"),
    ),
    "cudnn": Picture(SDPA.format("cudnn"), Circled(_call, "cuLaunchKernelEx"), "cudnn", above=ONE),
    "triton": Picture(
        KERNELS.format("triton"),
        Circled("no op of PyTorch runs here", "aten::empty", "cuLaunch", gap=True),
        "flash",
        forward=1,
        above=("aten::empty_like", "cuLaunchKernelEx"),
    ),
    "flex": Picture(
        KERNELS.format("flex"),
        Circled("first: does the compiled code still fit?", "TorchDynamo Cache Lookup"),
        "triton",
        forward=1,
        above=("cuLaunchKernel",),
    ),
    "leak": Picture(
        LEAK,
        Circled("left from the warm-up, under no label", "void (anonymous", "nvjet", work=True),
        before=True,
    ),
}

# From a forward to its work: the calls inside it, and what carries their correlation ids.
WORK = """
    select work.* from slice region
        join slice call on call.track_id = region.track_id
            and call.ts between region.ts and region.ts + region.dur
        join slice work on extract_arg(work.arg_set_id, 'args.correlation')
            = extract_arg(call.arg_set_id, 'args.correlation')
    where region.id = {region} and call.category in ('cuda_runtime', 'cuda_driver')
        and work.category in ('kernel', 'gpu_memcpy', 'gpu_memset')
    order by work.ts
"""
# A workspace of the two lanes alone; a track's uri is not to be relied on, its slices are.
ONLY = """(ids) => {
    const lanes = ids.map((id) => app.trace.workspace.flatTracks.find((node) =>
        app.trace.tracks.getTrack(node.uri)?.tags?.trackIds?.includes(id)));
    const space = app.trace.workspaces.createEmptyWorkspace("one forward");
    for (const lane of lanes) space.addChildLast(lane.clone());
    app.trace.workspaces.switchWorkspace(space);
}"""
SETTINGS = """() => {
    app.sidebar.toggleVisibility();
    app.settings.get("timestampFormat").set("microseconds");
    app.settings.get("durationPrecision").set("human_readable");
}"""
LANES = """() => [...document.querySelectorAll(".pf-track__canvas")].map((element) => {
    const {x, y, width, height} = element.getBoundingClientRect();
    return {x, y, width, height};
})"""
FRAME = "([start, end]) => app.trace.timeline.setViewportTime(BigInt(start), BigInt(end))"
SHOW = """(svg) => document.body.insertAdjacentHTML("beforeend",
    `<div id="picture" style="position:fixed;inset:0;z-index:9999;background:#fff">${svg}</div>`)"""
HIDE = "document.getElementById('picture').remove()"

# Nothing of these depends on colour alone: black on white, and a white edge around each.
SKETCH = """
<style>
 text { font: %spx Roboto, sans-serif; fill: #111; }
 .title { font-weight: 700; }
 .note { font-weight: 700; fill: #b3001b; }
 .edge { stroke: #fff; stroke-width: 5; fill: none; opacity: 0.85; }
 .lead { stroke: #111; stroke-width: 1.3; fill: none; }
 .circle { stroke: #b3001b; stroke-width: 3.5; fill: none; }
 .tick { stroke: #111; stroke-width: 1.5; fill: none; }
</style>
"""


@dataclass(frozen=True)
class Slice:
    """On its lane, in nanoseconds."""

    id: int
    name: str
    start: int
    end: int
    depth: int


@dataclass(frozen=True)
class Box:
    """In pixels of the picture."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> float:
        return (self.left + self.right) / 2


@dataclass(frozen=True)
class Lane:
    """Where a lane stands in the picture, and which time its ends are."""

    left: float
    top: float
    width: float
    height: float
    start: int
    end: int

    def box(self, of: Slice) -> Box:
        """The part of a slice that is seen."""

        def across(at: int) -> float:
            share = (at - self.start) / (self.end - self.start)
            return self.left + self.width * min(max(share, 0), 1)

        top = self.top + PADDING + ROW * of.depth
        return Box(across(of.start), top, across(of.end), top + ROW)


def draw(ui: Perfetto, picture: Picture) -> bytes:
    """The picture as PNG."""
    ui.open(picture.path)
    regions = ui.ask(
        "select id, ts, ts + dur, track_id from slice where category = 'user_annotation' "
        "and name not like 'ProfilerStep#%' order by ts"
    )
    region, start, end, thread = regions[picture.forward]
    inside = f"where track_id = {thread} and ts between {start} and {end}"
    calls = _slices(ui, inside)
    work = _slices(ui, f"where id in (select id from ({WORK.format(region=region)}))")
    ((stream,),) = ui.ask(f"select track_id from slice where id = {work[0].id}")
    if picture.ops:
        first, last = (next(c for c in calls if c.name == name) for name in picture.ops)
        start, end = first.start, last.end
    else:
        end = max(end, *(one.end for one in work))
    if picture.before:
        ((start,),) = ui.ask(f"select min(ts) from slice where track_id = {stream}")
    margin = int((end - start) * MARGIN)
    start, end = start - margin, end + margin
    ui.page.evaluate(ONLY, [thread] if picture.ops else [thread, stream])
    ui.page.evaluate(FRAME, [str(start), str(end)])
    for one in work:
        if picture.arrow and one.name.startswith(picture.arrow):
            ui.page.evaluate("(id) => app.trace.selection.selectSqlEvent('slice', id)", one.id)
            break
    time.sleep(2)
    ui.check()
    boxes = ui.page.evaluate(LANES)
    x, y, width = boxes[0]["x"], boxes[0]["y"], boxes[0]["width"]
    height = boxes[-1]["y"] + boxes[-1]["height"] - y
    lanes = ui.page.screenshot(clip={"x": x, "y": y, "width": width, "height": height})
    shown = [c for c in calls if c.start < end and c.end > start]
    if picture.circled.work:
        kinds = "category in ('kernel', 'gpu_memcpy', 'gpu_memset')"
        circled = _slices(ui, f"where track_id = {stream} and {kinds}")
    else:
        circled = shown
    seen = observe(read(picture.path))
    forward = seen.forwards[picture.forward]
    assert len(forward.steps) == len(work)
    words = [(one, step.kind) for one, step in zip(work, forward.steps, strict=True)]
    sketch = Sketch(width, height, lanes)
    places = [Lane(GUTTER, box["y"] - y, box["width"], box["height"], start, end) for box in boxes]
    svg = sketch.svg(
        places,
        picture,
        above=_named(shown, picture.above),
        below=_named(shown, picture.below) if picture.ops else words,
        circled=circled,
        note=picture.circled.words(seen),
    )
    ui.page.evaluate(SHOW, svg)
    try:
        clip = {"x": 0, "y": 0, "width": GUTTER + width, "height": sketch.height}
        return ui.page.screenshot(clip=clip)
    finally:
        ui.page.evaluate(HIDE)


def _slices(ui: Perfetto, where: str) -> list[Slice]:
    rows = ui.ask(f"select id, name, ts, ts + dur, depth from slice {where} order by ts, depth")
    return [Slice(*row) for row in rows]


def _named(calls: Sequence[Slice], names: Sequence[str]) -> list[tuple[Slice, str]]:
    """Those of these names that are not directly inside another one of them."""
    found: list[tuple[Slice, str]] = []
    for one in calls:
        name = next((n for n in names if one.name == n or one.name.startswith(f"{n} ")), None)
        outer = found[-1][0] if found else None
        if name and not (outer and one.end <= outer.end and one.depth == outer.depth + 1):
            found.append((one, name.removeprefix("aten::")))
    return found


class Sketch:
    """Lanes with words around them. From above: names with lines down to the CPU's slices, the
    lanes, names with lines up to them, and the scale."""

    def __init__(self, width: float, lanes: float, image: bytes) -> None:
        self.width, self.lanes, self.image = width, lanes, image
        self.height = 0.0

    def svg(
        self,
        places: Sequence[Lane],
        picture: Picture,
        above: Sequence[tuple[Slice, str]],
        below: Sequence[tuple[Slice, str]],
        circled: Sequence[Slice],
        note: str,
    ) -> str:
        cpu, last = places[0], places[-1]
        on = last if picture.circled.work else cpu
        ring = self._ring(on, picture.circled, circled)
        note_above = not picture.circled.work
        over = self._line(cpu, above, ring if note_above else None)
        under = self._line(last, below, None if note_above else ring)
        top = LEADING * (bool(over) + note_above) + (LEADING / 2 if over or note_above else 4)
        bottom = top + self.lanes
        parts = [
            f'<image href="data:image/png;base64,{base64.b64encode(self.image).decode()}" '
            f'x="{GUTTER}" y="{top}" width="{self.width}" height="{self.lanes}"/>'
        ]
        for name, lane in zip(("CPU", "GPU"), places, strict=False):
            parts.append(_word(name, 2, top + lane.top + LEADING, "title"))
        parts.append(f'<path class="tick" d="M{GUTTER} {top}V{bottom}"/>')
        y = LEADING * (1 + note_above) - 5
        for x, box, word in over:
            if not word:
                continue
            parts.append(_lead(x, y + 5, box.middle, top + box.top + 2))
            parts.append(_word(word, x, y, middle=True))
        y = bottom + LEADING + 8
        for x, box, word in under:
            if not word:
                continue
            parts.append(_lead(x, y - TEXT + 2, box.middle, top + box.bottom - 2))
            parts.append(_word(word, x, y, middle=True))
        foot = bottom + LEADING * bool(under) + 8
        parts.append(
            f'<rect class="edge" x="{ring.left}" y="{top + ring.top}" rx="9" '
            f'width="{ring.right - ring.left}" height="{ring.bottom - ring.top}"/>'
            f'<rect class="circle" x="{ring.left}" y="{top + ring.top}" rx="9" '
            f'width="{ring.right - ring.left}" height="{ring.bottom - ring.top}"/>'
        )
        half = _wide(note) * 1.06 / 2  # it is bold
        if note_above:
            y, end, stop, line = LEADING - 5, LEADING, top + ring.top, over
        else:
            y = foot + LEADING
            end, stop, line = y - TEXT + 2, top + ring.bottom, under
            foot = y + 8
        at = next(x for x, _, word in line if not word)
        x = min(max(at, half), GUTTER + self.width - half)
        touch = min(max(at, ring.left + 6), ring.right - 6)
        for kind in ("edge", "circle"):
            parts.append(f'<path class="{kind}" d="M{at} {end}L{touch} {stop}"/>')
        parts.append(_word(note, x, y, "note", middle=True))
        self.height = foot + LEADING + 8
        parts.append(self._scale(cpu, foot + 8))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{GUTTER + self.width}" '
            f'height="{self.height}">{SKETCH % TEXT}{"".join(parts)}</svg>'
        )

    def _ring(self, lane: Lane, what: Circled, among: Sequence[Slice]) -> Box:
        first = next(one for one in among if one.name.startswith(what.first))
        last = next(
            one
            for one in among
            if one.name.startswith(what.last or what.first) and one.start >= first.start
        )
        one, other = lane.box(first), lane.box(last)
        if what.gap:
            left, right = one.right, other.left
            if right - left < ROW:  # they touch: around where they do
                left, right = left - ROW * 0.6, right + ROW * 0.6
            return Box(left, one.top - 4, right, one.bottom + 4)
        inside = [s for s in among if first.start <= s.start and s.end <= last.end]
        bottom = max(lane.box(s).bottom for s in [*inside, last])
        top = min(one.top, other.top)
        return Box(one.left - 5, top - 4, other.right + 5, bottom + 4)

    def _line(
        self, lane: Lane, named: Sequence[tuple[Slice, str]], ring: Box | None
    ) -> list[tuple[float, Box, str]]:
        """Names of slices, (where its middle stands, the slice, the name), in one line: the widest
        slices' where there is no room for all. A line to the ring is an empty name among them."""
        boxes = [(lane.box(one), word) for one, word in named]
        boxes = [(box, word) for box, word in boxes if box.right - box.left >= 1]
        while sum(_wide(word) + GAP for _, word in boxes) > self.width - GAP:
            boxes.remove(min(boxes, key=lambda one: one[0].right - one[0].left))
        if ring:
            boxes.append((ring, ""))
        return self._spread(sorted(boxes, key=lambda one: one[0].middle))

    def _spread(self, line: Sequence[tuple[Box, str]]) -> list[tuple[float, Box, str]]:
        """Each as near to its slice as the others let it."""
        halves = [(_wide(word) + GAP) / 2 for _, word in line]
        places = [box.middle for box, _ in line]
        for _ in range(500):
            for n in range(len(places) - 1):
                over = places[n] + halves[n] - (places[n + 1] - halves[n + 1])
                if over > 0:
                    places[n] -= over / 2
                    places[n + 1] += over / 2
            places = [
                min(max(x, GUTTER + half), GUTTER + self.width - half)
                for x, half in zip(places, halves, strict=True)
            ]
        return [(x, box, word) for x, (box, word) in zip(places, line, strict=True)]

    def _scale(self, lane: Lane, y: float) -> str:
        """A line of a round time, of a sixth to a third of the width."""
        power = 10 ** math.floor(math.log10((lane.end - lane.start) / 3))
        ns = max(n * power for n in (1, 2, 5) if n * power <= (lane.end - lane.start) / 3)
        right = GUTTER + self.width - 2
        left = right - self.width * ns / (lane.end - lane.start)
        words = duration(ns)
        return f'<path class="tick" d="M{left} {y + 4}v10m0 -5H{right}m0 -5v10"/>' + _word(
            words, left - 8, y + 15, anchor="end"
        )


def _wide(word: str) -> float:
    return len(word) * TEXT * LETTER


def _word(
    word: str, x: float, y: float, kind: str = "", middle: bool = False, anchor: str = "start"
) -> str:
    anchor = "middle" if middle else anchor
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(word)}</text>'


def _lead(x: float, y: float, to_x: float, to_y: float) -> str:
    path = f"M{x} {y}L{to_x} {to_y}"
    return (
        f'<path class="edge" d="{path}"/><path class="lead" d="{path}"/>'
        f'<circle cx="{to_x}" cy="{to_y}" r="3.5" fill="#111" stroke="#fff"/>'
    )


def small(png: bytes, recording: Path) -> bytes:
    """The same in few colours, and with a word on what it shows: so that a stale one is noticed."""
    from PIL import Image, PngImagePlugin

    out, source = io.BytesIO(), PngImagePlugin.PngInfo()
    digest = hashlib.sha256(recording.read_bytes()).hexdigest()
    source.add_text("Source", f"{recording.relative_to(ROOT)} sha256 {digest}")
    image = Image.open(io.BytesIO(png)).convert("RGB")
    image = image.quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(out, "PNG", optimize=True, pnginfo=source)
    return out.getvalue()


def main(names: list[str]) -> None:
    if why := missing():
        sys.exit(f"error: {why}")
    if unknown := [name for name in names if name not in ALL]:
        sys.exit(f"error: no picture {unknown[0]!r}; choose from {' '.join(ALL)}")
    PICTURES.mkdir(exist_ok=True)
    with perfetto(WIDTH - GUTTER + SHELL + SCROLLBAR, HEIGHT, SCALE) as ui:
        ui.page.evaluate(SETTINGS)
        for name in names or ALL:
            path = PICTURES / f"{name}.png"
            whole = path.with_suffix(".part")
            whole.write_bytes(small(draw(ui, ALL[name]), ALL[name].path))
            os.replace(whole, path)
            print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
