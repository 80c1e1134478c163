"""Trace file → regions, CPU ops, launch calls and GPU events. The only parser.

It knows what PyTorch's profiler (Kineto) writes: Chrome trace JSON, plain or gzip, told apart by
content. Times become whole nanoseconds: epoch microseconds with three decimals do not fit a float.

A file longer than a block is decoded in pieces cut between two events, and only what is work is
kept: a third of the memory of a whole decode. A piece that does not decode (a fault, or a layout
that cannot be cut) sends the reader back to the whole file, so that there is one place which knows
what is wrong in which line.

    cat               what it is here
    user_annotation   a `record_function` range              → annotations
    cpu_op            an operator, on the CPU                → ops
    cuda_runtime,
    cuda_driver       a call into CUDA (or HIP)              → calls
    kernel, gpu_memcpy,
    gpu_memset        work on the GPU                        → gpu
    gpu_user_annotation, cuda_sync, python_function, ac2g and others: drawn by viewers, no work
"""

import codecs
import contextlib
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import msgspec

from common.cli import UserError, shown
from common.privacy import Finding, Scan

METADATA_KEY = "profiling_attention"  # the entry in which our own scripts tell their story

CALLS = {"cuda_runtime", "cuda_driver", "xpu_runtime"}
GPU = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
OLD_CATEGORIES = {"Operator", "Runtime", "Kernel"}  # before torch 1.12

BLOCK = 1 << 20  # bytes read at once: more would not stay in the caches
MAX_GB = 16  # that a gzip file may unpack to


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

    sort: Literal["kernel", "copy", "memset"]
    name: str
    start: int | None  # ns
    duration: int | None  # ns
    device: Any
    stream: Any
    correlation: int | None
    grid: tuple[int, ...] | None
    block: tuple[int, ...] | None
    registers: int | None  # of a thread
    shared_memory: int | None  # bytes of a block
    reported_occupancy: float | None  # percent, the profiler's own estimate
    bytes: int | None

    @property
    def lane(self) -> tuple:
        return self.device, self.stream

    @property
    def end(self) -> int | None:
        return None if self.start is None or self.duration is None else self.start + self.duration


@dataclass(frozen=True, slots=True)
class Trace:
    path: Path
    about: dict  # what our scripts say of their run; empty for other people's traces
    devices: tuple[dict, ...]  # Kineto's deviceProperties
    annotations: tuple[Span, ...]
    ops: tuple[Span, ...]
    calls: tuple[Call, ...]
    gpu: tuple[GpuEvent, ...]
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
    grid: Any = None
    block: Any = None
    registers: Any = None
    shared_memory: Any = None
    occupancy: Any = None
    bytes: Any = None


class _Event(msgspec.Struct, gc=False):
    ph: Any = None
    cat: str | None = None
    name: Any = None
    # Decimal keeps every digit, and reads numbers written as text.
    ts: Decimal | None = None
    dur: Decimal | None = None
    pid: Any = None
    tid: Any = None
    args: _Args | None = None


class _Device(msgspec.Struct):
    type: str
    name: str


class _Versions(msgspec.Struct):
    torch: str


class _Story(msgspec.Struct):
    """What a reader may rely on when a trace tells a story at all."""

    script: str
    title: str
    variant: str
    label: str
    shape: tuple[int, int, int, int]
    dtype: str
    mode: str
    device: _Device
    versions: _Versions
    peak_bytes: int | None = None


class _File(msgspec.Struct, gc=False):
    traceEvents: list[_Event]
    about: Any = msgspec.field(default=None, name=METADATA_KEY)
    deviceProperties: Any = None


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
        for block in _utf8(path, _blocks(path, max_gb, salvage, progress)):
            scan.add(block)
            yield block

    trace = _read(path, blocks, salvage)
    return replace(trace, private=scan.found())


def _read(path: Path, blocks: Callable[[], Iterator[bytes]], salvage: bool) -> Trace:
    try:
        return _read_pieces(path, blocks())
    except (_NotInPieces, msgspec.DecodeError, RecursionError):
        pass
    if not salvage:
        return _read_whole(path, blocks())
    try:
        return _read_whole(path, blocks())
    except UserError:
        with contextlib.suppress(_NotInPieces):  # not even a list of events is there
            return _read_sound(path, blocks())
        raise


def _read_pieces(path: Path, blocks: Iterator[bytes]) -> Trace:
    events = _Events()
    for head, piece, last in _pieces(blocks):
        data, count = _without_non_finite(head + piece if last else b"[" + piece + b"]")
        events.non_finite += count
        if last:
            file = _decoded(data)
            events.add(file.traceEvents)
        else:
            events.add(_EVENTS.decode(data))
    return events.trace(path, file)


def _read_whole(path: Path, blocks: Iterator[bytes]) -> Trace:
    data = bytearray()
    for block in blocks:
        data += block
    data, non_finite = _without_non_finite(data)
    file = _decode(path, data)
    events = _Events(non_finite)
    events.add(file.traceEvents)
    return events.trace(path, file)


def _read_sound(path: Path, blocks: Iterator[bytes]) -> Trace:
    """The events that are sound in a file that is not."""
    events, before, about = _Events(), b"", _File([])
    for head, piece, _ in _pieces(blocks, sound=True):
        before = head
        piece, count = _without_non_finite(piece)
        events.non_finite += count
        try:
            events.add(_EVENTS.decode(b"[" + piece + b"]"))
        except (msgspec.DecodeError, RecursionError):
            for one in _BETWEEN.split(piece):
                events.add_sound(one)
    try:
        about = _FILE.decode(before + b"]}") if before.strip() != b"[" else about
    except (msgspec.DecodeError, RecursionError):
        events.left_out += len(before)
    return events.trace(path, about)


class _NotInPieces(Exception):
    """The file is one piece, or cannot be cut."""


class _Events:
    """Collects what is work. Names and threads are kept once each, however often they occur."""

    def __init__(self, non_finite: int = 0) -> None:
        self.annotations: list[Span] = []
        self.ops: list[Span] = []
        self.calls: list[Call] = []
        self.gpu: list[GpuEvent] = []
        self.non_finite = non_finite
        self.left_out = self.left_out_events = 0
        self._any = self._timed = self._old = False
        self._once: dict = {}

    def add(self, events: list["_Event"]) -> None:
        once = self._once
        for event in events:
            if event.ph != "X":
                continue
            self._timed = True
            category = event.cat
            if category == "cpu_op":
                self.ops.append(_span(event, once))
            elif category in CALLS:
                self.calls.append(_call(event, once))
            elif category in GPU:
                self.gpu.append(_gpu_event(event, once))
            elif category == "user_annotation":
                self.annotations.append(_span(event, once))
            elif category in OLD_CATEGORIES:
                self._old = True
        self._any = self._any or bool(events)

    def add_sound(self, text: bytes) -> None:
        """One event, with whatever stands behind it at the end of the list."""
        for end in (len(text), *(m.end() for m in re.finditer(rb"\}", text[-4096:]))):
            try:
                self.add([_EVENT.decode(text[:end])])
            except (msgspec.DecodeError, RecursionError):
                continue
            self.left_out += len(text) - end
            return
        self.left_out += len(text)
        self.left_out_events += 1

    def trace(self, path: Path, file: "_File") -> Trace:
        if not self._timed:
            what = "no timed events (only metadata)" if self._any else "no events"
            raise UserError(
                f"{shown(path)}: the trace holds {what}; was anything run while recording?"
            )
        if self._old:
            raise UserError(
                f"{shown(path)}: unsupported old Kineto schema (categories Operator, Runtime, "
                "Kernel); record again with a torch of 2022 or newer"
            )
        devices = file.deviceProperties if isinstance(file.deviceProperties, list) else []
        return Trace(
            path=path,
            about=_about(file.about),
            devices=tuple(device for device in devices if isinstance(device, dict)),
            annotations=tuple(self.annotations),
            ops=tuple(self.ops),
            calls=tuple(self.calls),
            gpu=tuple(self.gpu),
            non_finite=self.non_finite,
            left_out=self.left_out,
            left_out_events=self.left_out_events,
        )


def _blocks(
    path: Path, max_gb: float, salvage: bool, progress: Callable[[float], None]
) -> Iterator[bytes]:
    """The file's bytes, unpacked if it is gzip."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size or 1
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            source = gzip.GzipFile(fileobj=file) if packed else file
            total = 0
            while block := _unpack(path, source, salvage) if packed else source.read(BLOCK):
                total += len(block)
                if packed and total > max_gb * 1e9:
                    raise UserError(
                        f"{shown(path)}: unpacks to more than {max_gb:g} GB; "
                        "--max-gb raises the limit"
                    )
                progress(min(1, file.tell() / size))
                yield block
            if not total and packed:
                raise UserError(f"{shown(path)}: empty trace (0 bytes after decompression)")
    except OSError as error:
        raise UserError(f"cannot read {shown(path)}: {error.strerror}") from error


def _unpack(path: Path, source: gzip.GzipFile, salvage: bool) -> bytes:
    block = bytearray()
    try:
        # Small bites: what stands before the damage is still given out.
        while len(block) < BLOCK and (bite := source.read1(min(BLOCK, 1 << 16))):
            block += bite
    except (EOFError, OSError, zlib.error) as error:
        if not salvage:
            raise UserError(f"{shown(path)}: damaged gzip ({error}); copy it again") from error
    return bytes(block)


def _utf8(path: Path, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The text as UTF-8 without a byte order mark."""
    decoder, blank = None, True
    for number, block in enumerate(blocks):
        if number == 0 and block.startswith((b"\xff\xfe", b"\xfe\xff")):
            # a shell's redirection on Windows
            decoder = codecs.getincrementaldecoder("utf-16")("replace")
        if decoder:
            block = decoder.decode(block).encode("utf-8", "replace")
        elif number == 0:
            block = block.removeprefix(b"\xef\xbb\xbf")
        blank = blank and not block.strip()
        yield block
    if decoder:
        yield decoder.decode(b"", final=True).encode()
    if blank:
        packed = _is_packed(path)
        raise UserError(
            f"{shown(path)}: empty trace (0 bytes{' after decompression' if packed else ''})"
        )


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


# Where the list of events begins; it stands in the file's first block.
_LIST = re.compile(rb'\A\s*\[|"traceEvents"\s*:\s*\[')
# Between two events, however the file is laid out. No string can hold this: its quotes would be
# escaped. A list of objects inside an event can, and then the piece does not decode.
_BETWEEN = re.compile(rb'(?<=\})\s*,(?=\s*\{\s*"(?:ph|name|cat|pid|tid|ts)"\s*:)')


def _pieces(blocks: Iterator[bytes], sound: bool = False) -> Iterator[tuple[bytes, bytes, bool]]:
    """(what stands before the events, some whole events, whether it is the last piece).

    The last piece ends as the file ends. Raises _NotInPieces when there would be only one, unless
    `sound` asks for whatever there is.
    """
    rest = next(blocks, b"")
    if not sound and len(rest) < BLOCK:
        raise _NotInPieces
    begin = _LIST.search(rest)
    if not begin:
        raise _NotInPieces
    head, rest = rest[: begin.end()], rest[begin.end() :]
    for block in blocks:
        rest += block
        cuts = list(_BETWEEN.finditer(rest, max(0, len(rest) - max(BLOCK >> 4, 1 << 14))))
        if not cuts and len(rest) > 16 * BLOCK:
            raise _NotInPieces
        if cuts:
            yield head, rest[: cuts[-1].start()], False
            rest = rest[cuts[-1].end() :]
    yield head, rest, True


# A string, or a number that Python's and JavaScript's writers print and JSON does not know.
_NON_FINITE = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?\b(?:Infinity|NaN)\b)', re.S)


def _without_non_finite(data: bytes) -> tuple[bytes, int]:
    """NaN and Infinity outside strings become null: missing. Returns the data and their count."""
    if b"NaN" not in data and b"Infinity" not in data:
        return data, 0
    count = 0

    def missing(match: re.Match) -> bytes:
        nonlocal count
        if match[1] is None:
            return match[0]
        count += 1
        return b"null"

    return _NON_FINITE.sub(missing, data), count


_EVENT = msgspec.json.Decoder(_Event, strict=False)
_EVENTS = msgspec.json.Decoder(list[_Event], strict=False)
_FILE = msgspec.json.Decoder(_File, strict=False)


def _decoded(data: bytes) -> _File:
    if re.match(rb"\s*\[", data):  # the format's other form: the events alone
        return _File(_EVENTS.decode(data))
    return _FILE.decode(data)


def _decode(path: Path, data: bytes) -> _File:
    try:
        return _decoded(data)
    except msgspec.ValidationError as error:
        if "missing required field `traceEvents`" in str(error):
            raise UserError(f"{shown(path)}: JSON, but no trace: it has no traceEvents") from error
        raise UserError(f"{shown(path)}: not a trace as the profiler writes it: {error}") from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UserError(f"{shown(path)}: {_why_not_json(data, str(error))}") from error


def _why_not_json(data: bytes, error: str) -> str:
    if "truncated" in error:
        tail = data.rstrip()
        line = data.count(b"\n") + 1
        inside = "unterminated string at end of file" if _open_string(tail) else "missing ]"
        return (
            f"truncated JSON (unexpected end of file in line {line}: {inside}); the file looks "
            "incomplete, record or copy it again"
        )
    found = re.search(r"\(byte (\d+)\)", error)
    if not found:
        return f"not valid JSON ({error})"
    at = int(found[1])
    # The decoder has read on: past the backslash, or four letters that might have been null.
    if "escape" in error:
        at = data.rfind(b"\\", 0, at)
    elif word := re.search(rb"[:,\[\s]([tfn]\w*)\W*\Z", data[max(0, at - 6) : at]):
        if word[1] not in (b"true", b"false", b"null"):
            at -= len(word[0]) - 1
    line = data.count(b"\n", 0, at) + 1
    column = at - data.rfind(b"\n", 0, at)
    byte = data[at : at + 1]
    if byte in b"]}" and data[:at].rstrip().endswith(b","):
        what = f"trailing comma before {byte.decode()}"
    elif byte and byte < b" ":
        what = f"raw control character 0x{byte[0]:02x} in a string"
    elif "escape" in error:
        what = "invalid \\escape: an unescaped Windows path?"
    elif token := re.match(rb"[-+]?[A-Za-z_][\w.]*", data[at:]):
        what = f"unexpected token `{token[0][:20].decode()}`"
    else:
        what = f"unexpected {byte.decode('latin-1')!r}"
    return f"not valid JSON: {what} in line {line}, column {column}"


def _open_string(data: bytes) -> bool:
    last_line = data[data.rfind(b"\n") + 1 :]
    return len(re.findall(rb'(?<!\\)(?:\\\\)*"', last_line)) % 2 == 1


def _about(story: Any) -> dict:
    """The story if it is whole; one that somebody cut or rewrote is as good as none."""
    try:
        msgspec.convert(story, _Story)
    except msgspec.ValidationError:
        return {}
    return story


def _span(event: _Event, once: dict) -> Span:
    start, duration = _nanoseconds(event.ts) or 0, _nanoseconds(event.dur)
    # A range still open when the profiler stopped is written with -1 or, by newer versions, 0.
    end = start + duration if duration and duration > 0 else None
    return Span(_name(event, once), start, end, _thread(event, once))


def _call(event: _Event, once: dict) -> Call:
    start = _nanoseconds(event.ts) or 0
    return Call(_name(event, once), start, _thread(event, once), _correlation(event.args))


def _gpu_event(event: _Event, once: dict) -> GpuEvent:
    args = event.args or _Args()
    start, duration = _nanoseconds(event.ts), _nanoseconds(event.dur)
    if not start or duration is None or duration < 0:
        start = start or None
        duration = None  # a lost record: its time is unknown, and must not count as 0
    grid, block = _sizes(args.grid), _sizes(args.block)
    return GpuEvent(
        sort=GPU[event.cat],
        name=_name(event, once),
        start=start,
        duration=duration,
        device=_id(args.device if args.device is not None else event.pid),
        stream=_id(args.stream if args.stream is not None else event.tid),
        correlation=_correlation(args),
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


def _name(event: _Event, once: dict) -> str:
    name = event.name if isinstance(event.name, str) else str(event.name)
    return once.setdefault(name, name)


def _thread(event: _Event, once: dict) -> tuple:
    with_types = event.pid.__class__, event.tid.__class__
    if with_types != _USUAL:
        return _id(event.pid), _id(event.tid)
    thread = event.pid, event.tid
    return once.setdefault(thread, thread)


_USUAL = (int, int)
_IDS = (int, str, type(None))  # named, for a union would be built anew for each event


def _id(value: Any) -> int | str | None:
    """A number or text as it stands; whatever else a file holds there, as text."""
    return value if isinstance(value, _IDS) else str(value)


_THOUSAND = Decimal(1000)


def _nanoseconds(microseconds: Decimal | None) -> int | None:
    """None also for what is no moment: NaN written as text, or beyond 64 bits."""
    if microseconds is None or not microseconds.is_finite() or microseconds.adjusted() > 15:
        return None
    return int(microseconds * _THOUSAND)


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
    number = _number(value)
    return int(number) if number is not None and number >= 0 and number % 1 == 0 else None


def _sizes(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list):
        return None
    sizes = tuple(map(_count, value))
    return None if None in sizes or not sizes else sizes
