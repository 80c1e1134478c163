"""Record every variant of the tutorial, one after the other in one process.

Nothing of a script is known here but its options and its lesson. One process, because importing
torch alone can take longer than a recording.
"""

import gc
import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from . import lesson, scripts
from .cli import UserError, note, progress, put, scratch, shown
from .compare.variants import TUTORIAL, Refused
from .record.harness import Recording
from .story import Mode


@dataclass(frozen=True)
class Run:
    """One variant, in one mode, at one length; None is the script's own."""

    script: str
    variant: str
    mode: Mode
    length: int | None = None

    def options(self, given: dict[str, Any]) -> lesson.Options:
        """Those of the script's command line; `given` are options common to all runs."""
        found = dict(given)
        if self.length:
            found["seq"] = self.length
        kind = scripts.load(self.script).Options
        if kind.chooses:
            found[kind.chooses] = self.variant
        return kind(compile=self.mode == "compile", **found)

    def __str__(self) -> str:
        kind = scripts.load(self.script).Options
        words = [self.script[:4], *([f"--{kind.chooses} {self.variant}"] if kind.chooses else [])]
        words += ["--compile"] if self.mode == "compile" else []
        words += [f"--seq {self.length}"] if self.length else []
        return " ".join(words)


def runs(modes: Sequence[Mode], lengths: Sequence[int]) -> list[Run]:
    """All variants in all modes at all lengths; no length given: the scripts' own default.

    Compiled ones last: whatever importing the compiler leaves behind, eager ones are free of it.
    """
    every: Sequence[int | None] = lengths or [None]
    return [
        Run(script, variant, mode, length)
        for mode in modes
        for length in every
        for script, variant in TUTORIAL
    ]


def record_all(
    wanted: Sequence[Run], given: dict[str, Any], folder: Path, packed: bool
) -> tuple[list[Path], dict[Refused, str]]:
    """The traces made, and why there is none of the others. `given` are options of the scripts.

    They go into `folder` as `<script>/<tag>.json` with the profiler's table beside it, or
    `packed` as `<script>/<tag>.json.gz` alone: the layout of the recordings that are shipped.

    One that cannot run here is named on stderr, and the others go on. Raises UserError when none
    can, and when the GPU does not answer any more.
    """
    made: list[Path] = []
    refused: dict[Refused, str] = {}
    if not torch.cuda.is_available() or given.get("device") == "cpu":
        # As 04_d does; but Triton's own functions are declared when it is first imported, which
        # another script's recording may do.
        os.environ.setdefault("TRITON_INTERPRET", "1")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(
            f"cannot write to {shown(folder)}: {error.strerror}; choose another --traces"
        ) from error
    said: set[str] = set()

    def say(line: str) -> None:
        if (reason := line.split(";")[0]) not in said:  # behind it stands the shape
            said.add(reason)
            note(line)

    with scratch() as away, progress(log=True) as doing:
        for number, one in enumerate(wanted, 1):
            doing(f"{number} of {len(wanted)}: {one}")
            try:
                recording = _record(one, given | {"traces": away}, say)
                made.append(_publish(recording, folder / one.script, packed))
            except UserError as error:
                refused[(one.script, one.variant), one.mode, one.length] = str(error)
                note(f"{one}: {error}")
            _clean_up(one, len(wanted) - number)
    count = f"{len(made)} of {len(wanted)} recorded in {shown(folder)}"
    if not made:
        raise UserError(f"{count}; the lines above say why")
    note(count + (f"; {len(refused)} cannot run here, see above" if refused else ""))
    return made, refused


def _record(one: Run, given: dict[str, Any], say: Callable[[str], None]) -> Recording:
    """Raises UserError whatever goes wrong: one variant is no reason to lose the others."""
    try:
        options = one.options(given)
        made = scripts.load(one.script).lesson(options)
        return lesson.record(one.script, made, options, lambda doing: None, say)
    except UserError:
        raise
    except Exception as error:  # a fault of one variant's library
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        raise UserError(why) from error


def _publish(made: Recording, folder: Path, packed: bool) -> Path:
    """Put the files in their place, whole; the trace's path."""
    trace = folder / made.trace.name
    files = {trace: made.trace.read_bytes(), folder / made.table.name: made.table.read_bytes()}
    made.trace.unlink()
    made.table.unlink()
    if packed:
        # No name and no time inside: the same recording is the same file.
        content, trace = gzip.compress(files[trace], 9, mtime=0), trace.with_suffix(".json.gz")
        files = {trace: content}
    replaced = [path for path in files if path.exists()]
    try:
        folder.mkdir(exist_ok=True)
        put(files)
    except OSError as error:
        raise UserError(
            f"cannot write to {shown(folder)}: {error.strerror}; choose another --traces"
        ) from error
    if replaced:
        note(f"{shown(replaced[0])} is replaced")
    return trace


def _clean_up(one: Run, left: int) -> None:
    """So that no variant finds the compiled code or the memory of the one before it."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_initialized():
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError as error:
            raise UserError(
                f"after {one} the GPU does not answer this process any more "
                f"({str(error).splitlines()[0]}); {left} not recorded. Leave {one} out with --only"
            ) from error
