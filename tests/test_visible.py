"""A stranger's names: what a terminal would obey is spelled out wherever it is printed."""

import copy
import io
import json
from functools import partial

import pytest
from build import H200, forward, story, trace, write
from seen import groups

from common.cli import note, visible
from common.look import Options, look
from common.show import page, report
from common.show.terminal import console

HOSTILE = {
    "ESC": "\x1b[2J", "OSC": "\x1b]52;c;aGk=\x07", "BEL": "\x07", "NUL": "\x00", "return": "\r",
    "backspace": "\x08", "C1": "\x9b2J", "DEL": "\x7f", "right to left": "\u202egpj.exe\u202c",
    "isolate": "\u2067x\u2069", "zero width": "a\u200bb", "line": "\u2028", "mark": "\ufeff",
    "line break": "x\nwarning: forged", "tag": "a\U000e0041b", "soft hyphen": "a\xadb",
}  # fmt: skip
EACH = pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)


@pytest.fixture
def ask(asked):
    return partial(asked, look, Options)


def obeyed(text: str) -> list[str]:
    """What is in it that no line of a report needs."""
    return [c for c in text if c != "\n" and not (c.isprintable() or c == " ")]


def hostile(tmp_path, name, file="trace.json", **about):
    """The name stands wherever a file can say one: label, op, kernel, GPU, category, stream."""
    events = [
        forward(100, (f"aten::{name}", f"kernel {name}", 5), label=f"label {name}", stream=name),
        {"ph": "X", "cat": f"cat {name}", "name": name, "ts": 1, "dur": 1, "pid": 1, "tid": 1,
         "args": {"stream": 7, "correlation": 9}},
    ]  # fmt: skip
    device = copy.deepcopy(H200) | {"name": f"GPU {name}"}
    return write(tmp_path, trace(events, device=device, **about), file)


@EACH
def test_no_name_reaches_a_terminal(ask, tmp_path, name):
    path = hostile(tmp_path, name)
    other = hostile(tmp_path, name, "other.json")
    for arguments in ([path], ["--survey", path], [path, other], [path, "--guess", "matmul"]):
        code, out, err = ask(*arguments)
        assert code == 0 and "kernel" in out
        assert not obeyed(out + err), arguments
        assert "\nwarning: forged" not in out and "  warning: forged" not in out


def test_a_name_of_a_megabyte_is_shortened(ask, tmp_path):
    path = hostile(tmp_path, 10**6 * "x")
    for arguments in ([path], ["--survey", path], [path, path], [path, "--region", "y" * 10**6]):
        code, out, err = ask(*arguments)
        assert code == 0 or "not found" in err
        assert len(out + err) < 20_000, arguments
    assert len(ask("--json", path)[1]) > 10**6


@EACH
def test_no_name_reaches_an_error_line(ask, tmp_path, name):
    path = hostile(tmp_path, name)
    code, out, err = ask(path, "--region", f"no such {name}")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert not obeyed(err)


@EACH
def test_no_name_reaches_a_note(capsys, name):
    note(f"recorded {name}")
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("note: recorded ") and not obeyed(err)


@EACH
@pytest.mark.parametrize("form", [["--json"], ["--json", "--survey"]])
def test_json_holds_names_exactly_and_writes_nothing_raw(ask, tmp_path, name, form):
    out = ask(*form, hostile(tmp_path, name))[1]
    assert not obeyed(out)
    found = json.loads(out)
    listed = found.get("steps") or found["kernels"]
    assert [one["name"] for one in listed] == [f"kernel {name}"]
    label = found["region"] if "region" in found else found["labels"][0]["name"]
    assert label == f"label {name}"


@EACH
def test_a_page_shows_names_and_holds_nothing_raw(tmp_path, name):
    about = story(title=name, device={"type": "cuda", "name": name}, label=f"label {name}")
    text = page.page(groups(hostile(tmp_path, name, about=about)), [], {})
    assert not obeyed(text) and visible(name) in text


@EACH
def test_no_file_name_reaches_a_terminal(tmp_path, name):
    out = console()
    out.file = io.StringIO()
    report.show_files(out, tmp_path / f"{name}.json", tmp_path / f"{name}.txt")
    report.show_link(out, f"https://example.org/{name}")
    assert not obeyed(out.file.getvalue())


def test_other_letters_are_left_as_they_are():
    for text in ("µs · − › ×3", "Grüße, 注意 👋", "a\\nb"):
        assert visible(text) == text
    assert visible("a\x1bb\u202e\n") == "a\\u001bb\\u202e\\u000a"


def test_what_is_spelled_out_reads_as_json():
    for text in (*HOSTILE.values(), "\ud800"):
        assert json.loads(f'"{visible(text)}"') == text


def test_of_a_text_without_end_the_middle_is_left_out():
    text = visible("begin" + 10**6 * "x" + "end")
    assert len(text) < 1100 and text.startswith("begin") and text.endswith("end")
    assert visible(10**6 * "x", None) == 10**6 * "x"
