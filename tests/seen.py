"""What the code under test makes of a trace, for tests of what stands behind the reader."""

from pathlib import Path

from build import NVJET, RECORDED, SCRIPTS, make, recording, trace, write

from common.compare.variants import Group, Variant, group
from common.read import recordings
from common.read.observe import Observation, observe
from common.read.trace import read


def look(folder: Path, *events, name="trace.json", region=None, **more) -> Observation:
    """Of a trace with these events; `more` as `build.trace` takes it."""
    return observe(read(write(folder, trace(*events, **more), name)), region)


def recorded(*what) -> Observation:
    """Of a shipped recording, as `build.recording` takes it."""
    return observe(read(recording(*what)))


def groups(*paths: Path) -> list[Group]:
    return group(recordings.observed(paths))


def shipped(mode="eager") -> dict[str, Variant]:
    """By name, what comes with the project of the post's work."""
    (found,) = [
        one
        for one in groups(RECORDED)
        if (one.conditions.shape, one.conditions.dtype, one.conditions.mode)
        == ((8, 16, 1024, 64), "bf16", mode)
    ]
    return {variant.name: variant for variant in found.variants}


def sweep_of(folder: Path) -> Path:
    """Naive at four lengths but one, flash at all: quadratic and linear."""
    for seq in (256, 512, 1024, 2048):
        shape = [2, 4, seq, 64]
        kernel = ("bmm", NVJET, seq**2 / 1e4)
        if seq < 2048:
            naive = {"script": SCRIPTS["04_a"], "shape": shape, "peak_bytes": seq**2}
            make(folder, f"a/{seq}.json", kernel, **naive)
        flash = {"script": SCRIPTS["04_c"], "variant": "flash", "shape": shape}
        make(folder, f"c/{seq}.json", ("bmm", NVJET, seq / 100), **flash, peak_bytes=64 * seq)
    return folder
