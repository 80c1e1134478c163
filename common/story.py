"""The border: what a recording tells of itself. The harness writes it, the reader reads it.

Nothing is ever parsed out of a file's name: shape, types, versions and the GPU's limits stand in
the trace, under METADATA_KEY. One frozen type for both sides, compared by value: recordings were
made under the same conditions if their `conditions` are equal, however their files are laid out.
"""

import re
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

METADATA_KEY = "profiling_attention"

Dtype: TypeAlias = Literal["bf16", "fp16", "fp32"]
Mode: TypeAlias = Literal["eager", "compile"]
DTYPES: tuple[Dtype, ...] = ("bf16", "fp16", "fp32")
MODES: tuple[Mode, ...] = ("eager", "compile")

Size = Annotated[int, msgspec.Meta(ge=1, lt=1 << 53)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
Finite = Annotated[float, msgspec.Meta(ge=0, lt=1e308)]  # NaN is neither


class Device(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Where it ran. The limits are those of Kineto's own `deviceProperties`, by their names there;
    bytes and counts, None where nobody told."""

    type: Literal["cuda", "cpu"]
    name: str
    compute_major: Count | None = None
    compute_minor: Count | None = None
    num_sms: Count | None = None
    total_global_mem: Count | None = None
    warp_size: Count | None = None
    max_threads_per_multiprocessor: Count | None = None
    regs_per_multiprocessor: Count | None = None
    shared_mem_per_block: Count | None = None
    shared_mem_per_block_optin: Count | None = None
    shared_mem_per_multiprocessor: Count | None = None


class Versions(msgspec.Struct, frozen=True):
    torch: str
    cuda: str | None = None
    cudnn: Count | None = None
    triton: str | None = None
    python: str | None = None


class Steps(msgspec.Struct, frozen=True):
    """The profiler's schedule."""

    wait: Count
    warmup: Count
    active: Size


class Unrecorded(msgspec.Struct, frozen=True):
    """The same step with nothing recorded, in the same process, before its first recording."""

    process: Count  # its number: the spread between processes is not that within one
    cpu_ns: tuple[Count, ...]  # of each call, by Python's clock


class Conditions(msgspec.Struct, frozen=True):
    """What recordings must share for their numbers to be compared.

    `shape` is (batch, heads, seq, head_dim); seq is None for what several lengths share.
    """

    shape: tuple[Size, Size, Size | None, Size]
    dtype: Dtype
    mode: Mode
    device: Device
    versions: Versions
    steps: Steps | None

    def at_any_length(self) -> "Conditions":
        batch, heads, _, head_dim = self.shape
        return msgspec.structs.replace(self, shape=(batch, heads, None, head_dim))


class Story(msgspec.Struct, frozen=True):
    """What our scripts say of a run. Raises msgspec.ValidationError when it is made of anything
    else."""

    script: str  # without .py
    title: str
    variant: str  # such as its backend; "" where a script has one variant
    label: str  # of the record_function range around a forward
    shape: tuple[Size, Size, Size, Size]  # batch, heads, seq, head_dim
    dtype: Dtype
    mode: Mode
    device: Device
    versions: Versions
    steps: Steps | None = None
    configuration: str | None = None  # how the kernel was set up, in words
    peak_bytes: Count | None = None  # of a forward over its inputs
    relative_error: Finite | None = None  # against float64
    table_totals: dict[str, str] = {}  # the foot of the profiler's table
    calls: tuple[str, ...] = ()  # of what each recorded forward was, where they differ
    unrecorded: Unrecorded | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.script, self.variant

    @property
    def number(self) -> str:
        """04_a of the script's name; an experiment's whole."""
        return self.script[:4] if re.match(r"\d\d_[a-z]_", self.script) else self.script

    @property
    def seq(self) -> int:
        return self.shape[2]

    @property
    def compiled(self) -> bool:
        return self.mode == "compile"

    @property
    def conditions(self) -> Conditions:
        return Conditions(self.shape, self.dtype, self.mode, self.device, self.versions, self.steps)


def read_story(told: Any) -> Story | None:
    """The story that a file tells, if it is whole: one that somebody cut or rewrote is as good as
    none."""
    try:
        return msgspec.convert(told, Story)
    except msgspec.ValidationError:
        return None


def as_builtins(told: Story | Conditions | Device) -> dict:
    """For JSON, under the names that stand in the file."""
    return msgspec.to_builtins(told)
