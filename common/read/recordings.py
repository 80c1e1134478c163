"""Find recordings by what they tell of themselves. Nothing is read out of a file's name.

Which recording a file holds is asked of its beginning alone: a story stands before the events. The
whole of a file is read where its events are wanted, and then once.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from ..cli import UserError, note, shown, typed
from ..story import METADATA_KEY, Story, read_story
from .observe import Observation, observe
from .trace import read

SHIPPED = Path(__file__).parents[2] / "traces" / "recorded"
BEGINNING = 1 << 18  # bytes

_STORY = re.compile(rf'\A[^\0]*?"{METADATA_KEY}"\s*:\s*')


def story_of(path: Path) -> Story | None:
    """What the file tells of itself at its beginning; None where it tells nothing, or is no trace
    that can be read."""
    try:
        with path.open("rb") as file:
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            beginning = (gzip.GzipFile(fileobj=file) if packed else file).read(BEGINNING)
    except (OSError, EOFError, zlib.error):
        return None
    text = beginning.decode(errors="replace")
    if not (found := _STORY.match(text)):
        return None
    decoder = json.JSONDecoder(parse_constant=lambda token: None)  # NaN is missing, as in `read`
    try:
        return read_story(decoder.raw_decode(text, found.end())[0])
    except (ValueError, RecursionError):
        return None


def recordings_in(folder: Path, pattern: str = "**/*.json*") -> Iterator[tuple[Path, Story]]:
    """Every recording of ours under a folder, in order of the paths; what is none is left out."""
    for path in sorted(folder.glob(pattern)):
        if path.is_file() and (story := story_of(path)):
            yield path, story


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
            # In a folder regular files alone: nobody asked to wait for a pipe that lies there.
            if hidden or (given.is_dir() and not path.is_file()):
                continue
            if (place := path.resolve()) in seen:
                continue
            seen.add(place)
            try:
                trace = read(path)
                story = trace.story
                if given.is_dir() and story and story.script.startswith("experiment_"):
                    continue
                if story:
                    yield observe(trace)
                    continue
                message = (
                    f"{shown(path)}: it does not tell what was recorded, as our scripts' do; "
                    f"look at it with uv run -m common.look {typed(path)}"
                )
            except UserError as error:
                message = str(error)
                if given.is_dir():
                    note(f"left out: {message}")
            if not given.is_dir():
                raise UserError(message)


def shipped(
    script: str, variant: str, shape: tuple[int, int, int, int], dtype: str, mode: str
) -> Path:
    """The shipped recording of this experiment. Raises UserError, naming what is shipped."""
    wanted = variant, shape, dtype, mode
    there = []
    for path, story in recordings_in(SHIPPED):
        if story.script == script:
            this = story.variant, story.shape, story.dtype, story.mode
            if this == wanted:
                return path
            there.append(_in_words(*this))
    raise UserError(
        f"no shipped recording of {_in_words(*wanted)}; there is {', '.join(there) or 'none'}; "
        "or give a file: --replay FILE"
    )


def _in_words(variant: str, shape: Sequence[int], dtype: str, mode: str) -> str:
    return " ".join(filter(None, (variant, dtype, str(list(shape)), mode)))


class Siblings:
    """Other recordings beside one, made under the same conditions: what may be compared with it.
    Read when a claim asks for one, and once."""

    def __init__(self, seen: Observation) -> None:
        self._seen = seen
        self._observed: dict[Path, Observation | None] = {}

    @cached_property
    def _paths(self) -> dict[tuple[str, str], Path]:
        story, here = self._seen.story, self._seen.trace.path.resolve()
        if story is None:
            return {}
        # No deeper: the file may lie anywhere, and the folder above it may be somebody's home.
        return {
            other.key: path
            for path, other in recordings_in(here.parent.parent, "*/*.json*")
            if path.resolve() != here and other.conditions == story.conditions
        }

    def get(self, key: tuple[str, str]) -> Observation | None:
        """The recording of this (script, variant); None where there is none that can be read."""
        path = self._paths.get(key)
        if path is None:
            return None
        if path not in self._observed:
            try:
                self._observed[path] = observe(read(path))
            except UserError:
                self._observed[path] = None
        return self._observed[path]
