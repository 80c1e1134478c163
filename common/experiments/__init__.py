"""What every experiment is made of: recipes to record, and a reader of what was recorded.

An experiment is a module of this folder with a function `read` from its recordings to a Result, and
a function `recipes` that says what to record; the latter alone knows torch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..cli import UserError, shown
from ..read.observe import Observation
from ..story import Story, Unrecorded

if TYPE_CHECKING:  # of recipes
    from ..record.harness import Subject
    from ..record.workload import Attention, Workload

Synchronise: TypeAlias = Literal["warm-up", "every step", "never"]
BACKENDS = ("math", "efficient", "flash", "cudnn")


@dataclass(frozen=True)
class Recorded:
    """A recording of an experiment, and what it tells of itself."""

    seen: Observation
    story: Story

    @property
    def variant(self) -> str:
        return self.story.variant

    @property
    def file(self) -> str:
        return shown(self.seen.trace.path)

    def require_gpu(self) -> None:
        if not self.seen.on_gpu:
            raise UserError(f"{self.file}: no kernel in it; recorded without a GPU?")


@dataclass(frozen=True)
class Result:
    """`heads` and `lines` are the table; `found` is the same for programs."""

    heads: tuple[str, ...]
    lines: list[list[str]]
    found: list[dict[str, Any]]
    conclusions: list[str]


@dataclass(frozen=True)
class Recipe:
    """One recording of an experiment."""

    variant: str
    work: Workload
    attention: Attention
    subject: Subject
    backend: str | None = None  # of SDPA, pinned
    active: int = 3
    synchronise: Synchronise = "warm-up"
    calls: tuple[str, ...] = ()  # of what each recorded forward is, where they differ
    unrecorded: Unrecorded | None = None


@dataclass(frozen=True)
class Asked:
    """What a recipe may depend on."""

    work: Workload
    forwards: int = 50
    process: int = 1


Recipes: TypeAlias = Callable[[Asked], list[Recipe]]


def us(ns: float | None) -> float | None:
    return None if ns is None else round(ns / 1e3, 3)


def sdpa(q, k, v):
    """F.scaled_dot_product_attention, causal."""
    import torch.nn.functional as F

    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def sdpa_subject(backend: str | None) -> Subject:
    from ..record.harness import Subject

    return Subject("SDPA", label="sdpa_fwd", stores_scores=backend == "math")
