"""Numbers of which one may be unknown: then so is what is made of all of them."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def known(values: Iterable[T | None]) -> list[T] | None:
    """All of them, or None when one is unknown."""
    found = []
    for value in values:
        if value is None:
            return None
        found.append(value)
    return found


def total(numbers: Iterable[float | None]) -> float | None:
    """Their sum, or None when one is unknown."""
    found = known(numbers)
    return None if found is None else sum(found)
