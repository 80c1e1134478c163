"""Ctrl-C while a command imports, runs and ends: exit code 130, at most one line."""

import random
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from build import ROOT, recording


def started(*command) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *map(str, command)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell's background jobs ignore it, and so would their children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def test_while_a_command_imports(tmp_path):
    """The command's first import is a module that takes long."""
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text(
        "import time\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    code = (
        f"import sys, runpy; sys.path[:0] = [{str(ROOT)!r}, {str(tmp_path)!r}]\n"
        "sys.orig_argv = ['python', '-m', 'common.look']\n"
        "runpy.run_module('common.look', run_name='__main__')"
    )
    process = started("-c", code)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")


@pytest.mark.parametrize("seed", range(6))
def test_at_any_moment(seed):
    """But the interpreter's own start, which nothing of ours can change."""
    process = started("-m", "common.look", recording("04_a"))
    time.sleep(0.1 + random.Random(seed).random())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    ours = process.returncode in (0, 130) and err.count("\n") <= 1
    assert ours or "/common/" not in err


def test_another_program_keeps_its_own_handler():
    code = "import signal as s, common; print(s.getsignal(s.SIGINT) is s.default_int_handler)"
    assert started("-c", code).communicate()[0] == "True\n"


@pytest.mark.parametrize("script", sorted(ROOT.glob("04_*.py")), ids=lambda path: path.name[:4])
def test_while_a_script_imports_torch(script, tmp_path):
    """A file named torch.py beside nothing else: what the script imports takes long."""
    (tmp_path / "torch.py").write_text("import time\nprint('ready', flush=True)\ntime.sleep(60)")
    code = (
        f"import sys, runpy; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]\n"
        f"sys.argv[0] = {str(script)!r}; sys.orig_argv = ['python', {str(script)!r}]\n"
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    process = started("-c", code)
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "")
