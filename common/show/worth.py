"""What is most worth seeing, in words."""

from collections.abc import Iterable, Sequence

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
from .language import say
from .words import percent, plural


def in_words(sights: Sequence[Sight]) -> str:
    return " · ".join(map(_said, sights)) or say("no step in this trace")


def _said(sight: Sight) -> str:
    match sight:
        case Took(backend):
            return say("PyTorch took {backend}", backend=backend)
        case OneKernel(step, behind_memset):
            words = say("one kernel")
            if step.kernel:
                words = say("one kernel, {name}", name=brief(step.kernel))
            if behind_memset:
                words = say("{kernel}, behind a memset", kernel=words)
            if fits := step.residency:
                words += say(
                    ", {warps} of {most} warps on an SM", warps=fits.warps, most=fits.max_warps
                )
            return words
        case OneOp(name):
            return say("one op, {name}", name=said(name))
        case Copies(count, ops):
            copies = plural(count, "copy")
            if not ops:
                return f"+{copies}"
            return say("+{copies} from {ops}", copies=copies, ops=_all(map(said, ops)))
        case CopiesGone(count, others):
            gone = say("the copy of 04_a is gone" if count == 1 else "the copies of 04_a are gone")
            return say("{gone}, all else is there", gone=gone) if others else gone
        case CoresUnused(dtypes):
            if not dtypes:
                return say("Tensor Cores unused by the matmuls")
            return say("Tensor Cores unused by the matmuls, which read {types}", types=_all(dtypes))
        case MaskBuilt():
            return say("builds the mask in every call")
        case Fused(ops):
            return say("one compiled kernel does {ops}", ops=_all(ops))
        case CompiledHidden():
            return say("compiled C++ leaves no event on the CPU")
        case Slowest(kind, share, on_gpu):
            return say(
                "{kind} takes most, {share} of GPU time"
                if on_gpu
                else "{kind} takes most, {share} of op time",
                kind=kind,
                share=percent(share),
            )


def _all(names: Iterable[str]) -> str:
    return say(" and ").join(names)
