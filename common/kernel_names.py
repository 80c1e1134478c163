"""Say what GPU kernel names mean, one line each, and never more than they tell.

Without names they are read from standard input, one a line.
"""

import dataclasses
import io
import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from .cli import UserError, one_line_errors, option, parse, visible
from .read.kernel_names import decode, describe


@dataclass(frozen=True)
class Options:
    names: list[str] = option(
        None, "kernel names, as a trace has them", positional=True, nargs="*", metavar="NAME"
    )
    json: bool = option(False, "print one JSON object a line", action="store_true")


def kernel_names(options: Options) -> None:
    if not options.names and (sys.stdin is None or sys.stdin.isatty()):
        raise UserError("no kernel names: give them as arguments, or one a line on standard input")
    if isinstance(sys.stdin, io.TextIOWrapper):  # else something that stands in for a file
        sys.stdin.reconfigure(errors="backslashreplace")
    names: Iterable[str] = options.names or (line.rstrip("\n") for line in sys.stdin)
    for name in names:
        if name.strip():
            kernel = decode(name)
            print(
                json.dumps(dataclasses.asdict(kernel))
                if options.json
                else visible(describe(kernel))
            )


if __name__ == "__main__":
    with one_line_errors():
        kernel_names(
            parse(Options, __doc__, "--json volta_sgemm_128x64_nn", module="common.kernel_names")
        )
