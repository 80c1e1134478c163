"""A lesson: what a reader guesses, what to look for, and the run that shows both."""

from collections.abc import Callable
from dataclasses import dataclass

from common.cli import note
from common.workload import Attention, Options, Workload


@dataclass(frozen=True)
class Lesson:
    script: str
    title: str
    label: str
    guess: str
    compiled_guess: str
    stores_scores: bool = False


def run(lesson: Lesson, build: Callable[[Workload], Attention], options: Options) -> None:
    from common import harness, workload

    work, why = workload.choose(options)
    if why:
        note(f"{why}; recording on the CPU, by default at a smaller shape")
    workload.require_memory(work, options.variant or lesson.title, lesson.stores_scores)
    recording = harness.record(
        build(work), work, options, script=lesson.script, title=lesson.title, label=lesson.label,
        stores_scores=lesson.stores_scores,
    )
    print(recording.trace, [(n[:60],*r) for n,*r in recording.top])
