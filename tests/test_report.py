"""What people read of one region and of two, word for word."""

import io
import re

import pytest
from build import (
    NVJET,
    ROOT,
    forward,
    kernel,
    launch,
    op,
    recording,
    recordings,
    region,
    story,
    truth,
)
from rich.console import Console
from seen import look, recorded

from common.compare.claims import Answer, Claim
from common.compare.compared import Compared, compare, score
from common.compare.loops import FEW_ROWS
from common.compare.rows import align, rows
from common.read.observe import observe
from common.read.trace import read
from common.show import report
from common.show.terminal import console
from common.show.words import microseconds

ANSI = "\x1b"
NAIVE_GUESS = "matmul mul mask softmax matmul"


@pytest.fixture(autouse=True)
def short_paths(tmp_path, monkeypatch):
    """A path is shown from where one stands: however deep this machine's temporary folder lies."""
    monkeypatch.chdir(tmp_path)


def compared(seen, guess="", reasons=None, answers=(), own=True) -> Compared:
    pairs = tuple(align(guess.split(), rows(seen.steps)))
    scored = score(pairs) if guess and own else None
    return Compared(seen, pairs, bool(guess), scored, reasons or {}, tuple(answers))


def shown(seen, guess="", reasons=None, answers=(), own=True) -> str:
    """The whole report as it goes into a pipe. `own`: the guess is the reader's."""
    out = console()
    out.file = io.StringIO()
    report.show(out, compared(seen, guess, reasons, answers, own))
    return out.file.getvalue()


SHAPES = sorted((ROOT / "tests" / "data" / "shapes").glob("*.json.gz"))


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
    # bf16: two matmuls of q, k or v with the scores, the scores read and written, a mask of bytes.
    scores, one = 8 * 16 * 1024**2, 8 * 16 * 1024 * 64
    product = 2 * (2 * one + scores)
    moved = [product, 4 * scores, 4 * scores, 4 * scores + 1024**2, 4 * scores, product]
    tbs = [size / time / 1e6 for size, time in zip(moved, lines, strict=True)]
    b = [f"  memory {100 * rate / 4.8:.0f} %" for rate in tbs]
    r = [f"{rate:.3g}" for rate in tbs]
    cpu = [float(f["dur"]) for f in forwards]
    mean = sum(cpu) / 3
    spread = (sum((time - mean) ** 2 for time in cpu) / 2) ** 0.5
    assert (
        shown(recorded("04_a"), NAIVE_GUESS, {"+copy": "THE LESSON."})
        == f"""\
04_a naive attention · bf16 [8, 16, 1024, 64] · eager · NVIDIA H200 · torch 2.11.0+cu130

you guessed  on the GPU  kernel                             time  share  bound by     launched by
matmul       matmul      nvjet · Tensor Cores + memset{t[0]}{p[0]}{b[0]}  matmul › bmm
mul          mul         ATen mul                     {t[1]}{p[1]}{b[1]}  mul
  –          + copy      Memcpy DtoD                  {t[2]}{p[2]}{b[2]}  masked_fill ›
                                                                                      clone › copy_
mask         mask        ATen masked_fill             {t[3]}{p[3]}{b[3]}  masked_fill ›
                                                                                      masked_fill_
softmax      softmax     ATen softmax                 {t[4]}{p[4]}{b[4]}  softmax ›
                                                                                      _softmax
matmul       matmul      nvjet · Tensor Cores         {t[5]}{p[5]}{b[5]}  matmul › bmm

rates: matmul {r[0]}, mul {r[1]}, copy {r[2]}, mask {r[3]}, softmax {r[4]}, \
matmul {r[5]} of 4.8 TB/s

1 step you did not guess
  copy — THE LESSON.

your guess: 5 of 6 steps right · missed copy · in order

5 kernels + 1 copy + 1 memset a forward (3 forwards, alike) · GPU {total / 1e3:.2f} ms · \
CPU {mean:.0f} ± {spread:.1f} µs · peak
+{553648128 / 2**20:.0f} MiB
GPU idle 1 % inside a forward (1 % waiting, though launched) · Tensor Cores 16 % of GPU time ·
copies and memsets 12 %
GPU idle 1 % over the recording, between forwards too
"""
    )


def test_without_a_guess_there_is_no_column_for_it():
    text = shown(recorded("04_a"))
    assert "guess" not in text
    assert re.search(r"^on the GPU  kernel", text, re.M)
    assert re.search(r"^copy        Memcpy DtoD", text, re.M)


def test_a_right_guess_is_told_so():
    text = shown(recorded("04_c", "eager", "flash"), "attention")
    assert "\nyour guess: 1 of 1 step right\n" in text


def test_what_a_script_expects_is_not_the_readers_guess():
    text = shown(recorded("04_c", "eager", "flash"), "attention", own=False)
    assert "guess" not in text
    assert re.search(r"^expected     on the GPU", text, re.M) and "\nas expected\n" in text
    wrong = shown(recorded("04_a"), "matmul cat", own=False)
    assert "guess" not in wrong
    assert "5 steps not expected\n" in wrong and "1 step expected did not come\n" in wrong


@pytest.mark.parametrize(
    ("guess", "words"),
    [
        ("matmul mul mask softmax matmul", "5 of 6 steps right · missed copy · in order"),
        ("matmul mul copy mask softmax matmul", "6 of 6 steps right · in order"),
        (
            "softmax matmul matmul",
            "2 of 6 steps right · at another place matmul · missed mul copy mask",
        ),
        ("cat cat", "0 of 6 steps right · missed matmul mul copy mask softmax matmul · invented "
         "cat cat"),
    ],
)  # fmt: skip
def test_a_guess_is_scored(guess, words):
    text = " ".join(shown(recorded("04_a"), guess).split())
    assert f"your guess: {words} 5 kernels" in text


def test_one_event_has_no_gap_inside():
    """Whatever the kernel, so nothing is said of it; between forwards there may be gaps."""
    text = shown(recorded("04_c", "eager", "flash"))
    assert "inside a forward" not in text
    assert "\nTensor Cores 100 % of GPU time\nGPU idle 19 % over the recording" in text
    assert "GPU idle 1 % inside a forward" in shown(recorded("04_a"))


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
    top, picture = shown(seen).split("GPU idle")[0].split("on the GPU")
    assert re.findall(r"(<?\d+) %", picture) == ["10", "30", "<1", "60"]
    assert "GPU time: div 60 % · add 30 % · mul 10 %" in top


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
    out = console()
    out.file = io.StringIO()
    a, b = recorded("04_a"), recorded(*what)
    report.show_difference(out, a, b)
    text = out.file.getvalue()
    lines = text.split("\n")
    assert ANSI not in text
    assert all(len(line) <= 100 and line == line.rstrip() for line in lines)
    for seen in (a, b):
        for row in rows(seen.steps):
            assert f" {microseconds(row.ns)}" in text
        assert f" {microseconds(seen.gpu_ns)}" in text
    assert f"{(b.gpu_ns - a.gpu_ns) / 1e3:+,.1f} µs" in text


def test_a_terminal_gets_colours():
    file = io.StringIO()
    out = Console(file=file, force_terminal=True, color_system="standard", width=100)
    seen = recorded("04_a")
    report.show(out, compared(seen, NAIVE_GUESS))
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
    out = console()
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
        shown(recorded("04_a"), answers=asked)
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
    text = shown(recorded("04_a"), answers=claims).split("what to look for\n")[1]
    assert [" ".join(line.split()) for line in text.split("\n")][:7] == [
        "– first", "– second", "no GPU here", "yes third", "1 kernel", "– fourth", "no GPU here",
    ]  # fmt: skip


# ── Files ─────────────────────────────────────────────────────────────────────────────────────────


def test_files_are_named_with_the_way_to_open_and_share_them(capsys):
    path = recording("04_a")
    report.show_files(console(), path, None)
    text = capsys.readouterr().out
    name = "traces/recorded/h200/04_a_naive_attention/8_16_1024_64_eager.json.gz"
    assert re.search(rf"^trace  \S*{re.escape(name)}$", text, re.M)  # to be copied: never broken
    assert re.search(rf"^view   uvx --from viztracer vizviewer \S*{re.escape(name)} ", text, re.M)
    assert re.search(r"^share  uvx .*trace-util.* -f \S*traces/recorded/h200/ -b ", text, re.M)
    assert not re.search(r"^table", text, re.M)


def test_top_of_the_profiler_s_table(capsys):
    rows = [("aten::mul", 12.34, 5678.9, 3), ("x" * 99, 1, 2, 1)]
    report.show_files(console(), recording("04_a"), recording("04_b"), rows)
    text = capsys.readouterr().out
    assert re.search(r"^aten::mul +12\.3 µs +5,678\.9 µs +3$", text, re.M)
    assert re.search(r"^x{55}… +1\.0 µs", text, re.M)
    assert re.search(r"^table  \S+$", text, re.M)
    report.show_files(console(), recording("04_a"), None, [("a", 1, None, 1)])
    assert "CUDA" not in capsys.readouterr().out.split("trace  ")[0]


# ── Compiled for the CPU ──────────────────────────────────────────────────────────────────────────

GRAPH = "## Call CompiledFxGraph fndggnzdyvv5uimb4bvijmpcdvjnpx4"


def compiled_on_cpu(tmp_path, *between):
    events = [region(100, 90), op("Torch-Compiled Region: 0/0", 101, 88), op(GRAPH, 102, 86)]
    events += [op("aten::bmm", 110, 10), *between, op("aten::bmm", 150, 10)]
    about = story(mode="compile", device={"type": "cpu", "name": "CPU"})
    return look(tmp_path, *events, about=about)


def test_compiled_code_that_leaves_no_event_on_the_cpu_is_said(tmp_path, capsys):
    seen = compiled_on_cpu(tmp_path)
    report.show(console(), compare(seen, "matmul fused matmul"))
    out = capsys.readouterr().out
    assert "warning: compiled C++ leaves no event on the CPU" in out
    assert "1 step you guessed is not visible" in out and "%" not in out.split("\n\n")[1]
    assert "did not come" not in out


def test_inductor_s_own_profile_of_cpu_kernels_is_steps(tmp_path, capsys):
    fused = op("graph_0_cpp_fused__softmax_masked_fill_mul_view_0", 125, 10)
    seen = compiled_on_cpu(tmp_path, fused)
    assert [step.kind for step in seen.steps] == ["matmul", "fused", "matmul"]
    report.show(console(), compare(seen, "matmul fused matmul"))
    out = capsys.readouterr().out
    assert "3 of 3 steps right" in out and "warning" not in out and "33 %" in out


def test_eager_code_that_says_compile_is_told(tmp_path, capsys):
    seen = look(tmp_path, region(100, 90), op("aten::bmm", 110, 10), about=story(mode="compile"))
    report.show(console(), compare(seen))
    assert "recorded as compiled, and no compiled code ran" in capsys.readouterr().out


# ── Loops ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.name)
def test_a_model_fits_a_page_and_its_lines_add_up(path):
    """In two ways of looking: the lines of the picture, and what plain loops count."""
    seen = observe(read(path))
    text = shown(seen)
    assert len(text.split("\n")) <= 60
    if len(rows(seen.steps)) <= FEW_ROWS:  # shown as they are
        return
    lines = picture_of(text)
    figures = [re.search(r"  +([\d,]+)  +\S+ \S+  +\S+ \S+  +<?\d+ %", line) for line in lines]
    counts = [int(found[1].replace(",", "")) for found in figures if found]
    *its, whole = counts  # a loop's own line has no count: its lines have
    assert sum(its) == whole == len(seen.steps)


def picture_of(text) -> list[str]:
    lines = text.split("\n")
    start = next(n for n, line in enumerate(lines) if line.startswith("on the GPU"))
    end = next(n for n, line in enumerate(lines) if line.startswith("all "))
    whole = re.sub(r"^(all +[\d,]+)( +)", r"\1  0 µs\2", lines[end])  # it has no mean
    return [*lines[start + 1 : end], whole]


def test_every_step_if_asked():
    seen = observe(read(SHAPES[0]))
    out = console()
    out.file = io.StringIO()
    report.show(out, compared(seen), every_step=True)
    lines = [line for line in out.file.getvalue().split("\n") if re.search(r" µs +<?\d+ %", line)]
    assert len(lines) == len(rows(seen.steps)) and "×  " not in "".join(lines)


def test_a_loop_stands_once_with_how_often_and_what_it_comes_to(tmp_path):
    layer = [("layer_norm native_layer_norm", "k", 3), ("linear addmm", NVJET, 9), ("gelu", "k", 2)]
    odd = [*layer[:2], ("dropout native_dropout", "k", 4), *layer[2:]]
    steps = [("embedding", "k", 1), *layer * 10, *odd, *layer * 5, ("argmax", "k", 1)]
    text = shown(look(tmp_path, forward(100, *steps)))
    assert re.search(r"^15 × +14 µs +210 µs +91 %$", text, re.M)
    assert re.search(r"^│ matmul +nvjet · Tensor Cores +15 +9 µs +135 µs +59 %  linear › addmm$",
                     text, re.M)  # fmt: skip
    assert re.search(r"^but turn 11:\n│ normalization .* 1 +3 µs", text, re.M)
    assert re.search(r"^all +51 +230 µs  100 %$", text, re.M)


def test_two_recordings_of_many_steps_are_folded_too(tmp_path):
    layer = [("linear addmm", NVJET, 9), ("gelu", "k", 2), ("layer_norm native_layer_norm", "k", 3)]
    more = [*layer, ("mul", "k", 1)]
    a = look(tmp_path, forward(100, *layer * 20), name="a.json")
    b = look(tmp_path, forward(100, *more * 20), name="b.json")
    out = console()
    out.file = io.StringIO()
    report.show_difference(out, a, b)
    text = out.file.getvalue()
    assert len(text.split("\n")) < 20
    assert re.search(r"^±  20 × +280 µs  300 µs  \+20\.0 µs$", text, re.M)
    assert re.search(r"^\+  │ mul +other +20 +20 µs$", text, re.M)
    assert re.search(r"^all  A 280\.0 µs · B 300\.0 µs · \+20\.0 µs$", text, re.M)
