"""The benchmark's figures, from measurements made up here and from the shipped runs."""

import json
import math
import statistics
from types import SimpleNamespace

import pytest
import torch
from build import ROOT

from common import bench
from common.bench import Options
from common.cli import UserError

SHIPPED = [ROOT / "docs" / "bench" / f"h200_{number}.json" for number in (1, 2)]


@pytest.fixture
def gpu(monkeypatch):
    """A GPU whose every call takes 10 µs with cuDNN and 5 with ours."""
    us = {"cudnn": [9.0, 10.0, 11.0], "ours": [4.0, 5.0, 9.0]}
    monkeypatch.setattr(bench, "why_no_cuda", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA Test")
    monkeypatch.setattr(bench, "contenders", lambda work: dict.fromkeys(us))
    monkeypatch.setattr(bench, "check", lambda name, attention, work: 0.001234567)
    monkeypatch.setattr(bench, "measure", lambda attentions, work: us)
    monkeypatch.setattr(
        bench, "kernels_alone", lambda attentions, work: {"cudnn": [8.0], "ours": [6.0]}
    )
    monkeypatch.setattr(bench, "cpu_cost", lambda attentions, work: dict.fromkeys(attentions, 33.3))


def rows(text: str) -> dict[str, list[str]]:
    return {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}


def test_medians_rates_and_ratios(gpu, capsys):
    bench.main(Options(seq=1024, head_dim=64))
    out = capsys.readouterr().out
    assert out.startswith("NVIDIA Test · torch")
    rate = 4 * 8 * 16 * 1024**2 * 64 / 2 / 5 / 1e6  # TFLOP/s at a median of 5 µs
    assert rows(out)["ours"] == [
        "ours", "5.0", "4.0", "…", "9.0", f"{rate:.0f}", "0.500", "6.0", "0.750", "33",
    ]  # fmt: skip


def test_what_is_written_is_what_is_replayed(gpu, capsys, tmp_path):
    path = tmp_path / "bench.json"
    bench.main(Options(head_dim=64, json=path))
    printed = capsys.readouterr()
    assert "bench.json is written" in printed.err
    bench.main(Options(replay=[path], head_dim=64))
    assert capsys.readouterr().out == printed.out
    found = json.loads(path.read_text())
    assert [one["shape"][2] for one in found["results"]] == [512, 1024, 2048, 4096, 8192, 16384]
    assert found["results"][0]["relative_error"]["ours"] == 0.00123457


def test_several_runs_stand_behind_each_other(capsys):
    bench.main(Options(replay=SHIPPED, seq=1024, head_dim=64))
    row = rows(capsys.readouterr().out)["gluon"]
    runs = [json.loads(path.read_text()) for path in SHIPPED]
    same = [one for run in runs for one in run["results"] if one["shape"] == [8, 16, 1024, 64]]
    medians = [statistics.median(one["us"]["gluon"]) for one in same]
    assert row[1:3] == [f"{us:.1f}" for us in medians]


def test_shipped_runs_hold_every_shape_and_right_results():
    for path in SHIPPED:
        found = json.loads(path.read_text())
        shapes = [tuple(one["shape"]) for one in found["results"]]
        assert shapes == [work.shape for work in bench.sweep(Options())]
        errors = [error for one in found["results"] for error in one["relative_error"].values()]
        assert all(math.isfinite(error) and error <= bench.TOLERANCE["bf16"] for error in errors)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seq": 100}, "--seq 100 .* nothing to time; choose of 512"),
        ({"json": ROOT / "nowhere" / "b.json"}, "--json nowhere/b.json: No such file"),
        ({"replay": [ROOT / "nowhere.json"]}, "--replay nowhere.json: No such file"),
        ({"replay": [ROOT / "pyproject.toml"]}, "pyproject.toml: not a file of this benchmark"),
    ],
)
def test_errors(gpu, options, words):
    with pytest.raises(UserError, match=words):
        bench.main(Options(**options))


def test_without_a_gpu_it_names_replay(monkeypatch):
    monkeypatch.setattr(bench, "why_no_cuda", lambda: "no driver")
    with pytest.raises(UserError, match="needs a GPU: no driver; --replay shows"):
        bench.main(Options())


def test_runs_of_two_machines_are_not_laid_side_by_side(tmp_path):
    other = json.loads(SHIPPED[0].read_text()) | {"gpu": "NVIDIA Other"}
    path = tmp_path / "other.json"
    path.write_text(json.dumps(other))
    with pytest.raises(UserError, match="several machines"):
        bench.main(Options(replay=[SHIPPED[0], path]))


def test_the_two_rounds_that_warm_up_are_thrown_away(monkeypatch):
    """Contenders take turns; what the first two turns took is in no sample."""
    turns = {"a": iter(range(1, 10)), "b": iter(range(101, 110))}
    graph = lambda attention, sets: (SimpleNamespace(replay=attention), 10)  # noqa: E731
    monkeypatch.setattr(bench, "_graph", graph)
    monkeypatch.setattr(bench, "_elapsed_us", lambda replay: 10 * next(turns[replay]))
    work = SimpleNamespace(inputs=lambda seed: None)
    assert bench.ROUNDS == 9
    assert bench.measure({name: name for name in turns}, work) == {
        "a": [3, 4, 5, 6, 7, 8, 9],
        "b": [103, 104, 105, 106, 107, 108, 109],
    }
