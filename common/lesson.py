"""A lesson: what a reader guesses, what to look for, and the run that checks both."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from . import share
from .cli import UserError, note, option, shown
from .compare.rows import Claim, Evidence, align, answer, parse_guess, rows
from .read import recordings
from .read.observe import observe
from .read.trace import Trace, read
from .record import harness, workload
from .record.workload import Attention, Workload
from .show import report


@dataclass(frozen=True)
class Options(workload.Options):
    """What to run, how to record it, and how to look at it: the same in every script."""

    guess: str | None = option(
        None,
        'your guess instead of the script\'s, such as "matmul softmax matmul"',
        metavar="STEPS",
    )
    replay: str | None = option(
        None,
        "read a recording instead of making one: FILE, or the shipped one that fits",
        nargs="?",
        const="",
        metavar="FILE",
    )
    upload: str | None = option(
        None,
        "share trace and table in this Hugging Face bucket; nothing there is deleted",
        metavar="USER/BUCKET",
    )
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
    cuda_only: bool = False
    layout: str = "bhsd"  # of q, k, v: [batch, heads, seq, head_dim], or bshd


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
    if options.guess is not None:
        parse_guess(options.guess)  # a word we do not know: better said before recording
    if options.upload is not None:
        share.require(options.upload)
    made = None
    if options.replay is None:
        made = _record(script, compiled if options.compile else eager, build, options)
        path = made.trace
    else:
        path = Path(options.replay) if options.replay else _shipped(script, options)
    trace = read(path)
    lesson = compiled if trace.about.get("mode", _mode(options)) == "compile" else eager
    _require_same(trace, script, options)
    seen = observe(trace, None if trace.about else lesson.label)
    guess = parse_guess(lesson.guess if options.guess is None else options.guess)
    pairs = align(guess, rows(seen.steps))
    claims = answer(lesson.claims, Evidence(seen, recordings.siblings(seen)))
    out = report.console()
    if options.json:
        report.print_json(report.as_json(seen, pairs, True, claims))
    else:
        report.show(out, seen, pairs=pairs, guessed=True, lessons=lesson.lessons, claims=claims)
        report.show_files(out, path, made and made.table, made.top if made else ())
    if options.upload is not None:
        sys.stdout.flush()  # before what is said of the upload
        files = [path, made.table] if made else [path]
        for link in share.upload(files, options.upload, trace.about.get("script", "")):
            note(f"shared {link}") if options.json else report.show_link(out, link)


def _record(script, lesson, build, options) -> harness.Recording:
    work, why = workload.choose(options)
    if lesson.cuda_only and work.device == "cpu":
        raise UserError(
            f"{options.variant} runs on CUDA devices only{f' and {why}' if why else ''}; "
            "choose another, or --replay the recording of a GPU"
        )
    if why:
        note(
            f"{why}; recording on the CPU at {list(work.shape)} "
            "(--replay shows the recording of a GPU)"
        )
    workload.require_memory(work, options.variant or lesson.title, lesson.stores_scores)
    with progress_line() as progress:
        return harness.record(
            build(work),
            work,
            options,
            script=script,
            title=lesson.title,
            label=lesson.label,
            stores_scores=lesson.stores_scores,
            layout=lesson.layout,
            progress=progress,
        )


def _mode(options: Options) -> str:
    return "compile" if options.compile else "eager"


def _require_same(trace: Trace, script: str, options: Options) -> None:
    """A guess about one thing says nothing about another."""
    made = trace.about.get("script", script), trace.about.get("variant", options.variant)
    if made != (script, options.variant):
        raise UserError(
            f"--replay {shown(trace.path)}: it records {' '.join(made).strip()}, not "
            f"{' '.join((script, options.variant)).strip()}; use that script and variant, or "
            "uv run -m common.look"
        )


def _shipped(script: str, options: Options) -> Path:
    given = (options.batch, options.heads, options.seq, options.head_dim)
    default = workload.DEFAULT_SHAPE["cuda"]
    shape = [size or usual for size, usual in zip(given, default, strict=True)]
    return recordings.shipped(script, options.variant, shape, options.dtype, _mode(options))


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """What is being done, on a terminal's last line; nothing elsewhere."""
    terminal = Console(stderr=True)
    if not terminal.is_terminal:
        yield lambda doing: None
        return
    with terminal.status("starting") as status:
        yield lambda doing: status.update(f"{doing} …")
