"""Recording everything: which experiments, what stands where, and that one failure is only one."""

import gzip
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from machine import interpreter
from test_glance import run

from common import record_all, scripts
from common.cli import UserError
from common.compare.variants import TUTORIAL
from common.record_all import Run

TINY = ["--batch", "1", "--heads", "2", "--seq", "32", "--head-dim", "16", "--device", "cpu"]
NAIVE, IN_PLACE, SDPA, KERNELS = (
    f"04_{name}"
    for name in ("a_naive_attention", "b_inplace_ops_attention", "c_sdpa_attention",
                 "d_kernels_attention")
)  # fmt: skip


def test_every_variant_in_every_mode_eager_ones_first():
    made = record_all.runs(("eager", "compile"), ())
    assert len(made) == 2 * len(TUTORIAL) == len(set(made))
    assert [one.mode for one in made] == ["eager"] * len(TUTORIAL) + ["compile"] * len(TUTORIAL)
    assert str(made[3]) == "04_c --backend efficient"
    assert str(made[-1]) == "04_d --kernel fa4 --compile"


def test_a_sweep_is_every_variant_at_every_length():
    made = record_all.runs(("eager",), (64, 128))
    assert len(made) == 2 * len(TUTORIAL)
    assert {one.length for one in made} == {64, 128}
    assert str(made[0]) == "04_a --seq 64"
    options = made[0].options({"dtype": "fp16", "heads": 3})
    assert (options.seq, options.dtype, options.heads, options.compile) == (64, "fp16", 3, False)


def test_each_run_has_its_script_s_own_options():
    for one in record_all.runs(("eager", "compile"), ()):
        options = one.options({"traces": Path("here")})
        assert (options.variant, options.mode) == (one.variant, one.mode)
        assert (options.traces, options.seq) == (Path("here"), None)


def test_options_that_the_scripts_would_refuse_stop_everything_at_once():
    done = run("--record", "--dtype", "fp8")
    assert done.returncode == 2 and "invalid choice: 'fp8'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_record_everything_on_a_cpu_and_see_it(tmp_path):
    out = tmp_path / "made"
    done = run("--record", "--traces", out, "--only", "04_a,04_b,cudnn", "--mode", "eager",
               "--active", "2", "--json", *TINY)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "2 of 3: 04_b" in done.stderr  # progress, for a log
    assert "note: 04_c --backend cudnn: cudnn runs on CUDA devices only" in done.stderr
    assert re.search(r"2 of 3 recorded in .*made; 1 cannot run here", done.stderr)

    found = json.loads(done.stdout)
    (one,) = found["groups"]
    assert one["shape"] == [1, 2, 32, 16] and one["steps"]["active"] == 2
    naive, in_place = one["variants"]
    assert naive["lesson"].startswith("+1 copy from masked_fill")
    assert in_place["lesson"].startswith("the copy of 04_a is gone")
    assert naive["kernels_per_forward"] is None and naive["share_of_peak"] is None
    (refused,) = found["not_recorded"]
    assert (refused["variant"], refused["mode"]) == ("cudnn", "eager")

    tag = "1_2_32_16_cpu_active2_eager"
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert files == [f"{s}/{tag}.{end}" for s in (NAIVE, IN_PLACE) for end in ("json", "txt")]


def test_packed_recordings_have_the_layout_of_the_shipped_ones(tmp_path):
    arguments = ["--record", "--traces", tmp_path, "--gzip", "--only", "04_a", "--mode", "eager"]
    done = run(*arguments, *TINY)
    assert done.returncode == 0, done.stderr
    (path,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert path == tmp_path / NAIVE / "1_2_32_16_cpu_eager.json.gz"
    data = path.read_bytes()
    assert data[3] == 0 and data[4:8] == bytes(4)  # gzip's header: no name, no time
    text = gzip.decompress(data).decode()
    assert json.loads(text)["profiling_attention"]["shape"] == [1, 2, 32, 16]
    assert str(tmp_path) not in text and os.uname().nodename not in text

    again = run(*arguments, *TINY)
    assert re.search(r"note: .*1_2_32_16_cpu_eager\.json\.gz is replaced", again.stderr)


def test_nothing_that_can_run_is_an_error(tmp_path):
    done = run("--record", "--traces", tmp_path, "--only", "cudnn", "--mode", "eager", *TINY)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("error: 0 of 1 recorded in")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("--record", "--traces", tmp_path / "file", "--only", "04_a", *TINY)
    assert done.returncode == 2
    assert re.search(
        r"^error: cannot write to .*file: .*choose another --traces$", done.stderr, re.M
    )


def test_no_variant_of_that_name_is_an_error():
    done = run("--record", "--only", "nobody")
    assert done.returncode == 2
    assert done.stderr.strip() == "error: --only nobody: no variant has such a name"


# ── One of many ───────────────────────────────────────────────────────────────────────────────────


SMALL = {"batch": 1, "heads": 2, "seq": 32, "head_dim": 16, "device": "cpu"}
WANTED = [Run(NAIVE, "", "eager"), Run(IN_PLACE, "", "eager")]


@pytest.fixture(autouse=True)
def environment(monkeypatch) -> dict:
    """What recording on a CPU sets in it stays in this test: on a machine with a GPU others compile
    what would be interpreted here."""
    monkeypatch.setattr(record_all, "os", SimpleNamespace(environ={}))
    return record_all.os.environ


@pytest.fixture
def failing(monkeypatch):
    """Let the naive attention fail, whatever the error."""

    def fail(error):
        def forward(self, q, k, v):
            raise error

        monkeypatch.setattr(scripts.load(NAIVE).Attention, "forward", forward)

    return fail


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (UserError("too large; take less"), "too large; take less"),
        (IndexError("of a\nlibrary"), "IndexError: of a library"),
        (RuntimeError("no such engine\nmore"), "naive attention cannot run .*: no such engine"),
        (SystemExit(1), None),
        (KeyboardInterrupt(), None),
    ],
    ids=repr,
)
def test_one_that_fails_says_why_and_the_others_go_on(tmp_path, capsys, failing, error, reason):
    failing(error)
    if reason is None:  # whoever stops one wants all of them stopped
        with pytest.raises(type(error)):
            record_all.record_all(WANTED, SMALL, tmp_path, False)
        assert not [path for path in tmp_path.rglob("*") if path.is_file()]
        return
    made, refused = record_all.record_all(WANTED, SMALL, tmp_path, False)
    assert [path.parent.name for path in made] == [IN_PLACE]
    [(who, why)] = refused.items()
    assert who == ((NAIVE, ""), "eager", None) and re.match(reason, why) and "\n" not in why
    assert f"note: 04_a: {why}\n" in capsys.readouterr().err


def test_arguments_and_environment_are_left_as_they_were(tmp_path, capsys, environment):
    before = list(sys.argv), dict(os.environ), os.getcwd()
    record_all.record_all(WANTED[:1], SMALL, tmp_path, False)
    assert (sys.argv, dict(os.environ), os.getcwd()) == before
    assert environment == {"TRITON_INTERPRET": "1"}
    assert capsys.readouterr().out == ""


def test_a_note_that_all_would_say_is_said_once(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("common.record.workload.why_no_cuda", lambda: "no driver")
    record_all.record_all(WANTED, SMALL | {"device": "auto"}, tmp_path, False)
    assert capsys.readouterr().err.count("note: no driver") == 1


def test_a_gpu_that_answers_no_more_stops_everything(monkeypatch):
    def broken():
        raise RuntimeError("CUDA error: an illegal memory access was encountered\nmore")

    monkeypatch.setattr(record_all.torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(record_all.torch.cuda, "synchronize", broken)
    one = Run(SDPA, "flash", "eager")
    with pytest.raises(UserError, match=r"after 04_c --backend flash the GPU .*illegal.* 7 not"):
        record_all._clean_up(one, 7)


@interpreter
def test_the_interpreter_of_triton_survives_an_earlier_import(tmp_path):
    """04_d runs after scripts that import Triton, whose functions are made at import."""
    done = run("--record", "--traces", tmp_path, "--only", "04_a,triton", "--mode", "eager", *TINY)
    assert "2 of 2 recorded" in done.stderr, done.stderr
    assert sorted(os.listdir(tmp_path)) == [NAIVE, KERNELS]
