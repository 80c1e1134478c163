"""Recordings side by side: one variant each, grouped so that only equals are compared."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import linear_regression, mean

from ..read.observe import Observation
from ..story import Conditions, Story
from .facts import PEAK_TFLOPS, POST, POST_CONDITIONS, Published

# Every variant of the tutorial, in its order.
TUTORIAL = (
    ("04_a_naive_attention", ""),
    ("04_b_inplace_ops_attention", ""),
    *(
        ("04_c_sdpa_attention", backend)
        for backend in ("math", "efficient", "flash", "cudnn", "auto")
    ),
    *(("04_d_kernels_attention", kernel) for kernel in ("triton", "gluon", "flex", "hub", "fa4")),
)
NAIVE = TUTORIAL[0]

# An experiment that could not be recorded: (script, variant), mode, length.
Refused = tuple[tuple[str, str], str, int | None]


def is_one_of(names: Sequence[str] | None, script: str, variant: str) -> bool:
    """Whether one of the names means this variant; none given mean all. A script's number means all
    of its variants."""
    return not names or any(name in (script, script[:4], variant) for name in names)


@dataclass(frozen=True)
class Variant:
    """A recording, and the naive one it may be compared with."""

    seen: Observation
    story: Story
    naive: Observation | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.story.key

    @property
    def name(self) -> str:
        """Such as "04_c flash"; a script of one variant is known by its title."""
        story = self.story
        return f"{story.script[:4]} {story.variant or story.title.removesuffix(' attention')}"

    @property
    def length(self) -> int:
        return self.story.seq

    @property
    def ns(self) -> float | None:
        """Time of a forward: of its GPU events, in a trace of the CPU alone of the region."""
        return _time(self.seen)

    @property
    def ratio(self) -> float | None:
        """Its time over naive's."""
        if self.naive is None or not (whole := _time(self.naive)) or self.ns is None:
            return None
        return self.ns / whole

    @property
    def tflops(self) -> float | None:
        """Achieved, in 10^12 operations a second, of the useful work: 4·B·H·S²·D/2."""
        return operations(self.story.shape) / self.ns / 1e3 if self.ns else None

    @property
    def share_of_peak(self) -> float | None:
        """Of what the GPU could do in this dtype; None where that is unknown."""
        peak = peak_tflops(self.story)
        return self.tflops / peak if peak and self.tflops else None

    @property
    def peak_bytes(self) -> int | None:
        return self.story.peak_bytes

    @property
    def published(self) -> Published | None:
        story = self.story
        same = (story.shape, story.dtype, story.mode) == POST_CONDITIONS
        return POST.get(self.key) if same else None


def operations(shape: Sequence[int]) -> float:
    """Two matmuls of 2·B·H·S²·D each, and of them the half that a causal mask leaves."""
    batch, heads, seq, head_dim = shape
    return 4 * batch * heads * seq**2 * head_dim / 2


def peak_tflops(made: Story | Conditions) -> float | None:
    return PEAK_TFLOPS.get(made.device.name, {}).get(made.dtype)


def _time(seen: Observation) -> float | None:
    return seen.gpu_ns if seen.on_gpu else seen.cpu_ns


@dataclass(frozen=True)
class Group:
    """Variants under the same conditions."""

    variants: tuple[Variant, ...]

    @property
    def conditions(self) -> Conditions:
        """The same for all."""
        return self.variants[0].story.conditions

    @property
    def length(self) -> int:
        return self.variants[0].length

    @property
    def on_gpu(self) -> bool:
        return any(variant.seen.on_gpu for variant in self.variants)

    @property
    def twice(self) -> bool:
        """Whether one variant was recorded more than once under these conditions."""
        return len({variant.key for variant in self.variants}) < len(self.variants)


def group(found: Iterable[Observation]) -> list[Group]:
    """In the tutorial's order; eager before compiled, short sequences before long ones."""
    groups: dict[Conditions, list[tuple[Observation, Story]]] = {}
    for seen in found:
        if story := seen.story:  # without one nobody knows what it may be compared with
            groups.setdefault(story.conditions, []).append((seen, story))
    made = []
    for members in groups.values():
        naive = [seen for seen, story in members if story.key == NAIVE]
        members.sort(key=lambda one: (_place(one[1].key), str(one[0].trace.path)))
        variants = (Variant(seen, story, _nearest(seen, naive)) for seen, story in members)
        made.append(Group(tuple(variants)))
    made.sort(key=lambda one: _order(one.conditions))
    return made


def _place(key: tuple[str, str]) -> tuple:
    return (TUTORIAL.index(key) if key in TUTORIAL else len(TUTORIAL), key)


def _nearest(seen: Observation, naive: Sequence[Observation]) -> Observation | None:
    """Recorded twice, the one beside it counts."""

    def folder(one: Observation):
        return one.trace.path.resolve().parent.parent

    beside = [one for one in naive if folder(one) == folder(seen)]
    return next(iter(beside or naive), None)


def _order(made: Conditions) -> tuple:
    return (
        made.device.type == "cpu",
        made.device.name,
        repr(made.versions),
        made.dtype,
        made.mode != "eager",
        made.shape,
        repr(made.steps),
    )


@dataclass(frozen=True)
class Sweep:
    """Groups that differ in the length of the sequence alone."""

    groups: tuple[Group, ...]  # short before long

    @property
    def conditions(self) -> Conditions:
        """What the groups share: no length."""
        return self.groups[0].conditions.at_any_length()

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(one.length for one in self.groups))

    def missing(self, refused: dict[Refused, str]) -> dict[tuple[str, str], dict[int, str | None]]:
        """The lengths at which a variant has no recording, and why if that was seen. Variants that
        ran at no length are among them."""
        mode = self.conditions.mode
        wanted = dict.fromkeys(self.curves) | dict.fromkeys(
            key for key, how, length in refused if how == mode and length
        )
        lengths = sorted(
            {*self.lengths, *(length for _, how, length in refused if how == mode and length)}
        )
        found = {
            key: {
                length: refused.get((key, mode, length))
                for length in lengths
                if length not in self.curves.get(key, {})
            }
            for key in sorted(wanted, key=_place)
        }
        return {key: why for key, why in found.items() if why}

    @cached_property
    def curves(self) -> dict[tuple[str, str], dict[int, Variant]]:
        """Each variant's recordings by length."""
        keys = {variant.key for one in self.groups for variant in one.variants}
        return {
            key: {
                variant.length: variant
                for one in self.groups
                for variant in reversed(one.variants)  # recorded twice: the first counts
                if variant.key == key
            }
            for key in sorted(keys, key=_place)
        }


def sweeps(groups: Iterable[Group]) -> list[Sweep]:
    """Groups by what they share besides the length."""
    found: dict[Conditions, list[Group]] = {}
    for one in groups:
        found.setdefault(one.conditions.at_any_length(), []).append(one)
    return [Sweep(tuple(sorted(same, key=lambda one: one.length))) for same in found.values()]


def exponent(points: Iterable[tuple[float, float | None]]) -> tuple[float, float] | None:
    """k of the best fit y ∝ x^k, and its standard error: the slope of a line through the logarithms
    by least squares. None with fewer than three points, for through two there is always a line."""
    known = [(math.log(x), math.log(y)) for x, y in points if y]
    if len(known) < 3:
        return None
    xs, ys = zip(*known, strict=True)
    power, intercept = linear_regression(xs, ys)
    spread = sum((x - mean(xs)) ** 2 for x in xs)
    off = sum((y - power * x - intercept) ** 2 for x, y in known)
    return power, math.sqrt(off / (len(known) - 2) / spread)
