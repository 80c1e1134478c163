"""Find recordings by what they tell of themselves. Nothing is read out of a file's name."""

from collections.abc import Iterator
from pathlib import Path

from common.cli import UserError
from common.observe import Observation, observe
from common.trace import Trace, read

SHIPPED = Path(__file__).parent.parent / "traces" / "recorded"


def traces_in(folder: Path, pattern: str = "**/*.json*") -> Iterator[Trace]:
    """Every recording of ours under a folder; what cannot be read, or is not ours, is left out."""
    for path in sorted(folder.glob(pattern)):
        try:
            trace = read(path)
        except UserError:
            continue
        if trace.about:
            yield trace


def shipped(script: str, variant: str, shape: list[int], dtype: str, mode: str) -> Path:
    """The shipped recording of this experiment. Raises UserError, naming what is shipped."""
    wanted = {"script": script, "variant": variant, "shape": shape, "dtype": dtype, "mode": mode}
    there = []
    for trace in traces_in(SHIPPED):
        if trace.about.get("script") != script:
            continue
        if all(trace.about.get(key) == value for key, value in wanted.items()):
            return trace.path
        there.append(describe(trace.about))
    raise UserError(
        f"no shipped recording of {describe(wanted)}; there is {', '.join(there) or 'none'}; "
        "or give a file: --replay FILE"
    )


def describe(about: dict) -> str:
    words = (about.get("variant"), about.get("dtype"), about.get("shape"), about.get("mode"))
    return " ".join(str(word) for word in words if word)


def siblings(seen: Observation) -> dict[tuple[str, str], Observation]:
    """Other recordings beside this one with the same workload, device and versions: what may be
    compared with it. {(script, variant): observation}"""
    about = seen.about
    if not about:
        return {}
    folder = seen.trace.path.resolve().parent.parent
    same = ("shape", "dtype", "mode", "device", "versions", "steps")
    found = {}
    # No deeper: the file may lie anywhere, and the folder above it may be somebody's home.
    for trace in traces_in(folder, "*/*.json*"):
        if trace.path.resolve() != seen.trace.path.resolve() and all(
            trace.about.get(key) == about.get(key) for key in same
        ):
            try:
                found[trace.about["script"], trace.about["variant"]] = observe(trace)
            except (UserError, KeyError):
                continue
    return found
