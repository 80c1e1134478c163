"""The profiler's steps beside each other, and what differs in one that is out of line."""

from rich.console import Console
from rich.text import Text

from ..cli import UserError, shown
from ..read.kernel_names import brief, decode
from ..read.op_names import culprit
from ..read.steps import Change, Outlier, Spread, Steps
from .as_json import us
from .language import in_english
from .modules import left_out
from .terminal import print_plain, show_columns
from .words import duration, plural

MOST = 24  # steps of a table
FEW = 4  # changes of one step
FLAG = "profile(…, schedule=…) and profiler.step() after each step"
BY = {"cpu": "CPU", "gpu": "GPU"}


def require_steps(seen: Steps) -> None:
    if not seen.steps:
        raise UserError(
            f"{shown(seen.linked.trace.path)}: no step of the profiler's schedule is in it; record "
            f"with {FLAG}"
        )


@in_english
def show_steps(out: Console, seen: Steps) -> None:
    """Raises UserError where there is none."""
    require_steps(seen)
    devices = sorted({str(d["name"]) for d in seen.linked.trace.devices if "name" in d})
    print_plain(out, Text(" · ".join([shown(seen.linked.trace.path), *devices]), "bold"))
    print_plain(out)
    on_gpu = bool(seen.linked.trace.gpu)
    odd = {outlier.step.name for outlier in seen.outliers}
    listed = [step for number, step in enumerate(seen.steps) if number < MOST or step.name in odd]
    lines = [
        [
            step.number,
            duration(step.cpu),
            *[duration(step.gpu), duration(step.idle)] * on_gpu,
            "out of line" if step.name in odd else "",
        ]
        for step in listed
    ]
    spreads = [seen.cpu, *[seen.gpu, seen.idle] * on_gpu]
    lines += [
        ["median", *(duration(one.median if one else None) for one in spreads), ""],
        ["half within", *(_within(one) for one in spreads), ""],
    ]
    heads = ["step", "CPU", *["GPU work", "GPU idle"] * on_gpu, ""]
    show_columns(out, heads, lines, {"step", ""})
    if more := len(seen.steps) - len(listed):
        print_plain(out, Text(f"and {plural(more, 'more step')} like these", "dim"))
    for outlier in seen.outliers:
        print_plain(out)
        _show_outlier(out, outlier)


def _within(spread: Spread | None) -> str:
    return "unknown" if spread is None else f"± {duration(spread.distance)}"


def _show_outlier(out: Console, outlier: Outlier) -> None:
    more = "more" if outlier.more > 0 else "less"
    print_plain(
        out,
        f"step {outlier.step.number}: {duration(abs(outlier.more))} {more} {BY[outlier.by]} time "
        "than the median of the others",
    )
    lines = [
        [f"  {_what(one)}", signed(one.more), duration(one.here), duration(one.usual)]
        for one in outlier.changes[:FEW]
    ]
    if lines:
        show_columns(out, ["  in it", "more", "here", "usually"], lines, {"  in it"})
    else:
        print_plain(out, "  no label, kernel or idle time explains a tenth of it")


def _what(one: Change) -> str:
    if one.what == "idle":
        return f"GPU idle, CPU in: {culprit(one.name)}"
    return f"kernel {brief(decode(one.name))}" if one.what == "kernel" else f"label {one.name}"


def signed(ns: float) -> str:
    return f"{'−' if ns < 0 else '+'}{duration(abs(ns))}"


@in_english
def steps_json(seen: Steps, top: int | None = None) -> dict:
    """For programs. Raises UserError where there is no step."""
    require_steps(seen)
    on_gpu = bool(seen.linked.trace.gpu)

    def spread(one: Spread | None) -> dict | None:
        return (
            None
            if one is None
            else {
                "median_us": us(one.median),
                "half_within_us": us(one.distance),
                "least_us": us(one.least),
                "most_us": us(one.most),
            }
        )

    return {
        "file": shown(seen.linked.trace.path),
        "steps": [
            {
                "name": step.name,
                "cpu_us": us(step.cpu),
                "gpu_us": us(step.gpu) if on_gpu else None,
                "gpu_busy_us": us(step.busy) if on_gpu else None,
                "gpu_idle_us": us(step.idle) if on_gpu else None,
            }
            for step in seen.steps[:top]
        ],
        "cpu": spread(seen.cpu),
        "gpu": spread(seen.gpu) if on_gpu else None,
        "gpu_idle": spread(seen.idle) if on_gpu else None,
        "outliers": [
            {
                "step": outlier.step.name,
                "by": outlier.by,
                "more_us": us(outlier.more),
                "changes": [
                    {
                        "what": one.what,
                        "name": one.name,
                        "here_us": us(one.here),
                        "usual_us": us(one.usual),
                        "more_us": us(one.more),
                    }
                    for one in outlier.changes[:top]
                ],
            }
            for outlier in seen.outliers[:top]
        ],
        **left_out({"steps": (len(seen.steps), top), "outliers": (len(seen.outliers), top)}),
    }
