"""Many files side by side: the same values, errors as text, nothing left running."""

from pathlib import Path

import pytest
from build import ROOT, write

from common.cli import UserError
from common.read.many import cores, each, each_by_dask, files
from common.read.trace import read

REPEATS = ROOT / "tests" / "data" / "repeats"


def kernels(path: Path, name: str) -> tuple[str, int]:
    return name, len(read(path).gpu)


def test_files_of_folders(tmp_path):
    for name in ("b/2.json", "b/1.json.gz", "a.json", "b/note.txt"):
        write(tmp_path, b"{}", name)
    found = files([tmp_path / "b", tmp_path / "a.json", tmp_path / "a.json"])
    assert [path.name for path in found] == ["1.json.gz", "2.json", "a.json"]
    with pytest.raises(UserError, match="no .json"):
        files([write(tmp_path, b"", "c/x.txt").parent])


@pytest.mark.parametrize("jobs", [1, 2])
def test_values_and_errors(tmp_path, jobs):
    broken = write(tmp_path, b"", "broken.json")
    paths, told = [*files([REPEATS])[:3], broken], []
    answers = {
        path: (value, why)
        for path, value, why in each(kernels, paths, jobs, lambda *done: told.append(done))
    }
    assert answers.keys() == set(paths) and told[-1] == (4, 4)
    assert answers[broken][0] is None and "empty trace" in answers[broken][1]
    for path in paths[:3]:
        assert answers[path] == (("tests/data/repeats/" + path.name, 10), "")


def test_whoever_stops_early_waits_for_nobody():
    found = each(kernels, files([REPEATS]), 2)
    next(found)
    found.close()


def test_cores():
    assert cores() >= 1


def test_without_dask_it_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(UserError, match="--extra dask"):
        next(each_by_dask(kernels, files([REPEATS]), "tcp://127.0.0.1:1"))


def test_by_the_workers_of_a_cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster:
        paths = files([REPEATS])[:3]
        by_dask = sorted(each_by_dask(kernels, paths, cluster.scheduler_address))
    assert by_dask == sorted(each(kernels, paths, 1))
