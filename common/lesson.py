"""A lesson: what a script records, what to expect of it, the run that lays both side by side."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from . import share
from .cli import UserError, named, note, one_line_errors, option, parse, progress, shown
from .compare.claims import Expectation
from .compare.compared import compare_with
from .compare.rows import parse_guess
from .read.observe import observe
from .read.recordings import Siblings, shipped
from .read.trace import Trace, read
from .record import harness, workload
from .record.harness import Subject
from .record.workload import Attention, Workload
from .show import report
from .show.as_json import as_json, print_json
from .show.language import lang_option, speak
from .show.terminal import console
from .story import Mode

O = TypeVar("O", bound="Options")  # noqa: E741 — of a script, such as one with --backend


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
    lang: str | None = lang_option()
    json: bool = option(False, "print one JSON object", action="store_true")

    chooses: ClassVar[str] = ""  # the option that chooses a script's variant, where it has several

    @property
    def variant(self) -> str:
        """The variant's name, as it can stand in a file's."""
        chosen = getattr(self, self.chooses) if self.chooses else ""
        return chosen.replace(":", "-").replace("/", "-")


@dataclass(frozen=True)
class Lesson:
    subject: Subject
    eager: Expectation
    compiled: Expectation
    build: Callable[[Workload], Attention]
    # Entered around a whole recording: what is pinned there is not part of a forward.
    pinned: Callable[[], AbstractContextManager] = nullcontext

    def expected(self, mode: Mode) -> Expectation:
        return self.compiled if mode == "compile" else self.eager


def main(
    file: str,
    description: str | None,
    options: type[O],
    lesson: Callable[[O], Lesson],
    example: str,
) -> None:
    """What a script ends in. `file` is its `__file__`: the name is the folder of its recordings."""
    with one_line_errors():
        given = parse(options, description, example)
        run(Path(file).stem, lesson(given), given)


def run(script: str, lesson: Lesson, options: Options) -> None:
    """Record (or take a recording), then lay the trace beside the guess."""
    speak(options.lang)
    if options.guess is not None:
        parse_guess(options.guess)  # a word we do not know: better said before recording
    if options.upload is not None:
        share.require(options.upload)
    made = None
    if options.replay is None:
        with progress() as doing:
            made = record(script, lesson, options, doing)
        path = made.trace
    else:
        path = Path(options.replay) if options.replay else _shipped(script, options)
    trace = read(path)
    _require_same(trace, script, options)
    seen = observe(trace, None if trace.story else lesson.subject.label)
    expected = lesson.expected(trace.story.mode if trace.story else options.mode)
    compared = compare_with(seen, expected, Siblings(seen), options.guess)
    out = console()
    if options.json:
        print_json(as_json(compared))
    else:
        report.show(out, compared)
        report.show_files(out, path, made.table if made else None, made.top if made else ())
    if options.upload is not None:
        sys.stdout.flush()  # before what is said of the upload
        files = [path, made.table] if made else [path]
        for link in share.upload(files, options.upload, trace.story.script if trace.story else ""):
            note(f"shared {link}") if options.json else report.show_link(out, link)


def record(
    script: str,
    lesson: Lesson,
    options: Options,
    progress: Callable[[str], None],
    say: Callable[[str], None] = note,
) -> harness.Recording:
    """Record the lesson's subject. `say` is told what the user should know beside the result.

    Raises UserError for whatever the user can mend.
    """
    subject = lesson.subject
    work, why = workload.choose(options)
    if subject.cuda_only and work.device == "cpu":
        raise UserError(
            f"{options.variant} runs on CUDA devices only{f' and {why}' if why else ''}; "
            "choose another, or --replay the recording of a GPU"
        )
    if why:
        say(
            f"{why}; recording on the CPU at {list(work.shape)} "
            "(--replay shows the recording of a GPU)"
        )
    # Compiled, mask, scale and softmax write the scores once, whatever they are worth eagerly.
    stores = bool(subject.stores_scores) and (1.0 if options.compile else subject.stores_scores)
    workload.require_memory(work, options.variant or subject.title, stores)
    with lesson.pinned():
        return harness.record(
            lesson.build(work),
            work,
            subject,
            options,
            script=script,
            variant=options.variant,
            progress=progress,
        )


def _require_same(trace: Trace, script: str, options: Options) -> None:
    """A guess about one thing says nothing about another."""
    mine = script, options.variant
    if trace.story and trace.story.key != mine:
        raise UserError(
            f"--replay {shown(trace.path)}: it records {named(' '.join(trace.story.key).strip())}, "
            f"not {'  '.join(mine).strip()}; use that script and variant, or uv run -m common.look"
        )


def _shipped(script: str, options: Options) -> Path:
    shape = options.shape("cuda")
    return shipped(script, options.variant, shape, options.dtype, options.mode)
