"""Bytes of a file → blocks → UTF-8 → pieces that are cut between two events.

A file longer than a block is never whole in memory. A layout that cannot be cut is read as one
piece.
"""

import codecs
import contextlib
import gzip
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ..cli import UserError, shown

BLOCK = 1 << 20  # bytes read at once
PIECE = 1 << 16  # bytes decoded at once: of more, the events would not stay in the caches
MOST = 8 * BLOCK  # of one piece
WHOLE = 128 * BLOCK  # of a file that cannot be cut
MAX_GB = 4  # that a gzip file may unpack to, and a trace take in memory
RATIO = 100  # traces pack to a tenth or a thirtieth; beyond this, and SMALL, it is no trace
SMALL = 64 * BLOCK


Blocks = Callable[[], Iterator[bytes]]


class NotInPieces(Exception):
    """The file cannot be cut."""


STDIN = Path("-")


@contextlib.contextmanager
def readable_again(path: Path, max_gb: float) -> Iterator[Path]:
    """A file with the same bytes that can be read more than once: a pipe's are kept in a temporary
    one meanwhile. Raises UserError for more than `max_gb`."""
    if path != STDIN and (path.is_file() or path.is_dir() or not path.exists()):
        yield path
        return
    if path == STDIN and (sys.stdin is None or sys.stdin.isatty()):
        raise UserError("-: nothing is piped in; give a file, or zcat FILE | … -")
    with tempfile.NamedTemporaryFile(prefix="trace-") as kept:
        try:
            with open(0 if path == STDIN else path, "rb", closefd=path != STDIN) as pipe:
                while block := pipe.read(BLOCK):
                    kept.write(block)
                    if kept.tell() > max_gb * 1e9:
                        raise UserError(
                            f"{shown(path)}: more than {max_gb:g} GB; --max-gb raises the limit"
                        )
            kept.flush()
        except OSError as error:
            raise UserError(
                f"{shown(path)}: cannot be kept in a temporary file: {error.strerror}; "
                "TMPDIR chooses another folder"
            ) from error
        yield Path(kept.name)


def read_blocks(
    path: Path, max_gb: float, salvage: bool, progress: Callable[[float], None], source: Path
) -> Iterator[bytes]:
    """The bytes of `source`, unpacked if it is gzip; errors name `path`."""
    try:
        with source.open("rb") as file:
            size = source.stat().st_size or 1
            packed = file.peek(2)[:2] == b"\x1f\x8b"
            unpacked = gzip.GzipFile(fileobj=file) if packed else None
            total = 0
            while block := _unpack(path, unpacked, salvage) if unpacked else file.read(BLOCK):
                total += len(block)
                if packed and total > max_gb * 1e9:
                    raise UserError(
                        f"{shown(path)}: unpacks to more than {max_gb:g} GB; "
                        "--max-gb raises the limit"
                    )
                if packed and total > max(SMALL, RATIO * size):
                    raise UserError(
                        f"{shown(path)}: unpacks to more than {RATIO} times its size, as no trace "
                        "does; if it is one, unpack it: gunzip -k"
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


def utf8(path: Path, blocks: Iterator[bytes], source: Path) -> Iterator[bytes]:
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
        packed = _is_packed(source)
        raise UserError(
            f"{shown(path)}: empty trace (0 bytes{' after decompression' if packed else ''})"
        )


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


# Where the list of events begins; it stands in the file's first block.
_LIST = re.compile(rb'\A\s*\[|"traceEvents"\s*:\s*\[')
OPENING = b'{"traceEvents":['
# Between two events, however the file is laid out. Hardly a string can hold this, for its quotes
# would be escaped; a list of objects inside an event can. Then the piece does not decode.
BETWEEN = re.compile(rb'(?<=\})\s*,(?=\s*\{\s*(?:"[^"\\]{0,64}"\s*:|\}))')


class Piece(NamedTuple):
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


def cut(blocks: Iterator[bytes], salvage: bool = False) -> Iterator[Piece]:
    """Raises NotInPieces when there would be only one, unless `salvage` asks for whatever there
    is."""
    blocks = _sliced(blocks)
    rest = next(blocks, b"")
    short = len(rest) < min(BLOCK, PIECE)
    while not (begin := _LIST.search(rest)) and len(rest) < MOST and (block := next(blocks, b"")):
        rest += block
    if not begin or short and not salvage:
        raise NotInPieces
    start = begin.end()
    head, rest = rest[:start], rest[start:]
    alone = b"{" not in head  # the format's other form: the events, and nothing around them
    yield Piece(start, head, b"", b"]" if alone else b"]}")
    searched = 0  # bytes of the rest in which no event ends
    for block in blocks:
        rest += block
        cut, searched = _last_cut(rest, searched), len(rest)
        if cut:
            yield Piece(start, b"[", rest[: cut.start()], b"]", cut[0])
            start, rest, searched = start + cut.end(), rest[cut.end() :], 0
        elif len(rest) > MOST:
            if not salvage:
                raise NotInPieces
            yield Piece(start, b"[", rest, b"]")  # with no end of an event in it: it is lost
            start, rest, searched = start + len(rest), b"", 0
    yield Piece(start, b"[" if alone else OPENING, rest)


def _sliced(blocks: Iterable[bytes]) -> Iterator[bytes]:
    for block in blocks:
        if len(block) <= PIECE:
            yield block
        else:
            yield from (block[at : at + PIECE] for at in range(0, len(block), PIECE))


OVERLAP = 256  # of parts that are searched: what is looked for may begin before and end behind


def _last_cut(text: bytes, searched: int) -> re.Match | None:
    """Looked for near the end; further before it only if no event ends there, and not again in what
    has been searched."""
    low = max(0, searched - OVERLAP)
    end, cut, near = len(text), None, 1 << 10
    while not cut and end > low:
        begin = max(low, end - near)
        for cut in BETWEEN.finditer(text, begin, min(len(text), end + OVERLAP)):  # noqa: B007
            pass
        end, near = begin, 8 * near
    return cut


def whole(path: Path, blocks: Iterator[bytes]) -> bytes:
    """All of a file that cannot be cut as it is read. Raises UserError if that is too much."""
    data = bytearray()
    for block in blocks:
        data += block
        if len(data) > WHOLE:
            raise UserError(
                f"{shown(path)}: more than {WHOLE >> 20} MB that are no list of events to be read "
                "one by one; is it a trace?"
            )
    return bytes(data)


def in_blocks(data: memoryview) -> Iterator[bytes]:
    for at in range(0, len(data), BLOCK):
        yield bytes(data[at : at + BLOCK])
