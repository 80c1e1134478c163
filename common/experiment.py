"""Experiments that settle what a table or a trace alone leaves open. Each records what it needs on
this machine's GPU, or reads recordings with --replay, and draws its conclusion from them.

    leak        is the table's "Self CUDA time total" the time of the forwards? The same attention
                recorded with and without one synchronise at the end of the warm-up
    occupancy   why the profiler says 0 % for kernels that run well: because of how they are
                launched, or of the shared memory they take?
    cost        what a forward costs the CPU, recorded and not: variants in turns, in several
                processes one after the other. A second run into the same folder adds to it
    tuning      what a trace shows of an autotuned kernel that was not warmed up: the first recorded
                forward has forgotten which tiles are fastest
    peak        whether working in place saves memory, and which line holds the peak
    plan        whether cuDNN looks for its kernel anew in every call
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from .cli import UserError, note, one_line_errors, option, parse, positive, progress, shown
from .experiments import Asked, Recipe, Recorded, cost, leak, occupancy, peak, plan, tuning
from .read import recordings
from .read.observe import observe
from .read.trace import read
from .show.as_json import print_json
from .show.tables import show_experiment
from .show.terminal import console

SHIPPED = Path(__file__).parent.parent / "traces" / "experiments"
EXPERIMENTS = {
    "leak": leak,
    "occupancy": occupancy,
    "cost": cost,
    "tuning": tuning,
    "peak": peak,
    "plan": plan,
}


@dataclass(frozen=True)
class Options:
    experiment: str = option(
        None,
        "leak, occupancy, cost, tuning, peak or plan",
        positional=True,
        choices=tuple(EXPERIMENTS),
        metavar="EXPERIMENT",
    )
    replay: str | None = option(
        None,
        "read recordings instead of making them: of a FOLDER, or the shipped ones",
        nargs="?",
        const="",
        metavar="FOLDER",
    )
    forwards: int = option(
        50, "forwards of each variant that a process of cost times", type=positive, metavar="N"
    )
    processes: int = option(
        cost.PROCESSES, "processes of cost; 1 is this one", type=positive, metavar="N"
    )
    traces: Path = option(Path("traces"), "folder for the recordings", type=Path, metavar="DIR")
    json: bool = option(False, "print one JSON object", action="store_true")


def experiment(options: Options) -> None:
    name = options.experiment
    if options.replay is None:
        if name == "cost" and options.processes > 1:
            paths = in_processes(options)
        else:
            paths = record(name, options.traces, options.forwards)
        note(f"recorded in {shown(paths[0].parent)}")
    else:
        paths = [Path(options.replay) if options.replay else SHIPPED]
    found = load(name, paths)
    result = EXPERIMENTS[name].read(found)
    story = found[0].story
    if options.json:
        print_json(
            {
                "experiment": name,
                "device": story.device.name,
                "torch": story.versions.torch,
                "recordings": result.found,
                "conclusions": result.conclusions,
            }
        )
        return
    shapes = {str(list(one.story.shape)) for one in found}
    work = f"{story.dtype} {shapes.pop() if len(shapes) == 1 else ''}".strip()
    title = [f"experiment: {name}", work, story.device.name, f"torch {story.versions.torch}"]
    show_experiment(console(), " · ".join(title), result.heads, result.lines, result.conclusions)


def load(name: str, paths: Sequence[Path]) -> list[Recorded]:
    """The recordings of this experiment: all of one machine.

    Raises UserError when there are none, two of one kind, or some of several GPUs or versions.
    """
    found: list[Recorded] = []
    for path in paths:
        if not path.exists():
            raise UserError(
                "no recordings of experiments come with this copy; record: uv run -m "
                f"common.experiment {name}"
                if path == SHIPPED
                else f"--replay {shown(path)}: no such folder"
            )
        found += [
            Recorded(observe(read(file)), story)
            for file, story in _files(path)
            if story.script == f"experiment_{name}"
        ]
    if not found:
        raise UserError(f"no recording of the experiment {name} in {' '.join(map(shown, paths))}")
    machines = {f"{one.story.device.name}, torch {one.story.versions.torch}" for one in found}
    if len(machines) > 1:
        raise UserError(
            f"recordings of several machines ({'; '.join(sorted(machines))}): give the folder of "
            "one with --replay"
        )
    files: dict[str, str] = {}
    for one in found:
        kind = f"{one.variant} {list(one.story.shape)}"
        if told := one.story.unrecorded:
            kind += f", process {told.process}"
        if files.setdefault(kind, one.file) != one.file:
            raise UserError(
                f"two recordings of {kind}: {files[kind]} and {one.file}; give a folder "
                "with one of them"
            )
    return found


def _files(path: Path):
    if path.is_dir():
        yield from recordings.recordings_in(path)
    elif story := recordings.story_of(path):
        yield path, story


# ── Recording: from here on with torch ────────────────────────────────────────────────────────────


def record(name: str, traces: Path, forwards: int) -> list[Path]:
    """Record the experiment on this machine's GPU. Returns the trace files. A variant that this GPU
    refuses is named and left out."""
    from .record import workload

    work, why = workload.choose(workload.Options())
    if work.device == "cpu":
        raise UserError(
            f"{why}, and the experiment {name} needs a GPU; --replay reads the recordings of one"
        )
    made = []
    process = 1 + max(
        (told.process for _, told in _unrecorded(traces / f"experiment_{name}")), default=0
    )
    with progress() as doing:
        doing("compiling, tuning, timing")
        for recipe in EXPERIMENTS[name].recipes(Asked(work, forwards, process)):
            try:
                made.append(record_one(name, recipe, traces, doing))
            except UserError as error:
                note(f"{recipe.variant} is left out: {error}")
    if not made:
        raise UserError(f"nothing of the experiment {name} could be recorded; the notes say why")
    return made


def _unrecorded(folder: Path):
    """What lies there already of an experiment in several processes."""
    for path, story in recordings.recordings_in(folder):
        if story.unrecorded:
            yield path, story.unrecorded


def in_processes(options: Options) -> list[Path]:
    """Record one after the other in processes of their own. Returns all files there are then: those
    of an earlier run count as well."""
    command = [
        *(sys.executable, "-m", "common.experiment", options.experiment, "--processes", "1"),
        *("--forwards", str(options.forwards), "--traces", str(options.traces), "--json"),
    ]
    with progress() as doing:
        for number in range(options.processes):
            doing(f"process {number + 1} of {options.processes}")
            child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            try:
                code = child.wait()
            except KeyboardInterrupt:  # the terminal has interrupted the child as well
                child.wait()
                code = 130
            if code in (2, 130):  # its line has been printed
                sys.exit(code)
            if code:
                raise UserError(
                    f"process {number + 1} of {options.processes} ended with exit code {code}"
                )
    return [path for path, _ in _unrecorded(options.traces / f"experiment_{options.experiment}")]


def pinned(backend: str) -> AbstractContextManager:
    """A context in which SDPA takes this backend and no other."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backends = {
        "math": SDPBackend.MATH,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
    }
    return sdpa_kernel(backends[backend])


def record_one(
    name: str, recipe: Recipe, traces: Path, doing: Callable[[str], None] = lambda what: None
) -> Path:
    from .record import harness, workload

    with pinned(recipe.backend) if recipe.backend else nullcontext():
        return harness.record(
            recipe.attention,
            recipe.work,
            recipe.subject,
            workload.Options(traces=traces, active=recipe.active),
            script=f"experiment_{name}",
            variant=recipe.variant,
            synchronise=recipe.synchronise,
            calls=recipe.calls,
            unrecorded=recipe.unrecorded,
            progress=lambda what: doing(f"{recipe.variant}: {what}"),
        ).trace


if __name__ == "__main__":
    with one_line_errors():
        experiment(parse(Options, __doc__, "leak --replay", module="common.experiment"))
