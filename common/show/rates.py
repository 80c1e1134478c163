"""Rates in words: what bounds a step, how near it is, and what takes longest at which rate."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ..compare.rates import Gpu, OpRate, Rate, Rates, by_op
from ..compare.rows import Row
from ..read.op_names import said
from .terminal import print_lines, print_plain
from .words import digits, duration, percent, plural, repeats, tflops, what_ran

MOST = 6  # rows of the table
MOST_OPS = 6


def bound_by(rate: Rate | None) -> str:
    """memory 88 %; cache or doubtful where it is above the peak; empty where it is unknown."""
    if rate is None or rate.bound is None or rate.share is None:
        return ""
    if rate.bound in ("cache", "doubtful"):
        return rate.bound
    return f"{rate.bound} {percent(rate.share)}"


def show_rates(out: Console, rates: Rates, rows: Sequence[Row]) -> None:
    """What takes longest in a forward, at which rates."""
    found = by_op(rates, rows)
    known = sum(one.rate is not None for one in found[MOST:])
    _show(out, HEADS, step_lines(found[:MOST]), len(found) - MOST, known)
    _explain(out, [one.rate for one in found if one.rate], rates.gpu)


def step_lines(found: Sequence[OpRate]) -> list[list[str]]:
    """For HEADS and RATES."""
    return [
        [
            one.row.kind + repeats(one.row),
            what_ran(one.row),
            f"{sum(row.count for row in one.rows):,}",
            duration(one.ns),
            *_cells(one.rate),
        ]
        for one in found
    ]


def show_op_rates(out: Console, found: Sequence[tuple[str, Rate]], gpu: Gpu | None) -> None:
    """The ops of a whole trace that take longest, at which rates."""
    more = len(found) - MOST_OPS
    _show(out, OP_HEADS, op_lines(found[:MOST_OPS]), more, more)
    _explain(out, [rate for _, rate in found], gpu)


def op_lines(found: Sequence[tuple[str, Rate]]) -> list[list[str]]:
    """For OP_HEADS and RATES."""
    return [
        [said(name), f"{rate.times:,}", duration(rate.work.ns), *_cells(rate)]
        for name, rate in found
    ]


HEADS = ["rates", "by", "times", "total"]
OP_HEADS = ["rates, by op", "times", "GPU"]
RATES = ["GFLOP", "MB", "TFLOP/s", "TB/s"]


def _show(
    out: Console, heads: Sequence[str], lines: Sequence[Sequence[str]], more: int, known: int
) -> None:
    print_plain(out)
    first = 1 + (heads[1] == "by")
    numbers = [*heads[first:], *RATES]
    print_lines(out, [*heads, *RATES, "bound by"], lines, numbers, (heads[first - 1],))
    if more > 0:
        words = f"and {plural(more, 'other')}" + ("" if known == more else f"; of {known} known")
        print_plain(out, Text(words, "dim"))


def _cells(rate: Rate | None) -> list[str]:
    """GFLOP, MB, TFLOP/s, TB/s, bound by."""
    if rate is None:
        return ["", "", "", "", "unknown"]
    return [
        _amount(rate.work.flop, 1e9),
        _amount(rate.work.bytes, 1e6),
        tflops(rate.tflops) if rate.tflops else "",
        "" if rate.tbs is None else tflops(rate.tbs),
        bound_by(rate),
    ]


def _explain(out: Console, found: Sequence[Rate], gpu: Gpu | None) -> None:
    """What the shares are of, and why any is above the peak."""
    for line in notes(found, gpu):
        print_plain(out, Text(line))


def notes(found: Sequence[Rate], gpu: Gpu | None) -> list[str]:
    return [peaks(gpu), *doubts(found, gpu)]


def _amount(number: float | None, unit: float) -> str:
    if number is None:
        return ""
    return "0" if not number else digits(number / unit) if number >= unit / 100 else "<0.01"


def in_a_line(rates: Rates, rows: Sequence[Row]) -> str:
    """Of a forward of few steps: 3.6 matmul, 4.2 mul … of 4.8 TB/s."""
    bounds: dict[str, list[str]] = {"memory": [], "compute": [], "cache": []}
    for row in rows:
        rate = rates.of([row])
        if rate and rate.bound in bounds:
            number = rate.tflops if rate.bound == "compute" else rate.tbs
            bounds[rate.bound].append(f"{row.kind} {tflops(number or 0)}")
    gpu, parts = rates.gpu, []
    if bounds["memory"] and gpu and gpu.tbs:
        parts.append(f"{', '.join(bounds['memory'])} of {gpu.tbs:g} TB/s")
    if bounds["cache"] and gpu and gpu.tbs:
        parts.append(f"{', '.join(bounds['cache'])} TB/s, above the memory's: out of the L2 cache")
    if bounds["compute"]:
        peaks = {r.peak_tflops for row in rows if (r := rates.of([row])) and r.bound == "compute"}
        of = " or ".join(f"{peak:g}" for peak in sorted(p for p in peaks if p))
        parts.append(f"{', '.join(bounds['compute'])} of {of} TFLOP/s")
    return f"rates: {' · '.join(parts)}" if parts else ""


def peaks(gpu: Gpu | None) -> str:
    """What the shares are of."""
    if gpu is None or gpu.tbs is None:
        of = gpu.name if gpu else "what it ran on"
        return f"what bounds a step is unknown: the peaks of {of} are not known here"
    known = [f"{gpu.tflops(d):g} TFLOP/s in {d}" for d in ("bf16", "tf32", "fp32") if gpu.tflops(d)]
    return f"peaks of {gpu.name} by its data sheet: {', '.join(known)}; {gpu.tbs:g} TB/s"


def doubts(found: Sequence[Rate], gpu: Gpu | None) -> list[str]:
    """Why a rate is above the peak."""
    bounds = {rate.bound for rate in found}
    lines = []
    if "cache" in bounds and gpu and gpu.cache:
        lines.append(
            "cache: faster than the memory, so out of the L2 cache, which holds "
            f"{gpu.cache >> 20} MiB"
        )
    if "doubtful" in bounds:
        lines.append(
            "doubtful: faster than the GPU's peak, so the shapes do not tell what was computed or "
            "moved"
        )
    return lines
