"""Make the pictures of the guide: the shipped recordings in the real Perfetto UI.

    uv run --group pictures tests/tools/pictures.py [NAME …]      all, unless told otherwise

Each shows one forward: the CPU thread, under it the GPU stream, and the arrow that Perfetto draws
from a launch to its work.
"""

import hashlib
import io
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from perfetto import ROOT, Perfetto, missing, perfetto

TRACES = ROOT / "traces"
PICTURES = ROOT / "docs" / "pictures"
WIDTH, HEIGHT, SCALE = 1000, 900, 2
COLOURS = 48
MARGIN = 0.02  # of the frame, on both sides


@dataclass(frozen=True)
class Picture:
    """`ops` frames the CPU from the first op of one name to the first of another, not the whole
    forward; `before` starts the frame where the GPU's lane starts; `arrow` is the work, by the
    beginning of its name, to draw the arrow to."""

    recording: str
    arrow: str = ""
    ops: tuple[str, str] | None = None
    forward: int = 0
    before: bool = False

    @property
    def path(self) -> Path:
        return TRACES / f"{self.recording}.json.gz"


NAIVE = "recorded/h200/04_a_naive_attention/8_16_1024_64_eager"
IN_PLACE = "recorded/h200/04_b_inplace_ops_attention/8_16_1024_64_eager"
SDPA = "recorded/h200/04_c_sdpa_attention/8_16_1024_64_{}_eager"
KERNELS = "recorded/h200/04_d_kernels_attention/8_16_1024_64_{}_eager"
LEAK = "experiments/h200/experiment_leak/8_16_1024_64_never_eager"
ALL = {
    "naive": Picture(NAIVE, "Memcpy"),
    "mask_out_of_place": Picture(NAIVE, ops=("aten::masked_fill", "aten::masked_fill"), forward=1),
    "in_place": Picture(IN_PLACE),
    "mask_in_place": Picture(IN_PLACE, ops=("aten::masked_fill_", "aten::masked_fill_"), forward=1),
    "math": Picture(SDPA.format("math"), "sm80"),
    "math_mask": Picture(SDPA.format("math"), ops=("aten::ones", "aten::where"), forward=1),
    "efficient": Picture(SDPA.format("efficient"), "fmha"),
    "flash": Picture(SDPA.format("flash"), "void pytorch_flash"),
    "cudnn": Picture(SDPA.format("cudnn"), "cudnn"),
    "triton": Picture(KERNELS.format("triton"), "flash", forward=1),
    "flex": Picture(KERNELS.format("flex"), "triton", forward=1),
    "leak": Picture(LEAK, "nvjet", before=True),
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
LANES = """() => {
    const boxes = (name) =>
        [...document.querySelectorAll(name)].map((element) => element.getBoundingClientRect());
    const y = boxes(".pf-timeline-header")[0].y, lanes = boxes(".pf-track");
    const bottom = Math.max(...lanes.map((lane) => lane.bottom));
    return {y, width: lanes[0].width, height: bottom - y + 2};
}"""
FRAME = "([start, end]) => app.trace.timeline.setViewportTime(BigInt(start), BigInt(end))"


def draw(ui: Perfetto, picture: Picture) -> bytes:
    """The picture as PNG."""
    ui.open(picture.path)
    regions = ui.ask(
        "select id, ts, ts + dur, track_id from slice where category = 'user_annotation' "
        "and name not like 'ProfilerStep#%' order by ts"
    )
    region, start, end, thread = regions[picture.forward]
    work = ui.ask(f"select id, name, ts + dur, track_id from ({WORK.format(region=region)})")
    stream = work[0][3]
    if picture.ops:
        first, last = picture.ops
        inside = f"where track_id = {thread} and ts between {start} and {end}"
        ((start, _),) = ui.ask(f"select min(ts), dur from slice {inside} and name = '{first}'")
        ((last, long),) = ui.ask(f"select min(ts), dur from slice {inside} and name = '{last}'")
        end = last + long
    else:
        end = max(end, *(done for *_, done, _ in work))
    if picture.before:
        ((start,),) = ui.ask(f"select min(ts) from slice where track_id = {stream}")
    margin = int((end - start) * MARGIN)
    ui.page.evaluate(ONLY, [thread] if picture.ops else [thread, stream])
    ui.page.evaluate(FRAME, [str(start - margin), str(end + margin)])
    for id, name, *_ in work:
        if picture.arrow and name.startswith(picture.arrow):
            ui.page.evaluate("(id) => app.trace.selection.selectSqlEvent('slice', id)", id)
            break
    time.sleep(2)
    ui.check()
    box = ui.page.evaluate(LANES)
    return ui.page.screenshot(clip={"x": 0, **box})


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
    with perfetto(WIDTH, HEIGHT, SCALE) as ui:
        ui.page.evaluate(SETTINGS)
        for name in names or ALL:
            path = PICTURES / f"{name}.png"
            whole = path.with_suffix(".part")
            whole.write_bytes(small(draw(ui, ALL[name]), ALL[name].path))
            os.replace(whole, path)
            print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main(sys.argv[1:])
