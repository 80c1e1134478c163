"""Trace file → regions, CPU ops, launch calls and GPU events. The only parser.

It knows what PyTorch's profiler (Kineto) writes: Chrome trace JSON, plain or gzip, told apart by
content. Times become whole nanoseconds: through floats where they are exact, else through decimals,
for microseconds since 1970 with three decimals do not fit a float.

A file longer than a block is decoded in pieces (pieces.py), and only what is work is kept: a
quarter of the memory of a whole decode. A fault is found in its piece and placed in the file
(faults.py).

Files of several ranks are put together one behind the other. They count their correlation ids each
for itself, so a GPU event is told which process launched it: the one whose part of the file it
stands in. Where no metadata parts them, or they are mixed, by sorting say, it is unknown. A file in
order of time is taken for sorted: the profiler writes none, and then metadata parts nothing.

    cat               what it is here
    user_annotation   a `record_function` range              → annotations
    cpu_op            an operator, on the CPU                → ops
    cuda_runtime,
    cuda_driver       a call into CUDA (or HIP)              → calls
    xpu_…, mtia_…, privateuse1_…   the same of other vendors → calls
    kernel, gpu_memcpy,
    gpu_memset        work on the GPU                        → gpu
    mtia_ccp_events   a kernel of MTIA                       → gpu
    python_function   a module's call, a Python function     → frames, of modules and own code
    cpu_instant_event [memory]: a block is taken or given back → allocations
    gpu_user_annotation, cuda_sync, ac2g and others: drawn by viewers, no work

A span is one event (`ph` X) or a begin and an end (B, E), paired on their thread at the end. What
has no usable time stands apart: it must not count as being at time 0. An event with a field of a
foreign type is read without that field, and counted.
"""

import contextlib
import re
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import chain, islice, repeat
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, ClassVar, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from ..cli import UserError, shown
from ..story import METADATA_KEY, Story, read_story
from . import faults, pieces
from .frames import is_module, is_own
from .known import known
from .pieces import MAX_GB, Blocks, Piece
from .privacy import Finding, Scan

CALLS = {
    f"{maker}_{layer}"
    for maker in ("cuda", "xpu", "mtia", "privateuse1")
    for layer in ("runtime", "driver")
}
Sort: TypeAlias = Literal["kernel", "copy", "memset"]
GPU: dict[str, Sort] = {
    "kernel": "kernel",
    "mtia_ccp_events": "kernel",
    "gpu_memcpy": "copy",
    "gpu_memset": "memset",
}
CPU = CALLS | {"cpu_op", "user_annotation"}
WORK = CPU | GPU.keys()
UntimedSort: TypeAlias = Literal["region", "op", "call"]
SORTS: dict[str, UntimedSort] = {"cpu_op": "op", "user_annotation": "region"}
# Of events that viewers draw: they repeat what others say, or say nothing of work.
DRAWN = {
    "gpu_user_annotation", "cuda_sync", "cuda_event", "overhead", "Trace",
    "cuda_profiler_range", "cpu_instant_event", "cuda_runtime_sync", "mtia_insight",
    "mtia_counters", "xpu_sync",
}  # fmt: skip
OLD_CATEGORIES = {"Operator", "Runtime", "Kernel"}  # before torch 1.12
EVALUATE = "autograd::engine::evaluate_function"  # around the ops of one backward node
PROFILER_STEP = "ProfilerStep#"
STRANGER = "a process without CPU events"

Thread: TypeAlias = tuple[Any, Any]  # (pid, tid), each a number or text


# Structs that the garbage collector need not look at: less memory and time than dataclasses.
class Span(msgspec.Struct, frozen=True, gc=False):
    """A range on a CPU thread. `end` is None when the profiler stopped before the range did.

    `external` is the `External id` that launches inside it, and their GPU work, carry too.
    """

    name: str
    start: int  # ns
    end: int | None  # ns
    thread: Thread
    external: ClassVar[int | None] = None
    shapes: ClassVar["Shapes | None"] = None

    @property
    def is_profiler_step(self) -> bool:
        return self.name.startswith(PROFILER_STEP)


class Launcher(Span, frozen=True, gc=False):
    """A range under whose id something was launched. The others, most, need no room for an id."""

    external: int  # type: ignore[misc]  # a class variable of the others


class Shapes(msgspec.Struct, frozen=True, gc=False):
    """What `record_shapes` writes of an op's inputs, each as the JSON text of a list: decoded for
    the few ops of which somebody asks (work.py). Empty where it is not there."""

    dims: bytes
    types: bytes
    concrete: bytes  # values of what is no tensor
    strides: bytes


class Shaped(Span, frozen=True, gc=False):
    """An op whose inputs' shapes were recorded."""

    external: int | None  # type: ignore[misc]  # a class variable of the others
    shapes: Shapes  # type: ignore[misc]


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call into the CUDA runtime or driver. `correlation` is the id that its GPU work carries."""

    name: str
    start: int  # ns
    duration: int | None  # ns
    thread: Thread
    correlation: int | None
    external: int | None = None  # `External id` of the op or range around it

    @property
    def launches(self) -> bool:
        """Whether it starts kernels: cudaLaunchKernel, cuLaunchKernelEx, hipModuleLaunchKernel…"""
        return "Launch" in self.name and "HostFunc" not in self.name

    @property
    def of_driver(self) -> bool:
        """Whether it is one of the layer below the runtime: cuLaunchKernel."""
        return self.name.startswith("cu") and not self.name.startswith("cuda")

    @property
    def launches_graph(self) -> bool:
        return "GraphLaunch" in self.name


class Collective(msgspec.Struct, frozen=True, gc=False):
    """What a communication kernel's args say that it moves, and among whom; None: they do not."""

    name: str  # such as allreduce
    dtype: str | None
    elements_in: int | None
    elements_out: int | None
    group: str | None  # its description, else its name
    size: int | None  # of the group
    ranks: str | None  # of the group, as the profiler writes them


class GpuEvent(msgspec.Struct, frozen=True, gc=False):
    """A kernel, copy or memset on the GPU. None is unknown, never 0."""

    sort: Sort
    name: str
    start: int | None  # ns
    duration: int | None  # ns
    device: Any
    stream: Any
    correlation: int | None
    process: Any  # whose launch it answers; None where the file does not tell
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    registers: int | None  # of a thread
    shared_memory: int | None  # bytes of a block
    reported_occupancy: float | None  # percent, the profiler's own estimate
    bytes: int | None
    external: int | None = None  # `External id` of the op or range around its launch
    collective: Collective | None = None
    region: str | None = None  # the name that a CUDA graph's node was annotated with

    @property
    def place(self) -> tuple:
        """Its GPU, by process too: each process may see but one GPU and call it 0."""
        return self.process, self.device

    @property
    def lane(self) -> tuple:
        return self.process, self.device, self.stream

    @property
    def end(self) -> int | None:
        return None if self.start is None or self.duration is None else self.start + self.duration


class Untimed(msgspec.Struct, frozen=True, gc=False):
    """A range, op or call of which the file does not tell when it was."""

    sort: UntimedSort
    name: str
    thread: Thread
    correlation: int | None
    external: int | None


class Node(msgspec.Struct, frozen=True, gc=False):
    """An op that carries a sequence number: of the graph node that a forward op made, or that a
    backward op evaluates; then `forward_thread` is the engine's own number of the forward's."""

    span: Span
    sequence: int
    forward_thread: int | None


class Allocation(msgspec.Struct, frozen=True, gc=False):
    """A block of memory taken (`bytes` above 0) or given back; what the allocator holds then."""

    start: int  # ns
    thread: Thread
    device: tuple[int | None, int | None]  # torch's number of its type (0 CPU, 1 CUDA), its index
    address: int | None
    bytes: int
    allocated: int | None  # bytes, in all
    reserved: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """What a file of a distributed job tells of its place in it. None: it does not."""

    rank: int | None
    size: int | None  # ranks of the job
    groups: int | None  # of ranks


class Arrow(NamedTuple):
    """From a thread on which a forward op ran to its backward op, by place."""

    whence: Thread
    to: Thread
    at: int  # ns


@dataclass(frozen=True, slots=True)
class Trace:
    path: Path
    story: Story | None  # what our scripts say of their run; None of other people's traces
    devices: tuple[dict, ...]  # Kineto's deviceProperties
    annotations: tuple[Span, ...]
    ops: tuple[Span, ...]
    calls: tuple[Call, ...]
    gpu: tuple[GpuEvent, ...]
    processes: tuple  # whose CPU events there are
    non_finite: int  # numbers written as NaN or Infinity, read as missing
    left_out: int = 0  # bytes that a salvaged file lost
    left_out_events: int = 0  # whole events among them
    private: tuple[Finding, ...] = ()  # host names, personal paths and the like in the file
    untimed: tuple[Untimed, ...] = ()  # CPU work without a usable time: in no other tuple
    odd_events: int = 0  # read without a field of a foreign type, or left out as no objects
    unread_work: int = 0  # work events of a phase other than X, B and E, left out
    unpaired: int = 0  # ends (E) whose begin is not in the file, left out
    unread: tuple[tuple[str, int], ...] = ()  # categories that look like an accelerator's
    evaluates: bool = False  # whether any op is one of the autograd engine's
    nodes: tuple[Node, ...] = ()  # the backward ops, and the forward ops they may belong to
    arrows: tuple[Arrow, ...] = ()  # some from each forward thread
    frames: tuple[Span, ...] = ()  # calls of modules, and functions that are no library's
    stacks: bool = False  # whether any Python function was recorded
    allocations: tuple[Allocation, ...] = ()
    job: Job | None = None

    @property
    def profiler_steps(self) -> int:
        return sum(span.is_profiler_step for span in self.annotations)

    @property
    def labels(self) -> Counter:
        """How often each `record_function` label stands in the trace, without the profiler's."""
        named = [span.name for span in self.annotations]
        named += [one.name for one in self.untimed if one.sort == "region"]
        return Counter(name for name in named if not name.startswith(PROFILER_STEP))


# Microseconds below which a float keeps every nanosecond. The profiler counts from the start of a
# quarter: 8e12 at most. Older versions count from 1970.
EXACT = 1 << 43
SHORT = 1 << 40  # microseconds whose half a nanosecond a float keeps
WHOLE = 1 << 52  # … and a thousand times as much is a whole number, rounded, from here on
LONGEST = 10**16  # microseconds, in nanoseconds still 64 bits

Number = TypeVar("Number", float, Decimal)
Event = TypeVar("Event")
_NOTHING = msgspec.Raw()


_WRITTEN = {
    "external": "External id",
    "external_old": "external id",  # as the first versions of Kineto write it
    "registers": "registers per thread",
    "shared_memory": "shared memory",
    "occupancy": "est. achieved occupancy %",
    "sequence": "Sequence number",
    "forward_thread": "Fwd thread id",
    "collective": "Collective name",
    "elements_in": "In msg nelems",
    "elements_out": "Out msg nelems",
    "group_size": "Group size",
    "group_name": "Process Group Name",
    "group": "Process Group Description",
    "ranks": "Process Group Ranks",
    "graph_node": "graph node id",
    "region": "name",  # of an annotated node of a CUDA graph
    "size": "Bytes",
    "address": "Addr",
    "device_type": "Device Type",
    "device_id": "Device Id",
    "allocated": "Total Allocated",
    "reserved": "Total Reserved",
    "dims": "Input Dims",
    "types": "Input type",
    "concrete": "Concrete Inputs",
    "strides": "Input Strides",
}


class _Args(msgspec.Struct, gc=False, rename=_WRITTEN):
    # Any: other profilers write numbers as text, and "N/A"; `_number` sorts that out.
    correlation: Any = None
    device: Any = None
    stream: Any = None
    original_stream: Any = None  # where the kernels of a CUDA graph were moved to one lane
    external: Any = None
    external_old: Any = None
    grid: Any = None
    block: Any = None
    registers: Any = None
    shared_memory: Any = None
    occupancy: Any = None
    bytes: Any = None
    sequence: Any = None
    forward_thread: Any = None
    collective: Any = None
    dtype: Any = None
    elements_in: Any = None
    elements_out: Any = None
    group_size: Any = None
    group_name: Any = None
    group: Any = None
    ranks: Any = None
    graph_node: Any = None
    region: Any = None
    size: Any = None
    address: Any = None
    device_type: Any = None
    device_id: Any = None
    allocated: Any = None
    reserved: Any = None
    dims: msgspec.Raw = _NOTHING
    types: msgspec.Raw = _NOTHING
    concrete: msgspec.Raw = _NOTHING
    strides: msgspec.Raw = _NOTHING


_NO_ARGS = _Args()


class _Event(msgspec.Struct, Generic[Number], gc=False):
    ph: Any = None
    cat: str | None = None
    name: Any = None
    ts: Number | None = None  # of either kind: also a number written as text
    dur: Number | None = None
    pid: Any = None
    tid: Any = None
    id: Any = None  # of an arrow
    args: _Args | None = None


# What is as the profiler writes it nowadays, nearly every event, needs no second look: the decoder
# has seen that it is. The fields stand in the profiler's order, for so they are found at once.
_Whole: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Natural: TypeAlias = _Whole | None
_Size: TypeAlias = tuple[_Whole, _Whole, _Whole] | None


class _UsualArgs(msgspec.Struct, frozen=True, gc=False, rename=_WRITTEN):
    external: Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)] | None = None
    sequence: _Natural = None
    forward_thread: _Natural = None
    device: Any = None
    stream: Any = None
    correlation: _Natural = None
    registers: _Natural = None
    shared_memory: _Natural = None
    grid: _Size = None
    block: _Size = None
    occupancy: int | float | None = None
    bytes: _Natural = None
    original_stream: Any = None
    external_old: Any = None
    collective: Any = None
    dtype: Any = None
    elements_in: Any = None
    elements_out: Any = None
    group_size: Any = None
    group_name: Any = None
    group: Any = None
    ranks: Any = None
    graph_node: Any = None
    region: Any = None
    size: Any = None
    address: Any = None
    device_type: Any = None
    device_id: Any = None
    allocated: Any = None
    reserved: Any = None
    dims: msgspec.Raw = _NOTHING
    types: msgspec.Raw = _NOTHING
    concrete: msgspec.Raw = _NOTHING
    strides: msgspec.Raw = _NOTHING


class _UsualEvent(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str = "None"  # where there is no name
    pid: int | str | None = None
    tid: int | str | None = None
    ts: Annotated[float, msgspec.Meta(ge=0.001, lt=EXACT)] | None = None
    dur: float | None = None
    id: Any = None
    args: _UsualArgs = _UsualArgs()


class _File(msgspec.Struct, Generic[Event], gc=False):
    traceEvents: list[Event]
    # Raw: what other people put there may be of any size.
    story: msgspec.Raw = msgspec.field(default=_NOTHING, name=METADATA_KEY)
    deviceProperties: msgspec.Raw = _NOTHING
    distributedInfo: msgspec.Raw = _NOTHING


class _Odd(NamedTuple):
    """Events that are not as the profiler writes them."""

    number: int = 0
    no_objects: int = 0  # of them, left out
    first: int = 0
    what: str = ""  # is odd with the first


class _Decoders(NamedTuple):
    event: msgspec.json.Decoder
    fields: "_Fields"
    events: msgspec.json.Decoder
    file: msgspec.json.Decoder
    usual_events: msgspec.json.Decoder | None = None
    usual_file: msgspec.json.Decoder | None = None

    def decode(self, data: bytes) -> tuple[_File, int, _Odd]:
        """A trace; how many of its numbers are missing, written as NaN or Infinity; what is odd."""
        alone = _is_list(data)
        if usual := self.usual_events if alone else self.usual_file:
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                found = usual.decode(data)
                return (_File(found) if alone else found), 0, _Odd()
        decoder = self.events if alone else self.file
        missing = 0
        try:
            try:
                found = decoder.decode(data)
            except (msgspec.DecodeError, RecursionError):
                data, missing = faults.mended(data)
                found = decoder.decode(data)
        except msgspec.ValidationError:
            raw = _File(RAW_EVENTS.decode(data)) if alone else RAW_FILE.decode(data)
            events, odd = self._one_by_one(raw.traceEvents)
            return _File(events, raw.story, raw.deviceProperties, raw.distributedInfo), missing, odd
        return (_File(found) if alone else found), missing, _Odd()

    def _one_by_one(self, raws: list[msgspec.Raw]) -> tuple[list["_Event"], _Odd]:
        events, first = [], None
        count = no_objects = 0
        for number, raw in enumerate(raws):
            if bytes(memoryview(raw)[:1]) == b"{" or not first:
                try:
                    events.append(self.event.decode(raw))
                    continue
                except msgspec.ValidationError as error:
                    first = first or (number, str(error))
            count += 1
            if event := self.fields.decode(raw):
                events.append(event)
            else:
                no_objects += 1
        return events, _Odd(count, no_objects, *first) if first else _Odd()


def _is_list(data: bytes) -> bool:
    """The format's other form: the events alone."""
    return re.match(rb"\s*\[", data) is not None


class _Fields:
    """Reads those fields of a struct that are what they should be."""

    def __init__(self, struct: type, **within: "_Fields") -> None:
        self._struct, self._within = struct, within
        self._fields = [
            (field.encode_name, field.name, msgspec.json.Decoder(field.type, strict=False))
            for field in msgspec.structs.fields(struct)
        ]

    def decode(self, raw: msgspec.Raw) -> Any:
        """None for what is no object."""
        if bytes(memoryview(raw)[:1]) != b"{":
            return None
        there, sound = OBJECT.decode(raw), {}
        for written, name, decoder in self._fields:
            if (value := there.get(written)) is None:
                continue
            try:
                sound[name] = decoder.decode(value)
            except msgspec.ValidationError:
                if name in self._within:
                    sound[name] = self._within[name].decode(value)
        return self._struct(**sound)


def _decoders(event: Any, usual: Any = None) -> _Decoders:
    return _Decoders(
        msgspec.json.Decoder(event, strict=False),
        _Fields(event, args=_Fields(_Args)),
        msgspec.json.Decoder(list[event], strict=False),
        msgspec.json.Decoder(_File[event], strict=False),
        usual and msgspec.json.Decoder(list[usual]),
        usual and msgspec.json.Decoder(_File[usual]),
    )


OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
RAW_EVENTS = msgspec.json.Decoder(list[msgspec.Raw])
RAW_FILE = msgspec.json.Decoder(_File[msgspec.Raw])


class _Outline(msgspec.Struct, rename={"story": METADATA_KEY}):
    traceEvents: msgspec.Raw
    story: msgspec.Raw = _NOTHING
    deviceProperties: msgspec.Raw = _NOTHING
    distributedInfo: msgspec.Raw = _NOTHING

    @property
    def around(self) -> bytes:
        """What stands around its events, behind an empty list of them."""
        names = {
            METADATA_KEY: self.story,
            "deviceProperties": self.deviceProperties,
            "distributedInfo": self.distributedInfo,
        }
        return b"]" + b"".join(b',"%s":%s' % (n.encode(), raw) for n, raw in names.items() if raw)


def _outline(data: bytes) -> _Outline:
    if _is_list(data):
        return _Outline(msgspec.json.decode(data, type=msgspec.Raw))
    return msgspec.json.decode(data, type=_Outline)


FLOATS, DECIMALS = _decoders(_Event[float], _UsualEvent), _decoders(_Event[Decimal])
LONG = 10**9 * 3600 * 24 * 10  # ns: no work of a recording lasts ten days
LONG_US = LONG // 1000
RECENT = 1 << 12
TRIES = 20  # to find the end of a damaged event, or of a list behind it
ARROWS = 64  # from one thread: all of them say the same
MOST_OF_SHAPES = 1 << 16  # bytes; of a list of a thousand tensors
MOST_OF_A_FIELD = 1 << 20  # bytes of the story, or of the devices
FAR = 10**9 * 3600  # ns: from time 0 to a recording whose times do not begin there


class _NotExact(Exception):
    """A time does not fit a float: the file must be read in decimals."""


def read(
    path: Path,
    salvage: bool = False,
    max_gb: float = MAX_GB,
    progress: Callable[[float], None] = lambda share: None,
) -> Trace:
    """Read a trace file; with `salvage`, of a damaged one as much as is sound. `progress` is told
    now and then which share of the file has been read.

    Raises UserError, in one line, for a file that cannot be read, is no JSON, is cut short, is no
    trace, holds no timed event, or unpacks to more than `max_gb`.
    """

    with pieces.readable_again(path, max_gb) as source:
        return _read_file(path, source, salvage, max_gb, progress)


def _read_file(
    path: Path,
    source: Path,
    salvage: bool,
    max_gb: float,
    progress: Callable[[float], None],
) -> Trace:
    scan = Scan()

    def blocks() -> Iterator[bytes]:
        nonlocal scan
        scan = Scan()
        packed = pieces.read_blocks(path, max_gb, salvage, progress, source)
        for block in pieces.utf8(path, packed, source):
            if not scan.size:
                faults.require_json(path, block)
            scan.add(block)
            yield block

    def attempt(decoders: _Decoders) -> Trace:
        try:
            try:
                return _read(path, blocks, pieces.cut(blocks()), decoders, max_gb)
            except pieces.NotInPieces:
                return _in_memory(path, blocks, decoders, max_gb)
        except UserError:
            if salvage:  # only now: a sound file loses nothing
                with contextlib.suppress(pieces.NotInPieces):  # not even a list of events is there
                    salvaged = pieces.cut(blocks(), True)
                    return _read(path, blocks, salvaged, decoders, max_gb, salvage=True)
            raise

    try:
        found = attempt(FLOATS)
    except _NotExact:
        found = attempt(DECIMALS)
    return replace(found, private=scan.found())


def _read(
    path: Path,
    blocks: Blocks,
    parts: Iterator[Piece],
    decoders: _Decoders,
    max_gb: float,
    salvage: bool = False,
) -> Trace:
    events, begun = _Events(), None
    for piece in parts:
        if begun:
            piece = piece._replace(start=begun.start, text=begun.text + begun.gap + piece.text)
            begun = None
        try:
            events.add(*decoders.decode(piece.json))
        except (msgspec.DecodeError, RecursionError) as error:
            unfinished = not piece.last and re.search("truncated|trailing characters", str(error))
            if unfinished and 0 < len(piece.text) < pieces.MOST:
                begun = piece  # cut inside an event, or behind the list: it goes on
            elif salvage:
                events.add_sound(piece, decoders)
            elif unfinished:
                raise pieces.NotInPieces from error
            else:
                raise faults.refusal(path, blocks, error, piece) from error
        if events.size > max_gb * 1e9:
            raise UserError(
                f"{shown(path)}: its events take more than {max_gb:g} GB of memory; "
                "--max-gb raises the limit"
            )
    found = events.trace(path)
    if not (found.annotations or found.ops or found.calls or found.gpu or found.untimed):
        if events.first_odd:
            raise faults.not_as_written(path, events.first_odd)
        raise faults.no_work(path, blocks, events.timed, events.count)
    return found


def _in_memory(path: Path, blocks: Blocks, decoders: _Decoders, max_gb: float) -> Trace:
    """A file that cannot be cut as it is read: its text is held, its events never all at once."""
    data = pieces.whole(path, blocks())
    piece = Piece(0, b"", data)
    if len(data) <= pieces.MOST:
        return _read(path, blocks, iter([piece]), decoders, max_gb)
    missing = 0
    try:
        try:
            outline = _outline(data)
        except (msgspec.DecodeError, RecursionError):
            data, missing = faults.mended(data)
            outline = _outline(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise faults.refusal(path, blocks, error, piece) from error
    events = memoryview(outline.traceEvents)
    if bytes(events[:1]) != b"[":
        raise faults.not_as_written(path, "Expected `array` - at `$.traceEvents`")
    head = Piece(0, pieces.OPENING, outline.around, b"}")
    try:
        parts = chain([head], pieces.cut(pieces.in_blocks(events)))
        found = _read(path, blocks, parts, decoders, max_gb)
    except pieces.NotInPieces:
        raise UserError(
            f"{shown(path)}: {pieces.MOST >> 20} MB without the end of an event; is it a trace?"
        ) from None
    return replace(found, non_finite=found.non_finite + missing)


class _Events:
    """Collects what is work. Names and threads are kept once each, however often they occur."""

    def __init__(self) -> None:
        self.annotations: list[Span] = []
        self.ops: list[Span] = []
        self.calls: list[Call] = []
        self.gpu: list[GpuEvent] = []
        self.untimed: list[Untimed] = []
        self.count = self.non_finite = self.left_out = self.left_out_events = 0
        self.odd_events = self.unread_work = self.unpaired = 0
        self._halves: list[tuple[_Event, Any]] = []  # begins and ends, each with its process
        self.first_odd = ""
        self._story: Any = None
        self._devices: Any = None
        self._job: Any = None
        self.frames: list[Span] = []
        self.stacks = False
        self.allocations: list[Allocation] = []
        self.timed = self._old = self._zeros = False
        self.once: dict = {}
        self._threads: dict = {}
        # Ids: a launch and its work carry the same, near each other. 0 is none.
        self._recent: dict[int | None, int | None] = {None: None, 0: None}
        self._unread: dict[str, int] = {}
        self._sizes: dict[tuple, tuple[int, ...] | None] = {}
        self._op_ids = array("I")
        self._sequences: list[array] = [array("q"), array("q"), array("q")]  # op, number, thread
        self._op_shapes: dict[int, Shapes] = {}  # by the op's index
        self._begun: dict[Any, Thread] = {}  # arrows without their end
        self._arrows: dict[Thread, list[Arrow]] = defaultdict(list)
        self._processes: dict = {}  # in the order of their parts of the file
        self.process: Any = None  # whose part this is; None where none has begun
        self._latest: Any = None  # of _processes
        self._mixed = False  # not every process has a part of its own
        self._graphs: set[int | None] = set()  # ids of launches of CUDA graphs
        self._part = 0  # of the GPU events the first one of the part that has begun
        self._in_order, self._last = True, 0  # whether all is in order of time, so far

    def add(self, file: _File, missing: int, odd: _Odd) -> None:
        if odd.number:
            self.first_odd = self.first_odd or faults.in_file(odd.what, self.count + odd.first)
            self.odd_events += odd.number
        self.count += len(file.traceEvents) + odd.no_objects
        self.non_finite += missing
        self._story = self._story if file.story is _NOTHING else _json(file.story)
        if file.deviceProperties is not _NOTHING:
            self._devices = _json(file.deviceProperties)
        if file.distributedInfo is not _NOTHING:
            self._job = _json(file.distributedInfo)
        events = file.traceEvents
        self._look_at_order(events)
        if events and events[0].__class__ is _UsualEvent:
            events = self._add_usual(events)
        for event in events:
            phase, category = event.ph, event.cat
            if phase == "X":
                self.timed = True
                if category in WORK:
                    self._keep(event, category, _nanoseconds(event.ts), _nanoseconds(event.dur))
                elif category == "python_function":
                    self._frame(event)
                elif category in OLD_CATEGORIES:
                    self._old = True
                elif category not in DRAWN:
                    self._look_at_unread(event)
            elif phase == "s" or phase == "f":
                if category == "fwdbwd":
                    self._arrow(event)
            elif phase == "M":  # whoever comes next is yet to be seen
                self.process, self._part = None, len(self.gpu)
            elif phase == "B" or phase == "E":
                self.timed = True
                process = self._thread(event)[0] if category in CPU else self.process
                self._halves.append((event, process))
            elif phase == "i" and event.name == "[memory]":
                self._allocation(event)
            elif category in WORK:
                self.unread_work += 1

    def _look_at_order(self, events: list) -> None:
        if self._in_order:
            times = [e.ts for e in events if e.ts and e.ph == "X" and e.cat in WORK]
            if times:
                self._in_order = times[0] >= self._last and times == sorted(times)
                self._last = times[-1]

    def _add_usual(self, events: list[_UsualEvent]) -> list[_UsualEvent]:
        """Take most of the work in a fraction of the time: a column of all ops, calls or GPU events
        at once. Returns the events that are left to be looked at one by one; all of them where
        their processes change, for then the order counts."""
        ops: list[_UsualEvent] = []
        calls: list[_UsualEvent] = []
        gpu: list[_UsualEvent] = []
        others: list[_UsualEvent] = []
        by_category = dict.fromkeys(CALLS, calls) | dict.fromkeys(GPU, gpu)
        by_category |= dict.fromkeys(DRAWN, []) | {"cpu_op": ops}
        for event in events:
            if event.ph == "X":
                by_category.get(event.cat, others).append(event)  # type: ignore[arg-type]
            else:
                others.append(event)
        marks = [event for event in others if event.cat in CPU]
        for pid, tid in chain(*map(_threads_among, (ops, calls, marks))):
            process = self._thread_of(pid, tid)[0]
            if process != self.process and not (self._mixed and process in self._processes):
                return events
        if any(event.ph == "M" for event in others):
            return events
        times = [[event.ts for event in work] for work in (ops, calls, gpu)]
        if any(None in column for column in times):
            return events
        self.timed = self.timed or any(event.ph == "X" for event in events)
        starts = map(_all_nanoseconds, times)
        self._add_ops(ops, next(starts))
        self._add_calls(calls, next(starts))
        self._add_gpu(gpu, next(starts))
        return others

    def _add_ops(self, ops: list[_UsualEvent], starts: list[int]) -> None:
        args = [event.args for event in ops]
        sequences = [one.sequence for one in args]
        if sequences.count(None) < len(sequences):
            of_op, numbers, threads = self._sequences
            for index, number in enumerate(sequences, len(self.ops)):
                if number is not None:
                    of_op.append(index)
                    numbers.append(number)
                    threads.append(args[index - len(self.ops)].forward_thread or 0)
        dims = [one.dims for one in args]
        if dims.count(_NOTHING) < len(dims):
            for index, one in enumerate(args, len(self.ops)):
                if one.dims:
                    self._shape(one, index)
        ends = [
            start + int(us * 1000 + 0.5) if us and 0.0005 <= us < LONG_US else None
            for start, us in zip(starts, [event.dur for event in ops], strict=True)
        ]
        self._op_ids.extend([one.external or 0 for one in args])
        self.ops += map(Span, self._names(ops), starts, ends, self._threads_of(ops))

    def _add_calls(self, calls: list[_UsualEvent], starts: list[int]) -> None:
        args = [event.args for event in calls]
        self.calls += map(
            Call,
            self._names(calls),
            starts,
            _durations(calls),
            self._threads_of(calls),
            self._shared([one.correlation for one in args]),
            self._shared([one.external or _external(one) for one in args]),
        )

    def _add_gpu(self, gpu: list[_UsualEvent], starts: list[int]) -> None:
        args = [event.args for event in gpu]
        streams = [
            one.stream if one.original_stream is None else one.original_stream for one in args
        ]
        once = self.once.setdefault
        sizes, memory = [one.bytes for one in args], [one.shared_memory for one in args]
        grids, blocks = [one.grid for one in args], [one.block for one in args]
        self.gpu += map(
            GpuEvent,
            [GPU[str(event.cat)] for event in gpu],
            self._names(gpu),
            starts,
            _durations(gpu),
            [
                one.device if one.device.__class__ is int else _device(event)
                for event, one in zip(gpu, args, strict=True)
            ],
            [
                stream if stream.__class__ is int else _id(event.tid if stream is None else stream)
                for event, stream in zip(gpu, streams, strict=True)
            ],
            self._shared([one.correlation for one in args]),
            repeat(self.process),
            map(once, grids, grids),
            map(once, blocks, blocks),
            [one.registers for one in args],
            map(once, memory, memory),
            [one.occupancy for one in args],
            map(once, sizes, sizes),
            self._shared([one.external or _external(one) for one in args]),
            [None if one.collective is None else _collective(one, self.once) for one in args],
            [None if one.graph_node is None else _text(one.region) for one in args],
        )

    def _names(self, events: list[_UsualEvent]) -> Iterator[str]:
        names = [event.name for event in events]
        return map(self.once.setdefault, names, names)

    def _threads_of(self, events: list[_UsualEvent]) -> Iterable[Thread]:
        threads = {key: self._thread_of(*key) for key in _threads_among(events)}
        if len(threads) == 1:
            return repeat(*threads.values())
        return [threads[event.pid, event.tid] for event in events]

    def _shared(self, ids: list[int | None]) -> Iterator[int | None]:
        """Equal ones from a moment ago, so that memory holds them once; None for 0."""
        if len(self._recent) > RECENT:
            self._recent = {None: None, 0: None}
        return map(self._recent.setdefault, ids, ids)

    def _frame(self, event: _Event) -> None:
        """Of a million Python functions hardly one is asked for: modules, and own code."""
        self.stacks, name = True, event.name
        if name.__class__ is not str or not (is_module(name) or is_own(name)):
            return
        start, duration = _nanoseconds(event.ts), _nanoseconds(event.dur)
        if start is not None:
            end = start + duration if duration and 0 < duration < LONG else None
            thread = _id(event.pid), _id(event.tid)
            thread = self._threads.get(thread, thread)
            self.frames.append(Span(self.once.setdefault(name, name), start, end, thread))

    def _allocation(self, event: _Event) -> None:
        args = event.args or _NO_ARGS
        start, size = _nanoseconds(event.ts), _number(args.size)
        if start is None or size is None or size % 1:
            return
        thread = _id(event.pid), _id(event.tid)
        device = _count(args.device_type), _count(args.device_id)
        self.allocations.append(
            Allocation(
                start,
                self._threads.get(thread, thread),
                self.once.setdefault(device, device),
                _count(args.address),
                int(size),
                _count(args.allocated),
                _count(args.reserved),
            )
        )

    def _look_at_unread(self, event: _Event) -> None:
        """Work of an accelerator that nobody here knows carries what others' carries."""
        args = event.args
        if args and (args.stream is not None or args.correlation is not None):
            category = str(event.cat)
            self._unread[category] = self._unread.get(category, 0) + 1

    def _number(self, args: _Args) -> None:
        """Remember the sequence number of the op that comes next."""
        sequence = _count(args.sequence)
        if sequence is not None and sequence < 1 << 62:
            thread = _count(args.forward_thread) or 0
            for kept, number in zip(
                self._sequences, (len(self.ops), sequence, min(thread, 1 << 62)), strict=True
            ):
                kept.append(number)

    def _shape(self, args: "_Args | _UsualArgs", index: int) -> None:
        """Remember the shapes of the op of this index; equal ones are in memory once."""
        fields = args.dims, args.types, args.concrete, args.strides
        if all(memoryview(field).nbytes < MOST_OF_SHAPES for field in fields):
            shapes = Shapes(*map(bytes, fields))
            self._op_shapes[index] = self.once.setdefault(shapes, shapes)

    def _arrow(self, event: _Event) -> None:
        identity = event.id if event.id.__class__ is int else str(event.id)
        if event.ph == "s":
            self._begun[identity] = _id(event.pid), _id(event.tid)
        elif event.ph == "f" and (whence := self._begun.pop(identity, None)):
            at, arrows = _nanoseconds(event.ts), self._arrows[whence]
            if at is not None and len(arrows) < ARROWS:
                arrows.append(Arrow(whence, (_id(event.pid), _id(event.tid)), at))

    def _keep(self, event: _Event, category: str, start: int | None, duration: int | None) -> None:
        args = event.args
        name = event.name if event.name.__class__ is str else str(event.name)
        name = self.once.setdefault(name, name)
        if not start and not duration:
            start = None  # a lost record: all zeros
        self._zeros = self._zeros or start == 0
        # A range still open when the profiler stopped is written with -1 or, by newer versions, 0.
        if duration is not None and not 0 <= duration < LONG:
            duration = None
        if category in GPU:
            self.gpu.append(_gpu_event(event, name, start, duration, self))
            return
        thread = self._thread(event)
        external = _external(args)
        if start is None:
            sort = SORTS.get(category, "call")
            self.untimed.append(Untimed(sort, name, thread, _correlation(args), external))
        elif category == "cpu_op":
            if args and args.sequence is not None:
                self._number(args)
            if args and args.dims:
                self._shape(args, len(self.ops))
            self.ops.append(Span(name, start, start + duration if duration else None, thread))
            self._op_ids.append(external if external and external < 1 << 32 else 0)
        elif category == "user_annotation":
            end = start + duration if duration else None
            self.annotations.append(
                Launcher(name, start, end, thread, external)
                if external
                else Span(name, start, end, thread)
            )
        else:
            correlation = self.shared(_correlation(args))
            self.calls.append(
                Call(name, start, duration, thread, correlation, self.shared(external))
            )

    def shared(self, number: int | None) -> int | None:
        return next(self._shared([number]))

    def sizes(self, value: Any) -> tuple[int, ...] | None:
        """A grid or block; equal ones are in memory once."""
        if value.__class__ is not list and value.__class__ is not tuple:
            return None
        try:
            return self._sizes[tuple(value)]
        except KeyError:
            return self._sizes.setdefault(tuple(value), _sizes(value))
        except TypeError:  # it holds what is no size
            return None

    def _thread(self, event: _Event) -> tuple:
        """Its thread, which may be the first of a process or in another part of the file."""
        thread = self._thread_of(event.pid, event.tid)
        if thread[0] is not self.process:
            self._enter(thread[0])
        return thread

    def _thread_of(self, pid: Any, tid: Any) -> Thread:
        try:
            return self._threads[pid, tid]
        except (KeyError, TypeError):
            thread = _id(pid), _id(tid)
            return self._threads.setdefault(thread, thread)

    @property
    def size(self) -> int:
        """About how many bytes of memory its events take."""
        spans = len(self.ops) + len(self.annotations) + len(self.calls) + len(self.untimed)
        spans += len(self.frames) + len(self.allocations)
        return 150 * (spans + len(self.once) + len(self._threads)) + 350 * (
            len(self.gpu) + len(self._halves)
        )

    def _enter(self, process: Any) -> None:
        if process not in self._processes:
            # Every file names its processes and threads, before or behind its events.
            self._mixed = self._mixed or bool(self._processes) and self.process is not None
            self._processes[process] = None
            self._latest = process
        self._mixed = self._mixed or process != self._latest
        if self.process is None:  # what stands in its part, before it
            for number in range(self._part, len(self.gpu)):
                self.gpu[number] = msgspec.structs.replace(self.gpu[number], process=process)
        self.process = process

    def add_sound(self, piece: Piece, decoders: _Decoders) -> None:
        """What is sound in a piece that is not: single events, and the foot behind them."""
        if not piece.text:  # the head
            self.left_out += len(piece.opening)
            return
        text, foot = _foot(piece.text, decoders) if piece.last else (piece.text, b"")
        for one in pieces.BETWEEN.split(text):
            # With whatever stands behind the last one, if that is no foot.
            ends = (match.end() for match in re.finditer(rb"\}(?=\s*\])", one))
            for end in chain([len(one)], islice(ends, TRIES)):
                if self._try(b"[" + one[:end] + b"]", decoders):
                    self.left_out += len(one) - end
                    break
            else:
                self.left_out += len(one)
                self.left_out_events += 1
        if foot:
            self._try(pieces.OPENING + foot, decoders)

    def _try(self, text: bytes, decoders: _Decoders) -> bool:
        try:
            self.add(*decoders.decode(text))
        except (msgspec.DecodeError, RecursionError):
            return False
        return True

    def _pair(self) -> None:
        """Begins and ends to spans: an end closes what its thread has begun last."""
        threads = defaultdict(list)
        for event, process in self._halves:
            moment = _nanoseconds(event.ts)
            if moment is None:
                self.unpaired += 1
            else:
                threads[_id(event.pid), _id(event.tid)].append((moment, event, process))
        self._halves.clear()
        for halves in threads.values():
            halves.sort(key=lambda half: half[0])
            open_ones: list[tuple[int, _Event, Any]] = []
            for moment, event, process in halves:
                if event.ph == "B":
                    open_ones.append((moment, event, process))
                elif open_ones:
                    self._keep_pair(*open_ones.pop(), moment)
                else:
                    self.unpaired += 1
            for begun in open_ones:
                self._keep_pair(*begun, None)

    def _keep_pair(self, start: int, event: _Event, process: Any, end: int | None) -> None:
        if event.cat in WORK:
            self.process = process
            self._keep(event, event.cat, start, None if end is None else end - start)

    def _identify_ops(self) -> None:
        """Ops get the External id under which something was launched. Of the others nobody asks,
        and as objects their ids would take a sixth of the memory."""
        launched = bytearray(1 << 20)  # by the id's last bits: an id too many does no harm
        for call in self.calls:
            launched[(call.external or 0) % len(launched)] = True
        for event in self.gpu:
            launched[(event.external or 0) % len(launched)] = True
        last_bits = len(launched) - 1
        for number in [n for n, id_ in enumerate(self._op_ids) if launched[id_ & last_bits]]:
            if external := self._op_ids[number]:
                op = self.ops[number]
                self.ops[number] = Launcher(op.name, op.start, op.end, op.thread, external)
        self._op_ids = array("I")

    def _shape_ops(self) -> None:
        for number, shapes in self._op_shapes.items():
            op = self.ops[number]
            self.ops[number] = Shaped(op.name, op.start, op.end, op.thread, op.external, shapes)
        self._op_shapes = {}

    def _nodes(self) -> Iterator[Node]:
        """The backward ops of the engine, and the ops of their sequence numbers. Others carry
        numbers as well, and lead nowhere."""
        numbers = list(zip(*self._sequences, strict=True))
        roots = {index for index, _, _ in numbers if self.ops[index].name.startswith(EVALUATE)}
        wanted = {sequence for index, sequence, _ in numbers if index in roots}
        for index, sequence, thread in numbers:
            if index in roots or (not thread and sequence in wanted):
                yield Node(self.ops[index], sequence, thread or None)

    def _judge_zeros(self) -> None:
        """0 is a moment like others where a recording's times begin near it; elsewhere it stands
        for a time that was lost."""
        if not self._zeros:
            return
        of_cpu: list[tuple[UntimedSort, list[Any]]] = [
            ("region", self.annotations),
            ("op", self.ops),
            ("call", self.calls),
        ]
        kept = chain(*(ones for _, ones in of_cpu), self.gpu)
        if min((abs(one.start) for one in kept if one.start), default=0) < FAR:
            return
        for sort, ones in of_cpu:
            self.untimed += [
                Untimed(sort, o.name, o.thread, getattr(o, "correlation", None), o.external)
                for o in ones
                if o.start == 0
            ]
            ones[:] = [one for one in ones if one.start != 0]
        self.gpu = [
            msgspec.structs.replace(one, start=None, duration=None) if one.start == 0 else one
            for one in self.gpu
        ]

    def trace(self, path: Path) -> Trace:
        self._mixed = self._mixed or (len(self._processes) > 1 and self._in_order)
        self._pair()
        self._identify_ops()
        self._shape_ops()
        nodes = tuple(self._nodes())
        self._judge_zeros()
        self._graphs = {call.correlation for call in self.calls if call.launches_graph}
        if self._old:
            raise UserError(
                f"{shown(path)}: unsupported old Kineto schema (categories Operator, Runtime, "
                "Kernel); record again with a torch of 2022 or newer"
            )
        devices = self._devices if isinstance(self._devices, list) else []
        return Trace(
            path=path,
            story=read_story(self._story),
            devices=tuple(device for device in devices if isinstance(device, dict)),
            annotations=_emptied(self.annotations),
            ops=_emptied(self.ops),
            calls=_emptied(self.calls),
            gpu=self._owned(),
            processes=tuple(self._processes),
            non_finite=self.non_finite,
            left_out=self.left_out,
            left_out_events=self.left_out_events,
            untimed=tuple(self.untimed),
            odd_events=self.odd_events,
            unread_work=self.unread_work,
            unpaired=self.unpaired,
            unread=tuple(sorted(self._unread.items(), key=lambda one: -one[1])),
            evaluates=any(str(name).startswith(EVALUATE) for name in self.once),
            nodes=nodes,
            arrows=tuple(chain.from_iterable(self._arrows.values())),
            frames=_emptied(self.frames),
            stacks=self.stacks,
            allocations=_emptied(self.allocations),
            job=_job(self._job),
        )

    def _owned(self) -> tuple[GpuEvent, ...]:
        """The GPU events, each with its process if that can be told."""
        if len(self._processes) > 1 and not self._mixed:
            return _emptied(self.gpu)
        process = None if self._mixed else next(iter(self._processes), None)
        if not self._mixed and self._strangers():
            return _emptied(self.gpu)
        for number, event in enumerate(self.gpu):
            if event.process != process:
                self.gpu[number] = msgspec.structs.replace(event, process=process)
        return _emptied(self.gpu)

    def _strangers(self) -> bool:
        """Whether a part of GPU events alone repeats the ids of the only process that has CPU
        events: then it is another process's. A CUDA graph's kernels carry one id on one GPU."""
        devices: dict[int | None, set] = defaultdict(set)  # by id, of those that have a process
        for event in self.gpu:
            if event.process is not None:
                devices[event.correlation].add(event.device)
        if not any(
            event.correlation not in self._graphs or event.device not in devices[event.correlation]
            for event in self.gpu
            if event.process is None and event.correlation in devices and event.correlation
        ):
            return False
        for number, event in enumerate(self.gpu):
            if event.process is None:
                self.gpu[number] = msgspec.structs.replace(event, process=STRANGER)
        return True


def _job(told: Any) -> Job | None:
    if not isinstance(told, dict):
        return None
    return Job(*(_count(told.get(name)) for name in ("rank", "world_size", "pg_count")))


def _emptied(things: list) -> tuple:
    """Its things as a tuple; the list's own memory is free before the next one is made."""
    found = tuple(things)
    things.clear()
    return found


def _foot(text: bytes, decoders: _Decoders) -> tuple[bytes, bytes]:
    """The end of a file, cut where its list of events ends; if it does, and what follows is
    sound. It is near the end: of many lists only the last are tried."""
    ends = deque(re.finditer(rb"(?<=\})\s*\]", text), maxlen=10 * TRIES)
    for end in ends:
        foot = text[end.start() :]
        for opening in (pieces.OPENING, b"[") if len(foot) < MOST_OF_A_FIELD else ():
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                decoders.decode(opening + foot)
                return text[: end.start()], foot
    return text, b""


def _gpu_event(
    event: _Event, name: str, start: int | None, duration: int | None, events: _Events
) -> GpuEvent:
    once = events.once
    args = event.args or _NO_ARGS
    device, stream = args.device, args.stream
    if args.original_stream is not None:
        stream = args.original_stream
    # Numbers, nearly always: each is asked for its class here, for a call takes longer.
    correlation, external, registers = args.correlation, args.external, args.registers
    if correlation.__class__ is not int or correlation <= 0:
        correlation = _correlation(args)
    if external.__class__ is not int or not 0 < external < 1 << 63:
        external = _external(args)
    if registers.__class__ is not int or registers < 0:
        registers = _count(registers)
    shared, size = args.shared_memory, args.bytes
    if shared.__class__ is not int or shared < 0:
        shared = _count(shared)
    if size is not None:
        size = _count(size)
    return GpuEvent(
        GPU[str(event.cat)],
        name,
        start,
        None if start is None else duration,
        device if device.__class__ is int else _id(event.pid if device is None else device),
        stream if stream.__class__ is int else _id(event.tid if stream is None else stream),
        None if correlation is None else events.shared(correlation),
        events.process,
        events.sizes(args.grid),
        events.sizes(args.block),
        registers,
        None if shared is None else once.setdefault(shared, shared),
        None if args.occupancy is None else _number(args.occupancy),
        None if size is None else once.setdefault(size, size),
        None if external is None else events.shared(external),
        None if args.collective is None else _collective(args, once),
        None if args.graph_node is None else _text(args.region),
    )


def _device(event: _UsualEvent) -> int | str | None:
    return _id(event.pid if event.args.device is None else event.args.device)


def _collective(args: "_Args | _UsualArgs", once: dict) -> Collective:
    found = Collective(
        str(args.collective),
        _text(args.dtype),
        _count(args.elements_in),
        _count(args.elements_out),
        _text(args.group) or _text(args.group_name),
        _count(args.group_size),
        _text(args.ranks),
    )
    return once.setdefault(found, found)


def _text(value: Any) -> str | None:
    return None if value is None else value if value.__class__ is str else str(value)


def _correlation(args: "_Args | _UsualArgs | None") -> int | None:
    """The id that joins a launch to its work; 0 means none."""
    return (_count(args.correlation) or None) if args else None


def _external(args: "_Args | _UsualArgs | None") -> int | None:
    if not args:
        return None
    number = _count(args.external_old if args.external is None else args.external)
    return number if number and number < 1 << 63 else None


def _json(raw: msgspec.Raw) -> Any:
    """What a field of the file's head or foot holds; None for more than anybody reads."""
    if memoryview(raw).nbytes > MOST_OF_A_FIELD:
        return None
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:  # a number beyond what can be held
        return None


_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}", re.A)


def _id(value: Any) -> int | str | None:
    """A number or text. One row spells a thread "5100" and the next 5100: it is one thread."""
    if value.__class__ is int or value is None:
        return value
    if value.__class__ is float and value.is_integer():
        return int(value)
    text = value if value.__class__ is str else str(value)
    return int(text) if _INTEGER.fullmatch(text) else text


def _threads_among(events: list[_UsualEvent]) -> set[tuple]:
    """Process and thread of each, as they are written; of most pieces of a file it is one."""
    pids, tids = {event.pid for event in events}, {event.tid for event in events}
    if len(pids) == len(tids) == 1:
        return {(pids.pop(), tids.pop())}
    return {(event.pid, event.tid) for event in events}


def _all_nanoseconds(microseconds: list[Any]) -> list[int]:
    """Of moments that floats hold to the nanosecond."""
    if microseconds and min(microseconds) * 1000 >= WHOLE:
        return [int(us * 1000) for us in microseconds]
    return [_nanoseconds(us) or 0 for us in microseconds]


def _durations(events: list[_UsualEvent]) -> list[int | None]:
    return [
        int(us * 1000 + 0.5) if us is not None and -0.0005 < us < LONG_US else None
        for us in [event.dur for event in events]
    ]


def _nanoseconds(microseconds: float | Decimal | None) -> int | None:
    """None also for what is no moment: NaN written as text, or beyond 64 bits."""
    if microseconds is None:
        return None
    if isinstance(microseconds, float):
        if 0 <= microseconds < EXACT:
            ns = microseconds * 1000
            if ns >= WHOLE:
                return int(ns)
            if microseconds < SHORT:
                return int(ns + 0.5)
            whole = int(microseconds)  # on its own: a thousand times as much is rounded
            return whole * 1000 + round((microseconds - whole) * 1000)
        if -EXACT < microseconds < 0:
            return -(_nanoseconds(-microseconds) or 0)
        if not isfinite(microseconds) or abs(microseconds) >= LONGEST:
            return None
        raise _NotExact
    if not microseconds.is_finite() or abs(microseconds) >= LONGEST:
        return None
    return round(microseconds * 1000)


def _number(value: Any) -> float | int | None:
    if value.__class__ is int or value is None:
        return value
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value == value and abs(value) != float("inf") else None


def _count(value: Any) -> int | None:
    if value is None:
        return None
    if value.__class__ is int and value >= 0:
        return value
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number % 1 == 0 else None


def _sizes(value: Iterable) -> tuple[int, ...] | None:
    sizes = known(map(_count, value))
    return tuple(sizes) if sizes else None
