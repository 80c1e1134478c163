"""Everything at a glance: the command."""

import json
import re
import subprocess
import sys

import pytest
from build import NVJET, ROOT, SCRIPTS, forward, make, recording, story, trace, write
from seen import sweep_of

from common import glance
from common.cli import UserError

POST_SHAPE = [8, 16, 1024, 64]
NAIVE, IN_PLACE = SCRIPTS["04_a"], SCRIPTS["04_b"]


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-m", "common.glance", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        **options,
    )


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
    monkeypatch.setattr("common.show.terminal.WIDTH", 60)
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
        (["--seq", "77"], "no recording of that"),
        (["--dtype", "fp8"], "invalid choice: 'fp8' (choose from 'bf16', 'fp16', 'fp32')"),
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
