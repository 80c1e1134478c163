"""What is most worth seeing, in words."""

from collections.abc import Sequence

from ..compare.worth import (
    CompiledHidden,
    Copies,
    CopiesGone,
    CoresUnused,
    Fused,
    MaskBuilt,
    OneKernel,
    OneOp,
    Sight,
    Slowest,
    Took,
)
from ..read.kernel_names import brief
from ..read.op_names import said
from .words import percent, plural


def in_words(sights: Sequence[Sight]) -> str:
    return " · ".join(map(_said, sights)) or "no step in this trace"


def _said(sight: Sight) -> str:
    match sight:
        case Took(backend):
            return f"PyTorch took {backend}"
        case OneKernel(step, behind_memset):
            words = f"one kernel, {brief(step.kernel)}" if step.kernel else "one kernel"
            if behind_memset:
                words += ", behind a memset"
            if fits := step.residency:
                words += f", {fits.warps} of {fits.max_warps} warps on an SM"
            return words
        case OneOp(name):
            return f"one op, {said(name)}"
        case Copies(count, ops):
            source = f" from {' and '.join(map(said, ops))}" if ops else ""
            return f"+{plural(count, 'copy')}{source}"
        case CopiesGone(count, others):
            gone = "the copy of 04_a is gone" if count == 1 else "the copies of 04_a are gone"
            return gone + (", all else is there" if others else "")
        case CoresUnused(dtypes):
            read = f", which read {' and '.join(dtypes)}" if dtypes else ""
            return f"Tensor Cores unused by the matmuls{read}"
        case MaskBuilt():
            return "builds the mask in every call"
        case Fused(ops):
            return f"one compiled kernel does {' and '.join(ops)}"
        case CompiledHidden():
            return "compiled C++ leaves no event on the CPU"
        case Slowest(kind, share, on_gpu):
            return f"{kind} takes most, {percent(share)} of {'GPU' if on_gpu else 'op'} time"
