"""Many files: each is read by itself and becomes a small value; the values are handed back as they
come, so that nobody holds more than what is being read.

On this machine by processes side by side, each with one file at a time; or by the workers of a Dask
cluster, which must see the files under the same paths.
"""

import gc
import os
import pickle
import signal
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ..cli import UserError, shown

Value = TypeVar("Value")
# From a file and what it is called here: another machine may stand in another folder.
Make: TypeAlias = Callable[[Path, str], Value]
Progress = Callable[[int, int], None]  # of so many files so many are read
ENDINGS = (".json", ".json.gz")
PATIENCE = 30  # seconds, for a cluster's first worker
AHEAD = 2  # files that a process has before it


def cores() -> int:
    """Those that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def files(paths: Sequence[Path]) -> list[Path]:
    """The traces of files and folders, in order of their names, each once. Raises UserError for a
    folder without any."""
    found: dict[Path, None] = {}
    for path in paths:
        if not path.is_dir():
            found[path] = None
            continue
        inside = sorted(
            one for one in path.rglob("*") if one.name.endswith(ENDINGS) and one.is_file()
        )
        if not inside:
            raise UserError(f"{shown(path)}: no {' or '.join(ENDINGS)} in this folder")
        found |= dict.fromkeys(inside)
    return list(found)


def _answer(make: Make[Value], path: Path, name: str) -> tuple[Value | None, str]:
    """The value, or why there is none: an error crosses processes as its text."""
    try:
        return make(path, name), ""
    except UserError as error:
        return None, str(error)
    finally:
        gc.collect()


def _no_interrupts() -> None:
    """Ctrl-C reaches every process of the terminal; only the one that asks answers it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def each(
    make: Make[Value],
    paths: Sequence[Path],
    jobs: int,
    progress: Progress = lambda done, of: None,
) -> Iterator[tuple[Path, Value | None, str]]:
    """Of each file its value, or None and why it could not be read, in whichever order they come.
    `make` must be a function of a module, and its value small."""
    if min(jobs, len(paths)) <= 1:
        for number, path in enumerate(paths, 1):
            yield path, *_answer(make, path, shown(path))
            progress(number, len(paths))
        return
    # Spawned, not forked: what this process holds is not theirs.
    pool = ProcessPoolExecutor(min(jobs, len(paths)), get_context("spawn"), _no_interrupts)
    todo, running = list(reversed(paths)), dict[Future, Path]()
    done = 0
    try:
        while todo or running:
            while todo and len(running) < AHEAD * jobs:
                path = todo.pop()
                running[pool.submit(_answer, make, path, shown(path))] = path
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                path = running.pop(future)
                done += 1
                yield path, *future.result()
                progress(done, len(paths))
    except BrokenProcessPool as error:
        raise UserError(
            "a reading process was ended from outside, for want of memory? Fewer --jobs need less"
        ) from error
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def each_by_dask(
    make: Make[Value],
    paths: Sequence[Path],
    scheduler: str,
    progress: Progress = lambda done, of: None,
) -> Iterator[tuple[Path, Value | None, str]]:
    """The same by the workers of the Dask scheduler at an address such as tcp://host:8786."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise UserError(
            "--dask needs Dask: uv run --extra dask -m common.look … (here it is not installed)"
        ) from error
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, ValueError, TimeoutError) as error:
        raise UserError(
            f"--dask {scheduler}: no scheduler answers there; start one: dask scheduler"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            raise UserError(
                f"--dask {scheduler}: it has no workers; start some: dask worker {scheduler}"
            ) from error
        with tempfile.TemporaryDirectory() as folder:
            client.upload_file(str(_package(Path(folder))))
        futures: dict[Any, Path] = {}
        for path in paths:
            task = pickle.dumps((_answer, make, path.resolve(), shown(path)))
            futures[client.submit(_on_worker, task, pure=False)] = path
        done = 0
        for future in as_completed(futures):
            try:
                answer = pickle.loads(future.result())
            except Exception as error:  # whatever a machine of somebody's cluster lacks
                said = f"{type(error).__name__}: {error}"
                raise UserError(f"--dask {scheduler}: a worker failed with {said}") from error
            done += 1
            yield futures.pop(future), *answer
            progress(done, len(paths))


def _on_worker(task: bytes) -> bytes:
    """Bytes both ways: the scheduler, which passes them on, need not have this program."""
    make, *arguments = pickle.loads(task)
    return pickle.dumps(make(*arguments))


_on_worker.__module__ = "__main__"  # sent as it stands here, and not by its name


def _package(folder: Path) -> Path:
    """This program as a file that workers load: the same code reads, whatever they have."""
    package = Path(__file__).parent.parent
    found = folder / f"{package.name}.zip"
    with zipfile.ZipFile(found, "w") as file:
        for path in sorted(package.rglob("*.py")):
            file.write(path, path.relative_to(package.parent))
    return found
