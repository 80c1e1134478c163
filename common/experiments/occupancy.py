"""occupancy: why the profiler says 0 % for kernels that run well. Because of how they are launched,
or of the shared memory they take?"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from ..read.observe import OnGpu, Step, device_of
from ..read.occupancy import DEFAULT_SHARED_MEMORY, kineto_estimate
from ..show.as_json import step_json
from ..show.words import plural
from . import Asked, Recipe, Recorded, Result, sdpa, sdpa_subject


@dataclass(frozen=True)
class Footprint:
    """The main kernel of a recording."""

    file: str
    name: str
    step: Step
    launched: OnGpu
    limit: int  # bytes of shared memory of a block that has not opted in to more
    opted_in: int | None  # the profiler's estimate, computed with the limit that was opted in to

    @property
    def reported(self) -> float | None:
        return self.launched.event.reported_occupancy

    @property
    def over(self) -> bool | None:
        return None if self.shared_memory is None else self.shared_memory > self.limit

    @property
    def call(self) -> str:
        return self.launched.launch.name

    @property
    def shared_memory(self) -> int | None:
        return self.launched.event.shared_memory


def read(seen: Sequence[Recorded]) -> Result:
    rows = sorted((_footprint(s) for s in seen), key=lambda row: row.shared_memory or 0)
    lines = []
    for row in rows:
        gpu, fits = row.launched.event, row.launched.residency
        threads = prod(gpu.block) if gpu.block else None
        lines.append(
            [
                row.name,
                row.call,
                f"{_count(gpu.registers)}×{_count(threads)}",
                _count(gpu.shared_memory),
                _percent(row.reported),
                _percent(row.opted_in),
                f"{fits.warps}/{fits.max_warps}" if fits else "unknown",
                _limits(fits.limits) if fits else "unknown",
            ]
        )
    heads = (
        "kernel,\nhead_dim", "launched by", "registers\n×threads", "shared\nbytes",
        "profiler\nsays", "with true\nlimit", "warps\nthat fit", "limited by",
    )  # fmt: skip
    found = [
        {
            "recording": row.name,
            "file": row.file,
            **step_json(row.step),
            "occupancy_with_opt_in_limit_pct": row.opted_in,
        }
        for row in rows
    ]
    return Result(heads, lines, found, _why_zero(rows))


def _count(number: int | None) -> str:
    return "unknown" if number is None else f"{number:,}"


def _percent(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.0f} %"


def _limits(names: Sequence[str]) -> str:
    if set(names) == {"registers", "shared memory"}:
        return "both"
    return ", ".join(name.removesuffix(" memory") for name in names)


def _footprint(one: Recorded) -> Footprint:
    one.require_gpu()
    seen, story = one.seen, one.story
    kernels = [(s, s.on_gpu) for s in seen.steps if s.on_gpu and s.sort == "kernel"]
    step, launched = max(kernels, key=lambda one: one[0].ns or 0)
    device, gpu = device_of(seen.trace), launched.event
    return Footprint(
        file=one.file,
        name=f"{story.variant} {story.shape[3]}",
        step=step,
        launched=launched,
        limit=device.default_shared_memory if device else DEFAULT_SHARED_MEMORY,
        opted_in=kineto_estimate(
            device, gpu.registers, gpu.shared_memory, gpu.grid, gpu.block, opt_in=True
        ),
    )


def _why_zero(rows: Sequence[Footprint]) -> list[str]:
    """What tells the kernels that read 0 % from the others: shared memory, or the launch call?"""
    told = [row for row in rows if row.reported is not None and row.over is not None]
    zero = [row for row in told if row.reported == 0]
    others = [row for row in told if row.reported != 0]
    if not zero or not others:
        what = "no kernel reads" if not zero else "every kernel reads"
        return [f"Nothing to compare: {what} 0 %."]
    limit = zero[0].limit
    odd = [row for row in zero if not row.over] + [row for row in others if row.over]
    if odd:
        first = odd[0]
        said = [
            f"Shared memory does not decide: {first.name} takes {_count(first.shared_memory)} "
            f"bytes a block and reads {_percent(first.reported)}."
        ]
    else:
        said = [
            f"Shared memory decides: above {limit:,} bytes a block the profiler says 0 % "
            f"({plural(len(zero), 'kernel')}), up to that it does not "
            f"({plural(len(others), 'kernel')})."
        ]
    both = {row.call for row in zero} & {row.call for row in others}
    if both:
        call = min(both)
        examples = [next(r for r in rows_ if r.call == call) for rows_ in (zero, others)]
        said.append(
            f"The launch call does not: {call} launched {examples[0].name}, which reads 0 %, and "
            f"{examples[1].name}, which reads {_percent(examples[1].reported)}."
        )
    else:
        said.append(
            "The launch call may decide as well: no call launched kernels of both sorts. These "
            "recordings cannot tell."
        )
    return said


def recipes(asked: Asked) -> list[Recipe]:
    from .. import scripts

    script = scripts.load("04_d_kernels_attention")
    subject = script.lesson(script.Options()).subject
    small = partial(script.triton_attention, tiles=script.TILES[-1])
    work, wide = asked.work, replace(asked.work, head_dim=2 * asked.work.head_dim)
    fused = sdpa_subject(None)
    return [
        Recipe("flash", work, sdpa, fused, "flash"),
        Recipe("flash", wide, sdpa, fused, "flash"),
        Recipe("cudnn", work, sdpa, fused, "cudnn"),
        Recipe("triton", work, script.triton_attention, subject),
        Recipe("triton-small", work, small, replace(subject, configuration=None)),
    ]
