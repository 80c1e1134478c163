"""Trace file → regions, CPU ops, launch calls and GPU events. The only parser.

It knows what PyTorch's profiler (Kineto) writes: Chrome trace JSON, plain or gzip, told apart by
content. Times become whole nanoseconds: through floats where they are exact, else through decimals,
for microseconds since 1970 with three decimals do not fit a float.

A file longer than a block is decoded in pieces cut between two events, and only what is work is
kept: a quarter of the memory of a whole decode. A fault is found in its piece and placed in the
file; a layout that cannot be cut sends the reader back to the whole file as one piece.

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

import codecs
import contextlib
import gzip
import re
import zlib
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
from .privacy import Finding, Scan

CALLS = {
    f"{maker}_{layer}"
    for maker in ("cuda", "xpu", "privateuse1")
    for layer in ("runtime", "driver")
}
Sort: TypeAlias = Literal["kernel", "copy", "memset"]
GPU: dict[str, Sort] = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
OLD_CATEGORIES = {"Operator", "Runtime", "Kernel"}  # before torch 1.12

BLOCK = 1 << 20  # bytes read at once: more would not stay in the caches
MOST = 16 * BLOCK  # of one piece
WHOLE = 1 << 30  # bytes of a file that cannot be cut
MAX_GB = 4  # that a gzip file may unpack to


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
            sound, missing = _without_non_finite(data)
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


class _NotInPieces(Exception):
    """The file cannot be cut."""


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

    def attempt(decoders: _Decoders) -> Trace:
        try:
            try:
                return _read(path, blocks, _pieces(blocks()), decoders)
            except _NotInPieces:
                return _read(path, blocks, _whole(path, blocks()), decoders)
        except UserError:
            if salvage:  # only now: a sound file loses nothing
                with contextlib.suppress(_NotInPieces):  # not even a list of events is there
                    return _read(path, blocks, _pieces(blocks(), True), decoders, salvage=True)
            raise

    try:
        found = attempt(FLOATS)
    except _NotExact:
        found = attempt(DECIMALS)
    return replace(found, private=scan.found())


Blocks = Callable[[], Iterator[bytes]]


def _read(
    path: Path, blocks: Blocks, pieces: Iterator["_Piece"], decoders: _Decoders, salvage=False
) -> Trace:
    events, begun = _Events(), None
    for piece in pieces:
        if begun:
            piece = piece._replace(start=begun.start, text=begun.text + begun.gap + piece.text)
            begun = None
        try:
            events.add(*decoders.decode(piece.json))
        except (msgspec.DecodeError, RecursionError) as error:
            unfinished = not piece.last and re.search("truncated|trailing", str(error))
            if unfinished and 0 < len(piece.text) < MOST:
                begun = piece  # cut inside an event, or behind the list: it goes on
            elif salvage:
                events.add_sound(piece, decoders)
            elif unfinished:
                raise _NotInPieces from error
            else:
                raise _refusal(path, blocks, error, piece, events.count) from error
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

    def add_sound(self, piece: "_Piece", decoders: _Decoders) -> None:
        """What is sound in a piece that is not: single events, and the foot behind them."""
        if not piece.text:  # the head
            self.left_out += len(piece.opening)
            return
        text, foot = _foot(piece.text, decoders) if piece.last else (piece.text, b"")
        for one in _BETWEEN.split(text):
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
            self._try(OPENING + foot, decoders)

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
OPENING = b'{"traceEvents":['
# Between two events, however the file is laid out. No string can hold this: its quotes would be
# escaped. A list of objects inside an event can, and then the piece does not decode.
_BETWEEN = re.compile(rb'(?<=\})\s*,(?=\s*\{\s*"\w+"\s*:)')


class _Piece(NamedTuple):
    """Text that stands in a file from byte `start` on: the head, some events, or the events at the
    end with the foot behind them. `opening` and `closing` make it JSON."""

    start: int
    opening: bytes
    text: bytes
    closing: bytes = b""
    gap: bytes = b""  # between this piece and the next

    @property
    def last(self) -> bool:
        return not self.closing

    @property
    def json(self) -> bytes:
        return self.opening + self.text + self.closing if self.opening else self.text


def _pieces(blocks: Iterator[bytes], salvage: bool = False) -> Iterator[_Piece]:
    """Raises _NotInPieces when there would be only one, unless `salvage` asks for whatever there
    is."""
    rest = next(blocks, b"")
    begin = _LIST.search(rest)
    if not begin or len(rest) < BLOCK and not salvage:
        raise _NotInPieces
    start = begin.end()
    head, rest = rest[:start], rest[start:]
    alone = b"{" not in head  # the format's other form: the events, and nothing around them
    yield _Piece(start, head, b"", b"]" if alone else b"]}")
    for block in blocks:
        rest += block
        if cut := _last_cut(rest):
            yield _Piece(start, b"[", rest[: cut.start()], b"]", cut[0])
            start, rest = start + cut.end(), rest[cut.end() :]
        elif len(rest) > MOST:
            if not salvage:
                raise _NotInPieces
            yield _Piece(start, b"[", rest, b"]")  # with no end of an event in it: it is lost
            start, rest = start + len(rest), b""
    yield _Piece(start, b"[" if alone else OPENING, rest)


def _last_cut(text: bytes) -> re.Match | None:
    cut = None
    for cut in _BETWEEN.finditer(text, max(0, len(text) - max(BLOCK >> 6, 1 << 12))):  # noqa: B007
        pass
    return cut


def _whole(path: Path, blocks: Iterator[bytes]) -> Iterator[_Piece]:
    data = bytearray()
    for block in blocks:
        data += block
        if len(data) > WHOLE:
            raise UserError(
                f"{shown(path)}: more than {WHOLE >> 30} GB, and no list of events to be read "
                "one by one; is it a trace?"
            )
    yield _Piece(0, b"", data)


def _foot(text: bytes, decoders: _Decoders) -> tuple[bytes, bytes]:
    """The end of a file, cut where its list of events ends; if it does, and what follows is
    sound."""
    for end in re.finditer(rb"(?<=\})\s*\]", text):
        foot = text[end.start() :]
        for opening in (OPENING, b"["):
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                decoders.decode(opening + foot)
                return text[: end.start()], foot
    return text, b""


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


def _refusal(path: Path, blocks: Blocks, error: Exception, piece: _Piece, before: int) -> UserError:
    """What is wrong in a piece, and where in the file; `before` it stand so many events."""
    said = str(error)
    if isinstance(error, msgspec.ValidationError):
        if "missing required field `traceEvents`" in said:
            return UserError(f"{shown(path)}: JSON, but no trace: it has no traceEvents")
        said = re.sub(
            r"\$(?:\.traceEvents)?\[(\d+)\]",
            lambda match: f"$.traceEvents[{before + int(match[1])}]",
            said,
            count=1,
        )
        return UserError(f"{shown(path)}: not a trace as the profiler writes it: {said}")
    data = piece.json
    if "truncated" in said:
        end = piece.start + len(piece.text)
        inside = "unterminated string at end of file" if _open_string(data) else "missing ]"
        return UserError(
            f"{shown(path)}: truncated JSON (unexpected end of file in line "
            f"{_line_and_column(blocks(), end)[0]}: {inside}); the file looks incomplete, record "
            "or copy it again"
        )
    if not (found := re.search(r"\(byte (\d+)\)", said)):
        return UserError(f"{shown(path)}: not valid JSON ({said})")
    what, at = _why_not_json(data, _before_repair(data, int(found[1])), said)
    line, column = _line_and_column(blocks(), piece.start - len(piece.opening) + at)
    return UserError(f"{shown(path)}: not valid JSON: {what} in line {line}, column {column}")


def _before_repair(data: bytes, at: int) -> int:
    """Where a byte stood before NaN and Infinity became null."""
    for match in _NON_FINITE.finditer(data):
        if match.start() >= at:
            break
        if match[1]:
            at += len(match[1]) - len(b"null")
    return at


def _line_and_column(blocks: Iterator[bytes], at: int) -> tuple[int, int]:
    """Of a byte, both from 1. Reads the file again: counting lines would cost every sound one."""
    line, start, read = 1, 0, 0
    for block in blocks:
        block = block[: at - read]
        line += block.count(b"\n")
        if b"\n" in block:
            start = read + block.rindex(b"\n") + 1
        read += len(block)
        if read == at:
            break
    return line, at - start + 1


def _why_not_json(data: bytes, at: int, error: str) -> tuple[str, int]:
    """What is wrong, and at which byte: the decoder has read on, past the backslash or four letters
    that might have been null."""
    if "escape" in error:
        at = data.rfind(b"\\", 0, at)
    elif word := re.search(rb"[:,\[\s]([tfn]\w*)\W*\Z", data[max(0, at - 6) : at]):
        if word[1] not in (b"true", b"false", b"null"):
            at -= len(word[0]) - 1
    byte = data[at : at + 1]
    if byte in b"]}" and data[:at].rstrip().endswith(b","):
        return f"trailing comma before {byte.decode()}", at
    if byte and byte < b" ":
        return f"raw control character 0x{byte[0]:02x} in a string", at
    if "escape" in error:
        return "invalid \\escape: an unescaped Windows path?", at
    if token := re.match(rb"[-+]?[A-Za-z_][\w.]*", data[at : at + 64]):
        return f"unexpected token `{token[0][:20].decode()}`", at
    return f"unexpected {byte.decode('latin-1')!r}", at


def _open_string(data: bytes) -> bool:
    last_line = data[data.rfind(b"\n") + 1 :]
    return len(re.findall(rb'(?<!\\)(?:\\\\)*"', last_line)) % 2 == 1


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
