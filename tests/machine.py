"""What a test may find missing on a machine."""

from importlib.metadata import version

import pytest


def release(package: str) -> tuple[int, ...]:
    return tuple(map(int, version(package).split(".")[:2]))


# Triton 3.6 makes numbers of arrays of one number, which NumPy 2.5 refuses.
interpreter = pytest.mark.skipif(
    release("triton") < (3, 7) and release("numpy") >= (2, 5),
    reason="the interpreter of Triton 3.6 does not know NumPy 2.5",
)
