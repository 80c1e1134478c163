"""Options, and errors as one line."""

import argparse
import errno
import os
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from build import ROOT

from common.cli import (
    UserError,
    one_line_errors,
    option,
    parse,
    positive,
    positive_number,
    put,
    require_writable,
    scratch,
    shown,
    typed,
    write_whole,
)


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


RECORDING = "traces/recorded/h200/04_a_naive_attention/8_16_1024_64_eager.json.gz"
COMMANDS = (
    f"-m common.look {RECORDING}",
    f"-m common.look {RECORDING} --json",
    "-m common.look --help",
    "-m common.kernel_names nvjet_tst",
    "-m common.glance",
)


def shell(command: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        f"{shlex.quote(sys.executable)} {command}", shell=True, cwd=ROOT, capture_output=True,
        text=True, timeout=120,
    )  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("command", COMMANDS)
def test_output_that_cannot_be_written_is_one_line(command):
    for where, words in (("> /dev/full", "cannot write the output: No space"), (">&-", "closed")):
        done = shell(f"{command} {where}")
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert words in done.stderr


def test_standard_error_or_input_that_is_closed():
    done = shell("-m common.look nowhere.json 2>&-")
    assert (done.returncode, done.stdout) == (2, "")
    done = shell("-m common.look nowhere.json 2>/dev/full")
    assert (done.returncode, done.stdout) == (2, "")
    done = shell("-m common.kernel_names <&-")
    assert done.returncode == 2 and done.stderr.startswith("error: no kernel names")


def test_a_folder_we_stand_in_that_is_gone(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert shown(Path("t.json")) == "t.json"
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert shown(loop) == str(loop)


def test_a_path_as_a_shell_reads_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("my traces/a b.json", "$(x)'.json", "-x.json", "~a", "plain.json"):
        echoed = subprocess.check_output(f"printf %s {typed(Path(name))}", shell=True, text=True)
        assert Path(echoed) == Path(name)


def test_home_is_meant_wherever_it_stands(monkeypatch):
    @dataclass(frozen=True)
    class Places:
        traces: Path = option(Path("traces"), "where", type=Path)

    monkeypatch.setenv("HOME", "/somebody")
    for argv in (["--traces=~/x"], ["--traces", "~/x"]):
        assert parse(Places, "", "", argv).traces == Path("/somebody/x")
    assert parse(Places, "", "", ["--traces=a/~"]).traces == Path("a/~")


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "x", ""])
def test_a_limit_is_a_number_above_0(text):
    with pytest.raises(argparse.ArgumentTypeError):
        positive_number(text)


def test_json_alone_is_on_the_output_whatever_a_library_prints():
    code = (
        "import ctypes, dataclasses, sys\n"
        "from common.cli import one_line_errors, option, parse\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class Options:\n json: bool = option(False, 'JSON', action='store_true')\n"
        "with one_line_errors():\n"
        " parse(Options, '', '')\n"
        " ctypes.CDLL(None).puts(b'library')\n"
        " print('{}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--json"], cwd=ROOT, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("{}\n", "library\n")


# ── Files ─────────────────────────────────────────────────────────────────────────────────────────


def test_files_are_replaced_together_or_not_at_all(tmp_path, monkeypatch):
    trace, table = tmp_path / "t.json", tmp_path / "t.txt"
    put({trace: b"old trace", table: b"old table"})
    real, moved = os.replace, []

    def replace(source, target):
        if target == table and b"new" in Path(source).read_bytes():
            raise OSError(errno.EIO, "Input/output error")
        moved.append(target)
        real(source, target)

    monkeypatch.setattr("common.cli.os.replace", replace)
    with pytest.raises(OSError, match="Input/output"):
        put({trace: b"new trace", table: b"new table"})
    assert moved[0] == trace  # it had been replaced
    assert [path.read_bytes() for path in (trace, table)] == [b"old trace", b"old table"]
    assert sorted(tmp_path.iterdir()) == [trace, table]
    trace.unlink()
    with pytest.raises(OSError, match="Input/output"):
        put({trace: b"new trace", table: b"new table"})
    assert sorted(tmp_path.iterdir()) == [table] and table.read_bytes() == b"old table"


def test_what_is_no_regular_file_is_not_replaced(tmp_path):
    pipe, folder, link = tmp_path / "pipe", tmp_path / "folder", tmp_path / "link"
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(pipe)
    for path in (pipe, folder, link, Path("/dev/null")):
        for ask in (partial(require_writable, "--html", path),
                    partial(write_whole, "--html", path, "text")):  # fmt: skip
            with pytest.raises(UserError, match=f"--html .*{path.name}: it is a "):
                ask()
    assert stat.S_ISFIFO(os.lstat(pipe).st_mode) and stat.S_ISCHR(os.lstat("/dev/null").st_mode)


def test_a_link_is_replaced_and_never_what_it_leads_to(tmp_path, monkeypatch):
    precious, link = tmp_path / "precious", tmp_path / "page.html"
    precious.write_text("precious")
    link.symlink_to(precious)
    # Whatever name one could guess is a link as well.
    monkeypatch.setattr("common.cli.os.urandom", lambda count: b"\0" * count)
    planted = tmp_path / f".{'0' * 16}.part"
    planted.symlink_to(precious)
    with pytest.raises(UserError, match="File exists"):
        write_whole("--html", link, "page")
    planted.unlink()
    monkeypatch.undo()
    write_whole("--html", link, "page")
    assert precious.read_text() == "precious" and link.read_text() == "page"
    assert not link.is_symlink()


def test_the_next_run_clears_what_a_killed_one_left(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import os, pathlib, signal, sys, tempfile\n"
        "from common import cli\n"
        f"tempfile.tempdir = {str(tmp_path)!r}\n"
        "cli.os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)\n"
        "with cli.scratch() as away:\n"
        "    (away / 'raw.json').write_text('host name')\n"
        f"    cli.put({{pathlib.Path({str(tmp_path / 't.json')!r}): b'half'}})\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == -signal.SIGKILL
    left = sorted(path.name for path in tmp_path.iterdir())
    assert len(left) == 2 and left[0].endswith(".part") and left[1].startswith("profiling-")
    somebody_s = tmp_path / "report.part"
    somebody_s.write_text("")
    with scratch() as busy:  # too young to be told from one that begins
        assert len(list(tmp_path.iterdir())) == 4
        for path in tmp_path.iterdir():
            os.utime(path, (0, 0))
        with scratch() as other:
            assert sorted(tmp_path.iterdir()) == sorted([busy, other, somebody_s])
    assert list(tmp_path.iterdir()) == [somebody_s]
