"""The top of a page: what the GPU's time went to, and what is most worth doing about it."""

from textwrap import wrap

from rich.console import Console
from rich.text import Text

from ..compare.advice import (
    Advice,
    Blocked,
    Compiling,
    Copies,
    CudaCoreMatmuls,
    DataLoader,
    Elementwise,
    ExposedCommunication,
    LaunchBound,
    LayoutChanges,
    MathAttention,
    PageableCopies,
    Top,
    UnfusedOptimizer,
)
from ..read.op_names import culprit, said
from ..read.shares import Shares
from .terminal import print_plain
from .words import duration, percent, plural, plural_of

MOST = 7  # kinds of a list
LEAST = 0.01


def show_top(out: Console, top: Top) -> None:
    if not top.shares.whole:
        return
    _print(out, f"GPU time: {shares(top.shares)}", "")
    if top.advice:
        print_plain(out, Text("most worth doing", "bold"))
    for number, one in enumerate(top.advice, 1):
        _print(out, f" {number}  {advice(one)}", " " * 4)
    if top.more:
        print_plain(out, Text(f"    and {plural(top.more, 'other')}, worth less: --json", "dim"))
    print_plain(out)


def _print(out: Console, line: str, indent: str) -> None:
    for part in wrap(line, out.width, subsequent_indent=indent, break_on_hyphens=False):
        print_plain(out, Text(part))


def shares(found: Shares) -> str:
    """matmul 45 % · idle 30 % · …: all of it, the most first."""
    parts = [*found.kinds.items(), ("idle", found.idle)]
    parts.sort(key=lambda one: -one[1])
    large = [one for one in parts if one[1] >= LEAST * found.whole][:MOST]
    words = [f"{kind} {percent(ns / found.whole)}" for kind, ns in large]
    if rest := [one for one in parts if one not in large and one[1]]:
        ns = sum(ns for _, ns in rest)
        words.append(f"{plural(len(rest), 'other kind')} {percent(ns / found.whole)}")
    return " · ".join(words)


def advice(one: Advice) -> str:
    """What is so, with its figures; and what to do."""
    share = percent(one.share)
    match one:
        case LaunchBound(_, idle, launches, mean, culprit_):
            words = f"{percent(idle)} idle, {share} launch-bound: {_count(launches, 'launch')}, "
            words += f"{duration(mean)} of work each"
            if culprit_:
                words += f", the CPU most in {culprit(culprit_)}"
            return f"{words} → CUDA graphs, torch.compile, or more work a launch"
        case DataLoader(_, count, longest):
            words = f"{share} idle for the data loader, {_count(count, 'time')}, "
            return f"{words}{duration(longest)} at the longest → more workers, prefetching"
        case Compiling(_, count):
            return f"{share} idle while code was compiled, {_count(count, 'time')} → warm up longer"
        case Blocked(_, count, call, items):
            words = f"{share} idle behind {call}, {_count(count, 'time')}"
            if items:
                words += f"; {_count(items, 'value')} fetched by .item() or its like"
            return f"{words} → fetch results later, or less often"
        case PageableCopies(_, count, to_device):
            where, what = (
                ("to", "pin_memory and non_blocking") if to_device else ("from", "less of it")
            )
            return f"{share} in {_count(count, 'copy')} {where} the GPU of unpinned memory → {what}"
        case UnfusedOptimizer(_, name, launches, foreach):
            how = "list by list (foreach)" if foreach else "tensor by tensor"
            return f"{name} runs unfused, {how}: {share}, {_count(launches, 'kernel')} → fused=True"
        case CudaCoreMatmuls(_, count):
            return (
                f"fp32 matmuls on CUDA cores: {share}, {_count(count, 'kernel')} → bf16, or "
                'torch.set_float32_matmul_precision("high")'
            )
        case MathAttention(_, count, by_hand, masked):
            how = "written out" if by_hand else "SDPA's math backend"
            scores = "scores and mask" if masked else "scores"
            words = f"attention is math, {how}: {share}, {_count(count, 'call')}, {scores}"
            return f"{words} materialised → a fused SDPA backend"
        case LayoutChanges(_, count):
            words = f"layouts changed around convolutions: {share}, {_count(count, 'kernel')}"
            return f"{words} → channels_last"
        case Copies(_, count, ops):
            asked = f", most by {' and '.join(map(said, ops))}" if ops else ""
            return (
                f"copies on the GPU: {share}, {_count(count, 'copy')}{asked} → in place, or views"
            )
        case Elementwise(_, count):
            return (
                f"elementwise steps, each reading and writing all: {share}, "
                f"{_count(count, 'kernel')} → torch.compile fuses neighbours"
            )
        case ExposedCommunication(_, of_it):
            return f"communication that nothing hides: {share}, {percent(of_it)} of it → overlap it"


def _count(count: int, word: str) -> str:
    return f"{count:,} {word if count == 1 else plural_of(word)}"
