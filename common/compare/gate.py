"""Is it slower? Two groups of recordings, and what their spread allows to say.

A recording counts as one value. Of each group the mean of the logarithms is taken, so that growth
is a ratio. How far two such means lie apart by chance alone follows from how far recordings of one
group lie apart: Student's t with the spread of both groups pooled, for the two are one program
where nothing has changed. It is slower if the growth is over the threshold and its lower bound over
0. The bound is passed by chance in one of 1000 comparisons of equals: five times fewer than are
allowed, for times of recordings have longer tails than the normal distribution that t stands on.

With one recording on each side there is no spread to judge by, and the threshold alone decides.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import exp, lgamma, log, sqrt
from statistics import fmean
from typing import Literal, TypeAlias

from ..cli import UserError
from ..read.known import known
from ..read.repeats import Part, Repeat

CHANCE = 1 / 1000  # of a false alarm, among comparisons of equals
Verdict: TypeAlias = Literal["slower", "not slower", "unclear"]


@dataclass(frozen=True, slots=True)
class Growth:
    """Of a time, from one group to another: 0.1 is a tenth more. The bounds are None where no
    group has a second recording."""

    base: float  # ns, geometric mean
    new: float
    ratio: float
    low: float | None
    high: float | None
    spread: float | None  # relative standard deviation between recordings, of both groups pooled

    @property
    def share(self) -> float:
        return self.ratio - 1

    @property
    def tells(self) -> float | None:
        """The least growth that these recordings can tell from none."""
        return None if self.low is None else self.ratio / (1 + self.low) - 1


@dataclass(frozen=True, slots=True)
class PartGrowth:
    """Of a step. None: a group does not have it, or its time is unknown."""

    kind: str
    name: str
    base: float | None  # ns a unit, mean over the group
    new: float | None
    base_count: float | None  # a unit
    new_count: float | None
    beyond: bool | None  # whether it is more than the spread explains; None: not to be told

    @property
    def more(self) -> float:
        return (self.new or 0) - (self.base or 0)


@dataclass(frozen=True)
class Gate:
    base: tuple[Repeat, ...]
    new: tuple[Repeat, ...]
    metric: str
    threshold: float
    growth: Growth
    verdict: Verdict
    parts: tuple[PartGrowth, ...]  # what changed most first
    doubts: tuple["Doubt", ...]


@dataclass(frozen=True, slots=True)
class Doubt:
    """What speaks against comparing: `what` is "same recording", "device" or "records"."""

    what: str
    one: str
    other: str


def gate(base: Sequence[Repeat], new: Sequence[Repeat], metric: str, threshold: float) -> Gate:
    """Raises UserError for recordings that cannot be compared."""
    doubts: list[Doubt] = []
    groups = [_once(group, doubts) for group in (base, new)]
    for group in groups:
        _require_alike(group)
    base, new = groups
    _require_comparable(base[0], new[0])
    for what in ("device", "records"):
        one, other = getattr(base[0], what), getattr(new[0], what)
        if one != other and one and other:
            doubts.append(Doubt(what, one, other))
    times = [[_value(one, metric) for one in group] for group in (base, new)]
    growth = grown(*times)
    over = growth.share > threshold
    if not over:
        verdict: Verdict = "not slower"
    else:
        verdict = "slower" if growth.low is None or growth.low > 0 else "unclear"
    return Gate(
        tuple(base),
        tuple(new),
        metric,
        threshold,
        growth,
        verdict,
        _parts(base, new),
        tuple(doubts),
    )


def _once(group: Sequence[Repeat], doubts: list[Doubt]) -> list[Repeat]:
    """Each recording once: a copy of one is no repeat, and would make the spread too small."""
    found: dict[tuple, Repeat] = {}
    for one in group:
        key = one.work, one.busy, one.elapsed, one.parts
        if key in found:
            doubts.append(Doubt("same recording", found[key].file, one.file))
        else:
            found[key] = one
    return list(found.values())


def _require_alike(group: Sequence[Repeat]) -> None:
    first = group[0]
    for one in group[1:]:
        for what in ("records", "unit", "region", "on_gpu"):
            mine, its = getattr(first, what), getattr(one, what)
            if mine != its:
                raise UserError(
                    f"{first.file} and {one.file} are no repeats of one thing ({mine} against "
                    f"{its}); give one group of recordings for BASE and one for NEW"
                )


def _require_comparable(base: Repeat, new: Repeat) -> None:
    if base.on_gpu != new.on_gpu:
        without = base if new.on_gpu else new
        raise UserError(f"{without.file} has no GPU events, and the other side has; record both")
    if base.unit != new.unit:
        raise UserError(
            f"{base.file} is compared by the {base.unit}, {new.file} by the {new.unit}; choose a "
            "label of both with --region"
        )


def _value(one: Repeat, metric: str) -> float:
    value = one.metric(metric)
    if value is None or value <= 0:
        raise UserError(
            f"{one.file}: its time ({metric}) a {one.unit} is unknown; look at this file alone to "
            "see why, or choose another --metric"
        )
    return value


def grown(base: Sequence[float], new: Sequence[float]) -> Growth:
    """From one group of positive values to another."""
    logs = [list(map(log, values)) for values in (base, new)]
    means = [fmean(values) for values in logs]
    more = means[1] - means[0]
    freedom = len(base) + len(new) - 2
    if not freedom:
        return Growth(exp(means[0]), exp(means[1]), exp(more), None, None, None)
    squares = sum(
        (value - mean) ** 2 for values, mean in zip(logs, means, strict=True) for value in values
    )
    spread = sqrt(squares / freedom)
    reach = quantile(1 - CHANCE, freedom) * spread * sqrt(1 / len(base) + 1 / len(new))
    return Growth(
        exp(means[0]),
        exp(means[1]),
        exp(more),
        exp(more - reach) - 1,
        exp(more + reach) - 1,
        exp(spread) - 1,
    )


def _parts(base: Sequence[Repeat], new: Sequence[Repeat]) -> tuple[PartGrowth, ...]:
    sides = [[_by_key(one) for one in group] for group in (base, new)]
    keys = dict.fromkeys(key for group in reversed(sides) for one in group for key in one)
    found = []
    for key in keys:
        (one, count), (other, other_count) = (_mean(group, key) for group in sides)
        if (one is None and count) or (other is None and other_count):
            continue  # it is there, and its time is unknown
        values = [
            [part.ns for each in group if (part := each.get(key)) and part.ns] for group in sides
        ]
        whole = all(len(v) == len(group) for v, group in zip(values, sides, strict=True))
        beyond: bool | None = None
        if whole and len(values[0]) + len(values[1]) > 2:
            growth = grown(*values)
            assert growth.low is not None and growth.high is not None
            beyond = growth.low > 0 or growth.high < 0
        found.append(PartGrowth(*key, one, other, count, other_count, beyond))
    return tuple(sorted(found, key=lambda part: (-abs(part.more), part.kind, part.name)))


def _by_key(one: Repeat) -> dict[tuple[str, str], Part]:
    return {(part.kind, part.name): part for part in one.parts}


def _mean(
    group: Sequence[dict[tuple[str, str], Part]], key: tuple[str, str]
) -> tuple[float | None, float | None]:
    """Time and count a unit, over all recordings of the group; None for what none has."""
    if not any(key in one for one in group):
        return None, None
    times = known(one[key].ns if key in one else 0.0 for one in group)
    return fmean(times) if times else None, fmean(
        one[key].count if key in one else 0 for one in group
    )


# ── Student's t ───────────────────────────────────────────────────────────────────────────────────


@lru_cache(maxsize=256)
def quantile(share: float, freedom: int) -> float:
    """The value that Student's t of so many degrees of freedom stays under with this probability,
    above one half."""
    low, high = 0.0, 1.0
    while below(high, freedom) < share:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle, freedom) < share else (low, middle)
    return high


def below(t: float, freedom: int) -> float:
    """The probability that Student's t is below `t`, which is at least 0: by the incomplete beta
    function, as in Abramowitz and Stegun, 26.7.1 and 26.5.8."""
    return 1 - _beta(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - _beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    return front * _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 / (1 + d1 / (1 + d2 / (1 + …))), from the inside: enough terms for double precision."""
    value = 1.0
    for n in range(200, 0, -1):
        m = n // 2
        if n % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + d / value
    return 1 / value
