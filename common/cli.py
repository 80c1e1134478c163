"""The command line: options from a dataclass, and every error as one line.

An option is declared once, as a dataclass field made by `option`; its default, its help and its
choices live there and nowhere else.
"""

import argparse
import contextlib
import dataclasses
import errno
import io
import math
import os
import re
import shlex
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

from .interrupts import interruptible

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


T = TypeVar("T", bound=Dataclass)

RECORDS = ("torch", "numpy", "triton")  # of the dependency group `record`; reading needs none


class UserError(Exception):
    """What the user can mend. Its text is the whole message: what is wrong, with which value,
    what to do."""


def option(default: Any, help: str, **argument: Any) -> Any:
    """A dataclass field that is also a command-line option; `argument` goes to `add_argument`."""
    return dataclasses.field(default=default, metadata={"help": help, **argument})


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # The usage block that argparse would print first hides the one line that matters.
        raise UserError(f"{message} (see {self.prog} --help)")

    def _print_message(self, message: str, file: Any = None) -> None:
        (file or sys.stdout).write(message)  # argparse would hide a full disk


def parse(
    options: type[T],
    description: str | None,
    example: str,
    argv: Sequence[str] | None = None,
    module: str | None = None,
) -> T:
    """Read `argv` (default: the process's) into the dataclass `options`.

    `example` is what the help shows after the command's name, in one line or several; `module` is
    set for commands run with `-m`. Raises UserError for anything unreadable.
    """
    command = f"uv run -m {module}" if module else f"uv run {Path(sys.argv[0]).name}"
    examples = example.split("\n")
    # A fixed width: help is the same text everywhere and can stand in the README.
    parser = _Parser(
        prog=command,
        description=description,
        epilog="\n  ".join(
            [f"example{'s' * (len(examples) > 1)}:", *(f"{command} {line}" for line in examples)]
        ),
        allow_abbrev=False,
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=30, width=100
        ),
    )
    for field in dataclasses.fields(options):
        argument = dict(field.metadata)
        if argument.get("type") is Path:
            argument["type"] = path
        positional = argument.pop("positional", False)
        text = argument.pop("help")
        if positional:
            parser.add_argument(field.name, help=text, default=field.default, **argument)
            continue
        if argument.get("action") != "store_true" and field.default not in (None, ""):
            text += f" (default: {field.default})"
        parser.add_argument(
            f"--{field.name.replace('_', '-')}",
            dest=field.name,
            default=field.default,
            help=text.replace("%", "%%"),
            **argument,
        )
    asked = options(**vars(parser.parse_args(argv)))
    if argv is None and getattr(asked, "json", None) is True:
        _keep_output_alone()
    return asked


def _keep_output_alone() -> None:
    """What libraries print by themselves (oneDNN's log, say) goes to stderr: the output is one JSON
    object and nothing else."""
    with contextlib.suppress(AttributeError, OSError, ValueError):
        if sys.stdout.fileno() != 1:
            return
        output = open(os.dup(1), "w", encoding=sys.stdout.encoding, errors="replace")  # noqa: SIM115
        os.dup2(2, 1)
        sys.stdout = output


def positive(text: str) -> int:
    """An argparse type: a whole number of at least 1."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def positive_number(text: str) -> float:
    """An argparse type: a number above 0."""
    try:
        number = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number above 0")
    return number


def percentage(text: str) -> float:
    """An argparse type: 5% or 5 as 0.05."""
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no share such as 5%") from None
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not at least 0%")
    return number / 100


def path(text: str) -> Path:
    """An argparse type, for `--traces=~/x` too: there no shell has put the home folder in."""
    with contextlib.suppress(RuntimeError):  # nobody's home
        return Path(text).expanduser()
    return Path(text)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Around a command: what the user can mend ends as `error: …` on stderr and exit code 2."""
    if sys.stderr is None:  # closed; print would take stdout instead
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 — for as long as the process lives
    if sys.stdout is None:
        _stop("standard output is closed; give it a file or a terminal", 2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # else something that stands in for a file
            stream.reconfigure(errors="replace")  # a pipe on Windows has no "−"
    try:
        with interruptible():
            try:
                yield
            except SystemExit:  # --help has printed
                sys.stdout.flush()
                raise
            sys.stdout.flush()
    except UserError as error:
        _stop(" ".join(str(error).split()), 2)
    except ModuleNotFoundError as error:
        if error.name not in RECORDS:
            raise
        _stop("recording needs PyTorch; leave --no-default-groups out", 2)
    except BrokenPipeError:
        # The reader of our output (head, less) has gone: no message.
        _abandon_output()
        sys.exit(1)
    except OSError as error:
        # Reading and writing files explains itself; what is left is mostly the output.
        _abandon_output()
        what = error.strerror or str(error)
        if isinstance(error.filename, str | bytes):
            _stop(f"{shown(Path(os.fsdecode(error.filename)))}: {what}", 2)
        _stop(f"cannot write the output: {what}", 2)
    except KeyboardInterrupt:
        _stop("interrupted; no half-written file is left", 130)


def _abandon_output() -> None:
    """Nothing more from the interpreter's own flush at exit."""
    with contextlib.suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _stop(message: str, code: int) -> NoReturn:
    with contextlib.suppress(OSError):
        _clear()
        print(f"error: {visible(message)}", file=sys.stderr, flush=True)
    sys.exit(code)


def note(message: str) -> None:
    """One line beside the output, on stderr so that `--json` and pipes stay clean."""
    _clear()
    print(f"note: {visible(message)}", file=sys.stderr)


# What a terminal obeys instead of showing, or shows as nothing: C0 controls (with the line
# break), C1 controls, marks that reorder a line or have no width, halves of surrogate pairs.
_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0e"
    "\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
A_NAME = 80  # characters of one in the middle of a sentence
LONGEST = 1000  # characters of a stranger's text in one line: a name can be of megabytes


def visible(text: str, most: int | None = LONGEST) -> str:
    """Text of a stranger's file as it can be printed in a line: what a terminal would obey is
    spelled out, and of more than `most` characters the middle is left out."""
    if most is not None and len(text) > most:
        head = most * 2 // 3
        text = f"{text[:head]} … {text[-(most - head) :]}"
    return _OBEYED.sub(_spelled_out, text)


def named(name: str) -> str:
    """A stranger's name as it can stand in a sentence."""
    return visible(name, A_NAME)


def _spelled_out(match: re.Match) -> str:
    # As JSON escapes it: a program that reads our JSON gets the very character.
    code = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{code[at : at + 4]}" for at in range(0, len(code), 4))


# ── Progress ──────────────────────────────────────────────────────────────────────────────────────

_standing = False  # whether the terminal's last line tells what is being done


def _clear() -> None:
    global _standing
    if _standing:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
        _standing = False


@contextlib.contextmanager
def progress(patience: float = 0, log: bool = False) -> Iterator[Callable[[str], None]]:
    """Say what is being done, on a terminal's last line: once `patience` seconds have gone by.
    Where there is no terminal nothing is said, or with `log` a line each."""
    start, terminal = time.monotonic(), sys.stderr.isatty()

    def doing(what: str) -> None:
        global _standing
        if terminal and time.monotonic() - start >= patience:
            width = shutil.get_terminal_size().columns
            print(f"\r\x1b[K{what} …"[: width + 3], end="", file=sys.stderr, flush=True)
            _standing = True
        elif log and not terminal:
            print(what, file=sys.stderr, flush=True)

    try:
        yield doing
    finally:
        _clear()


# ── Files ─────────────────────────────────────────────────────────────────────────────────────────


def shown(path: Path) -> str:
    """A path as short as it can be typed from here."""
    # Elsewhere than here; a loop of links; a folder we stand in that is no more.
    with contextlib.suppress(ValueError, RuntimeError, OSError):
        return str(path.resolve().relative_to(Path.cwd()))
    return str(path)


def typed(path: Path) -> str:
    """A path as it is typed into a shell."""
    text = shlex.quote(shown(path))
    return f"./{text}" if text.startswith("-") else text


def require_writable(name: str, path: Path) -> None:
    """Raise UserError if no file can be made beside `path`: better said before long work."""
    with _explained(name, path):
        _require_replaceable(path)
        with tempfile.TemporaryFile(dir=path.parent):
            pass


def write_whole(name: str, path: Path, text: str) -> None:
    """Write the file that the option `name` asked for, whole or not at all, and say so."""
    with _explained(name, path):
        replaces = os.path.lexists(path)
        put({path: text.encode(errors="backslashreplace")})
    note(f"{shown(path)} is {'replaced' if replaces else 'written'}")


def put(files: Mapping[Path, bytes]) -> None:
    """Write all of the files or none: beside their places first, on the disk, then moved there.

    Raises OSError; then what was in their places is there again. Only regular files are replaced,
    and links, never what they lead to.
    """
    for path in files:
        _require_replaceable(path)
    for folder in {path.parent for path in files}:
        _clear_left_behind(folder)
    beside: dict[Path, Path] = {}
    before: dict[Path, Path | None] = {}  # what was there, for as long as it may be needed
    try:
        for path, content in files.items():
            part = _part_beside(path)
            with open(part, "wb", opener=_exclusively) as file:
                beside[path] = part
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, part in beside.items():
            before[path] = _second_name(path)
            os.replace(part, path)
    except BaseException:
        for path, old in before.items():
            if beside[path].exists():  # not moved
                continue
            if old:
                os.replace(old, path)
            else:
                path.unlink()
        raise
    finally:
        for left in (*beside.values(), *before.values()):
            if left:
                left.unlink(missing_ok=True)


def _part_beside(path: Path) -> Path:
    # Nobody can have put a link where a name of chance will be.
    return path.with_name(f".{os.urandom(8).hex()}.part")


def _exclusively(path: str, flags: int) -> int:
    """Opens a new file, locked for as long as somebody writes it."""
    descriptor = os.open(path, flags | os.O_EXCL, 0o666)
    _lock(descriptor)
    return descriptor


def _second_name(path: Path) -> Path | None:
    """Another name of what is there, so that it outlasts being replaced; None where nothing is, or
    the file system has no such names."""
    second = _part_beside(path)
    try:
        os.link(path, second, follow_symlinks=False)
    except (OSError, NotImplementedError):
        return None
    return second


def _require_replaceable(path: Path) -> None:
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):  # to a pipe or a device it is as good as one
            mode = os.stat(path).st_mode
    except FileNotFoundError:  # or a link to nothing
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe, and stays what it is")


_PART = re.compile(r"\.[0-9a-f]{16}\.part")
_SCRATCH = "profiling-attention-"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for what is not to stay, away from what may be shared. What a killed run has left of
    its own is cleared first."""
    _clear_left_behind(Path(tempfile.gettempdir()))
    with tempfile.TemporaryDirectory(prefix=_SCRATCH) as name:
        with _locked_folder(name):
            yield Path(name)


@contextlib.contextmanager
def _locked_folder(name: str) -> Iterator[None]:
    if fcntl is None:
        yield
        return
    descriptor = os.open(name, os.O_RDONLY)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    if fcntl:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _clear_left_behind(folder: Path) -> None:
    """Remove half-written files and scratch folders of ours whose process is no more: they are not
    locked. Who cannot ask for locks leaves them."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if _PART.fullmatch(entry.name) or entry.name.startswith(_SCRATCH):
                _clear_one(entry)


def _clear_one(entry: os.DirEntry) -> None:
    assert fcntl
    with contextlib.suppress(OSError):
        about = entry.stat(follow_symlinks=False)
        young = time.time() - about.st_mtime < 1  # its own process may be about to lock it
        if young or about.st_uid != os.getuid() or stat.S_IFMT(about.st_mode) not in _OURS:
            return
        descriptor = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        finally:
            os.close(descriptor)


_OURS = (stat.S_IFREG, stat.S_IFDIR)


@contextlib.contextmanager
def _explained(name: str, path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{name} {shown(path)}: {error.strerror}; choose a file in a folder that can be written"
        ) from error
