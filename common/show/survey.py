"""A whole trace, laid out for people: labels, kernels, ops, communication, the GPU's time."""

from collections.abc import Sequence
from statistics import mean

from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from ..cli import shown
from ..compare.advice import top_of_trace
from ..compare.rates import gpu_of, rates_of_ops
from ..read.communication import Moved
from ..read.kernel_names import brief, decode
from ..read.op_names import culprit
from ..read.survey import Survey
from ..read.usage import Usage
from .language import say, word
from .rates import show_op_rates
from .terminal import print_plain
from .top import show_top
from .warnings import survey_warnings, trust
from .words import by_time, duration, percent, plural, time_of_gpu

MOST = 20  # labels of a list
FEW = 8  # culprits, collectives


def show_survey(out: Console, seen: Survey) -> None:
    """Labels, the most expensive kernels and ops, the GPU's time, the warnings."""
    devices = sorted({str(d["name"]) for d in seen.trace.devices if "name" in d})
    print_plain(out, Text(" · ".join([shown(seen.trace.path), *devices]), "bold"))
    if line := trust(seen.linked):
        print_plain(out, Text(say("how far to trust it: {doubt}", doubt=line), "yellow"))
    show_top(out, top_of_trace(seen.linked, seen.usage))
    if seen.steps:
        print_plain(out, Text(_profiler_steps(seen)))
    if seen.labels:
        print_plain(out)
        print_plain(out, _labels(seen))
        if more := seen.labels[MOST:]:
            print_plain(
                out, Text(say("and {labels}", labels=plural(len(more), "more label")), "dim")
            )
    if seen.kernels:
        print_plain(out)
        print_plain(out, _kernels(seen))
    if seen.ops:
        print_plain(out)
        print_plain(out, _ops(seen))
    if rates := rates_of_ops(seen.linked):
        show_op_rates(out, rates, gpu_of(seen.trace))
    if seen.communication:
        print_plain(out)
        print_plain(out, _communication(seen.communication))
    if line := time_of_gpu(seen.usage):
        print_plain(out, Text(f"\n{line}"))
    if seen.usage.idle_by:
        print_plain(out)
        print_plain(out, _idle(seen.usage))
    if seen.labels:
        print_plain(out, Text("\n" + say("--region LABEL looks closer at one")))
    for text in survey_warnings(seen):
        print_plain(out, Text(say("warning: {text}", text=text), "yellow"))


def _table(title: str, *columns: str) -> Table:
    """Of a name, which gives way where there is no room, and of numbers, none of which does."""
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(say(title), max_width=64)
    for name in columns:
        justify: JustifyMethod = "left" if name == "which is" else "right"
        table.add_column(say(name), justify=justify, no_wrap=True)
    return table


def _name(name: str) -> Text:
    return Text(name, no_wrap=True, overflow="ellipsis")


def _profiler_steps(seen: Survey) -> str:
    words = say(
        "{steps}, mean: CPU {time}",
        steps=plural(len(seen.steps), "profiler step"),
        time=duration(mean(step.cpu for step in seen.steps)),
    )
    gpu = [step.gpu for step in seen.steps if step.gpu is not None]
    if seen.trace.gpu and len(gpu) == len(seen.steps):
        words += f", GPU {duration(mean(gpu))}"
    return words


def _labels(seen: Survey) -> Table:
    """GPU time in its parts, as far as there are such: what autograd threads launched, what the
    backward of a label's ops took, and how much of the sum is not elapsed time."""
    on_gpu, listed = bool(seen.trace.gpu), seen.labels[:MOST]
    lent = on_gpu and any(label.others for label in listed)
    overlapping = on_gpu and any(label.busy != label.gpu for label in listed)
    linked = on_gpu and any(label.backward for label in listed)
    heads = ["times", "CPU"] + ["GPU"] * on_gpu + ["own thread", "autograd"] * lent
    heads += ["any running"] * overlapping + ["its backward"] * linked
    table = _table("labels", *heads)

    def row(name: Text, *cells: str) -> None:
        table.add_row(name, *cells, *[""] * (len(heads) - len(cells)))

    for label in listed:
        cells = [f"{label.count:,}", duration(label.cpu)]
        cells += [duration(label.gpu)] * on_gpu
        cells += [duration(label.own), duration(label.others)] * lent
        cells += [duration(label.busy)] * overlapping + [duration(label.backward)] * linked
        row(_name(label.name), *cells)
    if on_gpu and seen.unlabelled != 0:
        row(Text(say("under no label"), "dim"), "", "", duration(seen.unlabelled))
    if linked and seen.unlinked_backward:
        blanks = [""] * (len(heads) - 1)
        words = Text(say("backward of unknown forward"), "dim", no_wrap=True, overflow="ellipsis")
        row(words, *blanks, duration(seen.unlinked_backward))
    return table


def _kernels(seen: Survey) -> Table:
    table = _table("most expensive on the GPU", "which is", "times", "GPU", "share")
    for total in seen.kernels:
        known = seen.usage.work and total.gpu is not None
        share = percent((total.gpu or 0) / seen.usage.work) if known else ""
        kernel = brief(decode(total.name))
        table.add_row(_name(total.name), kernel, f"{total.count:,}", duration(total.gpu), share)
    return table


def _ops(seen: Survey) -> Table:
    on_gpu = bool(seen.trace.gpu)
    table = _table("most expensive ops", "times", "self CPU", *["GPU"] * on_gpu)
    for total in seen.ops:
        cells = [f"{total.count:,}", duration(total.cpu), *[duration(total.gpu)] * on_gpu]
        table.add_row(_name(total.name), *cells)
    return table


def _communication(moved: Sequence[Moved]) -> Table:
    table = _table("communication", "of", "elements", "ranks", "times", "GPU")
    for one in moved[:FEW]:
        told = one.collective
        words = told.name + (f" · {told.group}" if told.group else "")
        elements = told.elements_out if told.elements_in is None else told.elements_in
        table.add_row(
            _name(words),
            told.dtype or say("unknown"),
            say("unknown") if elements is None else f"{elements:,}",
            say("unknown") if told.size is None else f"{told.size:,}",
            f"{one.count:,}",
            duration(one.gpu),
        )
    return table


def _idle(used: Usage) -> Table:
    """What the CPU thread that launched next was in, while the GPU was idle."""
    table = _table("GPU idle, while the CPU was in", "times", "longest", "in all", "of idle")
    culprits = by_time(used)

    def row(name: Text, times: int, longest: int, ns: int) -> None:
        cells = f"{times:,}", duration(longest), duration(ns), percent(ns / used.idle)
        table.add_row(name, *cells)

    for what, stretches in culprits[:FEW]:
        row(_name(culprit(word(what))), stretches.count, stretches.longest, stretches.ns)
    if more := [stretches for _, stretches in culprits[FEW:]]:
        row(
            Text(plural(len(more), "other"), "dim"),
            sum(stretches.count for stretches in more),
            max(stretches.longest for stretches in more),
            sum(stretches.ns for stretches in more),
        )
    return table
