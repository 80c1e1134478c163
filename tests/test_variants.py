"""What may be compared, and figures that rest on it: ratios, rates, growth."""

import pytest
from build import RECORDED, ROOT, SCRIPTS, make, recording
from seen import groups, shipped

from common.compare.variants import TUTORIAL, exponent, sweeps
from common.read.trace import read

NAIVE, IN_PLACE = SCRIPTS["04_a"], SCRIPTS["04_b"]


def test_in_place_has_one_copy_fewer_than_naive_and_else_the_same():
    naive, in_place = (shipped()[name].seen for name in ("04_a naive", "04_b in-place"))
    count = {name: naive.per_forward(name) for name in ("kernel", "copy", "memset")}
    assert count == {"kernel": 5, "copy": 1, "memset": 1}
    assert in_place.per_forward("copy") == 0
    assert in_place.per_forward("kernel") == 5


@pytest.mark.parametrize("mode", ["eager", "compile"])
def test_naive_is_once_itself_and_fused_kernels_a_fraction_of_it(mode):
    found = shipped(mode)
    assert found["04_a naive"].ratio == 1
    assert found["04_c math"].ratio > 2
    assert all(found[f"04_c {name}"].ratio < 0.6 for name in ("flash", "efficient", "cudnn"))


def test_tflops_are_the_useful_work_over_the_gpu_time():
    flash = shipped()["04_c flash"]
    # Two matmuls of 2·8·16·1024²·64, half of each below the diagonal.
    seconds = flash.seen.gpu_ns / 1e9
    assert flash.tflops == pytest.approx(2 * 2 * 8 * 16 * 1024**2 * 64 / 2 / seconds / 1e12)
    assert flash.share_of_peak == pytest.approx(flash.tflops / 989)


def test_every_published_figure_stands_beside_its_variant_only():
    published = {name for name, variant in shipped().items() if variant.published}
    assert published == {
        f"04_{name}"
        for name in ("a naive", "b in-place", "c math", "c efficient", "c flash", "c cudnn")
    }
    assert not any(variant.published for variant in shipped("compile").values())


def test_the_tutorial_names_the_variants_that_are_shipped():
    keys = {variant.key for variant in shipped().values()}
    assert keys <= set(TUTORIAL)
    assert all((ROOT / f"{script}.py").exists() for script, _ in TUTORIAL)


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2, 4, 512, 64]},
        {"dtype": "fp16"},
        {"mode": "compile"},
        {"device": {"type": "cuda", "name": "NVIDIA A10"}},
        {"versions": {"torch": "2.12.0"}},
        {"steps": {"wait": 1, "warmup": 1, "active": 30}},
    ],
)
def test_unequal_conditions_are_never_compared(tmp_path, change):
    make(tmp_path, "a/naive.json", script=NAIVE)
    make(tmp_path, "b/other.json", script=IN_PLACE, **change)
    first, second = groups(tmp_path)
    ratios = {v.key[0]: v.ratio for one in (first, second) for v in one.variants}
    assert ratios == {NAIVE: 1, IN_PLACE: None}


def test_a_variant_recorded_twice_keeps_its_own_naive(tmp_path):
    for folder, us in (("one", 10), ("two", 40)):
        make(tmp_path, f"{folder}/a/n.json", ("mul", "k", us), script=NAIVE)
        make(tmp_path, f"{folder}/b/i.json", ("mul", "k", 20), script=IN_PLACE)
    (one,) = groups(tmp_path)
    ratios = {
        str(v.seen.trace.path.relative_to(tmp_path).parent.parent): v.ratio
        for v in one.variants
        if v.key[0] == IN_PLACE
    }
    assert ratios == {"one": 2, "two": 0.5}


def test_the_exponent_of_a_power_is_found():
    assert exponent([(x, 7 * x**2) for x in (512, 1024, 4096)]) == pytest.approx((2, 0), abs=1e-9)
    assert exponent([(x, 3 * x) for x in (512, 1024, 4096)]) == pytest.approx((1, 0), abs=1e-9)
    # Two points: a line, whatever they are.
    assert exponent([(512, 1), (1024, 4)]) is None
    assert exponent([(512, 1), (1024, None), (2048, 4)]) is None


def test_noise_shows_in_the_error_of_the_exponent():
    _, error = exponent([(512, 5), (1024, 80), (2048, 6), (4096, 90)])
    assert error > 0.5
    # By hand: y = 1, 2, 8 at x = 1, 2, 4 in powers of two are 0, 1, 3 at 0, 1, 2.
    assert exponent([(1, 1), (2, 2), (4, 8)]) == pytest.approx((1.5, (1 / 12) ** 0.5))


def test_groups_that_differ_in_length_alone_are_one_sweep(tmp_path):
    for seq in (256, 1024, 512):
        make(tmp_path, f"a/{seq}.json", script=NAIVE, shape=[2, 4, seq, 64])
    make(tmp_path, "a/other.json", script=NAIVE, shape=[2, 8, 512, 64])
    long, other = sorted(sweeps(groups(tmp_path)), key=lambda one: -len(one.lengths))
    assert long.lengths == (256, 512, 1024) and other.lengths == (512,)
    assert set(long.curves[NAIVE, ""]) == {256, 512, 1024}


def test_a_file_given_twice_counts_once():
    path = recording("04_a")
    (one,) = groups(path, path, RECORDED / SCRIPTS["04_a"] / path.name)
    assert [v.seen.trace.path for v in one.variants] == [path]
    assert read(path).story == one.variants[0].story
