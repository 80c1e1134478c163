"""Options, and errors as one line."""

import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import partial

import pytest

from common.cli import UserError, one_line_errors, option, parse, positive


@dataclass(frozen=True)
class Options:
    size: int = option(4, "how many", type=positive)
    colour: str = option("red", "which", choices=("red", "blue"))
    loud: bool = option(False, "say more", action="store_true")


def read(*argv):
    return parse(Options, "What it does.", "--size 3", argv)


def test_defaults_and_values():
    assert read() == Options(4, "red", False)
    assert read("--size", "7", "--colour", "blue", "--loud") == Options(7, "blue", True)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--size", "0"), ("--size", "0", "at least 1")),
        (("--size", "-3"), ("--size", "-3")),
        (("--size", "x"), ("--size", "'x'", "whole number")),
        (("--size", "1.5"), ("'1.5'", "whole number")),
        (("--colour", "green"), ("green", "red", "blue")),
        (("--siz", "3"), ("--siz",)),
        (("--nonsense",), ("--nonsense",)),
        (("stray",), ("stray",)),
    ],
)
def test_bad_options_name_the_value_and_the_help(argv, words):
    with pytest.raises(UserError) as error:
        read(*argv)
    assert all(word in str(error.value) for word in (*words, "--help"))


def test_help_tells_defaults_choices_and_an_example(capsys):
    with pytest.raises(SystemExit) as stop:
        read("--help")
    text = capsys.readouterr().out
    assert stop.value.code == 0
    assert "how many (default: 4)" in text
    assert "{red,blue}" in text and "(default: red)" in text
    assert "default: False" not in text  # a flag's default says nothing
    assert "--size 3" in text


def test_an_error_is_one_line_and_exit_code_2(capsys):
    with pytest.raises(SystemExit) as stop, one_line_errors():
        raise UserError("seq 0 is\n  too   small")
    assert stop.value.code == 2
    assert capsys.readouterr().err == "error: seq 0 is too small\n"


def test_a_bug_of_ours_is_not_hidden():
    with pytest.raises(ZeroDivisionError), one_line_errors():
        _ = 1 / 0


def run(code: str, **more) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", "from common.cli import one_line_errors\n" + code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def test_without_torch_recording_is_one_line(capsys):
    with pytest.raises(SystemExit) as stop, one_line_errors():
        raise ModuleNotFoundError("No module named 'torch'", name="torch")
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        "error: recording needs PyTorch; leave --no-default-groups out\n"
    )


def test_any_other_missing_module_is_a_fault_of_ours():
    with pytest.raises(ModuleNotFoundError), one_line_errors():
        raise ModuleNotFoundError("No module named 'msgspec'", name="msgspec")


def test_interrupt_is_one_line_and_exit_code_130():
    process = run(
        "import time\nwith one_line_errors():\n print('ready', flush=True)\n time.sleep(30)",
        # A shell's background jobs ignore it, and so would their children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert err.startswith("error: interrupted") and err.count("\n") == 1


def test_a_reader_that_has_gone_is_no_error():
    process = run("with one_line_errors():\n for i in range(10**6): print(i)")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=20) == 1
    assert process.stderr.read() == ""
