"""The rooms and their borders: who may import whom, and that reading needs no torch."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from build import ROOT, SCRIPTS

COMMON = ROOT / "common"
FILES = sorted(COMMON.rglob("*.py"))
# Rooms, and modules beside them, that read what was recorded.
WITHOUT_TORCH = (
    "read", "compare", "show", "experiments",
    "story", "cli", "look", "look_many", "glance", "experiment", "kernel_names", "share", "scripts",
)  # fmt: skip
MAY_IMPORT = {
    "story": set(),
    "interrupts": set(),
    "cli": {"interrupts"},
    "read": {"story", "cli"},
    "compare": {"story", "cli", "read"},
    "show": {"story", "cli", "read", "compare"},
    "record": {"story", "cli"},
    "kernels": set(),
}


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room(path: Path) -> str:
    """The folder, or the name of a module that lies in none."""
    return path.relative_to(COMMON).parts[0].removesuffix(".py")


def imports(path: Path) -> list[tuple[int, str]]:
    """(level, name) of all that a file imports, wherever in it; `from . import a` as (1, "a")."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = [node.module] if node.module else []
            found += [(node.level, ".".join([*start, alias.name])) for alias in node.names]
    return found


def rooms_used(path: Path) -> set[str]:
    """The rooms of ours that a file under common imports from."""
    depth = len(path.relative_to(COMMON).parts)  # of dots that lead to common
    inside = {room(path)} if depth > 1 else set()
    return {
        name.split(".")[0] if level == depth else room(path)
        for level, name in imports(path)
        if level
    } - inside


def test_reading_loads_neither_torch_nor_numpy():
    """Every module, found by walking the folders; the first that brings one along is named."""
    names = [module(path) for path in FILES if room(path) in WITHOUT_TORCH]
    assert {name.split(".")[1] for name in names} == set(WITHOUT_TORCH)
    code = (
        "import importlib, sys\n"
        f"for name in {names}:\n"
        "    importlib.import_module(name)\n"
        "    if found := {'torch', 'numpy'} & set(sys.modules): sys.exit(f'{name}: {found}')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_imports_point_one_way(name):
    """record and read share the story and the command line, and nothing else."""
    files = [path for path in FILES if room(path) == name]
    assert files
    for path in files:
        assert rooms_used(path) <= MAY_IMPORT[name], module(path)


def test_modules_import_one_another_relatively():
    """So that a wheel can install them under another name."""
    for path in FILES:
        absolute = [name for level, name in imports(path) if not level]
        assert not [name for name in absolute if name.split(".")[0] == "common"], module(path)


def test_scripts_import_nobody_of_each_other():
    """Nor what could load one: each is read alone."""
    loaders = ("importlib", "runpy", "common.scripts", "common.record_all", "common.experiment")
    for script in SCRIPTS.values():
        found = imports(ROOT / f"{script}.py")
        assert all(level == 0 for level, _ in found), script
        assert not [name for _, name in found if name.startswith((*loaders, "04_"))], script
