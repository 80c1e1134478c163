"""The experiments: what each concludes, and the opposite from opposite traces."""

import gzip
import json
import re
import subprocess
import sys
from statistics import mean, stdev
from types import SimpleNamespace

import pytest
from build import (
    FLASH,
    NVJET,
    ROOT,
    SOFTMAX,
    forward,
    kernel,
    load,
    op,
    recording,
    region,
    story,
    trace,
    truth,
    write,
)  # fmt: skip

from common import experiment, look
from common.cli import one_line_errors, parse
from common.experiment import SHIPPED, Options
from common.read import recordings
from common.read.privacy import scan_file
from common.show import report


@pytest.fixture
def ask(capsys):
    """The command line without the start of a process: (exit code, stdout, stderr)."""

    def run(*arguments):
        code = 0
        try:
            with one_line_errors():
                experiment.experiment(parse(Options, "", "leak", list(map(str, arguments))))
        except SystemExit as stop:
            code = stop.code
        return code, *capsys.readouterr()

    return run


def conclusions(ask, name, folder) -> list[str]:
    code, out, err = ask(name, "--json", "--replay", folder)
    assert code == 0, err
    return json.loads(out)["conclusions"]


def refused(ask, *arguments) -> str:
    code, out, err = ask(*arguments)
    assert (code, out) == (2, "") and err.startswith("error: ") and err.count("\n") == 1, err
    return err


def save(folder, name, variant, *events, file="", **more):
    about = story(script=f"experiment_{name}", variant=variant, **more)
    return write(folder, trace(*events, about=about), f"{file or variant}.json")


# ── leak ──────────────────────────────────────────────────────────────────────────────────────────


def attention(first, us=100):
    """Three forwards of two kernels, 300 µs each."""
    return [
        forward(
            5000 * n, ("matmul", NVJET, us), ("softmax", SOFTMAX, us + 100), first=first + 10 * n
        )
        for n in (1, 2, 3)
    ]


def total(text: str) -> dict:
    return {"table_totals": {"Self CPU time total": "1.000ms", "Self CUDA time total": text}}


BEFORE = [kernel(901, 10, 250, SOFTMAX), kernel(902, 300, 50, NVJET)]  # no launch in the file


def leak(folder, never=(), after=(), never_total="900.000us", after_total="900.000us"):
    save(folder, "leak", "never", attention(100), *never, **total(never_total))
    save(folder, "leak", "warm-up", attention(100), *after, **total(after_total))
    return folder


def test_leak_counts_what_the_warm_up_launched(tmp_path, ask):
    folder = leak(tmp_path, never=BEFORE, never_total="1.200ms")
    code, out, err = ask("leak", "--replay", folder)
    assert (code, err) == (0, "")
    lines = [re.split(r"  +", line.strip()) for line in out.splitlines()]
    assert ["not synchronised", "8", "6", "2", "1,200.0 µs", "900.0 µs"] in lines
    assert ["synchronised after the warm-up", "6", "6", "0", "900.0 µs", "900.0 µs"] in lines
    assert conclusions(ask, "leak", folder) == [
        "Not synchronised: the table's total, 1,200.0 µs, holds more than the forwards: 2 events "
        "of 300.0 µs, launched by the warm-up and still running when recording started.",
        "Synchronised: the table's total, 900.0 µs, is the GPU time of the forwards.",
        "One synchronise at the end of the warm-up keeps them out.",
    ]
    [never, after] = json.loads(ask("leak", "--json", "--replay", folder)[1])["recordings"]
    assert never | {"file": None} == {
        "file": None, "synchronised": False, "forwards": 3, "kernels": 8, "gpu_events": 8,
        "joined_gpu_events": 6, "gpu_events_without_launch": 2, "table_total_us": 1200.0,
        "file_sum_us": 1200.0, "forwards_sum_us": 900.0,
    }  # fmt: skip
    assert after["synchronised"] and after["gpu_events_without_launch"] == 0


def test_leak_concludes_the_opposite_where_the_traces_do(tmp_path, ask):
    none = conclusions(ask, "leak", leak(tmp_path / "none"))
    assert (
        none[0] == "Not synchronised: the table's total, 900.0 µs, is the GPU time of the forwards."
    )
    assert none[2].startswith("Here the synchronise makes no difference")
    both = leak(tmp_path / "both", BEFORE, BEFORE, "1.200ms", "1.200ms")
    assert conclusions(ask, "leak", both)[2] == "The synchronise did not keep them out."


def test_leak_does_not_blame_the_warm_up_for_lost_launches(tmp_path, ask):
    late = leak(tmp_path, never=[kernel(901, 30_000, 300)], never_total="1.200ms")
    said = conclusions(ask, "leak", late)
    assert said[0].endswith("1 event of 300.0 µs, without a launch in the file.")
    assert len(said) == 2  # and nothing of what the synchronise did


def test_leak_says_what_else_a_total_holds(tmp_path, ask):
    outside = forward(40_000, ("mul", "k", 300), label="other")
    folder = leak(tmp_path, never=outside, never_total="1.200ms")
    assert conclusions(ask, "leak", folder)[0].endswith(
        "holds more than the forwards: 1 event launched outside the forwards."
    )


@pytest.mark.parametrize(("text", "agrees"), [
    ("1.200ms", True), ("1.201ms", True), ("1.202ms", False), ("900.000us", False),
])  # fmt: skip
def test_leak_compares_the_total_as_exactly_as_it_is_printed(tmp_path, ask, text, agrees):
    said = conclusions(ask, "leak", leak(tmp_path, never=BEFORE, never_total=text))[0]
    assert ("2 events" in said) == agrees
    assert ("is not the sum of the file's GPU events, 1,200.0 µs" in said) != agrees


def test_leak_without_a_total_says_so(tmp_path, ask):
    folder = leak(tmp_path, never=BEFORE, never_total="unreadable")
    assert conclusions(ask, "leak", folder)[0] == (
        "Not synchronised: the recording does not tell the table's total."
    )
    found = json.loads(ask("leak", "--json", "--replay", folder)[1])
    assert found["recordings"][0]["table_total_us"] is None


def test_leak_needs_both(tmp_path, ask):
    save(tmp_path, "leak", "never", attention(100))
    assert "warm-up is not there" in refused(ask, "leak", "--replay", tmp_path)


def as_experiment(folder, name, variant, path, **more):
    """A real recording, told to be one of an experiment."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    about = content["profiling_attention"]
    about |= {"script": f"experiment_{name}", "variant": variant} | more
    write(folder, json.dumps(content).encode(), f"{variant}_{path.name.removesuffix('.gz')}")


def test_leak_on_a_real_recording(tmp_path, ask):
    """A recording of the H200 against itself with its first launches taken out."""
    path = recording("04_b")
    times = [work["event"]["dur"] for one in truth(path) for work in one["work"]]
    in_file = f"{float(sum(times)) / 1e3:.3f}ms"
    first = [work["event"] for one in truth(path)[:1] for work in one["work"]][:2]
    as_experiment(tmp_path, "leak", "warm-up", path, **total(in_file))
    content = json.loads(gzip.decompress(path.read_bytes()))
    gone = {event["args"]["correlation"] for event in first}
    content["traceEvents"] = [
        event
        for event in content["traceEvents"]
        if event.get("cat") not in ("cuda_runtime", "cuda_driver")
        or event["args"].get("correlation") not in gone
    ]
    content["profiling_attention"] |= {"script": "experiment_leak", "variant": "never"}
    content["profiling_attention"] |= total(in_file)
    write(tmp_path, json.dumps(content).encode(), "never.json")
    found = json.loads(ask("leak", "--json", "--replay", tmp_path)[1])
    never, after = found["recordings"]
    assert never["gpu_events"] == after["gpu_events"] == after["joined_gpu_events"] == len(times)
    assert never["gpu_events_without_launch"] == 2
    assert never["file_sum_us"] == after["forwards_sum_us"] == float(sum(times))
    assert (
        "2 events" in found["conclusions"][0]
        and "launched by the warm-up" in found["conclusions"][0]
    )
    assert found["conclusions"][1].endswith("is the GPU time of the forwards.")


# ── occupancy ─────────────────────────────────────────────────────────────────────────────────────

EX, PLAIN = "cuLaunchKernelEx", "cudaLaunchKernel"


def occupancy(folder, *kernels):
    """Recordings of (variant, launch call, bytes of shared memory, what the profiler says)."""
    for number, (variant, call, shared, says) in enumerate(kernels):
        args = {"shared memory": shared, "est. achieved occupancy %": says, "grid": [16, 128, 1]}
        work = forward(100, ("sdpa", FLASH, 90), call=call, **args)
        save(folder, "occupancy", variant, work, file=str(number))
    return folder


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


# ── cpu ───────────────────────────────────────────────────────────────────────────────────────────


def cpu(folder, **times):
    for variant, each in times.items():
        save(folder, "cpu", variant, [region(1000 * n, us) for n, us in enumerate(each, 1)])
    return folder


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


# ── the command ───────────────────────────────────────────────────────────────────────────────────


def command(*arguments) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "common.experiment", *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip


def test_without_a_gpu_it_names_replay():
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    done = command("leak")
    assert (done.returncode, done.stdout) == (2, "")
    assert "the experiment leak needs a GPU; --replay reads" in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_reading_needs_no_torch(tmp_path):
    code = (
        "import sys; sys.modules['torch'] = None; from pathlib import Path; "
        "from common import experiment as e; "
        f"e.experiment(e.Options('leak', replay={str(leak(tmp_path))!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "is the GPU time of the forwards" in done.stdout, done.stderr


def test_errors(tmp_path, ask):
    assert "invalid choice: 'speed'" in refused(ask, "speed")
    assert "no such folder" in refused(ask, "leak", "--replay", tmp_path / "none")
    assert "no recording of the experiment cpu in" in refused(ask, "cpu", "--replay", tmp_path)
    leak(tmp_path)
    device = {"type": "cuda", "name": "NVIDIA A100"}
    save(tmp_path, "leak", "never", attention(100), file="other", device=device)
    said = refused(ask, "leak", "--replay", tmp_path)
    assert "recordings of several machines (NVIDIA A100, torch 2.11.0; NVIDIA H200" in said


def test_the_documentation_explains_every_field_and_no_other(tmp_path, ask):
    leak(tmp_path)
    occupancy(tmp_path, ("flash", PLAIN, 49_152, 13))
    cpu(tmp_path, a=[1, 2], b=[3, 4])
    save(tmp_path, "tuning", "triton", tuned(5000, 128, 256))
    text = (ROOT / "docs" / "json.md").read_text().split("# The fields of `experiment --json`")[1]
    tables = [re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", part, re.M)))
              for part in text.split("| field | what it is |\n")[1:]]  # fmt: skip
    found = {
        name: json.loads(ask(name, "--json", "--replay", tmp_path)[1])
        for name in ("leak", "occupancy", "cpu", "tuning")
    }
    step = json.loads(json.dumps(report.as_json(experiment.load("occupancy", [tmp_path])[0])))
    recorded = {name: set(one["recordings"][0]) - {"file"} for name, one in found.items()}
    recorded["occupancy"] -= set(step["steps"][0])
    assert [set(table) for table in tables] == [set(found["leak"]), *recorded.values()]


def test_glance_leaves_experiments_out_of_a_folder(tmp_path):
    leak(tmp_path)
    assert list(recordings.observed([tmp_path])) == []
    assert len(list(recordings.observed([tmp_path / "never.json"]))) == 1


def test_look_names_the_experiment(tmp_path, capsys):
    leak(tmp_path)
    look.look(look.Options(traces=[tmp_path / "never.json"]))
    assert capsys.readouterr().out.startswith("experiment_leak test attention never · bf16")


def test_a_variant_that_the_gpu_refuses_is_named_and_left_out(monkeypatch, capsys, tmp_path):
    """With a GPU and recordings that are none."""
    from common.cli import UserError

    def one(name, recipe, traces, progress):
        if recipe.variant in refuses:
            raise UserError("not on this GPU")
        return traces / recipe.variant

    gpu = SimpleNamespace(device="cuda")
    monkeypatch.setattr("common.record.workload.choose", lambda options: (gpu, None))
    monkeypatch.setattr(experiment, "record_one", one)
    refuses = {"cudnn"}
    made = experiment.record("cpu", tmp_path, 100)
    assert [path.name for path in made] == ["math", "efficient", "flash"]
    assert capsys.readouterr().err == "note: cudnn is left out: not on this GPU\n"
    refuses = set(experiment.BACKENDS)
    with pytest.raises(UserError, match="nothing of the experiment cpu could be recorded"):
        experiment.record("cpu", tmp_path, 100)


def test_two_of_one_kind_are_not_mixed(tmp_path, ask):
    leak(tmp_path)
    save(tmp_path, "leak", "never", attention(100), file="again")
    said = refused(ask, "leak", "--replay", tmp_path)
    assert "two recordings of never [2, 4, 256, 64]: " in said and "again.json" in said


@pytest.mark.parametrize(("name", "expected"), [("leak", 2), ("cpu", 2)])
def test_what_is_recorded_is_read_back(tmp_path, ask, name, expected):
    """On the CPU, as far as that goes: the recipes run, and tell what they are."""
    from common.cli import UserError
    from common.record.workload import Workload

    work = Workload(1, 2, 64, 16, "fp32", "cpu")
    made = []
    for recipe in experiment.recipes(name, work, forwards=4):
        try:
            made.append(experiment.record_one(name, recipe, tmp_path))
        except UserError as error:
            assert recipe.backend in ("efficient", "cudnn"), error
    seen = experiment.load(name, [tmp_path])
    assert len(made) == len(seen) == expected
    for one in seen:
        assert one.about["script"] == f"experiment_{name}" and one.trace.path in made
        assert len(one.forwards) == (4 if name == "cpu" else 3)
        assert list(one.about["table_totals"]) == ["Self CPU time total"]  # no GPU, no total of it
    if name == "cpu":
        assert {one["backend"] for one in json.loads(ask(name, "--json", "--replay", tmp_path)[1])[
            "recordings"]} == {"math", "flash"}  # fmt: skip
    else:
        assert "does not tell the table's total" in conclusions(ask, name, tmp_path)[0]


@pytest.mark.filterwarnings("ignore:CUDA is not available")
@pytest.mark.parametrize(
    ("synchronise", "expected"),
    [("never", [6]), ("warm-up", [3, 6]), ("every step", [1, 2, 3, 4, 5, 6])],
)
def test_when_the_harness_synchronises(monkeypatch, synchronise, expected):
    """After which of wait 1, warm-up 2, active 3."""
    import torch

    from common.record import harness
    from common.record.workload import Options as Recorded

    class OnGpu:
        is_cuda = True

    steps, after = [], []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: after.append(len(steps)))
    options = Recorded(warmup=2, active=3)
    harness._profile(lambda x: steps.append(x), [OnGpu()], "fwd", options, synchronise)
    assert after == expected


# ── tuning ────────────────────────────────────────────────────────────────────────────────────────

FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>"


def tuned(ts, *blocks):
    """A forward that runs attention once with each block size, a fill before each."""
    events = [region(ts, 900)]
    for number, block in enumerate(blocks):
        events += forward(ts + 10 + 100 * number, ("fill_", FILL, 50), first=ts + 10 * number)[1:]
        events += forward(
            ts + 50 + 100 * number, ("triton", FLASH, 60), first=ts + 10 * number + 1,
            block=[block, 1, 1],
        )[1:]  # fmt: skip
    return events


def test_tuning_counts_the_runs_and_the_forms_of_the_kernel(tmp_path, ask):
    once = ("sdpa", FLASH, 55)
    save(tmp_path, "tuning", "triton", tuned(5000, 128, 256, 128), forward(8000, once),
         forward(9000, once))  # fmt: skip
    code, out, err = ask("tuning", "--json", "--replay", tmp_path)
    assert code == 0, err
    found = json.loads(out)
    first, second, third = found["recordings"]
    assert first["attention_kernels"] == 3 and first["forms_of_the_kernel"] == 2
    assert first["other_gpu_events"] == 3 and first["gpu_us"] == 330
    assert second["attention_kernels"] == third["attention_kernels"] == 1
    runs, average = found["conclusions"]
    assert "3 runs of one kernel in 2 forms" in runs and "3 events" in runs
    assert "147 µs" in average and "55 µs" in average  # (330 + 55 + 55) / 3


def test_tuning_reads_one_recording_of_a_gpu(tmp_path, ask):
    once = ("sdpa", FLASH, 55)
    for number, shape in enumerate(([2, 4, 256, 64], [2, 4, 512, 64])):
        save(tmp_path / "two", "tuning", "triton", forward(5000, once), file=str(number),
             shape=shape)  # fmt: skip
    assert "reads one recording, and there are 2" in refused(
        ask, "tuning", "--replay", tmp_path / "two"
    )
    save(tmp_path / "cpu", "tuning", "triton", region(0, 50), op("aten::mul", 5, 20))
    assert "recorded without a GPU?" in refused(ask, "tuning", "--replay", tmp_path / "cpu")


def test_a_form_that_changes_again_is_not_hidden(tmp_path, ask):
    one, other = (
        forward(at, ("sdpa", FLASH, 55), grid=[grid, 1, 1]) for at, grid in ((8000, 8), (9000, 4))
    )
    save(tmp_path, "tuning", "triton", tuned(5000, 128, 256), one, other)
    said = conclusions(ask, "tuning", tmp_path)[0]
    assert "8×1×1" in said and "4×1×1" in said


def test_tuning_that_does_not_show_is_not_claimed(tmp_path, ask):
    once = ("sdpa", FLASH, 55)
    save(tmp_path, "tuning", "triton", forward(5000, once), forward(8000, once))
    (said,) = conclusions(ask, "tuning", tmp_path)
    assert said.startswith("No forward that tunes")


# ── what is shipped ───────────────────────────────────────────────────────────────────────────────

WAITING = pytest.mark.skipif(not SHIPPED.exists(), reason="no recordings are shipped yet")
KERNELS = {"flash 64", "flash 128", "cudnn 64", "triton 64", "triton-small 64"}


def shipped(ask, name) -> dict:
    code, out, err = ask(name, "--replay", "--json")
    assert code == 0, err
    return json.loads(out)


@WAITING
def test_shipped_leak(ask):
    found = shipped(ask, "leak")
    never, after = found["recordings"]
    for one in (never, after):
        content = load(ROOT / one["file"])
        events = [
            e for e in content["traceEvents"] if e.get("cat", "").startswith(("kernel", "gpu_mem"))
        ]
        launches = {
            e["args"].get("correlation")
            for e in content["traceEvents"]
            if e.get("cat") in ("cuda_runtime", "cuda_driver")
        }
        alone = [e for e in events if e["args"]["correlation"] not in launches]
        assert one["gpu_events"] == len(events)
        assert one["gpu_events_without_launch"] == len(alone)
        assert one["file_sum_us"] == pytest.approx(float(sum(e["dur"] for e in events)), abs=1e-3)
    assert ("launched by the warm-up" in found["conclusions"][0]) == (
        never["gpu_events_without_launch"] > 0
    )


@WAITING
def test_shipped_occupancy(ask):
    found = shipped(ask, "occupancy")
    assert {one["recording"] for one in found["recordings"]} == KERNELS
    over = [one for one in found["recordings"] if one["shared_memory"] > 49_152]
    agrees = all(
        (one["occupancy_reported_pct"] == 0) == (one in over) for one in found["recordings"]
    )
    assert ("Shared memory decides" in found["conclusions"][0]) == agrees


@WAITING
def test_shipped_cpu(ask):
    found = shipped(ask, "cpu")
    assert {one["backend"] for one in found["recordings"]} == set(experiment.BACKENDS)
    assert all(one["forwards"] >= 100 for one in found["recordings"])


@WAITING
def test_shipped_tuning(ask):
    found = shipped(ask, "tuning")
    first, *later = found["recordings"]
    assert first["attention_kernels"] > first["forms_of_the_kernel"] > 1
    assert [f["attention_kernels"] for f in later] == [1, 1]
    assert "Tuning shows" in found["conclusions"][0]


@WAITING
def test_shipped_recordings_are_small_and_name_nobody():
    files = [path for path in SHIPPED.rglob("*") if path.is_file()]
    assert files and all(path.name.endswith(".json.gz") for path in files)
    assert sum(path.stat().st_size for path in files) < 600_000
    assert [path for path in files if scan_file(path)] == []
