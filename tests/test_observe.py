"""The joins, against plain loops over the shipped recordings and against small built traces."""

import copy as copies
import gzip
import json
from decimal import Decimal

import pytest
from build import (
    KERNELS,
    LABEL,
    NVJET,
    ROOT,
    START,
    copy,
    forward,
    kernel,
    launch,
    load,
    memset,
    op,
    recording,
    recordings,
    region,
    story,
    trace,
    truth,
    write,
)

from common.cli import UserError
from common.compare.compared import compare
from common.read.kinds import VOCABULARY
from common.read.observe import observe
from common.read.trace import read
from common.show.as_json import as_json
from common.show.warnings import warnings
from common.show.words import sums

ALL = pytest.mark.parametrize(("script", "mode", "backend"), recordings())
SORTS = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "memset"}


def look(tmp_path, *events, region=None, **more):
    return observe(read(write(tmp_path, trace(*events, **more))), region)


def names(seen, index=0):
    return [step.name for step in seen.forwards[index].steps]


def aten(*words):
    return tuple(f"aten::{word}" for word in words)


# ── The shipped recordings ────────────────────────────────────────────────────────────────────────


@ALL
def test_recording_joins_as_plain_loops_do(script, mode, backend):
    """Every GPU event of every forward, in order, with its launch call, ops, time and footprint."""
    path = recording(script, mode, backend)
    seen, expected = observe(read(path)), truth(path)
    assert len(seen.forwards) == len(expected) == 3
    for found, wanted in zip(seen.forwards, expected, strict=True):
        assert [
            (s.name, s.sort, s.call, list(s.path), s.gpu.duration, s.gpu.registers, s.gpu.bytes)
            for s in found.steps
        ] == [
            (
                work["event"]["name"],
                SORTS[work["event"]["cat"]],
                work["call"],
                work["ops"],
                int(work["event"]["dur"] * 1000),
                work["event"]["args"].get("registers per thread"),
                work["event"]["args"].get("bytes"),
            )
            for work in wanted["work"]
        ]
        assert found.cpu_ns == int(wanted["dur"] * 1000)
        assert [o.name for o in found.ops] == wanted["ops"]
        assert found.gpu_ns == sum(int(w["event"]["dur"] * 1000) for w in wanted["work"])
        assert found.launches == sum("Launch" in w["call"] for w in wanted["work"])
    assert seen.alike
    assert not (seen.leaked or seen.lost or seen.incredible or seen.shared or seen.unfinished)


@pytest.mark.parametrize(
    ("what", "counts"),
    [
        (("04_a", "eager"), (5, 1, 1)),
        (("04_b", "eager"), (5, 0, 1)),
        (("04_a", "compile"), (3, 0, 1)),
        (("04_b", "compile"), (3, 0, 1)),
        (("04_c", "eager", "math"), (20, 0, 0)),
        (("04_c", "eager", "efficient"), (1, 0, 0)),
        (("04_c", "eager", "flash"), (1, 0, 0)),
        (("04_c", "eager", "cudnn"), (1, 0, 1)),
        (("04_c", "eager", "auto"), (1, 0, 1)),
        (("04_c", "compile", "efficient"), (1, 0, 0)),
        (("04_c", "compile", "flash"), (1, 0, 0)),
        (("04_c", "compile", "cudnn"), (1, 0, 1)),
    ],
)
def test_kernels_copies_memsets_of_a_forward(what, counts):
    seen = observe(read(recording(*what)))
    for found in seen.forwards:
        assert tuple(map(found.count, ("kernel", "copy", "memset"))) == counts


NAIVE = "memset matmul mul copy mask softmax matmul"
KINDS = {
    ("04_a", "eager", ""): NAIVE,
    ("04_b", "eager", ""): NAIVE.replace(" copy", ""),
    ("04_a", "compile", ""): "memset matmul fused matmul",
    ("04_b", "compile", ""): "memset matmul fused matmul",
    # q, k, v to fp32; q scaled; the mask: ones, tril, 0, −inf, where; k scaled; the scores; the
    # mask added; the safe softmax: softmax, row all −inf?, 0, where; the weights to 16 bit (for
    # nobody); the product; the output to 16 bit.
    ("04_c", "eager", "math"): "cast cast cast mul fill triu fill fill where mul matmul add "
    "softmax compare reduce fill where cast matmul cast",
    ("04_c", "compile", "math"): "fused fused matmul fused cast matmul cast",
} | {
    ("04_c", mode, backend): ("memset " if backend in ("auto", "cudnn") else "") + "attention"
    for mode in ("eager", "compile")
    for backend in ("auto", "efficient", "flash", "cudnn")
} | {
    ("04_d", mode, kernel): "attention" for mode in ("eager", "compile") for kernel in KERNELS
}  # fmt: skip


@ALL
def test_kind_of_every_step(script, mode, backend):
    seen = observe(read(recording(script, mode, backend)))
    kinds = [step.kind for step in seen.steps]
    assert kinds == KINDS[script, mode, backend].split()
    assert set(kinds) <= set(VOCABULARY)


@ALL
def test_backend_is_read_from_the_ops(script, mode, backend):
    ran = {"auto": "cudnn", "": None}.get(backend, backend)
    if script == "04_d" or (mode, backend) == ("compile", "math"):
        ran = None  # nobody's backend; compiled into the graph, no op of SDPA is left of math
    assert observe(read(recording(script, mode, backend))).backend == ran


def test_mean_and_spread_over_the_forwards():
    seen, expected = observe(read(recording("04_a"))), truth(recording("04_a"))
    for index, step in enumerate(seen.steps):
        times = [forward["work"][index]["event"]["dur"] for forward in expected]
        assert step.ns == pytest.approx(float(1000 * sum(times) / 3))
    cpu = [forward["dur"] * 1000 for forward in expected]
    mean = sum(cpu) / 3
    spread = (sum((time - mean) ** 2 for time in cpu) / 2) ** Decimal("0.5")
    assert seen.cpu_ns == pytest.approx(float(mean))
    assert seen.cpu_spread_ns == pytest.approx(float(spread))


def test_residency_comes_from_the_footprint():
    """The post's own sum: 255 registers × 128 threads leave room for 2 blocks of 4 warps."""
    [step] = observe(read(recording("04_c", "eager", "flash"))).steps
    assert (step.gpu.registers, step.gpu.block) == (255, (128, 1, 1))
    assert (step.residency.warps, step.residency.max_warps) == (8, 64)
    assert step.residency.limits == ("registers",)
    *_, cudnn = observe(read(recording("04_c", "eager", "cudnn"))).steps
    assert (cudnn.gpu.reported_occupancy, cudnn.residency.warps) == (0, 12)
    assert cudnn.zero_reason == "shared memory over default limit"


# ── By correlation, on the region's thread ────────────────────────────────────────────────────────


def test_joined_by_correlation_and_not_by_time(tmp_path):
    """The first forward's kernel runs while the second is on the CPU, and the other way round."""
    seen = look(
        tmp_path,
        region(0, 100), launch(1, 10), region(200, 100), launch(2, 210),
        kernel(1, 220, 10, "first"), kernel(2, 50, 10, "second"), kernel(3, 30, 5, "nobody's"),
    )  # fmt: skip
    assert (names(seen, 0), names(seen, 1)) == (["first"], ["second"])
    assert [event.name for event in seen.leaked] == ["nobody's"]


def test_external_ids_play_no_part(tmp_path):
    """An External id equal to another launch's correlation is another number space."""
    seen = look(
        tmp_path,
        region(0, 100), launch(1, 10), region(200, 100), launch(2, 210),
        kernel(1, 300, 10, "a", **{"External id": 2}),
        kernel(2, 320, 10, "b", **{"External id": 1}),
    )  # fmt: skip
    assert (names(seen, 0), names(seen, 1)) == (["a"], ["b"])


def test_flow_arrows_play_no_part(tmp_path):
    arrows = [{"ph": ph, "id": 9, "cat": "ac2g", "name": "ac2g", "pid": 0, "tid": 7, "ts": 12}
              for ph in "sf"]  # fmt: skip
    seen = look(tmp_path, region(0, 100), launch(1, 10), kernel(1, 50, 5, "k"), arrows)
    assert names(seen) == ["k"]


def test_other_threads_do_not_count(tmp_path):
    """A data loader launches at the same time, and an op of its own stands around it."""
    seen = look(
        tmp_path,
        region(0, 100), op("aten::mul", 5, 50), launch(1, 10),
        op("aten::copy_", 5, 80, thread=99), launch(2, 12, thread=99),
        kernel(1, 200, 10, "ours"), kernel(2, 220, 10, "theirs"),
    )  # fmt: skip
    assert names(seen) == ["ours"]
    assert seen.steps[0].path == ("aten::mul",)
    assert [o.name for o in seen.ops] == ["aten::mul"]
    assert not seen.leaked  # it has its launch; it is just not ours


def test_the_same_region_on_two_threads(tmp_path):
    seen = look(
        tmp_path,
        region(0, 100, thread=1), launch(1, 10, thread=1),
        region(5, 100, thread=2), launch(2, 11, thread=2),
        kernel(1, 220, 5, "a"), kernel(2, 200, 5, "b"),
    )  # fmt: skip
    assert (names(seen, 0), names(seen, 1)) == (["a"], ["b"])


def test_steps_stand_in_the_gpu_s_order_whatever_the_file_s(tmp_path):
    events = [
        region(0, 100), launch(3, 30), launch(1, 10), launch(2, 20),
        kernel(2, 300, 5, "second"), kernel(3, 400, 5, "third"), kernel(1, 200, 5, "first"),
    ]  # fmt: skip
    for order in (events, events[::-1]):
        assert names(look(tmp_path, order)) == ["first", "second", "third"]


def test_forwards_stand_in_the_order_of_time(tmp_path):
    late, early = forward(5000, ("mul", "late", 1)), forward(100, ("mul", "early", 1))
    seen = look(tmp_path, late, early)
    assert (names(seen, 0), names(seen, 1)) == (["early"], ["late"])


@pytest.mark.parametrize(
    "call",
    ["cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx",
     "hipLaunchKernel", "hipModuleLaunchKernel", "cudaLaunchCooperativeKernel"],
)  # fmt: skip
def test_every_way_to_launch_counts(tmp_path, call):
    seen = look(tmp_path, forward(100, ("mul", "k", 5), call=call))
    assert (names(seen), seen.forwards[0].launches, seen.steps[0].call) == (["k"], 1, call)


def test_calls_that_launch_no_kernel_are_no_launches(tmp_path):
    seen = look(
        tmp_path,
        region(0, 100), launch(1, 10), launch(2, 20, "cudaMemcpyAsync"),
        launch(3, 30, "cudaMemsetAsync"), launch(4, 40, "cudaStreamSynchronize"),
        launch(5, 50, "cudaLaunchHostFunc"),
        kernel(1, 200, 5), copy(2, 210, 5), memset(3, 220, 5),
    )  # fmt: skip
    assert seen.forwards[0].launches == 1
    assert [seen.forwards[0].count(sort) for sort in ("kernel", "copy", "memset")] == [1, 1, 1]
    assert not seen.lost


def test_annotations_on_the_gpu_lane_are_no_work(tmp_path):
    drawn = [
        kernel(1, 200, 50, LABEL) | {"cat": cat}
        for cat in ("gpu_user_annotation", "cuda_sync", "overhead", "python_function")
    ]
    seen = look(tmp_path, region(0, 100), launch(1, 10), kernel(1, 200, 5, "k"), drawn)
    assert (names(seen), seen.gpu_ns, seen.leaked) == (["k"], 5000, [])


# ── Ops ───────────────────────────────────────────────────────────────────────────────────────────


def test_chain_of_ops_from_the_region_to_the_launch(tmp_path):
    seen = look(
        tmp_path,
        op("before", -50, 20), region(0, 100), op("a", 5, 60), op("b", 10, 10), op("c", 30, 20),
        launch(1, 35), op("d", 70, 20), launch(2, 75), launch(3, 95), op("after", 110, 20),
        kernel(1, 200, 5), kernel(2, 210, 5), kernel(3, 220, 5),
    )  # fmt: skip
    assert [step.path for step in seen.steps] == [("a", "c"), ("d",), ()]
    assert [(o.name, o.depth) for o in seen.ops] == [("a", 0), ("b", 1), ("c", 1), ("d", 0)]
    assert seen.steps[0].under("a") and not seen.steps[0].under("b")


def test_parents_that_start_with_their_children(tmp_path):
    """In whole microseconds they often do; the longer one is the parent, in whichever order."""
    ops = [op("outer", 10, 30), op("inner", 10, 20)]
    for order in (ops, ops[::-1]):
        seen = look(tmp_path, region(0, 100), order, launch(1, 15), kernel(1, 200, 5))
        assert seen.steps[0].path == ("outer", "inner")


def test_neighbours_that_touch_are_no_relatives(tmp_path):
    """One op starts, and launches, in the microsecond in which the other ends."""
    seen = look(
        tmp_path,
        region(0, 100), op("first", 10, 10), op("second", 20, 10), launch(1, 20),
        kernel(1, 200, 5),
    )  # fmt: skip
    assert seen.steps[0].path == ("second",)
    assert [o.depth for o in seen.ops] == [0, 0]


def test_forwards_that_touch_share_nothing(tmp_path):
    seen = look(
        tmp_path,
        region(0, 100), region(100, 100), op("x", 100, 20), launch(1, 100), kernel(1, 300, 5, "k"),
    )  # fmt: skip
    assert [len(f.steps) for f in seen.forwards] == [0, 1]
    assert [len(f.ops) for f in seen.forwards] == [0, 1]


@pytest.mark.parametrize("duration", [0, -1])
def test_an_op_too_short_to_measure_holds_nothing(tmp_path, duration):
    """Older versions write whole microseconds: a view takes 0 of them."""
    seen = look(
        tmp_path,
        region(0, 100), op("aten::view", 10, duration), op("aten::mul", 20, 20), launch(1, 25),
        kernel(1, 200, 5),
    )  # fmt: skip
    assert seen.steps[0].path == ("aten::mul",)
    assert [o.name for o in seen.ops] == ["aten::view", "aten::mul"]


@pytest.mark.parametrize(
    ("ops", "kernel_name", "kind"),
    [
        ("matmul bmm", NVJET, "matmul"),
        ("linear addmm", "unheard_of_kernel", "matmul"),
        ("masked_fill masked_fill_", "unheard_of_kernel", "mask"),
        ("masked_fill clone copy_", "copy", "copy"),
        ("to _to_copy copy_", "unheard_of_kernel", "cast"),
        ("to _to_copy copy_", "copy", "copy"),  # bytes, moved as they are
        ("softmax _softmax", "unheard_of_kernel", "softmax"),
        ("where scalar_tensor fill_", "unheard_of_kernel", "fill"),
        ("contiguous clone copy_", "unheard_of_kernel", "copy"),
        ("some_op", "unheard_of_kernel", "other"),
        ("some_op", "copy", "copy"),
        ("matmul bmm", "memset", "memset"),
        # The kernel decides where its name is plain: a library may run it under any op.
        ("mylib::forward", NVJET, "matmul"),
        ("mylib::forward mul", "triton_poi_fused_add_mul_0", "fused"),
        ("mylib::forward", "triton_poi_fused__to_copy_1", "cast"),
        ("mylib::forward", "triton_red_fused__safe_softmax_2", "softmax"),
        ("mul", "fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "attention"),
    ],
)
def test_kind_from_op_and_kernel_together(tmp_path, ops, kernel_name, kind):
    assert look(tmp_path, forward(100, (ops, kernel_name, 5))).steps[0].kind == kind


# ── Times ─────────────────────────────────────────────────────────────────────────────────────────


def test_busy_time_counts_every_moment_once(tmp_path):
    """10–40, 20–30 inside it, 35–50 over its end, 60–70 apart, and another GPU at 10–20."""
    seen = look(
        tmp_path,
        region(0, 9), [launch(n, n) for n in range(1, 6)],
        kernel(1, 10, 30), kernel(2, 20, 10, stream=8), kernel(3, 35, 15, stream=9),
        kernel(4, 60, 10), kernel(5, 10, 10, device=1),
    )  # fmt: skip
    assert seen.gpu_busy_ns == (40 + 10 + 10) * 1000
    assert seen.gpu_ns == seen.gpu_sum_ns == (30 + 10 + 15 + 10 + 10) * 1000


def test_busy_time_is_the_forwards_alone(tmp_path):
    seen = look(
        tmp_path, forward(100, ("mul", "k", 5)), kernel(9, 500, 400), forward(900, ("mul", "k", 5))
    )
    assert (seen.gpu_busy_ns, seen.gpu_sum_ns, seen.gpu_ns) == (10_000, 10_000, 5_000)


def test_one_unknown_time_makes_sums_unknown_and_never_0(tmp_path):
    lost = forward(900, ("mul", "k", 5), ("add", "j", 5))
    lost[-1] |= {"ts": 0, "dur": 0}
    seen = look(tmp_path, forward(100, ("mul", "k", 5), ("add", "j", 7)), lost)
    assert (seen.gpu_sum_ns, seen.gpu_busy_ns) == (None, None)
    assert seen.gpu_ns == 12_000  # of the forward whose times are known
    # On its stream it ran behind what was launched before it: the forwards are alike.
    assert seen.alike
    assert [(step.name, step.ns) for step in seen.steps] == [("k", 5000), ("j", None)]


def test_a_duration_beyond_the_next_kernel_is_not_believed(tmp_path):
    seen = look(
        tmp_path, region(0, 9), launch(1, 1), launch(2, 2), launch(3, 3),
        kernel(1, 10, 5, "a"), kernel(2, 20, 1_600_000, "b"), kernel(3, 30, 5, "c"),
    )  # fmt: skip
    assert [event.name for event in seen.incredible] == ["b"]
    assert [step.ns for step in seen.steps] == [5000, None, 5000]
    assert (seen.gpu_ns, seen.gpu_sum_ns, seen.gpu_busy_ns) == (None, None, None)


@pytest.mark.parametrize("second", [{"stream": 8}, {"device": 1}])
def test_other_lanes_may_run_longer(tmp_path, second):
    seen = look(tmp_path, region(0, 9), launch(1, 1), launch(2, 2),
                kernel(1, 10, 100), kernel(2, 20, 5, **second))  # fmt: skip
    assert not seen.incredible


def test_a_kernel_may_start_before_the_last_one_ends(tmp_path):
    """Programmatic dependent launch: a short overlap on one stream."""
    seen = look(tmp_path, region(0, 9), launch(1, 1), launch(2, 2), kernel(1, 10, 90),
                kernel(2, 95, 60))  # fmt: skip
    assert (seen.incredible, seen.gpu_ns, seen.gpu_busy_ns) == ([], 150_000, 145_000)


# ── Forwards that differ, leak or lose ────────────────────────────────────────────────────────────


def test_alike_means_kernel_by_kernel_and_op_by_op(tmp_path):
    one = ("mul", "k", 5), ("add", "j", 5)
    assert look(tmp_path, forward(100, *one), forward(900, *one)).alike
    for other in ([("mul", "k", 5)], one[::-1], [("mul", "k", 5), ("sub", "j", 5)],
                  [("mul", "k", 5), ("add", "i", 5)]):  # fmt: skip
        seen = look(tmp_path, forward(100, *one), forward(900, *other))
        assert not seen.alike
        assert [step.ns for step in seen.steps] == [5000, 5000]  # the first one's own


def test_leaked_work_is_left_out(tmp_path):
    """Work of the warm-up, still running as the recording starts, before and inside a forward."""
    seen = look(
        tmp_path,
        kernel(1, 50, 40, "warm-up"), copy(2, 95, 5), forward(100, ("mul", "k", 5), first=10),
        kernel(3, 150, 30, "warm-up"), kernel(None, 160, 5, "nobody's"),
    )  # fmt: skip
    assert names(seen) == ["k"]
    assert seen.gpu_ns == 5000
    assert len(seen.leaked) == 4 and seen.unlinked_kernels == 3


def test_a_launch_without_a_record_is_lost(tmp_path):
    seen = look(tmp_path, forward(100, ("mul", "k", 5)), region(500, 50), launch(77, 510))
    assert [call.correlation for call in seen.lost] == [77]
    assert [f.count("kernel") for f in seen.forwards] == [1, 0]
    assert [f.lost for f in seen.forwards] == [0, 1]
    assert sums(seen).startswith("at least 0 to 1 kernels a forward (2 forwards, not alike)")
    assert "GPU at least 5 µs" in sums(seen)
    assert as_json(compare(seen))["lost_launches"] == 1
    assert [f.launches for f in seen.forwards] == [1, 1]


@pytest.mark.parametrize("backwards", [False, True])
def test_two_kernels_for_one_launch_and_none_for_the_next(tmp_path, backwards):
    events = [
        region(0, 50), launch(1, 10), region(100, 50), launch(2, 110),
        kernel(1, 20, 5, "a"), kernel(1, 120, 5, "b"),
    ]  # fmt: skip
    seen = look(tmp_path, events[::-1] if backwards else events)
    assert (names(seen, 0), names(seen, 1)) == (["a"], ["b"])
    assert [(call.correlation, count) for call, count in seen.shared] == [(1, 2)]
    assert [call.correlation for call in seen.lost] == [2]


@pytest.mark.parametrize("backwards", [False, True])
def test_mixed_up_ids_are_joined_in_order_of_time(tmp_path, backwards):
    """Three launches, and all three kernels carry the id of the first."""
    events = [
        [region(100 * n, 50), launch(n, 100 * n + 10), kernel(1, 100 * n + 20, 5, f"k{n}")]
        for n in (1, 2, 3)
    ]
    flat = [event for three in events for event in three]
    seen = look(tmp_path, flat[::-1] if backwards else flat)
    assert [names(seen, index) for index in range(3)] == [["k1"], ["k2"], ["k3"]]


def test_two_kernels_for_one_launch_and_no_launch_free(tmp_path):
    """Nobody else can have launched it: it stays where its id puts it, and is spoken of."""
    seen = look(tmp_path, region(0, 50), launch(1, 10), kernel(1, 20, 5, "a"),
                kernel(1, 30, 5, "b"))  # fmt: skip
    assert names(seen) == ["a", "b"]
    assert len(seen.shared) == 1


def test_a_graph_launch_starts_many_kernels(tmp_path):
    seen = look(
        tmp_path, region(0, 50), launch(1, 10, "cudaGraphLaunch"),
        kernel(1, 30, 5, "b"), kernel(1, 20, 5, "a"), memset(1, 15, 1), kernel(1, 40, 5, "c"),
    )  # fmt: skip
    assert names(seen) == ["Memset (Device)", "a", "b", "c"]
    assert (seen.shared, seen.lost) == ([], [])
    assert seen.forwards[0].launches == 1


def test_unfinished_forwards_are_counted_and_left_out(tmp_path):
    for duration in (-1, 0):
        seen = look(tmp_path, forward(100, ("mul", "k", 5)), region(500, duration), launch(9, 510),
                    kernel(9, 600, 5))  # fmt: skip
        assert (len(seen.forwards), seen.unfinished, seen.gpu_ns) == (1, 1, 5000)
    seen = look(tmp_path, region(0, -1))
    assert (seen.forwards, seen.steps, seen.cpu_ns, seen.gpu_ns) == ((), (), None, None)


def test_a_forward_inside_another_label(tmp_path):
    """Labels nest: each is asked for by its name, the inner one's work is the outer one's too."""
    events = [
        region(0, 100, "model"), launch(1, 5), region(10, 50, "attention"), launch(2, 20),
        region(70, 20, "mlp"), launch(3, 75),
    ] + [kernel(n, 100 + n, 1, f"k{n}") for n in (1, 2, 3)]  # fmt: skip
    for label, expected in (
        ("model", ["k1", "k2", "k3"]),
        ("attention", ["k2"]),
        ("mlp", ["k3"]),
    ):
        seen = look(tmp_path, events, region=label)
        assert names(seen) == expected
        assert seen.region == label


# ── Several processes ─────────────────────────────────────────────────────────────────────────────

TITLES = [{"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "ts": 0, "args": {"name": "x"}}]


def rank(number, *events, gpu=None, pid=None):
    """The events as rank `number` writes them, on its GPU; correlation ids as they are."""
    gpu, pid = number if gpu is None else gpu, pid or 1000 + number
    whole = copies.deepcopy(trace(*events)["traceEvents"][1:])
    for event in whole:
        on_gpu = event["cat"] in SORTS
        event["pid"] = gpu if on_gpu else pid
        if on_gpu:
            event["args"]["device"] = gpu
            event["name"] += f" of {number}"
    return whole


def tagged(number, events):
    """As SGLang puts ranks together."""
    return [event | {"pid": f"[TP{number:02}] {event['pid']}"} for event in events]


def shifted(number, events):
    """As TraceLens does: process and correlation ids are moved apart."""
    moved = copies.deepcopy(events)
    for event in moved:
        if isinstance(event["pid"], int):
            event["pid"] += number * 10**5
        if "correlation" in event.get("args", {}):
            event["args"]["correlation"] += number * 10**8
    return moved


@pytest.mark.parametrize("way", [lambda number, events: events, tagged, shifted])
@pytest.mark.parametrize("gpus", [(0, 1), (0, 0)])  # each may see but one GPU, and call it 0
@pytest.mark.parametrize("titles", ["first", "last"])
def test_ranks_in_one_file_keep_apart(tmp_path, way, gpus, titles):
    """They ran the same program: their correlation ids are the same."""
    one = forward(100, ("mul", "k", 5), ("add", "copy", 4)), forward(300, ("sub", "j", 3))
    file = []
    for number, gpu in enumerate(gpus):
        events = way(number, rank(number, one, gpu=gpu))
        file += [TITLES, events] if titles == "first" else [events, TITLES]
    seen = look(tmp_path, file)
    assert [names(seen, index) for index in range(4)] == [
        [f"k of {number}", f"Memcpy DtoD (Device -> Device) of {number}"] for number in (0, 1)
    ] + [[f"j of {number}"] for number in (0, 1)]
    assert [f.gpu_ns for f in seen.forwards] == [9000, 9000, 3000, 3000]
    assert not (seen.undecided or seen.leaked or seen.lost or seen.shared or seen.incredible)
    assert (seen.processes, seen.gpu_busy_ns) == (2, 24_000)
    assert as_json(compare(seen))["processes"] == 2
    assert "2 processes in one file; what all of them did is counted" in warnings(seen)


@pytest.mark.parametrize("pid", [575, 576])  # 575 is the first one's own
@pytest.mark.parametrize("way", [lambda number, events: events, tagged, shifted])
def test_two_recordings_in_one_file(tmp_path, way, pid):
    """Real ones, of naive and in-place attention. Under a process id of its own, the second one is
    given correlation ids that the first one has too."""
    paths = recording("04_a"), recording("04_b")
    file, *others = (json.loads(gzip.decompress(path.read_bytes())) for path in paths)
    events = way(0, file["traceEvents"])
    for other in others:
        for event in other["traceEvents"]:
            args = event.get("args", {})
            if event["pid"] == 575:
                event["pid"] = pid
            if "correlation" in args and pid != 575:
                args["correlation"] -= 876
        events += way(1, other["traceEvents"])
    seen = observe(read(write(tmp_path, file | {"traceEvents": events})))
    expected = [forward for path in paths for forward in truth(path)]
    assert [names(seen, index) for index in range(6)] == [
        [work["event"]["name"] for work in forward["work"]] for forward in expected
    ]
    assert [f.gpu_ns for f in seen.forwards] == [
        sum(int(work["event"]["dur"] * 1000) for work in forward["work"]) for forward in expected
    ]
    assert not (seen.undecided or seen.leaked or seen.lost or seen.shared)
    assert seen.processes == len({event["pid"] for event in events if event.get("cat") == "cpu_op"})


def test_ranks_may_start_with_the_gpu_s_events(tmp_path):
    """What stands behind the titles is of the process whose CPU events come next."""
    early = kernel(7, 20, 5, "k"), [region(0, 50), launch(7, 10)]
    for titles in (TITLES, []):  # before the first part there may be none
        seen = look(tmp_path, titles, rank(0, early), TITLES, rank(1, early))
        assert (names(seen, 0), names(seen, 1)) == (["k of 0"], ["k of 1"])
        assert not (seen.undecided or seen.leaked)


def test_a_part_s_first_events_are_of_its_gpu(tmp_path):
    one = kernel(7, 20, 5), [region(0, 50), launch(7, 10), launch(8, 15)], kernel(8, 30, 5)
    seen = look(tmp_path, TITLES, rank(0, one), TITLES, rank(1, one, gpu=0))
    assert len({event.place for event in seen.trace.gpu}) == 2
    assert (seen.usage.span, seen.usage.busy) == (30_000, 20_000)


def test_a_part_without_cpu_events_is_nobody_s_here(tmp_path):
    """Its ids are another process's, though the calls of this one carry them too."""
    lone = [event for event in rank(1, forward(120, ("mul", "k", 9))) if event["cat"] == "kernel"]
    seen = look(tmp_path, TITLES, rank(0, forward(100, ("mul", "k", 5), first=121)), TITLES, lone)
    assert (names(seen), seen.gpu_ns) == (["k of 0"], 5000)
    assert ([event.name for event in seen.leaked], seen.shared) == (["k of 1"], [])


@pytest.mark.parametrize("lost", [0, 1])
def test_titles_in_a_file_sorted_by_time_part_nothing(tmp_path, lost):
    """The first rank's GPU runs on behind the second one's titles."""
    title = TITLES[0]
    one, two = (
        rank(0, launch(1, 1, "cudaMemcpyAsync"), copy(1, 80, 5)),
        rank(1, region(51, 20), launch(1, 52, "cudaMemcpyAsync"), copy(1, 100, 10)),
    )
    events = [title | {"ts": START}, *one, title | {"ts": START + 50}, *two[: 3 - lost]]
    seen = look(tmp_path, sorted(events, key=lambda event: event["ts"]))
    found = as_json(compare(seen))
    assert found["copies_per_forward"] is found["cuda_us_per_forward"] is found["streams"] is None
    assert found["distinct_kernels"] is None
    assert any("of a correlation id that several calls carry" in w for w in found["warnings"])


def test_parts_one_after_the_other_in_time_are_parts(tmp_path):
    """As the profiler writes them: calls behind kernels, so that the file is not sorted."""
    parts = [
        [TITLES, rank(n, region(at, 50), kernel(1, at + 20, 5, "k"), launch(1, at + 10))]
        for n, at in enumerate((0, 500))
    ]
    seen = look(tmp_path, parts)
    assert (names(seen, 0), names(seen, 1)) == (["k of 0"], ["k of 1"])
    assert not seen.undecided


def test_work_in_the_wrong_part_is_no_one_s(tmp_path):
    """All that ran on GPUs stands behind all that ran on CPUs: one call has two kernels, and the
    same id's other call has none."""
    both = [rank(n, region(10 * n, 9), launch(1, 10 * n + 1), kernel(1, 40 - n, 5, "k"))
            for n in (0, 1)]  # fmt: skip
    cpu = [[TITLES, [e for e in events if e["cat"] != "kernel"]] for events in both]
    seen = look(tmp_path, cpu, [[e for e in events if e["cat"] == "kernel"] for events in both])
    assert [f.steps for f in seen.forwards] == [(), ()] and len(seen.undecided) == 2
    assert seen.gpu_ns is None and seen.per_forward("kernel") is None


def test_a_launch_is_looked_for_in_its_own_process_only(tmp_path):
    """Rank 1 launched before recording, with an id that rank 0 has too."""
    seen = look(
        tmp_path,
        rank(0, forward(100, ("mul", "k", 5), first=7)),
        TITLES,
        rank(1, forward(100, ("mul", "k", 5), first=9), kernel(7, 50, 5, "warm-up")),
    )
    assert (names(seen, 0), names(seen, 1)) == (["k of 0"], ["k of 1"])
    assert [event.name for event in seen.leaked] == ["warm-up of 1"]


def test_whose_work_it_is_cannot_be_told_and_is_not_guessed(tmp_path):
    """Sorted by time, nothing but the id tells whose an event is."""
    both = [
        *rank(0, forward(100, ("mul", "k", 5), ("add", "copy", 1), first=7)),
        *rank(1, forward(300, ("mul", "k", 5), ("add", "copy", 1), first=8)),
    ]
    seen = look(tmp_path, sorted(both, key=lambda event: event["ts"]))
    # 7 is rank 0's alone and 9 rank 1's; 8 is both's.
    assert (names(seen, 0), names(seen, 1)) == (
        ["k of 0"],
        ["Memcpy DtoD (Device -> Device) of 1"],
    )
    assert sorted(event.correlation for event in seen.undecided) == [8, 8]
    assert [(f.undecided, f.lost, f.gpu_ns) for f in seen.forwards] == [(1, 0, None)] * 2
    found = as_json(compare(seen))
    for key in ("kernels", "copies", "memsets"):
        assert found[f"{key}_per_forward"] is None
    for key in ("cuda_sum_us", "cuda_us_per_forward", "gpu_busy_us", "gpu"):
        assert found[key] is None
    assert found["undecided_gpu_events"] == 2
    assert sums(seen).startswith("unknown kernels a forward (2 forwards, not alike) · GPU u")
    assert any(
        "2 GPU events of a correlation id that several calls" in w for w in found["warnings"]
    )


def test_two_ranks_under_one_process_id(tmp_path):
    """In containers every process may be number 1."""
    one = forward(100, ("mul", "k", 5), first=7)
    two = forward(110, ("mul", "k", 5), first=7)
    seen = look(tmp_path, rank(0, one, pid=1), rank(1, two, pid=1))
    assert [f.steps for f in seen.forwards] == [(), ()]
    assert (len(seen.undecided), seen.overlapping) == (2, 1)
    assert any("cannot be told apart" in warning for warning in warnings(seen))


def test_a_call_written_twice_is_one(tmp_path):
    seen = look(tmp_path, region(0, 50), [launch(1, 10)] * 2, kernel(1, 20, 5, "k"))
    assert names(seen) == ["k"]
    assert not (seen.undecided or seen.lost)


def test_a_launch_and_the_driver_s_call_inside_it(tmp_path):
    """One id for both: one launch did the work, and none is lost."""
    seen = look(
        tmp_path, region(0, 50), launch(1, 10), launch(1, 11, "cuLaunchKernel"), kernel(1, 20, 5)
    )
    assert len(names(seen)) == 1 and not (seen.undecided or seen.lost)


@pytest.mark.parametrize("gpus", [(0, 1), (0, 0)])
def test_a_stream_is_one_process_s(tmp_path, gpus):
    """Stream 7 of both runs something at once, and nothing is wrong with that."""
    seen = look(
        tmp_path,
        rank(0, region(0, 50), launch(1, 10), launch(2, 20), kernel(1, 100, 90), kernel(2, 200, 9),
             gpu=gpus[0]), TITLES,
        rank(1, region(0, 50), launch(1, 10), kernel(1, 120, 20), gpu=gpus[1]),
    )  # fmt: skip
    assert not seen.incredible
    assert (seen.gpu_busy_ns, seen.usage.busy) == (119_000, 119_000)
    assert seen.usage.idle == seen.usage.waiting == 10_000


# ── Labels in labels, threads, other makers ───────────────────────────────────────────────────────


def test_a_label_inside_itself_is_said(tmp_path):
    seen = look(tmp_path, region(0, 100), launch(1, 5), region(10, 50), launch(2, 20),
                [kernel(n, 100 + 10 * n, 5, f"k{n}") for n in (1, 2)])  # fmt: skip
    assert (names(seen, 0), names(seen, 1)) == (["k1", "k2"], ["k2"])
    assert (seen.nested, seen.overlapping) == (1, 0)
    assert any("counted in both" in warning for warning in warnings(seen))


def test_a_label_on_several_threads_and_streams_at_once(tmp_path):
    seen = look(
        tmp_path,
        [[region(0, 100, thread=n), launch(n, 10 + n, thread=n), launch(10 + n, 20, thread=n),
          kernel(n, 200, 50, f"a{n}", stream=n), kernel(10 + n, 260, 50, f"b{n}", stream=n)]
         for n in (1, 2, 3)],
    )  # fmt: skip
    assert [names(seen, index) for index in range(3)] == [[f"a{n}", f"b{n}"] for n in (1, 2, 3)]
    assert (seen.nested, seen.overlapping, seen.elsewhere) == (0, 0, 0)
    assert as_json(compare(seen))["streams"] == [1, 2, 3]
    assert (seen.gpu_sum_ns, seen.gpu_busy_ns) == (300_000, 100_000)


def test_backward_runs_on_another_thread(tmp_path):
    """The autograd thread launches while the region waits in `backward()`: told apart."""
    seen = look(
        tmp_path,
        region(0, 100), op("aten::mm", 5, 10), launch(1, 6),
        op("autograd::engine::evaluate_function: MmBackward0", 30, 40, thread=77),
        op("aten::mm", 35, 20, thread=77), launch(2, 40, thread=77), launch(3, 42, thread=77),
        launch(4, 130, thread=77),  # after the region
        [kernel(n, 200 + 10 * n, 5, f"k{n}") for n in (1, 2, 3, 4)],
    )  # fmt: skip
    assert (names(seen), [step.name for step in seen.other_steps]) == (["k1"], ["k2", "k3"])
    assert (seen.elsewhere, warnings(seen)) == (0, [])


def test_what_a_thread_of_nobody_launches_meanwhile_is_counted_apart(tmp_path):
    seen = look(
        tmp_path,
        region(0, 100), op("aten::mm", 5, 10), launch(1, 6),
        op("aten::mm", 35, 20, thread=77), launch(2, 40, thread=77), launch(3, 42, thread=77),
        launch(4, 130, thread=77),  # after the region
        [kernel(n, 200 + 10 * n, 5, f"k{n}") for n in (1, 2, 3, 4)],
    )  # fmt: skip
    assert (names(seen), seen.other_steps, seen.elsewhere) == (["k1"], (), 2)
    assert any("2 GPU events were launched by other threads" in text for text in warnings(seen))


@pytest.mark.parametrize(
    ("category", "call", "copy_call"),
    [
        ("cuda_runtime", "hipLaunchKernel", "hipMemcpyWithStream"),
        ("cuda_runtime", "hipExtModuleLaunchKernel", "hipMemcpyAsync"),
        ("xpu_runtime", "urEnqueueKernelLaunch", "urEnqueueUSMMemcpy"),
        ("xpu_driver", "zeCommandListAppendLaunchKernel", "zeCommandListAppendMemoryCopy"),
        ("privateuse1_runtime", "aclrtLaunchKernel", "aclrtMemcpyAsync"),
    ],
)
def test_other_makers(tmp_path, category, call, copy_call):
    seen = look(
        tmp_path,
        region(0, 100), op("aten::mul", 5, 20), launch(1, 10, call) | {"cat": category},
        op("aten::copy_", 40, 20), launch(2, 45, copy_call) | {"cat": category},
        kernel(1, 200, 5, "k"), copy(2, 210, 5),
        kernel(1, 199, 20, LABEL) | {"cat": "gpu_user_annotation"},
    )  # fmt: skip
    assert [(s.sort, s.call, s.path) for s in seen.steps] == [
        ("kernel", call, aten("mul")), ("copy", copy_call, aten("copy_"))
    ]  # fmt: skip
    assert seen.forwards[0].launches == 1 and not (seen.lost or seen.leaked)


def test_apple_s_gpu_leaves_no_events(tmp_path):
    """Kineto knows no GPU lane of MPS: ops are all there is, and kernel counts are unknown."""
    memory = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1,
              "tid": 1, "ts": 5, "args": {"Device Type": 13, "Bytes": 512}}  # fmt: skip
    seen = look(tmp_path, region(0, 100), op("aten::mul", 5, 20), memory, device=None)
    assert (seen.on_gpu, [step.kind for step in seen.steps]) == (False, ["mul"])
    assert as_json(compare(seen))["kernels_per_forward"] is None
    assert any("no GPU events in the trace" in warning for warning in warnings(seen))


def test_compiled_regions_and_frames_are_no_labels_of_their_own(tmp_path):
    """torch.compile writes ops around its kernels, `with_stack` functions of Python."""
    frames = [op(f"model.py({n}): forward", 2 + n, 90 - n) | {"cat": "python_function"}
              for n in range(5)]  # fmt: skip
    seen = look(
        tmp_path,
        region(0, 100), frames, op("Torch-Compiled Region: 0/0", 5, 80),
        op("## Call CompiledFxGraph fabc ##", 10, 70),
        op("triton_poi_fused_add_mul_0", 20, 20), launch(1, 30, "cuLaunchKernelEx"),
        kernel(1, 200, 5, "triton_poi_fused_add_mul_0"),
    )  # fmt: skip
    assert [(s.kind, s.name, len(s.path)) for s in seen.steps] == [
        ("fused", "triton_poi_fused_add_mul_0", 3)
    ]
    assert [o.name for o in seen.ops][0] == "Torch-Compiled Region: 0/0" and len(seen.ops) == 3


@pytest.mark.parametrize("call", ["cudaGraphLaunch", "cuGraphLaunch", "hipGraphLaunch"])
def test_a_graph_s_kernels_drawn_on_one_lane(tmp_path, call):
    """They ran on two streams side by side, and newer exporters draw them on the default one."""
    node = {"graph node id": 5, "graph id": 2}
    seen = look(
        tmp_path, region(0, 50), launch(1, 10, call), region(60, 50), launch(2, 70, call),
        [[kernel(n, 100 * n, 90, "long", original_stream=21, **node),
          kernel(n, 100 * n + 10, 20, "short", original_stream=22, **node)] for n in (1, 2)],
    )  # fmt: skip
    assert [names(seen, index) for index in (0, 1)] == [["long", "short"]] * 2
    assert not (seen.incredible or seen.shared or seen.lost)
    assert (seen.gpu_sum_ns, seen.gpu_busy_ns) == (220_000, 180_000)


# ── Recorded with all that the profiler offers ────────────────────────────────────────────────────

WITH_ALL = ROOT / "tests" / "data" / "traces" / "cpu_stack_shapes_memory.json.gz"


def test_stacks_shapes_and_memory_are_no_work():
    """A small network on the CPU, torch 2.15: two steps, with_stack, record_shapes,
    profile_memory, with_modules and with_flops."""
    trace_ = read(WITH_ALL)
    events = load(WITH_ALL)["traceEvents"]
    ops = [event for event in events if event.get("cat") == "cpu_op"]
    assert sum(event.get("cat") == "python_function" for event in events) == 499
    assert [op.name for op in trace_.ops] == [event["name"] for event in ops]
    assert trace_.labels == {
        "forward": 2, "backward": 2, "optimizer": 2,
        "Optimizer.step#SGD.step": 2, "Optimizer.zero_grad#SGD.zero_grad": 2,
    }  # fmt: skip
    for label in ("forward", "backward", "optimizer"):
        seen = observe(trace_, label)
        ranges = [e for e in events if e.get("cat") == "user_annotation" and e["name"] == label]
        for found, span in zip(seen.forwards, ranges, strict=True):
            inside = [op["name"] for op in ops if 0 <= op["ts"] - span["ts"] < span["dur"]]
            assert [op.name for op in found.ops] == inside
            assert found.cpu_ns == int(span["dur"] * 1000)
        assert not seen.on_gpu and seen.elsewhere == seen.nested == 0
    # Two linear layers, GELU between them, and the loss.
    forward_ = observe(trace_, "forward")
    assert forward_.alike
    assert [step.path[-1] for step in forward_.steps if step.kind == "matmul"] == [
        "aten::addmm"
    ] * 2


# ── Which region ──────────────────────────────────────────────────────────────────────────────────

STEP = region(0, 90, "ProfilerStep#2")


def test_the_region_the_trace_was_made_for(tmp_path):
    seen = look(tmp_path, region(0, 9, "other"), region(20, 9, "mine"), about=story(label="mine"))
    assert seen.region == "mine"


def test_the_only_label(tmp_path):
    assert look(tmp_path, STEP, region(10, 9, "mine"), region(30, 9, "mine")).region == "mine"


def test_several_labels_are_listed_to_choose_from(tmp_path):
    with pytest.raises(UserError, match=r"--region: b \(2\), a \(1\)$"):
        look(tmp_path, STEP, region(10, 9, "a"), region(30, 9, "b"), region(50, 9, "b"))


def test_a_long_list_of_labels_is_cut(tmp_path):
    many = [region(10 * n, 9, f"label{n}") for n in range(30)]
    with pytest.raises(UserError, match="and 18 more$"):
        look(tmp_path, many)


def test_no_label(tmp_path):
    with pytest.raises(UserError, match="no record_function region"):
        look(tmp_path, STEP, op("aten::mul", 5, 5))


def test_a_label_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match="region 'b' not found; the trace has a "):
        look(tmp_path, STEP, region(10, 9, "a"), region=" b".strip())


def test_profiler_steps_can_be_asked_for(tmp_path):
    assert len(look(tmp_path, STEP, region(10, 9, "a"), region="ProfilerStep#2").forwards) == 1


# ── Without a GPU ─────────────────────────────────────────────────────────────────────────────────


def test_on_the_cpu_the_working_ops_are_the_steps(tmp_path):
    """The copy inside masked_fill is visible there, and the ops that only call others are not."""
    seen = look(
        tmp_path,
        region(0, 400), op("aten::transpose", 5, 3),
        op("aten::matmul", 10, 80), op("aten::expand", 12, 3), op("aten::bmm", 20, 60),
        op("aten::mul", 100, 20),
        op("aten::masked_fill", 130, 100), op("aten::clone", 135, 50),
        op("aten::empty_like", 137, 5), op("aten::copy_", 145, 35),
        op("aten::masked_fill_", 190, 38),
        op("aten::softmax", 240, 50), op("aten::_softmax", 243, 45),
        device=None,
    )  # fmt: skip
    assert not seen.on_gpu
    assert [(step.kind, step.path) for step in seen.steps] == [
        ("matmul", aten("matmul", "bmm")),
        ("mul", aten("mul")),
        ("copy", aten("masked_fill", "clone", "copy_")),
        ("mask", aten("masked_fill", "masked_fill_")),
        ("softmax", aten("softmax", "_softmax")),
    ]
    assert [step.ns for step in seen.steps] == [60_000, 20_000, 35_000, 38_000, 45_000]
    assert {step.sort for step in seen.steps} == {"op"}
    assert (seen.gpu_ns, seen.gpu_sum_ns, seen.gpu_busy_ns) == (None, None, None)


def test_device_limits_of_our_own_story_where_the_profiler_wrote_none(tmp_path):
    device = {"type": "cuda", "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0}
    seen = look(tmp_path, forward(100, ("mul", "k", 5)), device=None, about=story(device=device))
    assert seen.steps[0].residency.max_warps == 64
    unknown = look(tmp_path, forward(100, ("mul", "k", 5)), device=None)
    assert unknown.steps[0].residency is None
