"""`look` from end to end, through its command line."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import time
from functools import partial

import pytest
from build import (
    FFMA,
    FLASH,
    NVJET,
    ROOT,
    SOFTMAX,
    forward,
    kernel,
    launch,
    op,
    recording,
    region,
    story,
    trace,
    truth,
    write,
)

from common.cli import parse
from common.look import Options, look
from common.story import read_story

A, B = recording("04_a"), recording("04_b")


def command(*arguments, encoding="utf-8", **more):
    """In a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "common.look", *map(str, arguments)],
        cwd=ROOT, capture_output=True, encoding=encoding, **more,
    )  # fmt: skip


@pytest.fixture
def ask(asked):
    """The same command line without the start of a process: (exit code, stdout, stderr)."""
    return partial(asked, look, Options)


def refused(ask, *arguments) -> str:
    code, out, err = ask(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ") and err.endswith("\n") and err.count("\n") == 1
    return err


def test_one_trace_in_a_process_of_its_own():
    done = command(A)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("04_a naive attention · bf16 [8, 16, 1024, 64] · eager · NVIDIA")
    assert "5 kernels + 1 copy + 1 memset a forward (3 forwards, alike)" in done.stdout
    assert "guess" not in done.stdout and "\x1b" not in done.stdout
    assert all(len(line) <= 100 for line in done.stdout.splitlines())


def test_one_object_on_stdout_and_nothing_else():
    done = command("--json", A)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout, parse_constant=lambda token: pytest.fail(f"{token} is no JSON"))
    assert found["file"] == os.path.relpath(A, ROOT)
    assert (found["region"], found["regions"], found["kernels_per_forward"]) == ("attn_fwd", 3, 5)
    assert [step["kind"] for step in found["steps"]] == [
        "memset", "matmul", "mul", "copy", "mask", "softmax", "matmul",
    ]  # fmt: skip
    assert "guess" not in found


def test_json_of_unknowns_is_null(ask, tmp_path):
    path = write(tmp_path, trace(forward(100, ("mul", "", 0)), device=None))
    code, out, _ = ask("--json", path)
    assert code == 0
    for key in ("kernels_per_forward", "cuda_us_per_forward", "cuda_sum_us", "gpu_busy_us"):
        assert f'"{key}": null' in out
    step = json.loads(out)["steps"][0]
    assert {step[key] for key in ("grid", "block", "registers", "shared_memory")} == {None}


def test_a_guess_is_laid_beside_the_trace(ask):
    code, out, _ = ask(A, "--guess", "matmul mul mask softmax matmul")
    assert code == 0 and out.split("\n")[2].startswith("you guessed  on the GPU")
    assert "1 step you did not guess\n  copy — launched by masked_fill › clone › copy_" in out
    _, out, _ = ask("--json", A, "--guess", "matmul,softmax")
    assert {"guess": None, "seen": "copy"} in json.loads(out)["guess"]


def test_two_traces_are_laid_side_by_side(ask):
    """Naive against in place: the copy is gone."""
    code, out, err = ask(A, B)
    assert (code, err) == (0, "")
    lines = out.split("\n")
    assert lines[0].startswith("A  04_a naive") and lines[1].startswith("B  04_b in-place")
    assert [line.split()[1] for line in lines if line.startswith(("−", "+"))] == ["copy"]
    mul = [sum(f["work"][2]["event"]["dur"] for f in truth(path)) / 3 for path in (A, B)]
    [row] = [line for line in lines if line.split()[:1] == ["mul"]]
    times = [f"{mul[0]:.1f}", f"{mul[1]:.1f}", f"{mul[1] - mul[0]:+.1f}"]
    assert row.replace(" µs", "").split()[-3:] == times
    sums = [
        sum(work["event"]["dur"] for forward in truth(path) for work in forward["work"]) / 3
        for path in (A, B)
    ]
    [total] = [line.split() for line in lines if line.split()[:1] == ["all"]]
    assert total[1::2] == [f"{sums[0]:,.1f}", f"{sums[1]:,.1f}", f"{sums[1] - sums[0]:+,.1f}"]


def test_two_traces_as_json(ask):
    found = json.loads(ask("--json", A, B)[1])
    assert found["a"] == json.loads(ask("--json", A)[1])
    assert found["b"] == json.loads(ask("--json", B)[1])
    assert [(s["kind"], s["only_in"]) for s in found["steps"] if s["only_in"]] == [("copy", "a")]


def test_warnings_of_two_traces_say_whose_they_are(ask, tmp_path):
    good = write(tmp_path, trace(forward(100, ("mul", "k", 5))), "good.json")
    bad = write(tmp_path, trace(forward(100, ("mul", "k", 5)), region(900, -1)), "bad.json")
    assert "warning: B: 1 region has a negative" in ask(good, bad)[1]
    assert "warning: A: 1 region has a negative" in ask(bad, good)[1]


def test_the_region_asked_for(ask, tmp_path):
    events = forward(100, ("mul", "k", 5), label="a"), forward(900, ("add", "k", 5), label="b")
    path = write(tmp_path, trace(events))
    for label, kind in (("a", "mul"), ("b", "add")):
        found = json.loads(ask("--json", path, "--region", label)[1])
        assert (found["region"], [s["kind"] for s in found["steps"]]) == (label, [kind])
    # Where two traces are laid side by side, one region must be meant.
    assert "several regions, choose one with --region: a (1), b (1)" in refused(ask, path, path)


# ── A trace of several labels ─────────────────────────────────────────────────────────────────────


def model(tmp_path):
    """Two labels, one twice; 30 µs of matmul and 20 of a copy; the GPU idle between."""
    return write(tmp_path, trace(
        forward(100, ("matmul bmm", NVJET, 10), ("masked_fill clone copy_", "copy", 20), label="a"),
        forward(3000, ("matmul bmm", NVJET, 10), label="b"),
        forward(6000, ("matmul bmm", NVJET, 10), label="b"),
    ))  # fmt: skip


def test_a_trace_of_several_labels_is_surveyed(ask, tmp_path):
    code, out, err = ask(model(tmp_path))
    assert (code, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["a", "1", "50", "µs", "30", "µs"] in lines
    assert ["b", "2", "60", "µs", "20", "µs"] in lines
    assert [NVJET, "nvjet", "3", "30", "µs", "60", "%"] in lines
    assert "--region LABEL looks closer at one" in out
    assert "launch-bound" in out and "memsets 40 %" in out
    assert "Tensor Cores 60 % of GPU time" in out


def test_a_survey_as_json(ask, tmp_path):
    found = json.loads(ask("--json", model(tmp_path))[1])
    assert [(one["name"], one["count"], one["cpu_us"]) for one in found["labels"]] == [
        ("a", 1, 50), ("b", 2, 60)
    ]  # fmt: skip
    for label, us in zip(found["labels"], (30, 20), strict=True):
        assert label["gpu_us"] == label["gpu_own_us"] == label["gpu_busy_us"] == us
        assert (label["gpu_other_threads_us"], label["backward_gpu_us"]) == (0, None)
    assert found["unlabelled_gpu_us"] == 0 and found["backward_unlinked_gpu_us"] is None
    ops = {op["name"]: op for op in found["ops"]}
    assert ops["aten::bmm"] == {
        "name": "aten::bmm", "count": 3, "self_cpu_us": 48.0, "gpu_us": 30.0
    }  # fmt: skip
    assert (ops["aten::matmul"]["self_cpu_us"], ops["aten::matmul"]["gpu_us"]) == (6.0, 0.0)
    gpu = found["gpu"]
    assert gpu["busy_us"] + gpu["idle_us"] == gpu["span_us"] == 7000 - 1100 + 10
    assert gpu["idle_us"] == gpu["idle_launch_bound_us"] == 5860


def test_a_survey_takes_no_guess(ask, tmp_path):
    assert "choose it with --region" in refused(ask, model(tmp_path), "--guess", "matmul")


def test_every_field_is_documented_and_every_documented_field_exists(ask, tmp_path):
    """docs/json.md against what is printed."""
    differ = forward(100, ("mul", "k", 5)), forward(900, ("add", "k", 5))
    uneven = json.loads(ask("--json", write(tmp_path, trace(differ), "differ.json"))[1])
    region_ = json.loads(ask("--json", A, "--guess", "matmul")[1])
    survey = json.loads(ask("--json", model(tmp_path))[1])
    tables = (ROOT / "docs" / "json.md").read_text().split("| field | what it is |\n")[1:]
    documented = [re.findall(r"^\| `(\w+)` \|", table, re.M) for table in tables]
    assert documented[0] == list(region_)
    steps = {*region_["steps"][0], *uneven["steps"][0], "eager_ops"}  # of a graph: test_graphs
    assert sorted(documented[1]) == sorted(steps)
    assert documented[2] == list(survey)
    assert documented[3] == list(survey["gpu"]) == list(region_["gpu"])
    told = {"Collective name": "all_reduce", "Group size": 2}
    talk = trace(
        region(0, 50, "ProfilerStep#1"),
        launch(1, 1),
        kernel(1, 100, 5, **told),
        launch(2, 200),
        kernel(2, 210, 5),
    )
    talking = json.loads(ask("--json", write(tmp_path, talk, "talk.json"))[1])
    listed = {name: survey[name][0] for name in ("labels", "kernels", "ops")}
    listed |= {"communication": talking["communication"][0], "steps": talking["steps"][0]}
    for name, one in listed.items():
        line = re.search(rf"^\| `{name}` \|.*", tables[2], re.M)[0]
        assert re.findall(r"`(\w+)`", line)[1:] == list(one)
    line = re.search(r"^\| `idle_by` \|.*", tables[3], re.M)[0]
    assert re.findall(r"`(\w+)`", line)[1:] == list(talking["gpu"]["idle_by"][0])


# ── A survey, or one region ───────────────────────────────────────────────────────────────────────


def is_survey(ask, path, *arguments) -> bool:
    code, out, err = ask("--json", path, *arguments)
    assert (code, err) == (0, "")
    return "region" not in json.loads(out)


def labelled(*names, more=(), **about):
    """One forward of 10 µs under each label, and whatever else."""
    each = [forward(100 + 1000 * n, ("mul", "k", 10), label=name) for n, name in enumerate(names)]
    return trace(each, more, **about)


def unlabelled(us):
    return op("aten::mm", 90_000, 20), launch(77, 90_001), kernel(77, 90_100, us)


@pytest.mark.parametrize(
    ("content", "survey"),
    [
        (labelled("a"), False),
        (labelled("a", "a"), False),
        (labelled("a", "b"), True),
        (labelled(more=unlabelled(5)), True),
        (labelled("a", more=unlabelled(9)), False),  # most of the GPU's time is its
        (labelled("a", more=unlabelled(10)), True),
        (labelled("a", more=region(50_000, 5, "ProfilerStep#3")), False),
        (labelled("Optimizer.step#SGD.step"), True),
        (labelled("enumerate(DataLoader)#_Single.__next__"), True),
        (labelled("nccl:all_reduce"), True),
        (labelled("fwd", "other", about=story()), False),  # our own says which it is made for
        (labelled("fwd", more=unlabelled(999), about=story()), False),
        (trace(region(0, 50, "a"), op("aten::mm", 5, 20)), False),  # without a GPU
        (trace(region(0, -1, "a"), launch(1, 5), kernel(1, 100, 5)), True),
    ],
)
def test_a_region_comes_unasked_where_it_stands_for_the_whole(ask, tmp_path, content, survey):
    assert is_survey(ask, write(tmp_path, content)) == survey


def test_either_can_be_asked_for(ask, tmp_path):
    for path in (write(tmp_path, labelled("a")), A):
        assert not is_survey(ask, path) and is_survey(ask, path, "--survey")
    two = write(tmp_path, labelled("a", "b"))
    assert is_survey(ask, two) and not is_survey(ask, two, "--region", "b")
    loader = write(tmp_path, labelled("enumerate(DataLoader)#x"))
    assert not is_survey(ask, loader, "--region", "enumerate(DataLoader)#x")


def test_a_survey_is_of_one_whole_trace(ask):
    for more in (["--region", "fwd"], [B]):
        assert "--survey is of one whole trace" in refused(ask, "--survey", A, *more)


def test_a_label_may_be_empty(ask, tmp_path):
    path = write(tmp_path, labelled("", "b"))
    found = json.loads(ask("--json", path, "--region", "")[1])
    assert (found["region"], found["regions"], found["kernels_per_forward"]) == ("", 1, 1)


def test_idle_time_is_said_of_a_forward_and_of_the_recording(ask, tmp_path):
    """One kernel a forward leaves no gap in it: nothing is said of that in words."""
    path = write(tmp_path, trace([forward(100 + 1000 * n, ("mul", "k", 100)) for n in range(3)]))
    out = ask(path)[1]
    assert "inside a forward" not in out
    assert "GPU idle 86 % over the recording, between forwards too" in out
    found = json.loads(ask("--json", path)[1])
    assert (found["gpu"]["idle_us"], found["gpu_over_recording"]["idle_us"]) == (0, 1800)
    one = ask(write(tmp_path, trace(forward(100, ("mul", "k", 100)))))[1]
    assert "over the recording" not in one


def test_what_autograd_threads_do_stands_behind_the_label_s_own_steps(ask, tmp_path):
    node = "autograd::engine::evaluate_function: MmBackward0"
    path = write(tmp_path, trace(
        region(0, 300, "backward"), op("aten::ones_like", 2, 9), launch(1, 5), kernel(1, 500, 3),
        op(node, 50, 50, thread=77), launch(2, 60, thread=77), kernel(2, 510, 40, NVJET),
    ))  # fmt: skip
    out = ask(path)[1]
    assert out.index("ones_like") < out.index("for it, on autograd threads") < out.index("MmBackw")
    assert "1 kernel a forward (1 forward) · GPU 3 µs + 40 µs on autograd threads" in out
    found = json.loads(ask("--json", path)[1])
    assert (found["gpu_own_us"], found["gpu_other_threads_us"]) == (3, 40)
    assert (found["kernels_per_forward"], found["cuda_us_per_forward"]) == (1, 3)
    assert [step["us"] for step in found["other_threads_steps"]] == [40]


# ── Damaged and huge files ────────────────────────────────────────────────────────────────────────


def test_salvage_says_what_is_left_out(ask, tmp_path):
    whole = json.dumps(trace(forward(100, ("mul", "k", 5)), forward(900, ("mul", "k", 5)))).encode()
    path = write(tmp_path, whole[:-60])
    assert "truncated JSON" in refused(ask, path)
    code, out, _ = ask(path, "--salvage")
    assert code == 0 and "warning: damaged file: " in out and "left out" in out


def test_a_gzip_bomb_stops_at_a_limit_that_can_be_raised(ask, tmp_path):
    bomb = json.dumps(trace(forward(100, ("mul", "k", 5)))).encode() + b" " * 3_000_000
    path = write(tmp_path, gzip.compress(bomb), "t.json.gz")
    message = refused(ask, path, "--max-gb", "0.002")
    assert "unpacks to more than 0.002 GB; --max-gb raises the limit" in message
    assert ask(path, "--max-gb", "0.004")[0] == 0


# Of a grandchild: a child's peak starts with that of the process it was forked from.
MEASURED = """
import resource, subprocess, sys
done = subprocess.run([sys.executable, "-m", "common.look", *sys.argv[1:]])
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""


def test_a_gzip_bomb_does_not_fill_the_memory(tmp_path):
    """Blanks, and an event without end."""
    for one in (b" ", b'{"ph":"X","cat":"cpu_op","name":"' + b"x" * 1000):
        with gzip.open(tmp_path / "t.json.gz", "wb", 1) as file:
            file.write(b'{"traceEvents": [{"ph": "X"}, ')
            for _ in range(100):
                file.write(one * ((1 << 20) // len(one)))
        assert (tmp_path / "t.json.gz").stat().st_size < 10 << 20
        for more in ([], ["--salvage"]):
            done = subprocess.run(
                [sys.executable, "-c", MEASURED, tmp_path / "t.json.gz", *more,
                 "--max-gb", "0.08"],
                cwd=ROOT, capture_output=True, text=True,
            )  # fmt: skip
            assert re.search("unpacks to more than (0.08 GB|100 times its size)", done.stderr)
            assert done.returncode == 2 and int(done.stdout) < 600_000  # KiB


# ── What is refused ───────────────────────────────────────────────────────────────────────────────


def test_errors_are_one_line_and_exit_code_2():
    done = command("nowhere.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: cannot read nowhere.json: No such file or directory\n"


def test_refusals(ask, tmp_path):
    empty = write(tmp_path, b"", "empty.json")
    assert "look takes one, or two to compare" in refused(ask, A, B, A)
    assert "TRACE" in refused(ask)
    assert "directory" in refused(ask, tmp_path)
    assert "nowhere.json: No such file" in refused(ask, A, tmp_path / "nowhere.json")
    assert "empty trace" in refused(ask, empty)
    assert "region 'fwd' not found; the trace has attn_fwd" in refused(ask, A, "--region", "fwd")
    assert "region 'attn_fwd' not found" in refused(ask, A, recording("04_c", backend="math"),
                                                    "--region", "attn_fwd")  # fmt: skip
    assert "'matmull' is no kind of step; choose from matmul" in refused(
        ask, A, "--guess", "matmull"
    )
    assert "no step given" in refused(ask, A, "--guess", "")
    assert "--guess goes with one trace" in refused(ask, A, B, "--guess", "matmul")
    assert "--jsn" in refused(ask, A, "--jsn")
    assert "error: " in refused(ask, "--json", empty)  # programs are told on stderr as well


def test_a_path_with_line_breaks_is_still_one_line(ask, tmp_path):
    refused(ask, tmp_path / "a\nb.json")


def test_two_regions_of_two_names_may_be_compared(ask):
    """Each trace is looked at in the region that it was made for."""
    code, out, _ = ask(A, recording("04_c", backend="math"))
    assert code == 0 and "+  cast ×3" in out


# ── As a command among commands ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_that_goes_early_is_no_error(unbuffered):
    """As `| head -1`: the pipe is closed before the first line is written."""
    for arguments in ([A], ["--json", A]):
        with subprocess.Popen(
            [sys.executable, "-m", "common.look", *arguments],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        ) as process:  # fmt: skip
            process.stdout.close()
            assert process.stderr.read() == b""


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_pipe_that_knows_few_letters(encoding):
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = command(A, "--guess", "cat", env=environment, encoding=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert "did not come" in done.stdout


def test_colours_on_request_only(tmp_path):
    plain = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")}
    assert "\x1b[" not in command(A, env=plain | {"TERM": "xterm-256color"}).stdout
    assert "\x1b[" in command(A, env=plain | {"FORCE_COLOR": "1", "TERM": "xterm"}).stdout


def test_help_names_the_options_and_shows_examples():
    done = command("--help")
    assert done.returncode == 0
    for word in ("TRACE", "--region", "--guess", "--json", "130 interrupted"):
        assert word in done.stdout
    examples = done.stdout.split("\nexamples:\n")[1].splitlines()
    assert len(examples) == 5
    for line in examples:
        assert line.startswith("  uv run -m common.look ") and len(line) <= 100
        words = shlex.split(line.split("  ")[1])[4:]
        parse(Options, "", "", words)  # each of them is one that the command takes


# ── On a terminal ─────────────────────────────────────────────────────────────────────────────────


def on_terminal(columns, *arguments, code="") -> str:
    """What the command writes to a terminal of so many columns."""
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    start = f"import sys; from common import look; {code}"
    run = "look.look(look.parse(look.Options, '', '', sys.argv[1:]))"
    environment = os.environ | {"COLUMNS": str(columns), "TERM": "xterm-256color"}
    process = subprocess.Popen(
        [sys.executable, "-c", f"{start}\n{run}", *map(str, arguments)],
        cwd=ROOT, stdout=theirs, stderr=theirs, stdin=theirs, env=environment,
    )  # fmt: skip
    os.close(theirs)
    out = b""
    try:
        while data := os.read(ours, 1 << 16):
            out += data
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert process.wait() == 0
    return out.decode().replace("\r\n", "\n")


def plain(text: str) -> list[str]:
    return [line.rstrip() for line in re.sub(r"\r?\x1b\[[0-9;]*[A-Za-z]", "", text).split("\n")]


def long_names(tmp_path):
    """Labels, ops and kernels of a hundred letters and more, seconds of time, many calls."""
    kernels = [FLASH, SOFTMAX, FFMA, f"triton_poi_fused_{'add_mul_' * 20}0"]
    steps = [(f"library_{'of_a_long_name_' * 8}::op{n}", k, 123456.789) for n, k in
             enumerate(kernels)]  # fmt: skip
    return write(tmp_path, trace(
        [forward(100 + n * 2_000_000, *steps, label=f"layer.{n % 3}.{'block.' * 20}")
         for n in range(12)],
    ))  # fmt: skip


@pytest.mark.parametrize("columns", [80, 120])
def test_a_survey_fits_a_terminal(tmp_path, columns):
    lines = plain(on_terminal(columns, long_names(tmp_path)))
    assert max(map(len, lines)) <= columns
    shown = "\n".join(lines)
    for label in range(3):
        assert re.search(rf"^layer\.{label}\.block\S*… +4 +360 µs +1\.98 s$", shown, re.M)
    for number in ("12  1.48 s   25 %", "12    216 µs  1.48 s"):
        assert shown.count(number) == 4
    for name in ("FlashAttention-2", "ATen softmax", "cuBLAS GEMM", "Triton (compiled)"):
        assert name in shown


@pytest.mark.parametrize("columns", [80, 120])
def test_a_report_fits_a_terminal(tmp_path, columns):
    path = long_names(tmp_path)
    label = f"layer.1.{'block.' * 20}"
    shown = plain(on_terminal(columns, path, "--region", label))
    assert max(map(len, shown)) <= columns
    assert sum("123,456.8 µs   25 %" in line for line in shown) == 4
    shown = plain(on_terminal(columns, path, path, "--region", label))
    assert max(map(len, shown)) <= columns
    assert sum("123,456.8 µs  123,456.8 µs  +0.0 µs" in line for line in shown) == 4


def test_progress_shows_on_a_terminal_and_goes_away(tmp_path):
    path = write(tmp_path, trace([forward(100 + 900 * n, ("mul", "k", 5)) for n in range(4200)]))
    assert path.stat().st_size > 3_000_000
    soon = on_terminal(100, path)
    assert "reading" not in soon
    shown = on_terminal(100, path, code="look.PATIENCE = 0")
    shares = [int(share) for share in re.findall(r"\r\x1b\[Kreading (\d+) % …", shown)]
    assert len(shares) >= 3 and shares == sorted(shares) and shares[-1] == 100
    before, after = shown.rsplit("\r\x1b[K", 1)
    assert "reading" not in after and "4200 forwards" in after and "4200" not in before


def test_looking_takes_under_half_of_importing_torch():
    def seconds(*arguments):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], cwd=ROOT, check=True, capture_output=True)
        return time.perf_counter() - start

    looking = min(seconds("-m", "common.look", str(A)) for _ in range(3))
    assert looking < seconds("-c", "import torch") / 2


def test_a_trace_of_our_own_keeps_its_story(ask, tmp_path):
    path = write(tmp_path, trace(forward(100, ("mul", "k", 5)), about=story()))
    _, out, _ = ask(path)
    assert out.startswith(
        "04_x test attention · bf16 [2, 4, 256, 64] · eager · NVIDIA H200 · torch"
    )
    assert read_story(json.loads(ask("--json", path)[1])["about"]) == read_story(story())
