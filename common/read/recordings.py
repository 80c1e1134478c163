"""Find recordings by what they tell of themselves. Nothing is read out of a file's name."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ..cli import UserError, note, shown
from .observe import Observation, observe
from .trace import Trace, read

SHIPPED = Path(__file__).parents[2] / "traces" / "recorded"

# What recordings must share for their numbers to be compared.
SAME = ("shape", "dtype", "mode", "device", "versions", "steps")


def traces_in(folder: Path, pattern: str = "**/*.json*") -> Iterator[Trace]:
    """Every recording of ours under a folder; what cannot be read, or is not ours, is left out."""
    for path in sorted(folder.glob(pattern)):
        try:
            trace = read(path)
        except UserError:
            continue
        if trace.about:
            yield trace


def observed(paths: Sequence[Path]) -> Iterator[Observation]:
    """What every recording of ours shows, of the files given and of those under the folders given;
    in folders without those of common.experiment, which are made under conditions of their own.

    Raises UserError for a file given that is none. In folders such a file is passed over, and named
    on stderr if it is damaged; other people's traces may lie beside ours.
    """
    seen = set()
    for given in paths:
        if not given.exists():
            raise UserError(f"{shown(given)}: no such file or folder")
        for path in sorted(given.glob("**/*.json*")) if given.is_dir() else [given]:
            # A hidden folder: what a recording that was killed left behind.
            hidden = path != given and any(
                part.startswith(".") for part in path.relative_to(given).parts
            )
            if (place := path.resolve()) in seen or hidden:
                continue
            seen.add(place)
            try:
                trace = read(path)
                if given.is_dir() and trace.about.get("script", "").startswith("experiment_"):
                    continue
                if trace.about:
                    yield observe(trace)
                    continue
                message = (
                    f"{shown(path)}: it does not tell what was recorded, as our scripts' do; "
                    f"look at it with uv run -m common.look {shown(path)}"
                )
            except UserError as error:
                message = str(error)
                if given.is_dir():
                    note(f"left out: {message}")
            if not given.is_dir():
                raise UserError(message)


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
    found = {}
    # No deeper: the file may lie anywhere, and the folder above it may be somebody's home.
    for trace in traces_in(folder, "*/*.json*"):
        if trace.path.resolve() != seen.trace.path.resolve() and all(
            trace.about.get(key) == about.get(key) for key in SAME
        ):
            try:
                found[trace.about["script"], trace.about["variant"]] = observe(trace)
            except (UserError, KeyError):
                continue
    return found
