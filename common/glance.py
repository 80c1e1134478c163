"""Everything at a glance: one table of every variant that was recorded.

Without arguments it reads the recordings that come with the project; nothing is run then, and
neither torch nor a GPU is needed.
"""

from dataclasses import dataclass
from pathlib import Path

from common import recordings, report
from common.cli import UserError, one_line_errors, option, parse, shown
from common.variants import group, sweeps


@dataclass(frozen=True)
class Options:
    files: list[Path] = option(
        None,
        "recordings, or folders of them (default: those that come with the project)",
        positional=True,
        type=Path,
        nargs="*",
        metavar="FILE",
    )
    json: bool = option(False, "print one JSON object", action="store_true")


def glance(options: Options) -> None:
    paths = options.files or [recordings.SHIPPED]
    groups = group(recordings.observed(paths))
    if not groups:
        raise UserError(
            f"no recording in {', '.join(map(shown, paths))}; make some: "
            "uv run -m common.glance --record"
        )
    if options.json:
        report.print_json(report.glance_json(groups, sweeps(groups)))
        return
    report.show_groups(report.console(), groups)


if __name__ == "__main__":
    with one_line_errors():
        glance(parse(Options, __doc__, "traces/", module="common.glance"))
