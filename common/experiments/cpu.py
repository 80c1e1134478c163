"""cpu: which SDPA backend costs most CPU time, and which cannot be told apart. Many forwards, each
waited for, so that no launch waits for the GPU."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import mean, median, stdev

from ..cli import UserError
from ..compare.claims import noise
from ..show.words import duration
from . import BACKENDS, Asked, Recipe, Recorded, Result, sdpa, sdpa_subject, us


def read(seen: Sequence[Recorded]) -> Result:
    times = {
        s.variant: [forward.cpu_ns for forward in s.seen.forwards]
        for s in seen
        if len(s.seen.forwards) > 1
    }
    if len(times) < 2:
        raise UserError("cpu compares backends, and fewer than two have several forwards here")
    ranked = sorted(times, key=lambda name: mean(times[name]), reverse=True)
    files = {s.variant: s.file for s in seen}
    lines, found = [], []
    for name in ranked:
        each = times[name]
        error = stdev(each) / len(each) ** 0.5
        lines.append(
            [
                name,
                str(len(each)),
                duration(mean(each), error),
                duration(median(each)),
            ]
        )
        found.append(
            {
                "backend": name,
                "file": files[name],
                "forwards": len(each),
                "cpu_us_mean": us(mean(each)),
                "cpu_us_standard_error": us(error),
                "cpu_us_median": us(median(each)),
            }
        )
    heads = ("backend", "forwards", "CPU a forward,\n± standard error", "median")
    fused = {s.variant for s in seen if s.seen.per_forward("kernel") == 1}
    return Result(heads, lines, found, _ranking(ranked, times, fused))


def _ranking(ranked: Sequence[str], times: dict[str, list[int]], fused: set[str]) -> list[str]:
    """The order, and what can be told of the first; `fused` are one kernel a forward."""
    words, apart = [ranked[0]], []
    for one, following in pairwise(ranked):
        difference = mean(times[one]) - mean(times[following])
        apart.append(difference > noise(times[one], times[following]))
        words += [">" if apart[-1] else "≈", following]
    said = [
        " ".join(words) + "   (≈: closer than two standard errors of their difference)"
        if not all(apart)
        else " ".join(words)
    ]
    said.append(_most(ranked, times))
    single = [name for name in ranked if name in fused]
    if 2 <= len(single) < len(ranked):
        said.append(f"Of those that are one kernel: {_most(single, times)}")
    return said


def _most(ranked: Sequence[str], times: dict[str, list[int]]) -> str:
    first, second = ranked[:2]
    difference = mean(times[first]) - mean(times[second])
    unsure = noise(times[first], times[second])
    if difference > unsure:
        return (
            f"{first} costs most, {duration(difference)} more than {second}; up to "
            f"{duration(unsure)} would be noise."
        )
    return (
        f"which costs most cannot be told, for {first} and {second} differ by "
        f"{duration(difference)}, and up to {duration(unsure)} is noise; try more "
        "--forwards."
    )


def recipes(asked: Asked) -> list[Recipe]:
    return [
        Recipe(
            backend, asked.work, sdpa, sdpa_subject(backend), backend, asked.forwards, "every step"
        )
        for backend in BACKENDS
    ]
