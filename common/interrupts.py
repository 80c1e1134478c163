"""Ctrl-C at any moment ends a command with exit code 130 and at most one line.

While a command runs it is a KeyboardInterrupt, so that what is half done can be undone. Before and
behind that, in imports and at the interpreter's end, the process just ends. What this module needs
is loaded with the interpreter: until it is read an interrupt is still a traceback.
"""

import os
import signal
import sys
from types import FrameType, TracebackType


def _is_command() -> bool:
    """Whether this process runs one of our commands or scripts; else its interrupts are none of our
    business."""
    package, asked = __name__.partition(".")[0], sys.orig_argv[1:]
    if "-m" in asked:
        return asked[asked.index("-m") + 1].startswith(f"{package}.")
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    script = sys.argv[0]
    return script.endswith(".py") and os.path.dirname(os.path.abspath(script)) == root


_armed = False


def stop_quietly() -> None:
    """From now on an interrupt ends the process, if this is one of our commands."""
    global _armed
    # A shell's background jobs ignore it: then it stays ignored.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler and _is_command():
        signal.signal(signal.SIGINT, _quit)
        _armed = True


def _quit(number: int, frame: FrameType | None) -> None:
    os._exit(130)


class interruptible:  # noqa: N801 — used as a function
    """Around what can undo its half-done work: an interrupt is a KeyboardInterrupt here."""

    def __enter__(self) -> None:
        if _armed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if _armed:
            signal.signal(signal.SIGINT, _quit)
