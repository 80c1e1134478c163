"""Every question answers yes, no and not visible, by what the trace holds and nothing else.

The recordings answer what the post says of them; traces built to hold the opposite answer no; and
traces that do not tell are not made to.
"""

import pytest
from build import (
    FFMA,
    FLASH,
    NVJET,
    SOFTMAX,
    forward,
    launch,
    recording,
    region,
    story,
    trace,
    write,
)
from seen import look

from common.compare import claims
from common.compare.claims import Claim, Evidence, answer, not_visible, yes_if
from common.read.observe import observe
from common.read.trace import read

UNKNOWN = "somebody_s_own_kernel"


def recorded(*what) -> Evidence:
    return Evidence(observe(read(recording(*what))), {})


NAIVE = recorded("04_a", "eager")
IN_PLACE = recorded("04_b", "eager")
NAIVE_COMPILED = recorded("04_a", "compile")
MATH, EFFICIENT, FLASH_RUN, CUDNN, AUTO = (
    recorded("04_c", "eager", backend)
    for backend in ("math", "efficient", "flash", "cudnn", "auto")
)


@pytest.fixture
def built(tmp_path):
    """Evidence from forwards of the given steps; `others` by (script, variant)."""

    def build(*steps, others=None, number=1, call="cudaLaunchKernel", about=None, **kernel):
        events = [forward(100 + 900 * n, *steps, call=call, **kernel) for n in range(number)]
        gpu = any(name for _, name, _ in steps)
        made = trace(events, about=about, **({} if gpu else {"device": None}))
        return Evidence(observe(read(write(tmp_path, made))), others or {})

    return build


@pytest.fixture
def on_cpu(built):
    return built(("matmul bmm", "", 0), ("mul", "", 0))


def says(question, evidence) -> str:
    given = question(evidence)
    assert given.evidence, "an answer shows what it rests on"
    return given.verdict


# ── Steps and ops ─────────────────────────────────────────────────────────────────────────────────


def test_comes_from(built):
    question = claims.comes_from("copy", "aten::masked_fill")
    assert says(question, NAIVE) == "yes"
    assert "masked_fill › clone › copy_" in question(NAIVE).evidence
    assert says(question, IN_PLACE) == "no"  # no copy at all
    assert says(question, built(("contiguous clone copy_", "copy", 5))) == "no"
    mixed = built(("masked_fill clone copy_", "copy", 5), ("contiguous copy_", "copy", 5))
    assert says(question, mixed) == "no"  # all of it, not some
    assert "contiguous › copy_" in question(mixed).evidence
    assert says(question, built()) == "not visible"


def test_comes_from_on_the_cpu(built):
    question = claims.comes_from("copy", "aten::masked_fill")
    assert says(question, built(("masked_fill clone copy_", "", 0))) == "yes"
    assert says(question, built(("masked_fill_", "", 0))) == "no"


def test_has_no(built):
    question = claims.has_no("copy")
    assert says(question, IN_PLACE) == "yes"
    assert says(question, NAIVE_COMPILED) == "yes"
    assert says(question, NAIVE) == "no"
    assert "masked_fill › clone › copy_" in question(NAIVE).evidence
    assert says(question, built()) == "not visible"  # nothing was seen, so nothing is told


def test_count_of(built, on_cpu):
    for evidence, count in ((NAIVE, 5), (MATH, 20), (NAIVE_COMPILED, 3), (FLASH_RUN, 1)):
        assert says(claims.count_of("kernel", count), evidence) == "yes"
        assert says(claims.count_of("kernel", count + 1), evidence) == "no"
        assert f"{count} a forward" in claims.count_of("kernel", 9)(evidence).evidence
    assert says(claims.count_of("copy", 1), NAIVE) == "yes"
    assert says(claims.count_of("kernel", 0), on_cpu) == "not visible"


def test_count_of_asks_every_forward(tmp_path):
    events = forward(100, ("mul", "k", 5)), forward(900, ("mul", "k", 5), ("add", "k", 5))
    evidence = Evidence(observe(read(write(tmp_path, trace(*events)))), {})
    given = claims.count_of("kernel", 1)(evidence)
    assert (given.verdict, given.evidence) == ("no", "1 or 2 a forward")


def test_what_was_not_recorded_can_be_neither_counted_nor_said_not_to_be_there(tmp_path):
    """A launch of the forward has no GPU record."""
    events = forward(100, ("matmul bmm", NVJET, 5), ("mul", "k", 5), ("add", "copy", 3))
    for wanting, verdict in (([], "no"), ([launch(99, 105)], "not visible")):
        evidence = Evidence(observe(read(write(tmp_path, trace(events, wanting)))), {})
        for question in (
            claims.count_of("kernel", 3),
            claims.one_kernel("matmul"),
            claims.comes_from("softmax", "aten::softmax"),
        ):
            assert says(question, evidence) == verdict
        absent = claims.has_no("softmax")
        assert says(absent, evidence) == ("not visible" if wanting else "yes")
        # What was recorded is there.
        assert says(claims.has_no("mul"), evidence) == "no"
        assert says(claims.comes_from("mul", "aten::mul"), evidence) == "yes"


def test_runs_ops(built, on_cpu):
    mask = claims.runs_ops("aten::ones", "aten::tril", "aten::scalar_tensor", "aten::where")
    assert says(mask, MATH) == "yes"
    assert "aten::tril ×1" in mask(MATH).evidence
    assert says(mask, NAIVE) == "no"
    assert says(claims.runs_ops("aten::_safe_softmax"), MATH) == "yes"
    assert says(claims.runs_ops("aten::_safe_softmax"), NAIVE) == "no"
    assert says(claims.runs_ops("aten::mul"), on_cpu) == "yes"
    given = claims.runs_ops("aten::mul", "aten::ones")(on_cpu)
    assert (given.verdict, given.evidence) == ("no", "no aten::ones")


def test_runs_ops_asks_every_forward(tmp_path):
    events = forward(100, ("tril", "k", 5)), forward(900, ("mul", "k", 5))
    evidence = Evidence(observe(read(write(tmp_path, trace(*events)))), {})
    assert says(claims.runs_ops("aten::tril"), evidence) == "no"


def test_op_count():
    for evidence, transposes in ((EFFICIENT, 4), (FLASH_RUN, 4), (CUDNN, 0)):
        assert says(claims.op_count("aten::transpose", transposes), evidence) == "yes"
        assert says(claims.op_count("aten::transpose", transposes + 1), evidence) == "no"
    assert "4 aten::transpose" in claims.op_count("aten::transpose", 0)(FLASH_RUN).evidence


def test_one_kernel(built, on_cpu):
    question = claims.one_kernel("attention")
    for evidence in (EFFICIENT, FLASH_RUN, CUDNN, AUTO):  # cudnn's memset is no kernel
        assert says(question, evidence) == "yes"
    assert "FlashAttention-2 forward, bf16, head dim 64, causal" in question(FLASH_RUN).evidence
    assert says(question, MATH) == "no"
    assert question(MATH).evidence.startswith("20 kernels: cast")
    assert says(question, built(("mul", "k", 5))) == "no"  # one, but of another kind
    assert says(question, built(("f", FLASH, 5), ("g", FLASH, 5))) == "no"
    assert says(question, on_cpu) == "not visible"


def test_launched_by(built, on_cpu):
    question = claims.launched_by("attention", "cuLaunchKernelEx")
    assert says(question, CUDNN) == "yes"
    assert (says(question, FLASH_RUN), question(FLASH_RUN).evidence) == ("no", "cudaLaunchKernel")
    assert says(question, built(("f", FLASH, 5), call="cuLaunchKernelEx")) == "yes"
    assert says(question, on_cpu) == "not visible"
    given = question(NAIVE)  # it has a GPU, and no such kernel
    assert (given.verdict, given.evidence) == ("not visible", "no attention kernel")


def test_backend_ran(built):
    assert says(claims.backend_ran("math"), MATH) == "yes"
    assert says(claims.backend_ran("flash"), MATH) == "no"
    assert says(claims.backend_ran("efficient", "flash", "cudnn"), AUTO) == "yes"
    assert says(claims.backend_ran("efficient", "flash", "cudnn"), MATH) == "no"
    assert says(claims.backend_ran("cudnn"), recorded("04_c", "compile", "cudnn")) == "yes"
    assert says(claims.backend_ran("math"), NAIVE) == "not visible"
    # By the ops that ran, whatever was asked for.
    flash = "scaled_dot_product_attention _scaled_dot_product_flash_attention"
    fell_back = built((flash, FLASH, 5), about=story(variant="cudnn"))
    assert says(claims.backend_ran("cudnn"), fell_back) == "no"


# ── Kernels by their names ────────────────────────────────────────────────────────────────────────


def test_on_tensor_cores(built, on_cpu):
    question = claims.on_tensor_cores("matmul")
    assert says(question, NAIVE) == "yes"
    assert says(question, MATH) == "no"
    assert "CUDA cores" in question(MATH).evidence
    assert says(claims.on_tensor_cores("matmul", False), MATH) == "yes"
    assert says(claims.on_tensor_cores("matmul", False), NAIVE) == "no"
    assert says(question, built(("bmm", NVJET, 5), ("bmm", FFMA, 5))) == "no"  # all of them
    assert says(question, built(("bmm", NVJET, 5), ("bmm", UNKNOWN, 5))) == "not visible"
    assert says(question, built(("softmax", SOFTMAX, 5))) == "not visible"
    assert says(question, on_cpu) == "not visible"


def test_computed_in(built, on_cpu):
    question = claims.computed_in("matmul", "fp32")
    assert says(question, MATH) == "yes"
    given = claims.computed_in("attention", "fp32")(FLASH_RUN)
    assert (given.verdict, given.evidence) == ("no", "attention reads bf16")
    assert says(question, built(("bmm", UNKNOWN, 5))) == "not visible"
    assert says(question, built(("softmax", SOFTMAX, 5))) == "not visible"
    assert says(question, on_cpu) == "not visible"


def test_fused_together(built):
    words = ("mul", "mask", "softmax")
    assert says(claims.fused_together(*words), NAIVE_COMPILED) == "yes"
    assert says(claims.fused_together(*words), NAIVE) == "no"
    apart = built(("f", "triton_poi_fused_mul_0", 5), ("g", "triton_per_fused__softmax_1", 5))
    assert says(claims.fused_together(*words), apart) == "no"
    assert "triton_poi_fused_mul_0" in claims.fused_together(*words)(apart).evidence
    assert says(claims.fused_together("where", "softmax"), recorded("04_c", "compile", "math")) == (
        "yes"
    )


# ── Occupancy ─────────────────────────────────────────────────────────────────────────────────────


def footprint(built, registers, shared, threads=128, reported=0, **more):
    return built(("f", FLASH, 5), **{
        "registers per thread": registers, "shared memory": shared, "block": [threads, 1, 1],
        "est. achieved occupancy %": reported, **more,
    })  # fmt: skip


def test_residency_below(built, on_cpu):
    question = claims.residency_below("attention", 25)
    assert says(question, FLASH_RUN) == "yes"
    assert "8 of 64 warps an SM (12.5 %), limited by registers" in question(FLASH_RUN).evidence
    assert says(question, footprint(built, 32, 0)) == "no"  # all 64 warps fit
    assert says(question, footprint(built, None, 0)) == "not visible"
    assert says(question, NAIVE) == "not visible"
    assert says(question, on_cpu) == "not visible"


def test_residency_below_is_told_of_all_or_not_at_all(tmp_path):
    """One kernel without a footprint leaves open what all of them do."""
    events = forward(100, ("f", FLASH, 5), ("f", FLASH, 5))
    del events[-1]["args"]["registers per thread"]
    evidence = Evidence(observe(read(write(tmp_path, trace(events)))), {})
    assert says(claims.residency_below("attention", 101), evidence) == "not visible"


def test_reported_zero(built, on_cpu):
    question = claims.reported_zero("attention")
    assert says(question, CUDNN) == "yes"
    assert "12 of 64 warps" in question(CUDNN).evidence
    assert says(question, FLASH_RUN) == "no"
    assert "the profiler says 13 %" in question(FLASH_RUN).evidence
    assert says(question, footprint(built, 168, 0, reported=None)) == "not visible"
    assert says(question, footprint(built, None, 0)) == "not visible"  # are warps resident?
    assert "unknown registers" in question(footprint(built, None, 0, reported=7)).evidence
    assert says(question, on_cpu) == "not visible"


def test_reported_zero_is_told_of_all(tmp_path):
    events = forward(100, ("f", FLASH, 5), ("f", FLASH, 5))
    events[-1]["args"]["est. achieved occupancy %"] = 0
    evidence = Evidence(observe(read(write(tmp_path, trace(events)))), {})
    assert says(claims.reported_zero("attention"), evidence) == "no"


def test_zero_explained_by_shared_memory(built):
    question = claims.zero_explained_by_shared_memory("attention")
    assert says(question, CUDNN) == "yes"
    assert "134,144 B" in question(CUDNN).evidence
    # A FlashAttention-2 of head dim 128: no driver call, and 0 all the same.
    assert says(question, footprint(built, 255, 65536)) == "yes"
    assert says(question, footprint(built, 168, 49152, grid=[1, 1, 1])) == "no"  # a tiny grid
    assert says(question, footprint(built, 59, 16384)) == "no"
    assert says(question, FLASH_RUN) == "not visible"  # it does not read 0


# ── Against other recordings ──────────────────────────────────────────────────────────────────────


def test_fewer_ops_than(built):
    here = ("04_a_naive_attention", "aten::masked_fill_", "aten::masked_fill")
    question = claims.fewer_ops_than(*here)
    beside = {("04_a_naive_attention", ""): NAIVE.seen}
    assert says(question, Evidence(IN_PLACE.seen, beside)) == "yes"
    assert says(question, IN_PLACE) == "not visible"
    assert "04_a_naive_attention" in question(IN_PLACE).evidence  # what to run
    assert says(question, Evidence(NAIVE.seen, {("04_b", ""): IN_PLACE.seen})) == "not visible"
    other = {("04_a_naive_attention", ""): MATH.seen}  # it masks in another way
    assert says(question, Evidence(IN_PLACE.seen, other)) == "not visible"
    same = claims.fewer_ops_than("04_a_naive_attention", "aten::mul", "aten::mul")
    assert says(same, Evidence(NAIVE.seen, beside)) == "no"


def test_ops_inside_are_the_op_and_what_it_calls(built):
    seen = built(("masked_fill clone copy_", "copy", 5), ("mul", "k", 5)).seen
    assert claims.ops_inside(seen, "aten::masked_fill") == [
        "aten::masked_fill", "aten::clone", "aten::copy_",
    ]  # fmt: skip
    assert claims.ops_inside(seen, "aten::mul") == ["aten::mul"]
    assert claims.ops_inside(seen, "aten::add") == []


def with_peaks(built, mine, theirs):
    other = built(("mul", "k", 5), about=story(peak_bytes=theirs)).seen
    return built(("mul", "k", 5), about=story(peak_bytes=mine), others={("other", ""): other})


def test_peak_below(built):
    question = claims.peak_below("other")
    assert says(question, with_peaks(built, 1 << 20, 2 << 20)) == "yes"
    given = question(with_peaks(built, 2 << 20, 2 << 20))
    assert (given.verdict, given.evidence) == ("no", "+2 MiB against +2 MiB")
    assert says(question, with_peaks(built, 3 << 20, 2 << 20)) == "no"
    for unknown in (with_peaks(built, None, 1), with_peaks(built, 1, None), NAIVE):
        assert says(question, unknown) == "not visible"
    # A peak of 0 is known, and below.
    assert says(question, with_peaks(built, 0, 1)) == "yes"


@pytest.mark.parametrize(("dtype", "size"), [("bf16", 2), ("fp16", 2), ("fp32", 4)])
def test_score_matrix(built, dtype, size):
    """Of [2, 4, 256, 64] the scores are 2 · 4 · 256² numbers."""
    scores = 2 * 4 * 256 * 256 * size
    for peak, stored in ((scores, True), (2 * scores, True), (scores - 1, False), (0, False)):
        evidence = built(("mul", "k", 5), about=story(peak_bytes=peak, dtype=dtype))
        assert says(claims.score_matrix_in_memory, evidence) == ("yes" if stored else "no")
        assert says(claims.no_score_matrix, evidence) == ("no" if stored else "yes")
    for unknown in (story(peak_bytes=None), None):
        evidence = built(("mul", "k", 5), about=unknown)
        assert says(claims.score_matrix_in_memory, evidence) == "not visible"
        assert says(claims.no_score_matrix, evidence) == "not visible"


def test_score_matrix_of_the_recordings():
    for evidence in (NAIVE, IN_PLACE, MATH, NAIVE_COMPILED):
        assert says(claims.score_matrix_in_memory, evidence) == "yes"
    for evidence in (EFFICIENT, FLASH_RUN, CUDNN, AUTO):
        assert says(claims.no_score_matrix, evidence) == "yes"


def forwards_of(tmp_path, times, variant):
    """A recording whose forwards took so many µs on the CPU."""
    events = [region(1000 * n, time) for n, time in enumerate(times)]
    made = trace(events, about=story(variant=variant))
    return observe(read(write(tmp_path, made, f"{variant}.json")))


def test_at_memory_rate(built):
    """Scores of 4 MiB, read and written, in so many µs; the memory moves 4.8 TB/s at most."""

    def asked(rates, **more):
        steps = [
            (kind, UNKNOWN, 2 * 2**22 / rate / 1e6)
            for kind, rate in zip(("mul", "softmax"), rates, strict=True)
        ]
        about = story(shape=[1, 8, 512, 64], **more)
        return claims.at_memory_rate("mul", "softmax")(built(*steps, about=about))

    slow = asked((4.0, 2.4))
    assert slow.verdict == "no"
    assert slow.evidence == "mul 4.00, softmax 2.40 TB/s: 83 %, 50 % of the data sheet's 4.8"
    assert asked((4.0, 4.0)).verdict == "yes"
    unknown = asked((4.0, 2.4), device={"type": "cuda", "name": "NVIDIA X"})
    assert unknown.verdict == "not visible" and "mul 4.00, softmax 2.40 TB/s" in unknown.evidence


def test_at_memory_rate_wants_one_step_of_each():
    assert claims.at_memory_rate("mul", "mask", "softmax")(NAIVE_COMPILED).verdict == "not visible"


# ── Who is asked ──────────────────────────────────────────────────────────────────────────────────


def refuses(evidence):
    raise AssertionError("must not be asked")


def verdicts(seen, *claims):
    return [given.verdict for _, given in answer(claims, Evidence(seen, {}))]


def test_what_only_a_gpu_can_answer_is_not_asked_of_a_cpu(tmp_path):
    cpu = look(tmp_path, forward(100, ("mul", "", 0)), device=None)
    anywhere = Claim("s", lambda evidence: yes_if(True, "seen"), of_gpu=False)
    assert verdicts(cpu, Claim("s", refuses), anywhere) == ["not visible", "yes"]


def test_nothing_is_asked_of_a_trace_without_a_finished_forward(tmp_path):
    seen = look(tmp_path, region(0, -1), forward(100, ("mul", "k", 5), label="other")[1:])
    assert verdicts(seen, Claim("s", refuses), Claim("s", refuses, of_gpu=False)) == [
        "not visible",
        "not visible",
    ]


def test_answers_carry_their_evidence():
    assert (yes_if([], "x").verdict, yes_if([0], "x").verdict) == ("no", "yes")
    assert (not_visible("why").verdict, not_visible("why").evidence) == ("not visible", "why")
