"""The most of `--json` in a few kilobytes, for a reader who pays by the word: the N most expensive
of each, names cut, and how many were left out."""

from collections.abc import Sequence
from typing import Any

from ..cli import shown
from ..compare.advice import Top, top_of_region, top_of_trace
from ..compare.compared import Compared
from ..compare.rates import Rate, Rates, by_op, gpu_of, rates_of_ops
from ..compare.rows import Difference, Row, differences, rows
from ..read.known import total
from ..read.observe import Observation
from ..read.op_names import chain, said
from ..read.survey import Survey, Total
from ..read.trace import Trace
from .as_json import rate_json, us
from .top import advice
from .warnings import survey_warnings, trust, warnings
from .words import sums, what_ran

LONGEST = 80  # letters of a name
LONGEST_WORDS = 240  # … of a sentence
FEW = 3  # warnings


def short_region(compared: Compared, most: int) -> dict:
    seen = compared.seen
    rates = Rates(seen.steps, seen)
    found = by_op(rates, rows(seen.steps))
    whole = sum(one.ns for one in found)
    steps = [
        {
            "kind": one.row.kind,
            "ran": _cut(what_ran(one.row)),
            "launched_by": _cut(chain(one.row.main.path)),
            "steps": sum(row.count for row in one.rows),
            "us": us(one.ns),
            "share": _share(one.ns, whole),
            **_rate(one.rate),
        }
        for one in found[:most]
    ]
    told, left_out = _warnings(warnings(seen))
    worth = top_of_region(seen)
    top, kinds = _top(worth, most)
    left: dict[str, Any] = {"steps": sum(row.count for one in found[most:] for row in one.rows)}
    left |= {"steps_us": us(sum(one.ns for one in found[most:])), "kinds": kinds}
    left |= {"advice": worth.more + len(worth.advice[most:]), "warnings": left_out}
    return {
        **_head(seen.trace, trust(seen.linked)),
        "region": _cut(seen.region),
        "in_words": _cut(sums(seen), LONGEST_WORDS),
        "gpu_us_per_forward": us(seen.gpu_ns),
        "cpu_us_per_forward": us(seen.cpu_ns),
        **top,
        "steps": steps,
        "warnings": told,
        "left_out": left,
    }


def short_survey(seen: Survey, most: int) -> dict:
    found = top_of_trace(seen.linked, seen.usage)
    rates = rates_of_ops(seen.linked)
    told, warnings_left = _warnings(survey_warnings(seen))
    top, kinds = _top(found, most)
    return {
        **_head(seen.trace, trust(seen.linked)),
        **top,
        "labels": [
            {
                "name": _cut(one.name),
                "count": one.count,
                "cpu_us": us(one.cpu),
                "gpu_us": us(one.gpu),
            }
            for one in seen.labels[:most]
        ],
        "kernels": [_total(one) for one in seen.kernels[:most]],
        "ops": [{**_total(one), "self_cpu_us": us(one.cpu)} for one in seen.ops[:most]],
        "rates": [
            {"op": _cut(said(name)), "count": rate.times, "us": us(rate.work.ns), **_rate(rate)}
            for name, rate in rates[:most]
        ],
        "warnings": told,
        "left_out": {
            "kinds": kinds,
            "advice": found.more + len(found.advice[most:]),
            "labels": len(seen.labels[most:]),
            "kernels_of_the_ten": len(seen.kernels[most:]),
            "ops_of_the_ten": len(seen.ops[most:]),
            "rates": len(rates[most:]),
            "profiler_steps": len(seen.steps),
            "warnings": warnings_left,
        },
    }


def short_difference(a: Observation, b: Observation, most: int) -> dict:
    """The steps that differ most."""
    places: dict[object, list[Difference]] = {}
    for one in differences(a, b):
        places.setdefault(one.key, []).append(one)
    sides = [
        (same[0], len(same), _ns([one.a for one in same]), _ns([one.b for one in same]))
        for same in places.values()
    ]
    sides.sort(key=lambda one: -abs((one[3] or 0) - (one[2] or 0)))
    told = [f"A: {text}" for text in warnings(a)] + [f"B: {text}" for text in warnings(b)]
    shown_warnings, left = _warnings(told)
    return {
        "a": {"file": _cut(shown(a.trace.path)), "in_words": _cut(sums(a), LONGEST_WORDS)},
        "b": {"file": _cut(shown(b.trace.path)), "in_words": _cut(sums(b), LONGEST_WORDS)},
        "a_us": us(a.gpu_ns if a.on_gpu else a.cpu_ns),
        "b_us": us(b.gpu_ns if b.on_gpu else b.cpu_ns),
        "steps": [
            {
                "kind": one.kind,
                "ran": _cut(what_ran(one.row)),
                "places": count,
                "a_us": us(in_a),
                "b_us": us(in_b),
                "only_in": None if one.in_both else "a" if one.a else "b",
            }
            for one, count, in_a, in_b in sides[:most]
        ],
        "warnings": shown_warnings,
        "left_out": {
            "places": sum(count for _, count, _, _ in sides[most:]),
            "a_us": us(sum(in_a or 0 for _, _, in_a, _ in sides[most:])),
            "b_us": us(sum(in_b or 0 for _, _, _, in_b in sides[most:])),
            "warnings": left,
        },
    }


def _ns(side: Sequence[Row | None]) -> float | None:
    """Of the rows that are there; None where none is, or the time of one is unknown."""
    there = [row for row in side if row]
    return total(row.ns for row in there) if there else None


def _head(trace: Trace, doubt: str | None) -> dict[str, Any]:
    gpu = gpu_of(trace)
    return {
        "file": _cut(shown(trace.path)),
        "gpu_name": gpu and _cut(gpu.name),
        "trust": doubt and _cut(doubt, LONGEST_WORDS),
    }


def _top(top: Top, most: int) -> tuple[dict[str, Any], int]:
    """Shares of the GPU's time and advice; and how many kinds are left out."""
    whole, kinds = top.shares.whole, list(top.shares.kinds.items())
    shown_kinds = {kind: _share(ns, whole) for kind, ns in kinds[:most]}
    return {
        "share_of_time": {**shown_kinds, "idle": _share(top.shares.idle, whole)} if whole else None,
        "worth_doing": [_cut(advice(one), LONGEST_WORDS) for one in top.advice[:most]],
    }, len(kinds[most:])


def _warnings(told: Sequence[str]) -> tuple[list[str], int]:
    return [_cut(text, LONGEST_WORDS) for text in told[:FEW]], len(told[FEW:])


def _total(one: Total) -> dict[str, Any]:
    return {"name": _cut(one.name), "count": one.count, "gpu_us": us(one.gpu)}


def _rate(rate: Rate | None) -> dict[str, Any]:
    """Only what is known: unknown is said by what is not there."""
    return {name: value for name, value in rate_json(rate).items() if value is not None}


def _share(ns: float, whole: float) -> float | None:
    return round(ns / whole, 4) if whole else None


def _cut(text: str, longest: int = LONGEST) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
