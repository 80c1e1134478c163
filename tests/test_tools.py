"""The tools beside the tests: what grows is a trace, damage is survived."""

import gzip
import json
import sys
from pathlib import Path

import pytest
from build import recording, tool, truth

from common.read.observe import observe
from common.read.trace import read

TOOLS = Path(__file__).parent / "tools"


@pytest.fixture(scope="module")
def grow():
    return tool("grow")


@pytest.mark.parametrize("minified", [False, True])
@pytest.mark.parametrize("packed", [False, True])
def test_a_grown_trace_repeats_its_forwards(tmp_path, grow, minified, packed):
    path = tmp_path / "big.json"
    grow.write(path, grow.grow(recording("04_a"), 1000, minified), packed)
    data = path.read_bytes()
    events = json.loads(gzip.decompress(data) if packed else data)["traceEvents"]
    assert len(events) >= 1000
    work = [e["args"]["correlation"] for e in events if e.get("cat") in ("kernel", "gpu_memcpy")]
    assert len(work) == len(set(work))
    steps = [e["name"] for e in events if e.get("cat") == "user_annotation"]
    steps = [name for name in steps if name.startswith("ProfilerStep#")]
    assert steps == [f"ProfilerStep#{2 + number}" for number in range(len(steps))]
    seen = observe(read(path))
    assert len(seen.forwards) == len(steps) and not seen.leaked and not seen.lost
    names = [[work["event"]["name"] for work in f["work"]] for f in truth(recording("04_a"))]
    assert [[s.name for s in f.steps] for f in seen.forwards] == names * (len(steps) // 3)


def test_the_benchmark_measures_a_process_or_says_why_not(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    measure = tool("bench_readers").measure
    seconds, cpu, megabytes = measure([sys.executable, "-c", "x = b'x' * 200_000_000"], 60)
    assert 0 < seconds < 60 and 0 < cpu < 60 and megabytes > 200_000_000 / 2**20
    assert measure([sys.executable, "-c", "raise SystemExit('no file')"], 60) == "failed: no file"
    assert measure([sys.executable, "-c", "import time; time.sleep(9)"], 0.3) == "not done in 0.3 s"


def test_the_notes_in_the_pictures_are_of_their_recordings_and_read_on_a_phone(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    pictures = tool("pictures")
    notes = {name: one.circled.words(observe(read(one.path))) for name, one in pictures.ALL.items()}
    (copy,) = observe(read(recording("04_a"))).of("copy")
    assert notes["naive"].startswith(f"{copy.ns / 1e3:.1f} µs")
    assert notes["cudnn"].endswith("cuLaunchKernelEx")
    assert all(pictures._wide(note) * 1.06 <= pictures.WIDTH for note in notes.values())
    shown = 390 - 2 * 16  # a page's margins on either side
    assert pictures.TEXT * shown / pictures.WIDTH >= 11


def test_names_beside_a_lane_keep_apart_and_in_the_picture(monkeypatch):
    monkeypatch.syspath_prepend(TOOLS)
    pictures = tool("pictures")
    lane = pictures.Lane(pictures.GUTTER, 0, 500, 40, 0, 1000)
    crowded = [pictures.Slice(n, "", 900 + 9 * n, 905 + 9 * n, 0) for n in range(12)]
    ring = pictures.Box(490, 0, 520, 20)
    line = pictures.Sketch(500, 40, b"")._line(lane, [(one, "softmax") for one in crowded], ring)
    ends = [(x - pictures._wide(word) / 2, x + pictures._wide(word) / 2) for x, _, word in line]
    assert 3 < len(line) <= 8 and sum(not word for *_, word in line) == 1
    assert all(end <= start + 0.5 for (_, end), (start, _) in zip(ends, ends[1:], strict=False))
    assert ends[0][0] >= pictures.GUTTER and ends[-1][1] <= pictures.GUTTER + 500


def test_a_few_hundred_damaged_recordings():
    outcomes, failures = tool("fuzz").fuzz(400)
    assert not failures and set(outcomes) == {"answered", "refused in one line", "salvaged"}
    assert min(outcomes.values()) > 20


def test_another_reader_finds_the_same():
    outcomes, failures = tool("differential").differ(150)
    assert not failures and sum(outcomes.values()) == 150
    assert outcomes["one rank: agree"] > 60 and outcomes["several ranks: agree"] > 10
