"""Everything at a glance: one table of every variant that was recorded.

Without arguments it reads the recordings that come with the project; nothing is run then, and
neither torch nor a GPU is needed. --record records every variant on this machine first; the options
of the experiment mean what they mean in the scripts. Without --record they choose what is shown.
"""

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .cli import (
    UserError,
    one_line_errors,
    option,
    parse,
    positive,
    require_writable,
    shown,
    write_whole,
)
from .compare.facts import POST_SHAPE
from .compare.variants import TUTORIAL, Group, Refused, group, is_one_of, sweeps
from .read import recordings
from .read.observe import Observation
from .show.as_json import glance_json, print_json
from .show.language import lang_option, speak
from .show.page import page
from .show.tables import more_lengths, show_groups, show_sweeps
from .show.terminal import console
from .story import DTYPES, MODES, Mode

SHAPE = ("batch", "heads", "seq", "head_dim")
MANY = 3  # lengths of one experiment: a sweep, and no table each


def _lengths(text: str) -> tuple[int, ...]:
    return tuple(sorted({positive(word) for word in text.split(",")}))


_lengths.__name__ = "list of lengths"


def _words(text: str) -> tuple[str, ...]:
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    if not words:
        raise argparse.ArgumentTypeError("no variant given")
    return words


def _size(help: str):
    return option(None, help, type=positive, metavar="N")


def _for_recording(help: str, **argument):
    return option(None, f"with --record: {help}", **argument)


@dataclass(frozen=True)
class Options:
    files: list[Path] = option(
        None,
        "recordings, or folders of them (default: those that come with the project)",
        positional=True,
        type=Path,
        nargs="*",
        metavar="FILE",
    )
    record: bool = option(False, "record all variants on this machine first", action="store_true")
    sweep: tuple[int, ...] | None = option(
        None,
        "time and memory against the length of the sequence, at these lengths",
        type=_lengths,
        metavar="N,N,…",
    )
    html: Path | None = option(
        None, "write the same as one page, with the GPU lanes drawn", type=Path, metavar="FILE"
    )
    only: tuple[str, ...] | None = option(
        None, "only these variants, such as 04_a,flash,triton", type=_words, metavar="NAMES"
    )
    mode: str = option("both", "how they run", choices=("both", *MODES))
    batch: int | None = _size("sequences in the batch")
    heads: int | None = _size("attention heads")
    seq: int | None = _size("tokens in a sequence")
    head_dim: int | None = _size("numbers a head holds for a token")
    dtype: str | None = option(None, "data type of q, k and v", choices=DTYPES, metavar="TYPE")
    device: str | None = _for_recording(
        "where to run, cuda or cpu", choices=("auto", "cuda", "cpu"), metavar="DEVICE"
    )
    warmup: int | None = _for_recording(
        "profiler warm-up steps before recording", type=positive, metavar="N"
    )
    active: int | None = _for_recording("steps to record", type=positive, metavar="N")
    traces: Path | None = _for_recording("folder to write to", type=Path, metavar="DIR")
    gzip: bool = option(
        False, "with --record: write .json.gz alone, as the shipped ones", action="store_true"
    )
    lang: str | None = lang_option()
    json: bool = option(False, "print one JSON object", action="store_true")

    @property
    def modes(self) -> tuple[Mode, ...]:
        return tuple(mode for mode in MODES if self.mode in ("both", mode))


def glance(options: Options) -> None:
    speak(options.lang)
    if options.seq and options.sweep:
        raise UserError(f"--seq {options.seq} and --sweep: give the lengths once, with --sweep")
    if options.html:  # before anything is recorded
        require_writable("--html", options.html)
    refused: dict[Refused, str] = {}
    if options.record:
        paths, refused = _record(options)
    else:
        _require_recording(options)
        paths = options.files or [recordings.SHIPPED]
    found = list(recordings.observed(paths))
    groups = group(_chosen(found, options))
    if not groups:
        where = ", ".join(map(shown, paths))
        raise UserError(
            f"no recording of that in {where}; leave options out, or record it with --record"
            if found
            else f"no recording in {where}; make some: uv run -m common.glance --record"
        )
    measured = sweeps(groups) if options.sweep else []
    # Nothing grows over one length; it is shown where there is no other.
    measured = [one for one in measured if len(one.lengths) > 1] or measured
    tables, more = _at_one_length(groups)
    if measured:
        more = []
    if options.html:
        written = page(tables, measured, refused, more_lengths(more), options.html)
        write_whole("--html", options.html, written)
    if options.json:
        print_json(glance_json(groups, measured, refused))
    else:
        out = console()
        show_groups(out, tables, more)
        show_sweeps(out, measured, refused)


def _record(options: Options) -> tuple[list[Path], dict[Refused, str]]:
    if options.files:
        raise UserError(
            f"{shown(options.files[0])}: give files to read, or --record; with --record, "
            "--traces DIR names the folder to write to"
        )
    if options.only and not any(is_one_of(options.only, *key) for key in TUTORIAL):
        raise UserError(f"--only {','.join(options.only)}: no variant has such a name")
    from . import record_all  # torch comes with it

    names = ("batch", "heads", "seq", "head_dim", "dtype", "device", "warmup", "active")
    given = {name: value for name in names if (value := getattr(options, name)) is not None}
    wanted = [
        one
        for one in record_all.runs(options.modes, options.sweep or ())
        if is_one_of(options.only, one.script, one.variant)
    ]
    return record_all.record_all(wanted, given, options.traces or Path("traces"), options.gzip)


def _require_recording(options: Options) -> None:
    for name in ("device", "warmup", "active", "traces", "gzip"):
        if getattr(options, name):
            raise UserError(f"--{name} goes with --record")


def _chosen(found: Iterable[Observation], options: Options) -> Iterable[Observation]:
    for seen in found:
        if (story := seen.story) is None:
            continue
        sizes = zip(SHAPE, story.shape, strict=True)
        if (
            story.mode in options.modes
            and options.dtype in (None, story.dtype)
            and all(getattr(options, name) in (None, size) for name, size in sizes)
            and (not options.sweep or story.seq in options.sweep)
            and is_one_of(options.only, *story.key)
        ):
            yield seen


def _at_one_length(groups: list[Group]) -> tuple[list[Group], list[int]]:
    """Of a sweep the one group to show whole: that of the post's length, else the fullest; and the
    lengths left out."""
    kept: list[Group] = []
    left: list[int] = []
    for one in sweeps(groups):
        if len(one.lengths) < MANY:
            kept += one.groups
            continue
        best = max(one.groups, key=lambda g: (g.length == POST_SHAPE[2], len(g.variants)))
        kept.append(best)
        left += [length for length in one.lengths if length != best.length]
    return [one for one in groups if one in kept], sorted(set(left))


if __name__ == "__main__":
    with one_line_errors():
        glance(parse(Options, __doc__, "--record --html glance.html", module="common.glance"))
