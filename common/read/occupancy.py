"""Launch footprint → the blocks and warps one SM can hold, and what limits them.

A block becomes resident when an SM has warp slots, registers, shared memory and a block slot left
for all of it; whichever runs out first decides. `residency` does that sum with the sizes that the
hardware hands out, which are coarser than what a kernel asks for:

- registers go to a whole warp, 256 at a time, out of a quarter of the SM's registers: an SM has
  four partitions, and a warp lives in one of them;
- shared memory goes to a block in units of 128 bytes (256 before compute capability 8.0), and
  from 8.0 on the driver keeps 1 KiB more of it for itself in every block.

The profiler prints a figure of its own, "est. achieved occupancy %". `kineto_estimate` repeats its
sum, so that a 0 can be explained from the trace alone: see `reported_zero_reason`.

Sources: NVIDIA's cuda_occupancy.h (CUDA 13.2) with the device limits of CCCL's cuda::arch_traits;
tests/data/occupancy_cuda.json holds answers of theirs. pytorch/kineto, libkineto/src. NVIDIA prints
the same limits in the CUDA C++ Programming Guide, "Compute Capabilities".
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

from .known import known

Limit = Literal["registers", "shared memory", "warps", "blocks"]
ZeroReason = Literal["shared memory over default limit", "tiny grid"]

KIB = 1024

# Of one SM, by compute capability: resident warps, resident blocks, KiB of shared memory.
# A capability not listed is unknown, for its neighbours tell nothing: 8.6 is not like 8.0.
ARCHITECTURES = {
    (7, 0): (64, 32, 96),
    (7, 2): (64, 32, 96),
    (7, 5): (32, 16, 64),
    (8, 0): (64, 32, 164),
    (8, 6): (48, 16, 100),
    (8, 7): (48, 16, 164),
    (8, 8): (48, 16, 100),
    (8, 9): (48, 24, 100),
    (9, 0): (64, 32, 228),
    (10, 0): (64, 32, 228),
    (10, 3): (64, 32, 228),
    (11, 0): (48, 24, 228),
    (12, 0): (48, 24, 100),
    (12, 1): (48, 24, 100),
}

# The same on every architecture above.
THREADS_PER_WARP = 32
THREADS_PER_BLOCK = 1024
REGISTERS_PER_THREAD = 256  # cuda_occupancy.h lets 256 pass; a compiler gives at most 255
REGISTERS_PER_SM = 64 * KIB
REGISTER_UNIT = 256
PARTITIONS = 4
DEFAULT_SHARED_MEMORY = 48 * KIB  # of a block whose kernel has not opted in to more


@dataclass(frozen=True, slots=True)
class Device:
    """Limits of one GPU: counts of one SM, sizes in bytes."""

    capability: tuple[int, int]
    sms: int | None
    warps: int
    blocks: int
    registers: int
    shared_memory: int
    default_shared_memory: int  # of a block whose kernel has not opted in
    opt_in_shared_memory: int  # of a block whose kernel has

    @classmethod
    def from_properties(cls, properties: Mapping[str, object]) -> "Device | None":
        """Read one entry of a trace's `deviceProperties`.

        A figure that is missing or no number comes from the architecture's table. The number of SMs
        is in no table, for it differs between products of one architecture, and stays None. An
        unknown compute capability, or a GPU that is not NVIDIA's, gives None.
        """

        def read(key: str) -> int | None:
            return _whole(properties.get(key))

        major, minor = read("computeMajor"), read("computeMinor")
        if major is None or minor is None:
            return None
        capability = major, minor
        # ROCm numbers its GPUs as well: an MI250 is 9.0 like an H100, an RX 7900 is 11.0 like Thor.
        rocm = "maxSharedMemoryPerMultiProcessor" in properties
        warp = read("warpSize") or THREADS_PER_WARP
        if capability not in ARCHITECTURES or rocm or warp != THREADS_PER_WARP:
            return None

        warps, blocks, shared_kib = ARCHITECTURES[capability]
        threads = read("maxThreadsPerMultiprocessor") or 0
        shared_memory = read("sharedMemPerMultiprocessor") or shared_kib * KIB
        return cls(
            capability=capability,
            sms=read("numSms") or None,
            warps=threads // THREADS_PER_WARP or warps,
            blocks=blocks,
            registers=read("regsPerMultiprocessor") or REGISTERS_PER_SM,
            shared_memory=shared_memory,
            default_shared_memory=read("sharedMemPerBlock") or DEFAULT_SHARED_MEMORY,
            opt_in_shared_memory=read("sharedMemPerBlockOptin")
            or shared_memory - _reserved(capability),
        )


@dataclass(frozen=True, slots=True)
class Residency:
    """What one SM holds of a kernel whose grid is large enough to fill it."""

    blocks: int
    warps: int
    max_warps: int
    percent: float  # 100 * warps / max_warps, the theoretical occupancy
    limits: tuple[Limit, ...]  # several when they run out together


def residency(
    device: Device | None,
    registers: int | None,
    shared_memory: int | None,
    block: Sequence[int] | None,
) -> Residency | None:
    """Blocks and warps that fit on one SM, as cudaOccMaxActiveBlocksPerMultiprocessor counts them.

    The arguments are a kernel event's own: registers of a thread, bytes of shared memory of a block
    (static and dynamic together), threads of a block along x, y and z. None when one is missing or
    when no SM of this GPU can hold such a block.

    Two things no trace tells are assumed: that the SM splits its memory in favour of shared memory
    (the default of cuda_occupancy.h), and that the blocks are not tied together in clusters.
    """
    registers, shared_memory, threads = _whole(registers), _whole(shared_memory), _product(block)
    if device is None or registers is None or shared_memory is None or threads is None:
        return None
    if (
        threads > THREADS_PER_BLOCK
        or registers > REGISTERS_PER_THREAD
        or shared_memory > device.opt_in_shared_memory
    ):
        return None

    warps = -(-threads // THREADS_PER_WARP)
    fit: dict[Limit, int] = {}  # how many blocks each of the four has room for
    if warp_registers := _round_up(registers * THREADS_PER_WARP, REGISTER_UNIT):
        # By partition first: what two of them have left over does not add up to a warp.
        fit["registers"] = device.registers // PARTITIONS // warp_registers * PARTITIONS // warps
    unit = 256 if device.capability < (8, 0) else 128
    if allocated := _round_up(shared_memory + _reserved(device.capability), unit):
        fit["shared memory"] = device.shared_memory // allocated
    fit["warps"] = device.warps // warps
    fit["blocks"] = device.blocks

    blocks = min(fit.values())
    if blocks == 0:
        return None
    return Residency(
        blocks=blocks,
        warps=blocks * warps,
        max_warps=device.warps,
        percent=100 * blocks * warps / device.warps,
        limits=tuple(limit for limit, most in fit.items() if most == blocks),
    )


def kineto_estimate(
    device: Device | None,
    registers: int | None,
    shared_memory: int | None,
    grid: Sequence[int] | None,
    block: Sequence[int] | None,
    *,
    opt_in: bool = False,
) -> int | None:
    """The profiler's "est. achieved occupancy %", computed again; None where it cannot be.

    Kineto asks cuda_occupancy.h how many blocks an SM holds, takes fewer where the grid has fewer
    for each SM, and counts threads where `residency` counts warps. It asks with the default limit
    on a block's shared memory, so that a block above 48 KiB cannot run: 0 blocks, 0 %. With
    `opt_in=True` the limit is the one such a kernel is really launched under; all else is the same.

    Source: computeOccupancyMetrics (kernelOccupancy before 2026) in pytorch/kineto,
    libkineto/src/DeviceProperties.cpp, which sets FUNC_SHMEM_LIMIT_DEFAULT.
    """
    resident, grid_blocks = residency(device, registers, shared_memory, block), _product(grid)
    asked, threads = _whole(shared_memory), _product(block)
    if device is None or asked is None or threads is None:
        return None
    if resident is None or grid_blocks is None or device.sms is None:
        return None
    runs = opt_in or asked <= device.default_shared_memory
    # In single precision, as Kineto: 82.5 can come out as 82.49999 and print as 82.
    blocks = min(resident.blocks if runs else 0, _float32(_float32(grid_blocks) / device.sms))
    running = _float32(blocks * threads)
    return int(0.5 + 100.0 * _float32(running / (device.warps * THREADS_PER_WARP)))


def reported_zero_reason(
    device: Device | None,
    reported: float | None,
    registers: int | None,
    shared_memory: int | None,
    grid: Sequence[int] | None,
    block: Sequence[int] | None,
) -> ZeroReason | None:
    """Why the profiler's figure reads 0. None when it does not, or when the trace does not say why.

    The launch call plays no part: on an H200 a kernel with 65,536 bytes of shared memory a block
    read 0 though cudaLaunchKernel started it, and one with 16,384 bytes read 50 though
    cuLaunchKernelEx did. Where shared memory and a tiny grid would each do, it is shared memory.
    """
    if reported is None or reported != 0:
        return None
    limit = device.default_shared_memory if device else DEFAULT_SHARED_MEMORY
    if (_whole(shared_memory) or 0) > limit:
        return "shared memory over default limit"
    if kineto_estimate(device, registers, shared_memory, grid, block) == 0:
        return "tiny grid"
    return None


def _reserved(capability: tuple[int, int]) -> int:
    """Bytes of shared memory that the driver keeps for itself in every block."""
    return KIB if capability >= (8, 0) else 0


def _round_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _float32(value: float) -> float:
    return struct.unpack("f", struct.pack("f", value))[0]


def _whole(value: object) -> int | None:
    """A count, as JSON may hold it; None for anything that is no count."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # CUDA keeps these as C ints: more is no measurement. A rewritten trace may say 128.0 for 128.
    return int(value) if 0 <= value < 2**31 and value % 1 == 0 else None


def _product(sizes: Sequence[int] | None) -> int | None:
    """Threads of a block or blocks of a grid; None unless it has 1 to 3 sizes, none of them 0."""
    if not isinstance(sizes, Sequence) or not 1 <= len(sizes) <= 3:
        return None
    counts = known(_whole(size) for size in sizes)
    return prod(counts) if counts and all(counts) else None
