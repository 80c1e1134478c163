"""occupancy: what it concludes, and the opposite from opposite traces."""

import json
import re

import pytest
from build import forward, recording, truth
from experiments import EX, PLAIN, WAITING, as_experiment, conclusions, occupancy, refused, save


def test_shared_memory_decides_and_the_launch_call_does_not(tmp_path, ask):
    folder = occupancy(
        tmp_path,
        ("flash", PLAIN, 49_152, 13),
        ("wide", PLAIN, 65_536, 0),
        ("cudnn", EX, 134_144, 0),
        ("triton", EX, 16_384, 50),
    )
    assert conclusions(ask, "occupancy", folder) == [
        "Shared memory decides: above 49,152 bytes a block the profiler says 0 % (2 kernels), up "
        "to that it does not (2 kernels).",
        "The launch call does not: cuLaunchKernelEx launched cudnn 64, which reads 0 %, "
        "and triton 64, which reads 50 %.",
    ]
    code, out, _ = ask("occupancy", "--replay", folder)
    lines = [re.split(r"  +", line.strip()) for line in out.splitlines()]
    # 168 registers × 128 threads: three blocks of 12 a quarter of the registers, 12 of 64 warps.
    assert ["flash 64", PLAIN, "168×128", "49,152", "13 %", "19 %", "12/64",
            "registers"] in lines  # fmt: skip
    assert ["cudnn 64", EX, "168×128", "134,144", "0 %", "6 %", "4/64",
            "shared"] in lines  # fmt: skip
    assert all(len(line) <= 100 for line in out.splitlines())


def test_occupancy_does_not_decide_what_the_recordings_do_not(tmp_path, ask):
    apart = occupancy(tmp_path / "a", ("flash", PLAIN, 49_152, 13), ("cudnn", EX, 134_144, 0))
    assert conclusions(ask, "occupancy", apart)[1].startswith("The launch call may decide as well")
    for kernels, what in (
        ([("flash", PLAIN, 49_152, 13)], "no kernel reads 0 %"),
        ([("cudnn", EX, 134_144, 0)], "every kernel reads 0 %"),
    ):
        folder = occupancy(tmp_path / what[:2], *kernels)
        assert conclusions(ask, "occupancy", folder) == [f"Nothing to compare: {what}."]


@pytest.mark.parametrize("odd", [("odd", EX, 16_384, 0), ("odd", EX, 65_536, 25)])
def test_occupancy_says_when_shared_memory_does_not_decide(tmp_path, ask, odd):
    folder = occupancy(tmp_path, ("flash", PLAIN, 49_152, 13), ("cudnn", PLAIN, 134_144, 0), odd)
    first, second = conclusions(ask, "occupancy", folder)
    assert first == (
        f"Shared memory does not decide: odd 64 takes {odd[2]:,} bytes a block and reads "
        f"{odd[3]} %."
    )
    assert second.startswith("The launch call does not: cudaLaunchKernel launched cudnn")


def test_an_occupancy_that_is_not_told_is_unknown(tmp_path, ask):
    folder = occupancy(tmp_path, ("flash", PLAIN, 49_152, None), ("x", PLAIN, None, 0))
    out = ask("occupancy", "--replay", folder)[1]
    assert "unknown" in out and "Nothing to compare" in out


def test_occupancy_on_real_recordings(tmp_path, ask):
    for backend in ("flash", "cudnn", "efficient"):
        as_experiment(tmp_path, "occupancy", backend, recording("04_c", "eager", backend))
    found = json.loads(ask("occupancy", "--json", "--replay", tmp_path)[1])
    for one in found["recordings"]:
        backend = one["recording"].split()[0]
        event = truth(recording("04_c", "eager", backend))[0]["work"][-1]
        assert one["launch"] == event["call"]
        assert one["shared_memory"] == event["event"]["args"]["shared memory"]
        says = event["event"]["args"]["est. achieved occupancy %"]
        assert one["occupancy_reported_pct"] == says
        if one["shared_memory"] <= 49_152:  # there both limits give the same
            assert one["occupancy_with_opt_in_limit_pct"] == says
    assert found["conclusions"][0].endswith("(1 kernel), up to that it does not (2 kernels).")
    assert "NVIDIA H200" == found["device"]


def test_occupancy_needs_kernels(tmp_path, ask):
    save(tmp_path, "occupancy", "flash", forward(100, ("sdpa", "", 0)))
    assert "no kernel in it" in refused(ask, "occupancy", "--replay", tmp_path)


KERNELS = {"flash 64", "flash 128", "cudnn 64", "triton 64", "triton-small 64"}


@WAITING
def test_shipped_occupancy(ask):
    found = json.loads(ask("occupancy", "--replay", "--json")[1])
    assert {one["recording"] for one in found["recordings"]} == KERNELS
    over = [one for one in found["recordings"] if one["shared_memory"] > 49_152]
    agrees = all(
        (one["occupancy_reported_pct"] == 0) == (one in over) for one in found["recordings"]
    )
    assert ("Shared memory decides" in found["conclusions"][0]) == agrees
