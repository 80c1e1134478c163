"""Recordings are found by what they tell of themselves, whatever they are called."""

import gzip
import json
import os
import random
from pathlib import Path

import pytest
from build import BACKENDS, SCRIPTS, forward, make, recording, story, trace, write

from common.cli import UserError
from common.compare.variants import TUTORIAL
from common.read import recordings
from common.read.observe import observe
from common.read.trace import read
from common.story import METADATA_KEY, read_story

SHAPE = (8, 16, 1024, 64)
SCRIPT = SCRIPTS["04_c"]
STORY = read_story(story())


def found(path, *scripts) -> dict:
    """{(script, variant): path} of what stands beside a recording, of all that the tutorial and
    these scripts record."""
    beside = recordings.Siblings(observe(read(path)))
    seen = {key: beside.get(key) for key in (*TUTORIAL, *((script, "") for script in scripts))}
    return {key: one.trace.path for key, one in seen.items() if one}


@pytest.mark.parametrize("mode", ["eager", "compile"])
def test_every_shipped_recording_is_found(mode):
    wanted = [("04_a", ""), ("04_b", ""), *(("04_c", backend) for backend in BACKENDS)]
    for script, variant in wanted:
        path = recordings.shipped(SCRIPTS[script], variant, SHAPE, "bf16", mode)
        assert path.samefile(recording(script, mode, variant))


@pytest.mark.parametrize(
    "change",
    [
        {"variant": "nobody's"},
        {"shape": (8, 16, 1024, 128)},
        {"dtype": "fp16"},
        {"mode": "dreaming"},
    ],
)
def test_what_is_not_shipped_is_refused_with_what_is(change):
    wanted = {"variant": "flash", "shape": SHAPE, "dtype": "bf16", "mode": "eager"} | change
    with pytest.raises(UserError) as caught:
        recordings.shipped(SCRIPT, **wanted)
    message = str(caught.value)
    assert f"no shipped recording of {wanted['variant']} " in message
    for backend in BACKENDS:
        assert f"{backend} bf16 {list(SHAPE)} eager" in message
        assert f"{backend} bf16 {list(SHAPE)} compile" in message
    assert "--replay FILE" in message


def test_no_recording_of_a_script_at_all():
    with pytest.raises(UserError, match="there is none; or give a file: --replay FILE"):
        recordings.shipped("05_x", "", SHAPE, "bf16", "eager")


def test_names_of_files_tell_nothing(tmp_path, monkeypatch):
    """Names that lie, and contents that do not."""
    monkeypatch.setattr(recordings, "SHIPPED", tmp_path)
    flash = make(tmp_path, "gpu/a/math_compile.json", script="s", variant="flash")
    math = make(tmp_path, "gpu/b/flash_eager.json", script="s", variant="math", mode="compile")
    shape = tuple(story()["shape"])
    assert recordings.shipped("s", "flash", shape, "bf16", "eager") == flash
    assert recordings.shipped("s", "math", shape, "bf16", "compile") == math


def test_what_cannot_be_read_or_is_not_ours_is_passed_over(tmp_path):
    ours = make(tmp_path, "c/ours.json")
    packed = write(tmp_path, gzip.compress(ours.read_bytes()), "d/packed.json.gz")
    write(tmp_path, b"{", "a/broken.json")
    write(tmp_path, trace(forward(100, ("mul", "k", 5))), "a/theirs.json")
    write(tmp_path, ours.read_bytes(), "a/table.txt")
    (tmp_path / "folder.json").mkdir()
    assert list(recordings.recordings_in(tmp_path)) == [(ours, STORY), (packed, STORY)]
    assert list(recordings.recordings_in(tmp_path / "nowhere")) == []


def test_siblings_are_the_other_recordings_of_the_same_workload():
    beside = found(recording("04_a"))
    kernels = {(SCRIPTS["04_d"], kernel) for kernel in ("triton", "gluon", "flex", "fa4")}
    backends = {(SCRIPT, backend) for backend in BACKENDS}
    assert set(beside) == {(SCRIPTS["04_b"], "")} | backends | kernels
    assert all(path.name.endswith("eager.json.gz") for path in beside.values())


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2, 4, 512, 64]},
        {"dtype": "fp32"},
        {"mode": "compile"},
        {"device": {"type": "cuda", "name": "NVIDIA A100"}},
        {"versions": {"torch": "2.12.0"}},
        {"steps": {"wait": 1, "warmup": 1, "active": 30}},
    ],
)
def test_another_workload_device_or_version_is_no_sibling(tmp_path, change):
    mine = make(tmp_path, "a/mine.json", script="a")
    make(tmp_path, "b/other.json", script="b", **change)
    same = make(tmp_path, "c/same.json", script="c")
    assert found(mine, "a", "b", "c") == {("c", ""): same}


def test_one_s_own_file_is_no_sibling(tmp_path):
    mine = make(tmp_path, "a/mine.json", script="a")
    link = tmp_path / "a" / "link.json"
    link.symlink_to(mine)
    assert found(mine, "a") == found(link, "a") == {}


def test_siblings_that_cannot_be_observed_are_passed_over(tmp_path):
    mine = make(tmp_path, "a/mine.json", script="a")
    make(tmp_path, "b/other.json", script="b", label="a label that is not there")
    assert found(mine, "b") == {}


def test_the_search_goes_no_deeper_than_recordings_lie(tmp_path):
    """The file may lie in somebody's downloads: a whole home must not be read for it."""
    mine = make(tmp_path, "downloads/mine.json", script="a")
    make(tmp_path, "some/where/deep/other.json", script="b")
    make(tmp_path, "loose.json", script="c")
    beside = make(tmp_path, "traces/other.json", script="d")
    assert found(mine, "b", "c", "d") == {("d", ""): beside}


def test_a_trace_of_somebody_else_has_no_siblings(tmp_path):
    make(tmp_path, "a/ours.json", script="a")
    theirs = write(tmp_path, trace(forward(100, ("mul", "k", 5))), "b/theirs.json")
    assert found(theirs, "a") == {}


def test_what_is_no_regular_file_in_a_folder_is_passed_over(tmp_path):
    """Nobody asked to wait for a pipe, or to follow a loop."""
    path = write(tmp_path, trace(forward(100, ("mul", "k", 7)), about=story()), "one/t.json")
    os.mkfifo(tmp_path / "one" / "pipe.json")
    (tmp_path / "one" / "loop.json").symlink_to("loop.json")
    (tmp_path / "one" / "gone.json").symlink_to("nowhere")
    (tmp_path / "one" / "again").symlink_to(tmp_path / "one")
    (tmp_path / "one" / "folder.json").mkdir()
    assert [seen.trace.path for seen in recordings.observed([tmp_path])] == [path]
    assert [found for found, _ in recordings.recordings_in(tmp_path)] == [path]


def test_brackets_in_names_are_no_pattern(tmp_path):
    path = write(tmp_path, trace(forward(100, ("mul", "k", 7)), about=story()), "[x]*/[a].json")
    assert [seen.trace.path for seen in recordings.observed([path])] == [path]
    assert [seen.trace.path for seen in recordings.observed([path.parent])] == [path]
    recordings.Siblings(observe(read(path))).get(("04_x_test", ""))


# ── No more than is needed ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_story_is_read_from_the_beginning_alone(tmp_path, monkeypatch, pack):
    """However long the file; and whatever stands behind it."""
    path = make(tmp_path, "t.json")
    filling = random.Random(0).randbytes(4 * recordings.BEGINNING)
    path.write_bytes(pack(path.read_bytes() + filling))
    opened, places = Path.open, []

    def spy(self, mode):
        file = opened(self, mode)
        places.append(os.dup(file.fileno()))  # it shares the place that was read up to
        return file

    monkeypatch.setattr(Path, "open", spy)
    assert recordings.story_of(path) == STORY
    [place] = [os.lseek(descriptor, 0, os.SEEK_CUR) for descriptor in places]
    os.close(places[0])
    assert place <= 1.5 * recordings.BEGINNING < path.stat().st_size


def test_a_story_too_far_behind_is_none(tmp_path):
    path = make(tmp_path, "t.json")
    content = json.loads(path.read_text())
    told = content.pop(METADATA_KEY)
    blanks = "x" * recordings.BEGINNING
    path.write_text(json.dumps(content | {"blanks": blanks, METADATA_KEY: told}))
    assert recordings.story_of(path) is None and read(path).story == STORY


@pytest.mark.parametrize(
    "beginning", [b"", b"\x1f\x8b", b"\x1f\x8b\x08 no gzip", b"[", b"\xff\xfe"]
)
def test_what_holds_no_story_tells_none(tmp_path, beginning):
    assert recordings.story_of(write(tmp_path, beginning)) is None
    assert recordings.story_of(tmp_path) is None and recordings.story_of(tmp_path / "none") is None


def test_a_sibling_is_read_when_it_is_asked_for_and_once(tmp_path, monkeypatch):
    mine = make(tmp_path, "a/mine.json", script="a")
    for name in "bcd":
        make(tmp_path, f"{name}/other.json", script=name)
    seen, whole, beginnings = observe(read(mine)), [], []
    story_of = recordings.story_of
    monkeypatch.setattr(
        recordings, "read", lambda path: whole.append(path.parent.name) or read(path)
    )
    monkeypatch.setattr(
        recordings, "story_of", lambda path: beginnings.append(path.parent.name) or story_of(path)
    )
    beside = recordings.Siblings(seen)
    assert (whole, beginnings) == ([], [])
    for _ in range(2):
        assert beside.get(("c", "")).story.script == "c" and beside.get(("x", "")) is None
    assert (whole, sorted(beginnings)) == (["c"], ["a", "b", "c", "d"])
