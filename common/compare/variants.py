"""Recordings side by side: one variant each, grouped so that only equals are compared."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import linear_regression, mean

from ..read.observe import Observation
from ..read.recordings import SAME
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
    naive: Observation | None = None

    @property
    def about(self) -> dict:
        return self.seen.about

    @property
    def key(self) -> tuple[str, str]:
        return self.about["script"], self.about["variant"]

    @property
    def name(self) -> str:
        """Such as "04_c flash"; a script of one variant is known by its title."""
        script, variant = self.key
        return f"{script[:4]} {variant or self.about['title'].removesuffix(' attention')}"

    @property
    def length(self) -> int:
        return self.about["shape"][2]

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
        return operations(self.about["shape"]) / self.ns / 1e3 if self.ns else None

    @property
    def share_of_peak(self) -> float | None:
        """Of what the GPU could do in this dtype; None where that is unknown."""
        peak = peak_tflops(self.about)
        return self.tflops / peak if peak and self.tflops else None

    @property
    def peak_bytes(self) -> int | None:
        return self.about.get("peak_bytes")

    @property
    def published(self) -> Published | None:
        same = all(self.about.get(key) == value for key, value in POST_CONDITIONS.items())
        return POST.get(self.key) if same else None


def operations(shape: Sequence[int]) -> float:
    """Two matmuls of 2·B·H·S²·D each, and of them the half that a causal mask leaves."""
    batch, heads, seq, head_dim = shape
    return 4 * batch * heads * seq**2 * head_dim / 2


def peak_tflops(about: dict) -> float | None:
    return PEAK_TFLOPS.get(about["device"]["name"], {}).get(about["dtype"])


def _time(seen: Observation) -> float | None:
    return seen.gpu_ns if seen.on_gpu else seen.cpu_ns


@dataclass(frozen=True)
class Group:
    """Variants under the same conditions."""

    variants: tuple[Variant, ...]

    @property
    def about(self) -> dict:
        """Shape, dtype, mode, device, versions, steps: the same for all."""
        return {key: self.variants[0].about.get(key) for key in SAME}

    @property
    def on_gpu(self) -> bool:
        return any(variant.seen.on_gpu for variant in self.variants)

    @property
    def twice(self) -> bool:
        """Whether one variant was recorded more than once under these conditions."""
        return len({variant.key for variant in self.variants}) < len(self.variants)


def group(found: Iterable[Observation]) -> list[Group]:
    """In the tutorial's order; eager before compiled, short sequences before long ones."""
    groups: dict[str, list[Observation]] = {}
    for seen in found:
        groups.setdefault(repr([seen.about.get(key) for key in SAME]), []).append(seen)
    made = []
    for members in groups.values():
        naive = [seen for seen in members if _key(seen) == NAIVE]
        members.sort(key=lambda seen: (_place(_key(seen)), str(seen.trace.path)))
        made.append(Group(tuple(Variant(seen, _nearest(seen, naive)) for seen in members)))
    made.sort(key=lambda one: _order(one.about))
    return made


def _key(seen: Observation) -> tuple[str, str]:
    return seen.about["script"], seen.about["variant"]


def _place(key: tuple[str, str]) -> tuple:
    return (TUTORIAL.index(key) if key in TUTORIAL else len(TUTORIAL), key)


def _nearest(seen: Observation, naive: Sequence[Observation]) -> Observation | None:
    """Recorded twice, the one beside it counts."""

    def folder(one: Observation):
        return one.trace.path.resolve().parent.parent

    beside = [one for one in naive if folder(one) == folder(seen)]
    return next(iter(beside or naive), None)


def _order(about: dict) -> tuple:
    device, mode = about["device"], about["mode"]
    return (
        device["type"] == "cpu",
        device["name"],
        repr(about["versions"]),
        about["dtype"],
        mode != "eager",
        mode,
        about["shape"],
        repr(about["steps"]),
    )


@dataclass(frozen=True)
class Sweep:
    """Groups that differ in the length of the sequence alone."""

    groups: tuple[Group, ...]  # short before long

    @property
    def about(self) -> dict:
        """What the groups share: no length."""
        batch, heads, _, head_dim = self.groups[0].about["shape"]
        return {**self.groups[0].about, "shape": [batch, heads, None, head_dim]}

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(one.about["shape"][2] for one in self.groups))

    def missing(self, refused: dict[Refused, str]) -> dict[tuple[str, str], dict[int, str | None]]:
        """The lengths at which a variant has no recording, and why if that was seen. Variants that
        ran at no length are among them."""
        mode = self.about["mode"]
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
    found: dict[str, list[Group]] = {}
    for one in groups:
        found.setdefault(repr(Sweep((one,)).about), []).append(one)
    return [
        Sweep(tuple(sorted(same, key=lambda one: one.about["shape"][2]))) for same in found.values()
    ]


def exponent(points: Iterable[tuple[float, float | None]]) -> tuple[float | None, float | None]:
    """k of the best fit y ∝ x^k, and its standard error: the slope of a line through the logarithms
    by least squares. None with fewer than three points, for through two there is always a line."""
    known = [(math.log(x), math.log(y)) for x, y in points if y]
    if len(known) < 3:
        return None, None
    xs, ys = zip(*known, strict=True)
    power, intercept = linear_regression(xs, ys)
    spread = sum((x - mean(xs)) ** 2 for x in xs)
    off = sum((y - power * x - intercept) ** 2 for x, y in known)
    return power, math.sqrt(off / (len(known) - 2) / spread)
