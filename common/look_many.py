"""What `look` does with many files: the ranks of one job, or two groups of repeats.

Each file is read by itself, on all cores, and becomes a small value; see read/many.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from .cli import UserError, progress, shown
from .compare.gate import gate
from .read.many import cores, each, each_by_dask, files
from .read.ranks import Ranks, job, ranks_of
from .read.repeats import Repeat, repeat_of
from .read.trace import read
from .show.as_json import print_json
from .show.gate import gate_json, markdown, show_gate
from .show.ranks import ranks_json, show_ranks
from .show.terminal import console

PATIENCE = 2  # seconds
SLOWER = 3  # the exit code

Value = TypeVar("Value", Ranks, Repeat)


@dataclass(frozen=True)
class Reading:
    """How files are read."""

    salvage: bool
    max_gb: float
    jobs: int | None  # None: as many as there are cores
    dask: str | None


def _rank(path: Path, name: str, salvage: bool, max_gb: float) -> Ranks:
    return ranks_of(read(path, salvage, max_gb), name)


def _repeat(path: Path, name: str, salvage: bool, max_gb: float, region: str | None) -> Repeat:
    return repeat_of(read(path, salvage, max_gb), name, region)


def _each(
    make: "partial[Value]", paths: Sequence[Path], reading: Reading
) -> Iterator[tuple[Path, Value | None, str]]:
    with progress(PATIENCE) as doing:

        def tell(done: int, of: int) -> None:
            doing(f"{done} of {of} files read")

        if reading.dask is not None:
            yield from each_by_dask(make, paths, reading.dask, tell)
        else:
            yield from each(make, paths, reading.jobs or cores(), tell)


def look_at_ranks(
    paths: Sequence[Path], reading: Reading, insist: bool, as_json: bool, top: int | None
) -> None:
    """A file that cannot be read is named among the warnings, and the others are shown.

    Raises UserError where no file tells its rank, unless somebody insists.
    """
    make = partial(_rank, salvage=reading.salvage, max_gb=reading.max_gb)
    whole = Ranks()
    for path, one, why in _each(make, files(paths), reading):
        whole = whole.merged(one or Ranks(unread=((shown(path), why),)))
    found = job(whole)
    if not insist and all(row.rank is None for row in found.rows):
        raise UserError(
            f"{len(found.rows)} traces, and none tells that it is a rank of a job: look takes one, "
            "or two to compare; --ranks takes them for ranks all the same, and --fail-over "
            "compares folders of repeats"
        )
    if as_json:
        print_json(ranks_json(found, top))
    else:
        show_ranks(console(), found)


@dataclass(frozen=True)
class Comparison:
    """What is compared how: `threshold` is a share, 0.05 for 5 %."""

    base: Sequence[Path]
    new: Sequence[Path]
    region: str | None
    metric: str
    threshold: float


def look_whether_slower(
    asked: Comparison, reading: Reading, as_json: bool, as_markdown: bool, top: int | None
) -> None:
    """Exits with SLOWER if it is. Raises UserError for a file that cannot be read: a verdict does
    not rest on a part of the recordings."""
    base, new = files(asked.base), files(asked.new)
    make = partial(_repeat, salvage=reading.salvage, max_gb=reading.max_gb, region=asked.region)
    repeats: dict[Path, Repeat] = {}
    for path, one, why in _each(make, list(dict.fromkeys([*base, *new])), reading):
        if one is None:
            raise UserError(why)
        repeats[path] = one
    found = gate(
        [repeats[path] for path in base],
        [repeats[path] for path in new],
        asked.metric,
        asked.threshold,
    )
    if as_json:
        print_json(gate_json(found, top))
    elif as_markdown:
        print(markdown(found))
    else:
        show_gate(console(), found)
    if found.verdict == "slower":
        sys.exit(SLOWER)
