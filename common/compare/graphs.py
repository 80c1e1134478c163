"""A CUDA graph's kernels beside an eager recording of the same model: there each has its op.

One launch runs them all, so that the graph's own trace knows no op for any of them.
"""

from collections.abc import Sequence
from difflib import SequenceMatcher

from ..read.observe import Observation, Step


def has_graph(seen: Observation) -> bool:
    return any(step.on_gpu and step.on_gpu.graph for step in seen.steps)


def eager_steps(graph: Observation, eager: Observation) -> list[Step | None]:
    """For each of the graph's steps the eager one that ran the same kernel, in order; None where
    there is none. Kernels are the same by name; a memset or copy by what it is."""
    theirs = [step for step in eager.steps if not (step.on_gpu and step.on_gpu.graph)]
    found: list[Step | None] = [None] * len(graph.steps)
    matcher = SequenceMatcher(None, _names(graph.steps), _names(theirs), autojunk=False)
    for a, b, size in matcher.get_matching_blocks():
        for offset in range(size):
            found[a + offset] = theirs[b + offset]
    return found


def _names(steps: Sequence[Step]) -> list[str]:
    return [step.name for step in steps]
