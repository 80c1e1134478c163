"""A lesson: what a reader guesses, what to look for, and the run that lays both beside the trace.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from common import harness, recordings, report, workload
from common.cli import note, option
from common.compare import Claim, Evidence, align, answer, parse_guess, rows
from common.observe import observe
from common.trace import read
from common.workload import Attention, Workload


@dataclass(frozen=True)
class Options(workload.Options):
    """What to run, how to record it, and how to look at it: the same in every script."""

    guess: str | None = option(
        None, 'your guess instead of the script\'s, such as "matmul softmax matmul"',
        metavar="STEPS")
    replay: str | None = option(
        None, "read a recording instead of making one: FILE, or the shipped one that fits",
        nargs="?", const="", metavar="FILE")
    json: bool = option(False, "print one JSON object", action="store_true")


@dataclass(frozen=True)
class Lesson:
    """`guess` is what someone would honestly expect before looking. `lessons` explains kinds that
    come unguessed ("+copy") or do not come ("-mask"). `claims` are the sentences to check."""

    title: str
    label: str
    guess: str
    claims: tuple[Claim, ...] = ()
    lessons: dict[str, str] = field(default_factory=dict)
    stores_scores: bool = False


def run(
    file: str,
    eager: Lesson,
    compiled: Lesson,
    build: Callable[[Workload], Attention],
    options: Options,
) -> None:
    """Record `build(workload)` (or take a recording), then lay the trace beside the guess.

    `file` is the script's `__file__`; its name without the ending is the folder of its recordings.
    """
    script = Path(file).stem
    lesson = compiled if options.compile else eager
    guess = parse_guess(options.guess or lesson.guess)
    made = None
    if options.replay is None:
        made = _record(script, lesson, build, options)
        path = made.trace
    else:
        path = Path(options.replay) if options.replay else _shipped(script, options)
    seen = observe(read(path))
    pairs = align(guess, rows(seen.steps))
    claims = answer(lesson.claims, Evidence(seen, recordings.siblings(seen)))
    if options.json:
        report.print_json(report.as_json(seen, pairs, True, claims))
        return
    out = report.console()
    report.show(out, seen, pairs=pairs, guessed=True, lessons=lesson.lessons, claims=claims)
    report.show_files(out, path, made and made.table, made.top if made else ())


def _record(script, lesson, build, options) -> harness.Recording:
    work, why = workload.choose(options)
    if why:
        note(f"{why}; recording on the CPU at {list(work.shape)} "
             "(--replay shows the recording of a GPU)")
    workload.require_memory(work, options.variant or lesson.title, lesson.stores_scores)
    with _progress() as progress:
        return harness.record(
            build(work), work, options, script=script, title=lesson.title, label=lesson.label,
            stores_scores=lesson.stores_scores, progress=progress,
        )


def _shipped(script: str, options: Options) -> Path:
    given = (options.batch, options.heads, options.seq, options.head_dim)
    default = workload.DEFAULT_SHAPE["cuda"]
    shape = [size or usual for size, usual in zip(given, default, strict=True)]
    mode = "compile" if options.compile else "eager"
    return recordings.shipped(script, options.variant, shape, options.dtype, mode)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is being done, on a terminal's last line; nothing elsewhere."""
    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        yield lambda doing: None
        return
    with terminal.status("starting") as status:
        yield lambda doing: status.update(f"{doing} …")
