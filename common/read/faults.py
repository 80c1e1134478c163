"""What is wrong in a piece of a file, and where in the file: the words of every refusal.

Also the one thing that is mended: numbers that JSON does not know.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..cli import UserError, shown
from .pieces import Blocks, Piece

# A string, or a number that Python's and JavaScript's writers print and JSON does not know.
_NON_FINITE = re.compile(rb'"(?:[^"\\]|\\.)*"|(-?\b(?:Infinity|NaN)\b)', re.S)


def without_non_finite(data: bytes) -> tuple[bytes, int]:
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


def refusal(path: Path, blocks: Blocks, error: Exception, piece: Piece, before: int) -> UserError:
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
