"""What a trace tells of its maker: host names, personal paths and the like.

Kineto writes the host's name and the path of the file; stacks hold the paths of sources, compiled
kernels those of a cache with the user's name in it; metadata holds whatever somebody put there.

A trace is scanned in the blocks in which it is read. Paths and e-mail addresses are looked for in
all of it: each has a character that is rare in a trace, and looking for one character costs next to
nothing. The rest has none, and is looked for where metadata stands, in the first block and at the
end of the file; with `whole` everywhere, by more rules (disclosures.py), for an upload.

No finding holds what was found: an example is cut to what tells where to look.
"""

import gzip
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from .disclosures import disclosures, unescaped

BLOCK = 1 << 20
LONGEST = 512  # bytes of the longest thing to find, with what must stand around it
FOOT = 1 << 16  # bytes of the file's end where metadata is looked for
NEAR = 48  # bytes between what two rules find of one thing, at the most
MOST = 1000  # of one kind that are counted
PATHS = {"personal path", "path"}
KINDS = (
    "host name", "user name", "personal path", "path", "e-mail address", "IP address",
    "hardware address", "token",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Finding:
    """Something of one kind. `key` is the JSON key of the first, if it stands under one."""

    kind: str
    count: int
    more: bool  # whether counting stopped, at MOST
    example: str
    key: str | None


# What may stand before a path: the beginning of a string, or something between two paths. So
# GB/s, torch/nn/module.py and https://… are none.
_BEFORE = rb"""["';:= (,\[{|\t\n]"""
_PATH = re.compile(
    rb"/(?:(?<=" + _BEFORE + rb"/)|(?<=\\[nt]/)|(?<=file:///))"
    # No path of a person: the system's, and an installation's.
    rb"(?!(?:usr/(?!local/google/home)|lib(?:64)?/|bin/|sbin/|etc/|proc/|sys/|dev/|opt/conda/))"
    rb"[\w.+@~-]{1,80}/[^\s\"';:,()|\\]{0,200}"
)
# Names of ops may begin with a slash as well (ONNX: /model/layers.0/MatMul); a file has an ending.
_FILE = re.compile(
    rb"\.(?:pyx?|so|json|gz|c|cc|cpp|cu|cuh|h|hpp|cubin|ptx|pth?|safetensors|txt|log|ya?ml|ipynb)$"
)
_HOME = re.compile(
    rb"(/(?:home|Users|export/home)/)(?!Shared/)[^/]|(/root/)|(/tmp/torchinductor_)[^/]"
)
_WINDOWS = re.compile(
    rb'(?<![A-Za-z0-9])([A-Za-z]):(\\{1,2})((?i:Users)\2)?[^"/:;,()<>|*?\s]{1,200}'
)
_MAIL = re.compile(
    rb"(?<![\w.+-])[A-Za-z0-9.+_-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z]{2,12}(?![\w(])"
)
_NAMED = re.compile(
    rb'"((?:host|node)_?name|host|fqdn|(?:user|login)_?name|user|login)"\s*:\s*"([^"\\]{1,200})"',
    re.I,
)
# tensorboard_trace_handler names its files by host and process.
_HANDLER_ENDING = re.compile(rb"\.pt\.trace\.json")
_HANDLER = re.compile(rb"([\w.-]{1,200})_\d{1,10}\.\d{10,20}$")
_ADDRESS = re.compile(rb"\.\d{1,3}\.\d{1,3}(?![\w.])(?!\.\d)")
_ADDRESS_START = re.compile(rb"(?:^|[\"'/@ (,\[])((\d{1,3})\.\d{1,3})$")
_TOKEN = re.compile(
    rb"(?<!\w)(hf_(?=[^\W_]{20})|gh[pousr]_(?=[^\W_]{30})|github_pat_(?=\w{20})|sk-(?=[\w-]{20})"
    rb"|glpat-(?=\w{16})|xox[abeprs]-(?=\w{8})|xapp-(?=[\w-]{8})|A[KS]IA(?=[A-Z0-9]{16})"
    rb"|AIza(?=[\w-]{35})|ya29\.(?=[\w-]{20})|npm_(?=[^\W_]{36})|pypi-(?=[\w-]{16})"
    rb"|eyJ(?=[\w-]{8,500}\.eyJ))[\w-]+"  # two parts of JSON in base64: a JWT
    rb"|(-----BEGIN )(?=[A-Z ]{0,30}PRIVATE KEY)"
)
_TOKEN_STARTS = (
    b"hf_", b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_", b"sk-", b"glpat-", b"xox",
    b"xapp-", b"AKIA", b"ASIA", b"AIza", b"ya29.", b"npm_", b"pypi-", b"eyJ", b"PRIVATE KEY",
)  # fmt: skip
# A name and a password before a host: https://me:secret@host
_LOGIN = re.compile(rb"(?<=://)[^/\s\"@:\\]{1,80}:[^/\s\"@\\]{1,200}(?=@)")
_KEY = re.compile(rb'.*"([^"\\]{1,80})"\s*:\s*\[?\s*"', re.S)

# Where it begins, kind, example, where its string goes on; where several rules look, its rule.
Match = tuple[int, str, str, int] | tuple[int, str, str, int, str]


class Scan:
    """Scans what it is given, block after block."""

    def __init__(self, whole: bool = False) -> None:
        self._whole = whole
        self.size = 0
        self._rest = b""  # of what was given, the end
        self._finders = (_every,) if whole else (_rare, _other)
        self._last: dict[str, tuple[int, str]] = {}  # by kind: where, and by which rule
        self._done = dict.fromkeys(self._finders, 0)  # bytes that each has searched
        self._found: dict[str, Finding] = {}
        self._full: set[str] = set()

    def add(self, block: bytes) -> None:
        data = self._rest + block
        first = not self.size
        self.size += len(block)
        for find in self._finders if self._whole or first else (_rare,):
            self._search(find, data, self.size - LONGEST)
        self._rest = data[-FOOT:]

    def found(self) -> tuple[Finding, ...]:
        """What was found; asked for at the end."""
        for find in self._finders:
            self._search(find, self._rest, self.size)
        return tuple(self._found[kind] for kind in KINDS if kind in self._found)

    def _search(self, find, data: bytes, until: int) -> None:
        """Count what begins between what has been searched and `until`, in bytes of the file."""
        offset = self.size - len(data)
        start = max(0, self._done[find] - offset)
        self._count(find(data, start, self._full), data, start, until - offset)
        self._done[find] = max(self._done[find], until)

    def _count(self, matches: Iterator[Match], data: bytes, start: int, until: int) -> None:
        offset = self.size - len(data)
        for begin, kind, example, at, *rule in matches:
            if kind in self._full or not start <= begin < until:
                continue
            if rule:
                # What several rules find is one finding.
                last, its = self._last.get(_sort(kind), (-NEAR, rule[0]))
                if its != rule[0] and offset + begin - last < NEAR:
                    continue
                self._last[_sort(kind)] = offset + begin, rule[0]
            first = self._found.get(kind) or Finding(kind, 0, False, example, _key(data, at))
            count = first.count + 1
            self._found[kind] = replace(first, count=count, more=count >= MOST)
            if count >= MOST:
                self._full.add(kind)
            if self._full & PATHS and not PATHS <= self._full:
                self._full |= PATHS  # they are looked for together
                for other in PATHS & set(self._found):
                    self._found[other] = replace(self._found[other], more=True)


def scan(blocks: Iterable[bytes], whole: bool = True) -> tuple[Finding, ...]:
    scanned = Scan(whole)
    for block in blocks:
        scanned.add(block)
    return scanned.found()


def scan_file(path: Path, name: str | None = None) -> tuple[Finding, ...]:
    """All of a file, plain or gzip, and its name, or the one it had. Raises OSError or EOFError as
    reading does."""
    called = (name or path.name).encode(errors="replace")
    of_name = scan([b'{"the file\'s name": "' + called + b'"}'])
    return (*of_name, *scan(unescaped(_blocks(path))))


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        source = gzip.GzipFile(fileobj=file) if packed else file
        while block := source.read(BLOCK):
            yield block.replace(b"\0", b"")  # what UTF-16 puts between letters


def _rare(data: bytes, start: int, full: set[str]) -> Iterator[Match]:
    """What has a character that is rare in a trace."""
    if not full & PATHS:
        yield from _paths(data, start)
        if data.find(b"\\", start) >= 0 and b":\\" in data:
            for match in _WINDOWS.finditer(data, start):
                drive, at = match[1].decode(), match.start()
                if match[3]:
                    yield at, "personal path", rf"{drive}:\Users\…", at
                elif _FILE.search(match[0]):
                    yield at, "path", rf"{drive}:\…", at
    if data.find(b"@", start) >= 0 and "e-mail address" not in full:
        for match in _MAIL.finditer(data, start):
            yield match.start(), "e-mail address", f"{_start(match[0])}@…", match.start()
    if data.find(b"@", start) >= 0 and b"://" in data and "token" not in full:
        for match in _LOGIN.finditer(data, start):
            yield match.start(), "token", "://…:…@", match.start()


def _every(data: bytes, start: int, full: set[str]) -> Iterator[Match]:
    """What any rule finds, in order, each with its rule. What those that tell most find is not
    told again."""
    found = [(*match, "") for find in (_rare, _other) for match in find(data, start, full)]
    told = {sort: sorted(m[0] for m in found if _sort(m[1]) == sort) for sort in {"path", *KINDS}}
    for rule, match in disclosures(data, start, full):
        near = told[_sort(match[1])]
        at = bisect_left(near, match[0] - NEAR)
        if at == len(near) or near[at] > match[0] + NEAR:
            found.append((*match, rule))
    yield from sorted(found, key=lambda match: match[0])


def _sort(kind: str) -> str:
    return "path" if kind in PATHS else kind


def _paths(data: bytes, start: int) -> Iterator[Match]:
    # From slash to slash while they are few; many, as in stacks, are better left to one pattern.
    at, hops = data.find(b"/", start), 2000
    while at >= 0 and hops:
        if match := _PATH.match(data, at):
            yield from _path(match)
        at, hops = data.find(b"/", at + 1), hops - 1
    if at >= 0:
        for match in _PATH.finditer(data, at):
            yield from _path(match)


def _path(match: re.Match) -> Iterator[Match]:
    at = match.start()
    if home := _HOME.search(match[0]):
        yield at, "personal path", f"{(home[1] or home[2] or home[3]).decode()}…", at
    elif _FILE.search(match[0]):
        first, *others = match[0].split(b"/")[1:]
        if first != b"tmp" or len(others) > 1:  # /tmp/trace.json tells nothing of anybody
            yield at, "path", f"/{first.decode(errors='replace')}/…", at


def _other(data: bytes, start: int, full: set[str]) -> Iterator[Match]:
    for match in _NAMED.finditer(data, start):
        kind = "user name" if match[1].lower().startswith((b"user", b"login")) else "host name"
        if not match[2].isdigit() and match[2].lower() not in (b"localhost", b"unknown", b"none"):
            yield match.start(), kind, _start(match[2]), match.start(2)
    for ending in _HANDLER_ENDING.finditer(data, start):
        if handler := _HANDLER.search(data, max(0, ending.start() - 240), ending.start()):
            yield ending.start(), "host name", _start(handler[1]), handler.start()
    for match in _ADDRESS.finditer(data, start):
        before = _ADDRESS_START.search(data, max(0, match.start() - 8), match.start())
        if before and before[2] not in (b"0", b"127"):
            at = before.start(1)
            # 9.1.0.70 is also a version of cuDNN.
            if b"version" not in data[max(0, at - 60) : at].lower():
                yield match.start(), "IP address", f"{before[2].decode()}.…", at
    if any(letters in data for letters in _TOKEN_STARTS):
        for match in _TOKEN.finditer(data, start):
            beginning = (match[1] or match[2]).decode()
            yield match.start(), "token", f"{beginning}…", match.start()


def _start(text: bytes) -> str:
    return f"{text.decode(errors='replace')[:1]}…"


def _key(data: bytes, begin: int) -> str | None:
    """The key of the string in which something begins."""
    found = _KEY.match(data[max(0, begin - 4096) : begin])
    return found[1].decode(errors="replace") if found else None
