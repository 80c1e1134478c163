"""A forward opened, on a page: what the CPU called, what ran, an arrow from each launch to it."""

from ..read.kernel_names import brief
from ..read.observe import Forward, Observation, Step
from ..read.op_names import chain, said
from .html import axis, on_bar, row, text
from .language import say
from .words import microseconds

DEEPEST = 5  # rows of ops below one another; what stands deeper is not drawn


def opened(seen: Observation, forward: Forward) -> str:
    """Both lanes on one axis, and the steps one by one."""
    items = "".join(map(_step, forward.steps))
    return f'{_lanes(seen, forward)}<ol class="steps" role="list">{items}</ol>'


def _lanes(seen: Observation, forward: Forward) -> str:
    """Nothing where it is not known what stood when: the arrows would be wrong."""
    events = [
        (step, step.on_gpu.launch, step.on_gpu.event.start, ns)
        for step in forward.steps
        if step.on_gpu and step.on_gpu.event.start is not None and (ns := step.ns) is not None
    ]
    if not events or len(events) < len(forward.steps):
        return ""
    if seen.linked.skew is not None:
        return f'<p class="note">{text(say("The clocks of CPU and GPU disagree: no arrows."))}</p>'
    start = forward.span.start
    width = max(forward.span.end or 0, *(at + ns for _, _, at, ns in events)) - start

    def place(at: int, ns: float) -> str:
        return f"left:{100 * (at - start) / width:.3f}%;width:{100 * ns / width:.3f}%"

    ops = [op for op in forward.ops if op.depth < DEEPEST]
    rows = 1 + max((op.depth for op in ops), default=-1)
    bars = [
        f'<li style="{place(op.start, op.end - op.start)};top:{op.depth * 1.25:g}rem">'
        f"{on_bar(said(op.name))}</li>"
        for op in ops
    ]
    calls = [
        f'<li class="call" style="{place(call.start, call.duration or 0)}"></li>'
        for _, call, _, _ in events
    ]
    lines, heads = [], []
    for _, call, at, _ in events:
        whence, whither = (100 * (moment - start) / width for moment in (call.start, at))
        lines.append(f'<path d="M{whence:.3f} 0L{whither:.3f} 1"/>')
        heads.append(f'<i style="left:{whither:.3f}%"></i>')
    work = [
        f'<li class="{row(step.kind)}" style="{place(at, ns)}">{on_bar(step.kind)}</li>'
        for step, _, at, ns in events
    ]
    return (
        f'<div class="both"><p>{text(say("CPU: ops, and the calls that launch"))}</p>'
        f'<ol class="cpu" aria-hidden="true" style="height:{rows * 1.25 + 0.9:g}rem">'
        f"{''.join(bars)}{''.join(calls)}</ol>"
        '<div class="arrows" aria-hidden="true"><svg viewBox="0 0 100 1" '
        f'preserveAspectRatio="none">{"".join(lines)}</svg>{"".join(heads)}</div>'
        f'<ol class="lane" aria-hidden="true">{"".join(work)}</ol><p>GPU</p>{axis(width)}</div>'
    )


def _step(step: Step) -> str:
    ours = brief(step.kernel) if step.kernel else ""
    ops = chain(step.path) if step.path and step.gpu else ""
    launched = " · ".join(filter(None, (ops, step.call)))
    return (
        f'<li><i class="{row(step.kind)}"></i><strong>{text(step.kind)} · '
        f"{text(microseconds(step.ns))}</strong> {text(ours)}"
        + (f"<small>{text(say('launched by {ops}', ops=launched))}</small>" if launched else "")
        + f"<code>{text(step.name)}</code></li>"
    )
