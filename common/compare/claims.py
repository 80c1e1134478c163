"""Claims: sentences about a trace, and the questions that decide them.

A question is a function from Evidence to an Answer, or makes one from the names it is about. Each
reads the trace; none knows the answer.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal, Protocol, TypeAlias

from ..read.kernel_names import describe
from ..read.known import known
from ..read.observe import Observation, OnGpu, Step
from ..read.op_names import chain, said
from ..story import Story
from .facts import PEAK_TBS

Verdict: TypeAlias = Literal["yes", "no", "not visible"]


@dataclass(frozen=True, slots=True)
class Answer:
    verdict: Verdict
    evidence: str  # what the trace shows


class Others(Protocol):
    """Observations of the same workload made on the same device, by (script, variant)."""

    def get(self, key: tuple[str, str], /) -> Observation | None: ...


@dataclass(frozen=True)
class Evidence:
    """The observation in question, and what it may be compared with."""

    seen: Observation
    others: Others

    def steps(self, kind: str) -> tuple[Step, ...]:
        return self.seen.of(kind)

    def on_gpu(self, kind: str) -> list[OnGpu]:
        return [step.on_gpu for step in self.steps(kind) if step.on_gpu]


Question: TypeAlias = Callable[[Evidence], Answer]


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence about a trace and the question that decides it."""

    sentence: str
    check: Question
    of_gpu: bool = True  # a recording of the CPU alone cannot answer it
    otherwise: str = ""  # what a "no" teaches


@dataclass(frozen=True)
class Expectation:
    """What someone would honestly expect before looking, and what to look for.

    `reasons` explain kinds that come unguessed ("+copy") or do not come ("-mask").
    """

    guess: str
    claims: tuple[Claim, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


Answered: TypeAlias = tuple[tuple[Claim, Answer], ...]


def answer(claims: Iterable[Claim], evidence: Evidence) -> Answered:
    def ask(claim: Claim) -> Answer:
        if not evidence.seen.forwards:
            return not_visible("no finished forward in this trace")
        if claim.of_gpu and not evidence.seen.on_gpu:
            return not_visible("recorded without a GPU; --replay reads a recording of one")
        return claim.check(evidence)

    return tuple((claim, ask(claim)) for claim in claims)


def yes_if(condition: Any, evidence: str) -> Answer:
    return Answer("yes" if condition else "no", evidence)


def not_visible(why: str) -> Answer:
    return Answer("not visible", why)


# ── The questions ─────────────────────────────────────────────────────────────────────────────────

NO_GPU = "this trace has no GPU lane"
NO_FOOTPRINT = "the trace does not tell the launch's footprint"
NO_STEP = "no step in this trace"


def _absent(kind: str, evidence: Evidence) -> Answer:
    return not_visible(f"no {kind} kernel" if evidence.seen.on_gpu else NO_GPU)


def _uncertain(evidence: Evidence) -> Answer | None:
    """What was not recorded can be neither counted nor said not to be there."""
    if evidence.seen.on_gpu and (missing := evidence.seen.missing):
        return not_visible(f"the GPU work of {missing} launches is not in the trace")
    return None


def _chain(step: Step) -> str:
    return chain(step.path)


def comes_from(kind: str, op: str) -> Question:
    """Is there work of this kind, and is all of it launched under this op?"""

    def check(evidence: Evidence) -> Answer:
        steps = evidence.steps(kind)
        if not evidence.seen.steps:
            return not_visible(NO_STEP)
        if not steps:
            return _uncertain(evidence) or yes_if(False, f"no {kind} in this trace")
        odd = [step for step in steps if not step.under(op)]
        return yes_if(not odd, "; ".join(dict.fromkeys(map(_chain, odd or steps))))

    return check


def has_no(kind: str) -> Question:
    def check(evidence: Evidence) -> Answer:
        steps = evidence.steps(kind)
        if not evidence.seen.steps:
            return not_visible(NO_STEP)
        if not steps and (uncertain := _uncertain(evidence)):
            return uncertain
        return yes_if(
            not steps,
            "; ".join(map(_chain, steps))
            or f"no {kind} among " + " ".join(step.kind for step in evidence.seen.steps),
        )

    return check


def count_of(sort: str, expected: int) -> Question:
    """Does a forward have exactly so many kernels (copies, memsets) or, by kind, steps?"""

    def check(evidence: Evidence) -> Answer:
        if not evidence.seen.on_gpu:
            return not_visible(NO_GPU)
        if uncertain := _uncertain(evidence):
            return uncertain
        counts = {forward.count(sort) for forward in evidence.seen.forwards}
        return yes_if(counts == {expected}, " or ".join(map(str, sorted(counts))) + " a forward")

    return check


def on_tensor_cores(kind: str, expected: bool = True) -> Question:
    """Do the kernels of this kind use the Tensor Cores, as far as their names tell?"""

    def check(evidence: Evidence) -> Answer:
        kernels = [step.kernel for step in evidence.steps(kind) if step.kernel]
        if not kernels:
            return _absent(kind, evidence)
        told = {kernel.tensor_cores for kernel in kernels}
        words = "; ".join(dict.fromkeys(map(describe, kernels)))
        return not_visible(words) if None in told else yes_if(told == {expected}, words)

    return check


def computed_in(kind: str, dtype: str) -> Question:
    """Do the kernels of this kind read elements of this type?"""

    def check(evidence: Evidence) -> Answer:
        kernels = [step.kernel for step in evidence.steps(kind) if step.kernel]
        if not kernels:
            return _absent(kind, evidence)
        types = known(kernel.dtype_in for kernel in kernels)
        if types is None:
            return not_visible("the kernel's name does not tell")
        return yes_if(set(types) == {dtype}, f"{kind} reads {', '.join(dict.fromkeys(types))}")

    return check


def runs_ops(*names: str) -> Question:
    """Does every forward run all of these CPU ops?"""

    def check(evidence: Evidence) -> Answer:
        counts = [Counter(op.name for op in forward.ops) for forward in evidence.seen.forwards]
        missing = [name for name in names if not all(count[name] for count in counts)]
        if missing:
            return yes_if(False, f"no {', '.join(missing)}")
        seen = counts[0] if counts else Counter()
        return yes_if(counts, ", ".join(f"{name} ×{seen[name]}" for name in names) + " a forward")

    return check


def op_count(name: str, expected: int) -> Question:
    """Does every forward run this CPU op exactly so often?"""

    def check(evidence: Evidence) -> Answer:
        counts = {sum(op.name == name for op in f.ops) for f in evidence.seen.forwards}
        return yes_if(
            counts == {expected}, f"{' or '.join(map(str, sorted(counts)))} {name} a forward"
        )

    return check


def forwards_alike(evidence: Evidence) -> Answer:
    """Did every forward launch the same work? Tuning or compiling would stand in the first."""
    seen = evidence.seen
    if not seen.on_gpu:
        return not_visible(NO_GPU)
    if len(seen.forwards) < 2:
        return not_visible("one forward alone")
    counts = sorted({len(forward.steps) for forward in seen.forwards})
    return yes_if(
        seen.alike,
        f"{' or '.join(map(str, counts))} on the GPU in each of {len(seen.forwards)} forwards",
    )


def one_kernel(kind: str) -> Question:
    """Is a forward's only kernel one of this kind? A memset beside it is no kernel."""

    def check(evidence: Evidence) -> Answer:
        if not evidence.seen.on_gpu:
            return not_visible(NO_GPU)
        if uncertain := _uncertain(evidence):
            return uncertain
        kernels = [step for step in evidence.seen.steps if step.sort == "kernel"]
        if len(kernels) == 1 and kernels[0].kind == kind and (name := kernels[0].kernel):
            return yes_if(True, describe(name))
        kinds = " ".join(step.kind for step in kernels)
        return yes_if(False, f"{len(kernels)} kernels: {kinds}")

    return check


def launched_by(kind: str, call: str) -> Question:
    def check(evidence: Evidence) -> Answer:
        calls = {step.call for step in evidence.steps(kind) if step.call}
        if not calls:
            return _absent(kind, evidence)
        return yes_if(calls == {call}, ", ".join(sorted(calls)))

    return check


def residency_below(kind: str, percent: float) -> Question:
    """Do the kernels of this kind keep fewer warps on an SM than this share of what it can hold?"""

    def check(evidence: Evidence) -> Answer:
        work = evidence.on_gpu(kind)
        resident = known(one.residency for one in work)
        if not resident:
            return not_visible(NO_FOOTPRINT)
        return yes_if(
            all(fits.percent < percent for fits in resident),
            "; ".join(dict.fromkeys(map(footprint, work))),
        )

    return check


def reported_zero(kind: str) -> Question:
    """Does the profiler report 0 % for kernels that do run with warps resident?"""

    def check(evidence: Evidence) -> Answer:
        work = evidence.on_gpu(kind)
        told = [one for one in work if one.event.reported_occupancy is not None]
        if not told:
            return not_visible("no occupancy in this trace")
        zero = [one for one in told if one.event.reported_occupancy == 0]
        if not all(one.residency for one in zero):
            return not_visible(NO_FOOTPRINT)
        return yes_if(len(zero) == len(told), "; ".join(dict.fromkeys(map(footprint, told))))

    return check


def zero_explained_by_shared_memory(kind: str) -> Question:
    """Where the profiler reads 0 %: does the block need more shared memory than the default?"""

    def check(evidence: Evidence) -> Answer:
        zero = [one for one in evidence.on_gpu(kind) if one.event.reported_occupancy == 0]
        if not zero:
            return not_visible("no 0 % here")
        why = {one.zero_reason for one in zero}
        sizes = {one.event.shared_memory for one in zero}
        needs = ", ".join(sorted(f"{size:,} B" for size in sizes if size is not None))
        return yes_if(
            why == {"shared memory over default limit"},
            f"{needs} of shared memory a block; the estimate allows 49,152 B",
        )

    return check


def footprint(one: OnGpu) -> str:
    """Such as: 255 registers × 128 threads, 49,152 B shared: 2 blocks, 8 of 64 warps an SM …"""
    gpu, fits = one.event, one.residency
    threads = prod(gpu.block) if gpu.block else "unknown"
    registers = "unknown" if gpu.registers is None else gpu.registers
    shared = "unknown" if gpu.shared_memory is None else f"{gpu.shared_memory:,} B"
    words = f"{registers} registers × {threads} threads, {shared} shared"
    if fits:
        words += (
            f": {fits.blocks} block{'s' * (fits.blocks != 1)}, {fits.warps} of "
            f"{fits.max_warps} warps an SM ({fits.percent:.3g} %), "
            f"limited by {' and '.join(fits.limits)}"
        )
    if gpu.reported_occupancy is not None:
        words += f"; the profiler says {gpu.reported_occupancy:.0f} %"
    return words


NAIVE = "04_a_naive_attention"  # what the others are compared with


def fewer_ops_than(script: str, here: str, there: str) -> Question:
    """Does op `here` take fewer CPU ops than op `there` takes in the other script's recording?"""

    def check(evidence: Evidence) -> Answer:
        other = evidence.others.get((script, ""))
        if other is None:
            return not_visible(f"run {script} with the same options first")
        ours, theirs = ops_inside(evidence.seen, here), ops_inside(other, there)
        if not ours or not theirs:
            return not_visible(f"no {here if not ours else there} in the recording")
        return yes_if(
            len(ours) < len(theirs),
            f"{len(ours)} ({_short(ours)}) against {len(theirs)} ({_short(theirs)})",
        )

    return check


fewer_mask_ops = fewer_ops_than(NAIVE, "aten::masked_fill_", "aten::masked_fill")


def ops_inside(seen: Observation, name: str) -> list[str]:
    """The op and all that it calls, in the first forward."""
    for index, op in enumerate(seen.ops):
        if op.name == name:
            inside = [op.name]
            for below in seen.ops[index + 1 :]:
                if below.depth <= op.depth:
                    break
                inside.append(below.name)
            return inside
    return []


def _short(names: list[str]) -> str:
    return " ".join(map(said, names))


def fused_together(*words: str) -> Question:
    """Is there one compiled kernel whose name holds all of these ops?"""

    def check(evidence: Evidence) -> Answer:
        compiled = [s.name for s in evidence.seen.steps if s.kernel and "Triton" in s.kernel.family]
        whole = [name for name in compiled if all(word in name for word in words)]
        return yes_if(whole, ", ".join(whole or compiled) or "no compiled kernel")

    return check


def peak_below(script: str) -> Question:
    """Is a forward's peak memory below that of the other script?"""

    def check(evidence: Evidence) -> Answer:
        other = evidence.others.get((script, ""))
        if other is None:
            return not_visible(f"run {script} with the same options first")
        mine, theirs = map(_peak, (evidence.seen, other))
        if mine is None or theirs is None:
            return not_visible("this device keeps no count of its memory")
        return yes_if(mine < theirs, f"+{mine / 2**20:,.0f} MiB against +{theirs / 2**20:,.0f} MiB")

    return check


peak_below_naive = peak_below(NAIVE)


def _peak(seen: Observation) -> int | None:
    return seen.story.peak_bytes if seen.story else None


def score_matrix_in_memory(evidence: Evidence) -> Answer:
    """Does a forward's peak memory reach the size of the score matrix?"""
    return _scores(evidence, stored=True)


def no_score_matrix(evidence: Evidence) -> Answer:
    """Does a forward's peak memory stay below the size of the score matrix?"""
    return _scores(evidence, stored=False)


def _scores(evidence: Evidence, stored: bool) -> Answer:
    story = evidence.seen.story
    if story is None or story.peak_bytes is None:
        return not_visible("this device keeps no count of its memory")
    peak, scores = story.peak_bytes, score_bytes(story)
    return yes_if(
        (peak >= scores) == stored,
        f"peak +{peak / 2**20:,.0f} MiB over the inputs; the scores alone "
        f"would be {scores / 2**20:,.0f} MiB",
    )


def score_bytes(story: Story) -> int:
    """Bytes of the score matrix of all heads, in the inputs' type."""
    batch, heads, seq, _ = story.shape
    return batch * heads * seq**2 * (4 if story.dtype == "fp32" else 2)


NEAR = 0.75  # of the memory's rate: a copy does not reach all of it either


def at_memory_rate(*kinds: str) -> Question:
    """Do these, which each read the scores once and write them once, run at the memory's rate?"""

    def check(evidence: Evidence) -> Answer:
        story = evidence.seen.story
        steps = {kind: evidence.steps(kind) for kind in kinds}
        if missing := [kind for kind, its in steps.items() if len(its) != 1]:
            return not_visible(f"not one {' and one '.join(missing)} in this trace")
        times = known(step.ns for (step,) in steps.values())
        if story is None or not times or not all(times):
            return not_visible("the trace does not tell the bytes, or the time")
        rates = [2 * score_bytes(story) / ns / 1e3 for ns in times]  # TB/s
        peak = PEAK_TBS.get(story.device.name)
        words = ", ".join(f"{kind} {rate:.2f}" for kind, rate in zip(kinds, rates, strict=True))
        if peak is None:
            return not_visible(f"{words} TB/s; what this GPU's memory can do is unknown here")
        shares = ", ".join(f"{100 * rate / peak:.0f} %" for rate in rates)
        return yes_if(
            min(rates) >= NEAR * peak, f"{words} TB/s: {shares} of the data sheet's {peak:g}"
        )

    return check


def backend_ran(*expected: str) -> Question:
    """Did this backend run, or one of these? Read from the ops, not from the flags."""

    def check(evidence: Evidence) -> Answer:
        ran = evidence.seen.backend
        if ran is None:
            return not_visible("no SDPA op of a backend in this trace")
        return yes_if(ran in expected, f"{ran} ran")

    return check
