"""Recordings side by side: everything at a glance, sweeps, experiments."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from ..cli import shown
from ..compare.facts import POST_GPU
from ..compare.variants import Group, Refused, Sweep, Variant, exponent, peak_tflops
from ..compare.worth import worth_seeing
from ..read.observe import Observation
from .language import say
from .terminal import print_plain, show_table
from .words import conditions, duration, mebibytes, percent, ratio, tflops
from .worth import in_words

Measure: TypeAlias = Callable[[Variant], float | None]

USEFUL_WORK = (
    "TFLOP/s count the useful work, 4·B·H·S²·D/2: the half that the causal mask leaves, though "
    "some variants compute the whole square."
)
RECORDED_CPU = (
    "CPU: of recorded forwards. Recording costs CPU time too, not the same for each: this is no "
    "order of what they cost unrecorded."
)


def show_groups(out: Console, groups: Sequence[Group], more: Sequence[int] = ()) -> None:
    """A table for each set of equal conditions: a line of numbers and a lesson for each variant.
    `more` are lengths of which there are recordings too."""
    for number, one in enumerate(groups):
        print_plain(out, Text(f"{chr(10) if number else ''}{conditions(one.conditions)}", "bold"))
        show_table(
            out, *glance_table(one), [in_words(worth_seeing(variant)) for variant in one.variants]
        )
    print_plain(out)
    for line in footnote(groups):
        print_plain(out, Text(line))
    if more:
        print_plain(out, Text(more_lengths(more)))


def more_lengths(more: Sequence[int]) -> str:
    lengths = ",".join(map(str, more))
    if not more:
        return ""
    return say("Also recorded, at other lengths: --sweep {lengths} shows them.", lengths=lengths)


def glance_table(one: Group) -> tuple[list[str], list[list[str]]]:
    """Heads, and for each variant its cells; columns that nobody could fill are left out."""
    peak = peak_tflops(one.conditions)
    columns = {say("variant"): [_named(variant, one) for variant in one.variants]}
    if one.on_gpu:
        columns[say("kernels\n+ copies\n+ memsets")] = [
            _events(variant.seen) for variant in one.variants
        ]
        columns["GPU"] = [duration(variant.seen.gpu_ns) for variant in one.variants]
    else:
        columns[say("working\nops")] = [str(len(variant.seen.steps)) for variant in one.variants]
    columns["CPU"] = [duration(v.seen.cpu_ns, v.seen.cpu_spread_ns) for v in one.variants]
    columns[say("÷ naive")] = [ratio(variant.ratio) for variant in one.variants]
    columns["TFLOP/s"] = [tflops(variant.tflops) for variant in one.variants]
    if one.on_gpu:
        columns[say("of\npeak")] = [
            say("unknown") if peak is None or v.share_of_peak is None else percent(v.share_of_peak)
            for v in one.variants
        ]
        columns[say("peak\nMiB")] = [mebibytes(variant.peak_bytes) for variant in one.variants]
    if any(variant.published for variant in one.variants):
        columns[say("the post:\nevents, GPU")] = [_published(variant) for variant in one.variants]
    return list(columns), [list(line) for line in zip(*columns.values(), strict=True)]


def _named(variant: Variant, one: Group) -> str:
    folder = variant.seen.trace.path.parent.parent
    return f"{variant.name} ({shown(folder)})" if one.twice else variant.name


def _events(seen: Observation) -> str:
    counts = [seen.per_forward(sort) for sort in ("kernel", "copy", "memset")]
    if None in counts:
        return say("unknown")
    return " + ".join("/".join(map(str, c)) if isinstance(c, list) else str(c) for c in counts)


def _published(variant: Variant) -> str:
    """Its GPU events and their time, as far as the post gives them."""
    told = variant.published
    if told is None:
        return ""
    return f"{told.gpu_events} · {duration(told.gpu_us * 1e3) if told.gpu_us else '–'}"


def footnote(groups: Sequence[Group]) -> list[str]:
    """What the columns count."""
    said = [
        say("÷ naive: time over naive's in the same table; GPU time where there is a GPU."),
        say(USEFUL_WORK),
        say(RECORDED_CPU),
    ]
    on_gpus = [one.conditions for one in groups if one.on_gpu]
    peaks = {
        (made.device.name, made.dtype): peak for made in on_gpus if (peak := peak_tflops(made))
    }
    for (gpu, dtype), peak in peaks.items():
        said.append(
            say(
                "Peak of {gpu}: {peak} TFLOP/s {dtype} (CUDA cores), by NVIDIA's data sheet."
                if dtype == "fp32"
                else "Peak of {gpu}: {peak} TFLOP/s {dtype} (Tensor Cores, dense), by NVIDIA's "
                "data sheet.",
                gpu=gpu,
                peak=f"{peak:g}",
                dtype=dtype,
            )
        )
    if any(variant.published for one in groups for variant in one.variants):
        said.append(
            say(
                "The post: what it published for an {gpu} and other versions; its events are "
                "kernels and copies, no memsets.",
                gpu=POST_GPU,
            )
        )
    if on_gpus:
        said.append(say("Peak MiB: memory of a forward at its peak, over its inputs."))
    return said


def show_sweeps(out: Console, measured: Sequence[Sweep], refused: dict[Refused, str]) -> None:
    """Time and memory against the length of the sequence, and how fast they grow."""
    for one in measured:
        for title, heads, lines in sweep_tables(one):
            print_plain(out, Text(f"\n{title} · {conditions(one.conditions)}", "bold"))
            show_table(out, heads, lines)
        for line in missing(one, refused):
            print_plain(out, Text(line))
    if measured:
        print_plain(
            out,
            Text("\n" + say("growth: the k of seq^k that fits best, and its standard error.")),
        )


def sweep_tables(one: Sweep) -> list[tuple[str, list[str], list[list[str]]]]:
    """Title, heads and lines of time and, where it is known, of memory."""
    on_gpu = one.groups[0].on_gpu
    time = say("GPU time of a forward" if on_gpu else "CPU time of a forward")
    measures: list[tuple[str, Measure, Callable[[float | None], str]]] = [
        (time, lambda variant: variant.ns, duration)
    ]
    if on_gpu:
        measures.append(
            (say("peak memory over the inputs, MiB"), lambda variant: variant.peak_bytes, mebibytes)
        )
    return [
        (
            title,
            [say("variant"), *map(str, one.lengths), say("growth")],
            [
                [
                    next(iter(curve.values())).name,
                    *(words(value(curve[x])) if x in curve else "–" for x in one.lengths),
                    growth([(x, value(variant)) for x, variant in curve.items()]),
                ]
                for curve in one.curves.values()
            ],
        )
        for title, value, words in measures
    ]


def growth(points: Sequence[tuple[int, float | None]]) -> str:
    if (fit := exponent(points)) is None:
        return say("unknown")
    power, error = fit
    return f"seq^{power:.2f}" + (f" ± {error:.2f}" if error >= 0.005 else "")


def missing(one: Sweep, refused: dict[Refused, str]) -> list[str]:
    """Why there is no figure, for each variant that has a gap."""
    said = []
    for (script, variant), gaps in one.missing(refused).items():
        whys = [why for why in gaps.values() if why]
        lengths = ", ".join(map(str, gaps))
        name = f"{script[:4]} {variant}".strip()
        why = whys[0] if whys else say("no recording")
        said.append(say("{variant} at {lengths}: {why}", variant=name, lengths=lengths, why=why))
    return said


def show_experiment(
    out: Console,
    title: str,
    heads: Sequence[str],
    lines: Sequence[Sequence[str]],
    conclusions: Sequence[str],
) -> None:
    print_plain(out, Text(f"{title}\n", "bold"))
    show_table(out, heads, lines)
    for sentence in conclusions:
        print_plain(out, Text(f"\n{sentence}"))
