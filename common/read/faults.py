"""What is wrong in a piece of a file, and where in the file: the words of every refusal.

Also the one thing that is mended: numbers that JSON does not know.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..cli import UserError, shown
from .pieces import Blocks, Piece

# Numbers that Python's and JavaScript's writers print and JSON does not know.
_NON_FINITE = re.compile(rb"-?\b(?:NaN|Infinity)\b")
# Half of a pair of surrogates, as these writers escape what is no text: a file's odd name, say.
_HALF = re.compile(
    rb"(?<!\\)(?:\\\\)*+\\u[dD]"
    rb"(?:[89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..\\u[dD])[c-fC-F]..)"
)
_QUOTES = re.compile(rb'\\.|(")', re.S)


def mended(data: bytes) -> tuple[bytes, int]:
    """The data without what Python and JavaScript read and JSON does not know, and how many numbers
    are missing then; the very data where there is nothing to mend.

    NaN and Infinity outside strings become null: missing. Half a pair of surrogates becomes the
    character for what is no text, escaped as it was: no byte moves.
    """
    mended = None
    for half in _HALF.finditer(data):
        mended = mended or bytearray(data)
        mended[half.end() - 6 : half.end()] = rb"\ufffd"
    data = data if mended is None else bytes(mended)
    parts, at, count = bytearray(), 0, 0
    for match in _non_finite(data):
        if match.start() < at:
            continue
        # Up to the next string all at once, though not of millions: that takes memory.
        end = data.find(b",", match.end() + (1 << 16))
        end = len(data) if end < 0 else end
        string = data.find(b'"', match.end(), end)
        end = end if string < 0 else string
        text, more = _NON_FINITE.subn(b"null", data[match.start() : end])
        parts += data[at : match.start()]
        parts += text
        at, count = end, count + more
    return (bytes(parts + data[at:]), count) if count else (data, 0)


def _non_finite(data: bytes) -> Iterator[re.Match]:
    """Where NaN and Infinity stand outside strings. Each byte is looked at once: what is no string
    is told by the quotes since the last such word."""
    at, inside = 0, False
    for match in _NON_FINITE.finditer(data):
        quotes = data.count(b'"', at, match.start())
        if quotes and data.find(b"\\", at, match.start()) >= 0:
            between = data[at : match.start()]
            quotes = sum(1 for quote in _QUOTES.finditer(between) if quote[1])
        inside ^= quotes % 2 == 1
        at = match.start()
        if not inside:
            yield match


def in_file(what: str, number: int) -> str:
    """What the decoder said of one event, with the event's number in the file."""
    what = re.sub(r"`(?:float|decimal) \| null`", "a number", what)
    place = f"$.traceEvents[{number}]"
    return what.replace("`$", f"`{place}") if "`$" in what else f"{what} - at `{place}`"


def not_as_written(path: Path, what: str) -> UserError:
    return UserError(f"{shown(path)}: not a trace as the profiler writes it: {what}")


# What a file begins with that is no JSON, and what to do with it.
_OTHERS = (
    (b"PK\x03\x04", "a zip archive", "unpack it: unzip"),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", "unpack it: zstd -d"),
    (b"\xfd7zXZ\0", "packed with xz", "unpack it: xz -dk"),
    (b"BZh", "packed with bzip2", "unpack it: bzip2 -dk"),
    (b"\x04\x22\x4d\x18", "packed with lz4", "unpack it: lz4 -d"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it: 7z x"),
    (b"\x1f\x8b", "packed with gzip twice", "unpack it once: gunzip"),
    (b"SQLite format 3\0", "a database, as Nsight Systems writes them", ""),
    (b"<", "an HTML or XML page", "was it saved from a browser? download the file itself"),
)
_TRACE = "give the .json or .json.gz that torch.profiler writes"


def require_json(path: Path, start: bytes) -> None:
    """Raise UserError for what is known to be something else, from its first block."""
    if start[257:262] == b"ustar":
        raise UserError(
            f"{shown(path)}: a tar archive; unpack it: tar -xf, and give the trace in it"
        )
    for beginning, what, mend in _OTHERS:
        if start.lstrip().startswith(beginning):
            raise UserError(f"{shown(path)}: {what}, no trace; {mend or _TRACE}")


# Who writes JSON with times that is not torch.profiler's, by words that stand in its beginning.
_MAKERS = (
    (rb'"hlo_(?:op|module)"|"/(?:device:GPU:\d+|host:CPU)"|"PjitFunction', "JAX or TensorFlow"),
    (rb'"(?:CPU|CUDA) functions"', "PyTorch's profiler before Kineto (torch 1.8)"),
    (rb'"frame"\s*:.*"metrics"\s*:|"metrics"\s*:.*"frame"\s*:|"Core\d+ CTA\d+"', "Proton (Triton)"),
    (rb'"(?:segments|device_traces)"\s*:', "torch.cuda.memory's snapshots"),
    (rb'"schema"\s*:.*"nodes"\s*:|"nodes"\s*:.*"schema"\s*:', "ExecutionTraceObserver"),
)  # fmt: skip


def _maker(blocks: Blocks) -> str:
    start = next(blocks(), b"")[: 1 << 16]
    for words, who in _MAKERS:
        if re.search(words, start, re.S):
            return f"; it looks like a file of {who}"
    return ""


def no_work(path: Path, blocks: Blocks, timed: bool, count: int) -> UserError:
    """The file is a list of events, and none is work that the profiler recorded."""
    if maker := _maker(blocks):
        return UserError(f"{shown(path)}: no trace of torch.profiler{maker}, not read here")
    if timed:
        return UserError(
            f"{shown(path)}: the trace holds no ops, regions, launch calls or GPU events; record "
            "with activities CPU and CUDA"
        )
    what = "no timed events (only metadata)" if count else "no events"
    return UserError(f"{shown(path)}: the trace holds {what}; was anything run while recording?")


def refusal(path: Path, blocks: Blocks, error: Exception, piece: Piece) -> UserError:
    """What is wrong in a piece, and where in the file."""
    said = str(error)
    if isinstance(error, RecursionError):
        return UserError(f"{shown(path)}: nested too deep for a trace")
    if isinstance(error, msgspec.ValidationError):
        if "missing required field `traceEvents`" in said:
            return UserError(
                f"{shown(path)}: JSON, but no trace: it has no traceEvents{_maker(blocks)}"
            )
        return not_as_written(path, said)
    data = piece.json
    if "truncated" in said:
        end = piece.start + len(piece.text)
        inside = "unterminated string at end of file" if _in_string(data) else "missing ]"
        return UserError(
            f"{shown(path)}: truncated JSON (unexpected end of file in line "
            f"{_line_and_column(blocks(), end)[0]}: {inside}); the file looks incomplete, record "
            "or copy it again"
        )
    if not (found := re.search(r"\(byte (\d+)\)", said)):
        return UserError(f"{shown(path)}: not valid JSON ({said})")
    at = _before_repair(data, int(found[1]))
    if "trailing characters" in said:
        what, at = _behind(data, at - 1)
    else:
        what, at = _why_not_json(data, at, said)
    line, column = _line_and_column(blocks(), piece.start - len(piece.opening) + at)
    return UserError(f"{shown(path)}: not valid JSON: {what} in line {line}, column {column}")


def _before_repair(data: bytes, at: int) -> int:
    """Where a byte stood before NaN and Infinity became null."""
    for match in _non_finite(data):
        if match.start() >= at:
            break
        at += len(match[0]) - len(b"null")
    return at


def _line_and_column(blocks: Iterator[bytes], at: int) -> tuple[int, int]:
    """Of a byte, both from 1, the column in characters. Reads the file again: counting lines would
    cost every sound one."""
    line, column, read = 1, 1, 0
    for block in blocks:
        block = block[: at - read]
        read += len(block)
        if ends := block.count(b"\n"):
            line, column = line + ends, 1
            block = block[block.rindex(b"\n") + 1 :]
        column += len(block.translate(None, _CONTINUES))
        if read == at:
            break
    return line, column


_CONTINUES = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that begin no character


def _behind(data: bytes, at: int) -> tuple[str, int]:
    """What stands behind the end of the JSON."""
    if not data[at:].strip(b"\0 \r\n\t"):
        return "NUL bytes behind its end, as a full disk or a crash leaves them,", at
    if data[at : at + 1] in b"{[":
        return "a second JSON document, where one may stand,", at
    return f"{_token(data, at)} behind its end", at


def _why_not_json(data: bytes, at: int, error: str) -> tuple[str, int]:
    """What is wrong, and at which byte: the decoder has read on, past the backslash or four letters
    that might have been null."""
    if "escape" in error:
        return "invalid \\escape: an unescaped Windows path?", data.rfind(b"\\", 0, at)
    # A word that begins as true, false or null do.
    word = re.search(rb"(?:\A|[:,\[\s])([tfn]\w*)\W*\Z", data[max(0, at - 6) : at])
    if word and word[1] not in (b"true", b"false", b"null"):
        at -= len(word[0]) - (word.start(1) - word.start())
    byte = data[at : at + 1]
    if byte in b"]}" and data[max(0, at - 4096) : at].rstrip().endswith(b","):
        return f"trailing comma before {byte.decode()}", at
    if byte and byte < b" ":
        where = " in a string" if _in_string(data[:at]) else ""
        return f"raw control character 0x{byte[0]:02x}{where}", at
    return f"unexpected {_token(data, at)}", at


def _token(data: bytes, at: int) -> str:
    if token := re.match(rb"[-+]?[A-Za-z_][\w.]*", data[at : at + 64]):
        return f"token `{token[0][:20].decode()}`"
    return repr(data[at : at + 1].decode("latin-1"))


def _in_string(data: bytes) -> bool:
    """Whether a string is open at the end: strings do not go over the end of a line."""
    quotes = _QUOTES.finditer(data, data.rfind(b"\n") + 1)
    return sum(1 for quote in quotes if quote[1]) % 2 == 1
