"""cost: what a forward costs the CPU, recorded and not. The profiler costs CPU time itself, and not
the same for every way of launching: who is dearest is asked of the steps that nobody recorded.

Several processes, one after the other; in each the variants take turns. The spread within one
process is not the spread between processes, so an order is claimed only where no process turns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from statistics import mean, median
from typing import TYPE_CHECKING

from ..cli import UserError, note
from ..show.words import duration
from ..story import Unrecorded
from . import BACKENDS, Asked, Recipe, Recorded, Result, sdpa, sdpa_subject, us

if TYPE_CHECKING:
    from ..record.harness import Subject
    from ..record.workload import Attention, Workload

PROCESSES = 5
# All four of one above all four of another: by chance, 1 in 35. Of three and three, 1 in 10.
LEAST = 4
TURN = 10  # unrecorded forwards of a variant, one after the other, before the next has its turn
RECORDED = 6  # forwards in a recording
KERNELS = ("triton", "gluon", "flex", "fa4")  # of 04_d; hub needs the network


@dataclass(frozen=True)
class Costs:
    """A variant's median CPU time of a forward in each process, ns: not recorded, and recorded."""

    variant: str
    files: tuple[str, ...]
    forwards: int  # unrecorded ones, of all processes
    plain: tuple[float, ...]
    recorded: tuple[float, ...]

    @property
    def added(self) -> float:
        return mean(self.recorded) - mean(self.plain)


def above(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether every process of the one took longer than any of the other, and there are enough of
    them for that to be no chance."""
    return min(len(one), len(other)) >= LEAST and min(one) > max(other)


def read(seen: Sequence[Recorded]) -> Result:
    ranked = sorted(_costs(seen), key=lambda one: mean(one.plain), reverse=True)
    if len(ranked) < 2:
        raise UserError("cost compares variants, and there are fewer than two here")
    lines, found = [], []
    for one in ranked:
        ratios = [r / p for r, p in zip(one.recorded, one.plain, strict=True)]
        lines.append(
            [
                one.variant,
                f"{len(one.plain)}",
                _range(one.plain),
                _range(one.recorded),
                f"{min(ratios):.1f} – {max(ratios):.1f}",
            ]
        )
        found.append(
            {
                "variant": one.variant,
                "files": list(one.files),
                "processes": len(one.plain),
                "unrecorded_forwards": one.forwards,
                "unrecorded_cpu_us": [us(ns) for ns in one.plain],
                "recorded_cpu_us": [us(ns) for ns in one.recorded],
            }
        )
    heads = ("variant", "processes", "not recorded", "recorded", "recorded ÷ not")
    return Result(heads, lines, found, _conclusions(ranked))


def _costs(seen: Sequence[Recorded]) -> list[Costs]:
    by: dict[str, list[tuple[Unrecorded, Recorded]]] = {}
    for one in seen:
        if one.story.unrecorded and one.story.unrecorded.cpu_ns and one.seen.forwards:
            by.setdefault(one.variant, []).append((one.story.unrecorded, one))
    return [
        Costs(
            variant,
            tuple(one.file for _, one in each),
            sum(len(told.cpu_ns) for told, _ in each),
            tuple(median(told.cpu_ns) for told, _ in each),
            tuple(median(forward.cpu_ns for forward in one.seen.forwards) for _, one in each),
        )
        for variant, each in by.items()
    ]


def _range(each: Sequence[float]) -> str:
    low, high = duration(min(each)), duration(max(each))
    return low if low == high else f"{low} – {high}"


def _conclusions(ranked: Sequence[Costs]) -> list[str]:
    words = [ranked[0].variant]
    for one, following in pairwise(ranked):
        words += [">" if above(one.plain, following.plain) else "≈", following.variant]
    said = [f"Not recorded: {' '.join(words)}"]
    if "≈" in words:
        said[0] += "   (≈: not every process of the one above every process of the other"
        few = min(len(one.plain) for one in ranked) < LEAST
        said[0] += f", or fewer than {LEAST} of them)" if few else ")"
    dear = [one for one in ranked if above(one.recorded, one.plain)]
    if dear:
        most, least = (pick(dear, key=lambda one: one.added) for pick in (max, min))
        line = "Recording costs CPU time of its own"
        if most is least:
            line += f": {duration(most.added)} more for {most.variant}."
        else:
            line += (
                f", differently for each: {duration(least.added)} more for {least.variant}, "
                f"{duration(most.added)} more for {most.variant}. No one figure could be "
                "subtracted, and none is."
            )
        said.append(line)
    turned = [
        f"{other.variant} above {one.variant}"
        for one, other in combinations(ranked, 2)
        if above(one.plain, other.plain) and above(other.recorded, one.recorded)
    ]
    if turned:
        said.append(f"It turns the order: recorded, {', '.join(turned)} in every process.")
    return said


# ── Recording: from here on with torch ────────────────────────────────────────────────────────────


def recipes(asked: Asked) -> list[Recipe]:
    """What this process records, once it has taken its unrecorded times."""
    takers = _ready(asked.work)
    times: dict[str, list[int]] = {name: [] for name in takers}
    for turn in range(max(1, asked.forwards // TURN)):
        names = list(takers)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            times[name] += takers[name].take(TURN)
    # The profiler stays attached after its first use: nothing is timed unrecorded from here on.
    return [
        replace(taker.recipe, unrecorded=Unrecorded(asked.process, tuple(times[name])))
        for name, taker in takers.items()
    ]


@dataclass(frozen=True)
class Taker:
    recipe: Recipe
    inputs: tuple
    pinned: Callable[[], AbstractContextManager]

    def take(self, forwards: int) -> list[int]:
        """Nanoseconds of the CPU in each of so many forwards: the step that is recorded later,
        each waited for, so that no launch waits for the GPU."""
        import time

        import torch
        from torch.profiler import record_function

        attention, on_gpu, found = self.recipe.attention, self.inputs[0].is_cuda, []
        with self.pinned(), torch.no_grad():
            for number in range(forwards + 2):  # the first two after another variant do not count
                with record_function(self.recipe.subject.label):
                    start = time.perf_counter_ns()
                    attention(*self.inputs)
                    took = time.perf_counter_ns() - start
                if on_gpu:
                    torch.cuda.synchronize()
                if number >= 2:
                    found.append(took)
        return found


def _ready(work: Workload) -> dict[str, Taker]:
    """Every variant that runs here, compiled and tuned. What does not is named and left out."""
    from .. import experiment, scripts
    from ..record import harness

    script = scripts.load("04_d_kernels_attention")
    found = {}
    for name in (*BACKENDS, *KERNELS):
        backend = name if name in BACKENDS else None
        try:
            attention: Attention = sdpa
            subject: Subject = sdpa_subject(backend)
            if backend is None:
                lesson = script.lesson(script.Options(kernel=name))
                if lesson.subject.cuda_only and work.device == "cpu":
                    raise UserError("it runs on CUDA devices only")
                attention, subject = lesson.build(work), lesson.subject
            recipe = Recipe(name, work, attention, subject, backend, RECORDED, "every step")
            taker = Taker(
                recipe,
                harness.laid_out(work.inputs(), subject.layout),
                partial(experiment.pinned, backend) if backend else nullcontext,
            )
            with harness.explained(name, work, subject.stores_scores):
                taker.take(3)
        except UserError as error:
            note(f"{name} is left out: {error}")
        else:
            found[name] = taker
    return found
