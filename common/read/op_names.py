"""The names of CPU ops as people say them: the only place that words a chain of ops.

JSON keeps the names as they stand in the trace.
"""

import re
from collections.abc import Iterable
from itertools import groupby

_LONGEST = 30
# What torch.compile puts around its kernels. Their names are hashes: said in words, or not at all.
_GRAPH = re.compile(r"(?:## )?Call CompiledFxGraph\b.*")
_REGION = re.compile(r"Torch-Compiled Region\b.*")
_ENGINE = "autograd::engine::evaluate_function: "  # around the node of that name
_FUSED = re.compile(r"(?:triton_[a-z]+|(?:graph_\d+_)?cpp)_fused_+(.*)_\d+")


def is_compiled(name: str) -> bool:
    """Whether an op is what torch.compile puts around compiled code."""
    return bool(_GRAPH.match(name) or _REGION.match(name))


def said(name: str) -> str:
    """One op: masked_fill, compiled graph. Empty for a wrapper that says nothing."""
    if _GRAPH.match(name):
        return "compiled graph"
    if _REGION.match(name):
        return ""
    if fused := _FUSED.fullmatch(name):
        return fused[1] if len(fused[1]) <= _LONGEST else f"{fused[1][: _LONGEST - 1]}…"
    return name.removeprefix(_ENGINE).removeprefix("aten::")


def culprit(name: str) -> str:
    """A call, an op or a word of its own, as it stands; what torch.compile names by a hash, not."""
    return "compiled graph" if is_compiled(name) else name


def chain(path: Iterable[str]) -> str:
    """How a step came about, outermost first: masked_fill › clone › copy_. An op that does nothing
    but call its like is said once."""
    return " › ".join(name for name, _ in groupby(map(said, path)) if name) or "no op"
