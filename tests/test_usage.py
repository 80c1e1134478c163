"""The GPU's time, from events written here: each nanosecond has its reason."""

from types import SimpleNamespace

import pytest
from build import FFMA, FLASH, NVJET

from common.read.lanes import Lanes
from common.read.trace import Call, GpuEvent
from common.read.usage import Culprits, Launched, Usage, usage

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def event(start, duration, name=NVJET, sort="kernel", stream=7, device=0) -> GpuEvent:
    return GpuEvent(
        sort=sort, name=name, start=start, duration=duration, device=device, stream=stream,
        correlation=None, process=1, grid=None, block=None, registers=None, shared_memory=None,
        reported_occupancy=None, bytes=None,
    )  # fmt: skip


THREAD = (1, 1)


def used_by(*events: tuple[GpuEvent, int | None]) -> Usage:
    """Of GPU events, each with the moment of its launch, which took a nanosecond."""
    launched = [
        Launched(gpu, call, call and THREAD)
        for gpu, at in events
        for call in [None if at is None else Call("cudaLaunchKernel", at, 1, THREAD, None)]
    ]
    calls = [one.call for one in launched if one.call]
    culprits = Culprits(SimpleNamespace(annotations=()), Lanes((), calls), clocks_agree=True)
    return usage([launched], culprits)


def test_without_events_there_is_nothing():
    assert usage([]) == Usage() and usage([]).idle == 0


@pytest.mark.parametrize(
    ("launch", "reason"),
    [(150, "launch_bound"), (100, "launch_bound"), (99, "waiting"), (None, "idle_unknown")],
)
def test_a_gap_is_the_fault_of_a_launch_that_came_after_the_gpu_ran_dry(launch, reason):
    used = used_by((event(0, 100), 0), (event(300, 50), launch))
    assert (used.span, used.busy, used.idle) == (350, 150, 200)
    assert getattr(used, reason) == 200


def test_a_gap_is_where_no_stream_works():
    """Another stream's kernel covers part of it; what overlaps is busy once and work twice."""
    used = used_by((event(0, 100), 0), (event(50, 150, stream=8), 0), (event(260, 40), 250))
    assert (used.busy, used.work, used.idle) == (240, 290, 60)
    assert used.launch_bound == 60


def test_a_short_event_inside_a_long_one_opens_no_gap():
    used = used_by((event(0, 100), 0), (event(10, 5, stream=8), 0), (event(100, 10), 0))
    assert (used.busy, used.idle, used.span) == (110, 0, 110)


def test_two_gpus_are_idle_each_for_itself():
    used = used_by((event(0, 10), 0), (event(1000, 10, device=1), 900))
    assert (used.span, used.busy, used.idle) == (20, 20, 0)


def test_work_is_told_apart_by_the_names_of_kernels():
    used = used_by(
        (event(0, 1, NVJET), 0),
        (event(1, 2, FLASH), 0),
        (event(3, 4, FFMA), 0),  # CUDA cores
        (event(7, 8, "a_name_nobody_knows"), 0),
        (event(15, 16, NCCL), 0),
        (event(31, 32, "Memcpy DtoD (Device -> Device)", "copy"), 0),
        (event(63, 64, "Memset (Device)", "memset"), 0),
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
    used = used_by(*((event(10 * i, 10, name), 0) for i, name in enumerate((*names, NVJET))))
    assert (used.communication, used.tensor_cores, used.cores_unknown) == (40, 10, 0)


def test_cores_are_unknown_only_where_tensor_cores_might_have_done_the_work():
    """Nobody asks which cores normalized or sorted; of a GEMM that does not say it is unknown."""
    used = used_by(
        (event(0, 1, "void vllm::rms_norm_kernel<float, 8, 2>(float*)"), 0),
        (event(1, 2, "void moe_align_block_size_kernel<int>(int*)"), 0),
        (event(3, 4, "void marlin::Marlin<1125899906909960l, 4>(int4 const*)"), 0),
        (event(7, 8, "triton_tem_fused_mm_0"), 0),
    )
    assert (used.cores_unknown, used.tensor_cores) == (12, 0)


def test_events_without_a_time_are_left_out():
    used = used_by((event(0, 10), 0), (event(20, None), 0), (event(None, 5), 0))
    assert (used.events, used.work, used.span) == (1, 10, 10)
