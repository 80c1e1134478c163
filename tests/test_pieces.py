"""Bytes → blocks → pieces: whatever the file is, memory stays small, and pipes are files too."""

import gzip
import json
import os
import subprocess
import sys
import threading
import tracemalloc

import pytest
from build import ROOT, forward, op, recording, trace, write

from common.cli import UserError
from common.read import pieces
from common.read.trace import read

MB = 1 << 20
HEAD = b'{"traceEvents":['


def refused(path, **more) -> str:
    with pytest.raises(UserError) as caught:
        read(path, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# ── Memory ────────────────────────────────────────────────────────────────────────────────────────

# What stands in the list of events, over and over.
FILLINGS = {
    "lists without end": b"[",
    "objects without end": b'{"a":',
    "one string": b'"' + b"x" * 1000,
    "numbers": b"1,",
    "blanks": b" ",
    "NaN": b"NaN,",
    "empty objects": b"{},",
    "empty lists": b"[],",
    "NUL": b"\0",
    "quotes": b'\\"',
}


@pytest.mark.parametrize("filling", FILLINGS)
def test_a_small_gzip_file_is_no_bomb(tmp_path, monkeypatch, filling):
    for name, size in (("BLOCK", MB >> 4), ("MOST", MB >> 1), ("WHOLE", 2 * MB), ("SMALL", MB)):
        monkeypatch.setattr(pieces, name, size)
    text = HEAD + FILLINGS[filling] * (16 * MB // len(FILLINGS[filling]))
    path = write(tmp_path, gzip.compress(text), "t.json.gz")
    del text
    tracemalloc.start()
    message = refused(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 24 * MB  # the file unpacks to 16, of which it takes no more than 2 at once
    assert path.name in message


def test_what_a_gzip_file_unpacks_to_has_two_limits(tmp_path, monkeypatch):
    text = json.dumps(trace([op("mul", i, 5) for i in range(500)])).encode()
    path = write(tmp_path, gzip.compress(text), "t.json.gz")
    assert len(read(path).ops) == 500
    assert "unpacks to more than 1e-06 GB; --max-gb raises the limit" in refused(path, max_gb=1e-6)
    monkeypatch.setattr(pieces, "SMALL", 1000)
    monkeypatch.setattr(pieces, "RATIO", 2)
    assert "unpacks to more than 2 times its size" in refused(path)
    assert len(read(write(tmp_path, text)).ops) == 500  # unpacked it is read


def test_what_a_trace_takes_in_memory_has_a_limit(tmp_path):
    path = write(tmp_path, trace([op("mul", i, 5) for i in range(500)]))
    assert "more than 1e-05 GB of memory; --max-gb raises the limit" in refused(path, max_gb=1e-5)


def test_no_recording_comes_near_the_limits():
    for path in recording("04_a").parent.parent.rglob("*.json.gz"):
        unpacked = len(gzip.decompress(path.read_bytes()))
        assert unpacked < pieces.RATIO / 2 * path.stat().st_size


# ── Where it is cut ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("size", [200, 3000])
def test_the_list_may_begin_behind_the_first_block(tmp_path, monkeypatch, size):
    whole = {"stackFrames": {str(i): {"name": "f"} for i in range(size)}} | trace(
        [op("mul", i, 5) for i in range(300)]
    )
    path = write(tmp_path, whole)
    monkeypatch.setattr(pieces, "BLOCK", 1000)
    monkeypatch.setattr(pieces, "MOST", 20_000)
    assert len(read(path).ops) == 300


def test_a_file_that_cannot_be_cut_as_it_is_read_is_cut_in_memory(tmp_path, monkeypatch):
    """What looks like the list and is none stands before it."""
    events = [op("mul", i, 5) for i in range(300)]
    whole = {"before": {"traceEvents": events}} | trace(events)
    text = json.dumps(whole).replace('"before"', '"x": NaN, "before"')
    path = write(tmp_path, text.encode())
    expected = read(path)
    monkeypatch.setattr(pieces, "BLOCK", 1000)
    monkeypatch.setattr(pieces, "MOST", 5000)
    found = read(path)
    assert found == expected and len(found.ops) == 300 and found.non_finite == 1
    monkeypatch.setattr(pieces, "WHOLE", 5000)
    assert "no list of events to be read one by one" in refused(path)


def test_events_longer_than_what_is_searched_first(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "BLOCK", 1 << 14)
    long = [op("mul", i, 5) | {"args": {"stack": "x" * 9000}} for i in range(40)]
    path = write(tmp_path, trace(long))
    cuts = pieces.cut(pieces.read_blocks(path, 1, False, lambda share: None, path))
    assert sum(1 for _ in cuts) > 15
    assert len(read(path).ops) == 40


@pytest.mark.parametrize("name", ["},{}", "},{", "}, {}, {", '},{"a":1'])
def test_names_that_look_like_the_end_of_an_event(tmp_path, monkeypatch, name):
    events = [op(f"{name}{i}", i, 5) for i in range(200)]
    path = write(tmp_path, trace(events))
    for size in (300, 1000, 4000):
        monkeypatch.setattr(pieces, "BLOCK", size)
        assert [span.name for span in read(path).ops] == [event["name"] for event in events]


# ── Pipes ─────────────────────────────────────────────────────────────────────────────────────────


def look(*arguments, **more) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "common.look", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, timeout=60, **more)


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_a_trace_comes_out_of_a_pipe(name):
    path = recording("04_a")
    whole = gzip.decompress(path.read_bytes())
    done = look(name, input=whole)
    assert done.returncode == 0 and done.stdout == look(path).stdout
    done = look(name, input=whole[:5000])
    assert done.returncode == 2 and done.stdout == b""
    assert done.stderr.startswith(f"error: {name}: truncated JSON".encode())
    assert b"empty trace" in look(name, input=b"").stderr


def test_a_named_pipe_is_read_and_has_a_limit(tmp_path):
    content = write(tmp_path, trace(forward(100, ("mul", "k", 7)))).read_bytes()
    pipe = tmp_path / "pipe.json"
    os.mkfifo(pipe)
    for limit in (1, 1e-6):
        writer = threading.Thread(target=pipe.write_bytes, args=[content])
        writer.start()
        if limit == 1:
            assert len(read(pipe, max_gb=limit).gpu) == 1
        else:
            assert "more than 1e-06 GB" in refused(pipe, max_gb=limit)
        writer.join()


def test_nothing_is_left_of_a_pipe(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    look("-", input=b"{}", env=os.environ | {"TMPDIR": str(tmp_path)})
    assert list(tmp_path.iterdir()) == []
