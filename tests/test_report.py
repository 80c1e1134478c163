"""What people read, word for word; and what programs read: null for unknown, never 0."""

import io
import json
import re

import pytest
from build import (
    FLASH,
    copy,
    forward,
    kernel,
    launch,
    op,
    recording,
    recordings,
    region,
    story,
    trace,
    truth,
    write,
)
from rich.console import Console

from common.compare.rows import Answer, Claim, align, rows
from common.read.observe import observe
from common.read.trace import read
from common.show import report

ANSI = "\x1b"
NAIVE_GUESS = "matmul mul mask softmax matmul"


def look(tmp_path, *events, name="trace.json", **more):
    return observe(read(write(tmp_path, trace(*events, **more), name)))


def recorded(*what):
    return observe(read(recording(*what)))


@pytest.fixture(autouse=True)
def short_paths(tmp_path, monkeypatch):
    """A path is shown from where one stands: however deep this machine's temporary folder lies."""
    monkeypatch.chdir(tmp_path)


def shown(seen, guess="", lessons=None, claims=()) -> str:
    """The whole report as it goes into a pipe."""
    out = report.console()
    out.file = io.StringIO()
    report.show(
        out,
        seen,
        pairs=align(guess.split(), rows(seen.steps)),
        guessed=bool(guess),
        lessons=lessons or {},
        claims=claims,
    )
    return out.file.getvalue()


def said(tmp_path, *events, **more) -> list[str]:
    return report.warnings(look(tmp_path, *events, **more))


# ── The picture ───────────────────────────────────────────────────────────────────────────────────


def test_the_picture_of_04_a():
    """Every character of it; the figures are means over the recording, by plain loops."""
    forwards = truth(recording("04_a"))
    us = [
        float(sum(f["work"][step]["event"]["dur"] for f in forwards)) / 3 for step in range(7)
    ]  # memset, matmul, mul, copy, mask, softmax, matmul
    total = sum(us)
    lines = [us[0] + us[1], *us[2:]]
    t = [f"{time:7.1f} µs" for time in lines]
    p = [f"{100 * time / total:5.0f} %" for time in lines]
    cpu = [float(f["dur"]) for f in forwards]
    mean = sum(cpu) / 3
    spread = (sum((time - mean) ** 2 for time in cpu) / 2) ** 0.5
    assert (
        shown(recorded("04_a"), NAIVE_GUESS, {"+copy": "THE LESSON."})
        == f"""\
04_a naive attention · bf16 [8, 16, 1024, 64] · eager · NVIDIA H200 · torch 2.11.0+cu130

you guessed  on the GPU  kernel                             time  share  launched by
matmul       matmul      nvjet · Tensor Cores + memset{t[0]}{p[0]}  matmul › bmm
mul          mul         ATen mul                     {t[1]}{p[1]}  mul
  –          + copy      Memcpy DtoD                  {t[2]}{p[2]}  masked_fill › clone › copy_
mask         mask        ATen masked_fill             {t[3]}{p[3]}  masked_fill › masked_fill_
softmax      softmax     ATen softmax                 {t[4]}{p[4]}  softmax › _softmax
matmul       matmul      nvjet · Tensor Cores         {t[5]}{p[5]}  matmul › bmm

1 step you did not guess
  copy — THE LESSON.

5 kernels + 1 copy + 1 memset a forward (3 forwards, alike) · GPU {total / 1e3:.2f} ms · \
CPU {mean:.0f} ± {spread:.1f} µs · peak
+{553648128 / 2**20:.0f} MiB
GPU idle 1 % between first and last event (1 % waiting, though launched) · Tensor Cores 16 % of GPU
time · copies and memsets 12 %
"""
    )


def test_without_a_guess_there_is_no_column_for_it():
    text = shown(recorded("04_a"))
    assert "guess" not in text
    assert re.search(r"^on the GPU  kernel", text, re.M)
    assert re.search(r"^copy        Memcpy DtoD", text, re.M)


def test_a_right_guess_is_told_so():
    assert "\nas you guessed\n" in shown(recorded("04_c", "eager", "flash"), "attention")


def test_what_came_and_what_did_not_come(tmp_path):
    seen = look(tmp_path, forward(100, ("mul", "k", 5), ("x add", "k", 5), ("softmax", "k", 5)))
    text = shown(seen, "mul mask mask softmax cat", {"-cat": "NO CATS."})
    assert "1 step you did not guess\n  add — launched by x › add\n" in text
    assert (
        "3 steps you guessed did not come\n  mask ×2 — no step of this kind in the trace\n" in text
    )
    assert "  cat — NO CATS.\n" in text
    assert text.count("− did not come") == 3


@pytest.mark.parametrize(
    ("guess", "what", "words"),
    [
        (
            "softmax attention",
            ("04_c", "eager", "flash"),
            "softmax — one attention kernel does it all",
        ),
        ("mask", ("04_a", "compile"), "mask — it is inside triton_per_fused__softmax_exp_masked_"),
        ("softmax mul", ("04_a",), "mul — a mul ran, at another place in the order"),
        ("cat", ("04_a",), "cat — no step of this kind in the trace"),
    ],
)
def test_where_a_missing_step_went(guess, what, words):
    assert words in " ".join(shown(recorded(*what), guess).split())


def test_a_step_of_many_kernels_is_named_by_its_op():
    text = shown(recorded("04_c", "eager", "math"), NAIVE_GUESS)
    assert re.search(r"^softmax +softmax +5 kernels .* _safe_softmax$", text, re.M)
    assert re.search(r"^  – +\+ cast ×3 +ATen copy .* to › _to_copy › copy_$", text, re.M)
    assert (
        "all of it inside scaled_dot_product_attention › _scaled_dot_product_attention_math" in text
    )
    assert len(re.findall(r"CUDA cores", text)) == 2


def test_shares_add_up(tmp_path):
    seen = look(tmp_path, forward(100, ("mul", "k", 10), ("add", "k", 29.99), ("sub", "k", 0.01),
                                  ("div", "k", 60)))  # fmt: skip
    assert re.findall(r"(<?\d+) %", shown(seen).split("GPU idle")[0]) == ["10", "30", "<1", "60"]


def test_unknown_times_are_called_so(tmp_path):
    events = forward(100, ("mul", "k", 5), ("add", "k", 5))
    events[-1] |= {"ts": 0, "dur": 0}
    text = shown(look(tmp_path, events))
    assert re.search(r"^add +\S+ +unknown", text, re.M)
    assert "%" not in text.replace("100 %", "")  # no share of an unknown sum
    assert "GPU unknown" in text


def test_compiled_wrappers_are_said_in_words():
    text = shown(recorded("04_a", "compile"))
    assert "all of it inside compiled graph" in text
    assert "CompiledFxGraph" not in text and "Torch-Compiled Region" not in text


def test_somebody_else_s_trace_is_headed_by_file_region_and_gpu(tmp_path):
    seen = look(tmp_path, forward(100, ("mul", "k", 5)), name="theirs.json")
    assert shown(seen).split("\n")[0].endswith("theirs.json · fwd · NVIDIA H200")
    assert "peak" not in shown(seen)  # nobody said anything about memory


def test_sums(tmp_path):
    def of(*events, **more):
        return report.sums(look(tmp_path, *events, **more))

    one, two = forward(100, ("mul", "k", 5)), forward(900, ("mul", "k", 7))
    assert of(one) == "1 kernel a forward (1 forward) · GPU 5 µs · CPU 30 µs"
    assert of(one, two) == "1 kernel a forward (2 forwards, alike) · GPU 6 µs · CPU 30 ± 0 µs"
    other = forward(900, ("mul", "k", 7), ("mul", "copy", 2), ("zero_", "memset", 1))
    assert of(one, other).startswith(
        "1 kernel + 0 to 1 copies + 0 to 1 memsets a forward (2 forwards, not alike)"
    )
    assert of(region(0, 30)) == "0 working ops a forward (1 forward) · CPU 30 µs"
    assert of(region(0, 30), launch(1, 5, "cudaMemcpyAsync"), kernel(8, 90, 1)).startswith(
        "nothing on the GPU a forward (1 forward) · GPU unknown"
    )
    assert of(one, about=story(peak_bytes=3 << 20)).endswith(" · peak +3 MiB")
    assert of(one, about=story(peak_bytes=None)).endswith(" · peak unknown")
    assert "GPU 1.5 ms" in of(forward(100, ("mul", "k", 1500)))
    assert of(region(0, -1)).startswith("0 working ops a forward (0 forwards) · CPU unknown")


# ── Plain in a pipe ───────────────────────────────────────────────────────────────────────────────

YES = Claim("a sentence " * 12, None), Answer("yes", "evidence " * 30)


@pytest.mark.parametrize("what", recordings())
def test_plain_lines_of_at_most_100_columns(what):
    text = shown(recorded(*what), NAIVE_GUESS, {"+copy": "word " * 60}, [YES])
    for line in text.split("\n"):
        assert len(line) <= 100, line
        assert line == line.rstrip(), line
    assert ANSI not in text


@pytest.mark.parametrize("what", [("04_c", "eager", "math"), ("04_b", "compile")])
def test_two_recordings_fit_too_and_no_number_gives_way(what):
    out = report.console()
    out.file = io.StringIO()
    a, b = recorded("04_a"), recorded(*what)
    report.show_difference(out, a, b)
    text = out.file.getvalue()
    lines = text.split("\n")
    assert ANSI not in text
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)
    for seen in (a, b):
        for row in rows(seen.steps):
            assert f" {report.microseconds(row.ns)}" in text
        assert f" {report.microseconds(seen.gpu_ns)}" in text
    assert f"{(b.gpu_ns - a.gpu_ns) / 1e3:+,.1f} µs" in text


def test_a_terminal_gets_colours():
    file = io.StringIO()
    out = Console(file=file, force_terminal=True, color_system="standard", width=100)
    seen = recorded("04_a")
    pairs = align(NAIVE_GUESS.split(), rows(seen.steps))
    report.show(out, seen, pairs=pairs, guessed=True, lessons={}, claims=())
    assert ANSI in file.getvalue()
    assert (
        re.sub(r"\x1b\[[\d;]*m", "", file.getvalue()).split()[:40]
        == shown(seen, NAIVE_GUESS).split()[:40]
    )


@pytest.mark.parametrize("name", ["k[/]", "k[/red]", "[bold]k", "a::key::b", ":smile:", "k\\[x]"])
def test_names_are_no_markup(tmp_path, name):
    """C++ names look like markup to rich: they would raise, vanish or become pictures."""
    seen = look(
        tmp_path, region(0, 90, name), op(name, 5, 60), op("mul", 10, 9), launch(1, 12),
        launch(2, 80), kernel(1, 200, 5, name), kernel(2, 300, 5),
    )  # fmt: skip
    head, *text = shown(seen, "cat").split("\n")
    assert f" · {name} · " in head
    assert [line for line in text if line.endswith(f"  {name} › mul")]
    assert f"  mul — launched by {name} › mul" in text


def test_no_text_is_markup():
    out = report.console()
    out.file = io.StringIO()
    out.print("k[/red] [bold]x a::key::b 12")
    assert out.file.getvalue() == "k[/red] [bold]x a::key::b 12\n"


def test_long_names_do_not_push_numbers_out(tmp_path):
    """The op stands on a line of its own kind; a kernel's name never does."""
    seen = look(tmp_path, region(0, 100), op("softmax", 5, 20), device=None)
    long = look(tmp_path, forward(100, ("x" * 300 + " mul", "k" * 300, 5)), name="long.json")
    for text in (shown(seen), shown(long)):
        assert all(len(line) <= 100 for line in text.split("\n"))
        assert re.search(r"\d\.0 µs +100 %", text)


# ── Claims ────────────────────────────────────────────────────────────────────────────────────────


def test_claims_stand_with_their_verdict_and_evidence():
    claim = Claim("water is wet", None, otherwise="it was ice")
    asked = [
        (claim, Answer("yes", "a drop")),
        (claim, Answer("no", "a cube")),
        (claim, Answer("not visible", "it is dark")),
    ]
    assert (
        shown(recorded("04_a"), claims=asked)
        .split("what to look for\n")[1]
        .startswith(
            "  yes water is wet\n      a drop\n"
            "  no  water is wet\n      a cube\n      it was ice\n"
            "  –   water is wet\n      it is dark\n\n"
        )
    )


def test_evidence_that_several_claims_share_is_said_once():
    same, other = Answer("not visible", "no GPU here"), Answer("yes", "1 kernel")
    told = [("first", same), ("second", same), ("third", other), ("fourth", same)]
    claims = [(Claim(sentence, None), answer) for sentence, answer in told]
    text = shown(recorded("04_a"), claims=claims).split("what to look for\n")[1]
    assert [" ".join(line.split()) for line in text.split("\n")][:7] == [
        "– first", "– second", "no GPU here", "yes third", "1 kernel", "– fourth", "no GPU here",
    ]  # fmt: skip


# ── Warnings ──────────────────────────────────────────────────────────────────────────────────────

ONE = forward(100, ("mul", "k", 5))


def test_clean_traces_are_not_warned_of(tmp_path):
    for what in recordings():
        assert report.warnings(recorded(*what)) == []
    assert said(tmp_path, ONE) == []


def test_warning_of_non_finite_numbers(tmp_path):
    for count, words in ((1, "1 non-finite number "), (2, "2 non-finite numbers ")):
        text = json.dumps(trace(ONE, [op("x", 1, 1) | {"x": "HERE"}] * count))
        path = write(tmp_path, text.replace('"HERE"', "NaN").encode())
        assert report.warnings(observe(read(path))) == [
            f"{words}(NaN or Infinity) treated as missing"
        ]


NO_GPU = (
    "no GPU events in the trace (CUPTI unavailable or CUDA activity off): "
    "kernel counts and GPU times are unknown"
)


def test_warning_of_no_gpu(tmp_path):
    on_cpu = forward(100, ("mul", "", 0))
    assert said(tmp_path, on_cpu) == [NO_GPU]
    assert said(tmp_path, on_cpu, about=story()) == [NO_GPU]
    # Our own recording of a CPU has none and misses none.
    assert said(tmp_path, on_cpu, about=story(device={"type": "cpu", "name": "CPU"})) == []


def test_warning_of_lost_records(tmp_path):
    assert said(tmp_path, region(0, 50), launch(1, 5)) == [
        "1 launch has no kernel record; GPU records were lost"
    ]
    assert said(tmp_path, region(0, 50), launch(1, 5), launch(2, 10)) == [
        "2 launches have no kernel record; GPU records were lost"
    ]


def test_warning_of_shared_correlation(tmp_path):
    two = [kernel(1, 20, 5), kernel(1, 120, 5)]
    shared = "correlation 1 belongs to 2 kernels but its launch (hipLaunchKernel) starts one; "
    first = [region(0, 50), launch(1, 10, "hipLaunchKernel"), two]
    counted = "all counted with that launch"
    assert said(tmp_path, first) == [f"{shared}no launch has no kernel; {counted}"]
    assert said(tmp_path, first, launch(2, 30))[0] == (
        f"{shared}launch 2 has no kernel; joined in order of time"
    )
    assert said(tmp_path, first, [launch(n, 30 + n) for n in range(2, 9)])[0] == (
        f"{shared}launch 2, launch 3, launch 4 and 4 more have no kernel; {counted}"
    )


def test_many_shared_correlations_do_not_fill_the_screen(tmp_path):
    events = [[launch(n, n), kernel(n, 200 + 9 * n, 1), kernel(n, 900 + 9 * n, 1)]
              for n in range(1, 41)]  # fmt: skip
    warnings = said(tmp_path, region(0, 90), events)
    assert len(warnings) == 4
    assert warnings[-1] == "37 more correlation ids of several kernels"


def test_warning_of_correlation_0(tmp_path):
    assert said(tmp_path, ONE, kernel(0, 50, 5)) == [
        "1 kernel has correlation 0 and cannot be linked"
    ]
    assert said(tmp_path, ONE, kernel(0, 50, 5), kernel(0, 60, 5)) == [
        "2 kernels have correlation 0 and cannot be linked"
    ]


def test_warning_of_work_from_before(tmp_path):
    assert said(tmp_path, ONE, kernel(9, 50, 5), copy(8, 60, 5)) == [
        "2 GPU events without a launch in the file, left out: launched before recording started, "
        "as by a warm-up that was not synchronised"
    ]
    assert said(tmp_path, ONE, copy(8, 60, 5))[0].startswith("1 GPU event without a launch")


def test_warning_of_unknown_times(tmp_path):
    lost = {"ts": 0, "dur": 0}
    one = [region(0, 50), launch(1, 5), launch(2, 6), kernel(1, 100, 5) | lost]
    assert said(tmp_path, one, kernel(2, 100, 5)) == [
        "1 kernel has ts 0 / dur 0; its time is unknown"
    ]
    assert said(tmp_path, one, kernel(2, 0, 0) | lost) == [
        "2 kernels have ts 0 / dur 0; their times are unknown"
    ]
    assert said(tmp_path, one, copy(2, 0, 0) | lost) == [
        "2 GPU events have ts 0 / dur 0; their times are unknown"
    ]


def test_warning_of_a_duration_that_cannot_be(tmp_path):
    events = [
        region(0, 50), launch(1, 5), launch(2, 6), launch(3, 7),
        kernel(1, 100, 10), kernel(2, 120, 5_000_000), kernel(3, 145, 5),
    ]  # fmt: skip
    assert said(tmp_path, events) == [
        "kernel 2 lasts 5000000 us but the next kernel on its stream starts 25 us after its "
        "start; its duration (and the CUDA total) is not credible"
    ]


def test_no_warning_of_a_duration_that_no_number_rests_on(tmp_path):
    """Of another region's kernel."""
    events = [
        region(0, 50), launch(1, 5), kernel(1, 100, 10), region(500, 50, "other"), launch(2, 505),
        launch(3, 506), kernel(2, 600, 5_000_000), kernel(3, 700, 5),
    ]  # fmt: skip
    seen = observe(read(write(tmp_path, trace(events))), "fwd")
    assert (report.warnings(seen), seen.gpu_ns) == ([], 10_000)


def test_warning_of_unfinished_regions(tmp_path):
    assert said(tmp_path, ONE, region(500, -1)) == [
        "1 region has a negative or zero duration (unfinished), left out"
    ]
    assert said(tmp_path, ONE, region(500, -1), region(600, 0)) == [
        "2 regions have a negative or zero duration (unfinished), left out"
    ]


def test_warning_of_forwards_that_differ(tmp_path):
    assert said(tmp_path, ONE, forward(900, ("add", "k", 5))) == [
        "the forwards differ: steps and times are those of the first"
    ]


def sdpa(backend):
    return forward(
        100,
        (f"scaled_dot_product_attention _scaled_dot_product_{backend}", FLASH, 5),
    )


def test_warning_of_another_backend_than_asked_for(tmp_path):
    assert said(tmp_path, sdpa("attention_math"), about=story(variant="auto")) == [
        "no fused kernel served this shape; math materialises the score matrix"
    ]
    assert said(tmp_path, sdpa("flash_attention"), about=story(variant="cudnn")) == [
        "backend cudnn was asked for, and flash ran"
    ]
    for variant in ("auto", "flash", "", "triton"):
        assert said(tmp_path, sdpa("flash_attention"), about=story(variant=variant)) == []


# ── For programs ──────────────────────────────────────────────────────────────────────────────────

KEYS = {
    "file", "region", "regions", "unfinished_regions", "profiler_steps", "kernels_per_forward",
    "copies_per_forward", "memsets_per_forward", "launches_per_forward", "cuda_us_per_forward",
    "cuda_sum_us", "gpu_busy_us", "cpu_us_per_forward", "unlinked_kernels", "total_kernels",
    "streams", "steps", "warnings",
}  # fmt: skip
STEP_KEYS = {
    "kind", "name", "family", "tensor_cores", "ops", "us", "grid", "block", "registers",
    "shared_memory", "occupancy_reported_pct", "occupancy_pct", "occupancy_limit",
}  # fmt: skip


@pytest.mark.parametrize("what", recordings())
def test_numbers_for_programs(what):
    """All of them from plain loops over the recording."""
    found, forwards = report.as_json(recorded(*what)), truth(recording(*what))
    assert KEYS <= found.keys()
    work = [item for forward in forwards for item in forward["work"]]
    us = [float(item["event"]["dur"]) for item in work]
    assert found["regions"] == found["profiler_steps"] == 3
    for key, cat in (("kernels", "kernel"), ("copies", "gpu_memcpy"), ("memsets", "gpu_memset")):
        counts = {sum(i["event"]["cat"] == cat for i in f["work"]) for f in forwards}
        assert counts == {found[f"{key}_per_forward"]}
    assert found["cuda_sum_us"] == pytest.approx(sum(us), abs=0.001)
    assert found["cuda_us_per_forward"] == pytest.approx(sum(us) / 3, abs=0.001)
    assert found["cpu_us_per_forward"] == pytest.approx(
        float(sum(f["dur"] for f in forwards)) / 3, abs=0.001
    )
    assert found["gpu_busy_us"] <= found["cuda_sum_us"] + 0.001
    assert found["total_kernels"] == sum(i["event"]["cat"] == "kernel" for i in work)
    assert found["streams"] == sorted({item["event"]["args"]["stream"] for item in work})
    assert len(found["steps"]) == len(forwards[0]["work"])
    for step, item in zip(found["steps"], forwards[0]["work"], strict=True):
        assert STEP_KEYS <= step.keys()
        args = item["event"]["args"]
        assert (step["name"], step["ops"]) == (item["event"]["name"], item["ops"])
        for ours, theirs in (
            ("grid", "grid"),
            ("block", "block"),
            ("registers", "registers per thread"),
            ("shared_memory", "shared memory"),
            ("occupancy_reported_pct", "est. achieved occupancy %"),
        ):
            assert step[ours] == args.get(theirs)
    assert found["warnings"] == [] and "guess" not in found and "claims" not in found


def test_unknown_is_null_and_never_0(tmp_path):
    bare = {"registers per thread": None, "shared memory": None, "grid": None, "block": None,
            "est. achieved occupancy %": None}  # fmt: skip
    step = report.as_json(look(tmp_path, forward(100, ("f", "k", 5), **bare)))["steps"][0]
    for key in STEP_KEYS - {"kind", "name", "family", "ops", "us"}:
        assert step[key] is None, key

    found = report.as_json(look(tmp_path, forward(100, ("mul", "", 0)), device=None))
    for key in ("kernels", "copies", "memsets"):
        assert found[f"{key}_per_forward"] is None
    for key in ("cuda_us_per_forward", "cuda_sum_us", "gpu_busy_us"):
        assert found[key] is None
    assert (found["launches_per_forward"], found["total_kernels"]) == (0, 0)  # these are known

    found = report.as_json(look(tmp_path, region(0, -1)))
    for key in ("kernels_per_forward", "launches_per_forward", "cpu_us_per_forward"):
        assert found[key] is None
    assert (found["regions"], found["unfinished_regions"]) == (1, 1)


def test_a_number_when_all_agree_else_a_list_in_time_order(tmp_path):
    one, two = forward(100, ("mul", "k", 5)), forward(900, ("mul", "k", 5), ("add", "k", 5))
    found = report.as_json(look(tmp_path, two, one))
    assert found["kernels_per_forward"] == found["launches_per_forward"] == [1, 2]
    assert found["copies_per_forward"] == 0
    # Steps of forwards that differ are told apart.
    assert [(step["forward"], step["kind"]) for step in found["steps"]] == [
        (0, "mul"), (1, "mul"), (1, "add"),
    ]  # fmt: skip


def test_streams_of_any_sort_are_listed(tmp_path):
    events = [region(0, 50)] + [
        event
        for n, stream in enumerate((7, "7", "compute", 20, 7), 1)
        for event in (launch(n, n), kernel(n, 100 + n, 1, stream=stream))
    ]
    streams = report.as_json(look(tmp_path, events))["streams"]
    assert sorted(map(repr, streams)) == sorted(map(repr, (7, "7", "compute", 20)))


def test_guess_and_claims_are_in_it_when_there_are_any():
    seen = recorded("04_a")
    pairs = align(("matmul", "cat"), rows(seen.steps))
    claims = [(Claim("s", None), Answer("no", "e"))]
    found = report.as_json(seen, pairs, True, claims)
    assert {"guess": "matmul", "seen": "matmul"} in found["guess"]
    assert {"guess": "cat", "seen": None} in found["guess"]
    assert {"guess": None, "seen": "copy"} in found["guess"]
    assert found["claims"] == [{"claim": "s", "verdict": "no", "evidence": "e"}]


def test_differences_for_programs():
    a, b = recorded("04_a"), recorded("04_b")
    found = report.difference_json(a, b)
    assert (found["a"], found["b"]) == (report.as_json(a), report.as_json(b))
    assert [step["kind"] for step in found["steps"] if step["only_in"]] == ["copy"]
    [copied] = [step for step in found["steps"] if step["only_in"] == "a"]
    us = [float(w["event"]["dur"]) for f in truth(recording("04_a")) for w in f["work"]
          if w["event"]["cat"] == "gpu_memcpy"]  # fmt: skip
    assert copied["a_us"] == pytest.approx(sum(us) / 3, abs=0.001)
    assert copied["b_us"] is None


def test_files_are_named_with_the_way_to_open_and_share_them(capsys):
    path = recording("04_a")
    report.show_files(report.console(), path, None)
    text = capsys.readouterr().out
    name = "traces/recorded/h200/04_a_naive_attention/8_16_1024_64_eager.json.gz"
    assert re.search(rf"^trace  \S*{re.escape(name)}$", text, re.M)  # to be copied: never broken
    assert re.search(rf"^view   uvx --from viztracer vizviewer \S*{re.escape(name)} ", text, re.M)
    assert re.search(r"^share  uvx .*trace-util.* -f \S*traces/recorded/h200/ -b ", text, re.M)
    assert not re.search(r"^table", text, re.M)


def test_top_of_the_profiler_s_table(capsys):
    rows = [("aten::mul", 12.34, 5678.9, 3), ("x" * 99, 1, 2, 1)]
    report.show_files(report.console(), recording("04_a"), recording("04_b"), rows)
    text = capsys.readouterr().out
    assert re.search(r"^aten::mul +12\.3 µs +5,678\.9 µs +3$", text, re.M)
    assert re.search(r"^x{55}… +1\.0 µs", text, re.M)
    assert re.search(r"^table  \S+$", text, re.M)
    report.show_files(report.console(), recording("04_a"), None, [("a", 1, None, 1)])
    assert "CUDA" not in capsys.readouterr().out.split("trace  ")[0]
