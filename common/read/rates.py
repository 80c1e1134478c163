"""What the steps of a forward compute and move: by their ops' shapes, or by the recording's own.

A step's work is that of the innermost op around its launch of which a formula is known. Where one
op launches several kernels (a memset before a matmul, the change of a layout before a convolution)
the longest stands for it. Our own recordings tell the shape of q, k and v, but not of every op:
there the five lines of naive attention are told apart by their kinds, and an attention kernel that
does it all is known by its own.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..story import Story
from .kernel_names import decode
from .kinds import CALLS_OTHERS, MAY_USE_TENSOR_CORES
from .linked import Linked
from .observe import Op, Step
from .trace import Span
from .ways import Event, Ways, events
from .work import Work, has_formula, work_of, work_of_copy

Works = Mapping[int, Work]  # by a step's id


def works(steps: Sequence[Step], story: Story | None) -> dict[int, Work]:
    """Of the steps of one forward whose work is known; a step that others stand for is not here."""
    by_op: dict[int, list[Step]] = defaultdict(list)
    ops: dict[int, Op] = {}
    found: dict[int, Work] = {}
    seen: dict[int, Op | None] = {}
    for step in steps:
        if step.gpu and step.gpu.sort != "kernel":
            if work := work_of_copy(step.gpu):
                found[id(step)] = work
        elif op := _worker(step.op, seen):
            by_op[id(op)].append(step)
            ops[id(op)] = op
    for key, its in by_op.items():
        if work := work_of(ops[key].name, ops[key].shapes):
            found[id(max(its, key=lambda step: step.ns or 0))] = work
    if story and not any(step.op and step.op.shapes for step in steps):
        found |= _by_story(steps, story)
    return found


def siblings(steps: Sequence[Step], known: Works) -> set[int]:
    """Steps, by id, that others of their op stand for."""
    seen: dict[int, Op | None] = {}
    workers = {id(step.op): _worker(step.op, seen) for step in steps}
    standing = {
        id(op)
        for step in steps
        if id(step) in known and step.sort in ("kernel", "op") and (op := workers[id(step.op)])
    }
    return {
        id(step)
        for step in steps
        if id(step) not in known and (op := workers[id(step.op)]) and id(op) in standing
    }


def _worker(op: Op | None, seen: dict[int, Op | None]) -> Op | None:
    """`seen` keeps what was found for each op on the way: they can be nested without end."""
    innermost, way = op, []
    while op and id(op) not in seen and not has_formula(op.name):
        way.append(id(op))
        op = op.above
    if op and id(op) in seen:
        op = seen[id(op)]
    seen.update(dict.fromkeys(way, op))
    # An op that only calls others is not what a kernel under another op did.
    return op if op is innermost or (op and op.name not in CALLS_OTHERS) else None


# ── Our own recordings ────────────────────────────────────────────────────────────────────────────

SIZES = {"bf16": 2, "fp16": 2, "fp32": 4}
NAIVE = ("04_a_naive_attention", "04_b_inplace_ops_attention")


def _by_story(steps: Sequence[Step], story: Story) -> dict[int, Work]:
    batch, heads, seq, width = story.shape
    size, dtype = SIZES[story.dtype], story.dtype
    scores, one = batch * heads * seq * seq, batch * heads * seq * width  # elements
    product = Work(2 * scores * width, (2 * one + scores) * size, dtype)
    over_scores = {
        "mul": Work(scores, 2 * scores * size, dtype),
        "mask": Work(scores, 2 * scores * size + seq * seq, dtype),  # the mask is of bytes
        "softmax": Work(5 * scores, 2 * scores * size, dtype),
        "copy": Work(0, 2 * scores * size, dtype),
    }
    pairs = batch * heads * seq * (seq + 1) // 2
    attention = Work(4 * pairs * width, 4 * one * size, dtype)
    found = {}
    kernels = [step for step in steps if step.sort != "memset"]
    if [step.kind for step in kernels] == ["attention"]:
        found[id(kernels[0])] = attention
    elif story.script in NAIVE and not story.compiled:
        for step in kernels:
            if step.kind == "matmul":
                found[id(step)] = product
            elif step.kind in over_scores:
                found[id(step)] = over_scores[step.kind]
    return found


@dataclass(frozen=True, slots=True)
class Sum:
    """The work and the time of several steps."""

    flop: float | None
    bytes: float | None
    ns: float
    dtype: str | None  # that all compute with
    memory: bool  # whether all bytes are the GPU's own


def summed(steps: Iterable[Step], known: Works, others: set[int]) -> Sum | None:
    """Of steps each of whose work and time is known; None where one's is not, memsets apart."""
    flop: float | None = 0
    moved: float | None = 0
    ns: float = 0
    dtypes = set()
    memory = working = False
    for step in steps:
        if step.ns is None:
            return None
        ns += step.ns
        work = known.get(id(step))
        if work is None:
            if step.kind == "memset" or id(step) in others:
                continue
            return None
        if step.kind == "memset" and step.gpu:
            moved = None if moved is None or work.bytes is None else moved + work.bytes
            memory = True
            continue
        working = True
        flop = None if flop is None or work.flop is None else flop + work.flop
        moved = None if moved is None or work.bytes is None else moved + work.bytes
        dtypes.add(work.dtype)
        memory = memory or work.memory
        if not work.memory:
            memory = False
    if not ns or not (working or moved):
        return None
    return Sum(flop, moved, ns, dtypes.pop() if len(dtypes) == 1 else None, memory)


# ── A whole trace ─────────────────────────────────────────────────────────────────────────────────


@dataclass(slots=True)
class OpWork:
    """What all runs of an op did on the GPU, with what they launched there."""

    name: str
    runs: int = 0
    flop: float | None = 0
    bytes: float | None = 0
    ns: int = 0
    dtypes: set[str | None] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)
    cores: set[bool | None] = field(default_factory=set)  # of kernels that may use Tensor Cores


def works_of_ops(linked: Linked) -> list[OpWork]:
    """Of each op with a formula and recorded shapes; those that took longest first. Runs without a
    known work are left out, with their time."""
    if not any(op.shapes for op in linked.trace.ops):
        return []
    found: dict[str, OpWork] = {}
    run: tuple | None = None
    for one in sorted(_with_worker(linked), key=_run):
        thread, index, span, event = one
        work = work_of(span.name, span.shapes)
        if work is None:
            continue
        its = found.get(span.name) or found.setdefault(span.name, OpWork(span.name))
        its.ns += event.event.duration or 0
        its.kinds.add(event.kind)
        if event.event.sort == "kernel" and event.kind in MAY_USE_TENSOR_CORES:
            its.cores.add(decode(event.event.name).tensor_cores)
        if run != (thread, index):
            run = thread, index
            its.runs += 1
            its.flop = None if its.flop is None or work.flop is None else its.flop + work.flop
            its.bytes = None if its.bytes is None or work.bytes is None else its.bytes + work.bytes
            its.dtypes.add(work.dtype)
    return sorted(found.values(), key=lambda one: (-one.ns, one.name))


def _run(one: tuple[int, int, Span, Event]) -> tuple[int, int]:
    return one[0], one[1]


def _with_worker(linked: Linked) -> Iterator[tuple[int, int, Span, Event]]:
    """Kernels with the op whose work theirs is: (thread's number, op's index, op, kernel)."""
    threads = {thread: number for number, thread in enumerate(linked.lanes.ops)}
    workers: dict[tuple[int, int], int] = {}
    for event in events(linked, Ways()):
        if event.op < 0 or event.thread is None or event.event.sort != "kernel":
            continue
        spans = linked.lanes.ops[event.thread]
        number = threads[event.thread]
        key = number, event.op
        if (index := workers.get(key)) is None:
            index = event.op
            while index >= 0 and not has_formula(spans.spans[index].name):
                index = spans.parents[index]
            if index != event.op and index >= 0 and spans.spans[index].name in CALLS_OTHERS:
                index = -1
            workers[key] = index
        if index >= 0:
            yield number, index, spans.spans[index], event
