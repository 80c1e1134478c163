"""The tutorial's scripts as modules: their names begin with a digit, so no import finds them.

Each defines `Options` and `lesson(options)`, which is all that the rest of the project asks of one.
"""

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).parent.parent


@cache
def load(name: str) -> ModuleType:
    """The script of this name, without .py; loaded once. Raises what its own lines raise."""
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / f"{name}.py")
    assert spec and spec.loader  # of a file's place there always are
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # where dataclasses and Triton look for it
    spec.loader.exec_module(module)
    return module
