"""Look at any trace of torch.profiler: what one labelled forward did, kernel by kernel.

Two traces are laid side by side; a trace of several labels is surveyed; a folder holds the ranks of
one job. Nothing here needs torch or a GPU. Exit codes: 0 an answer, 1 the reader of the output went
away, 2 an error, which is one line on stderr, 3 slower (--fail-over), 130 interrupted.
"""

import gc
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .cli import (
    UserError,
    one_line_errors,
    option,
    parse,
    percentage,
    positive,
    positive_number,
    progress,
    require_writable,
    write_whole,
)
from .compare.compared import compare
from .read.linked import Linked, link
from .read.observe import observe
from .read.repeats import METRICS, only_label
from .read.survey import survey
from .read.trace import MAX_GB, Trace, read
from .show import report
from .show.language import lang_option, speak
from .show.terminal import console

if TYPE_CHECKING:
    from .look_many import Reading

PATIENCE = 2  # seconds
VIEWS = ("modules", "memory", "steps")  # options, each a view of its own
EXAMPLES = """\
trace.json                    one forward, or a survey of several labels
trace.json --region forward   the label to look at
trace.json --guess "matmul softmax matmul"
a.json b.json.gz              two recordings, step by step
trace.json --salvage --json   what a damaged file still holds, for a program
trace.json --modules          whose modules and functions the GPU's time is
ranks/                        the ranks of one job, a file each
base/ new/ --fail-over 5%     is it slower? Two files, or folders of repeats"""


@dataclass(frozen=True)
class Options:
    traces: list[Path] = option(
        None,
        "a trace (.json or .json.gz), two to compare, or the ranks of a job (a folder, or more)",
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
    modules: bool = option(
        False,
        "the tree of modules, and the functions of yours that the dearest kernels come from",
        action="store_true",
    )
    memory: bool = option(
        False, "memory over time, and who holds it at its peak", action="store_true"
    )
    steps: bool = option(
        False, "the profiler's steps, and what differs in one out of line", action="store_true"
    )
    ranks: bool = option(
        False,
        "take the files for ranks of one job, though they be two or do not tell",
        action="store_true",
    )
    fail_over: float | None = option(
        None,
        "compare BASE with NEW, each a recording or a folder of repeats; exit with 3 where NEW is "
        "slower by more than this, such as 5%",
        type=percentage,
        metavar="SHARE",
    )
    base: list[Path] | None = option(
        None,
        "with --fail-over: the recordings of BASE; then all the others are of NEW",
        type=Path,
        nargs="+",
        metavar="TRACE",
    )
    metric: str = option(
        "work",
        "with --fail-over: work is what the GPU does a forward; busy counts each moment once; "
        "elapsed is idle time too",
        choices=METRICS,
    )
    markdown: bool = option(
        False, "with --fail-over: print Markdown, for a pull request", action="store_true"
    )
    jobs: int | None = option(
        None,
        "files that are read at once, each by a process (default: as many as there are cores)",
        type=positive,
        metavar="N",
    )
    dask: str | None = option(
        None,
        "read the files by the workers of this Dask scheduler, such as tcp://host:8786",
        metavar="SCHEDULER",
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
    views = [name for name in VIEWS if getattr(options, name)]
    _require_sense(options, views)
    # What only some answers need is imported where it is: most of a small trace's time is imports.
    if options.fail_over is not None:
        return _whether_slower(options)
    if options.ranks or len(options.traces) > 2 or any(path.is_dir() for path in options.traces):
        from .look_many import look_at_ranks

        return look_at_ranks(
            options.traces, _reading(options), options.ranks, options.json, options.top
        )
    if views:
        return _view(link(_read(options.traces[0], options)), views[0], options)
    if options.survey and (options.region is not None or len(options.traces) > 1):
        raise UserError("--survey is of one whole trace: give one, and no --region")
    if options.survey and options.all:
        raise UserError("--all prints a forward's steps: choose it with --region, not --survey")
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


def _require_sense(options: Options, views: list[str]) -> None:
    """Raises UserError for options that say nothing together."""
    if views:
        view = f"--{views[0]}"
        if len(views) > 1:
            raise UserError(f"{view} and --{views[1]} are two views; ask for one at a time")
        if len(options.traces) > 1 or options.ranks or options.traces[0].is_dir():
            raise UserError(f"{view} is of one trace; give one")
        if options.region is not None or options.survey or options.guess is not None:
            raise UserError(f"{view} is of a whole trace: leave --region, --survey, --guess out")
    gates = {"--base": options.base, "--markdown": options.markdown}
    for name, given in gates.items() if options.fail_over is None else ():
        if given:
            raise UserError(f"{name} goes with --fail-over, such as --fail-over 5%")
    if options.markdown and options.json:
        raise UserError("--markdown and --json are two forms; ask for one")
    if options.top is not None and not options.json:
        raise UserError("--top goes with --json: people get a page of one screen without it")
    many = options.ranks or len(options.traces) > 2 or any(p.is_dir() for p in options.traces)
    if options.html and (views or many or options.fail_over is not None):
        raise UserError("--html is of one label, or of a survey; leave it out")
    if options.fail_over is not None or many:
        if options.survey or options.guess is not None:
            raise UserError("--survey and --guess are of one trace; give one")
    if many and options.fail_over is None:
        if options.region is not None:
            raise UserError("--region is of one trace, or goes with --fail-over")
        if len(options.traces) == 2 and all(path.is_dir() for path in options.traces):
            if not options.ranks:
                raise UserError(
                    "two folders: compare them with --fail-over 5%, or take both for the ranks of "
                    "one job with --ranks"
                )


def _reading(options: Options) -> "Reading":
    from .look_many import Reading

    return Reading(options.salvage, options.max_gb, options.jobs, options.dask)


def _whether_slower(options: Options) -> None:
    from .look_many import Comparison, look_whether_slower

    assert options.fail_over is not None
    if options.base:
        base, new = options.base, options.traces
    elif len(options.traces) == 2:
        base, new = options.traces[:1], options.traces[1:]
    else:
        raise UserError(
            f"--fail-over compares two sides, BASE and NEW, and {len(options.traces)} given: make "
            "each a recording or a folder, or name the recordings of BASE with --base"
        )
    asked = Comparison(base, new, options.region, options.metric, options.fail_over)
    look_whether_slower(asked, _reading(options), options.json, options.markdown, options.top)


def _view(linked: Linked, view: str, options: Options) -> None:
    from .show.as_json import print_json

    out, top = console(), options.top
    if view == "modules":
        from .read.modules import code
        from .show.modules import modules_json, show_modules

        found = code(linked)
        print_json(modules_json(found, top)) if options.json else show_modules(out, found)
    elif view == "memory":
        from .read.memory import memory
        from .show.memory import memory_json, show_memory

        held = memory(linked)
        if options.json:
            print_json(memory_json(linked, held, top))
        else:
            show_memory(out, linked, held)
    else:
        from .read.steps import profiled_steps
        from .show.steps import show_steps, steps_json

        steps = profiled_steps(linked)
        print_json(steps_json(steps, top)) if options.json else show_steps(out, steps)


def _is_for_survey(linked: Linked, region: str | None) -> bool:
    """Whether nobody asks for a region, and none stands for the whole."""
    return region is None and only_label(linked) is None


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
