"""Everything at a glance: what may be compared, what is said of it, and the command."""

import json
import re
import subprocess
import sys

import pytest
from build import FFMA, NVJET, RECORDED, ROOT, SCRIPTS, forward, recording, story, trace, write

from common import glance
from common.cli import UserError
from common.compare.variants import TUTORIAL, exponent, group, sweeps
from common.read import recordings
from common.read.observe import observe
from common.read.trace import read
from common.show import report

POST_SHAPE = [8, 16, 1024, 64]
NAIVE, IN_PLACE, SDPA = (SCRIPTS[name] for name in ("04_a", "04_b", "04_c"))


def groups(*paths):
    return group(recordings.observed(paths))


def shipped(mode="eager"):
    """{name: variant} of what comes with the project."""
    post = {"shape": POST_SHAPE, "dtype": "bf16", "mode": mode}
    (found,) = [one for one in groups(RECORDED) if post.items() <= one.about.items()]
    return {variant.name: variant for variant in found.variants}


def make(folder, path, *steps, **about):
    """A small recording; steps as `build.forward` takes them."""
    steps = steps or (("mul", "k", 5),)
    return write(folder, trace(forward(100, *steps), about=story(**about)), path)


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "common.glance", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        **options,
    )


# ── What the shipped recordings show ──────────────────────────────────────────────────────────────


def test_in_place_has_one_copy_fewer_than_naive_and_else_the_same():
    naive, in_place = (shipped()[name].seen for name in ("04_a naive", "04_b in-place"))
    count = {name: report.per_forward(naive, name) for name in ("kernel", "copy", "memset")}
    assert count == {"kernel": 5, "copy": 1, "memset": 1}
    assert report.per_forward(in_place, "copy") == 0
    assert report.per_forward(in_place, "kernel") == 5
    assert report.lesson(shipped()["04_a naive"]).startswith("+1 copy from masked_fill")
    assert report.lesson(shipped()["04_b in-place"]).startswith("the copy of 04_a is gone")


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


def test_a_lesson_says_only_what_its_trace_holds():
    said = {name: report.lesson(variant) for name, variant in shipped().items()}
    assert "Tensor Cores unused by the matmuls, which read fp32" in said["04_c math"]
    assert "builds the mask in every call" in said["04_c math"]
    assert said["04_c flash"] == "one kernel, FlashAttention-2, 8 of 64 warps on an SM"
    assert "behind a memset" in said["04_c cudnn"]
    assert said["04_c auto"].startswith("PyTorch took cudnn")
    assert "Tensor Cores unused" not in said["04_a naive"]


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


# ── What may be compared ──────────────────────────────────────────────────────────────────────────


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
    heads, lines = report.glance_table(one)
    assert all(str(tmp_path) in line[0] for line in lines)  # which is which


def test_an_unknown_gpu_has_no_peak(tmp_path):
    device = {"type": "cuda", "name": "NVIDIA H200 MIG 1g.18gb"}
    (one,) = groups(make(tmp_path, "t.json", script=NAIVE, device=device))
    assert one.variants[0].share_of_peak is None
    heads, (line,) = report.glance_table(one)
    assert line[heads.index("of\npeak")] == "unknown"
    assert "by NVIDIA's data sheet" not in report.footnote([one])


def test_without_a_gpu_ops_are_counted_and_nothing_is_said_of_gpus(tmp_path):
    events = forward(100, ("masked_fill clone copy_", "", 0), ("softmax _softmax", "", 0))
    about = story(script=NAIVE, device={"type": "cpu", "name": "CPU"}, peak_bytes=None)
    (one,) = groups(write(tmp_path, trace(events, about=about, device=None)))
    heads, (line,) = report.glance_table(one)
    assert "GPU" not in heads and "of\npeak" not in heads
    assert line[heads.index("working\nops")] == "2"
    assert "+1 copy from masked_fill" in report.lesson(one.variants[0])


def test_a_copy_that_is_gone_with_other_steps_is_not_called_the_only_change(tmp_path):
    copying = ("mul", "k", 5), ("masked_fill clone copy_", "copy", 5)
    make(tmp_path, "a/n.json", *copying, script=NAIVE)
    make(tmp_path, "b/i.json", ("softmax", "k", 5), ("mul", "k", 5), script=IN_PLACE)
    (one,) = groups(tmp_path)
    assert "is gone" not in report.lesson(one.variants[1])


def test_matmuls_on_cuda_cores_are_told_from_their_names(tmp_path):
    for name, kernel in (("ffma", FFMA), ("nvjet", NVJET)):
        path = make(tmp_path, f"{name}.json", ("bmm", kernel, 9), ("mul", "k", 5), script=NAIVE)
        (one,) = groups(path)
        told = "Tensor Cores unused by the matmuls" in report.lesson(one.variants[0])
        assert told == (name == "ffma")


# ── Lengths ───────────────────────────────────────────────────────────────────────────────────────


def test_the_exponent_of_a_power_is_found():
    assert exponent([(x, 7 * x**2) for x in (512, 1024, 4096)]) == pytest.approx((2, 0), abs=1e-9)
    assert exponent([(x, 3 * x) for x in (512, 1024, 4096)]) == pytest.approx((1, 0), abs=1e-9)
    # Two points: a line, whatever they are.
    assert exponent([(512, 1), (1024, 4)]) is None
    assert exponent([(512, 1), (1024, None), (2048, 4)]) is None


def test_noise_shows_in_the_error_of_the_exponent():
    power, error = exponent([(512, 5), (1024, 80), (2048, 6), (4096, 90)])
    assert error > 0.5 and f"± {error:.2f}" in report.growth(
        [(512, 5), (1024, 80), (2048, 6), (4096, 90)]
    )
    # By hand: y = 1, 2, 8 at x = 1, 2, 4 in powers of two are 0, 1, 3 at 0, 1, 2.
    assert exponent([(1, 1), (2, 2), (4, 8)]) == pytest.approx((1.5, (1 / 12) ** 0.5))


def test_groups_that_differ_in_length_alone_are_one_sweep(tmp_path):
    for seq in (256, 1024, 512):
        make(tmp_path, f"a/{seq}.json", script=NAIVE, shape=[2, 4, seq, 64])
    make(tmp_path, "a/other.json", script=NAIVE, shape=[2, 8, 512, 64])
    long, other = sorted(sweeps(groups(tmp_path)), key=lambda one: -len(one.lengths))
    assert long.lengths == (256, 512, 1024) and other.lengths == (512,)
    assert set(long.curves[NAIVE, ""]) == {256, 512, 1024}


def sweep_of(folder):
    """Naive at four lengths but one, flash at all: quadratic and linear."""
    for seq in (256, 512, 1024, 2048):
        shape = [2, 4, seq, 64]
        kernel = ("bmm", NVJET, seq**2 / 1e4)
        if seq < 2048:
            make(folder, f"a/{seq}.json", kernel, script=NAIVE, shape=shape, peak_bytes=seq**2)
        about = {"script": SDPA, "variant": "flash", "shape": shape, "peak_bytes": 64 * seq}
        make(folder, f"c/{seq}.json", ("bmm", NVJET, seq / 100), **about)
    return folder


def test_a_sweep_shows_growth_and_names_what_is_missing(tmp_path):
    done = run("--sweep", "256,512,1024,2048", sweep_of(tmp_path))
    assert done.returncode == 0, done.stderr
    time, memory = done.stdout.split("GPU time of a forward · ")[1].split("peak memory over")
    assert "bf16 [2, 4, seq, 64]" in time
    for part in (time, memory):
        assert re.search(r"04_a test .* – +seq\^2\.00", part)
        assert re.search(r"04_c flash .* seq\^1\.00", part)
    assert "04_a at 2048: no recording" in memory


def test_one_length_beside_a_sweep_is_no_sweep(tmp_path):
    sweep_of(tmp_path)
    about = story(script=SCRIPTS["04_a"], shape=[2, 4, 512, 64], dtype="fp16")
    write(tmp_path, trace(forward(100, ("matmul", NVJET, 5)), about=about), "half.json")
    done = run("--sweep", "256,512,1024,2048", tmp_path)
    assert "GPU time of a forward · bf16" in done.stdout
    assert "GPU time of a forward · fp16" not in done.stdout


def test_a_sweep_shows_its_table_at_one_length_and_names_the_others(tmp_path):
    text = run(sweep_of(tmp_path)).stdout
    assert "[2, 4, 1024, 64]" in text and "[2, 4, 256, 64]" not in text
    assert "--sweep 256,512,2048 shows them" in text


def test_why_a_length_could_not_be_recorded_is_said(tmp_path):
    (one,) = sweeps(groups(sweep_of(tmp_path)))
    refused = {((NAIVE, ""), "eager", 2048): "out of memory", ((NAIVE, ""), "compile", 256): "no"}
    assert report.missing(one, refused) == ["04_a at 2048: out of memory"]
    refused[(SDPA, "cudnn"), "eager", 512] = "needs CUDA"
    assert "04_c cudnn at 256, 512, 1024, 2048: needs CUDA" in report.missing(one, refused)


# ── The command ───────────────────────────────────────────────────────────────────────────────────


def test_the_table_of_the_shipped_recordings():
    done = run()
    assert done.returncode == 0 and done.stderr == ""
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert "bf16 [8, 16, 1024, 64] · eager · NVIDIA H200 · torch 2.11.0+cu130" in done.stdout
    assert re.search(r"04_c math +20 \+ 0 \+ 0 .* 20 · 7\.24 ms", done.stdout)
    assert "\x1b" not in done.stdout


def test_reading_needs_no_torch():
    code = (
        "import sys; sys.modules['torch'] = None; sys.argv = ['glance'];"
        "import runpy; runpy.run_module('common.glance', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_json_holds_the_same_and_null_for_unknown():
    found = json.loads(run("--json", recording("04_a"), recording("04_c", backend="flash")).stdout)
    (one,) = found["groups"]
    naive, flash = one["variants"]
    assert naive["copies_per_forward"] == 1 and naive["ratio_to_naive"] == 1
    assert naive["published"] == {"gpu_events": 6, "cuda_us": None, "cpu_us": None}
    assert flash["cuda_us_per_forward"] < naive["cuda_us_per_forward"]
    assert one["shape"] == POST_SHAPE and one["peak_tflops"] == 989


def test_the_documentation_explains_every_field():
    text = (ROOT / "docs" / "json.md").read_text().split("# The fields of `glance --json`")[1]
    found = json.loads(run("--json", recording("04_a")).stdout)
    (one,) = found["groups"]
    fields = {*found, *one, *one["variants"][0], *one["variants"][0]["published"]}
    assert fields <= set(re.findall(r"`(\w+)`", text))


def test_a_narrow_page_folds_and_loses_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(report, "WIDTH", 60)
    glance.glance(glance.Options(files=[recording("04_a")]))
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 60
    joined = " ".join(text.split())
    assert "kernels + copies + memsets 5 + 1 + 1 · GPU 1.06 ms" in joined


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--active", "5"], "--active goes with --record"),
        (["--gzip"], "--gzip goes with --record"),
        (["--sweep", "512,x"], "'x' is not a whole number"),
        (["--sweep", "512", "--seq", "512"], "give the lengths once"),
        (["--only", "nobody"], "no recording of that in traces/recorded; leave options out"),
        (["--dtype", "fp8"], "no recording of that"),
        (["--record", "traces"], "give files to read, or --record"),
        (["--html", "nowhere/g.html"], "--html nowhere/g.html: No such file or directory"),
        (["--html", "tests"], "--html tests: it is a folder"),
    ],
)
def test_errors_are_one_line(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and message in done.stderr
    assert done.stderr.count("\n") == 1


def test_options_choose_what_is_shown():
    text = run("--only", "flash,04_a", "--mode", "eager", "--dtype", "bf16").stdout
    assert re.findall(r"^04_\S+ \w+", text, re.M) == ["04_a naive", "04_c flash"]
    assert "· compile ·" not in text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file or folder"),
        (trace(forward(100, ("mul", "k", 5))), "it does not tell what was recorded"),
        (b"{", "not valid JSON|cut off|truncated"),
    ],
)
def test_a_file_given_that_is_no_recording_is_an_error(tmp_path, content, message):
    path = tmp_path / "t.json" if content is None else write(tmp_path, content, "t.json")
    done = run(path)
    assert done.returncode == 2 and done.stdout == ""
    assert re.match(rf"error: .*t\.json.*({message})", done.stderr), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_folder_without_recordings_is_an_error(tmp_path):
    with pytest.raises(UserError, match="no recording in .*; make some: uv run -m common.glance"):
        glance.glance(glance.Options(files=[tmp_path]))


def test_damaged_files_of_a_folder_are_named_and_the_rest_is_shown(tmp_path):
    make(tmp_path, "a/good.json", script=NAIVE)
    write(tmp_path, b'{"traceEvents": [', "a/bad.json")
    write(tmp_path, trace(forward(100, ("mul", "k", 5))), "a/foreign.json")
    make(tmp_path, ".recording-x/a/half.json", script=IN_PLACE, title="killed")
    done = run(tmp_path)
    assert done.returncode == 0
    assert "note: left out: " in done.stderr and "bad.json" in done.stderr
    assert "foreign" not in done.stderr
    assert "04_a test" in done.stdout and "killed" not in done.stdout


def test_a_file_given_twice_counts_once():
    path = recording("04_a")
    (one,) = groups(path, path, RECORDED / SCRIPTS["04_a"] / path.name)
    assert [v.seen.trace.path for v in one.variants] == [path]
    assert observe(read(path)).about == one.variants[0].about
