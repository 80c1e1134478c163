"""Numbers of which one may be unknown: then so is what is made of all of them."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
N = TypeVar("N", int, float)


def known(values: Iterable[T | None]) -> list[T] | None:
    """All of them, or None when one is unknown."""
    found = []
    for value in values:
        if value is None:
            return None
        found.append(value)
    return found


def total(numbers: Iterable[N | None]) -> N | None:
    """Their sum, or None when one is unknown."""
    found: N | None = None
    for number in numbers:
        if number is None:
            return None
        found = number if found is None else found + number
    return 0 if found is None else found
