"""Trace file → regions, CPU ops, launch calls and GPU events. The only parser.

It knows what PyTorch's profiler (Kineto) writes: Chrome trace JSON, plain or gzip, told apart by
content. Times become whole nanoseconds: epoch microseconds with three decimals do not fit a float.

    cat               what it is here
    user_annotation   a `record_function` range              → annotations
    cpu_op            an operator, on the CPU                → ops
    cuda_runtime,
    cuda_driver       a call into CUDA (or HIP)              → calls
    kernel, gpu_memcpy,
    gpu_memset        work on the GPU                        → gpu
    gpu_user_annotation, cuda_sync, python_function, ac2g and others: drawn by viewers, no work
"""

import gzip
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import msgspec

from common.cli import UserError, shown

METADATA_KEY = "profiling_attention"  # the entry in which our own scripts tell their story

CALLS = {"cuda_runtime", "cuda_driver", "xpu_runtime"}
GPU = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}
OLD_CATEGORIES = {"Operator", "Runtime", "Kernel"}  # before torch 1.12


@dataclass(frozen=True, slots=True)
class Span:
    """A range on a CPU thread. `end` is None when the profiler stopped before the range did."""

    name: str
    start: int  # ns
    end: int | None  # ns
    thread: tuple  # (pid, tid)


@dataclass(frozen=True, slots=True)
class Call:
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


@dataclass(frozen=True, slots=True)
class GpuEvent:
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


def read(path: Path) -> Trace:
    """Read a trace file.

    Raises UserError, in one line, for a file that cannot be read, is no JSON, is cut short, is no
    trace, or holds no timed event.
    """
    data = _json_bytes(path)
    data, non_finite = _without_non_finite(data)
    file = _decode(path, data)
    timed = [event for event in file.traceEvents if event.ph == "X"]
    if not timed:
        what = "no timed events (only metadata)" if file.traceEvents else "no events"
        raise UserError(f"{shown(path)}: the trace holds {what}; was anything run while recording?")
    if any(event.cat in OLD_CATEGORIES for event in timed):
        raise UserError(
            f"{shown(path)}: unsupported old Kineto schema (categories Operator, Runtime, Kernel); "
            "record again with a torch of 2022 or newer"
        )
    annotations, ops, calls, gpu = [], [], [], []
    for event in timed:
        if event.cat == "user_annotation":
            annotations.append(_span(event))
        elif event.cat == "cpu_op":
            ops.append(_span(event))
        elif event.cat in CALLS:
            calls.append(_call(event))
        elif event.cat in GPU:
            gpu.append(_gpu_event(event))
    devices = file.deviceProperties if isinstance(file.deviceProperties, list) else []
    return Trace(
        path=path,
        about=_about(file.about),
        devices=tuple(device for device in devices if isinstance(device, dict)),
        annotations=tuple(annotations),
        ops=tuple(ops),
        calls=tuple(calls),
        gpu=tuple(gpu),
        non_finite=non_finite,
    )


def _json_bytes(path: Path) -> bytes:
    """The file's JSON as UTF-8, unpacked if it is gzip."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot read {shown(path)}: {error.strerror}") from error
    packed = data.startswith(b"\x1f\x8b")
    if packed:
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            raise UserError(f"{shown(path)}: damaged gzip ({error}); copy it again") from error
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16")):
        if data.startswith(mark):  # a shell's redirection on Windows
            data = data.decode(encoding, "replace").encode()
    data = data.removeprefix(b"\xef\xbb\xbf")
    if not data.strip():
        raise UserError(
            f"{shown(path)}: empty trace (0 bytes{' after decompression' if packed else ''})"
        )
    return data


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


def _decode(path: Path, data: bytes) -> _File:
    as_list = data.lstrip()[:1] == b"["  # the format's other form: the events alone
    try:
        if as_list:
            return _File(msgspec.json.decode(data, type=list[_Event], strict=False))
        return msgspec.json.decode(data, type=_File, strict=False)
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


def _span(event: _Event) -> Span:
    start, duration = _nanoseconds(event.ts) or 0, _nanoseconds(event.dur)
    # A range still open when the profiler stopped is written with -1 or, by newer versions, 0.
    end = start + duration if duration and duration > 0 else None
    return Span(_text(event.name), start, end, _thread(event))


def _call(event: _Event) -> Call:
    correlation = _correlation(event.args)
    return Call(_text(event.name), _nanoseconds(event.ts) or 0, _thread(event), correlation)


def _gpu_event(event: _Event) -> GpuEvent:
    args = event.args or _Args()
    start, duration = _nanoseconds(event.ts), _nanoseconds(event.dur)
    if not start or duration is None or duration < 0:
        start = start or None
        duration = None  # a lost record: its time is unknown, and must not count as 0
    return GpuEvent(
        sort=GPU[event.cat],
        name=_text(event.name),
        start=start,
        duration=duration,
        device=_id(args.device if args.device is not None else event.pid),
        stream=_id(args.stream if args.stream is not None else event.tid),
        correlation=_correlation(args),
        grid=_sizes(args.grid),
        block=_sizes(args.block),
        registers=_count(args.registers),
        shared_memory=_count(args.shared_memory),
        reported_occupancy=_number(args.occupancy),
        bytes=_count(args.bytes),
    )


def _correlation(args: _Args | None) -> int | None:
    """The id that joins a launch to its work; 0 means none."""
    return (_count(args.correlation) or None) if args else None


def _thread(event: _Event) -> tuple:
    return _id(event.pid), _id(event.tid)


def _id(value: Any) -> int | str | None:
    """A number or text as it stands; whatever else a file holds there, as text."""
    return value if value is None or isinstance(value, int | str) else str(value)


def _nanoseconds(microseconds: Decimal | None) -> int | None:
    """None also for what is no moment: NaN written as text, or beyond 64 bits."""
    if microseconds is None or not microseconds.is_finite() or microseconds.adjusted() > 15:
        return None
    return int((microseconds * 1000).to_integral_value())


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


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)
