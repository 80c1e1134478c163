"""The command that records and reads experiments, whichever it is."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest
from build import ROOT
from experiments import (
    PLAIN,
    WAITING,
    attention,
    conclusions,
    cost,
    leak,
    occupancy,
    peak,
    plan,
    refused,
    save,
    tuned,
)

from common import exercise as exercises
from common import experiment, look
from common.cli import UserError
from common.compare.compared import compare
from common.experiment import SHIPPED
from common.experiments import Asked
from common.experiments import cost as costs
from common.experiments import plan as plans
from common.read import recordings
from common.read.privacy import scan_file
from common.show.as_json import as_json


def command(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "common.experiment", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip


def test_without_a_gpu_it_names_replay():
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    for name in ("leak", "cost"):  # the latter in a process of its own
        done = command(name)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"the experiment {name} needs a GPU; --replay reads" in done.stderr
        assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_reading_needs_no_torch(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None; from pathlib import Path; "
        "from common import experiment as e; "
        f"e.experiment(e.Options('leak', replay={str(leak(tmp_path))!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "is the GPU time of the forwards" in done.stdout, done.stderr


def test_errors(tmp_path, ask):
    assert "invalid choice: 'speed'" in refused(ask, "speed")
    assert "no such folder" in refused(ask, "leak", "--replay", tmp_path / "none")
    assert "no recording of the experiment cost in" in refused(ask, "cost", "--replay", tmp_path)
    leak(tmp_path)
    device = {"type": "cuda", "name": "NVIDIA A100"}
    save(tmp_path, "leak", "never", attention(100), file="other", device=device)
    said = refused(ask, "leak", "--replay", tmp_path)
    assert "recordings of several machines (NVIDIA A100, torch 2.11.0; NVIDIA H200" in said


def test_the_documentation_explains_every_field_and_no_other(tmp_path, ask, capsys):
    leak(tmp_path)
    occupancy(tmp_path, ("flash", PLAIN, 49_152, 13))
    cost(tmp_path, a=[(1, 2)], b=[(3, 4)])
    save(tmp_path, "tuning", "triton", tuned(5000, 128, 256))
    peak(tmp_path, naive=528, **{"naive-del": 512})
    plan(tmp_path, "cudnn", 9000, 100)
    text = (ROOT / "docs" / "json.md").read_text().split("# The fields of `experiment --json`")[1]
    text, of_exercises = text.split("# The fields of `exercise --json`")
    tables, (exercise,) = (
        [re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", part, re.M)))
         for part in fields.split("| field | what it is |\n")[1:]]
        for fields in (text, of_exercises)
    )  # fmt: skip
    found = {
        name: json.loads(ask(name, "--json", "--replay", tmp_path)[1])
        for name in experiment.EXPERIMENTS
    }
    step = as_json(compare(experiment.load("occupancy", [tmp_path])[0].seen))
    recorded = {name: set(one["recordings"][0]) - {"file", "files"} for name, one in found.items()}
    recorded["occupancy"] -= set(step["steps"][0])
    assert [set(table) for table in tables] == [set(found["leak"]), *recorded.values()]
    exercises.exercise(exercises.Options(1, json=True))
    assert set(exercise) == set(json.loads(capsys.readouterr().out))


def test_glance_leaves_experiments_out_of_a_folder(tmp_path):
    leak(tmp_path)
    assert list(recordings.observed([tmp_path])) == []
    assert len(list(recordings.observed([tmp_path / "never.json"]))) == 1


def test_look_names_the_experiment(tmp_path, capsys):
    leak(tmp_path)
    look.look(look.Options(traces=[tmp_path / "never.json"]))
    assert capsys.readouterr().out.startswith("experiment_leak test attention never · bf16")


def test_a_variant_that_the_gpu_refuses_is_named_and_left_out(monkeypatch, capsys, tmp_path):
    """With a GPU and recordings that are none."""

    def one(name, recipe, traces, progress):
        if recipe.variant in refuses:
            raise UserError("not on this GPU")
        return traces / recipe.variant

    gpu = SimpleNamespace(device="cuda")
    monkeypatch.setattr("common.record.workload.choose", lambda options: (gpu, None))
    monkeypatch.setattr(experiment, "record_one", one)
    refuses = {"cudnn"}
    made = experiment.record("plan", tmp_path, 100)
    assert [path.name for path in made] == ["flash"]
    assert capsys.readouterr().err == "note: cudnn is left out: not on this GPU\n"
    refuses = set(plans.BACKENDS)
    with pytest.raises(UserError, match="nothing of the experiment plan could be recorded"):
        experiment.record("plan", tmp_path, 100)


def test_two_of_one_kind_are_not_mixed(tmp_path, ask):
    leak(tmp_path)
    save(tmp_path, "leak", "never", attention(100), file="again")
    said = refused(ask, "leak", "--replay", tmp_path)
    assert "two recordings of never [2, 4, 256, 64]: " in said and "again.json" in said


@pytest.mark.parametrize(
    ("name", "expected", "forwards"),
    [("leak", 2, 3), ("cost", 2, 6), ("peak", 4, 3), ("plan", 1, 8)],
)
def test_what_is_recorded_is_read_back(tmp_path, ask, monkeypatch, name, expected, forwards):
    """On the CPU, as far as that goes: the recipes run, and tell what they are."""
    from common.record.workload import Workload

    monkeypatch.setattr(costs, "KERNELS", ("gluon",))  # the others take long without a GPU
    work = Workload(1, 2, 64, 16, "fp32", "cpu")
    made = []
    for recipe in experiment.EXPERIMENTS[name].recipes(Asked(work, 4)):
        try:
            made.append(experiment.record_one(name, recipe, tmp_path))
        except UserError as error:
            assert recipe.backend in ("efficient", "cudnn"), error
    seen = experiment.load(name, [tmp_path])
    assert len(made) == len(seen) == expected
    for one in seen:
        assert one.story.script == f"experiment_{name}" and one.seen.trace.path in made
        assert len(one.seen.forwards) == forwards
        assert list(one.story.table_totals) == ["Self CPU time total"]  # no GPU, no total of it
    if name == "cost":
        for one in json.loads(ask(name, "--json", "--replay", tmp_path)[1])["recordings"]:
            assert one["variant"] in ("math", "flash")
            assert one["unrecorded_forwards"] == costs.TURN and one["unrecorded_cpu_us"][0] > 0
    elif name == "peak":
        assert "it does not tell the peak" in refused(ask, name, "--replay", tmp_path)
    elif name == "plan":
        assert [one["call"] for one in json.loads(ask(name, "--json", "--replay", tmp_path)[1])[
            "recordings"]] == list(plans.CALLS)  # fmt: skip
    else:
        assert "does not tell the table's total" in conclusions(ask, name, tmp_path)[0]


@WAITING
def test_shipped_recordings_are_small_and_name_nobody():
    files = [path for path in SHIPPED.rglob("*") if path.is_file()]
    assert files and all(path.name.endswith(".json.gz") for path in files)
    assert sum(path.stat().st_size for path in files) < 600_000
    assert [path for path in files if scan_file(path)] == []
