"""leak: what it concludes, and the opposite from opposite traces."""

import gzip
import json
import re

import pytest
from build import NVJET, ROOT, SOFTMAX, forward, kernel, load, recording, truth, write
from experiments import WAITING, as_experiment, attention, conclusions, leak, refused, save, total

BEFORE = [kernel(901, 10, 250, SOFTMAX), kernel(902, 300, 50, NVJET)]  # no launch in the file


def test_leak_counts_what_the_warm_up_launched(tmp_path, ask):
    folder = leak(tmp_path, never=BEFORE, never_total="1.200ms")
    code, out, err = ask("leak", "--replay", folder)
    assert (code, err) == (0, "")
    lines = [re.split(r"  +", line.strip()) for line in out.splitlines()]
    assert ["not synchronised", "8", "6", "2", "1,200.0 µs", "900.0 µs"] in lines
    assert ["synchronised after the warm-up", "6", "6", "0", "900.0 µs", "900.0 µs"] in lines
    assert conclusions(ask, "leak", folder) == [
        "Not synchronised: the table's total, 1,200.0 µs, holds more than the forwards: 2 events "
        "of 300.0 µs, launched by the warm-up and still running when recording started.",
        "Synchronised: the table's total, 900.0 µs, is the GPU time of the forwards.",
        "One synchronise at the end of the warm-up keeps them out.",
    ]
    [never, after] = json.loads(ask("leak", "--json", "--replay", folder)[1])["recordings"]
    assert never | {"file": None} == {
        "file": None, "synchronised": False, "forwards": 3, "kernels": 8, "gpu_events": 8,
        "joined_gpu_events": 6, "gpu_events_without_launch": 2, "table_total_us": 1200.0,
        "file_sum_us": 1200.0, "forwards_sum_us": 900.0,
    }  # fmt: skip
    assert after["synchronised"] and after["gpu_events_without_launch"] == 0


def test_leak_concludes_the_opposite_where_the_traces_do(tmp_path, ask):
    none = conclusions(ask, "leak", leak(tmp_path / "none"))
    assert (
        none[0] == "Not synchronised: the table's total, 900.0 µs, is the GPU time of the forwards."
    )
    assert none[2].startswith("Here the synchronise makes no difference")
    both = leak(tmp_path / "both", BEFORE, BEFORE, "1.200ms", "1.200ms")
    assert conclusions(ask, "leak", both)[2] == "The synchronise did not keep them out."


def test_leak_does_not_blame_the_warm_up_for_lost_launches(tmp_path, ask):
    late = leak(tmp_path, never=[kernel(901, 30_000, 300)], never_total="1.200ms")
    said = conclusions(ask, "leak", late)
    assert said[0].endswith("1 event of 300.0 µs, without a launch in the file.")
    assert len(said) == 2  # and nothing of what the synchronise did


def test_leak_blames_the_warm_up_only_where_all_of_it_came_before(tmp_path, ask):
    """One event from before, one from the middle of the forwards: some launches were lost."""
    early, late = BEFORE[0], kernel(902, 30_000, 50)
    mixed = leak(tmp_path / "mixed", never=[early, late], never_total="1.200ms")
    said = conclusions(ask, "leak", mixed)
    assert said[0].endswith("2 events of 300.0 µs, without a launch in the file.")
    assert len(said) == 2
    both = leak(tmp_path / "both", after=[early, late], after_total="1.200ms")
    assert "did not keep them out" not in " ".join(conclusions(ask, "leak", both))


def test_leak_says_what_else_a_total_holds(tmp_path, ask):
    outside = forward(40_000, ("mul", "k", 300), label="other")
    folder = leak(tmp_path, never=outside, never_total="1.200ms")
    assert conclusions(ask, "leak", folder)[0].endswith(
        "holds more than the forwards: 1 event launched outside the forwards."
    )


@pytest.mark.parametrize(("text", "agrees"), [
    ("1.200ms", True), ("1.201ms", True), ("1.202ms", False), ("900.000us", False),
])  # fmt: skip
def test_leak_compares_the_total_as_exactly_as_it_is_printed(tmp_path, ask, text, agrees):
    said = conclusions(ask, "leak", leak(tmp_path, never=BEFORE, never_total=text))[0]
    assert ("2 events" in said) == agrees
    assert ("is not the sum of the file's GPU events, 1,200.0 µs" in said) != agrees


def test_leak_without_a_total_says_so(tmp_path, ask):
    folder = leak(tmp_path, never=BEFORE, never_total="unreadable")
    assert conclusions(ask, "leak", folder)[0] == (
        "Not synchronised: the recording does not tell the table's total."
    )
    found = json.loads(ask("leak", "--json", "--replay", folder)[1])
    assert found["recordings"][0]["table_total_us"] is None


def test_leak_needs_both(tmp_path, ask):
    save(tmp_path, "leak", "never", attention(100))
    assert "warm-up is not there" in refused(ask, "leak", "--replay", tmp_path)


def test_leak_on_a_real_recording(tmp_path, ask):
    """A recording of the H200 against itself with its first launches taken out."""
    path = recording("04_b")
    times = [work["event"]["dur"] for one in truth(path) for work in one["work"]]
    in_file = f"{float(sum(times)) / 1e3:.3f}ms"
    first = [work["event"] for one in truth(path)[:1] for work in one["work"]][:2]
    as_experiment(tmp_path, "leak", "warm-up", path, **total(in_file))
    content = json.loads(gzip.decompress(path.read_bytes()))
    gone = {event["args"]["correlation"] for event in first}
    content["traceEvents"] = [
        event
        for event in content["traceEvents"]
        if event.get("cat") not in ("cuda_runtime", "cuda_driver")
        or event["args"].get("correlation") not in gone
    ]
    content["profiling_attention"] |= {"script": "experiment_leak", "variant": "never"}
    content["profiling_attention"] |= total(in_file)
    write(tmp_path, json.dumps(content).encode(), "never.json")
    found = json.loads(ask("leak", "--json", "--replay", tmp_path)[1])
    never, after = found["recordings"]
    assert never["gpu_events"] == after["gpu_events"] == after["joined_gpu_events"] == len(times)
    assert never["gpu_events_without_launch"] == 2
    assert never["file_sum_us"] == after["forwards_sum_us"] == float(sum(times))
    assert (
        "2 events" in found["conclusions"][0]
        and "launched by the warm-up" in found["conclusions"][0]
    )
    assert found["conclusions"][1].endswith("is the GPU time of the forwards.")


@WAITING
def test_shipped_leak(ask):
    found = json.loads(ask("leak", "--replay", "--json")[1])
    never, after = found["recordings"]
    for one in (never, after):
        content = load(ROOT / one["file"])
        events = [
            e for e in content["traceEvents"] if e.get("cat", "").startswith(("kernel", "gpu_mem"))
        ]
        launches = {
            e["args"].get("correlation")
            for e in content["traceEvents"]
            if e.get("cat") in ("cuda_runtime", "cuda_driver")
        }
        alone = [e for e in events if e["args"]["correlation"] not in launches]
        assert one["gpu_events"] == len(events)
        assert one["gpu_events_without_launch"] == len(alone)
        assert one["file_sum_us"] == pytest.approx(float(sum(e["dur"] for e in events)), abs=1e-3)
    assert ("launched by the warm-up" in found["conclusions"][0]) == (
        never["gpu_events_without_launch"] > 0
    )
