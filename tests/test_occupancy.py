"""common/read/occupancy.py against NVIDIA's calculator, the post's sums and recorded kernels."""

import json
from pathlib import Path

import pytest

from common.read.occupancy import (
    ARCHITECTURES,
    Device,
    Residency,
    kineto_estimate,
    reported_zero_reason,
    residency,
)

# deviceProperties as torch.profiler wrote them on an H200.
H200_PROPERTIES = {
    "id": 0,
    "name": "NVIDIA H200",
    "totalGlobalMem": 150109880320,
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerBlock": 65536,
    "warpSize": 32,
    "sharedMemPerBlock": 49152,
    "numSms": 132,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerBlockOptin": 232448,
    "sharedMemPerMultiprocessor": 233472,
}
H200 = Device.from_properties(H200_PROPERTIES)
CUDA = json.loads((Path(__file__).parent / "data" / "occupancy_cuda.json").read_text())


def gpu(major: int, minor: int, sms: int | None = None) -> Device:
    return Device.from_properties({"computeMajor": major, "computeMinor": minor, "numSms": sms})


def by_cuda():
    """NVIDIA's answers, one dict a launch."""
    return [dict(zip(CUDA["columns"], case, strict=True)) for case in CUDA["cases"]]


def test_residency_is_what_cuda_occupancy_h_answers():
    for case in by_cuda():
        device = gpu(*map(int, case["capability"].split(".")))
        fits = residency(device, case["registers"], case["shared_memory"], (case["block"], 1, 1))
        answer = (fits.blocks, list(fits.limits)) if fits else (0, [])
        assert answer == (case["blocks"], case["limits"]), case


def test_the_estimate_is_what_kineto_computes_from_the_same_header():
    for case in by_cuda():
        if case["blocks"] == 0:
            continue  # no kernel of a trace: the launch would have failed
        major, minor = map(int, case["capability"].split("."))
        device, grid, block = gpu(major, minor, case["sms"]), [case["grid"]], [case["block"]]
        launch = (device, case["registers"], case["shared_memory"], grid, block)
        assert kineto_estimate(*launch) == case["percent"], case
        assert kineto_estimate(*launch, opt_in=True) == case["percent_opt_in"], case


def test_nvidias_answers_cover_every_architecture_and_every_limit():
    cases = by_cuda()
    assert {case["capability"] for case in cases} == {f"{a}.{b}" for a, b in ARCHITECTURES}
    limits = {limit for case in cases for limit in case["limits"]}
    assert limits == {"registers", "shared memory", "warps", "blocks"}
    assert any(len(case["limits"]) > 1 for case in cases)
    assert any(case["percent"] == 0 < case["percent_opt_in"] for case in cases)


def test_the_posts_sum_for_flash():
    """A100: 255 registers × 128 threads are two blocks, and 8 of 64 warps."""
    assert residency(gpu(8, 0), 255, 49152, (128, 1, 1)) == Residency(
        blocks=2, warps=8, max_warps=64, percent=12.5, limits=("registers",)
    )


def test_the_posts_sum_for_cudnn():
    """A100: 240 registers × 256 threads are one block, and again 8 of 64 warps."""
    assert residency(gpu(8, 0), 240, 49152, (256, 1, 1)) == Residency(
        blocks=1, warps=8, max_warps=64, percent=12.5, limits=("registers",)
    )


def test_cudnn_on_an_h200_runs_out_of_two_things_at_once():
    assert residency(H200, 168, 134144, (384, 1, 1)) == Residency(
        blocks=1, warps=12, max_warps=64, percent=18.75, limits=("registers", "shared memory")
    )


def test_a_smaller_sm_is_measured_by_its_own_warps():
    assert residency(gpu(12, 0), 32, 0, (128, 1, 1)) == Residency(
        blocks=12, warps=48, max_warps=48, percent=100.0, limits=("warps",)
    )


def test_a_started_warp_takes_a_whole_one():
    assert residency(H200, 32, 0, (33, 1, 1)) == residency(H200, 32, 0, (64, 1, 1))
    assert residency(H200, 32, 0, (8, 4, 4)) == residency(H200, 32, 0, (128, 1, 1))


def test_registers_left_over_in_two_partitions_do_not_make_a_warp():
    # 65,536 // (96 * 32) = 21 warps, were the registers one pool; 5 in each of 4 partitions are 20.
    assert residency(H200, 96, 0, (32, 1, 1)).warps == 20


def test_the_driver_keeps_1_kib_of_every_block_from_ampere_on():
    assert residency(gpu(7, 0), 16, 32768, (32, 1, 1)).blocks == 3  # 96 / 32
    assert residency(gpu(8, 9), 16, 32768, (32, 1, 1)).blocks == 3  # 100 / 33
    assert residency(gpu(8, 9), 16, 25600, (32, 1, 1)).blocks == 3  # 100 / 26, not 100 / 25


# registers, shared memory, grid, block, and the percentage in the trace: rows of H200 recordings.
RECORDED = {
    "FlashAttention-2, head_dim 64": (255, 49152, (8, 8, 16), (128, 1, 1), 13),
    "softmax": (48, 0, (32768, 1, 1), (32, 4, 1), 63),
    "cuDNN, head_dim 64": (168, 134144, (132, 1, 1), (384, 1, 1), 0),
    "nvjet matmul": (168, 163972, (2, 66, 1), (384, 1, 1), 0),
    "nvjet matmul, larger tile": (168, 213188, (2, 66, 1), (384, 1, 1), 0),
}


@pytest.mark.parametrize("kernel", RECORDED)
def test_the_estimate_is_the_recorded_percentage(kernel):
    *launch, reported = RECORDED[kernel]
    assert kineto_estimate(H200, *launch) == reported


# The experiment that settles what the 0 comes from; its grids fill the GPU many times over.
# registers, shared memory, threads of a block, reported, computed with the opt-in limit.
LAUNCHES = {
    "FlashAttention-2, head_dim 64, by cudaLaunchKernel": (255, 49152, 128, 13, 13),
    "FlashAttention-2, head_dim 128, by cudaLaunchKernel": (255, 65536, 128, 0, 13),
    "FlashAttention-2, head_dim 256, by cudaLaunchKernel": (255, 98304, 128, 0, 13),
    "cuDNN, head_dim 64, by cuLaunchKernelEx": (168, 134144, 384, 0, 19),
    "Triton dot 64×64, by cuLaunchKernelEx": (59, 16384, 128, 50, 50),
    "Triton dot 128×128, by cuLaunchKernelEx": (174, 32768, 128, 13, 13),
}


@pytest.mark.parametrize("kernel", LAUNCHES)
def test_shared_memory_and_not_the_launch_call_makes_the_zero(kernel):
    registers, shared_memory, threads, reported, opted_in = LAUNCHES[kernel]
    launch = (registers, shared_memory, (4096, 1, 1), (threads, 1, 1))
    assert kineto_estimate(H200, *launch) == reported
    assert kineto_estimate(H200, *launch, opt_in=True) == opted_in
    reason = "shared memory over default limit" if reported == 0 else None
    assert reported_zero_reason(H200, reported, *launch) == reason


def test_the_default_limit_itself_is_allowed():
    launch = (32, (4096, 1, 1), (128, 1, 1))
    assert kineto_estimate(H200, launch[0], 49152, *launch[1:]) > 0
    assert kineto_estimate(H200, launch[0], 49153, *launch[1:]) == 0


def test_a_tiny_grid_rounds_to_zero():
    one_block = (32, 0, (1, 1, 1), (128, 1, 1))
    assert kineto_estimate(H200, *one_block) == 0
    assert reported_zero_reason(H200, 0, *one_block) == "tiny grid"
    assert residency(H200, 32, 0, (128, 1, 1)).percent == 100


def test_a_zero_is_not_explained_away():
    full = (32, 0, (4096, 1, 1), (128, 1, 1))
    assert reported_zero_reason(H200, 0, *full) is None  # it should read 100
    assert reported_zero_reason(None, 0, 32, 0, (1, 1, 1), (128, 1, 1)) is None
    assert reported_zero_reason(H200, 0, None, None, None, None) is None


def test_no_zero_needs_no_reason():
    over = (255, 65536, (1, 1, 1), (128, 1, 1))
    for reported in (13, 0.4, -100, None, float("nan")):
        assert reported_zero_reason(H200, reported, *over) is None


def test_the_default_limit_is_known_without_the_gpu():
    over = (255, 65536, (8, 8, 16), (128, 1, 1))
    assert reported_zero_reason(None, 0, *over) == "shared memory over default limit"


@pytest.mark.parametrize("missing", range(4))
def test_a_missing_figure_makes_the_answer_unknown(missing):
    launch = [H200, 32, 0, (128, 1, 1)]
    launch[missing] = None
    assert residency(*launch) is None
    assert kineto_estimate(*launch[:3], (4096, 1, 1), launch[3]) is None


def test_without_grid_or_sms_the_profilers_figure_is_unknown():
    assert kineto_estimate(H200, 32, 0, None, (128, 1, 1)) is None
    assert kineto_estimate(gpu(9, 0), 32, 0, (4096, 1, 1), (128, 1, 1)) is None


@pytest.mark.parametrize(
    ("registers", "shared_memory", "block"),
    [
        (257, 0, (128, 1, 1)),
        (255, 0, (1024, 1, 1)),  # each allowed, but not together
        (32, 232449, (128, 1, 1)),
        (32, 0, (1025, 1, 1)),
        (32, 0, (0, 1, 1)),
    ],
)
def test_a_block_that_cannot_run_is_unknown_and_not_zero(registers, shared_memory, block):
    assert residency(H200, registers, shared_memory, block) is None


HOSTILE = [-1, 2**31, 10**400, 1.5, float("nan"), float("inf"), True, "32", [], {}]


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:8])
def test_what_is_no_count_is_unknown(value):
    assert residency(H200, value, 0, (128, 1, 1)) is None
    assert residency(H200, 32, value, (128, 1, 1)) is None
    assert residency(H200, 32, 0, (value, 1, 1)) is None
    assert residency(H200, 32, 0, value) is None
    assert kineto_estimate(H200, 32, 0, (value, 1, 1), (128, 1, 1)) is None
    assert kineto_estimate(H200, 32, 0, value, (128, 1, 1)) is None


@pytest.mark.parametrize("value", [*HOSTILE, 0, None], ids=lambda value: repr(value)[:8])
def test_a_property_that_is_no_count_gives_way_to_the_architecture(value):
    identity = ("computeMajor", "computeMinor", "numSms")
    properties = {key: kept if key in identity else value for key, kept in H200_PROPERTIES.items()}
    assert Device.from_properties(properties) == H200


def test_a_count_rewritten_as_a_float_is_still_a_count():
    assert residency(H200, 255.0, 49152.0, (128.0, 1.0, 1.0)).warps == 8


def test_the_largest_counts_do_not_overflow():
    huge = 2**31 - 1
    limits = dict.fromkeys(H200_PROPERTIES, huge) | {
        "computeMajor": 9,
        "computeMinor": 0,
        "warpSize": 32,
    }
    device = Device.from_properties(limits)
    assert residency(device, 255, huge, (1024, 1, 1)) is None  # with its 1 KiB it is one too many
    assert residency(device, 255, 0, (1024, 1, 1)).blocks == 32
    assert kineto_estimate(device, 255, 0, (huge, huge, huge), (1024, 1, 1)) == 0


def test_the_table_knows_all_of_an_h200_but_its_sms():
    assert H200.sms == 132
    assert gpu(9, 0) == Device.from_properties(H200_PROPERTIES | {"numSms": None})


def test_the_traces_own_figure_goes_before_the_table():
    halved = Device.from_properties(H200_PROPERTIES | {"regsPerMultiprocessor": 32768})
    assert residency(halved, 255, 49152, (128, 1, 1)).warps == 4


@pytest.mark.parametrize("capability", [(6, 1), (8, 1), (13, 0), (None, None), ("9", "0"), (9, -1)])
def test_an_unknown_architecture_is_no_device(capability):
    major, minor = capability
    assert Device.from_properties({"computeMajor": major, "computeMinor": minor}) is None
    assert Device.from_properties({}) is None


def test_an_amd_gpu_is_not_taken_for_the_nvidia_one_of_the_same_number():
    """Kineto writes ROCm's numbers into the same fields: gfx90a is 9.0, gfx1100 is 11.0."""
    mi250 = {"computeMajor": 9, "computeMinor": 0, "warpSize": 64}
    rx7900 = {
        "computeMajor": 11,
        "computeMinor": 0,
        "warpSize": 32,
        "maxSharedMemoryPerMultiProcessor": 65536,
    }
    assert Device.from_properties(mi250) is None
    assert Device.from_properties(rx7900) is None
