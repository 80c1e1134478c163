"""The same values for programs: microseconds, null for unknown. See docs/json.md."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from ..cli import shown, visible
from ..compare.advice import Top, top_of_region, top_of_trace
from ..compare.compared import Compared, compare
from ..compare.facts import POST_GPU
from ..compare.graphs import eager_steps, has_graph
from ..compare.loops import Folded, Line, Repeat, folded
from ..compare.rates import Rate, Rates, by_op, rates_of_ops
from ..compare.rows import Row, differences, rows
from ..compare.variants import Group, Refused, Sweep, Variant, exponent, peak_tflops
from ..compare.worth import worth_seeing
from ..read.kernel_names import decode
from ..read.observe import Observation, Step
from ..read.survey import Survey, Total
from ..read.usage import Usage
from ..story import as_builtins
from .language import in_english
from .top import advice
from .warnings import survey_warnings, trust, warnings
from .words import by_time
from .worth import in_words

MOST_OPS = 200  # on the way to a step
PARTS = 1 << 14  # of JSON that are printed at once


def print_json(found: dict) -> None:
    # JSON's own escapes are what `visible` writes: no name can write to a terminal. A part at a
    # time: as one text it may take far more memory than what it says.
    parts = json.JSONEncoder(indent=2, ensure_ascii=False, allow_nan=False).iterencode(found)
    while text := "".join(islice(parts, PARTS)):
        print("\n".join(visible(line, None) for line in text.split("\n")), end="")
    print()


@in_english
def as_json(compared: Compared) -> dict:
    """One object for a program: numbers in microseconds, null for unknown."""
    seen = compared.seen
    kernels = [event for event in seen.trace.gpu if event.sort == "kernel"]
    steps = [step for forward in seen.forwards for step in forward.steps]
    found = {
        "file": shown(seen.trace.path),
        "about": as_builtins(seen.story) if seen.story else None,
        "region": seen.region,
        "regions": len(seen.forwards) + seen.unfinished + seen.untimed,
        "trust": trust(seen.linked),
        "unfinished_regions": seen.unfinished,
        "profiler_steps": seen.trace.profiler_steps,
        "kernels_per_forward": seen.per_forward("kernel"),
        "copies_per_forward": seen.per_forward("copy"),
        "memsets_per_forward": seen.per_forward("memset"),
        "launches_per_forward": seen.launches_per_forward,
        "cuda_us_per_forward": us(seen.gpu_ns),
        "cuda_sum_us": us(seen.gpu_sum_ns),
        "gpu_busy_us": us(seen.gpu_busy_ns),
        "gpu_own_us": us(seen.gpu_own_ns),
        "gpu_other_threads_us": us(seen.gpu_others_ns),
        "gpu": None if seen.undecided_calls else usage_json(seen.usage),
        "gpu_over_recording": usage_json(seen.usage_of_recording),
        "other_threads_gpu_events": seen.elsewhere,
        "processes": seen.processes,
        "captured_launches": seen.captured,
        "lost_launches": sum(forward.lost for forward in seen.forwards),
        "undecided_gpu_events": len(seen.undecided),
        "cpu_us_per_forward": us(seen.cpu_ns),
        "unlinked_kernels": seen.unlinked_kernels,
        "total_kernels": len(kernels),
        "timed_kernels": sum(event.duration is not None for event in kernels),
        "distinct_kernels": len({step.name for step in steps if step.sort == "kernel"})
        if not seen.undecided_calls
        else None,
        "streams": sorted({step.gpu.stream for step in steps if step.gpu}, key=str)
        if not seen.undecided_calls
        else None,
        **top_json(top_of_region(seen)),
        "steps": _steps_json(seen, seen.steps, [forward.steps for forward in seen.forwards]),
        "other_threads_steps": _steps_json(
            seen, seen.other_steps, [forward.others for forward in seen.forwards]
        ),
        "loops": _parts_json(folded(rows(seen.steps))),
        "rates": _rates_json(seen),
        "warnings": warnings(seen),
    }
    if compared.guessed:
        found["guess"] = [
            {"guess": pair.guess, "seen": pair.row.kind if pair.row else None}
            for pair in compared.pairs
            for _ in range(pair.words if pair.guess else 1)
        ]
    if score := compared.score:
        found["guess_score"] = {
            "right": score.right,
            "rows": score.rows,
            "out_of_order": list(score.out_of_order),
            "missed": list(score.missed),
            "invented": list(score.invented),
        }
    if compared.answers:
        found["claims"] = [
            {"claim": claim.sentence, "verdict": answer.verdict, "evidence": answer.evidence}
            for claim, answer in compared.answers
        ]
    return found


def _steps_json(
    seen: Observation, mean: Sequence[Step], of_each: Sequence[Sequence[Step]]
) -> list[dict]:
    if seen.alike:
        rates = Rates(mean, seen)
        return [step_json(step, rates) for step in mean]
    found = []
    for number, steps in enumerate(of_each):
        rates = Rates(steps, seen)
        found += [{"forward": number, **step_json(step, rates)} for step in steps]
    return found


def top_json(top: Top) -> dict:
    """What the GPU's time went to, and what is worth doing; null where no time is known."""
    whole = top.shares.whole
    kinds = {**top.shares.kinds, "idle": top.shares.idle}
    return {
        "time_by_kind": {kind: us(ns) for kind, ns in kinds.items()} if whole else None,
        "advice": [
            {
                "what": _snake(type(one).__name__),
                **{
                    name.replace("_ns", "_us"): _figure(name, value)
                    for name, value in asdict(one).items()
                },
                "words": advice(one),
            }
            for one in top.advice
        ],
        "advice_left_out": top.more,
    }


def _figure(name: str, value: Any) -> Any:
    if name.endswith("_ns"):
        return us(value)
    return _rounded(value) if isinstance(value, float) else value


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def rate_json(rate: Rate | None) -> dict:
    """Of a step or an op: unknown without shapes."""
    return {
        "flop": rate and _whole(rate.work.flop),
        "bytes": rate and _whole(rate.work.bytes),
        "tflops": rate and _rounded(rate.tflops),
        "tbs": rate and _rounded(rate.tbs),
        "bound_by": rate and rate.bound,
        "share_of_peak": rate and _rounded(rate.share),
    }


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)


def _rounded(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.4g}")


def _rates_json(seen: Observation) -> list[dict]:
    rates = Rates(seen.steps, seen)
    if not rates.by_shapes:
        return []
    return [
        {
            "kind": one.row.kind,
            "name": one.row.main.name,
            "ops": list(one.row.main.path),
            "count": sum(row.count for row in one.rows),
            "us": us(one.ns),
            **rate_json(one.rate),
        }
        for one in by_op(rates, rows(seen.steps))
    ]


def _parts_json(parts: Iterable[Folded[Row]]) -> list[dict]:
    """A forward's rows with their loops folded."""
    found: list[dict] = []
    for part in parts:
        if isinstance(part, Line):
            first = part.first
            found.append(
                {
                    "kind": first.kind,
                    "name": first.main.name,
                    "ops": list(first.main.path),
                    "rows": len(part.rows),
                    "steps": part.count,
                    "us": us(part.ns),
                }
            )
        elif isinstance(part, Repeat):
            found.append(
                {
                    "turns": list(part.counts),
                    "us": us(part.ns),
                    "body": _parts_json(part.body),
                    "deviations": [
                        {"after": after, "body": _parts_json(deviating)}
                        for after, deviating in part.deviations
                    ],
                }
            )
    return found


def _ops(step: Step) -> list[str | None]:
    """Their names from the outermost on; of a nest without end those nearest the launch, behind a
    null for the others: each of a million launches may lie in a million of ops."""
    trail = step.op.trail if step.op else None
    names: list[str | None] = []
    depth = step.op.depth + 1 if step.op else 0
    while trail is not None and len(names) < min(depth, MOST_OPS):
        names.append(trail.name)
        trail = trail.above
    if depth > MOST_OPS:
        names.append(None)
    return names[::-1]


def step_json(step: Step, rates: Rates | None = None) -> dict:
    gpu, kernel, fits = step.gpu, step.kernel, step.residency
    return {
        "kind": step.kind,
        "name": step.name,
        "family": kernel.family if kernel else None,
        "tensor_cores": kernel.tensor_cores if kernel else None,
        "ops": _ops(step),
        "launch": step.call,
        "us": us(step.ns),
        "grid": list(gpu.grid) if gpu and gpu.grid else None,
        "block": list(gpu.block) if gpu and gpu.block else None,
        "registers": gpu.registers if gpu else None,
        "shared_memory": gpu.shared_memory if gpu else None,
        "occupancy_reported_pct": gpu.reported_occupancy if gpu else None,
        "occupancy_pct": round(fits.percent, 2) if fits else None,
        "occupancy_limit": " and ".join(fits.limits) if fits else None,
        "occupancy_zero_reason": step.zero_reason,
        **(rate_json(rates.of([Row(step.kind, (step,))])) if rates else {}),
    }


def us(ns: float | None) -> float | None:
    return None if ns is None else round(ns / 1e3, 3)


def usage_json(used: Usage) -> dict | None:
    if not used.events:
        return None
    return {
        "span_us": us(used.span),
        "busy_us": us(used.busy),
        "idle_us": us(used.idle),
        "idle_launch_bound_us": us(used.launch_bound),
        "idle_waiting_us": us(used.waiting),
        "idle_unknown_us": us(used.idle_unknown),
        "work_us": us(used.work),
        "tensor_cores_us": us(used.tensor_cores) if used.cores_known else None,
        "idle_by": [
            {
                "what": what,
                "us": us(stretches.ns),
                "count": stretches.count,
                "longest_us": us(stretches.longest),
            }
            for what, stretches in by_time(used)
        ],
        "cores_unknown_us": us(used.cores_unknown),
        "copies_us": us(used.copies),
        "communication_us": us(used.communication),
        "communication_exposed_us": us(used.exposed),
        "communication_overlapped_us": us(used.overlapped),
    }


@in_english
def survey_json(seen: Survey) -> dict:
    on_gpu = bool(seen.trace.gpu)

    def each(totals: Sequence[Total], cpu: str = "", kernels: bool = False) -> list[dict]:
        return [
            {
                "name": total.name,
                "count": total.count,
                **({cpu: us(total.cpu)} if cpu else {}),
                "gpu_us": us(total.gpu) if on_gpu else None,
                **({"family": decode(total.name).family} if kernels else {}),
            }
            for total in totals
        ]

    return {
        "file": shown(seen.trace.path),
        "trust": trust(seen.linked),
        "steps": [
            {"name": step.name, "cpu_us": us(step.cpu), "gpu_us": us(step.gpu) if on_gpu else None}
            for step in seen.steps
        ],
        "labels": [
            {
                "name": label.name,
                "count": label.count,
                "cpu_us": us(label.cpu),
                "gpu_us": us(label.gpu) if on_gpu else None,
                "gpu_own_us": us(label.own) if on_gpu else None,
                "gpu_other_threads_us": us(label.others) if on_gpu else None,
                "gpu_busy_us": us(label.busy) if on_gpu else None,
                "backward_gpu_us": us(label.backward) if on_gpu else None,
            }
            for label in seen.labels
        ],
        **top_json(top_of_trace(seen.linked, seen.usage)),
        "unlabelled_gpu_us": us(seen.unlabelled) if on_gpu else None,
        "backward_unlinked_gpu_us": us(seen.unlinked_backward) if on_gpu else None,
        "kernels": each(seen.kernels, kernels=True),
        "ops": each(seen.ops, "self_cpu_us"),
        "rates": [
            {"name": name, "count": rate.times, "gpu_us": us(rate.work.ns), **rate_json(rate)}
            for name, rate in rates_of_ops(seen.linked)
        ],
        "communication": [
            {
                "collective": moved.collective.name,
                "dtype": moved.collective.dtype,
                "elements_in": moved.collective.elements_in,
                "elements_out": moved.collective.elements_out,
                "group": moved.collective.group,
                "group_size": moved.collective.size,
                "ranks": moved.collective.ranks,
                "count": moved.count,
                "gpu_us": us(moved.gpu),
            }
            for moved in seen.communication
        ],
        "gpu": usage_json(seen.usage),
        "warnings": survey_warnings(seen),
    }


@in_english
def difference_json(a: Observation, b: Observation) -> dict:
    sides = {"a": as_json(compare(a)), "b": as_json(compare(b))}
    for name, graph, eager in (("a", a, b), ("b", b, a)):
        if has_graph(graph) and not has_graph(eager) and graph.alike:
            for step, same in zip(sides[name]["steps"], eager_steps(graph, eager), strict=True):
                step["eager_ops"] = list(same.path) if same else None
    return {
        **sides,
        "steps": [
            {
                "kind": one.row.kind,
                "a_us": us(one.a.ns) if one.a else None,
                "b_us": us(one.b.ns) if one.b else None,
                "only_in": None if one.in_both else "a" if one.a else "b",
            }
            for one in differences(a, b)
        ],
    }


@in_english
def glance_json(
    groups: Sequence[Group], measured: Sequence[Sweep], refused: dict[Refused, str]
) -> dict:
    return {
        "operations": "4*B*H*S^2*D/2",
        "published_gpu": POST_GPU,
        "groups": [
            {
                **as_builtins(one.conditions),
                "peak_tflops": peak_tflops(one.conditions),
                "variants": [_variant_json(variant) for variant in one.variants],
            }
            for one in groups
        ],
        "growth": [
            {
                **as_builtins(one.conditions),
                "seq": list(one.lengths),
                "variants": [
                    {
                        "script": script,
                        "variant": variant,
                        "time": _power([(x, v.ns) for x, v in curve.items()]),
                        "peak_memory": _power([(x, v.peak_bytes) for x, v in curve.items()]),
                    }
                    for (script, variant), curve in one.curves.items()
                ],
            }
            for one in measured
        ],
        "not_recorded": [
            {"script": script, "variant": variant, "mode": mode, "seq": length, "why": why}
            for ((script, variant), mode, length), why in refused.items()
        ],
    }


def _power(points: Sequence[tuple[int, float | None]]) -> float | None:
    fit = exponent(points)
    return fit and fit[0]


def _variant_json(variant: Variant) -> dict:
    seen, told = variant.seen, variant.published
    return {
        "script": variant.key[0],
        "variant": variant.key[1],
        "file": shown(seen.trace.path),
        "kernels_per_forward": seen.per_forward("kernel"),
        "copies_per_forward": seen.per_forward("copy"),
        "memsets_per_forward": seen.per_forward("memset"),
        "cuda_us_per_forward": us(seen.gpu_ns),
        "cpu_us_per_forward": us(seen.cpu_ns),
        "cpu_us_spread": us(seen.cpu_spread_ns),
        "ratio_to_naive": variant.ratio,
        "tflops": variant.tflops,
        "share_of_peak": variant.share_of_peak,
        "peak_bytes": variant.peak_bytes,
        "lesson": in_words(worth_seeing(variant)),
        "published": told
        and {"gpu_events": told.gpu_events, "cuda_us": told.gpu_us, "cpu_us": told.cpu_us},
        "warnings": warnings(seen),
    }
