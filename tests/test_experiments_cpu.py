"""cpu: what it ranks, and what it says that it cannot tell."""

import json
from statistics import mean, stdev

import pytest
from build import forward, recording, region, truth
from experiments import WAITING, as_experiment, conclusions, cpu, refused, save

from common.experiments import BACKENDS


def test_cpu_ranks_what_can_be_told_apart(tmp_path, ask):
    times = {
        "cudnn": [200, 210, 190, 204], "flash": [130, 138, 122, 131],
        "efficient": [128, 139, 121, 130], "math": [600, 640, 560, 610],
    }  # fmt: skip
    folder = cpu(tmp_path, **times)
    first, second = conclusions(ask, "cpu", folder)
    assert first == (
        "math > cudnn > flash ≈ efficient   (≈: closer than two standard errors of their "
        "difference)"
    )
    math, cudnn = times["math"], times["cudnn"]
    unsure = 2 * (stdev(math) ** 2 / 4 + stdev(cudnn) ** 2 / 4) ** 0.5
    assert second == (
        f"math costs most, {mean(math) - mean(cudnn):.0f} µs more than cudnn; up to "
        f"{unsure:.3g} µs would be noise."
    )
    found = json.loads(ask("cpu", "--json", "--replay", folder)[1])["recordings"]
    assert [one["backend"] for one in found] == ["math", "cudnn", "flash", "efficient"]
    assert found[1] | {"file": 0} == {
        "backend": "cudnn", "file": 0, "forwards": 4, "cpu_us_mean": 201.0,
        "cpu_us_standard_error": round(stdev(cudnn) / 2, 3), "cpu_us_median": 202.0,
    }  # fmt: skip
    assert "201 ± 4.2" in ask("cpu", "--replay", folder)[1]


def test_cpu_says_that_it_cannot_tell(tmp_path, ask):
    folder = cpu(tmp_path, flash=[100, 120, 140], cudnn=[101, 121, 142])
    first, second = conclusions(ask, "cpu", folder)
    assert first.startswith("cudnn ≈ flash")
    assert second.startswith(
        "which costs most cannot be told, for cudnn and flash differ by 1.33 µs"
    )
    clear = conclusions(ask, "cpu", cpu(tmp_path / "2", flash=[100, 101], cudnn=[300, 301]))
    assert clear[0] == "cudnn > flash"


def test_cpu_compares_the_fused_backends_among_themselves(tmp_path, ask):
    def recorded(variant, kernels, *times):
        work = [
            [region(5000 * n, us), forward(5000 * n + 2, *[("sdpa", "k", 5)] * kernels)[1:]]
            for n, us in enumerate(times, 1)
        ]
        save(tmp_path, "cpu", variant, work)

    recorded("math", 2, 600, 620)
    recorded("cudnn", 1, 200, 202)
    recorded("flash", 1, 130, 131)
    assert conclusions(ask, "cpu", tmp_path)[-1].startswith(
        "Of those that are one kernel: cudnn costs most, 70.5 µs more than flash"
    )
    recorded("flash", 1, 199, 202)
    assert "one kernel: which costs most cannot be told" in conclusions(ask, "cpu", tmp_path)[-1]


def test_cpu_needs_several_forwards(tmp_path, ask):
    assert "fewer than two" in refused(
        ask, "cpu", "--replay", cpu(tmp_path, flash=[1, 2], math=[3])
    )


def test_cpu_on_real_recordings(tmp_path, ask):
    for backend in ("flash", "cudnn", "efficient"):
        as_experiment(tmp_path, "cpu", backend, recording("04_c", "eager", backend))
    for one in json.loads(ask("cpu", "--json", "--replay", tmp_path)[1])["recordings"]:
        spans = [f["dur"] for f in truth(recording("04_c", "eager", one["backend"]))]
        assert one["forwards"] == 3
        assert one["cpu_us_mean"] == pytest.approx(float(mean(spans)), abs=1e-3)


@WAITING
def test_shipped_cpu(ask):
    found = json.loads(ask("cpu", "--replay", "--json")[1])
    assert {one["backend"] for one in found["recordings"]} == set(BACKENDS)
    assert all(one["forwards"] >= 100 for one in found["recordings"])
