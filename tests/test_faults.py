"""What is wrong in a file: named as what it is, at its line and column; and what can be mended."""

import gzip
import io
import json
import lzma
import random
import re
import tarfile
import time
import zipfile

import pytest
from build import forward, kernel, op, region, trace, write

from common.cli import UserError
from common.read import faults
from common.read.trace import read

TRACE = trace(forward(100, ("mul", "k", 7)))
TEXT = json.dumps(TRACE)


def refused(path) -> str:
    with pytest.raises(UserError) as caught:
        read(path)
    assert "\n" not in str(caught.value) and path.name in str(caught.value)
    return str(caught.value)


def tar() -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        entry = tarfile.TarInfo("trace.json")
        entry.size = len(TEXT)
        archive.addfile(entry, io.BytesIO(TEXT.encode()))
    return packed.getvalue()


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("trace.json", TEXT)
    return packed.getvalue()


OTHERS = {
    "tar": (tar(), ("a tar archive", "tar -xf")),
    "tar.gz": (gzip.compress(tar()), ("a tar archive", "tar -xf")),
    "zip": (zipped(), ("a zip archive", "unzip")),
    "xz": (lzma.compress(TEXT.encode()), ("xz", "xz -dk")),
    "zstd": (b"\x28\xb5\x2f\xfd\x04\x00abc", ("zstd", "zstd -d")),
    "gzip twice": (gzip.compress(gzip.compress(TEXT.encode())), ("gzip twice", "gunzip")),
    "page": (b"<!DOCTYPE html><html>", ("HTML", "download")),
    "nsys": (b"SQLite format 3\0" + bytes(84), ("Nsight", "torch.profiler")),
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_file_of_another_kind_is_named(tmp_path, what):
    content, words = OTHERS[what]
    message = refused(write(tmp_path, content, f"t.{what}"))
    assert all(word in message for word in words) and "JSON" not in message


MAKERS = {
    "JAX": {
        "traceEvents": [
            {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
            {"ph": "X", "pid": 1, "tid": 15, "ts": 1.5, "dur": 50.5, "name": "fused_softmax",
             "args": {"hlo_op": "fusion.1", "hlo_module": "jit_attn"}},
            {},
        ]
    },
    "before Kineto": [
        {"name": "mul", "ph": "X", "ts": 1.5, "dur": 3, "tid": 1, "pid": "CPU functions",
         "args": {}}
    ],
    "Proton": [
        {"frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0}, "children": []},
        {"CUDA": {"0": {"arch": "90"}}},
    ],
    "memory": {"segments": [], "device_traces": [[]]},
    "ExecutionTraceObserver": {"schema": "1.0.2", "pid": 1, "nodes": []},
}  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
def test_a_file_of_another_maker_is_named(tmp_path, maker):
    assert maker in refused(write(tmp_path, MAKERS[maker]))


def test_events_that_are_no_work_are_no_trace(tmp_path):
    events = [{"ph": "X", "cat": "python_function", "name": "f", "ts": 1, "dur": 2}]
    assert "no ops, regions, launch calls or GPU events" in refused(write(tmp_path, events))


# ── Places ────────────────────────────────────────────────────────────────────────────────────────


def place(message: str) -> tuple[int, int]:
    line, column = re.search(r"in line (\d+), column (\d+)$", message).groups()
    return int(line), int(column)


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize(
    ("behind", "words"),
    [
        ("{}", "a second JSON document"),
        (TEXT, "a second JSON document"),
        ("[1]", "a second JSON document"),
        ("\0" * 500, "NUL bytes behind its end"),
        ("\0\n\0", "NUL bytes behind its end"),
        ("}", "unexpected '}' behind its end".removeprefix("unexpected ")),
        ("done", "token `done` behind its end"),
    ],
)
def test_what_stands_behind_the_end(tmp_path, indent, behind, words):
    text = json.dumps(TRACE, indent=indent)
    message = refused(write(tmp_path, f"{text}\n{behind}".encode()))
    assert words in message and "in a string" not in message
    assert place(message) == (text.count("\n") + 2, 1)


@pytest.mark.parametrize("word", ["this", "nope", "false alarm", "torch", "nan", "no", "log:"])
@pytest.mark.parametrize("before", ["", "\n", "  "])
def test_a_first_word(tmp_path, word, before):
    message = refused(write(tmp_path, f"{before}{word} and more text".encode()))
    first = re.match(r"\w+", word)[0]
    assert f"unexpected token `{first}`" in message or "expected" in message.lower()
    if first != "false":
        assert place(message) == (1 + before.count("\n"), 1 + before.count(" "))


@pytest.mark.parametrize(
    "token", ["True", "None", "oops", "tru", "nul", "inf", "-inf", "+1", "'a'"]
)
def test_columns_are_characters(tmp_path, token):
    """As an editor counts them: a letter of two bytes is one column."""
    text = json.dumps(trace(region(0, 10, "wörter 字"), op("x", 1, "HERE")), ensure_ascii=False)
    message = refused(write(tmp_path, text.replace('"HERE"', token).encode()))
    at = text.index('"HERE"') + 1
    assert place(message)[0] == 1 and at <= place(message)[1] <= at + 1


def test_a_control_character_outside_strings_is_in_none(tmp_path):
    text = TEXT.replace('"ph"', '\x01"ph"', 1)
    message = refused(write(tmp_path, text.encode()))
    assert "raw control character 0x01 in line 1" in message
    assert place(message) == (1, text.index("\x01") + 1)


# ── What is mended ────────────────────────────────────────────────────────────────────────────────


def test_non_finite_numbers_are_found_outside_strings_alone():
    """As a plain walk from character to character finds them."""

    def walk(text: str) -> tuple[str, int]:
        out, at, count, inside = [], 0, 0, False
        while at < len(text):
            token = re.compile(r"-?\b(NaN|Infinity)\b").match(text, at)
            if inside and text[at] == "\\":
                step = text[at : at + 2]
            elif not inside and token:
                step, count = "null", count + 1
            else:
                step = text[at]
                inside ^= step == '"'
            out.append(step)
            at = token.end() if token and not inside and step == "null" else at + len(step)
        return "".join(out), count

    rng = random.Random(1)
    values = [float("nan"), float("inf"), -float("inf"), 1, "NaN", 'a"NaN', "\\", '\\"Infinity']
    for _ in range(2000):
        text = json.dumps([rng.choice(values) for _ in range(rng.randrange(30))])
        mended, count = walk(text)
        assert faults.mended(text.encode()) == (mended.encode(), count)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (r"a\udcffb", "a\ufffdb"),
        (r"\ud800", "\ufffd"),
        (r"\ud83d\ude00", "😀"),
        (r"\ud800\ud83d\ude00\udc00", "\ufffd😀\ufffd"),
        (r"\\udcff", r"\udcff"),
        (r"\\\udcff", "\\\ufffd"),
        (r"\uD800\u0041", "\ufffdA"),
    ],
)
def test_half_a_surrogate_pair_is_read(tmp_path, written, read_as):
    """As Python's json writes what is no text, and it and JavaScript read it."""
    text = json.dumps(trace(region(0, 10, "HERE"), kernel(1, 5, 2, bytes="N"))).replace(
        "HERE", written
    )
    found = read(write(tmp_path, text.replace('"N"', "NaN").encode()))
    assert found.annotations[0].name == read_as
    assert found.non_finite == 1
    found.annotations[0].name.encode()  # it can be printed


# ── One event of other hands ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "odd",
    [
        {"args": []},
        {"args": "text"},
        {"args": 5},
        {"cat": ["x"]},
        {"ts": "soon"},
        {"ts": []},
        {"dur": {}},
        {"dur": "long", "args": []},
    ],
)
def test_one_odd_event_costs_no_file(tmp_path, odd):
    path = write(tmp_path, trace(op("a", 1, 5), op("b", 2, 5) | odd, op("c", 3, 5)))
    found = read(path)
    assert found.odd_events == 1
    assert [span.name for span in found.ops if span.name != "b"] == ["a", "c"]
    seen = len(found.ops) + len(found.untimed)
    assert seen == (2 if "cat" in odd else 3)


def test_what_is_no_object_is_left_out(tmp_path):
    path = write(tmp_path, trace(op("a", 1, 5), kernel(1, 5, 2)))
    file = json.loads(path.read_text())
    file["traceEvents"][1:1] = [1, "text", None, [], [[]], 2.5]
    found = read(write(tmp_path, file))
    assert (found.odd_events, len(found.ops), len(found.gpu)) == (6, 1, 1)


def test_an_odd_argument_costs_no_other(tmp_path):
    text = json.dumps(trace(region(0, 9), kernel(7, 5, 2, bytes="HERE")))
    found = read(write(tmp_path, text.replace('"HERE"', "1e400").encode())).gpu[0]
    assert (found.correlation, found.bytes, found.duration) == (7, None, 2000)


@pytest.mark.parametrize("unit", ["exponent", "decimals"])
def test_a_refusal_speaks_of_numbers(tmp_path, unit):
    """And not of the type that they are read into."""
    times = {"exponent": 1.5, "decimals": "1790857026123456.789"}
    event = {"ph": "X", "ts": times[unit]}
    message = refused(write(tmp_path, [event, {"ph": "X", "ts": "soon"}]))
    assert "Expected a number, got `str` - at `$.traceEvents[1].ts`" in message


# ── Cost ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("unit", ['\\"', "\\\\", "\\ud800", "NaN,", '"NaN', '\\"NaN'])
def test_a_long_damaged_line_is_refused_at_once(tmp_path, unit):
    path = write(
        tmp_path, ('{"traceEvents":[{"name":"NaN' + unit * (400_000 // len(unit))).encode()
    )
    start = time.process_time()
    refused(path)
    assert time.process_time() - start < 5


def test_words_in_strings_move_no_place(tmp_path):
    for word in ("nabc", "tabs", "false", "fives", "n", "t"):
        text = json.dumps(trace(region(0, 10, f"a {word}HERE")))
        message = refused(write(tmp_path, text.replace("HERE", "\x01").encode()))
        assert place(message) == (1, text.index("HERE") + 1)
