"""Experiments that settle what a table or a trace alone leaves open. Each records what it needs on
this machine's GPU, or reads recordings with --replay, and draws its conclusion from them.

    leak        is the table's "Self CUDA time total" the time of the forwards? The same attention
                recorded with and without one synchronise at the end of the warm-up
    occupancy   why the profiler says 0 % for kernels that run well: because of how they are
                launched, or of the shared memory they take?
    cpu         which SDPA backend costs most CPU time, and which cannot be told apart: many
                forwards, each waited for, so that no launch waits for the GPU
    tuning      what a trace shows of an autotuned kernel that was not warmed up: the first recorded
                forward has forgotten which tiles are fastest
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from .cli import UserError, note, one_line_errors, option, parse, positive, progress, shown
from .experiments import Asked, Recipe, Recorded, cpu, leak, occupancy, tuning
from .read import recordings
from .read.observe import observe
from .read.trace import read
from .show.as_json import print_json
from .show.tables import show_experiment
from .show.terminal import console

SHIPPED = Path(__file__).parent.parent / "traces" / "experiments"
EXPERIMENTS = {"leak": leak, "occupancy": occupancy, "cpu": cpu, "tuning": tuning}


@dataclass(frozen=True)
class Options:
    experiment: str = option(
        None,
        "leak, occupancy, cpu or tuning",
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
    forwards: int = option(100, "forwards that cpu records", type=positive, metavar="N")
    traces: Path = option(Path("traces"), "folder for the recordings", type=Path, metavar="DIR")
    json: bool = option(False, "print one JSON object", action="store_true")


def experiment(options: Options) -> None:
    name = options.experiment
    if options.replay is None:
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
    files: dict[tuple[str, str], str] = {}
    for one in found:
        kind = one.variant, str(list(one.story.shape))
        if files.setdefault(kind, one.file) != one.file:
            raise UserError(
                f"two recordings of {' '.join(kind)}: {files[kind]} and {one.file}; give a folder "
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
    with progress() as doing:
        for recipe in EXPERIMENTS[name].recipes(Asked(work, forwards)):
            try:
                made.append(record_one(name, recipe, traces, doing))
            except UserError as error:
                note(f"{recipe.variant} is left out: {error}")
    if not made:
        raise UserError(f"nothing of the experiment {name} could be recorded; the notes say why")
    return made


def record_one(
    name: str, recipe: Recipe, traces: Path, doing: Callable[[str], None] = lambda what: None
) -> Path:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from .record import harness, workload

    backends = {
        "math": SDPBackend.MATH,
        "efficient": SDPBackend.EFFICIENT_ATTENTION,
        "flash": SDPBackend.FLASH_ATTENTION,
        "cudnn": SDPBackend.CUDNN_ATTENTION,
    }
    with sdpa_kernel(backends[recipe.backend]) if recipe.backend else nullcontext():
        return harness.record(
            recipe.attention,
            recipe.work,
            recipe.subject,
            workload.Options(traces=traces, active=recipe.active),
            script=f"experiment_{name}",
            variant=recipe.variant,
            synchronise=recipe.synchronise,
            progress=lambda what: doing(f"{recipe.variant}: {what}"),
        ).trace


if __name__ == "__main__":
    with one_line_errors():
        experiment(parse(Options, __doc__, "leak --replay", module="common.experiment"))
