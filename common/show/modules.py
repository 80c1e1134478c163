"""Where in somebody's code the GPU's time comes from: modules, and functions of their own.

In English alone so far, as memory, steps, ranks and the gate are.
"""

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from ..cli import UserError, shown
from ..read.frames import MODULE
from ..read.kernel_names import brief, decode
from ..read.modules import Code, Dear, Folded, Module, folded
from .as_json import us
from .language import in_english
from .terminal import print_plain, show_columns
from .words import duration, percent, plural

MOST = 40  # modules
FEW = 2  # functions that a kernel is launched from
FLAG = "profile(…, with_stack=True)"


@in_english
def show_modules(out: Console, seen: Code) -> None:
    """Raises UserError where neither was recorded."""
    require_code(seen)
    devices = sorted({str(d["name"]) for d in seen.linked.trace.devices if "name" in d})
    print_plain(out, Text(" · ".join([shown(seen.linked.trace.path), *devices]), "bold"))
    if seen.modules:
        if seen.work:
            print_plain(out, _sums(seen))
        print_plain(out)
        _show_tree(out, seen)
    elif seen.linked.trace.stacks:
        print_plain(out, "no torch.nn.Module was called in this recording")
    if seen.dearest:
        print_plain(out)
        _show_dearest(out, seen)
        print_plain(out, Text("\na function's number is the line that it begins in", "dim"))


def require_code(seen: Code) -> None:
    trace = seen.linked.trace
    if not trace.stacks and not trace.frames:
        raise UserError(
            f"{shown(trace.path)}: it does not tell which module or line of code ran; record again "
            f"with {FLAG} (with_modules alone records none of an eager model)"
        )


def _sums(seen: Code) -> str:
    words = f"in modules: forward {duration(seen.forward)}"
    if seen.backward is not None:
        words += f" · backward {duration(seen.backward)}"
    return f"{words} · elsewhere {duration(seen.elsewhere)} of the GPU's {duration(seen.work)}"


def _show_tree(out: Console, seen: Code) -> None:
    on_gpu, linked = bool(seen.linked.trace.gpu), seen.backward is not None
    heads = ["module", "calls", "CPU", *["forward"] * on_gpu, *["backward"] * (on_gpu and linked)]
    heads += ["of GPU"] * bool(seen.work)
    rows, deepest = list(_rows(folded(seen.modules))), 0
    while len([1 for depth, _ in rows if depth <= deepest + 1]) <= MOST and any(
        depth > deepest for depth, _ in rows
    ):
        deepest += 1
    listed = [row for row in rows if row[0] <= deepest][:MOST]
    lines = []
    for depth, one in listed:
        cells = [f"{'  ' * depth}{_named(one)}", f"{one.calls:,}", duration(one.cpu)]
        cells += [duration(one.forward)] * on_gpu + [duration(one.backward)] * (on_gpu and linked)
        if seen.work:
            both = None if one.forward is None else one.forward + (one.backward or 0)
            cells.append("unknown" if both is None else percent(both / seen.work))
        lines.append(cells)
    show_columns(out, heads, lines, {"module"})
    if more := len(rows) - len(listed):
        print_plain(
            out, Text(f"and {plural(more, 'module')} more, further in; --json has all", "dim")
        )


def _rows(modules: Sequence[Folded], depth: int = 0) -> Iterator[tuple[int, Folded]]:
    for one in modules:
        yield depth, one
        yield from _rows(one.inside, depth + 1)


def _named(one: Folded) -> str:
    first = one.modules[0]
    return first.name if len(one.modules) == 1 else f"{first.kind} ×{len(one.modules)}"


def _show_dearest(out: Console, seen: Code) -> None:
    lines = []
    for dear in seen.dearest:
        kernel = brief(decode(dear.kernel.name))
        share = ""
        if seen.work and dear.kernel.gpu is not None:
            share = percent(dear.kernel.gpu / seen.work)
        head = [kernel, duration(dear.kernel.gpu), share]
        for words in _launched_from(dear):
            lines.append([*head, words])
            head = ["", "", ""]
    show_columns(
        out, ["dearest on the GPU", "GPU", "of GPU", "from"], lines, {"dearest on the GPU", "from"}
    )


def _launched_from(dear: Dear) -> list[str]:
    functions, whole = dear.by_frame, dear.kernel.gpu
    if not functions:
        return ["unknown: the launch is not in the file"]

    def share(ns: int | None) -> str:
        known = whole and ns is not None and len(functions) > 1
        return f"  {percent((ns or 0) / whole)}" if known and whole else ""

    words = []
    for frame, backward, ns in functions[:FEW]:
        name = "no function of yours" if frame is None else frame
        words.append(f"{name}{', backward' if backward else ''}{share(ns)}")
    if more := functions[FEW:]:
        times = [ns for _, _, ns in more]
        known = None if None in times else sum(ns or 0 for ns in times)
        words.append(f"{plural(len(more), 'more place')}{share(known)}")
    return words


@in_english
def modules_json(seen: Code, top: int | None = None) -> dict:
    """For programs; `top` leaves out what is inside modules, and all but so many kernels.

    Raises UserError where neither was recorded.
    """
    require_code(seen)
    linked = seen.linked
    return {
        "file": shown(linked.trace.path),
        "forward_gpu_us": us(seen.forward),
        "backward_gpu_us": us(seen.backward),
        "elsewhere_gpu_us": us(seen.elsewhere),
        "gpu_us": us(seen.work) if linked.trace.gpu else None,
        "modules": [_module_json(module, top is None) for module in seen.modules[:top]],
        "kernels": [
            {
                "name": dear.kernel.name,
                "count": dear.kernel.count,
                "gpu_us": us(dear.kernel.gpu),
                "from": [
                    {
                        "function": share.place.frame,
                        "module": share.place.module,
                        "label": share.place.label,
                        "backward": share.place.backward,
                        "count": share.count,
                        "gpu_us": us(share.gpu),
                    }
                    for share in dear.shares[:top]
                ],
            }
            for dear in seen.dearest[:top]
        ],
        **left_out({"modules": (len(seen.modules), top), "kernels": (len(seen.dearest), top)}),
    }


def left_out(lists: dict[str, tuple[int, int | None]]) -> dict:
    """How much of each list `top` left out; nothing where nobody asked for less."""
    asked = {name: most for name, (_, most) in lists.items() if most is not None}
    return (
        {"left_out": {name: max(0, lists[name][0] - most) for name, most in asked.items()}}
        if asked
        else {}
    )


def _module_json(module: Module, deep: bool) -> dict:
    return {
        "module": module.name.removeprefix(MODULE),
        "calls": module.calls,
        "cpu_us": us(module.cpu),
        "forward_gpu_us": us(module.forward),
        "backward_gpu_us": us(module.backward),
        "inside": [_module_json(inner, deep) for inner in module.inside] if deep else None,
    }
