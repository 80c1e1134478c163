"""Look at any trace of torch.profiler: what one labelled forward did, kernel by kernel.

Two traces are laid side by side. Nothing here needs torch or a GPU.
"""

from dataclasses import dataclass
from pathlib import Path

from common import report
from common.cli import UserError, one_line_errors, option, parse
from common.compare import align, parse_guess, rows
from common.observe import observe
from common.trace import read


@dataclass(frozen=True)
class Options:
    traces: list[Path] = option(
        None,
        "a trace (.json or .json.gz), or two to compare",
        positional=True,
        type=Path,
        nargs="+",
        metavar="TRACE",
    )
    region: str | None = option(
        None,
        "the record_function label to look at (default: the one the trace was made for, "
        "else its only one)",
        metavar="LABEL",
    )
    guess: str | None = option(
        None, 'what you expect, such as "matmul softmax matmul"', metavar="STEPS"
    )
    json: bool = option(False, "print one JSON object", action="store_true")


def look(options: Options) -> None:
    if len(options.traces) > 2:
        raise UserError(f"{len(options.traces)} traces given: look takes one, or two to compare")
    seen, *other = (observe(read(path), options.region) for path in options.traces)
    if other:
        if options.guess:
            raise UserError("--guess goes with one trace, and two were given")
        if options.json:
            report.print_json(report.difference_json(seen, other[0]))
        else:
            report.show_difference(report.console(), seen, other[0])
        return
    guess = () if options.guess is None else parse_guess(options.guess)
    pairs = align(guess, rows(seen.steps))
    if options.json:
        report.print_json(report.as_json(seen, pairs, bool(guess)))
        return
    report.show(report.console(), seen, pairs=pairs, guessed=bool(guess), lessons={}, claims=())


if __name__ == "__main__":
    with one_line_errors():
        look(parse(Options, __doc__, "trace.json --region forward", module="common.look"))
