"""Record every variant of the tutorial, one after the other in one process.

Each script is run as its own command line runs it: nothing of it is known here but its options.
One process, because importing torch alone can take longer than a recording.
"""

import contextlib
import gc
import gzip
import io
import os
import runpy
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from .cli import UserError, note, parse, shown
from .compare.variants import TUTORIAL, Refused
from .lesson import Options

ROOT = Path(__file__).parent.parent
# The option that chooses among a script's variants.
CHOICE = {"04_c_sdpa_attention": "--backend", "04_d_kernels_attention": "--kernel"}


@dataclass(frozen=True)
class Experiment:
    script: str
    variant: str
    mode: str
    length: int | None = None
    arguments: tuple[str, ...] = ()  # of the script, such as ("--dtype", "fp16")

    def __str__(self) -> str:
        return " ".join([self.script[:4], *self.special])

    @property
    def special(self) -> list[str]:
        """The arguments that tell it from the others."""
        choice = [CHOICE[self.script], self.variant] if self.variant else []
        mode = ["--compile"] if self.mode == "compile" else []
        length = ["--seq", str(self.length)] if self.length else []
        return [*choice, *mode, *length]


def experiments(
    modes: Sequence[str], lengths: Sequence[int], arguments: Sequence[str]
) -> list[Experiment]:
    """All variants in all modes at all lengths; no length given: the scripts' own default.

    Compiled ones last: whatever importing the compiler leaves behind, eager ones are free of it.
    Raises UserError when the scripts would not understand the arguments.
    """
    parse(Options, "", "", arguments, module="common.glance")
    return [
        Experiment(script, variant, mode, length, tuple(arguments))
        for mode in modes
        for length in lengths or [None]
        for script, variant in TUTORIAL
    ]


def record_all(
    wanted: Sequence[Experiment], folder: Path, packed: bool
) -> tuple[list[Path], dict[Refused, str]]:
    """The traces made, and why there is none of the others.

    They go into `folder` as `<script>/<tag>.json` with the profiler's table beside it, or
    `packed` as `<script>/<tag>.json.gz` alone: the layout of the recordings that are shipped.

    One that cannot run here is named on stderr, and the others go on. Raises UserError when none
    can, and when the GPU does not answer any more.
    """
    made, refused, said = [], {}, set()
    if not torch.cuda.is_available() or any("cpu" in one.arguments for one in wanted):
        # As 04_d does; but Triton's own functions are declared when it is first imported, which
        # another script's recording may do.
        os.environ.setdefault("TRITON_INTERPRET", "1")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=".recording-", dir=folder)
    except OSError as error:
        raise UserError(
            f"cannot write to {shown(folder)}: {error.strerror}; choose another --traces"
        ) from error
    with scratch:
        for number, one in enumerate(wanted, 1):
            _progress(f"{number} of {len(wanted)}: {one}")
            files, why, notes = _run(one, Path(scratch.name))
            for line in notes:
                if (reason := line.split(";")[0]) not in said:  # behind it stands the shape
                    said.add(reason)
                    _say(line)
            if why:
                refused[(one.script, one.variant), one.mode, one.length] = why
                _say(f"{one}: {why}")
            else:
                made.append(_publish(files, folder / one.script, packed))
            _clean_up(one, len(wanted) - number)
    _progress("")
    count = f"{len(made)} of {len(wanted)} recorded in {shown(folder)}"
    if not made:
        raise UserError(f"{count}; the lines above say why")
    note(count + (f"; {len(refused)} cannot run here, see above" if refused else ""))
    return made, refused


def _run(one: Experiment, scratch: Path) -> tuple[list[Path], str, list[str]]:
    """Run the script. Its files, or why there are none, and what it had to say beside that."""
    before = dict(os.environ), sys.argv
    out, err, why = io.StringIO(), io.StringIO(), ""
    sys.argv = [f"{one.script}.py", *one.special, *one.arguments, "--traces", str(scratch)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            runpy.run_path(str(ROOT / f"{one.script}.py"), run_name="__main__")
    except SystemExit as stopped:
        if stopped.code == 130:
            raise KeyboardInterrupt from None
        if stopped.code:
            why = "it stopped without a reason"
    except Exception as error:  # a fault of one variant's library is no reason to lose the others
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    finally:
        os.environ.clear()
        os.environ.update(before[0])
        sys.argv = before[1]
    lines = err.getvalue().splitlines()
    told = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    notes = [line.removeprefix("note: ") for line in lines if line.startswith("note: ")]
    files = sorted((scratch / one.script).glob("*"))
    if not why and not files:
        why = "it wrote no trace"
    return files, told[-1] if told else why, notes


def _publish(files: Sequence[Path], folder: Path, packed: bool) -> Path:
    """Move the files to their place, each whole; the trace's path."""
    folder.mkdir(exist_ok=True)
    (trace,) = (path for path in files if path.suffix == ".json")
    if packed:
        zipped = trace.with_suffix(".json.gz")
        # No name and no time inside: the same recording is the same file.
        with open(zipped, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as pack:
            pack.write(trace.read_bytes())
        for path in files:
            path.unlink()
        files, trace = [zipped], zipped
    for path in files:
        place = folder / path.name
        if path == trace and place.exists():
            _say(f"{shown(place)} is replaced")
        os.replace(path, place)
    return folder / trace.name


def _clean_up(one: Experiment, left: int) -> None:
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


def _progress(doing: str) -> None:
    """The last line of a terminal; a line each where there is none, for a log."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{doing[:100]}", end="", file=sys.stderr, flush=True)
    elif doing:
        print(doing, file=sys.stderr, flush=True)


def _say(line: str) -> None:
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    note(line)
