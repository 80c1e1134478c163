"""Recordings side by side, in tables."""

from build import SCRIPTS, forward, make, story, trace, write
from seen import groups, sweep_of

from common.compare.variants import exponent, sweeps
from common.show import tables

NAIVE, SDPA = SCRIPTS["04_a"], SCRIPTS["04_c"]


def test_of_two_recordings_of_one_variant_it_is_said_which_is_which(tmp_path):
    for folder in ("one", "two"):
        make(tmp_path, f"{folder}/a/n.json", script=NAIVE)
    (one,) = groups(tmp_path)
    _, lines = tables.glance_table(one)
    assert [
        str(tmp_path / folder) in line[0]
        for folder, line in zip(("one", "two"), lines, strict=True)
    ] == [True, True]


def test_an_unknown_gpu_has_no_peak(tmp_path):
    device = {"type": "cuda", "name": "NVIDIA H200 MIG 1g.18gb"}
    (one,) = groups(make(tmp_path, "t.json", script=NAIVE, device=device))
    assert one.variants[0].share_of_peak is None
    heads, (line,) = tables.glance_table(one)
    assert line[heads.index("of\npeak")] == "unknown"
    assert "by NVIDIA's data sheet" not in "".join(tables.footnote([one]))


def test_without_a_gpu_ops_are_counted_and_nothing_is_said_of_gpus(tmp_path):
    events = forward(100, ("masked_fill clone copy_", "", 0), ("softmax _softmax", "", 0))
    about = story(script=NAIVE, device={"type": "cpu", "name": "CPU"}, peak_bytes=None)
    (one,) = groups(write(tmp_path, trace(events, about=about, device=None)))
    heads, (line,) = tables.glance_table(one)
    assert "GPU" not in heads and "of\npeak" not in heads
    assert line[heads.index("working\nops")] == "2"


def test_growth_is_told_with_its_error():
    noisy = [(512, 5), (1024, 80), (2048, 6), (4096, 90)]
    _, error = exponent(noisy)
    assert f"± {error:.2f}" in tables.growth(noisy)
    assert tables.growth([(x, x**2) for x in (1, 2, 4)]) == "seq^2.00"
    assert tables.growth(noisy[:2]) == "unknown"


def test_why_a_length_could_not_be_recorded_is_said(tmp_path):
    (one,) = sweeps(groups(sweep_of(tmp_path)))
    refused = {((NAIVE, ""), "eager", 2048): "out of memory", ((NAIVE, ""), "compile", 256): "no"}
    assert tables.missing(one, refused) == ["04_a at 2048: out of memory"]
    refused[(SDPA, "cudnn"), "eager", 512] = "needs CUDA"
    assert "04_c cudnn at 256, 512, 1024, 2048: needs CUDA" in tables.missing(one, refused)
