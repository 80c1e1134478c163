"""Look at any trace of torch.profiler: what one labelled forward did, kernel by kernel.

Two traces are laid side by side; a trace of several labels is surveyed. Nothing here needs torch or
a GPU. Exit codes: 0 an answer, 1 the reader of the output went away, 2 an error, which is one line
on stderr, 130 interrupted.
"""

import gc
from dataclasses import dataclass
from pathlib import Path

from .cli import (
    UserError,
    one_line_errors,
    option,
    parse,
    positive,
    positive_number,
    progress,
    require_writable,
    write_whole,
)
from .compare.compared import compare
from .read.labels import is_incidental
from .read.linked import Linked, link
from .read.observe import observe
from .read.survey import survey
from .read.trace import MAX_GB, Trace, read
from .show import report
from .show.language import lang_option, speak
from .show.terminal import console

PATIENCE = 2  # seconds
EXAMPLES = """\
trace.json                    one forward, or a survey of several labels
trace.json --region forward   the label to look at
trace.json --guess "matmul softmax matmul"
a.json b.json.gz              two recordings, step by step
trace.json --salvage --json   what a damaged file still holds, for a program"""


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
        "else its only one if most of the GPU's time is its, else a survey of all)",
        metavar="LABEL",
    )
    survey: bool = option(
        False, "all labels, kernels and ops, whatever the trace was made for", action="store_true"
    )
    guess: str | None = option(
        None, 'what you expect, such as "matmul softmax matmul"', metavar="STEPS"
    )
    salvage: bool = option(False, "read a damaged file as far as it is sound", action="store_true")
    max_gb: float = option(
        MAX_GB,
        "the most that a gzip file may unpack to, and a trace take in memory, in GB",
        type=positive_number,
        metavar="N",
    )
    all: bool = option(
        False, "print every step of a forward instead of its loops", action="store_true"
    )
    html: Path | None = option(
        None,
        "write a page too, with the roofline where shapes are known",
        type=Path,
        metavar="FILE",
    )
    lang: str | None = lang_option()
    json: bool = option(False, "print one JSON object", action="store_true")
    top: int | None = option(
        None,
        "with --json: only the N most expensive of each, a few kilobytes, and what is left out",
        type=positive,
        metavar="N",
    )


def look(options: Options) -> None:
    speak(options.lang)
    # What only some answers need is imported where it is: most of a small trace's time is imports.
    if len(options.traces) > 2:
        raise UserError(f"{len(options.traces)} traces given: look takes one, or two to compare")
    if options.survey and (options.region is not None or len(options.traces) > 1):
        raise UserError("--survey is of one whole trace: give one, and no --region")
    if options.survey and options.all:
        raise UserError("--all prints a forward's steps: choose it with --region, not --survey")
    if options.top is not None and not options.json:
        raise UserError("--top goes with --json: people get a page of one screen without it")
    if options.html and len(options.traces) > 1:
        raise UserError("--html is of one trace, and two were given")
    if options.html:
        require_writable("--html", options.html)
    traces = [link(_read(path, options)) for path in options.traces]
    if len(traces) == 1 and (options.survey or _is_for_survey(traces[0], options.region)):
        if options.guess is not None:
            raise UserError("--guess goes with one region; choose it with --region")
        found = survey(traces[0])
        if options.html:
            from .show.trace_page import page_of_trace

            write_whole("--html", options.html, page_of_trace(found))
        if options.json:
            from .show.as_json import print_json, survey_json
            from .show.in_short import short_survey

            print_json(short_survey(found, options.top) if options.top else survey_json(found))
        else:
            from .show.survey import show_survey

            show_survey(console(), found)
        return
    seen, *other = (observe(trace, options.region) for trace in traces)
    if other:
        if options.guess:
            raise UserError("--guess goes with one trace, and two were given")
        if options.json:
            from .show.as_json import difference_json, print_json
            from .show.in_short import short_difference

            if options.top:
                print_json(short_difference(seen, other[0], options.top))
                return
            print_json(difference_json(seen, other[0]))
        else:
            report.show_difference(console(), seen, other[0], options.all)
        return
    compared = compare(seen, options.guess)
    if options.html:
        from .show.trace_page import page_of_region

        write_whole("--html", options.html, page_of_region(compared))
    if options.json:
        from .show.as_json import as_json, print_json
        from .show.in_short import short_region

        print_json(short_region(compared, options.top) if options.top else as_json(compared))
    else:
        report.show(console(), compared, options.all)


def _is_for_survey(linked: Linked, region: str | None) -> bool:
    """Whether nobody asks for a region, and none stands for the whole: the label of our own
    recordings, or the only one that somebody gave, if most of the GPU's time is its."""
    if region is not None or linked.trace.story:
        return False
    labels = list(linked.trace.labels)
    if len(labels) != 1 or is_incidental(labels[0]):
        return True
    its, all_of_it = linked.owners.of(labels[0]).all, linked.owners.launched
    # Where no GPU time is known, none speaks against it.
    return bool(all_of_it and its is not None and its * 2 <= all_of_it)


def _read(path: Path, options: Options) -> Trace:
    with progress(PATIENCE) as doing:
        return read(
            path,
            options.salvage,
            options.max_gb,
            lambda share: doing(f"reading {100 * share:.0f} %"),
        )


if __name__ == "__main__":
    gc.disable()  # a trace is millions of objects without a cycle, and the process ends soon
    with one_line_errors():
        look(parse(Options, __doc__, EXAMPLES, module="common.look"))
    gc.freeze()  # nor is anything looked through when it does
