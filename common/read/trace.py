"""Trace file → regions, CPU ops, launch calls and GPU events. The only parser.

It knows what PyTorch's profiler (Kineto) writes: Chrome trace JSON, plain or gzip, told apart by
content. Times become whole nanoseconds: through floats where they are exact, else through decimals,
for microseconds since 1970 with three decimals do not fit a float.

A file longer than a block is decoded in pieces (pieces.py), and only what is work is kept: a
quarter of the memory of a whole decode. A fault is found in its piece and placed in the file
(faults.py).

Files of several ranks are put together one behind the other. They count their correlation ids each
for itself, so a GPU event is told which process launched it: the one whose part of the file it
stands in. Where no metadata parts them, or they are mixed, by sorting say, it is unknown.

    cat               what it is here
    user_annotation   a `record_function` range              → annotations
    cpu_op            an operator, on the CPU                → ops
    cuda_runtime,
    cuda_driver       a call into CUDA (or HIP)              → calls
    xpu_…, privateuse1_…   the same of other vendors         → calls
    kernel, gpu_memcpy,
    gpu_memset        work on the GPU                        → gpu
    gpu_user_annotation, cuda_sync, python_function, ac2g and others: drawn by viewers, no work
"""

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from ..cli import UserError, shown
from ..story import METADATA_KEY, Story, read_story
from . import faults, pieces
from .pieces import MAX_GB, Blocks, Piece
from .privacy import Finding, Scan

CALLS = {
    f"{maker}_{layer}"
    for maker in ("cuda", "xpu", "privateuse1")
    for layer in ("runtime", "driver")
}
Sort: TypeAlias = Literal["kernel", "copy", "memset"]
GPU: dict[str, Sort] = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
OLD_CATEGORIES = {"Operator", "Runtime", "Kernel"}  # before torch 1.12


# Structs that the garbage collector need not look at: less memory and time than dataclasses.
class Span(msgspec.Struct, frozen=True, gc=False):
    """A range on a CPU thread. `end` is None when the profiler stopped before the range did."""

    name: str
    start: int  # ns
    end: int | None  # ns
    thread: tuple  # (pid, tid)


class Call(msgspec.Struct, frozen=True, gc=False):
    """A call into the CUDA runtime or driver. `correlation` is the id that its GPU work carries."""

    name: str
    start: int
    thread: tuple
    correlation: int | None

    @property
    def launches(self) -> bool:
        """Whether it starts kernels: cudaLaunchKernel, cuLaunchKernelEx, hipModuleLaunchKernel…"""
        return "Launch" in self.name and "HostFunc" not in self.name

    @property
    def launches_graph(self) -> bool:
        return "GraphLaunch" in self.name


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

    @property
    def profiler_steps(self) -> int:
        return sum(span.name.startswith("ProfilerStep#") for span in self.annotations)

    @property
    def labels(self) -> Counter:
        """How often each `record_function` label stands in the trace, without the profiler's."""
        return Counter(s.name for s in self.annotations if not s.name.startswith("ProfilerStep#"))


Number = TypeVar("Number", float, Decimal)


class _Args(
    msgspec.Struct,
    gc=False,
    rename={
        "registers": "registers per thread",
        "shared_memory": "shared memory",
        "occupancy": "est. achieved occupancy %",
    },
):
    # Any: other profilers write numbers as text, and "N/A"; `_number` sorts that out.
    correlation: Any = None
    device: Any = None
    stream: Any = None
    original_stream: Any = None  # where the kernels of a CUDA graph were moved to one lane
    grid: Any = None
    block: Any = None
    registers: Any = None
    shared_memory: Any = None
    occupancy: Any = None
    bytes: Any = None


class _Event(msgspec.Struct, Generic[Number], gc=False):
    ph: Any = None
    cat: str | None = None
    name: Any = None
    ts: Number | None = None  # of either kind: also a number written as text
    dur: Number | None = None
    pid: Any = None
    tid: Any = None
    args: _Args | None = None


class _File(msgspec.Struct, Generic[Number], gc=False):
    traceEvents: list[_Event[Number]]
    story: Any = msgspec.field(default=None, name=METADATA_KEY)
    deviceProperties: Any = None


class _Decoders(NamedTuple):
    events: msgspec.json.Decoder
    file: msgspec.json.Decoder

    def decode(self, data: bytes) -> tuple[_File, int]:
        """A trace, and how many of its numbers are missing, written as NaN or Infinity."""
        # The format's other form: the events alone.
        decoder = self.events if re.match(rb"\s*\[", data) else self.file
        missing = 0
        try:
            found = decoder.decode(data)
        except (msgspec.DecodeError, RecursionError):
            sound, missing = faults.without_non_finite(data)
            if not missing:
                raise
            found = decoder.decode(sound)
        return (_File(found) if isinstance(found, list) else found), missing


def _decoders(number: type) -> _Decoders:
    return _Decoders(
        msgspec.json.Decoder(list[_Event[number]], strict=False),
        msgspec.json.Decoder(_File[number], strict=False),
    )


# Microseconds below which a float keeps every nanosecond. The profiler counts from the start of a
# quarter: 8e12 at most. Older versions count from 1970.
EXACT = 1 << 43
SHORT = 1 << 40  # … and a thousand times as much does too
LONGEST = 10**16  # microseconds, in nanoseconds still 64 bits
FLOATS, DECIMALS = _decoders(float), _decoders(Decimal)


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

    scan = Scan()

    def blocks() -> Iterator[bytes]:
        nonlocal scan
        scan = Scan()
        for block in pieces.utf8(path, pieces.read_blocks(path, max_gb, salvage, progress)):
            scan.add(block)
            yield block

    def attempt(decoders: _Decoders) -> Trace:
        try:
            try:
                return _read(path, blocks, pieces.cut(blocks()), decoders)
            except pieces.NotInPieces:
                return _read(path, blocks, pieces.whole(path, blocks()), decoders)
        except UserError:
            if salvage:  # only now: a sound file loses nothing
                with contextlib.suppress(pieces.NotInPieces):  # not even a list of events is there
                    return _read(path, blocks, pieces.cut(blocks(), True), decoders, salvage=True)
            raise

    try:
        found = attempt(FLOATS)
    except _NotExact:
        found = attempt(DECIMALS)
    return replace(found, private=scan.found())


def _read(
    path: Path, blocks: Blocks, parts: Iterator[Piece], decoders: _Decoders, salvage=False
) -> Trace:
    events, begun = _Events(), None
    for piece in parts:
        if begun:
            piece = piece._replace(start=begun.start, text=begun.text + begun.gap + piece.text)
            begun = None
        try:
            events.add(*decoders.decode(piece.json))
        except (msgspec.DecodeError, RecursionError) as error:
            unfinished = not piece.last and re.search("truncated|trailing", str(error))
            if unfinished and 0 < len(piece.text) < pieces.MOST:
                begun = piece  # cut inside an event, or behind the list: it goes on
            elif salvage:
                events.add_sound(piece, decoders)
            elif unfinished:
                raise pieces.NotInPieces from error
            else:
                raise faults.refusal(path, blocks, error, piece, events.count) from error
    return events.trace(path)


class _Events:
    """Collects what is work. Names and threads are kept once each, however often they occur."""

    def __init__(self) -> None:
        self.annotations: list[Span] = []
        self.ops: list[Span] = []
        self.calls: list[Call] = []
        self.gpu: list[GpuEvent] = []
        self.count = self.non_finite = self.left_out = self.left_out_events = 0
        self._story: Any = None
        self._devices: Any = None
        self._timed = self._old = False
        self._once: dict = {}
        self._threads: dict = {}
        self._processes: list = []  # in the order of their parts of the file
        self._process: Any = None  # whose part this is; None where none has begun
        self._mixed = False  # not every process has a part of its own

    def add(self, file: _File, missing: int) -> None:
        self.count += len(file.traceEvents)
        self.non_finite += missing
        self._story = self._story if file.story is None else file.story
        self._devices = self._devices if file.deviceProperties is None else file.deviceProperties
        once, threads = self._once, self._threads
        for event in file.traceEvents:
            if event.ph != "X":
                if event.ph == "M":  # whoever comes next is yet to be seen
                    self._process = None
                continue
            self._timed = True
            category = event.cat
            if category in GPU:
                self.gpu.append(_gpu_event(event, once, self._process))
                continue
            if category != "cpu_op" and category != "user_annotation" and category not in CALLS:
                self._old = self._old or category in OLD_CATEGORIES
                continue
            name = event.name if event.name.__class__ is str else str(event.name)
            name = once.setdefault(name, name)
            start = _nanoseconds(event.ts) or 0
            try:
                thread = threads[event.pid, event.tid]
            except (KeyError, TypeError):
                thread = _id(event.pid), _id(event.tid)
                thread = threads.setdefault(thread, thread)
            if thread[0] is not self._process:
                self._enter(thread[0])
            if category in CALLS:
                self.calls.append(Call(name, start, thread, _correlation(event.args)))
                continue
            duration = _nanoseconds(event.dur)
            # A range still open when the profiler stopped is written with -1 or, by newer
            # versions, 0.
            end = start + duration if duration and duration > 0 else None
            kept = self.ops if category == "cpu_op" else self.annotations
            kept.append(Span(name, start, end, thread))

    def _enter(self, process: Any) -> None:
        if process not in self._processes:
            # Every file names its processes and threads, before or behind its events.
            self._mixed = self._mixed or bool(self._processes) and self._process is not None
            self._processes.append(process)
        self._mixed = self._mixed or process != self._processes[-1]
        self._process = process

    def add_sound(self, piece: Piece, decoders: _Decoders) -> None:
        """What is sound in a piece that is not: single events, and the foot behind them."""
        if not piece.text:  # the head
            self.left_out += len(piece.opening)
            return
        text, foot = _foot(piece.text, decoders) if piece.last else (piece.text, b"")
        for one in pieces.BETWEEN.split(text):
            # With whatever stands behind the last one, if that is no foot.
            ends = (match.end() for match in re.finditer(rb"\}(?=\s*\])", one))
            for end in (len(one), *ends):
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

    def trace(self, path: Path) -> Trace:
        if not self._timed:
            what = "no timed events (only metadata)" if self.count else "no events"
            raise UserError(
                f"{shown(path)}: the trace holds {what}; was anything run while recording?"
            )
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
            annotations=tuple(self.annotations),
            ops=tuple(self.ops),
            calls=tuple(self.calls),
            gpu=self._owned(),
            processes=tuple(self._processes),
            non_finite=self.non_finite,
            left_out=self.left_out,
            left_out_events=self.left_out_events,
        )

    def _owned(self) -> tuple[GpuEvent, ...]:
        """The GPU events, each with its process if that can be told."""
        if len(self._processes) > 1 and not self._mixed:
            return tuple(self.gpu)
        process = None if self._mixed else next(iter(self._processes), None)
        return tuple(
            event if event.process == process else msgspec.structs.replace(event, process=process)
            for event in self.gpu
        )


def _foot(text: bytes, decoders: _Decoders) -> tuple[bytes, bytes]:
    """The end of a file, cut where its list of events ends; if it does, and what follows is
    sound."""
    for end in re.finditer(rb"(?<=\})\s*\]", text):
        foot = text[end.start() :]
        for opening in (pieces.OPENING, b"["):
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                decoders.decode(opening + foot)
                return text[: end.start()], foot
    return text, b""


def _gpu_event(event: _Event, once: dict, process: Any) -> GpuEvent:
    args = event.args or _Args()
    start, duration = _nanoseconds(event.ts), _nanoseconds(event.dur)
    if not start or duration is None or duration < 0:
        start = start or None
        duration = None  # a lost record: its time is unknown, and must not count as 0
    name = event.name if event.name.__class__ is str else str(event.name)
    grid, block = _sizes(args.grid), _sizes(args.block)
    stream = args.stream if args.original_stream is None else args.original_stream
    return GpuEvent(
        sort=GPU[event.cat],
        name=once.setdefault(name, name),
        start=start,
        duration=duration,
        device=_id(event.pid if args.device is None else args.device),
        stream=_id(event.tid if stream is None else stream),
        correlation=_correlation(args),
        process=process,
        grid=once.setdefault(grid, grid),
        block=once.setdefault(block, block),
        registers=_count(args.registers),
        shared_memory=_count(args.shared_memory),
        reported_occupancy=_number(args.occupancy),
        bytes=_count(args.bytes),
    )


def _correlation(args: _Args | None) -> int | None:
    """The id that joins a launch to its work; 0 means none."""
    return (_count(args.correlation) or None) if args else None


_IDS = (int, str, type(None))  # named, for a union would be built anew for each event


def _id(value: Any) -> int | str | None:
    """A number or text as it stands; whatever else a file holds there, as text."""
    return value if isinstance(value, _IDS) else str(value)


def _nanoseconds(microseconds: float | Decimal | None) -> int | None:
    """None also for what is no moment: NaN written as text, or beyond 64 bits."""
    if microseconds is None:
        return None
    if microseconds.__class__ is float:
        if 0 <= microseconds < SHORT:
            return int(microseconds * 1000 + 0.5)
        if -EXACT < microseconds < EXACT:
            whole = int(microseconds)  # on its own: a thousand times as much may not fit
            return whole * 1000 + round((microseconds - whole) * 1000)
        if not isfinite(microseconds) or abs(microseconds) >= LONGEST:
            return None
        raise _NotExact
    if not microseconds.is_finite() or abs(microseconds) >= LONGEST:
        return None
    return round(microseconds * 1000)


def _number(value: Any) -> float | int | None:
    if isinstance(value, str):
        try:
            value = float(value) if "." in value else int(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if value == value and abs(value) != float("inf") else None


def _count(value: Any) -> int | None:
    if value.__class__ is int and value >= 0:
        return value
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number % 1 == 0 else None


def _sizes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    if {*map(type, value)} == {int} and min(value) >= 0:
        return tuple(value)
    sizes = tuple(map(_count, value))
    return None if None in sizes or not sizes else sizes
