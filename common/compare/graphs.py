"""A CUDA graph's kernels beside an eager recording of the same model: there each has its op.

One launch runs them all, so that the graph's own trace knows no op for any of them.
"""

from ..read.observe import Observation, Step
from .rows import aligned


def has_graph(seen: Observation) -> bool:
    return any(step.on_gpu and step.on_gpu.graph for step in seen.steps)


def eager_steps(graph: Observation, eager: Observation) -> list[Step | None]:
    """For each of the graph's steps the eager one that ran the same kernel, in order; None where
    there is none. Kernels are the same by name; a memset or copy by what it is."""
    theirs = [step for step in eager.steps if not (step.on_gpu and step.on_gpu.graph)]
    pairs = aligned([step.name for step in graph.steps], [step.name for step in theirs])
    return [None if same is None else theirs[same] for step, same in pairs if step is not None]
