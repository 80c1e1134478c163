"""The GPU's time, from events written here: each nanosecond has its reason."""

import json

import pytest
from build import FFMA, FLASH, NVJET, copy, forward, kernel, launch, op, region, trace, write
from hypothesis import given, settings
from hypothesis import strategies as st

from common.read.lanes import Lanes
from common.read.observe import observe
from common.read.survey import survey
from common.read.trace import Call, GpuEvent, Trace, read
from common.read.usage import (
    ALREADY,
    BETWEEN,
    CLOCKS,
    COMPILE,
    LOADER,
    NOT_IN_FILE,
    NOTHING,
    Culprits,
    Launched,
    Usage,
)
from common.read.usage import usage as usage_of
from common.show.as_json import us, usage_json
from common.show.words import shares

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


HERE = (1, 1)
NOBODY = Culprits(Trace(None, None, (), (), (), (), (), (), 0), Lanes((), ()), clocks_agree=True)


def event(start, duration, name=NVJET, sort="kernel", stream=7, device=0) -> GpuEvent:
    return GpuEvent(
        sort=sort, name=name, start=start, duration=duration, device=device, stream=stream,
        correlation=None, process=1, grid=None, block=None, registers=None, shared_memory=None,
        reported_occupancy=None, bytes=None,
    )  # fmt: skip


def usage(events) -> Usage:
    """Of events, each with the moment of its launch, or None where that is not in the file."""
    return usage_of(
        [
            [
                Launched(event, None, None)
                if moment is None
                else Launched(event, Call("cudaLaunchKernel", moment, 5, HERE, 1), HERE)
                for event, moment in events
            ]
        ],
        NOBODY,
    )


def test_without_events_there_is_nothing():
    assert usage([]) == Usage() and usage([]).idle == 0


@pytest.mark.parametrize(
    ("launch", "reason"),
    [(150, "launch_bound"), (100, "launch_bound"), (99, "waiting"), (None, "idle_unknown")],
)
def test_a_gap_is_the_fault_of_a_launch_that_came_after_the_gpu_ran_dry(launch, reason):
    used = usage([(event(0, 100), 0), (event(300, 50), launch)])
    assert (used.span, used.busy, used.idle) == (350, 150, 200)
    assert getattr(used, reason) == 200


def test_a_gap_is_where_no_stream_works():
    """Another stream's kernel covers part of it; what overlaps is busy once and work twice."""
    used = usage([(event(0, 100), 0), (event(50, 150, stream=8), 0), (event(260, 40), 250)])
    assert (used.busy, used.work, used.idle) == (240, 290, 60)
    assert used.launch_bound == 60


def test_a_short_event_inside_a_long_one_opens_no_gap():
    used = usage([(event(0, 100), 0), (event(10, 5, stream=8), 0), (event(100, 10), 0)])
    assert (used.busy, used.idle, used.span) == (110, 0, 110)


def test_two_gpus_are_idle_each_for_itself():
    used = usage([(event(0, 10), 0), (event(1000, 10, device=1), 900)])
    assert (used.span, used.busy, used.idle) == (20, 20, 0)


def test_work_is_told_apart_by_the_names_of_kernels():
    used = usage(
        [
            (event(0, 1, NVJET), 0),
            (event(1, 2, FLASH), 0),
            (event(3, 4, FFMA), 0),  # CUDA cores
            (event(7, 8, "a_name_nobody_knows"), 0),
            (event(15, 16, NCCL), 0),
            (event(31, 32, "Memcpy DtoD (Device -> Device)", "copy"), 0),
            (event(63, 64, "Memset (Device)", "memset"), 0),
        ]
    )
    assert (used.work, used.events) == (127, 7)
    assert (used.tensor_cores, used.cores_unknown) == (3, 8)
    assert (used.communication, used.copies) == (16, 96)


def test_communication_goes_by_many_names():
    names = (
        NCCL,
        "void deep_ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>(int4*, float*)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
    )
    used = usage([(event(10 * i, 10, name), 0) for i, name in enumerate((*names, NVJET))])
    assert (used.communication, used.tensor_cores, used.cores_unknown) == (40, 10, 0)


def test_cores_are_unknown_only_where_tensor_cores_might_have_done_the_work():
    """Nobody asks which cores normalized or sorted; of a GEMM that does not say it is unknown."""
    used = usage(
        [
            (event(0, 1, "void vllm::rms_norm_kernel<float, 8, 2>(float*)"), 0),
            (event(1, 2, "void moe_align_block_size_kernel<int>(int*)"), 0),
            (event(3, 4, "void marlin::Marlin<1125899906909960l, 4>(int4 const*)"), 0),
            (event(7, 8, "triton_tem_fused_mm_0"), 0),
        ]
    )
    assert (used.cores_unknown, used.tensor_cores) == (12, 0)


def test_events_without_a_time_are_left_out():
    used = usage([(event(0, 10), 0), (event(20, None), 0), (event(None, 5), 0)])
    assert (used.events, used.work, used.span) == (1, 10, 10)


# ── Who keeps the GPU waiting ─────────────────────────────────────────────────────────────────────


def idle_by(tmp_path, *events) -> dict:
    """(µs, times) by culprit, of a trace; what they come to is the idle time."""
    used = survey(read(write(tmp_path, trace(*events)))).usage
    assert sum(one.ns for one in used.idle_by.values()) == used.idle
    assert used.idle == (used.launch_bound or 0) + (used.waiting or 0) + used.idle_unknown
    for one in used.idle_by.values():
        assert one.longest * one.count >= one.ns >= one.longest
    return {what: (one.ns / 1000, one.count) for what, one in used.idle_by.items()}


def late(*between):
    """A kernel at 10 to 20, what the CPU does then, and a kernel at 520, launched at 510."""
    return launch(1, 0), kernel(1, 10, 10), between, launch(2, 510), kernel(2, 520, 10)


@pytest.mark.parametrize(
    ("between", "culprit"),
    [
        (launch(9, 15, "cudaDeviceSynchronize", dur=480), "cudaDeviceSynchronize"),
        (launch(9, 15, "hipStreamSynchronize", dur=480), "hipStreamSynchronize"),
        ([op("aten::item", 12, 490), launch(9, 15, "cudaMemcpyAsync", dur=480)], "cudaMemcpyAsync"),
        (region(15, 480, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"), LOADER),
        (op("enumerate(DataLoader)#_Single.__next__", 15, 480), LOADER),
        (op("aten::sort", 15, 480), "aten::sort"),
        ([op("aten::sort", 15, 490), op("aten::copy_", 20, 470)], "aten::copy_"),
        ([op("aten::mul", 15, 20), op("aten::add", 480, 20)], BETWEEN),
        (region(15, 480, "_compile.compile_inner (dynamo_timed)"), COMPILE),
        (op("compile_fx.<locals>.bw_compiler (dynamo_timed)", 15, 480), COMPILE),
        ([], BETWEEN),
    ],
)
def test_idle_time_has_the_culprit_that_lasted_longest(tmp_path, between, culprit):
    assert idle_by(tmp_path, late(between)) == {culprit: (500, 1)}


def test_only_the_thread_that_launches_next_is_asked(tmp_path):
    others = op("aten::sort", 15, 480, thread=77), launch(9, 15, "cudaFree", thread=77, dur=480)
    assert idle_by(tmp_path, late(others)) == {BETWEEN: (500, 1)}


def test_a_launch_from_before_is_no_fault_of_the_cpu(tmp_path):
    """Unless the call itself lasts so long."""
    one = launch(1, 0), launch(2, 8), kernel(1, 10, 10), kernel(2, 520, 10)
    assert idle_by(tmp_path, one) == {ALREADY: (500, 1)}
    long = launch(1, 0), launch(2, 8, "cuLaunchKernel", dur=505), kernel(1, 10, 10)
    assert idle_by(tmp_path, long, kernel(2, 520, 10)) == {"cuLaunchKernel": (500, 1)}


def test_a_launch_that_is_not_in_the_file_has_no_culprit(tmp_path):
    assert idle_by(tmp_path, late()[:2], kernel(2, 520, 10)) == {NOT_IN_FILE: (500, 1)}


def test_nothing_recorded_of_the_thread_is_nothing_known():
    call = Call("cudaLaunchKernel", 450, 5, HERE, 1)
    of = [Launched(event(0, 100), None, None), Launched(event(500, 9), call, HERE)]
    used = usage_of([of], NOBODY)
    assert {what: one.ns for what, one in used.idle_by.items()} == {NOTHING: 400}


def test_without_a_common_clock_no_cause_is_known(tmp_path):
    """The GPU's clock is 2 s behind."""
    early = [kernel(1, 10 - 2_000_000, 10), kernel(2, 520 - 2_000_000, 10)]
    seen = survey(read(write(tmp_path, trace(launch(1, 0), launch(2, 510), early))))
    assert {what: one.ns for what, one in seen.usage.idle_by.items()} == {CLOCKS: 500_000}
    found = usage_json(seen.usage)
    assert found["idle_launch_bound_us"] is found["idle_waiting_us"] is None
    assert found["idle_us"] == found["idle_unknown_us"] == 500


def test_each_stretch_counts_and_the_longest_is_told(tmp_path):
    events = [[launch(n, 300 * n * n, dur=1), kernel(n, 300 * n * n + 5, 10)] for n in (1, 2, 3)]
    seen = survey(read(write(tmp_path, trace(*events))))
    assert usage_json(seen.usage)["idle_by"] == [
        {"what": BETWEEN, "us": 890 + 1490, "count": 2, "longest_us": 1490}
    ]


def test_between_two_forwards_the_recording_is_idle_and_no_forward_is(tmp_path):
    events = forward(100, ("mul", "k", 10)), forward(1100, ("mul", "k", 10))
    seen = observe(read(write(tmp_path, trace(*events))))
    assert (seen.usage.span, seen.usage.idle) == (20_000, 0)
    whole = seen.usage_of_recording
    assert (whole.span, whole.busy, whole.idle) == (1_010_000, 20_000, 990_000)
    assert sum(one.ns for one in whole.idle_by.values()) == whole.idle


# ── Communication beside other work ───────────────────────────────────────────────────────────────

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 15)), max_size=8)


@settings(deadline=None)
@given(SPANS, SPANS, SPANS)
def test_exposed_is_what_runs_beside_no_other_kernel(talking, computing, copying):
    """Nanosecond by nanosecond. A copy hides no communication: it is no kernel."""
    streams = enumerate(
        [(NCCL, "kernel", talking), (NVJET, "kernel", computing), ("Memcpy", "copy", copying)]
    )
    used = usage(
        (event(start, lasts, name, sort, stream), 0)
        for stream, (name, sort, spans) in streams
        for start, lasts in spans
    )

    def moments(spans):
        return {at for start, lasts in spans for at in range(start, start + lasts)}

    talk, others = moments(talking), moments(computing)
    assert (used.exposed, used.overlapped) == (len(talk - others), len(talk & others))
    assert used.communication == sum(lasts for _, lasts in talking)
    assert used.busy == len(talk | others | moments(copying))


def test_another_gpu_hides_no_communication():
    used = usage([(event(0, 10, NCCL), 0), (event(0, 10, device=1), 0)])
    assert (used.exposed, used.overlapped) == (10, 0)


# ── Unknown is not zero ───────────────────────────────────────────────────────────────────────────


def test_tensor_cores_are_unknown_where_no_name_tells():
    used = usage([(event(0, 10, "a_name_nobody_knows"), 0), (event(10, 5, "Memset", "memset"), 0)])
    assert not used.cores_known and usage_json(used)["tensor_cores_us"] is None
    assert shares(used)[0] == "Tensor Cores unknown"
    told = usage([(event(0, 10, FFMA), 0), (event(10, 30, "a_name_nobody_knows"), 0)])
    assert usage_json(told)["tensor_cores_us"] == 0
    assert shares(told)[0] == "Tensor Cores 0 % (unknown for 75 %) of GPU time"


def test_of_no_event_json_says_null():
    assert usage_json(usage([])) is None and us(None) is None
    assert json.dumps(usage_json(usage([(event(0, 10), 0)])))


def test_a_blocking_copy_may_be_the_launch_itself(tmp_path):
    """It waits for the GPU, and its copy is what comes next: the copy call is in the way."""
    events = launch(1, 0), kernel(1, 10, 10), launch(2, 5, "cudaMemcpyAsync", dur=600)
    assert idle_by(tmp_path, events, copy(2, 520, 10)) == {"cudaMemcpyAsync": (500, 1)}
